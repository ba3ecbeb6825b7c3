//! Whole levels and parts of them: when they are due, and that merging comes to an end.

use super::properties::{Counts, carried_out, check_step, plans_beside_each_other, random_tree_of};
use super::*;
use crate::catalog::{Lease, check_version};

/// Every member of the family, as one and in parts of so many bytes.
fn configs() -> Vec<PolicyConfig> {
    let kept = [(1, 1), (3, 3), (3, 1), (2, 1000), (1, 3), (2, 4)];
    let both = kept.into_iter().flat_map(|kept| [(kept, 0), (kept, 12 << 20)]);
    both.map(|((runs, last_runs), part_bytes)| {
        let mut config = PolicyConfig::leveldb_sized(1 << 20, 4 << 20);
        let (level1_bytes, ratio, l0_trigger) = (16 << 20, 3, 2);
        config.layout = Layout::Tiered(TieredConfig { level1_bytes, ratio, runs, last_runs, l0_trigger });
        let picker = *config.picker_mut();
        let grandparent_bytes_max = u64::MAX;
        config.picker = Picker::Levels(PickerConfig {
            group_bytes: part_bytes,
            settle: part_bytes > 0,
            grandparent_bytes_max,
            ..picker
        });
        config
    })
    .collect()
}

#[test]
fn i2_i12_every_merge_is_closed_and_apart_from_running_jobs() {
    for config in configs() {
        let in_parts = config.picker.group_bytes() > 0;
        let Counts { plans, beside, .. } =
            plans_beside_each_other(&config, |dice: &mut Dice| random_tree_of(4, dice));
        assert!(
            plans > 100 && (beside > 50 || !in_parts),
            "{config:?}: {plans} plans, {beside} beside others"
        );
    }
}

#[test]
fn merges_come_to_an_end_and_leave_no_level_that_is_due() {
    for (seed, config) in (0..40).flat_map(|seed| configs().into_iter().map(move |config| (seed, config))) {
        let mut tree = random_tree_of(4, &mut Dice(seed));
        for step in 0.. {
            assert!(step < 300, "seed {seed}: {config:?}: {tree:?}");
            let (busy, shape) = (Claims::default(), config.layout.measure(&tree));
            let view = TreeView::of(&tree, &busy, &shape);
            let load = LoadState::default();
            let Some(plan) = next_plan(&[view], &SpaceView::default(), &load, &config) else { break };
            let edit = carried_out(&plan, &tree, 1000 + step);
            check_step(&plan, &tree, &edit).unwrap_or_else(|error| panic!("seed {seed}: {plan}: {error}"));
            tree = tree.apply(&edit, &mut |_| Lease::none()).unwrap();
            check_version(&tree).unwrap();
        }
        assert!(config.layout.scores(&tree).iter().all(|score| *score < 1.0), "{config:?}: {tree:?}");
        assert_eq!(config.layout.debt(&tree), 0);
    }
}

fn tiered(runs: u64, last_runs: u64) -> Layout {
    Layout::Tiered(TieredConfig { level1_bytes: 10 << 20, ratio: 10, runs, last_runs, l0_trigger: 4 })
}

/// Levels 1 and 2 with so many runs of so many MiB each.
fn tree_of(levels: [(u64, u64); 2]) -> Version {
    let mut tables = Vec::new();
    for (level, (runs, mib)) in (1..).zip(levels) {
        tables.extend((0..runs).map(|run| {
            let id = 100 * u64::from(level) + run;
            (level, table(id, 1 + run, parse_range("a-z"), mib << 20))
        }));
    }
    version(tables)
}

#[test]
fn a_level_is_due_by_its_runs_or_its_bytes_as_it_keeps_several_or_one() {
    let scores = |layout: Layout, levels| {
        let scores = layout.scores(&tree_of(levels));
        [scores[1], scores[2]]
    };
    // Leveling: by bytes.
    assert_eq!(scores(tiered(1, 1), [(1, 5), (1, 50)]), [0.5, 0.5]);
    // Tiering: by runs, however large they are.
    assert_eq!(scores(tiered(4, 4), [(2, 50), (4, 5000)]), [0.5, 1.0]);
    // Lazy leveling: by runs above the last level.
    assert_eq!(scores(tiered(4, 1), [(2, 50), (1, 50)]), [0.5, 0.5]);
    // Stepped merge: the last level is full by its bytes.
    assert_eq!(scores(tiered(4, 1000), [(4, 1), (5, 10)]), [1.0, 0.5]);
    let limits = |layout: Layout| layout.limits(&tree_of([(2, 1), (1, 1)]))[..4].to_vec();
    assert_eq!(limits(tiered(1, 1)), [0, 10 << 20, 100 << 20, 1000 << 20]);
    assert_eq!(limits(tiered(4, 4)), [0; 4]);
    assert_eq!(limits(tiered(4, 1)), [0, 0, 100 << 20, 1000 << 20]);
    // The last level is whichever is.
    assert_eq!(scores(tiered(4, 1), [(1, 5), (0, 0)]), [0.5, 0.0]);
}

#[test]
fn what_arrives_lies_on_top_where_several_runs_are_kept() {
    let stacks = |layout: Layout, levels| [1, 2, 3].map(|level| layout.stacks_at(&tree_of(levels), level));
    let levels = [(2, 1), (1, 1)];
    assert_eq!(stacks(tiered(1, 1), levels), [false; 3]);
    assert_eq!(stacks(tiered(4, 4), levels), [true; 3]);
    assert_eq!(stacks(tiered(4, 1), levels), [true, false, false]);
    assert_eq!(stacks(tiered(1, 4), levels), [false, true, true]);
    assert!(!tiered(4, 4).stacks_at(&tree_of(levels), 0));
}

#[test]
fn a_last_level_that_is_full_is_merged_in_its_place_and_then_goes_down() {
    let config = PolicyConfig {
        layout: tiered(4, 1000),
        picker: Picker::Levels(PickerConfig {
            grandparent_bytes_max: u64::MAX,
            ..*PolicyConfig::leveldb().picker_mut()
        }),
        ..PolicyConfig::leveldb()
    };
    let pick = |tree: &Version| {
        let (busy, shape) = (Claims::default(), config.layout.measure(tree));
        let view = TreeView::of(tree, &busy, &shape);
        config.picker.pick(&view, 2).unwrap().to_string()
    };
    let five = pick(&tree_of([(1, 1), (5, 20)]));
    assert!(
        five.contains("compact k0 L2->L2") && five.ends_with("t204,t203,t202,t201,t200 (level runs)"),
        "{five}"
    );
    let one = pick(&tree_of([(1, 1), (1, 100)]));
    assert!(one.contains("move k0 L2->+L3") && one.ends_with("move:t200 (level bytes)"), "{one}");
}
