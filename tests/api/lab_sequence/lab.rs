//! A live network that is asked one request after the other, and held against what each may do.

use super::requests::{self, Step};
use crate::{lab_faults::of_every_kind, live::Network, support::of_json};
use dposlab::{
    actors::{NodeId, SimTime},
    api::{ApiContext, ApiError, Chaos, Funds, Reply, Settings, answer},
    check::invariants::check_all,
    ledger::Link,
    protocol::{Arktoshi, BlockId, Nonce, Transaction},
    report::session::{Session, state},
    scenario::{FaultDesk, Scenario, StageKind},
    sim::{
        Pace, Plan, SeedTree, Stage,
        snapshots::SnapshotInfo,
        world::{FaultState, FaultStatus},
    },
};
use proptest::{sample::Index, test_runner::TestCaseError};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::Arc,
};
use tokio::runtime::{Builder, Runtime};
use warp::http::Method;

const SEED: u64 = 5;

/// A network that is asked.
pub struct Lab {
    pub network: Network,
    /// The context that answers clients.
    context: ApiContext,
    /// The same, without chaos.
    calm: ApiContext,
    runtime: Runtime,
    /// The network as it was when each snapshot was taken.
    kept: BTreeMap<u64, Sight>,
    /// Blocks whose states have been held against the invariants.
    checked: BTreeSet<BlockId>,
    /// Questions and answers, for whoever wants to know why it failed.
    asked: Vec<String>,
}

/// The network as it can be seen.
#[derive(Clone, Debug, PartialEq)]
struct Sight {
    pace: Pace,
    snapshots: Vec<SnapshotInfo>,
    moment: Moment,
}

/// The state that a revert brings back.
#[derive(Clone, Debug, PartialEq)]
struct Moment {
    now: SimTime,
    delivered: u64,
    tips: Vec<BlockId>,
    live: Vec<bool>,
    faults: Vec<FaultStatus>,
    pending: Value,
}

/// A request.
struct Asked {
    method: Method,
    target: String,
    body: Vec<u8>,
    expects: Expects,
}

#[derive(Clone, Copy, PartialEq)]
enum Expects {
    Done,
    Refused,
    Either,
}
use Expects::{Done, Either, Refused};

fn done_if(is_good: bool) -> Expects {
    if is_good { Done } else { Refused }
}

fn ask(method: Method, target: impl Into<String>, expects: Expects) -> Asked {
    Asked { method, target: target.into(), body: Vec::new(), expects }
}

fn post(target: impl Into<String>, body: &Value, expects: Expects) -> Asked {
    Asked { body: body.to_string().into_bytes(), ..ask(Method::POST, target, expects) }
}

impl Lab {
    /// A network of five that has forged six blocks, and is recorded in a file.
    pub fn start(kind: StageKind, file: &Path) -> Self {
        let network = Network::recorded(SEED, Settings::default(), &[], kind == StageKind::Inline, Some(file));
        let scenario = Scenario::parse("version = 1\nrounds = 1\n[network]\ndelegates = 5\n", Path::new("live.toml"));
        let session = Session::new(SEED, &scenario.expect("it is one"), 1, network.plan.tree.config());
        let context = ApiContext {
            funds: Some(Arc::new(Funds::new(network.testnet.accounts.clone(), SeedTree::new(SEED)))),
            write_state: Some(Arc::new(move |info, history| {
                state::write(&session, info, history).map_err(|why| ApiError::Conflict(why.to_string()))
            })),
            ..network.context.clone()
        };
        let chaos = Chaos::new(SEED, NodeId(0), Arc::new(vec![context.view.clone()].into()));
        let calm = ApiContext { chaos, ..context.clone() };
        let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime without IO");
        let (kept, checked, asked) = (BTreeMap::new(), BTreeSet::new(), Vec::new());
        let mut lab = Self { network, context, calm, runtime, kept, checked, asked };
        lab.take(&Step::Advance(6)).expect("it forges");
        lab
    }

    /// Asks what a step says, and holds what comes of it.
    pub fn take(&mut self, step: &Step) -> Result<(), String> {
        let before = self.sight();
        match step {
            Step::Together(first, second) => {
                let both = [self.requests(first, &before), self.requests(second, &before)];
                self.together(both)?;
            }
            Step::Hurry(_) | Step::EndAllFaults => {
                for asked in self.requests(step, &before) {
                    self.send(&asked)?;
                }
            }
            _ => {
                for asked in self.requests(step, &before) {
                    self.hold_one(&asked, &before)?;
                }
            }
        }
        let after = self.sight();
        self.check(&after)
    }

