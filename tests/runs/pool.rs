//! The pool of a simulated node, from the outside: what it takes, in which order, and what becomes of it.

use dposlab::{
    actors::{
        ActorId, Effect, Event, Input, Message, NodeId, RequestId, Role, SimTime, Submission, TransactionPool,
        message::AddTransactions,
    },
    ledger::{BlockRejected, BlockTree, Link},
    protocol::{
        Arktoshi, Block, BlockDraft, KeyPair, NetworkConfig, Nonce, SignedTransaction, Slot, Timestamp, Transaction,
        crypto::CryptoMode::Real, transaction::TransactionBuilder,
    },
    scenario::{Testnet, testnet::rules_for},
    sim::SeedTree,
};
use std::sync::Arc;

/// A pool and the chain of its node.
pub struct Bench {
    pub testnet: Testnet,
    pub tree: Arc<BlockTree>,
    pub tip: Arc<Link>,
    pub pool: TransactionPool,
    pub events: Vec<Event>,
    /// Seconds from the tip's timestamp to the instant of whatever the pool is told.
    pub late: u32,
}

impl Bench {
    /// A pool whose node stands on block 2, from which on version 2 is allowed.
    pub fn new(change: impl FnOnce(&mut dposlab::ledger::Rules)) -> Self {
        let mut bench = Self::at_genesis(change);
        bench.forge(Vec::new());
        bench
    }

    pub fn at_genesis(change: impl FnOnce(&mut dposlab::ledger::Rules)) -> Self {
        Self::of_network(|_| {}, change)
    }

    /// On a changed network, at genesis.
    pub fn of_network(
        change_network: impl FnOnce(&mut NetworkConfig),
        change: impl FnOnce(&mut dposlab::ledger::Rules),
    ) -> Self {
        let mut testnet = Testnet::generate(SeedTree::new(1), 5, Real);
        change_network(Arc::make_mut(&mut testnet.config));
        let mut rules = rules_for(5);
        change(&mut rules);
        let tree = testnet.tree(rules).expect("it has its delegates");
        let tip = tree.genesis().clone();
        let pool = TransactionPool::new(NodeId(0), tree.clone(), tip.clone());
        Self { testnet, tree, tip, pool, events: Vec::new(), late: 4 }
    }

    pub fn keys(&self, account: usize) -> &KeyPair {
        &self.testnet.accounts[account].keys
    }

    pub fn transfer(&self, account: usize, nonce: u64, fee: u64) -> Arc<SignedTransaction> {
        let builder = Transaction::transfer(self.keys(0).public().address(23), Arktoshi::coins(1));
        self.sign(builder, account, nonce, fee)
    }

    pub fn sign(&self, builder: TransactionBuilder, account: usize, nonce: u64, fee: u64) -> Arc<SignedTransaction> {
        let fee = Arktoshi::new(fee).expect("a fee");
        Arc::new(builder.nonce(Nonce(nonce)).fee(fee).sign(self.keys(account)))
    }

    pub fn tell(&mut self, message: Message) -> Vec<Effect> {
        let from = ActorId { node: NodeId(0), role: Role::Peer };
        let now = SimTime::from_seconds(Timestamp(self.tip.block().header.timestamp.0 + self.late));
        let mut effects = Vec::new();
        self.pool.step(now, Input::Message { from, message }, &mut effects);
        for effect in &effects {
            if let Effect::Observe(event) = effect {
                self.events.push(event.clone());
            }
        }
        effects
    }

    pub fn submit(&mut self, transactions: &[Arc<SignedTransaction>]) -> Submission {
        let (tip, request) = (self.tip.clone(), Some(RequestId(1)));
        let add = AddTransactions { tip, transactions: transactions.into(), request };
        let effects = self.tell(Message::AddTransactions(add.into()));
        let answer = effects.into_iter().find_map(|effect| match effect {
            Effect::Answer { submission, .. } => Some(submission),
            _ => None,
        });
        *answer.expect("every request is answered")
    }

    /// The transactions that would go into the next block.
    pub fn chosen(&mut self) -> Vec<Arc<SignedTransaction>> {
        let effects = self.tell(Message::ChooseTransactions { tip: self.tip.clone() });
        let chosen = effects.into_iter().find_map(|effect| match effect {
            Effect::Send { message: Message::ForgingTransactions(transactions), .. } => Some(transactions.to_vec()),
            _ => None,
        });
        chosen.expect("a delegate that asks is answered")
    }

    pub fn forge(&mut self, transactions: Vec<Arc<SignedTransaction>>) {
        self.try_forge(transactions).expect("a block by the rules");
    }

