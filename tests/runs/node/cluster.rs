//! A network small enough to look into: the actors of some nodes, one queue, links that can be cut.

use dposlab::{
    actors::{
        ActorId, Delegate, Effect, Event, Input, Message, NodeId, Peer, RequestId, Role, RollbackCause, SimTime,
        TransactionPool, message::Transactions,
    },
    ledger::{BlockTree, Link, Rules, rules::Gossip},
    protocol::{Arktoshi, Block, BlockDraft, KeyPair, Nonce, Round, SignedTransaction, Slot, Timestamp, Transaction},
    scenario::Testnet,
    sim::{SeedTree, queue::EventQueue},
};
use slab::Slab;
use std::{collections::BTreeSet, ops::RangeInclusive, sync::Arc, time::Duration};

/// Something a node reported.
pub struct Seen {
    pub at: SimTime,
    pub node: u32,
    pub event: Event,
}

/// A message between nodes, as it left.
pub struct Sent {
    pub at: SimTime,
    pub from: u32,
    pub to: u32,
    pub message: Message,
}

struct Node {
    peer: Peer,
    pool: TransactionPool,
    delegate: Delegate,
    up: bool,
    /// Counts restarts: what was meant for an earlier life is lost.
    life: u32,
    side: u32,
}

pub struct Cluster {
    pub testnet: Testnet,
    pub tree: Arc<BlockTree>,
    pub now: SimTime,
    pub seen: Vec<Seen>,
    pub sent: Vec<Sent>,
    nodes: Vec<Node>,
    queue: EventQueue<usize>,
    /// What the queue tells of, by number.
    scheduled: Slab<(ActorId, u32, Input)>,
    seeds: SeedTree,
    /// Nodes whose calls for blocks are answered by nobody, to be answered by the test.
    pub mute: BTreeSet<u32>,
}

/// The rules of a small network: two peers are enough to forge, and a block goes from its forger to everybody.
pub fn rules(base: Rules) -> Rules {
    Rules { minimum_network_reach: Some(2), gossip: Gossip::Once, ..base }
}

/// What a cluster begins with.
pub struct Setup {
    pub delegates: u32,
    /// Nodes beyond those of the delegates.
    pub others: u32,
    pub rules: Rules,
    pub seed: u64,
    pub offline: fn(u32) -> Option<RangeInclusive<Round>>,
    /// The nodes a node is given, among all of so many; itself does no harm.
    pub given: fn(u32, u32) -> Vec<u32>,
}

/// Delegates of no node forge.
pub fn nobody(_: u32) -> Option<RangeInclusive<Round>> {
    Some(Round(1)..=Round(u32::MAX))
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            delegates: 5,
            others: 0,
            rules: rules(Rules::reference()),
            seed: 7,
            offline: |_| None,
            given: |_, all| (0..all).collect(),
        }
    }
}

impl Setup {
    pub fn build(self) -> Cluster {
        let seeds = SeedTree::new(self.seed);
        let testnet = Testnet::generate(seeds, self.delegates);
        let tree = testnet.tree(self.rules).expect("it has its delegates");
        let mut cluster = Cluster {
            now: SimTime::from_seconds(Timestamp(8)),
            seen: Vec::new(),
            sent: Vec::new(),
            nodes: Vec::new(),
            queue: EventQueue::new(),
            scheduled: Slab::new(),
            seeds,
            mute: BTreeSet::new(),
            tree,
            testnet,
        };
        let all: Vec<NodeId> = (0..self.delegates + self.others).map(NodeId).collect();
        for node in &all {
            let (tree, tip) = (cluster.tree.clone(), cluster.tree.genesis().clone());
            let random = seeds.stream(&format!("peer/{}", node.0));
            let keys = cluster.testnet.delegates.get(node.0 as usize).map(|delegate| delegate.keys.clone());
            let offline = (self.offline)(node.0).into_iter().collect();
            let given: Vec<NodeId> = (self.given)(node.0, all.len() as u32).into_iter().map(NodeId).collect();
            cluster.nodes.push(Node {
                peer: Peer::new(*node, tree.clone(), tip.clone(), given, random),
                pool: TransactionPool::new(*node, tree.clone(), tip),
                delegate: Delegate::new(*node, keys, tree, offline),
                up: true,
                life: 0,
                side: 0,
            });
        }
        for node in all {
            cluster.start(node.0);
        }
        cluster
    }
}

impl Cluster {
    fn start(&mut self, node: u32) {
        let life = self.nodes[node as usize].life;
        for role in [Role::Peer, Role::Pool, Role::Delegate] {
            self.schedule(self.now, ActorId { node: NodeId(node), role }, life, Input::Start);
        }
    }

    pub fn run_for(&mut self, seconds: u64) {
        self.run_until(self.now + Duration::from_secs(seconds));
    }

