//! Ours: what hides compactions from the cache of the default (`lsbm-default`).
//!
//! Four clients look records up and one writes, all at steady rates, on a fast device. Each way is tried with reads of a hot range, of
//! popular records and of any record, and with caches of two sizes. The first third of the time is not counted.

use std::sync::Arc;
use std::time::Duration;

use terrace::tree::{Buffer, Caching, Retainer};
use terrace::{Options, Stats};

use super::stores::{KEY_BYTES, RECORDS, VALUE_BYTES};
use super::workload::hit_ratio;
use crate::Result;
use crate::generator::{Rng, ScrambledZipfian};
use crate::paper::client::{Client, Records};
use crate::paper::experiment::{Findings, Setting};
use crate::paper::figures::{at_scale, memory_for, series};
use crate::paper::machine::Body;
use crate::paper::record::{Axis, Relation, Series};
use crate::paper::timeline::{Latencies, Sample, sampled};
use crate::workload::{Action, Arrivals, RangeHot, Rate};
use crate::ycsb::keys::InsertOrder;

const READERS: u64 = 4;
const SAMPLES: u32 = 60;

/// So many times as there are records are written, while the clock runs.
const ROUNDS: f64 = 3.0;
const WRITES_PER_SECOND: f64 = 20_000.0;

/// Of each reader.
const READS_PER_SECOND: f64 = 5_000.0;

/// Parts of the data that the cache has room for, in percent.
const CACHES: [u64; 2] = [10, 25];

/// What is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Shape {
    HotRange,
    Popular,
    Uniform,
}

const SHAPES: [(Shape, &str); 3] =
    [(Shape::HotRange, "hot range"), (Shape::Popular, "popular records"), (Shape::Uniform, "any record")];

