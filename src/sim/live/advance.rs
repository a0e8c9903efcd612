//! Playing slots by command, as fast as possible: a number of them, or until a condition holds.

use super::{Live, Pace};
use crate::{
    actors::{Event, NodeId, SimTime},
    ledger::Link,
    protocol::{Height, RoundNumber, Slot, TransactionId},
    sim::{
        Observer, World,
        fault::{EventKind, EventTrigger},
        stage::ractor::ActorDied,
    },
};
use std::{
    mem,
    sync::{Arc, Mutex, MutexGuard},
};
use tokio::sync::oneshot;

/// The largest number of slots that one command may play.
pub const ADVANCE_LIMIT: u32 = 1_000_000;
/// The largest number of advances that wait for the running one.
pub const ADVANCES_MAX: usize = 100;

/// The goal of an advance.
#[derive(Clone, Debug, PartialEq)]
pub enum Until {
    /// The node's chain has this height.
    Height { node: NodeId, height: Height },
    /// The node's next block is of this round.
    Round { node: NodeId, round: RoundNumber },
    /// A block of the node's chain holds the transaction.
    Transaction { node: NodeId, id: TransactionId },
    /// The clock shows this instant.
    Time(SimTime),
    /// Counted from now on, the event has happened as often as the trigger requires.
    Event(EventTrigger),
}

/// The result of an advance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdvanceResult {
    /// Whole slots that were played.
    pub slots: u32,
    /// The instant at which the advance ended. It may lie within a slot.
    pub now: SimTime,
    /// The height of the requested node at that instant.
    pub height: Height,
    pub ended: Ended,
}

/// The reason why an advance ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ended {
    /// All slots were played.
    Played,
    /// The advance reached its goal.
    Reached,
    /// Another client set the pace meanwhile.
    PaceSet(Pace),
    /// The run went back to a snapshot meanwhile.
    WentBack,
    /// It never began: [`ADVANCES_MAX`] wait already.
    Crowded,
}

/// No such node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("found {found}, allowed is the number of a node, 0 to {last}, or the username of the delegate on one", last = nodes - 1)]
pub struct NoNode {
    pub found: String,
    pub nodes: u32,
}

/// An advance that was asked for.
pub(super) struct AdvanceRequest {
    pub slots: u32,
    pub until: Option<Until>,
    /// The node whose height is reported.
    pub node: NodeId,
    pub reply: Reply,
}

/// The client that waits for the end of an advance.
type Reply = oneshot::Sender<Result<AdvanceResult, NoNode>>;

/// The goal of the running advance, checked after each event.
pub(super) struct Goal {
    until: Option<Until>,
    /// The tip of the node at the last check.
    tip: Option<Arc<Link>>,
    is_reached: bool,
    reply: Reply,
}

impl Goal {
    fn new(until: Option<Until>, reply: Reply) -> Self {
        Self { until, tip: None, is_reached: false, reply }
    }

    /// Returns true once the goal is reached. A goal that was reached stays so.
    pub(super) fn look(&mut self, world: &World, lookout: &Lookout) -> bool {
        let Some(until) = self.until.as_ref().filter(|_| !self.is_reached) else { return self.is_reached };
        let node = match until {
            Until::Height { node, .. } | Until::Round { node, .. } | Until::Transaction { node, .. } => *node,
            Until::Time(at) => {
                self.is_reached = world.now() >= *at;
                return self.is_reached;
            }
            Until::Event(_) => {
                self.is_reached = lookout.has_seen();
                return self.is_reached;
            }
        };
        let tip = world.tips().of(node);
        if self.tip.as_ref().is_some_and(|seen| seen.is(tip)) {
            return false;
        }
        self.tip = Some(tip.clone());
        self.is_reached = match until {
            Until::Height { height, .. } => tip.height() >= *height,
            Until::Round { round, .. } => world.tree().schedule().at(tip.height().next()).round >= *round,
            Until::Transaction { id, .. } => world.tree().block_of(tip, id).is_some(),
            Until::Time(_) | Until::Event(_) => false,
        };
        self.is_reached
    }

    /// The instant at which the advance must end, if the goal is an instant.
    fn instant(&self) -> Option<SimTime> {
        match self.until {
            Some(Until::Time(at)) => Some(at),
            _ => None,
        }
    }
}

/// Watches for the event that an advance waits for. Clones share one count.
#[derive(Clone, Default)]
pub(super) struct Lookout(Arc<Mutex<Option<EventGoal>>>);

struct EventGoal {
    kind: EventKind,
    node: Option<NodeId>,
    left: u32,
}

impl Lookout {
    fn seek(&self, sought: Option<EventGoal>) {
        *self.lock() = sought;
    }

    fn has_seen(&self) -> bool {
        self.lock().as_ref().is_some_and(|sought| sought.left == 0)
    }

    fn lock(&self) -> MutexGuard<'_, Option<EventGoal>> {
        self.0.lock().expect("no thread panics while holding it")
    }
}

