//! The deliveries of one webhook, one after the other, in a task of its own: a slow receiver holds up nobody else.

use super::{Report, post::Poster};
use crate::actors::webhook::Delivery;
use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};
use tokio::{
    sync::{Semaphore, mpsc},
    task::JoinHandle,
};

/// Deliveries that wait at most, and their bodies' bytes: what comes on top is dropped, and counted.
pub const QUEUE_MAX: u64 = 4_096;
pub const QUEUE_BYTES_MAX: u64 = 32 << 20;

/// What became of a webhook's deliveries so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Waiting, the one in hand included.
    pub queued: u64,
    /// Taken by the receiver.
    pub delivered: u64,
    /// Not taken: unreachable, forbidden, too slow, or refused.
    pub failed: u64,
    /// Never sent, because too many were waiting.
    pub dropped: u64,
    /// Why the last one failed.
    pub last_failure: Option<String>,
}

#[derive(Default)]
struct Shared {
    queued: AtomicU64,
    queued_bytes: AtomicU64,
    delivered: AtomicU64,
    failed: AtomicU64,
    dropped: AtomicU64,
    last_failure: Mutex<Option<String>>,
}

/// One webhook's queue and the task that empties it.
pub struct Lane {
    sender: mpsc::UnboundedSender<Delivery>,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
    report: Report,
}

impl Lane {
    /// An empty queue. Runs on the runtime it is called from.
    /// It posts while it holds one of `turns`.
    pub fn new(poster: Poster, turns: Arc<Semaphore>, report: Report) -> Self {
        let (sender, deliveries) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared::default());
        let task = tokio::spawn(work(deliveries, poster, turns, shared.clone(), report.clone()));
        Self { sender, shared, task, report }
    }

    /// Puts a delivery behind the others, or drops it if too many wait. Never waits itself.
    pub fn push(&self, delivery: Delivery) {
        let bytes = delivery.body.len() as u64;
        let shared = &self.shared;
        // Only this side adds, so what is looked at can only have become less.
        let is_full = shared.queued.load(Ordering::Relaxed) >= QUEUE_MAX
            || shared.queued_bytes.load(Ordering::Relaxed) + bytes > QUEUE_BYTES_MAX;
        if is_full {
            let dropped = shared.dropped.fetch_add(1, Ordering::Relaxed) + 1;
            if dropped.is_power_of_two() {
                let hook = &delivery.hook;
                (self.report)(&format!("Webhook {} ({}) is too slow: {dropped} dropped", hook.id, hook.event));
            }
            return;
        }
        shared.queued.fetch_add(1, Ordering::Relaxed);
        shared.queued_bytes.fetch_add(bytes, Ordering::Relaxed);
        // The task ends after the sender only.
        let _task_gone = self.sender.send(delivery);
    }

    /// What became of the deliveries so far.
    pub fn counts(&self) -> Counts {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            queued: load(&self.shared.queued),
            delivered: load(&self.shared.delivered),
            failed: load(&self.shared.failed),
            dropped: load(&self.shared.dropped),
            last_failure: self.shared.last_failure.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }

    /// Ends at once; what waits is lost.
    pub fn abort(self) {
        self.task.abort();
    }

    /// Takes nothing more; the task ends when the queue is empty.
    pub fn close(self) -> JoinHandle<()> {
        self.task
    }
}

async fn work(
    mut deliveries: mpsc::UnboundedReceiver<Delivery>,
    poster: Poster,
    turns: Arc<Semaphore>,
    shared: Arc<Shared>,
    report: Report,
) {
    let mut failures_in_row = 0_u64;
    while let Some(Delivery { hook, body }) = deliveries.recv().await {
        // It is never closed.
        let turn = turns.acquire().await;
        let outcome = poster.post(&hook.target, &hook.secret, &body).await;
        drop(turn);
        let freed = if planted!(FailedDeliveriesStayQueued) && outcome.is_err() { 0 } else { body.len() as u64 };
        match outcome {
            Ok(()) => {
                shared.delivered.fetch_add(1, Ordering::Relaxed);
                failures_in_row = 0;
            }
            Err(why) => {
                shared.failed.fetch_add(1, Ordering::Relaxed);
                failures_in_row += 1;
                // The first, and then fewer and fewer: a log full of one receiver hides everything else.
                if failures_in_row.is_power_of_two() {
                    let (id, event, target) = (&hook.id, &hook.event, &hook.target);
                    report(&format!("Webhook {id} ({event}) failed {failures_in_row} times at {target}: {why}"));
                }
                *shared.last_failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(why.to_string());
            }
        }
        shared.queued.fetch_sub(1, Ordering::Relaxed);
        shared.queued_bytes.fetch_sub(freed, Ordering::Relaxed);
    }
}
