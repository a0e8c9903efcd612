//! From a request to its answer: the address, the route, the checks, the handler. Source: api.md 1.1.
#![expect(clippy::disallowed_methods, reason = "clients live in real time, and so does what delays their answers")]

use super::{
    context::ApiContext,
    handler::{
        self, home,
        routes::{self, ROUTES},
    },
    http::{
        access::{Quota, RateLimit},
        body,
        error::ApiError,
        guard::Access,
        reply::{Reply, Tampering},
        request::{Request, percent_decode},
        tally::RequestStart,
    },
    lab::{
        chains,
        chaos::{Strike, Treatment},
        views,
    },
    table::{
        Call, Dialect, Parameter,
        parameter::Parameters,
        query,
        route::{Answer, AnswerShape, Handle, Match, Query, Route, Verb},
    },
};
use crate::ledger::settled_chain::SettledError;
use serde_json::{Map, Value};
use std::{
    any::Any,
    borrow::Cow,
    future::poll_fn,
    panic::{self, AssertUnwindSafe},
    task::Poll,
};
use warp::http::{Method, StatusCode, header};

/// Answers a request. Awaits its body only if the route needs one, and answers with an error if the body cannot be read.
pub async fn answer(
    context: &ApiContext,
    request: &Request,
    body: impl Future<Output = Result<Vec<u8>, ApiError>>,
) -> Reply {
    if let Some((id, within)) = chains::split(&request.path) {
        return Box::pin(answer_chain(context, request, id, within, body)).await;
    }
    if let Some((id, within)) = views::split(&request.path) {
        return Box::pin(answer_view(context, request, id, within, body)).await;
    }
    let begun = RequestStart::now();
    let path = without_version(&request.path);
    let found = Verb::of(&request.method).and_then(|verb| routes::find(verb, &path, context.settings.dialect));
    let route = found.as_ref().map(|found| found.route.path);
    let reply = match context.settings.whitelist.allows(request.remote) {
        true => answer_found(context, request, &path, found, body).await,
        false => Reply::error(&ApiError::Forbidden),
    };
    context.requests.answered(&begun, route, &request.method, reply.status);
    reply
}

/// Answers from an isolated chain, as if it were alone.
async fn answer_chain(
    context: &ApiContext,
    request: &Request,
    id: Option<u64>,
    within: &str,
    body: impl Future<Output = Result<Vec<u8>, ApiError>>,
) -> Reply {
    if !context.settings.whitelist.allows(request.remote) {
        return Reply::error(&ApiError::Forbidden);
    }
    let chain = context.chains.as_ref().zip(id).and_then(|(chains, id)| Some((id, chains.get(id)?)));
    let Some((id, chain)) = chain else { return Reply::error(&handler::chains::MISSING) };
    answer_within(&chain.context, request, &chains::prefix(id), within, body).await
}

/// Answers from a view of the past. Refuses every request that would change it.
async fn answer_view(
    context: &ApiContext,
    request: &Request,
    id: Option<u64>,
    within: &str,
    body: impl Future<Output = Result<Vec<u8>, ApiError>>,
) -> Reply {
    if !context.settings.whitelist.allows(request.remote) {
        return Reply::error(&ApiError::Forbidden);
    }
    let view = context.views.as_ref().zip(id).and_then(|(views, id)| Some((id, views.get(id)?)));
    let Some((id, view)) = view else { return Reply::error(&views::MISSING) };
    let path = without_version(within);
    let found = Verb::of(&request.method).and_then(|verb| routes::find(verb, &path, context.settings.dialect));
    if let Some(found) = found.filter(|found| !found.route.only_looks()) {
        let why = context.gate().check(request, found.route.access).err().unwrap_or_else(views::read_only);
        let reply = Reply::error(&why);
        return if routes::is_guarded(&path) { reply.for_own_pages() } else { reply };
    }
    answer_within(&view.context, request, &views::prefix(id), within, body).await
}

