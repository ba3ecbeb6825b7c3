//! Measured prices: what a store has learnt of its machine while it runs.
//!
//! Each is a mean of what was seen lately. It starts at the tuned price, as if so much work had been seen before. So
//! one odd measurement changes little, and many change the price. A price stays within [`Measured::BOUND`] times the
//! tuned one, so a wild measurement, or a clock that stands still, does no harm.
//!
//! A job that waited for the processor, or behind others for the disk, took longer than it cost. Nothing tells how
//! long it waited. So a measurement that took longer than expected counts for less than others ([`SLOW_PARTS`]).
//!
//! This is plain arithmetic. `engine/shared/costs.rs` takes the measurements.

use std::time::Duration;

use super::Costs;

/// A smaller compaction is mostly barriers, and says nothing about the price of a byte.
const COMPACTED_BYTES_MIN: u64 = 4 << 20;

/// The tuned price counts as this much work, in bytes of compaction: some jobs. At most four times as much is kept of
/// what is measured.
const COMPACTED_BYTES_PRIOR: f64 = (64 << 20) as f64;

/// The same for reads of blocks.
const READS_PRIOR: f64 = 4096.0;

/// The same for barriers.
const BARRIERS_PRIOR: f64 = 16.0;

/// Divisor: a measurement that took longer than expected counts for this part of its amount.
const SLOW_PARTS: f64 = 4.0;

/// Processors that differ by a smaller factor count as the same: a clock changes by as much under load.
const SAME_PROCESSOR: f64 = 1.5;

/// The mean price of some kind of work.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Mean {
    amount: f64,
    nanos: f64,
    /// No more of `amount` is kept.
    amount_max: f64,
}

impl Mean {
    fn new(price: f64, prior: f64) -> Self {
        Self { amount: prior, nanos: prior * price, amount_max: 4.0 * prior }
    }

    fn price(&self) -> f64 {
        self.nanos / self.amount
    }

    /// `amount` has taken `nanos`.
    fn add(&mut self, amount: f64, nanos: f64) {
        // A single measurement weighs no more than all that is kept.
        let weight = (self.amount_max / amount).min(1.0);
        self.amount += amount * weight;
        self.nanos += nanos * weight;
        let kept = (self.amount_max / self.amount).min(1.0);
        self.amount *= kept;
        self.nanos *= kept;
    }

    /// The same, where a part of the time may have been spent waiting.
    fn add_busy(&mut self, amount: f64, nanos: f64) {
        let parts = if nanos > amount * self.price() { SLOW_PARTS } else { 1.0 };
        self.add(amount / parts, nanos / parts);
    }
}

/// What has been measured of a machine.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Measured {
    /// The processor takes this many times as long as the one that the prices were tuned on.
    processor: f64,
    compacted_byte: Mean,
    block_read: Mean,
    barrier: Mean,
}

impl Default for Measured {
    fn default() -> Self {
        let tuned = Costs::TUNED;
        Self {
            processor: 1.0,
            compacted_byte: Mean::new(tuned.compacted_byte, COMPACTED_BYTES_PRIOR),
            block_read: Mean::new(tuned.device.block_read, READS_PRIOR),
            barrier: Mean::new(tuned.device.barrier, BARRIERS_PRIOR),
        }
    }
}

impl Measured {
    /// A measured price is at most this many times the tuned one, and at least the tuned one divided by it.
    pub const BOUND: f64 = 32.0;

    /// The processor takes `times` as long as the one that the prices were tuned on.
    pub fn processor(&mut self, times: f64) {
        let is_same = (1.0 / SAME_PROCESSOR..=SAME_PROCESSOR).contains(&times) || !times.is_finite();
        self.processor = if is_same { 1.0 } else { times };
    }

    /// A compaction of `bytes` has worked for `time`.
    pub fn compacted(&mut self, bytes: u64, time: Duration) {
        let nanos = time.as_nanos() as f64;
        if bytes >= COMPACTED_BYTES_MIN && nanos > 0.0 {
            // At least half of the time counts for the bytes, whatever barriers cost at the moment.
            let barriers = self.costs().job().min(nanos / 2.0);
            self.compacted_byte.add_busy(bytes as f64, nanos - barriers);
        }
    }

