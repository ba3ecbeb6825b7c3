//! Whether clients notice the work of the background.
//!
//! 1. The records are loaded, and the store comes to rest.
//! 2. [`Capacity`]: a closed loop of the mix, until the store keeps up with itself. That is 100 %.
//! 3. For each level of load: the store comes to rest; an engine that does nothing shows at that rate what the machine
//!    and the load generator add (the floor); then the rate is offered in an open loop, with independent arrivals. Clients spin
//!    until an arrival, as many of them as leave a processor free.
//! 4. Every half second is a window. Windows with background work are compared with those without: their latencies, and how
//!    well one number, or all of them together, tell which is which ([`rank_auc`], [`logistic_auc`]).
//!
//! Whether there was background work is told from outside, alike for all engines, and by the engine where it tells. What
//! slow operations waited for is told by the client's own counters ([`Waits`]).
//!
//! What is deliberately not known here: the engine. Anything that implements [`Store`] can be measured.

mod auc;
mod capacity;
mod client;
mod course;
mod empty;
mod level;
mod logistic;
mod machine;
mod operations;
pub(crate) mod report;
mod terrace;
mod waits;
mod window;

use std::path::Path;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

pub use self::auc::rank_auc;
pub use self::capacity::{Block, Capacity};
pub use self::empty::Empty;
pub use self::logistic::{Example, logistic_auc};
pub use self::operations::Distribution;
pub use self::report::{
    CalmRun, EngineReport, KindReport, LevelReport, Row, Split, Told, WindowCounts, Worst, text,
};
pub use self::terrace::TerraceSubject;
pub use self::waits::Waits;

use self::course::{Course, Recorded};
use self::level::{Level, floor};
use self::operations::Mix;
use self::window::WINDOW;
use crate::Result;
use crate::progress::Progress;
use crate::recording::samples_of;
use crate::store::Store;

/// Hears what is done next.
pub type Stage<'a> = dyn FnMut(&str) + 'a;

/// A load may take so many times as long to come to rest as a level.
const LOAD_REST: f64 = 5.0;

/// First phase of the capacity; those of levels are below.
const CAPACITY_PHASE: u64 = 1 << 16;

/// Longest time that can be asked for: a day.
const SECONDS_MAX: f64 = 86_400.0;

fn is_positive(number: f64) -> bool {
    number > 0.0 && number.is_finite()
}

/// What is measured. All of it is in the report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Records of the store.
    pub records: u64,
    /// Size of a key.
    pub key_bytes: usize,
    /// Size of a value.
    pub value_bytes: usize,
    /// Share of the operations that update a record; the others read one.
    pub update_percent: f64,
    /// Which records are asked for.
    pub distribution: Distribution,
    /// Levels of load, in percent of the capacity.
    pub levels: Vec<f64>,
    /// Seconds of each level, without its warm-up.
    pub level_s: f64,
    /// Seconds at the beginning of each level that do not count.
    pub warm_up_s: f64,
    /// Seconds of the empty engine before each level; none if 0.
    pub floor_s: f64,
    /// Operations per second that are taken for the capacity; it is found where none are given.
    pub capacity: Option<f64>,
    /// Seconds of the search for the capacity, at least.
    pub capacity_min_s: f64,
    /// At most.
    pub capacity_max_s: f64,
    /// Seconds to come to rest before each level, at most.
    pub rest_s: f64,
    /// Clients; as many as leave one processor free where none are given.
    pub clients: Option<usize>,
    /// Operations whose service takes so long are slow.
    pub slow_ms: f64,
    /// Names the streams of random numbers.
    pub seed: u64,
}

impl Default for Settings {
    /// A million records of a kilobyte, half updates, five minutes for each of four levels.
    fn default() -> Self {
        Self {
            records: 1_000_000,
            key_bytes: 16,
            value_bytes: 1024,
            update_percent: 50.0,
            distribution: Distribution::Uniform,
            levels: vec![30.0, 50.0, 70.0, 85.0],
            level_s: 300.0,
            warm_up_s: 10.0,
            floor_s: 60.0,
            capacity: None,
            capacity_min_s: 120.0,
            capacity_max_s: 600.0,
            rest_s: 120.0,
            clients: None,
            slow_ms: 2.0,
            seed: 1,
        }
    }
}

impl Settings {
    /// Whether all of it makes sense.
    ///
    /// # Errors
    /// What does not.
    pub fn check(&self) -> Result<()> {
        Mix::new(self)?;
        let times = [self.warm_up_s, self.floor_s, self.capacity_min_s, self.rest_s, self.slow_ms / 1000.0];
        let long = 1.0..=SECONDS_MAX;
        let wrong = if self.levels.is_empty() || !self.levels.iter().all(|level| is_positive(*level)) {
            "levels are above 0 %, and there is one at least"
        } else if !long.contains(&self.level_s) || !long.contains(&self.capacity_max_s) {
            "a level and the search for the capacity take a second to a day"
        } else if !times.iter().all(|time| (0.0..=SECONDS_MAX).contains(time)) {
            "times are 0 to a day"
        } else if !self.capacity.is_none_or(is_positive) {
            "a capacity is above 0"
        } else if self.clients == Some(0) {
            "0 clients"
        } else {
            return Ok(());
        };
        Err(wrong.into())
    }

    /// Bytes of keys and values of all records.
    #[must_use]
    pub fn data_bytes(&self) -> u64 {
        self.records * (self.key_bytes + self.value_bytes) as u64
    }

    fn clients(&self) -> usize {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        self.clients.unwrap_or_else(|| processors.saturating_sub(1).max(1))
    }
}

/// An open store that is measured.
pub struct Subject<'a> {
    /// The store, empty.
    pub store: &'a dyn Store,
    /// Its directory.
    pub directory: &'a Path,
    /// Version of the engine, where it is not that of the program.
    pub version: String,
}

