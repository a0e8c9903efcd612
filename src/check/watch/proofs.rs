//! The proofs of the cause of a rollback or of a refused block: the events of the node just before, and the blocks.

use super::{Certificate, Node, Observations};
#[cfg(feature = "cli")]
use crate::ledger::codec::{Save, Saver};
use crate::{
    actors::{NodeId, RollbackCause, SimTime},
    ledger::{ApplyError, BlockRejected, BlockTree, Link, rules::RollbackTarget},
    protocol::{Arktoshi, Asset, Block, BlockError, BlockId, Height, Kind, hashing::IdHash},
    sim::Tips,
};
use indexmap::IndexMap;
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

/// The largest number of abandoned tips in memory.
const LEFT: usize = 16;
/// The largest number of seen blocks in memory, beside those that a node accepted.
const HEARD: usize = 256;

/// The events of a node that prove causes.
#[derive(Clone, Default)]
pub(super) struct Facts {
    /// Tips that it left for another round or another reward, and when.
    left: VecDeque<(SimTime, Arc<Link>)>,
    /// When it last took in a block.
    taken: Option<SimTime>,
    /// Its last health check: when, its peers, and those of them on other chains.
    health: Option<(SimTime, u32, u32)>,
}

impl Facts {
    /// Records a block that the node applied on top of `before`.
    pub(super) fn takes(&mut self, now: SimTime, tree: &BlockTree, before: &Arc<Link>, link: &Arc<Link>) {
        self.taken = Some(now);
        if link.round_end().is_some() || reward_above(tree, before) != reward_above(tree, link) {
            self.leaves(now, before);
        }
    }

    /// Records a tip that the node left.
    pub(super) fn leaves(&mut self, now: SimTime, tip: &Arc<Link>) {
        if self.left.len() == LEFT {
            self.left.pop_front();
        }
        self.left.push_back((now, tip.clone()));
    }

    /// Appends the memory that can decide later findings. A tip that was left longer than a slot ago proves nothing any more.
    #[cfg(feature = "cli")]
    pub(super) fn mark(&self, now: SimTime, slot: Duration, out: &mut Saver) {
        // The accepted blocks and the health of a node are used in the same instant only.
        let Self { left, taken: _, health: _ } = self;
        let left: Vec<_> = left.iter().filter(|(at, _)| now.since(*at) <= slot).cloned().collect();
        left.save(out);
    }

    /// Records the result of a health check.
    pub(super) fn checks(&mut self, now: SimTime, peers: u32, forked: u32) {
        self.health = Some((now, peers, forked));
    }
}

/// The reward of a block on top of a tip. Source: consensus.md 1.2.
fn reward_above(tree: &BlockTree, tip: &Link) -> Arktoshi {
    tree.config().milestones.at(tip.height().next()).reward
}

/// The blocks of a run: all that a node accepted, and the last ones that came to a node.
#[derive(Clone, Default)]
pub(super) struct Heard {
    taken: BTreeMap<Height, Vec<Arc<Link>>>,
    came: IndexMap<BlockId, Arc<Block>, IdHash>,
}

impl Heard {
    /// Records an accepted block that no node had before.
    pub(super) fn takes(&mut self, link: &Arc<Link>) {
        self.taken.entry(link.height()).or_default().push(link.clone());
    }

    /// Records a block that came to a node.
    pub(super) fn hears(&mut self, block: &Arc<Block>) {
        if self.came.len() >= HEARD && !self.came.contains_key(&block.id) {
            self.came.shift_remove_index(0);
        }
        self.came.insert(block.id, block.clone());
    }

    /// Appends the blocks. Once there are many, their order of arrival decides which are forgotten.
    #[cfg(feature = "cli")]
    pub(super) fn mark(&self, out: &mut Saver) {
        let Self { taken, came } = self;
        taken.save(out);
        let mut came: Vec<BlockId> = came.keys().copied().collect();
        if came.len() < HEARD / 2 {
            came.sort_unstable();
        }
        came.save(out);
    }

    /// The block of an id, if it came to a node lately.
    pub(super) fn block(&self, id: &BlockId) -> Option<&Arc<Block>> {
        self.came.get(id)
    }

    fn at(&self, height: Height) -> impl Iterator<Item = &Arc<Link>> {
        self.taken.get(&height).into_iter().flatten()
    }

    /// All blocks at a height, also those that no node accepted.
    fn blocks_at(&self, height: Height) -> impl Iterator<Item = &Arc<Block>> {
        let came = self.came.values().filter(move |block| block.header.height == height);
        self.at(height).map(|link| link.block()).chain(came)
    }
}

