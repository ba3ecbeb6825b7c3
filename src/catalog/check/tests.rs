//! Tests of the checker: a valid tree that is broken in one place at a time.

use super::*;
use crate::catalog::testing::{flushed, record, table, version};
use crate::types::{KeyRange, PackId, Seq, UpperBound};

/// A tree that a compaction of L0 into L1 can be tried on:
///
/// ```text
/// L0 e9 t9[a..m]          L1 t3[a..c] t4[d..k] t5[n..p]
///    e8 t8[k..m] t7[x..z] L2 t6[e..f] t1[q..t]
/// ```
fn tree() -> Version {
    version(vec![
        (0, flushed(9, record(9, "a", "m"))),
        (0, flushed(8, record(8, "k", "m"))),
        (0, flushed(8, record(7, "x", "z"))),
        (1, record(3, "a", "c")),
        (1, record(4, "d", "k")),
        (1, record(5, "n", "p")),
        (2, record(6, "e", "f")),
        (2, record(1, "q", "t")),
    ])
}

fn edit(drop: &[(u8, u64)], add: Vec<(u8, TableRecord)>) -> TreeEdit {
    let drop = drop.iter().map(|(level, id)| (*level, TableId(*id))).collect();
    TreeEdit { drop, add, ..TreeEdit::default() }
}

fn refused(edit: &TreeEdit, why: &str) {
    let checked = check_edit(&tree(), edit).and_then(|()| check_merged(&tree(), edit));
    let error = checked.expect_err(why).to_string();
    assert!(error.contains(why), "{error}");
}

#[test]
fn i1_a_valid_tree_passes() {
    check_version(&tree()).unwrap();
    check_version(&Version::empty()).unwrap();
}

#[test]
fn i2_a_compaction_without_one_of_its_inputs_is_refused() {
    let inputs = [(0, 9), (0, 8), (1, 3), (1, 4)];
    let outputs = vec![(1, record(20, "a", "f")), (1, record(21, "g", "m"))];
    check_edit(&tree(), &edit(&inputs, outputs.clone())).unwrap();
    for left_out in 1..inputs.len() {
        let mut inputs = inputs.to_vec();
        inputs.remove(left_out);
        refused(&edit(&inputs, outputs.clone()), "I2");
    }
    // The newest run may stay: it is searched first.
    check_edit(&tree(), &edit(&[(0, 8), (1, 4)], vec![(1, record(20, "d", "m"))])).unwrap();
}

#[test]
fn i2_a_compaction_that_drops_everything_must_be_closed_too() {
    check_edit(&tree(), &edit(&[(1, 5)], vec![])).unwrap();
    refused(&edit(&[(1, 4), (2, 1)], vec![]), "t6");
}

#[test]
fn i2_outputs_lie_in_one_deeper_level_within_the_hull() {
    refused(&edit(&[(1, 4), (2, 6)], vec![(2, record(20, "d", "l"))]), "beyond");
    let two_levels = vec![(2, record(20, "d", "e")), (3, record(21, "f", "k"))];
    refused(&edit(&[(1, 4), (2, 6)], two_levels), "more than one level");
    refused(&edit(&[(2, 6)], vec![(1, record(20, "e", "f"))]), "rise");
    refused(&edit(&[(2, 6)], vec![(1, record(6, "e", "f"))]), "rise");
}

#[test]
fn i2_a_move_passes_nothing_older() {
    check_edit(&tree(), &edit(&[(1, 5)], vec![(2, record(5, "n", "p"))])).unwrap();
    check_edit(&tree(), &edit(&[(0, 7)], vec![(3, flushed(8, record(7, "x", "z")))])).unwrap();
    refused(&edit(&[(1, 4)], vec![(2, record(4, "d", "k"))]), "t6");
    refused(&edit(&[(1, 4)], vec![(3, record(4, "d", "k"))]), "t6");
    refused(&edit(&[(0, 9)], vec![(1, flushed(9, record(9, "a", "m")))]), "I2");
    // With what is below going deeper in the same edit, it may follow.
    let both = vec![(3, record(6, "e", "f")), (2, record(4, "d", "k"))];
    check_edit(&tree(), &edit(&[(1, 4), (2, 6)], both)).unwrap();
    // A table that only changes its place on disk has not made room.
    refused(&edit(&[(1, 4), (2, 6)], vec![(3, record(4, "d", "k")), (2, record(6, "e", "f"))]), "t6");
}

