//! The clients that may change the run, and what clients may hold of the server: each trick over a real socket.

use crate::live::Network;
use dposlab::{
    api::{LabAccess, LabToken, Limits, Proxies, PublicFaucet, RateLimit, Settings, Whitelist, proxy},
    protocol::Arktoshi,
};
use serde_json::json;
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    time::Duration,
};

const JSON: &str = "content-type: application/json\r\n";
const BODY: &str = "content-length: 11\r\n\r\n{\"slots\":1}";

/// The status of a request sent as it is; 0 if there was no answer.
fn status(network: &Network, request: &str) -> u16 {
    let answer = network.send_raw(request);
    answer.get(9..12).and_then(|status| status.parse().ok()).unwrap_or(0)
}

/// Height of the chain: whether anything was played.
fn height(network: &Network) -> u64 {
    network.get("/api/blockchain").body["data"]["block"]["height"].as_u64().expect("a number")
}

#[test]
fn no_web_page_of_another_site_steers_the_run() {
    let network = Network::start(31);
    let (address, port) = (network.address, network.address.port());
    let post = |host: &str, headers: &str| {
        let head = format!("POST /lab/advance HTTP/1.1\r\nconnection: close\r\nhost: {host}\r\n");
        status(&network, &format!("{head}{headers}{BODY}"))
    };
    let here = address.to_string();
    // A page's own requests: a form, a body of no type or of text, JSON after a preflight.
    for (headers, wanted) in [
        ("content-type: application/x-www-form-urlencoded\r\n".to_owned(), 415),
        ("content-type: text/plain\r\n".to_owned(), 415),
        ("content-type: multipart/form-data; boundary=x\r\n".to_owned(), 415),
        (String::new(), 415),
        (format!("{JSON}origin: http://example.com\r\n"), 403),
        (format!("{JSON}origin: null\r\n"), 403),
        (format!("{JSON}origin: http://localhost:3000\r\n"), 403),
        (format!("{JSON}origin: http://example.com:{port}\r\n"), 403),
        (format!("{JSON}origin: https://{here}\r\n"), 403),
        (format!("{JSON}origin: http://{here}.example.com\r\n"), 403),
        // Twice, and one of them would do.
        (format!("{JSON}origin: http://{here}\r\norigin: http://example.com\r\n"), 403),
        (format!("{JSON}origin: http://example.com\r\norigin: http://{here}\r\n"), 403),
        (format!("{JSON}content-type: text/plain\r\n"), 415),
        (format!("content-type: text/plain\r\n{JSON}"), 415),
    ] {
        assert_eq!(post(&here, &headers), wanted, "{headers}");
    }
    // A name that was made to lead here.
    for host in [
        "example.com".to_owned(),
        format!("example.com:{port}"),
        format!("localhost.example.com:{port}"),
        format!("127.0.0.1.example.com:{port}"),
        format!("user@127.0.0.1:{port}"),
        "127.0.0.1:1".to_owned(),
        "localhost".to_owned(),
        format!("192.0.2.1:{port}"),
    ] {
        assert_eq!(post(&host, JSON), 403, "{host}");
        let read = format!("GET /lab/pace HTTP/1.1\r\nconnection: close\r\nhost: {host}\r\n\r\n");
        assert_eq!(status(&network, &read), 403, "{host}");
        let hooks = format!("GET /api/webhooks HTTP/1.1\r\nconnection: close\r\nhost: {host}\r\n\r\n");
        assert_eq!(status(&network, &hooks), 403, "{host}");
    }
    assert_eq!(height(&network), 1, "nothing of that was played");
    // The user's own programs, and a page of this very server.
    for host in [here.clone(), format!("localhost:{port}"), format!("[::1]:{port}"), format!("127.0.0.2:{port}")] {
        assert_eq!(post(&host, JSON), 200, "{host}");
        assert_eq!(post(&host, &format!("{JSON}origin: http://{host}\r\n")), 200, "{host}");
    }
    assert_eq!(height(&network), 9);
}

