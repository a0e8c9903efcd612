//! The network of a snapshot as a file: the beginning of its session, and all inputs before the snapshot. Replaying them gives
//! the same network, to the last timer and random number.
//!
//! The first line is a [`Head`]. The lines of a session's file follow, without digests and without an end. A recorded session is
//! such a file as well: it leads to its end.

use super::{Entry, LAST, Session, SessionError, SessionFile};
use crate::{
    actors::{NodeId, SimTime},
    files,
    ledger::settled_chain::SettledError,
    protocol::crypto::sha256,
    scenario::FaultDesk,
    sim::{
        Intervention, Observer, Plan, Stage,
        snapshots::{CameIn, Inputs, SnapshotInfo, Snapshots},
        world::Moment,
    },
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{
    io::{BufReader, Cursor, Read},
    path::{Path, PathBuf},
};

/// The version of the form that this build writes and reads.
const SCHEMA: u32 = 1;
/// The largest size of a file in bytes.
pub const STATE_MAX: u64 = 1 << 30;
/// The number of bytes that are reserved for the first line of a file.
const HEAD_ROOM: u64 = 1 << 10;

/// The name, instant and tip of the snapshot, and the checksum of the rest of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    /// The version of the form.
    pub state: u32,
    /// SHA-256 of all bytes after the first line, in hex.
    pub checksum: String,
    pub name: Option<String>,
    /// The virtual instant, in microseconds.
    pub at: u64,
    /// Inputs that had been delivered to actors by then.
    pub delivered: u64,
    /// The tip that most live nodes stood on.
    pub height: u32,
    pub tip: String,
}

/// The reason why a snapshot cannot be written as a file.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotFileError {
    #[error(
        "all that came in before the snapshot takes more than {STATE_MAX} bytes, and no file of a snapshot may be longer"
    )]
    TooLong,
    #[error(transparent)]
    Unread(#[from] SettledError),
}

/// The file of a snapshot.
///
/// # Errors
/// The file would be longer than [`STATE_MAX`], or an input cannot be read.
pub fn write(session: &Session, info: &SnapshotInfo, history: &Inputs) -> Result<Vec<u8>, SnapshotFileError> {
    let mut rest = Vec::new();
    line(&mut rest, session);
    for came in history.iter() {
        line(&mut rest, &Entry::from(&came?));
        if rest.len() as u64 + HEAD_ROOM > STATE_MAX {
            return Err(SnapshotFileError::TooLong);
        }
    }
    let head = Head {
        state: SCHEMA,
        checksum: hex::encode(sha256(&rest)),
        name: info.name.clone(),
        at: info.at.micros(),
        delivered: info.delivered,
        height: info.height.0,
        tip: info.tip.to_string(),
    };
    let mut file = Vec::with_capacity(rest.len() + 300);
    line(&mut file, &head);
    file.extend(rest);
    Ok(file)
}

/// Writes a line of a session's file.
pub(super) fn line(out: &mut Vec<u8>, line: &impl Serialize) {
    serde_json::to_writer(&mut *out, line).expect("texts and numbers become JSON, and a vector takes all");
    out.push(b'\n');
}

/// A file that leads to a state.
pub struct StateFile {
    path: PathBuf,
    /// The head of a snapshot with a valid checksum; `None` for a recorded session.
    head: Option<Head>,
    session: SessionFile,
}

/// The state that a file leads to.
pub struct LoadedState {
    pub moment: Moment,
    /// A history without snapshots. All inputs on the way count as inputs since the beginning.
    pub snapshots: Snapshots,
    /// All inputs on the way, snapshots included.
    pub history: Vec<CameIn>,
}

impl StateFile {
    /// Opens a file and verifies its checksum.
    ///
    /// # Errors
    /// The file cannot be read, is no such file, is of another version, or is damaged.
    pub fn open(path: &Path) -> Result<Self, SessionError> {
        let unreadable = |source| SessionError::Unreadable { file: path.to_path_buf(), source };
        let mut bytes = Vec::new();
        let file = files::open(path).map_err(unreadable)?;
        file.take(STATE_MAX + 1).read_to_end(&mut bytes).map_err(unreadable)?;
        Self::read(path, &bytes)
    }

    /// As [`StateFile::open`], with bytes that are already read. Errors name `path`.
    ///
    /// # Errors
    /// As [`StateFile::open`].
    pub fn read(path: &Path, bytes: &[u8]) -> Result<Self, SessionError> {
        let file = || path.to_path_buf();
        if bytes.len() as u64 > STATE_MAX {
            let (found, allowed) = (bytes.len() as u64, format!("up to {STATE_MAX} bytes"));
            return Err(SessionError::NotAllowed { file: file(), line: 1, key: "file", found, allowed });
        }
        let no_state = |why: String| SessionError::NoState { file: file(), why };
        let end =
            bytes.iter().position(|byte| *byte == b'\n').ok_or_else(|| no_state("it has no first line".into()))?;
        let (first, rest) = (&bytes[..end], &bytes[end + 1..]);
        let is_recording = serde_json::from_slice::<Value>(first).is_ok_and(|first| first.get("session").is_some());
        if is_recording {
            let session = SessionFile::read(path, Box::new(BufReader::new(Cursor::new(bytes.to_vec()))))?;
            return Ok(Self { path: file(), head: None, session });
        }
        let head: Head = serde_json::from_slice(first).map_err(|why| no_state(format!("line 1: {why}")))?;
        if head.state != SCHEMA {
            let (found, allowed) = (u64::from(head.state), SCHEMA.to_string());
            return Err(SessionError::NotAllowed { file: file(), line: 1, key: "state", found, allowed });
        }
        let found = hex::encode(sha256(rest));
        if found != head.checksum {
            return Err(SessionError::Damaged { file: file(), expected: head.checksum, found });
        }
        let session = SessionFile::read(path, Box::new(BufReader::new(Cursor::new(rest.to_vec()))))?;
        Ok(Self { path: file(), head: Some(head), session })
    }

