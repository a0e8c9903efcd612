//! Requests of clients at nodes, and the answers.

use super::{Item, World, sending::PostFailure};
use crate::{
    actors::{ActorId, Input, Message, NodeId, PoolError, RequestId, Role, Submission, message::Transactions},
    sim::source::Poll,
};

/// Requests from a source have this bit; the rest is the source's index.
const FROM_SOURCE: u64 = 1 << 63;

impl World {
    /// Submits transactions at a node's API now. The answer comes with [`World::take_answer`].
    pub(in crate::sim) fn submit(&mut self, node: NodeId, transactions: Transactions) -> RequestId {
        let request = RequestId(self.requests);
        self.requests += 1;
        self.hand_in(node, request, transactions);
        request
    }

    /// Delivers a message to a peer now, with any node as its sender.
    pub(in crate::sim) fn say(&mut self, from: NodeId, to: NodeId, message: Message) {
        let [from, to] = [from, to].map(|node| ActorId { node, role: Role::Peer });
        let generation = self.nodes.generation(to.node);
        self.queue.push(self.now, Item::Input { to, generation, input: Input::Message { from, message } });
    }

    /// Returns the answer to a request. A node that a fault delays gives none at once: its client receives an error, and the node's
    /// later answer is dropped.
    pub(in crate::sim) fn take_answer(&mut self, request: RequestId, transactions: &Transactions) -> Submission {
        match self.answers.iter().position(|(answered, _)| *answered == request) {
            Some(index) => self.answers.swap_remove(index).1,
            None => {
                self.abandoned.insert(request);
                unavailable(transactions, "The node does not answer.")
            }
        }
    }

    fn hand_in(&mut self, node: NodeId, request: RequestId, transactions: Transactions) {
        let to = ActorId { node, role: Role::Peer };
        let generation = self.nodes.generation(node);
        self.queue.push(self.now, Item::Input { to, generation, input: Input::Submit { request, transactions } });
    }

    pub(super) fn answer(&mut self, request: RequestId, submission: Submission) {
        if request.0 & FROM_SOURCE == 0 {
            if !self.abandoned.remove(&request) {
                self.answers.push((request, submission));
            }
            return;
        }
        let index = (request.0 & !FROM_SOURCE) as usize;
        self.plan.sources[index].tally.answered(&submission);
        if let Some(source) = &mut self.sources[index] {
            source.answered(self.now, &submission);
        }
    }

    /// A client that asked a node that is down receives an error, and a peer that posted to it loses its connection. Everything else is
    /// lost.
    pub(super) fn lost_with_its_node(&mut self, to: ActorId, input: Input) {
        match input {
            Input::Submit { request, transactions } => {
                self.answer(request, unavailable(&transactions, "The node is down."));
            }
            Input::Message { from, message } => self.cut_off(from, to, &message, PostFailure::Unconnected),
            Input::Start | Input::Wake(_) | Input::Reorganise(_) => {}
        }
    }

    pub(super) fn poll(&mut self, index: usize) {
        let tip = self.nodes.best().clone();
        let Some(source) = &mut self.sources[index] else { return };
        let Poll { submissions, again, undecoded } = source.poll(self.now, &tip);
        self.plan.sources[index].tally.undecoded(undecoded);
        for (node, transactions) in submissions {
            self.plan.sources[index].tally.submitted(transactions.len());
            self.hand_in(node, RequestId(FROM_SOURCE | index as u64), transactions);
        }
        if let Some(at) = again {
            self.queue.push(at.max(self.now), Item::Poll(index));
        }
    }
}

/// The answer that no transaction was checked, for the reason `why`.
fn unavailable(transactions: &Transactions, why: &'static str) -> Submission {
    let errors = transactions.iter().map(|transaction| (transaction.id(), PoolError::Unavailable(why))).collect();
    Submission { errors, ..Submission::default() }
}
