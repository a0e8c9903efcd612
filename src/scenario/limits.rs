//! The checks of a scenario that its types do not make: ranges, names that must exist, and members that belong together.

use super::{
    Scenario,
    agents::{Agents, PAY_ROUNDS_LIMIT, STAKE_LIMIT, VOTERS_LIMIT},
    assertion::Assertion,
    file::StallRule,
    ground::{Ground, Thing, Usernames},
    mistake::{CheckResult, Mistake, amount, join, rate, ratio, share, within},
    script::Action,
    testnet::{ACCOUNTS_LIMIT, DELEGATES_LIMIT, Decoder, spare},
    vote_weights::{EXPONENT_LIMIT, VoteWeights},
    workload::{Amounts, Generate, Lengths, Trace, WALLETS_LIMIT, Workload, WorkloadKind},
};
use crate::{
    ledger::{Rules, rules::Gossip},
    protocol::Kind,
    sim::{
        Fault, Latency,
        fault::Nodes,
        network::{
            ByClass, Classes, ClassesError, Compact, NetworkModel, Regions, Sharing, latency::LATENCY_LIMIT_MS,
            topology::TopologyError,
        },
        processor::Processor,
    },
};
use std::collections::BTreeMap;

/// The version of the file format this build reads.
const VERSION: u32 = 1;
/// The largest number of rounds of a scenario.
const ROUNDS_LIMIT: u32 = 100_000;
/// The largest number of relays. Each takes some 8 KiB, and a block to all of them takes seconds.
pub(crate) const RELAYS_LIMIT: u32 = 1_000_000;
/// The greatest reward of a block: a million coins \[arktoshi\].
const REWARD_LIMIT: u64 = 100_000_000_000_000;
/// The largest error of a clock and the largest delay of a message, in milliseconds: eleven days.
const MILLISECONDS_LIMIT: u32 = 1_000_000_000;
/// The largest `network.block_bytes`.
const BLOCK_BYTES_LIMIT: u32 = 1_000_000_000;
/// The largest number of each part of the time for a block, in microseconds or nanoseconds.
const WORK_LIMIT: u32 = 1_000_000_000;
/// The largest number of cores of a node.
const CORES_LIMIT: u32 = 1_024;
/// The largest number of blocks that a lock can last beyond the shortest time, or that a transfer can wait.
const BLOCKS_LIMIT: u32 = 1_000_000;
/// The largest number of payments in a multipayment: its bytes have no room for more.
const PAYMENTS_LIMIT: u32 = 65_535;
/// The longest duration in seconds: a century.
pub const TIME_LIMIT: u32 = 3_200_000_000;

fn check_compact(compact: &Compact) -> CheckResult {
    within("network.compact.bytes", compact.bytes, 1..=BLOCK_BYTES_LIMIT)?;
    ratio("network.compact.share", compact.share)?;
    for (index, nodes) in compact.nodes.iter().enumerate() {
        let at = |part| format!("network.compact.nodes[{index}].{part}");
        ratio(&at("share"), nodes.share)?;
        ratio(&at("lacks"), nodes.lacks)?;
        nodes.missing.iter().try_for_each(|(share, _)| ratio(&at("missing"), *share))?;
        if nodes.missing.iter().all(|(_, weight)| *weight == 0) {
            return Err(Mistake::new(at("missing"), format!("{:?}", nodes.missing), "a weight above 0"));
        }
    }
    let sum: f64 = compact.nodes.iter().map(|nodes| nodes.share).sum();
    match (sum - 1.0).abs() < 1e-6 {
        true => Ok(()),
        false => {
            Err(Mistake::new("network.compact.nodes", format!("shares of {sum} together"), "shares of 1 together"))
        }
    }
}

impl Scenario {
    /// Returns true if a file with these values could be played. A scenario that was made or changed in code may name things that do not
    /// exist.
    pub fn is_allowed(&self) -> bool {
        self.check().is_ok()
    }

