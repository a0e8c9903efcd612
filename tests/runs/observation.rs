//! A chain judged from outside: real chains and our own are in order, and each rule that a block breaks is named, and no other.

use crate::{
    support::{dposlab, recording, recordings, root, run},
    testnet::Up,
};
use dposlab::{
    actors::{Event, NodeId, SimTime},
    check::observe::{ChainReport, ChainRule, Claims, NoIncident, Seats, observe},
    ledger::{BlockTree, Rules},
    protocol::{
        Arktoshi, Block, BlockContext, BlockHeader, Height, KeyPair, NetworkConfig, Nonce, RoundNumber,
        SignedTransaction, Slot, Timestamp, Transaction,
        crypto::{CryptoMode::Real, ecdsa, sha256},
        shuffle::forging_order,
        transaction::Dialect,
    },
    scenario::Scenario,
    sim::{Observer, SeedTree, stage::inline::InlineStage},
};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    sync::{Arc, LazyLock, Mutex},
    thread,
};

/// The recorded chain, a block a line.
static LINES: LazyLock<Vec<String>> =
    LazyLock::new(|| recording("chain/blocks.jsonl").lines().map(str::to_owned).collect());

/// The height of the block with most transactions of the recorded chain.
const FULL: u32 = 11;

fn file(name: &str) -> Value {
    let text = fs::read_to_string(recordings().join("network").join(name)).expect("it is recorded");
    serde_json::from_str(&text).expect("JSON")
}

/// The rules of the recorded node, which ran in its test environment.
fn rules() -> Arc<Rules> {
    let mut rules = Rules { minimum_network_reach: None, ..Rules::reference() };
    rules.ledger.minimum_lock_expiration = false;
    Arc::new(rules)
}

/// The recorded network, with other milestones.
fn tree_with(change: &dyn Fn(&mut Value)) -> BlockTree {
    tree_of("milestones.json", change)
}

/// The recorded network, of which one file is changed.
fn tree_of(file_name: &str, change: &dyn Fn(&mut Value)) -> BlockTree {
    let part = |name: &str| {
        let mut json = file(name);
        if name == file_name {
            change(&mut json);
        }
        Ok(json)
    };
    let config = NetworkConfig::of(part, Real).expect("the preset is complete");
    BlockTree::new(Arc::new(config), rules()).expect("51 delegates")
}

fn tree() -> BlockTree {
    tree_with(&|_| {})
}

fn judged<T: AsRef<str>>(tree: &BlockTree, lines: impl IntoIterator<Item = T>, seats: &Seats) -> ChainReport {
    let mut claims = Claims::new(tree.config().clone());
    for line in lines {
        claims.read("chain", line.as_ref()).expect("it is JSON");
    }
    observe(tree, claims, seats, |_, _| {}).expect("the delegates are those of the network")
}

/// The height and rule of each violation.
fn broken(report: &ChainReport) -> Vec<(u32, &'static str)> {
    report.broken.iter().map(|one| (one.height.expect("it is read").0, one.violation.rule.name())).collect()
}

fn not_judged(report: &ChainReport) -> BTreeMap<&'static str, usize> {
    let left = report.rules.iter().filter(|held| held.not_judged > 0);
    left.map(|held| (held.rule.name(), held.not_judged)).collect()
}

// What is in order.

#[test]
fn the_recorded_chain_keeps_every_rule() {
    let report = judged(&tree(), LINES.iter(), &Seats::default());
    assert!(report.is_in_order(), "{:?}", report.broken);
    assert_eq!((report.blocks, report.applied_to), (111, Some(Height(111))));
    assert_eq!(not_judged(&report), BTreeMap::new());
    let forged = |rule: &ChainRule| {
        if *rule == ChainRule::Genesis {
            1
        } else if *rule == ChainRule::Form {
            111
        } else {
            110
        }
    };
    assert!(report.rules.iter().all(|held| held.judged == forged(&held.rule)), "{:?}", report.rules);
    assert_eq!(report.rules.len(), ChainRule::ALL.len());
    // One forger was missing between the heights 69 and 70.
    let gap = &report.gaps[0];
    assert_eq!((report.gaps.len(), gap.height, gap.slots), (1, Height(70), 1));
    assert_eq!(gap.missed[0].delegate.as_deref(), Some("peer_bob"));
    assert_eq!(gap.next, "genesis_44");
    assert!(report.forks.is_empty() && report.doubles.is_empty());
}

/// The first 154 blocks after genesis that nodes of Core 2.0 forged on 11 September 2018: three rounds and two blocks of a fourth, without
/// transactions. The nodes were stopped twice.
#[test]
fn a_chain_of_2018_keeps_every_rule() {
    let lines = fs::read_to_string(root().join("tests/data/testnet-2018.jsonl")).expect("the file is there");
    let report = judged(&tree(), lines.lines(), &Seats::default());
    assert!(report.is_in_order(), "{:?}", report.broken);
    assert_eq!((report.blocks, report.applied_to), (154, Some(Height(155))));
    assert!(
        report.rules.iter().all(|held| held.rule == ChainRule::Genesis || held.judged == 154),
        "{:?}",
        report.rules
    );
    let gaps: Vec<(u32, u64)> = report.gaps.iter().map(|gap| (gap.height.0, gap.slots.into())).collect();
    assert_eq!(gaps, [(28, 21), (41, 1), (50, 28)]);

    // With 50 delegates a round the turns are others.
    let fewer = tree_with(&|milestones| milestones[0]["activeDelegates"] = 50.into());
    let broken = broken(&judged(&fewer, lines.lines(), &Seats::default()));
    assert!(!broken.is_empty() && broken.iter().all(|(_, rule)| *rule == "turn"), "{broken:?}");
}

/// Blocks 55 to 90: of rounds 2 and 3.
#[test]
fn of_a_window_is_said_what_could_not_be_judged() {
    let window = &LINES[54..90];
    let report = judged(&tree(), window, &Seats::default());
    assert!(report.is_in_order(), "{:?}", report.broken);
    assert_eq!(report.applied_to, None);
    let of_state = ["checker", "delegates", "transaction-forged", "transaction-state", "turn"].map(|rule| (rule, 36));
    let of_first = ["height", "previous", "slot"].map(|rule| (rule, 1));
    assert_eq!(not_judged(&report), of_state.into_iter().chain(of_first).collect());
    assert_eq!(report.gaps[0].missed[0].delegate, None, "whose slot it was is not known");

    let mut seats = Seats::default();
    seats.read(&recording("chain/rounds.jsonl")).expect("it lists delegates");
    let report = judged(&tree(), window, &seats);
    assert!(report.is_in_order(), "{:?}", report.broken);
    assert!(!not_judged(&report).contains_key("turn"));
    let bob = report.gaps[0].missed[0].delegate.clone().expect("the list tells");
    assert!(recording("chain/rounds.jsonl").contains(&bob), "its key, for the list has no names: {bob}");

    // Another order of the same delegates: nobody forged in its slot but by chance.
    let mut seats = Seats::default();
    let mut lines: Vec<String> = recording("chain/rounds.jsonl").lines().map(str::to_owned).collect();
    lines.reverse();
    seats.read(&lines.join("\n")).expect("it lists delegates");
    let report = judged(&tree(), window, &seats);
    assert!(report.broken.len() > 25 && report.broken.iter().all(|one| one.violation.rule == ChainRule::Turn));
}

/// Pages as the recorded node's API served them, in both shapes.
#[test]
fn pages_of_a_real_node_are_in_order() {
    let (mut pages, mut seen) = (Vec::new(), BTreeSet::new());
    for line in recording("api.jsonl").lines() {
        let exchange: Value = serde_json::from_str(line).expect("JSON");
        let path = exchange["request"]["path"].as_str().expect("a path");
        let is_list = exchange["request"]["method"] == "GET" && path.split(['?', '&']).next() == Some("/api/blocks");
        let body = &exchange["response"]["body"];
        if is_list && exchange["response"]["status"] == 200 && body["data"].is_array() {
            let blocks = body["data"].as_array().expect("a list");
            seen.extend(blocks.iter().filter_map(|block| block["height"].as_u64()));
            pages.push(body.to_string());
        }
    }
    assert!(pages.len() > 10 && seen.len() > 100, "{} pages, {} blocks", pages.len(), seen.len());
    let report = judged(&tree(), &pages, &Seats::default());
    assert!(report.is_in_order(), "{:?}", report.broken);
    let held = |rule: ChainRule| report.rules.iter().find(|held| held.rule == rule).expect("all are listed");
    assert_eq!(held(ChainRule::Signature).not_judged, 0);
    assert!(held(ChainRule::PayloadHash).not_judged > 0, "the pages have no transactions");
    assert!(held(ChainRule::PayloadHash).why_not.as_deref().is_some_and(|why| why.contains("transactions are shown")));
}

