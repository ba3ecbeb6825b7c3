//! Levels of several runs, in layouts that are to have one: folds are bounded, and end.

use super::properties::{carried_out, check_step};
use super::*;
use crate::catalog::{Lease, check_version};
use crate::types::UpperBound;

/// What one job may take of a level; more only by what the two outermost tables overlap.
const GROUP_BYTES: u64 = 8 << 20;

const TABLE_BYTES: u64 = 1 << 20;

/// Levels 1 and 2 of so many runs each, with tables of a MiB, all of which hang together by their overlaps: in each run they
/// end at other keys.
fn staggered(runs: u64, tables: u64, dice: &mut Dice) -> Version {
    let mut records = Vec::new();
    let mut id = 0;
    for level in 1..=2 {
        for epoch in 1..=runs {
            let mut at = dice.below(50);
            for _ in 0..tables {
                let to = at + 60 + dice.below(40);
                let key = |n: u64| format!("{n:06}");
                let range = KeyRange::new(key(at).as_bytes(), key(to).as_bytes());
                id += 1;
                records.push((level, table(id, epoch, range, TABLE_BYTES)));
                at = to + 1;
            }
        }
    }
    version(records)
}

/// `edit` of a fold or a compaction, with outputs of a MiB where `carried_out` has one over the whole island.
fn cut(edit: TreeEdit, plan: &Plan, tree: &Version) -> TreeEdit {
    let is_old = |id: TableId| tree.table(id).is_some();
    let mut add = Vec::new();
    for (level, record) in edit.add {
        if is_old(record.id) {
            add.push((level, record));
            continue;
        }
        // Cut where inputs begin, so that no output is wider than the inputs are.
        let mut starts: Vec<Key> = (plan.inputs.iter())
            .map(|input| tree.table(input.table).unwrap().1.range.start.clone())
            .filter(|start| *start > record.range.start && record.range.contains(start))
            .collect();
        starts.sort_unstable();
        starts.dedup();
        let starts: Vec<Key> = starts.into_iter().skip(1).step_by(2).collect();
        let from = std::iter::once(record.range.start.clone()).chain(starts.iter().cloned());
        let ends = starts.iter().cloned().map(UpperBound::Excluded).chain([record.range.end.clone()]);
        for ((start, end), place) in from.zip(ends).zip(0..) {
            let range = KeyRange { start, end };
            add.push((level, table(100 * record.id.0 + place, record.epoch.0, range, TABLE_BYTES)));
        }
    }
    TreeEdit { add, ..edit }
}

/// Every leveled picker, with level 1 due or not.
fn configs() -> Vec<PolicyConfig> {
    let sized = |level1_bytes: u64| {
        let mut config = PolicyConfig::leveldb_sized(TABLE_BYTES, level1_bytes);
        config.picker_mut().group_bytes = GROUP_BYTES;
        config.picker_mut().settle = true;
        let picker = *config.picker_mut();
        let windows = WindowConfig { victims: picker, bytes_max: 16 << 20, oldest_runs: 2 };
        let pickers = [Picker::Cursor(picker), Picker::LeastOverlap(picker), Picker::RatioWindow(windows)];
        pickers.map(|picker| PolicyConfig { picker, ..config })
    };
    sized(20 << 20).into_iter().chain(sized(1 << 30)).collect()
}

#[test]
fn i11_a_level_of_staggered_runs_becomes_one_run_by_bounded_jobs() {
    let (mut folds, mut compactions) = (0, 0);
    for (seed, config) in (0..6).flat_map(|seed| configs().into_iter().map(move |config| (seed, config))) {
        let mut dice = Dice(seed);
        let (runs, tables) = (2 + dice.below(4), 100 + dice.below(40));
        let mut tree = staggered(runs, tables, &mut dice);
        check_version(&tree).unwrap();
        let level_bytes = tree.bytes(1);
        for step in 0.. {
            assert!(step < 3000, "seed {seed}: {tree:?}");
            let (busy, shape) = (Claims::default(), config.layout.measure(&tree));
            let view = TreeView::of(&tree, &busy, &shape);
            let load = LoadState::default();
            let Some(plan) = next_plan(&[view], &SpaceView::default(), &load, &config) else { break };
            // A group of victims, and in each run what they meet.
            let bytes_max = match plan.age {
                OutputAge::Oldest => GROUP_BYTES,
                OutputAge::Newest => 2 * runs * (GROUP_BYTES + 4 * TABLE_BYTES),
            };
            let inputs = plan.inputs.iter().map(|input| tree.table(input.table).unwrap().1.bytes());
            let bytes: u64 = inputs.sum();
            assert!(bytes <= bytes_max && bytes < level_bytes / 2, "seed {seed}: {plan}");
            *(if plan.age == OutputAge::Oldest { &mut folds } else { &mut compactions }) += 1;
            let edit = cut(carried_out(&plan, &tree, 1000 + step), &plan, &tree);
            check_step(&plan, &tree, &edit).unwrap_or_else(|error| panic!("seed {seed}: {plan}: {error}"));
            let upper = |tree: &Version| {
                let runs = &tree.level(plan.target).runs;
                runs[..runs.len().saturating_sub(1)].iter().map(Run::len).sum::<usize>()
            };
            let before = upper(&tree);
            tree = tree.apply(&edit, &mut |_| Lease::none()).unwrap();
            check_version(&tree).unwrap();
            if plan.age == OutputAge::Oldest {
                assert!(upper(&tree) < before, "seed {seed}: {plan} leaves as much on top: {tree:?}");
            }
        }
        assert!((1..8).all(|level| tree.level(level).depth() <= 1), "seed {seed}: {tree:?}");
    }
    assert!(folds > 1000 && compactions > 100, "{folds} folds, {compactions} compactions");
}

