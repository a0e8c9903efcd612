//! The time that nodes take to validate, forge and serve blocks.
//!
//! Each node has cores and one queue in front of them. The work that came first begins first, on the core that is free first. A node
//! validates a block once: it hears the later copies when the first one is validated, or at once after that.

use crate::{
    actors::{Message, NodeId, SimTime},
    ledger::{
        RoundSchedule,
        codec::{LoadError, Loader, Save, Saver},
    },
    protocol::{Block, BlockId, SignedTransaction},
    sim::network::{ByClass, PerClass},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{collections::VecDeque, sync::Arc, time::Duration};

/// The processor of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table of a processor")]
pub struct Processor {
    /// The number of blocks that a node works on at the same time.
    #[serde(default = "one")]
    pub cores: u32,
    /// The time to validate a block of another node. The node acts on the block after it.
    #[serde(default)]
    pub validate: WorkTime,
    /// The time to forge a block. The delegate's own node gets the block after it.
    #[serde(default)]
    pub forge: WorkTime,
    /// The time for each block of an answer to a request for blocks. The answer leaves after it.
    #[serde(default)]
    pub serve: WorkTime,
}

fn one() -> u32 {
    1
}

/// The time that one core takes for a block: the sum of the parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WorkTime {
    /// Microseconds for each block.
    pub block_us: u32,
    /// Microseconds for each transaction of the block.
    pub transaction_us: u32,
    /// Microseconds for each signature: the block's own, and all those of its transactions.
    pub signature_us: u32,
    /// Nanoseconds for each byte of the block.
    pub byte_ns: u32,
    /// Microseconds more for a block that ends a round: the maintenance of BitShares and Steem, the election of others.
    pub round_end_us: u32,
}

impl WorkTime {
    fn of(self, block: &Block, size: u64, ends_round: bool) -> Duration {
        let transactions = block.transactions.len() as u64;
        let signatures = if self.signature_us == 0 { 0 } else { signatures(block) };
        let parts = [
            u64::from(self.block_us),
            u64::from(self.transaction_us) * transactions,
            u64::from(self.signature_us) * signatures,
            u64::from(self.round_end_us) * u64::from(ends_round),
        ];
        Duration::from_micros(parts.iter().sum()) + Duration::from_nanos(u64::from(self.byte_ns) * size)
    }
}

/// The signatures of a block and of its transactions.
fn signatures(block: &Block) -> u64 {
    let of = |transaction: &SignedTransaction| {
        let content = transaction.transaction();
        let own = usize::from(content.signature.is_some()) + usize::from(content.second_signature.is_some());
        (own + content.signatures.len()) as u64
    };
    1 + block.transactions.iter().map(|transaction| of(transaction)).sum::<u64>()
}

impl Processor {
    /// Returns true if no block takes time.
    pub fn is_idle(&self) -> bool {
        [self.validate, self.forge, self.serve].iter().all(|work| *work == WorkTime::default())
    }
}

/// The processors of all nodes, or of those in each class.
pub type ProcessorPlan = ByClass<Processor>;

impl PerClass for Processor {
    const FORMS: &'static str = "a processor, or a list with one for each class";
}

impl ProcessorPlan {
    /// Returns true if no block takes time.
    pub fn is_idle(&self) -> bool {
        self.named().iter().all(Processor::is_idle)
    }
}

/// The cores of one node, each with the time until which it is busy.
#[derive(Clone, Debug)]
pub struct Cores(Vec<SimTime>);

impl Cores {
    /// `count` idle cores.
    pub fn new(count: u32) -> Self {
        Self(vec![SimTime::default(); count as usize])
    }

    /// Adds work that takes one core the time `takes`. Returns the time at which it is done.
    pub fn work(&mut self, now: SimTime, takes: Duration) -> SimTime {
        let Some(core) = self.0.iter_mut().min() else { return now + takes };
        *core = now.max(*core) + takes;
        *core
    }
}

/// The processors of all nodes.
#[derive(Clone, Debug)]
pub(super) struct Processors {
    plan: ProcessorPlan,
    /// The class of each node. Empty if there are none.
    classes: Vec<u16>,
    schedule: RoundSchedule,
    /// The cores and the recent blocks by node.
    all: Vec<(Cores, RecentBlocks)>,
}

/// The last blocks that a node has worked on, each with the time at which its work is done.
type RecentBlocks = VecDeque<(BlockId, SimTime)>;

