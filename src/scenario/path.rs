//! Paths into the table of a scenario file: `fault[2].share`.

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PathStep {
    Key(String),
    Index(usize),
    /// A new entry after the last one.
    Next,
}

/// Tables that have one of several forms, each under a key of its own. Another form replaces the existing one.
pub(super) const FORMS: [&str; 2] = ["topology", "vote_weights"];

/// Writes a path: `fault[2].share`.
pub(super) fn join(path: &[PathStep]) -> String {
    let mut joined = String::new();
    for step in path {
        match step {
            PathStep::Key(key) if joined.is_empty() => joined.push_str(key),
            PathStep::Key(key) => {
                joined.push('.');
                joined.push_str(key);
            }
            PathStep::Index(index) => joined.push_str(&format!("[{index}]")),
            PathStep::Next => joined.push_str("[+]"),
        }
    }
    joined
}

/// Parses a path that [`join`] has written.
pub(super) fn split(text: &str) -> Vec<PathStep> {
    let mut path = Vec::new();
    for part in text.split('.') {
        let mut pieces = part.split('[');
        path.extend(pieces.next().filter(|key| !key.is_empty()).map(|key| PathStep::Key(key.to_owned())));
        path.extend(pieces.filter_map(|piece| piece.trim_end_matches(']').parse().ok()).map(PathStep::Index));
    }
    path
}
