//! Laws of a pool under whatever clients, forgers and forks do to it. Source: consensus.md 7.1 I13.

use crate::pool::{Bench, FEE};
use dposlab::{
    actors::{Event, Message},
    ledger::Link,
    protocol::{Address, Arktoshi, Nonce, SignedTransaction, Transaction, TransactionId, transaction::Version},
};
use proptest::prelude::*;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// Small limits, so that both are met.
const LIMIT: usize = 12;
const LIMIT_OF_SENDER: usize = 5;
/// Accounts that send.
const SENDERS: usize = 6;

#[derive(Clone, Debug)]
enum Step {
    /// One request of several transfers.
    Submit(Vec<Draft>),
    /// A block of what the pool chooses, or of transfers that it has not seen.
    Forge { own: bool, others: Vec<Draft> },
    /// The node goes back so many blocks.
    Back(usize),
}

/// A transfer: by whom, so many nonces after the next one that fits (and one before), at so many times the least fee.
#[derive(Clone, Debug)]
struct Draft {
    sender: usize,
    nonce: u64,
    fee: u64,
    /// Blocks until it expires.
    expires: Option<u32>,
}

fn draft() -> impl Strategy<Value = Draft> {
    let nonce = prop_oneof![8 => Just(1u64), 1 => Just(0u64), 1 => Just(2u64)];
    let expires = prop_oneof![4 => Just(None), 1 => (1..6u32).prop_map(Some)];
    (0..SENDERS, nonce, 1..6u64, expires).prop_map(|(sender, nonce, fee, expires)| Draft {
        sender,
        nonce,
        fee,
        expires,
    })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => prop::collection::vec(draft(), 1..6).prop_map(Step::Submit),
        3 => (any::<bool>(), prop::collection::vec(draft(), 0..4)).prop_map(|(own, others)| Step::Forge { own, others }),
        1 => (1..4usize).prop_map(Step::Back),
    ]
}

fn nonce_of(transaction: &SignedTransaction) -> u64 {
    match transaction.transaction().version {
        Version::One(_) => unreachable!("all drafts are of version 2"),
        Version::Two(nonce) => nonce.0,
    }
}

/// A pool, and what its events have told of.
struct Play {
    bench: Bench,
    told: BTreeSet<TransactionId>,
    /// Chains left behind stay reachable, as other nodes would keep them.
    left: Vec<Arc<Link>>,
    met: BTreeMap<&'static str, usize>,
}

impl Play {
    fn new() -> Self {
        let bench = Bench::new(|rules| {
            rules.pool.max_transactions = LIMIT;
            rules.pool.max_transactions_per_sender = LIMIT_OF_SENDER;
            // Where all of a request is checked first, it passes the sender's limit (Q15).
            rules.pool.checks_precede_adding = false;
            rules.pool.chooses_what_expires_next = false;
        });
        Self { bench, told: BTreeSet::new(), left: Vec::new(), met: BTreeMap::new() }
    }

    fn on_chain(&self, address: &Address) -> u64 {
        self.bench.tree.applied(&self.bench.tip).state.wallet(address).map_or(0, |wallet| wallet.nonce.0)
    }

    /// Of each draft the transfer; `next` says from which nonce on a sender's follow.
    fn sign(&self, drafts: &[Draft], next: impl Fn(&Address) -> u64) -> Vec<Arc<SignedTransaction>> {
        let mut used: BTreeMap<usize, u64> = BTreeMap::new();
        let signed = drafts.iter().map(|draft| {
            let keys = self.bench.keys(1 + draft.sender);
            let last = used.entry(draft.sender).or_insert_with(|| next(&keys.public().address(23)));
            let nonce = *last + draft.nonce;
            *last = nonce.max(*last);
            let height = self.bench.tip.height().0;
            let builder = Transaction::transfer(self.bench.keys(0).public().address(23), Arktoshi::coins(1));
            let builder = match draft.expires {
                Some(blocks) => builder.expiration(height + blocks),
                None => builder,
            };
            let fee = Arktoshi::new(draft.fee * FEE).expect("a fee");
            Arc::new(builder.nonce(Nonce(nonce)).fee(fee).sign(keys))
        });
        signed.collect()
    }

