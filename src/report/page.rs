//! Reports as pages: one file each, which opens offline. Figures travel as JSON inside the page, plotly's script is part
//! of it, and the page forbids itself to load anything.

pub mod run;
pub mod sweep;

use serde_json::Value;

const TEMPLATE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
const COMMON: &str = include_str!("page/common.js");

/// A page of this title that shows `data` by a script, which finds it in `data`.
fn page(title: &str, data: &Value, script: &str) -> String {
    // In a script element only `</` and `<!` mean something to HTML, and JSON may write `<` otherwise.
    let data = data.to_string().replace('<', "\\u003c");
    let parts = [
        ("{{title}}", escape(title)),
        ("{{style}}", STYLE.to_owned()),
        ("{{plotly}}", plotly().to_owned()),
        ("{{data}}", data),
        ("{{common}}", COMMON.to_owned()),
        ("{{script}}", script.to_owned()),
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

/// plotly's script, as the crate ships it, without the other script it ships.
fn plotly() -> String {
    let scripts = ::plotly::Plot::offline_js_sources();
    let (_, first) = scripts.split_once('>').expect("it begins with a script element");
    first.split_once("</script>").expect("and closes it").0.to_owned()
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
