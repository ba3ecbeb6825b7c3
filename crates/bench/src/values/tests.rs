//! Tests of the workload at a tiny scale, in which nothing is asserted of times.

use super::*;
use crate::deletes::Goal;

fn choice(dir: &std::path::Path) -> Choice {
    Choice {
        data_bytes: 1 << 20,
        update_s: 600.0,
        read_s: 600.0,
        rest_s: 0.0,
        operations_max: 40,
        dir: dir.to_owned(),
        ..Choice::default()
    }
}

fn measured(separation: Separation, size: Size) -> Cell {
    let dir = tempfile::tempdir().unwrap();
    let engine = Terrace::new("default", separation).unwrap();
    let cell = measure(&engine, size, 1, &choice(dir.path())).unwrap();
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "stores are removed");
    cell
}

#[test]
fn all_phases_are_measured_with_values_of_any_size() {
    for size in [Size::Fixed(256), Size::Fixed(16 << 10), Size::Fixed(1 << 20), Size::Mix] {
        let cell = measured(Separation::Default, size);
        let names: Vec<&str> = cell.phases.iter().map(|phase| phase.name.as_str()).collect();
        let reads = ["get", "scan-10", "scan-100", "keys-100", "contains"];
        let expected = ["load", "uniform", "zipfian"].into_iter().chain(reads).chain(["delete"]);
        assert!(names.iter().copied().eq(expected), "{names:?}");
        assert_eq!(cell.phases[0].operations, cell.records);
        assert_eq!(cell.phases[8].operations, cell.records.div_ceil(5));
        for phase in &cell.phases[1..8] {
            assert_eq!(phase.operations, 40, "{phase:?}");
            assert_eq!(phase.space_rested.is_some(), !reads.contains(&phase.name.as_str()), "{phase:?}");
        }
        let uniform = cell.phase("uniform").unwrap();
        assert!(
            uniform.told_over_user.unwrap() >= 1.0,
            "what is written is at least in the log: {uniform:?}"
        );
        assert!(uniform.space_peak.unwrap() > 0.0 && cell.space_end > 0.0);
        let scanned = cell.phase("scan-10").unwrap();
        assert!(scanned.rows > 40 || cell.records < 10, "{scanned:?}");
        assert!(cell.course.is_sorted_by(|a, b| a.at_s <= b.at_s));
    }
}

#[test]
fn mail_is_put_and_deleted() {
    let cell = measured(Separation::Never, Size::Mail);
    assert_eq!((cell.engine.as_str(), cell.role, cell.records), ("terrace-never", Role::Whole, 5));
    let [put, delete] = &cell.phases[..] else { panic!("{:?}", cell.phases) };
    assert_eq!((put.operations, delete.operations), (5, 1));
    assert!(put.user_bytes > 50_000_000 && put.written().unwrap() >= 1.0);
    let lives = |at: usize| cell.course[at].live_bytes;
    assert!(lives(cell.course.len() - 1) < cell.course.iter().map(|point| point.live_bytes).max().unwrap());
    assert_eq!(delete.written_over_user, None);
}

#[test]
fn phase_ends_with_its_time() {
    let dir = tempfile::tempdir().unwrap();
    let choice = Choice { update_s: 0.0, read_s: 0.0, operations_max: u64::MAX, ..choice(dir.path()) };
    let engine = Terrace::new("default", Separation::From(4096)).unwrap();
    assert_eq!((engine.name().as_str(), engine.role()), ("terrace-4096", Role::Separated));
    let cell = measure(&engine, Size::Fixed(4096), 3, &choice).unwrap();
    assert_eq!((cell.round, cell.phases[1].operations), (3, 1), "a phase has a first operation");
    assert!(Terrace::new("fancy", Separation::Default).is_err());
}

