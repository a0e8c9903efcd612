//! A testnet in a folder: its beginning, and a log of all inputs, of all blocks, and of tips that the network reached. A process
//! that is killed loses nothing that is in the log. Replaying the log gives the same network, to the last timer and random
//! number.
//!
//! ```text
//!   DIR/network.json      the session's first line, for people to read as well; network.json.new until the folder is a testnet
//!   DIR/log/00000001.log  records: a tag, then JSON or the bytes of a block
//!   DIR/index/blocks      which record holds which settled block; made again from the log where it is missing or damaged
//! ```

pub mod checkpoint;
mod facts;
pub mod index;
mod inputs;
mod settling;
mod writer;

use super::{Came, Entry, LAST, Session};
use crate::{
    actors::{NodeId, SimTime},
    files::{
        self, TEXT_LIMIT,
        segments::{self, Log, LogError, Reader, Records, Spot},
    },
    ledger::Link,
    protocol::{Block, BlockId, Height, NetworkConfig},
    scenario::FaultDesk,
    sim::{
        Observer, Pace, Plan, Stage,
        snapshots::{LogPlace, Snapshots},
        stage::ractor::ActorDied,
        world::Moment,
    },
};
use checkpoint::{Beside, RestoredTestnet};
pub use facts::{LogFacts, SegmentVerifier};
use index::Index;
pub use inputs::LoggedInputs;
use serde::{Deserialize, Serialize};
use settling::BlockLog;
pub use settling::{Depth, Settling};
use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    str::FromStr,
    sync::Arc,
    time::Duration,
};
pub use writer::FolderWriter;

/// The first bytes of the three kinds of records: JSON, a block, and the acceptance of a block by a node.
const JSON: u8 = b'j';
const BLOCK: u8 = b'b';
const TAKEN: u8 = b't';
/// The longest virtual time within which a node must accept a block of the log again during a replay.
const TAKES_MAX: Duration = Duration::from_secs(3_600);

/// The advice for a folder that this build cannot play.
const OTHER_BUILD: &str = "have that one write the chain (`dposlab export DIR --out FILE`), and begin another testnet on it with \
                           this one (`dposlab up --chain FILE`, and the options it was begun with)";

/// The content of a JSON record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum JsonRecord {
    /// An input from outside.
    Came(Entry),
    /// The tip of the network at an instant.
    Stood(TipRecord),
    /// A pace that was set.
    Pace(String),
}

/// A block that a served node accepted. The log has it before the node's clients see it, so that they find it again.
#[derive(Clone, Debug, PartialEq, Eq)]
struct AcceptedBlock {
    node: NodeId,
    /// The block's id, as text.
    id: String,
}

impl AcceptedBlock {
    fn record(&self) -> Vec<u8> {
        [&[TAKEN], &self.node.0.to_le_bytes()[..], self.id.as_bytes()].concat()
    }

    fn read(record: &[u8]) -> Option<Self> {
        let (node, id) = record.strip_prefix(&[TAKEN])?.split_first_chunk()?;
        let id = std::str::from_utf8(id).ok()?.to_owned();
        Some(Self { node: NodeId(u32::from_le_bytes(*node)), id })
    }
}

/// The tip of the network at an instant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TipRecord {
    /// The virtual instant, in microseconds.
    at: u64,
    /// Inputs that had been delivered to actors by then.
    delivered: u64,
    /// The tip that most live nodes stood on.
    height: u32,
    tip: String,
    /// True if all events due by the instant had happened, including those that are for no actor.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_played: bool,
}

/// The time at which written records must be synced to the disk, so that they survive a crash of the machine. A crash of the
/// process alone loses nothing that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// Before a client is answered.
    Always,
    /// At most this time later.
    Within(Duration),
    /// At a time that the operating system chooses.
    Never,
}

impl FromStr for Sync {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "always" => Ok(Self::Always),
            "never" => Ok(Self::Never),
            milliseconds => match milliseconds.parse() {
                Ok(number @ 1..=3_600_000) => Ok(Self::Within(Duration::from_millis(number))),
                _ => Err("give 'always', 'never' or milliseconds, 1 to 3600000".into()),
            },
        }
    }
}

