//! The members of a wallet, in types that the checker defines itself. Two equal accounts look the same through any
//! API. Order counts where the chain keeps one (hashes, bridgechains, ports). Source: consensus.md 4.1.

use crate::{
    ledger::{
        Wallet,
        wallet::{Bridgechain, Business, DelegateAttributes, Htlc, Lock, MultiSignature},
    },
    protocol::{Address, BlockId, PublicKey, TransactionId},
};
use std::{
    collections::BTreeMap,
    fmt::{self, Debug},
    sync::Arc,
};

/// Bytes that people read in hexadecimal digits.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Hex<T>(pub T);

impl<T: AsRef<[u8]>> Debug for Hex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(&self.0))
    }
}

/// The content of a wallet, including the vote weight and the figures of its delegate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Account {
    pub balance: i128,
    pub nonce: u64,
    pub key: Option<PublicKey>,
    /// The delegate of each vote, oldest first.
    pub votes: Vec<PublicKey>,
    pub second: Option<PublicKey>,
    pub owners: Option<Owners>,
    pub delegate: Option<Delegate>,
    /// `None` before the first lock.
    pub htlc: Option<Locks>,
    /// `None` before the first hash; oldest first.
    pub hashes: Option<Vec<Hex<Vec<u8>>>>,
    pub business: Option<Firm>,
}

/// The keys that control a multisignature wallet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Owners {
    pub min: u8,
    pub keys: Vec<PublicKey>,
}

/// A delegate's attributes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Delegate {
    pub username: Arc<str>,
    /// Its place among all registrations of the chain.
    pub registered: u32,
    pub resigned: bool,
    pub weight: i128,
    pub rank: Option<u32>,
    pub round: u32,
    pub blocks: u32,
    pub fees: i128,
    pub rewards: i128,
    pub missed: u32,
    /// Id and height of its last block.
    pub last: Option<(BlockId, u32)>,
}

/// A wallet's open locks, and the locked balance that the wallet states.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Locks {
    pub open: BTreeMap<TransactionId, OpenLock>,
    pub sum: i128,
}

/// An open lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OpenLock {
    pub amount: u64,
    pub recipient: Address,
    /// The time of its block, in seconds since the epoch.
    pub time: u32,
    pub vendor_field: Option<String>,
    pub secret_hash: Hex<[u8; 32]>,
    /// Type (1: seconds since the epoch, 2: height) and value.
    pub expires: (u8, u32),
}

/// A business with its bridgechains, oldest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Firm {
    pub name: String,
    pub website: String,
    pub vat: Option<String>,
    pub repository: Option<String>,
    pub resigned: bool,
    pub chains: Vec<Chain>,
}

/// A bridgechain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chain {
    /// The key under which it is filed.
    pub id: Hex<[u8; 32]>,
    pub genesis_hash: Hex<[u8; 32]>,
    pub name: String,
    pub seed_nodes: Vec<String>,
    pub repository: String,
    pub asset_repository: Option<String>,
    pub ports: Vec<(String, u16)>,
    pub resigned: bool,
}

impl Account {
    /// A wallet as it is.
    pub(super) fn of(wallet: &Wallet) -> Self {
        Self {
            balance: wallet.balance.0,
            nonce: wallet.nonce.0,
            key: wallet.public_key,
            votes: wallet.votes().collect(),
            second: wallet.second_public_key,
            owners: wallet.multi_signature.as_deref().map(owners),
            delegate: wallet.delegate.as_deref().map(Delegate::of),
            htlc: wallet.htlc.as_deref().map(locks),
            hashes: wallet.ipfs.as_ref().map(|hashes| hashes.iter().cloned().map(Hex).collect()),
            business: wallet.business.as_deref().map(firm),
        }
    }

    /// Returns the coin in open locks, as the wallet states it.
    pub(super) fn locked(&self) -> i128 {
        self.htlc.as_ref().map_or(0, |htlc| htlc.sum)
    }

    pub(super) fn has_resigned(&self) -> bool {
        self.delegate.as_ref().is_some_and(|delegate| delegate.resigned)
    }

    /// Compares the account at an address with the expected one. Rules of their own judge a delegate's weight, rank
    /// and figures, so these are left out here.
    ///
    /// # Errors
    /// The first attribute that differs: of which wallet, what was found, what was expected.
    pub(super) fn held_against(&self, expected: &Self, address: &Address) -> Result<(), String> {
        let of = |attribute| Attribute { attribute, address };
        of("balance").same(&self.balance, &expected.balance)?;
        of("locked balance").same(&self.locked(), &expected.locked())?;
        let open = self.htlc.iter().flat_map(|htlc| htlc.open.values()).map(|lock| i128::from(lock.amount)).sum();
        of("coin in open locks").same(&open, &expected.locked())?;
        of("nonce").same(&self.nonce, &expected.nonce)?;
        of("public key").same(&self.key, &expected.key)?;
        of("vote").same(&self.votes, &expected.votes)?;
        of("second public key").same(&self.second, &expected.second)?;
        of("multiSignature").same(&self.owners, &expected.owners)?;
        let named =
            |account: &Self| account.delegate.as_ref().map(|delegate| (delegate.username.clone(), delegate.registered));
        of("delegate.username").same(&named(self), &named(expected))?;
        of("delegate.resigned").same(&self.has_resigned(), &expected.has_resigned())?;
        of("htlc.locks").same(&self.htlc, &expected.htlc)?;
        of("ipfs.hashes").same(&self.hashes, &expected.hashes)?;
        self.business_held_against(expected, address)
    }

