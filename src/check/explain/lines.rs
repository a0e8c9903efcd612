//! The lines of a recorded run. A line is one course from the beginning of the run until it reverted to a snapshot, or ended.
//!
//! ```text
//!   beginning ──inputs──► 1 ──inputs──┤ gone back to 1 here: the first line ends
//!                         └───inputs──────────► the end: the second line
//! ```
//!
//! Replaying the inputs of a line gives that line again, to the last random number, since a snapshot is such a list of inputs
//! ([`crate::sim::snapshots`]). So a line is explained like a run that never went back.

use crate::{
    actors::SimTime,
    sim::{
        Intervention,
        snapshots::{CameIn, SNAPSHOTS_MAX},
    },
};
use serde::Serialize;
use std::{collections::BTreeMap, sync::Arc};

/// All lines of a run, in the order in which they were left.
pub(crate) struct Lines {
    start: SimTime,
    /// The inputs, each with the index of the input before it on its line.
    came: Vec<(Option<usize>, CameIn)>,
    lines: Vec<Ending>,
}

/// The end of a line.
#[derive(Clone, Copy)]
struct Ending {
    last: Option<usize>,
    at: SimTime,
    /// The snapshot that the run then reverted to, and its instant.
    went_to: Option<(u64, SimTime)>,
}

/// One line.
#[derive(Clone)]
pub(crate) struct Line {
    /// The inputs in order. The run knows of no others.
    pub inputs: Arc<[CameIn]>,
    pub end: SimTime,
}

/// The place at which a line was left for a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct LineDeparture {
    /// The line, from 1 on.
    pub line: usize,
    pub at_seconds: f64,
    pub snapshot: u64,
    pub snapshot_seconds: f64,
}

impl Lines {
    /// Builds the lines of a run between `start` and `end` from all its inputs. A revert at the instant at which its line began adds no
    /// line.
    pub fn of(inputs: Vec<CameIn>, start: SimTime, end: SimTime) -> Self {
        let mut lines = Self { start, came: Vec::new(), lines: Vec::new() };
        let mut snapshots: BTreeMap<u64, (Option<usize>, SimTime)> = BTreeMap::new();
        let (mut next, mut last, mut since) = (1, None, start);
        for input in inputs {
            match &input.what {
                Intervention::TakeSnapshot { .. } if snapshots.len() < SNAPSHOTS_MAX => {
                    snapshots.insert(next, (last, input.at));
                    next += 1;
                }
                Intervention::DeleteSnapshot { id } => drop(snapshots.remove(&id.0)),
                Intervention::Revert { to } => {
                    let Some((before, at)) = snapshots.get(&to.0).copied() else { continue };
                    if input.at > since {
                        lines.lines.push(Ending { last, at: input.at, went_to: Some((to.0, at)) });
                    }
                    (last, since) = (before, at);
                }
                what if what.is_of_run() => {
                    lines.came.push((last, input));
                    last = Some(lines.came.len() - 1);
                }
                _ => {}
            }
        }
        lines.lines.push(Ending { last, at: end, went_to: None });
        lines
    }

    /// Returns the number of lines, at least 1.
    pub fn count(&self) -> usize {
        self.lines.len()
    }

    /// Returns the line of an index, from 0 on.
    ///
    /// # Panics
    /// There is no line of this index.
    pub fn line(&self, index: usize) -> Line {
        let Ending { mut last, at, .. } = self.lines[index];
        let mut inputs = Vec::new();
        while let Some(place) = last {
            let (before, input) = &self.came[place];
            inputs.push(input.clone());
            last = *before;
        }
        inputs.reverse();
        Line { inputs: inputs.into(), end: at }
    }

    /// Returns the places at which lines were left, in order.
    pub fn left(&self) -> Vec<LineDeparture> {
        let seconds = |at: SimTime| at.seconds_since(self.start);
        let left = self.lines.iter().enumerate().filter_map(|(index, line)| {
            let (snapshot, at) = line.went_to?;
            Some(LineDeparture {
                line: index + 1,
                at_seconds: seconds(line.at),
                snapshot,
                snapshot_seconds: seconds(at),
            })
        });
        left.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::snapshots::SnapshotId;

    fn came(at: u64, what: Intervention) -> CameIn {
        CameIn { at: SimTime::from_micros(at), delivered: at, what }
    }

    fn ended(id: usize) -> Intervention {
        Intervention::EndFault { id }
    }

    #[test]
    fn each_line_holds_what_came_in_on_its_own_way() {
        let take = || Intervention::TakeSnapshot { name: None };
        let revert = |id| Intervention::Revert { to: SnapshotId(id) };
        let inputs = vec![
            came(10, ended(1)),
            came(20, take()),
            came(30, ended(2)),
            came(40, take()),
            came(50, ended(3)),
            came(60, revert(1)),
            came(20, revert(2)),
            came(45, ended(4)),
            came(46, revert(9)),
            came(47, Intervention::DeleteSnapshot { id: SnapshotId(2) }),
            came(48, revert(2)),
            came(70, ended(5)),
        ];
        let at = SimTime::from_micros;
        let lines = Lines::of(inputs, at(0), at(99));
        let told = |index| {
            let Line { inputs, end } = lines.line(index);
            let ids = inputs.iter().map(|one| match one.what {
                Intervention::EndFault { id } => id,
                ref other => panic!("{other:?} is not of the run"),
            });
            (ids.collect::<Vec<_>>(), end.micros())
        };
        // Going on from snapshot 1 to snapshot 2 at once is no line.
        assert_eq!(lines.count(), 2);
        assert_eq!(told(0), (vec![1, 2, 3], 60));
        assert_eq!(told(1), (vec![1, 2, 4, 5], 99));
        let left = LineDeparture { line: 1, at_seconds: 6e-5, snapshot: 1, snapshot_seconds: 2e-5 };
        assert_eq!(lines.left(), [left]);
    }
}
