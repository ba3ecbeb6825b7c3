//! Schedules: scripts of a store's life, short enough to be interrupted at every call.

mod scripts;

use std::path::Path;
use std::sync::Arc;

use crate::tree_parts::TreeParts as _;
use terrace::env::simulated::{SimEnv, Survival};
use terrace::tree::{Components, Cutter, Flushes, Layout, PackLayout, Picker, Prefixed, TableSize};
use terrace::{Db, KeyspaceOptions, Options, Prefix};

use crate::client::{Client, DIR, Jobs, Step};
use crate::option_sets::{guarded, lazy_leveling, lsbm, three_devices, tiering, two_devices};
use crate::options::tiny;

/// A schedule, and a check that it really does what its name says.
pub struct Schedule {
    pub name: &'static str,
    pub options: fn() -> Options,
    pub run: fn(&mut Client) -> Step,
    /// Checks the run without power cuts and faults.
    pub proof: fn(&Jobs, &Arc<SimEnv>) -> bool,
}

pub const SCHEDULES: &[Schedule] = &[
    Schedule {
        name: "creation",
        options: tiny,
        run: scripts::creation,
        proof: |_, env| count(env, "CURRENT") == 1,
    },
    Schedule { name: "puts", options: tiny, run: scripts::puts, proof: |jobs, _| jobs.flushes == 0 },
    Schedule {
        name: "synced puts",
        options: tiny,
        run: scripts::synced_puts,
        proof: |jobs, _| jobs.flushes == 0,
    },
    Schedule { name: "batches", options: tiny, run: scripts::batches, proof: |_, _| true },
    Schedule { name: "flushes", options: tiny, run: scripts::flushes, proof: |jobs, _| jobs.flushes >= 6 },
    Schedule {
        name: "compactions",
        options: tiny,
        run: scripts::compactions,
        proof: |jobs, _| jobs.compactions >= 2,
    },
    Schedule {
        name: "one table a file",
        options: one_table,
        run: scripts::compactions,
        proof: |jobs, _| jobs.compactions >= 2,
    },
    Schedule {
        name: "intra-L0 compactions",
        options: many_runs,
        run: scripts::intra_l0,
        proof: |jobs, _| jobs.intra_l0 >= 1,
    },
    Schedule { name: "moves", options: tiny, run: scripts::moves, proof: |jobs, _| jobs.moves >= 1 },
    Schedule {
        name: "moves beside compactions",
        options: tiny,
        run: scripts::moves_beside_compactions,
        proof: |jobs, _| jobs.moves >= 2 && jobs.compactions >= 2,
    },
    Schedule {
        name: "tiers",
        options: tiering,
        run: scripts::moves_beside_compactions,
        proof: |jobs, _| jobs.moves >= 2 && jobs.compactions >= 1,
    },
    Schedule {
        name: "lazy tiers in parts",
        options: lazy_leveling,
        run: scripts::moves_beside_compactions,
        proof: |jobs, _| jobs.moves >= 1 && jobs.compactions >= 1,
    },
    Schedule {
        name: "levels on top of each other",
        options: prefixed,
        run: scripts::levels_on_top,
        proof: |jobs, _| jobs.moves >= 2 && jobs.compactions >= 4,
    },
    Schedule {
        name: "guards",
        options: only_guards,
        run: scripts::guards,
        proof: |jobs, env| jobs.compactions >= 4 && has_guards_and_runs(env),
    },
    Schedule {
        name: "compaction buffer",
        options: small_lsbm,
        run: scripts::rounds,
        proof: |jobs, _| jobs.moves >= 2 && jobs.compactions >= 4 && jobs.kept_tables > 0,
    },
    Schedule {
        name: "two devices",
        options: two_devices,
        run: scripts::compactions,
        proof: |jobs, env| jobs.compactions >= 2 && packs_in(env, "/second") > 0 && packs_in(env, DIR) > 0,
    },
    Schedule {
        name: "three devices",
        options: three_devices,
        run: scripts::moves_beside_compactions,
        proof: |jobs, env| {
            jobs.compactions >= 2
                && packs_in(env, "/second") + packs_in(env, "/third") > 0
                && packs_in(env, DIR) > 0
        },
    },
    Schedule {
        name: "folds",
        options: tiny,
        run: scripts::folds,
        proof: |jobs, _| jobs.runs_max > 1 && jobs.runs_at_last == 1,
    },
    Schedule {
        name: "manifest",
        options: tiny,
        run: scripts::manifest,
        proof: |_, env| newest(env, "MANIFEST-") >= 3,
    },
    Schedule {
        name: "log segments",
        options: small_log,
        run: scripts::segments,
        proof: |_, env| newest(env, ".wal") >= 5,
    },
    Schedule {
        name: "lost segments",
        options: long_log,
        run: scripts::lost_segments,
        proof: |jobs, env| jobs.flushes == 0 && newest(env, ".wal") >= 4,
    },
    Schedule {
        name: "log limit",
        options: small_log,
        run: scripts::log_limit,
        proof: |jobs, _| jobs.flushes >= 1,
    },
    Schedule {
        name: "keyspaces",
        options: tiny,
        run: scripts::keyspaces,
        proof: |jobs, _| jobs.flushes >= 2,
    },
    Schedule {
        name: "removals beside flushes",
        options: tiny,
        run: scripts::many_removals,
        proof: |jobs, _| jobs.flushes >= 4,
    },
    Schedule {
        name: "reopening",
        options: tiny,
        run: scripts::reopening,
        proof: |_, env| newest(env, ".wal") >= 10,
    },
    Schedule {
        name: "big batches",
        options: tiny,
        run: scripts::big_batches,
        proof: |jobs, _| jobs.flushes >= 1,
    },
    Schedule {
        name: "split batches",
        options: tiny,
        run: scripts::split_batches,
        proof: |jobs, _| jobs.flushes >= 1,
    },
    Schedule {
        name: "compaction",
        options: tiny,
        run: scripts::compaction,
        proof: |jobs, _| jobs.compactions >= 2,
    },
    Schedule {
        name: "range deletes",
        options: tiny,
        run: scripts::range_deletes,
        proof: |jobs, _| jobs.flushes >= 4 && jobs.compactions >= 1,
    },
    Schedule {
        name: "full memtables",
        options: tiny,
        run: scripts::full_memtables,
        proof: |jobs, _| jobs.compactions >= 1,
    },
    Schedule { name: "ingests", options: tiny, run: scripts::ingests, proof: |jobs, _| jobs.flushes >= 3 },
    Schedule {
        name: "transactions",
        options: tiny,
        run: scripts::transactions,
        proof: |jobs, _| jobs.flushes >= 2,
    },
    Schedule {
        name: "settings",
        options: tiny,
        run: scripts::settings,
        proof: |jobs, _| jobs.compactions >= 1,
    },
    Schedule {
        name: "recycled files and reserve",
        options: with_reserve,
        run: scripts::recycled_files_and_reserve,
        proof: |jobs, env| count(env, "RESERVE") == 1 && jobs.recycled_bytes > 0,
    },
    Schedule {
        name: "holes",
        options: large_packs,
        run: scripts::holes,
        // No barrier: a power cut finds them un-synced.
        proof: |jobs, _| jobs.punches >= 3 && jobs.hole_syncs == 0,
    },
    Schedule {
        name: "rewrites",
        options: large_packs,
        run: scripts::rewrites,
        proof: |jobs, _| jobs.rewrites >= 2 && jobs.punches == 0,
    },
    Schedule {
        name: "preallocated packs",
        options: small_log,
        run: scripts::preallocated_packs,
        // Most jobs find a pack whose name is durable.
        proof: |jobs, _| {
            jobs.preallocate_syncs >= 4 && jobs.flushes + jobs.compactions > jobs.directory_syncs
        },
    },
];