    fn business_held_against(&self, expected: &Self, address: &Address) -> Result<(), String> {
        let of = |attribute| Attribute { attribute, address };
        let (Some(found), Some(wanted)) = (&self.business, &expected.business) else {
            return of("business").same(&self.business, &expected.business);
        };
        of("business.name").same(&found.name, &wanted.name)?;
        of("business.website").same(&found.website, &wanted.website)?;
        of("business.vat").same(&found.vat, &wanted.vat)?;
        of("business.repository").same(&found.repository, &wanted.repository)?;
        of("business.resigned").same(&found.resigned, &wanted.resigned)?;
        let ids = |firm: &Firm| firm.chains.iter().map(|chain| chain.id.clone()).collect::<Vec<_>>();
        of("business.bridgechains").same(&ids(found), &ids(wanted))?;
        for (found, wanted) in found.chains.iter().zip(&wanted.chains) {
            of("bridgechain.genesisHash").same(&found.genesis_hash, &wanted.genesis_hash)?;
            of("bridgechain.name").same(&found.name, &wanted.name)?;
            of("bridgechain.seedNodes").same(&found.seed_nodes, &wanted.seed_nodes)?;
            of("bridgechain.bridgechainRepository").same(&found.repository, &wanted.repository)?;
            of("bridgechain.bridgechainAssetRepository").same(&found.asset_repository, &wanted.asset_repository)?;
            of("bridgechain.ports").same(&found.ports, &wanted.ports)?;
            of("bridgechain.resigned").same(&found.resigned, &wanted.resigned)?;
        }
        Ok(())
    }
}

/// An attribute of a wallet.
struct Attribute<'a> {
    attribute: &'static str,
    address: &'a Address,
}

impl Attribute<'_> {
    fn same<T: PartialEq + Debug>(&self, found: &T, expected: &T) -> Result<(), String> {
        if found == expected {
            return Ok(());
        }
        Err(format!("{} of {}: found {found:?}, expected {expected:?}", self.attribute, self.address))
    }
}

fn owners(MultiSignature { min, public_keys }: &MultiSignature) -> Owners {
    Owners { min: *min, keys: public_keys.clone() }
}

impl Delegate {
    /// A delegate as it is.
    pub(super) fn of(attributes: &DelegateAttributes) -> Self {
        // All of them by name, so that a new one does not compile before it is checked here.
        let DelegateAttributes {
            username,
            registered,
            vote_balance,
            forged_fees,
            forged_rewards,
            produced_blocks,
            missed_blocks,
            rank,
            round,
            resigned,
            last_block,
        } = attributes;
        Self {
            username: Arc::clone(username),
            registered: *registered,
            resigned: *resigned,
            weight: vote_balance.0,
            rank: *rank,
            round: *round,
            blocks: *produced_blocks,
            fees: forged_fees.0,
            rewards: forged_rewards.0,
            missed: *missed_blocks,
            last: last_block.as_ref().map(|last| (last.0.id, last.0.header.height.0)),
        }
    }
}

fn locks(Htlc { locks, locked_balance }: &Htlc) -> Locks {
    Locks { open: locks.iter().map(|(id, lock)| (*id, open_lock(lock))).collect(), sum: locked_balance.0 }
}

fn open_lock(Lock { amount, recipient, timestamp, vendor_field, secret_hash, expiration }: &Lock) -> OpenLock {
    OpenLock {
        amount: amount.value(),
        recipient: *recipient,
        time: timestamp.0,
        vendor_field: vendor_field.clone(),
        secret_hash: Hex(*secret_hash),
        expires: expiration.numbers(),
    }
}

fn firm(Business { name, website, vat, repository, resigned, bridgechains }: &Business) -> Firm {
    Firm {
        name: name.clone(),
        website: website.clone(),
        vat: vat.clone(),
        repository: repository.clone(),
        resigned: *resigned,
        chains: bridgechains.iter().map(|(id, bridgechain)| chain(id, bridgechain)).collect(),
    }
}

fn chain(id: &[u8; 32], bridgechain: &Bridgechain) -> Chain {
    let Bridgechain { name, seed_nodes, genesis_hash, repository, asset_repository, ports, resigned } = bridgechain;
    Chain {
        id: Hex(*id),
        genesis_hash: Hex(*genesis_hash),
        name: name.clone(),
        seed_nodes: seed_nodes.clone(),
        repository: repository.clone(),
        asset_repository: asset_repository.clone(),
        ports: ports.iter().map(|(name, port)| (name.clone(), *port)).collect(),
        resigned: *resigned,
    }
}
