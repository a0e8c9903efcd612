//! A body that streams events: server-sent events, as an `EventSource` reads them. Source: HTML standard, 9.2.
#![expect(clippy::disallowed_methods, reason = "readers live in real time: heartbeats, and pauses between batches")]

use super::feed::{EventFeed, Listening, Record};
use crate::{actors::NodeId, api::http::limits::AtWork};
use bytes::Bytes;
use hyper::body::{Body, Frame};
use serde_json::json;
use std::{
    convert::Infallible,
    fmt::Write,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::sync::watch;

/// The longest silence of a stream.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// The time for which a stream gathers events before it sends them together.
const GATHER: Duration = Duration::from_millis(5);

/// A client's request for a stream of events.
#[derive(Clone, Debug)]
pub struct Subscription {
    pub feed: EventFeed,
    /// The number of the last event the client knows; `None` to begin with the next one.
    pub after: Option<u64>,
    pub filter: Arc<Filter>,
    /// The number of events after which the stream ends.
    pub limit: Option<u64>,
}

/// The events that a client wants.
#[derive(Debug, Default)]
pub struct Filter {
    /// The kinds. `None` for all.
    pub kinds: Option<Vec<&'static str>>,
    /// The nodes. `None` for all nodes and the network.
    pub nodes: Option<Vec<NodeId>>,
}

impl Filter {
    fn passes(&self, record: &Record) -> bool {
        let is_of_kind = self.kinds.as_ref().is_none_or(|kinds| kinds.contains(&record.kind()));
        is_of_kind && self.nodes.as_ref().is_none_or(|nodes| record.node().is_some_and(|node| nodes.contains(&node)))
    }
}

/// The state of an open stream.
struct Reader {
    listening: Listening,
    filter: Arc<Filter>,
    /// The number of the event that comes next.
    next: u64,
    left: Option<u64>,
    /// The text that the client reads before any event.
    greeting: Option<String>,
    /// True if the last read emptied the ring.
    has_all: bool,
    stopped: watch::Receiver<bool>,
}

impl Reader {
    fn open(subscription: Subscription, stopped: watch::Receiver<bool>) -> Self {
        let Subscription { feed, after, filter, limit } = subscription;
        let (listening, now) = feed.listen();
        let mut greeting = "retry: 1000\n".to_owned();
        let next = match after {
            None => now,
            Some(after) if (feed.begins()..now).contains(&after) => after + 1,
            // The client's number is that of another run or process, perhaps an earlier one on this port.
            Some(after) => {
                gap(&mut greeting, after, now, None);
                now
            }
        };
        write!(greeting, ": the next event is {next}\n\n").expect("a text takes all");
        Self { listening, filter, next, left: limit, greeting: Some(greeting), has_all: false, stopped }
    }

    /// Returns the next part; `None` at the end.
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(greeting) = self.greeting.take() {
            return Some(greeting.into());
        }
        if std::mem::take(&mut self.has_all) && !self.pause(GATHER).await {
            return None;
        }
        loop {
            if self.left == Some(0) {
                return None;
            }
            let Some((first, records)) = self.look().await else { continue };
            if *self.stopped.borrow() || records.is_empty() && self.listening.is_over() {
                return None;
            }
            if records.is_empty() && first == self.next {
                // The id also moves the client's position when nothing passes its filter.
                return Some(format!(": nothing new\nid: {}\n\n", self.next - 1).into());
            }
            let mut out = String::new();
            if first > self.next {
                gap(&mut out, self.next - 1, first, Some(first - self.next));
                self.next = first;
            }
            self.has_all = records.len() < super::feed::BATCH;
            self.write(&mut out, &records);
            if !out.is_empty() {
                return Some(out.into());
            }
            tokio::task::yield_now().await;
        }
    }

    /// The next events and the number of the first. `None` if an event has just arrived and the caller must look again. The
    /// list is empty after a long silence, and when the server stops.
    async fn look(&self) -> Option<(u64, Vec<Arc<Record>>)> {
        let mut grown = pin!(self.listening.grown());
        grown.as_mut().enable();
        let (first, records) = self.listening.take(self.next);
        if records.is_empty() && first == self.next && !self.listening.is_over() {
            let mut stopped = self.stopped.clone();
            tokio::select! {
                () = grown => return None,
                _stopped = stopped.wait_for(|stopped| *stopped) => {}
                () = tokio::time::sleep(HEARTBEAT) => {}
            }
        }
        Some((first, records))
    }

    fn write(&mut self, out: &mut String, records: &[Arc<Record>]) {
        for record in records {
            if self.left == Some(0) {
                return;
            }
            self.next = record.number + 1;
            if self.filter.passes(record) {
                self.left = self.left.map(|left| left - 1);
                let json = self.listening.json(record);
                write!(out, "id: {}\ndata: {json}\n\n", record.number).expect("a text takes all");
            }
        }
    }

    /// Waits for a time. Returns `false` if the server stops meanwhile.
    async fn pause(&mut self, time: Duration) -> bool {
        tokio::time::timeout(time, self.stopped.wait_for(|stopped| *stopped)).await.is_err()
    }
}

/// Writes an event about a gap between the event `after` that the client knows and the event `next`, with the number of
/// missed events if it is known.
fn gap(out: &mut String, after: u64, next: u64, missed: Option<u64>) {
    let data = json!({ "after": after, "next": next, "missed": missed });
    writeln!(out, "event: gap\nid: {}\ndata: {data}\n", next - 1).expect("a text takes all");
}

type ReadFuture = Pin<Box<dyn Future<Output = (Reader, Option<Bytes>)> + Send>>;

/// The body of a stream. Its connection counts as at work until the body is dropped.
pub(crate) struct EventBody {
    /// `None` at the end.
    step: Option<ReadFuture>,
    _work: Arc<AtWork>,
}

impl EventBody {
    /// Opens the stream, which ends when `stopped` becomes true.
    pub fn new(subscription: Subscription, stopped: watch::Receiver<bool>, work: Arc<AtWork>) -> Self {
        Self { step: Some(step(Reader::open(subscription, stopped))), _work: work }
    }
}

fn step(mut reader: Reader) -> ReadFuture {
    Box::pin(async move {
        let bytes = reader.next().await;
        (reader, bytes)
    })
}

impl Body for EventBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some(running) = self.step.as_mut() else { return Poll::Ready(None) };
        let (reader, bytes) = ready!(running.as_mut().poll(context));
        self.step = bytes.is_some().then(|| step(reader));
        Poll::Ready(bytes.map(|bytes| Ok(Frame::data(bytes))))
    }
}
