//! bLSM's pace: a spring for writers, and gears between the levels, in bytes.
//!
//! Sears and Ramakrishnan, "bLSM: A General Purpose Log Structured Merge Tree", section 4, and the authors' `mergeManager.cpp`.
//! There a merge reads a whole component, and its progress is what it has read of it. Here a compaction takes a part of a
//! level, so progress is counted over a round of each level:
//!
//! * A *round* begins with what the level holds. It ends when as many bytes have come in from above as the level's limit. By then
//!   as many are to have left it as it held at the beginning. So while bytes come in, the level *owes* the next one that part of
//!   what it held. A level that began over its limit is at its limit after a round.
//! * A compaction out of a level runs while the level owes something: it is not ahead of what comes in.
//! * A compaction into a level waits while that level is over its limit and owes more than a slack: it is behind.
//!
//! Some compaction may always run. Of the levels that are over their limit and behind, the deepest one is held up by none, and
//! if no level is behind, level 0 is not held up.

use std::time::Duration;

use super::{Admission, Deferral, GovernorConfig, Pressure, Slowdown, WriterVerdict};
use crate::policy::load::{JobClass, LoadState, Round};
use crate::policy::plan::Plan;
use crate::types::LEVELS;

/// How often rounds are looked at.
pub(super) const INTERVAL: Duration = Duration::from_millis(100);

/// A write that the spring slows sleeps at least this long (`mergeManager.cpp`).
const SLEEP_MIN: Duration = Duration::from_millis(1);

/// Divisor: a level is behind once it owes more than this part of its limit. (bLSM aims at a lead of 1 to 5 %.)
const SLACK_PARTS: i128 = 20;

/// The parameters of spring and gears.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GearConfig {
    /// Limits for writers. Its limit for memtables is the size of bLSM's `C0`: so many sealed ones and the active one.
    pub limits: GovernorConfig,
    /// The part of `C0`, in percent, above which a write sleeps.
    pub spring_percent: u8,
    /// For how long it sleeps, for each time that `C0` holds more than that part.
    pub spring: Duration,
}

impl GearConfig {
    pub(super) fn writer(&self, load: &LoadState) -> WriterVerdict {
        let levels = self.limits.writer_by_levels(load);
        let memtables = GovernorConfig::memtables(self.limits.sealed_memtables_max, load);
        let reason = Pressure::Memtables;
        match (levels, self.spring(load)) {
            (WriterVerdict::Stop { .. }, _) => levels,
            _ if memtables.stops => WriterVerdict::Stop { reason },
            (_, Some(sleep)) => WriterVerdict::Delay { slowdown: Slowdown::PerWrite(sleep), reason },
            (_, None) => levels,
        }
    }

    /// For how long a write sleeps.
    fn spring(&self, load: &LoadState) -> Option<Duration> {
        let memtables = self.limits.sealed_memtables_max.saturating_add(1);
        let active_max = load.active_bytes_max.max(1);
        // Their memory is taken in chunks, so small ones may hold more of it than they were allowed.
        let sealed = load.sealed_bytes.min(load.sealed_memtables.saturating_mul(active_max));
        let bytes_max = active_max.saturating_mul(memtables) as f64;
        let fill = load.active_bytes.saturating_add(sealed) as f64 / bytes_max;
        let over = fill * 100.0 / f64::from(self.spring_percent.max(1)) - 1.0;
        (over > 0.0).then(|| SLEEP_MIN + self.spring.mul_f64(over.min(1.0)))
    }

    pub(super) fn admit(&self, load: &LoadState, plan: &Plan) -> Admission {
        match JobClass::of(plan) {
            JobClass::Level0 | JobClass::Deep => {}
            JobClass::IntraLevel0 | JobClass::IntraLevel | JobClass::Upkeep | JobClass::Manual => {
                return Admission::Run;
            }
        }
        // What stays in its level is owed to none. And nothing comes in any more, so nothing would ever be owed.
        if plan.source == plan.target
            || load.users.written_bytes == 0 && !planted!("gear-holds-what-is-due-at-rest")
        {
            return Admission::Run;
        }
        let is_ahead = plan.source > 0 && owed(load, plan.source).is_some_and(|bytes| bytes <= 0);
        if is_ahead || is_behind(load, plan.target) {
            Admission::Defer(Deferral::Gear)
        } else {
            Admission::Run
        }
    }
}

