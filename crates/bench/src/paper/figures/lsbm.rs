//! LSbM: the effect of compactions on the cache.
//!
//! The paper keeps 20 GB of records of 1 KB on two disks of 15,000 revolutions, with level 0 of 100 MB, level 1 of 1
//! GB, a cache of 6 GB and 3 GB of it hot; one client writes 1,000 records a second, eight read, for 20,000 seconds.

use std::sync::Arc;
use std::time::Duration;

use terrace::tree::{Cutter, Flushes, Layout, Leveled, TableSize};
use terrace::{Options, Stats};

use super::{LEVEL1_BYTES_MIN, MEMTABLE_BYTES_MIN, memory_for, seconds, series};
use crate::Result;
use crate::generator::Rng;
use crate::paper::client::{Client, Records};
use crate::paper::experiment::{Findings, Setting};
use crate::paper::machine::Body;
use crate::paper::record::{Axis, Relation};
use crate::paper::timeline::{Sample, sampled};
use crate::workload::{Arrivals, RangeHot, Rate};
use crate::ycsb::keys::InsertOrder;

/// Records of 456 bytes in blocks of 2 KiB: four to a block, as the paper's, but below the size from which Terrace caches
/// records instead of blocks. All sizes in bytes follow, so that levels and cache hold as many records as the paper's.
const KEY_BYTES: usize = 16;
const VALUE_BYTES: usize = 440;
const BLOCK_BYTES: u32 = 2048;
const PAPER_RECORD_BYTES: f64 = 1024.0;

const RECORDS: u64 = 20_971_520;
const HOT_RECORDS: u64 = 3 << 20;
const LEVEL0_BYTES: u64 = 100_000_000;
const LEVEL1_BYTES: u64 = 1_000_000_000;
const TABLE_BYTES: u64 = 2 << 20;
const CACHE_BYTES: u64 = 6_000_000_000;
const TIME: Duration = Duration::from_secs(20_000);

/// Number of runs at which level 0 is compacted.
const LEVEL0_RUNS: u64 = 4;

/// A file smaller than this would take longer to find than to transfer.
const TABLE_BYTES_MIN: u64 = 256 << 10;

const READERS: u64 = 8;
const WRITES_PER_SECOND: f64 = 1000.0;
const SAMPLES: u32 = 200;

/// A fall of the hit ratio that counts, in points of a hundred.
const FALL: f64 = 5.0;

/// The first part of the samples, while the cache fills, is not judged.
const COLD_SAMPLES: usize = 50;

const DEVIATIONS: &[&str] = &[
    "records of 456 B in blocks of 2 KiB, all sizes in proportion: Terrace caches larger records one by one",
    "time is scaled as data is: what is written per second is not, so levels fill so many times sooner",
    "tables of at least 256 KiB, whatever the scale, so that seeks do not outweigh transfers",
];

fn options(setting: &Setting) -> Options {
    let bytes = |papers: u64| {
        let record = (KEY_BYTES + VALUE_BYTES) as f64;
        setting.scaled((papers as f64 * record / PAPER_RECORD_BYTES) as u64)
    };
    let mut options = Options::profile("leveldb-2m").unwrap_or_default();
    options.keyspace.filter_bits_per_key = 15;
    options.memtable_bytes = (bytes(LEVEL0_BYTES) / LEVEL0_RUNS).max(MEMTABLE_BYTES_MIN);
    options.memory_bytes = Some(memory_for(bytes(CACHE_BYTES), options.memtable_bytes));
    options.tree.layout = Layout::Leveled(Leveled {
        level1_bytes: bytes(LEVEL1_BYTES).max(LEVEL1_BYTES_MIN),
        l0_trigger: LEVEL0_RUNS as usize,
        ..Leveled::default()
    });
    let table_bytes = bytes(TABLE_BYTES).max(TABLE_BYTES_MIN);
    options.tree.cutter = Cutter::Size(TableSize { table_bytes, flushes: Flushes::Whole });
    options.tree.block_bytes = BLOCK_BYTES;
    options
}

