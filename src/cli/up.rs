//! `dposlab up`: a testnet in one command.

mod announce;
mod api;
mod beginning;
mod chains;
mod keep;
mod lists;
pub(super) mod network;
mod open_files;
mod progress;
mod ready_file;
#[doc(hidden)]
pub mod stop;

use super::{
    Failure,
    log_file::LogFile,
    output::{Manner, Printer},
    parent::WithParent,
};
use crate::{
    actors::NodeId,
    api::{
        Funds, LabBoard,
        webhooks::{EventNumbers, Rehearing},
    },
    ledger::rules::Gossip,
    protocol::Timestamp,
    report::session::{IncompleteRecording, KeptSession, Session, SessionWriter, state::LoadedState},
    scenario::{Override, StageKind, run::on_current_thread, testnet::DELEGATES_LIMIT},
    sim::{
        Live, Pace, Stage, TraceDigest,
        live::{Journal, Settler},
        snapshots::CameIn,
    },
};
use announce::Announcer;
use api::ApiOptions;
use beginning::Beginning;
use clap::Args;
use keep::Keep;
use ready_file::ReadyFile;
use std::{
    io::{self, BufWriter, Write},
    net::{IpAddr, Ipv4Addr},
    path::{Path, PathBuf},
    str::FromStr,
    sync::Arc,
    thread,
};
use stop::Interrupts;
use tokio::{runtime::Builder, sync::watch};

/// Start a testnet: delegates forging on the virtual 8-second clock, and the public API over it.
///
/// Keys, accounts and genesis follow from the seed. SDKs set to their `testnet` preset work with it: docs/sdk.md.
///
/// With a scenario file its network, rules, faults and clients run live, at any pace; while nothing comes in from outside,
/// event for event as in `dposlab run`. Where its last round ends, it goes on as a testnet. Its assertions, and the rules by
/// which it ends, are for `dposlab run`. Clients sign really, so all do: `crypto = "modelled"` counts as "real".
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Up {
    /// A scenario to run live, a TOML file (see scenarios/). It describes the network, so --delegates, --gossip and
    /// --network-dir are not allowed with it. --set is allowed.
    #[arg(conflicts_with_all = ["delegates", "gossip", "network_dir"])]
    scenario: Option<PathBuf>,
    /// Port of the API.
    #[arg(long, default_value_t = 4003)]
    port: u16,
    /// Address the API listens on. Every client that reaches it can submit transactions; /lab stays on loopback.
    #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    host: IpAddr,
    /// The seed of all keys, latencies and choices.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of delegates.
    #[arg(long, default_value_t = 51, value_parser = clap::value_parser!(u32).range(1..=i64::from(DELEGATES_LIMIT)),
          conflicts_with = "network_dir")]
    delegates: u32,
    /// Replace a value of the scenario, or of what `up` runs without one: 'network.loss=0.05'. May be given again,
    /// and wins over all other options.
    #[arg(long, value_name = "PATH=VALUE")]
    set: Vec<Override>,
    /// The host of the actors: 'ractor', each observable by itself, or 'inline', about five times as fast. The outcome is
    /// the same.
    #[arg(long, value_enum, default_value = "ractor")]
    stage: StageKind,
    /// Virtual seconds per real second, or 'max' for as fast as it goes.
    #[arg(long, default_value = "1", value_name = "K|max", value_parser = parse_speed, conflicts_with = "pace")]
    speed: Pace,
    /// 'manual': nothing happens until POST /lab/advance. 'on-demand': nor then, but a transaction that comes in is in a
    /// block at once; POST /api/transactions answers after it. POST /lab/pace changes the pace while running.
    #[arg(long, value_parser = parse_pace, value_name = "manual|on-demand")]
    pace: Option<Pace>,
    /// The virtual time the network starts at: 'genesis', 'now', or seconds since the network's epoch.
    #[arg(long, default_value = "genesis", value_name = "TIME")]
    start: Start,
    /// Load another network: a folder with genesisBlock.json, milestones.json, network.json and exceptions.json.
    #[arg(long, value_name = "DIR", requires = "secrets")]
    network_dir: Option<PathBuf>,
    /// The delegates that forge here, as {"secrets": ["passphrase", ...]}; without any, the chain is read-only.
    #[arg(long, value_name = "FILE", requires = "network_dir")]
    secrets: Option<PathBuf>,
    /// Begin on an existing chain of the same network, each block of it fully verified. JSON, in any order: pages of
    /// /api/blocks and of /api/transactions?transform=false as served, or a block a line with its transactions in it, as
    /// `dposlab export` writes it, which may be larger than the memory.
    #[arg(long, value_name = "FILE")]
    chain: Option<PathBuf>,
    /// The way of blocks and transactions: 'once', straight to all others, transactions in order; or as in the 'reference'
    /// node, blocks in four waves, transactions to some, who refuse what comes out of order; or 'announce', blocks to those who
    /// ask for them, transactions as in the reference.
    #[arg(long, default_value = "once", value_parser = parse_gossip, value_name = "HOW")]
    gossip: Gossip,
    /// Go on from a snapshot, a file of GET /lab/snapshots/ID/file, or from where a recording of --record or GET /lab/recording
    /// ends: the same network, at the same instant. The file says what the network is and how it began.
    #[arg(long, value_name = "FILE",
          conflicts_with_all = ["scenario", "seed", "delegates", "set", "start", "network_dir", "chain", "gossip"])]
    from: Option<PathBuf>,
    /// Write down how the session began and all that comes in, so that `dposlab replay FILE` repeats it exactly.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Append the first node's log to a file, which SIGHUP opens anew. Without, its end is kept for GET /api/node/debug only.
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Megabytes after which the log goes to FILE.1, and what was there is gone.
    #[arg(long, value_name = "MB", default_value_t = 64, requires = "log",
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    log_size: u32,
    /// Write the object that --json prints when it is ready, with ports, accounts and delegates, to a file as well, as soon as
    /// the API answers. It appears whole and is gone when the testnet stops. One that a killed testnet has left is taken away
    /// at the start; any other file there is an error.
    #[arg(long, value_name = "FILE")]
    ready_file: Option<PathBuf>,
    #[command(flatten)]
    parent: WithParent,
    /// Print JSON, one object a line, for scripts.
    #[arg(long)]
    json: bool,
    /// Print the network at the start and the end, and no line a block.
    #[arg(long)]
    quiet: bool,
    #[command(flatten)]
    keep: Keep,
    #[command(flatten)]
    api: ApiOptions,
}

