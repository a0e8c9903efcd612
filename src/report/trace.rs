//! A run as a file: every event, one after the other, as JSON lines or for a trace viewer.
//!
//! Events are written as they happen, through a buffer, so memory does not grow with the run. docs/trace.md describes the form of
//! the lines, and a test compares it with [`crate::sim::line::Payload`].

pub(crate) mod diff;
pub mod line;
pub(crate) mod perfetto;

use super::provenance::compare::Against;
use crate::{
    actors::{Event, NodeId, SimTime},
    files,
    protocol::{BlockId, slots::Slots},
    sim::{NetworkEvent, Observer, Plan, line::Line},
};
use line::Header;
use perfetto::Perfetto;
use std::{
    collections::BTreeSet,
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

/// The form of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceFormat {
    /// One JSON object a line.
    Jsonl,
    /// The JSON that trace viewers read (ui.perfetto.dev, chrome://tracing): actors as tracks, messages as flows.
    Perfetto,
}

impl TraceFormat {
    /// Returns the format that a file's name asks for: `.jsonl` is [`TraceFormat::Jsonl`], `.json` is for a viewer.
    pub fn of(file: &Path) -> Self {
        match file.extension().is_some_and(|extension| extension == "json") {
            true => Self::Perfetto,
            false => Self::Jsonl,
        }
    }
}

/// Buffer between a run and its trace, in bytes.
const BUFFER: usize = 1 << 20;

/// Writes a trace. Clones write the same one.
#[derive(Clone)]
pub struct TraceWriter {
    writer: Arc<Mutex<Writer>>,
    /// True if messages are written too.
    network: bool,
}

struct Writer {
    path: PathBuf,
    out: Out,
    slots: Slots,
    events: u64,
    /// The blocks after which a round begins, as reported so far.
    rounds: BTreeSet<BlockId>,
    /// The first error. Nothing is written after it.
    broken: Option<io::Error>,
}

enum Out {
    Jsonl(Box<dyn Write + Send>),
    Perfetto(Perfetto),
}

/// A trace that could not be written.
#[derive(Debug, thiserror::Error)]
#[error("the trace {} cannot be written: {source}", file.display())]
pub struct TraceError {
    pub file: PathBuf,
    pub source: io::Error,
}

/// Returns true if a file that begins with these bytes is a trace of either form.
pub fn begins(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(head);
    let is_perfetto = text.starts_with("[\n{") && text.contains("\"process_name\"");
    is_perfetto || text.starts_with("{\"trace\":\"dposlab\"")
}

impl TraceWriter {
    /// A trace of a run by this plan, which is about to begin.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn create(file: &Path, format: TraceFormat, header: &Header, plan: &Plan) -> Result<Self, TraceError> {
        let wrong = |source| TraceError { file: file.to_path_buf(), source };
        let out = BufWriter::with_capacity(BUFFER, files::create(file).map_err(wrong)?);
        Self::to(out, file, format, header, plan).map_err(wrong)
    }

    /// A trace that is not written but compared with a recorded one, line by line. Stores the first difference in `found`. With
    /// `passes_first`, the first line may differ, as that of another version of this program does.
    ///
    /// # Errors
    /// The file cannot be opened or read.
    pub fn against(
        file: &Path,
        passes_first: bool,
        found: Arc<Mutex<Option<String>>>,
        header: &Header,
        plan: &Plan,
    ) -> Result<Self, TraceError> {
        let wrong = |source| TraceError { file: file.to_path_buf(), source };
        let out = Against::new(file, passes_first, found).map_err(wrong)?;
        Self::to(BufWriter::with_capacity(BUFFER, out), file, TraceFormat::Jsonl, header, plan).map_err(wrong)
    }

    fn to(
        mut out: impl Write + Send + 'static,
        file: &Path,
        format: TraceFormat,
        header: &Header,
        plan: &Plan,
    ) -> io::Result<Self> {
        let mut out = match format {
            TraceFormat::Jsonl => {
                write_line(&mut out, header)?;
                Out::Jsonl(Box::new(out))
            }
            TraceFormat::Perfetto => Out::Perfetto(Perfetto::begin(Box::new(out), header)?),
        };
        let applied = plan.tree.applied(&plan.tip);
        out.write(&Line::of_round(plan.start, &plan.tip, applied.state.round()))?;
        let (slots, rounds) = (plan.tree.slots(), BTreeSet::from([plan.tip.id()]));
        let writer = Writer { path: file.to_path_buf(), out, slots, events: 1, rounds, broken: None };
        Ok(Self { writer: Arc::new(Mutex::new(writer)), network: header.network })
    }

    /// Writes that the run has ended at this instant. Nothing may be observed after that.
    pub fn ended(&self, at: SimTime) {
        self.write(|out, _| out.write(&Line::of_end(at)));
    }

    /// Flushes the buffer and returns the number of events.
    ///
    /// # Errors
    /// The trace could not be written, now or before.
    pub fn finish(&self) -> Result<u64, TraceError> {
        let mut writer = self.writer.lock().expect("no thread panics while holding it");
        let file = writer.path.clone();
        if writer.broken.is_none()
            && let Err(error) = writer.out.finish()
        {
            writer.broken = Some(error);
        }
        match writer.broken.take() {
            Some(source) => Err(TraceError { file, source }),
            None => Ok(writer.events),
        }
    }

    /// Returns true if no node has applied this block, the last of a round, before.
    fn is_new_end(&self, block: BlockId) -> bool {
        self.writer.lock().expect("no thread panics while holding it").rounds.insert(block)
    }

    fn write(&self, write: impl FnOnce(&mut Out, &Slots) -> io::Result<()>) {
        let mut writer = self.writer.lock().expect("no thread panics while holding it");
        let Writer { out, slots, broken, events, .. } = &mut *writer;
        if broken.is_none() {
            match write(out, slots) {
                Ok(()) => *events += 1,
                Err(error) => *broken = Some(error),
            }
        }
    }
}

impl Observer for TraceWriter {
    fn observe(&mut self, now: SimTime, node: NodeId, event: &Event) {
        self.write(|out, slots| out.write(&Line::of_event(now, node, event, slots)));
        if let Event::BlockApplied(link) = event
            && let Some(end) = link.round_end()
            && self.is_new_end(link.id())
        {
            self.write(|out, _| out.write(&Line::of_round(now, link, &end.created)));
        }
    }

    fn observe_network(&mut self, now: SimTime, event: &NetworkEvent<'_>) {
        let is_message = matches!(event, NetworkEvent::Sent { .. } | NetworkEvent::Lost { .. });
        if self.network || !is_message {
            self.write(|out, slots| out.write(&Line::of_network(now, event, slots)));
        }
    }

    fn wants_messages(&self) -> bool {
        self.network
    }
}

impl Out {
    fn write(&mut self, line: &Line<'_>) -> io::Result<()> {
        match self {
            Self::Jsonl(out) => write_line(out, line),
            Self::Perfetto(perfetto) => perfetto.write(line),
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        match self {
            Self::Jsonl(out) => out.flush(),
            Self::Perfetto(perfetto) => perfetto.finish(),
        }
    }
}

fn write_line(out: &mut impl Write, line: &impl serde::Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, line)?;
    out.write_all(b"\n")
}
