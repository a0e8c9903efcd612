//! A live session in memory: the lines that its file would have, for requests during the session.

use super::{
    Came, Entry, Session,
    folder::{FolderError, LoggedInputs},
    state::line,
};
use crate::{
    actors::SimTime,
    sim::{
        Intervention, TraceDigest,
        live::Journal,
        snapshots::{CameIn, LogPlace},
        tips::Tips,
    },
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The largest size of a session in memory, in bytes.
pub const RECORDING_MAX: usize = 32 << 20;

/// A running session that is recorded in memory. Clones are cheap and share the session.
#[derive(Clone)]
pub struct KeptSession(Arc<Mutex<SessionLines>>);

struct SessionLines {
    /// The first line.
    begin: Vec<u8>,
    /// The log that holds the earlier inputs, up to a position.
    earlier: Option<(LoggedInputs, LogPlace)>,
    lines: Vec<u8>,
    digest: TraceDigest,
    room: usize,
    /// True if the inputs have exceeded the room. Nothing is retained then.
    is_too_long: bool,
}

/// The error of a session whose inputs have exceeded the room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the recording is longer than {room} bytes (RECORDING_MAX), so it is not kept in memory any more; `dposlab up --record \
     FILE` writes one of any length"
)]
pub struct TooLong {
    room: usize,
}

/// The reason why a session cannot be written as a file.
#[derive(Debug, thiserror::Error)]
pub enum SessionFileError {
    #[error(transparent)]
    TooLong(#[from] TooLong),
    #[error(transparent)]
    Unread(#[from] FolderError),
}

/// All inputs of a session up to an instant.
pub struct SoFar {
    begin: Vec<u8>,
    earlier: Option<(LoggedInputs, LogPlace)>,
    lines: Vec<u8>,
    room: usize,
}

impl SoFar {
    /// The file of the session, for `dposlab replay`. Reads the log of a session that is kept in a folder.
    ///
    /// # Errors
    /// More has come in than [`RECORDING_MAX`] bytes, or the log cannot be read.
    pub fn file(self) -> Result<Vec<u8>, SessionFileError> {
        let Self { begin: mut file, earlier, lines, room } = self;
        if let Some((inputs, until)) = earlier {
            for entry in inputs.entries(LogPlace::FIRST).map_err(FolderError::from)? {
                let (place, entry) = entry?;
                if place >= until {
                    break;
                }
                line(&mut file, &Entry { height: None, ..entry });
                if file.len() + lines.len() > room {
                    return Err(TooLong { room }.into());
                }
            }
        }
        file.extend(lines);
        Ok(file)
    }
}

impl KeptSession {
    /// A session that is about to begin, or that continues after `history`. `digest` must be among its observers.
    pub fn new(session: &Session, history: &[CameIn], digest: TraceDigest) -> Self {
        Self::with_room(session, history, digest, RECORDING_MAX)
    }

    /// A session that continues after the inputs of a log before a position.
    pub fn after(session: &Session, inputs: LoggedInputs, until: LogPlace, digest: TraceDigest) -> Self {
        let kept = Self::new(session, &[], digest);
        kept.lock().earlier = Some((inputs, until));
        kept
    }

    fn with_room(session: &Session, history: &[CameIn], digest: TraceDigest, room: usize) -> Self {
        let (mut begin, earlier, lines) = (Vec::new(), None, Vec::new());
        line(&mut begin, session);
        let mut kept = SessionLines { begin, earlier, lines, digest, room, is_too_long: false };
        history.iter().for_each(|came| kept.keep(&Entry::from(came)));
        Self(Arc::new(Mutex::new(kept)))
    }

    /// The session as if it had been stopped now. Must be called while the run rests.
    ///
    /// # Errors
    /// More has come in than [`RECORDING_MAX`] bytes.
    pub fn so_far(&self, now: SimTime, delivered: u64) -> Result<SoFar, TooLong> {
        let kept = self.lock();
        if kept.is_too_long {
            return Err(TooLong { room: kept.room });
        }
        let (begin, earlier, mut lines) = (kept.begin.clone(), kept.earlier.clone(), kept.lines.clone());
        line(&mut lines, &kept.entry(now, delivered, Came::End));
        Ok(SoFar { begin, earlier, lines, room: kept.room })
    }

    fn lock(&self) -> MutexGuard<'_, SessionLines> {
        // A panic while it was locked leaves whole lines.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionLines {
    fn entry(&self, at: SimTime, delivered: u64, came: Came) -> Entry {
        let digest = Some(self.digest.digest().to_string());
        Entry { at: at.micros(), delivered, digest, height: None, came }
    }

    fn keep(&mut self, entry: &Entry) {
        if self.is_too_long {
            return;
        }
        line(&mut self.lines, entry);
        if self.begin.len() + self.lines.len() > self.room {
            self.is_too_long = true;
            self.lines = Vec::new();
        }
    }
}

impl Journal for KeptSession {
    fn comes_in(&mut self, at: SimTime, delivered: u64, _: &Tips, what: &Intervention) {
        let mut kept = self.lock();
        if !kept.is_too_long {
            let entry = kept.entry(at, delivered, what.into());
            kept.keep(&entry);
        }
    }

    /// No request can come any more.
    fn ended(&mut self, _: SimTime, _: u64) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{scenario::Scenario, sim::SeedTree};
    use std::path::Path;

    #[test]
    fn what_has_no_room_is_refused_with_the_limit_and_frees_its_memory() {
        let scenario = "version = 1\ndescription = \"d\"\nrounds = 1\n[network]\ndelegates = 3\n";
        let scenario = Scenario::parse(scenario, Path::new("a test")).expect("it is one");
        let plan = scenario.plan(&scenario.testnet(SeedTree::new(1)), SeedTree::new(1));
        let (config, tips) = (plan.tree.config(), Tips::new(plan.nodes.len(), &plan.tip));
        let session = Session::new(1, &scenario, 1, config);
        let mut kept = KeptSession::with_room(&session, &[], TraceDigest::default(), 4_000);
        let (now, name) = (SimTime::from_micros(9), Some("n".repeat(90)));
        let mut came = 0;
        while let Ok(so_far) = kept.so_far(now, 7) {
            let file = so_far.file().expect("it has room");
            let lines = file.iter().filter(|byte| **byte == b'\n').count();
            assert_eq!(lines, 2 + came, "how it began, what came in, and the end");
            assert!(file.ends_with(b"\"came\":\"end\"}\n"));
            kept.comes_in(now, 7, &tips, &Intervention::TakeSnapshot { name: name.clone() });
            came += 1;
            assert!(came < 100, "it has no end");
        }
        assert!(came > 3);
        kept.comes_in(now, 7, &tips, &Intervention::TakeSnapshot { name });
        assert!(kept.lock().lines.is_empty());
        let told = kept.so_far(now, 7).err().expect("it is too long").to_string();
        assert!(told.contains("4000 bytes (RECORDING_MAX)") && told.contains("--record"), "{told}");
    }
}
