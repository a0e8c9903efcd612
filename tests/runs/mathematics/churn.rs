//! Nodes that come and go, in whole runs: stays have the distributions that the file names, and what follows from them in closed form.

use super::{samples, scenario};
use dposlab::{
    actors::{Event, NodeId, SimTime},
    scenario::{Ended, Scenario, StageKind},
    sim::{Digest, NetworkEvent, Observer, SeedTree, TraceDigest, stage::inline::InlineStage, world::Moment},
};
use statrs::distribution::{ContinuousCDF, LogNormal};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

/// Four delegates, and relays that come and go.
const DELEGATES: u32 = 4;
const RELAYS: u32 = 60;

/// The instants at which each node went down or came back, by turns.
type ByNode = BTreeMap<NodeId, Vec<SimTime>>;

/// The turns, and the number of pools that were lost.
#[derive(Clone, Default)]
struct Turns(Arc<Mutex<(ByNode, usize)>>);

impl Observer for Turns {
    fn observe(&mut self, _: SimTime, _: NodeId, _: &Event) {}

    fn observe_network(&mut self, now: SimTime, event: &NetworkEvent<'_>) {
        let mut seen = self.0.lock().expect("no observer panics");
        match event {
            NetworkEvent::NodeDown { node, .. } | NetworkEvent::NodeUp { node } => {
                seen.0.entry(*node).or_default().push(now)
            }
            NetworkEvent::PoolLost { .. } => seen.1 += 1,
            _ => {}
        }
    }
}

fn network(rounds: u32, churn: &str) -> Scenario {
    scenario(&format!(
        "rounds = {rounds}\nstall = 'off'\n[network]\ndelegates = {DELEGATES}\nrelays = {RELAYS}\ntopology = 'star'\n\
         [rules]\nminimum_network_reach = 1\n\
         [[fault]]\nkind = 'node-churn'\nnodes = {{ from = {DELEGATES}, to = {} }}\n{churn}\n",
        DELEGATES + RELAYS - 1
    ))
}

fn turns(scenario: &Scenario, seed: u64) -> (ByNode, usize) {
    let seeds = SeedTree::new(seed);
    let plan = scenario.plan(&scenario.testnet(seeds), seeds);
    let seen = Turns::default();
    scenario.play_inline(&plan, vec![Box::new(seen.clone())], |_| true);
    let seen = seen.0.lock().expect("it is over");
    seen.clone()
}

/// The seconds of all stays that began and ended in the run: those up after the first, and those down.
fn stays(turns: &ByNode) -> [Vec<f64>; 2] {
    let (mut up, mut down) = (Vec::new(), Vec::new());
    for all in turns.values() {
        for (number, pair) in all.windows(2).enumerate() {
            let seconds = pair[1].since(pair[0]).as_secs_f64();
            if number % 2 == 0 { down.push(seconds) } else { up.push(seconds) }
        }
    }
    [up, down]
}

/// Stays that are longer than the rest of the run are not seen. The run is a hundred times as long as most.
#[test]
fn stays_have_the_distributions_that_the_file_names() {
    let scenario = network(200, "up = { mean_s = 40 }\ndown = { min_s = 5, max_s = 15 }");
    let [up, down] = stays(&turns(&scenario, 1).0);
    assert!(up.len() > 5_000 && down.len() > 5_000, "{} and {} stays", up.len(), down.len());
    let exponential = |mean: f64| move |x: f64| 1.0 - (-x / mean).exp();
    samples::distributed(&up, exponential(40.0), exponential(44.0));
    let even = |min: f64, max: f64| move |x: f64| ((x - min) / (max - min)).clamp(0.0, 1.0);
    samples::distributed(&down, even(5.0, 15.0), even(5.0, 15.6));

    let scenario = network(200, "up = { scale_s = 30, shape = 2 }\ndown = { median_s = 10, sigma = 0.5 }");
    let [up, down] = stays(&turns(&scenario, 2).0);
    let weibull = |scale: f64| move |x: f64| 1.0 - (-(x / scale).powi(2)).exp();
    samples::distributed(&up, weibull(30.0), weibull(32.0));
    let log_normal = |median: f64| {
        let known = LogNormal::new(median.ln(), 0.5).expect("it is one");
        move |x: f64| known.cdf(x)
    };
    samples::distributed(&down, log_normal(10.0), log_normal(10.5));
}

