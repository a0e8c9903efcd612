//! Reports as pages: one file each, which opens offline. Figures travel as JSON inside the page, the script that draws them
//! is part of it, and the page forbids itself to load anything.
//!
//! ```text
//!   drawing  plots, shared with the live page     common  theme, cards, what is copied
//!   ring     the slots of the rounds              run, sweep  what each page shows
//!   trace    the events of a file that is opened   traceview   its timeline, and where nodes stood
//! ```

pub mod explain;
pub mod run;
pub mod sweep;

use crate::drawing;
use serde_json::Value;

const TEMPLATE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
/// The scripts that the pages share beside the drawing, each after those that it needs.
const LIBRARY: [&str; 2] = [include_str!("page/common.js"), include_str!("page/ring.js")];

/// A page of this title that shows `data` by a script, which finds it in `data`.
fn page(title: &str, data: &Value, script: &str) -> String {
    // In a script element only `</` and `<!` mean something to HTML, and JSON may write `<` otherwise.
    let data = data.to_string().replace('<', "\\u003c");
    let parts = [
        ("{{title}}", escape(title)),
        ("{{style}}", drawing::STYLE.to_owned() + STYLE),
        ("{{data}}", data),
        ("{{library}}", bare(&(drawing::SCRIPTS.concat() + &LIBRARY.concat()))),
        ("{{script}}", bare(script)),
    ];
    let mut page = String::new();
    let mut rest = TEMPLATE;
    while let Some((before, at)) = rest.split_once("{{") {
        page.push_str(before);
        let (name, after) = at.split_once("}}").expect("the template closes what it opens");
        let part = parts.iter().find(|(part, _)| part.trim_matches(['{', '}']) == name);
        page.push_str(&part.expect("the template names these parts only").1);
        rest = after;
    }
    page.push_str(rest);
    page
}

/// A script without comments of whole lines and without what lines begin with: an eighth less. No text of the scripts goes
/// over several lines.
fn bare(script: &str) -> String {
    let lines = script.lines().map(str::trim_start);
    let is_comment = |line: &str| line.starts_with("//") || line.starts_with("/**") && line.ends_with("*/");
    lines.filter(|line| !line.is_empty() && !is_comment(line)).fold(String::new(), |all, line| all + line + "\n")
}

/// A table column by column, each by its name, which is a quarter of the size of the same row by row.
fn columns(rows: &[Value]) -> Value {
    let names = rows.first().and_then(Value::as_object).into_iter().flat_map(|row| row.keys());
    let column = |name: &String| rows.iter().map(|row| row[name].clone()).collect::<Vec<_>>();
    Value::Object(names.map(|name| (name.clone(), column(name).into())).collect())
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
