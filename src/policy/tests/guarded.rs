//! Properties of the guarded layout and its picker.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::*;
use crate::catalog::{Lease, TableMeta, check_edit, check_version};
use crate::types::TableId;

/// Of three hundred keys some are guards of each level, and about half of the deepest.
const GUARDED: GuardedConfig =
    GuardedConfig { l0_trigger: 2, top_bits: 8, bits_step: 1, runs_max: 2, guard_bytes: 4 << 20 };

const KEYS: u64 = 300;
const KEY_BYTES: u64 = 32 << 10;
const LAST: u8 = LEVELS as u8 - 1;

fn key(number: u64) -> Vec<u8> {
    format!("{number:03}").into_bytes()
}

fn config(guarded: GuardedConfig) -> PolicyConfig {
    let mut config = PolicyConfig::leveldb_sized(1 << 20, 4 << 20);
    let (picker, Cutter::Size(size)) = (*config.picker_mut(), config.cutter) else { panic!("{config:?}") };
    config.layout = Layout::Guarded(guarded);
    config.picker = Picker::Guards(picker, guarded);
    config.cutter = Cutter::Guards(SizeConfig { grandparent_bytes_max: u64::MAX, ..size }, guarded);
    config
}

/// A tree with the counters of what comes next, and the jobs that run on it.
struct Growing {
    config: PolicyConfig,
    tree: Version,
    /// The keys of each table.
    keys: BTreeMap<TableId, BTreeSet<u64>>,
    epoch: u64,
    id: u64,
    busy: Claims,
    counts: Counts,
    /// Each with its epoch, and the guards of its target that were known when it began.
    running: Vec<(Plan, u64, Vec<Key>)>,
}

/// Numbers of jobs: beside others, in place, with inputs of the target.
#[derive(Default)]
struct Counts {
    beside: u32,
    in_place: u32,
    parted: u32,
}

impl Growing {
    fn new(config: PolicyConfig) -> Self {
        let (tree, busy) = (Version::empty(), Claims::default());
        Self {
            config,
            tree,
            keys: BTreeMap::new(),
            epoch: 0,
            id: 0,
            busy,
            counts: Counts::default(),
            running: Vec::new(),
        }
    }

    fn apply(&mut self, edit: &TreeEdit, why: &dyn std::fmt::Display) {
        check_edit(&self.tree, edit).unwrap_or_else(|error| panic!("{why}: {error} in {:?}", self.tree));
        self.tree = self.tree.apply(edit, &mut |_| Lease::none()).unwrap();
        check_version(&self.tree).unwrap_or_else(|error| panic!("{why}: {error}"));
    }

    fn table(&mut self, epoch: u64, keys: BTreeSet<u64>) -> TableRecord {
        self.id += 1;
        let ends = keys.first().zip(keys.last()).unwrap();
        let range = KeyRange::new(key(*ends.0), key(*ends.1));
        let table = super::table(self.id, epoch, range, keys.len() as u64 * KEY_BYTES);
        self.keys.insert(table.id, keys);
        table
    }

    fn flush(&mut self, dice: &mut Dice) {
        self.epoch += 1;
        let from = dice.below(KEYS);
        let keys = (from..KEYS).filter(|number| *number == from || dice.below(6) == 0).collect();
        let add = vec![(0, self.table(self.epoch, keys))];
        self.apply(&TreeEdit { add, ..TreeEdit::default() }, &"a flush");
    }

    /// Starts the next job, if there is one.
    fn start(&mut self) -> bool {
        let shape = self.config.layout.measure(&self.tree);
        let (version, busy) = (&self.tree, &self.busy);
        let view = TreeView::of(version, busy, &shape);
        let (space, load) = Default::default();
        let Some(plan) = next_plan(&[view], &space, &load, &self.config) else { return false };
        assert!(!self.busy.conflicts_with(&plan), "{plan}");
        let guards = GUARDED.guards(&self.tree).of_level(plan.target).into_iter().cloned().collect();
        self.busy.claim(&plan);
        self.epoch += 1;
        let from_target = plan.inputs.iter().any(|input| input.level == plan.target);
        self.counts.beside += u32::from(!self.running.is_empty());
        self.counts.in_place += u32::from(plan.source == plan.target);
        self.counts.parted += u32::from(plan.stacks && from_target);
        self.running.push((plan, self.epoch, guards));
        true
    }

