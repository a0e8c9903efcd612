//! Which ranking gives a round its members: the rules by which protocols of this family let votes take effect late.
//!
//! A rule stores its data in the state after a block, as a rule of finality does. So the members of a round are a function of
//! the chain, and a node that goes back to another chain has that chain's members. Members change where a round begins.
//!
//! Where a milestone changes the number of members, the first of the old list stay, and the newest ranking fills what is left.

use super::{
    codec::{LoadError, Loader, Save, Saver, saved, shared},
    round::Member,
};
use crate::protocol::{Height, PublicKey, Timestamp};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The rule by which a ranking of the delegates gives a round its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ElectionRule {
    /// The ranking after the last block of the round before. Source: consensus.md 1.2.
    AtOnce,
    /// Lisk: the ranking two rounds before that one, so votes of round r count from round r + 3 on. The first three rounds have genesis'
    /// ranking. Source: LiskArchive/lisk-sdk, `delegates_info` with a `delegateListRoundOffset` of 2.
    TwoRoundsBefore,
    /// EOS: a block proposes a ranking, once in a minute. The ranking waits until that block is final, becomes pending in another block,
    /// and waits until that one is final, too. Source: EOSIO/eos 11d35f0f93, `block_header_state` and `controller`; the system contract's
    /// `onblock`, more than 120 slots of half a second.
    WhenFinal,
    /// Tron: the ranking after the first round that ends in another period of six hours than the one before.
    /// Source: java-tron 1e35f79a16, the maintenance.
    EverySixHours,
}

/// The state of a rule after a block.
#[derive(Clone, Debug)]
pub enum Election {
    AtOnce,
    /// The rankings after the last two rounds, oldest first.
    TwoRoundsBefore(Arc<Vec<Arc<[Member]>>>),
    WhenFinal(Arc<Proposals>),
    /// The time of the block that ended the last round.
    EverySixHours(Timestamp),
}

/// The proposed and the pending members.
#[derive(Clone, Debug, Default)]
pub struct Proposals {
    /// When a ranking was last taken for a proposal.
    taken: Timestamp,
    proposed: Option<WaitingMembers>,
    pending: Option<WaitingMembers>,
}

/// Members that wait until a block is final.
#[derive(Clone, Debug)]
struct WaitingMembers {
    block: Height,
    members: Vec<Member>,
}

/// The least time between two proposals, in seconds.
const MINUTE: u32 = 60;
const SIX_HOURS: u32 = 6 * 3_600;

impl ElectionRule {
    /// The state before genesis.
    pub fn begin(self) -> Election {
        match self {
            Self::AtOnce => Election::AtOnce,
            Self::TwoRoundsBefore => Election::TwoRoundsBefore(Arc::default()),
            Self::WhenFinal => Election::WhenFinal(Arc::default()),
            Self::EverySixHours => Election::EverySixHours(Timestamp(0)),
        }
    }
}

impl Election {
    /// Ends a round with a block of this time. Returns the `seats` members of the round that begins. `ranking` is that after the block
    /// and names `seats` delegates or more, `members` are those of the round that ends, none at genesis.
    pub fn elect(
        &mut self,
        ranking: &[Member],
        members: &[Member],
        seats: usize,
        time: Timestamp,
        last_final: Height,
    ) -> Vec<Member> {
        let mut elected = match self {
            Self::AtOnce => Vec::new(),
            Self::TwoRoundsBefore(rankings) => {
                let rankings = Arc::make_mut(rankings);
                rankings.push(ranking.into());
                let oldest = rankings[0].to_vec();
                rankings.drain(..rankings.len().saturating_sub(2));
                oldest
            }
            Self::WhenFinal(proposals) => match &proposals.pending {
                Some(pending) if pending.block <= last_final => {
                    Arc::make_mut(proposals).pending.take().map(|pending| pending.members).unwrap_or_default()
                }
                _ => members.to_vec(),
            },
            Self::EverySixHours(before) => {
                let is_over = before.0 / SIX_HOURS != time.0 / SIX_HOURS;
                *before = time;
                if is_over { Vec::new() } else { members.to_vec() }
            }
        };
        elected.truncate(seats);
        let is_new = |member: &&Member| !elected.iter().any(|other| other.public_key == member.public_key);
        let more: Vec<Member> = ranking.iter().filter(is_new).take(seats - elected.len()).cloned().collect();
        elected.extend(more);
        elected
    }

    /// Updates the state by a block of the chain, after the rule of finality did. `members` are those of the next block's round. `ranking`
    /// ranks the delegates by the state after the block.
    pub fn follow(
        &mut self,
        block: Height,
        time: Timestamp,
        last_final: Height,
        members: &[Member],
        ranking: impl FnOnce() -> Vec<Member>,
    ) {
        let Self::WhenFinal(proposals) = self else { return };
        let is_due = time.0 > proposals.taken.0 + MINUTE;
        let is_final = |proposed: &WaitingMembers| proposed.block <= last_final;
        let becomes_pending = proposals.pending.is_none() && proposals.proposed.as_ref().is_some_and(is_final);
        if !is_due && !becomes_pending {
            return;
        }
        let proposals = Arc::make_mut(proposals);
        if becomes_pending {
            proposals.pending = proposals.proposed.take().map(|proposed| WaitingMembers { block, ..proposed });
        }
        if is_due {
            proposals.taken = time;
            if proposals.proposed.is_none() {
                let next = proposals.pending.as_ref().map_or(members, |pending| &pending.members);
                let ranked: Vec<Member> = ranking().into_iter().take(members.len()).collect();
                if ranked.len() == members.len() && keys(&ranked) != keys(next) {
                    proposals.proposed = Some(WaitingMembers { block, members: ranked });
                }
            }
        }
    }
}

/// The keys of delegates, in an order that does not depend on their ranks.
fn keys(members: &[Member]) -> Vec<PublicKey> {
    let mut keys: Vec<PublicKey> = members.iter().map(|member| member.public_key).collect();
    keys.sort_unstable();
    keys
}

/// The variant follows from the rules of the network. [`Election::AtOnce`] takes no byte.
impl Save for Election {
    fn save(&self, out: &mut Saver) {
        match self {
            Self::AtOnce => {}
            Self::TwoRoundsBefore(rankings) => rankings.save(out),
            Self::WhenFinal(proposals) => proposals.save(out),
            Self::EverySixHours(before) => before.save(out),
        }
    }

    fn load(from: &mut Loader) -> Result<Self, LoadError> {
        Ok(match from.tree().rules().ledger.election {
            ElectionRule::AtOnce => Self::AtOnce,
            ElectionRule::TwoRoundsBefore => Self::TwoRoundsBefore(Save::load(from)?),
            ElectionRule::WhenFinal => Self::WhenFinal(Save::load(from)?),
            ElectionRule::EverySixHours => Self::EverySixHours(Save::load(from)?),
        })
    }
}

saved!(struct Proposals { taken, proposed, pending });
saved!(struct WaitingMembers { block, members });
shared!(Proposals, Vec<Arc<[Member]>>);

#[cfg(test)]
mod tests;
