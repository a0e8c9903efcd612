//! Checks that the types of a scenario do not make: ranges, names that must exist, members that go together.

use super::{
    Scenario,
    assertion::Claim,
    file::StallRule,
    ground::{Ground, Usernames},
    mistake::{Checked, Mistake, join, rate, ratio, within},
    testnet::{ACCOUNTS_LIMIT, DELEGATES_LIMIT},
    workload::{WALLETS_LIMIT, Workload, WorkloadKind},
};
use crate::{
    ledger::Rules,
    sim::{Fault, Trigger, fault::Nodes, network::topology::TopologyError},
};

/// The version of the file format this build reads.
const VERSION: u32 = 1;
/// Rounds a scenario can run.
const ROUNDS_LIMIT: u32 = 100_000;
/// Nodes a scenario can have.
pub const NODES_LIMIT: u32 = 10_000;
/// The greatest reward of a block: a million coins \[arktoshi\].
const REWARD_LIMIT: u64 = 100_000_000_000_000;
/// Seconds a duration can last: a century.
const TIME_LIMIT: u32 = 3_200_000_000;

impl Scenario {
    /// Returns true if a file that says this could be played: a scenario made or changed in code may name what there is not.
    pub fn is_allowed(&self) -> bool {
        self.check().is_ok()
    }

    /// Everything that can be said without playing it.
    pub fn check(&self) -> Checked {
        within("version", self.version, VERSION..=VERSION)?;
        within("rounds", self.rounds, 1..=ROUNDS_LIMIT)?;
        self.check_ending()?;
        self.check_network()?;
        self.check_rules()?;
        for (index, fault) in self.faults.iter().enumerate() {
            self.check_fault(&format!("fault[{index}]"), fault)?;
        }
        for (index, workload) in self.workloads.iter().enumerate() {
            self.check_workload(&format!("workload[{index}]"), workload)?;
        }
        for (index, assertion) in self.assertions.iter().enumerate() {
            let key = format!("assert[{index}]");
            assertion.claim().map_err(|(part, found, allowed)| Mistake::new(join(&key, part), found, allowed))?;
            if let (Some(after), Ok(Claim::Eventually { .. })) = (&assertion.after, assertion.claim()) {
                self.check_trigger(&format!("{key}.after"), after, false)?;
            }
        }
        Ok(())
    }

    fn check_ending(&self) -> Checked {
        match self.stall {
            Some(StallRule::Rounds(rounds)) => within("stall.rounds", rounds, 1..=ROUNDS_LIMIT)?,
            Some(StallRule::Seconds(seconds)) => within("stall.seconds", seconds, 1..=TIME_LIMIT)?,
            Some(StallRule::Off) | None => {}
        }
        self.time_limit_seconds.map_or(Ok(()), |seconds| within("time_limit_seconds", seconds, 1..=TIME_LIMIT))
    }

    fn check_network(&self) -> Checked {
        let network = &self.network;
        within("network.delegates", network.delegates, 1..=DELEGATES_LIMIT)?;
        within("network.standby", network.standby, 0..=DELEGATES_LIMIT)?;
        within("network.relays", network.relays, 0..=NODES_LIMIT)?;
        if let Some(reward) = network.reward.filter(|reward| *reward > REWARD_LIMIT) {
            return Err(Mistake::new("network.reward", reward, format!("0 to {REWARD_LIMIT} arktoshi")));
        }
        self.check_milestones()?;
        let (model, nodes) = (&network.model, network.nodes());
        ratio("network.loss", model.loss)?;
        ratio("network.duplication", model.duplication)?;
        if let Some(reordering) = &model.reordering {
            ratio("network.reordering.chance", reordering.chance)?;
        }
        if model.bandwidth == Some(0) {
            return Err(Mistake::new("network.bandwidth", 0, "at least 1 byte a second"));
        }
        model.topology.check(nodes).map_err(|TopologyError { part, found, allowed }| {
            Mistake::new(format!("network.topology.{part}"), found, allowed)
        })?;
        for (index, link) in model.links.iter().enumerate() {
            let (a, b) = link.between;
            within(&format!("network.links[{index}].between"), a.max(b), 0..=nodes - 1)?;
        }
        if let Some(clocks) = &model.clocks {
            within("network.clocks.drift_ppm", clocks.drift_ppm, 0..=100_000)?;
        }
        let Some(regions) = &model.regions else { return Ok(()) };
        let (count, key) = (regions.shares.len(), "network.regions.latency_ms");
        if count == 0 || regions.shares.iter().any(|share| !(share.is_finite() && *share > 0.0)) {
            return Err(Mistake::new("network.regions.shares", format!("{:?}", regions.shares), "positive numbers"));
        }
        if regions.latency_ms.len() != count || regions.latency_ms.iter().any(|row| row.len() != count) {
            let rows: Vec<usize> = regions.latency_ms.iter().map(Vec::len).collect();
            return Err(Mistake::new(key, format!("rows of {rows:?}"), format!("{count} rows of {count} numbers")));
        }
        if let Some(ms) = regions.latency_ms.iter().flatten().find(|ms| !(0.0..=600_000.0).contains(*ms)) {
            return Err(Mistake::new(key, ms, "0 to 600000"));
        }
        ratio("network.regions.spread", regions.spread)
    }

