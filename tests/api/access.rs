//! Headers, limits and access: what surrounds an answer.

use crate::support::{at_genesis, get, recorded_chain, recordings};
use dposlab::api::{ApiContext, Dialect, LogTail, RateLimit, Request, Settings, answer};
use flate2::read::GzDecoder;
use std::{io::Read, net::SocketAddr};
use warp::http::{HeaderName, HeaderValue, Method, Response};

fn ask_with(context: &ApiContext, target: &str, headers: &[(&'static str, &str)]) -> Response<bytes::Bytes> {
    let mut request = Request::new(Method::GET, target);
    for (name, value) in headers {
        request.headers.insert(HeaderName::from_static(name), HeaderValue::from_str(value).expect("a header"));
    }
    send(context, &request)
}

fn send(context: &ApiContext, request: &Request) -> Response<bytes::Bytes> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime without IO");
    runtime.block_on(answer(context, request, async { Ok(Vec::new()) })).into_response(request)
}

fn header<'r>(response: &'r Response<bytes::Bytes>, name: &str) -> Option<&'r str> {
    response.headers().get(name).map(|value| value.to_str().expect("a text"))
}

#[test]
fn what_has_not_changed_is_not_sent_again() {
    let (_, context) = at_genesis(Dialect::Documented);
    let first = ask_with(&context, "/api/wallets", &[]);
    let modified = header(&first, "last-modified").expect("a dated route").to_owned();
    assert!(modified.ends_with(" GMT"), "{modified}");
    let again = ask_with(&context, "/api/wallets", &[("if-modified-since", &modified)]);
    assert_eq!((again.status().as_u16(), again.body().len()), (304, 0));
    assert_eq!(header(&again, "last-modified"), Some(&*modified));
    let older = ask_with(&context, "/api/wallets", &[("if-modified-since", "Tue, 21 Mar 2006 13:00:00 GMT")]);
    assert_eq!(older.status(), 200);
    for undated in ["/api/node/status", "/api/blockchain", "/api/blocks/last", "/api/peers", "/api/transactions/types"]
    {
        assert_eq!(header(&ask_with(&context, undated, &[]), "last-modified"), None, "{undated}");
    }
    let unknown = ask_with(&context, "/api/wallets/nobody", &[("if-modified-since", &modified)]);
    assert_eq!(unknown.status(), 404);
}

#[test]
fn every_block_changes_the_date() {
    let folder = recordings();
    let date = |height| {
        let context = recorded_chain(&folder, height, Dialect::Documented);
        header(&ask_with(&context, "/api/blocks", &[]), "last-modified").map(str::to_owned)
    };
    assert_ne!(date(3), date(4));
}

#[test]
fn long_answers_are_compressed_for_those_who_can_read_it() {
    let (_, context) = at_genesis(Dialect::Documented);
    let plain = ask_with(&context, "/api/transactions", &[]);
    assert_eq!(header(&plain, "content-encoding"), None);
    let packed = ask_with(&context, "/api/transactions", &[("accept-encoding", "deflate, gzip")]);
    assert_eq!(header(&packed, "content-encoding"), Some("gzip"));
    assert_eq!(header(&packed, "vary"), Some("accept-encoding"));
    let mut unpacked = Vec::new();
    GzDecoder::new(&packed.body()[..]).read_to_end(&mut unpacked).expect("gzip");
    assert_eq!(&unpacked[..], &plain.body()[..]);
    let short = ask_with(&context, "/api/node/status", &[("accept-encoding", "gzip")]);
    assert_eq!(header(&short, "content-encoding"), None);
    let part = ask_with(&context, "/api/transactions", &[("accept-encoding", "gzip"), ("range", "bytes=0-2000")]);
    assert_eq!((part.status().as_u16(), header(&part, "content-encoding")), (206, None));
}

