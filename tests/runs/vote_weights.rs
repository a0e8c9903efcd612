//! `network.vote_weights`: what delegates have at genesis, against closed forms of Zipf's law, from lists and from files.

use crate::support::run;
use dposlab::{
    Change, NetworkSection, VoteWeights,
    check::invariants,
    ledger::{Rules, State},
    protocol::{Address, Arktoshi, crypto::CryptoMode},
    report::Metrics,
    scenario::{Override, Scenario, ScenarioFiles, StageKind},
    sim::{Observer, SeedTree},
};
use std::{collections::BTreeMap, fs, path::Path};

/// All coins of a generated network, in arktoshi.
const TOTAL: u64 = 12_500_000_000_000_000;
/// The coins of its ten accounts.
const ACCOUNTS: u64 = 10 * 100_000_000_000_000;

fn scenario(network: &str) -> Scenario {
    let text = format!("version = 1\nrounds = 2\ncrypto = \"modelled\"\n[network]\n{network}\n");
    Scenario::parse(&text, Path::new("w.toml")).unwrap_or_else(|why| panic!("{why}\n{text}"))
}

fn error(network: &str) -> String {
    let text = format!("version = 1\nrounds = 2\n[network]\n{network}\n");
    Scenario::parse(&text, Path::new("w.toml")).expect_err("it is refused").to_string()
}

/// The vote weights after genesis by the delegates' numbers. The invariants hold there, supply and weights among them.
fn weights(scenario: &Scenario) -> (Vec<u64>, State) {
    let testnet = scenario.testnet(SeedTree::new(3));
    let tree = testnet.tree(Rules::reference()).expect("its genesis registers all delegates");
    let state = tree.applied(tree.genesis()).state.clone();
    invariants::check_all(&tree, tree.genesis()).unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(testnet.config.genesis.block.header.total_amount, Arktoshi::new(TOTAL).expect("an amount"));
    let weight = |key| state.delegate_of(key).expect("it is registered").vote_balance.or_zero();
    (testnet.delegates.iter().map(|delegate| weight(delegate.keys.public())).collect(), state)
}

/// The usernames of the first round, by rank.
fn members(state: &State) -> Vec<String> {
    let name = |key| state.delegate_of(key).expect("it is registered").username.to_string();
    state.round().members.iter().map(|member| name(&member.public_key)).collect()
}

/// The sum of k^-exponent for 1 to n: a generalised harmonic number.
fn harmonic(n: u32, exponent: f64) -> f64 {
    (1..=n).map(|k| f64::from(k).powf(-exponent)).sum()
}

/// By rank k the i-th least of n is that with k = n + 1 - i, so the Gini coefficient of k^-s is
/// (n + 1) / n - 2 H(n, s - 1) / (n H(n, s)). More than half have the first m with H(m, s) > H(n, s) / 2.
#[test]
fn the_first_round_of_zipf_s_law_has_its_gini_and_nakamoto_coefficients() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let file = folder.path().join("z.toml");
    for (number, (delegates, exponent)) in
        [(1_u32, 1.0), (21, 0.0), (21, 0.5), (51, 1.0), (51, 1.1), (51, 2.0), (7, 3.25)].into_iter().enumerate()
    {
        let text = format!(
            "version = 1\nrounds = 1\ncrypto = \"modelled\"\n[network]\ndelegates = {delegates}\ngossip = \"once\"\n\
             vote_weights = {{ zipf = {exponent:?} }}\n"
        );
        fs::write(&file, text).expect("it can be written");
        let out = folder.path().join(number.to_string());
        let output = run(&["run", &file.display().to_string(), "--out", &out.display().to_string()]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let mut table = csv::Reader::from_path(out.join("elections.csv")).expect("it is there");
        let row: BTreeMap<String, String> = table.deserialize().next().expect("a round").expect("a row");
        let of = |column: &str| row[column].parse::<f64>().expect("a number");
        let (n, sum) = (f64::from(delegates), harmonic(delegates, exponent));
        let gini = (n + 1.0) / n - 2.0 * harmonic(delegates, exponent - 1.0) / (n * sum);
        assert!((of("gini") - gini).abs() < 1e-9, "{exponent} of {delegates}: {row:?}, {gini} is expected");
        // Half of an even number of equal weights is not more than half; sums of floats do not decide that.
        let half = (1..=delegates).find(|m| harmonic(*m, exponent) > sum / 2.0 + 1e-9).expect("all are more than half");
        assert_eq!(row["nakamoto"], half.to_string(), "{exponent} of {delegates}: {row:?}");
        let spare = (TOTAL - ACCOUNTS) as f64;
        assert!((0.0..n).contains(&(spare - of("weight"))), "{row:?}: only what cannot be divided is left over");
        for (column, expected) in [("weight_greatest", spare / sum), ("weight_least", spare / sum * n.powf(-exponent))]
        {
            assert!(
                (of(column) - expected).abs() <= 1.0 + 1e-13 * expected,
                "{row:?}: {column} of {expected} is expected"
            );
        }
    }
}

