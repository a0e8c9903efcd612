//! The output of an observation.

use crate::{
    check::observe::{BrokenBlock, ChainReport, Double, Fork, RuleCount, SlotGap},
    protocol::network::Network,
};
use indicatif::{ProgressBar, ProgressStyle};

/// The largest number of lines of one kind. `--json` prints all.
const LINES: usize = 40;

/// A bar over blocks, on a terminal only.
pub(crate) fn bar() -> ProgressBar {
    let style =
        ProgressStyle::with_template("{bar:30} {pos} of {len} blocks, {eta} left").expect("the template is fixed");
    ProgressBar::new(0).with_style(style)
}

/// Sets the bar to `done` of `all` blocks.
pub(crate) fn move_bar(bar: &mut ProgressBar, done: usize, all: usize) {
    bar.set_length(all as u64);
    bar.set_position(done as u64);
}

/// The report in lines.
pub(crate) fn lines(source: &str, network: &Network, report: &ChainReport, scenario: Option<&str>) -> Vec<String> {
    let heights = report.heights.map_or(String::new(), |(least, most)| format!(", heights {least} to {most}"));
    let mut lines = vec![format!(
        "{source}: {} blocks{heights}, of the network {} ({})",
        report.blocks,
        network.name,
        &network.nethash[..network.nethash.len().min(8)]
    )];
    lines.push(match report.applied_to {
        Some(height) => format!("applied from genesis on, up to height {height}"),
        None => "nothing was applied: no block that follows genesis is shown whole, or it breaks a rule".to_owned(),
    });
    lines.push(match report.broken.len() {
        0 => "in order: no block breaks a rule that was judged".to_owned(),
        count => format!("NOT IN ORDER: rules are broken {count} times"),
    });
    put(&mut lines, report.broken.iter().map(broken));
    let left: Vec<&RuleCount> = report.rules.iter().filter(|held| held.not_judged > 0).collect();
    if !left.is_empty() {
        lines.push("not judged:".to_owned());
        lines.extend(left.iter().map(|held| not_judged(held)));
    }
    let empty: u64 = report.gaps.iter().map(|gap| u64::from(gap.slots)).sum();
    let told_to = report.told_to.filter(|told_to| report.heights.is_some_and(|(_, most)| most > *told_to));
    let told_to =
        told_to.map_or(String::new(), |height| format!(" up to height {height}, where the longest chain ends"));
    lines.push(format!("empty slots: {empty}{told_to}"));
    put(&mut lines, report.gaps.iter().map(gap));
    lines.push(format!("forks: {}", report.forks.len()));
    put(&mut lines, report.forks.iter().map(fork));
    lines.push(format!("slots with several blocks of one delegate: {}", report.doubles.len()));
    put(&mut lines, report.doubles.iter().map(double));
    lines.extend(scenario.map(|scenario| format!("scenario: {scenario}")));
    lines
}

fn put(lines: &mut Vec<String>, more: impl ExactSizeIterator<Item = String>) {
    let left = more.len().saturating_sub(LINES);
    lines.extend(more.take(LINES).map(|line| format!("  {line}")));
    if left > 0 {
        lines.push(format!("  and {left} more; --json prints all"));
    }
}

fn broken(one: &BrokenBlock) -> String {
    let height = one.height.map_or("a block".to_owned(), |height| format!("height {height}"));
    let id = one.id.as_ref().map_or(String::new(), |id| format!(", block {id}"));
    let rule = one.violation.rule;
    format!("{height}{id} ({}): {} ({}): {}", one.origin, rule.name(), rule.source(), one.violation.what)
}

fn not_judged(held: &RuleCount) -> String {
    let why = held.why_not.as_deref().unwrap_or_default();
    let of = held.judged + held.not_judged;
    format!("  {}: {} of {of} blocks: {why}", held.rule.name(), held.not_judged)
}

fn gap(gap: &SlotGap) -> String {
    let last = gap.from.0.saturating_add(gap.slots - 1);
    let slots = if gap.slots == 1 { format!("slot {last}") } else { format!("slots {} to {last}", gap.from) };
    let one = |missed: &crate::check::observe::MissedSlot| {
        let who = missed.delegate.as_deref().unwrap_or("an unknown delegate");
        let elsewhere = missed
            .block_elsewhere
            .as_ref()
            .map_or(String::new(), |id| format!(" (its block {id} is on another branch)"));
        format!("{who}{elsewhere}")
    };
    let who = match (gap.is_known(), gap.missed.is_empty()) {
        (true, false) => gap.missed.iter().map(one).collect::<Vec<_>>().join(", "),
        (true, true) => "no delegate's".to_owned(),
        (false, _) => "whose is not known".to_owned(),
    };
    let more = if gap.slots > gap.looked_at { ", and so on" } else { "" };
    format!("{slots} before height {}: {who}{more}; next {} in slot {}", gap.height, gap.next, gap.next_slot)
}

fn fork(fork: &Fork) -> String {
    let branch = |branch: &crate::check::observe::Branch| {
        let mark = if branch.is_longest { " (the longest chain)" } else { "" };
        format!("{} of {} in slot {}, up to height {}{mark}", branch.id, branch.delegate, branch.slot, branch.to)
    };
    let branches = fork.branches.iter().take(LINES).map(branch).collect::<Vec<_>>().join("; ");
    let more = if fork.branches.len() > LINES { ", and so on" } else { "" };
    format!("height {}, on {}: {}: {branches}{more}", fork.height, fork.parent, fork.why)
}

fn double(double: &Double) -> String {
    format!("slot {}: {}: {}", double.slot, double.delegate, double.blocks.join(", "))
}
