//! Limits on the resources that clients use at a time: connections, time, and memory for bodies.
#![expect(clippy::disallowed_methods, reason = "clients live in real time, and so does the patience with them")]

use super::error::ApiError;
use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::sync::Notify;

/// The limits on connections, waiting times and buffered bytes of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest number of open connections. One more closes a waiting one.
    pub connections: usize,
    /// The longest time that a connection may wait for the head of its next request.
    pub idle: Duration,
    /// The longest time that a body may take to arrive.
    pub body: Duration,
    /// The largest number of bytes of bodies that are being received, of all clients together. One client uses half of them at most.
    pub receiving: usize,
    /// The longest time that a client may read nothing of what is sent to it.
    pub write: Duration,
    /// The largest number of bytes of public answers that clients have not read yet. One client uses half of them at most.
    pub sending: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 1_000,
            idle: Duration::from_secs(30),
            body: Duration::from_secs(30),
            receiving: 64 * 1_048_576,
            write: Duration::from_secs(30),
            sending: 64 * 1_048_576,
        }
    }
}

/// The numbers of connections that were closed or refused at the limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitCounts {
    /// Closed to make room for others.
    pub closed: u64,
    /// Refused because all others were at work.
    pub refused: u64,
}

/// The numbers of connections so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Open now.
    pub open: usize,
    /// Taken in, since the server started.
    pub accepted: u64,
    pub spared: LimitCounts,
}

/// The open connections of one server.
#[derive(Debug)]
pub struct Connections {
    limit: usize,
    open: Mutex<ConnectionTable>,
}

#[derive(Debug, Default)]
struct ConnectionTable {
    next: u64,
    by_number: BTreeMap<u64, Connection>,
    by_client: BTreeMap<IpAddr, usize>,
    spared: LimitCounts,
    /// The part of them that the log has reported.
    told: LimitCounts,
}

#[derive(Debug)]
struct Connection {
    client: IpAddr,
    /// Requests that are whole and being answered.
    at_work: u32,
    /// True if a request of this connection has been answered.
    was_answered: bool,
    /// The instant at which it was opened, or its last answer was ready.
    since: Instant,
    close: Arc<Notify>,
}

/// An open connection, until it is dropped.
#[derive(Debug)]
pub struct OpenConnection {
    connections: Arc<Connections>,
    number: u64,
    close: Arc<Notify>,
}

/// A request of a connection, until it is dropped. While its body arrives, the connection counts as waiting and may be closed for
/// another one. Otherwise clients that never send the rest would fill the server.
#[derive(Debug)]
pub struct AtWork {
    connections: Arc<Connections>,
    number: u64,
    /// True if all of the request is there, and it is being answered.
    has_begun: AtomicBool,
}

impl Connections {
    /// Begins with none, and allows at most `limit`.
    pub fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit: limit.max(1), open: Mutex::default() })
    }

    /// Admits a connection. At the limit it closes a connection that waits for a request or for the rest of one. It chooses from the
    /// client with the most connections, prefers one that was never answered, and then the one that has waited longest. Returns `None`
    /// if all connections are at work.
    pub fn admit(self: &Arc<Self>, client: IpAddr) -> Option<OpenConnection> {
        let mut open = self.lock();
        if open.by_number.len() >= self.limit {
            let Some(spare) = open.spare() else {
                open.spared.refused += 1;
                return None;
            };
            open.spared.closed += 1;
            if let Some(connection) = open.remove(spare) {
                connection.close.notify_one();
            }
        }
        let number = open.next;
        open.next += 1;
        let close = Arc::new(Notify::new());
        let (since, shared) = (Instant::now(), close.clone());
        open.by_number.insert(number, Connection { client, at_work: 0, was_answered: false, since, close: shared });
        *open.by_client.entry(client).or_default() += 1;
        Some(OpenConnection { connections: self.clone(), number, close })
    }

    /// The connections closed and refused since the last call, in words; `None` if there were none.
    pub fn news(&self) -> Option<String> {
        let mut open = self.lock();
        let (closed, refused) = (open.spared.closed - open.told.closed, open.spared.refused - open.told.refused);
        open.told = open.spared;
        drop(open);
        let news =
            format!("{} connections are open at most: {closed} closed for others, {refused} refused", self.limit);
        (closed + refused > 0).then_some(news)
    }

    /// The numbers of connections so far.
    pub fn counts(&self) -> Counts {
        let open = self.lock();
        Counts { open: open.by_number.len(), accepted: open.next, spared: open.spared }
    }

    fn lock(&self) -> MutexGuard<'_, ConnectionTable> {
        self.open.lock().expect("no thread panics while holding it")
    }
}