    pub fn try_forge(&mut self, transactions: Vec<Arc<SignedTransaction>>) -> Result<(), BlockRejected> {
        self.tip = self.tree.extend(&self.tip, &self.block(0, transactions))?;
        Ok(())
    }

    /// The next block, after so many empty slots.
    pub fn block(&self, missed: u32, transactions: Vec<Arc<SignedTransaction>>) -> Arc<Block> {
        let slots = self.tree.slots();
        let timestamp = slots.start(Slot(slots.slot(self.tip.block().header.timestamp).0 + 1 + missed));
        let owner = self
            .tree
            .applied(&self.tip)
            .state
            .round()
            .owner(slots.slot(timestamp))
            .expect("each slot has an owner")
            .public_key;
        let delegates = &self.testnet.delegates;
        let forger = delegates.iter().find(|delegate| *delegate.keys.public() == owner).expect("a genesis delegate");
        let draft = BlockDraft {
            timestamp,
            height: self.tip.height().next(),
            previous: Some(self.tip.id()),
            reward: Arktoshi::ZERO,
            version: 0,
            transactions,
        };
        Arc::new(Block::forge(draft, &forger.keys, &self.testnet.config.milestones))
    }
}

/// The codes of all refusals.
pub fn codes(submission: &Submission) -> Vec<&'static str> {
    submission.errors.iter().map(|(_, error)| error.code()).collect()
}

/// Enough for a transfer.
pub const FEE: u64 = 10_000_000;

#[test]
fn forging_order_is_by_fee_with_lower_nonces_first() {
    let mut bench = Bench::new(|_| {});
    // The example of consensus.md 5.5: A1:1 A2:9 B1:5 C1:9 A3:2, fees raised above the minimum.
    let fee = |fee: u64| FEE + fee;
    let [a1, a2, b1, c1, a3] = [(1, 1, 1), (1, 2, 9), (2, 1, 5), (3, 1, 9), (1, 3, 2)]
        .map(|(account, nonce, extra)| bench.transfer(account, nonce, fee(extra)));
    let submission = bench.submit(&[a1.clone(), a2.clone(), b1.clone(), c1.clone(), a3.clone()]);
    assert_eq!(submission.accept.len(), 5, "{submission:?}");
    let order: Vec<_> = bench.chosen().iter().map(|transaction| transaction.id()).collect();
    assert_eq!(order, [&a1, &a2, &c1, &b1, &a3].map(|transaction| transaction.id()));
}

#[test]
fn refusals_come_in_the_references_order_and_words() {
    let mut bench = Bench::new(|rules| rules.pool.max_transactions_per_sender = 2);
    let good = bench.transfer(1, 1, FEE);
    let cheap = bench.transfer(2, 1, 1);
    let gap = bench.transfer(3, 4, FEE);
    let mut forged = bench.transfer(4, 1, FEE).transaction().clone();
    forged.signature.as_mut().expect("it is signed")[0] ^= 1;
    let forged = Arc::new(SignedTransaction::new(forged));
    let first = bench.submit(&[good.clone(), good.clone(), cheap.clone(), gap.clone(), forged]);
    assert_eq!(first.accept, [good.id()]);
    assert_eq!(codes(&first), ["ERR_LOW_FEE", "ERR_BAD_DATA", "ERR_APPLY"], "checks before adding");
    let again = bench.submit(&[good.clone(), cheap]);
    assert_eq!(codes(&again), ["ERR_DUPLICATE", "ERR_DUPLICATE"], "refused ones are remembered too");
    let second = bench.transfer(1, 2, FEE);
    let third = bench.transfer(1, 3, FEE);
    assert_eq!(bench.submit(std::slice::from_ref(&second)).accept, [second.id()]);
    let over = bench.submit(std::slice::from_ref(&third));
    assert_eq!((over.excess.as_slice(), over.errors.len(), over.accept.len()), ([third.id()].as_slice(), 0, 0));
    bench.forge(vec![good.clone()]);
    assert_eq!(codes(&bench.submit(&[good])), ["ERR_FORGED"], "a block clears what is remembered");
}

