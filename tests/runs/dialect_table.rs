//! The table of docs/dialects.md, row by row, against a live node in each dialect.

use crate::{examples::Node, support::root};
use serde_json::Value;
use std::fs;

/// A row of the table.
struct Row {
    method: String,
    target: String,
    body: Option<String>,
    place: String,
    /// In `documented`, and in `core-2.6`.
    found: [String; 2],
}

fn rows() -> Vec<Row> {
    let text = fs::read_to_string(root().join("docs/dialects.md")).expect("the page is there");
    let table = text.lines().filter_map(|line| line.strip_prefix("| `")).map(|line| {
        let cells: Vec<&str> = line.trim_end_matches('|').split('|').map(str::trim).collect();
        let [request, place, documented, core] = cells[..] else { panic!("four cells: {line}") };
        let mut request = request.trim_matches('`').splitn(3, ' ').map(str::to_owned);
        let mut next = || request.next();
        let (method, target) = (next().expect("a method").to_lowercase(), next().expect("a target"));
        let found = [documented.to_owned(), core.to_owned()];
        Row { method, target, body: next(), place: place.trim_matches('`').to_owned(), found }
    });
    table.collect()
}

/// A value in the table's words.
fn in_words(value: Option<&Value>, wanted: &str) -> String {
    match value {
        None => "absent".to_owned(),
        Some(Value::Null) => "null".to_owned(),
        // A number that the table tells.
        Some(Value::Number(number)) if wanted.bytes().all(|byte| byte.is_ascii_digit()) => number.to_string(),
        Some(Value::Number(_)) => "number".to_owned(),
        Some(Value::String(_)) => "text".to_owned(),
        Some(Value::Array(_)) => "list".to_owned(),
        Some(Value::Object(_)) => "object".to_owned(),
        Some(Value::Bool(flag)) => flag.to_string(),
    }
}

#[test]
fn every_row_of_the_table_of_dialects_holds() {
    let rows = rows();
    assert!(rows.len() > 25, "only {} rows were read", rows.len());
    for (column, dialect) in ["documented", "core-2.6"].into_iter().enumerate() {
        let node = Node::start(dialect);
        for row in &rows {
            let target = node.fill_in(&row.target);
            let body = row.body.as_ref().map(|body| node.fill_in(body));
            let body = body.map(|body| serde_json::from_str(&body).unwrap_or_else(|why| panic!("{body}: {why}")));
            let (status, answer) = node.ask(&row.method, &target, body.as_ref());
            let wanted = &row.found[column];
            let found = match &*row.place {
                "status" => status.to_string(),
                pointer => in_words(answer.pointer(pointer), wanted),
            };
            assert_eq!(&found, wanted, "{dialect}: {} {target} {}: {answer}", row.method, row.place);
        }
    }
}
