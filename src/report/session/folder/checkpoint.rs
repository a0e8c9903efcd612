//! Checkpoints: a running testnet's moment as a file, so that a start plays only what the log holds after it.
//!
//! ```text
//!   DIR/checkpoint-7 │ "dposckp1" │ SHA-256 of the rest │ version, network, place in the log, what watched, moment
//! ```
//!
//! The log stays the truth. A checkpoint says at which byte of the log it was taken and what all records before came to, as one
//! checksum. One that is damaged, of another version, or of another log is passed over with a word, and so is one that the
//! log has lost the end of; without any, the whole log is played. The blocks before it are read from the log and applied
//! without being verified again.
//!
//! A file appears whole or not at all, after the log up to its place is on the disk. The last two are kept.

use super::{BLOCK, FolderError, FolderWriter, RecordPlace, Settling, TAKEN, Taken, Told, told};
use crate::{
    actors::{NodeId, SimTime},
    files::segments::{Records, Segment},
    ledger::{
        BlockTree, Link,
        saved::{LoadError, Saved, Saver, saved},
    },
    protocol::{Block, BlockId, Height, crypto::sha256},
    scenario::FaultDesk,
    sim::{
        Intervention, Pace, Plan, TraceDigest,
        fault::AddedFault,
        live::Keeper,
        snapshots::{CameIn, SnapshotInfo, Snapshots},
        world::Moment,
    },
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread::{self, JoinHandle},
    time::Duration,
};

/// The first bytes of a checkpoint.
const MAGIC: &[u8; 8] = b"dposckp1";
/// Bytes before the body.
const HEAD: usize = MAGIC.len() + 32;
/// Bytes of a file that is read.
const FILE_MAX: u64 = 4 << 30;
/// Checkpoints that are kept.
const KEPT: usize = 2;
/// Real time after which a checkpoint is due, whatever the blocks.
const AFTER: Duration = Duration::from_secs(10);
/// Blocks after which one is due, where nothing else is said.
pub const EVERY: u32 = 20_000;

/// What watches a testnet and cannot be made again from its moment.
pub struct Beside {
    pub digest: TraceDigest,
    /// The numbers of the last events of the nodes that are served.
    pub numbers: Box<dyn Fn() -> Vec<u64> + Send>,
    /// Goes on from these numbers, or says why that would leave something out.
    pub go_on: GoOn,
}

/// Goes on from the numbers of the last events, or says why that would leave something out.
type GoOn = Box<dyn Fn(&[u64]) -> Result<(), String> + Send>;

/// A place in a log, and what all records before it come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogPlace {
    pub segment: u32,
    pub byte: u64,
    pub sum: u32,
}

saved!(struct LogPlace { segment, byte, sum });

impl LogPlace {
    /// The checksum of records, the last of which is this one.
    pub fn sum(before: u32, record: &[u8]) -> u32 {
        let mut hasher = crc32fast::Hasher::new_with_initial(before);
        hasher.update(&(record.len() as u32).to_le_bytes());
        hasher.update(record);
        hasher.finalize()
    }
}

/// Blocks of which it is known whether they are in a log: those of the greatest heights.
#[derive(Clone, Debug, Default)]
pub struct Known {
    blocks: BTreeSet<(Height, BlockId)>,
    /// All blocks below this height are taken to be there.
    all_below: Height,
}

impl Known {
    /// One that a node takes much later than the others is in the log twice.
    const MAX: usize = 4_096;

    /// A block is there now. Returns whether it was not known to be.
    pub fn insert(&mut self, height: Height, id: BlockId) -> bool {
        let is_new = self.blocks.insert((height, id));
        if self.blocks.len() > Self::MAX
            && let Some((height, _)) = self.blocks.pop_first()
        {
            self.all_below = self.all_below.max(height.next());
        }
        is_new
    }

    fn has(&self, link: &Link) -> bool {
        link.height() < self.all_below || self.blocks.contains(&(link.height(), link.id()))
    }
}

