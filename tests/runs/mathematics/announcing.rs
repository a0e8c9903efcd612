//! Blocks that are announced, asked for and sent one at a time: they arrive at the microsecond that the sum of their ways gives, in whole
//! and in compact form, and another announcer is asked if the first one does not answer.

use super::scenario;
use dposlab::{
    actors::{BodyPart, Event, Message, NodeId, SimTime},
    scenario::Scenario,
    sim::{NetworkEvent, Observer, SeedTree},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};

/// Milliseconds that an announcement or a question takes: latency and overhead.
const SMALL: f64 = 30.0 + 10.0;
/// Milliseconds that a block takes beside its size divided by the rate: overhead and latency.
const LARGE: f64 = 2.0 + 30.0;
/// Milliseconds of 100,000 bytes at the smaller of both rates.
const SIZE: f64 = 100.0;

fn network(delegates: u32, more: &str) -> Scenario {
    scenario(&format!(
        "rounds = 4\n[rules.node]\nbody_timeout_s = 3\n[network]\ndelegates = {delegates}\ngossip = 'announce'\n\
         latency = {{ distribution = 'constant', ms = 30 }}\nblock_bytes = 99872\nuplink = 1000000\ndownlink = 2000000\n\
         sharing = 'one-at-a-time'\noverhead = {{ block_ms = 2, other_ms = 10 }}\n{more}\n"
    ))
}

/// The blocks of a run by their ids: the forger and its instant, and the nodes that took them in later.
type Heard = BTreeMap<String, (Option<(SimTime, NodeId)>, Vec<(SimTime, NodeId)>)>;

/// A block that a node sends to another one, or what that one lacks of it.
type Sent = (NodeId, NodeId, BodyPart);

#[derive(Clone, Default)]
struct Blocks(Arc<Mutex<(Heard, Vec<Sent>)>>);

impl Observer for Blocks {
    fn observe(&mut self, now: SimTime, node: NodeId, event: &Event) {
        let mut seen = self.0.lock().expect("no observer panics");
        match event {
            Event::BlockForged(block) => seen.0.entry(block.id.to_string()).or_default().0 = Some((now, node)),
            Event::BlockApplied(link) => seen.0.entry(link.id().to_string()).or_default().1.push((now, node)),
            _ => {}
        }
    }

    fn observe_network(&mut self, _: SimTime, event: &NetworkEvent<'_>) {
        if let NetworkEvent::Sent { from, to, message: Message::Body { part, .. }, .. } = event {
            self.0.lock().expect("no observer panics").1.push((from.node, to.node, *part));
        }
    }

    fn wants_messages(&self) -> bool {
        true
    }
}

/// A block's forger, the second of its forging, and the milliseconds from there to its arrival at each other node.
type Spread = (NodeId, u64, BTreeMap<NodeId, f64>);

/// The ways of all blocks, and what was sent of them.
fn played(scenario: &Scenario) -> (Vec<Spread>, Vec<Sent>) {
    let seeds = SeedTree::new(7);
    let plan = scenario.plan(&scenario.testnet(seeds), seeds);
    let blocks = Blocks::default();
    scenario.play_inline(&plan, vec![Box::new(blocks.clone())], |_| true);
    let seen = blocks.0.lock().expect("it is over");
    let all = seen.0.values().filter_map(|(forged, heard)| {
        let (forged, forger) = (*forged)?;
        let after = |(at, node): &(SimTime, NodeId)| (*node, at.since(forged).as_secs_f64() * 1e3);
        let others = heard.iter().filter(|(_, node)| *node != forger).map(after).collect();
        Some((forger, forged.since(plan.start).as_secs(), others))
    });
    (all.collect(), seen.1.clone())
}

fn near(found: f64, wanted: f64) -> bool {
    (found - wanted).abs() < 0.0015
}

const LINE: &str = "topology = { edges = [[0, 1], [1, 2], [2, 3]] }";

