//! Plays a scenario and collects its outcome.

use super::{
    ending::{Closing, Ended},
    file::Scenario,
    script::{Parties, Script},
    testnet::{Origin, Testnet},
};
use crate::{
    actors::SimTime,
    ledger::{BlockRejected, BlockTree, Link, Rules, rules::Gossip},
    protocol::{Height, NetworkConfig, Slot},
    sim::{
        Digest, Fault, FaultKind, NodePlan, Observer, Plan, PlannedSource, SeedTree, Source, TraceDigest, Trigger,
        World,
        network::Links,
        stage::{
            inline::InlineStage,
            ractor::{ActorDied, RactorStage},
        },
    },
};
use std::{iter, sync::Arc};
use tokio::runtime::Builder;

/// The stage that hosts the actors. It does not change the outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StageKind {
    /// One plain loop in one thread: about five times as fast.
    #[default]
    Inline,
    /// Every actor a ractor actor, as in `dposlab up`.
    Ractor,
}

/// The result of a run, beside the observations of its observers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Digest of all events.
    pub digest: Digest,
    /// The number of these events.
    pub events: u64,
    /// Inputs delivered to actors.
    pub delivered: u64,
    /// The instant the run ended at.
    pub end: SimTime,
    /// The reason for the end of the run.
    pub ended: Ended,
}

