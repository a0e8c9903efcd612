//! The report as a table on a terminal.

use super::RoundReport;
use comfy_table::{Cell, CellAlignment, Color, Table, presets::NOTHING};
use std::fmt::Write;

/// The number of rounds side by side in one table.
const ROUNDS_ABREAST: usize = 8;

/// Formats the slots owned, forged and missed by each delegate in each round, then the gaps of each round.
pub(crate) fn render(reports: &[RoundReport]) -> String {
    let mut out = String::from("Slots owned, forged and missed (owned/forged/missed), per delegate and round:\n");
    for chunk in reports.chunks(ROUNDS_ABREAST) {
        writeln!(out, "{}", table(chunk)).expect("writing to a string");
    }
    for report in reports {
        let RoundReport { round, first_height, last_height, blocks, missed_slots, gaps, .. } = report;
        let heights = match blocks {
            0 => format!("from height {first_height}"),
            _ => format!("heights {first_height}-{last_height}"),
        };
        write!(out, "round {round}: {heights}, {blocks} blocks forged, {missed_slots} slots missed")
            .expect("writing to a string");
        let gaps: Vec<String> =
            gaps.iter().map(|gap| format!("{} s before height {}", gap.seconds, gap.height)).collect();
        let gaps = if gaps.is_empty() { "no gaps".to_owned() } else { format!("gaps: {}", gaps.join(", ")) };
        writeln!(out, ", {gaps}").expect("writing to a string");
    }
    out
}

fn table(rounds: &[RoundReport]) -> Table {
    let mut table = Table::new();
    table.load_preset(NOTHING);
    let head =
        rounds.iter().map(|round| Cell::new(format!("round {}", round.round)).set_alignment(CellAlignment::Right));
    table.set_header(std::iter::once(Cell::new("delegate")).chain(head));
    let mut names: Vec<&str> = Vec::new();
    for name in rounds.iter().flat_map(|round| &round.delegates).map(|delegate| delegate.username.as_str()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    for name in names {
        let cells = rounds.iter().map(|round| {
            let found = round.delegates.iter().find(|delegate| delegate.username == name);
            let cell = match found {
                Some(slots) => Cell::new(format!("{}/{}/{}", slots.owned, slots.forged, slots.missed)),
                None => Cell::new("-"),
            };
            let missed = found.is_some_and(|slots| slots.missed > 0);
            let cell = if missed { cell.fg(Color::Red) } else { cell };
            cell.set_alignment(CellAlignment::Right)
        });
        table.add_row(std::iter::once(Cell::new(name)).chain(cells));
    }
    table
}
