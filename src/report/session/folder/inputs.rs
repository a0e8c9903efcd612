//! Inputs from outside, read again from a testnet's log.

use super::{FolderError, JSON, JsonRecord, RecordPlace, told};
use crate::{
    actors::SimTime,
    files::segments::{LogError, Records, SEGMENT_HEAD, Spot},
    ledger::settled_chain::SettledError,
    protocol::{Height, NetworkConfig},
    report::session::{Came, Entry},
    scenario::FaultDesk,
    sim::snapshots::{CameIn, InputLog, LogPlace, Reading, Stretch},
};
use std::{
    io, iter,
    path::{Path, PathBuf},
    sync::Arc,
};

/// The place of a record. The last byte that a record may begin at is that of a full segment.
pub(super) fn place(spot: Spot) -> LogPlace {
    LogPlace(u64::from(spot.segment) << 32 | spot.at)
}

/// The segment of a place, and the byte in it.
fn segment_and_byte(LogPlace(place): LogPlace) -> (u32, u64) {
    let (segment, at) = ((place >> 32) as u32, place & u64::from(u32::MAX));
    (segment.max(1), at.max(SEGMENT_HEAD))
}

/// The log of a testnet. Cheap to clone.
#[derive(Clone)]
pub struct LoggedInputs {
    log: PathBuf,
    config: Arc<NetworkConfig>,
    desk: FaultDesk,
}

impl LoggedInputs {
    pub(super) fn new(log: &Path, config: &Arc<NetworkConfig>, desk: &FaultDesk) -> Self {
        Self { log: log.to_owned(), config: config.clone(), desk: desk.clone() }
    }

    /// Reads the inputs from a position to the end of the log, each with its position. Ends after the first error.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn entries(
        &self,
        from: LogPlace,
    ) -> Result<impl Iterator<Item = Result<(LogPlace, Entry), FolderError>> + Send + use<>, LogError> {
        let (segment, at) = segment_and_byte(from);
        let mut records = Records::open_from(&self.log, segment, at)?;
        Ok(iter::from_fn(move || {
            let next = next_entry(records.as_mut()?).transpose();
            if !matches!(next, Some(Ok(_))) {
                records = None;
            }
            next
        }))
    }

    /// The same log as a reader of inputs only.
    pub(super) fn shared(&self) -> Arc<dyn InputLog> {
        Arc::new(self.clone())
    }

    /// Decodes an input. Returns `None` for the end of a session.
    ///
    /// # Errors
    /// It cannot be understood.
    pub(super) fn came(&self, Entry { at, delivered, came, height, .. }: Entry) -> Result<Option<CameIn>, String> {
        let height = match (&came, height) {
            (Came::Submit { .. }, None) => {
                return Err("transactions came to a node whose height is not there".to_owned());
            }
            (_, height) => Height(height.unwrap_or_default()),
        };
        let what = came.intervention(&self.config, &self.desk, |_| height)?;
        Ok(what.map(|what| CameIn { at: SimTime::from_micros(at), delivered, what }))
    }

    /// The error of a log. `why` already names the file and the byte.
    fn failure(why: impl ToString) -> SettledError {
        SettledError {
            file: PathBuf::from("inputs"),
            source: io::Error::new(io::ErrorKind::InvalidData, why.to_string()),
        }
    }
}

fn next_entry(records: &mut Records) -> Result<Option<(LogPlace, Entry)>, FolderError> {
    loop {
        let (file, at) = records.place();
        let Some(record) = records.next_record()? else { return Ok(None) };
        if record.first() != Some(&JSON) {
            continue;
        }
        if let JsonRecord::Came(entry) = told(&record).map_err(|why| RecordPlace { file, at }.wrong(why))? {
            return Ok(Some((place(records.spot().expect("a record was read")), entry)));
        }
    }
}

impl InputLog for LoggedInputs {
    fn read(&self, Stretch { first, last, count }: Stretch) -> Reading {
        let entries = match self.entries(first) {
            Ok(entries) => entries,
            Err(why) => return Box::new(iter::once(Err(Self::failure(why)))),
        };
        let (this, mut found, mut is_over) = (self.clone(), 0, false);
        let mut entries = entries.take_while(move |entry| entry.as_ref().map_or(true, |(place, _)| *place <= last));
        let mut next = move || -> Result<Option<CameIn>, SettledError> {
            for entry in entries.by_ref() {
                let (_, entry) = entry.map_err(Self::failure)?;
                let came = this.came(entry).map_err(|why| Self::failure(format!("{}: {why}", this.log.display())))?;
                if let Some(came) = came.filter(|came| came.what.is_of_run()) {
                    found += 1;
                    return Ok(Some(came));
                }
            }
            match found == count {
                true => Ok(None),
                false => {
                    Err(Self::failure(format!("{}: found {found} inputs where {count} came in", this.log.display())))
                }
            }
        };
        Box::new(iter::from_fn(move || {
            if is_over {
                return None;
            }
            let came = next().transpose();
            is_over = !matches!(came, Some(Ok(_)));
            came
        }))
    }
}
