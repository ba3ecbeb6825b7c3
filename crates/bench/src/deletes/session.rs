//! One case on its way: its stores, its rows and its courses.

use std::path::Path;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::{Choice, Course, DeletesRun, Engine, Goal, Map, Point, Quantity, Row, Subject};
use crate::Result;
use crate::generator::Rng;
use crate::probe::space_bytes;
use crate::progress::Progress;

/// Time between two looks at the space of a store.
const LOOK: Duration = Duration::from_millis(100);

/// Reads behind the first one, at most.
const LATER_READS: usize = 100;

/// One case on its way.
pub struct Session<'a> {
    engine: &'a dyn Engine,
    choice: &'a Choice,
    case: &'static str,
    rows: Vec<Row>,
    courses: Vec<Course>,
}

impl<'a> Session<'a> {
    pub(super) fn new(engine: &'a dyn Engine, choice: &'a Choice, case: &'static str) -> Self {
        Self { engine, choice, case, rows: Vec::new(), courses: Vec::new() }
    }

    /// Adds what was measured to `run`.
    pub(super) fn end(self, run: &mut DeletesRun) {
        run.deletes.extend(self.rows);
        run.courses.extend(self.courses);
    }

    /// `full`, divided by the scale; at least `least`.
    pub(super) fn count(&self, full: u64, least: u64) -> u64 {
        ((full as f64 / self.choice.scale) as u64).max(least)
    }

    /// A new store.
    pub(super) fn store(&self) -> Result<Store<'a>> {
        let dir = tempfile::Builder::new().prefix("terrace-deletes-").tempdir_in(&self.choice.dir)?;
        let subject = self.engine.open(dir.path())?;
        Ok(Store { engine: self.engine, subject, dir })
    }

    /// A stream of random numbers.
    pub(super) fn rng(&self, stream: u64) -> Rng {
        Rng::stream(self.choice.seed, stream)
    }

    /// Names the streams of random numbers.
    pub(super) fn seed(&self) -> u64 {
        self.choice.seed
    }

    /// Adds a figure.
    pub(super) fn row(&mut self, measured: impl Into<String>, figure: f64, unit: &str, goal: Option<Goal>) {
        let (case, measured, unit) = (self.case.to_owned(), measured.into(), unit.to_owned());
        self.rows.push(Row { case, measured, figure, unit, goal });
    }

    /// Adds a course, unless it has no point.
    pub(super) fn course(&mut self, quantity: Quantity, points: Vec<Point>) {
        if !points.is_empty() {
            self.courses.push(Course { case: self.case.to_owned(), quantity, points });
        }
    }

    /// A loop of `steps` at most, which the limit of time may cut off.
    pub(super) fn pace(&self, phase: &str, steps: u64) -> Pace {
        let limit = Duration::from_secs_f64(self.choice.limit_s);
        Pace::new(&format!("{} {phase}", self.case), steps, Some(limit))
    }

    /// A loop of `steps` that goes to its end.
    pub(super) fn whole(&self, phase: &str, steps: u64) -> Pace {
        Pace::new(&format!("{} {phase}", self.case), steps, None)
    }

    /// Times `read` once, then a hundred times more, or for as long as the limit lets it: two rows.
    pub(super) fn reads(
        &mut self,
        measured: &str,
        goal: Goal,
        mut read: impl FnMut() -> Result<()>,
    ) -> Result<()> {
        let mut timed = || {
            let started = Instant::now();
            read()?;
            Ok::<_, crate::Error>(started.elapsed().as_secs_f64() * 1e6)
        };
        let first = timed()?;
        let mut pace = self.pace("reads", LATER_READS as u64);
        let mut later = Vec::new();
        while pace.step() {
            later.push(timed()?);
        }
        pace.finish();
        self.row(format!("{measured}, first"), first, "us", Some(goal));
        self.row(format!("{measured}, median"), median(&mut later), "us", Some(goal));
        Ok(())
    }

    /// Watches the space of `store` at rest; `full` seconds, or fewer where the choice says so.
    pub(super) fn rest(&self, watch: &mut SpaceWatch, store: &Store<'_>, live: u64, full: f64) -> Result<()> {
        let rest = Duration::from_secs_f64(full.min(self.choice.rest_s));
        let started = Instant::now();
        let progress = Progress::start(&format!("{} rest", self.case), u64::MAX, Some(rest));
        while started.elapsed() < rest {
            std::thread::sleep(LOOK.min(rest));
            watch.look(store, live)?;
            progress.show(0);
        }
        progress.finish();
        watch.look(store, live)
    }
}

/// A store of a case; its directory goes with it.
pub(super) struct Store<'a> {
    engine: &'a dyn Engine,
    subject: Box<dyn Subject>,
    dir: TempDir,
}

