//! Chains beside the testnet, each a network and a run of its own, all on one runtime.

use super::{
    api::{WebhooksBeside, recording, write_state},
    network::{UpNetwork, made_live},
};
use crate::{
    actors::NodeId,
    api::{
        ApiContext, ApiError, Chaos, EventFeed, Funds, LabBoard, View, WebhookSettings,
        chains::{Chain, ChainAccount, ChainWish, Chains},
        webhooks::EventNumbers,
    },
    cli::memory,
    protocol::Slot,
    report::session::{KeptSession, Session},
    scenario::{Override, Scenario, Testnet},
    sim::{Live, Observer, Pace, SeedTree, Stage, TraceDigest},
};
use std::{
    collections::VecDeque,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::runtime::Handle;

/// The number of networks whose keys and genesis are cached: tests mostly ask for the same one.
const REMEMBERED: usize = 8;
/// The largest number of nodes of a chain.
const NODES_MAX: u32 = 300;

/// The maker of chains.
struct Maker {
    /// Hosts their runs.
    runtime: Handle,
    /// Hosts their webhooks.
    webhooks: WebhooksBeside,
    /// The seed of the testnet, which is the default of a chain.
    seed: u64,
    /// The beginning of the testnet. It names the files of a loaded network.
    session: Session,
    scenario: Scenario,
    testnet: Testnet,
    /// The cached networks with their seeds and scenarios, the last used one last.
    remembered: Mutex<VecDeque<(u64, String, Testnet)>>,
}

/// Chains beside a testnet.
pub(crate) fn beside(network: &UpNetwork, session: &Session, webhooks: WebhooksBeside, runtime: Handle) -> Chains {
    let (seed, session) = (session.seed, session.clone());
    let (scenario, testnet) = (network.scenario.clone(), network.testnet.clone());
    let maker = Maker { runtime, webhooks, seed, session, scenario, testnet, remembered: Mutex::default() };
    Chains::new(Arc::new(move |wish, beside| maker.make(wish, beside)))
}

impl Maker {
    fn make(&self, wish: &ChainWish, beside: &ApiContext) -> Result<Chain, ApiError> {
        let seed = wish.seed.unwrap_or(self.seed);
        let (scenario, _) = made_live(self.scenario(wish)?);
        if scenario.network.nodes() > NODES_MAX {
            let nodes = scenario.network.nodes();
            return Err(ApiError::Unprocessable(format!(
                "found {nodes} nodes, allowed are up to {NODES_MAX} on a chain"
            )));
        }
        memory::has_room().map_err(ApiError::Unprocessable)?;
        let seeds = SeedTree::new(seed);
        let testnet = self.testnet(seed, &scenario);
        let tree = scenario.tree(testnet.config.clone(), seeds).map_err(|why| ApiError::Internal(why.to_string()))?;
        let network = UpNetwork { scenario, testnet, tree, seeds };
        self.run(&network, seed, wish.pace.unwrap_or(Pace::Manual), beside)
    }

    fn scenario(&self, wish: &ChainWish) -> Result<Scenario, ApiError> {
        let wrong = |why: &dyn std::fmt::Display| ApiError::Unprocessable(why.to_string());
        let set = wish.set.iter().map(|set| set.parse::<Override>());
        let set = set.collect::<Result<Vec<_>, _>>().map_err(|why| wrong(&format_args!("key 'set': {why}")))?;
        match &wish.scenario {
            None if set.is_empty() => Ok(self.scenario.clone()),
            None => Scenario::parse_foreign(&self.scenario.to_toml(), Path::new("the testnet"), &set, &self.files())
                .map_err(|why| wrong(&why)),
            Some(text) => {
                Scenario::parse_foreign(text, Path::new("key 'scenario'"), &set, &[]).map_err(|why| wrong(&why))
            }
        }
    }

    /// The files that the testnet's own scenario names. A wish may keep these names and use no others.
    fn files(&self) -> Vec<&str> {
        self.scenario.files().collect()
    }

    /// The keys and the genesis of a network. For the testnet's own scenario and seed, those of the testnet.
    fn testnet(&self, seed: u64, scenario: &Scenario) -> Testnet {
        let is_loaded = self.testnet.accounts.is_empty();
        if *scenario == self.scenario && (seed == self.seed || is_loaded) {
            return self.testnet.clone();
        }
        let text = scenario.to_toml();
        let mut remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        let known = remembered.iter().position(|(of, by, _)| *of == seed && *by == text);
        let testnet = match known.and_then(|index| remembered.remove(index)) {
            Some((.., testnet)) => testnet,
            None => scenario.testnet(SeedTree::new(seed)),
        };
        remembered.push_back((seed, text, testnet.clone()));
        if remembered.len() > REMEMBERED {
            remembered.pop_front();
        }
        testnet
    }

    /// The beginning of a chain, for files that repeat it.
    fn session(&self, network: &UpNetwork, seed: u64) -> Session {
        let session = Session::new(seed, &network.scenario, 1, network.tree.config());
        match session.nethash == self.session.nethash {
            true => Session {
                network_dir: self.session.network_dir.clone(),
                secrets: self.session.secrets.clone(),
                ..session
            },
            false => session,
        }
    }

    fn run(&self, network: &UpNetwork, seed: u64, pace: Pace, beside: &ApiContext) -> Result<Chain, ApiError> {
        let plan = network.plan(network.tree.genesis().clone(), Slot(1));
        let others = (0..plan.nodes.len() as u32).map(NodeId);
        let view = View::new(NodeId(0), plan.tree.clone(), plan.tip.clone(), plan.start).with_neighbours(others);
        let view = view.with_latencies(&plan.network());
        let board = LabBoard::new(&plan).of_run(seed, "inline");
        let feed = EventFeed::new(plan.tree.slots(), &plan.tip);
        let chaos = Chaos::new(seed, NodeId(0), Arc::new(vec![view.clone()].into()));
        // Its events count from its own beginning.
        let (chaos_of_posts, numbers) = (Some(chaos.clone()), EventNumbers::of(1));
        let settings = WebhookSettings { chaos: chaos_of_posts, numbers, ..self.webhooks.settings.clone() };
        let webhooks = self.webhooks.hosts.host(view.clone(), settings)?;
        let digest = TraceDigest::default();
        let observers: Vec<Box<dyn Observer>> = vec![
            Box::new(view.clone()),
            Box::new(board.observer()),
            Box::new(feed.observer()),
            Box::new(digest.clone()),
            Box::new(webhooks.observer()),
        ];
        let session = self.session(network, seed);
        let kept = KeptSession::new(&session, &[], digest);
        let (live, handle) = Live::new(Stage::inline(&plan, observers), plan.tree.slots(), pace);
        let live = live.journalled(Some(Box::new(kept.clone())));
        self.runtime.spawn(async move { live.begun().await?.run().await });
        let context = ApiContext {
            funds: Some(Arc::new(Funds::new(network.testnet.accounts.clone(), network.seeds))),
            desk: Some(network.desk(&plan)),
            write_state: Some(write_state(session)),
            recording: Some(recording(kept)),
            board,
            feed,
            chaos,
            webhooks: Some(webhooks),
            ..beside.behind_the_same_server(view, handle)
        };
        let byte = plan.tree.config().network.pub_key_hash;
        Ok(Chain {
            origin: None,
            context,
            seed,
            delegates: network.scenario.network.delegates,
            nethash: plan.tree.config().network.nethash.to_string(),
            accounts: network.testnet.accounts.iter().map(|account| ChainAccount::of(account, byte)).collect(),
        })
    }
}
