//! What clients have handed in last, and what their nodes answered: for those who look for the reason of a failed test.

use crate::{
    actors::{NodeId, SimTime},
    protocol::Height,
};
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Submissions that are kept: the newest.
pub const KEPT: usize = 1_000;
/// Characters of a reason that are kept. A client may cause longer ones, and all are kept in memory.
const MESSAGE_MAX: usize = 1_000;

/// One transaction that was handed in, or a request that was refused as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubmissionLine {
    /// The instant at which it came in.
    pub at: SimTime,
    pub node: NodeId,
    /// The height of the node at that instant.
    pub height: Height,
    /// The id with which it was sent; `None` of a whole request.
    pub id: Option<String>,
    /// The code, if it has one, and the reason; `None` if the node took it.
    pub refusal: Option<(Option<&'static str>, String)>,
}

/// The submissions of one network. Clones share them.
#[derive(Clone, Default)]
pub struct Submissions(Arc<Mutex<VecDeque<SubmissionLine>>>);

impl Submissions {
    /// Adds one; the oldest gives way.
    pub fn add(&self, mut line: SubmissionLine) {
        if let Some((_, message)) = &mut line.refusal
            && let Some((end, _)) = message.char_indices().nth(MESSAGE_MAX)
        {
            message.truncate(end);
        }
        let mut lines = self.lock();
        if lines.len() >= KEPT {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    /// Those that are kept, the oldest first.
    pub fn all(&self) -> Vec<SubmissionLine> {
        self.lock().iter().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<SubmissionLine>> {
        // A panic while it was locked leaves whole lines.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_kept_and_no_reason_is_endless() {
        let submissions = Submissions::default();
        let line = |number: usize| SubmissionLine {
            at: SimTime::from_micros(number as u64),
            node: NodeId(0),
            height: Height(1),
            id: Some(number.to_string()),
            refusal: Some((Some("ERR_UNKNOWN"), "ä".repeat(MESSAGE_MAX + number))),
        };
        (0..KEPT + 2).for_each(|number| submissions.add(line(number)));
        let all = submissions.all();
        assert_eq!((all.len(), all[0].id.as_deref()), (KEPT, Some("2")));
        assert!(
            all.iter().all(|line| {
                line.refusal.as_ref().is_some_and(|(_, message)| message.chars().count() == MESSAGE_MAX)
            })
        );
    }
}
