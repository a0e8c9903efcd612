//! The blocks of a window, made anew: only what they are, not their bytes, is recorded.

use crate::reality::facts::{BlockFact, Decision, Facts};
use dposlab::{
    actors::{
        ActorId, Delegate, Effect, Event, Input, Message, NodeId, Role, SimTime,
        message::{NetworkState, NetworkStatus, RoundView},
    },
    ledger::{BlockTree, Link, Rules},
    protocol::{
        Block, BlockDraft, BlockId, Height, KeyPair, NetworkConfig, Slot, Timestamp,
        crypto::CryptoMode::Real,
        genesis::Genesis,
        milestones::Milestones,
        network::{Exceptions, Network as NetworkNames},
    },
};
use serde_json::{Value, json};
use std::{collections::BTreeMap, fs, path::Path, sync::Arc, time::Duration};

/// The network that was recorded: its configuration and the keys of its delegates.
pub struct Network {
    names: NetworkNames,
    milestones: Milestones,
    genesis: Genesis,
    keys: BTreeMap<String, KeyPair>,
}

impl Network {
    /// Reads the file; `None` if there is none.
    pub fn load(file: &Path) -> Result<Option<Self>, String> {
        if !file.exists() {
            return Ok(None);
        }
        let text = fs::read_to_string(file).map_err(|why| why.to_string())?;
        let json: Value = serde_json::from_str(&text).map_err(|why| why.to_string())?;
        let config = &json["config"];
        let names = NetworkNames::from_json(&config["network"]).map_err(|why| format!("config.network: {why}"))?;
        let milestones =
            Milestones::from_json(&config["milestones"]).map_err(|why| format!("config.milestones: {why}"))?;
        let genesis = Genesis::from_json(&config["genesisBlock"], &names, &milestones, Exceptions::none(), Real)
            .map_err(|why| format!("config.genesisBlock: {why}"))?;
        let secrets = json["secrets"].as_array().map(Vec::as_slice).unwrap_or_default();
        let owned: BTreeMap<String, KeyPair> = secrets
            .iter()
            .filter_map(|secret| secret.as_str().map(|text| KeyPair::from_passphrase(text, Real)))
            .map(|keys| (keys.public().to_string(), keys))
            .collect();
        let delegates = json["delegates"].as_array().map(Vec::as_slice).unwrap_or_default();
        let named = delegates.iter().filter_map(|delegate| {
            let (name, key) = (delegate["name"].as_str()?, delegate["key"].as_str()?);
            Some((name.to_owned(), owned.get(key)?.clone()))
        });
        Ok(Some(Self { names, milestones, genesis, keys: named.collect() }))
    }

    /// An empty block, so many seconds after its slot began.
    fn forge(&self, height: u32, (slot, later): (u32, u32), previous: BlockId, keys: &KeyPair) -> Block {
        let milestone = self.milestones.at(Height(height));
        let draft = BlockDraft {
            timestamp: Timestamp(slot * milestone.blocktime + later),
            height: Height(height),
            previous: Some(previous),
            reward: milestone.reward,
            version: milestone.block.version,
            transactions: Vec::new(),
        };
        Block::forge(draft, keys, &self.milestones)
    }

    /// The id of an empty block that the recorded delegate makes on the recorded parent.
    pub fn made_again(&self, block: &BlockFact) -> Option<String> {
        let (keys, previous) = (self.keys.get(&block.delegate)?, block.previous.parse().ok()?);
        Some(self.forge(block.height, (block.slot, 0), previous, keys).id.to_string())
    }

    /// Any delegate's keys.
    fn someone(&self) -> Option<&KeyPair> {
        self.keys.values().next()
    }
}

/// The blocks of a window in a tree.
pub struct Chain<'a> {
    network: &'a Network,
    pub tree: Arc<BlockTree>,
    /// By the id in the recording.
    links: BTreeMap<String, Arc<Link>>,
}

