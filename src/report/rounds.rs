//! Slots owned, forged and missed, per round and delegate, on the chain that most live nodes stand on.
//!
//! Nothing is counted during the run: a chain itself shows which slots have a block. So a rollback needs no correction, and a
//! report always describes one chain.

use crate::{
    actors::{Event, NodeId, SimTime},
    ledger::{BlockTree, Link, Round},
    protocol::{BlockId, Height, PublicKey, Slot},
    sim::{ActiveSet, NetworkEvent, Observer, Plan, Tips},
};
use serde::Serialize;
use std::{
    collections::{BTreeMap, BTreeSet},
    iter,
    sync::{Arc, Mutex, MutexGuard},
};

/// One delegate's slots.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DelegateSlots {
    pub username: String,
    #[serde(rename = "publicKey")]
    pub public_key: String,
    pub owned: u32,
    pub forged: u32,
    pub missed: u32,
}

/// Time between two blocks that is longer than one slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Gap {
    /// Height of the block after the gap.
    pub height: u32,
    /// In seconds; 16 where one slot was missed.
    pub seconds: u32,
    /// Slots left empty.
    pub missed_slots: u32,
}

/// One round.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RoundReport {
    pub round: u32,
    pub first_height: u32,
    /// Height of its last block, or of the last one before it while it has none.
    pub last_height: u32,
    pub blocks: u32,
    /// Slots without a block that a delegate owned, each once. Under a lottery a slot may have several owners, and each has missed it.
    pub missed_slots: u32,
    pub gaps: Vec<Gap>,
    /// The figures of its members.
    #[serde(skip)]
    pub active_set: ActiveSet,
    /// Slots left empty after the last block of the chain, in the round that they belong to.
    #[serde(skip)]
    pub empty_at_end: u32,
    /// The figures of its delegates, sorted by the number in the username, then by the name.
    pub delegates: Vec<DelegateSlots>,
    /// Its slots in order, for the last `ROUNDS_IN_TURNS` rounds only.
    #[serde(skip)]
    pub turns: Vec<Turn>,
}

/// The number of rounds whose slots are all listed.
pub(crate) const ROUNDS_IN_TURNS: usize = 120;

/// One slot of a round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Turn {
    pub slot: u32,
    /// Its owner's username.
    pub owner: String,
    /// Height of the block forged in it; empty where it was missed.
    pub height: Option<u32>,
}

impl RoundReport {
    /// The largest number of consecutive slots without a block: before one of its blocks, or after the last block of the chain.
    pub fn longest_gap_slots(&self) -> u32 {
        let gaps = self.gaps.iter().map(|gap| gap.missed_slots);
        gaps.chain([self.empty_at_end]).max().unwrap_or(0)
    }
}

/// The rounds that blocks have begun, on any fork.
#[derive(Clone)]
pub(crate) struct RoundBook {
    tree: Arc<BlockTree>,
    /// The first slot of the run.
    pub(super) start: Slot,
    /// The first height that the run makes a block for.
    pub(super) first_height: Height,
    first: Arc<Round>,
    /// The delegates of each group of agents.
    groups: Vec<BTreeSet<PublicKey>>,
    /// The rounds by the block that ended the round before them.
    begun: BTreeMap<BlockId, Arc<Round>>,
}

impl RoundBook {
    /// The book of a run at its first instant.
    pub fn new(plan: &Plan) -> Self {
        let first = plan.tree.applied(&plan.tip).state.round().clone();
        let start = plan.tree.slots().slot(plan.start.seconds());
        let (tree, groups, first_height) =
            (plan.tree.clone(), plan.delegates_of_groups.clone(), plan.tip.height().next());
        Self { tree, start, first_height, first, groups, begun: BTreeMap::new() }
    }

    /// Follows an event of any node.
    pub fn follow(&mut self, event: &Event) {
        if let Event::BlockApplied(link) = event
            && let Some(end) = link.round_end()
        {
            self.begun.entry(link.id()).or_insert_with(|| end.created.clone());
        }
    }