    /// So many reads of blocks have taken `nanos` together.
    pub fn read(&mut self, reads: u64, nanos: u64) {
        if reads > 0 && nanos > 0 {
            self.block_read.add(reads as f64, nanos as f64);
        }
    }

    /// A few bytes have become durable in `time`.
    pub fn synced(&mut self, time: Duration) {
        if !time.is_zero() {
            self.barrier.add_busy(1.0, time.as_nanos() as f64);
        }
    }

    /// The prices by now.
    #[must_use]
    pub fn costs(&self) -> Costs {
        let bounded = |price: f64, tuned: f64| price.clamp(tuned / Self::BOUND, tuned * Self::BOUND);
        let mut costs = Costs::TUNED.with_processor(bounded(self.processor, 1.0));
        costs.compacted_byte = bounded(self.compacted_byte.price(), costs.compacted_byte);
        costs.device.block_read = bounded(self.block_read.price(), costs.device.block_read);
        costs.device.barrier = bounded(self.barrier.price(), costs.device.barrier);
        costs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// Compactions of 32 MiB each on a machine that takes `times` as long as the tuned one.
    fn after(jobs: u32, times: f64) -> f64 {
        let mut measured = Measured::default();
        for _ in 0..jobs {
            let nanos = times * Costs::TUNED.compaction(32 * MIB, 1);
            measured.synced(Duration::from_nanos((times * Costs::TUNED.device.barrier) as u64));
            measured.compacted(32 * MIB, Duration::from_nanos(nanos as u64));
        }
        measured.costs().compacted_byte / Costs::TUNED.compacted_byte
    }

    #[test]
    fn nothing_measured_is_the_tuned_machine() {
        assert_eq!(Measured::default().costs(), Costs::TUNED);
        assert!((after(100, 1.0) - 1.0).abs() < 1e-3);
    }

    #[test]
    fn one_measurement_changes_little_and_many_change_all() {
        assert!(after(1, 10.0) < 3.0 && after(1, 0.1) > 0.5);
        assert!((9.0..11.0).contains(&after(300, 10.0)), "{}", after(300, 10.0));
        assert!((0.09..0.15).contains(&after(60, 0.1)), "{}", after(60, 0.1));
    }

    #[test]
    fn wild_measurements_stay_within_bounds() {
        let mut measured = Measured::default();
        for _ in 0..1000 {
            measured.compacted(u64::MAX, Duration::from_nanos(1));
            measured.read(1, u64::MAX);
            measured.synced(Duration::MAX);
            measured.processor(f64::INFINITY);
        }
        let costs = measured.costs();
        assert_eq!(costs.compacted_byte, Costs::TUNED.compacted_byte / Measured::BOUND);
        assert_eq!(costs.device.block_read, Costs::TUNED.device.block_read * Measured::BOUND);
        assert_eq!(costs.device.barrier, Costs::TUNED.device.barrier * Measured::BOUND);
        assert_eq!(costs.seek_cached, Costs::TUNED.seek_cached);
        measured.processor(1e9);
        assert_eq!(measured.costs().seek_cached, Costs::TUNED.seek_cached * Measured::BOUND);
    }

    #[test]
    fn a_clock_that_stands_still_and_small_jobs_measure_nothing() {
        let mut measured = Measured::default();
        measured.compacted(64 * MIB, Duration::ZERO);
        measured.compacted(MIB, Duration::from_secs(9));
        measured.read(9, 0);
        measured.read(0, 9);
        measured.synced(Duration::ZERO);
        measured.processor(1.4);
        measured.processor(f64::NAN);
        assert_eq!(measured.costs(), Costs::TUNED);
    }

    #[test]
    fn jobs_that_had_to_wait_count_for_less() {
        let mut measured = Measured::default();
        for job in 0..400 {
            let nanos = Costs::TUNED.compaction(32 * MIB, 1) * if job % 2 == 0 { 1.0 } else { 4.0 };
            measured.compacted(32 * MIB, Duration::from_nanos(nanos as u64));
        }
        let times = measured.costs().compacted_byte / Costs::TUNED.compacted_byte;
        assert!(times < 2.5, "{times}: the mean is 2.5");
    }
}
