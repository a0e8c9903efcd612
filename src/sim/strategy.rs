//! Strategies, by which actors deviate from the protocol on purpose, each in its own file, and the registry for further ones.
//!
//! A [`Strategy`] holds the parameters of a kind of fault, as a scenario gives them. Its [`Behaviour`] decides the actions of an actor.
//! Scenario files, `/lab/faults`, the search, the minimiser and the schema know every kind that is [registered](register).

mod censor;
mod coalition;
mod double_forge;
mod eclipse_answers;
mod forge_invalid;
mod forge_out_of_turn;
mod forgery;
mod late_forging;
mod lie_about_tip;
mod private;
mod refuse_transactions;
#[cfg(feature = "cli")]
pub(crate) mod remote;
mod spare_forger;
mod withhold;
mod withhold_ahead;

pub use censor::Censor;
pub use coalition::Coalition;
pub use double_forge::DoubleForge;
pub use eclipse_answers::EclipseAnswers;
pub use forge_invalid::{ForgeInvalid, InvalidBlock};
pub use forge_out_of_turn::ForgeOutOfTurn;
pub use late_forging::LateForging;
pub use lie_about_tip::{FalseClaim, LieAboutTip};
pub use refuse_transactions::RefuseTransactions;
pub use spare_forger::SpareForger;
pub use withhold::Withhold;
pub use withhold_ahead::WithholdAhead;

use super::{
    fault::{BoundedValue, Facts, Nodes},
    names::Names,
    plan::Plan,
};
use crate::{
    actors::{ActorId, Behaviour, NodeId, Role, behaviour},
    ledger::{BlockTree, Link, codec::Save},
    protocol::{Address, KeyPair},
};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};
use std::{
    any::Any,
    fmt,
    sync::{Arc, LazyLock, RwLock},
};

/// The members of a fault in a file.
pub type Table = Map<String, Value>;

/// The parameters of one kind of fault whose actors behave against the protocol. Its documentation is the kind's description.
pub trait Strategy: Clone + fmt::Debug + Serialize + DeserializeOwned + JsonSchema + Send + Sync + 'static {
    /// The `kind` in a file.
    const NAME: &'static str;
    /// The facts about it that the rest of the program needs.
    const FACTS: Facts;
    /// An example of its parameters in a network of five delegates, in TOML.
    const EXAMPLE: &'static str;
    /// The keys of the lists whose nodes keep the rules. The checker judges these nodes like honest ones.
    const BYSTANDERS: &'static [&'static str] = &[];
    /// The behaviour of its actors.
    type Behaviour: Behaviour + Save + Clone + 'static;

    /// The lists of nodes, each under its key in a file. Those under `delegates` have to forge.
    fn nodes(&self) -> Vec<(&'static str, &Nodes)>;

    /// [`Strategy::nodes`] for changes, in the same order.
    fn nodes_mut(&mut self) -> Vec<(&'static str, &mut Nodes)>;

    /// The parameters other than lists of nodes, each under its key in a file.
    fn bounded_values(&self) -> Vec<(&'static str, BoundedValue<'_>)> {
        Vec::new()
    }

    /// The names of accounts and delegates among its parameters. When the run begins, the address replaces the name of an account.
    fn parties_mut(&mut self) -> Vec<&mut String> {
        Vec::new()
    }

    /// Draws its parameters for the search; `below` gives a number below another. Its lists of nodes are drawn by the search.
    fn vary(&mut self, _below: &mut dyn FnMut(u32) -> u32) {}

    /// The actors that deviate, each with its behaviour.
    fn behaviours(&self, setting: &Setting<'_>) -> Vec<(ActorId, Self::Behaviour)>;
}

/// The run at the instant at which a strategy begins.
pub struct Setting<'a> {
    plan: &'a Plan,
    names: &'a Names,
    best: &'a Arc<Link>,
}

impl<'a> Setting<'a> {
    pub(super) fn new(plan: &'a Plan, names: &'a Names, best: &'a Arc<Link>) -> Self {
        Self { plan, names, best }
    }

    /// The nodes of a list, a span or a share, ascending.
    pub fn resolve(&self, nodes: &Nodes) -> Vec<NodeId> {
        self.names.resolve(nodes, self.best)
    }

    /// The actor of a role on each of these nodes, with its behaviour.
    pub fn each<B>(&self, nodes: &Nodes, role: Role, behave: impl Fn(NodeId) -> B) -> Vec<(ActorId, B)> {
        self.resolve(nodes).into_iter().map(|node| (ActorId { node, role }, behave(node))).collect()
    }

    /// The key that a node forges with; `None` if it does not forge.
    pub fn keys(&self, node: NodeId) -> Option<&KeyPair> {
        self.plan.nodes[node.0 as usize].forger.as_ref()
    }

    /// The tip of the highest chain.
    pub fn best(&self) -> &Arc<Link> {
        self.best
    }

    /// The address of a name: an address itself, or that of a delegate.
    pub fn address(&self, name: &str) -> Option<Address> {
        self.names.address(name)
    }

    /// The blocks and the network.
    pub fn tree(&self) -> &Arc<BlockTree> {
        &self.plan.tree
    }
}

/// A kind of strategy that is registered.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    pub name: &'static str,
    pub facts: Facts,
    /// An example of it: a table in TOML.
    pub example: &'static str,
    source: Source,
    /// True if a caller registered it, so that the search draws it. The search has its own weights for the project's kinds.
    pub is_foreign: bool,
}

