//! One phase on its way: its time, its latencies and what was written meanwhile.

use std::time::{Duration, Instant};

use super::result::Phase;
use super::subject::{Drain, Subject};
use crate::Result;
use crate::latency::Latency;
use crate::probe;
use crate::progress::Progress;

/// When a phase ends: after its time or its operations, whichever comes first.
#[derive(Clone, Copy)]
pub(super) struct Limit {
    pub time: Option<Duration>,
    pub operations: u64,
}

/// What has been written since a store was opened, from outside and by its own word.
#[derive(Clone, Copy)]
struct Written {
    process: Option<u64>,
    told: Option<u64>,
}

impl Written {
    fn now(store: &dyn Subject) -> Self {
        Self { process: probe::written_bytes(), told: store.told_written_bytes() }
    }
}

/// One phase on its way.
pub(super) struct Meter {
    name: &'static str,
    start_s: f64,
    limit: Limit,
    written: Written,
    started: Instant,
    shown: Instant,
    progress: Progress,
    latency: Latency,
    operations: u64,
    rows: u64,
    user_bytes: u64,
}

impl Meter {
    /// Begins now, `start_s` seconds after all began; `label` is what progress is called.
    pub(super) fn start(
        name: &'static str,
        label: &str,
        start_s: f64,
        limit: Limit,
        store: &dyn Subject,
    ) -> Self {
        let written = Written::now(store);
        let started = Instant::now();
        Self {
            name,
            start_s,
            limit,
            written,
            started,
            shown: started,
            progress: Progress::start(&format!("{label} {name}"), limit.operations, limit.time),
            latency: Latency::new(),
            operations: 0,
            rows: 0,
            user_bytes: 0,
        }
    }

    /// Whether there is another operation. There is always a first one.
    pub(super) fn goes_on(&mut self) -> bool {
        let now = Instant::now();
        if now - self.shown >= Progress::INTERVAL {
            self.shown = now;
            self.progress.show(self.operations);
        }
        let is_late = self.limit.time.is_some_and(|time| now - self.started >= time);
        self.operations == 0 || (self.operations < self.limit.operations && !is_late)
    }

    /// Operations so far.
    pub(super) fn operations(&self) -> u64 {
        self.operations
    }

    /// Times an operation, which says how many rows and bytes of keys and values it has written or read.
    pub(super) fn time(&mut self, operation: impl FnOnce() -> Result<(u64, u64)>) -> Result<()> {
        let started = Instant::now();
        let (rows, bytes) = operation()?;
        self.latency.record(started.elapsed());
        self.operations += 1;
        self.rows += rows;
        self.user_bytes += bytes;
        Ok(())
    }

    /// Ends the phase; `drain` waits until the store is at rest where its time counts.
    pub(super) fn finish(
        self,
        store: &dyn Subject,
        drain: impl FnOnce() -> Result<Option<Drain>>,
    ) -> Result<Phase> {
        let seconds = self.started.elapsed().as_secs_f64();
        self.progress.finish();
        let drained = drain()?;
        let now = Written::now(store);
        let since = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?));
        let is_write = drained.is_some();
        let over_user = |bytes: Option<u64>| {
            bytes.filter(|_| is_write).map(|bytes| bytes as f64 / self.user_bytes.max(1) as f64)
        };
        let written_bytes = since(now.process, self.written.process);
        let told_written_bytes = since(now.told, self.written.told);
        let drain_s = drained.map_or(0.0, |drain| drain.seconds);
        let per_s = |count: u64, seconds: f64| count as f64 / seconds.max(f64::MIN_POSITIVE);
        Ok(Phase {
            name: self.name.to_owned(),
            start_s: self.start_s,
            seconds,
            drain_s,
            is_cut_off: drained.is_some_and(|drain| drain.is_cut_off),
            operations: self.operations,
            rows: self.rows,
            user_bytes: self.user_bytes,
            ops_per_s: per_s(self.operations, seconds),
            drained_ops_per_s: per_s(self.operations, seconds + drain_s),
            user_bytes_per_s: per_s(self.user_bytes, seconds + drain_s),
            written_bytes,
            told_written_bytes,
            written_over_user: over_user(written_bytes),
            told_over_user: over_user(told_written_bytes),
            latency_us: self.latency.summary(),
            space_peak: None,
            space_rested: None,
        })
    }
}
