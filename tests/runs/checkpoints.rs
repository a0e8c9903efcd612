//! A run that is written down and read again, in a network made anew, is the same run: to the last event, random number and
//! byte.

use crate::{by_name, support::scenarios, testnet::Up};
use dposlab::{
    actors::{Event, NodeId, SimTime},
    check::swarm::{Frame, draw},
    ledger::{BlockTree, Link, State, Wallet, codec::Saver, settled_chain::SettledError},
    protocol::{Arktoshi, Block, BlockId, Height, Nonce, Transaction},
    report::session::{
        Entry, Session,
        folder::{
            Depth, Folder, FolderError, FolderWriter, LoggedInputs, OpenFolder, ResumedTestnet, Settling, Sync,
            checkpoint::{Beside, Checkpoints},
        },
    },
    scenario::{Account, FaultDesk, Scenario, Testnet, run::among_actors},
    sim::{
        Digest, Intervention, NetworkEvent, Observer, Plan, SeedTree, Stage, TraceDigest,
        fault::AddedFault,
        intervention::{ReorgRequest, ReturnedTransactions, SnapshotId},
        live::{Journal, Keeper, Settler},
        snapshots::{Inputs, Snapshots},
        world::Moment,
    },
};
use rand::{Rng, SeedableRng, seq::IndexedRandom};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    env, fs,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, mpsc},
    time::Duration,
};

/// Inputs delivered to actors after which a large run has been played long enough.
const DELIVERED_MAX: u64 = 60_000;
/// The number of times that a run is written down and read again.
const TIMES: usize = 4;

/// The blocks that nodes took, each once, in the order in which they were first taken.
#[derive(Clone, Default)]
struct Blocks(Arc<Mutex<Seen>>);

/// Their ids, and the blocks.
type Seen = (BTreeSet<BlockId>, Vec<Arc<Link>>);

impl Observer for Blocks {
    fn observe(&mut self, _: SimTime, _: NodeId, event: &Event) {
        if let Event::BlockApplied(link) = event {
            let mut all = self.0.lock().expect("no one panics while holding it");
            if all.0.insert(link.id()) {
                all.1.push(link.clone());
            }
        }
    }
}

impl Blocks {
    /// Puts them into the tree of another plan, as a log does.
    fn put_into(&self, plan: &Plan, name: &str) {
        let (tree, config) = (&plan.tree, plan.tree.config());
        let read_again = |link: &Arc<Link>| {
            let bytes = link.block().to_bytes(&config.milestones);
            Arc::new(Block::from_bytes(&bytes, &config.block_context()).expect("it was on a chain"))
        };
        let all = self.0.lock().expect("no one panics while holding it");
        let blocks: Vec<Arc<Block>> = all.1.iter().map(read_again).collect();
        let links = tree
            .extend_all_again(&blocks, None)
            .unwrap_or_else(|why| panic!("{name}: a block was applied before: {why:?}"));
        assert!(links.iter().map(|link| link.id()).eq(all.1.iter().map(|link| link.id())));
    }
}

/// The end of a run, and all that it told.
type End = (Digest, u64, u64, SimTime);

struct Run {
    stage: Stage,
    digest: TraceDigest,
    blocks: Blocks,
    last: Height,
}

impl Run {
    fn new(scenario: &Scenario, plan: &Plan) -> Self {
        let (digest, blocks) = (TraceDigest::default(), Blocks::default());
        let stage = Stage::inline(plan, vec![Box::new(digest.clone()), Box::new(blocks.clone())]);
        Self { stage, digest, blocks, last: scenario.last_height() }
    }

    /// Plays until so many inputs were delivered, or to the end.
    async fn play(&mut self, delivered: u64) {
        let world = |run: &Self| (run.stage.world().delivered(), run.stage.world().best().height());
        while world(self).0 < delivered && world(self).1 <= self.last {
            if !self.stage.step(SimTime::from_micros(u64::MAX)).await.expect("no actor dies") {
                break;
            }
        }
        let now = self.stage.world().now();
        self.stage.rest_until(now);
    }

    fn end(&self) -> End {
        let world = self.stage.world();
        (self.digest.digest(), self.digest.events(), world.delivered(), world.now())
    }

    /// Goes on with what another process would read.
    fn read_again(&mut self, plan: &Plan, added: &[AddedFault], name: &str) {
        let moment = self.stage.inline_moment().expect("it is in this thread");
        self.blocks.put_into(plan, name);
        let (bytes, _) = moment.to_bytes();
        let again = Moment::from_bytes(bytes.clone(), plan, added).unwrap_or_else(|why| panic!("{name}: {why}"));
        assert!(again.to_bytes().0 == bytes, "{name}: what is read is not what was written");
        let mut out = Saver::new(&plan.tree);
        self.digest.save(&mut out);
        self.digest = TraceDigest::default();
        let (bytes, _) = out.finish();
        self.digest.go_on(&mut plan.loader(bytes)).expect("a digest was written");
        let observers: Vec<Box<dyn Observer>> = vec![Box::new(self.digest.clone()), Box::new(self.blocks.clone())];
        self.stage = Stage::at(&again, Snapshots::new(plan), observers);
    }
}

