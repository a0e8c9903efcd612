//! A small network on which stages are played.

use super::{Attempt, Flaw, Stage, Try};
use crate::{
    ledger::{ApplyError, BlockRejected, BlockTree, Link, Rules, State, apply::Look, tree::SPAN},
    protocol::{
        Arktoshi, Block, BlockDraft, KeyPair, Nonce, PublicKey, SignedTransaction, Slot, Timestamp, Transaction,
        TransactionId, Vote,
        crypto::{CryptoMode, sha256},
        keys::multisignature_key,
        transaction::{Expiration, Payment, TransactionBuilder},
    },
    scenario::{Testnet, testnet::rules_for},
    sim::SeedTree,
};
use indexmap::IndexMap;
use std::sync::Arc;

const DELEGATES: u32 = 5;
const CRYPTO: CryptoMode = CryptoMode::Real;
const SECRET: [u8; 32] = [9; 32];

/// A chain of five delegates, and what can be tried on it.
pub struct Play {
    /// The network: its configuration, and the keys of delegates and accounts.
    pub testnet: Testnet,
    /// All blocks played so far, on every fork.
    pub tree: Arc<BlockTree>,
    /// The block the next stage is played on.
    pub tip: Arc<Link>,
    senders: Vec<KeyPair>,
    locks: Vec<TransactionId>,
    /// Participants and least number of the last shared wallet.
    shared: Option<(Vec<usize>, u8)>,
}

/// The result of a stage.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The transactions in the new block.
    pub forged: Vec<Arc<SignedTransaction>>,
    /// The transactions that the state before their place in the block refused, with the reasons.
    pub refused: Vec<(Arc<SignedTransaction>, ApplyError)>,
}

impl Play {
    /// The senders: accounts, and three of the delegates, so that one can resign when another has registered.
    pub const SENDERS: usize = 8;

    /// A chain of two blocks: from then on version 2 is allowed. Locks may be short.
    ///
    /// # Panics
    /// Never: the network is always the same.
    pub fn new() -> Self {
        Self::with_span(SPAN)
    }

    /// The same chain on a tree with a seam every `span` blocks ([`BlockTree::with_span`]).
    ///
    /// # Panics
    /// `span` is 0.
    pub fn with_span(span: u32) -> Self {
        Self::with_rules(span, |_| {})
    }

    /// The same chain under changed rules.
    ///
    /// # Panics
    /// `span` is 0.
    pub fn with_rules(span: u32, change: impl FnOnce(&mut Rules)) -> Self {
        let testnet = Testnet::generate(SeedTree::new(1), DELEGATES, CRYPTO);
        let mut rules = rules_for(DELEGATES as usize);
        rules.ledger.minimum_lock_expiration = false;
        change(&mut rules);
        let tree = BlockTree::with_span(testnet.config.clone(), Arc::new(rules), span).map(Arc::new);
        let tree = tree.expect("it has its delegates");
        let accounts = testnet.accounts.iter().take(Self::SENDERS - 3).map(|account| account.keys.clone());
        let delegates = testnet.delegates.iter().take(3).map(|delegate| delegate.keys.clone());
        let senders = accounts.chain(delegates).collect();
        let tip = tree.genesis().clone();
        let mut play = Self { testnet, tree, tip, senders, locks: Vec::new(), shared: None };
        play.extend(0, Vec::new()).expect("an empty block");
        play
    }

    /// Goes back, tries everything in order, and forges a block of what fits.
    ///
    /// # Errors
    /// The ledger refuses a block of transactions that it accepted one by one, and so contradicts itself.
    pub fn play(&mut self, stage: &Stage) -> Result<Outcome, BlockRejected> {
        for _ in 0..stage.back {
            self.tip = self.tip.parent().filter(|parent| parent.height().0 > 1).unwrap_or_else(|| self.tip.clone());
        }
        let mut outcome = Outcome::default();
        let before = self.tree.applied(&self.tip);
        let waits = self.tree.rules().ledger.multi_signature_waits_for_block;
        let mut scratch = before.state.clone();
        for one in &stage.tries {
            let transaction = Arc::new(self.transaction(one, &scratch));
            // This block registers its wallet, and signatures are checked against the state before the block
            // (Q21).
            if waits && scratch.vouches_for(&transaction, CRYPTO) && !before.state.vouches_for(&transaction, CRYPTO) {
                continue;
            }
            let terms = self.tree.terms(self.tip.height());
            match scratch.try_apply(&transaction, self.slot_start(stage.missed), &terms) {
                Ok(()) => {
                    self.took(one, &transaction);
                    outcome.forged.push(transaction);
                }
                Err(why) => outcome.refused.push((transaction, why)),
            }
        }
        self.extend(stage.missed, outcome.forged.clone())?;
        Ok(outcome)
    }

