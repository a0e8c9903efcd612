//! Laws of the ledger, over random valid and invalid transactions, missed slots and forks.

use dposlab::{
    check::check_all,
    ledger::{ApplyError, BlockRejected, BlockTree, Link, Rules},
    protocol::{
        Arktoshi, Block, BlockDraft, KeyPair, Nonce, SignedTransaction, Slot, Transaction, TransactionId, Vote,
        crypto::sha256,
        transaction::{Expiration, Payment, TransactionBuilder},
    },
    scenario::{Testnet, testnet::rules_for},
    sim::SeedTree,
};
use proptest::prelude::*;
use std::{collections::BTreeMap, sync::Arc};

const DELEGATES: u32 = 5;
/// Accounts and delegates that send; one delegate can resign when another has registered.
const SENDERS: usize = 8;

/// What someone tries; indexes wrap around, so every value means something.
#[derive(Clone, Debug)]
enum Try {
    Transfer { to: usize, amount: u64 },
    MultiPayment { to: [usize; 2], amounts: [u64; 2] },
    Vote { delegate: usize },
    Unvote { delegate: usize },
    Register { name: u8 },
    Resign,
    SecondKey,
    Ipfs { hash: u8 },
    Lock { to: usize, amount: u64, blocks: u32 },
    Claim { lock: usize, right: bool },
    Refund { lock: usize },
    Business { name: u8 },
    ResignBusiness,
}

#[derive(Clone, Debug)]
struct Step {
    /// Slots left empty before the block.
    missed: u32,
    /// Blocks to go back before forging: more than 0 is a fork.
    back: u32,
    tries: Vec<(usize, Try, bool)>,
}

