//! Blocks that no honest delegate makes.

use super::{FalseClaim, InvalidBlock, lie_about_tip::Lie};
use crate::{
    actors::{Delegate, message::RoundView},
    ledger::{BlockTree, codec::saved},
    protocol::{
        Arktoshi, Block, BlockDraft, BlockHeader, BlockId, Height, KeyPair, Milestones, Nonce, SignedTransaction, Slot,
        Timestamp, Transaction,
        crypto::{ecdsa, sha256_of},
        transaction::{Payment, TransactionBuilder},
    },
};
use std::sync::Arc;

/// An empty block for a slot, on the tip that a relay reports.
pub(crate) fn empty(view: &RoundView, slot: Slot, keys: &KeyPair, tree: &BlockTree) -> Block {
    let milestones = &tree.config().milestones;
    let height = view.tip_height.next();
    let draft = BlockDraft {
        version: milestones.at(height).block.version,
        timestamp: tree.slots().start(slot),
        height,
        previous: Some(view.tip),
        reward: milestones.at(height).reward,
        transactions: Vec::new(),
    };
    Block::forge(draft, keys, milestones)
}

/// A second block for the same slot. It has the same content, one second later.
pub(crate) fn twin(block: &Block, keys: &KeyPair, milestones: &Milestones) -> Block {
    let mut header = block.header.clone();
    header.timestamp = Timestamp(header.timestamp.0 + 1);
    signed(header, block.transactions.clone(), keys, milestones)
}

/// More transactions of a delegate than fit into a block. They take megabytes, so they are reused while they are valid.
#[derive(Clone, Debug, Default)]
pub(crate) struct Oversize {
    transactions: Vec<Arc<SignedTransaction>>,
    bytes: usize,
}

impl Oversize {
    fn of(&mut self, forgery: &Forgery<'_>, limit: usize) -> Vec<Arc<SignedTransaction>> {
        let mut nonce = Nonce(forgery.nonce() + 1);
        let is_next = self.transactions.first().is_some_and(|first| first.nonce() == Some(nonce));
        if !is_next || self.bytes <= limit {
            *self = Self::default();
            while self.bytes <= limit {
                let transaction = forgery.own(Transaction::multi_payment(forgery.payments()), nonce.0);
                self.bytes += transaction.size();
                self.transactions.push(transaction);
                nonce.0 += 1;
            }
        }
        self.transactions.clone()
    }
}

/// The block with one rule broken and everything else valid.
pub(crate) fn broken(block: &Block, rule: InvalidBlock, delegate: &Delegate, oversize: &mut Oversize) -> Block {
    let Some(keys) = delegate.keys() else { return block.clone() };
    let milestones = &delegate.tree().config().milestones;
    let mut forgery =
        Forgery { header: block.header.clone(), transactions: block.transactions.clone(), delegate, keys };
    forgery.apply(rule, milestones, oversize);
    let Forgery { mut header, transactions, .. } = forgery;
    match rule {
        // A signature without the key: its bytes sign another hash.
        InvalidBlock::Signature => {
            header.signature = ecdsa::sign(&sha256_of(&[b"another block"]), keys);
            Block::new(header.id(milestones), header, transactions)
        }
        InvalidBlock::Id => {
            let block = signed(header, transactions, keys, milestones);
            Block::new(other(block.id), block.header, block.transactions)
        }
        _ => signed(header, transactions, keys, milestones),
    }
}

/// An id that differs in one bit.
fn other(id: BlockId) -> BlockId {
    match id {
        BlockId::Numeric(number) => BlockId::Numeric(number ^ 1),
        BlockId::Full(mut hash) => {
            hash[0] ^= 1;
            BlockId::Full(hash)
        }
    }
}

/// The tip that a liar claims instead of its own.
pub(crate) fn claimed(tip: &Block, lie: &Lie, tree: &BlockTree) -> Block {
    let (mut header, slots) = (tip.header.clone(), tree.slots());
    match lie.claim {
        FalseClaim::Height => header.height = claimed_height(header.height, lie.by),
        FalseClaim::Slot => {
            let slot = slots.slot(header.timestamp).0.saturating_add_signed(lie.by);
            header.timestamp = slots.start(Slot(slot));
        }
        FalseClaim::Id => {}
    }
    let claimed = match &lie.keys {
        Some(keys) => {
            header.generator = *keys.public();
            signed(header, tip.transactions.clone(), keys, &tree.config().milestones)
        }
        None => Block::new(tip.id, header, tip.transactions.clone()),
    };
    match lie.claim {
        FalseClaim::Id => Block::new(other(claimed.id), claimed.header, claimed.transactions),
        FalseClaim::Height | FalseClaim::Slot => claimed,
    }
}

/// A height moved by `by` blocks; not below genesis.
pub(crate) fn claimed_height(height: Height, by: i32) -> Height {
    Height(height.0.saturating_add_signed(by).max(Height::GENESIS.0))
}

/// A block in the making.
struct Forgery<'a> {
    header: BlockHeader,
    transactions: Vec<Arc<SignedTransaction>>,
    delegate: &'a Delegate,
    keys: &'a KeyPair,
}

