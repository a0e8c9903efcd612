//! Printing without ever holding the simulation up.

use std::{
    io::{self, Write},
    sync::mpsc,
    thread,
    time::Duration,
};

/// How long the end of a command waits for a reader that does not read.
const PATIENCE: Duration = Duration::from_secs(1);

/// Prints a line on standard output. A reader that has gone away is no error: there is nobody left to tell.
pub fn line(text: &str) {
    let _reader_gone = writeln!(io::stdout(), "{text}");
}

/// Prints lines from a thread of its own, so that a slow reader slows nobody.
#[derive(Clone)]
pub struct Printer(mpsc::Sender<Line>);

enum Line {
    Text(String),
    /// Answer when all before has been written.
    Flush(mpsc::Sender<()>),
}

impl Printer {
    /// A printer to anything that can be written to.
    pub fn new(mut out: impl Write + Send + 'static) -> Self {
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            let mut pending: Option<Line> = None;
            while let Some(line) = pending.take().or_else(|| lines.recv().ok()) {
                match line {
                    Line::Text(text) => {
                        let _reader_gone = writeln!(out, "{text}");
                    }
                    Line::Flush(done) => {
                        let _reader_gone = out.flush();
                        let _asker_gone = done.send(());
                    }
                }
                pending = lines.try_recv().ok();
                if pending.is_none() {
                    let _reader_gone = out.flush();
                }
            }
        });
        Self(sender)
    }

    /// Prints a line, soon.
    pub fn line(&self, text: String) {
        // The thread lives as long as a sender does.
        let _thread_gone = self.0.send(Line::Text(text));
    }

    /// Waits until all lines so far are written, or until it is clear that nobody reads them.
    pub fn flush(&self) {
        let (done, written) = mpsc::channel();
        if self.0.send(Line::Flush(done)).is_ok() {
            let _reader_stuck = written.recv_timeout(PATIENCE);
        }
    }
}
