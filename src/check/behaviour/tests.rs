//! An honest run has nothing wrong with it; the same run told with one thing changed has.

use super::*;
use crate::{
    actors::Message,
    check::conduct,
    ledger::rules::PoolRules,
    protocol::Height,
    scenario::Scenario,
    sim::{SeedTree, stage::inline::InlineStage},
};
use std::{path::Path, time::Duration};

/// A crash, a partition, two blocks in some slots, and clients: every part of the model has something to judge.
const RUN: &str = r#"
version = 1
description = "behaviour"
rounds = 20
crypto = "modelled"

[rules]
base = "corrected"

[network]
delegates = 7
gossip = "reference"
latency = { min_ms = 20, max_ms = 90 }

[[fault]]
kind = "crash"
nodes = [6]
from = { seconds = 100.0 }
until = { seconds = 180.0 }

[[fault]]
kind = "partition"
groups = [[0, 1]]
from = { seconds = 300.0 }
until = { seconds = 420.0 }

[[fault]]
kind = "double-forge"
delegates = [3, 4]
from = { seconds = 480.0 }
until = { seconds = 640.0 }
"#;

/// A change to a deed before the model hears of it.
enum Alteration {
    AsIs,
    Not,
    Message(Message),
}

/// Something an actor did.
enum OutputRef<'a> {
    Sent(&'a Message),
    Told(&'a Event),
}

type Change = fn(&OutputRef<'_>) -> Alteration;

/// Tells the model a run with the first of some things changed.
struct Liar {
    model: Behaviour,
    change: Change,
    done: bool,
}

impl Liar {
    fn tell(&mut self, done: &OutputRef<'_>) -> Alteration {
        if self.done {
            return Alteration::AsIs;
        }
        let told = (self.change)(done);
        self.done = !matches!(told, Alteration::AsIs);
        told
    }
}

impl Observer for Liar {
    fn observe(&mut self, now: SimTime, node: NodeId, event: &Event) {
        match self.tell(&OutputRef::Told(event)) {
            Alteration::Not => {}
            Alteration::AsIs | Alteration::Message(_) => self.model.observe(now, node, event),
        }
    }

    fn observe_act(&mut self, now: SimTime, actor: ActorId, act: &Act<'_>) {
        if let Act::Sends { to, message } = act {
            match self.tell(&OutputRef::Sent(message)) {
                Alteration::Not => return,
                Alteration::Message(other) => {
                    return self.model.observe_act(now, actor, &Act::Sends { to: *to, message: &other });
                }
                Alteration::AsIs => {}
            }
        }
        self.model.observe_act(now, actor, act);
    }

    fn rest(&mut self) {
        self.model.rest();
    }

    fn wants_acts(&self) -> bool {
        true
    }
}

fn scenario() -> Scenario {
    let mut text = RUN.to_owned();
    for height in 4..70 {
        let (node, by, to) = (height % 7, height % 5 + 1, height % 9 + 1);
        text += &format!(
            "\n[[action]]\nheight = {height}\nnode = {node}\nby = \"account_{by}\"\ndoes = \"transfer\"\n\
             to = \"account_{to}\"\namount = 100000000\nfee = {}\n",
            10_000_000 + 1_000 * height
        );
    }
    Scenario::parse(&text, Path::new("behaviour")).expect("a scenario")
}

/// The model after a run with a change, and whether the change had an effect.
fn play(change: Change) -> (Behaviour, bool) {
    play_of(&scenario(), 1, change)
}

fn play_of(scenario: &Scenario, seed: u64, change: Change) -> (Behaviour, bool) {
    let testnet = scenario.testnet(SeedTree::new(seed));
    let plan = scenario.plan(&testnet, SeedTree::new(seed));
    let model = Behaviour::new(&plan, &BTreeSet::new());
    let liar = Arc::new(Mutex::new(Liar { model: model.clone(), change, done: false }));
    let mut stage = InlineStage::new(&plan, vec![Box::new(LiarObserver(liar.clone()))]);
    stage.run_until(plan.start + Duration::from_secs(900));
    let done = liar.lock().expect("no thread panics").done;
    (model, done)
}

/// Shows a run to a [`Liar`].
struct LiarObserver(Arc<Mutex<Liar>>);

impl Observer for LiarObserver {
    fn observe(&mut self, now: SimTime, node: NodeId, event: &Event) {
        self.0.lock().expect("no thread panics").observe(now, node, event);
    }

    fn observe_act(&mut self, now: SimTime, actor: ActorId, act: &Act<'_>) {
        self.0.lock().expect("no thread panics").observe_act(now, actor, act);
    }

    fn rest(&mut self) {
        self.0.lock().expect("no thread panics").rest();
    }

    fn wants_acts(&self) -> bool {
        true
    }
}

#[test]
fn an_honest_run_breaks_nothing_and_every_part_of_it_is_judged() {
    let (model, _) = play(|_| Alteration::AsIs);
    let breaches = model.breaches();
    assert!(breaches.is_empty(), "{breaches:?}");
    let judged = model.judged();
    let parts = [
        conduct::ANSWERED,
        conduct::LIMITED,
        conduct::TAKEN,
        conduct::PASSED_ON,
        conduct::TO_POOL,
        conduct::BATCHED,
        conduct::ROUND_TOLD,
        conduct::PINGED,
        conduct::COUNTED,
        conduct::DROPPED,
        conduct::ADDED,
        conduct::MET,
        conduct::DISCOVERED,
        conduct::ASKED,
        conduct::WOKEN,
        conduct::SEARCHED,
        conduct::RESTARTED,
        conduct::DECIDED,
        conduct::TURN,
        conduct::MADE,
        conduct::CHOSEN,
        conduct::ADMITTED,
        conduct::FOLLOWED,
    ];
    let never: Vec<&str> = parts.iter().map(|part| part.name).filter(|name| judged.of(name) == 0).collect();
    assert!(never.is_empty(), "never judged: {never:?}");
}

/// Peers that claim a tip that no node has are asked for headers, which uses up the questions for blocks: what a node asks for first
/// has to wait.
#[test]
fn a_first_download_may_be_held_back() {
    let text = "version = 1\nrounds = 14\ncrypto = \"modelled\"\n[network]\ndelegates = 4\n[rules]\nminimum_network_reach = 1\n\
        [[fault]]\nkind = \"partition\"\ngroups = [[0, 1, 2]]\nfrom = { seconds = 60 }\nuntil = { seconds = 150 }\n\
        [[fault]]\nkind = \"restart\"\nnodes = [3]\nfrom = { seconds = 152 }\n\
        [[fault]]\nkind = \"lie-about-tip\"\nnodes = [0, 1, 2]\nclaim = \"slot\"\nby = 1\nsigned = true\n\
        from = { seconds = 100 }\nuntil = { seconds = 300 }\n";
    let scenario = Scenario::parse(text, Path::new("held back")).expect("a scenario");
    for seed in 1..=8 {
        let (model, _) = play_of(&scenario, seed, |_| Alteration::AsIs);
        let of_node_3: Vec<_> = model.breaches().into_iter().filter(|breach| breach.node == NodeId(3)).collect();
        assert!(of_node_3.is_empty(), "seed {seed}: {of_node_3:?}");
    }
}

/// The model waits for an honest delegate as long as the rules have it wait.
#[test]
fn the_settling_time_of_the_rules_moves_the_deadline_of_a_turn() {
    for wait in ["settling_s = 4", "settling_s = 0\nforging_poll_ms = 0", "settling_s = 5\nforging_poll_ms = 1000"] {
        let text = format!(
            "version = 1\nrounds = 20\ncrypto = \"modelled\"\n[network]\ndelegates = 5\n[rules.node]\n{wait}\n"
        );
        let scenario = Scenario::parse(&text, Path::new("settling")).expect("a scenario");
        let (model, _) = play_of(&scenario, 1, |_| Alteration::AsIs);
        assert!(model.judged().of(conduct::TURN.name) > 100, "{wait}");
        assert!(model.breaches().is_empty(), "{wait}: {:?}", model.breaches());
    }
}

#[test]
fn the_least_fee_is_that_of_the_pools_rules() {
    let scenario = scenario();
    let testnet = scenario.testnet(SeedTree::new(1));
    let plan = scenario.plan(&testnet, SeedTree::new(1));
    let mut stage = InlineStage::new(&plan, Vec::new());
    stage.run_until(plan.start + Duration::from_secs(300));
    let tip = stage.world().tips().winning().clone();
    let chain = std::iter::successors(Some(tip), |link| link.parent());
    let held: Vec<_> = chain.flat_map(|link| link.block().transactions.clone()).collect();
    let odd = held.iter().filter(|one| one.size() % 2 == 1).count();
    assert!(odd > 0 && odd < held.len(), "{odd} of {}", held.len());
    for half in [true, false] {
        let rules = PoolRules { fees_count_half_size: half, ..PoolRules::reference() };
        for one in &held {
            assert_eq!(admission::least_fee(&rules, one, 1_000), rules.least_fee(one, 1_000), "{}", one.id());
        }
    }
}

/// Says nothing of the first message that is meant.
macro_rules! unsaid {
    ($pattern:pat) => {
        |done| match done {
            OutputRef::Sent($pattern) => Alteration::Not,
            _ => Alteration::AsIs,
        }
    };
}

/// Says nothing of the first event that is meant.
macro_rules! untold {
    ($pattern:pat) => {
        |done| match done {
            OutputRef::Told($pattern) => Alteration::Not,
            _ => Alteration::AsIs,
        }
    };
}

#[test]
fn one_wrong_step_is_caught_and_named() {
    let wrong: [(&str, Change, &Conduct); 19] = [
        ("a question is not answered", unsaid!(Message::Status { .. }), &conduct::ANSWERED),
        (
            "an answer is a block short",
            |done| match done {
                OutputRef::Sent(Message::Blocks { inquiry, height, blocks }) if blocks.len() > 1 => {
                    let blocks = blocks[..blocks.len() - 1].into();
                    Alteration::Message(Message::Blocks { inquiry: *inquiry, height: *height, blocks })
                }
                _ => Alteration::AsIs,
            },
            &conduct::ANSWERED,
        ),
        (
            "a height is that of the block before",
            |done| match done {
                OutputRef::Sent(Message::CommonBlocks { inquiry, height, common }) => {
                    Alteration::Message(Message::CommonBlocks {
                        inquiry: *inquiry,
                        height: Height(height.0 - 1),
                        common: common.clone(),
                    })
                }
                _ => Alteration::AsIs,
            },
            &conduct::ANSWERED,
        ),
        (
            "a caller within its limits is hung up on",
            |done| match done {
                OutputRef::Sent(Message::Status { .. }) => Alteration::Message(Message::HungUp),
                _ => Alteration::AsIs,
            },
            &conduct::LIMITED,
        ),
        ("a block goes to all but one", unsaid!(Message::Block(_)), &conduct::PASSED_ON),
        ("a block that fits is not taken", untold!(Event::BlockReceived(_)), &conduct::TAKEN),
        ("transactions go to all but one", unsaid!(Message::Transactions(_)), &conduct::BATCHED),
        ("the pool does not hear of a block", unsaid!(Message::TipMoved { .. }), &conduct::TO_POOL),
        ("the delegate does not hear of a round", unsaid!(Message::RoundChanged(_)), &conduct::ROUND_TOLD),
        ("a ping leaves one out", unsaid!(Message::StatusRequest), &conduct::PINGED),
        (
            "a relay counts itself",
            |done| match done {
                OutputRef::Sent(Message::NetworkState(state)) => {
                    let mut state = state.clone();
                    state.in_quorum += 1;
                    Alteration::Message(Message::NetworkState(state))
                }
                _ => Alteration::AsIs,
            },
            &conduct::COUNTED,
        ),
        ("a peer that fails stays", untold!(Event::PeerRemoved(_)), &conduct::DROPPED),
        ("a peer that passes is not added", untold!(Event::PeerAdded(_)), &conduct::ADDED),
        ("no peer is asked for peers", unsaid!(Message::PeersRequest), &conduct::DISCOVERED),
        ("a delegate makes a block without asking", unsaid!(Message::NetworkStateRequest), &conduct::MADE),
        ("a delegate with a quorum does not forge", unsaid!(Message::ForgingTransactionsRequest), &conduct::DECIDED),
        ("a block is not handed in", unsaid!(Message::Forged(_)), &conduct::MADE),
        (
            "nothing is chosen",
            |done| match done {
                OutputRef::Sent(Message::ForgingTransactions(chosen)) if !chosen.is_empty() => {
                    Alteration::Message(Message::ForgingTransactions(Arc::new([])))
                }
                _ => Alteration::AsIs,
            },
            &conduct::CHOSEN,
        ),
        ("what was taken is not told", untold!(Event::PoolAdded(_)), &conduct::ADMITTED),
    ];
    for (what, change, expected) in wrong {
        let (model, changed) = play(change);
        assert!(changed, "{what}: it never came to that");
        let found: Vec<&str> = model.breaches().iter().map(|breach| breach.conduct.name).collect();
        assert!(found.contains(&expected.name), "{what}: {found:?}");
    }
}
