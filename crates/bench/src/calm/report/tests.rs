//! The tables of a made-up run.

use super::*;
use crate::calm::{Block, WindowCounts};

pub fn summary(p99: f64) -> LatencySummary {
    LatencySummary { count: 9, mean: 5.0, p50: 4.0, p95: 6.0, p99, p999: p99 * 2.0, max: p99 * 3.0 }
}

fn run() -> CalmRun {
    let kind = |p99: f64, slow: u64| KindReport {
        windows: 40,
        read: Some(summary(p99)),
        read_waits: Waits { slow, ms: 30.0, disk_ms: 25.0, disk: slow, ..Waits::default() },
        ..KindReport::default()
    };
    let split = Split {
        told: Told::Outside,
        by_median: false,
        with: kind(30_000.0, 4),
        without: kind(500.0, 0),
        read_p99_ratio: Some(60.0),
        write_p99_ratio: None,
        auc: BTreeMap::from([("read p99".to_owned(), 0.87)]),
        auc_clients: Some(0.9),
        auc_all: None,
    };
    let level = LevelReport {
        percent: 70.0,
        rate: 40_000.0,
        windows: WindowCounts { stolen: 7, ..WindowCounts::default() },
        seconds_kept_up: Some(0.955),
        splits: vec![split],
        floor: BTreeMap::from([("read".to_owned(), summary(40.0))]),
        ..LevelReport::default()
    };
    let capacity = Capacity { ops_per_s: 57_000.0, blocks: vec![Block::default()], ..Capacity::default() };
    let engine = EngineReport {
        engine: "terrace".to_owned(),
        capacity,
        levels: vec![level],
        ..EngineReport::default()
    };
    let provenance = Provenance::default();
    CalmRun { provenance, seed: 3, settings: Settings::default(), calm: vec![engine] }
}

#[test]
fn tables_tell_levels_tails_visibility_and_causes() {
    let text = text(&run());
    for words in [
        "1000000 records of 16 + 1024 bytes, 50 % updates, uniform, seed 3",
        "terrace: sustained capacity 57000 operations/s, NOT STEADY",
        "70 %   40000  outside  any      40       40       7       95.5",
        "60.0",
        "0.87",
        "with     read          4  30.0",
    ] {
        assert!(text.contains(words), "{words} in\n{text}");
    }
    assert!(!text.contains("WRONG"));
}

#[test]
fn a_stored_run_is_read_as_it_was() {
    let json = serde_json::to_value(run()).unwrap();
    let read: CalmRun = serde_json::from_value(json.clone()).unwrap();
    assert_eq!(serde_json::to_value(read).unwrap(), json);
}