const EXAMPLES: &str = "\
While it runs:
  curl http://127.0.0.1:4003/api/node/status
  curl -X POST http://127.0.0.1:4003/lab/advance -H 'content-type: application/json' -d '{\"slots\": 10}'
  curl -X POST http://127.0.0.1:4003/lab/pace -H 'content-type: application/json' -d '{\"pace\": 100}'
  curl -X POST http://127.0.0.1:4003/lab/accounts -H 'content-type: application/json' -d '{\"count\": 2, \"balance\": 500000000}'
  curl http://127.0.0.1:4003/lab/webhooks
Other testnets:
  dposlab up scenarios/partition-uneven.toml        a scenario, live
  dposlab up --set network.loss=0.05                the same network as without, which loses messages
  dposlab up --api-nodes 3                          three nodes, each with its own API: ports 4003, 4004, 4005
  dposlab up --data-dir ./testnet                   the same command goes on where it was, whatever ended it
  dposlab up --host 0.0.0.0 --rate-limit 100        for others on the network, who may not use webhooks
  dposlab up --webhook-targets loopback,10.1.0.0/16 webhooks may go to these addresses and to no others
Ctrl-C stops it.";

/// The virtual time at which a network starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    /// The first slot after genesis, which gives the same chain every time.
    Genesis,
    /// With the slot of the wall clock.
    Now,
    /// With the slot of this time.
    At(Timestamp),
}

/// The latest time that a network can start at.
pub(super) const LATEST_START: Timestamp = Timestamp(4_000_000_000);

impl FromStr for Start {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "genesis" => Ok(Self::Genesis),
            "now" => Ok(Self::Now),
            seconds => match seconds.parse() {
                Ok(seconds) if (1..=LATEST_START.0).contains(&seconds) => Ok(Self::At(Timestamp(seconds))),
                _ => Err(starts_from(1)),
            },
        }
    }
}

/// The times that a network can start at. `first` is the start of the first slot after genesis, in seconds.
fn starts_from(first: u32) -> String {
    format!("give 'genesis', 'now' or seconds since the epoch, {first} to {LATEST_START}")
}

fn parse_speed(text: &str) -> Result<Pace, String> {
    match text.parse()? {
        pace @ (Pace::Manual | Pace::OnDemand) => Err(format!("for such a clock say --pace {pace}")),
        pace => Ok(pace),
    }
}

