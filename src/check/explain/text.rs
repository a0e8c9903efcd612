//! An explanation in words, for a terminal of 100 columns.

use super::{
    Chain, Curve, Explanation, FaultReport, Nearest, Recording, RepeatCounts, Row, RunBeside, SideBySide, Target,
    TargetKind, TriedChange, chain::shortened,
};
use crate::actors::NodeId;
use std::collections::BTreeSet;

/// Columns of a terminal.
const COLUMNS: usize = 100;
/// The largest number of nodes with a lane in the diagram.
const LANES: usize = 16;
/// The largest number of nodes that are listed one by one.
const EACH: usize = 8;
/// Columns of a bar of the curve.
const BAR: usize = 40;
/// The largest number of passing changes that are listed.
const CHANGES: usize = 6;
/// The largest number of deeds that are listed.
const DEEDS: usize = 4;
/// The largest number of deciding numbers that are listed.
const NUMBERS: usize = 10;

/// Nodes in words: `nodes 0 2 3`.
fn nodes(all: &[NodeId]) -> String {
    let word = if all.len() == 1 { "node" } else { "nodes" };
    format!("{word} {}", listed(all).join(" "))
}

/// The numbers of nodes. If there are more than [`EACH`], three or more consecutive ones are one span: `0–34`.
fn listed(all: &[NodeId]) -> Vec<String> {
    if all.len() <= EACH {
        return all.iter().map(|node| node.0.to_string()).collect();
    }
    let spans = all.chunk_by(|one, next| one.0.checked_add(1) == Some(next.0));
    let told = spans.flat_map(|span| match span {
        [first, _, .., last] => vec![format!("{}–{}", first.0, last.0)],
        few => few.iter().map(|node| node.0.to_string()).collect(),
    });
    told.collect()
}

/// Formats a share in per cent, without a decimal if it is close to a whole number.
fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    if (percent - percent.round()).abs() < 0.05 { format!("{percent:.0} %") } else { format!("{percent:.1} %") }
}

fn fault(told: &FaultReport) -> String {
    let mut what = told.what.clone();
    let parameters = what.as_object_mut().map(|parameters| {
        parameters.shift_remove("kind");
        let all = parameters.iter().map(|(key, value)| format!("{key} {}", value.to_string().replace('"', "'")));
        all.collect::<Vec<_>>().join(", ")
    });
    let parameters = parameters.filter(|text| !text.is_empty()).map(|text| format!(", {text}")).unwrap_or_default();
    let when = match (told.from_seconds, told.until_seconds) {
        (Some(from), Some(until)) => format!("{from} s to {until} s"),
        (Some(from), None) => format!("from {from} s on"),
        (None, _) => "from an event on".to_owned(),
    };
    format!("fault {} '{}' ({when}{parameters})", told.fault, told.kind)
}

/// The explanation in a few sentences.
pub(super) fn why(explanation: &Explanation) -> Vec<String> {
    let Explanation { target, chain, faults, .. } = explanation;
    let mut why: Vec<String> = explanation.recording.as_ref().and_then(recording).into_iter().collect();
    let before = |told: &&FaultReport| told.from_seconds.is_none_or(|from| from <= target.after_seconds);
    let before: Vec<String> = faults.iter().filter(before).map(fault).collect();
    if !before.is_empty() {
        why.push(format!("Before it went wrong on purpose: {}.", before.join("; ")));
    }
    why.extend(deeds(&chain.rows, target, explanation.blocktime));
    why.extend(rivals(explanation));
    let unmet: Vec<&super::Number> = chain.numbers.iter().filter(|number| !number.met).collect();
    let stuck = ["quorum_percent", "minimum_network_reach", "node.forked_percent"];
    for number in unmet.iter().filter(|number| target.node.is_none() && stuck.contains(&number.rule)).take(4) {
        why.push(format!("On {}: {}.", nodes(&number.nodes), number.text));
    }
    let has = |rule: &str| unmet.iter().any(|number| number.rule == rule);
    if target.node.is_none() && has("quorum_percent") && has("node.forked_percent") {
        why.push(format!(
            "Between {} % of peers on its chain, which forging takes, and {} % on others, which leaving it takes, a node \
             may neither go on nor go back.",
            explanation.quorum_percent, explanation.forked_percent
        ));
    }
    why.extend(explanation.curve.as_ref().and_then(|curve| decided(curve, explanation.failed)));
    why.extend(explanation.nearest.as_ref().map(nearest));
    why
}

