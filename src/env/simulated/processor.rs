//! A simulated processor: how long the work of flushes and compactions takes in virtual time.
//!
//! Every thread has a processor of its own: threads do not wait for each other's work.

use std::time::Duration;

use crate::env::Work;

/// What work takes, on one processor.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ProcessorModel {
    /// For each record that a flush or compaction reads, in nanoseconds.
    pub record_nanos: u64,
    /// For each KiB of keys and values that it reads, in nanoseconds.
    pub kibibyte_nanos: u64,
}

impl ProcessorModel {
    /// A processor whose work takes no time.
    #[must_use]
    pub const fn instant() -> Self {
        Self { record_nanos: 0, kibibyte_nanos: 0 }
    }

    /// What `work` takes.
    #[must_use]
    pub fn time(&self, work: Work) -> Duration {
        let records = work.records.saturating_mul(self.record_nanos);
        Duration::from_nanos(records.saturating_add(work.bytes.saturating_mul(self.kibibyte_nanos) / 1024))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_time_by_records_and_by_bytes() {
        let model = ProcessorModel { record_nanos: 100, kibibyte_nanos: 1000 };
        assert_eq!(model.time(Work { records: 10, bytes: 2048 }), Duration::from_micros(3));
        assert_eq!(ProcessorModel::instant().time(Work { records: 10, bytes: 2048 }), Duration::ZERO);
    }
}
