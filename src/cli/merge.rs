//! `dposlab merge`: the parts of a sweep into one.

use super::{
    Failure,
    sweep::{failure, tell},
};
use crate::report::sweep::results;
use clap::Args;
use std::path::{Path, PathBuf};

/// Join the parts of a sweep that were run with --shard.
///
/// The result is the same, byte for byte, as if the sweep had been run in one piece; exit codes are those of `dposlab
/// sweep`. The scenario must be where it was when the parts were run.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Merge {
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
Example:
  dposlab sweep scenarios/healthy.toml --seeds 0..200 --shard 1/2 --out out/part-1
  dposlab sweep scenarios/healthy.toml --seeds 0..200 --shard 2/2 --out out/part-2
  dposlab merge out/part-1 out/part-2 --out out/whole";

impl Merge {
    /// Merges.
    ///
    /// # Errors
    /// The folders are not all parts of one sweep, or some runs failed.
    pub fn run(self) -> Result<(), Failure> {
        let parts: Vec<&Path> = self.parts.iter().map(PathBuf::as_path).collect();
        let summary = results::merge(&parts, &self.out, self.compare).map_err(failure)?;
        tell(&summary, &self.out, self.json)
    }
}