/// Answers from another network below a path.
async fn answer_within(
    context: &ApiContext,
    request: &Request,
    prefix: &str,
    within: &str,
    body: impl Future<Output = Result<Vec<u8>, ApiError>>,
) -> Reply {
    // A page's relative addresses resolve against its folder, so the address of a chain's page ends with a slash.
    if within == "/" && !request.path.ends_with('/') && home::shows_html(request) {
        return Reply::moved(format!("{prefix}/"));
    }
    let is_of_webhooks = ["/api/webhooks", "/lab/webhooks"].into_iter().any(|path| {
        let rest = within.strip_prefix(path);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    });
    if is_of_webhooks && context.webhooks.is_none() {
        return Reply::error(&handler::views::NO_WEBHOOKS);
    }
    let request = Request { path: within.to_owned(), ..request.clone() };
    let reply = Box::pin(answer(context, &request, body)).await;
    let location = reply.location.map(|to| to.replacen("/api", &format!("{prefix}/api"), 1));
    Reply { location, ..reply }
}

/// Answers a client that the whitelist allows. Chaos rules may change the answer, except on the operator's routes such as `/lab`.
async fn answer_found(
    context: &ApiContext,
    request: &Request,
    path: &str,
    found: Option<Match<'_>>,
    body: impl Future<Output = Result<Vec<u8>, ApiError>>,
) -> Reply {
    let of_public = found.as_ref().map(|found| found.route).filter(|route| route.access != Access::Loopback);
    let strike = of_public.map(|route| context.chaos.request(route.path, &request.method)).unwrap_or_default();
    let reply = match strike == Strike::default() {
        true => answer_path(context, request, path, found, body).await,
        // Boxed, so that the future of an unaffected request stays small.
        false => Box::pin(answer_struck(strike, context, request, path, found, body)).await,
    };
    // A page of another origin must not read the answers of guarded routes.
    if routes::is_guarded(path) { reply.for_own_pages() } else { reply }
}

/// Applies the effect of the chaos rules that strike a request.
async fn answer_struck(
    strike: Strike,
    context: &ApiContext,
    request: &Request,
    path: &str,
    found: Option<Match<'_>>,
    body: impl Future<Output = Result<Vec<u8>, ApiError>>,
) -> Reply {
    if !strike.delay.is_zero() {
        tokio::time::sleep(strike.delay).await;
    }
    let elsewhere = match strike.then {
        Some(Treatment::Refuse) => {
            return Reply { tampering: Some(Tampering::Refused), ..Reply::nothing() };
        }
        Some(Treatment::Status(status)) => return struck(status, context.settings.rate_limit),
        Some(Treatment::Stale(blocks)) => {
            Some(ApiContext { pinned: Some(context.view.older(blocks)), ..context.clone() })
        }
        Some(Treatment::Node(node)) => context.chaos.view(node).map(|view| ApiContext { view, ..context.clone() }),
        _ => None,
    };
    let reply = answer_path(elsewhere.as_ref().unwrap_or(context), request, path, found, body).await;
    let tampering = (strike.then == Some(Treatment::Cut)).then_some(Tampering::Cut);
    Reply { tampering, ..reply }
}

/// The answer of a chaos rule that gives `status`, with the API's text for this error. 429 has its usual headers, with the configured
/// limit or else the reference's.
fn struck(status: u16, limit: Option<RateLimit>) -> Reply {
    match StatusCode::from_u16(status) {
        Ok(StatusCode::TOO_MANY_REQUESTS) => {
            let quota = Some(Quota::exceeded(limit.unwrap_or_default()));
            Reply { quota, ..Reply::error(&ApiError::TooMany) }
        }
        Ok(StatusCode::INTERNAL_SERVER_ERROR) | Err(_) => Reply::error(&ApiError::Internal(String::new())),
        Ok(status) => Reply::bare_error(status),
    }
}

async fn answer_path(
    context: &ApiContext,
    request: &Request,
    path: &str,
    found: Option<Match<'_>>,
    body: impl Future<Output = Result<Vec<u8>, ApiError>>,
) -> Reply {
    if request.method == Method::OPTIONS && request.headers.contains_key(header::ORIGIN) {
        return if routes::is_guarded(path) { Reply::error(&ApiError::Forbidden) } else { preflight() };
    }
    let outcome = match found {
        Some(found) => handle(context, request, path, &found, body).await,
        None => match moved(context, request, path).await {
            Some(reply) => Ok(reply),
            None => Err(ApiError::NO_ROUTE),
        },
    };
    outcome.unwrap_or_else(|error| failed(context, request, &error))
}

