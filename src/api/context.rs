//! The context of the API: the view it reads, the run it steers, and its settings.

use super::{
    http::{
        access::{Limiter, RateLimit, Whitelist},
        error::ApiError,
        guard::{Gate, LabAccess},
        limits::{Connections, Limits, UnderWay},
        log::{LogTail, Report},
        proxy::Proxies,
        request::Ports,
        tally::Requests,
    },
    lab::{
        board::LabBoard,
        chains::{self, Running},
        chaos::Chaos,
        faucet::{FaucetCounts, PublicFaucet},
        feed::EventFeed,
        funds::Funds,
        submissions::Submissions,
        views,
    },
    table::Dialect,
    view::{Head, View},
    webhooks::Webhooks,
};
use crate::{
    actors::SimTime,
    scenario::FaultDesk,
    sim::{
        LiveHandle,
        snapshots::{Inputs, SnapshotInfo},
    },
};
use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
};

/// Everything a request needs. Cheap to clone.
#[derive(Clone)]
pub struct ApiContext {
    /// The observed node.
    pub view: View,
    /// The handle of the run, for submitted transactions and for `/lab`.
    pub live: LiveHandle,
    pub ports: Ports,
    /// The address of each served node's API, by node number. The first nodes of the network are served.
    pub served: Arc<[SocketAddr]>,
    /// The address the server listens on.
    pub host: IpAddr,
    pub settings: Settings,
    /// The last lines of the node's log, if they are retained.
    pub log: Option<LogTail>,
    /// The node's webhooks, if it has any to offer.
    pub webhooks: Option<Webhooks>,
    /// The accounts that pay for `/lab/faucet`, if there are any.
    pub funds: Option<Arc<Funds>>,
    /// Checks new faults for the run. `None` if the run accepts none.
    pub desk: Option<FaultDesk>,
    /// Writes a line about a failure to the log.
    pub report: Report,
    /// Writes a snapshot as a file with its earlier inputs. `None` where the network has no snapshots.
    pub write_state: Option<WriteState>,
    /// Gives all inputs of the run so far. `None` where they are not recorded.
    pub recording: Option<Recording>,
    /// Counts the requests of each client.
    pub limiter: Arc<Limiter>,
    /// Counts the bytes of request bodies that are being received.
    pub receiving: Arc<UnderWay>,
    /// Counts the bytes of answers that are being sent.
    pub sending: Arc<UnderWay>,
    /// Isolated chains beside this network, if there can be any.
    pub chains: Option<Chains>,
    /// Views of this network's past. `None` if no past is retained.
    pub views: Option<Views>,
    /// The tips of all nodes of the network.
    pub board: LabBoard,
    /// The events of the network, for clients that read the stream.
    pub feed: EventFeed,
    /// Counts the requests of each route by the time they took.
    pub requests: Arc<Requests>,
    /// Counts the open connections.
    pub connections: Arc<Connections>,
    /// The rules of chaos between the node and its clients.
    pub chaos: Chaos,
    /// Counts the payments of the public faucet.
    pub faucet: Arc<FaucetCounts>,
    /// The transactions that clients submitted to the nodes of this network.
    pub submissions: Submissions,
    /// The head to answer from, where that is not the view's newest.
    pub pinned: Option<Arc<Head>>,
}

impl ApiContext {
    /// A context with default ports and settings.
    pub fn new(view: View, live: LiveHandle) -> Self {
        let (ports, settings) = (Ports::default(), Settings::default());
        let host = Ipv4Addr::LOCALHOST.into();
        let (receiving, sending) = (UnderWay::new(settings.limits.receiving), UnderWay::new(settings.limits.sending));
        let board = LabBoard::of_view(&view);
        let connections = Connections::new(settings.limits.connections);
        let chaos = Chaos::new(0, view.node(), Arc::new(vec![view.clone()].into()));
        let feed = EventFeed::new(view.tree().slots(), view.head().tip());
        Self {
            view,
            live,
            ports,
            served: Arc::default(),
            host,
            settings,
            log: None,
            webhooks: None,
            funds: None,
            desk: None,
            report: Arc::new(|_| {}),
            write_state: None,
            recording: None,
            chains: None,
            views: None,
            limiter: Arc::default(),
            receiving,
            sending,
            board,
            feed,
            requests: Arc::default(),
            connections,
            chaos,
            faucet: Arc::default(),
            submissions: Submissions::default(),
            pinned: None,
        }
    }

