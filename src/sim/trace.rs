//! The digest of a run's event trace: equal runs, equal digests.

mod open;

use super::Observer;
use crate::{
    actors::{Event, NodeId, SimTime},
    ledger::{
        codec::{LoadError, Loader, Save, Saver, saved},
        state::Notable,
    },
    protocol::{BlockId, PublicKey, SignedTransaction, TransactionId},
};
use open::OpenSha256;
use sha2::{Digest as _, Sha256};
use std::{
    fmt,
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

/// Digests what it observes. Clones share one digest: one goes to the stage, and the caller reads another when the run rests. A clone that
/// takes over continues from the last record of all clones.
#[derive(Default)]
pub struct TraceDigest {
    shared: Arc<Mutex<Hasher>>,
    /// The records that are not in the digest yet. A lock for each record would cost as much as the record.
    gathered: Records,
    has_begun: bool,
}

/// Events as bytes, one record after the other, each of which could be read back. A record omits the fields that equal those of the
/// record before: in a slot, most nodes report the same events of one block, two at a time.
///
/// ```text
///   kind and flags   1     [`SAME_MOMENT`], [`SAME_BLOCK`], [`SAME_NOTABLE`]
///   moment          12     unless it is that of the record before: time [µs], node
///   subject                ids and keys as they are, lists and texts after their length
/// ```
#[derive(Default)]
struct Records {
    bytes: Vec<u8>,
    /// The number of events in `bytes`.
    count: u64,
    said: PreviousFacts,
}

/// The facts that a record leaves out when the record before gave them.
#[derive(Clone, Default)]
struct PreviousFacts {
    moment: Option<(SimTime, NodeId)>,
    /// True if a record holds the moment already.
    is_told: bool,
    block: Option<BlockId>,
    notable: Option<Arc<Notable>>,
}

/// At the instant and the node of the record before.
const SAME_MOMENT: u8 = 0x20;
/// The block's notable facts equal those that were recorded last.
const SAME_NOTABLE: u8 = 0x40;
/// The record is about the same block as the last record of any block.
const SAME_BLOCK: u8 = 0x80;

#[derive(Default)]
struct Hasher {
    sha256: OpenSha256,
    events: u64,
    /// The facts as of the last hashed record.
    said: PreviousFacts,
}

/// The number of bytes that are hashed at once, even if the run does not rest for long.
const GATHERED: usize = 1 << 16;

impl TraceDigest {
    /// The digest of the events so far.
    pub fn digest(&self) -> Digest {
        Digest(self.lock().sha256.digest())
    }

    /// Number of events so far.
    pub fn events(&self) -> u64 {
        self.lock().events
    }

    fn lock(&self) -> MutexGuard<'_, Hasher> {
        self.shared.lock().expect("no thread panics while holding it")
    }

    /// Continues from the facts of the last record of all clones.
    #[cold]
    fn begin(&mut self) {
        self.has_begun = true;
        let said = self.lock().said.clone();
        self.gathered.said = said;
    }

    #[inline(never)]
    fn hash(&mut self) {
        if self.gathered.count == 0 {
            return;
        }
        let mut hasher = self.lock();
        hasher.sha256.update(&self.gathered.bytes);
        hasher.events += self.gathered.count;
        hasher.said = self.gathered.said.clone();
        drop(hasher);
        self.gathered.bytes.clear();
        self.gathered.count = 0;
    }

    /// Appends the state of the digest, while the run rests.
    pub fn save(&self, out: &mut Saver) {
        let Hasher { sha256, events, said } = &*self.lock();
        sha256.save(out);
        events.save(out);
        said.save(out);
    }

    /// Continues from a saved digest.
    ///
    /// # Errors
    /// The bytes are not those of a digest.
    pub fn go_on(&self, from: &mut Loader) -> Result<(), LoadError> {
        let (sha256, events, said) = Save::load(from)?;
        *self.lock() = Hasher { sha256, events, said };
        Ok(())
    }
}

impl Clone for TraceDigest {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone(), ..Self::default() }
    }
}

impl Observer for TraceDigest {
    fn observe(&mut self, now: SimTime, node: NodeId, event: &Event) {
        if !self.has_begun {
            self.begin();
        }
        self.gathered.add(now, node, event);
        if self.gathered.bytes.len() >= GATHERED {
            self.hash();
        }
    }

