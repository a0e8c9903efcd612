//! A run of a scenario, observed as the real nodes were: the same facts, in the same form.

use super::facts::{BlockFact, Decision, Facts, HealthCheck, PeerEvent, PeerEventKind, Push, Tip};
use dposlab::{
    actors::{
        ActorId, Event, Input, Message, NodeId, Role, SimTime,
        message::{NetworkState, NetworkStatus},
    },
    ledger::{BlockRejected, Link},
    protocol::{Block, Slots},
    scenario::Scenario,
    sim::{
        Observer, SeedTree,
        stage::inline::InlineStage,
        world::{Act, Heard},
    },
};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

/// Seconds that a run plays before its window begins: ten rounds of seven slots.
pub const LEAD_IN: u32 = 560;

/// The share of its peers that a relay needs on its chain. Source: consensus.md 2.2.
const QUORUM: f64 = 0.66;
/// The share of its peers on other chains with which a health check finds a node forked. Source: consensus.md 3.5.
const FORKED: f64 = 0.5;

/// The window of a run that a recorded window stands for: it begins at the same time of its slot, and is as long.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Seconds from the start of the run to the window.
    pub begins: f64,
    /// Seconds of the window.
    pub lasts: f64,
}

impl Extent {
    pub fn of(facts: &Facts) -> Self {
        Self { begins: f64::from(LEAD_IN) + facts.begins.rem_euclid(f64::from(facts.block_time)), lasts: facts.ends }
    }
}

/// Plays a scenario with a seed, and returns what happened in the window.
pub fn play(scenario: &Scenario, seed: u64, extent: Extent) -> Facts {
    let seeds = SeedTree::new(seed);
    let testnet = scenario.testnet(seeds);
    let plan = scenario.plan(&testnet, seeds);
    let begins = plan.start + Duration::from_secs_f64(extent.begins);
    let slots = plan.tree.slots();
    let facts = Facts {
        nodes: scenario.network.nodes(),
        block_time: slots.blocktime(),
        begins: seconds(begins),
        ends: extent.lasts,
        ..Facts::default()
    };
    let nodes = facts.nodes;
    let recorder = Recorder(Arc::new(Mutex::new(Record {
        begins,
        ends: begins + Duration::from_secs_f64(extent.lasts),
        slots,
        local: BTreeMap::new(),
        asked: BTreeMap::new(),
        pushing: None,
        facts,
    })));
    let mut stage = InlineStage::new(&plan, vec![Box::new(recorder.clone())]);
    for second in 0..=extent.lasts as u64 {
        stage.run_until(begins + Duration::from_secs(second));
        let mut record = recorder.0.lock().expect("no thread died");
        (0..nodes).for_each(|node| record.sample(second as f64, node, &stage));
    }
    stage.run_until(begins + Duration::from_secs_f64(extent.lasts));
    let record = recorder.0.lock().expect("no thread died");
    record.facts.clone()
}

fn seconds(time: SimTime) -> f64 {
    time.micros() as f64 / 1e6
}

#[derive(Clone)]
struct Recorder(Arc<Mutex<Record>>);

struct Record {
    begins: SimTime,
    ends: SimTime,
    slots: Slots,
    /// What each node's clock shows.
    local: BTreeMap<NodeId, SimTime>,
    /// When a delegate last asked its relay for the state of the network.
    asked: BTreeMap<NodeId, SimTime>,
    /// The push that a peer hears just now.
    pushing: Option<usize>,
    facts: Facts,
}

impl Record {
    /// Seconds since the window began, by the node's clock.
    fn t(&self, now: SimTime, node: NodeId) -> f64 {
        seconds(*self.local.get(&node).unwrap_or(&now)) - seconds(self.begins)
    }

    fn is_within(&self, now: SimTime) -> bool {
        (self.begins..=self.ends).contains(&now)
    }

    fn know(&mut self, block: &Block) -> String {
        let (id, header) = (block.id.to_string(), &block.header);
        self.facts.blocks.entry(id.clone()).or_insert_with(|| BlockFact {
            height: header.height.0,
            previous: header.previous.map(|id| id.to_string()).unwrap_or_default(),
            slot: self.slots.slot(header.timestamp).0,
            delegate: header.generator.to_string(),
            transactions: block.transactions.len() as u32,
        });
        id
    }

