//! The routes of chaos rules, by which answers and posts of webhooks go wrong on purpose.

use crate::{
    api::{
        http::{ApiError, guard::Access},
        lab::chaos::{MILLION, RULES_MAX, Rule as ChaosRule, RuleLine, Treatment},
        table::{
            Bound, Call, Member, Outcome, Parameter, Rule, Shape, both, field::Cell, parameter::ANY_TEXT, route::Verb,
            row::write_members,
        },
    },
    sim::{Intervention, intervention::ChaosChange},
};
use serde_json::{Map, Value};
use warp::http::Method;

const METHODS: [Method; 5] = [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::DELETE];
const MILLISECONDS: Rule = Rule::Integer(Bound::Between(1, 60_000));

/// The members of a rule.
pub(crate) const NEW: &[Parameter] = &[
    both("route", ANY_TEXT),
    both("method", Rule::OneOf(&["GET", "HEAD", "POST", "PUT", "DELETE"])),
    both("event", ANY_TEXT),
    both("share", Rule::Share),
    both("count", Rule::Integer(Bound::Positive)),
    both("seed", Rule::Integer(Bound::Least(0))),
    both("delay_ms", MILLISECONDS),
    both("refuse", Rule::Boolean),
    both("status", Rule::Integer(Bound::Between(429, 599))),
    both("cut", Rule::Boolean),
    both("stale", Rule::Integer(Bound::Between(1, 1_000))),
    both("node", Rule::Integer(Bound::Least(0))),
    both("late_ms", MILLISECONDS),
    both("twice", Rule::Boolean),
    both("reorder", Rule::Boolean),
    both("lost", Rule::Boolean),
];

/// The effects of a rule, by the member that names each.
const TREATMENTS: [&str; 10] =
    ["delay_ms", "refuse", "status", "cut", "stale", "node", "late_ms", "twice", "reorder", "lost"];

/// The number of a rule in a path.
pub(crate) const PATH_ID: &[Parameter] = &[both("id", Rule::Integer(Bound::Positive))];

type Row = Member<(u64, ChaosRule)>;

/// A rule, with the number of requests or posts that it matched and the number of those that it struck. It has exactly
/// one of the members from `delay_ms` to `lost`.
const MEMBERS: &[Row] = &[
    Row::new("id", Shape::Integer, |(number, _), _| (*number).into()),
    Row::some("route", Shape::Text, |(_, rule), _| rule.line.route.as_deref().into()),
    Row::some("method", Shape::Text, |(_, rule), _| rule.line.method.as_deref().into()),
    Row::some("event", Shape::Text, |(_, rule), _| rule.line.event.as_deref().into()),
    Row::by("share", Shape::Number, |(_, rule), _, slot| slot.put(&(f64::from(rule.line.share) / f64::from(MILLION)))),
    Row::some("count", Shape::Integer, |(_, rule), _| rule.line.count.into()),
    Row::some("seed", Shape::Integer, |(_, rule), _| rule.line.seed.into()),
    Row::some("delay_ms", Shape::Integer, |(_, rule), _| effect(rule, "delay_ms")),
    Row::some("refuse", Shape::Boolean, |(_, rule), _| effect(rule, "refuse")),
    Row::some("status", Shape::Integer, |(_, rule), _| effect(rule, "status")),
    Row::some("cut", Shape::Boolean, |(_, rule), _| effect(rule, "cut")),
    Row::some("stale", Shape::Integer, |(_, rule), _| effect(rule, "stale")),
    Row::some("node", Shape::Integer, |(_, rule), _| effect(rule, "node")),
    Row::some("late_ms", Shape::Integer, |(_, rule), _| effect(rule, "late_ms")),
    Row::some("twice", Shape::Boolean, |(_, rule), _| effect(rule, "twice")),
    Row::some("reorder", Shape::Boolean, |(_, rule), _| effect(rule, "reorder")),
    Row::some("lost", Shape::Boolean, |(_, rule), _| effect(rule, "lost")),
    Row::new("matched", Shape::Integer, |(_, rule), _| rule.matched.into()),
    Row::new("applied", Shape::Integer, |(_, rule), _| rule.applied.into()),
];

