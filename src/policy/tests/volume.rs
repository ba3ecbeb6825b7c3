//! How much a load writes, computed from the plans alone.
//!
//! Keys come in no order, jobs run one after the other, and tables are as dense as chance makes them. There is no
//! disk and no clock, so the figures are exact and the same everywhere.

use super::*;
use crate::catalog::{Lease, check_version};
use crate::types::{TableId, UpperBound};

/// Places that keys may have.
const PLACES: u64 = 1_000_000_000_000;

/// A tree that is written to.
pub(super) struct Load {
    pub(super) config: PolicyConfig,
    pub(super) tree: Version,
    ids: u64,
    epoch: u64,
    /// Bytes of all records that there are, of which a random one is written each time; `None` if each is a new one.
    pub(super) records: Option<u64>,
    put: u64,
    written: u64,
    largest: u64,
    /// Most bytes of the tree and of what a job writes beside its inputs.
    peak: u64,
}

fn place(key: &Key) -> u64 {
    std::str::from_utf8(key).unwrap().parse().unwrap()
}

fn places(range: &KeyRange) -> std::ops::Range<u64> {
    let UpperBound::Excluded(end) = &range.end else { panic!("{range}") };
    place(&range.start)..place(end)
}

impl Load {
    pub(super) fn new(config: PolicyConfig) -> Self {
        Self {
            config,
            tree: Version::empty(),
            ids: 0,
            epoch: 1,
            records: None,
            put: 0,
            written: 0,
            largest: 0,
            peak: 0,
        }
    }

    /// Bytes left of `runs` of so many bytes each over `width` places.
    fn compacted(&self, runs: impl Iterator<Item = u64>, width: u64) -> u64 {
        match self.records {
            None => runs.sum(),
            Some(all) => {
                let all = all as f64 * width as f64 / PLACES as f64;
                (all - runs.fold(all, |left, run| left * (1.0 - (run as f64 / all).min(1.0)))) as u64
            }
        }
    }

    /// Tables of `bytes` together over `places`, side by side.
    fn tables(&mut self, epoch: u64, places: std::ops::Range<u64>, bytes: u64) -> Vec<TableRecord> {
        let table_bytes = self.config.cutter.table_bytes();
        let count = bytes.div_ceil(table_bytes).max(1);
        let width = places.end - places.start;
        let at = |n: u64| places.start + (u128::from(width) * u128::from(n) / u128::from(count)) as u64;
        let key = |place: u64| format!("{place:013}").into_bytes();
        (0..count)
            .map(|n| {
                self.ids += 1;
                let end = UpperBound::Excluded(key(at(n + 1)).into());
                table(self.ids, epoch, KeyRange::half_open(key(at(n)), end), bytes / count)
            })
            .collect()
    }

    fn change(&mut self, edit: &TreeEdit) {
        self.tree = self.tree.apply(edit, &mut |_| Lease::none()).unwrap();
    }

    pub(super) fn flush(&mut self, bytes: u64) {
        self.epoch += 1;
        let kept = self.compacted(std::iter::repeat_n(bytes / 64, 64), PLACES);
        let tables = self.tables(self.epoch, 0..PLACES, kept);
        self.put += bytes;
        self.written += kept;
        self.change(&TreeEdit {
            add: tables.into_iter().map(|table| (0, table)).collect(),
            ..TreeEdit::default()
        });
    }