/// The reason why the testnet of a folder cannot continue.
#[derive(Debug, thiserror::Error)]
#[rustfmt::skip]
pub enum FolderError {
    #[error(transparent)]
    Log(#[from] LogError),
    #[error("{}: {source}", file.display())]
    Io { file: PathBuf, source: io::Error },
    #[error("{}: is no network.json of `up --data-dir`: {why}", file.display())]
    NoNetwork { file: PathBuf, why: String },
    #[error("{}: holds another testnet: key '{key}': found {found}, the command says {asked}; give the options it was \
             begun with, or another folder", file.display())]
    Other { file: PathBuf, key: &'static str, found: String, asked: String },
    #[error("{}: was begun by dposlab {found}, and this is {}; {}", file.display(), env!("CARGO_PKG_VERSION"), OTHER_BUILD)]
    OfVersion { file: PathBuf, found: String },
    #[error("key 'rules.ledger.finality': found {found}: blocks say how high their forgers forged before, which a kept folder does not \
             hold; allowed with --data-dir is \"none\" or \"solidified\"")]
    SayMore { found: String },
    #[error("{}: is missing, though {} is there: the testnet cannot be restored without it", missing.display(), beside.display())]
    NoBeginning { missing: PathBuf, beside: PathBuf },
    #[error("{}: is missing, though {} is there: the testnet is lost; remove the folder to begin another in it",
            missing.display(), beside.display())]
    NoLog { missing: PathBuf, beside: PathBuf },
    #[error("{}: holds nothing, though {} was taken after {records} bytes of it: the testnet is lost but for that; remove the \
             folder to begin another in it", log.display(), checkpoint.display())]
    Emptied { log: PathBuf, checkpoint: PathBuf, records: u64 },
    #[error("{}: byte {at}: {why}", file.display())]
    NotUnderstood { file: PathBuf, at: u64, why: String },
    #[error("{}: byte {at}: the testnet differs: {what} written {expected}, played again {found}. If another build wrote it: {}",
            file.display(), OTHER_BUILD)]
    Differs { file: PathBuf, at: u64, what: String, expected: String, found: String },
    #[error(transparent)]
    Died(#[from] ActorDied),
}

/// A testnet that was restored from its folder.
pub struct ResumedTestnet {
    pub moment: Moment,
    pub snapshots: Snapshots,
    /// The pace that was set last, if any was.
    pub pace: Option<Pace>,
    /// Bytes of a record that was being written when the process ended.
    pub torn: u64,
    /// Messages about unusable checkpoints.
    pub told: Vec<String>,
    /// The facts about the log that its writer needs.
    pub known: LogFacts,
    /// The height of the base from which it was restored, or 0 without a base.
    pub base: Height,
}

/// An opened folder, whose testnet begins or continues.
pub struct OpenFolder {
    pub log: Log,
    /// Its settled blocks.
    pub settling: Settling,
    /// The inputs from outside.
    pub inputs: LoggedInputs,
    /// The reason why an existing index was rebuilt.
    pub made_again: Option<String>,
    /// The restored testnet, or `None` if it begins now.
    pub resumed: Option<ResumedTestnet>,
}

/// The folder of one testnet, which this process has to itself.
pub struct Folder {
    path: PathBuf,
    depth: Option<Depth>,
}