    fn rest(&mut self) {
        self.hash();
    }
}

/// A hash of everything that the digest contains of an event.
pub fn fingerprint(now: SimTime, node: NodeId, event: &Event) -> u64 {
    let mut records = Records::default();
    records.add(now, node, event);
    let hash: [u8; 32] = Sha256::digest(&records.bytes).into();
    u64::from_le_bytes(hash[..8].try_into().expect("8 of 32 bytes"))
}

impl Records {
    fn add(&mut self, now: SimTime, node: NodeId, event: &Event) {
        let moment = Some((now, node));
        self.said.is_told = self.said.is_told && self.said.moment == moment;
        self.said.moment = moment;
        self.encode(event);
        self.count += 1;
    }

    /// Appends the number of the event's kind, then the fields that identify its subject.
    fn encode(&mut self, event: &Event) {
        match event {
            Event::BlockForged(block) => self.block(0, &block.id),
            Event::BlockReceived(block) => self.block(1, &block.id),
            Event::BlockApplied(link) => match link.notable() {
                None => self.block(2, &link.block().id),
                Some(notable) if self.knows(notable) => self.block(2 | SAME_NOTABLE, &link.block().id),
                Some(notable) => {
                    self.block(20, &link.block().id);
                    self.notable(notable);
                }
            },
            Event::BlockRefused(why) => {
                self.kind(3);
                self.text(&why.to_string());
            }
            Event::ForgingSuspended { reached, in_quorum } => {
                self.kind(4);
                self.numbers([*reached, *in_quorum]);
            }
            Event::PoolAdded(added) => {
                self.kind(5);
                self.transactions(added);
            }
            Event::PoolRejected(rejected) => {
                self.kind(6);
                self.length(rejected.len());
                for rejection in rejected {
                    self.bytes.extend(rejection.transaction.id().0);
                    self.text(&rejection.error.to_string());
                }
            }
            Event::PoolRemoved(id) => self.transaction(7, *id),
            Event::PoolExpired(transaction) => self.transaction(8, transaction.id()),
            Event::PoolEvicted(transaction) => self.transaction(17, transaction.id()),
            Event::PoolPurged(transaction) => self.transaction(18, transaction.id()),
            Event::PoolReplaced(pending) => {
                self.kind(19);
                self.transactions(pending);
            }
            Event::BlockDisregarded(block) => self.block(9, &block.id),
            Event::BlockReverted(link) => self.block(10, &link.block().id),
            Event::RolledBack { from, to, cause } => {
                self.block(11, &from.block().id);
                self.block(11, &to.block().id);
                self.text(&cause.to_string());
            }
            Event::HealthChecked { peers, forked } => {
                self.kind(12);
                self.numbers([*peers, *forked]);
            }
            Event::PeerAdded(peer) => {
                self.kind(13);
                self.numbers([peer.0]);
            }
            Event::PeerRemoved(peer) => {
                self.kind(14);
                self.numbers([peer.0]);
            }
            Event::ForgerStarted { delegate } => {
                self.kind(15);
                self.bytes.extend(delegate.as_bytes());
            }
            Event::ForgerFailed { error } => {
                self.kind(16);
                self.text(error);
            }
        }
    }

    /// Appends the kind, its flags, and the moment if it has changed.
    #[inline]
    fn kind(&mut self, kind: u8) {
        if self.said.is_told {
            return self.bytes.push(kind | SAME_MOMENT);
        }
        self.bytes.push(kind);
        if let Some((now, node)) = self.said.moment {
            let mut moment = [0; 12];
            moment[..8].copy_from_slice(&now.micros().to_le_bytes());
            moment[8..].copy_from_slice(&node.0.to_le_bytes());
            self.bytes.extend(moment);
            self.said.is_told = true;
        }
    }

    #[inline]
    fn block(&mut self, kind: u8, id: &BlockId) {
        if self.said.block.as_ref() == Some(id) {
            return self.kind(kind | SAME_BLOCK);
        }
        self.name(kind, id);
    }

