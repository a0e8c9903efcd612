//! Agents: the decisions of each policy against closed forms, their payments against the chain, and the figures of elections against
//! a second computation from the wallets.

use crate::support::run;
use dposlab::{
    ledger::{Balance, BlockTree, Link, State},
    protocol::{Address, Asset, Height, PublicKey},
    report::Metrics,
    scenario::{Scenario, StageKind, Testnet},
    sim::{ActiveSet, Observer, SeedTree, source::Counts},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::Arc,
};

/// A coin \[arktoshi\].
pub const COIN: u64 = 100_000_000;

/// A run that is over.
pub struct Played {
    tree: Arc<BlockTree>,
    pub tip: Arc<Link>,
    pub testnet: Testnet,
    pub elections: Vec<(u32, ActiveSet)>,
    /// What the agents handed in.
    pub counts: Counts,
}

pub fn play(text: &str, seed: u64) -> Played {
    let scenario = Scenario::parse(text, Path::new("agents.toml")).unwrap_or_else(|why| panic!("{why}\n{text}"));
    let seeds = SeedTree::new(seed);
    let testnet = scenario.testnet(seeds);
    let plan = scenario.plan(&testnet, seeds);
    let metrics = Metrics::new(&plan);
    let observers: Vec<Box<dyn Observer>> = vec![Box::new(metrics.clone())];
    let outcome = scenario.play(&plan, StageKind::Inline, observers, |_| {}).expect("no actor dies");
    let figures = metrics.finish(outcome.end);
    assert_eq!(figures.tip.height(), scenario.last_height(), "it is whole");
    let elections = figures.chain.iter().map(|round| (round.round, round.active_set)).collect();
    let counts = plan.sources.iter().find(|source| source.name == "agents").expect("there are agents").tally.counts();
    Played { tree: plan.tree.clone(), tip: figures.tip, testnet, elections, counts }
}

impl Played {
    /// The state after the block of a height.
    pub fn state(&self, height: u32) -> State {
        self.tree.applied(&self.tip.ancestor(Height(height)).expect("it is on the chain")).state.clone()
    }

    pub fn last(&self) -> State {
        self.tree.applied(&self.tip).state.clone()
    }

    /// The votes of a group at a state, by username.
    pub fn votes(&self, group: usize, state: &State) -> Vec<Option<String>> {
        let vote = |address: &Address| {
            let key = state.wallet(address)?.vote?;
            state.delegate_of(&key).map(|delegate| delegate.username.to_string())
        };
        self.testnet.voters[group].iter().map(|voter| vote(&voter.address)).collect()
    }

    /// Every payment on the chain from one of these delegates: height, sender's username, recipient, amount.
    pub fn payments(&self, names: &[&str]) -> Vec<(u32, String, Address, u64)> {
        let last = self.last();
        let senders: BTreeMap<Address, &str> =
            names.iter().map(|name| (*last.address_of(name).expect("it is registered"), *name)).collect();
        let mut all = Vec::new();
        for height in 2..=self.tip.height().0 {
            for transaction in &self.tip.ancestor(Height(height)).expect("below the tip").block().transactions {
                let Some(name) = senders.get(&transaction.sender_address()) else { continue };
                match transaction.asset() {
                    Asset::Transfer { recipient, .. } => {
                        all.push((height, (*name).to_owned(), *recipient, transaction.amount().value()));
                    }
                    Asset::MultiPayment { payments } => {
                        all.extend(
                            payments.iter().map(|one| (height, (*name).to_owned(), one.recipient, one.amount.value())),
                        );
                    }
                    other => panic!("a delegate sends payments only: {other:?}"),
                }
            }
        }
        all
    }
}

pub fn head(rounds: u32, delegates: u32, standby: u32) -> String {
    format!(
        "version = 1\nrounds = {rounds}\ncrypto = 'modelled'\n[network]\ndelegates = {delegates}\nstandby = {standby}\n\
         gossip = 'once'\nreward = 200_000_000\n"
    )
}

/// A count of a binomial distribution is within five standard deviations.
fn assert_binomial(found: usize, of: usize, chance: f64) {
    let (mean, deviation) = (of as f64 * chance, (of as f64 * chance * (1.0 - chance)).sqrt());
    assert!(
        (found as f64 - mean).abs() <= 5.0 * deviation,
        "{found} of {of}, expected {mean} with deviation {deviation}"
    );
}