/// The place where a kind's behaviour is decided.
#[derive(Clone, Copy, Debug)]
enum Source {
    /// Here.
    Native { read: fn(Table) -> Result<PlannedStrategy, serde_json::Error>, schema: fn(&mut SchemaGenerator) -> Schema },
    /// In another process.
    #[cfg(feature = "cli")]
    Remote(&'static remote::Script),
}

impl Kind {
    fn of<S: Strategy>(is_foreign: bool) -> Self {
        behaviour::learn::<S::Behaviour>(S::NAME);
        Self {
            name: S::NAME,
            facts: S::FACTS,
            example: format!("kind = '{}'\n{}", S::NAME, S::EXAMPLE).leak(),
            source: Source::Native {
                read: |table| Ok(PlannedStrategy(Box::new(S::deserialize(Value::Object(table))?))),
                schema: S::json_schema,
            },
            is_foreign,
        }
    }

    /// Its example.
    ///
    /// # Panics
    /// The example is not of this kind. Its registration would have failed.
    pub fn drawable(&self) -> PlannedStrategy {
        let mut table: Table = toml::from_str(self.example).expect("it was read when the kind was registered");
        table.shift_remove("kind");
        self.read(table).expect("it was read when the kind was registered")
    }

    /// Reads the parameters of a fault of this kind, without its `kind`.
    ///
    /// # Errors
    /// The table does not hold the parameters of this kind.
    pub fn read(&self, table: Table) -> Result<PlannedStrategy, serde_json::Error> {
        match self.source {
            Source::Native { read, .. } => read(table),
            #[cfg(feature = "cli")]
            Source::Remote(script) => script.read(table),
        }
    }

    /// The schema of its parameters.
    pub fn schema(&self, generator: &mut SchemaGenerator) -> Schema {
        match self.source {
            Source::Native { schema, .. } => schema(generator),
            #[cfg(feature = "cli")]
            Source::Remote(script) => script.schema(generator),
        }
    }
}

/// The kinds, in the order in which they are listed.
static KINDS: LazyLock<RwLock<Vec<Kind>>> = LazyLock::new(|| {
    RwLock::new(vec![
        Kind::of::<LateForging>(false),
        Kind::of::<Withhold>(false),
        Kind::of::<DoubleForge>(false),
        Kind::of::<SpareForger>(false),
        Kind::of::<ForgeOutOfTurn>(false),
        Kind::of::<ForgeInvalid>(false),
        Kind::of::<Censor>(false),
        Kind::of::<RefuseTransactions>(false),
        Kind::of::<LieAboutTip>(false),
        Kind::of::<WithholdAhead>(false),
        Kind::of::<Coalition>(false),
        Kind::of::<EclipseAnswers>(false),
    ])
});

/// All kinds that are registered, in this order.
pub fn kinds() -> Vec<Kind> {
    KINDS.read().expect("no thread panics while holding it").clone()
}

/// The kind of a name.
pub fn kind(name: &str) -> Option<Kind> {
    KINDS.read().expect("no thread panics while holding it").iter().find(|kind| kind.name == name).copied()
}

/// Registers a strategy, before anything is read or run: scenario files, `/lab/faults`, the search, the minimiser and the schema
/// know it from now on.
///
/// # Panics
/// A kind of fault already has this name, or the example is not of this kind.
pub fn register<S: Strategy>() {
    let known = super::FaultKind::names();
    assert!(!known.contains(&S::NAME), "the strategy '{}': a kind of fault of this name is there", S::NAME);
    let kind = Kind::of::<S>(true);
    add(kind);
    let example: Result<super::FaultKind, _> = toml::from_str(kind.example);
    example.unwrap_or_else(|why| panic!("the strategy '{}': its example is none of it: {why}", S::NAME));
}

fn add(kind: Kind) {
    KINDS.write().expect("no thread panics while holding it").push(kind);
}

/// A strategy of any kind.
pub struct PlannedStrategy(Box<dyn AnyStrategy>);

/// The operations of every [`Strategy`], for use as a trait object.
trait AnyStrategy: fmt::Debug + Send + Sync {
    fn name(&self) -> &'static str;
    fn facts(&self) -> Facts;
    fn nodes(&self) -> Vec<(&'static str, &Nodes)>;
    fn nodes_mut(&mut self) -> Vec<(&'static str, &mut Nodes)>;
    fn bystanders(&self) -> &'static [&'static str];
    fn parties_mut(&mut self) -> Vec<&mut String>;
    fn bounded_values(&self) -> Vec<(&'static str, BoundedValue<'_>)>;
    fn vary(&mut self, below: &mut dyn FnMut(u32) -> u32);
    fn behaviours(&self, setting: &Setting<'_>) -> Vec<(ActorId, Box<dyn Behaviour>)>;
    fn boxed(&self) -> Box<dyn AnyStrategy>;
    fn table(&self) -> Table;
    fn any(&self) -> &dyn Any;
}

impl<S: Strategy> AnyStrategy for S {
    fn name(&self) -> &'static str {
        S::NAME
    }

    fn facts(&self) -> Facts {
        S::FACTS
    }

    fn nodes(&self) -> Vec<(&'static str, &Nodes)> {
        self.nodes()
    }

    fn nodes_mut(&mut self) -> Vec<(&'static str, &mut Nodes)> {
        self.nodes_mut()
    }

    fn bounded_values(&self) -> Vec<(&'static str, BoundedValue<'_>)> {
        self.bounded_values()
    }

    fn bystanders(&self) -> &'static [&'static str] {
        S::BYSTANDERS
    }