    /// Why it failed, after what.
    pub fn failed(&self, why: &str) -> TestCaseError {
        TestCaseError::fail(format!("{why}\n{}", self.asked.join("\n")))
    }

    /// Stops the network; answers what was asked, and how the network began.
    pub fn end(self) -> (String, Plan, FaultDesk) {
        (self.asked.join("\n"), self.network.plan.clone(), self.network.desk.clone())
    }

    /// The numbers of the snapshots.
    pub fn snapshots(&self) -> Vec<u64> {
        self.sight().snapshots.iter().map(|info| info.id.0).collect()
    }

    /// A snapshot as a file.
    pub fn file(&self, id: u64) -> Result<Vec<u8>, String> {
        let reply = self.reply(&self.calm, &ask(Method::GET, format!("/lab/snapshots/{id}/file"), Done));
        (reply.status == 200).then(|| reply.body.to_vec()).ok_or_else(|| format!("file of {id}: {}", reply.status))
    }

    /// Checks that the network was like this when a snapshot was taken.
    pub fn hold_moment(&self, id: u64, found: (SimTime, u64, Vec<BlockId>)) -> Result<(), String> {
        // Inputs that were taken together are told apart by their own words only.
        let Some(Sight { moment, .. }) = self.kept.get(&id) else { return Ok(()) };
        let taken = (moment.now, moment.delivered, moment.tips.clone());
        equal(&format!("the file of snapshot {id}"), &found, &taken)
    }

