//! Control of the run: advancing it by slots and setting its pace. For the user who runs the process, so on loopback only.

pub(crate) mod goal;
pub(crate) mod money;

use crate::{
    actors::SimTime,
    api::{
        http::ApiError,
        table::{Call, Member, Outcome, Shape, field::Cell, shape},
    },
    sim::{
        Pace,
        live::{ADVANCES_MAX, AdvanceResult, Ended},
    },
};
use goal::AdvanceWish;
use serde_json::{Value, json};

/// The result of an advance: the whole slots played, and the reason if it ended before all were.
pub(crate) const ADVANCE: &[Member<Advance>] = &[
    Member::new("slots", Shape::Integer, |advance, _| advance.advanced.slots.into()),
    Member::new("height", Shape::Integer, |advance, _| advance.advanced.height.into()),
    Member::new("now", Shape::Integer, |advance, _| advance.advanced.now.seconds().into()),
    Member::some("asked", Shape::Integer, |advance, _| match advance.advanced.ended {
        Ended::PaceSet(_) | Ended::WentBack => advance.asked.into(),
        Ended::Played | Ended::Reached | Ended::Crowded => Cell::Missing,
    }),
    Member::some("stopped", Shape::Text, |advance, _| match advance.advanced.ended {
        Ended::Played if advance.is_awaited => "limit".into(),
        Ended::Played | Ended::Crowded => Cell::Missing,
        Ended::Reached => "reached".into(),
        Ended::PaceSet(pace) => format!("the pace was set to {pace}").into(),
        Ended::WentBack => "went back to a snapshot".into(),
    }),
];

/// An advance that is over.
pub(crate) struct Advance {
    asked: u32,
    /// True if the request states a goal (`until`).
    is_awaited: bool,
    advanced: AdvanceResult,
}

/// The pace, and the virtual time in seconds of the network's epoch.
pub(crate) const PACE: &[Member<(SimTime, Pace)>] = &[
    Member::by("pace", Shape::Either(&[Shape::Number, Shape::Text]), |(_, pace), _, slot| match pace {
        Pace::Speed(speed) => slot.put(speed),
        Pace::Max | Pace::Manual | Pace::OnDemand => slot.text(pace),
    }),
    Member::new("now", Shape::Integer, |(now, _), _| now.seconds().into()),
];

/// `POST /lab/advance {"slots":n}`: plays n slots and answers when they are over, or when the pace was set meanwhile.
/// `{"until":{..},"limit":n}`: plays until the goal is reached, n slots at most.
pub(crate) async fn advance(call: Call<'_>) -> Outcome {
    let AdvanceWish { slots: asked, until } = goal::read(&call.body, call.context.view.node())?;
    let is_awaited = until.is_some();
    let advanced = call.context.live.advance_until(until, asked, call.context.view.node()).await?;
    let advanced = advanced.map_err(|why| ApiError::Unprocessable(format!("key 'until.event.node': {why}")))?;
    if advanced.ended == Ended::Crowded {
        let message = format!("found {ADVANCES_MAX} advances that wait for their turn, allowed are {ADVANCES_MAX}");
        return Err(ApiError::Conflict(message));
    }
    Ok(call.show_row(ADVANCE, &Advance { asked, is_awaited, advanced }))
}

/// The body of `POST /lab/pace`, for the description.
pub(crate) fn pace_schema() -> Value {
    let speed = json!({"type": "number", "minimum": 0.001, "maximum": 1_000_000});
    let pace = json!({"anyOf": [speed, {"enum": ["max", "manual", "on-demand"]}]});
    shape::object([("pace", pace, true)])
}

/// `POST /lab/pace {"pace":"manual"|"on-demand"|"max"|number}`.
pub(crate) async fn set_pace(call: Call<'_>) -> Outcome {
    let wanted = read_pace(&call.body)?;
    Ok(call.show_row(PACE, &call.context.live.set_pace(wanted).await?))
}

/// `GET /lab/pace`.
pub(crate) async fn pace(call: Call<'_>) -> Outcome {
    Ok(call.show_row(PACE, &call.context.live.now().await?))
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

/// The member `name` of an object that has no other members.
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
