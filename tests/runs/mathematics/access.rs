//! Uplinks, downlinks and processors in whole runs: blocks arrive when the fluid model says, a rate that is too high to be felt changes
//! nothing, and a run continues from the bytes of any moment as it would have without them.

use super::{arrivals, scenario};
use dposlab::{
    actors::{Event, Message, NodeId, SimTime, message::Inquiry},
    ledger::codec::Saver,
    scenario::{Scenario, StageKind},
    sim::{
        Digest, NetworkEvent, NetworkModel, Observer, SeedTree, TraceDigest, stage::inline::InlineStage, world::Moment,
    },
};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

/// The time and node of each block's forging, and of each node that received it.
type Heard = BTreeMap<String, (Option<(SimTime, NodeId)>, Vec<(SimTime, NodeId)>)>;

#[derive(Clone, Default)]
struct Blocks(Arc<Mutex<Heard>>);

impl Observer for Blocks {
    fn observe(&mut self, now: SimTime, node: NodeId, event: &Event) {
        let mut blocks = self.0.lock().expect("nobody panics with it");
        match event {
            Event::BlockForged(block) => blocks.entry(block.id.to_string()).or_default().0 = Some((now, node)),
            Event::BlockReceived(block) => blocks.entry(block.id.to_string()).or_default().1.push((now, node)),
            _ => {}
        }
    }
}

const NODES: u32 = 9;
/// The latency of each message \[ms\].
const LATENCY: f64 = 50.0;

fn network(more: &str) -> Scenario {
    scenario(&format!(
        "rounds = 3\n[network]\ndelegates = {NODES}\nlatency = {{ distribution = 'constant', ms = {LATENCY} }}\n\
         block_bytes = 100000\n{more}\n"
    ))
}

/// The milliseconds from the forging of each block until each other node has it, in the order of arrival.
fn times(more: &str) -> Vec<Vec<f64>> {
    let scenario = network(more);
    let seeds = SeedTree::new(7);
    let plan = scenario.plan(&scenario.testnet(seeds), seeds);
    let blocks = Blocks::default();
    scenario.play_inline(&plan, vec![Box::new(blocks.clone())], |_| true);
    let blocks = blocks.0.lock().expect("it is over");
    let times = blocks.values().filter_map(|(forged, heard)| {
        let (forged, forger) = (*forged)?;
        let heard = heard.iter().filter(|(_, node)| *node != forger);
        let all: Vec<f64> = heard.map(|(at, _)| at.since(forged).as_secs_f64() * 1e3).collect();
        (all.len() == NODES as usize - 1).then_some(all)
    });
    let times: Vec<Vec<f64>> = times.collect();
    assert!(times.len() >= 20, "{} blocks reached everybody", times.len());
    times
}

/// Asserts that each copy of a block arrives at the time that `wanted` gives for its number, from 1 on. Pings of other nodes, which
/// share the links, delay it by less than 3 ms.
#[track_caller]
fn arrive(more: &str, wanted: impl Fn(f64) -> f64) {
    arrive_within(more, 3.0, wanted);
}

/// Asserts that each copy of a block arrives at the time that `wanted` gives for its number, or less than `late` milliseconds after it.
#[track_caller]
fn arrive_within(more: &str, late: f64, wanted: impl Fn(f64) -> f64) {
    for all in times(more) {
        for (number, found) in (1_u32..).zip(&all) {
            let wanted = wanted(f64::from(number));
            assert!(
                (-1e-6..late).contains(&(found - wanted)),
                "copy {number} after {found} ms, {wanted} expected: {more}"
            );
        }
    }
}

