//! Changes to the chains of three nodes: blocks, forks, rollbacks and pools, told to every node's view as a run tells them.

use super::settled::{SPAN, Settling};
use dposlab::{
    actors::{Event, NodeId, RollbackCause, SimTime},
    api::{Older, View},
    check::strategies::{Play, Stage, stage},
    ledger::{BlockTree, Link},
    protocol::{Address, Arktoshi, Height, Nonce, SignedTransaction, Timestamp, Transaction, Vote},
    scenario::testnet::Account,
    sim::Observer,
};
use proptest::prelude::*;
use std::sync::Arc;

pub const NODES: usize = 3;
/// Blocks of a round.
pub const ROUND: u32 = 5;
/// No node goes back below this: transactions of version 2 are allowed from the next block on.
const LOWEST: u32 = 2;

/// Blocks that a node lacks at most of the longest chain where blocks settle.
const APART_MAX: u32 = 4;

/// A deed of a node.
#[derive(Clone, Debug)]
pub enum Deed {
    /// Goes back, as the stage says, and forges a block. All nodes hear of its transactions before it if they are announced,
    /// and of those that do not fit, too.
    Forges { stage: Stage, announced: bool },
    /// Forges a block of transfers by somebody else, each with one of these texts, and of a vote or its end.
    Writes { texts: Vec<usize> },
    /// Leaves its chain for another node's.
    Follows { other: usize },
    /// Goes back and takes the same blocks again.
    Repeats { blocks: u32 },
    /// Goes back so many blocks and stays there.
    FallsBack { blocks: u32 },
    /// Goes back so many blocks below the first one of the running round.
    FallsBackOverRound { blocks: u32 },
    /// Its pool loses a transaction, in one of four ways.
    Forgets { which: usize, how: usize },
}

/// Vendor fields: some hold what is looked for more than once, and one ends as the next may begin.
const TEXTS: [&str; 6] = ["a banana", "on and on", "coin", "ä", "o", "none"];

/// A deed of a node, so many seconds after its newest block was due.
#[derive(Clone, Debug)]
pub struct Change {
    pub node: usize,
    pub deed: Deed,
    pub later: u32,
}

/// One change. Most are blocks.
pub fn change() -> impl Strategy<Value = Change> {
    let deed = prop_oneof![
        30 => (stage(), any::<bool>()).prop_map(|(stage, announced)| Deed::Forges { stage, announced }),
        6 => prop::collection::vec(0..TEXTS.len(), 1..5).prop_map(|texts| Deed::Writes { texts }),
        2 => (0..NODES).prop_map(|other| Deed::Follows { other }),
        2 => (1..8u32).prop_map(|blocks| Deed::Repeats { blocks }),
        1 => (1..4u32).prop_map(|blocks| Deed::FallsBack { blocks }),
        1 => (0..3u32).prop_map(|blocks| Deed::FallsBackOverRound { blocks }),
        2 => (any::<usize>(), 0..4usize).prop_map(|(which, how)| Deed::Forgets { which, how }),
    ];
    // Fees are counted over days, so now and then one has gone by.
    let later = prop_oneof![4 => 0..30u32, 1 => 86_000..180_000u32];
    // The first node does most, so that chains get long.
    let node = prop_oneof![3 => Just(0usize), 1 => 1..NODES];
    (node, deed, later).prop_map(|(node, deed, later)| Change { node, deed, later })
}

/// Three nodes on one tree of blocks, each with its API.
pub struct Network {
    pub play: Play,
    pub views: Vec<View>,
    pub tips: Vec<Arc<Link>>,
    /// In the order of arrival; of one sender no two with the same nonce.
    pub pools: Vec<Vec<Arc<SignedTransaction>>>,
    pub now: SimTime,
    /// The folder in which blocks settle, if they do.
    pub settling: Option<Settling>,
}

impl Network {
    pub fn new() -> Self {
        Self::of(Play::new(), None)
    }

    /// The same, where all but the newest blocks leave memory.
    pub fn settling() -> Self {
        let play = Play::with_span(SPAN);
        let settling = Settling::new(play.testnet.config.network.pub_key_hash);
        Self::of(play, Some(settling))
    }

    fn of(play: Play, settling: Option<Settling>) -> Self {
        let (tip, now) = (play.tip.clone(), SimTime::from_seconds(play.tip.block().header.timestamp));
        let older = settling.as_ref().map(|settling| settling.shelf.clone() as Arc<dyn Older>);
        let views = (0..NODES).map(|node| view_of(node, &play.tree, &tip, now, older.clone())).collect();
        Self { views, tips: vec![tip; NODES], pools: vec![Vec::new(); NODES], now, play, settling }
    }

