//! Posts of a body to a target: over HTTP/1.1, to allowed addresses only, without following redirects.

use super::targets::Targets;
use crate::actors::webhook::{Delivery, Sequence};
use fluent_uri::{Uri, component::Host};
use http_body_util::{BodyExt, Full, Limited};
use hyper::{
    Request,
    body::Bytes,
    client::conn::http1::{self, SendRequest},
    header,
};
use hyper_util::rt::TokioIo;
use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};
use tokio::net::{TcpStream, lookup_host};

/// The largest part of a receiver's answer that is read [bytes].
const ANSWER_MAX: usize = 65_536;
/// The header of the Standard Webhooks specification by which a receiver recognises a repeated post.
const ID_HEADER: &str = "webhook-id";
/// The position of the post among all posts of the node.
const SEQUENCE_HEADER: &str = "webhook-sequence";
const USER_AGENT: &str = concat!("dposlab/", env!("CARGO_PKG_VERSION"));

/// The reasons why a post failed.
#[derive(Debug, thiserror::Error)]
pub enum PostError {
    #[error("only http targets are posted to")]
    NotHttp,
    #[error("{host} cannot be found: {source}")]
    Unknown { host: String, source: io::Error },
    #[error("{host} is {address}, and webhooks may go to these only: {targets}")]
    Forbidden { host: String, address: IpAddr, targets: String },
    #[error("no connection to {address}: {source}")]
    Unreachable { address: SocketAddr, source: io::Error },
    #[error("the connection broke: {0}")]
    Broken(#[from] hyper::Error),
    #[error("no answer within {0} ms")]
    TimedOut(u128),
    #[error("the receiver answered {0}")]
    Refused(u16),
}

/// Sends each post over a new connection. If a receiver closed a reused connection meanwhile, it would be unknown whether the
/// body arrived.
pub(crate) struct Poster {
    targets: Arc<Targets>,
    timeout: Duration,
}

/// Host and port of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Authority {
    host: String,
    port: u16,
}

impl Poster {
    /// A poster to allowed addresses, each answer within `timeout`.
    pub fn new(targets: Arc<Targets>, timeout: Duration) -> Self {
        Self { targets, timeout }
    }

    /// Posts a body with the secret that authenticates the sender, the post's position among all posts of the node, and an id
    /// that a repeated post has again.
    ///
    /// # Errors
    /// The post did not succeed in time, or the answer was not 2xx.
    pub async fn post(&self, delivery: &Delivery, id: &str) -> Result<(), PostError> {
        match tokio::time::timeout(self.timeout, self.post_once(delivery, id)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(PostError::TimedOut(self.timeout.as_millis())),
        }
    }

    async fn post_once(&self, Delivery { hook, head, body }: &Delivery, id: &str) -> Result<(), PostError> {
        let (place, request) = prepare(&hook.target, &hook.secret, id, head.sequence, body)?;
        let response = self.connect(&place).await?.send_request(request).await?;
        let status = response.status();
        // The receiver's body is of no interest, but some receivers break off if it is not read.
        let _too_long_or_broken = Limited::new(response.into_body(), ANSWER_MAX).collect().await;
        if status.is_success() { Ok(()) } else { Err(PostError::Refused(status.as_u16())) }
    }

    /// Connects to the first address of a host that is allowed and answers. The checked address is the one that it connects to.
    async fn connect(&self, place: &Authority) -> Result<SendRequest<Full<Bytes>>, PostError> {
        let Authority { host, port } = place;
        let name = host.trim_start_matches('[').trim_end_matches(']');
        let unknown = |source| PostError::Unknown { host: host.clone(), source };
        let addresses: Vec<SocketAddr> = lookup_host((name, *port)).await.map_err(unknown)?.collect();
        let mut failure = unknown(io::Error::other("it has no address"));
        for address in addresses {
            if !self.targets.allow(address.ip()) {
                let (host, targets) = (host.clone(), self.targets.to_string());
                failure = PostError::Forbidden { host, address: address.ip(), targets };
                continue;
            }
            match TcpStream::connect(address).await {
                Ok(stream) => return handshake(stream).await,
                Err(source) => failure = PostError::Unreachable { address, source },
            }
        }
        Err(failure)
    }
}

async fn handshake(stream: TcpStream) -> Result<SendRequest<Full<Bytes>>, PostError> {
    // A failure only costs speed.
    let _without = stream.set_nodelay(true);
    let (sender, connection) = http1::Builder::new().max_buf_size(ANSWER_MAX).handshake(TokioIo::new(stream)).await?;
    tokio::spawn(async move {
        // The sender reports an error of the connection.
        let _ended = connection.await;
    });
    Ok(sender)
}

/// Makes the request, and the host and port that it goes to.
fn prepare(
    target: &str,
    secret: &str,
    id: &str,
    sequence: Option<Sequence>,
    body: &Arc<[u8]>,
) -> Result<(Authority, Request<Full<Bytes>>), PostError> {
    let uri = Uri::parse(target).map_err(|_| PostError::NotHttp)?;
    let is_http = uri.scheme().as_str().eq_ignore_ascii_case("http");
    let authority = uri.authority().filter(|_| is_http).ok_or(PostError::NotHttp)?;
    if authority.host().is_empty() || matches!(authority.host_parsed(), Host::IpvFuture { .. }) {
        return Err(PostError::NotHttp);
    }
    let port = authority.port_to_u16().map_err(|_| PostError::NotHttp)?;
    let place = Authority { host: authority.host().to_owned(), port: port.unwrap_or(80) };
    let named = port.map_or_else(|| place.host.clone(), |port| format!("{}:{port}", place.host));
    let path = if uri.path().as_str().is_empty() { "/" } else { uri.path().as_str() };
    let query = uri.query().map_or_else(String::new, |query| format!("?{query}"));
    let mut request = Request::post(format!("{path}{query}"));
    if let Some(sequence) = sequence {
        request = request.header(SEQUENCE_HEADER, sequence.to_string());
    }
    let request = request
        .header(header::HOST, named)
        .header(header::AUTHORIZATION, secret)
        .header(ID_HEADER, id)
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::USER_AGENT, USER_AGENT)
        .header(header::CONNECTION, "close")
        .body(Full::new(Bytes::from_owner(body.clone())))
        .map_err(|_| PostError::NotHttp)?;
    Ok((place, request))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_become_requests() {
        let body: Arc<[u8]> = Arc::from(&b"{}"[..]);
        let shown = |target: &str| {
            let (place, request) = prepare(target, "secret", "id", None, &body).ok()?;
            let host = request.headers()[header::HOST].to_str().unwrap().to_owned();
            Some(format!("{} {} {host} {}", place.host, place.port, request.uri()))
        };
        for (target, wanted) in [
            ("http://example.com", "example.com 80 example.com /"),
            ("HTTP://example.com:8080/a/b?c=d&e#f", "example.com 8080 example.com:8080 /a/b?c=d&e"),
            ("http://[::1]:4/x", "[::1] 4 [::1]:4 /x"),
            ("http://user:word@10.0.0.1/", "10.0.0.1 80 10.0.0.1 /"),
        ] {
            assert_eq!(shown(target).as_deref(), Some(wanted));
        }
        for wrong in ["https://x/", "ftp://x/", "mailto:a@b", "http:/x", "http://x:99999/", "http:///x", "nonsense"] {
            assert_eq!(shown(wrong), None, "{wrong}");
        }
    }
}
