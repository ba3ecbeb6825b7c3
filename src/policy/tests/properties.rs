//! Properties of plans and verdicts over random trees.

use std::sync::Arc;

use super::*;
use crate::catalog::{Inconsistent, Lease, TableMeta, check_edit, check_merged, check_version};
use crate::types::{TableId, UpperBound};

/// A random tree of the letters: up to six runs in level 0, levels 1 to 3 cut at random.
fn random_tree(dice: &mut Dice) -> Version {
    random_tree_of(1, dice)
}

/// The same, but levels 1 to 3 have up to `runs` such runs, on top of each other.
pub(super) fn random_tree_of(runs: u64, dice: &mut Dice) -> Version {
    let mut tables = Vec::new();
    let mut id = 0;
    let key = |n: u64| format!("{n:03}");
    let mut fill = |level: u8, epoch: u64, widest: u64, dice: &mut Dice| {
        let mut at = dice.below(60);
        while at < 300 {
            let to = at + dice.below(widest);
            let range = KeyRange::new(key(at).as_bytes(), key(to).as_bytes());
            id += 1;
            tables.push((level, self::table(id, epoch, range, (1 + dice.below(4)) << 20)));
            at = to + 1 + dice.below(40);
        }
    };
    for epoch in 2..2 + dice.below(6) {
        fill(0, epoch, 90, dice);
    }
    for level in 1..4 {
        fill(level, 1, 60 / u64::from(level), dice);
        let more = if runs > 1 { dice.below(runs) } else { 0 };
        for epoch in 2..2 + more {
            fill(level, epoch, 60 / u64::from(level), dice);
        }
    }
    version(tables)
}

/// All that an install checks of the edit of `plan`.
pub(super) fn check_step(plan: &Plan, tree: &Version, edit: &TreeEdit) -> Result<(), Inconsistent> {
    check_edit(tree, edit)?;
    if plan.stacks { Ok(()) } else { check_merged(tree, edit) }
}

/// LevelDB's picker, the default one, the scattered one with and without settling, and windows, single ones and groups, for
/// small trees; limits that follow the tree; and a level 0 as wide as a mix asks for.
fn configs() -> [PolicyConfig; 8] {
    let leveldb = PolicyConfig::leveldb_sized(1 << 20, 4 << 20);
    let with = |settle, least| {
        let mut config = leveldb;
        let picker = PickerConfig { group_bytes: 10 << 20, group_parts: 3, settle, ..*config.picker_mut() };
        config.picker = if least { Picker::LeastOverlap(picker) } else { Picker::Cursor(picker) };
        config
    };
    let windows = |mut config: PolicyConfig| {
        let victims = *config.picker_mut();
        config.picker = Picker::RatioWindow(WindowConfig { victims, bytes_max: 30 << 20, oldest_runs: 3 });
        config
    };
    let mut even = with(true, false);
    let Layout::Leveled(layout) = &mut even.layout else { panic!("a leveled tree") };
    layout.ratio = None;
    let mut wide = even;
    wide.let_level_0_follow_the_mix();
    [
        leveldb,
        with(true, false),
        with(true, true),
        with(false, true),
        windows(leveldb),
        windows(with(false, false)),
        even,
        wide,
    ]
}

/// The hulls of what `plan` compactions between one fence and the next, with their bytes.
fn islands(plan: &Plan, tree: &Version) -> Vec<(KeyRange, u64)> {
    let mut inputs: Vec<_> = plan.inputs.iter().map(|input| tree.table(input.table).unwrap().1).collect();
    inputs.sort_by(|one, other| one.range.start.cmp(&other.range.start));
    let part = |table: &TableMeta| plan.fences.partition_point(|fence| *fence <= table.range.start);
    let parts = inputs.chunk_by(|one, other| part(one) == part(other));
    let hull = |part: &[&Arc<TableMeta>]| {
        let range = part.iter().map(|table| table.range.clone()).reduce(|hull, range| hull.hull(&range));
        (range.unwrap(), part.iter().map(|table| table.bytes()).sum::<u64>())
    };
    parts.map(hull).collect()
}

