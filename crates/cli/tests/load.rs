//! `terrace load`: formats, batches, bad lines.

mod common;

use common::Workplace;

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
