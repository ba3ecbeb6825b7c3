//! The same of PebblesDB's guards: what goes down between two of them, with target inputs where a new guard parts these.

use super::*;
use crate::policy::GuardedConfig;

fn random_guards(dice: &mut Dice) -> (Picker, Cutter) {
    let mut one_of = |choices: [u64; 3]| choices[dice.below(3) as usize];
    let base = PickerConfig {
        group_bytes: 0,
        group_parts: 1,
        settle: false,
        expansion_bytes_max: one_of([1, 200, 1000]),
        grandparent_bytes_max: u64::MAX,
    };
    let guarded = GuardedConfig {
        l0_trigger: 1,
        top_bits: 8,
        bits_step: 1,
        runs_max: one_of([1, 1, 2]),
        guard_bytes: one_of([1, 20, 100]),
    };
    let table_bytes = one_of([1, 50, 150]);
    let size = SizeConfig { table_bytes, grandparent_bytes_max: u64::MAX, cuts_flushes: false };
    (Picker::Guards(base, guarded), Cutter::Guards(size, guarded))
}

#[test]
fn i4_guards_hide_nothing_newer() {
    let (mut jobs, mut beside, mut deep) = (0, 0, 0);
    for seed in 0..300 {
        let mut dice = Dice(12_000 + seed);
        let mut lab = Lab::random(Levels::Stacked, &mut dice);
        let (picker, cutter) = random_guards(&mut dice);
        for _ in 0..12 {
            let plans = lab.run_beside(&cutter, &mut dice, |lab, busy, dice| {
                let (version, pins, shape) = (&lab.version, &lab.snapshots[..], TreeShape::default());
                let view = TreeView {
                    keyspace: KeyspaceId(0),
                    version,
                    busy,
                    shape: &shape,
                    pins,
                    deletes: &[],
                    collection: None,
                };
                picker.pick(&view, dice.below(8) as u8)
            });
            let plans = plans.unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
            beside += u32::from(plans.len() > 1);
            jobs += plans.len();
            deep += plans.iter().filter(|plan| plan.source > DEEPEST).count();
        }
    }
    assert!(
        jobs > 500 && beside > 30 && deep > 30,
        "{jobs} jobs, {beside} beside others, {deep} below the first tree"
    );
}