    /// Makes all checks that do not need a run.
    pub fn check(&self) -> CheckResult {
        within("version", self.version, VERSION..=VERSION)?;
        within("rounds", self.rounds, 1..=ROUNDS_LIMIT)?;
        self.check_ending()?;
        self.check_network()?;
        self.check_rules()?;
        for (index, fault) in self.faults.iter().enumerate() {
            self.check_fault(&format!("fault[{index}]"), fault)?;
        }
        for (index, action) in self.actions.iter().enumerate() {
            self.check_action(&format!("action[{index}]"), action)?;
        }
        for (index, workload) in self.workloads.iter().enumerate() {
            self.check_workload(&format!("workload[{index}]"), workload)?;
        }
        self.check_agents()?;
        self.check_vote_weights()?;
        for (index, assertion) in self.assertions.iter().enumerate() {
            let key = format!("assert[{index}]");
            self.check_assertion(&key, assertion)?;
        }
        Ok(())
    }

    fn check_assertion(&self, key: &str, assertion: &Assertion) -> CheckResult {
        assertion.claim().map_err(|(part, found, allowed)| Mistake::new(join(key, part), found, allowed))?;
        if let Some(rounds) = assertion.within_rounds {
            within(&format!("{key}.within_rounds"), rounds, 0..=ROUNDS_LIMIT)?;
        }
        if let Some(fault) = assertion.after_fault {
            if assertion.after.is_some() {
                return Err(Mistake::new(format!("{key}.after"), "it beside 'after_fault'", "one or the other"));
            }
            self.ground().check_number(&format!("{key}.after_fault"), fault, Thing::Fault)?;
        }
        match &assertion.after {
            Some(after) => self.ground().check_trigger(&format!("{key}.after"), after, true),
            None => Ok(()),
        }
    }

    fn check_ending(&self) -> CheckResult {
        match self.stall {
            Some(StallRule::Rounds(rounds)) => within("stall.rounds", rounds, 1..=ROUNDS_LIMIT)?,
            Some(StallRule::Seconds(seconds)) => within("stall.seconds", seconds, 1..=TIME_LIMIT)?,
            Some(StallRule::Off) | None => {}
        }
        self.time_limit_seconds.map_or(Ok(()), |seconds| within("time_limit_seconds", seconds, 1..=TIME_LIMIT))?;
        match self.max_events {
            Some(0) => Err(Mistake::new("max_events", 0, "1 or more")),
            _ => Ok(()),
        }
    }

    fn check_network(&self) -> CheckResult {
        let network = &self.network;
        within("network.delegates", network.delegates, 1..=DELEGATES_LIMIT)?;
        within("network.block_time_s", network.block_time_s, 1..=3_600)?;
        if let Some(Gossip::Push(peers)) = network.gossip {
            within("network.gossip.push", peers, 1..=u32::MAX)?;
        }
        if let Some(bytes) = network.vendor_field_bytes {
            within("network.vendor_field_bytes", bytes, 1..=255)?;
        }
        within("network.standby", network.standby, 0..=DELEGATES_LIMIT)?;
        within("network.relays", network.relays, 0..=RELAYS_LIMIT)?;
        if let Some(reward) = network.reward.filter(|reward| *reward > REWARD_LIMIT) {
            return Err(Mistake::new("network.reward", reward, format!("0 to {REWARD_LIMIT} arktoshi")));
        }
        self.check_milestones()?;
        let (model, nodes) = (&network.model, network.nodes());
        ratio("network.loss", model.loss)?;
        ratio("network.duplication", model.duplication)?;
        if let Some(reordering) = &model.reordering {
            ratio("network.reordering.chance", reordering.chance)?;
            within("network.reordering.by_ms", reordering.by_ms, 0..=MILLISECONDS_LIMIT)?;
        }
        if let (Some(gossip), Some(by_rules)) = (network.gossip, self.rules.get("gossip"))
            && toml::Value::try_from(gossip).ok().as_ref() != Some(by_rules)
        {
            return Err(Mistake::new(
                "network.gossip",
                "another value than 'rules.gossip'",
                "the same, or one of the two",
            ));
        }
        if model.bandwidth == Some(0) {
            return Err(Mistake::new("network.bandwidth", 0, "at least 1 byte a second"));
        }
        self.check_classes()?;
        self.check_access()?;
        model.topology.check(nodes).map_err(|TopologyError { part, found, allowed }| {
            Mistake::new(format!("network.topology.{part}"), found, allowed)
        })?;
        self.check_links()?;
        let clocks =
            model.clocks.as_ref().map_or(Ok(Vec::new()), |clocks| self.by_class("network.clocks", clocks, "table"))?;
        for (key, clocks) in clocks {
            within(&format!("{key}.offset_ms"), clocks.offset_ms, 0..=MILLISECONDS_LIMIT)?;
            within(&format!("{key}.drift_ppm"), clocks.drift_ppm, 0..=100_000)?;
        }
        if model.regions.is_some() && model.latency != Latency::default() {
            return Err(Mistake::new("network.latency", "it beside 'network.regions'", "one or the other"));
        }
        let Some(regions) = &model.regions else { return Ok(()) };
        if !regions.bandwidth.is_empty() && model.bandwidth.is_some() {
            return Err(Mistake::new("network.bandwidth", "it beside 'network.regions.bandwidth'", "one or the other"));
        }
        if !regions.bandwidth.is_empty() && model.sharing == Sharing::Fair {
            let found = "it beside 'network.regions.bandwidth'";
            return Err(Mistake::new("network.sharing", found, "'fifo' or 'one-at-a-time'"));
        }
        regions.check(nodes).map_err(|ClassesError { part, found, allowed }| {
            Mistake::new(format!("network.regions.{part}"), found, allowed)
        })
    }

