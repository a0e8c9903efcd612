//! The story of a finding from a second run with messages: who supplied a block, and which blocks a node already had.
//!
//! A search does not observe messages, since there are thousands for each event. So the story of a finding that gets a file comes from
//! one more run, up to the instant at which the finding shows. The story of a finding at a node has the last events of this node. The
//! story of a finding of the network has the last event of each kind at each node: where every node stands, and why.

use super::{
    Finding,
    story::{StoryEntry, block_in_words, event_in_words, line},
};
use crate::{
    actors::{Event, Message, NodeId, SimTime},
    ledger::BlockTree,
    protocol::BlockId,
    sim::{NetworkEvent, Observer, Plan, fault::EventKind},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard},
};

/// The largest number of lines of a story.
const LINES: usize = 24;
/// The events of a tip that concern all nodes, for the story of where they stand.
const STANDING: [EventKind; 4] =
    [EventKind::BlockForged, EventKind::RolledBack, EventKind::ForgingSuspended, EventKind::HealthChecked];

/// The observer of a run. Clones share their observations.
#[derive(Clone)]
pub(super) struct Teller(Arc<Mutex<TellerState>>);

struct TellerState {
    tree: Arc<BlockTree>,
    /// The lines told, in order.
    lines: Vec<Line>,
    nodes: Vec<Node>,
}

struct Line {
    now: SimTime,
    /// The node and the kind of its event, or `None` for an event of the whole network.
    at: Option<(NodeId, EventKind)>,
    what: String,
}

#[derive(Clone, Default)]
struct Node {
    forged: BTreeSet<BlockId>,
    /// Blocks that were on its chain and left it.
    reverted: BTreeSet<BlockId>,
    /// The senders of a block, with the way and the time of each arrival.
    sent: BTreeMap<BlockId, Vec<(SimTime, NodeId, &'static str)>>,
}

impl Teller {
    pub(super) fn new(plan: &Plan) -> Self {
        let nodes = vec![Node::default(); plan.nodes.len()];
        Self(Arc::new(Mutex::new(TellerState { tree: plan.tree.clone(), lines: Vec::new(), nodes })))
    }

    /// The story of a finding, the last line last.
    pub(super) fn story(&self, finding: &Finding) -> Vec<String> {
        let heard = self.heard();
        let before = || heard.lines.iter().filter(|line| line.now <= finding.at);
        let chosen: Vec<&Line> = match finding.node {
            Some(node) => before().filter(|line| line.at.is_none_or(|(at, _)| at == node)).collect(),
            None => {
                let mut last: BTreeMap<Option<(NodeId, EventKind)>, usize> = BTreeMap::new();
                let mut kept = Vec::new();
                for line in before().filter(|line| line.at.is_none_or(|(_, kind)| STANDING.contains(&kind))) {
                    if let Some(place) = line.at.and_then(|_| last.insert(line.at, kept.len())) {
                        kept[place] = None;
                    }
                    kept.push(Some(line));
                }
                kept.into_iter().flatten().collect()
            }
        };
        let from = chosen.len().saturating_sub(LINES);
        let told = chosen[from..].iter().map(|told| line(told.now, &heard.tree, &told.what));
        told.collect()
    }

    fn heard(&self) -> MutexGuard<'_, TellerState> {
        self.0.lock().expect("no thread panics while holding it")
    }
}

impl TellerState {
    /// Returns the sender that a node had a block from, as far as one sent it.
    fn supplier(&self, now: SimTime, node: NodeId, id: &BlockId) -> String {
        let known = &self.nodes[node.0 as usize];
        if known.forged.contains(id) {
            return ", which it forged itself".to_owned();
        }
        let came = known.sent.get(id).into_iter().flatten().filter(|(at, ..)| *at <= now);
        came.max_by_key(|(at, ..)| *at).map(|(_, from, how)| format!(", {how} by {from}")).unwrap_or_default()
    }

    fn words(&mut self, now: SimTime, node: NodeId, event: &Event) -> Option<String> {
        let known = &mut self.nodes[node.0 as usize];
        match event {
            Event::BlockForged(block) => {
                known.forged.insert(block.id);
            }
            Event::BlockReverted(link) => {
                known.reverted.insert(link.id());
                return None;
            }
            Event::BlockApplied(link) => {
                let again = if known.reverted.contains(&link.id()) { " again" } else { "" };
                let from = self.supplier(now, node, &link.id());
                return Some(format!("takes {}{again}{from}", block_in_words(link.block())));
            }
            _ => {}
        }
        StoryEntry::is_worth_telling(event).then(|| event_in_words(event, &self.tree))
    }
}

impl Observer for Teller {
    fn observe(&mut self, now: SimTime, node: NodeId, event: &Event) {
        let mut heard = self.heard();
        if let Some(words) = heard.words(now, node, event) {
            let at = Some((node, EventKind::of(event)));
            heard.lines.push(Line { now, at, what: format!("{node} {words}") });
        }
    }

    fn observe_network(&mut self, now: SimTime, event: &NetworkEvent<'_>) {
        let mut heard = self.heard();
        let what = match event {
            NetworkEvent::Sent { from, to, message, arrives } => {
                let sent = &mut heard.nodes[to.node.0 as usize].sent;
                let mut note = |id, how| sent.entry(id).or_default().push((*arrives, from.node, how));
                match message {
                    Message::Block(block) if from.node != to.node => note(block.id, "pushed"),
                    Message::Body { block, .. } => note(block.id, "sent on request"),
                    Message::Blocks { blocks, .. } => blocks.iter().for_each(|block| note(block.id, "sent on request")),
                    _ => {}
                }
                return;
            }
            NetworkEvent::FaultBegan { kind, .. } => format!("fault '{kind}' begins"),
            NetworkEvent::FaultEnded { kind, .. } => format!("fault '{kind}' ends"),
            NetworkEvent::NodeDown { node, cause } => format!("{node} goes down ({})", cause.word()),
            NetworkEvent::NodeUp { node } => format!("{node} is up again"),
            NetworkEvent::PoolLost { node } => format!("{node} has lost its pool"),
            // A checked run never reverts to a snapshot.
            NetworkEvent::Lost { .. } | NetworkEvent::Moved { .. } => return,
        };
        heard.lines.push(Line { now, at: None, what });
    }

    fn wants_messages(&self) -> bool {
        true
    }
}