fn parse_pace(text: &str) -> Result<Pace, String> {
    match text.parse() {
        Ok(pace @ (Pace::Manual | Pace::OnDemand)) => Ok(pace),
        _ => Err("give 'manual' or 'on-demand'; for a clock that runs say --speed".into()),
    }
}

fn parse_gossip(text: &str) -> Result<Gossip, String> {
    match text {
        "once" => Ok(Gossip::Once),
        "reference" => Ok(Gossip::Reference),
        "announce" => Ok(Gossip::Announce),
        _ => Err("give 'once', 'reference' or 'announce'".into()),
    }
}

impl Up {
    /// Runs the testnet until Ctrl-C.
    ///
    /// # Errors
    /// The port is in use, the network folder cannot be read, or an actor died.
    pub fn run(self) -> Result<(), Failure> {
        let interrupts = Interrupts::listen(self.parent.parent()?).map_err(Failure::broken)?;
        let mut ready_file = self.ready_file.as_deref().map(ReadyFile::claim).transpose()?;
        // The port first: a mistake there should not cost the time to make a network.
        let ports = self.api.listen(self.host, self.port)?;
        let data = self.keep.claim()?;
        let digest = TraceDigest::default();
        let served = self.api.api_nodes.into();
        let numbers = EventNumbers::of(served);
        let mut beginning = match &self.from {
            Some(file) => Beginning::from_file(file, vec![Box::new(digest.clone()), Box::new(numbers.clone())])?,
            None => self.beginning()?,
        };
        let desk = beginning.network.desk(&beginning.plan);
        let seen = (&digest, &numbers);
        let kept = data.as_ref().map(|data| self.keep.begin(data, served, &desk, seen, &mut beginning)).transpose()?;
        let heard = kept.as_ref().map_or_else(|| Rehearing::nothing(numbers), |kept| kept.heard.clone());
        let Beginning { network, was_modelled, plan, session, arrived } = beginning;
        let log = self.log_printer()?;
        let tell = if self.json { left_out_json } else { left_out_text };
        let printer = Printer::new(std::io::stdout(), Manner::LeaveOut { tell });
        let announcer = Announcer::new(printer.clone(), self.json, NodeId(0), plan.tree.clone());
        let announcer = announcer.quiet(self.quiet);
        let announcer = match &self.scenario {
            Some(file) => announcer.of_scenario(file, &network.scenario, network.seeds, was_modelled),
            None => announcer,
        };
        let hosted = match self.stage {
            StageKind::Inline => "inline",
            StageKind::Ractor => "ractor",
        };
        let board = LabBoard::new(&plan).of_run(session.seed, hosted);
        let events = kept.as_ref().map_or(0, |kept| kept.events_before());
        let (served, mut observers) = self.api.serve(ports, &plan, log.as_ref(), board, data, (&heard, events))?;
        observers.push(Box::new(announcer.clone()));
        let addresses = served.addresses();
        let history = arrived.as_ref().map_or(&[][..], |arrived| &arrived.history);
        if let Some(kept) = &kept {
            observers.insert(0, Box::new(kept.writer.clone()));
        }
        let (journal, recorded) = match self.journal(&session, history, &digest)? {
            Some(writer) => {
                let recorded = writer.outcome();
                (Some(Box::new(writer) as Box<dyn Journal>), Some(recorded))
            }
            None => (kept.as_ref().map(|kept| Box::new(kept.writer.clone()) as Box<dyn Journal>), None),
        };
        let session_kept = kept.as_ref().and_then(|kept| kept.session(&session));
        let session_kept = session_kept.unwrap_or_else(|| KeptSession::new(&session, history, digest.clone()));
        observers.push(Box::new(digest));
        let pace = kept.as_ref().and_then(|kept| kept.pace).unwrap_or(self.pace.unwrap_or(self.speed));
        // Work on other chains is abandoned once the testnet has stopped.
        let beside = Builder::new_multi_thread().worker_threads(2).thread_name("chains").enable_time().build();
        let beside = beside.map_err(Failure::broken)?;
        let chains = chains::beside(&network, &session, served.webhooks_beside(), beside.handle().clone());
        let seed = session.seed;
        let checkpoints = kept.as_ref().map(|kept| kept.checkpoints(&plan)).transpose()?;
        let live = async {
            let mut stage = match self.stage {
                StageKind::Inline => Stage::inline(&plan, observers),
                StageKind::Ractor => Stage::ractor(&plan, observers).await.map_err(Failure::broken)?,
            };
            if let Some(LoadedState { moment, snapshots, .. }) = arrived {
                stage.begin_at(&moment, snapshots).await.map_err(Failure::broken)?;
            }
            let (live, handle) = Live::new(stage, plan.tree.slots(), pace);
            let past = served.past();
            let live = live
                .journalled(journal)
                .journalled(Some(Box::new(session_kept.clone())))
                .remembered(past)
                .settled_by(kept.as_ref().map(|kept| Box::new(kept.writer.clone()) as Box<dyn Settler>))
                .kept(checkpoints)
                .begun()
                .await
                .map_err(Failure::broken)?;
            let funds = Arc::new(Funds::new(network.testnet.accounts.clone(), network.seeds));
            let (servers, webhooks) = served.start(&handle, &funds, &desk, &chains, session, session_kept);
            let (stop_api, stopped) = watch::channel(false);
            let api = thread::spawn(move || {
                let served = api::serve(servers, &stopped);
                webhooks.stop();
                served
            });
            // Signals are handled before the testnet is announced.
            interrupts.stop(handle.clone(), printer.clone());
            let ready = announcer.ready(&network, seed, pace, &addresses, self.log.as_deref());
            let told = ready_file.as_mut().map_or(Ok(()), |file| file.write(&ready));
            if told.is_err() {
                handle.stop();
            }
            let ended = live.run().await.map_err(Failure::broken);
            // The server may have ended by itself already.
            let _ended_already = stop_api.send(true);
            api.join().map_err(|_| Failure::broken("the API server panicked"))??;
            told.and(ended)
        };
        let ended = on_current_thread(live);
        beside.shutdown_background();
        announcer.stopped(ended.as_ref().ok().copied());
        printer.flush().map_err(|why| Failure::broken(format!("standard output: {why}")))?;
        if let (Some(log), Some(file)) = (log, &self.log) {
            log.flush().map_err(|why| Failure::broken(format!("--log {}: {why}", file.display())))?;
        }
        if let (Some(recorded), Some(file)) = (recorded, &self.record) {
            recorded().map_err(|why| Failure::broken(format!("--record {}: {why}", file.display())))?;
        }
        if let Some(kept) = kept {
            kept.outcome()?;
        }
        match (ended, &self.record) {
            (Ok(_), _) => Ok(()),
            (Err(Failure::Broken(why)), Some(file)) => {
                Err(Failure::broken(format!("{why}; to repeat: dposlab replay {}", file.display())))
            }
            (Err(why), _) => Err(why),
        }
    }

