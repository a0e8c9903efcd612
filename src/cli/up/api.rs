//! The servers of `dposlab up`: the API of one node or of several, and their webhooks.

use super::{announce::LogWriter, lists, open_files};
use crate::{
    actors::NodeId,
    api::{
        ApiContext, ApiError, Chaos, Dialect, EventFeed, Funds, LabAccess, LabBoard, LabToken, Limits, Listener,
        LogTail, Proxies, PublicFaucet, RateLimit, Recording, Server, Settings, Submissions, View, WebhookHosts,
        WebhookSettings, WebhookThread, Webhooks, Whitelist, WriteState,
        chains::Chains,
        proxy,
        views::{NetworkObservers, Views},
        webhooks::{DataDir, Rehearing, Report, TIMEOUT, Targets},
    },
    cli::{Failure, output::Printer},
    files::{self, TEXT_LIMIT},
    protocol::Arktoshi,
    report::session::{
        KeptSession, Session, SessionFileError,
        state::{self, SnapshotFileError},
    },
    scenario::FaultDesk,
    sim::{LiveHandle, Observer, Past, Plan},
};
use clap::Args;
use std::{
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    sync::{Arc, OnceLock},
    time::Duration,
};
use tokio::sync::watch;
use warp::http::HeaderName;

/// Options of the API.
#[derive(Debug, Args)]
#[command(next_help_heading = "API")]
pub(crate) struct ApiOptions {
    /// Answer as 'documented', or exactly as a real node, 'core-2.6'.
    #[arg(long, default_value_t, value_name = "DIALECT")]
    dialect: Dialect,
    /// Serve the APIs of the first N nodes, on N consecutive ports from --port. Each API shows the chain of its node, so a
    /// fork is visible. /api/peers lists these nodes.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1_000))]
    pub api_nodes: u16,
    /// The clients that the API answers: patterns of addresses such as '127.0.0.1,10.1.*'. Any other client gets 403.
    /// Default: all clients.
    #[arg(long, default_value_t, value_name = "PATTERNS", hide_default_value = true)]
    whitelist: Whitelist,
    /// The largest number of requests from each address in a minute, or in SECONDS. A further request gets 429. 100 if no
    /// number is given. Off by default.
    #[arg(long, value_name = "REQUESTS[/SECONDS]", num_args = 0..=1, default_missing_value = "100")]
    rate_limit: Option<RateLimit>,
    /// Open /lab to no client ('off'), to programs on this machine ('loopback'), or to clients from anywhere that show the
    /// token of --lab-token ('token').
    #[arg(long, value_enum, value_name = "WHO", default_value_t)]
    lab: LabMode,
    /// A file that holds the token for --lab token. It is sent as 'Authorization: Bearer TOKEN'.
    #[arg(long, value_name = "FILE")]
    lab_token: Option<PathBuf>,
    /// The number of coins that POST /faucet and the page pay to any client at a time, also where /lab is closed. Off by default.
    #[arg(long, value_name = "COINS", value_parser = parse_coins)]
    public_faucet: Option<Arktoshi>,
    /// Payments of --public-faucet for each client: payments/seconds.
    #[arg(long, value_name = "N/SECONDS", default_value = "3/3600", requires = "public_faucet")]
    faucet_limit: RateLimit,
    /// Payments of --public-faucet for all clients together: payments/seconds.
    #[arg(long, value_name = "N/SECONDS", default_value = "100/3600", requires = "public_faucet")]
    faucet_total: RateLimit,
    /// The header in which a reverse proxy names each client last, such as X-Forwarded-For. Limits and --whitelist then use the
    /// client's address. /lab is closed unless --lab token opens it, and webhooks unless --webhook-whitelist '*' does.
    #[arg(long, value_name = "HEADER", value_parser = proxy::header)]
    behind_proxy: Option<HeaderName>,
    /// The addresses from which that proxy connects, as patterns like those of --whitelist. The server ignores the header of
    /// other addresses.
    #[arg(long, value_name = "PATTERNS", default_value = "127.*,::1", requires = "behind_proxy")]
    proxies: Whitelist,
    /// The largest number of open connections. A further one closes an idle connection of the client with the most connections.
    #[arg(long, value_name = "N", default_value_t = Limits::default().connections as u32, help_heading = "Limits",
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    max_connections: u32,
    /// Close a connection that waits longer than this for the head of its next request.
    #[arg(long, value_name = "SECONDS", default_value_t = Limits::default().idle.as_secs(), help_heading = "Limits",
          value_parser = clap::value_parser!(u64).range(1..=3_600))]
    idle_timeout: u64,
    /// Answer a request with 408 if its body takes longer than this to arrive.
    #[arg(long, value_name = "SECONDS", default_value_t = Limits::default().body.as_secs(), help_heading = "Limits",
          value_parser = clap::value_parser!(u64).range(1..=3_600))]
    body_timeout: u64,
    /// Close a connection whose client reads nothing of its answer for this time.
    #[arg(long, value_name = "SECONDS", default_value_t = Limits::default().write.as_secs(), help_heading = "Limits",
          value_parser = clap::value_parser!(u64).range(1..=3_600))]
    write_timeout: u64,
    /// Megabytes of answers that clients have not read yet. Clients share them as those of --max-receiving.
    #[arg(long, value_name = "MB", default_value_t = (Limits::default().sending >> 20) as u32,
          help_heading = "Limits", value_parser = clap::value_parser!(u32).range(8..=4_096))]
    max_sending: u32,
    /// Megabytes of request bodies that the server receives at a time, from all clients together. A client may use no more than
    /// is free, thus at most half. A further body gets 503.
    #[arg(long, value_name = "MB", default_value_t = (Limits::default().receiving >> 20) as u32,
          help_heading = "Limits", value_parser = clap::value_parser!(u32).range(2..=4_096))]
    max_receiving: u32,
    /// The clients that may read and change webhooks, as patterns like those of --whitelist. '*' allows all clients.
    #[arg(long, value_name = "PATTERNS", default_value = "127.*,::1", help_heading = "Webhooks")]
    webhook_whitelist: Whitelist,
    /// The hosts to which webhooks may be posted: 'loopback', 'public' (hosts on the internet), 'any', 'none', and ranges such as
    /// 10.1.0.0/16, with commas between them. Each connection checks the address of its host. Default: loopback where --host
    /// is loopback, else none.
    #[arg(long, value_name = "RANGES", help_heading = "Webhooks")]
    webhook_targets: Option<Targets>,
    /// The time that a webhook's receiver has to answer.
    #[arg(long, value_name = "MS", default_value_t = TIMEOUT.as_millis() as u32, help_heading = "Webhooks",
          value_parser = clap::value_parser!(u32).range(1..=60_000))]
    webhook_timeout: u32,
}

