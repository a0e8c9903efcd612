//! Pushed blocks: the blocks that a peer accepts, and the peers to which it relays them. Source: consensus.md 3.1 to 3.3,
//! 6.

use super::{
    Case, ModelContext,
    limits::Endpoint,
    state::{GRACE, PeerModel, Phase, PingBlock, chains},
};
use crate::{
    actors::{Event, Message, NodeId, SimTime},
    check::conduct,
    ledger::{Link, rules::Gossip},
    protocol::{Block, BlockId, Slot},
};
use std::{collections::BTreeSet, sync::Arc, time::Duration};

const WAIT: Duration = Duration::from_millis(500);
const HOPS: u32 = 4;

impl PeerModel {
    /// A node that takes a block in has caught up.
    fn is_started(&mut self) {
        self.started = Some(true);
        if self.sync.phase == Phase::Starting {
            self.sync.phase = Phase::Idle;
        }
    }

    fn pass_around(&mut self, now: SimTime, block: &Arc<Block>, seen: u32) {
        self.vague = false;
        let (id, block) = (block.id, block.clone());
        self.passing = Some(PingBlock { id, block, seen: (seen, seen), first: now, last: now });
    }

    /// Judges a block that another peer pushes.
    pub(super) fn block_pushed(&mut self, case: &mut Case<'_>, block: &Arc<Block>, sure: bool) {
        let received = case.left.take_event(|event| match event {
            Event::BlockReceived(one) if one.id == block.id => Some(()),
            _ => None,
        });
        let disregarded = case.left.take_event(|event| match event {
            Event::BlockDisregarded(one) if one.id == block.id => Some(()),
            _ => None,
        });
        let said = received.or(disregarded).is_some();
        let passing = self.passing.as_mut().filter(|passing| passing.id == block.id);
        let slots = case.known.tree.slots();
        let crowded = !block.transactions.is_empty()
            && block.transactions.len()
                > case.known.tree.config().milestones.at(self.tip.height()).block.max_transactions;
        if let Some(passing) = passing.filter(|_| !crowded) {
            passing.seen = (passing.seen.0 + u32::from(sure), passing.seen.1 + 1);
            passing.last = case.step.local;
            case.report
                .judge(&conduct::TAKEN, !said, || format!("block {} is known and was taken once more", block.id));
            return;
        }
        let fits = chains(case.known, &self.tip, block) && !crowded;
        if !fits {
            case.report.judge(&conduct::TAKEN, !said, || {
                format!("block {} does not follow {:?} and was taken in", block.id, self.tip)
            });
            return;
        }
        let early = slots.slot(block.header.timestamp) > slots.slot(case.step.local.seconds());
        // The outcome shows whether a call at the edge of a limit was heard.
        let refused = case.left.has_event(|event| matches!(event, Event::BlockRefused(_)));
        if !sure && !said && !refused {
            return;
        }
        if !early || case.known.rules().node.ping_before_slot_check {
            self.pass_around(case.step.local, block, 1);
        }
        if early {
            case.report.judge(&conduct::TAKEN, !said, || {
                format!("block {} is of a slot that has not begun and was taken in", block.id)
            });
            return;
        }
        match self.started {
            None if received.is_some() => self.is_started(),
            None => {}
            Some(true) => case.report.judge(&conduct::TAKEN, received.is_some() && disregarded.is_none(), || {
                format!("block {} follows its tip and was not taken in", block.id)
            }),
            Some(false) => case.report.judge(&conduct::TAKEN, received.is_none(), || {
                format!("it has not caught up and took block {}", block.id)
            }),
        }
        if received.is_some() {
            self.works_on(case, block);
        }
    }

    /// Judges a block that the node's own delegate hands in.
    pub(super) fn block_forged(&mut self, case: &mut Case<'_>, block: &Arc<Block>) {
        if case.report.muted {
            // The fate of a block at a relay that deviates is not known.
            self.vague = true;
            self.passing = None;
        }
        let slots = case.known.tree.slots();
        let slot = slots.slot(block.header.timestamp);
        let ends = slots.start(Slot(slot.0 + 1)).0;
        let least = case.known.rules().node.least_seconds_left;
        let in_time = slots.slot(case.step.local.seconds()) == slot && ends - case.step.local.seconds().0 >= least;
        let received = case.left.take_event(|event| match event {
            Event::BlockReceived(one) if one.id == block.id => Some(()),
            _ => None,
        });
        let disregarded = case.left.take_event(|event| match event {
            Event::BlockDisregarded(one) if one.id == block.id => Some(()),
            _ => None,
        });
        if !case.report.muted && (in_time || case.known.rules().node.ping_before_slot_check) {
            self.pass_around(case.step.local, block, 0);
        }
        if self.started.is_none() && received.is_some() {
            self.is_started();
        }
        let wanted = in_time && self.started != Some(false);
        let unsure = self.started.is_none() && disregarded.is_some();
        case.report.judge(&conduct::TAKEN, received.is_some() == wanted || unsure, || {
            format!(
                "its own delegate's block came {} and was {}taken in",
                if in_time { "in time" } else { "too late" },
                if received.is_some() { "" } else { "not " }
            )
        });
        if received.is_some() {
            self.works_on(case, block);
        }
    }

