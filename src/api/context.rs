//! What the API is given: the view it reads, the run it steers, and its settings.

use super::{
    View, Webhooks,
    access::{Limiter, RateLimit, Whitelist},
    chains::Chains,
    funds::Funds,
    guard::LabAccess,
    lab::{Chaos, EventFeed, LabBoard},
    limits::{Connections, Limits, Receiving},
    log::LogTail,
    metrics::Requests,
    view::Head,
    views::Views,
    webhooks::Report,
};
use crate::{
    actors::SimTime,
    scenario::FaultDesk,
    sim::{
        LiveHandle,
        snapshots::{CameIn, SnapshotInfo},
    },
};
use std::{
    fmt,
    net::{IpAddr, Ipv4Addr},
    str::FromStr,
    sync::Arc,
};

/// Everything a request needs. Cheap to clone.
#[derive(Clone)]
pub struct ApiContext {
    /// The observed node.
    pub view: View,
    /// The run: takes transactions, and is steered under `/lab`.
    pub live: LiveHandle,
    pub ports: Ports,
    /// The address the server listens on.
    pub host: IpAddr,
    pub settings: Settings,
    /// The end of the node's log, if it is kept.
    pub log: Option<LogTail>,
    /// The node's webhooks, if it has any to offer.
    pub webhooks: Option<Webhooks>,
    /// The accounts that pay for `/lab/faucet`, if there are any.
    pub funds: Option<Arc<Funds>>,
    /// Takes faults for the run, if it takes any.
    pub desk: Option<FaultDesk>,
    /// Takes lines for the log, about what goes wrong.
    pub report: Report,
    /// Writes a snapshot, by what came in before it, as a file; `None` where nobody can.
    pub write_state: Option<WriteState>,
    /// Tells all that came into the run so far; `None` where nobody knows.
    pub recording: Option<Recording>,
    /// Counts what each client asks.
    pub limiter: Arc<Limiter>,
    /// Counts what is being received.
    pub receiving: Arc<Receiving>,
    /// Isolated chains beside this network, if there can be any.
    pub chains: Option<Chains>,
    /// Views of this network's past, if it is kept.
    pub views: Option<Views>,
    /// Where all nodes of the network stand.
    pub board: LabBoard,
    /// What happens in the network, for those who listen.
    pub feed: EventFeed,
    /// Counts how long requests take.
    pub requests: Arc<Requests>,
    /// Counts the open connections.
    pub connections: Arc<Connections>,
    /// What goes wrong between the node and its clients.
    pub chaos: Chaos,
    /// The head to answer from, where that is not the view's newest.
    pub pinned: Option<Arc<Head>>,
}

impl ApiContext {
    /// A context with default ports and settings.
    pub fn new(view: View, live: LiveHandle) -> Self {
        let (ports, settings) = (Ports::default(), Settings::default());
        let host = Ipv4Addr::LOCALHOST.into();
        let receiving = Arc::new(Receiving::new(settings.limits.receiving));
        let board = LabBoard::of_view(&view);
        let connections = Connections::new(settings.limits.connections);
        let chaos = Chaos::new(0, view.node(), Arc::new(vec![view.clone()].into()));
        let feed = EventFeed::new(view.tree().slots(), view.head().tip());
        Self {
            view,
            live,
            ports,
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
            board,
            feed,
            requests: Arc::default(),
            connections,
            chaos,
            pinned: None,
        }
    }

    /// The head to answer from.
    pub fn head(&self) -> Arc<Head> {
        self.pinned.clone().unwrap_or_else(|| self.view.head())
    }
}

/// Writes a snapshot as a file, by all that came in before it.
pub type WriteState = Arc<dyn Fn(&SnapshotInfo, &[CameIn]) -> Vec<u8> + Send + Sync>;

/// Writes what came into the run as a file that repeats it, up to this instant and so many inputs delivered to actors; or says
/// why it cannot.
pub type Recording = Arc<dyn Fn(SimTime, u64) -> Result<Vec<u8>, String> + Send + Sync>;

/// The ports the node says it listens on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    /// The peer-to-peer interface. Peers of a simulated network do not really listen.
    pub p2p: u16,
    pub api: u16,
}

impl Default for Ports {
    /// Those of the reference's `testnet`.
    fn default() -> Self {
        Self { p2p: 4_000, api: 4_003 }
    }
}

/// How the API answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    pub dialect: Dialect,
    /// Who is answered.
    pub whitelist: Whitelist,
    /// How often; without limit if it is none.
    pub rate_limit: Option<RateLimit>,
    /// Who of those is answered about webhooks, by which a node can be made to call others.
    pub webhook_whitelist: Whitelist,
    /// Whom `/lab` answers.
    pub lab: LabAccess,
    /// What clients may hold of the server.
    pub limits: Limits,
}

impl Default for Settings {
    /// As documented, to everybody and without limit, but about webhooks to this machine only. Source: api.md 1.1.
    fn default() -> Self {
        let (dialect, whitelist, rate_limit) = (Dialect::default(), Whitelist::default(), None);
        Self {
            dialect,
            whitelist,
            rate_limit,
            webhook_whitelist: Whitelist::loopback(),
            lab: LabAccess::default(),
            limits: Limits::default(),
        }
    }
}

/// Whose API is spoken. Source: api.md 4.10.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// The published specification, widened by the reference node: accepts what either does, shows what either shows.
    #[default]
    Documented,
    /// The reference node 2.6.57, member for member.
    Core26,
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Documented => "documented",
            Self::Core26 => "core-2.6",
        })
    }
}

impl FromStr for Dialect {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "documented" => Ok(Self::Documented),
            "core-2.6" => Ok(Self::Core26),
            _ => Err(format!("'{text}' is no dialect: give 'documented' or 'core-2.6'")),
        }
    }
}

/// In which dialects a row of a table stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spoken {
    Always,
    Only(Dialect),
}

impl Spoken {
    pub const DOCUMENTED: Self = Self::Only(Dialect::Documented);
    pub const CORE26: Self = Self::Only(Dialect::Core26);

    /// Whether the row stands in this dialect.
    pub fn holds(self, dialect: Dialect) -> bool {
        match self {
            Self::Always => true,
            Self::Only(only) => only == dialect,
        }
    }
}
