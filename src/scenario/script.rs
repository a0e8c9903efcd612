//! A client that acts by a script: one transaction after the other, right or wrong on purpose, made for the chain as it is
//! when its turn comes.
//!
//! ```toml
//! [[action]]
//! height = 12              # once the highest chain is so high
//! by = "account_3"         # who sends it
//! does = "vote"
//! to = "genesis_4"
//! ```
//!
//! An action that makes no sense when its turn comes (a claim of a lock that was never made) is left out. Nonces follow
//! the chain and what this client still has pending.

use super::Testnet;
use crate::{
    actors::{NodeId, SimTime, Submission, message::Transactions},
    ledger::{
        BlockTree, Link, State,
        saved::{LoadError, Loader, Saved, Saver},
    },
    protocol::{
        Address, Arktoshi, KeyPair, Nonce, PublicKey, SignedTransaction, Slot, Transaction, TransactionId, Vote,
        crypto::sha256,
        keys::multisignature_key,
        transaction::{Expiration, Payment, TransactionBuilder, UnsignedTransaction},
    },
    sim::{
        fault::is_zero,
        source::{Poll, Source},
    },
};
use dashmap::DashMap;
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, sync::Arc};

/// One transaction of a script.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Action {
    /// Its turn comes when the highest chain of the network is so high.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub height: u32,
    /// The number of the node it is handed in at.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub node: u32,
    /// The sender: an account, a delegate, or `shared_NAME`, the multisignature wallet that was made by this name. Any K of N
    /// keys dispose of one whose name ends in `-K-of-N`, and any two of three of another.
    pub by: String,
    /// The deed.
    pub does: Deed,
    /// Whom it is for: an account, a delegate, or `shared_NAME`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The amount, in arktoshi; a coin, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amount: Option<u64>,
    /// The fee, in arktoshi; the static fee, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fee: Option<u64>,
    /// The name of its object: a lock, a username, a hash, a multisignature wallet, a bridgechain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// For so many blocks beyond the shortest time a lock must last.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub blocks: u32,
    /// The owners of a shared wallet that sign, in this order, counted from 0; as many as must, if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signers: Vec<u8>,
    /// A lock ends at a time and not at a height.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_time: bool,
    /// Payments of a multipayment, to `to` and back in turn; two, if absent.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub payments: u32,
    /// Members that a business or bridgechain says or changes, beside those it must.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<Member>,
    /// A text for a transfer, a multipayment or a lock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vendor_field: Option<String>,
    /// The flaw, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wrong: Option<Wrong>,
}

/// A member of a business or a bridgechain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Member {
    Name,
    Website,
    Vat,
    Repository,
    AssetRepository,
    SeedNodes,
    Ports,
}

impl Member {
    /// The members of a business.
    pub const OF_BUSINESS: [Self; 4] = [Self::Name, Self::Website, Self::Vat, Self::Repository];
    /// The members of a bridgechain.
    pub const OF_BRIDGECHAIN: [Self; 4] = [Self::Repository, Self::AssetRepository, Self::SeedNodes, Self::Ports];
}

/// The deed of an action.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Deed {
    /// Sends `amount` to `to`.
    #[default]
    Transfer,
    /// Sends half of `amount` to `to`, and the rest back to the sender; or in more `payments`.
    MultiPayment,
    /// Registers a second key, with which the sender signs from then on.
    SecondSignature,
    /// Registers as a delegate under `name`.
    Register,
    /// Votes for `to`.
    Vote,
    /// Takes the vote for `to` back.
    Unvote,
    /// Resigns as a delegate.
    Resign,
    /// Makes the wallet `shared_NAME`, of which any two of three keys dispose, or as many as the name says.
    Share,
    /// Registers the hash of `name`.
    Ipfs,
    /// Locks `amount` for `to` as the lock `name`.
    Lock,
    /// Claims the lock `name`.
    Claim,
    /// Takes the lock `name` back.
    Refund,
    /// Registers as a business.
    Business,
    /// Changes the business's website to one of `name`, or the `members` that are listed.
    UpdateBusiness,
    /// Resigns as a business.
    ResignBusiness,
    /// Registers the bridgechain `name`.
    Bridgechain,
    /// Changes the repository of the bridgechain `name`, or the `members` that are listed.
    UpdateBridgechain,
    /// Resigns the bridgechain `name`.
    ResignBridgechain,
}

