//! Merging each milestone over its predecessor: objects member by member, everything else replaced.

use super::MilestoneError;
use crate::protocol::{Height, coercion};
use serde_json::Value;

/// A list of milestones, sorted and merged, but not yet read further.
pub(super) struct MergedMilestones {
    /// Heights ascending, each once, the first 1; every object holds all members set so far.
    pub list: Vec<(Height, Value)>,
    /// The heights that are numbers: only at these does the reference announce a new milestone.
    pub announced: Vec<Height>,
}

pub(super) fn merged(list: &Value) -> Result<MergedMilestones, MilestoneError> {
    let wrong = || MilestoneError::NotAList { found: shown(list) };
    let list = list.as_array().filter(|list| !list.is_empty()).ok_or_else(wrong)?;
    let mut sorted = in_order(list)?;
    sorted.sort_by(|one, other| one.0.total_cmp(&other.0));
    let first = sorted[0].0;
    if first > 1.0 {
        return Err(MilestoneError::FirstHeight { found: first.to_string() });
    }
    let mut current = Value::Object(Default::default());
    let mut merged = MergedMilestones { list: Vec::new(), announced: Vec::new() };
    for (height, object) in sorted {
        lay_over(&mut current, object);
        // A fractional height takes effect at the next whole one. One beyond the largest height never does.
        if height > f64::from(u32::MAX) {
            break;
        }
        let begins = Height(height.ceil().max(1.0) as u32);
        merged.list.pop_if(|(before, _)| *before == begins);
        merged.list.push((begins, current.clone()));
        if current["height"].as_f64() == Some(f64::from(begins.0)) {
            merged.announced.push(begins);
        }
    }
    Ok(merged)
}

/// Every milestone with its height, still in the order of the file. One without a height belongs to the one before it.
fn in_order(list: &[Value]) -> Result<Vec<(f64, &Value)>, MilestoneError> {
    let wrong = |found: &Value, key: &str, allowed: &str| MilestoneError::Wrong {
        height: Height(0),
        key: key.to_owned(),
        found: shown(found),
        allowed: allowed.to_owned(),
    };
    let mut heights: Vec<(f64, &Value)> = Vec::with_capacity(list.len());
    let mut is_complete = true;
    for object in list {
        if !object.is_object() {
            return Err(wrong(object, "height", "a number, in an object"));
        }
        let height = match object.get("height") {
            Some(found) => Some(coercion::number(Some(found)))
                .filter(|height| !height.is_nan())
                .ok_or_else(|| wrong(found, "height", "a number"))?,
            None => {
                is_complete = false;
                heights.last().map_or(1.0, |(height, _)| *height)
            }
        };
        heights.push((height, object));
    }
    if !is_complete && !heights.is_sorted_by_key(|(height, _)| *height) {
        return Err(MilestoneError::NoOrder);
    }
    Ok(heights)
}

fn lay_over(base: &mut Value, over: &Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                match base.get_mut(key) {
                    Some(below) => lay_over(below, value),
                    None => drop(base.insert(key.clone(), value.clone())),
                }
            }
        }
        (base, over) => *base = over.clone(),
    }
}

/// A value as messages show it.
pub(super) fn shown(value: &Value) -> String {
    value.to_string().chars().take(80).collect()
}
