//! The figures that can be run, a file for each paper.

pub mod bolt;
mod bolt_shapes;
pub mod bolt_stores;
mod bolt_syncs;
mod bolt_ycsb;
pub mod dlc;
pub mod lsbm;
pub mod ptier;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use terrace::{Db, Options, PackLayout};

use super::client::{Client, Records};
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
    let tree = &options.tree;
    let bytes = |bytes: u64| format!("{bytes} B");
    let pack = match tree.pack {
        PackLayout::OneTable => "a file per table".to_owned(),
        PackLayout::Many { bytes_max } => format!("a file per job, at most {bytes_max} B"),
        _ => "of another layout".to_owned(),
    };
    let entries = [
        ("memory", options.memory_bytes.map_or("default".to_owned(), bytes)),
        ("memtable", bytes(options.memtable_bytes)),
        ("table", bytes(tree.table_bytes)),
        ("files", pack),
        ("group of victims", bytes(tree.group_bytes)),
        ("group of victims, at most this part of a level", format!("1/{}", tree.group_parts)),
        ("victims", format!("{:?}", tree.victims)),
        ("settled compaction", tree.settle.to_string()),
        ("descriptors", format!("{:?}", tree.descriptors)),
        ("one table per flush", tree.flush_single_table.to_string()),
        ("block", bytes(tree.block_bytes.into())),
        ("level 1", bytes(tree.level1_bytes)),
        ("level ratio", tree.level_ratio.map_or_else(|| "even".to_owned(), |ratio| ratio.to_string())),
        (
            "level 0 trigger, slow-down, stop",
            format!("{}, {}, {}", tree.l0_trigger, tree.l0_slow, tree.l0_stop),
        ),
        ("merges pause for readers", tree.throttle_compactions.to_string()),
        ("filter", format!("{} bits per key", options.keyspace.filter_bits_per_key)),
    ];
    entries.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
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
type Draw = dyn Fn(u64, &mut Rng) -> Action + Send + Sync;

/// Runs `count` actions in a closed loop of `threads` clients: `draw` makes the action of each number. Their latencies.
fn closed_loop(
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
