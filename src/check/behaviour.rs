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
//! The model is written from the contract. It knows the inputs of a node and their times by the node's own clock, so that a node that
//! is slow, skewed or late is judged by its own knowledge. Random choices of the contract (which peers, how deep) are taken from the
//! node's actions, and compared with the allowed range. The model does not judge where it cannot have the node's knowledge: a message
//! that the node's own limits may hold back, a call at the edge of a limit. Deadlines do not apply to nodes that a fault makes slow or
//! stops, or whose clocks a fault sets.
//!
//! While a fault makes an actor deviate, the model does not judge that actor. It still judges the other actors of the node.

mod admission;
mod answers;
mod blocks;
mod choice;
mod discovery;
mod download;
mod forging;
mod health;
mod limits;
mod node;
mod peers;
mod pings;
mod pool;
mod relay;
mod rest;
mod state;
mod step;
mod sync;
#[cfg(test)]
mod tests;
mod verification;

use super::{CONDUCT, Conduct, Observations, Sometimes};
use crate::{
    actors::{ActorId, Event, NodeId, Role, SimTime},
    ledger::{BlockTree, Link, Rules},
    protocol::{BlockId, TransactionId, hashing::IdHash},
    sim::{Act, Observer, Plan},
};
use forging::DelegateModel;
use indexmap::{IndexMap, IndexSet};
use pool::PoolModel;
use state::PeerModel;
use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard},
};
use step::{ActorOutput, ActorStep, Cause, OpenOutputs};

/// Watches the conduct of all nodes of one run. Clones share their observations.
#[derive(Clone)]
pub struct Behaviour(Arc<Mutex<Model>>);

/// A rule of conduct that a node broke.
#[derive(Clone, Debug)]
pub struct Breach {
    pub conduct: &'static Conduct,
    pub at: SimTime,
    pub node: NodeId,
    /// A sentence: the deed or omission of the node, and the expected one.
    pub what: String,
}

/// The blocks, tips and clocks that the model of a node may look up.
#[derive(Clone)]
pub(super) struct ModelContext {
    tree: Arc<BlockTree>,
    /// By node: true if its clock is right and no fault delays or stops it, so that deadlines apply to it.
    timely: Vec<bool>,
    /// By transaction: the blocks that hold it, of all forks.
    holders: IndexMap<TransactionId, Vec<Arc<Link>>, IdHash>,
    /// The blocks that at least one node has applied.
    taken: IndexSet<BlockId, IdHash>,
}

impl ModelContext {
    fn rules(&self) -> &Rules {
        self.tree.rules()
    }

    /// Records a block that a node has applied.
    fn note(&mut self, link: &Arc<Link>) {
        if self.taken.insert(link.id()) {
            for one in &link.block().transactions {
                self.holders.entry(one.id()).or_default().push(link.clone());
            }
        }
    }

    /// Returns true if the chain that ends in `tip` contains a transaction.
    fn is_forged(&self, tip: &Arc<Link>, id: &TransactionId) -> bool {
        self.holders.get(id).is_some_and(|holders| holders.iter().any(|holder| tip.descends_from(holder)))
    }
}

/// The breaches found, and the number of times that each rule was judged.
#[derive(Clone)]
pub(super) struct Report {
    breaches: Vec<Breach>,
    /// The number of judgements, by the rule's place in `CONDUCT`.
    judged: [u64; CONDUCT.len()],
    /// The number of times that the model lost track of a node's downloads.
    lost: u64,
    at: SimTime,
    node: Option<NodeId>,
    /// True if the actor deviates or its rules are outside the model. The model then follows its state and does not judge its conduct.
    muted: bool,
}

impl Report {
    /// Judges a rule once, and records its first breach, which `what` describes.
    fn judge(&mut self, conduct: &'static Conduct, holds: bool, what: impl FnOnce() -> String) {
        if self.muted {
            return;
        }
        self.judged[conduct.place] += 1;
        if !holds && self.breaches.iter().all(|known| known.conduct.place != conduct.place) {
            let node = self.node.expect("a step of a node is being judged");
            self.breaches.push(Breach { conduct, at: self.at, node, what: what() });
        }
    }

    /// Records a breach of a rule.
    fn breach(&mut self, conduct: &'static Conduct, what: impl FnOnce() -> String) {
        self.judge(conduct, false, what);
    }
}

/// A step under judgement: the facts that the model may look up, the deeds not accounted for yet, and the report.
pub(super) struct Case<'a> {
    known: &'a ModelContext,
    report: &'a mut Report,
    step: &'a ActorStep,
    left: OpenOutputs<'a>,
}

#[derive(Clone)]
struct Model {
    known: ModelContext,
    nodes: Vec<Node>,
    step: Option<ActorStep>,
    /// An empty buffer for the deeds of the next step.
    spare: Vec<ActorOutput>,
    report: Report,
}

