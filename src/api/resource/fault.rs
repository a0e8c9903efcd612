//! Faults as those who steer a run see them.

use crate::{
    api::table::{
        dialect::Dialect,
        json::{self, Object},
        parameter::{Parameter, both},
        rule::{Bound, Rule},
        shape::{Named, Shape},
    },
    scenario::Scenario,
    sim::world::{FaultState, FaultStatus},
};
use serde_json::Value;

/// A fault by its id.
pub const PATH_ID: &[Parameter] = &[both("id", Rule::Integer(Bound::Least(0)))];
/// A node by its number.
pub const PATH_NODE: &[Parameter] = &[both("node", Rule::Integer(Bound::Least(0)))];
/// The parameters of a crash and of a restart.
pub const BACK: &[Parameter] = &[both("keep_pool", Rule::Boolean)];

/// A fault as in a scenario file, with the schema that `dposlab schema` prints.
pub const WRITTEN: Shape = Shape::Resource("Fault", |_: Dialect, named: &mut Named| {
    let schema = Scenario::schema();
    refer(&schema["$defs"]["Fault"], &schema["$defs"], named)
});

/// The shape of a fault's state.
pub const SHAPE: Shape = Shape::Members(&[
    ("id", Shape::Integer, true),
    ("state", Shape::Pattern("^(waiting|in-force|over)$"), true),
    ("since", Shape::Integer, false),
    ("fault", WRITTEN, true),
]);

/// A schema that refers to named ones of the API's description, `Fault` before each name, and these added.
fn refer(schema: &Value, definitions: &Value, named: &mut Named) -> Value {
    match schema {
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| {
                let referred = value.as_str().and_then(|text| text.strip_prefix("#/$defs/")).filter(|_| name == "$ref");
                let Some(referred) = referred else { return (name.clone(), refer(value, definitions, named)) };
                let own = format!("Fault{referred}");
                if !named.contains_key(&own) {
                    // Its place first, so that a schema within itself ends.
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

/// Writes how one stands.
pub fn write(out: &mut Vec<u8>, status: &FaultStatus) {
    let mut object = Object::open(out);
    object.member("id").put(&status.id);
    object.member("state").put(match status.state {
        FaultState::Waiting => "waiting",
        FaultState::InForce { .. } => "in-force",
        FaultState::Over => "over",
    });
    if let FaultState::InForce { since } = status.state {
        object.member("since").put(&since.seconds());
    }
    object.member("fault").value_with(|out| json::write_value(out, &status.fault));
    object.close();
}