impl<'a> Chain<'a> {
    /// The largest part of a window's blocks that hangs together, on as many blocks as there were below it.
    ///
    /// # Panics
    /// The network cannot be made.
    pub fn new(network: &'a Network, facts: &Facts) -> Self {
        let root = root(facts);
        let mut made: Vec<Arc<Block>> = Vec::new();
        let mut by_id: BTreeMap<String, Arc<Block>> = BTreeMap::new();
        if let (Some((base, height, slot)), Some(someone)) = (&root, network.someone()) {
            let mut previous = network.genesis.block.id;
            for below in 2..=*height {
                // One in each slot, so that the last one is before those that follow it.
                let block = Arc::new(network.forge(below, (slot - 1 - (height - below), 0), previous, someone));
                previous = block.id;
                made.push(block);
            }
            let last = made.last().cloned().unwrap_or_else(|| Arc::new(network.genesis.block.clone()));
            by_id.insert(base.clone(), last);
            let mut ascending: Vec<(&String, &BlockFact)> = facts.blocks.iter().collect();
            ascending.sort_by_key(|(_, block)| block.height);
            for (id, block) in ascending {
                let (Some(parent), Some(keys)) = (by_id.get(&block.previous), network.keys.get(&block.delegate)) else {
                    continue;
                };
                // Two blocks of one slot by one delegate differ in their transactions, which are not recorded: here in their time.
                let is_new = |block: &Block| made.iter().all(|other| other.id != block.id);
                let some = (0..).map(|later| network.forge(block.height, (block.slot, later), parent.id, keys));
                let block =
                    Arc::new(some.take(8).find(is_new).expect("no slot has more than two blocks of a delegate"));
                made.push(block.clone());
                by_id.insert(id.clone(), block);
            }
        }
        // Fees of transactions that are not recorded move the ranking of delegates, and with it who owns which slot.
        let exceptions = Exceptions {
            json: json!({}),
            blocks: made.iter().map(|block| block.id).collect(),
            blocks_transactions: made.iter().map(|block| (block.id, Vec::new())).collect(),
            ..Exceptions::default()
        };
        let config = NetworkConfig::new(
            network.names.clone(),
            network.milestones.clone(),
            exceptions,
            network.genesis.clone(),
            Real,
        );
        let mut rules = Rules { minimum_network_reach: facts.minimum_network_reach, ..Rules::reference() };
        // What is not recorded does not happen, and what is recorded happens at once.
        rules.node.rate_limits = false;
        rules.node.discovery = false;
        rules.node.retry_dropped_peers = false;
        // The recorded instants are those of its polls.
        rules.node.forging_poll_ms = 0;
        rules.node.health_check_percent = 0;
        rules.node.wake_ups_to_health_check = 1;
        let tree = BlockTree::new(Arc::new(config.expect("it belongs together")), Arc::new(rules));
        let tree = Arc::new(tree.expect("the genesis block registers all delegates"));
        let mut by_made: BTreeMap<BlockId, Arc<Link>> = BTreeMap::new();
        by_made.insert(tree.genesis().id(), tree.genesis().clone());
        for block in &made {
            let parent = block.header.previous.and_then(|previous| by_made.get(&previous)).expect("parents come first");
            let link = tree.extend(parent, block).unwrap_or_else(|why| panic!("a recorded block: {why}"));
            by_made.insert(block.id, link);
        }
        let links = by_id.into_iter().map(|(id, block)| (id, by_made[&block.id].clone())).collect();
        Self { network, tree, links }
    }

    /// Recorded blocks that are in the tree.
    pub fn blocks(&self) -> usize {
        self.links.len().saturating_sub(1)
    }

    /// The block of this recorded id.
    pub fn link(&self, id: &str) -> Option<&Arc<Link>> {
        self.links.get(id)
    }

    /// Whether a delegate forges when its relay tells it these counts; `None` of a delegate that is not known.
    pub fn forges(&self, delegate: &str, decision: &Decision) -> Option<bool> {
        let (genesis, node) = (self.tree.genesis(), NodeId(0));
        let keys = self.network.keys.get(delegate)?;
        let round = self.tree.applied(genesis).state.round().clone();
        let slot = round.next_slot_of(keys.public(), Slot(10))?;
        let now = SimTime::from_seconds(self.tree.slots().start(slot)) + Duration::from_secs(2);
        let view = RoundView { round, tip: genesis.id(), tip_height: genesis.height(), tip_slot: Slot(slot.0 - 1) };
        let state = NetworkState {
            status: match &*decision.status {
                "Default" => NetworkStatus::Default,
                "BelowMinimumPeers" => NetworkStatus::BelowMinimumPeers,
                "ColdStart" => NetworkStatus::ColdStart,
                "Test" => NetworkStatus::Test,
                other => panic!("decisions.status: found '{other}', allowed is a status of a relay"),
            },
            height: genesis.height(),
            tip: genesis.id(),
            reached: decision.in_quorum + decision.over_height + decision.forked,
            in_quorum: decision.in_quorum,
            level: decision.in_quorum,
            over_height: decision.over_height,
            forked: decision.forked,
        };
        let mut delegate = Delegate::new(node, Some(keys.clone()), self.tree.clone(), 0);
        let relay = ActorId { node, role: Role::Peer };
        let mut effects = Vec::new();
        delegate.step(now, Input::Start, &mut effects);
        delegate.step(now, Input::Message { from: relay, message: Message::Round(view.into()) }, &mut effects);
        let asks = |effect: &Effect, wanted: fn(&Message) -> bool| matches!(effect, Effect::Send { message, .. } if wanted(message));
        let wants_state = |message: &Message| matches!(message, Message::NetworkStateRequest);
        assert!(effects.iter().any(|effect| asks(effect, wants_state)), "it is its slot");
        effects.clear();
        delegate.step(now, Input::Message { from: relay, message: Message::NetworkState(state.into()) }, &mut effects);
        let wants_transactions = |message: &Message| matches!(message, Message::ForgingTransactionsRequest);
        let goes_on = effects.iter().any(|effect| asks(effect, wants_transactions));
        let suspended = |effect: &Effect| matches!(effect, Effect::Observe(Event::ForgingSuspended { .. }));
        assert_ne!(goes_on, effects.iter().any(suspended), "it forges or does not");
        Some(goes_on)
    }
}

/// The unknown block that most of the window's blocks stand on: its id, its height, and the first slot above it.
fn root(facts: &Facts) -> Option<(String, u32, u32)> {
    let mut on: BTreeMap<&str, (usize, u32, u32)> = BTreeMap::new();
    for id in facts.blocks.keys() {
        let ancestry = std::iter::successors(facts.blocks.get(id), |block| facts.blocks.get(&block.previous));
        let Some(lowest) = ancestry.last() else { continue };
        let (blocks, height, slot) = on.entry(&lowest.previous).or_insert((0, lowest.height - 1, lowest.slot));
        (*blocks, *height, *slot) = (*blocks + 1, *height, (*slot).min(lowest.slot));
    }
    let (id, (_, height, slot)) = on.into_iter().max_by_key(|(_, (blocks, ..))| *blocks)?;
    Some((id.to_owned(), height, slot))
}
