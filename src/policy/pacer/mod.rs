//! The pacer: decides when a job runs, at what rate, and how long a writer waits.
//!
//! There are six. Each answers the same questions, about a sample of the load:
//!
//! | question | method | asked |
//! | --- | --- | --- |
//! | May this job start? | [`Pacer::admit`] | for each plan; flushes do not ask |
//! | How fast may jobs of this class go on? | [`Pacer::budget`] | between two pieces of a job |
//! | What may writers do? | [`Pacer::writer`] | for each write |
//! | How high is the load? | [`Pacer::pace`] | once in an [`Pacer::interval`] |
//! | Does level 0 go first, and is a part of it merged? | [`Pacer::level0_first`], [`Pacer::level0_part`] | for each plan |
//!
//! `Steady` (`steady`) is the default. `Governor` (`governor`) is LevelDB's and RocksDB's: jobs always start. `SoftSleep` (`soft_sleep`) is HyperLevelDB's. `Silk`
//! (`silk`) and `Dlc` (`dlc`) go by the load of the device, which `estimate` tells from what users did. `Gear` (`gear`) is bLSM's
//! and goes by what passes through the levels.
//!
//! A pacer remembers nothing. What must be known of the past is in [`Pace`], a part of the sample.
//!
//! INVARIANT(I11): every deferral ends. At the limits for writers, and when a caller waits for jobs, every pacer admits
//! every job and limits none.

mod dlc;
mod estimate;
mod gear;
mod governor;
mod silk;
mod soft_sleep;
mod steady;
mod verdict;

use std::ops::Range;
use std::time::Duration;

use crate::catalog::Version;
use crate::policy::load::{JobClass, LoadState, Pace, UserLoad};
use crate::policy::plan::{Plan, PlanKind};

pub use dlc::{DlcConfig, flushed_and_parts};
pub use gear::GearConfig;
pub use governor::GovernorConfig;
pub(super) use governor::between;
pub use silk::SilkConfig;
pub use soft_sleep::SoftSleepConfig;
pub use steady::SteadyConfig;
pub use verdict::Verdict;

/// Pacers that do not go by the load of the device look at it this often, for the statistics.
const INTERVAL: Duration = Duration::from_secs(1);

/// The pacers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pacer {
    /// Jobs take what clients leave of processor and disk, as long as writers are not slowed for it.
    Steady(SteadyConfig),
    /// Jobs always run; writers slow down smoothly before the hard limits.
    Governor(GovernorConfig),
    /// Jobs always run; writers sleep for microseconds.
    SoftSleep(SoftSleepConfig),
    /// Jobs get what clients leave of the device; deep ones pause for those of level 0, and at a peak.
    Silk(SilkConfig),
    /// Jobs get what clients leave of the device; those of level 0 wait for times of low load.
    Dlc(DlcConfig),
    /// Levels are compacted as fast as data comes into them; writers sleep by how full memtables are.
    Gear(GearConfig),
}

/// What slows or stops writers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Pressure {
    /// Memtables fill faster than they are flushed.
    Memtables,
    /// Level 0 has too many runs, or too much in them.
    Level0Runs,
    /// The levels are too far over their limits.
    Debt,
    /// Values that lie apart die faster than their space is given back.
    DeadValues,
}

/// How much writers are slowed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Slowdown {
    /// All writers together get this many bytes per second.
    BytesPerSecond(u64),
    /// Each write costs this much.
    PerWrite(Duration),
}

/// What writers may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WriterVerdict {
    /// Write freely.
    Go,
    /// Write more slowly.
    Delay {
        /// By how much.
        slowdown: Slowdown,
        /// The worst signal.
        reason: Pressure,
    },
    /// Wait until the next verdict.
    Stop {
        /// The signal that is at its limit.
        reason: Pressure,
    },
}

impl WriterVerdict {
    /// What holds writers back, and whether they are stopped.
    #[must_use]
    pub fn pressed(self) -> Option<(Pressure, bool)> {
        match self {
            Self::Go => None,
            Self::Delay { reason, .. } => Some((reason, false)),
            Self::Stop { reason } => Some((reason, true)),
        }
    }
}

