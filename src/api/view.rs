//! The data that the API reads: the observed node's chain as of one head, and its pool.
//!
//! [`View`] observes one node. Each block that the node applies or reverts makes a new [`Head`], which is swapped in atomically. A
//! request takes one head and reads everything from it, so a page never mixes two chains and no reader ever stops the simulation. A
//! head's [`Chain`] indexes blocks and transactions, and its state has wallets and delegates. Both share the unchanged part with the
//! head before. Settled blocks are read from an [`Older`] part, if there is one.

mod chain;
mod entry;
mod lists;
mod memo;
mod neighbours;
mod older;
mod pending;
mod shelf;

pub(crate) use chain::{Block, Chain, ChainList, VisitedTransaction, stored_recipient};
pub(crate) use entry::{ConfirmedBlock, ConfirmedTransaction, Contents, Entry, Facts, Spot, Totals};
pub(crate) use neighbours::{Neighbours, VERSION, latency_ms};
pub(crate) use older::List;
pub use older::Older;
pub(crate) use pending::Pending;
pub use shelf::{Shelf, ShelfOpening};

use self::{lists::Lists, memo::Memo, older::readable};
use crate::{
    actors::{Event, NodeId, SimTime},
    ledger::{BlockTree, Link, State, state::Applied},
    protocol::{BlockId, Height, SignedTransaction, TransactionId},
    sim::{NetworkEvent, Observer, network::MessageNetwork},
};
use arc_swap::ArcSwap;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// The observed node as its API shows it. Cheap to clone; clones share everything.
#[derive(Clone)]
pub struct View(Arc<ObservedNode>);

struct ObservedNode {
    node: NodeId,
    tree: Arc<BlockTree>,
    head: ArcSwap<Head>,
    neighbours: Neighbours,
    /// The virtual instant of the last event or of a later clock reading [µs].
    now: AtomicU64,
}

/// One head of the chain, with the pool at that time.
#[derive(Clone)]
pub struct Head {
    tip: Arc<Link>,
    applied: Arc<Applied>,
    chain: Chain,
    /// The time of the chain's last change [Unix s]: the timestamp of its newest block, but always later than that of the head before.
    modified: i64,
    /// Sorted lists of wallets and delegates, computed on first use.
    lists: Arc<Lists>,
    /// Answers that were given on this chain.
    memo: Arc<Memo>,
    pending: Pending,
}

impl View {
    /// A view of a node that stands on `tip` at `now`, with its whole chain in memory.
    pub fn new(node: NodeId, tree: Arc<BlockTree>, tip: Arc<Link>, now: SimTime) -> Self {
        Self::with_older(node, tree, tip, now, None)
    }

    /// The same, which reads settled blocks from `older`.
    pub fn with_older(
        node: NodeId,
        tree: Arc<BlockTree>,
        tip: Arc<Link>,
        now: SimTime,
        older: Option<Arc<dyn Older>>,
    ) -> Self {
        let applied = tree.applied(&tip);
        let modified = unix(&tree, &applied);
        let chain = Chain::new(&tip, applied.state.network_byte(), older);
        let (lists, memo, pending) = (Arc::default(), Arc::default(), Pending::default());
        let head = Head { tip, applied, chain, modified, lists, memo, pending };
        Self(Arc::new(ObservedNode {
            node,
            tree,
            head: ArcSwap::from_pointee(head),
            neighbours: Neighbours::default(),
            now: AtomicU64::new(now.micros()),
        }))
    }

    /// The same view, which knows the network's nodes from the start. Otherwise it knows a node from that node's first block on.
    #[must_use]
    pub fn with_neighbours(self, nodes: impl IntoIterator<Item = NodeId>) -> Self {
        for node in nodes.into_iter().filter(|node| *node != self.0.node) {
            self.0.neighbours.saw(node, self.head().tip());
        }
        self
    }

    /// The same view with the round-trip times to the nodes that it knows.
    #[must_use]
    pub fn with_latencies(self, network: &MessageNetwork) -> Self {
        self.0.neighbours.measure(self.0.node, network);
        self
    }