fn one_table() -> Options {
    let tree = tiny().tree.with(|tree| tree.files.packs = PackLayout::OneTable);
    Options { tree, background_threads: Some(2), ..tiny() }
}

/// PTierDB's layout: what comes from above lies on top of a level.
fn prefixed() -> Options {
    let tree = tiny().tree.with(|tree| {
        tree.layout = Layout::Prefixed(Prefixed { level1_bytes: 8 << 10, ratio: 2, l0_trigger: 2 });
        tree.picker = Picker::Components(Components { job_bytes: 16 << 10, ..Components::default() });
        tree.cutter = Cutter::Prefix(TableSize { table_bytes: 2 << 10, flushes: Flushes::Whole });
    });
    let keyspace = KeyspaceOptions { prefix: Some(Prefix::Fixed(1)), ..KeyspaceOptions::default() };
    Options { keyspace, tree, ..tiny() }
}

/// LSbM's levels, so small that some go down as wholes.
fn small_lsbm() -> Options {
    let tree = lsbm().tree.with(|tree| *tree.level1_bytes() = 8 << 10);
    Options { background_threads: Some(1), tree, ..lsbm() }
}

/// Guards part tables, and nothing else does.
fn only_guards() -> Options {
    let tree = guarded().tree.with(|tree| tree.tables().table_bytes = 1 << 20);
    Options { memtable_bytes: 64 << 10, background_threads: Some(1), tree, ..guarded() }
}

