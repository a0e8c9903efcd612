//! Sync by download: waking up, requesting missing blocks in chunks from several peers at once, and giving up.
//! Source: consensus.md 3.5, 6.
//!
//! 1. A node wakes up when its timer of 60 seconds expires, and when its delegate forges next. An accepted block restarts the timer.
//!    The delegate's wake-up stops it. A node that becomes idle starts it, unless it runs.
//! 2. A step ends the sync if the tip is younger than three slots, or if there are no peers.
//! 3. After more than five downloads in vain it gives up until the next wake-up. The fourth wake-up in a row to give up asks
//!    for a health check instead (`fork.rs`). An accepted block or a fresh tip sets both counts to 0.
//! 4. Otherwise it asks for chunks of 400 blocks above the tip, ten at once at most, each of another peer, in random order;
//!    forked peers are left out. By a rule that goes to the stronger chain, it asks for one chunk at a time, the peers on the strongest
//!    chain first. If a peer's blocks do not follow the tip, its reported tip is ignored until it reports one again.
//! 5. If a chunk comes empty, short (unless it is the last one) or not at all, a peer that was no first choice is asked for it.
//! 6. When every chunk has come or failed, the blocks below the first failure are processed (`acceptance.rs`). Chunks above
//!    it are cached for the next download.
//! 7. A download without blocks makes the chunks a tenth as large; one with blocks makes them 400 again. Where every peer is forked the
//!    node asks none, and the chunks stay as they are. A download is in vain if its first block does not follow the tip, or, by a
//!    rule that goes to the stronger chain, is refused. Then the next step begins.
//! 8. After a rollback, and once the peers have said again where they stand, the next step begins, even without a peer to ask.
//! 9. With `stays_behind` off, a node at rest downloads as soon as a health check shows that its peers have more of its chain.
//!
//! ```text
//!   Starting ─► Syncing ⇄ download …  ─► Idle ─ wake-up ─► Syncing
//!                  │ six downloads in vain, the fourth time ─► health check ─ forked ─► rollback, ping ─► Syncing
//!                  └ otherwise ─► Idle
//! ```

use super::{About, Peer, inquiry::Purpose, neighbours::Neighbour};
use crate::{
    actors::{Effect, Message, NodeId, SimTime, Wake},
    ledger::codec::saved,
    protocol::{Block, BlockId, Height},
};
use rand::seq::SliceRandom;
use std::{cmp::Reverse, collections::BTreeMap, sync::Arc, time::Duration};

/// The largest number of blocks in one answer.
const CHUNK: u32 = 400;
/// The largest number of chunks that are requested at once.
const PARALLEL: u32 = 10;
/// The largest number of cached chunks.
const CACHED: usize = 100;
/// Downloads in vain after which a wake-up gives up.
const VAIN_LIMIT: u32 = 5;

/// A block that is too far ahead more often than this in a row makes the node leave its chain. Source: consensus.md 3.6.
const NOT_READY_LIMIT: u32 = 5;

/// The state of a node between its chain and the network's.
#[derive(Clone, Debug)]
pub(super) struct SyncState {
    /// Downloads in a row that brought nothing (`noBlockCounter`).
    vain: u32,
    /// Wake-ups in a row that gave up (`p2pUpdateCounter`).
    halted: u32,
    pub(super) phase: Phase,
    chunk: u32,
    /// Chunks that came before the chunks below them, by the height above which they begin.
    cached: BTreeMap<Height, Box<[Arc<Block>]>>,
    /// The last block that was too far ahead, and the number of times in a row that it was.
    not_ready: Option<(BlockId, u32)>,
}

#[derive(Clone, Debug)]
pub(super) enum Phase {
    /// Looks for peers, to catch up for the first time.
    Starting,
    Idle,
    /// Between two steps. A node only passes through it while it handles an input.
    Syncing,
    Downloading(Download),
    /// Waits for a health check.
    Halted,
    /// Has rolled back and asks its peers again where they stand.
    Recovering,
}

/// A running download: consecutive chunks.
#[derive(Clone, Debug)]
pub(super) struct Download {
    above: Height,
    pub(super) chunks: Vec<Chunk>,
}

#[derive(Clone, Debug)]
pub(super) struct Chunk {
    /// The peers that can still be asked, the next one last.
    to_ask: Vec<NodeId>,
    came: Option<Box<[Arc<Block>]>>,
    pub(super) over: bool,
}

