//! Faults that are added or ended while a run goes on, and the state of each fault.

use super::{World, faults::State};
use crate::{
    actors::SimTime,
    sim::{
        Fault, FaultKind,
        fault::{AddedFault, NoticeTime},
    },
};
use std::sync::Arc;

/// A fault of the plan or an added one, with its state.
#[derive(Clone, Debug, PartialEq)]
pub struct FaultStatus {
    /// Its index in the plan; those that were added come after.
    pub id: usize,
    pub fault: Fault,
    pub state: FaultState,
}

/// The state of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultState {
    /// It has not begun.
    Waiting,
    /// It began at this instant.
    InForce { since: SimTime },
    /// It is over, or was ended before it began.
    Over,
}

impl World {
    /// All faults, of the plan and added ones, in the order of their ids.
    pub fn faults(&self) -> impl Iterator<Item = FaultStatus> {
        let all = self.plan.faults.iter().zip(self.faults.states()).enumerate();
        all.map(|(id, (fault, state))| {
            let state = match state {
                State::Ahead => FaultState::Waiting,
                State::On { since, .. } => FaultState::InForce { since: *since },
                State::Over => FaultState::Over,
            };
            FaultStatus { id, fault: fault.clone(), state }
        })
    }

    /// The crashes in force of the very nodes that a restart names.
    pub(in crate::sim) fn crashes_ended_by(&self, restart: &FaultKind) -> Vec<usize> {
        let FaultKind::Restart(restart) = restart else { return Vec::new() };
        let is_of_these = |status: &FaultStatus| {
            let crash = matches!(&status.fault.kind, FaultKind::Crash(crash) if crash.nodes == restart.nodes);
            crash && matches!(status.state, FaultState::InForce { .. })
        };
        self.faults().filter(is_of_these).map(|status| status.id).collect()
    }

    /// The number of faults.
    pub fn count_faults(&self) -> usize {
        self.plan.faults.len()
    }

    /// Allows faults from outside from now on.
    pub fn open(&mut self) {
        self.ahead.is_open = true;
    }

    /// Plans a fault while the run goes on, and returns its id. One that is due begins at this instant, after all that is due already.
    pub(in crate::sim) fn add_fault(&mut self, AddedFault { fault, clients }: AddedFault) -> usize {
        let id = self.plan.faults.len();
        let source = clients.map(|make| make(&self.plan.faults, self.best()));
        self.added.push((id, self.best().id()));
        self.ahead.expect(&fault.kind);
        let entry = self.agenda.add_fault(&fault);
        self.faults.add();
        Arc::make_mut(&mut self.plan).faults.push(fault);
        self.switch_off(id, NoticeTime::Planned);
        self.arm_beginning(entry);
        if let Some(source) = source {
            let entry = self.agenda.add_source(&source);
            source.tally.reset();
            self.sources.push(None);
            Arc::make_mut(&mut self.plan).sources.push(source);
            self.arm_beginning(entry);
        }
        id
    }

    /// Ends a fault now. A fault that has not begun never begins. Returns false if the fault does not exist.
    pub(in crate::sim) fn withdraw_fault(&mut self, id: usize) -> bool {
        if id >= self.plan.faults.len() {
            return false;
        }
        let is_of_fault = |index: &usize| self.plan.sources[*index].fault == Some(id);
        let sources: Vec<usize> = (0..self.plan.sources.len()).filter(is_of_fault).collect();
        if self.agenda.is_withdrawn(id) || self.faults.is_over(id) {
            return true;
        }
        self.agenda.withdraw(id, &sources);
        sources.into_iter().for_each(|index| self.sources[index] = None);
        self.cease(id);
        self.switch_on(id, |_| true);
        self.end_fault(id);
        true
    }
}