/// Whether a level below level 0 has several runs, one of which has several tables.
fn has_guards_and_runs(env: &SimEnv) -> bool {
    let levels = env.crash(Survival::Everything).simulate(|env| {
        let db = Db::builder(DIR).env(env).options(only_guards()).read_only().open().ok()?;
        Some(db.keyspace("default").ok()?.shape().levels)
    });
    levels.is_some_and(|levels| levels[1..].iter().any(|level| level.runs > 1 && level.tables > level.runs))
}

fn small_log() -> Options {
    Options { memtable_bytes: 64 << 10, wal_bytes_max: 64 << 10, ..tiny() }
}

/// Level 0 may have many runs, and what lies below is large beside them.
fn many_runs() -> Options {
    let tree = tiny().tree.with(|tree| {
        tree.set_ratio(None);
        *tree.level1_bytes() = 1 << 20;
        *tree.l0_trigger() = 50;
        tree.governor().l0_slow = 80;
        tree.governor().l0_stop = 90;
        tree.group().bytes = 64 << 10;
    });
    Options { memtable_bytes: 256 << 10, wal_bytes_max: 1 << 20, tree, ..tiny() }
}

/// Several segments before anything is flushed.
fn long_log() -> Options {
    Options { memtable_bytes: 256 << 10, wal_bytes_max: 64 << 10, ..tiny() }
}

/// A range of a few tables is worth a hole.
fn large_packs() -> Options {
    let tree = tiny().tree.with(|tree| {
        tree.tables().table_bytes = 16 << 10;
        tree.block_bytes = 4 << 10;
        *tree.level1_bytes() = 8 << 20;
        *tree.l0_trigger() = 4;
    });
    Options { memtable_bytes: 512 << 10, wal_bytes_max: 2 << 20, memory_bytes: Some(8 << 20), tree, ..tiny() }
}

fn with_reserve() -> Options {
    Options { reserve_bytes: 32 << 10, ..small_log() }
}

fn names(env: &SimEnv) -> Vec<String> {
    let in_dir = |path: &Path| Some(path.strip_prefix(DIR).ok()?.to_str()?.to_owned());
    env.files().iter().filter_map(|(path, _)| in_dir(path)).collect()
}

fn count(env: &SimEnv, name: &str) -> usize {
    names(env).iter().filter(|found| *found == name).count()
}

/// Number of packs that have a byte, in `dir`.
fn packs_in(env: &SimEnv, dir: &str) -> usize {
    let is_pack = |path: &Path| {
        path.parent() == Some(Path::new(dir)) && path.extension().is_some_and(|end| end == "pack")
    };
    env.files().iter().filter(|(path, length)| *length > 0 && is_pack(path)).count()
}

/// The largest number in the names that contain `part`.
fn newest(env: &SimEnv, part: &str) -> u64 {
    let numbers = names(env).into_iter().filter(|name| name.contains(part));
    numbers.filter_map(|name| name.replace(part, "").parse().ok()).max().unwrap_or(0)
}
