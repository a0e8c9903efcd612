//! When votes change the members of a round, by each rule of election: on one chain, on chains that were left, and in what is kept.

use dposlab::{
    actors::{Event, NodeId, SimTime},
    ledger::{
        BlockTree, Link, State,
        codec::{Loader, Save, Saver},
    },
    protocol::Height,
    scenario::Scenario,
    sim::{Observer, SeedTree},
};
use std::{
    collections::BTreeMap,
    iter,
    path::Path,
    sync::{Arc, Mutex},
};

/// Votes bring in a fifth delegate in the last block of round 3. Nodes part around that block, and so they do three rounds later.
fn swing(rules: &str) -> Scenario {
    let text = format!(
        "version = 1\nrounds = 16\ncrypto = \"modelled\"\n[network]\ndelegates = 4\nstandby = 1\n[rules]\nminimum_network_reach = false\n{rules}\n\
         [[fault]]\nkind = \"vote-swing\"\nvoters = 10\ndelegate = \"genesis_5\"\nround = 3\nblock = \"last\"\n\
         [[fault]]\nkind = \"partition\"\ngroups = [[\"genesis_1\"]]\nfrom = {{ height = 10 }}\nuntil = {{ height = 14 }}\n\
         [[fault]]\nkind = \"partition\"\ngroups = [[\"genesis_2\"]]\nfrom = {{ height = 22 }}\nuntil = {{ height = 26 }}\n"
    );
    Scenario::parse(&text, Path::new("swing")).unwrap_or_else(|error| panic!("{error}"))
}

/// Blocks that nodes took, by their ids, and tips that they left.
type Chains = (BTreeMap<String, Arc<Link>>, Vec<Arc<Link>>);

#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Chains>>);

impl Observer for Seen {
    fn observe(&mut self, _: SimTime, _: NodeId, event: &Event) {
        let mut seen = self.0.lock().expect("nobody panics");
        match event {
            Event::BlockApplied(link) => _ = seen.0.insert(link.id().to_string(), link.clone()),
            Event::RolledBack { from, .. } => seen.1.push(from.clone()),
            _ => {}
        }
    }
}

/// The bytes of the state after a block.
fn bytes(tree: &Arc<BlockTree>, link: &Arc<Link>) -> Vec<u8> {
    saved(tree, &tree.applied(link).state)
}

fn saved(tree: &Arc<BlockTree>, state: &State) -> Vec<u8> {
    let mut out = Saver::new(tree);
    state.save(&mut out);
    out.finish().0
}

fn seats(tree: &Arc<BlockTree>, link: &Arc<Link>) -> Vec<String> {
    let round = tree.applied(link).state.round().clone();
    let mut seats: Vec<String> = round.members.iter().map(|member| member.public_key.to_string()).collect();
    seats.sort_unstable();
    seats
}

/// Plays the swing. Returns the first round with the new delegate. Each chain that a node was on is built again in another tree, and its
/// states are the same there, byte for byte. A state that is read again from its bytes, members that wait among them, has these bytes.
fn first_round(rules: &str) -> Option<u32> {
    let scenario = swing(rules);
    let seeds = SeedTree::new(1);
    let plan = scenario.plan(&scenario.testnet(seeds), seeds);
    let (seen, mut tip) = (Seen::default(), plan.tip.clone());
    scenario.play_inline(&plan, vec![Box::new(seen.clone())], |stage| {
        tip = stage.world().tips().winning().clone();
        tip.height() < Height(60)
    });
    let (blocks, left) = std::mem::take(&mut *seen.0.lock().expect("nobody panics"));
    let is_rival = |link: &&Arc<Link>| tip.ancestor(link.height()).is_some_and(|own| !own.is(link));
    assert!(blocks.values().filter(is_rival).any(|link| link.round_end().is_some()), "{rules}: no fork ends a round");
    assert!(!left.is_empty(), "{rules}: no node has left its chain");
    for end in left.iter().chain([&tip]) {
        let tree =
            Arc::new(BlockTree::new(plan.tree.config().clone(), plan.tree.rules().clone()).expect("it is a plan's"));
        let mut at = tree.genesis().clone();
        for height in 2..=end.height().0 {
            let link = end.ancestor(Height(height)).expect("it is below");
            at = tree.extend(&at, link.block()).unwrap_or_else(|why| panic!("{rules}: {why}"));
            let found = bytes(&tree, &at);
            assert!(found == bytes(&plan.tree, &link), "{rules}: another state after {link:?}");
            let mut from = Loader::new(found.clone().into(), &tree, Arc::new([]));
            let read = State::load(&mut from).expect("it was written");
            from.finish().expect("nothing is left");
            assert!(saved(&tree, &read) == found, "{rules}: another state is read after {link:?}");
        }
    }
    let genesis = seats(&plan.tree, plan.tree.genesis());
    let chain: Vec<Arc<Link>> = iter::successors(Some(tip), |link| link.parent()).collect();
    let mut changed = chain.iter().rev().filter(|link| seats(&plan.tree, link) != genesis);
    changed.next().map(|link| plan.tree.applied(link).state.round().number().0)
}

/// Votes in the last block of round 3 count in round 4; for Lisk in round 6, and in EOS after the proposal has been final twice.
#[test]
fn votes_count_from_the_round_that_the_rule_of_election_names() {
    assert_eq!(first_round("base = \"corrected\"\nnode.fork_choice = \"longest-chain\""), Some(4));
    assert_eq!(first_round("base = \"lisk\""), Some(6));
    assert_eq!(first_round("base = \"lisk\"\nledger.election = \"at-once\""), Some(4));
    let eos = first_round("base = \"eos\"\nledger.slots_a_turn = 1").expect("a proposal becomes final");
    assert!((6..=10).contains(&eos), "round {eos}");
    assert_eq!(first_round("base = \"tron\""), None);
    let text = "base = \"tron\"\nledger.election = \"two-rounds-before\"";
    assert_eq!(first_round(text), Some(6));
}
