//! Writing a testnet's log.

use super::{
    AcceptedBlock, BLOCK, FolderError, JSON, JsonRecord, Sync, TipRecord,
    facts::LogFacts,
    inputs::{LoggedInputs, place},
    is_of_beginning,
    settling::{BlockLog, Places, Settling, log_error},
};
use crate::{
    actors::{Event, NodeId, SimTime},
    files::segments::{Log, LogError, Segment, Spot},
    ledger::Link,
    protocol::{Block, BlockId, Height, NetworkConfig},
    report::session::Entry,
    sim::{
        Intervention, Observer, Pace, Plan,
        live::{Journal, Settler},
        snapshots::{CameIn, InputLog, Inputs, LogPlace, Snapshots},
        tips::Tips,
        world::Moment,
    },
};
use std::{
    collections::BTreeMap,
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak, mpsc},
    thread,
    time::Duration,
};

/// Writes the log of a running testnet. It also observes the run, for its blocks. Clones write the same log.
#[derive(Clone)]
pub struct FolderWriter(Arc<Mutex<Writing>>);

struct Writing {
    log: Log,
    settling: Settling,
    sync: Sync,
    config: Arc<NetworkConfig>,
    /// The last of the blocks that come with the network.
    begun_on: Arc<Link>,
    /// The number of served nodes, from the first on, whose blocks clients see.
    served: u32,
    /// The last instant and tip of the network that it recorded.
    stood: Option<(SimTime, BlockId)>,
    known: LogFacts,
    inputs: LoggedInputs,
    /// The position of the last input.
    came_last: Option<LogPlace>,
    /// True if some records may not be on the disk yet.
    is_behind: bool,
    /// The first error. Nothing is written after it.
    broken: Option<LogError>,
    /// The end of the channel whose drop ends the thread that syncs.
    _syncing: mpsc::Sender<()>,
}

impl FolderWriter {
    /// Continues at the end of the log, or begins with a plan. Clients see the blocks of the first `served` nodes.
    pub fn new(log: Log, settling: Settling, inputs: LoggedInputs, sync: Sync, plan: &Plan, served: u32) -> Self {
        let (ended, end) = mpsc::channel();
        let writing = Arc::new(Mutex::new(Writing {
            log,
            settling,
            sync,
            config: plan.tree.config().clone(),
            begun_on: plan.tip.clone(),
            served,
            stood: None,
            known: LogFacts::default(),
            inputs,
            came_last: None,
            is_behind: false,
            broken: None,
            _syncing: ended,
        }));
        if let Sync::Within(delay) = sync {
            sync_now_and_then(Arc::downgrade(&writing), delay, end);
        }
        Self(writing)
    }

    /// Sets the facts about the log that is continued.
    #[must_use]
    pub fn after(self, known: LogFacts) -> Self {
        self.lock().known = known;
        self
    }

    /// The facts about the log, the records of its blocks that have not settled, and the segment that is written to. `None`
    /// if the log is broken.
    pub(super) fn stand(&self) -> Option<(Segment, LogFacts, Places)> {
        let writing = self.lock();
        let running = writing.log.running_segment().ok().filter(|_| writing.broken.is_none())?;
        Some((running, writing.known.clone(), writing.settling.places().clone()))
    }

    /// Writes the blocks that are on a node's chain and not in the log. The replay of the last input made them, after a kill had cut off
    /// the log. Must be called before anything else is written.
    ///
    /// # Errors
    /// The log cannot be written.
    pub fn complete(&self, tips: &Tips) -> Result<(), LogError> {
        let mut writing = self.lock();
        writing.complete(tips);
        writing.sync();
        writing.outcome()
    }

    /// Writes the history of a testnet that began elsewhere, the blocks on the chains of its nodes, and its instant.
    ///
    /// # Errors
    /// An input cannot be read, or the log cannot be written.
    pub fn begin_with(&self, snapshots: &mut Snapshots, moment: &Moment) -> Result<(), FolderError> {
        let (mut writing, tips) = (self.lock(), moment.tips());
        writing.complete(tips);
        let mut inputs = Inputs::default();
        for came in snapshots.since().iter() {
            let came = came.map_err(log_error)?;
            writing.comes_in(Entry::from(&came), height_then(&came, tips));
            inputs.push(came, writing.came_last);
        }
        *snapshots = Snapshots::after(snapshots.plan(), inputs);
        writing.stands(moment.now(), moment.delivered(), tips.winning(), true);
        writing.sync();
        Ok(writing.outcome()?)
    }

