//! The goal of an advance, as the body of `POST /lab/advance` states it.

use crate::{
    actors::{NodeId, SimTime},
    api::{http::ApiError, table::shape::object},
    protocol::{Height, RoundNumber, Timestamp},
    sim::{
        fault::{EventKind, EventTrigger},
        live::{ADVANCE_LIMIT, Until},
    },
};
use serde_json::{Map, Value, json};

/// The requested advance.
#[derive(Debug, PartialEq)]
pub(crate) struct AdvanceWish {
    /// The largest number of slots to play.
    pub slots: u32,
    pub until: Option<Until>,
}

/// The largest number of slots to play if the body has no `limit`.
const LIMIT: u32 = 10_000;
/// The events that an advance can wait for.
const NAMES: [&str; 5] = ["height", "time", "round", "transaction", "event"];

/// Reads the body. Heights, rounds and transactions refer to the chain of `node`.
pub(crate) fn read(body: &Value, node: NodeId) -> Result<AdvanceWish, ApiError> {
    let members = body.as_object().ok_or_else(|| wrong(None, body))?;
    if !members.contains_key("until") {
        let slots = members.get("slots").filter(|_| members.len() == 1).and_then(in_limits);
        return slots.map(|slots| AdvanceWish { slots, until: None }).ok_or_else(|| wrong(None, body));
    }
    if let Some(unknown) = members.keys().find(|name| !["until", "limit"].contains(&name.as_str())) {
        return Err(wrong(Some(unknown), body));
    }
    let slots = match members.get("limit") {
        None => LIMIT,
        Some(limit) => in_limits(limit).ok_or_else(|| refused("limit", limit, &slots_allowed()))?,
    };
    read_until(&members["until"], node).map(|until| AdvanceWish { slots, until: Some(until) })
}

/// The schema of the body, for the description of the API.
pub(crate) fn schema() -> Value {
    let slots = json!({"type": "integer", "minimum": 1, "maximum": ADVANCE_LIMIT});
    let number = |least: u32| json!({"type": "integer", "minimum": least, "maximum": u32::MAX});
    let kinds = schemars::schema_for!(EventKind).get("enum").cloned();
    let kind = kinds.map_or(json!({"type": "string"}), |kinds| json!({"enum": kinds}));
    let node = json!({"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string"}]});
    let event = object([("kind", kind, true), ("node", node, false), ("count", number(1), false)]);
    let until = json!({
        "type": "object",
        "properties": {
            "height": number(1), "time": number(0), "round": number(1), "event": event,
            "transaction": {"type": "string", "pattern": "^[0-9a-fA-F]{64}$"},
        },
        "minProperties": 1,
        "maxProperties": 1,
        "additionalProperties": false,
    });
    let limit = slots.clone();
    json!({"anyOf": [object([("slots", slots, true)]), object([("until", until, true), ("limit", limit, false)])]})
}

fn read_until(until: &Value, node: NodeId) -> Result<Until, ApiError> {
    let members: Option<&Map<String, Value>> = until.as_object().filter(|members| members.len() == 1);
    let one_of = || refused("until", until, &format!("an object with one of {}", NAMES.join(", ")));
    let (name, value) = members.and_then(|members| members.iter().next()).ok_or_else(one_of)?;
    let key = format!("until.{name}");
    let number = |least: u32| {
        let number = value.as_u64().and_then(|number| u32::try_from(number).ok()).filter(|number| *number >= least);
        number.ok_or_else(|| refused(&key, value, &format!("a whole number from {least} to {}", u32::MAX)))
    };
    match name.as_str() {
        "height" => Ok(Until::Height { node, height: Height(number(1)?) }),
        "time" => Ok(Until::Time(SimTime::from_seconds(Timestamp(number(0)?)))),
        "round" => Ok(Until::Round { node, round: RoundNumber(number(1)?) }),
        "transaction" => {
            let id = value.as_str().and_then(|text| text.parse().ok());
            let id = id.ok_or_else(|| refused(&key, value, "the id of a transaction, 64 hexadecimal digits"))?;
            Ok(Until::Transaction { node, id })
        }
        "event" if !value.is_object() => Err(refused(&key, value, "an object of 'kind', 'node' and 'count'")),
        "event" => match serde_json::from_value::<EventTrigger>(value.clone()) {
            Ok(event) if event.count > 0 => Ok(Until::Event(event)),
            Ok(_) => Err(refused("until.event.count", &json!(0), &format!("a whole number from 1 to {}", u32::MAX))),
            Err(why) => Err(ApiError::Unprocessable(format!("key '{key}': {why}"))),
        },
        _ => Err(one_of()),
    }
}