/// A cell whose updates all have the rate `ops_per_s` and take `space` times what lives.
fn cell(engine: &str, role: Role, size: Size, round: u32, ops_per_s: f64, space: f64) -> Cell {
    let phase = |name: &str| Phase {
        name: name.to_owned(),
        start_s: 0.0,
        seconds: 1.0,
        drain_s: 0.0,
        is_cut_off: false,
        operations: 1,
        rows: 1,
        user_bytes: 1,
        ops_per_s,
        drained_ops_per_s: ops_per_s,
        user_bytes_per_s: ops_per_s,
        written_bytes: Some(2),
        told_written_bytes: Some(3),
        written_over_user: Some(2.0),
        told_over_user: Some(3.0),
        latency_us: crate::latency::Latency::new().summary(),
        space_peak: Some(space),
        space_rested: Some(space),
    };
    let names = ["load", "uniform", "zipfian", "get", "scan-100", "delete"];
    Cell {
        engine: engine.to_owned(),
        role,
        version: String::new(),
        size,
        round,
        records: 7,
        memory_growth_bytes: 0,
        phases: names.iter().map(|name| phase(name)).collect(),
        space_end: space,
        course: vec![SpacePoint { at_s: 0.0, space_bytes: 2, live_bytes: 1 }],
        failed: None,
    }
}

fn beside(size: Size) -> ValuesRun {
    Choice::default().run(vec![
        cell("terrace", Role::Separated, size, 1, 100.0, 1.2),
        cell("terrace-never", Role::Whole, size, 1, 50.0, 1.2),
        cell("solistore", Role::Peer, size, 1, 90.0, 1.2),
        cell("solistore", Role::Peer, size, 2, 1.0, 1.2),
        cell("terrace", Role::Separated, size, 2, 110.0, 1.2),
        cell("terrace", Role::Separated, size, 3, 1.0, 1.2),
    ])
}

#[test]
fn goals_go_by_size_and_ratios_by_round() {
    let of = |size| verdicts(&beside(size));
    let large = of(Size::Fixed(16 << 10));
    let find = |verdicts: &[Verdict], measured: &str| {
        let found = verdicts.iter().find(|verdict| verdict.measured == measured);
        found.map(|verdict| (verdict.figure, verdict.goal))
    };
    let written = find(&large, "uniform updates, written over users' bytes");
    assert_eq!(written, Some((3.0, Goal::AtMost(2.2))), "the larger count is taken");
    let over_whole = find(&large, "uniform updates over those of terrace-never");
    assert_eq!(over_whole, Some((2.0, Goal::AtLeast(2.0))));
    let (over_peer, goal) = find(&large, "zipfian updates over those of solistore").unwrap();
    assert!((over_peer - f64::midpoint(100.0 / 90.0, 110.0)).abs() < 1e-9 && goal == Goal::AtLeast(1.5));
    assert_eq!(find(&large, "scans of 100 over those of terrace-never").unwrap().1, Goal::AtLeast(1.0));
    let kilobyte = of(Size::Fixed(1024));
    assert_eq!(find(&kilobyte, "scans of 100 over those of terrace-never").unwrap().1, Goal::AtLeast(0.8));
    assert_eq!(find(&kilobyte, "uniform updates over those of solistore").unwrap().1, Goal::AtLeast(1.3));
    assert!(find(&kilobyte, "uniform updates over those of terrace-never").is_none());
    let small = of(Size::Fixed(256));
    assert_eq!(small.len(), 1, "of small values lookups alone have a goal: {small:?}");
    let mail = of(Size::Mail);
    let rested = find(&mail, "a fifth deleted and rested, space over live");
    assert_eq!(rested, Some((1.2, Goal::AtMost(1.05))));
}

#[test]
fn text_and_markdown_have_all_engines_and_verdicts() {
    let run = beside(Size::Fixed(4096));
    let (text, markdown) = (text(&run), markdown(&run));
    for words in ["terrace-never", "missed", "met", "rounds: 3", "zipfian"] {
        assert!(text.contains(words), "{words} in {text}");
    }
    let heads: Vec<&str> = markdown.lines().filter(|line| line.starts_with("## ")).collect();
    assert_eq!(heads, ["## Values of 4096", "## Goals"]);
    let columns = |line: &str| line.matches(" |").count();
    let table: Vec<usize> =
        markdown.lines().skip(4).take_while(|line| !line.is_empty()).map(columns).collect();
    assert_eq!(table.len(), 2 + 3, "{markdown}");
    assert!(table.iter().all(|count| *count == table[0]), "{markdown}");
}

#[test]
fn runs_are_stored_and_read() {
    let run = beside(Size::Mix);
    let json = serde_json::to_string(&run).unwrap();
    assert_eq!(serde_json::from_str::<ValuesRun>(&json).unwrap(), run);
}