/// Parses an amount in coins, with up to eight digits after the point.
fn parse_coins(text: &str) -> Result<Arktoshi, String> {
    let wrong = || format!("'{text}' is no amount: give coins such as 10 or 0.5, up to 1000000");
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let is_number =
        |text: &str, most| (1..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole, 7) || !is_number(part, 8) {
        return Err(wrong());
    }
    let amount = format!("{whole}{part:0<8}").parse().ok().and_then(Arktoshi::new);
    amount.filter(|amount| (1..=Arktoshi::coins(1_000_000).value()).contains(&amount.value())).ok_or_else(wrong)
}

/// The clients that `/lab` answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum LabMode {
    Off,
    #[default]
    Loopback,
    Token,
}

/// The ports that this process listens on, one for each served node.
pub(crate) struct Ports(Vec<Listener>);

/// The served nodes, ready to receive events.
pub(crate) struct ServedNodes {
    nodes: Vec<ServedNode>,
    thread: WebhookThread,
    /// The settings of webhooks on networks beside the testnet.
    apart: WebhookSettings,
    settings: Settings,
    board: LabBoard,
    feed: EventFeed,
    /// The views of the past.
    views: Views,
}

struct ServedNode {
    listener: Listener,
    view: View,
    tail: LogTail,
    report: Report,
    webhooks: Webhooks,
    chaos: Chaos,
}