/// The blocks of a window of the seven real nodes, of which their place is recorded.
fn seven(name: &str) -> (BlockTree, Value, ChainReport) {
    let json = |name: &str| -> Value {
        let text = fs::read_to_string(root().join("tests/data/seven-nodes").join(name)).expect("it is recorded");
        serde_json::from_str(&text).expect("JSON")
    };
    let network = json("network.json");
    let part = |name: &str| Ok(network["config"].get(name.trim_end_matches(".json")).cloned().unwrap_or(json!({})));
    let config = NetworkConfig::of(part, Real).expect("it is complete");
    let tree = BlockTree::new(Arc::new(config), rules()).expect("seven delegates");
    let window = json(name);
    let blocks = window["blocks"].as_object().expect("blocks by id");
    let lines = blocks.iter().map(|(id, block)| {
        let place = json!({
            "id": id, "height": block["height"], "previousBlock": block["previous"],
            "timestamp": block["slot"].as_u64().expect("a number") * 8, "generatorPublicKey": key_of(&network, &block["delegate"]),
        });
        place.to_string()
    });
    let seats = ranks(&network, &window);
    let report = judged(&tree, lines, &seats);
    (tree, window, report)
}

/// The key of a delegate of the seven.
fn key_of<'a>(network: &'a Value, name: &Value) -> &'a Value {
    let delegates = network["delegates"].as_array().expect("a list");
    &delegates.iter().find(|one| one["name"] == *name).expect("one of seven")["key"]
}

/// The delegates of each round by rank, as far as the blocks tell: the owner of a slot is the one who forged in it. Those who forged
/// in none of a round's slots have the ranks that are left, in no order. Nothing, where two branches rank them differently.
fn ranks(network: &Value, window: &Value) -> Seats {
    let names: Vec<Value> = (1..=7).map(|number| json!(format!("genesis_{number}"))).collect();
    let mut rounds: BTreeMap<u32, BTreeMap<usize, &Value>> = BTreeMap::new();
    for block in window["blocks"].as_object().expect("blocks by id").values() {
        let number = |key: &str| block[key].as_u64().expect("a number") as u32;
        let round = (number("height") - 1) / 7 + 1;
        let rank = forging_order(RoundNumber(round), 7)[number("slot") as usize % 7];
        let known = rounds.entry(round).or_default().entry(rank).or_insert(&block["delegate"]);
        if **known != block["delegate"] {
            assert_eq!(window["experiment"], BY_BRANCH);
            return Seats::default();
        }
    }
    let mut seats = Seats::default();
    for (round, known) in rounds {
        let mut rest = names.iter().filter(|name| known.values().all(|other| other != name));
        for rank in 0..7 {
            let name = known.get(&rank).copied().or_else(|| rest.next()).expect("nobody has two ranks");
            seats.add(
                Some(round),
                key_of(network, name).as_str().expect("a key").parse().expect("a key"),
                name.as_str(),
            );
        }
    }
    seats
}

/// The window in which two sides forged long enough apart that fees made two rankings.
const BY_BRANCH: &str = "partition-reach2-mesh";

#[test]
fn the_windows_of_seven_real_nodes_are_in_order() {
    let folder = fs::read_dir(root().join("tests/data/seven-nodes")).expect("they are recorded");
    let names = folder.map(|entry| entry.expect("it can be listed").file_name().into_string().expect("UTF-8"));
    let names: Vec<String> = names.filter(|name| name.ends_with(".json") && name != "network.json").collect();
    assert_eq!(names.len(), 14);
    let (mut forks, mut doubles) = (0, 0);
    for name in &names {
        let (_, window, report) = seven(name);
        assert!(report.is_in_order(), "{name}: {:?}", report.broken);
        let turn = report.rules.iter().find(|held| held.rule == ChainRule::Turn).expect("all are listed");
        let blocks = window["blocks"].as_object().expect("blocks").len();
        // The state before a block at height 2 is that of the genesis block, so its turn needs no list.
        let on_genesis = window["blocks"].as_object().expect("blocks").values().filter(|block| block["height"] == 2);
        let judged = if name == &format!("{BY_BRANCH}.json") { on_genesis.count() } else { blocks };
        assert_eq!((turn.judged, turn.not_judged), (judged, blocks - judged), "{name}");
        assert!(not_judged(&report).contains_key("signature"), "{name}: none is recorded");
        forks += report.forks.len();
        doubles += report.doubles.len();
        assert!(!name.starts_with("healthy") || report.forks.is_empty() && report.gaps.is_empty());
        if name.starts_with("double-forging") {
            let [fork] = &report.forks[..] else { panic!("{:?}", report.forks) };
            assert_eq!(fork.branches.len(), 2, "{fork:?}");
            assert!(fork.why.starts_with("genesis_7 made 2 blocks for slot"), "{fork:?}");
            assert_eq!(report.doubles[0].delegate, "genesis_7");
        }
    }
    assert!(forks > 3 && doubles > 0, "{forks} forks, {doubles} doubles");
}

/// Real nodes tell with `forger.missing` who missed a slot.
#[test]
fn missed_slots_are_those_that_real_nodes_told() {
    for (name, missed) in [
        ("healthy", 0),
        ("loss-20", 0),
        ("latency-600", 0),
        ("clock-minus-3", 3),
        ("stop-restart", 3),
        ("double-forging", 3),
    ] {
        let (_, window, report) = seven(&format!("{name}.json"));
        let mut told: BTreeMap<u64, Vec<&str>> = BTreeMap::new();
        for event in window["forger.missing"].as_array().into_iter().flatten() {
            told.entry(event[1].as_u64().expect("a node")).or_default().push(event[2].as_str().expect("a name"));
        }
        let all = report.gaps.iter().flat_map(|gap| &gap.missed);
        let found: Vec<&str> = all.map(|one| one.delegate.as_deref().expect("the delegates are known")).collect();
        assert_eq!(found.len(), missed, "{name}: {:?}", report.gaps);
        let longest = told.into_values().max_by_key(Vec::len).unwrap_or_default();
        assert_eq!(found, longest, "{name}");
    }
}

// What is not.

/// The keys of the recorded delegates.
static KEYS: LazyLock<Vec<KeyPair>> = LazyLock::new(|| {
    let secrets = file("delegates.json");
    let secrets = secrets["secrets"].as_array().expect("a list").iter();
    secrets.map(|secret| KeyPair::from_passphrase(secret.as_str().expect("text"), Real)).collect()
});

/// A block of the recorded chain that is to be changed, and signed again.
struct Bench {
    tree: BlockTree,
    header: BlockHeader,
    transactions: Vec<Arc<SignedTransaction>>,
    parent: BlockHeader,
    /// Signs in place of the generator.
    signer: Option<usize>,
}

impl Bench {
    fn new(tree: BlockTree, height: u32) -> Self {
        let block = |height: u32| {
            let json: Value = serde_json::from_str(&LINES[height as usize - 1]).expect("JSON");
            Block::from_json(&json, &tree.config().block_context()).expect("it is recorded")
        };
        let (own, parent) = (block(height), block(height - 1).header);
        Self { header: own.header, transactions: own.transactions, parent, signer: None, tree }
    }

    /// Takes other transactions, with all that follows from them.
    fn holds(&mut self, transactions: Vec<Arc<SignedTransaction>>) {
        let sum = |part: fn(&SignedTransaction) -> Arktoshi| {
            Arktoshi::checked_sum(transactions.iter().map(|one| part(one))).expect("less than all coin")
        };
        self.header.number_of_transactions = transactions.len() as u32;
        self.header.payload_length = 32 * transactions.len() as u32;
        (self.header.total_amount, self.header.total_fee) =
            (sum(SignedTransaction::amount), sum(SignedTransaction::fee));
        let ids: Vec<u8> = transactions.iter().flat_map(|one| one.id().0).collect();
        self.header.payload_hash = sha256(&ids);
        self.transactions = transactions;
    }

    /// A transfer of a delegate, who has coin.
    fn transfer(&self, nonce: u64, expiration: u32) -> Arc<SignedTransaction> {
        let is_last_forger = |keys: &&KeyPair| *keys.public() == self.parent.generator;
        let keys = KEYS.iter().find(is_last_forger).expect("one of 51");
        let to = KEYS[41].public().address(self.tree.config().network.pub_key_hash);
        let transfer = Transaction::transfer(to, Arktoshi::coins(1)).nonce(Nonce(nonce)).expiration(expiration);
        Arc::new(transfer.fee(Arktoshi::coins(1)).sign(keys))
    }

    fn sign(&mut self) {
        let is_signer = |keys: &&KeyPair| *keys.public() == self.header.generator;
        let keys = self.signer.map_or_else(|| KEYS.iter().find(is_signer).expect("one of 51"), |index| &KEYS[index]);
        self.header.signature = ecdsa::sign(&self.header.hash_for_signature(&self.tree.config().milestones), keys);
    }

