//! The overwrite ratio: the share of what is written that replaces something older.
//!
//! A level 0 of new records takes no more space than its records need. A level 0 of updates takes, besides, the space
//! of what it makes obsolete. So writers are slowed earlier for updates ([`crate::policy::Layout::level0_runs`]).
//!
//! Each flush takes a sample (`jobs/overwrites.rs`).

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Keys of a flush that are asked for, at most: the first ones of tables.
pub(in crate::engine) const SAMPLES_MAX: usize = 64;

/// What has been seen counts as this many samples. So the share is about that of the last four flushes, if these have
/// 64 tables each: a level 0 of a gigabyte of data, or the newer part of one.
const SAMPLES_KEPT: f64 = 3.0 * SAMPLES_MAX as f64;

/// Keys of a flush.
#[derive(Clone, Copy, Default, Debug)]
pub(in crate::engine) struct Sample {
    pub(in crate::engine) keys: usize,
    /// Those that something older may have.
    pub(in crate::engine) overwrites: usize,
}

/// The share of a keyspace, in this opening: all until something is known.
#[derive(Debug)]
pub(in crate::engine) struct OverwriteRatio(AtomicU64);

impl Default for OverwriteRatio {
    fn default() -> Self {
        Self(AtomicU64::new(1.0_f64.to_bits()))
    }
}

impl OverwriteRatio {
    /// The share, 0 to 1.
    pub(in crate::engine) fn share(&self) -> f64 {
        f64::from_bits(self.0.load(Relaxed))
    }

    /// Counts a sample. One flush of a keyspace at a time calls this.
    pub(in crate::engine) fn count(&self, Sample { keys, overwrites }: Sample) {
        let share = (self.share() * SAMPLES_KEPT + overwrites as f64) / (SAMPLES_KEPT + keys as f64);
        self.0.store(share.clamp(0.0, 1.0).to_bits(), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_that_of_the_last_flushes() {
        let overwrite_ratio = OverwriteRatio::default();
        assert_eq!(overwrite_ratio.share(), 1.0, "nothing is known");
        let count = |overwrites, keys| overwrite_ratio.count(Sample { keys, overwrites });
        (0..4).for_each(|_| count(0, 64));
        assert!((0.25..0.4).contains(&overwrite_ratio.share()), "{}", overwrite_ratio.share());
        (0..12).for_each(|_| count(32, 64));
        assert!((overwrite_ratio.share() - 0.5).abs() < 0.02, "{}", overwrite_ratio.share());
        count(0, 0);
        count(1, 1);
        assert!((overwrite_ratio.share() - 0.5).abs() < 0.02, "a small flush tells little");
    }
}
