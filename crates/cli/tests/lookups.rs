//! `terrace multi-get`, `terrace properties` and `terrace stats --prometheus`.

use crate::common::Workplace;
use serde_json::Value;

#[test]
fn records_of_several_keys_come_in_the_order_asked_for() {
    let place = Workplace::new();
    for key in ["a", "b", "c"] {
        place.succeed(&format!("put db {key} value-{key}"));
    }
    assert_eq!(place.succeed("multi-get db c a"), "c\tvalue-c\na\tvalue-a\n");
    assert_eq!(place.succeed("multi-get db --hex 62"), "62\t76616c75652d62\n");
    let ran = place.run("multi-get db a x --json");
    assert_eq!(
        (ran.status, ran.stdout.as_str()),
        (1, "{\"key\":\"a\",\"value\":\"value-a\"}\n{\"key\":\"x\"}\n")
    );
    assert_eq!(place.run("multi-get db x").stdout, "");
    assert_eq!(place.run("multi-get db").status, 2);
}

#[test]
fn properties_have_the_names_of_other_stores_too() {
    let place = Workplace::new();
    place.succeed("put db a 1");
    place.succeed("compact db");
    let names = "terrace.num-entries rocksdb.estimate-num-keys";
    let expected = "terrace.num-entries: 1\nrocksdb.estimate-num-keys: 1\n";
    assert_eq!(place.succeed(&format!("properties db {names}")), expected);
    let all = place.succeed("properties db");
    assert!(all.contains("terrace.last-sequence: 1\n") && all.contains("terrace.stats:\n"), "{all}");
    let object: Value = serde_json::from_str(&place.succeed("properties db --json")).unwrap();
    assert_eq!(object["terrace.num-entries"], "1");
    let ran = place.run("properties db terrace.mood");
    assert_eq!(ran.status, 2);
    assert!(ran.stderr.starts_with("terrace: there is no property \"terrace.mood\": there are terrace."));
}

#[test]
fn statistics_come_as_prometheus_reads_them() {
    let place = Workplace::new();
    place.succeed("put db a 1");
    place.succeed("compact db");
    let text = place.succeed("stats db --prometheus");
    for line in [
        "# TYPE terrace_level_entries gauge",
        "terrace_level_entries{keyspace=\"default\",level=\"1\"} 1",
        "terrace_last_sequence_number 1",
        "terrace_poisoned",
    ] {
        let is_there = text.lines().any(|found| found == line);
        // What only a monitor inside of the program knows is not there.
        assert_eq!(is_there, line != "terrace_poisoned", "{line}\n{text}");
    }
    assert_eq!(place.run("stats db --prometheus --json").status, 2);
}