    /// The rules that the block breaks on top of the recorded chain, by name. It comes as an object of this process, so that its
    /// transactions need not be readable.
    fn broken_in_memory(mut self) -> Vec<&'static str> {
        self.sign();
        let mut claims = Claims::new(self.tree.config().clone());
        for line in &LINES[..self.parent.height.0 as usize] {
            claims.read("chain", line).expect("it is JSON");
        }
        let block = Block::assemble(self.header, self.transactions, &self.tree.config().block_context());
        claims.take_block("memory".to_owned(), Arc::new(block));
        let report = observe(&self.tree, claims, &Seats::default(), |_, _| {}).expect("no delegates are given");
        report.broken.iter().map(|one| one.violation.rule.name()).collect()
    }

    /// The block in the raw shape, with its transactions in hex.
    fn shown(&mut self) -> Value {
        self.sign();
        let milestones = &self.tree.config().milestones;
        let block = Block::new(self.header.id(milestones), self.header.clone(), Vec::new());
        let mut shown = block.header_json(milestones);
        shown["transactions"] = self.transactions.iter().map(|one| Value::from(hex::encode(one.bytes()))).collect();
        shown
    }

    /// The rules that the block breaks on top of the recorded chain, by name; `json` changes how it is shown.
    fn broken(mut self, json: impl Fn(&mut Value)) -> Vec<&'static str> {
        let mut shown = self.shown();
        json(&mut shown);
        let before = LINES[..self.parent.height.0 as usize].iter().cloned();
        let report = judged(&self.tree, before.chain([shown.to_string()]), &Seats::default());
        report.broken.iter().map(|one| one.violation.rule.name()).collect()
    }
}

/// The rules that a change of the recorded block at a height breaks.
fn changed(height: u32, change: impl Fn(&mut Bench)) -> Vec<&'static str> {
    let mut bench = Bench::new(tree(), height);
    change(&mut bench);
    bench.broken(|_| {})
}

fn milestone(key: &'static str, value: u64) -> BlockTree {
    tree_with(&|list| list[0]["block"][key] = json!(value))
}

#[test]
fn a_block_that_breaks_one_rule_is_named_with_this_rule() {
    let mut named = BTreeSet::new();
    let mut row = |rule: &'static str, broken: Vec<&'static str>| {
        assert_eq!(broken, [rule]);
        named.insert(rule);
    };
    let plain = |json: &dyn Fn(&mut Value)| Bench::new(tree(), FULL).broken(json);
    assert_eq!(plain(&|_| {}), Vec::<&str>::new(), "signed again it is the same");
    // As it is shown.
    row("form", plain(&|json| json["transactions"][3] = json!("00")));
    row("form", plain(&|json| drop(json.as_object_mut().expect("a block").remove("reward"))));
    row("form", plain(&|json| json["version"] = Value::Null));
    row("form", plain(&|json| json["idHex"] = json!("0123456789abcdef")));
    row("form", plain(&|json| json["previousBlockHex"] = json!("0123456789abcdef")));
    row(
        "id",
        plain(&|json| {
            json["id"] = json!("1234567890123456789");
            json["idHex"] = json!("112210f47de98115");
        }),
    );
    row("transaction-id", {
        let bench = Bench::new(tree(), FULL);
        let objects: Vec<Value> = bench.transactions.iter().map(|one| one.to_json()).collect();
        bench.broken(|json| {
            json["transactions"] = json!(objects);
            json["transactions"][2]["id"] = json!("ab".repeat(32));
        })
    });
    // As it is signed.
    row(
        "signature",
        changed(FULL, |bench| {
            bench.signer = KEYS.iter().position(|keys| *keys.public() != bench.header.generator);
        }),
    );
    row("version", changed(FULL, |bench| bench.header.version = 1));
    row("reward", changed(FULL, |bench| bench.header.reward = Arktoshi::coins(2)));
    row(
        "previous",
        changed(FULL, |bench| bench.header.previous = bench.parent.previous.map(|_| "42".parse().expect("an id"))),
    );
    row("height", changed(FULL, |bench| bench.header.height = Height(bench.header.height.0 + 1)));
    row(
        "slot",
        changed(FULL, |bench| {
            bench.header.generator = bench.parent.generator;
            bench.header.timestamp = Timestamp(bench.parent.timestamp.0 + 1);
        }),
    );
    row(
        "turn",
        changed(FULL, |bench| {
            let other = KEYS.iter().find(|keys| *keys.public() != bench.header.generator).expect("50 others");
            bench.header.generator = *other.public();
        }),
    );
    row("turn", changed(FULL, |bench| bench.header.timestamp = Timestamp(bench.header.timestamp.0 + 8)));
    row("size", Bench::new(milestone("maxPayload", 3_000), FULL).broken(|_| {}));
    row("count", Bench::new(milestone("maxTransactions", 15), FULL).broken(|_| {}));
    row("count", changed(FULL, |bench| bench.header.number_of_transactions += 1));
    row("amount", changed(FULL, |bench| bench.header.total_amount = Arktoshi::coins(1)));
    row("fee", changed(FULL, |bench| bench.header.total_fee = Arktoshi::coins(1)));
    row("payload-hash", changed(FULL, |bench| bench.header.payload_hash[7] ^= 1));
    row(
        "transaction-signature",
        changed(FULL, |bench| {
            let mut bytes = bench.transactions[0].bytes();
            *bytes.last_mut().expect("no transaction is empty") ^= 1;
            let context = bench.tree.config().block_context();
            let altered = SignedTransaction::from_bytes(&bytes, &context.transactions_of(bench.header.height));
            let mut transactions = bench.transactions.clone();
            transactions[0] = Arc::new(altered.expect("it is one"));
            bench.holds(transactions);
        }),
    );
    row(
        "transaction-twice",
        changed(FULL, |bench| {
            let first = bench.transactions[0].clone();
            bench.holds(vec![first.clone(), first]);
        }),
    );
    row("transaction-time", changed(FULL, |bench| bench.holds(vec![bench.transfer(1, 5)])));
    row("transaction-state", changed(FULL, |bench| bench.holds(vec![bench.transfer(7, 0)])));
    row(
        "transaction-state",
        changed(FULL, |bench| {
            let mut transactions = bench.transactions.clone();
            transactions.remove(0);
            transactions.extend([bench.transfer(1, 0), bench.transfer(3, 0)]);
            bench.holds(transactions);
        }),
    );
    // One of the two versions is in force at a height, and JSON with the other cannot be read.
    let mixed = || {
        let old = tree_with(&|list| list[0]["block"]["acceptExpiredTransactionTimestamps"] = json!(true));
        let mut bench = Bench::new(old, FULL);
        bench.holds(vec![bench.tree.genesis().block().transactions[0].clone(), bench.transfer(1, 0)]);
        bench
    };
    row("form", mixed().broken(|_| {}));
    row("transaction-versions", {
        let mut broken = mixed().broken_in_memory();
        // The ledger does not verify a transaction of a version that is not in force.
        assert_eq!(broken.remove(0), "transaction-signature");
        broken
    });
    // The nonce of a transaction that is on the chain is refused before the transaction itself.
    row("transaction-state", {
        let earlier = Bench::new(tree(), FULL).transactions[0].clone();
        changed(FULL + 1, |bench| bench.holds(vec![earlier.clone()]))
    });
    // A round of more delegates than there are follows.
    row("delegates", {
        let more = tree_with(&|list| {
            list.as_array_mut().expect("a list").insert(2, json!({ "height": 52, "activeDelegates": 60 }))
        });
        Bench::new(more, 51).broken(|_| {})
    });
    // Another first block.
    let mut genesis: Value = serde_json::from_str(&LINES[0]).expect("JSON");
    genesis["reward"] = json!("1");
    let report = judged(&tree(), [genesis.to_string()], &Seats::default());
    row("genesis", report.broken.iter().map(|one| one.violation.rule.name()).collect());
    let missing: Vec<&str> =
        ChainRule::ALL.iter().map(|rule| rule.name()).filter(|rule| !named.contains(rule)).collect();
    // It breaks where ledger and checker differ, and a block cannot make them: `check::step::tests` does.
    // A transaction of version 2 breaks its nonce first, and this network has no later ones of version 1.
    assert_eq!(missing, ["transaction-forged", "checker"]);
}

/// Above a block that breaks a rule, what needs the state is not judged, and all else is.
#[test]
fn a_broken_block_does_not_hide_the_next_one() {
    let mut lines = LINES.clone();
    for height in [30, 60] {
        let mut json: Value = serde_json::from_str(&lines[height - 1]).expect("JSON");
        json["timestamp"] = json!(json["timestamp"].as_u64().expect("a number") + 1);
        lines[height - 1] = json.to_string();
    }
    let report = judged(&tree(), &lines, &Seats::default());
    assert_eq!(broken(&report), [(30, "id"), (30, "signature"), (60, "id"), (60, "signature")]);
    assert_eq!(report.applied_to, Some(Height(29)));
    assert_eq!(not_judged(&report)["turn"], 81, "from height 31 on");
    assert_eq!(not_judged(&report)["slot"], 2, "their headers are not those of their ids");
}