#[test]
fn copies_of_a_block_arrive_as_the_fluid_model_says() {
    let others = f64::from(NODES - 1);
    // 100 ms for a block over an uplink of a megabyte a second.
    arrive("uplink = 1000000", |number| LATENCY + 100.0 * number);
    arrive("uplink = 1000000\nsharing = 'fair'", |_| LATENCY + 100.0 * others);
    // Each receiver has a downlink of its own.
    arrive("downlink = 1000000", |_| LATENCY + 100.0);
    arrive("downlink = 1000000\nsharing = 'fair'", |_| LATENCY + 100.0);
    // The narrower end counts, and a downlink works while the uplink sends to others.
    arrive("uplink = 1000000\ndownlink = 2000000", |number| LATENCY + 100.0 * number);
    arrive("uplink = 2000000\ndownlink = 1000000", |number| LATENCY + 50.0 * number + 50.0);
    arrive("uplink = 1000000\ndownlink = 2000000\nsharing = 'fair'", |_| LATENCY + 100.0 * others);
    // A link's own bandwidth comes after the uplink that it shares with others.
    arrive("uplink = 1000000\nbandwidth = 1000000", |number| LATENCY + 100.0 * number + 100.0);
    arrive("uplink = 1600000\nbandwidth = 100000\nsharing = 'fair'", |_| LATENCY + 1_000.0);
}

#[test]
fn a_block_is_heard_when_it_is_validated_and_sent_when_it_is_forged() {
    let work = "block_us = 20000, byte_ns = 300";
    // 20 ms, and 100,000 bytes of 300 ns.
    arrive_within(&format!("processor = {{ validate = {{ {work} }} }}"), 0.001, |_| LATENCY + 50.0);
    // The forging itself comes before the block is there.
    arrive_within(&format!("processor = {{ forge = {{ {work} }} }}"), 0.001, |_| LATENCY + 50.0);
    let both = format!("processor = {{ forge = {{ {work} }}, validate = {{ {work} }} }}\nuplink = 1000000");
    arrive(&both, |number| LATENCY + 50.0 + 100.0 * number + 50.0);
}

/// A byte takes the nodes of the second class twice the time.
#[test]
fn uplinks_and_downlinks_differ_by_class() {
    let by_class = |more: &str| times(&format!("classes = {{ shares = [1, 1] }}\n{more}"));
    let first = |all: Vec<Vec<f64>>| all.into_iter().map(|of| of[0] - LATENCY).collect::<Vec<f64>>();
    let (up, down) = (first(by_class("uplink = [1000000, 500000]")), by_class("downlink = [1000000, 500000]"));
    for ms in &up {
        assert!((ms - 100.0).abs() < 3.0 || (ms - 200.0).abs() < 3.0, "{up:?}");
    }
    assert!(up.iter().any(|ms| *ms < 150.0) && up.iter().any(|ms| *ms > 150.0), "{up:?}");
    for of in &down {
        let late = of.iter().filter(|ms| **ms > LATENCY + 150.0).count();
        assert!((1..of.len()).contains(&late), "{of:?}");
    }
}

/// A message takes 10 ms from a node of the first region and 30 ms from one of the second, and over 100 ms more by the uplink of the second
/// class. The class of a node says nothing of its region, and neither says anything of the next node.
#[test]
fn drawn_classes_and_regions_are_independent() {
    const NODES: u32 = 20_000;
    let model: NetworkModel = toml::from_str(
        "uplink = [1000000000, 1000]\nclasses = { shares = [1, 1], drawn = true }\n\
         regions = { shares = [1, 1], drawn = true, latency_ms = [[10, 10], [30, 30]] }",
    )
    .expect("it is one");
    let mut network = super::network(NODES, &model, 1);
    let mut sent = |node| {
        let at = arrivals(network.route(SimTime::default(), NodeId(node), NodeId(node ^ 1), &Message::StatusRequest));
        at[0].micros() as f64 / 1e3
    };
    let times: Vec<f64> = (0..NODES).map(&mut sent).collect();
    let slow = times.iter().copied().filter(|ms| *ms > 100.0).fold(f64::INFINITY, f64::min);
    let drawn: Vec<[bool; 2]> = times
        .iter()
        .map(|ms| {
            let is_slow = *ms > 100.0;
            [is_slow, ms - if is_slow { slow } else { 10.0 } > 10.0]
        })
        .collect();
    let share = |what: &str, is: &dyn Fn(usize) -> bool| {
        let found = (1..drawn.len()).filter(|node| is(*node)).count() as f64 / drawn.len() as f64;
        assert!((found - 0.25).abs() < 0.0123, "{what}: {found}, four standard errors are 0.0123");
    };
    for (a, b) in [(false, false), (false, true), (true, false), (true, true)] {
        share("class and region", &|node| drawn[node] == [a, b]);
        share("the class of a node and of the one before", &|node| (drawn[node - 1][0], drawn[node][0]) == (a, b));
        share("the region of a node and of the one before", &|node| (drawn[node - 1][1], drawn[node][1]) == (a, b));
    }
}

