//! A model of an honest node, held against what every node of a run does.
//!
//! ```text
//!   an actor hears something ──► what it sends, answers and tells until the next one is heard   (a step)
//!                                   │
//!          peer: answers, limits, blocks, pings, verification, downloads, discovery    behaviour/{node,peers,sync,blocks}
//!          pool: what it takes, drops, keeps, chooses                                  behaviour/pool, behaviour/admission
//!          delegate: whether it asks, forges, and what                                 behaviour/forging
//! ```
//!
//! The model is written from the contract. It knows what a node was told and when by the node's own clock, so that a
//! node that is slow, skewed or late is judged by what it knew. What the contract leaves to chance (which peers, how deep)
//! is taken from what the node did, and held against the range allowed. Where the model cannot know what a node knows, it
//! says nothing: a message that the node's own limits may hold back, a call at the edge of a limit. What must happen by a
//! time is not asked of nodes that a fault makes slow or stops, or whose clocks a fault sets.
//!
//! An actor that a fault makes deviate is not judged while it does; the other actors of its node are.

mod admission;
mod blocks;
mod forging;
mod limits;
mod node;
mod peers;
mod pool;
mod step;
mod sync;
#[cfg(test)]
mod tests;
mod verification;

use super::{Conduct, Seen, Sometimes};
use crate::{
    actors::{ActorId, Event, NodeId, Role, SimTime},
    ledger::{BlockTree, Rules},
    sim::{Act, Observer, Plan},
};
use forging::DelegateModel;
use node::PeerModel;
use pool::PoolModel;
use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard},
};
use step::{Cause, Did, Step};

/// Watches the conduct of all nodes of one run. Clones share what was seen.
#[derive(Clone)]
pub struct Behaviour(Arc<Mutex<Model>>);

/// A rule of conduct that a node broke.
#[derive(Clone, Debug)]
pub struct Breach {
    pub conduct: &'static Conduct,
    pub at: SimTime,
    pub node: NodeId,
    /// What the node did or did not do, and what was expected.
    pub what: String,
}

/// What the model of a node may look up.
pub(super) struct Known {
    tree: Arc<BlockTree>,
    /// By node: nothing delays it or its clock, so what is due by a time is asked of it.
    timely: Vec<bool>,
}

impl Known {
    fn rules(&self) -> &Rules {
        self.tree.rules()
    }
}

/// What was found, and how often each rule was judged.
#[derive(Default)]
pub(super) struct Report {
    breaches: Vec<Breach>,
    judged: Sometimes,
    at: SimTime,
    node: Option<NodeId>,
    /// The actor deviates: its state is followed and its conduct not judged.
    muted: bool,
}

impl Report {
    /// Judges a rule once; `what` says what breaks it.
    fn judge(&mut self, conduct: &'static Conduct, holds: bool, what: impl FnOnce() -> String) {
        if self.muted {
            return;
        }
        self.judged.count(conduct.name);
        if !holds && self.breaches.iter().all(|known| known.conduct.name != conduct.name) {
            let node = self.node.expect("a step of a node is being judged");
            self.breaches.push(Breach { conduct, at: self.at, node, what: what() });
        }
    }

    /// A breach.
    fn breach(&mut self, conduct: &'static Conduct, what: impl FnOnce() -> String) {
        self.judge(conduct, false, what);
    }

    /// The model no longer knows what a node knows.
    fn lose_track(&mut self, why: &'static str) {
        self.judged.count(why);
    }
}

struct Model {
    known: Known,
    nodes: Vec<Node>,
    step: Option<Step>,
    report: Report,
}

/// The three actors of a node, and how many faults make each deviate.
struct Node {
    peer: PeerModel,
    pool: PoolModel,
    delegate: DelegateModel,
    deviating: [u32; 3],
}

