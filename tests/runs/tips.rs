//! The tips of live nodes, held against the definitions written down naively: chains as lists of ids, nothing kept from one step
//! to the next but what the definitions say.

use dposlab::{
    actors::{Event, NodeId},
    ledger::{BlockTree, Link},
    protocol::{Block, BlockDraft, KeyPair, PublicKey, Slot},
    scenario::Scenario,
    sim::{NetworkEvent, Plan, SeedTree, Tips, Weights, world::DownCause},
};
use proptest::prelude::*;
use std::{collections::BTreeMap, path::Path, sync::Arc};

const NODES: usize = 6;

/// A step of a node; blocks by their index.
#[derive(Clone, Copy, Debug)]
enum Step {
    Apply(usize),
    Revert,
    Down,
    Up,
}

fn step() -> impl Strategy<Value = (usize, Step)> {
    let what = prop_oneof![
        5 => any::<usize>().prop_map(Step::Apply),
        2 => Just(Step::Revert),
        2 => Just(Step::Down),
        2 => Just(Step::Up),
    ];
    (0..NODES, what)
}

/// A network of four delegates and two relays. A block pays its forger so much that each chain has vote weights of its own.
fn plan() -> (Plan, Vec<KeyPair>) {
    let text = "version = 1\nrounds = 2\ncrypto = \"modelled\"\n[network]\ndelegates = 4\nrelays = 2\n\
                reward = 100000000000000\n";
    let scenario = Scenario::parse(text, Path::new("tips")).expect("a scenario");
    let seeds = SeedTree::new(3);
    let testnet = scenario.testnet(seeds);
    let keys = testnet.delegates.iter().map(|delegate| delegate.keys.clone()).collect();
    (scenario.plan(&testnet, seeds), keys)
}

/// Blocks by the owners of their slots, each on one of those before it.
fn grow(tree: &BlockTree, keys: &[KeyPair], drafts: &[(usize, u32)]) -> Vec<Arc<Link>> {
    let mut links = vec![tree.genesis().clone()];
    for (parent, later) in drafts {
        let parent = links[parent % links.len()].clone();
        let slots = tree.slots();
        let slot = Slot(slots.slot(parent.block().header.timestamp).0 + later);
        let owner = tree.applied(&parent).state.round().owner(slot).expect("each slot has an owner").public_key;
        let milestones = &tree.config().milestones;
        let height = parent.height().next();
        let draft = BlockDraft {
            version: 0,
            timestamp: slots.start(slot),
            height,
            previous: Some(parent.id()),
            reward: milestones.at(height).reward,
            transactions: Vec::new(),
        };
        let forger = keys.iter().find(|keys| *keys.public() == owner).expect("all delegates are generated");
        let block = Arc::new(Block::forge(draft, forger, milestones));
        links.push(tree.extend(&parent, &block).expect("its owner made it"));
    }
    links
}

/// Ids from genesis up, as numbers.
fn chain(tip: &Arc<Link>) -> Vec<u64> {
    let mut ids = Vec::new();
    let mut at = Some(tip.clone());
    while let Some(link) = at {
        ids.push(link.id().to_string().parse().expect("ids of a testnet are numbers"));
        at = link.parent();
    }
    ids.reverse();
    ids
}

/// Blocks two chains share from their beginning on.
fn shared(one: &[u64], other: &[u64]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}

/// The figures by their definitions.
struct Naive {
    chains: Vec<Vec<u64>>,
    down: Vec<bool>,
    last_winning: Vec<u64>,
}

impl Naive {
    fn live(&self) -> Vec<&Vec<u64>> {
        self.chains.iter().zip(&self.down).filter(|(_, down)| !**down).map(|(chain, _)| chain).collect()
    }

    fn winning(&mut self) -> Vec<u64> {
        let live = self.live();
        let count = |chain: &Vec<u64>| live.iter().filter(|other| **other == chain).count();
        let mut ranked: Vec<_> = live.iter().map(|chain| (count(chain), chain.len(), *chain)).collect();
        ranked.sort_by(|one, other| (other.0, other.1).cmp(&(one.0, one.1)).then(one.2.last().cmp(&other.2.last())));
        let first = ranked.first().map(|(_, _, chain)| (*chain).clone());
        if let Some(first) = first {
            self.last_winning = first;
        }
        self.last_winning.clone()
    }

    /// The highest live chain that goes through the winning block, by more nodes and then by the lower id.
    fn leading(&self, winning: &[u64]) -> Vec<u64> {
        let live = self.live();
        let count = |chain: &Vec<u64>| live.iter().filter(|other| **other == chain).count();
        let through = live.iter().filter(|chain| shared(chain, winning) == winning.len());
        let mut ranked: Vec<_> = through.map(|chain| (chain.len(), count(chain), *chain)).collect();
        ranked.sort_by(|one, other| (other.0, other.1).cmp(&(one.0, one.1)).then(one.2.last().cmp(&other.2.last())));
        ranked.first().map_or_else(|| winning.to_vec(), |(_, _, chain)| (*chain).clone())
    }