    /// Checks the classes of nodes, which at least one list must use.
    fn check_classes(&self) -> CheckResult {
        let (model, nodes) = (&self.network.model, self.network.nodes());
        let Some(classes) = &model.classes else { return Ok(()) };
        let wrong =
            |ClassesError { part, found, allowed }| Mistake::new(format!("network.classes.{part}"), found, allowed);
        classes.check(nodes).map_err(wrong)?;
        let rates = [&model.uplink, &model.downlink].into_iter().flatten().any(ByClass::is_list);
        let times = model.processor.iter().any(ByClass::is_list) || model.clocks.iter().any(ByClass::is_list);
        if !rates && !times {
            let allowed = "it beside such a list of 'uplink', 'downlink', 'processor' or 'clocks'";
            return Err(Mistake::new("network.classes", "it without a list that has an entry for each class", allowed));
        }
        Ok(())
    }

    /// Checks uplinks, downlinks and processors.
    fn check_access(&self) -> CheckResult {
        let model = &self.network.model;
        for (key, rate) in [("network.uplink", &model.uplink), ("network.downlink", &model.downlink)] {
            let Some(rate) = rate else { continue };
            if rate.named().contains(&0) {
                return Err(Mistake::new(key, 0, "at least 1 byte a second"));
            }
            self.by_class(key, rate, "number")?;
        }
        if model.sharing != Sharing::default() && model.uplink.is_none() && model.downlink.is_none() {
            let found = "it without 'network.uplink' and 'network.downlink'";
            return Err(Mistake::new("network.sharing", found, "it beside one of them"));
        }
        within("network.block_bytes", model.block_bytes, 0..=BLOCK_BYTES_LIMIT)?;
        if let Some(overhead) = &model.overhead {
            within("network.overhead.block_ms", overhead.block_ms, 0..=LATENCY_LIMIT_MS)?;
            within("network.overhead.other_ms", overhead.other_ms, 0..=LATENCY_LIMIT_MS)?;
        }
        model.compact.as_ref().map_or(Ok(()), check_compact)?;
        let Some(processor) = &model.processor else { return Ok(()) };
        let all = self.by_class("network.processor", processor, "processor")?;
        all.into_iter().try_for_each(|(key, processor)| check_processor(&key, processor))
    }