/// Says which line of a recording is explained, if there are several.
fn recording(recording: &Recording) -> Option<String> {
    let Recording { line, lines, left, .. } = recording;
    let left: Vec<String> = left
        .iter()
        .map(|left| {
            format!(
                "line {} at {:.3} s for snapshot {} of {:.3} s",
                left.line, left.at_seconds, left.snapshot, left.snapshot_seconds
            )
        })
        .collect();
    if left.is_empty() {
        return None;
    }
    let (told, more) = (&left[..left.len().min(DEEDS)], left.len().saturating_sub(DEEDS));
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Some(format!("The session went back and left {}{more}. Explained is line {line} of {lines}.", told.join(", ")))
}

/// Returns the last deeds of the failure's node, or the few changes of nodes to their chains.
fn deeds(rows: &[Row], target: &Target, blocktime: u32) -> Vec<String> {
    let matters = |row: &&Row| match row.kind {
        "block.refused" => !row.text.contains("does not chain to"),
        "chain.rolled-back" | "pool.evicted" | "pool.replaced" | "submitted" => true,
        "pool.added" | "pool.rejected" => target.after_seconds - row.after_seconds < f64::from(blocktime),
        _ => false,
    };
    let all: Vec<&Row> = rows.iter().filter(matters).collect();
    if target.node.is_none() && all.len() > DEEDS {
        return Vec::new();
    }
    let last = &all[all.len().saturating_sub(DEEDS)..];
    last.iter()
        .map(|row| format!("At {:.3} s {} {}.", row.after_seconds, nodes(&row.nodes), row.text.trim_end_matches('.')))
        .collect()
}

/// Names the blocks on one parent that parted the nodes.
fn rivals(explanation: &Explanation) -> Option<String> {
    let rivals = &explanation.chain.rivals;
    let parted: Vec<_> = rivals.iter().filter(|rival| !rival.stand_on_it.is_empty()).collect();
    let height = parted
        .iter()
        .map(|rival| rival.height)
        .find(|height| parted.iter().filter(|rival| rival.height == *height).count() > 1)?;
    let all = rivals.iter().filter(|rival| rival.height == height);
    let told: Vec<String> = all
        .map(|rival| {
            let forger = rival.node.map(|node| format!(" by node {}", node.0)).unwrap_or_default();
            let stand = match rival.stand_on_it.as_slice() {
                [] => "no node stands on it".to_owned(),
                some => format!("{} on it", nodes(some)),
            };
            format!("{} in slot {}{forger}, {stand}", rival.branch, rival.slot)
        })
        .collect();
    Some(format!("At height {height} there are {} blocks on one parent: {}.", told.len(), told.join("; ")))
}

/// Says when it was decided, by the curve.
fn decided(curve: &Curve, failed: bool) -> Option<String> {
    let comes = if failed { "it fails" } else { "it comes to the same" };
    let (first, last) = (curve.points.first()?, curve.points.last()?);
    if curve.points.iter().all(|point| point.failed == point.runs) {
        return Some(format!(
            "Repeated from the first instant on {comes}, whatever is drawn ({} of {} copies): the scenario and the rules \
             decide it, and no chance.",
            first.failed, first.runs
        ));
    }
    let jump = curve.jump.as_ref()?;
    let certain = match curve.certain_from_seconds {
        Some(certain) if last.failed == last.runs => format!(" From {certain:.3} s on it is certain."),
        _ => String::new(),
    };
    let clear = if jump.is_clear { "" } else { ", which chance alone may explain" };
    let events = match jump.events.as_slice() {
        [] => String::new(),
        some => format!(": {}", some.iter().take(2).cloned().collect::<Vec<_>>().join("; ")),
    };
    Some(format!(
        "Repeated from the start {comes} in {} of {}; that rises most between {:.3} s and {:.3} s, from {} to \
         {}{clear}{events}.{certain}",
        first.failed,
        first.runs,
        jump.from_seconds,
        jump.to_seconds,
        percent(jump.from_share),
        percent(jump.to_share),
    ))
}