#[test]
fn i2_a_compaction_may_share_its_edit_with_a_move() {
    let add = vec![(2, record(5, "n", "p")), (2, record(20, "d", "k"))];
    check_edit(&tree(), &edit(&[(1, 5), (1, 4), (2, 6)], add)).unwrap();
}

#[test]
fn i2_a_flush_is_the_newest_or_overlaps_nothing_older() {
    check_edit(&tree(), &edit(&[], vec![(0, flushed(10, record(20, "a", "z")))])).unwrap();
    check_edit(&tree(), &edit(&[], vec![(2, flushed(10, record(20, "u", "w")))])).unwrap();
    refused(&edit(&[], vec![(0, flushed(9, record(20, "a", "z")))]), "I3");
    refused(&edit(&[], vec![(1, flushed(10, record(20, "y", "z")))]), "t7");
    refused(&edit(&[], vec![(2, flushed(10, record(20, "o", "o")))]), "t5");
}

#[test]
fn i3_a_compaction_within_level_0_is_convex() {
    let tree = version((1..=4).map(|n| (0, flushed(n, record(n, "a", "m")))).collect());
    let check = |inputs: &[(u8, u64)], epoch| {
        check_edit(&tree, &edit(inputs, vec![(0, flushed(epoch, record(20, "a", "m")))]))
    };
    check(&[(0, 2), (0, 3)], 3).unwrap();
    assert!(check(&[(0, 2), (0, 3)], 2).is_err());
    assert!(check(&[(0, 2), (0, 4)], 4).is_err());
}

#[test]
fn i3_a_shifted_epoch_is_refused() {
    // The run with the older entries claims to be the newer one.
    let mut old = flushed(1, record(1, "a", "m"));
    old.epoch = Epoch(3);
    let shifted = version(vec![(0, old), (0, flushed(2, record(2, "c", "d")))]);
    assert!(check_version(&shifted).unwrap_err().to_string().contains("I3"));
    // One run, two epochs.
    let mixed = [flushed(1, record(1, "a", "c")), flushed(2, record(2, "d", "e"))];
    let mut tree = Version::empty();
    tree.levels[0].runs.push(Run::from_sorted(mixed.iter().map(table).collect()).unwrap());
    assert!(check_version(&tree).unwrap_err().to_string().contains("mixes epochs"));
    // Two runs out of order.
    tree.levels[0].runs = mixed.iter().map(|r| Run::from_sorted(vec![table(r)]).unwrap()).collect();
    assert!(check_version(&tree).unwrap_err().to_string().contains("not newer"));
}

#[test]
fn i1_a_user_key_split_over_two_tables_is_refused() {
    let split = edit(&[(1, 5)], vec![(1, record(20, "n", "o")), (1, record(21, "o", "p"))]);
    let error = tree().apply(&split, &mut |_| crate::catalog::Lease::none()).unwrap_err();
    assert!(error.to_string().contains("I1"), "{error}");
}

#[test]
fn i1_the_index_knows_every_table() {
    let mut tree = tree();
    tree.levels[3].runs.push(Run::from_sorted(vec![table(&record(30, "x", "z"))]).unwrap());
    assert!(check_version(&tree).unwrap_err().to_string().contains("index"));
}

