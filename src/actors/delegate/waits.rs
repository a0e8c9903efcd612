//! The phases of a delegate that only an event ends. Source: consensus.md 2.1, 2.5.

use super::{Delegate, Work};
use crate::{
    actors::{
        Peer, SimTime, Wake,
        wait::{End, Phase, Wait},
    },
    protocol::Slot,
};

impl Delegate {
    /// Adds the phases that the delegate is in at an instant of its node's clock, between two inputs after its start. A delegate that
    /// is switched off in all rounds waits for nothing.
    pub fn waits(&self, now: SimTime, waits: &mut Vec<Wait>) {
        if self.keys.is_none() || self.is_off() {
            return;
        }
        let wake = Wake::Forge { plan: self.plan };
        waits.push(match &self.work {
            // The wake-up comes when the relay's time to answer is over.
            Some(Work { slot, .. }) => {
                Wait::new(Phase::Forging(*slot), [End::Wake(wake, Some(now + self.relay_timeout()))])
            }
            None => Wait::new(Phase::OffTurn, [End::Wake(wake, None), End::Told, End::NextRound]),
        });
    }

    /// Returns true if it owns a slot after the running one in the round of its relay's chain. Past the last second that a
    /// timestamp can hold there are no slots.
    pub fn has_turn(&self, now: SimTime, relay: &Peer) -> bool {
        let (slots, view) = (self.tree.slots(), relay.round_view());
        let after = Slot(slots.slot(now.seconds()).0.saturating_add(1));
        let next = self.public_key().and_then(|key| view.round.next_slot_of(key, after));
        next.is_some_and(|next| slots.slot(slots.start(next)) == next)
    }
}
