//! The progress of a command, for a program that displays it: lines of JSON on standard error.

use super::output::aside;
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of steps into which the progress of a command is divided: a line for each.
const LINES: u64 = 200;

/// Returns a bar over runs. Only a terminal shows it, until the caller clears it.
pub(crate) fn bar_of_runs(length: u64) -> ProgressBar {
    let style =
        ProgressStyle::with_template("{bar:30} {pos} of {len} runs, {eta} left").expect("the template is fixed");
    ProgressBar::new(length).with_style(style)
}

/// The form in which progress is reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// A bar, on a terminal only.
    #[default]
    Auto,
    /// A line of JSON on standard error, such as {"progress":{"done":3,"total":100}}, two hundred at most.
    Json,
}

/// The option of commands that take their time.
#[derive(Clone, Debug, Args)]
pub(crate) struct Progress {
    /// The form in which progress is reported.
    #[arg(long, value_enum, default_value_t, value_name = "FORM")]
    progress: Form,
    #[arg(skip)]
    told: LastStep,
}

/// The step that the last line reported, of [`LINES`].
#[derive(Debug)]
struct LastStep(AtomicU64);

impl Default for LastStep {
    fn default() -> Self {
        Self(AtomicU64::new(u64::MAX))
    }
}

impl Clone for LastStep {
    fn clone(&self) -> Self {
        Self(AtomicU64::new(self.0.load(Ordering::Relaxed)))
    }
}

impl Progress {
    /// Reports that `done` of `total` is done, with an object of further members, if a line is due.
    pub fn tell(&self, done: u64, total: u64, more: Value) {
        if self.progress != Form::Json {
            return;
        }
        let share = u128::from(done) * u128::from(LINES) / u128::from(total.max(1));
        let line = share as u64;
        if self.told.0.swap(line, Ordering::Relaxed) != line {
            let mut told = json!({ "done": done, "total": total });
            if let (Value::Object(told), Value::Object(more)) = (&mut told, more) {
                told.extend(more);
            }
            aside(&json!({ "progress": told }).to_string());
        }
    }
}