#[test]
fn i3_a_table_below_level_0_lies_in_the_lowest_run_above_what_is_older() {
    let aged = |epoch, id, from, to| (1, flushed(epoch, record(id, from, to)));
    let tree = || version(vec![aged(1, 1, "a", "c"), aged(2, 2, "b", "f"), aged(3, 3, "e", "g")]);
    check_version(&tree()).unwrap();
    let ids = |run: &Run| run.iter().map(|table| table.id.0).collect::<Vec<_>>();
    assert_eq!(tree().level(1).runs.iter().map(ids).collect::<Vec<_>>(), [vec![3], vec![2], vec![1]]);
    // Searched in a wrong order.
    let mut swapped = tree();
    swapped.levels[1].runs.swap(0, 1);
    assert!(check_version(&swapped).unwrap_err().to_string().contains("above"));
    // With nothing below it in the next run.
    let mut high = tree();
    let run = Run::from_sorted(vec![table(&flushed(4, record(30, "x", "z")))]).unwrap();
    high.levels[1].runs.insert(0, run);
    assert!(check_version(&high).unwrap_err().to_string().contains("higher run than it must"));
}

/// Two runs in level 1, one in level 2:
///
/// ```text
/// L1 e7 t7[a..g]   e6 t6[e..m] t5[p..s]
/// L2 e3 t3[a..c] t2[f..k] t1[r..z]
/// ```
fn stacked() -> Version {
    let aged = |level, epoch, id, from, to| (level, flushed(epoch, record(id, from, to)));
    version(vec![
        aged(1, 7, 7, "a", "g"),
        aged(1, 6, 6, "e", "m"),
        aged(1, 6, 5, "p", "s"),
        aged(2, 3, 3, "a", "c"),
        aged(2, 3, 2, "f", "k"),
        aged(2, 3, 1, "r", "z"),
    ])
}

fn aged(epoch: u64, id: u64, from: &str, to: &str) -> TableRecord {
    flushed(epoch, record(id, from, to))
}

/// `record` of an earlier epoch, with this one.
fn at_epoch(epoch: u64, record: TableRecord) -> TableRecord {
    TableRecord { epoch: Epoch(epoch), ..record }
}

fn refused_in_stacked(edit: &TreeEdit, why: &str) {
    let error = check_edit(&stacked(), edit).expect_err(why).to_string();
    assert!(error.contains(why), "{error}");
}

#[test]
fn i2_what_arrives_on_top_is_newer_than_what_lies_there() {
    let inputs = [(1, 7), (1, 6)];
    let output = |epoch| vec![(2, at_epoch(epoch, record(20, "a", "m")))];
    let merged = edit(&inputs, output(8));
    check_edit(&stacked(), &merged).unwrap();
    assert!(check_merged(&stacked(), &merged).unwrap_err().to_string().contains("on Some(t3"));
    for epoch in [2, 3] {
        refused_in_stacked(&edit(&inputs, output(epoch)), "below older t2");
    }
    // The older one of two that overlap does not stay above.
    refused_in_stacked(&edit(&[(1, 7)], vec![(2, at_epoch(8, record(20, "a", "g")))]), "t6");
    // Nor does anything in between.
    let deeper = vec![(3, at_epoch(8, record(20, "a", "m")))];
    refused_in_stacked(&edit(&inputs, deeper), "below older t2");
}

#[test]
fn i2_tables_that_move_together_keep_their_order() {
    let moves = |seven, six| {
        vec![(2, at_epoch(seven, aged(7, 7, "a", "g"))), (2, at_epoch(six, aged(6, 6, "e", "m")))]
    };
    check_edit(&stacked(), &edit(&[(1, 7), (1, 6)], moves(9, 8))).unwrap();
    for (seven, six) in [(8, 9), (8, 8), (9, 3)] {
        refused_in_stacked(&edit(&[(1, 7), (1, 6)], moves(seven, six)), "older");
    }
    // One moves over the other one, which is compacted, and the other way round.
    let beside = |moved, written| {
        let add = vec![(2, moved), (2, at_epoch(written, record(20, "e", "g")))];
        edit(&[(1, 7), (1, 6)], add)
    };
    let (seven, six) = (aged(7, 7, "a", "g"), aged(6, 6, "e", "m"));
    check_edit(&stacked(), &beside(at_epoch(9, seven.clone()), 8)).unwrap();
    check_edit(&stacked(), &beside(at_epoch(8, six.clone()), 9)).unwrap();
    refused_in_stacked(&beside(at_epoch(8, seven), 9), "older t6");
    refused_in_stacked(&beside(at_epoch(9, six), 8), "older t6");
}