impl ApiOptions {
    /// Listens on the ports, before anything else costs time. Port 0 takes any free ones.
    ///
    /// # Errors
    /// A port is in use or not allowed, or there are too few of them above `first`.
    pub fn listen(&self, host: IpAddr, first: u16) -> Result<Ports, Failure> {
        let last = u32::from(first) + u32::from(self.api_nodes) - 1;
        if first > 0 && last > u32::from(u16::MAX) {
            return Err(Failure::usage(format!(
                "--api-nodes {}: from --port {first} on there are {} ports",
                self.api_nodes,
                u16::MAX - first + 1
            )));
        }
        let port = |index| if first == 0 { 0 } else { first + index };
        let listen = |index| Server::listen(SocketAddr::new(host, port(index))).map_err(Failure::usage);
        (0..self.api_nodes).map(listen).collect::<Result<_, _>>().map(Ports)
    }

    /// The clients that `/lab` answers.
    ///
    /// # Errors
    /// The token cannot be read, is invalid, or is given without being used.
    fn lab(&self) -> Result<LabAccess, Failure> {
        match (self.lab, &self.lab_token) {
            (LabMode::Off, None) => Ok(LabAccess::Off),
            (LabMode::Loopback, None) => Ok(LabAccess::Loopback),
            (LabMode::Token, Some(file)) => {
                let wrong = |why: String| Failure::usage(format!("--lab-token {}: {why}", file.display()));
                let text = files::read_text(file, TEXT_LIMIT).map_err(|why| wrong(format!("cannot be read: {why}")))?;
                LabToken::new(&text).map(LabAccess::Token).map_err(wrong)
            }
            (LabMode::Token, None) => Err(Failure::usage("--lab token wants the token's file: --lab-token FILE")),
            (_, Some(_)) => Err(Failure::usage("--lab-token is for --lab token")),
        }
    }

    fn limits(&self) -> Limits {
        Limits {
            connections: open_files::connections_that_fit(self.max_connections, self.api_nodes) as usize,
            idle: Duration::from_secs(self.idle_timeout),
            body: Duration::from_secs(self.body_timeout),
            receiving: (self.max_receiving as usize) << 20,
            write: Duration::from_secs(self.write_timeout),
            sending: (self.max_sending as usize) << 20,
        }
    }