    pub fn run_until(&mut self, until: SimTime) {
        let mut effects = Vec::new();
        while let Some((now, number)) = self.queue.pop(until.just_before()) {
            let (to, life, input) = self.scheduled.remove(number);
            self.now = now;
            let node = &mut self.nodes[to.node.0 as usize];
            if !node.up || node.life != life {
                continue;
            }
            match to.role {
                Role::Peer => node.peer.step(now, input, &mut effects),
                Role::Pool => node.pool.step(now, input, &mut effects),
                Role::Delegate => node.delegate.step(now, input, &mut effects),
            }
            for effect in effects.drain(..) {
                self.absorb(to, life, effect);
            }
        }
        self.now = until;
    }

    fn schedule(&mut self, at: SimTime, to: ActorId, life: u32, input: Input) {
        self.queue.push(at, self.scheduled.insert((to, life, input)));
    }

    fn absorb(&mut self, from: ActorId, life: u32, effect: Effect) {
        match effect {
            // Only deviating delegates send later than at once, and none does here.
            Effect::Send { to, message } | Effect::SendAt { to, message, .. } => self.send(from, to, message),
            Effect::SendToPeers { to, message } => {
                for node in to {
                    self.send(from, ActorId { node, role: Role::Peer }, message.clone());
                }
            }
            Effect::WakeAt { at, wake } => self.schedule(at.max(self.now), from, life, Input::Wake(wake)),
            Effect::Observe(event) => self.seen.push(Seen { at: self.now, node: from.node.0, event }),
            Effect::Answer { .. } => {}
        }
    }

    fn send(&mut self, from: ActorId, to: ActorId, message: Message) {
        let (a, b) = (from.node.0, to.node.0);
        let mut delay = Duration::ZERO;
        if a != b {
            self.sent.push(Sent { at: self.now, from: a, to: b, message: message.clone() });
            if self.nodes[a as usize].side != self.nodes[b as usize].side {
                return;
            }
            if self.mute.contains(&b) && matches!(message, Message::BlocksRequest { .. }) {
                return;
            }
            delay = Duration::from_millis(u64::from(30 + (a * 7 + b * 13) % 40));
        }
        let life = self.nodes[b as usize].life;
        self.schedule(self.now + delay, to, life, Input::Message { from, message });
    }

    /// Says something to a node's peer in another's name, now.
    pub fn say(&mut self, from: u32, to: u32, message: Message) {
        let from = ActorId { node: NodeId(from), role: Role::Peer };
        let life = self.nodes[to as usize].life;
        let to = ActorId { node: NodeId(to), role: Role::Peer };
        self.schedule(self.now, to, life, Input::Message { from, message });
        self.run_until(self.now + Duration::from_micros(1));
    }

    pub fn submit(&mut self, node: u32, transactions: &[Arc<SignedTransaction>]) {
        let life = self.nodes[node as usize].life;
        let to = ActorId { node: NodeId(node), role: Role::Peer };
        let transactions: Transactions = transactions.into();
        self.schedule(self.now, to, life, Input::Submit { request: RequestId(0), transactions });
        self.run_until(self.now + Duration::from_micros(1));
    }

    /// Nodes of different sides do not hear each other.
    pub fn cut(&mut self, side: impl Fn(u32) -> u32) {
        for (number, node) in (0..).zip(&mut self.nodes) {
            node.side = side(number);
        }
    }

    pub fn heal(&mut self) {
        self.cut(|_| 0);
    }

    pub fn crash(&mut self, node: u32) {
        self.nodes[node as usize].up = false;
    }

    /// Starts a node anew on a block: what it kept, or genesis.
    pub fn restart(&mut self, node: u32, tip: Arc<Link>) {
        let all: Vec<NodeId> = (0..self.nodes.len() as u32).map(NodeId).collect();
        let this = &mut self.nodes[node as usize];
        this.life += 1;
        this.up = true;
        let random = self.seeds.stream(&format!("peer/{node}/{}", this.life));
        this.peer = Peer::starting(NodeId(node), self.tree.clone(), tip.clone(), all, random);
        this.pool = TransactionPool::new(NodeId(node), self.tree.clone(), tip);
        self.start(node);
    }

    pub fn peer(&self, node: u32) -> &Peer {
        &self.nodes[node as usize].peer
    }

    pub fn tip(&self, node: u32) -> &Arc<Link> {
        self.nodes[node as usize].peer.tip()
    }

    pub fn height(&self, node: u32) -> u32 {
        self.tip(node).height().0
    }

    pub fn numbers(&self) -> std::ops::Range<u32> {
        0..self.nodes.len() as u32
    }

    /// Whether the tips of these nodes lie on one chain.
    pub fn on_one_chain(&self, nodes: impl IntoIterator<Item = u32>) -> bool {
        let tips: Vec<&Arc<Link>> = nodes.into_iter().map(|node| self.tip(node)).collect();
        let best = tips.iter().max_by_key(|tip| tip.height()).expect("at least one node");
        tips.iter().all(|tip| best.descends_from(tip))
    }

