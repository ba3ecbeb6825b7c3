//! Single records, ranges, and looks into a store.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::common::Workplace;
use serde_json::Value;

fn with_letters() -> Workplace {
    let place = Workplace::new();
    let lines: String = ('a'..='e').map(|letter| format!("{letter}\tvalue-{letter}\n")).collect();
    assert_eq!(place.run_with("load db --format tsv", lines).status, 0);
    place
}

#[test]
fn value_comes_back_until_it_is_deleted() {
    let place = Workplace::new();
    assert_eq!(place.succeed("put db ada Lovelace"), "");
    assert_eq!(place.succeed("get db ada"), "Lovelace\n");
    assert_eq!(place.succeed("put db ada King --sync"), "");
    assert_eq!(place.succeed("get db ada"), "King\n");
    assert_eq!(place.succeed("delete db ada --sync"), "");
    assert_eq!(place.run("get db ada").status, 1);
    assert_eq!(place.succeed("delete db ada"), "");
}

#[test]
fn absent_key_prints_nothing_and_exits_with_one() {
    let place = with_letters();
    for arguments in ["get db z", "get db z --json", "get db 7a --hex"] {
        let ran = place.run(arguments);
        assert_eq!((ran.status, ran.stdout.as_str(), ran.stderr.as_str()), (1, "", ""), "{arguments}");
    }
}

#[test]
fn value_from_standard_input_is_kept_to_the_byte() {
    let place = Workplace::new();
    assert_eq!(place.run_with("put db k -", b"two\nlines\n\xff").status, 0);
    assert_eq!(place.succeed("get db 6b --hex"), "74776f0a6c696e65730aff\n");
    assert_eq!(place.run_with("put db 6b - --hex", "0xc0ffee\n").status, 0);
    assert_eq!(place.succeed("get db 0x6b --hex"), "c0ffee\n");
}

#[test]
fn binary_records_are_shown_as_hex() {
    let place = Workplace::new();
    place.succeed("put db --hex 0x00ff 0x");
    place.succeed("put db --hex 6b 76");
    assert_eq!(place.succeed("scan db --hex"), "00ff\t\n6b\t76\n");
    assert_eq!(
        place.succeed("scan db --json"),
        "{\"key_hex\":\"00ff\",\"value\":\"\"}\n{\"key\":\"k\",\"value\":\"v\"}\n"
    );
    assert_eq!(place.succeed("get db 6b --hex --json"), "{\"key_hex\":\"6b\",\"value_hex\":\"76\"}\n");
    let ran = place.run("put db --hex 0x1 00");
    assert_eq!(ran.status, 2);
    assert!(ran.stderr.starts_with("terrace: odd number of hexadecimal digits"), "{}", ran.stderr);
}

#[test]
fn scans_keep_to_their_range() {
    let place = with_letters();
    for (arguments, keys) in [
        ("", "a b c d e"),
        ("--from b --to d", "b c"),
        ("--from bb", "c d e"),
        ("--prefix c", "c"),
        ("--prefix c --from d", ""),
        ("--from d --to b", ""),
        ("--limit 2", "a b"),
        ("--limit 0", ""),
        ("--reverse", "e d c b a"),
        ("--reverse --limit 2 --to d", "c b"),
    ] {
        let output = place.succeed(&format!("scan db --keys-only {arguments}"));
        assert_eq!(output.lines().collect::<Vec<_>>().join(" "), keys, "scan {arguments}");
        let count = place.succeed(&format!("count db {arguments}"));
        assert_eq!(count, format!("{}\n", output.lines().count()), "count {arguments}");
    }
    assert_eq!(place.succeed("scan db --from d"), "d\tvalue-d\ne\tvalue-e\n");
    assert_eq!(place.succeed("scan db --limit 1 --keys-only --json"), "{\"key\":\"a\"}\n");
    assert_eq!(place.succeed("count db --json"), "{\"count\":5}\n");
}

#[test]
fn keyspaces_are_apart() {
    let place = with_letters();
    place.succeed("put db a other --keyspace more");
    assert_eq!(place.succeed("get db a --keyspace more"), "other\n");
    assert_eq!(place.succeed("get db a"), "value-a\n");
    assert_eq!(place.succeed("count db --keyspace more"), "1\n");
    place.succeed("delete db a --keyspace more");
    assert_eq!(place.succeed("get db a"), "value-a\n");
    for arguments in ["get db a --keyspace none", "delete db a --keyspace none"] {
        let ran = place.run(arguments);
        assert_eq!((ran.status, ran.stdout.as_str()), (2, ""), "{arguments}");
        assert!(ran.stderr.contains("no keyspace \"none\": there are default, more"), "{}", ran.stderr);
    }
}

