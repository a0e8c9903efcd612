//! Events in words.

use crate::{
    actors::{Event, NodeId, SimTime},
    ledger::{BlockTree, Link},
    protocol::{Block, PublicKey},
    sim::{NetworkEvent, world::DownCause},
};

/// An event, stored for the story.
#[derive(Clone)]
pub(super) struct StoryEntry {
    pub now: SimTime,
    pub node: Option<NodeId>,
    pub what: StoryEvent,
}

/// An event at a node or of the network.
#[derive(Clone)]
pub(super) enum StoryEvent {
    Event(Event),
    Fault { kind: &'static str, began: bool },
    Down(DownCause),
    Up,
}

impl From<Event> for StoryEvent {
    fn from(event: Event) -> Self {
        Self::Event(event)
    }
}

impl StoryEntry {
    /// Returns true for an event that makes one chain differ from another. Blocks that merely arrive are not worth a line.
    pub(super) fn is_worth_telling(event: &Event) -> bool {
        matches!(
            event,
            Event::BlockForged(_)
                | Event::BlockRefused(_)
                | Event::RolledBack { .. }
                | Event::HealthChecked { .. }
                | Event::PoolRejected(_)
                | Event::PoolEvicted(_)
                | Event::PoolReplaced(_)
                | Event::ForgingSuspended { .. }
                | Event::ForgerFailed { .. }
                | Event::PeerRemoved(_)
        )
    }

    pub(super) fn of_network(now: SimTime, event: &NetworkEvent<'_>) -> Option<Self> {
        let (node, what) = match event {
            NetworkEvent::FaultBegan { kind, .. } => (None, StoryEvent::Fault { kind, began: true }),
            NetworkEvent::FaultEnded { kind, .. } => (None, StoryEvent::Fault { kind, began: false }),
            NetworkEvent::NodeDown { node, cause } => (Some(*node), StoryEvent::Down(*cause)),
            NetworkEvent::NodeUp { node } => (Some(*node), StoryEvent::Up),
            NetworkEvent::Sent { .. }
            | NetworkEvent::Lost { .. }
            | NetworkEvent::PoolLost { .. }
            | NetworkEvent::Moved { .. } => return None,
        };
        Some(Self { now, node, what })
    }

