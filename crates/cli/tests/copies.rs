//! `terrace checkpoint`, `terrace ingest` and `terrace repair`.

#![expect(clippy::disallowed_methods, reason = "the test damages a store by hand")]

use crate::common::Workplace;
use serde_json::Value;

fn with_records() -> Workplace {
    let place = Workplace::new();
    let lines: String = (0..1000).map(|n| format!("key-{n:04}\tvalue of {n}\n")).collect();
    assert_eq!(place.run_with("load db --format tsv", lines).status, 0);
    place.succeed("put db --keyspace more a 1");
    place
}

#[test]
fn checkpoint_is_a_store_of_its_own() {
    let place = with_records();
    assert_eq!(place.succeed("checkpoint db copy"), "");
    place.succeed("delete db key-0000");
    assert_eq!(place.succeed("count copy"), "1000\n");
    assert_eq!(place.succeed("count copy --keyspace more"), "1\n");
    assert!(place.succeed("verify copy").ends_with(": 0 problems\n"));
    assert_eq!(place.run("checkpoint db copy").status, 2);
    assert_eq!(place.run("checkpoint none other").status, 2);
    assert!(!place.path("none").exists() && !place.path("other").exists());
}

#[test]
fn a_store_in_use_is_copied() {
    let place = with_records();
    let db = terrace::Db::open(place.path("db")).unwrap();
    db.put("one-more", "not in a table yet").unwrap();
    assert_eq!(place.run("put db a b").status, 2, "it is in use");
    assert_eq!(place.succeed("checkpoint db copy"), "");
    db.delete("one-more").unwrap();
    assert_eq!(place.succeed("count copy"), "1001\n");
    assert!(place.succeed("verify copy").ends_with(": 0 problems\n"));
}

#[test]
fn sorted_records_are_taken_over_older_ones() {
    let place = with_records();
    let ran = place.run_with("ingest db --format tsv", "key-0001\tnew\nkey-9\t\n");
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(ran.stderr.starts_with("2 records are in, in "), "{}", ran.stderr);
    assert_eq!(place.succeed("get db key-0001"), "new\n");
    assert_eq!(place.succeed("count db"), "1001\n");
    let dumped = place.succeed("dump db --keyspace default");
    assert_eq!(place.run_with("ingest fresh", &dumped).status, 0);
    assert_eq!(place.succeed("dump fresh"), dumped);
}

#[test]
fn unsorted_and_foreign_records_leave_nothing_behind() {
    let place = with_records();
    for (input, message) in [
        ("b\t1\na\t2\n", "terrace: stdin:2: "),
        ("b\t1\nb\t2\n", "terrace: stdin:2: "),
        ("b\t1\nnonsense\n", "terrace: stdin:2: expected a tab between key and value; nothing is taken\n"),
    ] {
        let ran = place.run_with("ingest db --format tsv", input);
        assert_eq!(ran.status, 1, "{input}");
        assert!(ran.stderr.starts_with(message), "{input}: {}", ran.stderr);
        assert_eq!(place.succeed("count db"), "1000\n");
    }
    let ran = place.run_with("ingest db", "{\"keyspace\":\"more\",\"key\":\"z\",\"value\":\"1\"}\n");
    assert_eq!(ran.status, 1);
    assert!(
        ran.stderr.contains("a record of keyspace \"more\", while \"default\" is filled"),
        "{}",
        ran.stderr
    );
}

#[test]
fn damage_is_listed_whether_the_store_opens_or_not() {
    let place = with_records();
    place.succeed("compact db");
    let mut files = std::fs::read_dir(place.path("db")).unwrap().map(|entry| entry.unwrap().path());
    let pack = files.find(|path| path.extension().is_some_and(|end| end == "pack")).unwrap();
    let whole = std::fs::read(&pack).unwrap();
    let mut flipped = whole.clone();
    flipped[100] ^= 1;
    for (bytes, opens) in [(&flipped[..], true), (&whole[..whole.len() - 1], false)] {
        std::fs::write(&pack, bytes).unwrap();
        assert_eq!(place.run("count db").status, 2);
        let ran = place.run("verify db --json");
        assert_eq!(ran.status, 1, "{}", ran.stderr);
        assert_eq!(ran.stderr.is_empty(), opens, "{}", ran.stderr);
        let report: Value = serde_json::from_str(&ran.stdout).unwrap();
        let problem = &report["problems"][0];
        assert!(
            problem["file"].as_str().unwrap().ends_with(".pack") && problem["offset"].is_u64(),
            "{problem}"
        );
    }
    std::fs::write(&pack, whole).unwrap();
    assert_eq!(place.run("verify db").status, 0);
    assert_eq!(place.run("verify none").status, 2);
}

#[test]
fn repaired_store_has_what_is_left() {
    let place = with_records();
    let whole = place.run("repair db whole");
    assert_eq!(whole.status, 0, "{}", whole.stderr);
    assert!(whole.stdout.starts_with("2 keyspaces, ") && whole.stdout.ends_with(" 1001 entries: 0 losses\n"));
    assert_eq!(place.succeed("dump whole"), place.succeed("dump db"));

    std::fs::remove_file(place.path("db/CURRENT")).unwrap();
    assert_eq!(place.run("count db").status, 2);
    let ran = place.run("repair db rest --json");
    assert_eq!(ran.status, 1, "{}", ran.stderr);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&report["entries"], report["lost"].as_array().map(Vec::len)), (&1001.into(), Some(1)));
    assert_eq!(place.succeed("count rest"), "1000\n");
    assert_eq!(place.run("repair db rest").status, 2);
}
