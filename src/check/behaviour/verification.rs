//! Verification of another peer's claim. Source: consensus.md 6.

use super::{
    Case,
    discovery::CONNECTING,
    limits::Endpoint,
    peers::VerifiedTip,
    state::{Asks, LeftoverRequest, PeerModel, Probe},
};
use crate::{
    actors::{Event, Message, NodeId, SimTime, message::Inquiry},
    check::conduct,
    ledger::Link,
    protocol::{Block, BlockId, Height},
};
use std::{sync::Arc, time::Duration};

const ANSWER: Duration = Duration::from_secs(5);
const WHOLE: Duration = Duration::from_secs(60);

impl PeerModel {
    pub(super) fn hears_status(&mut self, case: &mut Case<'_>, from: NodeId, tip: &Arc<Block>) {
        self.peers.stands_at(from, tip.header.height);
        let awaited = match self.peers.has(from) {
            true => self.peers.is_awaited(from, self.pinged),
            false => self.newcomers.contains_key(&from),
        };
        if !awaited {
            return;
        }
        let (mine, his) = (self.tip.height(), tip.header.height);
        if Arc::ptr_eq(tip, self.tip.block()) {
            return self.passes_at_once(case, from, VerifiedTip::one_chain(mine, his));
        }
        // A status whose id does not belong to its header claims no known block.
        let is_claimed = |link: &Arc<Link>| Arc::ptr_eq(link.block(), tip) || link.block().header == tip.header;
        let link = case.known.tree.link(&tip.id).filter(is_claimed);
        let one_chain = link.as_ref().is_some_and(|link| self.tip.descends_from(link) || link.descends_from(&self.tip));
        if one_chain {
            return self.passes_at_once(case, from, VerifiedTip::one_chain(mine, his));
        }
        if self.probes.contains_key(&from) {
            return;
        }
        let removed = case.left.has_event(|event| matches!(event, Event::PeerRemoved(node) if *node == from));
        let asks = case
            .left
            .sent()
            .any(|(to, message)| to.node == from && matches!(message, Message::CommonBlocksRequest { .. }));
        if link.is_none() && (removed || (!self.peers.has(from) && !asks)) {
            // It claims a block that no node has. Its signature is not checked here.
            return self.fails(case, from);
        }
        if self.peers.unsure && !asks {
            // It may not have been awaited: a ping that the limits held back whole is not seen to begin.
            return;
        }
        let (low, high) = (Height(1), mine.min(his));
        let ends = self.verification_ends(case.step.local, from);
        let probe = Probe {
            claimed: tip.clone(),
            own: self.tip.clone(),
            ends,
            until: ends.min(case.step.local + ANSWER),
            inquiry: None,
            after: self.last_inquiry,
            asks: Asks::Common { heights: Vec::new(), low, high },
        };
        self.probes.insert(from, probe);
        self.asks_common(case, from);
    }

    /// The end of the time for a verification: that of the most patient ping that waits for the node.
    fn verification_ends(&self, now: SimTime, node: NodeId) -> SimTime {
        let answered = self.peers.all.get(&node).map(|peer| peer.answered);
        let waiting = self.pings.iter().filter(|ping| answered.is_some_and(|answered| answered < ping.number));
        waiting.map(|ping| ping.verified_by).max().unwrap_or(now + WHOLE)
    }

    /// A peer has passed by its status alone. The last question of its verification stays open.
    fn passes_at_once(&mut self, case: &mut Case<'_>, node: NodeId, verified: VerifiedTip) {
        if let Some(Probe { inquiry, until, .. }) = self.probes.remove(&node) {
            self.left_open.push(LeftoverRequest { node, inquiry, until });
        }
        self.passes(case, node, verified);
    }

    /// Ends the verification of a node, and drops its open requests.
    pub(super) fn drop_probe(&mut self, node: NodeId) {
        self.probes.remove(&node);
        self.left_open.retain(|open| open.node != node);
    }

    /// Closes the open request that a late answer belongs to.
    pub(super) fn hears_late_answer(&mut self, from: NodeId, inquiry: Inquiry) {
        self.left_open.retain(|open| open.node != from || open.inquiry != Some(inquiry));
    }

