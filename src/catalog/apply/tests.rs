//! Tests of edits of one tree: what they change, what they refuse, and when an extent is released.

use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::catalog::testing::{flushed, record, version};
use crate::catalog::{ExtentSink, check_version};
use crate::types::{Extent, KeyRange, PackId, UpperBound};

fn none(_: &TableRecord) -> Lease {
    Lease::none()
}

fn level_ids(version: &Version, level: u8) -> Vec<Vec<u64>> {
    let runs = &version.level(level).runs;
    runs.iter().map(|run| run.iter().map(|table| table.id.0).collect()).collect()
}

fn edit(drop: &[(u8, u64)], add: Vec<(u8, TableRecord)>) -> TreeEdit {
    let drop = drop.iter().map(|(level, id)| (*level, TableId(*id))).collect();
    TreeEdit { drop, add, ..TreeEdit::default() }
}

#[test]
fn level_0_has_a_run_per_epoch_newest_first() {
    let tree = version(vec![
        (0, flushed(2, record(2, "a", "c"))),
        (0, flushed(5, record(5, "a", "c"))),
        (0, flushed(3, record(3, "a", "c"))),
        (0, flushed(3, record(4, "d", "e"))),
    ]);
    assert_eq!(level_ids(&tree, 0), [vec![5], vec![3, 4], vec![2]]);
    check_version(&tree).unwrap();
    let tree = tree.apply(&edit(&[(0, 5), (0, 4)], vec![]), &mut none).unwrap();
    assert_eq!(level_ids(&tree, 0), [[3], [2]]);
    let tree = tree.apply(&edit(&[(0, 3), (0, 2)], vec![]), &mut none).unwrap();
    assert!(tree.is_empty());
    assert_eq!(tree.deepest(), None);
}

#[test]
fn a_move_keeps_the_object() {
    let tree = version(vec![(1, record(1, "a", "c")), (2, record(2, "x", "z"))]);
    let before = Arc::clone(tree.table(TableId(1)).unwrap().1);
    let moved = tree.apply(&edit(&[(1, 1)], vec![(2, record(1, "a", "c"))]), &mut none).unwrap();
    assert_eq!(level_ids(&moved, 2), [[1, 2]]);
    assert_eq!(moved.deepest(), Some(2));
    assert!(moved.level(1).runs.is_empty());
    let (level, after) = moved.table(TableId(1)).unwrap();
    assert!(level == 2 && Arc::ptr_eq(&before, after));
    assert_eq!(level_ids(&tree, 1), [[1]], "the version that was edited is as it was");
}

#[test]
fn a_moved_table_may_get_a_higher_epoch_and_stays_the_same_table() {
    let sink = Arc::new(Released::default());
    let mut adopt = |record: &TableRecord| Lease::new(Arc::clone(&sink) as _, record.extent);
    let first = edit(&[], vec![(1, flushed(5, record(1, "a", "c"))), (2, flushed(7, record(2, "b", "d")))]);
    let tree = Version::empty().apply(&first, &mut adopt).unwrap();
    tree.table(TableId(1)).unwrap().1.attachment.set(Arc::new("reader"));
    let at = |epoch, table: TableRecord| TableRecord { epoch: Epoch(epoch), ..table };
    let old = || flushed(5, record(1, "a", "c"));
    // Below what is in level 2, it would hide nothing of that. Within a level, no table gets younger.
    for (level, epoch) in [(2, 4), (1, 8), (1, 4)] {
        let refused = tree.apply(&edit(&[(1, 1)], vec![(level, at(epoch, old()))]), &mut adopt).unwrap_err();
        assert!(refused.to_string().contains("I3"), "{refused}");
    }
    let moved = tree.apply(&edit(&[(1, 1)], vec![(2, at(8, old()))]), &mut adopt).unwrap();
    assert_eq!(level_ids(&moved, 2), [[1], [2]]);
    let table = Arc::clone(moved.table(TableId(1)).unwrap().1);
    assert_eq!(table.record(), at(8, old()));
    assert_eq!(table.attachment.get::<&str>(), Some(&"reader"));
    check_version(&moved).unwrap();
    drop(moved);
    drop(table);
    assert_eq!(sink.0.load(Ordering::Relaxed), 0, "the version before it holds the same bytes");
    drop(tree);
    assert_eq!(sink.0.load(Ordering::Relaxed), 1 << 8 | 1 << 16, "released once");
}