    pub(super) fn compact_tables(&mut self, plan: &Plan) {
        let mut runs: BTreeMap<(usize, u8, u64), (KeyRange, u64)> = BTreeMap::new();
        let mut hulls: BTreeMap<usize, KeyRange> = BTreeMap::new();
        for input in &plan.inputs {
            let (level, table) = self.tree.table(input.table).unwrap();
            let island = plan.fences.partition_point(|fence| *fence <= table.range.start);
            let state = self.tree.level(level);
            let epoch = match level {
                0 => table.epoch.0,
                _ => (state.depth() - state.run_of(table).unwrap()) as u64,
            };
            runs.entry((island, level, epoch)).or_insert_with(|| (table.range.clone(), 0)).1 += table.bytes();
            let hull = hulls.entry(island).or_insert_with(|| table.range.clone());
            *hull = hull.hull(&table.range);
        }
        // Within level 0, outputs are as new as the newest input (I3). Below it the epochs of what merges mean nothing.
        let newest = runs.keys().map(|(_, _, epoch)| *epoch).max().unwrap_or(1);
        self.epoch += u64::from(plan.stacks);
        let epoch = match plan.target {
            0 => newest,
            _ if plan.stacks => self.epoch,
            _ => 1,
        };
        let moved = |id: &TableId| {
            let record = self.tree.table(*id).unwrap().1.record();
            // Whole levels move, and of these only disjoint ones do.
            TableRecord { epoch: if plan.stacks { Epoch(epoch) } else { record.epoch }, ..record }
        };
        let mut edit = TreeEdit {
            drop: (plan.inputs.iter().map(|input| (input.level, input.table)))
                .chain(plan.moves.iter().map(|id| (plan.source, *id)))
                .collect(),
            add: plan.moves.iter().map(|id| (plan.target, moved(id))).collect(),
            cursors: plan.cursor.iter().map(|key| (plan.source, key.clone())).collect(),
            ..TreeEdit::default()
        };
        for (island, hull) in hulls {
            let of_island = runs.iter().filter(|((at, ..), _)| *at == island).map(|(_, (_, bytes))| *bytes);
            let places = places(&hull);
            let bytes = self.compacted(of_island, places.end - places.start);
            self.written += bytes;
            edit.add.extend(self.tables(epoch, places, bytes).into_iter().map(|table| (plan.target, table)));
        }
        self.largest = self.largest.max(plan.bytes);
        let bytes = self.bytes() + edit.add.iter().map(|(_, table)| table.extent.length).sum::<u64>();
        self.peak = self.peak.max(bytes);
        self.change(&edit);
    }

    pub(super) fn bytes(&self) -> u64 {
        self.tree.levels().map(|(_, state)| state.bytes()).sum()
    }

    /// Compacts until nothing is due.
    fn settle(&mut self) {
        loop {
            let overwrite_ratio = self.records.map_or(0.0, |_| 1.0);
            let layout = self.config.layout.for_mix(overwrite_ratio);
            let (busy, shape) = (Claims::default(), layout.measure(&self.tree));
            let view = TreeView::of(&self.tree, &busy, &shape);
            let Some(plan) = next_plan(&[view], &SpaceView::default(), &LoadState::default(), &self.config)
            else {
                break;
            };
            self.compact_tables(&plan);
        }
    }

    pub(super) fn put(&mut self, bytes: u64) {
        for _ in 0..bytes >> 26 {
            self.flush(64 << 20);
            self.settle();
        }
    }

    /// Bytes written for each that was put since the last call.
    fn amplification(&mut self) -> f64 {
        let ratio = self.written as f64 / self.put as f64;
        (self.written, self.put) = (0, 0);
        ratio
    }

    fn shape(&self) -> String {
        let levels = self.tree.levels().filter(|(_, state)| state.bytes() > 0);
        levels
            .map(|(level, state)| format!("L{level} {}", show_bytes(state.bytes())))
            .collect::<Vec<_>>()
            .join(" ")
    }
}

/// The default's policy with these limits.
pub(super) fn config(ratio: Option<u64>) -> PolicyConfig {
    let mut config = PolicyConfig::leveldb_sized(1 << 20, 256 << 20);
    if ratio.is_none() {
        config.let_limits_follow_the_tree();
    }
    *config.picker_mut() = PickerConfig {
        group_bytes: 16 << 20,
        group_parts: 4,
        settle: true,
        expansion_bytes_max: 41 << 20,
        grandparent_bytes_max: 10 << 20,
    };
    config
}

/// Bytes written for each that was put, for a load of `gib` and for as much again over the same records once these have been
/// written over three times, and the most space that these take then.
fn amplifications(config: PolicyConfig, gib: u64) -> (f64, f64) {
    let mut load = Load::new(config);
    load.put(gib << 30);
    let grown = load.amplification();
    let records = load.bytes();
    load.peak = 0;
    load.records = Some(records);
    load.put((3 * gib) << 30);
    load.amplification();
    load.peak = 0;
    load.put(gib << 30);
    let peak = load.peak as f64 / records as f64;
    let steady = load.amplification();
    check_version(&load.tree).unwrap();
    println!(
        "{:?}: load of {gib} GiB {grown:.2}, updates {steady:.2}, space {peak:.2}, largest job {}; {}",
        config.layout,
        show_bytes(load.largest),
        load.shape()
    );
    if let Layout::Leveled(LeveledConfig { ratio: None, .. }) = config.layout {
        assert!(load.largest <= 176 << 20);
        assert!(peak <= 1.45, "{gib} GiB: {peak}");
    }
    (grown, steady)
}

