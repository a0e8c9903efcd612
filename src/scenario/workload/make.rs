//! Makes a transaction of a given type, if the sender's wallet on the chain allows one.

use super::{Kind, SourceContext};
use crate::{
    ledger::{State, Wallet, rules::VoteShare},
    protocol::{
        Address, Arktoshi, KeyPair, Nonce, PublicKey, SignedTransaction, Transaction, TransactionId, Vote,
        crypto::sha256,
        transaction::{Expiration, Payment, TransactionBuilder, UnsignedTransaction},
    },
};
use indexmap::IndexMap;
use rand::{Rng, RngCore};
use rand_xoshiro::SplitMix64;
use std::sync::{Arc, LazyLock};

/// The number of blocks for which a lock lasts beyond a round.
const LOCK_MARGIN: u32 = 20;

/// A sender: its keys, and its second pair once it has registered that.
#[derive(Clone)]
pub(crate) struct Sender {
    pub keys: KeyPair,
    pub address: Address,
    /// The second pair. It is lazy, because hardly any wallet in a mix needs it, and a public key takes long to compute.
    pub second: LazyPair,
    /// Number among the senders, for names that must be unique.
    pub number: u32,
    /// The number of transactions made so far, for the same purpose.
    pub made: u32,
}

/// A pair whose public key is computed on first use. Copies of a workload share it.
pub(crate) type LazyPair = Arc<LazyLock<KeyPair, Box<dyn FnOnce() -> KeyPair + Send>>>;

/// A lock whose secret is known.
#[derive(Clone)]
pub(crate) struct OpenLock {
    pub id: TransactionId,
    pub secret: [u8; 32],
}

/// The ingredients of transactions.
pub(crate) struct Maker<'a> {
    pub network: &'a SourceContext,
    pub state: &'a State,
    pub random: SplitMix64,
    /// Locks made by this workload.
    pub locks: &'a mut Vec<OpenLock>,
    pub amount: Arktoshi,
    /// The recipient. It is drawn if absent.
    pub recipient: Option<Address>,
    /// The length of the vendor field in bytes. If absent, one transfer of ten has a vendor field.
    pub vendor_field: Option<usize>,
    /// A multiple of the static fee.
    pub fee: f64,
}

