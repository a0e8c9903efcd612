//! The row that an event makes: what it says, what it weighs, and the messages behind it.

use super::{
    super::{numbers::Number, record::RecordedStep},
    Arrow, Change,
    teller::Teller,
    words::{brief, shortened, texts},
};
use crate::{actors::Event, check::story::event_in_words, ledger::BlockRejected, protocol::TransactionId};

impl Teller<'_> {
    /// Adds a row for an event, or merges the event into an equal row.
    pub(super) fn event(&mut self, step: &RecordedStep, event: &Event, changed: Option<Change>, found: Vec<Number>) {
        let (node, at) = (step.actor.node, step.at);
        let words = || event_in_words(event, &self.record.tree);
        // The numbers that decided, or the event alone where no number of the rules decides.
        let decided = |what: &str| match &found[..] {
            [] => words(),
            found => format!("{what}: {}", texts(found)),
        };
        let concerns = |ids: &[TransactionId]| ids.iter().any(|id| self.ground.concerned.contains(id));
        let (kind, weight, text, key, block) = match event {
            Event::BlockForged(block) => {
                let (id, height) = (block.id, block.header.height);
                let parent = block.header.previous.map(|id| brief(&id)).unwrap_or_default();
                let held = match block.transactions.len() {
                    0 => String::new(),
                    1 => format!(" with a {}", block.transactions[0].kind().name()),
                    more => format!(" with {more} transactions"),
                };
                let ids: Vec<TransactionId> = block.transactions.iter().map(|one| one.id()).collect();
                let weight = self.weight_of(&id, 5).max(if concerns(&ids) { 4 } else { 1 });
                let text = format!("forges {} on {parent}{held}", self.named(id, height));
                ("block.forged", weight, text, None, Some((id, height)))
            }
            Event::BlockApplied(link) => {
                let (id, height) = (link.id(), link.height());
                let weight = self.weight_of(&id, 4);
                let text = format!("takes {}", self.named(id, height));
                ("block.applied", weight, text.clone(), Some(text), Some((id, height)))
            }
            Event::BlockRefused(why) => {
                let weight = match &**why {
                    BlockRejected::NotChained { .. } => 1,
                    BlockRejected::NotApplicable { .. } | BlockRejected::TooFewDelegates { .. } => 5,
                    // Another node's block breaks a rule, and goes no further.
                    _ => {
                        if self.ground.node == Some(node) {
                            5
                        } else {
                            3
                        }
                    }
                };
                let (text, key) = (words(), words());
                ("block.refused", weight, text, Some(key), None)
            }
            Event::RolledBack { from, to, cause } => {
                let depth = from.height().0 - to.height().0;
                let plural = if depth == 1 { "" } else { "s" };
                let (from, to) = (self.named(from.id(), from.height()), self.named(to.id(), to.height()));
                let text = format!("rolls back {depth} block{plural}: {from} → {to} ({cause})");
                ("chain.rolled-back", 5, text, None, None)
            }
            Event::HealthChecked { forked, .. } => {
                let text = decided("checks its health");
                let is_new = self.told.insert((node, text.clone()));
                let weight = match (found.iter().any(|one| one.met), *forked > 0 && is_new) {
                    (true, _) => 5,
                    (false, true) => 3,
                    (false, false) => 1,
                };
                ("health.checked", weight, text.clone(), Some(text), None)
            }
            Event::ForgingSuspended { .. } => {
                let text = decided("does not forge");
                let weight = if self.told.insert((node, text.clone())) { 2 } else { 1 };
                ("forger.suspended", weight, text.clone(), Some(text), None)
            }
            Event::PoolAdded(added) => {
                let ids: Vec<TransactionId> = added.iter().map(|one| one.id()).collect();
                let weight = if concerns(&ids) { 2 } else { 0 };
                let kinds: Vec<String> =
                    added.iter().map(|one| format!("{} {}", one.kind().name(), &one.id().to_string()[..8])).collect();
                let text = format!("takes {} into its pool", kinds.join(", "));
                ("pool.added", weight, text.clone(), Some(text), None)
            }
            Event::PoolRejected(rejected) => {
                let ids: Vec<TransactionId> = rejected.iter().map(|one| one.transaction.id()).collect();
                (("pool.rejected"), if concerns(&ids) { 4 } else { 1 }, words(), None, None)
            }
            Event::PoolEvicted(one) => ("pool.evicted", if concerns(&[one.id()]) { 5 } else { 2 }, words(), None, None),
            Event::PoolReplaced(kept) => {
                let mattered = !kept.is_empty() || changed.is_some();
                ("pool.replaced", if mattered { 5 } else { 1 }, words(), None, None)
            }
            Event::PoolRemoved(id) => {
                let text = format!("its pool gives up {}", &id.to_string()[..8]);
                ("pool.removed", u8::from(concerns(&[*id])), text.clone(), Some(text), None)
            }
            Event::ForgerFailed { .. } => ("forger.failed", 3, words(), None, None),
            Event::PeerRemoved(_) => ("peer.removed", 1, words(), None, None),
            _ => return,
        };
        let is_near = self.ground.node == Some(node) && self.ground.end.since(at) <= self.slot();
        let weight = if is_near && kind != "pool.removed" { weight.max(3) } else { weight };
        let mut row = self.row(at, kind, weight, vec![node], shortened(&text));
        row.block = block.map(|(id, height)| self.block_ref(id, height));
        row.arrows = self.arrows(step, event);
        row.changed.extend(changed);
        row.numbers = found;
        self.tell(row, key);
    }

    /// Returns the arrows of a block: from its sender, and to the nodes that it never reached.
    fn arrows(&self, step: &RecordedStep, event: &Event) -> Vec<Arrow> {
        let node = step.actor.node;
        match event {
            Event::BlockApplied(_) | Event::BlockRefused(_) => {
                self.record.supplier(step).map(|from| Arrow { from, to: node, lost: false }).into_iter().collect()
            }
            Event::BlockForged(block) => {
                let lost = self.record.lost.get(&(node, block.id)).into_iter().flatten();
                lost.filter(|(at, _)| *at <= self.ground.end)
                    .map(|(_, to)| Arrow { from: node, to: *to, lost: true })
                    .collect()
            }
            _ => Vec::new(),
        }
    }
}
