//! Published figures of protocols of this family, compared with simulated ones.
//!
//! Each study plays a network once for each of its seeds, or a rule alone if networks here do not have the set-up. Each claim is a
//! number that its source gives for exactly that set-up. Sources: docs/validation.md.

mod pushes;
mod races;

use super::statistics::{Distribution, DistributionReport};
use crate::{
    actors::{Event, NodeId, SimTime},
    ledger::{Link, finality::sample_chains},
    protocol::{BlockId, Height, Slot},
    scenario::{Override, Scenario},
    sim::{Observer, Plan, SeedTree, stage::inline::InlineStage},
    statistics::Interval,
    threads::on_threads,
};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    path::Path,
    sync::atomic::AtomicBool,
    sync::{Arc, Mutex, PoisonError},
};

/// A set-up and the claims about it.
pub(crate) struct Study {
    pub what: &'static str,
    /// It is played with the seeds from 1 to this one.
    pub seeds: u64,
    /// Plays the study with a seed. Returns a number for each claim, for each independent part of the run. A run is one part, but a run
    /// of a schedule that no seed changes has several.
    play: fn(u64) -> Vec<Vec<f64>>,
    claims: &'static [Claim],
}

/// A number from another source.
pub(crate) struct Claim {
    figure: &'static str,
    /// The source of the number.
    source: &'static str,
    expected: f64,
    /// The uncertainty of the number itself: half of its last digit, or 0 if it is exact.
    within: f64,
    /// True if the mean itself must lie within this uncertainty, regardless of its interval.
    is_margin: bool,
}

const fn claim(figure: &'static str, source: &'static str, expected: f64, within: f64) -> Claim {
    Claim { figure, source, expected, within, is_margin: false }
}

/// A figure of SimBlock. It comes from one drawn network, so the mean may be off by `within`.
const fn simblock(figure: &'static str, expected: f64, within: f64) -> Claim {
    Claim { figure, source: "SimBlock's code", expected, within, is_margin: true }
}

/// All studies.
pub(crate) fn studies() -> impl Iterator<Item = &'static Study> {
    STUDIES.iter().chain(&races::STUDIES).chain(&pushes::STUDIES)
}

