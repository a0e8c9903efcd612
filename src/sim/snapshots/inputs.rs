//! The inputs that came into a run from outside, in order.
//!
//! ```text
//!   logged ─┬─ fault ─ logged ─┬─ recent ─ recent ─ recent       a run that is kept in a folder
//!           │                  └─ transactions that nobody near now needs are in memory no more
//!           └─ faults stay: the moment that a checkpoint holds is made with them
//! ```

use crate::{
    actors::SimTime,
    ledger::{codec::saved, settled_chain::SettledError},
    sim::Intervention,
};
use std::{collections::VecDeque, fmt, iter, sync::Arc};

/// An input from outside, with its time: the number of inputs delivered to actors before it.
#[derive(Clone, Debug)]
pub struct CameIn {
    pub at: SimTime,
    pub delivered: u64,
    pub what: Intervention,
}

impl CameIn {
    /// Returns true if it stays in memory.
    fn stays(&self) -> bool {
        matches!(self.what, Intervention::AddFault(_) | Intervention::Restart(_))
    }
}

/// The place of an input's record in a log. A later record has a greater one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogPlace(pub u64);

impl LogPlace {
    /// The place before which no record lies.
    pub const FIRST: Self = Self(0);
}

saved!(struct LogPlace(place));

/// Inputs of a run that follow each other in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    pub first: LogPlace,
    pub last: LogPlace,
    pub count: usize,
}

saved!(struct Stretch { first, last, count });

/// The log of a run's inputs.
pub trait InputLog: Send + Sync {
    /// Reads the inputs of a stretch that are a part of the run, in order. Ends after the first error.
    fn read(&self, stretch: Stretch) -> Reading;
}

/// Inputs that are read one by one.
pub type Reading = Box<dyn Iterator<Item = Result<CameIn, SettledError>> + Send>;

/// Inputs in order. Clones share the ones in memory.
#[derive(Clone, Default)]
pub struct Inputs {
    parts: VecDeque<Part>,
    count: usize,
    log: Option<Arc<dyn InputLog>>,
}

#[derive(Clone, Debug)]
enum Part {
    Logged(Stretch),
    /// In memory, and in the log if there is one.
    Here(CameIn, Option<LogPlace>),
    /// The run reverted here. In the log, the inputs that it left lie between the part before and the part after.
    Seam,
}

impl Part {
    fn count(&self) -> usize {
        match self {
            Self::Logged(stretch) => stretch.count,
            Self::Here(..) => 1,
            Self::Seam => 0,
        }
    }

    /// The place of the part in the log. `None` if the log lacks it or it stays in memory.
    fn stretch(&self) -> Option<Stretch> {
        match self {
            Self::Logged(stretch) => Some(*stretch),
            Self::Here(came, Some(place)) if !came.stays() => Some(Stretch { first: *place, last: *place, count: 1 }),
            Self::Here(..) | Self::Seam => None,
        }
    }
}

impl Stretch {
    /// Extends the stretch to the end of a later one. The log must hold no other inputs of the run between them.
    fn go_on(&mut self, later: Self) {
        (self.last, self.count) = (later.last, self.count + later.count);
    }
}

/// A reference of a checkpoint to inputs: the places in the log where they lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sim) enum InputReference {
    Stretch(Stretch),
    Fault(LogPlace),
}

saved!(enum InputReference { 0 Stretch(stretch), 1 Fault(place) });

impl Inputs {
    /// Inputs that are only in memory.
    pub fn new(inputs: Vec<CameIn>) -> Self {
        let count = inputs.len();
        Self { parts: inputs.into_iter().map(|came| Part::Here(came, None)).collect(), count, log: None }
    }

    /// No inputs yet. Later ones will be in `log`.
    pub(in crate::sim) fn of(log: Option<Arc<dyn InputLog>>) -> Self {
        Self { log, ..Self::default() }
    }