impl Folder {
    /// The folder at an existing path.
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), depth: None }
    }

    /// Sets the depth at which blocks settle. The default is [`Depth::of`] the plan.
    #[must_use]
    pub fn settling_at(self, depth: Depth) -> Self {
        Self { depth: Some(depth), ..self }
    }

    fn manifest(&self) -> PathBuf {
        self.path.join("network.json")
    }

    /// The manifest of a folder that is not a testnet yet.
    fn unfinished(&self) -> PathBuf {
        self.path.join("network.json.new")
    }

    fn log(&self) -> PathBuf {
        self.path.join("log")
    }

    /// The beginning of the testnet in it; `None` where there is none.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn session(&self) -> Result<Option<Session>, FolderError> {
        let file = self.manifest();
        let text = match files::read_text(&file, TEXT_LIMIT) {
            Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text.map_err(|source| FolderError::Io { file: file.clone(), source })?,
        };
        // Another version's manifest may have other keys.
        let written = serde_json::from_str::<ManifestVersion>(&text).map_err(|why| why.to_string());
        let own = env!("CARGO_PKG_VERSION");
        let session = match written {
            Ok(ManifestVersion { version }) if version != own => {
                return Err(FolderError::OfVersion { file, found: version });
            }
            Ok(_) => serde_json::from_str(&text).map_err(|why| why.to_string()),
            Err(why) => Err(why),
        };
        session.map(Some).map_err(|why| FolderError::NoNetwork { file, why })
    }

    /// [`Folder::open_with`] without checkpoints: all of the log is played.
    ///
    /// # Errors
    /// As [`Folder::open_with`].
    pub async fn open(
        &self,
        session: &Session,
        plan: &Plan,
        desk: &FaultDesk,
        watching: Vec<Box<dyn Observer>>,
    ) -> Result<OpenFolder, FolderError> {
        self.open_with(session, plan, desk, watching, None).await
    }

    /// Begins a testnet if the folder has none, or restores the one that has this beginning. The observers in `watching` see the
    /// replayed events. With `beside`, the replay starts from the newest checkpoint from which those observers can continue.
    ///
    /// # Errors
    /// The folder holds another testnet, is damaged, or cannot be written to.
    pub async fn open_with(
        &self,
        session: &Session,
        plan: &Plan,
        desk: &FaultDesk,
        watching: Vec<Box<dyn Observer>>,
        beside: Option<&Beside>,
    ) -> Result<OpenFolder, FolderError> {
        let Some(kept) = self.session()? else { return self.make(session, plan, desk) };
        if let Some((key, found, asked)) = kept.differs_from(session) {
            return Err(FolderError::Other { file: self.manifest(), key, found, asked });
        }
        let Some(records) = Records::open(&self.log())? else {
            return Err(FolderError::NoLog { missing: self.log(), beside: self.manifest() });
        };
        let inputs = self.inputs(plan, desk);
        let (mut settling, made_again) = self.settling(plan)?;
        let mut told = Vec::new();
        let restored = match beside {
            Some(beside) => checkpoint::newest(&self.path, plan, &inputs, beside, &mut settling, &mut told)?,
            None => None,
        };
        let begun = match restored {
            Some(restored) => restored,
            None => RestoredTestnet::nothing(records, plan),
        };
        let (log, resumed) = resume(begun, plan, desk, &inputs, watching, &mut settling, told).await?;
        Ok(OpenFolder { log, settling, inputs, made_again, resumed: Some(resumed) })
    }

    fn inputs(&self, plan: &Plan, desk: &FaultDesk) -> LoggedInputs {
        LoggedInputs::new(&self.log(), plan.tree.config(), desk)
    }

    /// Begins a new testnet. The folder does not count as a testnet until [`Folder::becomes_testnet`]: no client has seen anything of a
    /// start that is killed before, and the next start begins anew.
    fn make(&self, session: &Session, plan: &Plan, desk: &FaultDesk) -> Result<OpenFolder, FolderError> {
        let finality = plan.tree.rules().ledger.finality;
        if finality.asks_forgers() {
            let found =
                toml::Value::try_from(finality).map_or_else(|_| format!("{finality:?}"), |name| name.to_string());
            return Err(FolderError::SayMore { found });
        }
        let is_unfinished = self.unfinished().exists();
        if !is_unfinished && Records::open(&self.log())?.is_some() {
            return Err(FolderError::NoBeginning { missing: self.manifest(), beside: self.log() });
        }
        if let Some((_, beside)) = checkpoint::all(&self.path, "checkpoint").into_iter().next() {
            return Err(FolderError::NoBeginning { missing: self.manifest(), beside });
        }
        self.write_unfinished(session)?;
        segments::remove(&self.log())?;
        let log = Log::create(&self.log())?;
        // An existing index has rows of a log that is removed now.
        let (mut settling, made_again) = self.settling(plan)?;
        settling.is_played()?;
        Ok(OpenFolder { log, settling, inputs: self.inputs(plan, desk), made_again, resumed: None })
    }

    /// Makes the folder count as a testnet, once all that the testnet begins with is in the log and on the disk.
    ///
    /// # Errors
    /// The folder cannot be written to.
    pub fn becomes_testnet(&self) -> Result<(), FolderError> {
        let file = self.manifest();
        let make = || {
            fs::rename(self.unfinished(), &file)?;
            File::open(&self.path)?.sync_all()
        };
        make().map_err(|source| FolderError::Io { file: file.clone(), source })
    }

    fn settling(&self, plan: &Plan) -> Result<(Settling, Option<String>), FolderError> {
        let (index, made_again) = Index::open(&self.path.join("index"), Reader::new(&self.log()), plan.tree.config())?;
        let depth = self.depth.unwrap_or_else(|| Depth::of(plan));
        Ok((Settling::new(plan.tree.clone(), index, depth), made_again))
    }

    /// Writes the manifest under another name, which [`Folder::becomes_testnet`] changes.
    fn write_unfinished(&self, session: &Session) -> Result<(), FolderError> {
        let file = self.unfinished();
        let write = || {
            let mut opened = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&file)?;
            opened.write_all(&serde_json::to_vec_pretty(session)?)?;
            opened.sync_all()?;
            File::open(&self.path)?.sync_all()
        };
        write().map_err(|source| FolderError::Io { file: file.clone(), source })
    }

    /// Calls `take` with every block of the log, in the order in which nodes accepted them. A block may appear more than once.
    /// Returns the last recorded tip of most live nodes.
    ///
    /// # Errors
    /// The log is damaged, or `take` fails.
    pub fn blocks<E: From<FolderError>>(
        &self,
        config: &NetworkConfig,
        mut take: impl FnMut(Block) -> Result<(), E>,
    ) -> Result<Option<(Height, String)>, E> {
        let Some(mut records) = Records::open(&self.log()).map_err(FolderError::from)? else { return Ok(None) };
        let mut stood = None;
        loop {
            let (file, at) = records.place();
            let Some(record) = records.next_record().map_err(FolderError::from)? else { return Ok(stood) };
            let wrong = |why: String| FolderError::NotUnderstood { file, at, why };
            match record.split_first() {
                Some((&BLOCK, bytes)) => {
                    let block = Block::from_bytes(bytes, &config.block_context());
                    take(block.map_err(|why| wrong(why.to_string()))?)?;
                }
                Some((&TAKEN, _)) => {}
                _ => {
                    if let JsonRecord::Stood(TipRecord { height, tip, .. }) = told(&record).map_err(wrong)? {
                        stood = Some((Height(height), tip));
                    }
                }
            }
        }
    }
}

