//! The kinds of faults: one row for each kind that the world or clients carry out, with its facts. Actors carry out the other kinds, the
//! strategies (`sim::strategy`).
//!
//! A new kind is a row of this table, and parameters in `parameters.rs` if no others fit. The compiler then asks what
//! happens when it begins (`sim::world::faults`). The minimiser, the tests of each kind, the schema, the description of the
//! API and the error messages follow from the row, and for a strategy from its registration.

use super::{
    bounded_value::BoundedValue,
    facts::{Facts, Lasting, Timing},
    nodes::Nodes,
    parameters::{
        ClockSkew, Crash, DelayMessages, DropMessages, DuplicateMessages, Eclipse, Heal, LowFeeFlood, NodeChurn,
        Offline, Parameters, Partition, Restart, Slow, SomeDelegates, SomeNodes, SpamPool, VoteSwing,
    },
    rounds::Rounds,
};
use crate::sim::strategy::{self, PlannedStrategy, Strategy, Table};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Value, json};
use std::borrow::Cow;

/// The clients that carry out a fault.
#[derive(Clone, Copy, Debug)]
pub enum ByClients<'a> {
    Spammers(&'a SpamPool),
    Flooders(&'a LowFeeFlood),
    Voters(&'a VoteSwing),
    /// The delegates themselves.
    Delegates(&'a SomeDelegates),
}

impl ByClients<'_> {
    /// Returns true if the clients pay from funded accounts.
    pub fn need_accounts(self) -> bool {
        match self {
            Self::Spammers(_) | Self::Flooders(_) | Self::Voters(_) => true,
            Self::Delegates(_) => false,
        }
    }
}

/// Declares the kinds: the name of each in a file, its parameters, the clients that carry it out if any do, its facts, and an
/// example of its parameters in a network of five delegates.
macro_rules! kinds {
    (@by $parameters:ident) => { None };
    (@by $parameters:ident $clients:ident) => { Some(ByClients::$clients($parameters)) };
    ($($(#[doc = $doc:literal])* $name:literal => $variant:ident($type:ty) $(by $clients:ident)?, $facts:expr, $example:literal;)*) => {
        /// A fault. Each kind has a name, its `kind` in a file.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "kind", remote = "Self")]
        pub enum FaultKind {
            $($(#[doc = $doc])* #[serde(rename = $name)] $variant($type),)*
            /// Actors behave against the protocol.
            #[serde(skip)]
            Strategy(PlannedStrategy),
        }

        impl FaultKind {
            /// The names of all kinds, those of strategies last.
            pub fn names() -> Vec<&'static str> {
                [$($name),*].into_iter().chain(strategy::kinds().iter().map(|kind| kind.name)).collect()
            }

            /// An example of each kind, in the order of the names: a table in TOML.
            pub fn examples() -> Vec<&'static str> {
                let examples = [$(concat!("kind = '", $name, "'\n", $example)),*];
                examples.into_iter().chain(strategy::kinds().iter().map(|kind| kind.example)).collect()
            }

            /// The name of this kind.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $name,)*
                    Self::Strategy(planned) => planned.name(),
                }
            }

            /// Returns the facts about this kind.
            pub fn facts(&self) -> Facts {
                match self {
                    $(Self::$variant(_) => const { $facts },)*
                    Self::Strategy(planned) => planned.facts(),
                }
            }

            /// The schemas of all kinds, in the order of the names.
            fn schemas(generator: &mut SchemaGenerator) -> Vec<Schema> {
                let mut all = vec![$(schema_of($name, <$type>::json_schema(generator), concat!($($doc),*)),)*];
                all.extend(strategy::kinds().iter().map(|kind| schema_of(kind.name, kind.schema(generator), "")));
                all
            }

            /// The clients that carry it out; `None` if the world does.
            pub fn by_clients(&self) -> Option<ByClients<'_>> {
                match self {
                    $(Self::$variant(_parameters) => kinds!(@by _parameters $($clients)?),)*
                    Self::Strategy(_) => None,
                }
            }

            /// The nodes it names, each list under its key in a file.
            pub fn nodes(&self) -> Vec<(&'static str, &Nodes)> {
                match self {
                    $(Self::$variant(parameters) => parameters.nodes(),)*
                    Self::Strategy(planned) => planned.nodes(),
                }
            }

            /// [`FaultKind::nodes`] for changes, in the same order.
            pub fn nodes_mut(&mut self) -> Vec<(&'static str, &mut Nodes)> {
                match self {
                    $(Self::$variant(parameters) => parameters.nodes_mut(),)*
                    Self::Strategy(planned) => planned.nodes_mut(),
                }
            }

            /// Returns the parameters other than lists of nodes, each under its key in a file. The key is empty for a bound on all
            /// parameters together.
            pub fn bounded_values(&self) -> Vec<(&'static str, BoundedValue<'_>)> {
                match self {
                    $(Self::$variant(parameters) => parameters.bounded_values(),)*
                    Self::Strategy(planned) => planned.bounded_values(),
                }
            }
        }
    };
}

kinds! {
    // Between nodes.
    /// Groups of nodes that cannot reach each other.
    "partition" => Partition(Partition), Facts::NETWORK, "groups = [[0, 1], ['genesis_3', 3, 4]]";
    /// Ends every partition, isolation and eclipse in force.
    "heal" => Heal(Heal), Facts { lasting: Lasting::Mending, ..Facts::NETWORK.at_once() }, "";
    /// Nodes that can reach no other node and cannot be reached.
    "isolate" => Isolate(SomeNodes), Facts::NETWORK, "nodes = [4]";
    /// Nodes that are connected to chosen others only.
    "eclipse" => Eclipse(Eclipse), Facts::NETWORK, "victims = [1]\nattackers = [2]";
    /// Messages that never arrive.
    "drop" => Drop(DropMessages), Facts::NETWORK, "messages = ['block']\nchance = 0.1";
    /// Messages that take longer.
    "delay" => Delay(DelayMessages), Facts::NETWORK, "by_ms = 300\njitter_ms = 50\nreceivers = [2]";
    /// Messages that arrive several times.
    "duplicate" => Duplicate(DuplicateMessages), Facts::NETWORK,
        "copies = 2\nwithin_ms = 100";

    // At a node.
    /// Nodes that stop without a word; when the fault ends they start again from the chain they had stored.
    "crash" => Crash(Crash), Facts::BREACH, "nodes = [3]\nkeep_pool = false";
    /// Nodes that come and go: each is up and down in turn, for as long as it draws. All are up when the fault begins, and come back when it
    /// ends. A node that goes down stops without a word, as in a crash.
    "node-churn" => NodeChurn(NodeChurn), Facts::BREACH, "nodes = [3, 4]\nup = { mean_s = 600 }\ndown = { min_s = 20, max_s = 60 }";
    /// Nodes that stop and start again at once.
    "restart" => Restart(Restart), Facts::BREACH.at_once(), "nodes = [2]";
    /// Nodes that stand still: what reaches them meanwhile waits.
    "pause" => Pause(SomeNodes), Facts::BREACH.timed(Timing::Stopped), "nodes = [1]";
    /// Nodes that take their time over everything they hear.
    "slow" => Slow(Slow), Facts::BREACH.timed(Timing::Wrong), "nodes = [1]\nstep_ms = 20";
    /// Nodes whose clocks are wrong.
    "clock-skew" => ClockSkew(ClockSkew), Facts::BREACH.timed(Timing::Wrong),
        "nodes = [2]\noffset_ms = -700\ndrift_ppm = 50";

    // By a delegate.
    /// Delegates that do not forge; their nodes go on relaying.
    "offline" => Offline(Offline), Facts::OMISSION, "delegates = [0]";

    // By clients.
    /// Worthless transactions by the dozen: unfunded senders, gaps in nonces, signatures that do not hold.
    "spam-pool" => SpamPool(SpamPool) by Spammers, Facts::CLIENTS, "per_second = 0.5";
    /// Valid transactions that pay the least fee that is let in.
    "low-fee-flood" => LowFeeFlood(LowFeeFlood) by Flooders, Facts::CLIENTS, "per_second = 0.5\nnodes = [0, 1]";
    /// Voters who change sides together, timed so that it counts for the next round or just not.
    "vote-swing" => VoteSwing(VoteSwing) by Voters, Facts::CLIENTS,
        "voters = 3\ndelegate = 'genesis_2'\nround = 9\nblock = 'first'";
    /// Delegates who resign together.
    "mass-resignation" => MassResignation(SomeDelegates) by Delegates, Facts::CLIENTS, "delegates = [4]";
}

impl FaultKind {
    /// Returns the strategy, if it is an `S`.
    pub fn strategy<S: Strategy>(&self) -> Option<&S> {
        let Self::Strategy(planned) = self else { return None };
        planned.of()
    }

    /// The nodes to which the facts apply: all lists of nodes except those of bystanders.
    pub fn concerned(&self) -> Vec<&Nodes> {
        let bystanders = if let Self::Strategy(planned) = self { planned.bystanders() } else { &[] };
        self.nodes().into_iter().filter(|(key, _)| !bystanders.contains(key)).map(|(_, nodes)| nodes).collect()
    }

    /// The delegates that the fault switches off by rounds, and these rounds.
    pub fn by_rounds(&self) -> Option<(&Nodes, &Rounds)> {
        let Self::Offline(offline) = self else { return None };
        offline.rounds.as_ref().map(|rounds| (&offline.delegates, rounds))
    }

    /// Returns true if the fault draws the fates of single messages.
    pub fn draws_for_messages(&self) -> bool {
        matches!(self, Self::Drop(_) | Self::Delay(_) | Self::Duplicate(_))
    }

    /// The accounts and delegates that it names beside its lists, by name or address.
    pub fn parties(&self) -> impl Iterator<Item = &str> {
        self.bounded_values().into_iter().filter_map(|(_, value)| match value {
            BoundedValue::Delegate(name) | BoundedValue::Party(name) => Some(name),
            BoundedValue::Number(..)
            | BoundedValue::Part(_)
            | BoundedValue::Rate(_)
            | BoundedValue::Amount(_)
            | BoundedValue::Durations(_)
            | BoundedValue::Rounds(_)
            | BoundedValue::LaterRound(_)
            | BoundedValue::Accounts(_)
            | BoundedValue::Clash { .. } => None,
        })
    }

    /// The same kind with one node less in one of its lists, in each possible way. A list keeps at least one node.
    pub fn with_fewer_nodes(&self) -> Vec<Self> {
        let lists = self.nodes().into_iter().enumerate().filter_map(|(which, (_, nodes))| match nodes {
            Nodes::List(list) if list.len() > 1 => Some((which, list.len())),
            Nodes::List(_) | Nodes::Span(_) | Nodes::Share(_) => None,
        });
        let all = lists.flat_map(|(which, count)| (0..count).map(move |gone| (which, gone)));
        all.map(|(which, gone)| self.without(which, gone)).collect()
    }

    /// The kind without node `gone` of list `which`.
    fn without(&self, which: usize, gone: usize) -> Self {
        let mut fewer = self.clone();
        if let (_, Nodes::List(list)) = &mut fewer.nodes_mut()[which] {
            list.remove(gone);
        }
        fewer
    }
}

impl<S: Strategy> From<S> for FaultKind {
    fn from(strategy: S) -> Self {
        Self::Strategy(strategy.into())
    }
}

impl Serialize for FaultKind {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Strategy(planned) => planned.serialize(to),
            // The method that is derived, not this one.
            other => Self::serialize(other, to),
        }
    }
}

