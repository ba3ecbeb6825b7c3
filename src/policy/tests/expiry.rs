//! Which tables go, or are merged alone, for what has expired of them.

use super::*;
use crate::types::Dates;

/// A table over `keys` with values of these dates.
fn dated(id: u64, keys: (&str, &str), dates: (u32, u32)) -> TableRecord {
    let range = KeyRange::new(keys.0.as_bytes(), keys.1.as_bytes());
    TableRecord { dates: Some(Dates { oldest: dates.0, newest: dates.1 }), ..table(id, id, range, 1 << 20) }
}

/// The next plan where values of up to the second `upto` have expired that live for 80, as text.
fn next(tables: &[(u8, TableRecord)], busy: &Busy, upto: u64) -> String {
    let version = version(tables.to_vec());
    let mut config = PolicyConfig::leveldb_sized(1 << 30, 1 << 40);
    config.picker_mut().group_bytes = 2 << 20;
    let mut shape = config.layout.measure(&version);
    shape.expiring = Some(Expiring { upto, ttl: 80 });
    let view = TreeView { keyspace: KeyspaceId(0), version: &version, busy, shape: &shape };
    let plan = next_plan(&[view], &SpaceView::default(), &LoadState::default(), &config);
    let inputs =
        |plan: &Plan| plan.inputs.iter().map(|input| input.table.0.to_string()).collect::<Vec<_>>().join(" ");
    plan.map_or("nothing".into(), |plan| format!("{:?} L{} {}", plan.kind, plan.target, inputs(&plan)))
}

#[test]
fn a_table_goes_when_all_has_expired_and_nothing_older_lies_below() {
    let free = Busy::default();
    let one = [(1, dated(1, ("a", "c"), (100, 109)))];
    assert_eq!(next(&one, &free, 108), "nothing");
    assert_eq!(next(&one, &free, 109), "Drop L1 1");
    let run = [
        (1, dated(1, ("a", "c"), (100, 100))),
        (1, dated(2, ("d", "f"), (100, 101))),
        (1, dated(3, ("g", "h"), (1, 2))),
    ];
    assert_eq!(next(&run, &free, 100), "Drop L1 1 3");
    let mut busy = Busy::default();
    busy.claim(&claim_of(1, KeyRange::new(*b"h", *b"k")));
    assert_eq!(next(&run, &busy, 100), "Drop L1 1");
    // Of a deeper level, and of an older run of level 0.
    for below in [(2, dated(1, ("c", "d"), (200, 200))), (0, dated(1, ("c", "d"), (200, 200)))] {
        let level = below.0 / 2;
        let above = [(level, dated(4, ("a", "c"), (100, 100))), (level, dated(5, ("e", "f"), (100, 100)))];
        let tables: Vec<_> = [below].into_iter().chain(above).collect();
        assert_eq!(next(&tables, &free, 100), format!("Drop L{level} 5"));
        assert!(next(&tables, &free, 200).starts_with("Drop") && next(&tables, &free, 200).ends_with(" 1"));
    }
    let unknown = [(1, TableRecord { dates: None, ..one[0].1.clone() })];
    assert_eq!(next(&unknown, &free, 1000), "nothing");
}

#[test]
fn a_table_is_merged_alone_when_half_of_its_time_has_passed_but_at_least_an_eighth_of_a_life() {
    let free = Busy::default();
    let wide = [(1, dated(1, ("a", "c"), (100, 180)))];
    assert_eq!(next(&wide, &free, 139), "nothing");
    assert_eq!(next(&wide, &free, 140), "Merge L1 1");
    let narrow = [(1, dated(1, ("a", "c"), (100, 112)))];
    assert_eq!(next(&narrow, &free, 109), "nothing");
    assert_eq!(next(&narrow, &free, 110), "Merge L1 1");
    assert_eq!(next(&narrow, &free, 112), "Drop L1 1");
    let level0 = [(0, dated(1, ("a", "c"), (100, 180)))];
    assert_eq!(next(&level0, &free, 150), "nothing");
    // Neighbours join it, up to a group, as far as they are due and no job is at work between them.
    let keys = [("a", "b"), ("c", "d"), ("f", "g"), ("h", "i")];
    let run: Vec<_> = (1..).zip(keys).map(|(id, keys)| (1, dated(id, keys, (100, 180)))).collect();
    assert_eq!(next(&run, &free, 150), "Merge L1 1 2");
    assert_eq!(next(&run[1..], &free, 150), "Merge L1 2 3");
    let mut busy = Busy::default();
    busy.claim(&claim_of(1, KeyRange::new(*b"e", *b"e")));
    assert_eq!(next(&run[1..], &busy, 150), "Merge L1 2");
    let fresh = [run[0].clone(), (1, dated(2, ("c", "d"), (120, 190))), run[2].clone()];
    assert_eq!(next(&fresh, &free, 150), "Merge L1 1");
}