/// A way to hide compactions from the cache, or none.
type Way = (&'static str, fn(&mut Options));

const WAYS: [Way; 4] = [
    ("the default", |_| {}),
    ("nothing warmed up", |options| options.tree.caching = Caching::OnRead),
    ("the default and a buffer", |options| options.tree.retainer = buffer()),
    ("nothing warmed up, and a buffer", |options| {
        options.tree.retainer = buffer();
        options.tree.caching = Caching::OnRead;
    }),
];

fn buffer() -> Retainer {
    Retainer::Buffer(Buffer::default())
}

/// What a run has come to.
struct Outcome {
    hit_ratio: f64,
    read_per_second: f64,
    p99_micros: f64,
    size: f64,
}

fn options(setting: &Setting, way: &Way, cache_percent: u64) -> Options {
    let data = setting.scaled(RECORDS) * (KEY_BYTES + VALUE_BYTES) as u64;
    let memtable = setting.scaled(Options::default().memtable_bytes);
    let mut options =
        at_scale(&Options::default(), setting, memory_for(data * cache_percent / 100, memtable));
    (way.1)(&mut options);
    if let Retainer::Buffer(buffer) = &mut options.tree.retainer {
        buffer.period = setting.scaled_time(buffer.period).max(Duration::from_millis(50));
    }
    options
}

fn reader(
    mut client: Client,
    draw: impl Fn(&mut Rng) -> Action + Send + 'static,
    mut rng: Rng,
    time: Duration,
) -> Body<Latencies> {
    Box::new(move || {
        let (started, mut latencies) = (client.now(), Latencies::default());
        for arrival in Arrivals::new(Rate::Sustained(READS_PER_SECOND)).take_while(|at| *at < time) {
            client.wait_until(started + arrival);
            let latency = client.perform(draw(&mut rng))?;
            if arrival > time / 3 {
                latencies.record(latency);
            }
        }
        Ok(latencies)
    })
}

fn run(setting: &Setting, shape: Shape, options: Options) -> Result<Outcome> {
    let here = setting.clone();
    setting.machine.run(setting.seed, move |lab| {
        let (count, seed) = (here.scaled(RECORDS), here.seed);
        let records = Arc::new(Records::new(InsertOrder::Ordered, KEY_BYTES, VALUE_BYTES)?);
        let db = lab.open(options)?;
        records.ingest(&db, count)?;
        let time = Duration::from_secs_f64(count as f64 * ROUNDS / WRITES_PER_SECOND);
        let hot = RangeHot::new(count, count * 15 / 100, seed);
        let client = || Client::new(lab, &db, records.clone());
        let mut writes = hot.clone();
        let mut writer = client();
        let popular = Arc::new(ScrambledZipfian::new(0, count));
        let mut bodies: Vec<Body<Latencies>> = vec![Box::new({
            let (popular, mut rng) = (popular.clone(), Rng::stream(seed, READERS));
            move || {
                let started = writer.now();
                for arrival in Arrivals::new(Rate::Sustained(WRITES_PER_SECOND)).take_while(|at| *at < time) {
                    writer.wait_until(started + arrival);
                    writer.perform(match shape {
                        Shape::Popular => Action::Put(popular.next(&mut rng)),
                        Shape::HotRange | Shape::Uniform => writes.write(),
                    })?;
                }
                Ok(Latencies::default())
            }
        })];
        for thread in 0..READERS {
            let (hot, popular) = (hot.clone(), popular.clone());
            let draw = move |rng: &mut Rng| match shape {
                Shape::HotRange => hot.read(rng),
                Shape::Popular => Action::Get(popular.next(rng)),
                Shape::Uniform => Action::Get(rng.below(count)),
            };
            bodies.push(reader(client(), draw, Rng::stream(seed, thread), time));
        }
        let store = db.clone();
        let (samples, latencies) = sampled(lab, time / SAMPLES, move || store.stats(), bodies)?;
        db.close()?;
        let mut all = Latencies::default();
        latencies.iter().for_each(|latencies| all.merge(latencies));
        Ok(outcome(&samples[samples.len() / 3..], &all))
    })
}

fn outcome(samples: &[Sample<Stats>], latencies: &Latencies) -> Outcome {
    let ratios = hit_ratio(samples);
    let (first, last) = (&samples[0], &samples[samples.len() - 1]);
    let time = (last.at - first.at).as_secs_f64();
    let data: u64 =
        last.seen.keyspaces.iter().flat_map(|space| &space.shape.levels).map(|level| level.bytes).sum();
    Outcome {
        hit_ratio: ratios.iter().map(|point| point[1]).sum::<f64>() / ratios.len().max(1) as f64,
        read_per_second: (last.seen.read.get - first.seen.read.get) as f64 / 1e6 / time,
        p99_micros: latencies.percentile(99.0),
        size: last.seen.space.live_bytes as f64 / data.max(1) as f64,
    }
}

/// Every way under every load, with every cache.
pub fn default_ways(setting: &Setting) -> Result<Findings> {
    let (mut lines, mut relations) = (Vec::new(), Vec::new());
    for (shape, name) in SHAPES {
        for cache in CACHES {
            let outcomes: Vec<Outcome> = WAYS
                .iter()
                .map(|way| run(setting, shape, options(setting, way, cache)))
                .collect::<Result<_>>()?;
            let line = |what: &str, y: Axis, value: fn(&Outcome) -> f64| -> Series {
                let points = outcomes.iter().enumerate().map(|(at, outcome)| [at as f64, value(outcome)]);
                let label = format!("{name}, cache of {cache} %: {what}");
                series(&label, &options(setting, &WAYS[0], cache), y, points.collect())
            };
            lines.extend([
                line("hit ratio", Axis::linear("hit ratio", "%"), |outcome| outcome.hit_ratio),
                line("read", Axis::linear("read from the device by lookups", "MB/s"), |outcome| {
                    outcome.read_per_second
                }),
                line("p99", Axis::linear("p99 of lookups", "us"), |outcome| outcome.p99_micros),
                line("space", Axis::linear("tables on disk / those of the tree", ""), |outcome| outcome.size),
            ]);
            let gain = outcomes[2].hit_ratio - outcomes[0].hit_ratio;
            let claim = "ours: a buffer does not lower the hit ratio";
            let label = format!("{name}, cache of {cache} %: hit ratio with a buffer - without, points");
            relations.push(Relation::within(&label, claim, -0.5..=f64::INFINITY, gain));
        }
    }
    let names: Vec<&str> = WAYS.iter().map(|(name, _)| *name).collect();
    Ok(Findings {
        x: Axis::named("what is kept", &names),
        series: lines,
        relations,
        deviations: vec!["no figure of the paper: its mechanism in the default layout"],
        machine: setting.machine.clone(),
    })
}
