//! Each milestone laid over its predecessor: objects member by member, everything else replaced.

use super::MilestoneError;
use crate::protocol::Height;
use serde_json::Value;

/// Heights ascending, each once, the first 1; every object holds all members set so far.
pub(super) fn merged(list: &Value) -> Result<Vec<(Height, Value)>, MilestoneError> {
    let wrong = || MilestoneError::NotAList { found: list.to_string().chars().take(80).collect() };
    let list = list.as_array().filter(|list| !list.is_empty()).ok_or_else(wrong)?;
    let mut sorted = list.iter().map(|object| Ok((height(object)?, object))).collect::<Result<Vec<_>, _>>()?;
    sorted.sort_by_key(|(height, _)| *height);
    if sorted[0].0 != Height::GENESIS {
        return Err(MilestoneError::FirstHeight { found: sorted[0].0.0 });
    }
    if let Some(pair) = sorted.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        return Err(MilestoneError::Twice { height: pair[0].0 });
    }
    let mut current = Value::Object(Default::default());
    Ok(sorted
        .into_iter()
        .map(|(height, object)| {
            lay_over(&mut current, object);
            (height, current.clone())
        })
        .collect())
}

fn height(object: &Value) -> Result<Height, MilestoneError> {
    let found = object.get("height").unwrap_or(object);
    found.as_u64().and_then(|height| u32::try_from(height).ok()).filter(|height| *height > 0).map(Height).ok_or_else(
        || MilestoneError::Wrong {
            height: Height(0),
            key: "height".to_owned(),
            found: found.to_string().chars().take(80).collect(),
            allowed: "a whole number from 1 to 4294967295".to_owned(),
        },
    )
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