#[test]
fn ranks_follow_weights() {
    let (found, state) = weights(&scenario("delegates = 5\nstandby = 3\nvote_weights = { zipf = 0.8 }"));
    assert!(found.windows(2).all(|pair| pair[0] > pair[1]), "{found:?}");
    assert_eq!(members(&state), [1, 2, 3, 4, 5].map(|number| format!("genesis_{number}")));
    // Delegates on standby with the most votes have the seats, and one without a vote has a wallet of its own.
    let list = [30, 0, 20, 5, 6, 70, 8, 90];
    let (found, state) =
        weights(&scenario(&format!("delegates = 5\nstandby = 3\nvote_weights = {{ list = {list:?} }}")));
    assert_eq!(found, list);
    assert_eq!(members(&state), [8, 6, 1, 3, 7].map(|number| format!("genesis_{number}")));
}

/// All that delegates, accounts and agents do not have is in one wallet without a vote, so each list adds up to all coins.
#[test]
fn coins_that_no_delegate_gets_are_in_a_wallet_without_a_vote() {
    let agents = "[[agents]]\nkind = \"churn\"\nchance = 0\nvoters = 3\nstake = 1000000\n";
    let spare = TOTAL - ACCOUNTS - 100_000_000_000_000;
    let all = format!("{{ list = [{}, 1, 1] }}", spare - 2);
    for (form, left) in [("{ list = [7, 0, 9] }", spare - 16), (&*all, 0), ("{ zipf = 0 }", spare % 3)] {
        let played = scenario(&format!("delegates = 3\nvote_weights = {form}\n{agents}"));
        let (found, state) = weights(&played);
        assert_eq!(found.iter().sum::<u64>() + left, spare, "{form}");
        let testnet = played.testnet(SeedTree::new(3));
        let known = |address: &Address| {
            testnet.accounts.iter().any(|account| account.address == *address)
                || testnet.voters.iter().flat_map(|group| group.iter()).any(|voter| voter.address == *address)
                || state.wallet(address).is_some_and(|wallet| wallet.delegate.is_some())
        };
        let others: Vec<_> = state.wallets().filter(|wallet| !known(&wallet.address)).collect();
        let [premine] = others[..] else { panic!("{form}: {} other wallets", others.len()) };
        assert!(premine.vote.is_none(), "{form}");
        let paid = i128::from(left) - i128::from(TOTAL);
        assert_eq!(premine.balance.to_string(), paid.to_string(), "{form}: it pays all coins and gets the rest back");
    }
}

