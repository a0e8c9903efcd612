//! Agents with several votes: seats of a group against closed forms, what each policy does with its votes, and runs with all of it.

use crate::{
    agents::{COIN, Played, head, play},
    support::{root, run},
};
use dposlab::{
    ledger::State,
    protocol::{Address, PublicKey},
    scenario::Scenario,
    sim::{SeedTree, stage::inline::InlineStage, world::Moment},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    time::Duration,
};

fn name(state: &State, key: PublicKey) -> String {
    state.delegate_of(&key).expect("votes are for delegates").username.to_string()
}

impl Played {
    /// The votes of each voter of a group at a state, by username, ascending.
    fn all_votes(&self, group: usize, state: &State) -> Vec<Vec<String>> {
        let votes = |address: &Address| {
            let votes = state.wallet(address).into_iter().flat_map(|wallet| wallet.votes());
            let mut names: Vec<String> = votes.map(|key| name(state, key)).collect();
            names.sort();
            names
        };
        self.testnet.voters[group].iter().map(|voter| votes(&voter.address)).collect()
    }

    /// The number of members of the last round that have a number from this one on.
    fn seats_from(&self, first: u32) -> usize {
        let state = self.last();
        let names = state.round().members.iter().map(|member| name(&state, member.public_key)).collect::<Vec<_>>();
        let number = |name: &String| name.trim_start_matches("genesis_").parse::<u32>().expect("a number");
        names.iter().filter(|name| number(name) >= first).count()
    }
}

fn rule(most: u32, weight: &str) -> String {
    format!("[rules]\nledger.votes = {{ most = {most}, weight = '{weight}' }}\n")
}

/// A network whose delegates have hardly any coins of their own, the active ones a few more.
fn poor_head(rounds: u32, seats: u32) -> String {
    let own: Vec<String> =
        (0..2 * seats).map(|place| (if place < seats { 1_000 } else { 500 } * COIN).to_string()).collect();
    format!(
        "version = 1\nrounds = {rounds}\ncrypto = 'modelled'\n[network]\ndelegates = {seats}\nstandby = {seats}\ngossip = 'once'\n\
         vote_weights = {{ list = [{}] }}\n",
        own.join(", ")
    )
}

/// Two groups, of the active delegates and of those that stand by: for each its voters and their coins in thousands.
fn rivals(seats: u32, votes: &str, [holders, challengers]: [(u32, u32); 2]) -> usize {
    let group = |first: u32, (voters, stake): (u32, u32)| {
        let last = first + seats - 1;
        format!(
            "[[agents]]\nkind = 'cartel'\nvoters = {voters}\nstake = {stake}000\n\
             delegates = {{ from = 'genesis_{first}', to = 'genesis_{last}' }}\n"
        )
    };
    let text = format!("{}{votes}{}{}", poor_head(6, seats), group(1, holders), group(seats + 1, challengers));
    play(&text, 1).seats_from(seats + 1)
}

// Seats.

/// The seats of the second of two lists by D'Hondt's method, by the highest quotients.
fn dhondt(seats: u32, holders: u32, challengers: u32) -> u32 {
    let quotients =
        |coins: u32, of_second: bool| (1..=seats).map(move |by| (f64::from(coins) / f64::from(by), of_second));
    let mut all: Vec<(f64, bool)> = quotients(holders, false).chain(quotients(challengers, true)).collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    all[..seats as usize].iter().filter(|(_, of_second)| *of_second).count() as u32
}

/// One vote a wallet: a group that divides its coins among `d` delegates, `d` being its seats by D'Hondt's method, has them against any
/// division of the others, and one more does not help it. Votes of full weight: the group with more coins has all seats.
#[test]
fn one_vote_gives_d_hondt_s_seats_and_full_votes_give_all_or_none() {
    const SEATS: u32 = 5;
    for (holders, challengers) in
        [(70_000, 30_000), (55_000, 45_000), (45_000, 55_000), (20_000, 80_000), (90_000, 10_000)]
    {
        let due = dhondt(SEATS, holders, challengers);
        let seats = |votes: &str, of_holders, of_challengers| {
            rivals(SEATS, votes, [(of_holders, holders), (of_challengers, challengers)])
        };
        let case = format!("{challengers} against {holders}");
        if due > 0 {
            assert_eq!(seats("", SEATS - due + 1, due), due as usize, "{case}: the others try for one more");
        }
        if due < SEATS {
            assert_eq!(seats("", SEATS - due, due + 1), due as usize, "{case}: it tries for one more");
        }
        let all = if challengers > holders { SEATS as usize } else { 0 };
        assert_eq!(seats(&rule(SEATS, "full"), 2, 2), all, "{case}: full votes");
        // The units of a wallet are one vote in parts: spread over five delegates each, the larger group has all.
        assert_eq!(seats(&rule(SEATS, "unit"), 2, 2), all, "{case}: units");
    }
}