static STUDIES: [Study; 17] = [
    Study {
        what: "EOS, 21 delegates, turns of 12",
        seeds: 2,
        play: |seed| below("eos", 21, 12, 5, seed),
        claims: &[
            claim("blocks to the last irreversible one, mean", "EOS's code and issues", 330.5, 0.0),
            claim("the least", "EOS's code", 325.0, 0.0),
            claim("the greatest", "EOS's code", 336.0, 0.0),
        ],
    },
    Study {
        what: "EOS, 21 delegates, turns of 1",
        seeds: 2,
        play: |seed| below("eos", 21, 1, 5, seed),
        claims: &[claim("blocks to the last irreversible one, mean", "EOS's code", 29.0, 0.0)],
    },
    Study {
        what: "EOS, 5 delegates, turns of 12",
        seeds: 2,
        play: |seed| below("eos", 5, 12, 5, seed),
        claims: &[claim("blocks to the last irreversible one, mean", "EOS's code", 66.5, 0.0)],
    },
    Study {
        what: "EOS, 51 delegates, turns of 1",
        seeds: 2,
        play: |seed| below("eos", 51, 1, 5, seed),
        claims: &[claim("blocks to the last irreversible one, mean", "EOS's code", 69.0, 0.0)],
    },
    Study {
        what: "EOS, 4 delegates, turns of 1",
        seeds: 2,
        play: |seed| below("eos", 4, 1, 5, seed),
        claims: &[claim("blocks to the last irreversible one, mean", "EOS's code", 5.0, 0.0)],
    },
    Study {
        what: "Tron, 27 delegates",
        seeds: 2,
        play: |seed| below("tron", 27, 1, 20, seed),
        claims: &[
            claim("blocks to the solidified one, mean", "Tron's code", 18.0, 0.0),
            claim("the least", "Tron's code", 18.0, 0.0),
            claim("the greatest", "Tron's code", 18.0, 0.0),
        ],
    },
    Study {
        what: "Tron, 27 delegates, 5 % of slots missed",
        seeds: 12,
        play: |seed| vec![vec![mean(&tron_in_slots(0.05, seed))]],
        claims: &[claim("slots to the solidified block, mean", "independent code", 19.03, 0.05)],
    },
    Study {
        what: "Lisk-BFT, 4 delegates",
        seeds: 1,
        play: |seed| delays(4, 24, 100, seed),
        claims: &[claim("blocks until one is final, mean", "independent code", 5.63, 0.005)],
    },
    Study {
        what: "Lisk-BFT, 21 delegates",
        seeds: 1,
        play: |seed| delays(21, 24, 40, seed),
        claims: &[claim("blocks until one is final, mean", "independent code", 33.6, 0.05)],
    },
    Study {
        what: "Lisk-BFT, 51 delegates",
        seeds: 1,
        play: |seed| delays(51, 24, 10, seed),
        claims: &[claim("blocks until one is final, mean", "independent code", 79.1, 0.05)],
    },
    Study {
        what: "Lisk-BFT, 101 delegates and 2 standing by; the rule on drawn rounds",
        seeds: 12,
        play: lisk,
        claims: &[
            claim(
                "blocks until the first of a round is final, mean",
                "LIP-0014 (155) and its closed form",
                154.75,
                0.005,
            ),
            claim("until any is final, mean", "independent code", 157.07, 0.2),
        ],
    },
    Study {
        what: "Lisk's 101 seats where 44 % of the coins vote",
        seeds: 2,
        play: lisk_votes,
        claims: &[
            claim("seats of one owner of 22.1 %, 101 votes a wallet", "LIP-0021, LIP-0023", 101.0, 0.0),
            claim("of one owner of 21.8 %", "closed form", 0.0, 0.0),
            claim("of 51 wallets with 22.1 %, one vote a wallet", "closed form", 51.0, 0.0),
        ],
    },
    Study {
        what: "51 delegates, each place of a round shuffled",
        seeds: 1,
        play: |seed| gaps("lisk", seed),
        claims: &[
            // Both slots are uniform over their rounds, so the gap is the length of a round plus a difference of two uniform numbers.
            claim("slots between two of one delegate, mean", "closed form", 51.0, 0.0),
            // Swapping each place with any place is not quite uniform: independent code gives 20.78.
            claim("their standard deviation", "closed form", 20.816_659_994_661_3, 0.04),
            claim("share of those up to 10", "closed form", 55.0 / 2_601.0, 0.0),
        ],
    },
    Study {
        what: "ARK, 51 delegates, its rounds, of which each fifth place is not shuffled",
        seeds: 1,
        play: |seed| gaps("reference", seed),
        claims: &[
            claim("slots between two of one delegate, mean", "closed form", 51.0, 0.0),
            claim("their standard deviation", "independent code", 20.35, 0.05),
        ],
    },
    Study {
        what: "ARK, 51 delegates, each off in 1.28 % of rounds",
        seeds: 12,
        play: |seed| vec![vec![missed(51, 0.0128, 60, seed)]],
        claims: &[claim("share of slots missed", "ARK's main net, 2017 to 2020", 0.0128, 0.000_05)],
    },
    Study {
        what: "SimBlock's defaults",
        seeds: 12,
        play: |seed| vec![arrivals(&[], seed).to_vec()],
        claims: &[
            simblock("milliseconds until half of the nodes have a block, mean of blocks", 906.0, 45.0),
            simblock("until nine in ten have it", 2_137.0, 107.0),
            simblock("until 99 in 100 have it", 3_728.0, 186.0),
        ],
    },
    Study {
        what: "SimBlock without compact blocks, Internet of 2015 and of 2019",
        seeds: 12,
        play: |seed| {
            let whole = "network.compact.share=0";
            let [of_2019, of_2015] =
                [arrivals(&[whole], seed), arrivals(&[&[whole], &INTERNET_2015[..]].concat(), seed)];
            vec![[&of_2015[..], &of_2019[..], &[100.0 * (1.0 - of_2019[1] / of_2015[1])]].concat()]
        },
        claims: &[
            simblock("2015: milliseconds until half of the nodes have a block, mean of blocks", 6_313.0, 316.0),
            simblock("2015: until nine in ten have it", 11_490.0, 575.0),
            simblock("2015: until 99 in 100 have it", 17_200.0, 860.0),
            simblock("2019: until half have it", 2_480.0, 124.0),
            simblock("2019: until nine in ten have it", 4_555.0, 228.0),
            simblock("2019: until 99 in 100 have it", 7_276.0, 364.0),
            simblock("less time for nine in ten in 2019 than in 2015, in percent", 60.4, 1.0),
        ],
    },
];

