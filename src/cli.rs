//! The commands, one file each. A caller's mistake ends the program with one line on standard error and exit code 2.

pub(crate) mod check;
pub(crate) mod diff;
pub(crate) mod explain;
pub(crate) mod export;
pub(crate) mod figures;
#[doc(hidden)]
pub mod fuzz;
pub(crate) mod indices;
mod interrupt;
mod log_file;
mod memory;
pub(crate) mod merge;
pub(crate) mod observe;
mod origin;
pub mod output;
pub(crate) mod pages;
mod parent;
pub(crate) mod points;
mod progress;
pub(crate) mod protocols;
mod repeat;
pub(crate) mod replay;
pub(crate) mod run;
pub(crate) mod schema;
mod shard;
mod span;
mod strategies;
pub(crate) mod sweep;
pub mod up;
pub(crate) mod validate;
mod values;

use crate::files::printable;
use clap::{Parser, Subcommand};
use std::{fmt::Display, net::SocketAddr, process::ExitCode, thread};

/// A delegated-proof-of-stake network in one process: a deterministic simulator and an instant testnet.
#[derive(Debug, Parser)]
#[command(name = "dposlab", version, about, after_help = EXAMPLES)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
    /// A process on this machine that decides strategies, such as 127.0.0.1:4100 (docs/extending.md); may be given again.
    #[arg(long, global = true, value_name = "ADDRESS")]
    strategies: Vec<SocketAddr>,
    /// Stop, as at Ctrl-C, when this process takes more memory than this, such as 8GiB; by default two thirds of what the system has available.
    #[arg(long, global = true, value_name = "BYTES")]
    max_memory: Option<memory::Bytes>,
}

const EXAMPLES: &str = "\
Examples:
  dposlab up                                        51 delegates forging, the API on http://127.0.0.1:4003/api
  dposlab up --pace manual                          nothing happens until POST /lab/advance {\"slots\": 10}
  dposlab run scenarios/missed-slots.toml --seed 7  who owned, forged and missed which slot
  dposlab run scenarios/healthy.toml --out out/one  the same as tables, a trace and a page with plots
  dposlab sweep scenarios/healthy.toml --seeds 0..100 --vary network.latency.max_ms=100,1000 --out out/many";

#[derive(Debug, Subcommand)]
enum Command {
    Up(Box<up::Up>),
    Run(run::Run),
    Schema(schema::Schema),
    Sweep(sweep::Sweep),
    Merge(merge::Merge),
    Points(points::Points),
    Indices(indices::Indices),
    Figures(figures::FigureFiles),
    Replay(replay::Replay),
    Export(export::Export),
    Observe(observe::Observe),
    Diff(diff::Diff),
    Check(check::Check),
    Explain(explain::Explain),
    Protocols(protocols::Protocols),
    Validate(validate::Validate),
    Pages(pages::Pages),
}

/// The early end of a command: the line to print, and whose mistake it was.
#[derive(Debug)]
pub enum Failure {
    /// The caller's: exit code 2.
    Usage(String),
    /// Not the caller's: exit code 1.
    Broken(String),
    /// A negative answer that is already on standard output: exit code 1.
    Told,
}

impl Failure {
    /// A mistake of the caller's.
    pub fn usage(why: impl Display) -> Self {
        Self::Usage(why.to_string())
    }

    /// A failure of the program or the machine.
    pub fn broken(why: impl Display) -> Self {
        Self::Broken(why.to_string())
    }
}

/// Runs the command that the arguments of the process name. A program that first [registers](crate::sim::strategy::register)
/// strategies of its own calls this for all the rest.
pub fn main() -> ExitCode {
    Cli::parse().run()
}

/// The number of threads: as given, or one for each core.
fn jobs(given: Option<usize>) -> usize {
    given.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from))
}

impl Cli {
    /// Runs the command; 0 is success, 1 a failed run, 2 a mistake of the caller's.
    pub fn run(self) -> ExitCode {
        memory::watch(self.max_memory);
        let known = self.strategies.iter().try_for_each(|address| strategies::connect(*address));
        let result = known.and_then(|()| match self.command {
            Command::Up(up) => up.run(),
            Command::Run(run) => run.run(),
            Command::Schema(schema) => schema.run(),
            Command::Sweep(sweep) => sweep.run(),
            Command::Merge(merge) => merge.run(),
            Command::Points(points) => points.run(),
            Command::Indices(indices) => indices.run(),
            Command::Figures(figures) => figures.run(),
            Command::Replay(replay) => replay.run(),
            Command::Export(export) => export.run(),
            Command::Observe(observe) => observe.run(),
            Command::Diff(diff) => diff.run(),
            Command::Check(check) => check.run(),
            Command::Explain(explain) => explain.run(),
            Command::Protocols(protocols) => protocols.run(),
            Command::Validate(validate) => validate.run(),
            Command::Pages(pages) => pages.run(),
        });
        match result.and_then(|()| output::failure().map_or(Ok(()), Err)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(Failure::Usage(why)) => {
                output::aside(&format!("dposlab: {}", printable(&why)));
                ExitCode::from(2)
            }
            Err(Failure::Told) => ExitCode::from(1),
            Err(Failure::Broken(why)) => {
                output::aside(&format!("dposlab: {}", printable(&why)));
                ExitCode::from(1)
            }
        }
    }
}
