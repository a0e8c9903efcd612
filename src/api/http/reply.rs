//! An answer before it is HTTP, and the headers every answer has. Source: api.md 1.4.

use super::{access::Quota, error::ApiError, range, request::Request};
use crate::api::lab::stream::Subscription;
use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use std::{
    io::Write,
    sync::{Arc, OnceLock},
};
use warp::http::{HeaderValue, Method, Response, StatusCode, header};

/// Bodies from this size on are compressed. Source: api.md 1.4.
const COMPRESSED_FROM: usize = 1_024;

/// An answer.
#[derive(Clone, Debug)]
pub struct Reply {
    pub status: StatusCode,
    pub content: Content,
    pub body: Bytes,
    /// The body in gzip, computed for the first client that accepts gzip. Only shared answers have it.
    pub(in crate::api) packed: Option<Arc<OnceLock<Bytes>>>,
    /// The address to which a 301 leads.
    pub location: Option<String>,
    /// The time of the answer's last change [Unix s], on routes that report it.
    pub modified: Option<i64>,
    /// The requests that the client has left, if they are limited.
    pub quota: Option<Quota>,
    /// True if pages of any origin may read it.
    pub(in crate::api) is_for_all_pages: bool,
    /// True for a file of a page, whose body is in memory anyway.
    pub(in crate::api) is_of_site: bool,
    /// The stream in place of the body, which is empty. It goes on until either side ends it.
    pub(in crate::api) stream: Option<Subscription>,
    /// The damage to the answer in transit.
    pub(in crate::api) tampering: Option<Tampering>,
    /// The `Content-Security-Policy` of a page.
    pub(in crate::api) policy: Option<&'static str>,
}

/// The damage to an answer in transit. The answer itself does not show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tampering {
    /// It is not sent, and the connection closed.
    Refused,
    /// Its body ends before it is as long as its head says.
    Cut,
}

/// The type of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    Json,
    Html,
    Text,
    Style,
    Script,
    Image,
    /// Server-sent events.
    Events,
    /// Figures as Prometheus reads them.
    Metrics,
    /// Any bytes.
    Bytes,
    /// No body at all.
    Nothing,
}

impl Content {
    fn header(self) -> Option<HeaderValue> {
        Some(HeaderValue::from_static(match self {
            Self::Json => "application/json; charset=utf-8",
            Self::Html => "text/html; charset=utf-8",
            Self::Text => "text/plain; charset=utf-8",
            Self::Style => "text/css; charset=utf-8",
            Self::Script => "text/javascript; charset=utf-8",
            Self::Image => "image/png",
            Self::Metrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Events => "text/event-stream; charset=utf-8",
            Self::Bytes => "application/octet-stream",
            Self::Nothing => return None,
        }))
    }
}

impl Reply {
    /// 200 with a JSON body.
    pub fn json(body: impl Into<Bytes>) -> Self {
        Self::new(StatusCode::OK, Content::Json, body.into())
    }

    /// 200 with plain text.
    pub fn text(body: String) -> Self {
        Self::new(StatusCode::OK, Content::Text, body.into())
    }

    /// 200 with a page.
    pub fn page(body: String) -> Self {
        Self::new(StatusCode::OK, Content::Html, body.into())
    }

    /// 200 with figures.
    pub fn metrics(body: String) -> Self {
        Self::new(StatusCode::OK, Content::Metrics, body.into())
    }

    /// An error of this status, whose message is the status's name.
    pub fn bare_error(status: StatusCode) -> Self {
        let reason = status.canonical_reason().unwrap_or("Unknown");
        let body = serde_json::json!({"statusCode": status.as_u16(), "error": reason, "message": reason});
        Self::new(status, Content::Json, body.to_string().into())
    }

    /// 200 with events as they happen.
    pub fn events(subscription: Subscription) -> Self {
        Self { stream: Some(subscription), ..Self::new(StatusCode::OK, Content::Events, Bytes::new()) }
    }