    /// A copy of the view, which follows another run from here on. It leaves out everything that can be made again from the chain.
    #[must_use]
    pub fn apart(&self) -> Self {
        let head = Head { lists: Arc::default(), memo: Arc::default(), ..Head::clone(&self.head()) };
        Self(Arc::new(ObservedNode {
            node: self.0.node,
            tree: self.0.tree.clone(),
            head: ArcSwap::from_pointee(head),
            neighbours: self.0.neighbours.clone(),
            now: AtomicU64::new(self.now().micros()),
        }))
    }

    /// The node that is observed.
    pub fn node(&self) -> NodeId {
        self.0.node
    }

    /// The network's blocks.
    pub fn tree(&self) -> &Arc<BlockTree> {
        &self.0.tree
    }

    /// The newest head. An answer reads everything from one head.
    pub fn head(&self) -> Arc<Head> {
        self.0.head.load_full()
    }

    /// The head of a node that is `blocks` blocks behind, but not below the lowest block in memory. The transactions of these blocks
    /// are pending there.
    pub fn older(&self, blocks: u32) -> Arc<Head> {
        let newest = self.head();
        let lowest = newest.chain.base().0 + 1;
        let height = Height(newest.height().0.saturating_sub(blocks).max(lowest));
        let Some(tip) = newest.chain.at(height).map(|entry| entry.link().clone()) else { return newest };
        let mut older = Head::clone(&newest);
        for height in height.0 + 1..=newest.height().0 {
            if let Some(entry) = newest.chain.at(Height(height)) {
                older.pending.extend(&entry.link().block().transactions);
            }
        }
        let applied = self.0.tree.applied(&tip);
        older.stand_on(&tip, &applied, 0);
        older.modified = unix(&self.0.tree, &applied);
        older.memo = Arc::default();
        Arc::new(older)
    }

    /// The virtual instant of the network's last event or of a later clock reading.
    pub fn now(&self) -> SimTime {
        SimTime::from_micros(self.0.now.load(Ordering::Relaxed))
    }

    /// The place of a transaction on the head's chain.
    pub fn place(&self, head: &Head, id: &TransactionId) -> Option<ConfirmedTransaction> {
        let tree = &self.0.tree;
        if !tree.is_in_memory(id)
            && let Some((index, excerpt)) = tree.settled().and_then(|settled| readable(settled.excerpt_of(id)))
            && let Some(found) = head.chain.place_in(index, excerpt).filter(|found| found.transaction().id() == *id)
        {
            return Some(found);
        }
        let link = tree.block_of(&head.tip, id)?;
        let index = link.block().transactions.iter().position(|transaction| transaction.id() == *id)?;
        ConfirmedTransaction::of(&*head.chain.entry_of(link)?, index)
    }

    /// The block with an id, if it is on the head's chain.
    pub fn block(&self, head: &Head, id: &BlockId) -> Option<ConfirmedBlock> {
        let tree = &self.0.tree;
        if let Some(link) = tree.link_in_memory(id) {
            return head.chain.entry_of(link).map(|entry| ConfirmedBlock::of(&entry));
        }
        let height = readable(tree.settled()?.height_of(id))?;
        head.chain.block(height).filter(|block| block.id() == *id)
    }

    /// The other nodes.
    pub fn neighbours(&self) -> &Neighbours {
        &self.0.neighbours
    }

    fn update(&self, change: impl FnOnce(&mut Head)) {
        let mut head = Head::clone(&self.0.head.load());
        change(&mut head);
        self.0.head.store(Arc::new(head));
    }
}

impl Head {
    /// The newest block.
    pub fn tip(&self) -> &Arc<Link> {
        &self.tip
    }

    /// The height of the newest block.
    pub fn height(&self) -> Height {
        self.tip.height()
    }

    /// Wallets, delegates and rounds after the newest block.
    pub fn state(&self) -> &State {
        &self.applied.state
    }

    /// Its blocks and transactions.
    pub fn chain(&self) -> &Chain {
        &self.chain
    }

    /// The time of the chain's last change [Unix s].
    pub fn modified(&self) -> i64 {
        self.modified
    }

    /// Orders of wallets and delegates in that state.
    pub fn lists(&self) -> &Lists {
        &self.lists
    }

