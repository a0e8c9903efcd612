//! The newest events of the kinds that the page lists. They are retained with or without a reader, so a page that is loaded again
//! has them. They are part of the board, so a view of the past has the events until its instant.

use super::feed::Record;
use crate::{
    actors::{Event, NodeId, SimTime},
    ledger::Link,
    protocol::BlockId,
    sim::NetworkEvent,
};
use imbl::{OrdSet, Vector};
use std::sync::Arc;

/// The number of retained events.
pub(crate) const RECENT_EVENTS_MAX: usize = 500;

/// The events, the newest last. A copy costs nothing.
#[derive(Clone, Default)]
pub struct RecentEvents {
    /// The number of the last one.
    last: u64,
    events: Vector<Arc<Record>>,
    /// The blocks after which a round begins, as reported so far, also of events that are not retained any more.
    ends: OrdSet<BlockId>,
}

impl RecentEvents {
    /// The retained events, the newest last.
    pub fn events(&self) -> impl Iterator<Item = &Arc<Record>> {
        self.events.iter()
    }

    /// Returns true if an event on a node is of a retained kind: the end of a round, or one of those below.
    pub fn wants(event: &Event) -> bool {
        match event {
            Event::BlockApplied(link) => link.round_end().is_some(),
            Event::BlockForged(_)
            | Event::BlockRefused(_)
            | Event::RolledBack { .. }
            | Event::ForgingSuspended { .. }
            | Event::ForgerFailed { .. } => true,
            _ => false,
        }
    }

    /// Keeps an event on a node, if it [is wanted](Self::wants).
    pub fn hear(&mut self, now: SimTime, node: NodeId, event: &Event) {
        match event {
            _ if !Self::wants(event) => {}
            Event::BlockApplied(link) => self.hear_round(now, link),
            _ => self.keep(Record::of_event(self.last + 1, now, node, event)),
        }
    }

    /// Retains an event of the network, except a lost pool and the initial position of a copy.
    pub fn hear_network(&mut self, now: SimTime, event: &NetworkEvent<'_>) {
        if !matches!(event, NetworkEvent::PoolLost { .. } | NetworkEvent::Moved { begins: true, .. })
            && let Some(record) = Record::of_network(self.last + 1, now, event)
        {
            self.keep(record);
        }
    }

    /// Retains the beginning of a round once, although every node reports it.
    fn hear_round(&mut self, now: SimTime, after: &Arc<Link>) {
        if self.ends.insert(after.id()).is_none() {
            self.keep(Record::of_round(self.last + 1, now, after));
        }
    }

    fn keep(&mut self, record: Record) {
        self.last = record.number;
        self.events.push_back(Arc::new(record));
        if self.events.len() > RECENT_EVENTS_MAX {
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
        scenario::{Scenario, testnet::Testnet},
        sim::{DownCause, SeedTree, stage::inline::InlineStage},
    };
    use std::time::Duration;

    fn at(seconds: u64) -> SimTime {
        SimTime::from_micros(seconds * 1_000_000)
    }

    #[test]
    fn the_newest_are_kept_and_a_copy_stays_as_it_was() {
        let tree =
            Testnet::generate(SeedTree::new(1), 3, CryptoMode::Modelled).tree(Rules::reference()).expect("a network");
        let slots = tree.slots();
        let mut told = RecentEvents::default();
        told.hear(at(8), NodeId(2), &Event::BlockForged(tree.genesis().block().clone()));
        told.hear(at(8), NodeId(2), &Event::BlockReceived(tree.genesis().block().clone()));
        told.hear_network(at(9), &NetworkEvent::PoolLost { node: NodeId(1) });
        told.hear_network(at(9), &NetworkEvent::NodeDown { node: NodeId(1), cause: DownCause::Crash });
        let then = told.clone();
        for second in 0..RECENT_EVENTS_MAX as u64 {
            told.hear_network(at(10 + second), &NetworkEvent::NodeUp { node: NodeId(1) });
        }
        let kinds = |told: &RecentEvents| told.events().map(|record| record.kind()).collect::<Vec<_>>();
        assert_eq!(kinds(&then), ["block.forged", "node.down"]);
        assert_eq!(kinds(&told), ["node.up"; RECENT_EVENTS_MAX]);
        let down = then.events().last().expect("there are two").json(&slots);
        assert_eq!(down, r#"{"at":9000000,"node":1,"kind":"node.down","cause":"crash"}"#);
    }

    /// Nodes come to the end of a round one after the other, and again where they went back: other events come between.
    #[test]
    fn a_round_begins_once_however_often_a_node_comes_to_it() {
        let text = "version = 1\nrounds = 3\ncrypto = \"modelled\"\n[network]\ndelegates = 4\n";
        let scenario = Scenario::parse(text, "rounds.toml".as_ref()).expect("it is valid");
        let plan = scenario.plan(&scenario.testnet(SeedTree::new(1)), SeedTree::new(1));
        let mut stage = InlineStage::new(&plan, Vec::new());
        stage.run_until(plan.start + Duration::from_secs(8 * 10));
        let tip = stage.world().tips().winning().clone();
        let chain: Vec<_> = std::iter::successors(Some(tip), |link| link.parent()).collect();
        let ends: Vec<_> = chain.iter().rev().filter(|link| link.round_end().is_some()).collect();
        assert!(ends.len() >= 2, "or nothing is shown");
        let mut told = RecentEvents::default();
        for (second, node) in (0..).zip([0, 1, 2, 0]) {
            for link in chain.iter().rev() {
                told.hear(at(second), NodeId(node), &Event::BlockApplied(link.clone()));
                told.hear(at(second), NodeId(node), &Event::BlockForged(link.block().clone()));
            }
        }
        let rounds: Vec<_> = told.events().filter_map(|record| record.round_after()).collect();
        assert_eq!(rounds, ends.iter().map(|link| link.id()).collect::<Vec<_>>());
        let is_first = |record: &Record| record.json(&plan.tree.slots()).starts_with("{\"at\":0,");
        assert!(told.events().all(|record| record.round_after().is_none() || is_first(record)), "when the first came");
        // A node that was isolated for long comes to them after their events have given way to others.
        for second in 0..RECENT_EVENTS_MAX as u64 {
            told.hear_network(at(10 + second), &NetworkEvent::NodeUp { node: NodeId(1) });
        }
        for link in chain.iter().rev() {
            told.hear(at(600), NodeId(3), &Event::BlockApplied(link.clone()));
        }
        assert!(told.events().all(|record| record.round_after().is_none()));
    }
}
