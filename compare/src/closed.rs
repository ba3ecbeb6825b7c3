//! The closed loop: each load thread starts an operation when its last one is done, until the time is up.
//!
//! A thread's rate is that of its chunks alone: the clock stands while it makes the next one. The rate of a phase is the
//! sum of its threads'.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::latency::Course;
use crate::records::Format;
use crate::store::Store;
use crate::work::{CHUNK_OPERATIONS, Choice, Chunk, Effect, Maker, Part, Work};

/// Length of the time that one number of a series counts.
pub const BIN: Duration = Duration::from_millis(100);

/// Operations between two looks at the clock, where they are not timed one by one.
const STRIDE: usize = 32;

/// A phase in a closed loop.
pub struct Closed<'a> {
    pub store: &'a dyn Store,
    pub format: &'a Format,
    pub work: Work,
    pub choice: Choice,
    /// Records in the store, or to be loaded.
    pub records: u64,
    pub threads: usize,
    pub limit: Duration,
    /// At the beginning; done like everything else, but left out of the rates and latencies.
    pub warm_up: Duration,
    /// Whether every operation is timed, for latencies.
    pub timed: bool,
    /// Whether answers must be right, as they must of all but the empty engine.
    pub exact: bool,
    pub seed: u64,
    /// Place of the phase in its turn.
    pub phase: usize,
}

/// What load threads found.
#[derive(Debug)]
pub struct Findings {
    /// Operations per second, warm-up left out; not a number if a thread had no time for any.
    pub rate: f64,
    /// Rows per second, likewise.
    pub row_rate: f64,
    /// All operations, those of the warm-up too.
    pub operations: u64,
    /// What they did.
    pub effect: Effect,
    /// Records put by each thread, in the order of the threads.
    pub puts: Vec<u64>,
    /// Operations that ended in each [`BIN`] since the start.
    pub series: Vec<u64>,
    pub reads: Course,
    pub writes: Course,
}

impl Findings {
    /// Nothing so far.
    pub fn new() -> Self {
        Self {
            rate: 0.0,
            row_rate: 0.0,
            operations: 0,
            effect: Effect::default(),
            puts: Vec::new(),
            series: Vec::new(),
            reads: Course::default(),
            writes: Course::default(),
        }
    }

    /// Adds what another thread found.
    pub fn merge(&mut self, other: &Self) {
        self.rate += other.rate;
        self.row_rate += other.row_rate;
        self.operations += other.operations;
        self.effect.add(other.effect);
        self.puts.extend(&other.puts);
        self.series.resize(self.series.len().max(other.series.len()), 0);
        self.series.iter_mut().zip(&other.series).for_each(|(all, one)| *all += one);
        self.reads.merge(&other.reads);
        self.writes.merge(&other.writes);
    }

    /// Counts `operations` that ended `since_start`.
    pub fn count(&mut self, operations: u64, since_start: Duration) {
        let bin = (since_start.as_nanos() / BIN.as_nanos()) as usize;
        if self.series.len() <= bin {
            self.series.resize(bin + 1, 0);
        }
        self.series[bin] += operations;
        self.operations += operations;
    }

    /// Notes the latency of an operation that ended `since_start`.
    pub fn note(&mut self, write: bool, latency: Duration, since_start: Duration) {
        let course = if write { &mut self.writes } else { &mut self.reads };
        course.record(latency, since_start);
    }
}

/// Runs `run` for each of `threads` threads, all starting at once; what they found together.
///
/// `run` is given its thread's number and whether to go on, which turns false when another thread has failed; it must call
/// the barrier's `wait` once, before its first operation.
pub fn together(
    threads: usize,
    run: impl Fn(usize, &Barrier, &AtomicBool) -> Result<Findings> + Sync,
) -> Result<Findings> {
    let (barrier, go_on) = (Barrier::new(threads), AtomicBool::new(true));
    let outcomes: Vec<Result<Findings>> = std::thread::scope(|scope| {
        let start = |thread| {
            let (run, barrier, go_on) = (&run, &barrier, &go_on);
            scope.spawn(move || {
                let outcome = run(thread, barrier, go_on);
                if outcome.is_err() {
                    go_on.store(false, Ordering::Relaxed);
                }
                outcome
            })
        };
        let handles: Vec<_> = (0..threads).map(start).collect();
        let join = |handle: std::thread::ScopedJoinHandle<'_, Result<Findings>>| {
            handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        handles.into_iter().map(join).collect()
    });
    let mut all = Findings::new();
    for found in outcomes {
        all.merge(&found?);
    }
    Ok(all)
}