    /// The block that would follow the tip after `missed` empty slots.
    ///
    /// # Panics
    /// Never: an active delegate is one of the genesis delegates or a sender.
    pub fn block(&self, missed: u32, transactions: Vec<Arc<SignedTransaction>>) -> Arc<Block> {
        let timestamp = self.slot_start(missed);
        let applied = self.tree.applied(&self.tip);
        let slot = self.tree.slots().slot(timestamp);
        let owner = applied.state.round().owner(slot).expect("the rules have an owner for each slot").public_key;
        let forgers = self.testnet.delegates.iter().map(|delegate| &delegate.keys);
        let keys =
            forgers.chain(&self.senders).find(|keys| *keys.public() == owner).expect("an active delegate forges");
        let milestones = &self.testnet.config.milestones;
        let draft = BlockDraft {
            timestamp,
            height: self.tip.height().next(),
            previous: Some(self.tip.id()),
            reward: milestones.at(self.tip.height().next()).reward,
            version: 0,
            transactions,
        };
        Arc::new(Block::forge(draft, keys, milestones))
    }

    fn extend(&mut self, missed: u32, transactions: Vec<Arc<SignedTransaction>>) -> Result<(), BlockRejected> {
        self.tip = self.tree.extend(&self.tip, &self.block(missed, transactions))?;
        Ok(())
    }

    fn slot_start(&self, missed: u32) -> Timestamp {
        let slots = self.tree.slots();
        slots.start(Slot(slots.slot(self.tip.block().header.timestamp).0 + 1 + missed))
    }

    /// Notes what later attempts refer to.
    fn took(&mut self, one: &Try, transaction: &SignedTransaction) {
        match &one.attempt {
            Attempt::Lock { .. } => self.locks.push(transaction.id()),
            Attempt::MultiSignature { first, min, .. } => self.shared = Some((participants(*first), *min)),
            _ => {}
        }
    }

    fn transaction(&self, one: &Try, state: &State) -> SignedTransaction {
        let keys = &self.senders[one.sender % Self::SENDERS];
        if let (Attempt::SpendTogether { signers, .. }, Some((owners, min))) = (&one.attempt, &self.shared) {
            return self.signed_together(one, owners, *min, *signers, state);
        }
        let builder = self.complete(one, keys.public(), state);
        if let Attempt::MultiSignature { first, whole, .. } = &one.attempt {
            let signing = participants(*first).into_iter().take(if *whole { 3 } else { 2 }).enumerate();
            let unsigned = signing.fold(builder.sender(*keys.public()), |unsigned, (index, owner)| {
                unsigned.multi_sign(index as u8, &self.senders[owner])
            });
            return self.second(one, unsigned.sign(keys).finish(), state);
        }
        self.second(one, builder.sign(keys), state)
    }

    /// Adds the second signature that the sender's wallet requires, or one by a wrong key.
    fn second(&self, one: &Try, transaction: SignedTransaction, state: &State) -> SignedTransaction {
        let wallet = state.wallet(&transaction.sender_address());
        if one.flaw == Some(Flaw::WrongSecondKey) {
            return transaction.second_sign(&self.senders[0]);
        }
        match wallet.and_then(|wallet| wallet.second_public_key) {
            Some(_) => transaction.second_sign(&second_key()),
            None => transaction,
        }
    }

    /// One of the senders, or the last wallet of three participants.
    fn recipient(&self, index: usize) -> PublicKey {
        match &self.shared {
            Some((owners, min)) if index % (Self::SENDERS + 1) == Self::SENDERS => self.shared_key(owners, *min),
            _ => *self.senders[index % Self::SENDERS].public(),
        }
    }

    fn shared_key(&self, owners: &[usize], min: u8) -> PublicKey {
        let publics: Vec<PublicKey> = owners.iter().map(|owner| *self.senders[*owner].public()).collect();
        multisignature_key(min, &publics).expect("keys on the curve have a sum")
    }

    fn signed_together(
        &self,
        one: &Try,
        owners: &[usize],
        min: u8,
        signers: usize,
        state: &State,
    ) -> SignedTransaction {
        let wallet = self.shared_key(owners, min);
        let unsigned = self.complete(one, &wallet, state).sender(wallet);
        let signing = owners.iter().enumerate().take(signers);
        signing
            .fold(unsigned, |unsigned, (index, owner)| unsigned.multi_sign(index as u8, &self.senders[*owner]))
            .finish()
    }

