//! Read-triggered compaction: readers run up a debt for the runs of level 0. (LevelDB: seek compaction.)
//!
//! Each run costs every scan a seek, and costs every lookup that finds nothing newer a look into a filter. The same
//! time could go into a compaction that removes the run. So once readers have spent as much as a compaction costs, it
//! becomes due. This module only counts and adds up. [`Costs`] has the prices; the rules of level 0 (`policy/level0`)
//! say when something is due.
//!
//! Invariant: the debt is kept for one run, and all runs together owe it times their number. That product stays when
//! runs come. It is gone when no run is left.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::env::sync::OrderedMutex;
use crate::policy::{BlocksAsked, Costs, Layout};
use crate::store::stripes::Stripes;

/// How often, in scans, they pay.
const SCANS_PER_CHARGE: u64 = 256;

/// The same for lookups. A prime, so that of several trees whose lookups alternate, none pays for the others.
const LOOKUPS_PER_CHARGE: u64 = 1021;

/// One part in this many of what runs cost readers counts. A compaction does not save all of that: new runs come while it runs, and
/// its outputs are slower to read at first than what they replace (`docs/benchmarks/choices.md`, "Compactions for readers").
const LOST_PARTS: u64 = 4;

/// Divisor: the scheduler is woken once the debt has grown by this part. To plan costs more, the more tables level 0
/// has.
const DEBT_STEPS: u64 = 16;

/// The read debt of one tree's readers.
#[derive(Debug, Default)]
pub(in crate::engine) struct ReadDebt {
    scans: AtomicU64,
    /// The debt for each run since level 0 became empty, in bytes of compaction. A run that came later has the mean.
    accrued: AtomicU64,
    /// What they had paid when somebody was told last.
    notified: AtomicU64,
    /// Blocks that had been asked for when scans paid last.
    asked: OrderedMutex<BlocksAsked>,
}

impl ReadDebt {
    /// Level 0 has changed its number of runs. If it has more, the debt of all runs together stays, so that a flush
    /// neither ends a compaction that was paid for nor puts it off. If it has become empty, the debt begins anew.
    pub(in crate::engine) fn share(&self, before: usize, runs: usize) {
        for accrued in [&self.accrued, &self.notified] {
            let all = accrued.load(Relaxed).saturating_mul(before as u64);
            accrued.store(all.checked_div(runs as u64).unwrap_or(0), Relaxed);
        }
    }

    /// Counts a scan. Returns whether something may be due now. `seen` tells what blocks have been asked for since the
    /// store was opened, and what things cost.
    pub(in crate::engine) fn scanned(&self, seen: impl FnOnce() -> (BlocksAsked, Costs)) -> bool {
        if !(self.scans.fetch_add(1, Relaxed) + 1).is_multiple_of(SCANS_PER_CHARGE) {
            return false;
        }
        let (now, costs) = seen();
        let lately = now.since(&std::mem::replace(&mut self.asked.lock(), now));
        self.charge(costs.seeks_worth(SCANS_PER_CHARGE, &lately))
    }

    /// As many lookups have gone through level 0 as pay at once. Returns whether something may be due now.
    pub(in crate::engine) fn looked(&self, layout: &Layout, costs: &Costs) -> bool {
        self.charge(layout.filter_probes_worth(LOOKUPS_PER_CHARGE, costs))
    }

    fn charge(&self, worth: u64) -> bool {
        let worth = worth / LOST_PARTS;
        if worth == 0 {
            return false;
        }
        let accrued = self.accrued.fetch_add(worth, Relaxed).saturating_add(worth);
        let grown = accrued.saturating_sub(self.notified.load(Relaxed)) >= accrued / DEBT_STEPS;
        if grown {
            self.notified.store(accrued, Relaxed);
        }
        grown
    }

    /// What has been paid for each run of level 0 since that became empty, in bytes of compaction.
    pub(in crate::engine) fn accrued(&self) -> u64 {
        self.accrued.load(Relaxed)
    }
}

/// Lookups in all trees: the one that completes a number pays for it.
#[derive(Debug, Default)]
pub(in crate::engine) struct Lookups(Stripes<AtomicU64>);

impl Lookups {
    /// Counts a lookup; whether it is to pay.
    #[inline]
    pub(in crate::engine) fn count(&self) -> bool {
        (self.0.mine().fetch_add(1, Relaxed) + 1).is_multiple_of(LOOKUPS_PER_CHARGE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debt_of_all_runs_stays_when_one_comes() {
        let read_debt = ReadDebt::default();
        read_debt.charge(900 * LOST_PARTS);
        read_debt.share(2, 3);
        assert_eq!(read_debt.accrued(), 600);
        read_debt.charge(40 * LOST_PARTS);
        assert_eq!(read_debt.accrued(), 640);
        read_debt.share(3, 0);
        assert_eq!(read_debt.accrued(), 0);
        read_debt.charge(10 * LOST_PARTS);
        read_debt.share(0, 1);
        assert_eq!(read_debt.accrued(), 0, "nobody pays for no runs");
    }

    #[test]
    fn growth_by_a_part_alone_is_notified() {
        let read_debt = ReadDebt::default();
        assert!(!read_debt.charge(0) && read_debt.charge(1600 * LOST_PARTS));
        assert!(!read_debt.charge(50 * LOST_PARTS) && read_debt.charge(60 * LOST_PARTS));
        read_debt.share(1, 2);
        assert!(!read_debt.charge(40 * LOST_PARTS) && read_debt.charge(20 * LOST_PARTS));
    }
}