fn in_limits(slots: &Value) -> Option<u32> {
    slots.as_u64().and_then(|slots| u32::try_from(slots).ok()).filter(|slots| (1..=ADVANCE_LIMIT).contains(slots))
}

fn slots_allowed() -> String {
    format!("a whole number from 1 to {ADVANCE_LIMIT}")
}

fn wrong(unknown: Option<&str>, body: &Value) -> ApiError {
    let found = unknown.map_or_else(|| shown(body), |unknown| format!("'{unknown}'"));
    ApiError::Unprocessable(format!(
        "the body must be {{\"slots\":n}} or {{\"until\":{{..}},\"limit\":n}} with a whole number n from 1 to {ADVANCE_LIMIT}; \
         found {found}"
    ))
}

/// An error about a member, which names what was found and what is allowed.
pub(crate) fn refused(key: &str, found: &Value, allowed: &str) -> ApiError {
    ApiError::Unprocessable(format!("key '{key}': found {}, allowed is {allowed}", shown(found)))
}

/// The beginning of a value that a client sent.
fn shown(value: &Value) -> String {
    const SHOWN: usize = 80;
    let text = value.to_string();
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::fault::NodeRef;

    fn reads(body: Value) -> AdvanceWish {
        read(&body, NodeId(2)).expect("it is allowed")
    }

    fn refuses(body: Value, part: &str) {
        let why = read(&body, NodeId(2)).expect_err("it is refused").to_string();
        assert!(why.contains(part), "{body}: {why}");
    }

    #[test]
    fn slots_are_counted_in_whole_numbers() {
        assert_eq!(reads(json!({"slots": 1_000_000})), AdvanceWish { slots: 1_000_000, until: None });
        for wrong in [
            json!(null),
            json!(5),
            json!({}),
            json!({"slots": 0}),
            json!({"slots": "5"}),
            json!({"slots": 1.5}),
            json!({"slots": 1_000_001}),
            json!({"slots": 1, "blocks": 1}),
            json!({"slots": 1, "limit": 1}),
        ] {
            refuses(wrong, "from 1 to 1000000; found ");
        }
    }

    #[test]
    fn one_thing_is_waited_for() {
        let until = |until: Value| reads(json!({ "until": until })).until.expect("it is given");
        assert_eq!(until(json!({"height": 9})), Until::Height { node: NodeId(2), height: Height(9) });
        assert_eq!(until(json!({"round": 3})), Until::Round { node: NodeId(2), round: RoundNumber(3) });
        assert_eq!(until(json!({"time": 800})), Until::Time(SimTime::from_seconds(Timestamp(800))));
        let node = Some(NodeRef::Delegate("genesis_1".to_owned()));
        let event = json!({"event": {"kind": "block-forged", "node": "genesis_1"}});
        assert_eq!(until(event), Until::Event(EventTrigger { kind: EventKind::BlockForged, node, count: 1 }));
        assert_eq!(reads(json!({"until": {"height": 2}})).slots, LIMIT);
        assert_eq!(reads(json!({"until": {"height": 2}, "limit": 7})).slots, 7);
        refuses(
            json!({"until": {"height": 2, "round": 1}}),
            "key 'until': found {\"height\":2,\"round\":1}, allowed is",
        );
        refuses(json!({"until": {"blocks": 2}}), "one of height, time, round, transaction, event");
        refuses(json!({"until": {"height": 0}}), "key 'until.height': found 0, allowed is a whole number from 1");
        refuses(json!({"until": {"transaction": "ab"}}), "key 'until.transaction': found \"ab\", allowed is the id");
        refuses(
            json!({"until": {"event": ["block-forged", 1, 1]}}),
            "allowed is an object of 'kind', 'node' and 'count'",
        );
        refuses(json!({"until": {"event": {"kind": "blok-forged"}}}), "expected one of `block-forged`");
        refuses(json!({"until": {"event": {"kind": "block-forged", "count": 0}}}), "key 'until.event.count': found 0");
        refuses(json!({"until": {"height": 2}, "limit": 0}), "key 'limit': found 0, allowed is a whole number");
        refuses(json!({"until": {"height": 2}, "slots": 1}), "found 'slots'");
    }
}