/// The outputs of an intra-L0 compaction: one between each two fences, with all that it may have of the inputs there.
fn compacted_in_l0(plan: &Plan, tree: &Version, id: u64) -> Vec<(u8, TableRecord)> {
    let inputs: Vec<_> = plan.inputs.iter().map(|input| tree.table(input.table).unwrap().1).collect();
    let epoch = inputs.iter().map(|table| table.epoch.0).max().unwrap();
    let starts = std::iter::once(Key::default()).chain(plan.fences.iter().cloned());
    let ends = plan.fences.iter().cloned().map(UpperBound::Excluded).chain([UpperBound::Unbounded]);
    let outputs = starts.zip(ends).zip(1000 * id..).filter_map(|((start, end), id)| {
        let part = KeyRange { start, end };
        let here: Vec<_> = inputs.iter().filter(|table| table.range.overlaps(&part)).collect();
        let range = here.iter().map(|table| table.range.clone()).reduce(|hull, range| hull.hull(&range))?;
        let mut output = table(id, epoch, range.intersection(&part).unwrap(), 1 << 20);
        output.min_seq = here.iter().map(|table| table.min_seq).min().unwrap();
        output.max_seq = here.iter().map(|table| table.max_seq).max().unwrap();
        Some((0, output))
    });
    outputs.collect()
}

/// Any two and more neighbouring runs of level 0.
fn random_window(tree: &Version, dice: &mut Dice) -> std::ops::Range<usize> {
    let from = dice.below(5) as usize;
    from..(from + 2 + dice.below(5) as usize).min(tree.level(0).runs.len()).max(from)
}

/// New epochs for what `plan` puts on top of its target, by the old ones; none if it merges. Outputs come after what
/// moves.
fn new_epochs(plan: &Plan, tree: &Version, id: u64) -> BTreeMap<(u64, bool), u64> {
    let epoch = |id: TableId| tree.table(id).unwrap().1.epoch.0;
    let mut ages: BTreeMap<(u64, bool), u64> = BTreeMap::new();
    if plan.stacks {
        ages.extend(plan.moves.iter().map(|id| ((epoch(*id), false), 0)));
        ages.extend(
            plan.inputs.iter().map(|input| epoch(input.table)).max().map(|newest| ((newest, true), 0)),
        );
    }
    ages.values_mut().zip(1_000_000 * (1 + id)..).for_each(|(epoch, new)| *epoch = new);
    ages
}

/// The edit that carries `plan` out: an output over each island, as wide as any can be; moves as they are.
pub(super) fn carried_out(plan: &Plan, tree: &Version, id: u64) -> TreeEdit {
    let drop: Vec<_> = (plan.inputs.iter().map(|input| (input.level, input.table)))
        .chain(plan.moves.iter().map(|id| (plan.source, *id)))
        .collect();
    let epochs = new_epochs(plan, tree, id);
    let moved = plan.moves.iter().map(|id| {
        let record = tree.table(*id).unwrap().1.record();
        let epoch = epochs.get(&(record.epoch.0, false)).map_or(record.epoch, |new| Epoch(*new));
        (plan.target, TableRecord { epoch, ..record })
    });
    let compacted: Vec<_> = if plan.target == 0 {
        compacted_in_l0(plan, tree, id)
    } else {
        let ages = plan.inputs.iter().map(|input| tree.table(input.table).unwrap().1.epoch.0);
        let age = match plan.age {
            OutputAge::Newest => ages.max(),
            OutputAge::Oldest => ages.min(),
        };
        let epoch = age.map_or(0, |age| epochs.get(&(age, true)).copied().unwrap_or(age));
        let outputs = islands(plan, tree).into_iter().zip(1000 * id..).map(|((range, bytes), id)| {
            assert_eq!(plan.claims.iter().filter(|claim| claim.covers(&range)).count(), 1, "{plan}");
            (plan.target, table(id, epoch, range, bytes.min(5 << 20)))
        });
        outputs.collect()
    };
    let cursors = plan.cursor.iter().map(|key| (plan.source, key.clone())).collect();
    TreeEdit { drop, add: moved.chain(compacted).collect(), cursors, ..TreeEdit::default() }
}

#[test]
fn i2_i12_every_plan_is_closed_and_apart_from_running_jobs() {
    for mut config in configs() {
        let Counts { plans, beside, mixed, intra_l0 } = plans_beside_each_other(&config, random_tree);
        assert!(plans > 300 && beside > 100, "{config:?}: {plans} plans, {beside} beside others");
        let PickerConfig { settle, group_bytes, .. } = *config.picker_mut();
        assert_eq!(intra_l0 > 50, group_bytes > 0, "{config:?}: {intra_l0} intra-L0 compactions");
        assert_eq!(mixed > 30, settle, "{config:?}: {mixed} mixed plans");
    }
}