/// The largest number of recent blocks. Copies of a block come within seconds of the first one.
const RECENT: usize = 256;

impl Processors {
    /// The processors of `nodes` nodes, or `None` if no block takes time.
    pub(super) fn new(
        nodes: usize,
        plan: Option<&ProcessorPlan>,
        classes: &[u16],
        schedule: &RoundSchedule,
    ) -> Option<Self> {
        let plan = plan.filter(|plan| !plan.is_idle())?.clone();
        let one = |node| (Cores::new(plan.of(classes.get(node)).cores), RecentBlocks::new());
        Some(Self { all: (0..nodes).map(one).collect(), classes: classes.to_vec(), schedule: schedule.clone(), plan })
    }

    fn ends_round(&self, block: &Block) -> bool {
        self.schedule.begins(block.header.height.next())
    }

    /// The processor of a node.
    fn of(&self, node: NodeId) -> &Processor {
        self.plan.of(self.classes.get(node.0 as usize))
    }

    /// Takes a message that reaches a node now. Returns the time at which its blocks are validated. `size` gives the bytes of a block.
    pub(super) fn validate(
        &mut self,
        now: SimTime,
        node: NodeId,
        message: &Message,
        size: impl Fn(&Block) -> u64,
    ) -> SimTime {
        let blocks = match message {
            Message::Block(block) | Message::Body { block, .. } => std::slice::from_ref(block),
            Message::Blocks { blocks, .. } => blocks,
            _ => return now,
        };
        let work = self.of(node).validate;
        let validated = |block| {
            let takes = work.of(block, size(block), self.ends_round(block));
            self.work(now, node, block, takes)
        };
        blocks.iter().map(|block: &Arc<Block>| &**block).map(validated).max().unwrap_or(now)
    }

    /// Takes a block that a node begins to forge now. Returns the time at which the block is done.
    pub(super) fn forge(&mut self, now: SimTime, node: NodeId, block: &Block, size: u64) -> SimTime {
        let done = self.work(now, node, block, self.of(node).forge.of(block, size, self.ends_round(block)));
        // A node does not validate its own block when a peer sends it.
        let recent = &mut self.all[node.0 as usize].1;
        if recent.iter().all(|(id, _)| *id != block.id) {
            remember(recent, block.id, done);
        }
        done
    }

    /// Takes an answer that a node begins to make now. Returns the time at which it can leave. `size` gives the bytes of a block.
    pub(super) fn serve(
        &mut self,
        now: SimTime,
        node: NodeId,
        message: &Message,
        size: impl Fn(&Block) -> u64,
    ) -> SimTime {
        let blocks = match message {
            Message::Body { block, .. } => std::slice::from_ref(block),
            Message::Blocks { blocks, .. } => blocks,
            _ => return now,
        };
        let takes: Duration =
            blocks.iter().map(|block| self.of(node).serve.of(block, size(block), self.ends_round(block))).sum();
        match takes.is_zero() {
            true => now,
            false => self.all[node.0 as usize].0.work(now, takes),
        }
    }

    fn work(&mut self, now: SimTime, node: NodeId, block: &Block, takes: Duration) -> SimTime {
        if takes.is_zero() {
            return now;
        }
        let (cores, recent) = &mut self.all[node.0 as usize];
        if let Some((_, done)) = recent.iter().rev().find(|(id, _)| *id == block.id) {
            return now.max(*done);
        }
        let done = cores.work(now, takes);
        remember(recent, block.id, done);
        done
    }

    /// Loses the work of a node that goes down.
    pub(super) fn stop(&mut self, node: NodeId) {
        self.all[node.0 as usize] = (Cores::new(self.of(node).cores), RecentBlocks::new());
    }

    /// Appends what changes while a run goes on.
    pub(super) fn save(&self, out: &mut Saver) {
        let Self { plan: _, classes: _, schedule: _, all } = self;
        let all: Vec<_> = all.iter().map(|(Cores(cores), recent)| (cores.clone(), recent.clone())).collect();
        all.save(out);
    }

    /// Continues from the saved values of processors that began like these.
    pub(super) fn go_on(&mut self, from: &mut Loader) -> Result<(), LoadError> {
        let all: Vec<(Vec<SimTime>, RecentBlocks)> = Save::load(from)?;
        if all.len() != self.all.len() {
            return Err(from.wrong("number of processors", all.len()));
        }
        self.all = all.into_iter().map(|(cores, recent)| (Cores(cores), recent)).collect();
        Ok(())
    }
}