    /// The rounds of the chain ending in `tip` that the run has played, ascending. Slots before `end` that are empty
    /// after the tip were missed too.
    pub fn rounds(&self, tip: &Arc<Link>, end: Slot) -> Vec<RoundReport> {
        let mut walk = Walk { book: self, next_slot: self.start, rounds: Vec::new() };
        for height in self.first_height.0..=tip.height().0 {
            walk.block(&tip.ancestor(Height(height)).expect("the height is the tip's at most"));
        }
        walk.close(tip, end);
        let applied = self.tree.applied(tip);
        let username = |key: &PublicKey| match applied.state.delegate_of(key) {
            Some(delegate) => delegate.username.to_string(),
            None => key.to_string(),
        };
        let before = iter::once(None).chain(walk.rounds.iter().map(|round| Some(&*round.round)));
        let rounds = walk.rounds.iter().zip(before);
        rounds
            .filter(|(round, _)| round.counts.iter().any(|counts| *counts != (0, 0)))
            .map(|(round, before)| round.report(&username, ActiveSet::of(&round.round, before, &self.groups)))
            .collect()
    }

    /// The round of the block at `height` on the chain of `link`, which is at that height or just below it.
    fn round_of(&self, link: &Arc<Link>, height: Height) -> Arc<Round> {
        let position = self.tree.schedule().at(height);
        let before = link.ancestor(Height(position.first.0.saturating_sub(1)));
        before.and_then(|before| self.begun.get(&before.id())).unwrap_or(&self.first).clone()
    }
}

/// A walk up a chain.
struct Walk<'a> {
    book: &'a RoundBook,
    /// The first slot not yet accounted for.
    next_slot: Slot,
    rounds: Vec<OneRound>,
}

struct OneRound {
    round: Arc<Round>,
    last_height: u32,
    gaps: Vec<Gap>,
    empty_at_end: u32,
    blocks: u32,
    missed_slots: u32,
    /// (forged, missed) of each member, in ranking order.
    counts: Vec<(u32, u32)>,
    /// Slot, member, and the height forged there.
    turns: Vec<(Slot, usize, Option<u32>)>,
}

impl Walk<'_> {
    fn block(&mut self, link: &Arc<Link>) {
        let slots = self.book.tree.slots();
        let (slot, height) = (slots.slot(link.block().header.timestamp), link.height().0);
        let first_slot = self.next_slot;
        self.enter(link, link.height());
        self.count_missed(slot);
        self.next_slot = Slot(slot.0 + 1);
        let round = self.rounds.last_mut().expect("the block's round was entered");
        let header = &link.block().header;
        if let Some(owner) = round.round.counted(slot, &header.generator) {
            round.counts[owner].0 += 1;
            round.turns.push((slot, owner, Some(height)));
        }
        round.blocks += 1;
        round.last_height = height;
        let missed_slots = slot.0.saturating_sub(first_slot.0);
        if missed_slots > 0 {
            round.gaps.push(Gap { height, seconds: (missed_slots + 1) * slots.blocktime(), missed_slots });
        }
    }

    fn close(&mut self, tip: &Arc<Link>, end: Slot) {
        self.enter(tip, tip.height().next());
        let empty_at_end = end.0.saturating_sub(self.next_slot.0);
        self.count_missed(end);
        self.rounds.last_mut().expect("a round was entered").empty_at_end = empty_at_end;
    }

    fn enter(&mut self, link: &Arc<Link>, height: Height) {
        let position = self.book.tree.schedule().at(height);
        if self.rounds.last().is_none_or(|round| round.round.number() != position.round) {
            self.rounds.push(OneRound::new(self.book.round_of(link, height), height.0 - 1));
            if let Some(old) = self.rounds.len().checked_sub(ROUNDS_IN_TURNS + 1) {
                self.rounds[old].turns = Vec::new();
            }
        }
    }

    /// Counts the slots before `end` as missed in the current round.
    fn count_missed(&mut self, end: Slot) {
        let round = self.rounds.last_mut().expect("a round was entered");
        for missed in (self.next_slot.0..end.0).map(Slot) {
            let owners = round.round.owners(missed);
            round.missed_slots += u32::from(!owners.is_empty());
            for owner in owners {
                round.counts[owner].1 += 1;
                round.turns.push((missed, owner, None));
            }
        }
        self.next_slot = Slot(end.0.max(self.next_slot.0));
    }
}

