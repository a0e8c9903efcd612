//! A testnet that is stored in a folder and continues from there.

use super::beginning::Beginning;
use crate::{
    api::webhooks::{DataDir, EventNumbers, Rehearing},
    cli::Failure,
    files,
    protocol::Height,
    report::session::{
        KeptSession, Session,
        folder::{
            Folder, FolderError, FolderWriter, OpenFolder, ResumedTestnet, SegmentVerifier, Sync,
            checkpoint::{self, Beside, Checkpoints},
        },
        state::LoadedState,
    },
    scenario::{FaultDesk, run::among_actors},
    sim::{Observer, Pace, Plan, TraceDigest, snapshots::LogPlace},
};
use clap::Args;
use std::path::PathBuf;

/// Options of a testnet that is kept.
#[derive(Debug, Args)]
#[command(next_help_heading = "Keeping")]
pub(crate) struct Keep {
    /// The folder for the state of the testnet: blocks, pools, clock, faults, snapshots and webhooks. The same command continues
    /// from this state, also after a crash. Only the owner can read the folder, since it holds the secrets of webhooks. Without
    /// a folder the state ends with the process.
    #[arg(long, value_name = "DIR", conflicts_with = "record")]
    data_dir: Option<PathBuf>,
    /// When written records are synced to the disk: 'always' (before a client is answered), a number of milliseconds (at most this
    /// long after the write), or 'never' (when the system does it). A killed process loses no written record. A crash of the
    /// machine can lose unsynced ones.
    #[arg(long, value_name = "WHEN", default_value = "1000", requires = "data_dir")]
    sync: Sync,
    /// Write a checkpoint at the start, after this number of blocks, and every five seconds if there are new events. A start
    /// replays only the events after the last checkpoint.
    #[arg(long, value_name = "BLOCKS", default_value_t = checkpoint::EVERY, requires = "data_dir",
          value_parser = clap::value_parser!(u32).range(1..))]
    checkpoint_every: u32,
}

/// The most events that a byte of the log stands for. A block takes some 200 bytes, and a log of 2 TB leaves numbers below 2^53.
const EVENTS_A_BYTE: u64 = 4_096;

/// A testnet's folder while it runs.
pub(crate) struct TestnetFolder {
    path: PathBuf,
    pub writer: FolderWriter,
    /// The position in the log up to which earlier processes wrote it. `None` if this process began the testnet.
    earlier: Option<LogPlace>,
    /// The bytes of the log that earlier processes wrote.
    bytes: u64,
    /// The pace that a client of an earlier process set.
    pub pace: Option<Pace>,
    /// The events that were not yet posted to webhooks, and the numbers of all events.
    pub heard: Rehearing,
    digest: TraceDigest,
    every: u32,
    /// The part of the log that the start did not read.
    _verifying: Option<SegmentVerifier>,
}

impl Keep {
    /// Claims the folder, which no other process may have.
    ///
    /// # Errors
    /// The folder cannot be used, another process has it, or it holds something that is neither a file nor a folder.
    pub fn claim(&self) -> Result<Option<DataDir>, Failure> {
        let data = self.data_dir.as_deref().map(DataDir::open).transpose();
        let data = data.map_err(|why| Failure::usage(format!("--data-dir {why}")))?;
        if let Some(folder) = &self.data_dir {
            files::check_own_folder(folder).map_err(|why| Failure::usage(format!("--data-dir {why}")))?;
        }
        Ok(data)
    }

