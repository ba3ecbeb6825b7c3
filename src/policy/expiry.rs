//! Expiry: tables are dropped, or compacted alone, for what has expired of them.
//!
//! Compactions drop what has expired of the tables that they read. Tables of the deepest level may never meet one,
//! for example where keys ascend. So a table of which every value has expired is dropped unread, and a table of which
//! much has expired is compacted alone.
//!
//! **When.** The record of a table says only when its oldest and its newest value were written. The table is due once
//! half of the time between the two has passed since the oldest expired, but not before an eighth of the time to live
//! has. So if values come evenly, a half of it is written again, then a quarter, then an eighth, and at most as much
//! has expired as lives. (RocksDB compacts a table once its oldest data is older than its `ttl`, Cassandra once it
//! estimates that a fifth is droppable.)
//!
//! # Invariants
//!
//! * Both happen only where the tree holds nothing older in the table's range. Elsewhere the expired values hide what
//!   is below them (I4), or a compaction is yet to come.
//! * A table that is dropped unread holds nothing newer than a number at which somebody reads. Otherwise a
//!   transaction would miss a write that came after it began (I5). A compaction of the table alone keeps what such
//!   readers need, like any compaction.

use crate::catalog::{Run, TableMeta};
use crate::policy::plan::{OutputAge, Plan, PlanInput, PlanKind, Reason};
use crate::policy::view::{Expiring, TreeView};
use crate::types::{KeyRange, Timestamps};

/// Tables that one edit gives up, at most.
const DROPS_MAX: usize = 256;

/// Divisor: no table is compacted for what has expired before this part of the time to live has passed.
const TTL_PARTS: u64 = 8;

impl Expiring {
    /// Whether nothing of `table` is alive, and nobody reads at a number below any of its entries.
    fn is_over(&self, table: &TableMeta) -> bool {
        let pin = self.oldest_pin.filter(|_| !planted!("what-is-newer-than-a-pin-gone-unread"));
        let first = planted!("table-gone-with-its-first-value");
        let has_expired = |timestamps: Timestamps| {
            u64::from(if first { timestamps.oldest } else { timestamps.newest }) <= self.upto
        };
        table.timestamps.map_or(table.entries == table.tombstones, has_expired)
            && pin.is_none_or(|pin| table.max_seq <= pin)
    }

    /// Whether something of `table` has expired. A table without dates may hold such values.
    pub(crate) fn has_begun(&self, table: &TableMeta) -> bool {
        let begun = |timestamps: Timestamps| u64::from(timestamps.oldest) <= self.upto;
        table.timestamps.map_or(table.entries > table.tombstones, begun)
    }

    /// Whether enough has for `table` to be compacted alone.
    fn is_due(&self, table: &TableMeta) -> bool {
        let Some(timestamps) = table.timestamps else { return self.has_begun(table) };
        let passed = self.upto.saturating_sub(timestamps.oldest.into());
        let half = u64::from(timestamps.newest - timestamps.oldest).div_ceil(2);
        passed >= half.max(self.ttl / TTL_PARTS).max(1)
    }
}

/// The tables of one run to drop; none if values live for ever, or nothing has expired where it can go.
#[must_use]
pub fn next_drop(view: &TreeView<'_>) -> Option<Plan> {
    let expiring = view.shape.expiring?;
    bottoms(view).find_map(|(level, at, run)| {
        let is_over = |table: &&TableMeta| expiring.is_over(table) && is_free(view, level, at, table);
        let over: Vec<_> = run.iter().map(|table| &**table).filter(is_over).take(DROPS_MAX).collect();
        let claims = over.iter().map(|table| table.range.clone()).collect();
        within_level(view, level, PlanKind::Drop, &over, claims)
    })
}

/// The next tables below level 0 to compact into their own level: neighbours of up to `group_bytes` together.
#[must_use]
pub fn next_expiry_compaction(view: &TreeView<'_>, group_bytes: u64) -> Option<Plan> {
    let expiring = view.shape.expiring.filter(|_| !view.shape.put_off)?;
    bottoms(view).filter(|(level, ..)| *level > 0).find_map(|(level, at, run)| {
        let is_due = |table: &TableMeta| expiring.is_due(table) && is_free(view, level, at, table);
        alone(view, level, run, group_bytes, is_due)
    })
}

/// The compaction, into their own level, of the first tables of `run` that are due: neighbours of up to `bytes_max`
/// together, or a single one if the level has other runs. Reason: the outputs of several would be as new as the newest
/// of them, and might come to lie over a table of middle age (I3). Outputs may reach over the gaps between neighbours, so
/// these are claimed, too.
pub(super) fn alone(
    view: &TreeView<'_>,
    level: u8,
    run: &Run,
    bytes_max: u64,
    is_due: impl Fn(&TableMeta) -> bool,
) -> Option<Plan> {
    let others = view.version.level(level).depth() > 1 && !planted!("tables-of-several-runs-compacted-alone");
    let bytes_max = if others { 0 } else { bytes_max };
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
    within_level(view, level, PlanKind::Compact, &taken, vec![range])
}

/// Levels and runs, the oldest data first; with each run's place in its level.
pub(super) fn bottoms<'a>(view: &TreeView<'a>) -> impl Iterator<Item = (u8, usize, &'a Run)> {
    let mut levels: Vec<_> = view.version.levels().collect();
    levels.reverse();
    levels
        .into_iter()
        .flat_map(|(level, state)| state.runs.iter().enumerate().rev().map(move |(at, run)| (level, at, run)))
}

/// Whether nothing older than `table` lies in its range, and no job works there. `table` is in the run at `at` of
/// `level`.
fn is_free(view: &TreeView<'_>, level: u8, at: usize, table: &TableMeta) -> bool {
    !view.busy.conflicts(level, &table.range)
        && (planted!("expired-table-gone-before-what-it-hides") || is_bottom(view, level, at, table))
}

/// Whether nothing older lies in the range of `table`, which is in the run at `at` of `level`.
pub(super) fn is_bottom(view: &TreeView<'_>, level: u8, at: usize, table: &TableMeta) -> bool {
    let is_clear = |run: &Run| run.overlapping(&table.range).next().is_none();
    let mut below = view.version.levels().filter(|(below, _)| *below > level);
    view.version.level(level).runs[at + 1..].iter().all(is_clear)
        && below.all(|(_, state)| state.runs.iter().all(is_clear))
}

/// The plan that does so with `tables` of `level`, if there are any.
pub(super) fn within_level(
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
        stacks: false,
        age: OutputAge::Newest,
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
