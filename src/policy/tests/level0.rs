//! Level 0 of large trees: which part of it is compacted, and before what.

use std::collections::BTreeSet;

use super::*;
use crate::catalog::Lease;
use crate::types::TableId;

const MIB: u64 = 1 << 20;

/// The default's limits of level 0, groups of 16 MiB.
fn policy() -> PolicyConfig {
    let mut config = PolicyConfig::leveldb_sized(MIB, 256 * MIB);
    config.let_limits_follow_the_tree();
    *config.picker_mut() = PickerConfig {
        group_bytes: 16 * MIB,
        group_parts: 4,
        settle: true,
        expansion_bytes_max: 41 * MIB,
        grandparent_bytes_max: 10 * MIB,
    };
    let Pacer::Governor(pacer) = &mut config.pacer else { panic!("the default") };
    (pacer.l0_slow, pacer.l0_stop) = (60, 96);
    config
}

/// Runs of tables of 1 MiB, whose ids count on.
#[derive(Default)]
struct Runs {
    ids: u64,
    tables: Vec<(u8, TableRecord)>,
}

impl Runs {
    /// `count` tables side by side over `keys`.
    fn add(&mut self, level: u8, epoch: u64, keys: std::ops::Range<u64>, count: u64) {
        let width = (keys.end - keys.start) / count;
        for start in (keys.start..).step_by(width as usize).take(count as usize) {
            self.ids += 1;
            let [first, last] = [start, start + width - 1].map(|key| format!("{key:07}"));
            let range = KeyRange::new(first.as_bytes(), last.as_bytes());
            self.tables.push((level, table(self.ids, epoch, range, MIB)));
        }
    }

    fn version(&mut self) -> Version {
        version(std::mem::take(&mut self.tables))
    }
}

fn view<'a>(id: u32, version: &'a Version, busy: &'a Claims, shape: &'a TreeShape) -> TreeView<'a> {
    TreeView { keyspace: KeyspaceId(id), version, busy, shape, pins: &[], deletes: &[], collection: None }
}

fn pick(config: &PolicyConfig, tree: &Version) -> Plan {
    let (busy, shape) = (Claims::default(), config.layout.measure(tree));
    config.picker.pick(&view(0, tree, &busy, &shape), 0).unwrap()
}

/// The oldest run has been compacted within level 0, and is cut into four where flushes are cut once.
#[test]
fn a_section_ends_where_flushed_tables_end_though_an_older_run_is_cut_finer() {
    let mut runs = Runs::default();
    runs.add(0, 1, 0..1 << 16, 256);
    (2..6).for_each(|epoch| runs.add(0, epoch, 0..1 << 16, 64));
    // More than a group between two cuts of flushes.
    runs.add(1, 1, 0..1 << 16, 4096);
    let tree = runs.version();
    let plan = pick(&policy(), &tree);
    let of_level = |level| plan.inputs.iter().filter(move |input| input.level == level);
    let epochs: BTreeSet<_> = of_level(0).map(|input| tree.table(input.table).unwrap().1.epoch).collect();
    assert_eq!((epochs.len(), of_level(0).count(), of_level(1).count()), (5, 4 + 4, 64), "{plan}");
}