    /// Judges the next request of a verification, which the limits may hold back.
    fn asks_common(&mut self, case: &mut Case<'_>, node: NodeId) {
        let asked = case.left.take_to(|to, message| match message {
            Message::CommonBlocksRequest { inquiry, ids } if to == node => Some((*inquiry, ids)),
            _ => None,
        });
        let held = self.calls.may_be_full(case.step.local, node, Endpoint::CommonBlocks);
        case.report.judge(&conduct::SEARCHED, asked.is_some() || held || self.peers.unsure, || {
            format!("it did not ask {node} for common blocks")
        });
        if let Some((inquiry, ids)) = asked {
            self.asked_common(case, node, inquiry, ids);
        }
    }

    fn asked_common(&mut self, case: &mut Case<'_>, node: NodeId, asked: Inquiry, ids: &[BlockId]) {
        self.calls.note(case.step.local, node, Endpoint::CommonBlocks);
        // The node no longer waits for a question that is older than the probe's.
        let probe = self.probes.get_mut(&node).filter(|probe| probe.after < asked);
        let Some(Probe { own, inquiry, asks: Asks::Common { heights, low, high }, .. }) = probe else { return };
        *inquiry = Some(asked);
        let range = *low..=*high;
        let place = |id: &BlockId| {
            let link = case.known.tree.link(id).filter(|link| own.descends_from(link))?;
            range.contains(&link.height()).then_some(link.height())
        };
        let found: Vec<Option<Height>> = ids.iter().map(place).collect();
        *heights = found.iter().flatten().copied().collect();
        let ascending = heights.windows(2).all(|pair| pair[0] < pair[1]);
        let holds = found.iter().all(Option::is_some)
            && ascending
            && heights.len() <= 10
            && heights.first() == Some(low)
            && (heights.len() > 1 || low == high);
        case.report.judge(&conduct::SEARCHED, holds, || {
            format!("it asked {node} for common blocks at {found:?}, which lie between {low} and {high}")
        });
    }

    pub(super) fn hears_common(
        &mut self,
        case: &mut Case<'_>,
        from: NodeId,
        inquiry: Inquiry,
        common: Option<BlockId>,
    ) {
        let Some(probe) = self.probes.get_mut(&from).filter(|probe| probe.inquiry == Some(inquiry)) else { return };
        let Asks::Common { heights, low, high } = &mut probe.asks else { return };
        let own = probe.own.clone();
        let is_common = |height: &Height| own.ancestor(*height).map(|link| link.id()) == common;
        let place = heights.iter().position(is_common).filter(|_| common.is_some());
        let Some(place) = place else { return self.fails(case, from) };
        *low = heights[place];
        *high = heights.get(place + 1).map_or(*high, |above| Height(above.0 - 1));
        let (low, high, in_time) = (*low, *high, case.step.local < probe.ends);
        (probe.inquiry, probe.after) = (None, self.last_inquiry);
        probe.until = probe.ends.min(case.step.local + ANSWER);
        if low < high {
            return if in_time { self.asks_common(case, from) } else { self.fails(case, from) };
        }
        let Some(common) = own.ancestor(low) else { return };
        // Its headers up to the end of the round, or, by Q11, one more, must be signed by delegates of the round.
        let more = u32::from(case.known.rules().node.verify_next_round_block);
        let ends = case.known.tree.schedule().at(Height(low.0 + 1)).last();
        let last = probe.claimed.header.height.min(Height(ends.0 + more));
        if last <= low {
            let verified = VerifiedTip { mine: own.height(), his: probe.claimed.header.height, common: low };
            return self.passes(case, from, verified);
        }
        if !in_time {
            return self.fails(case, from);
        }
        probe.asks = Asks::Headers { common, last };
        probe.until = case.step.local + WHOLE;
        let limit = last.0 - low.0;
        let asked = case.left.take_to(|to, message| match message {
            Message::BlocksRequest { inquiry, above, limit, headers_only: true } if to == from => {
                Some((*inquiry, *above, *limit))
            }
            _ => None,
        });
        let held = self.calls.may_be_full(case.step.local, from, Endpoint::Blocks);
        let holds = asked.map_or(held, |(_, above, asked)| (above, asked) == (low, limit));
        case.report.judge(&conduct::SEARCHED, holds, || {
            format!("it asked {from} for headers {asked:?}, expected {limit} above the common height {low}")
        });
        if let Some((inquiry, ..)) = asked {
            self.calls.note(case.step.local, from, Endpoint::Blocks);
            if let Some(probe) = self.probes.get_mut(&from) {
                probe.inquiry = Some(inquiry);
            }
        }
    }

