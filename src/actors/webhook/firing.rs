//! Turns an observation into the events of the catalogue that it causes, in their order. Source: api.md 6.4,
//! consensus.md 1.5, 4.5, 5.8.
//!
//! A payload is made only if an enabled webhook subscribes to its event, and once for all that do.

use super::{
    Delivery, Head, Observation, Sequence, States, Webhook, WebhookEffect,
    payload::{self, PeerState},
};
use crate::{
    actors::{Event, SimTime},
    ledger::{BlockTree, Link, State, Wallet, apply},
    protocol::{Address, Asset, Block, PublicKey, SignedTransaction, Vote},
};
use serde::Serialize;
use serde_json::{Value, json};
use std::{collections::BTreeSet, sync::Arc};

/// The body of a post. An event without payload has no `data`. `sequence` is the one member that a real node's posts lack.
#[derive(Serialize)]
struct Body<'a> {
    /// The virtual time of the event, as Unix time in milliseconds.
    timestamp: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a Value>,
    event: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    sequence: Option<Sequence>,
}

/// One observation on its way to the subscribers.
pub(super) struct Firing<'a> {
    pub tree: &'a BlockTree,
    pub now: SimTime,
    pub hooks: &'a [Arc<Webhook>],
    /// The position of the next post, if posts have one.
    pub next: Option<Sequence>,
    pub effects: &'a mut Vec<WebhookEffect>,
}