// Blocks and transactions of strangers.

fn value(height: u32) -> Value {
    serde_json::from_str(&LINES[height as usize - 1]).expect("JSON")
}

/// A block without its transactions, and these as objects that name it.
fn apart(tree: &BlockTree, shown: &Value) -> (Value, Vec<Value>) {
    let height = Height(shown["height"].as_u64().expect("a height") as u32);
    let context = BlockContext { dialect: Dialect::Stored, ..tree.config().block_context() };
    let transactions = Block::transactions_from_json(shown, height, &context).expect("they are");
    let named = |one: &Arc<SignedTransaction>| {
        let mut json = one.to_json();
        json["blockId"] = shown["id"].clone();
        json
    };
    let mut bare = shown.clone();
    bare.as_object_mut().expect("a block").remove("transactions");
    (bare, transactions.iter().map(named).collect())
}

fn sequenced(mut transactions: Vec<Value>) -> Vec<Value> {
    transactions.iter_mut().enumerate().for_each(|(index, one)| one["sequence"] = json!(index));
    transactions
}

/// The recorded chain below a block, then a block with its transactions apart.
fn judged_apart(tree: &BlockTree, (bare, transactions): (Value, Vec<Value>)) -> ChainReport {
    let below = bare["height"].as_u64().expect("a height") as usize - 1;
    let apart = [bare].into_iter().chain(transactions).map(|one| one.to_string());
    judged(tree, LINES[..below].iter().cloned().chain(apart), &Seats::default())
}

#[test]
fn a_transaction_belongs_to_each_block_that_names_it() {
    let tree = tree();
    let first = Bench::new(tree, FULL).transactions[0].clone();
    let mut replay = Bench::new(self::tree(), FULL + 1);
    replay.holds(vec![first.clone()]);
    let shown = replay.shown();
    let (block, own) = apart(&replay.tree, &value(FULL));
    let (again, its) = apart(&replay.tree, &shown);
    let lines = LINES[..FULL as usize - 1].iter().cloned();
    let lines = lines.chain([block].into_iter().chain(own).chain([again]).chain(its).map(|one| one.to_string()));
    let report = judged(&replay.tree, lines, &Seats::default());
    assert_eq!(broken(&report), [(FULL + 1, "transaction-state")], "{:?}", not_judged(&report));

    let mut twice = Bench::new(self::tree(), FULL);
    twice.holds(vec![first.clone(), first]);
    let shown = twice.shown();
    let (bare, its) = apart(&twice.tree, &shown);
    assert_eq!(broken(&judged_apart(&twice.tree, (bare.clone(), its.clone()))), [(FULL, "transaction-twice")]);
    assert_eq!(broken(&judged_apart(&twice.tree, (bare, sequenced(its)))), [(FULL, "transaction-twice")]);

    // Pages that overlap show a transaction twice.
    let (bare, own) = apart(&twice.tree, &value(FULL));
    let report = judged_apart(&twice.tree, (bare.clone(), [&own[..9], &own[7..]].concat()));
    assert_eq!((broken(&report), report.applied_to), (Vec::new(), Some(Height(FULL))));
    // Members that lie under the id of a transaction that is shown before.
    let mut lie = own.clone();
    lie[0]["fee"] = json!("7");
    lie.iter_mut().for_each(|one| one["blockId"] = json!("7"));
    let mut other = bare.clone();
    other["id"] = json!("7");
    let all = [vec![other], own, lie].concat();
    let report = judged_apart(&twice.tree, (bare, all));
    assert!(broken(&report).contains(&(FULL, "transaction-id")), "{:?}", report.broken);
    assert_eq!(report.applied_to, Some(Height(FULL)), "the honest one stands");
}

#[test]
fn an_order_that_is_not_shown_is_not_judged() {
    let bench = |change: &dyn Fn(&mut Bench)| {
        let mut bench = Bench::new(tree(), FULL);
        change(&mut bench);
        let shown = bench.shown();
        let (bare, mut own) = apart(&bench.tree, &shown);
        own = sequenced(own);
        own.swap(0, 1);
        let known = judged_apart(&bench.tree, (bare.clone(), own.clone()));
        own.iter_mut().for_each(|one| drop(one.as_object_mut().expect("a transaction").remove("sequence")));
        (known, judged_apart(&bench.tree, (bare, own)))
    };
    let (known, unknown) = bench(&|_| {});
    assert_eq!((broken(&known), known.applied_to), (Vec::new(), Some(Height(FULL))));
    assert_eq!((broken(&unknown), unknown.applied_to), (Vec::new(), Some(Height(FULL - 1))));
    let left = not_judged(&unknown);
    assert_eq!(
        (left.get("payload-hash"), left.get("transaction-state"), left.get("amount")),
        (Some(&1), Some(&1), None)
    );
    let why =
        unknown.rules.iter().find(|held| held.rule == ChainRule::PayloadHash).and_then(|held| held.why_not.clone());
    assert_eq!(why.as_deref(), Some("the order of its transactions is not shown"));
    let (known, unknown) = bench(&|bench| bench.header.payload_hash[7] ^= 1);
    assert_eq!((broken(&known), broken(&unknown)), (vec![(FULL, "payload-hash")], Vec::new()));
    let (_, unknown) = bench(&|bench| bench.header.total_amount = Arktoshi::coins(1));
    assert_eq!(broken(&unknown), [(FULL, "amount")], "what needs no order is judged");
}

#[test]
fn the_transactions_of_genesis_are_compared_by_their_members() {
    let tree = tree();
    let genesis = |change: &dyn Fn(&mut Value)| {
        let mut genesis = value(1);
        let (_, mut own) = apart(&tree, &genesis);
        own.iter_mut().for_each(|one| drop(one.as_object_mut().expect("a transaction").remove("blockId")));
        change(&mut own[3]);
        genesis["transactions"] = json!(own);
        broken(&judged(&tree, [genesis.to_string()], &Seats::default()))
    };
    assert_eq!(genesis(&|_| {}), []);
    assert_eq!(genesis(&|one| one["amount"] = json!("7")), [(1, "genesis")]);
    assert_eq!(genesis(&|one| one["id"] = json!("ab".repeat(32))), [(1, "genesis")]);
    let own = file("genesisBlock.json");
    assert_eq!(broken(&judged(&tree, [own.to_string()], &Seats::default())), [], "as the network's file has it");
}

/// The blocks 55 to 90, and one more.
fn window_with(more: &Value) -> ChainReport {
    let lines = LINES[54..90].iter().cloned().chain([more.to_string()]);
    judged(&tree(), lines, &Seats::default())
}

#[test]
fn a_lie_under_the_id_of_a_block_changes_nothing_for_others() {
    let mut lie = value(60);
    lie["timestamp"] = json!(lie["timestamp"].as_u64().expect("a number") + 80);
    let report = window_with(&lie);
    assert_eq!(broken(&report), [(60, "id"), (60, "signature")]);
    assert!(report.forks.is_empty() && report.doubles.is_empty());
    let place = ["id", "height", "previousBlock", "timestamp", "generatorPublicKey"];
    // A place that contradicts a block that was applied, below it in height.
    let mut low = lie.clone();
    low["height"] = json!(12);
    for key in ["version", "numberOfTransactions", "totalAmount", "totalFee", "reward", "payloadLength", "payloadHash"]
    {
        low.as_object_mut().expect("a block").remove(key);
    }
    low.as_object_mut().expect("a block").remove("blockSignature");
    low.as_object_mut().expect("a block").remove("transactions");
    let report = judged(&tree(), LINES.iter().cloned().chain([low.to_string()]), &Seats::default());
    assert_eq!(broken(&report)[0], (12, "id"), "{:?}", report.broken);
    assert_eq!((report.gaps.len(), report.forks.len(), report.applied_to), (1, 0, Some(Height(111))));
    let place: Value =
        place.iter().map(|key| ((*key).to_owned(), lie[*key].clone())).collect::<serde_json::Map<_, _>>().into();
    let report = window_with(&place);
    assert_eq!(broken(&report), [(60, "id")], "{:?}", report.broken);
    assert!(report.broken[0].violation.what.contains("its place"), "{:?}", report.broken);
    assert!(report.forks.is_empty() && report.doubles.is_empty());
    // Two places for one id: neither is known.
    let mut lines: Vec<String> = LINES[54..90].to_vec();
    let mut honest = place.clone();
    honest["timestamp"] = value(60)["timestamp"].clone();
    lines[5] = honest.to_string();
    lines.push(place.to_string());
    let report = judged(&tree(), &lines, &Seats::default());
    assert_eq!(broken(&report), [], "{:?}", report.broken);
    assert_eq!(not_judged(&report)["slot"], 2, "the first, and the one above them");
}