    /// Returns the beginning of the session.
    pub fn session(&self) -> &Session {
        &self.session.session
    }

    /// Plays from the plan with which the session began to the snapshot, or to the end of the recorded session.
    ///
    /// # Errors
    /// A line cannot be understood, or the network differs at the end.
    pub async fn arrive(
        mut self,
        plan: &Plan,
        desk: &FaultDesk,
        observers: Vec<Box<dyn Observer>>,
    ) -> Result<LoadedState, SessionError> {
        let Some(head) = self.head.take() else { return self.arrive_at_end(plan, desk, observers).await };
        let mut stage = Stage::inline(plan, observers);
        while let Some((at, came)) = self.next(&mut stage, plan, desk).await? {
            let what = came.filter(Intervention::is_of_run);
            let Some(what) = what else { return Err(self.session.malformed("no part of a snapshot's file")) };
            debug_assert_eq!(stage.world().now(), at);
            stage.intervene(what).await?;
        }
        self.reach(&mut stage, head.at, head.delivered).await?;
        // As when the snapshot was taken: events that are due by now and are for no actor belong to the moment.
        stage.play_instant().await?;
        let tip = stage.world().tips().winning().clone();
        if (tip.height().0, tip.id().to_string()) != (head.height, head.tip.clone()) {
            let expected = format!("{} at height {}", head.tip, head.height);
            let found = format!("{} at height {}", tip.id(), tip.height());
            return Err(SessionError::Differs { file: self.path, line: 1, what: "tip", expected, found });
        }
        Self::arrived(stage).await
    }

    /// A recorded session may have reverted to snapshots. The parts that it left are not on the way to its end, and observers do not
    /// receive them.
    async fn arrive_at_end(
        mut self,
        plan: &Plan,
        desk: &FaultDesk,
        observers: Vec<Box<dyn Observer>>,
    ) -> Result<LoadedState, SessionError> {
        let mut stage = Stage::inline(&plan.apart(), Vec::new());
        stage.open();
        while let Some((_, Some(what))) = self.next(&mut stage, plan, desk).await? {
            stage.intervene(what).await?;
        }
        let (at, delivered) = (stage.world().now(), stage.world().delivered());
        let mut way = Stage::inline(plan, observers);
        for came in stage.snapshots().inputs().iter() {
            let CameIn { at, delivered, what } = came.expect("no log holds them");
            way.play_to(at, delivered).await?;
            way.intervene(what).await?;
        }
        way.play_to(at, delivered).await?;
        way.play_instant().await?;
        Self::arrived(way).await
    }

    /// Reads the next line and plays the run to its instant. The intervention is `None` if the line records the end of the session.
    async fn next(
        &mut self,
        stage: &mut Stage,
        plan: &Plan,
        desk: &FaultDesk,
    ) -> Result<Option<(SimTime, Option<Intervention>)>, SessionError> {
        let Some(Entry { at, delivered, came, .. }) = self.session.next()? else { return Ok(None) };
        let at = self.reach(stage, at, delivered).await?;
        if let Some(node) = came.node().filter(|node| *node as usize >= plan.nodes.len()) {
            let (file, line, nodes) = (self.path.clone(), self.session.line, plan.nodes.len());
            return Err(SessionError::NoNode { file, line, node, nodes });
        }
        let height = |node| stage.world().tips().of(NodeId(node)).height();
        let what = came.intervention(plan.tree.config(), desk, height).map_err(|why| self.session.malformed(why))?;
        Ok(Some((at, what)))
    }

    async fn arrived(stage: Stage) -> Result<LoadedState, SessionError> {
        let (moment, snapshots) = stage.into_moment().await?;
        let history = snapshots.since().iter().collect::<Result<_, _>>().expect("no log holds them");
        Ok(LoadedState { moment, snapshots, history })
    }

    async fn reach(&self, stage: &mut Stage, at: u64, delivered: u64) -> Result<SimTime, SessionError> {
        let (at, now) = (SimTime::from_micros(at), stage.world().now());
        if at < now || at > LAST {
            let allowed = format!("{} to {}", now.micros(), LAST.micros());
            let (file, line) = (self.path.clone(), self.session.line);
            return Err(SessionError::NotAllowed { file, line, key: "at", found: at.micros(), allowed });
        }
        if !stage.play_to(at, delivered).await? {
            return Err(self.session.differs("inputs delivered", delivered, stage.world().delivered()));
        }
        Ok(at)
    }
}