impl Deed {
    /// All of them.
    pub const ALL: [Self; 18] = [
        Self::Transfer,
        Self::MultiPayment,
        Self::SecondSignature,
        Self::Register,
        Self::Vote,
        Self::Unvote,
        Self::Resign,
        Self::Share,
        Self::Ipfs,
        Self::Lock,
        Self::Claim,
        Self::Refund,
        Self::Business,
        Self::UpdateBusiness,
        Self::ResignBusiness,
        Self::Bridgechain,
        Self::UpdateBridgechain,
        Self::ResignBridgechain,
    ];
}

/// The flaw of an action's transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Wrong {
    /// Its nonce leaves one out.
    NonceAhead,
    /// Its nonce has been used.
    NonceUsed,
    /// It sends more than its sender has.
    Overspent,
    /// It is signed by somebody else.
    Forged,
    /// The second signature is missing.
    NoSecondSignature,
    /// One signature fewer than agreed on.
    OneSignatureLess,
    /// Another secret than the lock's.
    WrongSecret,
    /// It expires before it can be forged.
    Expired,
}

impl Wrong {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::NonceAhead,
        Self::NonceUsed,
        Self::Overspent,
        Self::Forged,
        Self::NoSecondSignature,
        Self::OneSignatureLess,
        Self::WrongSecret,
        Self::Expired,
    ];
}

/// A name's coin, where an action says nothing of it.
const COIN: u64 = 100_000_000;
/// Blocks after which a transaction that was never forged is taken for lost.
const PATIENCE: u32 = 60;

/// Keys of passphrases, derived once for all runs on a network: a search plays hundreds of scripts in which the same
/// wallets act.
#[derive(Default)]
pub(super) struct DerivedKeys(DashMap<String, KeyPair>);

impl DerivedKeys {
    fn of(&self, passphrase: String) -> KeyPair {
        let derive = || KeyPair::from_passphrase(&passphrase);
        self.0.entry(passphrase.clone()).or_insert_with(derive).clone()
    }
}

/// The parties of a generated network by name.
#[derive(Clone)]
pub(super) struct Parties {
    keys: BTreeMap<String, KeyPair>,
    network: u8,
    /// Keys of whoever else comes up.
    others: Arc<DerivedKeys>,
}

impl Parties {
    /// Accounts, delegates, and whoever else is named, each with keys.
    pub(super) fn of(testnet: &Testnet) -> Self {
        let delegates = testnet.delegates.iter().map(|one| (one.username.clone(), one.keys.clone()));
        let accounts = testnet.accounts.iter().enumerate();
        let accounts = accounts.map(|(index, one)| (format!("account_{}", index + 1), one.keys.clone()));
        let network = testnet.config.network.pub_key_hash;
        Self { keys: delegates.chain(accounts).collect(), network, others: testnet.others.clone() }
    }

    /// The keys of a name; a name nobody bears gives keys of its own.
    fn keys(&self, name: &str) -> KeyPair {
        self.keys.get(name).cloned().unwrap_or_else(|| self.others.of(name.to_owned()))
    }

    /// The keys of a shared wallet's owner, counted from 0.
    fn owner(&self, name: &str, index: u8) -> KeyPair {
        let which = match index {
            0 => "first".to_owned(),
            1 => "second".to_owned(),
            2 => "third".to_owned(),
            more => format!("{}th", u32::from(more) + 1),
        };
        self.others.of(format!("{which} owner of {name}"))
    }

    fn owners_of(&self, name: &str) -> Vec<PublicKey> {
        (0..threshold(name).1).map(|index| *self.owner(name, index).public()).collect()
    }

    fn public(&self, name: &str) -> PublicKey {
        match name.strip_prefix("shared_") {
            Some(name) => {
                let key = multisignature_key(threshold(name).0, &self.owners_of(name));
                key.unwrap_or(*self.keys(name).public())
            }
            None => *self.keys(name).public(),
        }
    }

    fn address(&self, name: &str) -> Address {
        self.public(name).address(self.network)
    }
}

/// Plays a script.
#[derive(Clone)]
pub(super) struct Script {
    tree: Arc<BlockTree>,
    parties: Parties,
    /// The actions to come, by height, the next one last.
    actions: Vec<Action>,
    /// Nonces handed in and not forged yet, with the height they were handed in at.
    pending: BTreeMap<Address, BTreeMap<u64, (TransactionId, u32)>>,
    /// Locks by name.
    locks: BTreeMap<String, TransactionId>,
}

