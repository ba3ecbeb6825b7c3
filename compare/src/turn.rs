//! One engine's turn: the phases of a group on one store, in a process and a directory of their own.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use terrace_bench::generator::Rng;
use terrace_bench::recording::{Recorder, Recording};

use crate::barriers::Barriers;
use crate::closed::{Closed, Findings};
use crate::figures::{Phased, derive};
use crate::open::{Open, Rates};
use crate::process::{
    Rest, SpaceWatch, Usage, forget_peak_resident_bytes, peak_resident_bytes, settle, space_bytes,
};
use crate::records::{Format, KEY_BYTES};
use crate::results::PhaseResult;
use crate::scorecard::{Group, Phase, Workload, phases};
use crate::store::{Direction, Engine, Opening, Store};
use crate::work::Work;

/// Records of a batch that fills a store, and their bytes, at most.
const FILL_BATCH: (u64, u64) = (1000, 1 << 20);

/// Records whose values are checked byte by byte at the end.
const CHECKED: u64 = 2000;

/// The part of its time that a phase warms up, and the longest time that it does.
const WARM_UP: (f64, Duration) = (0.2, Duration::from_secs(5));

/// What a turn is to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    pub engine: Engine,
    pub group: Group,
    pub workloads: Vec<Workload>,
    pub records: u64,
    pub value_bytes: usize,
    /// Threads of `load-r`.
    pub load_threads: usize,
    pub opening: Opening,
    /// Share of its full time that each phase gets.
    pub scale: f64,
    pub drain: Duration,
    pub seed: u64,
    /// Empty or missing.
    pub directory: PathBuf,
    /// Where to ask for a limit of memory.
    pub entrance: Option<PathBuf>,
    /// Of the tail workload.
    pub rates: Option<Rates>,
}

/// What a turn says while it runs, one line each.
#[derive(Debug, Serialize, Deserialize)]
pub enum Said {
    /// What it does next.
    Begins(String),
    Measured(PhaseResult),
    /// Last of all: the version of the engine.
    Done(String),
    /// Or why it did not come that far.
    Failed(String),
}

/// A turn on its way.
struct Turn<'a> {
    job: &'a Job,
    format: Format,
    store: Box<dyn Store>,
    barriers: Option<Barriers>,
    space: SpaceWatch,
    /// Records that are in the store.
    live: u64,
    /// Of the data set, record `n` is there if `n / len` is less than element `n % len`: what each load thread has put.
    loaded: Vec<u64>,
    /// Largest resident size before the store was filled.
    resident_bytes: u64,
}

impl Job {
    /// Runs the turn in this process; `say` hears what happens.
    ///
    /// # Errors
    /// Whatever the engine or the operating system reports, or a wrong answer of the engine.
    pub fn run(&self, say: &mut dyn FnMut(Said) -> Result<()>) -> Result<()> {
        std::fs::create_dir_all(&self.directory)?;
        if let Some(entrance) = &self.entrance {
            std::fs::write(entrance, std::process::id().to_string())
                .with_context(|| format!("cannot enter {}", entrance.display()))?;
        }
        let barriers = Barriers::start(&self.directory);
        let uncounted = barriers.as_ref().err().map(|error| format!("barriers are not counted: {error:#}"));
        let mut turn = Turn {
            job: self,
            format: Format::new(self.group.order(), self.value_bytes)?,
            store: self.engine.open(&self.directory, &self.opening)?,
            barriers: barriers.ok(),
            space: SpaceWatch::start(&self.directory),
            live: 0,
            loaded: Vec::new(),
            resident_bytes: 0,
        };
        let mut results = Vec::new();
        for (index, phase) in phases(self.group, &self.workloads).iter().enumerate() {
            if !phase.work.loads() && self.group.filled() && turn.live < self.records {
                say(Said::Begins("filling".to_owned()))?;
                turn.fill()?;
            }
            say(Said::Begins(phase.name.to_owned()))?;
            let mut result = turn.run_phase(index, phase)?;
            result.notes.extend(uncounted.clone());
            say(Said::Measured(result.clone()))?;
            results.push(result);
        }
        if let Some(result) = derive(&results) {
            say(Said::Measured(result))?;
        }
        say(Said::Begins("checking".to_owned()))?;
        say(Said::Measured(turn.end()?))?;
        say(Said::Done(self.engine.version(&self.directory)?))
    }

    fn limit(&self, phase: &Phase) -> Duration {
        Duration::from_secs_f64(phase.seconds * self.scale)
    }

    fn exact(&self) -> bool {
        self.engine != Engine::Empty
    }
}

