//! Costs: what work takes on this machine. No other module knows prices.
//!
//! A price is the time that an amount of work takes, in nanoseconds. It depends on the machine. A choice (how large a
//! part, how many times, for how long) does not depend on it, and stands beside its decision. `docs/design/costs.md`
//! lists both. Decisions compare works of different kinds, such as seeks and compactions. So they ask [`Costs`] for
//! times or, in [`Costs::compaction_bytes`] alone, for the bytes that could be compacted meanwhile.
//!
//! [`Costs::TUNED`] has the prices of the machine that the policies were tuned on; tests and virtual time use it. A
//! running store has [`Measured`] prices, which start from these and stay within [`Measured::BOUND`] times them.

mod measured;

pub use measured::Measured;

/// The time of one byte of compaction on the machine that the other prices were tuned on, in nanoseconds: 525 bytes in
/// a microsecond (`docs/design/costs.md`).
const TUNED_BYTE: f64 = 1000.0 / 525.0;

/// Reads that a scan waits for in each run. A choice: it counts what scans do. A scan often reads two blocks of a run,
/// and each is missed, checked and let go.
const READS_PER_SEEK: f64 = 2.0;

/// One seek is worth at most this many bytes of compaction. A choice: LevelDB's estimate of a seek on a disk
/// (`db/version_set.cc`: `allowed_seeks`). With this bound, a disk that is slow for a while does not make everything
/// due.
const SEEK_BYTES_MAX: f64 = (16 << 10) as f64;

/// Barriers that a compaction waits for, whatever it writes: of its pack and of the manifest.
const BARRIERS_PER_JOB: f64 = 2.0;

/// Prices of a machine. Each is a time in nanoseconds.
///
/// The first ones are of the processor and its memory, the last ones of the device, [`Costs::device`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Costs {
    /// To compact one byte of tables: to read it, merge it and write it, without barriers. Measured from compactions.
    pub compacted_byte: f64,
    /// What one more run adds to a scan whose blocks are cached. Tuned with scans of 50 rows; follows the processor.
    pub seek_cached: f64,
    /// What one more run adds to a lookup: to find the table and to ask its filter. Tuned with lookups of absent keys;
    /// follows the processor.
    pub filter_probe: f64,
    /// Time of the processor that a user takes for one block. An estimate of lookups and scans together; follows the
    /// processor.
    pub asked_block: f64,
    /// The same for one byte that a user writes. An estimate of writes of a kilobyte; follows the processor.
    pub written_byte: f64,
    /// A read that takes less came from the operating system's memory, where compactions are not in the way. 16 times
    /// what such a read takes; follows the processor.
    pub memory_read_max: f64,
    /// The device that holds the tables.
    pub device: DeviceCosts,
}

/// Prices of a device. Each is a time in nanoseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DeviceCosts {
    /// To read one block that is not in the block cache, from the operating system's memory or from the disk. Measured
    /// from users' reads.
    pub block_read: f64,
    /// To make a few bytes durable. Measured from edits of the manifest.
    pub barrier: f64,
}

impl Costs {
    /// The prices of the machine that the policies were tuned on.
    pub const TUNED: Self = Self {
        compacted_byte: TUNED_BYTE,
        // 0.7 us.
        seek_cached: 384.0 * TUNED_BYTE,
        // 30 ns.
        filter_probe: 16.0 * TUNED_BYTE,
        asked_block: 10_000.0,
        written_byte: 1e6 / (100 << 10) as f64,
        memory_read_max: 30_000.0,
        device: DeviceCosts {
            // From the operating system's memory.
            block_read: 1_900.0,
            // 1 ms: a job costs as much as a mebibyte of compaction.
            barrier: (1 << 19) as f64 * TUNED_BYTE,
        },
    };

    /// These on a processor that takes `times` as long.
    #[must_use]
    pub fn with_processor(self, times: f64) -> Self {
        Self {
            seek_cached: self.seek_cached * times,
            filter_probe: self.filter_probe * times,
            asked_block: self.asked_block * times,
            written_byte: self.written_byte * times,
            memory_read_max: self.memory_read_max * times,
            ..self
        }
    }

    /// Compactions of `bytes` together, in `jobs` jobs.
    #[must_use]
    pub fn compaction(&self, bytes: u64, jobs: u64) -> f64 {
        bytes as f64 * self.compacted_byte + jobs as f64 * self.job()
    }

    /// The barriers of a compaction, which it costs however small it is.
    #[must_use]
    pub fn job(&self) -> f64 {
        BARRIERS_PER_JOB * self.device.barrier
    }

    /// One seek in one run. A share of `cached` of the blocks is in the cache; the others take `block_read` each, such
    /// as [`DeviceCosts::block_read`]. At most what [`SEEK_BYTES_MAX`] are worth.
    #[must_use]
    pub fn seek(&self, cached: f64, block_read: f64) -> f64 {
        let reads_max = (SEEK_BYTES_MAX * self.compacted_byte - self.seek_cached).max(0.0);
        self.seek_cached + (1.0 - cached) * (READS_PER_SEEK * block_read).min(reads_max)
    }