/// Returns true if a block is one of those that a testnet begins on: they come with the network, and are in no record.
fn is_of_beginning(begun_on: &Arc<Link>, height: Height, id: BlockId) -> bool {
    begun_on.ancestor(height).is_some_and(|given| given.id() == id)
}

/// The version of the program that wrote a manifest.
#[derive(Deserialize)]
struct ManifestVersion {
    version: String,
}

/// Decodes a JSON record.
fn told(record: &[u8]) -> Result<JsonRecord, String> {
    match record.split_first() {
        Some((&JSON, text)) => serde_json::from_slice(text).map_err(|why| why.to_string()),
        Some((tag, _)) => Err(format!("found a record of kind {tag}, allowed are {BLOCK}, {JSON} and {TAKEN}")),
        None => Err("found an empty record".to_owned()),
    }
}

/// Replays a log from its beginning or from a checkpoint.
async fn resume(
    begun: RestoredTestnet,
    plan: &Plan,
    desk: &FaultDesk,
    inputs: &LoggedInputs,
    watching: Vec<Box<dyn Observer>>,
    settling: &mut Settling,
    told_of: Vec<String>,
) -> Result<(Log, ResumedTestnet), FolderError> {
    let config = plan.tree.config();
    let RestoredTestnet { mut records, mut known, base, moment, snapshots } = begun;
    let mut stage = match moment {
        Some(moment) => {
            let mut stage = Stage::at(&moment, snapshots, watching);
            if let Some(lowest) = settling.settle(moment.tips(), &mut ReadOnlyLog)? {
                stage.forget_moments(lowest);
            }
            stage
        }
        None => {
            let mut stage = Stage::inline(plan, watching);
            stage.open();
            stage
        }
    };
    stage.log_in(Arc::new(inputs.clone()));
    // Blocks that clients have seen, and that no input or instant of the log follows yet.
    let mut ahead = Vec::new();
    loop {
        let (file, at) = records.place();
        let Some(record) = records.next_record()? else { break };
        let place = RecordPlace { file, at };
        let spot = records.spot().expect("a record was read");
        known.record(spot, &record);
        match record.first() {
            Some(&BLOCK) => {
                let block = Block::from_bytes(&record[1..], &config.block_context());
                let block = block.map_err(|why| place.wrong(why))?;
                settling.is_logged(block.header.height, block.id, spot);
                continue;
            }
            Some(&TAKEN) => {
                ahead
                    .push((AcceptedBlock::read(&record).ok_or_else(|| place.wrong("found no node and block"))?, place));
                continue;
            }
            _ => {}
        }
        match told(&record).map_err(|why| place.wrong(why))? {
            JsonRecord::Came(entry) => {
                ahead.clear();
                let goes_back = matches!(entry.came, Came::Revert { .. });
                place.comes_in(&mut stage, entry, inputs::place(spot), plan, desk).await?;
                if goes_back {
                    settling.went_back(stage.world().tips())?;
                    stage.forget_settled_above(settling.cut());
                }
            }
            JsonRecord::Stood(stood) => {
                ahead.clear();
                place.stands(&mut stage, &stood).await?;
                if settling.is_due(stage.world().tips())
                    && let Some(lowest) = settling.settle(stage.world().tips(), &mut ReadOnlyLog)?
                {
                    stage.forget_moments(lowest);
                    stage.let_go_of_inputs(usize::MAX);
                }
            }
            // It has no instant, so it plays nothing of what clients have seen.
            JsonRecord::Pace(text) => {
                text.parse::<Pace>().map_err(|why| place.wrong(why))?;
                known.pace = Some(text);
            }
        }
    }
    for (taken, place) in ahead {
        place.takes(&mut stage, &taken).await?;
    }
    settling.is_played()?;
    stage.let_go_of_inputs(usize::MAX);
    let (log, torn) = records.into_log()?;
    let (moment, snapshots) = stage.into_moment().await?;
    let pace = known.pace.as_deref().and_then(|text| text.parse().ok());
    Ok((log, ResumedTestnet { moment, snapshots, pace, torn, told: told_of, known, base }))
}

