//! How deletion behaves: what a delete costs readers afterwards, and how soon and how fully its space comes back.
//!
//! 1. A case ([`CASES`]) is a small workload on a store of its own: rows are put and deleted, then readers or the disk are
//!    measured. Each figure is a [`Row`], most of them with a goal; the course of space or of a rate is a [`Course`].
//! 2. A case knows only [`Subject`], so the same workload runs on other engines. Those that need more ask for
//!    [`Subject::terrace`], and are left out elsewhere.
//! 3. Everything runs on the real file system in one thread of load. `terrace bench deletes` runs it on Terrace.

mod big_values;
mod carts;
mod expiry;
mod keyspaces;
mod queue;
mod range_tombstones;
mod seek;
mod session;
mod space;
mod subject;
mod terrace;
mod text;

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use session::Session;
pub use subject::{Engine, Map, Subject};
pub use terrace::Terrace;
pub use text::{beside, text};

use crate::Result;
use crate::report::Provenance;

/// A workload and what is measured of it.
pub struct Case {
    /// Name in reports and on the command line.
    pub name: &'static str,
    /// What it measures.
    pub about: &'static str,
    run: fn(&mut Session<'_>) -> Result<()>,
    /// Whether it needs nothing but [`Subject`].
    pub is_common: bool,
}

const fn common(name: &'static str, about: &'static str, run: fn(&mut Session<'_>) -> Result<()>) -> Case {
    Case { name, about, run, is_common: true }
}

const fn own(name: &'static str, about: &'static str, run: fn(&mut Session<'_>) -> Result<()>) -> Case {
    Case { name, about, run, is_common: false }
}

/// All cases, in the order in which they run. Those that measure memory are the first: what others have freed, the allocator may
/// keep, and later ones would use it unseen.
pub const CASES: &[Case] = &[
    own("keyspaces", "many small keyspaces, created, flushed and dropped", keyspaces::keyspaces),
    own("big-values", "large values, a fifth deleted, compacted", big_values::big_values),
    common("seek-memtable", "a seek over deleted rows in the memtable", seek::memtable),
    common("seek-tables", "a seek over deleted rows in tables", seek::tables),
    common("queue", "pops from the head by a new iterator each", queue::queue),
    own("queue-snapshot", "the same under snapshots", queue::with_snapshots),
    own("queue-first", "the same by `first`", queue::by_first),
    own("queue-cursor", "the same by a new cursor each", queue::by_cursor),
    own("queue-transaction", "the same in transactions", queue::in_transactions),
    common("stack", "pops from the end", queue::stack),
    common("queues", "pops from many queues in one keyspace, by prefix", queue::many),
    common("big-rows", "a seek over large deleted rows", seek::big_rows),
    common("series", "days of a time series, the oldest deleted as a range", space::series),
    common("random", "nine of ten rows deleted in random order", space::random),
    common("carts", "rows that are updated often, then moved to another keyspace", carts::carts),
    own("expiry", "a seek over expired rows", expiry::expiry),
    own("range-tombstones", "reads beside many range tombstones", range_tombstones::range_tombstones),
];

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct Choice {
    /// Names of cases, in any order; all if there are none.
    pub cases: Vec<String>,
    /// Divides the counts of rows, at least 1.
    pub scale: f64,
    /// Where stores are made; they are removed afterwards.
    pub dir: PathBuf,
    /// Seconds after which a loop that has not come to its end is cut off.
    pub limit_s: f64,
    /// Seconds that a store is watched at rest.
    pub rest_s: f64,
    /// Names the streams of random numbers.
    pub seed: u64,
}

/// All that was measured of one engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeletesRun {
    /// Where it comes from.
    #[serde(flatten)]
    pub provenance: Provenance,
    /// Names the streams of random numbers.
    pub seed: u64,
    /// Counts were divided by this.
    pub scale: f64,
    /// The engine and its options.
    pub engine: String,
    /// Figures, in the order in which they were measured.
    pub deletes: Vec<Row>,
    /// Courses of space and of rates.
    pub courses: Vec<Course>,
}

/// One figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Name of the case.
    pub case: String,
    /// What was measured.
    pub measured: String,
    /// How much it was.
    pub figure: f64,
    /// In which unit.
    pub unit: String,
    /// What it should be; none where the figure only explains others.
    pub goal: Option<Goal>,
}

impl Row {
    /// Whether the same was measured, be it of another engine.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.case == other.case && self.measured == other.measured
    }
}

/// What a figure should be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Goal {
    /// This or less.
    AtMost(f64),
    /// This or more.
    AtLeast(f64),
}

impl Goal {
    /// Whether `figure` is what it should be.
    #[must_use]
    pub fn is_met(self, figure: f64) -> bool {
        match self {
            Self::AtMost(bound) => figure <= bound,
            Self::AtLeast(bound) => figure >= bound,
        }
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtMost(bound) => write!(f, "at most {bound}"),
            Self::AtLeast(bound) => write!(f, "at least {bound}"),
        }
    }
}

/// The course of a case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Course {
    /// Name of the case.
    pub case: String,
    /// What it is the course of.
    pub quantity: Quantity,
    /// Points in order of time.
    pub points: Vec<Point>,
}

/// What a course is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Bytes on disk, beside the bytes of the rows that live.
    Space,
    /// Pops a second.
    Pops,
}

/// A point of a course.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Seconds since the beginning of the case.
    pub at_s: f64,
    /// What the course is of.
    pub figure: f64,
    /// What it is held against: live bytes, or the goal.
    pub against: f64,
}

/// Measures `engine`. `told` hears of each case before it begins.
///
/// # Errors
/// A case that does not exist; whatever a store or the file system reports, and an answer that is wrong.
pub fn run(engine: &dyn Engine, choice: &Choice, told: &mut dyn FnMut(&str)) -> Result<DeletesRun> {
    let known = |name: &String| CASES.iter().any(|case| case.name == name);
    if let Some(name) = choice.cases.iter().find(|name| !known(name)) {
        let names: Vec<_> = CASES.iter().map(|case| case.name).collect();
        return Err(format!("no case is called {name}: there are {}", names.join(", ")).into());
    }
    let mut run = DeletesRun {
        provenance: Provenance::here(),
        seed: choice.seed,
        scale: choice.scale,
        engine: engine.name(),
        deletes: Vec::new(),
        courses: Vec::new(),
    };
    for case in CASES {
        let is_chosen = choice.cases.is_empty() || choice.cases.iter().any(|name| name == case.name);
        if is_chosen && (case.is_common || engine.is_terrace()) {
            told(&format!("{}: {}, {}", engine.name(), case.name, case.about));
            let mut session = Session::new(engine, choice, case.name);
            (case.run)(&mut session).map_err(|error| format!("{}: {}: {error}", engine.name(), case.name))?;
            session.end(&mut run);
        }
    }
    Ok(run)
}

#[cfg(test)]
mod tests;