    fn log_printer(&self) -> Result<Option<Printer>, Failure> {
        let Some(path) = &self.log else { return Ok(None) };
        let file = LogFile::open(path, u64::from(self.log_size) << 20);
        let file = file.map_err(|why| Failure::usage(format!("--log {}: {why}", path.display())))?;
        let anew = file.anew();
        let printer = Printer::new(BufWriter::new(file), Manner::Wait);
        anew.at_hang_up(printer.clone()).map_err(Failure::broken)?;
        Ok(Some(printer))
    }

    /// Creates the journal of `--record`, if it is given. `history` holds the inputs from before its start.
    fn journal(
        &self,
        session: &Session,
        history: &[CameIn],
        digest: &TraceDigest,
    ) -> Result<Option<SessionWriter>, Failure> {
        let Some(file) = &self.record else { return Ok(None) };
        let wrong = |why: io::Error| {
            let why = match why.kind() {
                io::ErrorKind::AlreadyExists => "is there already; move it away or choose another name".to_owned(),
                _ => why.to_string(),
            };
            Failure::usage(format!("--record {}: {why}", file.display()))
        };
        let writer = SessionWriter::create(file, session, history, digest.clone()).map_err(wrong)?;
        let file = file.clone();
        let tell = move |cut: &IncompleteRecording| tell_cut_short(&file, cut);
        Ok(Some(writer.telling(tell)))
    }
}

/// Reports on standard error that the recording has ended, from a thread of its own: a stuck reader must not block the testnet.
/// Without a reader, only the exit code reports it.
fn tell_cut_short(file: &Path, cut: &IncompleteRecording) {
    let text =
        format!("dposlab: --record {}: {cut}. The testnet goes on, and what comes in is not recorded", file.display());
    thread::spawn(move || writeln!(io::stderr(), "{text}"));
}

fn left_out_text(lines: u64) -> String {
    format!("{lines} lines left out: they came faster than they were read")
}

fn left_out_json(lines: u64) -> String {
    serde_json::json!({ "event": "left_out", "lines": lines }).to_string()
}
