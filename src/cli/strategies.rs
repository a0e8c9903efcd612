//! Strategies that a process on this machine decides: the lines between it and the program (`docs/extending.md`).

use super::{Failure, output};
use crate::sim::strategy::remote::{self, Answer, Decider, SaidKind};
use serde::Deserialize;
use serde_json::json;
use std::{
    cell::RefCell,
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    process,
    sync::Arc,
};

/// The largest length of a line in bytes.
const LINE_LIMIT: u64 = 16 << 20;
/// The largest number of kinds of strategies that a process decides.
const KINDS_LIMIT: usize = 100;

/// Registers the kinds of strategies that the process at this address decides, before anything is read or run.
///
/// # Errors
/// The address is not on loopback, no process answers there, or its answer is no list of new kinds with examples.
pub(crate) fn connect(address: SocketAddr) -> Result<(), Failure> {
    let refused = |why: String| Failure::usage(format!("--strategies: {why}"));
    if !address.ip().is_loopback() {
        return Err(refused(format!("found {address}, allowed is an address of this machine, such as 127.0.0.1:4100")));
    }
    let (_, hello) = Line::open(address).map_err(|why| refused(format!("{address}: {why}")))?;
    if hello.kinds.is_empty() || hello.kinds.len() > KINDS_LIMIT {
        let found = hello.kinds.len();
        return Err(refused(format!("{address}: found {found} kinds, allowed are 1 to {KINDS_LIMIT}")));
    }
    for kind in hello.kinds {
        let name = kind.name.clone();
        let registered = remote::register(kind, Arc::new(At(address)));
        registered.map_err(|why| refused(format!("{address}: the strategy '{name}': {why}")))?;
    }
    Ok(())
}

/// The process at an address.
#[derive(Debug)]
struct At(SocketAddr);

impl Decider for At {
    fn decide(&self, kind: &str, question: String, below: &dyn Fn(&str, u64) -> u64) -> Answer {
        let answer = Line::with(self.0, |line| line.ask(question, below));
        answer.unwrap_or_else(|why| self.refuse(kind, &why.to_string()))
    }

    fn refuse(&self, kind: &str, why: &str) -> ! {
        output::aside(&format!("dposlab: the strategy '{kind}' at {}: {why}", self.0));
        process::exit(1)
    }
}

/// The greeting of a process at a connection.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Hello {
    kinds: Vec<SaidKind>,
}

/// A line of the process after a question.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum Reply {
    /// A request for a drawn number below `count`.
    Below {
        purpose: String,
        count: u64,
    },
    Answer(Box<Answer>),
    /// The reason why the process cannot answer.
    Failed(String),
}

/// A connection to the other process: each thread has its own.
struct Line {
    address: SocketAddr,
    reader: BufReader<TcpStream>,
}

thread_local! {
    static LINES: RefCell<Vec<Line>> = const { RefCell::new(Vec::new()) };
}

impl Line {
    fn open(address: SocketAddr) -> io::Result<(Self, Hello)> {
        let stream = TcpStream::connect(address)?;
        // A question is one small packet, and the run waits for its answer.
        stream.set_nodelay(true)?;
        let mut line = Self { address, reader: BufReader::new(stream) };
        line.write(r#"{"dposlab":1}"#.to_owned())?;
        let hello = line.read()?;
        Ok((line, hello))
    }

    /// The connection of this thread to an address.
    fn with<T>(address: SocketAddr, turn: impl FnOnce(&mut Self) -> io::Result<T>) -> io::Result<T> {
        LINES.with_borrow_mut(|lines| {
            let place = match lines.iter().position(|line| line.address == address) {
                Some(place) => place,
                None => {
                    lines.push(Self::open(address)?.0);
                    lines.len() - 1
                }
            };
            turn(&mut lines[place])
        })
    }

    fn ask(&mut self, question: String, below: &dyn Fn(&str, u64) -> u64) -> io::Result<Answer> {
        self.write(question)?;
        loop {
            match self.read()? {
                Reply::Below { purpose, count } => self.write(json!(below(&purpose, count)).to_string())?,
                Reply::Answer(answer) => return Ok(*answer),
                Reply::Failed(why) => return Err(io::Error::other(why)),
            }
        }
    }

    fn write(&mut self, mut line: String) -> io::Result<()> {
        line.push('\n');
        self.reader.get_mut().write_all(line.as_bytes())
    }

    fn read<T: for<'de> Deserialize<'de>>(&mut self) -> io::Result<T> {
        let mut line = String::new();
        (&mut self.reader).take(LINE_LIMIT).read_line(&mut line)?;
        if !line.ends_with('\n') {
            let why = if line.is_empty() { "it hung up" } else { "a line does not end, or is longer than 16 MiB" };
            return Err(io::Error::other(why));
        }
        serde_json::from_str(&line).map_err(|why| {
            let said: String = line.trim_end().chars().take(200).collect();
            io::Error::other(format!("found {said:?}, which is no answer: {why}"))
        })
    }
}
