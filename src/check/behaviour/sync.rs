//! Synchronisation of a peer: when it looks for blocks, which peers it asks, and how it treats their answers.
//! Source: consensus.md 3.2, 3.5, 3.6 and 6.

use super::{
    Case, ModelContext,
    limits::Endpoint,
    state::{PeerModel, Phase, Timer, wake_up_time},
};
use crate::{
    actors::{Event, Message},
    check::conduct,
};
use std::time::Duration;

/// The largest number of chunks that are downloaded at once.
pub(super) const PARALLEL: u32 = 10;
/// Downloads in vain after which a wake-up gives up.
const VAIN: u32 = 5;
/// The longest time that a health check takes: requests for peers, status requests to new nodes, and a ping with
/// verification of all.
const HEALTH_TIME: Duration = Duration::from_secs(150);

impl PeerModel {
    /// Marks the running downloads as unknown to the model.
    pub(super) fn lose_track(&mut self, case: &mut Case<'_>) {
        case.report.lost += 1;
        if let Phase::Downloading(download) = &self.sync.phase {
            for (asked, until) in download.chunks.iter().filter_map(|chunk| chunk.open) {
                if let Some((node, inquiry)) = asked {
                    self.sync.open.insert(inquiry, (node, until));
                }
            }
        }
        self.sync.phase = Phase::Unknown;
        if self.timer == Timer::Stopped {
            self.timer = Timer::Unknown;
        }
        (self.sync.counted, self.sync.sized) = (false, false);
        self.sync.lost = case.step.local;
    }

    /// Comes to rest: the timer runs from now on, unless it runs already.
    pub(super) fn rests(&mut self, case: &Case<'_>) {
        self.sync.phase = Phase::Idle;
        self.started = Some(true);
        if self.timer == Timer::Stopped {
            self.timer = Timer::Runs(case.step.local + wake_up_time(case.known));
        }
    }

    /// Handles the timer's alarm, which may have been set for an earlier end.
    pub(super) fn timer_rings(&mut self, case: &mut Case<'_>) {
        if self.sync.phase == Phase::Starting {
            // The timer runs only once the node has caught up or given up. The model cannot distinguish the two.
            self.timer = Timer::Unknown;
            self.rests(case);
            self.sync.counted = false;
        }
        match self.timer {
            Timer::Runs(until) if case.step.local < until => {}
            Timer::Stopped => {}
            Timer::Runs(_) => {
                case.report.judge(&conduct::WOKEN, true, String::new);
                self.stops_timer();
                self.wakes_up(case);
            }
            // It may have rung before its time.
            Timer::Unknown => self.lose_track(case),
        }
    }

    /// The delegate wakes its relay up, which stops the timer.
    pub(super) fn forger_wakes(&mut self, case: &mut Case<'_>) {
        case.report.judge(&conduct::WOKEN, true, String::new);
        self.stops_timer();
        self.wakes_up(case);
    }

    /// Stops the timer. If the model does not know whether the node rests, the timer may run again already.
    fn stops_timer(&mut self) {
        let knows = !matches!(self.sync.phase, Phase::Unknown | Phase::Starting);
        self.timer = if knows { Timer::Stopped } else { Timer::Unknown };
    }

    /// Begins to synchronise, unless that is under way.
    pub(super) fn wakes_up(&mut self, case: &mut Case<'_>) {
        if self.sync.phase == Phase::Idle {
            self.sync_step(case);
        }
    }

    /// Judges the next stage: none, a download, or a health check.
    pub(super) fn sync_step(&mut self, case: &mut Case<'_>) {
        let age = case.step.local.seconds().0.saturating_sub(self.tip.block().header.timestamp.0);
        let fresh = self.peers.len() == 0 || age < 3 * case.known.tree.slots().blocktime();
        if !self.sync.counted && !fresh {
            return self.lose_track(case);
        }
        loop {
            if self.sync.vain > VAIN {
                self.sync.vain = 0;
                self.sync.halted += 1;
                if self.sync.halted < case.known.rules().node.wake_ups_to_health_check {
                    return self.rests(case);
                }
                self.sync.halted = 0;
                self.sync.phase = Phase::Halted;
                self.doubts_by = Some(case.step.local + HEALTH_TIME);
                case.report.judge(&conduct::DOUBTED, true, String::new);
                return;
            }
            if fresh {
                self.sync.makes_headway();
                return self.rests(case);
            }
            let friendly = self.peers.friendly();
            if friendly.is_empty() {
                self.sync.vain += 1;
                continue;
            }
            return self.downloads(case, friendly);
        }
    }

    /// Handles the requests for blocks that no rule demanded. A node begins its first download when discovery is
    /// over. A model that has lost track follows the requests of the node.
    pub(super) fn rest_of_sync(&mut self, case: &mut Case<'_>) {
        let asks = |case: &Case<'_>| {
            case.left.sent().any(|(_, message)| matches!(message, Message::BlocksRequest { headers_only: false, .. }))
        };
        if self.sync.phase == Phase::Starting && asks(case) {
            self.sync_step(case);
        }
        let blind = self.peers.unsure && asks(case) && !matches!(self.sync.phase, Phase::Starting | Phase::Unknown);
        if blind {
            // The node asked a peer that the model did not expect.
            self.lose_track(case);
        }
        if self.sync.phase == Phase::Unknown {
            self.follows_blindly(case);
        }
    }

    /// Follows the reported moves of the node while its downloads are unknown.
    fn follows_blindly(&mut self, case: &mut Case<'_>) {
        while let Some(link) = case.left.take_event(|event| match event {
            Event::BlockApplied(link) if link.parent().is_some_and(|parent| parent.is(&self.tip)) => Some(link),
            _ => None,
        }) {
            self.moves(case, link);
        }
        case.left.take_all_to(|_, message| matches!(message, Message::Block(_)).then_some(()));
        let asked = case.left.take_all_to(|to, message| match message {
            Message::BlocksRequest { inquiry, headers_only: false, .. } => Some((to, *inquiry)),
            _ => None,
        });
        for (to, inquiry) in asked {
            self.calls.note(case.step.local, to, Endpoint::Blocks);
            self.sync.open.insert(inquiry, (to, case.step.local + answer_time(case.known)));
            self.sync.lost = case.step.local;
        }
        let settled = case.step.local > self.sync.lost + answer_time(case.known) + Duration::from_secs(10);
        if settled && self.sync.counted && self.sync.open.is_empty() {
            self.rests(case);
        }
        let went = case.left.take_event(|event| match event {
            Event::RolledBack { to, .. } => Some(to),
            _ => None,
        });
        if let Some(to) = went {
            self.rolled_back(case, to);
            self.recovers(case);
        }
    }
}

/// Returns the time that a peer has to answer a request for blocks.
pub(super) fn answer_time(known: &ModelContext) -> Duration {
    Duration::from_secs(u64::from(known.rules().node.blocks_timeout_s))
}
