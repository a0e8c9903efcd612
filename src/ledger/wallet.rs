//! A wallet and its attributes. Source: consensus.md 4.1.

use super::{Balance, votes::LaterVote};
use crate::protocol::{
    Address, Arktoshi, Asset, Block, Height, Nonce, PublicKey, SignedTransaction, Timestamp, TransactionId,
    transaction::Expiration,
};
use indexmap::IndexMap;
use std::{
    collections::BTreeMap,
    ops::{Deref, DerefMut},
    sync::Arc,
};

/// All the chain knows of an address. Its attributes read as fields of the wallet: `vote`, `second_public_key`, `multi_signature`,
/// `delegate`, `htlc`, `ipfs` and `business`.
///
/// A network of a million wallets holds several copies of most of them, one for each state in which they differ. So the wallet is
/// small, and copies share the attributes until one of them changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wallet {
    /// Its place in the order in which the chain first named addresses, from 0.
    pub first_seen: u32,
    /// The address, by which the state finds the wallet.
    pub address: Address,
    /// `None` while the wallet is cold: it has only received.
    pub public_key: Option<PublicKey>,
    /// The coin that the wallet can spend, without that in open locks. It is below 0 for the sender of the genesis transfers, and where the
    /// network's exceptions list it.
    pub balance: Balance,
    /// Number of transactions sent.
    pub nonce: Nonce,
    pub(super) attributes: SharedAttributes,
}

/// Attributes of a wallet; `None` while it has never had one.
#[derive(Clone, Debug, Default)]
pub(super) struct SharedAttributes(pub(super) Option<Arc<Attributes>>);

/// Parts of a wallet that most wallets lack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// The delegate voted for; the first one, if there are several.
    pub vote: Option<PublicKey>,
    /// The address of that delegate, which costs a hash to compute.
    pub(super) vote_address: Option<Address>,
    /// Further votes, oldest first. `None` without any.
    pub(super) later_votes: Option<Arc<Vec<LaterVote>>>,
    /// The key that signs in addition to the first. `None` without a second signature.
    pub second_public_key: Option<PublicKey>,
    /// The participants, if it is a multisignature wallet.
    pub multi_signature: Option<Arc<MultiSignature>>,
    /// The delegate, resigned or not, if the wallet has registered one.
    pub delegate: Option<Arc<DelegateAttributes>>,
    /// Open locks; `None` until the wallet's first one, and empty from then on between two.
    pub htlc: Option<Arc<Htlc>>,
    /// Registered multihashes, oldest first.
    pub ipfs: Option<Arc<Vec<Vec<u8>>>>,
    /// The business, resigned or not, if the wallet has registered one.
    pub business: Option<Arc<Business>>,
}

/// The attributes of a wallet without any.
static NO_ATTRIBUTES: Attributes = Attributes {
    vote: None,
    vote_address: None,
    later_votes: None,
    second_public_key: None,
    multi_signature: None,
    delegate: None,
    htlc: None,
    ipfs: None,
    business: None,
};

impl SharedAttributes {
    fn get(&self) -> &Attributes {
        self.0.as_deref().unwrap_or(&NO_ATTRIBUTES)
    }
}

impl Deref for Wallet {
    type Target = Attributes;

    fn deref(&self) -> &Attributes {
        self.attributes.get()
    }
}

impl DerefMut for Wallet {
    fn deref_mut(&mut self) -> &mut Attributes {
        Arc::make_mut(self.attributes.0.get_or_insert_default())
    }
}

/// Compares values: a wallet that has lost its last attribute equals one that never had any.
impl PartialEq for SharedAttributes {
    fn eq(&self, other: &Self) -> bool {
        let is_same = self.0.as_ref().zip(other.0.as_ref()).is_some_and(|(one, other)| Arc::ptr_eq(one, other));
        is_same || self.get() == other.get()
    }
}

impl Eq for SharedAttributes {}

impl Wallet {
    /// An empty, cold wallet.
    pub fn cold(address: Address, first_seen: u32) -> Self {
        Self {
            first_seen,
            address,
            public_key: None,
            balance: Balance::ZERO,
            nonce: Nonce(0),
            attributes: SharedAttributes::default(),
        }
    }

    /// The username, if the wallet is a delegate, resigned or not.
    pub fn username(&self) -> Option<&str> {
        self.delegate.as_deref().map(|delegate| &*delegate.username)
    }

    /// The coin that determines the weight of the wallet's votes: balance plus locked balance.
    pub fn weight(&self) -> Balance {
        self.balance + self.locked_balance()
    }

    /// Coin in open locks.
    pub fn locked_balance(&self) -> Balance {
        self.htlc.as_ref().map_or(Balance::ZERO, |htlc| htlc.locked_balance)
    }

    pub(super) fn htlc_mut(&mut self) -> &mut Htlc {
        Arc::make_mut(self.htlc.get_or_insert_default())
    }

    pub(super) fn business_mut(&mut self) -> Option<&mut Business> {
        Arc::make_mut(self.attributes.0.as_mut()?).business.as_mut().map(Arc::make_mut)
    }

    pub(super) fn delegate_mut(&mut self) -> Option<&mut DelegateAttributes> {
        Arc::make_mut(self.attributes.0.as_mut()?).delegate.as_mut().map(Arc::make_mut)
    }
}

