//! The routes of webhooks. Source: api.md 6.1.

use crate::{
    actors::webhook::{Condition, EventNames, SECRET_LENGTH, Webhook, WebhookChange},
    api::{
        http::{ApiError, Reply},
        resource::webhook::{self, WebhookRow},
        table::{Call, Member, Outcome, ParameterValue, Shape, shape::TEXT_OR_NULL},
        webhooks::{Counts, Webhooks},
    },
};
use serde_json::Value;
use std::sync::Arc;
use uuid::Uuid;

/// The largest length of a webhook [bytes of JSON]. The reference sets no limit.
const LENGTH_MAX: usize = 65_536;

/// `GET /api/webhooks`, page by page.
pub(crate) async fn list(call: Call<'_>) -> Outcome {
    let rows = all(&call).await?;
    Ok(call.list_rows(call.page().cut(rows), webhook::MEMBERS))
}

/// `GET /api/webhooks`, as the reference answers: all at once.
pub(crate) async fn list_all(call: Call<'_>) -> Outcome {
    Ok(call.show_rows(webhook::MEMBERS, &all(&call).await?))
}

/// `POST /api/webhooks`: the one answer that shows the token.
pub(crate) async fn create(call: Call<'_>) -> Outcome {
    let webhooks = webhooks(&call)?;
    let change = read(&call)?;
    let token = draw_token()?;
    let hook = Webhook {
        id: draw_id()?,
        event: change.event.ok_or_else(|| ApiError::unprocessable("\"event\" is required"))?,
        target: change.target.unwrap_or_default(),
        secret: token[..SECRET_LENGTH].to_owned(),
        enabled: change.enabled.unwrap_or(true),
        conditions: change.conditions.unwrap_or_default(),
    };
    webhooks.create(hook.clone()).await?;
    let row = WebhookRow { hook: Arc::new(hook), token: Some(token) };
    Ok(call.show_row(webhook::MEMBERS, &row).created())
}

/// `GET /api/webhooks/{id}`.
pub(crate) async fn show(call: Call<'_>) -> Outcome {
    let hook = webhooks(&call)?.get(call.argument("id")).await?.ok_or(ApiError::NO_ROUTE)?;
    let row = WebhookRow { hook, token: None };
    Ok(call.show_row(webhook::MEMBERS, &row))
}

/// `PUT /api/webhooks/{id}`: id and token stay.
pub(crate) async fn update(call: Call<'_>) -> Outcome {
    let change = read(&call)?;
    let is_there = webhooks(&call)?.update(call.argument("id"), change).await?;
    if is_there { Ok(Reply::nothing()) } else { Err(ApiError::NO_ROUTE) }
}

/// `DELETE /api/webhooks/{id}`.
pub(crate) async fn delete(call: Call<'_>) -> Outcome {
    let was_there = webhooks(&call)?.delete(call.argument("id")).await?;
    if was_there { Ok(Reply::nothing()) } else { Err(ApiError::NO_ROUTE) }
}

/// A webhook and what became of its posts.
type CountedWebhook = (Arc<Webhook>, Counts);

const COUNTED: &[Member<CountedWebhook>] = &[
    Member::new("id", Shape::Text, |(hook, _), _| (&*hook.id).into()),
    Member::by("event", webhook::EVENTS, |(hook, _), _, slot| slot.put(&hook.event)),
    Member::new("target", Shape::Text, |(hook, _), _| (&*hook.target).into()),
    Member::new("enabled", Shape::Boolean, |(hook, _), _| hook.enabled.into()),
    Member::new("queued", Shape::Integer, |(_, counts), _| counts.queued.into()),
    Member::new("delivered", Shape::Integer, |(_, counts), _| counts.delivered.into()),
    Member::new("failed", Shape::Integer, |(_, counts), _| counts.failed.into()),
    Member::new("dropped", Shape::Integer, |(_, counts), _| counts.dropped.into()),
    Member::new("lastFailure", TEXT_OR_NULL, |(_, counts), _| counts.last_failure.as_deref().into()),
];

/// The outcomes of a node's posts.
pub(crate) const COUNTS: &[Member<(Vec<CountedWebhook>, u64)>] = &[
    Member::new("overlooked", Shape::Integer, |(_, overlooked), _| (*overlooked).into()),
    Member::by("webhooks", Shape::List(&Shape::Table(&COUNTED)), |(counted, _), frame, slot| {
        slot.rows(COUNTED, counted, frame);
    }),
];

/// `GET /lab/webhooks`: what became of the deliveries.
pub(crate) async fn counts(call: Call<'_>) -> Outcome {
    Ok(call.show_row(COUNTS, &webhooks(&call)?.counts().await?))
}

async fn all(call: &Call<'_>) -> Result<Vec<WebhookRow>, ApiError> {
    let hooks = webhooks(call)?.list().await?;
    Ok(hooks.into_iter().map(|hook| WebhookRow { hook, token: None }).collect())
}

fn webhooks<'c>(call: &Call<'c>) -> Result<&'c Webhooks, ApiError> {
    call.context.webhooks.as_ref().ok_or(ApiError::NO_ROUTE)
}

/// Reads a body that has passed all checks but that of its length.
fn read(call: &Call<'_>) -> Result<WebhookChange, ApiError> {
    let text = |name| call.parameters.text(name).map(str::to_owned);
    let conditions = match call.parameters.get("conditions") {
        Some(ParameterValue::Value(conditions)) => Some(read_conditions(conditions)?),
        _ => None,
    };
    if call.body.to_string().len() > LENGTH_MAX {
        return Err(ApiError::Unprocessable(format!("a webhook must not be longer than {LENGTH_MAX} bytes")));
    }
    let event = match call.parameters.get("event") {
        Some(ParameterValue::Text(name)) => Some(EventNames::One(name.clone())),
        Some(ParameterValue::Texts(names)) => Some(EventNames::Several(names.clone())),
        _ => None,
    };
    Ok(WebhookChange { event, target: text("target"), enabled: call.parameters.flag("enabled"), conditions })
}

fn read_conditions(conditions: &Value) -> Result<Vec<Condition>, ApiError> {
    serde_json::from_value(conditions.clone()).map_err(|why| ApiError::Internal(format!("checked conditions: {why}")))
}

/// 32 random bytes in hex. They come from the operating system, because the run's seed is no secret.
fn draw_token() -> Result<String, ApiError> {
    draw::<32>().map(hex::encode)
}

fn draw_id() -> Result<String, ApiError> {
    draw().map(|bytes| uuid::Builder::from_random_bytes(bytes).into_uuid()).map(|id: Uuid| id.to_string())
}

fn draw<const N: usize>() -> Result<[u8; N], ApiError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|why| ApiError::Internal(format!("no random bytes: {why}")))?;
    Ok(bytes)
}