    fn branches(&self) -> Vec<&Vec<u64>> {
        let mut distinct = self.live();
        distinct.sort();
        distinct.dedup();
        let passed = |chain: &Vec<u64>| {
            distinct.iter().any(|other| other.len() > chain.len() && shared(other, chain) == chain.len())
        };
        distinct.iter().filter(|chain| !passed(chain)).copied().collect()
    }

    fn fork_depth(&self, winning: &[u64]) -> usize {
        let branches = self.branches();
        let apart = branches.iter().filter(|branch| shared(branch, winning) < winning.len());
        apart.map(|branch| branch.len() - shared(branch, winning)).max().unwrap_or(0)
    }
}

/// The share of weight on the winning tip, from the members of the round of the block after it.
fn by_weight(plan: &Plan, naive: &Naive, winning: &Arc<Link>) -> Option<f64> {
    let applied = plan.tree.applied(winning);
    let weights: BTreeMap<PublicKey, i128> =
        applied.state.round().members.iter().map(|member| (member.public_key, member.vote_balance.0)).collect();
    let weight = |node: usize| {
        let key = plan.nodes[node].forger.as_ref().map(|keys| *keys.public());
        key.and_then(|key| weights.get(&key).copied()).unwrap_or(0)
    };
    let live: Vec<usize> = (0..NODES).filter(|node| !naive.down[*node]).collect();
    let on: Vec<usize> = live.iter().copied().filter(|node| naive.chains[*node] == chain(winning)).collect();
    let sum = |nodes: &[usize]| nodes.iter().map(|node| weight(*node)).sum::<i128>();
    match (live.len(), sum(&live)) {
        (0, _) => None,
        (_, 0) => Some(on.len() as f64 / live.len() as f64),
        (_, all) => Some(sum(&on) as f64 / all as f64),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_figure_of_the_tips_is_what_its_definition_says(
        drafts in prop::collection::vec((any::<usize>(), 1..4_u32), 1..20),
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let (plan, keys) = plan();
        let links = grow(&plan.tree, &keys, &drafts);
        let genesis = &links[0];
        let (mut tips, mut weights) = (Tips::new(NODES, genesis), Weights::new(&plan));
        let mut at = vec![genesis.clone(); NODES];
        let mut naive =
            Naive { chains: vec![chain(genesis); NODES], down: vec![false; NODES], last_winning: chain(genesis) };
        for (node, step) in steps {
            let id = NodeId(node as u32);
            match step {
                Step::Apply(index) => {
                    at[node] = links[index % links.len()].clone();
                    tips.follow(id, &Event::BlockApplied(at[node].clone()));
                }
                Step::Revert => {
                    let reverted = at[node].clone();
                    at[node] = reverted.parent().unwrap_or_else(|| reverted.clone());
                    tips.follow(id, &Event::BlockReverted(reverted));
                }
                Step::Down => {
                    let changed = tips.follow_network(&NetworkEvent::NodeDown { node: id, cause: DownCause::Pause });
                    prop_assert_eq!(changed, !naive.down[node]);
                    naive.down[node] = true;
                }
                Step::Up => {
                    let changed = tips.follow_network(&NetworkEvent::NodeUp { node: id });
                    prop_assert_eq!(changed, naive.down[node]);
                    naive.down[node] = false;
                }
            }
            naive.chains[node] = chain(&at[node]);
            let winning = naive.winning();
            let live = naive.live();
            prop_assert_eq!(chain(tips.winning()), winning.clone());
            prop_assert_eq!(chain(tips.leading()), naive.leading(&winning));
            prop_assert_eq!((tips.live() as usize, tips.down() as usize), (live.len(), NODES - live.len()));
            let agreeing = live.iter().filter(|chain| ***chain == winning).count();
            let agreement = (!live.is_empty()).then(|| agreeing as f64 / live.len() as f64);
            prop_assert_eq!(tips.agreement(), agreement);
            prop_assert_eq!(weights.agreement(&tips), by_weight(&plan, &naive, tips.winning()));
            prop_assert_eq!(tips.is_converged(), !live.is_empty() && live.iter().all(|chain| *chain == live[0]));
            let heights = live.iter().map(|chain| chain.len()).min().zip(live.iter().map(|chain| chain.len()).max());
            prop_assert_eq!(tips.heights().map(|(least, most)| (least.0 as usize, most.0 as usize)), heights);
            for height in 1..=links.len() {
                let count = live.iter().filter(|chain| chain.len() >= height).count();
                let most = tips.most_are(|tip| tip.height().0 as usize >= height);
                prop_assert_eq!(most, 2 * count > live.len(), "{} of {} at height {}", count, live.len(), height);
            }
            let common = live.iter().flat_map(|one| live.iter().map(|other| shared(one, other))).min();
            prop_assert_eq!(tips.common_height().map(|height| height.0 as usize), common);
            let branches = tips.branches();
            prop_assert_eq!(branches.branches as usize, naive.branches().len());
            prop_assert_eq!(branches.depth as usize, naive.fork_depth(&winning));
        }
    }
}
