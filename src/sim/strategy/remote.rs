//! Strategies whose behaviour another process decides, such as functions in Python.
//!
//! ```text
//!   a behaviour's turn ─► one line of JSON ─► the other process ─► lines of JSON: what it draws, then its answer
//! ```
//!
//! The other process describes its kinds. They are registered like all others, so scenario files, the lab, the search and the minimiser
//! know them. An answer of the other process may depend only on the question: the memory of a behaviour is its state, which is part of the
//! run. So a run can be copied, saved and gone back to, and has the same chain again. `docs/extending.md` has the lines.

mod message;
mod turn;

pub(crate) use turn::Answer;

use super::{AnyStrategy, Kind, PlannedStrategy, Setting, Source, Table};
use crate::{
    actors::{ActorId, Behaviour, Role, behaviour},
    sim::{
        FaultKind,
        fault::{BoundedValue, Facts, Nodes},
    },
};
use schemars::{Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, de::Error as _};
use serde_json::{Value, json};
use std::{any::Any, fmt, sync::Arc};
use turn::Remote;

/// Decides outside the simulation.
pub(crate) trait Decider: fmt::Debug + Send + Sync {
    /// Answers the question of a turn of a kind: one line of JSON. `below` draws, as [`Step::below`](behaviour::Step::below) does.
    fn decide(&self, kind: &str, question: String, below: &dyn Fn(&str, u64) -> u64) -> Answer;

    /// Reports an answer that asks for something impossible, and ends the run.
    fn refuse(&self, kind: &str, why: &str) -> !;
}

/// A kind, as its process describes it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SaidKind {
    /// The `kind` in a file.
    pub name: String,
    /// Its description, for the schema.
    about: String,
    /// The actor that behaves so: `peer`, `pool` or `delegate`.
    actor: SaidRole,
    /// The rules from which the nodes of the first list are exempt.
    breaks: Breaks,
    /// The parameters that are lists of nodes. The actors of the first behave so.
    lists: Vec<String>,
    /// A value for each parameter, in a network of five delegates. Others have to be of the same type.
    example: Table,
    /// The turns that it wants, such as `begins` or `sends block`.
    on: Vec<String>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum SaidRole {
    Peer,
    Pool,
    Delegate,
}

impl From<SaidRole> for Role {
    fn from(role: SaidRole) -> Self {
        match role {
            SaidRole::Peer => Self::Peer,
            SaidRole::Pool => Self::Pool,
            SaidRole::Delegate => Self::Delegate,
        }
    }
}

/// The rules that its actors break.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Breaks {
    /// None: they omit something, which the rules allow.
    Nothing,
    /// Rules other than those of forging.
    Rules,
    /// The rules of forging.
    Forging,
}

/// A kind that is registered, and where it is decided.
#[derive(Debug)]
pub(super) struct Script {
    said: SaidKind,
    facts: Facts,
    /// The lists after the first, whose nodes keep the rules.
    bystanders: Vec<&'static str>,
    on: Vec<On>,
    by: Arc<dyn Decider>,
}

/// A turn that a kind wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum On {
    Begins,
    Learns,
    Wakes,
    Ends,
    /// A message of this name.
    Hears(&'static str),
    Sends(&'static str),
}

impl On {
    /// Reads one, such as `sends block`.
    fn of(text: &str) -> Option<Self> {
        let (turn, message) = text.split_once(' ').map_or((text, None), |(turn, message)| (turn, Some(message)));
        let message = message.map(|message| message::named(message).ok_or(())).transpose().ok()?;
        match (turn, message) {
            ("begins", None) => Some(Self::Begins),
            ("learns", None) => Some(Self::Learns),
            ("wakes", None) => Some(Self::Wakes),
            ("ends", None) => Some(Self::Ends),
            ("hears", Some(message)) => Some(Self::Hears(message)),
            ("sends", Some(message)) => Some(Self::Sends(message)),
            _ => None,
        }
    }

    /// The turn, without the message.
    fn word(self) -> &'static str {
        match self {
            Self::Begins => "begins",
            Self::Learns => "learns",
            Self::Wakes => "wakes",
            Self::Ends => "ends",
            Self::Hears(_) => "hears",
            Self::Sends(_) => "sends",
        }
    }
}

