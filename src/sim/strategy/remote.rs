//! Strategies that another process decides, such as functions in Python.
//!
//! ```text
//!   a behaviour's turn ─► one line of JSON ─► the other process ─► lines of JSON: what it draws, then its answer
//! ```
//!
//! The other process says which kinds it has. A kind is registered like any other, so scenario files, the lab,
//! the search and the minimiser know it. What the other process answers may depend on nothing but the question: what a behaviour has to
//! remember is its state, which is part of the run. So a run can be copied, saved and gone back to, and has the same chain again.
//! `docs/extending.md` has the lines.

use super::{AnyStrategy, Kind, Planned, Setting, Source, Table};
use crate::{
    actors::{
        Actor, ActorId, Behaviour, Effect, Input, Message, NodeId, Role, behaviour, behaviour::Step,
        message::Transactions,
    },
    ledger::saved::{LoadError, Loader, Saved, Saver},
    protocol::{Block, TransactionId},
    sim::{
        FaultKind,
        fault::{Facts, Nodes, Said},
    },
};
use schemars::{Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize, de::Error as _};
use serde_json::{Value, json};
use std::{
    any::Any,
    collections::BTreeMap,
    fmt,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

/// Who decides, outside the simulation.
pub trait Decider: fmt::Debug + Send + Sync {
    /// Answers the question of a turn of a kind: one line of JSON. `below` draws, as [`Step::below`] does.
    fn decide(&self, kind: &str, question: String, below: &dyn Fn(&str, u64) -> u64) -> Answer;

    /// What the answer wants cannot be done, so the run cannot go on.
    fn refuse(&self, kind: &str, why: &str) -> !;
}

/// A kind, as its process describes it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SaidKind {
    /// The `kind` in a file.
    pub name: String,
    /// Its description, for the schema.
    about: String,
    /// The actor that behaves so: `peer`, `pool` or `delegate`.
    actor: SaidRole,
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

/// What its actors break.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Breaks {
    /// They leave something out, as they may.
    Nothing,
    /// The rules, but not those of forging.
    Rules,
    /// The rules of forging.
    Forging,
}

/// A kind that is registered, and where it is decided.
#[derive(Debug)]
pub(super) struct Script {
    said: SaidKind,
    by: Arc<dyn Decider>,
}

/// All of them, for what is read from checkpoints.
static SCRIPTS: RwLock<Vec<&'static Script>> = RwLock::new(Vec::new());

/// Registers a kind, before anything is read or run.
///
/// # Errors
/// It is no new kind with an example: a line that says why.
pub fn register(said: SaidKind, by: Arc<dyn Decider>) -> Result<(), String> {
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
    if let Some(other) = said.on.iter().find(|turn| !is_turn(turn)) {
        let types = TYPES.join(", ");
        return Err(format!(
            "on: found '{other}', allowed are begins, learns, wakes, ends, and hears or sends with one of {types}"
        ));
    }
    let example = toml::to_string(&said.example).map_err(|why| format!("example: {why}"))?;
    let facts = match said.breaks {
        Breaks::Nothing => Facts::OMISSION,
        Breaks::Rules => Facts::BREACH,
        Breaks::Forging => Facts::IRREGULAR,
    };
    // Kinds last as long as the process.
    let script: &'static Script = Box::leak(Box::new(Script { said, by }));
    script.read(script.said.example.clone()).map_err(|why| format!("example: {why}"))?;
    behaviour::learn::<Remote>(&script.said.name);
    SCRIPTS.write().unwrap_or_else(PoisonError::into_inner).push(script);
    super::add(Kind {
        name: &script.said.name,
        facts,
        example: format!("kind = '{}'\n{example}", script.said.name).leak(),
        source: Source::Remote(script),
        is_foreign: true,
    });
    Ok(())
}