    /// Returns the nodes to serve, with the observers that report events to them. The first node's log is also printed. Events are numbered
    /// after `events`.
    ///
    /// # Errors
    /// The network has fewer nodes, or stored webhooks cannot be read.
    pub fn serve(
        &self,
        Ports(listeners): Ports,
        plan: &Plan,
        log: Option<&Printer>,
        board: LabBoard,
        data: Option<DataDir>,
        (heard, events): (&Rehearing, u64),
    ) -> Result<(ServedNodes, Vec<Box<dyn Observer>>), Failure> {
        if listeners.len() > plan.nodes.len() {
            let (asked, there) = (listeners.len(), plan.nodes.len());
            return Err(Failure::usage(format!("--api-nodes {asked}: the network has {there} nodes")));
        }
        let mut thread = WebhookThread::start().map_err(Failure::broken)?;
        // All listeners have the same address.
        let apart = match listeners.first() {
            Some(listener) => self.webhook_reach(listener),
            None => WebhookSettings::default(),
        };
        let feed = EventFeed::after(events, plan.tree.slots(), &plan.tip);
        let mut observers: Vec<Box<dyn Observer>> = vec![Box::new(board.observer()), Box::new(feed.observer())];
        let views: Arc<OnceLock<Vec<View>>> = Arc::default();
        let older = data.as_ref().map(|data| lists::open(data.path(), plan)).transpose()?;
        let mut nodes = Vec::with_capacity(listeners.len());
        for (listener, node) in listeners.into_iter().zip((0..).map(NodeId)) {
            let view = View::with_older(node, plan.tree.clone(), plan.tip.clone(), plan.start, older.clone())
                .with_neighbours((0..plan.nodes.len() as u32).map(NodeId))
                .with_latencies(&plan.network());
            let tail = LogTail::default();
            let printer = log.filter(|_| node == NodeId(0)).cloned();
            let writer = LogWriter::new(printer, tail.clone(), node, plan.tree.clone());
            let report = report(&view, &writer);
            let chaos = Chaos::new(plan.seeds.seed(), node, views.clone());
            let settings = WebhookSettings {
                numbers: heard.numbers(),
                unheard: heard.fired(node),
                ..self.webhooks(&listener, report.clone(), data.clone(), &chaos)
            };
            let webhooks = thread.host(view.clone(), settings);
            let webhooks = webhooks.map_err(|why| Failure::usage(format!("--data-dir {why}")))?;
            observers.extend([Box::new(view.clone()) as Box<dyn Observer>, Box::new(writer)]);
            observers.push(Box::new(webhooks.observer()));
            nodes.push(ServedNode { listener, view, tail, report, webhooks, chaos });
        }
        let _first_time = views.set(nodes.iter().map(|node| node.view.clone()).collect());
        let settings = Settings {
            dialect: self.dialect,
            whitelist: self.whitelist.clone(),
            rate_limit: self.rate_limit,
            webhook_whitelist: self.webhook_whitelist.clone(),
            lab: self.lab()?,
            public_faucet: self.public_faucet.map(|amount| PublicFaucet {
                amount,
                each: self.faucet_limit,
                all: self.faucet_total,
            }),
            limits: self.limits(),
            proxies: self.behind_proxy.clone().map(|header| Proxies { header, from: self.proxies.clone() }),
        };
        let observed = nodes.iter().map(|node| node.view.clone()).collect();
        let views = Views::new(Past::new(NetworkObservers { views: observed, board: board.clone() }));
        Ok((ServedNodes { nodes, thread, apart, settings, board, feed, views }, observers))
    }

    fn webhooks(&self, listener: &Listener, report: Report, data: Option<DataDir>, chaos: &Chaos) -> WebhookSettings {
        WebhookSettings { data, report, chaos: Some(chaos.clone()), ..self.webhook_reach(listener) }
    }

    /// The allowed targets of webhooks and the time limit of a post.
    fn webhook_reach(&self, listener: &Listener) -> WebhookSettings {
        let is_private = listener.local_address().ip().is_loopback();
        let default = || if is_private { Targets::loopback() } else { Targets::none() };
        WebhookSettings {
            targets: self.webhook_targets.clone().unwrap_or_else(default),
            timeout: Duration::from_millis(self.webhook_timeout.into()),
            ..WebhookSettings::default()
        }
    }
}

/// Returns a function that writes a line to a node's log, at the node's current instant.
fn report(view: &View, log: &LogWriter) -> Report {
    let (log, view) = (log.clone(), view.clone());
    Arc::new(move |line| log.write(view.now(), "INFO", line.to_owned()))
}

/// Hosts the webhooks of networks beside the testnet.
#[derive(Clone)]
pub(crate) struct WebhooksBeside {
    pub hosts: WebhookHosts,
    /// The settings of the testnet, without a folder.
    pub settings: WebhookSettings,
}

impl ServedNodes {
    /// Returns the host for webhooks of networks beside this one, with the settings of the testnet.
    pub fn webhooks_beside(&self) -> WebhooksBeside {
        WebhooksBeside { hosts: self.thread.hosts(), settings: self.apart.clone() }
    }