    /// Does it, and calls `seen` after every event that changes what the node's API shows.
    pub fn change(&mut self, change: &Change, mut seen: impl FnMut(&Self)) {
        let node = change.node;
        let due = self.tips[node].block().header.timestamp.0 + change.later;
        self.now = self.now.max(SimTime::from_seconds(Timestamp(due)));
        // Somebody does something now, whatever follows.
        self.tell(node, &Event::HealthChecked { peers: 0, forked: 0 });
        match &change.deed {
            Deed::Forges { stage, announced } => self.forge(node, stage, *announced, &mut seen),
            Deed::Writes { texts } => self.write(node, texts, &mut seen),
            Deed::Follows { other } => self.follow(node, &self.tips[*other].clone(), &mut seen),
            Deed::Repeats { blocks } => {
                let tip = self.tips[node].clone();
                self.fall_back(node, tip.height().0.saturating_sub(*blocks), &mut seen);
                self.follow(node, &tip, &mut seen);
            }
            Deed::FallsBack { blocks } => {
                self.fall_back(node, self.tips[node].height().0.saturating_sub(*blocks), &mut seen);
            }
            Deed::FallsBackOverRound { blocks } => {
                let end_of_last = (self.tips[node].height().0 - 1) / ROUND * ROUND;
                self.fall_back(node, end_of_last.saturating_sub(*blocks), &mut seen);
            }
            Deed::Forgets { which, how } => self.forget(node, *which, *how, &mut seen),
        }
        if self.settling.is_some() {
            self.gather();
        }
        if let Some(settling) = &self.settling {
            settling.settle(&self.play.tree, &self.tips);
        }
    }

    /// Nodes that are far from the highest block follow it, so that all have blocks in common that can settle.
    fn gather(&mut self) {
        let highest = self.tips.iter().max_by_key(|tip| tip.height()).expect("three nodes").clone();
        for node in 0..NODES {
            let shared = highest.ancestor(Height(highest.height().0.saturating_sub(APART_MAX).max(LOWEST)));
            if !self.tips[node].descends_from(&shared.expect("all chains are higher")) {
                self.follow(node, &highest, &mut |_| {});
            }
        }
    }

    /// A view that has only ever seen the chain the node stands on now, made from its blocks alone.
    pub fn fresh(&self, node: usize) -> View {
        let own = &self.play.tree;
        let tree = BlockTree::new(own.config().clone(), own.rules().clone()).expect("it has the same genesis block");
        let mut tip = tree.genesis().clone();
        for link in chain(&self.tips[node]).iter().skip(1) {
            tip = tree.extend(&tip, link.block()).expect("it was taken before");
        }
        self.told(view_of(node, &Arc::new(tree), &tip, self.now, None), node)
    }

    /// A view of a node that knows of the other nodes and the pool what the node knows.
    pub fn told(&self, mut view: View, node: usize) -> View {
        for other in (0..NODES).filter(|other| *other != node) {
            view.observe(self.now, id(other), &Event::BlockApplied(self.tips[other].clone()));
        }
        view.observe(self.now, id(node), &Event::PoolAdded(self.pools[node].clone()));
        view
    }

    fn forge(&mut self, node: usize, stage: &Stage, announced: bool, seen: &mut impl FnMut(&Self)) {
        if stage.back > 0 {
            self.fall_back(node, self.tips[node].height().0.saturating_sub(stage.back), seen);
        }
        self.play.tip = self.tips[node].clone();
        let outcome = self.play.play(&Stage { back: 0, ..stage.clone() }).expect("each of them fitted");
        if announced {
            let refused = outcome.refused.iter().map(|(transaction, _)| transaction);
            let all: Vec<_> = refused.chain(&outcome.forged).cloned().collect();
            for node in 0..NODES {
                self.pool_takes(node, &all);
            }
        }
        self.apply(node, &self.play.tip.clone(), seen);
    }

    fn write(&mut self, node: usize, texts: &[usize], seen: &mut impl FnMut(&Self)) {
        let tip = self.tips[node].clone();
        let [.., voter, recipient, sender] = &self.play.testnet.accounts[..] else { panic!("ten accounts") };
        let wallet_of = |account: &Account| {
            self.play.tree.applied(&tip).state.wallet(&account.address).cloned().expect("it has coin")
        };
        let wallet = wallet_of(sender);
        let transfers = texts.iter().zip(wallet.nonce.0 + 1..).map(|(text, nonce)| {
            let transfer = Transaction::transfer(recipient.address, Arktoshi::coins(1)).nonce(Nonce(nonce));
            Arc::new(transfer.vendor_field(TEXTS[*text]).sign(&sender.keys))
        });
        let mut all: Vec<_> = transfers.collect();
        let wallet = wallet_of(voter);
        // This one never resigns: it sends nothing.
        let lasting = self.play.testnet.delegates.last().expect("five");
        let vote = wallet.vote.map_or(Vote::For(*lasting.keys.public()), Vote::Against);
        all.push(Arc::new(Transaction::vote(vote).nonce(wallet.nonce.next()).sign(&voter.keys)));
        self.play.tip = tip.clone();
        let block = self.play.block(0, all);
        let link = self.play.tree.extend(&tip, &block).expect("it has coin enough");
        self.apply(node, &link, seen);
    }