/// Whether a job may run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admission {
    /// Now. How fast, [`Pacer::budget`] says.
    Run,
    /// Not under this load.
    Defer(Deferral),
}

/// Why a job may not run now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Deferral {
    /// Level 0 holds writers up, and the job does not help.
    HoldsUpWriters,
    /// Clients are at a peak.
    Peak,
    /// Clients are at a peak, and a job of its class is running.
    OneAtAPeak,
    /// It would take the last processor from clients.
    Processors,
    /// The level is ahead of what comes into it, or the next one behind with what leaves it.
    Gear,
}

/// How fast a job may go on.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Budget {
    /// The share of its time, above 0 and up to 1, that it may work.
    pub share: f64,
    /// What all jobs together may read and write, in bytes per second; `None` if nothing limits them.
    pub bytes_per_second: Option<u64>,
    /// Whether it waits until it is told otherwise.
    pub is_suspended: bool,
    /// Whether it gets processors as clients do, and not only a small share of all but one.
    pub is_urgent: bool,
}

impl Budget {
    /// As fast as it can.
    pub const FREE: Self = Self { share: 1.0, bytes_per_second: None, is_suspended: false, is_urgent: true };
}

impl Pacer {
    /// What writers may do under `load`.
    #[must_use]
    pub fn writer(&self, load: &LoadState) -> WriterVerdict {
        match self {
            Self::Governor(limits)
            | Self::Steady(SteadyConfig { limits, .. })
            | Self::Silk(SilkConfig { limits, .. })
            | Self::Dlc(DlcConfig { limits, .. }) => limits.writer(load),
            Self::SoftSleep(soft) => soft.writer(load),
            Self::Gear(gear) => gear.writer(load),
        }
    }

    /// Whether `plan` may run under `load`. Flushes do not ask, nor do callers' own compactions.
    #[must_use]
    pub fn admit(&self, load: &LoadState, plan: &Plan) -> Admission {
        match plan.kind {
            // Metadata alone.
            PlanKind::Move | PlanKind::Drop => return Admission::Run,
            // It makes no room for writers.
            PlanKind::Rewrite | PlanKind::Relocate(_) if self.presses(load.l0_runs) => {
                return Admission::Defer(Deferral::HoldsUpWriters);
            }
            PlanKind::Compact | PlanKind::Rewrite | PlanKind::Relocate(_) => {}
        }
        match self {
            _ if self.is_pressed(load) => Admission::Run,
            Self::Governor(_) | Self::SoftSleep(_) => Admission::Run,
            Self::Steady(steady) => steady.admit(load, JobClass::of(plan)),
            Self::Silk(silk) => silk.admit(load, JobClass::of(plan)),
            Self::Dlc(dlc) => dlc.admit(load, plan),
            Self::Gear(gear) => gear.admit(load, plan),
        }
    }

    /// How fast jobs of `class` may go on under `load`. `users` is what users did in the last milliseconds.
    #[must_use]
    pub fn budget(&self, load: &LoadState, users: &UserLoad, class: JobClass) -> Budget {
        match self {
            // Who is stopped writes nothing by which one could tell that jobs are late.
            _ if class == JobClass::Manual || load.waiting_writers > 0 => Budget::FREE,
            Self::Governor(_) | Self::SoftSleep(_) => Budget { is_urgent: false, ..Budget::FREE },
            Self::Steady(_) | Self::Silk(_) | Self::Dlc(_) | Self::Gear(_) if self.is_pressed(load) => {
                Budget::FREE
            }
            // It decides of each job before that begins.
            Self::Gear(_) => Budget { is_urgent: false, ..Budget::FREE },
            Self::Steady(steady) => steady.budget(load, users),
            Self::Silk(_) => silk::budget(load, class),
            Self::Dlc(_) => dlc::budget(load),
        }
    }

    /// Whether a flush gets processors as clients do, and not only those that background work may take.
    #[must_use]
    pub fn flush_is_urgent(&self, load: &LoadState) -> bool {
        match self {
            Self::Steady(steady) if steady.yield_processor => self.is_pressed(load),
            Self::Steady(_)
            | Self::Governor(_)
            | Self::SoftSleep(_)
            | Self::Silk(_)
            | Self::Dlc(_)
            | Self::Gear(_) => true,
        }
    }