    /// The addresses of the nodes' APIs, the first node's first.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.nodes.iter().map(|node| node.listener.local_address()).collect()
    }

    /// The past of the run, which is about to begin.
    pub fn past(&self) -> Past<NetworkObservers> {
        self.views.past().clone()
    }

    /// Makes the servers, which pay from `funds`. Also returns the thread of the webhooks, to be stopped after the servers.
    pub fn start(
        self,
        live: &LiveHandle,
        funds: &Arc<Funds>,
        desk: &FaultDesk,
        chains: &Chains,
        session: Session,
        kept: KeptSession,
    ) -> (Vec<Server>, WebhookThread) {
        let write_state = write_state(session);
        let recording = recording(kept);
        let served: Arc<[SocketAddr]> = self.addresses().into();
        let Self { nodes, thread, apart: _, settings, board, feed, views } = self;
        let submissions = Submissions::default();
        let server = |node: ServedNode| {
            let context = ApiContext {
                log: Some(node.tail),
                webhooks: Some(node.webhooks),
                funds: Some(funds.clone()),
                write_state: Some(write_state.clone()),
                recording: Some(recording.clone()),
                report: node.report,
                chaos: node.chaos,
                board: board.clone(),
                feed: feed.clone(),
                settings: settings.clone(),
                desk: Some(desk.clone()),
                chains: Some(chains.clone()),
                views: Some(views.clone()),
                served: served.clone(),
                submissions: submissions.clone(),
                ..ApiContext::new(node.view, live.clone())
            };
            Server::new(node.listener, context)
        };
        (nodes.into_iter().map(server).collect(), thread)
    }
}

/// Returns the function with which the API writes snapshots of a session.
pub(crate) fn write_state(session: Session) -> WriteState {
    Arc::new(move |info, history| {
        state::write(&session, info, history).map_err(|why| match why {
            SnapshotFileError::TooLong => ApiError::Conflict(why.to_string()),
            SnapshotFileError::Unread(_) => ApiError::Internal(why.to_string()),
        })
    })
}

/// Returns the function with which the API reads the recording of a session so far.
pub(crate) fn recording(kept: KeptSession) -> Recording {
    Arc::new(move |now, delivered| {
        let so_far = kept.so_far(now, delivered).map_err(|why| ApiError::Conflict(why.to_string()))?;
        Ok(Box::new(|| {
            so_far.file().map_err(|why| match why {
                SessionFileError::TooLong(why) => ApiError::Conflict(why.to_string()),
                SessionFileError::Unread(why) => ApiError::Internal(why.to_string()),
            })
        }))
    })
}

/// Serves on the API's own threads until `stopped` is true. The simulation never waits for a client.
///
/// # Errors
/// A server cannot run.
pub(crate) fn serve(servers: Vec<Server>, stopped: &watch::Receiver<bool>) -> Result<(), Failure> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().map_err(Failure::broken)?;
    let served = runtime.block_on(async {
        let serving = servers.into_iter().map(|server| {
            let mut stopped = stopped.clone();
            tokio::spawn(server.serve(async move {
                // An error means that the sender is gone, and the server stops as well.
                let _stop = stopped.wait_for(|stopped| *stopped).await;
            }))
        });
        for server in serving.collect::<Vec<_>>() {
            server.await.map_err(Failure::broken)?.map_err(Failure::broken)?;
        }
        Ok(())
    });
    runtime.shutdown_timeout(Duration::from_secs(1));
    served
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coins_are_read_exactly_or_refused() {
        let read = |text: &str| parse_coins(text).map(|amount| amount.value());
        assert_eq!(read("10"), Ok(1_000_000_000));
        assert_eq!(read("0.5"), Ok(50_000_000));
        assert_eq!(read("0.00000001"), Ok(1));
        assert_eq!(read("1000000"), Ok(100_000_000_000_000));
        for wrong in ["", "0", "0.0", "-1", "1.", ".5", "1.123456789", "1000000.1", "9999999", "ten", "1e3"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
