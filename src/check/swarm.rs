//! A scenario out of a seed: every knob is sometimes off and sometimes extreme, so that two extremes meet now and then.
//! Source: A. Groce et al., Swarm testing (2012).
//!
//! Everything that goes wrong is a fault with an end, so that when the last one is over the network is whole and can be
//! asked to come to one chain. The run itself always has the seed 1: the scenario alone says what happens.

use crate::{
    actors::deviation::InvalidBlock,
    ledger::rules::Gossip,
    protocol::crypto::CryptoMode,
    scenario::{Action, Deed, Scenario, Wrong, file::NetworkSection},
    sim::{
        Fault, FaultKind, Latency, NetworkModel, SeedTree, Trigger,
        fault::{
            ClockSkew, Crash, DelayMessages, DropMessages, DuplicateMessages, Eclipse, ForgeInvalid, ForgeOutOfTurn,
            LateForging, MessageKind, Messages, NodeRef, Nodes, Offline, Partition, Restart, Slow, SomeDelegates,
            SomeNodes, Withhold,
        },
        network::Topology,
    },
};
use rand::{Rng, seq::IndexedRandom};
use rand_chacha::ChaCha8Rng;

/// Virtual time in which all nodes must have come to one chain once all faults are over, in seconds: half an hour.
const BOUND_SECONDS: u32 = 1_800;
/// Slots in which things go wrong, give or take.
const TROUBLED_SLOTS: u32 = 120;

/// Errors of a block that nothing shows but a block that has them: drawn twice as often as others.
const SEEN_ALONE: [InvalidBlock; 5] = [
    InvalidBlock::Reward,
    InvalidBlock::Signature,
    InvalidBlock::TransactionSignature,
    InvalidBlock::ExpiredTransaction,
    InvalidBlock::PayloadHash,
];

/// What comes more than once: what a peer gets unasked. A question that does breaks the limits of who asked it, and a
/// network that hangs up on itself for an hour says nothing and delivers hundreds of millions of messages.
const PUSHED: [MessageKind; 2] = [MessageKind::Block, MessageKind::Transactions];

/// What a search draws its scenarios around.
#[derive(Clone, Debug, Default)]
pub struct Frame {
    /// What stays as it is said here; everything else is drawn.
    pub base: Option<Scenario>,
    /// The rules of all nodes.
    pub rules: toml::Table,
    /// How signatures are treated, if not as in the base, or really.
    pub crypto: Option<CryptoMode>,
    /// Delegates, if not drawn.
    pub delegates: Option<u32>,
    /// Rounds in which things go wrong, if not derived from the number of delegates.
    pub rounds: Option<u32>,
}

/// Rounds' worth of slots in which a network of so many delegates must come to one chain.
pub fn rounds_to_converge(delegates: u32) -> u32 {
    BOUND_SECONDS.div_ceil(8 * delegates).max(4)
}

/// The scenario of a seed.
pub fn draw(frame: &Frame, seed: u64) -> Scenario {
    let mut random = SeedTree::new(seed).stream("swarm");
    let draw = &mut random;
    let mut scenario = frame.base.clone().unwrap_or_else(|| Scenario {
        version: 1,
        description: String::new(),
        include: Vec::new(),
        rounds: 0,
        crypto: CryptoMode::default(),
        network: network(draw, frame.delegates),
        rules: toml::Table::new(),
        faults: Vec::new(),
        actions: Vec::new(),
        workloads: Vec::new(),
        assertions: Vec::new(),
    });
    scenario.description = format!("drawn from seed {seed}");
    for (key, value) in &frame.rules {
        scenario.rules.entry(key.clone()).or_insert_with(|| value.clone());
    }
    if frame.base.is_none() && draw.random_ratio(1, 5) {
        let limit = draw.random_range(2..=12_i64);
        set(&mut scenario.rules, "pool.max_transactions", limit);
    }
    let seats = scenario.network.delegates;
    let troubled = frame.rounds.unwrap_or_else(|| (TROUBLED_SLOTS / seats).clamp(3, 12));
    let over = f64::from(troubled * seats * 8);
    let count = *[0, 1, 1, 2, 2, 3, 5].choose(draw).unwrap_or(&1);
    for _ in 0..count {
        let from = f64::from(draw.random_range(1..=(over as u32) * 2 / 3));
        let until = (from + f64::from(draw.random_range(8..=over as u32))).min(over);
        let kind = fault(draw, &scenario.network);
        let ends = !matches!(kind, FaultKind::Restart(_));
        let until = ends.then_some(Trigger::Seconds(until));
        scenario.faults.push(Fault { kind, from: Trigger::Seconds(from), until });
    }
    let deeds = *[0, 10, 30, 30, 60, 120].choose(draw).unwrap_or(&30);
    scenario.actions.extend(Actions::new(draw, &scenario.network, troubled * seats).draw(deeds));
    scenario.rounds = scenario.rounds.max(troubled + rounds_to_converge(seats) + 1);
    scenario.crypto = frame.crypto.unwrap_or(scenario.crypto);
    scenario
}

