//! The machine of an experiment: a simulated device in virtual time, or the machine's own file system in real time.
//!
//! An experiment takes time, threads and files only from its [`Lab`], so the same code runs on both. On a simulated
//! device it is one deterministic schedule: a seed replays every point of every series. (Only on machines with the
//! same number of processors, from which the block cache chooses its number of shards, and so what it evicts.)
//!
//! # What virtual time contains
//!
//! * the device: latency, transfer and queueing of every read, of every write once it is synced or the page cache is
//!   full, and of every sync, by the [`DeviceModel`];
//! * copies to the page cache, at the model's speed;
//! * waiting: for locks, for other threads, for the pacer that slows writers down;
//! * the processor time of clients' calls, by [`Costs`]; of reads by what they search, if the figure asks for that
//!   ([`ReadCosts`]);
//! * the processor time of flushes and compactions, by the records and bytes that they read ([`PROCESSOR`]).
//!
//! # What it does not contain
//!
//! * a shortage of processors: each thread has one of its own, so clients and compactions do not take it from each other;
//! * context switches, and what contended locks cost besides the wait;
//! * reads from the operating system's cache: every read that the store does not answer itself goes to the device, unless
//!   the figure asks for a page cache ([`Lab::with_page_cache`]);
//! * what devices do by themselves: garbage collection, wear, heat.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use terrace::env::posix::PosixEnv;
use terrace::env::simulated::{DeviceModel, ProcessorModel, SimConfig, SimEnv, Survival};
use terrace::env::sync::Mutex;
use terrace::env::{Env, Priority};
use terrace::{Db, EventListener, Options};

use super::record::{DeviceKind, DeviceRecord};
use crate::Result;

/// Where stores live on a simulated device.
const SIMULATED_DIR: &str = "/experiment";

/// Processor time of clients' calls that find everything in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// Processor time of a lookup.
    pub get: Duration,
    /// Processor time of a write.
    pub put: Duration,
    /// Processor time of a scan, and of each record that it returns.
    pub scan: (Duration, Duration),
}

impl Costs {
    /// Medians of the table in `docs/benchmarks/ycsb.md`, which a machine with two cores measured; a scan there returns 50 records on average.
    pub const MEASURED: Self = Self {
        get: Duration::from_nanos(2100),
        put: Duration::from_nanos(4400),
        scan: (Duration::from_nanos(4000), Duration::from_nanos(300)),
    };

    /// On a real machine, where calls take the time they take.
    pub const NONE: Self =
        Self { get: Duration::ZERO, put: Duration::ZERO, scan: (Duration::ZERO, Duration::ZERO) };

    /// On a processor that takes `factor` times as long.
    #[must_use]
    fn slowed(self, factor: f64) -> Self {
        let [get, put, start, each] =
            [self.get, self.put, self.scan.0, self.scan.1].map(|cost| cost.mul_f64(factor));
        Self { get, put, scan: (start, each) }
    }
}

/// Processor time of reads that find everything in memory, by what the store searches for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadCosts {
    /// Of a lookup, besides the tables.
    pub lookup: Duration,
    /// Of each table that a lookup asks: to find it, and to ask its filter.
    pub table: Duration,
    /// Of each block that a lookup searches.
    pub block: Duration,
    /// Of each run that a scan searches.
    pub run: Duration,
    /// Of each record that a scan returns.
    pub row: Duration,
}

impl ReadCosts {
    /// `terrace bench paper calibrate` measures them, on a machine with two cores
    /// (`docs/benchmarks/ptier.md`, "What a read takes of the processor").
    pub const MEASURED: Self = Self {
        lookup: Duration::from_nanos(100),
        table: Duration::from_nanos(36),
        block: Duration::from_nanos(1000),
        run: Duration::from_nanos(250),
        row: Duration::from_nanos(50),
    };