#[test]
fn weights_that_do_not_fit_are_refused_by_name() {
    let spare = TOTAL - ACCOUNTS;
    let place = "w.toml:5: key 'network.vote_weights";
    for (value, why) in [
        ("{ list = [1, 2] }", "list': found 2 weights, allowed is 3, one for each delegate".to_owned()),
        ("{ list = [1, 2, 3, 4] }", "list': found 4 weights, allowed is 3, one for each delegate".to_owned()),
        ("{ list = [] }", "list': found 0 weights, allowed is 3, one for each delegate".to_owned()),
        (
            "{ list = [0, 0, 0] }",
            format!(
                "list': found 0 arktoshi in all, allowed is 1 to {spare}, the coins that accounts and agents leave"
            ),
        ),
        (
            &format!("{{ list = [{spare}, 0, 1] }}"),
            format!(
                "list': found {} arktoshi in all, allowed is 1 to {spare}, the coins that accounts and agents leave",
                spare + 1
            ),
        ),
        ("{ zipf = -0.1 }", "zipf': found -0.1, allowed is 0 to 10".to_owned()),
        ("{ zipf = 10.1 }", "zipf': found 10.1, allowed is 0 to 10".to_owned()),
        ("{ zipf = nan }", "zipf': found NaN, allowed is 0 to 10".to_owned()),
    ] {
        assert_eq!(error(&format!("delegates = 3\nvote_weights = {value}")), format!("{place}.{why}"));
    }
    // Agents have coins, too.
    let rest = spare - 200_000_000;
    let with = |list: u64| {
        format!(
            "delegates = 1\nvote_weights = {{ list = [{list}] }}\n[[agents]]\nkind = \"apathy\"\nvoters = 1\nstake = 2\n"
        )
    };
    assert_eq!(weights(&scenario(&with(rest))).0, [rest]);
    assert!(error(&with(rest + 1)).contains(&format!("allowed is 1 to {rest}, ")), "{}", error(&with(rest + 1)));
    let unknown = error("delegates = 3\nvote_weights = { pareto = 1 }");
    assert!(unknown.contains("unknown variant `pareto`, expected one of `equal`, `zipf`, `list`"), "{unknown}");
}

#[test]
fn a_file_of_weights_is_the_list_that_it_holds() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let put = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("it can be written");
    let top = folder.path().join("s.toml");
    let named = |delegates: u32| {
        put(
            "s.toml",
            &format!(
                "version = 1\nrounds = 2\ncrypto = \"modelled\"\n[network]\ndelegates = {delegates}\n\
                 vote_weights = {{ list = {{ file = \"w.csv\" }} }}\n"
            ),
        );
        Scenario::load(&top).map_err(|why| why.to_string().replace(&folder.path().display().to_string(), "DIR"))
    };
    put("w.csv", "username,weight\ngenesis_2,200\ngenesis_1,300\ngenesis_3,100\n");
    let inline = scenario("delegates = 3\nvote_weights = { list = [300, 200, 100] }");
    assert_eq!(named(3).expect("it is a scenario"), inline);
    assert_eq!(inline.network.vote_weights, VoteWeights::List(vec![300, 200, 100]));
    let files = ScenarioFiles::read(&top).expect("both are there");
    let texts: Vec<&Path> = files.texts().map(|(path, _)| path).collect();
    assert_eq!(texts, [&*top, &folder.path().join("w.csv")]);
    // From the texts alone.
    fs::remove_file(folder.path().join("w.csv")).expect("it was there");
    assert_eq!(Scenario::load_from(&files, &[]).expect("both were read"), inline);
    let wrong = named(3).expect_err("there is none");
    assert!(wrong.starts_with("DIR/s.toml:6: key 'network.vote_weights.list': found 'DIR/w.csv': "), "{wrong}");
    let key = "key 'network.vote_weights.list': found";
    for (text, why) in [
        (
            "username,weight\ngenesis_1,1\ngenesis_2,1\n",
            format!("DIR/s.toml:6: {key} 2 weights, allowed is 3, one for each delegate"),
        ),
        (
            "username,weight\ngenesis_1,1\ngenesis_4,1\ngenesis_2,1\n",
            format!("DIR/w.csv:3: {key} 'genesis_4', allowed is 'genesis_1' to 'genesis_3', since the file has 3 rows"),
        ),
        (
            "username,weight\ngenesis_1,1\ngenesis_1,2\ngenesis_2,1\n",
            format!("DIR/w.csv:3: {key} 'genesis_1' again, as in line 2, allowed is each delegate once"),
        ),
        ("genesis_1,1\n", format!("DIR/w.csv:1: {key} 'genesis_1,1', allowed is the header 'username,weight'")),
        (
            "username,weight\ngenesis_1,many\n",
            format!("DIR/w.csv:2: {key} 'many', allowed is a whole number of arktoshi"),
        ),
    ] {
        put("w.csv", text);
        assert_eq!(named(3).expect_err("it is refused"), why);
    }
    // A value that is set names no file, for it stands in none.
    put("w.csv", "username,weight\ngenesis_1,1\n");
    let set: Override = "network.vote_weights.list={ file = 'w.csv' }".parse().expect("a path and a value");
    named(1).expect("it is a scenario");
    let wrong = Scenario::load_with(&top, &[set]).expect_err("it is refused").to_string();
    assert!(
        wrong.ends_with("found { file = \"w.csv\" }, allowed is a list, or in a scenario file { file = NAME }"),
        "{wrong}"
    );
    // A text of others names no file of this machine.
    let text = fs::read_to_string(&top).expect("it was written");
    let wrong = Scenario::parse_foreign(&text, &top, &[], &["w.csv"]).expect_err("it is refused").to_string();
    assert!(wrong.contains(":6: key 'network.vote_weights.list': found '") && wrong.contains("no file: "), "{wrong}");
}