impl Turn<'_> {
    fn run_phase(&mut self, index: usize, phase: &Phase) -> Result<PhaseResult> {
        let (before, barriers_before) = (Usage::now()?, self.barriers()?);
        let turn = &*self;
        let (measured, terrace_course) = watched(&*turn.store, || -> Result<_> {
            let found = turn.measure(index, phase)?;
            Ok((found, if phase.work.writes() { Some(turn.settle()?) } else { None }))
        });
        let (found, rest) = measured?;
        let (after, barriers) = (Usage::now()?, self.barriers()?);
        if phase.work.inserts_only() {
            self.live += found.effect.puts;
        }
        if phase.work.loads() {
            self.loaded.clone_from(&found.puts);
        }
        let phased = Phased {
            phase,
            found: &found,
            before,
            after,
            barriers: barriers.zip(barriers_before).map(|(after, before)| after - before),
            rest,
            durability: self.job.engine.durability(self.job.opening.durability),
            record_bytes: self.format.record_bytes(),
            limited: self.job.entrance.is_some(),
        };
        let mut result = phased.result();
        if phase.work.writes() && self.live > 0 {
            result.less("space over data", "ratio", self.over_data(space_bytes(&self.job.directory)?));
        }
        result.terrace_course = terrace_course.map(Box::new);
        Ok(result)
    }

    fn measure(&self, index: usize, phase: &Phase) -> Result<Findings> {
        let (job, store, format) = (self.job, &*self.store, &self.format);
        let (limit, exact, seed) = (job.limit(phase), job.exact(), job.seed);
        // Series of loads begin with their first put; nothing else may begin with cold caches.
        let warm_up =
            if phase.work.loads() { Duration::ZERO } else { limit.mul_f64(WARM_UP.0).min(WARM_UP.1) };
        if phase.workload == Workload::Tail {
            let rates = job.rates.context("no rates for the tail workload")?;
            let (records, time) = (job.records, limit);
            return Open { store, format, records, time, warm_up, rates, exact, seed, phase: index }.run();
        }
        let closed = Closed {
            store,
            format,
            work: phase.work,
            choice: phase.choice,
            records: job.records,
            threads: if phase.work == Work::Load { job.load_threads } else { phase.threads },
            limit,
            warm_up,
            timed: phase.timed,
            exact,
            seed,
            phase: index,
        };
        closed.run()
    }

    /// Puts what is missing of the data set, in the order of the keys, and comes to rest.
    fn fill(&mut self) -> Result<()> {
        self.resident_bytes = peak_resident_bytes()?;
        // The empty engine is told no more than how long values are.
        self.put_missing(if self.job.exact() { self.job.records } else { 1 })?;
        self.live = self.job.records;
        self.loaded = vec![self.live];
        self.settle()?;
        // The numbers in the order of their keys took memory that is not the store's.
        forget_peak_resident_bytes()
    }

    fn put_missing(&self, records: u64) -> Result<()> {
        let mut missing = Vec::new();
        let mut key = Vec::new();
        for number in (0..records).filter(|&number| !self.is_loaded(number)) {
            self.format.key(number, &mut key);
            let key: [u8; KEY_BYTES] = key[..].try_into()?;
            missing.push((key, number));
        }
        missing.sort_unstable();
        let batch = (FILL_BATCH.1 / self.format.record_bytes()).clamp(1, FILL_BATCH.0) as usize;
        let mut values = vec![Vec::new(); batch];
        for part in missing.chunks(batch) {
            for ((_, number), value) in part.iter().zip(&mut values) {
                self.format.value(*number, 0, value);
            }
            let pairs = part.iter().zip(&values);
            let records: Vec<(&[u8], &[u8])> =
                pairs.map(|((key, _), value)| (&key[..], &value[..])).collect();
            self.store.put_batch(&records)?;
        }
        Ok(())
    }

    /// Whether record `number` of the data set has been put.
    fn is_loaded(&self, number: u64) -> bool {
        let threads = self.loaded.len().max(1) as u64;
        self.loaded.get((number % threads) as usize).is_some_and(|&puts| number / threads < puts)
    }

    /// Checks values byte by byte, closes the store and opens it again.
    fn end(self) -> Result<PhaseResult> {
        let mut result = PhaseResult::new(&format!("at-rest-{}", self.job.group.name()), None);
        self.check()?;
        if self.live > 0 {
            result.less("space over data", "ratio", self.over_data(space_bytes(&self.job.directory)?));
            result.less("peak space over data", "ratio", self.over_data(self.space.peak_bytes()));
        }
        let resident = self.resident_bytes.max(peak_resident_bytes()?);
        result.less("peak resident", "MiB", resident as f64 / f64::from(1 << 20));
        self.store.close()?;
        let started = Instant::now();
        let store = self.job.engine.open(&self.job.directory, &self.job.opening)?;
        result.less("reopen", "ms", started.elapsed().as_secs_f64() * 1e3);
        store.close()?;
        Ok(result)
    }

    /// Holds some of the records of the data set, and the rows behind one of them, against what they must be.
    fn check(&self) -> Result<()> {
        if !self.job.exact() {
            return Ok(());
        }
        let (mut rng, mut key) = (Rng::stream(self.job.seed, u64::MAX), vec![0; KEY_BYTES]);
        // All records before this one are there; none, where nothing was loaded.
        let loaded = self.loaded.iter().min().map_or(0, |least| least * self.loaded.len() as u64);
        for _ in 0..CHECKED.min(loaded) {
            let number = rng.below(loaded);
            self.format.key(number, &mut key);
            let mut right = false;
            self.store.get(&key, &mut |value| right = self.format.check(value) == Some(number))?;
            ensure!(right, "{} has lost or changed record {number}", self.job.engine.name());
        }
        let mut rows = 0;
        let mut wrong = None;
        self.store.scan(&key, Direction::Forward, &mut |key, value| {
            rows += 1;
            if self.format.check(value).is_none() {
                wrong = Some(key.to_vec());
            }
            if rows == CHECKED.min(self.live) || wrong.is_some() {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        })?;
        if let Some(key) = wrong {
            bail!("{} has changed the value of {}", self.job.engine.name(), key.escape_ascii());
        }
        Ok(())
    }

    fn barriers(&mut self) -> Result<Option<u64>> {
        self.barriers.as_mut().map(Barriers::count).transpose()
    }

    fn settle(&self) -> Result<Rest> {
        settle(&self.job.directory, self.job.drain)
    }

    /// `bytes` over those of the keys and values of all records.
    fn over_data(&self, bytes: u64) -> f64 {
        bytes as f64 / (self.live * self.format.record_bytes()) as f64
    }
}

