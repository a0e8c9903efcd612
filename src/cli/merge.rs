//! `dposlab merge`: the parts of a sweep, or the findings of searches, into one.

use super::{
    Failure, origin, output,
    sweep::{failure, tell},
};
use crate::{
    check::database::{self, Database},
    report::sweep::results,
};
use clap::Args;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Join the parts of a sweep that were run with --shard, or the findings of searches.
///
/// Folders of `dposlab check --for` join in any order and any number of times to the same bytes: the seeds that each build played, and
/// of each finding the smallest file. The folders may be of one search, of parts of one, of other builds or of other rules.
///
/// The parts of a sweep come to the same, byte for byte, as if the sweep had been run in one piece, but for provenance.json and the RO-Crate; exit codes are those of `dposlab
/// sweep`. Each part holds the scenario that it was run with.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Merge {
    /// The folders of all parts, in any order.
    #[arg(required = true, value_name = "DIR")]
    parts: Vec<PathBuf>,
    /// The folder for the whole.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Compare combinations of values, as `dposlab sweep --compare` does.
    #[arg(long)]
    compare: bool,
    /// Print the summary as one JSON object.
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  dposlab sweep scenarios/healthy.toml --seeds 0..200 --shard 1/2 --out out/part-1
  dposlab sweep scenarios/healthy.toml --seeds 0..200 --shard 2/2 --out out/part-2
  dposlab merge out/part-1 out/part-2 --out out/whole
  dposlab check --for 1m --shard 1/2 --out out/one
  dposlab check --for 1m --shard 2/2 --out out/two
  dposlab merge out/one out/two --out out/both";

impl Merge {
    /// Merges the folders and prints the summary.
    ///
    /// # Errors
    /// The folders are not all parts of one sweep, or some runs failed.
    pub fn run(self) -> Result<(), Failure> {
        let parts: Vec<&Path> = self.parts.iter().map(PathBuf::as_path).collect();
        if parts.iter().any(|part| part.join(database::FILE).exists()) {
            return self.join_findings(&parts);
        }
        let merged = results::merge(&parts, &self.out, self.compare, origin::command());
        let (sweep, summary) = merged.map_err(failure)?;
        origin::describe_sweep(&sweep, &self.out)?;
        tell(&summary, &self.out, self.json)
    }

    fn join_findings(&self, parts: &[&Path]) -> Result<(), Failure> {
        if self.compare {
            return Err(Failure::usage("--compare: found folders of findings, allowed are parts of a sweep"));
        }
        let database = Database::merge(parts, &self.out).map_err(|error| match error.is_bad_input() {
            true => Failure::usage(error),
            false => Failure::broken(error),
        })?;
        let frames = database.frames.values();
        let counts = frames.clone().flat_map(|frame| frame.played.values()).map(|played| played.seeds.count());
        let runs = counts.fold(0, u64::saturating_add);
        let files: usize = frames.map(|frame| frame.files.len()).sum();
        let out = self.out.display();
        match self.json {
            true => output::line(&json!({ "runs": runs, "files": files, "out": out.to_string() }).to_string()),
            false => output::line(&format!("{runs} runs, {files} findings with a file: {out}")),
        }
        Ok(())
    }
}
