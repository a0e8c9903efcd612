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
    ledger::{BlockTree, Link, State},
    protocol::{
        Address, Arktoshi, KeyPair, Nonce, PublicKey, SignedTransaction, Slot, Transaction, TransactionId, Vote,
        crypto::sha256,
        keys::multisignature_key,
        transaction::{Expiration, Payment, TransactionBuilder},
    },
    sim::source::{Poll, Source},
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
    /// Who sends it: an account, a delegate, or `shared_NAME`, the multisignature wallet that was made by this name.
    pub by: String,
    /// What it does.
    pub does: Deed,
    /// Whom it is for: an account, a delegate, or `shared_NAME`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// How much, in arktoshi; a coin, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amount: Option<u64>,
    /// The fee, in arktoshi; the static fee, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fee: Option<u64>,
    /// Of what: the name of a lock, a username, a hash, a multisignature wallet, a bridgechain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// For so many blocks beyond the shortest time a lock must last.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub blocks: u32,
    /// What is wrong with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wrong: Option<Wrong>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// What an action does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Deed {
    /// Sends `amount` to `to`.
    #[default]
    Transfer,
    /// Sends half of `amount` to `to`, and the rest back to the sender.
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
    /// Makes the wallet `shared_NAME`, of which any two of three keys dispose.
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
    /// Changes the business's website to one of `name`.
    UpdateBusiness,
    /// Resigns as a business.
    ResignBusiness,
    /// Registers the bridgechain `name`.
    Bridgechain,
    /// Resigns the bridgechain `name`.
    ResignBridgechain,
}

impl Deed {
    /// All of them.
    pub const ALL: [Self; 17] = [
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
        Self::ResignBridgechain,
    ];
}

/// What is wrong with an action's transaction.
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

    /// The three keys of a shared wallet.
    fn owners(&self, name: &str) -> [KeyPair; 3] {
        ["first", "second", "third"].map(|which| self.others.of(format!("{which} owner of {name}")))
    }

    fn owners_of(&self, name: &str) -> Vec<PublicKey> {
        self.owners(name).iter().map(|keys| *keys.public()).collect()
    }

    fn public(&self, name: &str) -> PublicKey {
        match name.strip_prefix("shared_") {
            Some(name) => multisignature_key(2, &self.owners_of(name)).unwrap_or(*self.keys(name).public()),
            None => *self.keys(name).public(),
        }
    }

    fn address(&self, name: &str) -> Address {
        self.public(name).address(self.network)
    }
}

/// Plays a script.
pub(super) struct Script {
    tree: Arc<BlockTree>,
    parties: Parties,
    /// Those to come, by height, the next one last.
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
            Deed::MultiPayment => Transaction::multi_payment(vec![
                Payment { amount: arktoshi(amount / 2)?, recipient: self.parties.address(&to) },
                Payment { amount: arktoshi(amount - amount / 2)?, recipient: sender },
            ]),
            Deed::SecondSignature => Transaction::second_signature(*self.second(&action.by).public()),
            Deed::Register => Transaction::delegate_registration(name),
            Deed::Vote => Transaction::vote(Vote::For(self.parties.public(&to))),
            Deed::Unvote => Transaction::vote(Vote::Against(self.parties.public(&to))),
            Deed::Resign => Transaction::delegate_resignation(),
            Deed::Share => Transaction::multi_signature(2, self.parties.owners_of(&name)),
            Deed::Ipfs => Transaction::ipfs([&[0x12, 0x20][..], &sha256(name.as_bytes())].concat()),
            Deed::Lock => {
                let seats = self.tree.config().milestones.at(state.height()).active_delegates;
                // One more block than must be, since it is forged in the next one at the earliest.
                let last = state.height().0 + seats + 3 + action.blocks;
                let (secret, to) = (sha256(&secret_of(&name)), self.parties.address(&to));
                Transaction::htlc_lock(to, arktoshi(amount)?, secret, Expiration::BlockHeight(last))
            }
            Deed::Claim if action.wrong == Some(Wrong::WrongSecret) => {
                Transaction::htlc_claim(lock()?, secret_of(&format!("not {name}")))
            }
            Deed::Claim => Transaction::htlc_claim(lock()?, secret_of(&name)),
            Deed::Refund => Transaction::htlc_refund(lock()?),
            Deed::Business => Transaction::business_registration("business", "https://business.example", None, None),
            Deed::UpdateBusiness => {
                Transaction::business_update(None, Some(format!("https://{name}.example")), None, None)
            }
            Deed::ResignBusiness => Transaction::business_resignation(),
            Deed::Bridgechain => {
                let ports = IndexMap::from([("@arkecosystem/core-api".to_owned(), 4003)]);
                let (hash, repository) = (hash_of(&name), "https://repository.example");
                Transaction::bridgechain_registration(name, vec!["1.2.3.4".to_owned()], hash, repository, None, ports)
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
            let count = if action.wrong == Some(Wrong::OneSignatureLess) { 1 } else { 2 };
            for (index, keys) in self.parties.owners(name).iter().enumerate().take(count) {
                unsigned = unsigned.multi_sign(index as u8, keys);
            }
            return unsigned.finish();
        }
        if let (Deed::Share, Some(name)) = (action.does, &action.name) {
            for (index, keys) in self.parties.owners(name).iter().enumerate() {
                unsigned = unsigned.multi_sign(index as u8, keys);
            }
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
                // What is handed in at one node at one time is one request.
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

    fn answered(&mut self, _now: SimTime, submission: &Submission) {
        let refused: Vec<TransactionId> = submission.errors.iter().map(|(id, _)| *id).collect();
        for pending in self.pending.values_mut() {
            pending.retain(|_, (id, _)| !refused.contains(id) && !submission.excess.contains(id));
        }
    }
}