    fn name(&mut self, kind: u8, id: &BlockId) {
        self.said.block = Some(*id);
        self.kind(kind);
        match id {
            BlockId::Numeric(number) => {
                self.bytes.push(8);
                self.bytes.extend(number.to_le_bytes());
            }
            BlockId::Full(hash) => {
                self.bytes.push(32);
                self.bytes.extend(hash);
            }
        }
    }

    /// Returns true if these facts were recorded last.
    fn knows(&self, notable: &Arc<Notable>) -> bool {
        self.said.notable.as_ref().is_some_and(|last| Arc::ptr_eq(last, notable) || last == notable)
    }

    fn notable(&mut self, notable: &Arc<Notable>) {
        self.keys(notable.missing.iter());
        self.length(usize::from(notable.round_end.is_some()));
        if let Some(end) = &notable.round_end {
            self.numbers([end.created.number().0]);
            self.keys(end.missed.iter());
            self.keys(end.created.members.iter().map(|member| &member.public_key));
        }
        self.said.notable = Some(notable.clone());
    }

    fn keys<'a>(&mut self, keys: impl ExactSizeIterator<Item = &'a PublicKey>) {
        self.length(keys.len());
        keys.for_each(|key| self.bytes.extend(key.as_bytes()));
    }

    fn transaction(&mut self, kind: u8, id: TransactionId) {
        self.kind(kind);
        self.bytes.extend(id.0);
    }

    fn transactions(&mut self, all: &[Arc<SignedTransaction>]) {
        self.length(all.len());
        all.iter().for_each(|transaction| self.bytes.extend(transaction.id().0));
    }

    fn text(&mut self, text: &str) {
        self.length(text.len());
        self.bytes.extend(text.as_bytes());
    }

    fn length(&mut self, length: usize) {
        self.bytes.extend((length as u64).to_le_bytes());
    }

    fn numbers<const N: usize>(&mut self, numbers: [u32; N]) {
        numbers.iter().for_each(|number| self.bytes.extend(number.to_le_bytes()));
    }
}

saved!(struct PreviousFacts { moment, is_told, block, notable });

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: NodeId = NodeId(1);

    fn at(seconds: u64) -> SimTime {
        SimTime::from_micros(seconds * 1_000_000)
    }

    fn digest(events: &[(SimTime, NodeId, Event)], rests: bool) -> Digest {
        let mut trace = TraceDigest::default();
        for (now, node, event) in events {
            trace.observe(*now, *node, event);
            if rests {
                trace.rest();
            }
        }
        trace.rest();
        assert_eq!(trace.events(), events.len() as u64);
        trace.digest()
    }

    #[test]
    fn what_is_not_repeated_still_counts() {
        let removed = |byte| Event::PoolRemoved(TransactionId([byte; 32]));
        let failed = |error: &str| Event::ForgerFailed { error: error.to_owned() };
        let base = vec![(at(1), FIRST, removed(1)), (at(1), FIRST, removed(2)), (at(2), FIRST, failed("why"))];
        let mut others = vec![base.clone(); 6];
        others[1][1].0 = at(2);
        others[2][1].1 = NodeId(2);
        others[3][1].2 = removed(3);
        others[4][1].2 = removed(1);
        others[5].swap(0, 1);
        others.push(vec![base[0].clone(), base[2].clone()]);
        others.push(vec![(at(1), FIRST, failed("one")), (at(1), FIRST, failed("two"))]);
        others.push(vec![(at(1), FIRST, failed("onetwo"))]);
        let digests: std::collections::BTreeSet<[u8; 32]> = others.iter().map(|one| digest(one, false).0).collect();
        assert_eq!(digests.len(), others.len());
        assert!(others.iter().all(|one| digest(one, false) == digest(one, true)), "where a run rests does not matter");
    }

    #[test]
    fn a_block_is_named_once_until_another_is() {
        let (one, other) = (BlockId::Numeric(1), BlockId::Numeric(2));
        let bytes = |ids: &[BlockId]| {
            let mut records = Records::default();
            ids.iter().for_each(|id| records.block(1, id));
            records.bytes
        };
        let named = [1, 8, 1, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(bytes(&[one, one]), [&named[..], &[1 | SAME_BLOCK]].concat());
        assert_ne!(bytes(&[one, other, one]), bytes(&[one, other, other]));
        assert_ne!(bytes(&[one, other]), bytes(&[one, one]));
    }
}