/// The first rounds of the example of 28 days. Its length is that of 28 days to the round, and each policy has voted.
#[test]
fn the_example_of_28_days_has_10000_voters_of_all_policies() {
    let text = std::fs::read_to_string(crate::support::root().join("examples/voters.toml")).expect("it is there");
    let rounds = (28.0 * 86_400.0 / 8.0 / 51.0_f64).ceil();
    let length = format!("rounds = {rounds}\n");
    assert!(text.contains(&length), "28 days are {length}");
    let played = play(&text.replace(&length, "rounds = 4\n"), 1);
    assert_eq!(
        played.testnet.voters.iter().map(|of| of.len()).collect::<Vec<_>>(),
        [4_000, 1_000, 1_000, 3_000, 1_000]
    );
    let last = played.last();
    let voted: Vec<usize> = (0..5).map(|group| played.votes(group, &last).into_iter().flatten().count()).collect();
    // All of them but those that have asked too high a price, and those that never vote. The best payers move slowly.
    assert_eq!((voted[1], voted[4]), (1_000, 1_000));
    assert_binomial(voted[2], 1_000, 0.5);
    assert_binomial(voted[3], 3_000, 0.7);
    assert!(voted[0] > 50, "{voted:?}");
}

/// Weights, ranks, turnover and both coefficients by the wallets alone, and by the definitions.
#[test]
fn the_figures_of_elections_are_those_of_the_wallets() {
    let text = std::fs::read_to_string(crate::support::root().join("scenarios/cartel.toml")).expect("it is there");
    let played = play(&text, 3);
    let cartel: BTreeSet<String> = (12..=19).map(|number| format!("genesis_{number}")).collect();
    let (mut before, mut captured): (Option<BTreeSet<String>>, BTreeSet<u32>) = (None, BTreeSet::new());
    assert_eq!(played.elections.len(), 30);
    for (round, election) in &played.elections {
        // The round is made by the last block of the one before; the first by the genesis block.
        let state = played.state(((round - 1) * 11).max(1));
        let mut weights: BTreeMap<PublicKey, u64> = BTreeMap::new();
        for wallet in state.wallets() {
            if let Some(vote) = wallet.vote {
                *weights.entry(vote).or_default() += u64::try_from(wallet.balance.0).expect("voters have coins");
            }
        }
        let mut ranking: Vec<(u64, PublicKey)> = weights.iter().map(|(key, weight)| (*weight, *key)).collect();
        ranking.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        ranking.truncate(11);
        let of: Vec<u64> = ranking.iter().map(|(weight, _)| *weight).collect();
        let names: BTreeSet<String> = ranking
            .iter()
            .map(|(_, key)| state.delegate_of(key).expect("votes are for delegates").username.to_string())
            .collect();
        let total: u64 = of.iter().sum();
        let differences: u128 = of.iter().flat_map(|a| of.iter().map(move |b| u128::from(a.abs_diff(*b)))).sum();
        let gini = differences as f64 / (2.0 * 11.0 * total as f64);
        let nakamoto =
            (1..=11).find(|count| 2 * of[..*count].iter().sum::<u64>() > total).expect("all have more than half");
        assert_eq!((election.members, election.weight), (11, total), "round {round}");
        assert_eq!((election.greatest, election.least), (of[0], of[10]), "round {round}");
        assert_eq!(
            election.turnover,
            before.as_ref().map(|before| names.difference(before).count() as u32),
            "round {round}"
        );
        assert!((election.gini - gini).abs() < 1e-9, "round {round}: {} and {gini}", election.gini);
        assert_eq!(election.nakamoto as usize, nakamoto, "round {round}");
        assert_eq!(election.captured as usize, names.intersection(&cartel).count(), "round {round}");
        captured.insert(election.captured);
        before = Some(names);
    }
    assert!(captured.len() > 3 && captured.contains(&8), "the cartel comes in step by step: {captured:?}");
}

/// The cartel's own votes are too few: without what it pays it gets no seat.
#[test]
fn a_cartel_that_does_not_share_captures_nothing() {
    let text = std::fs::read_to_string(crate::support::root().join("scenarios/cartel.toml")).expect("it is there");
    let played = play(&text.replace("share = 0.8", "share = 0"), 3);
    assert!(played.elections.iter().all(|(_, election)| election.captured == 0));
}