#[test]
fn a_full_pool_gives_way_to_a_higher_fee_only() {
    let mut bench = Bench::new(|rules| rules.pool.max_transactions = 2);
    let (first, second) = (bench.transfer(1, 1, FEE), bench.transfer(1, 2, FEE + 1));
    bench.submit(&[first.clone(), second.clone()]);
    let equal = bench.submit(&[bench.transfer(2, 1, FEE + 1)]);
    assert_eq!(codes(&equal), ["ERR_POOL_FULL"]);
    assert_eq!(equal.broadcast.len(), 1, "it is sent on nevertheless");
    let message = equal.errors[0].1.to_string();
    assert!(message.starts_with("Pool is full (has 2 transactions)"), "{message}");
    let dear = bench.transfer(3, 1, FEE + 2);
    assert_eq!(bench.submit(std::slice::from_ref(&dear)).accept, [dear.id()]);
    let left: Vec<_> = bench.chosen().iter().map(|transaction| transaction.id()).collect();
    // The cheapest that is its sender's last one went, not the cheapest: nonces stay contiguous.
    assert_eq!(left, [dear.id(), first.id()]);
}

#[test]
fn a_full_pool_that_looks_first_drops_nothing_for_what_it_refuses() {
    for makes_room_first in [true, false] {
        let mut bench = Bench::new(|rules| {
            rules.pool.max_transactions = 2;
            rules.pool.makes_room_first = makes_room_first;
        });
        let (first, other) = (bench.transfer(1, 1, FEE), bench.transfer(2, 1, FEE + 5));
        bench.submit(&[first.clone(), other.clone()]);
        let pending = |bench: &mut Bench| bench.chosen().iter().map(|transaction| transaction.id()).collect::<Vec<_>>();
        // The cheapest one is the one that this one's nonce follows.
        let next = bench.submit(&[bench.transfer(1, 2, FEE + 9)]);
        assert!(next.accept.is_empty());
        let left = if makes_room_first { vec![other.id()] } else { vec![other.id(), first.id()] };
        assert_eq!(pending(&mut bench), left, "makes_room_first = {makes_room_first}");
        // A nonce that leaves a gap fits nowhere.
        let gap = bench.submit(&[bench.transfer(3, 7, FEE + 9)]);
        assert!(gap.accept.is_empty() && pending(&mut bench).len() == left.len());
    }
}

#[test]
fn the_newest_of_equal_fees_gives_way() {
    let mut bench = Bench::new(|rules| rules.pool.max_transactions = 2);
    let (older, newer) = (bench.transfer(1, 1, FEE), bench.transfer(2, 1, FEE));
    assert_eq!(bench.submit(std::slice::from_ref(&older)).accept, [older.id()]);
    assert_eq!(bench.submit(std::slice::from_ref(&newer)).accept, [newer.id()]);
    let dear = bench.transfer(3, 1, FEE + 1);
    assert_eq!(bench.submit(std::slice::from_ref(&dear)).accept, [dear.id()]);
    let left: Vec<_> = bench.chosen().iter().map(|transaction| transaction.id()).collect();
    assert_eq!(left, [dear.id(), older.id()]);
}

#[test]
fn what_a_block_confirms_leaves_and_what_no_longer_fits_too() {
    let mut bench = Bench::new(|_| {});
    let (mine, other) = (bench.transfer(1, 1, FEE), bench.transfer(1, 1, FEE + 1));
    let next = bench.transfer(1, 2, FEE);
    bench.submit(&[mine.clone(), next.clone()]);
    bench.forge(vec![other]);
    assert!(bench.chosen().is_empty(), "the nonce is taken: both are gone");
    let removed = bench.events.iter().filter(|event| matches!(event, Event::PoolRemoved(_))).count();
    assert_eq!(removed, 2);
}

#[test]
fn transfers_expire_with_their_senders_later_ones() {
    let mut bench = Bench::new(|_| {});
    let builder = Transaction::transfer(bench.keys(0).public().address(23), Arktoshi::coins(1));
    let short = bench.sign(builder.expiration(5), 1, 1, FEE);
    let later = bench.transfer(1, 2, FEE);
    assert_eq!(bench.submit(&[short, later]).accept.len(), 2);
    bench.forge(Vec::new());
    bench.forge(Vec::new());
    assert_eq!(bench.chosen().len(), 2, "height 4");
    bench.forge(Vec::new());
    assert!(bench.chosen().is_empty(), "height 5");
    let expired = bench.events.iter().filter(|event| matches!(event, Event::PoolExpired(_))).count();
    assert_eq!(expired, 2);
    let builder = Transaction::transfer(bench.keys(0).public().address(23), Arktoshi::coins(1));
    let dead = bench.sign(builder.expiration(6), 2, 1, FEE);
    assert_eq!(codes(&bench.submit(&[dead])), ["ERR_EXPIRED"]);
}