    fn pending_nonce(&self, address: &Address) -> u64 {
        let own = self.bench.pool.pending().filter(|pending| pending.sender_address() == *address);
        own.map(|pending| nonce_of(pending)).max().unwrap_or_else(|| self.on_chain(address))
    }

    fn play(&mut self, step: &Step) {
        match step {
            Step::Submit(drafts) => {
                let signed = self.sign(drafts, |address| self.pending_nonce(address));
                let answer = self.bench.submit(&signed);
                *self.met.entry("refused").or_default() += answer.errors.len();
                *self.met.entry("excess").or_default() += answer.excess.len();
                *self.met.entry("accepted").or_default() += answer.accept.len();
            }
            Step::Forge { own, others } => {
                let block = match own {
                    true => self.bench.chosen(),
                    false => self.sign(others, |address| self.on_chain(address)),
                };
                let tip = self.bench.tip.clone();
                if let Err(why) = self.bench.try_forge(block) {
                    assert!(!own, "what the pool chooses makes a block: {why}");
                    self.bench.tip = tip;
                    *self.met.entry("invalid block").or_default() += 1;
                }
            }
            Step::Back(blocks) => {
                self.left.push(self.bench.tip.clone());
                for _ in 0..*blocks {
                    let parent = self.bench.tip.parent().filter(|parent| parent.height().0 > 1);
                    self.bench.tip = parent.unwrap_or_else(|| self.bench.tip.clone());
                }
            }
        }
        self.bench.tell(Message::TipMoved { tip: self.bench.tip.clone() });
        for event in std::mem::take(&mut self.bench.events) {
            self.hear(&event);
        }
    }

    fn hear(&mut self, event: &Event) {
        match event {
            Event::PoolAdded(all) => self.told.extend(all.iter().map(|one| one.id())),
            Event::PoolExpired(_) => *self.met.entry("expired").or_default() += 1,
            Event::PoolEvicted(_) => *self.met.entry("evicted").or_default() += 1,
            Event::PoolReplaced(all) => {
                *self.met.entry("replayed").or_default() += 1;
                self.told.extend(all.iter().map(|one| one.id()));
            }
            _ => {}
        }
    }

    fn check(&self) {
        let pending: Vec<_> = self.bench.pool.pending().cloned().collect();
        // Transactions that a rollback brings back pass the limits (5.7).
        let limited = !self.met.contains_key("replayed");
        assert!(!limited || pending.len() <= LIMIT, "{} pending", pending.len());
        let mut nonces: BTreeMap<Address, Vec<u64>> = BTreeMap::new();
        for one in &pending {
            nonces.entry(one.sender_address()).or_default().push(nonce_of(one));
            assert!(self.bench.tree.block_of(&self.bench.tip, &one.id()).is_none(), "{} is on the chain", one.id());
        }
        for (sender, own) in nonces {
            // In forging order a sender's nonces ascend.
            let first = self.on_chain(&sender) + 1;
            let wanted: Vec<u64> = (first..).take(own.len()).collect();
            assert_eq!(own, wanted, "of {sender}");
            assert!(!limited || own.len() <= LIMIT_OF_SENDER, "{} of {sender}", own.len());
        }
        assert!(pending.iter().all(|one| self.told.contains(&one.id())), "whatever is pending was told of");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Pending nonces follow the chain's without a gap, limits hold, nothing is pending that is on the chain, and
    /// whatever is pending was told of.
    #[test]
    fn a_pool_follows_its_chain(steps in prop::collection::vec(step(), 1..40)) {
        let mut play = Play::new();
        for step in &steps {
            play.play(step);
            play.check();
        }
    }
}

#[test]
fn the_steps_meet_everything() {
    use proptest::{strategy::ValueTree, test_runner::TestRunner};
    let mut runner = TestRunner::deterministic();
    let mut met = BTreeMap::new();
    for _ in 0..30 {
        let steps = prop::collection::vec(step(), 40).new_tree(&mut runner).expect("a value").current();
        let mut play = Play::new();
        steps.iter().for_each(|step| play.play(step));
        for (what, count) in play.met {
            *met.entry(what).or_insert(0) += count;
        }
    }
    for what in ["accepted", "refused", "excess", "expired", "evicted", "replayed", "invalid block"] {
        assert!(met.get(what).is_some_and(|count| *count >= 5), "{what}: {met:?}");
    }
}