/// A member's voters are shared so that no move of a voter brings the weights closer.
#[test]
fn a_cartel_keeps_its_members_level() {
    let group = "[[agents]]\nkind = 'cartel'\ndelegates = [4, 5, 6]\nvoters = 30\nstake = 9_000_000\nspread = { min = 1, max = 3 }\n";
    let played = play(&format!("{}{group}", head(12, 4, 3)), 1);
    let state = played.last();
    let most = played.testnet.voters[0].iter().map(|voter| voter.stake.value()).max().expect("there are thirty");
    let weights: Vec<i128> = ["genesis_5", "genesis_6", "genesis_7"]
        .iter()
        .map(|name| {
            state.wallet_by_username(name).and_then(|wallet| wallet.delegate.clone()).expect("one").vote_balance.0
        })
        .collect();
    let gap = weights.iter().max().expect("three") - weights.iter().min().expect("three");
    assert!(gap < 2 * i128::from(most), "{weights:?}, a voter has up to {most}");
    assert!(played.votes(0, &state).iter().all(Option::is_some));
    assert_eq!(played.elections.last().expect("twelve").1.captured, 3);
    assert_eq!(played.testnet.voters[0].iter().map(|voter| voter.stake.value()).sum::<u64>(), 9_000_000 * COIN);
}

#[test]
fn the_apathetic_vote_once_and_never_again() {
    let group = "[[agents]]\nkind = 'apathy'\nvoters = 400\nstake = 400_000\nturnout = 0.5\n";
    let played = play(&format!("{}{group}", head(16, 5, 2)), 1);
    let (early, late) = (played.votes(0, &played.state(30)), played.votes(0, &played.last()));
    assert_eq!(early, late);
    assert_binomial(late.iter().flatten().count(), 400, 0.5);
    // Each active delegate has its part, and those that stand by have none.
    for number in 1..=5 {
        let name = format!("genesis_{number}");
        assert_binomial(late.iter().flatten().filter(|vote| **vote == name).count(), 400, 0.1);
    }
    assert!(late.iter().flatten().all(|vote| !["genesis_6", "genesis_7"].contains(&vote.as_str())));
    assert!(played.elections.iter().all(|(_, election)| election.turnover.unwrap_or(0) == 0));
    // A vote costs its fee.
    let state = played.last();
    for (voter, vote) in played.testnet.voters[0].iter().zip(&late) {
        let fee = if vote.is_some() { COIN } else { 0 };
        let balance = state.wallet(&voter.address).expect("genesis has paid it").balance;
        assert_eq!(balance, Balance((voter.stake.value() - fee).into()));
    }
}

/// One delegate pays everything, and stands by. All who look go there, and stay: a part of 1 - (1 - chance)^k after k round ends.
#[test]
fn the_only_payer_collects_all_who_look() {
    let group = |chance| {
        format!(
            "[[agents]]\nkind = 'best-payer'\nvoters = 400\nstake = 40_000_000\nchance = {chance}\ndelegates = ['genesis_11']\nshare = 1\n"
        )
    };
    let all = play(&format!("{}{}", head(3, 10, 1), group(1.0)), 1);
    let votes = all.votes(0, &all.last());
    assert!(votes.iter().all(|vote| vote.as_deref() == Some("genesis_11")), "{votes:?}");
    let some = play(&format!("{}{}", head(8, 10, 1), group(0.2)), 1);
    // After round 1 they look for the first time. By the last block of round k + 1 those of k round ends have moved.
    for looks in [1, 3, 6] {
        let votes = some.votes(0, &some.state((looks + 1) * 10));
        let moved = votes.iter().filter(|vote| vote.as_deref() == Some("genesis_11")).count();
        assert_eq!(moved, votes.iter().flatten().count());
        assert_binomial(moved, 400, 1.0 - 0.8_f64.powi(looks as i32));
    }
    assert_eq!(some.elections.last().expect("eight").1.captured, 1, "it is voted in");
}

/// All pay alike. A voter leaves its delegate only for one where its part of the weight is greater by more than the gain, so in the end
/// no weight is above (1 + gain) times the least and the voter's own coins.
#[test]
fn equal_payers_end_with_even_weights() {
    let group = "[[agents]]\nkind = 'best-payer'\nvoters = 200\nstake = 40_000_000\nchance = 0.05\ngain = 0.2\n\
                 delegates = { from = 0, to = 6 }\nshare = 0.5\npay_rounds = 1000\n";
    let played = play(&format!("{}{group}", head(200, 7, 0)), 1);
    let (votes, before) = (played.votes(0, &played.last()), played.votes(0, &played.state(7 * 190)));
    assert_eq!(votes, before, "at rest");
    assert!(votes.iter().all(Option::is_some));
    let weights = played.last().round().members.iter().map(|member| member.vote_balance.0 as f64).collect::<Vec<_>>();
    let (least, most) = (weights.iter().copied().fold(f64::MAX, f64::min), weights.iter().copied().fold(0.0, f64::max));
    assert!(most <= 1.2 * (least + 200_000.0 * COIN as f64), "{weights:?}");
}

