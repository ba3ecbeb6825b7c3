//! `terrace bench ycsb`, on small stores.

use crate::common::Workplace;
use serde_json::Value;

/// The phases of the run in `file`.
fn phases(place: &Workplace, file: &str) -> Vec<Value> {
    let run: Value = place.read_json(file);
    for name in ["command", "version", "commit", "machine", "seed"] {
        assert!(!run[name].is_null(), "{name} in {run}");
    }
    run["phases"].as_array().expect("phases").clone()
}

#[test]
fn all_phases_run_and_every_value_is_right() {
    let place = Workplace::new();
    let out = place.succeed("bench ycsb --records 300 --operations 400 --threads 2 --json r.json");
    assert!(out.starts_with("terrace (default), "), "{out}");
    let reports = phases(&place, "r.json");
    let phases: Vec<&str> = reports.iter().filter_map(|report| report["workload"].as_str()).collect();
    assert_eq!(phases, ["load", "a", "b", "c", "f", "d", "e"]);
    for report in &reports {
        assert_eq!(report["wrong"], 0, "{report}");
        for number in [
            "records",
            "operations",
            "threads",
            "key_bytes",
            "value_bytes",
            "seed",
            "seconds",
            "ops_per_s",
            "drain_s",
            "space_bytes",
            "logical_bytes",
            "cpu_us_per_op",
            "stall_ms",
            "verified",
            "harness_us_per_op",
        ] {
            assert!(report[number].is_number(), "{number} in {report}");
        }
        for pointer in
            ["/io/written_bytes/total", "/io/written_bytes/wal", "/io/read_bytes/get", "/syncs/total"]
        {
            assert!(report.pointer(pointer).is_some_and(Value::is_u64), "{pointer} in {report}");
        }
        for name in ["engine", "profile", "write_amplification", "cache_hit_ratio"] {
            assert!(report.get(name).is_some(), "{name} in {report}");
        }
    }
    assert_eq!(reports[0]["operations"], 300);
    assert!(reports[0]["write_amplification"].as_f64() > Some(0.5));
    for report in &reports[1..] {
        assert_eq!(report["operations"], 400);
        assert!(report["verified"].as_u64() >= Some(100), "{report}");
    }
    for report in &reports {
        let intervals = report["recording"]["intervals"].as_array().expect("intervals");
        let counted: u64 = intervals.iter().filter_map(|interval| interval["operations"].as_u64()).sum();
        assert_eq!(Some(counted), report["operations"].as_u64(), "{report}");
    }
    let update = &reports[1]["latency_us"]["update"];
    for digest in ["p50", "p95", "p99", "p999", "max"] {
        assert!(update[digest].as_f64() > Some(0.0), "{digest} in {update}");
    }
}

#[test]
fn property_files_and_single_properties_shape_the_run() {
    let place = Workplace::new();
    place.write(
        "w",
        "recordcount=50\noperationcount=60\nfieldcount=2\nfieldlength=20\nreadproportion=1\nwheel=round\n",
    );
    let ran =
        place.run("bench ycsb -P w -p updateproportion=0 -p recordcount=70 --key-bytes 16 --json r.json");
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert_eq!(ran.stderr, "terrace: property wheel has no meaning here\n");
    let reports = phases(&place, "r.json");
    assert_eq!((&reports[0]["workload"], &reports[0]["records"]), (&"load".into(), &70.into()));
    assert_eq!((&reports[1]["workload"], &reports[1]["operations"]), (&"run".into(), &60.into()));
    assert_eq!((&reports[1]["value_bytes"], &reports[1]["key_bytes"]), (&40.into(), &16.into()));
    assert_eq!(reports[1]["verified"], 60);
}

