//! What was measured.

use serde::{Deserialize, Serialize};

use super::size::Size;
use super::space::SpacePoint;
use super::subject::Role;
use crate::report::{LatencySummary, Provenance};

/// A run: all that was measured with the same settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ValuesRun {
    /// Where it comes from.
    #[serde(flatten)]
    pub provenance: Provenance,
    /// Names the streams of random numbers.
    pub seed: u64,
    /// Bytes of keys and values that were loaded.
    pub data_bytes: u64,
    /// Memory of a store.
    pub memory_bytes: u64,
    /// Seconds of each phase of updates.
    pub update_s: f64,
    /// Seconds of each phase of reads.
    pub read_s: f64,
    /// Seconds after the last write at which space is that at rest.
    pub rest_s: f64,
    /// One for each engine, size and round.
    pub values: Vec<Cell>,
}

/// One engine with values of one size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The engine and its options.
    pub engine: String,
    /// What it is among others.
    pub role: Role,
    /// Version of the engine; empty where it is that of this program.
    #[serde(default)]
    pub version: String,
    /// How large values were.
    pub size: Size,
    /// Counts from 1.
    pub round: u32,
    /// Records that were loaded.
    pub records: u64,
    /// By how much the memory of the process has grown at most, the page cache left out.
    pub memory_growth_bytes: u64,
    /// Phases, in order.
    pub phases: Vec<Phase>,
    /// Space over live bytes in the end.
    pub space_end: f64,
    /// The space over time.
    pub course: Vec<SpacePoint>,
    /// Why it is not whole, where it is not.
    #[serde(default)]
    pub failed: Option<String>,
}

impl Cell {
    /// The phase that is called `name`.
    #[must_use]
    pub fn phase(&self, name: &str) -> Option<&Phase> {
        self.phases.iter().find(|phase| phase.name == name)
    }
}

/// One phase. Rates with `drained` count the time until the store was at rest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// `load`, `uniform`, `zipfian`, `get`, `scan-10`, `scan-100`, `keys-100`, `contains`, `delete`; `put` of mail.
    pub name: String,
    /// When it began.
    pub start_s: f64,
    /// How long its operations took.
    pub seconds: f64,
    /// How long it took from then on until the store was at rest; 0 of reads.
    pub drain_s: f64,
    /// Whether that was not waited for to its end.
    pub is_cut_off: bool,
    /// Calls.
    pub operations: u64,
    /// Rows that these have written or read.
    pub rows: u64,
    /// Bytes of their keys and values.
    pub user_bytes: u64,
    /// Calls per second.
    pub ops_per_s: f64,
    /// The same, drained.
    pub drained_ops_per_s: f64,
    /// Bytes of keys and values per second, drained.
    pub user_bytes_per_s: f64,
    /// Bytes that the process has caused to be written until the store was at rest.
    pub written_bytes: Option<u64>,
    /// The same by the engine's own count.
    pub told_written_bytes: Option<u64>,
    /// The former over those of keys and values; of writes.
    pub written_over_user: Option<f64>,
    /// The latter over those of keys and values; of writes.
    pub told_over_user: Option<f64>,
    /// Latencies of calls.
    pub latency_us: LatencySummary,
    /// Most space over live bytes until the next phase; of writes.
    pub space_peak: Option<f64>,
    /// Space over live bytes so long after the last call as stores rest; of writes.
    pub space_rested: Option<f64>,
}

impl Phase {
    /// Bytes written over those of users: the larger one of what the system and the engine tell. What is deleted before it is
    /// written back is missing in the former, what the file system adds in the latter.
    #[must_use]
    pub fn written(&self) -> Option<f64> {
        let known = [self.written_over_user, self.told_over_user];
        known.into_iter().flatten().reduce(f64::max)
    }
}

/// All rounds of an engine with values of one size.
pub struct Group<'a> {
    /// How large values were.
    pub size: Size,
    /// The engine.
    pub engine: &'a str,
    /// What it is among others.
    pub role: Role,
    /// A cell for each round.
    pub cells: Vec<&'a Cell>,
}

impl<'a> Group<'a> {
    /// The median of `figure` over the rounds.
    #[must_use]
    pub fn median(&self, figure: &dyn Fn(&'a Cell) -> Option<f64>) -> Option<f64> {
        median(self.cells.iter().filter_map(|&cell| figure(cell)).collect())
    }

    /// The median over the rounds of this group's figure over that of `other` in the same round.
    #[must_use]
    pub fn ratio(&self, other: &Self, figure: &dyn Fn(&'a Cell) -> Option<f64>) -> Option<f64> {
        let pairs = self.cells.iter().filter_map(|cell| {
            let beside = other.cells.iter().find(|other| other.round == cell.round)?;
            Some(figure(cell)? / figure(beside)?)
        });
        median(pairs.filter(|ratio| ratio.is_finite()).collect())
    }
}

/// The groups of `run`: sizes in the order in which they were measured, and engines within them.
#[must_use]
pub fn groups(run: &ValuesRun) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for cell in &run.values {
        match groups.iter_mut().find(|group| group.size == cell.size && group.engine == cell.engine) {
            Some(group) => group.cells.push(cell),
            None => {
                let group =
                    Group { size: cell.size, engine: &cell.engine, role: cell.role, cells: vec![cell] };
                let last = groups.iter().rposition(|other| other.size == cell.size);
                groups.insert(last.map_or(groups.len(), |last| last + 1), group);
            }
        }
    }
    groups
}

/// The middle one; the mean of two where their number is even.
fn median(mut figures: Vec<f64>) -> Option<f64> {
    figures.sort_by(f64::total_cmp);
    let half = figures.len() / 2;
    match &figures[..] {
        [] => None,
        all if all.len() % 2 == 1 => Some(all[half]),
        all => Some(f64::midpoint(all[half - 1], all[half])),
    }
}
