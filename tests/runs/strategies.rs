//! Strategies that look ahead or act together, held against what every message says: who could know what, and when.

use dposlab::{
    actors::{Event, Message, NodeId, SimTime},
    check::liveness::deviants,
    ledger::codec::{Save, Saver},
    protocol::Block,
    scenario::{Scenario, StageKind},
    sim::{NetworkEvent, Observer, SeedTree, stage::inline::InlineStage, world::Moment},
};
use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

/// Until then an honest block is passed on.
const HONEST: Duration = Duration::from_secs(2);

/// What a message between nodes says: the nodes, the instant, and the message.
type Sent = (SimTime, NodeId, NodeId, Message);

/// The node that forged each block, and when.
type Forged = BTreeMap<String, (NodeId, SimTime)>;

/// All messages between nodes, and the blocks.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<(Vec<Sent>, Forged)>>);

impl Observer for Heard {
    fn observe(&mut self, now: SimTime, node: NodeId, event: &Event) {
        if let Event::BlockForged(block) = event {
            self.0.lock().expect("nobody panics").1.insert(block.id.to_string(), (node, now));
        }
    }

    fn observe_network(&mut self, now: SimTime, event: &NetworkEvent<'_>) {
        if let NetworkEvent::Sent { from, to, message, .. } | NetworkEvent::Lost { from, to, message } = event
            && from.node != to.node
        {
            self.0.lock().expect("nobody panics").0.push((now, from.node, to.node, (*message).clone()));
        }
    }

    fn wants_messages(&self) -> bool {
        true
    }
}

fn played(text: &str, seed: u64) -> (Vec<Sent>, Forged) {
    let scenario = Scenario::parse(text, Path::new("strategy.toml")).expect("it is valid");
    let (seeds, heard) = (SeedTree::new(seed), Heard::default());
    let plan = scenario.plan(&scenario.testnet(seeds), seeds);
    let watch: Vec<Box<dyn Observer>> = vec![Box::new(heard.clone())];
    scenario.play(&plan, StageKind::Inline, watch, |_| {}).expect("no actor dies");
    let heard = std::mem::take(&mut *heard.0.lock().expect("nobody panics"));
    assert!(!heard.0.is_empty() && !heard.1.is_empty(), "or nothing is shown");
    heard
}

/// The blocks that a message shows, a pushed one apart.
fn shown(message: &Message) -> Vec<Arc<Block>> {
    match message {
        Message::Status { tip } => vec![tip.clone()],
        Message::Blocks { blocks, .. } => blocks.to_vec(),
        _ => Vec::new(),
    }
}

/// Nobody outside sees a private block of these members before one of them has pushed some of theirs to somebody outside. A block is
/// private after which the first is pushed there later than an honest one is passed on, or never. Returns how many there were, and
/// the most at once.
fn private_blocks(text: &str, seed: u64, members: &[u32]) -> (usize, usize) {
    let (sent, forged) = played(text, seed);
    let is_member = |node: NodeId| members.contains(&node.0);
    let outward = || sent.iter().filter(|(_, from, to, _)| is_member(*from) && !is_member(*to));
    let own = |block: &Block| forged.get(&block.id.to_string()).is_some_and(|(node, _)| is_member(*node));
    let pushes: Vec<SimTime> = outward()
        .filter(|(.., message)| matches!(message, Message::Block(block) if own(block)))
        .map(|(now, ..)| *now)
        .collect();
    // With the first push of any of theirs, all that were made before become known.
    let until = |id: &String| pushes.iter().copied().find(|now| *now >= forged[id].1);
    let private: BTreeMap<&String, (SimTime, Option<SimTime>)> = forged
        .iter()
        .filter(|(id, (node, at))| is_member(*node) && until(id).is_none_or(|until| until > *at + HONEST))
        .map(|(id, (_, at))| (id, (*at, until(id))))
        .collect();
    for (now, from, to, message) in outward() {
        for id in shown(message).iter().map(|block: &Arc<Block>| block.id.to_string()) {
            let is_known = private.get(&id).is_none_or(|(_, until)| until.is_some_and(|until| until <= *now));
            assert!(is_known, "seed {seed}, {now}: {from} shows {to} block {id}, which is private");
        }
    }
    let at_once = |at: SimTime| {
        private.values().filter(|(from, until)| *from <= at && until.is_none_or(|until| until > at)).count()
    };
    (private.len(), private.values().map(|(at, _)| at_once(*at)).max().unwrap_or(0))
}