/// `cargo test --release --lib volume -- --nocapture` shows the figures.
#[test]
fn limits_that_follow_the_tree_write_less() {
    // Sizes in GiB, and what of the writes of a fixed ratio is left at most. `TERRACE_LONG=1` tries the large ones, too.
    let sizes = [(1, 0.8), (3, 0.55), (5, 0.55), (8, 0.55), (10, 0.5)];
    let is_long = std::env::var("TERRACE_LONG").is_ok_and(|value| value != "0");
    for (gib, part) in sizes.into_iter().take(if is_long { sizes.len() } else { 2 }) {
        let (grown, steady) = amplifications(config(None), gib);
        let (grown_fixed, steady_fixed) = amplifications(config(Some(10)), gib);
        assert!(grown <= part * grown_fixed && steady <= part * steady_fixed, "{gib} GiB");
    }
}

#[test]
fn a_level_0_as_wide_as_the_mix_asks_for_writes_less() {
    let mut wide = config(None);
    wide.let_level_0_follow_the_mix();
    for gib in [3, 5] {
        let (grown, steady) = amplifications(wide, gib);
        let (grown_fifth, steady_fifth) = amplifications(config(None), gib);
        assert!(grown <= 0.75 * grown_fifth && steady <= 1.05 * steady_fifth, "{gib} GiB: {grown}, {steady}");
    }
}

/// What a load of whole levels came to.
struct WholeLevels {
    /// Bytes written for each that was put: records of `gib`, and as much again over the same ones.
    written: f64,
    /// Bytes of the largest job.
    largest: u64,
    /// Runs of each level that holds any.
    runs: Vec<usize>,
}

fn whole_levels((runs, last_runs): (u64, u64), part_bytes: u64, gib: u64) -> WholeLevels {
    let mut config = config(Some(10));
    let (level1_bytes, ratio, l0_trigger) = (256 << 20, 4, 4);
    config.layout = Layout::Tiered(TieredConfig { level1_bytes, ratio, runs, last_runs, l0_trigger });
    config.picker = Picker::Levels(PickerConfig {
        group_bytes: part_bytes,
        settle: part_bytes > 0,
        grandparent_bytes_max: u64::MAX,
        ..*config.picker_mut()
    });
    let mut load = Load::new(config);
    load.put(gib << 30);
    load.records = Some(gib << 30);
    load.put(gib << 30);
    check_version(&load.tree).unwrap();
    let deep = load.tree.levels().skip(1).filter(|(_, state)| state.depth() > 0);
    let runs = deep.map(|(_, state)| state.depth()).collect();
    let (written, largest) = (load.amplification(), load.largest);
    println!(
        "{:?}, parts of {}: {written:.2} written, {:.2} of the space, largest job {}, {runs:?} runs; {}",
        load.config.layout,
        show_bytes(part_bytes),
        load.bytes() as f64 / (gib << 30) as f64,
        show_bytes(largest),
        load.shape()
    );
    WholeLevels { written, largest, runs }
}

/// PTierDB, table I and figure 2: leveling writes most, layouts of many runs a half to three quarters of that.
#[test]
fn layouts_of_many_runs_write_less_than_leveling() {
    let kept = [(1, 1), (4, 4), (4, 1), (4, 1000)];
    let whole = kept.map(|kept| whole_levels(kept, 0, 4));
    let [leveling, others @ ..] = &whole;
    assert!(leveling.runs.iter().all(|runs| *runs == 1), "{:?}", leveling.runs);
    for other in others {
        assert!(other.written <= 0.75 * leveling.written, "{} of {}", other.written, leveling.written);
    }
    let [_, _, lazy, _] = &whole;
    assert_eq!(lazy.runs.last(), Some(&1), "{:?}", lazy.runs);
    // In parts, no more is written, and no job is as large as a level.
    for (kept, whole) in kept.into_iter().zip(&whole) {
        let parts = whole_levels(kept, 64 << 20, 4);
        assert!(parts.written <= 1.25 * whole.written, "{kept:?}: {} for {}", parts.written, whole.written);
        assert!(parts.largest <= whole.largest / 2, "{kept:?}: {}", show_bytes(parts.largest));
    }
}
