//! Tests of the compaction buffer: whatever comes, goes and is removed, a list knows nothing that its level does not say.

use std::collections::BTreeMap;

use super::*;
use crate::catalog::testing::{Dice, record, table, version};
use crate::format::edit::TableRecord;
use crate::types::Epoch;

const KEYS: u64 = 40;

fn key(n: u64) -> String {
    format!("{n:02}")
}

/// A table over keys `from..=to`.
fn over(id: u64, from: u64, to: u64) -> Arc<TableMeta> {
    table(&TableRecord { epoch: Epoch(id), ..record(id, &key(from), &key(to)) })
}

fn down(target: u8, tables: Vec<Arc<TableMeta>>, is_kept: bool) -> Descent {
    Descent { source: target - 1, target, tables, is_kept, is_whole: false }
}

fn ids<'a>(tables: impl Iterator<Item = &'a Arc<TableMeta>>) -> Vec<u64> {
    tables.map(|table| table.id.0).collect()
}

/// A version whose level 1 has one table over all keys.
fn full() -> Version {
    version(vec![(1, record(1000, &key(0), &key(KEYS)))])
}

/// A list, with what each table brought and what the level says.
#[derive(Default)]
struct Model {
    buffer: CompactionBuffer,
    /// The keys of each table, of which every other one is missing.
    contents: BTreeMap<TableId, Vec<u64>>,
    /// The table that brought each key last.
    level: BTreeMap<u64, TableId>,
    id: u64,
}

impl Model {
    fn arrive(&mut self, dice: &mut Dice) {
        let mut tables = Vec::new();
        let is_kept = dice.below(4) > 0;
        for _ in 0..=dice.below(3) {
            self.id += 1;
            let from = dice.below(KEYS);
            let table = over(self.id, from, (from + dice.below(8)).min(KEYS - 1));
            let keys: Vec<u64> = (from..KEYS).filter(|n| table.range.contains(key(*n).as_bytes())).collect();
            let kept: Vec<u64> = keys.iter().copied().filter(|n| *n == from || dice.below(2) > 0).collect();
            kept.iter().for_each(|n| _ = self.level.insert(*n, table.id));
            self.contents.insert(table.id, kept);
            tables.push(table);
        }
        let descent = down(1, tables, is_kept);
        let edit = TreeEdit::default();
        self.buffer = self.buffer.behind(&edit, (&full(), &full()), Some(&descent), 0);
    }

    /// A compaction within the level takes some keys away, or brings others.
    fn change(&mut self, dice: &mut Dice) {
        self.id += 1;
        let from = dice.below(KEYS);
        let record = record(self.id, &key(from), &key((from + dice.below(4)).min(KEYS - 1)));
        for n in (0..KEYS).filter(|n| record.range.contains(key(*n).as_bytes())) {
            if dice.below(2) > 0 {
                self.level.remove(&n);
            } else {
                self.level.insert(n, record.id);
            }
        }
        let edit = TreeEdit { add: vec![(1, record)], ..TreeEdit::default() };
        self.buffer = self.buffer.behind(&edit, (&full(), &full()), None, 0);
    }

    fn remove(&mut self, dice: &mut Dice) {
        let kept: Vec<TableId> = self.buffer.list(1).tables().map(|(table, _)| table.id).collect();
        let some: BTreeSet<TableId> = kept.into_iter().filter(|_| dice.below(3) == 0).collect();
        self.buffer.list_mut(1).remove(&some);
    }

    fn check(&self) {
        let list = self.buffer.list(1);
        let has = |table: &Arc<TableMeta>, n: u64| self.contents[&table.id].contains(&n);
        for n in 0..KEYS {
            let key = key(n);
            let found = list.about(key.as_bytes()).find(|table| has(table, n)).map(|table| table.id);
            let level = self.level.get(&n).copied();
            assert!(
                found.is_none() || found == level,
                "{key}: {found:?}, and the level has {level:?}: {list:?}"
            );
            if !list.lacks().contains(key.as_bytes()) {
                assert_eq!(found, level, "{key} is missing: {list:?}");
                let mut runs = list.runs().filter_map(|run| run.find(key.as_bytes()));
                assert_eq!(runs.find(|table| has(table, n)).map(|table| table.id), level, "{key}");
            }
        }
        assert_eq!(list.tables().map(|(table, _)| table.bytes()).sum::<u64>(), list.bytes());
        assert_eq!(list.tables().count(), list.len());
        assert!(!list.is_empty() || list.gone() == 0, "nothing is gone that nobody looks for: {list:?}");
    }
}

