//! Counters of a benchmark's threads, and the line that reports them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use super::histogram::Histogram;
use crate::recording::Probe;

/// What an operation is, as histograms are headed; the discriminant is the index in [`Kind::ALL`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    Read,
    Write,
    Delete,
    Seek,
    Other,
}

impl Kind {
    pub const ALL: [Self; 5] = [Self::Read, Self::Write, Self::Delete, Self::Seek, Self::Other];

    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Delete => "delete",
            Self::Seek => "seek",
            Self::Other => "op",
        }
    }
}

/// Keys that were looked for.
#[derive(Clone, Copy, Default, Debug)]
pub struct Lookups {
    pub found: u64,
    pub tried: u64,
}

/// Counts of one thread, or of several.
#[derive(Debug)]
pub struct Tally {
    started: Instant,
    finished: Instant,
    /// Sum over the threads.
    busy: Duration,
    pub done: u64,
    pub bytes: u64,
    pub lookups: Option<Lookups>,
    /// By kind of operation, when they are asked for.
    histograms: Option<BTreeMap<Kind, Histogram>>,
    /// There when the course of the benchmark is recorded, until the clock stops.
    probe: Option<Probe>,
    /// End of the last operation.
    last: Instant,
}

impl Tally {
    /// Starts the clock.
    pub fn start(histogram: bool, probe: Option<Probe>) -> Self {
        let now = Instant::now();
        let histograms = histogram.then(BTreeMap::new);
        Self {
            started: now,
            finished: now,
            busy: Duration::ZERO,
            done: 0,
            bytes: 0,
            lookups: None,
            histograms,
            probe,
            last: now,
        }
    }

    /// Counts an operation that has just ended.
    pub fn finished_op(&mut self, kind: Kind) {
        self.done += 1;
        // The clock is read only where somebody wants to know.
        if self.histograms.is_none() && self.probe.is_none() {
            return;
        }
        let now = Instant::now();
        let time = now.duration_since(self.last);
        self.last = now;
        if let Some(histograms) = &mut self.histograms {
            histograms.entry(kind).or_default().add(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
        }
        if let Some(probe) = &mut self.probe {
            probe.record(kind as usize, time);
        }
    }

    /// Counts a key that was looked for.
    pub fn looked_up(&mut self, found: bool) {
        let lookups = self.lookups.get_or_insert_default();
        lookups.tried += 1;
        lookups.found += u64::from(found);
    }

    /// Stops the clock.
    pub fn stop(&mut self) {
        self.finished = Instant::now();
        self.busy = self.finished - self.started;
        self.probe = None;
    }

    /// Adds what another thread has done.
    pub fn merge(&mut self, other: Self) {
        self.started = self.started.min(other.started);
        self.finished = self.finished.max(other.finished);
        self.busy += other.busy;
        self.done += other.done;
        self.bytes += other.bytes;
        if let Some(other) = other.lookups {
            let lookups = self.lookups.get_or_insert_default();
            *lookups = Lookups { found: lookups.found + other.found, tried: lookups.tried + other.tried };
        }
        if let (Some(histograms), Some(others)) = (&mut self.histograms, other.histograms) {
            others.into_iter().for_each(|(kind, other)| histograms.entry(kind).or_default().merge(&other));
        }
    }

    /// Seconds from the first thread's start to the last one's end, above 0.
    pub fn seconds(&self) -> f64 {
        (self.finished - self.started).as_secs_f64().max(1e-9)
    }

    /// The line of benchmark `name`, then the histograms; as `db_bench` prints them. `note` ends the line.
    pub fn report(&self, name: &str, note: Option<&str>) -> String {
        let elapsed = self.seconds();
        let done = self.done.max(1);
        let (micros, rate) = (self.busy.as_secs_f64() * 1e6 / done as f64, done as f64 / elapsed);
        let mut extra = String::new();
        if self.bytes > 0 {
            extra = format!(" {:6.1} MB/s", self.bytes as f64 / 1_048_576.0 / elapsed);
        }
        if let Some(Lookups { found, tried }) = self.lookups {
            // db_bench ends this message with a line of its own.
            let _ = writeln!(extra, " ({found} of {tried} found)");
        }
        note.into_iter().for_each(|note| extra.extend([" ", note]));
        let mut text = format!(
            "{name:<12} : {micros:11.3} micros/op {} ops/sec {elapsed:.3} seconds {done} operations;{extra}\n",
            rate as u64
        );
        for (kind, histogram) in self.histograms.iter().flatten() {
            let _ = writeln!(text, "Microseconds per {}:\n{histogram}", kind.name());
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(millis: u64, done: u64, bytes: u64) -> Tally {
        let mut tally = Tally::start(false, None);
        tally.finished = tally.started + Duration::from_millis(millis);
        tally.busy = Duration::from_millis(millis);
        (tally.done, tally.bytes) = (done, bytes);
        tally
    }

    #[test]
    fn lines_are_those_of_db_bench() {
        let line = tally(4567, 1_000_000, 116_000_000).report("fillrandom", None);
        let expected = "fillrandom   :       4.567 micros/op 218962 ops/sec 4.567 seconds 1000000 operations;   24.2 MB/s\n";
        assert_eq!(line, expected);
        let line = tally(1000, 1000, 0).report("deleterandom", None);
        assert_eq!(
            line,
            "deleterandom :    1000.000 micros/op 1000 ops/sec 1.000 seconds 1000 operations;\n"
        );
        let line = tally(1000, 1000, 0).report("fillsync", Some("(1 ops)"));
        assert!(line.ends_with(" 1000 operations; (1 ops)\n"), "{line}");
    }

    #[test]
    fn threads_add_up_and_the_longest_span_counts() {
        let (mut one, mut other) = (tally(1000, 10, 0), tally(2000, 10, 0));
        other.started = one.started;
        other.finished = one.started + Duration::from_secs(2);
        one.looked_up(true);
        other.looked_up(false);
        one.merge(other);
        let line = one.report("readrandom", None);
        let expected =
            "readrandom   :  150000.000 micros/op 10 ops/sec 2.000 seconds 20 operations; (1 of 2 found)\n\n";
        assert_eq!(line, expected);
    }
}