#[test]
fn directory_stays_and_only_its_owner_goes_on_with_it() {
    let place = Workplace::new();
    let small = "--records 100 --operations 100 --value-bytes 30 --json r.json";
    place.succeed(&format!("bench ycsb --db kept --phases load,a --profile leveldb-2m {small}"));
    let ran = place.run(&format!("bench ycsb --db kept --phases a {small}"));
    assert_eq!(ran.status, 2);
    assert!(ran.stderr.starts_with("terrace: kept is not empty"), "{}", ran.stderr);
    place.succeed(&format!("bench ycsb --db kept --use-existing --phases a --sync {small}"));
    let reports = phases(&place, "r.json");
    assert_eq!((&reports[0]["wrong"], &reports[0]["records"]), (&0.into(), &100.into()));
    assert!(reports[0]["syncs"]["total"].as_u64() > Some(0), "{}", reports[0]["syncs"]);
    assert_eq!(place.succeed("count kept"), "100\n");
}

#[test]
fn tables_go_to_a_second_device_as_the_placer_says() {
    let place = Workplace::new();
    let small = "--phases load --records 10000 --value-bytes 300 --memory-bytes 2000000 --json r.json";
    for (placer, has_both) in [("mod2", true), ("home", false)] {
        let profile = format!("leveldb-2m:placer={placer}");
        let stores = format!("--db {placer}-home --device {placer}-other");
        place.succeed(&format!("bench ycsb {stores} --profile {profile} {small}"));
        let devices = &phases(&place, "r.json")[0]["device_bytes"];
        let bytes = |device: &str| devices[device].as_u64().unwrap();
        assert!(bytes("0") + bytes("1") > 0 && (bytes("1") > 0) == has_both, "{placer}: {devices}");
    }
    assert_eq!(place.succeed("count home-home"), "10000\n");
    assert_eq!(place.run(&format!("bench ycsb --device other {small}")).status, 2);
}

#[test]
fn damaged_store_is_not_gone_on_with() {
    let place = Workplace::new();
    let small = "--records 100 --operations 300 --value-bytes 30";
    place.succeed(&format!("bench ycsb --db kept --phases load {small}"));
    let first = place.succeed("scan kept --limit 1 --keys-only");
    place.succeed(&format!("put kept {} damaged", first.trim()));
    let ran = place.run(&format!("bench ycsb --db kept --use-existing --phases c {small}"));
    assert_eq!(ran.status, 2);
    assert!(ran.stderr.contains(first.trim()), "{}", ran.stderr);
}

#[test]
fn impossible_settings_are_refused_before_anything_is_made() {
    let place = Workplace::new();
    for (arguments, message) in [
        ("--phases load,q", "unknown phase \"q\""),
        ("--phases c", "needs records"),
        ("--profile fancy", "unknown profile \"fancy\""),
        ("--value-bytes 4", "values of 4 bytes"),
        ("--threads 0", "0 threads"),
        ("-P missing", "cannot read missing"),
    ] {
        let ran = place.run(&format!("bench ycsb {arguments}"));
        assert_eq!(ran.status, 2, "{arguments}");
        assert!(ran.stderr.contains(message), "{arguments}: {}", ran.stderr);
    }
    assert_eq!(place.run("bench ycsb --seconds 0").status, 2);
    assert_eq!(place.run("bench ycsb -p nothing").status, 2);
}

fn read(place: &Workplace, file: &str) -> String {
    std::fs::read_to_string(place.path(file)).expect("a file")
}

#[test]
fn runs_are_drawn_on_pages() {
    let place = Workplace::new();
    let small = "--phases load,a --records 300 --operations 400 --value-bytes 30";
    place.succeed(&format!("bench ycsb {small} --json one.json --html one.html"));
    place.succeed("bench db --benchmarks=fillrandom --num=500 --seed=1 --json two.json");
    place.succeed("bench report one.json two.json --html both.html");
    let (one, both) = (read(&place, "one.html"), read(&place, "both.html"));
    for title in ["Phase load", "Phase a", "Latency by percentile", "bench ycsb --phases load,a"] {
        assert!(one.contains(title) && both.contains(title), "{title}");
    }
    assert!(both.contains("Phase fillrandom") && both.contains("bench db --benchmarks=fillrandom"));
    place.write("empty.json", "{}");
    let ran = place.run("bench report empty.json");
    assert_eq!(ran.status, 2);
    assert!(ran.stderr.starts_with("terrace: empty: neither phases"), "{}", ran.stderr);
}

