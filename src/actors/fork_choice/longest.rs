//! The longest chain, or, with a rule of finality that decides between chains, the one on which more is agreed: EOS's last
//! irreversible block, then the height, then the smaller id; Lisk's highest prevoted block, then the height.
//!
//! 1. A block that does not follow its tip makes a node check where its peers stand.
//! 2. The node rolls back to the block common with the peer on the strongest chain, if that chain beats its own. It ignores chains that
//!    split from its own below the last final block.
//! 3. Its delegate forges in its turn without a quorum.

use super::{ForkChoice, Look, Strength};
use crate::{actors::message::NetworkState, ledger::Rules, protocol::Height};

pub(super) struct Longest;

impl ForkChoice for Longest {
    fn goes_back_to(&self, look: &Look<'_>) -> Option<Height> {
        let mut best: (Strength, Option<Height>) = (look.own, None);
        for peer in look.forked().filter(|peer| peer.verified.highest_common >= look.last_final) {
            let chain = peer.chain.map(|chain| chain.strength).filter(|strength| *strength > best.0);
            if let Some(strength) = chain {
                best = (strength, Some(peer.verified.highest_common));
            }
        }
        best.1
    }

    fn may_forge(&self, _seen: &NetworkState, _delegates: u32, _rules: &Rules) -> bool {
        true
    }

    fn doubts_for_a_block(&self) -> bool {
        true
    }

    fn catches_up_at_once(&self) -> bool {
        true
    }

    fn reads_chains(&self) -> bool {
        true
    }
}