/// A store of another layout has several runs in a level. One run is put on no level that has one, and the others go.
#[test]
fn i2_i12_plans_over_levels_of_several_runs_put_nothing_on_top() {
    for mut config in configs() {
        let several = |dice: &mut Dice| random_tree_of(4, dice);
        let Counts { plans, beside, .. } = plans_beside_each_other(&config, several);
        assert!(plans > 300 && beside > 50, "{config:?}: {plans} plans, {beside} beside others");
        config.picker_mut().group_bytes = config.picker_mut().group_bytes.max(1 << 20);
        for seed in 0..40 {
            let mut tree = random_tree_of(4, &mut Dice(seed));
            for step in 0.. {
                assert!(step < 500, "seed {seed}: {tree:?}");
                let (busy, shape) = (Claims::default(), config.layout.measure(&tree));
                let view = TreeView::of(&tree, &busy, &shape);
                let load = LoadState::default();
                let Some(plan) = next_plan(&[view], &SpaceView::default(), &load, &config) else { break };
                let edit = carried_out(&plan, &tree, 1000 + step);
                check_step(&plan, &tree, &edit)
                    .unwrap_or_else(|error| panic!("seed {seed}: {plan}: {error}"));
                let depth = |tree: &Version| tree.level(plan.target).depth();
                let before = if plan.target > 0 { depth(&tree).max(1) } else { usize::MAX };
                tree = tree.apply(&edit, &mut |_| Lease::none()).unwrap();
                check_version(&tree).unwrap();
                assert!(depth(&tree) <= before, "seed {seed}: {plan} gives its target another run: {tree:?}");
            }
            assert!(config.layout.scores(&tree).iter().all(|score| *score < 1.0));
        }
    }
}

/// A manual compaction leaves one run, in the deepest level.
#[test]
fn a_manual_compaction_merges_whatever_runs_there_are() {
    for (seed, config) in (0..40).flat_map(|seed| configs().map(|config| (seed, config))) {
        let mut tree = random_tree_of(4, &mut Dice(seed));
        let (range, mut ids) = (KeyRange::new(*b"100", *b"200"), 0);
        let mut carry_out = |tree: &mut Version, plan: &Plan| {
            ids += 1;
            let edit = carried_out(plan, tree, ids);
            check_step(plan, tree, &edit).unwrap_or_else(|error| panic!("seed {seed}: {plan}: {error}"));
            *tree = tree.apply(&edit, &mut |_| Lease::none()).unwrap();
            assert!(ids < 200);
        };
        for level in 0..3 {
            let mut rest = Some(range.clone());
            while let Some(range) = rest.take() {
                let (busy, shape) = Default::default();
                let view = TreeView::of(&tree, &busy, &shape);
                let pick = config.picker.pick_range(&view, level, Some(&range));
                let RangePick::Plan(plan) = pick else { break };
                // Below level 0, the caller goes on behind what was taken.
                let taken = plan.inputs.iter().filter(|input| input.level == level);
                let end = taken.map(|input| tree.table(input.table).unwrap().1.range.end.clone()).max();
                carry_out(&mut tree, &plan);
                rest = match end {
                    Some(UpperBound::Excluded(start)) if level > 0 && plan.age == OutputAge::Newest => {
                        Some(KeyRange { start, end: range.end })
                    }
                    _ => Some(range),
                };
                rest = rest.filter(|range| !range.is_inverted());
            }
            assert!(!tree.level(level).tables().any(|table| table.range.overlaps(&range)), "seed {seed}");
        }
        loop {
            let (busy, shape) = Default::default();
            let view = TreeView::of(&tree, &busy, &shape);
            match config.picker.pick_alone(&view, &range, |_| false) {
                RangePick::Plan(plan) => carry_out(&mut tree, &plan),
                RangePick::Done => break,
                RangePick::Busy => panic!("nothing runs"),
            }
        }
        let runs = tree.level(3).runs.iter().filter(|run| run.overlapping(&range).next().is_some());
        assert!(runs.count() <= 1, "seed {seed}: {tree:?}");
    }
}

/// Numbers of plans, of those beside running jobs, of those that both compaction and move, and of intra-L0 compactions.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) plans: u32,
    pub(super) beside: u32,
    mixed: u32,
    intra_l0: u32,
}

