//! The deliveries of one webhook, one after the other, in a task of its own, so a slow receiver does not delay others.
#![expect(clippy::disallowed_methods, reason = "receivers live in real time, and so does what keeps a post back")]

use super::{inbox::Inbox, post::Poster, posting::Posting};
use crate::api::{
    http::log::Report,
    lab::chaos::{PostStrike, Treatment},
};
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::Ordering},
    time::Duration,
};
use tokio::{
    sync::{Semaphore, mpsc},
    task::JoinHandle,
};

/// The largest number of waiting deliveries, and of the bytes of their bodies. Further deliveries are dropped and counted.
pub const QUEUE_MAX: u64 = 4_096;
pub const QUEUE_BYTES_MAX: u64 = 32 << 20;

/// The outcomes of a webhook's deliveries so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Waiting, including the one that is being posted.
    pub queued: u64,
    /// Taken by the receiver.
    pub delivered: u64,
    /// Not taken: unreachable, forbidden, too slow, or refused.
    pub failed: u64,
    /// Never sent, because too many were waiting.
    pub dropped: u64,
    /// The reason why the last one failed.
    pub last_failure: Option<String>,
}

/// The counts that the queue and its task both write. They share one lock, so that a reader never sees a failure that is counted and
/// not yet explained.
#[derive(Default)]
struct SharedTally(Mutex<Tally>);

#[derive(Default)]
struct Tally {
    counts: Counts,
    queued_bytes: u64,
}

impl SharedTally {
    /// Locks the counts. A poisoned lock does no harm, because the counts are consistent after each addition.
    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One webhook's queue and the task that empties it.
pub(crate) struct Lane {
    sender: mpsc::UnboundedSender<DelayedPosting>,
    shared: Arc<SharedTally>,
    task: JoinHandle<()>,
    report: Report,
    inbox: Arc<Inbox>,
    /// A delivery that chaos holds back until after the next one.
    held: Option<DelayedPosting>,
}

/// A delivery, and how long it is kept back before it is posted.
#[derive(Clone)]
struct DelayedPosting {
    posting: Posting,
    late: Duration,
}

impl Lane {
    /// An empty queue, with a task on the current runtime. The task holds one of `turns` during each post.
    pub fn new(poster: Poster, turns: Arc<Semaphore>, report: Report, inbox: Arc<Inbox>) -> Self {
        let (sender, deliveries) = mpsc::unbounded_channel();
        let shared = Arc::new(SharedTally::default());
        let task = tokio::spawn(work(deliveries, poster, turns, shared.clone(), report.clone(), inbox.clone()));
        Self { sender, shared, task, report, inbox, held: None }
    }

    /// Queues a delivery, with the effect of chaos.
    pub fn struck(&mut self, posting: Posting, PostStrike { late, then }: PostStrike) {
        let queued = DelayedPosting { posting, late };
        match then {
            Some(Treatment::Lost) => queued.posting.over(),
            Some(Treatment::Reorder) if self.held.is_none() => self.held = Some(queued),
            Some(Treatment::Twice) => {
                self.push(queued.clone());
                self.push(queued);
                self.release();
            }
            _ => {
                self.push(queued);
                self.release();
            }
        }
    }

    fn release(&mut self) {
        if let Some(held) = self.held.take() {
            self.push(held);
        }
    }

    /// Queues a delivery, or drops it if too many wait. Never blocks.
    fn push(&self, queued: DelayedPosting) {
        let delivery = &queued.posting.delivery;
        let bytes = delivery.body.len() as u64;
        let mut tally = self.shared.tally();
        if tally.counts.queued >= QUEUE_MAX || tally.queued_bytes + bytes > QUEUE_BYTES_MAX {
            tally.counts.dropped += 1;
            let dropped = tally.counts.dropped;
            drop(tally);
            self.inbox.dropped.fetch_add(1, Ordering::Relaxed);
            if dropped.is_power_of_two() {
                let hook = &delivery.hook;
                (self.report)(&format!("Webhook {} ({}) is too slow: {dropped} dropped", hook.id, hook.event));
            }
            queued.posting.over();
            return;
        }
        tally.counts.queued += 1;
        tally.queued_bytes += bytes;
        drop(tally);
        // The task ends after the sender only.
        let _task_gone = self.sender.send(queued);
    }

    /// The outcomes of the deliveries so far, all at one instant.
    pub fn counts(&self) -> Counts {
        self.shared.tally().counts.clone()
    }

    /// Ends at once. Waiting deliveries are lost.
    pub fn abort(self) {
        self.task.abort();
    }

    /// Closes the queue. The task ends when the queue is empty.
    pub fn close(mut self) -> JoinHandle<()> {
        self.release();
        self.task
    }
}

async fn work(
    mut deliveries: mpsc::UnboundedReceiver<DelayedPosting>,
    poster: Poster,
    turns: Arc<Semaphore>,
    shared: Arc<SharedTally>,
    report: Report,
    inbox: Arc<Inbox>,
) {
    let mut failures_in_row = 0_u64;
    while let Some(DelayedPosting { posting, late }) = deliveries.recv().await {
        let (hook, body) = (&posting.delivery.hook, &posting.delivery.body);
        if !late.is_zero() {
            tokio::time::sleep(late).await;
        }
        // It is never closed.
        let turn = turns.acquire().await;
        let outcome = poster.post(&posting.delivery, &posting.id).await;
        drop(turn);
        posting.over();
        if outcome.is_err() {
            failures_in_row += 1;
            // Reports the first failure and then ever fewer, because a log full of one receiver hides everything else.
            if failures_in_row.is_power_of_two() {
                // The log is public, and the reason names the target, so it is left out.
                let (id, event) = (&hook.id, &hook.event);
                report(&format!("Webhook {id} ({event}) failed {failures_in_row} times; GET /lab/webhooks says why"));
            }
        } else {
            failures_in_row = 0;
        }
        let total = if outcome.is_ok() { &inbox.delivered } else { &inbox.failed };
        total.fetch_add(1, Ordering::Relaxed);
        let mut tally = shared.tally();
        match outcome {
            Ok(()) => tally.counts.delivered += 1,
            Err(why) => {
                tally.counts.failed += 1;
                tally.counts.last_failure = Some(why.to_string());
            }
        }
        tally.counts.queued -= 1;
        tally.queued_bytes -= body.len() as u64;
    }
}
