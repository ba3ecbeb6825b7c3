//! The figures that can be run, a file for each paper.

pub mod bolt;
mod bolt_shapes;
pub mod bolt_stores;
mod bolt_syncs;
mod bolt_ycsb;
pub mod dlc;
pub mod lsbm;
pub mod nvme;
pub mod nvme_devices;
pub mod nvme_heat;
pub mod nvme_records;
pub mod nvme_writes;
pub mod ptier;
mod scaled;
mod ycsb;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use terrace::tree::{
    Adaptive, Components, Cutter, Flushes, Geared, Guarded, Layout, Leveled, Pacer, PackLayout, Picker,
    Prefixed, RatioWindow, TableSize, Tiered,
};
use terrace::{Db, Options, TreeOptions};

use super::client::{Client, Records};
use super::experiment::Setting;
use super::machine::{Body, Lab};
use super::record::{Axis, Series};
use super::timeline::Latencies;
use crate::Result;
use crate::generator::Rng;
use crate::workload::Action;

/// The least budget of memory and the least memtable that the store takes.
const MEMORY_BYTES_MIN: u64 = 1 << 20;
const MEMTABLE_BYTES_MIN: u64 = 4 << 10;
const LEVEL1_BYTES_MIN: u64 = 4 << 10;

/// The budget of memory that leaves `cache_bytes` to the cache beside memtables of `memtable_bytes`: the store takes three
/// of these, and a sixteenth of it all, from the budget.
fn memory_for(cache_bytes: u64, memtable_bytes: u64) -> u64 {
    let memory = (cache_bytes + 3 * memtable_bytes) * 16 / 15;
    memory.max(4 * memtable_bytes).max(MEMORY_BYTES_MIN)
}

