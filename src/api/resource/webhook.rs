//! Webhooks as clients see them: without the stored half of the token. Source: api.md 6.1.

use crate::{
    actors::Webhook,
    api::table::{Dialect, DialectSet, Member, Parameter, Rule, Shape, both, parameter::documented, shape},
};
use std::sync::Arc;

/// The members of a new webhook.
pub(crate) const NEW: &[Parameter] = &[
    both("event", Rule::Events).required(),
    both("target", Rule::Uri).required(),
    both("enabled", Rule::Boolean),
    both("conditions", Rule::Conditions).required(),
];

/// The parameters that an update takes. In the reference's dialect all of them are required. Source: api.md 4.10 row
/// 13.
pub(crate) const CHANGE: &[Parameter] = &[
    documented("event", Rule::Events),
    documented("target", Rule::Uri),
    documented("enabled", Rule::Boolean),
    documented("conditions", Rule::Conditions),
    core("event", Rule::Events),
    core("target", Rule::Uri),
    core("enabled", Rule::Boolean),
    core("conditions", Rule::Conditions),
];

/// A parameter that must be given, in the reference's dialect.
const fn core(name: &'static str, rule: Rule) -> Parameter {
    Parameter { name, rule, spoken: DialectSet::Only(Dialect::Core26), is_required: true }
}

/// A webhook, with its whole token if it is new.
pub(crate) struct WebhookRow {
    pub hook: Arc<Webhook>,
    pub token: Option<String>,
}

/// The shape of a webhook's events: one event, or several, which the reference's dialect does not have.
pub(crate) const EVENTS: Shape = Shape::Told(&Shape::Either(&[Shape::Text, Shape::List(&Shape::Text)]), &Shape::Text);

/// The members of a webhook.
pub(crate) const MEMBERS: &[Member<WebhookRow>] = &[
    Member::new("id", Shape::Text, |row, _| (&*row.hook.id).into()),
    Member::by("event", EVENTS, |row, _, slot| slot.put(&row.hook.event)),
    Member::new("target", Shape::Text, |row, _| (&*row.hook.target).into()),
    Member::some("token", shape::HASH, |row, _| row.token.as_deref().into()),
    Member::new("enabled", Shape::Boolean, |row, _| row.hook.enabled.into()),
    Member::by("conditions", Shape::List(&Shape::Map(&Shape::Any)), |row, _, slot| slot.put(&row.hook.conditions)),
];

/// The shape of a webhook. Only the answer to its creation contains the token.
pub(crate) const SHAPE: Shape = Shape::Resource("Webhook", &MEMBERS);