/// Of a real run: three samples of a load, which reads nothing, and eight of phase a, whose reads miss the cache and come to take
/// more than three quarters of the 9 MB/s.
const RECORDED: &str = include_str!("recorded.json");

#[test]
fn a_recorded_load_is_judged_by_its_own_and_by_another_pacer() {
    let place = Workplace::new();
    place.write("run.json", RECORDED);
    let own = place.succeed("bench replay run.json");
    let (load, a) = own.split_once("\n\n").expect("two phases");
    let name = "dlc-full:interval_ms=20:bandwidth=9M";
    let head = format!("load, {name}: 3 samples, load high in 0 %, writers held back in 0 %\nat s ");
    assert!(load.starts_with(&head) && load.lines().count() == 5, "{own}");
    let head = format!("a, {name}: 8 samples, load high in 62 %, writers held back in 0 %\n");
    assert!(a.starts_with(&head) && a.contains("\nlevel 0: put off in 62 %, suspended in 0 %\n"), "{own}");
    // Five of the eight are high: after three in a row above the limit, until three in a row are below it.
    let rows: Vec<Vec<&str>> = a.lines().skip(5).map(|line| line.split_whitespace().collect()).collect();
    let classes: Vec<&str> = rows.iter().map(|row| row[1]).collect();
    assert_eq!(classes, ["low", "low", "low", "high", "high", "high", "high", "high"], "{own}");
    assert_eq!(
        (&rows[3][..4], own.matches("put off: peak").count()),
        (&["1.1", "high", "9.0", "0.5"][..], 15)
    );
    // Whatever clients did, it is more than 1 % of a megabyte a second.
    let busy = "dlc-full:estimator=operations:bandwidth=1M:high_percent=1:low_percent=0";
    let other = place.succeed(&format!("bench replay run.json --phase a --profile {busy}"));
    assert!(other.starts_with(&format!("a, {busy}: 8 samples, load high in 100 %, ")), "{other}");
    assert_eq!(other.matches("put off: peak").count(), 24, "{other}");
    let never = place.succeed("bench replay run.json --phase a --profile default");
    assert!(never.starts_with("a, default: 8 samples, load high in 0 %, ") && !never.contains("put off"));
    assert_eq!(place.run("bench replay run.json --phase f").status, 1);
    assert_eq!(place.run("bench replay run.json --profile fancy").status, 2);
    place.write("empty.json", "{}");
    let ran = place.run("bench replay empty.json");
    assert!(ran.status == 2 && ran.stderr.contains("no sample of the load"), "{}", ran.stderr);
}

/// A run of its own writes gigabytes: that it is taken and how a stored one is drawn is what can be had for little.
#[test]
fn holes_are_drawn_on_pages() {
    let place = Workplace::new();
    let ran = place.run("bench punch --dir missing --json holes.json --html holes.html");
    assert!(ran.status == 2 && ran.stderr.contains("No such file"), "{}", ran.stderr);
    place.write(
        "holes.json",
        r#"{"command": "terrace bench punch", "version": "1", "commit": "c", "machine": {}, "seed": 1,
            "file_system": "vfat", "punches": false, "files": [], "churn": null}"#,
    );
    place.succeed("bench report holes.json --html holes.html");
    let page = read(&place, "holes.html");
    assert!(
        page.contains("Holes in files on vfat") && page.contains("Holes cannot be punched here"),
        "{page}"
    );
}

const CALM: &str = "--records 3000 --value-bytes 100 --memtable-bytes 262144 --cache-bytes 1048576 --rest-seconds 0 --seconds 1";

