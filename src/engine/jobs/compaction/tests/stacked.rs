//! Jobs that put tables on top of others: whatever order plans of many runs give them, no answer changes.

use super::*;
use crate::policy::{Layout, OutputAge, TieredConfig, convex, downward};

/// A change as a layout of many runs makes it: some tables of a level and all older ones that overlap them go down on top
/// of the next level, those between which `merged` chooses as one run, the others as they are.
fn stacked_plan(lab: &Lab, level: u8, dice: &mut Dice) -> Option<Plan> {
    let state = lab.version.level(level);
    let drawn = |dice: &mut Dice, odds| state.tables().filter(|_| dice.below(odds) == 0).collect::<Vec<_>>();
    let (mut victims, merged) = (drawn(dice, 4), drawn(dice, 4));
    let merged = if dice.below(4) > 0 { convex(state, &merged) } else { Vec::new() };
    victims.extend(&merged);
    let victims = downward(state, &victims);
    let inputs = merged.iter().map(|table| PlanInput { level, table: table.id });
    let moved = victims.iter().filter(|table| merged.iter().all(|input| input.id != table.id));
    let plan = Plan {
        inputs: inputs.collect(),
        moves: moved.map(|table| table.id).collect(),
        stacks: true,
        ..plan_of(level, level + 1, &victims)?
    };
    let kind = if plan.inputs.is_empty() { PlanKind::Move } else { PlanKind::Compact };
    Some(Plan { kind, ..plan })
}

/// Some tables of one level below level 0 become one run there.
fn plan_within(lab: &Lab, level: u8, dice: &mut Dice) -> Option<Plan> {
    let state = lab.version.level(level);
    let seed: Vec<_> = state.tables().filter(|_| dice.below(4) == 0).collect();
    plan_of(level, level, &convex(state, &seed))
}

/// The compaction of `tables` of `source` into `target`, if there are any.
fn plan_of(source: u8, target: u8, tables: &[&Arc<TableMeta>]) -> Option<Plan> {
    let range = tables.iter().map(|table| table.range.clone()).reduce(|hull, range| hull.hull(&range))?;
    Some(Plan {
        keyspace: KeyspaceId(0),
        kind: PlanKind::Compact,
        source,
        target,
        stacks: false,
        age: OutputAge::Newest,
        inputs: tables.iter().map(|table| PlanInput { level: source, table: table.id }).collect(),
        moves: Vec::new(),
        fences: Vec::new(),
        claims: vec![range.clone()],
        range,
        bytes: tables.iter().map(|table| table.bytes()).sum(),
        cursor: None,
        reason: Reason::Manual,
    })
}

#[test]
fn i4_what_comes_to_lie_on_top_hides_nothing_newer() {
    let (mut jobs, mut moved, mut mixed, mut within, mut beside, mut depth) = (0, 0, 0, 0, 0, 0);
    let mut refused: BTreeMap<Fault, u32> = BTreeMap::new();
    for seed in 0..400 {
        let mut dice = Dice(5000 + seed);
        let mut lab = Lab::random(Levels::Stacked, &mut dice);
        let (_, cutter) = random_policies(&mut dice);
        for _ in 0..6 {
            let plans = lab.run_beside(&cutter, &mut dice, |lab, busy, dice| {
                let level = dice.below(u64::from(DEEPEST) + 1) as u8;
                let plan = match level {
                    1.. if dice.below(3) == 0 => plan_within(lab, level, dice),
                    _ => stacked_plan(lab, level, dice),
                };
                let plan = plan.filter(|plan| !busy.conflicts_with(plan))?;
                let faults = [Fault::NoVictim, Fault::MovedThoughCompacted];
                let found = refused_of(lab, &cutter, &plan, &faults, dice);
                for fault in found.unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}")) {
                    *refused.entry(fault).or_default() += 1;
                }
                Some(plan)
            });
            let plans = plans.unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
            beside += u32::from(plans.len() > 1);
            for plan in plans {
                jobs += 1;
                moved += u32::from(plan.kind == PlanKind::Move);
                mixed += u32::from(!plan.moves.is_empty() && !plan.inputs.is_empty());
                within += u32::from(plan.source == plan.target);
            }
            depth = depth.max((1..8).map(|level| lab.version.level(level).depth()).max().unwrap_or(0));
        }
    }
    let counts = [jobs, moved, mixed, within, beside, depth as u32];
    let enough = counts.iter().zip([2000, 200, 200, 300, 300, 6]).all(|(count, least)| *count >= least);
    assert!(enough && refused.values().all(|count| *count >= 40), "{counts:?}, refused {refused:?}");
}