/// Measures an engine; `stage` hears what is done next.
///
/// # Errors
/// Settings that make no sense, those of the store, or of the operating system's counters.
///
/// ```
/// use terrace_bench::calm::{self, Settings, Subject};
/// use terrace_bench::store::{TerraceConfig, TerraceStore};
///
/// let directory = tempfile::tempdir()?;
/// let store = TerraceStore::open(directory.path(), &TerraceConfig::default())?;
/// let settings = Settings {
///     records: 1000,
///     levels: vec![50.0],
///     level_s: 1.0,
///     warm_up_s: 0.5,
///     floor_s: 0.5,
///     capacity: Some(2000.0),
///     rest_s: 0.1,
///     ..Settings::default()
/// };
/// let subject = Subject { store: &store, directory: directory.path(), version: String::new() };
/// let report = calm::run(&subject, &settings, &mut |_| {})?;
/// assert_eq!((report.levels[0].rate, report.wrong), (1000.0, 0));
/// # Ok::<(), terrace_bench::Error>(())
/// ```
pub fn run(subject: &Subject, settings: &Settings, stage: &mut Stage) -> Result<EngineReport> {
    settings.check()?;
    let mix = Mix::new(settings)?;
    stage(&format!("loading {} records", settings.records));
    let load_s = load(subject.store, &mix, Duration::from_secs_f64(LOAD_REST * settings.rest_s))?;
    let course = Course {
        store: subject.store,
        directory: Some(subject.directory),
        mix: &mix,
        phase: CAPACITY_PHASE,
        clients: settings.clients(),
        rate: None,
        time: WINDOW,
        slow: Duration::from_secs_f64(settings.slow_ms / 1000.0),
        name: "capacity",
    };
    let mut report = EngineReport {
        engine: subject.store.engine().to_owned(),
        profile: subject.store.profile().to_owned(),
        version: subject.version.clone(),
        load_s,
        ..EngineReport::default()
    };
    match settings.capacity {
        Some(ops_per_s) => report.capacity = Capacity { ops_per_s, given: true, ..Capacity::default() },
        None => (report.capacity, report.wrong) = capacity::find(&course, settings, stage)?,
    }
    for (phase, &percent) in (1..).zip(&settings.levels) {
        let rate = report.capacity.ops_per_s * percent / 100.0;
        let (level, wrong) = offer(&course, settings, (2 * phase, rate), stage)?;
        report.wrong += wrong;
        report.levels.push(LevelReport { percent, rate, ..level });
    }
    Ok(report)
}

/// Puts every record once; seconds until the store was at rest, or `rest` was over.
fn load(store: &dyn Store, mix: &Mix, rest: Duration) -> Result<f64> {
    let started = Instant::now();
    let progress = Progress::start("load", mix.records, None);
    let (mut key, mut value) = (Vec::new(), Vec::new());
    for record in 0..mix.records {
        mix.keys.build(record, &mut key);
        mix.values.fill(record, 1, &mut value);
        store.put(&key, &value)?;
        if record % 4096 == 0 {
            progress.show(record);
        }
    }
    progress.finish();
    machine::settle(rest)?;
    Ok(started.elapsed().as_secs_f64())
}

/// Offers a rate in an open loop, after the empty engine at the same; answers that were wrong beside the report.
fn offer(
    course: &Course,
    settings: &Settings,
    (phase, rate): (u64, f64),
    stage: &mut Stage,
) -> Result<(LevelReport, u64)> {
    let windows = |seconds: f64| (seconds / WINDOW.as_secs_f64()).round().max(1.0) as u32;
    stage("coming to rest");
    let rested = machine::settle(Duration::from_secs_f64(settings.rest_s))?;
    let mut under = std::collections::BTreeMap::new();
    if settings.floor_s > 0.0 {
        stage(&format!("the empty engine at {rate:.0} operations/s"));
        let time = WINDOW * windows(settings.floor_s);
        let empty = Course {
            store: &Empty,
            directory: None,
            phase,
            rate: Some(rate),
            time,
            name: "floor",
            ..*course
        };
        under = floor(empty.run()?.windows);
    }
    stage(&format!("{rate:.0} operations/s"));
    let warm_up = if settings.warm_up_s > 0.0 { windows(settings.warm_up_s) } else { 0 };
    let time = WINDOW * (warm_up + windows(settings.level_s));
    let course = Course { phase: phase + 1, rate: Some(rate), time, name: "level", ..*course };
    // Those of the rest before are none of the level's.
    course.store.load_samples();
    let started = Instant::now();
    let Recorded { windows, outcome } = course.run()?;
    let samples = samples_of(started, course.store.load_samples());
    let level = Level::new(windows, warm_up as usize).report();
    let unfinished = outcome.unfinished;
    Ok((LevelReport { unfinished, rested, floor: under, samples, ..level }, outcome.wrong))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_make_no_sense_are_refused() {
        let refused = |change: fn(&mut Settings)| {
            let mut settings = Settings::default();
            change(&mut settings);
            settings.check().is_err()
        };
        assert!(Settings::default().check().is_ok());
        assert!(refused(|settings| settings.levels.clear()));
        assert!(refused(|settings| settings.levels = vec![50.0, 0.0]));
        assert!(refused(|settings| settings.level_s = f64::NAN));
        assert!(refused(|settings| settings.level_s = f64::INFINITY));
        assert!(refused(|settings| settings.warm_up_s = -1.0));
        assert!(refused(|settings| settings.capacity = Some(0.0)));
        assert!(refused(|settings| settings.clients = Some(0)));
        assert!(refused(|settings| settings.records = 0));
    }
}