#[test]
fn i2_a_moved_table_with_its_old_epoch_is_refused_below_what_is_older() {
    // A table of level 2 that came later than table 5 was written, and is older than it.
    let mut tables: Vec<_> = stacked().tables().map(|(level, table)| (level, table.record())).collect();
    tables.push((2, aged(9, 9, "q", "q")));
    let tree = version(tables);
    let moved = |epoch| edit(&[(1, 5)], vec![(2, at_epoch(epoch, aged(6, 5, "p", "s")))]);
    assert!(check_edit(&tree, &moved(6)).unwrap_err().to_string().contains("t9"));
    check_edit(&tree, &moved(10)).unwrap();
    check_version(&tree.apply(&moved(10), &mut |_| crate::catalog::Lease::none()).unwrap()).unwrap();
}

#[test]
fn i3_outputs_of_a_compaction_within_a_level_have_the_epoch_of_inputs_next_to_what_stays() {
    let tree = version((1..=4).map(|n| (2, aged(n, n, "a", "m"))).collect());
    let check = |inputs: &[(u8, u64)], epoch| {
        check_edit(&tree, &edit(inputs, vec![(2, at_epoch(epoch, record(20, "a", "m")))]))
    };
    check(&[(2, 2), (2, 3)], 3).unwrap();
    check(&[(2, 2), (2, 3)], 2).unwrap();
    assert!(check(&[(2, 2), (2, 3)], 9).is_err());
    assert!(check(&[(2, 2), (2, 3)], 4).is_err());
    assert!(check(&[(2, 2), (2, 3)], 1).is_err());
    assert!(check(&[(2, 2), (2, 4)], 4).is_err());
    assert!(check(&[(2, 2), (2, 4)], 2).is_err());
    // One that stays and has the outputs' epoch: they share keys with it, or may.
    let tree = version(vec![(2, aged(5, 1, "a", "c")), (2, aged(5, 2, "d", "f")), (2, aged(3, 3, "b", "e"))]);
    let around = edit(&[(2, 1), (2, 3)], vec![(2, at_epoch(5, record(20, "a", "e")))]);
    assert!(check_edit(&tree, &around).unwrap_err().to_string().contains("t2"));
}

#[test]
fn i3_what_is_folded_takes_its_older_tables_along_and_stays_below_newer_ones() {
    let tables = [(1, "a", "f"), (3, "g", "m"), (5, "e", "h"), (7, "d", "i"), (4, "l", "p")];
    let tables = (1..).zip(tables).map(|(id, (epoch, from, to))| (2, at_epoch(epoch, record(id, from, to))));
    let tree = version(tables.collect());
    check_version(&tree).unwrap();
    let check = |inputs: &[(u8, u64)], epoch, from, to| {
        check_edit(&tree, &edit(inputs, vec![(2, at_epoch(epoch, record(20, from, to)))]))
            .map_err(|error| error.to_string())
    };
    let all = [(2, 1), (2, 2), (2, 3)];
    check(&all, 1, "a", "m").unwrap();
    // Tables 4 and 5 would come to lie below what is older.
    assert!(check(&all, 5, "a", "m").unwrap_err().contains("t5"));
    assert!(check(&all, 8, "a", "m").unwrap_err().contains("t4"));
    // Table 2 would come to lie above what is newer.
    assert!(check(&[(2, 1), (2, 3)], 1, "a", "h").unwrap_err().contains("t2"));
    // Nothing that stays is of middle age.
    check(&[(2, 2), (2, 3)], 3, "e", "m").unwrap();
}