fn is_turn(turn: &str) -> bool {
    match turn.split_once(' ') {
        None => ["begins", "learns", "wakes", "ends"].contains(&turn),
        Some(("hears" | "sends", message)) => TYPES.contains(&message),
        Some(_) => false,
    }
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
    pub(super) fn read(&'static self, mut table: Table) -> Result<Planned, serde_json::Error> {
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
        Ok(Planned(Box::new(Parameters { script: self, lists, others: table })))
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

    fn wants(&self, turn: &str, message: &Message) -> bool {
        let asked =
            |on: &String| on.split_once(' ').is_some_and(|(verb, what)| verb == turn && what == name_of(message));
        self.said.on.iter().any(asked)
    }

    fn wants_turn(&self, turn: &str) -> bool {
        self.said.on.iter().any(|on| on == turn)
    }
}

/// What a scenario says of a fault of such a kind.
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
        super::kind(self.name()).expect("it is registered").facts
    }

    fn nodes(&self) -> Vec<(&'static str, &Nodes)> {
        self.script.said.lists.iter().map(String::as_str).zip(&self.lists).collect()
    }

    fn nodes_mut(&mut self) -> Vec<(&'static str, &mut Nodes)> {
        self.script.said.lists.iter().map(String::as_str).zip(&mut self.lists).collect()
    }

    fn bystanders(&self) -> &'static [&'static str] {
        &[]
    }

    fn parties_mut(&mut self) -> Vec<&mut String> {
        Vec::new()
    }

    fn said(&self) -> Vec<(&'static str, Said<'_>)> {
        Vec::new()
    }

    fn vary(&mut self, _below: &mut dyn FnMut(u32) -> u32) {}

    fn behaviours(&self, setting: &Setting<'_>) -> Vec<(ActorId, Box<dyn Behaviour>)> {
        let mut parameters = self.others.clone();
        for (key, nodes) in self.nodes() {
            parameters.insert(key.to_owned(), json!(setting.resolve(nodes)));
        }
        let parameters = Arc::new(Value::Object(parameters));
        let actors = setting.each(&self.lists[0], self.script.said.actor.into(), |_| Remote {
            script: self.script,
            parameters: parameters.clone(),
            state: Value::Null,
            nodes: setting.plan.nodes.len() as u32,
            kept: BTreeMap::new(),
        });
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

/// An actor whose turns the other process decides.
#[derive(Clone, Debug)]
struct Remote {
    script: &'static Script,
    parameters: Arc<Value>,
    /// What the other process wants to have back at the next turn.
    state: Value,
    /// The number of nodes in the network.
    nodes: u32,
    /// Messages that it may send later, by the numbers that it gave them.
    kept: BTreeMap<u64, Message>,
}

impl Saved for Remote {
    fn save(&self, out: &mut Saver) {
        let Self { script, parameters, state, nodes, kept } = self;
        script.said.name.save(out);
        parameters.to_string().save(out);
        state.to_string().save(out);
        nodes.save(out);
        kept.save(out);
    }

    fn load(from: &mut Loader) -> Result<Self, LoadError> {
        let name = String::load(from)?;
        let known = SCRIPTS.read().unwrap_or_else(PoisonError::into_inner);
        let script = known.iter().copied().find(|script| script.said.name == name);
        let script = script.ok_or_else(|| from.wrong("strategy of another process", &name))?;
        let mut json = || {
            let text = String::load(from)?;
            serde_json::from_str(&text).map_err(|why| from.wrong("JSON", why))
        };
        let (parameters, state) = (Arc::new(json()?), json()?);
        Ok(Self { script, parameters, state, nodes: u32::load(from)?, kept: BTreeMap::load(from)? })
    }
}

/// The question of a turn.
#[derive(Serialize)]
struct Question<'a> {
    turn: &'static str,
    kind: &'a str,
    parameters: &'a Value,
    state: &'a Value,
    /// What the coalition has written.
    memory: Option<Value>,
    /// Microseconds of the node's clock since the epoch.
    now: u64,
    node: NodeId,
    peers: &'a [NodeId],
    /// The block that a peer stands on.
    tip: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<NodeId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<Vec<NodeId>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    number: Option<u64>,
}

/// What becomes of a turn.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    state: Value,
    /// The message goes no further.
    #[serde(default)]
    swallow: bool,
    /// Transactions that are taken out of the message.
    #[serde(default)]
    without: Vec<TransactionId>,
    /// The message is kept under this number.
    keep: Option<u64>,
    /// Messages that need not be kept any more.
    #[serde(default)]
    forget: Vec<u64>,
    /// In this order, before the message goes on.
    #[serde(default)]
    effects: Vec<Wanted>,
}

/// Something that the other process wants done.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum Wanted {
    /// Sends this message, or one that is kept, to the peers of nodes.
    Send {
        to: Vec<NodeId>,
        kept: Option<u64>,
        #[serde(default)]
        after_ms: u32,
    },
    Wake {
        after_ms: u32,
        number: u64,
    },
    Share(Value),
}

/// The message of a turn, and whom it concerns.
struct Subject<'a> {
    message: &'a mut Message,
    from: Option<NodeId>,
    to: Option<Vec<NodeId>>,
}

