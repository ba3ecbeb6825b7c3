//! Properties: the figures of [`Stats`] by name, for scripts and dashboards.

use std::fmt::Write;

use super::Db;
use crate::stats::{KeyspaceStats, LevelShape, Stats};
use crate::types::LEVELS;

/// A property: a name, and how its value is computed.
struct Property {
    /// The name behind "terrace.". If RocksDB or LevelDB has the same figure, it is their name.
    name: &'static str,
    value: fn(&Stats) -> String,
}

macro_rules! properties {
    ($($name:literal => $value:expr,)*) => {
        const PROPERTIES: &[Property] = &[$(Property { name: $name, value: $value }),*];
        const NAMES: &[&str] = &[$(concat!("terrace.", $name)),*];
    };
}

properties! {
    "stats" => report,
    "levelstats" => levels,
    "num-files-at-level0" => |stats| tables_at(stats, 0),
    "num-files-at-level1" => |stats| tables_at(stats, 1),
    "num-files-at-level2" => |stats| tables_at(stats, 2),
    "num-files-at-level3" => |stats| tables_at(stats, 3),
    "num-files-at-level4" => |stats| tables_at(stats, 4),
    "num-files-at-level5" => |stats| tables_at(stats, 5),
    "num-files-at-level6" => |stats| tables_at(stats, 6),
    "num-files-at-level7" => |stats| tables_at(stats, 7),
    "num-entries" => |stats| entries(stats).to_string(),
    "num-deletes" => |stats| sum_of_levels(stats, |level| level.tombstones),
    "estimate-num-keys" => |stats| estimated_keys(stats).to_string(),
    "estimate-live-data-size" => |stats| stats.space.live_bytes.to_string(),
    "live-sst-files-size" => |stats| stats.space.live_bytes.to_string(),
    "total-sst-files-size" => |stats| (stats.space.live_bytes + stats.space.dead_bytes).to_string(),
    "held-bytes" => |stats| sum_of_levels(stats, |level| level.held_bytes),
    "released-bytes" => |stats| sum_of_levels(stats, |level| level.released_bytes),
    "buffer-bytes" => |stats| sum(stats, |space| space.buffer.held_bytes),
    "num-pack-files" => |stats| stats.space.pack_files.to_string(),
    "dead-bytes" => |stats| stats.space.dead_bytes.to_string(),
    "kept-dead-bytes" => |stats| stats.space.kept_bytes.to_string(),
    "num-data-ranges" => |stats| stats.space.data_ranges.to_string(),
    "max-data-ranges-per-pack" => |stats| stats.space.data_ranges_max.to_string(),
    "num-punches" => |stats| stats.punch.punches.to_string(),
    "punched-bytes" => |stats| stats.punch.bytes.to_string(),
    "punch-micros" => |stats| stats.punch.micros.to_string(),
    "punch-failures" => |stats| stats.punch.failures.to_string(),
    "wal-size" => |stats| stats.space.wal_bytes.to_string(),
    "cur-size-active-mem-table" => |stats| {
        let active = |space: &KeyspaceStats| space.memtable_bytes - space.sealed_bytes;
        stats.keyspaces.iter().map(active).sum::<u64>().to_string()
    },
    "cur-size-all-mem-tables" => |stats| stats.memtable_bytes.to_string(),
    "num-immutable-mem-table" => |stats| sum(stats, |space| space.sealed_memtables),
    "num-entries-all-mem-tables" => |stats| sum(stats, |space| space.memtable_entries),
    "mem-table-flush-pending" => |stats| {
        u8::from(stats.keyspaces.iter().any(|space| space.sealed_memtables > 0)).to_string()
    },
    "num-running-flushes" => |stats| stats.running_flushes.to_string(),
    "num-running-compactions" => |stats| stats.running_compactions.to_string(),
    "compaction-pending" => |stats| u8::from(all_levels(stats).any(|level| level.score >= 1.0)).to_string(),
    "estimate-pending-compaction-bytes" => |stats| sum(stats, |space| space.debt_bytes),
    "background-errors" => |stats| stats.background_errors.to_string(),
    "num-snapshots" => |stats| stats.snapshots.to_string(),
    "oldest-snapshot-sequence" => |stats| stats.oldest_snapshot.to_string(),
    "last-sequence" => |stats| stats.last_seq.to_string(),
    "block-cache-capacity" => |stats| stats.cache.capacity.to_string(),
    "block-cache-usage" => |stats| stats.cache.bytes.to_string(),
    "block-cache-hits" => |stats| stats.cache.hits.to_string(),
    "block-cache-misses" => |stats| stats.cache.misses.to_string(),
    "prefix-filter-asked" => |stats| stats.prefix_filter.asked.to_string(),
    "prefix-filter-denied" => |stats| stats.prefix_filter.denied.to_string(),
    "approximate-memory-usage" => |stats| (stats.cache.bytes + stats.memtable_bytes).to_string(),
    "compacted-mebibyte-micros" => |stats| format!("{:.0}", stats.costs.compacted_mebibyte_micros),
    "seek-cached-nanos" => |stats| format!("{:.0}", stats.costs.seek_cached_nanos),
    "filter-probe-nanos" => |stats| format!("{:.1}", stats.costs.filter_probe_nanos),
    "block-read-nanos" => |stats| format!("{:.0}", stats.costs.block_read_nanos),
    "barrier-micros" => |stats| format!("{:.0}", stats.costs.barrier_micros),
    "load" => |stats| load(stats),
    "write-amplification" => |stats| format!("{:.3}", stats.write_amplification()),
}