#[test]
fn a_level_of_many_runs_is_what_its_tables_make_it() {
    let aged = |epoch, id, from, to| (2, flushed(epoch, record(id, from, to)));
    let all = [aged(3, 1, "a", "f"), aged(4, 2, "e", "k"), aged(4, 3, "m", "p"), aged(6, 4, "j", "n")];
    let tree = version(all.to_vec());
    assert_eq!(level_ids(&tree, 2), [vec![4], vec![2], vec![1, 3]]);
    let without = tree.apply(&edit(&[(2, 1)], vec![]), &mut none).unwrap();
    assert_eq!(level_ids(&without, 2), [vec![4], vec![2, 3]], "what lay above has sunk");
    check_version(&without).unwrap();
    let again = without.apply(&edit(&[], vec![all[0].clone()]), &mut none).unwrap();
    assert_eq!(level_ids(&again, 2), level_ids(&tree, 2));
    let part = tree.within(&[KeyRange::new(*b"a", *b"b"), KeyRange::new(*b"n", *b"n")]);
    assert_eq!(level_ids(&part, 2), [vec![4], vec![1, 3]]);
}

#[test]
fn a_relocation_makes_a_new_object_and_a_move_changes_nothing_else() {
    let tree = version(vec![(1, record(1, "a", "c"))]);
    let mut elsewhere = record(1, "a", "c");
    elsewhere.extent.pack = PackId(77);
    let mut adopted = Vec::new();
    let relocated = tree.apply(&edit(&[(1, 1)], vec![(1, elsewhere.clone())]), &mut |record| {
        adopted.push(record.extent.pack);
        Lease::none()
    });
    assert_eq!(adopted, [PackId(77)]);
    assert_eq!(relocated.unwrap().table(TableId(1)).unwrap().1.record(), elsewhere);
    let mut longer = elsewhere.clone();
    longer.extent.length += 1;
    let wider = TableRecord { range: KeyRange::new(*b"a", *b"d"), ..elsewhere };
    for changed in [longer, wider] {
        assert!(tree.apply(&edit(&[(1, 1)], vec![(2, changed)]), &mut none).is_err());
    }
}

#[test]
fn edits_that_contradict_the_tree_are_refused() {
    let tree = version(vec![(1, record(1, "a", "c"))]);
    let inverted = TableRecord {
        range: KeyRange { start: (*b"b").into(), end: UpperBound::after(b"a") },
        ..record(2, "a", "b")
    };
    let mut askew = record(2, "x", "y");
    askew.extent.offset = 100;
    let mut endless = record(2, "x", "y");
    endless.extent.offset = u64::MAX - u64::MAX % PAGE_BYTES;
    let cases = [
        edit(&[(1, 9)], vec![]),
        edit(&[(2, 1)], vec![]),
        edit(&[(200, 1)], vec![]),
        edit(&[(1, 1), (1, 1)], vec![]),
        edit(&[], vec![(1, record(1, "x", "z"))]),
        edit(&[], vec![(1, record(2, "x", "z")), (2, record(2, "x", "z"))]),
        edit(&[], vec![(1, record(2, "c", "z"))]),
        edit(&[], vec![(8, record(2, "x", "z"))]),
        edit(&[], vec![(1, inverted)]),
        edit(&[], vec![(1, askew)]),
        edit(&[], vec![(1, endless)]),
        edit(&[], vec![(1, TableRecord { tombstones: 11, ..record(2, "x", "z") })]),
        edit(&[], vec![(1, TableRecord { entries: 0, ..record(2, "x", "z") })]),
        TreeEdit { cursors: vec![(8, (*b"c").into())], ..TreeEdit::default() },
    ];
    for case in cases {
        assert!(tree.apply(&case, &mut none).is_err(), "{case:?}");
    }
}