/// A block of the recorded chain, signed by someone else.
fn unsigned(height: u32) -> Value {
    let mut bench = Bench::new(tree(), height);
    bench.signer = KEYS.iter().position(|keys| *keys.public() != bench.header.generator);
    bench.shown()
}

#[test]
fn a_broken_block_accuses_no_other() {
    // Beside a good one of its height.
    let report = judged(&tree(), LINES.iter().cloned().chain([unsigned(50).to_string()]), &Seats::default());
    assert_eq!((broken(&report), report.applied_to), (vec![(50, "signature")], Some(Height(111))));
    assert!(report.forks.is_empty() && report.doubles.is_empty(), "{:?} {:?}", report.forks, report.doubles);
    assert_eq!(report.gaps.len(), 1);
    assert!(!report.incident.scenario().expect("a slot is empty").contains("double-forge"));
    // In place of a good one: the next is not to blame.
    let mut lines: Vec<String> = LINES[54..90].to_vec();
    lines[5] = unsigned(60).to_string();
    let report = judged(&tree(), &lines, &Seats::default());
    assert_eq!(broken(&report), [(60, "signature")], "{:?}", report.broken);
    assert_eq!(not_judged(&report)["previous"], 2);
    // Two others in its place, of which one may be on a branch.
    let others = [1, 2].map(|seconds| {
        let mut bench = Bench::new(tree(), 60);
        bench.header.timestamp.0 += seconds;
        bench.shown().to_string()
    });
    lines.splice(5..6, others);
    let report = judged(&tree(), &lines, &Seats::default());
    assert_eq!(broken(&report), [], "{:?}", report.broken);
    // A signature that cannot be read ends the verification before the version.
    let mut lines: Vec<String> = LINES[54..90].to_vec();
    let mut unreadable = value(60);
    unreadable["blockSignature"] = json!("30");
    lines[5] = unreadable.to_string();
    let report = judged(&tree(), &lines, &Seats::default());
    assert_eq!(not_judged(&report).get("version"), Some(&1));
}

/// A block without transactions in the slot of the next one.
fn later(height: u32, previous: Option<&Value>) -> Value {
    let mut bench = Bench::new(tree(), height);
    let next = Bench::new(tree(), height + 1).header;
    bench.holds(Vec::new());
    (bench.header.timestamp, bench.header.generator) = (next.timestamp, next.generator);
    if let Some(previous) = previous {
        bench.header.previous = previous["id"].as_str().map(|id| id.parse().expect("an id"));
    }
    bench.shown()
}

#[test]
fn the_block_of_a_slot_that_another_branch_missed_is_named() {
    let first = later(49, None);
    let branch = [first.clone(), later(50, Some(&first))];
    let with = |own: Value| {
        let more = [&own, &branch[0], &branch[1]].map(Value::to_string);
        let lines = LINES[..48].iter().cloned().chain(more);
        judged(&tree(), lines, &Seats::default())
    };
    let report = with(value(49));
    assert_eq!((broken(&report), report.applied_to), (Vec::new(), Some(Height(50))));
    let missed = &report.gaps[0].missed[0];
    assert_eq!(missed.block_elsewhere.as_deref(), value(49)["id"].as_str(), "{missed:?}");
    let [fork] = &report.forks[..] else { panic!("{:?}", report.forks) };
    let tops: Vec<(u32, bool)> = fork.branches.iter().map(|branch| (branch.to.0, branch.is_longest)).collect();
    assert_eq!(tops, [(50, true), (49, false)]);
    // One that its delegate has not signed is none of its.
    let report = with(unsigned(49));
    assert_eq!((broken(&report), &report.gaps[0].missed[0].block_elsewhere), (vec![(49, "signature")], &None));
    assert!(report.forks.is_empty(), "{:?}", report.forks);
}

#[test]
fn what_was_applied_outweighs_a_higher_claim() {
    let mut claim = Bench::new(tree(), FULL);
    claim.header.height = Height(9_000);
    claim.header.previous = Some("42".parse().expect("an id"));
    let lines = LINES.iter().cloned().chain([claim.shown().to_string()]);
    let report = judged(&tree(), lines, &Seats::default());
    assert_eq!(report.applied_to, Some(Height(111)));
    assert_eq!(report.gaps.iter().map(|gap| gap.height).collect::<Vec<_>>(), [Height(70)]);
    // The same without a state: 36 blocks on each other outweigh a single one.
    assert_eq!(window_with(&claim.shown()).gaps.len(), 1);
}

#[test]
fn what_is_shown_twice_counts_once() {
    let mut lines: Vec<String> = LINES[..60].to_vec();
    lines[20] = lines[20].replace("\"reward\":\"0\"", "\"reward\":\"7\"");
    lines[30] = lines[30].replace("\"version\":0", "\"version\":null");
    // Of raw transactions no block is told.
    let (bare, mut own) = apart(&tree(), &value(FULL));
    own.iter_mut().for_each(|one| drop(one.as_object_mut().expect("a transaction").remove("blockId")));
    lines.splice(FULL as usize - 1..FULL as usize, [bare].iter().chain(&own).map(Value::to_string));
    let told = |lines: &[String]| {
        let report = judged(&tree(), lines, &Seats::default());
        serde_json::to_value(report).expect("it can be told")
    };
    let once = told(&lines);
    assert_eq!((&once["blocks"], &once["applied_to"]), (&json!(60), &json!(20)), "{once}");
    assert!(once["broken"].as_array().is_some_and(|broken| broken.len() > 1), "{once}");
    assert_eq!(told(&[&lines[..], &lines].concat()), once);
}

#[test]
fn an_exception_of_the_network_is_no_violation() {
    let mut bench = Bench::new(tree(), FULL);
    bench.header.reward = Arktoshi::coins(2);
    let shown = bench.shown();
    let (bare, own) = apart(&bench.tree, &shown);
    let ids: Vec<&Value> = own.iter().map(|one| &one["id"]).collect();
    let listed = tree_of("exceptions.json", &|json| {
        let id = shown["id"].as_str().expect("an id");
        *json = json!({ "blocks": [id], "blocksTransactions": { id: ids } });
    });
    for (tree, shown, rules) in [
        (&bench.tree, &shown, vec![(FULL, "reward")]),
        (&bench.tree, &bare, vec![(FULL, "reward")]),
        (&listed, &shown, Vec::new()),
        (&listed, &bare, Vec::new()),
    ] {
        let lines = LINES[..FULL as usize - 1].iter().cloned().chain([shown.to_string()]);
        let report = judged(tree, lines, &Seats::default());
        assert_eq!(broken(&report), rules, "{shown}");
        if rules.is_empty() {
            let (is_whole, left) = (shown["transactions"].is_array(), not_judged(&report));
            assert_eq!(report.applied_to, Some(Height(if is_whole { FULL } else { FULL - 1 })));
            assert_eq!(left.get("reward"), if is_whole { None } else { Some(&1) }, "{left:?}");
        }
    }
}

/// With a step for each pair of blocks this takes minutes.
#[test]
fn many_blocks_on_one_parent_take_no_step_for_each_pair() {
    let key = KEYS[0].public().to_string();
    let place = |number: u32| {
        json!({
            "id": (number + 10).to_string(), "height": 100, "previousBlock": "5", "timestamp": 8_000 + 8 * number,
            "generatorPublicKey": key,
        })
    };
    let page = json!({ "data": (0..60_000).map(place).collect::<Vec<_>>() });
    let report = judged(&tree(), [page.to_string()], &Seats::default());
    assert_eq!((report.blocks, report.forks.len(), report.forks[0].branches.len()), (60_000, 1, 60_000));
    assert_eq!(not_judged(&report)["previous"], 60_000);
}