pub(super) fn plans_beside_each_other(
    config: &PolicyConfig,
    random_tree: impl Fn(&mut Dice) -> Version,
) -> Counts {
    let mut counts = Counts::default();
    for seed in 0..200 {
        let mut dice = Dice(seed);
        let tree = random_tree(&mut dice);
        check_version(&tree).unwrap();
        let shape = config.layout.measure(&tree);
        let mut busy = Claims::default();
        let mut running: Vec<Plan> = Vec::new();
        loop {
            let view = TreeView::of(&tree, &busy, &shape);
            let window = random_window(&tree, &mut dice);
            let fold =
                if dice.below(3) == 0 { config.picker.intra_l0(&view, &window, Evenness::Any) } else { None };
            let next = || next_plan(&[view], &SpaceView::default(), &LoadState::default(), config);
            let Some(plan) = fold.or_else(next) else { break };
            let edit = carried_out(&plan, &tree, 900);
            check_step(&plan, &tree, &edit).unwrap_or_else(|error| panic!("seed {seed}: {plan}: {error}"));
            let bytes: u64 = edit.drop.iter().map(|(_, id)| tree.table(*id).unwrap().1.bytes()).sum();
            assert_eq!(plan.bytes, bytes);
            assert!(!busy.conflicts_with(&plan), "seed {seed}: {plan}");
            busy.claim(&plan);
            counts.beside += u32::from(!running.is_empty());
            counts.mixed += u32::from(!plan.moves.is_empty() && !plan.inputs.is_empty());
            counts.intra_l0 += u32::from(plan.target == 0);
            counts.plans += 1;
            running.push(plan);
        }
        // The jobs end in another order than they began; each step is valid on what the others left.
        let mut now = tree.clone();
        while !running.is_empty() {
            let plan = running.remove(dice.below(running.len() as u64) as usize);
            let edit = carried_out(&plan, &now, 1000 + running.len() as u64);
            check_step(&plan, &now, &edit).unwrap_or_else(|error| panic!("seed {seed}: {plan}: {error}"));
            now = now.apply(&edit, &mut |_| Lease::none()).unwrap();
            check_version(&now).unwrap();
            busy.release(&plan);
        }
        assert!(busy.is_empty());
    }
    counts
}

/// A picker of groups, with intra-L0 compactions.
fn with_intra_l0() -> PolicyConfig {
    let mut config = PolicyConfig::leveldb_sized(1 << 20, 4 << 20);
    config.picker_mut().group_bytes = 16 << 20;
    let Layout::Leveled(layout) = &mut config.layout else { panic!("a leveled tree") };
    layout.ratio = None;
    config
}

#[test]
fn what_idle_time_does_ends_and_writes_no_byte_more_than_some_times_over() {
    let config = with_intra_l0();
    let (mut compacted_in_l0, mut compacted) = (0, 0);
    for seed in 0..100 {
        let tree = random_tree(&mut Dice(seed));
        // For half of them, so much lies below that little of level 0 is dense.
        let heavier = |(level, table): (u8, &Arc<TableMeta>)| {
            let times = if seed % 2 == 1 && level == 1 { 64 } else { 1 };
            let extent = Extent { length: times * table.bytes(), ..table.extent };
            (level, TableRecord { extent, ..table.record() })
        };
        let mut tree = version(tree.tables().map(heavier).collect());
        let bytes = tree.level(0).bytes();
        let mut written = 0;
        for step in 0.. {
            let shape = TreeShape { idle: true, ..TreeShape::default() };
            let busy = Claims::default();
            let view = TreeView::of(&tree, &busy, &shape);
            let Some(plan) = next_plan(&[view], &SpaceView::default(), &LoadState::default(), &config) else {
                break;
            };
            assert!(plan.source == 0 && step < 200, "seed {seed}: {plan}");
            if plan.target == 0 {
                written += plan.bytes;
                compacted_in_l0 += 1;
            } else {
                let taken = plan.inputs.iter().filter(|input| input.level == 0).map(|input| input.table);
                let taken = taken.chain(plan.moves.iter().copied());
                let taken: u64 = taken.map(|id| tree.table(id).unwrap().1.bytes()).sum();
                assert!(
                    plan.bytes <= (config.layout.idle_parts().unwrap() + 1) * taken,
                    "seed {seed}: {plan}"
                );
                compacted += 1;
            }
            let edit = carried_out(&plan, &tree, 1000 + step);
            check_step(&plan, &tree, &edit).unwrap_or_else(|error| panic!("seed {seed}: {plan}: {error}"));
            tree = tree.apply(&edit, &mut |_| Lease::none()).unwrap();
            check_version(&tree).unwrap();
        }
        assert!(written <= 2 * bytes, "seed {seed}: {written} written of {bytes}");
    }
    let given = PolicyConfig::leveldb_sized(1 << 20, 4 << 20);
    let (tree, busy) = (random_tree(&mut Dice(0)), Claims::default());
    let shape = TreeShape { idle: true, ..TreeShape::default() };
    let view = TreeView::of(&tree, &busy, &shape);
    let plan = next_plan(&[view], &SpaceView::default(), &LoadState::default(), &given);
    assert_eq!(plan, None, "with a given ratio idle time is used for nothing");
    assert!(
        compacted_in_l0 >= 10 && compacted > 100,
        "{compacted_in_l0} intra-L0 compactions, {compacted} compactions"
    );
}

