//! Rounds: their numbers, their active delegates and the forging order. Source: consensus.md 1.1 to 1.4.
//!
//! 1. A segment of heights begins where a milestone changes the number n of active delegates.
//! 2. Within a segment every n blocks are a round; rounds are numbered on from segment to segment. Blocks count, not slots. Where a
//!    rule gives each delegate a turn of t slots, t·n blocks are a round.
//! 3. The block that ends a round makes the next one, from the state after it (`state.rs`).
//! 4. Its members are the n delegates of the greatest vote weight, equal ones by their public keys. That is the ranking.
//! 5. The forging order is the ranking shuffled by SHA256 of the round's number. It skips every fifth place (Q24).
//! 6. A slot belongs to the member at (slot number / slots of a turn, mod n) of that order. Slots count from the epoch, so a missed
//!    slot does not move any turn, and in a round with missed slots some members forge twice.
//! 7. Where a rule has a lottery there is no order: each member draws for each slot whether it owns it.

use super::{Balance, rules::Shuffle};
use crate::protocol::{Address, Height, Milestones, PublicKey, RoundNumber, Slot, shuffle};
use smallvec::{SmallVec, smallvec};

/// The position of a height among the rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundPosition {
    pub round: RoundNumber,
    /// The first height of the round.
    pub first: Height,
    /// Number of active delegates.
    pub delegates: u32,
    /// Slots in a row that each of them owns, at least 1; as many blocks of each make the round.
    pub turn: u32,
}

impl RoundPosition {
    /// Number of blocks of the round.
    pub fn blocks(&self) -> u32 {
        self.delegates * self.turn
    }

    /// The last height of the round.
    pub fn last(&self) -> Height {
        Height(self.first.0 + self.blocks() - 1)
    }
}

/// A map from heights to rounds, by the milestones that change the number of delegates. Source: consensus.md 1.1.
#[derive(Clone, Debug)]
pub struct RoundSchedule {
    /// One for each change, ascending: the position of its first height.
    segments: Vec<RoundPosition>,
}

impl RoundSchedule {
    /// The milestones have been checked to change the number of delegates at round boundaries only. Where turns are of more than
    /// one slot, a milestone can cut a round short.
    pub fn new(milestones: &Milestones, turn: u32) -> Self {
        let mut segments: Vec<RoundPosition> = Vec::new();
        for milestone in milestones.all() {
            let (first, delegates) = (milestone.height, milestone.active_delegates);
            match segments.last() {
                Some(last) if last.delegates == delegates => {}
                Some(last) => {
                    let rounds = (first.0 - last.first.0).div_ceil(last.blocks());
                    segments.push(RoundPosition { round: RoundNumber(last.round.0 + rounds), first, delegates, turn });
                }
                None => segments.push(RoundPosition { round: RoundNumber(1), first, delegates, turn }),
            }
        }
        Self { segments }
    }

    /// The round of a height (at least 1).
    pub fn at(&self, height: Height) -> RoundPosition {
        let after = self.segments.partition_point(|segment| segment.first <= height);
        let segment = self.segments[after.checked_sub(1).expect("the first segment begins at height 1")];
        let whole = (height.0 - segment.first.0) / segment.blocks();
        RoundPosition {
            round: RoundNumber(segment.round.0 + whole),
            first: Height(segment.first.0 + whole * segment.blocks()),
            ..segment
        }
    }

    /// Returns true if a height begins a round.
    pub fn begins(&self, height: Height) -> bool {
        self.at(height).first == height
    }
}

/// One active delegate of a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    pub public_key: PublicKey,
    pub address: Address,
    /// Vote weight when the round was made.
    pub vote_balance: Balance,
}

/// The active delegates of a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Round {
    pub position: RoundPosition,
    /// Ranking order: vote weight descending, then public key ascending.
    pub members: Vec<Member>,
    pub turns: Turns,
}

/// The owners of a round's slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turns {
    /// One for each slot: the forging order, as indexes into the members.
    Order(Vec<usize>),
    /// A lottery. A member owns a slot if it draws less than its chance out of 2^64. The chances are in the order of the members.
    Lottery(Vec<u64>),
}