/// With all voters choosing anew at each round end, the active delegates are a random half, apart from those before: of ten each is new
/// with probability one half, which is hypergeometric with variance 10 / 4 * 10 / 19.
#[test]
fn churn_turns_over_what_chance_says() {
    let group =
        "[[agents]]\nkind = 'churn'\nvoters = 40\nstake = 90_000_000\nspread = { median = 1, sigma = 1 }\nchance = 1\n";
    let played = play(&format!("{}{group}", head(83, 10, 10)), 1);
    let turnover: Vec<u32> = played.elections.iter().filter_map(|(_, election)| election.turnover).skip(2).collect();
    assert_eq!(turnover.len(), 80);
    let mean = f64::from(turnover.iter().sum::<u32>()) / 80.0;
    let deviation = (2.5_f64 * 10.0 / 19.0 / 80.0).sqrt();
    assert!((mean - 5.0).abs() < 5.0 * deviation, "{mean}, expected 5 with deviation {deviation}");
}

/// Some of the voters choose anew, evenly among twelve: that many votes change.
#[test]
fn churn_changes_as_many_votes_as_chance_says() {
    let group = "[[agents]]\nkind = 'churn'\nvoters = 1000\nstake = 1_000_000\nchance = 0.02\n";
    let played = play(&format!("{}{group}", head(12, 10, 2)), 1);
    let votes: Vec<_> = (3..=12).map(|round| played.votes(0, &played.state(round * 10))).collect();
    assert!(votes[0].iter().all(Option::is_some));
    let changed: usize =
        votes.windows(2).map(|pair| pair[0].iter().zip(&pair[1]).filter(|(a, b)| a != b).count()).sum();
    assert_binomial(changed, 9 * 1000, 0.02 * 11.0 / 12.0);
}

/// Half of the asking prices are below the price. Each seller is paid at each payment, and all leave once the buyer stops.
#[test]
fn votes_are_bought_for_their_price() {
    let group = "[[agents]]\nkind = 'vote-buying'\nvoters = 400\nstake = 4_000_000\nprice = 50_000_000\nasks_most = 100_000_000\n\
                 delegates = ['genesis_6']\npay_rounds = 4\nuntil_round = 14\n";
    let played = play(&format!("{}{group}", head(20, 5, 1)), 1);
    let sold = played.votes(0, &played.state(60));
    let sellers = sold.iter().flatten().count();
    assert_binomial(sellers, 400, 0.5);
    assert!(sold.iter().flatten().all(|vote| vote == "genesis_6"));
    // Round ends 4, 8 and 12 are those of rounds 4, 8 and 12; that of round 16 comes after the last offer.
    let paid = played.payments(&["genesis_6"]);
    assert_eq!(paid.len(), 3 * sellers);
    assert!(paid.iter().all(|(_, _, _, amount)| *amount == 50_000_000));
    let voters: BTreeSet<Address> = paid.iter().map(|(_, _, voter, _)| *voter).collect();
    assert_eq!(voters.len(), sellers);
    assert_eq!(played.votes(0, &played.last()).iter().flatten().count(), 0, "they took their votes back");
}

/// Each payment is the share of what the delegate has forged since the one before, by the balances of its voters.
#[test]
fn a_share_is_paid_of_what_was_forged_since() {
    let payers = "[[agents]]\nkind = 'apathy'\nvoters = 50\nstake = 500_000\nspread = { min = 1, max = 9 }\ndelegates = [1, 2]\nshare = 0.75\npay_rounds = 3\n";
    let played = play(&format!("{}{payers}", head(13, 5, 0)), 1);
    let names = ["genesis_2", "genesis_3"];
    let mut paid: BTreeMap<(usize, String), BTreeMap<Address, u64>> = BTreeMap::new();
    for (height, name, voter, amount) in played.payments(&names) {
        // Payments follow the ends of rounds 3, 6, 9 and 12, at heights 15, 30, 45 and 60.
        let of = paid.entry(((height as usize - 1) / 15, name)).or_default();
        assert!(of.insert(voter, amount).is_none(), "each is paid once");
    }
    assert_eq!(paid.len(), 8);
    for ((payment, name), amounts) in &paid {
        let (state, before) =
            (played.state(*payment as u32 * 15), played.state((*payment as u32 - 1) * 15 + u32::from(*payment == 1)));
        let forged = |state: &State| {
            let wallet = state.wallet_by_username(name).expect("it is registered");
            let delegate = wallet.delegate.as_ref().expect("it is a delegate");
            (delegate.forged_rewards + delegate.forged_fees).0
        };
        let pool = 0.75 * (forged(&state) - forged(&before)) as f64;
        assert!(pool > 0.0);
        let key = state.wallet_by_username(name).and_then(|wallet| wallet.public_key);
        let own = *state.address_of(name).expect("it is registered");
        let voters: BTreeMap<Address, f64> = state
            .wallets()
            .filter(|wallet| wallet.vote == key && wallet.address != own)
            .map(|wallet| (wallet.address, wallet.balance.0 as f64))
            .collect();
        let weight: f64 = voters.values().sum();
        assert_eq!(amounts.keys().collect::<Vec<_>>(), voters.keys().collect::<Vec<_>>(), "{name}");
        for (voter, amount) in amounts {
            let expected = pool * voters[voter] / weight;
            assert!((*amount as f64 - expected).abs() <= 1.0, "{name}: {amount} of {expected}");
        }
    }
}

