//! Which tables are compacted alone for what they hold for readers that have gone.

use super::*;
use crate::types::{Holders, Holds};

/// A table of 100 entries and a mebibyte over `keys` that holds for a reader at `pin` so many entries of so many bytes together.
fn holding(id: u64, keys: (&str, &str), pin: u64, held: (u64, u64)) -> TableRecord {
    let range = KeyRange::new(keys.0.as_bytes(), keys.1.as_bytes());
    let mut holds = Holds::default();
    holds.note(Holders { first: Seq(pin), last: Seq(pin) }, held.0, held.1);
    TableRecord { holds, entries: 100, ..table(id, id, range, 1 << 20) }
}

/// The next plan while somebody reads at `pins`, as text.
fn next(tables: &[(u8, TableRecord)], busy: &Claims, pins: &[u64]) -> String {
    next_in(tables, busy, pins, TreeShape::default())
}

fn next_in(tables: &[(u8, TableRecord)], busy: &Claims, pins: &[u64], shape: TreeShape) -> String {
    let version = version(tables.to_vec());
    let mut config = PolicyConfig::leveldb_sized(1 << 30, 1 << 40);
    config.picker_mut().group_bytes = 2 << 20;
    let pins: Vec<_> = pins.iter().copied().map(Seq).collect();
    let view = TreeView {
        keyspace: KeyspaceId(0),
        version: &version,
        busy,
        shape: &shape,
        pins: &pins,
        deletes: &[],
        collection: None,
    };
    let plan = next_plan(&[view], &SpaceView::default(), &LoadState::default(), &config);
    let inputs =
        |plan: &Plan| plan.inputs.iter().map(|input| input.table.0.to_string()).collect::<Vec<_>>().join(" ");
    plan.map_or("nothing".into(), |plan| {
        format!("{:?} L{} {} ({})", plan.kind, plan.target, inputs(&plan), plan.reason)
    })
}

const QUARTER: u64 = 1 << 18;

#[test]
fn a_table_is_due_for_a_quarter_of_its_bytes_or_of_its_records() {
    let free = Claims::default();
    let due = "Compact L2 1 (released)";
    for (held, expected) in [
        ((1, QUARTER), due),
        ((1, QUARTER - 1), "nothing"),
        ((25, 0), due),
        ((24, 0), "nothing"),
        ((24, QUARTER - 1), "nothing"),
    ] {
        assert_eq!(next(&[(2, holding(1, ("a", "c"), 7, held))], &free, &[]), expected, "{held:?}");
    }
}

#[test]
fn what_somebody_holds_stays_alone() {
    let free = Claims::default();
    let tables = [(2, holding(1, ("a", "c"), 7, (50, QUARTER)))];
    assert_eq!(next(&tables, &free, &[3, 7, 9]), "nothing");
    assert_eq!(next(&tables, &free, &[3, 6, 8, 9]), "Compact L2 1 (released)");
    // Two groups, of which none is enough by itself.
    let mut two = holding(1, ("a", "c"), 7, (20, 0));
    two.holds.note(Holders { first: Seq(9), last: Seq(12) }, 20, 0);
    let two = [(2, two)];
    assert_eq!(next(&two, &free, &[7]), "nothing");
    assert_eq!(next(&two, &free, &[10]), "nothing");
    assert_eq!(next(&two, &free, &[8, 13]), "Compact L2 1 (released)");
}

#[test]
fn neighbours_go_together_but_one_by_one_in_level_0_and_the_deepest_first() {
    let free = Claims::default();
    let held = (50, 2 * QUARTER);
    let run = |level| {
        let tables = [("a", "c"), ("d", "f"), ("g", "i")];
        (1..)
            .zip(tables)
            .map(move |(id, keys)| (level, TableRecord { epoch: Epoch(1), ..holding(id, keys, 7, held) }))
    };
    let deep: Vec<_> = run(3).collect();
    assert_eq!(next(&deep, &free, &[]), "Compact L3 1 2 (released)");
    let flat: Vec<_> = run(0).collect();
    assert_eq!(next(&flat, &free, &[]), "Compact L0 1 (released)");
    let above = [(1, holding(9, ("a", "z"), 7, held))];
    assert_eq!(next(&[&above[..], &deep].concat(), &free, &[]), "Compact L3 1 2 (released)");
    let mut busy = Claims::default();
    busy.claim(&claim_of(3, KeyRange::new(*b"b", *b"d")));
    assert_eq!(next(&deep, &busy, &[]), "Compact L3 3 (released)");
}

/// Table 5 lies on table 3, and is older than table 7: outputs of both as new as table 7 would hide what table 5 has.
#[test]
fn neighbours_of_a_level_of_several_runs_go_one_by_one() {
    let held = (50, 2 * QUARTER);
    let below = [(3, holding(7, ("a", "b"), 7, held)), (3, holding(3, ("d", "f"), 7, held))];
    assert_eq!(next(&below, &Claims::default(), &[]), "Compact L3 7 3 (released)");
    let over = [(3, table(5, 5, KeyRange::new(*b"e", *b"h"), 1 << 20))];
    assert_eq!(next(&[&below[..], &over].concat(), &Claims::default(), &[]), "Compact L3 7 (released)");
}

#[test]
fn levels_that_are_due_go_first_and_a_failure_is_waited_for() {
    let free = Claims::default();
    let tables = [
        (1, table(5, 1, KeyRange::new(*b"a", *b"c"), 1 << 20)),
        (2, holding(1, ("a", "c"), 7, (50, QUARTER))),
    ];
    let mut shape = TreeShape::default();
    assert_eq!(next_in(&tables, &free, &[], shape), "Compact L2 1 (released)");
    shape.put_off = true;
    assert_eq!(next_in(&tables, &free, &[], shape), "nothing");
    shape = TreeShape::default();
    shape.scores[1] = 1.0;
    assert!(next_in(&tables, &free, &[], shape).contains("(level bytes)"));
}
