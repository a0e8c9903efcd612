//! The page at `/`: where everything is, for whoever opens the address. It is in the binary and loads nothing.

use crate::api::{
    ApiContext, Reply, Request,
    context::Dialect,
    guard::LabAccess,
    route::{Route, Verb},
};
use warp::http::header;

const PAGE: &str = include_str!("home.html");

/// Whether a request is for the page: what asks for `/` and would show HTML. A program that does not say so, or says JSON,
/// gets the reference's greeting, under `core-2.6` also one that takes anything.
pub fn is_wanted(request: &Request, route: &Route, dialect: Dialect) -> bool {
    let accepts = request.headers.get(header::ACCEPT).and_then(|accepts| accepts.to_str().ok()).unwrap_or_default();
    let takes_anything = accepts.contains("*/*") && !accepts.contains("json") && dialect == Dialect::Documented;
    route.verb == Verb::Get && route.path == "/" && (accepts.contains("text/html") || takes_anything)
}

/// The page, about the node as it is now.
pub fn page(context: &ApiContext, host: &str) -> Reply {
    let (view, settings) = (&context.view, &context.settings);
    let network = &view.tree().config().network;
    let lab = match settings.lab {
        LabAccess::Off => "off (<code>--lab off</code>)",
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
    Reply::page(values.iter().fold(PAGE.to_owned(), |page, (mark, value)| page.replace(mark, &escape(mark, value))))
}

/// A loaded network's names are the user's own text. What stands in `lab` is ours, and HTML.
fn escape(mark: &str, value: &str) -> String {
    match mark {
        "{lab}" => value.to_owned(),
        _ => value.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('{', "&#123;"),
    }
}