/// Registers a kind, before anything is read or run.
///
/// # Errors
/// The kind is not new, or its description is wrong. The error is a line with the reason.
pub(crate) fn register(said: SaidKind, by: Arc<dyn Decider>) -> Result<(), String> {
    let (script, example) = script(said, by)?;
    behaviour::learn::<Remote>(&script.said.name);
    super::add(Kind {
        name: &script.said.name,
        facts: script.facts,
        example,
        source: Source::Remote(script),
        is_foreign: true,
    });
    Ok(())
}

/// A kind that is well described, and its example as a table in TOML.
fn script(said: SaidKind, by: Arc<dyn Decider>) -> Result<(&'static Script, &'static str), String> {
    let is_plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    if said.name.is_empty() || !said.name.chars().all(is_plain) {
        return Err("a name has small letters, digits and dashes".to_owned());
    }
    if FaultKind::names().contains(&said.name.as_str()) {
        return Err("a kind of fault of this name is there".to_owned());
    }
    if said.lists.is_empty() {
        return Err("lists: found none, allowed are parameters that are lists of nodes".to_owned());
    }
    if let Some(missing) = said.lists.iter().find(|list| !said.example.contains_key(*list)) {
        return Err(format!("example: has no '{missing}'"));
    }
    if let Some((key, value)) = said.example.iter().find(|(_, value)| value.is_null()) {
        return Err(format!("example: '{key}' is {value}, which a file cannot say"));
    }
    let on = said.on.iter().map(|text| {
        On::of(text).ok_or_else(|| {
            let names = message::NAMES.join(", ");
            format!(
                "on: found '{text}', allowed are begins, learns, wakes, ends, and hears or sends with one of {names}"
            )
        })
    });
    let on = on.collect::<Result<_, _>>()?;
    let example = toml::to_string(&said.example).map_err(|why| format!("example: {why}"))?;
    let facts = match said.breaks {
        Breaks::Nothing => Facts::OMISSION,
        Breaks::Rules => Facts::BREACH,
        Breaks::Forging => Facts::IRREGULAR,
    };
    let bystanders = said.lists[1..].iter().map(|list| &*list.clone().leak()).collect();
    // Kinds last as long as the process.
    let script: &'static Script = Box::leak(Box::new(Script { said, facts, bystanders, on, by }));
    script.read(script.said.example.clone()).map_err(|why| format!("example: {why}"))?;
    let example = format!("kind = '{}'\n{example}", script.said.name);
    Ok((script, example.leak()))
}

/// The type of a value in JSON.
fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

impl Script {
    /// Reads the parameters of a fault of this kind.
    pub(super) fn read(&'static self, mut table: Table) -> Result<PlannedStrategy, serde_json::Error> {
        let example = &self.said.example;
        if let Some(other) = table.keys().find(|key| !example.contains_key(*key)) {
            let all: Vec<String> = example.keys().map(|key| format!("`{key}`")).collect();
            return Err(serde_json::Error::custom(format!(
                "unknown field `{other}`, expected one of {}",
                all.join(", ")
            )));
        }
        if let Some(missing) = example.keys().find(|key| !table.contains_key(*key)) {
            return Err(serde_json::Error::custom(format!("missing field `{missing}`")));
        }
        let mut lists = Vec::new();
        for list in &self.said.lists {
            let nodes = table.shift_remove(list).unwrap_or_default();
            lists.push(
                serde_json::from_value(nodes).map_err(|why| serde_json::Error::custom(format!("{list}: {why}")))?,
            );
        }
        for (key, value) in &table {
            let (found, allowed) = (type_of(value), type_of(&example[key]));
            // A whole number is a number, too.
            if found != allowed && (found, allowed) != ("integer", "number") {
                return Err(serde_json::Error::custom(format!(
                    "{key}: invalid type: found {value}, expected {allowed}"
                )));
            }
        }
        Ok(PlannedStrategy(Box::new(Parameters { script: self, lists, others: table })))
    }

    /// The schema of its parameters.
    pub(super) fn schema(&self, generator: &mut SchemaGenerator) -> Schema {
        let mut properties = Table::new();
        for (key, value) in &self.said.example {
            let one = match self.said.lists.contains(key) {
                true => generator.subschema_for::<Nodes>().to_value(),
                false => json!({ "type": type_of(value) }),
            };
            properties.insert(key.clone(), one);
        }
        let required: Vec<&String> = self.said.example.keys().collect();
        json_schema!({
            "description": self.said.about, "type": "object", "properties": properties, "required": required,
            "additionalProperties": false,
        })
    }
}