#[test]
fn clients_that_ask_too_often_are_told_so() {
    let (_, context) = at_genesis(Dialect::Documented);
    assert_eq!(header(&ask_with(&context, "/api/blocks", &[]), "x-ratelimit-userlimit"), None);
    let rate_limit = Some(RateLimit { requests: 3, window_ms: 600_000 });
    let context = ApiContext { settings: Settings { rate_limit, ..Settings::default() }, ..context };
    let left = |response: &Response<bytes::Bytes>| header(response, "x-ratelimit-userremaining").map(str::to_owned);
    let statuses: Vec<_> = ["/", "/api/nope", "/api/blocks?limit=0", "/api/blocks", "/api/blocks", "/api/blocks"]
        .map(|target| ask_with(&context, target, &[("x-forwarded-for", "1.2.3.4")]))
        .map(|response| (response.status().as_u16(), left(&response)))
        .into();
    let text = |text: &str| Some(text.to_owned());
    let wanted = [(200, text("2")), (404, None), (422, text("1")), (200, text("0")), (429, text("-1"))];
    assert_eq!(statuses[..5], wanted);
    assert_eq!(statuses[5], statuses[4]);
    let body = ask_with(&context, "/api/blocks", &[]).into_body().to_vec();
    let message = r#"{"statusCode":429,"error":"Too Many Requests","message":"Rate limit exceeded"}"#;
    assert_eq!(String::from_utf8(body).expect("JSON"), message);
    let beside = context.behind_the_same_server(context.view.clone(), context.live.clone());
    let answered = ask_with(&beside, "/api/blocks", &[]);
    assert_eq!(answered.status().as_u16(), 429, "a client is counted once, whatever network it asks");
}

/// A page of many files is one look at it. What it then asks of the API counts.
#[test]
fn pages_and_their_files_are_not_counted() {
    let (_, context) = at_genesis(Dialect::Documented);
    let rate_limit = Some(RateLimit { requests: 1, window_ms: 600_000 });
    let context = ApiContext { settings: Settings { rate_limit, ..Settings::default() }, ..context };
    for _ in 0..20 {
        for target in ["/", "/about", "/page/main.js", "/page/drawing.js", "/api/docs/index.html", "/api/docs"] {
            let page = ask_with(&context, target, &[("accept", "text/html")]);
            assert!(page.status() == 200 || target == "/api/docs" && page.status() == 301, "{target}");
            assert_eq!(header(&page, "x-ratelimit-userlimit"), None, "{target}");
        }
    }
    assert_eq!(ask_with(&context, "/", &[("accept", "application/json")]).status(), 200);
    assert_eq!(ask_with(&context, "/api/blocks", &[]).status(), 429);
}

#[test]
fn strangers_are_not_answered() {
    let (_, context) = at_genesis(Dialect::Documented);
    let settings = Settings { whitelist: "127.0.0.1, 10.*".parse().expect("patterns"), ..Settings::default() };
    let context = ApiContext { settings, ..context };
    let status = |ip: [u8; 4], target: &str| {
        let remote = Some(SocketAddr::from((ip, 1)));
        send(&context, &Request { remote, ..Request::new(Method::GET, target) }).status().as_u16()
    };
    assert_eq!(status([127, 0, 0, 1], "/api/blocks"), 200);
    assert_eq!(status([10, 9, 8, 7], "/api/blocks"), 200);
    assert_eq!(status([192, 0, 2, 1], "/api/blocks"), 403);
    assert_eq!(status([192, 0, 2, 1], "/api/nope"), 403);
}

#[test]
fn the_end_of_the_log_can_be_read() {
    let (_, context) = at_genesis(Dialect::Documented);
    assert_eq!(get(&context, "/api/node/debug").status, 404);
    let log = LogTail::default();
    ["one", "two", "three"].iter().for_each(|line| log.push((*line).to_owned()));
    let context = ApiContext { log: Some(log), ..context };
    let response = ask_with(&context, "/api/node/debug?lines=2", &[]);
    assert_eq!(header(&response, "content-type"), Some("text/plain; charset=utf-8"));
    assert_eq!(&response.body()[..], b"two\nthree\n");
    let message = "child \"lines\" fails because [\"lines\" must be larger than or equal to 1]";
    assert_eq!(get(&context, "/api/node/debug?lines=0").body["message"], message);
}
