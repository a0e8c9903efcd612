//! The lab's answers about the whole network, over a real socket.

use crate::live::Network;
use dposlab::{
    api::{Limits, Settings},
    protocol::{Arktoshi, Nonce, Transaction},
};
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader, Lines, Read, Write},
    net::TcpStream,
    time::Duration,
};

#[test]
fn the_lab_shows_where_every_node_stands() {
    let network = Network::start(41);
    let lab = || network.get("/lab").body["data"].clone();
    let nodes = |lab: &Value, member: &str| -> Vec<Value> {
        lab["nodes"].as_array().expect("a list").iter().map(|node| node[member].clone()).collect()
    };
    let before = lab();
    assert_eq!((&before["ready"], &before["pace"], &before["seed"]), (&json!(true), &json!("manual"), &json!(41)));
    assert_eq!(before["stage"], "ractor");
    assert_eq!(nodes(&before, "height"), vec![json!(1); 5]);
    assert_eq!(nodes(&before, "node"), [0, 1, 2, 3, 4].map(Value::from));
    let usernames: Vec<Value> = network.testnet.delegates.iter().map(|all| json!(all.username)).collect();
    assert_eq!(nodes(&before, "delegate"), usernames);

    network.advance(7);
    let after = lab();
    assert_eq!((&after["now"], &after["nowMicros"]), (&json!(64), &json!(64_000_000)));
    assert_eq!(nodes(&after, "height"), vec![json!(8); 5]);
    let tip = network.get("/api/blockchain").body["data"]["block"]["id"].clone();
    assert_eq!(nodes(&after, "tip"), vec![tip; 5]);
    assert_eq!((nodes(&after, "live"), nodes(&after, "cause")), (vec![json!(true); 5], vec![Value::Null; 5]));
    assert_eq!((&after["faults"], &after["snapshots"]), (&json!([]), &json!([])));

    let recipient = network.testnet.accounts[1].keys.public().address(23);
    let transfer = Transaction::transfer(recipient, Arktoshi::coins(1)).nonce(Nonce(1)).fee(Arktoshi::coins(1));
    let transfer = transfer.sign(&network.testnet.accounts[0].keys).to_json();
    network.post("/api/transactions", &json!({ "transactions": [transfer] }));
    assert_eq!(nodes(&lab(), "pool")[0], 1);
    network.advance(2);
    assert_eq!(nodes(&lab(), "pool"), vec![json!(0); 5], "it is in a block");
}

#[test]
fn the_lab_is_for_this_machine_only() {
    let network = Network::start(42);
    for path in ["/lab", "/lab/"] {
        let foreign = format!("GET {path} HTTP/1.1\r\nhost: example.com\r\nconnection: close\r\n\r\n");
        assert!(!network.send_raw(&foreign).starts_with("HTTP/1.1 2"), "{path}");
    }
    let foreign = network.send_raw("GET /lab HTTP/1.1\r\nhost: example.com\r\nconnection: close\r\n\r\n");
    assert!(foreign.starts_with("HTTP/1.1 403"), "{foreign}");
    assert_eq!(network.get("/lab/").status, 301);
}

/// A stream of events, read line by line.
struct Stream(Lines<BufReader<TcpStream>>);

impl Stream {
    /// Asks, and reads until the server listens for it.
    fn open(network: &Network, query: &str, headers: &str) -> Self {
        let mut stream = Self::ask(network, query, headers);
        assert_eq!(stream.line(), "HTTP/1.0 200 OK");
        while !stream.line().is_empty() {}
        stream
    }

    /// By HTTP/1.0, so that the body comes as it is.
    fn ask(network: &Network, query: &str, headers: &str) -> Self {
        let mut stream = TcpStream::connect(network.address).expect("the server listens");
        let head = format!("GET /lab/events{query} HTTP/1.0\r\nhost: {}\r\n{headers}\r\n", network.address);
        stream.write_all(head.as_bytes()).expect("the connection is open");
        Self(BufReader::new(stream).lines())
    }

    fn line(&mut self) -> String {
        self.0.next().expect("the stream goes on").expect("a text").trim_end().to_owned()
    }

    /// The lines of what stands before the next empty one.
    fn block(&mut self) -> Vec<String> {
        std::iter::from_fn(|| Some(self.line()).filter(|line| !line.is_empty())).collect()
    }

    /// The number and the JSON of the next event.
    fn event(&mut self) -> (u64, Value) {
        let block = self.block();
        let value = |name: &str| block.iter().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        let number = value("id: ").parse().unwrap_or_else(|_| panic!("{block:?}"));
        (number, serde_json::from_str(value("data: ")).unwrap_or_else(|_| panic!("{block:?}")))
    }

    fn events(&mut self, count: usize) -> Vec<(u64, Value)> {
        (0..count).map(|_| self.event()).collect()
    }

    fn is_over(&mut self) -> bool {
        self.0.next().is_none()
    }
}

#[test]
fn events_come_as_they_happen_and_are_numbered_without_a_hole() {
    let network = Network::start(43);
    let mut stream = Stream::open(&network, "", "");
    assert_eq!(stream.block(), ["retry: 1000", ": the next event is 2"]);
    network.advance(3);
    let events = stream.events(30);
    let numbers: Vec<u64> = events.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, (2..32).collect::<Vec<_>>());
    let times: Vec<u64> = events.iter().map(|(_, event)| event["at"].as_u64().expect("a time")).collect();
    assert!(times.is_sorted(), "{times:?}");
    assert!(events.iter().any(|(_, event)| event["kind"] == "block.applied" && event["block"]["height"] == 2));
}