/// A scenario's fault of such a kind.
#[derive(Clone, Debug)]
struct Parameters {
    script: &'static Script,
    /// In the order of [`SaidKind::lists`].
    lists: Vec<Nodes>,
    others: Table,
}

impl AnyStrategy for Parameters {
    fn name(&self) -> &'static str {
        &self.script.said.name
    }

    fn facts(&self) -> Facts {
        self.script.facts
    }

    fn nodes(&self) -> Vec<(&'static str, &Nodes)> {
        self.script.said.lists.iter().map(String::as_str).zip(&self.lists).collect()
    }

    fn nodes_mut(&mut self) -> Vec<(&'static str, &mut Nodes)> {
        self.script.said.lists.iter().map(String::as_str).zip(&mut self.lists).collect()
    }

    fn bystanders(&self) -> &'static [&'static str] {
        &self.script.bystanders
    }

    fn parties_mut(&mut self) -> Vec<&mut String> {
        Vec::new()
    }

    fn bounded_values(&self) -> Vec<(&'static str, BoundedValue<'_>)> {
        Vec::new()
    }

    fn vary(&mut self, _below: &mut dyn FnMut(u32) -> u32) {}

    fn behaviours(&self, setting: &Setting<'_>) -> Vec<(ActorId, Box<dyn Behaviour>)> {
        let mut parameters = self.others.clone();
        for (key, nodes) in self.nodes() {
            parameters.insert(key.to_owned(), json!(setting.resolve(nodes)));
        }
        let parameters = Arc::new(Value::Object(parameters));
        let nodes = setting.plan.nodes.len() as u32;
        let role = self.script.said.actor.into();
        let actors = setting.each(&self.lists[0], role, |_| Remote::new(self.script, parameters.clone(), nodes));
        actors.into_iter().map(|(actor, remote)| (actor, Box::new(remote) as Box<dyn Behaviour>)).collect()
    }

    fn boxed(&self) -> Box<dyn AnyStrategy> {
        Box::new(self.clone())
    }

    fn table(&self) -> Table {
        let lists = self.nodes().into_iter().map(|(key, nodes)| (key.to_owned(), json!(nodes)));
        lists.chain(self.others.clone()).collect()
    }

    fn any(&self) -> &dyn Any {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct NoDecisions;

    impl Decider for NoDecisions {
        fn decide(&self, kind: &str, _question: String, _below: &dyn Fn(&str, u64) -> u64) -> Answer {
            self.refuse(kind, "no decision is expected")
        }

        fn refuse(&self, kind: &str, why: &str) -> ! {
            panic!("{kind}: {why}")
        }
    }

    fn read(breaks: &str) -> &'static Script {
        let said = json!({ "name": "odd", "about": "Odd.", "actor": "pool", "breaks": breaks, "lists": ["nodes", "victims"],
            "example": { "nodes": [1], "victims": [2], "part": 0.5 }, "on": ["wakes", "sends block"] });
        let said = serde_json::from_value(said).expect("it is a kind");
        script(said, Arc::new(NoDecisions)).expect("it is well described").0
    }

    #[test]
    fn what_is_held_against_whom_is_as_said() {
        for (breaks, facts) in [("nothing", Facts::OMISSION), ("rules", Facts::BREACH), ("forging", Facts::IRREGULAR)] {
            let script = read(breaks);
            let planned = script.read(script.said.example.clone()).expect("its example is one");
            assert_eq!(planned.facts(), facts, "{breaks}");
            assert_eq!(planned.bystanders(), ["victims"]);
            let lists: Vec<&str> = planned.nodes().into_iter().map(|(key, _)| key).collect();
            assert_eq!(lists, ["nodes", "victims"]);
        }
        assert_eq!(read("rules").on, [On::Wakes, On::Sends("block")]);
    }

    #[test]
    fn a_number_may_be_whole_and_a_whole_number_must_be() {
        let script = read("rules");
        let with = |value: Value| {
            script.read(json!({ "nodes": [1], "victims": [2], "part": value }).as_object().expect("a table").clone())
        };
        assert!(with(json!(1)).is_ok() && with(json!(0.25)).is_ok());
        for wrong in [json!("1"), json!(true), json!([1])] {
            let why = with(wrong.clone()).expect_err("it is none").to_string();
            assert!(why.contains("part") && why.contains("expected number"), "{wrong}: {why}");
        }
    }
}
