//! Long sequences, and how a failing one is made short: whole stretches are left out, halves first and single steps last,
//! as long as what is left still fails.

use proptest::{
    strategy::{BoxedStrategy, NewTree, Strategy, ValueTree},
    test_runner::TestRunner,
};
use std::{fmt, ops::Range};

/// Sequences of so many steps.
#[derive(Debug)]
pub struct Sequences<T: fmt::Debug> {
    pub step: BoxedStrategy<T>,
    pub count: usize,
}

/// A sequence that becomes shorter.
pub struct Shorter<T> {
    steps: Vec<T>,
    /// Steps that are left out at once.
    size: usize,
    /// Everything from here on has been tried with this size.
    tried: usize,
    /// The stretch that is left out, and its place.
    out: Option<(usize, Vec<T>)>,
}

impl<T: Clone + fmt::Debug> Strategy for Sequences<T> {
    type Tree = Shorter<T>;
    type Value = Vec<T>;

    fn new_tree(&self, runner: &mut TestRunner) -> NewTree<Self> {
        let steps: Result<Vec<T>, _> = (0..self.count).map(|_| Ok(self.step.new_tree(runner)?.current())).collect();
        steps.map(Shorter::of)
    }
}

impl<T> Shorter<T> {
    fn of(steps: Vec<T>) -> Self {
        Self { size: steps.len().div_ceil(2), tried: steps.len(), steps, out: None }
    }

    /// The stretch to leave out next, the last one first; `None` once single steps have been tried.
    fn next(&mut self) -> Option<Range<usize>> {
        if self.tried == 0 {
            self.tried = self.steps.len();
            self.size = if self.size > 1 { self.size.div_ceil(2) } else { 0 };
        }
        let from = self.tried.saturating_sub(self.size);
        (self.size > 0 && !self.steps.is_empty()).then_some(from..self.tried)
    }

    fn leave_out(&mut self) -> bool {
        let Some(stretch) = self.next() else { return false };
        self.tried = stretch.start;
        self.out = Some((stretch.start, self.steps.drain(stretch).collect()));
        true
    }
}

impl<T: Clone + fmt::Debug> ValueTree for Shorter<T> {
    type Value = Vec<T>;

    fn current(&self) -> Vec<T> {
        self.steps.clone()
    }

    /// The rest fails: the stretch stays out.
    fn simplify(&mut self) -> bool {
        self.out = None;
        self.leave_out()
    }

    /// The rest does not fail: the stretch comes back, and another one goes.
    fn complicate(&mut self) -> bool {
        if let Some((at, steps)) = self.out.take() {
            self.steps.splice(at..at, steps);
        }
        self.leave_out()
    }
}

#[test]
fn what_does_not_matter_is_left_out() {
    let fails = |steps: &[u32]| {
        let at = |wanted| steps.iter().position(|step| *step == wanted);
        at(617).zip(at(901)).is_some_and(|(first, second)| first < second)
    };
    let (mut tree, mut runs) = (Shorter::of((0..1_000).collect()), 0);
    let mut goes_on = tree.simplify();
    while goes_on {
        runs += 1;
        goes_on = if fails(&tree.current()) { tree.simplify() } else { tree.complicate() };
    }
    assert_eq!(tree.current(), [617, 901]);
    assert!(runs < 60, "{runs} runs");
}
