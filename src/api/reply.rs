//! An answer before it is HTTP, and the headers every answer has. Source: api.md 1.4.

use super::{ApiError, Request, range};
use warp::http::{HeaderValue, Method, Response, StatusCode, header};

/// Bodies from this size on would be compressed. Source: api.md 1.4.
const COMPRESSED_FROM: usize = 1_024;

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    pub status: StatusCode,
    pub content: Content,
    pub body: Vec<u8>,
    /// Where a 301 leads.
    pub location: Option<String>,
}

/// What a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    Json,
    Html,
}

impl Content {
    fn header(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Json => "application/json; charset=utf-8",
            Self::Html => "text/html; charset=utf-8",
        })
    }
}

impl Reply {
    /// 200 with a JSON body.
    pub fn json(body: Vec<u8>) -> Self {
        Self { status: StatusCode::OK, content: Content::Json, body, location: None }
    }

    /// An error with its body.
    pub fn error(error: &ApiError) -> Self {
        if let ApiError::Internal(cause) = error {
            tracing::error!(cause, "a request failed");
        }
        Self { status: error.status(), content: Content::Json, body: error.body(), location: None }
    }

    /// 301.
    pub fn moved(location: String) -> Self {
        let (status, content) = (StatusCode::MOVED_PERMANENTLY, Content::Html);
        Self { status, content, body: Vec::new(), location: Some(location) }
    }

    /// As HTTP, with the headers that the request calls for.
    pub fn into_response(self, request: &Request) -> Response<Vec<u8>> {
        let is_ok = self.status == StatusCode::OK;
        let is_long = is_ok && self.body.len() >= COMPRESSED_FROM;
        let mut response = Response::new(self.body);
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        // A text from outside that makes no header value was refused as a header before.
        if let Some(location) = self.location.and_then(|location| HeaderValue::try_from(location).ok()) {
            headers.insert(header::LOCATION, location);
        }
        headers.insert(header::CONTENT_TYPE, self.content.header());
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        if is_long {
            headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        }
        if is_ok && request.method == Method::GET {
            headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        }
        allow_origin(request, headers);
        if is_ok && request.method == Method::GET { cut(request, response) } else { response }
    }
}

/// 206 with the part of the body that is asked for, if there is one.
fn cut(request: &Request, mut response: Response<Vec<u8>>) -> Response<Vec<u8>> {
    let length = response.body().len();
    let asked = request.headers.get(header::RANGE).and_then(|asked| range::parse(asked.to_str().ok()?, length));
    let Some(range) = asked else { return response };
    let shown = format!("bytes {}-{}/{length}", range.start(), range.end());
    let part = response.body()[range].to_vec();
    *response.body_mut() = part;
    *response.status_mut() = StatusCode::PARTIAL_CONTENT;
    response.headers_mut().extend(HeaderValue::try_from(shown).map(|shown| (header::CONTENT_RANGE, shown)));
    response
}

/// CORS: whoever asks may read.
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
