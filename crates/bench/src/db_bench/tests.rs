//! Small runs of every benchmark.

use super::*;
use terrace::env::posix::PosixEnv;

fn config(names: &[&str], db: &Path) -> Config {
    Config {
        benchmarks: names.iter().map(|name| Benchmark::of_name(name).unwrap()).collect(),
        num: 2000,
        reads: None,
        value_size: 100,
        key_size: 16,
        threads: 1,
        duration: None,
        use_existing_db: false,
        seed: 1,
        seek_nexts: 0,
        prefix_same_as_start: false,
        histogram: false,
        record: false,
        sync: false,
        db: Some(db.to_owned()),
        env: PosixEnv::shared(),
        options: Options::default(),
    }
}

fn run_all(config: &Config) -> Result<Vec<String>> {
    let mut out = Vec::new();
    run(config, &mut out, |_| "all is well".to_owned())?;
    let text = String::from_utf8(out)?;
    Ok(text.lines().skip_while(|line| !line.starts_with("---")).skip(1).map(str::to_owned).collect())
}

/// The lines of benchmarks.
fn results(config: &Config) -> Vec<String> {
    let lines = run_all(config).unwrap();
    lines.into_iter().filter(|line| line.contains(" : ")).collect()
}

#[test]
fn every_benchmark_has_one_name() {
    let names: Vec<&str> = Benchmark::names().collect();
    assert!(names.iter().all(|name| Benchmark::of_name(name).is_some_and(|found| found.name() == *name)));
    assert_eq!(Benchmark::of_name("fillfast"), None);
}

#[test]
fn reads_find_what_was_filled() {
    let dir = tempfile::tempdir().unwrap();
    let names = ["fillseq", "readrandom", "readmissing", "readseq", "readreverse", "seekrandom"];
    let lines = results(&Config { seek_nexts: 3, reads: Some(1500), ..config(&names, dir.path()) });
    assert!(lines[0].starts_with("fillseq      : ") && lines[0].contains(" seconds 2000 operations; "));
    assert!(lines[1].ends_with(" MB/s (1500 of 1500 found)"), "{}", lines[1]);
    assert!(lines[2].ends_with(" 1500 operations; (0 of 1500 found)"), "{}", lines[2]);
    for line in &lines[3..5] {
        assert!(line.contains(" 1500 operations; ") && line.ends_with(" MB/s"), "{line}");
    }
    assert!(lines[5].ends_with(" MB/s (1500 of 1500 found)"), "{}", lines[5]);
}

#[test]
fn fresh_fills_begin_anew_and_existing_stores_stay() {
    let dir = tempfile::tempdir().unwrap();
    let filled = Config { num: 10, ..config(&["fillseq"], dir.path()) };
    results(&filled);
    let fewer = Config { num: 5, ..filled.clone() };
    assert!(
        results(&Config { benchmarks: vec![Benchmark::FillSeq, Benchmark::ReadSeq], num: 5, ..fewer })[1]
            .contains(" 5 operations; ")
    );
    let kept = Config { use_existing_db: true, ..config(&["fillseq", "readseq"], dir.path()) };
    let lines = results(&kept);
    assert_eq!(lines[0], "fillseq      : skipped (--use_existing_db is true)");
    assert!(lines[1].contains(" 5 operations; "), "{}", lines[1]);
}

#[test]
fn foreign_directories_are_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    Db::open(dir.path()).unwrap().put("mine", "1").unwrap();
    let refused = run_all(&config(&["fillseq"], dir.path())).unwrap_err().to_string();
    assert!(refused.contains("is not empty"), "{refused}");
    assert!(Db::open(dir.path()).unwrap().contains("mine").unwrap());
}

#[test]
fn synced_fill_draws_from_few_keys() {
    let dir = tempfile::tempdir().unwrap();
    let lines = results(&config(&["fillsync", "readseq"], dir.path()));
    assert!(lines[0].contains(" 2000 operations; ") && lines[0].ends_with(" MB/s (2 ops)"), "{}", lines[0]);
    assert!(lines[1].contains(" 2 operations; "), "{}", lines[1]);
}

#[test]
fn threads_share_the_work_of_reading_beside_a_writer() {
    let dir = tempfile::tempdir().unwrap();
    let names = ["fillrandom", "readwhilewriting", "overwrite", "deleterandom", "compact"];
    let lines = results(&Config { threads: 3, num: 500, ..config(&names, dir.path()) });
    for (line, operations) in lines.iter().zip([1500, 1500, 1500, 1500, 1]) {
        assert!(line.contains(&format!(" {operations} operations;")), "{line}");
    }
    assert!(lines[1].contains(" of 1500 found)"), "{}", lines[1]);
    assert!(lines[3].ends_with(" operations;"), "{}", lines[3]);
}

#[test]
fn histograms_count_every_operation_by_kind() {
    let dir = tempfile::tempdir().unwrap();
    let names = ["fillrandom", "seekrandom", "stats", "waitforcompaction", "levelstats"];
    let lines = run_all(&Config { histogram: true, ..config(&names, dir.path()) }).unwrap();
    let after = |head: &str| lines.iter().position(|line| line == head).map(|at| lines[at + 1].clone());
    for head in ["Microseconds per write:", "Microseconds per seek:"] {
        assert!(after(head).is_some_and(|line| line.starts_with("Count: 2000 Average: ")), "{lines:?}");
    }
    assert!(lines.contains(&"all is well".to_owned()));
    assert_eq!(after("Level Files Size(MB)").as_deref(), Some("--------------------"));
}

#[test]
fn duration_ends_a_benchmark_in_place_of_its_count() {
    let dir = tempfile::tempdir().unwrap();
    let duration = Some(Duration::from_millis(30));
    let line = &results(&Config { num: 1, duration, ..config(&["fillrandom"], dir.path()) })[0];
    assert!(!line.contains(" seconds 1 operations;"), "{line}");
    let dir = tempfile::tempdir().unwrap();
    for line in
        results(&Config { num: 7, duration, ..config(&["fillseq", "readseq", "readreverse"], dir.path()) })
    {
        assert!(line.contains(" seconds 7 operations;"), "those in order go by their count: {line}");
    }
}

#[test]
fn recorded_benchmarks_account_for_every_operation() {
    let dir = tempfile::tempdir().unwrap();
    let names = ["fillrandom", "readwhilewriting", "compact"];
    let config = Config { record: true, threads: 2, ..config(&names, dir.path()) };
    let reports = run(&config, &mut Vec::new(), |_| String::new()).unwrap();
    let counted = |report: &BenchmarkReport| -> u64 {
        report.recording.intervals.iter().map(|interval| interval.operations).sum()
    };
    let operations: Vec<(u64, u64)> =
        reports.iter().map(|report| (report.operations, counted(report))).collect();
    assert_eq!(operations, [(4000, 4000), (4000, 4000), (1, 1)]);
    assert_eq!(reports[0].latency_us["write"].count, 4000);
    assert!(reports[0].counted.write_amplification > Some(0.5), "{reports:?}");
    assert!(run(&Config { record: false, ..config }, &mut Vec::new(), |_| String::new()).unwrap().is_empty());
}