/// A proxy on this machine sends what anybody has sent it, from loopback and with a `Host` of this server.
#[test]
fn what_a_proxy_forwards_does_not_steer_the_run() {
    let network = Network::start(35);
    let here = network.address;
    for header in [
        "x-forwarded-for: 198.51.100.7",
        "X-Forwarded-Host: example.com",
        "x-forwarded-proto: https",
        "forwarded: for=198.51.100.7",
        "via: 1.1 proxy",
        "x-real-ip: 127.0.0.1",
        "cf-connecting-ip: 198.51.100.7",
    ] {
        let advance =
            format!("POST /lab/advance HTTP/1.1\r\nhost: {here}\r\nconnection: close\r\n{header}\r\n{JSON}{BODY}");
        assert_eq!(status(&network, &advance), 403, "{header}");
        for path in ["/lab", "/lab/pace", "/metrics", "/api/webhooks"] {
            let read = format!("GET {path} HTTP/1.1\r\nhost: {here}\r\nconnection: close\r\n{header}\r\n\r\n");
            assert_eq!(status(&network, &read), 403, "{path} with {header}");
        }
        let public = format!("GET /api/blockchain HTTP/1.1\r\nhost: {here}\r\nconnection: close\r\n{header}\r\n\r\n");
        assert_eq!(status(&network, &public), 200, "the public API is for everybody: {header}");
    }
    assert_eq!(height(&network), 1, "nothing of that was played");
}

/// Behind a proxy that is said to be there, each client has requests of its own, and nobody is local.
#[test]
fn a_proxy_s_clients_are_told_apart_and_steer_nothing() {
    let proxies = Proxies { header: proxy::header("X-Forwarded-For").expect("a header"), from: Whitelist::loopback() };
    let rate_limit = Some(RateLimit { requests: 2, window_ms: 600_000 });
    let settings = Settings { rate_limit, proxies: Some(proxies), ..Settings::default() };
    let network = Network::with(41, settings.clone());
    let here = network.address;
    let get = |network: &Network, path: &str, header: &str| {
        let host = network.address;
        status(network, &format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n{header}\r\n"))
    };
    for (client, wanted) in [
        ("198.51.100.7", 200),
        ("198.51.100.8", 200),
        ("198.51.100.8, 198.51.100.7", 200),
        ("203.0.113.5, 198.51.100.7", 429),
        ("198.51.100.8:4321", 200),
        ("198.51.100.8", 429),
        ("nobody", 400),
    ] {
        assert_eq!(get(&network, "/api/blocks", &format!("x-forwarded-for: {client}\r\n")), wanted, "{client}");
    }
    // Also those whom the proxy does not name, for it may have forgotten to.
    for header in ["", "x-forwarded-for: 127.0.0.1\r\n"] {
        for path in ["/lab", "/metrics", "/api/webhooks"] {
            assert_eq!(get(&network, path, header), 403, "{path} {header}");
        }
    }
    let answer = network.send_raw(&format!("GET /lab HTTP/1.1\r\nhost: {here}\r\nconnection: close\r\n\r\n"));
    assert!(answer.contains("/lab is closed behind a proxy; --lab token opens it"), "{answer}");

    let token = LabToken::new("0123456789abcdef").expect("long enough");
    let network = Network::with(42, Settings { lab: LabAccess::Token(token), ..settings });
    let header = "x-forwarded-for: 198.51.100.7\r\nauthorization: Bearer 0123456789abcdef\r\n";
    assert_eq!(get(&network, "/lab/pace", header), 200);
}

#[test]
fn no_preflight_of_what_is_guarded_is_granted() {
    let network = Network::start(32);
    let address = network.address;
    let asked = "access-control-request-method: POST\r\naccess-control-request-headers: content-type\r\n";
    for path in
        ["/lab/advance", "/lab/pace/", "/lab", "/lab/nowhere", "/api/webhooks", "/api/v2/webhooks", "/api/webhooks/1"]
    {
        for method in ["OPTIONS", "GET", "POST"] {
            let origin = format!("origin: http://example.com\r\n{asked}");
            let head = format!("{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{origin}");
            let answer = network.send_raw(&format!("{head}content-length: 0\r\n\r\n")).to_ascii_lowercase();
            assert!(!answer.contains("access-control-"), "{method} {path}: {answer}");
            assert!(answer.starts_with("http/1.1 40"), "{method} {path}: {answer}");
        }
    }
}

#[test]
fn a_request_names_one_host_and_no_proxy() {
    let network = Network::start(33);
    let address = network.address;
    for (request, wanted) in [
        ("GET / HTTP/1.1\r\nconnection: close\r\n\r\n".to_owned(), 400),
        (format!("GET / HTTP/1.1\r\nhost: {address}\r\nhost: {address}\r\nconnection: close\r\n\r\n"), 400),
        (format!("GET / HTTP/1.1\r\nhost: {address}\r\nHost: example.com\r\nconnection: close\r\n\r\n"), 400),
        ("GET / HTTP/1.0\r\n\r\n".to_owned(), 200),
        ("GET /lab/pace HTTP/1.0\r\n\r\n".to_owned(), 403),
        ("CONNECT example.com:80 HTTP/1.1\r\nhost: example.com:80\r\nconnection: close\r\n\r\n".to_owned(), 400),
        (format!("CONNECT {address} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n"), 400),
        (format!("OPTIONS * HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n"), 404),
        // The whole address counts, and not what Host says beside it.
        (format!("GET http://{address}/lab/pace HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"), 200),
        (format!("GET http://example.com/lab/pace HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n"), 403),
    ] {
        assert_eq!(status(&network, &request), wanted, "{request}");
    }
    assert_eq!(network.get("/").status, 200, "the server still answers");
}

#[test]
fn a_token_opens_the_lab_and_off_closes_it() {
    let token = LabToken::new("0123456789abcdef").expect("long enough");
    let network = Network::with(34, Settings { lab: LabAccess::Token(token), ..Settings::default() });
    let post = |headers: &str| {
        let head = "POST /lab/advance HTTP/1.1\r\nconnection: close\r\nhost: testnet.example:80\r\n";
        network.send_raw(&format!("{head}{headers}{BODY}"))
    };
    let refused = post(JSON);
    assert!(refused.starts_with("HTTP/1.1 401") && refused.to_ascii_lowercase().contains("www-authenticate: bearer"));
    assert!(post(&format!("{JSON}authorization: Bearer 0123456789abcdeX\r\n")).starts_with("HTTP/1.1 401"));
    assert!(post("authorization: Bearer 0123456789abcdef\r\n").starts_with("HTTP/1.1 415"));
    assert_eq!(height(&network), 1);
    assert!(post(&format!("{JSON}authorization: Bearer 0123456789abcdef\r\n")).starts_with("HTTP/1.1 200"));
    assert_eq!(height(&network), 2);

    let network = Network::with(35, Settings { lab: LabAccess::Off, ..Settings::default() });
    let answered = network.get("/lab/pace");
    assert_eq!(answered.status, 403);
    let message = answered.body["message"].as_str().expect("a text").to_owned();
    assert!(message.contains("--lab off"), "{message}");
    assert_eq!(network.get("/api/node/status").status, 200);
}

#[test]
fn those_who_only_hold_connections_make_room() {
    let limits = Limits { connections: 8, ..Limits::default() };
    let network = Network::with(36, Settings { limits, ..Settings::default() });
    let request = format!("GET /api/node/status HTTP/1.1\r\nhost: {}\r\n\r\n", network.address);
    let ask = |stream: &mut TcpStream| {
        stream.write_all(request.as_bytes()).expect("the connection is open");
        let mut part = [0; 4_096];
        let length = stream.read(&mut part).expect("an answer");
        assert!(part[..length].starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&part[..length]));
    };
    let connect = || TcpStream::connect(network.address).expect("the server accepts");
    let mut healthy = connect();
    ask(&mut healthy);
    let mut held = Vec::new();
    for number in 0..40 {
        let mut stream = connect();
        // Two of three have begun a request that they never end: within its head, or within its body.
        let begun: &[u8] = match number % 3 {
            0 => b"",
            1 => b"GET /api/blocks HTTP/1.1\r\nhost: ",
            _ => b"POST /api/transactions HTTP/1.1\r\nhost: test\r\ncontent-length: 100\r\n\r\n{",
        };
        stream.write_all(begun).expect("the connection is new");
        held.push(stream);
        ask(&mut healthy);
        // Another client finds room, too.
        ask(&mut connect());
    }
    // A closed connection can be told from an open one.
    let mut closed = 0;
    for mut stream in held {
        stream.set_nonblocking(true).expect("a socket");
        let mut part = [0; 16];
        closed += usize::from(
            !matches!(stream.read(&mut part), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock),
        );
    }
    assert!((31..=34).contains(&closed), "{closed} of 40 were closed, with room for 6 beside the two that ask");
}

