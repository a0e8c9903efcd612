//! Findings that somebody knows, by their signatures: a text file, one a line; lines that begin with `#` are for people.

use crate::{
    check::{Signature, assertions::names},
    files::{self, TEXT_LIMIT},
};
use std::{collections::BTreeSet, path::Path};

/// The signatures of known findings.
#[derive(Debug, Default)]
pub(super) struct Known(BTreeSet<String>);

impl Known {
    /// Reads a list.
    ///
    /// # Errors
    /// The file cannot be read, or a line names no invariant: which line, what was found, what is allowed.
    pub(super) fn load(file: &Path) -> Result<Self, String> {
        let text = files::read_text(file, TEXT_LIMIT)
            .map_err(|why| format!("--known {}: cannot be read: {why}", file.display()))?;
        Self::read(&text).map_err(|why| format!("--known {}: {why}", file.display()))
    }

    fn read(text: &str) -> Result<Self, String> {
        let mut known = BTreeSet::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let invariant = line.split_once(": ").map_or(line, |(invariant, _)| invariant);
            if names().all(|name| name != invariant) {
                let names: Vec<&str> = names().collect();
                return Err(format!(
                    "line {}: found '{invariant}', allowed is an invariant, and its cause behind a colon: {}",
                    index + 1,
                    names.join("; ")
                ));
            }
            known.insert(line.to_owned());
        }
        Ok(Self(known))
    }

    pub(super) fn has(&self, signature: &Signature) -> bool {
        self.0.contains(&signature.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_names_invariants_with_and_without_a_cause() {
        let known = Known::read("# Why.\n\na rollback ends at the common block: forked\nsupply is conserved\n");
        let known = known.expect("both are invariants");
        let signature = |invariant, cause: &str| Signature { invariant, cause: cause.to_owned() };
        assert!(known.has(&signature("a rollback ends at the common block", "forked")));
        assert!(known.has(&signature("supply is conserved", "")));
        assert!(!known.has(&signature("a rollback ends at the common block", "double-forging")));
        let wrong =
            Known::read("supply is conserved\nsupply is not conserved: at all\n").expect_err("no such invariant");
        assert!(wrong.starts_with("line 2: found 'supply is not conserved', allowed is"), "{wrong}");
    }
}