impl Maker<'_> {
    /// A signed transaction of this type with this nonce, if the sender's wallet allows one now.
    pub fn make(&mut self, kind: Kind, sender: &mut Sender, wallet: &Wallet, nonce: u64) -> Option<SignedTransaction> {
        sender.made += 1;
        let mut builder = match kind {
            Kind::MultiSignature => return self.multi_signature(sender, wallet, nonce),
            Kind::HtlcLock => {
                let (builder, secret) = self.lock();
                let builder = self.with_vendor_field(builder, kind);
                let signed = self.sign(builder, sender, wallet, nonce);
                self.locks.push(OpenLock { id: signed.id(), secret });
                return Some(signed);
            }
            other => self.builder(other, sender, wallet)?,
        };
        if self.vendor_field.is_some() {
            builder = self.with_vendor_field(builder, kind);
        } else if kind == Kind::Transfer && self.random.random_ratio(1, 10) {
            builder = builder.vendor_field(format!("number {}", sender.made));
        }
        Some(self.sign(builder, sender, wallet, nonce))
    }

    /// Adds a vendor field of the given length, as far as the type and the network allow one.
    fn with_vendor_field(&self, builder: TransactionBuilder, kind: Kind) -> TransactionBuilder {
        let next = self.state.height().next();
        let most = self.network.tree.config().milestones.at(next).vendor_field_length.unwrap_or(0);
        match self.vendor_field.filter(|_| kind.has_vendor_field()).map(|length| length.min(most)) {
            None | Some(0) => builder,
            Some(length) => builder.vendor_field("-".repeat(length)),
        }
    }

    fn builder(&mut self, kind: Kind, sender: &Sender, wallet: &Wallet) -> Option<TransactionBuilder> {
        let business = wallet.business.as_deref();
        let active = business.filter(|business| !business.resigned);
        let bridgechain = active.and_then(|business| {
            business.bridgechains.values().find(|bridgechain| !bridgechain.resigned).map(|chain| chain.genesis_hash)
        });
        let name = format!("w{} {}", sender.number, sender.made);
        let website = || format!("https://w{}.example", sender.number);
        Some(match kind {
            Kind::Transfer => Transaction::transfer(self.recipient(), self.amount),
            Kind::SecondSignature if wallet.second_public_key.is_none() => {
                Transaction::second_signature(*sender.second.public())
            }
            Kind::DelegateRegistration if wallet.delegate.is_none() => {
                Transaction::delegate_registration(format!("w{}_{}", sender.number, sender.made))
            }
            Kind::Vote => Transaction::vote(self.vote(wallet)?),
            Kind::Ipfs => {
                let mut multihash = vec![0x12, 0x20];
                multihash.extend(self.bytes());
                Transaction::ipfs(multihash)
            }
            Kind::MultiPayment => {
                let count = self.random.random_range(2..=8);
                let amount = Arktoshi::new((self.amount.value() / count as u64).max(1))?;
                let payment = |maker: &mut Self| Payment { amount, recipient: maker.recipient() };
                Transaction::multi_payment((0..count).map(|_| payment(self)).collect())
            }
            Kind::DelegateResignation => {
                let live = wallet.delegate.as_ref().is_some_and(|delegate| !delegate.resigned);
                let spare = self.state.live_delegates() > self.state.round().members.len();
                if !(live && spare) {
                    return None;
                }
                Transaction::delegate_resignation()
            }
            Kind::HtlcClaim => {
                let lock = self.take_lock(false)?;
                Transaction::htlc_claim(lock.id, lock.secret)
            }
            Kind::HtlcRefund => Transaction::htlc_refund(self.take_lock(true)?.id),
            Kind::BusinessRegistration if business.is_none() => {
                Transaction::business_registration(name, website(), None, None)
            }
            Kind::BusinessResignation if active.is_some() && bridgechain.is_none() => {
                Transaction::business_resignation()
            }
            Kind::BusinessUpdate if active.is_some() => Transaction::business_update(Some(name), None, None, None),
            Kind::BridgechainRegistration if active.is_some() => Transaction::bridgechain_registration(
                name,
                vec!["198.51.100.7".to_owned()],
                self.bytes(),
                website(),
                None,
                IndexMap::from([("@arkecosystem/core-api".to_owned(), 4003)]),
            ),
            Kind::BridgechainResignation => Transaction::bridgechain_resignation(bridgechain?),
            Kind::BridgechainUpdate => {
                let nodes = vec!["198.51.100.8".to_owned(), "198.51.100.9".to_owned()];
                Transaction::bridgechain_update(bridgechain?, Some(nodes), None, None, None)
            }
            _ => return None,
        })
    }

    /// A registration of a wallet of three new keys, two of which must sign.
    fn multi_signature(&mut self, sender: &Sender, wallet: &Wallet, nonce: u64) -> Option<SignedTransaction> {
        let keys: Vec<KeyPair> = (0..3).map(|_| self.keys()).collect();
        let builder = Transaction::multi_signature(2, keys.iter().map(|keys| *keys.public()).collect());
        let mut unsigned = self.finished(builder, nonce).sender(*sender.keys.public());
        for (index, keys) in (0..).zip(&keys) {
            unsigned = unsigned.multi_sign(index, keys);
        }
        Some(signed(unsigned, sender, wallet))
    }

    fn lock(&mut self) -> (TransactionBuilder, [u8; 32]) {
        let secret = self.bytes();
        let round = self.state.round().members.len() as u32;
        let last = self.state.height().0 + round + LOCK_MARGIN;
        let expiration = Expiration::BlockHeight(last);
        (Transaction::htlc_lock(self.recipient(), self.amount, sha256(&secret), expiration), secret)
    }

    /// Takes a lock of the chain that has or has not expired, so that no other transaction uses it.
    fn take_lock(&mut self, expired: bool) -> Option<OpenLock> {
        let (height, timestamp) = (self.state.height(), self.state.timestamp());
        let state = self.state;
        let fits =
            |lock: &OpenLock| state.lock(&lock.id).is_some_and(|lock| lock.is_expired(height, timestamp) == expired);
        let index = self.locks.iter().position(fits)?;
        Some(self.locks.swap_remove(index))
    }

    fn sign(&self, builder: TransactionBuilder, sender: &Sender, wallet: &Wallet, nonce: u64) -> SignedTransaction {
        signed(self.finished(builder, nonce).sender(*sender.keys.public()), sender, wallet)
    }

    /// Adds the network, the nonce and the fee. Claims and refunds must be free.
    fn finished(&self, builder: TransactionBuilder, nonce: u64) -> TransactionBuilder {
        let builder = builder.network(self.network.tree.config().network.pub_key_hash).nonce(Nonce(nonce));
        if self.fee.to_bits() == 1.0_f64.to_bits() {
            return builder;
        }
        let anyone = *self.network.testnet.accounts[0].keys.public();
        let fee = builder.clone().sender(anyone).finish().fee().value();
        let fee = if fee == 0 { 0 } else { ((fee as f64 * self.fee).round() as u64).max(1) };
        builder.fee(Arktoshi::new(fee).unwrap_or(Arktoshi::MAX))
    }

    fn recipient(&mut self) -> Address {
        if let Some(recipient) = self.recipient {
            return recipient;
        }
        let accounts = &self.network.testnet.accounts;
        match self.random.random_range(0..=accounts.len()) {
            // A recipient that is new to the chain.
            0 => {
                let mut address = [self.network.tree.config().network.pub_key_hash; 21];
                address[1..].copy_from_slice(&self.random.random::<[u8; 20]>());
                Address::from_bytes(address)
            }
            number => accounts[number - 1].address,
        }
    }

    /// The next vote of a wallet: another vote until it has the largest number of votes, and then the withdrawal of its first one.
    fn vote(&mut self, wallet: &Wallet) -> Option<Vote> {
        let rule = self.network.tree.rules().ledger.votes;
        match wallet.vote {
            Some(first) if wallet.votes().count() >= rule.most as usize => Some(Vote::Against(first)),
            _ => {
                let key = self.delegate()?;
                let has_all_of_it = rule.weight == VoteShare::Full && wallet.votes().any(|vote| vote == key);
                Some(if has_all_of_it { Vote::Against(key) } else { Vote::For(key) })
            }
        }
    }

    /// Draws an active delegate. `None` if it has resigned.
    fn delegate(&mut self) -> Option<PublicKey> {
        let members = &self.state.round().members;
        let key = members[self.random.random_range(0..members.len())].public_key;
        self.state.delegate_of(&key).filter(|delegate| !delegate.resigned).map(|_| key)
    }

    fn keys(&mut self) -> KeyPair {
        let crypto = self.network.tree.config().crypto;
        loop {
            if let Ok(keys) = KeyPair::from_private(self.bytes(), crypto) {
                return keys;
            }
        }
    }

    fn bytes(&mut self) -> [u8; 32] {
        let mut bytes = [0; 32];
        self.random.fill_bytes(&mut bytes);
        bytes
    }
}

/// Signs for the sender, and a second time if its wallet has a second key.
fn signed(unsigned: UnsignedTransaction, sender: &Sender, wallet: &Wallet) -> SignedTransaction {
    let once = unsigned.sign(&sender.keys);
    match wallet.second_public_key {
        Some(_) => once.second_sign(&sender.second).finish(),
        None => once.finish(),
    }
}

/// Returns true if later transactions of the sender must wait until one of this type is on the chain.
pub(crate) fn holds_up(kind: Kind) -> bool {
    !matches!(kind, Kind::Transfer | Kind::MultiPayment | Kind::Ipfs | Kind::HtlcLock)
}
