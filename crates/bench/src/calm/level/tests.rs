//! Levels of made-up windows.

use super::*;
use crate::calm::window::{Counts, Inside};

/// A window in which `completed` of 1000 reads ended, each of which took `us`.
fn window(index: usize, completed: u64, us: u64, busy: bool) -> Window {
    let counts = |us: u64| {
        let mut latency = Latency::coarse();
        latency.record_many(us * 1000, completed);
        Counts::of(&latency)
    };
    Window {
        start_s: index as f64 / 2.0,
        seconds: 0.5,
        offered: 1000,
        reads: Kind { arrival: counts(us), service: counts(1), waits: Waits::default() },
        background_s: if busy { 0.2 } else { 0.001 },
        ..Window::default()
    }
}

fn outside(report: &LevelReport) -> &Split {
    report.splits.iter().find(|split| split.told == Told::Outside).unwrap()
}

#[test]
fn work_that_makes_reads_ten_times_slower_is_seen_in_full() {
    let windows = (0..240).map(|at| Window {
        disk_bytes: if at % 3 == 0 { 0 } else { 4096 },
        ..window(at, 1000, if at % 3 == 0 { 500 } else { 50 }, at % 3 == 0)
    });
    let report = Level::new(windows.collect(), 20).report();
    let split = outside(&report);
    assert!(!split.by_median && report.splits.len() == 1, "nothing is told from inside");
    assert!((split.read_p99_ratio.unwrap() / 10.0 - 1.0).abs() < 0.02, "{:?}", split.read_p99_ratio);
    assert_eq!((split.with.windows, split.without.windows), (73, 147));
    assert_eq!(split.auc["read p99"], 1.0);
    assert_eq!((split.auc["throughput"], split.auc["disk reads"]), (0.5, 0.0));
    assert_eq!((split.auc_clients, split.auc_all), (Some(1.0), Some(1.0)));
    assert!(!split.auc.contains_key("write p99") && !split.auc.contains_key("hit ratio"));
    assert_eq!(report.seconds_kept_up, Some(1.0));
    assert!(report.all.write.is_none() && report.course.len() == 240);
}

#[test]
fn work_that_changes_nothing_is_not_seen() {
    let windows = (0..240).map(|at| window(at, 1000, 50 + (at as u64 * 7919) % 13, at % 2 == 0));
    let report = Level::new(windows.collect(), 0).report();
    let auc = outside(&report).auc["read p99"];
    assert!((auc - 0.5).abs() < 0.1, "{auc}");
}

#[test]
fn stolen_windows_are_left_out_and_counted() {
    let mut windows: Vec<Window> = (0..80).map(|at| window(at, 1000, 50, at % 2 == 0)).collect();
    windows[50] = Window { stolen_share: 0.021, ..window(50, 1, 900_000, true) };
    windows[51].stolen_share = 0.02;
    let report = Level::new(windows, 10).report();
    assert_eq!((report.windows.warm_up, report.windows.stolen, report.windows.kept), (10, 1, 69));
    assert!(report.all.read.as_ref().unwrap().max < 60.0);
    assert_eq!(report.seconds_kept_up, Some(1.0), "its second is no second");
    assert!(!report.course[50].counts && report.course[51].counts && !report.course[3].counts);
}

#[test]
fn a_second_that_misses_or_catches_up_is_not_kept_up_with() {
    let mut windows: Vec<Window> = (0..40).map(|at| window(at, 1000, 50, at % 2 == 0)).collect();
    windows[10] = window(10, 800, 50, true);
    windows[12] = window(12, 1200, 50, true);
    windows[14] = window(14, 960, 50, true);
    let report = Level::new(windows, 0).report();
    assert_eq!(report.seconds_kept_up, Some(18.0 / 20.0));
    // Twenty windows that hold all three: 200 and 40 are missing, 200 were caught up with.
    assert!((report.worst.throughput_share - 0.998).abs() < 1e-9, "{:?}", report.worst);
}

#[test]
fn the_worst_ten_seconds_are_found_by_each_figure() {
    let mut windows: Vec<Window> = (0..120).map(|at| window(at, 1000, 50, at % 2 == 0)).collect();
    (60..64).for_each(|at| windows[at] = window(at, 500, 4000, true));
    let worst = Level::new(windows, 0).report().worst;
    assert!((worst.read_p99_us / 4000.0 - 1.0).abs() < 0.02, "{worst:?}");
    assert!((worst.throughput_share - 0.9).abs() < 1e-9 && worst.write_p99_us == 0.0, "{worst:?}");
}

#[test]
fn where_all_windows_have_work_those_with_more_are_told_from_those_with_less() {
    let windows = (0..100).map(|at| Window {
        background_s: 0.1 + (at % 10) as f64 * 0.01,
        ..window(at, 1000, 50 + at as u64 % 10, true)
    });
    let report = Level::new(windows.collect(), 0).report();
    let split = outside(&report);
    assert!(split.by_median);
    assert_eq!((split.with.windows, split.without.windows), (50, 50));
    assert_eq!(split.auc["read p99"], 1.0);
}

#[test]
fn without_any_work_there_is_nothing_to_tell() {
    let windows = (0..100).map(|at| Window { background_s: 0.0, ..window(at, 1000, 50, false) });
    let report = Level::new(windows.collect(), 0).report();
    let split = outside(&report);
    assert_eq!((split.by_median, split.with.windows, split.without.windows), (false, 0, 100));
    assert!(split.auc.is_empty() && split.auc_clients.is_none() && report.has_few());
}

#[test]
fn a_window_in_which_nothing_ends_is_as_bad_as_what_ends_next() {
    let mut windows: Vec<Window> = (0..40).map(|at| window(at, 1000, 50, false)).collect();
    windows[7] = window(7, 0, 0, true);
    windows[8] = window(8, 1000, 600_000, true);
    let level = Level::new(windows, 0);
    let signals = level.signals();
    assert_eq!(signals[7][0], signals[8][0]);
    assert!(signals[7][4] > signals[8][4], "no throughput is worse than some");
}

#[test]
fn an_engine_that_tells_has_a_split_and_a_hit_ratio_of_its_own() {
    let windows = (0..80).map(|at| {
        let busy = at % 2 == 0;
        let inside = Inside {
            background_bytes: if busy { 1 << 20 } else { 0 },
            cache_hits: if busy { 60 } else { 90 },
            cache_misses: 10,
            ..Inside::default()
        };
        Window { inside: Some(inside), ..window(at, 1000, 50, false) }
    });
    let report = Level::new(windows.collect(), 0).report();
    let inside = report.splits.iter().find(|split| split.told == Told::Inside).unwrap();
    assert_eq!((inside.with.windows, inside.by_median), (40, false));
    assert_eq!(inside.auc["hit ratio"], 1.0, "fewer hits are worse");
    assert_eq!(inside.auc["read p99"], 0.5);
}

#[test]
fn nothing_is_told_of_no_windows() {
    let report = Level::new(Vec::new(), 10).report();
    assert_eq!((report.windows.kept, report.seconds_kept_up), (0, None));
    assert!(floor(Vec::new()).is_empty());
}
