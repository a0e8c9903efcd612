//! The events of the network, numbered from the run's first one on, for readers of the stream.
//!
//! An event's number is that of its line in a trace of the run, so it is the same whenever the run is repeated. Every event is counted.
//! The ring retains events only while a reader is connected, and after the last reader has left until the ring has only later events.
//! Until then that reader can come back without a gap. An event becomes JSON on a reader's thread, once for all readers.

use crate::{
    actors::{Event, NodeId, SimTime},
    ledger::Link,
    protocol::{BlockId, SignedTransaction, slots::Slots},
    sim::{
        DownCause, NetworkEvent, Observer,
        line::{Line, kind_of},
    },
};
use std::{
    collections::{BTreeSet, VecDeque},
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
};
use tokio::sync::{Notify, futures::Notified};

/// The number of events kept for clients that come back or fall behind.
pub(crate) const KEPT: usize = 65_536;
/// The number of events taken from the ring at once.
pub(super) const BATCH: usize = 256;

/// The events. Cheap to clone; clones share everything.
#[derive(Clone)]
pub struct EventFeed(Arc<FeedState>);

struct FeedState {
    slots: Slots,
    /// The number of the last event; 1 is that of the run's first round.
    last: AtomicU64,
    /// The number before the first event of this process.
    begins: u64,
    /// True if the ring retains events.
    is_wanted: AtomicBool,
    ring: Mutex<Ring>,
    grown: Notify,
    first: BlockId,
    /// True if the run is over.
    is_over: AtomicBool,
}

#[derive(Default)]
struct Ring {
    /// The retained events, without a gap between their numbers.
    events: VecDeque<Arc<Record>>,
    /// While the ring is empty, the number of the first event that it will retain.
    since: u64,
    readers: usize,
    /// Events since the last reader left.
    alone: usize,
}

/// One event.
pub struct Record {
    pub number: u64,
    at: SimTime,
    happened: FeedEvent,
    json: OnceLock<Box<str>>,
}

