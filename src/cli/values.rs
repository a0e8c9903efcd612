//! The command-line words for option values whose types the rooms below declare. They are here so that no room below `cli` depends
//! on clap.

use crate::{
    check::swarm::ModelledRuns,
    protocol::crypto::CryptoMode,
    report::{bundle::Output, trace::TraceFormat},
    scenario::StageKind,
};
use clap::{ValueEnum, builder::PossibleValue};

/// Declares the words of a type, each with the sentence that `--help` shows.
macro_rules! words {
    ($($kind:ty { $($variant:ident => $word:literal, $help:literal;)* })*) => {$(
        impl ValueEnum for $kind {
            fn value_variants<'a>() -> &'a [Self] {
                &[$(Self::$variant),*]
            }

            fn to_possible_value(&self) -> Option<PossibleValue> {
                Some(match self {
                    $(Self::$variant => PossibleValue::new($word).help($help),)*
                })
            }
        }
    )*};
}

words! {
    CryptoMode {
        Real => "real", "Signed, and verified once in the process however many nodes ask";
        EveryNode => "every-node", "Signed, and verified by every node that asks";
        Modelled => "modelled", "Replaced by a cheap digest: for large studies";
    }
    StageKind {
        Inline => "inline", "One plain loop in one thread: about five times as fast";
        Ractor => "ractor", "Every actor a ractor actor, as in `dposlab up`";
    }
    ModelledRuns {
        Always => "always", "In all runs";
        Drawn => "drawn", "In one run of four, by its seed";
        Never => "never", "In no run";
    }
    Output {
        Events => "events", "events.jsonl: every event; the largest by far";
        Rounds => "rounds", "rounds.csv and .parquet: figures by round";
        Delegates => "delegates", "delegates.csv and .parquet: slots by round and delegate";
        Elections => "elections", "elections.csv and .parquet: turnover of the active delegates and the spread of their votes by round";
        Time => "time", "time.csv and .parquet: figures by time";
        Blocks => "blocks", "blocks.csv and .parquet: the blocks of the winning chain";
        Orphans => "orphans", "orphans.csv and .parquet: blocks beside it";
        Links => "links", "links.csv and .parquet: the links between nodes; not of a full mesh of more than 128";
        Report => "report", "report.html: the page with plots";
    }
    TraceFormat {
        Jsonl => "jsonl", "One JSON object a line";
        Perfetto => "perfetto", "The JSON that trace viewers read (ui.perfetto.dev, chrome://tracing): actors as tracks, messages as flows";
    }
}
