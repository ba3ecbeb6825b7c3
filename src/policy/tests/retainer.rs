//! What is kept of compacted tables, and when it goes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::catalog::{BufferList, CompactionBuffer, Descent, TableMeta};
use crate::policy::{BufferConfig, Retainer};

const CONFIG: BufferConfig =
    BufferConfig { cached_percent: 80, period: Duration::from_secs(30), share_percent: 10, has_rounds: true };

/// A table of so many KiB.
fn of(id: u64, range: &str, kib: u64) -> Arc<TableMeta> {
    crate::catalog::testing::table(&table(id, id, parse_range(range), kib << 10))
}

/// A buffer to whose level 1 these came, at these times, and the tree then.
fn buffer(tables: &[(Arc<TableMeta>, u64)], tree: &Version) -> CompactionBuffer {
    let mut buffer = CompactionBuffer::default();
    for (table, now) in tables {
        let (source, target) = (0, 1);
        let descent = Descent { source, target, tables: vec![table.clone()], is_kept: true, is_whole: false };
        buffer = buffer.behind(&TreeEdit::default(), (tree, tree), Some(&descent), *now);
    }
    buffer
}

fn level1(kib: u64) -> Version {
    version(vec![(1, table(900, 900, parse_range("a-z"), kib << 10))])
}

fn ids(tables: &BTreeSet<TableId>) -> Vec<u64> {
    tables.iter().map(|id| id.0).collect()
}

#[test]
fn only_what_goes_down_by_itself_is_kept() {
    let plan =
        Plan { kind: PlanKind::Compact, source: 1, target: 2, reason: Reason::LevelBytes, ..any_plan() };
    let keeps = |plan: &Plan| Retainer::Buffer(CONFIG).keeps(plan);
    assert!(keeps(&plan) && keeps(&Plan { kind: PlanKind::Move, ..plan.clone() }));
    assert!(!keeps(&Plan { reason: Reason::Manual, ..plan.clone() }));
    assert!(!keeps(&Plan { kind: PlanKind::Rewrite, source: 1, target: 1, ..plan.clone() }));
    assert!(!Retainer::Drop.keeps(&plan));
}

#[test]
fn a_level_that_grows_by_less_than_comes_in_repeats_its_keys() {
    let tree = level1(1000);
    let list = |kib: u64| buffer(&[(of(1, "a-z", kib), 0)], &tree).list(1).clone();
    let repeats = |arrived: u64, level: u64, limit: u64, config: BufferConfig| {
        config.is_repeated(&list(arrived), level << 10, limit << 10)
    };
    assert!(!repeats(100, 100, 1000, CONFIG) && !repeats(100, 95, 1000, CONFIG));
    assert!(repeats(100, 94, 1000, CONFIG));
    assert!(!repeats(99, 10, 1000, CONFIG), "too early to tell");
    assert!(!repeats(100, 10, 1000, BufferConfig { has_rounds: false, ..CONFIG }));
    // A level that was there before: what counts is by how much it has grown.
    let there = level1(1000);
    let list = |kib: u64| {
        let descent =
            Descent { source: 0, target: 1, tables: vec![of(1, "a-z", kib)], is_kept: true, is_whole: false };
        let cold = CompactionBuffer::cold(&there);
        cold.behind(&TreeEdit::default(), (&there, &there), Some(&descent), 0).list(1).clone()
    };
    assert!(CONFIG.is_repeated(&list(100), 1000 << 10, 1000 << 10));
    assert!(!CONFIG.is_repeated(&list(100), 1100 << 10, 1000 << 10));
    // What is ingested is no growth either.
    let mut ingested = table(2, 2, parse_range("a-z"), 500 << 10);
    ingested.id = TableId(77);
    let edit = TreeEdit { add: vec![(1, ingested)], ..TreeEdit::default() };
    let buffer = CompactionBuffer::cold(&there).behind(&edit, (&there, &there), None, 0);
    assert_eq!(buffer.list(1).other_bytes(), 1500 << 10);
}

#[test]
fn what_is_in_the_cache_for_the_most_part_stays() {
    let ranges = [(1, "a-f"), (2, "g-m"), (3, "n-s"), (4, "t-z"), (5, "a-f"), (6, "g-m")];
    let tables: Vec<_> = ranges.map(|(id, range)| (of(id, range, 100), id)).into();
    let list: BufferList = buffer(&tables, &level1(1000)).list(1).clone();
    let cached = |table: &TableMeta| if table.id.0.is_multiple_of(2) { 80 << 10 } else { 79 << 10 };
    // The last three periods are for warming up.
    let leveled = BufferConfig { has_rounds: false, ..CONFIG };
    assert_eq!(ids(&leveled.cold(&list, 4, cached)), [1]);
    assert_eq!(ids(&leveled.cold(&list, 9, cached)), [1, 3, 5]);
    let none: [u64; 0] = [];
    assert_eq!(ids(&CONFIG.cold(&list, 9, cached)), none, "the first level goes down as a whole");
    // A cold table that lies over a warm one keeps it in reach.
    let cached = |table: &TableMeta| if table.id.0 < 5 { 80 << 10 } else { 0 };
    assert_eq!(ids(&leveled.cold(&list, 9, cached)), [] as [u64; 0]);
}

#[test]
fn the_coldest_goes_where_the_share_is_too_small_but_nothing_that_the_tree_has_too() {
    let tables: Vec<_> = (1..=4).map(|id| (of(id, "a-z", 100), id)).collect();
    let in_tree = version(vec![(1, table(1, 1, parse_range("a-z"), 1000 << 10))]);
    let cached = |table: &TableMeta| 10 * table.id.0;
    let beyond = |tree: &Version, share_percent| {
        let config = BufferConfig { share_percent, ..CONFIG };
        ids(&config.beyond_share(&buffer(&tables, tree), tree, cached))
    };
    assert_eq!(beyond(&level1(1000), 10), [1, 2, 3]);
    assert_eq!(beyond(&level1(1000), 20), [1, 2]);
    assert_eq!(beyond(&in_tree, 20), [2]);
    assert_eq!(beyond(&level1(1000), 40), [] as [u64; 0]);
}

#[test]
fn the_buffer_of_a_level_that_goes_down_shrinks_with_it_in_key_order() {
    let tables: Vec<_> =
        [(1, "a-f"), (2, "g-m"), (3, "n-s"), (4, "t-z")].map(|(id, range)| (of(id, range, 100), 0)).into();
    let tree = level1(400);
    let filled = buffer(&tables, &tree);
    let sunk = version(vec![(2, table(900, 900, parse_range("a-z"), 400 << 10))]);
    let whole = Descent { source: 1, target: 2, tables: Vec::new(), is_kept: true, is_whole: true };
    let list = filled.behind(&TreeEdit::default(), (&tree, &sunk), Some(&whole), 0).list(2).clone();
    let drained = |range: &str, kib: u64| {
        let left = version(vec![(2, table(900, 900, parse_range(range), kib << 10))]);
        let level = left.level(2);
        ids(&CONFIG.drained(&list, (&level.runs, level.bytes())))
    };
    assert_eq!(drained("a-z", 400), [] as [u64; 0]);
    assert_eq!(drained("a-z", 399), [1]);
    assert_eq!(drained("a-z", 200), [1, 2]);
    // What nothing of the level overlaps is of no use.
    assert_eq!(drained("n-s", 300), [1, 2, 4]);
    // One that does not go down as a whole keeps all else.
    let level = level1(1);
    assert_eq!(ids(&CONFIG.drained(filled.list(1), (&level.level(1).runs, 1))), [] as [u64; 0]);
}
