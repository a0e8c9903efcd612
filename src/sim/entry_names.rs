//! The names by which entries of a scenario draw. An entry's name is its content and not its place in the list.

use serde::Serialize;
use serde_json::Value;

/// Keys of amounts and durations, which names omit. An entry keeps its draws when they change, so runs that differ in an amount are
/// compared draw by draw.
const AMOUNTS: [&str; 20] = [
    "amount",
    "arrivals",
    "by_ms",
    "chance",
    "copies",
    "down",
    "drift_ppm",
    "fee",
    "funding",
    "jitter_ms",
    "mix",
    "offset_ms",
    "per_second",
    "percent",
    "step_ms",
    "until",
    "up",
    "vendor_field",
    "wallets",
    "within_ms",
];

/// The name of an entry: its content without amounts, and the number of entries `before` it with the same content.
///
/// # Panics
/// The entry has no JSON.
pub(crate) fn name<T: Serialize>(entry: &T, before: &[T]) -> String {
    let said = identity(entry);
    let number = before.iter().filter(|other| identity(*other) == said).count();
    format!("{said}/{number}")
}

fn identity(entry: &impl Serialize) -> String {
    let mut value = serde_json::to_value(entry).expect("entries of a scenario have a JSON");
    if let Value::Object(keys) = &mut value {
        keys.retain(|key, _| !AMOUNTS.contains(&key.as_str()));
    }
    value.to_string()
}