impl SyncState {
    /// The state of a node that is up to date.
    pub(super) fn started() -> Self {
        Self { phase: Phase::Idle, vain: 0, halted: 0, chunk: CHUNK, cached: BTreeMap::new(), not_ready: None }
    }

    /// The state of a node that has to catch up.
    pub(super) fn starting() -> Self {
        Self { phase: Phase::Starting, ..Self::started() }
    }

    /// Counts a block that is too far ahead. Returns true if this one was so often in a row that the chain below must be wrong.
    pub(super) fn is_never_ready(&mut self, id: BlockId) -> bool {
        let times = self.not_ready.filter(|(before, _)| *before == id).map_or(0, |(_, times)| times) + 1;
        self.not_ready = (times <= NOT_READY_LIMIT).then_some((id, times));
        times > NOT_READY_LIMIT
    }
}

impl Peer {
    // The timer. A restart does not move its alarm in the queue, because accepted blocks restart the timer all the time.

    /// Restarts the timer of a node that has caught up, because a block was accepted.
    pub(super) fn reset_timer(&mut self, now: SimTime, effects: &mut Vec<Effect>) {
        if self.started {
            self.timed_from = now;
            self.timed = true;
            if !self.alarmed {
                self.set_alarm(effects);
            }
        }
    }

    fn set_alarm(&mut self, effects: &mut Vec<Effect>) {
        self.alarmed = true;
        effects.push(Effect::WakeAt { at: self.timed_from + self.wake_up_time(), wake: Wake::WakeUp });
    }

    pub(super) fn wake_up_time(&self) -> Duration {
        Duration::from_secs(u64::from(self.node_rules().wake_up_s.max(1)))
    }

    /// Handles the alarm. The timer may have been restarted or stopped since the alarm was set.
    pub(super) fn timer_rings(&mut self, now: SimTime, effects: &mut Vec<Effect>) {
        self.alarmed = false;
        if !self.timed {
            return;
        }
        if now < self.timed_from + self.wake_up_time() {
            return self.set_alarm(effects);
        }
        self.timed = false;
        self.wake_up(now, effects);
    }

    /// Wakes the node up and stops the timer, because the delegate forges in the next slot.
    pub(super) fn forger_wakes(&mut self, now: SimTime, effects: &mut Vec<Effect>) {
        self.timed = false;
        self.wake_up(now, effects);
    }

    /// Starts a sync, unless one is under way.
    fn wake_up(&mut self, now: SimTime, effects: &mut Vec<Effect>) {
        if matches!(self.sync.phase, Phase::Idle) {
            self.sync_step(now, effects);
        }
    }

    /// Catches up for the first time, with the peers found.
    pub(super) fn begin_sync(&mut self, now: SimTime, effects: &mut Vec<Effect>) {
        self.sync_step(now, effects);
    }

    /// Takes the next step: rest, another download, or a health check.
    fn sync_step(&mut self, now: SimTime, effects: &mut Vec<Effect>) {
        self.sync.phase = Phase::Syncing;
        if self.sync.vain > VAIN_LIMIT {
            self.sync.vain = 0;
            self.sync.halted += 1;
            if self.sync.halted >= self.node_rules().wake_ups_to_health_check {
                self.sync.halted = 0;
                self.sync.phase = Phase::Halted;
                return self.check_health(now, effects);
            }
            return self.rest(now, effects);
        }
        if self.is_synced(now) {
            self.makes_headway();
            return self.rest(now, effects);
        }
        self.download(now, effects);
    }

    /// Returns true if the tip is younger than three slots, or if there are no peers.
    fn is_synced(&self, now: SimTime) -> bool {
        let age = now.seconds().0.saturating_sub(self.tip.block().header.timestamp.0);
        self.neighbours.is_empty() || age < 3 * self.tree.slots().blocktime()
    }

    /// Becomes idle, because the node has caught up or gives up for now. The timer runs from now on, unless it runs already.
    pub(super) fn rest(&mut self, now: SimTime, effects: &mut Vec<Effect>) {
        self.sync.phase = Phase::Idle;
        self.started = true;
        if !self.timed {
            self.reset_timer(now, effects);
        }
    }

    /// Resets the counts of downloads in vain: a block was accepted or fits on the tip, the tip is fresh, or there are no peers.
    pub(super) fn makes_headway(&mut self) {
        if self.in_vain {
            self.in_vain = false;
            (self.sync.vain, self.sync.halted) = (0, 0);
        }
    }