    pub fn events(&self, node: u32) -> impl Iterator<Item = &Event> {
        self.seen.iter().filter(move |seen| seen.node == node).map(|seen| &seen.event)
    }

    /// From and to where a node has rolled back, and why.
    pub fn rollbacks(&self, node: u32) -> Vec<(u32, u32, RollbackCause)> {
        let rollbacks = self.events(node).filter_map(|event| match event {
            Event::RolledBack { from, to, cause } => Some((from.height().0, to.height().0, *cause)),
            _ => None,
        });
        rollbacks.collect()
    }

    pub fn slot(&self) -> Slot {
        self.tree.slots().slot(self.now.seconds())
    }

    /// The keys of the delegate that owns a slot after this block.
    pub fn owner(&self, parent: &Arc<Link>, slot: Slot) -> KeyPair {
        let applied = self.tree.applied(parent);
        let key = applied.state.round().owner(slot).public_key;
        let delegate = self.testnet.delegates.iter().find(|delegate| *delegate.keys.public() == key);
        delegate.expect("all delegates are generated").keys.clone()
    }

    /// A block on top of another, by the owner of its slot.
    pub fn block(&self, parent: &Arc<Link>, slot: Slot, transactions: Vec<Arc<SignedTransaction>>) -> Arc<Block> {
        let milestones = &self.tree.config().milestones;
        let height = parent.height().next();
        let draft = BlockDraft {
            version: 0,
            timestamp: self.tree.slots().start(slot),
            height,
            previous: Some(parent.id()),
            reward: milestones.at(height).reward,
            transactions,
        };
        Arc::new(Block::forge(draft, &self.owner(parent, slot), milestones))
    }

    /// Transfers of one coin each from an account, from its first nonce on.
    pub fn transfer(&self, account: usize, count: u64) -> Vec<SignedTransaction> {
        let keys = &self.testnet.accounts[account].keys;
        let to = self.testnet.accounts[9 - account].keys.public().address(self.tree.config().network.pub_key_hash);
        let fee = Arktoshi::new(10_000_000).expect("a fee");
        let one = |nonce| Transaction::transfer(to, Arktoshi::coins(1)).nonce(Nonce(nonce)).fee(fee).sign(keys);
        (1..=count).map(one).collect()
    }

    /// So many blocks on top of another, one a slot; none of them is told to anybody.
    pub fn chain(&self, parent: &Arc<Link>, first: Slot, count: u32) -> Vec<Arc<Link>> {
        let mut chain = vec![parent.clone()];
        for step in 0..count {
            let tip = chain.last().expect("it begins with the parent").clone();
            let block = self.block(&tip, Slot(first.0 + step), Vec::new());
            chain.push(self.tree.extend(&tip, &block).expect("its owner made it"));
        }
        chain.split_off(1)
    }

    pub fn at(seconds: u32) -> SimTime {
        SimTime::from_seconds(Timestamp(seconds))
    }
}

/// One peer without a network: what it is told, and what it wants done.
pub struct Lone {
    pub peer: Peer,
    pub now: SimTime,
}

impl Lone {
    /// A peer of this number on a block, connected to `given`.
    pub fn new(tree: &Arc<BlockTree>, tip: &Arc<Link>, node: u32, given: &[u32], now: SimTime) -> Self {
        let random = SeedTree::new(1).stream("peer");
        let given: Vec<NodeId> = given.iter().copied().map(NodeId).collect();
        let mut lone = Self { peer: Peer::new(NodeId(node), tree.clone(), tip.clone(), given, random), now };
        lone.step(Input::Start);
        lone
    }

    pub fn step(&mut self, input: Input) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.peer.step(self.now, input, &mut effects);
        effects.into_iter().flat_map(one_by_one).collect()
    }

    /// What another node's peer says.
    pub fn hear(&mut self, from: u32, message: Message) -> Vec<Effect> {
        let from = ActorId { node: NodeId(from), role: Role::Peer };
        self.step(Input::Message { from, message })
    }
}

/// What is said to many, said to each.
pub fn one_by_one(effect: Effect) -> Vec<Effect> {
    let Effect::SendToPeers { to, message } = effect else { return vec![effect] };
    let send = |node| Effect::Send { to: ActorId { node, role: Role::Peer }, message: message.clone() };
    to.into_iter().map(send).collect()
}

/// The first message among effects that fits, and whom it is for.
pub fn message<T>(effects: &[Effect], fits: impl Fn(&Message) -> Option<T>) -> Option<(ActorId, T)> {
    effects.iter().find_map(|effect| match effect {
        Effect::Send { to, message } => fits(message).map(|found| (*to, found)),
        _ => None,
    })
}
