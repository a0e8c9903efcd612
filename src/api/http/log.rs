//! The end of the node's log, in memory for requests. The log's writer pushes its lines.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

/// The number of lines kept in memory, which is also the most that a request can ask for.
pub(crate) const LINES_MAX: usize = 10_000;

/// Writes a line to the node's log.
pub type Report = Arc<dyn Fn(&str) + Send + Sync>;

/// The last lines of a log. Cheap to clone; clones share everything.
#[derive(Clone, Debug, Default)]
pub struct LogTail(Arc<Mutex<VecDeque<String>>>);

impl LogTail {
    /// Adds a line, which has no line break at its end.
    pub fn push(&self, line: String) {
        // A panic while it was locked leaves whole lines.
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == LINES_MAX {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    /// The last `count` lines, oldest first, each with a line break.
    pub fn last(&self, count: usize) -> String {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let skipped = lines.len().saturating_sub(count);
        lines.iter().skip(skipped).flat_map(|line| [line.as_str(), "\n"]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_lines_are_lost() {
        let log = LogTail::default();
        assert_eq!(log.last(5), "");
        (0..=LINES_MAX).for_each(|number| log.push(number.to_string()));
        assert_eq!(log.last(2), "9999\n10000\n");
        assert!(log.last(usize::MAX).starts_with("1\n2\n"));
    }
}