fn remember(recent: &mut RecentBlocks, block: BlockId, done: SimTime) {
    recent.push_back((block, done));
    if recent.len() > RECENT {
        recent.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        actors::message::Inquiry,
        protocol::{
            Arktoshi, BlockDraft, Height, KeyPair, Milestones, Nonce, Timestamp, Transaction, crypto::CryptoMode,
        },
        sim::SeedTree,
    };
    use proptest::prelude::*;
    use rand::Rng;
    use std::sync::Arc;

    const TAKES: Duration = Duration::from_millis(50);
    const BATCHES: usize = 40;
    /// Pieces of work in a batch.
    const PIECES: usize = 60_000;

    /// The mean wait of work that comes at random instants (a Poisson process) at one core, in units of [`TAKES`], with half of its
    /// confidence interval. A core whose pieces take [`TAKES`] is busy for the share `load` of the time. Each piece takes `takes`. The
    /// interval comes from the means of batches, and holds at 99 % for three loads together.
    fn wait(load: f64, takes: Duration) -> (f64, f64) {
        let (mut random, mut core, mut now) = (SeedTree::new(1).stream("work"), Cores::new(1), SimTime::from_micros(0));
        let mut batch = || {
            let mut waited = Duration::ZERO;
            for _ in 0..PIECES {
                let gap = -(1.0 - random.random::<f64>()).ln() / load;
                now = now + TAKES.mul_f64(gap);
                waited += core.work(now, takes).since(now) - takes;
            }
            waited.as_secs_f64() / PIECES as f64 / TAKES.as_secs_f64()
        };
        let means: Vec<f64> = (0..BATCHES).map(|_| batch()).collect();
        let mean = means.iter().sum::<f64>() / BATCHES as f64;
        let square = means.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / (BATCHES - 1) as f64;
        // Student's t with 39 degrees of freedom, two-sided, at a third of 1 %.
        (mean, 3.13 * (square / BATCHES as f64).sqrt())
    }

    /// The formula of Pollaczek and Khinchine: if all work takes the same time, the mean wait is load / (2 (1 - load)) of it (M/D/1).
    #[test]
    fn one_core_makes_work_wait_as_pollaczek_and_khinchine_say() {
        for load in [0.3_f64, 0.5, 0.8] {
            let wanted = load / (2.0 * (1.0 - load));
            let (mean, off) = wait(load, TAKES);
            assert!((mean - wanted).abs() < off, "{load}: {mean} ± {off}, {wanted} is expected");
            assert!(off < 0.024 * wanted, "{load}: {mean} ± {off} would not tell a wait that is 5 % longer");
            for factor in [0.95, 1.05] {
                let (mean, off) = wait(load, TAKES.mul_f64(factor));
                assert!((mean - wanted).abs() > 2.0 * off, "{load}: {mean} ± {off} does not tell work of {factor}");
            }
        }
    }

    /// A node that goes down loses the work that waits, and comes back with the cores of its class.
    #[test]
    fn a_node_that_goes_down_loses_its_work_and_keeps_its_cores() {
        let of = |cores| Processor {
            cores,
            validate: WorkTime::default(),
            forge: WorkTime { block_us: 50_000, ..WorkTime::default() },
            serve: WorkTime::default(),
        };
        let plan = ProcessorPlan::Each(vec![of(1), of(2)]);
        let schedule = RoundSchedule::new(&Milestones::testnet(), 1);
        let mut all = Processors::new(2, Some(&plan), &[0, 1], &schedule).expect("it takes time");
        let blocks: Vec<Block> = (1..=4).map(|slot| block(slot, Vec::new())).collect();
        let ends = |all: &mut Processors, node, ms: u64| {
            let now = SimTime::from_micros(ms * 1_000);
            blocks.iter().map(|block| all.forge(now, NodeId(node), block, 0).micros() / 1_000).collect::<Vec<_>>()
        };
        assert_eq!(ends(&mut all, 0, 0), [50, 100, 150, 200]);
        assert_eq!(ends(&mut all, 1, 0), [50, 50, 100, 100]);
        all.stop(NodeId(1));
        assert_eq!(ends(&mut all, 1, 10), [60, 60, 110, 110], "both cores are idle, and no block is known");
        assert_eq!(ends(&mut all, 0, 10), [50, 100, 150, 200], "the other node knows its blocks");
    }

    /// The 51st height ends the first round, on each of the three ways.
    #[test]
    fn only_the_last_block_of_a_round_takes_its_time() {
        let work = WorkTime { round_end_us: 20_000, ..WorkTime::default() };
        let plan = ProcessorPlan::All(Processor { cores: 1, validate: work, forge: work, serve: work });
        let schedule = RoundSchedule::new(&Milestones::testnet(), 1);
        let now = SimTime::from_micros(1_000_000);
        for (height, takes) in [(50, 0), (51, 20_000), (52, 0), (101, 0), (102, 20_000)] {
            let mut one = block(height, Vec::new());
            one.header.height = Height(height);
            let blocks = [Arc::new(one.clone())].into();
            let blocks = Message::Blocks { inquiry: Inquiry(1), height: Height(height), blocks };
            let all = || Processors::new(1, Some(&plan), &[], &schedule).expect("it takes time");
            let ends = [
                all().forge(now, NodeId(0), &one, 0),
                all().validate(now, NodeId(0), &blocks, |_| 0),
                all().serve(now, NodeId(0), &blocks, |_| 0),
            ];
            assert_eq!(ends.map(|end| end.micros() - now.micros()), [takes; 3], "height {height}");
        }
    }

    fn block(slot: u32, transactions: Vec<Arc<SignedTransaction>>) -> Block {
        let draft = BlockDraft {
            timestamp: Timestamp(8 * slot),
            height: Height(2),
            previous: None,
            reward: Arktoshi::ZERO,
            version: 0,
            transactions,
        };
        Block::forge(draft, &KeyPair::from_passphrase("forger", CryptoMode::Modelled), &Milestones::testnet())
    }

    /// One of the block, one of a plain transfer, two of one with a second key, three of a wallet with three owners.
    #[test]
    fn all_signatures_of_a_block_take_their_time() {
        let keys = |name: &str| KeyPair::from_passphrase(name, CryptoMode::Modelled);
        let (one, other) = (keys("one"), keys("other"));
        let transfer = || Transaction::transfer(other.public().address(23), Arktoshi::coins(1)).nonce(Nonce(1));
        let second = transfer().sender(*one.public()).sign(&one).second_sign(&other).finish();
        let shared = transfer().sender(*other.public());
        let shared = (0..3).fold(shared, |shared, index| shared.multi_sign(index, &one)).finish();
        let block = block(1, [transfer().sign(&one), second, shared].map(Arc::new).to_vec());
        let work = WorkTime {
            block_us: 10_000,
            transaction_us: 1_000,
            signature_us: 100,
            byte_ns: 1_000,
            round_end_us: 20_000,
        };
        assert_eq!(work.of(&block, 500, false), Duration::from_micros(10_000 + 3 * 1_000 + 7 * 100 + 500));
        assert_eq!(work.of(&block, 500, true) - work.of(&block, 500, false), Duration::from_micros(20_000));
        assert_eq!(WorkTime { signature_us: 0, ..work }.of(&block, 0, false), Duration::from_micros(13_000));
    }

    proptest! {
        /// Each core does one piece of work at a time, and no work waits while a core is idle.
        #[test]
        fn cores_do_one_thing_at_a_time_in_the_order_in_which_it_comes(
            cores in 1..5_u32,
            pieces in prop::collection::vec((0..300_u64, 0..500_u64), 1..60),
        ) {
            let mut node = Cores::new(cores);
            let (mut now, mut spans) = (0, Vec::<(u64, u64, u64)>::new());
            for (gap, takes) in pieces {
                now += gap;
                let end = node.work(SimTime::from_micros(now), Duration::from_micros(takes)).micros();
                spans.push((now, end - takes, end));
            }
            prop_assert!(spans.windows(2).all(|pair| pair[0].1 <= pair[1].1), "in order");
            for (came, begins, _) in &spans {
                let busy = |at: u64| spans.iter().filter(|(_, from, to)| *from <= at && at < *to).count();
                prop_assert!(busy(*begins) <= cores as usize);
                if begins > came {
                    prop_assert_eq!(busy(begins - 1), cores as usize, "it waited while a core was idle");
                }
            }
        }
    }
}