/// Offers, prices and names that are none are refused by key, with what was found and what is allowed.
#[test]
fn mistakes_are_named() {
    for (lines, words) in [
        (
            "kind = 'best'",
            "key 'agents[0].kind': unknown variant `best`, expected one of `best-payer`, `cartel`, `vote-buying`, `apathy`, `churn`",
        ),
        ("voters = 3", "key 'agents[0]': missing field `kind`"),
        ("kind = 'churn'", "key 'agents[0]': missing field `chance`"),
        ("kind = 'cartel'\nvoters = 3", "key 'agents[0].stake': found 0 beside 3 voters"),
        ("kind = 'cartel'\nshare = 0.5", "key 'agents[0].share': found 0.5, allowed is 0 without 'delegates'"),
        (
            "kind = 'cartel'\nvoters = 3\nstake = 9",
            "key 'agents[0].delegates': found none, allowed is a delegate in this or another group of 'cartel': its voters vote for no other",
        ),
        (
            "kind = 'cartel'\ndelegates = [1]\n[[agents]]\nkind = 'vote-buying'\nvoters = 3\nstake = 9\nprice = 1\nasks_most = 2",
            "key 'agents[1].delegates': found none, allowed is a delegate in this or another group of 'vote-buying': its voters vote for no other",
        ),
        (
            "kind = 'cartel'\nvotes = 3",
            "key 'agents[0].votes': unknown field `votes`, expected one of `delegates`, `kind`",
        ),
        (
            "kind = 'cartel'\ndelegates = [1]\n[[agents]]\nkind = 'cartel'\ndelegates = ['genesis_2']",
            "key 'agents[1].delegates': found node 1, which is in agents[0], allowed is each delegate in one group",
        ),
    ] {
        let text = format!("{}[[agents]]\n{lines}\n", head(3, 5, 0));
        let why = Scenario::parse(&text, Path::new("agents.toml")).expect_err(&text).to_string();
        assert!(why.contains(words), "{lines}: {why}");
    }
}

/// All voters go to a delegate that stands by: one member of five is new, and has half of the weight.
#[test]
fn metrics_of_elections_can_be_asserted() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("s.toml");
    let group = "[[agents]]\nkind = 'best-payer'\nvoters = 50\nstake = 40_000_000\nchance = 1\ndelegates = ['genesis_6']\nshare = 1\n";
    // It has 52.5 million and the other four 12.5 each: more than half of 102.5, and a Gini coefficient of 320 / 1025.
    let asserts = [
        "sometimes = 'turnover == 1'",
        "finally = 'captured == 1'",
        "finally = 'nakamoto == 1'",
        "always = 'gini < 0.5'",
        "finally = 'gini > 0.3'",
        "finally = 'turnover == 0'",
    ];
    let asserts: String = asserts.iter().map(|line| format!("[[assert]]\n{line}\n")).collect();
    std::fs::write(&file, format!("{}{group}{asserts}", head(5, 5, 1))).expect("a folder of our own");
    let output = run(&["run", &file.display().to_string(), "--stage", "inline"]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}{}", String::from_utf8_lossy(&output.stderr));
}

/// Groups of included files come before those of the file itself.
#[test]
fn groups_of_included_files_add_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let group = |voters: u32| format!("[[agents]]\nkind = 'apathy'\nvoters = {voters}\nstake = 1000\n");
    std::fs::write(path("base.toml"), format!("{}{}", head(3, 5, 0), group(2))).expect("it can be written");
    std::fs::write(path("main.toml"), format!("include = ['base.toml']\n{}", group(3))).expect("it can be written");
    let scenario = Scenario::load(&path("main.toml")).unwrap_or_else(|why| panic!("{why}"));
    let voters: Vec<u32> = scenario.agents.iter().map(|group| group.voters).collect();
    assert_eq!(voters, [2, 3]);
}
