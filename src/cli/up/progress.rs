//! The progress of work at the start that may take long: a bar on a terminal, elsewhere a line at each tenth.

use crate::{cli::output::aside, protocol::Height};
use indicatif::{ProgressBar, ProgressStyle};

/// The progress of some work. The bar is gone when it is dropped.
pub struct Progress {
    total: u64,
    /// Less work than this prints no lines: it takes a few seconds at most.
    long: u64,
    /// Printed so far.
    tenths: u64,
    bar: ProgressBar,
}

impl Progress {
    /// Work of so many units, shown as a bar by a template of `indicatif`.
    pub fn new(template: &str, total: u64, long: u64) -> Self {
        let style = ProgressStyle::with_template(template).expect("the template is fixed");
        Self { total, long, tenths: 0, bar: ProgressBar::new(total).with_style(style) }
    }

    /// So many units are done, up to a block. `line` makes the line from the percentage.
    pub fn tell(&mut self, done: u64, height: Height, line: impl FnOnce(u64) -> String) {
        self.bar.set_message(format!("block {height}"));
        self.bar.set_position(done);
        let tenths = (done * 10).checked_div(self.total).unwrap_or_default().min(10);
        if self.bar.is_hidden() && self.total >= self.long && tenths > self.tenths {
            self.tenths = tenths;
            aside(&format!("dposlab: {}, block {height}", line(tenths * 10)));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