fn nearest(nearest: &Nearest) -> String {
    let (tried, runs) = (nearest.tried.len(), nearest.runs);
    let Some(TriedChange { change, .. }) = nearest.passing().next() else {
        return match tried {
            0 => "There is no single change to try.".to_owned(),
            _ => format!("It fails with each of {tried} changes that were tried."),
        };
    };
    let first = format!("The nearest run that does not fail, of {tried} changes tried in {runs} runs: {change}.");
    let is_safe = |tried: &&TriedChange| tried.other_draws.is_some_and(|again| again.failed == 0 && again.runs > 0);
    match nearest.passing().find(is_safe) {
        Some(safe) if safe.change != *change => {
            format!("{first} The least change with which it does not fail with other draws either: {}.", safe.change)
        }
        _ => first,
    }
}

/// The text for a terminal.
impl std::fmt::Display for Explanation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{}", title(self))?;
        writeln!(f, "\nwhy")?;
        for sentence in &self.why {
            wrapped(f, "  ", sentence)?;
        }
        diagram(f, self)?;
        numbers(f, self)?;
        curve(f, self)?;
        changes(f, self)?;
        if let Some(beside) = &self.beside {
            side_by_side(f, beside)?;
        }
        write!(f, "\nsame:    {}", self.reproduce)?;
        match self.interrupted {
            true => write!(f, "\nended:   it was interrupted; the report shows the results until then"),
            false => Ok(()),
        }
    }
}

fn title(explanation: &Explanation) -> String {
    let Explanation { file, target, .. } = explanation;
    let place = match (target.node, target.height) {
        (Some(node), _) => format!(", {node}"),
        (None, Some(height)) => format!(", height {height}"),
        (None, None) => String::new(),
    };
    let when = format!("at {:.3} s{place}", target.after_seconds);
    match target.kind {
        TargetKind::Assertion | TargetKind::Invariant => {
            let source = if target.source.is_empty() { String::new() } else { format!(" ({})", target.source) };
            format!("{file}: does not hold: {}{source}\n{when}: {}", target.name, shortened(&target.what))
        }
        TargetKind::Halt | TargetKind::Stall => format!("{file}: {}\n{when}: {}", target.name, target.what),
        TargetKind::Nothing => format!("{file}: nothing failed\n{}", target.what),
        TargetKind::Fork | TargetKind::MissedSlots => {
            format!("{file}: nothing failed; the nearest to it was {}\n{when}: {}", target.name, target.what)
        }
    }
}

/// A paragraph, broken into lines.
fn wrapped(f: &mut std::fmt::Formatter<'_>, indent: &str, text: &str) -> std::fmt::Result {
    let mut line = indent.to_owned();
    for word in text.split(' ') {
        if line.chars().count() + word.chars().count() + 1 > COLUMNS && line.trim() != "" {
            writeln!(f, "{}", line.trim_end())?;
            line = format!("{indent}  ");
        }
        line.push_str(word);
        line.push(' ');
    }
    writeln!(f, "{}", line.trim_end())
}

/// The nodes that have a lane: all, or those of the shown rows.
fn lanes(rows: &[Row], target: &Target, nodes: usize) -> Vec<NodeId> {
    if nodes <= LANES {
        return (0..nodes as u32).map(NodeId).collect();
    }
    let mut lanes: BTreeSet<NodeId> = target.node.into_iter().collect();
    for row in rows.iter().rev() {
        // Some of many with the same action are enough.
        let some = row.nodes.iter().take(2).chain(row.nodes.iter().rev().take(1)).copied();
        let senders = row.arrows.iter().take(1).map(|arrow| arrow.from);
        for node in some.chain(senders) {
            if lanes.len() < LANES {
                lanes.insert(node);
            }
        }
    }
    lanes.into_iter().collect()
}

/// Returns as many rows of a chain as fit `lines` lines of a terminal; all if there is no limit.
pub(super) fn fitted(chain: &Chain, target: &Target, nodes: usize, lines: usize) -> Vec<Row> {
    if lines == usize::MAX {
        return chain.folded(usize::MAX);
    }
    let mut most = lines;
    loop {
        let rows = chain.folded(most);
        if most <= 4 || drawn(&rows, target, nodes).len() <= lines {
            return rows;
        }
        most = most * 9 / 10;
    }
}