const NETWORK: &str = "version = 1\nrounds = 7\ncrypto = 'modelled'\n[network]\ndelegates = 11\ngossip = 'reference'\n";

#[test]
fn a_coalition_shows_its_private_chain_to_its_members_alone() {
    let text = format!("{NETWORK}[[fault]]\nkind = 'coalition'\ndelegates = [0, 1, 2, 3]\nslots = 2\n");
    let (mut private, mut most) = (0, 0);
    for seed in 1..=4 {
        let (more, at_once) = private_blocks(&text, seed, &[0, 1, 2, 3]);
        (private, most) = (private + more, most.max(at_once));
    }
    assert!(private > 20 && most > 1, "{private} private blocks, at most {most} at once");
}

/// New actors of a member know what the coalition knows: its stored tip may be private.
#[test]
fn a_member_that_crashes_and_comes_back_keeps_the_secret() {
    let restart = |number: u32| {
        format!("[[fault]]\nkind = 'restart'\nnodes = [{}]\nfrom = {{ seconds = {} }}\n", number % 4, 60 + 23 * number)
    };
    let restarts: String = (0..16).map(restart).collect();
    let text = format!("{NETWORK}[[fault]]\nkind = 'coalition'\ndelegates = [0, 1, 2, 3]\nslots = 3\n{restarts}");
    let private: usize = (1..=4).map(|seed| private_blocks(&text, seed, &[0, 1, 2, 3]).0).sum();
    assert!(private > 20, "{private} private blocks");
}

#[test]
fn who_forges_ahead_shows_its_blocks_to_nobody_until_it_makes_them_known() {
    let text = "version = 1\nrounds = 14\ncrypto = 'modelled'\n[network]\ndelegates = 5\ngossip = 'reference'\n\
                [[fault]]\nkind = 'withhold-ahead'\ndelegates = [0]\nslots = 4\n";
    let private: usize = (1..=4).map(|seed| private_blocks(text, seed, &[0]).0).sum();
    assert!(private > 2, "{private} private blocks");
}

#[test]
fn who_is_eclipsed_by_answers_sees_the_attackers_as_they_stood_and_no_more() {
    let text = format!(
        "{NETWORK}topology = {{ ring = 2 }}\n[rules]\nminimum_network_reach = 3\n\
         [[fault]]\nkind = 'eclipse-answers'\nnodes = [1, 2]\nvictims = [0]\nfrom = {{ seconds = 100 }}\n"
    );
    let (sent, _) = played(&text, 1);
    let begins = sent[0].0.seconds().0 / 8 * 8 + 100;
    let (mut answers, mut others) = (0, 0);
    for (now, from, to, message) in &sent {
        if *to != NodeId(0) || now.seconds().0 < begins + 8 {
            continue;
        }
        let moved = shown(message).iter().filter(|block| block.header.timestamp.0 >= begins).count();
        if !matches!(from.0, 1 | 2) {
            others += moved + usize::from(matches!(message, Message::Block(_)));
            continue;
        }
        answers += usize::from(matches!(message, Message::Status { .. }));
        assert!(moved == 0 && !matches!(message, Message::Block(_)), "{now}: {from} says {message:?}");
        if let Message::Peers(peers) = message {
            assert!(peers.iter().all(|peer| matches!(peer.0, 1 | 2)), "{now}: {from} names {peers:?}");
        }
    }
    assert!(answers > 5 && others > 5, "{answers} answers of attackers, {others} blocks of others");
}