#[test]
fn i3_outputs_take_the_place_of_what_they_are_made_of_in_their_target() {
    // Table 2 of level 2 is older than table 4 there, so it does not come to lie above it.
    let mut tables: Vec<_> = stacked().tables().map(|(level, table)| (level, table.record())).collect();
    tables.push((2, aged(4, 4, "j", "q")));
    let tree = version(tables);
    let inputs = [(1, 7), (1, 6), (2, 3), (2, 2)];
    let outputs = |epoch| vec![(2, at_epoch(epoch, record(20, "a", "m")))];
    let error = check_edit(&tree, &edit(&inputs, outputs(8))).unwrap_err().to_string();
    assert!(error.contains("t4"), "{error}");
    let all = [(1, 7), (1, 6), (2, 3), (2, 2), (2, 4)];
    check_edit(&tree, &edit(&all, vec![(2, at_epoch(8, record(20, "a", "q")))])).unwrap();
    // Outputs of different epochs have no place.
    let two = vec![(2, at_epoch(8, record(20, "a", "e"))), (2, at_epoch(9, record(21, "f", "q")))];
    assert!(check_edit(&tree, &edit(&all, two)).unwrap_err().to_string().contains("more than one epoch"));
}

#[test]
fn i1_a_step_that_puts_nothing_on_top_keeps_a_level_of_one_run() {
    let inputs = [(1, 7), (1, 6), (2, 3), (2, 2)];
    check_merged(&stacked(), &edit(&inputs, vec![(2, at_epoch(7, record(20, "a", "m")))])).unwrap();
    let on = |edit: &TreeEdit, why: &str| {
        let error = check_merged(&stacked(), edit).expect_err(why).to_string();
        assert!(error.contains(why), "{error}");
    };
    on(&edit(&inputs, vec![(2, at_epoch(7, record(20, "a", "r")))]), "on Some(t1");
    on(&edit(&inputs[..3], vec![]), "without older Some(t2");
    on(&edit(&[(1, 5)], vec![(2, at_epoch(8, aged(6, 5, "p", "s")))]), "on Some(t1");
    let both = vec![(3, at_epoch(9, aged(7, 7, "a", "g"))), (3, at_epoch(8, aged(6, 6, "e", "m")))];
    on(&edit(&[(1, 7), (1, 6)], both), "would overlap in level 3");
    // Within a level, a table among many may be written anew.
    check_merged(&stacked(), &edit(&[(1, 6)], vec![(1, at_epoch(6, record(20, "e", "m")))])).unwrap();
}

#[test]
fn i1_extents_of_a_pack_are_disjoint() {
    let in_pack = |offset, record: TableRecord| {
        let mut record = TableRecord { min_seq: Seq(1), ..record };
        (record.extent.pack, record.extent.offset) = (PackId(50), offset);
        record
    };
    let at = |offset| {
        version(vec![(1, in_pack(0, record(1, "a", "b"))), (2, in_pack(offset, record(2, "a", "b")))])
    };
    check_version(&at(4096)).unwrap();
    assert!(check_version(&at(0)).unwrap_err().to_string().contains("share bytes"));
}

#[test]
fn i1_a_table_may_end_before_the_key_that_the_next_begins_with() {
    let clipped = |id, start: &str, end: &str| TableRecord {
        range: KeyRange::half_open(start.as_bytes(), UpperBound::from_bytes(end.as_bytes())),
        entries: 0,
        range_tombstones: 1,
        ..record(id, "", "")
    };
    let touching = vec![(1, clipped(1, "a", "c")), (1, clipped(2, "c", "f")), (1, clipped(3, "f", ""))];
    check_version(&version(touching)).unwrap();
    let shared =
        TreeEdit { add: vec![(1, clipped(1, "a", "c")), (1, record(2, "b", "b"))], ..TreeEdit::default() };
    let refused = Version::empty().apply(&shared, &mut |_| crate::catalog::Lease::none());
    assert!(refused.unwrap_err().to_string().contains("I1"));
}

#[test]
fn i2_a_range_tombstone_must_not_reach_beyond_the_compacted_tables() {
    let tombstone = |end: &str| TableRecord {
        range: KeyRange::half_open(*b"n", UpperBound::from_bytes(end.as_bytes())),
        range_tombstones: 1,
        ..record(20, "", "")
    };
    check_edit(&tree(), &edit(&[(1, 5)], vec![(2, tombstone("p"))])).unwrap();
    refused(&edit(&[(1, 5)], vec![(2, tombstone("q"))]), "reaches beyond");
    refused(&edit(&[(1, 5)], vec![(2, tombstone(""))]), "reaches beyond");
}