impl Forgery<'_> {
    fn apply(&mut self, rule: InvalidBlock, milestones: &Milestones, oversize: &mut Oversize) {
        let milestone = milestones.at(self.header.height);
        let tree = self.delegate.tree();
        match rule {
            InvalidBlock::Signature | InvalidBlock::Id => {}
            InvalidBlock::PreviousBlock => self.header.previous = None,
            InvalidBlock::Reward => self.header.reward = more(self.header.reward),
            InvalidBlock::Version => self.header.version += 1,
            InvalidBlock::Timestamp => {
                let slot = tree.slots().slot(self.header.timestamp);
                let turns = milestone.active_delegates * tree.rules().ledger.slots_a_turn;
                self.header.timestamp = tree.slots().start(Slot(slot.0 + turns));
            }
            InvalidBlock::PayloadSize => self.holds(oversize.of(self, milestone.block.max_payload)),
            InvalidBlock::TransactionSignature => {
                let mut content = self.transfer(self.nonce() + 1, 1).transaction().clone();
                if let Some(byte) = content.signature.as_mut().and_then(|signature| signature.last_mut()) {
                    *byte ^= 1;
                }
                self.holds(vec![Arc::new(SignedTransaction::new(content))]);
            }
            InvalidBlock::NumberOfTransactions => self.header.number_of_transactions += 1,
            InvalidBlock::TooManyTransactions => {
                let first = self.nonce() + 1;
                let count = milestone.block.max_transactions as u64 + 1;
                self.holds((first..first + count).map(|nonce| self.transfer(nonce, 1)).collect());
            }
            InvalidBlock::DuplicateTransaction => {
                let transaction = self.transfer(self.nonce() + 1, 1);
                self.holds(vec![transaction.clone(), transaction]);
            }
            InvalidBlock::ExpiredTransaction => {
                let transfer = self.to_self(1).expiration(self.header.height.0);
                self.holds(vec![self.own(transfer, self.nonce() + 1)]);
            }
            InvalidBlock::FutureTransaction => {
                let late = Timestamp(self.header.timestamp.0 + 3_600 + 2 * milestone.blocktime);
                let transfer = self.to_self(1).version_one(late).fee(FEE).sign(self.keys);
                self.holds(vec![Arc::new(transfer)]);
            }
            InvalidBlock::TotalAmount => self.header.total_amount = more(self.header.total_amount),
            InvalidBlock::TotalFee => self.header.total_fee = more(self.header.total_fee),
            InvalidBlock::PayloadHash => self.header.payload_hash[0] ^= 1,
            InvalidBlock::Nonce => self.holds(vec![self.transfer(self.nonce() + 2, 1)]),
            InvalidBlock::Overspent => {
                let all = tree.config().genesis.block.header.total_amount;
                self.holds(vec![self.transfer(self.nonce() + 1, all.value())]);
            }
            InvalidBlock::MixedVersions => {
                let old = self.to_self(1).version_one(self.header.timestamp).fee(FEE).sign(self.keys);
                let new = self.transfer(self.nonce() + 1, 1);
                self.holds(vec![new, Arc::new(old)]);
            }
        }
    }

    /// Replaces the block's transactions, and computes its totals from the new ones.
    fn holds(&mut self, transactions: Vec<Arc<SignedTransaction>>) {
        let header = &self.header;
        let draft = BlockDraft {
            timestamp: header.timestamp,
            height: header.height,
            previous: header.previous,
            reward: header.reward,
            version: header.version,
            transactions,
        };
        let block = Block::forge(draft, self.keys, &self.delegate.tree().config().milestones);
        (self.header, self.transactions) = (block.header, block.transactions);
    }

    /// The delegate's last nonce on the chain it builds on.
    fn nonce(&self) -> u64 {
        let tree = self.delegate.tree();
        let parent = self.header.previous.and_then(|id| tree.link(&id));
        let state = parent.map(|parent| tree.applied(&parent));
        let address = self.keys.public().address(self.network());
        state.and_then(|applied| Some(applied.state.wallet(&address)?.nonce.0)).unwrap_or(0)
    }

    fn transfer(&self, nonce: u64, amount: u64) -> Arc<SignedTransaction> {
        self.own(self.to_self(amount), nonce)
    }

    fn to_self(&self, amount: u64) -> TransactionBuilder {
        let amount = Arktoshi::new(amount).unwrap_or(Arktoshi::MAX);
        Transaction::transfer(self.keys.public().address(self.network()), amount)
    }

    fn payments(&self) -> Vec<Payment> {
        let recipient = self.keys.public().address(self.network());
        let amount = Arktoshi::new(1).expect("one is an amount");
        vec![Payment { amount, recipient }; PAYMENTS]
    }

    fn own(&self, builder: TransactionBuilder, nonce: u64) -> Arc<SignedTransaction> {
        Arc::new(builder.network(self.network()).nonce(Nonce(nonce)).fee(FEE).sign(self.keys))
    }

    fn network(&self) -> u8 {
        self.delegate.tree().config().network.pub_key_hash
    }
}

/// The fee of these transactions.
const FEE: Arktoshi = Arktoshi::coins(1);
/// The number of recipients of one payment, twice the limit of the testnet. With fewer, a block's largest number of
/// transactions would not exceed its payload limit.
const PAYMENTS: usize = 512;

fn more(amount: Arktoshi) -> Arktoshi {
    Arktoshi::new(amount.value() + 1).unwrap_or(amount)
}

fn signed(
    mut header: BlockHeader,
    transactions: Vec<Arc<SignedTransaction>>,
    keys: &KeyPair,
    milestones: &Milestones,
) -> Block {
    header.signature = ecdsa::sign(&header.hash_for_signature(milestones), keys);
    Block::new(header.id(milestones), header, transactions)
}

saved!(struct Oversize { transactions, bytes });
