//! The columns that a row of a sweep has for its run.

use super::Cell;
use crate::{
    report::{metrics::Totals, sheet},
    scenario::Ended,
};
use std::{fmt, str::FromStr};

/// The outcome of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// It ran to its last round, and all assertions held.
    Ok,
    /// An assertion of the scenario did not hold.
    Broken,
    /// It is proved that no block can ever be made again, before its last round.
    Halted,
    /// It was ended before its last round, by the stall rule or a limit, and no assertion that was decided by then was broken:
    /// neither a success nor a failure.
    Censored,
    /// The program or its process ended before the run did: nothing is known of the network, so neither a success nor a
    /// failure of it.
    Died,
}

impl Status {
    const ALL: [Self; 5] = [Self::Ok, Self::Broken, Self::Halted, Self::Censored, Self::Died];

    /// Returns the status of a run with this end. `broken` is true if an assertion did not hold.
    pub fn new(ended: Ended, broken: bool) -> Self {
        match ended {
            _ if broken => Self::Broken,
            Ended::Complete => Self::Ok,
            Ended::Halted(_) => Self::Halted,
            _ => Self::Censored,
        }
    }

    /// The word in tables.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Broken => "broken",
            Self::Halted => "halted",
            Self::Censored => "censored",
            Self::Died => "died",
        }
    }

    /// Returns true if the run has failed. A censored run has not.
    pub fn is_failed(self) -> bool {
        matches!(self, Self::Broken | Self::Halted | Self::Died)
    }

    /// Returns true if the run shows whether its network ends well.
    pub fn is_decided(self) -> bool {
        !matches!(self, Self::Censored | Self::Died)
    }

    pub(super) fn number(self) -> u64 {
        self as u64
    }

    pub(super) fn of(number: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.number() == number)
    }
}

/// The words of [`Ended`] by the number that a row keeps; the first stands for a run that died by a panic.
const ENDS: [&str; 10] =
    ["", "complete", "halted", "stalled", "time", "interrupted", "max-events", "max-time", "max-memory", "restless"];

/// The number that stands for the end of a run in its row.
pub fn number_of_end(ended: Ended) -> u64 {
    ENDS.iter().position(|word| *word == ended.word()).unwrap_or(0) as u64
}

/// Returns true if a row's run came to its last round.
pub fn is_complete(ended: u64) -> bool {
    ended == number_of_end(Ended::Complete)
}

/// Converts the number in a row to the end of the run or the cause of its death. `None` if it died by a panic.
pub fn end_of_number(number: u64) -> Option<String> {
    let word = usize::try_from(number).ok().and_then(|number| ENDS.get(number)).map(|word| (*word).to_owned());
    word.filter(|word| !word.is_empty()).or_else(|| Death::of(number).map(|death| death.to_string()))
}

/// The limit or signal by which the process of a run ended before the run did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Death {
    /// It exceeded its time limit.
    TimeLimit,
    /// It exceeded its memory limit.
    MemoryLimit,
    /// It was lost with its machine or worker, more than once.
    Lost,
    /// It was ended by a signal of this number.
    Signal(u8),
    /// It ended by itself with this code.
    Exit(u8),
}

impl Death {
    /// The lowest number of a death by a signal, to which the signal's number is added. Exit codes are added to `EXITS`.
    const SIGNALS: u64 = 0x200;
    const EXITS: u64 = 0x300;

    /// The number that stands for it in a row.
    pub fn number(self) -> u64 {
        match self {
            Self::TimeLimit => 0x100,
            Self::MemoryLimit => 0x101,
            Self::Lost => 0x102,
            Self::Signal(number) => Self::SIGNALS + u64::from(number),
            Self::Exit(code) => Self::EXITS + u64::from(code),
        }
    }

