//! `terrace bench db`, as scripts written for `db_bench` call and read it.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use crate::common::Workplace;

const QUICK: &str = "--num=1000 --seed=7 --benchmarks";

/// The figures of a line as `awk` and the regular expressions of db_bench's scripts take them: micros/op, ops/sec,
/// seconds, operations.
fn figures(line: &str) -> (f64, u64, f64, u64) {
    let (_, rest) = line.split_once(':').unwrap();
    let words: Vec<&str> = rest.split_whitespace().collect();
    assert_eq!([words[1], words[3], words[5]], ["micros/op", "ops/sec", "seconds"], "{line}");
    assert!(words[7].starts_with("operations;"), "{line}");
    let parse = |at: usize| words[at].parse::<f64>().unwrap();
    (parse(0), words[2].parse().unwrap(), parse(4), words[6].parse().unwrap())
}

#[test]
fn lines_read_as_those_of_db_bench() {
    let place = Workplace::new();
    let out =
        place.succeed(&format!("bench db {QUICK}=fillrandom,readrandom,seekrandom --reads 200 --threads=2"));
    let line = |name: &str| out.lines().find(|line| line.starts_with(name)).unwrap();
    let (micros, rate, seconds, operations) = figures(line("fillrandom   : "));
    assert!(micros > 0.0 && rate > 0 && seconds >= 0.0);
    assert_eq!(operations, 2000);
    assert!(line("fillrandom").ends_with(" MB/s"), "{out}");
    assert_eq!(figures(line("readrandom   : ")).3, 400);
    assert!(line("readrandom").contains(" of 400 found)"), "{out}");
    assert!(line("seekrandom   : ").contains("operations; ("), "{out}");
    assert!(out.contains("Keys:       16 bytes each\n") && out.contains("Entries:    1000\n"), "{out}");
}

#[test]
fn flags_come_with_an_equals_sign_or_a_blank() {
    let place = Workplace::new();
    place.succeed(&format!(
        "bench db {QUICK} fillseq --value_size 50 --key_size=20 --db kept --cache_size=8388608 --bloom_bits=10 \
         --write_buffer_size=4194304 --compression_type=none --sync=0"
    ));
    assert_eq!(place.succeed("count kept"), "1000\n");
    let record = place.succeed("scan kept --limit 1 --hex");
    assert_eq!(record.trim().len(), 2 * 20 + 1 + 2 * 50);
    assert!(record.starts_with(&format!("{}{}\t", "00".repeat(8), "30".repeat(12))), "{record}");
    let out = place.succeed(&format!(
        "bench db {QUICK}=fillseq,readseq,stats,levelstats --db=kept --use_existing_db=1 --histogram --reads=-1"
    ));
    assert!(out.contains("fillseq      : skipped (--use_existing_db is true)\n"), "{out}");
    assert!(out.contains(" 1000 operations; "), "{out}");
    assert!(out.contains("Microseconds per read:\nCount: 1000 Average: "), "{out}");
    assert!(out.contains("space.total_bytes") && out.contains("Level Files Size(MB)\n"), "{out}");
}

#[test]
fn seeks_within_a_prefix_ask_filters() {
    let place = Workplace::new();
    let figure = |flags: &str, name: &str| {
        let out = place
            .succeed(&format!("bench db {QUICK}=fillrandom,compact,seekrandom,stats --reads 300 {flags}"));
        let line = out.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().last().unwrap().parse::<u64>().unwrap()
    };
    let within = "--prefix_size=8 --prefix_same_as_start --db kept";
    assert!(figure(within, "prefix_filter.asked") > 200);
    let denied = figure(within, "prefix_filter.denied");
    assert!((50..200).contains(&denied), "a third of the keys are not there: {denied}");
    assert!(place.succeed("manifest-dump kept").contains(" prefix=\"fixed(8)\"\n"));
    assert_eq!(figure("--prefix_size=8", "prefix_filter.asked"), 0);
    assert_eq!(figure("--prefix_same_as_start", "prefix_filter.asked"), 0);
}

#[test]
fn own_directories_are_filled_anew_and_others_refused() {
    let place = Workplace::new();
    place.succeed(&format!("bench db {QUICK}=fillseq --db=kept"));
    place.succeed("bench db --num=10 --seed=7 --benchmarks=fillseq --db=kept");
    assert_eq!(place.succeed("count kept"), "10\n");
    place.succeed("put mine key value");
    let ran = place.run(&format!("bench db {QUICK}=fillseq --db=mine"));
    assert_eq!(ran.status, 2);
    assert!(ran.stderr.starts_with("terrace: mine is not empty, and no benchmark made it"), "{}", ran.stderr);
    assert_eq!(place.succeed("get mine key"), "value\n");
    assert_eq!(place.run(&format!("bench db {QUICK}=readseq --db=none --use_existing_db")).status, 2);
}

#[test]
fn what_scripts_set_of_rocksdb_is_passed_over_and_told() {
    let place = Workplace::new();
    let ran = place.run(
        "bench db -num=500 -seed 7 --benchmarks=fillrandom --db=kept --block_size 8192 --wal_dir=elsewhere --statistics \
         --stats_interval_seconds=60 --max_background_jobs=4 --nommap_read --level0_stop_writes_trigger -1 \
         --nodisable_wal --batch_size 1 --verify_checksum --nosync --cache_index_and_filter_blocks=1",
    );
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert_eq!(figures(ran.stdout.lines().last().unwrap()).3, 500, "{}", ran.stdout);
    let told = "Passed over, without effect here: --block_size, --wal_dir, --statistics, --stats_interval_seconds, \
                --max_background_jobs, --nommap_read, --level0_stop_writes_trigger, --nodisable_wal, --batch_size, \
                --verify_checksum, --cache_index_and_filter_blocks\n";
    assert_eq!(ran.stderr, told);
    assert!(!place.path("elsewhere").exists());
    // Of other commands nothing is passed over.
    assert_eq!(place.run("bench ycsb --statistics").status, 2);
    assert_eq!(place.run("get kept --statistics").status, 2);
}

#[test]
fn unknown_flags_and_benchmarks_are_refused_by_name() {
    let place = Workplace::new();
    for (arguments, name) in [
        ("--disable_wal=1", "--disable_wal"),
        ("--disable_wal", "--disable_wal"),
        ("--batch_size=8", "--batch_size"),
        ("--batch_size 8", "--batch_size"),
        ("--readwritepercent=90", "--readwritepercent"),
        ("--statistic", "--statistic"),
        ("--benchmarks=fillseq,fillfast", "fillfast"),
        ("--compression_type=zstd", "zstd"),
        ("--histogram=maybe", "maybe"),
        ("--bloom_bits=300", "--bloom_bits"),
        ("--num=0", "--num"),
    ] {
        let ran = place.run(&format!("bench db {arguments} --db=never"));
        assert_eq!(ran.status, 2, "{arguments}");
        assert!(ran.stderr.contains(name), "{arguments}: {}", ran.stderr);
        assert!(!place.path("never").exists(), "{arguments}");
    }
}

#[test]
fn seed_of_the_clock_is_told() {
    let place = Workplace::new();
    let ran = place.run("bench db --num=10 --benchmarks=fillseq");
    assert_eq!(ran.status, 0);
    assert!(ran.stderr.starts_with("Set seed to ") && ran.stderr.ends_with(" because --seed was 0\n"));
}
