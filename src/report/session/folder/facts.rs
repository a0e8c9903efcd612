//! The facts about a log that a start has without reading it again: length and checksum of each segment, and the pace.

use super::inputs;
use crate::{
    files::segments::{LogError, Records, SEGMENT_HEAD, Spot, segment, segment_bytes},
    ledger::codec::{LoadError, Loader, Save, Saver, saved},
    sim::snapshots::LogPlace,
};
use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
};

/// The length and the checksum of a segment's records up to a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentSum {
    /// The byte after the last of them.
    pub bytes: u64,
    /// The checksum of their lengths and bytes.
    pub sum: u32,
}

saved!(struct SegmentSum { bytes, sum });

/// The facts about a log up to a place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogFacts {
    /// The sums of the segments, from the first on.
    pub sums: Vec<SegmentSum>,
    /// The pace that was set last.
    pub pace: Option<String>,
}

impl LogFacts {
    /// Counts a record that was appended, or that was read after all records before it.
    pub fn record(&mut self, spot: Spot, record: &[u8]) {
        while self.sums.len() < spot.segment as usize {
            self.sums.push(SegmentSum { bytes: SEGMENT_HEAD, sum: 0 });
        }
        let segment = &mut self.sums[spot.segment as usize - 1];
        let mut hasher = crc32fast::Hasher::new_with_initial(segment.sum);
        hasher.update(&spot.length.to_le_bytes());
        hasher.update(record);
        *segment = SegmentSum { bytes: spot.end(), sum: hasher.finalize() };
    }

    /// The segment and the byte after the last record.
    pub fn place(&self) -> (u32, u64) {
        let last = self.sums.last().map_or(SEGMENT_HEAD, |last| last.bytes);
        (self.sums.len().max(1) as u32, last)
    }

    /// The length of all segments.
    pub fn bytes(&self) -> u64 {
        self.sums.iter().map(|sum| sum.bytes).sum()
    }

    /// The place after the last record.
    pub fn log_place(&self) -> LogPlace {
        let (segment, at) = self.place();
        inputs::place(Spot { segment, at, length: 0 })
    }

    /// Returns the rest of a log that agrees with these facts up to the position, or `None` if it is another log. Full segments are
    /// compared by their lengths only.
    ///
    /// # Errors
    /// The log cannot be read, or its last segment is damaged.
    pub fn rest(&self, log: &Path) -> Result<Option<Records>, LogError> {
        let (number, byte) = self.place();
        for (full, known) in (1..number).zip(&self.sums) {
            if segment_bytes(log, full)? != known.bytes {
                return Ok(None);
            }
        }
        let Some(mut records) = Records::open_at(log, number)? else { return Ok(None) };
        let mut found = Self { sums: self.sums[..number as usize - 1].to_vec(), ..Self::default() };
        while records.number_and_byte() < (number, byte) {
            let Some(record) = records.next_record()? else { return Ok(None) };
            found.record(records.spot().expect("a record was read"), &record);
        }
        Ok((found.sums == self.sums).then_some(records))
    }

    /// Reads the full segments of a log and compares their checksums, unless it is stopped. A start compares only their lengths.
    ///
    /// # Errors
    /// One of them cannot be read, or is damaged.
    pub fn verify(&self, log: &Path, stop: &AtomicBool) -> Result<(), LogError> {
        for (number, known) in (1..self.place().0).zip(&self.sums) {
            let other = || LogError::Damaged {
                file: segment(log, number),
                at: SEGMENT_HEAD,
                why: "its records are not those that were written".to_owned(),
            };
            let mut records = Records::open_at(log, number)?.ok_or_else(other)?;
            let mut found = Self { sums: self.sums[..number as usize - 1].to_vec(), ..Self::default() };
            while records.number_and_byte() < (number, known.bytes) && !stop.load(Ordering::Relaxed) {
                let record = records.next_record()?.ok_or_else(other)?;
                found.record(records.spot().expect("a record was read"), &record);
            }
            if stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            if found.sums.last() != Some(known) {
                return Err(other());
            }
        }
        Ok(())
    }
}

/// Verifies full segments on a thread of its own, until it is dropped.
pub struct SegmentVerifier {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl SegmentVerifier {
    /// Begins to verify the full segments of a log. `tell` receives the error of a damaged one.
    pub fn new(known: &LogFacts, log: &Path, tell: impl FnOnce(LogError) + Send + 'static) -> Self {
        let (known, log, stop) = (known.clone(), log.to_owned(), Arc::new(AtomicBool::new(false)));
        let stopped = stop.clone();
        let verify = move || {
            if let Err(why) = known.verify(&log, &stopped) {
                tell(why);
            }
        };
        Self { stop, thread: Some(thread::spawn(verify)) }
    }

    fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            // The panic has been reported.
            let _panicked = thread.join();
        }
    }
}

