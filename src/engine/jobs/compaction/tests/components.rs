//! The same of PTierDB's picker: what it puts on top, moves, and merges within the deepest level.

use super::*;
use crate::policy::ComponentsConfig;

fn random_components(dice: &mut Dice) -> (Picker, Cutter) {
    let mut one_of = |choices: [u64; 3]| choices[dice.below(3) as usize];
    let base = PickerConfig {
        group_bytes: one_of([0, 80, 200]),
        group_parts: 1,
        settle: false,
        expansion_bytes_max: one_of([1, 200, 1000]),
        grandparent_bytes_max: u64::MAX,
    };
    let picker = Picker::Components(ComponentsConfig {
        base,
        moves: one_of([0, 1, 1]) == 1,
        access_bytes: 1 << 10,
        accesses_min: 100,
        job_bytes: one_of([1, 150, u64::MAX]),
    });
    let table_bytes = one_of([1, 50, 150]);
    let size = SizeConfig { table_bytes, grandparent_bytes_max: u64::MAX, cuts_flushes: true };
    (picker, if one_of([0, 1, 1]) == 1 { Cutter::Prefix(size) } else { Cutter::Size(size) })
}

/// A plan of `picker` that can run beside what is `busy`. Some tables have been searched often.
fn random_plan(lab: &Lab, picker: &Picker, busy: &Claims, dice: &mut Dice) -> Option<Plan> {
    let mut shape = TreeShape { prefix: Some(RULE), scores: [2.0; 8], ..TreeShape::default() };
    let largest = lab.version.largest().unwrap_or(0);
    let tables: Vec<TableId> = lab.version.level(largest).tables().map(|table| table.id).collect();
    for place in &mut shape.searched {
        *place = (dice.below(2) > 0).then(|| tables.get(dice.below(9) as usize).copied()).flatten();
    }
    let version = &lab.version;
    let view = TreeView {
        keyspace: KeyspaceId(0),
        version,
        busy,
        shape: &shape,
        pins: &lab.snapshots,
        deletes: &[],
        collection: None,
    };
    match dice.below(7) {
        0 | 1 => picker.pick_within(&view),
        2 => match picker.pick_range(&view, dice.below(3) as u8, Some(&random_range(dice))) {
            RangePick::Plan(plan) => Some(plan),
            RangePick::Busy | RangePick::Done => None,
        },
        _ => picker.pick(&view, dice.below(u64::from(DEEPEST) + 1) as u8),
    }
}

#[test]
fn i4_components_hide_nothing_newer() {
    let (mut jobs, mut moved, mut mixed, mut within, mut beside, mut dying) = (0, 0, 0, 0, 0, 0);
    for seed in 0..400 {
        let mut dice = Dice(9000 + seed);
        let levels = if seed % 4 == 3 { Levels::Merged } else { Levels::Stacked };
        let mut lab = Lab::random(levels, &mut dice);
        let (picker, cutter) = random_components(&mut dice);
        for _ in 0..8 {
            let plans =
                lab.run_beside(&cutter, &mut dice, |lab, busy, dice| random_plan(lab, &picker, busy, dice));
            let plans = plans.unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
            beside += u32::from(plans.len() > 1);
            for plan in plans {
                jobs += 1;
                moved += u32::from(plan.kind == PlanKind::Move);
                mixed += u32::from(!plan.moves.is_empty() && !plan.inputs.is_empty());
                within += u32::from(plan.source == plan.target);
            }
        }
        dying += merged_for_tombstones(&mut lab, &picker, &cutter);
    }
    let counts = [jobs, moved, mixed, within, beside, dying];
    let enough = counts.iter().zip([1000, 200, 20, 200, 200, 20]).all(|(count, least)| *count >= least);
    assert!(enough, "{counts:?}");
}

/// Merges within the deepest level until no table there is due for its tombstones. Returns how many that took: each makes
/// the tombstones of a table go, so they end.
fn merged_for_tombstones(lab: &mut Lab, picker: &Picker, cutter: &Cutter) -> u32 {
    for jobs in 0.. {
        assert!(jobs < 200, "{:?}", lab.version);
        let (busy, shape) = (Claims::default(), TreeShape::default());
        let (version, pins) = (lab.version.clone(), lab.snapshots.clone());
        let view = TreeView {
            keyspace: KeyspaceId(0),
            version: &version,
            busy: &busy,
            shape: &shape,
            pins: &pins,
            deletes: &[],
            collection: None,
        };
        let Some(plan) = picker.pick_within(&view) else { return jobs };
        assert_eq!(plan.reason, Reason::Tombstones);
        let (edit, tables) = lab.carry_out(&plan, cutter, lab.next_id);
        let result = lab.install(plan.stacks, &edit, tables).and_then(|()| lab.check_answers());
        result.unwrap_or_else(|wrong| panic!("{plan}: {wrong}, from {version:?}"));
    }
    0
}
