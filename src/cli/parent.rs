//! The option `--exit-with-parent`: this process ends with the process that started it.

use super::{Failure, output};
use clap::Args;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{Pid, PidfdFlags, Signal, getpid, getppid, kill_process, pidfd_open},
};
use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    thread,
};

/// The time that a command without a reader gets to finish its files.
const PATIENCE: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// The option of commands that other programs start.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct WithParent {
    /// Stop when the process that started this one ends, however it ends; or the process of this number.
    #[arg(long = "exit-with-parent", value_name = "PID", num_args = 0..=1, require_equals = true,
          default_missing_value = "0")]
    number: Option<u32>,
}

impl WithParent {
    /// Opens a handle of the process that the option names, if it is given.
    ///
    /// # Errors
    /// There is no such process any more, or the system gives out no handles.
    pub fn parent(&self) -> Result<Option<Parent>, Failure> {
        self.number.map(Parent::of).transpose()
    }

    /// Watches that process from now on, in a thread of its own. When it ends, this process stops as at Ctrl-C. A second later this
    /// process exits in any case.
    ///
    /// # Errors
    /// As [`Self::parent`].
    pub fn watch(&self) -> Result<(), Failure> {
        if let Some(parent) = self.parent()? {
            thread::spawn(move || end_with(&parent));
        }
        Ok(())
    }
}

/// A process whose end ends this one: a handle of the system, so a reused process id cannot mislead the program.
pub struct Parent(OwnedFd);

impl Parent {
    /// The process of this number; for 0 the one that started this process.
    ///
    /// # Errors
    /// There is none any more, or the system gives out no handles of processes (Linux before 5.3).
    fn of(number: u32) -> Result<Self, Failure> {
        let option = "--exit-with-parent";
        let parent = match number {
            0 => getppid(),
            number => i32::try_from(number).ok().and_then(Pid::from_raw),
        };
        let Some(parent) = parent else {
            return Err(Failure::usage(format!(
                "{option}: found no parent process in sight, give its number: {option}=PID"
            )));
        };
        let handle = pidfd_open(parent, PidfdFlags::empty());
        let handle =
            handle.map_err(|why| Failure::usage(format!("{option}: process {parent}: {}", io::Error::from(why))))?;
        // The parent may have ended before `pidfd_open`, and another process may have its number. Then `getppid` is different now.
        match number == 0 && getppid() != Some(parent) {
            true => Err(Failure::usage(format!("{option}: process {parent} has ended already"))),
            false => Ok(Self(handle)),
        }
    }
}

/// Readable when the process has ended.
impl AsFd for Parent {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn end_with(parent: &Parent) {
    if let Err(why) = uninterrupted(&mut [PollFd::new(parent, PollFlags::IN)], None) {
        return output::aside(&format!("dposlab: the process that started this one cannot be watched: {why}"));
    }
    // Until the command handles the signal, the signal ends the process here.
    let _it_is_this_process = kill_process(getpid(), Signal::INT);
    let _in_any_case = uninterrupted(&mut [], Some(&PATIENCE));
    std::process::exit(1);
}

/// Waits for an event. A signal that another thread's handler takes does not end the wait.
///
/// # Errors
/// The system cannot watch one of them.
pub(crate) fn uninterrupted(watched: &mut [PollFd<'_>], patience: Option<&Timespec>) -> io::Result<usize> {
    loop {
        match poll(watched, patience) {
            Err(Errno::INTR) => {}
            ended => return Ok(ended?),
        }
    }
}
