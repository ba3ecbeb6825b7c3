//! Which tables go because newer ones have all of their keys.

use super::*;
use crate::types::KeySum;

/// The table of number `number` with these keys, each a letter, of which it is known that it has them.
fn keyed(id: u64, number: u64, keys: &str) -> TableRecord {
    let mut sum = KeySum::new(7);
    keys.bytes().for_each(|key| sum.add(&[key]));
    let ends = [keys.bytes().min().unwrap(), keys.bytes().max().unwrap()];
    let seq = Seq(number);
    let base = table(id, number, KeyRange::new(&ends[..1], &ends[1..]), 1 << 20);
    TableRecord { min_seq: seq, max_seq: seq, entries: keys.len() as u64, keys: Some(sum), ..base }
}

/// The next plan while somebody reads at `pins`, as text.
fn next(tables: &[(u8, TableRecord)], busy: &Claims, pins: &[u64]) -> String {
    let (version, shape) = (version(tables.to_vec()), TreeShape::default());
    let config = PolicyConfig::leveldb_sized(1 << 30, 1 << 40);
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
    plan.map_or("nothing".into(), |plan| {
        let ids: Vec<_> = plan.inputs.iter().map(|input| input.table.0.to_string()).collect();
        format!("{:?} L{} {} ({})", plan.kind, plan.target, ids.join(" "), plan.reason)
    })
}

fn free(tables: &[(u8, TableRecord)]) -> String {
    next(tables, &Claims::default(), &[])
}

#[test]
fn a_table_goes_if_newer_ones_have_the_same_keys() {
    let below = [(2, keyed(1, 1, "abc")), (2, keyed(2, 1, "efg"))];
    let over = |tables: &[TableRecord]| {
        let above = tables.iter().map(|table| (0, table.clone()));
        free(&below.iter().cloned().chain(above).collect::<Vec<_>>())
    };
    assert_eq!(over(&[]), "nothing");
    assert_eq!(over(&[keyed(5, 9, "abc")]), "Drop L2 1 (hidden)");
    assert_eq!(over(&[keyed(5, 9, "abc"), keyed(6, 9, "efg")]), "Drop L2 1 2 (hidden)");
    // As many, from the first to the last key.
    assert_eq!(over(&[keyed(5, 9, "ac")]), "nothing");
    let other = TableRecord { keys: keyed(7, 9, "axc").keys, ..keyed(5, 9, "abc") };
    assert_eq!(over(&[other]), "nothing");
    assert_eq!(over(&[keyed(5, 9, "abcd"), keyed(6, 9, "efg")]), "Drop L2 2 (hidden)");
    assert_eq!(over(&[TableRecord { keys: None, ..keyed(5, 9, "abc") }]), "nothing");
    let seed = KeySum { seed: 8, ..keyed(5, 9, "abc").keys.unwrap() };
    assert_eq!(over(&[TableRecord { keys: Some(seed), ..keyed(5, 9, "abc") }]), "nothing");
}

#[test]
fn what_is_parted_otherwise_is_told_together() {
    let below = [(1, keyed(1, 1, "ab")), (1, keyed(2, 1, "cde")), (1, keyed(3, 1, "gh"))];
    let over = |tables: &[(u8, TableRecord)]| free(&[&below[..], tables].concat());
    assert_eq!(over(&[(0, keyed(5, 9, "abcde"))]), "Drop L1 1 2 (hidden)");
    assert_eq!(over(&[(0, keyed(5, 9, "abc")), (0, keyed(6, 9, "de"))]), "Drop L1 1 2 (hidden)");
    assert_eq!(over(&[(0, keyed(5, 9, "abc")), (0, keyed(6, 9, "degh"))]), "Drop L1 1 2 3 (hidden)");
    // Begin alike, end elsewhere.
    assert_eq!(over(&[(0, keyed(5, 9, "abc")), (0, keyed(6, 9, "gh"))]), "Drop L1 3 (hidden)");
    assert_eq!(over(&[(0, keyed(5, 9, "abcd"))]), "nothing");
    let with_ranges = TableRecord { range_tombstones: 1, ..keyed(3, 1, "gh") };
    assert_eq!(free(&[(1, with_ranges), (0, keyed(5, 9, "gh"))]), "nothing");
}

#[test]
fn of_many_runs_the_newest_stays() {
    let runs: Vec<_> = (1..=4).map(|number| (0, keyed(number, number, "abc"))).collect();
    assert_eq!(free(&runs), "Drop L0 3 (hidden)");
    let deep = [(3, keyed(1, 1, "abc")), (2, keyed(2, 2, "abc"))];
    assert_eq!(free(&deep), "Drop L3 1 (hidden)");
}

#[test]
fn a_reader_that_sees_the_older_one_alone_keeps_it() {
    let tables = [(1, keyed(1, 10, "abc")), (0, keyed(5, 20, "abc"))];
    let gone = "Drop L1 1 (hidden)";
    let with = |pins: &[u64]| next(&tables, &Claims::default(), pins);
    assert_eq!(
        (with(&[9, 20]), with(&[9, 10]), with(&[19, 30])),
        (gone.into(), "nothing".into(), "nothing".into())
    );
    // The one in the middle nobody sees.
    let three = [&tables[..], &[(0, keyed(7, 30, "abc"))]].concat();
    assert_eq!(next(&three, &Claims::default(), &[12]), "Drop L0 5 (hidden)");
}

