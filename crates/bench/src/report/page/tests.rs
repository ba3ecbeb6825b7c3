//! Tests with pages of made-up runs.

use serde_json::json;

use super::*;

fn page(json: Value) -> String {
    html(&[Stored::new("run <1>", json).unwrap()]).unwrap()
}

fn ycsb(workload: &str) -> Value {
    let interval = |start: f64, operations: u64| {
        json!({
            "start_s": start, "seconds": 1.0, "operations": operations,
            "latency_us": {"insert": {"count": operations, "p50": 3.0, "p99": 20.0, "max": 900.0}},
            "written_bytes": {"wal": 1_000_000}, "syncs": {"wal": 1}, "space_bytes": 5_000_000,
            "level_bytes": [1_000_000, 4_000_000], "cache_hits": 3, "cache_misses": 1,
        })
    };
    let summary =
        json!({"count": 30, "mean": 3.0, "p50": 3.0, "p95": 5.0, "p99": 20.0, "p999": 90.0, "max": 900.0});
    json!({
        "engine": "terrace", "profile": "default", "workload": workload, "ops_per_s": 15.0,
        "latency_us": {"insert": summary}, "write_amplification": 2.5, "syncs": {"total": 2, "wal": 2},
        "recording": {
            "interval_s": 1.0, "intervals": [interval(0.0, 10), interval(1.0, 20)],
            "spans": [{"job": "flush", "detail": "", "start_s": 0.5, "seconds": 0.2, "bytes": 7}],
            "latency_curves_us": {"insert": [[0.0, 1.0], [0.5, 3.0], [0.99, 20.0], [1.0, 900.0]]},
        },
    })
}

#[test]
fn phases_have_their_pictures_tables_and_provenance() {
    let page = page(json!({
        "command": "terrace bench ycsb", "version": "0.1.0", "commit": "abc", "seed": 7,
        "machine": {"cpu": "fast", "memory_bytes": 24_000_000_000_u64}, "phases": [ycsb("load")],
    }));
    for title in [
        "Throughput; under it flushes, compactions and stalls",
        "99th percentile of each interval; under it flushes, compactions and stalls",
        "Latency by percentile",
        "Cache hits",
        "Space on the disk",
        "Writing by cause",
        "Shape of the tree",
        "Syncs by cause",
        "write amplification",
        "terrace bench ycsb",
        "cpu fast, memory 24.0 GB",
    ] {
        assert!(page.contains(title), "{title} in {page}");
    }
    assert!(page.contains("run &lt;1&gt;") && !page.contains("run <1>"));
}

#[test]
fn page_needs_nothing_else_and_is_ascii() {
    let page = page(json!({ "phases": [ycsb("a")] }));
    let links = page.replace("http://www.w3.org/2000/svg", "");
    assert!(!links.contains("http") && !links.contains("<script") && !links.contains("<link"), "{page}");
    assert!(page.is_ascii());
}

#[test]
fn runs_share_the_pictures_of_a_phase() {
    let run = |name: &str, commit: &str| {
        Stored::new(name, json!({ "commit": commit, "phases": [ycsb("load")] })).unwrap()
    };
    let page = html(&[run("old", "aaa"), run("new", "bbb")]).unwrap();
    assert_eq!(page.matches("Phase load").count(), 1);
    assert_eq!(page.matches("Throughput; under it").count(), 1);
    assert_eq!(page.matches("99th percentile of each interval: insert; under it").count(), 1);
    assert!(page.contains("1: old: terrace at aaa") && page.contains("2: new: terrace at bbb"), "{page}");
    for row in ["1 flush", "1 compaction", "1 stall", "2 flush", "2 compaction", "2 stall"] {
        assert_eq!(page.matches(&format!("\n{row}\n")).count(), 2, "{row} under both pictures: {page}");
    }
}

#[test]
fn a_phase_of_one_interval_has_a_line_all_the_same() {
    let mut short = ycsb("c");
    short["recording"]["intervals"].as_array_mut().unwrap().truncate(1);
    let page = page(json!({ "phases": [short] }));
    let throughput = page.split("</figure>").next().unwrap();
    let ends = throughput.matches("<circle").count();
    assert_eq!(ends, 2, "both ends of the interval: {throughput}");
}