impl Behaviour {
    /// A watch over the nodes of a plan. What is due by a time is not asked of the `untimely`.
    pub fn new(plan: &Plan, untimely: &BTreeSet<NodeId>) -> Self {
        let network = plan.network();
        let node = |index: usize| {
            let id = NodeId(index as u32);
            let key = plan.nodes[index].forger.as_ref().map(|keys| *keys.public());
            // A delegate that is switched off by rounds is not asked to use its slots.
            let key = key.filter(|_| plan.nodes[index].offline.is_empty());
            Node {
                peer: PeerModel::connected(id, &plan.tip, network.links().given(id), plan.start),
                pool: PoolModel::new(&plan.tip),
                delegate: DelegateModel::new(key),
                deviating: [0; 3],
            }
        };
        let count = plan.nodes.len();
        let timely = (0..count).map(|index| !untimely.contains(&NodeId(index as u32))).collect();
        Self(Arc::new(Mutex::new(Model {
            known: Known { tree: plan.tree.clone(), timely },
            nodes: (0..count).map(node).collect(),
            step: None,
            report: Report::default(),
        })))
    }

    fn model(&self) -> MutexGuard<'_, Model> {
        self.0.lock().expect("no one panics while holding it")
    }

    /// The first breach of each rule, in the order found.
    pub fn breaches(&self) -> Vec<Breach> {
        self.model().report.breaches.clone()
    }

    /// Tells what was found to who watches the run.
    pub fn tell(&self, seen: &mut Seen) {
        for breach in &self.model().report.breaches {
            seen.find(breach.conduct, breach.at, Some(breach.node), None, breach.what.clone());
        }
    }

    /// How often each rule was judged.
    pub fn judged(&self) -> Sometimes {
        self.model().report.judged.clone()
    }
}

impl Model {
    fn close(&mut self) {
        let Some(step) = self.step.take() else { return };
        let Step { actor, now, .. } = step;
        let node = &mut self.nodes[actor.node.0 as usize];
        let report = &mut self.report;
        (report.at, report.node) = (now, Some(actor.node));
        match step.cause {
            Cause::Deviates(true) => node.deviating[actor.role as usize] += 1,
            Cause::Deviates(false) => {
                let count = &mut node.deviating[actor.role as usize];
                *count = count.saturating_sub(1);
                node.delegate.mended(actor.role);
            }
            _ => {}
        }
        if matches!(step.cause, Cause::Begins) {
            node.deviating[actor.role as usize] = 0;
        }
        // The model is of the reference, which neither bundles transactions nor keeps any for later.
        let unknown = self.known.rules().node.transactions_in_order && actor.role != Role::Delegate;
        report.muted = unknown || node.deviating[actor.role as usize] > 0 || matches!(step.cause, Cause::Deviates(_));
        let honest = node.deviating.iter().all(|count| *count == 0);
        node.delegate.time_passes(&self.known, report, &step, &node.peer, honest);
        match actor.role {
            Role::Peer => node.peer.judge(&self.known, report, &step),
            Role::Pool => node.pool.judge(&self.known, report, &step, &node.peer.tip),
            Role::Delegate => node.delegate.judge(&self.known, report, &step),
        }
    }
}

impl Observer for Behaviour {
    fn observe(&mut self, _: SimTime, node: NodeId, event: &Event) {
        let mut model = self.model();
        if let Some(step) = model.step.as_mut().filter(|step| step.actor.node == node) {
            step.did.push(Did::Event(event.clone()));
        }
    }

    fn observe_act(&mut self, now: SimTime, actor: ActorId, act: &Act<'_>) {
        let mut model = self.model();
        match act {
            Act::Hears { local, what } => {
                model.close();
                model.step = Some(Step::new(actor, now, *local, what));
            }
            Act::Sends { to, message } => {
                if let Some(step) = model.step.as_mut().filter(|step| step.actor == actor) {
                    step.did.push(Did::Sent(*to, (*message).clone()));
                }
            }
            Act::Answers(submission) => {
                if let Some(step) = model.step.as_mut().filter(|step| step.actor == actor) {
                    step.did.push(Did::Answered((*submission).clone()));
                }
            }
        }
    }

    fn rest(&mut self) {
        self.model().close();
    }

    fn wants_acts(&self) -> bool {
        true
    }
}
