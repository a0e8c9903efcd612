//! The owner of a slot, and the members of the next round.

use super::{BlockStep, equal, figures};
use crate::{
    ledger::{
        Link, State,
        round::Member,
        rules::{ElectionRule, MissedBlocks, Shuffle},
        wallet::DelegateAttributes,
    },
    protocol::{PublicKey, crypto::sha256},
};
use rand_xoshiro::{
    SplitMix64,
    rand_core::{RngCore, SeedableRng},
};
use std::{
    fmt::{self, Display},
    iter,
    sync::Arc,
};

/// Returns the forging order of the round in force before the block. Written from the contract's pseudocode.
fn forging_order(step: &BlockStep<'_>) -> Vec<PublicKey> {
    let round = step.before.round();
    let mut order: Vec<PublicKey> = round.members.iter().map(|member| member.public_key).collect();
    let (members, skips) = match step.tree.rules().ledger.shuffle {
        Shuffle::Reference => (order.len(), true),
        Shuffle::EveryPlace => (order.len(), false),
        Shuffle::Ranking | Shuffle::Lottery(_) => return order,
        Shuffle::Key => {
            order.sort_unstable();
            return order;
        }
    };
    let mut digest = sha256(round.number().0.to_string().as_bytes());
    let mut place = 0;
    while place < members {
        for byte in &digest[..4] {
            if place < members {
                order.swap(place, usize::from(*byte) % members);
                place += 1;
            }
        }
        digest = sha256(&digest);
        place += usize::from(skips);
    }
    order
}

pub(super) fn slots_rise(step: &BlockStep<'_>) -> Result<(), String> {
    let (slot, before) = (step.slot(step.block.header.timestamp.0), step.slot(step.before.timestamp().0));
    if slot > before { Ok(()) } else { Err(format!("slot {slot} does not follow slot {before} of its parent")) }
}

/// Returns the number of consecutive slots that a delegate owns.
fn turn(step: &BlockStep<'_>) -> usize {
    step.tree.rules().ledger.slots_a_turn as usize
}

/// The owners of slots, by the round before the block.
fn owners<'a>(step: &'a BlockStep<'_>) -> impl Fn(u32) -> Vec<PublicKey> + 'a {
    let (order, turn) = (forging_order(step), turn(step));
    move |slot| match step.tree.rules().ledger.shuffle {
        Shuffle::Lottery(active_per_million) => winners(step, active_per_million, slot),
        _ => vec![order[slot as usize / turn % order.len()]],
    }
}