    /// Ascending, and delegates change in number where a round begins only. Source: consensus.md 1.1.
    fn check_milestones(&self) -> Checked {
        let network = &self.network;
        let (mut last, mut first, mut seats) = (1_u32, 1, network.delegates);
        for (index, change) in network.milestones.iter().enumerate() {
            let key = |name: &str| format!("network.milestones[{index}].{name}");
            within(&key("height"), change.height, last.saturating_add(1)..=u32::MAX)?;
            last = change.height;
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

    fn check_rules(&self) -> Checked {
        use crate::ledger::rules::RulesError;
        Rules::from_toml(&self.rules).map(drop).map_err(|error| match error {
            RulesError::Unknown { key, allowed } => Mistake::new(format!("rules.{key}"), "no such rule", allowed),
            RulesError::NotAllowed { key, found, allowed } => Mistake::new(format!("rules.{key}"), found, allowed),
        })
    }

    fn check_fault(&self, key: &str, fault: &Fault) -> Checked {
        self.ground().check_fault(key, fault)
    }

    pub(super) fn check_nodes(&self, key: &str, nodes: &Nodes, delegates: bool) -> Checked {
        self.ground().check_nodes(key, nodes, delegates)
    }

    pub(super) fn check_trigger(&self, key: &str, trigger: &Trigger, begins: bool) -> Checked {
        self.ground().check_trigger(key, trigger, begins)
    }

    /// Checks the members whose types allow more than a workload does.
    fn check_workload(&self, key: &str, workload: &Workload) -> Checked {
        self.check_trigger(&format!("{key}.from"), &workload.from, true)?;
        if let Some(until) = &workload.until {
            self.check_trigger(&format!("{key}.until"), until, false)?;
        }
        if let Some(nodes) = workload.nodes() {
            self.check_nodes(&format!("{key}.nodes"), nodes, false)?;
        }
        match &workload.kind {
            WorkloadKind::Generate(generate) => {
                rate(&format!("{key}.per_second"), generate.per_second)?;
                within(&format!("{key}.wallets"), generate.wallets, 1..=WALLETS_LIMIT)?;
                within(&format!("{key}.funding"), generate.funding, 1..=1_000_000)?;
                if let Some((name, share)) =
                    generate.mix.iter().find(|(_, share)| !(share.is_finite() && **share >= 0.0))
                {
                    return Err(Mistake::new(format!("{key}.mix"), format!("{name:?} = {share}"), "0 or more"));
                }
                if !generate.mix.is_empty() && generate.mix.values().sum::<f64>() <= 0.0 {
                    return Err(Mistake::new(format!("{key}.mix"), "nothing but 0", "a share above 0"));
                }
                generate.amount.check(&format!("{key}.amount"))?;
                generate.fee.check(&format!("{key}.fee"))
            }
            WorkloadKind::List(list) => {
                rate(&format!("{key}.per_second"), list.per_second)?;
                for (index, text) in list.transactions.iter().enumerate() {
                    if let Err(why) = hex::decode(text) {
                        let key = format!("{key}.transactions[{index}]");
                        return Err(Mistake::new(key, why, "the bytes of a transaction in hex"));
                    }
                }
                ratio(&format!("{key}.transactions"), f64::from(u8::from(!list.transactions.is_empty())))
            }
            WorkloadKind::Chain(chain) => chain.check().map_err(|why| {
                Mistake::new(format!("{key}.file"), format!("'{}': {why}", chain.file), "a chain of blocks")
            }),
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
            rounds: self.rounds,
            last_height: self.last_height().0,
        }
    }
}