#[test]
fn a_wide_table_of_the_oldest_run_is_taken_before_long() {
    let config = policy();
    let mut runs = Runs::default();
    // Sparse and old over the upper half; twelve dense runs there, and on a hot spot before it. Nothing of level 1 is below that.
    runs.add(0, 2, 500_000..1_000_000, 1);
    for epoch in 3..14 {
        runs.add(0, epoch, 490_000..500_000, 8);
        runs.add(0, epoch, 500_000..1_000_000, 14);
    }
    runs.add(1, 1, 500_000..1_000_000, 200);
    let (mut tree, oldest) = (runs.version(), TableId(1));
    for epoch in 14..44 {
        let plan = pick(&config, &tree);
        if plan.inputs.iter().any(|input| input.table == oldest) || plan.moves.contains(&oldest) {
            return;
        }
        // Of what is compacted one table is left, and another such run is flushed meanwhile.
        let compacted = plan.inputs.iter().map(|input| (input.level, input.table));
        let drop: Vec<_> = compacted.chain(plan.moves.iter().map(|id| (0, *id))).collect();
        let moved = plan.moves.iter().map(|id| (1, tree.table(*id).unwrap().1.record()));
        let mut add: Vec<_> = moved.collect();
        if !plan.inputs.is_empty() {
            runs.ids += 1;
            add.push((1, table(runs.ids, 1, plan.range.clone(), MIB)));
        }
        runs.add(0, epoch, 490_000..500_000, 8);
        runs.add(0, epoch, 500_000..1_000_000, 14);
        add.append(&mut runs.tables);
        tree = tree.apply(&TreeEdit { drop, add, ..TreeEdit::default() }, &mut |_| Lease::none()).unwrap();
    }
    panic!("30 jobs, and none has taken the oldest run's table: {} runs", tree.level(0).runs.len());
}

/// What is done next in idle time.
fn idle_plan(tree: &Version, busy: &Claims) -> Option<Plan> {
    let config = policy();
    let shape = TreeShape { idle: true, ..config.layout.measure(tree) };
    next_plan(&[view(0, tree, busy, &shape)], &SpaceView::default(), &LoadState::default(), &config)
}

#[test]
fn idle_time_compacts_what_is_dense_though_the_oldest_run_is_elsewhere_and_beside_running_jobs() {
    let mut runs = Runs::default();
    // A remnant of the oldest run over the last part of the keys, under which much lies.
    runs.add(0, 2, 900_000..1_000_000, 1);
    runs.add(0, 3, 0..900_000, 90);
    runs.add(1, 1, 0..900_000, 360);
    runs.add(1, 1, 900_000..1_000_000, 100);
    let (tree, mut busy) = (runs.version(), Claims::default());
    for job in 0..8 {
        let plan = idle_plan(&tree, &busy).unwrap_or_else(|| panic!("{job} are running"));
        assert_eq!((plan.reason, plan.source, plan.target), (Reason::Idle, 0, 1), "{plan}");
        busy.claim(&plan);
    }
}

#[test]
fn what_would_only_move_makes_no_section_dense() {
    // Tables over nothing, and beside them one over twenty.
    let plan = |count| {
        let mut runs = Runs::default();
        runs.add(0, 3, 0..800_000, count);
        runs.add(0, 3, 800_000..1_000_000, 1);
        runs.add(1, 1, 800_000..1_000_000, 20);
        idle_plan(&runs.version(), &Claims::default())
    };
    assert_eq!(plan(8), None, "all are one section");
    let plan = plan(40).unwrap();
    assert!(plan.kind == PlanKind::Move && plan.moves.len() > 8, "{plan}");
}

#[test]
fn a_section_is_a_part_of_level_0_wherever_its_largest_run_lies() {
    let config = policy();
    let mut runs = Runs::default();
    // The keys have moved on, as where one table of a database is loaded after another.
    for epoch in 2..13 {
        runs.add(0, epoch, 0..500_000, 63);
    }
    runs.add(0, 13, 500_000..1_000_000, 64);
    runs.add(1, 1, 0..500_000, 700);
    let plan = pick(&config, &runs.version());
    assert!(plan.bytes <= 256 * MIB, "{} in one job", show_bytes(plan.bytes));
}

#[test]
fn a_level_0_of_very_many_tables_is_compacted_in_parts() {
    let config = policy();
    let mut runs = Runs::default();
    runs.add(0, 2, 0..1_000_000, 100_000);
    for epoch in 3..13 {
        runs.add(0, epoch, 0..1_000_000, 64);
    }
    runs.add(1, 1, 0..1_000_000, 700);
    let plan = pick(&config, &runs.version());
    assert!(plan.bytes <= 256 * MIB, "{} in one job", show_bytes(plan.bytes));
}