#[test]
fn read_triggered_intra_l0_compactions_leave_no_key_in_two_runs_of_a_window() {
    let config = with_intra_l0();
    let mut fewer = 0;
    for seed in 0..100 {
        let mut tree = random_tree(&mut Dice(seed));
        let runs = tree.level(0).runs.len();
        for step in 0.. {
            let shape = TreeShape { read_debt_bytes: u64::MAX, ..TreeShape::default() };
            let busy = Claims::default();
            let view = TreeView::of(&tree, &busy, &shape);
            let Some(plan) = next_plan(&[view], &SpaceView::default(), &LoadState::default(), &config) else {
                break;
            };
            assert!(plan.source == 0 && plan.target == 0 && step < 100, "seed {seed}: {plan}");
            let edit = carried_out(&plan, &tree, 1000 + step);
            check_step(&plan, &tree, &edit).unwrap_or_else(|error| panic!("seed {seed}: {plan}: {error}"));
            tree = tree.apply(&edit, &mut |_| Lease::none()).unwrap();
            check_version(&tree).unwrap();
        }
        let left = &tree.level(0).runs;
        fewer += u32::from(left.len() < runs);
        for (window, _) in config.layout.intra_l0(&tree, u64::MAX, &Costs::TUNED) {
            for (at, run) in left[window.clone()].iter().enumerate() {
                let older = &left[window.clone()][at + 1..];
                let met =
                    run.iter().filter(|table| older.iter().any(|run| run.overlap_bytes(&table.range) > 0));
                assert_eq!(met.count(), 0, "seed {seed}: {left:?}");
            }
        }
    }
    assert!(fewer > 60, "{fewer} of 100 trees have fewer runs");
}

/// What an older intra-L0 compaction has left behind lies below tables that hold much older entries elsewhere.
#[test]
fn i3_holds_whatever_intra_l0_compactions_come_between_flushes_and_compactions() {
    let (mut config, mut fenced, mut intra_l0) = (with_intra_l0(), 0, 0);
    config.picker_mut().group_bytes = 3 << 20;
    for seed in 0..150 {
        let mut dice = Dice(seed);
        let mut tree = random_tree(&mut dice);
        for step in 0..40 {
            let (busy, shape) = Default::default();
            let view = TreeView::of(&tree, &busy, &shape);
            let window = random_window(&tree, &mut dice);
            let plan = match dice.below(8) {
                0 => None,
                1 => config.picker.pick(&view, 0),
                _ => config.picker.intra_l0(&view, &window, Evenness::Any),
            };
            let edit = match &plan {
                Some(plan) => {
                    // Beside those between two overlap clusters.
                    let inside = |fence: &&Key| {
                        let inputs =
                            plan.inputs.iter().map(|input| &tree.table(input.table).unwrap().1.range);
                        let (start, end) = (&fence[..], UpperBound::Excluded((*fence).clone()));
                        inputs.clone().any(|range| *range.start < *start && range.end > end)
                    };
                    fenced += u32::from(plan.target == 0 && plan.fences.iter().any(|fence| inside(&fence)));
                    intra_l0 += u32::from(plan.target == 0);
                    carried_out(plan, &tree, 1000 + step)
                }
                None => {
                    let mut at = dice.below(100);
                    let mut flush = TreeEdit::default();
                    while at < 300 {
                        let to = at + dice.below(90);
                        let range =
                            KeyRange::new(format!("{at:03}").as_bytes(), format!("{to:03}").as_bytes());
                        flush.add.push((0, table(900_000 + 1000 * step + at, 100 + step, range, 1 << 20)));
                        at = to + 1 + dice.below(60);
                    }
                    flush
                }
            };
            let fails = |error| panic!("seed {seed}, {step}: {plan:?}: {error} in {tree:?}");
            check_edit(&tree, &edit).unwrap_or_else(fails);
            let next = tree.apply(&edit, &mut |_| Lease::none()).unwrap();
            check_version(&next).unwrap_or_else(fails);
            tree = next;
        }
    }
    assert!(intra_l0 > 1000 && fenced > 100, "{intra_l0} intra-L0 compactions, {fenced} with fences");
}

