//! The turns of an actor that another process decides: the question, and the effects of the answer.

use super::{
    On, Script,
    message::{described, name_of, shown},
};
use crate::{
    actors::{Actor, ActorId, Behaviour, Effect, Input, Message, NodeId, Role, behaviour::Step},
    ledger::codec::{LoadError, Loader, Save, Saver},
    protocol::TransactionId,
    sim::strategy::{self, Source},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{collections::BTreeMap, sync::Arc, time::Duration};

/// An actor whose turns the other process decides.
#[derive(Clone, Debug)]
pub(crate) struct Remote {
    script: &'static Script,
    parameters: Arc<Value>,
    /// The state that the other process receives again at the next turn.
    state: Value,
    /// The number of nodes in the network.
    nodes: u32,
    /// The messages that the other process may send later, by the numbers that it gave them.
    kept: BTreeMap<u64, Message>,
}

impl Save for Remote {
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
        let script = match strategy::kind(&name).map(|kind| kind.source) {
            Some(Source::Remote(script)) => script,
            _ => return Err(from.wrong("strategy of another process", &name)),
        };
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
    /// The memory that the coalition has written.
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

/// The result of a turn.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Answer {
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
    /// The effects to carry out in this order, before the message goes on.
    #[serde(default)]
    effects: Vec<RequestedEffect>,
}

/// An effect that the other process asks for.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum RequestedEffect {
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

/// The message of a turn, with its sender or its receivers.
struct Subject<'a> {
    message: &'a mut Message,
    from: Option<NodeId>,
    to: Option<Vec<NodeId>>,
}

impl Remote {
    /// A behaviour without state yet, in a network of `nodes` nodes.
    pub fn new(script: &'static Script, parameters: Arc<Value>, nodes: u32) -> Self {
        Self { script, parameters, state: Value::Null, nodes, kept: BTreeMap::new() }
    }

    fn wants(&self, on: On) -> bool {
        self.script.on.contains(&on)
    }

    /// Asks the other process and carries out its answer. Returns false if the message goes no further.
    fn ask(
        &mut self,
        turn: On,
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
            turn: turn.word(),
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
                RequestedEffect::Send { to, kept, after_ms } => {
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
                RequestedEffect::Wake { after_ms, number } => {
                    step.wake_at(step.now + Duration::from_millis(after_ms.into()), number)
                }
                RequestedEffect::Share(value) => step.share(&value),
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
        if self.wants(On::Begins) {
            self.ask(On::Begins, actor, step, None, None);
        }
    }

    fn hears(&mut self, actor: &Actor, step: &mut Step<'_>, mut input: Input) -> Option<Input> {
        let goes_on = match &mut input {
            Input::Message { from, message } if self.wants(On::Hears(name_of(message))) => {
                let on = On::Hears(name_of(message));
                let subject = Subject { from: Some(from.node), to: None, message };
                self.ask(on, actor, step, Some(subject), None)
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
        let on = On::Sends(name_of(message));
        if !self.wants(on) {
            return Some(effect);
        }
        let subject = Subject { from: None, to: Some(to), message };
        self.ask(on, actor, step, Some(subject), None).then_some(effect)
    }

    fn wakes(&mut self, actor: &Actor, step: &mut Step<'_>, number: u64) -> Option<Input> {
        if self.wants(On::Wakes) {
            self.ask(On::Wakes, actor, step, None, Some(number));
        }
        None
    }

    fn ends(&mut self, actor: &Actor, step: &mut Step<'_>) -> Option<Input> {
        if self.wants(On::Ends) {
            self.ask(On::Ends, actor, step, None, None);
        }
        None
    }

    fn learns(&mut self, actor: &Actor, step: &mut Step<'_>) {
        if self.wants(On::Learns) {
            self.ask(On::Learns, actor, step, None, None);
        }
    }
}