impl Remote {
    /// Asks, and does what is answered. Returns false if the message goes no further.
    fn ask(
        &mut self,
        turn: &'static str,
        actor: &Actor,
        step: &mut Step<'_>,
        subject: Option<Subject<'_>>,
        number: Option<u64>,
    ) -> bool {
        let script = self.script;
        let (message, from, to) = match subject {
            Some(Subject { message, from, to }) => (Some(message), from, to),
            None => (None, None, None),
        };
        let question = Question {
            turn,
            kind: &script.said.name,
            parameters: &self.parameters,
            state: &self.state,
            memory: step.recall(),
            now: step.now.micros(),
            node: step.me.node,
            peers: step.peers,
            tip: actor.peer().map(|peer| shown(peer.tip().block())),
            from,
            to,
            message: message.as_deref().map(described),
            number,
        };
        let question = serde_json::to_string(&question).expect("a question has a JSON");
        let answer = script.by.decide(&script.said.name, question, &|purpose, count| step.below(purpose, count));
        self.obey(answer, step, message).unwrap_or_else(|why| script.by.refuse(&script.said.name, &why))
    }

    fn obey(&mut self, answer: Answer, step: &mut Step<'_>, message: Option<&mut Message>) -> Result<bool, String> {
        self.state = answer.state;
        let is_there = message.is_some();
        if !is_there && (answer.keep.is_some() || answer.swallow || !answer.without.is_empty()) {
            return Err("found keep, swallow or without, allowed in a turn with a message".to_owned());
        }
        if let (Some(number), Some(message)) = (answer.keep, &message) {
            self.kept.insert(number, Message::clone(message));
        }
        for wanted in answer.effects {
            match wanted {
                Wanted::Send { to, kept, after_ms } => {
                    let sent = match (kept, &message) {
                        (Some(number), _) => {
                            self.kept.get(&number).ok_or_else(|| format!("kept: found {number}, which is none"))?
                        }
                        (None, Some(message)) => message,
                        (None, None) => return Err("send: found nothing to send, allowed is what is kept".to_owned()),
                    };
                    if !matches!(
                        sent,
                        Message::Block(_) | Message::Transactions(_) | Message::Status { .. } | Message::Peers(_)
                    ) {
                        let found = name_of(sent);
                        return Err(format!("send: found {found}, allowed are block, transactions, status and peers"));
                    }
                    if let Some(other) = to.iter().find(|node| node.0 >= self.nodes || **node == step.me.node) {
                        let last = self.nodes - 1;
                        return Err(format!("send: found node {}, allowed are 0 to {last} but for its own", other.0));
                    }
                    let at = step.now + Duration::from_millis(after_ms.into());
                    for node in to {
                        let (to, message) = (ActorId { node, role: Role::Peer }, sent.clone());
                        step.put(if after_ms == 0 {
                            Effect::Send { to, message }
                        } else {
                            Effect::SendAt { at, to, message }
                        });
                    }
                }
                Wanted::Wake { after_ms, number } => {
                    step.wake_at(step.now + Duration::from_millis(after_ms.into()), number)
                }
                Wanted::Share(value) => step.share(&value),
            }
        }
        for number in answer.forget {
            self.kept.remove(&number);
        }
        if let Some(message) = message {
            for id in &answer.without {
                message.drop_transaction(id);
            }
        }
        Ok(!answer.swallow)
    }
}

impl Behaviour for Remote {
    fn begins(&mut self, actor: &Actor, step: &mut Step<'_>) {
        if self.script.wants_turn("begins") {
            self.ask("begins", actor, step, None, None);
        }
    }

    fn hears(&mut self, actor: &Actor, step: &mut Step<'_>, mut input: Input) -> Option<Input> {
        let goes_on = match &mut input {
            Input::Message { from, message } if self.script.wants("hears", message) => {
                let subject = Subject { from: Some(from.node), to: None, message };
                self.ask("hears", actor, step, Some(subject), None)
            }
            _ => true,
        };
        goes_on.then_some(input)
    }

    fn does(&mut self, actor: &Actor, step: &mut Step<'_>, mut effect: Effect) -> Option<Effect> {
        let (to, message) = match &mut effect {
            Effect::Send { to, message } | Effect::SendAt { to, message, .. } => (vec![to.node], message),
            Effect::SendToPeers { to, message } => (to.clone(), message),
            _ => return Some(effect),
        };
        if !self.script.wants("sends", message) {
            return Some(effect);
        }
        let subject = Subject { from: None, to: Some(to), message };
        self.ask("sends", actor, step, Some(subject), None).then_some(effect)
    }