/// Reads a table with a `kind`. It looks the kind up at run time, because strategies can be registered.
impl<'de> Deserialize<'de> for FaultKind {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut table = Table::deserialize(from)?;
        let name = kind_of(&table)?;
        if let Some(kind) = strategy::kind(name) {
            table.shift_remove("kind");
            return kind.read(table).map(Self::Strategy).map_err(de::Error::custom);
        }
        if !Self::names().contains(&name) {
            return Err(unknown_kind(name, &Self::names()));
        }
        // The method that is derived, not this one.
        Self::deserialize(Value::Object(table)).map_err(de::Error::custom)
    }
}

/// The name in a table's `kind`.
///
/// # Errors
/// The `kind` is absent or no text, or the table holds a null. A file has no null: it comes from a `nan` or an `inf`, and would pass for an
/// absent member.
pub(crate) fn kind_of<E: de::Error>(table: &Table) -> Result<&str, E> {
    if let Some((key, _)) = table.iter().find(|(_, value)| holds_null(value)) {
        return Err(E::custom(format!("invalid value for `{key}`: expected a finite number")));
    }
    match table.get("kind") {
        Some(Value::String(name)) => Ok(name),
        // Otherwise serde would accept a number as the index of a kind.
        Some(other) => Err(E::custom(format!("invalid type: {other}, expected the name of a kind"))),
        None => Err(E::missing_field("kind")),
    }
}