impl ConnectionTable {
    /// The waiting connection that is closed first.
    fn spare(&self) -> Option<u64> {
        let waiting = self.by_number.iter().filter(|(_, connection)| connection.at_work == 0);
        let rank = |connection: &Connection| {
            let of_client = self.by_client.get(&connection.client).copied().unwrap_or(0);
            (usize::MAX - of_client, connection.was_answered, connection.since)
        };
        waiting.min_by_key(|(_, connection)| rank(connection)).map(|(number, _)| *number)
    }

    fn remove(&mut self, number: u64) -> Option<Connection> {
        let connection = self.by_number.remove(&number)?;
        if let Some(count) = self.by_client.get_mut(&connection.client) {
            *count -= 1;
            if *count == 0 {
                self.by_client.remove(&connection.client);
            }
        }
        Some(connection)
    }
}

impl OpenConnection {
    /// Waits until the connection must be closed for another one.
    pub async fn closed(&self) {
        self.close.notified().await;
    }

    /// Registers a request, whose answer begins with [`AtWork::begin`].
    pub fn work(&self) -> Arc<AtWork> {
        let (connections, number) = (self.connections.clone(), self.number);
        Arc::new(AtWork { connections, number, has_begun: AtomicBool::new(false) })
    }
}

impl AtWork {
    /// Notes that the whole request has arrived and that its answer begins.
    pub fn begin(&self) {
        if !self.has_begun.swap(true, Ordering::Relaxed)
            && let Some(connection) = self.connections.lock().by_number.get_mut(&self.number)
        {
            connection.at_work += 1;
        }
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        if let Some(connection) = self.connections.lock().by_number.get_mut(&self.number) {
            connection.at_work -= u32::from(*self.has_begun.get_mut());
            connection.was_answered = true;
            connection.since = Instant::now();
        }
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.connections.lock().remove(self.number);
    }
}

/// Bytes that are on their way: of bodies that are being received, or of answers that are being sent.
#[derive(Debug)]
pub struct UnderWay {
    limit: usize,
    held: Mutex<BytesInUse>,
    /// The total since the server started.
    total: AtomicU64,
}

#[derive(Debug, Default)]
struct BytesInUse {
    bytes: usize,
    by_client: BTreeMap<IpAddr, usize>,
}

/// The counted bytes of one body or answer, until it is dropped.
#[derive(Debug)]
pub struct OnWay {
    of: Arc<UnderWay>,
    client: IpAddr,
    bytes: usize,
}

impl UnderWay {
    /// Begins with none, and allows at most `limit`.
    pub fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, held: Mutex::default(), total: AtomicU64::new(0) })
    }

    /// Bytes on their way now.
    pub fn bytes(&self) -> usize {
        self.lock().bytes
    }

    /// Bytes of all since the server started.
    pub fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// Begins to count a body of a client, or an answer to it.
    pub fn begin(self: &Arc<Self>, client: IpAddr) -> OnWay {
        OnWay { of: self.clone(), client, bytes: 0 }
    }

    fn lock(&self) -> MutexGuard<'_, BytesInUse> {
        self.held.lock().expect("no thread panics while holding it")
    }
}

impl OnWay {
    /// Counts more bytes. A client may use no more bytes than are free. So one client uses half of the limit at most, several clients
    /// leave as much free as one of them uses, and no client can keep all others from sending.
    ///
    /// # Errors
    /// They are too many, for this client or for all together.
    pub fn add(&mut self, bytes: usize) -> Result<(), ApiError> {
        self.bytes += bytes;
        self.of.total.fetch_add(bytes as u64, Ordering::Relaxed);
        let mut held = self.of.lock();
        held.bytes += bytes;
        let of_client = held.by_client.entry(self.client).or_default();
        *of_client += bytes;
        let of_client = *of_client;
        if of_client > self.of.limit.saturating_sub(held.bytes) { Err(ApiError::Busy) } else { Ok(()) }
    }
}