#[test]
fn cursors_are_kept_until_they_move() {
    let tree = version(vec![(1, record(1, "a", "c"))]);
    let cursor = |key: &[u8]| TreeEdit { cursors: vec![(1, key.into())], ..TreeEdit::default() };
    let tree = tree.apply(&cursor(b"c"), &mut none).unwrap();
    let tree = tree.apply(&TreeEdit::default(), &mut none).unwrap();
    assert_eq!(tree.level(1).cursor.as_deref(), Some(&b"c"[..]));
    assert!(tree.level(2).cursor.is_none());
    let debug = format!("{tree:?}");
    assert!(debug.contains("L1 [t1[a..c]e1 4096B #10..#19]") && debug.contains("L1 cursor=c"), "{debug}");
}

#[test]
fn a_part_of_a_tree_has_what_overlaps_a_range_and_holds_nothing_else() {
    let sink = Arc::new(Released::default());
    let mut adopt = |record: &TableRecord| Lease::new(Arc::clone(&sink) as _, record.extent);
    let add = vec![
        (0, record(1, "a", "c")),
        (0, flushed(2, record(2, "b", "e"))),
        (1, record(3, "a", "b")),
        (1, record(4, "c", "d")),
        (1, record(5, "e", "g")),
        (2, record(6, "f", "z")),
    ];
    let tree = Version::empty().apply(&edit(&[], add), &mut adopt).unwrap();
    let range = |from: &str, to: &str| KeyRange::new(from.as_bytes(), to.as_bytes());
    let part = tree.within(&[range("d", "e")]);
    let ids = |tree: &Version| tree.tables().map(|(level, table)| (level, table.id.0)).collect::<Vec<_>>();
    assert_eq!(ids(&part), [(0, 2), (1, 4), (1, 5)]);
    let found = |id| part.table(TableId(id)).map(|(level, table)| (level, table.id.0));
    assert_eq!([1, 2, 3, 4, 5, 6].map(found), [None, Some((0, 2)), None, Some((1, 4)), Some((1, 5)), None]);
    assert_eq!(part.level(1).bytes(), tree.level(1).bytes() / 3 * 2);
    assert_eq!(tree.within(&[KeyRange::everything()]).len(), 6);
    assert_eq!(
        ids(&tree.within(&[range("a", "a"), range("g", "g"), range("h", "j")])),
        [(0, 1), (1, 3), (1, 5), (2, 6)]
    );
    drop(tree);
    let sent = [1, 3, 6].map(|pack| 1 << (8 * pack)).iter().sum::<u64>();
    assert_eq!(sink.0.load(Ordering::Relaxed), sent);
}

#[derive(Debug, Default)]
struct Released(AtomicU64);

impl ExtentSink for Released {
    fn released(&self, extent: Extent) {
        self.0.fetch_add(1 << (8 * extent.pack.0), Ordering::Relaxed);
    }
}

#[test]
fn an_extent_is_released_once_by_its_last_holder() {
    let sink = Arc::new(Released::default());
    let released = || sink.0.load(Ordering::Relaxed);
    let mut adopt = |record: &TableRecord| Lease::new(Arc::clone(&sink) as _, record.extent);
    let first = edit(&[], vec![(1, record(1, "a", "c")), (1, record(2, "d", "f"))]);
    let old = Version::empty().apply(&first, &mut adopt).unwrap();
    let moved = old.apply(&edit(&[(1, 1)], vec![(2, record(1, "a", "c"))]), &mut adopt).unwrap();
    let new = moved.apply(&edit(&[(1, 2)], vec![]), &mut adopt).unwrap();
    drop(moved);
    assert_eq!(released(), 0);
    drop(old);
    assert_eq!(released(), 1 << 16, "table 2 has no holder left");
    let iterator = Arc::clone(new.table(TableId(1)).unwrap().1);
    drop(new);
    assert_eq!(released(), 1 << 16);
    drop(iterator);
    assert_eq!(released(), 1 << 16 | 1 << 8);
}