/// The answer to a request that failed. An internal cause goes to the log and not to the client.
fn failed(context: &ApiContext, request: &Request, error: &ApiError) -> Reply {
    if let ApiError::Internal(cause) = error {
        (context.report)(&format!("{} {} failed: {cause}", request.method, request.path));
    }
    Reply::error(error)
}

/// The key of an answer in the head's memo.
fn memo_key(dialect: Dialect, path: &str, query: &str) -> String {
    let dialect = if dialect == Dialect::Documented { "d" } else { "c" };
    [dialect, path, "?", query].concat()
}

/// Counts a request against its client's limit. `None` without a limit or without the client's address.
fn quota(context: &ApiContext, request: &Request) -> Option<Quota> {
    let (limit, client) = context.settings.rate_limit.zip(request.remote)?;
    Some(context.limiter.take(limit, client.ip()))
}

/// Checks the access and the rate limit, and answers. The answer reports the client's remaining requests. Pages, their files and the
/// operator's routes do not count.
async fn handle(
    context: &ApiContext,
    request: &Request,
    path: &str,
    found: &Match<'_>,
    body: impl Future<Output = Result<Vec<u8>, ApiError>>,
) -> Result<Reply, ApiError> {
    let route = found.route;
    context.gate().check(request, route.access)?;
    let is_page = matches!(route.shown, AnswerShape::Site | AnswerShape::Html)
        || home::wanted(request, route, context.settings.dialect).is_some();
    let quota = if route.access == Access::Loopback || is_page { None } else { quota(context, request) };
    let outcome = match quota {
        Some(quota) if quota.is_exceeded() => Err(ApiError::TooMany),
        _ => read_and_respond(context, request, path, found, body).await,
    };
    let reply = outcome.unwrap_or_else(|error| failed(context, request, &error));
    // The faucet's quota has precedence over that of all requests.
    Ok(Reply { quota: reply.quota.or(quota), ..reply })
}

async fn read_and_respond(
    context: &ApiContext,
    request: &Request,
    path: &str,
    found: &Match<'_>,
    body: impl Future<Output = Result<Vec<u8>, ApiError>>,
) -> Result<Reply, ApiError> {
    if let Some(wanted) = home::wanted(request, found.route, context.settings.dialect) {
        return Ok(home::page(wanted, context, request));
    }
    let body = match (found.route.verb, found.route.body) {
        (Verb::Get | Verb::Delete, None) => Value::Null,
        _ => body::parse(&request.headers, &body.await?)?,
    };
    respond(context, request, path, found, body).await
}

/// The answer to a request whose body has been read.
async fn respond(
    context: &ApiContext,
    request: &Request,
    path: &str,
    found: &Match<'_>,
    body: Value,
) -> Result<Reply, ApiError> {
    let route = found.route;
    let head = context.head();
    let key = route.is_of_chain.then(|| memo_key(context.settings.dialect, path, &request.query));
    if let Some(reply) = key.as_ref().and_then(|key| head.memo().get(key)) {
        return Ok(reply);
    }
    let arguments = check_arguments(context, found)?;
    let query = query::parse(&request.query);
    let parameters = check_query(context, route, &query)?;
    let parameters = match route.body {
        None => parameters,
        Some(tables) => parameters.and(check_body(context, route, tables, &body)?),
    };
    let modified = route.is_dated.then(|| head.modified());
    let call =
        Call { context, request, head: head.clone(), route, routes: ROUTES, path, arguments, query, parameters, body };
    let reply = match route.handle {
        Handle::Now(handle) => panic::catch_unwind(AssertUnwindSafe(|| handle(&call))).unwrap_or_else(unread)?,
        Handle::Later(handle) => reading(handle(call)).await?,
    };
    if !head.chain().still_stands() {
        return Err(ApiError::Internal("the testnet went back below what had settled; ask again".to_owned()));
    }
    let reply = Reply { modified, ..reply };
    Ok(match key {
        Some(key) => head.memo().keep(&key, reply),
        None => reply,
    })
}

/// Awaits an answer. Each poll may read settled blocks, and one that cannot be read becomes an error.
async fn reading(mut answer: Answer<'_>) -> Result<Reply, ApiError> {
    poll_fn(|context| {
        let poll = panic::catch_unwind(AssertUnwindSafe(|| answer.as_mut().poll(context)));
        poll.unwrap_or_else(|unwound| Poll::Ready(unread(unwound)))
    })
    .await
}

