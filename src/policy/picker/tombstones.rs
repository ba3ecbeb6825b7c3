//! Tombstones: tables that hold so many that a compaction of them gives up much of what it reads.
//!
//! A deleted entry keeps its place until its tombstone comes to it. In a tree that takes no more writes, that would be never.
//! So a level's tables go into the next one for their tombstones alone, once these hide a good part of what the compaction
//! reads. (Pebble compacts files by an estimate of what their tombstones hide; RocksDB marks files with many tombstones;
//! Lethe, SIGMOD 2020, by their ages.)
//!
//! **The estimate.** Each tombstone hides one record of the next level, of the mean size there, as long as there are as many.
//! That is too much where keys are deleted that are not there. Then tombstones go down once more than they need, at most
//! once through each level.
//!
//! **Cost.** With at least one part in n given up, at most n - 1 bytes are written for each one that goes.
//!
//! Tombstones with nothing below them go in a compaction of their tables alone, once these hold little else: readers step over
//! them.
//!
//! Not while somebody reads at a number below those of the entries: what such a reader sees stays, and its tombstone with it.

use std::sync::Arc;

use super::choice::Choice;
use super::level0::choose_worth;
use super::{PickerConfig, Source};
use crate::catalog::TableMeta;
use crate::policy::expiry::{alone, bottoms, is_bottom};
use crate::policy::plan::{Plan, Reason};
use crate::policy::view::TreeView;

/// Divisor: a table with nothing older below is compacted alone from this part of tombstones on.
const ALONE_PARTS: u64 = 4;

/// Whether every reader sees all of `table`.
fn is_settled(view: &TreeView<'_>, table: &TableMeta) -> bool {
    let in_vain = planted!("tombstones-compacted-in-vain");
    in_vain || view.pins.first().is_none_or(|&pin| table.max_seq <= pin)
}

/// What to take next of the level of `source`: tables whose tombstones hide at least one part in `parts` of what is read.
pub(super) fn choose(source: Source<'_>, parts: u64) -> Option<Choice<'_>> {
    let is_worth = |choice: &Choice<'_>| {
        choice.gives_up(parts) && choice.victims().iter().all(|table| is_settled(source.view, table))
    };
    if source.level == 0 {
        return choose_worth(source, is_worth);
    }
    let [run] = &source.state.runs[..] else { return None };
    let may_go = |table: &&Arc<TableMeta>| {
        table.tombstones > 0 && !source.view.busy.conflicts(source.level, &table.range)
    };
    run.iter().filter(may_go).find_map(|first| {
        let choice = source.choose(&source.group(run, first)).filter(is_worth);
        choice.or_else(|| source.choose(&first.range).filter(is_worth))
    })
}

/// Tables with little else than tombstones that hide nothing.
pub(super) fn bare(view: &TreeView<'_>, config: &PickerConfig) -> Option<Plan> {
    bottoms(view).filter(|(level, _, run)| *level > 0 && run.tombstones() > 0).find_map(|(level, at, run)| {
        let is_due = |table: &TableMeta| {
            table.tombstones.saturating_mul(ALONE_PARTS) >= table.entries.max(1)
                && is_settled(view, table)
                && !view.busy.conflicts(level, &table.range)
                && is_bottom(view, level, at, table)
                && is_oldest(view, table)
        };
        let plan = alone(view, level, run, config.group_bytes, is_due)?;
        Some(Plan { reason: Reason::Tombstones, ..plan })
    })
}

/// Whether every other table in the range of `table` is newer, by its numbers: the job drops a tombstone only then, whatever lies
/// where. Otherwise the same table would be due again at once.
fn is_oldest(view: &TreeView<'_>, table: &TableMeta) -> bool {
    let mut others = view.version.runs().flat_map(|(_, run)| run.overlapping(&table.range));
    planted!("bare-tombstones-compacted-in-vain")
        || others.all(|other| other.id == table.id || other.min_seq >= table.max_seq)
}