    /// As the recorder of the real nodes: once a second, where something has changed.
    fn sample(&mut self, t: f64, node: u32, stage: &InlineStage) {
        let peer = stage.peer(NodeId(node));
        let tip: &Arc<Link> = peer.tip();
        let now = Tip { t, height: tip.height().0, id: tip.id().to_string(), peers: peer.connected().count() as u32 };
        let all = self.facts.tips.entry(node + 1).or_default();
        let same = |last: &Tip| (last.height, &last.id, last.peers) == (now.height, &now.id, now.peers);
        if !all.last().is_some_and(same) {
            all.push(now);
        }
    }

    fn hears(&mut self, now: SimTime, actor: ActorId, from: ActorId, message: &Message) {
        let (t, node) = (self.t(now, actor.node), actor.node.0 + 1);
        match (actor.role, message) {
            (Role::Peer, Message::NetworkStateRequest) => {
                self.asked.insert(actor.node, *self.local.get(&actor.node).unwrap_or(&now));
            }
            (Role::Delegate, Message::NetworkState(state)) if self.is_within(now) => {
                let asked = self.asked.get(&actor.node).map_or(t, |asked| seconds(*asked) - seconds(self.begins));
                self.facts.decisions.push(decision(t, node, (t - asked) * 1_000.0, state));
            }
            (Role::Peer, Message::Block(block)) if from.node != actor.node && self.is_within(now) => {
                let id = self.know(block);
                self.pushing = Some(self.facts.pushes.len());
                self.facts.pushes.push(Push { t, node: from.node.0 + 1, to: node, id, accepted: true });
            }
            _ => {}
        }
    }
}

/// What a delegate makes of the state of the network, by the reference's rule.
fn decision(t: f64, node: u32, ms: f64, state: &NetworkState) -> Decision {
    let NetworkState { status, height, reached, in_quorum, over_height, forked, .. } = *state;
    let quorum = if reached > 0 { f64::from(in_quorum) / f64::from(reached) } else { 0.0 };
    let allowed = match status {
        NetworkStatus::Test => true,
        NetworkStatus::Default => quorum >= QUORUM,
        NetworkStatus::ColdStart | NetworkStatus::BelowMinimumPeers => false,
    };
    let status = format!("{status:?}");
    Decision { t, node, ms, status, height: height.0, quorum, in_quorum, over_height, forked, allowed }
}

impl Observer for Recorder {
    fn observe(&mut self, now: SimTime, node: NodeId, event: &Event) {
        let mut record = self.0.lock().expect("no thread died");
        let (t, number) = (record.t(now, node), node.0 + 1);
        // Which blocks there are, and where they first were, is known from before the window, too.
        if let Event::BlockApplied(link) = event {
            let id = record.know(link.block());
            record.facts.applied.entry(id).or_default().entry(number).or_insert(t);
        }
        if !record.is_within(now) {
            return;
        }
        match event {
            Event::BlockForged(block) => {
                let id = record.know(block);
                record.facts.forged.push((t, number, id));
            }
            Event::BlockReverted(link) => {
                let id = record.know(link.block());
                record.facts.reverted.push((t, number, id));
            }
            Event::BlockRefused(why) if matches!(**why, BlockRejected::NotChained { .. }) => {
                if let Some(push) = record.pushing {
                    record.facts.pushes[push].accepted = false;
                }
            }
            Event::HealthChecked { peers, forked } => {
                let forked = *peers > 0 && f64::from(*forked) >= FORKED * f64::from(*peers);
                let check = HealthCheck { t, node: number, ms: 0.0, forked, blocks_to_rollback: None };
                record.facts.health_checks.push(check);
            }
            Event::PeerAdded(peer) | Event::PeerRemoved(peer) => {
                let kind = match event {
                    Event::PeerAdded(_) => PeerEventKind::Added,
                    _ => PeerEventKind::Removed,
                };
                record.facts.peers.push(PeerEvent { t, node: number, kind, peer: peer.0 + 1 });
            }
            _ => {}
        }
    }

    fn wants_acts(&self) -> bool {
        true
    }

    fn observe_act(&mut self, now: SimTime, actor: ActorId, act: &Act<'_>) {
        let Act::Hears { local, what } = act else { return };
        let mut record = self.0.lock().expect("no thread died");
        record.local.insert(actor.node, *local);
        record.pushing = None;
        match what {
            Heard::Message { from, message } => record.hears(now, actor, *from, message),
            Heard::Input(Input::Message { from, message }) => record.hears(now, actor, *from, message),
            Heard::Input(_) | Heard::Wake(_) | Heard::Begins | Heard::Deviates { .. } | Heard::Learns => {}
        }
    }
}
