//! The format of scenario files as a JSON Schema.

use super::{Scenario, assertion::Metric};
use crate::ledger::Rules;
use schemars::schema_for;
use serde_json::{Map, Value, json};

impl Scenario {
    /// The JSON Schema of scenario files. Rules are described by their reference values, conditions by the metrics.
    pub fn schema() -> Value {
        let mut schema = schema_for!(Scenario).to_value();
        schema["title"] = "dposlab scenario".into();
        let rules = serde_json::to_value(Rules::reference()).expect("rules are made of what JSON can hold");
        let mut described = shape(&rules);
        described["properties"]["base"] = json!({ "enum": ["reference", "corrected"], "default": "reference" });
        schema["properties"]["rules"] = described;
        let metrics: Vec<String> =
            Metric::ALL.iter().map(|metric| format!("{}: {}", metric.name(), metric.description())).collect();
        schema["$defs"]["Assertion"]["description"] =
            format!("Something that must hold of a run. Metrics are\n{}", metrics.join("\n")).into();
        schema
    }
}

/// What a value's place may hold: the same keys with values of the same types, each with its default.
fn shape(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let properties: Map<String, Value> =
                members.iter().map(|(name, member)| (name.clone(), shape(member))).collect();
            json!({ "type": "object", "properties": properties, "additionalProperties": false })
        }
        // What can be switched off is a number or false.
        Value::Bool(_) => json!({ "type": ["boolean", "number", "string", "object"], "default": value }),
        Value::Number(_) => json!({ "type": ["number", "boolean"], "default": value }),
        Value::String(_) => json!({ "type": "string", "default": value }),
        Value::Array(_) => json!({ "type": "array", "default": value }),
        Value::Null => json!({}),
    }
}