impl Drop for SegmentVerifier {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.join();
    }
}

/// The positions of records in the order of the log. Each is saved as its distance from the one before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spots(pub Vec<Spot>);

impl Save for Spots {
    fn save(&self, out: &mut Saver) {
        out.number(self.0.len() as u64);
        let mut before = FIRST;
        self.0.iter().for_each(|spot| save_spot(out, &mut before, spot));
    }

    fn load(from: &mut Loader) -> Result<Self, LoadError> {
        let (length, mut before) = (from.length()?, FIRST);
        (0..length).map(|_| load_spot(from, &mut before)).collect::<Result<_, _>>().map(Self)
    }
}

saved!(struct LogFacts { sums, pace });

/// The position from which the first distance is measured.
const FIRST: Spot = Spot { segment: 0, at: 0, length: 0 };

fn save_spot(out: &mut Saver, before: &mut Spot, spot: &Spot) {
    let segments = spot.segment - before.segment;
    out.number(segments.into());
    out.number(if segments == 0 { spot.at - before.at } else { spot.at });
    out.number(spot.length.into());
    *before = *spot;
}

fn load_spot(from: &mut Loader, before: &mut Spot) -> Result<Spot, LoadError> {
    let (segments, at, length) = (u32::load(from)?, u64::load(from)?, u32::load(from)?);
    let from_at = if segments == 0 { before.at } else { 0 };
    let spot = before.segment.checked_add(segments).zip(from_at.checked_add(at));
    let (segment, at) = spot.ok_or_else(|| from.wrong("place in a log", at))?;
    *before = Spot { segment, at, length };
    Ok(*before)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::segments::Log;
    use proptest::prelude::*;
    use std::fs;

    /// A log of several segments, and what is known of it up to a record.
    fn written(folder: &Path, records: u8, until: u8) -> LogFacts {
        let (mut log, mut known, mut at) =
            (Log::create_with(folder, 100).unwrap(), LogFacts::default(), LogFacts::default());
        for number in 0..records {
            let record = vec![number; usize::from(number)];
            let spot = log.append(&record).unwrap();
            known.record(spot, &record);
            if number < until {
                at = known.clone();
            }
        }
        at
    }

    fn verified(known: &LogFacts, log: &Path) -> Result<(), LogError> {
        known.verify(log, &AtomicBool::new(false))
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_rest_of_a_log_is_what_came_after(until in 0_u8..=30) {
            let folder = tempfile::tempdir().unwrap();
            let known = written(folder.path(), 30, until);
            let mut rest = known.rest(folder.path()).unwrap().expect("it is this log");
            let mut all = known.clone();
            for number in until..30 {
                let record = rest.next_record().unwrap().expect("there are more");
                prop_assert_eq!(&record, &vec![number; usize::from(number)]);
                all.record(rest.spot().unwrap(), &record);
            }
            prop_assert!(rest.next_record().unwrap().is_none());
            let whole = tempfile::tempdir().unwrap();
            prop_assert_eq!(&all.sums, &written(whole.path(), 30, 30).sums);
            prop_assert!(verified(&known, folder.path()).is_ok());
        }

        /// No changed byte before the place is passed over, and none after it is looked at.
        #[test]
        fn a_changed_byte_is_found(until in 1_u8..=30, segment_index in 0_usize..100, at in 0_usize..1_000, change in 1_u8..=255) {
            let folder = tempfile::tempdir().unwrap();
            let known = written(folder.path(), 30, until);
            let (segments, last) = known.place();
            let number = segment_index as u32 % segments + 1;
            let file = segment(folder.path(), number);
            let mut bytes = fs::read(&file).unwrap();
            let known_bytes = if number == segments { last as usize } else { bytes.len() };
            let at = at % known_bytes;
            bytes[at] ^= change;
            fs::write(&file, &bytes).unwrap();
            let found = match number == segments {
                true => !matches!(known.rest(folder.path()), Ok(Some(_))),
                false => verified(&known, folder.path()).is_err_and(|why| why.to_string().contains(&file.display().to_string())),
            };
            prop_assert!(found, "byte {} of segment {} of {}", at, number, segments);
        }

        /// A log that lost its end, a segment or the end of a segment is another one.
        #[test]
        fn a_log_that_lost_something_is_another(until in 2_u8..=30, segment_index in 0_usize..100, lost in 1_u64..50) {
            let folder = tempfile::tempdir().unwrap();
            let known = written(folder.path(), 30, until);
            let (segments, last) = known.place();
            let number = segment_index as u32 % segments + 1;
            let file = fs::OpenOptions::new().write(true).open(segment(folder.path(), number)).unwrap();
            let whole = if number == segments { last } else { known.sums[number as usize - 1].bytes };
            file.set_len(whole.saturating_sub(lost)).unwrap();
            prop_assert!(!matches!(known.rest(folder.path()), Ok(Some(_))));
        }
    }
}