impl Store<'_> {
    /// Directory of the store.
    pub(super) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Puts a row into the main map.
    pub(super) fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.subject.put(Map::Main, key, value)
    }

    /// Deletes a row of the main map.
    pub(super) fn delete(&self, key: &[u8]) -> Result<()> {
        self.subject.delete(Map::Main, key)
    }

    /// Moves a row to the cold map.
    pub(super) fn move_to_cold(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.subject.put(Map::Cold, key, value)?;
        self.subject.delete(Map::Main, key)
    }

    /// The store itself, which only Terrace has.
    pub(super) fn db(&self) -> Result<&terrace::Db> {
        self.subject.terrace().ok_or_else(|| "the case needs Terrace".into())
    }

    /// Closes the store.
    pub(super) fn close(self) -> Result<()> {
        self.subject.close()
    }

    /// Closes the store and opens it again.
    pub(super) fn reopen(self) -> Result<Self> {
        let Self { engine, subject, dir } = self;
        subject.close()?;
        Ok(Self { engine, subject: engine.open(dir.path())?, dir })
    }
}

impl std::ops::Deref for Store<'_> {
    type Target = dyn Subject;

    fn deref(&self) -> &Self::Target {
        &*self.subject
    }
}

/// Counts the steps of a loop, shows them, and ends it.
pub(super) struct Pace {
    started: Instant,
    shown: Instant,
    limit: Option<Duration>,
    steps: u64,
    done: u64,
    progress: Progress,
}

impl Pace {
    fn new(phase: &str, steps: u64, limit: Option<Duration>) -> Self {
        let started = Instant::now();
        let progress = Progress::start(phase, steps, limit);
        Self { started, shown: started, limit, steps, done: 0, progress }
    }

    /// Begins a step; false once there is none, or no time, left. There is always a first one.
    pub(super) fn step(&mut self) -> bool {
        if self.done == self.steps {
            return false;
        }
        let now = Instant::now();
        if self.done > 0 && self.limit.is_some_and(|limit| now - self.started >= limit) {
            return false;
        }
        if now - self.shown >= Progress::INTERVAL {
            self.shown = now;
            self.progress.show(self.done);
        }
        self.done += 1;
        true
    }

    /// Steps begun.
    pub(super) fn done(&self) -> u64 {
        self.done
    }

    /// Seconds since the first step.
    pub(super) fn seconds(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    /// Ends the loop; its seconds.
    pub(super) fn finish(self) -> f64 {
        let seconds = self.seconds();
        self.progress.finish();
        seconds
    }
}

/// The course of a store's space.
pub(super) struct SpaceWatch {
    started: Instant,
    looked: Instant,
    points: Vec<Point>,
}

impl SpaceWatch {
    /// Begins now.
    pub(super) fn start() -> Self {
        let now = Instant::now();
        Self { started: now, looked: now, points: Vec::new() }
    }

    /// Looks if the last look is some time ago.
    pub(super) fn glance(&mut self, store: &Store<'_>, live: u64) -> Result<()> {
        if self.looked.elapsed() < LOOK { Ok(()) } else { self.look(store, live) }
    }

    /// Looks at the space of `store`, whose rows have `live` bytes.
    pub(super) fn look(&mut self, store: &Store<'_>, live: u64) -> Result<()> {
        self.looked = Instant::now();
        let at_s = (self.looked - self.started).as_secs_f64();
        self.points.push(Point { at_s, figure: space_bytes(store.path())? as f64, against: live as f64 });
        Ok(())
    }

    /// Number of points so far.
    pub(super) fn len(&self) -> usize {
        self.points.len()
    }

    /// The last point.
    pub(super) fn last(&self) -> Point {
        self.points.last().copied().unwrap_or(Point { at_s: 0.0, figure: 0.0, against: 1.0 })
    }

    /// All points.
    pub(super) fn points(self) -> Vec<Point> {
        self.points
    }

    /// The points from number `from` on.
    pub(super) fn since(&self, from: usize) -> &[Point] {
        &self.points[from.min(self.points.len())..]
    }
}

impl Point {
    /// How many times as much as what it is held against.
    pub(super) fn ratio(&self) -> f64 {
        self.figure / self.against.max(1.0)
    }
}

/// The middle one; the mean of two where their number is even. 0 of none.
pub(super) fn median(figures: &mut [f64]) -> f64 {
    figures.sort_by(f64::total_cmp);
    let half = figures.len() / 2;
    match figures {
        [] => 0.0,
        all if all.len() % 2 == 1 => all[half],
        all => f64::midpoint(all[half - 1], all[half]),
    }
}

/// A key of 16 bytes: a letter and digits, so that keys have the order of their numbers.
pub(super) fn key(letter: u8, number: u64) -> [u8; 16] {
    let mut key = [b'0'; 16];
    key[0] = letter;
    let mut rest = number;
    for digit in key[1..].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    key
}

/// A value of `bytes` that no compression makes shorter.
pub(super) fn value(bytes: usize, rng: &mut Rng) -> Vec<u8> {
    let mut value = Vec::with_capacity(bytes + 8);
    while value.len() < bytes {
        value.extend_from_slice(&rng.next_u64().to_le_bytes());
    }
    value.truncate(bytes);
    value
}
