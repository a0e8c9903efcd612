//! Blocks that settle leave memory, and nobody can tell: a run is the same run, and whoever asks its tree gets the same answers.

use dposlab::{
    actors::{NodeId, SimTime},
    ledger::{BlockTree, Link, settled_chain::SettledChain},
    protocol::{Arktoshi, BlockId, Height, Nonce, SignedTransaction, Transaction, TransactionId, transaction::Payment},
    report::session::{
        Session,
        folder::{Depth, Folder, FolderWriter, OpenFolder, Sync, index::Index},
    },
    scenario::{FaultDesk, Scenario, Testnet, run::among_actors},
    sim::{
        Intervention, Observer, Outcome, Pace, Plan, SeedTree, Stage, Tips, TraceDigest,
        live::{Journal, Live, Settler},
        snapshots::CameIn,
    },
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

/// Seams of the trees here lie closer than those of a testnet.
const SPAN: u32 = 10;
const DEPTH: Depth = Depth { rollback: 20, margin: 5 };

/// A network of seven that is apart for two rounds, with a node that is down for three, and with all sorts of transactions.
const TEXT: &str = r#"version = 1
description = "apart, down, and busy"
rounds = 40
crypto = "modelled"
[rules]
minimum_network_reach = 1
node.retry_dropped_peers = true
[network]
delegates = 7
[[fault]]
kind = "partition"
groups = [{ from = "genesis_1", to = "genesis_4" }]
from = { round = 6 }
until = { round = 8 }
[[fault]]
kind = "crash"
nodes = ["genesis_7"]
from = { round = 12 }
until = { round = 15 }
[[workload]]
kind = "generate"
per_second = 1
wallets = 5
[workload.mix]
transfer = 4
vote = 1
delegate-registration = 1
"#;

fn scenario() -> Scenario {
    Scenario::parse(TEXT, Path::new("a test")).expect("it is one")
}

/// A plan whose tree has seams close to each other.
fn plan(scenario: &Scenario, seeds: SeedTree) -> (Plan, Testnet) {
    let testnet = scenario.testnet(seeds);
    let usual = scenario.plan(&testnet, seeds);
    let (config, rules) = (usual.tree.config().clone(), usual.tree.rules().clone());
    let tree = Arc::new(BlockTree::with_span(config, rules, SPAN).expect("as the usual one"));
    let first = usual.tree.slots().slot(usual.start.seconds());
    let tip = tree.genesis().clone();
    (scenario.plan_on(&testnet, tree, tip, first, seeds), testnet)
}

/// A testnet in a folder, as `up --data-dir` has it.
struct Kept {
    plan: Plan,
    stage: Stage,
    writer: FolderWriter,
    index: Arc<Index>,
    digest: TraceDigest,
    made_again: Option<String>,
}

impl Kept {
    fn open(folder: &Path, seed: u64) -> Self {
        let mut kept = Self::not_logged(folder, seed);
        kept.stage.log_in(kept.writer.input_log().expect("a folder has one"));
        kept
    }

    /// The same, whose run knows of no log.
    fn not_logged(folder: &Path, seed: u64) -> Self {
        let (scenario, seeds) = (scenario(), SeedTree::new(seed));
        let (plan, testnet) = plan(&scenario, seeds);
        let session = Session::new(seed, &scenario, 1, plan.tree.config());
        let desk = FaultDesk::new(&plan, testnet);
        let digest = TraceDigest::default();
        let watching: Vec<Box<dyn Observer>> = vec![Box::new(digest.clone())];
        let folder = Folder::new(folder).settling_at(DEPTH);
        let opened = among_actors(folder.open(&session, &plan, &desk, watching)).expect("it can be used");
        let OpenFolder { log, settling, inputs, made_again, resumed } = opened;
        let index = settling.index().clone();
        let writer = FolderWriter::new(log, settling, inputs, Sync::Never, &plan, 1);
        let observers: Vec<Box<dyn Observer>> = vec![Box::new(writer.clone()), Box::new(digest.clone())];
        let stage = match resumed {
            Some(resumed) => Stage::at(&resumed.moment, resumed.snapshots, observers),
            None => {
                folder.becomes_testnet().expect("it can be written to");
                let mut stage = Stage::inline(&plan, observers);
                stage.open();
                stage
            }
        };
        Self { plan, stage, writer, index, digest, made_again }
    }

    /// Plays to an instant, letting blocks settle on the way as a live run does.
    fn play(&mut self, end: SimTime) {
        let mut more = true;
        while more {
            for _ in 0..100 {
                more = more && among_actors(self.stage.step(end)).expect("nobody dies");
            }
            let world = self.stage.world();
            self.writer.stands(world.now(), world.delivered(), world.tips().winning(), false);
            if let Some(lowest) = self.writer.settle(self.stage.world().tips()) {
                self.stage.forget_moments(lowest);
                self.stage.let_go_of_inputs(usize::MAX);
            }
        }
        let world = self.stage.world();
        self.writer.stands(world.now(), world.delivered(), world.tips().winning(), true);
        assert!(self.writer.outcome().is_ok());
    }

    fn comes_in(&mut self, what: Intervention) -> Outcome {
        let (now, delivered) = (self.stage.world().now(), self.stage.world().delivered());
        self.writer.comes_in(now, delivered, self.stage.world().tips(), &what);
        let is_back = matches!(what, Intervention::Revert { .. });
        let outcome = among_actors(self.stage.intervene_at(what, self.writer.last_place())).expect("nobody dies");
        if is_back {
            let cut = self.writer.went_back(self.stage.world().tips());
            self.stage.forget_settled_above(cut);
        }
        outcome
    }

    fn tips(&self) -> Vec<Arc<Link>> {
        self.stage.world().tips().all().cloned().collect::<Vec<_>>()
    }
}

/// The same run without a folder.
fn plain(seed: u64, end: SimTime) -> (Plan, Stage, TraceDigest) {
    let (plan, mut stage, digest) = begun(seed);
    while among_actors(stage.step(end)).expect("nobody dies") {}
    (plan, stage, digest)
}

fn begun(seed: u64) -> (Plan, Stage, TraceDigest) {
    let (plan, _) = plan(&scenario(), SeedTree::new(seed));
    let digest = TraceDigest::default();
    let mut stage = Stage::inline(&plan, vec![Box::new(digest.clone())]);
    stage.open();
    (plan, stage, digest)
}

fn end_of(slots: u32) -> SimTime {
    SimTime::from_seconds(dposlab::protocol::Timestamp(slots * 8))
}

/// Everything that can be asked of a tree by height, by id and by transaction is answered alike.
fn answers_alike(tree: &Arc<BlockTree>, tips: &[Arc<Link>], usual: &Arc<BlockTree>, usual_tips: &Tips) {
    assert_eq!(tips.len(), usual_tips.nodes());
    let (mut compared, mut tips_compared) = (BTreeSet::new(), BTreeSet::new());
    for (tip, usual_tip) in tips.iter().zip(usual_tips.all()) {
        assert_eq!(tip.id(), usual_tip.id());
        if !tips_compared.insert(tip.id()) {
            continue;
        }
        assert!(tip.ancestor(tip.height().next()).is_none() && tip.ancestor(Height(0)).is_none());
        for height in (1..=tip.height().0).map(Height) {
            let (link, wanted) = (tip.ancestor(height).unwrap(), usual_tip.ancestor(height).unwrap());
            assert_eq!((link.id(), link.transactions()), (wanted.id(), wanted.transactions()), "at {height}");
            assert_eq!(**link.block(), **wanted.block(), "at {height}");
            assert_eq!(link.notable(), wanted.notable(), "at {height}");
            assert_eq!(link.parent().map(|link| link.id()), wanted.parent().map(|link| link.id()), "at {height}");
            assert!(tip.descends_from(&link) && tip.descends_from(&wanted), "at {height}");
            assert_eq!(tree.link(&link.id()).expect("it is known").height(), height);
            for transaction in &link.block().transactions {
                let (id, below) = (transaction.id(), Height(height.0 - 1));
                assert_eq!(tree.block_of(tip, &id).expect("it is on the chain").id(), link.id());
                let before = tip.ancestor(below).and_then(|before| tree.block_of(&before, &id));
                assert!(before.is_none(), "no chain below {height} has it");
                assert!(tree.holds(tip, transaction), "it is on the chain");
                if height.0 % 7 == 3 {
                    assert!(tree.holds(&link, transaction), "it is on the chain that ends with its block");
                    assert!(!tree.holds(&tip.ancestor(below).expect("there is one"), transaction), "but on none below");
                }
            }
            // Most tips stand on the same blocks, and a state takes long to make.
            let ends_round = usual.schedule().begins(height.next());
            if (height.0 % 7 == 3 || ends_round && height.0 % 3 == 0) && compared.insert(link.id()) {
                assert_eq!(tree.round_after(&link), usual.applied(&wanted).state.round().clone(), "at {height}");
                let (state, wanted) = (tree.applied(&link), usual.applied(&wanted));
                assert!(state.state.wallets().eq(wanted.state.wallets()), "the state at {height}");
            }
        }
        let walked = std::iter::successors(Some(tip.clone()), |link| link.parent()).count();
        assert_eq!(walked, tip.height().0 as usize, "by parents");
        assert!(tree.block_of(tip, &TransactionId([7; 32])).is_none());
    }
    assert!(tree.link(&BlockId::Full([7; 32])).is_none() && tree.link(&BlockId::Numeric(7)).is_none());
}

#[test]
fn a_run_whose_blocks_settle_is_the_same_run_and_goes_on_so() {
    for seed in 1..=4 {
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        let (half, end) = (end_of(150), end_of(290));
        let (usual, usual_stage, usual_digest) = plain(seed, end);
        let mut kept = Kept::open(folder.path(), seed);
        kept.play(half);
        let cut = kept.plan.tree.cut();
        assert!(cut.0 >= 25 && kept.index.top() == cut, "seed {seed}: {cut} settled");
        drop(kept);
        let mut kept = Kept::open(folder.path(), seed);
        assert_eq!(kept.made_again, None, "seed {seed}");
        assert_eq!((kept.plan.tree.cut(), kept.index.top()), (cut, cut), "seed {seed}");
        kept.play(end);
        assert_eq!(kept.digest.digest(), usual_digest.digest(), "seed {seed}");
        assert!(kept.plan.tree.cut().0 > cut.0 + 50, "seed {seed}");
        answers_alike(&kept.plan.tree, &kept.tips(), &usual.tree, usual_stage.world().tips());
    }
}

/// Whoever still looks at a chain that ends below the cut, also on a fork that everybody has left, is answered as ever.
#[test]
fn a_tip_that_somebody_holds_is_answered_for_though_all_below_has_settled() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let mut kept = Kept::open(folder.path(), 2);
    let (usual, mut usual_stage, _) = begun(2);
    let (mut held, mut usual_held): (Vec<Arc<Link>>, Vec<Arc<Link>>) = (Vec::new(), Vec::new());
    for slots in (5..=290).step_by(5) {
        kept.play(end_of(slots));
        held.extend(kept.tips());
        while among_actors(usual_stage.step(end_of(slots))).expect("nobody dies") {}
        usual_held.extend(usual_stage.world().tips().all().cloned());
    }
    let (tree, tip) = (&kept.plan.tree, kept.tips()[0].clone());
    let below = held.iter().filter(|held| held.height() <= tree.cut());
    let left = below.clone().filter(|held| !tip.descends_from(held)).count();
    assert!(below.count() > 100 && left > 0, "{left} forks that were left");
    let of_all = usual_held.iter().flat_map(|tip| tip.block().transactions.iter().map(|one| one.id()));
    let all: BTreeSet<TransactionId> = of_all.collect();
    assert!(all.len() > 20);
    let all: Vec<TransactionId> = all.into_iter().step_by(4).collect();
    // Each instant has seven tips; all of them come in turn.
    for (held, usual_held) in held.iter().zip(&usual_held).step_by(5) {
        assert_eq!(held.id(), usual_held.id());
        for id in &all {
            let (found, wanted) = (tree.block_of(held, id), usual.tree.block_of(usual_held, id));
            assert_eq!(found.map(|link| link.id()), wanted.map(|link| link.id()), "{id} below {held:?}");
        }
        for height in (1..=held.height().0).step_by(9).map(Height) {
            let (link, wanted) = (held.ancestor(height), usual_held.ancestor(height));
            assert_eq!(link.map(|link| link.id()), wanted.map(|link| link.id()), "{height} below {held:?}");
        }
    }
}

