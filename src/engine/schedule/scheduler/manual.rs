//! Manual compaction: a caller asks for it, and it runs in the caller's thread. It takes turns with planned
//! compactions.
//!
//! It touches what [`Background`] holds.

use std::sync::Arc;

use super::{Background, Ended, State};
use crate::catalog::{TableMeta, Version};
use crate::engine::read::tree::Tree;
use crate::env::sync::MutexGuard;
use crate::error::Result;
use crate::policy::{Claims, Picker, Plan, RangePick, TreeView, is_released};
use crate::types::{KeyRange, KeyspaceId, LEVELS, Seq, UpperBound};

impl Background {
    /// Compacts down, level by level, what `tree` holds of `range` at the moment. What is written meanwhile may stay
    /// above. What is in the deepest level by now is compacted by itself, where something of it may go.
    ///
    /// It cannot end early. It looks for what is left to do under the scheduler's lock, together with the claims of
    /// running jobs. If such a job is in the way, or about to put something below, it waits for that job's end.
    pub(crate) fn compact(&self, tree: &Tree, range: &KeyRange) -> Result<()> {
        let upto = self.visible();
        let first_new = self.jobs.ids.table();
        let is_old = |table: &Arc<TableMeta>| table.min_seq <= upto && table.range.overlaps(range);
        while tree.view().version.level(0).tables().any(is_old) {
            if self.compact_step(tree, |picker, view| picker.pick_range(view, 0, Some(range)))?.is_none() {
                break;
            }
        }
        for level in 1..LEVELS as u8 - 1 {
            // Once through the level in key order. What lies deepest has no level below it to be compacted with,
            // unless a job is about to put something there.
            let mut rest = Some(range.clone());
            while let Some(range) = rest {
                let pick = |picker: &Picker, view: &TreeView<'_>| {
                    if view.version.deepest() > Some(level) {
                        picker.pick_range(view, level, Some(&range))
                    } else if view.busy.conflicts(level + 1, &range) {
                        RangePick::Busy
                    } else {
                        RangePick::Done
                    }
                };
                rest = behind(&range, self.compact_step(tree, pick)?);
            }
        }
        let has_filter = self.jobs.filters.0.contains_key(&tree.record.name);
        let expiring = self.jobs.expiring(tree);
        let may_shrink = |table: &TableMeta| {
            let has_expired = expiring.is_some_and(|expiring| expiring.has_begun(table));
            let holds_more = has_filter || has_expired || table.tombstones + table.range_tombstones > 0;
            table.id < first_new && table.min_seq <= upto && holds_more
        };
        let mut rest = Some(range.clone());
        while let Some(range) = rest {
            // Also what a job of this very compaction kept for a reader that has gone since.
            let is_due = |table: &TableMeta, pins: &[Seq]| {
                may_shrink(table) || table.min_seq <= upto && is_released(table, pins)
            };
            let pick = |picker: &Picker, view: &TreeView<'_>| {
                picker.pick_alone(view, &range, |table| is_due(table, view.pins))
            };
            rest = behind(&range, self.compact_step(tree, pick)?);
        }
        Ok(())
    }

    /// Runs the compaction that `pick` chooses. Returns where what it took from its source ends; `None` if there was
    /// nothing.
    fn compact_step(
        &self,
        tree: &Tree,
        pick: impl Fn(&Picker, &TreeView<'_>) -> RangePick,
    ) -> Result<Option<UpperBound>> {
        let none = Claims::default();
        let mut state = self.scheduler.state.lock();
        loop {
            self.jobs.health.check_writable()?;
            tree.check_exists()?;
            let version = tree.view().version.clone();
            let shape = self.jobs.settings.load().policy.layout.measure(&version);
            let busy = state.busy.get(&tree.id()).unwrap_or(&none);
            let pins = self.jobs.snapshots.list();
            let view = TreeView { keyspace: tree.id(), version: &version, busy, shape: &shape, pins: &pins };
            let pick = pick(&self.jobs.settings.load().policy.picker, &view);
            let end = match &pick {
                RangePick::Plan(plan) => end_of(plan, &version),
                RangePick::Done | RangePick::Busy => None,
            };
            // Or what dies while a job runs, or is waited for, would stay on the disk.
            drop(version);
            match pick {
                RangePick::Done => return Ok(None),
                RangePick::Plan(_)
                    if state.held.contains(&tree.id())
                        || state.compactions > 0 && self.jobs.storage.is_short_of_space() =>
                {
                    self.wait_for_turn(&mut state, tree.id());
                }
                RangePick::Busy => self.wait_for_turn(&mut state, tree.id()),
                RangePick::Plan(plan) => {
                    let (held, result) = self.run_claimed(state, &plan);
                    if result? == Ended::ForSpace {
                        state = held;
                        continue;
                    }
                    return Ok(end);
                }
            }
        }
    }

    /// Waits for the end of a job, with precedence over compactions of `keyspace` that have not started.
    fn wait_for_turn(&self, state: &mut MutexGuard<'_, State>, keyspace: KeyspaceId) {
        *state.waiting.entry(keyspace).or_default() += 1;
        state.changes += 1;
        self.scheduler.done.wait(state);
        if let Some(count) = state.waiting.get_mut(&keyspace) {
            *count -= 1;
        }
        state.waiting.retain(|_, count| *count > 0);
        state.changes += 1;
        state.wakes += 1;
        self.scheduler.work.notify_all();
    }
}

/// What of `range` lies behind `end`, if that is where something ended.
fn behind(range: &KeyRange, end: Option<UpperBound>) -> Option<KeyRange> {
    let Some(UpperBound::Excluded(start)) = end else { return None };
    Some(KeyRange { start, end: range.end.clone() }).filter(|range| !range.is_inverted())
}

/// Where the furthest input of `plan` in its source ends.
fn end_of(plan: &Plan, version: &Version) -> Option<UpperBound> {
    let taken = plan.inputs.iter().filter(|input| input.level == plan.source);
    let tables = taken.filter_map(|input| Some(version.table(input.table)?.1));
    tables.map(|table| table.range.end.clone()).max()
}
