//! A trace for viewers: the JSON array of the Trace Event Format. A node is a process, each of its actors a thread, an
//! event a slice; a message is a slice at either end with a flow between them.

use super::line::{ActorLine, Header, Line, Payload};
use serde_json::{Value, json};
use std::io::{self, Write};

/// Length of a slice, in microseconds: what happens takes no virtual time, and a viewer shows nothing so short.
const SLICE: u64 = 1_000;
/// The process of what happens to the network as a whole; nodes follow.
const NETWORK: u32 = 0;
/// A node's actors, in the order of their threads.
const ACTORS: [&str; 3] = ["peer", "pool", "delegate"];

/// Writes the array.
pub struct Perfetto {
    out: Box<dyn Write + Send>,
    first: bool,
    flows: u64,
}

impl Perfetto {
    /// Begins the array with the names of all tracks.
    pub(super) fn begin(out: Box<dyn Write + Send>, header: &Header) -> io::Result<Self> {
        let mut perfetto = Self { out, first: true, flows: 0 };
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
        match &line.payload {
            Payload::Sent { from, to, message, arrives } => {
                let flow = self.flows;
                self.flows += 1;
                let about = serde_json::to_value(message)?;
                for (actor, at, name, phase) in [(from, line.at, "send", "s"), (to, *arrives, "receive", "f")] {
                    let (pid, tid) = track(*actor);
                    let name = format!("{name} {}", message.kind);
                    self.event(&json!({ "ph": "X", "name": name, "cat": "message", "pid": pid, "tid": tid, "ts": at, "dur": SLICE, "args": about }))?;
                    self.event(&json!({ "ph": phase, "bp": "e", "id": flow, "name": message.kind, "cat": "message", "pid": pid, "tid": tid, "ts": at }))?;
                }
                Ok(())
            }
            payload => {
                let (pid, tid) = match (payload, line.node) {
                    (Payload::Lost { from, .. }, _) => track(*from),
                    (payload, Some(node)) => track(ActorLine { node, actor: payload.actor() }),
                    (_, None) => (NETWORK, 0),
                };
                let mut about = serde_json::to_value(payload)?;
                if let Value::Object(members) = &mut about {
                    members.shift_remove("kind");
                }
                self.event(&json!({ "ph": "X", "name": payload.kind(), "cat": "event", "pid": pid, "tid": tid, "ts": line.at, "dur": SLICE, "args": about }))
            }
        }
    }

    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.out.write_all(b"\n]\n")?;
        self.out.flush()
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

fn track(actor: ActorLine) -> (u32, usize) {
    (process(actor.node), ACTORS.iter().position(|name| *name == actor.actor).unwrap_or(0))
}
