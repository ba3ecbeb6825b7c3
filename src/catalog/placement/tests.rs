//! Tests of the placement: changes against the rule, applied to all tables at once.

use super::*;
use crate::catalog::testing::{Dice, record, table};
use crate::format::edit::TableRecord;

/// A table over keys `from..=to` of this epoch.
fn aged(id: u64, epoch: u64, from: u64, to: u64) -> Arc<TableMeta> {
    let key = |n: u64| format!("{n:04}");
    table(&TableRecord { epoch: Epoch(epoch), ..record(id, &key(from), &key(to)) })
}

/// The number of each table's run, by the rule.
fn by_rule(tables: &[Arc<TableMeta>]) -> BTreeMap<TableId, usize> {
    let mut in_order = tables.to_vec();
    in_order.sort_by_key(|table| table.epoch);
    let mut runs: BTreeMap<TableId, usize> = BTreeMap::new();
    for (at, table) in in_order.iter().enumerate() {
        let below = in_order[..at].iter().filter(|other| other.range.overlaps(&table.range));
        let run = below.map(|other| runs[&other.id] + 1).max().unwrap_or(0);
        runs.insert(table.id, run);
    }
    runs
}

/// The number of each table's run in `runs`, newest first.
fn found(runs: &[Run]) -> BTreeMap<TableId, usize> {
    let numbered = runs.iter().rev().enumerate();
    numbered.flat_map(|(number, run)| run.iter().map(move |table| (table.id, number))).collect()
}

#[test]
fn changes_end_where_the_rule_puts_everything() {
    let (mut deepest, mut sank) = (0, 0);
    for seed in 0..300 {
        let mut dice = Dice(seed);
        let widest = [4, 30, 200][seed as usize % 3];
        let (mut tables, mut runs, mut id): (Vec<Arc<TableMeta>>, Vec<Run>, u64) =
            (Vec::new(), Vec::new(), 0);
        for _ in 0..30 {
            let mut drop = Vec::new();
            for _ in 0..dice.below(4).min(tables.len() as u64) {
                drop.push(tables.swap_remove(dice.below(tables.len() as u64) as usize));
            }
            let mut add = Vec::new();
            for _ in 0..dice.below(5) {
                id += 1;
                let (from, epoch) = (dice.below(300), 1 + dice.below(40));
                let new = aged(id, epoch, from, from + dice.below(widest));
                let meets =
                    |other: &Arc<TableMeta>| other.epoch == new.epoch && other.range.overlaps(&new.range);
                if !tables.iter().any(meets) {
                    tables.push(Arc::clone(&new));
                    add.push(new);
                }
            }
            // One goes and comes at once, as where it is copied to another place.
            if let Some(stays) = tables.first().filter(|stays| !add.iter().any(|new| new.id == stays.id)) {
                drop.push(Arc::clone(stays));
                add.push(Arc::clone(stays));
            }
            let before = found(&runs);
            runs = place(&runs, &drop, add).unwrap();
            let now = found(&runs);
            assert_eq!(now, by_rule(&tables), "seed {seed}");
            assert!(runs.iter().all(|run| !run.is_empty()));
            deepest = deepest.max(runs.len());
            sank += before.iter().filter(|(id, run)| now.get(id).is_some_and(|now| now < run)).count();
        }
        let all = std::mem::take(&mut tables);
        assert_eq!(place(&[], &[], all.clone()).map(|runs| found(&runs)), Ok(found(&runs)), "seed {seed}");
        assert!(place(&runs, &all, Vec::new()).unwrap().is_empty());
    }
    assert!(deepest > 8 && sank > 500, "{deepest} runs, {sank} tables sank");
}

#[test]
fn disjoint_tables_make_one_run_whatever_their_epochs() {
    let tables: Vec<_> = (0..100).map(|n| aged(n, n * 37 % 100, n * 10, n * 10 + 5)).collect();
    let runs = place(&[], &[], tables.clone()).unwrap();
    assert_eq!(runs.len(), 1);
    assert_eq!(runs[0].iter().map(|table| table.id.0).collect::<Vec<_>>(), (0..100).collect::<Vec<_>>());
    let runs = place(&runs, &tables[10..20], vec![aged(200, 3, 100, 150)]).unwrap();
    assert_eq!((runs.len(), runs[0].len()), (1, 91));
}

#[test]
fn tables_of_one_epoch_that_overlap_are_refused() {
    let runs = place(&[], &[], vec![aged(1, 5, 0, 9), aged(2, 3, 5, 20)]).unwrap();
    assert_eq!(runs.len(), 2);
    for (epoch, from, to) in [(5, 9, 12), (3, 0, 6), (3, 20, 20)] {
        let error = place(&runs, &[], vec![aged(9, epoch, from, to)]).unwrap_err().to_string();
        assert!(error.contains("one epoch"), "{error}");
    }
    assert!(place(&[], &[], vec![aged(1, 5, 0, 9), aged(2, 5, 9, 20)]).is_err());
    assert!(place(&runs, &[aged(7, 5, 0, 9)], Vec::new()).unwrap_err().to_string().contains("in no run"));
}

/// Also where one of them has just been placed, and another table lies beside it in its run.
#[test]
fn tables_of_one_epoch_that_overlap_are_refused_whatever_lies_beside_them() {
    let (older, tied) = (aged(2, 4, 4, 6), [aged(1, 5, 0, 2), aged(3, 5, 1, 5)]);
    assert!(place(&[], &[], vec![older.clone(), tied[0].clone(), tied[1].clone()]).is_err());
    // The first of the two is placed again, since what lay below it goes.
    let below = aged(4, 1, 0, 2);
    let runs = place(&[], &[], vec![below.clone(), tied[0].clone()]).unwrap();
    assert!(place(&runs, &[below], vec![older, tied[1].clone()]).is_err());
}
