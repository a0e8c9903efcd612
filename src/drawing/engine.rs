//! The scripts of a page without a browser: QuickJS runs them, with a document as small as they need.
//!
//! ```text
//!   dom      elements and their text as XML            layout   widths of cards and texts, numbers in English
//!   cascade  the values that the style sheet sets      browser  the window: what scripts find by its name
//! ```
//!
//! A script reaches no file, network, clock of a page or other script. It has bounds in memory, in depth and in steps, and the
//! bound in steps depends on no clock: the same scripts and values give the same text or the same error on every machine.

use rquickjs::{CatchResultExt, Context, Ctx, Runtime};
use serde_json::{Value, json};
use std::{cell::Cell, rc::Rc};

const DOCUMENT: [&str; 4] = [
    include_str!("engine/dom.js"),
    include_str!("engine/cascade.js"),
    include_str!("engine/layout.js"),
    include_str!("engine/browser.js"),
];
/// Advance widths of Liberation Sans, which has the metrics of Arial and Helvetica.
const WIDTHS: &str = include_str!("engine/widths.json");
/// The fonts of these widths, as the last style sheet.
const FONTS: &str = "body { font-family: Arial, Helvetica, 'Liberation Sans', 'Nimbus Sans', sans-serif; }";

/// The size of the scripts' stack [bytes].
const STACK_MAX: usize = 512 << 10;
/// The number of steps between two calls of the interrupt handler. A step is a call, an iteration of a loop or the like.
const STEPS_A_QUESTION: u64 = 10_000;
/// The bounds of every page: a large one takes a hundredth of them.
const BOUNDS: Limits = Limits { memory: 1 << 30, questions: 100_000 };

/// The bounds of scripts.
#[derive(Clone, Copy)]
struct Limits {
    /// The largest amount of memory [bytes].
    memory: usize,
    /// The largest number of calls of the interrupt handler.
    questions: u64,
}

/// The window in which scripts run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window<'a> {
    /// The style sheet of the page.
    pub style: &'a str,
    /// The data of the page, as JSON.
    pub data: &'a str,
    /// `light` or `dark`.
    pub theme: &'a str,
    /// The width of every drawing in pixels; `None` for that of its card in a wide window.
    pub width: Option<u16>,
    /// A value for the last script, by the name `given.asked`.
    pub asked: &'a Value,
}

/// The reason why scripts gave no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EngineError {
    /// A script threw, mostly because the data lack something.
    #[error("{0}")]
    Thrown(String),
    /// The scripts reached the bound of steps.
    #[error("found more than the {0} steps of a script that are allowed")]
    Steps(u64),
    /// The scripts reached the bound of memory.
    #[error("found more than the {} MiB of memory that are allowed", .0 >> 20)]
    Memory(usize),
}

/// Runs scripts one after the other in a new window. Returns the text that the script `last` evaluates to.
///
/// # Errors
/// A script throws, or reaches a bound.
pub(crate) fn run(scripts: &[&str], last: &str, window: Window<'_>) -> Result<String, EngineError> {
    run_within(BOUNDS, scripts, last, window)
}

fn run_within(bounds: Limits, scripts: &[&str], last: &str, window: Window<'_>) -> Result<String, EngineError> {
    let memory = |_| EngineError::Memory(bounds.memory);
    let runtime = Runtime::new().map_err(memory)?;
    runtime.set_memory_limit(bounds.memory);
    runtime.set_max_stack_size(STACK_MAX);
    let asked = Rc::new(Cell::new(0));
    let counted = Rc::clone(&asked);
    runtime.set_interrupt_handler(Some(Box::new(move || {
        counted.set(counted.get() + 1);
        counted.get() > bounds.questions
    })));
    let context = Context::full(&runtime).map_err(memory)?;
    let result = context.with(|context| evaluate(&context, scripts, last, window));
    match result {
        Err(_) if asked.get() > bounds.questions => Err(EngineError::Steps(bounds.questions * STEPS_A_QUESTION)),
        Err(EngineError::Thrown(why)) if why.contains("out of memory") => Err(EngineError::Memory(bounds.memory)),
        result => result,
    }
}

fn evaluate(context: &Ctx<'_>, scripts: &[&str], last: &str, window: Window<'_>) -> Result<String, EngineError> {
    let widths: Value = serde_json::from_str(WIDTHS).expect("the program's own file is JSON");
    let given = json!({
        "style": format!("{}{FONTS}", window.style),
        "data": window.data,
        "theme": window.theme,
        "width": window.width,
        "asked": window.asked,
        "widths": widths,
    });
    let thrown = |why: rquickjs::CaughtError<'_>| EngineError::Thrown(first_line(&why.to_string()));
    // The values enter as one JSON text, which the document parses.
    context.globals().set("GIVEN", given.to_string()).catch(context).map_err(thrown)?;
    let document = format!("const given = JSON.parse(GIVEN);\n(() => {{\n{}}})();", DOCUMENT.concat());
    for script in [document.as_str()].iter().chain(scripts) {
        context.eval::<(), _>(*script).catch(context).map_err(thrown)?;
    }
    context.eval::<String, _>(last).catch(context).map_err(thrown)
}