/// A layout of small levels, of every kind.
fn random_layout(dice: &mut Dice) -> TieredConfig {
    TieredConfig {
        level1_bytes: 60 + dice.below(200),
        ratio: 2 + dice.below(2),
        runs: 1 + dice.below(3),
        last_runs: [1, 2, 3, 1000][dice.below(4) as usize],
        l0_trigger: 1 + dice.below(2),
    }
}

#[test]
fn i4_merges_of_whole_levels_and_of_parts_change_no_answer() {
    let (mut jobs, mut stacked, mut merged, mut within, mut moved, mut beside) = (0, 0, 0, 0, 0, 0);
    let mut refused: BTreeMap<Fault, u32> = BTreeMap::new();
    for seed in 0..400 {
        let mut dice = Dice(9000 + seed);
        let levels = if seed % 3 == 0 { Levels::Merged } else { Levels::Stacked };
        let mut lab = Lab::random(levels, &mut dice);
        let (_, cutter) = random_policies(&mut dice);
        let (layout, part_bytes) = (random_layout(&mut dice), [0, 0, 60, 150][dice.below(4) as usize]);
        let picker = Picker::Levels(PickerConfig {
            group_bytes: part_bytes,
            group_parts: 1,
            settle: part_bytes > 0,
            expansion_bytes_max: 1000,
            grandparent_bytes_max: u64::MAX,
        });
        let config = PolicyConfig { layout: Layout::Tiered(layout), picker, ..PolicyConfig::leveldb() };
        for _ in 0..5 {
            let shape = config.layout.measure(&lab.version);
            let plans = lab.run_beside(&cutter, &mut dice, |lab, busy, dice| {
                let version = &lab.version;
                let view = TreeView::of(version, busy, &shape);
                let range = Some(&random_range(dice)).cloned();
                let level = dice.below(u64::from(DEEPEST) + 1) as u8;
                let plan = match dice.below(8) {
                    0 => match picker.pick_range(&view, level, range.as_ref()) {
                        RangePick::Plan(plan) => Some(plan),
                        RangePick::Busy | RangePick::Done => None,
                    },
                    1..3 => picker.pick(&view, level),
                    _ => next_plan(&[view], &SpaceView::default(), &LoadState::default(), &config),
                };
                let plan = plan?;
                let found = refused_of(lab, &cutter, &plan, &FAULTS, dice);
                for fault in found.unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}")) {
                    *refused.entry(fault).or_default() += 1;
                }
                Some(plan)
            });
            let plans = plans.unwrap_or_else(|wrong| panic!("seed {seed}: {layout:?}: {wrong}"));
            beside += u32::from(plans.len() > 1);
            for plan in plans {
                jobs += 1;
                stacked += u32::from(plan.stacks);
                merged += u32::from(!plan.stacks && plan.source < plan.target);
                within += u32::from(plan.source == plan.target);
                moved += u32::from(!plan.moves.is_empty());
            }
        }
    }
    let counts = [jobs, stacked, merged, within, moved, beside];
    let enough = counts.iter().zip([1000, 200, 200, 50, 100, 50]).all(|(count, least)| *count >= least);
    assert!(enough && refused.values().sum::<u32>() >= 100, "{counts:?}, refused {refused:?}");
}

