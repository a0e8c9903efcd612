//! What the API reads: the observed node's chain as of one head, and its pool.
//!
//! [`View`] watches one node. Each block it applies makes a new [`Head`], swapped in atomically; a request takes one
//! head and reads everything from it, so a page is always of one chain and no reader ever stops the simulation.
//! Blocks are found through the chain's own links, wallets and delegates through its state, which are immutable; the
//! concurrent maps below only say *where* a transaction or a wallet's history lies, and what they say is held against
//! the head before it is believed.

use crate::{
    actors::{Event, NodeId, SimTime},
    ledger::{BlockTree, Link, State, state::Applied},
    protocol::{Address, Height, SignedTransaction, TransactionId},
    sim::Observer,
};
use arc_swap::ArcSwap;
use dashmap::DashMap;
use imbl::OrdMap;
use std::{
    cmp::Reverse,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// The observed node as its API shows it. Cheap to clone; clones share everything.
#[derive(Clone)]
pub struct View(Arc<Shared>);

struct Shared {
    node: NodeId,
    tree: Arc<BlockTree>,
    head: ArcSwap<Head>,
    /// Where each wallet appears, oldest first: as sender, recipient or payee. Source: api.md 4.2, recipientId.
    history: DashMap<Address, Vec<Place>>,
    /// The virtual instant of the last event seen [µs].
    now: AtomicU64,
}

/// One head with the pool beside it.
#[derive(Clone)]
pub struct Head {
    tip: Arc<Link>,
    applied: Arc<Applied>,
    /// Highest fee first, then first come.
    pending: OrdMap<(Reverse<u64>, u64), Arc<SignedTransaction>>,
    arrivals: u64,
}

/// A transaction on a chain: its block and its index in it, from 0.
#[derive(Clone, Debug)]
pub struct Place {
    pub link: Arc<Link>,
    pub index: usize,
}

impl Place {
    /// The transaction there.
    pub fn transaction(&self) -> &Arc<SignedTransaction> {
        &self.link.block().transactions[self.index]
    }
}

impl View {
    /// A view of a node that stands on the genesis block at `now`.
    pub fn new(node: NodeId, tree: Arc<BlockTree>, now: SimTime) -> Self {
        let tip = tree.genesis().clone();
        let applied = tree.applied(&tip);
        let head = Head { tip: tip.clone(), applied, pending: OrdMap::new(), arrivals: 0 };
        let head = ArcSwap::from_pointee(head);
        let now = AtomicU64::new(now.micros());
        let view = Self(Arc::new(Shared { node, tree, head, history: DashMap::new(), now }));
        view.enter(&tip);
        view
    }

    /// Who is observed.
    pub fn node(&self) -> NodeId {
        self.0.node
    }

    /// The network's blocks.
    pub fn tree(&self) -> &Arc<BlockTree> {
        &self.0.tree
    }

    /// The newest head; everything of one answer is read from one head.
    pub fn head(&self) -> Arc<Head> {
        self.0.head.load_full()
    }

    /// The virtual instant of the last event seen on the network.
    pub fn now(&self) -> SimTime {
        SimTime::from_micros(self.0.now.load(Ordering::Relaxed))
    }

    /// Where a transaction lies on the head's chain.
    pub fn place(&self, head: &Head, id: &TransactionId) -> Option<Place> {
        let link = self.0.tree.block_of(&head.tip, id)?;
        let index = link.block().transactions.iter().position(|transaction| transaction.id() == *id)?;
        Some(Place { link, index })
    }

    /// Transactions on the head's chain in which a wallet is sender, recipient or payee, newest first.
    pub fn history(&self, head: &Head, address: &Address) -> Vec<Place> {
        let Some(places) = self.0.history.get(address) else { return Vec::new() };
        places.iter().rev().filter(|place| head.tip.descends_from(&place.link)).cloned().collect()
    }

    fn enter(&self, link: &Arc<Link>) {
        for (index, transaction) in link.block().transactions.iter().enumerate() {
            let place = Place { link: link.clone(), index };
            let mut parties = crate::ledger::apply::recipients(transaction);
            parties.push(transaction.sender_address());
            parties.sort_unstable();
            parties.dedup();
            for party in parties {
                self.0.history.entry(party).or_default().push(place.clone());
            }
        }
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

    /// The block at a height of this chain.
    pub fn block_at(&self, height: Height) -> Option<Arc<Link>> {
        self.tip.ancestor(height)
    }

    /// The transaction with so many older ones on this chain (0 is the first of the genesis block).
    pub fn transaction_at(&self, number: u64) -> Option<Place> {
        if number >= self.tip.transactions() {
            return None;
        }
        // The lowest height up to which more than `number` transactions lie.
        let (mut low, mut high) = (Height::GENESIS.0, self.height().0);
        while low < high {
            let middle = low + (high - low) / 2;
            let count = self.block_at(Height(middle))?.transactions();
            if count > number { high = middle } else { low = middle + 1 }
        }
        let link = self.block_at(Height(low))?;
        let first = link.transactions() - link.block().transactions.len() as u64;
        Some(Place { index: (number - first) as usize, link })
    }

    /// Pending transactions in the order in which they would be forged.
    pub fn pending(&self) -> impl Iterator<Item = Arc<SignedTransaction>> {
        crate::actors::pool::in_forging_order(self.pending.values().cloned())
    }

    /// A pending transaction.
    pub fn pending_by_id(&self, id: &TransactionId) -> Option<&Arc<SignedTransaction>> {
        self.pending.values().find(|transaction| transaction.id() == *id)
    }

    fn remove_pending(&mut self, id: &TransactionId) {
        let key = self.pending.iter().find(|(_, transaction)| transaction.id() == *id).map(|(key, _)| *key);
        if let Some(key) = key {
            self.pending.remove(&key);
        }
    }
}

impl Observer for View {
    fn observe(&mut self, now: SimTime, node: NodeId, event: &Event) {
        self.0.now.store(now.micros(), Ordering::Relaxed);
        if node != self.0.node {
            return;
        }
        match event {
            Event::BlockApplied { link, applied } => {
                self.enter(link);
                self.update(|head| {
                    head.tip = link.clone();
                    head.applied = applied.clone();
                    // The pool says so too, an instant later; no page shows a transaction as both.
                    for transaction in &link.block().transactions {
                        head.remove_pending(&transaction.id());
                    }
                });
            }
            Event::PoolAdded(added) => self.update(|head| {
                for transaction in added {
                    let key = (Reverse(transaction.transaction().fee.value()), head.arrivals);
                    head.arrivals += 1;
                    head.pending.insert(key, transaction.clone());
                }
            }),
            Event::PoolRemoved(id) => self.update(|head| head.remove_pending(id)),
            Event::PoolExpired(transaction) => self.update(|head| head.remove_pending(&transaction.id())),
            Event::BlockForged(_)
            | Event::BlockReceived(_)
            | Event::BlockRefused(_)
            | Event::ForgingSuspended { .. }
            | Event::PoolRejected(_) => {}
        }
    }
}
