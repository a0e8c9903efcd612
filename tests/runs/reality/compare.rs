//! Real figures beside those of simulated runs: which lie within, and which of the others are known.

use super::figures::Figures;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fs, path::Path};

/// A figure that is compared.
pub struct Figure {
    pub name: &'static str,
    /// What it is, in a few words.
    pub means: &'static str,
    /// How far beyond the simulated runs the real figure may lie.
    pub tolerance: Tolerance,
}

/// So much, or this part of the bound, whichever is more; and why.
pub struct Tolerance {
    pub absolute: f64,
    pub part: f64,
    pub why: &'static str,
}

const fn figure(name: &'static str, means: &'static str, absolute: f64, part: f64, why: &'static str) -> Figure {
    Figure { name, means, tolerance: Tolerance { absolute, part, why } }
}

const EXACT: &str = "it follows from what the nodes decide";
/// Below the half second that another step of gossip takes.
const LOADED_FEW: &str = "as above, of few values; another step of gossip would take 500 ms more";
const BOUNDARY: &str = "a window may begin or end between a block and what follows from it";
const LOADED: &str = "the machine was loaded, and a real block takes 20 to 60 ms to be worked on at each node";
const ONE_RUN: &str = "one real run: which peers a node draws differs from run to run";
const SAMPLED: &str = "sampled once a second";

/// All of them, in the order of the page.
pub const FIGURES: &[Figure] = &[
    figure("forged", "blocks forged", 1.0, 0.0, BOUNDARY),
    figure("slots_spanned", "slots from the first forged block to the last", 1.0, 0.0, BOUNDARY),
    figure("slots_forged", "slots with a block", 1.0, 0.0, BOUNDARY),
    figure("empty_slots", "slots without a block between the first and the last", 1.0, 0.0, BOUNDARY),
    figure("two_in_a_slot", "slots with two blocks", 0.0, 0.0, EXACT),
    figure("forks", "blocks on a parent that has another already", 0.0, 0.0, EXACT),
    figure("fork_depth", "blocks of the longest branch that was left", 1.0, 0.0, BOUNDARY),
    figure("offset_in_slot_ms.median", "time into the slot at which a block is made", 150.0, 0.0, LOADED),
    figure("offset_in_slot_ms.p90", "the same, exceeded by a tenth", 250.0, 0.0, LOADED),
    figure("to_each_ms.median", "time from a block's making to each other node", 60.0, 0.15, LOADED),
    figure("to_each_ms.p90", "the same, exceeded by a tenth", 300.0, 0.15, LOADED_FEW),
    figure("to_half_ms.median", "time to three of seven nodes", 60.0, 0.15, LOADED),
    figure("to_half_ms.p90", "the same, exceeded by a tenth", 300.0, 0.15, LOADED_FEW),
    figure("to_all_ms.median", "time to the last node, of blocks that come to all", 100.0, 0.15, LOADED),
    figure("to_all_ms.p90", "the same, exceeded by a tenth", 300.0, 0.15, LOADED_FEW),
    figure("pushes_per_block.median", "times that a block is pushed", 2.0, 0.1, ONE_RUN),
    figure("pushes_per_block.p90", "the same, exceeded by a tenth", 2.0, 0.1, ONE_RUN),
    figure("pushes_failed", "pushes that the receiver refuses", 3.0, 0.25, ONE_RUN),
    figure("decisions", "times that a relay tells its delegate the state of the network", 2.0, 0.0, BOUNDARY),
    figure("not_allowed", "those that forbid to forge", 1.0, 0.0, BOUNDARY),
    figure("network_state_ms.median", "time that it takes", 60.0, 0.1, LOADED),
    figure("network_state_ms.p90", "the same, exceeded by a tenth", 150.0, 0.1, LOADED),
    figure("health_checks", "times that a node compares its chain with all its peers", 1.0, 0.1, ONE_RUN),
    figure("rollbacks", "times that a node leaves its chain", 1.0, 0.0, ONE_RUN),
    figure("nodes_that_rolled_back", "nodes that do", 0.0, 0.0, EXACT),
    figure("deepest_rollback", "blocks of the deepest", 1.0, 0.1, ONE_RUN),
    figure("reverted_blocks", "blocks that nodes took back", 2.0, 0.2, ONE_RUN),
    figure("first_rollback_s", "time from the end of the fault to the first rollback", 8.0, 0.1, BOUNDARY),
    figure("one_chain_s", "time from the end of the fault until all nodes stand on one block", 8.0, 0.1, SAMPLED),
    figure("peers_removed", "peers dropped with an event", 1.0, 0.1, ONE_RUN),
    figure("peers_added", "peers added", 1.0, 0.1, ONE_RUN),
    figure("peers_lost", "peers that were gone a second later, with an event or without", 1.0, 0.1, SAMPLED),
    figure("least_peers", "fewest peers of any node", 0.0, 0.0, EXACT),
    figure("peers_at_end", "peers of all nodes in the end", 1.0, 0.0, ONE_RUN),
    figure("unlike_counts", "one peer: decisions whose counts it does not come to", 0.0, 0.0, EXACT),
    figure("unlike_verdicts", "one delegate: decisions that it does not come to", 0.0, 0.0, EXACT),
    figure("unlike_health_checks", "one peer: health checks that do not end so", 0.0, 0.0, EXACT),
];

