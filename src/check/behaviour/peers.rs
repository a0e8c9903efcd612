//! The connections of a peer, and the state of each of these peers. Source: consensus.md 2.2, 6.

use crate::{
    actors::{NodeId, SimTime},
    protocol::Height,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// The result of verifying a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct VerifiedTip {
    pub mine: Height,
    pub his: Height,
    pub common: Height,
}

impl VerifiedTip {
    pub(super) fn one_chain(mine: Height, his: Height) -> Self {
        Self { mine, his, common: mine.min(his) }
    }

    /// Each has blocks that the other has not.
    pub(super) fn is_forked(self) -> bool {
        self.common != self.mine && self.common != self.his
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Peer {
    pub height: Height,
    pub verified: VerifiedTip,
    /// Number of the last ping it has passed.
    pub answered: u32,
    /// The time at which it was added.
    pub since: SimTime,
}

/// The peers of a node.
#[derive(Clone, Default)]
pub(super) struct Peers {
    pub all: BTreeMap<NodeId, Peer>,
    /// True if a peer may have come or gone unseen.
    pub unsure: bool,
    /// Between these instants a peer may go unseen.
    unseen: Option<(SimTime, SimTime)>,
    /// The number of the ping after which the model knows the set of peers again.
    known_from: Option<u32>,
}

impl Peers {
    pub(super) fn connected(given: &BTreeSet<NodeId>, height: Height) -> Self {
        let peer =
            Peer { height, verified: VerifiedTip::one_chain(height, height), answered: 0, since: SimTime::default() };
        Self { all: given.iter().map(|node| (*node, peer)).collect(), ..Self::default() }
    }

    /// Marks the set of peers as unknown from now on.
    pub(super) fn lose_track(&mut self) {
        (self.unsure, self.known_from) = (true, None);
    }

    /// Notes that a peer may go unseen, by `at` at the latest.
    pub(super) fn unsure_from(&mut self, at: SimTime) {
        // Or a little sooner: it may have waited for its turn.
        let from = SimTime::from_micros(at.micros().saturating_sub(10_000_000));
        let until = at + Duration::from_secs(1);
        let (first, last) = self.unseen.unwrap_or((from, until));
        self.unseen = Some((first.min(from), last.max(until)));
    }

    pub(super) fn doubt(&mut self, now: SimTime) {
        if self.unseen.is_some_and(|(from, _)| now >= from) {
            self.lose_track();
            self.unseen = self.unseen.filter(|(_, until)| now < *until);
        }
    }

    /// Takes the set of peers from a ping of all peers. Once that ping is over, the model knows their states
    /// too.
    pub(super) fn are(&mut self, nodes: &BTreeSet<NodeId>, own: Height, ping: u32, now: SimTime) {
        self.all.retain(|node, _| nodes.contains(node));
        for node in nodes.iter().filter(|node| !self.has(**node)).copied().collect::<Vec<_>>() {
            self.add(node, own, ping - 1, now);
        }
        self.known_from = Some(ping);
    }

    /// A ping of all peers is over.
    pub(super) fn settled(&mut self, ping: u32) {
        if self.known_from == Some(ping) {
            (self.unsure, self.known_from) = (false, None);
        }
    }

    /// Lowers the numbers of the last passed pings to at most `last`.
    pub(super) fn recount(&mut self, last: u32) {
        self.all.values_mut().for_each(|peer| peer.answered = peer.answered.min(last));
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn has(&self, node: NodeId) -> bool {
        self.all.contains_key(&node)
    }

    pub(super) fn numbers(&self) -> impl Iterator<Item = NodeId> {
        self.all.keys().copied()
    }

    /// Returns the peers on the own chain.
    pub(super) fn friendly(&self) -> BTreeSet<NodeId> {
        self.all.iter().filter(|(_, peer)| !peer.verified.is_forked()).map(|(node, _)| *node).collect()
    }

    pub(super) fn stands_at(&mut self, node: NodeId, height: Height) {
        if let Some(peer) = self.all.get_mut(&node) {
            peer.height = height;
        }
    }

    /// Returns true if a ping of this peer is not settled.
    pub(super) fn is_awaited(&self, node: NodeId, last: u32) -> bool {
        self.all.get(&node).is_some_and(|peer| peer.answered < last)
    }

    pub(super) fn add(&mut self, node: NodeId, height: Height, answered: u32, since: SimTime) {
        let verified = VerifiedTip::one_chain(height, height);
        self.all.insert(node, Peer { height, verified, answered, since });
    }

    pub(super) fn remove(&mut self, node: NodeId) -> bool {
        self.all.remove(&node).is_some()
    }

    /// Returns the median height of the peers, the upper one of two.
    pub(super) fn network_height(&self) -> Height {
        let mut heights: Vec<Height> = self.all.values().map(|peer| peer.height).collect();
        heights.sort_unstable();
        heights.get(heights.len() / 2).copied().unwrap_or_default()
    }

    pub(super) fn forked(&self) -> usize {
        self.all.values().filter(|peer| peer.verified.is_forked()).count()
    }

    pub(super) fn in_subnet_of(&self, node: NodeId) -> u32 {
        let net = |node: NodeId| [node.address()[0], node.address()[1], node.address()[2]];
        self.numbers().filter(|peer| net(*peer) == net(node)).count() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_there_is_known_again_once_a_ping_of_all_is_over_and_nobody_can_have_gone_unseen() {
        let at = |seconds: u64| SimTime::from_micros(1_000_000 * seconds);
        let set = |numbers: &[u32]| -> BTreeSet<NodeId> { numbers.iter().copied().map(NodeId).collect() };
        let mut peers = Peers::connected(&set(&[1, 2, 3]), Height(5));
        peers.unsure_from(at(100));
        peers.doubt(at(80));
        assert!(!peers.unsure, "no peer has gone yet");
        peers.doubt(at(95));
        assert!(peers.unsure);
        peers.are(&set(&[2, 3, 4]), Height(5), 7, at(96));
        peers.doubt(at(97));
        peers.settled(7);
        assert!(peers.unsure, "one may have gone since");
        peers.doubt(at(102));
        peers.are(&set(&[2, 4]), Height(5), 8, at(103));
        assert!(peers.is_awaited(NodeId(4), 7) && !peers.is_awaited(NodeId(4), 6));
        peers.settled(8);
        peers.doubt(at(110));
        assert!(!peers.unsure);
        assert_eq!(peers.numbers().collect::<BTreeSet<_>>(), set(&[2, 4]));
    }
}
