//! The memory of a watch that affects its later findings: an exhaustive search merges two runs with equal marks. Every field is named,
//! so that a new one does not compile until it is considered here.

use super::{Finding, Node, Observations};
use crate::{
    actors::SimTime,
    ledger::codec::{Save, Saver},
};
use std::time::Duration;

impl Observations {
    /// Appends this memory, at the beginning of a slot.
    pub(in crate::check) fn mark(&self, now: SimTime, out: &mut Saver) {
        let Self {
            tree,
            nodes,
            findings,
            alive,
            best,
            finals,
            heard,
            slot_ends,
            // They are the world's.
            tips: _,
            // Blocks that any node accepted, of which the watch hears.
            judged: _,
            last: _,
            // Belongs to the run from its start on.
            start: _,
            keys: _,
            // Reported and counted, and not used by any judgement.
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
        finals.highest().save(out);
        finals.tip().save(out);
        heard.mark(out);
        slot_ends.save(out);
    }
}

impl Node {
    fn mark(&self, now: SimTime, slot: Duration, out: &mut Saver) {
        let Self {
            tip,
            grew_from,
            forged,
            forged_taken,
            forged_up_to,
            pending,
            removed,
            taken,
            evicted,
            facts,
            losses,
            // Asked about in the same instant only.
            moved: _,
            // Belongs to the scenario.
            deviant: _,
            may_forge_in_vain: _,
            irregular: _,
        } = self;
        tip.save(out);
        forged.save(out);
        forged_taken.save(out);
        forged_up_to.save(out);
        out.list(pending.len(), pending.keys());
        removed.save(out);
        if !removed.is_empty() {
            grew_from.save(out);
        }
        out.list(taken.len(), taken.keys());
        evicted.save(out);
        facts.mark(now, slot, out);
        losses.mark(out);
    }
}

impl Finding {
    /// Appends the signature, by which findings count as one.
    fn mark(&self, out: &mut Saver) {
        let signature = self.signature();
        signature.invariant.to_owned().save(out);
        signature.cause.save(out);
        signature.is_certified.save(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        actors::NodeId,
        check::{Watch, conduct},
        ledger::{Rules, rules::FinalityRule},
        protocol::{Block, BlockDraft, Height, Slot, crypto::CryptoMode},
        scenario::Testnet,
        sim::SeedTree,
    };
    use std::{collections::BTreeSet, sync::Arc};

    /// The traces of a node's rollback or its pool in the observers can decide a cause later.
    #[test]
    fn each_thing_remembered_is_in_the_mark() {
        // One delegate, whose blocks are final at once.
        let testnet = Testnet::generate(SeedTree::new(1), 1, CryptoMode::Real);
        let mut rules = Rules::corrected();
        rules.ledger.finality = FinalityRule::Solidified;
        let tree = testnet.tree(rules).expect("it has its delegate");
        let genesis = tree.genesis().clone();
        let milestones = &tree.config().milestones;
        let draft = BlockDraft {
            version: 0,
            timestamp: tree.slots().start(Slot(1)),
            height: Height(2),
            previous: Some(genesis.id()),
            reward: milestones.at(Height(2)).reward,
            transactions: Vec::new(),
        };
        let block = Block::forge(draft, &testnet.delegates[0].keys, milestones);
        let final_one = tree.extend(&genesis, &Arc::new(block)).expect("its delegate made it");
        let is_final = |seen: &mut Observations| seen.finals.take(&final_one, &tree.applied(&final_one).state);
        let now = SimTime::from_micros(80_000_000);
        let key = *testnet.delegates[0].keys.public();
        let id = genesis.block().transactions[0].id();
        type Change<'a> = &'a dyn Fn(&mut Observations);
        let changes: [(&str, Change<'_>); 11] = [
            ("a final block", &|seen| is_final(seen).expect("there is one chain")),
            ("a block forged", &|seen| seen.nodes[0].forged = Some((Slot(9), genesis.block().clone()))),
            ("a block forged and taken", &|seen| seen.nodes[0].forged_taken = true),
            ("a height forged at", &|seen| _ = seen.nodes[0].forged_up_to.insert(key, Height(2))),
            ("transactions that left", &|seen| seen.nodes[0].removed.push(id)),
            ("transactions that gave way", &|seen| seen.nodes[0].evicted.extend([id])),
            ("a tip that was left", &|seen| seen.nodes[0].facts.leaves(now, &genesis)),
            ("a block taken back", &|seen| seen.nodes[0].losses.reverts(&genesis)),
            ("a block refused", &|seen| seen.nodes[0].losses.refuses(now, genesis.id())),
            ("what a pool told", &|seen| seen.nodes[0].losses.speaks(now)),
            ("a finding", &|seen| seen.find(&conduct::EARLY, now, Some(NodeId(0)), None, String::new())),
        ];
        let mark = |change: Change<'_>| {
            let watch = Watch::new(tree.clone(), &genesis, 2, &BTreeSet::new(), &BTreeSet::new());
            let mut seen = watch.seen();
            change(&mut seen);
            let mut out = Saver::of_what_is_ahead(&tree, now.micros());
            seen.mark(now, &mut out);
            out.finish().0
        };
        let unchanged = mark(&|_| ());
        assert_eq!(mark(&|_| ()), unchanged);
        for (what, change) in changes {
            assert_ne!(mark(change), unchanged, "{what}");
        }
    }
}