/// A log that is read, and not written to.
struct ReadOnlyLog;

impl BlockLog for ReadOnlyLog {
    fn record(&mut self, _: &Block) -> Result<Option<Spot>, LogError> {
        Ok(None)
    }

    fn sync(&mut self) -> Result<(), LogError> {
        Ok(())
    }
}

/// The position of a record in the log, for errors.
struct RecordPlace {
    file: PathBuf,
    at: u64,
}

impl RecordPlace {
    fn of(log: &Path, spot: Spot) -> Self {
        Self { file: segments::segment(log, spot.segment), at: spot.at }
    }

    fn wrong(&self, why: impl ToString) -> FolderError {
        FolderError::NotUnderstood { file: self.file.clone(), at: self.at, why: why.to_string() }
    }

    async fn comes_in(
        &self,
        stage: &mut Stage,
        Entry { at, delivered, came, .. }: Entry,
        place: LogPlace,
        plan: &Plan,
        desk: &FaultDesk,
    ) -> Result<(), FolderError> {
        self.reach(stage, at, delivered).await?;
        if let Some(node) = came.node().filter(|node| *node as usize >= plan.nodes.len()) {
            return Err(self.wrong(format!("node {node} is none of {}", plan.nodes.len())));
        }
        let height = |node| stage.world().tips().of(NodeId(node)).height();
        let what = came.intervention(plan.tree.config(), desk, height).map_err(|why| self.wrong(why))?;
        if let Some(what) = what {
            stage.intervene_at(what, Some(place)).await?;
        }
        Ok(())
    }

    async fn stands(&self, stage: &mut Stage, stood: &TipRecord) -> Result<(), FolderError> {
        self.reach(stage, stood.at, stood.delivered).await?;
        if stood.is_played {
            stage.play_instant().await?;
        }
        let tip = stage.world().tips().winning();
        if tip.id().to_string() == stood.tip {
            return Ok(());
        }
        let expected = format!("{} at height {}", stood.tip, stood.height);
        Err(self.differs("tip", expected, format!("{} at height {}", tip.id(), tip.height())))
    }

    /// Plays until a node has accepted a block.
    async fn takes(&self, stage: &mut Stage, taken: &AcceptedBlock) -> Result<(), FolderError> {
        if taken.node.0 as usize >= stage.world().tips().nodes() {
            return Err(self.wrong(format!("{} is none of {} nodes", taken.node, stage.world().tips().nodes())));
        }
        let last = stage.world().now() + TAKES_MAX;
        let id = taken.id.parse().map_err(|_| self.wrong(format!("found no id of a block, but '{}'", taken.id)))?;
        // A node may accept several blocks in one step.
        let has_it = |stage: &Stage| {
            let link = stage.world().tree().link(&id);
            link.is_some_and(|link| stage.world().tips().of(taken.node).descends_from(&link))
        };
        while !has_it(stage) {
            if !stage.step(last).await? {
                return Err(self.differs(&format!("block of {}", taken.node), &taken.id, "no such block"));
            }
        }
        Ok(())
    }

    async fn reach(&self, stage: &mut Stage, at: u64, delivered: u64) -> Result<(), FolderError> {
        let (at, now) = (SimTime::from_micros(at), stage.world().now());
        if at < now || at > LAST {
            return Err(self.wrong(format!("key 'at': found {}, allowed is {} on", at.micros(), now.micros())));
        }
        match stage.play_to(at, delivered).await? {
            true => Ok(()),
            false => Err(self.differs("inputs delivered", delivered, stage.world().delivered())),
        }
    }

    fn differs(&self, what: &str, expected: impl ToString, found: impl ToString) -> FolderError {
        let (file, at, what) = (self.file.clone(), self.at, what.to_owned());
        let (expected, found) = (expected.to_string(), found.to_string());
        FolderError::Differs { file, at, what, expected, found }
    }
}