#[test]
fn a_rolled_back_block_gives_its_transactions_back_and_takes_the_others() {
    let mut bench = Bench::new(|_| {});
    let (confirmed, pending) = (bench.transfer(1, 1, FEE), bench.transfer(2, 1, FEE));
    bench.submit(&[confirmed.clone(), pending]);
    let before = bench.tip.clone();
    bench.forge(vec![confirmed.clone()]);
    assert_eq!(bench.chosen().len(), 1);
    bench.tip = before;
    let back: Vec<_> = bench.chosen().iter().map(|transaction| transaction.id()).collect();
    assert_eq!(back, [confirmed.id()], "as the reference does it: all else is lost");
}

/// Two accounts publish one file. The one that pays less does not fit behind the other, and would fit alone.
#[test]
fn a_forger_keeps_or_drops_what_fits_only_without_what_it_has_chosen() {
    let hash = [&[0x12, 0x20][..], &[7; 32]].concat();
    for drops in [false, true] {
        let mut bench = Bench::new(|rules| {
            rules.pool.forging_drops_misfits = drops;
            // Else a forger does not see the file that is on the chain (Q3).
            rules.pool.ipfs_hashes_seen_of_delegates = false;
        });
        let file = |bench: &Bench, account, fee| bench.sign(Transaction::ipfs(hash.clone()), account, 1, fee);
        let (dear, cheap) = (file(&bench, 1, 700_000_000), file(&bench, 2, 600_000_000));
        let later = bench.transfer(2, 2, FEE);
        assert_eq!(bench.submit(&[dear.clone(), cheap.clone(), later.clone()]).accept.len(), 3);
        let ids = |chosen: Vec<Arc<SignedTransaction>>| chosen.iter().map(|one| one.id()).collect::<Vec<_>>();
        let removed = |bench: &Bench| {
            let is_of = |event: &&Event| matches!(event, Event::PoolRemoved(_));
            bench.events.iter().filter(is_of).count()
        };
        assert_eq!(ids(bench.chosen()), [dear.id()], "nothing else fits behind it");
        assert_eq!(removed(&bench), if drops { 2 } else { 0 });
        // A block of another forger, with neither. The cheap one alone fits on the chain that follows.
        bench.forge(Vec::new());
        assert_eq!(ids(bench.chosen()), [dear.id()]);
        assert_eq!(removed(&bench), if drops { 2 } else { 0 });
        // Once the dear one is confirmed, the cheap one never fits again.
        bench.forge(vec![dear]);
        assert_eq!(ids(bench.chosen()), []);
        assert_eq!(removed(&bench), 3, "what a block confirms leaves, too");
    }
}

#[test]
fn each_version_has_its_time() {
    let mut bench = Bench::at_genesis(|_| {});
    let two = bench.transfer(1, 1, FEE);
    assert_eq!(codes(&bench.submit(&[two])), ["ERR_UNKNOWN"]);
    let recipient = bench.keys(0).public().address(23);
    let one = Transaction::transfer(recipient, Arktoshi::coins(1)).version_one(Timestamp(1)).sign(bench.keys(2));
    assert_eq!(bench.submit(&[Arc::new(one)]).accept.len(), 1);
    bench.forge(Vec::new());
    assert!(bench.chosen().is_empty(), "block 3 may hold version 2 only");
}

#[test]
fn nothing_more_is_taken_while_a_second_key_is_pending() {
    let mut bench = Bench::new(|_| {});
    let second = KeyPair::from_passphrase("a second key", Real);
    let registration = bench.sign(Transaction::second_signature(*second.public()), 1, 1, 500_000_000);
    let next = SignedTransaction::clone(&bench.transfer(1, 2, FEE)).second_sign(&second);
    let submission = bench.submit(&[registration, Arc::new(next)]);
    assert_eq!((submission.accept.len(), codes(&submission)), (1, vec!["ERR_APPLY"]));
    assert!(submission.errors[0].1.to_string().contains("wallet does not allow second signatures"));
}

#[test]
fn the_least_fee_counts_half_the_bytes() {
    let mut bench = Bench::new(|_| {});
    // The example of consensus.md 5.3: a transfer of 156 bytes at 1000 arktoshi a byte.
    let (enough, less) = (bench.transfer(1, 1, 178_000), bench.transfer(2, 1, 177_999));
    assert_eq!(enough.bytes().len(), 156);
    let submission = bench.submit(&[enough.clone(), less]);
    assert_eq!((submission.accept.as_slice(), codes(&submission)), ([enough.id()].as_slice(), vec!["ERR_LOW_FEE"]));
}