/// Everything before a place in the log, without having been played.
pub(super) struct Restored {
    pub records: Records,
    pub reached: LogPlace,
    pub known: Known,
    /// `None` at the beginning.
    pub moment: Option<Moment>,
    pub snapshots: Snapshots,
    pub history: Vec<CameIn>,
    pub pace: Option<Pace>,
}

impl Restored {
    /// All of the log is to be played.
    pub fn nothing(records: Records, plan: &Plan) -> Self {
        let (reached, known, snapshots) = (LogPlace::default(), Known::default(), Snapshots::new(plan));
        Self { records, reached, known, moment: None, snapshots, history: Vec::new(), pace: None }
    }
}

/// The body of a file.
struct Body {
    version: String,
    network: [u8; 32],
    place: LogPlace,
    numbers: Vec<u64>,
    digest: Vec<u8>,
    /// Blocks that the moment names and the log does not hold, by height.
    blocks: Vec<Vec<u8>>,
    snapshots: Vec<SnapshotInfo>,
    moment: Vec<u8>,
}

saved!(struct Body { version, network, place, numbers, digest, blocks, snapshots, moment });

/// The checkpoints of a folder by their numbers, the newest first.
fn all(folder: &Path) -> Vec<(u64, PathBuf)> {
    let names = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let number = |name: &str| name.strip_prefix("checkpoint-")?.parse().ok();
    let mut all: Vec<(u64, PathBuf)> =
        names.filter_map(|name| Some((number(name.to_str()?)?, folder.join(&name)))).collect();
    all.sort_unstable_by(|one, other| other.cmp(one));
    all
}

/// How the testnet of a folder began.
fn network(folder: &Path) -> io::Result<[u8; 32]> {
    fs::read(folder.join("network.json")).map(|bytes| sha256(&bytes))
}

/// The newest checkpoint that is as it should be. What is wrong with those before it is told.
///
/// # Errors
/// The log is damaged.
pub(super) fn newest(
    folder: &Path,
    plan: &Plan,
    desk: &FaultDesk,
    beside: &Beside,
    settling: &mut Settling,
    tell: &mut Vec<String>,
) -> Result<Option<Restored>, FolderError> {
    for (_, file) in all(folder) {
        match read(folder, &file, plan, desk, beside, settling)? {
            Ok(restored) => return Ok(Some(restored)),
            Err(why) => tell.push(format!("{} is passed over: {why}", file.display())),
        }
    }
    Ok(None)
}

/// Reads a checkpoint, and the log up to its place.
fn read(
    folder: &Path,
    file: &Path,
    plan: &Plan,
    desk: &FaultDesk,
    beside: &Beside,
    settling: &mut Settling,
) -> Result<Result<Restored, String>, FolderError> {
    let body = match opened(folder, file, plan) {
        Ok(body) => body,
        Err(why) => return Ok(Err(why)),
    };
    let Some(mut before) = Before::read(&folder.join("log"), body.place, plan, desk, &body.snapshots, settling)? else {
        return Ok(Err("the log does not come to where it was taken, or says other things before".to_owned()));
    };
    let restored = || -> Result<Moment, String> {
        for bytes in &body.blocks {
            put(&plan.tree, bytes).map_err(|why| format!("a block in it: {why}"))?;
        }
        let added: Vec<AddedFault> = before.snapshots.inputs().into_iter().filter_map(added_fault).collect();
        let moment = Moment::from_bytes(body.moment, plan, &added).map_err(text)?;
        if moment.tips().all().iter().any(|tip| plan.tree.link(&tip.id()).is_none()) {
            return Err("a node stands on a block that is not there".to_owned());
        }
        (beside.go_on)(&body.numbers)?;
        let mut digest = plan.loader(body.digest);
        beside.digest.go_on(&mut digest).map_err(text)?;
        Ok(moment)
    };
    let moment = match restored() {
        Ok(moment) => moment,
        Err(why) => return Ok(Err(why)),
    };
    let history = std::mem::take(&mut before.history);
    let Before { records, place, known, snapshots, pace, .. } = before;
    Ok(Ok(Restored { records, reached: place, known, moment: Some(moment), snapshots, history, pace }))
}