/// The shape of a rule.
pub(crate) const SHAPE: Shape = Shape::Table(&MEMBERS);

/// The value of the rule's effect if `name` is its member, else a missing cell.
fn effect(rule: &ChaosRule, name: &str) -> Cell<'static> {
    let (named, value) = match rule.line.treatment {
        Treatment::Delay(milliseconds) => ("delay_ms", milliseconds.into()),
        Treatment::Refuse => ("refuse", true.into()),
        Treatment::Status(status) => ("status", status.into()),
        Treatment::Cut => ("cut", true.into()),
        Treatment::Stale(blocks) => ("stale", blocks.into()),
        Treatment::Node(node) => ("node", node.into()),
        Treatment::Late(milliseconds) => ("late_ms", milliseconds.into()),
        Treatment::Twice => ("twice", true.into()),
        Treatment::Reorder => ("reorder", true.into()),
        Treatment::Lost => ("lost", true.into()),
    };
    if named == name { value } else { Cell::Missing }
}

/// The number of rules that were deleted.
pub(crate) const CLEARED: &[Member<usize>] = &[Member::new("deleted", Shape::Integer, |deleted, _| (*deleted).into())];

/// `GET /lab/chaos`: all rules, oldest first.
pub(crate) fn list(call: &Call<'_>) -> Outcome {
    let rules: Vec<(u64, ChaosRule)> = call.context.chaos.all().into_iter().collect();
    Ok(call.show_rows(MEMBERS, &rules))
}

/// `POST /lab/chaos`: adds a rule, which applies from now on.
pub(crate) async fn create(call: Call<'_>) -> Outcome {
    let line = read(&call)?;
    let full = || ApiError::Unprocessable(format!("found {RULES_MAX} rules, allowed are {RULES_MAX}: delete some"));
    let _turn = call.context.chaos.turn().await;
    let id = call.context.chaos.add(line).ok_or_else(full)?;
    let reply = show_number(&call, id)?.created();
    let rule = call.context.chaos.get(id).map(|rule| as_asked(&call, (id, rule))).unwrap_or_default();
    note(&call, ChaosChange::Added { node: call.context.view.node(), id, rule }).await;
    Ok(reply)
}

/// `GET /lab/chaos/{id}`.
pub(crate) fn show(call: &Call<'_>) -> Outcome {
    show_number(call, call.id()?)
}

/// `DELETE /lab/chaos/{id}`: answers with what the rule did.
pub(crate) async fn delete(call: Call<'_>) -> Outcome {
    let id = call.id()?;
    let _turn = call.context.chaos.turn().await;
    let rule = call.context.chaos.remove(id).ok_or(MISSING)?;
    let reply = call.show_row(MEMBERS, &(id, rule));
    note(&call, ChaosChange::Deleted { node: call.context.view.node(), id }).await;
    Ok(reply)
}

/// `DELETE /lab/chaos`: all rules.
pub(crate) async fn clear(call: Call<'_>) -> Outcome {
    let _turn = call.context.chaos.turn().await;
    let deleted = call.context.chaos.clear();
    note(&call, ChaosChange::Cleared { node: call.context.view.node() }).await;
    Ok(call.show_row(CLEARED, &deleted))
}

/// Adds a change of the rules to the recording.
async fn note(call: &Call<'_>, change: ChaosChange) {
    // A run that has ended records nothing. The change still applies to later answers.
    let _ended = call.context.live.intervene(Intervention::Chaos(change)).await;
}

/// The body that creates the same rule again.
fn as_asked(call: &Call<'_>, rule: (u64, ChaosRule)) -> Map<String, Value> {
    let mut text = Vec::new();
    write_members(&mut text, MEMBERS, &rule, &call.frame());
    let mut members: Map<_, _> = serde_json::from_slice(&text).expect("an object was written");
    ["id", "matched", "applied"].into_iter().for_each(|name| _ = members.remove(name));
    members
}