/// A run goes back below a block that has settled, and a reader holds the chain from before: the tree finds this block, and the next one,
/// should it come again, stands on it.
#[test]
fn a_block_that_has_settled_no_more_is_found_and_built_on() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let mut kept = Kept::open(folder.path(), 2);
    let mut chain: BTreeMap<Height, Arc<Link>> = BTreeMap::new();
    for slots in (5..=150).step_by(5) {
        kept.play(end_of(slots));
        let (tip, cut) = (kept.tips()[0].clone(), kept.plan.tree.cut());
        let in_memory = (cut.0 + 1..=tip.height().0).map(Height);
        chain.extend(in_memory.map(|height| (height, tip.ancestor(height).expect("it is below the tip"))));
    }
    let (tree, cut) = (&kept.plan.tree, kept.plan.tree.cut());
    let (top, next) = (&chain[&cut], &chain[&cut.next()]);
    assert!(next.lowest_in_memory() == cut.next() && next.parent().is_some_and(|parent| parent.is(top)));
    let below = Height(cut.0 - SPAN);
    let settled: Arc<dyn SettledChain> = kept.index.cut(below).expect("it can be written");
    // One node stands lower than the others.
    tree.unsettle(below, &settled, [&chain[&below.next()], top].into_iter());
    let again = tree.extend(top, next.block()).expect("it followed before");
    assert!(again.is(next) && again.lowest_in_memory() == below.next());
    for height in (1..=again.height().0).map(Height) {
        let link = again.ancestor(height).expect("it is below");
        let found = tree.link(&link.id()).expect("it is known");
        assert!(found.is(&link), "at {height}");
        for transaction in &link.block().transactions {
            assert!(tree.block_of(&again, &transaction.id()).is_some_and(|holder| holder.is(&link)), "at {height}");
        }
    }
}

