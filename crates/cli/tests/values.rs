//! `terrace bench values`, on tiny stores.

use crate::common::{Workplace, browser};
use serde_json::Value;

#[test]
fn sizes_are_measured_stored_and_drawn() {
    let place = Workplace::new();
    let small =
        "--quick --data-mb 2 --seconds 0.05 --rest-seconds 0 --sizes 4K,mix --separate-from 1024,never";
    let out = place.succeed(&format!("bench values {small} --json values.json --html values.html"));
    for row in ["data 2 MB", "keys-100", "space peak", "lookups over those of terrace-never"] {
        assert!(out.contains(row), "{row} in {out}");
    }
    let run: Value = place.read_json("values.json");
    let cells = run["values"].as_array().expect("cells");
    let names: Vec<_> = cells.iter().map(|cell| (cell["engine"].as_str(), cell["size"].as_str())).collect();
    let (separated, whole) = (Some("terrace-1024"), Some("terrace-never"));
    let (page, mix) = (Some("4096"), Some("mix"));
    assert_eq!(names, [(separated, page), (whole, page), (separated, mix), (whole, mix)]);
    assert_eq!(cells[0]["phases"].as_array().expect("phases").len(), 9);
    for name in ["command", "version", "commit", "machine", "seed", "data_bytes", "memory_bytes"] {
        assert!(!run[name].is_null(), "{name} in {run}");
    }
    let left: Vec<_> = std::fs::read_dir(place.path(".")).expect("a directory").collect();
    assert_eq!(left.len(), 2, "stores are removed: {left:?}");
    let page = std::fs::read_to_string(place.path("values.html")).expect("a page");
    assert!(page.contains("What large values cost") && page.contains("values of mix"), "{page}");
    place.succeed("bench report values.json --html again.html");
    browser::assert_whole(&["values.html", "again.html"].map(|page| place.path(page)));
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let place = Workplace::new();
    for (arguments, message) in [
        ("--sizes 4KiB", "is no size"),
        ("--data-mb 0", "--data-mb"),
        ("--seconds nan", "--seconds"),
        ("--rest-seconds=-1", "--rest-seconds"),
        ("--separate-from often", "neither default nor never"),
        ("--separate-from 0", "separate_from"),
        ("--options fancy", "unknown profile"),
        ("--rounds 0", "--rounds"),
    ] {
        let ran = place.run(&format!("bench values {arguments}"));
        assert_eq!(ran.status, 2, "{arguments}");
        assert!(ran.stderr.contains(message), "{arguments}: {}", ran.stderr);
    }
}