    /// Judges whether an accepted block is applied, and follows its relay.
    fn works_on(&mut self, case: &mut Case<'_>, block: &Arc<Block>) {
        let applied = self.takes_applied(case, block);
        let valid = is_valid(case.known, &self.tip, block);
        let own_tip = self.tip.id() == block.id;
        case.report.judge(&conduct::TAKEN, applied == (valid || own_tip) || (applied && own_tip), || {
            format!("block {} at height {} fits and was not applied", block.id, block.header.height)
        });
        let discarded =
            !applied && case.left.has_own_message(|message| matches!(message, Message::AlreadyForged { .. }));
        if applied || discarded {
            self.passes_on(case, block, !discarded);
        }
    }

    /// Returns true if this block was applied. The model then follows.
    pub(super) fn takes_applied(&mut self, case: &mut Case<'_>, block: &Arc<Block>) -> bool {
        if !chains(case.known, &self.tip, block) {
            return false;
        }
        let link = case.left.take_event(|event| match event {
            Event::BlockApplied(link) if link.id() == block.id => Some(link),
            _ => None,
        });
        if let Some(link) = link {
            self.moves(case, link);
        }
        link.is_some()
    }

    /// Judges the relay of a block of the running slot. The block that is being passed around goes on after a wait, to a number of peers
    /// that depends on how often it was seen. Any other block of the slot goes to all peers at once. Blocks of other slots go to none.
    pub(super) fn passes_on(&mut self, case: &mut Case<'_>, block: &Arc<Block>, sure: bool) {
        let slots = case.known.tree.slots();
        let running = slots.start(slots.slot(case.step.local.seconds()));
        let of_running_slot = block.header.timestamp >= running;
        let passing = self.passing.as_ref().filter(|passing| passing.id == block.id);
        let all = self.peers.len();
        let count = match (case.known.rules().gossip, passing) {
            _ if !of_running_slot || self.started == Some(false) => 0,
            (Gossip::Once, Some(passing)) if passing.seen.1 == 0 => all,
            // The model does not judge nodes that announce blocks or draw the receivers of a push.
            (Gossip::Once | Gossip::Announce | Gossip::Push(_), _) => 0,
            (Gossip::Reference, None) => all,
            (Gossip::Reference, Some(passing)) => {
                if passing.seen.0 < HOPS && self.started.is_some() && sure {
                    let waited = passing.last.since(passing.first);
                    self.waves.push_back((block.id, case.step.local + WAIT.saturating_sub(waited)));
                }
                0
            }
        };
        let sure = sure && self.started.is_some();
        self.sends_block(case, block, (count, count), sure);
    }

    /// Judges the sending of a block to `least` to `most` random peers.
    fn sends_block(&mut self, case: &mut Case<'_>, block: &Block, (least, most): (usize, usize), sure: bool) {
        let to = case.left.take_all_to(|to, message| match message {
            Message::Block(sent) if sent.id == block.id => Some(to),
            _ => None,
        });
        while self.pushes.front().is_some_and(|at| *at + Duration::from_secs(4) + GRACE < case.step.local) {
            self.pushes.pop_front();
        }
        // After two recent pushes, a missing receiver is no breach: the limits may hold back any message.
        let held = self.pushes.len() >= 2;
        if most > 0 || !to.is_empty() {
            self.pushes.push_back(case.step.local);
        }
        let distinct: BTreeSet<NodeId> = to.iter().copied().collect();
        let peers = distinct.iter().all(|node| self.peers.has(*node));
        let fits = distinct.len() == to.len() && peers && to.len() <= most && (to.len() >= least || held);
        case.report.judge(&conduct::PASSED_ON, fits || !sure || self.peers.unsure, || {
            format!(
                "block {} went to {to:?} of {} peers, expected {least} to {most} of them",
                block.id,
                self.peers.len()
            )
        });
        to.iter().for_each(|node| self.calls.note(case.step.local, *node, Endpoint::Block));
    }

    /// Judges the relay of a block at the end of its wait.
    pub(super) fn passes_on_again(&mut self, case: &mut Case<'_>, id: &BlockId) {
        let timely = case.known.timely[self.id.0 as usize];
        let is_due = |at: SimTime| !timely || at <= case.step.local + GRACE;
        let due = self.waves.iter().position(|(block, at)| block == id && is_due(*at));
        let waited = due.and_then(|place| self.waves.remove(place));
        let Some(passing) = self.passing.as_ref().filter(|passing| passing.id == *id) else { return };
        if waited.is_none() {
            return;
        }
        let count = |seen: u32| (HOPS.saturating_sub(seen) as usize * self.peers.len()).div_ceil(HOPS as usize);
        let (block, range) = (passing.block.clone(), (count(passing.seen.1), count(passing.seen.0)));
        self.sends_block(case, &block, range, true);
    }

    /// Judges the blocks whose relay is overdue.
    pub(super) fn judge_waves(&mut self, case: &mut Case<'_>) {
        let now = case.step.local;
        let late = self.waves.iter().position(|(_, at)| now > *at + GRACE);
        if let Some((id, at)) = late.and_then(|place| self.waves.remove(place)) {
            let passing = self.passing.as_ref().filter(|passing| passing.id == id && passing.seen.1 < HOPS);
            let due = passing.is_some() && self.peers.len() > 0 && !self.peers.unsure && !self.vague;
            case.report.judge(&conduct::PASSED_ON, !due, || format!("block {id} should have been passed on at {at}"));
        }
    }
}

/// Returns true if some node has applied the block on top of `tip`.
fn is_valid(known: &ModelContext, tip: &Arc<Link>, block: &Block) -> bool {
    known.tree.link(&block.id).is_some_and(|link| link.parent().is_some_and(|parent| parent.is(tip)))
}