/// Writes at a steady rate until the time is over.
fn writer(mut client: Client, mut workload: RangeHot, time: Duration) -> Body<()> {
    Box::new(move || {
        let started = client.now();
        for arrival in Arrivals::new(Rate::Sustained(WRITES_PER_SECOND)).take_while(|at| *at < time) {
            client.wait_until(started + arrival);
            if client.now() - started >= time {
                break;
            }
            client.perform(workload.write())?;
        }
        Ok(())
    })
}

/// Reads as fast as it can until the time is over.
fn reader(mut client: Client, workload: RangeHot, mut rng: Rng, time: Duration) -> Body<()> {
    Box::new(move || {
        let started = client.now();
        while client.now() - started < time {
            client.perform(workload.read(&mut rng))?;
        }
        Ok(())
    })
}

/// The counters of a leveled store under RangeHot reads and writes, from full but cold on.
fn range_hot(setting: &Setting, options: Options) -> Result<Vec<Sample<Stats>>> {
    let seed = setting.seed;
    let (count, hot) = (setting.scaled(RECORDS), setting.scaled(HOT_RECORDS));
    let time = setting.scaled_time(TIME);
    setting.machine.run(seed, move |lab| {
        let records = Arc::new(Records::new(InsertOrder::Ordered, KEY_BYTES, VALUE_BYTES)?);
        let db = lab.open(options)?;
        records.ingest(&db, count)?;
        let workload = RangeHot::new(count, hot, seed);
        let client = || Client::new(lab, &db, records.clone());
        let mut bodies = vec![writer(client(), workload.clone(), time)];
        bodies.extend(
            (0..READERS).map(|thread| reader(client(), workload.clone(), Rng::stream(seed, thread), time)),
        );
        let store = db.clone();
        let (mut samples, _) = sampled(lab, time / SAMPLES, move || store.stats(), bodies)?;
        samples.retain(|sample| sample.at <= time);
        db.close()?;
        Ok(samples)
    })
}

/// A figure for each interval between samples, over the time at its end.
fn by_interval(samples: &[Sample<Stats>], measure: impl Fn(&Stats, &Stats, f64) -> f64) -> Vec<[f64; 2]> {
    let value = |pair: &[Sample<Stats>]| {
        let time = seconds(pair[1].at - pair[0].at);
        [seconds(pair[1].at), measure(&pair[0].seen, &pair[1].seen, time)]
    };
    samples.windows(2).map(value).collect()
}

/// Hit ratio of the block cache, in percent, by time.
fn hit_ratio(samples: &[Sample<Stats>]) -> Vec<[f64; 2]> {
    by_interval(samples, |before, after, _| {
        let hits = (after.cache.hits - before.cache.hits) as f64;
        let misses = (after.cache.misses - before.cache.misses) as f64;
        100.0 * hits / (hits + misses).max(1.0)
    })
}

/// How the points fall and rise once the cache is warm.
struct Swing {
    low: f64,
    high: f64,
    /// Falls by at least [`FALL`], each after a rise by as much.
    falls: usize,
    /// Coordinates that the points span.
    span: f64,
}

impl Swing {
    fn of(points: &[[f64; 2]]) -> Self {
        let warm = points.get(COLD_SAMPLES..).unwrap_or_default();
        let low = warm.iter().map(|point| point[1]).fold(f64::INFINITY, f64::min);
        let high = warm.iter().map(|point| point[1]).fold(f64::NEG_INFINITY, f64::max);
        let (mut falls, mut is_falling) = (0, false);
        let mut turn = warm.first().map_or(0.0, |point| point[1]);
        for &[_, value] in warm {
            // The turning point follows the line until that has come back by a fall.
            turn = if is_falling { value.min(turn) } else { value.max(turn) };
            if !is_falling && turn - value >= FALL {
                (falls, is_falling, turn) = (falls + 1, true, value);
            } else if is_falling && value - turn >= FALL {
                (is_falling, turn) = (false, value);
            }
        }
        let span = warm.last().map_or(0.0, |last| last[0]) - warm.first().map_or(0.0, |first| first[0]);
        Self { low, high, falls, span }
    }

