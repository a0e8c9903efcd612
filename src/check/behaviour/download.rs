//! A download: chunks that a node requests from a peer, requests again from another one, and takes in. Source: consensus.md
//! 3.2, 6.

use super::{
    Case,
    limits::Endpoint,
    state::{CHUNK, Chunk, Download, PeerModel, Phase, chains},
    sync::{PARALLEL, answer_time},
};
use crate::{
    actors::{Event, Message, NodeId, RollbackCause, SimTime, message::Inquiry},
    check::conduct,
    ledger::Link,
    protocol::{Block, Height},
};
use std::{collections::BTreeSet, sync::Arc};

impl PeerModel {
    /// Returns the peers of `friendly` that may be at their limit of requests for blocks.
    pub(super) fn full_of(&self, now: SimTime, friendly: &BTreeSet<NodeId>) -> BTreeSet<NodeId> {
        friendly.iter().copied().filter(|peer| self.calls.may_be_full(now, *peer, Endpoint::Blocks)).collect()
    }

    pub(super) fn downloads(&mut self, case: &mut Case<'_>, friendly: BTreeSet<NodeId>) {
        if !self.sync.sized {
            let sizes = case.left.sent().filter_map(|(_, message)| match message {
                Message::BlocksRequest { limit, headers_only: false, .. } => Some(*limit),
                _ => None,
            });
            let Some(size) = sizes.max() else { return self.lose_track(case) };
            (self.sync.chunk, self.sync.sized) = (size, true);
        }
        let (above, size) = (self.tip.height(), self.sync.chunk);
        let missing = self.peers.network_height().0.saturating_sub(above.0);
        let count = (missing.div_ceil(size).clamp(1, PARALLEL) as usize).min(friendly.len());
        let until = case.step.local + answer_time(case.known);
        let mut chunks = Vec::new();
        let mut firsts = BTreeSet::new();
        for index in 0..count as u32 {
            let begin = Height(above.0 + index * size);
            let asked = case.left.take_to(|to, message| match message {
                Message::BlocksRequest { inquiry, above, limit, headers_only: false }
                    if *above == begin && *limit == size && friendly.contains(&to) && !firsts.contains(&to) =>
                {
                    Some((to, *inquiry))
                }
                _ => None,
            });
            let held = friendly.iter().any(|peer| self.calls.may_be_full(case.step.local, *peer, Endpoint::Blocks));
            case.report.judge(&conduct::ASKED, asked.is_some() || held || self.sync.kept || self.peers.unsure, || {
                format!(
                    "it asked no peer of its chain for {size} blocks above {begin}, part {} of {count}; it is at height \
                     {above}, the network at {}",
                    index + 1,
                    self.peers.network_height()
                )
            });
            if let Some((to, _)) = asked {
                firsts.insert(to);
                self.calls.note(case.step.local, to, Endpoint::Blocks);
            }
            let first = asked.map(|(to, _)| to);
            chunks.push(Chunk {
                first,
                asked: first.into_iter().collect(),
                passed_over: BTreeSet::new(),
                after: self.last_inquiry,
                open: Some((asked, until)),
                possible: self.full_of(case.step.local, &friendly),
                came: None,
                over: false,
            });
        }
        if self.sync.kept {
            // The chunks that it already had are unknown.
            return self.lose_track(case);
        }
        self.sync.phase = Phase::Downloading(Download { above, friendly, chunks });
    }

