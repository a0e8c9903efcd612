//! `dposlab observe`: a chain from a file, a node or a testnet, judged from outside.

mod fetch;
mod text;

use super::{Failure, output, replay::planned, up::network::plain};
use crate::{
    check::observe::{ChainReport, Claims, Incident, NoIncident, Seats, observe},
    files::{self, CHAIN_LIMIT, TEXT_LIMIT, printable},
    ledger::{BlockTree, Rules, rules::Gossip},
    protocol::{Height, NetworkConfig, crypto::CryptoMode, network::NetworkError},
    report::session::folder::{Folder, FolderError},
    scenario::Override,
};
use clap::Args;
use fetch::{Node, RequestPace};
use serde_json::{Value, json};
use std::{
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
    sync::Arc,
};

/// Judge a chain from outside: which block breaks which rule, which delegate missed which slot, and how forks came about.
///
/// SOURCE is a file of blocks (JSON, one or many, or pages as an API serves them), a folder of such files, the folder of a testnet
/// that `up --data-dir` keeps, or the address of a node: http://HOST:PORT. Where the chain is shown from genesis on, all rules are
/// judged; else the output says which were not, and why (docs/observe.md). Exit code 0: no block breaks a rule; 1: one does; 2: the
/// source shows no blocks, or cannot be read.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Observe {
    /// A file, a folder, or http://HOST:PORT.
    source: String,
    /// The network: a folder with genesisBlock.json, milestones.json, network.json and exceptions.json, or a file with the answer of
    /// /api/node/configuration/crypto. A kept testnet has its own, and a node is asked.
    #[arg(long, value_name = "PATH")]
    network: Option<PathBuf>,
    /// Active delegates, for blocks whose state is not known: objects with a publicKey, in the order of their rank, each with a
    /// round or for all of them.
    #[arg(long, value_name = "FILE")]
    delegates: Option<PathBuf>,
    /// Ask a node for the blocks from this height on; if not given, for the newest 1,000.
    #[arg(long, value_name = "HEIGHT")]
    from: Option<u32>,
    /// Ask a node for the blocks up to this height; if not given, up to its last.
    #[arg(long, value_name = "HEIGHT")]
    to: Option<u32>,
    #[command(flatten)]
    pace: RequestPace,
    /// Replace a rule of the nodes, such as rules.ledger.minimum_lock_expiration=false. May be given again.
    #[arg(long, value_name = "PATH=VALUE")]
    set: Vec<Override>,
    /// Write what went wrong to this file, which must not be there yet, as a scenario for `dposlab run`.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  dposlab observe http://127.0.0.1:4003                          the newest 1,000 blocks of a node
  dposlab observe http://127.0.0.1:4003 --from 1 --out bad.toml  all of them, and the incident as a scenario
  dposlab observe chain.jsonl --network ./network                a file of blocks
  dposlab observe ./testnet                                      what `dposlab up --data-dir ./testnet` keeps";

/// The blocks, and the tree that judges them.
struct ObservedBlocks {
    tree: Arc<BlockTree>,
    claims: Claims,
    seats: Seats,
    /// The height of a block that left the node's chain before its transactions were fetched.
    gone: Option<Height>,
}

impl Observe {
    /// Judges the chain and prints the report.
    ///
    /// # Errors
    /// The source shows no blocks, or one of them breaks a rule, which standard output reports.
    pub fn run(self) -> Result<(), Failure> {
        if let Some(out) = self.out.as_deref().filter(|out| out.exists()) {
            return Err(Failure::usage(format!("--out {}: it is there already", out.display())));
        }
        let ObservedBlocks { tree, claims, seats, gone } = self.shown()?;
        let mut bar = text::bar();
        let report = observe(&tree, claims, &seats, |done, all| text::move_bar(&mut bar, done, all));
        bar.finish_and_clear();
        let report = report.map_err(|why| Failure::usage(self.named_delegates(why)))?;
        let gone = gone.map(|height| {
            let source = &self.source;
            Failure::usage(format!("observe {source}: the chain changed while it was read, from height {height} on"))
        });
        if report.blocks == 0 {
            let none = || Failure::usage(format!("observe {}: found no block, allowed is at least one", self.source));
            return Err(gone.unwrap_or_else(none));
        }
        // A scenario that cannot be written changes neither the report nor the exit code of a broken rule.
        let scenario = self.write(&report.incident);
        let told = scenario.as_ref().map_or_else(|why| Some(format!("none is written: {why}")), Clone::clone);
        self.tell(&tree, &report, told);
        match (gone, report.is_in_order(), scenario) {
            (Some(gone), _, _) => Err(gone),
            (None, true, Err(why)) => Err(Failure::usage(why)),
            (None, false, Err(why)) => Err(Failure::broken(why)),
            (None, true, Ok(_)) => Ok(()),
            (None, false, Ok(_)) => Err(Failure::Told),
        }
    }