/// Any tables of a level, closed or not, go to any level not far below, with any of the tables there or none. They get
/// new epochs, their old ones, or those of others.
fn any_step(lab: &Lab, cutter: &Cutter, dice: &mut Dice) -> Option<(Plan, TreeEdit, Written)> {
    let source = dice.below(u64::from(DEEPEST) + 1) as u8;
    let target = source + dice.below(3) as u8;
    let drawn = |level: u8, odds: u64, dice: &mut Dice| -> Vec<&Arc<TableMeta>> {
        lab.version.level(level).tables().filter(|_| dice.below(odds) == 0).collect()
    };
    let odds = 1 + dice.below(6);
    let seed = drawn(source, odds, dice);
    let state = lab.version.level(source);
    let victims = match dice.below(4) {
        0 => seed,
        1 if source == target => convex(state, &seed),
        _ => downward(state, &seed),
    };
    let moved = if source == target { 0 } else { dice.below(4) };
    let (moves, compacted): (Vec<_>, Vec<_>) = victims.iter().partition(|_| dice.below(3) < moved);
    let odds = 1 + dice.below(6);
    let others = if source == target || dice.below(2) == 0 { Vec::new() } else { drawn(target, odds, dice) };
    let all: Vec<_> = victims.iter().chain(&others).copied().collect();
    let input = |level| move |table: &&Arc<TableMeta>| PlanInput { level, table: table.id };
    let inputs: Vec<_> =
        compacted.into_iter().map(input(source)).chain(others.iter().map(input(target))).collect();
    let kind = if inputs.is_empty() { PlanKind::Move } else { PlanKind::Compact };
    let moves = moves.iter().map(|table| table.id).collect();
    let plan = Plan { kind, inputs, moves, stacks: dice.below(2) == 0, ..plan_of(source, target, &all)? };
    let (mut edit, tables) = lab.carry_out(&plan, cutter, lab.next_id);
    let epochs: Vec<Epoch> = lab.version.tables().map(|(_, table)| table.epoch).collect();
    let (fresh, any) = (lab.next_epoch(), epochs[dice.below(epochs.len() as u64) as usize]);
    let of_outputs = [None, None, Some(fresh), Some(any)][dice.below(4) as usize];
    for (_, record) in &mut edit.add {
        let is_moved = plan.moves.contains(&record.id);
        let old = lab.version.table(record.id).map(|(_, table)| table.epoch);
        let of_moved = [None, None, old, Some(any), Some(lab.next_epoch())][dice.below(5) as usize];
        let other = if is_moved { of_moved } else { of_outputs };
        record.epoch = other.unwrap_or(record.epoch);
    }
    Some((plan, edit, tables))
}

/// The checks of an install are enough by themselves, whatever a layout comes to think of.
#[test]
fn i4_whatever_edit_passes_the_checks_changes_no_answer() {
    let (mut tried, mut passed, mut mixed, mut partly, mut within) = (0, 0, 0, 0, 0);
    for seed in 0..300 {
        let mut dice = Dice(20_000 + seed);
        let mut lab = Lab::random(Levels::Stacked, &mut dice);
        let (_, cutter) = random_policies(&mut dice);
        for _ in 0..40 {
            let Some((plan, edit, tables)) = any_step(&lab, &cutter, &mut dice) else { continue };
            let was = lab.version.clone();
            tried += 1;
            if lab.install(true, &edit, tables).is_err() {
                continue;
            }
            lab.check_answers()
                .unwrap_or_else(|wrong| panic!("seed {seed}: {plan}: {edit:?}: {wrong}, from {was:?}"));
            passed += 1;
            mixed += u32::from(!plan.moves.is_empty() && !plan.inputs.is_empty());
            let others = plan.inputs.iter().any(|input| input.level != plan.source);
            partly += u32::from(others && check_merged(&was, &edit).is_err());
            within += u32::from(plan.source == plan.target && plan.inputs.len() > 1);
        }
    }
    let counts = [passed, mixed, partly, within];
    assert!(counts.iter().all(|count| *count >= 100), "{tried} tried, {counts:?}");
}

/// A leveled picker makes one run of each level, whatever lay there, beside jobs that bring more from above.
#[test]
fn i4_folds_beside_other_jobs_change_no_answer_and_leave_one_run() {
    let (mut folds, mut others, mut beside, mut refused) = (0, 0, 0, 0);
    for seed in 0..300 {
        let mut dice = Dice(30_000 + seed);
        let mut lab = Lab::random(Levels::Stacked, &mut dice);
        for _ in 0..dice.below(6) {
            let level = dice.below(u64::from(DEEPEST)) as u8;
            let (_, cutter) = random_policies(&mut dice);
            let Some(plan) = stacked_plan(&lab, level, &mut dice) else { continue };
            let (edit, tables) = lab.carry_out(&plan, &cutter, lab.next_id);
            lab.install(true, &edit, tables).unwrap();
        }
        let (picker, cutter) = random_policies(&mut dice);
        let shape = TreeShape::default();
        for round in 0.. {
            assert!(round < 300, "seed {seed}: {picker:?}: {:?}", lab.version);
            let mut running: Vec<(Plan, TreeEdit, Written)> = Vec::new();
            let mut busy = Claims::default();
            for number in 1..4 {
                let version = &lab.version;
                let view = TreeView::of(version, &busy, &shape);
                let plan = match dice.below(5) {
                    0 if round < 20 => picker.pick(&view, dice.below(u64::from(DEEPEST)) as u8),
                    _ => picker.pick_within(&view),
                };
                let Some(plan) = plan else { continue };
                let inputs = Inputs::of(&lab.version, &plan).unwrap();
                assert!(inputs.lie_in(&plan.claims), "I5: seed {seed}: {plan} reads outside of its claims");
                busy.claim(&plan);
                for fault in [Fault::NoVictim, Fault::NoTargetInput] {
                    let Some(plan) = tampered(&plan, fault, &mut dice) else { continue };
                    let (edit, tables) = lab.carry_out(&plan, &cutter, lab.next_id);
                    refused += u32::from(
                        check_tampered(&lab, (fault, &plan), &edit, tables)
                            .unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}")),
                    );
                }
                let (edit, tables) = lab.carry_out(&plan, &cutter, lab.next_id + 1000 * number);
                running.push((plan, edit, tables));
            }
            if running.is_empty() && round >= 20 {
                break;
            }
            beside += u32::from(running.len() > 1);
            while !running.is_empty() {
                let (plan, edit, tables) = running.remove(dice.below(running.len() as u64) as usize);
                let was = lab.version.clone();
                let result = lab.install(plan.stacks, &edit, tables).and_then(|()| lab.check_answers());
                result.unwrap_or_else(|wrong| panic!("seed {seed}: {plan}: {wrong}, from {was:?}"));
                let is_fold = plan.age == OutputAge::Oldest;
                *(if is_fold { &mut folds } else { &mut others }) += 1;
            }
        }
        let depth = (1..8).map(|level| lab.version.level(level).depth()).max();
        assert!(depth <= Some(1), "seed {seed}: {:?}", lab.version);
    }
    let counts = [folds, others, beside, refused];
    assert!(counts.iter().zip([1000, 200, 100, 100]).all(|(count, least)| *count >= least), "{counts:?}");
}

