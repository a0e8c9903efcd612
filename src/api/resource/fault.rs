//! Faults as the operator of a run sees them.

use crate::{
    api::table::{Bound, Dialect, Member, Parameter, Rule, Shape, both, field::Cell, shape::NamedSchemas},
    scenario::Scenario,
    sim::world::{FaultState, FaultStatus},
};
use serde_json::Value;

/// A fault by its id.
pub(crate) const PATH_ID: &[Parameter] = &[both("id", Rule::Integer(Bound::Least(0)))];
/// A node by its number.
pub(crate) const PATH_NODE: &[Parameter] = &[both("node", Rule::Integer(Bound::Least(0)))];
/// The parameters of a crash and of a restart.
pub(crate) const BACK: &[Parameter] = &[both("keep_pool", Rule::Boolean)];

/// A fault as in a scenario file, with the schema that `dposlab schema` prints.
pub(crate) const WRITTEN: Shape = Shape::Resource("Fault", &(schema as fn(Dialect, &mut NamedSchemas) -> Value));

fn schema(_: Dialect, named: &mut NamedSchemas) -> Value {
    let schema = Scenario::schema();
    refer(&schema["$defs"]["Fault"], &schema["$defs"], named)
}

/// The members of a fault's state.
pub(crate) const MEMBERS: &[Member<FaultStatus>] = &[
    Member::new("id", Shape::Integer, |status, _| status.id.into()),
    Member::new("state", Shape::Pattern("^(waiting|in-force|over)$"), |status, _| match status.state {
        FaultState::Waiting => "waiting".into(),
        FaultState::InForce { .. } => "in-force".into(),
        FaultState::Over => "over".into(),
    }),
    Member::some("since", Shape::Integer, |status, _| match status.state {
        FaultState::InForce { since } => since.seconds().into(),
        FaultState::Waiting | FaultState::Over => Cell::Missing,
    }),
    Member::by("fault", WRITTEN, |status, _, slot| slot.put(&status.fault)),
];

/// The shape of a fault's state.
pub(crate) const SHAPE: Shape = Shape::Table(&MEMBERS);

/// Rewrites the references of a schema to named schemas of the API's description. Adds these to `named`, with `Fault`
/// before each name.
fn refer(schema: &Value, definitions: &Value, named: &mut NamedSchemas) -> Value {
    match schema {
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| {
                let referred = value.as_str().and_then(|text| text.strip_prefix("#/$defs/")).filter(|_| name == "$ref");
                let Some(referred) = referred else { return (name.clone(), refer(value, definitions, named)) };
                let own = format!("Fault{referred}");
                if !named.contains_key(&own) {
                    // The name comes first, so that the recursion ends for a schema that refers to itself.
                    named.insert(own.clone(), Value::Null);
                    let found = refer(&definitions[referred], definitions, named);
                    named.insert(own.clone(), found);
                }
                (name.clone(), format!("#/components/schemas/{own}").into())
            };
            Value::Object(members.iter().map(member).collect())
        }
        Value::Array(items) => items.iter().map(|item| refer(item, definitions, named)).collect(),
        other => other.clone(),
    }
}