impl Drop for OnWay {
    fn drop(&mut self) {
        let mut held = self.of.lock();
        held.bytes -= self.bytes;
        if let Some(of_client) = held.by_client.get_mut(&self.client) {
            *of_client -= self.bytes;
            if *of_client == 0 {
                held.by_client.remove(&self.client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    fn numbers(connections: &Connections) -> Vec<u64> {
        connections.lock().by_number.keys().copied().collect()
    }

    #[test]
    fn one_too_many_closes_the_one_that_can_best_be_spared() {
        let connections = Connections::new(3);
        let held: Vec<_> = [1, 2, 2].into_iter().filter_map(|last| connections.admit(client(last))).collect();
        // Client 2 has most, and its first connection has been answered.
        drop(held[1].work());
        let fourth = connections.admit(client(3)).expect("one can be spared");
        assert_eq!(numbers(&connections), [0, 1, 3]);
        // All have one now. The one that was answered stays, and of the others the older goes.
        let fifth = connections.admit(client(4)).expect("one can be spared");
        assert_eq!(numbers(&connections), [1, 3, 4]);
        // Connections at work are never closed.
        let working = [held[1].work(), fourth.work(), fifth.work()];
        working.iter().for_each(|work| work.begin());
        assert!(connections.admit(client(5)).is_none());
        let news = "3 connections are open at most: 2 closed for others, 1 refused";
        assert_eq!(connections.news().as_deref(), Some(news));
        assert_eq!(connections.news(), None);
        let spared = LimitCounts { closed: 2, refused: 1 };
        assert_eq!(connections.counts(), Counts { open: 3, accepted: 5, spared });
        drop(working);
        assert!(connections.admit(client(5)).is_some());
    }

    #[test]
    fn a_body_that_does_not_come_keeps_nobody_out() {
        let connections = Connections::new(2);
        let sender = connections.admit(client(1)).expect("there is room");
        let other = connections.admit(client(2)).expect("there is room");
        let (sending, answered) = (sender.work(), other.work());
        answered.begin();
        answered.begin();
        let third = connections.admit(client(3)).expect("the body has not come");
        assert_eq!(numbers(&connections), [1, 2]);
        // A closed connection may still be at work for a moment.
        sending.begin();
        drop((sending, answered, sender));
        third.work().begin();
        assert!(
            connections.lock().by_number.values().all(|connection| connection.at_work == 0),
            "each is counted once"
        );
    }

    #[test]
    fn a_connection_that_ends_makes_room() {
        let connections = Connections::new(1);
        for _ in 0..3 {
            assert!(connections.admit(client(1)).is_some());
        }
        assert_eq!(connections.news(), None);
        assert!(connections.lock().by_client.is_empty());
    }

    #[test]
    fn bytes_count_until_the_body_is_done_with() {
        let receiving = UnderWay::new(20);
        let mut one = receiving.begin(client(1));
        assert_eq!(one.add(6), Ok(()));
        let mut other = receiving.begin(client(1));
        assert_eq!(other.add(5), Err(ApiError::Busy), "half of the room is one client's");
        drop(other);
        assert_eq!(one.add(4), Ok(()));
        assert_eq!((receiving.bytes(), receiving.total()), (10, 15));
        drop(one);
        assert_eq!(receiving.begin(client(1)).add(10), Ok(()));
        assert!(receiving.lock().by_client.is_empty());
    }

    #[test]
    fn however_much_some_clients_hold_another_one_finds_room() {
        let receiving = UnderWay::new(1_000);
        let mut held = Vec::new();
        for number in 1..=9 {
            // As much as it gets, in bodies of one byte.
            let get = || {
                let mut body = receiving.begin(client(number));
                body.add(1).is_ok().then_some(body)
            };
            held.extend(std::iter::from_fn(get));
        }
        assert!((500..1_000).contains(&receiving.bytes()), "{}", receiving.bytes());
        let (before, mut late) = (receiving.bytes(), receiving.begin(client(10)));
        while late.add(1).is_ok() {}
        assert!(receiving.bytes() > before + 1, "there is room for one more client");
        drop((held, late));
        assert_eq!(receiving.bytes(), 0);
    }
}
