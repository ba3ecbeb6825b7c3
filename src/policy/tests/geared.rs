//! Levels in pairs: when one goes down, and that it does so in key order, a unit at a time.

use super::properties::{Counts, carried_out, check_step, plans_beside_each_other, random_tree_of};
use super::*;
use crate::catalog::{Lease, check_version};

fn config(level1_bytes: u64, unit_bytes: u64) -> PolicyConfig {
    let mut config = PolicyConfig::leveldb_sized(1 << 20, u64::MAX);
    config.layout = Layout::Geared(GearedConfig { level1_bytes, ratio: 3, l0_trigger: 2 });
    let base = *config.picker_mut();
    config.picker = Picker::Drain(PickerConfig { group_bytes: unit_bytes, settle: true, ..base });
    config
}

/// Levels 1 to 4 with so many tables of 1 MiB each, side by side.
fn tree_of(levels: [u64; 4]) -> Version {
    let mut tables = Vec::new();
    for (level, count) in (1u8..).zip(levels) {
        tables.extend((0..count).map(|at| {
            let range = format!("{:03}-{:03}", 2 * at, 2 * at + 1);
            (level, table(100 * u64::from(level) + at, 1 + at, parse_range(&range), 1 << 20))
        }));
    }
    version(tables)
}

fn planned(config: &PolicyConfig, tree: &Version, busy: &Claims) -> Option<String> {
    let shape = config.layout.measure(tree);
    let view = TreeView::of(tree, busy, &shape);
    let plan = next_plan(&[view], &SpaceView::default(), &LoadState::default(), config);
    plan.map(|plan| plan.to_string())
}

#[test]
fn a_full_pair_goes_down_in_rounds() {
    let config = config(10 << 20, 2 << 20);
    let next = |levels| planned(&config, &tree_of(levels), &Claims::default());
    assert_eq!(next([9, 0, 0, 0]), None);
    // Full, and nothing goes down: the whole level takes the other place.
    let round = next([10, 0, 5, 0]).unwrap();
    assert!(round.starts_with("move k0 L1->L2") && round.contains("move:t100 move:t101"), "{round}");
    // Full together: a unit of the first keys.
    let unit = next([4, 6, 8, 0]).unwrap();
    assert!(
        unit.starts_with("compact k0 L2->L3 [000..003]") && unit.contains("L2:t200,t201 L3:t300,t301"),
        "{unit}"
    );
    assert_eq!(next([4, 5, 8, 0]), None);
    // The deepest pair first.
    let deepest = next([4, 6, 20, 10]).unwrap();
    assert!(deepest.starts_with("move k0 L4->L5"), "{deepest}");
}

#[test]
fn what_would_come_to_a_level_waits_for_its_round() {
    let config = config(10 << 20, 2 << 20);
    let tree = tree_of([4, 6, 30, 0]);
    let mut busy = Claims::default();
    assert!(planned(&config, &tree, &busy).unwrap().starts_with("move k0 L3->L4"));
    // A job works on level 3: its round waits, and no other job begins there.
    busy.claim(&claim_of(3, parse_range("050-051")));
    assert_eq!(planned(&config, &tree, &busy), None);
}

#[test]
fn the_debt_is_what_pairs_hold_above_their_limits() {
    let layout = config(10 << 20, 2 << 20).layout;
    let debt = |levels| layout.debt(&tree_of(levels)) >> 20;
    assert_eq!([debt([4, 5, 0, 0]), debt([9, 0, 29, 0])], [0, 0]);
    assert!(debt([4, 8, 12, 0]) >= 2 && debt([4, 8, 12, 0]) <= 6);
}

#[test]
fn i2_i12_every_step_is_closed_and_apart_from_running_jobs() {
    for (unit_bytes, runs) in [(0, 1), (4 << 20, 1), (0, 4), (4 << 20, 4)] {
        let config = config(16 << 20, unit_bytes);
        let Counts { plans, .. } =
            plans_beside_each_other(&config, |dice: &mut Dice| random_tree_of(runs, dice));
        assert!(plans > 100, "{plans} plans");
    }
}

#[test]
fn steps_come_to_an_end_and_leave_no_level_that_is_due() {
    // Levels of several runs are those of another layout.
    for seed in 0..120 {
        let config = config(16 << 20, if seed % 2 == 0 { 0 } else { 4 << 20 });
        let mut tree = random_tree_of(if seed < 60 { 1 } else { 4 }, &mut Dice(seed));
        for step in 0.. {
            assert!(step < 1200, "seed {seed}: {tree:?}");
            let (busy, shape) = (Claims::default(), config.layout.measure(&tree));
            let view = TreeView::of(&tree, &busy, &shape);
            let load = LoadState::default();
            let Some(plan) = next_plan(&[view], &SpaceView::default(), &load, &config) else { break };
            let edit = carried_out(&plan, &tree, 1000 + step);
            check_step(&plan, &tree, &edit).unwrap_or_else(|error| panic!("seed {seed}: {plan}: {error}"));
            tree = tree.apply(&edit, &mut |_| Lease::none()).unwrap();
            check_version(&tree).unwrap();
        }
        assert!(config.layout.scores(&tree).iter().all(|score| *score < 1.0), "seed {seed}: {tree:?}");
        assert_eq!(config.layout.debt(&tree), 0, "seed {seed}: {tree:?}");
    }
}
