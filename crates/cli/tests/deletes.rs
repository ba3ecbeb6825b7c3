//! `terrace bench deletes`, on tiny stores.

use crate::common::{Workplace, browser};
use serde_json::Value;

/// Cases of each kind of row and course, but those that wait.
const CASES: &str = "--case seek-memtable --case queue --case series --case range-tombstones";

#[test]
fn chosen_cases_are_measured_stored_and_drawn() {
    let place = Workplace::new();
    let files = "--json deletes.json --html deletes.html";
    let out = place.succeed(&format!("bench deletes {CASES} --scale 1000 --rest-seconds 0 {files}"));
    assert!(out.starts_with("terrace, counts divided by 1000, seed 1\n"), "{out}");
    for row in [
        "memtable, forwards, first",
        "memtable, backwards, median",
        "last tenth over first",
        "peak over live",
        "idle, lookup of a deleted row, median",
    ] {
        assert!(out.contains(row), "{row} in {out}");
    }
    let run: Value = place.read_json("deletes.json");
    let rows = run["deletes"].as_array().expect("rows");
    assert_eq!(rows.len(), out.lines().count() - 2);
    assert_eq!(rows[0]["goal"]["at_most"], 20.0, "{run}");
    for name in ["command", "version", "commit", "machine", "seed", "scale", "engine"] {
        assert!(!run[name].is_null(), "{name} in {run}");
    }
    let quantities: Vec<&Value> =
        run["courses"].as_array().expect("courses").iter().map(|course| &course["quantity"]).collect();
    assert_eq!(quantities, ["pops", "space"]);
    let left: Vec<_> = std::fs::read_dir(place.path(".")).expect("a directory").collect();
    assert_eq!(left.len(), 2, "stores are removed: {left:?}");
    let page = std::fs::read_to_string(place.path("deletes.html")).expect("a page");
    assert!(page.contains("What deletes cost") && page.contains("Space of series"), "{page}");
    place.succeed("bench report deletes.json --html again.html");
    browser::assert_whole(&["deletes.html", "again.html"].map(|page| place.path(page)));
}

#[test]
fn stores_have_the_options_and_the_place_that_are_asked_for() {
    let place = Workplace::new();
    let small = "--scale 1000 --case seek-tables --dir stores";
    let out = place.succeed(&format!("bench deletes {small} --options leveldb-2m:settle=off"));
    assert!(out.starts_with("terrace@leveldb-2m:settle=off, "), "{out}");
    assert_eq!(std::fs::read_dir(place.path("stores")).expect("a directory").count(), 0);
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let place = Workplace::new();
    for (arguments, message) in [
        ("--case stacks", "possible values"),
        ("--scale 0.5", "is not 1 or more"),
        ("--options fancy", "unknown profile"),
        ("--rest-seconds=-1", "--rest-seconds"),
        ("--seconds nan", "--seconds"),
    ] {
        let ran = place.run(&format!("bench deletes {arguments}"));
        assert_eq!(ran.status, 2, "{arguments}");
        assert!(ran.stderr.contains(message), "{arguments}: {}", ran.stderr);
    }
}