/// Sets a rule by its dotted name.
pub fn set(rules: &mut toml::Table, name: &str, value: impl Into<toml::Value>) {
    match name.split_once('.') {
        None => {
            rules.insert(name.to_owned(), value.into());
        }
        Some((group, rest)) => {
            let table = rules.entry(group).or_insert_with(|| toml::Table::new().into());
            if let Some(table) = table.as_table_mut() {
                set(table, rest, value);
            }
        }
    }
}

fn network(draw: &mut ChaCha8Rng, delegates: Option<u32>) -> NetworkSection {
    let delegates = delegates.unwrap_or_else(|| *[4, 5, 5, 7, 7, 10, 13, 21].choose(draw).unwrap_or(&7));
    let standby = *[0, 0, 1, 2].choose(draw).unwrap_or(&0);
    let relays = *[0, 0, 0, 1, 3].choose(draw).unwrap_or(&0);
    let nodes = delegates + standby + relays;
    let topology = match draw.random_range(0..10) {
        0..=6 => Topology::Mesh,
        7 => Topology::Regular(draw.random_range(3..=5)),
        8 => Topology::Ring(draw.random_range(2..=3)),
        _ => Topology::Regular((nodes / 2).max(3)),
    };
    let latency = match draw.random_range(0..6) {
        0 => Latency::uniform(0, 1),
        1..=3 => {
            let least = draw.random_range(1..=60);
            Latency::uniform(least, least + draw.random_range(1..=120))
        }
        // A peer that takes more than 1.5 seconds to answer counts as gone: with more, nobody could ever forge.
        4 => Latency::uniform(100, draw.random_range(200..=500)),
        _ => Latency::uniform(300, draw.random_range(400..=700)),
    };
    // Sent once, a block does not come beyond the forger's own peers. Where all are peers, the copies that the reference
    // sends are nine messages of ten, and show what can be seen without them.
    let once = topology == Topology::Mesh && draw.random_bool(0.75);
    let gossip = if once { Gossip::Once } else { Gossip::Reference };
    NetworkSection {
        delegates,
        standby,
        reward: draw.random_ratio(2, 3).then_some(200_000_000),
        relays,
        gossip: Some(gossip),
        model: NetworkModel { topology, latency, ..NetworkModel::default() },
    }
}

/// Some of so many nodes, by number: one, a few, or about half.
fn some(draw: &mut ChaCha8Rng, of: u32) -> Vec<NodeRef> {
    let count = match draw.random_range(0..6) {
        0..=2 => 1,
        3 => 2,
        4 => of / 3,
        _ => of / 2,
    };
    let picked = rand::seq::index::sample(draw, of as usize, count.clamp(1, of) as usize);
    let mut picked: Vec<u32> = picked.into_iter().map(|index| index as u32).collect();
    picked.sort_unstable();
    picked.into_iter().map(NodeRef::Number).collect()
}