#[test]
fn a_fork_that_ends_at_the_height_of_the_cut_is_answered_for() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let mut kept = Kept::open(folder.path(), 2);
    let (mut held, mut asked): (Vec<Arc<Link>>, u32) = (Vec::new(), 0);
    for slots in 1..=150 {
        kept.play(end_of(slots));
        held.extend(kept.tips());
        held.sort_by_key(|tip| (tip.height(), tip.id()));
        held.dedup_by_key(|tip| tip.id());
        let (tree, tip) = (&kept.plan.tree, kept.tips()[0].clone());
        for fork in held.iter().filter(|held| held.height() == tree.cut() && !tip.descends_from(held)) {
            let mut at = Some(fork.clone());
            while let Some(link) = at.filter(|link| !tip.descends_from(link)) {
                for transaction in &link.block().transactions {
                    let found = tree.block_of(fork, &transaction.id()).expect("it is on the fork");
                    assert_eq!(found.id(), link.id());
                    asked += 1;
                }
                at = link.parent();
            }
        }
    }
    assert!(asked > 0);
}

#[test]
fn while_a_node_is_down_nothing_settles_that_it_may_ask_for() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let mut kept = Kept::open(folder.path(), 2);
    let mut furthest = 0;
    for slots in (10..=290).step_by(5) {
        kept.play(end_of(slots));
        let down = kept.stage.world().tips().of(NodeId(6)).height();
        let cut = kept.plan.tree.cut();
        assert!(cut.0 == 0 || cut.0 + DEPTH.rollback + DEPTH.margin <= down.0, "{cut} settled, it is at {down}");
        furthest = furthest.max(kept.stage.world().tips().winning().height().0.saturating_sub(down.0));
    }
    assert!(furthest > 10, "it was {furthest} blocks behind");
    assert!(kept.stage.world().tips().is_converged());
    assert_eq!(kept.stage.world().tips().of(NodeId(6)).id(), kept.stage.world().tips().winning().id());
}