    /// No inputs yet, after the run has reverted.
    pub(in crate::sim) fn after_revert(log: Option<Arc<dyn InputLog>>) -> Self {
        Self { parts: VecDeque::from([Part::Seam]), ..Self::of(log) }
    }

    /// Sets the log that will hold all later inputs.
    pub(in crate::sim) fn log_in(&mut self, log: &Arc<dyn InputLog>) {
        self.log = Some(log.clone());
    }

    /// Adds an input. `place` is its record in the log.
    pub fn push(&mut self, came: CameIn, place: Option<LogPlace>) {
        self.parts.push_back(Part::Here(came, place));
        self.count += 1;
    }

    /// Adds the inputs of `others` after its own.
    pub(in crate::sim) fn append(&mut self, others: &Self) {
        self.parts.extend(others.parts.iter().cloned());
        self.count += others.count;
        if self.log.is_none() {
            self.log.clone_from(&others.log);
        }
    }

    /// Adds the inputs of `earlier` before its own. The cost is proportional to the shorter list.
    pub(in crate::sim) fn prepend(&mut self, mut earlier: Self) {
        if earlier.parts.len() < self.parts.len() {
            earlier.parts.into_iter().rev().for_each(|part| self.parts.push_front(part));
        } else {
            earlier.parts.append(&mut self.parts);
            self.parts = earlier.parts;
        }
        self.count += earlier.count;
        if self.log.is_none() {
            self.log = earlier.log;
        }
    }

    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The number of inputs in memory.
    pub fn in_memory(&self) -> usize {
        self.parts.iter().filter(|part| matches!(part, Part::Here(..))).count()
    }

    /// Reads all.
    pub fn iter(&self) -> Reading {
        let (log, parts) = (self.log.clone(), self.parts.clone());
        let read = move |part| -> Reading {
            match part {
                Part::Here(came, _) => Box::new(iter::once(Ok(came))),
                Part::Seam => Box::new(iter::empty()),
                Part::Logged(stretch) => log.as_ref().expect("a stretch is of a log").read(stretch),
            }
        };
        Box::new(parts.into_iter().flat_map(read))
    }

    /// Returns the first `count` inputs.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn first(&self, count: usize) -> Result<Self, SettledError> {
        let mut first = Self::of(self.log.clone());
        for part in &self.parts {
            let missing = count - first.count;
            if missing >= part.count() {
                first.parts.push_back(part.clone());
                first.count += part.count();
            } else {
                let one = Self { parts: VecDeque::from([part.clone()]), ..Self::of(self.log.clone()) };
                for came in one.iter().take(missing) {
                    first.push(came?, None);
                }
                break;
            }
        }
        Ok(first)
    }

    /// Returns the inputs from an index on.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn since(&self, index: usize) -> Result<Vec<CameIn>, SettledError> {
        let (mut before, mut at) = (0, 0);
        while at < self.parts.len() && before + self.parts[at].count() <= index {
            before += self.parts[at].count();
            at += 1;
        }
        let rest = Self { parts: self.parts.range(at..).cloned().collect(), ..Self::of(self.log.clone()) };
        rest.iter().skip(index.saturating_sub(before)).collect()
    }

    /// Drops from memory those of the first `count` inputs that the log holds, except faults.
    pub(in crate::sim) fn let_go(&mut self, count: usize) {
        let (mut kept, mut seen) = (VecDeque::new(), 0);
        let mut parts = std::mem::take(&mut self.parts).into_iter();
        for part in parts.by_ref() {
            seen += part.count();
            if seen > count {
                kept.push_back(part);
                break;
            }
            match (kept.back_mut(), part.stretch()) {
                (Some(Part::Logged(before)), Some(stretch)) => before.go_on(stretch),
                (_, Some(stretch)) => kept.push_back(Part::Logged(stretch)),
                (_, None) => kept.push_back(part),
            }
        }
        kept.extend(parts);
        self.parts = kept;
    }

    /// The places of all inputs in the log, or `None` if the log lacks one. Between two adjacent stretches the run has
    /// reverted.
    pub(in crate::sim) fn named(&self) -> Option<Vec<InputReference>> {
        let (mut named, mut is_apart) = (Vec::new(), false);
        for part in &self.parts {
            let was_apart = std::mem::replace(&mut is_apart, matches!(part, Part::Seam));
            match (named.last_mut(), part.stretch(), part) {
                (_, _, Part::Seam) => {}
                (Some(InputReference::Stretch(before)), Some(stretch), _) if !was_apart => before.go_on(stretch),
                (_, Some(stretch), _) => named.push(InputReference::Stretch(stretch)),
                (_, None, Part::Here(_, Some(place))) => named.push(InputReference::Fault(*place)),
                (_, None, _) => return None,
            }
        }
        Some(named)
    }

    /// The inputs at these places in a log. Reads only the faults. The run may have reverted before the first input.
    ///
    /// # Errors
    /// A fault cannot be read.
    pub(in crate::sim) fn from_named(named: &[InputReference], log: &Arc<dyn InputLog>) -> Result<Self, SettledError> {
        let mut inputs = Self::after_revert(Some(log.clone()));
        for name in named {
            match *name {
                InputReference::Stretch(stretch) => {
                    if let Some(Part::Logged(_)) = inputs.parts.back() {
                        inputs.parts.push_back(Part::Seam);
                    }
                    inputs.parts.push_back(Part::Logged(stretch));
                    inputs.count += stretch.count;
                }
                InputReference::Fault(place) => {
                    for came in log.read(Stretch { first: place, last: place, count: 1 }) {
                        inputs.push(came?, Some(place));
                    }
                }
            }
        }
        Ok(inputs)
    }

    /// The faults that came in.
    pub fn faults(&self) -> impl Iterator<Item = &CameIn> {
        self.parts.iter().filter_map(|part| match part {
            Part::Here(came, _) if came.stays() => Some(came),
            _ => None,
        })
    }
}