    /// Ends a running job: outputs have the keys of the inputs, cut as the cutter says.
    fn end(&mut self, at: usize) {
        let (plan, epoch, guards) = self.running.remove(at);
        let inputs: Vec<Arc<TableMeta>> =
            plan.inputs.iter().map(|input| self.tree.table(input.table).unwrap().1.clone()).collect();
        let epoch = match plan.stacks {
            true => epoch,
            false => inputs.iter().map(|table| table.epoch.0).max().unwrap(),
        };
        let keys: BTreeSet<u64> = inputs.iter().flat_map(|table| &self.keys[&table.id]).copied().collect();
        let mut state = self.config.cutter.start_into(plan.target, Run::empty(), &plan.fences);
        let mut outputs: Vec<BTreeSet<u64>> = Vec::new();
        for number in keys {
            let output_bytes = outputs.last().map_or(0, |output| output.len() as u64 * KEY_BYTES);
            if state.cut(&CutView { output_bytes, next_key: &key(number) }) || outputs.is_empty() {
                outputs.push(BTreeSet::new());
            }
            outputs.last_mut().unwrap().insert(number);
        }
        let add = outputs.into_iter().map(|keys| (plan.target, self.table(epoch, keys))).collect();
        let drop = plan.inputs.iter().map(|input| (input.level, input.table)).collect();
        self.apply(&TreeEdit { add, drop, ..TreeEdit::default() }, &plan);
        self.busy.release(&plan);
        // Guards are in force where a job has been.
        let inside = |table: &TableMeta| {
            guards.iter().any(|guard| table.range.contains(guard) && *guard != table.range.start)
        };
        let is_added =
            |table: &&Arc<TableMeta>| table.epoch == Epoch(epoch) && plan.range.covers(&table.range);
        let added: Vec<_> = self.tree.level(plan.target).tables().filter(is_added).collect();
        let parted = added.iter().find(|table| inside(table));
        assert!(!added.is_empty() && parted.is_none(), "{plan}: a guard lies inside of {parted:?}");
    }
}

#[test]
fn i2_i3_i12_jobs_of_guards_are_closed_and_leave_no_level_due() {
    let (mut all, mut deepest) = (Counts::default(), 0);
    for seed in 0..40 {
        let mut dice = Dice(seed);
        let guard_bytes = [4 << 10, 64 << 10, 1 << 20][seed as usize % 3];
        let mut growing = Growing::new(config(GuardedConfig { guard_bytes, ..GUARDED }));
        for _ in 0..60 {
            growing.flush(&mut dice);
            while growing.running.len() < 3 && growing.start() {}
            while !growing.running.is_empty() && dice.below(4) > 0 {
                growing.end(dice.below(growing.running.len() as u64) as usize);
            }
        }
        for step in 0.. {
            assert!(step < 500, "seed {seed}: it does not end");
            while growing.start() {}
            if growing.running.is_empty() {
                break;
            }
            growing.end(0);
        }
        assert!(growing.busy.is_empty());
        let scores = growing.config.layout.scores(&growing.tree);
        assert!(scores.iter().all(|score| *score < 1.0), "seed {seed}: {scores:?} of {:?}", growing.tree);
        let Counts { beside, in_place, parted } = growing.counts;
        all.beside += beside;
        all.in_place += in_place;
        all.parted += parted;
        deepest += u32::from(growing.tree.deepest() == Some(LAST));
    }
    let Counts { beside, in_place, parted } = all;
    assert!(
        beside > 50 && in_place > 20 && parted > 20 && deepest > 5,
        "{beside} {in_place} {parted} {deepest}"
    );
}

/// A tree of the deepest level alone: runs from the oldest on, each over all keys, with so many bytes.
fn stacked(bytes: &[u64]) -> Version {
    let tables = (1..).zip(bytes).map(|(epoch, bytes)| {
        (LAST, super::table(epoch, epoch, KeyRange::new(key(0), key(KEYS - 1)), *bytes))
    });
    version(tables.collect())
}

/// The epochs of what is compacted next.
fn compacted(guarded: GuardedConfig, tree: &Version) -> Option<Vec<u64>> {
    let config = config(guarded);
    let (shape, busy) = (config.layout.measure(tree), Claims::default());
    let view = TreeView::of(tree, &busy, &shape);
    let plan = config.picker.pick(&view, LAST)?;
    assert!(plan.source == LAST && plan.target == LAST && !plan.stacks, "{plan}");
    Some(plan.inputs.iter().map(|input| tree.table(input.table).unwrap().1.epoch.0).collect())
}

