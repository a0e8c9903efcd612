//! A live session as a file: how it began and everything that came in from outside, so that it can be played again.
//!
//! One JSON object a line: the [`Session`], then an [`Entry`] for each input and one for the end. A line is in the file
//! before its input is played, so what a killed session leaves can be played again as well.

use super::trace::TraceWriter;
use crate::{
    actors::{Event, NodeId, SimTime, message::Transactions},
    files,
    ledger::rules::Gossip,
    protocol::{Height, NetworkConfig, SignedTransaction, Timestamp, transaction::Dialect},
    scenario::{FaultDesk, testnet::DELEGATES_LIMIT},
    sim::{
        Fault, Intervention, Observer, Plan, Stage, Tips, TraceDigest, intervention::Asked, live::Journal,
        stage::ractor::ActorDied,
    },
};
use serde::{Deserialize, Serialize};
use std::{
    fs::File,
    io::{self, BufRead, BufReader, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

/// The version of the lines' form, and of what the digests in them are made of, that this build writes and reads.
const SCHEMA: u32 = 3;
/// The last instant that a block can name.
const LAST: SimTime = SimTime::from_seconds(Timestamp(u32::MAX));

/// How a session began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Session {
    /// The version of the form.
    pub session: u32,
    /// The version of dposlab that recorded it.
    pub version: String,
    pub seed: u64,
    /// Of a generated network.
    pub delegates: u32,
    pub gossip: Gossip,
    /// Of a loaded network: its folder, the file of passphrases, the chain it began on.
    pub network_dir: Option<PathBuf>,
    pub secrets: Option<PathBuf>,
    pub chain: Option<PathBuf>,
    /// The slot it began with.
    pub start: u32,
    /// Of the network, so that a folder that has changed is noticed.
    pub nethash: String,
}

/// What came after the beginning. All name the virtual instant in microseconds, the number of inputs that had been
/// delivered to actors by then, and the digest of the events so far.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Entry {
    /// Transactions, as wire bytes in hex, were handed in at a node.
    Submit { at: u64, delivered: u64, digest: String, node: u32, transactions: Vec<String> },
    /// A fault was added.
    AddFault { at: u64, delivered: u64, digest: String, fault: Fault },
    /// A fault was ended, or would have been if there were one of this id.
    EndFault { at: u64, delivered: u64, digest: String, id: usize },
    /// Nodes were asked to leave the end of their chain for another branch.
    Reorganise { at: u64, delivered: u64, digest: String, asked: Asked },
    /// The session was stopped.
    End { at: u64, delivered: u64, digest: String },
}

impl Entry {
    /// The instant, the inputs delivered by then, and the digest.
    fn moment(&self) -> (SimTime, u64, &str) {
        let (Self::Submit { at, delivered, digest, .. }
        | Self::AddFault { at, delivered, digest, .. }
        | Self::EndFault { at, delivered, digest, .. }
        | Self::Reorganise { at, delivered, digest, .. }
        | Self::End { at, delivered, digest }) = self;
        (SimTime::from_micros(*at), *delivered, digest)
    }
}

impl Session {
    /// How a session begins that this build records.
    pub fn new(seed: u64, delegates: u32, gossip: Gossip, start: u32, config: &NetworkConfig) -> Self {
        Self {
            session: SCHEMA,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            seed,
            delegates,
            gossip,
            network_dir: None,
            secrets: None,
            chain: None,
            start,
            nethash: config.network.nethash.to_string(),
        }
    }
}

/// Writes a session while it goes on.
pub struct SessionWriter {
    file: File,
    digest: TraceDigest,
    /// The first that went wrong; nothing is written after it.
    broken: Arc<Mutex<Option<io::Error>>>,
}

impl SessionWriter {
    /// A session that is about to begin. `digest` must be among its observers.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn create(file: &Path, session: &Session, digest: TraceDigest) -> io::Result<Self> {
        let mut writer = Self { file: File::create_new(file)?, digest, broken: Arc::default() };
        writer.line(session)?;
        Ok(writer)
    }

    /// Asks, once the session is over, whether all of it is in the file.
    pub fn outcome(&self) -> impl FnOnce() -> io::Result<()> + use<> {
        let broken = self.broken.clone();
        move || broken.lock().expect("no one panics while holding it").take().map_or(Ok(()), Err)
    }

    fn line(&mut self, line: &impl Serialize) -> io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        // One write without a buffer: after it, killing the process loses nothing.
        self.file.write_all(&text)
    }

    fn entry(&mut self, entry: &Entry) {
        if self.broken.lock().expect("no one panics while holding it").is_some() {
            return;
        }
        if let Err(error) = self.line(entry) {
            *self.broken.lock().expect("no one panics while holding it") = Some(error);
        }
    }
}

impl Journal for SessionWriter {
    fn comes_in(&mut self, at: SimTime, delivered: u64, what: &Intervention) {
        let (at, digest) = (at.micros(), self.digest.digest().to_string());
        self.entry(&match what {
            Intervention::Submit { node, transactions } => {
                let transactions = transactions.iter().map(|transaction| hex::encode(transaction.bytes())).collect();
                Entry::Submit { at, delivered, digest, node: node.0, transactions }
            }
            Intervention::AddFault(added) => Entry::AddFault { at, delivered, digest, fault: added.fault.clone() },
            Intervention::EndFault { id } => Entry::EndFault { at, delivered, digest, id: *id },
            Intervention::Reorganise(asked) => Entry::Reorganise { at, delivered, digest, asked: Asked::clone(asked) },
        });
    }

    fn ended(&mut self, at: SimTime, delivered: u64) {
        let digest = self.digest.digest().to_string();
        self.entry(&Entry::End { at: at.micros(), delivered, digest });
    }
}