    /// On a processor that takes `factor` times as long.
    fn slowed(self, factor: f64) -> Self {
        let [lookup, table, block, run, row] =
            [self.lookup, self.table, self.block, self.run, self.row].map(|cost| cost.mul_f64(factor));
        Self { lookup, table, block, run, row }
    }

    /// With units, for a report.
    fn entries(self) -> [(String, String); 5] {
        [
            ("processor, per lookup", self.lookup),
            ("processor, per table asked", self.table),
            ("processor, per block searched", self.block),
            ("processor, per run of a scan", self.run),
            ("processor, per row of a scan", self.row),
        ]
        .map(|(name, cost)| (name.into(), format!("{} ns", cost.as_nanos())))
    }
}

/// Processor time of a flush or compaction, for each record and for each KiB that it reads.
///
/// `terrace bench paper calibrate` measures it, on a machine with two cores
/// (`docs/benchmarks/dlc.md`, "What a compaction takes of the processor").
pub const PROCESSOR: ProcessorModel = ProcessorModel { record_nanos: 120, kibibyte_nanos: 740 };

/// A machine to run on.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "an experiment has a few of them")]
pub enum Machine {
    /// A simulated device, under a name.
    Simulated {
        /// For reports.
        name: String,
        /// What its work costs.
        model: DeviceModel,
        /// What clients' calls take of a processor.
        costs: Costs,
        /// What reads take in place of that, where it depends on the tree.
        reads: Option<ReadCosts>,
        /// What flushes and compactions take of one.
        processor: ProcessorModel,
    },
    /// The machine's own file system.
    Real {
        /// Directory for the stores, which are removed afterwards; the system's temporary one if there is none.
        dir: Option<PathBuf>,
    },
}

impl Machine {
    /// The simulated device of that name.
    ///
    /// # Errors
    /// A name that no preset has.
    pub fn preset(name: &str) -> Result<Self> {
        let model = DeviceModel::preset(name).ok_or_else(|| {
            let names: Vec<_> = DeviceModel::presets().collect();
            format!("unknown device {name:?}: there are {}", names.join(", "))
        })?;
        Ok(Self::Simulated {
            name: name.into(),
            model,
            costs: Costs::MEASURED,
            reads: None,
            processor: PROCESSOR,
        })
    }

    /// The machine with a simulated device changed by `change`; a real one stays what it is.
    #[must_use]
    pub fn with(self, what: &str, change: impl FnOnce(&mut DeviceModel)) -> Self {
        match self {
            Self::Simulated { name, mut model, costs, reads, processor } => {
                change(&mut model);
                Self::Simulated { name: format!("{name}, {what}"), model, costs, reads, processor }
            }
            real @ Self::Real { .. } => real,
        }
    }

    /// The simulated machine on which reads take as much of the processor as they search; a real one stays what it is.
    #[must_use]
    pub fn with_read_costs(self) -> Self {
        match self {
            Self::Simulated { name, model, costs, reads: _, processor } => {
                let reads = Some(ReadCosts::MEASURED);
                Self::Simulated { name, model, costs, reads, processor }
            }
            real @ Self::Real { .. } => real,
        }
    }

    /// The simulated machine with a device and processors that take `factor` times as long for all that they do; a real one
    /// stays what it is.
    ///
    /// All ratios between the times of the machine stay what they were. Those to the store's own times do not: to intervals,
    /// pauses and rates that it keeps on any machine.
    #[must_use]
    pub fn slowed(self, factor: f64) -> Self {
        match self.with(&format!("{factor:.1} times as slow"), |model| slow_down(model, factor)) {
            Self::Simulated { name, model, costs, reads, processor } => {
                let nanos = |nanos: u64| (nanos as f64 * factor) as u64;
                let processor = ProcessorModel {
                    record_nanos: nanos(processor.record_nanos),
                    kibibyte_nanos: nanos(processor.kibibyte_nanos),
                };
                let reads = reads.map(|reads| reads.slowed(factor));
                Self::Simulated { name, model, costs: costs.slowed(factor), reads, processor }
            }
            real @ Self::Real { .. } => real,
        }
    }

