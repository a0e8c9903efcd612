//! The newest transactions that clients submitted, with the nodes' answers. A reader finds the reason of a failed test here.

use crate::{
    actors::{NodeId, SimTime},
    protocol::Height,
};
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The number of retained submissions.
pub(crate) const KEPT: usize = 1_000;
/// The number of retained characters of an id and of a reason. A client chooses the id and may cause a long reason, and all are in
/// memory.
const TEXT_MAX: usize = 1_000;

/// One submitted transaction, or a request that was refused as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubmissionLine {
    /// The instant of the submission.
    pub at: SimTime,
    pub node: NodeId,
    /// The height of the node at that instant.
    pub height: Height,
    /// The id that the transaction was sent with. `None` for a whole request.
    pub id: Option<String>,
    /// The code, if there is one, and the reason of the refusal. `None` if the node accepted the transaction.
    pub refusal: Option<(Option<&'static str>, String)>,
}

/// The submissions of one network. Clones share them.
#[derive(Clone, Default)]
pub struct Submissions(Arc<Mutex<VecDeque<SubmissionLine>>>);

impl Submissions {
    /// Adds a submission, and evicts the oldest one if there are [`KEPT`].
    pub fn add(&self, mut line: SubmissionLine) {
        line.id.iter_mut().chain(line.refusal.as_mut().map(|(_, message)| message)).for_each(shorten);
        let mut lines = self.lock();
        if lines.len() >= KEPT {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    /// The retained submissions, oldest first.
    pub fn all(&self) -> Vec<SubmissionLine> {
        self.lock().iter().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<SubmissionLine>> {
        // A panic while it was locked leaves whole lines.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn shorten(text: &mut String) {
    if let Some((end, _)) = text.char_indices().nth(TEXT_MAX) {
        text.truncate(end);
        text.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_kept_and_no_text_is_endless() {
        let submissions = Submissions::default();
        let line = |number: usize| SubmissionLine {
            at: SimTime::from_micros(number as u64),
            node: NodeId(0),
            height: Height(1),
            id: Some("ü".repeat(number)),
            refusal: Some((Some("ERR_UNKNOWN"), "ä".repeat(TEXT_MAX + number))),
        };
        (0..KEPT + 2).for_each(|number| submissions.add(line(number)));
        let all = submissions.all();
        let lengths = |line: &SubmissionLine| {
            let count = |text: &String| (text.chars().count(), text.capacity());
            (line.id.as_ref().map(count), line.refusal.as_ref().map(|(_, message)| count(message)))
        };
        assert_eq!((all.len(), all[0].id.as_deref()), (KEPT, Some("üü")));
        assert_eq!(lengths(&all[KEPT - 1]), (Some((TEXT_MAX, 2 * TEXT_MAX)), Some((TEXT_MAX, 2 * TEXT_MAX))));
        assert!(all.iter().all(|line| lengths(line).1 == Some((TEXT_MAX, 2 * TEXT_MAX))));
    }
}
