//! When rewrites run, and in which thread.
//!
//! They run in compaction threads, one at a time, as the planner says; in the thread of a caller that waits for all
//! background work; and in the thread of a caller that needs space.
//!
//! It touches what [`Background`] holds.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::{Background, Basis, State};
use crate::catalog::TableMeta;
use crate::engine::keyspace::tree::Tree;
use crate::engine::shared::wake::BackgroundThreads;
use crate::env::sync::MutexGuard;
use crate::error::{ErrorKind, Result};
use crate::policy::{Collection, Plan, PlanKind, Reason, next_departure, next_rewrite};
use crate::types::{DeviceId, KeyRange, TableId};

/// A drain that finds nothing it may move looks again after this, or when a job ends.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// What there was to wait for, for a caller that needs space.
enum Rewritten {
    Nothing,
    /// Others have freed some.
    ByOthers,
    /// It has run a rewrite itself.
    Here,
}

impl Background {
    /// Whether `plan` is a rewrite, and may start now.
    pub(super) fn may_rewrite(&self, state: &State, plan: &Plan) -> bool {
        let is_barred = state.held.contains(&plan.keyspace) || state.waiting.contains_key(&plan.keyspace);
        let is_full = state.compactions > 0 && self.jobs.storage.is_short_of_space();
        matches!(plan.kind, PlanKind::Rewrite | PlanKind::Relocate(_)) && !is_barred && !is_full
    }