    /// Builds a transaction with its nonce and fee, which the flaw may make wrong.
    fn complete(&self, one: &Try, sender: &PublicKey, state: &State) -> TransactionBuilder {
        let wallet = state.wallet(&sender.address(state.network_byte()));
        let nonce = wallet.map_or(0, |wallet| wallet.nonce.0);
        let builder = self.build(&one.attempt, state).nonce(Nonce(match one.flaw {
            Some(Flaw::NonceGap) => nonce + 2,
            Some(Flaw::NonceAgain) => nonce.max(1),
            _ => nonce + 1,
        }));
        match one.flaw {
            Some(Flaw::Fee) => builder.fee(Arktoshi::coins(100_000_000)),
            _ => builder,
        }
    }

    fn build(&self, attempt: &Attempt, state: &State) -> TransactionBuilder {
        let address = |index: usize| self.recipient(index).address(state.network_byte());
        let delegate = |index: usize| {
            let delegates: Vec<_> = state.delegates().collect();
            delegates[index % delegates.len()].public_key.expect("a delegate's key is known")
        };
        let lock = |index: usize| match self.locks.len() {
            0 => TransactionId([7; 32]),
            count => self.locks[index % count],
        };
        let coin = |value| Arktoshi::new(value).expect("the strategies stay within range");
        match attempt {
            Attempt::Transfer { to, amount } | Attempt::SpendTogether { to, amount, .. } => {
                Transaction::transfer(address(*to), coin(*amount))
            }
            Attempt::SecondSignature => Transaction::second_signature(*second_key().public()),
            Attempt::Register { name } => Transaction::delegate_registration(format!("name_{name}")),
            Attempt::Vote { delegate: index } => Transaction::vote(Vote::For(delegate(*index))),
            Attempt::Unvote { delegate: index } => Transaction::vote(Vote::Against(delegate(*index))),
            Attempt::MultiSignature { first, min, .. } => {
                let keys = participants(*first).into_iter().map(|owner| *self.senders[owner].public()).collect();
                Transaction::multi_signature(*min, keys)
            }
            Attempt::Ipfs { hash } => Transaction::ipfs([vec![0x12, 0x20], vec![*hash; 32]].concat()),
            Attempt::MultiPayment { to, amounts } => {
                let pay = |(to, amount): (&usize, &u64)| Payment { recipient: address(*to), amount: coin(*amount) };
                Transaction::multi_payment(to.iter().zip(amounts).map(pay).collect())
            }
            Attempt::Resign => Transaction::delegate_resignation(),
            Attempt::Lock { to, amount, blocks } => {
                let last = self.tip.height().0.saturating_add_signed((*blocks).into());
                let expiration = Expiration::BlockHeight(last);
                Transaction::htlc_lock(address(*to), coin(*amount), sha256(&SECRET), expiration)
            }
            Attempt::Claim { lock: index, right } => {
                Transaction::htlc_claim(lock(*index), if *right { SECRET } else { [8; 32] })
            }
            Attempt::Refund { lock: index } => Transaction::htlc_refund(lock(*index)),
            Attempt::Business { name } => {
                // An update that does not name a member leaves it as it is.
                let (vat, repository) = (Some("GB123456789".to_owned()), Some("https://a.io/b".to_owned()));
                Transaction::business_registration(format!("Acme {name}"), "https://a.io", vat, repository)
            }
            Attempt::UpdateBusiness { name } => {
                Transaction::business_update(Some(format!("Acme {name} Ltd")), None, None, None)
            }
            Attempt::ResignBusiness => Transaction::business_resignation(),
            Attempt::Bridgechain { name, hash, good_port } => Transaction::bridgechain_registration(
                format!("Chain {name}"),
                vec!["1.2.3.4".to_owned()],
                [*hash; 32],
                "https://a.io/r",
                Some("https://a.io/assets".to_owned()),
                ports(*good_port),
            ),
            Attempt::UpdateBridgechain { hash, good_port } => {
                Transaction::bridgechain_update([*hash; 32], None, Some(ports(*good_port)), None, None)
            }
            Attempt::ResignBridgechain { hash } => Transaction::bridgechain_resignation([*hash; 32]),
        }
    }
}

impl Default for Play {
    fn default() -> Self {
        Self::new()
    }
}

/// Three senders in a row.
fn participants(first: usize) -> Vec<usize> {
    (0..3).map(|next| (first % Play::SENDERS + next) % Play::SENDERS).collect()
}

fn ports(good: bool) -> IndexMap<String, u16> {
    let name = if good { "@arkecosystem/core-api" } else { "Not A Package" };
    IndexMap::from([(name.to_owned(), 4_003)])
}

fn second_key() -> KeyPair {
    KeyPair::from_passphrase("the second key of whoever registers one", CRYPTO)
}