fn text(why: LoadError) -> String {
    why.to_string()
}

fn added_fault(came: &CameIn) -> Option<AddedFault> {
    match &came.what {
        Intervention::AddFault(added) | Intervention::Restart(added) => Some((**added).clone()),
        _ => None,
    }
}

/// The body of a file that is whole, and of this version and network.
fn opened(folder: &Path, file: &Path, plan: &Plan) -> Result<Body, String> {
    let length = fs::metadata(file).map_err(|why| why.to_string())?.len();
    if length > FILE_MAX {
        return Err(format!("{length} bytes, allowed are {FILE_MAX}"));
    }
    let bytes = fs::read(file).map_err(|why| why.to_string())?;
    let (Some(magic), Some(sum), Some(body)) =
        (bytes.get(..MAGIC.len()), bytes.get(MAGIC.len()..HEAD), bytes.get(HEAD..))
    else {
        return Err("it ends too early".to_owned());
    };
    if magic != MAGIC {
        return Err("it does not begin as a checkpoint of dposlab does".to_owned());
    }
    if sum != sha256(body) {
        return Err("it is damaged: it does not match its checksum".to_owned());
    }
    let mut from = plan.loader(body.to_vec());
    let body = Body::load(&mut from).and_then(|body| from.finish().map(|()| body)).map_err(text)?;
    if body.version != env!("CARGO_PKG_VERSION") {
        return Err(format!("it is of version {}, this is {}", body.version, env!("CARGO_PKG_VERSION")));
    }
    if network(folder).map_err(|why| why.to_string())? != body.network {
        return Err("it is of another network.json".to_owned());
    }
    Ok(body)
}

/// Puts a block of a log into the tree.
fn put(tree: &BlockTree, bytes: &[u8]) -> Result<Arc<Link>, String> {
    let block = Block::from_bytes(bytes, &tree.config().block_context()).map_err(|why| why.to_string())?;
    let parent = block.header.previous.and_then(|id| tree.link(&id));
    let parent = parent.ok_or_else(|| format!("the block before {} is missing", block.id))?;
    tree.extend_again(&parent, &Arc::new(block)).map_err(|why| why.to_string())
}

/// What a log says before a place.
struct Before {
    records: Records,
    place: LogPlace,
    known: Known,
    snapshots: Snapshots,
    history: Vec<CameIn>,
    pace: Option<Pace>,
    /// The height of the last block that each served node took, and at which most nodes stood last.
    took: BTreeMap<NodeId, Height>,
    stood: Height,
    /// A block stands on another that the log does not hold.
    has_gap: bool,
}

impl Before {
    /// Reads up to a place; `None` if the log does not come there, or says other things before.
    fn read(
        log: &Path,
        until: LogPlace,
        plan: &Plan,
        desk: &FaultDesk,
        infos: &[SnapshotInfo],
        settling: &mut Settling,
    ) -> Result<Option<Self>, FolderError> {
        let Some(records) = Records::open(log)? else { return Ok(None) };
        let mut before = Self {
            records,
            place: LogPlace::default(),
            known: Known::default(),
            snapshots: Snapshots::new(plan),
            history: Vec::new(),
            pace: None,
            took: BTreeMap::new(),
            stood: plan.tip.height(),
            has_gap: false,
        };
        loop {
            let (segment, byte) = before.records.number_and_byte();
            before.place = LogPlace { segment, byte, ..before.place };
            if (segment, byte) >= (until.segment, until.byte) {
                return Ok((before.place == until && !before.has_gap).then_some(before));
            }
            let (file, at) = before.records.place();
            let Some(record) = before.records.next_record()? else { return Ok(None) };
            before.place.sum = LogPlace::sum(before.place.sum, &record);
            before.take(&record, &RecordPlace { file, at }, plan, desk, infos, settling)?;
        }
    }