/// LIP-0021 and LIP-0023: where 44 % of the coins vote, 22 % replace all delegates. By one vote these have the seats that Droop's quota
/// gives them, one for each whole twelfth of the votes.
#[test]
fn the_shipped_scenario_replaces_all_or_its_share() {
    let text = fs::read_to_string(root().join("scenarios/full-votes.toml")).expect("it is there");
    let full = play(&text, 1);
    assert_eq!(full.elections.iter().map(|(_, set)| set.captured).max(), Some(11));
    assert_eq!(full.seats_from(12), 11);
    let (coins, supply) = (27_600_000_f64, 125_000_000.0);
    assert!((0.220..0.222).contains(&(coins / supply)));
    let state = full.last();
    let cartel: BTreeSet<String> = (12..=22).map(|number| format!("genesis_{number}")).collect();
    for votes in full.all_votes(0, &state) {
        assert_eq!(votes.into_iter().collect::<BTreeSet<_>>(), cartel, "an owner votes for all of them");
    }
    for votes in full.all_votes(1, &state) {
        assert!(
            votes.len() == 11 && votes.iter().all(|name| !cartel.contains(name)),
            "the others vote for those before"
        );
    }
    // By one vote.
    let one = play(&text.replace("most = 11", "most = 1"), 1);
    let cast = coins + 27_400_000.0;
    let quotas = (coins / (cast / 12.0)).floor() as usize;
    assert_eq!((one.seats_from(12), quotas), (6, 6));
    assert_eq!(one.elections.last().expect("rounds were played").1.captured, 6);
    // A little less than the others have, and full votes bring no seat.
    let less = play(&text.replace("27_600_000", "27_300_000"), 1);
    assert_eq!(less.seats_from(12), 0);
    assert!(less.elections.iter().all(|(_, set)| set.captured == 0));
}

#[test]
fn the_shipped_scenario_holds_and_its_other_half_as_its_head_says() {
    let file = root().join("scenarios/full-votes.toml").display().to_string();
    let output = run(&["run", &file, "--stage", "inline"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stdout));
    let output = run(&["run", &file, "--stage", "inline", "--set", "rules.ledger.votes.most=1"]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.code() == Some(1) && said.contains("captured is 6"), "{said}");
}

// Policies.

/// Each voter of a group casts as many votes as it may, for different delegates: drawn among active ones, or among all.
#[test]
fn apathetic_and_changing_voters_draw_different_delegates() {
    for weight in ["full", "unit"] {
        let groups = "[[agents]]\nkind = 'apathy'\nvoters = 200\nstake = 20_000\n[[agents]]\nkind = 'churn'\nchance = 0\nvoters = 200\nstake = 20_000\n";
        let played = play(&format!("{}{}{groups}", head(8, 7, 3), rule(3, weight)), 1);
        let (state, active) =
            (played.last(), (1..=7).map(|number| format!("genesis_{number}")).collect::<BTreeSet<_>>());
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for (group, among) in [(0, 7), (1, 10)] {
            for votes in played.all_votes(group, &state) {
                let different: BTreeSet<String> = votes.iter().cloned().collect();
                assert_eq!((votes.len(), different.len()), (3, 3), "{weight}, {among}: {votes:?}");
                assert!(group == 1 || different.is_subset(&active), "{votes:?}");
                votes.into_iter().filter(|_| group == 1).for_each(|name| *counts.entry(name).or_default() += 1);
            }
        }
        // Each of ten has 3 of 10 votes of 200 voters: 60, with deviation 6.5.
        assert!(counts.len() == 10 && counts.values().all(|count| (28..=92).contains(count)), "{counts:?}");
    }
}