/// A later snapshot stands on blocks that had settled. Once the run has gone back below these, its moment cannot be read any more,
/// and is made again.
#[test]
fn a_run_goes_forth_again_after_it_went_back_below_what_had_settled() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let mut kept = Kept::open(folder.path(), 3);
    let snapshot = |kept: &mut Kept| match kept.comes_in(Intervention::TakeSnapshot { name: None }) {
        Outcome::Snapshot(Some(info)) => info,
        other => panic!("{other:?}"),
    };
    let chain = |kept: &Kept| {
        let tip = kept.tips()[0].clone();
        (1..=tip.height().0).map(|height| tip.ancestor(Height(height)).expect("it is below").id()).collect::<Vec<_>>()
    };
    kept.play(end_of(40));
    let early = snapshot(&mut kept);
    kept.play(end_of(200));
    let (late, expected) = (snapshot(&mut kept), chain(&kept));
    let cut = kept.plan.tree.cut();
    assert!(cut > early.height && kept.stage.snapshots().moment(late.id).is_some(), "{cut} settled");
    kept.comes_in(Intervention::Revert { to: early.id });
    assert!(kept.plan.tree.cut() < cut && kept.stage.snapshots().moment(late.id).is_none());
    kept.play(end_of(120));
    kept.comes_in(Intervention::Revert { to: late.id });
    assert_eq!(chain(&kept), expected);
    kept.play(end_of(290));
    let (_, usual, _) = plain(3, end_of(290));
    let ids = |tips: &[Arc<Link>]| tips.iter().map(|tip| tip.id()).collect::<Vec<_>>();
    assert_eq!(ids(&kept.tips()), ids(&usual.world().tips().all().cloned().collect::<Vec<_>>()));
}