    /// That it swings at all, which both figures show.
    fn relations(&self) -> Vec<Relation> {
        let band = self.high - self.low;
        vec![
            Relation::within("band of the hit ratio", "goes up and down", FALL..=f64::INFINITY, band),
            Relation::within(
                "falls of the hit ratio by 5 points or more",
                "again and again",
                3.0..=f64::INFINITY,
                self.falls as f64,
            ),
        ]
    }
}

/// Hit ratio and cache use over time, LevelDB's shape.
pub fn figure_8b(setting: &Setting) -> Result<Findings> {
    let options = options(setting);
    let samples = range_hot(setting, options.clone())?;
    let ratio = hit_ratio(&samples);
    let swing = Swing::of(&ratio);
    // In the paper level 1 fills in 1,000 s, and the hot range of level 2 is updated every 2,000 s.
    let filling = setting.scaled_time(Duration::from_secs(1000));
    let period = swing.span / swing.falls as f64 / seconds(filling);
    let mut relations = swing.relations();
    relations.push(Relation::within(
        "mean time between falls / time in which level 1 fills",
        "about 2",
        1.5..=2.5,
        period,
    ));
    let use_of_cache = by_interval(&samples, |_, after, _| {
        100.0 * after.cache.bytes as f64 / after.cache.capacity.max(1) as f64
    });
    let merged = by_interval(&samples, |before, after, time| {
        (after.compaction.bytes_in - before.compaction.bytes_in) as f64 / 1e6 / time
    });
    let reads = by_interval(&samples, |before, after, time| {
        let reads = |stats: &Stats| stats.cache.hits + stats.cache.misses;
        (reads(after) - reads(before)) as f64 / time
    });
    Ok(Findings {
        x: Axis::linear("time", "s"),
        relations,
        series: vec![
            series("hit ratio", &options, Axis::linear("hit ratio", "%"), ratio),
            series("cache use", &options, Axis::linear("cache in use", "%"), use_of_cache),
            series("merges read", &options, Axis::linear("read by merges", "MB/s"), merged),
            series("blocks asked for", &options, Axis::linear("blocks asked for", "1/s"), reads),
        ],
        deviations: DEVIATIONS.to_vec(),
        machine: setting.machine.clone(),
    })
}

/// Hit ratio over time of a store that caches blocks itself.
pub fn figure_2(setting: &Setting) -> Result<Findings> {
    let options = options(setting);
    let ratio = hit_ratio(&range_hot(setting, options.clone())?);
    let swing = Swing::of(&ratio);
    let mut deviations = DEVIATIONS.to_vec();
    deviations.push("a leveled tree in the place of bLSM's, whose gear is not there");
    Ok(Findings {
        x: Axis::linear("time", "s"),
        relations: swing.relations(),
        series: vec![series(
            "leveled tree, cache of the store",
            &options,
            Axis::linear("hit ratio", "%"),
            ratio,
        )],
        deviations,
        machine: setting.machine.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn swing(values: impl Iterator<Item = f64>) -> Swing {
        let cold = (0..COLD_SAMPLES).map(|_| 0.0);
        let points: Vec<[f64; 2]> =
            (0_u32..).map(f64::from).zip(cold.chain(values)).map(|(x, y)| [x, y]).collect();
        Swing::of(&points)
    }

    #[test]
    fn falls_of_a_saw_tooth_are_counted_and_small_ones_are_not() {
        let saw = swing((0..60).map(|at| f64::from(at % 10)));
        assert_eq!((saw.falls, saw.low, saw.high, saw.span), (5, 0.0, 9.0, 59.0));
        let ripple = swing((0..60).map(|at| f64::from(at % 5)));
        assert_eq!(ripple.falls, 0);
        assert_eq!(swing((0..60).map(|_| 97.0)).falls, 0);
    }
}