/// The data of a delegate besides its wallet. Source: consensus.md 1.6.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DelegateAttributes {
    /// The username, which stays taken after a resignation.
    pub username: Arc<str>,
    /// Its place in the order in which the chain registered delegates, from 0.
    pub registered: u32,
    /// The vote weight: the sum of the weights of its votes. By default a vote weighs all coin of the voter, that in open locks
    /// included.
    pub vote_balance: Balance,
    /// The sum of the fees of its blocks.
    pub forged_fees: Balance,
    /// The sum of the rewards of its blocks.
    pub forged_rewards: Balance,
    /// The number of its blocks on the chain.
    pub produced_blocks: u32,
    /// Slots the delegate owned and left empty.
    pub missed_blocks: u32,
    /// 1 is the heaviest; renewed at every round boundary, `None` before the first one and once resigned.
    pub rank: Option<u32>,
    /// The last round the delegate was active in.
    pub round: u32,
    /// True if it has resigned, which is for good.
    pub resigned: bool,
    /// The last block that it forged. `None` before the first.
    pub last_block: Option<LastBlock>,
}

impl DelegateAttributes {
    pub(super) fn new(username: Arc<str>) -> Self {
        Self {
            username,
            registered: 0,
            vote_balance: Balance::ZERO,
            forged_fees: Balance::ZERO,
            forged_rewards: Balance::ZERO,
            produced_blocks: 0,
            missed_blocks: 0,
            rank: None,
            round: 0,
            resigned: false,
            last_block: None,
        }
    }
}

/// The last block a delegate forged on this chain; equal by id.
#[derive(Clone, Debug)]
pub struct LastBlock(pub Arc<Block>);

impl PartialEq for LastBlock {
    fn eq(&self, other: &Self) -> bool {
        self.0.id == other.0.id
    }
}

impl Eq for LastBlock {}

/// The keys that may spend from a multisignature wallet: any `min` of these keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MultiSignature {
    /// The number of signatures that a transaction needs, at least 1.
    pub min: u8,
    /// The keys, in the order that signatures count them.
    pub public_keys: Vec<PublicKey>,
}

/// A wallet's open hashed-timelock locks, by the id of the transaction that made them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Htlc {
    /// The open locks, by the id of the transaction that made each.
    pub locks: BTreeMap<TransactionId, Lock>,
    /// The sum of their amounts.
    pub locked_balance: Balance,
}

/// An open lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lock {
    /// The locked coin.
    pub amount: Arktoshi,
    /// The address that a claim pays.
    pub recipient: Address,
    /// The time of the block that holds it.
    pub timestamp: Timestamp,
    /// The vendor field of the transaction that made it.
    pub vendor_field: Option<String>,
    /// The SHA256 of the secret that a claim has to show.
    pub secret_hash: [u8; 32],
    /// The height or time of expiration. Once a block has reached it, later blocks can refund the lock and no longer claim it.
    pub expiration: Expiration,
}

impl Lock {
    /// The lock that a transaction makes as part of a block of this time; nothing if it is of another type.
    pub(super) fn of(transaction: &SignedTransaction, block: Timestamp) -> Option<Self> {
        let Asset::HtlcLock { amount, secret_hash, expiration, recipient } = transaction.asset() else { return None };
        Some(Self {
            amount: *amount,
            recipient: *recipient,
            timestamp: block,
            vendor_field: transaction.transaction().vendor_field.clone(),
            secret_hash: *secret_hash,
            expiration: *expiration,
        })
    }

    /// Returns true if it is past its expiration after a block of this height and time. Source: consensus.md 4.5.
    pub fn is_expired(&self, height: Height, timestamp: Timestamp) -> bool {
        match self.expiration {
            Expiration::EpochTime(seconds) => seconds <= timestamp.0,
            Expiration::BlockHeight(last) => last <= height.0,
        }
    }
}

/// A registered business, with its bridgechains in the order of registration, by genesis hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Business {
    /// The name, as last updated.
    pub name: String,
    /// The URL of its website.
    pub website: String,
    /// Its VAT number.
    pub vat: Option<String>,
    /// The URL of its repository.
    pub repository: Option<String>,
    /// True if it has resigned, which is for good.
    pub resigned: bool,
    /// Its bridgechains, by genesis hash, in the order of registration.
    pub bridgechains: IndexMap<[u8; 32], Bridgechain>,
}

/// A registered bridgechain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bridgechain {
    /// The name, unique in any case among those of the business.
    pub name: String,
    /// The IP addresses of its seed nodes.
    pub seed_nodes: Vec<String>,
    /// The hash of its genesis block, which is its id.
    pub genesis_hash: [u8; 32],
    /// The URL of its repository.
    pub repository: String,
    /// The URL of the repository of its assets.
    pub asset_repository: Option<String>,
    /// The ports by the name of the package that uses each.
    pub ports: IndexMap<String, u16>,
    /// True if it has resigned, which is for good.
    pub resigned: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_shared_until_one_changes() {
        let key = PublicKey::from_bytes([2; 33]);
        let mut voter = Wallet::cold(Address::from_bytes([23; 21]), 0);
        let cold = voter.clone();
        voter.vote = Some(key);
        let mut copy = voter.clone();
        copy.balance += Balance::from(Arktoshi::coins(1));
        assert!(std::ptr::eq(&*voter, &*copy), "a balance is no attribute");
        copy.vote = None;
        assert_eq!(voter.vote, Some(key), "the other wallet keeps its vote");
        copy.balance = Balance::ZERO;
        assert_eq!(copy, cold, "a wallet that votes no more is as one that never has");
        assert_ne!(voter, cold);
    }

    /// A network of a million wallets holds a few million of them.
    #[test]
    fn a_wallet_takes_no_more_than_96_bytes() {
        assert!(size_of::<Wallet>() <= 96, "{}", size_of::<Wallet>());
    }
}
