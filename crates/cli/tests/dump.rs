//! `terrace dump`, and the dumps of single files, whole and damaged.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;

use crate::common::{Ran, Workplace};
use serde_json::Value;
use terrace::Db;
use terrace_bench::store;

/// A store with records in two keyspaces, all in tables, and one write in the log behind them.
fn with_keyspaces() -> Workplace {
    let place = Workplace::new();
    let lines: String = (0..500).map(|n| format!("key-{n:04}\tvalue of {n}\n")).collect();
    assert_eq!(place.run_with("load db --format tsv", lines).status, 0);
    place.succeed("put db --keyspace more --hex ff00 0a");
    place.succeed("compact db");
    place.succeed("put db late write --sync");
    place
}

/// The last file of the store, in the order of names, whose name has this in it.
fn file_of(place: &Workplace, part: &str) -> String {
    let entries = std::fs::read_dir(place.path("db")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.contains(part)).max().unwrap()
}

fn objects(ran: &Ran) -> Vec<Value> {
    ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// How many objects tell of what.
fn counts(objects: &[Value]) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    objects
        .iter()
        .filter_map(|object| object["what"].as_str())
        .for_each(|what| *counts.entry(what).or_default() += 1);
    counts
}

fn flip_byte(place: &Workplace, name: &str, offset: usize) {
    let mut bytes = std::fs::read(place.path(name)).unwrap();
    bytes[offset] ^= 1;
    place.write(name, bytes);
}

#[test]
fn dump_of_all_keyspaces_loads_back_exactly() {
    let place = with_keyspaces();
    for (copy, dump) in [("copy", "dump db"), ("hex-copy", "dump db --hex")] {
        let dumped = place.succeed(dump);
        assert_eq!(dumped.lines().count(), 502);
        assert_eq!(place.run_with(&format!("load {copy}"), &dumped).status, 0);
        assert_eq!(place.succeed(&format!("dump {copy} --hex")), place.succeed("dump db --hex"));
    }
    assert_eq!(
        place.succeed("dump db --keyspace more"),
        "{\"key_hex\":\"ff00\",\"keyspace\":\"more\",\"value\":\"\\n\"}\n"
    );
    let ran = place.run("dump db --keyspace none");
    assert_eq!((ran.status, ran.stdout.as_str()), (2, ""));
    assert!(ran.stderr.contains("no keyspace \"none\": there are default, more"), "{}", ran.stderr);
}

#[test]
fn manifest_dump_tells_of_keyspaces_packs_and_tables() {
    let place = with_keyspaces();
    let ran = place.run("manifest-dump db --json");
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let objects = objects(&ran);
    let counts = counts(&objects);
    for what in ["edit", "create_keyspace", "pack", "tree", "add"] {
        assert!(counts.get(what) > Some(&0), "{what}: {counts:?}");
    }
    assert_eq!(objects.last().unwrap()["state"], "clean");
    let names: Vec<&Value> =
        objects.iter().filter(|object| object["what"] == "create_keyspace").map(|o| &o["name"]).collect();
    assert!(names.contains(&&"default".into()) && names.contains(&&"more".into()), "{names:?}");
    let file = file_of(&place, "MANIFEST-");
    assert_eq!(place.succeed(&format!("manifest-dump db/{file} --json")), ran.stdout);
    let text = place.succeed("manifest-dump db");
    assert!(text.starts_with("start offset=0 store=") && text.contains("\nedit offset=32 number="), "{text}");
}

#[test]
fn wal_dump_shows_each_write() {
    let place = with_keyspaces();
    let wal = file_of(&place, ".wal");
    let ran = place.run(&format!("wal-dump db/{wal}"));
    assert_eq!(ran.status, 0, "{}", ran.stdout);
    assert!(ran.stdout.starts_with("start offset=0 "), "{}", ran.stdout);
    assert!(ran.stdout.contains("  put seq=502 keyspace=1 key=\"late\" value=\"write\"\n"), "{}", ran.stdout);
    let objects = objects(&place.run(&format!("wal-dump db/{wal} --json --hex")));
    let put = objects.iter().find(|object| object["what"] == "put").unwrap();
    assert_eq!((&put["key_hex"], &put["value_hex"]), (&"6c617465".into(), &"7772697465".into()));
}

#[test]
fn damaged_frame_is_named_and_the_ones_behind_it_are_shown() {
    let place = Workplace::new();
    assert_eq!(
        place.run_with("load db --batch 1 --sync --format tsv", "first\t1\nsecond\t2\nthird\t3\n").status,
        0
    );
    let wal = format!("db/{}", file_of(&place, ".wal"));
    let bytes = std::fs::read(place.path(&wal)).unwrap();
    let at = bytes.windows(6).position(|window| window == b"second").unwrap();
    flip_byte(&place, &wal, at);
    let ran = place.run(&format!("wal-dump {wal}"));
    assert_eq!(ran.status, 1, "{}", ran.stdout);
    assert!(ran.stdout.contains("key=\"first\"") && ran.stdout.contains("key=\"third\""), "{}", ran.stdout);
    assert!(!ran.stdout.contains("key=\"second\""), "{}", ran.stdout);
    let damage = ran.stdout.lines().find(|line| line.starts_with("damage ")).unwrap();
    assert!(damage.contains("no frame that checks"), "{damage}");
}