    /// The device, for a report.
    #[must_use]
    pub fn record(&self) -> DeviceRecord {
        match self {
            Self::Simulated { name, model, costs: _, reads, processor } => {
                let entry = |name: &str, value: String| (name.to_owned(), value);
                let micros = |time: Duration| format!("{} us", time.as_secs_f64() * 1e6);
                let megabytes = |bytes: u64| format!("{} MB/s", bytes / 1_000_000);
                let mut model = BTreeMap::from([
                    entry("read latency", micros(model.read_latency)),
                    entry("flush latency", micros(model.flush_latency)),
                    entry("read bandwidth", megabytes(model.read_bandwidth)),
                    entry("write bandwidth", megabytes(model.write_bandwidth)),
                    entry("page cache bandwidth", megabytes(model.cache_bandwidth)),
                    entry("queue depth", model.queue_depth.to_string()),
                    entry("processor, per record compacted", format!("{} ns", processor.record_nanos)),
                    entry("processor, per KiB compacted", format!("{} ns", processor.kibibyte_nanos)),
                ]);
                model.extend(reads.iter().copied().flat_map(ReadCosts::entries));
                DeviceRecord { kind: DeviceKind::Simulated, name: name.clone(), model }
            }
            Self::Real { .. } => {
                DeviceRecord { kind: DeviceKind::Real, name: "file system".into(), model: BTreeMap::new() }
            }
        }
    }

    /// Runs `body` in a laboratory of its own. Simulated, it is the first thread of a simulation that `seed` replays.
    ///
    /// # Errors
    /// Those of `body`, and of making a directory.
    pub fn run<R: Send + 'static>(
        &self,
        seed: u64,
        body: impl FnOnce(&Lab) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        self.run_from(None, seed, body)
    }

    /// As [`Machine::run`]; the laboratory begins with the files of `kept`, and leaves these as they are.
    ///
    /// # Errors
    /// As [`Machine::run`].
    pub fn run_from<R: Send + 'static>(
        &self,
        kept: Option<&Kept>,
        seed: u64,
        body: impl FnOnce(&Lab) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        match self {
            Self::Simulated { model, costs, reads, processor, .. } => {
                // Threads take turns where they wait; no bug is looked for here that preemption would show.
                let (model, costs, reads, processor) = (*model, *costs, *reads, *processor);
                let config = SimConfig { seed, device: model, processor, ..SimConfig::default() };
                let config = SimConfig { preemption_percent: 0, ..config };
                let dir = PathBuf::from(SIMULATED_DIR);
                let env = kept.map_or_else(|| SimEnv::new(config), |kept| kept.0.crash(Survival::Everything));
                env.simulate(move |env| {
                    let simulated = Some((env.clone(), model));
                    body(&Lab { env, simulated, dir, costs, reads })
                })
            }
            Self::Real { dir } => {
                let mut builder = tempfile::Builder::new();
                let builder = builder.prefix("terrace-paper-");
                let temporary =
                    dir.as_ref().map_or_else(|| builder.tempdir(), |dir| builder.tempdir_in(dir))?;
                let dir = temporary.path().join("store");
                body(&Lab { env: PosixEnv::shared(), simulated: None, dir, costs: Costs::NONE, reads: None })
            }
        }
    }
}

/// Files of a simulated device, for laboratories that begin with them.
#[derive(Clone, Debug)]
pub struct Kept(Arc<SimEnv>);

/// Time, threads and files of an experiment.
pub struct Lab {
    env: Arc<dyn Env>,
    /// The simulated machine, and its device as it was at first.
    simulated: Option<(Arc<SimEnv>, DeviceModel)>,
    dir: PathBuf,
    costs: Costs,
    reads: Option<ReadCosts>,
}

impl Lab {
    /// Time, files and threads.
    #[must_use]
    pub fn env(&self) -> &Arc<dyn Env> {
        &self.env
    }