    fn parties_mut(&mut self) -> Vec<&mut String> {
        self.parties_mut()
    }

    fn vary(&mut self, below: &mut dyn FnMut(u32) -> u32) {
        self.vary(below);
    }

    fn behaviours(&self, setting: &Setting<'_>) -> Vec<(ActorId, Box<dyn Behaviour>)> {
        let all = self.behaviours(setting).into_iter();
        all.map(|(actor, behaviour)| (actor, Box::new(behaviour) as Box<dyn Behaviour>)).collect()
    }

    fn boxed(&self) -> Box<dyn AnyStrategy> {
        Box::new(self.clone())
    }

    fn table(&self) -> Table {
        match serde_json::to_value(self) {
            Ok(Value::Object(table)) => table,
            other => panic!("the parameters of a strategy are a table: {other:?}"),
        }
    }

    fn any(&self) -> &dyn Any {
        self
    }
}

impl PlannedStrategy {
    /// The name of its kind.
    pub fn name(&self) -> &'static str {
        self.0.name()
    }

    /// The facts about its kind.
    pub fn facts(&self) -> Facts {
        self.0.facts()
    }

    /// The nodes that it names, each list under its key in a file.
    pub fn nodes(&self) -> Vec<(&'static str, &Nodes)> {
        self.0.nodes()
    }

    /// [`PlannedStrategy::nodes`] for changes, in the same order.
    pub fn nodes_mut(&mut self) -> Vec<(&'static str, &mut Nodes)> {
        self.0.nodes_mut()
    }

    /// The lists whose nodes keep the rules, by key.
    pub fn bystanders(&self) -> &'static [&'static str] {
        self.0.bystanders()
    }

    /// The names of accounts and delegates among its parameters.
    pub fn parties_mut(&mut self) -> Vec<&mut String> {
        self.0.parties_mut()
    }

    /// The parameters other than lists of nodes.
    pub fn bounded_values(&self) -> Vec<(&'static str, BoundedValue<'_>)> {
        self.0.bounded_values()
    }

    /// Draws its parameters for the search.
    pub fn vary(&mut self, below: &mut dyn FnMut(u32) -> u32) {
        self.0.vary(below);
    }

    /// The actors that deviate, each with its behaviour.
    pub fn behaviours(&self, setting: &Setting<'_>) -> Vec<(ActorId, Box<dyn Behaviour>)> {
        self.0.behaviours(setting)
    }

    /// Returns the strategy, if it is an `S`.
    pub fn of<S: Strategy>(&self) -> Option<&S> {
        self.0.any().downcast_ref()
    }
}

impl<S: Strategy> From<S> for PlannedStrategy {
    fn from(strategy: S) -> Self {
        Self(Box::new(strategy))
    }
}

impl Clone for PlannedStrategy {
    fn clone(&self) -> Self {
        Self(self.0.boxed())
    }
}

impl fmt::Debug for PlannedStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl PartialEq for PlannedStrategy {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name() && self.0.table() == other.0.table()
    }
}

impl Serialize for PlannedStrategy {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let kind = [("kind".to_owned(), Value::from(self.name()))];
        to.collect_map(kind.into_iter().chain(self.0.table()))
    }
}
