//! Generated and recorded loads, in whole runs: lengths of vendor fields, amounts and times between arrivals have the distributions that
//! the file names, and the rows of a recorded load come at their own times with what they say.

use super::{samples, scenario};
use crate::support::run;
use dposlab::{
    actors::{Event, NodeId, SimTime},
    protocol::{Address, Asset, Kind, SignedTransaction, crypto::sha256},
    sim::{Observer, SeedTree},
};
use statrs::distribution::{ContinuousCDF, LogNormal};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    sync::{Arc, Mutex},
};

/// A transaction that came to a pool for the first time.
#[derive(Clone)]
struct Seen {
    /// After the beginning of the run, in microseconds.
    at: u64,
    transaction: Arc<SignedTransaction>,
}

impl Seen {
    fn length(&self) -> usize {
        self.transaction.transaction().vendor_field.as_ref().map_or(0, String::len)
    }

    fn coins(&self) -> f64 {
        self.transaction.amount().value() as f64 / 1e8
    }
}

/// Transactions with the instants at which they came.
#[derive(Default)]
struct Arrivals {
    seen: Vec<(SimTime, Arc<SignedTransaction>)>,
    ids: BTreeSet<String>,
}

#[derive(Clone, Default)]
struct Load(Arc<Mutex<Arrivals>>);

impl Observer for Load {
    fn observe(&mut self, now: SimTime, _: NodeId, event: &Event) {
        if let Event::PoolAdded(added) = event {
            let mut load = self.0.lock().expect("no observer panics");
            for transaction in added {
                if load.ids.insert(transaction.id().to_string()) {
                    load.seen.push((now, Arc::clone(transaction)));
                }
            }
        }
    }
}

/// The transactions of a run in the order in which they came, those of the accounts left out, which fund the wallets.
fn load(text: &str) -> Vec<Seen> {
    let scenario = scenario(text);
    let seeds = SeedTree::new(1);
    let testnet = scenario.testnet(seeds);
    let plan = scenario.plan(&testnet, seeds);
    let load = Load::default();
    scenario.play_inline(&plan, vec![Box::new(load.clone())], |_| true);
    let load = load.0.lock().expect("it is over");
    let accounts: Vec<_> = testnet.accounts.iter().map(|account| *account.keys.public()).collect();
    let own = load.seen.iter().filter(|(_, transaction)| !accounts.contains(transaction.sender()));
    let at = |now: SimTime| now.since(plan.start).as_micros() as u64;
    own.map(|(now, transaction)| Seen { at: at(*now), transaction: Arc::clone(transaction) }).collect()
}

/// Some 5,000 transactions of two hundred wallets.
fn generated(keys: &str) -> Vec<Seen> {
    let seen = load(&format!(
        "rounds = 64\n[network]\ndelegates = 4\nvendor_field_bytes = 255\n[[workload]]\nkind = 'generate'\nper_second = 2.5\nwallets = 200\n{keys}\n"
    ));
    assert!(seen.len() > 4_500, "{} transactions", seen.len());
    seen
}

fn lengths(keys: &str) -> Vec<f64> {
    generated(keys).iter().map(|seen| seen.length() as f64).collect()
}

/// The distribution of whole bytes below a length that has this one. Longer ones are cut to 255 bytes.
fn whole_bytes(below: impl Fn(f64) -> f64) -> impl Fn(f64) -> f64 {
    move |x| {
        if x < 0.0 {
            0.0
        } else if x >= 255.0 {
            1.0
        } else {
            below(x.floor() + 1.0)
        }
    }
}

fn exponential(mean: f64) -> impl Fn(f64) -> f64 {
    move |x| if x < 0.0 { 0.0 } else { 1.0 - (-x / mean).exp() }
}

fn log_normal(median: f64, sigma: f64) -> impl Fn(f64) -> f64 {
    let form = LogNormal::new(median.ln(), sigma).expect("a positive sigma");
    move |x| form.cdf(x)
}

#[test]
fn lengths_of_vendor_fields_have_the_distributions_that_the_file_names() {
    assert!(lengths("vendor_field = 17").iter().all(|length| *length == 17.0));
    assert!(lengths("vendor_field = 0").iter().all(|length| *length == 0.0));
    let even = |min: f64, max: f64| move |x: f64| ((x.floor() - min + 1.0) / (max - min + 1.0)).clamp(0.0, 1.0);
    samples::distributed(&lengths("vendor_field = { min = 20, max = 120 }"), even(20.0, 120.0), even(20.0, 126.0));
    // A tenth of all is longer than a network allows.
    let drawn = lengths("vendor_field = { mean = 110 }");
    let cut = drawn.iter().filter(|length| **length == 255.0).count();
    samples::is_binomial(cut, drawn.len(), (-255.0_f64 / 110.0).exp(), &[0.075, 0.125]);
    samples::distributed(&drawn, whole_bytes(exponential(110.0)), whole_bytes(exponential(126.0)));
    let drawn = lengths("vendor_field = { median = 40, sigma = 0.8 }");
    samples::distributed(&drawn, whole_bytes(log_normal(40.0, 0.8)), whole_bytes(log_normal(44.0, 0.8)));
    samples::distributed(&drawn, whole_bytes(log_normal(40.0, 0.8)), whole_bytes(log_normal(40.0, 1.0)));
    let listed = |share: f64| {
        move |x: f64| {
            if x < 3.0 {
                0.0
            } else if x < 200.0 {
                share
            } else {
                1.0
            }
        }
    };
    samples::distributed(&lengths("vendor_field = [3, 200, 3, 200, 3]"), listed(0.6), listed(0.64));
}

