//! `dposlab protocols`: sets of rules under the same faults, side by side.

use super::{
    Failure,
    interrupt::stop_on_interrupt,
    output,
    progress::{Progress, bar_of_runs},
};
use crate::{
    ledger::rules::{self, NAMED, NamedRules},
    report::protocols::{Row, SITUATIONS, Situation, compare},
};
use clap::{Args, builder::PossibleValuesParser};
use serde_json::json;
use std::num::NonZeroUsize;

/// Compare protocols under the same faults.
///
/// Plays each situation under each set of rules, with 21 delegates, and prints a table: slots without a block, rollbacks, messages,
/// how far the last final block lies below the tip, whether final blocks contradict each other, and in how many runs the network was
/// one and grew at the end. docs/protocols.md explains the rules.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Protocols {
    /// The sets of rules to compare; if not given, the protocols and the reference.
    #[arg(long, value_delimiter = ',', value_name = "NAME,...", value_parser = PossibleValuesParser::new(rules::all().map(|named| named.name)))]
    rules: Vec<String>,
    /// The situations; if not given, all.
    #[arg(long, value_delimiter = ',', value_parser = SITUATIONS.map(|situation| situation.name), value_name = "NAME,...")]
    situations: Vec<String>,
    /// Runs of each, with the seeds from 1 on.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    runs: u64,
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
  dposlab protocols                                       every set of rules in every situation
  dposlab protocols --rules tron,eos,lisk --situations split
  dposlab protocols --rules solar,solar-tie-broken --runs 20 --json";

impl Protocols {
    /// Compares the protocols and prints the tables.
    ///
    /// # Errors
    /// The comparison was interrupted.
    pub fn run(self) -> Result<(), Failure> {
        let asked = |named: &&NamedRules| self.rules.iter().any(|name| name == named.name);
        let rules: Vec<&'static NamedRules> = match self.rules.is_empty() {
            true => NAMED.iter().collect(),
            false => rules::all().filter(asked).collect(),
        };
        let situations: Vec<&'static Situation> = chosen(&SITUATIONS, &self.situations, |situation| situation.name);
        let total = rules.len() as u64 * situations.len() as u64 * self.runs;
        let stop = stop_on_interrupt()?;
        let bar = bar_of_runs(total);
        let jobs = super::jobs(self.jobs.map(NonZeroUsize::get));
        let rows = compare(&rules, &situations, 1..1 + self.runs, jobs, &stop, |done| {
            bar.set_position(done as u64);
            self.progress.tell(done as u64, total, json!({}));
        });
        bar.finish_and_clear();
        let Some(rows) = rows else {
            return Err(Failure::broken("interrupted: a table of some of the runs would mislead"));
        };
        output::line(&match self.json {
            true => json!({ "runs": self.runs, "rows": rows }).to_string(),
            false => table(&situations, &rows),
        });
        Ok(())
    }
}

/// The named items of a list, in the order of the list; all if none was named.
fn chosen<T>(all: &'static [T], names: &[String], name: fn(&T) -> &'static str) -> Vec<&'static T> {
    all.iter().filter(|one| names.is_empty() || names.iter().any(|named| named == name(one))).collect()
}

/// Formats a table of each situation in Markdown, which is also readable on a terminal.
fn table(situations: &[&Situation], rows: &[Row]) -> String {
    let mut out = String::new();
    for situation in situations {
        out.push_str(&format!("{}: {}\n\n", situation.name, situation.what));
        out.push_str(
            "| rules            | missed | rollbacks | deepest | messages | final below | at most | conflicts | one chain |\n",
        );
        out.push_str(
            "|------------------|-------:|----------:|--------:|---------:|------------:|--------:|----------:|----------:|\n",
        );
        for row in rows.iter().filter(|row| row.situation == situation.name) {
            let below = row.final_below_mean.map_or("-".to_owned(), |below| format!("{below:.1}"));
            let at_most = row.final_below_max.map_or("-".to_owned(), |below| below.to_string());
            let (conflicts, united) =
                (format!("{} of {}", row.conflicts, row.runs), format!("{} of {}", row.united, row.runs));
            out.push_str(&format!(
                "| {:<16} | {:>4.1} % | {:>9.1} | {:>7} | {:>8.0} | {below:>11} | {at_most:>7} | {conflicts:>9} | {united:>9} |\n",
                row.rules, row.missed_percent, row.rollbacks, row.deepest, row.messages
            ));
        }
        out.push('\n');
    }
    out.truncate(out.trim_end().len());
    out
}
