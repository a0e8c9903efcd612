//! The pages for people: the live page at `/` with its parts, and `/about`, which says where everything is. All of it is in the
//! binary and loads nothing from elsewhere.

use crate::{
    api::{
        context::ApiContext,
        http::{ApiError, Reply, guard::LabAccess, request::Request},
        table::{
            Call, Dialect, Outcome,
            route::{Route, Verb},
        },
    },
    drawing,
};
use warp::http::header;

const ABOUT: &str = include_str!("home.html");
const LIVE: &str = include_str!("../live/index.html");
/// The policy of the live page: it may load its own parts and ask its own server, nothing else. `blob:` and `data:` are
/// drawings that are saved.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data: blob:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// The parts of the live page, by name. `drawing` holds `drawing.js` and `drawing.css`.
const PARTS: [(&str, &str); 15] = [
    ("live.css", include_str!("../live/live.css")),
    ("main.js", include_str!("../live/main.js")),
    ("ask.js", include_str!("../live/ask.js")),
    ("show.js", include_str!("../live/show.js")),
    ("network.js", include_str!("../live/network.js")),
    ("feed.js", include_str!("../live/feed.js")),
    ("ring.js", include_str!("../live/ring.js")),
    ("tree.js", include_str!("../live/tree.js")),
    ("nodes.js", include_str!("../live/nodes.js")),
    ("flow.js", include_str!("../live/flow.js")),
    ("steer.js", include_str!("../live/steer.js")),
    ("travel.js", include_str!("../live/travel.js")),
    ("faults.js", include_str!("../live/faults.js")),
    ("explorer.js", include_str!("../live/explorer.js")),
    ("things.js", include_str!("../live/things.js")),
];

/// A page that somebody asks for at `/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    Live,
    About,
}

/// Returns the page that a request is for. A browser gets the live page at `/`. A program that shows whatever comes, as curl does,
/// gets the page that needs no scripts. A program that accepts JSON, or that does not say what it accepts, gets the reference's
/// greeting; under `core-2.6` so does a program that accepts anything.
pub fn wanted(request: &Request, route: &Route, dialect: Dialect) -> Option<Wanted> {
    if route.verb != Verb::Get || route.path != "/" {
        return None;
    }
    let accepts = accepts(request);
    let takes_anything = accepts.contains("*/*") && !accepts.contains("json") && dialect == Dialect::Documented;
    match shows_html(request) {
        true => Some(Wanted::Live),
        false => takes_anything.then_some(Wanted::About),
    }
}

/// True if whoever asks is a browser.
pub fn shows_html(request: &Request) -> bool {
    accepts(request).contains("text/html")
}

fn accepts(request: &Request) -> &str {
    request.headers.get(header::ACCEPT).and_then(|accepts| accepts.to_str().ok()).unwrap_or_default()
}

/// The page at `/`.
pub fn page(wanted: Wanted, context: &ApiContext, request: &Request) -> Reply {
    match wanted {
        Wanted::Live => Reply::page(LIVE.to_owned()).with_policy(POLICY),
        Wanted::About => about_node(context, request.host_or_default()),
    }
}

/// `GET /page/{file}`: a part of the live page.
pub fn part(call: &Call<'_>) -> Outcome {
    let name = call.argument("file");
    let text = match name {
        "drawing.js" => Some(drawing::module()),
        "drawing.css" => Some(drawing::STYLE.to_owned()),
        _ => PARTS.iter().find(|(part, _)| *part == name).map(|(_, text)| (*text).to_owned()),
    };
    text.map(|text| Reply::file(name, text.into_bytes()).with_policy(POLICY)).ok_or(ApiError::NO_ROUTE)
}

/// `GET /about`.
pub fn about(call: &Call<'_>) -> Outcome {
    Ok(about_node(call.context, call.request.host_or_default()))
}

/// The page that says where everything is, with the node as it is now.
fn about_node(context: &ApiContext, host: &str) -> Reply {
    let (view, settings) = (&context.view, &context.settings);
    let network = &view.tree().config().network;
    let lab = match settings.lab {
        LabAccess::Off => "off (<code>--lab off</code>)",
        LabAccess::Loopback if settings.proxies.is_some() => "closed behind a proxy; <code>--lab token</code> opens it",
        LabAccess::Loopback => "for programs on this machine",
        LabAccess::Token(_) => "with the token of <code>--lab-token</code>: <code>authorization: Bearer TOKEN</code>",
    };
    let values = [
        ("{version}", env!("CARGO_PKG_VERSION").to_owned()),
        ("{node}", view.node().to_string()),
        ("{network}", network.name.clone()),
        ("{token}", network.token.clone()),
        ("{dialect}", settings.dialect.to_string()),
        ("{height}", view.head().height().to_string()),
        ("{now}", view.now().seconds().to_string()),
        ("{address}", host.to_owned()),
        ("{lab}", lab.to_owned()),
    ];
    Reply::page(values.iter().fold(ABOUT.to_owned(), |page, (mark, value)| page.replace(mark, &escape(mark, value))))
}

/// A loaded network's names are the user's own text. The text in `lab` is ours, and HTML.
fn escape(mark: &str, value: &str) -> String {
    match mark {
        "{lab}" => value.to_owned(),
        _ => value.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('{', "&#123;"),
    }
}
