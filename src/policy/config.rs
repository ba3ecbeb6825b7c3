//! The policy configuration: one policy per decision, and what the options mean for them.
//!
//! Only this module translates options. Values that follow from several options, or from none, are set here, each
//! with its reason. Every `match` names all variants, so a new one does not compile until somebody decides what it
//! means.

use std::time::Duration;

use crate::options::{
    self, Adaptive, Buffer, Components, Dlc, Drain, Flushes, Gear, Geared, Governor, Group, Guarded, Leveled,
    Levels, Prefixed, RatioWindow, Silk, SoftSleep, Steady, TableSize, Tiered, TreeOptions,
};
use crate::options::{Files, Placer};
use crate::policy::cutter::{Cutter, SizeConfig};
use crate::policy::layout::{GearedConfig, GuardedConfig, Layout, Level0Width, LeveledConfig, TieredConfig};
use crate::policy::level0::LEVEL0_SHARE_MAX;
use crate::policy::pacer::{
    DlcConfig, GearConfig, GovernorConfig, Pacer, SilkConfig, SoftSleepConfig, SteadyConfig,
};
use crate::policy::picker::{ComponentsConfig, Picker, PickerConfig, WindowConfig};
use crate::policy::retainer::{BufferConfig, Retainer};

/// LevelDB's limits, as multiples of the table size (`db/version_set.cc`: `MaxGrandParentOverlapBytes`,
/// `ExpandedCompactionByteSizeLimit`).
const GRANDPARENT_TABLES_MAX: u64 = 10;
const EXPANSION_TABLES_MAX: u64 = 25;

/// A level that prefixes part: tables that are compacted alone go together up to this many times their size.
const ALONE_TABLES_MAX: u64 = 4;

/// Slowed writers get at least this rate together, in bytes per second. It is slow enough for any disk to keep up
/// with, and fast enough that no writer takes the store for dead.
const FLOOR_BYTES_PER_SECOND: u64 = 1 << 20;

/// The rate that a disk is assumed to have until it has been measured, in bytes per second.
const UNMEASURED_BYTES_PER_SECOND: u64 = 64 << 20;

/// Where limits follow the tree, level 0 is due at most at this many times the bytes of the option's runs when they
/// are full.
const LEVEL0_GROWTH: u64 = 6;

/// Where limits follow the tree, a full run of level 0 counts for up to this many of the option's runs when it is
/// judged whether level 0 holds writers up. So by their number alone, runs slow writers only at up to this many times
/// the number of full runs. Reason: compactions go through level 0 in sections and leave half of a run on average, so
/// twice that number is normal. At a factor of two, writers would be slowed for it though compactions keep up and
/// level 0 shrinks.
const RUNS_PER_FULL: u64 = 3;

/// One policy per decision.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PolicyConfig {
    /// How levels are built.
    pub layout: Layout,
    /// What is compacted or moved next.
    pub picker: Picker,
    /// Where outputs are cut.
    pub cutter: Cutter,
    /// What becomes of inputs.
    pub retainer: Retainer,
    /// When jobs run and writers wait.
    pub pacer: Pacer,
    /// How tables share files.
    pub files: Files,
    /// Where tables go.
    pub placer: Placer,
}

impl PolicyConfig {
    /// The policies that `tree` describes, for a store with at most `sealed_memtables_max` sealed memtables. `tree`
    /// must be valid.
    #[must_use]
    pub fn new(tree: &TreeOptions, sealed_memtables_max: u64) -> Self {
        let l0_slow = tree.pacer.l0_slow() as u64;
        let table_bytes = match &tree.cutter {
            options::Cutter::Size(size) | options::Cutter::Guards(size) | options::Cutter::Prefix(size) => {
                size.table_bytes
            }
        };
        Self {
            layout: layout(&tree.layout, l0_slow),
            picker: picker(&tree.picker, &tree.layout, table_bytes),
            cutter: cutter(&tree.cutter, &tree.layout),
            retainer: retainer(&tree.retainer, &tree.layout),
            pacer: pacer(&tree.pacer, sealed_memtables_max),
            files: tree.files,
            placer: tree.placer,
        }
    }
}