    /// The values of a key that may differ by class, each with its path. Fails if their number differs from the number of classes.
    fn by_class<'a, T>(&self, key: &str, values: &'a ByClass<T>, entry: &str) -> Result<Vec<(String, &'a T)>, Mistake> {
        let ByClass::Each(each) = values else {
            return Ok(values.named().iter().map(|one| (key.to_owned(), one)).collect());
        };
        let NetworkModel { classes, regions, .. } = &self.network.model;
        let count = match (classes.as_ref().map(Classes::count), regions.as_ref().map(Regions::count)) {
            (Some(count), _) => Ok((count, "network.classes")),
            (None, Some(count)) => Ok((count, "network.regions")),
            (None, None) => Err(format!("one {entry}, for there are no 'network.classes' and no 'network.regions'")),
        };
        let allowed = match count {
            Ok((count, _)) if count == each.len() => {
                return Ok((0..).zip(each).map(|(at, one): (usize, _)| (format!("{key}[{at}]"), one)).collect());
            }
            Ok((count, of)) => format!("one {entry}, or a list of {count}, the number of '{of}'"),
            Err(none) => none,
        };
        Err(Mistake::new(key, format!("a list of {}", each.len()), allowed))
    }

    /// Checks that each direction of a link has at most one latency of its own, and that the topology has the link.
    fn check_links(&self) -> CheckResult {
        let (model, ground) = (&self.network.model, self.ground());
        if model.links.is_empty() {
            return Ok(());
        }
        let nodes = self.network.nodes();
        let mut given: BTreeMap<(u32, u32), usize> = BTreeMap::new();
        for (index, link) in model.links.iter().enumerate() {
            let (part, directions) = link.directions().map_err(|(part, found, allowed)| {
                Mistake::new(join(&format!("network.links[{index}]"), part), found, allowed)
            })?;
            let key = format!("network.links[{index}].{part}");
            for (from, to) in directions {
                ground.check_pair(&key, (from, to))?;
                // The links of a random graph depend on the seed, so a link with a latency may exist under some seeds only.
                if model.topology.has_link(nodes, from, to) == Some(false) {
                    return Err(Mistake::new(key, format!("nodes {from} and {to}"), "a link of the topology"));
                }
                if let Some(before) = given.insert((from, to), index) {
                    let found = format!("the link from {from} to {to}, as network.links[{before}]");
                    return Err(Mistake::new(key, found, "each direction of a link once"));
                }
            }
        }
        Ok(())
    }

    /// Checks that milestones ascend, and that the number of delegates changes only where a round begins. Source: consensus.md 1.1.
    fn check_milestones(&self) -> CheckResult {
        let network = &self.network;
        let (mut last, mut first, mut seats) = (1_u32, 1, network.delegates);
        for (index, change) in network.milestones.iter().enumerate() {
            let key = |name: &str| format!("network.milestones[{index}].{name}");
            within(&key("height"), change.height, last.saturating_add(1)..=u32::MAX)?;
            last = change.height;
            if change.reward.is_none() && change.delegates.is_none() {
                let key = format!("network.milestones[{index}]");
                return Err(Mistake::new(key, "a height alone", "a reward, a number of delegates, or both"));
            }
            if let Some(reward) = change.reward.filter(|reward| *reward > REWARD_LIMIT) {
                return Err(Mistake::new(key("reward"), reward, format!("0 to {REWARD_LIMIT} arktoshi")));
            }
            let Some(delegates) = change.delegates else { continue };
            within(&key("delegates"), delegates, 1..=network.delegates + network.standby)?;
            if delegates != seats {
                if !(change.height - first).is_multiple_of(seats) {
                    let allowed = format!("a multiple of {seats} after {first}, where a round begins");
                    return Err(Mistake::new(key("height"), change.height, allowed));
                }
                (first, seats) = (change.height, delegates);
            }
        }
        Ok(())
    }

    fn check_rules(&self) -> CheckResult {
        use crate::ledger::rules::RulesError;
        let rules = Rules::from_toml(&self.rules).map_err(|error| match error {
            RulesError::Unknown { key, allowed } => Mistake::new(format!("rules.{key}"), "no such rule", allowed),
            RulesError::NotAllowed { key, found, allowed } => Mistake::new(format!("rules.{key}"), found, allowed),
        })?;
        let changes = self.network.milestones.iter().position(|change| change.delegates.is_some());
        if let Some(index) = changes.filter(|_| rules.ledger.slots_a_turn > 1) {
            let key = format!("network.milestones[{index}].delegates");
            let allowed = "no other number of delegates where rules.ledger.slots_a_turn is more than 1";
            return Err(Mistake::new(key, self.network.milestones[index].delegates.unwrap_or_default(), allowed));
        }
        if self.network.model.compact.is_some() && self.network.gossip.unwrap_or(rules.gossip) != Gossip::Announce {
            let found = "it beside a gossip that pushes blocks";
            return Err(Mistake::new("network.compact", found, "it beside network.gossip = \"announce\""));
        }
        // A delegate that waits this long and needs this much time left never forges.
        let node = &rules.node;
        let (found, least) = (self.network.block_time_s, node.settling_s.saturating_add(node.least_seconds_left));
        if found < least {
            let allowed = format!("{least} or more: rules.node.settling_s and rules.node.least_seconds_left together");
            return Err(Mistake::new("network.block_time_s", found, allowed));
        }
        Ok(())
    }

    fn check_fault(&self, key: &str, fault: &Fault) -> CheckResult {
        self.ground().check_fault(key, fault)
    }

    /// Checks the names and numbers in a transaction of the script, and that its members belong to its kind.
    fn check_action(&self, key: &str, action: &Action) -> CheckResult {
        let (ground, at) = (self.ground(), |part: &str| format!("{key}.{part}"));
        within(&at("height"), action.height, 0..=self.last_height().0)?;
        ground.check_number(&at("node"), action.node, Thing::Node)?;
        ground.check_actor(&at("by"), &action.by)?;
        if let Some(to) = &action.to {
            ground.check_actor(&at("to"), to)?;
        }
        if let Some(found) = action.amount {
            amount(&at("amount"), found, 1)?;
        }
        if let Some(found) = action.fee {
            amount(&at("fee"), found, 0)?;
        }
        within(&at("blocks"), action.blocks, 0..=BLOCKS_LIMIT)?;
        if action.payments > 0 {
            within(&at("payments"), action.payments, 2..=PAYMENTS_LIMIT)?;
        }
        if let Some(text) = action.vendor_field.as_ref().filter(|text| !(1..=255).contains(&text.len())) {
            return Err(Mistake::new(at("vendor_field"), format!("{} bytes", text.len()), "1 to 255 bytes"));
        }
        for (index, signer) in action.signers.iter().enumerate() {
            let of = u32::from(action.owners());
            ground.check_number(&at(&format!("signers[{index}]")), (*signer).into(), Thing::Owner { of })?;
        }
        action.idle().map_or(Ok(()), |(part, found, allowed)| Err(Mistake::new(at(part), found, allowed)))
    }

    /// Checks the members whose types allow more than a workload does.
    fn check_workload(&self, key: &str, workload: &Workload) -> CheckResult {
        self.ground().check_span(key, &workload.from, workload.until.as_ref())?;
        if let Some(nodes) = workload.nodes() {
            self.ground().check_nodes(&format!("{key}.nodes"), nodes, Thing::Node)?;
            Ground::check_somebody(&format!("{key}.nodes"), nodes)?;
        }
        match &workload.kind {
            WorkloadKind::Generate(generate) => {
                rate(&format!("{key}.per_second"), generate.per_second)?;
                within(&format!("{key}.wallets"), generate.wallets, 1..=WALLETS_LIMIT)?;
                let Generate { funding, mix, amount, fee, vendor_field, .. } = generate;
                check_drawn(key, *funding, mix, [(amount, "amount"), (fee, "fee")], vendor_field.as_ref())
            }
            WorkloadKind::Trace(trace) => {
                let Trace { funding, mix, amount, fee, vendor_field, .. } = trace;
                if let Some(wallets) = trace.wallets {
                    within(&format!("{key}.wallets"), wallets, 1..=WALLETS_LIMIT)?;
                }
                check_drawn(key, *funding, mix, [(amount, "amount"), (fee, "fee")], vendor_field.as_ref())?;
                trace.check().map_err(|why| {
                    Mistake::new(format!("{key}.file"), format!("'{}': {why}", trace.file), "a CSV file of a load")
                })
            }
            WorkloadKind::List(list) => {
                rate(&format!("{key}.per_second"), list.per_second)?;
                let decoder = Decoder::of(self.origin());
                for (index, text) in list.transactions.iter().enumerate() {
                    let bytes = hex::decode(text).map_err(|why| why.to_string());
                    bytes.and_then(|bytes| decoder.check(&bytes).map_err(|why| why.to_string())).map_err(|why| {
                        let (key, allowed) =
                            (format!("{key}.transactions[{index}]"), "the bytes of a transaction in hex");
                        Mistake::new(key, format!("'{text}': {why}"), allowed)
                    })?;
                }
                match list.transactions.is_empty() {
                    true => Err(Mistake::new(format!("{key}.transactions"), "an empty list", "at least one")),
                    false => Ok(()),
                }
            }
            WorkloadKind::Chain(chain) => chain.check(&Decoder::of(self.origin())).map_err(|why| {
                let allowed = "a chain of blocks whose transactions this network can decode";
                Mistake::new(format!("{key}.file"), format!("'{}': {why}", chain.file), allowed)
            }),
        }
    }

    /// Checks each group of agents, their numbers of voters and coins together, and that no delegate is in two groups.
    fn check_agents(&self) -> CheckResult {
        let ground = self.ground();
        let (mut voters, mut stake, mut group_of) = (0_u32, 0_u32, BTreeMap::new());
        for (index, agents) in self.agents.iter().enumerate() {
            let at = |part: &str| format!("agents[{index}].{part}");
            within(&at("voters"), agents.voters, 0..=VOTERS_LIMIT - voters)?;
            within(&at("stake"), agents.stake, 0..=STAKE_LIMIT - stake)?;
            (voters, stake) = (voters + agents.voters, stake + agents.stake);
            check_group(&ground, &at, agents)?;
            for node in agents.delegates.iter().flat_map(|delegates| ground.numbers_of(delegates)) {
                if let Some(before) = group_of.insert(node, index) {
                    let found = format!("node {node}, which is in agents[{before}]");
                    return Err(Mistake::new(at("delegates"), found, "each delegate in one group"));
                }
            }
            let kind = agents.policy.name();
            let is_voted_for = |other: &Agents| other.policy.name() == kind && other.delegates.is_some();
            if agents.voters > 0 && agents.policy.votes_within() && !self.agents.iter().any(is_voted_for) {
                let (found, allowed) =
                    ("none", format!("a delegate in this or another group of '{kind}': its voters vote for no other"));
                return Err(Mistake::new(at("delegates"), found, allowed));
            }
        }
        Ok(())
    }

    /// Checks that each delegate has one vote weight, and that there are enough coins for all of them.
    fn check_vote_weights(&self) -> CheckResult {
        let delegates = (self.network.delegates + self.network.standby) as usize;
        match &self.network.vote_weights {
            VoteWeights::Equal => Ok(()),
            VoteWeights::Zipf(exponent) => match (0.0..=EXPONENT_LIMIT).contains(exponent) {
                true => Ok(()),
                false => Err(Mistake::new("network.vote_weights.zipf", exponent, format!("0 to {EXPONENT_LIMIT}"))),
            },
            VoteWeights::List(weights) => {
                let (key, spare) = ("network.vote_weights.list", spare(&self.agents));
                let sum: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
                if weights.len() != delegates {
                    let found = format!("{} weights", weights.len());
                    return Err(Mistake::new(key, found, format!("{delegates}, one for each delegate")));
                }
                match (1..=u128::from(spare)).contains(&sum) {
                    true => Ok(()),
                    false => {
                        let allowed = format!("1 to {spare}, the coins that accounts and agents leave");
                        Err(Mistake::new(key, format!("{sum} arktoshi in all"), allowed))
                    }
                }
            }
        }
    }

    /// Returns the things that its faults can name.
    fn ground(&self) -> Ground<'static> {
        let network = &self.network;
        Ground {
            nodes: network.nodes(),
            forgers: network.nodes() - network.relays,
            usernames: Usernames::Numbered(network.delegates + network.standby),
            accounts: ACCOUNTS_LIMIT,
            faults: self.faults.len() as u32,
            rounds: self.rounds,
            last_height: self.last_height().0,
        }
    }
}