/// Three regions by list: node 0, which forges first, is in region 0; its messages take what the row of its region says. Classes beside them
/// decide processors, and regions go on deciding links.
#[test]
fn regions_decide_latency_bandwidth_and_processor_by_direction() {
    let regions = "[network.regions]\nnodes = [0, 1, 2, 0, 1, 2, 0, 1, 2]\nlatency_ms = [[10, 20, 30], [40, 50, 60], [70, 80, 90]]\n";
    let rates = "bandwidth = [[1000000, 500000, 250000], [200000, 125000, 100000], [80000, 62500, 50000]]\n";
    let work = |us: u32| format!("{{ validate = {{ block_us = {us} }} }}");
    let processor = format!("processor = [{}, {}, {{}}]\n", work(3_000), work(5_000));
    let classes = "classes = { nodes = [0, 0, 0, 1, 1, 1, 2, 2, 2] }\n";
    for (with_rates, with_work, with_classes) in
        [(false, false, false), (true, false, false), (false, true, false), (true, true, false), (true, true, true)]
    {
        let part = |is_there: bool, text| if is_there { text } else { "" };
        let more =
            [part(with_work, &processor), part(with_classes, classes), regions, part(with_rates, rates)].concat();
        let text = format!("rounds = 3\n[network]\ndelegates = {NODES}\nblock_bytes = 100000\n{more}");
        let scenario = scenario(&text);
        let seeds = SeedTree::new(7);
        let plan = scenario.plan(&scenario.testnet(seeds), seeds);
        let blocks = Blocks::default();
        scenario.play_inline(&plan, vec![Box::new(blocks.clone())], |_| true);
        let mut compared = 0;
        for (forged, heard) in blocks.0.lock().expect("it is over").values() {
            let Some((forged, forger)) = *forged else { continue };
            for (at, node) in heard.iter().filter(|(_, node)| *node != forger) {
                let (from, to) = (forger.0 % 3, node.0 % 3);
                let latency = f64::from(10 * (3 * from + to + 1));
                // Rates of a million bytes per second, divided by 1, 2, 4, 5, 8, 10, 12.5, 16 and 20.
                let slower = [1.0, 2.0, 4.0, 5.0, 8.0, 10.0, 12.5, 16.0, 20.0][(3 * from + to) as usize];
                let transfer = if with_rates { 100.0 * slower } else { 0.0 };
                let class = if with_classes { node.0 / 3 } else { to };
                let work = if with_work { [3.0, 5.0, 0.0][class as usize] } else { 0.0 };
                let found = at.since(forged).as_secs_f64() * 1e3;
                // Pings share the links, and one takes a few milliseconds on the slowest.
                let late = found - latency - transfer - work;
                assert!((-1e-6..120.0).contains(&late), "{forger} to {node} after {found} ms, {late} ms late: {more}");
                compared += usize::from(late < if with_rates { 10.0 } else { 1e-3 });
            }
        }
        assert!(compared > 100, "{compared} arrivals on time: {more}");
    }
}

/// The requests for blocks and their answers, as they leave.
#[derive(Clone, Default)]
struct Downloads(Arc<Mutex<Vec<Download>>>);

/// The time, the sender, the receiver and the number of the inquiry; and the number of blocks of an answer.
type Download = (SimTime, NodeId, NodeId, Inquiry, Option<usize>);

