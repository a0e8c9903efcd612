//! The HTTP server: a socket, and one warp filter that hands every request to [`answer`](super::answer).
#![expect(clippy::disallowed_methods, reason = "clients live in real time, and so does the patience with them")]

use super::{
    context::ApiContext,
    dispatch,
    http::{
        body,
        error::ApiError,
        limits::{AtWork, Connections, Limits, OnWay, OpenConnection, UnderWay},
        proxy::Proxies,
        reply::{Reply, Tampering},
        request::{Ports, Request},
    },
    lab::{
        cut::CutBody,
        stream::{EventBody, Subscription},
    },
};
use http_body_util::{Either, Full};
use hyper::{
    Version,
    body::{Body, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use socket2::SockRef;
use std::{
    io,
    net::SocketAddr,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpListener,
    sync::watch,
    task::JoinSet,
};
use tokio_io_timeout::TimeoutStream;
use warp::{
    Filter,
    http::{HeaderMap, HeaderValue, Method, Response, header},
    path::FullPath,
};

/// The time that open requests have after the server is asked to stop.
const GRACE: Duration = Duration::from_secs(1);
/// The same for an open stream of events.
const STREAM_GRACE: Duration = Duration::from_millis(100);
/// The time between two lines of the log about connections that were closed or refused.
const TOLD_EVERY: Duration = Duration::from_secs(10);
/// The largest size of a request's head [bytes]. A connection never buffers twice as much.
const HEAD_MAX: usize = 32 * 1_024;
/// The largest number of connections that wait to be accepted.
const BACKLOG: i32 = 4_096;
/// The pause after the system refused to accept a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// A bound port. Connections wait until a server accepts them.
pub struct Listener {
    socket: std::net::TcpListener,
    address: SocketAddr,
}

impl Listener {
    /// The address, with its true port.
    pub fn local_address(&self) -> SocketAddr {
        self.address
    }
}

/// A server with a bound port.
pub struct Server {
    listener: Listener,
    context: ApiContext,
}

/// The error of an address that cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {}", reason(source))]
pub struct BindError {
    pub address: SocketAddr,
    pub source: io::Error,
}

fn reason(source: &io::Error) -> String {
    match source.kind() {
        io::ErrorKind::AddrInUse => "the port is in use; choose another one or stop the other process".to_owned(),
        io::ErrorKind::PermissionDenied => "ports below 1024 need special rights; choose another one".to_owned(),
        io::ErrorKind::AddrNotAvailable => "this machine has no such address".to_owned(),
        _ => source.to_string(),
    }
}

impl Server {
    /// Binds a port, before there is anything to serve. Port 0 chooses a free one.
    ///
    /// # Errors
    /// The address cannot be listened on.
    pub fn listen(address: SocketAddr) -> Result<Listener, BindError> {
        let error = |source| BindError { address, source };
        let socket = std::net::TcpListener::bind(address).map_err(error)?;
        socket.set_nonblocking(true).map_err(error)?;
        // Connections inherit this option. Without it the last part of an answer may wait for the client's delayed
        // acknowledgement.
        SockRef::from(&socket).set_tcp_nodelay(true).map_err(error)?;
        // More than the usual 128, because a client without room tries again only after a second.
        SockRef::from(&socket).listen(BACKLOG).map_err(error)?;
        let address = socket.local_addr().map_err(error)?;
        Ok(Listener { socket, address })
    }

    /// A server on a port. The node reports this port as that of its API.
    pub fn new(listener: Listener, context: ApiContext) -> Self {
        let ports = Ports { api: listener.address.port(), ..context.ports };
        let (host, limits) = (listener.address.ip(), context.settings.limits);
        let (receiving, sending) = (UnderWay::new(limits.receiving), UnderWay::new(limits.sending));
        let connections = Connections::new(limits.connections);
        Self { listener, context: ApiContext { ports, host, receiving, sending, connections, ..context } }
    }

    /// [`Server::listen`] and [`Server::new`] in one.
    ///
    /// # Errors
    /// The address cannot be listened on.
    pub fn bind(address: SocketAddr, context: ApiContext) -> Result<Self, BindError> {
        Self::listen(address).map(|listener| Self::new(listener, context))
    }

    /// The address it listens on, with its true port.
    pub fn local_address(&self) -> SocketAddr {
        self.listener.address
    }

    /// Answers requests until `shutdown` is ready, then finishes those in hand. Runs on any tokio runtime with IO.
    ///
    /// # Errors
    /// The runtime cannot register the socket.
    pub async fn serve(self, shutdown: impl Future<Output = ()> + Send + 'static) -> io::Result<()> {
        let listener = TcpListener::from_std(self.listener.socket)?;
        let connections = self.context.connections.clone();
        let context = Arc::new(self.context);
        let (stopping, stopped) = watch::channel(false);
        let mut open = JoinSet::new();
        let mut told = tokio::time::interval(TOLD_EVERY);
        let mut shutdown = pin!(shutdown);
        loop {
            tokio::select! {
                () = &mut shutdown => break,
                Some(_ended) = open.join_next() => {}
                _moment = told.tick() => {
                    if let Some(line) = connections.news() {
                        (context.report)(&line);
                    }
                }
                accepted = listener.accept() => match accepted {
                    Ok((stream, remote)) => {
                        if let Some(admitted) = connections.admit(remote.ip().to_canonical()) {
                            open.spawn(converse(context.clone(), stream, remote, admitted, stopped.clone()));
                        }
                    }
                    // The process has no free file descriptor, or the client left before. Another connection may succeed.
                    Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
                },
            }
        }
        // There is no receiver if no connection is open.
        let _all_closed = stopping.send(true);
        let all_over = async { while open.join_next().await.is_some() {} };
        // The server closes the connections that are still open.
        let _in_time = tokio::time::timeout(GRACE, all_over).await;
        Ok(())
    }
}

/// Answers the requests of one connection, until either side closes it.
async fn converse(
    context: Arc<ApiContext>,
    stream: impl AsyncRead + AsyncWrite + Unpin,
    remote: SocketAddr,
    admitted: OpenConnection,
    mut stopped: watch::Receiver<bool>,
) {
    let Limits { idle, write, .. } = context.settings.limits;
    let proxies = context.settings.proxies.as_ref();
    let answering = TowerToHyperService::new(warp::service(filter(context.clone())));
    let (stopping, has_stream) = (stopped.clone(), AtomicBool::new(false));
    let service = service_fn(|request: hyper::Request<Incoming>| {
        let (work, stopping, has_stream) = (admitted.work(), &stopping, &has_stream);
        if request.body().is_end_stream() {
            work.begin();
        }
        let answered = checked(request, proxies, Remote(remote, work.clone()))
            .map(|request| hyper::service::Service::call(&answering, request));
        // An idle connection reserves memory for this future. Boxed, it is a pointer.
        Box::pin(async move {
            let mut response = match answered {
                Ok(answer) => answer.await.unwrap_or_else(|never| match never {}),
                Err(response) => return Ok(response.map(|body| Either::Left(Either::Right(Full::new(body))))),
            };
            let extensions = response.extensions_mut();
            let (wanted, tampering) = (extensions.remove::<Subscription>(), extensions.remove::<Tampering>());
            Ok(match (wanted, tampering) {
                // A stream is at work until it ends; any other answer is ready.
                (Some(wanted), _) => {
                    has_stream.store(true, Ordering::Relaxed);
                    response.map(|_| Either::Right(Either::Left(EventBody::new(wanted, stopping.clone(), work))))
                }
                (None, Some(Tampering::Refused)) => return Err(io::Error::from(io::ErrorKind::ConnectionReset)),
                (None, Some(Tampering::Cut)) => {
                    CutBody::of(response).await.map(|body| Either::Right(Either::Right(body)))
                }
                (None, None) => response.map(|body| Either::Left(Either::Left(body))),
            })
        })
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(idle).max_buf_size(HEAD_MAX);
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(write));
    let mut connection = pin!(http.serve_connection(TokioIo::new(Box::pin(stream)), service));
    let stopped = async { stopped.wait_for(|stopped| *stopped).await.is_ok() };
    tokio::select! {
        // The result does not matter: the client has left.
        _left = connection.as_mut() => return,
        () = admitted.closed() => return,
        _stopped = stopped => {}
    }
    connection.as_mut().graceful_shutdown();
    // Streams end at once. A client that has not read the last part within this time has stopped reading.
    let patience = if has_stream.load(Ordering::Relaxed) { STREAM_GRACE } else { GRACE };
    let _left = tokio::time::timeout(patience, connection).await;
}

/// Returns the answer to a connection on which these bytes arrive, and then no more. Runs on any tokio runtime with time.
pub async fn answer_bytes(context: ApiContext, bytes: &[u8]) -> Vec<u8> {
    let remote = SocketAddr::from((context.host, 1));
    let connections = Connections::new(1);
    let Some(admitted) = connections.admit(remote.ip()) else { return Vec::new() };
    let (stopping, stopped) = watch::channel(false);
    let (client, server) = tokio::io::duplex(1 << 16);
    let (mut answers, mut requests) = tokio::io::split(client);
    let ask = async {
        // The server may close the connection before it has read all bytes.
        let _hung_up = requests.write_all(bytes).await;
        let _hung_up = requests.shutdown().await;
        let mut answered = Vec::new();
        let _hung_up = answers.read_to_end(&mut answered).await;
        answered
    };
    let ((), answered) = tokio::join!(converse(Arc::new(context), server, remote, admitted, stopped), ask);
    drop(stopping);
    answered
}

/// Checks a request against HTTP and adds the client's address. Returns the answer to send if the request is invalid.
fn checked(
    mut request: hyper::Request<Incoming>,
    proxies: Option<&Proxies>,
    Remote(peer, work): Remote,
) -> Result<hyper::Request<Incoming>, Response<bytes::Bytes>> {
    let refused = |why: &ApiError| {
        let asked = Request { remote: Some(peer), ..Request::new(Method::GET, "/") };
        Reply::error(why).into_response(&asked)
    };
    let wrong = |message: &str| refused(&ApiError::BadRequest(message.to_owned()));
    if request.method() == Method::CONNECT || request.uri().path_and_query().is_none() {
        return Err(wrong("this server is no proxy"));
    }
    match request.headers().get_all(header::HOST).iter().count() {
        1 => {}
        0 if request.version() == Version::HTTP_10 => {}
        0 => return Err(wrong("the header Host is missing")),
        _ => return Err(wrong("the header Host is there more than once")),
    }
    // An absolute address in the request has precedence over `Host`.
    if let Some(authority) = request.uri().authority().map(ToString::to_string)
        && let Ok(host) = HeaderValue::try_from(authority)
    {
        request.headers_mut().insert(header::HOST, host);
    }
    let client = proxies.map_or(Ok(peer), |proxies| proxies.client(peer, request.headers()));
    let client = client.map_err(|why| refused(&why))?;
    request.extensions_mut().insert(Remote(client, work));
    Ok(request)
}

/// The address of the client, and the work on the answer.
#[derive(Clone)]
struct Remote(SocketAddr, Arc<AtWork>);

/// The warp filter that answers every request.
fn filter(
    context: Arc<ApiContext>,
) -> impl Filter<Extract = (Response<bytes::Bytes>,), Error = warp::Rejection> + Clone {
    let query = warp::query::raw().or(warp::any().map(String::new)).unify();
    warp::method()
        .and(warp::path::full())
        .and(query)
        .and(warp::header::headers_cloned())
        .and(warp::ext::get::<Remote>())
        .and(warp::body::stream())
        .then(move |method: Method, path: FullPath, query: String, headers: HeaderMap, remote: Remote, stream| {
            let context = context.clone();
            async move {
                let Remote(remote, work) = remote;
                let client = remote.ip().to_canonical();
                let received = context.receiving.begin(client);
                let remote = Some(remote);
                let request = Request { method, path: path.as_str().to_owned(), query, headers, remote };
                let patience = context.settings.limits.body;
                let body = async {
                    let read = body::read_within(patience, &request.headers, stream, received).await;
                    work.begin();
                    read
                };
                let reply = dispatch::answer(&context, &request, body).await;
                let (tampering, is_counted) = (reply.tampering, reply.is_for_all_pages && !reply.is_of_site);
                let mut response = reply.into_response(&request);
                let sent = context.sending.begin(client);
                if is_counted && !InFlightBody::count(sent, &mut response) {
                    response = Reply::error(&ApiError::Busy).into_response(&request);
                }
                if let Some(tampering) = tampering {
                    response.extensions_mut().insert(tampering);
                }
                response
            }
        })
}

/// The body of an answer, which counts as on its way until its last part has left for the client.
struct InFlightBody {
    body: bytes::Bytes,
    _on_way: OnWay,
}

impl AsRef<[u8]> for InFlightBody {
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
}

impl InFlightBody {
    /// Counts the body of an answer. Returns false if the limit does not allow it to be sent.
    fn count(mut on_way: OnWay, response: &mut Response<bytes::Bytes>) -> bool {
        let body = std::mem::take(response.body_mut());
        let is_free = on_way.add(body.len()).is_ok();
        if is_free {
            *response.body_mut() = bytes::Bytes::from_owner(Self { body, _on_way: on_way });
        }
        is_free
    }
}