/// Plays a scenario at once, and with breaks.
fn holds(scenario: &Scenario, seed: u64, name: &str) {
    let seeds = SeedTree::new(seed);
    let plan = || scenario.plan(&scenario.testnet(seeds), seeds);
    among_actors(async {
        let mut whole = Run::new(scenario, &plan());
        whole.play(DELIVERED_MAX).await;
        let end = whole.end();
        let mut random = seeds.stream("checkpoints");
        let mut instants: Vec<u64> = (0..TIMES).map(|_| random.random_range(0..end.2)).collect();
        instants.sort_unstable();
        let mut broken = Run::new(scenario, &plan());
        for at in instants {
            broken.play(at).await;
            broken.read_again(&plan(), &[], name);
        }
        broken.play(DELIVERED_MAX).await;
        assert_eq!(broken.end(), end, "{name}: the run differs after it was read again");
    });
}

#[test]
fn every_shipped_scenario_goes_on_as_the_same_run() {
    for file in scenarios() {
        let scenario = Scenario::load(&file).expect("shipped scenarios are valid");
        holds(&scenario, 7, &file.display().to_string());
    }
}

#[test]
fn drawn_scenarios_go_on_as_the_same_run() {
    for seed in 0..100 {
        let drawn = draw(&Frame { delegates: Some(7), rounds: Some(3), ..Frame::default() }, seed);
        let scenario = Scenario { rounds: drawn.rounds.min(12), ..drawn };
        holds(&scenario, 1, &format!("drawn from {seed}"));
    }
}

#[test]
fn runs_that_draw_all_the_time_go_on_as_the_same_run() {
    let mut lossy = by_name::entries();
    for (number, scenario) in (0..20).map(by_name::drawn).chain([by_name::entries()]).enumerate() {
        holds(&scenario, 1, &format!("number {number}"));
    }
    // A link of which messages are under way in each slot.
    lossy.network.model.loss = 0.1;
    holds(&lossy, 2, "lossy");
}

/// Nodes keep blocks of other branches, some of which no node puts on its chain: of double forgers, of those who forge out of turn, of
/// withheld chains. A block that is signed and breaks a rule is kept until its chain is the longest.
#[test]
fn runs_that_keep_branches_go_on_as_the_same_run() {
    let scenario = |shuffle: &str, latency: u32| {
        let fault = |kind: &str, delegate: u32| {
            format!("[[fault]]\nkind = \"{kind}\"\ndelegates = [{delegate}]\nfrom = {{ round = 2 }}\n")
        };
        let faults = [
            fault("double-forge", 1),
            fault("forge-invalid", 2) + "error = \"reward\"\n",
            fault("forge-out-of-turn", 3),
            fault("withhold", 4),
        ];
        let text = format!(
            "version = 1\nrounds = 8\n[network]\ndelegates = 7\nlatency = {{ min_ms = 20, max_ms = {latency} }}\n\
             [rules]\nbase = \"corrected\"\nledger.shuffle = {shuffle}\nnode.fork_choice = \"longest-chain\"\n\
             node.keeps_branches = true\nnode.forging_ping_ms = 0\nnode.settling_s = 0\nnode.least_seconds_left = 1\n{}\
             [[assert]]\nalways = \"invariants\"\n",
            faults.join("")
        );
        Scenario::parse(&text, Path::new("branches.toml")).expect("it is valid")
    };
    for (shuffle, latency) in [("\"reference\"", 4_000), ("\"reference\"", 12_000), ("{ lottery = 400000 }", 4_000)] {
        for seed in 1..=4 {
            holds(&scenario(shuffle, latency), seed, &format!("{shuffle}, up to {latency} ms, seed {seed}"));
        }
    }
}

/// The fault counts the messages that left before the break.
#[test]
fn a_fault_of_one_message_goes_on_counting() {
    let scenario = |only: u32| {
        let text = format!(
            "version = 1\nrounds = 4\n[network]\ndelegates = 5\n[[fault]]\nkind = \"drop\"\nmessages = [\"block\"]\n\
             senders = [0]\nonly = {only}\n"
        );
        Scenario::parse(&text, Path::new("one.toml")).expect("it is valid")
    };
    let digest = |scenario: &Scenario| {
        let seeds = SeedTree::new(1);
        among_actors(async {
            let mut run = Run::new(scenario, &scenario.plan(&scenario.testnet(seeds), seeds));
            run.play(DELIVERED_MAX).await;
            run.end()
        })
    };
    let mut ends: Vec<End> = Vec::new();
    for only in [3, 7, 12] {
        holds(&scenario(only), 1, &format!("number {only}"));
        ends.push(digest(&scenario(only)));
    }
    assert!(ends[0] != ends[1] && ends[1] != ends[2], "each message matters");
}

/// Messages between nodes, and how many of them were lost.
#[derive(Clone, Default)]
struct Losses(Arc<Mutex<(u64, u64)>>);

impl Observer for Losses {
    fn observe(&mut self, _: SimTime, _: NodeId, _: &Event) {}

    fn observe_network(&mut self, _: SimTime, event: &NetworkEvent<'_>) {
        let (all, lost) = match event {
            NetworkEvent::Sent { from, to, .. } if from.node != to.node => (1, 0),
            NetworkEvent::Lost { .. } => (1, 1),
            _ => return,
        };
        let mut counts = self.0.lock().expect("nobody panics");
        *counts = (counts.0 + all, counts.1 + lost);
    }

    fn wants_messages(&self) -> bool {
        true
    }
}