#[test]
fn calm_runs_at_each_level_and_is_drawn() {
    let place = Workplace::new();
    let short = "--warm-up 0.5 --floor-seconds 0.5 --capacity 4000 --levels 20,40";
    let out = place.succeed(&format!("bench calm {CALM} {short} --json calm.json --html calm.html"));
    assert!(out.starts_with("3000 records of 16 + 100 bytes, 50 % updates, uniform, seed 1\n"), "{out}");
    let run: Value = place.read_json("calm.json");
    assert_eq!(run["settings"]["records"], 3000);
    let engine = &run["calm"][0];
    assert_eq!((engine["engine"].as_str(), engine["wrong"].as_u64()), (Some("terrace"), Some(0)));
    let levels = engine["levels"].as_array().expect("levels");
    for (level, rate) in levels.iter().zip([800.0, 1600.0]) {
        assert_eq!(level["rate"], rate, "{level}");
        // Each window is of one kind. How many there are is up to the machine.
        let kinds = ["warm_up", "stolen", "kept"].map(|kind| level["windows"][kind].as_u64().expect(kind));
        assert_eq!(level["course"].as_array().map(Vec::len), Some(kinds.iter().sum::<u64>() as usize));
        assert!(kinds[0] > 0, "{level}");
        // On a busy machine none of the floor's windows may count: then there is no figure of it.
        assert!(level.get("floor").is_some(), "{level}");
        let told: Vec<_> =
            level["splits"].as_array().expect("splits").iter().map(|one| &one["told"]).collect();
        assert_eq!(told, ["outside", "inside"]);
    }
    assert_eq!(levels.len(), 2);
    place.succeed("bench report calm.json --html again.html");
    for page in [read(&place, "calm.html"), read(&place, "again.html")] {
        for title in
            ["Do clients notice the background?", "How well background work shows", "terrace at 40 %"]
        {
            assert!(page.contains(title), "{title} in {page}");
        }
        assert!(page.is_ascii());
    }
}

/// It may be nothing, where clients get no processor.
#[test]
fn levels_are_shares_of_the_capacity_that_is_found() {
    let place = Workplace::new();
    let short = "--warm-up 0 --floor-seconds 0 --capacity-seconds 1,1 --levels 20";
    let out = place.succeed(&format!("bench calm {CALM} {short} --json calm.json"));
    assert!(out.contains("terrace: sustained capacity"), "{out}");
    let run: Value = place.read_json("calm.json");
    let (engine, number) = (&run["calm"][0], |value: &Value| value.as_f64().expect("a number"));
    let (found, level) = (number(&engine["capacity"]["ops_per_s"]), number(&engine["levels"][0]["rate"]));
    assert!((level - 0.2 * found).abs() <= 1e-6 * found, "{engine}");
    assert!(engine["capacity"]["blocks"].as_array().map(Vec::len) >= Some(2), "{engine}");
}

#[test]
fn layouts_are_mapped_and_drawn() {
    let place = Workplace::new();
    let small = "--mixes load,half --shapes popular --ratios 0.2 --scale 128 --layouts default,tiered";
    let out = place.succeed(&format!("bench layouts {small} --json map.json --html map.html"));
    assert!(out.contains("operations per second, keys popular"), "{out}");
    let map: Value = place.read_json("map.json");
    assert_eq!((map["scale"].as_f64(), map["memory_bytes"].as_u64()), (Some(128.0), Some(4 << 20)));
    assert_eq!(map["layout_map"].as_array().map(Vec::len), Some(2));
    place.succeed("bench report map.json --html again.html");
    for page in [read(&place, "map.html"), read(&place, "again.html")] {
        assert!(page.contains("Which layout wins where") && page.contains("tiered"), "{page}");
    }
    let ran = place.run("bench layouts --scale 0.5");
    assert!(ran.status == 2 && ran.stderr.contains("--scale: 0.5 is not 1 or more"), "{}", ran.stderr);
}

#[test]
fn calm_refuses_what_cannot_be_measured() {
    let place = Workplace::new();
    place.write("file", "x");
    for (arguments, message) in [
        ("--records 0", "0 records"),
        ("--levels 0", "levels are above 0 %"),
        ("--value-bytes 4", "values of 4 bytes"),
        ("--profile fancy", "unknown profile \"fancy\""),
        ("--capacity-seconds 5", "--capacity-seconds takes two numbers"),
        ("--clients 0", "0 clients"),
        ("--path .", ". is not empty"),
    ] {
        let ran = place.run(&format!("bench calm {arguments}"));
        assert!(ran.status == 2 && ran.stderr.contains(message), "{arguments}: {}", ran.stderr);
    }
}
