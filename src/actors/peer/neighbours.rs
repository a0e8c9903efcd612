//! The peers a node is connected to. A record takes 40 bytes, for a thousand nodes on a full mesh hold a million.

use super::TABLED;
use crate::{actors::NodeId, protocol::Height};
use prefetch_index::prefetch_index;
use std::{ops::Range, sync::Arc};

/// So many records are worth fetching to find one.
const FEW: usize = 10;
/// No place in the table.
const NOWHERE: u8 = u8::MAX;

/// The peers of a node, ascending by number.
pub(super) struct Neighbours {
    own: NodeId,
    all: Vec<Neighbour>,
    /// Where the record of each node lies; empty where numbers are too high for such a table.
    places: Vec<u8>,
    /// The addresses the node was given, its seeds; shared with those who were given the same.
    given: Arc<[NodeId]>,
    /// Their numbers as told to others, made when asked for.
    numbers: Option<Arc<[NodeId]>>,
}

/// A peer as last heard of.
#[derive(Clone, Debug)]
pub(super) struct Neighbour {
    pub node: NodeId,
    /// Its height, by the last of its answers.
    pub height: Height,
    pub verified: Verified,
    /// Number of the last ping of all peers that it has answered, or that it came in after.
    pub answered: u32,
    /// Its last two calls, the latest last: enough to know that it is within its limits.
    pub calls: [Call; 2],
}

/// A call of a peer: in hundredths of a second, and for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub at: u32,
    /// The number of its endpoint; [`Call::COUNTED`] of one that needs no more counting, or that there never was.
    pub what: u8,
}

impl Call {
    pub const COUNTED: u8 = u8::MAX;
    pub const NONE: Self = Self { at: 0, what: Self::COUNTED };
}

/// What verifying a peer's tip found, at that time (`PeerVerificationResult`). Source: consensus.md 6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Verified {
    pub my_height: Height,
    pub his_height: Height,
    pub highest_common: Height,
}

impl Verified {
    /// Both are on one chain, this node at one height, the other at another.
    pub(super) fn one_chain(my_height: Height, his_height: Height) -> Self {
        Self { my_height, his_height, highest_common: my_height.min(his_height) }
    }

    /// Both have blocks the other has not.
    pub(super) fn is_forked(self) -> bool {
        self.highest_common != self.my_height && self.highest_common != self.his_height
    }
}

impl Neighbour {
    pub(super) fn new(node: NodeId, verified: Verified, answered: u32) -> Self {
        Self { node, height: verified.his_height, verified, answered, calls: [Call::NONE; 2] }
    }
}

impl Neighbours {
    /// Connected to all it was given, who stand at one height with it.
    pub(super) fn connected(own: NodeId, given: Arc<[NodeId]>, height: Height) -> Self {
        let verified = Verified::one_chain(height, height);
        let others = given.iter().filter(|node| **node != own);
        let mut all: Vec<Neighbour> = others.map(|node| Neighbour::new(*node, verified, 0)).collect();
        all.sort_by_key(|neighbour| neighbour.node);
        all.dedup_by_key(|neighbour| neighbour.node);
        let mut neighbours = Self { all, ..Self::alone(own, given) };
        neighbours.rearranged();
        neighbours
    }

    /// Connected to nobody yet.
    pub(super) fn alone(own: NodeId, given: Arc<[NodeId]>) -> Self {
        Self { own, all: Vec::new(), places: Vec::new(), given, numbers: None }
    }

