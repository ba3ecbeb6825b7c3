//! `terrace compact --layout`.
#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use terrace::{Db, KeyspaceOptions, Prefix};
use terrace_bench::store;

use crate::common::Workplace;

/// Layouts, as options of `terrace bench` at sizes under which a few thousand records fill levels.
const SMALL: [(&str, &str); 6] = [
    ("default", "l0_bytes=16K"),
    ("leveled", "level1_bytes=16K:ratio=4"),
    ("tiered", "runs=3:last_runs=3"),
    ("lazy", "level1_bytes=16K:runs=3"),
    ("prefixed", "level1_bytes=16K:ratio=4:table_bytes=4K"),
    ("guarded", "top_bits=9:bits_step=1:guard_bytes=8K:table_bytes=4K"),
];

const KEYSPACES: [&str; 2] = ["default", "photos"];

/// A store of two keyspaces, with two runs in level 1, one in level 2, one in level 0, and a write in the log alone.
fn with_runs() -> Workplace {
    let place = Workplace::new();
    let tiered =
        store::options("default:layout=tiered:picker=levels:runs=3:last_runs=3:table_bytes=2K").unwrap();
    let db = Db::builder(place.path("db")).options(tiered).open().unwrap();
    let prefix = Some(Prefix::Fixed(2));
    db.keyspace_with("photos", KeyspaceOptions { prefix, ..KeyspaceOptions::default() }).unwrap();
    for name in KEYSPACES {
        let keyspace = db.keyspace(name).unwrap();
        for n in 0..4000u64 {
            keyspace.put(format!("{:04}", n * 7919 % 2000), format!("{name} {n:040}")).unwrap();
            if n % 200 == 199 {
                // So what lies where does not depend on which thread is quicker.
                db.flush().unwrap();
                db.wait_idle().unwrap();
            }
        }
        keyspace.delete_range("0100".."0300").unwrap();
        db.flush().unwrap();
        keyspace.put("0200", "late").unwrap();
        let runs: Vec<_> = keyspace.shape().levels.iter().map(|level| level.runs).collect();
        assert_eq!(runs[..3], [1, 2, 1], "{name}");
    }
    db.close().unwrap();
    place
}

/// Runs and tables of the keyspace's levels below level 0.
fn levels(db: &Db, keyspace: &str) -> (usize, usize) {
    let levels = db.keyspace(keyspace).unwrap().shape().levels;
    let deeper = || levels.iter().filter(|level| level.level > 0 && level.tables > 0);
    assert_eq!(levels[0].tables, 0, "{keyspace}");
    (deeper().map(|level| level.runs).max().unwrap(), deeper().map(|level| level.tables).sum())
}

#[test]
fn a_store_has_the_shape_of_any_layout_at_once_and_keeps_it() {
    let place = with_runs();
    let all = place.succeed("dump db");
    assert_eq!(all.lines().count(), 2 * 1801);
    for (name, parts) in SMALL {
        let printed = place.succeed(&format!("compact db --layout {name}:{parts}"));
        for keyspace in KEYSPACES {
            assert!(printed.contains(&format!("keyspace {keyspace}\nlevel ")), "{printed}");
        }
        assert_eq!(place.succeed("dump db"), all, "{name}");
        assert!(place.succeed("verify db").ends_with(": 0 problems\n"), "{name}");
        let known = terrace_bench::layouts::LAYOUTS.iter().find(|(known, _)| *known == name).unwrap();
        let same = store::options(&format!("{}:{parts}", known.1)).unwrap();
        let db = Db::builder(place.path("db")).options(same).open().unwrap();
        db.wait_idle().unwrap();
        let compaction = db.stats().compaction;
        assert_eq!((compaction.jobs, compaction.moves), (0, 0), "{name} leaves nothing to do");
        for keyspace in KEYSPACES {
            assert_eq!(levels(&db, keyspace).0, 1, "{name}: runs of {keyspace}");
        }
        db.close().unwrap();
    }
}

/// There is one run to begin with, of which nothing would go: where its tables end is all that tells the layouts apart.
#[test]
fn tables_are_cut_as_the_layout_has_them_also_in_the_last_level() {
    let place = with_runs();
    let tables = |layout: &str| {
        place.succeed(&format!("compact db --layout {layout}"));
        let db = Db::open_read_only(place.path("db")).unwrap();
        KEYSPACES.map(|keyspace| levels(&db, keyspace).1)
    };
    // A table has at most 1 MiB, and that is more than there is.
    assert_eq!(tables("default"), [1, 1]);
    // Each level has two guards where the one above has one: of level 2 and deeper, at least one key in 128.
    let guarded = tables("guarded:top_bits=9:bits_step=1");
    assert!(guarded.iter().all(|tables| *tables > 5), "{guarded:?}");
    assert_eq!(tables("leveled"), [1, 1]);
    // Of the keyspace with prefixes, whole prefixes; there are 18.
    let prefixed = tables("prefixed:table_bytes=1K");
    assert!((2..=18).contains(&prefixed[1]), "{prefixed:?}");
    assert_eq!(tables("bolt"), [1, 1]);
}

#[test]
fn a_keyspace_by_its_name_is_compacted_and_shown_alone() {
    let place = with_runs();
    let printed = place.succeed("compact db --layout leveled --keyspace photos");
    assert!(printed.starts_with("keyspace photos\nlevel ") && printed.matches("keyspace").count() == 1);
    let lines: Vec<Vec<&str>> = printed.lines().map(|line| line.split_whitespace().collect()).collect();
    // Below the keyspace and the heads: the level, and its runs.
    let runs: Vec<_> = lines[2..5].iter().map(|line| line[..4].join(" ")).collect();
    assert_eq!(runs, ["0 1 -> 0", "1 2 -> 0", "2 1 -> 1"], "{printed}");
}

#[test]
fn an_unknown_layout_is_refused_before_anything_is_touched() {
    let place = Workplace::new();
    place.succeed("put db a 1");
    let before = place.succeed("shape db");
    for (layout, reason) in [
        ("striped", "there are default, auto, leveled, tiered, lazy, prefixed, guarded"),
        ("leveled:runs=2", "only with layout=tiered"),
        ("tiered:picker=cursor", "tree.layout is Tiered"),
    ] {
        let ran = place.run(&format!("compact db --layout {layout}"));
        assert!(ran.status == 2 && ran.stderr.contains(reason), "{layout}: {}", ran.stderr);
    }
    assert_eq!(place.succeed("shape db"), before);
    let ran = place.run("compact db --layout leveled --keyspace none");
    assert!(
        ran.status == 2 && ran.stderr.contains("no keyspace \"none\": there are default"),
        "{}",
        ran.stderr
    );
    let ran = place.run("compact none --layout leveled");
    assert!(ran.status == 2 && ran.stderr.contains("cannot open none"), "{}", ran.stderr);
}
