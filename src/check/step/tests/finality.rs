//! The count of final blocks: it agrees with the ledger on chains with gaps, forks and new members, and finds a last final block that is
//! too high or too low.

use super::{check_step, played_for};
use crate::{
    check::check_all,
    ledger::{BlockTree, Link},
};
use std::sync::Arc;

/// Sets of rules with a rule of finality that is judged, and slots of a turn.
const RULES: [(&str, u32); 8] =
    [("tron", 1), ("eos", 1), ("eos", 3), ("eos-2718", 2), ("lisk", 1), ("lisk", 2), ("lisk-6594", 1), ("repaired", 1)];

/// Seven members, and two that stand by and take two of their places. One of the members is down for a while, and the others are parted.
fn chain(base: &str, turn: u32) -> (Arc<BlockTree>, Vec<Arc<Link>>) {
    let text = format!(
        "version = 1\nrounds = 60\ncrypto = \"modelled\"\n[network]\ndelegates = 7\nstandby = 2\n\
         [rules]\nbase = \"{base}\"\nledger.slots_a_turn = {turn}\nledger.election = \"at-once\"\n\
         [[fault]]\nkind = \"crash\"\nnodes = [2]\nfrom = {{ slot = 20 }}\nuntil = {{ slot = 70 }}\n\
         [[fault]]\nkind = \"partition\"\ngroups = [[0, 1, 3, 7]]\nfrom = {{ slot = 90 }}\nuntil = {{ slot = 130 }}\n\
         [[action]]\nheight = 30\nby = \"account_1\"\ndoes = \"vote\"\nto = \"genesis_8\"\n\
         [[action]]\nheight = 90\nby = \"account_1\"\ndoes = \"unvote\"\nto = \"genesis_8\"\n\
         [[action]]\nheight = 100\nby = \"account_1\"\ndoes = \"vote\"\nto = \"genesis_9\"\n"
    );
    played_for(240, &text)
}

#[test]
fn the_last_final_block_is_found_anew() {
    for (base, turn) in RULES {
        let (tree, chain) = chain(base, turn);
        let mut heights = Vec::new();
        for link in &chain {
            let applied = tree.applied(link);
            check_step(&tree, link, &applied.state).unwrap_or_else(|why| panic!("{base}, turns of {turn}: {why}"));
            heights.push(applied.state.finality().height());
        }
        let tip = chain.last().expect("it has blocks");
        check_all(&tree, tip).unwrap_or_else(|why| panic!("{base}: {why}"));
        let lag = tip.height().0 - heights.last().expect("it has blocks").0;
        heights.dedup();
        assert!(heights.len() > 10 && lag < 60, "{base}, turns of {turn}: {heights:?} below {tip:?}");
        let ends = chain.iter().filter_map(|link| link.round_end());
        let mut members: Vec<_> = ends.map(|end| end.created.members.len()).collect();
        members.dedup();
        assert_eq!(members, [7], "{base}");
    }
}

/// The rule's knowledge after another block of the chain: of the one before, and of the next one.
#[test]
fn a_last_final_block_too_low_or_too_high_is_found() {
    for (base, turn) in RULES {
        let (tree, chain) = chain(base, turn);
        let (mut low, mut high) = (0, 0);
        for blocks in chain.windows(3) {
            let [before, link, next] = [0, 1, 2].map(|place| tree.applied(&blocks[place]).state.clone());
            let ends = blocks[1].round_end().is_some();
            let is_by_block = base.starts_with("lisk") || base == "repaired";
            for (other, found, is_judged) in [(before, &mut low, ends || is_by_block), (next, &mut high, true)] {
                let is_same = other.finality().height() == link.finality().height();
                if is_same || !is_judged {
                    continue;
                }
                let mut state = link.clone();
                *state.tampered_finality() = other.finality().clone();
                let violation = check_step(&tree, &blocks[1], &state).expect_err(base);
                assert_eq!(violation.invariant, "the last final block is that of the rule", "{base}: {violation}");
                *found += 1;
            }
        }
        // Where turns are longer, it may never rise with the last block of a round.
        assert!((low > 0 || turn > 1) && high > 10, "{base}, turns of {turn}: {low} {high}");
    }
}
