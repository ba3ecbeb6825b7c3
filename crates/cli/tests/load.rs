//! `terrace load`: formats, batches, bad lines.

use crate::common::Workplace;

const RECORDS: &str = "a\t1\nb\t2\nc\t3\n";

#[test]
fn every_format_loads_from_a_file_and_from_standard_input() {
    let csv = "key,value\na,1\n\"b\",2\nc,3\n";
    let json = "{\"key\":\"a\",\"value\":\"1\"}\n{\"key_hex\":\"62\",\"value\":\"2\"}\n{\"key\":\"c\",\"value_hex\":\"33\"}\n";
    let ldb = "0x61 ==> 0x31\n0x62 ==> 0x32\n0x63 ==> 0x33\nKeys in range: 3\n";
    for (name, contents, options) in [
        ("r.tsv", RECORDS, "--format tsv"),
        ("r.csv", csv, "--format csv --header"),
        ("r.jsonl", json, "--format jsonl"),
        ("r.ldb", ldb, "--format ldb-hex"),
    ] {
        let place = Workplace::new();
        place.write(name, contents);
        let header = if name == "r.csv" { "--header" } else { "" };
        let ran = place.run(&format!("load by-name {name} {header}"));
        assert_eq!(ran.status, 0, "{name}: {}", ran.stderr);
        assert!(ran.stderr.starts_with("3 records are in: 6 bytes in "), "{name}: {}", ran.stderr);
        assert_eq!(place.succeed("scan by-name"), RECORDS, "{name}");

        assert_eq!(place.run_with(&format!("load by-format - {options}"), contents).status, 0, "{name}");
        assert_eq!(place.succeed("scan by-format"), RECORDS, "{name}");

        assert_eq!(place.run_with(&format!("load by-start {header}"), contents).status, 0, "{name}");
        assert_eq!(place.succeed("scan by-start"), RECORDS, "{name}");
    }
}

/// Where there is no io_uring, the same with a warning.
#[cfg(target_os = "linux")]
#[test]
fn tables_are_written_past_the_page_cache() {
    let place = Workplace::new();
    place.write("r.tsv", RECORDS);
    let ran = place.run("load db r.tsv --io uring");
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    place.succeed("compact db");
    assert_eq!(place.succeed("scan db"), RECORDS);
    let ran = place.run(
        "bench db --benchmarks=fillrandom,readrandom --num=20000 --write_buffer_size=1048576 --io=uring",
    );
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert_eq!(place.run("load db r.tsv --io pigeon").status, 2);
}

#[test]
fn json_scan_loads_back_exactly() {
    let place = Workplace::new();
    place.succeed("put db --hex 00ff09 0a0d22");
    place.succeed("put db text value");
    for scan in ["scan db --json", "scan db --hex --json"] {
        let copy = format!("copy-{}", scan.len());
        assert_eq!(place.run_with(&format!("load {copy} --format jsonl"), place.succeed(scan)).status, 0);
        assert_eq!(place.succeed(&format!("scan {copy} --hex")), place.succeed("scan db --hex"));
    }
}

#[test]
fn bad_line_is_named_and_all_records_before_it_are_in() {
    for batch in [1, 2, 3, 1000] {
        let place = Workplace::new();
        place.write("r.tsv", "a\t1\nb\t2\nc\t3\nnonsense\nd\t4\n");
        let ran = place.run(&format!("load db r.tsv --batch {batch}"));
        assert_eq!(ran.status, 1);
        let mut lines = ran.stderr.lines();
        assert_eq!(lines.next(), Some("terrace: r.tsv:4: expected a tab between key and value"));
        assert!(lines.next().is_some_and(|line| line.starts_with("3 records are in: ")), "{}", ran.stderr);
        assert_eq!(place.succeed("scan db"), RECORDS, "batches of {batch}");
    }
    let place = Workplace::new();
    let ran = place.run_with("load db --format jsonl", "{\"key\":\"a\",\"value\":\"1\"}\n{}\n");
    assert!(ran.stderr.starts_with("terrace: stdin:2: neither key nor key_hex\n"), "{}", ran.stderr);
}

#[test]
fn skipped_lines_are_counted_and_the_first_few_named() {
    let place = Workplace::new();
    let mut text = RECORDS.to_owned();
    text.push_str(&"bad\n".repeat(7));
    text.push_str("d\t4\n");
    let ran = place.run_with("load db --format tsv --skip-bad --batch 2", text);
    assert_eq!(ran.status, 0);
    assert_eq!(ran.stderr.matches("terrace: stdin:").count(), 5, "{}", ran.stderr);
    assert!(ran.stderr.contains("terrace: stdin:4: "), "{}", ran.stderr);
    assert!(ran.stderr.contains("4 records are in: ") && ran.stderr.ends_with("7 bad lines skipped\n"));
    assert_eq!(place.succeed("count db"), "4\n");
}

#[test]
fn record_too_large_for_any_store_is_a_bad_line() {
    let place = Workplace::new();
    let ran = place.run_with("load db --format tsv", format!("a\t1\n{}\t2\n", "k".repeat(70_000)));
    assert_eq!(ran.status, 1);
    assert!(ran.stderr.starts_with("terrace: stdin:2: key of 70000 bytes"), "{}", ran.stderr);
    assert_eq!(place.succeed("scan db"), "a\t1\n");
}

#[test]
fn later_records_win_and_other_keyspaces_stay_as_they_are() {
    let place = Workplace::new();
    place.succeed("put db a old");
    assert_eq!(place.run_with("load db --keyspace more --sync --format tsv", "a\t1\na\t2\n").status, 0);
    assert_eq!(place.succeed("scan db --keyspace more"), "a\t2\n");
    assert_eq!(place.succeed("scan db"), "a\told\n");
    assert_eq!(place.run_with("load db --hex --format tsv", "0x61\t6e6577\n").status, 0);
    assert_eq!(place.succeed("scan db"), "a\tnew\n");
}