/// Why a session cannot be played again, or was not the same.
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
    #[error(transparent)]
    Died(#[from] ActorDied),
    #[error("{0}")]
    NotSpawned(String),
}

impl SessionError {
    /// Whether the file is at fault, not the replay.
    pub fn is_bad_input(&self) -> bool {
        match self {
            Self::Unreadable { .. } | Self::Malformed { .. } | Self::NotAllowed { .. } | Self::NoNode { .. } => true,
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
    /// Opens it and reads how it began.
    ///
    /// # Errors
    /// It is none, or of another version.
    pub fn open(file: &Path) -> Result<Self, SessionError> {
        let input = files::open(file);
        let input = input.map_err(|source| SessionError::Unreadable { file: file.to_path_buf(), source })?;
        Self::read(file, Box::new(BufReader::new(input)))
    }

    /// [`SessionFile::open`] of what is read from elsewhere; `file` is named in errors.
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
        if session.network_dir.is_none() && !(1..=DELEGATES_LIMIT).contains(&session.delegates) {
            return refused("delegates", session.delegates, format!("1 to {DELEGATES_LIMIT}"));
        }
        Ok(Self { file: file.to_path_buf(), input, line: 1, session })
    }

    /// The next entry. A last line without an end is what a killed session was about to write: it does not count.
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

/// What came of a replay in which everything was as recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Replayed {
    /// Inputs from outside.
    pub inputs: u64,
    pub events: u64,
    pub digest: String,
    /// Virtual instant of the end, in microseconds.
    pub end_us: u64,
    /// Whether the session was stopped in order; one that was killed is replayed up to its last input.
    pub ended: bool,
}

/// Plays a session again from the plan it began with. Digests are held against the recorded ones at every line.
///
/// # Errors
/// A line cannot be understood, an event was not as recorded, or an actor died.
pub async fn replay(
    mut file: SessionFile,
    plan: &Plan,
    desk: &FaultDesk,
    trace: Option<&TraceWriter>,
) -> Result<Replayed, SessionError> {
    let digest = TraceDigest::default();
    let watch = Watch::new(plan);
    let mut observers: Vec<Box<dyn Observer>> = vec![Box::new(digest.clone()), Box::new(watch.clone())];
    observers.extend(trace.map(|trace| Box::new(trace.clone()) as Box<dyn Observer>));
    let spawned = Stage::ractor(plan, observers).await;
    let mut stage = spawned.map_err(|error| SessionError::NotSpawned(error.to_string()))?;
    let (mut inputs, mut ended) = (0, false);
    while let Some(entry) = file.next()? {
        let (at, delivered, expected) = entry.moment();
        let now = stage.world().now();
        if at < now || at > LAST {
            let allowed = format!("{} to {}", now.micros(), LAST.micros());
            let (file, line) = (file.file, file.line);
            return Err(SessionError::NotAllowed { file, line, key: "at", found: at.micros(), allowed });
        }
        while stage.world().delivered() < delivered && stage.step(at).await? {}
        if stage.world().delivered() != delivered {
            return Err(file.differs("inputs delivered", delivered, stage.world().delivered()));
        }
        stage.rest_until(at);
        if digest.digest().to_string() != expected {
            return Err(file.differs("digest", expected, digest.digest()));
        }
        let what = match &entry {
            Entry::Submit { node, transactions, .. } => {
                let node = *node;
                if node as usize >= plan.nodes.len() {
                    let nodes = plan.nodes.len();
                    return Err(SessionError::NoNode { file: file.file.clone(), line: file.line, node, nodes });
                }
                let decoded = decode(plan.tree.config(), watch.height(node), transactions);
                let transactions = decoded.map_err(|why| file.malformed(why))?;
                Intervention::Submit { node: NodeId(node), transactions }
            }
            Entry::AddFault { fault, .. } => {
                let added = desk.admit(fault.clone()).map_err(|why| file.malformed(why))?;
                Intervention::AddFault(added.into())
            }
            Entry::EndFault { id, .. } => Intervention::EndFault { id: *id },
            Entry::Reorganise { asked, .. } => Intervention::Reorganise(asked.clone().into()),
            Entry::End { .. } => {
                ended = true;
                continue;
            }
        };
        stage.intervene(what).await?;
        inputs += 1;
    }
    let end_us = stage.world().now().micros();
    stage.stop().await;
    Ok(Replayed { inputs, events: digest.events(), digest: digest.digest().to_string(), end_us, ended })
}

/// Transactions as the API read them: by the milestone of the chain they came to.
fn decode(config: &NetworkConfig, height: Height, transactions: &[String]) -> Result<Transactions, String> {
    let context = config.transaction_context(height).with_dialect(Dialect::Stored);
    let decode = |text: &String| {
        let bytes = hex::decode(text).map_err(|why| why.to_string())?;
        SignedTransaction::from_bytes(&bytes, &context).map(Arc::new).map_err(|why| why.to_string())
    };
    transactions.iter().map(decode).collect::<Result<Vec<_>, _>>().map(Into::into)
}

/// Knows at which height each node is.
#[derive(Clone)]
struct Watch(Arc<Mutex<Tips>>);

impl Watch {
    fn new(plan: &Plan) -> Self {
        Self(Arc::new(Mutex::new(Tips::new(plan.nodes.len(), &plan.tip))))
    }

    fn height(&self, node: u32) -> Height {
        self.0.lock().expect("no one panics while holding it").of(NodeId(node)).height()
    }
}

impl Observer for Watch {
    fn observe(&mut self, _: SimTime, node: NodeId, event: &Event) {
        self.0.lock().expect("no one panics while holding it").follow(node, event);
    }
}
