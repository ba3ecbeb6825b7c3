//! A sample of the suite `crash`.

use terrace_torture::crash::{ALL_SCHEDULES_STRIDE, BRIEF_STRIDE, Crash, fingerprint, sampled_images};
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

/// So a failed case that is repeated by its name has the image that failed.
#[test]
fn a_sample_of_all_schedules_is_part_of_the_sample_of_one() {
    let schedule = SCHEDULES.iter().find(|schedule| schedule.name == "puts").unwrap();
    let of = |stride| sampled_images(schedule, 7, stride);
    let [brief, part, whole] = [BRIEF_STRIDE, ALL_SCHEDULES_STRIDE, 1].map(of);
    for (few, many) in [(&brief, &part), (&part, &whole)] {
        assert!(few.len() * 2 < many.len() && !few.is_empty(), "{} of {}", few.len(), many.len());
        assert!(few.iter().all(|image| many.contains(image)));
    }
}