fn fault(draw: &mut ChaCha8Rng, network: &NetworkSection) -> FaultKind {
    let (nodes, delegates) = (network.nodes(), network.delegates + network.standby);
    let all = some(draw, nodes);
    let nodes_of = |list: &[NodeRef]| Nodes::List(list.to_vec());
    let some_nodes = SomeNodes { nodes: nodes_of(&all) };
    let forgers = Nodes::List(some(draw, delegates));
    let chance = *[0.05, 0.2, 0.5, 1.0].choose(draw).unwrap_or(&0.5);
    let which = Messages { chance: Some(chance), ..Messages::default() };
    match draw.random_range(0..26) {
        0..=3 => {
            // An even split among them, which is the hardest to mend.
            let half = draw.random_bool(0.5);
            let cut = if half { nodes / 2 } else { draw.random_range(1..=nodes - 1) };
            let group = Nodes::List((0..cut).map(NodeRef::Number).collect());
            FaultKind::Partition(Partition { groups: vec![group], share: None, one_way: draw.random_ratio(1, 6) })
        }
        4 => FaultKind::Isolate(some_nodes),
        5 => {
            let (victims, attackers) = all.split_at(all.len().div_ceil(2).min(all.len() - usize::from(all.len() > 1)));
            let attackers = if attackers.is_empty() { victims } else { attackers };
            FaultKind::Eclipse(Eclipse { victims: nodes_of(victims), attackers: nodes_of(attackers) })
        }
        6 => FaultKind::Drop(DropMessages { which: of_some_kinds(draw, which) }),
        7 => {
            let by_ms = *[50, 900, 4_000, 12_000].choose(draw).unwrap_or(&900);
            let jitter_ms = draw.random_range(0..=2_000);
            FaultKind::Delay(DelayMessages { by_ms, jitter_ms, which: of_some_kinds(draw, which) })
        }
        8 => FaultKind::Duplicate(DuplicateMessages {
            copies: draw.random_range(1..=3),
            within_ms: draw.random_range(0..=3_000),
            which: Messages { messages: some_of(draw, &PUSHED, PUSHED.len()), ..which },
        }),
        9 => FaultKind::Crash(Crash { nodes: some_nodes.nodes, keep_pool: draw.random_bool(0.5) }),
        10 => FaultKind::Restart(Restart { nodes: some_nodes.nodes, keep_pool: draw.random_bool(0.5) }),
        11 => FaultKind::Pause(some_nodes),
        12 => FaultKind::Slow(Slow { nodes: some_nodes.nodes, step_ms: draw.random_range(1..=400) }),
        13 => {
            let offset_ms = *[-20_000, -3_000, 3_000, 9_000].choose(draw).unwrap_or(&3_000);
            FaultKind::ClockSkew(ClockSkew { nodes: some_nodes.nodes, offset_ms, drift_ppm: 0 })
        }
        14 => FaultKind::Offline(Offline { delegates: forgers, rounds: None }),
        15 => FaultKind::LateForging(LateForging { delegates: forgers, by_ms: draw.random_range(100..=4_000) }),
        16 => FaultKind::Withhold(Withhold {
            delegates: forgers,
            release_ms: draw.random_bool(0.7).then(|| draw.random_range(500..=20_000)),
        }),
        17 | 18 => FaultKind::DoubleForge(SomeDelegates { delegates: forgers }),
        19 => FaultKind::ForgeOutOfTurn(ForgeOutOfTurn { delegates: forgers, every: draw.random_range(1..=5) }),
        _ => {
            let all: Vec<_> = InvalidBlock::ALL.into_iter().chain(SEEN_ALONE).collect();
            let error = *all.choose(draw).unwrap_or(&InvalidBlock::Reward);
            FaultKind::ForgeInvalid(ForgeInvalid { delegates: forgers, error })
        }
    }
}

/// All kinds of messages, or a few.
fn of_some_kinds(draw: &mut ChaCha8Rng, which: Messages) -> Messages {
    match draw.random_bool(0.5) {
        true => which,
        false => Messages { messages: some_of(draw, &MessageKind::ALL, 3), ..which },
    }
}

/// One to `most` of these, in their order.
fn some_of<T: Copy>(draw: &mut ChaCha8Rng, all: &[T], most: usize) -> Vec<T> {
    let count = draw.random_range(1..=most);
    let mut places = rand::seq::index::sample(draw, all.len(), count).into_vec();
    places.sort_unstable();
    places.into_iter().map(|place| all[place]).collect()
}

/// Draws what clients do: small stories whose parts fall into one run.
struct Actions<'a> {
    draw: &'a mut ChaCha8Rng,
    delegates: u32,
    nodes: u32,
    last: u32,
    told: u32,
}

impl<'a> Actions<'a> {
    fn new(draw: &'a mut ChaCha8Rng, network: &NetworkSection, last: u32) -> Self {
        let delegates = network.delegates + network.standby;
        Self { draw, delegates, nodes: network.nodes(), last, told: 0 }
    }

    fn draw(mut self, count: usize) -> Vec<Action> {
        let mut actions = Vec::new();
        while actions.len() < count {
            let story = self.story();
            actions.extend(story);
        }
        actions.sort_by_key(|action| action.height);
        actions
    }

    fn account(&mut self) -> String {
        format!("account_{}", self.draw.random_range(1..=10))
    }

    fn delegate(&mut self) -> String {
        format!("genesis_{}", self.draw.random_range(1..=self.delegates))
    }

    fn anybody(&mut self) -> String {
        if self.draw.random_ratio(1, 4) { self.delegate() } else { self.account() }
    }

