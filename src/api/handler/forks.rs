//! The blocks of all forks, and the slots of the round in force, across all nodes.

use crate::{
    api::{
        lab::board::BoardState,
        table::{
            Bound, Call, Member, Outcome, Parameter, Rule, Shape, both,
            shape::{BLOCK_ID, TEXT_OR_NULL},
        },
    },
    ledger::{Link, State, round::Round, state::Applied},
    protocol::{BlockId, Height, PublicKey, Slot, slots::Slots},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The number of heights below the winning tip that are shown if the request names no height.
const DEPTH: u32 = 50;
/// The largest number of blocks in an answer, and of heights below the highest block.
const BLOCKS_MAX: usize = 1_000;
/// The largest number of slots of a round in an answer. Older slots are left off.
const SLOTS_MAX: usize = 2_000;

/// The height at which the tree begins.
pub(crate) const FROM: &[Parameter] = &[both("from", Rule::Integer(Bound::Between(1, u32::MAX as i64)))];

const BLOCK: &[Member<BlockLine>] = &[
    Member::new("id", BLOCK_ID, |line, _| line.link.id().into()),
    Member::new("height", Shape::Integer, |line, _| line.link.height().into()),
    Member::new("previous", Shape::Either(&[BLOCK_ID, Shape::Null]), |line, _| {
        line.link.parent().map(|parent| parent.id()).into()
    }),
    Member::new("slot", Shape::Integer, |line, _| line.slot.0.into()),
    Member::new("time", Shape::Integer, |line, frame| frame.view.tree().slots().start(line.slot).into()),
    Member::new("forger", Shape::Text, |line, frame| name(frame.state(), &line.link.block().header.generator).into()),
    Member::new("transactions", Shape::Integer, |line, _| line.link.block().transactions.len().into()),
    Member::new("confirmed", Shape::Integer, |line, _| line.link.transactions().into()),
    Member::new("winning", Shape::Boolean, |line, _| line.is_winning.into()),
    Member::new("nodes", Shape::Integer, |line, _| line.nodes.into()),
];

/// A block of the tree.
struct BlockLine {
    link: Arc<Link>,
    slot: Slot,
    is_winning: bool,
    nodes: usize,
}

/// The members of a tree. `time` is in seconds since the network's epoch. `confirmed` counts the transactions of the chain up to and
/// including the block. `nodes` counts the nodes, live or down, whose tip is the block. `winning` marks the blocks of the chain that most
/// live nodes stand on, up to its end `tip`. So a block that has not reached most nodes yet is no branch.
pub(crate) const TREE: &[Member<Tree>] = &[
    Member::new("from", Shape::Integer, |tree, _| tree.from.into()),
    Member::new("tip", BLOCK_ID, |tree, _| tree.tip.id().into()),
    Member::new("height", Shape::Integer, |tree, _| tree.tip.height().into()),
    Member::by("blocks", Shape::List(&Shape::Table(&BLOCK)), |tree, frame, slot| {
        slot.rows(BLOCK, &tree.blocks, frame);
    }),
    Member::new("leftOff", Shape::Integer, |tree, _| tree.left_off.into()),
];

/// The tree of blocks from a height on.
pub(crate) struct Tree {
    from: Height,
    tip: Arc<Link>,
    blocks: Vec<BlockLine>,
    left_off: usize,
}

const SLOT: &[Member<Turn>] = &[
    Member::new("slot", Shape::Integer, |turn, _| turn.slot.0.into()),
    Member::new("time", Shape::Integer, |turn, frame| frame.view.tree().slots().start(turn.slot).into()),
    Member::new("owner", TEXT_OR_NULL, |turn, _| turn.owner.as_deref().into()),
    Member::new("state", Shape::Text, |turn, _| turn.state.into()),
    Member::new("height", Shape::Either(&[Shape::Integer, Shape::Null]), |turn, _| {
        turn.block.as_ref().map(|link| link.height()).into()
    }),
    Member::new("block", Shape::Either(&[BLOCK_ID, Shape::Null]), |turn, _| {
        turn.block.as_ref().map(|link| link.id()).into()
    }),
];

/// A round. `blocks` is the number of blocks that make it: one for each slot of each delegate's turn. `first` is its first height;
/// `slotNow` the slot of the clock; `leftOff` counts the older slots that are not shown. The slot of the genesis block has no owner.
pub(crate) const ROUND: &[Member<RoundNow>] = &[
    Member::new("round", Shape::Integer, |now, _| now.round().number().0.into()),
    Member::new("delegates", Shape::Integer, |now, _| now.round().position.delegates.into()),
    Member::new("blocks", Shape::Integer, |now, _| now.round().position.blocks().into()),
    Member::new("first", Shape::Integer, |now, _| now.round().position.first.into()),
    Member::new("tip", BLOCK_ID, |now, _| now.tip.id().into()),
    Member::new("height", Shape::Integer, |now, _| now.tip.height().into()),
    Member::new("slotSeconds", Shape::Integer, |_, frame| frame.view.tree().slots().blocktime().into()),
    Member::new("slotNow", Shape::Integer, |now, _| now.slot.0.into()),
    Member::new("leftOff", Shape::Integer, |now, _| now.left_off.into()),
    Member::by("slots", Shape::List(&Shape::Table(&SLOT)), |now, frame, slot| {
        slot.rows(SLOT, &now.turns[now.left_off..], frame);
    }),
];

/// The round in force.
pub(crate) struct RoundNow {
    tip: Arc<Link>,
    /// The state after the tip.
    applied: Arc<Applied>,
    slot: Slot,
    turns: Vec<Turn>,
    left_off: usize,
}

impl RoundNow {
    fn round(&self) -> &Round {
        self.applied.state.round()
    }
}

type Blocks = BTreeMap<(Height, BlockId), Arc<Link>>;

/// `GET /lab/tree?from=`.
pub(crate) fn tree(call: &Call<'_>) -> Outcome {
    Ok(call.show_row(TREE, &tree_of(call)))
}

/// The tree from the requested height on.
pub(crate) fn tree_of(call: &Call<'_>) -> Tree {
    let state = call.context.board.state();
    let winning = state.tips.leading().clone();
    let from = call.parameters.number("from").unwrap_or(winning.height().0.saturating_sub(DEPTH));
    let from = Height(from.max(1));
    let (blocks, left_off) = blocks(&state, from);
    let mut standing: BTreeMap<BlockId, usize> = BTreeMap::new();
    for tip in state.tips.all() {
        *standing.entry(tip.id()).or_default() += 1;
    }
    let slots = call.context.view.tree().slots();
    let line = |link: &Arc<Link>| BlockLine {
        slot: slots.slot(link.block().header.timestamp),
        is_winning: winning.descends_from(link),
        nodes: standing.get(&link.id()).copied().unwrap_or(0),
        link: link.clone(),
    };
    let blocks = blocks.values().map(line).collect();
    Tree { from, tip: winning.clone(), blocks, left_off }
}

/// The blocks from a height on, on the chains of all nodes and on branches that nodes have left. Returns also the number of blocks left
/// off, which are the lowest.
fn blocks(state: &BoardState, from: Height) -> (Blocks, usize) {
    let highest = state.tips.all().map(|tip| tip.height().0).max().unwrap_or_default();
    let from = from.max(Height(highest.saturating_sub(BLOCKS_MAX as u32)));
    let mut blocks: Blocks = state
        .left
        .iter()
        .rev()
        .take_while(|((height, _), _)| *height >= from)
        .map(|(key, link)| (*key, link.clone()))
        .collect();
    let mut walked = BTreeSet::new();
    for tip in state.tips.all() {
        let mut at = Some(tip.clone());
        while let Some(link) = at.filter(|link| link.height() >= from && walked.insert(link.id())) {
            at = link.parent();
            blocks.insert((link.height(), link.id()), link);
        }
    }
    let left_off = blocks.len().saturating_sub(BLOCKS_MAX);
    for _ in 0..left_off {
        blocks.pop_first();
    }
    (blocks, left_off)
}

/// The delegate's username, or its key if `state` does not know the delegate.
fn name(state: &State, key: &PublicKey) -> String {
    state.delegate_of(key).map_or_else(|| key.to_string(), |delegate| delegate.username.to_string())
}

/// `GET /lab/round`: at the end of the chain that most live nodes stand on.
pub(crate) async fn round(call: Call<'_>) -> Outcome {
    let round = round_of(&call).await;
    Ok(call.show_row(ROUND, &round))
}

/// The round at the end of the chain that most live nodes stand on.
pub(crate) async fn round_of(call: &Call<'_>) -> RoundNow {
    let now = call.context.live.now().await.map_or_else(|_| call.context.view.now(), |(now, _)| now);
    let state = call.context.board.state();
    let (tip, applied) = standing(call, state.tips.leading());
    let after = &applied.state;
    let slots = call.context.view.tree().slots();
    let (slot, round) = (slots.slot(now.seconds()), after.round());
    let mut turns = turns(&state, &tip, round, slots, slot);
    let left_off = turns.len().saturating_sub(SLOTS_MAX);
    for turn in &mut turns[left_off..] {
        let owner = match &turn.block {
            Some(link) if link.parent().is_none() => None,
            Some(link) => round.counted(turn.slot, &link.block().header.generator),
            None => round.owners(turn.slot).first().copied(),
        };
        turn.owner = owner.map(|place| name(after, &round.members[place].public_key));
        if turn.owner.is_none() && turn.block.is_none() {
            turn.state = "unowned";
        }
    }
    RoundNow { tip, applied, slot, turns, left_off }
}

/// The tip of the winning chain and the state after it. Deviating nodes have a block tree of their own: if the tip is theirs, the observed
/// node's tip replaces it.
fn standing(call: &Call<'_>, winning: &Arc<Link>) -> (Arc<Link>, Arc<Applied>) {
    let tree = call.context.view.tree();
    let tip = tree.link(&winning.id()).unwrap_or_else(|| call.head.tip().clone());
    let applied = tree.applied(&tip);
    (tip, applied)
}

/// A slot of a round.
struct Turn {
    slot: Slot,
    state: &'static str,
    block: Option<Arc<Link>>,
    owner: Option<String>,
}

/// The slots from the first of the round to the one in which its last block would be forged, if none was missed from now on.
fn turns(board: &BoardState, tip: &Arc<Link>, round: &Round, slots: Slots, now: Slot) -> Vec<Turn> {
    let slot_of = |link: &Arc<Link>| slots.slot(link.block().header.timestamp);
    let mut forged: BTreeMap<Slot, Arc<Link>> = BTreeMap::new();
    let mut at = Some(tip.clone());
    while let Some(link) = at.as_ref().filter(|link| link.height() >= round.position.first) {
        forged.insert(slot_of(link), link.clone());
        at = link.parent();
    }
    let first = at.map_or(Slot(0), |before| Slot(slot_of(&before).0 + 1));
    // Blocks of other branches in these slots: the branches may have fewer blocks, or begin a round before.
    let lowest = Height(round.position.first.0.saturating_sub(round.position.blocks()));
    let (others, _) = blocks(board, lowest);
    let elsewhere: BTreeMap<Slot, &Arc<Link>> = others.values().map(|link| (slot_of(link), link)).collect();
    let last = now.max(forged.keys().next_back().copied().unwrap_or(first));
    let turn = |slot: Slot| {
        let (state, block) = match (forged.get(&slot), elsewhere.get(&slot)) {
            (Some(link), _) => ("forged", Some(link.clone())),
            (None, Some(link)) => ("elsewhere", Some(Arc::clone(link))),
            (None, None) if slot < now => ("missed", None),
            (None, None) => (if slot == now { "running" } else { "coming" }, None),
        };
        Turn { slot, state, block, owner: None }
    };
    // After a long halt the round has more missed slots than an answer can show.
    let shown_from = first.max(Slot(last.0.saturating_sub(100_000)));
    let mut all: Vec<Turn> = (shown_from.0..=last.0).map(|slot| turn(Slot(slot))).collect();
    let is_owned = |turn: &Turn| round.owner(turn.slot).is_some();
    let is_running = all.last().is_some_and(|turn| turn.state == "running" && is_owned(turn));
    let mut wanting = (round.position.blocks() as usize).saturating_sub(forged.len() + usize::from(is_running));
    // A lottery may leave a million slots between two with an owner. Half of an answer stays for the slots up to the clock's.
    let most = wanting.max(SLOTS_MAX / 2);
    for slot in (last.0..u32::MAX).take(most).map(|before| Slot(before + 1)) {
        if wanting == 0 {
            break;
        }
        all.push(turn(slot));
        wanting -= usize::from(all.last().is_some_and(is_owned));
    }
    all
}
