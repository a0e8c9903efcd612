//! The published description of the API in OpenAPI 3.1, made from the tables by which it answers: routes, parameters, and the members
//! of resources. The description contains only what the tables contain.

mod examples;

use super::{
    dialect::Dialect,
    parameter::Parameter,
    route::{AnswerShape, Query, Route},
    rule::{Bound, Check, Rule, SAFE_MAX, greatest},
    shape::{NamedSchemas, Shape, object},
};
use crate::{
    actors::webhook::{Comparison, EVENTS_MAX},
    api::http::guard::Access,
};
use serde_json::{Map, Value, json};

/// The part of a request that contains a value. A value that is a text in a path or query may have other types in a body.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Location {
    Path,
    Query,
    Body,
}

/// The description of the API in a dialect. A request takes up to `transactions_max` transactions.
pub(crate) fn describe(routes: &[Route], dialect: Dialect, transactions_max: usize) -> Value {
    let mut named = NamedSchemas::new();
    let mut paths: Map<String, Value> = Map::new();
    let routes = routes.iter().filter(|route| route.path != "/" && route.spoken.holds(dialect));
    for route in routes {
        let operation = operation(route, dialect, transactions_max, &mut named);
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[method(route)] = operation;
    }
    let error = Shape::Members(&[
        ("statusCode", Shape::Integer, true),
        ("error", Shape::Text, true),
        ("message", Shape::Text, true),
    ]);
    named.insert("Error".to_owned(), error.schema(dialect, &mut NamedSchemas::new()));
    named.insert("SignedTransaction".to_owned(), signed_transaction());
    for (name, has_estimate) in [("Meta", false), ("CountedMeta", true)] {
        named.insert(name.to_owned(), meta(has_estimate));
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "dposlab",
            "version": env!("CARGO_PKG_VERSION"),
            "description": format!("The public API of one node of a simulated network, in the dialect `{dialect}`."),
        },
        "paths": paths,
        "components": {
            "schemas": named,
            "responses": {
                "Forbidden": problem("The client is not on the whitelist.", None),
                "NotOwn": problem("The request is not from this machine, or names a host or an origin that is not served, or \
                                   /lab is off.", None),
                "NoToken": problem("With --lab token: `Authorization: Bearer TOKEN` is missing or wrong.", None),
                "NotJson": problem("The body does not say `content-type: application/json`.", None),
                "Conflict": problem("It cannot be done as things are; the message says how they are.", None),
                "NotFound": problem("There is no such thing.", examples::missing(dialect)),
                "Invalid": problem("The request breaks a rule; the message says which.", examples::invalid(dialect)),
                "TooMany": problem("The client has used up its requests.", None),
                "Broken": problem("The run behind the API has ended.", None),
            },
        },
    })
}

fn method(route: &Route) -> String {
    format!("{:?}", route.verb).to_lowercase()
}

fn operation(route: &Route, dialect: Dialect, transactions_max: usize, named: &mut NamedSchemas) -> Value {
    let tag = match route.access {
        Access::Loopback => "lab",
        _ => route.path.split('/').nth(2).unwrap_or_default(),
    };
    let example = examples::of(dialect, &method(route), route.path);
    let mut operation = json!({
        "operationId": format!("{}{}", method(route), route.path.replace(['/', '{', '}', '.'], "_")),
        "tags": [tag],
        "summary": route.about,
        "parameters": parameters(route, dialect),
        "responses": responses(route, dialect, named),
    });
    if let Some(mut body) = body(route, dialect, transactions_max, named) {
        // A client that steers the run may leave out a body without required members, or send null.
        let is_required = route.access != Access::Loopback || body["required"] != json!([]);
        if !is_required && body["type"] == "object" {
            body["type"] = json!(["object", "null"]);
        }
        operation["requestBody"] = json!({"required": is_required, "content": {"application/json": {"schema": body}}});
    }
    if let Some(example) = example {
        example.put_into(&mut operation);
    }
    operation
}

fn parameters(route: &Route, dialect: Dialect) -> Vec<Value> {
    let mut parameters: Vec<Value> = spoken(&[route.arguments], dialect)
        .map(|parameter| {
            let schema = schema(parameter.rule, dialect, Location::Path);
            json!({"name": parameter.name, "in": "path", "required": true, "schema": schema})
        })
        .collect();
    let tables = match route.query {
        Query::Only(tables) | Query::Known(tables) => tables,
        Query::Ignored => &[],
    };
    for parameter in spoken(tables, dialect) {
        let schema = schema(parameter.rule, dialect, Location::Query);
        parameters.push(json!({
            "name": parameter.name, "in": "query", "required": parameter.is_required, "schema": schema,
        }));
        if dialect == Dialect::Documented && parameter.rule.is_range() {
            for (end, about) in [("from", "at least"), ("to", "at most")] {
                let schema = end_schema(parameter.rule, dialect, Location::Query);
                parameters.push(json!({
                    "name": format!("{}.{end}", parameter.name), "in": "query", "required": false,
                    "description": format!("`{}` is {about} this.", parameter.name), "schema": schema,
                }));
            }
        }
    }
    parameters
}

