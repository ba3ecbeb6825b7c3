//! Figures are paired by rounds, and only with what promises the same.

use serde_json::Value;

use super::*;
use crate::scorecard::Group;
use crate::settings::tests::full;
use crate::state::tests::finished;

/// A turn of one phase with a rate and a latency.
fn turn(round: usize, engine: Engine, durability: Option<Durability>, rate: f64, p99: f64) -> Finished {
    let mut phase = PhaseResult::new("ycsb-a", durability);
    phase.more("ops/s", "ops/s", rate);
    phase.less("read p99", "us", p99);
    phase.series = vec![1, 2, 3];
    Finished { phases: vec![phase], ..finished(round, engine) }
}

const N: Option<Durability> = Some(Durability::Kill);

fn report(turns: &[Finished]) -> Report {
    let machine = Machine {
        processor: "p".to_owned(),
        processors: 2,
        memory_bytes: 1,
        kernel: "k".to_owned(),
        file_system: "f".to_owned(),
    };
    Report::new(machine, "c".to_owned(), &full(), turns, Vec::new())
}

fn advantages(turns: &[Finished]) -> Vec<(Engine, String, f64, usize)> {
    let of = |ratio: &Ratio| (ratio.peer, ratio.metric.clone(), ratio.advantage, ratio.pairs);
    report(turns).ratios.iter().map(of).collect()
}

#[test]
fn advantages_are_above_one_where_terrace_is_better_whatever_the_direction() {
    let turns = [turn(0, Engine::Terrace, N, 200.0, 10.0), turn(0, Engine::Lmdb, N, 100.0, 40.0)];
    let ratios = report(&turns).ratios;
    let of = |metric: &str| ratios.iter().find(|ratio| ratio.metric == metric).unwrap().advantage;
    assert!((of("ops/s") - 2.0).abs() < 1e-9 && (of("read p99") - 4.0).abs() < 1e-9);
}

#[test]
fn ratios_pair_the_figures_of_a_round() {
    let turns = [
        turn(0, Engine::Terrace, N, 100.0, 1.0),
        turn(0, Engine::Lmdb, N, 50.0, 1.0),
        turn(1, Engine::Lmdb, N, 400.0, 1.0),
        turn(1, Engine::Terrace, N, 200.0, 1.0),
        // A round without a partner.
        turn(2, Engine::Terrace, N, 9.0, 1.0),
    ];
    let ratio = advantages(&turns).into_iter().find(|ratio| ratio.1 == "ops/s").unwrap();
    assert!(ratio.0 == Engine::Lmdb && (ratio.2 - 1.0).abs() < 1e-9 && ratio.3 == 2);
    let interval = report(&turns).ratios.into_iter().find(|ratio| ratio.metric == "ops/s").unwrap();
    assert!((interval.low - 0.5).abs() < 1e-9 && (interval.high - 2.0).abs() < 1e-9);
}

#[test]
fn classes_and_compressions_are_not_mixed() {
    let unsafe_class = Some(Durability::Unsafe);
    let turns = [
        turn(0, Engine::Terrace, N, 1.0, 1.0),
        turn(0, Engine::TerraceLz4, N, 1.0, 1.0),
        turn(0, Engine::Redb, unsafe_class, 1.0, 1.0),
        turn(0, Engine::RocksdbLz4, N, 1.0, 1.0),
        turn(0, Engine::Fjall, N, 1.0, 1.0),
        turn(0, Engine::Empty, N, 1.0, 1.0),
    ];
    let peers: Vec<Engine> = advantages(&turns).into_iter().map(|ratio| ratio.0).collect();
    assert_eq!(peers, [Engine::Fjall, Engine::Fjall, Engine::RocksdbLz4, Engine::RocksdbLz4]);
}

#[test]
fn other_shapes_are_peers_of_the_default_and_of_nobody_else() {
    let shaped = Engine::Shaped("bolt-gc");
    let turns = [
        turn(0, Engine::Lmdb, N, 4.0, 1.0),
        turn(0, shaped, N, 2.0, 1.0),
        turn(0, Engine::TerraceLz4, N, 1.0, 1.0),
        turn(0, Engine::Terrace, N, 1.0, 1.0),
    ];
    let report = report(&turns);
    let peers: Vec<Engine> = report.ratios.iter().map(|ratio| ratio.peer).collect();
    assert_eq!(peers, [shaped, Engine::Lmdb, shaped, Engine::Lmdb]);
    assert!((report.ratios[0].advantage - 0.5).abs() < 1e-9);
    let rates = report.results.iter().filter(|one| one.metric == "ops/s");
    let engines: Vec<String> = rates.map(|one| one.engine.name()).collect();
    assert_eq!(engines, ["terrace", "terrace@bolt-gc", "terrace-lz4", "lmdb"]);
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["ratios"][0]["peer"], "terrace@bolt-gc");
}

#[test]
fn void_turns_count_for_nothing_and_are_told() {
    let void = |turn: Finished| Finished { void: Some("stolen".to_owned()), ..turn };
    let turns = [
        turn(0, Engine::Terrace, N, 100.0, 1.0),
        void(turn(0, Engine::Lmdb, N, 50.0, 1.0)),
        turn(1, Engine::Terrace, N, 100.0, 1.0),
        turn(1, Engine::Lmdb, N, 25.0, 1.0),
        Finished { version: String::new(), ..void(turn(2, Engine::Lmdb, N, 50.0, 1.0)) },
    ];
    let report = report(&turns);
    let lmdb = report.results.iter().find(|one| one.engine == Engine::Lmdb && one.metric == "ops/s").unwrap();
    assert_eq!(lmdb.rounds, [25.0]);
    assert_eq!(report.ratios[0].pairs, 1);
    assert_eq!(report.calibration.iter().filter(|one| one.void.is_some()).count(), 2);
    assert_eq!(report.engines[1].version, "1.2", "as the turns tell that came to their end");
    let text = crate::text::text(&report);
    assert!(text.contains("2 of 5 turns are void") && text.contains("VOID: round 1, small, lmdb: stolen"));
    assert_eq!(report.turns.len(), 3);
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

/// Other programs read these names.
#[test]
fn the_object_has_the_names_that_are_documented() {
    let turns = [turn(0, Engine::Terrace, N, 2.0, 1.0), turn(0, Engine::LeveldbUnchecked, N, 1.0, 1.0)];
    let json = serde_json::to_value(report(&turns)).unwrap();
    for name in ["command", "version", "machine", "commit", "seed", "calibration", "results", "ratios"] {
        assert!(keys(&json).contains(&name), "{name}");
    }
    let result = &json["results"][0];
    for name in ["engine", "workload", "metric", "unit", "higher_is_better", "median", "rounds"] {
        assert!(keys(result).contains(&name), "{name}");
    }
    let ratio = &json["ratios"][0];
    for name in ["workload", "metric", "peer", "advantage", "low", "high"] {
        assert!(keys(ratio).contains(&name), "{name}");
    }
    assert_eq!((&result["engine"], &result["durability"]), (&"terrace".into(), &"N".into()));
    assert_eq!(ratio["peer"], "leveldb-unchecked");
    assert_eq!(json["turns"][0]["series"], serde_json::json!([1, 2, 3]));
    let again: Report = serde_json::from_value(json).unwrap();
    assert_eq!(again.results.len(), 4);
    assert_eq!(again.calibration[0].group, Group::Small.name());
}
