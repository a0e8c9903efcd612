//! The format of scenario files as a JSON Schema, and the keys that the schema allows in a table.

use super::{Scenario, assertion::Metric, path::PathStep};
use crate::ledger::{Rules, rules};
use schemars::schema_for;
use serde_json::{Map, Value, json};
use std::{collections::BTreeSet, sync::LazyLock};

impl Scenario {
    /// The JSON Schema of scenario files. Rules are described by their reference values, conditions by the metrics.
    pub fn schema() -> Value {
        let mut schema = schema_for!(Scenario).to_value();
        schema["title"] = "dposlab scenario".into();
        let reference = serde_json::to_value(Rules::reference()).expect("rules are made of what JSON can hold");
        let mut described = shape(&reference);
        described["properties"]["base"] =
            json!({ "enum": rules::all().map(|named| named.name).collect::<Vec<_>>(), "default": "reference" });
        schema["properties"]["rules"] = described;
        let metrics: Vec<String> =
            Metric::ALL.iter().map(|metric| format!("{}: {}", metric.name(), metric.description())).collect();
        schema["$defs"]["Assertion"]["description"] =
            format!("Something that must hold of a run. Metrics are\n{}", metrics.join("\n")).into();
        schema
    }
}

/// The format, made once.
static FORMAT: LazyLock<Value> = LazyLock::new(Scenario::schema);

/// The path of a list in a place where the format allows a table and no list.
pub(super) fn list_for_a_table(scenario: &toml::Value) -> Option<Vec<PathStep>> {
    let mut path = Vec::new();
    let of_all = parts(&FORMAT, &FORMAT, scenario);
    find_list(scenario, &of_all, &mut path).then_some(path)
}

/// Searches for such a list in a value that these schemas describe. Extends `path` to the list if there is one.
fn find_list(value: &toml::Value, schemas: &[&Value], path: &mut Vec<PathStep>) -> bool {
    let below: Vec<(PathStep, &toml::Value)> = match value {
        toml::Value::Table(table) => table.iter().map(|(key, value)| (PathStep::Key(key.clone()), value)).collect(),
        toml::Value::Array(_) if is_of(schemas, "object") && !is_of(schemas, "array") => return true,
        toml::Value::Array(list) => {
            list.iter().enumerate().map(|(index, value)| (PathStep::Index(index), value)).collect()
        }
        _ => return false,
    };
    below.into_iter().any(|(step, value)| {
        let of_step = schemas.iter().filter_map(|schema| match &step {
            PathStep::Key(key) => schema["properties"].get(key).or_else(|| schema.get("additionalProperties")),
            PathStep::Index(_) | PathStep::Next => schema.get("items"),
        });
        let of_value: Vec<&Value> = of_step.flat_map(|schema| parts(&FORMAT, schema, value)).collect();
        path.push(step);
        let is_found = find_list(value, &of_value, path);
        if !is_found {
            path.pop();
        }
        is_found
    })
}

/// Returns true if one of the schemas allows a value of this type.
fn is_of(schemas: &[&Value], name: &str) -> bool {
    schemas.iter().any(|schema| match &schema["type"] {
        Value::String(only) => only == name,
        Value::Array(any) => any.iter().any(|one| one == name),
        _ => false,
    })
}

/// The keys that the schema allows in the table of a path's last key. If the table has a `kind`, the keys of that kind.
pub(super) fn keys_beside(scenario: &toml::Value, path: &[PathStep]) -> BTreeSet<String> {
    let root = Scenario::schema();
    let Some((_, above)) = path.split_last() else { return BTreeSet::new() };
    let mut schemas = parts(&root, &root, scenario);
    let mut value = scenario;
    for step in above {
        let found = match step {
            PathStep::Key(key) => value.get(key.as_str()),
            PathStep::Index(index) => value.get(*index),
            PathStep::Next => None,
        };
        let Some(found) = found else { return BTreeSet::new() };
        let below = schemas.into_iter().filter_map(|schema| match step {
            PathStep::Key(key) => schema["properties"].get(key),
            PathStep::Index(_) | PathStep::Next => schema.get("items"),
        });
        schemas = below.flat_map(|schema| parts(&root, schema, found)).collect();
        value = found;
    }
    schemas.iter().filter_map(|schema| schema["properties"].as_object()).flat_map(Map::keys).cloned().collect()
}

/// A schema, the schemas that it refers to, and the alternatives that fit a value.
fn parts<'a>(root: &'a Value, schema: &'a Value, value: &toml::Value) -> Vec<&'a Value> {
    let referred = schema["$ref"].as_str().and_then(|name| root.pointer(name.trim_start_matches('#')));
    let alternatives = ["oneOf", "anyOf", "allOf"].into_iter().filter_map(|list| schema[list].as_array()).flatten();
    let kind = value.get("kind").and_then(toml::Value::as_str);
    let fits = |schema: &&Value| schema["properties"]["kind"]["const"].as_str().is_none_or(|of| Some(of) == kind);
    let below = referred.into_iter().chain(alternatives.filter(fits));
    [schema].into_iter().chain(below.flat_map(|schema| parts(root, schema, value))).collect()
}

/// The schema of a value: the same keys with values of the same types, each with its default.
fn shape(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let properties: Map<String, Value> =
                members.iter().map(|(name, member)| (name.clone(), shape(member))).collect();
            json!({ "type": "object", "properties": properties, "additionalProperties": false })
        }
        // A value that can be switched off is a number or false.
        Value::Bool(_) => json!({ "type": ["boolean", "number", "string", "object"], "default": value }),
        Value::Number(_) => json!({ "type": ["number", "boolean"], "default": value }),
        Value::String(_) => json!({ "type": "string", "default": value }),
        Value::Array(_) => json!({ "type": "array", "default": value }),
        Value::Null => json!({}),
    }
}