#[test]
fn guards_are_the_same_for_all_flushes_but_where_level_1_has_changed() {
    let cutter = policy().cutter;
    let level1 = |changed: std::ops::Range<u64>| {
        let mut runs = Runs::default();
        runs.add(1, 1, 0..changed.start, changed.start / 500);
        runs.add(1, 2, changed.start..changed.end, 31);
        runs.add(1, 3, changed.end..1_000_000, (1_000_000 - changed.end) / 500);
        cutter.guards(runs.version().level(1).largest().unwrap(), 64 * MIB)
    };
    let (guards, later) = (level1(400_000..430_000), level1(600_000..630_000));
    assert!((24..=96).contains(&guards.len()), "{}", guards.len());
    let far = |guards: &[Key]| -> Vec<Key> {
        let is_far = |key: &&Key| ***key < b"0350000"[..] || ***key > b"0680000"[..];
        guards.iter().filter(is_far).cloned().collect()
    };
    assert!(far(&guards).len() > 16);
    assert_eq!(far(&guards), far(&later));
}

#[test]
fn small_flushes_have_some_of_the_guards_and_tiny_ones_none() {
    let cutter = policy().cutter;
    let mut runs = Runs::default();
    runs.add(1, 1, 0..1_000_000, 2_000);
    let tree = runs.version();
    let guards = |bytes| cutter.guards(tree.level(1).largest().unwrap(), bytes);
    let (all, few, none) = (guards(64 * MIB), guards(MIB), guards(MIB / 9));
    assert!(few.len() < all.len() / 2 && few.len() > 2, "{} of {}", few.len(), all.len());
    assert!(few.iter().all(|guard| all.contains(guard)));
    assert_eq!(none, Vec::<Key>::new());
}

/// Where the first job is, in a tree of that many runs and megabytes in levels 1 to 3, beside one that nobody writes to.
fn first_job(runs: u64, levels: [u64; 3], beside: [u64; 3]) -> Option<(u32, u8)> {
    let config = policy();
    let trees = [(runs, levels), (0, beside)].map(|(level0, levels)| {
        let mut runs = Runs::default();
        for epoch in 2..2 + level0 {
            runs.add(0, epoch, 0..1_000_000, 64);
        }
        for (level, count) in (1..).zip(levels).filter(|(_, count)| *count > 0) {
            runs.add(level, 1, 0..1_000_000, count);
        }
        let version = runs.version();
        (config.layout.measure(&version), version)
    });
    let busy = Claims::default();
    let views: Vec<_> = (0..).zip(&trees).map(|(id, (shape, tree))| view(id, tree, &busy, shape)).collect();
    let load = LoadState { l0_runs: runs, ..LoadState::default() };
    let plan = next_plan(&views, &SpaceView::default(), &load, &config);
    plan.map(|plan| (plan.keyspace.0, plan.source))
}

#[test]
fn what_relieves_a_stopped_level_0_comes_before_other_keyspaces_and_fuller_levels_before_it() {
    // Level 0 is 3 times full, level 1 about as much.
    let (small, fuller, idle) = ([7_000, 3_000, 60_000], [8_000, 3_000, 60_000], [4_000, 27_000, 30_000]);
    assert_eq!(first_job(48, small, idle), Some((0, 0)));
    assert_eq!(first_job(48, fuller, idle), Some((0, 1)));
    // Nobody waits: the fullest of all.
    assert_eq!(first_job(4, fuller, idle), Some((1, 2)));
}

