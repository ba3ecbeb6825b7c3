//! `terrace bench paper`, at scales of seconds.

use crate::common::Workplace;
use serde_json::Value;

#[test]
fn list_shows_every_experiment_with_its_state() {
    let place = Workplace::new();
    let list = place.succeed("bench paper list");
    let state = |id: &str| {
        let line = list.lines().find(|line| line.split_whitespace().next() == Some(id)).unwrap();
        line[id.len()..].trim_start().to_owned()
    };
    assert!(state("bolt-4a").starts_with("runs "), "{list}");
    assert!(state("bolt-12b").starts_with("runs "), "{list}");
    assert!(state("ptier-2a").starts_with("runs "), "{list}");
    assert!(state("ptier-table1").starts_with("runs "), "{list}");
    assert!(!state("ptier-table1").starts_with("runs in part "), "{list}");
    assert!(state("lsbm-8d").starts_with("runs "), "{list}");
    assert!(state("nvme-7").starts_with("runs in part "), "{list}");
    assert!(state("nvme-crash").starts_with("mechanism missing "), "{list}");
    let details = place.succeed("bench paper list nvme-crash");
    assert!(details.contains("it needs no timing"), "{details}");
    assert_eq!(place.run("bench paper list dlc-66").status, 2);
}

#[test]
fn a_run_is_stored_with_its_setting_and_its_relations() {
    let place = Workplace::new();
    let out = place.succeed("bench paper run dlc-3 ptier-2a --scale 16384 --seed 7 --json runs.json");
    assert!(out.starts_with("dlc-3: ") && out.contains("\nptier-2a: "), "{out}");
    let runs: Vec<Value> = place.read_json("runs.json");
    let ids: Vec<&str> = runs.iter().filter_map(|run| run["id"].as_str()).collect();
    assert_eq!(ids, ["dlc-3", "ptier-2a"]);
    for run in &runs {
        assert_eq!((&run["scale"], &run["seed"]), (&16384.0.into(), &7.into()));
        assert_eq!(run["device"]["kind"], "simulated");
        assert!(run["command"].as_str().unwrap().starts_with("terrace bench paper run dlc-3"), "{run}");
        assert!(run["commit"].is_string() && run["machine"]["cpus"].is_u64(), "{run}");
        for series in run["series"].as_array().unwrap() {
            assert!(series["profile"].is_string() && series["configuration"].is_object(), "{series}");
            assert!(series["points"][0].as_array().unwrap().iter().all(Value::is_number), "{series}");
        }
        for relation in run["relations"].as_array().unwrap() {
            let (verdict, name) = (relation["holds"].as_bool().unwrap(), relation["name"].as_str().unwrap());
            let line = format!("{}: {name}: ", if verdict { "holds" } else { "DOES NOT HOLD" });
            assert!(out.contains(&line), "{line} in {out}");
            assert!(relation["expected"].is_string() && relation["measured"].is_string(), "{relation}");
        }
    }
    let first = std::fs::read(place.path("runs.json")).unwrap();
    place.succeed("bench paper run dlc-3 ptier-2a --scale 16384 --seed 7 --json runs.json");
    assert_eq!(std::fs::read(place.path("runs.json")).unwrap(), first);
}

#[test]
fn what_cannot_be_run_is_refused_before_anything_runs() {
    let place = Workplace::new();
    for (arguments, message) in [
        ("bolt-4a nvme-crash", "nvme-crash cannot be run yet: it needs no timing"),
        ("bolt-4", "unknown experiment \"bolt-4\""),
        ("bolt-4a --scale 0", "at least 1"),
        ("bolt-4a --dir .", "--dir needs --device real"),
        ("bolt-4a --device drum", "hdd-15k-pair"),
        ("bolt-4a --device real --sync-ms 6", "--sync-ms needs a simulated device"),
        ("bolt-4a --sync-ms=-1", "not a time"),
    ] {
        let ran = place.run(&format!("bench paper run {arguments} --json runs.json"));
        assert_eq!((ran.status, ran.stdout.as_str()), (2, ""), "{arguments}");
        assert!(ran.stderr.contains(message), "{arguments}: {}", ran.stderr);
        assert!(!place.path("runs.json").exists(), "{arguments}");
    }
}

#[test]
fn a_figure_runs_on_the_file_system_too() {
    let place = Workplace::new();
    place.succeed("bench paper run bolt-6 --scale 16384 --device real --dir . --json runs.json");
    let runs: Vec<Value> = place.read_json("runs.json");
    assert_eq!(runs[0]["device"]["kind"], "real");
    let left: Vec<_> =
        std::fs::read_dir(place.path(".")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["runs.json"]);
}