/// Snapshots whose moments were let go of are made again, though what they stand on has settled meanwhile.
#[test]
fn a_run_goes_back_below_what_has_settled() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let mut kept = Kept::open(folder.path(), 3);
    kept.play(end_of(40));
    let taken = kept.comes_in(Intervention::TakeSnapshot { name: None });
    let Outcome::Snapshot(Some(info)) = taken else { panic!("{taken:?}") };
    kept.play(end_of(200));
    let cut = kept.plan.tree.cut();
    assert!(cut > info.height, "{cut} settled, the snapshot is at {}", info.height);
    assert!(kept.stage.snapshots().moment(info.id).is_none(), "its moment is not kept");
    let settled: Arc<dyn SettledChain> = kept.plan.tree.settled().expect("blocks have settled");
    kept.comes_in(Intervention::Revert { to: info.id });
    assert_eq!(kept.stage.world().tips().winning().id(), info.tip);
    assert!(kept.plan.tree.cut() < info.height);
    assert!(settled.top() < info.height, "who had it before learns no more than what is shared");
    kept.play(end_of(290));
    let again = kept.plan.tree.cut();
    assert!(again > cut, "{again}");
    let (usual, usual_stage, _) = plain(3, end_of(290));
    answers_alike(&kept.plan.tree, &kept.tips(), &usual.tree, usual_stage.world().tips());
    let tips: Vec<_> = kept.tips().iter().map(|tip| tip.id()).collect();
    drop((kept, settled));
    let kept = Kept::open(folder.path(), 3);
    assert_eq!(kept.tips().iter().map(|tip| tip.id()).collect::<Vec<_>>(), tips);
    answers_alike(&kept.plan.tree, &kept.tips(), &usual.tree, usual_stage.world().tips());
}

