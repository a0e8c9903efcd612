//! The heaviest rows are shown; the others are folded between them.

use super::{FoldCounts, Row};
use std::collections::BTreeSet;

/// The number of rows shown where only ordinary events happened.
const ORDINARY: usize = 8;

/// The heaviest rows; the others are folded between them.
pub(super) fn fold(rows: Vec<Row>, rows_max: usize) -> Vec<Row> {
    let mut told: BTreeSet<usize> = BTreeSet::new();
    let mut weights: Vec<u8> = rows.iter().map(|row| row.weight).collect::<BTreeSet<u8>>().into_iter().collect();
    weights.reverse();
    for weight in weights.into_iter().filter(|weight| *weight > 0 || rows_max == usize::MAX) {
        let of_weight: Vec<usize> = (0..rows.len()).filter(|index| rows[*index].weight == weight).collect();
        let room = rows_max.saturating_sub(told.len());
        // Ordinary rows are shown near the end only.
        let room =
            if weight <= 1 && rows_max < usize::MAX { ORDINARY.saturating_sub(told.len()).min(room) } else { room };
        if of_weight.len() <= room {
            told.extend(of_weight);
            continue;
        }
        // The beginning, and the way to the end.
        let first = if weight <= 1 { 0 } else { room * 2 / 5 };
        told.extend(&of_weight[..first]);
        told.extend(&of_weight[of_weight.len() - (room - first)..]);
        break;
    }
    let mut folded: Vec<Row> = Vec::new();
    let mut open: Option<(Row, FoldCounts, u64)> = None;
    for (index, row) in rows.into_iter().enumerate() {
        if !told.contains(&index) {
            let first = row.messages;
            let (_, count, _) = open.get_or_insert_with(|| (row.clone(), FoldCounts::default(), first));
            count.steps += row.nodes.len().max(1) as u64;
            count.blocks += u64::from(row.kind == "block.forged");
            continue;
        }
        if let Some((first, count, since)) = open.take() {
            folded.push(folding(first, FoldCounts { messages: row.messages.saturating_sub(since), ..count }));
        }
        folded.push(row);
    }
    if let Some((first, count, _)) = open {
        folded.push(folding(first, count));
    }
    folded
}

fn folding(first: Row, folded: FoldCounts) -> Row {
    let FoldCounts { steps, messages, blocks } = folded;
    let plural = |count: u64, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let blocks = if blocks > 0 { format!(", {} forged among them", plural(blocks, "block")) } else { String::new() };
    let text = format!("{} and {}{blocks}", plural(steps, "step"), plural(messages, "message"));
    Row {
        kind: "folded",
        nodes: Vec::new(),
        text,
        block: None,
        arrows: Vec::new(),
        changed: Vec::new(),
        numbers: Vec::new(),
        folded: Some(folded),
        ..first
    }
}
