//! `terrace stats`: prints a store's statistics.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use serde_json::{Map, Value, json};
use terrace::{ByCause, CompactionStats, PunchStats, RewriteStats, SpaceStats, Stats};
use terrace_metrics::{Picture, prometheus};

use super::{Answer, shape};
use crate::place::open_to_read;

/// Print a store's statistics: space, keyspaces, and counters since it was opened by this command
#[derive(Args)]
#[command(after_help = "\
Examples:
  terrace stats people.db
  terrace stats people.db --json
  terrace stats people.db --prometheus > people.prom

The last one is for the textfile collector of Prometheus' node exporter. The names are stable; docs/operating.md says what to watch.")]
pub struct Arguments {
    /// Directory of the store
    db: PathBuf,

    /// Print an object
    #[arg(long)]
    json: bool,

    /// Print metrics as Prometheus reads them
    #[arg(long, conflicts_with = "json")]
    prometheus: bool,
}

pub fn run(arguments: &Arguments) -> Result<Answer> {
    let stats = open_to_read(&arguments.db)?.stats();
    let mut out = io::stdout().lock();
    if arguments.prometheus {
        out.write_all(prometheus(&[Picture::of(&stats)]).as_bytes())?;
        return Ok(Answer::Yes);
    }
    let mut object = to_json(&stats);
    if arguments.json {
        let shapes = stats.keyspaces.iter().map(|keyspace| shape::to_json(&keyspace.name, &keyspace.shape));
        object.insert("keyspaces".to_owned(), shapes.collect());
        writeln!(out, "{}", Value::Object(object))?;
    } else {
        write_stats(&stats, object, &mut out)?;
    }
    Ok(Answer::Yes)
}

/// The figures as text, then the keyspaces' shapes.
pub fn text(stats: &Stats) -> io::Result<String> {
    let mut text = Vec::new();
    write_stats(stats, to_json(stats), &mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn write_stats(stats: &Stats, figures: Map<String, Value>, out: &mut impl Write) -> io::Result<()> {
    for (name, value) in figures {
        write_text(&name, &value, out)?;
    }
    for keyspace in &stats.keyspaces {
        writeln!(out)?;
        shape::write_text(&keyspace.name, &keyspace.shape, out)?;
    }
    Ok(())
}

/// One line per figure, named by its path in the object.
fn write_text(name: &str, value: &Value, out: &mut impl Write) -> io::Result<()> {
    match value {
        Value::Object(object) => {
            object.iter().try_for_each(|(key, value)| write_text(&format!("{name}.{key}"), value, out))
        }
        figure => writeln!(out, "{name:<24} {figure:>16}"),
    }
}

/// All figures but the keyspaces' shapes.
fn to_json(stats: &Stats) -> Map<String, Value> {
    let (cache, compaction, flush) = (&stats.cache, &stats.compaction, &stats.flush);
    let prefixes = &stats.prefix_filter;
    let stalls = stats
        .stalls
        .iter()
        .map(|stall| (stall.reason.clone(), json!({ "count": stall.count, "micros": stall.micros })));
    let groups = [
        ("last_seq", json!(stats.last_seq)),
        ("memtable_bytes", json!(stats.memtable_bytes)),
        ("user_bytes_written", json!(stats.user_bytes_written)),
        ("user_ops_written", json!(stats.user_ops_written)),
        ("written", by_cause(&stats.written)),
        ("syncs", by_cause(&stats.syncs)),
        (
            "read",
            json!({
                "get": stats.read.get,
                "scan": stats.read.scan,
                "compaction": stats.read.compaction,
                "open": stats.read.open,
                "total": stats.read.total(),
            }),
        ),
        ("packs_opened", json!(stats.packs_opened)),
        ("stalls", Value::Object(stalls.collect())),
        (
            "cache",
            json!({
                "hits": cache.hits,
                "misses": cache.misses,
                "bytes": cache.bytes,
                "capacity": cache.capacity,
            }),
        ),
        ("prefix_filter", json!({ "asked": prefixes.asked, "denied": prefixes.denied })),
        ("compaction", compaction_to_json(compaction)),
        (
            "flush",
            json!({
                "jobs": flush.jobs,
                "records": flush.records,
                "bytes": flush.bytes,
                "micros": flush.micros,
            }),
        ),
        (
            "costs",
            json!({
                "compacted_mebibyte_micros": stats.costs.compacted_mebibyte_micros,
                "seek_cached_nanos": stats.costs.seek_cached_nanos,
                "filter_probe_nanos": stats.costs.filter_probe_nanos,
                "block_read_nanos": stats.costs.block_read_nanos,
                "barrier_micros": stats.costs.barrier_micros,
            }),
        ),
        ("space", taken(&stats.space)),
        ("punch", punching(&stats.punch)),
        ("rewrite", rewriting(&stats.rewrite)),
    ];
    groups.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn compaction_to_json(compaction: &CompactionStats) -> Value {
    json!({
        "jobs": compaction.jobs,
        "intra_l0": compaction.intra_l0,
        "moves": compaction.moves,
        "moved_bytes": compaction.moved_bytes,
        "passed": passed_to_json(compaction),
        "given_up": compaction.given_up,
        "expired_tables": compaction.expired_tables,
        "deleted_tables": compaction.deleted_tables,
        "hidden_tables": compaction.hidden_tables,
        "records_in": compaction.records_in,
        "records_out": compaction.records_out,
        "bytes_in": compaction.bytes_in,
        "bytes_out": compaction.bytes_out,
        "micros": compaction.micros,
        "records_per_second": compaction.records_per_second().round(),
    })
}

/// What has left each level for the next one, down to the deepest of which anything has.
fn passed_to_json(compaction: &CompactionStats) -> Value {
    let deepest = compaction.passed.iter().rposition(|passed| passed.moved + passed.merged > 0);
    let levels = compaction.passed.iter().enumerate().take(deepest.map_or(0, |deepest| deepest + 1));
    let each = levels.map(|(level, passed)| {
        json!({
            "level": level,
            "moved_bytes": passed.moved,
            "merged_bytes": passed.merged,
            "moved_share": (passed.moved_share() * 1000.0).round() / 1000.0,
        })
    });
    each.collect()
}

fn taken(space: &SpaceStats) -> Value {
    json!({
        "live_bytes": space.live_bytes,
        "dead_bytes": space.dead_bytes,
        "kept_bytes": space.kept_bytes,
        "pack_files": space.pack_files,
        "preallocated_files": space.preallocated_files,
        "data_ranges": space.data_ranges,
        "data_ranges_max": space.data_ranges_max,
        "wal_bytes": space.wal_bytes,
        "total_bytes": space.total_bytes,
    })
}

fn punching(punch: &PunchStats) -> Value {
    json!({
        "punches": punch.punches,
        "bytes": punch.bytes,
        "micros": punch.micros,
        "failures": punch.failures,
        "unsupported": punch.unsupported,
    })
}

fn rewriting(rewrite: &RewriteStats) -> Value {
    json!({
        "jobs": rewrite.jobs,
        "packs": rewrite.packs,
        "bytes": rewrite.bytes,
        "micros": rewrite.micros,
    })
}

fn by_cause(counts: &ByCause) -> Value {
    json!({
        "wal": counts.wal,
        "flush": counts.flush,
        "compaction": counts.compaction,
        "rewrite": counts.rewrite,
        "manifest": counts.manifest,
        "directory": counts.directory,
        "reclaim": counts.reclaim,
        "preallocate": counts.preallocate,
        "total": counts.total(),
    })
}
