//! Steering the run: advancing it by slots and setting its pace. For whoever runs the process, so on loopback only.

use super::Call;
use crate::{
    api::{ApiError, Reply, json, route::Answer, shape::Shape},
    sim::{
        Pace,
        live::{ADVANCE_LIMIT, Advanced},
    },
};
use serde_json::Value;

/// What came of an advance: whole slots that were played, and why it ended before all were, if it did.
pub const ADVANCED_SHAPE: Shape = Shape::Members(&[
    ("slots", Shape::Integer, true),
    ("height", Shape::Integer, true),
    ("now", Shape::Integer, true),
    ("asked", Shape::Integer, false),
    ("stopped", Shape::Text, false),
]);
/// The pace, and the virtual time in seconds of the network's epoch.
pub const PACE_SHAPE: Shape =
    Shape::Members(&[("pace", Shape::Either(&[Shape::Number, Shape::Text]), true), ("now", Shape::Integer, true)]);

/// `POST /lab/advance {"slots":n}`: plays n slots and answers when they are over, or when the pace was set meanwhile.
pub fn advance(call: Call<'_>) -> Answer<'_> {
    Box::pin(async move {
        let slots = read_slots(&call.body)?;
        let Advanced { slots: played, now, stopped_by } = call.context.live.advance(slots).await?;
        let height = call.context.view.head().height();
        Ok(Reply::json(json::data_object(|data| {
            data.slot("slots").put(&played);
            data.slot("height").put(&height);
            data.slot("now").put(&now.seconds());
            if let Some(pace) = stopped_by {
                data.slot("asked").put(&slots);
                data.slot("stopped").text(format_args!("the pace was set to {pace}"));
            }
        })))
    })
}

/// `POST /lab/pace {"pace":"manual"|"max"|number}`.
pub fn set_pace(call: Call<'_>) -> Answer<'_> {
    Box::pin(async move {
        let wanted = read_pace(&call.body)?;
        call.context.live.set_pace(wanted).await?;
        pace(call).await
    })
}

/// `GET /lab/pace`.
pub fn pace(call: Call<'_>) -> Answer<'_> {
    Box::pin(async move {
        let (now, pace) = call.context.live.now().await?;
        Ok(Reply::json(json::data_object(|data| {
            match pace {
                Pace::Speed(speed) => data.slot("pace").put(&speed),
                Pace::Max | Pace::Manual => data.slot("pace").text(pace),
            }
            data.slot("now").put(&now.seconds());
        })))
    })
}

fn read_slots(body: &Value) -> Result<u32, ApiError> {
    let slots = only_member(body, "slots").and_then(Value::as_u64).and_then(|slots| u32::try_from(slots).ok());
    slots.filter(|slots| (1..=ADVANCE_LIMIT).contains(slots)).ok_or_else(|| {
        let message = format!("the body must be {{\"slots\":n}} with a whole number n from 1 to {ADVANCE_LIMIT}");
        ApiError::Unprocessable(message)
    })
}

fn read_pace(body: &Value) -> Result<Pace, ApiError> {
    let text = match only_member(body, "pace") {
        Some(Value::String(text)) => Some(text.clone()),
        Some(Value::Number(number)) => Some(number.to_string()),
        _ => None,
    };
    text.and_then(|text| text.parse().ok()).ok_or_else(|| {
        ApiError::unprocessable(
            "the body must be {\"pace\":p} with p a number above 0 and up to 1000000, \"max\" or \"manual\"",
        )
    })
}

/// The member of an object that has no other.
fn only_member<'b>(body: &'b Value, name: &str) -> Option<&'b Value> {
    body.as_object().filter(|object| object.len() == 1)?.get(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn slots_are_counted_in_whole_numbers() {
        assert_eq!(read_slots(&json!({"slots": 1_000_000})), Ok(1_000_000));
        for wrong in [json!(null), json!(5), json!({}), json!({"slots": 0}), json!({"slots": "5"})] {
            assert!(read_slots(&wrong).unwrap_err().to_string().contains("from 1 to 1000000"), "{wrong}");
        }
        for wrong in [json!({"slots": 1.5}), json!({"slots": 1_000_001}), json!({"slots": 1, "blocks": 1})] {
            assert!(read_slots(&wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_pace_is_a_word_or_a_number() {
        assert_eq!(read_pace(&json!({"pace": "max"})), Ok(Pace::Max));
        assert_eq!(read_pace(&json!({"pace": 2.5})), Ok(Pace::Speed(2.5)));
        for wrong in [json!({"pace": 0}), json!({"pace": -1}), json!({"pace": "fast"}), json!({"pace": null})] {
            assert!(read_pace(&wrong).unwrap_err().to_string().contains("manual"), "{wrong}");
        }
    }
}