/// What `level` still owes the next one in its round, in bytes; `None` if no round has begun.
fn owed(load: &LoadState, level: u8) -> Option<i128> {
    let level = usize::from(level);
    let (now, round) = (load.levels.get(level)?, load.pace.rounds.get(level)?);
    let moved_in = i128::from(now.moved_in.saturating_sub(round.moved_in));
    let moved_out = i128::from(now.moved_out.saturating_sub(round.moved_out));
    let is_begun = round.bytes > 0 && now.bytes_max > 0;
    is_begun.then(|| moved_in * i128::from(round.bytes) / i128::from(now.bytes_max) - moved_out)
}

/// Whether `level` is over its limit and owes more than a slack.
fn is_behind(load: &LoadState, level: u8) -> bool {
    let Some(now) = load.levels.get(usize::from(level)) else { return false };
    let slack = i128::from(now.bytes_max) / SLACK_PARTS;
    now.bytes >= now.bytes_max && owed(load, level).is_some_and(|bytes| bytes > slack)
}

/// The rounds under `load`, which has those up to now.
pub(super) fn rounds(load: &LoadState) -> [Round; LEVELS] {
    let mut rounds = load.pace.rounds;
    for (round, now) in rounds.iter_mut().zip(&load.levels) {
        let moved_in = now.moved_in.saturating_sub(round.moved_in);
        if round.bytes == 0 || moved_in >= now.bytes_max {
            *round = Round { bytes: now.bytes, moved_in: now.moved_in, moved_out: now.moved_out };
        }
    }
    rounds
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::config::PolicyConfig;
    use crate::policy::load::{LevelLoad, Pace, UserLoad};
    use crate::policy::pacer::Pacer;
    use crate::policy::plan::Reason;

    fn gear() -> GearConfig {
        let Pacer::Governor(limits) = PolicyConfig::leveldb().pacer else { panic!("LevelDB's") };
        GearConfig { limits, spring_percent: 95, spring: Duration::from_secs(5) }
    }

    /// Levels 1 and 2: what they hold, what has come in and what has left, of limits of 100 and 1000 bytes.
    fn load(level1: (u64, u64, u64), level2: (u64, u64, u64)) -> LoadState {
        let users = UserLoad { written_bytes: 1, ..UserLoad::default() };
        let mut load = LoadState { users, ..LoadState::default() };
        for (level, (bytes, moved_in, moved_out), bytes_max) in [(1, level1, 100), (2, level2, 1000)] {
            load.levels[level] = LevelLoad { bytes, bytes_max, moved_in, moved_out };
        }
        load
    }

    fn plan(source: u8) -> Plan {
        let reason = if source == 0 { Reason::Level0Runs } else { Reason::LevelBytes };
        Plan { source, target: source + 1, reason, ..crate::policy::tests::any_plan() }
    }

    /// The sources that may be compacted.
    fn runs(load: &LoadState) -> Vec<u8> {
        (0..3).filter(|source| gear().admit(load, &plan(*source)) == Admission::Run).collect()
    }

    #[test]
    fn what_leaves_a_level_keeps_pace_with_what_comes_in() {
        let mut now = load((120, 0, 0), (500, 0, 0));
        now.pace.rounds = rounds(&now);
        assert_eq!(now.pace.rounds[1], Round { bytes: 120, moved_in: 0, moved_out: 0 });
        let at = |moved_in, moved_out| {
            let bytes = 120 + moved_in - moved_out;
            let load =
                LoadState { pace: now.pace, ..load((bytes, moved_in, moved_out), (500, moved_out, 0)) };
            runs(&load)
        };
        // Level 2 owes half of what it gets, but it is not over its limit.
        assert_eq!(at(0, 0), [0], "nothing is owed yet; of level 3 nothing is known");
        assert_eq!(at(4, 0), [0, 1], "4.8 bytes are owed, within the slack of 5");
        assert_eq!(at(10, 0), [1], "12 are owed: nothing more comes in");
        assert_eq!(at(10, 7), [0, 1, 2]);
        assert_eq!(at(10, 12), [0, 2], "ahead");
    }

    #[test]
    fn a_level_that_is_behind_holds_up_what_is_above_it_and_the_deepest_goes_on() {
        let mut now = load((120, 0, 0), (1200, 0, 0));
        now.pace.rounds = rounds(&now);
        let behind = LoadState { pace: now.pace, ..load((150, 50, 0), (1300, 100, 0)) };
        assert_eq!(runs(&behind), [2], "both owe 60 and 120");
        let caught_up = LoadState { pace: now.pace, ..load((150, 50, 0), (1300, 100, 100)) };
        assert_eq!(runs(&caught_up), [1, 2]);
    }

    #[test]
    fn a_round_ends_when_a_level_has_taken_its_limit() {
        let mut now = load((120, 0, 0), (0, 0, 0));
        now.pace.rounds = rounds(&now);
        for (moved_in, expected) in [(99, 120), (100, 130)] {
            let at = LoadState { pace: now.pace, ..load((130, moved_in, 90), (0, 0, 0)) };
            assert_eq!(rounds(&at)[1].bytes, expected);
        }
        assert_eq!(now.pace.rounds[2], Round::default(), "an empty level begins none");
    }

    #[test]
    fn i11_nothing_is_held_back_at_rest_at_limits_and_for_who_waits() {
        let mut now = load((120, 0, 0), (1200, 0, 0));
        now.pace.rounds = rounds(&now);
        let held = LoadState { pace: now.pace, ..load((150, 50, 0), (1300, 100, 0)) };
        let pacer = Pacer::Gear(gear());
        let is_held = |load: &LoadState| pacer.admit(load, &plan(0)) != Admission::Run;
        assert!(is_held(&held));
        for free in [
            LoadState { users: UserLoad::default(), ..held },
            LoadState { l0_runs: 8, ..held },
            LoadState { debt_bytes: 64 << 30, ..held },
            LoadState { waiting_writers: 1, ..held },
            LoadState { is_awaited: true, ..held },
            LoadState { pace: Pace::default(), ..held },
        ] {
            assert!(!is_held(&free), "{free:?}");
        }
    }

    #[test]
    fn a_write_sleeps_the_longer_the_fuller_memory_is() {
        let at = |active_bytes, sealed_memtables| {
            let load = LoadState {
                active_bytes,
                active_bytes_max: 100,
                sealed_memtables,
                sealed_bytes: 300 * sealed_memtables,
                ..LoadState::default()
            };
            gear().writer(&load)
        };
        let sleeps = |sleep| {
            let slowdown = Slowdown::PerWrite(sleep);
            WriterVerdict::Delay { slowdown, reason: Pressure::Memtables }
        };
        assert_eq!([at(100, 0), at(90, 1)], [WriterVerdict::Go; 2]);
        let WriterVerdict::Delay { slowdown: Slowdown::PerWrite(sleep), .. } = at(95, 1) else {
            panic!("the spring")
        };
        assert!((sleep.as_secs_f64() - (0.001 + 5.0 * (0.975 / 0.95 - 1.0))).abs() < 1e-6, "{sleep:?}");
        assert_eq!(at(100, 1), WriterVerdict::Stop { reason: Pressure::Memtables });
        let stiff = GearConfig { spring_percent: 1, ..gear() };
        let load = LoadState { active_bytes: 99, active_bytes_max: 100, ..LoadState::default() };
        assert_eq!(stiff.writer(&load), sleeps(SLEEP_MIN + Duration::from_secs(5)), "no more than once");
        let level0 = LoadState { l0_runs: 12, ..LoadState::default() };
        assert_eq!(gear().writer(&level0), WriterVerdict::Stop { reason: Pressure::Level0Runs });
    }
}