/// An alternating renewal process is up for a share of the time that is the mean stay up, in parts of both means. By the central limit
/// theorem the share of a node has the variance (d²·Var(up) + u²·Var(down)) / (u + d)³ / time.
#[test]
fn nodes_are_up_for_the_share_of_the_time_that_renewal_theory_says() {
    let (up, down) = (40.0_f64, 10.0_f64);
    let scenario = network(300, &format!("up = {{ mean_s = {up} }}\ndown = {{ mean_s = {down} }}"));
    let (turns, _) = turns(&scenario, 3);
    let end = turns.values().filter_map(|all| all.last()).max().expect("there are turns");
    let begin = SimTime::from_micros(8_000_000);
    let whole = end.since(begin).as_secs_f64();
    let up_of = |all: &Vec<SimTime>| {
        let ends: Vec<SimTime> = [begin].into_iter().chain(all.iter().copied()).chain([*end]).collect();
        ends.windows(2).step_by(2).map(|pair| pair[1].since(pair[0]).as_secs_f64()).sum::<f64>() / whole
    };
    let share = turns.values().map(up_of).sum::<f64>() / f64::from(RELAYS);
    let variance = (down * down * up * up + up * up * down * down) / (up + down).powi(3) / whole;
    let error = (variance / f64::from(RELAYS)).sqrt();
    let wanted = up / (up + down);
    assert_eq!(turns.len(), RELAYS as usize);
    assert!((share - wanted).abs() < 3.3 * error, "up for {share}, {wanted} ± {error} expected");
    assert!(3.3 * error < 0.01, "it would tell a share that is 0.01 off: {error}");
}

#[test]
fn all_come_back_at_the_end_and_lose_their_pools_if_the_file_says_so() {
    let times = "up = { mean_s = 60 }\ndown = { mean_s = 60 }\nfrom = { seconds = 50 }\nuntil = { seconds = 400 }";
    for (keep, lost) in [(true, false), (false, true)] {
        let (turns, pools) = turns(&network(20, &format!("{times}\nkeep_pool = {keep}")), 5);
        let begin = SimTime::from_micros(8_000_000);
        assert!(turns.values().all(|all| all.len() % 2 == 0), "each is up at the end");
        let all = || turns.values().flatten().map(|at| at.since(begin).as_secs_f64());
        assert!(all().all(|at| (50.0..=400.0).contains(&at)), "turns are within the fault");
        let at_end = all().filter(|at| *at == 400.0).count();
        assert!(at_end > 10, "{at_end} came back with its end");
        let downs = turns.values().map(|all| all.len() / 2).sum::<usize>();
        assert_eq!(pools, if lost { downs } else { 0 });
    }
}

/// A node is down while one fault at least keeps it down. It goes down at 30, 80 and 130 and comes back after 20 seconds, but for the crashes:
/// one that lasts longer, one that ends meanwhile, and one that lasts longer than the fault itself.
#[test]
fn crashes_that_overlap_keep_a_node_down_until_the_last_one_ends() {
    let crash = |from: u32, to: u32| {
        format!("[[fault]]\nkind = 'crash'\nnodes = [4]\nfrom = {{ seconds = {from} }}\nuntil = {{ seconds = {to} }}\n")
    };
    let crashes = [(40, 60), (70, 90), (135, 170)].map(|(from, to)| crash(from, to)).concat();
    let scenario = scenario(&format!(
        "rounds = 6\n[network]\ndelegates = 6\n[[fault]]\nkind = 'node-churn'\nnodes = [4]\nup = 30\ndown = 20\n\
         until = {{ seconds = 140 }}\n{crashes}"
    ));
    let (turns, _) = turns(&scenario, 1);
    let begin = SimTime::from_micros(8_000_000);
    let seconds: Vec<f64> = turns[&NodeId(4)].iter().map(|at| at.since(begin).as_secs_f64()).collect();
    assert_eq!(seconds, [30.0, 60.0, 70.0, 100.0, 130.0, 170.0]);
}

/// While nodes may come back, a network without a live node has not halted. Once they are back, a crash of all for good halts it.
#[test]
fn a_network_whose_nodes_may_come_back_has_not_halted() {
    let ended = |churn_until: &str, crash: &str| {
        let scenario = scenario(&format!(
            "rounds = 30\nstall = 'off'\n[network]\ndelegates = 4\n[[fault]]\nkind = 'node-churn'\nnodes = {{ from = 0, to = 3 }}\nup = 50\n\
             down = 400\n{churn_until}{crash}"
        ));
        let seeds = SeedTree::new(1);
        let plan = scenario.plan(&scenario.testnet(seeds), seeds);
        scenario.play_inline(&plan, Vec::new(), |_| true).ended
    };
    assert!(matches!(ended("", ""), Ended::Complete), "{:?}", ended("", ""));
    let crash = "[[fault]]\nkind = 'crash'\nnodes = { from = 0, to = 3 }\nfrom = { seconds = 200 }\n";
    let halted = ended("until = { seconds = 100 }\n", crash);
    assert!(matches!(halted, Ended::Halted(_)), "{halted:?}");
}