#[test]
fn missing_store_is_an_error_and_stays_missing() {
    let place = Workplace::new();
    for command in [
        "get db k",
        "scan db",
        "count db",
        "dump db",
        "stats db",
        "shape db",
        "verify db",
        "delete db k",
        "compact db",
    ] {
        let ran = place.run(command);
        assert_eq!((ran.status, ran.stdout.as_str()), (2, ""), "{command}");
        assert!(ran.stderr.starts_with("terrace: cannot open db: "), "{command}: {}", ran.stderr);
        assert!(!place.path("db").exists(), "{command} made a directory");
    }
}

#[test]
fn reading_commands_leave_no_trace() {
    let place = with_letters();
    let traces = || {
        let entries = std::fs::read_dir(place.path("db")).unwrap().map(|entry| entry.unwrap());
        let mut traces: Vec<_> = entries
            .map(|entry| {
                let metadata = entry.metadata().unwrap();
                (entry.file_name(), metadata.len(), metadata.modified().unwrap())
            })
            .collect();
        traces.sort();
        traces
    };
    let before = traces();
    for command in [
        "get db a",
        "scan db",
        "count db",
        "dump db",
        "stats db",
        "shape db",
        "verify db",
        "manifest-dump db",
    ] {
        place.succeed(command);
        assert_eq!(traces(), before, "{command}");
    }
}

#[test]
fn closed_pipe_is_no_error() {
    let place = Workplace::new();
    let lines: String = (0..20_000).map(|n| format!("key-{n:08}\t{:064}\n", n)).collect();
    assert_eq!(place.run_with("load db --format tsv", lines).status, 0);
    let mut child = place.command("scan db").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::with_capacity(100, child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert!(first.starts_with("key-00000000\t"));
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}

#[test]
fn compacted_store_verifies_and_keeps_its_records() {
    let place = with_letters();
    place.succeed("delete db c");
    assert_eq!(place.succeed("compact db"), "");
    assert_eq!(place.succeed("compact db --keyspace default"), "");
    assert!(place.succeed("verify db").ends_with(": 0 problems\n"));
    let report: Value = serde_json::from_str(&place.succeed("verify db --json")).unwrap();
    assert_eq!(report["problems"], Value::Array(Vec::new()));
    assert!(report["entries"].as_u64() >= Some(4), "{report}");
    assert_eq!(place.succeed("scan db --keys-only"), "a\nb\nd\ne\n");
}

#[test]
fn stats_and_shape_come_as_text_and_as_objects() {
    let place = with_letters();
    let stats: Value = serde_json::from_str(&place.succeed("stats db --json")).unwrap();
    for pointer in
        ["/space/total_bytes", "/written/total", "/syncs/wal", "/cache/hits", "/compaction/jobs", "/last_seq"]
    {
        assert!(stats.pointer(pointer).is_some_and(Value::is_u64), "{pointer} in {stats}");
    }
    assert_eq!(stats["keyspaces"][0]["keyspace"], "default");
    assert!(place.succeed("stats db").contains("space.total_bytes"));
    let shape: Value = serde_json::from_str(&place.succeed("shape db --json")).unwrap();
    assert_eq!(shape["keyspace"], "default");
    let level = &shape["levels"][0];
    assert!(
        level["limit_bytes"].is_u64() && level["score"].is_number() && level["tables"].is_u64(),
        "{shape}"
    );
    let text = place.succeed("shape db");
    assert!(text.starts_with("keyspace default\nlevel "), "{text}");
    assert_eq!(text.lines().count(), 2 + shape["levels"].as_array().unwrap().len());
}

#[test]
fn wrong_usage_exits_with_two_and_help_with_zero() {
    let place = Workplace::new();
    for wrong in ["", "fetch db k", "get db", "load db --format xml", "put db k"] {
        assert_eq!(place.run(wrong).status, 2, "terrace {wrong}");
    }
    assert!(place.succeed("--version").starts_with("terrace "));
    for command in
        ["put", "get", "multi-get", "delete", "delete-range", "scan", "count", "dump", "load", "ingest"]
            .into_iter()
            .chain(["checkpoint", "stats", "properties", "shape", "verify", "repair", "compact"])
            .chain([
                "manifest-dump",
                "wal-dump",
                "table-dump",
                "bench ycsb",
                "bench db",
                "man",
                "completions",
            ])
    {
        let help = place.succeed(&format!("{command} --help"));
        assert!(help.contains("Examples:\n  "), "{command}: {help}");
    }
}