#[test]
fn level_0_counts_for_its_runs_or_for_what_they_hold_of_what_it_is_due_at() {
    let mut config = policy();
    let counts = |config: &PolicyConfig, level0: &[u64], level1, overwrite_ratio| {
        let mut level = Runs::default();
        for (epoch, tables) in (2..).zip(level0) {
            level.add(0, epoch, 0..1_000_000, *tables);
        }
        if level1 > 0 {
            level.add(1, 1, 0..1_000_000, level1);
        }
        let tree = level.version();
        (
            config.layout.level0_runs(&tree, overwrite_ratio),
            config.layout.level0_run_bytes(&tree, overwrite_ratio),
        )
    };
    // Due at 192 MiB, then at 400; at 1152 at the most.
    let runs = [&[] as &[u64], &[1; 5], &[32], &[33; 6]].map(|runs| counts(&config, runs, 0, 1.0).0);
    assert_eq!(runs, [0, 5, 8, 55]);
    // Slows writers, and does not stop them, for what may be obsolete; all of it does.
    assert_eq!([10, 20, 40].map(|runs| counts(&config, &vec![64; runs], 1000, 1.0).0), [72, 72, 119]);
    assert_eq!(counts(&config, &[100], 0, 1.0).0, 17, "a full run");
    assert_eq!(counts(&config, &[50; 4], 2000, 1.0), (26, Some((400 * MIB).div_ceil(54))));
    assert_eq!(counts(&config, &[4000], 2000, 1.0).0, 13, "a quarter of what it is due at");
    assert_eq!(
        [0.5, 0.1, 0.0].map(|overwrite_ratio| counts(&config, &[50; 4], 2000, overwrite_ratio).0),
        [13, 9, 9]
    );
    let Layout::Leveled(layout) = &mut config.layout else { panic!("a leveled tree") };
    layout.ratio = Some(10);
    assert_eq!(counts(&config, &[4000; 3], 0, 1.0), (3, None));
}

#[test]
fn i11_a_level_0_that_holds_writers_up_is_due() {
    let (config, mut held_up) = (policy(), 0);
    for seed in 0..300 {
        let (mut dice, mut level) = (Dice(seed), Runs::default());
        for epoch in 2..2 + dice.below(70) {
            let count = 1 + dice.below(64);
            level.add(0, epoch, 0..1_000_000, count);
        }
        let below = dice.below(8000);
        if below > 0 {
            level.add(1, 1, 0..1_000_000, below);
        }
        let tree = level.version();
        let runs = config.layout.level0_runs(&tree, dice.below(100) as f64 / 99.0);
        if config.pacer.presses(runs) {
            held_up += 1;
            assert!(config.layout.scores(&tree)[0] >= 1.0, "{seed}: {runs}");
        }
    }
    assert!((50..250).contains(&held_up), "{held_up}");
}

/// The first job in a level 0 of six runs, the oldest of 8 MiB and the others of so many, over so many in level 1.
fn job_of_six_runs(newer: u64, below: u64) -> Plan {
    let (config, mut runs) = (policy(), Runs::default());
    runs.add(0, 2, 0..1_000_000, 8);
    (3..8).for_each(|epoch| runs.add(0, epoch, 0..1_000_000, newer));
    runs.add(1, 1, 0..1_000_000, below);
    let (tree, busy) = (runs.version(), Claims::default());
    let shape = config.layout.measure(&tree);
    assert!(shape.scores[0] >= 1.0);
    next_plan(&[view(0, &tree, &busy, &shape)], &SpaceView::default(), &LoadState::default(), &config)
        .unwrap()
}

#[test]
fn runs_that_hold_little_become_one_unless_level_0_is_full_or_dense() {
    let target = |newer, below| {
        let plan = job_of_six_runs(newer, below);
        assert_eq!((plan.reason, plan.source), (Reason::Level0Runs, 0), "{plan}");
        plan.target
    };
    assert_eq!(target(4, 500), 0, "28 MiB of 500 are sparse");
    assert_eq!(target(4, 100), 1, "28 MiB of 100 are dense");
    assert_eq!(target(64, 1_000), 1, "328 MiB of 1,000 are full, and dense");
}

#[test]
fn readers_pay_for_all_of_level_0_and_not_for_fewer_runs_of_it() {
    let (config, costs) = (policy(), Costs::TUNED);
    let mut runs = Runs::default();
    (2..8).for_each(|epoch| runs.add(0, epoch, 0..1_000_000, 4));
    runs.add(1, 1, 0..1_000_000, 500);
    let tree = runs.version();
    let price = config.layout.price_of_level0(&tree, &costs).unwrap();
    let only_runs = |paid| config.layout.measure_with_debt(&tree, paid, &costs).only_runs_due;
    assert!(only_runs(price - 1) && !only_runs(price));
}