#[test]
fn every_phase_has_rows_of_jobs_also_one_without_any() {
    let mut idle = ycsb("c");
    idle["recording"]["spans"] = json!([]);
    let page = page(json!({ "phases": [ycsb("load"), idle] }));
    for title in ["Throughput; under it", "99th percentile of each interval; under it"] {
        assert_eq!(page.matches(title).count(), 2, "{title}");
    }
    for row in ["flush", "compaction", "stall"] {
        assert_eq!(page.matches(&format!("\n{row}\n")).count(), 4, "{row}");
    }
}

#[test]
fn ratios_have_bars_and_numbers() {
    let ratio = |peer: &str, advantage: f64| {
        json!({"workload": "load", "metric": "ops/s", "peer": peer, "advantage": advantage, "low": advantage * 0.9,
               "high": advantage * 1.1})
    };
    let result = json!({"engine": "terrace", "workload": "load", "metric": "ops/s", "unit": "1/s",
                        "higher_is_better": true, "median": 123.0, "rounds": [120.0, 123.0, 125.0]});
    let page = page(json!({
        "machine": "a box", "calibration": {"disk_mb_per_s": [1, 2], "steal": 0.070521728161}, "results": [result],
        "ratios": [ratio("fjall", 1.25), ratio("lmdb", 0.4)],
    }));
    for word in
        ["1.25", "0.40", "load, fjall", "median of 3 rounds", "123", "disk mb per s 1; 2, steal 0.0705<"]
    {
        assert!(page.contains(word), "{word} in {page}");
    }
}

#[test]
fn comparisons_have_the_course_of_each_engines_first_turn() {
    let turn = |engine: &str, round: u64, curve: Value| {
        json!({"engine": engine, "workload": "ycsb-a", "round": round, "series": vec![5; 25],
               "latency": {"read": {"count": 9, "curve": curve}}, "p99": {"read": [7.0, null]}, "notes": []})
    };
    let page = page(json!({
        "engines": [{"engine": "fjall", "version": "3.1"}],
        "turns": [turn("fjall", 1, json!([[0.0, 1.0], [0.5, 2.0]])), turn("fjall", 2, json!([])),
                  turn("terrace@bolt-gc", 1, json!([[0.0, 1.0], [0.5, 3.0]])), turn("empty", 1, json!([]))],
        "results": [{"engine": "fjall", "workload": "ycsb-a", "metric": "ops/s", "median": 50.0}],
    }));
    for word in [
        "Phase ycsb-a",
        "p99, us",
        "Latency by percentile: read",
        "1: fjall",
        "2: terrace@bolt-gc",
        "engine fjall, version 3.1",
    ] {
        assert!(page.contains(word), "{word} in {page}");
    }
    assert!(!page.contains("3: ") && !page.contains("Figures"), "{page}");
}

#[test]
fn several_engines_have_a_picture_for_each_kind_in_their_own_inks() {
    let turn = |engine: u32| {
        let curve = json!({"count": 9, "curve": [[0.0, 1.0], [0.5, 2.0]]});
        // The first engine has no writes.
        let latency =
            if engine == 0 { json!({"read": curve}) } else { json!({"read": curve, "write": curve}) };
        json!({"engine": format!("engine {engine}"), "workload": "ycsb-a", "round": 1, "latency": latency})
    };
    let page = |engines: u32| {
        let turns: Vec<Value> = (0..engines).map(turn).collect();
        let results = json!([{"engine": "engine 0", "workload": "ycsb-a", "metric": "ops/s", "median": 5.0}]);
        page(json!({"turns": turns, "results": results}))
    };
    let two = page(2);
    let titles = ["Latency by percentile<", "percentile: read<", "percentile: write<"];
    assert_eq!(titles.map(|title| two.contains(title)), [false, true, true]);
    let second = "stroke=\"#0072B2\" stroke-width=\"2.5\"></line></svg> 2: engine 1<";
    assert_eq!(two.matches(second).count(), 2, "{two}");
    assert_eq!(page(1).matches("Latency by percentile<").count(), 1);
}

