//! Nodes that come and go: each is up and down in turn, for as long as it draws.

use super::{
    Item, World,
    faults::{LastingEffect, State},
};
use crate::{
    actors::{Choices, NodeId},
    sim::fault::{FaultKind, NodeChurn},
};
use std::collections::BTreeSet;

impl World {
    /// Begins the fault: all its nodes are up, and each draws the length of its first phase.
    pub(super) fn churn(&mut self, fault: usize, nodes: &[NodeId], keep_pool: bool) -> LastingEffect {
        // There is always a turn to come while the fault lasts.
        self.ahead.scheduled += 1;
        let name = self.draw_name(fault);
        nodes.iter().for_each(|node| self.plan_turn(fault, name, *node, 0));
        LastingEffect::ComeAndGo { name, keep_pool, down: BTreeSet::new() }
    }

    /// Schedules the end of a phase of a node. The first phase, the third and so on are up, the others down.
    fn plan_turn(&mut self, fault: usize, name: u64, node: NodeId, stays: u32) {
        let FaultKind::NodeChurn(NodeChurn { up, down, .. }) = &self.plan.faults[fault].kind else { return };
        let durations = if is_up(stays) { up } else { down };
        let seed = self.anew.unwrap_or(self.plan.seeds).seed();
        let mut random = Choices::new(seed).at(&[name, node.0.into(), stays.into()]);
        self.queue.push(self.now + durations.draw(&mut random), Item::Turn { fault, node, stays });
    }

    /// Ends a phase of a node: the node goes down or comes back.
    pub(super) fn turn(&mut self, fault: usize, node: NodeId, stays: u32) {
        let State::On { held: LastingEffect::ComeAndGo { name, keep_pool, down }, .. } = self.faults.state_mut(fault)
        else {
            return;
        };
        let (name, keep_pool) = (*name, *keep_pool);
        if is_up(stays) {
            down.insert(node);
            self.crash(node);
        } else {
            down.remove(&node);
            self.crash_over(node, keep_pool);
        }
        self.plan_turn(fault, name, node, stays.wrapping_add(1));
    }

    /// The fault is over: its nodes that are down come back.
    pub(super) fn churn_over(&mut self, keep_pool: bool, down: &BTreeSet<NodeId>) {
        self.ahead.scheduled -= 1;
        down.iter().for_each(|node| self.crash_over(*node, keep_pool));
    }
}

/// Returns true if a node is up after this number of phases.
fn is_up(stays: u32) -> bool {
    stays.is_multiple_of(2)
}
