//! A version: the immutable tree of one keyspace at one moment.

use std::fmt;
use std::sync::Arc;

use super::sequence::{Element, Sequence};
use super::{Run, TableMeta, Values};
use crate::types::{Key, KeyRange, LEVELS, TableId};

/// The tree of one keyspace at one moment. Cloning shares the tables and most of the structure.
///
/// # Invariants
///
/// I1 to I3 of `docs/invariants.md`; [`check_version`](super::check_version) checks what one version can show.
#[derive(Clone, Default)]
pub struct Version {
    pub(super) levels: [LevelState; LEVELS],
    // Every table of `levels`, by id.
    pub(super) places: Sequence<Place>,
    pub(super) values: Values,
}

/// One level of a tree.
#[derive(Clone, Default)]
pub struct LevelState {
    /// Runs, newest first. Level 0 has one per epoch. In a deeper level, tables lie where `catalog/placement.rs` puts
    /// them: tables that are disjoint make one run.
    pub runs: Vec<Run>,
    /// Where the level's last victim ended. The picker goes on from there.
    pub cursor: Option<Key>,
}

/// A table and the level that it is in.
#[derive(Clone)]
pub struct Place {
    pub level: u8,
    pub table: Arc<TableMeta>,
}

impl Element for Place {
    type Key = TableId;
    type Total = Nothing;

    fn key(&self) -> TableId {
        self.table.id
    }

    fn total(&self) -> Nothing {
        Nothing
    }
}

/// The empty total: a sequence of places needs no sums.
#[derive(Clone, Copy, Default)]
pub struct Nothing;

impl std::ops::AddAssign for Nothing {
    fn add_assign(&mut self, _: Self) {}
}

impl LevelState {
    /// Length of all tables, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.runs.iter().map(Run::bytes).sum()
    }

    /// The tables, newest run first, in key order within a run.
    pub fn tables(&self) -> impl Iterator<Item = &Arc<TableMeta>> {
        self.runs.iter().flat_map(Run::iter)
    }

    /// Number of runs.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.runs.len()
    }

    /// The run with most bytes; of equal ones the oldest.
    #[must_use]
    pub fn largest(&self) -> Option<&Run> {
        self.runs.iter().max_by_key(|run| run.bytes())
    }

    /// The tables that overlap `range`, newest run first, in key order within a run.
    pub fn overlapping<'a>(&'a self, range: &KeyRange) -> impl Iterator<Item = &'a Arc<TableMeta>> {
        self.runs.iter().flat_map(move |run| run.overlapping(range))
    }

    /// Length of the tables that overlap `range`, in bytes.
    #[must_use]
    pub fn overlap_bytes(&self, range: &KeyRange) -> u64 {
        self.runs.iter().map(|run| run.overlap_bytes(range)).sum()
    }

    /// The place in `runs` of the run that holds `table`.
    #[must_use]
    pub fn run_of(&self, table: &TableMeta) -> Option<usize> {
        let holds = |run: &Run| run.find(&table.range.start).is_some_and(|found| found.id == table.id);
        self.runs.iter().position(holds)
    }
}

impl Version {
    /// The tree without tables.
    #[must_use]
    pub fn empty() -> Self {
        Self::default()
    }

    /// The level with number `level`.
    ///
    /// # Panics
    ///
    /// When there is no such level.
    #[must_use]
    pub fn level(&self, level: u8) -> &LevelState {
        &self.levels[usize::from(level)]
    }

    /// The levels with their numbers, from the top.
    pub fn levels(&self) -> impl Iterator<Item = (u8, &LevelState)> {
        (0u8..).zip(&self.levels)
    }

    /// All runs with their levels, from the newest to the oldest.
    pub fn runs(&self) -> impl Iterator<Item = (u8, &Run)> {
        self.levels().flat_map(|(level, state)| state.runs.iter().map(move |run| (level, run)))
    }

    /// Length of the tables of `level`, in bytes.
    ///
    /// # Panics
    ///
    /// When there is no such level.
    #[must_use]
    pub fn bytes(&self, level: u8) -> u64 {
        self.level(level).bytes()
    }

    /// The deepest level with tables.
    #[must_use]
    pub fn deepest(&self) -> Option<u8> {
        self.levels().filter(|(_, state)| !state.runs.is_empty()).last().map(|(level, _)| level)
    }

    /// The level below level 0 that has most bytes; of equal ones the deepest. `None` if there is none with tables.
    #[must_use]
    pub fn largest(&self) -> Option<u8> {
        let levels = self.levels().skip(1).filter(|(_, state)| !state.runs.is_empty());
        levels.max_by_key(|(level, state)| (state.bytes(), *level)).map(|(level, _)| level)
    }

    /// Every table with its level: levels from the top, runs newest first, tables in key order.
    pub fn tables(&self) -> impl Iterator<Item = (u8, &Arc<TableMeta>)> {
        self.levels().flat_map(|(level, state)| state.tables().map(move |table| (level, table)))
    }

    /// The table with `id`, and its level.
    #[must_use]
    pub fn table(&self, id: TableId) -> Option<(u8, &Arc<TableMeta>)> {
        let place = self.places.find(|other| *other < id)?;
        (place.table.id == id).then_some((place.level, &place.table))
    }

    /// The tables that overlap one of `ranges`, which are disjoint and ascend, in their runs, and all value tables. The result
    /// holds no other tables.
    #[must_use]
    pub fn within(&self, ranges: &[KeyRange]) -> Self {
        let mut part = Self::default();
        let mut places = Vec::new();
        for ((level, state), kept) in self.levels().zip(&mut part.levels) {
            for run in &state.runs {
                let run = run.within(ranges);
                places.extend(run.iter().map(|table| Place { level, table: table.clone() }));
                kept.runs.extend((!run.is_empty()).then_some(run));
            }
        }
        places.sort_by_key(Element::key);
        part.places = Sequence::from_sorted(places);
        part.values = self.values.clone();
        part
    }

    /// The value tables.
    #[must_use]
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// Number of tables.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there are no tables.
    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Version")?;
        for (level, state) in self.levels() {
            for run in &state.runs {
                write!(f, "\n  L{level} {run:?}")?;
            }
            if let Some(cursor) = &state.cursor {
                write!(f, "\n  L{level} cursor={}", cursor.escape_ascii())?;
            }
        }
        Ok(())
    }
}