#[test]
fn bodies_come_in_time_and_all_together_stay_small() {
    let limits = Limits { body: Duration::from_millis(20), receiving: 1_000, ..Limits::default() };
    let network = Network::with(37, Settings { limits, ..Settings::default() });
    let head = "POST /api/transactions HTTP/1.1\r\nhost: test\r\n";
    // 100 bytes are announced, and one comes.
    let slow = network.send(&format!("{head}content-length: 100\r\n\r\n{{"));
    assert_eq!(slow.status, 408, "{}", slow.body);
    let large = network.send(&format!("{head}content-length: 2000\r\n\r\n{}", " ".repeat(2_000)));
    assert_eq!((large.status, &large.body["error"]), (503, &json!("Service Unavailable")));
    let half = network.send(&format!("{head}content-length: 500\r\n\r\n{}", " ".repeat(500)));
    assert_eq!(half.status, 422, "what one client may hold: {}", half.body);
    let more = network.send(&format!("{head}content-length: 501\r\n\r\n{}", " ".repeat(501)));
    assert_eq!(more.status, 503, "the other half is for others: {}", more.body);
    let fine = network.send(&format!("{head}content-length: 2\r\n\r\n{{}}"));
    assert_eq!(fine.status, 422, "{}", fine.body);
}

/// Before its first request, within the head of one, and after an answer: who says nothing, or never comes to the end of it, is
/// closed in time.
#[test]
fn a_connection_that_waits_too_long_is_closed() {
    let limits = Limits { idle: Duration::from_millis(50), ..Limits::default() };
    let network = Network::with(38, Settings { limits, ..Settings::default() });
    let head = format!("GET /api/node/status HTTP/1.1\r\nhost: {}\r\n", network.address);
    let whole = format!("{head}\r\n");
    for (said, answers) in [("", 0), ("G", 0), (&*head, 0), (&*whole, 1), (&*format!("{whole}{whole}"), 2)] {
        let mut stream = TcpStream::connect(network.address).expect("the server accepts");
        // No more than an alarm: a connection that stays open fails the test in place of hanging it.
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a socket");
        stream.write_all(said.as_bytes()).expect("the connection is new");
        let mut answered = String::new();
        stream.read_to_string(&mut answered).unwrap_or_else(|why| panic!("{said:?} is still open: {why}"));
        assert_eq!(answered.matches("HTTP/1.1 200").count(), answers, "{said:?}: {answered}");
    }
    // And one that sends a byte of it now and then.
    let mut stream = TcpStream::connect(network.address).expect("the server accepts");
    stream.write_all(head.as_bytes()).expect("the connection is new");
    stream.set_read_timeout(Some(Duration::from_millis(10))).expect("a socket");
    let is_closed = |stream: &mut TcpStream| {
        let mut part = [0; 64];
        let open = [std::io::ErrorKind::WouldBlock, std::io::ErrorKind::TimedOut];
        !matches!(stream.read(&mut part), Err(why) if open.contains(&why.kind()))
    };
    let closed = (0..2_000).any(|_| stream.write_all(b"x: y\r\n").is_err() || is_closed(&mut stream));
    assert!(closed, "a slow head keeps its connection");
}

