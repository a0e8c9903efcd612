//! A client that acts by a script: one transaction after the other, valid or invalid on purpose, made for the state of the chain
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
//! the chain and the pending transactions of this client.

mod action;
mod parties;

pub use action::{Action, Deed, Member, Wrong};
pub(super) use parties::{DerivedKeys, Parties};

use crate::{
    actors::{NodeId, SimTime, Submission, message::Transactions},
    ledger::{
        BlockTree, Link, State,
        codec::{LoadError, Loader, Save, Saver},
    },
    protocol::{
        Address, Arktoshi, KeyPair, Nonce, PublicKey, SignedTransaction, Slot, Transaction, TransactionId, Vote,
        crypto::sha256,
        transaction::{Expiration, Payment, TransactionBuilder, UnsignedTransaction},
    },
    sim::source::{Poll, Source},
};
use indexmap::IndexMap;
use parties::threshold;
use std::{collections::BTreeMap, sync::Arc};

/// The default amount of an action: one coin, in arktoshi.
const COIN: u64 = 100_000_000;
/// The number of blocks after which a transaction that was not forged counts as lost.
const PATIENCE: u32 = 60;

/// The source that plays a script.
#[derive(Clone)]
pub(super) struct Script {
    tree: Arc<BlockTree>,
    parties: Parties,
    /// The remaining actions, sorted by height, the next one last.
    actions: Vec<Action>,
    /// The nonces of submitted transactions that are not forged yet, with the id and the height at submission.
    pending: BTreeMap<Address, BTreeMap<u64, (TransactionId, u32)>>,
    /// The ids of locks by name.
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
        } else if action.does == Deed::Transfer && action.blocks > 0 {
            // The transfer is forged in the next block at the earliest, and the block at the height of its expiration cannot contain it.
            builder = builder.expiration(state.height().0 + 2 + action.blocks);
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
                // One block more than the minimum, because the lock is forged in the next block at the earliest.
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

    /// Signs with the keys of the owners that the action names, or of the required number of first owners.
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

/// The members of a business or bridgechain that an action lists. Their texts differ by height.
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

/// The genesis hash of a bridgechain. `NAME-again` has the hash of `NAME`.
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
                // Transactions that are submitted to one node at one time are one request.
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
        Poll { submissions, again, ..Poll::default() }
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
        (self.pending, self.locks) = Save::load(from)?;
        Ok(())
    }

    fn answered(&mut self, _now: SimTime, submission: &Submission) {
        let refused: Vec<TransactionId> = submission.errors.iter().map(|(id, _)| *id).collect();
        for pending in self.pending.values_mut() {
            pending.retain(|_, (id, _)| !refused.contains(id) && !submission.excess.contains(id));
        }
    }
}