/// Rows of the chain that was left are in the index still, at the same heights and for the same transactions.
#[test]
fn another_chain_settles_over_one_that_the_run_has_left() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let mut kept = Kept::open(folder.path(), 3);
    let payer = plan(&scenario(), SeedTree::new(3)).1.accounts[9].clone();
    let payment = Transaction::transfer(payer.address, Arktoshi::coins(1)).nonce(Nonce(1)).sign(&payer.keys);
    let pay = || Intervention::Submit { node: NodeId(0), transactions: [Arc::new(payment.clone())].into() };
    kept.play(end_of(40));
    let Outcome::Snapshot(Some(info)) = kept.comes_in(Intervention::TakeSnapshot { name: None }) else {
        panic!("a snapshot is taken")
    };
    kept.play(end_of(200));
    let (tip, cut) = (kept.tips()[0].clone(), kept.plan.tree.cut());
    let left = |height: u32| tip.ancestor(Height(height)).expect("it is below the tip").id();
    let left: Vec<BlockId> = (info.height.0 + 2..=cut.0).map(left).collect();
    assert!(left.len() > 20, "{} blocks that will be left have settled", left.len());
    // Who holds a tip holds the index open.
    drop(tip);
    kept.comes_in(Intervention::Revert { to: info.id });
    kept.comes_in(pay());
    kept.play(end_of(290));
    assert!(kept.plan.tree.cut() >= cut, "the other chain has settled");
    let (usual, mut usual_stage, _) = begun(3);
    while among_actors(usual_stage.step(end_of(40))).expect("nobody dies") {}
    let taken = among_actors(usual_stage.intervene(pay())).expect("nobody dies");
    assert!(matches!(&taken, Outcome::Submitted(taken) if taken.accept.len() == 1), "{taken:?}");
    while among_actors(usual_stage.step(end_of(290))).expect("nobody dies") {}
    for is_read_again in [false, true] {
        if is_read_again {
            drop(kept);
            kept = Kept::open(folder.path(), 3);
        }
        answers_alike(&kept.plan.tree, &kept.tips(), &usual.tree, usual_stage.world().tips());
        assert!(left.iter().all(|id| kept.plan.tree.link(id).is_none()), "of the chain that was left, nothing");
    }
}

/// Transactions of clients leave memory when blocks settle, and are read from the log as they were, on every way back.
#[test]
fn a_live_run_reads_again_what_clients_handed_in() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let Kept { plan: its, stage, writer, .. } = Kept::not_logged(folder.path(), 3);
    let payer = plan(&scenario(), SeedTree::new(3)).1.accounts[9].clone();
    let (live, handle) = Live::new(stage, its.tree.slots(), Pace::Manual);
    let live = live.journalled(Some(Box::new(writer.clone()))).settled_by(Some(Box::new(writer)));
    let pay = async |nonce: u64| {
        let payments = (1..=2).map(|amount| Payment { amount: Arktoshi::coins(amount), recipient: payer.address });
        // Of a type that is in force from height 2 on: it is read wrongly by the milestone of genesis.
        let payment = Transaction::multi_payment(payments.collect()).nonce(Nonce(nonce)).sign(&payer.keys);
        let payment = Arc::new(payment);
        let taken = handle.submit(NodeId(0), [payment.clone()].into_iter().collect()).await.expect("it goes on");
        assert_eq!(taken.accept, [payment.id()], "{taken:?}");
        handle.advance(2).await.expect("it goes on");
        payment
    };
    let come_in = async || {
        let inputs = handle.look(|stage| stage.snapshots().inputs()).await.expect("it goes on");
        let read: Result<Vec<CameIn>, _> = inputs.iter().collect();
        let mut all = Vec::new();
        for came in read.expect("they are in the log") {
            let Intervention::Submit { transactions, .. } = came.what else { panic!("{came:?}") };
            all.extend(transactions.iter().map(|one| (one.as_kept().1, one.as_kept().2)));
        }
        (inputs.in_memory(), all)
    };
    let kept = |sent: &[Arc<SignedTransaction>]| -> Vec<(TransactionId, u8)> {
        sent.iter().map(|one| (one.as_kept().1, one.as_kept().2)).collect()
    };
    let drive = async {
        handle.advance(10).await.expect("it goes on");
        let mut sent = vec![pay(1).await, pay(2).await, pay(3).await];
        let taken = handle.intervene(Intervention::TakeSnapshot { name: None }).await.expect("it goes on");
        let Outcome::Snapshot(Some(info)) = taken else { panic!("{taken:?}") };
        let other = pay(4).await;
        handle.advance(270).await.expect("it goes on");
        assert!(its.tree.cut() > info.height, "{} settled, the snapshot is at {}", its.tree.cut(), info.height);
        assert_eq!(come_in().await, (0, kept(&[&sent[..], &[other]].concat())));
        let taken = handle.intervene(Intervention::TakeSnapshot { name: None }).await.expect("it goes on");
        let Outcome::Snapshot(Some(late)) = taken else { panic!("{taken:?}") };
        let chain = async || {
            let walk = |stage: &Stage| {
                let tip = stage.world().tips().winning();
                std::iter::successors(Some(tip.clone()), |link| link.parent()).map(|link| link.id()).collect::<Vec<_>>()
            };
            handle.look(walk).await.expect("it goes on")
        };
        let expected = chain().await;
        handle.intervene(Intervention::Revert { to: info.id }).await.expect("it goes on");
        assert_eq!(come_in().await, (0, kept(&sent)), "of the branch that was left, nothing");
        let tip = handle.look(|stage| stage.world().tips().winning().id()).await.expect("it goes on");
        assert_eq!(tip, info.tip);
        sent.push(pay(4).await);
        assert_eq!(come_in().await, (1, kept(&sent)));
        handle.advance(270).await.expect("it goes on");
        assert_eq!(come_in().await, (0, kept(&sent)));
        // What that one stands on had settled, and settled otherwise since.
        handle.intervene(Intervention::Revert { to: late.id }).await.expect("it goes on");
        assert_eq!(chain().await, expected);
        handle.stop();
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime without IO");
    let (ended, ()) = runtime.block_on(async { tokio::join!(live.run(), drive) });
    ended.expect("nobody dies");
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("it is there") {
        let path = entry.expect("it can be read").path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push(path),
        }
    }
    found.sort();
    found
}

