//! Deleted tables: a table that lies in a deleted range as a whole goes, unread. (Pebble: delete-only compactions.)
//!
//! Who deletes a range, such as the oldest day of a time series, hides most of its tables as wholes. One edit gives them up:
//! nothing is merged, and nothing is written again. Tables that reach over an end of the range stay for compactions.
//!
//! # Invariants
//!
//! * Readers see the range delete: none reads at a number at or above an entry of the table and below the delete's (I4).
//! * The delete is durable before the edit is: otherwise a crash would leave the range deleted in part. The job sees to it.
//! * Nothing comes back from below: the delete itself stays as long as anything older is there (I5).

use std::sync::Arc;

use super::expiry::within_level;
use crate::catalog::{Run, TableMeta, Version};
use crate::policy::plan::{Plan, PlanKind, Reason};
use crate::policy::view::TreeView;
use crate::types::{Holders, KeyRange, RangeTombstone, Seq};

/// Tables that one edit gives up, at most.
const DROPS_MAX: usize = 256;

/// The tables of `run` that lie under `tombstone` as wholes.
fn under<'a>(run: &'a Run, tombstone: &RangeTombstone) -> impl Iterator<Item = &'a Arc<TableMeta>> {
    let RangeTombstone { range, seq } = tombstone;
    // Of a run's tables, only the first and the last that overlap the range may reach over its ends.
    run.overlapping(range)
        .filter(move |table| range.covers(&table.range) || planted!("table-deleted-with-a-part-of-it"))
        .filter(move |table| table.max_seq < *seq || planted!("table-deleted-by-an-older-delete"))
}

/// Whether any table of `version` lies under `tombstone` as a whole.
#[must_use]
pub fn is_over_tables(version: &Version, tombstone: &RangeTombstone) -> bool {
    version.runs().any(|(_, run)| under(run, tombstone).next().is_some())
}

/// Tables of one run to drop, for a range delete hides them.
#[must_use]
pub fn next_deleted(view: &TreeView<'_>) -> Option<Plan> {
    if view.deletes.is_empty() {
        return None;
    }
    let pins: &[Seq] = if planted!("deleted-table-gone-under-a-snapshot") { &[] } else { view.pins };
    view.version.runs().find_map(|(level, run)| {
        let mut deleted: Vec<&TableMeta> = Vec::new();
        for tombstone in view.deletes {
            let is_free = |table: &&Arc<TableMeta>| {
                Holders::between(pins, table.min_seq, tombstone.seq).is_none()
                    && !view.busy.conflicts(level, &table.range)
            };
            deleted.extend(under(run, tombstone).filter(is_free).map(|table| &**table).take(DROPS_MAX));
        }
        deleted.sort_by(|one, other| one.range.start.cmp(&other.range.start));
        deleted.dedup_by_key(|table| table.id);
        deleted.truncate(DROPS_MAX);
        let claims: Vec<KeyRange> = deleted.iter().map(|table| table.range.clone()).collect();
        let plan = within_level(view, level, PlanKind::Drop, &deleted, claims)?;
        Some(Plan { reason: Reason::Deleted, ..plan })
    })
}
