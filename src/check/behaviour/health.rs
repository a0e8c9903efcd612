//! The doubts of a peer about its chain, and the depth of the rollback that follows. Source: consensus.md 3.5, 8 Q17.

use super::{
    Case, ModelContext,
    limits::Endpoint,
    state::{PeerModel, Phase, PingFor},
};
use crate::{
    actors::{Event, Message, NodeId, Role, RollbackCause, SimTime},
    check::conduct,
    ledger::{Link, rules::RollbackTarget},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

impl PeerModel {
    pub(super) fn health_known(&mut self, case: &mut Case<'_>) {
        let told = case.left.take_event(|event| match event {
            Event::HealthChecked { peers, forked } => Some((*peers as usize, *forked as usize)),
            _ => None,
        });
        let cause = self.may_doubt(case.step.local);
        case.report.judge(&conduct::DOUBTED, cause || self.peers.unsure, || {
            "it checks its health without four wake-ups in vain or a third of a round missed".to_owned()
        });
        self.doubts_by = None;
        let (peers, forked) = (self.peers.len(), self.peers.forked());
        let rules = &case.known.rules().node;
        case.report.judge(&conduct::HEALED, told == Some((peers, forked)) || self.peers.unsure, || {
            format!("it counted {told:?} and should count {:?}", (peers, forked))
        });
        let (peers, forked) = told.unwrap_or((peers, forked));
        let is_forked = peers > 0 && 100 * forked >= rules.forked_percent as usize * peers;
        let went = case.left.take_event(|event| match event {
            Event::RolledBack { from, to, cause: RollbackCause::Forked } => Some((from, to)),
            _ => None,
        });
        if !is_forked || self.sync.phase == Phase::Recovering {
            case.report.judge(&conduct::HEALED, went.is_none(), || {
                format!("{forked} of {peers} peers are on other chains, and it left its own")
            });
            if self.sync.phase == Phase::Halted {
                self.rests(case);
            }
            if let Some((_, to)) = went {
                self.rolled_back(case, to);
            }
            return;
        }
        let right = self.right_depth(case.known, went.map(|(_, to)| to));
        case.report.judge(&conduct::HEALED, right || self.peers.unsure, || {
            let to = went.map_or(self.tip.height(), |(_, to)| to.height());
            format!(
                "{forked} of {peers} peers are on other chains, and it went from height {} to {to}",
                self.tip.height()
            )
        });
        if let Some((_, to)) = went {
            self.rolled_back(case, to);
        }
        self.recovers(case);
    }

    /// Returns true if a health check's rollback ends where it should.
    pub(super) fn right_depth(&self, known: &ModelContext, to: Option<&Arc<Link>>) -> bool {
        let rules = &known.rules().node;
        let (from, to) = (self.tip.height().0, to.map_or(self.tip.height().0, |to| to.height().0));
        let targets: Vec<u32> = match rules.rollback_target {
            // The contract does not define which peer is the first.
            RollbackTarget::FirstPeer => self.peers.all.values().map(|peer| peer.verified.common.0).collect(),
            RollbackTarget::LargestGroup => {
                let mut groups: BTreeMap<u32, usize> = BTreeMap::new();
                for peer in self.peers.all.values().filter(|peer| peer.verified.is_forked()) {
                    *groups.entry(peer.verified.common.0).or_default() += 1;
                }
                let most = groups.values().max().copied().unwrap_or_default();
                groups.into_iter().find(|(_, size)| *size == most).map(|(height, _)| height).into_iter().collect()
            }
        };
        targets.into_iter().any(|target| match from.saturating_sub(target) {
            0 if rules.zero_rollback_is_random => self.is_random_depth(known, from, to),
            blocks => from - to == blocks.min(rules.rollback_max).min(from - 1),
        })
    }

    pub(super) fn is_random_depth(&self, known: &ModelContext, from: u32, to: u32) -> bool {
        let rules = &known.rules().node;
        let (least, most) = (rules.random_rollback_min, rules.random_rollback_max.max(rules.random_rollback_min));
        let depth = from.saturating_sub(to);
        depth <= most.min(rules.rollback_max) && (depth >= least.min(rules.rollback_max) || to == 1)
    }

    /// Moves the model to `to`, a lower block of its chain, and judges the messages to pool and delegate.
    pub(super) fn rolled_back(&mut self, case: &mut Case<'_>, to: &Arc<Link>) {
        self.tip = to.clone();
        let told = case.left.take_own(Role::Pool, |message| match message {
            Message::TipMoved { tip } => Some(tip),
            _ => None,
        });
        case.report.judge(&conduct::TO_POOL, told.is_some_and(|tip| tip.is(to)), || {
            format!("it rolled back to {to:?} and its pool heard {told:?}")
        });
        self.tells_round(case, to);
    }

    /// Begins recovery, after a rollback or if there was nothing to roll back: all downloads are void, and the node pings its
    /// peers.
    pub(super) fn recovers(&mut self, case: &mut Case<'_>) {
        self.sync.void();
        self.pings_all(case, PingFor::Recovery);
    }

    /// Handles pings that no rule of the step demanded. They are the last part of a health check.
    pub(super) fn rest_of_pings(&mut self, case: &mut Case<'_>) {
        let asked = case.left.sent().filter(|(_, message)| matches!(message, Message::StatusRequest));
        let asked: BTreeSet<NodeId> = asked.map(|(to, _)| to.node).collect();
        let pings_peer = asked.iter().any(|node| self.peers.has(*node));
        let doubts = self.may_doubt(case.step.local);
        let is_asked = |node: NodeId| asked.contains(&node) || self.may_be_pinged_enough(case.step.local, node);
        let all_pinged = pings_peer && self.peers.numbers().all(is_asked);
        // A node that was named before it became a peer is called nevertheless. No answer names a node that was a peer already.
        let finds = self.asked_for_peers.filter(|at| case.step.local < *at + Duration::from_secs(15));
        let is_old =
            |at: SimTime| asked.iter().any(|node| self.peers.all.get(node).is_some_and(|peer| peer.since <= at));
        let old = finds.is_some_and(is_old);
        if pings_peer && doubts && (finds.is_none() || (all_pinged && old)) {
            self.pings_all(case, PingFor::Health);
        } else if pings_peer && finds.is_some() {
            if doubts && all_pinged {
                self.peers.lose_track();
            }
            self.takes_pings(case, true);
        }
        // Either there was no peer to ping, or the limits held back a whole ping, so that the model did not see it begin.
        let is_full = |peer| self.may_be_pinged_enough(case.step.local, peer);
        let blind = self.peers.unsure || self.peers.numbers().all(is_full);
        if blind && case.left.has_event(|event| matches!(event, Event::HealthChecked { .. })) {
            self.pings.retain(|ping| ping.purpose != PingFor::Health);
            self.health_known(case);
        }
        // The node calls other nodes whenever a peer names them.
        self.begins_connections(case);
        // A peer that the step dropped may have been pinged before that.
        let called = case.left.take_all_to(|to, message| {
            (matches!(message, Message::StatusRequest) && !self.peers.has(to)).then_some(to)
        });
        for node in called {
            self.calls.note(case.step.local, node, Endpoint::Status);
            self.newcomers.insert(node, (case.step.local, false));
        }
        self.settle(case);
        // A health check and a first discovery begin with requests for peers.
        if doubts || self.sync.phase == Phase::Starting {
            self.asks_for_peers(case);
        }
    }

    /// Returns true if it may be checking its health.
    pub(super) fn may_doubt(&self, now: SimTime) -> bool {
        now <= self.doubts_until || self.doubts_by.is_some() || !self.sync.counted || self.sync.phase == Phase::Unknown
    }
}