/// The diagram, line by line.
fn drawn(rows: &[Row], target: &Target, nodes: usize) -> Vec<String> {
    let lanes = lanes(rows, target, nodes);
    let width = if lanes.len() <= 8 { 4 } else { 3 };
    let room = COLUMNS.saturating_sub(11 + lanes.len() * width);
    let head: String = lanes.iter().map(|node| format!("{:<width$}", node.0)).collect();
    let mut drawn = vec![format!("{:>9}  {}", "seconds", head.trim_end())];
    for row in rows {
        let is_folded = row.folded.is_some();
        let text = match row.nodes.is_empty() || is_folded || row.kind == "failure" {
            true => row.text.clone(),
            false => format!("{} {}", of_nodes(&row.nodes), row.text),
        };
        let time = if is_folded { "…".to_owned() } else { format!("{:.3}", row.after_seconds) };
        let mut lines = broken(&text, room, if row.kind == "failure" { 4 } else { 2 }).into_iter();
        drawn.push(format!("{time:>9}  {}{}", lane_marks(row, &lanes, width), lines.next().unwrap_or_default()));
        let rest = Row { arrows: Vec::new(), nodes: Vec::new(), kind: "folded", ..row.clone() };
        drawn.extend(lines.map(|line| format!("{:>9}  {}{line}", "", lane_marks(&rest, &lanes, width))));
    }
    drawn
}

fn diagram(f: &mut std::fmt::Formatter<'_>, explanation: &Explanation) -> std::fmt::Result {
    let chain = &explanation.chain;
    if chain.rows.is_empty() {
        return Ok(());
    }
    let (within, all) = (chain.steps_in_slice, chain.steps);
    let forgotten = match chain.steps_forgotten {
        0 => String::new(),
        count => format!(" behind the first {count}, which are not recorded"),
    };
    let target = &explanation.target;
    let began = target.at.micros() as f64 / 1e6 - target.after_seconds;
    writeln!(f, "\nwhat happened before, {within} of {all} steps{forgotten} (a letter: the branch a node stands on)")?;
    writeln!(f, "  seconds since the run began, at {began:.3} s of a trace's clock")?;
    let drawn = drawn(&chain.rows, &explanation.target, explanation.nodes as usize);
    drawn.iter().try_for_each(|line| writeln!(f, "{}", line.trim_end()))
}

/// Nodes in few words: `nodes 0–34`, or `nodes 0 2 4 6 8 10 and 7 more`.
fn of_nodes(all: &[NodeId]) -> String {
    match listed(all).len() {
        0..=EACH => nodes(all),
        _ => format!("{} and {} more", nodes(&all[..6]), all.len() - 6),
    }
}

/// A text in at most `most` lines of `room` columns, the last of which says whether there is more.
fn broken(text: &str, room: usize, most: usize) -> Vec<String> {
    let room = room.max(16);
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let length = lines.last().map_or(0, |line| line.chars().count());
        if length > 0 && length + 1 + word.chars().count() > room {
            lines.push(String::new());
        }
        let line = lines.last_mut().expect("there is one from the start");
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    for line in &mut lines {
        if line.chars().count() > room {
            *line = line.chars().take(room - 1).chain(['…']).collect();
        }
    }
    if lines.len() > most {
        lines.truncate(most);
        lines[most - 1] = lines[most - 1].chars().take(room - 1).chain(['…']).collect();
    }
    lines
}

