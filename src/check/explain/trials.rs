//! Changed runs: whether each still shows the failure, and how often it does when it is repeated with other draws. Other modules choose
//! the changes: of a scenario ([`super::nearest`]), or of the inputs from outside ([`super::without`]).

use super::{Nearest, RepeatCounts, Target, TriedChange, parallel, play::Playing};
use crate::sim::SeedTree;
use std::sync::atomic::{AtomicBool, Ordering};

/// Changes that are repeated, and how often each.
const REPEATED: usize = 8;
const REPEATS: usize = 8;

/// The judge of changed runs.
pub(super) struct Trials<'a, C> {
    pub(super) target: &'a Target,
    pub(super) seeds: SeedTree,
    pub(super) jobs: usize,
    /// Runs that may be played.
    pub(super) budget: usize,
    pub(super) stop: &'a AtomicBool,
    /// The run of a change at its first instant.
    pub(super) playing: &'a (dyn Fn(&C) -> Option<Playing> + Sync),
}

impl<C: Sync> Trials<'_, C> {
    /// Returns for each of `count` changes whether its run no longer shows the failure.
    pub(super) fn all_pass<'c>(
        &self,
        count: usize,
        change: impl Fn(usize) -> &'c C + Sync,
        progress: &(dyn Fn(u64, u64) + Sync),
    ) -> Vec<Option<bool>>
    where
        C: 'c,
    {
        let all = self.budget.max(count) as u64;
        parallel(self.jobs, count, |index| self.passes(change(index)), |done| progress(done as u64, all))
    }

    /// Returns true if the run no longer shows the failure.
    pub(super) fn passes(&self, change: &C) -> Option<bool> {
        let mut run = (self.playing)(change)?;
        let failed = run.play_out(self.target, self.stop)?;
        if failed { Some(false) } else { self.target.is_decided(&run).then_some(true) }
    }

    /// Returns true if a copy of the run that draws otherwise from the start fails.
    fn repeated(&self, change: &C, copy: usize) -> Option<bool> {
        let name = format!("explain/changed/{copy}");
        let seed = u64::from_le_bytes(self.seeds.bytes(&name)[..8].try_into().expect("8 of 32 bytes"));
        let mut run = (self.playing)(change)?.apart(Some(SeedTree::new(seed)));
        run.play_out(self.target, self.stop)
    }

    /// Describes the changes that were tried in `runs` runs, in order. It repeats the first ones that pass, and the unchanged run.
    pub(super) fn told(
        &self,
        unchanged: &C,
        mut tried: Vec<(TriedChange, C)>,
        mut runs: usize,
        progress: &(dyn Fn(u64, u64) + Sync),
    ) -> Nearest {
        tried.sort_by(|one, other| {
            let rank = |(tried, _): &(TriedChange, C)| tried.passes != Some(true);
            rank(one).cmp(&rank(other)).then(one.0.distance.total_cmp(&other.0.distance))
        });
        let again = tried.iter().take_while(|(tried, _)| tried.passes == Some(true)).take(REPEATED).count();
        // The run as it is comes first.
        let runs_again = if again > 0 { (again + 1) * REPEATS } else { 0 };
        let change_of = |place: usize| place.checked_sub(1).map_or(unchanged, |place| &tried[place].1);
        let all = self.budget.max(runs + runs_again) as u64;
        let repeated = parallel(
            self.jobs,
            runs_again,
            |index| self.repeated(change_of(index / REPEATS), index % REPEATS),
            |done| progress((runs + done) as u64, all),
        );
        let mut counts = repeated.chunks(REPEATS).map(|copies| {
            let known: Vec<bool> = copies.iter().flatten().copied().collect();
            let failed = known.iter().filter(|failed| **failed).count() as u64;
            RepeatCounts { failed, runs: known.len() as u64 }
        });
        let unchanged = counts.next();
        for ((tried, _), count) in tried.iter_mut().zip(counts) {
            tried.other_draws = Some(count);
        }
        runs += runs_again;
        let tried = tried.into_iter().map(|(tried, _)| tried).collect();
        Nearest { tried, unchanged, runs, cut_short: self.stop.load(Ordering::Relaxed), untried: None }
    }
}
