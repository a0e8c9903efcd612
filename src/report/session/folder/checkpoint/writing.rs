//! Writing checkpoints of a running testnet.

use super::{
    super::{FolderWriter, facts::Spots, is_of_beginning, settling::Places},
    AFTER, BASE_MAGIC, BaseName, Beside, Body, KEPT, MAGIC, all, network,
};
use crate::{
    files::segments::{Segment, Spot},
    ledger::{
        BlockTree, Link,
        base::{Base, StartStates, StateAbove},
        codec::{Save, Saver},
        settled_chain::SettledError,
    },
    protocol::{BlockId, Height, crypto::sha256},
    sim::{Plan, live::Keeper, snapshots::Snapshots, world::Moment},
};
use std::{
    collections::{BTreeMap, VecDeque},
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    panic::{self, AssertUnwindSafe},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread::{self, JoinHandle},
};

/// Takes checkpoints of a running testnet.
pub struct Checkpoints {
    writer: FolderWriter,
    beside: Beside,
    every: u32,
    plan: Plan,
    /// The last checkpoint: the height of the winning tip, the number of delivered inputs, and the position in the log.
    last: (Height, u64, (u32, u64)),
    jobs: Option<mpsc::Sender<Job>>,
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
}

struct State {
    /// True if enough time has passed since the last one.
    is_wanted: AtomicBool,
    /// True while a checkpoint is being written.
    is_busy: AtomicBool,
}

/// A checkpoint to be written.
struct Job {
    moment: Moment,
    segment: Segment,
    /// The records of the blocks above the cut. With a base, only of the blocks on top of it.
    places: Places,
    /// The height up to which blocks had settled.
    cut: Height,
    base: Option<Arc<Base>>,
    /// The block whose state is written with that of the base.
    ahead: Option<Arc<Link>>,
    body: Body,
}

impl Checkpoints {
    /// Takes a checkpoint of a testnet that starts now, then one after `every` blocks or five seconds. `tell` receives a failed write.
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
        // The first checkpoint follows the start at once: the next start, however soon, need not play the same blocks again.
        let state = Arc::new(State { is_wanted: AtomicBool::new(true), is_busy: AtomicBool::new(false) });
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
            Some(base) => on_top_of(base, places, tree, &self.plan.tip),
            None => places,
        };
        let ahead = base.as_ref().and_then(|_| tree.settles_at(moment.tips().all(), 0));
        Some(Job { moment, segment, places, cut: tree.cut(), base, ahead, body })
    }
}

/// The blocks on top of a base or of the blocks that the testnet began on. Other blocks are on forks that all nodes have left.
fn on_top_of(base: &Base, places: Places, tree: &BlockTree, begun_on: &Arc<Link>) -> Places {
    let mut kept = Places::new();
    // Else the run has left the chain that it began on, below the base.
    let begins_there = is_of_beginning(begun_on, base.height, base.id);
    for ((height, id), spot) in places {
        let before = tree.link(&id).and_then(|link| link.block().header.previous);
        let is_on_top = before.is_some_and(|before| {
            let below = Height(height.0.saturating_sub(1));
            let is_given = begins_there && is_of_beginning(begun_on, below, before);
            before == base.id || kept.contains_key(&(below, before)) || is_given
        });
        if is_on_top {
            kept.insert((height, id), spot);
        }
    }
    kept
}

/// Ends its thread first, which has the index of the folder open.
impl Drop for Checkpoints {
    fn drop(&mut self) {
        self.end();
    }
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
            // A panic in `tell` costs later checkpoints only.
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
                    let (cut, tree) = (job.cut, self.tree.clone());
                    if let Err(why) = caught(|| self.write(job), || tree.cut() < cut)
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