    /// 200 with a file. The extension of its name determines the content type.
    pub fn file(name: &str, body: impl Into<Bytes>) -> Self {
        let content = match name.rsplit_once('.').map(|(_, kind)| kind) {
            Some("html") => Content::Html,
            Some("css") => Content::Style,
            Some("js") => Content::Script,
            Some("png") => Content::Image,
            _ => Content::Bytes,
        };
        Self::new(StatusCode::OK, content, body.into())
    }

    /// 204, without a body.
    pub fn nothing() -> Self {
        Self::new(StatusCode::NO_CONTENT, Content::Nothing, Bytes::new())
    }

    /// The same as 201, for a new resource.
    #[must_use]
    pub fn created(self) -> Self {
        Self { status: StatusCode::CREATED, ..self }
    }

    fn new(status: StatusCode, content: Content, body: Bytes) -> Self {
        Self {
            status,
            content,
            body,
            packed: None,
            location: None,
            modified: None,
            quota: None,
            is_for_all_pages: true,
            is_of_site: false,
            stream: None,
            tampering: None,
            policy: None,
        }
    }

    /// The same as a page that may load and do only what the policy says, and that no other page may frame.
    #[must_use]
    pub fn with_policy(self, policy: &'static str) -> Self {
        Self { policy: Some(policy), ..self }
    }

    /// The same, for a cache: its compressed body is shared.
    #[must_use]
    pub fn shared(self) -> Self {
        Self { packed: Some(Arc::default()), ..self }
    }

    /// The same as a file of a page. All answers with the file share its bytes and its gzip bytes.
    #[must_use]
    pub fn of_site(self, packed: &Arc<OnceLock<Bytes>>) -> Self {
        Self { packed: Some(packed.clone()), is_of_site: true, ..self }
    }

    /// The same, which pages of other origins cannot read.
    #[must_use]
    pub fn for_own_pages(self) -> Self {
        Self { is_for_all_pages: false, ..self }
    }

    /// An error with its body.
    pub fn error(error: &ApiError) -> Self {
        Self::new(error.status(), Content::Json, error.body().into())
    }

    /// 301.
    pub fn moved(location: String) -> Self {
        Self { location: Some(location), ..Self::new(StatusCode::MOVED_PERMANENTLY, Content::Html, Bytes::new()) }
    }

    /// Converts the answer to HTTP, with the headers that the request requires.
    pub fn into_response(self, request: &Request) -> Response<Bytes> {
        let is_ok = self.status == StatusCode::OK;
        let is_long = is_ok && self.body.len() >= COMPRESSED_FROM;
        let packed = self.packed;
        let mut response = Response::new(self.body);
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        // The address is made of the request's `Host`, path and query, which are valid in a header value.
        if let Some(location) = self.location.and_then(|location| HeaderValue::try_from(location).ok()) {
            headers.insert(header::LOCATION, location);
        }
        headers.extend(self.content.header().map(|kind| (header::CONTENT_TYPE, kind)));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        if let Some(policy) = self.policy {
            headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
            headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
            headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        }
        if is_long {
            headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        }
        if is_ok && request.method == Method::GET && self.stream.is_none() {
            headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        }
        if self.is_for_all_pages {
            allow_origin(request, headers);
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(quota) = self.quota {
            if quota.is_exceeded() {
                headers.insert(header::RETRY_AFTER, HeaderValue::from(quota.retry_after_seconds));
            }
            headers.insert("x-ratelimit-userlimit", HeaderValue::from(quota.limit));
            headers.insert("x-ratelimit-userremaining", HeaderValue::from(quota.remaining));
            headers.insert("x-ratelimit-userreset", HeaderValue::from(quota.reset_ms));
        }
        if let Some(stream) = self.stream {
            response.extensions_mut().insert(stream);
            return response;
        }
        let is_read = is_ok && matches!(request.method, Method::GET | Method::HEAD);
        let modified = self.modified.filter(|_| is_ok).and_then(http_date);
        if let Some(modified) = modified {
            let is_known = request.headers.get(header::IF_MODIFIED_SINCE) == Some(&modified);
            headers.insert(header::LAST_MODIFIED, modified);
            if is_known && is_read {
                headers.remove(header::CONTENT_TYPE);
                *response.status_mut() = StatusCode::NOT_MODIFIED;
                *response.body_mut() = Bytes::new();
                return response;
            }
        }
        let response = if is_ok && request.method == Method::GET { cut(request, response) } else { response };
        if is_long && response.status() == StatusCode::OK {
            compress(request, response, packed.as_deref())
        } else {
            response
        }
    }
}

/// The instant as HTTP writes it: `Tue, 21 Mar 2017 13:00:00 GMT`.
fn http_date(unix: i64) -> Option<HeaderValue> {
    let time = jiff::Timestamp::from_second(unix).ok()?;
    HeaderValue::try_from(time.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()).ok()
}

/// The same in gzip, if the client takes that.
fn compress(request: &Request, mut response: Response<Bytes>, packed: Option<&OnceLock<Bytes>>) -> Response<Bytes> {
    let accepted = request.headers.get(header::ACCEPT_ENCODING).and_then(|accepted| accepted.to_str().ok());
    if !accepted.is_some_and(accepts_gzip) {
        return response;
    }
    let body = match packed {
        Some(packed) => packed.get_or_init(|| pack(response.body())).clone(),
        None => pack(response.body()),
    };
    *response.body_mut() = body;
    response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    response
}

fn pack(body: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 4), Compression::fast());
    encoder.write_all(body).and_then(|()| encoder.finish()).expect("a vector takes all").into()
}

