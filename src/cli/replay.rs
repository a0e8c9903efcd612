//! `dposlab replay`: plays a recorded live session again.

use super::{
    Failure,
    up::{
        LATEST_START,
        network::{Secrets, UpNetwork},
    },
};
use crate::{
    protocol::Slot,
    report::{
        session::{ReplaySummary, Session, SessionFile, replay},
        trace::{TraceFormat, TraceWriter, line::Header},
    },
    scenario::{Scenario, run::among_actors},
    sim::{Plan, SeedTree},
};
use clap::Args;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Repeat a live session that `dposlab up --record FILE` has recorded, exactly.
///
/// Every transaction comes in at the virtual instant it came in then, and the digest of all events is held against the
/// recorded one. Exit code 0: the same; 1: it differs; 2: the file is no recorded session.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Replay {
    /// The recorded session.
    file: PathBuf,
    /// Write every event to this file: .jsonl for JSON lines (docs/trace.md), .json for a trace viewer.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Put messages between actors into the trace as well.
    #[arg(long, requires = "trace")]
    trace_network: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Example:
  dposlab up --record session.jsonl           use it, then Ctrl-C
  dposlab replay session.jsonl --trace session-trace.jsonl";

impl Replay {
    /// Replays the session and prints the result.
    ///
    /// # Errors
    /// The file is no session, its network is not there any more, or the replay differs.
    pub fn run(self) -> Result<(), Failure> {
        let wrong = |error: crate::report::session::SessionError| match error.is_bad_input() {
            true => Failure::usage(error),
            false => Failure::broken(error),
        };
        let file = SessionFile::open(&self.file).map_err(wrong)?;
        let (network, plan) = planned(&self.file, &file.session)?;
        let desk = network.desk(&plan);
        let about = self.file.display().to_string();
        let header = Header::new(about, file.session.seed, Vec::new(), self.trace_network, &plan);
        let trace = match &self.trace {
            Some(path) => {
                Some(TraceWriter::create(path, TraceFormat::of(path), &header, &plan).map_err(Failure::usage)?)
            }
            None => None,
        };
        let replayed = among_actors(replay(file, &plan, &desk, trace.as_ref())).map_err(wrong)?;
        if let Some(trace) = trace {
            trace.finish().map_err(Failure::broken)?;
        }
        self.tell(&replayed);
        Ok(())
    }

    fn tell(&self, replayed: &ReplaySummary) {
        let ReplaySummary { inputs, rules, events, digest, ended, .. } = replayed;
        let rules = match rules {
            0 => String::new(),
            rules => format!(", {rules} changes of chaos rules passed over"),
        };
        let end = match ended {
            true => "the same to its end",
            false => "the same to its last input; it was not stopped in order, so what came after is not known",
        };
        super::output::line(&match self.json {
            true => json!(replayed).to_string(),
            false => {
                format!("{}: {inputs} inputs{rules}, {events} events, {end}\ndigest:  {digest}", self.file.display())
            }
        });
    }
}

/// The network that a session ran on, and the run that it began as. `file` is named in errors.
///
/// # Errors
/// The network is missing or has changed.
pub(super) fn planned(file: &Path, session: &Session) -> Result<(UpNetwork, Plan), Failure> {
    let named = format!("{}:1: key 'scenario'", file.display());
    let scenario = Scenario::parse(&session.scenario, Path::new(&named)).map_err(Failure::usage)?;
    let file = file.display();
    let seeds = SeedTree::new(session.seed);
    let network = match (&session.network_dir, &session.secrets) {
        (Some(dir), Some(secrets)) => UpNetwork::load(dir, Secrets::load(secrets)?, secrets, scenario, seeds)?,
        (None, None) => UpNetwork::generate(scenario, seeds)?,
        _ => {
            return Err(Failure::usage(format!(
                "{file}:1: keys 'network_dir' and 'secrets': found one, allowed are both"
            )));
        }
    };
    let nethash = network.tree.config().network.nethash.to_string();
    if nethash != session.nethash {
        let recorded = &session.nethash;
        return Err(Failure::usage(format!(
            "{file}:1: key 'nethash': recorded {recorded}, the network is {nethash} now"
        )));
    }
    let tip = match &session.chain {
        Some(chain) => network.import(chain)?,
        None => network.tree.genesis().clone(),
    };
    let slots = network.tree.slots();
    let earliest = slots.slot(tip.block().header.timestamp).0.saturating_add(1);
    let latest = slots.slot(LATEST_START).0;
    if session.start < earliest || session.start > latest {
        let start = session.start;
        return Err(Failure::usage(format!("{file}:1: key 'start': found {start}, allowed is {earliest} to {latest}")));
    }
    let plan = network.plan(tip, Slot(session.start));
    Ok((network, plan))
}
