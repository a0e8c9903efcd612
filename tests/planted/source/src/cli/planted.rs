//! `dposlab check --planted`: how soon faults planted on purpose are found, and how small what finds them is made. In builds with the feature `planted` only.

use super::{Failure, output};
use crate::{
    check::{
        known_causes::KnownCauses,
        power::{self, Measured, Small},
        search::Search,
    },
    files::{self, TEXT_LIMIT},
};
use serde_json::json;
use std::{collections::BTreeSet, path::Path};

/// Plants one fault or all but those of a list, and prints the table.
///
/// # Errors
/// No fault has that name, or one was not found within the runs.
pub(super) fn run(
    which: &str,
    search: &Search,
    known: &KnownCauses,
    budget: usize,
    as_json: bool,
    except: Option<&Path>,
) -> Result<(), Failure> {
    let left_out = except.map(read).transpose()?.unwrap_or_default();
    let mut faults = power::named(which).ok_or_else(|| {
        Failure::usage(format!("--planted: found '{which}', allowed is all, {}", power::names().join(", ")))
    })?;
    faults.retain(|fault| !left_out.contains(&fault.name()));
    let mut missed = Vec::new();
    if !as_json {
        output::line("| planted fault | what it breaks | found by | runs | CPU s | nodes left | runs | CPU s |");
        output::line("|---|---|---|---:|---:|---:|---:|---:|");
    }
    power::measure(&faults, search, known, budget, |measured| {
        if measured.found_by.is_none() {
            missed.push(measured.name.clone());
        }
        let Measured { name, words, found_by, runs, cpu_seconds, small } = &measured;
        if as_json {
            let line = json!({
                "planted": name, "breaks": words, "found_by": found_by, "runs": runs, "cpu_seconds": cpu_seconds,
                "small": small.as_ref().map(|Small { nodes, runs, cpu_seconds }| json!({
                    "nodes": nodes, "runs": runs, "cpu_seconds": cpu_seconds,
                })),
            });
            output::line(&line.to_string());
        } else {
            let found_by = found_by.unwrap_or("**not found**");
            let small = small.as_ref().map_or("| | |".to_owned(), |Small { nodes, runs, cpu_seconds }| {
                format!("| {nodes} | {runs} | {cpu_seconds:.2} |")
            });
            output::line(&format!("| {name} | {words} | {found_by} | {runs} | {cpu_seconds:.2} {small}"));
        }
    });
    match missed.len() {
        0 => Ok(()),
        many => Err(Failure::broken(format!("{many} planted faults were not found: {}", missed.join(", ")))),
    }
}

/// The names in a list; a line that begins with `#` is none.
fn read(file: &Path) -> Result<BTreeSet<String>, Failure> {
    let text = files::read_text(file, TEXT_LIMIT)
        .map_err(|why| Failure::usage(format!("--except {}: cannot be read: {why}", file.display())))?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let names: BTreeSet<String> = lines.map(str::to_owned).collect();
    match names.iter().find(|name| power::named(name).is_none()) {
        Some(unknown) => {
            Err(Failure::usage(format!("--except {}: found '{unknown}', which is no fault", file.display())))
        }
        None => Ok(names),
    }
}