impl Observer for Lookout {
    fn observe(&mut self, _: SimTime, node: NodeId, event: &Event) {
        if let Some(sought) = &mut *self.lock()
            && sought.node.is_none_or(|wanted| wanted == node)
            && sought.kind == EventKind::of(event)
        {
            sought.left = sought.left.saturating_sub(1);
        }
    }
}

impl Live {
    /// Plays from the running slot to the end of the last of `slots` slots, or until a condition holds. Other commands are carried out
    /// between two batches of events, so that clients can read, submit and stop during a long advance. If the run stops, the advance gets
    /// no answer.
    pub(super) async fn advance(
        &mut self,
        AdvanceRequest { slots, until, node, reply }: AdvanceRequest,
    ) -> Result<(), ActorDied> {
        match sought(until.as_ref(), self.stage.world()) {
            Ok(sought) => self.lookout.seek(sought),
            Err(no_node) => {
                let _client_gone = reply.send(Err(no_node));
                return Ok(());
            }
        }
        self.stopped_by = None;
        self.goal = Some(Goal::new(until, reply));
        let played = self.play_slots(slots).await;
        let Some(Goal { is_reached, reply, .. }) = mem::take(&mut self.goal) else { return Ok(()) };
        self.lookout.seek(None);
        let played = played?;
        if self.stopping {
            return Ok(());
        }
        self.set_anchor();
        let ended = match self.stopped_by {
            _ if is_reached => Ended::Reached,
            Some(why) => why,
            None => Ended::Played,
        };
        self.note_stand(true);
        if self.is_broken() {
            return Ok(());
        }
        // A reply fails if its client has gone.
        let _client_gone = reply.send(Ok(self.advanced(played, node, ended)));
        Ok(())
    }

    /// Plays at most `slots` slots, and returns the number of whole ones played.
    async fn play_slots(&mut self, slots: u32) -> Result<u32, ActorDied> {
        let first = self.slots.slot(self.stage.world().now().seconds());
        let instant = self.goal.as_ref().and_then(Goal::instant);
        let mut played = 0;
        while played < slots && !self.is_ended() {
            let end = SimTime::from_seconds(self.slots.start(Slot(first.0.saturating_add(played + 1))));
            let until = instant.map_or(end, |instant| instant.min(end));
            let is_due = |live: &Self| live.stage.world().next_time().is_some_and(|next| next < until);
            while is_due(self) && !self.is_ended() {
                self.play_some(until.just_before()).await?;
            }
            if !is_due(self) && !self.stopping && !self.is_broken() && !self.goal_is_reached() {
                self.stage.rest_until(until);
                played += u32::from(until == end);
            }
        }
        Ok(played)
    }

    /// Returns true if the running advance has ended before its last slot. It also ends when its client has gone.
    fn is_ended(&mut self) -> bool {
        let is_left = self.goal.as_ref().is_some_and(|goal| goal.reply.is_closed());
        is_left || self.stopping || self.stopped_by.is_some() || self.is_broken() || self.goal_is_reached()
    }

    /// Returns true if an advance is running and has reached its goal.
    pub(super) fn goal_is_reached(&mut self) -> bool {
        self.goal.as_mut().is_some_and(|goal| goal.look(self.stage.world(), &self.lookout))
    }

    /// Ends the queued advances without playing them.
    pub(super) fn end_waiting_advances(&mut self, ended: Ended) {
        for AdvanceRequest { reply, node, .. } in mem::take(&mut self.advances) {
            let _client_gone = reply.send(Ok(self.advanced(0, node, ended)));
        }
    }

    /// Queues an advance, or ends it if the queue is full. Drops queued advances whose clients have gone.
    pub(super) fn queue(&mut self, asked: AdvanceRequest) {
        self.advances.retain(|waiting| !waiting.reply.is_closed());
        if self.advances.len() < ADVANCES_MAX {
            return self.advances.push_back(asked);
        }
        let _client_gone = asked.reply.send(Ok(self.advanced(0, asked.node, Ended::Crowded)));
    }

    fn advanced(&self, slots: u32, node: NodeId, ended: Ended) -> AdvanceResult {
        let world = self.stage.world();
        AdvanceResult { slots, now: world.now(), height: world.tips().of(node).height(), ended }
    }
}

/// The event that the goal waits for, if it is an event.
fn sought(until: Option<&Until>, world: &World) -> Result<Option<EventGoal>, NoNode> {
    let Some(Until::Event(EventTrigger { kind, node, count })) = until else { return Ok(None) };
    let nodes = u32::try_from(world.tips().nodes()).unwrap_or(u32::MAX);
    let found = |node| world.names().node(node).ok_or_else(|| NoNode { found: node.to_string(), nodes });
    let node = node.as_ref().map(found).transpose()?;
    Ok(Some(EventGoal { kind: *kind, node, left: *count }))
}