#[test]
fn what_terrace_says_of_itself_is_drawn_apart_and_called_so() {
    let turn = |engine: &str, course: Value| {
        json!({"engine": engine, "workload": "ycsb-a", "round": 1, "series": vec![5; 21],
               "latency": {"read": {"count": 9, "curve": [[0.0, 1.0], [0.5, 2.0]]}}, "p99": {"read": [7.0, 8.0]},
               "terrace_course": course})
    };
    let interval = |start: f64| {
        json!({"start_s": start, "seconds": 1.0, "cache_hits": 3, "cache_misses": 1, "level_bytes": [0, 4_000_000],
               "written_bytes": {"wal": 5_000_000}, "syncs": {"flush": 2}})
    };
    let span = |start: f64| json!({"job": "compaction", "detail": "0 to 1", "start_s": start, "seconds": 0.5, "bytes": 1});
    let course = json!({"interval_s": 1.0, "intervals": [interval(0.0), interval(1.0), interval(2.0)],
                        "spans": [span(0.5), span(2.5)], "latency_curves_us": {}});
    let results = json!([{"engine": "terrace", "workload": "ycsb-a", "metric": "ops/s", "median": 50.0}]);
    let drawn = |course| {
        let turns = [turn("fjall", Value::Null), turn("terrace", course)];
        page(json!({"turns": turns, "results": results}))
    };
    let with = drawn(course.clone());
    for word in [
        "Throughput; under it flushes, compactions and stalls, as Terrace reports of itself",
        "99th percentile of each interval: read; under it flushes, compactions and stalls, as Terrace reports",
        "Terrace, as it reports of itself",
        "Its peers cannot be observed so",
        "Phase ycsb-a, as Terrace reports of itself",
        "Syncs by cause",
        "Shape of the tree at the end",
        "Cache hits",
        "\n2 compaction\n",
    ] {
        assert!(with.contains(word), "{word} in {with}");
    }
    assert!(!with.contains("1 compaction"), "others tell of no jobs");
    // Three intervals with two syncs each; what was written without a sync is told as well.
    assert!(with.contains("flush<small>syncs") && with.contains(">6<i") && with.contains("wal<small>MB"));
    let idle =
        json!({"interval_s": 1.0, "intervals": [{"seconds": 1.0}], "spans": [], "latency_curves_us": {}});
    let mut other = turn("terrace", idle);
    other["workload"] = json!("get-u");
    let both = page(json!({"turns": [turn("terrace", course.clone()), other], "results": results}));
    assert!(both.contains("<td>get-u</td><td class=\"bar\">0<i"), "no sync is none: {both}");
    let mark = r##"fill="#0072B2" stroke="none""##;
    let marks = with.lines().filter(|line| line.starts_with("<rect") && line.contains(mark)).count();
    assert_eq!(marks, 2, "one in each picture, none for what came after its end: {with}");
    let without = drawn(Value::Null);
    assert!(!without.contains("itself") && !without.contains("Syncs by cause"), "{without}");
}

#[test]
fn bars_are_not_scaled_by_what_is_no_engine() {
    let figure = |engine: &str, median: f64| {
        json!({"engine": engine, "workload": "load", "metric": "ops/s", "unit": "1/s", "median": median,
               "rounds": [median]})
    };
    let (mut absent, mut other) = (figure("redb", 0.0), figure("redb", 7.0));
    (absent["median"], other["workload"]) = (Value::Null, json!("get"));
    let (terrace, lmdb) = (figure("terrace", 200.0), figure("lmdb", 100.0));
    let page = page(json!({"results": [figure("empty", 9e6), terrace, lmdb, absent, other]}));
    assert!(page.contains("200<i style=\"width:72.0px\"") && page.contains("100<i style=\"width:36.0px\""));
    assert!(page.contains("9M<i class=\"none\"></i>") && page.contains("empty</b> is no engine"), "{page}");
    assert!(
        page.contains("-<i class=\"none\"></i>") && !page.contains("<i></i>"),
        "nothing has no bar: {page}"
    );
}

