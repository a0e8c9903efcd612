//! Examples of requests, with the answers of a live node. `tests/runs/examples.rs` sends the requests again, and can rewrite
//! the file.

use crate::api::table::dialect::Dialect;
use serde_json::{Value, json};
use std::sync::LazyLock;

/// The requested target, the sent body and the answer of each example, by dialect and then by method and path.
static ALL: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!("examples.json")).expect("a test holds the file against answers")
});

/// An example of one operation.
pub(crate) struct Example {
    path: String,
    recorded: &'static Value,
}

/// The example of an operation, if there is one.
pub(crate) fn of(dialect: Dialect, method: &str, path: &str) -> Option<Example> {
    let recorded = ALL[&*dialect.to_string()].get(format!("{method} {path}"))?;
    Some(Example { path: path.to_owned(), recorded })
}

/// The answer about a missing resource.
pub(crate) fn missing(dialect: Dialect) -> Option<&'static Value> {
    ALL[&*dialect.to_string()].get("missing")?.get("answer")
}

/// The answer to a request that breaks a rule.
pub(crate) fn invalid(dialect: Dialect) -> Option<&'static Value> {
    ALL[&*dialect.to_string()].get("invalid")?.get("answer")
}

impl Example {
    /// Adds the example to the description of its operation.
    pub fn put_into(&self, operation: &mut Value) {
        let target = self.recorded["target"].as_str().unwrap_or_default();
        let segments = self.path.split('/').zip(target.split('?').next().unwrap_or_default().split('/'));
        for (wanted, given) in segments.filter(|(wanted, _)| wanted.starts_with('{')) {
            let name = wanted.trim_matches(['{', '}']);
            let parameters = operation["parameters"].as_array_mut().into_iter().flatten();
            for parameter in parameters.filter(|parameter| parameter["in"] == "path" && parameter["name"] == name) {
                let is_number = parameter["schema"]["type"] == "integer";
                parameter["example"] = given
                    .parse::<u32>()
                    .ok()
                    .filter(|_| is_number)
                    .map_or_else(|| json!(given), |number| json!(number));
            }
        }
        if let Some(body) = self.recorded.get("body")
            && let Some(content) = operation.pointer_mut("/requestBody/content/application~1json")
        {
            content["example"] = body.clone();
        }
        let status = self.recorded["status"].to_string();
        let answer = self.recorded.get("answer").filter(|answer| !answer.is_null());
        let contents = operation.pointer_mut(&format!("/responses/{status}/content")).and_then(Value::as_object_mut);
        for (_, content) in contents.into_iter().flatten().filter(|_| answer.is_some()) {
            content["example"] = answer.cloned().unwrap_or_default();
        }
    }
}