impl Script {
    pub(super) fn new(tree: Arc<BlockTree>, parties: Parties, actions: &[Action]) -> Self {
        let mut actions = actions.to_vec();
        actions.sort_by_key(|action| action.height);
        actions.reverse();
        Self { tree, parties, actions, pending: BTreeMap::new(), locks: BTreeMap::new() }
    }

    /// The transaction of an action on top of a state.
    fn make(&mut self, action: &Action, state: &State) -> Option<SignedTransaction> {
        let sender = self.parties.public(&action.by);
        let address = sender.address(self.parties.network);
        let builder = self.builder(action, state)?.network(self.parties.network);
        let nonce = self.next_nonce(&address, state);
        let nonce = match action.wrong {
            Some(Wrong::NonceAhead) => nonce + 1,
            Some(Wrong::NonceUsed) => nonce - 1,
            _ => nonce,
        };
        let mut builder = builder.nonce(Nonce(nonce));
        if let Some(text) = &action.vendor_field {
            builder = builder.vendor_field(text);
        }
        if let Some(fee) = action.fee.and_then(Arktoshi::new) {
            builder = builder.fee(fee);
        }
        if action.wrong == Some(Wrong::Expired) {
            builder = builder.expiration(state.height().0 + 1);
        }
        let transaction = self.signed(action, builder, sender, state);
        self.pending.entry(address).or_default().insert(nonce, (transaction.id(), state.height().0));
        if let (Deed::Lock, Some(name)) = (action.does, &action.name) {
            self.locks.insert(name.clone(), transaction.id());
        }
        Some(transaction)
    }

    fn builder(&self, action: &Action, state: &State) -> Option<TransactionBuilder> {
        let name = action.name.clone().unwrap_or_default();
        let to = action.to.clone().unwrap_or_else(|| action.by.clone());
        let sender = self.parties.address(&action.by);
        let balance = state.wallet(&sender).map_or(0, |wallet| wallet.balance.0);
        let amount = match action.wrong {
            Some(Wrong::Overspent) => u64::try_from(balance.max(0)).unwrap_or(0) + 1,
            _ => action.amount.unwrap_or(COIN),
        };
        let arktoshi = |amount: u64| Arktoshi::new(amount.max(1));
        let lock = || self.locks.get(&name).copied();
        Some(match action.does {
            Deed::Transfer => Transaction::transfer(self.parties.address(&to), arktoshi(amount)?),
            Deed::MultiPayment => {
                let count = u64::from(action.payments.max(2));
                let (part, last) = (amount / count, amount - amount / count * (count - 1));
                let recipients = [self.parties.address(&to), sender].into_iter().cycle();
                let amounts = (1..=count).map(|place| if place < count { part } else { last });
                let payments = amounts
                    .zip(recipients)
                    .map(|(amount, recipient)| Some(Payment { amount: arktoshi(amount)?, recipient }));
                Transaction::multi_payment(payments.collect::<Option<_>>()?)
            }
            Deed::SecondSignature => Transaction::second_signature(*self.second(&action.by).public()),
            Deed::Register => Transaction::delegate_registration(name),
            Deed::Vote => Transaction::vote(Vote::For(self.parties.public(&to))),
            Deed::Unvote => Transaction::vote(Vote::Against(self.parties.public(&to))),
            Deed::Resign => Transaction::delegate_resignation(),
            Deed::Share => Transaction::multi_signature(threshold(&name).0, self.parties.owners_of(&name)),
            Deed::Ipfs => Transaction::ipfs([&[0x12, 0x20][..], &sha256(name.as_bytes())].concat()),
            Deed::Lock => {
                let seats = self.tree.config().milestones.at(state.height()).active_delegates;
                // One more block than must be, since it is forged in the next one at the earliest.
                let last = state.height().0 + seats + 3 + action.blocks;
                let (secret, to) = (sha256(&secret_of(&name)), self.parties.address(&to));
                let seconds = state.timestamp().0 + self.tree.slots().blocktime() * (last - state.height().0);
                let ends = if action.by_time { Expiration::EpochTime(seconds) } else { Expiration::BlockHeight(last) };
                Transaction::htlc_lock(to, arktoshi(amount)?, secret, ends)
            }
            Deed::Claim if action.wrong == Some(Wrong::WrongSecret) => {
                Transaction::htlc_claim(lock()?, secret_of(&format!("not {name}")))
            }
            Deed::Claim => Transaction::htlc_claim(lock()?, secret_of(&name)),
            Deed::Refund => Transaction::htlc_refund(lock()?),
            Deed::Business => {
                let says = Says::of(action, state, &[]);
                let name = says.business_name().unwrap_or_else(|| "business".to_owned());
                let website = says.website().unwrap_or_else(|| "https://business.example".to_owned());
                Transaction::business_registration(name, website, says.vat(), says.repository())
            }
            Deed::UpdateBusiness => {
                let says = Says::of(action, state, &[Member::Website]);
                Transaction::business_update(says.business_name(), says.website(), says.vat(), says.repository())
            }
            Deed::ResignBusiness => Transaction::business_resignation(),
            Deed::Bridgechain => {
                let says = Says::of(action, state, &[]);
                let (hash, assets) = (hash_of(&name), says.asset_repository());
                let repository = says.repository().unwrap_or_else(|| "https://repository.example".to_owned());
                let nodes = says.seed_nodes().unwrap_or_else(|| vec!["1.2.3.4".to_owned()]);
                let ports = says.ports().unwrap_or_else(|| IndexMap::from([(API.to_owned(), 4003)]));
                Transaction::bridgechain_registration(name, nodes, hash, repository, assets, ports)
            }
            Deed::UpdateBridgechain => {
                let says = Says::of(action, state, &[Member::Repository]);
                let (nodes, ports) = (says.seed_nodes(), says.ports());
                let (repository, assets) = (says.repository(), says.asset_repository());
                Transaction::bridgechain_update(hash_of(&name), nodes, ports, repository, assets)
            }
            Deed::ResignBridgechain => Transaction::bridgechain_resignation(hash_of(&name)),
        })
    }