impl Scenario {
    /// The parts that decide the keys and the genesis block: scenarios with equal parts have the same network under a seed.
    pub fn origin(&self) -> Origin<'_> {
        Origin::of(&self.network, self.crypto, &self.agents)
    }

    /// The network of this scenario under a seed.
    pub fn testnet(&self, seeds: SeedTree) -> Testnet {
        Testnet::of(seeds, self.origin())
    }

    /// The rules of the nodes: those of the file, with a network reach that the topology can give, unless the file names
    /// one ([`Scenario::notes`] reports it).
    pub fn rules(&self, least_degree: u32) -> Rules {
        let mut rules = self.rules_of_file();
        if !self.names_reach() {
            let reach = rules.minimum_network_reach.map(|reach| reach.min(least_degree));
            rules.minimum_network_reach = reach.filter(|reach| *reach > 0);
        }
        let by_rules = self.rules.contains_key("gossip").then_some(rules.gossip);
        rules.gossip = self.network.gossip.or(by_rules).unwrap_or(Gossip::Once);
        rules
    }

    /// Returns notes on behaviour that a reader of the file would not expect: nodes forge with fewer peers than the rules demand, because
    /// the topology gives them no more, or nodes cannot forge, because the file demands more. `seeds` are those of the run, or `None` for
    /// runs with several seeds.
    pub fn notes(&self, seeds: Option<SeedTree>) -> Vec<String> {
        let Some(asked) = self.rules_of_file().minimum_network_reach else { return Vec::new() };
        let least = self.network.model.topology.least_degree(self.network.nodes());
        let Some(least) = least.or_else(|| seeds.map(|seeds| self.links(seeds).least_degree())) else {
            let note = match self.names_reach() {
                true => format!("a node with fewer neighbours than rules.minimum_network_reach, {asked}, never forges"),
                false => format!(
                    "minimum_network_reach is {asked}, or the neighbours of the node with the fewest; \
                     rules.minimum_network_reach sets it"
                ),
            };
            return vec![format!("the seed decides how many neighbours a node has: {note}")];
        };
        if asked <= least {
            return Vec::new();
        }
        let has = match least {
            1 => "1 neighbour".to_owned(),
            _ => format!("{least} neighbours"),
        };
        let note = match (self.names_reach(), self.rules(least).minimum_network_reach) {
            (true, _) => {
                format!("rules.minimum_network_reach is {asked}, and some node has {has}: such a node never forges")
            }
            (false, Some(reach)) => format!(
                "minimum_network_reach is {reach} in place of {asked}, for some node has {has}; \
                 rules.minimum_network_reach sets it"
            ),
            (false, None) => format!(
                "minimum_network_reach is off in place of {asked}, for some node has {has}; \
                 rules.minimum_network_reach sets it"
            ),
        };
        vec![note]
    }

    /// Names the rules that its nodes follow: the set of rules, and the rules that the file changes. A file that names no set has the
    /// reference's, with every command.
    pub fn rules_in_words(&self) -> String {
        let base = self.rules.get("base").and_then(toml::Value::as_str).unwrap_or(Rules::DEFAULT_BASE);
        let set: Vec<&str> = self.rules.keys().map(String::as_str).filter(|key| *key != "base").collect();
        match set.is_empty() {
            true => format!("rules '{base}'"),
            false => format!("rules '{base}', which set {}", set.join(", ")),
        }
    }

    fn rules_of_file(&self) -> Rules {
        Rules::from_toml(&self.rules).expect("the rules were checked when the file was read")
    }

    /// The number of slots of the first round, if none is missed. `within_rounds` and the stall rule count rounds of this length.
    pub fn round_slots(&self) -> u32 {
        self.network.delegates * self.slots_a_turn()
    }

    /// The number of slots that a delegate owns in a row: the rule `ledger.slots_a_turn`. Rules that do not set it are not parsed, because
    /// it is read after every slot.
    pub fn slots_a_turn(&self) -> u32 {
        let says_it = |(key, value): (&String, &toml::Value)| match key.as_str() {
            "ledger" => value.get("slots_a_turn").is_some(),
            key => key == "ledger.slots_a_turn",
        };
        if self.rules.iter().any(says_it) {
            // Some checks ask before the rules themselves are checked.
            return Rules::from_toml(&self.rules).map_or(1, |rules| rules.ledger.slots_a_turn);
        }
        let base = self.rules.get("base").and_then(toml::Value::as_str).unwrap_or(Rules::DEFAULT_BASE);
        Rules::named(base).map_or(1, |rules| rules.ledger.slots_a_turn)
    }

    fn names_reach(&self) -> bool {
        self.rules.contains_key("minimum_network_reach")
    }

    /// The block tree of a network under the rules of this scenario, with its genesis block.
    ///
    /// # Errors
    /// The genesis block does not fit the network. The genesis block of a generated network always does.
    pub fn tree(&self, config: Arc<NetworkConfig>, seeds: SeedTree) -> Result<Arc<BlockTree>, BlockRejected> {
        self.tree_on(config, &self.links(seeds))
    }

    fn tree_on(&self, config: Arc<NetworkConfig>, links: &Links) -> Result<Arc<BlockTree>, BlockRejected> {
        BlockTree::new(config, Arc::new(self.rules(links.least_degree()))).map(Arc::new)
    }

    fn links(&self, seeds: SeedTree) -> Links {
        self.network.model.topology.links(self.network.nodes(), seeds)
    }

    /// The plan of a run on that network. It begins with the first slot after genesis.
    pub fn plan(&self, testnet: &Testnet, seeds: SeedTree) -> Plan {
        let links = self.links(seeds);
        let tree = self.tree_on(testnet.config.clone(), &links);
        let tree = tree.expect("a generated genesis registers as many delegates as it needs");
        let tip = tree.genesis().clone();
        self.plan_with(testnet, tree, tip, Slot(1), seeds, links)
    }

    /// The plan of a run that begins on a chain, with a slot after its end. `tree` is this scenario's ([`Scenario::tree`]).
    pub fn plan_on(
        &self,
        testnet: &Testnet,
        tree: Arc<BlockTree>,
        tip: Arc<Link>,
        first: Slot,
        seeds: SeedTree,
    ) -> Plan {
        self.plan_with(testnet, tree, tip, first, seeds, self.links(seeds))
    }

    fn plan_with(
        &self,
        testnet: &Testnet,
        tree: Arc<BlockTree>,
        tip: Arc<Link>,
        first: Slot,
        seeds: SeedTree,
        links: Links,
    ) -> Plan {
        let forgers = testnet.delegates.iter().map(|delegate| Some(delegate.keys.clone()));
        // On a loaded network, perhaps no delegate's key is known.
        let relays = iter::repeat(None);
        let nodes =
            forgers.chain(relays).take(self.network.nodes() as usize).map(|forger| NodePlan { forger }).collect();
        let start = SimTime::from_seconds(tree.slots().start(first));
        let mut plan = Plan::new(tree, tip, nodes, seeds, start).on(self.network.model.clone(), links);
        plan.faults = self.faults.iter().map(|fault| with_addresses(fault, testnet)).collect();
        (plan.sources, plan.delegates_of_groups) = self.sources(&plan, testnet);
        self.act(&mut plan, testnet);
        plan
    }

    /// The client that acts by the script, if there is one.
    fn act(&self, plan: &mut Plan, testnet: &Testnet) {
        if self.actions.is_empty() {
            return;
        }
        let (tree, parties, actions) = (plan.tree.clone(), Parties::of(testnet), self.actions.clone());
        let make = move || -> Box<dyn Source> { Box::new(Script::new(tree.clone(), parties.clone(), &actions)) };
        plan.sources.push(PlannedSource {
            from: Trigger::Start,
            until: None,
            fault: None,
            name: "script".to_owned(),
            make: Arc::new(make),
            tally: crate::sim::source::Tally::default(),
        });
    }

    /// The height that ends the last round of the scenario.
    pub fn last_height(&self) -> Height {
        let (first, seats) = self.network.round(self.rounds, self.slots_a_turn());
        Height(first.saturating_add(seats - 1))
    }

    /// The number of slots of all rounds, with the delegates of their milestones, if none is missed: one for each height.
    pub fn nominal_slots(&self) -> u32 {
        self.last_height().0
    }

    /// Plays the scenario slot by slot until most live nodes stand at the end of the last round, or until the run is ended
    /// before ([`Ended`]). `progress` receives the height of the winning tip after each slot.
    ///
    /// # Errors
    /// On the ractor stage, an actor died.
    pub fn play(
        &self,
        plan: &Plan,
        stage: StageKind,
        observers: Vec<Box<dyn Observer>>,
        mut progress: impl FnMut(Height),
    ) -> Result<Outcome, ActorDied> {
        self.play_while(plan, stage, observers, |height| {
            progress(height);
            true
        })
    }

    /// As [`Scenario::play`], until the end of the first slot after which `wanted` returns false.
    ///
    /// # Errors
    /// As [`Scenario::play`].
    pub fn play_while(
        &self,
        plan: &Plan,
        stage: StageKind,
        observers: Vec<Box<dyn Observer>>,
        mut wanted: impl FnMut(Height) -> bool,
    ) -> Result<Outcome, ActorDied> {
        match stage {
            StageKind::Inline => {
                Ok(self.play_inline(plan, observers, |stage| wanted(stage.world().tips().winning().height())))
            }
            StageKind::Ractor => self.play_among_actors(plan, observers, wanted),
        }
    }

    /// As [`Scenario::play_while`], on the inline stage. `wanted` receives the whole run after each slot.
    pub fn play_inline(
        &self,
        plan: &Plan,
        mut observers: Vec<Box<dyn Observer>>,
        mut wanted: impl FnMut(&InlineStage) -> bool,
    ) -> Outcome {
        let trace = TraceDigest::default();
        observers.push(Box::new(trace.clone()));
        let mut closing = Closing::new(self, plan);
        let mut stage = InlineStage::new(plan, observers);
        // The last slot that the clock can represent also ends a run.
        let mut ended = Ended::Time;
        for end in slot_ends(plan) {
            stage.run_until(end);
            let goes_on = wanted(&stage);
            if let Some(so) = closing.look(end, stage.world(), goes_on) {
                ended = so;
                break;
            }
        }
        stage.end();
        outcome(&trace, stage.world(), ended)
    }

    fn play_among_actors(
        &self,
        plan: &Plan,
        mut observers: Vec<Box<dyn Observer>>,
        mut wanted: impl FnMut(Height) -> bool,
    ) -> Result<Outcome, ActorDied> {
        let trace = TraceDigest::default();
        observers.push(Box::new(trace.clone()));
        let mut closing = Closing::new(self, plan);
        among_actors(async {
            let mut stage = RactorStage::spawn(plan, observers).await.expect("each run has names of its own");
            let mut ended = Ended::Time;
            for end in slot_ends(plan) {
                stage.run_until(end).await?;
                let goes_on = wanted(stage.world().tips().winning().height());
                if let Some(so) = closing.look(end, stage.world(), goes_on) {
                    ended = so;
                    break;
                }
            }
            stage.end().await?;
            let outcome = outcome(&trace, stage.world(), ended);
            stage.stop().await;
            Ok(outcome)
        })
    }
}