#[test]
fn i2_a_manual_compaction_empties_the_range_step_by_step() {
    for (seed, config) in (0..60).flat_map(|seed| configs().map(|config| (seed, config))) {
        let mut dice = Dice(seed);
        let mut tree = random_tree(&mut dice);
        let range = KeyRange::new(*b"100", *b"200");
        for level in 0..3 {
            let mut steps = 0;
            loop {
                let (busy, shape) = Default::default();
                let view = TreeView::of(&tree, &busy, &shape);
                let plan = match config.picker.pick_range(&view, level, Some(&range)) {
                    RangePick::Plan(plan) => plan,
                    RangePick::Done => break,
                    RangePick::Busy => panic!("nothing runs"),
                };
                steps += 1;
                assert!(plan.moves.is_empty());
                let edit = carried_out(&plan, &tree, 1000 * u64::from(level + 1) + steps);
                check_step(&plan, &tree, &edit)
                    .unwrap_or_else(|error| panic!("seed {seed}: {plan}: {error}"));
                tree = tree.apply(&edit, &mut |_| Lease::none()).unwrap();
                assert!(steps < 100);
            }
            assert!(!tree.level(level).tables().any(|table| table.range.overlaps(&range)));
        }
    }
}

#[test]
fn repeated_plans_bring_every_level_below_its_limit() {
    for (seed, config) in (0..60).flat_map(|seed| configs().map(|config| (seed, config))) {
        let mut tree = random_tree(&mut Dice(seed));
        let mut compacted_bytes = 0;
        let debt = config.layout.debt(&tree);
        let mut only_runs_due = false;
        for step in 0.. {
            assert!(step < 500, "seed {seed}: {tree:?}");
            let (busy, shape) = (Claims::default(), config.layout.measure(&tree));
            only_runs_due |= shape.only_runs_due;
            let view = TreeView::of(&tree, &busy, &shape);
            let Some(plan) = next_plan(&[view], &SpaceView::default(), &LoadState::default(), &config) else {
                break;
            };
            compacted_bytes += if plan.inputs.is_empty() { 0 } else { plan.bytes };
            let edit = carried_out(&plan, &tree, 1000 + step);
            tree = tree.apply(&edit, &mut |_| Lease::none()).unwrap();
        }
        assert!(config.layout.scores(&tree).iter().all(|score| *score < 1.0));
        assert_eq!(config.layout.debt(&tree), 0);
        // Where runs alone are due, to make fewer of them within level 0 is no debt. A wide level 0 may get below its limit by
        // moves, which count as debt.
        assert!(only_runs_due || debt > 0 || compacted_bytes == 0, "seed {seed}: there is work without debt");
        assert!(
            config.layout.follows_mix() || (debt == 0) == (compacted_bytes == 0),
            "seed {seed}: there is debt exactly while there is work"
        );
    }
}

/// Higher is freer.
fn freedom(verdict: WriterVerdict) -> u64 {
    match verdict {
        WriterVerdict::Go => u64::MAX,
        WriterVerdict::Delay { slowdown: Slowdown::BytesPerSecond(rate), .. } => rate,
        WriterVerdict::Delay { slowdown: Slowdown::PerWrite(_), .. } => panic!("a governor slows to a rate"),
        WriterVerdict::Stop { .. } => 0,
    }
}

#[test]
fn i11_verdicts_are_monotone_and_stop_only_at_hard_limits() {
    let config = PolicyConfig::leveldb();
    let Pacer::Governor(governor) = config.pacer else { panic!("LevelDB's") };
    for seed in 0..20_000 {
        let mut dice = Dice(seed);
        let load = LoadState {
            active_bytes: dice.below(5 << 20),
            active_bytes_max: 4 << 20,
            sealed_memtables: dice.below(3),
            l0_runs: dice.below(15),
            l0_run_bytes: [None, Some(1 << 20), Some(dice.below(8 << 20))][dice.below(3) as usize],
            debt_bytes: dice.below(300 << 30),
            flush_bytes_per_second: [0, dice.below(1 << 30)][dice.below(2) as usize],
            compaction_bytes_per_second: [0, dice.below(1 << 30)][dice.below(2) as usize],
            ..LoadState::default()
        };
        let verdict = config.pacer.writer(&load);
        let hard = load.l0_runs >= governor.l0_stop
            || load.debt_bytes >= governor.debt_stop_bytes
            || load.sealed_memtables >= governor.sealed_memtables_max
                && load.active_bytes >= load.active_bytes_max;
        assert_eq!(matches!(verdict, WriterVerdict::Stop { .. }), hard, "{load:?}");
        assert!(hard || freedom(verdict) >= governor.floor_bytes_per_second);
        let more = 1 + dice.below(1 << 20);
        for worse in [
            LoadState { active_bytes: load.active_bytes + more, ..load },
            LoadState { sealed_memtables: load.sealed_memtables + 1, ..load },
            LoadState { l0_runs: load.l0_runs + 1, ..load },
            LoadState { debt_bytes: load.debt_bytes + (more << 12), ..load },
        ] {
            assert!(freedom(config.pacer.writer(&worse)) <= freedom(verdict), "{load:?} {worse:?}");
        }
    }
}