impl Observations {
    /// The proof of the cause of a rollback.
    pub(super) fn rollback_proof(
        &self,
        now: SimTime,
        node: NodeId,
        from: &Arc<Link>,
        to: &Arc<Link>,
        why: RollbackCause,
    ) -> Certificate {
        let facts = &self.nodes[node.0 as usize].facts;
        let downloads = || match facts.taken == Some(now) {
            true => Ok(()),
            false => Err(format!("{node} takes in no block of a download before its rollback")),
        };
        let double_forging = || {
            downloads()?;
            let (rival, depth) = (self.rival_of(from)?, self.drawn_depth(node, from, to)?);
            Ok(format!("{node} hears of {rival}, and {depth}"))
        };
        match why {
            RollbackCause::DoubleForging => Certificate::from(double_forging()),
            RollbackCause::Forked => self.health_proof(now, node, from, to).into(),
            RollbackCause::NeverReady | RollbackCause::Stronger | RollbackCause::Asked => Certificate::None,
        }
    }

    /// Returns the block that justifies a rollback for double forging. Source: consensus.md 3.6.
    fn rival_of(&self, from: &Arc<Link>) -> Result<String, String> {
        let (slots, applied) = (self.tree.slots(), self.tree.applied(from));
        let is_rival = |block: &&Arc<Block>| {
            let header = &block.header;
            block.id != from.id()
                && header.timestamp >= from.block().header.timestamp
                && applied.state.round().owns(slots.slot(header.timestamp), &header.generator)
                && !self.tree.chains(from, block)
        };
        let rival = [from.height(), from.height().next()]
            .into_iter()
            .find_map(|height| self.heard.blocks_at(height).find(is_rival));
        let (id, height) = (from.id(), from.height());
        match rival {
            Some(rival) => Ok(format!(
                "block {} at height {}, by the owner of its slot, that does not follow {id} at height {height}",
                rival.id, rival.header.height
            )),
            None => Err(format!("no block by the owner of its slot competes with {id} at height {height}")),
        }
    }

    /// Returns the largest number of blocks that a rollback may revert.
    fn deepest(&self, from: &Link) -> u32 {
        let above_genesis = from.height().0.saturating_sub(Height::GENESIS.0);
        self.tree.rules().node.rollback_max.min(above_genesis)
    }

    /// Returns the proof that the rules may draw the depth of a rollback. Source: consensus.md 3.5.
    fn drawn_depth(&self, node: NodeId, from: &Link, to: &Link) -> Result<String, String> {
        let (rules, depth) = (&self.tree.rules().node, from.height().0 - to.height().0);
        let (least, most) = (rules.random_rollback_min, rules.random_rollback_max.max(rules.random_rollback_min));
        let deepest = self.deepest(from);
        match (least.min(deepest)..=most.min(deepest)).contains(&depth) {
            true => Ok(format!("leaves {depth} blocks of {least} to {most}")),
            false => Err(format!("{node} leaves {depth} blocks, {least} to {most} may be drawn")),
        }
    }

    /// Returns the proof that a health check found the node forked, and that the rollback ends where it should. Source:
    /// consensus.md 3.5, 8 Q17.
    fn health_proof(&self, now: SimTime, node: NodeId, from: &Arc<Link>, to: &Arc<Link>) -> Result<String, String> {
        let rules = &self.tree.rules().node;
        if !self.tree.rules().is_of_the_reference() {
            return Err("no proof is known for the fork choice of these rules".to_owned());
        }
        let Some((_, peers, forked)) = self.nodes[node.0 as usize].facts.health.filter(|(at, ..)| *at == now) else {
            return Err(format!("{node} makes no health check before its rollback"));
        };
        if peers == 0 || 100 * forked < rules.forked_percent * peers {
            let needed = rules.forked_percent;
            return Err(format!("{forked} of {peers} peers of {node} are on other chains, {needed} % are needed"));
        }
        let found = format!("{forked} of {peers} peers of {node} are on other chains");
        let own = from.ancestor(to.height().next());
        let parts = |link: &&Arc<Link>| {
            let follows = link.parent().is_some_and(|parent| parent.is(to));
            follows && own.as_ref().is_none_or(|own| !own.is(link))
        };
        if let Some(other) = self.heard.at(to.height().next()).find(parts) {
            return Ok(format!("{found}, and block {} parts from its chain at height {}", other.id(), to.height()));
        }
        let ends_here = |tips: &Tips| tips.of_live().any(|(other, tip)| other != node && tip.is(to));
        if rules.rollback_target == RollbackTarget::FirstPeer && ends_here(&self.tips) {
            return Ok(format!("{found}, and a peer stands at height {} of its chain", to.height()));
        }
        match rules.zero_rollback_is_random {
            true => self.drawn_depth(node, from, to).map(|depth| format!("{found}, and it {depth}")),
            false => Err(format!("no other chain parts from that of {node} at height {}", to.height())),
        }
    }

