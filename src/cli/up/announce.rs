//! The output of `dposlab up`: the network at the start, a line a block, and the node's log.

use super::network::UpNetwork;
use crate::{
    actors::{Event, NodeId, SimTime},
    api::LogTail,
    cli::output::Printer,
    ledger::{BlockTree, Link},
    protocol::Height,
    scenario::Scenario,
    sim::{Observer, Pace, SeedTree},
};
use serde_json::{Value, json};
use std::{
    net::SocketAddr,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

/// Prints the observed node's blocks. Clones share the count.
#[derive(Clone)]
pub(crate) struct Announcer {
    printer: Printer,
    json: bool,
    /// Blocks are counted and not printed.
    quiet: bool,
    node: NodeId,
    tree: Arc<BlockTree>,
    blocks: Arc<AtomicU64>,
    scenario: Option<Arc<OfScenario>>,
    /// Lines that wait until the network is up; `None` from then on.
    early: Arc<Mutex<Option<Vec<String>>>>,
}

/// The facts about a scenario that runs live.
struct OfScenario {
    name: String,
    description: String,
    notes: Vec<String>,
    rounds: u32,
    /// The height of the last round's last block.
    last: Height,
}

impl Announcer {
    /// Prints to `printer`, for people or as JSON.
    pub fn new(printer: Printer, json: bool, node: NodeId, tree: Arc<BlockTree>) -> Self {
        let early = Arc::new(Mutex::new(Some(Vec::new())));
        Self { printer, json, quiet: false, node, tree, blocks: Arc::default(), scenario: None, early }
    }

    /// Sets whether blocks are only counted and not printed.
    #[must_use]
    pub fn quiet(self, quiet: bool) -> Self {
        Self { quiet, ..self }
    }

    /// Also announces the scenario and the end of its last round.
    #[must_use]
    pub fn of_scenario(self, file: &Path, scenario: &Scenario, seeds: SeedTree, was_modelled: bool) -> Self {
        let mut notes = scenario.notes(Some(seeds));
        if was_modelled {
            notes.push("crypto is \"real\" in place of \"modelled\", for clients sign really".to_owned());
        }
        let of = OfScenario {
            name: file.display().to_string(),
            description: scenario.description.clone(),
            notes,
            rounds: scenario.rounds,
            last: scenario.last_height(),
        };
        Self { scenario: Some(Arc::new(of)), ..self }
    }

    /// Announces that the network is up, with all that a developer needs to use it. Returns the same as JSON for programs.
    pub fn ready(
        &self,
        network: &UpNetwork,
        seed: u64,
        pace: Pace,
        addresses: &[SocketAddr],
        log: Option<&Path>,
    ) -> Value {
        let ready = ready_json(network, seed, pace, addresses, log, self.scenario.as_deref());
        if self.json {
            self.printer.line(ready.to_string());
        } else {
            self.ready_text(network, seed, pace, addresses, log);
        }
        let early = self.early.lock().expect("no thread panics while holding it").take();
        early.into_iter().flatten().for_each(|line| self.printer.line(line));
        ready
    }

    /// Prints a line, or retains it until the network is up.
    fn tell(&self, line: String) {
        match &mut *self.early.lock().expect("no thread panics while holding it") {
            Some(early) => early.push(line),
            None => self.printer.line(line),
        }
    }

    fn ready_text(&self, network: &UpNetwork, seed: u64, pace: Pace, addresses: &[SocketAddr], log: Option<&Path>) {
        let config = network.tree.config();
        let symbol = &config.network.token;
        let forging = match network.testnet.delegates.len() {
            0 => "no delegate forges, and the chain stays as it is".to_owned(),
            _ => format!("{} delegates forging", network.scenario.network.delegates),
        };
        let mut lines = vec![format!("dposlab {}: {forging}", env!("CARGO_PKG_VERSION")), String::new()];
        for (node, address) in addresses.iter().enumerate() {
            let of = if addresses.len() > 1 { format!(" of {}", NodeId(node as u32)) } else { String::new() };
            lines.push(format!("  API      http://{address}/api{of}"));
        }
        lines.extend([
            format!("  network  {}, token {symbol}, nethash {}", config.network.name, config.network.nethash),
            format!("  seed     {seed}"),
            format!("  pace     {}", pace_in_words(pace)),
        ]);
        lines.extend(log.map(|log| format!("  log      {}", log.display())));
        if let Some(of) = &self.scenario {
            let about = if of.description.is_empty() { String::new() } else { format!(": {}", of.description) };
            lines.push(format!("  scenario {}{about}", of.name));
            lines.extend(of.notes.iter().map(|note| format!("  note     {note}")));
        }
        lines.push(String::new());
        if !network.testnet.accounts.is_empty() {
            lines.push("  Funded accounts (address, balance, passphrase), for tests only:".to_owned());
        }
        for account in &network.testnet.accounts {
            let address = account.keys.public().address(config.network.pub_key_hash);
            lines.push(format!("  {address}  {} {symbol}  {}", coins(account.balance.value()), account.passphrase));
        }
        lines.push(String::new());
        lines.push("  Ctrl-C stops it.".to_owned());
        self.printer.line(lines.join("\n"));
    }

    /// Announces that the network has stopped at this instant, or that it broke off if `at` is `None`.
    pub fn stopped(&self, at: Option<SimTime>) {
        let blocks = self.blocks.load(Ordering::Relaxed);
        let at = at.map(|at| at.seconds());
        self.printer.line(match (self.json, at) {
            (true, at) => json!({ "event": "stopped", "blocks": blocks, "timestamp": at }).to_string(),
            (false, Some(at)) => format!("stopped after {blocks} blocks, {} virtual seconds after the epoch", at.0),
            (false, None) => format!("broke off after {blocks} blocks"),
        });
    }

    fn block(&self, link: &Arc<Link>) {
        self.blocks.fetch_add(1, Ordering::Relaxed);
        if !self.quiet {
            self.tell(self.block_line(link));
        }
        if let Some(of) = &self.scenario
            && link.height() == of.last
        {
            self.last_round_is_over(of);
        }
    }

    fn block_line(&self, link: &Arc<Link>) -> String {
        let block = link.block();
        let header = &block.header;
        let slot = self.tree.slots().slot(header.timestamp);
        let applied = self.tree.applied(link);
        let delegate = applied.state.delegate_of(&header.generator);
        let forger = delegate.map_or_else(|| header.generator.to_string(), |delegate| delegate.username.to_string());
        let missed = link.missing().len();
        if self.json {
            let json = json!({
                "event": "block",
                "height": header.height,
                "id": block.id.to_string(),
                "timestamp": header.timestamp,
                "slot": slot,
                "forger": forger,
                "transactions": block.transactions.len(),
                "missed_slots": missed,
            });
            json.to_string()
        } else {
            let missed = if missed > 0 { format!("  after {missed} missed slots") } else { String::new() };
            format!(
                "block {:>7}  {:<20}  slot {slot:<7}  {forger:<12} {:>3} transactions{missed}",
                header.height,
                block.id.to_string(),
                block.transactions.len()
            )
        }
    }

    fn last_round_is_over(&self, OfScenario { rounds, last, .. }: &OfScenario) {
        self.tell(match self.json {
            true => json!({ "event": "last_round_over", "round": rounds, "height": last }).to_string(),
            false => format!("round {rounds}, the scenario's last, is over; it goes on as a testnet"),
        });
    }
}

impl Observer for Announcer {
    fn observe(&mut self, _: SimTime, node: NodeId, event: &Event) {
        if let Event::BlockApplied(link) = event
            && node == self.node
        {
            self.block(link);
        }
    }
}

/// Writes a node's log: one line an event, with virtual times. Clones write the same log.
#[derive(Clone)]
pub(crate) struct LogWriter {
    printer: Option<Printer>,
    tail: LogTail,
    node: NodeId,
    tree: Arc<BlockTree>,
}

impl LogWriter {
    /// Writes to `printer`, if there is one, and keeps the last lines in `tail` for the API.
    pub fn new(printer: Option<Printer>, tail: LogTail, node: NodeId, tree: Arc<BlockTree>) -> Self {
        Self { printer, tail, node, tree }
    }

    /// Writes a line.
    pub fn write(&self, now: SimTime, level: &str, text: String) {
        let time = self.tree.slots().human(now.micros() / 1_000).replace('T', " ");
        let time = time.trim_end_matches('Z');
        // A client's text may contain line breaks, and would look like lines of the log.
        let text = text.replace(char::is_control, "\u{fffd}");
        let line = format!("[{time}] {level:<5}: {text}");
        if let Some(printer) = &self.printer {
            printer.line(line.clone());
        }
        self.tail.push(line);
    }
}

impl Observer for LogWriter {
    fn observe(&mut self, now: SimTime, node: NodeId, event: &Event) {
        if node != self.node {
            return;
        }
        match event {
            Event::BlockForged(block) => {
                self.write(now, "INFO", format!("Forged new block {} at height {}", block.id, block.header.height));
            }
            Event::BlockReceived(block) => {
                let (id, height, count) = (block.id, block.header.height, block.transactions.len());
                self.write(now, "DEBUG", format!("Received block {id} at height {height} with {count} transactions"));
            }
            Event::BlockApplied(link) => {
                let applied = self.tree.applied(link);
                for key in link.missing() {
                    let name = applied.state.delegate_of(key).map_or("?", |delegate| &delegate.username);
                    self.write(now, "WARN", format!("Delegate {name} ({key}) missed its slot"));
                }
                self.write(now, "INFO", format!("Applied block {} at height {}", link.id(), link.height()));
                for transaction in &link.block().transactions {
                    let (id, kind) = (transaction.id(), transaction.kind().name());
                    self.write(now, "DEBUG", format!("Applied transaction {id} ({kind})"));
                }
                if let Some(end) = link.round_end() {
                    for key in &end.missed {
                        let name = applied.state.delegate_of(key).map_or("?", |delegate| &delegate.username);
                        self.write(now, "WARN", format!("Delegate {name} ({key}) forged nothing in its round"));
                    }
                    self.write(now, "INFO", format!("Starting round {}", end.created.number()));
                }
            }
            Event::BlockRefused(why) => self.write(now, "WARN", format!("Refused {why}")),
            Event::ForgingSuspended { reached, in_quorum } => {
                let why = format!("Not forging: {reached} peers reached, {in_quorum} of them in quorum");
                self.write(now, "WARN", why);
            }
            Event::PoolAdded(added) => {
                for transaction in added {
                    self.write(now, "DEBUG", format!("Transaction {} entered the pool", transaction.id()));
                }
            }
            Event::PoolRejected(rejected) => {
                for rejection in rejected {
                    let (id, error) = (rejection.transaction.id(), &rejection.error);
                    self.write(now, "WARN", format!("Transaction {id} refused: {error}"));
                }
            }
            Event::PoolRemoved(id) => self.write(now, "DEBUG", format!("Transaction {id} left the pool")),
            Event::PoolExpired(transaction) => {
                self.write(now, "DEBUG", format!("Transaction {} expired", transaction.id()));
            }
            Event::PoolEvicted(transaction) => {
                self.write(now, "DEBUG", format!("Transaction {} gave way to a dearer one", transaction.id()));
            }
            Event::PoolPurged(transaction) => {
                self.write(now, "DEBUG", format!("Transaction {} is not valid any more", transaction.id()));
            }
            Event::PoolReplaced(pending) => {
                self.write(now, "DEBUG", format!("The pool starts anew with {} transactions", pending.len()));
            }
            Event::BlockDisregarded(block) => {
                self.write(now, "INFO", format!("Disregarded block {} at height {}", block.id, block.header.height));
            }
            Event::BlockReverted(link) => {
                self.write(now, "WARN", format!("Reverted block {} at height {}", link.id(), link.height()));
            }
            Event::RolledBack { from, to, cause } => {
                let (from, to) = (from.height(), to.height());
                self.write(now, "WARN", format!("Rolled back from height {from} to {to}: {cause}"));
            }
            Event::HealthChecked { peers, forked } => {
                self.write(now, "INFO", format!("Health check: {forked} of {peers} peers are on other chains"));
            }
            Event::PeerAdded(peer) => self.write(now, "DEBUG", format!("Peer {peer} added")),
            Event::PeerRemoved(peer) => self.write(now, "DEBUG", format!("Peer {peer} removed")),
            Event::ForgerStarted { delegate } => self.write(now, "INFO", format!("Forger started for {delegate}")),
            Event::ForgerFailed { error } => self.write(now, "ERROR", format!("Forger failed: {error}")),
        }
    }
}

/// The message to programs when the network is up.
fn ready_json(
    network: &UpNetwork,
    seed: u64,
    pace: Pace,
    addresses: &[SocketAddr],
    log: Option<&Path>,
    scenario: Option<&OfScenario>,
) -> Value {
    let config = network.tree.config();
    let accounts = network.testnet.accounts.iter().map(|account| {
        json!({
            "address": account.keys.public().address(config.network.pub_key_hash).to_string(),
            "publicKey": account.keys.public().to_string(),
            "balance": account.balance,
            "passphrase": account.passphrase,
        })
    });
    let delegates = network.testnet.delegates.iter().map(|delegate| {
        json!({
            "username": delegate.username,
            "address": delegate.keys.public().address(config.network.pub_key_hash).to_string(),
            "publicKey": delegate.keys.public().to_string(),
            "passphrase": delegate.passphrase,
        })
    });
    let urls: Vec<String> = addresses.iter().map(|address| format!("http://{address}/api")).collect();
    json!({
        "event": "ready",
        "pid": std::process::id(),
        "version": env!("CARGO_PKG_VERSION"),
        "url": urls.first(),
        "urls": urls,
        "seed": seed,
        "pace": pace.to_string(),
        "nethash": config.network.nethash,
        "log": log.map(|log| log.display().to_string()),
        "scenario": scenario.map(|of| &of.name),
        "notes": scenario.map_or(&[][..], |of| &of.notes),
        "accounts": accounts.collect::<Vec<_>>(),
        "delegates": delegates.collect::<Vec<_>>(),
    })
}

fn pace_in_words(pace: Pace) -> String {
    match pace {
        Pace::Speed(speed) => format!("{speed} virtual seconds a real second"),
        Pace::Max => "as fast as it goes".to_owned(),
        Pace::Manual => "manual: POST /lab/advance {\"slots\": n}".to_owned(),
        Pace::OnDemand => "on demand: a transaction that comes in is in a block at once".to_owned(),
    }
}

/// Formats an amount in coins: thousands are separated, and a fraction follows the point.
fn coins(arktoshi: u64) -> String {
    let digits = (arktoshi / 100_000_000).to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    match arktoshi % 100_000_000 {
        0 => grouped,
        rest => format!("{grouped}.{rest:08}"),
    }
}
