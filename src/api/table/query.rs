//! The query of an address: from text to values, and back into links.

use super::{dialect::Dialect, parameter::Parameter, rule::Rule};
use crate::api::http::request::percent_encode;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// Reads a query into values: a text for each key, or a list of texts for a repeated key, in the order of the query.
pub(crate) fn parse(query: &str) -> Map<String, Value> {
    let mut values = Map::new();
    for (key, value) in form_urlencoded::parse(query.as_bytes()) {
        let value = Value::String(value.into_owned());
        match values.get_mut(&*key) {
            None => {
                values.insert(key.into_owned(), value);
            }
            Some(Value::Array(list)) => list.push(value),
            Some(first) => *first = Value::Array(vec![first.take(), value]),
        }
    }
    values
}

/// Gathers `field.from` and `field.to` into ranges for parameters that accept one, because some clients flatten nested
/// queries. Makes a single value a list for a parameter that accepts a list. Source: api.md 1.5.
pub(crate) fn gather<'v>(
    values: &'v Map<String, Value>,
    tables: &[&[Parameter]],
    dialect: Dialect,
) -> Cow<'v, Map<String, Value>> {
    // A number beside its own range must lie in it.
    let has_range = |key: &str| {
        takes_range(tables, key, dialect)
            && values[key].is_string()
            && values.keys().any(|other| split_end(other).is_some_and(|(name, _)| name == key))
    };
    let is_list = |key: &str| {
        let mut parameters = tables.iter().copied().flatten();
        parameters.any(|parameter| parameter.name == key && matches!(parameter.rule, Rule::Several(..)))
    };
    if dialect == Dialect::Core26 || !values.keys().any(|key| key.contains('.') || is_list(key)) {
        return Cow::Borrowed(values);
    }
    let mut gathered = Map::new();
    for (key, value) in values {
        let ends: Option<(&str, &[&str])> = match split_end(key).filter(|(name, _)| takes_range(tables, name, dialect))
        {
            Some((name, "from")) => Some((name, &["from"])),
            Some((name, _)) => Some((name, &["to"])),
            None if has_range(key) => Some((key, &["from", "to"])),
            None => None,
        };
        let Some((name, ends)) = ends else {
            let is_one_of_list = value.is_string() && is_list(key);
            let value = if is_one_of_list { Value::Array(vec![value.clone()]) } else { value.clone() };
            gathered.insert(key.clone(), value);
            continue;
        };
        if let Value::Object(range) = gathered.entry(name.to_owned()).or_insert_with(|| Value::Object(Map::new())) {
            ends.iter().for_each(|end| narrow(range, end, value));
        }
    }
    Cow::Owned(gathered)
}

/// The name and the end of `name.from` and `name.to`.
fn split_end(key: &str) -> Option<(&str, &str)> {
    key.rsplit_once('.').filter(|(_, end)| matches!(*end, "from" | "to"))
}

fn takes_range(tables: &[&[Parameter]], name: &str, dialect: Dialect) -> bool {
    let mut parameters = tables.iter().copied().flatten();
    parameters.any(|parameter| parameter.name == name && parameter.rule.is_range() && parameter.spoken.holds(dialect))
}

/// Sets an end of a range, unless the present end is narrower. An end that is no number stays and is refused later.
fn narrow(range: &mut Map<String, Value>, end: &str, value: &Value) {
    let number = |value: &Value| value.as_str().and_then(|text| text.trim().parse::<i128>().ok());
    let is_narrower = match (range.get(end), number(value)) {
        (Some(old), Some(new)) => number(old).is_some_and(|old| if end == "from" { new > old } else { new < old }),
        _ => true,
    };
    if is_narrower {
        range.insert(end.to_owned(), value.clone());
    }
}

/// A link to a page: the path, the values in the order of the request with the new `page`, then the defaults that the
/// request left out. Source: api.md 2.
pub(crate) fn link(path: &str, values: &Map<String, Value>, transform: bool, limit: usize, page: u64) -> String {
    let (page, limit) = (page.to_string(), limit.to_string());
    let mut link = format!("{path}?");
    let mut put = |key: &str, value: &str| {
        if !link.ends_with('?') {
            link.push('&');
        }
        percent_encode(key, &mut link);
        link.push('=');
        percent_encode(value, &mut link);
    };
    for (key, value) in values {
        match value {
            _ if key == "page" => put("page", &page),
            Value::Array(list) => list.iter().for_each(|value| put(key, value.as_str().unwrap_or_default())),
            value => put(key, value.as_str().unwrap_or_default()),
        }
    }
    let defaults = [(transform, "transform", "true"), (true, "page", &page), (true, "limit", &limit)];
    for (_, key, value) in defaults.into_iter().filter(|(has, key, _)| *has && !values.contains_key(*key)) {
        put(key, value);
    }
    link
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::table::parameter::{FROM_ONE, both};
    use serde_json::json;

    #[test]
    fn any_query_is_read() {
        for (query, values) in [
            ("", json!({})),
            ("a=1&b", json!({"a": "1", "b": ""})),
            ("a=1&a=2&a=3", json!({"a": ["1", "2", "3"]})),
            ("&&=&%", json!({"": "", "%": ""})),
            ("a=b=c+d%2B%ff", json!({"a": "b=c d+\u{fffd}"})),
        ] {
            assert_eq!(Value::Object(parse(query)), values, "{query}");
        }
    }

    #[test]
    fn flattened_ranges_are_gathered_where_one_is_taken() {
        let table: &[Parameter] = &[both("height", FROM_ONE)];
        let gather = |query, dialect| Value::Object(gather(&parse(query), &[table], dialect).into_owned());
        let query = "height.from=1&foo.to=2&height.to=5";
        let gathered = json!({"height": {"from": "1", "to": "5"}, "foo.to": "2"});
        assert_eq!(gather(query, Dialect::Documented), gathered);
        let flat = json!({"height.from": "1", "foo.to": "2", "height.to": "5"});
        assert_eq!(gather(query, Dialect::Core26), flat);
        for (query, range) in [
            ("height=3&height.from=1", json!({"from": "3", "to": "3"})),
            ("height.from=7&height=3&height.to=9", json!({"from": "7", "to": "3"})),
            ("height.from=x&height=3", json!({"from": "x", "to": "3"})),
        ] {
            assert_eq!(gather(query, Dialect::Documented), json!({ "height": range }), "{query}");
        }
    }

    #[test]
    fn links_keep_what_was_sent_and_add_what_was_not() {
        let link = |query, transform, page| link("/x", &parse(query), transform, 100, page);
        assert_eq!(link("", true, 1), "/x?transform=true&page=1&limit=100");
        assert_eq!(link("limit=2&orderBy=balance:desc", false, 3), "/x?limit=2&orderBy=balance%3Adesc&page=3");
        assert_eq!(link("page=07&limit=5", true, 8), "/x?page=8&limit=5&transform=true");
    }
}