    fn of(number: u64) -> Option<Self> {
        let low = (number & 0xff) as u8;
        match number & !0xff {
            0x100 => [Self::TimeLimit, Self::MemoryLimit, Self::Lost].get(usize::from(low)).copied(),
            Self::SIGNALS => Some(Self::Signal(low)),
            Self::EXITS => Some(Self::Exit(low)),
            _ => None,
        }
    }
}

impl fmt::Display for Death {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimeLimit => f.write_str("time limit"),
            Self::MemoryLimit => f.write_str("memory limit"),
            Self::Lost => f.write_str("lost"),
            Self::Signal(number) => write!(f, "signal {number}"),
            Self::Exit(code) => write!(f, "exit {code}"),
        }
    }
}

impl FromStr for Death {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |head: &str| text.strip_prefix(head).and_then(|number| number.parse::<u8>().ok());
        match text {
            "time limit" => Ok(Self::TimeLimit),
            "memory limit" => Ok(Self::MemoryLimit),
            "lost" => Ok(Self::Lost),
            _ => number("signal ").map(Self::Signal).or_else(|| number("exit ").map(Self::Exit)).ok_or_else(|| {
                format!("found '{text}', allowed are 'signal N', 'exit N', 'time limit', 'memory limit' and 'lost'")
            }),
        }
    }
}

/// A figure of a run: its column and the function that reads it.
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
pub const FIGURES: [Figure; 45] = [
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
    count("down_max", |totals| Some(totals.down_max.into())),
    count("down_end", |totals| Some(totals.down_end.into())),
    count("rollbacks", |totals| Some(totals.rollbacks.into())),
    count("rollback_depth_max", |totals| Some(totals.rollback_depth_max.into())),
    count("rollbacks_from_2", |totals| Some(totals.rollbacks_from(2))),
    count("rollbacks_from_4", |totals| Some(totals.rollbacks_from(4))),
    count("rollbacks_from_8", |totals| Some(totals.rollbacks_from(8))),
    count("rollbacks_from_16", |totals| Some(totals.rollbacks_from(16))),
    count("rollbacks_from_32", |totals| Some(totals.rollbacks_from(32))),
    count("rollbacks_from_64", |totals| Some(totals.rollbacks_from(64))),
    count("rollbacks_from_128", |totals| Some(totals.rollbacks_from(128))),
    count("blocks_refused", |totals| Some(totals.blocks_refused.into())),
    count("forging_suspended", |totals| Some(totals.forging_suspended.into())),
    number("propagation_p50_ms", |totals| (totals.propagation_ms.count > 0).then_some(totals.propagation_ms.p50)),
    number("propagation_p99_ms", |totals| (totals.propagation_ms.count > 0).then_some(totals.propagation_ms.p99)),
    number("propagation_all_p50_ms", |totals| {
        (totals.propagation_all_ms.count > 0).then_some(totals.propagation_all_ms.p50)
    }),
    number("gossip_p50_ms", |totals| (totals.gossip_ms.count > 0).then_some(totals.gossip_ms.p50)),
    number("gossip_p99_ms", |totals| (totals.gossip_ms.count > 0).then_some(totals.gossip_ms.p99)),
    count("turnover", |totals| Some(totals.turnover.into())),
    number("gini_end", |totals| Some(totals.gini_end)),
    count("nakamoto_end", |totals| Some(totals.nakamoto_end.into())),
    count("captured_end", |totals| Some(totals.captured_end.into())),
    count("transactions", |totals| Some(totals.transactions as f64)),
    number("transactions_per_second", |totals| Some(totals.transactions_per_second)),
    number("transaction_latency_p50_ms", |totals| {
        (totals.transaction_latency_ms.count > 0).then_some(totals.transaction_latency_ms.p50)
    }),
    number("transaction_latency_p99_ms", |totals| {
        (totals.transaction_latency_ms.count > 0).then_some(totals.transaction_latency_ms.p99)
    }),
    count("transactions_lost", |totals| Some(totals.transactions_lost as f64)),
    number("pool_mean", |totals| totals.pool_mean),
    number("agreement_mean", |totals| totals.agreement_mean),
    number("agreement_min", |totals| totals.agreement_min),
    number("weight_agreement_mean", |totals| totals.weight_agreement_mean),
    number("agreement_end", |totals| totals.agreement_end),
    number("converged_seconds_max", |totals| totals.converged_seconds_max),
    number("observed_seconds_max", |totals| totals.observed_seconds_max),
    number("seconds", |totals| Some(totals.seconds)),
];