    /// Bytes that could be compacted in `nanos` nanoseconds. The only place that converts the one into the other.
    #[must_use]
    pub fn compaction_bytes(&self, nanos: f64) -> u64 {
        // A cast saturates.
        (nanos / self.compacted_byte).round() as u64
    }

    /// [`Costs::job`] in bytes of compaction.
    #[must_use]
    pub fn job_bytes(&self) -> u64 {
        self.compaction_bytes(self.job())
    }

    /// Bytes that could have been compacted in the time of `seeks`, when blocks were cached and read as `asked` tells.
    /// The reads of that time have their own measured time, so the price of the device is not used.
    #[must_use]
    pub fn seeks_worth(&self, seeks: u64, asked: &BlocksAsked) -> u64 {
        let BlocksAsked { cached, read, read_nanos } = *asked;
        let asked = cached as f64 + read as f64;
        let cached = if asked > 0.0 { cached as f64 / asked } else { 1.0 };
        let block_read = read_nanos as f64 / read.max(1) as f64;
        self.compaction_bytes(seeks as f64 * self.seek(cached, block_read))
    }

    /// Bytes that could have been compacted in the time of `probes` of filters.
    #[must_use]
    pub fn filter_probes_worth(&self, probes: u64) -> u64 {
        self.compaction_bytes(probes as f64 * self.filter_probe)
    }
}

impl Default for Costs {
    fn default() -> Self {
        Self::TUNED
    }
}

/// Blocks that were asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct BlocksAsked {
    /// Number of those that were in the cache.
    pub cached: u64,
    /// Number of those that had to be read.
    pub read: u64,
    /// Time that reading took, in nanoseconds.
    pub read_nanos: u64,
}

impl BlocksAsked {
    /// Those since `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            cached: self.cached.saturating_sub(before.cached),
            read: self.read.saturating_sub(before.read),
            read_nanos: self.read_nanos.saturating_sub(before.read_nanos),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeks_are_worth_what_their_blocks_cost() {
        let asked = |cached, read, micros: u64| BlocksAsked { cached, read, read_nanos: 1000 * micros };
        let worth = |seeks, asked| Costs::TUNED.seeks_worth(seeks, &asked);
        assert_eq!(worth(256, BlocksAsked::default()), 256 * 384);
        assert_eq!(worth(256, asked(1000, 0, 0)), 256 * 384);
        let (in_memory, on_disk) = (asked(0, 1000, 2000), asked(0, 1000, 92_000));
        assert_eq!(worth(256, in_memory), 256 * (384 + 2 * 2 * 525));
        assert_eq!(worth(256, on_disk), 256 * (16 << 10));
        assert_eq!(worth(2, asked(7, 7, 7 * 92)), 384 + (16 << 10));
        assert_eq!(worth(u64::MAX, on_disk), u64::MAX);
        let later = asked(9, 8, 7).since(&asked(1, 2, 3));
        assert_eq!((later.cached, later.read, later.read_nanos), (8, 6, 4000));
    }

    #[test]
    fn tuned_prices_are_whole_bytes_of_compaction() {
        assert_eq!(Costs::TUNED.job_bytes(), 1 << 20);
        assert_eq!(Costs::TUNED.filter_probes_worth(1021), 1021 * 16);
        assert_eq!(Costs::TUNED.compaction_bytes(Costs::TUNED.compaction(3 << 20, 1)), 4 << 20);
        assert_eq!(Costs::TUNED.compaction_bytes(Costs::TUNED.seek(1.0, 0.0)), 384);
    }

    #[test]
    fn what_a_seek_is_worth_does_not_depend_on_how_fast_the_whole_machine_is() {
        for times in [0.1, 10.0] {
            let tuned = Costs::TUNED;
            let costs = Costs { compacted_byte: times * tuned.compacted_byte, ..tuned.with_processor(times) };
            let asked = BlocksAsked { cached: 1000, read: 0, read_nanos: 0 };
            assert_eq!(costs.seeks_worth(256, &asked), tuned.seeks_worth(256, &asked));
            assert_eq!(costs.filter_probes_worth(1021), tuned.filter_probes_worth(1021));
        }
    }

    #[test]
    fn a_seek_costs_more_the_less_is_cached() {
        let tuned = Costs::TUNED;
        let [cached, half, none] = [1.0, 0.5, 0.0].map(|share| tuned.seek(share, tuned.device.block_read));
        assert!((none - cached - 2.0 * tuned.device.block_read).abs() < 1e-6);
        assert!((half - (cached + none) / 2.0).abs() < 1e-6);
    }
}