/// Returns the marks in the lanes: the actor, the ends of messages, and the tips of all nodes.
fn lane_marks(row: &Row, lanes: &[NodeId], width: usize) -> String {
    let stands: Vec<char> = row.stands.chars().collect();
    let place = |node: NodeId| lanes.iter().position(|lane| *lane == node);
    let mut cells: Vec<char> = Vec::new();
    for node in lanes {
        let stand = stands.get(node.0 as usize).copied().unwrap_or('·');
        cells.push(stand);
        cells.extend(std::iter::repeat_n(' ', width - 1));
    }
    let ends = row.arrows.iter().filter_map(|arrow| Some((place(arrow.from)?, place(arrow.to)?)));
    for (from, to) in ends.clone() {
        let (low, high) = (from.min(to) * width, from.max(to) * width);
        for cell in &mut cells[low + 1..high] {
            if *cell == ' ' {
                *cell = '─';
            }
        }
    }
    for (arrow, (from, to)) in
        row.arrows.iter().filter(|arrow| place(arrow.from).is_some() && place(arrow.to).is_some()).zip(ends)
    {
        let sender = from * width + 1;
        if matches!(cells[sender], ' ' | '─') {
            cells[sender] = 'o';
        }
        // The mark is beside the letter of the receiver, on the side from which the message comes.
        let at = if to > from { to * width - 1 } else { to * width + 1 };
        cells[at] = if arrow.lost {
            '×'
        } else if to > from {
            '>'
        } else {
            '<'
        };
    }
    let mark = match row.kind {
        "block.forged" => '#',
        "block.refused" | "pool.rejected" | "pool.evicted" => '!',
        "chain.rolled-back" | "pool.replaced" => '~',
        "health.checked" | "forger.suspended" => '?',
        "failure" => '@',
        _ => '\0',
    };
    for node in row.nodes.iter().filter_map(|node| place(*node)).filter(|_| mark != '\0') {
        let at = node * width + 1;
        if cells[at] == ' ' || cells[at] == '─' {
            cells[at] = mark;
        }
    }
    cells.into_iter().collect()
}

fn numbers(f: &mut std::fmt::Formatter<'_>, explanation: &Explanation) -> std::fmt::Result {
    let numbers = &explanation.chain.numbers;
    if numbers.is_empty() {
        return Ok(());
    }
    writeln!(f, "\nnumbers that decided, and their rules")?;
    for number in numbers.iter().take(NUMBERS) {
        wrapped(f, "  ", &format!("{} ({}, {})", number.text, nodes(&number.nodes), number.rule))?;
    }
    match numbers.len().saturating_sub(NUMBERS) {
        0 => Ok(()),
        more => writeln!(f, "  and {more} more"),
    }
}

fn curve(f: &mut std::fmt::Formatter<'_>, explanation: &Explanation) -> std::fmt::Result {
    let Some(curve) = &explanation.curve else { return Ok(()) };
    writeln!(
        f,
        "\nhow probable it is when the run is repeated from an instant with other draws, {} times each",
        curve.repeats
    )?;
    // Equal neighbouring rows are shown once.
    let same = |index: usize| {
        let share = |index: usize| curve.points.get(index).map(|point| point.failed);
        index > 0 && share(index - 1) == share(index) && share(index + 1) == share(index)
    };
    let mut left_out = false;
    for (index, point) in curve.points.iter().enumerate() {
        if same(index) {
            if !std::mem::replace(&mut left_out, true) {
                writeln!(f, "{:>9}", "…")?;
            }
            continue;
        }
        left_out = false;
        let cells = |share: f64| ((share * BAR as f64).round() as usize).min(BAR);
        let (full, low, high) = (cells(point.share), cells(point.interval.low), cells(point.interval.high));
        let bar: String = (0..BAR)
            .map(|cell| match cell {
                _ if cell < low => '█',
                _ if cell < full => '▓',
                _ if cell < high => '░',
                _ => ' ',
            })
            .collect();
        writeln!(
            f,
            "{:>9.3}  {:>7}  ({} to {})  {}",
            point.after_seconds,
            percent(point.share),
            percent(point.interval.low),
            percent(point.interval.high),
            bar.trim_end()
        )?;
    }
    if let Some(jump) = &curve.jump {
        writeln!(f, "  between {:.3} s and {:.3} s:", jump.from_seconds, jump.to_seconds)?;
        for event in &jump.events {
            wrapped(f, "    ", event)?;
        }
        if jump.more_events > 0 {
            writeln!(f, "    and {} more", jump.more_events)?;
        }
    }
    match curve.cut_short {
        Some(why) => writeln!(f, "  not all instants were looked at: {why}"),
        None => Ok(()),
    }
}

