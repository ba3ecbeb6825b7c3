//! Pages of made-up runs.

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
        "Throughput; under it flushes, merges and stalls",
        "99th percentile of each interval; under it flushes, merges and stalls",
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
    assert!(
        page.contains("old: terrace at aaa, insert") && page.contains("2: new: terrace at bbb"),
        "{page}"
    );
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
        "machine": "a box", "calibration": {"disk_mb_per_s": [1, 2]}, "results": [result],
        "ratios": [ratio("fjall", 1.25), ratio("lmdb", 0.4)],
    }));
    for word in ["1.25", "0.40", "load, fjall", "median of 3 rounds", "123", "disk mb per s 1; 2"] {
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
        "1: fjall",
        "2: terrace@bolt-gc",
        "fjall, read",
        "engine fjall, version 3.1",
    ] {
        assert!(page.contains(word), "{word} in {page}");
    }
    assert!(!page.contains("3: ") && !page.contains("Figures"), "{page}");
}

#[test]
fn more_curves_than_inks_have_a_picture_for_each_kind() {
    let turn = |engine: u32| {
        let curve = json!({"count": 9, "curve": [[0.0, 1.0], [0.5, 2.0]]});
        json!({"engine": format!("engine {engine}"), "workload": "ycsb-a", "round": 1,
               "latency": {"read": curve, "write": curve}})
    };
    let titles = |engines: u32| {
        let turns: Vec<Value> = (0..engines).map(turn).collect();
        let results = json!([{"engine": "engine 0", "workload": "ycsb-a", "metric": "ops/s", "median": 5.0}]);
        let page = page(json!({"turns": turns, "results": results}));
        ["Latency by percentile<", "percentile: read<", "percentile: write<"]
            .map(|title| page.contains(title))
    };
    assert_eq!(titles(4), [true, false, false]);
    assert_eq!(titles(5), [false, true, true]);
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
fn json_without_anything_to_draw_is_refused() {
    for json in [json!({}), json!([]), json!(7), json!({"phases": [{"ops_per_s": 1.0}]})] {
        let error = Stored::new("x.json", json).unwrap_err().to_string();
        assert!(error.starts_with("x.json: "), "{error}");
    }
}