#[test]
fn a_level_0_that_waits_is_not_held_up_by_the_next_job_of_level_1() {
    let mut case = Case::default();
    for epoch in ["e5", "e6", "e7", "e8", "e9", "e10", "e11", "e12"] {
        case.add_level(0, &[epoch, "a-z:1M"]);
    }
    case.add_level(1, &["a-c:6M", "d-f:6M", "g-i:6M"]);
    let tree = case.version();
    let shape = case.config.layout.measure(&tree);
    let mut busy = Claims::default();
    let pick = |busy: &Claims| {
        let view = TreeView::of(&tree, busy, &shape);
        next_plan(&[view], &SpaceView::default(), &LoadState::default(), &case.config)
    };
    assert_eq!(pick(&busy).unwrap().source, 0);
    let running = claim_of(1, parse_range("a-c"));
    busy.claim(&running);
    assert_eq!(pick(&busy), None);
    busy.release(&running);
    assert_eq!(pick(&busy).unwrap().source, 0);
}

#[test]
fn the_keyspace_under_most_pressure_comes_first() {
    let tree = |runs: u64, level1: &str| {
        let mut case = Case::default();
        (0..runs).for_each(|run| case.add_level(0, &[&format!("e{}", run + 2), "a-c:1M"]));
        case.add_level(1, &[level1]);
        let version = case.version();
        (case.config.layout.measure(&version), version)
    };
    // (runs of level 0, size of level 1); what is picked: keyspace and level.
    let cases: [(&[(u64, &str)], _); 4] = [
        (&[(4, "a-c:9M"), (5, "a-c:9M")], Some((1, 0))),
        (&[(4, "a-c:25M"), (5, "a-c:12M")], Some((0, 1))),
        (&[(4, "a-c:90M"), (8, "a-c:9M")], Some((1, 0))),
        (&[(3, "a-c:9M"), (3, "a-c:9M")], None),
    ];
    for (trees, expected) in cases {
        let trees: Vec<_> = trees.iter().map(|(runs, level1)| tree(*runs, level1)).collect();
        let busy = Claims::default();
        let views: Vec<_> = (0..)
            .zip(&trees)
            .map(|(id, (shape, version))| TreeView {
                keyspace: KeyspaceId(id),
                version,
                busy: &busy,
                shape,
                pins: &[],
                deletes: &[],
                collection: None,
            })
            .collect();
        let plan = next_plan(&views, &SpaceView::default(), &LoadState::default(), &PolicyConfig::leveldb());
        assert_eq!(plan.map(|plan| (plan.keyspace.0, plan.source)), expected);
    }
}

#[test]
fn outputs_cover_every_entry_and_stay_within_the_limits() {
    for seed in 0..50 {
        let mut dice = Dice(seed);
        let tree = random_tree(&mut dice);
        let run = tree.level(2).largest().cloned().unwrap_or_default();
        let cutter = Cutter::Size(SizeConfig {
            table_bytes: 4000,
            grandparent_bytes_max: 5 << 20,
            cuts_flushes: true,
        });
        let mut state = cutter.start(run.clone(), &[]);
        let (mut output_bytes, mut first) = (0, String::new());
        let mut last = String::new();
        for n in 0..300u64 {
            let key = format!("{n:03}");
            if state.cut(&CutView { output_bytes, next_key: key.as_bytes() }) {
                let spanned = run.overlap_bytes(&KeyRange::new(first.as_bytes(), last.as_bytes()));
                // What the first and the last key lie in counts on top of what is passed in between.
                assert!(spanned <= (5 << 20) + (8 << 20), "seed {seed}: {spanned}");
                output_bytes = 0;
            }
            if output_bytes == 0 {
                first = key.clone();
            }
            output_bytes += 1 + dice.below(1000);
            assert!(output_bytes < 5000);
            last = key;
        }
    }
}

#[test]
fn the_dropping_retainer_has_one_answer() {
    let config = PolicyConfig::leveldb();
    let plan = claim_of(1, parse_range("a-c"));
    assert!(!config.retainer.keeps(&plan));
}

