//! The relay of the own delegate: rounds, the state of the network, and waking up in time. Source: consensus.md 2.

use super::{Peer, ping::PingFor};
use crate::actors::{
    Effect, Message, Role, SimTime,
    message::{NetworkState, NetworkStatus, RoundView},
};

impl Peer {
    pub(in crate::actors) fn round_view(&self) -> RoundView {
        RoundView {
            round: self.tree.applied(&self.tip).state.round().clone(),
            tip: self.tip.id(),
            tip_height: self.tip.height(),
            tip_slot: self.tree.slots().slot(self.tip.block().header.timestamp),
        }
    }

    pub(super) fn tell_round(&self, effects: &mut Vec<Effect>) {
        self.tell(Role::Delegate, Message::RoundChanged(self.round_view().into()), effects);
    }

    pub(super) fn ping_before_forging(&mut self, now: SimTime, effects: &mut Vec<Effect>) {
        if self.node_rules().forging_ping_ms == 0 {
            self.network_known(effects);
        } else if !self.pings.runs_for(PingFor::Forging) {
            self.ping_all(now, PingFor::Forging, effects);
        }
    }

    /// Reports the number of peers, by height and chain, to the delegate. Peers far behind on the same chain count as quorum.
    pub(super) fn network_known(&mut self, effects: &mut Vec<Effect>) {
        let (height, tip, reached) = (self.tip.height(), self.tip.id(), self.neighbours.len() as u32);
        let (mut in_quorum, mut level, mut over_height, mut forked) = (0, 0, 0, 0);
        for neighbour in self.neighbours.all() {
            let counted = match neighbour.height > height {
                true => &mut over_height,
                false if neighbour.verified.is_forked() => &mut forked,
                false => {
                    level += u32::from(neighbour.height == height);
                    &mut in_quorum
                }
            };
            *counted += 1;
        }
        let status = self.network_status(reached);
        let state = NetworkState { status, height, tip, reached, in_quorum, level, over_height, forked };
        self.tell(Role::Delegate, Message::NetworkState(state.into()), effects);
    }

    fn network_status(&mut self, reached: u32) -> NetworkStatus {
        if std::mem::take(&mut self.cold) {
            return NetworkStatus::ColdStart;
        }
        match self.rules().minimum_network_reach {
            None => NetworkStatus::Test,
            Some(_) if reached < self.rules().least_reach() => NetworkStatus::BelowMinimumPeers,
            Some(_) => NetworkStatus::Default,
        }
    }

    /// Returns true if fewer peers are connected than forging needs.
    pub(super) fn is_below_minimum(&self) -> bool {
        (self.neighbours.len() as u32) < self.rules().least_reach()
    }
}
