//! Checkpoints: a running testnet's moment as a file, so that a start plays only what the log holds after it.
//!
//! ```text
//!   DIR/base-5       │ "dposbas1" │ SHA-256 of the rest │ the state after the highest settled block
//!   DIR/checkpoint-7 │ "dposckp3" │ SHA-256 of the rest │ version, network, what is known of the log, what watched, moment
//! ```
//!
//! The log stays the truth. A checkpoint says at which byte of the log it was taken and what each segment came to by then, as a
//! checksum. One that is damaged, of another version, or of another log is passed over with a word, and so is one that the
//! log has lost the end of; without any, the whole log is played.
//!
//! 1. Where blocks have settled, a start begins with the base: the settled blocks are in the index, so nothing of them is read.
//!    Of the log it reads the last segment, the blocks that have not settled, and the faults that came in. The blocks are
//!    applied without being verified again. Of all else that came in it knows where it lies.
//! 2. Where nothing has settled, or the index lacks something, it reads the log up to the checkpoint's place and applies all
//!    blocks in it.
//!
//! A file appears whole or not at all, after the log up to its place is on the disk. The last two checkpoints are kept, and
//! the bases that they name.

use super::{
    BLOCK, FolderError, FolderWriter, RecordPlace, Settling, TAKEN, Taken, Told,
    inputs::{LoggedInputs, place as record_place},
    known::{Known, Spots},
    settling::Places,
    told,
};
use crate::{
    actors::NodeId,
    files::segments::{Reader, Records, Segment, Spot},
    ledger::{
        BlockTree, Link,
        base::Base,
        saved::{LoadError, Saved, Saver, saved},
    },
    protocol::{Block, BlockId, Height, crypto::sha256},
    sim::{
        Intervention, Plan, TraceDigest,
        fault::AddedFault,
        live::Keeper,
        snapshots::{CameIn, NamedSnapshots, SnapshotInfo, Snapshots},
        world::Moment,
    },
};
use std::{
    collections::{BTreeMap, VecDeque},
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
const MAGIC: &[u8; 8] = b"dposckp3";
/// The first bytes of a base.
const BASE_MAGIC: &[u8; 8] = b"dposbas1";
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

/// Everything before a place in the log, without having been played.
pub(super) struct Restored {
    pub records: Records,
    pub known: Known,
    /// The height of the base that it began with; 0 for none.
    pub base: Height,
    /// `None` at the beginning.
    pub moment: Option<Moment>,
    pub snapshots: Snapshots,
}

impl Restored {
    /// All of the log is to be played.
    pub fn nothing(records: Records, plan: &Plan) -> Self {
        let (known, snapshots) = (Known::default(), Snapshots::new(plan));
        Self { records, known, base: Height(0), moment: None, snapshots }
    }
}

/// The body of a file.
struct Body {
    version: String,
    network: [u8; 32],
    known: Known,
    numbers: Vec<u64>,
    digest: Vec<u8>,
    base: Option<BaseName>,
    /// The records of the blocks that have not settled.
    places: Spots,
    /// Blocks that the moment names and the log does not hold, by height.
    blocks: Vec<Vec<u8>>,
    snapshots: NamedSnapshots,
    moment: Vec<u8>,
}

saved!(struct Body { version, network, known, numbers, digest, base, places, blocks, snapshots, moment });

/// A file with a base.
#[derive(Clone, Copy)]
struct BaseName {
    number: u64,
    sum: [u8; 32],
}

saved!(struct BaseName { number, sum });

impl BaseName {
    fn file(&self, folder: &Path) -> PathBuf {
        folder.join(format!("base-{}", self.number))
    }
}

/// The files of a folder that are called this and a number, the newest first.
fn all(folder: &Path, called: &str) -> Vec<(u64, PathBuf)> {
    let names = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let number = |name: &str| name.strip_prefix(called)?.strip_prefix('-')?.parse().ok();
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
    inputs: &LoggedInputs,
    beside: &Beside,
    settling: &mut Settling,
    tell: &mut Vec<String>,
) -> Result<Option<Restored>, FolderError> {
    for (_, file) in all(folder, "checkpoint") {
        match read(folder, &file, plan, inputs, beside, settling, tell)? {
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
    inputs: &LoggedInputs,
    beside: &Beside,
    settling: &mut Settling,
    tell: &mut Vec<String>,
) -> Result<Result<Restored, String>, FolderError> {
    let body = match opened(folder, file, plan) {
        Ok(body) => body,
        Err(why) => return Ok(Err(why)),
    };
    if let Err(why) = (beside.go_on)(&body.numbers) {
        return Ok(Err(why));
    }
    let log = folder.join("log");
    let before = match Quick::read(folder, &log, &body, plan, inputs) {
        Ok(Some(quick)) => quick.begin(&log, &body, plan, settling)?,
        Ok(None) => None,
        Err(why) => {
            tell.push(format!("the start from {} reads the whole log: {why}", file.display()));
            None
        }
    };
    let before = match before {
        Some(before) => Some(before),
        None => Before::read(&log, &body, plan, inputs, settling)?,
    };
    let Some(before) = before else {
        return Ok(Err("the log does not come to where it was taken, or says other things before".to_owned()));
    };
    let restored = || -> Result<Moment, String> {
        for bytes in &body.blocks {
            put(&plan.tree, bytes).map_err(|why| format!("a block in it: {why}"))?;
        }
        let added: Vec<AddedFault> = before.snapshots.inputs().faults().filter_map(added_fault).collect();
        let moment = Moment::from_bytes(body.moment, plan, &added).map_err(text)?;
        if moment.tips().all().iter().any(|tip| plan.tree.link(&tip.id()).is_none()) {
            return Err("a node stands on a block that is not there".to_owned());
        }
        let mut digest = plan.loader(body.digest);
        beside.digest.go_on(&mut digest).map_err(text)?;
        Ok(moment)
    };
    let moment = match restored() {
        Ok(moment) => moment,
        Err(why) => return Ok(Err(why)),
    };
    let Before { records, known, base, snapshots, .. } = before;
    Ok(Ok(Restored { records, known, base, moment: Some(moment), snapshots }))
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
    let (_, body) = body_of(file, MAGIC)?;
    let mut from = plan.loader(body);
    let body = Body::load(&mut from).and_then(|body| from.finish().map(|()| body)).map_err(text)?;
    if body.version != env!("CARGO_PKG_VERSION") {
        return Err(format!("it is of version {}, this is {}", body.version, env!("CARGO_PKG_VERSION")));
    }
    if network(folder).map_err(|why| why.to_string())? != body.network {
        return Err("it is of another network.json".to_owned());
    }
    Ok(body)
}

/// The body of a file that begins with these bytes and is whole, and its checksum.
fn body_of(file: &Path, magic: &[u8; 8]) -> Result<([u8; 32], Vec<u8>), String> {
    let length = fs::metadata(file).map_err(|why| why.to_string())?.len();
    if length > FILE_MAX {
        return Err(format!("{length} bytes, allowed are {FILE_MAX}"));
    }
    let mut bytes = fs::read(file).map_err(|why| why.to_string())?;
    if bytes.len() < HEAD {
        return Err("it ends too early".to_owned());
    }
    let body = bytes.split_off(HEAD);
    if bytes[..MAGIC.len()] != *magic {
        return Err("it does not begin as one of this version does".to_owned());
    }
    let sum = sha256(&body);
    match bytes[MAGIC.len()..] == sum {
        true => Ok((sum, body)),
        false => Err("it is damaged: it does not match its checksum".to_owned()),
    }
}

/// All that a start from a base reads, before it changes anything.
struct Quick {
    base: Base,
    /// The rest of the log.
    records: Records,
    /// The blocks that have not settled, by height.
    blocks: Vec<(Block, Spot)>,
    snapshots: Snapshots,
}

impl Quick {
    /// `None` where the checkpoint has no base, or the log is another one.
    ///
    /// # Errors
    /// Something cannot be read.
    fn read(
        folder: &Path,
        log: &Path,
        body: &Body,
        plan: &Plan,
        inputs: &LoggedInputs,
    ) -> Result<Option<Self>, String> {
        let Some(name) = &body.base else { return Ok(None) };
        let file = name.file(folder);
        let named = |why: String| format!("{}: {why}", file.display());
        let (sum, base) = body_of(&file, BASE_MAGIC).map_err(named)?;
        if sum != name.sum {
            return Err(named("it is of another checkpoint".to_owned()));
        }
        let mut from = plan.loader(base);
        let base = Base::load(&mut from).and_then(|base| from.finish().map(|()| base)).map_err(text)?;
        let Some(records) = body.known.rest(log).map_err(|why| why.to_string())? else { return Ok(None) };
        let reader = Reader::new(log);
        let read = |spot: Spot| reader.read(spot).map_err(|why| why.to_string());
        let context = plan.tree.config().block_context();
        let block = |spot: &Spot| -> Result<(Block, Spot), String> {
            let record = read(*spot)?;
            let bytes = record.strip_prefix(&[BLOCK]).ok_or("found no block")?;
            Ok((Block::from_bytes(bytes, &context).map_err(|why| why.to_string())?, *spot))
        };
        let mut blocks = body.places.0.iter().map(block).collect::<Result<Vec<_>, _>>()?;
        // A run that went back may have written a block again, after those that stand on it.
        blocks.sort_by_key(|(block, _)| block.header.height);
        let snapshots = body.snapshots.in_log(plan, &inputs.shared()).map_err(|why| why.to_string())?;
        Ok(Some(Self { base, records, blocks, snapshots }))
    }

    /// Has the run begin there; `None` where the index lacks what has settled.
    ///
    /// # Errors
    /// The log is damaged.
    fn begin(
        self,
        log: &Path,
        body: &Body,
        plan: &Plan,
        settling: &mut Settling,
    ) -> Result<Option<Before>, FolderError> {
        let Self { base, records, blocks, snapshots } = self;
        let height = base.height;
        if !settling.begin_at(base)? {
            return Ok(None);
        }
        for (block, spot) in blocks {
            let link = put_block(&plan.tree, block).map_err(|why| RecordPlace::of(log, spot).wrong(why))?;
            settling.is_logged(link.height(), link.id(), spot);
        }
        let before = Before { known: body.known.clone(), base: height, ..Before::new(records, plan, snapshots) };
        Ok(Some(before))
    }
}

/// Puts a block of a log into the tree.
fn put(tree: &BlockTree, bytes: &[u8]) -> Result<Arc<Link>, String> {
    let block = Block::from_bytes(bytes, &tree.config().block_context()).map_err(|why| why.to_string())?;
    put_block(tree, block)
}

fn put_block(tree: &BlockTree, block: Block) -> Result<Arc<Link>, String> {
    let parent = block.header.previous.and_then(|id| tree.link(&id));
    let parent = parent.ok_or_else(|| format!("the block before {} is missing", block.id))?;
    tree.extend_again(&parent, &Arc::new(block)).map_err(|why| why.to_string())
}

/// What a log says before a place.
struct Before {
    records: Records,
    known: Known,
    /// The height of the base that it begins with; 0 for none.
    base: Height,
    snapshots: Snapshots,
    /// The height of the last block that each served node took, and at which most nodes stood last.
    took: BTreeMap<NodeId, Height>,
    stood: Height,
}

impl Before {
    fn new(records: Records, plan: &Plan, snapshots: Snapshots) -> Self {
        let (base, took, stood) = (Height(0), BTreeMap::new(), plan.tip.height());
        Self { records, known: Known::default(), base, snapshots, took, stood }
    }

    /// Reads a log up to where this is known of it; `None` if it does not come there, or says other things.
    fn read(
        log: &Path,
        Body { known: until, snapshots, .. }: &Body,
        plan: &Plan,
        inputs: &LoggedInputs,
        settling: &mut Settling,
    ) -> Result<Option<Self>, FolderError> {
        let Some(records) = Records::open(log)? else { return Ok(None) };
        let infos: Vec<SnapshotInfo> = snapshots.infos().cloned().collect();
        let mut before = Self::new(records, plan, Snapshots::new(plan).logged(inputs.shared()));
        while before.records.number_and_byte() < until.place() {
            let (file, at) = before.records.place();
            let Some(record) = before.records.next_record()? else { return Ok(None) };
            before.take(&record, &RecordPlace { file, at }, plan, inputs, &infos, settling)?;
        }
        Ok((before.known.sums == until.sums).then_some(before))
    }

    fn take(
        &mut self,
        record: &[u8],
        place: &RecordPlace,
        plan: &Plan,
        inputs: &LoggedInputs,
        infos: &[SnapshotInfo],
        settling: &mut Settling,
    ) -> Result<(), FolderError> {
        let spot = self.records.spot().expect("a record was read");
        self.known.record(spot, record);
        match record.first() {
            Some(&BLOCK) => {
                let link = put(&plan.tree, &record[1..]).map_err(|why| place.wrong(why))?;
                settling.is_logged(link.height(), link.id(), spot);
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
            Told::Pace(text) => self.known.pace = Some(text),
            Told::Came(entry) => {
                if let Some(came) = inputs.came(entry).map_err(|why| place.wrong(why))?
                    && self.snapshots.came_again(came, record_place(spot), infos)
                {
                    self.took.clear();
                }
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
    last: (Height, u64, (u32, u64)),
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
    /// The records of blocks above the cut; of those on the base where there is one.
    places: Places,
    /// The height up to which blocks had settled.
    cut: Height,
    base: Option<Arc<Base>>,
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
            next: all(folder, "checkpoint").first().map_or(1, |(number, _)| number + 1),
            base: None,
            named: VecDeque::new(),
            state: state.clone(),
            tell: Box::new(tell),
            is_told: false,
        };
        let thread = thread::spawn(move || desk.work(&waiting));
        let (plan, last) = (plan.clone(), (plan.tip.height(), 0, (0, 0)));
        Ok(Self { writer, beside, every, plan, last, jobs: Some(jobs), state, thread: Some(thread) })
    }

    fn job(&self, moment: Moment, snapshots: &Snapshots) -> Option<Job> {
        let (segment, known, places) = self.writer.stand()?;
        let snapshots = snapshots.named()?;
        let mut digest = Saver::new(&self.plan.tree);
        self.beside.digest.save(&mut digest);
        let body = Body {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            network: [0; 32],
            known,
            numbers: (self.beside.numbers)(),
            digest: digest.finish().0,
            base: None,
            places: Spots::default(),
            blocks: Vec::new(),
            snapshots,
            moment: Vec::new(),
        };
        let tree = &self.plan.tree;
        let base = tree.base();
        let places = match &base {
            Some(base) => on_top_of(base, places, tree),
            None => places,
        };
        Some(Job { moment, segment, places, cut: tree.cut(), base, body })
    }
}

/// The blocks that stand on a base. Others are on forks that all nodes have left.
fn on_top_of(base: &Base, places: Places, tree: &BlockTree) -> Places {
    let mut kept = Places::new();
    for ((height, id), spot) in places {
        let before = tree.link(&id).and_then(|link| link.block().header.previous);
        let is_on_top = before.is_some_and(|before| {
            before == base.id || kept.contains_key(&(Height(height.0.saturating_sub(1)), before))
        });
        if is_on_top {
            kept.insert((height, id), spot);
        }
    }
    kept
}

impl Keeper for Checkpoints {
    fn is_due(&self, height: Height) -> bool {
        let is_time = self.state.is_wanted.load(Ordering::Relaxed) || height.0.abs_diff(self.last.0.0) >= self.every;
        is_time && !self.state.is_busy.load(Ordering::Relaxed)
    }

    fn keep(&mut self, moment: Moment, snapshots: &Snapshots) {
        let (height, delivered) = (moment.tips().winning().height(), moment.delivered());
        let Some(job) = self.job(moment, snapshots) else { return };
        let place = job.body.known.place();
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
    /// The base that was written last.
    base: Option<(Arc<Base>, BaseName)>,
    /// The bases that the last checkpoints name.
    named: VecDeque<Option<u64>>,
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

    fn write(&mut self, Job { moment, segment, places, cut, base, body }: Job) -> io::Result<()> {
        let (bytes, links) = moment.to_bytes();
        // A block that somebody still names may be on a fork that all nodes have left.
        let is_there = |base: &Base, link: &Arc<Link>| match link.ancestor(base.height) {
            Some(at) => base.is_of(&at),
            None => self.tree.link(&link.id()).is_some(),
        };
        let is_on = |base: &Base| links.iter().all(|link| is_there(base, link));
        let base = base.filter(|base| is_on(base)).map(|base| self.written(base)).transpose()?;
        let blocks = self.not_in_log(&links, &places, self.tip.max(cut));
        let mut places: Vec<Spot> = places.into_values().collect();
        places.sort_unstable();
        let body = Body { network: self.network, base, places: Spots(places), blocks, moment: bytes, ..body };
        // The log first: a checkpoint is never ahead of it.
        segment.sync().map_err(io::Error::other)?;
        self.put_file(&format!("checkpoint-{}", self.next), MAGIC, &body)?;
        self.next += 1;
        for (_, old) in all(&self.folder, "checkpoint").into_iter().skip(KEPT) {
            fs::remove_file(old)?;
        }
        self.named.push_back(base.map(|base| base.number));
        if self.named.len() > KEPT {
            self.named.pop_front();
        }
        // Before that nobody knows which base the older checkpoint names.
        let is_unused = |number: u64| self.named.len() == KEPT && !self.named.contains(&Some(number));
        for (_, old) in all(&self.folder, "base").into_iter().filter(|(number, _)| is_unused(*number)) {
            fs::remove_file(old)?;
        }
        Ok(())
    }

    /// The file of a base, which is written if it is not the last one.
    fn written(&mut self, base: Arc<Base>) -> io::Result<BaseName> {
        if let Some((_, name)) = self.base.as_ref().filter(|(last, _)| Arc::ptr_eq(last, &base)) {
            return Ok(*name);
        }
        let number = all(&self.folder, "base").first().map_or(1, |(number, _)| number + 1);
        let sum = self.put_file(&format!("base-{number}"), BASE_MAGIC, &*base)?;
        let name = BaseName { number, sum };
        self.base = Some((base, name));
        Ok(name)
    }

    /// Writes a file, whole or not at all, and returns the checksum of its body.
    fn put_file(&self, name: &str, magic: &[u8; 8], body: &impl Saved) -> io::Result<[u8; 32]> {
        let mut out = Saver::new(&self.tree);
        body.save(&mut out);
        let (body, _) = out.finish();
        let sum = sha256(&body);
        let new = self.folder.join("checkpoint.new");
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        let written = file.write_all(magic).and_then(|()| file.write_all(&sum));
        let written = written.and_then(|()| file.write_all(&body)).and_then(|()| file.sync_all());
        if written.is_err() {
            // Room for the log.
            let _stays = fs::remove_file(&new);
        }
        written?;
        fs::rename(&new, self.folder.join(name))?;
        File::open(&self.folder)?.sync_all()?;
        Ok(sum)
    }

    /// The blocks above a height that these links need beside those of the log, by height.
    fn not_in_log(&self, links: &[Arc<Link>], places: &Places, above: Height) -> Vec<Vec<u8>> {
        let mut missing: BTreeMap<(Height, BlockId), Arc<Link>> = BTreeMap::new();
        for mut link in links.iter().cloned() {
            while link.height() > above
                && !places.contains_key(&(link.height(), link.id()))
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
