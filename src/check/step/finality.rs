//! The last final block, found anew in the blocks below. Source: protocols.md finality.
//!
//! The ledger carries counts from block to block. This check carries only the height that was final before, below which no rule goes. It
//! reads each rule as a question about the whole chain:
//!
//! - Tron, and EOS before #2718: the highest block at or above which enough members of the round have forged.
//! - EOS: the highest proposal below the block at which, counted downwards, enough members have forged. A proposal is a block that enough
//!   delegates confirm. A delegate confirms a block if its first block at or above that one names a lower height.
//! - Lisk: the highest block with enough precommits. A block has prevotes and precommits of its own, so they are listed by block.
//!
//! The check does not judge EOS with #3835, where a returning delegate confirms twice, nor the agreed height of Lisk with #6594.

use super::{BlockStep, equal};
use crate::{
    ledger::rules::FinalityRule,
    protocol::{Height, PublicKey},
};
use std::collections::{BTreeMap, BTreeSet};

/// The number of blocks in which EOS looks for the confirmations of a block, including the block itself.
const COUNTED: u32 = 1_024;

/// Checks the last final block. Lisk is judged at each block. The other rules, whose last final block may be far below, are judged where
/// it moves and where a round ends.
pub(super) fn last_final(step: &BlockStep<'_>) -> Result<(), String> {
    let rule = step.tree.rules().ledger.finality;
    let (before, after) = (step.before.finality(), step.after.finality());
    let (last, found) = (before.height(), after.height());
    let is_due = || found != last || step.ends_round();
    let expected = match rule {
        FinalityRule::LiskBft | FinalityRule::LiskBft6594 => {
            let votes = Votes::of(step);
            if rule == FinalityRule::LiskBft {
                let agreed = Height(votes.prevoted(step.parent.height().0)).max(before.agreed());
                equal("agreed height", after.agreed(), agreed)?;
            }
            votes.precommitted()
        }
        _ if !is_due() => return Ok(()),
        FinalityRule::Solidified => Below::above(step, last).forged_by(|members| members - members * 3 / 10),
        FinalityRule::LastIrreversible2718 => Below::above(step, last).forged_by(two_thirds),
        FinalityRule::LastIrreversible => Below::above(step, last).irreversible(),
        // No rule, a rule with a fault, or a rule that is not written a second time here.
        _ => return Ok(()),
    };
    equal("height of the last final block", found, Height(expected).max(last))
}

/// The least number of members that is more than two thirds of all.
fn two_thirds(members: usize) -> usize {
    2 * members / 3 + 1
}

/// A block of the chain below the step, and the step's own.
struct Header {
    height: u32,
    forger: PublicKey,
    /// The height up to which its forger says it had forged.
    claim: u32,
    /// Its place in [`Below::rounds`].
    round: usize,
}

/// Blocks of the chain, the highest first, and their rounds.
#[derive(Default)]
struct Below {
    headers: Vec<Header>,
    rounds: Vec<BTreeSet<PublicKey>>,
}

impl Below {
    /// The blocks above a height.
    fn above(step: &BlockStep<'_>, height: Height) -> Self {
        Self::down(step, |at, _| at > height.0)
    }

    /// Returns the blocks from the step's own down to genesis, for as long as `is_wanted` accepts the height and the number of members of
    /// the round.
    fn down(step: &BlockStep<'_>, mut is_wanted: impl FnMut(u32, usize) -> bool) -> Self {
        let (mut below, mut link) = (Self::default(), step.link.clone());
        while let Some(parent) = link.parent() {
            if below.rounds.is_empty() || link.round_end().is_some() {
                let applied = step.tree.applied(&parent);
                let members = applied.state.round().members.iter();
                below.rounds.push(members.map(|member| member.public_key).collect());
            }
            let (round, header) = (below.rounds.len() - 1, &link.block().header);
            if !is_wanted(header.height.0, below.rounds[round].len()) {
                break;
            }
            let (height, forger, claim) = (header.height.0, header.generator, header.forged_before.0);
            below.headers.push(Header { height, forger, claim, round });
            link = parent;
        }
        below
    }

    /// Returns the height of the highest block at or above which a quorum of the members has forged, or 0 without one.
    fn forged_by(&self, quorum: impl Fn(usize) -> usize) -> u32 {
        let Some(members) = self.rounds.first() else { return 0 };
        let mut seen = BTreeSet::new();
        let is_enough = |header: &&Header| {
            members.contains(&header.forger) && seen.insert(header.forger) && seen.len() == quorum(members.len())
        };
        self.headers.iter().find(is_enough).map_or(0, |header| header.height)
    }

    /// Returns the height of EOS's last irreversible block if it is one of these blocks, and 0 otherwise. Two thirds of the members last
    /// forged on a proposal at least that high. Proposals rise with the chain, so it is the proposal of the member who forged longest ago.
    /// A member counts for as long as it has been one without a break.
    fn irreversible(&self) -> u32 {
        let Some(mut members) = self.rounds.first().cloned() else { return 0 };
        let (quorum, mut round, mut seen) = (two_thirds(members.len()), 0, BTreeSet::new());
        let last = self.headers.iter().position(|header| {
            if header.round > round {
                round = header.round;
                members.retain(|member| self.rounds[round].contains(member));
            }
            members.contains(&header.forger) && seen.insert(header.forger) && seen.len() == quorum
        });
        last.map_or(0, |last| self.proposed(&self.headers[last + 1..]))
    }

