//! Compactions that somebody has asked for, in the thread of who asks: merges that take turns with those that are planned.

use std::sync::Arc;

use super::{Ended, Engine, State};
use crate::catalog::{TableMeta, Version};
use crate::engine::tree::Tree;
use crate::env::sync::MutexGuard;
use crate::error::Result;
use crate::policy::{Busy, Plan, RangePick, TreeView};
use crate::types::{KeyRange, KeyspaceId, LEVELS, UpperBound};

impl Engine {
    /// Merges what `tree` holds of `range` at the moment down, level by level. What is written meanwhile may stay above.
    pub(crate) fn compact(&self, tree: &Tree, range: &KeyRange) -> Result<()> {
        let upto = self.visible();
        let is_old = |table: &Arc<TableMeta>| table.min_seq <= upto && table.range.overlaps(range);
        while tree.view().version.level(0).tables().any(is_old) {
            if self.compact_step(tree, 0, range)?.is_none() {
                break;
            }
        }
        for level in 1..LEVELS as u8 - 1 {
            // Once through the level in key order. What lies deepest has nothing below it to be merged with.
            let mut rest = Some(range.clone());
            while let Some(range) = rest.take_if(|_| tree.view().version.deepest() > Some(level)) {
                if let Some(UpperBound::Excluded(start)) = self.compact_step(tree, level, &range)? {
                    rest = Some(KeyRange { start, end: range.end }).filter(|range| !range.is_inverted());
                }
            }
        }
        Ok(())
    }

    /// Runs one merge out of `level`. Returns where what it took from there ends; `None` if there was nothing.
    fn compact_step(&self, tree: &Tree, level: u8, range: &KeyRange) -> Result<Option<UpperBound>> {
        let none = Busy::default();
        let mut state = self.scheduler.state.lock();
        loop {
            self.health.check_writable()?;
            tree.check_exists()?;
            let version = tree.view().version.clone();
            let shape = self.settings().policy.layout.measure(&version);
            let busy = state.busy.get(&tree.id()).unwrap_or(&none);
            let view = TreeView { keyspace: tree.id(), version: &version, busy, shape: &shape };
            let pick = self.settings().policy.picker.pick_range(&view, level, Some(range));
            let end = match &pick {
                RangePick::Plan(plan) => end_of(plan, &version, level),
                RangePick::Done | RangePick::Busy => None,
            };
            // Or what dies while a job runs, or is waited for, would stay on the disk.
            drop(version);
            match pick {
                RangePick::Done => return Ok(None),
                RangePick::Plan(_)
                    if state.held.contains(&tree.id()) || state.merges > 0 && self.is_short_of_space() =>
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

    /// Waits for the end of a job, with precedence over merges of `keyspace` that have not started.
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

/// Where the furthest input of `plan` in `level` ends.
fn end_of(plan: &Plan, version: &Version, level: u8) -> Option<UpperBound> {
    let taken = plan.inputs.iter().filter(|input| input.level == level);
    let tables = taken.filter_map(|input| Some(version.table(input.table)?.1));
    tables.map(|table| table.range.end.clone()).max()
}
