//! `docs/reality.md`.

use super::{
    compare::{Difference, FIGURES, Row, Side},
    facts::Window,
    node::Compared,
};
use std::{collections::BTreeMap, fmt::Write};

const HEAD: &str = "\
# Seven real nodes beside simulated ones

Seven nodes of ARK Core 2.6.57 ran as one network, with seven delegates and a slot of 8 seconds. What they did is recorded in
[windows](../tests/data/seven-nodes/README.md) of one to sixteen minutes: without a fault, with latency, with lost packets, with a
node stopped, with the network split, with two nodes that forge for one delegate, with a wrong clock. A scenario beside each window
does to simulated nodes what was done to the real ones, at the same times.

The test `what_real_nodes_did_lies_within_what_simulated_ones_do` (`tests/runs/reality.rs`) plays each scenario with {seeds} seeds and
computes the same figures, by the same definitions, from the recorded facts and from the simulated ones. A real figure is *inside* if
it lies between the least and the greatest value of the runs, widened by the tolerance of that figure. Each figure outside is listed
under [Differences](#differences) with the greatest distance that is accepted, and the reason. The test fails if a figure
lies outside and is not listed, if it lies on another side or further out than listed, and if it is listed and lies inside. This page
is generated: `REWRITE_REALITY=1 cargo test --test runs reality` writes it.

`DPOSLAB_SEVEN_NODES=DIR cargo test --test runs reality` compares another folder of the same form. A window without a scenario gets
one from its set-up and its timeline, if the entries have a form that the test knows.

A real window is one run on a loaded machine, so one real value stands against a range. A range may be wide, and then to lie
inside it says little: a partition of seven nodes can end in many ways.
";

/// The whole page.
pub fn page(
    windows: &[Window],
    rows: &BTreeMap<String, Vec<Row>>,
    known: &[Difference],
    nodes: &BTreeMap<String, Compared>,
    seeds: u64,
) -> String {
    let mut text = HEAD.replace("{seeds}", &seeds.to_string());
    summary(&mut text, windows, rows);
    differences(&mut text, rows, known);
    single_nodes(&mut text, nodes);
    meanings(&mut text);
    for window in windows {
        if let Some(rows) = rows.get(&window.name) {
            table(&mut text, window, rows);
        }
    }
    text
}

fn put(text: &mut String, more: std::fmt::Arguments<'_>) {
    text.write_fmt(more).expect("text takes everything");
}

fn summary(text: &mut String, windows: &[Window], rows: &BTreeMap<String, Vec<Row>>) {
    text.push_str("\n## Result\n\n| window | seconds | figures | inside |\n|---|--:|--:|--:|\n");
    let (mut figures, mut within) = (0, 0);
    for window in windows {
        let Some(rows) = rows.get(&window.name) else { continue };
        let inside = rows.iter().filter(|row| row.outside.is_none()).count();
        let (name, ends, count) = (&window.name, window.facts.ends, rows.len());
        put(text, format_args!("| [{name}](#{name}) | {ends:.0} | {count} | {inside} |\n"));
        (figures, within) = (figures + count, within + inside);
    }
    put(text, format_args!("| all | | {figures} | {within} |\n"));
}

fn differences(text: &mut String, rows: &BTreeMap<String, Vec<Row>>, known: &[Difference]) {
    text.push_str("\n## Differences\n\n");
    if known.is_empty() {
        text.push_str("None.\n");
        return;
    }
    text.push_str("| window | figure | real | simulated | beyond | accepted | why |\n|---|---|--:|--:|--:|--:|---|\n");
    for one in known {
        let row = rows.get(&one.window).and_then(|rows| rows.iter().find(|row| row.figure.name == one.figure));
        let Some(row) = row else { continue };
        let beyond = row.outside.map_or(String::new(), |outside| match outside.side {
            Side::OnlyReal => "-".to_owned(),
            Side::Above | Side::Below => number(outside.by),
        });
        let accepted = one.at_most.map_or("-".to_owned(), number);
        put(
            text,
            format_args!(
                "| {} | `{}` | {} | {} | {beyond} | {accepted} | {} |\n",
                one.window,
                one.figure,
                value(row.real),
                range(row),
                one.why
            ),
        );
    }
}

fn single_nodes(text: &mut String, nodes: &BTreeMap<String, Compared>) {
    text.push_str(super::node::MEANING);
    text.push_str("\n| window | blocks | counts known | same counts | verdicts | same verdicts | health checks | same outcome |\n");
    text.push_str("|---|--:|--:|--:|--:|--:|--:|--:|\n");
    let mut all = Compared::default();
    for (window, one) in nodes {
        put(text, format_args!("| {window} {}\n", one.cells()));
        all.add(one);
    }
    put(text, format_args!("| all {}\n", all.cells()));
    for unlike in &all.unlike {
        put(text, format_args!("- {unlike}\n"));
    }
}

fn meanings(text: &mut String) {
    text.push_str("\n## What the figures mean\n\n| figure | | tolerance | reason |\n|---|---|---|---|\n");
    for figure in FIGURES {
        let tolerance = &figure.tolerance;
        let wide = match (tolerance.absolute, tolerance.part) {
            (0.0, _) => "none".to_owned(),
            (absolute, 0.0) => number(absolute),
            (absolute, part) => format!("{} or {:.0} %", number(absolute), part * 100.0),
        };
        put(text, format_args!("| `{}` | {} | {wide} | {} |\n", figure.name, figure.means, tolerance.why));
    }
    text.push_str(
        "\nOf a list of values, `median` is the middle one and `p90` the one that a tenth exceeds. Figures in `ms` are \
         milliseconds, in `s` seconds. *Never* means: not before the window ended. A rollback is a row of blocks that a node took \
         back at once, and a fork's end is the chain that most nodes stand on at the end of the window.\n",
    );
}

fn table(text: &mut String, window: &Window, rows: &[Row]) {
    put(text, format_args!("\n## {}\n\n", window.name));
    text.push_str("| figure | real | simulated, least to greatest | median | |\n|---|--:|--:|--:|---|\n");
    for row in rows {
        if row.real.is_none() && row.simulated.is_none() {
            continue;
        }
        let verdict = if row.outside.is_some() { "**outside**" } else { "" };
        let median = value(row.simulated.map(|range| range.median));
        put(
            text,
            format_args!("| `{}` | {} | {} | {median} | {verdict} |\n", row.figure.name, value(row.real), range(row)),
        );
    }
}

fn range(row: &Row) -> String {
    let Some(range) = row.simulated else { return "-".to_owned() };
    let (min, max) = (value(Some(range.min)), value(Some(range.max)));
    match min == max {
        true => min,
        false => format!("{min} to {max}"),
    }
}

fn value(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), number)
}

fn number(value: f64) -> String {
    match value.is_infinite() {
        true => "never".to_owned(),
        false => format!("{:.0}", value),
    }
}