    /// Runs `plan`, a rewrite, under no other lock. Its failure is nobody else's.
    pub(super) fn rewrite_planned<'a>(
        &'a self,
        state: MutexGuard<'a, State>,
        plan: &Plan,
    ) -> MutexGuard<'a, State> {
        drop(self.rewrite_claimed(state, plan, || {}));
        if self.jobs.health.is_poisoned() {
            self.wake_writers();
        }
        self.fit_recycled();
        self.keep_space_budget();
        self.scheduler.state.lock()
    }

    /// Claims what `plan`, a rewrite, touches, runs it after `prepare`, and releases the claim.
    fn rewrite_claimed<'a>(
        &'a self,
        state: MutexGuard<'a, State>,
        plan: &Plan,
        prepare: impl FnOnce(),
    ) -> (MutexGuard<'a, State>, Result<bool>) {
        self.claimed(state, plan, || {
            prepare();
            match plan.kind {
                PlanKind::Relocate(to) => {
                    self.jobs.relocate_or_pause(plan, to);
                    Ok(true)
                }
                PlanKind::Compact | PlanKind::Move | PlanKind::Drop | PlanKind::Rewrite => {
                    self.jobs.rewrite_or_block(plan)
                }
            }
        })
    }

    /// Claims what `plan`, a rewrite, touches, does `run`, and releases the claim.
    fn claimed<'a, T>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        plan: &Plan,
        run: impl FnOnce() -> T,
    ) -> (MutexGuard<'a, State>, T) {
        self.claim(&mut state, plan);
        state.rewrites += 1;
        drop(state);
        let done = run();
        let mut state = self.scheduler.state.lock();
        state.rewrites -= 1;
        self.release(&mut state, plan);
        (state, done)
    }

    /// Gives up packs by one rewrite, for a caller that needs the space of their dead tables where there are no holes.
    /// Returns whether that has made any space, free or in recycled files. REQUIRES: neither the writer's lock is held nor
    /// one that comes after it.
    ///
    /// What readers hold keeps its space until they let go, and the copy takes space too. So after a rewrite that has
    /// freed nothing, there is no other until something has been given up. On a full disk there is none beside another
    /// job, because both would count on the same bytes.
    pub(crate) fn rewrite_for_space(&self) -> bool {
        let before = self.jobs.storage.reclaimer.given_up();
        let is_rewritten = self.rewrite_one(before);
        if self.jobs.health.is_poisoned() {
            self.wake_writers();
        }
        match is_rewritten {
            Rewritten::Nothing => return false,
            Rewritten::ByOthers => return true,
            Rewritten::Here => {}
        }
        self.jobs.storage.wait_reclaimed();
        let is_freed = self.jobs.storage.reclaimer.given_up() > before;
        if !is_freed {
            self.scheduler.state.lock().found_nothing_at = Some(before);
        }
        is_freed
    }

    /// Waits until rewrites that run have freed something, or runs one. `given_up` packs had been given up.
    fn rewrite_one(&self, given_up: u64) -> Rewritten {
        let mut state = self.scheduler.state.lock();
        loop {
            if state.rewrites > 0 {
                while state.rewrites > 0 {
                    self.scheduler.done.wait(&mut state);
                }
                drop(state);
                self.jobs.storage.wait_reclaimed();
                let given_up_now = self.jobs.storage.reclaimer.given_up();
                // Tables that went to another device leave holes.
                if given_up_now > given_up || self.jobs.storage.free_what_is_dead(1) {
                    return Rewritten::ByOthers;
                }
                state = self.scheduler.state.lock();
                continue;
            }
            if state.found_nothing_at == Some(given_up)
                || state.compactions > 0 && self.jobs.storage.is_short_of_space()
                || self.jobs.health.check_writable().is_err()
            {
                return Rewritten::Nothing;
            }
            let basis = state.basis();
            let (held, plan) = self.plan_unlocked(state, || self.rewrite_due(&basis));
            state = held;
            if state.changes != basis.changes {
                continue;
            }
            let Some(plan) = plan else { return Rewritten::Nothing };
            let (held, result) =
                self.rewrite_claimed(state, &plan, || self.jobs.storage.take_rest_of_reserve(plan.bytes));
            state = held;
            match result {
                Ok(true) => return Rewritten::Here,
                // Those packs are passed over now.
                Ok(false) => {}
                Err(_) => return Rewritten::Nothing,
            }
        }
    }

    /// Copies the tables on `device` to others, until no version that is in force has one there. It cannot end early: it looks
    /// again after each copy, and after each job that ends.
    ///
    /// What lies in level 0 goes with its compactions: REQUIRES: nothing new is placed on the device.
    pub(crate) fn drain(&self, device: DeviceId) -> Result<()> {
        let is_there = |table: &TableMeta| table.extent.device == device;
        let has_tables = |tree: &Tree| tree.view().version.tables().any(|(_, table)| is_there(table));
        let has_some = |tree: &Tree| has_tables(tree) | self.leave_values(tree, device);
        loop {
            self.jobs.health.check_writable()?;
            // Asked first: what such a job leaves is seen before it ends.
            let is_written = self.jobs.storage.devices.is_written(device) && !planted!("drained-under-a-job");
            let trees: Vec<_> = self.trees().values().filter(|tree| has_some(tree)).cloned().collect();
            if trees.is_empty() && is_written {
                let mut state = self.scheduler.state.lock();
                self.scheduler.done.wait_for(&mut state, LOOK_AGAIN);
                continue;
            }
            if trees.is_empty() {
                // They may have tables that no version has any more.
                self.trees().values().for_each(|tree| self.jobs.drop_buffer(tree));
                return Ok(());
            }
            let mut moved = Ok(());
            for tree in &trees {
                if tree.view().version.level(0).tables().any(|table| is_there(table)) {
                    moved = moved.and_then(|()| self.compact(tree, &KeyRange::everything()));
                }
            }
            match moved.and_then(|()| self.copy_away(device)) {
                // The keyspace was dropped, and its tables with it.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                moved => moved?,
            }
        }
    }

    /// Lets jobs leave the value tables of `tree` on `device`. Returns whether there are any.
    fn leave_values(&self, tree: &Tree, device: DeviceId) -> bool {
        let view = tree.view();
        let there = view.version.values().iter().filter(|table| table.record.extent.device == device);
        let there: BTreeSet<TableId> = there.map(|table| table.record.id).collect();
        let is_chosen = || tree.collecting.get().is_some_and(|chosen| there.is_subset(&chosen.tables));
        if !there.is_empty() && !is_chosen() {
            let tables = Arc::new(there.clone());
            tree.collecting.set(Some(Collection { tables, ..Collection::default() }));
            tree.changed();
            self.scheduler.wake();
        }
        !there.is_empty()
    }

    /// Copies some tables away from `device`, or waits until a job has ended.
    fn copy_away(&self, device: DeviceId) -> Result<()> {
        let mut state = self.scheduler.state.lock();
        while state.rewrites > 0 {
            self.scheduler.done.wait(&mut state);
        }
        let basis = state.basis();
        let may = |keyspace| !basis.barred.contains(&keyspace);
        let plan = || self.with_views(&basis.busy, may, |views| next_departure(views, device));
        let (mut state, plan) = self.plan_unlocked(state, plan);
        match plan {
            _ if state.changes != basis.changes => Ok(()),
            Some(plan) => {
                let (state, result) = self.claimed(state, &plan, || self.jobs.depart(&plan));
                drop(state);
                result
            }
            None => {
                // What is left is claimed by others, or of a keyspace where nothing may start, which nobody may tell the end of.
                self.scheduler.done.wait_for(&mut state, LOOK_AGAIN);
                Ok(())
            }
        }
    }

    /// The rewrite that gives most space for what it writes, for a caller that waits for it.
    fn rewrite_due(&self, basis: &Basis) -> Option<Plan> {
        let space = self.jobs.space_view(true);
        if !space.totals.no_holes || space.packs.is_empty() {
            return None;
        }
        let may = |keyspace| !basis.barred.contains(&keyspace);
        let plan = self.with_views(&basis.busy, may, |views| next_rewrite(views, &space))?;
        Some(Plan { reason: Reason::Manual, ..plan })
    }
}
