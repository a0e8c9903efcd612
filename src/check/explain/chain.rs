//! The chain of causes: what happened before, row by row, with what does not matter folded.
//!
//! 1. The slice: the steps in which the failure showed, and all steps that happened before them
//!    ([`super::record::Record::slice`]). A failure that concerns no single node shows in the last step of each node.
//! 2. Each event of a step in the slice is a row, or part of one: nodes that do the same with the same block share a row.
//! 3. The weight of a row is its effect on chains. Rollbacks, faults, blocks with a rival and refusals weigh most. Blocks
//!    that every node accepts weigh nothing.
//! 4. The heaviest rows are shown. The others between two of them become one row with the number of their steps and messages.
//!
//! ```text
//!   ground  what is known of the whole run      event  the row that an event makes, and what it weighs
//!   teller  steps into rows, in order           fold   the heaviest rows, and what lies between
//!   words   how ids, blocks and nodes are said
//! ```

mod event;
mod fold;
mod ground;
mod teller;
mod words;

use super::{Target, numbers::Number, record::Record};
use crate::{
    actors::{NodeId, SimTime},
    protocol::Height,
    sim::Plan,
};
use fold::fold;
use ground::Ground;
use serde::Serialize;
use std::collections::BTreeMap;
use teller::Teller;
pub(super) use words::shortened;

/// One thing that happened, or several that are folded.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    #[serde(rename = "at_us")]
    pub at: SimTime,
    pub after_seconds: f64,
    pub slot: u32,
    /// The kind as in a trace, such as `block.forged`; `folded` for folded rows, `failure` for the explained failure.
    pub kind: &'static str,
    /// The nodes that did it, ascending; none if it happened to the network.
    pub nodes: Vec<NodeId>,
    pub text: String,
    pub block: Option<BlockRef>,
    /// The messages that caused it, or that were lost.
    pub arrows: Vec<Arrow>,
    /// The changes that it made.
    pub changed: Vec<Change>,
    pub numbers: Vec<Number>,
    /// A character for each node after this row: the letter of its rival branch, `·` on the common chain, `x` if it is down.
    pub stands: String,
    /// The rows that this row summarises.
    pub folded: Option<FoldCounts>,
    #[serde(skip)]
    pub(super) weight: u8,
    /// Messages sent before it.
    #[serde(skip)]
    pub(super) messages: u64,
}

/// A block in a row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct BlockRef {
    pub id: String,
    pub height: Height,
    /// Its letter, where it has a rival: another block on the same parent.
    pub branch: Option<char>,
}

/// A message from one node to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Arrow {
    pub from: NodeId,
    pub to: NodeId,
    /// It never arrived.
    pub lost: bool,
}

/// A change that a step made at a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Change {
    pub node: NodeId,
    /// `block 123456… at 24`, `4 transactions`, and so on.
    pub from: String,
    pub to: String,
    /// Blocks that left its chain.
    pub reverted: u32,
}

/// Rows that are summarised in one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct FoldCounts {
    pub steps: u64,
    pub messages: u64,
    /// Blocks that were forged meanwhile.
    pub blocks: u64,
}

/// The chain of causes.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Chain {
    pub rows: Vec<Row>,
    /// The steps up to the failure, the steps of the slice, and the messages sent before the failure.
    pub steps: u64,
    pub steps_in_slice: u64,
    /// Steps of the beginning of a long run that are no longer recorded: no row shows them.
    pub steps_forgotten: u64,
    pub messages: u64,
    /// The numbers that decided in the end.
    pub numbers: Vec<Number>,
    /// Blocks with a rival on the same parent, by letter: block, forger's node, and the nodes that stand on it at the end.
    pub rivals: Vec<Rival>,
}

/// One of two or more blocks on one parent.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Rival {
    pub branch: char,
    pub id: String,
    pub height: Height,
    pub node: Option<NodeId>,
    pub slot: u32,
    /// Nodes whose chain goes through it when the failure shows.
    pub stand_on_it: Vec<NodeId>,
}

impl Chain {
    /// Makes the rows of a run under a plan, up to the failure; nothing is folded.
    pub(super) fn of(record: &Record, plan: &Plan, target: &Target) -> Self {
        let upto = record.steps.partition_point(|step| step.at <= target.at);
        let last: Vec<usize> = match target.node {
            Some(node) => record.steps[..upto].iter().rposition(|step| step.actor.node == node).into_iter().collect(),
            None => {
                let mut last: BTreeMap<NodeId, usize> = BTreeMap::new();
                last.extend((0..upto).map(|index| (record.steps[index].actor.node, index)));
                last.into_values().collect()
            }
        };
        let within = record.slice(last);
        let ground = Ground::of(record, upto, plan, target);
        let mut teller = Teller::new(record, plan, &ground);
        let mut happenings = record.network.iter().take_while(|one| one.at() <= target.at).peekable();
        for (step, within) in record.steps[..upto].iter().zip(&within) {
            while let Some(one) = happenings.next_if(|one| one.at() <= step.at) {
                teller.happening(one);
            }
            teller.step(step, *within);
        }
        happenings.for_each(|one| teller.happening(one));
        let rivals = teller.rivals(record, upto);
        let numbers = teller.decisive(target);
        Self {
            rows: teller.finish(target),
            steps: upto as u64,
            steps_in_slice: within[..upto].iter().filter(|within| **within).count() as u64,
            steps_forgotten: record.forgotten as u64,
            messages: record.steps[..upto].last().map_or(0, |step| step.messages),
            numbers,
            rivals,
        }
    }
    /// At most `rows_max` of the heaviest rows; the others are folded between them.
    pub(super) fn folded(&self, rows_max: usize) -> Vec<Row> {
        fold(self.rows.clone(), rows_max)
    }
}
