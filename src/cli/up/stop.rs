//! Stopping a testnet in order.
//!
//! ```text
//!   Ctrl-C, SIGTERM ──────────┐
//!   standard output is closed ├──► the run is told to stop ──► it ends in order
//!   the parent process is gone┘        │     │
//!                                      │     └──► 3 seconds, or a second signal ──► the process ends wherever it is
//!                                      └──► there is no run yet ──► the process ends at once
//! ```
//!
//! Importing a chain or replaying a folder may take minutes before there is a run. Until then no client has seen anything of the
//! run, so there is nothing to end in order.

use crate::{
    cli::{
        output::{Printer, aside},
        parent::{Parent, uninterrupted},
    },
    sim::LiveHandle,
};
use rustix::event::{PollFd, PollFlags, Timespec};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::{
    io::{self, Read},
    os::unix::net::UnixStream,
    sync::{Arc, Mutex, MutexGuard},
    thread,
};

/// The longest time that a testnet may take to stop.
const STOP_SECONDS: u32 = 3;

/// The causes that end a testnet. The process listens for them from its beginning.
pub struct Interrupts {
    run: Arc<Mutex<StopReceiver>>,
}

/// The receiver of a request to stop.
enum StopReceiver {
    /// There is no testnet yet, and the process ends.
    Beginning,
    /// The run to stop.
    Run(LiveHandle),
}

impl Interrupts {
    /// Listens for the causes in a thread of its own: work for a client must not keep the process alive. Until [`Interrupts::stop`]
    /// names a run, each cause ends the process.
    ///
    /// # Errors
    /// The system takes no handler.
    pub fn listen(parent: Option<Parent>) -> io::Result<Self> {
        let (signals, told) = UnixStream::pair()?;
        for signal in [SIGINT, SIGTERM] {
            signal_hook::low_level::pipe::register(signal, told.try_clone()?)?;
        }
        let listener = Listener { signals, parent };
        let run = Arc::new(Mutex::new(StopReceiver::Beginning));
        let told = run.clone();
        thread::spawn(move || match listener.wait() {
            Ok(came) => {
                match &*lock(&told) {
                    StopReceiver::Run(handle) => handle.stop(),
                    // The lock is held until the end, so no run begins.
                    StopReceiver::Beginning => came.end_at_once(),
                }
                end_in_time(listener.signals);
            }
            Err(why) => aside(&format!("dposlab: neither signals nor standard output can be watched: {why}")),
        });
        Ok(Self { run })
    }

    /// Stops this run at the first cause from now on. The process ends wherever it is at a second signal, or after three more seconds.
    pub fn stop(self, handle: LiveHandle, printer: Printer) {
        *lock(&self.run) = StopReceiver::Run(handle.clone());
        // A full disk does not close standard output, so only the printer notices it.
        tokio::spawn(async move {
            printer.closed().await;
            handle.stop();
        });
    }
}

fn lock(told: &Mutex<StopReceiver>) -> MutexGuard<'_, StopReceiver> {
    told.lock().expect("no thread panics while holding it")
}

/// The cause that has come.
enum StopCause {
    Signal,
    /// There is no reader any more, or the parent has ended.
    Alone,
}

impl StopCause {
    /// Ends the process. After a signal, the exit code is the one that a shell reports for it.
    fn end_at_once(self) -> ! {
        match self {
            Self::Signal => {
                aside("dposlab: stopped before the testnet began");
                std::process::exit(130)
            }
            Self::Alone => std::process::exit(1),
        }
    }
}

struct Listener {
    /// Receives a byte for each signal.
    signals: UnixStream,
    parent: Option<Parent>,
}

impl Listener {
    /// Waits for a signal, for the end of the parent, or for the end of the reader of standard output, even while nothing is printed.
    fn wait(&self) -> io::Result<StopCause> {
        let output = io::stdout();
        // Without any flag, `poll` reports only errors and hang-ups. A file has neither.
        let mut watched = vec![PollFd::new(&self.signals, PollFlags::IN), PollFd::new(&output, PollFlags::empty())];
        watched.extend(self.parent.as_ref().map(|parent| PollFd::new(parent, PollFlags::IN)));
        uninterrupted(&mut watched, None)?;
        Ok(if watched[0].revents().is_empty() { StopCause::Alone } else { StopCause::Signal })
    }
}

/// Ends the process when it has not ended by itself in time, or at the next signal.
fn end_in_time(mut signals: UnixStream) {
    // A signal that has already arrived belongs to the first one: programs that start others pass signals on to them.
    let mut first = [0; 64];
    let is_there = signals.set_nonblocking(true).and_then(|()| signals.read(&mut first));
    let _none_if_the_reader_has_gone = is_there;
    let patience = Timespec { tv_sec: i64::from(STOP_SECONDS), tv_nsec: 0 };
    let told = uninterrupted(&mut [PollFd::new(&signals, PollFlags::IN)], Some(&patience));
    if told.is_ok_and(|told| told > 0) {
        std::process::exit(130);
    }
    aside(&format!("dposlab: still busy {STOP_SECONDS} s after the request to stop; ended now"));
    std::process::exit(1);
}