/// What the simulated runs give for a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    pub min: f64,
    pub median: f64,
    pub max: f64,
}

/// A figure of a window beside the simulated ones.
pub struct Row {
    pub figure: &'static Figure,
    pub real: Option<f64>,
    /// `None` if no run has it.
    pub simulated: Option<Range>,
    pub outside: Option<Outside>,
}

/// A real figure lies beyond what the runs give, tolerance included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outside {
    pub side: Side,
    pub by: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// The real figure is greater than all simulated ones.
    Above,
    Below,
    /// The real window has the figure, and no run does.
    OnlyReal,
}

/// So many things of a window that one simulated peer with a real node's inputs does not do alike.
pub fn unlike(name: &str, count: usize) -> Row {
    let figure = FIGURES.iter().find(|figure| figure.name == name).expect("it is one of them");
    let none = Range { min: 0.0, median: 0.0, max: 0.0 };
    let outside = beyond(count as f64, none, &figure.tolerance);
    Row { figure, real: Some(count as f64), simulated: Some(none), outside }
}

/// The real figures of a window beside those of its runs.
pub fn rows(real: &Figures, runs: &[Figures]) -> Vec<Row> {
    FIGURES.iter().filter(|figure| real.contains_key(figure.name)).map(|figure| row(figure, real, runs)).collect()
}

fn row(figure: &'static Figure, real: &Figures, runs: &[Figures]) -> Row {
    let value = |figures: &Figures| figures.get(figure.name).copied().flatten();
    let mut values: Vec<f64> = runs.iter().filter_map(value).collect();
    values.sort_by(f64::total_cmp);
    let simulated =
        values.first().map(|min| Range { min: *min, median: values[values.len() / 2], max: values[values.len() - 1] });
    let real = value(real);
    let outside = match (real, simulated) {
        // Counts tell that there is nothing to measure.
        (None, _) => None,
        (Some(_), None) => Some(Outside { side: Side::OnlyReal, by: 0.0 }),
        (Some(real), Some(range)) => beyond(real, range, &figure.tolerance),
    };
    Row { figure, real, simulated, outside }
}

fn beyond(real: f64, range: Range, tolerance: &Tolerance) -> Option<Outside> {
    let wide = |bound: f64| tolerance.absolute.max(bound.abs() * tolerance.part);
    let outside = |side, by: f64| (by > 0.0).then_some(Outside { side, by });
    // What never happened is later than anything.
    match (real.is_infinite(), range.max.is_infinite()) {
        (true, true) => None,
        (true, false) => Some(Outside { side: Side::Above, by: f64::INFINITY }),
        (false, true) if range.min.is_infinite() => Some(Outside { side: Side::Below, by: f64::INFINITY }),
        (false, true) => outside(Side::Below, range.min - wide(range.min) - real),
        (false, false) => outside(Side::Below, range.min - wide(range.min) - real)
            .or_else(|| outside(Side::Above, real - range.max - wide(range.max))),
    }
}

/// A difference that is known: a line of `differences.toml`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Difference {
    pub window: String,
    pub figure: String,
    pub side: Side,
    /// How far beyond the simulated runs and the tolerance at most; without it, any distance from what never happens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
    /// With `?` in front, it is still to be found out.
    pub why: String,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Differences {
    #[serde(default)]
    difference: Vec<Difference>,
}

