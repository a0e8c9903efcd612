//! A strategy of one's own, in one file: delegates that leave their blocks empty now and then. This program is dposlab with it:
//! `cargo run --example strategy -- schema` knows the kind `empty-blocks`.
use dposlab::{
    actors::{Actor, ActorId, Behaviour, Effect, Message, Role, behaviour::Step},
    sim::fault::{BoundedValue, Facts, Nodes},
    sim::strategy::{self, Setting, Strategy},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Delegates whose blocks are empty now and then.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EmptyBlocks {
    delegates: Nodes,
    /// The mean share of empty blocks, in percent.
    percent: u32,
}

impl Strategy for EmptyBlocks {
    const NAME: &'static str = "empty-blocks";
    const FACTS: Facts = Facts::OMISSION;
    const EXAMPLE: &'static str = "delegates = [1]\npercent = 50";
    type Behaviour = Empty;

    fn nodes(&self) -> Vec<(&'static str, &Nodes)> {
        vec![("delegates", &self.delegates)]
    }
    fn nodes_mut(&mut self) -> Vec<(&'static str, &mut Nodes)> {
        vec![("delegates", &mut self.delegates)]
    }
    fn bounded_values(&self) -> Vec<(&'static str, BoundedValue<'_>)> {
        vec![("percent", BoundedValue::Number(self.percent, 0..=100))]
    }
    fn behaviours(&self, setting: &Setting<'_>) -> Vec<(ActorId, Empty)> {
        setting.each(&self.delegates, Role::Pool, |_| Empty(self.percent))
    }
}

#[derive(Clone, Debug)]
struct Empty(u32);

impl Behaviour for Empty {
    fn does(&mut self, _: &Actor, step: &mut Step<'_>, effect: Effect) -> Option<Effect> {
        let Effect::Send { to, message: Message::ForgingTransactions(_) } = &effect else { return Some(effect) };
        match step.below("empty", 100) < self.0.into() {
            true => Some(Effect::Send { to: *to, message: Message::ForgingTransactions([].into()) }),
            false => Some(effect),
        }
    }
}

dposlab::saved!(struct Empty(percent));

fn main() -> std::process::ExitCode {
    strategy::register::<EmptyBlocks>();
    dposlab::cli::main()
}