    /// Answers that were given on this chain.
    pub fn memo(&self) -> &Memo {
        &self.memo
    }

    /// The block at a height of this chain.
    pub fn block_at(&self, height: Height) -> Option<Arc<Entry>> {
        self.chain.at(height)
    }

    /// The pool.
    pub fn pending(&self) -> &Pending {
        &self.pending
    }

    fn stand_on(&mut self, tip: &Arc<Link>, applied: &Arc<Applied>, made: i64) {
        self.modified = made.max(self.modified + 1);
        self.tip = tip.clone();
        self.applied = applied.clone();
        self.chain.move_to(tip, applied.state.network_byte());
        self.chain.settle(tip);
        self.lists = Arc::default();
        self.memo = Arc::default();
    }
}

impl Observer for View {
    fn observe(&mut self, now: SimTime, node: NodeId, event: &Event) {
        self.0.now.store(now.micros(), Ordering::Relaxed);
        if node != self.0.node {
            if let Event::BlockApplied(tip) | Event::RolledBack { to: tip, .. } = event {
                self.0.neighbours.saw(node, tip);
            }
            return;
        }
        match event {
            Event::BlockApplied(link) => {
                let applied = self.0.tree.applied(link);
                self.update(|head| {
                    head.stand_on(link, &applied, unix(&self.0.tree, &applied));
                    // The pool reports the removal an instant later. So no page shows a transaction as both pending and confirmed.
                    for transaction in &link.block().transactions {
                        head.pending.remove(&transaction.id());
                    }
                });
            }
            Event::RolledBack { to, .. } => {
                let applied = self.0.tree.applied(to);
                self.update(|head| head.stand_on(to, &applied, unix(&self.0.tree, &applied)));
            }
            Event::PoolAdded(added) => self.update(|head| head.pending.extend(added)),
            Event::PoolRemoved(id) => self.update(|head| head.pending.remove(id)),
            Event::PoolExpired(transaction) | Event::PoolEvicted(transaction) | Event::PoolPurged(transaction) => {
                self.update(|head| head.pending.remove(&transaction.id()));
            }
            Event::PoolReplaced(pending) => self.update(|head| {
                head.pending = Pending::default();
                head.pending.extend(pending);
            }),
            Event::BlockForged(_)
            | Event::BlockReceived(_)
            | Event::BlockRefused(_)
            | Event::ForgingSuspended { .. }
            | Event::PoolRejected(_)
            | Event::BlockDisregarded(_)
            | Event::BlockReverted(_)
            | Event::HealthChecked { .. }
            | Event::PeerAdded(_)
            | Event::PeerRemoved(_)
            | Event::ForgerStarted { .. }
            | Event::ForgerFailed { .. } => {}
        }
    }

    /// The clock also moves without events, because readers see from the age of its block that a node's chain stands still.
    fn clock_at(&mut self, now: SimTime) {
        self.0.now.store(now.micros(), Ordering::Relaxed);
    }

    /// Follows the loss of a pool in a crash, and a node that a revert moved to another block.
    fn observe_network(&mut self, _: SimTime, event: &NetworkEvent<'_>) {
        match event {
            NetworkEvent::PoolLost { node } if *node == self.0.node => {
                self.update(|head| head.pending = Pending::default());
            }
            NetworkEvent::Moved { node, to, pending, .. } if *node == self.0.node => {
                let applied = self.0.tree.applied(to);
                self.update(|head| {
                    head.stand_on(to, &applied, unix(&self.0.tree, &applied));
                    if let Some(pending) = pending {
                        // The pool may not have processed the newest block yet.
                        let waits = |one: &&Arc<SignedTransaction>| self.0.tree.block_of(to, &one.id()).is_none();
                        let pending: Vec<_> = pending.iter().filter(waits).cloned().collect();
                        head.pending = Pending::default();
                        head.pending.extend(&pending);
                    }
                });
            }
            NetworkEvent::Moved { node, to, .. } => self.0.neighbours.saw(*node, to),
            _ => {}
        }
    }
}

/// The instant of a state's newest block [Unix s].
fn unix(tree: &BlockTree, applied: &Applied) -> i64 {
    tree.slots().unix(applied.state.timestamp())
}