/// Tables of about 1 MiB side by side over all keys up to 1,000,000, cut unevenly.
fn cut_up(megabytes: u64, epoch: u64, ids: &mut u64, dice: &mut Dice) -> Vec<TableRecord> {
    let step = 1_000_000 / megabytes;
    let mut from = 0;
    (1..=megabytes)
        .map(|n| {
            *ids += 1;
            let to = if n == megabytes { 1_000_000 } else { (n - 1) * step + dice.below(step) };
            let key = |n: u64| format!("{n:07}").into_bytes();
            let range = KeyRange::half_open(key(from), UpperBound::Excluded(key(to.max(from + 1)).into()));
            from = to.max(from + 1);
            table(*ids, epoch, range, 1 << 20)
        })
        .collect()
}

/// One round of compactions in sections leaves of level 0 at most the ends of newer runs, where the oldest one is through before
/// them, though none takes the half of it and of level 1.
#[test]
fn a_round_of_sections_goes_through_level_0() {
    let mut config = PolicyConfig::leveldb_sized(1 << 20, 1 << 40);
    config.picker_mut().group_bytes = 8 << 20;
    for seed in 0..20 {
        config.picker_mut().settle = seed % 2 == 1;
        let (mut dice, mut ids) = (Dice(seed), 1);
        let mut tables: Vec<_> =
            cut_up(200, 1, &mut ids, &mut dice).into_iter().map(|table| (1, table)).collect();
        for epoch in 2..6 {
            tables.extend(cut_up(40, epoch, &mut ids, &mut dice).into_iter().map(|table| (0, table)));
        }
        let mut tree = version(tables);
        let (all, mut jobs) = (tree.bytes(0) + tree.bytes(1), 0);
        loop {
            let (busy, shape) = (Claims::default(), config.layout.measure(&tree));
            let view = TreeView::of(&tree, &busy, &shape);
            let Some(plan) = next_plan(&[view], &SpaceView::default(), &LoadState::default(), &config) else {
                break;
            };
            assert!(plan.bytes < all / 2, "seed {seed}: {} of {all} bytes in one job", plan.bytes);
            ids += 1;
            let edit = carried_out(&plan, &tree, ids);
            check_edit(&tree, &edit).unwrap();
            tree = tree.apply(&edit, &mut |_| Lease::none()).unwrap();
            jobs += 1;
        }
        assert!(
            jobs >= 3 && tree.bytes(0) <= 8 << 20,
            "seed {seed}: {} bytes after {jobs} jobs",
            tree.bytes(0)
        );
    }
}

/// However the tables of a level come and go, none is passed over for more than eight rounds of its level.
#[test]
fn a_table_over_a_dense_part_of_the_target_has_its_turn() {
    let mut config = PolicyConfig::leveldb_sized(1 << 20, 4 << 20);
    config.picker_mut().group_bytes = 10 << 20;
    config.picker = Picker::LeastOverlap(*config.picker_mut());
    for seed in 0..20 {
        let (mut dice, mut ids) = (Dice(seed), 0);
        let upper = cut_up(60, 1, &mut ids, &mut dice).into_iter().map(|table| (1, table));
        let lower = cut_up(600, 1, &mut ids, &mut dice).into_iter().map(|table| (2, table));
        let mut tree = version(upper.chain(lower).collect());
        let old: Vec<TableId> = tree.level(1).tables().map(|table| table.id).collect();
        let level_bytes = tree.bytes(1);
        let mut compacted_bytes = 0;
        while old.iter().any(|id| tree.table(*id).is_some_and(|(level, _)| level == 1)) {
            let (busy, shape) = (Claims::default(), config.layout.measure(&tree));
            let view = TreeView::of(&tree, &busy, &shape);
            let plan = config.picker.pick(&view, 1).unwrap();
            let taken = plan.inputs.iter().filter(|input| input.level == 1).map(|input| input.table);
            let taken: Vec<TableId> = taken.chain(plan.moves.iter().copied()).collect();
            // What is compacted vanishes, and new tables come in its place, over nothing: always the cheapest ones.
            let mut edit = carried_out(&plan, &tree, 0);
            edit.add.clear();
            for id in taken {
                let (_, table) = tree.table(id).unwrap();
                compacted_bytes += table.bytes();
                ids += 1;
                edit.add.push((1, self::table(ids, 1, table.range.clone(), table.bytes())));
            }
            tree = tree.apply(&edit, &mut |_| Lease::none()).unwrap();
            assert!(compacted_bytes <= 9 * level_bytes, "seed {seed}");
        }
    }
}
