//! Printing without ever holding the simulation up, and without losing anything in silence.

use super::Failure;
use std::{
    io::{self, ErrorKind, Write},
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};
use tokio::sync::Notify;

/// The time for which the end of a command waits for a reader that does not read.
const PATIENCE: Duration = Duration::from_secs(1);
/// The largest number of lines that wait for a slow reader.
const WAITING_MAX: usize = 10_000;

/// The first error of writing to standard output since the start of the command.
static FAILED: OnceLock<String> = OnceLock::new();
/// True once the reader of standard output has gone away.
static GONE: AtomicBool = AtomicBool::new(false);

/// Prints a line on standard output. A reader that has gone away is no error. Any other failure ends the command with [`failure`].
pub fn line(text: &str) {
    match writeln!(io::stdout(), "{text}").and_then(|()| io::stdout().flush()) {
        Ok(()) => {}
        Err(why) if why.kind() == ErrorKind::BrokenPipe => GONE.store(true, Ordering::Relaxed),
        // The first one says what is wrong.
        Err(why) => {
            FAILED.get_or_init(|| why.to_string());
        }
    }
}

/// Prints a line on standard error, and ignores a failure. `eprintln!` would panic then, and a thread that has to end the process
/// would not end it.
pub fn aside(text: &str) {
    let _nobody_left_to_tell = writeln!(io::stderr(), "{text}");
}

/// Returns true if standard output has no reader any more, or cannot be written to.
pub fn is_unread() -> bool {
    FAILED.get().is_some() || GONE.load(Ordering::Relaxed)
}

/// Returns the failure of [`line()`], if it failed.
pub fn failure() -> Option<Failure> {
    FAILED.get().map(|why| Failure::broken(format!("standard output: {why}")))
}

/// Prints lines from a thread of its own. Clones print to the same place.
#[derive(Clone)]
pub struct Printer {
    lines: mpsc::SyncSender<Line>,
    shared: Arc<PrinterState>,
    manner: Manner,
}

/// The treatment of lines that come faster than they can be written.
#[derive(Clone, Copy, Debug)]
pub enum Manner {
    /// Lines are left out and counted: a reader that does not read delays no thread.
    LeaveOut {
        /// The line that reports the number of lines left out.
        tell: fn(u64) -> String,
    },
    /// The caller waits for the writer: a file loses nothing.
    Wait,
}

#[derive(Default)]
struct PrinterState {
    left_out: AtomicU64,
    failed: Mutex<Option<io::Error>>,
    gone: Notify,
}

enum Line {
    Text(String),
    /// Asks for an answer once all earlier lines are written.
    Flush(mpsc::Sender<()>),
}

impl Printer {
    /// A printer to anything that can be written to.
    pub fn new(out: impl Write + Send + 'static, manner: Manner) -> Self {
        let (lines, waiting) = mpsc::sync_channel(WAITING_MAX);
        let shared = Arc::new(PrinterState::default());
        let writer = Writer { out, manner, shared: shared.clone() };
        thread::spawn(move || writer.run(&waiting));
        Self { lines, shared, manner }
    }