    fn take(
        &mut self,
        record: &[u8],
        place: &RecordPlace,
        plan: &Plan,
        desk: &FaultDesk,
        infos: &[SnapshotInfo],
        settling: &mut Settling,
    ) -> Result<(), FolderError> {
        match record.first() {
            Some(&BLOCK) => {
                let link = put(&plan.tree, &record[1..]).map_err(|why| place.wrong(why))?;
                let spot = self.records.spot().expect("a record was read");
                settling.is_logged(link.height(), link.id(), spot);
                self.known.insert(link.height(), link.id());
                return Ok(());
            }
            Some(&TAKEN) => {
                let Taken { node, id } = Taken::read(record).ok_or_else(|| place.wrong("found no node and block"))?;
                let link = id.parse().ok().and_then(|id| plan.tree.link(&id));
                self.took.extend(link.map(|link| (node, link.height())));
                return Ok(());
            }
            _ => {}
        }
        match told(record).map_err(|why| place.wrong(why))? {
            Told::Stood(stood) => self.stood = Height(stood.height),
            Told::Pace(text) => self.pace = Some(text.parse().map_err(|why| place.wrong(why))?),
            Told::Came(entry) => {
                let (at, delivered) = (SimTime::from_micros(entry.at), entry.delivered);
                let height = |node| self.took.get(&NodeId(node)).copied().unwrap_or(self.stood);
                let what = entry.came.intervention(plan.tree.config(), desk, height).map_err(|why| place.wrong(why))?;
                let Some(what) = what else { return Ok(()) };
                let came = CameIn { at, delivered, what };
                if self.snapshots.came_again(&came, infos) {
                    self.took.clear();
                }
                self.history.push(came);
            }
        }
        Ok(())
    }
}

/// Takes checkpoints of a testnet while it goes on.
pub struct Checkpoints {
    writer: FolderWriter,
    beside: Beside,
    every: u32,
    plan: Plan,
    /// At which height of the winning tip the last one was taken, and at which place of the log.
    last: (Height, u64, LogPlace),
    jobs: Option<mpsc::Sender<Job>>,
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct State {
    /// Enough time has gone by.
    is_wanted: AtomicBool,
    /// One is being written.
    is_busy: AtomicBool,
}

/// A checkpoint to be written.
struct Job {
    moment: Moment,
    segment: Segment,
    known: Known,
    body: Body,
}

impl Checkpoints {
    /// Takes one after so many blocks or ten seconds, of a testnet that begins or goes on now. `tell` hears when one cannot
    /// be written.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn new(
        folder: &Path,
        plan: &Plan,
        writer: FolderWriter,
        beside: Beside,
        every: u32,
        tell: impl FnMut(&str) + Send + 'static,
    ) -> io::Result<Self> {
        let (jobs, waiting) = mpsc::channel();
        let state = Arc::new(State::default());
        let desk = WritingDesk {
            folder: folder.to_owned(),
            network: network(folder)?,
            tree: plan.tree.clone(),
            tip: plan.tip.height(),
            next: all(folder).first().map_or(1, |(number, _)| number + 1),
            state: state.clone(),
            tell: Box::new(tell),
            is_told: false,
        };
        let thread = thread::spawn(move || desk.work(&waiting));
        let (plan, last) = (plan.clone(), (plan.tip.height(), 0, LogPlace::default()));
        Ok(Self { writer, beside, every, plan, last, jobs: Some(jobs), state, thread: Some(thread) })
    }

    fn job(&self, moment: Moment, snapshots: &Snapshots) -> Option<(Job, LogPlace)> {
        let (segment, place, known) = self.writer.stand()?;
        let mut digest = Saver::new(&self.plan.tree);
        self.beside.digest.save(&mut digest);
        let body = Body {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            network: [0; 32],
            place,
            numbers: (self.beside.numbers)(),
            digest: digest.finish().0,
            blocks: Vec::new(),
            snapshots: snapshots.infos().cloned().collect(),
            moment: Vec::new(),
        };
        Some((Job { moment, segment, known, body }, place))
    }
}

