//! Reads of a hot range beside writes everywhere (LSbM, section VI).

use std::sync::Arc;
use std::time::Duration;

use terrace::Stats;

use super::stores::{DEVIATIONS, KEY_BYTES, RECORDS, Store, VALUE_BYTES};
use crate::Result;
use crate::generator::Rng;
use crate::paper::client::{Client, Records};
use crate::paper::experiment::{Findings, Setting};
use crate::paper::figures::seconds;
use crate::paper::machine::Body;
use crate::paper::record::{Axis, Relation, Series};
use crate::paper::record_cache::RecordCache;
use crate::paper::timeline::{Sample, sampled};
use crate::workload::{Action, Arrivals, RangeHot, Rate};
use crate::ycsb::keys::InsertOrder;

const HOT_RECORDS: u64 = 3 << 20;
const TIME: Duration = Duration::from_secs(20_000);
const READERS: u64 = 8;
const WRITES_PER_SECOND: f64 = 1000.0;
const SAMPLES: u32 = 200;

/// Records of a scan of 100 KB.
const SCANNED: u64 = 100;

/// Who writes and who reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Load {
    /// Single records are read.
    Lookups,
    /// 100 KB are read at a time.
    Scans,
    /// Lookups, beside writes that are drawn one by one and not in a shuffled order of all records.
    IndependentWrites,
    /// Nothing is read.
    WritesAlone,
    /// Nothing is written.
    ReadsAlone,
}

impl Load {
    fn readers(self) -> u64 {
        if self == Self::WritesAlone { 0 } else { READERS }
    }
}

/// Writes at a steady rate until the time is over.
fn writer(mut client: Client, mut workload: RangeHot, draws: Option<(Rng, u64)>, time: Duration) -> Body<()> {
    let mut draws = draws;
    Box::new(move || {
        let started = client.now();
        for arrival in Arrivals::new(Rate::Sustained(WRITES_PER_SECOND)).take_while(|at| *at < time) {
            client.wait_until(started + arrival);
            if client.now() - started >= time {
                break;
            }
            let action = match &mut draws {
                Some((rng, records)) => Action::Put(rng.below(*records)),
                None => workload.write(),
            };
            client.perform(action)?;
        }
        Ok(())
    })
}

/// Reads as fast as it can until the time is over.
fn reader(mut client: Client, workload: RangeHot, mut rng: Rng, (scans, time): (bool, Duration)) -> Body<()> {
    Box::new(move || {
        let started = client.now();
        while client.now() - started < time {
            let action = match workload.read(&mut rng) {
                Action::Get(from) if scans => Action::Scan { from, records: SCANNED },
                action => action,
            };
            client.perform(action)?;
        }
        Ok(())
    })
}

fn bodies(setting: &Setting, load: Load, client: impl Fn() -> Client) -> Vec<Body<()>> {
    let (count, hot) = (setting.scaled(RECORDS), setting.scaled(HOT_RECORDS));
    let (time, seed) = (setting.scaled_time(TIME), setting.seed);
    let workload = RangeHot::new(count, hot, seed);
    let mut bodies = Vec::new();
    if load != Load::ReadsAlone {
        let draws = (load == Load::IndependentWrites).then(|| (Rng::stream(seed, READERS), count));
        bodies.push(writer(client(), workload.clone(), draws, time));
    }
    bodies.extend((0..load.readers()).map(|thread| {
        reader(client(), workload.clone(), Rng::stream(seed, thread), (load == Load::Scans, time))
    }));
    bodies
}