fn copy(from: &Path, to: &Path) {
    for file in files(from) {
        let place = to.join(file.strip_prefix(from).expect("it is in it"));
        fs::create_dir_all(place.parent().expect("it has one")).expect("it can be made");
        fs::copy(file, place).expect("it can be written");
    }
}

/// Whatever becomes of the index, the log tells it again.
#[test]
#[ignore = "long: CI runs it"]
fn an_index_that_is_gone_or_damaged_or_too_far_is_made_again() {
    let end = end_of(150);
    let (_usual, usual_stage, usual_digest) = plain(1, end);
    let whole = tempfile::tempdir().expect("a folder for temporary files");
    let mut kept = Kept::open(whole.path(), 1);
    kept.play(end);
    kept.index.sync().expect("it can be written");
    let cut = kept.plan.tree.cut();
    drop(kept);
    let opens = |what: &str, damage: &dyn Fn(&Path)| {
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        copy(whole.path(), folder.path());
        damage(&folder.path().join("index"));
        let kept = Kept::open(folder.path(), 1);
        assert_eq!(kept.digest.digest(), usual_digest.digest(), "{what}");
        assert_eq!((kept.plan.tree.cut(), kept.index.top()), (cut, cut), "{what}");
        let (tip, wanted) = (kept.tips()[0].clone(), usual_stage.world().tips().of(NodeId(0)).clone());
        for height in (1..=tip.height().0).map(Height) {
            let (link, wanted) = (tip.ancestor(height).unwrap(), wanted.ancestor(height).unwrap());
            assert_eq!((link.id(), link.notable()), (wanted.id(), wanted.notable()), "{what}, {height}");
            assert_eq!(kept.plan.tree.link(&link.id()).expect("it is known").height(), height, "{what}");
            for transaction in &link.block().transactions {
                let found = kept.plan.tree.block_of(&tip, &transaction.id()).expect("it is on the chain");
                assert_eq!(found.height(), height, "{what}");
            }
        }
        kept.made_again
    };
    assert_eq!(opens("nothing", &|_| {}), None);
    assert_eq!(opens("gone", &|index| fs::remove_dir_all(index).expect("it is there")), None);
    assert!(opens("marked", &|index| fs::write(index.join("blocks.damaged"), "x").expect("room")).is_some());
    let mut found = 0;
    let all = files(&whole.path().join("index"));
    for (number, file) in all.iter().enumerate() {
        let inside = file.strip_prefix(whole.path().join("index")).expect("it is in it");
        let bytes = fs::read(file).expect("it can be read");
        // Long files of zeros are room that nothing was written to yet.
        let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        for (part, of) in [(0, 4), (1, 3), (used.saturating_sub(1), used)] {
            let at = (used * part).checked_div(of).unwrap_or(0).min(used.saturating_sub(1));
            let what = format!("a byte of {} at {at} of {used}", inside.display());
            let made_again = opens(&what, &|index| {
                let mut bytes = bytes.clone();
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 0x55;
                }
                fs::write(index.join(inside), bytes).expect("it can be written");
            });
            found += usize::from(made_again.is_some());
        }
        let made_again = opens(&format!("{} cut off", inside.display()), &|index| {
            fs::write(index.join(inside), &bytes[..used / 2]).expect("it can be written");
        });
        found += usize::from(made_again.is_some());
        let made_again = opens(&format!("{} gone", inside.display()), &|index| {
            fs::remove_file(index.join(inside)).expect("it is there");
        });
        found += usize::from(made_again.is_some());
        println!("{number} {}: {found} so far", inside.display());
    }
    assert!(found > all.len(), "{found} found damaged of {} files", all.len());
}

