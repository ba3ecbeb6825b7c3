//! Every kind of page, opened in a real browser: no text or field lies outside of its picture, and no picture outside of its
//! figure. Skipped where there is no Chromium.

use std::path::Path;

use crate::common::{Workplace, browser};

/// Comparisons, figures of papers, calm and maps of layouts, as they were measured.
#[test]
fn pages_of_the_stored_runs_are_whole() {
    let place = Workplace::new();
    let stored = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/benchmarks");
    let files = std::fs::read_dir(stored).expect("stored runs").map(|entry| entry.expect("an entry").path());
    let mut pages = Vec::new();
    // A summary of several commands is no run of the tool, nor is what Python has measured.
    let is_run = |path: &std::path::PathBuf| {
        let is_other = ["two-disks.json", "python.json"].iter().any(|name| path.ends_with(name));
        path.extension().is_some_and(|end| end == "json") && !is_other
    };
    for file in files.filter(is_run) {
        let name = file.file_stem().and_then(|name| name.to_str()).expect("a name").to_owned() + ".html";
        place.succeed(&format!("bench report {} --html {name}", file.display()));
        pages.push(place.path(&name));
    }
    assert!(pages.len() >= 10, "{pages:?}");
    browser::assert_whole(&pages);
}

#[test]
fn pages_of_short_runs_are_whole() {
    let place = Workplace::new();
    let small = "--phases load,a,e --records 2000 --operations 2000 --value-bytes 100";
    place.succeed(&format!("bench ycsb {small} --json one.json --html one.html"));
    place.succeed("bench db --benchmarks=fillrandom,readrandom --num=2000 --seed=1 --json two.json");
    place.succeed("bench report one.json two.json --html both.html");
    place.write("holes.json", HOLES);
    place.succeed("bench report holes.json --html holes.html");
    browser::assert_whole(&["one.html", "both.html", "holes.html"].map(|page| place.path(page)));
}

/// Of `terrace bench punch`, which writes gigabytes, with two sizes of holes and two parts of its churn.
const HOLES: &str = r#"{"command": "terrace bench punch", "version": "1", "commit": "c", "machine": {}, "seed": 1,
    "file_system": "ext4", "punches": true,
    "files": [
        {"hole_bytes": 0, "holes": 0, "sync_us": 400.0, "data_ranges": 1, "unlink_us": 333.0,
         "punch_us": {"count": 0, "mean": 0.0, "p50": 0.0, "p95": 0.0, "p99": 0.0, "p999": 0.0, "max": 0.0}},
        {"hole_bytes": 1048576, "holes": 9, "sync_us": 800.0, "data_ranges": 9, "unlink_us": 555.0,
         "punch_us": {"count": 9, "mean": 8.0, "p50": 7.0, "p95": 8.0, "p99": 9.0, "p999": 9.0, "max": 90.0}}],
    "churn": {"written_bytes": 2000000000, "live_bytes": 1000000000, "punched_bytes": 900000000, "parts": [
        {"written_bytes": 1000000000, "write_mb_per_s": 500.0, "new_extents": 1.5, "extents": 7.5, "packs": 40,
         "punch_us": {"count": 5, "mean": 8.0, "p50": 7.0, "p95": 8.0, "p99": 9.0, "p999": 9.0, "max": 90.0},
         "unlink_us": {"count": 5, "mean": 8.0, "p50": 7.0, "p95": 8.0, "p99": 9.0, "p999": 9.0, "max": 90.0}},
        {"written_bytes": 2000000000, "write_mb_per_s": 450.0, "new_extents": 1.7, "extents": 9.5, "packs": 41,
         "punch_us": {"count": 6, "mean": 8.0, "p50": 7.0, "p95": 8.0, "p99": 9.0, "p999": 9.0, "max": 80.0},
         "unlink_us": {"count": 6, "mean": 8.0, "p50": 7.0, "p95": 8.0, "p99": 9.0, "p999": 9.0, "max": 99.0}}]}}"#;

/// What the tests above look for is found where it is.
#[test]
fn what_is_cut_off_is_found() {
    let Some(browser) = browser::find() else { return };
    let place = Workplace::new();
    let page = |picture: &str, rect: &str| {
        let css = "figure { margin: 0; width: 560px; } svg { max-width: 100%; height: auto; }";
        format!(
            "<!DOCTYPE html><html><head><style>{css}</style></head><body><figure><figcaption>map</figcaption>\
             <svg width=\"704\" height=\"100\" {picture}><rect {rect} height=\"9\"></rect></svg></figure></body></html>"
        )
    };
    let whole = "viewBox=\"0 0 704 100\"";
    for (picture, rect, count) in [
        (whole, "x=\"600\" width=\"90\"", 0),
        ("", "x=\"600\" width=\"90\"", 1),
        (whole, "x=\"640\" width=\"90\"", 1),
        ("style=\"max-width: none\"", "x=\"1\" width=\"9\"", 1),
    ] {
        place.write("page.html", page(picture, rect));
        let faults = browser::faults(browser, &[place.path("page.html")]);
        assert_eq!(faults.len(), count, "{picture} {rect}: {faults:?}");
    }
}