/// `record` with entries of these numbers.
fn numbered(epoch: u64, (from, to): (u64, u64), record: TableRecord) -> TableRecord {
    TableRecord { epoch: Epoch(epoch), min_seq: Seq(from), max_seq: Seq(to), ..record }
}

#[test]
fn i3_a_flush_or_an_ingest_below_what_is_older_is_refused_by_its_numbers() {
    let add = |level, numbers, table| edit(&[], vec![(level, numbered(10, numbers, table))]);
    let over_e9 = |numbers| add(0, numbers, record(20, "a", "b"));
    check_edit(&tree(), &over_e9((100, 100))).unwrap();
    for numbers in [(99, 99), (99, 200), (1, 1)] {
        refused(&over_e9(numbers), "I3: new table t20");
    }
    // Beside what it overlaps numbers do not matter.
    check_edit(&tree(), &add(0, (1, 1), record(20, "r", "s"))).unwrap_err();
    check_edit(&tree(), &add(0, (20, 20), record(20, "r", "s"))).unwrap();
    check_edit(&tree(), &add(0, (1, 1), record(20, "zz", "zz"))).unwrap();
    // Deeper, too, and for what goes deep itself.
    refused(&add(0, (19, 19), record(20, "q", "q")), "I2: new table t20 (#19..#19) would stand before t1");
    refused(&add(1, (19, 19), record(20, "q", "r")), "I2: new table t20");
    check_edit(&tree(), &add(1, (20, 20), record(20, "q", "r"))).unwrap();
}

#[test]
fn i3_a_intra_l0_that_would_hide_newer_entries_is_refused_by_its_numbers() {
    let tree = version(vec![
        (0, flushed(9, record(9, "f", "h"))),
        (0, flushed(8, record(8, "a", "c"))),
        (0, flushed(7, record(7, "i", "k"))),
        (0, flushed(6, record(6, "f", "g"))),
    ]);
    let fold = |numbers| edit(&[(0, 8), (0, 7)], vec![(0, numbered(8, numbers, record(20, "a", "k")))]);
    check_edit(&tree, &fold((70, 89))).unwrap();
    let refused = |numbers, why: &str| {
        let error = check_edit(&tree, &fold(numbers)).expect_err(why).to_string();
        assert!(error.contains(why), "{error}");
    };
    refused((69, 89), "I3: new table t20 (#69..#89) would stand before t6");
    refused((70, 90), "I3: new table t20 (#70..#90) would stand behind t9");
    // A compaction into a deeper level is none of this rule's business: numbers do not tell there.
    let deeper = numbered(9, (1, 99), record(20, "a", "k"));
    let all = [(0, 9), (0, 8), (0, 7), (0, 6)];
    check_edit(&tree, &edit(&all, vec![(1, deeper)])).unwrap();
}

#[test]
fn i3_what_contradicted_before_may_be_compacted() {
    let tree = version(vec![
        (0, numbered(9, (10, 12), record(9, "a", "m"))),
        (0, numbered(8, (20, 20), record(8, "a", "c"))),
        (0, numbered(7, (5, 5), record(7, "a", "c"))),
        (0, numbered(6, (3, 3), record(6, "a", "c"))),
    ]);
    check_version(&tree).unwrap_err();
    // What has nothing to do with it stays as it was.
    check_edit(&tree, &edit(&[(0, 8), (0, 7)], vec![(0, numbered(8, (5, 20), record(20, "a", "c")))]))
        .unwrap();
    check_edit(&tree, &edit(&[(0, 9), (0, 8)], vec![(0, numbered(9, (10, 20), record(20, "a", "m")))]))
        .unwrap();
    let all = [(0, 9), (0, 8), (0, 7), (0, 6)];
    check_edit(&tree, &edit(&all, vec![(1, numbered(9, (3, 20), record(20, "a", "m")))])).unwrap();
    // But nothing gets worse.
    let worse = edit(&[(0, 7), (0, 6)], vec![(0, numbered(7, (3, 11), record(20, "a", "c")))]);
    assert!(check_edit(&tree, &worse).unwrap_err().to_string().contains("would stand behind t9"));
}
