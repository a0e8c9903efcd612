//! The page of an explanation.

use serde_json::Value;

pub(super) const SCRIPT: &str = concat!(include_str!("sequence.js"), include_str!("explain.js"));

/// The whole page, of an explanation as `dposlab explain --json` prints it.
pub(crate) fn page(explanation: &Value) -> String {
    let title = format!("{}, explained", explanation["file"].as_str().unwrap_or("a run"));
    super::page(&title, explanation, SCRIPT)
}
