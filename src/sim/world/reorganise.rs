//! Requested reorganisations: nodes leave the end of a chain for another branch, which their delegates sign.
//!
//! 1. The branch begins at the block `depth` blocks below the observed node's tip.
//! 2. For each reverted block the owner of its slot, by the rounds of the new branch, forges another one: in that slot,
//!    without transactions, if its node goes along (5) and no fault has switched it off. Other slots stay empty.
//! 3. Each names the second after that of the block it replaces, so that none is the same. Nothing depends on which blocks
//!    the tree has seen: the same chain is left for the same branch.
//! 4. The tree verifies and applies each block like any other.
//! 5. Every live node that the observed one can reach, and whose chain goes through the common block, leaves its chain for
//!    the branch (`actors/peer/fork.rs`), and its pool follows (`actors/pool/follow.rs`). All other nodes stay as they are.

use super::{Item, World};
use crate::{
    actors::{ActorId, Event, Input, NodeId, Role, Stimulus, message::Reorganisation},
    ledger::{BlockRejected, Link, codec::saved},
    protocol::{Block, BlockDraft, Height, KeyPair, PublicKey, RoundNumber, Slot, Timestamp, TransactionId},
    sim::{
        intervention::{ReorgError, ReorgRequest, ReorgResult, ReturnedTransactions, RevertedFate},
        tips::common_height,
    },
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The transactions in one node's pool while its chain is reorganised.
#[derive(Clone)]
pub(super) struct PoolWatch {
    node: NodeId,
    pending: BTreeSet<TransactionId>,
}

impl PoolWatch {
    fn follow(&mut self, event: &Event) {
        match event {
            Event::PoolReplaced(all) => self.pending = all.iter().map(|one| one.id()).collect(),
            Event::PoolAdded(added) => self.pending.extend(added.iter().map(|one| one.id())),
            Event::PoolRemoved(id) => drop(self.pending.remove(id)),
            Event::PoolExpired(one) | Event::PoolEvicted(one) | Event::PoolPurged(one) => {
                self.pending.remove(&one.id());
            }
            _ => {}
        }
    }
}

impl World {
    /// Builds the branch and moves the nodes to it. The outcome of the transactions is known once all of this instant was played
    /// ([`World::reorganised`]).
    ///
    /// # Errors
    /// The reorganisation is impossible, and nothing has changed.
    pub(in crate::sim) fn reorganise(&mut self, asked: &ReorgRequest) -> Result<ReorgResult, ReorgError> {
        let (from, common) = self.check_reorganisation(asked)?;
        let reverted = between(&from, &common);
        let transactions = decided(&reverted, &asked.transactions)?;
        let goes_along =
            |node: &NodeId| self.is_within_reach(asked.node, *node) && self.nodes.tip(*node).descends_from(&common);
        let all = (0..self.plan.nodes.len() as u32).map(NodeId);
        let (moved, left): (Vec<NodeId>, Vec<NodeId>) = all.partition(goes_along);
        let branch = self.branch(&moved, &common, &reverted)?;
        let to = branch.last().map(|(_, link)| link.clone()).ok_or(ReorgError::NobodyForges)?;
        for (owner, link) in &branch {
            self.observe(*owner, &Event::BlockForged(link.block().clone()));
        }
        if reverted.last().is_some_and(|first| self.nodes.best().descends_from(first)) {
            self.nodes.go_back_to(&to);
        }
        let dropped =
            transactions.iter().filter(|(_, became)| *became == RevertedFate::Dropped).map(|(id, _)| *id).collect();
        let what = Arc::new(Reorganisation { common: common.clone(), tip: to.clone(), dropped });
        for node in &moved {
            let to = ActorId { node: *node, role: Role::Peer };
            let stimulus = Stimulus::Input(Input::Reorganise(what.clone()));
            self.queue.push(self.now, Item::Stimulus { to, stimulus });
        }
        self.pool_watch = Some(PoolWatch { node: asked.node, pending: BTreeSet::new() });
        Ok(ReorgResult {
            node: asked.node,
            from,
            to,
            common,
            reverted,
            blocks: branch.into_iter().map(|(_, link)| link).collect(),
            transactions,
            moved,
            left,
        })
    }

    /// Completes the result: transactions that the observed node's pool has not taken back become refused.
    pub(in crate::sim) fn reorganised(&mut self, mut what: ReorgResult) -> ReorgResult {
        let pending = self.pool_watch.take().map(|watch| watch.pending).unwrap_or_default();
        for (id, became) in &mut what.transactions {
            if *became == RevertedFate::Returned && !pending.contains(id) {
                *became = RevertedFate::Refused;
            }
        }
        what
    }

    /// Updates the watched pool by an event of its node.
    pub(super) fn watch_pool(&mut self, node: NodeId, event: &Event) {
        if let Some(watch) = self.pool_watch.as_mut().filter(|watch| watch.node == node) {
            watch.follow(event);
        }
    }

    /// Checks the request. Returns the observed node's tip and the block to go back to.
    fn check_reorganisation(&self, asked: &ReorgRequest) -> Result<(Arc<Link>, Arc<Link>), ReorgError> {
        let (node, nodes) = (asked.node, self.plan.nodes.len());
        if node.0 as usize >= nodes {
            return Err(ReorgError::NoNode { node, nodes });
        }
        if !self.nodes.is_live(node) {
            return Err(ReorgError::Down(node));
        }
        if !self.nodes.is_prompt(node) {
            return Err(ReorgError::Slow(node));
        }
        let from = self.nodes.tip(node).clone();
        let (found, limit) = (asked.depth, self.plan.tree.rules().node.rollback_max);
        // Each reorganisation makes a chain shorter. Blocks deeper than the largest rollback below the highest block so far may have
        // settled.
        let (height, highest) = (from.height(), self.nodes.highest());
        let last_final = self.last_final_below(node, &from);
        let deepest = height.0.saturating_sub(highest.0.saturating_sub(limit).max(last_final.0));
        if found == 0 || found > deepest {
            return Err(ReorgError::Depth { found, deepest, limit, height, highest, last_final });
        }
        let common = from.ancestor(Height(height.0 - found)).expect("it is no lower than genesis");
        Ok((from.clone(), common.clone()))
    }

    /// The lowest block of a node's chain that the reorganisation may go back to: no node that goes along leaves a block that is final
    /// for it.
    fn last_final_below(&self, of: NodeId, from: &Arc<Link>) -> Height {
        let nodes = (0..self.plan.nodes.len() as u32).map(NodeId).filter(|node| self.is_within_reach(of, *node));
        let lowest = nodes.map(|node| {
            let tip = self.nodes.tip(node);
            let (shared, last_final) =
                (common_height(from, tip), self.plan.tree.applied(tip).state.finality().height());
            // A block of its own branch that is final keeps a node there.
            if last_final > shared { shared.next().min(from.height()) } else { last_final }
        });
        lowest.max().unwrap_or(Height::GENESIS)
    }

    /// Returns true if a node is live and neither of two nodes is cut off from the other.
    fn is_within_reach(&self, of: NodeId, node: NodeId) -> bool {
        let interference = &self.network.interference;
        self.nodes.is_live(node) && !interference.separates(of, node) && !interference.separates(node, of)
    }

    /// The blocks of the branch, the lowest first, each with the node whose delegate signs it.
    fn branch(
        &self,
        moved: &[NodeId],
        common: &Arc<Link>,
        reverted: &[Arc<Link>],
    ) -> Result<Vec<(NodeId, Arc<Link>)>, ReorgError> {
        let tree = &self.plan.tree;
        let keys = |node: &NodeId| self.plan.nodes[node.0 as usize].forger.as_ref().map(|keys| (*node, keys));
        let forgers: BTreeMap<PublicKey, (NodeId, &KeyPair)> =
            moved.iter().filter_map(keys).map(|(node, keys)| (*keys.public(), (node, keys))).collect();
        let (mut tip, mut branch) = (common.clone(), Vec::with_capacity(reverted.len()));
        for old in reverted.iter().rev() {
            let slot = tree.slots().slot(old.block().header.timestamp);
            let round = tree.applied(&tip).state.round().clone();
            let owner = round.owners(slot).into_iter().find_map(|owner| forgers.get(&round.members[owner].public_key));
            let Some((node, keys)) = owner.filter(|(node, _)| !self.is_off(*node, round.number())) else { continue };
            let block = Arc::new(self.other_block(&tip, slot, keys, old.block()));
            if block.id == old.id() {
                // A slot of one second has no other block.
                continue;
            }
            let refused = |why: BlockRejected| ReorgError::Unbuildable { height: block.header.height, why: why.into() };
            tip = tree.extend(&tip, &block).map_err(refused)?;
            branch.push((*node, tip.clone()));
        }
        Ok(branch)
    }

    /// Returns true if a fault keeps a node's delegate from forging in a round.
    fn is_off(&self, node: NodeId, round: RoundNumber) -> bool {
        self.faults.is_off_in(node, round)
    }

    /// A block without transactions in the second after the old one's, or, after the last of the slot, in its first.
    fn other_block(&self, tip: &Arc<Link>, slot: Slot, keys: &KeyPair, old: &Block) -> Block {
        let (slots, milestones) = (self.plan.tree.slots(), &self.plan.tree.config().milestones);
        let (height, start) = (tip.height().next(), slots.start(slot));
        let second = (old.header.timestamp.0.saturating_sub(start.0) + 1) % slots.blocktime();
        let draft = BlockDraft {
            version: milestones.at(height).block.version,
            timestamp: Timestamp(start.0.saturating_add(second)),
            height,
            previous: Some(tip.id()),
            reward: milestones.at(height).reward,
            transactions: Vec::new(),
        };
        // Its forger has already forged at this height, so the new block votes for nothing.
        let said = if self.plan.tree.rules().ledger.finality.asks_forgers() { old.header.height } else { Height(0) };
        Block::forge_after(draft, said, keys, milestones)
    }
}

/// The blocks above another one, the highest first.
fn between(tip: &Arc<Link>, common: &Link) -> Vec<Arc<Link>> {
    let above = |link: &Arc<Link>| link.height() > common.height();
    std::iter::successors(Some(tip.clone()), |link| link.parent()).take_while(above).collect()
}

/// Decides the outcome of each reverted transaction, in the order of the reverted chain.
fn decided(
    reverted: &[Arc<Link>],
    wanted: &ReturnedTransactions,
) -> Result<Vec<(TransactionId, RevertedFate)>, ReorgError> {
    let blocks = reverted.iter().rev().map(|link| link.block());
    let ids: Vec<TransactionId> = blocks.flat_map(|block| block.transactions.iter().map(|one| one.id())).collect();
    if let ReturnedTransactions::These(wanted) = wanted {
        let known: BTreeSet<&TransactionId> = ids.iter().collect();
        if let Some(id) = wanted.iter().find(|id| !known.contains(id)) {
            return Err(ReorgError::NotReverted { id: *id, blocks: reverted.len(), transactions: ids.len() });
        }
    }
    let returns = |id: &TransactionId| match wanted {
        ReturnedTransactions::All => true,
        ReturnedTransactions::None => false,
        ReturnedTransactions::These(wanted) => wanted.contains(id),
    };
    Ok(ids
        .into_iter()
        .map(|id| (id, if returns(&id) { RevertedFate::Returned } else { RevertedFate::Dropped }))
        .collect())
}

saved!(struct PoolWatch { node, pending });