#[test]
fn who_comes_back_goes_on_after_the_last_event_it_knows() {
    let network = Network::start(44);
    let mut whole = Stream::open(&network, "", "");
    whole.block();
    let mut first = Stream::open(&network, "?limit=5", "");
    first.block();
    network.advance(4);
    let all = whole.events(40);
    assert_eq!(first.events(5), all[..5]);
    assert!(first.is_over(), "so many were asked for");
    let by_header = Stream::open(&network, "?last_event_id=1", &format!("last-event-id: {}\r\n", all[4].0));
    let by_query = Stream::open(&network, &format!("?last_event_id={}", all[4].0), "");
    for mut again in [by_header, by_query] {
        assert_eq!(again.block(), ["retry: 1000", &format!(": the next event is {}", all[5].0)]);
        assert_eq!(again.events(35), all[5..]);
    }
    // Events from before anybody listened are gone, and so are those that another run has numbered.
    let mut early = Stream::open(&network, "?last_event_id=0", "");
    early.block();
    assert_eq!(early.block(), ["event: gap", "id: 1", r#"data: {"after":0,"next":2,"missed":1}"#]);
    assert_eq!(early.event(), all[0]);
    let mut late = Stream::open(&network, "?last_event_id=1000000", "");
    let told = late.block();
    assert_eq!(told[1], "event: gap");
    assert!(
        told[3].starts_with(r#"data: {"after":1000000,"next":"#) && told[3].ends_with(r#""missed":null}"#),
        "{told:?}"
    );
}

#[test]
fn streams_are_filtered_by_kind_and_node() {
    let network = Network::start(45);
    let mut whole = Stream::open(&network, "", "");
    let mut filtered = Stream::open(&network, "?kind=block.applied,block.forged&node=0,3", "");
    let mut rounds = Stream::open(&network, "?kind=round.began&limit=1", "");
    for stream in [&mut whole, &mut filtered, &mut rounds] {
        stream.block();
    }
    network.advance(8);
    let all = whole.events(80);
    let wanted = |(_, event): &&(u64, Value)| {
        (event["kind"] == "block.applied" || event["kind"] == "block.forged")
            && (event["node"] == 0 || event["node"] == 3)
    };
    let wanted: Vec<_> = all.iter().filter(wanted).cloned().collect();
    assert!(wanted.len() > 5);
    assert_eq!(filtered.events(wanted.len()), wanted);
    let (_, round) = rounds.event();
    assert_eq!((&round["kind"], &round["node"], &round["round"]), (&json!("round.began"), &Value::Null, &json!(2)));
    for (query, named) in [
        ("kind=blocks", "kind: found 'blocks', allowed are block.forged"),
        ("node=5", "node: found '5', allowed are the numbers 0 to 4"),
        ("limit=0", "must be larger than or equal to 1"),
        ("last_event_id=-1", "must be larger than or equal to 0"),
        ("since=1", "\"since\" is not allowed"),
    ] {
        let refused = network.get(&format!("/lab/events?{query}"));
        assert_eq!(refused.status, 422, "{query}");
        assert!(refused.body["message"].as_str().expect("a text").contains(named), "{}", refused.body);
    }
    let headers = "last-event-id: last\r\n";
    assert_eq!(Stream::ask(&network, "", headers).line(), "HTTP/1.0 422 Unprocessable Entity");
}

#[test]
fn who_reads_too_slowly_holds_nobody_up_and_is_told_what_it_missed() {
    // It reads nothing for as long as the network plays.
    let limits = Limits { write: Duration::from_secs(3_600), ..Limits::default() };
    let network = Network::with(46, Settings { limits, ..Settings::default() });
    let mut slow = Stream::open(&network, "", "");
    slow.block();
    // More than sockets and the ring hold: about twelve events a slot.
    assert_eq!(network.advance(12_000)["slots"], 12_000, "nobody waits for a reader");
    let mut last = 1;
    let gap = loop {
        let block = slow.block();
        if block[0] == "event: gap" {
            break block;
        }
        last = block[0].strip_prefix("id: ").and_then(|number| number.parse().ok()).expect("a number");
    };
    let told: Value = serde_json::from_str(gap[2].strip_prefix("data: ").expect("JSON")).expect("JSON");
    assert_eq!(told["after"], last);
    let next = told["next"].as_u64().expect("a number");
    assert_eq!(told["missed"], next - last - 1);
    assert_eq!(slow.event().0, next, "and it goes on from there");
}

#[test]
fn an_open_stream_is_neither_idle_nor_spared_and_ends_with_the_server() {
    let limits = Limits { connections: 2, idle: Duration::from_millis(20), ..Limits::default() };
    let network = Network::with(47, Settings { limits, ..Settings::default() });
    let mut streams = [Stream::open(&network, "", ""), Stream::open(&network, "?kind=fault.began", "")];
    for stream in &mut streams {
        stream.block();
    }
    let mut third = TcpStream::connect(network.address).expect("the system accepts");
    let mut answer = Vec::new();
    // It is closed without an answer, by a reset perhaps.
    let _reset = third.read_to_end(&mut answer);
    assert_eq!(answer, b"", "all connections are at work");
    let [mut open, closed] = streams;
    drop(closed);
    let (body, address) = (r#"{"slots":2}"#, network.address);
    let head = format!("host: {address}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: 11");
    let advance = format!("POST /lab/advance HTTP/1.1\r\n{head}\r\n\r\n{body}");
    // The server hears of it when it looks at the connection; until then there is no room for another one.
    while network.send_raw(&advance).is_empty() {}
    assert_eq!(open.event().0, 2, "it was open all the time");
    let ended = std::thread::spawn(move || open.0.map_while(Result::ok).for_each(drop));
    drop(network);
    // The number of events that still come depends on timing. The end of the stream does not.
    ended.join().expect("it is read to its end");
}
