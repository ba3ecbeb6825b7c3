//! Measures the prices of this machine, so that decisions go by them.
//!
//! Three things are counted anyway: compactions and the time that they worked; reads of blocks; and edits of the
//! manifest, each of which is a small write and a sync. Whenever a job ends, what came since the last time goes into
//! [`Measured`], which has the arithmetic.
//!
//! The processor is measured once, when the first job ends, by searches in a sorted array. Seeks spend their time
//! with such searches. A background thread does it (`docs/design/costs.md` has its rounds).
//!
//! Every time comes from the clock of `env`. A simulated clock does not move while a thread computes, so in
//! simulations the processor counts as the tuned one. The lock is a leaf: nothing is called while it is held.

use std::hint::black_box;
use std::time::Duration;

use crate::env::Env;
use crate::env::sync::OrderedMutex;
use crate::policy::{Costs, Measured};

/// Keys of the array that is searched: 64 KiB, which is in the processor's cache.
const KEYS: usize = 4096;

/// Searches in a round.
const SEARCHES: u64 = 512;

/// Rounds: the quickest counts, for in others the thread may have lost the processor.
const ROUNDS: usize = 8;

/// What a search takes where the prices were tuned (`docs/design/costs.md`: processor), in nanoseconds.
const TUNED_SEARCH_NANOS: f64 = 50.0;

/// What has been measured of the machine.
#[derive(Debug, Default)]
pub(in crate::engine) struct MeasuredCosts(OrderedMutex<State>);

#[derive(Debug, Default)]
struct State {
    measured: Measured,
    /// Whether the processor has been measured.
    has_processor: bool,
    /// Reads of blocks and nanoseconds that they took, as they were seen last.
    reads: (u64, u64),
}

impl MeasuredCosts {
    /// The prices by now.
    pub(in crate::engine) fn costs(&self) -> Costs {
        self.0.lock().measured.costs()
    }

    /// A compaction of `bytes` has worked for `time`.
    pub(in crate::engine) fn compacted(&self, bytes: u64, time: Duration) {
        self.0.lock().measured.compacted(bytes, time);
    }

    /// A few bytes have become durable in `time`.
    pub(in crate::engine) fn synced(&self, time: Duration) {
        self.0.lock().measured.synced(time);
    }

    /// Takes the number of all reads of blocks since the store was opened, and the nanoseconds that they took
    /// together.
    pub(in crate::engine) fn read_upto(&self, reads: (u64, u64)) {
        let mut state = self.0.lock();
        let before = std::mem::replace(&mut state.reads, reads);
        state.measured.read(reads.0.saturating_sub(before.0), reads.1.saturating_sub(before.1));
    }

    /// Measures the processor, unless that has been done.
    pub(in crate::engine) fn measure_processor(&self, env: &dyn Env) {
        if !std::mem::replace(&mut self.0.lock().has_processor, true)
            && let Some(nanos) = search_nanos(env)
        {
            self.0.lock().measured.processor(nanos / TUNED_SEARCH_NANOS);
        }
    }
}

/// What one search takes on this processor, in nanoseconds; nothing where the clock stands still meanwhile.
fn search_nanos(env: &dyn Env) -> Option<f64> {
    let keys: Vec<[u64; 2]> = (0..KEYS as u64).map(|n| key(n << 40)).collect();
    let mut place = 1_u64;
    let mut round = || {
        let started = env.now();
        for _ in 0..SEARCHES {
            // A generator of Knuth's (MMIX): the next key cannot be guessed.
            place = place.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            black_box(keys.partition_point(|other| *other <= key(place >> 12)));
        }
        env.now().saturating_sub(started)
    };
    let rounds: Vec<Duration> = (0..ROUNDS).map(|_| round()).collect();
    let quickest = rounds.into_iter().min().filter(|time| !time.is_zero())?;
    Some(quickest.as_nanos() as f64 / SEARCHES as f64)
}

/// A key of 16 bytes in the order of `n`.
fn key(n: u64) -> [u64; 2] {
    [n, 0]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::simulated::{SimConfig, SimEnv};

    #[test]
    fn a_simulated_clock_tells_nothing_of_the_processor() {
        let (env, measured) = (SimEnv::new(SimConfig::default()), MeasuredCosts::default());
        measured.measure_processor(&*env);
        assert_eq!(search_nanos(&*env), None);
        assert_eq!(measured.costs(), Costs::TUNED);
    }

    #[test]
    fn reads_count_once() {
        let measured = MeasuredCosts::default();
        (0..50).for_each(|_| measured.read_upto((1000, 1000 * 90_000)));
        let once = measured.costs().device.block_read;
        measured.read_upto((1_000_000, 1_000_000 * 90_000));
        let twice = measured.costs().device.block_read;
        assert!(Costs::TUNED.device.block_read < once && once < twice && twice < 90_001.0, "{once} {twice}");
    }
}