/// Ingests of neighbouring ranges make one run. Who reads between their numbers sees the keys of the later one in what lies
/// below both.
#[test]
fn a_reader_between_two_ingests_keeps_what_they_hide_together() {
    let tables = [
        (1, keyed(1, 10, "abcde")),
        (0, keyed(5, 20, "abc")),
        (0, TableRecord { epoch: Epoch(20), ..keyed(6, 40, "de") }),
    ];
    let with = |pins: &[u64]| next(&tables, &Claims::default(), pins);
    assert_eq!(with(&[]), "Drop L1 1 (hidden)");
    assert_eq!(with(&[30]), "nothing");
    assert_eq!((with(&[9]), with(&[40])), (with(&[]), with(&[])));
}

#[test]
fn a_running_job_keeps_what_it_works_on() {
    let tables =
        [(1, keyed(1, 1, "abc")), (1, keyed(2, 1, "efg")), (0, keyed(5, 9, "abc")), (0, keyed(6, 9, "efg"))];
    let mut busy = Claims::default();
    busy.claim(&claim_of(1, KeyRange::new(*b"b", *b"b")));
    assert_eq!(next(&tables, &busy, &[]), "Drop L1 2 (hidden)");
    busy = Claims::default();
    busy.claim(&claim_of(0, KeyRange::new(*b"a", *b"g")));
    assert_eq!(next(&tables, &busy, &[]), "Drop L1 1 2 (hidden)");
}

/// A tree of a few runs, each of which has one of a few sets of keys, cut anywhere: its tables, each with its keys and the
/// numbers of their entries.
fn random_tree(dice: &mut Dice) -> Vec<(u8, TableRecord, BTreeMap<u8, u64>)> {
    let mut tree = Vec::new();
    let mut number = 0;
    for (level, epoch) in [(3, 0), (2, 0), (1, 0), (0, 1), (0, 2), (0, 3)] {
        let step = 1 + dice.below(2) as usize;
        let mut keys: Vec<u8> = (b'a'..=b'h').step_by(step).collect();
        if dice.below(3) == 0 {
            keys.remove(dice.below(keys.len() as u64) as usize);
        }
        while !keys.is_empty() {
            let behind = keys.split_off((1 + dice.below(5) as usize).min(keys.len()));
            // An ingest has one number; what is merged has many.
            let step = dice.below(3);
            number += 1;
            let entries: BTreeMap<u8, u64> =
                keys.iter().map(|&key| (key, number + step * dice.below(4))).collect();
            number += 4 * step;
            let text = String::from_utf8(keys).unwrap();
            let seqs = || entries.values().copied().map(Seq);
            let record = TableRecord {
                epoch: Epoch(epoch),
                min_seq: seqs().min().unwrap(),
                max_seq: seqs().max().unwrap(),
                ..keyed(tree.len() as u64 + 1, number, &text)
            };
            tree.push((level, record, entries));
            keys = behind;
        }
    }
    tree
}

#[test]
fn no_reader_sees_hidden_tables_go() {
    let mut dropped = 0;
    for seed in 0..1500 {
        let mut dice = Dice(seed);
        let mut tree = random_tree(&mut dice);
        let newest = tree.iter().map(|(_, table, _)| table.max_seq.0).max().unwrap();
        let mut pins: Vec<u64> = (0..dice.below(3)).map(|_| 1 + dice.below(newest)).collect();
        pins.sort_unstable();
        let answers = |tree: &[(u8, TableRecord, BTreeMap<u8, u64>)]| -> Vec<BTreeMap<u8, u64>> {
            let at = |pin: &u64| {
                let entries =
                    tree.iter().flat_map(|(_, _, entries)| entries).filter(|(_, number)| *number <= pin);
                entries.fold(BTreeMap::new(), |mut seen: BTreeMap<u8, u64>, (&key, &number)| {
                    seen.entry(key).and_modify(|newest| *newest = number.max(*newest)).or_insert(number);
                    seen
                })
            };
            pins.iter().chain([&newest]).map(at).collect()
        };
        let before = answers(&tree);
        loop {
            let tables: Vec<_> = tree.iter().map(|(level, table, _)| (*level, table.clone())).collect();
            let text = next(&tables, &Claims::default(), &pins);
            let Some(ids) = text.strip_prefix("Drop ").and_then(|rest| rest.strip_suffix(" (hidden)")) else {
                break;
            };
            let ids: Vec<u64> = ids.split(' ').skip(1).map(|id| id.parse().unwrap()).collect();
            tree.retain(|(_, table, _)| !ids.contains(&table.id.0));
            dropped += ids.len();
            assert!(answers(&tree) == before, "{text} of seed {seed} with readers at {pins:?}");
        }
    }
    assert!(dropped > 1500, "{dropped} tables");
}