/// `l0_slow` runs of level 0 slow writers down.
fn layout(layout: &options::Layout, l0_slow: u64) -> Layout {
    let of = |level1_bytes, ratio: Option<u32>, l0_trigger: usize| (level1_bytes, ratio, l0_trigger as u64);
    let leveled: fn(LeveledConfig) -> Layout = Layout::Leveled;
    let (made, (level1_bytes, ratio, l0_trigger)) = match *layout {
        options::Layout::Guarded(_) => return Layout::Guarded(guarded(layout)),
        options::Layout::Adaptive(Adaptive { l0_bytes, l0_runs })
        | options::Layout::Auto(Adaptive { l0_bytes, l0_runs }) => (leveled, of(l0_bytes, None, l0_runs)),
        options::Layout::Leveled(Leveled { level1_bytes, ratio, l0_trigger }) => {
            (leveled, of(level1_bytes, Some(ratio), l0_trigger))
        }
        options::Layout::Prefixed(Prefixed { level1_bytes, ratio, l0_trigger }) => {
            (Layout::Prefixed as fn(_) -> _, of(level1_bytes, Some(ratio), l0_trigger))
        }
        options::Layout::Geared(Geared { level1_bytes, ratio, l0_trigger }) => {
            let (ratio, l0_trigger) = (ratio.into(), l0_trigger as u64);
            return Layout::Geared(GearedConfig { level1_bytes, ratio, l0_trigger });
        }
        options::Layout::Tiered(Tiered { level1_bytes, ratio, runs, last_runs, l0_trigger }) => {
            return Layout::Tiered(TieredConfig {
                level1_bytes,
                ratio: ratio.into(),
                runs: runs.into(),
                last_runs: last_runs.into(),
                l0_trigger: l0_trigger as u64,
            });
        }
    };
    made(LeveledConfig {
        level1_bytes,
        ratio: ratio.map(u64::from),
        l0_trigger,
        level0: match layout {
            options::Layout::Auto(_) => Level0Width::Mix { share: LEVEL0_SHARE_MAX },
            options::Layout::Adaptive(_)
            | options::Layout::Leveled(_)
            | options::Layout::Prefixed(_)
            | options::Layout::Tiered(_)
            | options::Layout::Geared(_)
            | options::Layout::Guarded(_) => Level0Width::Fifth,
        },
        l0_full_max: LEVEL0_GROWTH * l0_trigger,
        // Compactions that keep up leave writers alone.
        l0_runs_max: (l0_slow * 6 / 10).max(l0_trigger),
        // Due a tenth before it holds writers up, or nothing would relieve it (I11).
        l0_runs_due: (l0_slow * 9 / 10).min(RUNS_PER_FULL * LEVEL0_GROWTH * l0_trigger),
    })
}

/// The buffer of a tree of that layout.
fn retainer(retainer: &options::Retainer, layout: &options::Layout) -> Retainer {
    match *retainer {
        options::Retainer::Drop => Retainer::Drop,
        options::Retainer::Buffer(Buffer { cached_percent, period, share_percent }) => {
            Retainer::Buffer(BufferConfig {
                cached_percent: cached_percent.into(),
                period,
                share_percent: share_percent.into(),
                has_rounds: is_geared(layout),
            })
        }
    }
}

fn is_geared(layout: &options::Layout) -> bool {
    match layout {
        options::Layout::Geared(_) => true,
        options::Layout::Adaptive(_)
        | options::Layout::Auto(_)
        | options::Layout::Leveled(_)
        | options::Layout::Tiered(_)
        | options::Layout::Prefixed(_)
        | options::Layout::Guarded(_) => false,
    }
}

/// The guards of a layout. (Options of guards go together: what stands for another layout here is never asked.)
fn guarded(layout: &options::Layout) -> GuardedConfig {
    let Guarded { l0_trigger, top_bits, bits_step, runs_max, guard_bytes } = match *layout {
        options::Layout::Guarded(guarded) => guarded,
        options::Layout::Adaptive(_)
        | options::Layout::Auto(_)
        | options::Layout::Leveled(_)
        | options::Layout::Tiered(_)
        | options::Layout::Geared(_)
        | options::Layout::Prefixed(_) => Guarded::default(),
    };
    GuardedConfig {
        l0_trigger: l0_trigger as u64,
        top_bits,
        bits_step,
        runs_max: runs_max as u64,
        guard_bytes,
    }
}

