//! A receiver that speaks HTTP by hand, so that it can also speak it badly.

use serde_json::Value;
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::mpsc::{self, Receiver as Incoming, Sender},
    thread,
    time::Duration,
};

/// The time that a test waits for what must come: past it the test fails. It measures nothing.
const PATIENCE: Duration = Duration::from_secs(30);

/// A post.
#[derive(Debug)]
pub struct Post {
    pub path: String,
    /// In lower case, as sent.
    pub head: String,
    pub body: Value,
}

impl Post {
    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

/// The manner of answering.
#[derive(Clone, Debug)]
pub enum Manner {
    /// With this whole answer, and keeps the connection.
    Says(String),
    /// Not at all, and keeps the connection.
    Hangs,
    /// Closes the connection after each answer of 200.
    HangsUp,
}

impl Manner {
    /// With this status and no body.
    pub fn status(status: u16) -> Self {
        Self::Says(format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\n\r\n"))
    }
}

/// A receiver on a port of its own. Its threads end with the process.
pub struct Receiver {
    pub address: SocketAddr,
    posts: Incoming<Post>,
}

impl Receiver {
    pub fn new(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let (sender, posts) = mpsc::channel();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (sender, manner) = (sender.clone(), manner.clone());
                thread::spawn(move || serve(stream, &manner, &sender));
            }
        });
        Self { address, posts }
    }

    /// One that takes everything.
    pub fn kind() -> Self {
        Self::new(Manner::status(200))
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The next post.
    pub fn next(&self) -> Post {
        self.posts.recv_timeout(PATIENCE).expect("it is posted")
    }

    /// All that has come so far.
    pub fn all(&self) -> Vec<Post> {
        self.posts.try_iter().collect()
    }
}

fn serve(stream: TcpStream, manner: &Manner, posts: &Sender<Post>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).ok()? == 0 {
                return None;
            }
        }
        let path = head.split(' ').nth(1)?.to_owned();
        let head = head.to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "))?.parse().ok()?;
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let body = serde_json::from_slice(&body).expect("bodies are JSON");
        posts.send(Post { path, head, body }).ok()?;
        match manner {
            Manner::Says(answer) => reader.get_mut().write_all(answer.as_bytes()).ok()?,
            Manner::Hangs => {}
            Manner::HangsUp => {
                return reader.get_mut().write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").ok();
            }
        }
    }
}