#[test]
fn i3_a_large_run_is_left_out_in_place_only_if_it_is_the_oldest() {
    // No key but those of the tables' starts is asked for, and that is no guard.
    let guarded = GuardedConfig { top_bits: 40, ..GUARDED };
    assert_eq!(compacted(guarded, &stacked(&[9 << 20, 1 << 20])), None, "not due");
    assert_eq!(compacted(guarded, &stacked(&[9 << 20, 1 << 20, 1 << 20])).unwrap(), [3, 2]);
    assert_eq!(compacted(guarded, &stacked(&[1 << 20, 9 << 20, 1 << 20])).unwrap(), [3, 2, 1]);
    assert_eq!(compacted(guarded, &stacked(&[1 << 20, 1 << 20, 9 << 20])).unwrap(), [2, 1]);
    assert_eq!(compacted(guarded, &stacked(&[2 << 20, 2 << 20, 2 << 20])).unwrap(), [3, 2, 1]);
    let one = GuardedConfig { runs_max: 1, ..guarded };
    assert_eq!(
        compacted(one, &stacked(&[9 << 20, 1 << 20])).unwrap(),
        [2, 1],
        "one run alone would not be fewer"
    );
}

/// The least number from `from` on whose key is a guard of `level`, or is none of the deepest.
fn next(from: u64, level: Option<u8>) -> u64 {
    let suits = |number: &u64| match level {
        Some(level) => GUARDED.is_guard(&key(*number), level) && !GUARDED.is_guard(&key(*number), level - 1),
        None => !GUARDED.is_guard(&key(*number), LAST),
    };
    (from..KEYS).find(suits).unwrap()
}

#[test]
fn what_a_new_guard_parts_goes_down_with_the_others_and_whole() {
    // Tables of level 3 begin at no guard; one of level 4 at a guard of level 3, which so becomes known.
    let guard = next(100, Some(3));
    let plain = |from: u64| key(next(from, None));
    let (low, high) =
        (KeyRange::new(plain(10), plain(20)), KeyRange::new(plain(guard + 20), plain(guard + 30)));
    let over = KeyRange::new(plain(guard - 30), plain(guard + 10));
    let beneath = KeyRange::new(key(guard), plain(guard + 5));
    let level = 3;
    let tree = version(vec![
        (level, super::table(1, 1, low.clone(), 1 << 20)),
        (level, super::table(2, 2, over.clone(), 1 << 20)),
        (level, super::table(3, 3, high.clone(), 1 << 20)),
        (level + 1, super::table(4, 1, beneath, 1 << 20)),
    ]);
    let guards = GUARDED.guards(&tree);
    assert_eq!(guards.of_level(level), [&Key::from(key(guard))]);
    assert!(guards.of_level(level - 1).is_empty());
    let groups = GUARDED.groups(&tree, &guards, level);
    assert_eq!(groups.len(), 1, "the table over the guard holds both sides together");
    assert!(groups[0].is_straddled && groups[0].runs == 1 && groups[0].bytes == 3 << 20);
    let apart = tree
        .apply(&TreeEdit { drop: vec![(level, TableId(2))], ..TreeEdit::default() }, &mut |_| Lease::none());
    let apart = apart.unwrap();
    let ranges: Vec<_> =
        GUARDED.groups(&apart, &guards, level).into_iter().map(|group| group.range).collect();
    assert_eq!(ranges, [low, high]);
}

#[test]
fn outputs_are_cut_at_the_guards_of_their_level_alone() {
    let cutter = config(GUARDED).cutter;
    for level in 1..LEVELS as u8 {
        let mut state = cutter.start_into(level, Run::empty(), &[]);
        for number in 0..KEYS {
            let next_key = key(number);
            let is_cut = state.cut(&CutView { output_bytes: 1, next_key: &next_key });
            assert_eq!(is_cut, GUARDED.is_guard(&next_key, level));
        }
    }
    let guards: BTreeSet<u64> = (0..KEYS).filter(|number| GUARDED.is_guard(&key(*number), LAST)).collect();
    assert!((100..200).contains(&guards.len()));
}