    fn signed(
        &self,
        action: &Action,
        builder: TransactionBuilder,
        sender: PublicKey,
        state: &State,
    ) -> SignedTransaction {
        let wallet = state.wallet(&sender.address(self.parties.network));
        let mut unsigned = builder.sender(sender);
        if let Some(name) = action.by.strip_prefix("shared_") {
            unsigned = self.signed_by_owners(unsigned, name, action, threshold(name).0);
            return unsigned.finish();
        }
        if let (Deed::Share, Some(name)) = (action.does, &action.name) {
            unsigned = self.signed_by_owners(unsigned, name, action, threshold(name).1);
        }
        let keys = match action.wrong {
            Some(Wrong::Forged) => self.parties.others.of("somebody else".to_owned()),
            _ => self.parties.keys(&action.by),
        };
        unsigned = unsigned.sign(&keys);
        let has_second = wallet.is_some_and(|wallet| wallet.second_public_key.is_some());
        if has_second && action.wrong != Some(Wrong::NoSecondSignature) {
            unsigned = unsigned.second_sign(&self.second(&action.by));
        }
        unsigned.finish()
    }

    /// Signs by the owners that the action names, or by the first so many.
    fn signed_by_owners(
        &self,
        mut unsigned: UnsignedTransaction,
        name: &str,
        action: &Action,
        count: u8,
    ) -> UnsignedTransaction {
        let count = if action.wrong == Some(Wrong::OneSignatureLess) { count - 1 } else { count };
        let mut signers: Vec<u8> =
            if action.signers.is_empty() { (0..count).collect() } else { action.signers.clone() };
        if action.wrong == Some(Wrong::OneSignatureLess) {
            signers.truncate(usize::from(count));
        }
        for index in signers {
            unsigned = unsigned.multi_sign(index, &self.parties.owner(name, index));
        }
        unsigned
    }

    fn second(&self, name: &str) -> KeyPair {
        self.parties.others.of(format!("second key of {name} in {}", self.parties.public(name)))
    }

    fn next_nonce(&mut self, address: &Address, state: &State) -> u64 {
        let forged = state.wallet(address).map_or(0, |wallet| wallet.nonce.0);
        let pending = self.pending.entry(*address).or_default();
        pending.retain(|nonce, (_, since)| *nonce > forged && state.height().0 <= *since + PATIENCE);
        let mut next = forged + 1;
        while pending.contains_key(&next) {
            next += 1;
        }
        next
    }
}

/// The port that every bridgechain names.
const API: &str = "@arkecosystem/core-api";

/// The members of a business or bridgechain that an action lists: other words at another height.
struct Says<'a> {
    members: &'a [Member],
    name: String,
}

impl<'a> Says<'a> {
    fn of(action: &'a Action, state: &State, otherwise: &'a [Member]) -> Self {
        let members = if action.members.is_empty() { otherwise } else { &action.members };
        let name = action.name.clone().unwrap_or_default();
        let name = if action.members.is_empty() { name } else { format!("{name}-{}", state.height()) };
        Self { members, name }
    }