    fn look<T: Send + 'static>(&self, look: impl FnOnce(&Stage) -> T + Send + 'static) -> T {
        self.runtime.block_on(self.network.handle.look(look)).expect("it runs")
    }

    fn sight(&self) -> Sight {
        let (_, pace) = self.runtime.block_on(self.network.handle.now()).expect("it runs");
        let pending = self.get("/api/transactions/unconfirmed?limit=100");
        let (snapshots, mut moment) = self.look(|stage| {
            let world = stage.world();
            let tips = world.tips();
            let moment = Moment {
                now: world.now(),
                delivered: world.delivered(),
                tips: tips.all().map(|tip| tip.id()).collect(),
                live: (0..tips.nodes() as u32).map(|node| tips.is_live(NodeId(node))).collect(),
                faults: world.faults().collect(),
                pending: Value::Null,
            };
            (stage.snapshots().list().cloned().collect(), moment)
        });
        moment.pending = pending;
        Sight { pace, snapshots, moment }
    }

    fn reply(&self, context: &ApiContext, asked: &Asked) -> Reply {
        let body = asked.body.clone();
        let request = of_json(asked.method.clone(), &asked.target);
        self.runtime.block_on(answer(context, &request, async { Ok(body) }))
    }

    /// Reads what chaos does not touch.
    fn get(&self, target: &str) -> Value {
        let reply = self.reply(&self.calm, &ask(Method::GET, target, Done));
        serde_json::from_slice(&reply.body).unwrap_or_default()
    }

    fn send(&mut self, asked: &Asked) -> Result<(u16, Value), String> {
        let reply = self.reply(&self.context, asked);
        self.note(asked, &reply)
    }

    fn note(&mut self, asked: &Asked, reply: &Reply) -> Result<(u16, Value), String> {
        let Asked { method, target, body, .. } = asked;
        let (status, answered) = (reply.status.as_u16(), String::from_utf8_lossy(&reply.body).into_owned());
        let body: String = String::from_utf8_lossy(body).chars().take(300).collect();
        let line = format!("{method} {target} {body} -> {status}");
        // A rule of chaos is drawn that answers with 529.
        let is_chaos = status == 529 && target.starts_with("/api/");
        self.asked.push(line.clone());
        match status < 500 || is_chaos {
            true => Ok((status, serde_json::from_str(&answered).unwrap_or_default())),
            false => Err(format!("{line}: {answered}")),
        }
    }

    /// Two clients ask, each its requests one after the other, at the same time.
    fn together(&mut self, both: [Vec<Asked>; 2]) -> Result<(), String> {
        let context = &self.context;
        let ask_all = async |all: &[Asked]| {
            let mut replies = Vec::new();
            for asked in all {
                let request = of_json(asked.method.clone(), &asked.target);
                let body = asked.body.clone();
                replies.push(answer(context, &request, async { Ok(body) }).await);
            }
            replies
        };
        let [first, second] = &both;
        let (one, other) = self.runtime.block_on(async { tokio::join!(ask_all(first), ask_all(second)) });
        self.asked.push("together:".to_owned());
        for (asked, reply) in both.iter().flatten().zip(one.into_iter().chain(other)) {
            self.note(asked, &reply)?;
        }
        self.asked.push(":together".to_owned());
        Ok(())
    }

    /// Asks one request, and holds what it did against what it may do.
    fn hold_one(&mut self, asked: &Asked, before: &Sight) -> Result<(), String> {
        let (status, answered) = self.send(asked)?;
        let after = self.sight();
        let shown = format!("{} {}: {status} {answered}", asked.method, asked.target);
        if (asked.expects == Done && status >= 300) || (asked.expects == Refused && !(400..500).contains(&status)) {
            return Err(shown);
        }
        // Faucet transactions that a pool refuses have come to the pool.
        let changes_nothing = asked.method == Method::GET || ((400..500).contains(&status) && status != 409);
        if changes_nothing {
            return same(&format!("{shown} has changed something"), &after, before);
        }
        if asked.target == "/lab/snapshots" {
            let id = answered["data"]["id"].as_u64().ok_or(shown)?;
            // It comes after all that is due by now, such as the end of a fault.
            equal("a snapshot was taken: now", &after.moment.now, &before.moment.now)?;
            self.kept.insert(id, after);
        } else if asked.target.ends_with("/revert") {
            let id = answered["data"]["id"].as_u64().ok_or_else(|| shown.clone())?;
            if let Some(taken) = self.kept.get(&id) {
                same_moment(&shown, &after.moment, &taken.moment)?;
            }
        }
        Ok(())
    }

    /// Holds the whole network against the invariants, and what is answered against the network.
    fn check(&mut self, sight: &Sight) -> Result<(), String> {
        self.check_chains()?;
        self.check_lab(sight)?;
        self.check_api(sight)
    }

    /// All that hold of a chain's state, after each block of each node's chain.
    fn check_chains(&mut self) -> Result<(), String> {
        let tips = self.look(|stage| stage.world().tips().all().cloned().collect::<Vec<_>>());
        for tip in tips {
            let new = chain(&tip).take_while(|link| link.height().0 > 1 && !self.checked.contains(&link.id()));
            for link in new.collect::<Vec<_>>() {
                check_all(&self.network.plan.tree, &link).map_err(|why| why.to_string())?;
                self.checked.insert(link.id());
            }
        }
        Ok(())
    }

    /// Checks that `/lab` shows the run as it is.
    fn check_lab(&self, sight: &Sight) -> Result<(), String> {
        let (lab, moment) = (self.get("/lab")["data"].take(), &sight.moment);
        equal("now", &lab["nowMicros"], &json!(moment.now.micros()))?;
        equal("pace", &lab["pace"], &json!(sight.pace.to_string()))?;
        let column = |name: &str| -> Vec<Value> {
            lab["nodes"].as_array().into_iter().flatten().map(|node| node[name].clone()).collect()
        };
        let tips: Vec<Value> = moment.tips.iter().map(|id| json!(id.to_string())).collect();
        equal("tips", &column("tip"), &tips)?;
        equal("live", &column("live"), &moment.live.iter().map(|live| json!(live)).collect())?;
        // A pool hears of a block after its peer, and what is in a block is pending no more.
        let (pool, pending) = (column("pool")[0].as_u64(), moment.pending["meta"]["totalCount"].as_u64());
        if pool.is_none() || pool < pending {
            return Err(format!("node 0: {pool:?} in the pool, {pending:?} are pending"));
        }
        let in_force = |status: &FaultStatus| match status.state {
            FaultState::InForce { since } => {
                Some(json!({"fault": status.id, "kind": status.fault.kind.name(), "since": since.micros()}))
            }
            _ => None,
        };
        equal("faults in force", &lab["faults"], &moment.faults.iter().filter_map(in_force).collect())?;
        for (node, cause) in column("cause").iter().enumerate() {
            let cause_of = |kind: &'static str| if kind == "node-churn" { "crash" } else { kind };
            let of_kind = |status: &&FaultStatus| {
                cause == cause_of(status.fault.kind.name()) && matches!(status.state, FaultState::InForce { .. })
            };
            if !cause.is_null() && moment.faults.iter().find(of_kind).is_none() {
                return Err(format!("node {node} is down by {cause}, and no such fault is in force"));
            }
        }
        let ids = |rows: &Value| rows.as_array().into_iter().flatten().map(|row| row["id"].clone()).collect();
        let snapshots: Vec<Value> = ids(&lab["snapshots"]);
        equal("snapshots", &snapshots, &sight.snapshots.iter().map(|info| json!(info.id.0)).collect())
    }

    /// Checks that the public API shows the observed node's chain, and that it adds up.
    fn check_api(&self, sight: &Sight) -> Result<(), String> {
        let tip = self.look(|stage| stage.world().tips().of(NodeId(0)).clone());
        let blocks = self.get("/api/blocks?limit=100");
        equal("number of blocks", &blocks["meta"]["totalCount"], &json!(tip.height().0))?;
        let rows = blocks["data"].as_array().ok_or("no blocks")?;
        equal("newest block", &rows[0]["id"], &json!(sight.moment.tips[0].to_string()))?;
        if let Some(pair) = rows.windows(2).find(|pair| pair[0]["previous"] != pair[1]["id"]) {
            return Err(format!("blocks are not linked: {pair:?}"));
        }
        let count: usize = chain(&tip).map(|link| link.block().transactions.len()).sum();
        let transactions = self.get("/api/transactions?limit=1");
        equal("number of transactions", &transactions["meta"]["totalCount"], &json!(count))?;
        self.check_wallets()
    }

    /// Nobody is paid for a block here, and the sender of what genesis gave owes all of it.
    fn check_wallets(&self) -> Result<(), String> {
        let (mut sum, mut count, mut page) = (0, 0, 1);
        loop {
            let wallets = self.get(&format!("/api/wallets?limit=100&page={page}"));
            let rows = wallets["data"].as_array().ok_or("no wallets")?;
            let balances = rows.iter().map(|row| row["balance"].as_str()?.parse::<i128>().ok());
            sum += balances.sum::<Option<i128>>().ok_or("a balance is no number")?;
            count += rows.len();
            if wallets["meta"]["next"].is_null() {
                equal("number of wallets", &json!(count), &wallets["meta"]["totalCount"])?;
                return equal("sum of balances", &sum, &0);
            }
            page += 1;
        }
    }

    /// The requests of a step in the network as it is now.
    fn requests(&self, step: &Step, sight: &Sight) -> Vec<Asked> {
        let height = self.look(|stage| stage.world().tips().of(NodeId(0)).height().0);
        let now = u64::from(sight.moment.now.seconds().0);
        let of_snapshot = |index: &Index| {
            let there = &sight.snapshots;
            let id = there.get(index.index(there.len() + 1)).map(|info| info.id.0);
            (format!("/lab/snapshots/{}", id.unwrap_or(10_001)), done_if(id.is_some()))
        };
        let end = |id: usize, count: usize| ask(Method::DELETE, format!("/lab/faults/{id}"), done_if(id < count));
        let one = match step {
            Step::Advance(slots) => post("/lab/advance", &json!({ "slots": slots }), Done),
            Step::Until(goal, number) => {
                let (body, is_good) = requests::until(*goal, *number, height, now);
                post("/lab/advance", &body, done_if(is_good))
            }
            Step::Pace { on_demand } => {
                post("/lab/pace", &json!({"pace": if *on_demand { "on-demand" } else { "manual" }}), Done)
            }
            Step::Hurry(pace) => {
                let paces = [(*pace).to_owned(), sight.pace.to_string()];
                return paces.iter().map(|pace| post("/lab/pace", &json!({ "pace": pace }), Done)).collect();
            }
            Step::Snapshot { named } => {
                post("/lab/snapshots", &if *named { json!({"name": "kept"}) } else { json!({}) }, Done)
            }
            Step::ShowSnapshot(index) => {
                let (target, expects) = of_snapshot(index);
                ask(Method::GET, target, expects)
            }
            Step::SnapshotFile(index) => {
                let (target, expects) = of_snapshot(index);
                ask(Method::GET, format!("{target}/file"), expects)
            }
            Step::Revert(index) => {
                let (target, expects) = of_snapshot(index);
                ask(Method::POST, format!("{target}/revert"), expects)
            }
            Step::DeleteSnapshot(index) => {
                let (target, expects) = of_snapshot(index);
                ask(Method::DELETE, target, expects)
            }
            Step::Fault(kind, from) => {
                let mut fault = of_every_kind()[*kind].clone();
                requests::trigger(&mut fault, *from, height, now);
                post("/lab/faults", &fault, Done)
            }
            Step::BadFault(number) => post("/lab/faults", &requests::bad_faults()[*number], Refused),
            Step::EndFault(index) => {
                let count = sight.moment.faults.len();
                end(index.index(count + 1), count)
            }
            Step::EndAllFaults => {
                let count = sight.moment.faults.len();
                return (0..count).map(|id| end(id, count)).collect();
            }
            Step::Crash(node) => ask(Method::POST, format!("/lab/nodes/{node}/crash"), done_if(*node < 5)),
            Step::Restart(node, keep_pool) => {
                post(format!("/lab/nodes/{node}/restart"), &json!({ "keep_pool": keep_pool }), done_if(*node < 5))
            }
            Step::Reorganise { depth, transactions, node } => {
                let mut body = json!({ "depth": depth });
                match transactions {
                    0 => body["transactions"] = json!("return"),
                    1 => body["transactions"] = json!("drop"),
                    2 => body["transactions"] = json!(["ab".repeat(32)]),
                    _ => {}
                }
                node.iter().for_each(|node| body["node"] = json!(node));
                let is_bad = *depth == 0 || *transactions == 2 || *node == Some(5);
                post("/lab/reorg", &body, if is_bad { Refused } else { Either })
            }
            Step::Faucet(number) => {
                let (body, is_good) = requests::faucet(*number, &self.network.testnet.accounts[0].address.to_string());
                post("/lab/faucet", &body, if is_good { Either } else { Refused })
            }
            Step::Accounts(count) => {
                let expects = if *count == 0 { Refused } else { Either };
                post("/lab/accounts", &json!({"count": count, "balance": "77000000"}), expects)
            }
            Step::Transfer { account, ahead, broken } => {
                post("/api/transactions", &self.transfer(*account, *ahead, *broken), Either)
            }
            Step::Chaos(number) => {
                let (body, is_good) = &requests::chaos()[*number];
                post("/lab/chaos", body, done_if(*is_good))
            }
            Step::DeleteChaos(id) => ask(Method::DELETE, format!("/lab/chaos/{id}"), Either),
            Step::ClearChaos => ask(Method::DELETE, "/lab/chaos", Done),
            Step::Read(number) => {
                let target = requests::READ[*number];
                ask(Method::GET, target, if target.starts_with("/api") { Either } else { Done })
            }
            Step::Hostile { route, body } => {
                let target = requests::HOSTILE[*route];
                let expects = if target.starts_with("/api") { Either } else { Refused };
                Asked { body: requests::bodies()[*body].clone(), ..ask(Method::POST, target, expects) }
            }
            Step::NoSuch(number) => {
                let (method, target) = requests::NO_SUCH[*number];
                ask(method.parse().expect("a method"), target, Refused)
            }
            Step::Together(..) => unreachable!("two are not drawn within two"),
        };
        vec![one]
    }

    /// A transfer of an account, whose nonce may be too high.
    fn transfer(&self, account: usize, ahead: u64, broken: bool) -> Value {
        let accounts = &self.network.testnet.accounts;
        let wallet = self.get(&format!("/api/wallets/{}", accounts[account].address));
        let nonce: u64 = wallet["data"]["nonce"].as_str().and_then(|text| text.parse().ok()).unwrap_or_default();
        let transfer = Transaction::transfer(accounts[account + 1].address, Arktoshi::coins(1)).network(23);
        let mut transfer = transfer.nonce(Nonce(nonce + 1 + ahead)).sign(&accounts[account].keys).to_json();
        if broken {
            transfer["signature"] = json!("12".repeat(64));
        }
        json!({"transactions": [transfer]})
    }
}