    /// Directory of the store.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Processor time that clients are to add to their calls.
    #[must_use]
    pub fn costs(&self) -> Costs {
        self.costs
    }

    /// What reads take of the processor where it depends on the tree.
    #[must_use]
    pub fn read_costs(&self) -> Option<ReadCosts> {
        self.reads
    }

    /// The files as they are now, on a simulated device. A real one keeps none.
    #[must_use]
    pub fn keep(&self) -> Option<Kept> {
        self.simulated.as_ref().map(|(env, _)| Kept(env.crash(Survival::Everything)))
    }

    /// Opens the store of the laboratory.
    ///
    /// # Errors
    /// Whatever keeps it from opening.
    pub fn open(&self, options: Options) -> Result<Db> {
        Ok(Db::builder(&self.dir).env(self.env.clone()).options(options).open()?)
    }

    /// As [`Lab::open`]; `listener` receives the store's events.
    ///
    /// # Errors
    /// As [`Lab::open`].
    pub fn open_told(&self, options: Options, listener: Arc<dyn EventListener>) -> Result<Db> {
        Ok(Db::builder(&self.dir).env(self.env.clone()).options(options).listener(listener).open()?)
    }

    /// Gives a simulated machine a cache of `bytes` for the pages of files; a real one has its own. The machine, for what is read
    /// through it.
    #[must_use]
    pub fn with_page_cache(&self, bytes: u64) -> Option<Arc<SimEnv>> {
        let (env, _) = self.simulated.as_ref()?;
        env.set_page_cache(bytes);
        Some(env.clone())
    }

    /// A second device of a simulated machine, with a directory for a store.
    ///
    /// # Errors
    /// On a real machine, which has what it has.
    pub fn add_device(&self, name: &str, model: DeviceModel) -> Result<PathBuf> {
        let (env, _) =
            self.simulated.as_ref().ok_or("a second device is to be had on a simulated machine alone")?;
        let dir = Path::new("/").join(name);
        env.add_device(&dir, model, 1 << 40);
        Ok(dir)
    }

    /// Leaves so many bytes free on the first device of a simulated machine.
    ///
    /// # Errors
    /// On a real machine.
    pub fn limit_free_bytes(&self, bytes: u64) -> Result<()> {
        let (env, _) = self.simulated.as_ref().ok_or("a simulated machine alone can be made small")?;
        env.set_space(&self.dir, env.used_bytes(&self.dir) + bytes);
        Ok(())
    }

    /// Changes the device that [`Lab::add_device`] has added under `name`.
    #[must_use]
    pub fn device_setter(&self, name: &str) -> Box<dyn Fn(DeviceModel) + Send> {
        let (env, dir) = (self.simulated.as_ref().map(|(env, _)| env.clone()), Path::new("/").join(name));
        Box::new(move |model| env.iter().for_each(|env| env.set_device(&dir, model)))
    }

    /// From here on a simulated device is what it was at first, changed by `change`; a real one stays what it is.
    pub fn vary_device(&self, change: impl FnOnce(&mut DeviceModel)) {
        if let Some((env, model)) = &self.simulated {
            let mut model = *model;
            change(&mut model);
            env.set_device(&self.dir, model);
        }
    }

    /// Runs `bodies` on a thread each and returns what they return, in their order.
    ///
    /// # Errors
    /// The first error of any, or a thread that did not start or panicked.
    pub fn threads<R: Send + 'static>(&self, bodies: Vec<Body<R>>) -> Result<Vec<R>> {
        let results = Arc::new(Mutex::new(Vec::new()));
        let mut threads = Vec::new();
        for (index, body) in bodies.into_iter().enumerate() {
            let results = results.clone();
            let body = Box::new(move || {
                let result = body();
                results.lock().push((index, result));
            });
            threads.push(self.env.spawn(&format!("client-{index}"), Priority::Normal, body)?);
        }
        let count = threads.len();
        threads.into_iter().for_each(terrace::env::Thread::join);
        let mut results = std::mem::take(&mut *results.lock());
        if results.len() < count {
            return Err("a thread of the experiment has panicked".into());
        }
        results.sort_by_key(|(index, _)| *index);
        results.into_iter().map(|(_, result)| result).collect()
    }
}

