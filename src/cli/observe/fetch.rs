//! The blocks of a node, from its public API: over HTTP/1.1, at a stated pace, within limits of time and size, and without following
//! redirects.

use super::network_of;
use crate::{
    check::observe::{ClaimError, Claims, Seats},
    files::{CHAIN_LIMIT, in_words},
    ledger::BlockTree,
    protocol::{BlockId, Height, NetworkConfig, PublicKey, network::NetworkError},
};
use clap::Args;
use http_body_util::{BodyExt, Empty, LengthLimitError, Limited};
use hyper::{Request, StatusCode, Uri, body::Bytes, client::conn::http1, header};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::{io, ops::RangeInclusive, time::Duration};
use tokio::{
    net::{TcpStream, lookup_host},
    runtime::{Builder, Runtime},
    time::{Interval, MissedTickBehavior, interval, timeout},
};

/// The largest size of an answer in bytes.
const ANSWER_MAX: usize = 16 << 20;
/// The number of blocks or transactions on a page: the most that the reference serves.
const PAGE: u32 = 100;
/// The number of blocks to fetch without `--from`.
const NEWEST: u32 = 1_000;
/// The largest number of blocks in one observation.
const BLOCKS_MAX: u32 = 100_000;
/// The largest height of a chain: that of a block each second for 68 years.
const HEIGHT_MAX: u32 = u32::MAX / 2;
/// The largest number of transactions in a block: more than any milestone allows.
const TRANSACTIONS_MAX: u64 = 10_000;
const USER_AGENT: &str = concat!("dposlab/", env!("CARGO_PKG_VERSION"));

/// How a node is asked.
#[derive(Clone, Debug, Args)]
pub(crate) struct RequestPace {
    /// Requests a second to a node. Nodes of public networks allow about 1.6.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    per_second: u32,
    /// Seconds within which a node has to answer a request.
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=600))]
    timeout: u32,
}