/// The three actors of a node, and how many faults make each deviate.
#[derive(Clone)]
struct Node {
    peer: PeerModel,
    pool: PoolModel,
    delegate: DelegateModel,
    deviating: [u32; 3],
}

impl Behaviour {
    /// A watch over the nodes of a plan. Deadlines do not apply to the `untimely`.
    pub fn new(plan: &Plan, untimely: &BTreeSet<NodeId>) -> Self {
        let network = plan.network();
        let by_rounds = plan.off_by_rounds();
        let node = |index: usize| {
            let id = NodeId(index as u32);
            let key = plan.nodes[index].forger.as_ref().map(|keys| *keys.public());
            // A delegate that is switched off by rounds is not asked to use its slots.
            let key = key.filter(|_| !by_rounds.contains(&id));
            Node {
                peer: PeerModel::connected(id, &plan.tip, network.links().given(id)),
                pool: PoolModel::new(&plan.tip),
                delegate: DelegateModel::new(key),
                deviating: [0; 3],
            }
        };
        let count = plan.nodes.len();
        let timely = (0..count).map(|index| !untimely.contains(&NodeId(index as u32))).collect();
        let (tree, holders, taken) = (plan.tree.clone(), IndexMap::default(), IndexSet::default());
        let mut known = ModelContext { tree, timely, holders, taken };
        let chain = std::iter::successors(Some(plan.tip.clone()), |link| link.parent());
        chain.for_each(|link| known.note(&link));
        Self(Arc::new(Mutex::new(Model {
            known,
            nodes: (0..count).map(node).collect(),
            step: None,
            spare: Vec::new(),
            report: Report {
                breaches: Vec::new(),
                judged: [0; CONDUCT.len()],
                lost: 0,
                at: SimTime::default(),
                node: None,
                muted: false,
            },
        })))
    }

    /// Returns an independent copy, for a copy of the run that continues from this instant.
    pub fn apart(&self) -> Self {
        Self(Arc::new(Mutex::new(self.model().clone())))
    }

    fn model(&self) -> MutexGuard<'_, Model> {
        self.0.lock().expect("no thread panics while holding it")
    }

    /// The first breach of each rule, in the order found.
    #[cfg(test)]
    pub fn breaches(&self) -> Vec<Breach> {
        self.model().report.breaches.clone()
    }

    /// Reports the breaches to the watch of the run.
    pub fn tell(&self, seen: &mut Observations) {
        for breach in &self.model().report.breaches {
            seen.find(breach.conduct, breach.at, Some(breach.node), None, breach.what.clone());
        }
    }

    /// Returns the number of times that each rule was judged.
    pub fn judged(&self) -> Sometimes {
        let report = &self.model().report;
        let mut judged = Sometimes::default();
        for conduct in CONDUCT {
            judged.count_more(conduct.name, report.judged[conduct.place]);
        }
        judged.count_more("behaviour: the model does not know what is downloaded", report.lost);
        judged
    }
}

impl Model {
    fn close(&mut self) {
        let Some(step) = self.step.take() else { return };
        let ActorStep { actor, now, .. } = step;
        let known = &self.known;
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
        // The model covers the reference, which neither bundles transactions nor retains any for later.
        let unknown = self.known.rules().node.transactions_in_order && actor.role != Role::Delegate;
        report.muted = unknown || node.deviating[actor.role as usize] > 0 || matches!(step.cause, Cause::Deviates(_));
        let honest = node.deviating.iter().all(|count| *count == 0);
        let case = &mut Case { known, report, step: &step, left: OpenOutputs::of(&step) };
        node.delegate.time_passes(case, &node.peer, honest);
        match actor.role {
            Role::Peer => node.peer.judge(case),
            Role::Pool => node.pool.judge(case, &node.peer.tip),
            Role::Delegate => node.delegate.judge(case),
        }
        self.spare = step.did;
        self.spare.clear();
    }
}

impl Observer for Behaviour {
    fn observe(&mut self, _: SimTime, node: NodeId, event: &Event) {
        let mut model = self.model();
        if let Event::BlockApplied(link) = event {
            model.known.note(link);
        }
        if let Some(step) = model.step.as_mut().filter(|step| step.actor.node == node) {
            step.did.push(ActorOutput::Event(event.clone()));
        }
    }

    fn observe_act(&mut self, now: SimTime, actor: ActorId, act: &Act<'_>) {
        let mut model = self.model();
        match act {
            Act::Hears { local, what } => {
                model.close();
                let did = std::mem::take(&mut model.spare);
                model.step = Some(ActorStep::new(actor, now, *local, what, did));
            }
            Act::Sends { to, message } => {
                if let Some(step) = model.step.as_mut().filter(|step| step.actor == actor) {
                    step.did.push(ActorOutput::Sent(*to, (*message).clone()));
                }
            }
            Act::Answers(submission) => {
                if let Some(step) = model.step.as_mut().filter(|step| step.actor == actor) {
                    step.did.push(ActorOutput::Answered((*submission).clone()));
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