/// A byte of a vendor field is a byte of its transaction. Types without one have none.
#[test]
fn vendor_fields_make_transactions_as_long_as_they_are() {
    let keys = "vendor_field = { min = 0, max = 255 }\nfunding = 2000\nmix = { transfer = 4, ipfs = 1, multi-payment = 1, htlc-lock = 1 }";
    let seen = generated(keys);
    let mut by_kind: BTreeMap<Kind, BTreeSet<usize>> = BTreeMap::new();
    let mut longest = BTreeMap::new();
    for one in &seen {
        let payments = match one.transaction.asset() {
            Asset::MultiPayment { payments } => 29 * payments.len(),
            _ => 0,
        };
        let kind = one.transaction.kind();
        by_kind.entry(kind).or_default().insert(one.transaction.size() - one.length() - payments);
        let most: &mut usize = longest.entry(kind).or_default();
        *most = (*most).max(one.length());
    }
    assert!(by_kind.values().all(|sizes| sizes.len() == 1), "{by_kind:?}");
    assert!(longest.iter().all(|(kind, most)| (*most > 250) == (*kind != Kind::Ipfs)), "{longest:?}");
    assert_eq!((longest.len(), longest[&Kind::Ipfs]), (4, 0));
}

#[test]
fn amounts_and_times_between_arrivals_have_the_distributions_that_the_file_names() {
    let coins = |keys: &str| generated(keys).iter().map(Seen::coins).collect::<Vec<f64>>();
    let even = |min: f64, max: f64| move |x: f64| ((x - min) / (max - min)).clamp(0.0, 1.0);
    samples::distributed(&coins("amount = { min = 0.5, max = 1.5 }"), even(0.5, 1.5), even(0.5, 1.57));
    let amounts = coins("amount = { median = 0.5, sigma = 0.6 }");
    samples::distributed(&amounts, log_normal(0.5, 0.6), log_normal(0.54, 0.6));
    let gaps = |keys: &str| {
        let seen = generated(keys);
        seen.windows(2).map(|two| (two[1].at - two[0].at) as f64 / 1e6).collect::<Vec<f64>>()
    };
    samples::distributed(&gaps("arrivals = 'poisson'"), exponential(0.4), exponential(0.445));
    assert!(gaps("arrivals = 'even'").iter().all(|gap| *gap == 0.4));
}

/// The preset of a scenario's network allows 64 bytes at these heights.
#[test]
fn lengths_are_cut_to_the_limit_of_the_network() {
    let longest = |network: &str| {
        let seen = load(&format!(
            "rounds = 12\n[network]\ndelegates = 4\n{network}\n[[workload]]\nkind = 'generate'\nper_second = 2\n\
             vendor_field = {{ min = 60, max = 255 }}\n"
        ));
        assert!(seen.len() > 300, "{} transactions", seen.len());
        seen.iter().map(Seen::length).max()
    };
    assert_eq!(longest(""), Some(64));
    assert_eq!(longest("vendor_field_bytes = 100"), Some(100));
    assert!(longest("vendor_field_bytes = 255") > Some(245));
}

/// Draws by name: another length changes no other draw, and without one all runs are as they were before there was the key.
#[test]
fn lengths_change_no_other_draw() {
    let drawn = |keys: &str| -> Vec<(u64, u64, String)> {
        let one = |seen: &Seen| (seen.at, seen.transaction.amount().value(), seen.transaction.sender().to_string());
        generated(keys).iter().map(one).collect()
    };
    let short = drawn("vendor_field = 3");
    assert!(short == drawn("vendor_field = { mean = 90 }"));
    assert!(short == drawn("vendor_field = [1, 2]"));
}