/// A network in which nothing is drawn for messages, until a user adds a fault that does: from then on each has a fate of its own, also
/// after a break.
#[test]
fn an_added_fault_draws_for_each_message_and_goes_on_after_a_break() {
    let text = "version = 1\nrounds = 9\n[network]\ndelegates = 5\n";
    let scenario = Scenario::parse(text, Path::new("plain.toml")).expect("it is valid");
    let seeds = SeedTree::new(1);
    let plan = || scenario.plan(&scenario.testnet(seeds), seeds);
    let desk = FaultDesk::new(&plan(), scenario.testnet(seeds));
    let added = desk.read(&json!({"kind": "drop", "chance": 0.3})).expect("it is a fault");
    let play = |breaks: &[u64]| {
        let losses = Losses::default();
        let end = among_actors(async {
            let mut run = Run::new(&scenario, &plan());
            run.play(400).await;
            run.stage.intervene(Intervention::AddFault(added.clone().into())).await.expect("no actor dies");
            run.stage.watch(Box::new(losses.clone()));
            for at in breaks {
                run.play(*at).await;
                run.read_again(&plan(), std::slice::from_ref(&added), "a fault was added");
            }
            run.play(DELIVERED_MAX).await;
            run.end()
        });
        (end, *losses.0.lock().expect("nobody panics"))
    };
    let (whole, (all, lost)) = play(&[]);
    assert!(all > 1_000 && (0.25..0.35).contains(&(lost as f64 / all as f64)), "{lost} of {all} lost");
    assert_eq!(play(&[700, 1_200]).0, whole);
}

/// A network with clients, of which everything is kept in a folder.
struct Kept {
    scenario: Scenario,
    folder: tempfile::TempDir,
    settles: bool,
}

/// A testnet of a folder that goes on.
struct Open {
    plan: Plan,
    desk: FaultDesk,
    digest: TraceDigest,
    /// Blocks that nodes took while the log was played.
    played: Blocks,
    resumed: Option<ResumedTestnet>,
    log: Option<(dposlab::files::segments::Log, Settling, LoggedInputs)>,
    accounts: Vec<Account>,
}

impl Kept {
    fn new() -> Self {
        let text = "version = 1\ndescription = \"d\"\nrounds = 9\ncrypto = \"modelled\"\n[network]\ndelegates = 5\nrelays = 2\n\
                    loss = 0.02\n[[workload]]\nkind = \"generate\"\nper_second = 0.3\nwallets = 3\n";
        let scenario = Scenario::parse(text, Path::new("a test")).expect("it is one");
        Self { scenario, folder: tempfile::tempdir().expect("a folder for temporary files"), settles: false }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The same, where blocks settle soon.
    fn settling() -> Self {
        let mut kept = Self::new();
        let set = ["rules.node.rollback_max=20".parse().expect("it is well formed")];
        kept.scenario = Scenario::parse_with(&kept.scenario.to_toml(), Path::new("a test"), &set).expect("it is one");
        Self { settles: true, ..kept }
    }

    fn plan(&self, testnet: &Testnet, seeds: SeedTree) -> Plan {
        let usual = self.scenario.plan(testnet, seeds);
        if !self.settles {
            return usual;
        }
        let (config, rules) = (usual.tree.config().clone(), usual.tree.rules().clone());
        let tree = Arc::new(BlockTree::with_span(config, rules, 10).expect("as the usual one"));
        let (first, tip) = (usual.tree.slots().slot(usual.start.seconds()), tree.genesis().clone());
        self.scenario.plan_on(testnet, tree, tip, first, seeds)
    }

    /// The folder's testnet, from a checkpoint on or by playing everything. Its index is for one at a time.
    fn open(&self, by_checkpoint: bool) -> Result<Open, FolderError> {
        let seeds = SeedTree::new(28);
        let testnet = self.scenario.testnet(seeds);
        let plan = self.plan(&testnet, seeds);
        let session = Session::new(28, &self.scenario, 1, plan.tree.config());
        let (accounts, desk) = (testnet.accounts.clone(), FaultDesk::new(&plan, testnet));
        let (digest, played) = (TraceDigest::default(), Blocks::default());
        let watching: Vec<Box<dyn Observer>> = vec![Box::new(digest.clone()), Box::new(played.clone())];
        let beside = beside(&digest);
        let (folder, by) = (self.folder(), by_checkpoint.then_some(&beside));
        let opened = among_actors(folder.open_with(&session, &plan, &desk, watching, by))?;
        let OpenFolder { log, settling, inputs, resumed, .. } = opened;
        drop(beside);
        Ok(Open { plan, desk, digest, played, resumed, log: Some((log, settling, inputs)), accounts })
    }

    fn folder(&self) -> Folder {
        let folder = Folder::new(self.path());
        if self.settles { folder.settling_at(Depth { rollback: 20, margin: 5 }) } else { folder }
    }

    /// The checkpoints, the newest first.
    fn checkpoints(&self) -> Vec<PathBuf> {
        let number = |path: &PathBuf| path.file_name()?.to_str()?.strip_prefix("checkpoint-")?.parse::<u64>().ok();
        let files = fs::read_dir(self.path()).expect("it is there").map(|entry| entry.expect("an entry").path());
        let mut all: Vec<PathBuf> = files.filter(|path| number(path).is_some()).collect();
        all.sort_by_key(|path| std::cmp::Reverse(number(path)));
        all
    }

    fn log(&self) -> PathBuf {
        self.path().join("log/00000001.log")
    }
}

fn beside(digest: &TraceDigest) -> Beside {
    Beside { digest: digest.clone(), numbers: Box::new(Vec::new), go_on: Box::new(|_| Ok(())) }
}

impl Open {
    fn height(&self) -> Height {
        self.resumed.as_ref().map_or(Height(1), |resumed| resumed.moment.tips().winning().height())
    }