    /// Begins to store the testnet in a claimed folder, or continues it. Clients see the blocks of the first `served` nodes. `digest`
    /// sees all earlier events, and `numbers` counts those from before the folder.
    ///
    /// # Errors
    /// The folder holds another testnet, or is damaged.
    pub fn begin(
        &self,
        data: &DataDir,
        served: u32,
        desk: &FaultDesk,
        (digest, numbers): (&TraceDigest, &EventNumbers),
        beginning: &mut Beginning,
    ) -> Result<TestnetFolder, Failure> {
        let (session, plan) = (&beginning.session, &beginning.plan);
        let folder = Folder::new(data.path());
        let heard = Rehearing::new(data, served, plan).map_err(|why| Failure::usage(format!("--data-dir {why}")))?;
        let watching: Vec<Box<dyn Observer>> = vec![Box::new(digest.clone()), Box::new(heard.clone())];
        let beside = beside(digest, &heard);
        let opened = among_actors(folder.open_with(session, plan, desk, watching, Some(&beside)));
        let OpenFolder { log, settling, inputs, made_again, resumed } = opened.map_err(failure)?;
        let writer = FolderWriter::new(log, settling, inputs, self.sync, plan, served);
        let path = data.path().to_owned();
        if let Some(why) = made_again {
            let folder = path.display();
            eprintln!("dposlab: --data-dir {folder}: index/blocks was made again from the log: {why}");
        }
        let Some(ResumedTestnet { moment, snapshots, pace, torn, told, known, base }) = resumed else {
            if let Some(LoadedState { moment, snapshots, .. }) = &mut beginning.arrived {
                writer.begin_with(snapshots, moment).map_err(unwritten)?;
            }
            folder.becomes_testnet().map_err(unwritten)?;
            let (heard, digest) = (Rehearing::nothing(numbers.clone()), digest.clone());
            let every = self.checkpoint_every;
            return Ok(TestnetFolder {
                path,
                writer,
                earlier: None,
                bytes: 0,
                pace: None,
                heard,
                digest,
                every,
                _verifying: None,
            });
        };
        if torn > 0 {
            eprintln!(
                "dposlab: --data-dir {}: {torn} bytes of a record that was not whole are cut off",
                path.display()
            );
        }
        told.iter().for_each(|why| eprintln!("dposlab: --data-dir {why}"));
        let writer = writer.after(known.clone());
        writer.complete(moment.tips()).map_err(|why| unwritten(why.into()))?;
        beginning.arrived = Some(LoadedState { moment, snapshots, history: Vec::new() });
        let folder = path.display().to_string();
        let tell = move |why| eprintln!("dposlab: --data-dir {folder}: {why}; what it held cannot be served");
        let verifying = (base > Height(0)).then(|| SegmentVerifier::new(&known, &path.join("log"), tell));
        let (earlier, bytes) = (Some(known.log_place()), known.bytes());
        let every = self.checkpoint_every;
        Ok(TestnetFolder {
            path,
            writer,
            earlier,
            bytes,
            pace,
            heard,
            digest: digest.clone(),
            every,
            _verifying: verifying,
        })
    }
}

impl TestnetFolder {
    /// A number that is greater than the number of any event that an earlier process gave to clients, 0 without one. It follows from the
    /// length of the log, because what is played anew from one place of the log is the same.
    pub fn events_before(&self) -> u64 {
        self.bytes * EVENTS_A_BYTE
    }

    /// Returns the writer of checkpoints for the running testnet.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn checkpoints(&self, plan: &Plan) -> Result<Checkpoints, Failure> {
        let beside = beside(&self.digest, &self.heard);
        let tell = |why: &str| eprintln!("dposlab: --data-dir {why}");
        let checkpoints = Checkpoints::new(&self.path, plan, self.writer.clone(), beside, self.every, tell);
        checkpoints.map_err(|why| Failure::usage(format!("--data-dir {}: {why}", self.path.display())))
    }

    /// The session that continues the one in the folder. `None` if the session begins in this process.
    pub fn session(&self, session: &Session) -> Option<KeptSession> {
        let until = self.earlier?;
        Some(KeptSession::after(session, self.writer.inputs(), until, self.digest.clone()))
    }

    /// Checks, once the testnet has stopped, that all of it is in the folder.
    ///
    /// # Errors
    /// Something could not be written.
    pub fn outcome(&self) -> Result<(), Failure> {
        let written = self.writer.outcome();
        written.map_err(|why| {
            let folder = self.path.display();
            Failure::broken(format!(
                "--data-dir {folder}: {why}; the testnet was stopped, and is kept as far as it was written"
            ))
        })
    }
}

/// The observers whose state a checkpoint holds beside the moment.
fn beside(digest: &TraceDigest, heard: &Rehearing) -> Beside {
    let (numbers, going_on) = (heard.numbers(), heard.clone());
    Beside {
        digest: digest.clone(),
        numbers: Box::new(move || numbers.all()),
        go_on: Box::new(move |numbers| going_on.go_on(numbers)),
    }
}

/// The failure of a folder that cannot be written to, such as one on a full disk.
fn unwritten(why: FolderError) -> Failure {
    Failure::broken(format!("--data-dir {why}"))
}

/// Returns the failure with its exit code: the content of the folder is the caller's mistake.
fn failure(why: FolderError) -> Failure {
    match why {
        FolderError::Died(_) => Failure::broken(why),
        _ => Failure::usage(format!("--data-dir {why}")),
    }
}
