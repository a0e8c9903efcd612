//! The way of a message from an actor into the network and the queue.
//!
//! A post (a block or transactions that a peer passes on) has no answer here, because nothing follows from it. Something
//! follows from its lack: the sender drops the peer, without an event. So the world cuts the connection of a post that is
//! lost when the sender would have waited long enough. Source: consensus.md 6.

use super::{Item, World, pending_events::Arrival};
use crate::{
    actors::{ActorId, Input, Message, NodeId, Role, SimTime, prefetch::Prefetch},
    ledger::rules::NodeRules,
    sim::network::{Flow, Route},
};
use std::{mem, time::Duration};

/// The reason why a post fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PostFailure {
    /// The message is lost on its way, or the node stands still.
    Unanswered,
    /// The node is down.
    Unconnected,
}

impl World {
    /// Sends a message. Takes it, unless an equal one is under way.
    pub(super) fn send(&mut self, from: ActorId, to: ActorId, message: &mut Message) {
        if self.processors.is_some()
            && matches!(message, Message::Blocks { .. } | Message::Body { .. })
            && self.serve(from, to, message)
        {
            return;
        }
        self.transmit(from, to, message);
    }

    /// Sends a message without the time that its sender takes to make it.
    #[inline]
    pub(super) fn transmit(&mut self, from: ActorId, to: ActorId, message: &mut Message) {
        let route = self.network.route(self.now, from.node, to.node, message);
        if self.tells_messages {
            self.tell_route(from, to, message, &route);
        }
        match route {
            Route::Lost => self.cut_off(from, to, message, PostFailure::Unanswered),
            Route::Arrives(at) => self.arrive(at, from, to, message),
            Route::ArrivesAt(all) => all.into_iter().for_each(|at| self.arrive(at, from, to, &mut message.clone())),
            Route::Comes(_) | Route::Leaves(_) => self.delay_copies(route, from, to, message),
        }
    }

    /// Sends a message on a route that is decided later.
    #[inline(never)]
    fn delay_copies(&mut self, route: Route, from: ActorId, to: ActorId, message: &Message) {
        match route {
            Route::Comes(all) => all.into_iter().for_each(|one| self.approach(one, from, to, message.clone())),
            Route::Leaves(after) => {
                let ends = (from, to, self.nodes.generation(to.node));
                self.start_flow(Flow::new(
                    ends,
                    message.clone(),
                    self.network.size(from.node, to.node, message),
                    after,
                ));
            }
            Route::Lost | Route::Arrives(_) | Route::ArrivesAt(_) => {}
        }
    }

    fn arrive(&mut self, at: SimTime, from: ActorId, to: ActorId, message: &mut Message) {
        let generation = self.nodes.generation(to.node);
        match (from.role, to.role) {
            (Role::Peer, Role::Peer) => {
                let to = to.node;
                self.queue.push_copies(from.node, message, &[Arrival { at, to, generation }]);
            }
            _ => {
                let at = self.within_node(at, to, message);
                let input = Input::Message { from, message: message.take() };
                self.queue.push(at, Item::Input { to, generation, input });
            }
        }
    }

    pub(super) fn send_to_peers(&mut self, from: ActorId, to: &[NodeId], message: &mut Message) {
        if from.role != Role::Peer {
            let peers = to.iter().map(|node| ActorId { node: *node, role: Role::Peer });
            return peers.for_each(|to| self.send(from, to, &mut message.clone()));
        }
        let mut arrivals = mem::take(&mut self.arrivals);
        to.iter().for_each(|node| self.nodes.fetch(*node));
        for node in to {
            let generation = self.nodes.generation(*node);
            let arrival = |at| Arrival { at, to: *node, generation };
            // Most messages: no route is made and dropped for them, which is one instruction in a hundred.
            if !self.tells_messages
                && let Some(at) = self.network.plain_arrival(self.now, from.node, *node, message)
            {
                arrivals.push(arrival(at));
                continue;
            }
            let route = self.network.route(self.now, from.node, *node, message);
            if self.tells_messages {
                self.tell_route(from, ActorId { node: *node, role: Role::Peer }, message, &route);
            }
            match route {
                Route::Lost => {
                    let to = ActorId { node: *node, role: Role::Peer };
                    self.cut_off(from, to, message, PostFailure::Unanswered);
                }
                Route::Arrives(at) => arrivals.push(arrival(at)),
                Route::ArrivesAt(all) => arrivals.extend(all.into_iter().map(arrival)),
                Route::Comes(_) | Route::Leaves(_) => {
                    self.delay_copies(route, from, ActorId { node: *node, role: Role::Peer }, message);
                }
            }
        }
        self.queue.push_copies(from.node, message, &arrivals);
        arrivals.clear();
        self.arrivals = arrivals;
    }

    /// Cuts the connection of the sender of a post that fails. It cuts none for another message: a lost question or answer shows when the
    /// time for the answer is up.
    pub(super) fn look_for_answer(&mut self, from: ActorId, to: ActorId) {
        if !self.nodes.is_live(to.node) {
            self.connection_cut(self.now, from, to);
        }
    }

    /// Cuts the connection of the sender of a post that fails. Other messages are questions, which fail by themselves, or their answers.
    #[cold]
    pub(super) fn cut_off(&mut self, from: ActorId, to: ActorId, message: &Message, why: PostFailure) {
        let is_post = matches!(message, Message::Block(_) | Message::Transactions(_));
        if !is_post || (from.role, to.role) != (Role::Peer, Role::Peer) {
            return;
        }
        let at = match why {
            PostFailure::Unanswered => self.post_fails_at(),
            PostFailure::Unconnected => {
                self.now + Duration::from_millis(self.node_rules().connecting_timeout_ms.into())
            }
        };
        self.connection_cut(at, from, to);
    }

    /// The instant at which a post that is never answered fails.
    pub(super) fn post_fails_at(&self) -> SimTime {
        self.now + Duration::from_millis(self.node_rules().post_timeout_ms.into())
    }

    fn node_rules(&self) -> &NodeRules {
        &self.plan.tree.rules().node
    }

    fn connection_cut(&mut self, at: SimTime, from: ActorId, to: ActorId) {
        let generation = self.nodes.generation(from.node);
        let input = Input::Message { from: to, message: Message::HungUp };
        self.queue.push(at, Item::Input { to: from, generation, input });
    }
}