/// What a thread runs.
pub type Body<R> = Box<dyn FnOnce() -> Result<R> + Send>;

fn slow_down(model: &mut DeviceModel, factor: f64) {
    for latency in [&mut model.read_latency, &mut model.flush_latency, &mut model.metadata_latency] {
        *latency = latency.mul_f64(factor);
    }
    for bandwidth in [&mut model.read_bandwidth, &mut model.write_bandwidth, &mut model.cache_bandwidth] {
        *bandwidth = ((*bandwidth as f64 / factor) as u64).max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slowed_machine_takes_as_many_times_as_long_for_everything() {
        let time = |factor| {
            let machine = Machine::preset("nvme").unwrap().slowed(factor);
            let run = |lab: &Lab| {
                let db = lab.open(Options::default())?;
                let started = lab.env().now();
                for key in 0..20_000_u64 {
                    db.put(key.to_le_bytes(), [7; 100])?;
                }
                db.flush()?;
                db.compact()?;
                let time = lab.env().now() - started + lab.costs().put;
                db.close()?;
                Ok(time.as_secs_f64())
            };
            machine.run(1, run).unwrap()
        };
        let ratio = time(8.0) / time(1.0);
        assert!((ratio / 8.0 - 1.0).abs() < 0.01, "{ratio}");
    }

    #[test]
    fn threads_return_in_their_order_in_virtual_time() {
        let machine = Machine::preset("nvme").unwrap();
        let (order, time) = machine
            .run(1, |lab| {
                let body = |index: u64, env: Arc<dyn Env>| -> Body<u64> {
                    Box::new(move || {
                        env.sleep(Duration::from_secs(10 - index));
                        Ok(index)
                    })
                };
                let order = lab.threads((0..3).map(|index| body(index, lab.env().clone())).collect())?;
                Ok((order, lab.env().now()))
            })
            .unwrap();
        assert_eq!(order, [0, 1, 2]);
        assert_eq!(time, Duration::from_secs(10));
    }

    #[test]
    fn an_error_of_any_thread_is_the_experiments() {
        let machine = Machine::preset("nvme").unwrap();
        let failing: fn(&Lab) -> Result<Vec<()>> =
            |lab| lab.threads(vec![Box::new(|| Ok(())), Box::new(|| Err("broken".into()))]);
        assert_eq!(machine.run(1, failing).unwrap_err().to_string(), "broken");
        assert!(Machine::preset("drum").is_err());
    }

    #[test]
    fn what_is_kept_is_where_others_begin() {
        let machine = Machine::preset("nvme").unwrap();
        let kept = machine
            .run(1, |lab| {
                let db = lab.open(Options::default())?;
                db.put("key", "loaded")?;
                db.close()?;
                Ok(lab.keep())
            })
            .unwrap();
        let changed = |lab: &Lab| {
            let db = lab.open(Options::default())?;
            let found = db.get("key")?;
            db.put("key", "changed")?;
            db.close()?;
            Ok(found)
        };
        for _ in 0..2 {
            assert_eq!(machine.run_from(kept.as_ref(), 1, changed).unwrap().unwrap(), "loaded");
        }
    }

    #[test]
    fn a_real_machine_leaves_nothing_behind() {
        let parent = tempfile::tempdir().unwrap();
        let machine = Machine::Real { dir: Some(parent.path().into()) };
        let found = machine.run(1, |lab| {
            let db = lab.open(Options::default())?;
            db.put("key", "value")?;
            let found = db.get("key")?.is_some();
            db.close()?;
            Ok(found)
        });
        assert!(found.unwrap());
        assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 0);
    }
}