/// Checks the parts of a workload that are drawn for each transaction.
fn check_drawn(
    key: &str,
    funding: u32,
    mix: &BTreeMap<Kind, f64>,
    amounts: [(&Amounts, &str); 2],
    vendor_field: Option<&Lengths>,
) -> CheckResult {
    within(&format!("{key}.funding"), funding, 1..=1_000_000)?;
    for (kind, part) in mix {
        share(&format!("{key}.mix, {kind:?}"), *part)?;
    }
    if !mix.is_empty() && mix.values().sum::<f64>() <= 0.0 {
        return Err(Mistake::new(format!("{key}.mix"), "nothing but 0", "a share above 0"));
    }
    for (amount, name) in amounts {
        amount.check(&format!("{key}.{name}"))?;
    }
    vendor_field.map_or(Ok(()), |lengths| lengths.check(&format!("{key}.vendor_field")))
}

fn check_processor(key: &str, processor: &Processor) -> CheckResult {
    within(&format!("{key}.cores"), processor.cores, 1..=CORES_LIMIT)?;
    let kinds = [("validate", processor.validate), ("forge", processor.forge), ("serve", processor.serve)];
    for (kind, work) in kinds {
        let at = |part| format!("{key}.{kind}.{part}");
        within(&at("block_us"), work.block_us, 0..=WORK_LIMIT)?;
        within(&at("transaction_us"), work.transaction_us, 0..=WORK_LIMIT)?;
        within(&at("signature_us"), work.signature_us, 0..=WORK_LIMIT)?;
        within(&at("byte_ns"), work.byte_ns, 0..=WORK_LIMIT)?;
        within(&at("round_end_us"), work.round_end_us, 0..=WORK_LIMIT)?;
    }
    Ok(())
}

