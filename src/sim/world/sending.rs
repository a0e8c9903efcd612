//! From an actor into the network and the queue.

use super::{Item, World, coming::Arrival};
use crate::{
    actors::{ActorId, Input, Message, NodeId, Role, SimTime},
    sim::network::Route,
};
use std::mem;

impl World {
    /// The message is taken, unless others that are under way say the same.
    pub(super) fn send(&mut self, from: ActorId, to: ActorId, message: &mut Message) {
        let route = self.network.route(self.now, from.node, to.node, message);
        if self.tells_messages {
            self.tell_route(from, to, message, &route);
        }
        match route {
            Route::Lost => {}
            Route::Arrives(at) => self.arrive(at, from, to, message),
            Route::ArrivesAt(all) => all.into_iter().for_each(|at| self.arrive(at, from, to, &mut message.clone())),
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
        for node in to {
            let route = self.network.route(self.now, from.node, *node, message);
            if self.tells_messages {
                self.tell_route(from, ActorId { node: *node, role: Role::Peer }, message, &route);
            }
            let generation = self.nodes.generation(*node);
            let arrival = |at| Arrival { at, to: *node, generation };
            match route {
                Route::Lost => {}
                Route::Arrives(at) => arrivals.push(arrival(at)),
                Route::ArrivesAt(all) => arrivals.extend(all.into_iter().map(arrival)),
            }
        }
        self.queue.push_copies(from.node, message, &arrivals);
        arrivals.clear();
        self.arrivals = arrivals;
    }
}