/// The differences of a folder; none without a file.
///
/// # Errors
/// The file cannot be read or has another form.
pub fn differences(folder: &Path) -> Result<Vec<Difference>, String> {
    let file = folder.join("differences.toml");
    if !file.exists() {
        return Ok(Vec::new());
    }
    let text = fs::read_to_string(&file).map_err(|why| format!("{}: {why}", file.display()))?;
    let all: Differences = toml::from_str(&text).map_err(|why| format!("{}: {why}", file.display()))?;
    let unknown = all.difference.iter().find(|one| FIGURES.iter().all(|figure| figure.name != one.figure));
    match unknown {
        Some(one) => {
            Err(format!("{}: figure: found '{}', allowed is a figure of the page", file.display(), one.figure))
        }
        None => Ok(all.difference),
    }
}

/// The file anew: without what is gone, and with what is not known, for a person to give the reasons.
pub fn file_of(windows: &BTreeMap<String, Vec<Row>>, known: &[Difference]) -> String {
    let outside = windows
        .iter()
        .flat_map(|(window, rows)| rows.iter().filter_map(move |row| Some((window, row.figure.name, row.outside?))));
    let difference = outside.map(|(window, figure, outside)| match listed(known, window, figure) {
        Some(listed) if outside.is_as(listed) => listed.clone(),
        before => Difference {
            window: window.clone(),
            figure: figure.to_owned(),
            side: outside.side,
            at_most: outside.bound(),
            why: format!("? {}", before.map_or("", |before| before.why.trim_start_matches("? "))),
        },
    });
    let all = Differences { difference: difference.collect() };
    format!("{FILE_HEAD}{}", toml::to_string(&all).expect("differences are what TOML can hold"))
}

const FILE_HEAD: &str = "\
# Where real figures lie outside what simulated nodes give: side, how far beyond runs and tolerance at most, and why.
# `REWRITE_REALITY=1 cargo test --test runs reality` takes out what is gone and puts in what is new, with a `?` for its reason.

";

fn listed<'a>(known: &'a [Difference], window: &str, figure: &str) -> Option<&'a Difference> {
    known.iter().find(|one| one.window == window && one.figure == figure)
}

/// Holds what lies outside against the known differences.
///
/// # Errors
/// What lies outside and is not known, or further out than known, what is known and lies outside no longer, and what has no reason.
pub fn judge(windows: &BTreeMap<String, Vec<Row>>, known: &[Difference]) -> Result<(), String> {
    let mut wrong = Vec::new();
    for (window, rows) in windows {
        for row in rows {
            match (row.outside, listed(known, window, row.figure.name)) {
                (None, None) => {}
                (None, Some(_)) => wrong.push(format!("gone: {window} {} lies inside", row.figure.name)),
                (Some(outside), Some(listed)) if outside.is_as(listed) => {}
                (Some(outside), before) => wrong.push(outside.told(window, row, before)),
            }
        }
    }
    let has = |one: &Difference| {
        windows.get(&one.window).is_some_and(|rows| rows.iter().any(|row| row.figure.name == one.figure))
    };
    wrong.extend(known.iter().filter(|one| !has(one)).map(|one| format!("gone: {} has no {}", one.window, one.figure)));
    let unexplained = known.iter().filter(|one| one.why.is_empty() || one.why.starts_with('?'));
    wrong.extend(unexplained.map(|one| format!("no reason: {} {}", one.window, one.figure)));
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(format!("{}\nREWRITE_REALITY=1 mends differences.toml but for the reasons", wrong.join("\n"))),
    }
}

impl Outside {
    fn is_as(self, listed: &Difference) -> bool {
        let is_near = match self.bound() {
            Some(_) => listed.at_most.is_some_and(|most| self.by <= most),
            None => true,
        };
        self.side == listed.side && is_near
    }

    /// The distance in whole numbers; none from what never happens.
    fn bound(self) -> Option<f64> {
        (self.by.is_finite() && self.by > 0.0).then(|| self.by.ceil())
    }

    fn told(self, window: &str, row: &Row, before: Option<&Difference>) -> String {
        let known = match before {
            Some(before) => format!("listed as {:?} by {:?} at most", before.side, before.at_most),
            None => "not listed".to_owned(),
        };
        let (real, simulated) = (row.real, row.simulated.map(|range| (range.min, range.max)));
        format!(
            "outside: {window} {}: real {real:?}, simulated {simulated:?}: {:?} by {:.1}, {known}",
            row.figure.name, self.side, self.by
        )
    }
}
