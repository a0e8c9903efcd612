//! How a peer catches up: when it looks for blocks, whom it asks for which, and what it does with what comes.
//! Source: consensus.md 3.2, 3.5, 3.6 and 6.

use super::{
    Known, Report,
    limits::Endpoint,
    node::{PeerModel, chains, wake_up_time},
    step::{Left, Step},
};
use crate::{
    actors::{Event, Message, NodeId, RollbackCause, SimTime, message::Inquiry},
    check::conduct,
    ledger::Link,
    protocol::{Block, Height},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

/// Blocks in a chunk.
const CHUNK: u32 = 400;
/// Chunks at once.
const PARALLEL: u32 = 10;
/// Downloads in vain after which a wake-up gives up.
const VAIN: u32 = 5;
/// A health check takes no longer: peers are asked for peers, new ones where they stand, all are pinged and verified.
const HEALTH_TIME: Duration = Duration::from_secs(150);

/// Where a peer is between its chain and the network's.
pub(super) struct Sync {
    pub phase: Phase,
    chunk: u32,
    vain: u32,
    halted: u32,
    /// Some chunk was kept for later, so that fewer may be asked for.
    kept: bool,
    /// How often it downloaded in vain is known.
    pub counted: bool,
    /// So is the size of its chunks.
    sized: bool,
    /// Questions for blocks that are open while the phase is not known, and when time is up for them.
    open: BTreeMap<Inquiry, (NodeId, SimTime)>,
    /// Questions that are held back and nobody waits for any more.
    stale: usize,
    /// When the model last did not know the phase, or a question for blocks was sent since.
    lost: SimTime,
}

#[derive(PartialEq)]
pub(super) enum Phase {
    /// The model does not know.
    Unknown,
    /// Looks for peers, to catch up for the first time.
    Starting,
    Idle,
    Downloading(Download),
    /// Waits for a health check.
    Halted,
    /// Has rolled back and pings its peers.
    Recovering,
}

/// Chunks on their way.
#[derive(PartialEq)]
pub(super) struct Download {
    above: Height,
    /// Peers on this chain when it began.
    friendly: BTreeSet<NodeId>,
    chunks: Vec<Chunk>,
}

#[derive(PartialEq)]
struct Chunk {
    first: Option<NodeId>,
    /// Peers asked so far.
    asked: BTreeSet<NodeId>,
    /// The question that is open; without a number while the limits hold it back.
    open: Option<(Option<(NodeId, Inquiry)>, SimTime)>,
    /// Whom a question that is held back may be for.
    possible: BTreeSet<NodeId>,
    came: Option<Vec<Arc<Block>>>,
    over: bool,
}

impl Sync {
    pub(super) fn new(phase: Phase) -> Self {
        Self {
            phase,
            chunk: CHUNK,
            vain: 0,
            halted: 0,
            kept: false,
            counted: true,
            sized: true,
            open: BTreeMap::new(),
            stale: 0,
            lost: SimTime::default(),
        }
    }

    pub(super) fn makes_headway(&mut self) {
        (self.vain, self.halted) = (0, 0);
        self.counted = true;
    }

    /// All that is under way is void.
    pub(super) fn void(&mut self) {
        if let Phase::Downloading(download) = &self.phase {
            self.stale += download.chunks.iter().filter(|chunk| matches!(chunk.open, Some((None, _)))).count();
        }
        self.counted &= self.phase != Phase::Unknown;
        self.phase = Phase::Recovering;
        self.open.clear();
        self.kept = false;
    }
}

impl PeerModel {
    /// Which of a peer's friends may be over the limit of questions for blocks.
    fn full_of(&self, now: SimTime, friendly: &BTreeSet<NodeId>) -> BTreeSet<NodeId> {
        friendly.iter().copied().filter(|peer| self.calls.may_be_full(now, *peer, Endpoint::Blocks)).collect()
    }

    /// From now on the model does not know what is being downloaded.
    pub(super) fn lose_track(&mut self, report: &mut Report, now: SimTime) {
        report.lose_track("behaviour: the model does not know what is downloaded");
        if let Phase::Downloading(download) = &self.sync.phase {
            for (asked, until) in download.chunks.iter().filter_map(|chunk| chunk.open) {
                if let Some((node, inquiry)) = asked {
                    self.sync.open.insert(inquiry, (node, until));
                }
            }
        }
        self.sync.phase = Phase::Unknown;
        (self.sync.counted, self.sync.sized) = (false, false);
        self.sync.lost = now;
    }

    pub(super) fn rests(&mut self) {
        self.sync.phase = Phase::Idle;
        self.started = Some(true);
    }

    /// The timer that runs from the last accepted block is over, or was over before.
    pub(super) fn looks_for_blocks(&mut self, known: &Known, report: &mut Report, step: &Step, left: &mut Left<'_>) {
        if self.sync.phase == Phase::Starting {
            // The timer runs only once it has caught up, or given up.
            self.rests();
        }
        let due = self.last_accepted + wake_up_time(known);
        if step.local < due {
            self.looks_at = Some(due);
            return;
        }
        report.judge(&conduct::WOKEN, true, String::new);
        self.looks_at = Some(step.local + wake_up_time(known));
        self.wakes_up(known, report, step, left);
    }

    /// Sees that the chain is fresh, unless that is being done.
    pub(super) fn wakes_up(&mut self, known: &Known, report: &mut Report, step: &Step, left: &mut Left<'_>) {
        if self.sync.phase == Phase::Idle {
            self.sync_step(known, report, step, left);
        }
    }

    /// What comes next: nothing, a download, or a health check.
    pub(super) fn sync_step(&mut self, known: &Known, report: &mut Report, step: &Step, left: &mut Left<'_>) {
        let age = step.local.seconds().0.saturating_sub(self.tip.block().header.timestamp.0);
        let fresh = self.peers.len() == 0 || age < 3 * known.tree.slots().blocktime();
        if !self.sync.counted && !fresh {
            return self.lose_track(report, step.local);
        }
        loop {
            if self.sync.vain > VAIN {
                self.sync.vain = 0;
                self.sync.halted += 1;
                if self.sync.halted < known.rules().node.wake_ups_to_health_check {
                    return self.rests();
                }
                self.sync.halted = 0;
                self.sync.phase = Phase::Halted;
                self.doubts_by = Some(step.local + HEALTH_TIME);
                report.judge(&conduct::DOUBTED, true, String::new);
                return;
            }
            if fresh {
                self.sync.makes_headway();
                return self.rests();
            }
            let friendly = self.peers.friendly();
            if friendly.is_empty() {
                self.sync.chunk = self.sync.chunk.div_ceil(10);
                self.sync.kept = false;
                self.sync.vain += 1;
                continue;
            }
            return self.downloads(known, report, step, left, friendly);
        }
    }

    fn downloads(
        &mut self,
        known: &Known,
        report: &mut Report,
        step: &Step,
        left: &mut Left<'_>,
        friendly: BTreeSet<NodeId>,
    ) {
        if !self.sync.sized {
            let sizes = left.sent().filter_map(|(_, message)| match message {
                Message::BlocksRequest { limit, headers_only: false, .. } => Some(*limit),
                _ => None,
            });
            let Some(size) = sizes.max() else { return self.lose_track(report, step.local) };
            (self.sync.chunk, self.sync.sized) = (size, true);
        }
        let (above, size) = (self.tip.height(), self.sync.chunk);
        let missing = self.peers.network_height().0.saturating_sub(above.0);
        let count = (missing.div_ceil(size).clamp(1, PARALLEL) as usize).min(friendly.len());
        let until = step.local + answer_time(known);
        let mut chunks = Vec::new();
        let mut firsts = BTreeSet::new();
        for index in 0..count as u32 {
            let begin = Height(above.0 + index * size);
            let asked = left.take_to(|to, message| match message {
                Message::BlocksRequest { inquiry, above, limit, headers_only: false }
                    if *above == begin && *limit == size && friendly.contains(&to) && !firsts.contains(&to) =>
                {
                    Some((to, *inquiry))
                }
                _ => None,
            });
            let held = friendly.iter().any(|peer| self.calls.may_be_full(step.local, *peer, Endpoint::Blocks));
            report.judge(&conduct::ASKED, asked.is_some() || held || self.sync.kept || self.peers.unsure, || {
                format!(
                    "it asked no peer of its chain for {size} blocks above {begin}, part {} of {count}; it is at height \
                     {above}, the network at {}",
                    index + 1,
                    self.peers.network_height()
                )
            });
            if let Some((to, _)) = asked {
                firsts.insert(to);
                self.calls.note(step.local, to, Endpoint::Blocks);
            }
            let first = asked.map(|(to, _)| to);
            chunks.push(Chunk {
                first,
                asked: first.into_iter().collect(),
                open: Some((asked, until)),
                possible: self.full_of(step.local, &friendly),
                came: None,
                over: false,
            });
        }
        if self.sync.kept {
            // Which of the chunks it had already cannot be told.
            return self.lose_track(report, step.local);
        }
        self.sync.phase = Phase::Downloading(Download { above, friendly, chunks });
    }

    /// An answer to a question for blocks.
    #[expect(clippy::too_many_arguments, reason = "a step and an answer")]
    pub(super) fn hears_chunk(
        &mut self,
        known: &Known,
        report: &mut Report,
        step: &Step,
        left: &mut Left<'_>,
        from: NodeId,
        inquiry: Inquiry,
        blocks: &[Arc<Block>],
    ) {
        let size = self.sync.chunk as usize;
        self.sync.open.remove(&inquiry);
        let Phase::Downloading(download) = &mut self.sync.phase else { return };
        let is_open = |chunk: &Chunk| chunk.open.is_some_and(|(asked, _)| asked == Some((from, inquiry)));
        let Some(index) = download.chunks.iter().position(is_open) else { return };
        let is_last = index + 1 == download.chunks.len();
        let chunk = &mut download.chunks[index];
        chunk.open = None;
        if blocks.len() == size || (is_last && !blocks.is_empty() && blocks.len() < size) {
            (chunk.came, chunk.over) = (Some(blocks.to_vec()), true);
        } else {
            self.asks_another(known, report, step, left, index);
        }
        self.download_over(known, report, step, left);
    }

    /// A chunk has failed: another peer is asked, one that has not been and that was nobody's first choice.
    fn asks_another(&mut self, known: &Known, report: &mut Report, step: &Step, left: &mut Left<'_>, index: usize) {
        let size = self.sync.chunk;
        let Phase::Downloading(download) = &mut self.sync.phase else { return };
        let firsts: BTreeSet<NodeId> = download.chunks.iter().filter_map(|chunk| chunk.first).collect();
        let begin = Height(download.above.0 + index as u32 * size);
        // First choices that are held back may be any.
        let vague = download.chunks.iter().filter(|chunk| chunk.first.is_none()).count();
        let peers = &self.peers;
        let chunk = &mut download.chunks[index];
        let candidates: BTreeSet<NodeId> = download
            .friendly
            .iter()
            .copied()
            .filter(|node| peers.has(*node) && !firsts.contains(node) && !chunk.asked.contains(node))
            .collect();
        let asked = left.take_to(|to, message| match message {
            Message::BlocksRequest { inquiry, above, headers_only: false, .. }
                if *above == begin && candidates.contains(&to) =>
            {
                Some((to, *inquiry))
            }
            _ => None,
        });
        if asked.is_none() && candidates.is_empty() {
            chunk.over = true;
            return;
        }
        let calls = &self.calls;
        let full = |peer: &&NodeId| calls.may_be_full(step.local, **peer, Endpoint::Blocks);
        let possible: BTreeSet<NodeId> = candidates.iter().filter(full).copied().collect();
        let over = candidates.len() <= vague;
        report.judge(&conduct::RETRIED, asked.is_some() || !possible.is_empty() || over || self.peers.unsure, || {
            format!("blocks above {begin} did not come, and it asked none of {candidates:?} for them")
        });
        if let Some((to, _)) = asked {
            chunk.asked.insert(to);
            self.calls.note(step.local, to, Endpoint::Blocks);
        }
        chunk.open = Some((asked, step.local + answer_time(known)));
        chunk.possible = possible;
        if asked.is_none() && over {
            self.lose_track(report, step.local);
        }
    }

    /// Once all chunks are over: those up to the first that failed are worked on.
    fn download_over(&mut self, known: &Known, report: &mut Report, step: &Step, left: &mut Left<'_>) {
        let Phase::Downloading(download) = &mut self.sync.phase else { return };
        if download.chunks.iter().any(|chunk| !chunk.over) {
            return;
        }
        let mut blocks = Vec::new();
        let whole = download.chunks.iter().take_while(|chunk| chunk.came.is_some()).count();
        self.sync.kept |= download.chunks.iter().skip(whole).any(|chunk| chunk.came.is_some());
        for chunk in download.chunks.drain(..).take(whole) {
            blocks.extend(chunk.came.unwrap_or_default());
        }
        self.sync.phase = Phase::Idle;
        if blocks.is_empty() {
            self.sync.chunk = self.sync.chunk.div_ceil(10);
            self.sync.kept = false;
        } else if self.sync.chunk != CHUNK {
            self.sync.chunk = CHUNK;
            self.sync.kept = false;
        }
        if blocks.first().is_some_and(|first| chains(known, &self.tip, first)) {
            self.sync.makes_headway();
            if self.takes_download(known, report, step, left, &blocks) {
                return;
            }
        } else {
            self.sync.vain += 1;
        }
        self.sync_step(known, report, step, left);
    }

    /// Takes in what was downloaded. Whether that made the node leave its chain.
    fn takes_download(
        &mut self,
        known: &Known,
        report: &mut Report,
        step: &Step,
        left: &mut Left<'_>,
        blocks: &[Arc<Block>],
    ) -> bool {
        let started = self.started;
        let mut rest = blocks.iter();
        let mut last = None;
        let stopped = loop {
            let Some(block) = rest.next() else { break None };
            if !self.takes_applied(known, report, step, left, block) {
                break Some(block);
            }
            last = Some(block);
        };
        let slots = known.tree.slots();
        if let Some(block) = stopped {
            let early = slots.slot(block.header.timestamp) > slots.slot(step.local.seconds());
            let link = known.tree.link(&block.id);
            let fits = !early
                && chains(known, &self.tip, block)
                && link.is_some_and(|link: Arc<Link>| link.parent().is_some_and(|parent| parent.is(&self.tip)));
            report.judge(&conduct::TAKEN, !fits, || {
                format!(
                    "block {} at height {} came with a download, fits and was not applied",
                    block.id, block.header.height
                )
            });
        }
        self.started = started;
        match stopped {
            None => {
                if let Some(block) = last {
                    self.passes_on(known, report, step, left, block, true);
                }
            }
            Some(block) => self.passes_on(known, report, step, left, block, false),
        }
        let went = left.take_event(|event| match event {
            Event::RolledBack { from, to, cause } if *cause != RollbackCause::Forked => Some((from, to, *cause)),
            _ => None,
        });
        let Some((from, to, cause)) = went else { return false };
        let (high, low) = (from.height().0, to.height().0);
        let right = stopped.is_some()
            && match cause {
                RollbackCause::NeverReady => high - low == known.rules().node.rollback_max.min(high - 1),
                _ => self.is_random_depth(known, high, low),
            };
        report.judge(&conduct::DEPTH, right, || format!("it went back from {high} to {low} for {cause}"));
        self.rolled_back(known, report, left, to);
        self.recovers(known, report, step, left);
        true
    }

    /// A peer is gone: what it was asked has failed.
    pub(super) fn chunks_fail(
        &mut self,
        known: &Known,
        report: &mut Report,
        step: &Step,
        left: &mut Left<'_>,
        node: NodeId,
    ) {
        let Phase::Downloading(download) = &mut self.sync.phase else { return };
        for chunk in &mut download.chunks {
            if matches!(chunk.open, Some((None, _))) && chunk.possible.contains(&node) {
                // It may have been the one that a question held back is for.
                return self.lose_track(report, step.local);
            }
        }
        let is_of = |chunk: &Chunk| matches!(chunk.open, Some((Some((to, _)), _)) if to == node);
        let failed: Vec<usize> =
            download.chunks.iter().enumerate().filter(|(_, chunk)| is_of(chunk)).map(|(index, _)| index).collect();
        for index in failed {
            if let Phase::Downloading(download) = &mut self.sync.phase {
                if let Some(chunk) = download.chunks.get_mut(index) {
                    chunk.open = None;
                }
                self.asks_another(known, report, step, left, index);
                self.download_over(known, report, step, left);
            }
        }
    }

    /// Time may be up for answers.
    pub(super) fn gives_up_waiting(&mut self, known: &Known, report: &mut Report, step: &Step, left: &mut Left<'_>) {
        self.probes_time_out(known, report, step, left);
        let over = self.sync.open.iter().filter(|(_, (_, until))| *until <= step.local);
        for (inquiry, (node, _)) in over.map(|(inquiry, open)| (*inquiry, *open)).collect::<Vec<_>>() {
            self.sync.open.remove(&inquiry);
            self.forget_peer(known, report, step, left, node);
        }
        let Phase::Downloading(download) = &mut self.sync.phase else { return };
        let late = download.chunks.iter().enumerate().filter_map(|(index, chunk)| {
            let (asked, until) = chunk.open?;
            (until <= step.local).then_some((index, asked))
        });
        for (index, asked) in late.collect::<Vec<_>>() {
            let Phase::Downloading(download) = &mut self.sync.phase else { return };
            if let Some(chunk) = download.chunks.get_mut(index) {
                chunk.open = None;
            }
            self.asks_another(known, report, step, left, index);
            self.download_over(known, report, step, left);
            if let Some((node, _)) = asked {
                self.forget_peer(known, report, step, left, node);
            }
        }
    }

    /// Messages the limits had held back.
    pub(super) fn sends_held_back(&mut self, known: &Known, report: &mut Report, step: &Step, left: &mut Left<'_>) {
        self.sends_held_back_probes(known, step, left);
        let asked = left.take_all_to(|to, message| match message {
            Message::BlocksRequest { inquiry, above, headers_only: false, .. } => Some((to, *inquiry, *above)),
            _ => None,
        });
        let size = self.sync.chunk;
        for (to, inquiry, above) in asked {
            self.calls.note(step.local, to, Endpoint::Blocks);
            if self.sync.phase == Phase::Unknown {
                // Since when it waits is not known.
                self.sync.lost = step.local;
                self.peers.unsure_from(step.local + answer_time(known));
                continue;
            }
            let Phase::Downloading(download) = &mut self.sync.phase else { continue };
            let begin = download.above;
            if self.sync.stale > 0 {
                self.sync.stale -= 1;
                if download.chunks.iter().any(|chunk| matches!(chunk.open, Some((None, _)))) {
                    self.lose_track(report, step.local);
                }
                continue;
            }
            let waiting = download.chunks.iter_mut().enumerate().find(|(index, chunk)| {
                matches!(chunk.open, Some((None, _))) && above.0 == begin.0 + *index as u32 * size
            });
            if let Some((_, chunk)) = waiting {
                let until = chunk.open.map_or(step.local, |(_, until)| until);
                chunk.open = Some((Some((to, inquiry)), until));
                chunk.first = chunk.first.or(chunk.asked.is_empty().then_some(to));
                chunk.asked.insert(to);
            }
        }
        let others = left.take_all_to(|to, message| Endpoint::of(message).map(|endpoint| (to, endpoint)));
        for (to, endpoint) in others {
            self.calls.note(step.local, to, endpoint);
            if endpoint == Endpoint::Status && !self.peers.has(to) {
                self.newcomers.insert(to, (step.local, false));
            }
        }
    }

    /// A node that catches up for the first time begins when its look for peers is over; a model that has lost track
    /// learns from what the node asks.
    pub(super) fn rest_of_sync(&mut self, known: &Known, report: &mut Report, step: &Step, left: &mut Left<'_>) {
        let asks =
            left.sent().any(|(_, message)| matches!(message, Message::BlocksRequest { headers_only: false, .. }));
        if self.sync.phase == Phase::Starting && asks {
            self.looks_at = Some(step.local + wake_up_time(known));
            self.sync_step(known, report, step, left);
        }
        if self.sync.phase == Phase::Unknown {
            self.follows_blindly(known, report, step, left);
        }
    }

    /// Goes where the node goes while it is not known what it downloads.
    fn follows_blindly(&mut self, known: &Known, report: &mut Report, step: &Step, left: &mut Left<'_>) {
        while let Some(link) = left.take_event(|event| match event {
            Event::BlockApplied(link) if link.parent().is_some_and(|parent| parent.is(&self.tip)) => Some(link),
            _ => None,
        }) {
            self.moves(known, report, step, left, link);
        }
        left.take_all_to(|_, message| matches!(message, Message::Block(_)).then_some(()));
        let asked = left.take_all_to(|to, message| match message {
            Message::BlocksRequest { inquiry, headers_only: false, .. } => Some((to, *inquiry)),
            _ => None,
        });
        for (to, inquiry) in asked {
            self.calls.note(step.local, to, Endpoint::Blocks);
            self.sync.open.insert(inquiry, (to, step.local + answer_time(known)));
            self.sync.lost = step.local;
        }
        let settled = step.local > self.sync.lost + answer_time(known) + Duration::from_secs(10);
        if settled && self.sync.counted && self.sync.open.is_empty() {
            self.rests();
        }
        let went = left.take_event(|event| match event {
            Event::RolledBack { to, .. } => Some(to),
            _ => None,
        });
        if let Some(to) = went {
            self.rolled_back(known, report, left, to);
            self.recovers(known, report, step, left);
        }
    }
}

/// Time to answer a question for blocks.
fn answer_time(known: &Known) -> Duration {
    Duration::from_secs(u64::from(known.rules().node.blocks_timeout_s))
}