/// A compaction of level 0 waits for folds where it goes, and not for those of the whole level.
#[test]
fn i11_a_level_0_that_is_due_waits_for_the_folds_of_its_place() {
    let mut folded_in_all = 0;
    let of_sections = &configs()[3..5];
    for (seed, config) in (0..6).flat_map(|seed| of_sections.iter().map(move |config| (seed, config))) {
        let mut dice = Dice(200 + seed);
        let below = staggered(3, 120, &mut dice);
        let mut tables: Vec<_> = below.tables().map(|(level, table)| (level, table.record())).collect();
        for run in 0..4 {
            for n in 0..12 {
                let (from, to) = (800 * n, 800 * n + 700 + dice.below(99));
                let range = KeyRange::new(format!("{from:06}").as_bytes(), format!("{to:06}").as_bytes());
                tables.push((0, table(50_000 + 100 * run + n, 100 + run, range, TABLE_BYTES)));
            }
        }
        let mut tree = version(tables);
        let (level_bytes, mut folded) = (tree.bytes(1), 0);
        for step in 0.. {
            let (busy, shape) = (Claims::default(), config.layout.measure(&tree));
            let view = TreeView::of(&tree, &busy, &shape);
            let load = LoadState::default();
            let plan = next_plan(&[view], &SpaceView::default(), &load, config).unwrap();
            if plan.source == 0 {
                break;
            }
            assert_eq!((plan.source, plan.age), (1, OutputAge::Oldest), "seed {seed}: {plan}");
            // Pacers take it for a job of level 0, or that would wait for theirs.
            assert_eq!((JobClass::of(&plan), plan.reason), (JobClass::Level0, Reason::Level0Runs));
            folded += plan.bytes;
            assert!(folded < level_bytes / 3, "seed {seed}: {folded} of {level_bytes} bytes come first");
            let edit = cut(carried_out(&plan, &tree, 1000 + step), &plan, &tree);
            check_step(&plan, &tree, &edit).unwrap_or_else(|error| panic!("seed {seed}: {plan}: {error}"));
            tree = tree.apply(&edit, &mut |_| Lease::none()).unwrap();
        }
        folded_in_all += folded;
    }
    assert!(folded_in_all > 0);
}

/// A manual compaction of a part leaves one run there, and leaves alone what lies elsewhere.
#[test]
fn a_manual_compaction_folds_no_more_than_its_range() {
    for (seed, config) in (0..8).flat_map(|seed| configs().into_iter().map(move |config| (seed, config))) {
        let mut dice = Dice(100 + seed);
        let mut tree = staggered(3, 60, &mut dice);
        let (range, all) = (KeyRange::new(*b"001000", *b"001300"), tree.bytes(2));
        let mut written = 0;
        for step in 0.. {
            assert!(step < 200, "seed {seed}: {tree:?}");
            let (busy, shape) = (Claims::default(), config.layout.measure(&tree));
            let view = TreeView::of(&tree, &busy, &shape);
            let pick = match config.picker.pick_range(&view, 1, Some(&range)) {
                RangePick::Done => config.picker.pick_alone(&view, &range, |_| false),
                pick => pick,
            };
            let RangePick::Plan(plan) = pick else { break };
            assert_eq!(plan.reason, Reason::Manual);
            written += plan.bytes;
            let edit = cut(carried_out(&plan, &tree, 1000 + step), &plan, &tree);
            check_step(&plan, &tree, &edit).unwrap_or_else(|error| panic!("seed {seed}: {plan}: {error}"));
            tree = tree.apply(&edit, &mut |_| Lease::none()).unwrap();
        }
        let runs =
            |level| tree.level(level).runs.iter().filter(|run| run.overlapping(&range).next().is_some());
        assert_eq!((runs(1).count(), runs(2).count()), (0, 1), "seed {seed}");
        assert!(tree.level(1).depth() > 1 && written < all, "seed {seed}: {written} of {all}");
    }
}

/// A fold that fails is in nobody's way, unless a compaction needs it.
#[test]
fn i11_only_a_fold_that_nothing_waits_for_is_put_off() {
    for (config, is_due) in configs().into_iter().zip([true, true, true, false, false, false]) {
        let tree = staggered(3, 40, &mut Dice(1));
        let (busy, mut shape) = (Claims::default(), config.layout.measure(&tree));
        let mut next = |put_off| {
            shape.put_off = put_off;
            let view = TreeView::of(&tree, &busy, &shape);
            next_plan(&[view], &SpaceView::default(), &LoadState::default(), &config)
        };
        let (now, later) = (next(false).unwrap(), next(true));
        assert_eq!(now.age, OutputAge::Oldest, "{now}");
        if is_due {
            assert_eq!((JobClass::of(&now), now.reason), (JobClass::Deep, Reason::LevelBytes));
            assert_eq!(later, Some(now));
        } else {
            assert_eq!((JobClass::of(&now), now.reason), (JobClass::IntraLevel, Reason::Fold));
            assert_eq!(later, None);
        }
    }
}
