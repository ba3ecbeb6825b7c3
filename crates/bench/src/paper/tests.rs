//! Tests of the whole catalogue, and of each figure at a scale of seconds; at a larger one with `TERRACE_LONG=1`, which
//! divides by less.

use std::collections::BTreeSet;

use super::*;

/// What sizes are divided by: `long` with `TERRACE_LONG=1`, `brief` otherwise.
pub(super) fn brief_or_long(brief: f64, long: f64) -> f64 {
    if std::env::var("TERRACE_LONG").is_ok_and(|value| value != "0") { long } else { brief }
}

fn choice(scale: f64) -> Choice {
    Choice { machine: None, scale: Some(scale), sync: None, seed: 1 }
}

#[test]
fn every_experiment_has_a_name_of_its_own_a_device_and_a_state_that_says_something() {
    let mut ids = BTreeSet::new();
    for experiment in experiments() {
        assert!(ids.insert(experiment.id), "{} is there twice", experiment.id);
        assert!(Machine::preset(experiment.device).is_ok(), "{}: {}", experiment.id, experiment.device);
        assert!(experiment.scale >= 1.0, "{}", experiment.id);
        if let State::Needs(needs) = experiment.state {
            assert!(!needs.is_empty(), "{} neither runs nor lacks anything", experiment.id);
        }
        let texts = [experiment.title, experiment.workload, experiment.metric, experiment.expected];
        assert!(texts.iter().all(|text| !text.is_empty()), "{}", experiment.id);
    }
    for id in ["bolt-11", "lsbm-8d", "dlc-6", "ptier-7", "ptier-table1", "nvme-8a"] {
        assert!(find(id).is_ok(), "{id}");
    }
}

#[test]
fn what_lacks_its_mechanism_is_refused_by_the_name_of_it() {
    let refused = run(find("nvme-crash").unwrap(), &choice(64.0)).unwrap_err().to_string();
    assert!(refused.starts_with("nvme-crash cannot be run yet: it needs "), "{refused}");
    assert!(refused.contains(&Need::TortureSuite.to_string()), "{refused}");
    assert!(find("lsbm-99").is_err());
    assert!(run(find("bolt-4a").unwrap(), &choice(0.5)).is_err());
}

/// Runs an experiment and looks at what any run must have.
fn small_run(id: &str, scale: f64) -> Run {
    let run = run(find(id).unwrap(), &choice(scale)).unwrap();
    assert_eq!((run.id.as_str(), run.scale), (id, scale));
    assert!(!run.relations.is_empty() && !run.series.is_empty());
    for series in &run.series {
        assert!(!series.points.is_empty(), "{id}: {} has no points", series.name);
        assert!(series.points.iter().flatten().all(|number| number.is_finite()), "{id}: {series:?}");
        assert!(series.configuration.contains_key("table"), "{id}: {series:?}");
    }
    run
}

/// The series of that name.
fn points<'a>(run: &'a Run, name: &str) -> &'a [[f64; 2]] {
    &run.series.iter().find(|series| series.name == name).unwrap().points
}

#[test]
fn a_seed_replays_a_run_to_the_byte() {
    let text = |seed| {
        let run = run(find("dlc-3").unwrap(), &Choice { seed, ..choice(16384.0) }).unwrap();
        serde_json::to_string(&run).unwrap()
    };
    assert_eq!(text(1), text(1));
    assert_ne!(text(1), text(2));
}

#[test]
fn a_missing_series_is_named_with_what_it_needs() {
    let run = small_run("bolt-14a", 65536.0);
    let missing: Vec<&str> = run.missing.iter().map(|series| series.name.as_str()).collect();
    assert_eq!(missing, ["PebblesDB"]);
}

#[test]
fn every_figure_of_ptierdb_runs() {
    for experiment in experiments().filter(|experiment| experiment.paper() == "ptier") {
        let run = small_run(experiment.id, 65536.0);
        for relation in &run.relations {
            assert!(relation.measured != "NaN", "{}: {relation:?}", experiment.id);
        }
    }
}

#[test]
fn figures_over_time_go_on_to_their_end() {
    let run = small_run("lsbm-8b", 8192.0);
    let ratio = points(&run, "hit ratio");
    assert!(ratio.len() > 100 && ratio.is_sorted_by(|a, b| a[0] < b[0]), "{ratio:?}");
    let run = small_run("dlc-1", 16384.0);
    let done = points(&run, "RocksDB");
    assert!(done.len() > 400, "{}", done.len());
    assert!(done.iter().all(|&[at, _]| at <= 4300.1), "in the paper's seconds");
}

#[test]
fn every_figure_of_dlc_runs() {
    for experiment in experiments().filter(|experiment| experiment.paper() == "dlc") {
        let run = small_run(experiment.id, brief_or_long(65536.0, 16384.0));
        assert!(run.missing.is_empty(), "{}", experiment.id);
    }
}

#[test]
fn the_parts_of_bolt_run_one_by_one_on_both_bases() {
    for (id, base) in [("bolt-12a", "LevelDB"), ("bolt-12b", "HyperLevelDB")] {
        let run = small_run(id, 65536.0);
        for name in [base, "+LS", "+GC", "+STL", "+FC"] {
            assert_eq!(points(&run, name).len(), 8, "{id}: {name}");
        }
        assert!(run.missing.is_empty() && run.relations.len() == 7, "{id}: {:?}", run.relations);
    }
}

#[test]
fn a_run_comes_back_from_its_notation() {
    let run = small_run("bolt-6", 16384.0);
    let text = serde_json::to_string(&run).unwrap();
    assert_eq!(serde_json::from_str::<Run>(&text).unwrap(), run);
}

#[test]
fn figures_of_two_devices_run_and_the_serial_model_holds_at_any_scale() {
    for id in ["nvme-model2", "nvme-model3", "nvme-dyn1", "nvme-dyn2", "nvme-wal", "nvme-8a", "nvme-8b"] {
        small_run(id, 32768.0);
    }
    for id in ["nvme-8c", "nvme-8d", "nvme-records", "nvme-ycsb", "nvme-heat"] {
        small_run(id, 32768.0);
    }
    let run = small_run("nvme-model1", brief_or_long(106.0, 64.0));
    assert!(run.relations.iter().all(|relation| relation.holds), "{:?}", run.relations);
}

#[test]
fn the_simulated_disks_are_to_each_other_as_the_papers_and_calls_are_told_apart() {
    let holds = |id: &str, scale: f64| {
        let run = small_run(id, scale);
        run.relations
            .into_iter()
            .filter(|relation| !relation.holds)
            .map(|relation| relation.name)
            .collect::<Vec<_>>()
    };
    assert_eq!(holds("nvme-4", 4096.0), [""; 0]);
    // What SPDK saves in reads is time of a processor, of which the simulated machine has enough.
    assert_eq!(holds("nvme-5", 4096.0), ["reads: SPDK / ext4"]);
    assert_eq!(holds("nvme-6", 640.0), [""; 0]);
}

#[test]
fn processor_time_is_counted_on_the_real_machine() {
    let run = small_run("nvme-7", 4096.0);
    let all = points(&run, "all");
    assert!(all.iter().all(|point| point[1] > 0.0), "{all:?}");
    assert_eq!(run.missing.len(), 1);
}
