//! `dposlab validate`: published figures beside the figures of simulated runs.

use super::{
    Failure,
    interrupt::stop_on_interrupt,
    output,
    progress::{Progress, bar_of_runs},
};
use crate::report::validation::{ClaimResult, DIFFERS, Study, studies, validate};
use clap::Args;
use serde_json::json;
use std::num::NonZeroUsize;

/// Hold what comes out here against what others have published or computed.
///
/// Plays each study with its seeds, and prints each figure beside the number of its source, with the 95 % interval of the mean of the
/// runs; and then what differs from the sources. docs/validation.md explains them. Exit code 0: all hold; 1: one does not.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Validate {
    /// Only the studies whose names contain this text, such as EOS.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Threads; if not given, one for each core.
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    progress: Progress,
}

const EXAMPLES: &str = "\
Examples:
  dposlab validate                            a table
  dposlab validate --only Praos               of some studies
  dposlab validate --json > validation.json   for other programs";

impl Validate {
    /// Plays the studies and prints the comparison.
    ///
    /// # Errors
    /// A figure does not hold, or the comparison was interrupted.
    pub fn run(self) -> Result<(), Failure> {
        let stop = stop_on_interrupt()?;
        let only = self.only.as_deref().unwrap_or_default();
        let chosen: Vec<&Study> = studies().filter(|study| study.what.contains(only)).collect();
        if chosen.is_empty() {
            let names: Vec<&str> = studies().map(|study| study.what).collect();
            return Err(Failure::usage(format!(
                "--only {only}: no study has that in its name, they are: {}",
                names.join("; ")
            )));
        }
        let runs = chosen.iter().map(|study| study.seeds).sum();
        let bar = bar_of_runs(runs);
        let jobs = super::jobs(self.jobs.map(NonZeroUsize::get));
        let held = validate(&chosen, jobs, &stop, |done| {
            bar.set_position(done as u64);
            self.progress.tell(done as u64, runs, json!({}));
        });
        bar.finish_and_clear();
        let Some(held) = held else {
            return Err(Failure::broken("interrupted: some of the figures would say nothing of the others"));
        };
        output::line(&match self.json {
            true => json!({ "figures": held, "differs": DIFFERS }).to_string(),
            false => table(&held),
        });
        match held.iter().all(|one| one.holds) {
            true => Ok(()),
            false => Err(Failure::Told),
        }
    }
}

/// Formats a table of each study in Markdown, which is also readable on a terminal.
fn table(held: &[ClaimResult]) -> String {
    let mut out = String::new();
    for (index, one) in held.iter().enumerate() {
        if index == 0 || held[index - 1].study != one.study {
            out.push_str(&format!("\n{}; samples: {}\n\n", one.study, one.samples));
            out.push_str("| figure | source | says | found | 95 % | holds |\n|---|---|---:|---:|---:|---|\n");
        }
        let interval =
            one.confidence.map_or("all alike".to_owned(), |ends| format!("{:.4} to {:.4}", ends.low, ends.high));
        let says = match one.within {
            0.0 => number(one.expected),
            within => format!("{} ± {within}", number(one.expected)),
        };
        let found = number(one.found);
        let holds = if one.holds { "yes" } else { "NO" };
        out.push_str(&format!("| {} | {} | {says} | {found} | {interval} | {holds} |\n", one.figure, one.source));
    }
    let hold = held.iter().filter(|one| one.holds).count();
    out.push_str(&format!("\n{hold} of {} figures hold\n\n## What differs\n\n", held.len()));
    DIFFERS.iter().for_each(|one| out.push_str(&format!("- {one}\n")));
    out.trim().to_owned()
}

/// Formats a number with at most four digits after the point.
fn number(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