impl Round {
    /// The round at a position with these members, which are in ranking order.
    pub fn new(position: RoundPosition, members: Vec<Member>, rule: Shuffle) -> Self {
        let turns = match rule {
            Shuffle::Reference => Turns::Order(shuffle::forging_order(position.round, members.len())),
            Shuffle::EveryPlace => Turns::Order(shuffle::forging_order_of_every_place(position.round, members.len())),
            Shuffle::Ranking => Turns::Order((0..members.len()).collect()),
            Shuffle::Key => {
                let mut order: Vec<usize> = (0..members.len()).collect();
                order.sort_unstable_by_key(|member| members[*member].public_key);
                Turns::Order(order)
            }
            Shuffle::Lottery(active_per_million) => Turns::Lottery(chances(&members, active_per_million)),
        };
        Self { position, members, turns }
    }

    /// The round's number.
    pub fn number(&self) -> RoundNumber {
        self.position.round
    }

    /// The members in forging order; in ranking order where there is a lottery.
    pub fn in_order(&self) -> impl Iterator<Item = &Member> {
        let order = match &self.turns {
            Turns::Order(order) => order.clone(),
            Turns::Lottery(_) => (0..self.members.len()).collect(),
        };
        order.into_iter().map(|member| &self.members[member])
    }

    /// The owners of a slot as indexes into `members`, in ranking order. Without a lottery there is one. The index counts slots since the
    /// epoch, so a missed slot shifts nothing. Source: consensus.md 1.4.
    pub fn owners(&self, slot: Slot) -> SmallVec<[usize; 1]> {
        match &self.turns {
            Turns::Order(order) => smallvec![self.in_turn(order, slot)],
            Turns::Lottery(chances) => {
                let draws = |place: &usize| shuffle::lot(slot, &self.members[*place].public_key) < chances[*place];
                (0..chances.len()).filter(draws).collect()
            }
        }
    }

    #[inline]
    fn in_turn(&self, order: &[usize], slot: Slot) -> usize {
        order[(slot.0 / self.position.turn) as usize % order.len()]
    }

    /// The owner of a slot; the first of several, and `None` where it has none.
    pub fn owner(&self, slot: Slot) -> Option<&Member> {
        self.owners(slot).first().map(|place| &self.members[*place])
    }

    /// The member with a key, if it owns a slot.
    #[inline]
    pub fn owner_with(&self, slot: Slot, key: &PublicKey) -> Option<usize> {
        let is_of = |place: &usize| self.members[*place].public_key == *key;
        match &self.turns {
            Turns::Order(order) => Some(self.in_turn(order, slot)).filter(is_of),
            Turns::Lottery(_) => self.owners(slot).into_iter().find(is_of),
        }
    }

    /// The member for whom a block counts: its forger, or the slot's owner where the block is a listed exception.
    pub fn counted(&self, slot: Slot, forger: &PublicKey) -> Option<usize> {
        self.owner_with(slot, forger).or_else(|| self.owners(slot).first().copied())
    }

    /// Returns true if a key owns a slot.
    #[inline]
    pub fn owns(&self, slot: Slot, key: &PublicKey) -> bool {
        self.owner_with(slot, key).is_some()
    }

    /// The first slot at or after `from` that belongs to a key; `None` if the key is not active in this round.
    pub fn next_slot_of(&self, key: &PublicKey, from: Slot) -> Option<Slot> {
        match &self.turns {
            Turns::Order(order) => {
                let slots = order.len() as u32 * self.position.turn;
                (from.0..from.0.checked_add(slots)?).map(Slot).find(|slot| self.owns(*slot, key))
            }
            Turns::Lottery(chances) => {
                let place = self.members.iter().position(|member| member.public_key == *key)?;
                let chance = chances[place];
                // The chance that the member owns none of these slots is e^-50.
                let slots = 50 * (u64::MAX / chance.max(1)).min(1_000_000) as u32;
                let end = from.0.saturating_add(slots);
                (from.0..end).map(Slot).find(|slot| shuffle::lot(*slot, key) < chance)
            }
        }
    }
}

/// The chances of members by their shares of the round's vote weight; alike if there is none.
fn chances(members: &[Member], active_per_million: u32) -> Vec<u64> {
    let total: i128 = members.iter().map(|member| member.vote_balance.0.max(0)).sum();
    let share = |member: &Member| match total {
        0 => 1.0 / members.len() as f64,
        total => member.vote_balance.0.max(0) as f64 / total as f64,
    };
    members.iter().map(|member| shuffle::chance(share(member), active_per_million)).collect()
}
