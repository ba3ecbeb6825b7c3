//! The open loop: operations arrive on time, whether or not earlier ones are done, and their latency counts from their
//! arrival.
//!
//! One thread reads and one writes. Arrivals follow a square wave: three quarters of the time at the full rate, then one
//! quarter at a fourth of it. What has not been started when twice the time is up counts as long as it has waited. What
//! arrives during the warm-up does not count.

use std::num::NonZeroU64;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::closed::{Findings, together};
use crate::records::Format;
use crate::store::Store;
use crate::work::{Choice, Chunk, Maker, Part, Work};

/// Share of the time at the full rate.
const HIGH: f64 = 0.75;

/// Rate of the rest of the time, as a share of the full one.
const LOW_RATE: f64 = 0.25;

/// Operations that are made at once: few, since those that are due wait for it.
const CHUNK_OPERATIONS: usize = 32;

/// Arrivals per second at the full rate.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Rates {
    pub reads: f64,
    pub writes: f64,
}

/// A phase in an open loop.
pub struct Open<'a> {
    pub store: &'a dyn Store,
    pub format: &'a Format,
    pub records: u64,
    /// Time of the arrivals.
    pub time: Duration,
    /// Part of the time, at its beginning, whose arrivals are not measured.
    pub warm_up: Duration,
    pub rates: Rates,
    /// Whether answers must be right.
    pub exact: bool,
    pub seed: u64,
    /// Place of the phase in its turn.
    pub phase: usize,
}

/// Arrival `index` at `rate` per second, seconds after the start, if it is within `seconds`.
fn arrival(index: u64, rate: f64, seconds: f64) -> Option<f64> {
    let high = HIGH * seconds;
    let at = index as f64 / rate;
    let at = if at < high { at } else { high + (at - high) / LOW_RATE };
    (at < seconds).then_some(at)
}

impl Open<'_> {
    /// Runs the phase.
    ///
    /// # Errors
    /// Whatever the store reports, or a wrong answer.
    pub fn run(&self) -> Result<Findings> {
        together(2, |thread, barrier, go_on| self.run_thread(thread, barrier, go_on))
    }

    fn run_thread(&self, thread: usize, barrier: &Barrier, go_on: &AtomicBool) -> Result<Findings> {
        let (work, rate) = if thread == 0 {
            (Work::Gets { absent: 0 }, self.rates.reads)
        } else {
            (Work::Mix { updates: 100, modifies: 0, inserts: 0 }, self.rates.writes)
        };
        // Or else sleeping takes 50 microseconds longer than asked.
        rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?;
        let part = Part {
            seed: self.seed,
            phase: self.phase,
            thread,
            threads: 2,
            chunk_operations: CHUNK_OPERATIONS,
        };
        let mut maker = Maker::new(self.format, work, Choice::Zipfian, self.records, part);
        let (mut chunk, mut next) = (Chunk::default(), 0);
        let mut found = Findings::new();
        maker.fill(&mut chunk);
        barrier.wait();
        let started = Instant::now();
        let mut arrivals = (0..)
            .map_while(|index| arrival(index, rate, self.time.as_secs_f64()))
            .map(Duration::from_secs_f64);
        for due in arrivals.by_ref() {
            if next == chunk.len() {
                maker.fill(&mut chunk);
                next = 0;
            }
            if let Some(early) = due.checked_sub(started.elapsed()) {
                std::thread::sleep(early);
            }
            found.effect.add(chunk.run(next, self.store, self.exact)?);
            let ended = started.elapsed();
            if due >= self.warm_up {
                found.note(thread == 1, ended - due, ended);
            }
            found.count(1, ended);
            next += 1;
            if ended > 2 * self.time || !go_on.load(Ordering::Relaxed) {
                break;
            }
        }
        let ended = started.elapsed();
        let measured = arrivals.filter(|&due| due >= self.warm_up);
        measured.for_each(|due| found.note(thread == 1, ended - due, ended));
        found.rate = found.operations as f64 / ended.as_secs_f64();
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use terrace_bench::ycsb::keys::InsertOrder;

    use super::*;
    use crate::store::{Durability, Engine, Opening};

    #[test]
    fn arrivals_follow_the_square_wave() {
        let all: Vec<f64> = (0..).map_while(|index| arrival(index, 100.0, 4.0)).collect();
        assert_eq!(all.iter().filter(|&&at| at < 3.0).count(), 300);
        assert_eq!(all.len(), 325);
        assert!(all.is_sorted());
    }

    #[test]
    fn every_arrival_after_the_warm_up_has_a_latency() {
        let format = Format::new(InsertOrder::Hashed, 100).unwrap();
        let opening = Opening { cache_bytes: 0, memtable_bytes: 0, durability: Durability::Kill };
        let store = Engine::Empty.open(std::path::Path::new(""), &opening).unwrap();
        let phase = Open {
            store: &*store,
            format: &format,
            records: 1000,
            time: Duration::from_millis(100),
            warm_up: Duration::from_millis(20),
            rates: Rates { reads: 10_000.0, writes: 1000.0 },
            exact: false,
            seed: 1,
            phase: 0,
        };
        let found = phase.run().unwrap();
        let count = |rate: f64| {
            let all = (0..).map_while(|index| arrival(index, rate, 0.1)).map(Duration::from_secs_f64);
            all.filter(|&due| due >= phase.warm_up).count() as u64
        };
        assert_eq!(found.reads.all().percentiles().unwrap().count, count(10_000.0));
        assert_eq!(found.writes.all().percentiles().unwrap().count, count(1000.0));
    }
}