/// The event.
enum FeedEvent {
    AtNode(NodeId, Event),
    /// A round begins after this block.
    Round(Arc<Link>),
    FaultBegan(usize, &'static str),
    FaultEnded(usize, &'static str),
    NodeDown(NodeId, DownCause),
    NodeUp(NodeId),
    PoolLost(NodeId),
    /// The node went to a snapshot, from one block to another. The last member is its pool, if that changed.
    Moved(NodeId, [Arc<Link>; 2], Option<Vec<Arc<SignedTransaction>>>),
}

impl FeedEvent {
    fn of_network(event: &NetworkEvent<'_>) -> Option<Self> {
        Some(match event {
            NetworkEvent::FaultBegan { index, kind } => Self::FaultBegan(*index, kind),
            NetworkEvent::FaultEnded { index, kind } => Self::FaultEnded(*index, kind),
            NetworkEvent::NodeDown { node, cause } => Self::NodeDown(*node, *cause),
            NetworkEvent::NodeUp { node } => Self::NodeUp(*node),
            NetworkEvent::PoolLost { node } => Self::PoolLost(*node),
            NetworkEvent::Moved { node, from, to, pending, .. } => {
                Self::Moved(*node, [Arc::clone(from), Arc::clone(to)], pending.map(<[_]>::to_vec))
            }
            NetworkEvent::Sent { .. } | NetworkEvent::Lost { .. } => return None,
        })
    }
}

impl EventFeed {
    /// The feed of a run that begins on this block.
    pub fn new(slots: Slots, tip: &Arc<Link>) -> Self {
        Self::after(0, slots, tip)
    }

    /// The same, of a run that other processes played before. `begins` is greater than any number that they have used.
    pub fn after(begins: u64, slots: Slots, tip: &Arc<Link>) -> Self {
        Self(Arc::new(FeedState {
            slots,
            last: AtomicU64::new(begins.max(1)),
            begins,
            is_wanted: AtomicBool::new(false),
            ring: Mutex::default(),
            grown: Notify::new(),
            first: tip.id(),
            is_over: AtomicBool::new(false),
        }))
    }

    /// The observer that sends the run's events to the feed, one for each run. It never waits for a reader.
    pub fn observer(&self) -> FeedObserver {
        FeedObserver { feed: self.clone(), last: self.last(), ends: BTreeSet::from([self.0.first]) }
    }

    /// The number before the first event of this process.
    pub(super) fn begins(&self) -> u64 {
        self.0.begins
    }

    /// The number of events of this process, the run's first round included.
    pub fn count(&self) -> u64 {
        self.last() - self.0.begins
    }

    /// The number of the last event.
    pub fn last(&self) -> u64 {
        self.0.last.load(SeqCst)
    }

    /// Number of readers.
    pub fn readers(&self) -> usize {
        self.lock().readers
    }

    /// Ends every stream: the run is over.
    pub fn end(&self) {
        self.0.is_over.store(true, SeqCst);
        self.0.grown.notify_waiters();
    }

    /// A reader from the next event on.
    pub(super) fn listen(&self) -> (Listening, u64) {
        let mut ring = self.lock();
        ring.readers += 1;
        ring.alone = 0;
        // This sets the flag and then reads the number. The observer counts and then reads the flag. So no event is missed by both.
        if !self.0.is_wanted.swap(true, SeqCst) {
            ring.since = self.last() + 1;
        }
        (Listening(self.clone()), self.last() + 1)
    }

    fn push(&self, record: Record) {
        let mut ring = self.lock();
        if ring.readers == 0 {
            ring.alone += 1;
            if ring.alone > KEPT {
                ring.events = VecDeque::new();
                self.0.is_wanted.store(false, SeqCst);
                return;
            }
        }
        let oldest = if ring.events.len() >= KEPT { ring.events.pop_front() } else { None };
        ring.events.push_back(Arc::new(record));
        drop(ring);
        drop(oldest);
        self.0.grown.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, Ring> {
        // A panic while it was locked leaves whole events.
        self.0.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for EventFeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventFeed").field("last", &self.last()).finish_non_exhaustive()
    }
}

/// A registered reader of the feed, until it is dropped.
pub(super) struct Listening(EventFeed);

impl Listening {
    /// Up to [`BATCH`] events from the number `next` on, and the number of the first. It is higher than `next` if the ring begins
    /// later.
    pub fn take(&self, next: u64) -> (u64, Vec<Arc<Record>>) {
        let ring = self.0.lock();
        let first = ring.events.front().map_or(ring.since, |event| event.number);
        let skipped = usize::try_from(next.saturating_sub(first)).unwrap_or(usize::MAX);
        (first.max(next), ring.events.iter().skip(skipped).take(BATCH).cloned().collect())
    }

    /// Waits for the next event after the future was first polled or enabled.
    pub fn grown(&self) -> Notified<'_> {
        self.0.0.grown.notified()
    }

    /// Returns true if the run is over, so that nothing comes any more.
    pub fn is_over(&self) -> bool {
        self.0.0.is_over.load(SeqCst)
    }

    /// The JSON of an event.
    pub fn json<'r>(&self, record: &'r Record) -> &'r str {
        record.json(&self.0.0.slots)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let mut ring = self.0.lock();
        ring.readers -= 1;
        ring.alone = 0;
    }
}

impl Record {
    /// Returns the event of a node.
    pub fn of_event(number: u64, at: SimTime, node: NodeId, event: &Event) -> Self {
        Self::new(number, at, FeedEvent::AtNode(node, event.clone()))
    }

    /// A round begins after this block.
    pub fn of_round(number: u64, at: SimTime, after: &Arc<Link>) -> Self {
        Self::new(number, at, FeedEvent::Round(after.clone()))
    }

    /// Returns the event of the network; `None` if it is no event of a live run.
    pub fn of_network(number: u64, at: SimTime, event: &NetworkEvent<'_>) -> Option<Self> {
        FeedEvent::of_network(event).map(|happened| Self::new(number, at, happened))
    }

    fn new(number: u64, at: SimTime, happened: FeedEvent) -> Self {
        Self { number, at, happened, json: OnceLock::new() }
    }