    /// The inputs in the log.
    pub fn inputs(&self) -> LoggedInputs {
        self.lock().inputs.clone()
    }

    /// Checks, once the run is over, that all of it is on the disk.
    ///
    /// # Errors
    /// The first that went wrong.
    pub fn outcome(&self) -> Result<(), LogError> {
        self.lock().outcome()
    }

    fn lock(&self) -> MutexGuard<'_, Writing> {
        // A settled block that cannot be read unwinds, and leaves whole records.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Writing {
    fn tell(&mut self, told: &JsonRecord) -> Option<Spot> {
        let mut record = vec![JSON];
        serde_json::to_writer(&mut record, told).expect("texts and numbers become JSON, and a vector takes all");
        self.append(&record)
    }

    fn comes_in(&mut self, entry: Entry, height: Option<Height>) {
        let height = height.map(|height| height.0);
        self.came_last = self.tell(&JsonRecord::Came(Entry { height, ..entry })).map(place);
    }

    /// Writes a block, unless the log is known to hold it.
    fn take(&mut self, link: &Link) {
        if !self.settling.knows(link.height(), link.id()) {
            let record = block_record(link.block(), &self.config);
            if let Some(spot) = self.append(&record) {
                self.settling.is_logged(link.height(), link.id(), spot);
            }
        }
    }

    /// Writes all blocks in memory on the chains of nodes, above the blocks that come with the network.
    fn complete(&mut self, tips: &Tips) {
        let cut = self.settling.cut();
        let mut blocks = BTreeMap::new();
        for mut link in tips.all().cloned() {
            while link.height() > cut
                && !is_of_beginning(&self.begun_on, link.height(), link.id())
                && blocks.insert((link.height(), link.id()), link.clone()).is_none()
            {
                let Some(parent) = link.parent() else { break };
                link = parent;
            }
        }
        blocks.values().for_each(|link| self.take(link));
    }

    fn append(&mut self, record: &[u8]) -> Option<Spot> {
        if self.is_broken() {
            return None;
        }
        self.is_behind = true;
        match self.log.append(record) {
            Ok(spot) => {
                self.known.record(spot, record);
                Some(spot)
            }
            Err(why) => {
                self.broken = Some(why);
                None
            }
        }
    }

    /// The first that went wrong.
    fn outcome(&mut self) -> Result<(), LogError> {
        self.settling.index().failure().or_else(|| self.broken.take()).map_or(Ok(()), Err)
    }

    fn is_broken(&self) -> bool {
        self.broken.is_some() || self.settling.index().failure().is_some()
    }

    /// Syncs the log before a client learns of the last record, with [`Sync::Always`].
    fn settle(&mut self) {
        if self.sync == Sync::Always {
            self.sync();
        }
    }

    fn sync(&mut self) {
        if self.is_behind && self.broken.is_none() {
            self.is_behind = false;
            self.broken = self.log.sync().err();
        }
    }

    fn stands(&mut self, at: SimTime, delivered: u64, tip: &Link, is_played: bool) {
        self.stood = Some((at, tip.id()));
        let (height, tip) = (tip.height().0, tip.id().to_string());
        self.tell(&JsonRecord::Stood(TipRecord { at: at.micros(), delivered, height, tip, is_played }));
        self.settle();
    }
}

/// Syncs a log until its writer is gone, without delaying a caller.
fn sync_now_and_then(writing: Weak<Mutex<Writing>>, delay: Duration, end: mpsc::Receiver<()>) {
    let next = move || -> Option<()> {
        let (Err(mpsc::RecvTimeoutError::Timeout), Some(writing)) = (end.recv_timeout(delay), writing.upgrade()) else {
            return None;
        };
        let lock = || writing.lock().unwrap_or_else(PoisonError::into_inner);
        let file = {
            let mut writing = lock();
            match mem::take(&mut writing.is_behind) && writing.broken.is_none() {
                true => writing.log.running_segment(),
                false => return Some(()),
            }
        };
        if let Err(why) = file.and_then(|file| file.sync()) {
            lock().broken.get_or_insert(why);
        }
        Some(())
    };
    thread::spawn(move || while next().is_some() {});
}