/// A member changed so that it says something else.
fn other(value: &Value, pick: usize, kind: u8) -> Value {
    match (value, kind % 3) {
        (_, 0) => Value::Null,
        (Value::Number(number), _) => json!(number.as_u64().expect("a whole number") + 1 + pick as u64),
        (Value::String(text), _) => match text.parse::<u64>() {
            Ok(number) if text.len() < 21 => json!((number ^ (1 << (pick % 60))).to_string()),
            _ => {
                let mut bytes = text.clone().into_bytes();
                let at = pick % bytes.len();
                bytes[at] = if bytes[at] == b'a' { b'b' } else { b'a' };
                json!(String::from_utf8(bytes).expect("hex digits"))
            }
        },
        (other, _) => panic!("{other}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Without any state: two neighbours and the block.
    #[test]
    fn any_member_that_is_changed_is_reported(height in 3..111usize, member in 0..14usize, pick in 0..4_000usize, kind: u8) {
        static TREE: LazyLock<BlockTree> = LazyLock::new(tree);
        let mut json: Value = serde_json::from_str(&LINES[height - 1]).expect("JSON");
        let object = json.as_object_mut().expect("a block");
        let key = object.keys().nth(member).expect("14 members").clone();
        if key == "transactions" {
            let list = object["transactions"].as_array_mut().expect("a list");
            if list.is_empty() {
                list.push(json!("ff"));
            } else {
                let at = pick % list.len();
                list[at] = other(&list[at], pick / list.len(), 1);
            }
        } else if kind % 4 == 3 {
            object.remove(&key);
        } else {
            object[&key] = other(&object[&key], pick, kind);
        }
        let lines = [&LINES[height - 2], &json.to_string(), &LINES[height]];
        let mut claims = Claims::new(TREE.config().clone());
        // What is no block any more is refused as a whole.
        if lines.iter().try_for_each(|line| claims.read("chain", line)).is_ok() {
            let report = observe(&TREE, claims, &Seats::default(), |_, _| {}).expect("no delegates are given");
            prop_assert!(!report.is_in_order(), "{key} of block {height} is {}", json[&key]);
        }
    }
}

// Incidents.

/// The slots in which blocks were forged, and how many in each.
#[derive(Clone, Default)]
struct Forged(Arc<Mutex<BTreeMap<u32, BTreeSet<String>>>>);

impl Observer for Forged {
    fn observe(&mut self, _: SimTime, _: NodeId, event: &Event) {
        if let Event::BlockForged(block) = event {
            let mut slots = self.0.lock().expect("nobody panics");
            slots.entry(block.header.timestamp.0 / 8).or_default().insert(block.id.to_string());
        }
    }
}

#[test]
fn an_incident_can_be_played() {
    for (name, empty, double) in [("clock-minus-3", 3, 0), ("stop-restart", 3, 0), ("double-forging", 3, 1)] {
        let (_, _, report) = seven(&format!("{name}.json"));
        let text = report.incident.scenario().expect("there is one");
        let scenario = Scenario::parse(&text, Path::new(name)).unwrap_or_else(|why| panic!("{why}\n{text}"));
        assert_eq!(scenario.network.delegates, 7);
        let seeds = SeedTree::new(1);
        let plan = scenario.plan(&scenario.testnet(seeds), seeds);
        let forged = Forged::default();
        let mut stage = InlineStage::new(&plan, vec![Box::new(forged.clone())]);
        // The first incident comes after a round.
        let slot = |at: Slot| at.0;
        let mut wanted: Vec<u32> =
            report.gaps.iter().flat_map(|gap| (0..gap.slots).map(|step| slot(gap.from) + step)).collect();
        let doubles: Vec<u32> = report.doubles.iter().map(|double| slot(double.slot)).collect();
        let first = wanted.iter().chain(&doubles).min().copied().expect("an incident");
        wanted.iter_mut().for_each(|slot| *slot = *slot - first + 8);
        let last = wanted.last().copied().unwrap_or_default();
        stage.run_until(SimTime::from_seconds(plan.tree.slots().start(Slot(last + 2))));
        let slots = forged.0.lock().expect("nobody panics").clone();
        let none: Vec<u32> = (1..=last).filter(|slot| !slots.contains_key(slot)).collect();
        let twice: Vec<u32> = slots.iter().filter(|(_, blocks)| blocks.len() > 1).map(|(slot, _)| *slot).collect();
        assert_eq!((wanted.len(), doubles.len()), (empty, double), "{name}");
        if doubles.is_empty() {
            assert_eq!((twice, none), (Vec::new(), wanted), "{name}\n{text}");
        } else {
            // What follows a fork is the network's.
            assert_eq!(twice.first(), doubles.first().map(|slot| slot - first + 8).as_ref(), "{name}\n{text}");
        }
    }
    let (_, _, healthy) = seven("healthy.json");
    assert!(matches!(healthy.incident.scenario(), Err(NoIncident::Nothing)));
}

// The command.

fn observed(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = run(&[&["observe"], arguments].concat());
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn observed_json(arguments: &[&str]) -> (Option<i32>, Value) {
    let (code, out, error) = observed(&[arguments, &["--json"]].concat());
    (code, serde_json::from_str(&out).unwrap_or_else(|why| panic!("{why}: {out}{error}")))
}

#[test]
fn files_are_observed_by_the_command() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let network = recordings().join("network").display().to_string();
    let lenient = ["--network", &network, "--set", "rules.ledger.minimum_lock_expiration=false"];
    // Two files of pages, each over several lines.
    let halves = folder.path().join("pages");
    fs::create_dir(&halves).expect("a folder of our own");
    for (index, half) in LINES.chunks(60).enumerate() {
        let blocks: Vec<Value> = half.iter().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let text = serde_json::to_string_pretty(&json!({ "data": blocks })).expect("JSON");
        fs::write(halves.join(format!("{index}.json")), text).expect("it can be written");
    }
    let out = path("incident.toml");
    let (code, told) = observed_json(&[&[&*path("pages"), "--out", &out], &lenient[..]].concat());
    assert_eq!((code, &told["in_order"], &told["applied_to"]), (Some(0), &json!(true), &json!(111)), "{told}");
    assert_eq!(told["gaps"][0]["missed"][0]["delegate"], "peer_bob");
    let text = fs::read_to_string(&out).expect("it was written");
    assert!(text.contains("(peer_bob)") && text.contains("delegates = 51"), "{text}");
    let (code, _, error) = observed(&[&[&*path("pages"), "--out", &out], &lenient[..]].concat());
    assert!(code == Some(2) && error.contains("it is there already"), "{error}");

    let mut lines = LINES.clone();
    lines[20] = lines[20].replace("\"reward\":\"0\"", "\"reward\":\"7\"");
    fs::write(path("broken.jsonl"), lines.join("\n")).expect("it can be written");
    let (code, told, _) = observed(&[&[&*path("broken.jsonl")], &lenient[..]].concat());
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("broken.jsonl:21): reward (consensus.md 3.4): Invalid block reward"), "{told}");
    assert!(told.contains("turn: 90 of 110 blocks:"), "{told}");

    fs::write(path("none.jsonl"), "{\"data\":[{\"a\":1}]}").expect("it can be written");
    fs::write(path("empty.jsonl"), "").expect("it can be written");
    fs::write(path("torn.jsonl"), format!("{}\n{}", LINES[0], &LINES[1][..90])).expect("it can be written");
    fs::write(path("few.jsonl"), recording("chain/rounds.jsonl").lines().take(60).collect::<Vec<_>>().join("\n"))
        .expect("it can be written");
    fs::write(path("window.jsonl"), LINES[60..70].join("\n")).expect("it can be written");
    let few = path("few.jsonl");
    for (arguments, part) in [
        (vec![&*path("none.jsonl"), "--network", &network], "none.jsonl:1: found {\"a\":1}, allowed is a block"),
        (vec![&*path("empty.jsonl"), "--network", &network], "found no block"),
        (vec![&*path("torn.jsonl"), "--network", &network], "torn.jsonl:2: not JSON"),
        (vec![&*path("gone.jsonl"), "--network", &network], "gone.jsonl: No such file"),
        (vec![&*path("broken.jsonl")], "--network is missing"),
        (vec![&*path("broken.jsonl"), "--network", &path("none.jsonl")], "none.jsonl: network.json"),
        (vec![&*path("broken.jsonl"), "--network", &network, "--from", "3"], "--from: found"),
        (vec![&*path("broken.jsonl"), "--network", &network, "--set", "rounds=3"], "begins with 'rules.'"),
        (
            vec![&*path("window.jsonl"), "--network", &network, "--delegates", &few],
            "round 2: found 9 delegates, allowed are 51",
        ),
        (vec!["https://127.0.0.1:1/"], "https is not spoken here"),
        (vec!["ftp://127.0.0.1:1/"], "allowed is http://HOST"),
        (vec!["http://127.0.0.1:1/"], "GET /api/node/configuration/crypto: no connection"),
    ] {
        let (code, _, error) = observed(&arguments);
        assert_eq!(code, Some(2), "{arguments:?}: {error}");
        assert!(error.contains(part) && error.trim_end().lines().count() == 1, "{part:?} is not in: {error}");
    }
}

/// A testnet of seven with a delegate offline: over HTTP, from its folder and as it exports it.
#[test]
fn our_own_testnet_is_in_order_by_every_way() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (dir, scenario) = (path("kept"), path("seven.toml"));
    let text = "version = 1\nrounds = 6\n[network]\ndelegates = 7\n[[fault]]\nkind = \"offline\"\ndelegates = [\"genesis_3\"]\n\
                rounds = { from = 4, to = 6 }\n[[workload]]\nkind = \"generate\"\nper_second = 0.5\nwallets = 5\nfunding = 1000\n";
    fs::write(&scenario, text).expect("it can be written");
    let up = Up::start(&[&scenario, "--pace", "manual", "--data-dir", &dir]);
    up.advance(150);
    let url = up.api().trim_end_matches("/api").to_owned();
    let (code, whole) = observed_json(&[&url, "--per-second", "1000", "--from", "1"]);
    assert_eq!((code, &whole["in_order"]), (Some(0), &json!(true)), "{whole}");
    let height = up.height();
    assert_eq!((whole["applied_to"].as_u64(), whole["blocks"].as_u64()), (Some(height), Some(height)));
    let missed: Vec<&Value> = whole["gaps"]
        .as_array()
        .expect("a list")
        .iter()
        .flat_map(|gap| gap["missed"].as_array().expect("a list"))
        .collect();
    assert!(missed.len() >= 2 && missed.iter().all(|one| one["delegate"] == "genesis_3"), "{missed:?}");
    let held = |told: &Value, rule: &str| {
        told["rules"].as_array().expect("a list").iter().find(|one| one["rule"] == rule).expect("it is listed").clone()
    };
    assert_eq!(held(&whole, "transaction-state")["not_judged"], 0);
    assert!(up.get("/transactions?limit=1")["meta"]["totalCount"].as_u64() > Some(30), "there is something to judge");

    let (code, window) = observed_json(&[up.api(), "--per-second", "1000", "--from", "40", "--to", "120"]);
    assert_eq!((code, &window["blocks"], &window["applied_to"]), (Some(0), &json!(81), &Value::Null), "{window}");
    assert_eq!(held(&window, "turn")["not_judged"], 0, "the node tells the delegates of rounds");
    assert_eq!(held(&window, "payload-hash")["not_judged"], 0);
    assert_eq!(held(&window, "transaction-state")["not_judged"], 81);

    let other = recordings().join("network").display().to_string();
    let (code, _, error) = observed(&[&url, "--network", &other]);
    assert!(code == Some(2) && error.contains("allowed is that of --network"), "{error}");
    let (code, _, error) = observed(&[&url, "--to", "9999", "--per-second", "1000"]);
    assert!(code == Some(2) && error.contains("--to: found 9999"), "{error}");

    let network = path("network.json");
    fs::write(&network, up.get("/node/configuration/crypto").to_string()).expect("it can be written");
    up.interrupt();
    let (code, kept) = observed_json(&[&dir]);
    assert_eq!((code, &kept["in_order"], &kept["gaps"]), (Some(0), &json!(true), &whole["gaps"]), "{kept}");
    let chain = path("chain.jsonl");
    assert!(run(&["export", &dir, "--out", &chain]).status.success());
    let (code, exported) = observed_json(&[&chain, "--network", &network]);
    assert_eq!(
        (code, &exported["applied_to"], &exported["gaps"]),
        (Some(0), &json!(height), &whole["gaps"]),
        "{exported}"
    );
}

