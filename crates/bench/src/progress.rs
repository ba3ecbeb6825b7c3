//! The progress of a phase on standard error, shown only on a terminal.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Steps of the bar.
const STEPS: u64 = 1000;

/// The bar of one phase: it ends at a number of operations or at a time, whichever is nearer.
pub struct Progress {
    bar: ProgressBar,
    started: Instant,
    operations: u64,
    time: Option<Duration>,
}

impl Progress {
    /// How often it is worth calling [`Progress::show`].
    pub const INTERVAL: Duration = Duration::from_millis(200);

    pub fn start(phase: &str, operations: u64, time: Option<Duration>) -> Self {
        let style = ProgressStyle::with_template("{prefix:8} {bar:30} {percent:>3} %  {msg}  {eta} left")
            .expect("invariant: the template is well formed");
        let bar = ProgressBar::new(STEPS).with_style(style).with_prefix(phase.to_owned());
        Self { bar, started: Instant::now(), operations, time }
    }

    /// Shows that `done` operations are done.
    pub fn show(&self, done: u64) {
        let elapsed = self.started.elapsed();
        let by_operations = done as f64 / self.operations.max(1) as f64;
        let by_time = self.time.map_or(0.0, |time| elapsed.as_secs_f64() / time.as_secs_f64());
        self.bar.set_position((by_operations.max(by_time).min(1.0) * STEPS as f64) as u64);
        self.bar.set_message(format!("{done} done, {:.0}/s", done as f64 / elapsed.as_secs_f64()));
    }

    pub fn finish(self) {
        self.bar.finish_and_clear();
    }
}
