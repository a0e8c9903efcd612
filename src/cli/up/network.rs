//! The network that `dposlab up` runs: generated from a scenario and a seed, or loaded from a folder.

use super::progress::Progress;
use crate::{
    cli::Failure,
    files::{self, TEXT_LIMIT},
    ledger::{
        BlockTree, Link,
        import::{ImportProgress, import_and_tell},
        rules::Gossip,
    },
    protocol::{KeyPair, NetworkConfig, Slot, crypto::CryptoMode},
    scenario::{
        FaultDesk, Override, Scenario, ScenarioError, Testnet, testnet::NamedDelegate, vote_weights::VoteWeights,
        workload::WorkloadKind,
    },
    sim::{Plan, SeedTree},
};
use serde::Deserialize;
use std::{
    fs,
    ops::RangeInclusive,
    path::{self, Path},
    sync::Arc,
};

/// Slot lengths [s] in which delegates can forge, and which a person would wait for.
const BLOCKTIMES: RangeInclusive<u32> = 5..=3_600;

/// A network, the scenario that runs on it, and the keys of those who forge here.
pub(crate) struct UpNetwork {
    pub scenario: Scenario,
    /// On a loaded network only the forging delegates' keys are known.
    pub testnet: Testnet,
    pub tree: Arc<BlockTree>,
    pub seeds: SeedTree,
}

/// The file `--secrets` names: the passphrases of the delegates that forge.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Secrets {
    secrets: Vec<String>,
}

/// The scenario of `up` if no file is given: `delegates` delegates on the default network. With [`Gossip::Once`], transactions also go
/// straight to all nodes and are accepted in the order of their nonces, so the next forger knows each accepted transaction. Nodes
/// reconnect to peers that they lost, so a partition ends when its fault does.
///
/// # Errors
/// A value does not fit.
pub(crate) fn plain(delegates: u32, gossip: Gossip, set: &[Override]) -> Result<Scenario, ScenarioError> {
    let in_order = gossip == Gossip::Once;
    let gossip = toml::Value::try_from(gossip).expect("TOML has texts and tables");
    let text = format!(
        "version = 1\ndescription = \"a testnet\"\nrounds = 1\n[network]\ndelegates = {delegates}\ngossip = {gossip}\n\
         [rules.node]\ntransactions_in_order = {in_order}\nretry_dropped_peers = true\n"
    );
    Scenario::parse_with(&text, Path::new("dposlab up"), set)
}

/// Changes a scenario so that it can run live and be recorded. All signatures are real, because clients sign really. Paths of files
/// that are read during the run are absolute. Also returns true if the scenario asked for modelled signatures.
pub(crate) fn made_live(mut scenario: Scenario) -> (Scenario, bool) {
    let was_modelled = scenario.crypto == CryptoMode::Modelled;
    if was_modelled {
        scenario.crypto = CryptoMode::Real;
    }
    for workload in &mut scenario.workloads {
        if let WorkloadKind::Chain(chain) = &mut workload.kind
            && let Ok(absolute) = path::absolute(&chain.file)
        {
            chain.file = absolute.display().to_string();
        }
    }
    (scenario, was_modelled)
}

impl Secrets {
    /// Reads the file.
    ///
    /// # Errors
    /// It cannot be read or understood, or names a delegate twice.
    pub fn load(file: &Path) -> Result<Self, Failure> {
        let text = files::read_text(file, TEXT_LIMIT)
            .map_err(|why| Failure::usage(format!("--secrets {}: cannot be read: {why}", file.display())))?;
        Self::parse(&text, file)
    }

    /// Parses the text of such a file. Errors name `file`.
    ///
    /// # Errors
    /// As [`Secrets::load`].
    pub fn parse(text: &str, file: &Path) -> Result<Self, Failure> {
        let file = file.display();
        let Self { secrets } = serde_json::from_str(text).map_err(|why| {
            Failure::usage(format!("--secrets {file}: {why}; expected {{\"secrets\": [\"passphrase\", ...]}}"))
        })?;
        for (index, secret) in secrets.iter().enumerate() {
            if let Some(first) = secrets[..index].iter().position(|other| other == secret) {
                return Err(Failure::usage(format!(
                    "--secrets {file}: key 'secrets[{index}]': the same passphrase as secrets[{first}]; a delegate forges \
                     on one node"
                )));
            }
        }
        Ok(Self { secrets })
    }

    /// The number of nodes: one for each forging delegate, or one node without a delegate.
    pub fn nodes(&self) -> u32 {
        u32::try_from(self.secrets.len()).unwrap_or(u32::MAX).max(1)
    }
}

impl UpNetwork {
    /// The network that a scenario describes, under a seed.
    ///
    /// # Errors
    /// None for a scenario that was read.
    pub fn generate(scenario: Scenario, seeds: SeedTree) -> Result<Self, Failure> {
        let testnet = scenario.testnet(seeds);
        let tree = scenario.tree(testnet.config.clone(), seeds).map_err(Failure::broken)?;
        Ok(Self { scenario, testnet, tree, seeds })
    }

    /// The network of a folder, with the delegates of a file of passphrases. Errors name `file`.
    ///
    /// # Errors
    /// A file cannot be read or understood, a passphrase belongs to no delegate, or the scenario asks for something that a loaded
    /// network does not have.
    pub fn load(
        dir: &Path,
        secrets: Secrets,
        file: &Path,
        scenario: Scenario,
        seeds: SeedTree,
    ) -> Result<Self, Failure> {
        let config = NetworkConfig::load(dir, scenario.crypto).map_err(Failure::usage)?;
        Self::of(config, dir, secrets, file, scenario, seeds)
    }