fn spoken(tables: &[&'static [Parameter]], dialect: Dialect) -> impl Iterator<Item = &'static Parameter> {
    tables.iter().copied().flatten().filter(move |parameter| parameter.spoken.holds(dialect))
}

/// Describes the body that a route reads. The members that a GET reads are described in its query.
fn body(route: &Route, dialect: Dialect, transactions_max: usize, named: &mut NamedSchemas) -> Option<Value> {
    if route.path == "/api/transactions" && method(route) == "post" {
        let items = json!({"$ref": "#/components/schemas/SignedTransaction"});
        let list = json!({"type": "array", "minItems": 1, "maxItems": transactions_max, "items": items});
        return Some(json!({"type": "object", "required": ["transactions"], "properties": {"transactions": list}}));
    }
    if let Some(shape) = route.written {
        return Some(shape.schema(dialect, named));
    }
    let tables = route.body.filter(|_| method(route) != "get")?;
    let member = |parameter: &Parameter| {
        (parameter.name, schema(parameter.rule, dialect, Location::Body), parameter.is_required)
    };
    Some(object(spoken(tables, dialect).map(member)))
}

/// Describes the members that every posted transaction has; the rest depends on its type, see `/api/transactions/schemas`.
fn signed_transaction() -> Value {
    let number = json!({"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": "^[0-9]{1,19}$"}]});
    json!({
        "type": "object",
        "required": ["id", "type", "senderPublicKey", "fee", "amount"],
        "properties": {
            "id": {"anyOf": [{"type": "string", "pattern": "^[0-9a-fA-F]{64}$"}, {"type": "null"}]},
            "version": {"enum": [1, 2]},
            "network": {"type": "integer", "minimum": 0, "maximum": 255},
            "typeGroup": {"type": "integer", "minimum": 0},
            "type": {"type": "integer", "minimum": 0},
            "timestamp": {"type": "integer", "minimum": 0},
            "nonce": number,
            "senderPublicKey": {"type": "string", "pattern": "^0[23][0-9a-fA-F]{64}$"},
            "fee": number,
            "amount": number,
            "signature": {"type": "string", "pattern": "^[0-9a-zA-Z]+$"},
            "secondSignature": {"type": "string", "pattern": "^[0-9a-zA-Z]+$"},
            "signatures": {"type": "array", "items": {"type": "string", "pattern": "^[0-9a-zA-Z]{130}$"}},
            "asset": {"type": "object"},
        },
    })
}

fn responses(route: &Route, dialect: Dialect, named: &mut NamedSchemas) -> Value {
    let (status, content) = content(route, dialect, named);
    let mut answer = json!({"description": route.about});
    if let Some(content) = content {
        answer["content"] = content;
    }
    let mut responses = Map::new();
    let mut put = |status: &str, response: Value| drop(responses.insert(status.to_owned(), response));
    put(status, answer);
    if route.is_dated {
        put("304", json!({"description": "Nothing has changed since the date in `If-Modified-Since`."}));
    }
    let refer = |name: &str| json!({"$ref": format!("#/components/responses/{name}")});
    if route.access == Access::Everyone {
        put("403", refer("Forbidden"));
    } else {
        put("403", refer("NotOwn"));
        if method(route) == "post" || method(route) == "put" {
            put("415", refer("NotJson"));
        }
    }
    if route.access == Access::Loopback {
        put("401", refer("NoToken"));
    }
    if !route.arguments.is_empty() || route.may_be_missing {
        put("404", refer("NotFound"));
    }
    if route.may_conflict {
        put("409", refer("Conflict"));
    }
    let is_checked = matches!(route.query, Query::Only(_) | Query::Known(_)) || !route.arguments.is_empty();
    if is_checked || method(route) != "get" {
        put("422", refer("Invalid"));
    }
    if route.access != Access::Loopback {
        put("429", refer("TooMany"));
    }
    put("500", refer("Broken"));
    Value::Object(responses)
}