/// Turns the panic of a settled block that cannot be read into an error. Resumes every other panic.
fn unread(unwound: Box<dyn Any + Send>) -> Result<Reply, ApiError> {
    match unwound.downcast::<SettledError>() {
        Ok(why) => Err(ApiError::Internal(why.to_string())),
        Err(panic) => panic::resume_unwind(panic),
    }
}

fn check_arguments(context: &ApiContext, found: &Match<'_>) -> Result<Parameters, ApiError> {
    if found.arguments.is_empty() {
        return Ok(Parameters::default());
    }
    let named = found.arguments.iter().map(|(name, text)| ((*name).to_owned(), percent_decode(text).into()));
    Parameters::check(&[found.route.arguments], &named.collect(), context.settings.dialect)
}

fn check_query(context: &ApiContext, route: &Route, query: &Map<String, Value>) -> Result<Parameters, ApiError> {
    let dialect = context.settings.dialect;
    match route.query {
        Query::Ignored => Ok(Parameters::default()),
        Query::Known(tables) => {
            let is_known = |name: &str| {
                let mut known = tables.iter().copied().flatten();
                known.any(|parameter| parameter.name == name && parameter.spoken.holds(dialect))
            };
            let known =
                query.iter().filter(|(name, _)| is_known(name)).map(|(name, value)| (name.clone(), value.clone()));
            Parameters::check(tables, &known.collect(), dialect)
        }
        Query::Only(tables) => Parameters::check(tables, &query::gather(query, tables, dialect), dialect),
    }
}

/// Checks the members of a body. A search by GET and an operator's route need no body.
fn check_body(
    context: &ApiContext,
    route: &Route,
    tables: &[&[Parameter]],
    body: &Value,
) -> Result<Parameters, ApiError> {
    let read = body.as_str().and_then(|text| serde_json::from_str(text).ok()).filter(Value::is_object);
    // As in the reference, a JSON string that contains an object counts as the object.
    match (read.as_ref().unwrap_or(body), route.verb) {
        (Value::Object(values), _) => Parameters::check(tables, values, context.settings.dialect),
        (Value::Null, Verb::Get) => Ok(Parameters::default()),
        (Value::Null, _) if route.access == Access::Loopback => {
            Parameters::check(tables, &Map::new(), context.settings.dialect)
        }
        _ => Err(ApiError::unprocessable("\"value\" must be an object")),
    }
}

/// The answer to a CORS preflight. Its headers, added later, allow the request. Its body is the reference's.
fn preflight() -> Reply {
    Reply::json(ApiError::NO_ROUTE.body())
}

/// 301 to the path without its trailing slashes, if a GET of that path succeeds.
async fn moved(context: &ApiContext, request: &Request, path: &str) -> Option<Reply> {
    let stripped = path.trim_end_matches('/');
    let found = routes::find(Verb::Get, stripped, context.settings.dialect).filter(|_| stripped.len() < path.len())?;
    context.gate().check(request, found.route.access).ok()?;
    respond(context, request, stripped, &found, Value::Null).await.ok()?;
    let host = request.host().unwrap_or("localhost");
    let query = if request.query.is_empty() { String::new() } else { format!("?{}", request.query) };
    Some(Reply::moved(format!("http://{host}{stripped}{query}")))
}

/// `/api/v2/blocks` is `/api/blocks`.
fn without_version(path: &str) -> Cow<'_, str> {
    match path.match_indices("/v2").find(|(at, _)| matches!(path.as_bytes().get(at + 3), None | Some(b'/'))) {
        Some((at, version)) => Cow::Owned(format!("{}{}", &path[..at], &path[at + version.len()..])),
        None => Cow::Borrowed(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_dropped_once_and_only_as_a_segment() {
        for (path, without) in [
            ("/api/v2/blocks", "/api/blocks"),
            ("/api/v2", "/api"),
            ("/api/v2/v2/blocks", "/api/v2/blocks"),
            ("/api/wallets/v2x", "/api/wallets/v2x"),
        ] {
            assert_eq!(without_version(path), without);
        }
    }
}