const MISSING: ApiError = ApiError::NotFound("Rule not found");

fn show_number(call: &Call<'_>, number: u64) -> Outcome {
    let rule = call.context.chaos.get(number).ok_or(MISSING)?;
    Ok(call.show_row(MEMBERS, &(number, rule)))
}

/// The rule of a body whose members have been checked one by one.
fn read(call: &Call<'_>) -> Result<RuleLine, ApiError> {
    let given = &call.parameters;
    let treatment = read_treatment(call)?;
    let text = |name| given.text(name).map(str::to_owned);
    let line = RuleLine {
        route: text("route"),
        method: text("method"),
        event: text("event"),
        share: given.number("share").unwrap_or(MILLION),
        count: given.number("count"),
        seed: given.number("seed"),
        treatment,
    };
    let foreign: &[&str] = if treatment.is_of_posts() { &["route", "method"] } else { &["event"] };
    if let Some(name) = foreign.iter().find(|name| given.get(name).is_some()) {
        let (of, allowed) =
            if treatment.is_of_posts() { ("webhooks", "event") } else { ("requests", "route and method") };
        return refuse(format!("{name}: found beside what happens to {of}, allowed is {allowed}"));
    }
    check_route(call, &line)?;
    Ok(line)
}

fn read_treatment(call: &Call<'_>) -> Result<Treatment, ApiError> {
    let given = &call.parameters;
    let named: Vec<&str> = TREATMENTS.into_iter().filter(|name| given.get(name).is_some()).collect();
    let [name] = named[..] else {
        let found = if named.is_empty() { "none".to_owned() } else { named.join(" and ") };
        return refuse(format!("found {found} of what a rule can do, allowed is one of {}", TREATMENTS.join(", ")));
    };
    let number = given.number(name).unwrap_or_default();
    if given.flag(name) == Some(false) {
        return refuse(format!("{name}: found false, allowed is true"));
    }
    let served = call.context.chaos.served();
    Ok(match name {
        "delay_ms" => Treatment::Delay(number),
        "refuse" => Treatment::Refuse,
        "status" if (430..500).contains(&number) => {
            return refuse(format!("status: found {number}, allowed are 429 and 500 to 599"));
        }
        "status" => Treatment::Status(number as u16),
        "cut" => Treatment::Cut,
        "stale" => Treatment::Stale(number),
        "node" if given.number(name).is_none_or(|node: usize| node >= served) => {
            let found: i64 = given.number(name).unwrap_or_default();
            let most = served.saturating_sub(1);
            return refuse(format!("node: found {found}, allowed are the served nodes 0 to {most} (--api-nodes)"));
        }
        "node" => Treatment::Node(number),
        "late_ms" => Treatment::Late(number),
        "twice" => Treatment::Twice,
        "reorder" => Treatment::Reorder,
        _ => Treatment::Lost,
    })
}

/// Refuses a rule that no public route can match.
fn check_route(call: &Call<'_>, line: &RuleLine) -> Result<(), ApiError> {
    if line.treatment.is_of_posts() {
        return Ok(());
    }
    let public = || call.routes.iter().filter(|route| route.access != Access::Loopback);
    let matches = |line: &RuleLine| {
        public().any(|route| {
            let mut methods = METHODS.iter().filter(|method| Verb::of(method) == Some(route.verb));
            methods.any(|method| line.is_for_request(route.path, method))
        })
    };
    if matches(line) {
        return Ok(());
    }
    let route = line.route.as_deref().unwrap_or_default();
    if matches(&RuleLine { method: None, ..line.clone() }) {
        let method = line.method.as_deref().unwrap_or_default();
        return refuse(format!("method: found {method}, by which no route '{route}' is asked"));
    }
    refuse(format!(
        "route: found '{route}', allowed are the paths of /api/openapi.json as they stand there, such as /api/blocks/{{id}}, \
         and beginnings of them with * behind, but none under /lab"
    ))
}

fn refuse<T>(message: String) -> Result<T, ApiError> {
    Err(ApiError::Unprocessable(message))
}