fn picker(picker: &options::Picker, layout: &options::Layout, table_bytes: u64) -> Picker {
    let config = |Group { bytes, parts, settle }: Group| PickerConfig {
        group_bytes: bytes,
        group_parts: parts.into(),
        settle,
        expansion_bytes_max: table_bytes.saturating_mul(EXPANSION_TABLES_MAX).saturating_add(bytes),
        grandparent_bytes_max: grandparent_bytes_max(table_bytes),
    };
    match *picker {
        options::Picker::Cursor(group) => Picker::Cursor(config(group)),
        options::Picker::LeastOverlap(group) => Picker::LeastOverlap(config(group)),
        options::Picker::RatioWindow(RatioWindow { group, window_tables, oldest_runs }) => {
            Picker::RatioWindow(WindowConfig {
                // HyperLevelDB moves whatever it can.
                victims: PickerConfig { grandparent_bytes_max: u64::MAX, ..config(group) },
                bytes_max: table_bytes.max(group.bytes).saturating_mul(window_tables.into()),
                oldest_runs: oldest_runs as u64,
            })
        }
        // The limits are those of manual compactions.
        options::Picker::Guards => Picker::Guards(config(Group::SINGLE), guarded(layout)),
        options::Picker::Components(Components { moves, access_bytes, accesses_min, job_bytes }) => {
            let group = Group { bytes: table_bytes.saturating_mul(ALONE_TABLES_MAX), ..Group::SINGLE };
            let base = config(group);
            Picker::Components(ComponentsConfig { base, moves, access_bytes, accesses_min, job_bytes })
        }
        // A unit's tables are judged one by one. They go down whatever they overlap further down.
        options::Picker::Drain(Drain { unit_bytes }) => Picker::Drain(PickerConfig {
            grandparent_bytes_max: u64::MAX,
            ..config(Group { bytes: unit_bytes, parts: 1, settle: true })
        }),
        // A level is merged or moved as one; in parts, each cluster of tables by itself. A table moves whatever it overlaps
        // in the level after the target, for that is merged with whole levels, too.
        options::Picker::Levels(Levels { part_bytes }) => Picker::Levels(PickerConfig {
            grandparent_bytes_max: u64::MAX,
            ..config(Group { bytes: part_bytes, parts: 1, settle: part_bytes > 0 })
        }),
    }
}

fn cutter(cutter: &options::Cutter, layout: &options::Layout) -> Cutter {
    let size = |TableSize { table_bytes, flushes }, grandparent_bytes_max| SizeConfig {
        table_bytes,
        grandparent_bytes_max,
        cuts_flushes: match flushes {
            Flushes::Cut => true,
            Flushes::Whole => false,
        },
    };
    match *cutter {
        // What an output overlaps further down is not written again when it goes there.
        options::Cutter::Guards(tables) => Cutter::Guards(size(tables, u64::MAX), guarded(layout)),
        // What goes down in units of many tables is not cut by what lies there.
        options::Cutter::Size(tables) if is_geared(layout) => Cutter::Size(size(tables, u64::MAX)),
        options::Cutter::Size(tables) => {
            Cutter::Size(size(tables, grandparent_bytes_max(tables.table_bytes)))
        }
        // What lies below is not compacted with a table, however much of it the table spans.
        options::Cutter::Prefix(tables) => Cutter::Prefix(size(tables, u64::MAX)),
    }
}

fn pacer(pacer: &options::Pacer, sealed_memtables_max: u64) -> Pacer {
    let governor = |limits: Governor| governor(limits, sealed_memtables_max);
    match *pacer {
        options::Pacer::Steady(Steady { limits, yield_disk, yield_processor }) => {
            Pacer::Steady(SteadyConfig { limits: governor(limits), yield_disk, yield_processor })
        }
        options::Pacer::Governor(limits) => Pacer::Governor(governor(limits)),
        options::Pacer::SoftSleep(SoftSleep { l0_free, nanos_per_run }) => {
            Pacer::SoftSleep(SoftSleepConfig {
                l0_free: l0_free as u64,
                per_run: Duration::from_nanos(nanos_per_run.into()),
                sealed_memtables_max,
                floor_bytes_per_second: FLOOR_BYTES_PER_SECOND,
                unmeasured_bytes_per_second: UNMEASURED_BYTES_PER_SECOND,
            })
        }
        options::Pacer::Silk(Silk { limits, bandwidth, estimator, interval, pause_percent }) => {
            let limits = governor(limits);
            Pacer::Silk(SilkConfig { limits, bandwidth, estimator, interval, pause_percent })
        }
        options::Pacer::Dlc(Dlc {
            limits,
            bandwidth,
            estimator,
            interval,
            high_percent,
            low_percent,
            softness,
            high_softness,
            peak,
            burst,
        }) => Pacer::Dlc(DlcConfig {
            limits: governor(limits),
            bandwidth,
            estimator,
            interval,
            high_percent,
            low_percent,
            softness: (high_softness, softness),
            peak,
            burst,
        }),
        options::Pacer::Gear(Gear { limits, spring_percent, spring }) => {
            Pacer::Gear(GearConfig { limits: governor(limits), spring_percent, spring })
        }
    }
}

