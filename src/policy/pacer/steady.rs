//! The default pace: background work takes what clients leave of processor and disk, unless writers would soon be slowed.
//!
//! * **Writers** have the governor's limits.
//! * **Processor.** Compactions and flushes together leave one processor to clients. So a further compaction starts only
//!   where there is another one for it, and where there is none a compaction pauses while a memtable is flushed. Jobs that
//!   nothing presses stay off that processor, and have a small share of the others.
//! * **Disk.** While readers wait for the disk, a compaction works only a share of its time. The share grows as the moment
//!   comes near at which writers would be slowed. (ScyllaDB's controllers let shares grow with the backlog, too.)
//!
//! None of it is done once writers are held up, or will be within seconds at their present rate.

use super::{Admission, Budget, Deferral, GovernorConfig};
use crate::policy::load::{JobClass, LoadState, UserLoad};

/// Compactions take all of the disk that they can get, and readers wait behind them (`docs/benchmarks/choices.md`,
/// "Level 0 and compactions"). This is the share of its time that one works while writers are far from being slowed.
/// (Standing still would serve readers only for a while: what is not compacted costs them, too.)
const COMPACTION_SHARE_MIN: f64 = 0.1;

/// What there is beside the limits for writers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SteadyConfig {
    /// Limits for writers.
    pub limits: GovernorConfig,
    /// Whether compactions leave the disk to readers.
    pub yield_disk: bool,
    /// Whether background work leaves a processor to clients.
    pub yield_processor: bool,
}

impl SteadyConfig {
    pub(super) fn admit(&self, load: &LoadState, class: JobClass) -> Admission {
        let is_last = load.running.all() < background_processors(load);
        // What users did in the last milliseconds is not known here: a job starts for longer than that.
        if is_last
            || !self.yield_processor
            || class == JobClass::Manual
            || self.limits.hurry(load, &load.users) >= 1.0
        {
            Admission::Run
        } else {
            Admission::Defer(Deferral::Processors)
        }
    }

    pub(super) fn budget(&self, load: &LoadState, users: &UserLoad) -> Budget {
        let waits = self.yield_disk && users.waits_for_disk(&load.costs);
        // Debt hurries no compaction where nobody writes.
        let share = COMPACTION_SHARE_MIN + (1.0 - COMPACTION_SHARE_MIN) * self.limits.hurry(load, users);
        let is_flush_in_need = load.is_flushing && load.running.all() >= background_processors(load);
        Budget {
            share: if waits { share } else { 1.0 },
            is_suspended: self.yield_processor && is_flush_in_need,
            is_urgent: !self.yield_processor,
            ..Budget::FREE
        }
    }
}

/// Processors that background work may take.
fn background_processors(load: &LoadState) -> u64 {
    load.processors.saturating_sub(1).max(1)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::policy::config::PolicyConfig;
    use crate::policy::load::RunningJobs;
    use crate::policy::pacer::Pacer;

    fn steady() -> SteadyConfig {
        let Pacer::Governor(limits) = PolicyConfig::leveldb().pacer else { panic!("LevelDB's") };
        SteadyConfig { limits, yield_disk: true, yield_processor: true }
    }

    fn load(processors: u64, compactions: u64, is_flushing: bool) -> LoadState {
        let running = RunningJobs([0, 0, compactions, 0, 0, 0]);
        LoadState { processors, running, is_flushing, active_bytes_max: 1 << 20, ..LoadState::default() }
    }

    #[test]
    fn background_work_leaves_a_processor_to_clients() {
        let may_start = |load: &LoadState| steady().admit(load, JobClass::Deep) == Admission::Run;
        assert!(may_start(&load(1, 0, false)) && !may_start(&load(1, 1, false)));
        assert!(may_start(&load(2, 0, false)) && !may_start(&load(2, 1, false)));
        assert!(may_start(&load(4, 2, false)) && !may_start(&load(4, 3, false)));
        let waits = |load: &LoadState| steady().budget(load, &UserLoad::default()).is_suspended;
        assert!(!waits(&load(2, 1, false)) && waits(&load(2, 1, true)) && waits(&load(1, 1, true)));
        assert!(!waits(&load(4, 2, true)) && waits(&load(4, 3, true)));
    }

    #[test]
    fn a_further_job_starts_where_writers_would_be_slowed_within_seconds() {
        let starts = |seconds: u64| {
            let period = Duration::from_secs(1);
            // Level 0 has room for eight runs of a mebibyte.
            let users = UserLoad { period, written_bytes: (8 << 20) / seconds, ..UserLoad::default() };
            // Slowed writers would get no more than the floor.
            let load = LoadState { users, compaction_bytes_per_second: 1, ..load(2, 1, false) };
            steady().admit(&load, JobClass::Level0) == Admission::Run
        };
        assert!(starts(1) && starts(4) && !starts(6) && !starts(20));
    }

    #[test]
    fn writers_who_get_more_than_they_want_hurry_nobody() {
        let period = Duration::from_secs(1);
        let is_free = |l0_runs, written_bytes| {
            let users = UserLoad { period, written_bytes, ..UserLoad::default() };
            let load =
                LoadState { l0_runs, users, compaction_bytes_per_second: 64 << 20, ..load(2, 1, true) };
            Pacer::Steady(steady()).budget(&load, &users, JobClass::Deep) == Budget::FREE
        };
        // A quarter of the way from 8 runs to 12, writers get 64 to the power of three quarters: 22 MiB/s.
        assert!(!is_free(9, 10 << 20) && is_free(9, 12 << 20));
        assert!(!is_free(11, 1 << 20) && is_free(11, 2 << 20));
    }

    #[test]
    fn nothing_is_held_back_where_writers_are_held_up() {
        let pacer = Pacer::Steady(steady());
        let writing = UserLoad { written_bytes: 1, ..UserLoad::default() };
        for pressed in [
            LoadState { l0_runs: 12, users: writing, ..load(2, 1, true) },
            LoadState { waiting_writers: 1, ..load(2, 1, true) },
            LoadState { is_awaited: true, ..load(2, 1, true) },
        ] {
            assert_eq!(pacer.budget(&pressed, &UserLoad::default(), JobClass::Deep), Budget::FREE);
        }
    }
}
