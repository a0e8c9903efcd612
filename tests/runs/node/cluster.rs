//! A network small enough to look into: the simulator's inline stage, what its nodes did and said, and faults from outside.

use dposlab::{
    actors::{
        ActorId, Effect, Event, Input, Message, NodeId, Peer, Role, RollbackCause, SimTime, message::Transactions,
    },
    ledger::{
        BlockTree, Link, Rules,
        rules::{Gossip, NodeRules},
    },
    protocol::{
        Arktoshi, Block, BlockDraft, KeyPair, Nonce, SignedTransaction, Slot, Timestamp, Transaction,
        crypto::CryptoMode::Real,
    },
    scenario::{Testnet, run::on_current_thread},
    sim::{
        Fault, FaultKind, Intervention, Latency, NetworkEvent, NetworkModel, NodePlan, Observer, Plan, SeedTree, Stage,
        Trigger,
        fault::{
            AddedFault, Crash, DropMessages, MessageKind, Messages, NodeRef, Nodes, Offline, Partition, Rounds, Span,
        },
        stage::inline::InlineStage,
    },
};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

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

/// The events that are told while a network plays.
#[derive(Default)]
struct Told {
    seen: Vec<Seen>,
    sent: Vec<Sent>,
}

/// Writes down what is told, for the cluster to fetch.
struct Scribe(Arc<Mutex<Told>>);

impl Observer for Scribe {
    fn observe(&mut self, now: SimTime, node: NodeId, event: &Event) {
        self.told().seen.push(Seen { at: now, node: node.0, event: event.clone() });
    }

    fn observe_network(&mut self, now: SimTime, event: &NetworkEvent<'_>) {
        if let NetworkEvent::Sent { from, to, message, .. } | NetworkEvent::Lost { from, to, message } = event
            && from.node != to.node
        {
            let message = Message::clone(message);
            self.told().sent.push(Sent { at: now, from: from.node.0, to: to.node.0, message });
        }
    }

    fn wants_messages(&self) -> bool {
        true
    }
}

impl Scribe {
    fn told(&self) -> MutexGuard<'_, Told> {
        self.0.lock().expect("nobody panics while holding it")
    }
}

pub struct Cluster {
    pub testnet: Testnet,
    pub tree: Arc<BlockTree>,
    pub now: SimTime,
    pub seen: Vec<Seen>,
    pub sent: Vec<Sent>,
    /// The simulator's own; taken out only while something comes in from outside.
    stage: Option<InlineStage>,
    told: Arc<Mutex<Told>>,
    nodes: u32,
    /// The fault that cuts the network in two, if one does.
    cut: Option<usize>,
    /// The faults that keep nodes down.
    down: BTreeMap<u32, usize>,
}

/// The rules of a small network: two peers are enough to forge, a block goes from its forger to everybody, as soon as it may
/// be forged, and nodes that lost each other meet again.
pub fn rules(base: Rules) -> Rules {
    let node = NodeRules { forging_poll_ms: 0, retry_dropped_peers: true, ..base.node };
    Rules { minimum_network_reach: Some(2), gossip: Gossip::Once, node, ..base }
}

/// The beginning of a cluster.
pub struct Setup {
    pub delegates: u32,
    /// Nodes beyond those of the delegates.
    pub others: u32,
    pub rules: Rules,
    pub seed: u64,
    /// The rounds in which a node's delegate is off.
    pub offline: fn(u32) -> Option<Span>,
}

/// Delegates of no node forge.
pub fn nobody(_: u32) -> Option<Span> {
    Some(Span { from: 1, to: u32::MAX })
}

impl Default for Setup {
    fn default() -> Self {
        Self { delegates: 5, others: 0, rules: rules(Rules::reference()), seed: 7, offline: |_| None }
    }
}

impl Setup {
    pub fn build(self) -> Cluster {
        let seeds = SeedTree::new(self.seed);
        let testnet = Testnet::generate(seeds, self.delegates, Real);
        let tree = testnet.tree(self.rules).expect("it has its delegates");
        let nodes = self.delegates + self.others;
        let plans = (0..nodes).map(|node| NodePlan {
            forger: testnet.delegates.get(node as usize).map(|delegate| delegate.keys.clone()),
        });
        let now = SimTime::from_seconds(Timestamp(8));
        let network = NetworkModel { latency: Latency::uniform(30, 70), ..NetworkModel::default() };
        let links = network.topology.links(nodes, seeds);
        let mut plan = Plan::new(tree.clone(), tree.genesis().clone(), plans.collect(), seeds, now).on(network, links);
        plan.faults = (0..nodes).filter_map(|node| Some(off(node, (self.offline)(node)?))).collect();
        let told = Arc::<Mutex<Told>>::default();
        let stage = Some(InlineStage::new(&plan, vec![Box::new(Scribe(told.clone()))]));
        let (seen, sent, down) = (Vec::new(), Vec::new(), BTreeMap::new());
        Cluster { testnet, tree, now, seen, sent, stage, told, nodes, cut: None, down }
    }
}

/// A node's delegate forges nothing in these rounds.
fn off(node: u32, rounds: Span) -> Fault {
    let kind = FaultKind::Offline(Offline { delegates: named([node]), rounds: Some(Rounds::Span(rounds)) });
    Fault { kind, from: Trigger::default(), until: None }
}

/// Nodes by their numbers, as a fault names them.
fn named(nodes: impl IntoIterator<Item = u32>) -> Nodes {
    Nodes::List(nodes.into_iter().map(NodeRef::Number).collect())
}