/// Six delegates share different parts. All weights are alike, so the best two are those that share most.
#[test]
fn voters_for_the_best_payer_vote_for_the_best_ones() {
    let payer = |number: u32, share: f64| {
        format!("[[agents]]\nkind = 'apathy'\ndelegates = ['genesis_{number}']\nshare = {share}\npay_rounds = 100\n")
    };
    let payers: String = [(1, 0.1), (2, 0.9), (3, 0.3), (4, 0.5), (5, 0.0), (6, 0.8)]
        .map(|(number, share)| payer(number, share))
        .concat();
    let group = "[[agents]]\nkind = 'best-payer'\nchance = 1\ngain = 0\nvoters = 4\nstake = 400\n";
    for weight in ["full", "unit"] {
        let played = play(&format!("{}{}{payers}{group}", head(6, 6, 0), rule(2, weight)), 1);
        let votes = played.all_votes(6, &played.last());
        assert!(votes.iter().all(|votes| votes == &["genesis_2", "genesis_6"]), "{weight}: {votes:?}");
    }
}

/// A better payer takes the place of the one that pays least. The other vote stays.
#[test]
fn a_voter_replaces_the_vote_that_brings_least() {
    let buyer = |number: u32, price: u64, until: &str| {
        format!(
            "[[agents]]\nkind = 'vote-buying'\ndelegates = ['genesis_{number}']\nasks_most = 0\nprice = {price}\n{until}"
        )
    };
    let buyers = [buyer(1, 500, ""), buyer(2, 900, "until_round = 5\n"), buyer(3, 700, ""), buyer(4, 100, "")].concat();
    let sellers = "[[agents]]\nkind = 'vote-buying'\nprice = 0\nasks_most = 200\nvoters = 20\nstake = 400\n";
    for weight in ["full", "unit"] {
        let played = play(&format!("{}{}{buyers}{sellers}", head(9, 5, 0), rule(2, weight)), 1);
        let early = played.all_votes(4, &played.state(20));
        let late = played.all_votes(4, &played.last());
        assert!(early.iter().all(|votes| votes == &["genesis_2", "genesis_3"]), "{weight}: {early:?}");
        assert!(late.iter().all(|votes| votes == &["genesis_1", "genesis_3"]), "{weight}: {late:?}");
        // Nine in ten sell a third vote to no one: with three votes some ask more than the third buyer pays.
        let three = play(&format!("{}{}{buyers}{sellers}", head(9, 5, 0), rule(4, weight)), 1);
        let counts: BTreeSet<usize> = three.all_votes(4, &three.last()).iter().map(Vec::len).collect();
        assert_eq!(counts, BTreeSet::from([2, 3]), "{weight}");
    }
}

/// The units of a cartel's voters go round among its members, several to one where there are fewer members than units.
#[test]
fn units_of_a_cartel_go_round() {
    let group =
        "[[agents]]\nkind = 'cartel'\nvoters = 3\nstake = 300\ndelegates = ['genesis_2', 'genesis_4', 'genesis_5']\n";
    let played = play(&format!("{}{}{group}", head(6, 5, 0), rule(4, "unit")), 1);
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for votes in played.all_votes(0, &played.last()) {
        assert_eq!(votes.len(), 4);
        votes.into_iter().for_each(|name| *counts.entry(name).or_default() += 1);
    }
    assert_eq!(counts, BTreeMap::from(["genesis_2", "genesis_4", "genesis_5"].map(|name| (name.to_owned(), 4))));
    // Fewer votes than members: two of three each, in turn.
    let played = play(&format!("{}{}{group}", head(6, 5, 0), rule(2, "full")), 1);
    let votes = played.all_votes(0, &played.last());
    assert_eq!(votes, [["genesis_2", "genesis_4"], ["genesis_2", "genesis_5"], ["genesis_4", "genesis_5"]]);
}

/// A delegate shares by the balance behind each vote: by units, a voter with two of them gets twice as much as one with one.
#[test]
fn payments_follow_the_weight_of_votes() {
    let group = "[[agents]]\nkind = 'cartel'\nvoters = 2\nstake = 2000\ndelegates = ['genesis_1', 'genesis_2']\nshare = 1\npay_rounds = 4\n";
    let played = play(&format!("{}{}{group}", head(9, 5, 0), rule(3, "unit")), 1);
    let voters: Vec<Address> = played.testnet.voters[0].iter().map(|voter| voter.address).collect();
    let mut sums: BTreeMap<(String, Address), u64> = BTreeMap::new();
    for (_, from, to, amount) in played.payments(&["genesis_1", "genesis_2"]) {
        *sums.entry((from, to)).or_default() += amount;
    }
    // The first voter has two units of the first delegate, and the second voter one; the other way round of the second delegate.
    for (name, more, less) in [("genesis_1", voters[0], voters[1]), ("genesis_2", voters[1], voters[0])] {
        let [more, less] = [more, less].map(|voter| sums[&(name.to_owned(), voter)] as f64);
        assert!((more / less - 2.0).abs() < 0.01, "{name}: {more} and {less}");
    }
}

