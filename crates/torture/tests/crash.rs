//! A sample of the suite `crash`.

use terrace_torture::crash::{Crash, fingerprint};
use terrace_torture::runner::pass_sample;
use terrace_torture::schedules::SCHEDULES;

#[test]
fn a_power_cut_leaves_a_prefix_with_all_that_was_synced_also_in_recovery() {
    pass_sample(&Crash, 1);
}

#[test]
fn a_schedule_repeats_itself() {
    for schedule in SCHEDULES {
        let first = fingerprint(schedule, 7);
        let same = (0..3).all(|_| fingerprint(schedule, 7) == first);
        assert!(same, "{} has a choice that no seed makes", schedule.name);
    }
}