impl Cluster {
    pub fn run_for(&mut self, seconds: u64) {
        self.run_until(self.now + Duration::from_secs(seconds));
    }

    pub fn run_until(&mut self, until: SimTime) {
        self.stage_mut().run_until(until);
        self.fetch();
    }

    fn stage(&self) -> &InlineStage {
        self.stage.as_ref().expect("nothing comes in now")
    }

    fn stage_mut(&mut self) -> &mut InlineStage {
        self.stage.as_mut().expect("nothing comes in now")
    }

    fn fetch(&mut self) {
        self.now = self.stage().world().now();
        let mut told = self.told.lock().expect("nobody panics while holding it");
        self.seen.append(&mut told.seen);
        self.sent.append(&mut told.sent);
    }

    /// Something comes in from outside, now.
    fn intervene(&mut self, what: Intervention) {
        let stage = self.stage.take().expect("one thing comes in after the other");
        self.stage = Some(on_current_thread(Stage::intervene_in(stage, what)));
        self.fetch();
    }

    /// A fault begins now, until it is ended by its number.
    fn begin(&mut self, kind: FaultKind) -> usize {
        let fault = Fault { kind, from: Trigger::default(), until: None };
        let number = self.stage().world().count_faults();
        self.intervene(Intervention::AddFault(AddedFault { fault, clients: None }.into()));
        number
    }

    /// Says something to a node's peer in another's name, now.
    pub fn say(&mut self, from: u32, to: u32, message: Message) {
        self.stage_mut().say(NodeId(from), NodeId(to), message);
        self.run_until(self.now + Duration::from_micros(1));
    }

    pub fn submit(&mut self, node: u32, transactions: &[Arc<SignedTransaction>]) {
        let transactions: Transactions = transactions.into();
        self.intervene(Intervention::Submit { node: NodeId(node), transactions });
    }

    /// Nodes of different sides do not hear each other.
    pub fn cut(&mut self, side: impl Fn(u32) -> u32) {
        self.heal();
        let mut groups = BTreeMap::<u32, Vec<u32>>::new();
        self.numbers().for_each(|node| groups.entry(side(node)).or_default().push(node));
        let groups = groups.into_values().map(named).collect();
        self.cut = Some(self.begin(FaultKind::Partition(Partition { groups, ..Partition::default() })));
    }

    pub fn heal(&mut self) {
        if let Some(id) = self.cut.take() {
            self.intervene(Intervention::EndFault { id });
        }
    }

    /// Nobody's calls for blocks arrive at these nodes.
    pub fn deafen(&mut self, nodes: impl IntoIterator<Item = u32>) {
        let receivers = Some(named(nodes));
        let which = Messages { messages: vec![MessageKind::Blocks], receivers, ..Messages::default() };
        self.begin(FaultKind::Drop(DropMessages { which }));
    }

    /// Switches a node's delegate off in these rounds, from now on.
    pub fn switch_off(&mut self, node: u32, rounds: Span) {
        self.begin(off(node, rounds).kind);
    }

    pub fn crash(&mut self, node: u32) {
        let fault = self.begin(FaultKind::Crash(Crash { nodes: named([node]), keep_pool: false }));
        self.down.insert(node, fault);
    }

    /// Starts a node again that has crashed, or crashes now, on the chain it has stored.
    pub fn restart(&mut self, node: u32) {
        if !self.down.contains_key(&node) {
            self.crash(node);
        }
        let id = self.down.remove(&node).expect("it is down");
        self.intervene(Intervention::EndFault { id });
    }

    pub fn peer(&self, node: u32) -> &Peer {
        self.stage().peer(NodeId(node))
    }

    pub fn tip(&self, node: u32) -> &Arc<Link> {
        self.peer(node).tip()
    }

    pub fn height(&self, node: u32) -> u32 {
        self.tip(node).height().0
    }

    pub fn numbers(&self) -> std::ops::Range<u32> {
        0..self.nodes
    }

    /// Returns true if the tips of these nodes lie on one chain.
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
        let key = applied.state.round().owner(slot).expect("each slot has an owner").public_key;
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
        let choices = SeedTree::new(1).choices("peer");
        let given: Vec<NodeId> = given.iter().copied().map(NodeId).collect();
        let mut lone = Self { peer: Peer::new(NodeId(node), tree.clone(), tip.clone(), given, choices), now };
        lone.step(Input::Start);
        lone
    }

    pub fn step(&mut self, input: Input) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.peer.step(self.now, input, &mut effects);
        effects.into_iter().flat_map(one_by_one).collect()
    }

    /// Hands the node a message of another node's peer.
    pub fn hear(&mut self, from: u32, message: Message) -> Vec<Effect> {
        let from = ActorId { node: NodeId(from), role: Role::Peer };
        self.step(Input::Message { from, message })
    }

    /// Another node, which is no peer yet, calls, and lets the peer connect. The effects are those of the last round trip.
    pub fn called_by(&mut self, from: u32) -> Vec<Effect> {
        let mut effects = self.hear(from, Message::StatusRequest);
        while let Some((to, trip)) = message(&effects, |message| match message {
            Message::Connect { trip } => Some(*trip),
            _ => None,
        }) {
            assert_eq!(to.node.0, from);
            effects = self.hear(from, Message::Connected { trip });
        }
        effects
    }
}

/// Splits a message to many into one to each.
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