/// A server that answers each request by its path, until the test is over.
fn server(answer: impl Fn(&str, &mut TcpStream) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut lines = BufReader::new(stream.try_clone().expect("a socket")).lines();
            let first = lines.next().and_then(Result::ok).unwrap_or_default();
            while lines.next().and_then(Result::ok).is_some_and(|line| !line.is_empty()) {}
            answer(first.split(' ').nth(1).unwrap_or_default(), &mut stream);
        }
    });
    format!("http://{address}")
}

fn send(stream: &mut TcpStream, body: &Value) {
    let body = body.to_string();
    let _gone = write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
}

/// The recorded network at a height, whose blocks are as `blocks` makes them.
fn recorded_node(now: u64, blocks: impl Fn(&mut Vec<Value>) + Send + 'static) -> String {
    let part = |name: &str| file(&format!("{name}.json"));
    let crypto = json!({"data": {
        "exceptions": part("exceptions"), "genesisBlock": part("genesisBlock"), "milestones": part("milestones"), "network": part("network"),
    }});
    server(move |path, stream| {
        if path.ends_with("/crypto") {
            send(stream, &crypto);
        } else if path.ends_with("/status") {
            send(stream, &json!({ "data": { "now": now } }));
        } else {
            let mut list: Vec<Value> =
                LINES.iter().take(8).map(|line| serde_json::from_str(line).expect("JSON")).collect();
            list.iter_mut().for_each(|block| drop(block.as_object_mut().expect("a block").remove("transactions")));
            blocks(&mut list);
            send(stream, &json!({ "data": list }));
        }
    })
}

