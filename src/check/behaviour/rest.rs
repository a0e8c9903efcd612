//! The deeds of a step that no rule demanded. Source: consensus.md 3, 6.

use super::{
    Case,
    limits::Endpoint,
    state::{PeerModel, Phase, name},
};
use crate::{
    actors::{Event, Message, SimTime},
    check::conduct,
};

impl PeerModel {
    /// Judges the deeds of the step that no rule demanded.
    pub(super) fn look_at_rest(&mut self, case: &mut Case<'_>) {
        self.rest_of_sync(case);
        self.rest_of_pings(case);
        for (to, message) in case.left.sent() {
            if to.node == self.id {
                let rule = match message {
                    Message::Round(_) | Message::RoundChanged(_) => &conduct::ROUND_TOLD,
                    Message::NetworkState(_) if self.peers.unsure => continue,
                    Message::NetworkState(_) => &conduct::COUNTED,
                    Message::BlockNotApplied { .. } | Message::AlreadyForged { .. } | Message::TipMoved { .. } => {
                        continue;
                    }
                    _ => &conduct::TO_POOL,
                };
                case.report.breach(rule, || format!("unasked, it told its own node {}", name(message)));
                continue;
            }
            if let Some(endpoint) = Endpoint::of(message) {
                self.calls.note(case.step.local, to.node, endpoint);
            }
            let rule = match message {
                Message::Status { .. } | Message::Blocks { .. } | Message::CommonBlocks { .. } | Message::Peers(_) => {
                    &conduct::UNASKED
                }
                Message::HungUp => &conduct::LIMITED,
                Message::Connected { .. } => &conduct::UNASKED,
                Message::Block(_) if self.vague => continue,
                Message::Block(_) => &conduct::PASSED_ON,
                Message::Transactions(_) => &conduct::BATCHED,
                Message::BlocksRequest { headers_only: false, .. } if self.sync.phase == Phase::Unknown => continue,
                Message::BlocksRequest { headers_only: false, .. } => &conduct::ASKED,
                Message::BlocksRequest { .. } | Message::CommonBlocksRequest { .. } => &conduct::SEARCHED,
                Message::PeersRequest => &conduct::DISCOVERED,
                Message::StatusRequest => &conduct::PINGED,
                _ => continue,
            };
            // These rules depend on the set of peers.
            let by_peers =
                [&conduct::ASKED, &conduct::SEARCHED, &conduct::PINGED].iter().any(|of| of.name == rule.name);
            if by_peers && self.peers.unsure {
                continue;
            }
            case.report.breach(rule, || format!("it sent {} to {to:?} where it had no cause", name(message)));
        }
        let mut applied = false;
        for event in case.left.events().collect::<Vec<_>>() {
            let rule = match event {
                Event::BlockReceived(_) | Event::BlockDisregarded(_) => &conduct::TAKEN,
                Event::BlockApplied(link) => {
                    // The model follows in any case.
                    self.tip = link.clone();
                    applied = true;
                    &conduct::TAKEN
                }
                Event::RolledBack { to, .. } => {
                    self.tip = to.clone();
                    applied = true;
                    &conduct::DEPTH
                }
                Event::PeerAdded(node) => {
                    self.peers.add(*node, self.tip.height(), self.pinged, case.step.local);
                    self.peers.lose_track();
                    let lately = SimTime::from_micros(case.step.local.micros().saturating_sub(70_000_000));
                    if self.calls.pinged_since(*node, lately) {
                        continue;
                    }
                    &conduct::ADDED
                }
                Event::PeerRemoved(node) => {
                    if self.waits_for(*node) {
                        self.lose_track(case);
                    }
                    self.peers.remove(*node);
                    self.drop_probe(*node);
                    self.sync.open.retain(|_, (asked, _)| asked != node);
                    if self.peers.unsure {
                        continue;
                    }
                    &conduct::DROPPED
                }
                Event::HealthChecked { .. } if self.peers.unsure => continue,
                Event::HealthChecked { .. } => &conduct::DOUBTED,
                _ => continue,
            };
            case.report.breach(rule, || format!("it told {event:?} where it had no cause"));
        }
        if applied {
            self.lose_track(case);
        }
    }
}
