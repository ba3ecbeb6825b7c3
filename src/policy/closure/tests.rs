//! Tests of the closures against their definitions, over random levels.

use super::*;
use crate::catalog::Version;
use crate::catalog::testing::{Dice, flushed, record, version};
use crate::types::Epoch;

/// A level of up to forty tables on top of each other.
fn random_level(dice: &mut Dice) -> Version {
    let key = |n: u64| format!("{n:03}");
    let widest = 1 + dice.below(60);
    let tables = (1..=1 + dice.below(40)).map(|id| {
        let from = dice.below(200);
        (1, flushed(id, record(id, &key(from), &key(from + dice.below(widest)))))
    });
    version(tables.collect())
}

fn ids(tables: &[&Arc<TableMeta>]) -> BTreeSet<u64> {
    tables.iter().map(|table| table.id.0).collect()
}

/// `seed`, grown by each table that `joins` the ones that are taken, until none does.
fn grown<'a>(
    state: &'a LevelState,
    seed: &[&'a Arc<TableMeta>],
    joins: impl Fn(&[&Arc<TableMeta>], &TableMeta) -> bool,
) -> BTreeSet<u64> {
    let mut taken = seed.to_vec();
    loop {
        let new = state.tables().find(|new| !ids(&taken).contains(&new.id.0) && joins(&taken, new));
        match new {
            Some(new) => taken.push(new),
            None => return ids(&taken),
        }
    }
}

fn is_in_order(state: &LevelState, tables: &[&Arc<TableMeta>]) -> bool {
    tables.iter().map(|table| (state.run_of(table), &table.range.start)).is_sorted()
}

#[test]
fn each_closure_is_the_least_that_it_must_be() {
    let (mut older, mut between, mut several) = (0, 0, 0);
    for seed in 0..400 {
        let mut dice = Dice(seed);
        let tree = random_level(&mut dice);
        let state = tree.level(1);
        let drawn: Vec<_> = state.tables().filter(|_| dice.below(5) == 0).collect();
        let overlaps = |taken: &[&Arc<TableMeta>], new: &TableMeta| {
            taken.iter().any(|table| table.range.overlaps(&new.range))
        };
        let down = downward(state, &drawn);
        let is_older = |taken: &[&Arc<TableMeta>], new: &TableMeta| {
            taken.iter().any(|table| table.range.overlaps(&new.range) && table.epoch > new.epoch)
        };
        assert_eq!(ids(&down), grown(state, &drawn, is_older), "seed {seed}");
        let middle = convex(state, &drawn);
        let is_between = |taken: &[&Arc<TableMeta>], new: &TableMeta| {
            let epochs = || taken.iter().map(|table| table.epoch);
            let (lowest, highest, epoch) = (epochs().min(), epochs().max(), Some(new.epoch));
            let aged = lowest < epoch && epoch < highest || epoch == highest;
            aged && hull(taken).is_some_and(|hull| hull.overlaps(&new.range))
        };
        assert_eq!(ids(&middle), grown(state, &drawn, is_between), "seed {seed}");
        let range = drawn.first().map_or_else(KeyRange::everything, |table| table.range.clone());
        let all = connected(state, &range);
        let met: Vec<_> = state.overlapping(&range).collect();
        assert_eq!(ids(&all), grown(state, &met, overlaps), "seed {seed}");
        assert!([&down, &middle, &all].iter().all(|tables| is_in_order(state, tables)), "seed {seed}");
        let parts = components(state);
        for part in &parts {
            assert_eq!(ids(part), grown(state, &part[..1], overlaps), "seed {seed}");
        }
        assert_eq!(parts.iter().map(Vec::len).sum::<usize>(), state.tables().count());
        assert!(parts.windows(2).all(|pair| pair[0][0].range.start < pair[1][0].range.start));
        older += u32::from(down.len() > drawn.len());
        between += u32::from(middle.len() > drawn.len());
        several += u32::from(parts.len() > 1 && parts.iter().any(|part| part.len() > 1));
    }
    assert!(older > 100 && between > 100 && several > 100, "{older} older, {between} between, {several}");
}

#[test]
fn tables_of_one_age_with_the_newest_join_a_merge_that_reaches_over_them() {
    let aged = |epoch, id, from, to| (1, flushed(epoch, record(id, from, to)));
    let tree = version(vec![aged(5, 1, "a", "c"), aged(5, 2, "d", "f"), aged(3, 3, "b", "e")]);
    let table = |id| tree.table(TableId(id)).unwrap().1;
    assert_eq!(table(1).epoch, Epoch(5));
    let merged = convex(tree.level(1), &[table(1), table(3)]);
    assert_eq!(ids(&merged), BTreeSet::from([1, 2, 3]));
    let flush = ["a", "c", "e"].into_iter().zip(1..).map(|(key, id)| aged(5, id, key, key));
    let tree = version(flush.collect());
    let ends: Vec<_> = [1, 3].into_iter().map(|id| tree.table(TableId(id)).unwrap().1).collect();
    assert_eq!(ids(&convex(tree.level(1), &ends)), BTreeSet::from([1, 2, 3]));
}