    /// Continues after a health check that found nothing wrong. By some rules the node then downloads the blocks that its peers have above
    /// its tip.
    pub(super) fn health_settled(&mut self, now: SimTime, effects: &mut Vec<Effect>) {
        let is_idle = matches!(self.sync.phase, Phase::Idle | Phase::Halted);
        if is_idle && !self.node_rules().stays_behind && self.is_behind() {
            return self.download(now, effects);
        }
        if matches!(self.sync.phase, Phase::Halted) {
            self.rest(now, effects);
        }
    }

    /// Returns true if a peer has more blocks of this chain.
    fn is_behind(&self) -> bool {
        let is_ahead = |peer: &Neighbour| peer.height > self.tip.height() && !peer.verified.is_forked();
        self.neighbours.all().iter().any(is_ahead)
    }

    /// Gives up all downloads under way, because the node has left its chain.
    pub(super) fn void_downloads(&mut self) {
        self.inquiries.give_up(|_, purpose| matches!(purpose, Purpose::Chunk(_)));
        self.sync.cached.clear();
        self.sync.phase = Phase::Recovering;
    }

    /// Returns true while the node looks for peers to catch up with for the first time.
    pub(super) fn is_starting(&self) -> bool {
        matches!(self.sync.phase, Phase::Starting)
    }

    pub(super) fn is_recovering(&self) -> bool {
        matches!(self.sync.phase, Phase::Recovering)
    }

    /// Continues once the peers have been asked again after a rollback.
    pub(super) fn recovered(&mut self, now: SimTime, effects: &mut Vec<Effect>) {
        if !self.is_recovering() {
            return;
        }
        match self.choice().catches_up_at_once() && self.is_behind() {
            true => self.download(now, effects),
            false => self.sync_step(now, effects),
        }
    }

    // Download.

    fn download(&mut self, now: SimTime, effects: &mut Vec<Effect>) {
        let friendly = self.neighbours.all().iter().filter(|neighbour| !neighbour.verified.is_forked());
        let mut peers: Vec<NodeId> = friendly.map(|neighbour| neighbour.node).collect();
        let mut random = self.random.about(&self.tree, now, About::Download);
        peers.shuffle(&mut random);
        let prefers_stronger = self.node_rules().fork_choice.goes_to_the_stronger();
        if prefers_stronger {
            peers.sort_by_cached_key(|peer| Reverse(self.strength_above(*peer)));
        }
        if peers.is_empty() {
            return self.download_failed(now, effects);
        }
        let above = self.tip.height();
        let missing = self.neighbours.network_height().0.saturating_sub(above.0);
        // Chunks from several peers may belong to different chains.
        let most = if prefers_stronger { 1 } else { PARALLEL };
        let wanted = missing.div_ceil(self.sync.chunk).clamp(1, most) as usize;
        let count = wanted.min(peers.len());
        let orders: Vec<Vec<NodeId>> = (0..count)
            .map(|index| {
                let mut to_ask = peers[count..].to_vec();
                match prefers_stronger {
                    true => to_ask.reverse(),
                    false => to_ask.shuffle(&mut random),
                }
                to_ask.push(peers[index]);
                to_ask
            })
            .collect();
        let chunks = orders
            .into_iter()
            .enumerate()
            .map(|(index, to_ask)| {
                let came = self.sync.cached.remove(&self.chunk_above(above, index));
                Chunk { to_ask, over: came.is_some(), came }
            })
            .collect();
        self.sync.phase = Phase::Downloading(Download { above, chunks });
        for index in 0..count {
            self.ask_for_chunk(now, index, effects);
        }
        self.finish_download(now, effects);
    }

    fn chunk_above(&self, above: Height, index: usize) -> Height {
        Height(above.0.saturating_add(index as u32 * self.sync.chunk))
    }

    /// Asks the next peer for a chunk; without one left, the chunk has failed.
    fn ask_for_chunk(&mut self, now: SimTime, index: usize, effects: &mut Vec<Effect>) {
        let Phase::Downloading(download) = &mut self.sync.phase else { return };
        let begin = download.above;
        let Some(chunk) = download.chunks.get_mut(index).filter(|chunk| !chunk.over) else { return };
        // A peer may have gone since.
        while let Some(peer) = chunk.to_ask.pop() {
            if !self.neighbours.has(peer) {
                continue;
            }
            let (above, limit) = (self.chunk_above(begin, index), self.sync.chunk);
            let time = Duration::from_secs(u64::from(self.node_rules().blocks_timeout_s));
            let question = |inquiry| Message::BlocksRequest { inquiry, above, limit, headers_only: false };
            return self.inquire(now, peer, Purpose::Chunk(index), time, question, effects);
        }
        chunk.over = true;
    }

