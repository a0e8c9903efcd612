//! What happened, in words.

use crate::{
    actors::{Event, NodeId, SimTime},
    ledger::{BlockTree, Link},
    protocol::{Block, PublicKey},
    sim::{NetworkEvent, world::DownCause},
};

/// Something that happened, kept to be told.
pub(super) struct Told {
    pub now: SimTime,
    pub node: Option<NodeId>,
    pub what: Happened,
}

/// What happened at a node, or to the network.
pub(super) enum Happened {
    Event(Event),
    Fault { kind: &'static str, began: bool },
    Down(DownCause),
    Up,
}

impl From<Event> for Happened {
    fn from(event: Event) -> Self {
        Self::Event(event)
    }
}

impl Told {
    /// Blocks that just come in are not; what makes one chain differ from another is.
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
            NetworkEvent::FaultBegan { kind, .. } => (None, Happened::Fault { kind, began: true }),
            NetworkEvent::FaultEnded { kind, .. } => (None, Happened::Fault { kind, began: false }),
            NetworkEvent::NodeDown { node, cause } => (Some(*node), Happened::Down(*cause)),
            NetworkEvent::NodeUp { node } => (Some(*node), Happened::Up),
            NetworkEvent::Sent { .. } | NetworkEvent::Lost { .. } | NetworkEvent::PoolLost { .. } => return None,
        };
        Some(Self { now, node, what })
    }

    /// One line: when, where, what.
    pub(super) fn in_words(&self, tree: &BlockTree) -> String {
        let seconds = self.now.micros() as f64 / 1e6;
        let at = self.node.map(|node| format!("{node} ")).unwrap_or_default();
        let what = match &self.what {
            Happened::Event(event) => event_in_words(event, tree),
            Happened::Fault { kind, began: true } => format!("fault '{kind}' begins"),
            Happened::Fault { kind, began: false } => format!("fault '{kind}' ends"),
            Happened::Down(DownCause::Crash) => "crashes".to_owned(),
            Happened::Down(DownCause::Pause) => "stands still".to_owned(),
            Happened::Up => "is up again".to_owned(),
        };
        format!("{seconds:.3} s, slot {}: {at}{what}", tree.slots().slot(self.now.seconds()))
    }
}

fn event_in_words(event: &Event, tree: &BlockTree) -> String {
    let block = |block: &Block| {
        let held = match block.transactions.len() {
            0 => String::new(),
            1 => format!(" with a {}", block.transactions[0].kind().name()),
            more => format!(" with {more} transactions"),
        };
        format!("block {} at height {}{held}", block.id, block.header.height)
    };
    let on = |link: &Link| format!("{} at height {}", link.id(), link.height());
    match event {
        Event::BlockForged(made) => format!("({}) forges {}", name(tree, &made.header.generator), block(made)),
        Event::BlockRefused(why) => format!("refuses: {why}"),
        Event::RolledBack { from, to, cause } => format!("rolls back from {} to {} ({cause})", on(from), on(to)),
        Event::HealthChecked { peers, forked } => {
            format!("checks its health: {forked} of {peers} peers are on other chains")
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
        Event::ForgingSuspended { reached, in_quorum } => {
            format!("does not forge: {in_quorum} of {reached} peers are on its chain")
        }
        Event::ForgerFailed { error } => format!("cannot forge: {error}"),
        Event::PeerRemoved(peer) => format!("gives up its peer {peer}"),
        other => format!("{other:?}"),
    }
}

fn name(tree: &BlockTree, key: &PublicKey) -> String {
    let genesis = tree.applied(tree.genesis());
    genesis.state.delegate_of(key).map_or_else(|| key.to_string(), |delegate| delegate.username.to_string())
}