impl Keeper for Checkpoints {
    fn is_due(&self, height: Height) -> bool {
        let is_time = self.state.is_wanted.load(Ordering::Relaxed) || height.0.abs_diff(self.last.0.0) >= self.every;
        is_time && !self.state.is_busy.load(Ordering::Relaxed)
    }

    fn keep(&mut self, moment: Moment, snapshots: &Snapshots) {
        let (height, delivered) = (moment.tips().winning().height(), moment.delivered());
        let Some((job, place)) = self.job(moment, snapshots) else { return };
        self.state.is_wanted.store(false, Ordering::Relaxed);
        let is_same = (self.last.1, self.last.2) == (delivered, place);
        self.last = (height, delivered, place);
        if let Some(jobs) = self.jobs.as_ref().filter(|_| !is_same) {
            self.state.is_busy.store(true, Ordering::Relaxed);
            // A thread that has ended writes none.
            let _ended = jobs.send(job);
        }
    }

    fn end(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // What it did wrong costs the checkpoint only.
            let _panicked = thread.join();
        }
    }
}

/// Writes checkpoints, on a thread of its own.
struct WritingDesk {
    folder: PathBuf,
    network: [u8; 32],
    tree: Arc<BlockTree>,
    /// The height at which the run began: the blocks up to there come with the network.
    tip: Height,
    next: u64,
    state: Arc<State>,
    tell: Box<dyn FnMut(&str) + Send>,
    is_told: bool,
}

impl WritingDesk {
    fn work(mut self, jobs: &mpsc::Receiver<Job>) {
        loop {
            match jobs.recv_timeout(AFTER) {
                Ok(job) => {
                    if let Err(why) = self.write(job)
                        && !self.is_told
                    {
                        self.is_told = true;
                        let folder = self.folder.display().to_string();
                        (self.tell)(&format!(
                            "{folder}: no checkpoint can be written: {why}; the next start takes longer"
                        ));
                    }
                    self.state.is_busy.store(false, Ordering::Relaxed);
                }
                Err(mpsc::RecvTimeoutError::Timeout) => self.state.is_wanted.store(true, Ordering::Relaxed),
                Err(mpsc::RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn write(&mut self, Job { moment, segment, known, body }: Job) -> io::Result<()> {
        let (bytes, links) = moment.to_bytes();
        let body = Body { network: self.network, blocks: self.not_in_log(&links, &known), moment: bytes, ..body };
        let mut out = Saver::new(&self.tree);
        body.save(&mut out);
        let (body, _) = out.finish();
        // The log first: a checkpoint is never ahead of it.
        segment.sync().map_err(io::Error::other)?;
        let new = self.folder.join("checkpoint.new");
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        let written = file.write_all(MAGIC).and_then(|()| file.write_all(&sha256(&body)));
        let written = written.and_then(|()| file.write_all(&body)).and_then(|()| file.sync_all());
        if written.is_err() {
            // Room for the log.
            let _stays = fs::remove_file(&new);
        }
        written?;
        fs::rename(&new, self.folder.join(format!("checkpoint-{}", self.next)))?;
        File::open(&self.folder)?.sync_all()?;
        self.next += 1;
        for (_, old) in all(&self.folder).into_iter().skip(KEPT) {
            fs::remove_file(old)?;
        }
        Ok(())
    }

    /// The blocks that these links need beside those of the log, by height.
    fn not_in_log(&self, links: &[Arc<Link>], known: &Known) -> Vec<Vec<u8>> {
        let mut missing: BTreeMap<(Height, BlockId), Arc<Link>> = BTreeMap::new();
        for mut link in links.iter().cloned() {
            while link.height() > self.tip
                && !known.has(&link)
                && missing.insert((link.height(), link.id()), link.clone()).is_none()
            {
                let Some(parent) = link.parent() else { break };
                link = parent;
            }
        }
        let milestones = &self.tree.config().milestones;
        missing.values().map(|link| link.block().to_bytes(milestones)).collect()
    }
}