impl Closed<'_> {
    /// Runs the phase.
    ///
    /// # Errors
    /// Whatever the store reports, or a wrong answer.
    pub fn run(&self) -> Result<Findings> {
        together(self.threads, |thread, barrier, go_on| self.run_thread(thread, barrier, go_on))
    }

    fn run_thread(&self, thread: usize, barrier: &Barrier, go_on: &AtomicBool) -> Result<Findings> {
        let part = Part {
            seed: self.seed,
            phase: self.phase,
            thread,
            threads: self.threads,
            chunk_operations: CHUNK_OPERATIONS,
        };
        let mut maker = Maker::new(self.format, self.work, self.choice, self.records, part);
        let mut chunk = Chunk::default();
        let (mut found, mut meter) = (Findings::new(), Meter::default());
        maker.fill(&mut chunk);
        barrier.wait();
        let started = Instant::now();
        while chunk.len() > 0 && go_on.load(Ordering::Relaxed) && started.elapsed() < self.limit {
            self.run_chunk(&chunk, started, &mut found, &mut meter)?;
            maker.fill(&mut chunk);
        }
        std::hint::black_box(found.effect.seen);
        found.puts.push(found.effect.puts);
        let busy = meter.busy.as_secs_f64();
        found.rate = meter.operations as f64 / busy;
        found.row_rate = meter.rows as f64 / busy;
        Ok(found)
    }

    /// Runs operations of `chunk` until it, or the time, is at its end.
    fn run_chunk(
        &self,
        chunk: &Chunk,
        started: Instant,
        found: &mut Findings,
        meter: &mut Meter,
    ) -> Result<()> {
        let (mut last, mut done, mut rows) = (Instant::now(), 0, 0);
        for index in 0..chunk.len() {
            let effect = chunk.run(index, self.store, self.exact)?;
            found.effect.add(effect);
            done += 1;
            rows += effect.rows;
            if !self.timed && done % STRIDE as u64 != 0 && index + 1 < chunk.len() && !self.work.scans() {
                continue;
            }
            let now = Instant::now();
            let since_start = now - started;
            found.count(done, since_start);
            if since_start >= self.warm_up {
                meter.add(now - last, done, rows);
                if self.timed {
                    found.note(chunk.writes(index), now - last, since_start);
                }
            }
            (last, done, rows) = (now, 0, 0);
            if since_start >= self.limit {
                break;
            }
        }
        Ok(())
    }
}

/// What one thread did in the time that counts.
#[derive(Default)]
struct Meter {
    busy: Duration,
    operations: u64,
    rows: u64,
}

impl Meter {
    fn add(&mut self, busy: Duration, operations: u64, rows: u64) {
        self.busy += busy;
        self.operations += operations;
        self.rows += rows;
    }
}

#[cfg(test)]
mod tests {
    use terrace_bench::ycsb::keys::InsertOrder;

    use super::*;
    use crate::store::{Durability, Engine, Opening};

    fn empty() -> Box<dyn Store> {
        let opening = Opening { cache_bytes: 0, memtable_bytes: 0, durability: Durability::Kill };
        Engine::Empty.open(std::path::Path::new(""), &opening).unwrap()
    }

    fn load<'a>(store: &'a dyn Store, format: &'a Format, timed: bool) -> Closed<'a> {
        Closed {
            store,
            format,
            work: Work::Load,
            choice: Choice::Uniform,
            records: 10_000,
            threads: 1,
            limit: Duration::from_secs(3600),
            warm_up: Duration::ZERO,
            timed,
            exact: false,
            seed: 1,
            phase: 0,
        }
    }

    #[test]
    fn every_operation_is_counted_once() {
        let (store, format) = (empty(), Format::new(InsertOrder::Hashed, 100).unwrap());
        for timed in [false, true] {
            let found = load(&*store, &format, timed).run().unwrap();
            assert_eq!((found.operations, found.effect.puts), (10_000, 10_000));
            assert_eq!(found.series.iter().sum::<u64>(), 10_000);
            assert_eq!(
                found.writes.all().percentiles().map_or(0, |writes| writes.count),
                if timed { 10_000 } else { 0 }
            );
            assert!(found.rate > 0.0);
        }
    }

    #[test]
    fn threads_share_a_load() {
        let (store, format) = (empty(), Format::new(InsertOrder::Hashed, 100).unwrap());
        let found = Closed { threads: 3, ..load(&*store, &format, false) }.run().unwrap();
        assert_eq!((found.operations, found.puts), (10_000, vec![3334, 3333, 3333]));
    }

    #[test]
    fn warm_up_is_done_but_not_measured() {
        let (store, format) = (empty(), Format::new(InsertOrder::Hashed, 100).unwrap());
        let warm_up = Duration::from_secs(3600);
        let found = Closed { warm_up, ..load(&*store, &format, true) }.run().unwrap();
        assert!(found.operations == 10_000 && found.rate.is_nan());
        assert_eq!(found.writes.all().percentiles(), None);
    }

    #[test]
    fn wrong_answers_end_the_phase() {
        let (store, format) = (empty(), Format::new(InsertOrder::Hashed, 100).unwrap());
        let gets = Closed {
            work: Work::Gets { absent: 10 },
            threads: 2,
            exact: true,
            ..load(&*store, &format, false)
        };
        assert!(gets.run().is_err(), "it finds everything");
    }
}