/// Victims keep the rules, and are judged: only who answers so is forgiven.
#[test]
fn who_is_deceived_is_no_deviant() {
    let text = format!("{NETWORK}[[fault]]\nkind = 'eclipse-answers'\nnodes = [1, 2]\nvictims = [3, 4]\n");
    let scenario = Scenario::parse(&text, Path::new("victims.toml")).expect("it is valid");
    assert_eq!(deviants(&scenario), [1, 2].map(NodeId).into());
}

/// A copy that draws anew does so at its spare forgers, too: nothing else draws here, and their polls lie elsewhere then.
#[test]
fn a_spare_forger_draws_anew_with_its_run() {
    let text = format!(
        "{NETWORK}latency = {{ distribution = 'constant', ms = 50 }}\n\
         [[fault]]\nkind = 'spare-forger'\ndelegates = [6]\nnodes = [11]\n"
    );
    let text = text.replace("delegates = 11\n", "delegates = 11\nrelays = 1\n");
    let scenario = Scenario::parse(&text, Path::new("spare.toml")).expect("it is valid");
    let seeds = SeedTree::new(3);
    let plan = scenario.plan(&scenario.testnet(seeds), seeds);
    let mut stage = InlineStage::new(&plan, Vec::new());
    stage.run_until(plan.start + Duration::from_secs(60));
    // The bytes of the spare forger alone, which are those of its node's delegate.
    let of_spare = |stage: &InlineStage| {
        let mut out = Saver::new(&plan.tree);
        stage.moment().actors()[3 * 11 + 2].save(&mut out);
        out.finish().0
    };
    let drawn = [8, 9].map(|seed| {
        let mut copy = InlineStage::at(&stage.moment());
        copy.draw_anew(SeedTree::new(seed));
        (of_spare(&copy), copy)
    });
    let [(one, _), (other, _)] = &drawn;
    let differing = one.iter().zip(other).filter(|(one, other)| one != other).count();
    // Three seeds of eight bytes: of the node's own forger, of the behaviour, and of the forger that it holds.
    assert!(differing > 2 * 8, "{differing} bytes differ");
}

/// A run that is copied in the middle goes on as the one it was copied of, with all that its behaviours remember.
#[test]
fn a_copy_of_a_run_with_behaviours_goes_on_alike() {
    let text = format!(
        "{NETWORK}[[fault]]\nkind = 'coalition'\ndelegates = [0, 1, 2, 3]\nslots = 3\n\
         [[fault]]\nkind = 'late-forging'\ndelegates = [5]\nby_ms = 2500\n[[fault]]\nkind = 'spare-forger'\ndelegates = [6]\nnodes = [7]\n"
    );
    let scenario = Scenario::parse(&text, Path::new("copied.toml")).expect("it is valid");
    let seeds = SeedTree::new(3);
    let plan = scenario.plan(&scenario.testnet(seeds), seeds);
    let tips = |moment: &Moment| moment.tips().all().map(|tip| tip.id()).collect::<Vec<_>>();
    let mut stage = InlineStage::new(&plan, Vec::new());
    // At some of these instants blocks are private, a block is kept until it is late, and a message of a spare forger is on its way.
    for second in (61..420_u64).step_by(17) {
        stage.run_until(plan.start + Duration::from_secs(second));
        let moment = stage.moment();
        // As bytes, too.
        let (bytes, _) = moment.to_bytes();
        let read = Moment::from_bytes(bytes.clone(), &plan, &[]).expect("its own bytes");
        assert_eq!(read.to_bytes().0, bytes, "at {second} s");
        let later = plan.start + Duration::from_secs(second + 120);
        let ends: Vec<_> = [moment, read]
            .into_iter()
            .map(|moment| {
                let mut copy = InlineStage::at(&moment);
                copy.run_until(later);
                (tips(&copy.moment()), copy.moment().delivered())
            })
            .collect();
        assert_eq!(ends[0], ends[1], "from {second} s on");
    }
}
