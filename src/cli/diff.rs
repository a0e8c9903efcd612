//! `dposlab diff`: the first event in which two traces differ.

use super::Failure;
use crate::report::trace::diff::{Difference, diff};
use clap::Args;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Name the first event in which two traces differ.
///
/// Compares files of `dposlab run --trace FILE.jsonl`, event by event; what their first lines say of the runs may differ.
/// Exit code 0: the same events; 1: they differ; 2: a file is no trace.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Diff {
    /// A trace.
    first: PathBuf,
    /// The trace to hold it against.
    second: PathBuf,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Example:
  dposlab run scenarios/healthy.toml --seed 1 --trace one.jsonl
  dposlab run scenarios/healthy.toml --seed 1 --set network.latency.max_ms=400 --trace two.jsonl
  dposlab diff one.jsonl two.jsonl";

impl Diff {
    /// Compares the traces and prints the first difference.
    ///
    /// # Errors
    /// The traces differ, or a file is no trace.
    pub fn run(self) -> Result<(), Failure> {
        match diff(&self.first, &self.second).map_err(Failure::usage)? {
            Difference::None { events } => {
                super::output::line(&match self.json {
                    true => json!({ "same": true, "events": events }).to_string(),
                    false => format!("the same {events} events"),
                });
                Ok(())
            }
            Difference::At { event, first, second } => {
                super::output::line(&match self.json {
                    true => json!({ "same": false, "event": event, "first": first, "second": second }).to_string(),
                    false => {
                        let line = |file: &PathBuf, event| format!("  {}: {}", file.display(), shown(event));
                        let lines = [line(&self.first, &first), line(&self.second, &second)];
                        format!("event {event} is the first that differs:\n{}", lines.join("\n"))
                    }
                });
                Err(Failure::Told)
            }
        }
    }
}

fn shown(event: &Option<Value>) -> String {
    match event {
        Some(event) => event.to_string(),
        None => "ends before".to_owned(),
    }
}