fn governor(limits: Governor, sealed_memtables_max: u64) -> GovernorConfig {
    let Governor { l0_slow, l0_stop, debt_slow_bytes, debt_stop_bytes } = limits;
    GovernorConfig {
        l0_slow: l0_slow as u64,
        l0_stop: l0_stop as u64,
        debt_slow_bytes,
        debt_stop_bytes,
        sealed_memtables_max,
        floor_bytes_per_second: FLOOR_BYTES_PER_SECOND,
        unmeasured_bytes_per_second: UNMEASURED_BYTES_PER_SECOND,
    }
}

/// A table that overlaps more of the level after its own is cut, and not moved.
fn grandparent_bytes_max(table_bytes: u64) -> u64 {
    table_bytes.saturating_mul(GRANDPARENT_TABLES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Version;

    #[test]
    fn i11_level_0_is_due_before_it_holds_writers_up() {
        let limits = [(1, 1), (1, 2), (4, 4), (4, 40), (3, 60), (100, 100), (1000, 1000), (1, 10_000)];
        for (l0_runs, l0_slow) in limits {
            let bytes = [4 << 10, 192 << 20, 1 << 50];
            let layouts =
                [options::Layout::Adaptive, options::Layout::Auto as fn(Adaptive) -> options::Layout];
            for (l0_bytes, layout) in
                bytes.into_iter().flat_map(|bytes| layouts.map(|layout| (bytes, layout)))
            {
                let governor = Governor { l0_slow, l0_stop: l0_slow + 1, ..Governor::default() };
                let tree = TreeOptions {
                    layout: layout(Adaptive { l0_bytes, l0_runs }),
                    pacer: options::Pacer::Governor(governor),
                    ..TreeOptions::default()
                };
                let policy = PolicyConfig::new(&tree, 2);
                let Layout::Leveled(layout) = policy.layout else { panic!("an adaptive one is leveled") };
                assert!(layout.l0_runs_max <= l0_slow as u64, "{layout:?}");
                for overwrite_ratio in [0.0, 0.3, 1.0, f64::NAN] {
                    // An empty tree is due at what it may hold.
                    let run_bytes =
                        policy.layout.level0_run_bytes(&Version::empty(), overwrite_ratio).unwrap();
                    assert!(run_bytes * l0_slow as u64 >= l0_bytes, "{layout:?}");
                }
            }
        }
    }

    /// What golden cases and figures were made with: the default, in numbers.
    #[test]
    fn the_default_means_what_it_says() {
        let config = PolicyConfig::new(&TreeOptions::default(), 2);
        let expected = LeveledConfig {
            level1_bytes: 192 << 20,
            ratio: None,
            l0_trigger: 3,
            level0: Level0Width::Fifth,
            l0_full_max: 18,
            l0_runs_max: 36,
            l0_runs_due: 54,
        };
        assert_eq!(config.layout, Layout::Leveled(expected));
        let group = PickerConfig {
            group_bytes: 16 << 20,
            group_parts: 4,
            settle: true,
            expansion_bytes_max: 41 << 20,
            grandparent_bytes_max: 10 << 20,
        };
        assert_eq!(config.picker, Picker::Cursor(group));
        let size = SizeConfig { table_bytes: 1 << 20, grandparent_bytes_max: 10 << 20, cuts_flushes: true };
        assert_eq!(config.cutter, Cutter::Size(size));
    }
}