    /// Its instant, the number of blocks that were played on the way there, and the checkpoints that were passed over; `None`
    /// where it has not begun.
    fn seen(&self) -> Option<(SimTime, usize, Vec<String>)> {
        let played = self.played.0.lock().expect("no one panics while holding it").1.len();
        self.resumed.as_ref().map(|resumed| (resumed.moment.now(), played, resumed.told.clone()))
    }

    fn now(&self) -> SimTime {
        self.resumed.as_ref().expect("it has begun").moment.now()
    }

    /// All of it that another process has, where all that is due by an instant has been played: a checkpoint may be younger
    /// than the last record of the log.
    fn all(&mut self, by: SimTime) -> Value {
        let resumed = self.resumed.as_mut().expect("it has begun");
        let inputs = |inputs: Inputs| -> Vec<Entry> {
            let all: Vec<Entry> = inputs.iter().map(|came| Entry::from(&came.expect("it is in the log"))).collect();
            assert_eq!(all.len(), inputs.len());
            all
        };
        let snapshots = resumed
            .snapshots
            .list()
            .map(|info| json!([format!("{info:?}"), inputs(resumed.snapshots.history(info.id))]));
        let snapshots: Vec<Value> = snapshots.collect();
        assert_eq!(resumed.snapshots.inputs().len(), resumed.snapshots.count_inputs());
        assert!(resumed.snapshots.named().is_some(), "the next checkpoint can name them");
        assert_eq!(resumed.snapshots.inputs().in_memory(), resumed.snapshots.inputs().faults().count());
        let observers: Vec<Box<dyn Observer>> = vec![Box::new(self.digest.clone())];
        let mut stage = Stage::at(&resumed.moment, Snapshots::new(&self.plan), observers);
        while among_actors(stage.step(by)).expect("nobody dies") {}
        stage.rest_until(by);
        let moment = stage.inline_moment().expect("it is in this thread");
        let nodes = (0..self.plan.nodes.len() as u32).map(NodeId).map(|node| {
            let pool: Vec<String> = moment.pending(node).iter().map(|one| one.id().to_string()).collect();
            json!([moment.tips().of(node).id().to_string(), pool])
        });
        let nodes: Vec<Value> = nodes.collect();
        // Those that were not applied at the start, too.
        let tip = moment.tips().winning();
        let newest = (tip.height().0.saturating_sub(40).max(1)..=tip.height().0).map(Height);
        let chain = newest.map(|height| {
            let link = tip.ancestor(height).expect("it is below the tip");
            let applied = self.plan.tree.applied(&link);
            json!([ledger(&applied.state), format!("{:?} {:?}", applied.senders, link.notable())])
        });
        let chain: Vec<Value> = chain.collect();
        let faults: Vec<String> = stage.world().faults().map(|status| format!("{status:?}")).collect();
        let seen = json!([
            nodes,
            faults,
            format!("{:?}", moment.peers()),
            chain,
            moment.delivered(),
            snapshots,
            inputs(resumed.snapshots.inputs()),
            format!("{:?}", resumed.pace),
            self.digest.events(),
            self.digest.digest().to_string(),
        ]);
        resumed.moment = moment;
        seen
    }
}

/// All that a state says.
fn ledger(state: &State) -> String {
    // Of a block the id is enough: what is computed of it now and then is not the ledger's.
    let wallets = state.wallets().map(|wallet| {
        let (mut wallet, last) =
            (Wallet::clone(wallet), wallet.delegate.as_ref().and_then(|one| one.last_block.clone()));
        if let Some(delegate) = &mut wallet.delegate {
            Arc::make_mut(delegate).last_block = None;
        }
        (wallet, last.map(|last| last.0.id))
    });
    let wallets: Vec<(Wallet, Option<BlockId>)> = wallets.collect();
    let lists = (
        state.delegates().map(|wallet| wallet.address).collect::<Vec<_>>(),
        state.locks().collect::<Vec<_>>(),
        state.ipfs_hashes().collect::<Vec<_>>(),
        state.businesses().map(|wallet| wallet.address).collect::<Vec<_>>(),
    );
    let numbers = (state.height(), state.timestamp(), state.live_delegates(), state.supply(), state.transactions());
    format!("{wallets:?} {lists:?} {numbers:?} {:?}", state.round())
}

/// Something that a client does now and then. Where blocks settle, no fault leaves a node behind: it would hold them up.
fn something(random: &mut ChaCha8Rng, open: &Open, stage: &Stage, settles: bool) -> Intervention {
    let (desk, snapshots) = (&open.desk, stage.snapshots());
    let kinds = [
        json!({"kind": "crash", "nodes": [1], "until": {"seconds": 4_000}}),
        json!({"kind": "isolate", "nodes": [3]}),
        json!({"kind": "lie-about-tip", "nodes": [4], "signed": true}),
        json!({"kind": "offline", "delegates": ["genesis_2"]}),
        json!({"kind": "spam-pool", "per_second": 0.5}),
        json!({"kind": "low-fee-flood", "per_second": 0.2, "from": {"height": 60}}),
        json!({"kind": "delay", "by_ms": 900, "chance": 0.3}),
        json!({"kind": "clock-skew", "nodes": [2], "offset_ms": 700}),
    ];
    let kinds = if settles { &kinds[5..] } else { &kinds };
    let ids: Vec<SnapshotId> = snapshots.list().map(|info| info.id).collect();
    match random.random_range(0..20) {
        18.. => Intervention::Reorganise(Box::new(ReorgRequest {
            node: NodeId(random.random_range(0..5)),
            depth: random.random_range(1..12),
            transactions: if random.random_bool(0.5) { ReturnedTransactions::All } else { ReturnedTransactions::None },
        })),
        0..3 => Intervention::AddFault(desk.read(kinds.choose(random).expect("some")).expect("it is a fault").into()),
        3..6 => Intervention::EndFault { id: random.random_range(0..6) },
        6..8 => Intervention::TakeSnapshot { name: None },
        8 => Intervention::DeleteSnapshot { id: ids.choose(random).copied().unwrap_or(SnapshotId(1)) },
        10.. => transfers(random, open, stage),
        _ => Intervention::Revert { to: ids.choose(random).copied().unwrap_or(SnapshotId(1)) },
    }
}

/// Transfers of an account, which the pool may know, refuse or take.
fn transfers(random: &mut ChaCha8Rng, open: &Open, stage: &Stage) -> Intervention {
    let node = NodeId(random.random_range(0..open.plan.nodes.len() as u32));
    let account = open.accounts.choose(random).expect("some");
    let state = &open.plan.tree.applied(stage.world().tips().of(node)).state;
    let before = state.wallet(&account.address).map_or(0, |wallet| wallet.nonce.0);
    let transfer = |ahead: u64| {
        let transfer = Transaction::transfer(account.address, Arktoshi::coins(1)).network(23);
        let transfer = transfer.nonce(Nonce(before + 1 + ahead));
        Arc::new(transfer.sign(&account.keys))
    };
    let transactions = (0..random.random_range(1..4)).map(transfer).collect();
    Intervention::Submit { node, transactions }
}

/// Waits for the thread that writes checkpoints, so that no machine has one less.
fn is_written(checkpoints: &Checkpoints) {
    while !checkpoints.is_due(Height(u32::MAX)) {
        std::thread::yield_now();
    }
}

/// Checks that the tree finds each block of each node's chain, wherever the run has come from.
fn every_block_is_found(stage: &Stage) {
    for tip in stage.world().tips().all() {
        for height in (1..=tip.height().0).map(Height) {
            let link = tip.ancestor(height).expect("it is below the tip");
            let found = stage.world().tree().link(&link.id());
            assert!(found.is_some_and(|found| found.is(&link)), "{link:?} of the chain of {tip:?} is not found");
        }
    }
}

/// Goes on with a testnet, writes checkpoints, and ends it anywhere without a word.
fn go_on_until_killed(kept: &Kept, mut open: Open, random: &mut ChaCha8Rng) {
    let (log, settling, inputs) = open.log.take().expect("it is there");
    let writer = FolderWriter::new(log, settling, inputs, Sync::Never, &open.plan, 1);
    let observers: Vec<Box<dyn Observer>> = vec![Box::new(writer.clone()), Box::new(open.digest.clone())];
    let mut stage = Stage::inline(&open.plan, observers);
    stage.open();
    stage.log_in(writer.input_log().expect("a folder has one"));
    let writer = match open.resumed.take() {
        Some(ResumedTestnet { moment, snapshots, known, .. }) => {
            among_actors(stage.begin_at(&moment, snapshots)).expect("nobody dies");
            let writer = writer.after(known);
            writer.complete(moment.tips()).expect("there is room");
            writer
        }
        None => {
            kept.folder().becomes_testnet().expect("it can be written to");
            writer
        }
    };
    every_block_is_found(&stage);
    let (told, tells) = mpsc::channel();
    let tell = move |why: &str| told.send(why.to_owned()).expect("somebody listens");
    let mut checkpoints =
        Checkpoints::new(kept.path(), &open.plan, writer.clone(), beside(&open.digest), 4, tell).expect("a folder");
    let mut journal = writer;
    let most = if kept.settles { 12_000 } else { 4_000 };
    let (mut last, every) = (None, random.random_range(1..12));
    for _ in 0..random.random_range(1..most) {
        let next = stage.world().next_time().expect("a network always goes on");
        among_actors(stage.step(next)).expect("nobody dies");
        if stage.world().next_time().is_some_and(|next| next <= stage.world().now()) {
            continue;
        }
        // Going back often keeps a chain short, and short chains do not settle.
        if random.random_ratio(1, if kept.settles { 1_999 } else { 99 }) {
            let what = something(random, &open, &stage, kept.settles);
            let now = stage.world().now();
            stage.rest_until(now);
            journal.comes_in(now, stage.world().delivered(), stage.world().tips(), &what);
            let is_back = matches!(what, Intervention::Revert { .. });
            among_actors(stage.intervene_at(what, journal.last_place())).expect("nobody dies");
            if is_back {
                let cut = journal.went_back(stage.world().tips());
                stage.forget_settled_above(cut);
                every_block_is_found(&stage);
            }
        }
        if random.random_ratio(1, 300) {
            stage.let_go_of_inputs(random.random_range(0..20));
            stage.forget_moments(Height(random.random_range(0..30)));
        }
        if random.random_ratio(1, 700) {
            let pace = ["manual", "on-demand", "0.5", "7"].choose(random).expect("some");
            journal.paced(pace.parse().expect("it is a pace"));
        }
        if random.random_ratio(1, 40) {
            let world = stage.world();
            let (now, delivered) = (world.now(), world.delivered());
            journal.stands(now, delivered, world.tips().winning(), random.random_bool(0.5));
            if kept.settles
                && let Some(lowest) = journal.settle(stage.world().tips())
            {
                stage.forget_moments(lowest);
            }
        }
        let height = stage.world().tips().winning().height();
        if last.is_none_or(|last: Height| height.0.abs_diff(last.0) >= every) {
            is_written(&checkpoints);
            let now = stage.world().now();
            stage.rest_until(now);
            let moment = among_actors(stage.moment()).expect("nobody dies");
            checkpoints.keep(moment, stage.snapshots());
            last = Some(height);
        }
    }
    checkpoints.end();
    drop(checkpoints);
    assert!(tells.try_recv().is_err(), "every checkpoint could be written");
}

/// Files change now and then, while nobody looks. Returns true if they did.
fn harm(kept: &Kept, random: &mut ChaCha8Rng) -> bool {
    let newest = kept.checkpoints().first().cloned();
    match (random.random_range(0..12), newest) {
        (0, Some(file)) => {
            let mut bytes = fs::read(&file).expect("it is there");
            let at = random.random_range(0..bytes.len());
            bytes[at] ^= random.random_range(1..=255_u8);
            fs::write(&file, bytes).expect("it can be written");
        }
        (1, Some(file)) => {
            let bytes = fs::read(&file).expect("it is there");
            fs::write(&file, &bytes[..random.random_range(0..bytes.len())]).expect("it can be written");
        }
        (2, Some(file)) => fs::remove_file(file).expect("it can be deleted"),
        (3, _) => kept.checkpoints().iter().for_each(|file| fs::remove_file(file).expect("it can be deleted")),
        // All files that are made from the log are gone.
        (7, _) if kept.settles => {
            for part in ["index", "base-1"] {
                let path = kept.path().join(part);
                // Nothing may have settled yet.
                let _there = fs::remove_dir_all(&path).or_else(|_| fs::remove_file(&path));
            }
        }
        // Killed while it was written.
        (4, _) => fs::write(kept.path().join("checkpoint.new"), b"dposckp1 and no more").expect("it can be written"),
        // The machine crashed: the end of the log was not on the disk, and checkpoints may be ahead of it.
        (5 | 6, _) => {
            let bytes = fs::read(kept.log()).expect("it is there");
            let most = if kept.settles || random.random_bool(0.5) { 200 } else { bytes.len() };
            // All of it would be refused.
            let least = bytes.len().min(4_000);
            let left = bytes.len() - random.random_range(0..=most.min(bytes.len() - least));
            fs::write(kept.log(), &bytes[..left]).expect("it can be written");
        }
        _ => return false,
    }
    true
}

/// It would be made again under the hands of whoever has it.
#[test]
fn an_index_that_is_open_is_not_taken_for_a_damaged_one() {
    let kept = Kept::new();
    let first = kept.open(true).unwrap_or_else(|why| panic!("{why}"));
    let why = kept.open(true).err().expect("the first has it").to_string();
    assert!(why.ends_with("is open already"), "{why}");
    drop(first);
    assert!(kept.open(true).is_ok(), "nobody has it any more");
}

/// Killed anywhere, and whatever becomes of the checkpoints: the testnet that goes on from one is that which plays everything.
/// `DPOSLAB_KILLS` says how often.
#[test]
fn a_start_from_a_checkpoint_is_the_start_that_plays_everything() {
    let bases = kills_hold(40, 40, Kept::new);
    assert!(bases.iter().all(|base| base.0 == 0), "nothing settles: {bases:?}");
}

/// The same, where deep blocks have left memory.
#[test]
fn a_start_from_a_checkpoint_is_the_start_that_plays_everything_where_blocks_settle() {
    // In this one, blocks on forks that have died lie above the cut, and blocks are written again after those that stand on them.
    let bases = kills_hold(20, 5, Kept::settling);
    let quick = bases.iter().filter(|base| base.0 > 0).count();
    // Another seed may go back or harm checkpoints more often.
    let is_own = env::var("DPOSLAB_KILLS_SEED").is_err();
    let is_covered = quick * 2 > bases.len() && bases.iter().max() >= Some(&Height(20));
    assert!(is_covered || !is_own, "the starts began with {bases:?}");
}

/// The number of kills that `DPOSLAB_KILLS` asks for, or this one.
pub fn kills_or(kills: u32) -> u32 {
    env::var("DPOSLAB_KILLS").map_or(kills, |text| text.parse().expect("a number"))
}

/// Returns the heights of the bases that the starts began with.
fn kills_hold(kills: u32, seed: u64, begin: impl Fn() -> Kept) -> Vec<Height> {
    let held = catch_unwind(AssertUnwindSafe(|| kills_of(kills_or(kills), seed, begin)));
    held.unwrap_or_else(|ended| match ended.downcast::<SettledError>() {
        // It unwinds without a message, for the host of a run names it.
        Ok(unread) => panic!("{unread}"),
        Err(ended) => resume_unwind(ended),
    })
}

fn kills_of(kills: u32, seed: u64, begin: impl Fn() -> Kept) -> Vec<Height> {
    let mut random =
        ChaCha8Rng::seed_from_u64(env::var("DPOSLAB_KILLS_SEED").map_or(seed, |text| text.parse().expect("a number")));
    let (mut kept, mut saved, mut passed, mut highest) = (begin(), 0, 0, Height(0));
    let mut bases = Vec::new();
    let mut harmed = BTreeSet::new();
    for kill in 0..kills {
        // All of the log is played at each turn.
        if kill % 20 == 0 {
            kept = begin();
            harmed.clear();
        }
        let opened = |by_checkpoint| kept.open(by_checkpoint).unwrap_or_else(|why| panic!("kill {kill}: {why}"));
        // One after the other: a folder is open once.
        let from = opened(true).seen();
        let whole = opened(false).seen();
        if let (Some((from, skipped, told)), Some((whole, all, _))) = (from, whole) {
            passed += told.len();
            let is_harmed = |why: &String| harmed.iter().any(|file| why.contains(&format!("{file} ")));
            assert!(told.iter().all(is_harmed), "kill {kill}: of {told:?} only {harmed:?} were harmed");
            saved += usize::from(skipped < all);
            // Fifty slots more, and all that happens in them.
            let by = from.max(whole) + Duration::from_secs(400);
            let from = opened(true).all(by);
            let whole = opened(false).all(by);
            assert_eq!(from, whole, "kill {kill}");
        }
        let open = opened(true);
        highest = highest.max(open.height());
        bases.extend(open.resumed.as_ref().map(|resumed| resumed.base));
        go_on_until_killed(&kept, open, &mut random);
        // A log that lost its end may lie behind any of them.
        let before = kept.checkpoints();
        if harm(&kept, &mut random) {
            harmed.extend(before.iter().map(|file| file.display().to_string()));
        }
    }
    assert!(saved * 2 > kills as usize, "{saved} of {kills} starts played less than everything");
    assert!(
        (passed > 0 || kills < 40) && highest > Height(10),
        "{passed} checkpoints were passed over, and it came to {highest}"
    );
    bases
}

/// A client sees a block before the log says where the network stood. A change of the pace in between does not lose the block.
#[test]
fn a_change_of_the_pace_loses_no_block_that_a_client_saw() {
    let kept = Kept::new();
    let mut open = kept.open(false).expect("it can be used");
    kept.folder().becomes_testnet().expect("it can be written to");
    let (log, settling, inputs) = open.log.take().expect("it is there");
    let mut writer = FolderWriter::new(log, settling, inputs, Sync::Never, &open.plan, 1);
    let mut stage = Stage::inline(&open.plan, vec![Box::new(writer.clone())]);
    stage.open();
    stage.log_in(writer.input_log().expect("a folder has one"));
    let seen = loop {
        let next = stage.world().next_time().expect("a network always goes on");
        among_actors(stage.step(next)).expect("nobody dies");
        let tip = stage.world().tips().of(NodeId(0));
        if tip.height() > Height(3) {
            break tip.id();
        }
    };
    writer.paced("manual".parse().expect("it is a pace"));
    drop((writer, stage));
    let resumed = kept.open(false).expect("it can be used").resumed.expect("it has begun");
    assert_eq!(resumed.moment.tips().of(NodeId(0)).id(), seen);
}

/// Each of the checkpoints that are kept has the base that it names.
#[test]
fn the_older_checkpoint_has_its_base_too() {
    let kept = Kept::settling();
    let mut random = ChaCha8Rng::seed_from_u64(9);
    let bases = || {
        let names = fs::read_dir(kept.path()).expect("it is there").flatten().map(|entry| entry.path());
        let number = |path: &PathBuf| path.file_name()?.to_str()?.strip_prefix("base-")?.parse::<u64>().ok();
        let mut all: Vec<PathBuf> = names.filter(|path| number(path).is_some()).collect();
        all.sort_by_key(number);
        all
    };
    let mut turns = 0..30;
    while turns.next().is_some() && (bases().len() < 2 || kept.checkpoints().len() < 2) {
        go_on_until_killed(&kept, kept.open(true).expect("it can be used"), &mut random);
    }
    let (bases, checkpoints) = (bases(), kept.checkpoints());
    let ([.., newest_base], [newest, _]) = (&bases[..], &checkpoints[..]) else {
        panic!("two of each: {bases:?}, {checkpoints:?}")
    };
    fs::remove_file(newest_base).expect("it is there");
    fs::remove_file(newest).expect("it is there");
    let seen = || {
        let resumed = kept.open(true).expect("it can be used").resumed.expect("it has begun");
        (resumed.base, resumed.told)
    };
    let (base, told) = seen();
    assert!(base > Height(0) && told.is_empty(), "the older one has none: {told:?}");
    // Damage is told of by name, and the log has all that is in a base.
    for base in &bases {
        let Ok(mut bytes) = fs::read(base) else { continue };
        let at = random.random_range(0..bytes.len());
        bytes[at] ^= random.random_range(1..=255_u8);
        fs::write(base, bytes).expect("it can be written");
    }
    let (base, told) = seen();
    assert!(base == Height(0) && told.len() == 1 && told[0].contains("base-"), "{told:?}");
}

/// A disk that is too full for a checkpoint is told of once, and the next one is written when there is room again.
#[test]
fn a_checkpoint_that_cannot_be_written_holds_up_none_after_it() {
    let kept = Kept::new();
    let mut open = kept.open(true).expect("it can be used");
    kept.folder().becomes_testnet().expect("it can be written to");
    let (log, settling, inputs) = open.log.take().expect("it is there");
    let writer = FolderWriter::new(log, settling, inputs, Sync::Never, &open.plan, 1);
    let observers: Vec<Box<dyn Observer>> = vec![Box::new(writer.clone()), Box::new(open.digest.clone())];
    let mut stage = Stage::inline(&open.plan, observers);
    stage.open();
    let (told, tells) = mpsc::channel();
    let tell = move |why: &str| told.send(why.to_owned()).expect("somebody listens");
    let mut checkpoints =
        Checkpoints::new(kept.path(), &open.plan, writer, beside(&open.digest), 1, tell).expect("a folder");
    // A folder in its place is as good as no room.
    let obstacle = kept.path().join("checkpoint.new");
    fs::create_dir(&obstacle).expect("it can be made");
    let mut keep = |height: u32| {
        while stage.world().tips().winning().height() < Height(height) {
            among_actors(stage.step(SimTime::from_micros(u64::MAX))).expect("nobody dies");
        }
        // The one before is written by now, or is not going to be.
        is_written(&checkpoints);
        checkpoints.keep(among_actors(stage.moment()).expect("nobody dies"), stage.snapshots());
    };
    keep(2);
    keep(3);
    assert!(tells.recv().expect("it is told").contains("no checkpoint can be written"));
    keep(4);
    assert_eq!(kept.checkpoints(), Vec::<PathBuf>::new());
    keep(5);
    fs::remove_dir(&obstacle).expect("it is there");
    keep(6);
    checkpoints.end();
    assert!(tells.try_recv().is_err(), "it is told once");
    assert!(!kept.checkpoints().is_empty(), "the next one is written");
}

/// Wherever a byte is changed, the checkpoint is passed over by name, and the next one is taken.
#[test]
fn a_changed_byte_of_a_checkpoint_is_found() {
    let kept = Kept::new();
    let mut random = ChaCha8Rng::seed_from_u64(5);
    while kept.checkpoints().len() < 2 {
        go_on_until_killed(&kept, kept.open(true).expect("it can be used"), &mut random);
    }
    let all = kept.checkpoints();
    let [newest, _] = &all[..] else { panic!("two are kept: {all:?}") };
    let (whole, mut untouched) = (fs::read(newest).expect("it is there"), kept.open(true).expect("it can be used"));
    let by = untouched.now();
    let expected = untouched.all(by);
    drop(untouched);
    for part in 0..20 {
        let mut bytes = whole.clone();
        let at = part * bytes.len() / 20 + random.random_range(0..bytes.len() / 20);
        bytes[at] ^= random.random_range(1..=255_u8);
        fs::write(newest, &bytes).expect("it can be written");
        let mut open = kept.open(true).expect("it can be used");
        let told = &open.resumed.as_ref().expect("it has begun").told;
        assert!(told.len() == 1 && told[0].contains(&newest.display().to_string()), "byte {at}: {told:?}");
        assert!(open.all(by) == expected, "byte {at}");
    }
}

/// The command, too: what clients see, and the digest of the recording.
#[test]
fn the_command_goes_on_from_a_checkpoint_as_from_the_beginning() {
    let place = tempfile::tempdir().expect("a folder for temporary files");
    let data = |name: &str| place.path().join(name).display().to_string();
    let start = |name: &str| {
        let at = ["--delegates", "5", "--seed", "3", "--pace", "manual", "--checkpoint-every", "5"];
        Up::start(&[&at[..], &["--data-dir", &data(name)]].concat())
    };
    let up = start("one");
    up.advance(30);
    let to = up.ready["accounts"][0]["address"].clone();
    up.post("/lab/faucet", &json!({"recipient": to, "amount": "7"}));
    up.post("/lab/snapshots", &json!({"name": "early"}));
    up.advance(7);
    up.post("/lab/faults", &json!({"kind": "offline", "delegates": ["genesis_2"]}));
    up.advance(20);
    drop(up.interrupt());
    fs::create_dir_all(place.path().join("other/log")).expect("a folder");
    for file in ["network.json", "log/00000001.log"] {
        fs::copy(place.path().join("one").join(file), place.path().join("other").join(file)).expect("it is there");
    }
    let end = |name: &str| -> Value {
        let up = start(name);
        let (status, _) = up.post("/lab/accounts", &json!({"count": 1, "balance": "500000000"}));
        assert!(status < 300);
        up.advance(12);
        up.post("/lab/snapshots/1/revert", &json!({}));
        up.advance(50);
        let lab: Value = serde_json::from_slice(&up.bytes("/lab")).expect("JSON");
        let recording = String::from_utf8(up.bytes("/lab/recording")).expect("text");
        let seen = json!([
            recording,
            up.get("/blocks?limit=100")["data"],
            lab["data"]["nodes"],
            lab["data"]["faults"],
            lab["data"]["snapshots"],
            lab["data"]["time"],
        ]);
        drop(up.interrupt());
        seen
    };
    let files = |name: &str| fs::read_dir(place.path().join(name)).expect("it is there").flatten();
    let count =
        |name: &str| files(name).filter(|file| file.file_name().to_string_lossy().starts_with("checkpoint-")).count();
    assert_eq!((count("one"), count("other")), (2, 0));
    let (one, other) = (end("one"), end("other"));
    assert_eq!(one, other);
    assert!(one[0].as_str().is_some_and(|recording| recording.contains("digest")), "{one}");
}
