//! Steering the run: advancing it by slots and setting its pace. For whoever runs the process, so on loopback only.

pub mod money;
pub mod until;

use crate::{
    api::{
        http::{ApiError, Reply},
        table::{Call, Outcome, Shape, json, shape},
    },
    sim::{
        Pace,
        live::{Advanced, Ended},
    },
};
use serde_json::{Value, json};
use until::Wanted;

/// The result of an advance: the whole slots played, and the reason if it ended before all were.
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
/// `{"until":{..},"limit":n}`: plays until something has come, n slots at most.
pub async fn advance(call: Call<'_>) -> Outcome {
    let Wanted { slots, until } = until::read(&call.body, call.context.view.node())?;
    let is_awaited = until.is_some();
    let live = &call.context.live;
    let Advanced { slots: played, now, ended } = match until {
        None => live.advance(slots).await?,
        Some(until) => live
            .advance_until(until, slots)
            .await?
            .map_err(|no_node| ApiError::Unprocessable(format!("key 'until.event.node': {no_node}")))?,
    };
    let height = call.context.view.head().height();
    Ok(Reply::json(json::data_object(|data| {
        data.member("slots").put(&played);
        data.member("height").put(&height);
        data.member("now").put(&now.seconds());
        match ended {
            Ended::Played if is_awaited => data.member("stopped").put("limit"),
            Ended::Played => {}
            Ended::Reached => data.member("stopped").put("reached"),
            Ended::PaceSet(pace) => {
                data.member("asked").put(&slots);
                data.member("stopped").text(format_args!("the pace was set to {pace}"));
            }
            Ended::WentBack => {
                data.member("asked").put(&slots);
                data.member("stopped").put("went back to a snapshot");
            }
        }
    })))
}

/// The body of `POST /lab/pace`, for the description.
pub fn pace_schema() -> Value {
    let speed = json!({"type": "number", "minimum": 0.001, "maximum": 1_000_000});
    let pace = json!({"anyOf": [speed, {"enum": ["max", "manual", "on-demand"]}]});
    shape::object([("pace", pace, true)])
}

/// `POST /lab/pace {"pace":"manual"|"on-demand"|"max"|number}`.
pub async fn set_pace(call: Call<'_>) -> Outcome {
    let wanted = read_pace(&call.body)?;
    call.context.live.set_pace(wanted).await?;
    pace(call).await
}

/// `GET /lab/pace`.
pub async fn pace(call: Call<'_>) -> Outcome {
    let (now, pace) = call.context.live.now().await?;
    Ok(Reply::json(json::data_object(|data| {
        match pace {
            Pace::Speed(speed) => data.member("pace").put(&speed),
            Pace::Max | Pace::Manual | Pace::OnDemand => data.member("pace").text(pace),
        }
        data.member("now").put(&now.seconds());
    })))
}

fn read_pace(body: &Value) -> Result<Pace, ApiError> {
    let text = match only_member(body, "pace") {
        Some(Value::String(text)) => Some(text.clone()),
        Some(Value::Number(number)) => Some(number.to_string()),
        _ => None,
    };
    text.and_then(|text| text.parse().ok()).ok_or_else(|| {
        ApiError::unprocessable(
            "the body must be {\"pace\":p} with p a number from 0.001 to 1000000, \"max\", \"manual\" or \"on-demand\"",
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
    fn a_pace_is_a_word_or_a_number() {
        assert_eq!(read_pace(&json!({"pace": "max"})), Ok(Pace::Max));
        assert_eq!(read_pace(&json!({"pace": 2.5})), Ok(Pace::Speed(2.5)));
        assert_eq!(read_pace(&json!({"pace": "on-demand"})), Ok(Pace::OnDemand));
        for wrong in [json!({"pace": 0}), json!({"pace": -1}), json!({"pace": "fast"}), json!({"pace": null})] {
            assert!(read_pace(&wrong).unwrap_err().to_string().contains("manual"), "{wrong}");
        }
    }
}