impl Observer for Downloads {
    fn observe(&mut self, _now: SimTime, _node: NodeId, _event: &Event) {}

    fn observe_network(&mut self, now: SimTime, event: &NetworkEvent<'_>) {
        let NetworkEvent::Sent { from, to, message, .. } = event else { return };
        let (inquiry, blocks) = match message {
            Message::BlocksRequest { inquiry, .. } => (*inquiry, None),
            Message::Blocks { inquiry, blocks, .. } => (*inquiry, Some(blocks.len())),
            _ => return,
        };
        self.0.lock().expect("no observer panics").push((now, from.node, to.node, inquiry, blocks));
    }

    fn wants_messages(&self) -> bool {
        true
    }
}

#[test]
fn an_answer_with_blocks_leaves_when_it_is_made() {
    let crash = "[[fault]]\nkind = 'crash'\nnodes = [3]\nfrom = { slot = 4 }\nuntil = { slot = 9 }";
    for (serve, milliseconds) in [("", 0.0), ("processor = { serve = { block_us = 4000, byte_ns = 30 } }", 7.0)] {
        let scenario = network(&format!("{serve}\n{crash}"));
        let seeds = SeedTree::new(7);
        let plan = scenario.plan(&scenario.testnet(seeds), seeds);
        let downloads = Downloads::default();
        scenario.play_inline(&plan, vec![Box::new(downloads.clone())], |_| true);
        let all = downloads.0.lock().expect("no observer panics");
        let mut served = 0;
        for (at, from, to, inquiry, blocks) in &*all {
            let Some(blocks) = blocks else { continue };
            let asked = all.iter().find(|(_, asking, asked, number, answer)| {
                (asking, asked, number) == (to, from, inquiry) && answer.is_none()
            });
            let (asked, ..) = asked.expect("each answer has its request");
            let wanted = LATENCY + *blocks as f64 * milliseconds;
            let found = at.since(*asked).as_secs_f64() * 1e3;
            assert!((found - wanted).abs() < 1e-6, "{blocks} blocks after {found} ms, {wanted} expected: {serve}");
            served += blocks;
        }
        assert!(served >= 3, "{served} blocks were served");
    }
}

/// A network with all kinds of fates of messages: lost, doubled, cut off, and sent to nodes that are down or stand still.
const BUSY: &str = "topology = { regular = 4 }\ngossip = 'reference'\nduplication = 0.1\nloss = 0.02\n\
    [[network.links]]\nbetween = [0, 1]\nlatency = { min_ms = 5, max_ms = 9 }\n\
    [[fault]]\nkind = 'partition'\ngroups = [[0, 1, 2]]\nfrom = { slot = 6 }\nuntil = { slot = 9 }\n\
    [[fault]]\nkind = 'crash'\nnodes = [4]\nfrom = { slot = 11 }\nuntil = { slot = 13 }\n\
    [[fault]]\nkind = 'pause'\nnodes = [5]\nfrom = { slot = 14 }\nuntil = { slot = 15 }\n\
    [[fault]]\nkind = 'duplicate'\ncopies = 2\nwithin_ms = 300\nfrom = { slot = 3 }\nuntil = { slot = 20 }\n";

fn digest(scenario: &Scenario, stage: StageKind) -> Digest {
    let seeds = SeedTree::new(7);
    let plan = scenario.plan(&scenario.testnet(seeds), seeds);
    let outcome = match stage {
        StageKind::Inline => scenario.play_inline(&plan, Vec::new(), |_| true),
        StageKind::Ractor => scenario.play(&plan, stage, Vec::new(), |_| {}).expect("no actor dies"),
    };
    outcome.digest
}

fn busy(more: &str) -> Scenario {
    network(&format!("{more}\n{BUSY}"))
}

const PROCESSOR: &str = "processor = { cores = 2, validate = { block_us = 90000 }, forge = { byte_ns = 2000 }, serve = { block_us = 300000 } }";