/// A copy that draws anew has stays of its own from then on.
#[test]
fn a_copy_that_draws_anew_has_other_stays() {
    let scenario = network(6, "up = { mean_s = 30 }\ndown = { mean_s = 10 }");
    let seeds = SeedTree::new(4);
    let plan = scenario.plan(&scenario.testnet(seeds), seeds);
    let mut run = InlineStage::new(&plan, Vec::new());
    let at = |second: u64| SimTime::from_micros(plan.start.micros() + second * 1_000_000);
    run.run_until(at(60));
    let moment = run.moment();
    let of = |anew: Option<u64>| {
        let mut copy = InlineStage::at(&moment);
        if let Some(seed) = anew {
            copy.draw_anew(SeedTree::new(seed));
        }
        // Written down and read again, it goes on the same.
        let read = Moment::from_bytes(copy.moment().to_bytes().0, &plan, &[]).expect("it was written down");
        let both = [copy, InlineStage::at(&read)].map(|mut run| {
            let seen = Turns::default();
            run.watch(Box::new(seen.clone()));
            run.run_until(at(160));
            let (turns, _) = seen.0.lock().expect("it is over").clone();
            turns
        });
        assert_eq!(both[0], both[1]);
        both[0].clone()
    };
    assert_eq!(of(None), of(None));
    let (one, other) = (of(Some(1)), of(Some(2)));
    // The end of a stay that began before is drawn already. The next ones are not.
    let later = |turns: &ByNode| turns.values().flat_map(|all| all[1..].to_vec()).collect::<Vec<_>>();
    let shared = later(&one).iter().filter(|at| later(&other).contains(at)).count();
    assert!(later(&one).len() > 50 && shared == 0, "{shared} of {} are the same", later(&one).len());
}

/// A mean is an amount: another one changes the length of each stay in proportion, and nothing else.
#[test]
fn stays_are_the_same_draws_whatever_the_mean() {
    let of = |up: u32| turns(&network(60, &format!("up = {{ mean_s = {up} }}\ndown = 1")), 7).0;
    let (short, long) = (of(50), of(100));
    // The run begins eight seconds after genesis.
    let begin = SimTime::from_micros(8_000_000);
    let first = |turns: &ByNode, node| turns.get(&node).map(|all: &Vec<SimTime>| all[0].since(begin).as_secs_f64());
    let mut compared = 0;
    for node in (DELEGATES..DELEGATES + RELAYS).map(NodeId) {
        if let (Some(one), Some(other)) = (first(&short, node), first(&long, node)) {
            assert!((other - 2.0 * one).abs() < 1e-5, "{node}: {one} and {other}");
            compared += 1;
        }
    }
    assert!(compared > 50, "{compared} nodes went down in both");
}

/// Both stages, and a run that goes on from the bytes of any moment, play the same.
#[test]
fn churn_is_the_same_on_both_stages_and_goes_on_from_any_moment() {
    let scenario = network(12, "up = { mean_s = 50 }\ndown = { median_s = 20, sigma = 1 }\nkeep_pool = false");
    let seeds = SeedTree::new(9);
    let whole = |stage| {
        let plan = scenario.plan(&scenario.testnet(seeds), seeds);
        match stage {
            StageKind::Inline => scenario.play_inline(&plan, Vec::new(), |_| true).digest,
            StageKind::Ractor => scenario.play(&plan, stage, Vec::new(), |_| {}).expect("no actor dies").digest,
        }
    };
    let digest: Digest = whole(StageKind::Inline);
    assert_eq!(digest, whole(StageKind::Ractor));
    let plan = scenario.plan(&scenario.testnet(seeds), seeds);
    let at = |second: u64| SimTime::from_micros(plan.start.micros() + second * 1_000_000);
    let goes_on = |moment: &Moment| {
        let mut run = InlineStage::at(moment);
        let trace = TraceDigest::default();
        run.watch(Box::new(trace.clone()));
        run.run_until(at(350));
        (trace.digest(), trace.events())
    };
    let mut run = InlineStage::new(&plan, Vec::new());
    for second in [40, 111, 250] {
        run.run_until(at(second));
        let written = Moment::from_bytes(run.moment().to_bytes().0, &plan, &[]).expect("it was written down");
        assert_eq!(goes_on(&written), goes_on(&run.moment()), "from second {second}");
    }
}