/// A head has an end, and who does not read an answer is closed in time.
#[test]
fn heads_are_bounded_and_answers_are_read_in_time() {
    let limits = Limits { write: Duration::from_millis(50), sending: 100_000, ..Limits::default() };
    let network = Network::with(43, Settings { limits, ..Settings::default() });
    let head = format!("GET /api/node/status HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n", network.address);
    assert_eq!(status(&network, &format!("{head}x: {}\r\n\r\n", "y".repeat(20_000))), 200);
    let mut stream = TcpStream::connect(network.address).expect("the server accepts");
    // What it does not read makes the system reset the connection, which may overtake its answer.
    let _reset = write!(stream, "{head}x: {}\r\n\r\n", "y".repeat(80_000));
    let mut answer = String::new();
    let _reset = stream.read_to_string(&mut answer);
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
    assert_eq!(network.get("/api/openapi.json").status, 503, "half of the room is one client's");
    // Files of pages cost no memory and are not counted; the socket's buffers take no more than some of these answers.
    let ask = format!("GET /api/docs/swagger-ui-bundle.js HTTP/1.1\r\nhost: {}\r\n\r\n", network.address);
    let mut deaf: Vec<TcpStream> = (0..8)
        .map(|_| {
            let mut stream = TcpStream::connect(network.address).expect("the server accepts");
            stream.write_all(ask.repeat(40).as_bytes()).expect("the connection is new");
            stream
        })
        .collect();
    assert_eq!(network.get("/api/node/status").status, 200, "and others are answered");
    // No more than an alarm: when the server has closed them all, no connection but that of the question is open.
    let figures = format!("GET /metrics HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", network.address);
    let is_closed = || network.send_raw(&figures).contains("\ndposlab_http_connections 1.0\n");
    assert!((0..20_000).any(|_| is_closed()), "those who do not read are still connected");
    for stream in &mut deaf {
        let mut rest = Vec::new();
        let _reset = stream.read_to_end(&mut rest);
        assert!(rest.len() < 40 * 1_000_000, "{} bytes came, and nobody read", rest.len());
    }
}