/// Asserts that each hop of a line takes so many milliseconds, of blocks that its first node forges.
fn each_hop_takes(more: &str, wanted: f64) {
    let (all, _) = played(&network(4, &format!("{LINE}\n{more}")));
    let of_first: Vec<_> = all.iter().filter(|(forger, ..)| forger.0 == 0).collect();
    assert!(of_first.len() >= 3, "{} blocks", of_first.len());
    for (.., times) in of_first {
        for hops in 1..4 {
            let found = times[&NodeId(hops)];
            assert!(near(found, f64::from(hops) * wanted), "{hops} hops take {found} ms, one {wanted}: {more}");
        }
    }
}

#[test]
fn an_announced_block_takes_two_small_messages_and_itself() {
    each_hop_takes("", 2.0 * SMALL + SIZE + LARGE);
}

#[test]
fn a_compact_block_takes_its_own_size_and_what_is_missing_comes_after_a_question() {
    let compact = |share: f64, lacks: f64| {
        format!(
            "compact = {{ bytes = 10000, share = {share}, nodes = [{{ share = 1, lacks = {lacks}, missing = [[0.5, 3], [0.9, 0]] }}] }}"
        )
    };
    let whole = 2.0 * SMALL + 10.0 + LARGE;
    each_hop_takes(&compact(1.0, 0.0), whole);
    // Half of 99,872 bytes at a megabyte a second.
    each_hop_takes(&compact(1.0, 1.0), whole + SMALL + 49.936 + LARGE);
    each_hop_takes(&compact(0.0, 1.0), 2.0 * SMALL + SIZE + LARGE);
}

#[test]
fn a_node_sends_one_block_at_a_time() {
    let (all, _) = played(&network(6, "topology = 'star'"));
    let of_centre: Vec<_> = all.iter().filter(|(forger, ..)| forger.0 == 0).collect();
    assert!(of_centre.len() >= 3, "{} blocks", of_centre.len());
    for (.., times) in of_centre {
        let mut times: Vec<f64> = times.values().copied().collect();
        times.sort_by(f64::total_cmp);
        assert_eq!(times.len(), 5);
        for (number, found) in (1_u32..).zip(times) {
            let wanted = 2.0 * SMALL + f64::from(number) * (SIZE + LARGE);
            assert!(near(found, wanted), "number {number} after {found} ms, {wanted} expected");
        }
    }
}

/// Half of the nodes lack a part of half of the blocks, and one part is three times as frequent as the other.
#[test]
fn nodes_lack_parts_as_often_and_as_much_as_their_kind_says() {
    let compact = "compact = { bytes = 10000, share = 1, nodes = [{ share = 0.5, lacks = 0.5, missing = [[0.1, 3], [0.4, 1]] }, \
                   { share = 0.5, lacks = 0, missing = [[0.1, 3], [0.4, 1]] }] }";
    let (_, parts) = played(&network(40, compact));
    let count = |wanted: BodyPart| parts.iter().filter(|(.., part)| *part == wanted).count() as f64;
    let missing = |bytes| BodyPart::Missing { bytes };
    let (whole, few, many) = (count(BodyPart::Whole), count(missing(9_987)), count(missing(39_948)));
    assert!(whole > 4_000.0 && whole + few + many == parts.len() as f64, "{whole}, {few}, {many}");
    // Four standard deviations of independent draws.
    let is_share =
        |found: f64, of: f64, share: f64| (found - of * share).abs() < 4.0 * (of * share * (1.0 - share)).sqrt();
    assert!(is_share(few + many, whole, 0.25), "{few} and {many} of {whole}");
    assert!(is_share(many, few + many, 0.25), "{few} and {many}");
}

/// Two nodes of three always lack a part, and what the third one sends them is another part than what they send each other.
#[test]
fn the_receiver_lacks_a_part_and_the_sender_says_which() {
    let compact = "compact = { bytes = 10000, share = 1, nodes = [{ share = 0.667, lacks = 1, missing = [[0.1, 1]] }, \
                   { share = 0.333, lacks = 0, missing = [[0.4, 1]] }] }";
    let (_, sent) = played(&network(3, compact));
    let ways = |bytes: u32| -> BTreeSet<(NodeId, NodeId)> {
        let missing = sent.iter().filter(|(.., part)| *part == BodyPart::Missing { bytes });
        missing.map(|(from, to, _)| (*from, *to)).collect()
    };
    let (of_third, of_each_other) = (ways(39_948), ways(9_987));
    let senders: BTreeSet<_> = of_third.iter().map(|(from, _)| *from).collect();
    assert_eq!((senders.len(), of_third.len(), of_each_other.len()), (1, 2, 2), "{of_third:?}, {of_each_other:?}");
    assert!(of_each_other.iter().all(|(from, to)| !senders.contains(from) && !senders.contains(to)));
}