    /// Queues a line for printing.
    pub fn line(&self, text: String) {
        match self.manner {
            // The thread lives as long as a sender does.
            Manner::Wait => drop(self.lines.send(Line::Text(text))),
            Manner::LeaveOut { .. } => {
                if self.lines.try_send(Line::Text(text)).is_err() {
                    self.shared.left_out.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }

    /// Waits until all lines so far are written, for a second at most. Does not wait if the queue is full.
    ///
    /// # Errors
    /// Some of them could not be written, and not because their reader went away.
    pub fn flush(&self) -> io::Result<()> {
        let (done, written) = mpsc::channel();
        if self.lines.try_send(Line::Flush(done)).is_ok() {
            let _reader_stuck = written.recv_timeout(PATIENCE);
        }
        let failed = self.shared.failed.lock().expect("no thread panics while holding it").take();
        match failed {
            Some(why) if why.kind() != ErrorKind::BrokenPipe => Err(why),
            _ => Ok(()),
        }
    }

    /// Queues a flush of all lines so far. Waits only for room in the queue, and leaves a failure to [`Self::flush`].
    pub fn flush_soon(&self) {
        // The answer is not needed. The thread lives as long as a sender does.
        drop(self.lines.send(Line::Flush(mpsc::channel().0)));
    }

    /// Is ready when a line could not be written: the reader has gone, or the disk is full.
    pub async fn closed(&self) {
        self.shared.gone.notified().await;
    }
}

/// The thread's side of a [`Printer`].
struct Writer<W> {
    out: W,
    manner: Manner,
    shared: Arc<PrinterState>,
}

impl<W: Write> Writer<W> {
    fn run(mut self, waiting: &mpsc::Receiver<Line>) {
        let mut pending: Option<Line> = None;
        while let Some(line) = pending.take().or_else(|| waiting.recv().ok()) {
            match line {
                Line::Text(text) => self.write(&text),
                Line::Flush(done) => {
                    self.flush();
                    let _asker_gone = done.send(());
                }
            }
            pending = waiting.try_recv().ok();
            if pending.is_none() {
                self.flush();
            }
        }
    }

    fn write(&mut self, text: &str) {
        let written = writeln!(self.out, "{text}");
        self.note(written);
        let left_out = self.shared.left_out.swap(0, Ordering::Relaxed);
        if let Manner::LeaveOut { tell } = self.manner
            && left_out > 0
        {
            let written = writeln!(self.out, "{}", tell(left_out));
            self.note(written);
        }
    }

    fn flush(&mut self) {
        let flushed = self.out.flush();
        self.note(flushed);
    }

    fn note(&self, result: io::Result<()>) {
        if let Err(why) = result {
            self.shared.failed.lock().expect("no thread panics while holding it").get_or_insert(why);
            self.shared.gone.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes nothing until it is allowed to, and then all.
    struct Slow(mpsc::Receiver<()>, Arc<Mutex<Vec<u8>>>);

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // An error means that all is allowed from now on.
            let _allowed = self.0.recv();
            self.1.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_does_not_read_misses_lines_and_is_told_how_many() {
        let (allow, allowed) = mpsc::channel();
        let written = Arc::default();
        let tell = |count| format!("{count} left out");
        let printer = Printer::new(Slow(allowed, Arc::clone(&written)), Manner::LeaveOut { tell });
        let mut lines = WAITING_MAX as u64 + 500;
        (0..lines).for_each(|number| printer.line(number.to_string()));
        drop(allow);
        printer.line("last".to_owned());
        // The thread tells after a line, so one more line may have to come first.
        let is_told = || String::from_utf8_lossy(&written.lock().unwrap()).contains(" left out\n");
        while !is_told() {
            printer.line("more".to_owned());
            lines += 1;
            printer.flush().expect("a vector takes all");
        }
        // It tells between two lines: others may still wait behind, all that found room among them.
        let count = || {
            let written = String::from_utf8(written.lock().unwrap().clone()).unwrap();
            let (told, printed): (Vec<&str>, Vec<&str>) = written.lines().partition(|line| line.ends_with(" left out"));
            let told: u64 = told.iter().filter_map(|line| line.strip_suffix(" left out")?.parse::<u64>().ok()).sum();
            (printed.len() as u64, told)
        };
        while count().0 < WAITING_MAX as u64 {
            thread::yield_now();
        }
        let (printed, told) = count();
        assert!(told > 0, "{printed} printed");
        // Those left out after the last telling are not told yet.
        assert!(printed + told <= lines + 1, "{printed} and {told} of {lines}");
    }

    #[test]
    fn a_full_disk_is_told() {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("it is there on Linux");
        let printer = Printer::new(full, Manner::Wait);
        printer.line("lost".to_owned());
        assert_eq!(printer.flush().unwrap_err().kind(), ErrorKind::StorageFull);
    }
}