#[test]
fn i6_a_list_answers_as_its_level_or_not_at_all() {
    let (mut kept, mut gone, mut whole) = (0, 0, 0);
    for seed in 0..400 {
        let dice = &mut Dice(seed);
        let mut model = Model::default();
        for _ in 0..40 {
            match dice.below(10) {
                0 => model.change(dice),
                1 | 2 => model.remove(dice),
                _ => model.arrive(dice),
            }
            model.check();
            let list = model.buffer.list(1);
            (kept, gone) = (kept.max(list.len()), gone.max(list.gone()));
            whole += usize::from(list.lacks().is_empty());
        }
    }
    assert!(kept > 20 && gone > 5 && whole > 100, "{kept} kept, {gone} gone, {whole} whole");
}

#[test]
fn what_overlaps_lies_on_top_and_what_does_not_beside() {
    let mut buffer = CompactionBuffer::cold(&Version::empty());
    for (id, from, to) in [(1, 0, 5), (2, 6, 9), (3, 4, 7), (4, 20, 30)] {
        let descent = down(2, vec![over(id, from, to)], true);
        let after = version(vec![(2, record(100, &key(0), &key(KEYS)))]);
        buffer = buffer.behind(&TreeEdit::default(), (&after, &after), Some(&descent), 7);
    }
    let list = buffer.list(2);
    assert_eq!(list.runs().map(|run| ids(run.iter())).collect::<Vec<_>>(), [vec![3], vec![1, 2, 4]]);
    assert_eq!(ids(list.about(b"05")), [3, 1]);
    assert!(list.lacks().is_empty() && list.tables().all(|(_, came)| came == 7));
    // A removed table hides what is older, and is forgotten with it.
    let list = buffer.list_mut(2);
    list.remove(&BTreeSet::from([TableId(3)]));
    assert_eq!((ids(list.about(b"05")), ids(list.about(b"01")), list.gone()), (vec![], vec![1], 1));
    list.remove(&BTreeSet::from([TableId(1), TableId(2)]));
    assert_eq!((list.gone(), list.len(), list.bytes()), (0, 1, 4096));
    assert!(list.lacks().contains(b"05") && !list.lacks().contains(b"20"));
}

#[test]
fn a_tree_that_was_there_lacks_everything_and_an_emptied_level_nothing() {
    let tree = version(vec![(1, record(1, "a", "b")), (3, record(2, "a", "b"))]);
    let cold = CompactionBuffer::cold(&tree);
    assert!(cold.is_empty());
    let lacks = |buffer: &CompactionBuffer| [1, 2, 3].map(|level| buffer.list(level).lacks().is_everything());
    assert_eq!(lacks(&cold), [true, false, true]);
    let emptied = version(vec![(3, record(2, "a", "b"))]);
    assert_eq!(lacks(&cold.behind(&TreeEdit::default(), (&tree, &emptied), None, 0)), [false, false, true]);
}

#[test]
fn a_whole_level_takes_its_list_along_and_a_round_begins() {
    let before = version(vec![(1, record(1, "a", "b"))]);
    let kept = down(1, vec![over(1, 0, 5)], true);
    let cold = CompactionBuffer::cold(&Version::empty());
    let buffer = cold.behind(&TreeEdit::default(), (&Version::empty(), &before), Some(&kept), 1);
    let after = version(vec![(2, record(1, "a", "b"))]);
    let whole = Descent { source: 1, is_whole: true, ..down(2, vec![over(1, 0, 5)], true) };
    let buffer = buffer.behind(&TreeEdit::default(), (&before, &after), Some(&whole), 9);
    assert_eq!([1, 2].map(|level| buffer.list(level).len()), [0, 1]);
    assert_eq!((buffer.list(2).full(), buffer.list(3).round_began()), (Some((4096, 4096)), Some(9)));
}

/// A job that was planned for levels that move piece by piece ends after the layout has changed to one of rounds.
#[test]
fn a_part_of_a_level_takes_no_list_along() {
    let levels = |tables: &[(u8, u64, u64, u64)]| {
        let record = |&(level, id, from, to)| (level, record(id, &key(from), &key(to)));
        version(tables.iter().map(record).collect())
    };
    let before = levels(&[(1, 1, 0, 5), (1, 2, 10, 15), (2, 3, 20, 25)]);
    let after = levels(&[(1, 2, 10, 15), (2, 1, 0, 5), (2, 3, 20, 25)]);
    let mut buffer = CompactionBuffer::cold(&Version::empty());
    for (target, id, from, to) in [(1, 1, 0, 5), (1, 2, 10, 15), (2, 3, 20, 25)] {
        let descent = down(target, vec![over(id, from, to)], true);
        buffer = buffer.behind(&TreeEdit::default(), (&before, &before), Some(&descent), 0);
    }
    let part = Descent { is_whole: true, ..down(2, vec![over(1, 0, 5)], true) };
    let buffer = buffer.behind(&TreeEdit::default(), (&before, &after), Some(&part), 0);
    for (level, n, id) in [(1, 12, 2), (2, 3, 1), (2, 22, 3)] {
        let list = buffer.list(level);
        assert_eq!(ids(list.about(key(n).as_bytes())), [id], "{n} in level {level}: {list:?}");
    }
}

