//! The peers a node is connected to. A record takes 32 bytes: a thousand nodes on a full mesh hold a million of them. With
//! thousands of nodes, each message waits until the sender's record, half a cache line, is loaded.

use super::{TABLED, endpoint::Endpoint, limits};
use crate::{
    actors::{
        NodeId, SimTime,
        prefetch::{self, Prefetch},
    },
    ledger::codec::{LoadError, Loader, Save, Saver, saved},
    protocol::Height,
};
use smallvec::SmallVec;
use std::{mem, ops::Range, sync::Arc, time::Duration};

/// The largest number of peers whose numbers are stored in the node itself.
const FEW: usize = 8;
/// Marks a node without a record in the table.
const NOWHERE: u8 = u8::MAX;

/// The peers of a node, ascending by number. The fields that find the record of a node come first.
#[derive(Clone)]
#[repr(C)]
pub(super) struct Neighbours {
    all: Box<[Neighbour]>,
    numbers: SmallVec<[NodeId; FEW]>,
    own: NodeId,
    /// The place of each node's record; empty where numbers are too high for such a table.
    places: Vec<u8>,
    /// The addresses the node was given, its seeds; shared with the nodes that were given the same.
    given: Arc<[NodeId]>,
    /// The numbers as sent to other nodes. The list is made when it is first requested.
    told: Option<Arc<[NodeId]>>,
}

/// The record of a peer.
#[derive(Clone, Debug)]
#[repr(align(32))]
pub(super) struct Neighbour {
    pub node: NodeId,
    /// Its height, by the last of its answers.
    pub height: Height,
    pub verified: VerificationResult,
    /// The number of the last ping of all peers that it has answered, or that was sent before it became a peer.
    pub answered: u32,
    /// Its last two calls, the latest last: enough to know that it is within its limits.
    pub calls: [Call; 2],
}

/// A call of a peer: the endpoint in the lowest bits, and above them the time in hundredths of a second, which starts again at 0
/// every 62 days.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Call(u32);

impl Call {
    /// The number of bits for an endpoint.
    const WHAT: u32 = 3;
    /// The value that names no endpoint.
    const COUNTED: u32 = (1 << Self::WHAT) - 1;
    const MICROS: u64 = 10_000;
    /// No call.
    pub(super) const NONE: Self = Self(Self::COUNTED);

    pub(super) fn new(now: SimTime, what: Endpoint) -> Self {
        Self(((now.micros() / Self::MICROS) as u32) << Self::WHAT | what as u32)
    }

    /// The same call, marked as counted.
    pub(super) fn counted(self) -> Self {
        Self(self.0 | Self::COUNTED)
    }

    /// The endpoint that it was for; `None` if the call is already counted, or there was none.
    pub(super) fn what(self) -> Option<Endpoint> {
        Endpoint::from_number(self.0 & Self::COUNTED)
    }

    /// The time since another.
    pub(super) fn since(self, other: Self) -> Duration {
        let hundredths = (self.0 >> Self::WHAT).wrapping_sub(other.0 >> Self::WHAT) << Self::WHAT >> Self::WHAT;
        Duration::from_micros(u64::from(hundredths) * Self::MICROS)
    }
}

/// The result of verifying a peer's tip, at that time (`PeerVerificationResult`). Source: consensus.md 6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerificationResult {
    pub my_height: Height,
    pub his_height: Height,
    pub highest_common: Height,
}

impl VerificationResult {
    /// The result for a peer on the same chain.
    pub(super) fn one_chain(my_height: Height, his_height: Height) -> Self {
        Self { my_height, his_height, highest_common: my_height.min(his_height) }
    }

    /// Returns true if both have blocks that the other lacks.
    pub fn is_forked(self) -> bool {
        self.highest_common != self.my_height && self.highest_common != self.his_height
    }
}

impl Neighbour {
    pub(super) fn new(node: NodeId, verified: VerificationResult, answered: u32) -> Self {
        Self { node, height: verified.his_height, verified, answered, calls: [Call::NONE; 2] }
    }
}

impl Prefetch<NodeId> for Neighbours {
    /// Fetches the record of a node.
    fn fetch(&self, node: NodeId) {
        let guess = self.guess(node);
        if guess < self.all.len() {
            prefetch::line(&self.all, guess);
        } else if let Ok(place) = self.numbers.binary_search(&node) {
            prefetch::line(&self.all, place);
        }
    }
}

impl Neighbours {
    /// The bytes it takes beside its own size, without data that it shares with others.
    pub(super) fn bytes(&self) -> usize {
        let numbers = if self.numbers.spilled() { size_of_val(&*self.numbers) } else { 0 };
        size_of_val(&*self.all) + self.places.len() + numbers
    }