#[test]
fn rates_too_high_to_be_felt_give_the_digest_of_a_network_without_limits() {
    let wanted = digest(&busy(""), StageKind::Inline);
    for more in ["uplink = @", "downlink = @", "uplink = @\ndownlink = @"] {
        for sharing in ["fifo", "fair"] {
            let more = more.replace('@', &i64::MAX.to_string());
            let found = digest(&busy(&format!("{more}\nsharing = '{sharing}'")), StageKind::Inline);
            assert_eq!(found, wanted, "{more} {sharing}");
        }
    }
    assert_eq!(digest(&busy("processor = { cores = 3 }"), StageKind::Inline), wanted);
    let limited = digest(&busy("uplink = 1000000"), StageKind::Inline);
    assert_ne!(limited, wanted, "a limit is felt");
    assert_ne!(digest(&busy(PROCESSOR), StageKind::Inline), wanted, "work is felt");
    assert_ne!(digest(&busy("uplink = 1000000\nsharing = 'fair'"), StageKind::Inline), limited);
}

/// Networks in which messages wait at each of the places where they can.
fn crowded() -> Vec<Scenario> {
    let rates = "uplink = 400000\ndownlink = 300000";
    let compact =
        "compact = { bytes = 9000, share = 0.7, nodes = [{ share = 1, lacks = 0.5, missing = [[0.2, 1], [0.6, 1]] }] }";
    let one = format!("{rates}\nsharing = 'one-at-a-time'\noverhead = {{ block_ms = 2, other_ms = 10 }}\n{compact}");
    let announced = [format!("{rates}\n{compact}\n{PROCESSOR}"), one, format!("{rates}\nsharing = 'fair'\n{compact}")];
    let announced = announced.map(|more| network(&format!("{more}\n{BUSY}").replace("'reference'", "'announce'")));
    let pushed = [rates, &format!("{rates}\nsharing = 'fair'\n{PROCESSOR}\nbandwidth = 200000"), PROCESSOR].map(busy);
    pushed.into_iter().chain(announced).collect()
}

#[test]
fn both_stages_play_crowded_networks_alike() {
    for scenario in crowded() {
        assert_eq!(
            digest(&scenario, StageKind::Inline),
            digest(&scenario, StageKind::Ractor),
            "{:?}",
            scenario.network
        );
    }
}

#[test]
fn a_crowded_run_continues_from_the_bytes_of_any_moment_as_it_would_have() {
    for scenario in crowded() {
        let seeds = SeedTree::new(7);
        let plan = scenario.plan(&scenario.testnet(seeds), seeds);
        let mut run = InlineStage::new(&plan, Vec::new());
        let (start, slot) = (plan.start.micros(), 8_000_000);
        // Instants all over a slot: blocks are forged, under way, validated and asked for.
        for part in 0..24_u64 {
            run.run_until(SimTime::from_micros(start + part * slot + (200_000 + part * 331_000) % slot));
            let bytes = run.moment().to_bytes().0;
            let moment = Moment::from_bytes(bytes.clone(), &plan, &[]).expect("it was written down");
            assert!(moment.to_bytes().0 == bytes, "part {part}: read and written down again: {:?}", scenario.network);
            let until = SimTime::from_micros(run.world().now().micros() + 2 * slot);
            let ends = [run.moment(), moment].map(|moment| {
                let mut again = InlineStage::at(&moment);
                let trace = TraceDigest::default();
                again.watch(Box::new(trace.clone()));
                again.run_until(until);
                let done = (trace.digest(), trace.events(), again.world().delivered(), again.world().tally());
                // Which values share memory is no part of what decides the run, and differs after reading.
                let mut out = Saver::of_what_is_ahead(&plan.tree, until.micros());
                again.moment().save(&mut out);
                (done, out.finish().0)
            });
            assert_eq!(ends[0].0, ends[1].0, "part {part}: {:?}", scenario.network);
            assert!(ends[0].1 == ends[1].1, "part {part}: the states at the end differ: {:?}", scenario.network);
        }
    }
}
