//! The handle of a live run, for its other users.

use super::{ADVANCE_LIMIT, Advanced, NoNode, Pace, Until, advance::Asked};
use crate::{
    actors::{NodeId, SimTime, Submission, message::Transactions},
    sim::{Intervention, Outcome, Stage},
};
use std::convert::Infallible;
use tokio::sync::{mpsc, oneshot};

/// Answers who asked for an intervention.
pub(super) type Answer = Box<dyn FnOnce(Outcome, &Stage) + Send>;

/// Looks at the run, and says what is to be done, or answers that nothing is.
pub(super) type Decide = Box<dyn FnOnce(&Stage) -> Option<(Intervention, Answer)> + Send>;

/// A request to a live run, with the channel for its answer.
pub(super) enum Command {
    Intervene(Decide),
    Advance(Asked),
    SetPace { pace: Pace, reply: oneshot::Sender<(SimTime, Pace)> },
    Look(Box<dyn FnOnce(&Stage) + Send>),
    Now { reply: oneshot::Sender<(SimTime, Pace)> },
    Peers { reply: oneshot::Sender<Vec<Vec<NodeId>>> },
    Stop,
}

/// The handle of a live run. Cheap to clone.
#[derive(Clone)]
pub struct LiveHandle(pub(super) mpsc::UnboundedSender<Command>);

/// The run has ended, so nothing can be asked of it any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the simulation has stopped")]
pub struct Stopped;

impl LiveHandle {
    /// A handle to a run that has ended, for looking at what it left.
    pub fn ended() -> Self {
        Self(mpsc::unbounded_channel().0)
    }

    /// Hands transactions in at a node; answers once its pool has decided, and at [`Pace::OnDemand`] once a block of its
    /// chain holds those that it took.
    ///
    /// # Errors
    /// The run has stopped; so for all calls.
    pub async fn submit(&self, node: NodeId, transactions: Transactions) -> Result<Submission, Stopped> {
        let what = Intervention::Submit { node, transactions };
        match self.intervene(what).await? {
            Outcome::Submitted(submission) => Ok(submission),
            other => unreachable!("a pool's decision, not {other:?}"),
        }
    }

    /// Does something to the run at the instant at which it comes in, and answers what came of it.
    ///
    /// # Errors
    /// The run has stopped.
    pub async fn intervene(&self, what: Intervention) -> Result<Outcome, Stopped> {
        let done = self.intervene_if(|_| Ok(what), |outcome, _| outcome).await?;
        Ok(done.unwrap_or_else(|never: Infallible| match never {}))
    }

    /// Looks at the run, does what follows from that, and looks again: one command, so that nothing else happens between.
    ///
    /// # Errors
    /// The run has stopped; within, what the first look says, and nothing was done.
    pub async fn intervene_if<T: Send + 'static, E: Send + 'static>(
        &self,
        before: impl FnOnce(&Stage) -> Result<Intervention, E> + Send + 'static,
        after: impl FnOnce(Outcome, &Stage) -> T + Send + 'static,
    ) -> Result<Result<T, E>, Stopped> {
        self.ask(|reply: oneshot::Sender<Result<T, E>>| {
            Command::Intervene(Box::new(move |stage| {
                let what = match before(stage) {
                    Ok(what) => what,
                    Err(why) => {
                        let _client_gone = reply.send(Err(why));
                        return None;
                    }
                };
                let answer = move |outcome, stage: &Stage| {
                    let _client_gone = reply.send(Ok(after(outcome, stage)));
                };
                Some((what, Box::new(answer) as Answer))
            }))
        })
        .await
    }

    /// Plays `slots` slots from the running one on, at most [`ADVANCE_LIMIT`], as fast as possible. Answers when they are over, or when
    /// a client set the pace. Ends when its caller goes away.
    ///
    /// # Errors
    /// The run has stopped.
    pub async fn advance(&self, slots: u32) -> Result<Advanced, Stopped> {
        Ok(self.advance_until(None, slots, NodeId(0)).await?.expect("no node is named"))
    }

    /// [`LiveHandle::advance`] that ends where a condition holds, if that is within `slots` slots. It returns the height of a node.
    ///
    /// # Errors
    /// The run has stopped; within, it names a node that is not there.
    pub async fn advance_until(
        &self,
        until: Option<Until>,
        slots: u32,
        node: NodeId,
    ) -> Result<Result<Advanced, NoNode>, Stopped> {
        let slots = slots.min(ADVANCE_LIMIT);
        self.ask(|reply| Command::Advance(Asked { slots, until, node, reply })).await
    }

    /// Changes the pace from now on, and answers with the instant. Ends an advance that is going on, and those that wait behind it.
    ///
    /// # Errors
    /// The run has stopped.
    pub async fn set_pace(&self, pace: Pace) -> Result<(SimTime, Pace), Stopped> {
        self.ask(|reply| Command::SetPace { pace, reply }).await
    }

    /// The virtual instant, and the pace.
    ///
    /// # Errors
    /// The run has stopped.
    pub async fn now(&self) -> Result<(SimTime, Pace), Stopped> {
        self.ask(|reply| Command::Now { reply }).await
    }

    /// By node, the nodes that it is connected to, ascending. All actors are copied for it.
    ///
    /// # Errors
    /// The run has stopped.
    pub async fn peers(&self) -> Result<Vec<Vec<NodeId>>, Stopped> {
        self.ask(|reply| Command::Peers { reply }).await
    }

    /// Looks at the run between two events. It stands still meanwhile, so the look is short.
    ///
    /// # Errors
    /// The run has stopped.
    pub async fn look<T: Send + 'static>(&self, look: impl FnOnce(&Stage) -> T + Send + 'static) -> Result<T, Stopped> {
        self.ask(|reply| {
            Command::Look(Box::new(move |stage| {
                let _client_gone = reply.send(look(stage));
            }))
        })
        .await
    }

    /// Ends the run; the work in hand is finished first.
    pub fn stop(&self) {
        // Stopped already is what was wanted.
        let _stopped_already = self.0.send(Command::Stop);
    }

    async fn ask<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> Result<T, Stopped> {
        let (reply, answer) = oneshot::channel();
        self.0.send(command(reply)).map_err(|_| Stopped)?;
        answer.await.map_err(|_| Stopped)
    }
}
