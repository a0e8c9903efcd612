//! The network `dposlab up` runs: generated from a seed, or loaded from a folder.

use crate::{
    actors::SimTime,
    cli::Failure,
    files::{self, TEXT_LIMIT},
    ledger::{BlockTree, Link, Rules, import::import, rules::Gossip},
    protocol::{KeyPair, NetworkConfig, Slot},
    scenario::{
        Account, FaultDesk, Testnet,
        testnet::{NamedDelegate, rules_for},
    },
    sim::{NodePlan, Plan, SeedTree},
};
use serde::Deserialize;
use std::{ops::RangeInclusive, path::Path, sync::Arc};

/// Slot lengths [s] in which delegates can forge, and which a person would wait for.
const BLOCKTIMES: RangeInclusive<u32> = 5..=3_600;

/// A network and those of its delegates that forge here.
pub struct UpNetwork {
    pub tree: Arc<BlockTree>,
    /// The forging delegates, each on a node of its own.
    pub delegates: Vec<NamedDelegate>,
    /// Funded accounts; none on a loaded network.
    pub accounts: Vec<Account>,
}

/// The file `--secrets` names.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Secrets {
    secrets: Vec<String>,
}

impl UpNetwork {
    /// The network of a seed.
    ///
    /// # Errors
    /// None for the numbers of delegates the command line allows.
    pub fn generate(seeds: SeedTree, delegates: u32, gossip: Gossip) -> Result<Self, Failure> {
        let testnet = Testnet::generate(seeds, delegates);
        let tree = testnet.tree(rules(testnet.delegates.len(), gossip)).map_err(Failure::broken)?;
        Ok(Self { tree, delegates: testnet.delegates, accounts: testnet.accounts })
    }

    /// The network of a folder, with the delegates of a file of passphrases.
    ///
    /// # Errors
    /// A file cannot be read or understood, or a passphrase is no delegate's.
    pub fn load(dir: &Path, secrets: &Path, gossip: Gossip) -> Result<Self, Failure> {
        let config = NetworkConfig::load(dir).map_err(Failure::usage)?;
        let text = files::read_text(secrets, TEXT_LIMIT)
            .map_err(|why| Failure::usage(format!("--secrets {}: cannot be read: {why}", secrets.display())))?;
        Self::of(config, dir, &text, secrets, gossip)
    }

    /// [`UpNetwork::load`] of what was read; `dir` and `secrets` are named in errors.
    ///
    /// # Errors
    /// As [`UpNetwork::load`].
    pub fn of(config: NetworkConfig, dir: &Path, text: &str, secrets: &Path, gossip: Gossip) -> Result<Self, Failure> {
        let secrets_file = secrets.display();
        let Secrets { secrets } = serde_json::from_str(text).map_err(|why| {
            Failure::usage(format!("--secrets {secrets_file}: {why}; expected {{\"secrets\": [\"passphrase\", ...]}}"))
        })?;
        if secrets.is_empty() {
            return Err(Failure::usage(format!(
                "--secrets {secrets_file}: key 'secrets': found no passphrase, at least one delegate must forge"
            )));
        }
        for (index, secret) in secrets.iter().enumerate() {
            if let Some(first) = secrets[..index].iter().position(|other| other == secret) {
                return Err(Failure::usage(format!(
                    "--secrets {secrets_file}: key 'secrets[{index}]': the same passphrase as secrets[{first}]; a \
                     delegate forges on one node"
                )));
            }
        }
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
        let rules = Arc::new(rules(secrets.len(), gossip));
        let tree = BlockTree::new(Arc::new(config), rules)
            .map_err(|why| Failure::usage(format!("--network-dir {}: genesisBlock.json: {why}", dir.display())))?;
        let delegates = secrets
            .into_iter()
            .enumerate()
            .map(|(index, passphrase)| {
                delegate(&tree, passphrase)
                    .map_err(|why| Failure::usage(format!("--secrets {secrets_file}: key 'secrets[{index}]': {why}")))
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { tree: Arc::new(tree), delegates, accounts: Vec::new() })
    }

    /// Puts the blocks of a file on top of genesis, and answers the last.
    ///
    /// # Errors
    /// The file cannot be read, or holds a block that cannot follow: the line and the reason are named.
    pub fn import(&self, file: &Path) -> Result<Arc<Link>, Failure> {
        let name = file.display();
        let unreadable = |why| Failure::usage(format!("--chain {name}: cannot be read: {why}"));
        let mut broken = None;
        // One line in memory at a time: a chain may be large.
        let lines = files::Lines::open(file).map_err(unreadable)?.map_while(|line| match line {
            Ok(line) => Some(line),
            Err(why) => {
                broken = Some(why);
                None
            }
        });
        let imported = import(&self.tree, lines);
        match broken {
            Some(why) => Err(unreadable(why)),
            None => imported.map_err(|why| Failure::usage(format!("--chain {name}: {why}"))),
        }
    }

    /// Who takes faults for a run of this plan.
    pub fn desk(&self, plan: &Plan) -> FaultDesk {
        let config = self.tree.config().clone();
        FaultDesk::new(plan, Testnet::known(config, self.delegates.clone(), self.accounts.clone()))
    }

    /// The key each node forges with.
    pub fn forgers(&self) -> Vec<Option<KeyPair>> {
        self.delegates.iter().map(|delegate| Some(delegate.keys.clone())).collect()
    }
}

/// A run of this network that begins with a slot, each delegate on a node of its own.
pub fn plan(network: &UpNetwork, tip: Arc<Link>, start: Slot, seeds: SeedTree) -> Plan {
    let tree = network.tree.clone();
    let nodes = network.forgers().into_iter().map(|forger| NodePlan { forger, offline: Vec::new() }).collect();
    let start = SimTime::from_seconds(tree.slots().start(start));
    Plan::new(tree, tip, nodes, seeds, start)
}

/// Where blocks go straight to everybody, so do transactions, and they are taken in the order of their nonces: what one
/// node accepted, the next forger knows.
fn rules(delegates: usize, gossip: Gossip) -> Rules {
    let mut rules = Rules { gossip, ..rules_for(delegates) };
    rules.node.transactions_in_order = gossip == Gossip::Once;
    rules
}

fn delegate(tree: &BlockTree, passphrase: String) -> Result<NamedDelegate, String> {
    let keys = KeyPair::from_passphrase(&passphrase);
    let genesis = tree.applied(tree.genesis());
    match genesis.state.delegate_of(keys.public()) {
        Some(delegate) => Ok(NamedDelegate { username: delegate.username.to_string(), passphrase, keys }),
        None => Err(format!("its key {} is no delegate's of this network's genesis block", keys.public())),
    }
}