impl fmt::Debug for Inputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.parts).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::fault::AddedFault;
    use proptest::prelude::*;

    /// A log in memory, of which every third record is no part of the run.
    struct Model(Vec<CameIn>);

    impl Model {
        fn place(index: usize) -> LogPlace {
            LogPlace(1 + index as u64 * 3)
        }
    }

    impl InputLog for Model {
        fn read(&self, Stretch { first, last, count }: Stretch) -> Reading {
            let is_in = |index: &usize| (first..=last).contains(&Self::place(*index));
            let found: Vec<CameIn> = (0..self.0.len()).filter(is_in).map(|index| self.0[index].clone()).collect();
            assert_eq!(found.len(), count, "a stretch says how many it has");
            assert!(found.iter().all(|came| !came.stays() || count == 1), "faults are read one by one");
            Box::new(found.into_iter().map(Ok))
        }
    }

    fn came(at: usize, is_fault: bool) -> CameIn {
        let fault = || serde_json::from_str(r#"{"kind": "isolate", "nodes": [1]}"#).expect("it is a fault");
        let what = match is_fault {
            true => Intervention::AddFault(AddedFault { fault: fault(), clients: None }.into()),
            false => Intervention::EndFault { id: at },
        };
        CameIn { at: SimTime::from_micros(at as u64), delivered: 0, what }
    }

    fn times(inputs: &[CameIn]) -> Vec<u64> {
        inputs.iter().map(|came| came.at.micros()).collect()
    }

    proptest! {
        /// After any number of drops the same inputs can be read, and all but faults have left memory.
        #[test]
        fn what_left_memory_is_read_again(faults in prop::collection::vec(prop::bool::weighted(0.2), 0..40),
                                          lets in prop::collection::vec(0..45_usize, 0..4), cut in 0..45_usize) {
            let all: Vec<CameIn> = faults.iter().enumerate().map(|(at, is_fault)| came(at, *is_fault)).collect();
            let log: Arc<dyn InputLog> = Arc::new(Model(all.clone()));
            let mut inputs = Inputs::of(Some(log.clone()));
            for (index, came) in all.iter().enumerate() {
                inputs.push(came.clone(), Some(Model::place(index)));
            }
            let mut most = 0;
            for count in lets {
                inputs.let_go(count);
                most = most.max(count).min(all.len());
                let here = faults[..most].iter().filter(|is_fault| **is_fault).count() + all.len() - most;
                prop_assert_eq!(inputs.in_memory(), here);
            }
            let read = |inputs: &Inputs| inputs.iter().collect::<Result<Vec<_>, _>>().expect("it is there");
            prop_assert_eq!(times(&read(&inputs)), times(&all));
            prop_assert_eq!(inputs.len(), all.len());
            let index = cut.min(all.len());
            prop_assert_eq!(times(&inputs.since(cut).expect("it is there")), times(&all[index..]));
            let first = inputs.first(cut).expect("it is there");
            prop_assert_eq!((times(&read(&first)), first.len()), (times(&all[..index]), index));
            prop_assert_eq!(inputs.faults().count(), faults.iter().filter(|is_fault| **is_fault).count());
            let (mut later, mut earlier) = (Inputs::of(Some(log.clone())), Inputs::of(Some(log.clone())));
            for (index, came) in all.iter().enumerate() {
                let half = if index < cut { &mut earlier } else { &mut later };
                half.push(came.clone(), Some(Model::place(index)));
            }
            later.prepend(earlier);
            prop_assert_eq!((times(&read(&later)), later.len()), (times(&all), all.len()));
            let named = inputs.named().expect("all are in the log");
            let again = Inputs::from_named(&named, &log).expect("it is there");
            prop_assert_eq!((times(&read(&again)), again.len()), (times(&all), all.len()));
            prop_assert_eq!(again.in_memory(), inputs.faults().count());
        }
    }

    /// The log also has the inputs that the run left by a revert, between those that it kept.
    #[test]
    fn inputs_before_and_after_a_revert_stay_apart() {
        let all: Vec<CameIn> = (0..30).map(|at| came(at, at % 7 == 3)).collect();
        let log: Arc<dyn InputLog> = Arc::new(Model(all.clone()));
        let fill = |mut inputs: Inputs, of: std::ops::Range<usize>| {
            of.for_each(|index| inputs.push(all[index].clone(), Some(Model::place(index))));
            inputs
        };
        let kept: Vec<u64> = (0..10).chain(20..30).collect();
        let read = |inputs: &Inputs| times(&inputs.iter().collect::<Result<Vec<_>, _>>().expect("it is there"));
        for is_long_gone in [false, true] {
            let mut before = fill(Inputs::of(Some(log.clone())), 0..10);
            let mut inputs = fill(Inputs::after_revert(Some(log.clone())), 20..30);
            if is_long_gone {
                before.let_go(usize::MAX);
                inputs.let_go(usize::MAX);
            }
            inputs.prepend(before);
            let named = inputs.named().expect("all are in the log");
            assert_eq!(read(&Inputs::from_named(&named, &log).expect("it is there")), kept);
            inputs.let_go(usize::MAX);
            assert_eq!(read(&inputs), kept);
            let mut again = Inputs::from_named(&inputs.named().expect("all are there"), &log).expect("it is there");
            again.let_go(usize::MAX);
            assert_eq!(read(&again), kept);
            // After a start it is unknown whether the run had gone back.
            let mut later =
                Inputs::from_named(&fill(Inputs::default(), 20..30).named().expect("named"), &log).expect("named");
            later.prepend(fill(Inputs::of(Some(log.clone())), 0..10));
            later.let_go(usize::MAX);
            assert_eq!(read(&later), kept);
        }
    }

    #[test]
    fn what_no_log_holds_stays_and_has_no_name() {
        let mut inputs = Inputs::new(vec![came(1, false), came(2, true)]);
        inputs.let_go(usize::MAX);
        assert_eq!((inputs.in_memory(), inputs.named().is_none()), (2, true));
        assert_eq!(Inputs::default().named(), Some(Vec::new()));
    }
}
