//! Compact blocks: a node that has most transactions of a block needs little of it.
//!
//! Two nodes with compact blocks send each other a block that was asked for in a form of a fixed size. Its receiver may lack some of the
//! transactions. It then asks its sender for them, which takes the latency of a message. No fault loses this question. The part that is
//! missing goes the way of any block. Source: SimBlock (docs/validation.md).

use crate::{
    actors::{Choices, NodeId},
    ledger::codec::{LoadError, Loader, Save, Saver},
    protocol::Block,
    sim::SeedTree,
};
use rand::{Rng, seq::SliceRandom};
use rand_xoshiro::SplitMix64;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Compact blocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Compact {
    /// The size of a compact block on the wire, in bytes.
    pub bytes: u32,
    /// The share of the nodes that have compact blocks, from 0 to 1. The seed says which.
    pub share: f64,
    /// The kinds of nodes. The seed deals them out.
    pub nodes: Vec<CompactNodes>,
}

/// Nodes that have as much of a block before it comes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompactNodes {
    /// The share of these among all nodes, from 0 to 1. All shares together are 1.
    pub share: f64,
    /// The chance that a node of this kind lacks a part of a block, from 0 to 1.
    pub lacks: f64,
    /// The parts of a block that a node of this kind sends to one that lacks some.
    pub missing: Vec<MissingShare>,
}

/// A missing part: its share of the block, from 0 to 1, and its weight among the others.
pub type MissingShare = (f64, u32);

/// The nodes that have compact blocks, and the kind of each node.
#[derive(Clone, Debug)]
pub(super) struct CompactRelay {
    compact: Compact,
    /// The nodes that have compact blocks.
    has: Vec<bool>,
    /// The index of each node's kind in `compact.nodes`.
    kinds: Vec<usize>,
    choices: Choices,
}

/// The name of the random numbers for the decisions about compact blocks.
const NAME: &str = "network/compact-blocks";

/// The decisions about a compact block that has come.
enum Draw {
    Lacks,
    Missing,
    Question,
}

impl CompactRelay {
    pub(super) fn new(nodes: u32, compact: &Compact, seeds: SeedTree) -> Self {
        let mut random = seeds.stream("network/compact");
        let mut has: Vec<bool> = (0..nodes).map(|node| f64::from(node) < f64::from(nodes) * compact.share).collect();
        has.shuffle(&mut random);
        let kind = |node: u32| {
            let mut sum = 0.0;
            let found = compact.nodes.iter().position(|kind| {
                sum += kind.share;
                f64::from(node) + 0.5 < f64::from(nodes) * sum
            });
            found.unwrap_or(compact.nodes.len() - 1)
        };
        let mut kinds: Vec<usize> = (0..nodes).map(kind).collect();
        kinds.shuffle(&mut random);
        Self { compact: compact.clone(), has, kinds, choices: seeds.choices(NAME) }
    }

    /// Draws the missing parts from other seeds from now on. The kinds of nodes stay.
    pub(super) fn draw_anew(&mut self, seeds: SeedTree) {
        self.choices = seeds.choices(NAME);
    }

    /// Appends what changes while a run goes on.
    pub(super) fn save(&self, out: &mut Saver) {
        self.choices.save(out);
    }

    /// Continues from the saved values of a network that began like this one.
    pub(super) fn go_on(&mut self, from: &mut Loader) -> Result<(), LoadError> {
        self.choices = Save::load(from)?;
        Ok(())
    }

    /// The size of a compact block, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.compact.bytes.into()
    }

    pub(super) fn are_both(&self, from: NodeId, to: NodeId) -> bool {
        [from, to].iter().all(|node| self.has[node.0 as usize])
    }

    /// The share of a block that the receiver of its compact form lacks, if it lacks some.
    pub(super) fn missing(&self, from: NodeId, to: NodeId, block: &Block) -> Option<f64> {
        let kind = |node: NodeId| &self.compact.nodes[self.kinds[node.0 as usize]];
        let draw = |what| self.draw(from, to, block, what).random::<f64>();
        if !self.are_both(from, to) || draw(Draw::Lacks) >= kind(to).lacks {
            return None;
        }
        let missing = &kind(from).missing;
        let total: f64 = missing.iter().map(|(_, weight)| f64::from(*weight)).sum();
        let mut rest = draw(Draw::Missing) * total;
        let found = missing.iter().find(|(_, weight)| {
            rest -= f64::from(*weight);
            rest < 0.0
        });
        found.or(missing.last()).map(|(share, _)| *share)
    }

    /// The random numbers for the latency of the request for the missing part.
    pub(super) fn question(&self, from: NodeId, to: NodeId, block: &Block) -> SplitMix64 {
        self.draw(from, to, block, Draw::Question)
    }

    fn draw(&self, from: NodeId, to: NodeId, block: &Block, what: Draw) -> SplitMix64 {
        let header = &block.header;
        self.choices.at(&[from.0, to.0, header.height.0, header.timestamp.0, what as u32].map(u64::from))
    }
}
