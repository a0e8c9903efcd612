//! The first line of a trace, which describes the run. [`crate::sim::line`] makes the other lines.

use crate::{
    protocol::Timestamp,
    sim::{
        Plan,
        line::{TipLine, tip_line},
    },
};
use serde::Serialize;

/// The version of the lines' form. It changes when a member changes its meaning or is removed. New kinds and members do not
/// change it.
pub const SCHEMA: u32 = 1;

/// The first line: the description of the run.
#[derive(Clone, Debug, Serialize)]
pub struct Header {
    /// Always `dposlab`.
    trace: &'static str,
    schema: u32,
    version: &'static str,
    pub scenario: String,
    pub seed: u64,
    /// Values set beside the scenario's.
    pub set: Vec<String>,
    pub nodes: u32,
    /// The epoch of all times, in Unix seconds.
    pub epoch: i64,
    /// The length of a slot, in seconds.
    pub block_time_s: u32,
    /// True if messages between actors are in the trace.
    pub network: bool,
    /// The instant the run begins at, in microseconds since the epoch.
    pub start: u64,
    /// The block every node begins on.
    tip: TipLine,
    /// The public key of each node's delegate, or `None` for a relay.
    forgers: Vec<Option<String>>,
}

impl Header {
    /// The header of a run by this plan.
    pub fn new(scenario: String, seed: u64, set: Vec<String>, network: bool, plan: &Plan) -> Self {
        let key = |node: &crate::sim::NodePlan| node.forger.as_ref().map(|keys| keys.public().to_string());
        Self {
            trace: "dposlab",
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION"),
            scenario,
            seed,
            set,
            nodes: u32::try_from(plan.nodes.len()).unwrap_or(u32::MAX),
            epoch: plan.tree.slots().unix(Timestamp(0)),
            block_time_s: plan.tree.slots().blocktime(),
            network,
            start: plan.start.micros(),
            tip: tip_line(&plan.tip),
            forgers: plan.nodes.iter().map(key).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{scenario::Scenario, sim::SeedTree};
    use serde_json::{Value, json};
    use std::path::Path;

    #[test]
    fn the_first_line_is_as_documented() {
        let documented = include_str!("../../../docs/trace.md");
        let text = "version = 1\nrounds = 2\n[network]\ndelegates = 2\nrelays = 1\n";
        let scenario = Scenario::parse(text, Path::new("s.toml")).expect("it is valid");
        let seeds = SeedTree::new(7);
        let testnet = scenario.testnet(seeds);
        let plan = scenario.plan(&testnet, seeds);
        let header = json!(Header::new("s.toml".into(), 7, vec!["a=1".into()], true, &plan));
        let forgers = testnet.delegates.iter().map(|delegate| json!(delegate.keys.public().to_string()));
        let expected = json!({
            "trace": "dposlab", "schema": 1, "version": env!("CARGO_PKG_VERSION"), "scenario": "s.toml", "seed": 7,
            "set": ["a=1"], "nodes": 3, "epoch": plan.tree.slots().unix(Timestamp(0)), "block_time_s": 8, "network": true, "start": 8_000_000,
            "tip": { "id": plan.tip.id().to_string(), "height": 1 },
            "forgers": forgers.chain([Value::Null]).collect::<Vec<_>>(),
        });
        assert_eq!(header.to_string(), expected.to_string());
        for member in header.as_object().expect("a line is an object").keys() {
            assert!(documented.contains(&format!("`{member}`")), "docs/trace.md does not tell of {member}");
        }
    }
}