    /// Handles the answer to a request for blocks.
    pub(super) fn hears_chunk(&mut self, case: &mut Case<'_>, from: NodeId, inquiry: Inquiry, blocks: &[Arc<Block>]) {
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
            self.asks_another(case, index);
        }
        self.download_over(case);
    }

    /// Judges the retry of a failed chunk. The node asks a peer that it has not asked yet and that was not the first choice of
    /// any chunk.
    pub(super) fn asks_another(&mut self, case: &mut Case<'_>, index: usize) {
        let size = self.sync.chunk;
        let Phase::Downloading(download) = &mut self.sync.phase else { return };
        let firsts: BTreeSet<NodeId> = download.chunks.iter().filter_map(|chunk| chunk.first).collect();
        let begin = Height(download.above.0 + index as u32 * size);
        // A first choice that the limits hold back may be any peer.
        let vague = download.chunks.iter().filter(|chunk| chunk.first.is_none()).count();
        let peers = &self.peers;
        let chunk = &mut download.chunks[index];
        let candidates: BTreeSet<NodeId> = download
            .friendly
            .iter()
            .copied()
            .filter(|node| peers.has(*node) && !firsts.contains(node) && !chunk.asked.contains(node))
            .collect();
        let asked = case.left.take_to(|to, message| match message {
            Message::BlocksRequest { inquiry, above, limit, headers_only: false }
                if *above == begin && *limit == size && candidates.contains(&to) =>
            {
                Some((to, *inquiry))
            }
            _ => None,
        });
        let calls = &self.calls;
        let full = |peer: &&NodeId| calls.may_be_full(case.step.local, **peer, Endpoint::Blocks);
        let possible: BTreeSet<NodeId> = candidates.iter().filter(full).copied().collect();
        // A peer that was gone when it was its turn may have been passed over for good.
        let must = candidates.difference(&chunk.passed_over).count();
        chunk.passed_over.extend(download.friendly.iter().copied().filter(|node| !peers.has(*node)));
        if asked.is_none() && must == 0 && possible.is_empty() {
            chunk.over = true;
            return;
        }
        let over = must <= vague;
        case.report.judge(
            &conduct::RETRIED,
            asked.is_some() || !possible.is_empty() || over || self.peers.unsure,
            || format!("blocks above {begin} did not come, and it asked none of {candidates:?} for them"),
        );
        // A request that is held back may have been for a peer that this step dropped.
        let may_be_gone = |node: &NodeId| {
            case.step.events().any(|event| matches!(event, Event::PeerRemoved(gone) if gone == node))
                && calls.may_be_full(case.step.local, *node, Endpoint::Blocks)
        };
        let any_gone = download.friendly.iter().any(may_be_gone);
        if let Some((to, _)) = asked {
            chunk.asked.insert(to);
            self.calls.note(case.step.local, to, Endpoint::Blocks);
        }
        chunk.open = Some((asked, case.step.local + answer_time(case.known)));
        chunk.possible = possible;
        chunk.after = self.last_inquiry;
        // This request may belong to the next download, which asks for single blocks too.
        let may_be_next = asked.is_some() && must == 0 && size == 1;
        if may_be_next || asked.is_none() && (over || any_gone) {
            self.lose_track(case);
        }
    }

    /// Ends the download once all chunks are over. The node processes the chunks below the first one that failed.
    pub(super) fn download_over(&mut self, case: &mut Case<'_>) {
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
        if blocks.first().is_some_and(|first| chains(case.known, &self.tip, first)) {
            self.sync.makes_headway();
            if self.takes_download(case, &blocks) {
                return;
            }
        } else {
            self.sync.vain += 1;
        }
        self.sync_step(case);
    }

    /// Judges how the node applies the downloaded blocks. Returns true if it rolled back.
    pub(super) fn takes_download(&mut self, case: &mut Case<'_>, blocks: &[Arc<Block>]) -> bool {
        let started = self.started;
        let mut rest = blocks.iter();
        let mut last = None;
        let stopped = loop {
            let Some(block) = rest.next() else { break None };
            if !self.takes_applied(case, block) {
                break Some(block);
            }
            last = Some(block);
        };
        let slots = case.known.tree.slots();
        if let Some(block) = stopped {
            let early = slots.slot(block.header.timestamp) > slots.slot(case.step.local.seconds());
            let link = case.known.tree.link(&block.id);
            let fits = !early
                && chains(case.known, &self.tip, block)
                && link.is_some_and(|link: Arc<Link>| link.parent().is_some_and(|parent| parent.is(&self.tip)));
            case.report.judge(&conduct::TAKEN, !fits, || {
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
                    self.passes_on(case, block, true);
                }
            }
            Some(block) => self.passes_on(case, block, false),
        }
        let went = case.left.take_event(|event| match event {
            Event::RolledBack { from, to, cause } if *cause != RollbackCause::Forked => Some((from, to, *cause)),
            _ => None,
        });
        let Some((from, to, cause)) = went else { return false };
        let (high, low) = (from.height().0, to.height().0);
        let right = stopped.is_some()
            && match cause {
                RollbackCause::NeverReady => high - low == case.known.rules().node.rollback_max.min(high - 1),
                _ => self.is_random_depth(case.known, high, low),
            };
        case.report.judge(&conduct::DEPTH, right, || format!("it went back from {high} to {low} for {cause}"));
        self.rolled_back(case, to);
        self.recovers(case);
        true
    }

    /// Fails the open requests to a peer that is gone.
    pub(super) fn chunks_fail(&mut self, case: &mut Case<'_>, node: NodeId) {
        let Phase::Downloading(download) = &mut self.sync.phase else { return };
        for chunk in &mut download.chunks {
            if matches!(chunk.open, Some((None, _))) && chunk.possible.contains(&node) {
                // A request that is held back may have been for this peer.
                return self.lose_track(case);
            }
        }
        let open = download.chunks.iter().enumerate().filter_map(|(index, chunk)| match chunk.open {
            Some((Some((to, inquiry)), _)) if to == node => Some((inquiry, index)),
            _ => None,
        });
        // The first question fails first.
        for (_, index) in open.collect::<BTreeSet<_>>() {
            if let Phase::Downloading(download) = &mut self.sync.phase {
                if let Some(chunk) = download.chunks.get_mut(index) {
                    chunk.open = None;
                }
                self.asks_another(case, index);
                self.download_over(case);
            }
        }
    }

    /// Returns true if a peer may have been asked for a chunk and not have answered yet.
    pub(super) fn waits_for(&self, node: NodeId) -> bool {
        let Phase::Downloading(download) = &self.sync.phase else { return false };
        download.chunks.iter().any(|chunk| match chunk.open {
            Some((Some((to, _)), _)) => to == node,
            Some((None, _)) => chunk.possible.contains(&node),
            None => false,
        })
    }

    /// Handles the requests whose time for an answer is up.
    pub(super) fn gives_up_waiting(&mut self, case: &mut Case<'_>) {
        self.probes_time_out(case);
        let over = self.sync.open.iter().filter(|(_, (_, until))| *until <= case.step.local);
        for (inquiry, (node, _)) in over.map(|(inquiry, open)| (*inquiry, *open)).collect::<Vec<_>>() {
            self.sync.open.remove(&inquiry);
            self.forget_peer(case, node);
        }
        let Phase::Downloading(download) = &mut self.sync.phase else { return };
        let late = download.chunks.iter().enumerate().filter_map(|(index, chunk)| {
            let (asked, until) = chunk.open?;
            (until <= case.step.local).then_some((until, asked.map(|(_, inquiry)| inquiry), index, asked))
        });
        for (_, _, index, asked) in late.collect::<BTreeSet<_>>() {
            let Phase::Downloading(download) = &mut self.sync.phase else { return };
            if let Some(chunk) = download.chunks.get_mut(index) {
                chunk.open = None;
            }
            self.asks_another(case, index);
            self.download_over(case);
            if let Some((node, _)) = asked {
                self.forget_peer(case, node);
            }
        }
    }

    /// Handles the messages that the limits had held back.
    pub(super) fn sends_held_back(&mut self, case: &mut Case<'_>) {
        self.sends_held_back_probes(case);
        let asked = case.left.take_all_to(|to, message| match message {
            Message::BlocksRequest { inquiry, above, headers_only: false, .. } => Some((to, *inquiry, *above)),
            _ => None,
        });
        let size = self.sync.chunk;
        for (to, inquiry, above) in asked {
            self.calls.note(case.step.local, to, Endpoint::Blocks);
            if self.sync.phase == Phase::Starting {
                // The first download: the limits held it back when discovery was over.
                self.lose_track(case);
                self.started = None;
            }
            if self.sync.phase == Phase::Unknown {
                // Since when it waits is not known.
                self.sync.lost = case.step.local;
                self.peers.unsure_from(case.step.local + answer_time(case.known));
                continue;
            }
            let Phase::Downloading(download) = &mut self.sync.phase else { continue };
            let begin = download.above;
            // The node no longer waits for a question that is older than the chunk's.
            let waiting = download.chunks.iter_mut().enumerate().find(|(index, chunk)| {
                matches!(chunk.open, Some((None, _)))
                    && chunk.after < inquiry
                    && above.0 == begin.0 + *index as u32 * size
            });
            if let Some((_, chunk)) = waiting {
                let until = chunk.open.map_or(case.step.local, |(_, until)| until);
                chunk.open = Some((Some((to, inquiry)), until));
                chunk.first = chunk.first.or(chunk.asked.is_empty().then_some(to));
                chunk.asked.insert(to);
            }
        }
        let others = case.left.take_all_to(|to, message| Endpoint::of(message).map(|endpoint| (to, endpoint)));
        for (to, endpoint) in others {
            self.calls.note(case.step.local, to, endpoint);
            if endpoint == Endpoint::Status && !self.peers.has(to) {
                self.newcomers.insert(to, (case.step.local, false));
            }
        }
    }
}
