//! The progress of work at the start that may take long: a bar on a terminal, elsewhere a line at each tenth.

use crate::{cli::output::aside, protocol::Height};
use indicatif::{ProgressBar, ProgressStyle};

/// The progress of some work. Dropping it removes the bar.
pub(crate) struct Progress {
    total: u64,
    /// The least total for which lines are printed. Less work takes a few seconds at most.
    long: u64,
    /// The number of tenths printed so far.
    tenths: u64,
    bar: ProgressBar,
}

impl Progress {
    /// Work of `total` units, shown as a bar by a template of `indicatif`.
    pub fn new(template: &str, total: u64, long: u64) -> Self {
        let style = ProgressStyle::with_template(template).expect("the template is fixed");
        Self { total, long, tenths: 0, bar: ProgressBar::new(total).with_style(style) }
    }

    /// Reports that `done` units are done, up to a block. `line` makes the line from the percentage.
    pub fn tell(&mut self, done: u64, height: Height, line: impl FnOnce(u64) -> String) {
        self.bar.set_message(format!("block {height}"));
        self.bar.set_position(done);
        if self.bar.is_hidden()
            && let Some(percent) = self.next_line(done)
        {
            aside(&format!("dposlab: {}, block {height}", line(percent)));
        }
    }

    /// The percentage to print now, or `None` if no line is due.
    fn next_line(&mut self, done: u64) -> Option<u64> {
        let tenths = (done * 10).checked_div(self.total).unwrap_or_default().min(10);
        let is_new = self.total >= self.long && tenths > self.tenths;
        is_new.then(|| {
            self.tenths = tenths;
            tenths * 10
        })
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::Progress;

    #[test]
    fn each_tenth_is_one_line_and_short_work_is_none() {
        let lines = |total: u64, steps: &[u64]| -> Vec<u64> {
            let mut progress = Progress::new("", total, 1_000);
            steps.iter().filter_map(|done| progress.next_line(*done)).collect()
        };
        let each: Vec<u64> = (0..=1_000).collect();
        assert_eq!(lines(1_000, &each), [10, 20, 30, 40, 50, 60, 70, 80, 90, 100]);
        assert_eq!(lines(1_000, &[99, 100, 199, 450, 450, 1_000, 1_200]), [10, 40, 100]);
        assert_eq!(lines(999, &each), [0_u64; 0]);
    }
}