    /// One line: when, where, what.
    pub(super) fn in_words(&self, tree: &BlockTree) -> String {
        let at = self.node.map(|node| format!("{node} ")).unwrap_or_default();
        let what = match &self.what {
            StoryEvent::Event(event) => event_in_words(event, tree),
            StoryEvent::Fault { kind, began: true } => format!("fault '{kind}' begins"),
            StoryEvent::Fault { kind, began: false } => format!("fault '{kind}' ends"),
            StoryEvent::Down(DownCause::Crash) => "crashes".to_owned(),
            StoryEvent::Down(DownCause::Pause) => "stands still".to_owned(),
            StoryEvent::Up => "is up again".to_owned(),
        };
        line(self.now, tree, &format!("{at}{what}"))
    }
}

/// Returns a line with the time and the event.
pub(super) fn line(now: SimTime, tree: &BlockTree, what: &str) -> String {
    format!("{:.3} s, slot {}: {what}", now.micros() as f64 / 1e6, tree.slots().slot(now.seconds()))
}

/// A block: its id, its height, what it holds.
pub(super) fn block_in_words(block: &Block) -> String {
    let held = match block.transactions.len() {
        0 => String::new(),
        1 => format!(" with a {}", block.transactions[0].kind().name()),
        more => format!(" with {more} transactions"),
    };
    format!("block {} at height {}{held}", block.id, block.header.height)
}

/// Returns a share in numbers and in percent, cut off after a decimal: a number just below a threshold is not the threshold.
fn share(some: u32, of: u32) -> String {
    match (u64::from(some) * 1_000).checked_div(of.into()) {
        None => "no peers".to_owned(),
        Some(permille) if permille % 10 == 0 => format!("{some} of {of} peers = {} %", permille / 10),
        Some(permille) => format!("{some} of {of} peers = {}.{} %", permille / 10, permille % 10),
    }
}

/// An event, with the numbers of the rule that decided and the thresholds it decided by.
pub(super) fn event_in_words(event: &Event, tree: &BlockTree) -> String {
    let rules = tree.rules();
    let on = |link: &Link| format!("{} at height {}", link.id(), link.height());
    match event {
        Event::BlockForged(made) => format!("({}) forges {}", name(tree, &made.header.generator), block_in_words(made)),
        Event::BlockRefused(why) => format!("refuses: {why}"),
        Event::RolledBack { from, to, cause } => {
            let blocks = from.height().0 - to.height().0;
            let plural = if blocks == 1 { "" } else { "s" };
            format!("rolls back {blocks} block{plural}, from {} to {} ({cause})", on(from), on(to))
        }
        Event::HealthChecked { peers, forked } if !rules.node.fork_choice.counts_forked() => {
            format!("checks its health: {} forked", share(*forked, *peers))
        }
        Event::HealthChecked { peers, forked } => {
            let (share, needed) = (share(*forked, *peers), rules.node.forked_percent);
            format!("checks its health: {share} forked, {needed} % needed to roll back")
        }
        Event::PoolRejected(rejected) => {
            let reasons: Vec<String> = rejected
                .iter()
                .map(|one| format!("{} {}: {}", one.transaction.kind().name(), one.transaction.id(), one.error))
                .collect();
            format!("takes no {}", reasons.join("; "))
        }
        Event::PoolEvicted(one) => format!("gives up {} {} in its full pool", one.kind().name(), one.id()),
        Event::PoolReplaced(kept) => format!("begins its pool anew with {} transactions", kept.len()),
        Event::ForgingSuspended { reached, in_quorum } => match rules.minimum_network_reach {
            _ if !rules.node.fork_choice.asks_for_reach() => {
                format!("does not forge: {} on the chain", share(*in_quorum, *reached))
            }
            Some(least) if *reached < least => {
                format!("does not forge: {reached} peers reached, {least} needed to forge")
            }
            _ => {
                let (share, needed) = (share(*in_quorum, *reached), rules.quorum_percent);
                format!("does not forge: {share} on the chain, {needed} % needed to forge")
            }
        },
        Event::ForgerFailed { error } => format!("cannot forge: {error}"),
        Event::PeerRemoved(peer) => format!("gives up its peer {peer}"),
        other => format!("{other:?}"),
    }
}

fn name(tree: &BlockTree, key: &PublicKey) -> String {
    let genesis = tree.applied(tree.genesis());
    genesis.state.delegate_of(key).map_or_else(|| key.to_string(), |delegate| delegate.username.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ledger::{
            Rules,
            rules::{ForkChoiceRule, NodeRules},
        },
        protocol::crypto::CryptoMode,
        scenario::Testnet,
        sim::SeedTree,
    };

    #[test]
    fn numbers_stand_beside_the_thresholds_of_the_rules() {
        let testnet = Testnet::generate(SeedTree::new(1), 5, CryptoMode::Real);
        let tree = testnet.tree(Rules::reference()).expect("a generated genesis");
        let words = |event| event_in_words(&event, &tree);
        let suspended = |reached, in_quorum| words(Event::ForgingSuspended { reached, in_quorum });
        assert_eq!(suspended(7, 4), "does not forge: 4 of 7 peers = 57.1 % on the chain, 66 % needed to forge");
        assert_eq!(suspended(5, 3), "does not forge: 3 of 5 peers = 60 % on the chain, 66 % needed to forge");
        assert_eq!(suspended(3, 3), "does not forge: 3 peers reached, 5 needed to forge");
        let health = |peers, forked| words(Event::HealthChecked { peers, forked });
        assert_eq!(health(7, 3), "checks its health: 3 of 7 peers = 42.8 % forked, 50 % needed to roll back");
        assert_eq!(health(0, 0), "checks its health: no peers forked, 50 % needed to roll back");
        let solar = Rules {
            node: NodeRules { fork_choice: ForkChoiceRule::Solar, ..Rules::reference().node },
            ..Rules::reference()
        };
        let solar = testnet.tree(solar).expect("a generated genesis");
        let words = |event| event_in_words(&event, &solar);
        assert_eq!(
            words(Event::HealthChecked { peers: 7, forked: 3 }),
            "checks its health: 3 of 7 peers = 42.8 % forked"
        );
        let suspended = Event::ForgingSuspended { reached: 3, in_quorum: 2 };
        assert_eq!(words(suspended), "does not forge: 2 of 3 peers = 66.6 % on the chain");
    }

    #[test]
    fn only_the_reference_needs_a_share_of_forked_peers() {
        let testnet = Testnet::generate(SeedTree::new(1), 5, CryptoMode::Real);
        for fork_choice in [ForkChoiceRule::Ark4432, ForkChoiceRule::Solar, ForkChoiceRule::SolarTieBroken] {
            let node = NodeRules { fork_choice, ..Rules::reference().node };
            let tree = testnet.tree(Rules { node, ..Rules::reference() }).expect("a generated genesis");
            let words = event_in_words(&Event::HealthChecked { peers: 7, forked: 3 }, &tree);
            assert_eq!(words, "checks its health: 3 of 7 peers = 42.8 % forked", "{fork_choice:?}");
        }
    }
}