    fn amount(&mut self) -> Option<u64> {
        let coins = *[1, 100, 50_000, 400_000, 1_500_000].choose(self.draw).unwrap_or(&1);
        Some(coins * 100_000_000)
    }

    /// One action at about this height, wrong now and then.
    fn at(&mut self, height: u32, by: &str, does: Deed) -> Action {
        let node = self.draw.random_range(0..self.nodes);
        let wrong = self.draw.random_ratio(1, 12).then(|| {
            *[Wrong::NonceAhead, Wrong::NonceUsed, Wrong::Overspent, Wrong::Forged]
                .choose(self.draw)
                .unwrap_or(&Wrong::Forged)
        });
        let fee = match does {
            Deed::Claim | Deed::Refund => None,
            _ => self.draw.random_ratio(1, 3).then(|| self.draw.random_range(500_000..=30_000_000_u64)),
        };
        // Registrations cost more than any of these fees by their size alone.
        let fee = fee
            .filter(|_| matches!(does, Deed::Transfer | Deed::Vote | Deed::Unvote | Deed::MultiPayment | Deed::Lock));
        Action { height, node, by: by.to_owned(), does, wrong, fee, ..Action::default() }
    }

    fn later(&mut self, height: u32, most: u32) -> u32 {
        height + self.draw.random_range(0..=most)
    }

    fn story(&mut self) -> Vec<Action> {
        self.told += 1;
        let name = format!("n{}", self.told);
        // The first blocks take transactions of the old version only.
        let start = self.draw.random_range(3..=self.last.max(4));
        let (one, two) = (self.anybody(), self.anybody());
        match self.draw.random_range(0..15) {
            0..=2 => self.payments(start, &one, &two),
            3 | 4 => self.votes(start, &one),
            5 => self.new_delegate(start, &one, &name),
            6 => self.resignation(start),
            7 | 8 => self.lock(start, &one, &two, &name),
            9 => self.second_key(start, &one),
            10 | 14 => self.shared(start, &one, &name),
            11 => self.hash(start, &one, &two, &name),
            12 => self.business(start, &one, &name),
            _ => self.batch(start, &one, &two),
        }
    }

    fn payments(&mut self, start: u32, one: &str, two: &str) -> Vec<Action> {
        let does = if self.draw.random_bool(0.6) { Deed::Transfer } else { Deed::MultiPayment };
        let first = Action { to: Some(two.to_owned()), amount: self.amount(), ..self.at(start, one, does) };
        let expires = self.draw.random_ratio(1, 6).then_some(Wrong::Expired).filter(|_| does == Deed::Transfer);
        let second = self.at(start, two, Deed::Transfer);
        vec![first, Action { to: Some(one.to_owned()), wrong: expires.or(second.wrong), ..second }]
    }

    fn votes(&mut self, start: u32, one: &str) -> Vec<Action> {
        let (first, second) = (self.delegate(), self.delegate());
        let mut actions = Vec::new();
        let mut height = start;
        for (does, to) in [(Deed::Vote, &first), (Deed::Unvote, &first), (Deed::Vote, &second)] {
            if self.draw.random_ratio(3, 4) {
                actions.push(Action { to: Some(to.clone()), ..self.at(height, one, does) });
            }
            height = self.later(height, 6);
        }
        actions
    }

    fn new_delegate(&mut self, start: u32, one: &str, name: &str) -> Vec<Action> {
        let taken = self.draw.random_ratio(1, 4);
        let name = if taken { "genesis_1".to_owned() } else { name.to_owned() };
        let mut actions = vec![Action { name: Some(name.clone()), ..self.at(start, one, Deed::Register) }];
        let mut height = self.later(start, 5);
        for _ in 0..self.draw.random_range(0..=3) {
            let voter = self.account();
            actions.push(Action { to: Some(one.to_owned()), ..self.at(height, &voter, Deed::Vote) });
        }
        if self.draw.random_bool(0.3) {
            let other = self.account();
            actions.push(Action { name: Some(name), ..self.at(height, &other, Deed::Register) });
        }
        height = self.later(height, 10);
        if self.draw.random_bool(0.3) {
            actions.push(self.at(height, one, Deed::Resign));
        }
        actions
    }

    /// Delegates resign together, and are voted for afterwards.
    fn resignation(&mut self, start: u32) -> Vec<Action> {
        let mut actions = Vec::new();
        for _ in 0..self.draw.random_range(1..=3) {
            let delegate = self.delegate();
            let resigns = self.at(start, &delegate, Deed::Resign);
            actions.push(Action { wrong: None, ..resigns });
            let (height, voter) = (self.later(start, 8), self.account());
            actions.push(Action { to: Some(delegate), ..self.at(height, &voter, Deed::Vote) });
        }
        actions
    }