#[test]
fn experiments_have_series_and_relations() {
    let axis = |label: &str| json!({"label": label, "unit": "MB", "logarithmic": true, "categories": []});
    let experiment = json!({
        "id": "bolt-4a", "paper": "BoLT", "title": "Barriers", "workload": "load", "version": "0.1.0",
        "command": "terrace bench paper", "commit": "abc", "machine": {"cpu": "fast", "cpus": 2},
        "device": {"kind": "simulated", "name": "sata", "model": {"sync": "3 ms"}}, "scale": 10.0, "seed": 1,
        "x": axis("table"), "missing": [{"name": "HyperLevelDB", "needs": "HyperLevelDB"}], "deviations": ["smaller"],
        "series": [{"name": "leveldb", "profile": "x", "configuration": {}, "y": axis("time"),
                    "points": [[2.0, 10.0], [4.0, 5.0]]}],
        "relations": [{"name": "linear", "expected": "about 1", "measured": "3", "holds": false}],
    });
    for page in [page(experiment.clone()), page(json!([experiment]))] {
        for word in ["bolt-4a", "table, MB", "time, MB", "leveldb", "needs HyperLevelDB", ">NO<", "sync 3 ms"]
        {
            assert!(page.contains(word), "{word} in {page}");
        }
        for word in ["terrace bench paper", "<dd>abc</dd>", "cpu fast"] {
            assert!(page.contains(word), "{word} in {page}");
        }
    }
}

#[test]
fn holes_have_their_costs_by_size_and_their_churn_in_parts() {
    let latency = |count: u64| json!({"count": count, "mean": 8.0, "p50": 7.0, "p95": 8.0, "p99": 9.0, "p999": 9.0, "max": 90.0});
    let file = |hole_bytes: u64, holes: u64| {
        json!({"hole_bytes": hole_bytes, "holes": holes, "punch_us": latency(holes), "sync_us": 400.0,
               "data_ranges": holes + 1, "unlink_us": 333.0})
    };
    let part = |number: u64| {
        json!({"written_bytes": number * 1_000_000_000, "write_mb_per_s": 500.0, "new_extents": 1.5,
               "extents": 7.5, "packs": 40, "punch_us": latency(5), "unlink_us": latency(3)})
    };
    let parts: Vec<Value> = (1..=10).map(part).collect();
    let run = |punches: bool| {
        json!({"command": "terrace bench punch", "version": "0.1.0", "commit": "abc", "seed": 7,
               "machine": {"cpu": "fast", "cpus": 2, "memory_bytes": 1, "kernel": "k"},
               "file_system": "ext4", "punches": punches,
               "files": if punches { vec![file(0, 0), file(4096, 9), file(1 << 20, 9)] } else { Vec::new() },
               "churn": punches.then(|| json!({"written_bytes": 10_000_000_000_u64, "live_bytes": 1_000_000_000,
                                               "punched_bytes": 4_000_000_000_u64, "parts": parts}))})
    };
    let drawn = page(run(true));
    for word in [
        "Holes in files on ext4",
        "Cost of a punch<",
        "time of the call, us",
        "\n4 KiB\n",
        "\n1 MiB\n",
        "stretches of data left",
        "Sync and removal behind the holes",
        "Speed of writing new packs, in ten parts",
        "Extents of packs, in ten parts",
        "Removal of punched packs, in ten parts",
        "written since the beginning, GB",
        "10.0 GB written in packs of 32 MiB, 1.0 GB of them live at a time, 4.0 GB punched",
        ">terrace bench punch<",
        "<dd>abc</dd>",
        "<dd>7</dd>",
        "cpu fast",
    ] {
        assert!(drawn.contains(word), "{word} in {drawn}");
    }
    // Of 4 KiB in 8 us, a mebibyte takes 256 times as long.
    assert!(drawn.contains("2.05k<i"), "{drawn}");
    assert!(page(run(false)).contains("Holes cannot be punched here"));
}

#[test]
fn json_without_anything_to_draw_is_refused() {
    for json in [json!({}), json!([]), json!(7), json!({"phases": [{"ops_per_s": 1.0}]})] {
        let error = Stored::new("x.json", json).unwrap_err().to_string();
        assert!(error.starts_with("x.json: "), "{error}");
    }
}