    /// The proof of the rule by which a relay refused its own delegate's block.
    pub(super) fn refusal_proof(
        &self,
        now: SimTime,
        node: &Node,
        block: &Block,
        why: &BlockRejected,
    ) -> Result<String, String> {
        let rules = &self.tree.rules().pool;
        match why {
            BlockRejected::WrongForger { slot, .. } => {
                let owned = |tip: &Arc<Link>| self.tree.applied(tip).state.round().owns(*slot, &block.header.generator);
                let tip = self.left_lately(now, node).find(|tip| owned(tip));
                let tip = tip.ok_or("the slot was the forger's in no round that the node left in the slot before")?;
                Ok(format!("slot {slot} was the forger's in the round of height {}, which the node left", tip.height()))
            }
            BlockRejected::NotVerified { errors, .. } => {
                let [BlockError::Reward { found, .. }] = errors[..] else {
                    return Err("the block is wrong in more than its reward".to_owned());
                };
                let tip = self.left_lately(now, node).find(|tip| reward_above(&self.tree, tip) == found);
                let tip = tip.ok_or("no tip that the node left in the slot before gives that reward")?;
                Ok(format!("above height {}, which the node left, a block has reward {found}", tip.height()))
            }
            BlockRejected::NotApplicable { source: ApplyError::NotEnoughDelegates, .. }
                if rules.resignations_counted_on_chain && resigns(block) > 1 =>
            {
                Ok(format!("the block holds {} resignations", resigns(block)))
            }
            BlockRejected::NotApplicable { source: ApplyError::IpfsHashAlreadyExists, .. }
                if rules.ipfs_hashes_seen_of_delegates && self.holds_registered(node, block) =>
            {
                Ok("the block holds a hash that is registered".to_owned())
            }
            BlockRejected::TooFewDelegates { height, expected, found, .. } => {
                self.too_few(node, block, *height, (*expected, *found))
            }
            _ => Err("the node's events show no reason that is known".to_owned()),
        }
    }

    /// Returns true if the block contains a hash that its chain has registered, or one hash twice.
    fn holds_registered(&self, node: &Node, block: &Block) -> bool {
        let (applied, mut own) = (self.tree.applied(&node.tip), BTreeSet::new());
        block.transactions.iter().any(|one| match one.asset() {
            Asset::Ipfs { multihash } => applied.state.has_ipfs(multihash) || !own.insert(multihash),
            _ => false,
        })
    }

    /// Tips that a node left within the slot before, the last one first.
    pub(super) fn left_lately<'a>(&self, now: SimTime, node: &'a Node) -> impl Iterator<Item = &'a Arc<Link>> {
        let slot = Duration::from_secs(self.tree.slots().blocktime().into());
        node.facts.left.iter().rev().filter(move |(at, _)| now.since(*at) <= slot).map(|(_, tip)| tip)
    }

    /// Returns the proof that the block ends a round after which too few delegates are left. The last block with resignations,
    /// this one or one below it, respects the milestone that was in force there.
    fn too_few(
        &self,
        node: &Node,
        block: &Block,
        height: Height,
        (expected, found): (usize, usize),
    ) -> Result<String, String> {
        let schedule = self.tree.schedule();
        let delegates = |height: Height| schedule.at(height).delegates as usize;
        let left = |parent: &Arc<Link>, block: &Block| {
            let registered = block.transactions.iter().filter(|one| one.kind() == Kind::DelegateRegistration).count();
            (self.tree.applied(parent).state.live_delegates() + registered).saturating_sub(resigns(block))
        };
        let (mut parent, mut at) = (node.tip.clone(), None::<Arc<Link>>);
        while resigns(at.as_ref().map_or(block, |link| link.block())) == 0 {
            let below = parent.parent().ok_or("no block of the chain holds a resignation")?;
            (parent, at) = (below, Some(parent));
        }
        let (then, needed) =
            (left(&parent, at.as_ref().map_or(block, |link| link.block())), delegates(parent.height()));
        let (now, next) = (left(&node.tip, block), delegates(height.next()));
        let words = format!(
            "the last resignation leaves {then} delegates above height {}, where {needed} are needed; after height {height} \
             {now} are left, and {next} are needed",
            parent.height()
        );
        let is_so = schedule.begins(height.next()) && expected == next && found == now && needed <= then && now < next;
        if is_so { Ok(words) } else { Err(words) }
    }
}

fn resigns(block: &Block) -> usize {
    block.transactions.iter().filter(|one| one.kind() == Kind::DelegateResignation).count()
}