impl OneRound {
    /// A round without blocks. `last_height` is the height below its first block.
    fn new(round: Arc<Round>, last_height: u32) -> Self {
        let counts = vec![(0, 0); round.members.len()];
        Self {
            last_height,
            gaps: Vec::new(),
            empty_at_end: 0,
            blocks: 0,
            missed_slots: 0,
            counts,
            turns: Vec::new(),
            round,
        }
    }

    fn report(&self, username: &impl Fn(&PublicKey) -> String, active_set: ActiveSet) -> RoundReport {
        let mut delegates: Vec<DelegateSlots> = self
            .round
            .members
            .iter()
            .zip(&self.counts)
            .map(|(member, (forged, missed))| DelegateSlots {
                username: username(&member.public_key),
                public_key: member.public_key.to_string(),
                owned: forged + missed,
                forged: *forged,
                missed: *missed,
            })
            .collect();
        let members = &self.round.members;
        let turn = |(slot, owner, height): &(Slot, usize, Option<u32>)| Turn {
            slot: slot.0,
            owner: username(&members[*owner].public_key),
            height: *height,
        };
        delegates.sort_by_cached_key(|delegate| by_name(&delegate.username));
        RoundReport {
            round: self.round.number().0,
            first_height: self.round.position.first.0,
            last_height: self.last_height,
            blocks: self.blocks,
            missed_slots: self.missed_slots,
            gaps: self.gaps.clone(),
            active_set,
            empty_at_end: self.empty_at_end,
            delegates,
            turns: self.turns.iter().map(turn).collect(),
        }
    }
}

/// Each delegate's sums over rounds, in the order of [`RoundReport::delegates`].
pub(crate) fn totals(rounds: &[RoundReport]) -> Vec<DelegateSlots> {
    let mut totals: BTreeMap<(u64, String), DelegateSlots> = BTreeMap::new();
    for slots in rounds.iter().flat_map(|round| &round.delegates) {
        let total = totals.entry(by_name(&slots.username)).or_insert_with(|| DelegateSlots {
            username: slots.username.clone(),
            public_key: slots.public_key.clone(),
            ..DelegateSlots::default()
        });
        total.owned += slots.owned;
        total.forged += slots.forged;
        total.missed += slots.missed;
    }
    totals.into_values().collect()
}

/// The sort key of a username: `genesis_2` comes before `genesis_10`.
fn by_name(username: &str) -> (u64, String) {
    let number = username.rsplit('_').next().and_then(|number| number.parse().ok()).unwrap_or(u64::MAX);
    (number, username.to_owned())
}

/// Watches a run and keeps account of its rounds. Clones share the account.
#[derive(Clone)]
pub struct Rounds(Arc<Mutex<Account>>);

struct Account {
    tips: Tips,
    book: RoundBook,
    /// The first slot after the end of the run.
    end: Slot,
}

impl Rounds {
    /// An account of a run that is about to begin.
    pub fn new(plan: &Plan) -> Self {
        let book = RoundBook::new(plan);
        let (tips, end) = (Tips::new(plan.nodes.len(), &plan.tip), book.start);
        Self(Arc::new(Mutex::new(Account { tips, book, end })))
    }

    /// The height of the winning tip.
    pub fn height(&self) -> Height {
        self.tip().height()
    }

    /// Records that the run has ended with slot `end` about to begin. Slots before it that are still empty were missed.
    pub fn close(&self, end: Slot) {
        self.lock().end = end;
    }

    /// The block most live nodes stand on.
    pub fn tip(&self) -> Arc<Link> {
        self.lock().tips.winning().clone()
    }

    /// All rounds begun, ascending.
    pub fn rounds(&self) -> Vec<RoundReport> {
        let account = self.lock();
        account.book.rounds(account.tips.winning(), account.end)
    }

    /// Each delegate's sums over all rounds, in the order of [`RoundReport::delegates`].
    pub fn totals(&self) -> Vec<DelegateSlots> {
        totals(&self.rounds())
    }

    fn lock(&self) -> MutexGuard<'_, Account> {
        self.0.lock().expect("no thread panics while holding it")
    }
}

impl Observer for Rounds {
    fn observe(&mut self, _: SimTime, node: NodeId, event: &Event) {
        let mut account = self.lock();
        account.tips.follow(node, event);
        account.book.follow(event);
    }

    fn observe_network(&mut self, _: SimTime, event: &NetworkEvent<'_>) {
        self.lock().tips.follow_network(event);
    }
}