/// Checks a group of agents alone. `at` gives the path of a key.
fn check_group(ground: &Ground<'_>, at: &dyn Fn(&str) -> String, agents: &Agents) -> CheckResult {
    if (agents.voters == 0) != (agents.stake == 0) {
        let found = format!("{} beside {} voters", agents.stake, agents.voters);
        return Err(Mistake::new(at("stake"), found, "coins for at least one voter, or neither"));
    }
    agents.spread.check(&at("spread"))?;
    if agents.spread.most() <= 0.0 {
        return Err(Mistake::new(at("spread"), "nothing but 0", "numbers above 0"));
    }
    ratio(&at("share"), agents.share)?;
    within(&at("pay_rounds"), agents.pay_rounds, 1..=PAY_ROUNDS_LIMIT)?;
    match &agents.delegates {
        // The delegates of a share depend on the seed: two groups could draw one delegate.
        Some(Nodes::Share(share)) => {
            let found = format!("a share of {}", share.share);
            return Err(Mistake::new(at("delegates"), found, "a list, or from and to"));
        }
        Some(delegates) => ground.check_nodes(&at("delegates"), delegates, Thing::Delegate)?,
        None if agents.share > 0.0 => return Err(Mistake::new(at("share"), agents.share, "0 without 'delegates'")),
        None => {}
    }
    if let Some(nodes) = &agents.nodes {
        ground.check_nodes(&at("nodes"), nodes, Thing::Node)?;
        Ground::check_somebody(&at("nodes"), nodes)?;
    }
    agents.policy.bounded_values().iter().try_for_each(|(name, value)| ground.check_value(&at(name), value))
}