    fn write(&mut self, Job { moment, segment, places, cut, base, ahead, body }: Job) -> io::Result<()> {
        let (bytes, links) = moment.to_bytes();
        // A block that is still referenced may be on a fork that all nodes have left.
        let is_there = |base: &Base, link: &Arc<Link>| match link.ancestor(base.height) {
            Some(at) => base.is_of(&at),
            None => self.tree.link(&link.id()).is_some(),
        };
        let is_on = |base: &Base| links.iter().all(|link| is_there(base, link));
        let base = base.filter(|base| is_on(base));
        let base = base.map(|base| self.written(base, ahead.as_ref(), &places)).transpose()?;
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
        // Until then, the base of the older checkpoint is unknown.
        let is_unused = |number: u64| self.named.len() == KEPT && !self.named.contains(&Some(number));
        for (_, old) in all(&self.folder, "base").into_iter().filter(|(number, _)| is_unused(*number)) {
            fs::remove_file(old)?;
        }
        Ok(())
    }

    /// Writes the file of a base, unless it is the base that was written last.
    fn written(&mut self, base: Arc<Base>, ahead: Option<&Arc<Link>>, places: &Places) -> io::Result<BaseName> {
        if let Some((_, name)) = self.base.as_ref().filter(|(last, _)| Arc::ptr_eq(last, &base)) {
            return Ok(*name);
        }
        let number = all(&self.folder, "base").first().map_or(1, |(number, _)| number + 1);
        let ahead = ahead.map(|link| StateAbove::of(link, &self.tree, places.keys().map(|(_, id)| *id)));
        let states = StartStates { base: (*base).clone(), ahead };
        let sum = self.put_file(&format!("base-{number}"), BASE_MAGIC, &states)?;
        let name = BaseName { number, sum };
        self.base = Some((base, name));
        Ok(name)
    }

    /// Writes a file, whole or not at all, and returns the checksum of its body.
    fn put_file(&self, name: &str, magic: &[u8; 8], body: &impl Save) -> io::Result<[u8; 32]> {
        let mut out = Saver::new(&self.tree);
        body.save(&mut out);
        let (body, _) = out.finish();
        let sum = sha256(&body);
        let new = self.folder.join("checkpoint.new");
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        let written = file.write_all(magic).and_then(|()| file.write_all(&sum));
        let written = written.and_then(|()| file.write_all(&body)).and_then(|()| file.sync_all());
        if written.is_err() {
            // The log needs the room on the disk.
            let _stays = fs::remove_file(&new);
        }
        written?;
        fs::rename(&new, self.folder.join(name))?;
        File::open(&self.folder)?.sync_all()?;
        Ok(sum)
    }

    /// The blocks above a height that these links need and that the log does not hold, by height.
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

/// Catches a panic while a checkpoint is written, so that the next one can be written. A settled block that cannot be read is no error if
/// the run has meanwhile gone back to before the moment of the checkpoint.
fn caught(write: impl FnOnce() -> io::Result<()>, went_back: impl FnOnce() -> bool) -> io::Result<()> {
    let written = panic::catch_unwind(AssertUnwindSafe(write));
    written.unwrap_or_else(|ended| match ended.downcast::<SettledError>() {
        Ok(_) if went_back() => Ok(()),
        Ok(unread) => Err(io::Error::other(*unread)),
        Err(_) => Err(io::Error::other("its writer panicked")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unread() -> io::Result<()> {
        SettledError { file: PathBuf::from("blocks"), source: io::Error::other("gone") }.ends_the_run()
    }

    #[test]
    fn a_checkpoint_that_unwinds_is_one_that_is_not_written() {
        let why = |written: io::Result<()>| written.expect_err("it is not written").to_string();
        assert_eq!(why(caught(unread, || false)), "blocks: gone");
        assert_eq!(why(caught(|| panic!("a mistake"), || true)), "its writer panicked");
        assert_eq!(why(caught(|| Err(io::Error::other("full")), || true)), "full");
        assert!(caught(unread, || true).is_ok() && caught(|| Ok(()), || false).is_ok());
    }
}