/// The error for an unknown kind.
pub(crate) fn unknown_kind<E: de::Error>(name: &str, known: &[&str]) -> E {
    let known: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
    E::custom(format!("unknown variant `{name}`, expected one of {}", known.join(", ")))
}

fn holds_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.iter().any(holds_null),
        Value::Object(table) => table.values().any(holds_null),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

impl JsonSchema for FaultKind {
    fn schema_name() -> Cow<'static, str> {
        "FaultKind".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let kinds = Self::schemas(generator);
        json_schema!({ "description": "A fault. Each kind has a name, its `kind` in a file.", "oneOf": kinds })
    }
}

/// The schema of a kind: the schema of its parameters, with the name as `kind`. A description of the kind replaces the one of the
/// parameters.
pub(crate) fn schema_of(name: &str, parameters: Schema, description: &str) -> Schema {
    let mut schema = parameters;
    let object = schema.ensure_object();
    if !description.is_empty() {
        object.insert("description".into(), description.trim().into());
    }
    let properties = object.entry("properties").or_insert_with(|| Value::Object(Table::new()));
    properties["kind"] = json!({ "type": "string", "const": name });
    match object.entry("required").or_insert_with(|| Value::Array(Vec::new())) {
        Value::Array(required) => required.insert(0, "kind".into()),
        other => panic!("a list of members: {other}"),
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_an_example_of_itself() {
        for (name, text) in FaultKind::names().iter().zip(FaultKind::examples()) {
            let kind: FaultKind = toml::from_str(text).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(kind.name(), *name);
            let (nodes, mut changed) = (kind.nodes().len(), kind.clone());
            assert_eq!(changed.nodes_mut().len(), nodes, "{name}");
        }
    }

    #[test]
    fn one_node_less_is_taken_from_each_list() {
        let text = "kind = 'partition'\ngroups = [[0, 1], [2], [3, 4]]";
        let kind: FaultKind = toml::from_str(text).expect("it is a kind");
        let fewer = kind.with_fewer_nodes();
        assert_eq!(fewer.len(), 4);
        assert!(fewer.iter().all(|one| one.nodes().iter().all(|(_, nodes)| **nodes != Nodes::List(Vec::new()))));
    }
}
