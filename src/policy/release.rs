//! What tables hold for readers that have gone is given up, though no compaction comes along.
//!
//! A compaction keeps versions that only a reader at a number of the past can see, and tombstones that only such a reader keeps from going,
//! and notes how much that is and for whom ([`Holds`](crate::types::Holds)). All of a key lies in one table, and so does the
//! part of a range tombstone that lies over it. So once these readers are gone, a compaction of the table by itself gives it back, in
//! whatever level. The next compaction does so as well; but the deepest tables may meet none for ever, and level 0 waits for more.
//! (RocksDB marks files of the last level whose entries are all older than every snapshot, Pebble picks files with many tombstones.)
//!
//! A table is due from a quarter of its bytes, or of its records, on. So for each byte, or each record, that goes three are written at
//! most, and each goes once: what that adds to all writing is at most three times what was overwritten or deleted under the eyes of a
//! reader. What less there is waits for a compaction, or for who asks ([`is_released`]).
//!
//! A job that ends leaves nothing behind that was released when it began; it notes anew what it keeps. So none follows another for the
//! same table unless a reader has gone meanwhile.
//!
//! What one table has and another hides is no concern of this: that is as if there had been no reader, and goes as compactions do.

use super::expiry::{alone, bottoms};
use super::{Plan, Reason, TreeView};
use crate::catalog::TableMeta;
use crate::types::Seq;

/// A table is due once one part in so many of it is released.
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

/// The next tables, neighbours of up to so many bytes, to be compacted into their own level. In level 0 one at a time: a compaction of several
/// might reach over older entries of another run (I3).
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
