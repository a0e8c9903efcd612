//! Paths into the table of a scenario file: `fault[2].share`.

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PathStep {
    Key(String),
    Index(usize),
    /// The entry after the last one, which is not there yet.
    Next,
}

/// Tables that are one of several forms, of which each is one key: another form replaces the one that is there.
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

/// Reads the path of a text that [`join`] has written.
pub(super) fn split(text: &str) -> Vec<PathStep> {
    let mut path = Vec::new();
    for part in text.split('.') {
        let mut pieces = part.split('[');
        path.extend(pieces.next().filter(|key| !key.is_empty()).map(|key| PathStep::Key(key.to_owned())));
        path.extend(pieces.filter_map(|piece| piece.trim_end_matches(']').parse().ok()).map(PathStep::Index));
    }
    path
}