    /// Returns true if these blocks are headers of a verification.
    pub(super) fn hears_headers(
        &mut self,
        case: &mut Case<'_>,
        from: NodeId,
        inquiry: Inquiry,
        headers: &[Arc<Block>],
    ) -> bool {
        let Some(probe) = self.probes.get(&from).filter(|probe| probe.inquiry == Some(inquiry)) else { return false };
        let Asks::Headers { common, last } = &probe.asks else { return false };
        let applied = case.known.tree.applied(common);
        let members = &applied.state.round().members;
        let wanted: Vec<u32> = (common.height().0 + 1..=last.0).collect();
        let complete = headers.iter().map(|header| header.header.height.0).eq(wanted.iter().copied())
            && headers.iter().all(|block| members.iter().any(|member| member.public_key == block.header.generator));
        // A block that no node has accepted may lack a valid signature.
        let all_known = headers.iter().all(|block| case.known.tree.link(&block.id).is_some());
        let removed = case.left.has_event(|event| matches!(event, Event::PeerRemoved(node) if *node == from));
        let verified =
            VerifiedTip { mine: probe.own.height(), his: probe.claimed.header.height, common: common.height() };
        match complete && (all_known || !removed) {
            true => self.passes(case, from, verified),
            false => self.fails(case, from),
        }
        true
    }

    /// Handles the requests of verifications that the limits had held back.
    pub(super) fn sends_held_back_probes(&mut self, case: &mut Case<'_>) {
        let common = case.left.take_all_to(|to, message| match message {
            Message::CommonBlocksRequest { inquiry, ids } => Some((to, *inquiry, ids)),
            _ => None,
        });
        for (node, inquiry, ids) in common {
            // Its question was right when it was held back.
            let muted = std::mem::replace(&mut case.report.muted, true);
            self.asked_common(case, node, inquiry, ids);
            case.report.muted = muted;
        }
        let headers = case.left.take_all_to(|to, message| match message {
            Message::BlocksRequest { inquiry, headers_only: true, .. } => Some((to, *inquiry)),
            _ => None,
        });
        for (node, inquiry) in headers {
            self.calls.note(case.step.local, node, Endpoint::Blocks);
            self.held_headers.insert(node, case.step.local);
            let probe = self.probes.get_mut(&node).filter(|probe| probe.inquiry.is_none() && probe.after < inquiry);
            if let Some(probe) = probe.filter(|probe| matches!(probe.asks, Asks::Headers { .. })) {
                probe.inquiry = Some(inquiry);
            }
        }
    }

    /// Ends verifications and requests to newcomers whose time is up.
    pub(super) fn probes_time_out(&mut self, case: &mut Case<'_>) {
        let late = self.probes.iter().filter(|(_, probe)| probe.until <= case.step.local).map(|(node, _)| *node);
        for node in late.collect::<Vec<_>>() {
            self.fails(case, node);
        }
        // A peer that has passed by a newer status is still dropped if an older request stays unanswered. There is no event,
        // since no ping fails.
        for LeftoverRequest { node, inquiry, .. } in
            self.left_open.extract_if(.., |open| open.until <= case.step.local).collect::<Vec<_>>()
        {
            match inquiry {
                // The limits had held it back: it may have been sent and answered since.
                None => self.peers.lose_track(),
                Some(_) if self.probes.contains_key(&node) => self.fails(case, node),
                Some(_) => self.forget_peer(case, node),
            }
        }
        let probes = &self.probes;
        self.newcomers.retain(|node, (asked, _)| probes.contains_key(node) || *asked + ANSWER > case.step.local);
        self.connecting.retain(|_, (_, begun)| *begun + CONNECTING > case.step.local);
    }
}
