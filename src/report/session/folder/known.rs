//! What is known of a log without reading it again: what each segment comes to, and where everything lies that came in.

use crate::{
    files::segments::{LogError, Records, SEGMENT_HEAD, Spot, segment_bytes},
    ledger::saved::{LoadError, Loader, Saved, Saver, saved},
    protocol::Height,
};
use imbl::Vector;
use std::path::Path;

/// The records of a segment up to a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentSum {
    /// The byte after the last of them.
    pub bytes: u64,
    /// The checksum of their lengths and bytes.
    pub sum: u32,
}

saved!(struct SegmentSum { bytes, sum });

/// A record of something that came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Input {
    pub spot: Spot,
    /// The height of the node that transactions came to: its milestone says how to read them. 0 for anything else.
    pub height: Height,
}

/// What is known of a log up to a place. A clone shares what both know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// By segment, from the first on.
    pub sums: Vec<SegmentSum>,
    /// In the order in which they came in.
    pub inputs: Vector<Input>,
    /// The pace that was set last.
    pub pace: Option<String>,
}

impl Known {
    /// A record was appended, or read after all those before it.
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

    /// The record that was appended last is of something that came in.
    pub fn input(&mut self, spot: Spot, height: Height) {
        self.inputs.push_back(Input { spot, height });
    }

    /// The segment and the byte after the last record.
    pub fn place(&self) -> (u32, u64) {
        let last = self.sums.last().map_or(SEGMENT_HEAD, |last| last.bytes);
        (self.sums.len().max(1) as u32, last)
    }

    /// The rest of a log that is as it is known up to the place; `None` if it is another one. Of full segments only the lengths
    /// are looked at.
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
}

/// Records in the order of the log, each by its distance from the one before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spots(pub Vec<Spot>);

impl Saved for Spots {
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

impl Saved for Known {
    fn save(&self, out: &mut Saver) {
        let Self { sums, inputs, pace } = self;
        sums.save(out);
        pace.save(out);
        out.number(inputs.len() as u64);
        let mut before = FIRST;
        for Input { spot, height } in inputs {
            save_spot(out, &mut before, spot);
            height.save(out);
        }
    }

    fn load(from: &mut Loader) -> Result<Self, LoadError> {
        let (sums, pace) = (Saved::load(from)?, Saved::load(from)?);
        let (length, mut before) = (from.length()?, FIRST);
        let input = |_| Ok(Input { spot: load_spot(from, &mut before)?, height: Saved::load(from)? });
        let inputs = (0..length).map(input).collect::<Result<_, _>>()?;
        Ok(Self { sums, inputs, pace })
    }
}

/// Where the first distance is measured from.
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