/// The differences between the studies and their sources.
pub(crate) const DIFFERS: [&str; 7] = [
    "Networks are full meshes of nodes with the default latency, one delegate on each, and nothing goes wrong \
     but what a study says. Slots are of 8 seconds: finality counts blocks and not seconds.",
    "Lisk has two delegates standing by in each round, who forge and do not vote. Networks here have none, so \
     these two figures come from the rule alone, on rounds that are drawn. The other figures of Lisk are of \
     networks.",
    "The closed form of gaps is of rounds in even order. The shuffle of every place (`rules.ledger.shuffle = \
     \"every-place\"`) swaps each place with any, which is nearly even. ARK Core 2.6 leaves each fifth place as \
     it is, so its gaps vary less: that figure is of independent code.",
    "The network of SimBlock is `scenarios/simblock.toml`, and the study of the Internet of 2015 replaces its \
     tables. Latencies, rates, regions, numbers of links, overheads, queues and compact blocks are those of \
     SimBlock's code. Four things differ. Miners become 300 delegates, one on each node. Each forges in a \
     slot of its own, so blocks come every ten minutes, where SimBlock's come after exponential times and \
     sometimes meet. Regions are dealt out in the order of the nodes, and links do not follow that order. \
     Times are in microseconds, where SimBlock rounds latencies to milliseconds. The time counts from the \
     forging, and is the time of the node with the quantile's rank.",
    "Where blocks race, nodes keep the blocks of other branches and forge without asking their peers \
     (`rules.node.keeps_branches`, `rules.node.forging_ping_ms = 0`), and a block comes to all of them at once. Slots are of one second, \
     or of three. EOS's are of half a second: the law counts slots. The leaders of Praos are known beforehand here, and weigh alike. Its law of \
     forks is that of Decker and Wattenhofer for such slots: no other delegate may own the slot of a block, nor one that \
     begins before it comes.",
    "LIP-0004 prints no figure of its gossip. So pushes are held against the closed form of an epidemic in which each node that has a \
     block sends it to the same number of others. The first block of each run counts: a later \
     one finds nodes that lack its parent.",
    "Figures that others measured in Bitcoin and Ethereum are not here.",
];

/// The Internet of 2015 in place of that of 2019: latencies in milliseconds, bytes per second, and shares of the nodes by region.
const INTERNET_2015: [&str; 4] = [
    "network.regions.latency_ms=[[36,119,255,310,154,208],[119,12,221,242,266,350],[255,221,137,347,256,269],\
     [310,242,347,99,172,278],[154,266,256,172,9,163],[208,350,269,278,163,22]]",
    "network.downlink=[3125000,3000000,812500,1250000,2187500,1750000]",
    "network.uplink=[587500,1012500,225000,662500,425000,650000]",
    "network.regions.shares=[0.3869,0.5159,0.0113,0.0574,0.0119,0.0166]",
];