    fn shown(&self) -> Result<ObservedBlocks, Failure> {
        let mut seats = Seats::default();
        if let Some(file) = &self.delegates {
            let named = |why: &dyn std::fmt::Display| Failure::usage(format!("--delegates {}: {why}", file.display()));
            let text = files::read_text(file, TEXT_LIMIT).map_err(|why| named(&why))?;
            seats.read(&text).map_err(|why| named(&why))?;
        }
        if self.source.contains("://") {
            return self.of_node(seats);
        }
        for (option, value) in [("--from", self.from), ("--to", self.to)] {
            if value.is_some() {
                let source = &self.source;
                return Err(Failure::usage(format!(
                    "{option}: found {source}, allowed with an address of a node only"
                )));
            }
        }
        let path = Path::new(&self.source);
        let (tree, claims) = match path.join("log").is_dir() {
            true => self.of_testnet(path)?,
            false => self.of_files(path)?,
        };
        Ok(ObservedBlocks { tree, claims, seats, gone: None })
    }

    fn of_node(&self, mut seats: Seats) -> Result<ObservedBlocks, Failure> {
        let named = |why: fetch::FetchError| Failure::usage(format!("observe {}: {why}", self.source));
        let mut node = Node::at(&self.source, &self.pace).map_err(named)?;
        let theirs = node.network().map_err(named)?;
        let config = match self.given_network()? {
            Some(config) if config.network.nethash != theirs.network.nethash => {
                let (found, allowed) = (&theirs.network.nethash, &config.network.nethash);
                let source = &self.source;
                return Err(Failure::usage(format!(
                    "observe {source}: found the network {found}, allowed is that of --network, {allowed}"
                )));
            }
            Some(config) => config,
            None => theirs,
        };
        let tree = self.tree(config)?;
        let mut claims = Claims::new(tree.config().clone());
        let mut bar = text::bar();
        let fetched = node.show(&tree, (self.from, self.to), &mut claims, &mut seats, |done, all| {
            text::move_bar(&mut bar, done, all);
        });
        bar.finish_and_clear();
        let gone = fetched.map_err(named)?;
        Ok(ObservedBlocks { tree, claims, seats, gone })
    }

    fn of_testnet(&self, dir: &Path) -> Result<(Arc<BlockTree>, Claims), Failure> {
        let named = |why: FolderError| Failure::usage(format!("observe {why}"));
        for (option, is_given) in [("--network", self.network.is_some()), ("--set", !self.set.is_empty())] {
            if is_given {
                let dir = dir.display();
                return Err(Failure::usage(format!("{option}: not allowed with {dir}, whose testnet has its own")));
            }
        }
        files::check_own_folder(dir).map_err(|why| Failure::usage(format!("observe {why}")))?;
        let folder = Folder::new(dir);
        let Some(session) = folder.session().map_err(named)? else {
            let dir = dir.display();
            return Err(Failure::usage(format!(
                "observe {dir}: found no network.json, allowed is a folder of `up --data-dir`"
            )));
        };
        let (network, plan) = planned(&dir.join("network.json"), &session)?;
        let mut claims = Claims::new(network.tree.config().clone());
        let origin = dir.display().to_string();
        let mut beginning: Vec<_> = std::iter::successors(Some(plan.tip.clone()), |link| link.parent()).collect();
        beginning.reverse();
        beginning.iter().for_each(|link| claims.take_block(origin.clone(), link.block().clone()));
        folder
            .blocks(network.tree.config(), |block| {
                claims.take_block(origin.clone(), Arc::new(block));
                Ok::<(), FolderError>(())
            })
            .map_err(named)?;
        Ok((network.tree.clone(), claims))
    }

    fn of_files(&self, path: &Path) -> Result<(Arc<BlockTree>, Claims), Failure> {
        let Some(config) = self.given_network()? else {
            return Err(Failure::usage(format!(
                "observe {}: --network is missing; a node tells it: curl http://HOST:4003/api/node/configuration/crypto > network.json",
                self.source
            )));
        };
        let tree = self.tree(config)?;
        let mut claims = Claims::new(tree.config().clone());
        let mut left = CHAIN_LIMIT;
        for file in self.files(path)? {
            let unreadable = |why| Failure::usage(format!("observe {}: {why}", file.display()));
            let text = files::read_text(&file, left).map_err(unreadable)?;
            left -= text.len() as u64;
            claims.read(&file.display().to_string(), &text).map_err(|why| Failure::usage(format!("observe {why}")))?;
        }
        Ok((tree, claims))
    }