/// The instants, in microseconds, are those of the rows, after the beginning of the workload. Rows that come before the wallets are funded
/// wait for that.
#[test]
fn rows_of_a_recorded_load_come_at_their_own_times() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("load.csv");
    let name = file.display();
    let times: Vec<f64> = (0..900_u32).map(|row| 40.0 + f64::from(row * row % 977) / 3.0).collect();
    let mut sorted = times.clone();
    sorted.sort_by(f64::total_cmp);
    let early = [0.0, 0.25, 7.5];
    let rows: String = early.iter().chain(&sorted).map(|seconds| format!("{seconds}\n")).collect();
    fs::write(&file, format!("seconds\n{rows}")).expect("it is written");
    for (from, first) in [("'start'", 0_u64), ("{ seconds = 21.5 }", 21_500_000)] {
        let text = format!(
            "rounds = 30\n[network]\ndelegates = 4\n[[workload]]\nkind = 'trace'\nfile = '{name}'\nwallets = 60\nfrom = {from}\n"
        );
        let found: Vec<u64> = load(&text).iter().map(|seen| seen.at).collect();
        let wanted: Vec<u64> = sorted.iter().map(|seconds| first + (seconds * 1e6).round() as u64).collect();
        assert_eq!(found.len(), early.len() + wanted.len(), "{from}");
        assert_eq!(found[early.len()..], wanted, "{from}");
        let funded = found[0];
        assert!(found[..early.len()].iter().all(|at| *at == funded), "{from}: {:?}", &found[..4]);
        assert!(funded > first + 7_500_000 && funded < first + 40_000_000, "{from}: {funded}");
    }
}

/// Labels are wallets: the same label is the same wallet, as a sender and as a recipient.
#[test]
fn rows_of_a_recorded_load_say_who_sends_what_to_whom() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("load.csv");
    let mut rows = String::from("seconds,sender,recipient,amount,kind,vendor_field\n");
    let labels = ["alice", "bob", "carol"];
    for row in 0..300_usize {
        let (sender, recipient) = (labels[row % 3], [labels[(row + 1) % 3], "shop"][row % 2]);
        let kind = ["transfer", "", "htlc-lock"][row / 3 % 3];
        rows += &format!("{},{sender},{recipient},{}.5,{kind},{}\n", 40 + row, row % 7, row % 256);
    }
    fs::write(&file, rows).expect("it is written");
    let text = format!(
        "rounds = 20\n[network]\ndelegates = 4\nvendor_field_bytes = 255\n[[workload]]\nkind = 'trace'\nfile = '{}'\nfunding = 5000\n",
        file.display()
    );
    let seen = load(&text);
    assert_eq!(seen.len(), 300);
    let addresses: Vec<Address> = seen[..3].iter().map(|one| one.transaction.sender_address()).collect();
    assert_eq!(addresses.iter().collect::<BTreeSet<_>>().len(), 3);
    for (row, one) in seen.iter().enumerate() {
        let to = if row % 2 == 1 { None } else { Some(addresses[(row + 1) % 3]) };
        let shop = sha256(b"shop");
        assert_eq!(one.at, (40 + row as u64) * 1_000_000, "row {row}");
        assert_eq!(one.transaction.sender_address(), addresses[row % 3], "row {row}");
        let found = one.transaction.asset().recipient().expect("both types have one");
        assert!(to.map_or(found.as_bytes()[1..] == shop[..20], |to| found == to), "row {row}: {found}");
        assert_eq!(one.coins(), (row % 7) as f64 + 0.5, "row {row}");
        assert_eq!(one.length(), row % 256, "row {row}");
        let kind = if row / 3 % 3 == 2 { Kind::HtlcLock } else { Kind::Transfer };
        assert_eq!(one.transaction.kind(), kind, "row {row}");
    }
}

/// A study keeps the file of a recorded load, so that it can be repeated when the file is gone.
#[test]
fn a_study_keeps_its_recorded_load() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    fs::write(path("load.csv"), "seconds,sender\n20,a\n30.5,b\n31,a\n").expect("it is written");
    let text = format!(
        "version = 1\nrounds = 4\ncrypto = 'modelled'\n[network]\ndelegates = 4\n[[workload]]\nkind = 'trace'\nfile = '{}'\n",
        path("load.csv")
    );
    fs::write(path("s.toml"), text).expect("it is written");
    for (command, seeds) in [("run", ["--seed", "3"]), ("sweep", ["--seeds", "3..5"])] {
        let output = run(&[&[command, &path("s.toml"), "--out", &path(command)], &seeds[..]].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let kept = fs::read(folder.path().join(command).join("scenario/load.csv")).expect("it is kept");
        assert_eq!(kept, fs::read(path("load.csv")).expect("it is there"));
    }
    fs::remove_file(path("load.csv")).expect("it was there");
    for command in ["run", "sweep"] {
        let output = run(&[command, &path(command)]);
        let told = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && told.contains("the same: "),
            "{told}{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let gone = run(&["run", &path("s.toml")]);
    let why = String::from_utf8_lossy(&gone.stderr);
    assert!(
        gone.status.code() == Some(2) && why.contains("key 'workload[0].file'") && why.contains("load.csv"),
        "{why}"
    );
}
