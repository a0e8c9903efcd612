//! The body of a request: how much of it is read, and what it may be. Source: api.md 1.2, 1.4.

use super::{error::ApiError, limits::OnWay};
use crate::api::table::query;
use serde_json::{Map, Value};
use std::{borrow::Cow, pin::pin, time::Duration};
use warp::{
    Buf, Stream,
    http::{HeaderMap, header},
};

/// The largest length of a body [bytes].
const LENGTH_MAX: usize = 1_048_576;

/// Reads a body within the time `patience`.
///
/// # Errors
/// It is too long, broke off or took too long, or too much is being received for all clients together.
pub(crate) async fn read_within<B: Buf>(
    patience: Duration,
    headers: &HeaderMap,
    body: impl Stream<Item = Result<B, warp::Error>>,
    received: OnWay,
) -> Result<Vec<u8>, ApiError> {
    let read = tokio::time::timeout(patience, read(headers, body, received)).await;
    read.unwrap_or(Err(ApiError::Slow(patience.as_secs())))
}

async fn read<B: Buf>(
    headers: &HeaderMap,
    body: impl Stream<Item = Result<B, warp::Error>>,
    mut received: OnWay,
) -> Result<Vec<u8>, ApiError> {
    let too_long = || {
        let message = format!("Payload content length greater than maximum allowed: {LENGTH_MAX}");
        ApiError::Unprocessable(message)
    };
    let announced = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    if announced.is_some_and(|length: usize| length > LENGTH_MAX) {
        return Err(too_long());
    }
    let mut body = pin!(body);
    // Memory is allocated for received bytes only, because announced bytes may never arrive.
    let mut bytes = Vec::new();
    while let Some(part) = std::future::poll_fn(|context| body.as_mut().poll_next(context)).await {
        let mut part = part.map_err(|_| invalid_json())?;
        if bytes.len() + part.remaining() > LENGTH_MAX {
            return Err(too_long());
        }
        received.add(part.remaining())?;
        while part.has_remaining() {
            bytes.extend_from_slice(part.chunk());
            part.advance(part.chunk().len());
        }
    }
    Ok(bytes)
}

/// The value of a body: JSON unless it says otherwise, a form as an object of texts; null if it is empty.
///
/// # Errors
/// The body is not valid JSON, or its content type is not supported.
pub(crate) fn parse(headers: &HeaderMap, bytes: &[u8]) -> Result<Value, ApiError> {
    let kind = headers.get(header::CONTENT_TYPE).map_or("application/json", |kind| kind.to_str().unwrap_or_default());
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_json = kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json"));
    match kind.as_str() {
        _ if is_json && bytes.is_empty() => Ok(Value::Null),
        _ if is_json => serde_json::from_slice(&without_lone_surrogates(bytes)).map_err(|_| invalid_json()),
        "application/x-www-form-urlencoded" => {
            Ok(Value::Object(query::parse(&String::from_utf8_lossy(bytes)) as Map<String, Value>))
        }
        text if text.starts_with("text/") => Ok(Value::String(String::from_utf8_lossy(bytes).into_owned())),
        _ => Err(ApiError::unprocessable("Unsupported Media Type")),
    }
}

/// Replaces each lone surrogate among the `\u` escapes of a JSON text by U+FFFD. A memo that was cut inside an emoji contains one.
///
/// JavaScript keeps a lone surrogate in its strings and writes it as such an escape. Its bytes are those of U+FFFD. Source:
/// protocol.md 7 item 25.
fn without_lone_surrogates(json: &[u8]) -> Cow<'_, [u8]> {
    let mut json = Cow::Borrowed(json);
    let mut at = 0;
    while let Some(found) = json[at..].iter().position(|byte| *byte == b'\\') {
        at += found;
        at += match (unit(&json[at..]), json.get(at + 6..).and_then(unit)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => {
                json.to_mut()[at + 2..at + 6].copy_from_slice(b"fffd");
                6
            }
            (Some(_), _) => 6,
            (None, _) => 2,
        };
        if at >= json.len() {
            break;
        }
    }
    json
}

/// The UTF-16 code unit of the escape `\uXXXX` at the beginning of a text.
fn unit(json: &[u8]) -> Option<u16> {
    let digits = json.strip_prefix(b"\\u")?.get(..4)?;
    let is_hex = digits.iter().all(u8::is_ascii_hexdigit);
    is_hex.then(|| u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok())?
}

fn invalid_json() -> ApiError {
    ApiError::unprocessable("Invalid request payload JSON format")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parsed(kind: Option<&str>, body: &str) -> Result<Value, String> {
        let kind = kind.map(|kind| (header::CONTENT_TYPE, kind.parse().unwrap()));
        let headers = kind.into_iter().collect();
        parse(&headers, body.as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn bodies_are_what_they_say_they_are() {
        assert_eq!(parsed(None, r#"{"a":1}"#), Ok(json!({"a": 1})));
        assert_eq!(parsed(Some("application/json; charset=utf-8"), ""), Ok(Value::Null));
        assert_eq!(parsed(Some("application/x-www-form-urlencoded"), "a=1+2"), Ok(json!({"a": "1 2"})));
        assert_eq!(parsed(Some("text/plain"), "hello"), Ok(json!("hello")));
        assert_eq!(parsed(Some("application/xml"), "<a/>"), Err("Unsupported Media Type".to_owned()));
        for (json, text) in [
            (r#""a\ud83d""#, "a\u{fffd}"),
            (r#""\uD83D\ude00\ude00\ud83d\ud83d\ude00""#, "\u{1f600}\u{fffd}\u{fffd}\u{1f600}"),
            (r#""\\ud83d\\\ud83d\n""#, "\\ud83d\\\u{fffd}\n"),
            (r#""\ud83d\\udc00""#, "\u{fffd}\\udc00"),
        ] {
            assert_eq!(parsed(None, json), Ok(json!(text)), "{json}");
        }
        let invalid = Err("Invalid request payload JSON format".to_owned());
        for json in [r#""\ud83""#, r#""\ud83"#, r#""\u+d83""#, "\\ud83d", "\"\\"] {
            assert_eq!(parsed(None, json), invalid, "{json}");
        }
        assert_eq!(parsed(None, "{"), invalid);
        assert_eq!(parsed(None, &"[".repeat(100_000)), invalid);
    }
}
