//! What has expired goes, though no merge comes along.
//!
//! Merges drop what has expired of the tables that they read. Those of the deepest level may meet none for ever, as where keys
//! ascend. So a table of which every value has expired is given up, unread, and one of which many have is merged alone. Either
//! only where the tree holds nothing older in its range: until then what is expired hides what is below it (I4), or a merge is
//! yet to come.
//!
//! How much of a table has expired is not known, only when its oldest and its newest value were written. It is due once half of the
//! time between these has passed, but no earlier than an eighth of the time that values live behind the first: so if values come
//! evenly, less than half of the bytes is written again, and once. What expires late is a part of the data, at most a half.
//! (RocksDB merges a table once its oldest data is older than its `ttl`, Cassandra once it estimates that a fifth is
//! droppable.)

use super::{Plan, PlanInput, PlanKind, Reason, TreeView};
use crate::catalog::{Run, TableMeta};
use crate::types::{Dates, KeyRange};

/// A table is not merged for what has expired within one part in so many of the time that values live.
const LIFE_PARTS: u64 = 8;

/// The time that values of a tree live, and what it has come to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Expiring {
    /// Values of this second or before have expired, in seconds since 1970.
    pub upto: u64,
    /// Seconds for which values live.
    pub ttl: u64,
}

impl Expiring {
    /// Whether every value has expired.
    #[must_use]
    pub fn is_over(&self, dates: Dates) -> bool {
        let last = if planted!("table-gone-with-its-first-value") { dates.oldest } else { dates.newest };
        u64::from(last) <= self.upto
    }

    /// Whether enough have for the table to be merged alone.
    #[must_use]
    pub fn is_due(&self, dates: Dates) -> bool {
        let passed = self.upto.saturating_sub(dates.oldest.into());
        let half = u64::from(dates.newest - dates.oldest).div_ceil(2);
        passed >= half.max(self.ttl / LIFE_PARTS).max(1)
    }
}

/// The tables of one run that are given up; nothing if values live for ever, or none has expired where it can go.
#[must_use]
pub fn next_drop(view: &TreeView<'_>) -> Option<Plan> {
    let expiring = view.shape.expiring?;
    bottoms(view).find_map(|(level, at, run)| {
        let is_over = |table: &&TableMeta| table.dates.is_some_and(|dates| expiring.is_over(dates));
        let over: Vec<_> = run
            .iter()
            .map(|table| &**table)
            .filter(is_over)
            .filter(|table| is_free(view, level, at, table))
            .collect();
        let claims = over.iter().map(|table| table.range.clone()).collect();
        plan(view, level, PlanKind::Drop, &over, claims)
    })
}

/// The next tables below level 0, neighbours of up to so many bytes, to be merged into their own level.
#[must_use]
pub fn next_distilled(view: &TreeView<'_>, group_bytes: u64) -> Option<Plan> {
    let expiring = view.shape.expiring?;
    bottoms(view).filter(|(level, ..)| *level > 0).find_map(|(level, at, run)| {
        let is_due = |table: &TableMeta| {
            table.dates.is_some_and(|dates| expiring.is_due(dates)) && is_free(view, level, at, table)
        };
        alone(view, level, run, group_bytes, is_due)
    })
}

/// The merge of the first tables of `run` that are `due`, neighbours of up to so many bytes, into their own level. Outputs may reach
/// over the gaps between them, so these are claimed, too.
pub(super) fn alone(
    view: &TreeView<'_>,
    level: u8,
    run: &Run,
    bytes_max: u64,
    is_due: impl Fn(&TableMeta) -> bool,
) -> Option<Plan> {
    let mut tables = run.iter().map(|table| &**table).skip_while(|table| !is_due(table));
    let first = tables.next()?;
    let (mut taken, mut range) = (vec![first], first.range.clone());
    let mut bytes = first.bytes();
    for table in tables {
        let wider = range.hull(&table.range);
        bytes += table.bytes();
        if bytes > bytes_max || !is_due(table) || view.busy.conflicts(level, &wider) {
            break;
        }
        taken.push(table);
        range = wider;
    }
    plan(view, level, PlanKind::Merge, &taken, vec![range])
}

/// Levels and runs, the oldest data first; with each run's place in its level.
fn bottoms<'a>(view: &TreeView<'a>) -> impl Iterator<Item = (u8, usize, &'a Run)> {
    let mut levels: Vec<_> = view.version.levels().collect();
    levels.reverse();
    levels
        .into_iter()
        .flat_map(|(level, state)| state.runs.iter().enumerate().rev().map(move |(at, run)| (level, at, run)))
}

/// Whether nothing older than `table`, which is of the run at `at` of `level`, lies in its range, and no job is at work there.
fn is_free(view: &TreeView<'_>, level: u8, at: usize, table: &TableMeta) -> bool {
    let is_clear = |run: &Run| {
        planted!("expired-table-gone-before-what-it-hides") || run.overlapping(&table.range).next().is_none()
    };
    !view.busy.conflicts(level, &table.range)
        && view.version.level(level).runs[at + 1..].iter().all(is_clear)
        && view
            .version
            .levels()
            .filter(|(below, _)| *below > level)
            .all(|(_, state)| state.runs.iter().all(is_clear))
}

/// The plan that does so with `tables`, which are of one run of `level`, if there are any.
fn plan(
    view: &TreeView<'_>,
    level: u8,
    kind: PlanKind,
    tables: &[&TableMeta],
    claims: Vec<KeyRange>,
) -> Option<Plan> {
    Some(Plan {
        keyspace: view.keyspace,
        kind,
        source: level,
        target: level,
        inputs: tables.iter().map(|table| PlanInput { level, table: table.id }).collect(),
        moves: Vec::new(),
        fences: Vec::new(),
        range: claims.iter().cloned().reduce(|hull, range| hull.hull(&range))?,
        claims,
        bytes: tables.iter().map(|table| table.bytes()).sum(),
        cursor: None,
        reason: Reason::Expiry,
    })
}