    /// As [`UpNetwork::load`], with a configuration that is already read. Errors name `dir`.
    ///
    /// # Errors
    /// As [`UpNetwork::load`].
    pub fn of(
        config: NetworkConfig,
        dir: &Path,
        secrets: Secrets,
        file: &Path,
        scenario: Scenario,
        seeds: SeedTree,
    ) -> Result<Self, Failure> {
        check_loaded(&scenario, secrets.nodes())?;
        let blocktime = config.slots().blocktime();
        if !BLOCKTIMES.contains(&blocktime) {
            return Err(Failure::usage(format!(
                "--network-dir {}: milestones.json: key 'blocktime': found {blocktime}, allowed is {} to {} seconds: a \
                 block is forged in second 2 of its slot at the earliest, with 2 seconds left at the latest",
                dir.display(),
                BLOCKTIMES.start(),
                BLOCKTIMES.end()
            )));
        }
        let config = Arc::new(config);
        let tree = scenario
            .tree(config.clone(), seeds)
            .map_err(|why| Failure::usage(format!("--network-dir {}: genesisBlock.json: {why}", dir.display())))?;
        let secrets_file = file.display();
        let delegates = secrets
            .secrets
            .into_iter()
            .enumerate()
            .map(|(index, passphrase)| {
                delegate(&tree, passphrase)
                    .map_err(|why| Failure::usage(format!("--secrets {secrets_file}: key 'secrets[{index}]': {why}")))
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { scenario, testnet: Testnet::loaded(config, delegates), tree, seeds })
    }

    /// Imports the blocks of a file on top of genesis and returns the last. Reports its progress on standard error.
    ///
    /// # Errors
    /// The file cannot be read, or holds a block that cannot follow: the line and the reason are named.
    pub fn import(&self, file: &Path) -> Result<Arc<Link>, Failure> {
        let name = file.display();
        let unreadable = |why| Failure::usage(format!("--chain {name}: cannot be read: {why}"));
        let bytes = fs::metadata(file).map_or(0, |found| found.len());
        let mut broken = None;
        // Only some lines are in memory at a time: a chain may be larger than the memory.
        let lines = files::Lines::open(file).map_err(unreadable)?.map_while(|line| match line {
            Ok(line) => Some(line),
            Err(why) => {
                broken = Some(why);
                None
            }
        });
        let template = "{bar:40} {bytes}/{total_bytes} of the chain, {msg}, {eta} left";
        let mut progress = Progress::new(template, bytes, LONG_CHAIN);
        let imported = import_and_tell(&self.tree, lines, |ImportProgress { bytes, height }| {
            progress.tell(bytes, height, |percent| format!("--chain {}: {percent} % is read", file.display()));
        });
        drop(progress);
        match broken {
            Some(why) => Err(unreadable(why)),
            None => imported.map_err(|why| Failure::usage(format!("--chain {name}: {why}"))),
        }
    }

    /// The plan of a run that begins on the chain of `tip`, in a slot after that block.
    pub fn plan(&self, tip: Arc<Link>, first: Slot) -> Plan {
        self.scenario.plan_on(&self.testnet, self.tree.clone(), tip, first, self.seeds)
    }

    /// The desk that takes faults for a run of this plan.
    pub fn desk(&self, plan: &Plan) -> FaultDesk {
        FaultDesk::new(plan, self.testnet.clone())
    }
}

/// The size of a chain from which progress is reported without a terminal on standard error: some seconds of work.
const LONG_CHAIN: u64 = 8 << 20;

/// Checks a scenario on a loaded network: the folder fixes delegates and milestones, and there are no funded accounts.
fn check_loaded(scenario: &Scenario, nodes: u32) -> Result<(), Failure> {
    let network = &scenario.network;
    let refused = |keys: &str, why: &str| {
        Err(Failure::usage(format!("dposlab up: key {keys}: not allowed with --network-dir: {why}")))
    };
    if network.delegates != nodes {
        return refused("'network.delegates'", "those of --secrets forge, and without any there is one node");
    }
    if network.standby != 0 {
        return refused("'network.standby'", "the genesis block says who is registered");
    }
    if network.reward.is_some() || !network.milestones.is_empty() {
        return refused("'network.reward' or 'network.milestones'", "milestones.json says them");
    }
    if network.vote_weights != VoteWeights::Equal {
        return refused("'network.vote_weights'", "the genesis block says who votes for whom");
    }
    if scenario.has_clients() {
        let why = "clients need the funded accounts of a generated network";
        return refused("'workload', 'action', 'agents' or 'fault' by clients", why);
    }
    Ok(())
}

fn delegate(tree: &BlockTree, passphrase: String) -> Result<NamedDelegate, String> {
    let keys = KeyPair::from_passphrase(&passphrase, tree.config().crypto);
    let genesis = tree.applied(tree.genesis());
    match genesis.state.delegate_of(keys.public()) {
        Some(delegate) => Ok(NamedDelegate { username: delegate.username.to_string(), passphrase, keys }),
        None => Err(format!("its key {} is no delegate's of this network's genesis block", keys.public())),
    }
}