    fn given<T>(&self, member: Member, value: T) -> Option<T> {
        self.members.contains(&member).then_some(value)
    }

    fn business_name(&self) -> Option<String> {
        self.given(Member::Name, format!("business {}", self.name))
    }

    fn website(&self) -> Option<String> {
        self.given(Member::Website, format!("https://{}.example", self.name))
    }

    fn vat(&self) -> Option<String> {
        let digest = sha256(self.name.as_bytes());
        let number = u32::from_le_bytes([digest[0], digest[1], digest[2], 0]);
        self.given(Member::Vat, format!("GB{number:09}"))
    }

    fn repository(&self) -> Option<String> {
        self.given(Member::Repository, format!("https://repository.example/{}", self.name))
    }

    fn asset_repository(&self) -> Option<String> {
        self.given(Member::AssetRepository, format!("https://assets.example/{}", self.name))
    }

    fn seed_nodes(&self) -> Option<Vec<String>> {
        let digest = sha256(self.name.as_bytes());
        let node = |last: u8| format!("5.6.{}.{last}", digest[0]);
        self.given(Member::SeedNodes, (1..=1 + digest[1] % 3).map(node).collect())
    }

    fn ports(&self) -> Option<IndexMap<String, u16>> {
        let digest = sha256(self.name.as_bytes());
        let other = ("@arkecosystem/core-webhooks".to_owned(), 4_000 + u16::from(digest[0]));
        self.given(Member::Ports, IndexMap::from([other, (API.to_owned(), 4_000 + u16::from(digest[1]))]))
    }
}

/// Returns the threshold and the number of keys of a shared wallet: by a name that ends in `-K-of-N`, or two of three.
fn threshold(name: &str) -> (u8, u8) {
    let by_name = || {
        let (rest, count) = name.rsplit_once("-of-")?;
        let (_, min) = rest.rsplit_once('-')?;
        let (min, count) = (min.parse().ok()?, count.parse().ok()?);
        (1 <= min && min <= count && count <= 16).then_some((min, count))
    };
    by_name().unwrap_or((2, 3))
}

/// The genesis hash of a bridgechain; `NAME-again` is that of `NAME` under another name.
fn hash_of(name: &str) -> [u8; 32] {
    sha256(name.strip_suffix("-again").unwrap_or(name).as_bytes())
}

fn secret_of(name: &str) -> [u8; 32] {
    sha256(format!("secret of the lock {name}").as_bytes())
}

impl Source for Script {
    fn poll(&mut self, now: SimTime, tip: &Arc<Link>) -> Poll {
        let mut submissions: Vec<(NodeId, Vec<Arc<SignedTransaction>>)> = Vec::new();
        if self.actions.last().is_some_and(|action| action.height <= tip.height().0) {
            let applied = self.tree.clone().applied(tip);
            while self.actions.last().is_some_and(|action| action.height <= tip.height().0) {
                let Some(action) = self.actions.pop() else { break };
                let Some(transaction) = self.make(&action, &applied.state).map(Arc::new) else { continue };
                // Transactions handed in at one node at one time are one request.
                match submissions.last_mut().filter(|(node, list)| node.0 == action.node && list.len() < 40) {
                    Some((_, list)) => list.push(transaction),
                    None => submissions.push((NodeId(action.node), vec![transaction])),
                }
            }
        }
        let slots = self.tree.slots();
        let next = Slot(slots.slot(now.seconds()).0.saturating_add(1));
        let again = (!self.actions.is_empty()).then(|| SimTime::from_seconds(slots.start(next)));
        let submissions = submissions.into_iter().map(|(node, list)| (node, Transactions::from(list))).collect();
        Poll { submissions, again }
    }

    fn save(&self, out: &mut Saver) {
        let Self { tree: _, parties: _, actions, pending, locks } = self;
        actions.len().save(out);
        pending.save(out);
        locks.save(out);
    }

    fn go_on(&mut self, from: &mut Loader) -> Result<(), LoadError> {
        let left = usize::load(from)?;
        if left > self.actions.len() {
            return Err(from.wrong("number of actions left", left));
        }
        self.actions.truncate(left);
        (self.pending, self.locks) = Saved::load(from)?;
        Ok(())
    }

    fn answered(&mut self, _now: SimTime, submission: &Submission) {
        let refused: Vec<TransactionId> = submission.errors.iter().map(|(id, _)| *id).collect();
        for pending in self.pending.values_mut() {
            pending.retain(|_, (id, _)| !refused.contains(id) && !submission.excess.contains(id));
        }
    }
}