/// The reason why a node shows nothing.
#[derive(Debug, thiserror::Error)]
#[rustfmt::skip]
pub(crate) enum FetchError {
    #[error("found no address of a node, allowed is http://HOST[:PORT][/PATH]")]
    NotHttp,
    #[error("https is not spoken here: let a proxy on this machine speak it (caddy reverse-proxy --from http://127.0.0.1:8080 --to https://HOST \
             --change-host-header), or save the answers with curl and give the files")]
    Https,
    #[error("no thread to ask from: {0}")]
    Runtime(io::Error),
    #[error("GET {path}: {why}")]
    Failed { path: String, why: Trouble },
    #[error("its network: {0}")]
    Network(#[from] NetworkError),
    #[error("{0}")]
    Claim(#[from] ClaimError),
    #[error("{option}: found {found}, allowed is {allowed}")]
    Range { option: &'static str, found: u32, allowed: String },
}

/// The fault of an answer.
#[derive(Debug, thiserror::Error)]
#[rustfmt::skip]
pub(crate) enum Trouble {
    #[error("no connection: {0}")]
    Unreachable(io::Error),
    #[error("the connection broke: {0}")]
    Broken(#[from] hyper::Error),
    #[error("no whole answer within {0} seconds (--timeout)")]
    TimedOut(u64),
    #[error("the answer is longer than {}", in_words(ANSWER_MAX as u64))]
    TooLong,
    #[error("all answers together are longer than {}: ask for fewer blocks", in_words(CHAIN_LIMIT))]
    TooMuch,
    #[error("the answer could not be read: {0}")]
    Unread(Box<dyn std::error::Error + Send + Sync>),
    #[error("it leads to {to} (status {status}), and is not followed: give that address, if it is the right one")]
    Redirect { status: u16, to: String },
    #[error("it wants fewer requests (status 429): allow fewer with --per-second, or ask later")]
    TooMany,
    #[error("found status {0}, allowed is 200")]
    Status(u16),
    #[error("the answer is not JSON: {0}")]
    NotJson(#[from] serde_json::Error),
    #[error("{key}: found {found}, allowed is {allowed}")]
    Wrong { key: String, found: String, allowed: String },
}

/// A node that is asked.
pub(crate) struct Node {
    runtime: Runtime,
    host: String,
    port: u16,
    /// The path before `/blocks` and the other routes.
    base: String,
    turns: Interval,
    timeout: Duration,
    /// The number of bytes that further answers may have in all.
    left: usize,
}

impl Node {
    /// The node at an address, which may end in `/api`.
    ///
    /// # Errors
    /// It is not an address of plain HTTP.
    pub fn at(url: &str, pace: &RequestPace) -> Result<Self, FetchError> {
        let uri: Uri = url.parse().map_err(|_| FetchError::NotHttp)?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => return Err(FetchError::Https),
            _ => return Err(FetchError::NotHttp),
        }
        let host = uri.host().filter(|host| !host.is_empty()).ok_or(FetchError::NotHttp)?.to_owned();
        let path = uri.path().trim_end_matches('/');
        let base = if path.ends_with("/api") { path.to_owned() } else { format!("{path}/api") };
        let runtime = Builder::new_current_thread().enable_all().build().map_err(FetchError::Runtime)?;
        let between = Duration::from_secs(1) / pace.per_second;
        let mut turns = runtime.block_on(async { interval(between) });
        turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let port = uri.port_u16().unwrap_or(80);
        Ok(Self {
            runtime,
            host,
            port,
            base,
            turns,
            timeout: Duration::from_secs(pace.timeout.into()),
            left: CHAIN_LIMIT as usize,
        })
    }

    /// Fetches the network of the node.
    ///
    /// # Errors
    /// The node does not answer, or its answer describes no network.
    pub fn network(&mut self) -> Result<NetworkConfig, FetchError> {
        Ok(network_of(&self.get("/node/configuration/crypto")?)?)
    }

    /// Fetches the blocks of a range of heights with their transactions. If the range does not begin with genesis and no list of
    /// delegates is given, it also fetches the delegates of the rounds. Returns the height of a block that disappeared meanwhile: the
    /// blocks from this one on are missing.
    ///
    /// # Errors
    /// An answer does not come, or does not fit the request.
    pub fn show(
        &mut self,
        tree: &BlockTree,
        range: (Option<u32>, Option<u32>),
        claims: &mut Claims,
        seats: &mut Seats,
        mut tell: impl FnMut(usize, usize),
    ) -> Result<Option<Height>, FetchError> {
        let heights = self.heights(range)?;
        let (from, to) = (*heights.start(), *heights.end());
        if from > 1 && seats.is_empty() {
            self.show_delegates(tree, &heights, seats)?;
        }
        let all = (to - from) as usize + 1;
        for page in (from - 1) / PAGE + 1..=(to - 1) / PAGE + 1 {
            let path = format!("/blocks?page={page}&limit={PAGE}&orderBy=height:asc&transform=false");
            for block in self.page(&path, &heights, page)? {
                let height = block["height"].as_u64().unwrap_or_default() as u32;
                match self.show_transactions(&block, claims) {
                    Err(FetchError::Failed { why: Trouble::Status(404), .. }) => return Ok(Some(Height(height))),
                    shown => shown?,
                }
                claims.take(format!("GET {}{path}", self.base), block)?;
                tell((height - from) as usize + 1, all);
            }
        }
        Ok(None)
    }

    fn heights(&mut self, (from, to): (Option<u32>, Option<u32>)) -> Result<RangeInclusive<u32>, FetchError> {
        let path = "/node/status";
        let status = self.get(path)?;
        let now = status["data"]["now"].as_u64().and_then(|now| u32::try_from(now).ok());
        let now = now.filter(|now| (1..=HEIGHT_MAX).contains(now)).ok_or_else(|| {
            self.wrong(path, "data.now", &status["data"]["now"], &format!("a height from 1 to {HEIGHT_MAX}"))
        })?;
        let to = to.unwrap_or(now);
        let from = from.unwrap_or_else(|| to.saturating_sub(NEWEST - 1).max(1));
        for (option, found, allowed) in [("--to", to, 1..=now), ("--from", from, 1..=to)] {
            if !allowed.contains(&found) {
                let allowed = format!("1 to {}", allowed.end());
                return Err(FetchError::Range { option, found, allowed });
            }
        }
        if to - from >= BLOCKS_MAX {
            let allowed = format!("{} at the least: {BLOCKS_MAX} blocks at a time", to - BLOCKS_MAX + 1);
            return Err(FetchError::Range { option: "--from", found: from, allowed });
        }
        Ok(from..=to)
    }

    /// The requested blocks of a page: each height once, the lowest first.
    fn page(&mut self, path: &str, heights: &RangeInclusive<u32>, page: u32) -> Result<Vec<Value>, FetchError> {
        let list = self.list(path)?;
        let (first, mut blocks) = ((page - 1) * PAGE + 1, Vec::new());
        for (height, block) in (first..).zip(list) {
            if block["height"] != height {
                let key = format!("data[{}].height", height - first);
                return Err(self.wrong(path, &key, &block["height"], &height.to_string()));
            }
            if heights.contains(&height) {
                blocks.push(block);
            }
        }
        let wanted = (first + PAGE - 1).min(*heights.end()) + 1 - first.max(*heights.start());
        match blocks.len() == wanted as usize {
            true => Ok(blocks),
            false => Err(self.wrong(
                path,
                "data",
                &format!("{} blocks of the range", blocks.len()).into(),
                &wanted.to_string(),
            )),
        }
    }

    fn show_transactions(&mut self, block: &Value, claims: &mut Claims) -> Result<(), FetchError> {
        let count = block["numberOfTransactions"].as_u64().or(block["transactions"].as_u64()).unwrap_or_default();
        // The judge reports an invalid id.
        let id = block["id"].as_str().and_then(|id| id.parse::<BlockId>().ok());
        let Some(id) = id.filter(|_| count > 0 && block["height"] != Height::GENESIS.0) else { return Ok(()) };
        if count > TRANSACTIONS_MAX {
            return Err(self.wrong(
                "/blocks",
                "numberOfTransactions",
                &count.into(),
                &format!("{TRANSACTIONS_MAX} at most"),
            ));
        }
        let mut left = count;
        for page in 1..=count.div_ceil(PAGE.into()) {
            let path = format!("/blocks/{id}/transactions?page={page}&limit={PAGE}&transform=false");
            let list = self.list(&path)?;
            if list.len() as u64 != left.min(PAGE.into()) {
                let found = format!("{} transactions", list.len());
                return Err(self.wrong(&path, "data", &found.into(), &left.min(PAGE.into()).to_string()));
            }
            left -= list.len() as u64;
            for mut transaction in list {
                if let Some(transaction) = transaction.as_object_mut() {
                    transaction.insert("blockId".to_owned(), id.to_string().into());
                }
                claims.take(format!("GET {}{path}", self.base), transaction)?;
            }
        }
        Ok(())
    }

    /// Fetches the delegates of each round. Some nodes have no answer for old rounds, whose turns are then not judged.
    fn show_delegates(
        &mut self,
        tree: &BlockTree,
        heights: &RangeInclusive<u32>,
        seats: &mut Seats,
    ) -> Result<(), FetchError> {
        let round = |height: &u32| tree.schedule().at(Height(*height)).round.0;
        for round in round(heights.start())..=round(heights.end()) {
            let path = format!("/rounds/{round}/delegates");
            let list = match self.list(&path) {
                Err(FetchError::Failed { why: Trouble::Status(404), .. }) => continue,
                list => list?,
            };
            for (index, one) in list.iter().enumerate() {
                let key = one["publicKey"].as_str().and_then(|key| key.parse::<PublicKey>().ok());
                let named = format!("data[{index}].publicKey");
                let key = key.ok_or_else(|| self.wrong(&path, &named, &one["publicKey"], "66 hex digits"))?;
                seats.add(Some(round), key, None);
            }
        }
        Ok(())
    }

    fn list(&mut self, path: &str) -> Result<Vec<Value>, FetchError> {
        let mut answer = self.get(path)?;
        match answer.get_mut("data").map(Value::take) {
            Some(Value::Array(list)) => Ok(list),
            other => Err(self.wrong(path, "data", &other.unwrap_or_default(), "a list")),
        }
    }

    fn get(&mut self, path: &str) -> Result<Value, FetchError> {
        let path = format!("{}{path}", self.base);
        let name = self.host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let (host, port, limit, left) = (self.host.clone(), self.port, self.timeout, self.left);
        let turns = &mut self.turns;
        let asked = self.runtime.block_on(async {
            turns.tick().await;
            let asked = async {
                let addresses: Vec<_> = lookup_host((name, port)).await.map_err(Trouble::Unreachable)?.collect();
                let stream = TcpStream::connect(&*addresses).await.map_err(Trouble::Unreachable)?;
                ask(stream, &format!("{host}:{port}"), &path, left).await
            };
            timeout(limit, asked).await.unwrap_or_else(|_| Err(Trouble::TimedOut(limit.as_secs())))
        });
        let body = asked.map_err(|why| FetchError::Failed { path: path.clone(), why })?;
        self.left -= body.len();
        serde_json::from_slice(&body).map_err(|why| FetchError::Failed { path, why: why.into() })
    }

    fn wrong(&self, path: &str, key: &str, found: &Value, allowed: &str) -> FetchError {
        let found = found.to_string().chars().take(80).collect();
        let why = Trouble::Wrong { key: key.to_owned(), found, allowed: allowed.to_owned() };
        FetchError::Failed { path: format!("{}{path}", self.base), why }
    }
}

/// Sends one request over a connection of its own. The answer may have `left` bytes.
async fn ask(stream: TcpStream, host: &str, path: &str, left: usize) -> Result<Bytes, Trouble> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let driven = tokio::spawn(async move {
        // The sender reports how it ends.
        let _ended = connection.await;
    });
    let request = Request::get(path)
        .header(header::HOST, host)
        .header(header::ACCEPT, "application/json")
        .header(header::USER_AGENT, USER_AGENT)
        .header(header::CONNECTION, "close")
        .body(Empty::<Bytes>::new());
    let response = sender.send_request(request.expect("its parts have been read as parts of an address")).await?;
    let status = response.status();
    let answer = match status {
        StatusCode::OK => match Limited::new(response.into_body(), ANSWER_MAX.min(left)).collect().await {
            Ok(body) => Ok(body.to_bytes()),
            Err(why) if why.is::<LengthLimitError>() && left < ANSWER_MAX => Err(Trouble::TooMuch),
            Err(why) if why.is::<LengthLimitError>() => Err(Trouble::TooLong),
            Err(why) => Err(Trouble::Unread(why)),
        },
        StatusCode::TOO_MANY_REQUESTS => Err(Trouble::TooMany),
        _ if status.is_redirection() => {
            let to = response
                .headers()
                .get(header::LOCATION)
                .map_or("nowhere".to_owned(), |to| String::from_utf8_lossy(to.as_bytes()).chars().take(200).collect());
            Err(Trouble::Redirect { status: status.as_u16(), to })
        }
        _ => Err(Trouble::Status(status.as_u16())),
    };
    driven.abort();
    answer
}