/// The figures that are times to an event. For censored runs it is only known that the time is longer.
pub const TIMES: [&str; 2] = ["converged_seconds_max", "observed_seconds_max"];

/// The figures of a run, one for each of [`FIGURES`].
pub fn figures(totals: &Totals) -> Vec<Option<f64>> {
    FIGURES.iter().map(|figure| (figure.of)(totals)).collect()
}

/// The names of all columns of the table of runs: the run, the varied values, the seed, the status, the end, the broken and the
/// undecided assertions, the figures, and the digest.
pub fn names(cells: &[Cell]) -> Vec<String> {
    table(cells).into_iter().map(|column| column.name).collect()
}

/// The columns of the table of runs.
pub fn table(cells: &[Cell]) -> Vec<sheet::Column> {
    let mut columns = vec![sheet::column("run", sheet::Kind::Count)];
    let varied = cells[0].varied.iter().zip(varied_kinds(cells));
    columns.extend(varied.map(|(varied, kind)| sheet::column(varied.path(), kind)));
    columns.push(sheet::column("seed", sheet::Kind::Count));
    columns.push(sheet::column("status", sheet::Kind::Text));
    columns.push(sheet::column("ended", sheet::Kind::Text));
    columns.push(sheet::column("broken", sheet::Kind::Text));
    columns.push(sheet::column("undecided", sheet::Kind::Text));
    columns.extend(FIGURES.iter().map(|figure| sheet::column(figure.name, figure.kind)));
    columns.push(sheet::column("digest", sheet::Kind::Text));
    columns
}

/// The kind of each varied path, in their order: a number if all of its values are numbers, else a text.
pub fn varied_kinds(cells: &[Cell]) -> Vec<sheet::Kind> {
    let is_number = |value: &toml::Value| value.is_integer() || value.is_float();
    let of_path = |place: usize| match cells.iter().all(|cell| is_number(cell.varied[place].value())) {
        true => sheet::Kind::Number,
        false => sheet::Kind::Text,
    };
    (0..cells[0].varied.len()).map(of_path).collect()
}

/// The cells of a row for the varied values, by the [kinds](varied_kinds) of their columns.
pub fn varied(kinds: &[sheet::Kind], cell: &Cell) -> Vec<sheet::Cell> {
    let one = |(kind, varied): (&sheet::Kind, &crate::scenario::Override)| match kind {
        sheet::Kind::Number => {
            let value = varied.value();
            sheet::Cell::from(value.as_float().or(value.as_integer().map(|integer| integer as f64)))
        }
        _ => sheet::Cell::from(varied.value_text()),
    };
    kinds.iter().zip(&cell.varied).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_what_a_run_died_is_kept_as_a_number_and_read_as_words() {
        for words in ["time limit", "memory limit", "lost", "signal 9", "signal 0", "exit 255"] {
            let death: Death = words.parse().expect(words);
            assert_eq!(end_of_number(death.number()).as_deref(), Some(words));
        }
        for wrong in ["", "signal", "signal 256", "exit -1", "SIGKILL"] {
            assert!(wrong.parse::<Death>().is_err_and(|why| why.contains("'signal N'")), "{wrong}");
        }
        assert_eq!([0, 10, 0x103, 0x400, u64::MAX].map(end_of_number), [const { None }; 5]);
        assert_eq!(end_of_number(1).as_deref(), Some("complete"));
        assert_eq!(end_of_number(9).as_deref(), Some("restless"));
    }
}