/// A block reaches node 2 a tenth of a second after its child, which that node then refuses and asks for again.
#[test]
fn a_block_that_comes_before_its_parent_is_asked_for_again() {
    let healthy = played(&network(3, "")).0;
    // By the second of their forging: a block of node 0, and the next one, of node 1.
    let mut in_order: Vec<&Spread> = healthy.iter().collect();
    in_order.sort_by_key(|(_, second, _)| *second);
    let pair = in_order.windows(2).find(|pair| (pair[0].0.0, pair[1].0.0) == (0, 1) && pair[1].1 - pair[0].1 < 16);
    let [(_, second, parent), (_, next, child)] = pair.expect("node 1 follows node 0 in some round") else {
        panic!("two")
    };
    let until = (next - second) as f64 * 1_000.0 + child[&NodeId(2)];
    let by_ms = (until - parent[&NodeId(2)] + 100.0).round();
    let slot = second / 8 + 1;
    // The second message from 0 to 2 in this slot: the first one announces the block.
    let late = format!(
        "[[fault]]\nkind = 'delay'\nmessages = ['block']\nsenders = [0]\nreceivers = [2]\nonly = 2\nby_ms = {by_ms}\n\
         from = {{ slot = {slot} }}\nuntil = {{ slot = {} }}",
        slot + 1
    );
    let mut scenario = network(3, &late);
    scenario.rules.insert("node".to_owned(), toml::Table::from_iter([("body_timeout_s".to_owned(), 20.into())]).into());
    let (all, sent) = played(&scenario);
    let times = |of: u64| &all.iter().find(|(_, at, _)| *at == of).expect("it is forged again").2;
    let (late, soon) = (times(*second)[&NodeId(2)], times(*next)[&NodeId(2)]);
    assert!(near(late, parent[&NodeId(2)] + by_ms), "{late}");
    assert!(
        soon > child[&NodeId(2)] + 99.0 && soon < child[&NodeId(2)] + 1_000.0,
        "{soon} after {}",
        child[&NodeId(2)]
    );
    let bodies = sent.iter().filter(|(_, to, _)| to.0 == 2).count();
    assert_eq!(bodies, played(&network(3, "")).1.iter().filter(|(_, to, _)| to.0 == 2).count() + 1);
}

/// Node 3 forges, node 0 passes the block on to 1 and 2, and the copy for node 1 is lost.
#[test]
fn a_node_asks_the_next_announcer_when_time_is_up() {
    let links = "topology = { edges = [[3, 0], [0, 1], [0, 2], [1, 2]] }";
    let healthy = played(&network(4, links)).0;
    let (_, second, times) = healthy.iter().find(|(forger, ..)| forger.0 == 3).expect("each delegate forges");
    let hop = 2.0 * SMALL + SIZE + LARGE;
    assert!(near(times[&NodeId(0)], hop), "{times:?}");
    // A run begins with slot 1.
    let slot = second / 8 + 1;
    // The second message from 0 to 1 in this slot: the first one announces the block.
    let lost = format!(
        "{links}\n[[fault]]\nkind = 'drop'\nmessages = ['block']\nsenders = [0]\nreceivers = [1]\nonly = 2\n\
         from = {{ slot = {slot} }}\nuntil = {{ slot = {} }}",
        slot + 1
    );
    let all = played(&network(4, &lost)).0;
    let (.., times) = all.iter().find(|(forger, at, _)| (forger.0, at) == (3, second)).expect("it is forged again");
    // Node 0 has the block, announces it and is asked; after three seconds node 2 is, which has nothing else to send.
    let wanted = hop + SMALL + 3_000.0 + SMALL + SIZE + LARGE;
    assert!(near(times[&NodeId(1)], wanted), "{times:?}, {wanted} expected");
}