/// The status of a route's answer, and its content by type.
fn content(route: &Route, dialect: Dialect, named: &mut NamedSchemas) -> (&'static str, Option<Value>) {
    let mut schema = |shape: Shape| shape.schema(dialect, named);
    let json = |schema: Value| json!({"application/json": {"schema": schema}});
    let envelope = |data: Value| object([("data", data, true)]);
    let text = json!({"type": "string"});
    let content = match route.shown {
        AnswerShape::Created(shape) => return ("201", Some(json(envelope(schema(shape))))),
        AnswerShape::Nothing => return ("204", None),
        AnswerShape::Site if route.arguments.is_empty() => return ("301", None),
        AnswerShape::Data(shape) => json(envelope(schema(shape))),
        AnswerShape::Page(shape) => json(page("Meta", schema(shape))),
        AnswerShape::Counted(shape) => json(page("CountedMeta", schema(shape))),
        AnswerShape::Whole(shape) => json(schema(shape)),
        AnswerShape::Text => json!({"text/plain": {"schema": text}}),
        AnswerShape::Bytes => json!({"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}),
        AnswerShape::Metrics => {
            let example = "# HELP dposlab_branches Chains of live nodes that have parted, 1 without a fork\n\
                           # TYPE dposlab_branches gauge\ndposlab_branches 1.0\n# EOF\n";
            json!({"application/openmetrics-text": {"schema": text, "example": example}})
        }
        AnswerShape::Events(example) => json!({"text/event-stream": {"schema": text, "example": example}}),
        AnswerShape::Html => json!({"text/html": {}}),
        AnswerShape::Site => json!({
            "text/html": {}, "text/css": {}, "text/javascript": {}, "image/png": {}, "application/octet-stream": {},
        }),
    };
    ("200", Some(content))
}

fn page(meta: &str, row: Value) -> Value {
    let meta = json!({"$ref": format!("#/components/schemas/{meta}")});
    object([("meta", meta, true), ("data", json!({"type": "array", "maxItems": 100, "items": row}), true)])
}

fn meta(has_estimate: bool) -> Value {
    let number = |least: u8| json!({"type": "integer", "minimum": least});
    let (link, link_or_null) = (json!({"type": "string"}), json!({"type": ["string", "null"]}));
    let members = [
        ("count", number(0)),
        ("pageCount", number(1)),
        ("totalCount", number(0)),
        ("next", link_or_null.clone()),
        ("previous", link_or_null.clone()),
        ("self", link.clone()),
        ("first", link),
        ("last", link_or_null),
    ];
    // Missing in the answer of a search that cannot find anything.
    let estimate = has_estimate.then(|| ("totalCountIsEstimate", json!({"type": "boolean"}), false));
    object(members.into_iter().map(|(name, schema)| (name, schema, true)).chain(estimate))
}

fn problem(about: &str, example: Option<&Value>) -> Value {
    let mut content = json!({"schema": {"$ref": "#/components/schemas/Error"}});
    if let Some(example) = example {
        content["example"] = example.clone();
    }
    json!({"description": about, "content": {"application/json": content}})
}

/// The schema of the values that pass a rule.
fn schema(rule: Rule, dialect: Dialect, place: Location) -> Value {
    match rule {
        Rule::Integer(bound) => integer(bound, SAFE_MAX, place),
        Rule::Quantity(_) | Rule::Range(_) | Rule::Percents => {
            let one = end_schema(rule, dialect, place);
            let range = json!({
                "type": "object", "properties": {"from": one, "to": one}, "additionalProperties": false,
            });
            let is_range_only = dialect == Dialect::Core26 && !matches!(rule, Rule::Quantity(_));
            match (place, dialect) {
                (Location::Body, _) if is_range_only => range,
                (Location::Body, Dialect::Documented) => json!({ "anyOf": [one, range] }),
                _ => one,
            }
        }
        Rule::Share => json!({"type": "number", "minimum": 0, "maximum": 1}),
        Rule::Boolean if place == Location::Body => {
            let word = "^([Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee])$";
            json!({"anyOf": [{"type": "boolean"}, {"type": "string", "pattern": word}]})
        }
        Rule::Boolean => json!({"type": "boolean"}),
        Rule::OneOf(allowed) => json!({ "enum": allowed }),
        Rule::Text(checks) => text(checks),
        Rule::Either(lists) => json!({"anyOf": lists.iter().map(|checks| text(checks)).collect::<Vec<_>>()}),
        Rule::Order(fields) => {
            let orders =
                fields.iter().flat_map(|field| ["asc", "desc"].map(|direction| format!("{field}:{direction}")));
            json!({"enum": orders.collect::<Vec<_>>()})
        }
        Rule::Ip => json!({"anyOf": [{"type": "string", "pattern": IPV4}, {"type": "string", "format": "ipv6"}]}),
        Rule::Named(names) => {
            let words = names.iter().map(|(name, _)| json!(name));
            let numbers = names.iter().flat_map(|(_, number)| [json!(number), json!(number.to_string())]);
            json!({"enum": words.chain(numbers).collect::<Vec<_>>()})
        }
        Rule::Several(of, least, most) => {
            let items = schema(*of, dialect, place);
            json!({"type": "array", "items": items, "minItems": least, "maxItems": most, "uniqueItems": true})
        }
        Rule::Object => json!({"type": "object"}),
        Rule::Uri => json!({"type": "string", "format": "uri"}),
        Rule::Events => {
            let name = json!({"type": "string", "minLength": 1});
            let names =
                json!({"type": "array", "items": name, "minItems": 1, "maxItems": EVENTS_MAX, "uniqueItems": true});
            match dialect {
                Dialect::Documented => json!({ "anyOf": [name, names] }),
                Dialect::Core26 => name,
            }
        }
        Rule::Conditions => {
            let (key, names) = (json!({"type": "string", "minLength": 1}), json!({"enum": Comparison::NAMES}));
            let condition = object([("key", key, true), ("condition", names, true), ("value", json!({}), false)]);
            json!({"type": "array", "items": condition})
        }
    }
}

const IPV4: &str = "^((25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])\\.){3}(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])$";

/// Describes one end of a range, or the number itself.
fn end_schema(rule: Rule, dialect: Dialect, place: Location) -> Value {
    match rule {
        Rule::Percents if place == Location::Body => {
            let text = json!({"type": "string", "pattern": "^[0-9]{1,2}(\\.[0-9]{1,9})?$"});
            json!({"anyOf": [{"type": "number", "minimum": 0, "maximum": 100}, text]})
        }
        Rule::Percents => json!({"type": "number", "minimum": 0, "maximum": 100}),
        Rule::Quantity(bound) | Rule::Range(bound) => integer(bound, greatest(dialect), place),
        _ => json!({}),
    }
}

fn integer(bound: Bound, greatest: i64, place: Location) -> Value {
    let (least, most) = match bound {
        Bound::Any => (-greatest, greatest),
        Bound::Positive => (1, greatest),
        Bound::Least(least) => (least, greatest),
        Bound::Between(least, most) => (least, most),
    };
    let number = json!({"type": "integer", "minimum": least, "maximum": most});
    // A body may have the number as a text.
    let pattern = match bound {
        Bound::Any => "^-?[0-9]{1,15}$",
        Bound::Positive => "^[1-9][0-9]{0,14}$",
        Bound::Least(0) => "^[0-9]{1,15}$",
        Bound::Least(_) | Bound::Between(..) => return number,
    };
    match place {
        Location::Body => json!({"anyOf": [number, {"type": "string", "pattern": pattern}]}),
        Location::Path | Location::Query => number,
    }
}

fn text(checks: &[Check]) -> Value {
    let (mut letters, mut least, mut most) = (None, 1, None);
    for check in checks {
        match check {
            Check::AlphaNumeric => letters = Some("[0-9A-Za-z]"),
            Check::Hex => letters = Some("[0-9A-Fa-f]"),
            Check::Username => letters = Some("[a-z0-9!@$&_.]"),
            Check::Digits => letters = Some("[0-9]"),
            Check::Length(length) => (least, most) = (*length, Some(*length)),
            Check::AtMost(length) | Check::BytesAtMost(length) => most = Some(*length),
            Check::GenericName => {
                let name = "^[a-zA-Z0-9]+(( - |[ ._-])[a-zA-Z0-9]+)*[.]?$";
                return json!({"type": "string", "pattern": name, "minLength": 1, "maxLength": 40});
            }
        }
    }
    let most = most.map_or(String::new(), |most| most.to_string());
    match letters {
        Some(letters) => json!({"type": "string", "pattern": format!("^{letters}{{{least},{most}}}$")}),
        None if most.is_empty() => json!({"type": "string", "minLength": least}),
        None => json!({"type": "string", "minLength": least, "maxLength": most.parse().unwrap_or(u32::MAX)}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::handler::routes::ROUTES;

    #[test]
    fn every_route_says_what_it_is_for_and_what_it_shows() {
        for route in ROUTES {
            assert!(!route.about.is_empty(), "{:?} {}", route.verb, route.path);
            assert!(!matches!(route.shown, AnswerShape::Whole(Shape::Any)), "{:?} {}", route.verb, route.path);
        }
    }

    #[test]
    fn what_is_referred_to_is_there() {
        for dialect in [Dialect::Documented, Dialect::Core26] {
            let description = describe(ROUTES, dialect, 40);
            let text = description.to_string();
            let mut references = 0;
            for reference in text.split("\"$ref\":\"#").skip(1) {
                let pointer = reference.split('"').next().expect("split gives one at least");
                let target = description.pointer(pointer);
                assert!(target.is_some_and(|target| !target.is_null()), "{pointer}");
                references += 1;
            }
            assert!(references > 100);
        }
    }
}