fn deletes(engine: &str, first_us: f64) -> Value {
    json!({
        "command": "terrace bench deletes", "version": "1", "commit": "abc", "machine": {}, "seed": 3,
        "scale": 10.0, "engine": engine,
        "deletes": [
            {"case": "seek-memtable", "measured": "memtable, first", "figure": first_us, "unit": "us",
             "goal": {"at_most": 20.0}},
            {"case": "queue", "measured": "last tenth", "figure": 0.0, "unit": "pops/s",
             "goal": {"at_least": 100_000.0}},
            {"case": "queue", "measured": "pops", "figure": 5.0, "unit": "", "goal": null}],
        "courses": [
            {"case": "queue", "quantity": "pops", "points": [
                {"at_s": 0.1, "figure": 90_000.0, "against": 100_000.0},
                {"at_s": 0.2, "figure": 0.0, "against": 100_000.0}]},
            {"case": "series", "quantity": "space", "points": [
                {"at_s": 0.1, "figure": 5e6, "against": 4e6}, {"at_s": 0.2, "figure": 6e6, "against": 4e6}]}],
    })
}

#[test]
fn deletes_stand_beside_their_goals_for_one_engine_and_for_several() {
    let one = page(deletes("terrace", 12.0));
    for words in [
        "What deletes cost",
        "terrace, counts divided by 10",
        "times its goal",
        "memtable, first: 12 us",
        "Space of series",
        "Pops from queues and stacks",
        "<td class=\"misses\">0</td>",
        "<td>12</td>",
        "at least 100000",
        "<dd>3</dd>",
    ] {
        assert!(one.contains(words), "{words} in {one}");
    }
    assert!(!one.contains("inf") && !one.contains("NaN"), "{one}");
    let both = page(json!([deletes("terrace", 12.0), deletes("rocksdb", 40.0)]));
    assert!(both.contains("<td>12</td><td class=\"misses\">40</td>"), "{both}");
    assert_eq!(both.matches("Space of series").count(), 2);
}

fn values(engine: &str, role: &str, size: &str, rate: f64) -> Value {
    let phase = |name: &str| {
        json!({
            "name": name, "start_s": 0.0, "seconds": 1.0, "drain_s": 0.5, "is_cut_off": false, "operations": 9, "rows": 9,
            "user_bytes": 900, "ops_per_s": rate, "drained_ops_per_s": rate, "user_bytes_per_s": rate * 1e6,
            "written_bytes": null, "told_written_bytes": null, "written_over_user": 2.5, "told_over_user": null,
            "latency_us": {"count": 9, "mean": 1.0, "p50": 1.0, "p95": 2.0, "p99": 3.0, "p999": 4.0, "max": 5.0},
            "space_peak": 1.2, "space_rested": 1.1})
    };
    json!({
        "engine": engine, "role": role, "size": size, "round": 1, "records": 100, "memory_growth_bytes": 5_000_000,
        "phases": [phase("load"), phase("uniform"), phase("get")], "space_end": 1.1,
        "course": [
            {"at_s": 0.1, "space_bytes": 5_000_000, "live_bytes": 0},
            {"at_s": 0.2, "space_bytes": 5_000_000, "live_bytes": 4_000_000},
            {"at_s": 0.3, "space_bytes": 6_000_000, "live_bytes": 4_000_000}]})
}

#[test]
fn large_values_stand_beside_their_goals_and_over_their_sizes() {
    let run = json!({
        "command": "terrace bench values", "version": "1", "commit": "abc", "machine": {}, "seed": 3,
        "data_bytes": 1_000_000, "memory_bytes": 250_000, "update_s": 1.0, "read_s": 1.0, "rest_s": 5.0,
        "values": [
            values("terrace", "separated", "4096", 30.0), values("terrace-never", "whole", "4096", 20.0),
            values("terrace", "separated", "mix", 30.0)]});
    let page = page(run);
    for words in [
        "What large values cost",
        "uniform updates over those of terrace-never: 1.5",
        "times its goal",
        "Space over live bytes, values of mix",
        "Uniform updates, drained",
        "<td>terrace-never</td>",
        "<dd>3</dd>",
    ] {
        assert!(page.contains(words), "{words} in {page}");
    }
    assert!(!page.contains("inf") && !page.contains("NaN"), "{page}");
    assert!(!page.contains("Scans of 100 keys"), "what was not measured is not drawn: {page}");
}
