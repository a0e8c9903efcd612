//! A testnet that is kept in a folder, and goes on from there.

use super::beginning::Beginning;
use crate::{
    api::webhooks::{DataDir, EventNumbers, Rehearing},
    cli::Failure,
    report::session::{
        folder::{Folder, FolderError, FolderWriter, Opened, Resumed, Sync},
        state::Arrived,
    },
    scenario::{FaultDesk, run::among_actors},
    sim::{Observer, Pace, TraceDigest},
};
use clap::Args;
use std::path::PathBuf;

/// What is kept, and how surely.
#[derive(Debug, Args)]
#[command(next_help_heading = "Keeping")]
pub struct Keep {
    /// Keep everything the testnet is in this folder: blocks, pools, clock, faults, snapshots and webhooks. The same command
    /// goes on where it was, however it ended. Readable by its owner only, since secrets of webhooks are in it. Without,
    /// all is gone with the process.
    #[arg(long, value_name = "DIR", conflicts_with = "record")]
    data_dir: Option<PathBuf>,
    /// When what was written has to be on the disk itself: 'always', before a client is answered; so many milliseconds later
    /// at most; or 'never', when the system likes to. Killing the process loses nothing that was written, only a crash of
    /// the machine can.
    #[arg(long, value_name = "WHEN", default_value = "1000", requires = "data_dir")]
    sync: Sync,
}

/// A testnet's folder while it runs.
pub struct Kept {
    path: PathBuf,
    pub writer: FolderWriter,
    /// The pace that somebody set before.
    pub pace: Option<Pace>,
    /// The events that no webhook has heard of, and the numbers of all.
    pub heard: Rehearing,
}

impl Keep {
    /// The folder, which nobody else may have.
    ///
    /// # Errors
    /// It cannot be used, or another process has it.
    pub fn claim(&self) -> Result<Option<DataDir>, Failure> {
        let data = self.data_dir.as_deref().map(DataDir::open).transpose();
        data.map_err(|why| Failure::usage(format!("--data-dir {why}")))
    }

    /// Begins to keep the testnet in a folder that was claimed, or has it go on where it was. Clients are told of the blocks
    /// of the first `served` nodes. `digest` sees all that happened before, and `numbers` counts what happened before the folder.
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
    ) -> Result<Kept, Failure> {
        let (session, plan) = (&beginning.session, &beginning.plan);
        let folder = Folder::new(data.path());
        let crypto = beginning.network.scenario.crypto;
        let heard = Rehearing::new(data, served, plan).map_err(|why| Failure::usage(format!("--data-dir {why}")))?;
        let watching: Vec<Box<dyn Observer>> = vec![Box::new(digest.clone()), Box::new(heard.clone())];
        let opened = crypto.during(|| among_actors(folder.open(session, plan, desk, watching)));
        let Opened { log, settling, made_again, resumed } = opened.map_err(failure)?;
        let writer = FolderWriter::new(log, settling, self.sync, plan, served);
        let path = data.path().to_owned();
        if let Some(why) = made_again {
            let folder = path.display();
            eprintln!("dposlab: --data-dir {folder}: index/blocks was made again from the log: {why}");
        }
        let Some(Resumed { moment, snapshots, history, pace, torn }) = resumed else {
            if let Some(arrived) = &beginning.arrived {
                writer.begin_with(&arrived.snapshots);
            }
            return Ok(Kept { path, writer, pace: None, heard: Rehearing::nothing(numbers.clone()) });
        };
        if torn > 0 {
            eprintln!(
                "dposlab: --data-dir {}: {torn} bytes of a record that was not whole are cut off",
                path.display()
            );
        }
        beginning.arrived = Some(Arrived { moment, snapshots, history });
        Ok(Kept { path, writer, pace, heard })
    }
}

impl Kept {
    /// Says, once the testnet has stopped, whether all of it is in the folder.
    ///
    /// # Errors
    /// It is not.
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

/// Whose mistake it is: what is in the folder is the caller's.
fn failure(why: FolderError) -> Failure {
    match why {
        FolderError::Died(_) => Failure::broken(why),
        _ => Failure::usage(format!("--data-dir {why}")),
    }
}
