//! How a peer verifies what another one claims. Source: consensus.md 6.

use super::{
    Known, Report,
    limits::Endpoint,
    node::PeerModel,
    peers::Verified,
    step::{Left, Step},
};
use crate::{
    actors::{Event, Message, NodeId, SimTime, message::Inquiry},
    check::conduct,
    ledger::Link,
    protocol::{Block, BlockId, Height},
};
use std::{sync::Arc, time::Duration};

/// A peer being verified.
pub(super) struct Probe {
    claimed: Arc<Block>,
    /// The own tip when the peer said where it stands.
    own: Arc<Link>,
    begun: SimTime,
    /// When time is up for the answer.
    until: SimTime,
    /// The question; none while the limits hold it back.
    inquiry: Option<Inquiry>,
    asks: Asks,
}

/// What a peer is asked.
enum Asks {
    /// For blocks at these heights; none of the heights above the last can be common.
    Common {
        heights: Vec<Height>,
        low: Height,
        high: Height,
    },
    Headers {
        common: Arc<Link>,
        last: Height,
    },
}

const ANSWER: Duration = Duration::from_secs(5);
const WHOLE: Duration = Duration::from_secs(60);

impl PeerModel {
    pub(super) fn hears_status(
        &mut self,
        known: &Known,
        report: &mut Report,
        step: &Step,
        left: &mut Left<'_>,
        from: NodeId,
        tip: &Arc<Block>,
    ) {
        self.peers.stands_at(from, tip.header.height);
        let awaited = match self.peers.has(from) {
            true => self.peers.is_awaited(from, self.pinged),
            false => self.newcomers.contains_key(&from),
        };
        if !awaited {
            return;
        }
        let (mine, his) = (self.tip.height(), tip.header.height);
        let link = known.tree.link(&tip.id);
        let one_chain = link.as_ref().is_some_and(|link| self.tip.descends_from(link) || link.descends_from(&self.tip));
        if one_chain {
            return self.passes(report, left, step.local, from, Verified::one_chain(mine, his));
        }
        if self.probes.contains_key(&from) {
            return;
        }
        let removed = left.has_event(|event| matches!(event, Event::PeerRemoved(node) if *node == from));
        let asks =
            left.sent().any(|(to, message)| to.node == from && matches!(message, Message::CommonBlocksRequest { .. }));
        if link.is_none() && (removed || (!self.peers.has(from) && !asks)) {
            // It claims a block that nobody has: whether that is signed is not looked at here.
            return self.fails(known, report, step, left, from);
        }
        let (low, high) = (Height(1), mine.min(his));
        let probe = Probe {
            claimed: tip.clone(),
            own: self.tip.clone(),
            begun: step.local,
            until: step.local + ANSWER,
            inquiry: None,
            asks: Asks::Common { heights: Vec::new(), low, high },
        };
        self.probes.insert(from, probe);
        self.asks_common(known, report, step, left, from);
    }

    /// A peer is no longer verified.
    pub(super) fn drop_probe(&mut self, node: NodeId) {
        let gone = self.probes.remove(&node);
        if gone.is_some_and(|probe| probe.inquiry.is_none() && matches!(probe.asks, Asks::Headers { .. })) {
            self.stale_probes.push(node);
        }
    }

    /// The next question of a verification is sent, or held back.
    fn asks_common(&mut self, known: &Known, report: &mut Report, step: &Step, left: &mut Left<'_>, node: NodeId) {
        let asked = left.take_to(|to, message| match message {
            Message::CommonBlocksRequest { inquiry, ids } if to == node => Some((*inquiry, ids)),
            _ => None,
        });
        let held = self.calls.may_be_full(step.local, node, Endpoint::CommonBlocks);
        report.judge(&conduct::SEARCHED, asked.is_some() || held || self.peers.unsure, || {
            format!("it did not ask {node} for common blocks")
        });
        if let Some((inquiry, ids)) = asked {
            self.asked_common(known, report, step, node, inquiry, ids);
        }
    }