/// What a picker of one run in each level does next for anybody: for a level that is due, for a caller, or of itself.
fn leveled_plan(lab: &Lab, picker: &Picker, busy: &Claims, dice: &mut Dice) -> Option<Plan> {
    let (version, shape) = (&lab.version, TreeShape::default());
    let view = TreeView::of(version, busy, &shape);
    let (level, range) = (dice.below(u64::from(DEEPEST) + 1) as u8, random_range(dice));
    let pick = match dice.below(5) {
        0 => return picker.pick(&view, level),
        1 | 2 => return picker.pick_within(&view),
        3 => picker.pick_range(&view, level, Some(&range)),
        _ => picker.pick_alone(&view, &range, |table| table.id.0 % 2 == 0),
    };
    match pick {
        RangePick::Plan(plan) => Some(plan),
        RangePick::Busy | RangePick::Done => None,
    }
}

/// A store is opened with one layout and another, again and again, while jobs of the one before still run.
#[test]
fn i4_layouts_back_and_forth_change_no_answer() {
    let (mut folds, mut stacked, mut within, mut beside) = (0, 0, 0, 0);
    for seed in 0..200 {
        let mut dice = Dice(40_000 + seed);
        let mut lab = Lab::random(Levels::Stacked, &mut dice);
        let mut running: Vec<(Plan, TreeEdit, Written)> = Vec::new();
        let mut busy = Claims::default();
        for step in 0..40 {
            let (picker, cutter) = random_policies(&mut dice);
            let level = dice.below(u64::from(DEEPEST)) as u8;
            let plan = match dice.below(6) {
                0 | 1 => stacked_plan(&lab, level, &mut dice),
                2 => plan_within(&lab, level + 1, &mut dice),
                _ => leveled_plan(&lab, &picker, &busy, &mut dice),
            };
            if let Some(plan) = plan.filter(|plan| !busy.conflicts_with(plan)) {
                let inputs = Inputs::of(&lab.version, &plan).unwrap();
                assert!(inputs.lie_in(&plan.claims), "I5: seed {seed}: {plan} reads outside of its claims");
                busy.claim(&plan);
                let (edit, tables) = lab.carry_out(&plan, &cutter, 1000 * (step + 1));
                running.push((plan, edit, tables));
            }
            beside += u32::from(running.len() > 1);
            if !running.is_empty() && dice.below(3) > 0 {
                let (plan, edit, tables) = running.remove(dice.below(running.len() as u64) as usize);
                let was = lab.version.clone();
                let result = lab.install(plan.stacks, &edit, tables).and_then(|()| lab.check_answers());
                result.unwrap_or_else(|wrong| panic!("seed {seed}: {plan}: {wrong}, from {was:?}"));
                busy.release(&plan);
                folds += u32::from(plan.age == OutputAge::Oldest);
                stacked += u32::from(plan.stacks);
                within += u32::from(plan.source == plan.target && plan.age == OutputAge::Newest);
            }
        }
    }
    let counts = [folds, stacked, within, beside];
    assert!(counts.iter().all(|count| *count >= 300), "{counts:?}");
}
