//! How a testnet is told to stop, and that it does.
//!
//! ```text
//!   Ctrl-C, SIGTERM ──────────┐
//!   standard output is closed ├──► the run is told to stop ──► it ends in order
//!   the parent process is gone┘              │
//!                                            └──► 3 seconds, or a second signal ──► the process ends wherever it is
//! ```

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
    thread,
};

/// How long a testnet may take to stop.
const STOP_SECONDS: u32 = 3;

/// What ends a testnet. Listened for before anyone can know that it is there.
pub struct Interrupts {
    /// A byte comes with each signal.
    signals: UnixStream,
    parent: Option<Parent>,
}

impl Interrupts {
    /// Listens.
    ///
    /// # Errors
    /// The system takes no handler.
    pub fn listen(parent: Option<Parent>) -> io::Result<Self> {
        let (signals, told) = UnixStream::pair()?;
        for signal in [SIGINT, SIGTERM] {
            signal_hook::low_level::pipe::register(signal, told.try_clone()?)?;
        }
        Ok(Self { signals, parent })
    }

    /// Stops the run at the first of them. The second signal, or three seconds, end the process wherever it is. All of it is
    /// done by a thread that does nothing else: whatever a client has made busy must not keep the process alive. Belongs on
    /// the runtime of the run.
    pub fn stop(self, handle: LiveHandle, printer: Printer) {
        let given_up = handle.clone();
        // A disk that is full is no reader that has gone, and only the printer hears of it.
        tokio::spawn(async move {
            printer.closed().await;
            given_up.stop();
        });
        thread::spawn(move || match self.wait() {
            Ok(()) => {
                handle.stop();
                end_in_time(self.signals);
            }
            Err(why) => aside(&format!("dposlab: neither signals nor standard output can be watched: {why}")),
        });
    }

    /// Waits for a signal, for the end of the parent, or until whoever reads standard output has gone, even while nothing
    /// is printed.
    fn wait(&self) -> io::Result<()> {
        let output = io::stdout();
        // Without any flag errors and hang-ups are told; a file has neither.
        let mut watched = vec![PollFd::new(&self.signals, PollFlags::IN), PollFd::new(&output, PollFlags::empty())];
        watched.extend(self.parent.as_ref().map(|parent| PollFd::new(parent, PollFlags::IN)));
        uninterrupted(&mut watched, None).map(drop)
    }
}

/// Ends the process when it has not ended by itself in time, or at the next signal.
fn end_in_time(mut signals: UnixStream) {
    // One that is there already belongs to the first: programs that start others hand signals on to them.
    let mut first = [0; 64];
    let is_there = signals.set_nonblocking(true).and_then(|()| signals.read(&mut first));
    let _none_if_the_reader_has_gone = is_there;
    let patience = Timespec { tv_sec: i64::from(STOP_SECONDS), tv_nsec: 0 };
    let told = uninterrupted(&mut [PollFd::new(&signals, PollFlags::IN)], Some(&patience));
    if told.is_ok_and(|told| told > 0) {
        std::process::exit(130);
    }
    aside(&format!("dposlab: still busy {STOP_SECONDS} s after it was told to stop; ended now"));
    std::process::exit(1);
}