/// Equal weights are those of before this key: `zipf = 0` gives the same where no delegate stands by.
#[test]
fn weights_decide_who_forges() {
    let play = |network: &str| {
        let scenario = scenario(network);
        let plan = scenario.plan(&scenario.testnet(SeedTree::new(1)), SeedTree::new(1));
        let metrics = Metrics::new(&plan);
        let observers: Vec<Box<dyn Observer>> = vec![Box::new(metrics.clone())];
        let outcome = scenario.play(&plan, StageKind::Inline, observers, |_| {}).expect("no actor dies");
        let figures = metrics.finish(outcome.end);
        let forged = figures.chain.iter().flat_map(|round| &round.delegates).filter(|delegate| delegate.forged > 0);
        let mut names: Vec<String> = forged.map(|delegate| delegate.username.clone()).collect();
        names.sort();
        names.dedup();
        (outcome.digest.to_string(), names)
    };
    let same = |vote_weights: &str| play(&format!("delegates = 4\n{vote_weights}")).0;
    assert_eq!(same(""), same("vote_weights = \"equal\""));
    assert_eq!(same(""), same("vote_weights = { zipf = 0 }"));
    assert_ne!(same(""), same("vote_weights = { zipf = 1 }"));
    let (_, forgers) = play("delegates = 3\nstandby = 2\nvote_weights = { list = [0, 0, 5, 7, 6] }");
    assert_eq!(forgers, ["genesis_3", "genesis_4", "genesis_5"], "of two without votes none has a seat");
    // The other keys of a network do not depend on it.
    let milestones = vec![Change { height: 5, delegates: Some(2), ..Change::default() }];
    let vote_weights = VoteWeights::List(vec![1, 3, 2, 9]);
    let section = NetworkSection { delegates: 4, vote_weights, milestones, ..NetworkSection::default() };
    let made = Scenario { network: section, crypto: CryptoMode::Modelled, ..scenario("delegates = 4") };
    assert!(made.is_allowed());
    let read = Scenario::parse(&made.to_toml(), Path::new("own.toml")).expect("its own text");
    assert_eq!(read, made);
}
