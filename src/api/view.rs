//! What the API reads: the observed node's chain as of one head, and its pool.
//!
//! [`View`] watches one node. Each block it applies makes a new [`Head`], swapped in atomically; a request takes one
//! head and reads everything from it, so a page is always of one chain and no reader ever stops the simulation.
//! Blocks are found through the chain's own links, wallets and delegates through its state, which are immutable; the
//! concurrent maps below only say *where* a transaction or a wallet's history lies, and what they say is held against
//! the head before it is believed.

mod neighbours;
mod pending;

pub use neighbours::Neighbours;

use super::lists::Lists;
use crate::{
    actors::{Event, NodeId, SimTime},
    ledger::{BlockTree, Link, State, state::Applied},
    protocol::{Address, Asset, Height, PublicKey, SignedTransaction, TransactionId, transaction::Version},
    sim::{Observer, network::Network},
};
use arc_swap::ArcSwap;
use dashmap::DashMap;
use pending::Pending;
use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
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
    /// The blocks of each generator, on every fork, oldest first.
    forged: DashMap<PublicKey, Vec<Arc<Link>>>,
    /// The claims and refunds of each lock, on every fork.
    unlocks: DashMap<TransactionId, Vec<Place>>,
    /// The greatest height entered above: a block over it was never entered before.
    entered: AtomicU32,
    /// Whether a transaction above genesis has a timestamp of its own, so that time and place may order differently.
    own_timestamps: AtomicBool,
    neighbours: Neighbours,
    /// The virtual instant of the last event seen [µs].
    now: AtomicU64,
}

/// One head with the pool beside it.
#[derive(Clone)]
pub struct Head {
    tip: Arc<Link>,
    applied: Arc<Applied>,
    /// Since when this is the chain [Unix s]: when its newest block was made, but always later than the head before.
    modified: i64,
    /// Orders of wallets and delegates, made when first asked for.
    lists: Arc<Lists>,
    pending: Pending,
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
    /// A view of a node that stands on `tip` at `now`.
    pub fn new(node: NodeId, tree: Arc<BlockTree>, tip: Arc<Link>, now: SimTime) -> Self {
        let applied = tree.applied(&tip);
        let modified = unix(&tree, &applied);
        let (lists, pending) = (Arc::default(), Pending::default());
        let head = Head { tip: tip.clone(), applied, modified, lists, pending };
        let view = Self(Arc::new(Shared {
            node,
            tree,
            head: ArcSwap::from_pointee(head),
            history: DashMap::new(),
            forged: DashMap::new(),
            unlocks: DashMap::new(),
            entered: AtomicU32::new(0),
            own_timestamps: AtomicBool::new(false),
            neighbours: Neighbours::default(),
            now: AtomicU64::new(now.micros()),
        }));
        for height in Height::GENESIS.0..=tip.height().0 {
            view.enter(&tip.ancestor(Height(height)).expect("the height is on the tip's chain"));
        }
        view
    }

    /// The same view, which knows from the start who else is on the network. Without, a node is known from its first
    /// block on.
    #[must_use]
    pub fn with_neighbours(self, nodes: impl IntoIterator<Item = NodeId>) -> Self {
        for node in nodes.into_iter().filter(|node| *node != self.0.node) {
            self.0.neighbours.saw(node, self.head().tip());
        }
        self
    }