#[test]
fn a_hostile_node_is_left_with_a_named_error() {
    let silent = server(|_, stream| {
        // RuleCount open: the other side has to end it.
        let _their_end = BufReader::new(stream).read_line(&mut String::new());
    });
    let cases: Vec<(String, &str)> = vec![
        (
            server(|_, stream| {
                let _begun = write!(stream, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
                let chunk = format!("10000\r\n{}\r\n", " ".repeat(0x10000));
                while stream.write_all(chunk.as_bytes()).is_ok() {}
            }),
            "crypto: the answer is longer than 16 MiB",
        ),
        (
            server(|_, stream| {
                let _begun = write!(stream, "HTTP/1.1 200 OK\r\nx: ");
                while stream.write_all(&[b'x'; 4096]).is_ok() {}
            }),
            "crypto: the connection broke",
        ),
        (silent, "crypto: no whole answer within 1 seconds"),
        (
            server(|_, stream| drop(write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n{{\"a\"}}"))),
            "crypto: the answer is not JSON",
        ),
        (server(|_, stream| send(stream, &json!([1, 2]))), "its network: network.json: `"),
        (
            server(|_, stream| {
                let _sent = write!(
                    stream,
                    "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/api\r\ncontent-length: 0\r\n\r\n"
                );
            }),
            "it leads to http://127.0.0.1:1/api (status 302), and is not followed",
        ),
        (
            server(|_, stream| drop(write!(stream, "HTTP/1.1 429 Too Many Requests\r\ncontent-length: 0\r\n\r\n"))),
            "it wants fewer requests",
        ),
        (
            server(|_, stream| drop(write!(stream, "HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n"))),
            "found status 500, allowed is 200",
        ),
        (server(|_, _| {}), "crypto: the connection broke"),
        (recorded_node(8, |list| list.rotate_left(1)), "data[0].height: found 2, allowed is 1"),
        (recorded_node(8, |list| list[4]["height"] = json!("5")), "data[4].height: found \"5\", allowed is 5"),
        (recorded_node(8, |list| list.truncate(7)), "data: found \"7 blocks of the range\", allowed is 8"),
        (recorded_node(8, |list| *list = Vec::new()), "data: found \"0 blocks of the range\", allowed is 8"),
        (
            recorded_node(8, |list| list[3] = json!({ "height": 4, "lies": true })),
            "found {\"height\":4,\"lies\":true}, allowed is a block",
        ),
        (
            recorded_node(8, |list| list[3]["numberOfTransactions"] = json!(4_000_000_000_u64)),
            "numberOfTransactions: found 4000000000",
        ),
        (recorded_node(0, |_| {}), "data.now: found 0, allowed is a height from 1 to 2147483647"),
        (recorded_node(1 << 40, |_| {}), "data.now: found 1099511627776"),
    ];
    for (url, part) in cases {
        let (code, _, error) = observed(&[&url, "--per-second", "1000", "--timeout", "1"]);
        assert_eq!(code, Some(2), "{part}: {error}");
        assert!(error.contains(part) && error.trim_end().lines().count() == 1, "{part:?} is not in: {error}");
    }
    // Blocks that are none, and blocks that lie, are judged and not refused.
    for (change, rule) in [
        ((|list: &mut Vec<Value>| list[5]["blockSignature"] = json!("30")) as fn(&mut Vec<Value>), "signature"),
        (|list| list[5]["generatorPublicKey"] = json!(7), "form"),
        (|list| list[5]["id"] = json!("1"), "id"),
        (|list| list[5]["previousBlock"] = json!("1"), "previous"),
    ] {
        let (code, told) = observed_json(&[&recorded_node(8, change), "--per-second", "1000"]);
        assert_eq!(code, Some(1), "{told}");
        let broken = told["broken"].as_array().expect("a list");
        assert!(broken.iter().all(|one| one["height"] == 6 || one["rule"] == "previous"), "{told}");
        assert!(broken.iter().any(|one| one["rule"] == rule), "{rule}: {told}");
    }
    let (code, told) = observed_json(&[&recorded_node(8, |_| {}), "--per-second", "1000"]);
    assert_eq!((code, &told["in_order"], &told["applied_to"]), (Some(0), &json!(true), &json!(8)), "{told}");
}

/// A node of the recorded network with these blocks, and the transactions of some.
fn node_of(blocks: Vec<Value>, transactions: BTreeMap<String, Vec<Value>>) -> String {
    let part = |name: &str| file(&format!("{name}.json"));
    let crypto = json!({"data": {
        "exceptions": part("exceptions"), "genesisBlock": part("genesisBlock"), "milestones": part("milestones"), "network": part("network"),
    }});
    server(move |path, stream| {
        let page = |all: &[Value]| {
            let number = path.split("page=").nth(1).and_then(|rest| rest.split('&').next()?.parse().ok());
            json!({ "data": all.chunks(100).nth(number.unwrap_or(1_usize) - 1).unwrap_or_default() })
        };
        let of_block = path.strip_prefix("/api/blocks/").and_then(|rest| rest.split('/').next());
        match of_block {
            _ if path.ends_with("/crypto") => send(stream, &crypto),
            _ if path.ends_with("/status") => send(stream, &json!({ "data": { "now": blocks.len() } })),
            None => send(stream, &page(&blocks)),
            Some(id) => match transactions.get(id) {
                Some(all) => send(stream, &page(all)),
                None => drop(write!(stream, "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")),
            },
        }
    })
}

/// The recorded chain up to a block, and this block.
fn node_with(block: Value, change: impl Fn(Vec<Value>) -> Vec<Value>) -> String {
    let height = block["height"].as_u64().expect("a height") as u32;
    let (tree, mut blocks, mut transactions) = (tree(), Vec::new(), BTreeMap::new());
    for block in (1..height).map(value).chain([block]) {
        let (bare, own) = apart(&tree, &block);
        let own = if bare["height"] == height { change(own) } else { own };
        transactions.insert(bare["id"].as_str().expect("an id").to_owned(), own);
        blocks.push(bare);
    }
    node_of(blocks, transactions)
}

const QUICK: [&str; 4] = ["--per-second", "1000", "--set", "rules.ledger.minimum_lock_expiration=false"];

#[test]
fn the_transactions_of_a_node_are_judged() {
    let shown = |change: &dyn Fn(&mut Bench)| {
        let mut bench = Bench::new(tree(), FULL);
        change(&mut bench);
        bench.shown()
    };
    let told = |url: &str| observed_json(&[&[url], &QUICK[..]].concat());
    let reversed = |mut own: Vec<Value>| {
        own.reverse();
        own
    };
    // More than a page of them, in either order.
    let many = shown(&|bench| bench.holds((3..=122).map(|nonce| bench.transfer(nonce, 0)).collect()));
    for node in [node_with(many.clone(), |own| own), node_with(many, reversed)] {
        let (code, told) = told(&node);
        assert_eq!((code, &told["in_order"], &told["applied_to"]), (Some(0), &json!(true), &json!(FULL)), "{told}");
    }
    let only = |told: &Value| {
        let broken = told["broken"].as_array().expect("a list");
        broken.iter().map(|one| (one["height"].clone(), one["rule"].clone())).collect::<Vec<_>>()
    };
    for (hash, order) in [
        (shown(&|bench| bench.header.payload_hash[7] ^= 1), sequenced as fn(Vec<Value>) -> Vec<Value>),
        (
            shown(&|bench| {
                bench.holds(vec![bench.transfer(3, 0)]);
                bench.header.payload_hash[7] ^= 1;
            }),
            |own| own,
        ),
    ] {
        let (code, told) = told(&node_with(hash, order));
        assert_eq!((code, only(&told)), (Some(1), vec![(json!(FULL), json!("payload-hash"))]), "{told}");
    }
    // One block is gone when its transactions are asked for.
    let blocks: Vec<Value> = (1..=FULL).map(|height| apart(&tree(), &value(height)).0).collect();
    let gone = node_of(blocks, BTreeMap::new());
    let (code, out, error) = observed(&[&[&*gone], &QUICK[..], &["--json"]].concat());
    assert!(code == Some(2) && error.contains("the chain changed while it was read, from height 9 on"), "{error}");
    let told: Value = serde_json::from_str(&out).expect("what was judged is told");
    assert_eq!((&told["in_order"], &told["applied_to"]), (&json!(true), &json!(8)), "{told}");
}

#[test]
fn all_answers_together_have_a_limit() {
    let part = |name: &str| file(&format!("{name}.json"));
    let crypto = json!({
        "exceptions": part("exceptions"), "genesisBlock": part("genesisBlock"), "milestones": part("milestones"), "network": part("network"),
    });
    let key = KEYS[0].public().to_string();
    let url = server(move |path, stream| {
        if path.ends_with("/crypto") {
            return send(stream, &crypto);
        } else if path.ends_with("/status") {
            return send(stream, &json!({ "data": { "now": 1_800 } }));
        }
        let page: u32 = path.split(['=', '&']).nth(1).and_then(|page| page.parse().ok()).expect("a page");
        let place = |height: u32| json!({ "id": height.to_string(), "height": height, "previousBlock": "1", "timestamp": 8 * height, "generatorPublicKey": key });
        let list = json!({ "data": (page * 100 - 99..=page * 100).map(place).collect::<Vec<_>>() }).to_string();
        let body = list + &" ".repeat(15 << 20);
        let _gone = write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    });
    let (code, _, error) = observed(&[&url, "--from", "1", "--per-second", "1000"]);
    assert!(code == Some(2) && error.contains("all answers together are longer than 256 MiB"), "{error}");
}

#[test]
fn a_list_of_delegates_wins_over_that_of_the_node() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let list = folder.path().join("first.jsonl");
    fs::write(&list, recording("chain/rounds.jsonl").lines().take(51).collect::<Vec<_>>().join("\n"))
        .expect("it can be written");
    // This node answers with something else when it is asked for delegates.
    let node = recorded_node(8, |_| {});
    let list = list.display().to_string();
    let (code, out, error) = observed(&[&node, "--from", "3", "--per-second", "1000", "--delegates", &list, "--json"]);
    assert_eq!(code, Some(0), "{error}");
    let told: Value = serde_json::from_str(&out).expect("JSON");
    let turn =
        told["rules"].as_array().expect("a list").iter().find(|one| one["rule"] == "turn").expect("it is listed");
    assert_eq!((&turn["judged"], &turn["not_judged"]), (&json!(6), &json!(0)), "{told}");
}

#[test]
fn a_report_survives_strangers_and_a_file_that_cannot_be_written() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let network = recordings().join("network").display().to_string();
    let lenient = ["--network", &network, "--set", "rules.ledger.minimum_lock_expiration=false"];
    let observed = |more: &[&str]| observed(&[more, &lenient[..]].concat());
    // A name that would clear the screen, and begin a fault in the scenario.
    let named = |line: &str| {
        let mut one: Value = serde_json::from_str(line).expect("JSON");
        one["username"] = json!("bob\u{1b}[2J\u{9b}\n[[fault]]\nkind = \"offline\"\n#");
        one.to_string()
    };
    let delegates: Vec<String> = recording("chain/rounds.jsonl").lines().map(named).collect();
    fs::write(path("delegates.jsonl"), delegates.join("\n")).expect("it can be written");
    fs::write(path("window.jsonl"), LINES[60..90].join("\n")).expect("it can be written");
    let (window, delegates, out) = (path("window.jsonl"), path("delegates.jsonl"), path("incident.toml"));
    let (code, told, _) = observed(&[&window, "--delegates", &delegates, "--out", &out]);
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("bob\\u{1b}[2J") && !told.replace('\n', "").contains(char::is_control), "{told:?}");
    let (_, told, _) = observed(&[&window, "--delegates", &delegates, "--json"]);
    assert!(!told.trim_end().contains(char::is_control), "{told:?}");
    let told: Value = serde_json::from_str(&told).expect("JSON");
    let missed = told["gaps"][0]["missed"][0]["delegate"].as_str();
    assert!(missed.is_some_and(|name| name.starts_with("bob\u{1b}[2J\u{9b}\n[")), "{told}");
    let text = fs::read_to_string(&out).expect("it was written");
    assert_eq!(text.lines().filter(|line| line.starts_with("[[fault]]")).count(), 1, "{text}");
    Scenario::parse(&text, Path::new("incident")).expect("it is one");

    // No folder, no file: the report is told, and the exit code is that of the report.
    let nowhere = path("nowhere/incident.toml");
    let (code, told, error) = observed(&[&window, "--out", &nowhere]);
    assert!(
        code == Some(2) && error.contains("--out") && told.contains("in order: no block"),
        "{code:?} {told}{error}"
    );
    let mut lines: Vec<String> = LINES[60..90].to_vec();
    lines[25] = lines[25].replace("\"reward\":\"0\"", "\"reward\":\"7\"");
    fs::write(path("broken.jsonl"), lines.join("\n")).expect("it can be written");
    let (code, told, error) = observed(&[&path("broken.jsonl"), "--out", &nowhere]);
    assert!(code == Some(1) && error.contains("--out") && told.contains("NOT IN ORDER"), "{code:?} {told}{error}");
    let (_, told, _) = observed(&[&path("broken.jsonl")]);
    assert!(told.contains("empty slots: 1 up to height 85, where the longest chain ends"), "{told}");
}

#[test]
fn help_teaches_how_to_observe() {
    let output = dposlab().args(["observe", "--help"]).output().expect("the binary was built for this test");
    let help = String::from_utf8(output.stdout).expect("text");
    for part in ["dposlab observe http://127.0.0.1:4003", "--per-second", "--network", "Exit code 0"] {
        assert!(help.contains(part), "{part}: {help}");
    }
}
