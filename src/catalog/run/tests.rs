//! Tests of runs against a sorted list.

use super::*;
use crate::catalog::testing::{Dice, record, table};
use crate::types::{Seq, TableId};

/// Key number `n`: longer than a prefix, and with a shared one.
fn key(n: u64) -> String {
    format!("shared-{n:06}")
}

/// A table over keys `from..=to`; its bytes and tombstones tell it from others.
fn span(id: u64, from: u64, to: u64) -> Arc<TableMeta> {
    let mut record = record(id, &key(from), &key(to));
    record.extent.length = 1000 + id;
    record.entries = 3 + id;
    record.tombstones = id % 3;
    table(&record)
}

fn ids<'a>(tables: impl IntoIterator<Item = &'a Arc<TableMeta>>) -> Vec<u64> {
    tables.into_iter().map(|table| table.id.0).collect()
}

/// Every question about `run`, answered by `model` as well.
fn assert_same(run: &Run, model: &[Arc<TableMeta>], dice: &mut Dice, bound: u64) {
    run.tables.checked_height();
    assert_eq!(ids(run.iter()), ids(model));
    assert_eq!(run.len(), model.len());
    assert_eq!(run.is_empty(), model.is_empty());
    assert_eq!(run.bytes(), model.iter().map(|table| table.bytes()).sum::<u64>());
    assert_eq!(run.entries(), model.iter().map(|table| table.entries).sum::<u64>());
    assert_eq!(run.tombstones(), model.iter().map(|table| table.tombstones).sum::<u64>());
    assert_eq!(ids(run.first()), ids(model.first()));
    assert_eq!(ids(run.last()), ids(model.last()));
    for _ in 0..20 {
        let probe = key(dice.below(bound));
        let probe = probe.as_bytes();
        assert_eq!(ids(run.find(probe)), ids(model.iter().find(|table| table.range.contains(probe))));
        let lower = model.iter().position(|table| table.range.end.admits(probe)).unwrap_or(model.len());
        assert_eq!(run.lower_bound(probe), lower);
        assert_eq!(ids(run.get(lower)), ids(model.get(lower)));
        assert_eq!(ids(run.iter_from(lower)), ids(&model[lower..]));
        let (a, b) = (dice.below(bound), dice.below(bound));
        let range = KeyRange::new(key(a.min(b)).as_bytes(), key(a.max(b)).as_bytes());
        let overlapping: Vec<_> = model.iter().filter(|table| table.range.overlaps(&range)).collect();
        assert_eq!(ids(run.overlapping(&range)), ids(overlapping.iter().copied()));
        assert_eq!(run.overlap_bytes(&range), overlapping.iter().map(|table| table.bytes()).sum::<u64>());
    }
}

#[test]
fn random_edits_agree_with_a_sorted_vector() {
    for seed in 0..4 {
        let mut dice = Dice(seed);
        let slots = [40, 400, 4000, 12_000][seed as usize];
        let mut id = 0;
        let mut model: Vec<Arc<TableMeta>> = Vec::new();
        let mut run = Run::empty();
        for round in 0..120 {
            // Grows first, shrinks later.
            let (adds, drops) = if round < 60 { (slots / 30, slots / 90) } else { (slots / 90, slots / 30) };
            let mut drop = Vec::new();
            for _ in 0..drops.min(model.len() as u64) {
                drop.push(model.remove(dice.below(model.len() as u64) as usize));
            }
            let mut add = Vec::new();
            for _ in 0..adds {
                let slot = dice.below(slots) * 10;
                let new = span(id, slot + dice.below(3), slot + 3 + dice.below(7));
                if !model.iter().any(|table| table.range.overlaps(&new.range)) {
                    id += 1;
                    model.push(Arc::clone(&new));
                    add.push(new);
                }
            }
            model.sort_by(|a, b| a.range.start.cmp(&b.range.start));
            run = run.with(&drop, add).unwrap();
            if round % 7 == 0 || model.is_empty() {
                assert_same(&run, &model, &mut dice, slots * 10);
            }
        }
        let rest = std::mem::take(&mut model);
        run = run.with(&rest, Vec::new()).unwrap();
        assert_same(&run, &model, &mut dice, 10);
    }
}

#[test]
fn an_edit_shares_all_but_the_paths_to_it() {
    let tables: Vec<_> = (0..20_000).map(|n| span(n, n * 10, n * 10 + 5)).collect();
    let run = Run::from_sorted(tables.clone()).unwrap();
    let height = run.tables.checked_height();
    assert!(height <= 4);
    let edited = run.with(&tables[7000..7001], vec![span(90_000, 70_000, 70_009)]).unwrap();
    assert!(run.tables.nodes_apart(&edited.tables) <= 2 * (height + 1));
    assert_eq!(run.find(key(70_003).as_bytes()).unwrap().id, TableId(7000));
    assert_eq!(edited.find(key(70_003).as_bytes()).unwrap().id, TableId(90_000));
}

#[test]
fn overlap_inside_a_run_is_refused() {
    let run = Run::from_sorted(vec![span(1, 0, 5), span(2, 10, 15)]).unwrap();
    for (from, to) in [(5, 7), (7, 10), (7, 20), (12, 13), (0, 20), (3, 15), (15, 16)] {
        let error = run.with(&[], vec![span(3, from, to)]).unwrap_err().to_string();
        assert!(error.contains("t3") || error.contains("end at bound"), "{from}..{to}: {error}");
    }
    run.with(&[], vec![span(3, 6, 9)]).unwrap();
    assert!(Run::from_sorted(vec![span(2, 10, 15), span(1, 0, 5)]).is_err());
    assert!(run.with(&[], vec![span(3, 20, 25), span(4, 25, 30)]).is_err());
    assert!(run.with(&[], vec![span(3, 20, 25), span(4, 22, 25)]).is_err());
}

#[test]
fn only_a_table_of_the_run_can_leave_it() {
    let run = Run::from_sorted(vec![span(1, 0, 5)]).unwrap();
    assert!(run.with(&[span(2, 0, 5)], Vec::new()).unwrap_err().to_string().contains("t2"));
    assert!(run.with(&[span(1, 7, 9)], Vec::new()).is_err());
    assert!(run.with(&[span(1, 0, 5), span(1, 0, 5)], Vec::new()).is_err());
    let replaced = run.with(&[span(1, 0, 5)], vec![span(2, 0, 5)]).unwrap();
    assert_eq!(ids(replaced.iter()), [2]);
}

#[test]
fn keys_that_are_prefixes_of_others_stay_in_order() {
    let mut low = record(1, "", "abcdefgh");
    low.min_seq = Seq(0);
    let high = record(2, "abcdefgh\0", "abcdefgha");
    let run = Run::from_sorted(vec![table(&low), table(&high)]).unwrap();
    for (probe, id) in [("", 1), ("abcdefgh", 1), ("abcdefgh\0", 2), ("abcdefgha", 2)] {
        assert_eq!(ids(run.find(probe.as_bytes())), [id], "{probe:?}");
    }
    assert!(run.find(b"abcdefghb").is_none());
}
