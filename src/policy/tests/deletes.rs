//! Which tables go, or are compacted, for what deletes hide.

use std::slice::from_ref;

use super::*;
use crate::types::{RangeTombstone, UpperBound};

/// A table with the numbers from `seqs.0` to `seqs.1`, and so many entries and tombstones.
fn numbered(id: u64, keys: (&str, &str), seqs: (u64, u64), (entries, tombstones): (u64, u64)) -> TableRecord {
    let base = table(id, seqs.1, KeyRange::new(keys.0.as_bytes(), keys.1.as_bytes()), entries << 10);
    TableRecord { min_seq: Seq(seqs.0), max_seq: Seq(seqs.1), entries, tombstones, ..base }
}

fn config() -> PolicyConfig {
    PolicyConfig::new(&crate::TreeOptions::default(), 4)
}

/// The next plan while somebody reads at `pins`, as text.
fn next(tables: &[(u8, TableRecord)], deletes: &[RangeTombstone], pins: &[u64], idle: bool) -> String {
    let version = version(tables.to_vec());
    let shape = TreeShape { idle, ..TreeShape::default() };
    let (busy, pins) = (Claims::default(), pins.iter().copied().map(Seq).collect::<Vec<_>>());
    let view = TreeView { pins: &pins, deletes, ..TreeView::of(&version, &busy, &shape) };
    let plan = next_plan(&[view], &SpaceView::default(), &LoadState::default(), &config());
    plan.map_or("nothing".into(), |plan| {
        let ids: Vec<_> = plan.inputs.iter().map(|input| input.table.0.to_string()).collect();
        format!("{:?} L{} {} ({})", plan.kind, plan.target, ids.join(" "), plan.reason)
    })
}

fn delete(start: &str, end: &str, seq: u64) -> RangeTombstone {
    let end = UpperBound::Excluded(end.as_bytes().into());
    RangeTombstone { range: KeyRange::half_open(start.as_bytes(), end), seq: Seq(seq) }
}

#[test]
fn a_table_goes_if_a_newer_delete_covers_it_and_nobody_reads_between() {
    let tables = [
        (1, numbered(1, ("a", "c"), (5, 9), (10, 0))),
        (1, numbered(2, ("d", "f"), (5, 9), (10, 0))),
        (1, numbered(3, ("g", "i"), (5, 12), (10, 0))),
    ];
    let with = |deletes: &[RangeTombstone], pins: &[u64]| next(&tables, deletes, pins, false);
    assert_eq!(with(&[], &[]), "nothing");
    assert_eq!(with(&[delete("a", "z", 20)], &[]), "Drop L1 1 2 3 (deleted)");
    assert_eq!(with(&[delete("b", "z", 20)], &[]), "Drop L1 2 3 (deleted)");
    assert_eq!(with(&[delete("a", "i", 20)], &[]), "Drop L1 1 2 (deleted)");
    assert_eq!(with(&[delete("a", "z", 11)], &[]), "Drop L1 1 2 (deleted)");
    assert_eq!(with(&[delete("a", "z", 9)], &[]), "nothing");
    assert_eq!(with(&[delete("a", "z", 20)], &[4, 20]), "Drop L1 1 2 3 (deleted)");
    assert_eq!(with(&[delete("a", "z", 20)], &[5]), "nothing");
    assert_eq!(with(&[delete("a", "z", 20)], &[19]), "nothing");
    assert_eq!(with(&[delete("a", "d", 20), delete("g", "j", 30)], &[]), "Drop L1 1 3 (deleted)");
}

#[test]
fn tables_go_down_once_their_tombstones_hide_enough() {
    let over = |tombstones: u64, pins: &[u64], idle: bool| {
        let tables = [
            (2, numbered(1, ("a", "z"), (1, 5), (1000, 0))),
            (1, numbered(2, ("a", "z"), (6, 9), (tombstones.max(1), tombstones))),
        ];
        next(&tables, &[], pins, idle)
    };
    assert_eq!(over(0, &[], true), "nothing");
    assert_eq!(over(100, &[], true), "nothing");
    assert_eq!(over(200, &[], true), "Compact L2 2 1 (tombstones)");
    assert_eq!(over(200, &[], false), "nothing");
    assert_eq!(over(1000, &[], false), "Compact L2 2 1 (tombstones)");
    // Somebody sees what they hide.
    assert_eq!(over(1000, &[7], true), "nothing");
    assert_eq!(over(1000, &[9], true), "Compact L2 2 1 (tombstones)");
}

#[test]
fn tombstones_go_alone_where_every_other_table_is_newer() {
    let bottom = (1, numbered(1, ("a", "m"), (5, 9), (10, 10)));
    assert_eq!(next(from_ref(&bottom), &[], &[], true), "Compact L1 1 (tombstones)");
    assert_eq!(next(from_ref(&bottom), &[], &[8], true), "nothing");
    let newer = (0, numbered(2, ("a", "c"), (9, 20), (10, 0)));
    assert_eq!(next(&[bottom.clone(), newer.clone()], &[], &[], false), "Compact L1 1 (tombstones)");
    // The job would keep a tombstone of 9 for what may be an older entry of 8.
    let mixed = (0, TableRecord { min_seq: Seq(8), ..newer.1 });
    assert_eq!(next(&[bottom, mixed], &[], &[], false), "nothing");
}