fn changes(f: &mut std::fmt::Formatter<'_>, explanation: &Explanation) -> std::fmt::Result {
    let Some(nearest) = &explanation.nearest else { return Ok(()) };
    let passing: Vec<&TriedChange> = nearest.passing().collect();
    writeln!(
        f,
        "\nsingle changes with which it does not fail, the least first: {} of {} tried, {} runs",
        passing.len(),
        nearest.tried.len(),
        nearest.runs
    )?;
    if let Some(RepeatCounts { failed, runs }) = nearest.unchanged {
        writeln!(f, "  unchanged, with other draws from the start {failed} of {runs} fail")?;
    }
    for tried in passing.iter().take(CHANGES) {
        let set = tried.set.as_ref().map(|set| format!("   --set {set}")).unwrap_or_default();
        let again = tried
            .other_draws
            .map(|RepeatCounts { failed, runs }| format!("; with other draws {failed} of {runs} fail"));
        wrapped(f, "  ", &format!("{}{}{set}", tried.change, again.unwrap_or_default()))?;
    }
    match passing.len().saturating_sub(CHANGES) {
        0 => {}
        more => writeln!(f, "  and {more} more")?,
    }
    match nearest.untried {
        Some(untried) => wrapped(f, "  ", &format!("not tried are {untried}")),
        None => Ok(()),
    }
}

/// The columns of a terminal for runs side by side.
const ROOM: usize = 110;
/// Slots that are shown of runs side by side: the first, and the last.
const SLOTS_SHOWN: (usize, usize) = (40, 10);

/// The runs of other rules, a column each.
fn side_by_side(f: &mut std::fmt::Formatter<'_>, beside: &SideBySide) -> std::fmt::Result {
    let room = (ROOM / beside.runs.len()).saturating_sub(3).max(16);
    let mut line = |head: &str, cells: Vec<String>| {
        let broken: Vec<Vec<String>> = cells.iter().map(|cell| broken(cell, room, 3)).collect();
        for row in 0..broken.iter().map(Vec::len).max().unwrap_or(0) {
            let cell = |lines: &Vec<String>| format!("{:room$}", lines.get(row).map_or("", String::as_str));
            let text: Vec<String> = broken.iter().map(cell).collect();
            writeln!(f, "{:>9}  {}", if row == 0 { head } else { "" }, text.join(" | ").trim_end())?;
        }
        Ok(())
    };
    let all = |cell: &dyn Fn(&RunBeside) -> String| beside.runs.iter().map(cell).collect::<Vec<_>>();
    line("", vec![String::new()])?;
    line("seconds", all(&|run| format!("rules '{}'", run.rules)))?;
    let (first, last) = SLOTS_SHOWN;
    let hidden = beside.slots.len().saturating_sub(first + last);
    for (index, slot) in beside.slots.iter().enumerate() {
        if (first..first + hidden).contains(&index) {
            if index == first {
                line("…", vec![format!("{hidden} slots in which they differ")])?;
            }
            continue;
        }
        if slot.alike_before > 0 {
            let slots = if slot.alike_before == 1 { "slot" } else { "slots" };
            line("…", vec![format!("{} {slots} alike", slot.alike_before)])?;
        }
        line(&format!("{:.3}", slot.seconds), slot.cells.clone())?;
    }
    if beside.slots.is_empty() {
        line("…", vec![format!("all {} slots alike", beside.alike)])?;
    }
    line("end", all(&RunBeside::end_in_words))?;
    line("missed", all(&|run| format!("{} of {} slots", run.missed, run.slots)))?;
    line("height", all(&|run| run.height.to_string()))?;
    line(
        "left",
        all(&|run| format!("{} block{}, over all nodes", run.rolled_back, if run.rolled_back == 1 { "" } else { "s" })),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_nodes_are_told_as_spans_and_few_one_by_one() {
        let told = |all: &[u32]| of_nodes(&all.iter().copied().map(NodeId).collect::<Vec<_>>());
        assert_eq!(told(&[3]), "node 3");
        assert_eq!(told(&[0, 1, 2, 3, 4, 5, 6, 7]), "nodes 0 1 2 3 4 5 6 7");
        let part: Vec<u32> = (0..35).collect();
        assert_eq!(told(&part), "nodes 0–34");
        assert_eq!(told(&[0, 1, 3, 4, 5, 9, 10, 11, 12, 20]), "nodes 0 1 3–5 9–12 20");
        let even: Vec<u32> = (0..13).map(|half| 2 * half).collect();
        assert_eq!(told(&even), "nodes 0 2 4 6 8 10 and 7 more");
        assert_eq!(told(&[0, 2, 4, 6, 8, 10, 12, 14, u32::MAX]), "nodes 0 2 4 6 8 10 and 3 more");
    }
}