/// A claim and the result of its study.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct ClaimResult {
    pub study: &'static str,
    pub figure: &'static str,
    pub source: &'static str,
    pub expected: f64,
    /// The uncertainty of the expected number itself.
    pub within: f64,
    /// The number of runs, or of independent parts of runs.
    pub samples: u64,
    /// The mean of the samples.
    pub found: f64,
    /// Student's interval of that mean. Empty if all samples are equal.
    pub confidence: Option<Interval>,
    /// True if the expected number, within its uncertainty, equals all samples or lies in the interval. A number of SimBlock must lie as
    /// close to the mean.
    pub holds: bool,
}

/// Plays these studies, on `jobs` threads. `None` if `stop` was set before the end. `progress` receives the number of finished runs.
///
/// # Panics
/// A run panics.
pub(crate) fn validate(
    studies: &[&Study],
    jobs: usize,
    stop: &AtomicBool,
    progress: impl Fn(usize) + Sync,
) -> Option<Vec<ClaimResult>> {
    let pieces: Vec<(usize, u64)> =
        studies.iter().enumerate().flat_map(|(study, of)| (1..=of.seeds).map(move |seed| (study, seed))).collect();
    let played = on_threads(pieces.len(), jobs, Some(stop), progress, |piece| {
        let (study, seed) = pieces[piece];
        (studies[study].play)(seed)
    })?;
    let mut values: BTreeMap<usize, Vec<Vec<f64>>> = BTreeMap::new();
    for ((study, _), of_run) in pieces.into_iter().zip(played) {
        values.entry(study).or_default().extend(of_run);
    }
    let held = values.iter().flat_map(|(study, runs)| {
        let of = studies[*study];
        of.claims.iter().enumerate().map(move |(index, claim)| hold(of.what, claim, runs.iter().map(|run| run[index])))
    });
    Some(held.collect())
}

fn hold(study: &'static str, claim: &Claim, values: impl Iterator<Item = f64>) -> ClaimResult {
    let of_runs = distribution(values);
    let (found, samples, confidence) = (of_runs.mean, of_runs.count, of_runs.confidence);
    let Interval { low, high } = confidence.unwrap_or(Interval { low: found, high: found });
    let Claim { figure, source, expected, within, is_margin } = *claim;
    // A quotient of sums of whole numbers is off by the last bit at most.
    let within_all = within + 1e-9;
    let holds = match is_margin {
        true => (found - expected).abs() <= within_all,
        false => low - within_all <= expected && expected <= high + within_all,
    };
    ClaimResult { study, figure, source, expected, within, samples, found, confidence, holds }
}

/// Plays a scenario slot by slot, until `look` returns false.
fn play(
    scenario: &Scenario,
    seed: u64,
    observer: Option<Box<dyn Observer>>,
    mut look: impl FnMut(&Plan, &InlineStage) -> bool,
) -> Plan {
    let seeds = SeedTree::new(seed);
    let plan = scenario.plan(&scenario.testnet(seeds), seeds);
    scenario.play_inline(&plan, observer.into_iter().collect(), |stage| look(&plan, stage));
    plan
}

fn parsed(text: &str) -> Scenario {
    Scenario::parse(text, Path::new("study")).expect("the studies are scenarios")
}

/// Plays a healthy network under these rules. Returns the result of `look` after each slot, from the winning tip, the height of its last
/// final block and the tip's slot.
fn healthy<T>(
    rules: &str,
    delegates: u32,
    more: &str,
    slots: u32,
    seed: u64,
    mut look: impl FnMut(&Arc<Link>, Height, Slot) -> T,
) -> Vec<T> {
    let text = format!(
        "version = 1\nrounds = 100000\ncrypto = \"modelled\"\n[network]\ndelegates = {delegates}\n[rules]\nbase = \"{rules}\"\n{more}"
    );
    let mut seen = Vec::new();
    play(&parsed(&text), seed, None, |plan, stage| {
        let tip = stage.world().tips().winning();
        let last_final = plan.tree.applied(tip).state.finality().height();
        seen.push(look(tip, last_final, plan.tree.slots().slot(tip.block().header.timestamp)));
        seen.len() < slots as usize
    });
    seen
}