impl Journal for FolderWriter {
    fn comes_in(&mut self, at: SimTime, delivered: u64, tips: &Tips, what: &Intervention) {
        let entry = Entry { at: at.micros(), delivered, digest: None, height: None, came: what.into() };
        let mut writing = self.lock();
        writing.comes_in(entry, height_for(what, tips));
        writing.settle();
    }

    fn last_place(&self) -> Option<LogPlace> {
        self.lock().came_last
    }

    fn input_log(&self) -> Option<Arc<dyn InputLog>> {
        Some(Arc::new(self.inputs()))
    }

    fn stands(&mut self, at: SimTime, delivered: u64, tip: &Link, is_told: bool) {
        let mut writing = self.lock();
        let is_new = match writing.stood {
            Some((was_at, was)) => was != tip.id() || is_told && was_at != at,
            None => is_told || tip.height() > Height::GENESIS,
        };
        if is_new {
            writing.stands(at, delivered, tip, false);
        }
    }

    fn paced(&mut self, pace: Pace) {
        let mut writing = self.lock();
        writing.tell(&JsonRecord::Pace(pace.to_string()));
        writing.known.pace = Some(pace.to_string());
        writing.settle();
    }

    fn is_broken(&self) -> bool {
        self.lock().is_broken()
    }

    fn ended(&mut self, _: SimTime, _: u64) {
        self.lock().sync();
    }
}

/// The height of the node that receives the transactions.
fn height_for(what: &Intervention, tips: &Tips) -> Option<Height> {
    match what {
        Intervention::Submit { node, .. } => Some(tips.of(*node).height()),
        _ => None,
    }
}

/// As [`height_for`], for an earlier input, on the chain on which its node stands now.
fn height_then(came: &CameIn, tips: &Tips) -> Option<Height> {
    let Intervention::Submit { node, .. } = &came.what else { return None };
    let tip = tips.of(*node);
    let is_later = |height| tip.ancestor(height).is_none_or(|link| link.block().header.timestamp > came.at.seconds());
    let (mut low, mut high) = (Height::GENESIS.0, tip.height().0);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        match is_later(Height(middle)) {
            true => high = middle - 1,
            false => low = middle,
        }
    }
    Some(Height(low))
}

fn block_record(block: &Block, config: &NetworkConfig) -> Vec<u8> {
    let mut record = vec![BLOCK];
    record.extend(block.to_bytes(&config.milestones));
    record
}

/// The log of a running testnet.
struct Running<'w> {
    log: &'w mut Log,
    config: &'w NetworkConfig,
    known: &'w mut LogFacts,
    is_behind: &'w mut bool,
    sync: Sync,
}

impl BlockLog for Running<'_> {
    /// Appends a block of the chain on which a testnet began. Such blocks enter the log only when they settle.
    fn record(&mut self, block: &Block) -> Result<Option<Spot>, LogError> {
        *self.is_behind = true;
        let record = block_record(block, self.config);
        let spot = self.log.append(&record)?;
        self.known.record(spot, &record);
        Ok(Some(spot))
    }

    fn sync(&mut self) -> Result<(), LogError> {
        match self.sync {
            Sync::Never => Ok(()),
            Sync::Always | Sync::Within(_) => self.log.sync(),
        }
    }
}

impl Settler for FolderWriter {
    fn settle(&mut self, tips: &Tips) -> Option<Height> {
        let mut writing = self.lock();
        if !writing.settling.is_due(tips) || writing.is_broken() {
            return None;
        }
        let Writing { log, config, known, is_behind, sync, settling, broken, .. } = &mut *writing;
        let settled = settling.settle(tips, &mut Running { log, config, known, is_behind, sync: *sync });
        settled.unwrap_or_else(|why| {
            *broken = Some(why);
            None
        })
    }

    fn went_back(&mut self, tips: &Tips) -> Height {
        let mut writing = self.lock();
        match writing.settling.went_back(tips) {
            Ok(()) => writing.complete(tips),
            Err(why) => _ = writing.broken.get_or_insert(why),
        }
        writing.settling.cut()
    }
}

/// Writes the blocks that nodes apply. Must be registered before all observers that report to clients.
impl Observer for FolderWriter {
    fn observe(&mut self, _: SimTime, node: NodeId, event: &Event) {
        let Event::BlockApplied(link) = event else { return };
        let mut writing = self.lock();
        writing.take(link);
        if node.0 < writing.served {
            let taken = AcceptedBlock { node, id: link.id().to_string() };
            writing.append(&taken.record());
            writing.settle();
        }
    }
}