    /// A context for another network behind the same server.
    pub fn behind_the_same_server(&self, view: View, live: LiveHandle) -> Self {
        Self {
            ports: self.ports,
            host: self.host,
            settings: self.settings.clone(),
            report: self.report.clone(),
            limiter: self.limiter.clone(),
            faucet: self.faucet.clone(),
            receiving: self.receiving.clone(),
            sending: self.sending.clone(),
            requests: self.requests.clone(),
            connections: self.connections.clone(),
            ..Self::new(view, live)
        }
    }

    /// Decides which requests may pass.
    pub fn gate(&self) -> Gate<'_> {
        let Settings { lab, webhook_whitelist, proxies, .. } = &self.settings;
        let is_behind_proxy = proxies.is_some();
        Gate { lab, webhooks: webhook_whitelist, is_behind_proxy, host: self.host, port: self.ports.api }
    }

    /// The head to answer from.
    pub fn head(&self) -> Arc<Head> {
        self.pinned.clone().unwrap_or_else(|| self.view.head())
    }
}

impl Running for ApiContext {
    fn end(&self) {
        self.live.stop();
        self.feed.end();
        self.webhooks.iter().for_each(Webhooks::end);
    }
}

/// An isolated chain beside this network.
pub type Chain = chains::Chain<ApiContext>;

/// The isolated chains of this process.
pub type Chains = chains::Chains<ApiContext>;

/// The views of the past.
pub type Views = views::Views<ApiContext>;

/// Writes a snapshot as a file that contains all inputs before it. The call may read much and needs a thread of its own.
pub type WriteState = Arc<dyn Fn(&SnapshotInfo, &Inputs) -> Result<Vec<u8>, ApiError> + Send + Sync>;

/// Takes the inputs of the run up to an instant and a number of inputs delivered to actors. Returns a writer of a file that repeats
/// them, or the reason why it cannot.
pub type Recording = Arc<dyn Fn(SimTime, u64) -> Result<WriteRecording, ApiError> + Send + Sync>;

/// Writes the file of a recording. The call may read much and needs a thread of its own.
pub(crate) type WriteRecording = Box<dyn FnOnce() -> Result<Vec<u8>, ApiError> + Send>;

/// The settings of the API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    pub dialect: Dialect,
    /// The clients that are answered.
    pub whitelist: Whitelist,
    /// The limit of requests; none if requests are not limited.
    pub rate_limit: Option<RateLimit>,
    /// The clients, among those of `whitelist`, that may use webhooks. Through a webhook a client makes the node send requests to
    /// others.
    pub webhook_whitelist: Whitelist,
    /// The clients that `/lab` answers.
    pub lab: LabAccess,
    /// The public faucet, if there is one.
    pub public_faucet: Option<PublicFaucet>,
    /// The limits on connections, waiting times and buffered bytes.
    pub limits: Limits,
    /// The proxies in front of the server, if there are any.
    pub proxies: Option<Proxies>,
}

impl Default for Settings {
    /// Returns the documented defaults: any client may send any number of requests, but only this machine may use webhooks. Source:
    /// api.md 1.1.
    fn default() -> Self {
        let (dialect, whitelist, rate_limit) = (Dialect::default(), Whitelist::default(), None);
        Self {
            dialect,
            whitelist,
            rate_limit,
            webhook_whitelist: Whitelist::loopback(),
            lab: LabAccess::default(),
            public_faucet: None,
            limits: Limits::default(),
            proxies: None,
        }
    }
}