/// The distance of the last final block from the tip after each of the last `rounds` rounds of slots: mean, least and greatest.
fn below(rules: &str, delegates: u32, turn: u32, rounds: u32, seed: u64) -> Vec<Vec<f64>> {
    let round = (delegates * turn) as usize;
    // By then blocks have become final for several rounds.
    let before = 8 * round;
    let slots = before as u32 + rounds * delegates * turn;
    let more = format!("ledger.slots_a_turn = {turn}\n");
    let seen = healthy(rules, delegates, &more, slots, seed, |tip, last_final, _| tip.height().0 - last_final.0);
    let counted: Vec<f64> = seen[before..].iter().copied().map(f64::from).collect();
    let (least, greatest) = (f64::INFINITY, f64::NEG_INFINITY);
    let ends = counted.iter().fold((least, greatest), |(low, high), value| (low.min(*value), high.max(*value)));
    vec![vec![mean(&counted), ends.0, ends.1]]
}

/// The distance in slots from each new block to the last solidified block, in a network that misses slots.
fn tron_in_slots(missed: f64, seed: u64) -> Vec<f64> {
    let (delegates, before) = (27, 216);
    let mut slots: BTreeMap<Height, Slot> = BTreeMap::new();
    let off = rounds_off(delegates, missed, 70, seed);
    let seen = healthy("tron", delegates, &off, before + 1_600, seed, |tip, last_final, slot| {
        let is_new = slots.insert(tip.height(), slot).is_none();
        let then = slots.get(&last_final).copied();
        then.filter(|_| is_new).map(|then| f64::from(slot.0 - then.0))
    });
    seen[before as usize..].iter().copied().flatten().collect()
}

/// The number of blocks after which a block became final: the mean of each of `parts` parts of `rounds` rounds.
fn delays(delegates: u32, parts: u32, rounds: u32, seed: u64) -> Vec<Vec<f64>> {
    let (first, part) = (4 * delegates, rounds * delegates);
    let mut before = Height::GENESIS;
    let mut of_parts = vec![Vec::new(); parts as usize];
    healthy("lisk", delegates, "", first + parts * part + 4 * delegates, seed, |tip, last_final, _| {
        for height in before.0 + 1..=last_final.0 {
            let index = (height > first).then(|| ((height - first - 1) / part) as usize);
            if let Some(delays) = index.and_then(|index| of_parts.get_mut(index)) {
                delays.push(f64::from(tip.height().0 - height));
            }
        }
        before = last_final;
    });
    of_parts.iter().map(|delays| vec![mean(delays)]).collect()
}

/// The seats of owners that vote for standby delegates, while all other voters vote for the active ones.
fn lisk_votes(seed: u64) -> Vec<Vec<f64>> {
    // 44 % of 125 million coins are 55 million.
    let full = "most = 101";
    vec![vec![
        seats(full, (1, 27_600_000), (10, 27_400_000), seed),
        seats(full, (1, 27_300_000), (10, 27_400_000), seed),
        seats("most = 1", (51, 27_600_000), (400, 27_400_000), seed),
    ]]
}