    /// Returns the height of the highest of `headers` that two thirds of its round confirm with blocks among `headers`, or 0 without one.
    fn proposed(&self, headers: &[Header]) -> u32 {
        let mut firsts: BTreeMap<PublicKey, &Header> = BTreeMap::new();
        for header in headers {
            firsts.insert(header.forger, header);
            let confirms = |first: &&&Header| {
                let confirms_more = (1..header.height).contains(&first.claim);
                first.height == header.height || confirms_more && first.height - header.height < COUNTED
            };
            if firsts.values().filter(confirms).count() >= two_thirds(self.rounds[header.round].len()) {
                return header.height;
            }
        }
        0
    }
}

/// A block as a vote of Lisk's.
struct Vote {
    height: u32,
    forger: PublicKey,
    /// The greatest height at which its forger had forged before, by its claim and by this chain.
    before: u32,
    /// The lowest block that it can vote for: three rounds down, and in its forger's present series of rounds.
    least: u32,
    /// It is below its forger's highest block, or its forger is no member.
    is_void: bool,
    /// The votes that a block needs in its round.
    quorum: usize,
}

/// The blocks that the step's block and its parent can vote for, the lowest first.
struct Votes {
    /// The height of the first one.
    lowest: u32,
    votes: Vec<Vote>,
    /// The heights of the blocks that prevote each of them, ascending.
    prevotes: Vec<Vec<u32>>,
}

impl Votes {
    fn of(step: &BlockStep<'_>) -> Self {
        let own = step.link.height().0;
        let turn = step.tree.rules().ledger.slots_a_turn as usize;
        let three_rounds = |height: u32, members: usize| (height + 1).saturating_sub(3 * (members * turn) as u32);
        let mut floor = 0;
        let below = Below::down(step, |height, members| {
            if height < own {
                floor = floor.max(three_rounds(height, members));
            }
            height >= floor
        });
        // The lowest block here of each round. The oldest round may have none here.
        let mut firsts = vec![0; below.rounds.len()];
        below.headers.iter().for_each(|header| firsts[header.round] = header.height);
        let (mut floor, mut shown, mut votes) = (0, BTreeMap::new(), Vec::new());
        for &Header { height, forger, claim, round } in below.headers.iter().rev() {
            let members = below.rounds[round].len();
            floor = floor.max(three_rounds(height, members));
            let series = below.rounds[round..].iter().take_while(|members| members.contains(&forger)).count();
            let before = shown.insert(forger, height).unwrap_or(0).max(claim);
            let is_void = before >= height || series == 0;
            let since = firsts[round + series.saturating_sub(1)];
            let quorum = two_thirds(members);
            votes.push(Vote { height, forger, before, least: floor.max(since), is_void, quorum });
        }
        let lowest = own + 1 - votes.len() as u32;
        let mut prevotes = vec![Vec::new(); votes.len()];
        for vote in votes.iter().filter(|vote| !vote.is_void) {
            let from = vote.least.max(vote.before + 1).max(lowest);
            prevotes[(from - lowest) as usize..=(vote.height - lowest) as usize]
                .iter_mut()
                .for_each(|heights| heights.push(vote.height));
        }
        Self { lowest, votes, prevotes }
    }

    /// The place of the block at a height.
    fn place(&self, height: u32) -> usize {
        (height - self.lowest) as usize
    }

    /// Returns true if the votes of blocks at these heights, ascending, meet the quorum of the last block's round or of an earlier one's.
    fn is_enough(&self, heights: &[u32]) -> bool {
        heights.iter().enumerate().any(|(place, height)| place + 1 >= self.votes[self.place(*height)].quorum)
    }

    /// The highest block that two thirds prevote with blocks up to a height; 0 without one.
    fn prevoted(&self, height: u32) -> u32 {
        let is_prevoted = |prevotes: &[u32]| {
            let until = prevotes.partition_point(|vote| *vote <= height);
            self.is_enough(&prevotes[..until])
        };
        let place = self.prevotes.iter().rposition(|prevotes| is_prevoted(prevotes));
        place.map_or(0, |place| self.votes[place].height)
    }

    /// The highest block that two thirds precommit; 0 without one.
    fn precommitted(&self) -> u32 {
        let mut delegates: BTreeMap<PublicKey, Vec<&Vote>> = BTreeMap::new();
        for vote in &self.votes {
            delegates.entry(vote.forger).or_default().push(vote);
        }
        let mut precommits: Vec<Vec<u32>> = vec![Vec::new(); self.votes.len()];
        for own in delegates.values() {
            self.precommit(own, &mut precommits);
        }
        let is_final = |heights: &mut Vec<u32>| {
            heights.sort_unstable();
            self.is_enough(heights)
        };
        let place = precommits.iter_mut().rposition(is_final);
        place.map_or(0, |place| self.votes[place].height)
    }

    /// Adds the precommits of one delegate's blocks, the lowest first. A block precommits the prevoted blocks below it that are above the
    /// delegate's last precommit, and above every block that the delegate has not prevoted. If a block names another height than that of
    /// the delegate's block before it, the delegate has not prevoted the blocks up to that height.
    fn precommit(&self, own: &[&Vote], precommits: &mut [Vec<u32>]) {
        let (mut last, mut unprevoted, mut named) = (0, 0, None);
        for vote in own {
            if named != Some(vote.before) {
                unprevoted = vote.before;
            }
            named = (vote.before < vote.height).then_some(vote.height);
            if vote.is_void {
                continue;
            }
            let from = vote.least.max(unprevoted + 1).max(last + 1).max(self.lowest);
            for height in from..vote.height {
                let place = self.place(height);
                if self.prevotes[place].partition_point(|prevote| *prevote < vote.height) >= vote.quorum {
                    precommits[place].push(vote.height);
                    last = height;
                }
            }
        }
    }
}
