//! The newest events of the kinds that the page lists. They are kept whether or not anybody listens, so a page has them after it was
//! loaded again. The board holds them, so a view of the past has those that had happened by then.

use super::feed::Record;
use crate::{
    actors::{Event, NodeId, SimTime},
    ledger::Link,
    sim::{NetworkEvent, line::kind_of},
};
use imbl::Vector;
use std::sync::Arc;

/// The number of events that are kept.
pub const TOLD_MAX: usize = 500;
/// The kinds of events on nodes that are kept, beside rounds, and all that happens to the network but lost pools.
const KINDS: [&str; 5] = ["block.forged", "block.refused", "chain.rolled-back", "forger.suspended", "forger.failed"];

/// The events, the newest last. A copy costs nothing.
#[derive(Clone, Default)]
pub struct Told {
    /// The number of the last one.
    last: u64,
    events: Vector<Arc<Record>>,
}

impl Told {
    /// All that are kept, the newest last.
    pub fn events(&self) -> impl Iterator<Item = &Arc<Record>> {
        self.events.iter()
    }

    /// True if an event on a node is one that may be kept.
    pub fn wants(event: &Event) -> bool {
        matches!(event, Event::BlockApplied(link) if link.round_end().is_some()) || KINDS.contains(&kind_of(event))
    }

    /// Keeps an event on a node, if it is of such a kind.
    pub fn hear(&mut self, now: SimTime, node: NodeId, event: &Event) {
        match event {
            Event::BlockApplied(link) if link.round_end().is_some() => self.hear_round(now, link),
            _ if KINDS.contains(&kind_of(event)) => self.keep(Record::of_event(self.last + 1, now, node, event)),
            _ => {}
        }
    }

    /// Keeps what happened to the network. That a copy stands where it begins is no event.
    pub fn hear_network(&mut self, now: SimTime, event: &NetworkEvent<'_>) {
        if !matches!(event, NetworkEvent::PoolLost { .. } | NetworkEvent::Moved { begins: true, .. })
            && let Some(record) = Record::of_network(self.last + 1, now, event)
        {
            self.keep(record);
        }
    }

    /// A round begins once, however many nodes come to it.
    fn hear_round(&mut self, now: SimTime, after: &Arc<Link>) {
        let is_known = self.events.iter().rev().any(|record| record.round_after() == Some(after.id()));
        if !is_known {
            self.keep(Record::of_round(self.last + 1, now, after));
        }
    }

    fn keep(&mut self, record: Record) {
        self.last = record.number;
        self.events.push_back(Arc::new(record));
        if self.events.len() > TOLD_MAX {
            self.events.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ledger::Rules,
        protocol::crypto::CryptoMode,
        scenario::testnet::Testnet,
        sim::{DownCause, SeedTree},
    };

    fn at(seconds: u64) -> SimTime {
        SimTime::from_micros(seconds * 1_000_000)
    }

    #[test]
    fn the_newest_are_kept_and_a_copy_stays_as_it_was() {
        let tree =
            Testnet::generate(SeedTree::new(1), 3, CryptoMode::Modelled).tree(Rules::reference()).expect("a network");
        let slots = tree.slots();
        let mut told = Told::default();
        told.hear(at(8), NodeId(2), &Event::BlockForged(tree.genesis().block().clone()));
        told.hear(at(8), NodeId(2), &Event::BlockReceived(tree.genesis().block().clone()));
        told.hear_network(at(9), &NetworkEvent::PoolLost { node: NodeId(1) });
        told.hear_network(at(9), &NetworkEvent::NodeDown { node: NodeId(1), cause: DownCause::Crash });
        let then = told.clone();
        for second in 0..TOLD_MAX as u64 {
            told.hear_network(at(10 + second), &NetworkEvent::NodeUp { node: NodeId(1) });
        }
        let kinds = |told: &Told| told.events().map(|record| record.kind()).collect::<Vec<_>>();
        assert_eq!(kinds(&then), ["block.forged", "node.down"]);
        assert_eq!(kinds(&told), ["node.up"; TOLD_MAX]);
        let down = then.events().last().expect("there are two").json(&slots);
        assert_eq!(down, r#"{"at":9000000,"node":1,"kind":"node.down","cause":"crash"}"#);
    }

    #[test]
    fn a_round_begins_once() {
        let tree =
            Testnet::generate(SeedTree::new(1), 3, CryptoMode::Modelled).tree(Rules::reference()).expect("a network");
        let mut told = Told::default();
        for node in 0..3 {
            told.hear(at(8), NodeId(node), &Event::BlockApplied(tree.genesis().clone()));
        }
        assert_eq!(told.events().count(), usize::from(tree.genesis().round_end().is_some()));
    }
}