    fn pool_takes(&mut self, node: usize, all: &[Arc<SignedTransaction>]) {
        for transaction in all {
            let id = transaction.id();
            let is_on_chain = self.play.tree.block_of(&self.tips[node], &id).is_some();
            if !is_on_chain && self.pools[node].iter().all(|other| turn(other) != turn(transaction)) {
                self.pools[node].push(transaction.clone());
                self.tell(node, &Event::PoolAdded(vec![transaction.clone()]));
            }
        }
    }

    fn apply(&mut self, node: usize, link: &Arc<Link>, seen: &mut impl FnMut(&Self)) {
        self.tips[node] = link.clone();
        let forged: Vec<_> = link.block().transactions.iter().map(|transaction| transaction.id()).collect();
        self.pools[node].retain(|transaction| !forged.contains(&transaction.id()));
        self.tell(node, &Event::BlockApplied(link.clone()));
        // The pool says so only now.
        seen(self);
        forged.into_iter().for_each(|id| self.tell(node, &Event::PoolRemoved(id)));
    }

    fn fall_back(&mut self, node: usize, height: u32, seen: &mut impl FnMut(&Self)) {
        let from = self.tips[node].clone();
        let settled = self.settling.as_ref().map_or(0, Settling::top);
        let to = from.ancestor(Height(height.max(LOWEST).max(settled + 1))).expect("all chains are higher").clone();
        if !to.is(&from) {
            self.leave(node, &to, seen);
        }
    }

    fn leave(&mut self, node: usize, to: &Arc<Link>, seen: &mut impl FnMut(&Self)) {
        let (from, mut at) = (self.tips[node].clone(), self.tips[node].clone());
        let mut pool = Vec::new();
        while !at.is(to) {
            pool.extend(at.block().transactions.iter().rev().cloned());
            self.tell(node, &Event::BlockReverted(at.clone()));
            at = at.parent().expect("it is above the other");
        }
        pool.reverse();
        self.tips[node] = to.clone();
        self.tell(node, &Event::RolledBack { from, to: to.clone(), cause: RollbackCause::Forked });
        seen(self);
        for pending in std::mem::take(&mut self.pools[node]) {
            if pool.iter().all(|reverted| turn(reverted) != turn(&pending)) {
                pool.push(pending);
            }
        }
        self.pools[node] = pool.clone();
        self.tell(node, &Event::PoolReplaced(pool));
        seen(self);
    }

    fn follow(&mut self, node: usize, goal: &Arc<Link>, seen: &mut impl FnMut(&Self)) {
        let mut common = self.tips[node].clone();
        while !goal.descends_from(&common) {
            common = common.parent().expect("genesis is everybody's");
        }
        if !common.is(&self.tips[node]) {
            self.leave(node, &common, seen);
        }
        for link in chain(goal).iter().skip(common.height().0 as usize) {
            self.apply(node, link, seen);
        }
    }

    fn forget(&mut self, node: usize, which: usize, how: usize, seen: &mut impl FnMut(&Self)) {
        if self.pools[node].is_empty() {
            return;
        }
        let index = which % self.pools[node].len();
        let transaction = self.pools[node].remove(index);
        let event = match how {
            0 => Event::PoolRemoved(transaction.id()),
            1 => Event::PoolExpired(transaction),
            2 => Event::PoolEvicted(transaction),
            _ => Event::PoolPurged(transaction),
        };
        self.tell(node, &event);
        seen(self);
    }

    fn tell(&mut self, node: usize, event: &Event) {
        for view in &mut self.views {
            view.observe(self.now, id(node), event);
        }
    }
}

/// The blocks from genesis to a tip.
pub fn chain(tip: &Arc<Link>) -> Vec<Arc<Link>> {
    let mut links: Vec<_> = std::iter::successors(Some(tip.clone()), |link| link.parent()).collect();
    links.reverse();
    links
}

/// Whose it is and when it is due: a pool holds one of each at most.
fn turn(transaction: &SignedTransaction) -> (Address, Option<Nonce>) {
    (transaction.sender_address(), transaction.transaction().nonce())
}

fn id(node: usize) -> NodeId {
    NodeId(node as u32)
}

fn view_of(node: usize, tree: &Arc<BlockTree>, tip: &Arc<Link>, now: SimTime, older: Option<Arc<dyn Older>>) -> View {
    View::with_older(id(node), tree.clone(), tip.clone(), now, older).with_neighbours((0..NODES).map(id))
}