/// Rows of another version may mean something else, whichever it is.
#[test]
fn an_index_of_another_version_is_made_again() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let mut kept = Kept::open(folder.path(), 1);
    kept.play(end_of(150));
    let cut = kept.plan.tree.cut();
    assert!(cut > Height::GENESIS);
    drop(kept);
    let written = |change: Option<u32>| {
        let database = fjall::Database::builder(folder.path().join("index/blocks")).open().expect("it is there");
        let meta = database.keyspace("meta", fjall::KeyspaceCreateOptions::default).expect("it is there");
        change.iter().for_each(|version| meta.insert("version", version.to_be_bytes()).expect("there is room"));
        let bytes = meta.get("version").expect("it can be read").expect("it is there");
        u32::from_be_bytes((*bytes).try_into().expect("four bytes"))
    };
    let own = written(None);
    for version in [own - 1, own + 1] {
        assert_eq!(written(Some(version)), version);
        let kept = Kept::open(folder.path(), 1);
        let why = kept.made_again.as_deref().expect("it is made again");
        assert!(why.contains("another version"), "{why}");
        assert_eq!((kept.index.top(), kept.plan.tree.cut()), (cut, cut));
        drop(kept);
        assert_eq!(written(None), own);
    }
    assert_eq!(Kept::open(folder.path(), 1).made_again, None);
}

/// The machine lost power: the end of the log is gone, and the index was quicker.
#[test]
fn an_index_ahead_of_its_log_is_made_again() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let mut kept = Kept::open(folder.path(), 1);
    kept.play(end_of(150));
    let cut = kept.plan.tree.cut();
    drop(kept);
    let log = folder.path().join("log/00000001.log");
    let length = fs::metadata(&log).expect("it is there").len();
    let file = fs::OpenOptions::new().write(true).open(&log).expect("it can be written");
    // Records of half of the run.
    file.set_len(length / 2).expect("it can be cut");
    let mut kept = Kept::open(folder.path(), 1);
    assert!(kept.plan.tree.cut() < cut && kept.index.top() == kept.plan.tree.cut());
    kept.play(end_of(150));
    let (usual, usual_stage, usual_digest) = plain(1, end_of(150));
    assert_eq!(kept.digest.digest(), usual_digest.digest());
    answers_alike(&kept.plan.tree, &kept.tips(), &usual.tree, usual_stage.world().tips());
}

/// An index whose record is gone names the file and ends the run; one that settles too little is asked for no block.
#[test]
fn a_log_that_cannot_be_read_is_named() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let mut kept = Kept::open(folder.path(), 1);
    kept.play(end_of(150));
    let log = folder.path().join("log/00000001.log");
    fs::write(&log, b"dposlog1").expect("it can be written");
    let why = kept.index.link(Height(5)).expect_err("its record is gone").to_string();
    assert!(why.contains("00000001.log"), "{why}");
    assert!(kept.writer.is_broken(), "the run ends");
    let why = kept.writer.outcome().expect_err("somebody met it").to_string();
    assert!(why.contains("00000001.log"), "{why}");
}
