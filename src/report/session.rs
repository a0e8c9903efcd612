//! A live session as a file: its beginning and all inputs from outside, so that it can be replayed.
//!
//! One JSON object a line: the [`Session`], then an [`Entry`] for each input and one for the end. A line is in the file
//! before its input is played, so the file of a killed session can be replayed as well.

mod entry;
pub mod folder;
mod memory;
pub mod state;

use super::trace::TraceWriter;

use crate::{
    actors::{Event, NodeId, SimTime},
    files,
    protocol::{Height, NetworkConfig, Timestamp},
    scenario::{FaultDesk, Scenario, StageKind, workload::digests_of_files},
    sim::{
        Intervention, NetworkEvent, Observer, Plan, Stage, Tips, TraceDigest, live::Journal, snapshots::CameIn,
        stage::ractor::ActorDied,
    },
};
pub use entry::{Came, Entry};
pub use memory::{KeptSession, RECORDING_MAX, SessionFileError};
use serde::{Deserialize, Serialize};
use std::{
    fs::File,
    io::{self, BufRead, BufReader, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

/// The version that this build writes and reads: of the form of the lines, and of the content of the digests in them.
const SCHEMA: u32 = 5;
/// The last instant that the timestamp of a block can represent.
const LAST: SimTime = SimTime::from_seconds(Timestamp(u32::MAX));

/// The beginning of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Session {
    /// The version of the form.
    pub session: u32,
    /// The version of dposlab that recorded it.
    pub version: String,
    pub seed: u64,
    /// The text of the scenario, with what it includes and with values that were replaced: files may move.
    pub scenario: String,
    /// The digests of the files that the scenario names. Empty if it names none, and in sessions of earlier builds.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub files: String,
    /// The folder of a loaded network. The next two are its file of passphrases and the chain on which it began.
    pub network_dir: Option<PathBuf>,
    pub secrets: Option<PathBuf>,
    pub chain: Option<PathBuf>,
    /// The slot it began with.
    pub start: u32,
    /// The nethash of the network, so that a changed folder is noticed.
    pub nethash: String,
}

impl Session {
    /// Returns the beginning of a session that this build records.
    pub fn new(seed: u64, scenario: &Scenario, start: u32, config: &NetworkConfig) -> Self {
        Self {
            session: SCHEMA,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            seed,
            scenario: scenario.to_toml(),
            files: digests_of_files([scenario]).unwrap_or_default(),
            network_dir: None,
            secrets: None,
            chain: None,
            start,
            nethash: config.network.nethash.to_string(),
        }
    }
}

impl Session {
    /// The first key in which the beginnings of two sessions differ, with both values in short.
    pub fn differs_from(&self, other: &Self) -> Option<(&'static str, String, String)> {
        let path = |path: &Option<PathBuf>| path.as_ref().map_or("none".to_owned(), |path| path.display().to_string());
        let line = |text: &str, beside: &str| {
            let other = text.lines().zip(beside.lines().chain(std::iter::repeat(""))).find(|(a, b)| a != b);
            other.map_or_else(|| "fewer lines".to_owned(), |(line, _)| format!("'{line}'"))
        };
        let keys: [(&'static str, String, String); 7] = [
            ("session", self.session.to_string(), other.session.to_string()),
            ("seed", self.seed.to_string(), other.seed.to_string()),
            ("network_dir", path(&self.network_dir), path(&other.network_dir)),
            ("secrets", path(&self.secrets), path(&other.secrets)),
            ("chain", path(&self.chain), path(&other.chain)),
            ("start", self.start.to_string(), other.start.to_string()),
            ("nethash", self.nethash.clone(), other.nethash.clone()),
        ];
        if self.scenario != other.scenario {
            let found = line(&self.scenario, &other.scenario);
            return Some(("scenario", found, line(&other.scenario, &self.scenario)));
        }
        // A folder of an earlier build does not have them.
        if !self.files.is_empty() && self.files != other.files {
            return Some(("files", line(&self.files, &other.files), line(&other.files, &self.files)));
        }
        keys.into_iter().find(|(_, found, asked)| found != asked)
    }
}

/// Writes a session while it goes on.
pub struct SessionWriter {
    file: File,
    digest: TraceDigest,
    /// Whole lines in the file.
    lines: u64,
    /// The virtual instant of the last input in the file.
    last: Option<SimTime>,
    /// The error that stopped it; nothing is written after that.
    cut: Arc<Mutex<Option<IncompleteRecording>>>,
    tell: Box<dyn Fn(&IncompleteRecording) + Send>,
}

/// The reason why a recording holds less than all inputs, and the time up to which it can be played again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}; the recording ends with its line {lines}{}", at(last))]
pub struct IncompleteRecording {
    why: String,
    /// Whole lines in the file; the first says how the session began.
    lines: u64,
    /// The virtual instant of the last input in the file, or `None` if there is no input.
    last: Option<SimTime>,
}

fn at(last: &Option<SimTime>) -> String {
    last.map_or_else(String::new, |last| format!(", at virtual second {}", last.micros() as f64 / 1e6))
}

impl SessionWriter {
    /// Creates the file of a session that is about to begin, or that continues after `history`. `digest` must be among its observers.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn create(file: &Path, session: &Session, history: &[CameIn], digest: TraceDigest) -> io::Result<Self> {
        let (file, cut) = (File::create_new(file)?, Arc::default());
        let mut writer = Self { file, digest, lines: 0, last: None, cut, tell: Box::new(|_| {}) };
        writer.line(session)?;
        for came in history {
            let entry = Entry::from(came);
            writer.line(&entry)?;
            writer.last = Some(SimTime::from_micros(entry.at));
        }
        Ok(writer)
    }

    /// Sets the function that is called at once if an entry cannot be written. It must not block, because the session waits for it.
    #[must_use]
    pub fn telling(self, tell: impl Fn(&IncompleteRecording) + Send + 'static) -> Self {
        Self { tell: Box::new(tell), ..self }
    }

    /// Returns a function that checks, once the session is over, whether all of it is in the file.
    pub fn outcome(&self) -> impl FnOnce() -> Result<(), IncompleteRecording> + use<> {
        let cut = self.cut.clone();
        move || cut.lock().expect("no thread panics while holding it").take().map_or(Ok(()), Err)
    }

    fn line(&mut self, line: &impl Serialize) -> io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        // One write without a buffer: after it, killing the process loses nothing.
        self.file.write_all(&text)?;
        self.lines += 1;
        Ok(())
    }

    fn entry(&mut self, at: SimTime, delivered: u64, came: Came) {
        let digest = Some(self.digest.digest().to_string());
        let entry = Entry { at: at.micros(), delivered, digest, height: None, came };
        if self.cut.lock().expect("no thread panics while holding it").is_some() {
            return;
        }
        match self.line(&entry) {
            Ok(()) => self.last = Some(at),
            Err(error) => {
                let cut = IncompleteRecording { why: error.to_string(), lines: self.lines, last: self.last };
                (self.tell)(&cut);
                *self.cut.lock().expect("no thread panics while holding it") = Some(cut);
            }
        }
    }
}