/// The counters of a store under that load, from full but cold on. Hits and misses are those of all
/// caches that the store has.
pub(super) fn run(setting: &Setting, load: Load, store: Store) -> Result<Vec<Sample<Stats>>> {
    let here = setting.clone();
    let options = store.options(setting);
    setting.machine.run(setting.seed, move |lab| {
        let records = Arc::new(Records::new(InsertOrder::Ordered, KEY_BYTES, VALUE_BYTES)?);
        let db = lab.open(options)?;
        records.ingest(&db, here.scaled(RECORDS))?;
        let time = here.scaled_time(TIME);
        let cached = store.cached_records(&here).map(|records| Arc::new(RecordCache::new(records)));
        let pages = store.page_cache_bytes(&here).and_then(|bytes| lab.with_page_cache(bytes));
        let client = || Client::new(lab, &db, records.clone()).behind(cached.clone());
        let bodies = bodies(&here, load, client);
        let probe = {
            let (db, cached) = (db.clone(), cached.clone());
            move || {
                let mut stats = db.stats();
                stats.cache.hits += cached.as_ref().map_or(0, |records| records.hits());
                if let Some(pages) = &pages {
                    let reads = pages.page_reads();
                    (stats.cache.hits, stats.cache.misses) = (reads.hits, reads.misses);
                }
                stats
            }
        };
        let (mut samples, _) = sampled(lab, time / SAMPLES, probe, bodies)?;
        samples.retain(|sample| sample.at <= time);
        db.close()?;
        Ok(samples)
    })
}

/// A figure for each interval between samples, over the time at its end.
pub(super) fn by_interval(
    samples: &[Sample<Stats>],
    measure: impl Fn(&Stats, &Stats, f64) -> f64,
) -> Vec<[f64; 2]> {
    let value = |pair: &[Sample<Stats>]| {
        let time = seconds(pair[1].at - pair[0].at);
        [seconds(pair[1].at), measure(&pair[0].seen, &pair[1].seen, time)]
    };
    samples.windows(2).map(value).collect()
}

/// Hit ratio of the block cache, in percent, by time.
pub(super) fn hit_ratio(samples: &[Sample<Stats>]) -> Vec<[f64; 2]> {
    by_interval(samples, |before, after, _| {
        let hits = (after.cache.hits - before.cache.hits) as f64;
        let misses = (after.cache.misses - before.cache.misses) as f64;
        100.0 * hits / (hits + misses).max(1.0)
    })
}

/// Reads that clients have done, each second: lookups, or scans.
pub(super) fn reads(samples: &[Sample<Stats>]) -> Vec<[f64; 2]> {
    let count = |stats: &Stats| (stats.user_reads.gets + stats.user_reads.seeks) as f64;
    by_interval(samples, |before, after, time| (count(after) - count(before)) / time)
}

/// Writes that the client has done, each second.
pub(super) fn writes(samples: &[Sample<Stats>]) -> Vec<[f64; 2]> {
    by_interval(samples, |before, after, time| {
        (after.user_ops_written - before.user_ops_written) as f64 / time
    })
}

/// Space on the disk, in MB, by time.
pub(super) fn size(samples: &[Sample<Stats>]) -> Vec<[f64; 2]> {
    by_interval(samples, |_, after, _| after.space.live_bytes as f64 / 1e6)
}

/// What the buffer takes of it, in MB.
pub(super) fn held(samples: &[Sample<Stats>]) -> Vec<[f64; 2]> {
    by_interval(samples, |_, after, _| {
        after.keyspaces.iter().map(|keyspace| keyspace.buffer.held_bytes).sum::<u64>() as f64 / 1e6
    })
}

/// Mean of the points from `from` on.
pub(super) fn mean(points: &[[f64; 2]], from: usize) -> f64 {
    let late = points.get(from..).unwrap_or_default();
    late.iter().map(|point| point[1]).sum::<f64>() / late.len().max(1) as f64
}

/// What a figure over time has found.
pub(super) fn over_time(setting: &Setting, series: Vec<Series>, relations: Vec<Relation>) -> Findings {
    Findings {
        x: Axis::linear("time", "s"),
        series,
        relations,
        deviations: DEVIATIONS.to_vec(),
        machine: setting.machine.clone(),
    }
}