    /// Locked, then claimed or taken back: in time or not, by the right one or another, with the secret or another.
    fn lock(&mut self, start: u32, one: &str, two: &str, name: &str) -> Vec<Action> {
        let lasts = self.draw.random_range(0..=10);
        let lock = self.at(start, one, Deed::Lock);
        let amount = self.amount();
        let (to, named) = (Some(two.to_owned()), Some(name.to_owned()));
        let mut actions = vec![Action { to, amount, name: named.clone(), blocks: lasts, wrong: None, ..lock }];
        for _ in 0..self.draw.random_range(1..=3) {
            let does = if self.draw.random_bool(0.6) { Deed::Claim } else { Deed::Refund };
            let (height, by) = (self.later(start + 2, self.delegates + 14), self.anybody());
            let wrong = self.draw.random_ratio(1, 4).then_some(Wrong::WrongSecret).filter(|_| does == Deed::Claim);
            actions.push(Action { name: named.clone(), wrong, ..self.at(height, &by, does) });
        }
        actions
    }

    fn second_key(&mut self, start: u32, one: &str) -> Vec<Action> {
        let mut actions = vec![Action { wrong: None, ..self.at(start, one, Deed::SecondSignature) }];
        for _ in 0..3 {
            let (height, to) = (self.later(start, 8), self.account());
            let wrong = self.draw.random_bool(0.4).then_some(Wrong::NoSecondSignature);
            actions.push(Action { to: Some(to), wrong, ..self.at(height, one, Deed::Transfer) });
        }
        actions
    }

    fn shared(&mut self, start: u32, one: &str, name: &str) -> Vec<Action> {
        let shared = format!("shared_{name}");
        let makes = Action { name: Some(name.to_owned()), wrong: None, ..self.at(start, one, Deed::Share) };
        let funds = self.at(start, one, Deed::Transfer);
        let funds = Action { to: Some(shared.clone()), amount: Some(100_000_000_000), wrong: None, fee: None, ..funds };
        let mut actions = vec![makes, funds];
        for _ in 0..3 {
            let (height, to) = (self.later(start + 2, 8), self.account());
            let wrong = self.draw.random_bool(0.4).then_some(Wrong::OneSignatureLess);
            actions.push(Action { to: Some(to), wrong, ..self.at(height, &shared, Deed::Transfer) });
        }
        actions
    }

    fn hash(&mut self, start: u32, one: &str, two: &str, name: &str) -> Vec<Action> {
        let height = self.later(start, 3);
        let first = Action { name: Some(name.to_owned()), ..self.at(start, one, Deed::Ipfs) };
        vec![first, Action { name: Some(name.to_owned()), ..self.at(height, two, Deed::Ipfs) }]
    }

    fn business(&mut self, start: u32, one: &str, name: &str) -> Vec<Action> {
        let mut actions = Vec::new();
        let mut height = start;
        let deeds = [
            Deed::Business,
            Deed::Bridgechain,
            Deed::Business,
            Deed::Bridgechain,
            Deed::UpdateBusiness,
            Deed::ResignBridgechain,
            Deed::ResignBusiness,
        ];
        for (index, does) in deeds.into_iter().enumerate() {
            // Another name for the same chain.
            let name = if index == 3 { format!("{name}-again") } else { name.to_owned() };
            if self.draw.random_ratio(4, 5) {
                actions.push(Action { name: Some(name), wrong: None, ..self.at(height, one, does) });
            }
            height = self.later(height, 4);
        }
        actions
    }

    /// Many at once at one node, by few senders, some of them cheap.
    fn batch(&mut self, start: u32, one: &str, two: &str) -> Vec<Action> {
        let node = self.draw.random_range(0..self.nodes);
        let count = self.draw.random_range(3..=25);
        let mut actions = Vec::new();
        for index in 0..count {
            let (by, to) = if index % 3 == 0 { (two, one) } else { (one, two) };
            let does = if self.draw.random_ratio(1, 8) { Deed::Vote } else { Deed::Transfer };
            let to = if does == Deed::Vote { self.delegate() } else { to.to_owned() };
            let fee = Some(self.draw.random_range(500_000..=20_000_000_u64));
            actions.push(Action { node, to: Some(to), fee, wrong: None, ..self.at(start, by, does) });
        }
        actions
    }
}