/// The number of seats, of 101, that the delegates of a cartel have once all votes count. `owners` and `stake` are the voters and coins of
/// the cartel, `others` and `rest` those of the other voters.
fn seats(votes: &str, (owners, stake): (u32, u32), (others, rest): (u32, u32), seed: u64) -> f64 {
    const SEATS: u32 = 101;
    // These coins are too few to matter, and enough to make the first delegates active before the others.
    let own: String = (0..2 * SEATS).map(|place| if place < SEATS { "2000000000," } else { "1000000000," }).collect();
    let text = format!(
        "version = 1\nrounds = 100\ncrypto = \"modelled\"\n[network]\ndelegates = {SEATS}\nstandby = {SEATS}\ngossip = \"once\"\n\
         vote_weights = {{ list = [{own}] }}\n[rules]\nledger.votes = {{ {votes} }}\n[[agents]]\nkind = \"cartel\"\nvoters = {owners}\n\
         stake = {stake}\ndelegates = {{ from = {SEATS}, to = {} }}\n[[agents]]\nkind = \"apathy\"\nvoters = {others}\nstake = {rest}\n",
        2 * SEATS - 1
    );
    let scenario = parsed(&text);
    let testnet = scenario.testnet(SeedTree::new(seed));
    let cartel: BTreeSet<_> = testnet.delegates[SEATS as usize..].iter().map(|one| *one.keys.public()).collect();
    let mut captured = 0;
    play(&scenario, seed, None, |plan, stage| {
        let tip = stage.world().tips().winning();
        let round = plan.tree.applied(tip).state.round().clone();
        captured = round.members.iter().filter(|member| cartel.contains(&member.public_key)).count();
        // All vote in the second and third round.
        tip.height().0 < 3 * SEATS
    });
    captured as f64
}

fn lisk(seed: u64) -> Vec<Vec<f64>> {
    let all = sample_chains::lisk(101, 2, 250, 0.0, seed);
    let firsts = all.iter().filter(|(height, _)| (height.0 - 2) % 103 == 0);
    let firsts: Vec<f64> = firsts.map(|(_, delay)| f64::from(*delay)).collect();
    let any: Vec<f64> = all.iter().map(|(_, delay)| f64::from(*delay)).collect();
    vec![vec![mean(&firsts), mean(&any)]]
}

/// The slots between two slots of one delegate, in parts of some rounds.
fn gaps(rules: &str, seed: u64) -> Vec<Vec<f64>> {
    let (delegates, parts, rounds) = (51, 12, 20);
    let mut last = BTreeMap::new();
    let mut of_parts = vec![Vec::new(); parts];
    let seen = healthy(rules, delegates, "", (parts as u32 * rounds + 1) * delegates, seed, |tip, _, slot| {
        (tip.block().header.generator, slot)
    });
    for (place, (forger, slot)) in seen.into_iter().enumerate() {
        let before = last.insert(forger, slot).filter(|before| *before != slot);
        // In the first round no delegate has forged before.
        let part = place.checked_sub(delegates as usize).map(|place| place / (rounds * delegates) as usize);
        if let (Some(before), Some(gaps)) = (before, part.and_then(|part| of_parts.get_mut(part))) {
            gaps.push(f64::from(slot.0 - before.0));
        }
    }
    let figures = of_parts.into_iter().map(|gaps| {
        let few = gaps.iter().filter(|gap| **gap <= 10.0).count() as f64 / gaps.len() as f64;
        let of_all = distribution(gaps.into_iter());
        vec![of_all.mean, of_all.deviation, few]
    });
    figures.collect()
}

/// The share of slots without a block, of a network of the reference whose delegates are off in rounds that are drawn.
fn missed(delegates: u32, share: f64, rounds: u32, seed: u64) -> f64 {
    let off = rounds_off(delegates, share, rounds + 2, seed);
    let seen = healthy("reference", delegates, &off, rounds * delegates, seed, |tip, _, slot| (tip.height().0, slot.0));
    let (first, last) = (seen[0], seen[seen.len() - 1]);
    1.0 - f64::from(last.0 - first.0) / f64::from(last.1 - first.1)
}

