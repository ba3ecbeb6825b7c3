//! Which tables are dropped, or compacted alone, for what has expired of them.

use super::*;
use crate::policy::expiry::{next_drop, next_expiry_compaction};
use crate::types::Timestamps;

/// A table over `keys` with values of these dates.
fn timestamped(id: u64, keys: (&str, &str), timestamps: (u32, u32)) -> TableRecord {
    let range = KeyRange::new(keys.0.as_bytes(), keys.1.as_bytes());
    TableRecord {
        timestamps: Some(Timestamps { oldest: timestamps.0, newest: timestamps.1 }),
        ..table(id, id, range, 1 << 20)
    }
}

/// The next plan where values of up to the second `upto` have expired that live for 80, as text.
fn next(tables: &[(u8, TableRecord)], busy: &Claims, upto: u64) -> String {
    let version = version(tables.to_vec());
    let mut config = PolicyConfig::leveldb_sized(1 << 30, 1 << 40);
    config.picker_mut().group_bytes = 2 << 20;
    let mut shape = config.layout.measure(&version);
    shape.expiring = Some(Expiring { upto, ttl: 80, oldest_pin: None });
    let view = TreeView::of(&version, busy, &shape);
    let plan = next_plan(&[view], &SpaceView::default(), &LoadState::default(), &config);
    let inputs =
        |plan: &Plan| plan.inputs.iter().map(|input| input.table.0.to_string()).collect::<Vec<_>>().join(" ");
    plan.map_or("nothing".into(), |plan| format!("{:?} L{} {}", plan.kind, plan.target, inputs(&plan)))
}

#[test]
fn a_table_goes_when_all_has_expired_and_nothing_older_lies_below() {
    let free = Claims::default();
    let one = [(1, timestamped(1, ("a", "c"), (100, 109)))];
    assert_eq!(next(&one, &free, 108), "nothing");
    assert_eq!(next(&one, &free, 109), "Drop L1 1");
    let run = [
        (1, timestamped(1, ("a", "c"), (100, 100))),
        (1, timestamped(2, ("d", "f"), (100, 101))),
        (1, timestamped(3, ("g", "h"), (1, 2))),
    ];
    assert_eq!(next(&run, &free, 100), "Drop L1 1 3");
    let mut busy = Claims::default();
    busy.claim(&claim_of(1, KeyRange::new(*b"h", *b"k")));
    assert_eq!(next(&run, &busy, 100), "Drop L1 1");
    // Of a deeper level, and of an older run of level 0.
    for below in [(2, timestamped(1, ("c", "d"), (200, 200))), (0, timestamped(1, ("c", "d"), (200, 200)))] {
        let level = below.0 / 2;
        let above = [
            (level, timestamped(4, ("a", "c"), (100, 100))),
            (level, timestamped(5, ("e", "f"), (100, 100))),
        ];
        let tables: Vec<_> = [below].into_iter().chain(above).collect();
        assert_eq!(next(&tables, &free, 100), format!("Drop L{level} 5"));
        assert!(next(&tables, &free, 200).starts_with("Drop") && next(&tables, &free, 200).ends_with(" 1"));
    }
}

#[test]
fn a_table_is_compacted_alone_when_half_of_its_time_has_passed_but_at_least_an_eighth_of_a_life() {
    let free = Claims::default();
    let wide = [(1, timestamped(1, ("a", "c"), (100, 180)))];
    assert_eq!(next(&wide, &free, 139), "nothing");
    assert_eq!(next(&wide, &free, 140), "Compact L1 1");
    let narrow = [(1, timestamped(1, ("a", "c"), (100, 112)))];
    assert_eq!(next(&narrow, &free, 109), "nothing");
    assert_eq!(next(&narrow, &free, 110), "Compact L1 1");
    assert_eq!(next(&narrow, &free, 112), "Drop L1 1");
    let level0 = [(0, timestamped(1, ("a", "c"), (100, 180)))];
    assert_eq!(next(&level0, &free, 150), "nothing");
    // Neighbours join it, up to a group, as far as they are due and no job is at work between them.
    let keys = [("a", "b"), ("c", "d"), ("f", "g"), ("h", "i")];
    let run: Vec<_> = (1..).zip(keys).map(|(id, keys)| (1, timestamped(id, keys, (100, 180)))).collect();
    assert_eq!(next(&run, &free, 150), "Compact L1 1 2");
    assert_eq!(next(&run[1..], &free, 150), "Compact L1 2 3");
    let mut busy = Claims::default();
    busy.claim(&claim_of(1, KeyRange::new(*b"e", *b"e")));
    assert_eq!(next(&run[1..], &busy, 150), "Compact L1 2");
    let fresh = [run[0].clone(), (1, timestamped(2, ("c", "d"), (120, 190))), run[2].clone()];
    assert_eq!(next(&fresh, &free, 150), "Compact L1 1");
}

#[test]
fn what_is_newer_than_a_pin_stays_and_what_is_deleted_alone_goes() {
    // Numbers 20 to 29.
    let table = timestamped(2, ("a", "c"), (100, 100));
    let deleted = TableRecord { timestamps: None, tombstones: table.entries, ..table.clone() };
    let over = |table: &TableRecord, oldest_pin: Option<u64>| {
        let version = version(vec![(1, table.clone())]);
        let expiring = Expiring { upto: 200, ttl: 80, oldest_pin: oldest_pin.map(Seq) };
        let shape = TreeShape { expiring: Some(expiring), ..TreeShape::default() };
        let busy = Claims::default();
        let view = TreeView::of(&version, &busy, &shape);
        next_drop(&view).is_some()
    };
    for table in [table, deleted] {
        assert_eq!(
            [None, Some(29), Some(28), Some(1)].map(|pin| over(&table, pin)),
            [true, true, false, false]
        );
    }
}

#[test]
fn a_level_0_that_waits_is_not_held_up_by_what_has_expired() {
    let full = |id| (0, table(id, id, KeyRange::new(*b"a", *b"z"), 1 << 20));
    let due = (1..)
        .zip([("a", "c"), ("m", "n"), ("x", "z")])
        .map(|(id, keys)| (1, timestamped(id, keys, (100, 180))));
    let tables: Vec<_> = (10..16).map(full).chain(due).collect();
    assert!(next(&tables, &Claims::default(), 150).starts_with("Compact L1 15"));
    // A job in level 1, which level 0 waits for.
    let mut busy = Claims::default();
    busy.claim(&claim_of(1, KeyRange::new(*b"a", *b"c")));
    assert_eq!(next(&tables, &busy, 150), "nothing");
}

#[test]
fn a_table_of_unknown_timestamps_is_compacted_once_and_none_while_that_fails() {
    let unknown = [(1, TableRecord { timestamps: None, ..timestamped(1, ("a", "c"), (0, 0)) })];
    assert_eq!(next(&unknown, &Claims::default(), 100), "Compact L1 1");
    let version = version(unknown.to_vec());
    let expiring = Expiring { upto: 200, ttl: 80, oldest_pin: None };
    let shape = TreeShape { expiring: Some(expiring), put_off: true, ..TreeShape::default() };
    let busy = Claims::default();
    let view = TreeView::of(&version, &busy, &shape);
    assert_eq!(next_expiry_compaction(&view, 1 << 20), None);
}