/// A client that asks first whether it may send a body is told no, and never to go on.
#[test]
fn what_is_refused_for_its_head_has_no_body_read() {
    let rate_limit = Some(RateLimit { requests: 1, window_ms: 600_000 });
    let network = Network::with(39, Settings { rate_limit, ..Settings::default() });
    let address = network.address;
    let first_line = |path: &str, headers: &str| {
        let mut stream = TcpStream::connect(address).expect("the server accepts");
        let head = format!("POST {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-length: 2\r\n");
        write!(stream, "{head}expect: 100-continue\r\n{headers}\r\n").expect("the connection is new");
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).expect("an answer");
        line.trim_end().to_owned()
    };
    assert_eq!(first_line("/api/transactions", JSON), "HTTP/1.1 100 Continue", "the only one that may");
    assert_eq!(first_line("/api/transactions", JSON), "HTTP/1.1 429 Too Many Requests");
    assert_eq!(first_line("/lab/advance", "content-type: text/plain\r\n"), "HTTP/1.1 415 Unsupported Media Type");
    assert_eq!(first_line("/lab/advance", &format!("{JSON}origin: null\r\n")), "HTTP/1.1 403 Forbidden");
    assert_eq!(first_line("/api/nothing", JSON), "HTTP/1.1 404 Not Found");
}

/// Everybody may watch, and is told whether they may do more; the seed, from which all keys follow, is nobody's.
#[test]
fn the_picture_is_for_everybody_and_tells_no_seed() {
    let token = LabToken::new("0123456789abcdef").expect("long enough");
    for (lab, header, wanted) in [
        (LabAccess::Off, "", "closed"),
        (LabAccess::Token(token.clone()), "", "token"),
        (LabAccess::Token(token.clone()), "authorization: Bearer 0123456789abcdee\r\n", "token"),
        (LabAccess::Token(token), "authorization: Bearer 0123456789abcdef\r\n", "open"),
        (LabAccess::Loopback, "", "open"),
        (LabAccess::Loopback, "origin: http://example.com\r\n", "closed"),
        (LabAccess::Loopback, "x-forwarded-for: 198.51.100.7\r\n", "closed"),
    ] {
        let network = Network::with(43, Settings { lab, ..Settings::default() });
        let host = network.address;
        let get = |path: &str| {
            network.send_raw(&format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n{header}\r\n"))
        };
        let answer = get("/watch");
        let body: serde_json::Value =
            serde_json::from_str(answer.split("\r\n\r\n").nth(1).expect("a body")).expect("JSON");
        let picture = &body["data"];
        assert_eq!((picture["lab"].as_str(), &picture["faucet"]), (Some(wanted), &json!(null)), "{header}");
        assert_eq!((&picture["network"]["seed"], &picture["network"]["snapshots"]), (&json!(null), &json!([])));
        assert_eq!(picture["network"]["nodes"].as_array().map(Vec::len), Some(5));
        assert!(picture["network"]["nodes"][0].get("peers").is_none());
        let steers =
            status(&network, &format!("GET /lab HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n{header}\r\n"));
        assert_eq!(steers == 200, wanted == "open", "{header}: {steers}");
    }
}

/// Pictures count as any other request.
#[test]
fn who_watches_too_often_is_told_to_wait() {
    let rate_limit = Some(RateLimit { requests: 2, window_ms: 600_000 });
    let network = Network::with(44, Settings { rate_limit, lab: LabAccess::Off, ..Settings::default() });
    let statuses = [(); 3].map(|()| network.get("/watch").status);
    assert_eq!(statuses, [200, 200, 429]);
}

/// Each client may ask the faucet so often, and nobody where there is none. This network has no coin to give, which is said.
#[test]
fn a_faucet_for_everybody_has_its_limits() {
    let faucet = |network: &Network, recipient: &str| network.post("/faucet", &json!({"recipient": recipient}));
    let closed = Network::start(45);
    let payee = closed.testnet.accounts[0].keys.public().address(23).to_string();
    assert_eq!(faucet(&closed, &payee).status, 404);
    let limit = |requests| RateLimit { requests, window_ms: 600_000 };
    let public_faucet = Some(PublicFaucet { amount: Arktoshi::coins(3), each: limit(2), all: limit(9) });
    let network = Network::with(45, Settings { lab: LabAccess::Off, public_faucet, ..Settings::default() });
    assert_eq!(
        network.get("/watch").body["data"]["faucet"],
        json!({"amount": "300000000", "payments": 2, "seconds": 600})
    );
    assert_eq!(faucet(&network, "nonsense").status, 422, "it counts for nothing");
    assert_eq!(network.post("/faucet", &json!({"recipient": payee, "amount": "5"})).status, 422);
    let statuses = [(); 3].map(|()| faucet(&network, &payee).status);
    assert_eq!(statuses, [409, 409, 429]);
}
