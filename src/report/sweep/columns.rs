//! What a row of a sweep tells of its run.

use super::Cell;
use crate::report::{metrics::Totals, sheet};

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// To its last round, and everything asserted held.
    Ok,
    /// An assertion of the scenario did not hold.
    Broken,
    /// The chain stalled before its last round.
    Stalled,
    /// The program failed.
    Died,
}

impl Status {
    const ALL: [Self; 4] = [Self::Ok, Self::Broken, Self::Stalled, Self::Died];

    /// The word in tables.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Broken => "broken",
            Self::Stalled => "stalled",
            Self::Died => "died",
        }
    }

    pub(super) fn number(self) -> u64 {
        self as u64
    }

    pub(super) fn of(number: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.number() == number)
    }
}

/// A figure of a run: its column, and where it comes from.
pub struct Figure {
    pub name: &'static str,
    pub kind: sheet::Kind,
    of: fn(&Totals) -> Option<f64>,
}

const fn count(name: &'static str, of: fn(&Totals) -> Option<f64>) -> Figure {
    Figure { name, kind: sheet::Kind::Count, of }
}

const fn number(name: &'static str, of: fn(&Totals) -> Option<f64>) -> Figure {
    Figure { name, kind: sheet::Kind::Number, of }
}

/// All figures, in the order of their columns.
pub const FIGURES: [Figure; 28] = [
    count("height", |totals| Some(totals.height.into())),
    count("blocks", |totals| Some(totals.blocks.into())),
    count("missed_slots", |totals| Some(totals.missed_slots.into())),
    count("longest_gap_slots", |totals| Some(totals.longest_gap_slots.into())),
    count("forged", |totals| Some(totals.forged.into())),
    count("orphaned", |totals| Some(totals.orphaned.into())),
    count("forks", |totals| Some(totals.forks.into())),
    count("slots", |totals| Some(totals.slots.into())),
    count("slots_forked", |totals| Some(totals.slots_forked.into())),
    count("fork_depth_max", |totals| Some(totals.fork_depth_max.into())),
    count("rollbacks", |totals| Some(totals.rollbacks.into())),
    count("rollback_depth_max", |totals| Some(totals.rollback_depth_max.into())),
    count("blocks_refused", |totals| Some(totals.blocks_refused.into())),
    count("forging_suspended", |totals| Some(totals.forging_suspended.into())),
    number("propagation_p50_ms", |totals| (totals.propagation_ms.count > 0).then_some(totals.propagation_ms.p50)),
    number("propagation_p99_ms", |totals| (totals.propagation_ms.count > 0).then_some(totals.propagation_ms.p99)),
    number("propagation_all_p50_ms", |totals| {
        (totals.propagation_all_ms.count > 0).then_some(totals.propagation_all_ms.p50)
    }),
    count("transactions", |totals| Some(totals.transactions as f64)),
    number("transactions_per_second", |totals| Some(totals.transactions_per_second)),
    number("transaction_latency_p50_ms", |totals| {
        (totals.transaction_latency_ms.count > 0).then_some(totals.transaction_latency_ms.p50)
    }),
    number("transaction_latency_p99_ms", |totals| {
        (totals.transaction_latency_ms.count > 0).then_some(totals.transaction_latency_ms.p99)
    }),
    number("pool_mean", |totals| Some(totals.pool_mean)),
    number("agreement_mean", |totals| Some(totals.agreement_mean)),
    number("agreement_min", |totals| Some(totals.agreement_min)),
    number("weight_agreement_mean", |totals| Some(totals.weight_agreement_mean)),
    number("agreement_end", |totals| Some(totals.agreement_end)),
    number("converged_seconds_max", |totals| totals.converged_seconds_max),
    number("seconds", |totals| Some(totals.seconds)),
];

/// The figures of a run, one for each of [`FIGURES`].
pub fn figures(totals: &Totals) -> Vec<Option<f64>> {
    FIGURES.iter().map(|figure| (figure.of)(totals)).collect()
}

/// The names of all columns of the table of runs: what was varied, the seed, how it ended,
/// the assertions that broke, the figures, the digest.
pub fn names(cells: &[Cell]) -> Vec<String> {
    table(cells).into_iter().map(|column| column.name).collect()
}

/// The columns of the table of runs.
pub fn table(cells: &[Cell]) -> Vec<sheet::Column> {
    let mut columns = vec![sheet::column("run", sheet::Kind::Count)];
    columns
        .extend(cells[0].varied.iter().map(|varied| sheet::column(varied.path(), varied_kind(cells, &varied.path()))));
    columns.push(sheet::column("seed", sheet::Kind::Count));
    columns.push(sheet::column("status", sheet::Kind::Text));
    columns.push(sheet::column("broken", sheet::Kind::Text));
    columns.extend(FIGURES.iter().map(|figure| sheet::column(figure.name, figure.kind)));
    columns.push(sheet::column("digest", sheet::Kind::Text));
    columns
}

/// Numbers where all values of a path are.
fn varied_kind(cells: &[Cell], path: &str) -> sheet::Kind {
    let values = cells.iter().flat_map(|cell| &cell.varied).filter(|varied| varied.path() == path);
    match values.into_iter().all(|varied| varied.value().is_integer() || varied.value().is_float()) {
        true => sheet::Kind::Number,
        false => sheet::Kind::Text,
    }
}

/// The cells of a row that tell what was varied.
pub fn varied(cells: &[Cell], cell: &Cell) -> Vec<sheet::Cell> {
    let one = |varied: &crate::scenario::Override| match varied_kind(cells, &varied.path()) {
        sheet::Kind::Number => {
            let value = varied.value();
            sheet::Cell::from(value.as_float().or(value.as_integer().map(|integer| integer as f64)))
        }
        _ => sheet::Cell::from(varied.value_text()),
    };
    cell.varied.iter().map(one).collect()
}
