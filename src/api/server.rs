//! The HTTP server: a socket, and one warp filter that hands every request to [`answer`](super::answer).
#![expect(clippy::disallowed_methods, reason = "clients live in real time, and so does the patience with them")]

use super::{ApiContext, Ports, Request, body, dispatch};
use socket2::SockRef;
use std::{io, net::SocketAddr, sync::Arc, time::Duration};
use tokio::net::TcpListener;
use warp::{
    Filter,
    http::{HeaderMap, Method, Response},
    path::FullPath,
};

/// How long open requests may take once the server is told to stop.
const GRACE: Duration = Duration::from_secs(1);

/// A port that is ours. Connections wait until a server serves them.
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

/// A server that has its port.
pub struct Server {
    listener: Listener,
    context: ApiContext,
}

/// Why an address cannot be listened on.
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
    /// Takes a port, before there is anything to serve; 0 takes any free one.
    ///
    /// # Errors
    /// The address cannot be listened on.
    pub fn listen(address: SocketAddr) -> Result<Listener, BindError> {
        let error = |source| BindError { address, source };
        let socket = std::net::TcpListener::bind(address).map_err(error)?;
        socket.set_nonblocking(true).map_err(error)?;
        // Connections inherit it: without, the last part of an answer may wait for the client's delayed acknowledgement.
        SockRef::from(&socket).set_tcp_nodelay(true).map_err(error)?;
        let address = socket.local_addr().map_err(error)?;
        Ok(Listener { socket, address })
    }

    /// A server on a port. The node says that this is its API's port.
    pub fn new(listener: Listener, context: ApiContext) -> Self {
        let ports = Ports { api: listener.address.port(), ..context.ports };
        Self { listener, context: ApiContext { ports, ..context } }
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
    /// The runtime does not take the socket.
    pub async fn serve(self, shutdown: impl Future<Output = ()> + Send + 'static) -> io::Result<()> {
        let listener = TcpListener::from_std(self.listener.socket)?;
        let (stopping, stopped) = tokio::sync::oneshot::channel();
        let shutdown = async move {
            shutdown.await;
            // Nobody listens when serving has ended by itself.
            let _serving_ended = stopping.send(());
        };
        let served = warp::serve(filter(self.context)).incoming(listener).graceful(shutdown).run();
        let patience = async move {
            match stopped.await {
                Ok(()) => tokio::time::sleep(GRACE).await,
                Err(_) => std::future::pending().await,
            }
        };
        tokio::select! {
            () = served => {}
            () = patience => {}
        }
        Ok(())
    }
}

/// Any request, to its answer.
fn filter(context: ApiContext) -> impl Filter<Extract = (Response<bytes::Bytes>,), Error = warp::Rejection> + Clone {
    let context = Arc::new(context);
    let query = warp::query::raw().or(warp::any().map(String::new)).unify();
    warp::method()
        .and(warp::path::full())
        .and(query)
        .and(warp::header::headers_cloned())
        .and(warp::addr::remote())
        .and(warp::body::stream())
        .then(move |method: Method, path: FullPath, query: String, headers: HeaderMap, remote, stream| {
            let context = context.clone();
            async move {
                let request = Request { method, path: path.as_str().to_owned(), query, headers, remote };
                let reply = dispatch::answer(&context, &request, body::read(&request.headers, stream)).await;
                reply.into_response(&request)
            }
        })
}