fn a_try() -> impl Strategy<Value = Try> {
    let amount = prop_oneof![1..1_000_000_000u64, 1..=Arktoshi::coins(2_000_000).value()];
    prop_oneof![
        4 => (any::<usize>(), amount.clone()).prop_map(|(to, amount)| Try::Transfer { to, amount }),
        1 => (any::<[usize; 2]>(), [1..100u64, 1..1_000_000_000_000u64])
            .prop_map(|(to, amounts)| Try::MultiPayment { to, amounts }),
        3 => any::<usize>().prop_map(|delegate| Try::Vote { delegate }),
        2 => any::<usize>().prop_map(|delegate| Try::Unvote { delegate }),
        2 => (0..4u8).prop_map(|name| Try::Register { name }),
        1 => Just(Try::Resign),
        1 => Just(Try::SecondKey),
        1 => (0..3u8).prop_map(|hash| Try::Ipfs { hash }),
        2 => (any::<usize>(), amount, 0..6u32).prop_map(|(to, amount, blocks)| Try::Lock { to, amount, blocks }),
        2 => (any::<usize>(), any::<bool>()).prop_map(|(lock, right)| Try::Claim { lock, right }),
        2 => any::<usize>().prop_map(|lock| Try::Refund { lock }),
        1 => (0..3u8).prop_map(|name| Try::Business { name }),
        1 => Just(Try::ResignBusiness),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let tries = prop::collection::vec((0..SENDERS, a_try(), prop::bool::weighted(0.1)), 0..5);
    let step = (prop_oneof![4 => Just(0u32), 1 => 1..8u32], prop_oneof![5 => Just(0u32), 1 => 1..6u32], tries)
        .prop_map(|(missed, back, tries)| Step { missed, back, tries });
    prop::collection::vec(step, 1..14)
}

struct Chain {
    tree: Arc<BlockTree>,
    testnet: Testnet,
    tip: Arc<Link>,
    senders: Vec<KeyPair>,
    locks: Vec<TransactionId>,
    refusals: usize,
}

impl Chain {
    fn new() -> Self {
        let testnet = Testnet::generate(SeedTree::new(1), DELEGATES);
        let mut rules = rules_for(DELEGATES as usize);
        rules.ledger.minimum_lock_expiration = false;
        let tree = testnet.tree(rules).expect("it has its delegates");
        let accounts = testnet.accounts.iter().take(SENDERS - 3).map(|account| account.keys.clone());
        let delegates = testnet.delegates.iter().take(3).map(|delegate| delegate.keys.clone());
        let senders = accounts.chain(delegates).collect();
        let tip = tree.genesis().clone();
        let mut chain = Self { tree, testnet, tip, senders, locks: Vec::new(), refusals: 0 };
        // Version 2 is allowed once block 2 is there.
        chain.forge(0, Vec::new()).expect("an empty block");
        chain
    }

    fn play(&mut self, step: &Step) {
        for _ in 0..step.back {
            self.tip = self.tip.parent().filter(|parent| parent.height().0 > 1).unwrap_or(&self.tip).clone();
        }
        let mut fitting = Vec::new();
        let mut scratch = self.tree.applied(&self.tip).state.clone();
        for (sender, attempt, wrong_nonce) in &step.tries {
            let keys = &self.senders[*sender];
            let wallet = scratch.wallet(&keys.public().address(23)).expect("genesis paid it").clone();
            let nonce = Nonce(wallet.nonce.0 + if *wrong_nonce { 2 } else { 1 });
            let transaction = self.build(attempt).nonce(nonce).sign(keys);
            let transaction = match wallet.second_public_key {
                Some(_) => transaction.second_sign(&second_key()),
                None => transaction,
            };
            let transaction = Arc::new(transaction);
            let terms = self.tree.terms(self.tip.height());
            let before = scratch.clone();
            match scratch.try_apply(&transaction, self.next_slot_start(step.missed), &terms) {
                Ok(()) => {
                    if let Try::Lock { .. } = attempt {
                        self.locks.push(transaction.id());
                    }
                    fitting.push(transaction);
                }
                Err(refused) => {
                    self.refusals += 1;
                    assert!(scratch.wallets().eq(before.wallets()), "what is refused changes nothing");
                    self.a_block_with_it_is_refused(step.missed, &fitting, transaction, &refused);
                }
            }
        }
        self.forge(step.missed, fitting).expect("each of them was applied to a scratch state");
        check_all(&self.tree, &self.tip).unwrap_or_else(|violation| panic!("{violation}"));
    }

    fn build(&self, attempt: &Try) -> TransactionBuilder {
        let address = |index: usize| self.senders[index % SENDERS].public().address(23);
        let delegate = |index: usize| {
            let delegates: Vec<_> = self.tree.applied(&self.tip).state.delegates().cloned().collect();
            delegates[index % delegates.len()].public_key.expect("a delegate's key is known")
        };
        let lock = |index: usize| match self.locks.len() {
            0 => TransactionId([7; 32]),
            count => self.locks[index % count],
        };
        let arktoshi = |value| Arktoshi::new(value).expect("the strategies stay within range");
        match attempt {
            Try::Transfer { to, amount } => Transaction::transfer(address(*to), arktoshi(*amount)),
            Try::MultiPayment { to, amounts } => {
                let pay = |(to, amount): (&usize, &u64)| Payment { recipient: address(*to), amount: arktoshi(*amount) };
                Transaction::multi_payment(to.iter().zip(amounts).map(pay).collect())
            }
            Try::Vote { delegate: index } => Transaction::vote(Vote::For(delegate(*index))),
            Try::Unvote { delegate: index } => Transaction::vote(Vote::Against(delegate(*index))),
            Try::Register { name } => Transaction::delegate_registration(format!("name_{name}")),
            Try::Resign => Transaction::delegate_resignation(),
            Try::SecondKey => Transaction::second_signature(*second_key().public()),
            Try::Ipfs { hash } => Transaction::ipfs([vec![0x12, 0x20], vec![*hash; 32]].concat()),
            Try::Lock { to, amount, blocks } => {
                let expiration = Expiration::BlockHeight(self.tip.height().0 + blocks);
                Transaction::htlc_lock(address(*to), arktoshi(*amount), sha256(&[9; 32]), expiration)
            }
            Try::Claim { lock: index, right } => {
                Transaction::htlc_claim(lock(*index), if *right { [9; 32] } else { [8; 32] })
            }
            Try::Refund { lock: index } => Transaction::htlc_refund(lock(*index)),
            Try::Business { name } => {
                Transaction::business_registration(format!("Acme {name}"), "https://a.io", None, None)
            }
            Try::ResignBusiness => Transaction::business_resignation(),
        }
    }

    fn next_slot_start(&self, missed: u32) -> dposlab::protocol::Timestamp {
        let slots = self.tree.slots();
        slots.start(Slot(slots.slot(self.tip.block().header.timestamp).0 + 1 + missed))
    }

    fn block(&self, missed: u32, transactions: Vec<Arc<SignedTransaction>>) -> Arc<Block> {
        let timestamp = self.next_slot_start(missed);
        let applied = self.tree.applied(&self.tip);
        let owner = applied.state.round().owner(self.tree.slots().slot(timestamp)).public_key;
        let forgers = self.testnet.delegates.iter().map(|delegate| &delegate.keys);
        let keys = forgers.chain(&self.senders).find(|keys| *keys.public() == owner).expect("whoever is active forges");
        let draft = BlockDraft {
            timestamp,
            height: self.tip.height().next(),
            previous: Some(self.tip.id()),
            reward: Arktoshi::ZERO,
            version: 0,
            transactions,
        };
        Arc::new(Block::forge(draft, keys, &self.testnet.config.milestones))
    }

    fn forge(&mut self, missed: u32, transactions: Vec<Arc<SignedTransaction>>) -> Result<(), BlockRejected> {
        self.tip = self.tree.extend(&self.tip, &self.block(missed, transactions))?;
        Ok(())
    }

    fn a_block_with_it_is_refused(
        &self,
        missed: u32,
        before: &[Arc<SignedTransaction>],
        bad: Arc<SignedTransaction>,
        why: &ApplyError,
    ) {
        let id = bad.id();
        let transactions = before.iter().cloned().chain([bad]).collect();
        match self.tree.extend(&self.tip, &self.block(missed, transactions)) {
            Err(BlockRejected::NotApplicable { transaction, source, .. }) => {
                // The nonces of a block are looked at before anything is applied.
                let nonce = matches!(source, ApplyError::UnexpectedNonce { .. });
                assert!(transaction == id && (source == *why || nonce), "{source} instead of {why}");
            }
            other => panic!("a block with a transaction refused for '{why}' gave {:?}", other.err()),
        }
    }
}

fn second_key() -> KeyPair {
    KeyPair::from_passphrase("the second key of whoever registers one")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Whatever is tried, the invariants hold after each block of each fork, and what is refused changes nothing.
    #[test]
    fn invariants_hold_on_every_fork(steps in steps()) {
        let mut chain = Chain::new();
        let mut states = BTreeMap::new();
        for step in &steps {
            chain.play(step);
            let applied = chain.tree.applied(&chain.tip);
            let wallets: Vec<_> = applied.state.wallets().cloned().collect();
            states.insert(chain.tip.id(), (chain.tip.clone(), wallets));
        }
        // Moving back in the tree restores: a state is the same whenever it is asked for, and computed anew by
        // another process it is the same too.
        let fresh = chain.testnet.tree(Rules::clone(chain.tree.rules())).expect("the same network");
        for (link, wallets) in states.values() {
            prop_assert!(chain.tree.applied(link).state.wallets().eq(wallets.iter()));
            let mut tip = fresh.genesis().clone();
            for height in 2..=link.height().0 {
                let block = link.ancestor(dposlab::protocol::Height(height)).expect("it is below").block().clone();
                tip = fresh.extend(&tip, &block).expect("it was accepted before");
            }
            prop_assert!(fresh.applied(&tip).state.wallets().eq(wallets.iter()));
        }
    }
}

#[test]
fn the_strategy_reaches_what_it_should() {
    use proptest::{strategy::ValueTree, test_runner::TestRunner};
    let mut runner = TestRunner::deterministic();
    let (mut refusals, mut forks, mut locks, mut transactions) = (0, 0, 0, 0);
    for _ in 0..12 {
        let steps = steps().new_tree(&mut runner).expect("a value").current();
        let mut chain = Chain::new();
        for step in &steps {
            forks += usize::from(step.back > 0 && chain.tip.height().0 > 2);
            chain.play(step);
        }
        refusals += chain.refusals;
        locks += chain.locks.len();
        transactions += chain.tip.transactions();
    }
    assert!(refusals > 20 && forks > 3 && locks > 3 && transactions > 300, "{refusals} {forks} {locks} {transactions}");
}

/// The message of the refusal of a block on the tip of a chain.
fn refusal(chain: &Chain, block: Block) -> String {
    chain.tree.extend(&chain.tip, &Arc::new(block)).expect_err("it must be refused").to_string()
}

fn draft_of(chain: &Chain, block: &Block) -> BlockDraft {
    BlockDraft {
        timestamp: block.header.timestamp,
        height: block.header.height,
        previous: block.header.previous,
        reward: block.header.reward,
        version: block.header.version,
        transactions: vec![Arc::new(
            Transaction::transfer(chain.senders[0].public().address(23), Arktoshi::coins(1))
                .nonce(Nonce(1))
                .sign(&chain.senders[1]),
        )],
    }
}

#[test]
fn a_block_that_breaks_one_rule_is_refused_by_that_rule() {
    let chain = Chain::new();
    let milestones = &chain.testnet.config.milestones;
    let good = chain.block(0, Vec::new());
    let owner = good.header.generator;
    let owners_keys = || {
        let delegates = chain.testnet.delegates.iter().map(|delegate| &delegate.keys);
        delegates.clone().find(|keys| *keys.public() == owner).expect("it forged")
    };
    let other = chain.testnet.delegates.iter().find(|delegate| *delegate.keys.public() != owner).expect("five");
    let forge = |change: &dyn Fn(&mut BlockDraft), keys: &KeyPair| {
        let mut draft = draft_of(&chain, &good);
        change(&mut draft);
        Block::forge(draft, keys, milestones)
    };
    let out_of_turn = refusal(&chain, forge(&|_| {}, &other.keys));
    assert!(out_of_turn.contains("forged it") && out_of_turn.contains(&owner.to_string()), "{out_of_turn}");
    let rewarded = forge(&|draft| draft.reward = Arktoshi::coins(2), owners_keys());
    assert!(refusal(&chain, rewarded).contains("Invalid block reward"));
    let high = forge(&|draft| draft.height = draft.height.next(), owners_keys());
    assert!(refusal(&chain, high).contains("does not chain"));
    let early = chain.tip.block().header.timestamp;
    let same_slot = forge(&|draft| draft.timestamp = early, owners_keys());
    assert!(refusal(&chain, same_slot).contains("does not chain"));
    let twice = forge(&|draft| draft.transactions.push(draft.transactions[0].clone()), owners_keys());
    assert!(refusal(&chain, twice).contains("duplicate transaction"));
    // One header, other transactions: what is known of a block is not believed of another with its id.
    let whole = forge(&|_| {}, owners_keys());
    let header = whole.header.clone();
    chain.tree.extend(&chain.tip, &Arc::new(whole)).expect("nothing is wrong with it");
    let emptied = Block::new(Block::forge(draft_of(&chain, &good), owners_keys(), milestones).id, header, Vec::new());
    assert!(refusal(&chain, emptied).contains("Invalid number of transactions"));
    let renamed = Block::new(chain.tip.id(), good.header.clone(), Vec::new());
    assert!(refusal(&chain, renamed).contains("its id should be"));
}