/// The blocks of a chain, the highest first.
fn chain(tip: &Arc<Link>) -> impl Iterator<Item = Arc<Link>> {
    std::iter::successors(Some(tip.clone()), |link| link.parent())
}

fn equal<T: PartialEq + std::fmt::Debug>(what: &str, found: &T, expected: &T) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("{what}: found {found:?}, expected {expected:?}")) }
}

fn same(what: &str, found: &Sight, expected: &Sight) -> Result<(), String> {
    equal(&format!("{what}: pace"), &found.pace, &expected.pace)?;
    equal(&format!("{what}: snapshots"), &found.snapshots, &expected.snapshots)?;
    same_moment(what, &found.moment, &expected.moment)
}

fn same_moment(what: &str, found: &Moment, expected: &Moment) -> Result<(), String> {
    equal(&format!("{what}: now"), &found.now, &expected.now)?;
    equal(&format!("{what}: tips"), &found.tips, &expected.tips)?;
    equal(&format!("{what}: live nodes"), &found.live, &expected.live)?;
    equal(&format!("{what}: faults"), &found.faults, &expected.faults)?;
    equal(&format!("{what}: pending"), &found.pending, &expected.pending)?;
    equal(&format!("{what}: delivered"), &found.delivered, &expected.delivered)
}