    /// What to make of `users`, what users did since the last time. `load` has what was made of the samples before.
    #[must_use]
    pub fn pace(&self, load: &LoadState, users: &UserLoad) -> Pace {
        let seen = estimate::device(&load.pace, users, &load.costs);
        match self {
            Self::Steady(_) | Self::Governor(_) | Self::SoftSleep(_) | Self::Gear(_) => {
                let client_bytes_per_second = users.device_read_rate(&load.costs);
                let Pace { device_bytes_per_second, quick_read_nanos, .. } = seen;
                let rounds = match self {
                    Self::Gear(_) => gear::rounds(load),
                    _ => Default::default(),
                };
                Pace {
                    client_bytes_per_second,
                    device_bytes_per_second,
                    quick_read_nanos,
                    rounds,
                    ..Pace::default()
                }
            }
            Self::Silk(silk) => silk.pace(&seen, load, users),
            Self::Dlc(dlc) => dlc.pace(&seen, load, users),
        }
    }

    /// How often [`Pacer::pace`] is asked.
    #[must_use]
    pub fn interval(&self) -> Duration {
        match self {
            Self::Steady(_) | Self::Governor(_) | Self::SoftSleep(_) => INTERVAL,
            Self::Gear(_) => gear::INTERVAL,
            Self::Silk(silk) => silk.interval,
            Self::Dlc(dlc) => dlc.interval,
        }
    }

    /// Whether level 0 goes before every other level that is due.
    #[must_use]
    pub fn level0_first(&self) -> bool {
        match self {
            Self::Steady(_) | Self::Governor(_) | Self::SoftSleep(_) | Self::Gear(_) => false,
            Self::Silk(_) | Self::Dlc(_) => true,
        }
    }

    /// Whether compactions of level 0 have a thread of their own, besides those that compact all levels.
    #[must_use]
    pub fn has_level0_thread(&self) -> bool {
        match self {
            Self::Steady(_) | Self::Governor(_) | Self::SoftSleep(_) | Self::Dlc(_) | Self::Gear(_) => false,
            Self::Silk(_) => true,
        }
    }

    /// The runs of level 0 that are to become one now although level 0 may not be compacted away.
    #[must_use]
    pub fn level0_part(&self, load: &LoadState, version: &Version) -> Option<Range<usize>> {
        match self {
            Self::Steady(_) | Self::Governor(_) | Self::SoftSleep(_) | Self::Silk(_) | Self::Gear(_) => None,
            Self::Dlc(dlc) => dlc.level0_part(load, version),
        }
    }

    /// Whether a level 0 that counts for `runs` ([`super::Layout::level0_runs`]) holds writers up, or is about to.
    #[must_use]
    pub fn presses(&self, runs: u64) -> bool {
        match self {
            Self::Governor(limits)
            | Self::Steady(SteadyConfig { limits, .. })
            | Self::Silk(SilkConfig { limits, .. })
            | Self::Dlc(DlcConfig { limits, .. })
            | Self::Gear(GearConfig { limits, .. }) => limits.level0_slows(runs),
            Self::SoftSleep(soft) => soft.presses(runs),
        }
    }

    /// Whether jobs may not be held back any more: writers are, or a caller waits for jobs.
    fn is_pressed(&self, load: &LoadState) -> bool {
        let is_at_a_limit = match self {
            // Its jobs are held back for less than in the papers: it suffices if writers get what they want.
            Self::Steady(steady) => steady.limits.is_slowing(load, &load.users),
            Self::Governor(limits)
            | Self::Silk(SilkConfig { limits, .. })
            | Self::Dlc(DlcConfig { limits, .. })
            | Self::Gear(GearConfig { limits, .. }) => {
                load.debt_bytes >= limits.debt_slow_bytes || self.presses(load.l0_runs)
            }
            Self::SoftSleep(_) => self.presses(load.l0_runs),
        };
        let is_awaited = load.is_awaited && !planted!("put-off-though-somebody-waits");
        is_awaited || load.waiting_writers > 0 || is_at_a_limit
    }
}