/// The settings that matter, with their units.
fn configuration(options: &Options) -> BTreeMap<String, String> {
    let entries = [
        ("memory", options.memory_bytes.map_or("default".to_owned(), bytes)),
        ("memtable", bytes(options.memtable_bytes)),
        ("filter", format!("{} bits per key", options.keyspace.filter_bits_per_key)),
        ("block", bytes(options.tree.block_bytes.into())),
    ];
    entries
        .into_iter()
        .chain(decisions(&options.tree))
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

fn bytes(bytes: u64) -> String {
    format!("{bytes} B")
}

/// The words for a layout: what level 1 may hold, how levels grow, and when level 0 is due.
fn levels(layout: Layout) -> (String, String, String) {
    match layout {
        Layout::Adaptive(Adaptive { l0_bytes, l0_runs }) => {
            (bytes(l0_bytes), "even".to_owned(), l0_runs.to_string())
        }
        Layout::Auto(Adaptive { l0_bytes, l0_runs }) => {
            (bytes(l0_bytes), "even, level 0 by the mix".to_owned(), l0_runs.to_string())
        }
        Layout::Leveled(Leveled { level1_bytes, ratio, l0_trigger }) => {
            (bytes(level1_bytes), ratio.to_string(), l0_trigger.to_string())
        }
        Layout::Prefixed(Prefixed { level1_bytes, ratio, l0_trigger }) => {
            (format!("{level1_bytes} B, on top of each other"), ratio.to_string(), l0_trigger.to_string())
        }
        Layout::Tiered(Tiered { level1_bytes, ratio, runs, last_runs, l0_trigger }) => (
            bytes(level1_bytes),
            format!("{ratio}; {runs} runs, {last_runs} in the last level"),
            l0_trigger.to_string(),
        ),
        Layout::Geared(Geared { level1_bytes, ratio, l0_trigger }) => {
            (format!("{level1_bytes} B in two components"), ratio.to_string(), l0_trigger.to_string())
        }
        Layout::Guarded(Guarded { l0_trigger, top_bits, bits_step, runs_max, guard_bytes }) => (
            format!("guards of {top_bits} bits, {bits_step} fewer by level"),
            format!("{runs_max} runs, or {} and twice as many by level", bytes(guard_bytes)),
            l0_trigger.to_string(),
        ),
        other => (format!("{other:?}"), String::new(), String::new()),
    }
}

/// The decisions of a tree; those of a variant that has no words here as they are.
fn decisions(tree: &TreeOptions) -> Vec<(&'static str, String)> {
    let (level1, ratio, l0_trigger) = levels(tree.layout);
    let mut entries = vec![("level 1", level1), ("level ratio", ratio)];
    let victims = match tree.picker {
        Picker::Cursor(group) => Some(("Cursor", group)),
        Picker::LeastOverlap(group) => Some(("LeastOverlap", group)),
        Picker::RatioWindow(RatioWindow { group, window_tables, oldest_runs }) => {
            entries.extend([
                ("tables or groups of a window, with what it overlaps", window_tables.to_string()),
                ("runs of level 0 in a compaction", oldest_runs.to_string()),
            ]);
            Some(("RatioWindow", group))
        }
        Picker::Components(Components { moves, access_bytes, accesses_min, job_bytes }) => {
            entries.extend([
                ("victims", "Components".to_owned()),
                ("bytes of a job, about", bytes(job_bytes)),
                ("tables that overlap little move", moves.to_string()),
                ("bytes of a table for each search before it is merged", bytes(access_bytes)),
                ("searches before a table is merged, at least", accesses_min.to_string()),
            ]);
            None
        }
        other => {
            entries.push(("victims", format!("{other:?}")));
            None
        }
    };
    if let Some((order, group)) = victims {
        entries.extend([
            ("victims", order.to_owned()),
            ("group of victims", bytes(group.bytes)),
            ("group of victims, at most this part of a level", format!("1/{}", group.parts)),
            ("settled compaction", group.settle.to_string()),
        ]);
    }
    match tree.cutter {
        Cutter::Size(TableSize { table_bytes, flushes })
        | Cutter::Guards(TableSize { table_bytes, flushes }) => entries.extend([
            ("table", bytes(table_bytes)),
            ("one table per flush", (flushes == Flushes::Whole).to_string()),
        ]),
        Cutter::Prefix(TableSize { table_bytes, flushes }) => entries.extend([
            ("table", format!("{table_bytes} B and up to the end of a prefix")),
            ("one table per flush", (flushes == Flushes::Whole).to_string()),
        ]),
        other => entries.push(("table", format!("{other:?}"))),
    }
    match tree.pacer {
        Pacer::Governor(governor) => entries.extend([(
            "level 0 trigger, slow-down, stop",
            format!("{l0_trigger}, {}, {}", governor.l0_slow, governor.l0_stop),
        )]),
        other => entries.push(("pacer", format!("{other:?}"))),
    }
    let files = match tree.files.packs {
        PackLayout::OneTable => "a file per table".to_owned(),
        PackLayout::Many { bytes_max } => format!("a file per job, at most {bytes_max} B"),
        other => format!("{other:?}"),
    };
    entries.extend([("files", files), ("descriptors", format!("{:?}", tree.files.descriptors))]);
    entries
}

/// A line of a store that was opened with `options`.
fn series(name: &str, options: &Options, y: Axis, points: Vec<[f64; 2]>) -> Series {
    Series {
        name: name.into(),
        profile: options.profile_name().into(),
        configuration: configuration(options),
        y,
        points,
    }
}

/// The next action of a client that draws from its own stream of random numbers; none when it is done.
pub(crate) type Draw = dyn Fn(u64, &mut Rng) -> Action + Send + Sync;

/// `options` with all sizes divided by `scale` but for that of a block, and with that much memory.
pub(crate) fn at_scale(options: &Options, setting: &Setting, memory_bytes: u64) -> Options {
    let mut options = options.clone();
    options.memtable_bytes = setting.scaled(options.memtable_bytes).max(MEMTABLE_BYTES_MIN);
    options.memory_bytes = Some(memory_bytes.max(memory_for(0, options.memtable_bytes)));
    scaled::scale_tree(setting, &mut options.tree);
    options
}

/// Runs `count` actions in a closed loop of `threads` clients: `draw` makes the action of each number. Their latencies.
pub(crate) fn closed_loop(
    lab: &Lab,
    db: &Db,
    records: &Arc<Records>,
    (threads, count, seed): (u64, u64, u64),
    draw: Arc<Draw>,
) -> Result<Latencies> {
    let next = Arc::new(AtomicU64::new(0));
    let bodies = (0..threads).map(|thread| -> Body<Latencies> {
        let mut client = Client::new(lab, db, records.clone());
        let (next, draw, mut rng) = (next.clone(), draw.clone(), Rng::stream(seed, thread));
        Box::new(move || {
            let mut latencies = Latencies::default();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return Ok(latencies);
                }
                latencies.record(client.perform(draw(number, &mut rng))?);
            }
        })
    });
    let mut all = Latencies::default();
    lab.threads(bodies.collect())?.iter().for_each(|latencies| all.merge(latencies));
    Ok(all)
}

fn seconds(time: Duration) -> f64 {
    time.as_secs_f64()
}