#[test]
fn table_dump_goes_from_the_directory_to_the_entries() {
    let place = with_keyspaces();
    let pack = file_of(&place, ".pack");
    let shown = |options: &str| {
        let ran = place.run(&format!("table-dump db/{pack} --json {options}"));
        assert_eq!(ran.status, 0, "{}{}", ran.stdout, ran.stderr);
        ran
    };
    let (tables, blocks, entries) = (shown("--properties"), shown(""), shown("--entries"));
    let (tables, blocks, entries) = (objects(&tables), objects(&blocks), objects(&entries));
    let (tables, blocks, entries) = (counts(&tables), counts(&blocks), counts(&entries));
    assert!(tables["directory"] == 1 && tables["properties"] >= 1 && !tables.contains_key("block"));
    assert!(blocks["block"] >= 1 && blocks["index"] >= 1 && !blocks.contains_key("put"));
    assert!(entries["put"] >= 1, "{entries:?}");
}

#[test]
fn range_deletes_show_in_the_log_and_in_tables() {
    let place = with_keyspaces();
    place.succeed("delete-range db --prefix key-00 --sync");
    let shown = "delete_range seq=503 keyspace=1 start=\"key-00\" end=\"key-01\"\n";
    let wal = place.succeed(&format!("wal-dump db/{}", file_of(&place, ".wal")));
    assert!(wal.contains(shown), "{wal}");
    // A flush, and no compaction, in idle time or otherwise, that would carry the deletion out.
    let leveled = store::options("leveldb-2m").unwrap();
    let db = Db::builder(place.path("db")).options(leveled).open().unwrap();
    db.flush().unwrap();
    db.close().unwrap();
    let packs = std::fs::read_dir(place.path("db")).unwrap().map(|entry| entry.unwrap().path());
    let packs = packs.filter(|path| path.extension().is_some_and(|ending| ending == "pack"));
    let dumps: String =
        packs.map(|path| place.succeed(&format!("table-dump {} --entries", path.display()))).collect();
    assert!(dumps.contains("delete_range seq=503 start=\"key-00\" end=\"key-01\"\n"), "{dumps}");
}

/// All packs together hold every entry, and a damaged block costs no more than its own.
#[test]
fn damaged_block_and_directory_do_not_hide_the_rest() {
    let place = Workplace::new();
    let lines: String = (0..5000).map(|n| format!("key-{n:04}\t{:080}\n", n)).collect();
    assert_eq!(place.run_with("load db --format tsv", lines).status, 0);
    place.succeed("compact db");
    let pack = format!("db/{}", file_of(&place, ".pack"));
    let dump = format!("table-dump {pack} --entries --json");
    let whole = objects(&place.run(&dump));
    let puts = counts(&whole)["put"];
    assert!(puts > 1000, "{puts}");

    flip_byte(&place, &pack, 100);
    let ran = place.run(&dump);
    assert_eq!(ran.status, 1);
    let damaged = objects(&ran);
    let left = counts(&damaged)["put"];
    assert!(left < puts && left > puts / 2, "{left} of {puts}");
    let damage = damaged.iter().find(|object| object["what"] == "damage").unwrap();
    assert_eq!(damage["problem"], "block checksum mismatch");

    let length = std::fs::metadata(place.path(&pack)).unwrap().len() as usize;
    flip_byte(&place, &pack, length - 1);
    let ran = place.run(&dump);
    let found = objects(&ran);
    assert_eq!((ran.status, counts(&found)["put"]), (1, left), "{:?}", found.first());
    assert!(found[0]["problem"].as_str().unwrap().starts_with("no directory: "));
}

#[test]
fn files_under_foreign_names_are_refused() {
    let place = with_keyspaces();
    place.write("copy", "");
    for (command, message) in [
        ("wal-dump copy", "copy is no log segment by its name"),
        ("table-dump copy", "copy is no pack by its name"),
        ("manifest-dump copy", "copy is no manifest by its name"),
        ("wal-dump 000001.wal", "cannot read 000001.wal: "),
        ("manifest-dump .", "cannot read ./CURRENT: "),
    ] {
        let ran = place.run(command);
        assert_eq!(ran.status, 2, "{command}");
        assert!(ran.stderr.contains(message), "{command}: {}", ran.stderr);
    }
}
