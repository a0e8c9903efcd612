//! Reports as pages: one file each, which opens offline. A page contains its figures as JSON and the scripts that draw them, and
//! forbids itself to load anything.
//!
//! ```text
//!   drawing  plots, shared with the live page     common  theme, cards, what is copied
//!   ring     the slots of the rounds              run, sweep  what each page shows
//!   trace    the events of a file that is opened   traceview   its timeline, and where nodes stood
//! ```

pub(crate) mod explain;
pub(crate) mod run;
pub(crate) mod sweep;

use crate::drawing;
use serde_json::Value;

const TEMPLATE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
/// The scripts that the pages share beside the drawing, each after those that it needs.
const LIBRARY: [&str; 2] = [include_str!("page/common.js"), include_str!("page/ring.js")];

/// Returns a page with this title. Its script reads `data` from the element `data`.
fn page(title: &str, data: &Value, script: &str) -> String {
    // In a script element only `</` and `<!` mean something to HTML, and JSON may write `<` otherwise.
    assembled(&escape(title), &data.to_string().replace('<', "\\u003c"), script)
}

/// Fills the template. `title` and `data` are already escaped.
fn assembled(title: &str, data: &str, script: &str) -> String {
    let parts = [
        ("{{title}}", title),
        ("{{style}}", &style()),
        ("{{data}}", data),
        ("{{library}}", &library()),
        ("{{script}}", &bare(script)),
    ];
    let mut page = String::new();
    let mut rest = TEMPLATE;
    while let Some((before, at)) = rest.split_once("{{") {
        page.push_str(before);
        let (name, after) = at.split_once("}}").expect("the template closes what it opens");
        let part = parts.iter().find(|(part, _)| part.trim_matches(['{', '}']) == name);
        page.push_str(part.expect("the template names these parts only").1);
        rest = after;
    }
    page.push_str(rest);
    page
}

fn style() -> String {
    drawing::STYLE.to_owned() + STYLE
}

fn library() -> String {
    bare(&(drawing::SCRIPTS.concat() + &LIBRARY.concat()))
}

/// A page of this program, taken apart.
pub(crate) struct PageParts<'a> {
    /// The data as JSON.
    pub data: &'a str,
    /// The scripts, in the order in which the page runs them. `None` if the page differs from this program's pages in more than title
    /// and data.
    pub scripts: Option<[String; 2]>,
    pub style: String,
}

/// Takes a page apart. Returns `None` if the text is no page of a report, of this or another version.
pub(crate) fn parts(text: &str) -> Option<PageParts<'_>> {
    const DATA: &str = "<script id=\"data\" type=\"application/json\">";
    let (head, rest) = text.split_once(DATA)?;
    let (data, _) = rest.split_once("</script>")?;
    let (_, title) = head.split_once("<title>")?;
    let (title, _) = title.split_once("</title>")?;
    let script =
        [run::SCRIPT, sweep::SCRIPT, explain::SCRIPT].into_iter().find(|script| assembled(title, data, script) == text);
    Some(PageParts { data, scripts: script.map(|script| [library(), bare(script)]), style: style() })
}

/// Removes whole-line comments and indentation from a script, which saves an eighth. No string of the scripts spans several lines.
fn bare(script: &str) -> String {
    let lines = script.lines().map(str::trim_start);
    let is_comment = |line: &str| line.starts_with("//") || line.starts_with("/**") && line.ends_with("*/");
    lines.filter(|line| !line.is_empty() && !is_comment(line)).fold(String::new(), |all, line| all + line + "\n")
}

/// Converts a table to columns by name, which take a quarter of the size of the rows.
fn columns(rows: &[Value]) -> Value {
    let names = rows.first().and_then(Value::as_object).into_iter().flat_map(|row| row.keys());
    let column = |name: &String| rows.iter().map(|row| row[name].clone()).collect::<Vec<_>>();
    Value::Object(names.map(|name| (name.clone(), column(name).into())).collect())
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