/// Does `work`; beside what comes of it, what the engine tells of itself meanwhile, if it does: its jobs, and a look at its
/// counters once a second.
fn watched<T: Send>(store: &dyn Store, work: impl FnOnce() -> T + Send) -> (T, Option<Recording>) {
    let Some(told) = store.self_report() else { return (work(), None) };
    let mut recorder = Recorder::start(told, Vec::new()).by_the_second();
    let done = recorder.sampling(work);
    let (course, _) = recorder.finish();
    (done, Some(course))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Durability;

    /// The first phase of a small turn.
    fn phase(engine: Engine) -> PhaseResult {
        let place = tempfile::tempdir().unwrap();
        let job = Job {
            engine,
            group: Group::Synced,
            workloads: vec![Workload::Sync],
            records: 1000,
            value_bytes: 100,
            load_threads: 1,
            opening: Opening { cache_bytes: 8 << 20, memtable_bytes: 1 << 20, durability: Durability::Power },
            scale: 0.05,
            drain: Duration::from_secs(3),
            seed: 1,
            directory: place.path().join("store"),
            entrance: None,
            rates: None,
        };
        let mut measured = Vec::new();
        let mut say = |said| {
            if let Said::Measured(result) = said {
                measured.push(serde_json::to_string(&result)?);
            }
            Ok(())
        };
        job.run(&mut say).unwrap();
        serde_json::from_str(&measured[0]).unwrap()
    }

    #[test]
    fn terrace_tells_of_itself_beside_the_figures_and_peers_do_not() {
        let terrace = phase(Engine::Terrace);
        let course = terrace.terrace_course.as_ref().unwrap();
        let syncs: u64 = course.intervals.iter().filter_map(|interval| interval.syncs.get("wal")).sum();
        let puts = terrace.latency["write"].count;
        assert!(puts > 0 && syncs >= puts, "{syncs} syncs of {puts} synced puts");
        assert!(
            course.intervals.iter().all(|interval| interval.operations == 0),
            "measured from outside alone"
        );
        let lmdb = phase(Engine::Lmdb);
        assert_eq!(lmdb.terrace_course, None);
        let metrics = |result: &PhaseResult| -> Vec<String> {
            result.figures.iter().map(|figure| figure.metric.clone()).collect()
        };
        assert_eq!(metrics(&terrace), metrics(&lmdb), "figures do not rest on it");
    }
}