    /// The block after which a round begins, if that is the event.
    #[cfg(test)]
    pub(super) fn round_after(&self) -> Option<BlockId> {
        match &self.happened {
            FeedEvent::Round(after) => Some(after.id()),
            _ => None,
        }
    }

    /// The kind of the event, as its line names it.
    pub fn kind(&self) -> &'static str {
        match &self.happened {
            FeedEvent::AtNode(_, event) => kind_of(event),
            FeedEvent::Round(_) => "round.began",
            FeedEvent::FaultBegan(..) => "fault.began",
            FeedEvent::FaultEnded(..) => "fault.ended",
            FeedEvent::NodeDown(..) => "node.down",
            FeedEvent::NodeUp(_) => "node.up",
            FeedEvent::PoolLost(_) => "pool.replaced",
            FeedEvent::Moved(..) => "chain.moved",
        }
    }

    /// The node of the event. `None` for an event of the whole network.
    pub fn node(&self) -> Option<NodeId> {
        match &self.happened {
            FeedEvent::AtNode(node, _)
            | FeedEvent::NodeDown(node, _)
            | FeedEvent::NodeUp(node)
            | FeedEvent::Moved(node, ..)
            | FeedEvent::PoolLost(node) => Some(*node),
            FeedEvent::Round(_) | FeedEvent::FaultBegan(..) | FeedEvent::FaultEnded(..) => None,
        }
    }

    /// The event's line as JSON.
    pub fn json(&self, slots: &Slots) -> &str {
        self.json.get_or_init(|| {
            let line = self.line(slots);
            debug_assert_eq!(line.payload.kind(), self.kind());
            serde_json::to_string(&line).expect("lines have text keys").into()
        })
    }

    fn line(&self, slots: &Slots) -> Line<'_> {
        match &self.happened {
            FeedEvent::AtNode(node, event) => Line::of_event(self.at, *node, event, slots),
            FeedEvent::Round(after) => {
                let end = after.round_end().expect("a round ends with it");
                Line::of_round(self.at, after, &end.created)
            }
            FeedEvent::FaultBegan(index, kind) => {
                Line::of_network(self.at, &NetworkEvent::FaultBegan { index: *index, kind }, slots)
            }
            FeedEvent::FaultEnded(index, kind) => {
                Line::of_network(self.at, &NetworkEvent::FaultEnded { index: *index, kind }, slots)
            }
            FeedEvent::NodeDown(node, cause) => {
                Line::of_network(self.at, &NetworkEvent::NodeDown { node: *node, cause: *cause }, slots)
            }
            FeedEvent::NodeUp(node) => Line::of_network(self.at, &NetworkEvent::NodeUp { node: *node }, slots),
            FeedEvent::PoolLost(node) => Line::of_network(self.at, &NetworkEvent::PoolLost { node: *node }, slots),
            FeedEvent::Moved(node, [from, to], pending) => Line::of_network(
                self.at,
                &NetworkEvent::Moved { node: *node, from, to, pending: pending.as_deref(), begins: false },
                slots,
            ),
        }
    }
}

/// Numbers the events, and passes them on while a reader is connected.
pub struct FeedObserver {
    feed: EventFeed,
    last: u64,
    /// The blocks after which a round begins, as reported so far.
    ends: BTreeSet<BlockId>,
}

impl FeedObserver {
    fn tell(&mut self, at: SimTime, happened: impl FnOnce() -> FeedEvent) {
        self.last += 1;
        let shared = &self.feed.0;
        shared.last.store(self.last, SeqCst);
        if shared.is_wanted.load(SeqCst) {
            self.feed.push(Record::new(self.last, at, happened()));
        }
    }
}

impl Observer for FeedObserver {
    fn observe(&mut self, now: SimTime, node: NodeId, event: &Event) {
        self.tell(now, || FeedEvent::AtNode(node, event.clone()));
        if let Event::BlockApplied(link) = event
            && link.round_end().is_some()
            && self.ends.insert(link.id())
        {
            self.tell(now, || FeedEvent::Round(link.clone()));
        }
    }

    fn observe_network(&mut self, now: SimTime, event: &NetworkEvent<'_>) {
        let Some(happened) = FeedEvent::of_network(event) else { return };
        self.tell(now, || happened);
    }
}
