//! Tests of the cases at a tiny scale, in which nothing is asserted of times.

use super::*;

fn choice(dir: &std::path::Path, cases: &[&str]) -> Choice {
    Choice {
        cases: cases.iter().map(|&name| name.to_owned()).collect(),
        scale: 2000.0,
        dir: dir.to_owned(),
        limit_s: 20.0,
        rest_s: 0.0,
        seed: 1,
    }
}

fn ran(cases: &[&str]) -> DeletesRun {
    ran_at(2000.0, cases)
}

fn ran_at(scale: f64, cases: &[&str]) -> DeletesRun {
    let dir = tempfile::tempdir().unwrap();
    let choice = Choice { scale, ..choice(dir.path(), cases) };
    let run = run(&Terrace::new("default").unwrap(), &choice, &mut |_| ()).unwrap();
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "stores are removed");
    for row in &run.deletes {
        assert!(row.figure.is_finite() && row.figure >= 0.0, "{row:?}");
    }
    run
}

fn measured(run: &DeletesRun) -> Vec<String> {
    run.deletes.iter().map(|row| format!("{}: {}", row.case, row.measured)).collect()
}

#[test]
fn seeks_come_to_the_live_row_everywhere() {
    let run = ran(&["seek-tables", "seek-memtable", "big-rows"]);
    let rows = measured(&run);
    assert_eq!(rows.len(), 2 * 2 + 2 * 2 * 5 + 2 * 3);
    assert!(rows[0].starts_with("seek-memtable: memtable, forwards, first"), "cases run in their order");
    assert!(rows.iter().any(|row| row == "seek-tables: idle, flushed apart, backwards, median"), "{rows:?}");
    assert!(run.courses.is_empty());
}

#[test]
fn queues_pop_what_was_pushed_in_every_way() {
    let names: Vec<&str> = CASES.iter().map(|case| case.name).collect();
    let queues: Vec<&str> =
        names.into_iter().filter(|name| name.starts_with("queue") || *name == "stack").collect();
    assert_eq!(queues.len(), 7);
    let run = ran_at(20_000.0, &queues);
    assert_eq!((run.deletes.len(), run.courses.len()), (7 * 4, 7));
    for row in run.deletes.iter().filter(|row| row.measured == "pops") {
        assert_eq!(row.figure, 500.0, "{row:?}");
    }
}

#[test]
fn space_has_a_course() {
    let run = ran(&["series", "random", "big-values"]);
    let cases: Vec<&str> = run.courses.iter().map(|course| course.case.as_str()).collect();
    assert_eq!(cases, ["big-values", "series", "random"]);
    for course in &run.courses {
        assert_eq!(course.quantity, Quantity::Space);
        assert!(course.points.iter().all(|point| point.figure > 0.0), "{course:?}");
    }
    let compacted = run.deletes.iter().rfind(|row| row.measured == "compacted, space over live").unwrap();
    assert!(compacted.goal == Some(Goal::AtMost(1.2)), "{compacted:?}");
}

#[test]
fn other_cases_find_what_lives() {
    let run = ran(&["carts", "keyspaces", "range-tombstones"]);
    assert_eq!(run.deletes.len(), 3 + 9 + 2 * 3 * 6);
}

#[test]
fn expired_rows_are_passed_over() {
    let run = ran(&["expiry"]);
    assert_eq!(run.deletes.len(), 2 * 2 * 2);
}

#[test]
fn loop_ends_with_its_time() {
    let dir = tempfile::tempdir().unwrap();
    let choice = Choice { limit_s: 0.0, ..choice(dir.path(), &["queue"]) };
    let run = run(&Terrace::new("default").unwrap(), &choice, &mut |_| ()).unwrap();
    assert_eq!(run.deletes[0].figure, 2.0, "a loop has a first step: {:?}", run.deletes);
}

#[test]
fn only_cases_and_options_that_exist_are_taken() {
    let dir = tempfile::tempdir().unwrap();
    let error = run(&Terrace::new("default").unwrap(), &choice(dir.path(), &["stacks"]), &mut |_| ());
    assert!(error.unwrap_err().to_string().contains("seek-memtable"));
    assert!(Terrace::new("fancy").is_err());
}

#[test]
fn text_says_which_goals_are_met() {
    let row = |measured: &str, figure, goal| Row {
        case: "queue".to_owned(),
        measured: measured.to_owned(),
        figure,
        unit: String::new(),
        goal,
    };
    let of = |engine: &str, deletes| DeletesRun {
        provenance: Provenance::default(),
        seed: 1,
        scale: 1.0,
        engine: engine.to_owned(),
        deletes,
        courses: Vec::new(),
    };
    let one = of("terrace", vec![row("a", 5.0, Some(Goal::AtMost(4.0))), row("b", 5.0, None)]);
    let two = of("other", vec![row("a", 3.0, Some(Goal::AtMost(4.0))), row("c", 1234.0, None)]);
    let (lone, both) = (text(&one), beside(&[one.clone(), two.clone()]));
    assert!(lone.contains("missed") && !lone.contains(" met"), "{lone}");
    assert!(text(&two).contains("met"));
    let lines: Vec<Vec<&str>> = both.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["case", "measured", "unit", "goal", "terrace", "other"]);
    assert_eq!(lines[1], ["queue", "a", "-", "at", "most", "4", "5.00", "3.00"]);
    assert_eq!(lines[3], ["queue", "c", "-", "-", "-", "1234"]);
}