/// The milliseconds until half, nine in ten and 99 in 100 of SimBlock's nodes have a block on their chains, from its forging on: the means
/// of 60 blocks.
fn arrivals(set: &[&str], seed: u64) -> [f64; 3] {
    let set: Vec<Override> = set.iter().map(|one| one.parse().expect("the studies are scenarios")).collect();
    let text = include_str!("../../scenarios/simblock.toml");
    let scenario = Scenario::parse_with(text, Path::new("study"), &set).expect("the studies are scenarios");
    let seen = Arc::new(Mutex::new(BTreeMap::new()));
    let mut slots = 0;
    let plan = play(&scenario, seed, Some(Box::new(Arrivals(seen.clone()))), |_, _| {
        slots += 1;
        slots < 60
    });
    let blocks = seen.lock().unwrap_or_else(PoisonError::into_inner);
    let whole: Vec<&Vec<SimTime>> = blocks.values().filter(|times| times.len() == plan.nodes.len()).collect();
    // Only the last blocks may be under way at the end. If more are missing, a mean of the others would be of the quick ones.
    if whole.len() < 58 {
        return [f64::NAN; 3];
    }
    [0.5, 0.9, 0.99].map(|share| {
        let place = (share * plan.nodes.len() as f64).ceil() as usize - 1;
        let waits = whole.iter().map(|times| times[place].since(times[0]).as_secs_f64() * 1_000.0);
        mean(&waits.collect::<Vec<_>>())
    })
}

/// The instants at which each block arrived on the chains of nodes, the forger's first.
struct Arrivals(Arc<Mutex<BTreeMap<BlockId, Vec<SimTime>>>>);

impl Observer for Arrivals {
    fn observe(&mut self, now: SimTime, _: NodeId, event: &Event) {
        if let Event::BlockApplied(link) = event {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(link.id()).or_default().push(now);
        }
    }
}

/// The faults by which each delegate is offline in each round with probability `chance`.
fn rounds_off(delegates: u32, chance: f64, rounds: u32, seed: u64) -> String {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut text = String::new();
    for delegate in 0..delegates {
        let off: Vec<u32> = (1..=rounds).filter(|_| random.random_bool(chance)).collect();
        if !off.is_empty() {
            let fault = format!("[[fault]]\nkind = \"offline\"\ndelegates = [{delegate}]\nrounds = {off:?}\n");
            text.write_str(&fault).expect("a text takes all");
        }
    }
    text
}

fn distribution(values: impl Iterator<Item = f64>) -> DistributionReport {
    let mut all = Distribution::new();
    values.for_each(|value| all.add(value));
    all.report().expect("there are some")
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_holds_where_it_lies_within_the_runs() {
        let holds = |values: &[f64], expected: f64, within: f64| {
            hold("study", &claim("figure", "source", expected, within), values.iter().copied()).holds
        };
        assert!(holds(&[5.0, 5.0], 5.0, 0.0) && !holds(&[5.0, 5.0], 5.01, 0.0));
        assert!(holds(&[5.0, 5.0], 5.01, 0.02) && !holds(&[5.0, 5.0], 4.97, 0.02));
        // Student's interval of these is 2 to 4, rounded.
        let spread = [2.0, 3.0, 4.0, 2.5, 3.5];
        assert!(holds(&spread, 2.1, 0.0) && holds(&spread, 3.9, 0.0));
        assert!(!holds(&spread, 1.9, 0.0) && !holds(&spread, 4.1, 0.0));
        assert!(holds(&spread, 1.9, 0.2) && holds(&spread, 4.1, 0.2));
        let near = |expected: f64, within: f64| {
            hold("study", &simblock("figure", expected, within), spread.iter().copied()).holds
        };
        assert!(near(3.1, 0.2) && !near(3.3, 0.2) && !near(1.9, 0.2), "the mean is 3");
    }

    #[test]
    fn each_study_has_a_number_for_each_claim() {
        for study in studies() {
            assert!(study.seeds >= 1 && !study.claims.is_empty(), "{}", study.what);
        }
        assert_eq!(lisk(1)[0].len(), 2);
    }
}
