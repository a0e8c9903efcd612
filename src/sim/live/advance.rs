//! Playing slots by command, as fast as it goes.

use super::{Live, Pace};
use crate::{actors::SimTime, protocol::Slot, sim::stage::ractor::ActorDied};
use tokio::sync::oneshot;

/// Slots that one command may advance by.
pub const ADVANCE_LIMIT: u32 = 1_000_000;

/// What came of an advance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Advanced {
    /// Whole slots that were played.
    pub slots: u32,
    /// The instant it ended at; within a slot, if it was stopped there.
    pub now: SimTime,
    /// The pace that somebody set meanwhile, which ended it.
    pub stopped_by: Option<Pace>,
}

impl Live {
    /// From the running slot on, to the end of the last of so many slots. What else is asked meanwhile is done between
    /// two handfuls of events, so that a long advance can be watched, fed and stopped; a stopped one is not answered.
    pub(super) async fn advance(&mut self, slots: u32, reply: oneshot::Sender<Advanced>) -> Result<(), ActorDied> {
        let first = self.slots.slot(self.stage.world().now().seconds());
        let mut played = 0;
        self.stopped_by = None;
        while played < slots && self.stopped_by.is_none() {
            let end = SimTime::from_seconds(self.slots.start(Slot(first.0.saturating_add(played + 1))));
            let is_due = |live: &Self| live.stage.world().next_time().is_some_and(|next| next < end);
            while is_due(self) && !self.stopping && self.stopped_by.is_none() {
                self.play_some(end.just_before()).await?;
            }
            if self.stopping {
                return Ok(());
            }
            if !is_due(self) {
                self.stage.rest_until(end);
                played += 1;
            }
        }
        self.set_anchor();
        let advanced = Advanced { slots: played, now: self.stage.world().now(), stopped_by: self.stopped_by };
        let _client_gone = reply.send(advanced);
        Ok(())
    }

    /// Those that wait for the one that is going on are not played any more.
    pub(super) fn end_waiting_advances(&mut self, pace: Pace) {
        let now = self.stage.world().now();
        for (_, reply) in self.advances.drain(..) {
            let _client_gone = reply.send(Advanced { slots: 0, now, stopped_by: Some(pace) });
        }
    }
}