/// True if an `Accept-Encoding` accepts gzip. An entry for `gzip` has precedence over `*`, and weight 0 refuses.
fn accepts_gzip(accepted: &str) -> bool {
    let weight = |name: &str| {
        accepted.split(',').find_map(|coding| {
            let mut parts = coding.split(';').map(str::trim);
            let is_named = parts.next().is_some_and(|coding| coding.eq_ignore_ascii_case(name));
            let weight = parts.find_map(|part| part.strip_prefix("q=")).unwrap_or("1");
            is_named.then(|| weight.parse().unwrap_or(0.0_f32))
        })
    };
    weight("gzip").or_else(|| weight("*")).is_some_and(|weight| weight > 0.0)
}

/// 206 with the requested part of the body. The answer stays whole without a valid `Range`.
fn cut(request: &Request, mut response: Response<Bytes>) -> Response<Bytes> {
    let length = response.body().len();
    let asked = request.headers.get(header::RANGE).and_then(|asked| range::parse(asked.to_str().ok()?, length));
    let Some(range) = asked else { return response };
    let shown = format!("bytes {}-{}/{length}", range.start(), range.end());
    let part = response.body().slice(range);
    *response.body_mut() = part;
    *response.status_mut() = StatusCode::PARTIAL_CONTENT;
    response.headers_mut().extend(HeaderValue::try_from(shown).map(|shown| (header::CONTENT_RANGE, shown)));
    response
}

/// Allows the requesting origin to read the answer, with credentials (CORS).
fn allow_origin(request: &Request, headers: &mut warp::http::HeaderMap) {
    let Some(origin) = request.headers.get(header::ORIGIN) else { return };
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    headers.insert(header::ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
    if request.method != Method::OPTIONS {
        return;
    }
    let exposed = HeaderValue::from_static("content-type, content-length, etag");
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    let echoed = [
        (header::ACCESS_CONTROL_REQUEST_HEADERS, header::ACCESS_CONTROL_ALLOW_HEADERS),
        (header::ACCESS_CONTROL_REQUEST_METHOD, header::ACCESS_CONTROL_ALLOW_METHODS),
    ];
    for (asked, allowed) in echoed {
        if let Some(value) = request.headers.get(asked) {
            headers.insert(allowed, value.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_taken_by_name_or_star() {
        for accepted in ["gzip", "deflate, gzip;q=0.5", "*", "br;q=1, *;q=0.1", "GZIP"] {
            assert!(accepts_gzip(accepted), "{accepted}");
        }
        for accepted in ["", "br", "gzip;q=0", "*;q=0", "gzip;q=0, *", "gzip;q=x"] {
            assert!(!accepts_gzip(accepted), "{accepted}");
        }
    }

    #[test]
    fn dates_are_those_of_http() {
        assert_eq!(http_date(784_111_777).unwrap(), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(http_date(i64::MAX), None);
    }
}
