//! What readers pay for fewer runs in level 0.
//!
//! Each run costs every scan a seek, and every lookup that finds nothing newer a look into a filter. What that takes could have
//! gone into a merge instead: once readers have spent as much as one costs, it is begun ([`Layout`] has the prices).

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::env::sync::Mutex;
use crate::policy::{BlocksAsked, Layout, seeks_worth};
use crate::store::stripes::Stripes;

/// How often, in scans, they pay.
const SCANS_PER_PAYMENT: u64 = 256;

/// The same for lookups: a prime, so that among those that take turns in several trees none pays for the others.
const LOOKUPS_PER_PAYMENT: u64 = 1021;

/// Somebody is told once what is paid has grown by one part in so many: to plan costs more, the more tables level 0 has.
const PAID_STEPS: u64 = 16;

/// The payments of one tree's readers.
#[derive(Debug, Default)]
pub(super) struct Payments {
    scans: AtomicU64,
    /// Since level 0 became empty, for each of its runs, in bytes of merging: of one that came later, the mean.
    paid: AtomicU64,
    /// What they had paid when somebody was told last.
    told: AtomicU64,
    /// Blocks that had been asked for when scans paid last.
    asked: Mutex<BlocksAsked>,
}

impl Payments {
    /// Level 0 has got runs: what was paid for all of them together stays, so that a flush neither ends a merge that was paid for nor
    /// puts it off. Or it has become empty: to begin anew.
    pub(super) fn share(&self, before: usize, runs: usize) {
        for paid in [&self.paid, &self.told] {
            let all = paid.load(Relaxed).saturating_mul(before as u64);
            paid.store(all.checked_div(runs as u64).unwrap_or(0), Relaxed);
        }
    }

    /// Counts a scan; whether something may be due now. `asked` tells what blocks have been asked for since the store was opened.
    pub(super) fn scanned(&self, asked: impl FnOnce() -> BlocksAsked) -> bool {
        if !(self.scans.fetch_add(1, Relaxed) + 1).is_multiple_of(SCANS_PER_PAYMENT) {
            return false;
        }
        let now = asked();
        let lately = now.since(&std::mem::replace(&mut self.asked.lock(), now));
        self.pay(seeks_worth(SCANS_PER_PAYMENT, &lately))
    }

    /// As many lookups as pay at once have gone through level 0; whether something may be due now.
    pub(super) fn looked(&self, layout: &Layout) -> bool {
        self.pay(layout.looks_worth(LOOKUPS_PER_PAYMENT))
    }

    fn pay(&self, worth: u64) -> bool {
        if worth == 0 {
            return false;
        }
        let paid = self.paid.fetch_add(worth, Relaxed).saturating_add(worth);
        let grown = paid.saturating_sub(self.told.load(Relaxed)) >= paid / PAID_STEPS;
        if grown {
            self.told.store(paid, Relaxed);
        }
        grown
    }

    /// What has been paid for each run of level 0 since that became empty, in bytes of merging.
    pub(super) fn paid(&self) -> u64 {
        self.paid.load(Relaxed)
    }
}

/// Lookups in all trees: the one that completes a number pays for it.
#[derive(Debug, Default)]
pub(super) struct Lookups(Stripes<AtomicU64>);

impl Lookups {
    /// Counts a lookup of a key of this `hash`; whether it is to pay.
    #[inline]
    pub(super) fn count(&self, hash: u64) -> bool {
        (self.0.at(hash).fetch_add(1, Relaxed) + 1).is_multiple_of(LOOKUPS_PER_PAYMENT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_paid_for_all_runs_stays_when_one_comes() {
        let payments = Payments::default();
        payments.pay(900);
        payments.share(2, 3);
        assert_eq!(payments.paid(), 600);
        payments.pay(40);
        assert_eq!(payments.paid(), 640);
        payments.share(3, 0);
        assert_eq!(payments.paid(), 0);
        payments.pay(10);
        payments.share(0, 1);
        assert_eq!(payments.paid(), 0, "nobody pays for no runs");
    }

    #[test]
    fn somebody_is_told_of_what_grows_by_a_part_alone() {
        let payments = Payments::default();
        assert!(!payments.pay(0) && payments.pay(1600));
        assert!(!payments.pay(50) && payments.pay(60));
        payments.share(1, 2);
        assert!(!payments.pay(40) && payments.pay(20));
    }
}
