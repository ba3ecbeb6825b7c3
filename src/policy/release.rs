//! Released space: tables are compacted alone for what they hold for readers that have gone.
//!
//! A compaction keeps versions that only a reader at an older number sees, and tombstones that only such a reader
//! keeps from going. It notes how much that is and for whom ([`Holds`](crate::types::Holds)). All versions of a key
//! lie in one table, and so does the part of a range tombstone over it. So once these readers are gone, a compaction
//! of that table alone gives the space back, in any level. The next compaction would do so too. But the deepest
//! tables may never meet one, and level 0 waits for more. (RocksDB marks files of the last level whose entries are
//! all older than every snapshot, Pebble picks files with many tombstones.)
//!
//! **Cost.** A table is due from a quarter of its bytes, or of its records, on. So at most three bytes, or records,
//! are written for each one that goes, and each goes once. In all that is at most three times what was overwritten or
//! deleted while a reader held it. Smaller amounts wait for the next compaction, or for a manual one
//! ([`is_released`]).
//!
//! Invariant: a job leaves nothing behind that was released when it began, and notes anew what it keeps. So no job
//! follows another for the same table unless a reader has gone meanwhile.
//!
//! Entries that a newer table hides are not counted: they would be there without the reader too, and go with the
//! usual compactions.

use super::expiry::{alone, bottoms};
use crate::catalog::TableMeta;
use crate::policy::plan::{Plan, Reason};
use crate::policy::view::TreeView;
use crate::types::Seq;

/// Divisor: a table is due once this part of it is released.
const RELEASED_PARTS: u64 = 4;

/// Whether `table` holds anything for readers that have gone. Somebody reads at `pins`, which ascend.
#[must_use]
pub fn is_released(table: &TableMeta, pins: &[Seq]) -> bool {
    table.holds.released(pins).records > 0
}

/// Whether it holds enough to be compacted for that.
fn is_due(table: &TableMeta, pins: &[Seq]) -> bool {
    if table.holds.groups().is_empty() {
        return false;
    }
    let pins = if planted!("held-space-taken-for-released") { &[] } else { pins };
    let released = table.holds.released(pins);
    let is_part = |part: u64, whole: u64| part > 0 && part.saturating_mul(RELEASED_PARTS) >= whole;
    is_part(released.records, table.entries.saturating_add(table.range_tombstones))
        || is_part(released.bytes, table.bytes())
}

/// The next tables to compact into their own level: neighbours of up to `group_bytes` together. In level 0, as in any
/// level of several runs, one at a time: a compaction of several might reach over older entries of another run (I3).
#[must_use]
pub fn next_release(view: &TreeView<'_>, group_bytes: u64) -> Option<Plan> {
    if view.shape.put_off {
        return None;
    }
    bottoms(view).filter(|(.., run)| run.held().records > 0).find_map(|(level, _, run)| {
        let is_due =
            |table: &TableMeta| is_due(table, view.pins) && !view.busy.conflicts(level, &table.range);
        let plan = alone(view, level, run, if level == 0 { 0 } else { group_bytes }, is_due)?;
        Some(Plan { reason: Reason::Released, ..plan })
    })
}