    /// Handles a peer's answer. Only the last chunk may be shorter than requested, and none may be empty.
    pub(super) fn chunk_answered(
        &mut self,
        now: SimTime,
        from: NodeId,
        index: usize,
        blocks: &[Arc<Block>],
        effects: &mut Vec<Effect>,
    ) {
        let size = self.sync.chunk as usize;
        if index == 0 && !blocks.first().is_some_and(|first| self.tree.chains(&self.tip, first)) {
            // The peer does not have the blocks that it was asked for.
            self.forget_tip(from);
        }
        let Phase::Downloading(download) = &mut self.sync.phase else { return };
        let is_last = index + 1 == download.chunks.len();
        let Some(chunk) = download.chunks.get_mut(index) else { return };
        if blocks.len() == size || (is_last && !blocks.is_empty() && blocks.len() < size) {
            (chunk.came, chunk.over) = (Some(blocks.into()), true);
        } else {
            self.ask_for_chunk(now, index, effects);
        }
        self.finish_download(now, effects);
    }

    pub(super) fn chunk_failed(&mut self, now: SimTime, index: usize, effects: &mut Vec<Effect>) {
        self.ask_for_chunk(now, index, effects);
        self.finish_download(now, effects);
    }

    /// Ends a download once every chunk has come or failed. Processes the chunks below the first failure, and caches the later ones.
    fn finish_download(&mut self, now: SimTime, effects: &mut Vec<Effect>) {
        let Phase::Downloading(download) = &mut self.sync.phase else { return };
        if !download.chunks.iter().all(|chunk| chunk.over) {
            return;
        }
        let (above, mut chunks) = (download.above, std::mem::take(&mut download.chunks));
        let whole = chunks.iter().take_while(|chunk| chunk.came.is_some()).count();
        for (index, chunk) in chunks.drain(whole..).enumerate() {
            let key = self.chunk_above(above, whole + index);
            if let Some(blocks) = chunk.came.filter(|_| self.sync.cached.len() < CACHED) {
                self.sync.cached.insert(key, blocks);
            }
        }
        let blocks: Vec<Arc<Block>> = chunks.into_iter().filter_map(|chunk| chunk.came).flatten().collect();
        self.downloaded(now, &blocks, effects);
    }

    /// Handles the result of a download, which may be empty.
    fn downloaded(&mut self, now: SimTime, blocks: &[Arc<Block>], effects: &mut Vec<Effect>) {
        if blocks.is_empty() {
            self.sync.chunk = self.sync.chunk.div_ceil(10);
            self.sync.cached.clear();
        } else if self.sync.chunk != CHUNK {
            self.sync.chunk = CHUNK;
            self.sync.cached.clear();
        }
        if !blocks.first().is_some_and(|first| self.tree.chains(&self.tip, first)) {
            return self.download_failed(now, effects);
        }
        let counts_refused = self.node_rules().fork_choice.goes_to_the_stronger();
        if !counts_refused {
            self.makes_headway();
        }
        let before = self.tip.height();
        self.work_on_download(now, blocks, effects);
        // A block among them may have made the node leave its chain.
        if self.is_recovering() {
            return;
        }
        match counts_refused && self.tip.height() == before {
            true => self.download_failed(now, effects),
            false => self.sync_step(now, effects),
        }
    }

    /// Counts a download in vain.
    fn download_failed(&mut self, now: SimTime, effects: &mut Vec<Effect>) {
        self.sync.vain += 1;
        self.in_vain = true;
        self.sync_step(now, effects);
    }

    /// Blocks of the own chain above a height, for a peer's request.
    pub(super) fn blocks_above(&self, height: Height, limit: u32) -> Box<[Arc<Block>]> {
        let last = self.tip.height().0.min(height.0.saturating_add(limit.min(CHUNK)));
        (height.0.saturating_add(1)..=last)
            .filter_map(|height| self.tip.ancestor(Height(height)))
            .map(|link| link.block().clone())
            .collect()
    }
}

saved!(struct SyncState { vain, halted, phase, chunk, cached, not_ready });
saved!(enum Phase { 0 Starting, 1 Idle, 2 Downloading(download), 3 Halted, 4 Recovering, 5 Syncing });
saved!(struct Download { above, chunks });
saved!(struct Chunk { to_ask, came, over });
