//! A trace for viewers: the JSON array of the Trace Event Format. A node is a process, each of its actors a thread, an
//! event a slice; a message is a slice at either end with a flow between them. Everything is in the order of time.
//! Slices of a thread nest or are apart: a viewer drops those that overlap in part.

use super::line::Header;
use crate::sim::line::{ActorLine, Line, Payload};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    io::{self, Write},
};

/// The length of a slice, in microseconds. Events take no virtual time, and a viewer shows no slice without a length. A slice that
/// begins within another ends with it.
const SLICE: u64 = 1_000;
/// The process for events of the whole network. The processes of the nodes follow.
const NETWORK: u32 = 0;
/// A node's actors, in the order of their threads.
const ACTORS: [&str; 3] = ["peer", "pool", "delegate"];

/// A writer of the array.
pub(crate) struct Perfetto {
    out: Box<dyn Write + Send>,
    first: bool,
    flows: u64,
    /// Messages under way, by arrival and flow.
    under_way: BTreeMap<(u64, u64), Arrival>,
    /// The end of the last outermost slice of each track.
    ends: BTreeMap<Track, u64>,
}

/// Process and thread.
type Track = (u32, usize);

struct Arrival {
    track: Track,
    kind: &'static str,
    about: Value,
}

impl Perfetto {
    /// Begins the array with the names of all tracks.
    pub(super) fn begin(out: Box<dyn Write + Send>, header: &Header) -> io::Result<Self> {
        let mut perfetto = Self { out, first: true, flows: 0, under_way: BTreeMap::new(), ends: BTreeMap::new() };
        perfetto.out.write_all(b"[\n")?;
        let about = format!("network: {} with seed {}", header.scenario, header.seed);
        perfetto.name("process_name", NETWORK, 0, &about)?;
        for node in 0..header.nodes {
            perfetto.name("process_name", process(node), 0, &format!("node-{node}"))?;
            for (thread, actor) in ACTORS.iter().enumerate() {
                perfetto.name("thread_name", process(node), thread, actor)?;
            }
        }
        Ok(perfetto)
    }

    pub(super) fn write(&mut self, line: &Line<'_>) -> io::Result<()> {
        self.arrive_through(line.at)?;
        match &line.payload {
            Payload::Sent { from, to, message, arrives } => {
                let flow = self.flows;
                self.flows += 1;
                let (kind, about) = (message.kind, serde_json::to_value(message)?);
                self.end_of_flow("s", line.at, flow, &Arrival { track: track(*from), kind, about: about.clone() })?;
                self.under_way.insert((*arrives, flow), Arrival { track: track(*to), kind, about });
                Ok(())
            }
            payload => {
                let track = match (payload, line.node) {
                    (Payload::Lost { from, .. }, _) => track(*from),
                    (payload, Some(node)) => track(ActorLine { node, actor: payload.actor() }),
                    (_, None) => (NETWORK, 0),
                };
                let mut about = serde_json::to_value(payload)?;
                if let Value::Object(members) = &mut about {
                    members.shift_remove("kind");
                }
                self.slice(track, line.at, payload.kind(), "event", &about)
            }
        }
    }

    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.arrive_through(u64::MAX)?;
        self.out.write_all(b"\n]\n")?;
        self.out.flush()
    }

    fn arrive_through(&mut self, at: u64) -> io::Result<()> {
        while let Some(next) = self.under_way.first_entry().filter(|next| next.key().0 <= at) {
            let ((at, flow), arrival) = next.remove_entry();
            self.end_of_flow("f", at, flow, &arrival)?;
        }
        Ok(())
    }

    /// Writes one end of a message: a slice, and the event that ties the flow to it.
    fn end_of_flow(&mut self, phase: &str, at: u64, flow: u64, end: &Arrival) -> io::Result<()> {
        let Arrival { track: (pid, tid), kind, about } = end;
        let name = format!("{} {kind}", if phase == "s" { "send" } else { "receive" });
        self.slice(end.track, at, &name, "message", about)?;
        self.event(&json!({ "ph": phase, "bp": "e", "id": flow, "name": kind, "cat": "message", "pid": pid, "tid": tid, "ts": at }))
    }

    fn slice(&mut self, track: Track, at: u64, name: &str, category: &str, about: &Value) -> io::Result<()> {
        let end = self.ends.entry(track).or_default();
        if *end <= at {
            *end = at + SLICE;
        }
        let (pid, tid, dur) = (track.0, track.1, *end - at);
        self.event(&json!({ "ph": "X", "name": name, "cat": category, "pid": pid, "tid": tid, "ts": at, "dur": dur, "args": about }))
    }

    fn name(&mut self, what: &str, pid: u32, tid: usize, name: &str) -> io::Result<()> {
        self.event(&json!({ "ph": "M", "name": what, "pid": pid, "tid": tid, "args": { "name": name } }))
    }

    fn event(&mut self, event: &Value) -> io::Result<()> {
        if !std::mem::take(&mut self.first) {
            self.out.write_all(b",\n")?;
        }
        serde_json::to_writer(&mut self.out, event)?;
        Ok(())
    }
}

fn process(node: u32) -> u32 {
    node + 1
}

fn track(actor: ActorLine) -> Track {
    (process(actor.node), ACTORS.iter().position(|name| *name == actor.actor).unwrap_or(0))
}