/// The ends of all slots of a run.
fn slot_ends(plan: &Plan) -> impl Iterator<Item = SimTime> {
    let slots = plan.tree.slots();
    let first = slots.slot(plan.start.seconds());
    (first.0 + 1..=u32::MAX).map(move |slot| SimTime::from_seconds(slots.start(Slot(slot))))
}

fn outcome(trace: &TraceDigest, world: &World, ended: Ended) -> Outcome {
    let (delivered, end) = (world.delivered(), world.now());
    Outcome { digest: trace.digest(), events: trace.events(), delivered, end, ended }
}

/// The fault with the address in place of an account's name.
pub(super) fn with_addresses(fault: &Fault, testnet: &Testnet) -> Fault {
    let mut fault = fault.clone();
    let FaultKind::Strategy(planned) = &mut fault.kind else { return fault };
    for party in planned.parties_mut() {
        let number = party.strip_prefix("account_").and_then(|number| number.parse::<usize>().ok());
        if let Some(account) = number.and_then(|number| testnet.accounts.get(number.wrapping_sub(1))) {
            *party = account.keys.public().address(testnet.config.network.pub_key_hash).to_string();
        }
    }
    fault
}

/// Runs a future to its end on a runtime of one thread, whose order is always the same.
pub fn on_current_thread<T>(future: impl Future<Output = T>) -> T {
    block_on(Builder::new_current_thread().enable_all(), future)
}

/// As [`on_current_thread`], for a future that waits for actors only. The runtime then skips the check of sockets and timers, which it
/// would make for every message.
///
/// # Panics
/// The future asks for a socket or a timer.
pub fn among_actors<T>(future: impl Future<Output = T>) -> T {
    block_on(&mut Builder::new_current_thread(), future)
}

fn block_on<T>(runtime: &mut Builder, future: impl Future<Output = T>) -> T {
    runtime.build().expect("the operating system gives a process one event loop").block_on(future)
}