// Whole runs.

/// Workloads, locks, agents and a partition under each rule: the checker follows every node, and nodes leave chains with several votes.
#[test]
fn runs_with_several_votes_hold_all_invariants() {
    let folder = tempfile::tempdir().expect("a folder");
    for (most, weight) in [(3, "full"), (4, "unit")] {
        let text = format!(
            "{}{}[[agents]]\nkind = 'churn'\nchance = 0.5\nvoters = 30\nstake = 20_000\n\
             [[agents]]\nkind = 'cartel'\nvoters = 5\nstake = 5_000\ndelegates = ['genesis_6', 'genesis_7']\nshare = 0.5\npay_rounds = 1\n\
             [[workload]]\nkind = 'generate'\nper_second = 0.5\nwallets = 8\nfunding = 500\nmix = {{ vote = 4, transfer = 2, htlc-lock = 2, htlc-claim = 2, htlc-refund = 1 }}\n\
             [[fault]]\nkind = 'vote-swing'\nvoters = 3\ndelegate = 'genesis_6'\nround = 4\nblock = 'last'\n\
             [[fault]]\nkind = 'partition'\ngroups = [[0, 1]]\nfrom = {{ height = 20 }}\nuntil = {{ height = 31 }}\n\
             [[assert]]\nalways = 'invariants'\n[[assert]]\nsometimes = 'rollbacks > 0'\n",
            head(12, 5, 2),
            format_args!(
                "[rules]\nbase = 'corrected'\nminimum_network_reach = false\nnode.fork_choice = 'longest-chain'\n\
                 ledger.votes = {{ most = {most}, weight = '{weight}' }}\n"
            )
        );
        let file = folder.path().join("s.toml");
        fs::write(&file, text).expect("a folder of our own");
        let output = run(&["run", &file.display().to_string(), "--stage", "inline"]);
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{weight}: {said}{}", String::from_utf8_lossy(&output.stderr));
    }
}

/// A copy of a run by the bytes of a moment goes on as the run itself, with votes on the chain and on their way.
#[test]
fn a_run_with_several_votes_goes_on_from_the_bytes_of_a_moment() {
    for (most, weight) in [(3, "full"), (4, "unit")] {
        let group = "[[agents]]\nkind = 'churn'\nchance = 1\nvoters = 40\nstake = 10_000\n";
        let text = format!("{}{}{group}", head(9, 7, 3), rule(most, weight));
        let scenario = Scenario::parse(&text, Path::new("agents.toml")).expect("it is one");
        let seeds = SeedTree::new(1);
        let testnet = scenario.testnet(seeds);
        let plan = scenario.plan(&testnet, seeds);
        let at = |slots: u64| plan.start + Duration::from_secs(8 * slots);
        let mut stage = InlineStage::new(&plan, Vec::new());
        // Between two votes of each voter.
        stage.run_until(at(23));
        let bytes = stage.moment().to_bytes().0;
        let mut copy = InlineStage::at(&Moment::from_bytes(bytes, &plan, &[]).expect("it was written down"));
        let end = |stage: &mut InlineStage| {
            stage.run_until(at(60));
            stage.world().tips().winning().id()
        };
        let mid = stage.world().tips().winning().clone();
        let voters = || testnet.voters[0].iter();
        let count = |link: &std::sync::Arc<dposlab::ledger::Link>| {
            let state = &plan.tree.applied(link).state;
            let votes = voters().filter_map(|voter| state.wallet(&voter.address)).map(|wallet| wallet.votes().count());
            votes.collect::<BTreeSet<_>>()
        };
        assert!(count(&mid).iter().any(|votes| *votes > 1), "{:?}", count(&mid));
        assert_eq!(end(&mut stage), end(&mut copy), "{weight}");
    }
}
