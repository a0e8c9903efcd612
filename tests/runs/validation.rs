//! What others have published, and what comes out here.

use crate::support::{hold_table, run};
use serde_json::Value;

/// The table of docs/validation.md is what the command prints, and each figure holds.
#[test]
#[ignore = "long: CI runs it"]
fn the_table_of_validation_is_what_the_command_prints() {
    let output = run(&["validate"]);
    let table = String::from_utf8(output.stdout).expect("it is text");
    hold_table("docs/validation.md", &table, "REWRITE_VALIDATION");
    assert!(output.status.success(), "{table}");
}

/// Some studies show it. The suite of figures reads all of them.
#[test]
fn a_program_reads_the_figures_of_the_table() {
    let output = run(&["validate", "--only", "Tron", "--json", "--jobs", "1", "--progress", "json"]);
    let told: Value = serde_json::from_slice(&output.stdout).expect("it prints JSON");
    let figures = told["figures"].as_array().expect("a list");
    assert!(figures.len() >= 4 && figures.iter().all(|figure| figure["holds"] == true), "{told}");
    let within = |figure: &Value| {
        let [expected, found, off] = ["expected", "found", "within"].map(|key| figure[key].as_f64().expect("a number"));
        match (figure["confidence"]["low"].as_f64(), figure["confidence"]["high"].as_f64()) {
            (Some(low), Some(high)) => low < found && found < high && low - off < expected && expected < high + off,
            _ => (expected - found).abs() <= off + 1e-9,
        }
    };
    assert!(figures.iter().all(within), "{told}");
    assert!(String::from_utf8_lossy(&output.stderr).contains(r#""done":"#), "it tells its progress");
}