    fn wakes(&mut self, actor: &Actor, step: &mut Step<'_>, number: u64) -> Option<Input> {
        if self.script.wants_turn("wakes") {
            self.ask("wakes", actor, step, None, Some(number));
        }
        None
    }

    fn ends(&mut self, actor: &Actor, step: &mut Step<'_>) -> Option<Input> {
        if self.script.wants_turn("ends") {
            self.ask("ends", actor, step, None, None);
        }
        None
    }

    fn learns(&mut self, actor: &Actor, step: &mut Step<'_>) {
        if self.script.wants_turn("learns") {
            self.ask("learns", actor, step, None, None);
        }
    }
}

/// Names the messages, each once.
macro_rules! messages {
    ($($variant:pat => $name:literal),* $(,)?) => {
        /// The names of all messages.
        const TYPES: &[&str] = &[$($name),*];

        fn name_of(message: &Message) -> &'static str {
            match message {
                $($variant => $name),*
            }
        }
    };
}

messages! {
    Message::Connect { .. } => "connect",
    Message::Connected { .. } => "connected",
    Message::Block(_) => "block",
    Message::Transactions(_) => "transactions",
    Message::StatusRequest => "status-request",
    Message::Status { .. } => "status",
    Message::BlocksRequest { .. } => "blocks-request",
    Message::Blocks { .. } => "blocks",
    Message::CommonBlocksRequest { .. } => "common-blocks-request",
    Message::CommonBlocks { .. } => "common-blocks",
    Message::PeersRequest => "peers-request",
    Message::Peers(_) => "peers",
    Message::HungUp => "hung-up",
    Message::RoundRequest => "round-request",
    Message::Round(_) => "round",
    Message::RoundChanged(_) => "round-changed",
    Message::NetworkStateRequest => "network-state-request",
    Message::NetworkState(_) => "network-state",
    Message::ForgingTransactionsRequest => "forging-transactions-request",
    Message::ForgingTransactions(_) => "forging-transactions",
    Message::Forged(_) => "forged",
    Message::WakeUp => "wake-up",
    Message::RelayFailed { .. } => "relay-failed",
    Message::ChooseTransactions { .. } => "choose-transactions",
    Message::AddTransactions(_) => "add-transactions",
    Message::Broadcast(_) => "broadcast",
    Message::TipMoved { .. } => "tip-moved",
    Message::Reorganised { .. } => "reorganised",
    Message::BlockNotApplied { .. } => "block-not-applied",
    Message::AlreadyForged { .. } => "already-forged",
}

/// A message as the other process sees it.
fn described(message: &Message) -> Value {
    let ids = |all: &Transactions| json!(all.iter().map(|one| one.id()).collect::<Vec<_>>());
    let mut told = match message {
        Message::Block(block) | Message::Forged(block) | Message::BlockNotApplied { block, .. } => {
            json!({ "block": shown(block) })
        }
        Message::Status { tip } => json!({ "block": shown(tip) }),
        Message::Transactions(all) | Message::Broadcast(all) | Message::ForgingTransactions(all) => {
            json!({ "transactions": ids(all) })
        }
        Message::AddTransactions(added) => json!({ "transactions": ids(&added.transactions) }),
        Message::AlreadyForged { ids, .. } => json!({ "transactions": ids }),
        Message::Blocks { height, blocks, .. } => {
            json!({ "height": height, "blocks": blocks.iter().map(|block| shown(block)).collect::<Vec<_>>() })
        }
        Message::BlocksRequest { above, limit, .. } => json!({ "above": above, "limit": limit }),
        Message::Peers(nodes) => json!({ "nodes": nodes }),
        Message::Round(view) | Message::RoundChanged(view) => {
            json!({ "round": view.round.number(), "height": view.tip_height })
        }
        Message::RelayFailed { error } => json!({ "error": error }),
        _ => json!({}),
    };
    told["type"] = name_of(message).into();
    told
}

fn shown(block: &Block) -> Value {
    let header = &block.header;
    json!({
        "id": block.id,
        "height": header.height,
        "timestamp": header.timestamp,
        "previous": header.previous,
        "generator": header.generator,
        "transactions": block.transactions.iter().map(|one| one.id()).collect::<Vec<_>>(),
    })
}