/// The first line of an error, without its stack trace.
fn first_line(error: &str) -> String {
    error.lines().next().unwrap_or_default().trim_start_matches("Error: ").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STYLE: &str = ":root { --ink: #123; } .a svg { font-size: 12px; } .b { stroke: var(--ink); opacity: .5; } svg .b { fill: #fff; } .b { fill: #000; }
        @media print { .b { fill: red; } } .b:hover { fill: blue; } .c > .b { stroke-width: 3; }";

    fn played(script: &str) -> Result<String, EngineError> {
        let window = Window { style: STYLE, data: "{}", theme: "dark", width: None, asked: &Value::Null };
        run_within(Limits { memory: 32 << 20, questions: 500 }, &[], script, window)
    }

    fn said(script: &str) -> String {
        played(script).unwrap_or_else(|why| panic!("{script}: {why}"))
    }

    #[test]
    fn numbers_are_as_browsers_write_them_in_english() {
        // Each as Node.js 22 writes it.
        let known = [
            ("1234.5, { maximumFractionDigits: 2 }", "1,234.5"),
            ("1.005, { maximumFractionDigits: 2 }", "1.01"),
            ("0.00000015, { maximumFractionDigits: 8 }", "0.00000015"),
            ("0.00000015, { maximumFractionDigits: 7 }", "0.0000002"),
            ("-0.001, { maximumFractionDigits: 2 }", "-0"),
            ("9999999.5, { maximumFractionDigits: 0 }", "10,000,000"),
            ("999.5, { maximumFractionDigits: 0 }", "1,000"),
            ("12345678, { notation: 'compact', maximumFractionDigits: 2 }", "12.35M"),
            ("999999999, { notation: 'compact', maximumFractionDigits: 1 }", "1B"),
            ("1e15, { notation: 'compact', maximumFractionDigits: 1 }", "1000T"),
            ("1e16, { notation: 'compact', maximumFractionDigits: 1 }", "10,000T"),
        ];
        for (number, expected) in known {
            let (value, options) = number.split_once(", ").expect("both are there");
            assert_eq!(said(&format!("({value}).toLocaleString('en', {options})")), expected, "{number}");
        }
    }

    #[test]
    fn the_style_of_an_element_is_what_rules_attributes_and_parents_say() {
        let made = "const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
            const path = document.createElementNS('http://www.w3.org/2000/svg', 'path');
            path.setAttribute('class', 'b'); path.setAttribute('stroke-dasharray', '6 4'); path.setAttribute('fill', 'green');
            document.body.setAttribute('class', 'a'); svg.setAttribute('class', 'c'); svg.append(path); document.body.append(svg);
            const style = getComputedStyle(path);";
        let names = ["fill", "stroke", "opacity", "stroke-width", "stroke-dasharray", "font-size", "font-weight"];
        let asked = format!("{made} {names:?}.map((name) => style.getPropertyValue(name)).join('|')");
        assert_eq!(said(&asked), "rgb(255, 255, 255)|rgb(17, 34, 51)|0.5|3px|6px, 4px|12px|400");
    }

    #[test]
    fn a_script_has_bounds() {
        let end = |script: &str| played(script).unwrap_err().to_string();
        assert_eq!(end("for (;;) ;"), "found more than the 5000000 steps of a script that are allowed");
        assert_eq!(end("try { for (;;) ; } catch { String(1) }"), end("for (;;) ;"), "no script goes on after it");
        let greedy = "const all = []; for (;;) all.push('x'.repeat(1 << 20) + all.length);";
        assert_eq!(end(greedy), "found more than the 32 MiB of memory that are allowed");
        let deep = played("const deeper = (by) => deeper(by + 1) + 1; String(deeper(0))").unwrap_err().to_string();
        assert!(deep.contains("stack"), "{deep}");
    }

    #[test]
    fn a_script_reaches_nothing_of_the_machine() {
        for name in ["process", "require", "std", "os", "fetch", "XMLHttpRequest", "Deno", "setTimeout"] {
            assert_eq!(said(&format!("typeof {name}")), "undefined", "{name}");
        }
        assert!(
            played("import('std').then(() => 1); String(1)").is_ok_and(|one| one == "1"),
            "a promise is not waited for"
        );
    }

    #[test]
    fn letters_that_xml_forbids_come_out_as_others() {
        let text = "const made = document.createElementNS('http://www.w3.org/2000/svg', 'text');
            made.append('\\u0001<\\ud800>&\"'); made.setAttribute('x', '\\n\"<'); new XMLSerializer().serializeToString(made)";
        assert_eq!(
            said(text),
            "<text xmlns=\"http://www.w3.org/2000/svg\" x=\"&#xA;&quot;&lt;\">\u{fffd}&lt;\u{fffd}&gt;&amp;\"</text>"
        );
    }
}