#[test]
fn what_comes_from_elsewhere_is_gone_in_the_lists_above_too() {
    let after = version((1..=3).map(|level| (level, record(level.into(), &key(0), &key(KEYS)))).collect());
    let mut buffer = CompactionBuffer::cold(&Version::empty());
    for target in [1, 2, 3] {
        let descent = down(target, vec![over(10 + u64::from(target), 0, 5)], true);
        buffer = buffer.behind(&TreeEdit::default(), (&after, &after), Some(&descent), 0);
    }
    // An ingest into level 2.
    let edit = TreeEdit { add: vec![(2, record(20, &key(3), &key(4)))], ..TreeEdit::default() };
    let ingested = buffer.behind(&edit, (&after, &after), None, 0);
    let found = |buffer: &CompactionBuffer| [1, 2, 3].map(|level| buffer.list(level).about(b"03").count());
    assert_eq!((found(&buffer), found(&ingested)), ([1, 1, 1], [0, 0, 1]));
    // A table of level 2 goes, as newer ones hide it.
    let edit = TreeEdit { drop: vec![(2, TableId(2))], ..TreeEdit::default() };
    assert_eq!(found(&buffer.behind(&edit, (&after, &after), None, 0)), [0, 0, 1]);
    // A copy to another place changes nothing.
    let copied = TreeEdit {
        drop: vec![(2, TableId(2))],
        add: vec![(2, record(2, &key(0), &key(KEYS)))],
        ..TreeEdit::default()
    };
    assert_eq!(found(&buffer.behind(&copied, (&after, &after), None, 0)), [1, 1, 1]);
}

#[test]
fn a_frozen_list_keeps_nothing_more_and_hides_what_it_has() {
    let after = version(vec![(1, record(1, &key(0), &key(KEYS)))]);
    let step = |buffer: CompactionBuffer, id| {
        buffer.behind(&TreeEdit::default(), (&after, &after), Some(&down(1, vec![over(id, 0, 5)], true)), 0)
    };
    let mut buffer = step(CompactionBuffer::default(), 1);
    buffer.list_mut(1).freeze();
    let buffer = step(buffer, 2);
    let list = buffer.list(1);
    assert_eq!((list.len(), list.about(b"03").count(), list.arrived_bytes()), (1, 0, 8192));
}

#[test]
fn a_level_to_which_something_came_meanwhile_does_not_go_down_as_a_whole() {
    let before = version(vec![(1, record(1, "a", "b"))]);
    let kept = down(1, vec![over(1, 0, 5)], true);
    let buffer = CompactionBuffer::cold(&Version::empty()).behind(
        &TreeEdit::default(),
        (&Version::empty(), &before),
        Some(&kept),
        1,
    );
    let whole = Descent { source: 1, is_whole: true, ..down(2, vec![over(1, 0, 5)], true) };
    for (left, there) in
        [(vec![(1, record(7, "x", "y"))], Vec::new()), (Vec::new(), vec![(2, record(7, "x", "y"))])]
    {
        let before = version([vec![(1, record(1, "a", "b"))], there.clone()].concat());
        let after = version([vec![(2, record(1, "a", "b"))], left.clone(), there.clone()].concat());
        let lists = buffer.behind(&TreeEdit::default(), (&before, &after), Some(&whole), 2);
        assert_eq!(lists.list(2).full(), None);
        assert!(lists.list(2).has(TableId(1)), "it came there all the same");
        assert!(
            left.is_empty() || lists.list(1).has(TableId(1)),
            "what the level has is not forgotten with its list"
        );
    }
}

#[test]
fn a_table_that_is_copied_elsewhere_gives_its_old_place_back() {
    let kept = record(1, &key(0), &key(5));
    let before = version(vec![(1, record(1000, &key(10), &key(KEYS))), (2, kept.clone())]);
    let (_, table) = before.table(kept.id).expect("it is there");
    let empty = TreeEdit::default();
    let descent = down(1, vec![Arc::clone(table)], true);
    let buffer = CompactionBuffer::default().behind(&empty, (&before, &before), Some(&descent), 0);
    let mut copy = kept.clone();
    copy.extent.offset += 1 << 20;
    let after = version(vec![(1, record(1000, &key(10), &key(KEYS))), (2, copy.clone())]);
    let edit = TreeEdit { drop: vec![(2, kept.id)], add: vec![(2, copy.clone())], ..TreeEdit::default() };
    let buffer = buffer.behind(&edit, (&before, &after), None, 0);
    let extents: Vec<_> = buffer.list(1).tables().map(|(table, _)| table.extent).collect();
    assert_eq!(extents, [copy.extent]);
    assert!(buffer.list(1).lacks().is_empty() && buffer.list(1).bytes() == table.bytes());
}