#[test]
fn unreadable_and_unrecognised_files_are_errors() {
    let place = Workplace::new();
    place.write("r.txt", "just a line\n");
    for (arguments, message) in [
        ("load db missing.tsv", "terrace: cannot read missing.tsv: "),
        ("load db .", "terrace: cannot read .: it is a directory"),
        ("load db r.txt", "terrace: cannot tell the format of r.txt"),
    ] {
        let ran = place.run(arguments);
        assert_eq!(ran.status, 2, "{arguments}");
        assert!(ran.stderr.starts_with(message), "{arguments}: {}", ran.stderr);
        assert!(!place.path("db").exists(), "{arguments} made a store");
    }
    let ran = place.run("load db");
    assert_eq!(ran.status, 0);
    assert!(ran.stderr.starts_with("0 records are in"), "{}", ran.stderr);
}

#[test]
fn text_from_windows_loads_as_its_writer_meant_it() {
    let place = Workplace::new();
    for (name, contents) in [
        ("r.tsv", "\u{FEFF}a\t1\r\nb\t2\r\nc\t3\r\n\r\n"),
        ("r.csv", "\u{FEFF}a,1\r\nb,2\r\nc,3\r\n"),
        (
            "r.jsonl",
            "\u{FEFF}{\"key\":\"a\",\"value\":\"1\"}\r\n{\"key\":\"b\",\"value\":\"2\"}\r\n{\"key\":\"c\",\"value\":\"3\"}\r\n",
        ),
        ("r.ldb", "\u{FEFF}0x61 ==> 0x31\r\n0x62 ==> 0x32\r\n0x63 ==> 0x33\r\nKeys in range: 3\r\n"),
    ] {
        place.write(name, contents);
        for command in ["load", "ingest"] {
            let db = format!("{command}-{name}.db");
            assert_eq!(place.run(&format!("{command} {db} {name}")).status, 0, "{command} {name}");
            assert_eq!(place.succeed(&format!("scan {db}")), RECORDS, "{command} {name}");
            // From standard input the format is guessed.
            assert_eq!(place.run_with(&format!("{command} {db}-in"), contents).status, 0, "{command} {name}");
            assert_eq!(place.succeed(&format!("scan {db}-in")), RECORDS, "{command} {name}");
        }
    }
    assert_eq!(place.run("load kept r.tsv --keep-cr --skip-bad").status, 0);
    assert_eq!(place.succeed("scan kept --limit 1 --hex"), "61\t310d\n");
    for (text, mark) in [(b"\xFF\xFEa\0\t\0", "FF FE"), (b"\xFE\xFF\0a\0\t", "FE FF")] {
        let ran = place.run_with("load refused --format tsv", text);
        assert_eq!(ran.status, 2);
        let message =
            format!("terrace: stdin is UTF-16: it begins with the byte-order mark {mark}; save it as UTF-8");
        assert!(ran.stderr.starts_with(&message), "{}", ran.stderr);
        assert!(!place.path("refused").exists());
    }
    let ran = place
        .run_with("load lone", "{\"key\":\"a\",\"value\":\"1\"}\n{\"key\":\"b\",\"value\":\"\\ud800\"}\n");
    assert_eq!(ran.status, 1);
    assert!(ran.stderr.starts_with("terrace: stdin:2: \\ud800 is a lone surrogate"), "{}", ran.stderr);
}

#[test]
fn what_scan_and_dump_print_loads_to_the_same_store() {
    let place = Workplace::new();
    // Marks, line ends, tabs, what looks like an escape or another format, no bytes, bytes that are no text.
    let keys = ["efbbbf61", "fffe61", "feff61", "0d", "0a", "09", "5c783431", "7b", "3078", "", "ff00", "61"];
    let values = ["0d", "310d", "0d0a", "0a", "09", "5c783431", "5c78", "", "efbbbf", "ff00", "61"];
    let lines: String = keys
        .iter()
        .enumerate()
        .flat_map(|(n, key)| {
            values.iter().enumerate().map(move |(m, value)| format!("{key}{n:02x}{m:02x}\t{value}\n"))
        })
        .chain(keys.iter().map(|key| format!("{key}\t0d\n")))
        .collect();
    assert_eq!(place.run_with("load db --hex --format tsv", lines).status, 0);
    assert_eq!(place.succeed("count db"), "144\n");
    let all = place.succeed("scan db --hex");
    for (print, load) in [
        ("scan db", "load 1 --format tsv"),
        ("scan db", "load 2 --format tsv --keep-cr"),
        ("scan db", "ingest 3 --format tsv"),
        ("scan db --hex", "load 4 --hex"),
        ("scan db --json", "load 5"),
        ("scan db --hex --json", "load 6 --format jsonl"),
        ("dump db", "load 7"),
        ("dump db --hex", "load 8"),
    ] {
        let printed = place.command(print).output().unwrap().stdout;
        let ran = place.run_with(load, printed);
        assert_eq!(ran.status, 0, "{print} | {load}: {}", ran.stderr);
        let copy = load.split_whitespace().nth(1).unwrap();
        assert_eq!(place.succeed(&format!("scan {copy} --hex")), all, "{print} | {load}");
    }
    // The first key reads as the beginning of an object, so it is not guessed what this is.
    place.succeed("put object {\"a\":1} b");
    let ran = place.run_with("load guess", place.succeed("scan object"));
    assert_eq!(ran.status, 2);
    assert!(ran.stderr.contains("cannot tell the format of stdin"), "{}", ran.stderr);
}