impl Journal for SessionWriter {
    fn comes_in(&mut self, at: SimTime, delivered: u64, _: &Tips, what: &Intervention) {
        self.entry(at, delivered, what.into());
    }

    fn ended(&mut self, at: SimTime, delivered: u64) {
        self.entry(at, delivered, Came::End);
    }
}

/// The reason why a session cannot be played again, or was not the same.
#[derive(Debug, thiserror::Error)]
#[rustfmt::skip]
pub enum SessionError {
    #[error("{}: cannot be read: {source}", file.display())]
    Unreadable { file: PathBuf, source: io::Error },
    #[error("{}:{line}: is no line of `dposlab up --record FILE`: {why}", file.display())]
    Malformed { file: PathBuf, line: usize, why: String },
    #[error("{}:{line}: key '{key}': found {found}, allowed is {allowed}", file.display())]
    NotAllowed { file: PathBuf, line: usize, key: &'static str, found: u64, allowed: String },
    #[error("{}:{line}: node {node} is none of {nodes}", file.display())]
    NoNode { file: PathBuf, line: usize, node: u32, nodes: usize },
    #[error("{}:{line}: the session differs: {what} recorded {expected}, replayed {found}", file.display())]
    Differs { file: PathBuf, line: usize, what: &'static str, expected: String, found: String },
    #[error("{}: is no file of `GET /lab/snapshots/ID/file`, nor a recording: {why}", file.display())]
    NoState { file: PathBuf, why: String },
    #[error("{}: is damaged: its checksum is {found}, and should be {expected}", file.display())]
    Damaged { file: PathBuf, expected: String, found: String },
    #[error(transparent)]
    Died(#[from] ActorDied),
    #[error("{0}")]
    NotSpawned(String),
}

impl SessionError {
    /// Returns true if the file is at fault, not the replay.
    pub fn is_bad_input(&self) -> bool {
        match self {
            Self::Unreadable { .. } | Self::Malformed { .. } | Self::NotAllowed { .. } | Self::NoNode { .. } => true,
            Self::NoState { .. } | Self::Damaged { .. } => true,
            Self::Differs { .. } | Self::Died(_) | Self::NotSpawned(_) => false,
        }
    }
}

/// A recorded session, read line by line.
pub struct SessionFile {
    file: PathBuf,
    input: Box<dyn BufRead>,
    line: usize,
    pub session: Session,
}

impl SessionFile {
    /// Opens a recorded session and reads its beginning.
    ///
    /// # Errors
    /// The file is not a recorded session, or is one of another version.
    pub fn open(file: &Path) -> Result<Self, SessionError> {
        let input = files::open(file);
        let input = input.map_err(|source| SessionError::Unreadable { file: file.to_path_buf(), source })?;
        Self::read(file, Box::new(BufReader::new(input)))
    }

    /// As [`SessionFile::open`], with input from elsewhere. Errors name `file`.
    ///
    /// # Errors
    /// As [`SessionFile::open`].
    pub fn read(file: &Path, mut input: Box<dyn BufRead>) -> Result<Self, SessionError> {
        let unreadable = |source| SessionError::Unreadable { file: file.to_path_buf(), source };
        let mut first = String::new();
        files::read_line(&mut input, &mut first).map_err(unreadable)?;
        let malformed = |why: serde_json::Error| SessionError::Malformed {
            file: file.to_path_buf(),
            line: 1,
            why: why.to_string(),
        };
        let session: Session = serde_json::from_str(&first).map_err(malformed)?;
        let refused = |key, found: u32, allowed: String| {
            Err(SessionError::NotAllowed { file: file.to_path_buf(), line: 1, key, found: found.into(), allowed })
        };
        if session.session != SCHEMA {
            return refused("session", session.session, SCHEMA.to_string());
        }
        Ok(Self { file: file.to_path_buf(), input, line: 1, session })
    }

    /// The next entry. A last line without a line end does not count: the session was killed while it wrote the line.
    fn next(&mut self) -> Result<Option<Entry>, SessionError> {
        let mut text = String::new();
        self.line += 1;
        let read = files::read_line(&mut self.input, &mut text);
        read.map_err(|source| SessionError::Unreadable { file: self.file.clone(), source })?;
        if !text.ends_with('\n') {
            return Ok(None);
        }
        serde_json::from_str(&text).map(Some).map_err(|why| self.malformed(why))
    }

    fn malformed(&self, why: impl ToString) -> SessionError {
        SessionError::Malformed { file: self.file.clone(), line: self.line, why: why.to_string() }
    }

    fn differs(&self, what: &'static str, expected: impl ToString, found: impl ToString) -> SessionError {
        let (expected, found) = (expected.to_string(), found.to_string());
        SessionError::Differs { file: self.file.clone(), line: self.line, what, expected, found }
    }
}

/// The result of a replay in which everything was as recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReplaySummary {
    /// Inputs from outside.
    pub inputs: u64,
    /// Changes of the rules between nodes and their clients, which a replay passes over.
    pub rules: u64,
    pub events: u64,
    pub digest: String,
    /// Virtual instant of the end, in microseconds.
    pub end_us: u64,
    /// True if the session was stopped in order; one that was killed is replayed up to its last input.
    pub ended: bool,
}

/// Replays a session from the plan with which it began, on the ractor stage. Compares the digest with the recorded one at
/// every line.
///
/// # Errors
/// A line cannot be understood, an event was not as recorded, or an actor died.
pub async fn replay(
    file: SessionFile,
    plan: &Plan,
    desk: &FaultDesk,
    trace: Option<&TraceWriter>,
) -> Result<ReplaySummary, SessionError> {
    replay_on(StageKind::Ractor, file, plan, desk, trace).await
}

/// [`replay`] on either stage.
///
/// # Errors
/// As [`replay`].
pub async fn replay_on(
    kind: StageKind,
    file: SessionFile,
    plan: &Plan,
    desk: &FaultDesk,
    trace: Option<&TraceWriter>,
) -> Result<ReplaySummary, SessionError> {
    replay_and_keep(kind, file, plan, desk, trace).await.map(|(replayed, _)| replayed)
}

/// As [`replay_on`], and also returns the inputs.
///
/// # Errors
/// As [`replay`].
pub async fn replay_and_keep(
    kind: StageKind,
    mut file: SessionFile,
    plan: &Plan,
    desk: &FaultDesk,
    trace: Option<&TraceWriter>,
) -> Result<(ReplaySummary, Vec<CameIn>), SessionError> {
    let digest = TraceDigest::default();
    let watch = Watch::new(plan);
    let mut observers: Vec<Box<dyn Observer>> = vec![Box::new(digest.clone()), Box::new(watch.clone())];
    observers.extend(trace.map(|trace| Box::new(trace.clone()) as Box<dyn Observer>));
    let mut stage = match kind {
        StageKind::Inline => Stage::inline(plan, observers),
        StageKind::Ractor => {
            let spawned = Stage::ractor(plan, observers).await;
            spawned.map_err(|error| SessionError::NotSpawned(error.to_string()))?
        }
    };
    let (mut inputs, mut rules, mut ended) = (Vec::new(), 0, false);
    while let Some(entry) = file.next()? {
        let Entry { at, delivered, digest: expected, came, height: _ } = entry;
        let at = SimTime::from_micros(at);
        let now = stage.world().now();
        if at < now || at > LAST {
            let allowed = format!("{} to {}", now.micros(), LAST.micros());
            let (file, line) = (file.file, file.line);
            return Err(SessionError::NotAllowed { file, line, key: "at", found: at.micros(), allowed });
        }
        if !stage.play_to(at, delivered).await? {
            return Err(file.differs("inputs delivered", delivered, stage.world().delivered()));
        }
        if let Some(expected) = expected.filter(|expected| *expected != digest.digest().to_string()) {
            return Err(file.differs("digest", expected, digest.digest()));
        }
        if let Some(node) = came.node().filter(|node| *node as usize >= plan.nodes.len()) {
            let nodes = plan.nodes.len();
            return Err(SessionError::NoNode { file: file.file.clone(), line: file.line, node, nodes });
        }
        let config = plan.tree.config();
        match came.intervention(config, desk, |node| watch.height(node)).map_err(|why| file.malformed(why))? {
            Some(Intervention::Chaos(_)) => rules += 1,
            Some(what) => {
                inputs.push(CameIn { at, delivered, what: what.clone() });
                stage.intervene(what).await?;
            }
            None => ended = true,
        }
    }
    let end_us = stage.world().now().micros();
    stage.stop().await;
    let (events, digest) = (digest.events(), digest.digest().to_string());
    Ok((ReplaySummary { inputs: inputs.len() as u64, rules, events, digest, end_us, ended }, inputs))
}

/// An observer of the height of each node.
#[derive(Clone)]
struct Watch(Arc<Mutex<Tips>>);

impl Watch {
    fn new(plan: &Plan) -> Self {
        Self(Arc::new(Mutex::new(Tips::new(plan.nodes.len(), &plan.tip))))
    }

    fn height(&self, node: u32) -> Height {
        self.0.lock().expect("no thread panics while holding it").of(NodeId(node)).height()
    }
}

impl Observer for Watch {
    fn observe(&mut self, _: SimTime, node: NodeId, event: &Event) {
        self.0.lock().expect("no thread panics while holding it").follow(node, event);
    }

    fn observe_network(&mut self, _: SimTime, event: &NetworkEvent<'_>) {
        self.0.lock().expect("no thread panics while holding it").follow_network(event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::SeedTree;
    use std::fs;

    #[test]
    fn a_session_differs_by_the_content_of_a_file_of_its_scenario() {
        let folder = tempfile::tempdir().expect("a folder of our own");
        let chain = folder.path().join("chain.jsonl");
        fs::write(&chain, "").expect("it can be written");
        let text = format!(
            "version = 1\nrounds = 1\n[network]\ndelegates = 3\n[[workload]]\nkind = \"chain\"\nfile = '{}'\n",
            chain.display()
        );
        let scenario = Scenario::parse(&text, Path::new("a test")).expect("it is one");
        let testnet = scenario.testnet(SeedTree::new(1));
        let session = || Session::new(1, &scenario, 1, &testnet.config);
        let kept = session();
        assert_eq!(kept.differs_from(&session()), None);
        fs::write(&chain, "\n").expect("it can be written");
        let differs = kept.differs_from(&session()).map(|(key, ..)| key);
        assert_eq!(differs, Some("files"));
        let of_earlier_build = Session { files: String::new(), ..kept };
        assert_eq!(of_earlier_build.differs_from(&session()), None);
    }
}