    pub(super) fn all(&self) -> &[Neighbour] {
        &self.all
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Neither connected nor given an address.
    pub(super) fn knows_nobody(&self) -> bool {
        self.all.is_empty() && self.given.iter().all(|node| *node == self.own)
    }

    pub(super) fn has(&self, node: NodeId) -> bool {
        self.place(node).is_some()
    }

    pub(super) fn get_mut(&mut self, node: NodeId) -> Option<&mut Neighbour> {
        let place = self.place(node)?;
        Some(&mut self.all[place])
    }

    /// Has the processor fetch the record of a node, or, if they are but few, all records.
    pub(super) fn prefetch(&self, node: NodeId) {
        let guess = self.guess(node);
        if guess < self.all.len() {
            prefetch_index(&self.all, guess);
        } else if self.all.len() <= FEW {
            (0..self.all.len()).for_each(|place| prefetch_index(&self.all, place));
        }
    }

    /// Most networks are a full mesh, where a node's place is its number, or the one before if it comes after the own.
    fn guess(&self, node: NodeId) -> usize {
        (node.0 - u32::from(node > self.own)) as usize
    }

    fn place(&self, node: NodeId) -> Option<usize> {
        let guess = self.guess(node);
        if self.all.get(guess).is_some_and(|neighbour| neighbour.node == node) {
            return Some(guess);
        }
        match self.places.is_empty() {
            true => self.all.binary_search_by_key(&node, |neighbour| neighbour.node).ok(),
            false => {
                self.places.get(node.0 as usize).filter(|place| **place != NOWHERE).map(|place| usize::from(*place))
            }
        }
    }

    /// Peers have come or gone.
    fn rearranged(&mut self) {
        self.numbers = None;
        self.places.clear();
        if let Some(last) = self.all.last().filter(|last| last.node.0 < TABLED) {
            self.places.resize(last.node.0 as usize + 1, NOWHERE);
            for (place, neighbour) in self.all.iter().enumerate() {
                self.places[neighbour.node.0 as usize] = place as u8;
            }
        }
    }

    /// The peer has answered something, and said how high it is.
    pub(super) fn stands_at(&mut self, node: NodeId, height: Height) {
        if let Some(neighbour) = self.get_mut(node) {
            neighbour.height = height;
        }
    }

    /// Adds a peer, or replaces what was known of it.
    pub(super) fn put(&mut self, neighbour: Neighbour) {
        if let Some(known) = self.get_mut(neighbour.node) {
            *known = neighbour;
            return;
        }
        let place = self.all.partition_point(|other| other.node < neighbour.node);
        self.all.insert(place, neighbour);
        self.rearranged();
    }

    pub(super) fn remove(&mut self, node: NodeId) -> Option<Neighbour> {
        let place = self.place(node)?;
        let neighbour = self.all.remove(place);
        self.rearranged();
        Some(neighbour)
    }

    /// Addresses the node was given and is not connected to.
    pub(super) fn dropped(&self) -> Vec<NodeId> {
        self.given.iter().copied().filter(|node| *node != self.own && !self.has(*node)).collect()
    }

    pub(super) fn was_given(&self, node: NodeId) -> bool {
        self.given.contains(&node)
    }

    /// The peers in the /24 network of a node.
    pub(super) fn in_subnet_of(&self, node: NodeId) -> u32 {
        let subnet: Range<usize> = 0..3;
        let wanted = node.address();
        let near = |other: &&Neighbour| other.node.address()[subnet.clone()] == wanted[subnet.clone()];
        self.all.iter().filter(near).count() as u32
    }

    /// All of them as told to whoever asks.
    pub(super) fn numbers(&mut self) -> Arc<[NodeId]> {
        if let Some(numbers) = &self.numbers {
            return numbers.clone();
        }
        let same = self.given.len() - usize::from(self.given.contains(&self.own)) == self.all.len()
            && self.given.iter().all(|node| *node == self.own || self.has(*node));
        let numbers = if same { self.given.clone() } else { self.all.iter().map(|neighbour| neighbour.node).collect() };
        self.numbers = Some(numbers.clone());
        numbers
    }

    /// The first of them in the order they are stored in: from the own number on, so that not all nodes have one first.
    pub(super) fn first_stored(&self) -> Option<&Neighbour> {
        let place = self.all.partition_point(|neighbour| neighbour.node < self.own);
        self.all.get(place).or_else(|| self.all.first())
    }

    /// The median of their heights, the upper one of two; 0 without peers.
    pub(super) fn network_height(&self) -> Height {
        let mut heights: Vec<Height> = self.all.iter().map(|neighbour| neighbour.height).collect();
        if heights.is_empty() {
            return Height::default();
        }
        let middle = heights.len() / 2;
        *heights.select_nth_unstable(middle).1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_record_is_small_enough_for_a_thousand_nodes_on_a_mesh() {
        assert!(size_of::<Neighbour>() <= 40, "{} bytes", size_of::<Neighbour>());
    }

    /// Against a map, with numbers for which there is a table and with such for which there is none.
    #[test]
    fn a_record_is_found_whoever_has_come_and_gone() {
        for high in [9, 300] {
            let verified = Verified::one_chain(Height(1), Height(1));
            let mut neighbours = Neighbours::alone(NodeId(3), Arc::new([]));
            let mut known = BTreeSet::new();
            for (step, number) in [5, 0, high, 7, 5, 1, 7, high, 2, 0].into_iter().enumerate() {
                let node = NodeId(number);
                match known.insert(node) {
                    true => neighbours.put(Neighbour::new(node, verified, 0)),
                    false => {
                        known.remove(&node);
                        assert_eq!(neighbours.remove(node).map(|gone| gone.node), Some(node), "step {step}");
                    }
                }
                for node in (0..=310).map(NodeId).filter(|node| *node != NodeId(3)) {
                    let found = neighbours.get_mut(node).map(|neighbour| neighbour.node);
                    assert_eq!(found, known.contains(&node).then_some(node), "step {step}");
                }
            }
        }
    }

    #[test]
    fn forked_means_that_each_has_what_the_other_has_not() {
        let verified = |my, his, common| Verified {
            my_height: Height(my),
            his_height: Height(his),
            highest_common: Height(common),
        };
        assert!(!verified(10, 12, 10).is_forked(), "he is ahead of me");
        assert!(!verified(12, 10, 10).is_forked(), "he is behind me");
        assert!(verified(12, 12, 10).is_forked());
    }

    #[test]
    fn five_nodes_share_a_subnet_and_addresses_differ() {
        let mut addresses: Vec<[u8; 4]> = (0..20_000).map(|node| NodeId(node).address()).collect();
        assert_eq!((addresses[0], addresses[5]), ([198, 18, 0, 1], [198, 18, 1, 1]));
        let subnet = |address: &[u8; 4]| [address[0], address[1], address[2]];
        let first = addresses[..2_560].iter().filter(|address| subnet(address) == [198, 19, 7]).count();
        assert_eq!(first, 5);
        addresses.sort_unstable();
        addresses.dedup();
        assert_eq!(addresses.len(), 20_000);
    }
}