    fn asked_common(
        &mut self,
        known: &Known,
        report: &mut Report,
        step: &Step,
        node: NodeId,
        asked: Inquiry,
        ids: &[BlockId],
    ) {
        self.calls.note(step.local, node, Endpoint::CommonBlocks);
        let Some(Probe { own, inquiry, asks: Asks::Common { heights, low, high }, .. }) = self.probes.get_mut(&node)
        else {
            return;
        };
        *inquiry = Some(asked);
        let range = *low..=*high;
        let place = |id: &BlockId| {
            let link = known.tree.link(id).filter(|link| own.descends_from(link))?;
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
        report.judge(&conduct::SEARCHED, holds, || {
            format!("it asked {node} for common blocks at {found:?}, which lie between {low} and {high}")
        });
    }

    #[expect(clippy::too_many_arguments, reason = "a step and an answer")]
    pub(super) fn hears_common(
        &mut self,
        known: &Known,
        report: &mut Report,
        step: &Step,
        left: &mut Left<'_>,
        from: NodeId,
        inquiry: Inquiry,
        common: Option<BlockId>,
    ) {
        let Some(probe) = self.probes.get_mut(&from).filter(|probe| probe.inquiry == Some(inquiry)) else { return };
        let Asks::Common { heights, low, high } = &mut probe.asks else { return };
        let own = probe.own.clone();
        let is_common = |height: &Height| own.ancestor(*height).map(|link| link.id()) == common;
        let place = heights.iter().position(is_common).filter(|_| common.is_some());
        let Some(place) = place.filter(|_| step.local < probe.begun + WHOLE) else {
            return self.fails(known, report, step, left, from);
        };
        *low = heights[place];
        *high = heights.get(place + 1).map_or(*high, |above| Height(above.0 - 1));
        let (low, high) = (*low, *high);
        probe.inquiry = None;
        probe.until = step.local + ANSWER;
        if low < high {
            return self.asks_common(known, report, step, left, from);
        }
        let Some(common) = own.ancestor(low).cloned() else { return };
        // Its headers up to the end of the round, or, by Q11, one more, must be signed by delegates of the round.
        let more = u32::from(known.rules().node.verify_next_round_block);
        let ends = known.tree.schedule().at(Height(low.0 + 1)).last();
        let last = probe.claimed.header.height.min(Height(ends.0 + more));
        if last <= low {
            let verified = Verified { mine: own.height(), his: probe.claimed.header.height, common: low };
            return self.passes(report, left, step.local, from, verified);
        }
        probe.asks = Asks::Headers { common, last };
        probe.until = step.local + WHOLE;
        let limit = last.0 - low.0;
        let asked = left.take_to(|to, message| match message {
            Message::BlocksRequest { inquiry, above, limit, headers_only: true } if to == from => {
                Some((*inquiry, *above, *limit))
            }
            _ => None,
        });
        let held = self.calls.may_be_full(step.local, from, Endpoint::Blocks);
        let holds = asked.map_or(held, |(_, above, asked)| (above, asked) == (low, limit));
        report.judge(&conduct::SEARCHED, holds, || {
            format!("it asked {from} for headers {asked:?}, expected {limit} above the common height {low}")
        });
        if let Some((inquiry, ..)) = asked {
            self.calls.note(step.local, from, Endpoint::Blocks);
            if let Some(probe) = self.probes.get_mut(&from) {
                probe.inquiry = Some(inquiry);
            }
        }
    }

    /// Whether these blocks are headers of a verification.
    #[expect(clippy::too_many_arguments, reason = "a step and an answer")]
    pub(super) fn hears_headers(
        &mut self,
        known: &Known,
        report: &mut Report,
        step: &Step,
        left: &mut Left<'_>,
        from: NodeId,
        inquiry: Inquiry,
        headers: &[Arc<Block>],
    ) -> bool {
        let Some(probe) = self.probes.get(&from).filter(|probe| probe.inquiry == Some(inquiry)) else { return false };
        let Asks::Headers { common, last } = &probe.asks else { return false };
        let applied = known.tree.applied(common);
        let members = &applied.state.round().members;
        let wanted: Vec<u32> = (common.height().0 + 1..=last.0).collect();
        let complete = headers.iter().map(|header| header.header.height.0).eq(wanted.iter().copied())
            && headers.iter().all(|block| members.iter().any(|member| member.public_key == block.header.generator))
            && step.local < probe.begun + WHOLE;
        // A block that nobody has taken in may be signed by nobody.
        let all_known = headers.iter().all(|block| known.tree.link(&block.id).is_some());
        let removed = left.has_event(|event| matches!(event, Event::PeerRemoved(node) if *node == from));
        let verified = Verified { mine: probe.own.height(), his: probe.claimed.header.height, common: common.height() };
        match complete && (all_known || !removed) {
            true => self.passes(report, left, step.local, from, verified),
            false => self.fails(known, report, step, left, from),
        }
        true
    }

    /// Questions of verifications that had been held back.
    pub(super) fn sends_held_back_probes(&mut self, known: &Known, step: &Step, left: &mut Left<'_>) {
        let common = left.take_all_to(|to, message| match message {
            Message::CommonBlocksRequest { inquiry, ids } => Some((to, *inquiry, ids)),
            _ => None,
        });
        for (node, inquiry, ids) in common {
            // What it asks was right when it was held back.
            self.asked_common(known, &mut Report { muted: true, ..Report::default() }, step, node, inquiry, ids);
        }
        let headers = left.take_all_to(|to, message| match message {
            Message::BlocksRequest { inquiry, headers_only: true, .. } => Some((to, *inquiry)),
            _ => None,
        });
        for (node, inquiry) in headers {
            self.calls.note(step.local, node, Endpoint::Blocks);
            self.held_headers.insert(node, step.local);
            // What has waited longest goes first.
            if let Some(place) = self.stale_probes.iter().position(|stale| *stale == node) {
                self.stale_probes.remove(place);
                continue;
            }
            let probe = self.probes.get_mut(&node).filter(|probe| probe.inquiry.is_none());
            if let Some(probe) = probe.filter(|probe| matches!(probe.asks, Asks::Headers { .. })) {
                probe.inquiry = Some(inquiry);
            }
        }
    }

    /// Verifications and questions to newcomers whose time is up.
    pub(super) fn probes_time_out(&mut self, known: &Known, report: &mut Report, step: &Step, left: &mut Left<'_>) {
        let late = self.probes.iter().filter(|(_, probe)| probe.until <= step.local).map(|(node, _)| *node);
        for node in late.collect::<Vec<_>>() {
            self.fails(known, report, step, left, node);
        }
        let probes = &self.probes;
        self.newcomers.retain(|node, (asked, _)| probes.contains_key(node) || *asked + ANSWER > step.local);
    }
}