impl Db {
    /// The value of the property `name`, one of [`Db::properties`], over all keyspaces; `None` if there is no such
    /// property. Sizes are in bytes. The names that RocksDB and LevelDB give the same figures are known, too, with their
    /// prefixes "rocksdb." and "leveldb.". [`Db::stats`] has the figures as numbers.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// db.put("key", "value")?;
    /// db.flush()?;
    /// assert_eq!(db.property("terrace.num-entries").as_deref(), Some("1"));
    /// assert_eq!(db.property("rocksdb.estimate-num-keys").as_deref(), Some("1"));
    /// assert_eq!(db.property("terrace.mood"), None);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    #[must_use]
    pub fn property(&self, name: &str) -> Option<String> {
        let (prefix, name) = name.split_once('.')?;
        let property = PROPERTIES.iter().find(|property| property.name == name)?;
        matches!(prefix, "terrace" | "rocksdb" | "leveldb").then(|| (property.value)(&self.stats()))
    }

    /// The names that [`Db::property`] knows.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// for name in terrace::Db::properties() {
    ///     println!("{name}: {}", db.property(name).unwrap());
    /// }
    /// # Ok::<(), terrace::Error>(())
    /// ```
    #[must_use]
    pub fn properties() -> &'static [&'static str] {
        NAMES
    }
}

fn all_levels(stats: &Stats) -> impl Iterator<Item = &LevelShape> {
    stats.keyspaces.iter().flat_map(|space| &space.shape.levels)
}

fn sum(stats: &Stats, of: fn(&KeyspaceStats) -> u64) -> String {
    stats.keyspaces.iter().map(of).sum::<u64>().to_string()
}

fn sum_of_levels(stats: &Stats, of: fn(&LevelShape) -> u64) -> String {
    all_levels(stats).map(of).sum::<u64>().to_string()
}

fn tables_at(stats: &Stats, level: usize) -> String {
    all_levels(stats)
        .filter(|shape| shape.level == level)
        .map(|shape| shape.tables)
        .sum::<usize>()
        .to_string()
}

/// Entries in tables and memtables.
fn entries(stats: &Stats) -> u64 {
    let in_memory: u64 = stats.keyspaces.iter().map(|space| space.memtable_entries).sum();
    in_memory + all_levels(stats).map(|level| level.entries).sum::<u64>()
}

/// An estimate: as if every tombstone in a table hid an entry, and every other entry were a key of its own.
fn estimated_keys(stats: &Stats) -> u64 {
    let tombstones: u64 = all_levels(stats).map(|level| level.tombstones).sum();
    entries(stats).saturating_sub(2 * tombstones)
}

/// A line for each level that holds anything, in any keyspace.
fn levels(stats: &Stats) -> String {
    let mut text = String::from("Level  Runs  Tables        Bytes      Entries  Score\n");
    for level in 0..LEVELS {
        let shapes: Vec<_> = all_levels(stats).filter(|shape| shape.level == level).collect();
        let total = |of: fn(&LevelShape) -> u64| shapes.iter().map(|shape| of(shape)).sum::<u64>();
        let score = shapes.iter().map(|shape| shape.score).fold(0.0, f64::max);
        let runs = total(|shape| shape.runs as u64);
        if runs > 0 {
            let (tables, bytes) = (total(|shape| shape.tables as u64), total(|shape| shape.bytes));
            let entries = total(|shape| shape.entries);
            // Writing to a string does not fail.
            let _ = writeln!(text, "{level:>5} {runs:>5} {tables:>7} {bytes:>12} {entries:>12} {score:>6.2}");
        }
    }
    text
}

/// The load, and what the pacer makes of it.
fn load(stats: &Stats) -> String {
    let load = &stats.load;
    let allowed = load.background_rate.map_or("any".to_owned(), |rate| format!("{rate} bytes/s"));
    format!(
        "{}; clients {} bytes/s of {}, {allowed} allowed to jobs, {} running; {} writers wait; level 0 counts for {} runs; {} bytes to compact",
        if load.is_high { "high" } else { "low" },
        load.client_rate,
        load.device_rate,
        load.running_jobs,
        load.waiting_writers,
        load.level0_runs,
        load.debt_bytes,
    )
}

/// The levels, and the counters of the store's work.
fn report(stats: &Stats) -> String {
    let mut text = levels(stats);
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{name}: {value}");
    };
    line("User bytes written", stats.user_bytes_written.to_string());
    line("Write amplification", format!("{:.2}", stats.write_amplification()));
    line("Flushes", format!("{}, {} bytes", stats.flush.jobs, stats.flush.bytes));
    line(
        "Compactions",
        format!(
            "{}, {} bytes in, {} out",
            stats.compaction.jobs, stats.compaction.bytes_in, stats.compaction.bytes_out
        ),
    );
    line("Intra-L0 compactions", stats.compaction.intra_l0.to_string());
    line("Moves", stats.compaction.moves.to_string());
    line(
        "Holes punched",
        format!("{}, {} bytes, {} us", stats.punch.punches, stats.punch.bytes, stats.punch.micros),
    );
    line("Block cache hit ratio", format!("{:.3}", stats.cache.hit_ratio()));
    let costs = &stats.costs;
    line(
        "Costs",
        format!(
            "{:.0} us per MiB compacted, {:.0} ns per cached seek, {:.1} ns per filter, {:.0} ns per block read, \
             {:.0} us per barrier",
            costs.compacted_mebibyte_micros,
            costs.seek_cached_nanos,
            costs.filter_probe_nanos,
            costs.block_read_nanos,
            costs.barrier_micros
        ),
    );
    line("Load", load(stats));
    for stall in &stats.stalls {
        line("Stalls", format!("{} times, {} us: {}", stall.count, stall.micros, stall.reason));
    }
    text
}
