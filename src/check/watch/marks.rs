//! What a watch remembers that decides what it finds from now on: an exhaustive search takes two runs for one that are alike in it.
//! Every field is named, so that a new one has to be thought of here.

use super::{Finding, Node, Seen};
use crate::{
    actors::SimTime,
    ledger::saved::{Saved, Saver},
};
use std::time::Duration;

impl Seen {
    /// Appends it, at the beginning of a slot.
    pub(in crate::check) fn mark(&self, now: SimTime, out: &mut Saver) {
        let Self {
            tree,
            nodes,
            findings,
            alive,
            best,
            heard,
            slot_ends,
            // Those of the world.
            tips: _,
            // Of blocks that any node took in, which are heard of.
            judged: _,
            last: _,
            // Of the run from its start on.
            start: _,
            keys: _,
            // Told and counted, and asked about by nobody who judges.
            sometimes: _,
            told: _,
            sights: _,
        } = self;
        let slot = Duration::from_secs(tree.slots().blocktime().into());
        nodes.iter().for_each(|node| node.mark(now, slot, out));
        out.number(findings.len() as u64);
        for finding in findings {
            finding.mark(out);
        }
        alive.iter().for_each(|alive| alive.mark(out));
        best.save(out);
        heard.mark(out);
        slot_ends.save(out);
    }
}

impl Node {
    fn mark(&self, now: SimTime, slot: Duration, out: &mut Saver) {
        let Self {
            tip,
            forged,
            forged_taken,
            pending,
            removed,
            taken,
            evicted,
            facts,
            losses,
            // Asked about in the same instant only.
            moved: _,
            // Of the scenario.
            deviant: _,
            paired: _,
        } = self;
        tip.save(out);
        forged.save(out);
        forged_taken.save(out);
        out.list(pending.len(), pending.keys());
        removed.save(out);
        out.list(taken.len(), taken.keys());
        evicted.save(out);
        facts.mark(now, slot, out);
        losses.mark(out);
    }
}

impl Finding {
    /// Appends what makes it one with others.
    fn mark(&self, out: &mut Saver) {
        let signature = self.signature();
        signature.invariant.to_owned().save(out);
        signature.cause.save(out);
        signature.is_certified.save(out);
    }
}