    /// The same view, which knows how far away the nodes it knows are.
    #[must_use]
    pub fn with_latencies(self, network: &Network) -> Self {
        self.0.neighbours.measure(self.0.node, network);
        self
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

    /// The claim or refund of a lock on the head's chain.
    pub fn unlock(&self, head: &Head, lock: &TransactionId) -> Option<Place> {
        self.0.unlocks.get(lock)?.iter().find(|place| head.tip.descends_from(&place.link)).cloned()
    }

    /// Blocks of the head's chain by a generator, newest first.
    pub fn forged_by(&self, head: &Head, generator: &PublicKey) -> Vec<Arc<Link>> {
        let Some(links) = self.0.forged.get(generator) else { return Vec::new() };
        links.iter().rev().filter(|link| head.tip.descends_from(link)).cloned().collect()
    }

    /// How many transactions a sender has on the chain up to and with this one, which is its nonce in version 1.
    pub fn running_number(&self, place: &Place) -> u64 {
        let sender = place.transaction().sender_address();
        let Some(places) = self.0.history.get(&sender) else { return 0 };
        let until = (place.link.height(), place.index);
        // Those of other forks lie between, so that heights need not ascend.
        let sent = places
            .iter()
            .filter(|other| (other.link.height(), other.index) <= until)
            .filter(|other| other.transaction().sender_address() == sender && place.link.descends_from(&other.link));
        sent.count() as u64
    }

    /// Whether the order of the chain is the order of time for all transactions.
    pub fn chain_order_is_time_order(&self) -> bool {
        !self.0.own_timestamps.load(Ordering::Relaxed)
    }

    /// The other nodes.
    pub fn neighbours(&self) -> &Neighbours {
        &self.0.neighbours
    }

    /// Says where the transactions of a block lie. A block that comes back after a fork is entered once only.
    fn enter(&self, link: &Arc<Link>) {
        let height = link.height();
        let is_new = self.0.entered.fetch_max(height.0, Ordering::Relaxed) < height.0;
        let mut forged = self.0.forged.entry(link.block().header.generator).or_default();
        if !is_new && forged.iter().rev().any(|known| known.id() == link.id()) {
            return;
        }
        forged.push(link.clone());
        drop(forged);
        for (index, transaction) in link.block().transactions.iter().enumerate() {
            let place = Place { link: link.clone(), index };
            let mut parties = crate::ledger::apply::recipients(transaction);
            parties.push(transaction.sender_address());
            parties.sort_unstable();
            parties.dedup();
            for party in parties {
                self.0.history.entry(party).or_default().push(place.clone());
            }
            if let Asset::HtlcClaim { lock, .. } | Asset::HtlcRefund { lock } = transaction.asset() {
                self.0.unlocks.entry(*lock).or_default().push(place.clone());
            }
            if matches!(transaction.transaction().version, Version::One(_)) && height > Height::GENESIS {
                self.0.own_timestamps.store(true, Ordering::Relaxed);
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

    /// Since when this is the chain [Unix s].
    pub fn modified(&self) -> i64 {
        self.modified
    }

    /// Orders of wallets and delegates in that state.
    pub fn lists(&self) -> &Lists {
        &self.lists
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

    /// Transactions of this chain downwards from a number, at most so many.
    pub fn transactions_down(&self, from: u64, count: usize) -> Vec<Place> {
        let mut places: Vec<Place> = Vec::with_capacity(count);
        for number in (0..=from).rev().take(count) {
            let next = match places.last() {
                Some(last) if last.index > 0 => Some(Place { link: last.link.clone(), index: last.index - 1 }),
                _ => self.transaction_at(number),
            };
            places.extend(next);
        }
        places
    }

    /// All blocks of this chain, newest first.
    pub fn blocks_down(&self) -> impl Iterator<Item = &Arc<Link>> {
        std::iter::successors(Some(&self.tip), |link| link.parent())
    }

    /// Pending transactions in the order in which they would be forged.
    pub fn pending(&self) -> impl Iterator<Item = Arc<SignedTransaction>> {
        crate::actors::pool::in_forging_order(self.pending.iter().cloned())
    }

    /// A pending transaction.
    pub fn pending_by_id(&self, id: &TransactionId) -> Option<&Arc<SignedTransaction>> {
        self.pending.get(id)
    }

    fn stand_on(&mut self, tip: &Arc<Link>, applied: &Arc<Applied>, made: i64) {
        self.modified = made.max(self.modified + 1);
        self.tip = tip.clone();
        self.applied = applied.clone();
        self.lists = Arc::default();
    }

    fn pend(&mut self, added: &[Arc<SignedTransaction>]) {
        added.iter().for_each(|transaction| self.pending.add(transaction));
    }
}

impl Observer for View {
    fn observe(&mut self, now: SimTime, node: NodeId, event: &Event) {
        self.0.now.store(now.micros(), Ordering::Relaxed);
        if node != self.0.node {
            if let Event::BlockApplied { link: tip, .. } | Event::RolledBack { to: tip, .. } = event {
                self.0.neighbours.saw(node, tip);
            }
            return;
        }
        match event {
            Event::BlockApplied { link, applied } => {
                self.enter(link);
                self.update(|head| {
                    head.stand_on(link, applied, unix(&self.0.tree, applied));
                    // The pool says so too, an instant later; no page shows a transaction as both.
                    for transaction in &link.block().transactions {
                        head.pending.remove(&transaction.id());
                    }
                });
            }
            Event::RolledBack { to, .. } => {
                let applied = self.0.tree.applied(to);
                self.update(|head| head.stand_on(to, &applied, unix(&self.0.tree, &applied)));
            }
            Event::PoolAdded(added) => self.update(|head| head.pend(added)),
            Event::PoolRemoved(id) => self.update(|head| head.pending.remove(id)),
            Event::PoolExpired(transaction) | Event::PoolEvicted(transaction) | Event::PoolPurged(transaction) => {
                self.update(|head| head.pending.remove(&transaction.id()));
            }
            Event::PoolReplaced(pending) => self.update(|head| {
                head.pending = Pending::default();
                head.pend(pending);
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
}

/// When the newest block of a state was made [Unix s].
fn unix(tree: &BlockTree, applied: &Applied) -> i64 {
    tree.slots().epoch_unix() + i64::from(applied.state.timestamp().0)
}