/// The members that draw a slot in a lottery, in ranking order. Written from the closed form of Ouroboros Praos.
fn winners(step: &BlockStep<'_>, active_per_million: u32, slot: u32) -> Vec<PublicKey> {
    let members = &step.before.round().members;
    let weight = |member: &Member| member.vote_balance.0.max(0) as f64;
    let total: f64 = members.iter().map(weight).sum();
    let wins = |member: &&Member| {
        let share = if total > 0.0 { weight(member) / total } else { 1.0 / members.len() as f64 };
        let first = member.public_key.as_bytes()[25..].iter().fold(0, |all, byte| all << 8 | u64::from(*byte));
        // The generator's state before the number of the slot is that of the slot before.
        let before = first.wrapping_add(u64::from(slot - 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let drawn = SplitMix64::from_seed(before.to_le_bytes()).next_u64() as f64 / 2_f64.powi(64);
        drawn < -(share * (-f64::from(active_per_million) / 1e6).ln_1p()).exp_m1()
    };
    members.iter().filter(wins).map(|member| member.public_key).collect()
}

pub(super) fn owner(step: &BlockStep<'_>) -> Result<(), String> {
    let slot = step.slot(step.block.header.timestamp.0);
    let (owners, forger) = (owners(step)(slot), step.block.header.generator);
    if owners.contains(&forger) {
        return Ok(());
    }
    let owners: Vec<String> = owners.iter().map(PublicKey::to_string).collect();
    Err(format!("forger of slot {slot}: found {forger}, expected {}", owners.join(" or ")))
}

/// Checks `forger.missing`: one entry for each empty slot, at most a round of them, none after genesis. Depending on the rule, missed
/// blocks count these entries, or the members that forged nothing in a finished round.
pub(super) fn missed(step: &BlockStep<'_>) -> Result<(), String> {
    let (first, slot) = (step.slot(step.before.timestamp().0) + 1, step.slot(step.block.header.timestamp.0));
    let mut expected = Vec::new();
    if first < slot && step.before.height().0 > 1 {
        let round = step.before.round().members.len() * turn(step);
        expected = (first..slot).take(round).flat_map(owners(step)).collect();
    }
    let names = |keys: &[PublicKey]| keys.iter().map(|key| step.name(key).to_string()).collect::<Vec<_>>().join(", ");
    if step.link.missing() != expected {
        equal("delegates who missed a slot", names(step.link.missing()), names(&expected))?;
    }
    match step.tree.rules().ledger.missed_blocks {
        MissedBlocks::Slots => figures::missed(step, &expected),
        MissedBlocks::Rounds => figures::missed(step, &idle(step)),
    }
}

/// The members of the round that ends with the block who forged none of its blocks. Empty if the round goes on, or has only the genesis
/// block.
fn idle(step: &BlockStep<'_>) -> Vec<PublicKey> {
    let members = &step.before.round().members;
    if !step.ends_round() {
        return Vec::new();
    }
    let mut forgers = vec![step.block.header.generator];
    let mut parent = step.link.parent();
    for _ in 1..members.len() * turn(step) {
        let Some(link) = parent.filter(|link| link.height().0 > 1) else { break };
        forgers.push(link.block().header.generator);
        parent = link.parent();
    }
    let members = members.iter().map(|member| member.public_key);
    members.filter(|key| !forgers.contains(key)).collect()
}

pub(super) fn round_ends(step: &BlockStep<'_>) -> Result<(), String> {
    let (ends, ended) = (step.ends_round(), step.link.round_end().is_some());
    if ends != ended {
        let said = if ended { "a round ends with it, and should not" } else { "a round should end with it" };
        return Err(said.to_owned());
    }
    let (old, new) = (step.before.round().number(), step.after.round().number());
    equal("number of the round", new.0, old.0 + u32::from(ends))
}

/// Checks ranks and members: heaviest first, ties by key. Resigned delegates have no seat and no rank.
pub(super) fn ranking(step: &BlockStep<'_>) -> Result<(), String> {
    let state = step.after;
    if !step.ends_round() {
        let same = state.round().members == step.before.round().members;
        return if same { keep_ranks(step) } else { Err("its members changed before the round was over".to_owned()) };
    }
    let resigned = |delegate: &&DelegateAttributes| delegate.resigned && delegate.rank.is_some();
    if let Some(delegate) = state.delegates().filter_map(|wallet| wallet.delegate.as_deref()).find(resigned) {
        return Err(format!("{} has resigned and has a rank", delegate.username));
    }
    let ranking = by_weight(state);
    for (index, (_, _, delegate)) in ranking.iter().enumerate() {
        equal(format_args!("rank of {}", delegate.username), delegate.rank.unwrap_or(0), index as u32 + 1)?;
    }
    let newest = without_figures(ranking);
    let next = step.block.header.height.next();
    let seats = step.tree.config().milestones.at(next).active_delegates as usize;
    let found = weighed(&state.round().members);
    let members: Vec<PublicKey> = found.iter().map(|(_, key)| *key).collect();
    equal("members", members.len(), seats)?;
    let expected = elected(step, newest, seats)?;
    for ((found, member), (weight, key)) in found.iter().zip(&expected) {
        equal("member", step.name(member), step.name(key))?;
        equal(format_args!("weight of the member {}", step.name(key)), -found, -weight)?;
    }
    for (key, old, new) in step.delegates_with(&members) {
        let round = if members.contains(&key) { state.round().number().0 } else { old.round };
        equal(format_args!("last round of {}", new.username), new.round, round)?;
    }
    Ok(())
}

/// Returns the delegates that have not resigned, heaviest first, each with its negated weight and its key.
fn by_weight(state: &State) -> Vec<(i128, PublicKey, &DelegateAttributes)> {
    let mut ranking: Vec<_> = state
        .delegates()
        .filter_map(|wallet| wallet.delegate.as_deref().zip(wallet.public_key))
        .filter(|(delegate, _)| !delegate.resigned)
        .map(|(delegate, key)| (-delegate.vote_balance.0, key, delegate))
        .collect();
    ranking.sort_unstable_by_key(|(weight, key, _)| (*weight, *key));
    ranking
}

fn without_figures(ranking: Vec<(i128, PublicKey, &DelegateAttributes)>) -> Vec<(i128, PublicKey)> {
    ranking.into_iter().map(|(weight, key, _)| (weight, key)).collect()
}

/// Returns the ranking of a state, each delegate with its negated weight.
fn heaviest(state: &State) -> Vec<(i128, PublicKey)> {
    without_figures(by_weight(state))
}

fn weighed(members: &[Member]) -> Vec<(i128, PublicKey)> {
    members.iter().map(|member| (-member.vote_balance.0, member.public_key)).collect()
}

/// The members of the round that begins, by the rule of election. `newest` is the ranking after the block.
///
/// # Errors
/// Members changed without a ranking that was proposed and became final twice.
fn elected(
    step: &BlockStep<'_>,
    newest: Vec<(i128, PublicKey)>,
    seats: usize,
) -> Result<Vec<(i128, PublicKey)>, String> {
    let before = weighed(&step.before.round().members);
    let mut ends = iter::successors(step.link.parent(), |link| link.parent())
        .filter(|link| link.round_end().is_some() || link.parent().is_none());
    let members = match step.tree.rules().ledger.election {
        ElectionRule::AtOnce => return Ok(newest),
        ElectionRule::TwoRoundsBefore => {
            let last = ends.next();
            ends.next().or(last).map(|link| heaviest(&step.tree.applied(&link).state)).unwrap_or_default()
        }
        ElectionRule::EverySixHours => {
            let period = |seconds: u32| seconds / 21_600;
            let last = ends.next().map_or(0, |link| link.block().header.timestamp.0);
            let stays = period(last) == period(step.block.header.timestamp.0);
            if stays { before } else { return Ok(newest) }
        }
        ElectionRule::WhenFinal => {
            let found = weighed(&step.after.round().members);
            let is_found = |members: &Vec<(i128, PublicKey)>| filled(members.clone(), &newest, seats) == found;
            // The proposal was final in a block that is final now.
            let last_final = |state: &State, link: &Arc<Link>| link.ancestor(state.finality().height());
            let pending = last_final(step.after, step.link);
            let proposed = pending.and_then(|link| last_final(&step.tree.applied(&link).state, &link));
            // A proposal has as many members as there were when it was made.
            let ranked = |link: Arc<Link>| {
                let state = &step.tree.applied(&link).state;
                let mut ranked = heaviest(state);
                ranked.truncate(state.round().members.len());
                Some(ranked).filter(is_found)
            };
            match is_found(&before) {
                true => before,
                false => iter::successors(proposed, |link| link.parent()).find_map(ranked).ok_or_else(|| {
                    "its members are new, and no block that was final in a final block ranked them".to_owned()
                })?,
            }
        }
    };
    Ok(filled(members, &newest, seats))
}

/// Returns a member for each seat: the first of `members`, then the first others of the newest ranking.
fn filled(mut members: Vec<(i128, PublicKey)>, newest: &[(i128, PublicKey)], seats: usize) -> Vec<(i128, PublicKey)> {
    members.truncate(seats);
    let is_other = |one: &&(i128, PublicKey)| !members.iter().any(|(_, other)| *other == one.1);
    let more: Vec<_> = newest.iter().filter(is_other).take(seats - members.len()).copied().collect();
    members.extend(more);
    members
}

/// Checks that no rank and no active delegate changes between two boundaries.
fn keep_ranks(step: &BlockStep<'_>) -> Result<(), String> {
    for (_, old, new) in step.delegates_with(&[]) {
        equal(format_args!("rank of {}", new.username), new.rank.unwrap_or(0), old.rank.unwrap_or(0))?;
        equal(format_args!("last round of {}", new.username), new.round, old.round)?;
    }
    Ok(())
}

impl BlockStep<'_> {
    /// Returns the displayed name of a delegate.
    pub(super) fn name(&self, key: &PublicKey) -> Name<'_> {
        Name { key: *key, state: self.after }
    }
}

/// A delegate: compared by its key, written as its username, or as its key if it has none.
#[derive(Clone, Copy)]
pub(super) struct Name<'a> {
    key: PublicKey,
    state: &'a State,
}

impl PartialEq for Name<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.state.delegate_of(&self.key) {
            Some(delegate) => f.write_str(&delegate.username),
            None => write!(f, "{}", self.key),
        }
    }
}