    /// The peers of a node that is connected to all given nodes. All are at the same height as the node.
    pub(super) fn connected(own: NodeId, given: Arc<[NodeId]>, height: Height) -> Self {
        let verified = VerificationResult::one_chain(height, height);
        let others = given.iter().filter(|node| **node != own);
        // An allocator may leave a table where it is when it gets smaller, with all the room that it had while it grew.
        let mut all = Vec::with_capacity(given.len());
        all.extend(others.map(|node| Neighbour::new(*node, verified, 0)));
        all.sort_by_key(|neighbour| neighbour.node);
        all.dedup_by_key(|neighbour| neighbour.node);
        let mut neighbours = Self::alone(own, given);
        neighbours.arrange(all);
        neighbours
    }

    /// The peers of a node that has no connection yet.
    pub(super) fn alone(own: NodeId, given: Arc<[NodeId]>) -> Self {
        Self { own, all: Box::default(), numbers: SmallVec::new(), places: Vec::new(), given, told: None }
    }

    /// The numbers of all.
    pub(super) fn numbers(&self) -> &[NodeId] {
        &self.numbers
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

    /// Returns true if the node is neither connected nor given an address.
    pub(super) fn knows_nobody(&self) -> bool {
        self.all.is_empty() && self.given.iter().all(|node| *node == self.own)
    }

    pub(super) fn has(&self, node: NodeId) -> bool {
        self.place(node).is_some()
    }

    #[inline]
    pub(super) fn get_mut(&mut self, node: NodeId) -> Option<&mut Neighbour> {
        let place = self.place(node)?;
        Some(&mut self.all[place])
    }

    pub(super) fn get(&self, node: NodeId) -> Option<&Neighbour> {
        self.place(node).map(|place| &self.all[place])
    }

    /// The likely index of a node. On a full mesh, as most networks are, it is the node's number, less one if it comes after the own.
    fn guess(&self, node: NodeId) -> usize {
        (node.0 - u32::from(node > self.own)) as usize
    }

    #[inline]
    fn place(&self, node: NodeId) -> Option<usize> {
        let guess = self.guess(node);
        if self.all.get(guess).is_some_and(|neighbour| neighbour.node == node) {
            return Some(guess);
        }
        self.search(node)
    }

    fn search(&self, node: NodeId) -> Option<usize> {
        // For a high number the table is not even read.
        match node.0 < TABLED && !self.places.is_empty() {
            false => self.numbers.binary_search(&node).ok(),
            true => {
                self.places.get(node.0 as usize).filter(|place| **place != NOWHERE).map(|place| usize::from(*place))
            }
        }
    }

    /// Replaces all records after peers were added or removed.
    fn arrange(&mut self, all: Vec<Neighbour>) {
        self.all = all.into();
        // If it were collected, its capacity would be the next power of two.
        self.numbers = SmallVec::with_capacity(self.all.len());
        self.numbers.extend(self.all.iter().map(|neighbour| neighbour.node));
        self.told = None;
        self.places.clear();
        if let Some(last) = self.numbers.last().filter(|last| last.0 < TABLED) {
            self.places.resize(last.0 as usize + 1, NOWHERE);
            for (place, node) in self.numbers.iter().enumerate() {
                self.places[node.0 as usize] = place as u8;
            }
        }
    }

    /// Records the height that a peer reported in an answer.
    pub(super) fn stands_at(&mut self, node: NodeId, height: Height) {
        if let Some(neighbour) = self.get_mut(node) {
            neighbour.height = height;
        }
    }

    /// Adds a peer, or replaces its record.
    pub(super) fn put(&mut self, neighbour: Neighbour) {
        if let Some(known) = self.get_mut(neighbour.node) {
            *known = neighbour;
            return;
        }
        let place = self.numbers.partition_point(|other| *other < neighbour.node);
        let known = mem::take(&mut self.all).into_vec();
        let mut all = Vec::with_capacity(known.len() + 1);
        let mut known = known.into_iter();
        all.extend(known.by_ref().take(place));
        all.push(neighbour);
        all.extend(known);
        self.arrange(all);
    }

    pub(super) fn remove(&mut self, node: NodeId) -> Option<Neighbour> {
        let place = self.place(node)?;
        let mut all = mem::take(&mut self.all).into_vec();
        let neighbour = all.remove(place);
        self.arrange(all);
        Some(neighbour)
    }

    /// Addresses the node was given and is not connected to.
    pub(super) fn dropped(&self) -> Vec<NodeId> {
        self.given.iter().copied().filter(|node| *node != self.own && !self.has(*node)).collect()
    }

    pub(super) fn was_given(&self, node: NodeId) -> bool {
        self.given.contains(&node)
    }

    /// The number of peers in the /24 network of a node.
    pub(super) fn in_subnet_of(&self, node: NodeId) -> u32 {
        let subnet: Range<usize> = 0..3;
        let wanted = node.address();
        let near = |other: &&NodeId| other.address()[subnet.clone()] == wanted[subnet.clone()];
        self.numbers.iter().filter(near).count() as u32
    }

    /// Returns the numbers for the answer to a peer's request.
    pub(super) fn told(&mut self) -> Arc<[NodeId]> {
        if let Some(told) = &self.told {
            return told.clone();
        }
        let same = self.given.len() - usize::from(self.given.contains(&self.own)) == self.all.len()
            && self.given.iter().all(|node| *node == self.own || self.has(*node));
        let told = if same { self.given.clone() } else { self.numbers[..].into() };
        self.told = Some(told.clone());
        told
    }

    /// All peers in the order in which they are stored: from the own number on, so that not all nodes have the same one first.
    pub(super) fn in_storage(&self) -> impl Iterator<Item = &Neighbour> {
        let place = self.numbers.partition_point(|node| *node < self.own);
        self.all[place..].iter().chain(&self.all[..place])
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

saved!(struct Neighbours { all, numbers, own, places, given, told });
saved!(struct Call(when_and_what));
saved!(struct VerificationResult { my_height, his_height, highest_common });

impl Save for Neighbour {
    fn save(&self, out: &mut Saver) {
        let Self { node, height, verified, answered, calls } = self;
        node.save(out);
        height.save(out);
        verified.save(out);
        answered.save(out);
        // The next call after a while counts as a first one.
        let over = |now| Call::new(SimTime::from_micros(now), Endpoint::Any).since(calls[1]) > limits::NO_CALL_COUNTS;
        match out.ahead_of().is_some_and(over) {
            true => [Call::NONE; 2].save(out),
            false => calls.save(out),
        }
    }

    fn load(from: &mut Loader) -> Result<Self, LoadError> {
        Ok(Self {
            node: Save::load(from)?,
            height: Save::load(from)?,
            verified: Save::load(from)?,
            answered: Save::load(from)?,
            calls: Save::load(from)?,
        })
    }
}

impl Save for SmallVec<[NodeId; FEW]> {
    fn save(&self, out: &mut Saver) {
        out.list(self.len(), self);
    }

    fn load(from: &mut Loader) -> Result<Self, LoadError> {
        from.list()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn a_record_is_small_enough_for_a_thousand_nodes_on_a_mesh() {
        assert!(size_of::<Neighbour>() <= 32, "{} bytes", size_of::<Neighbour>());
    }

    #[test]
    fn a_call_tells_what_for_and_how_long_before_another() {
        let day = 24 * 3_600 * 1_000_000_u64;
        for begin in [0, 61 * day, 62 * day + 11_000_000, 10_000 * day] {
            let (first, second) = (SimTime::from_micros(begin), SimTime::from_micros(begin + 2_345_670_000));
            let (first, second) = (Call::new(first, Endpoint::Blocks), Call::new(second, Endpoint::Status));
            assert_eq!(second.since(first), Duration::from_millis(2_345_670));
            assert_eq!((first.what(), second.what()), (Some(Endpoint::Blocks), Some(Endpoint::Status)));
            assert_eq!((second.counted().what(), second.counted().since(first)), (None, second.since(first)));
        }
        assert_eq!(Call::NONE.what(), None);
    }

    /// Against a map, with numbers for which there is a table and with such for which there is none.
    #[test]
    fn a_record_is_found_whoever_has_come_and_gone() {
        for high in [9, 300] {
            let verified = VerificationResult::one_chain(Height(1), Height(1));
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

    proptest! {
        /// The neighbours answer as a list of them does, after any additions and removals and for any own number.
        #[test]
        fn peers_are_counted_as_a_list_of_them_is(
            own in 0..24u32, turns in prop::collection::vec((0..24u32, 0..40u32), 1..60),
        ) {
            let mut neighbours = Neighbours::alone(NodeId(own), Arc::new([]));
            let mut list = BTreeMap::new();
            for (number, height) in turns.into_iter().filter(|(number, _)| *number != own) {
                let node = NodeId(number);
                if list.remove(&node).is_some() {
                    neighbours.remove(node);
                } else {
                    let mut one = Neighbour::new(node, VerificationResult::one_chain(Height(1), Height(1)), 0);
                    one.height = Height(height);
                    neighbours.put(one);
                    list.insert(node, height);
                }
                let first = list.range(NodeId(own)..).chain(list.range(..NodeId(own))).next().map(|(node, _)| *node);
                prop_assert_eq!(neighbours.in_storage().next().map(|first| first.node), first);
                let mut heights: Vec<u32> = list.values().copied().collect();
                heights.sort_unstable();
                let median = heights.get(heights.len() / 2).copied().unwrap_or(0);
                prop_assert_eq!(neighbours.network_height(), Height(median));
                let told: BTreeSet<NodeId> = neighbours.told().iter().copied().collect();
                prop_assert_eq!(told, list.keys().copied().collect::<BTreeSet<_>>());
                for node in (0..30).map(NodeId) {
                    let near = list.keys().filter(|other| other.address()[..3] == node.address()[..3]).count();
                    prop_assert_eq!(neighbours.in_subnet_of(node), near as u32);
                    prop_assert_eq!(neighbours.has(node), list.contains_key(&node));
                }
            }
        }
    }

    #[test]
    fn forked_means_that_each_has_what_the_other_has_not() {
        let verified = |my, his, common| VerificationResult {
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
