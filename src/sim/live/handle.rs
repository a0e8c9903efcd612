//! The handle through which clients control a live run.

use super::{ADVANCE_LIMIT, AdvanceResult, NoNode, Pace, Until, advance::AdvanceRequest};
use crate::{
    actors::{NodeId, SimTime, Submission, message::Transactions},
    sim::{Intervention, Outcome, Stage},
};
use std::convert::Infallible;
use tokio::sync::{mpsc, oneshot};

/// Answers the client that asked for an intervention.
pub(super) type Answer = Box<dyn FnOnce(Outcome, &Stage) + Send>;

/// Chooses an intervention from the state of the run. If it chooses none, it has answered the client itself.
pub(super) type Decide = Box<dyn FnOnce(&Stage) -> Option<(Intervention, Answer)> + Send>;

/// A request to a live run, with the channel for its answer.
pub(super) enum Command {
    Intervene(Decide),
    Advance(AdvanceRequest),
    SetPace { pace: Pace, reply: oneshot::Sender<(SimTime, Pace)> },
    Look(Box<dyn FnOnce(&Stage) + Send>),
    Now { reply: oneshot::Sender<(SimTime, Pace)> },
    Peers { reply: oneshot::Sender<Vec<Vec<NodeId>>> },
    Stop,
}

/// The handle of a live run. Cheap to clone.
#[derive(Clone)]
pub struct LiveHandle(pub(super) mpsc::UnboundedSender<Command>);

/// The error of a call to a run that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the simulation has stopped")]
pub struct StoppedError;

impl LiveHandle {
    /// A handle to a run that has ended, for a reader of its results.
    pub fn ended() -> Self {
        Self(mpsc::unbounded_channel().0)
    }

    /// Submits transactions at a node. Answers once its pool has decided. At [`Pace::OnDemand`] it answers once a block of the node's chain
    /// holds the accepted transactions.
    ///
    /// # Errors
    /// The run has stopped; so for all calls.
    pub async fn submit(&self, node: NodeId, transactions: Transactions) -> Result<Submission, StoppedError> {
        let what = Intervention::Submit { node, transactions };
        match self.intervene(what).await? {
            Outcome::Submitted(submission) => Ok(submission),
            other => unreachable!("a pool's decision, not {other:?}"),
        }
    }

    /// Carries out an intervention at the instant at which it comes in, and returns its outcome.
    ///
    /// # Errors
    /// The run has stopped.
    pub async fn intervene(&self, what: Intervention) -> Result<Outcome, StoppedError> {
        let done = self.intervene_if(|_| Ok(what), |outcome, _| outcome).await?;
        Ok(done.unwrap_or_else(|never: Infallible| match never {}))
    }

    /// Reads the run, carries out the intervention that `before` returns, and reads the run again. This is one command, so nothing else
    /// happens in between.
    ///
    /// # Errors
    /// The run has stopped. The inner error comes from `before`, and nothing was done.
    pub async fn intervene_if<T: Send + 'static, E: Send + 'static>(
        &self,
        before: impl FnOnce(&Stage) -> Result<Intervention, E> + Send + 'static,
        after: impl FnOnce(Outcome, &Stage) -> T + Send + 'static,
    ) -> Result<Result<T, E>, StoppedError> {
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
    pub async fn advance(&self, slots: u32) -> Result<AdvanceResult, StoppedError> {
        Ok(self.advance_until(None, slots, NodeId(0)).await?.expect("no node is named"))
    }

    /// Like [`LiveHandle::advance`], but ends as soon as `until` holds. Reports the height of `node`.
    ///
    /// # Errors
    /// The run has stopped. The inner error means that `until` names an unknown node.
    pub async fn advance_until(
        &self,
        until: Option<Until>,
        slots: u32,
        node: NodeId,
    ) -> Result<Result<AdvanceResult, NoNode>, StoppedError> {
        let slots = slots.min(ADVANCE_LIMIT);
        self.ask(|reply| Command::Advance(AdvanceRequest { slots, until, node, reply })).await
    }

    /// Changes the pace from now on, and answers with the instant. Ends an advance that is going on, and those that wait behind it.
    ///
    /// # Errors
    /// The run has stopped.
    pub async fn set_pace(&self, pace: Pace) -> Result<(SimTime, Pace), StoppedError> {
        self.ask(|reply| Command::SetPace { pace, reply }).await
    }

    /// The virtual instant, and the pace.
    ///
    /// # Errors
    /// The run has stopped.
    pub async fn now(&self) -> Result<(SimTime, Pace), StoppedError> {
        self.ask(|reply| Command::Now { reply }).await
    }

    /// The connected peers of each node, ascending. The call copies all actors.
    ///
    /// # Errors
    /// The run has stopped.
    pub async fn peers(&self) -> Result<Vec<Vec<NodeId>>, StoppedError> {
        self.ask(|reply| Command::Peers { reply }).await
    }

    /// Reads the run between two events. The run waits meanwhile, so `look` must be short.
    ///
    /// # Errors
    /// The run has stopped.
    pub async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Stage) -> T + Send + 'static,
    ) -> Result<T, StoppedError> {
        self.ask(|reply| {
            Command::Look(Box::new(move |stage| {
                let _client_gone = reply.send(look(stage));
            }))
        })
        .await
    }

    /// Ends the run; the work in hand is finished first.
    pub fn stop(&self) {
        // A run that has already stopped needs no command.
        let _stopped_already = self.0.send(Command::Stop);
    }

    async fn ask<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> Result<T, StoppedError> {
        let (reply, answer) = oneshot::channel();
        self.0.send(command(reply)).map_err(|_| StoppedError)?;
        answer.await.map_err(|_| StoppedError)
    }
}
