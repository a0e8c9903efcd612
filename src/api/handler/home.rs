//! The pages for people: the live page at `/` with its parts, and `/about`, which says where everything is. All of it is in the
//! binary and loads nothing from elsewhere.

use super::site::SiteFile;
use crate::{
    api::{
        context::ApiContext,
        http::{
            Reply,
            guard::{Access, LabAccess},
            request::Request,
        },
        table::{
            Call, Dialect, Outcome,
            route::{Route, Verb},
        },
    },
    drawing,
};
use std::sync::LazyLock;
use warp::http::header;

const ABOUT: &str = include_str!("home.html");
/// The `Content-Security-Policy` of the live page: it may load its own parts and ask its own server, nothing else. `blob:` and
/// `data:` are for drawings that the reader saves.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data: blob:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// The live page.
static LIVE: LazyLock<SiteFile> = LazyLock::new(|| SiteFile::new("index.html", include_str!("../live/index.html")));
/// The parts of the live page. `drawing` holds `drawing.js` and `drawing.css`.
static PARTS: LazyLock<[SiteFile; 21]> = LazyLock::new(|| {
    [
        SiteFile::new("drawing.js", drawing::module()),
        SiteFile::new("drawing.css", drawing::STYLE),
        SiteFile::new("live.css", include_str!("../live/live.css")),
        SiteFile::new("main.js", include_str!("../live/main.js")),
        SiteFile::new("ask.js", include_str!("../live/ask.js")),
        SiteFile::new("show.js", include_str!("../live/show.js")),
        SiteFile::new("words.js", include_str!("../live/words.js")),
        SiteFile::new("network.js", include_str!("../live/network.js")),
        SiteFile::new("feed.js", include_str!("../live/feed.js")),
        SiteFile::new("ring.js", include_str!("../live/ring.js")),
        SiteFile::new("tree.js", include_str!("../live/tree.js")),
        SiteFile::new("nodes.js", include_str!("../live/nodes.js")),
        SiteFile::new("flow.js", include_str!("../live/flow.js")),
        SiteFile::new("steer.js", include_str!("../live/steer.js")),
        SiteFile::new("travel.js", include_str!("../live/travel.js")),
        SiteFile::new("faults.js", include_str!("../live/faults.js")),
        SiteFile::new("explorer.js", include_str!("../live/explorer.js")),
        SiteFile::new("bench.js", include_str!("../live/bench.js")),
        SiteFile::new("front.js", include_str!("../live/front.js")),
        SiteFile::new("origin.js", include_str!("../live/origin.js")),
        SiteFile::new("things.js", include_str!("../live/things.js")),
    ]
});

/// A page that a client requests at `/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HomePage {
    Live,
    About,
}

/// Returns the page that a request is for. A browser gets the live page at `/`. A program that shows whatever comes, as curl does,
/// gets the page that needs no scripts. A program that accepts JSON, or that does not say what it accepts, gets the reference's
/// greeting; under `core-2.6` so does a program that accepts anything.
pub(crate) fn wanted(request: &Request, route: &Route, dialect: Dialect) -> Option<HomePage> {
    if route.verb != Verb::Get || route.path != "/" {
        return None;
    }
    let accepts = accepts(request);
    let takes_anything = accepts.contains("*/*") && !accepts.contains("json") && dialect == Dialect::Documented;
    match shows_html(request) {
        true => Some(HomePage::Live),
        false => takes_anything.then_some(HomePage::About),
    }
}

/// Returns true if the client is a browser.
pub(crate) fn shows_html(request: &Request) -> bool {
    accepts(request).contains("text/html")
}

fn accepts(request: &Request) -> &str {
    request.headers.get(header::ACCEPT).and_then(|accepts| accepts.to_str().ok()).unwrap_or_default()
}

/// The page at `/`.
pub(crate) fn page(wanted: HomePage, context: &ApiContext, request: &Request) -> Reply {
    match wanted {
        HomePage::Live => LIVE.reply().with_policy(POLICY),
        HomePage::About => about_node(context, request),
    }
}

/// `GET /page/{file}`: a part of the live page.
pub(crate) fn part(call: &Call<'_>) -> Outcome {
    Ok(SiteFile::find(&*PARTS, call.argument("file"))?.with_policy(POLICY))
}

/// `GET /about`.
pub(crate) fn about(call: &Call<'_>) -> Outcome {
    Ok(about_node(call.context, call.request))
}

/// The page that says where everything is, with the node as it is now. It leaves `/lab` out for a client that may not use it.
fn about_node(context: &ApiContext, request: &Request) -> Reply {
    let (view, settings) = (&context.view, &context.settings);
    let network = &view.tree().config().network;
    let lab = match settings.lab {
        LabAccess::Off | LabAccess::Loopback => "for programs on this machine",
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
        ("{address}", request.host_or_default().to_owned()),
        ("{lab}", lab.to_owned()),
    ];
    let page = parts(ABOUT, context.gate().check(request, Access::Loopback).is_ok());
    Reply::page(values.iter().fold(page, |page, (mark, value)| page.replace(mark, &escape(mark, value))))
}

/// The page with or without its parts between `<!--lab-->` and `<!--/lab-->`.
fn parts(page: &str, has_lab: bool) -> String {
    let (first, rest) = page.split_once("<!--lab-->").unwrap_or((page, ""));
    let parts = rest.split("<!--lab-->").filter_map(|part| part.split_once("<!--/lab-->"));
    parts.fold(first.to_owned(), |page, (lab, after)| {
        let lab = if has_lab { lab } else { "" };
        page + lab + after
    })
}

/// Escapes a value for HTML, because a loaded network's names are the user's own text. The text of `{lab}` is HTML already.
fn escape(mark: &str, value: &str) -> String {
    match mark {
        "{lab}" => value.to_owned(),
        _ => value.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('{', "&#123;"),
    }
}
