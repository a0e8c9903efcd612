//! The digest of a run's event trace: equal runs, equal digests.

use super::Observer;
use crate::{
    actors::{Event, NodeId, SimTime},
    protocol::{BlockId, PublicKey, TransactionId},
};
use sha2::{Digest as _, Sha256};
use std::{
    fmt, mem,
    sync::{Arc, Mutex, MutexGuard},
};

/// SHA256 over all events of a run with their times and nodes, in order.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Digest(pub [u8; 32]);

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Digests what it observes. Clones share one digest: one goes to the stage, one stays to be asked, where the run rests.
#[derive(Default)]
pub struct TraceDigest {
    shared: Arc<Mutex<Hasher>>,
    /// Records that are not in the digest yet, and how many: a lock for each would cost as much as the record.
    gathered: Vec<u8>,
    records: u64,
}

#[derive(Default)]
struct Hasher {
    sha256: Sha256,
    events: u64,
}

/// So many bytes are hashed at once, even if the run does not rest for long.
const GATHERED: usize = 1 << 16;

impl TraceDigest {
    /// The digest of the events so far.
    pub fn digest(&self) -> Digest {
        Digest(self.lock().sha256.clone().finalize().into())
    }

    /// Number of events so far.
    pub fn events(&self) -> u64 {
        self.lock().events
    }

    fn lock(&self) -> MutexGuard<'_, Hasher> {
        self.shared.lock().expect("no one panics while holding it")
    }

    fn hash(&mut self) {
        let records = mem::take(&mut self.records);
        let mut hasher = self.lock();
        hasher.sha256.update(&self.gathered);
        hasher.events += records;
        drop(hasher);
        self.gathered.clear();
    }
}

impl Clone for TraceDigest {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone(), ..Self::default() }
    }
}

impl Observer for TraceDigest {
    fn observe(&mut self, now: SimTime, node: NodeId, event: &Event) {
        let begin = self.gathered.len();
        // The length before it keeps two short records from reading as one long one.
        self.gathered.extend([0; 4]);
        write(now, node, event, &mut self.gathered);
        let length = (self.gathered.len() - begin - 4) as u32;
        self.gathered[begin..begin + 4].copy_from_slice(&length.to_le_bytes());
        self.records += 1;
        if self.gathered.len() >= GATHERED {
            self.hash();
        }
    }

    fn rest(&mut self) {
        self.hash();
    }
}

/// A number that stands for all the digest holds of an event.
pub fn fingerprint(now: SimTime, node: NodeId, event: &Event) -> u64 {
    let mut record = Vec::new();
    write(now, node, event, &mut record);
    let hash: [u8; 32] = Sha256::digest(&record).into();
    u64::from_le_bytes(hash[..8].try_into().expect("8 of 32 bytes"))
}

fn write(now: SimTime, node: NodeId, event: &Event, record: &mut Vec<u8>) {
    record.extend(now.micros().to_le_bytes());
    record.extend(node.0.to_le_bytes());
    encode(event, record);
}

/// A record of what happened: the kind's number, then what identifies its subject.
fn encode(event: &Event, record: &mut Vec<u8>) {
    match event {
        Event::BlockForged(block) => with_block(0, &block.id, record),
        Event::BlockReceived(block) => with_block(1, &block.id, record),
        Event::BlockApplied { link, applied } => {
            with_block(2, &link.id(), record);
            applied.missing.iter().for_each(|key| with_key(key, record));
            if let Some(end) = &applied.round_end {
                record.extend(end.created.number().0.to_le_bytes());
                end.missed.iter().for_each(|key| with_key(key, record));
                end.created.members.iter().for_each(|member| with_key(&member.public_key, record));
            }
        }
        Event::BlockRefused(why) => {
            record.push(3);
            record.extend(why.to_string().as_bytes());
        }
        Event::ForgingSuspended { reached, in_quorum } => {
            record.push(4);
            record.extend(reached.to_le_bytes());
            record.extend(in_quorum.to_le_bytes());
        }
        Event::PoolAdded(added) => {
            record.push(5);
            added.iter().for_each(|transaction| with_id(&transaction.id(), record));
        }
        Event::PoolRejected(rejected) => {
            record.push(6);
            for rejection in rejected {
                with_id(&rejection.transaction.id(), record);
                record.extend(rejection.error.to_string().as_bytes());
            }
        }
        Event::PoolRemoved(id) => {
            record.push(7);
            with_id(id, record);
        }
        Event::PoolExpired(transaction) => {
            record.push(8);
            with_id(&transaction.id(), record);
        }
        Event::PoolEvicted(transaction) => {
            record.push(17);
            with_id(&transaction.id(), record);
        }
        Event::PoolPurged(transaction) => {
            record.push(18);
            with_id(&transaction.id(), record);
        }
        Event::PoolReplaced(pending) => {
            record.push(19);
            pending.iter().for_each(|transaction| with_id(&transaction.id(), record));
        }
        Event::BlockDisregarded(block) => with_block(9, &block.id, record),
        Event::BlockReverted(link) => with_block(10, &link.id(), record),
        Event::RolledBack { from, to, cause } => {
            with_block(11, &from.id(), record);
            with_block(11, &to.id(), record);
            record.extend(cause.to_string().as_bytes());
        }
        Event::HealthChecked { peers, forked } => {
            record.push(12);
            record.extend(peers.to_le_bytes());
            record.extend(forked.to_le_bytes());
        }
        Event::PeerAdded(peer) => {
            record.push(13);
            record.extend(peer.0.to_le_bytes());
        }
        Event::PeerRemoved(peer) => {
            record.push(14);
            record.extend(peer.0.to_le_bytes());
        }
        Event::ForgerStarted { delegate } => {
            record.push(15);
            with_key(delegate, record);
        }
        Event::ForgerFailed { error } => {
            record.push(16);
            record.extend(error.as_bytes());
        }
    }
}

fn with_block(kind: u8, id: &BlockId, record: &mut Vec<u8>) {
    record.push(kind);
    match id {
        BlockId::Numeric(number) => record.extend(number.to_le_bytes()),
        BlockId::Full(hash) => record.extend(hash),
    }
}

fn with_id(id: &TransactionId, record: &mut Vec<u8>) {
    record.extend(id.0);
}

fn with_key(key: &PublicKey, record: &mut Vec<u8>) {
    record.extend(key.as_bytes());
}