    /// The file, or those of the folder, by name.
    fn files(&self, path: &Path) -> Result<Vec<PathBuf>, Failure> {
        if !path.is_dir() {
            return Ok(vec![path.to_owned()]);
        }
        let unreadable = |why| Failure::usage(format!("observe {}: {why}", path.display()));
        let entries = fs::read_dir(path).map_err(unreadable)?;
        let mut files = Vec::new();
        for entry in entries {
            let file = entry.map_err(unreadable)?.path();
            if file.extension().is_some_and(|ending| ending == "json" || ending == "jsonl") {
                files.push(file);
            }
        }
        files.sort();
        match files.is_empty() {
            true => Err(Failure::usage(format!(
                "observe {}: found no file of it ending in .json or .jsonl, allowed is at least one",
                path.display()
            ))),
            false => Ok(files),
        }
    }

    fn given_network(&self) -> Result<Option<NetworkConfig>, Failure> {
        let Some(path) = &self.network else { return Ok(None) };
        let named = |why: &dyn std::fmt::Display| Failure::usage(format!("--network {}: {why}", path.display()));
        if path.is_dir() {
            return NetworkConfig::load(path, CryptoMode::Real).map(Some).map_err(|why| named(&why));
        }
        let text = files::read_text(path, TEXT_LIMIT).map_err(|why| named(&why))?;
        let json: Value = serde_json::from_str(&text).map_err(|why| named(&format_args!("not JSON: {why}")))?;
        network_of(&json).map(Some).map_err(|why| named(&why))
    }

    fn tree(&self, config: NetworkConfig) -> Result<Arc<BlockTree>, Failure> {
        let tree = BlockTree::new(Arc::new(config), Arc::new(self.rules()?));
        tree.map(Arc::new).map_err(|why| Failure::usage(format!("--network: genesisBlock.json: {why}")))
    }

    fn rules(&self) -> Result<Rules, Failure> {
        if let Some(other) = self.set.iter().find(|one| !one.to_string().starts_with("rules.")) {
            return Err(Failure::usage(format!("--set {other}: allowed is a path that begins with 'rules.'")));
        }
        plain(51, Gossip::Once, &self.set).map(|scenario| scenario.rules(u32::MAX)).map_err(Failure::usage)
    }

    fn named_delegates(&self, why: impl std::fmt::Display) -> String {
        match &self.delegates {
            Some(file) => format!("--delegates {}: {why}", file.display()),
            None => format!("observe {}: {why}", self.source),
        }
    }

    /// Writes the scenario of the incident. Returns the outcome in words, or `None` without `--out`.
    fn write(&self, incident: &Incident) -> Result<Option<String>, String> {
        let Some(out) = &self.out else { return Ok(None) };
        let named = |why: &dyn std::fmt::Display| format!("--out {}: {why}", out.display());
        match incident.scenario() {
            Ok(text) => {
                let written = File::create_new(out).and_then(|mut file| file.write_all(text.as_bytes()));
                written.map_err(|why| named(&why))?;
                Ok(Some(format!("{}: dposlab run {}", out.display(), out.display())))
            }
            Err(why @ NoIncident::Nothing) => Ok(Some(format!("none is written: {why}"))),
            Err(why) => Err(named(&why)),
        }
    }

    fn tell(&self, tree: &BlockTree, report: &ChainReport, scenario: Option<String>) {
        let network = &tree.config().network;
        if !self.json {
            let lines = text::lines(&self.source, network, report, scenario.as_deref());
            lines.iter().for_each(|line| output::line(&printable(line)));
            return;
        }
        let mut json = json!({
            "source": self.source,
            "network": { "name": network.name, "nethash": network.nethash },
            "in_order": report.is_in_order(),
        });
        if let (Value::Object(json), Ok(Value::Object(report))) = (&mut json, serde_json::to_value(report)) {
            json.extend(report);
        }
        json["scenario"] = json!(scenario);
        // JSON does not escape all characters that control a terminal.
        let escaped = |letter: char| match letter.is_control() {
            true => format!("\\u{:04x}", u32::from(letter)),
            false => letter.to_string(),
        };
        output::line(&json.to_string().chars().map(escaped).collect::<String>());
    }
}

/// The network in the answer of `/api/node/configuration/crypto`, or in the `data` of that answer.
fn network_of(json: &Value) -> Result<NetworkConfig, NetworkError> {
    let told = json.get("data").unwrap_or(json);
    let part = |name: &str| Ok(told[name.trim_end_matches(".json")].clone());
    NetworkConfig::of(part, CryptoMode::Real)
}