impl Firing<'_> {
    /// The node has started; the specification and the reference write the event's name differently.
    pub fn started(&mut self) {
        self.fire("state.started", || Some(true.into()));
        self.fire("state:started", || Some(true.into()));
    }

    /// Fires all events of an observation.
    pub fn observed(&mut self, observation: &Observation) {
        match &observation.event {
            Event::BlockForged(block) => self.forged(block),
            Event::BlockReceived(block) => self.fire_block("block.received", block),
            Event::BlockDisregarded(block) => self.fire_block("block.disregarded", block),
            Event::BlockApplied(link) => {
                let States { before, after } =
                    observation.states.clone().unwrap_or_else(|| States::around(self.tree, link));
                self.applied(link, &after.state, &before.state);
            }
            Event::BlockReverted(link) => self.reverted(link),
            Event::PoolAdded(added) => self.fire("transaction.pool.added", || {
                Some(added.iter().map(|transaction| payload::pooled(transaction)).collect())
            }),
            Event::PoolRejected(rejected) => self.fire("transaction.pool.rejected", || {
                let one = |rejection: &crate::actors::pool::PoolRejection| {
                    json!({
                        "transaction": payload::pooled(&rejection.transaction),
                        "type": rejection.error.code(),
                        "message": rejection.error.to_string(),
                    })
                };
                Some(rejected.iter().map(one).collect())
            }),
            Event::PoolRemoved(id) => self.fire("transaction.pool.removed", || Some(json!(id))),
            Event::PoolExpired(transaction) => {
                self.fire("transaction.expired", || Some(payload::of_transaction(transaction)));
            }
            Event::PoolPurged(transaction) => {
                self.fire("transaction.pool.removed", || Some(payload::of_transaction(transaction)));
            }
            Event::PeerAdded(_) => self.fire_peer("peer.added", observation.peer.as_ref()),
            Event::PeerRemoved(_) => self.fire_peer("peer.removed", observation.peer.as_ref()),
            Event::ForgerStarted { delegate } => {
                self.fire("forger.started", || Some(json!({ "activeDelegates": [delegate] })));
            }
            Event::ForgerFailed { error } => self.fire("forger.failed", || Some(json!({ "error": error }))),
            // Not in the catalogue.
            Event::PoolEvicted(_)
            | Event::PoolReplaced(_)
            | Event::BlockRefused(_)
            | Event::ForgingSuspended { .. }
            | Event::RolledBack { .. }
            | Event::HealthChecked { .. } => {}
        }
    }

    fn forged(&mut self, block: &Block) {
        let milestones = &self.tree.config().milestones;
        self.fire("block.forged", || Some(block.header_json(milestones)));
        for transaction in &block.transactions {
            self.fire("transaction.forged", || Some(payload::of_transaction(transaction)));
        }
    }

    fn fire_block(&mut self, name: &str, block: &Block) {
        let milestones = &self.tree.config().milestones;
        self.fire(name, || Some(payload::received(block, milestones)));
    }

    fn fire_peer(&mut self, name: &str, peer: Option<&PeerState>) {
        let (now, slots, tree) = (self.now, self.tree.slots(), self.tree);
        let milestones = &tree.config().milestones;
        self.fire(name, || peer.map(|peer| payload::of_peer(peer, now, &slots, milestones)));
    }

    /// In the order of consensus.md 1.5: missed slots, the round, the transactions, the block, the wallets.
    fn applied(&mut self, link: &Arc<Link>, after: &State, before: &State) {
        let tree = self.tree;
        // Ranks and rounds are assigned after these posts.
        let idle = |key: &PublicKey| {
            let wallet = after.wallet(&key.address(after.network_byte()));
            let wallet = wallet.map(|wallet| payload::of_wallet(&ranked_as_before(wallet, before), tree));
            wallet.map(|wallet| json!({ "delegate": wallet }))
        };
        for key in link.missing() {
            self.fire("forger.missing", || idle(key));
        }
        if let Some(end) = link.round_end() {
            for key in &end.missed {
                self.fire("round.missed", || idle(key));
            }
            self.fire("round.created", || {
                let wallets = end.created.members.iter().filter_map(|member| after.wallet(&member.address));
                Some(wallets.map(|wallet| payload::of_wallet(wallet, tree)).collect())
            });
            self.fire("round.applied", || None);
        }
        let block = link.block();
        let mut born: BTreeSet<Address> = BTreeSet::new();
        for (index, transaction) in block.transactions.iter().enumerate() {
            self.fire("transaction.applied", || Some(payload::placed(block, index)));
            self.fire_typed(block, index, transaction);
            for recipient in apply::recipients(transaction) {
                let wallet = after.wallet(&recipient).filter(|_| before.wallet(&recipient).is_none());
                if let Some(wallet) = wallet.filter(|_| born.insert(recipient)) {
                    self.fire("wallet.created.cold", || Some(payload::of_wallet(wallet, tree)));
                }
            }
        }
        self.fire("block.applied", || Some(block.header_json(&tree.config().milestones)));
        if self.wants("wallet.saved") {
            for wallet in after.wallets_changed_since(before) {
                let shown = payload::of_wallet(wallet, tree);
                let was = before.wallet(&wallet.address).map(|wallet| payload::of_wallet(wallet, tree));
                if was.as_ref() != Some(&shown) {
                    self.fire("wallet.saved", || Some(shown));
                }
            }
        }
    }

    fn fire_typed(&mut self, block: &Block, index: usize, transaction: &SignedTransaction) {
        let placed = || payload::placed(block, index);
        match transaction.asset() {
            Asset::DelegateRegistration { .. } => self.fire("delegate.registered", || Some(placed())),
            Asset::DelegateResignation => self.fire("delegate.resigned", || Some(placed())),
            Asset::Vote(vote) => {
                let name = if matches!(vote, Vote::For(_)) { "wallet.vote" } else { "wallet.unvote" };
                self.fire(name, || Some(json!({ "delegate": vote.to_string(), "transaction": placed() })));
            }
            _ => {}
        }
    }

    fn reverted(&mut self, link: &Link) {
        let (tree, block) = (self.tree, link.block());
        for index in (0..block.transactions.len()).rev() {
            self.fire("transaction.reverted", || Some(payload::placed(block, index)));
        }
        self.fire("block.reverted", || Some(block.header_json(&tree.config().milestones)));
    }

    fn wants(&self, name: &str) -> bool {
        self.hooks.iter().any(|hook| hook.enabled && hook.event.hold(name))
    }

    /// Delivers an event to all webhooks that subscribe to it and whose conditions its payload fulfils.
    fn fire(&mut self, name: &str, payload: impl FnOnce() -> Option<Value>) {
        let sequence = self.next;
        // An event without a webhook counts as well: a position does not depend on the webhooks.
        self.next.iter_mut().for_each(|next| next.post += 1);
        if !self.wants(name) {
            return;
        }
        let data = payload();
        let mut body: Option<Arc<[u8]>> = None;
        for hook in self.hooks.iter().filter(|hook| hook.enabled && hook.event.hold(name)) {
            if hook.is_met_by(data.as_ref()) {
                let body = body.get_or_insert_with(|| {
                    let timestamp = self.tree.slots().epoch_ms() + (self.now.micros() / 1_000) as i64;
                    let body = Body { timestamp, data: data.as_ref(), event: name, sequence };
                    serde_json::to_vec(&body).expect("texts and numbers become JSON").into()
                });
                let head = Head { event: name.to_owned(), sequence };
                self.effects.push(WebhookEffect::Deliver(Delivery { hook: hook.clone(), head, body: body.clone() }));
            }
        }
    }
}

/// A wallet as it is now, with rank and round as they were.
fn ranked_as_before(wallet: &Arc<Wallet>, before: &State) -> Wallet {
    let mut wallet = Wallet::clone(wallet);
    let was = before.wallet(&wallet.address).and_then(|wallet| wallet.delegate.clone());
    if let (Some(delegate), Some(was)) = (&mut wallet.delegate, was) {
        let delegate = Arc::make_mut(delegate);
        (delegate.rank, delegate.round) = (was.rank, was.round);
    }
    wallet
}
