//! The collector: which value tables are left, and which tables are compacted for that.
//!
//! Values die one by one. Most of what dies is punched. What is *stuck* lies in ranges too short for a hole. Once it is more than
//! a small part of what lives, the value tables with most of it are to be left: their live values are written anew by
//! the jobs that meet pointers to them, and by compactions of tables alone.
//!
//! **Cost.** The value tables with most that is stuck go first. With uniform updates, and a fifth stuck, two
//! to three bytes are written anew for each one that comes back (LFS, SOSP 1991, section 3.5). Pointers are a small part of what they point to.
//!
//! **Hidden garbage.** A value that was overwritten is not known to be dead before its pointer meets the newer entry. So a level
//! whose pointers stand for much of all values is due, if they stand for more than the tables from there on take: then to merge
//! them all costs less than it may show to be dead.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::expiry::{alone, bottoms};
use crate::catalog::{TableMeta, Values, Version};
use crate::policy::layout::Layout;
use crate::policy::plan::{Plan, Reason};
use crate::policy::view::{Collection, TreeShape, TreeView};
use crate::types::{KeyRange, TableId};

/// Divisor: value tables are left once this part of what lives is stuck; in idle time the second.
pub const STUCK_PARTS: u64 = 5;
const STUCK_PARTS_IDLE: u64 = 16;

/// Divisor: a level is due once its pointers stand for this part of all values; in idle time the second.
const HIDDEN_PARTS: u64 = 16;
const HIDDEN_PARTS_IDLE: u64 = 32;

/// Less than this is not worth the trouble, in bytes. Debug builds take the trouble, so that all tests meet it.
const BYTES_MIN: u64 = if cfg!(debug_assertions) { 4 << 10 } else { 1 << 20 };

/// What can be punched: dead ranges of at least so many bytes; `None` for nothing.
pub type HoleBytes = Option<u64>;

fn parts_of(is_idle: bool) -> u64 {
    if is_idle { STUCK_PARTS_IDLE } else { STUCK_PARTS }
}

/// Whether so much is stuck that value tables are to be left.
#[must_use]
pub fn is_collection_due(values: &Values, holes: HoleBytes, is_idle: bool) -> bool {
    let sums = values.sums();
    let stuck = sums.stuck_bytes(holes);
    stuck >= BYTES_MIN && stuck > sums.live_bytes / parts_of(is_idle)
}

/// The value tables to leave, if so much is stuck: those with most of it, until half as much is left. Not those that are
/// `unreadable`.
#[must_use]
pub fn next_collection(
    values: &Values,
    (holes, is_idle): (HoleBytes, bool),
    unreadable: &BTreeSet<TableId>,
) -> Option<Collection> {
    if !is_collection_due(values, holes, is_idle) {
        return None;
    }
    let sums = values.sums();
    let mut tables: Vec<_> = values
        .iter()
        .filter(|table| !unreadable.contains(&table.record.id))
        .map(|table| (table.sums().stuck_bytes(holes), table.sums().live_bytes, table.record.id))
        .collect();
    // By what is stuck for each byte that is to be written anew.
    tables.sort_by_key(|(stuck, live, id)| (Reverse(stuck * 1024 / (live + stuck).max(1)), *id));
    let (mut left, goal) = (sums.stuck_bytes(holes), sums.live_bytes / parts_of(is_idle) / 2);
    let chosen = tables.into_iter().take_while(|(stuck, ..)| {
        let is_wanted = left > goal && *stuck > 0;
        left = left.saturating_sub(*stuck);
        is_wanted
    });
    let tables: BTreeSet<TableId> = chosen.map(|(.., id)| id).collect();
    (!tables.is_empty()).then(|| Collection { tables: Arc::new(tables), ..Collection::default() })
}

/// Whether `table` may point into one of the value tables that are to be left, which have values of these `ranges`.
fn is_due(collection: &Collection, ranges: &[&KeyRange], table: &TableMeta) -> bool {
    let newest = collection.tables.last();
    let may_point = table.values.count > 0
        && newest.is_some_and(|newest| table.values.oldest <= *newest)
        && !collection.clean.contains(&table.id);
    may_point && ranges.iter().any(|range| range.overlaps(&table.range))
}

/// The next table to compact into its own level, for it may point into what is to be left.
#[must_use]
pub fn next_to_collect(view: &TreeView<'_>) -> Option<Plan> {
    let collection = view.collection?;
    if view.shape.put_off {
        return None;
    }
    let values = view.version.values();
    let there = collection.tables.iter().filter_map(|id| values.get(*id));
    let ranges: Vec<&KeyRange> = there.map(|table| &table.record.range).collect();
    bottoms(view).filter(|(.., run)| run.pointers() > 0).find_map(|(level, _, run)| {
        let is_due = |table: &TableMeta| {
            is_due(collection, &ranges, table) && !view.busy.conflicts(level, &table.range)
        };
        let plan = alone(view, level, run, 0, is_due)?;
        Some(Plan { reason: Reason::Values, ..plan })
    })
}

impl TreeShape {
    /// The same in a leveled tree, where levels whose pointers stand for much of all values are due: what they hide is merged away.
    #[must_use]
    pub fn pressed_by_values(mut self, version: &Version, layout: &Layout) -> Self {
        if !matches!(layout, Layout::Leveled(_)) {
            return self;
        }
        let all = version.values().sums().live_bytes;
        let (Some(deepest), true) = (version.deepest(), all >= BYTES_MIN) else { return self };
        let parts = if self.idle { HIDDEN_PARTS_IDLE } else { HIDDEN_PARTS };
        for (level, state) in version.levels().take(usize::from(deepest.max(1))) {
            let at = usize::from(level);
            let bytes: u64 = state.runs.iter().map(|run| run.value_bytes()).sum();
            if bytes >= BYTES_MIN {
                let tables: u64 = version.levels().skip(at).map(|(_, state)| state.bytes()).sum();
                let score = bytes as f64 / (all / parts).max(tables).max(1) as f64;
                self.scores[at] = self.scores[at].max(score);
                // A merge of runs within level 0 would hide as much.
                self.only_runs_due &= level > 0 || score < 1.0;
            }
        }
        self
    }
}
