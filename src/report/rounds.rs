//! Slots owned, forged and missed, per round and delegate, as one node's chain shows them.

use crate::{
    actors::{Event, NodeId, SimTime},
    ledger::{BlockTree, Link, RoundInfo},
    protocol::{Height, PublicKey, Slot, slots::Slots},
    sim::Observer,
};
use serde::Serialize;
use std::{
    collections::BTreeMap,
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RoundReport {
    pub round: u32,
    pub first_height: u32,
    pub last_height: u32,
    pub blocks: u32,
    pub missed_slots: u32,
    pub gaps: Vec<Gap>,
    /// By username's number, then name.
    pub delegates: Vec<DelegateSlots>,
}

/// Watches one node and keeps account of its rounds. Clones share the account.
#[derive(Clone)]
pub struct Rounds(Arc<Mutex<Account>>);

struct Account {
    node: NodeId,
    tree: Arc<BlockTree>,
    slots: Slots,
    tip: Arc<Link>,
    /// The first slot not yet accounted for.
    next_slot: Slot,
    rounds: Vec<OneRound>,
}

struct OneRound {
    round: Arc<RoundInfo>,
    last_height: u32,
    gaps: Vec<Gap>,
    blocks: u32,
    /// (forged, missed) of each member, in ranking order.
    counts: Vec<(u32, u32)>,
}

impl Rounds {
    /// An account of a node that stands on the genesis block when slot `start` begins.
    pub fn new(node: NodeId, tree: Arc<BlockTree>, start: Slot) -> Self {
        let tip = tree.genesis().clone();
        let slots = tree.slots();
        let first = OneRound::new(tree.applied(&tip).state.round().clone());
        Self(Arc::new(Mutex::new(Account { node, tree, slots, tip, next_slot: start, rounds: vec![first] })))
    }

    /// The height of the node's chain.
    pub fn height(&self) -> Height {
        self.lock().tip.height()
    }

    /// The run has ended with slot `end` about to begin: slots before it that are still empty were missed.
    pub fn close(&self, end: Slot) {
        self.lock().count_missed(end);
    }

    /// The block the node is on.
    pub fn tip(&self) -> Arc<Link> {
        self.lock().tip.clone()
    }

    /// All rounds begun, ascending.
    pub fn rounds(&self) -> Vec<RoundReport> {
        let account = self.lock();
        account
            .rounds
            .iter()
            .filter(|round| round.counts.iter().any(|counts| *counts != (0, 0)))
            .map(|round| round.report(&account))
            .collect()
    }

    /// Each delegate's sums over all rounds, in the order of [`RoundReport::delegates`].
    pub fn totals(&self) -> Vec<DelegateSlots> {
        let mut totals: BTreeMap<(u64, String), DelegateSlots> = BTreeMap::new();
        for slots in self.rounds().into_iter().flat_map(|round| round.delegates) {
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

    fn lock(&self) -> MutexGuard<'_, Account> {
        self.0.lock().expect("no one panics while holding it")
    }
}

impl Observer for Rounds {
    fn observe(&mut self, _: SimTime, node: NodeId, event: &Event) {
        let mut account = self.lock();
        if let Event::BlockApplied { link, applied } = event
            && node == account.node
        {
            account.block_applied(link);
            if let Some(end) = &applied.round_end {
                account.rounds.push(OneRound::new(end.created.clone()));
            }
        }
    }
}

impl Account {
    fn block_applied(&mut self, link: &Arc<Link>) {
        let slot = self.slots.slot(link.block().header.timestamp);
        let (height, blocktime) = (link.height().0, self.slots.blocktime());
        let first_slot = self.next_slot;
        self.count_missed(slot);
        self.next_slot = Slot(slot.0 + 1);
        self.tip = link.clone();
        let round = self.rounds.last_mut().expect("the first round is there from the start");
        round.counts[round.round.owner_index(slot)].0 += 1;
        round.blocks += 1;
        round.last_height = height;
        let missed_slots = slot.0 - first_slot.0;
        if missed_slots > 0 {
            round.gaps.push(Gap { height, seconds: (missed_slots + 1) * blocktime, missed_slots });
        }
    }
}

impl Account {
    /// Slots up to `end`, which is not one of them, were left empty in the round that runs.
    fn count_missed(&mut self, end: Slot) {
        let round = self.rounds.last_mut().expect("the first round is there from the start");
        for missed in (self.next_slot.0..end.0).map(Slot) {
            round.counts[round.round.owner_index(missed)].1 += 1;
        }
        self.next_slot = Slot(end.0.max(self.next_slot.0));
    }
}

impl OneRound {
    fn new(round: Arc<RoundInfo>) -> Self {
        let counts = vec![(0, 0); round.members.len()];
        Self { last_height: round.position.first.0, gaps: Vec::new(), blocks: 0, counts, round }
    }

    fn report(&self, account: &Account) -> RoundReport {
        let applied = account.tree.applied(&account.tip);
        let username = |key: &PublicKey| match applied.state.delegate_of(key) {
            Some(delegate) => delegate.username.to_string(),
            None => key.to_string(),
        };
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
        delegates.sort_by_cached_key(|delegate| by_name(&delegate.username));
        RoundReport {
            round: self.round.number().0,
            first_height: self.round.position.first.0,
            last_height: self.last_height,
            blocks: self.blocks,
            missed_slots: self.counts.iter().map(|(_, missed)| missed).sum(),
            gaps: self.gaps.clone(),
            delegates,
        }
    }
}

/// `genesis_2` before `genesis_10`.
fn by_name(username: &str) -> (u64, String) {
    let number = username.rsplit('_').next().and_then(|number| number.parse().ok()).unwrap_or(u64::MAX);
    (number, username.to_owned())
}
