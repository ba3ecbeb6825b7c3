//! Manual compaction: a caller asks for it, and it runs in the caller's thread. It takes turns with planned
//! compactions.
//!
//! It touches what [`Background`] holds.

use std::cell::Cell;

use super::{Background, Ended, State};
use crate::catalog::{TableMeta, Version};
use crate::engine::keyspace::tree::Tree;
use crate::env::sync::{MutexGuard, Rank};
use crate::error::Result;
use crate::policy::{Claims, Expiring, OutputAge, Picker, Plan, RangePick, TreeView, is_released};
use crate::types::{KeyRange, KeyspaceId, LEVELS, Seq, TableId, UpperBound};

/// What a manual compaction is to compact, and what it knows of the tree.
struct Manual<'a> {
    tree: &'a Tree,
    range: &'a KeyRange,
    /// The newest number that was visible when it began.
    upto: Seq,
    /// What had expired when it began.
    expiring: Option<Expiring>,
    /// The deepest level that has tables, as of the last look.
    deepest: Cell<Option<u8>>,
    /// Tables of this id or a larger one were written since it began, and the tree was no deeper then than now. So
    /// they hold nothing that a compaction into their own level would drop, unless a reader goes.
    first_new: Cell<TableId>,
}

/// What a step of a manual compaction has come to.
enum Step {
    /// There was nothing to do.
    Done,
    /// The level has fewer tables that lie on top of others; look again at the same range.
    Folded,
    /// What it took from its source ends here.
    Upto(UpperBound),
}

impl Manual<'_> {
    /// Whether `table` holds anything of the range that was there at the beginning.
    fn is_old(&self, table: &TableMeta) -> bool {
        table.min_seq <= self.upto && table.range.overlaps(self.range)
    }

    /// Whether something old lies above the deepest level. What is in level 0 came to be there meanwhile.
    fn has_old_above(&self, version: &Version) -> bool {
        let deepest =
            version.deepest().filter(|_| !planted!("levels-above-the-deepest-passed-over")).unwrap_or(0);
        let above = version.levels().filter(|(level, _)| (1..deepest).contains(level));
        above.flat_map(|(_, state)| state.tables()).any(|table| self.is_old(table))
    }
}

impl State {
    /// From here on no compaction of `keyspace` starts by itself.
    fn take_turn(&mut self, keyspace: KeyspaceId) {
        *self.waiting.entry(keyspace).or_default() += 1;
        self.changes += 1;
    }
}

impl Background {
    /// Compacts down, level by level, what `tree` holds of `range` at the moment. What is written meanwhile may stay
    /// above. What is in the deepest level by now is compacted by itself, where something of it may go.
    ///
    /// It cannot end early. It looks for what is left to do together with the claims of running jobs, and looks again if
    /// any of these has begun or ended meanwhile. If such a job is in the way, or about to put something below, it waits
    /// for that job's end. If jobs have made the tree deeper meanwhile, what has become a level above the deepest one is
    /// compacted down, too.
    pub(crate) fn compact(&self, tree: &Tree, range: &KeyRange) -> Result<()> {
        let manual = Manual {
            tree,
            range,
            upto: self.visible(),
            expiring: self.jobs.expiring(tree),
            deepest: Cell::new(None),
            first_new: Cell::new(self.jobs.ids.table()),
        };
        while tree.view().version.level(0).tables().any(|table| manual.is_old(table)) {
            let step = self.compact_step(&manual, |picker, view| picker.pick_range(view, 0, Some(range)))?;
            if let Step::Done = step {
                break;
            }
        }
        loop {
            self.compact_down(&manual)?;
            if self.compact_deepest(&manual)? {
                // Whoever compacts by hand wants the space.
                self.jobs.drop_buffer(tree);
                return Ok(());
            }
            // Another level has become the deepest one. A tree has few of them, so this comes to an end.
        }
    }

    /// Goes through each level below level 0 in key order, once. What lies deepest has no level below it to be compacted
    /// with, unless a job is about to put something there.
    fn compact_down(&self, manual: &Manual<'_>) -> Result<()> {
        for level in 1..LEVELS as u8 - 1 {
            let mut rest = Some(manual.range.clone());
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
                let step = self.compact_step(manual, pick)?;
                rest = behind(range, step);
            }
        }
        Ok(())
    }

    /// Compacts tables of the deepest level into that level, where something of them may go. Returns whether it went
    /// through all that is old: `false` once some of it lies above that level.
    fn compact_deepest(&self, manual: &Manual<'_>) -> Result<bool> {
        let Manual { tree, upto, expiring, .. } = *manual;
        let has_filter = self.jobs.filters.0.contains_key(&tree.record.name);
        let may_shrink = |table: &TableMeta| {
            let holds_more = has_filter || table.tombstones + table.range_tombstones > 0;
            // A job that began earlier may have written such values meanwhile.
            expiring.is_some_and(|expiring| expiring.has_begun(table))
                || holds_more && table.id < manual.first_new.get()
        };
        let is_all = Cell::new(true);
        let mut rest = Some(manual.range.clone());
        while let Some(range) = rest {
            // Also what a job of this very compaction kept for a reader that has gone since.
            let is_due = |table: &TableMeta, pins: &[Seq]| {
                table.min_seq <= upto && (may_shrink(table) || is_released(table, pins))
            };
            let pick = |picker: &Picker, view: &TreeView<'_>| {
                is_all.set(!manual.has_old_above(view.version));
                if is_all.get() {
                    picker.pick_alone(view, &range, |table| is_due(table, view.pins))
                } else {
                    RangePick::Done
                }
            };
            let step = self.compact_step(manual, pick)?;
            rest = behind(range, step);
        }
        Ok(is_all.get())
    }

    /// Runs the compaction that `pick` chooses.
    fn compact_step(
        &self,
        manual: &Manual<'_>,
        pick: impl Fn(&Picker, &TreeView<'_>) -> RangePick,
    ) -> Result<Step> {
        let Manual { tree, .. } = *manual;
        let mut state = self.scheduler.state.lock();
        loop {
            self.jobs.health.check_writable()?;
            tree.check_exists()?;
            let changed = state.changed.get(&tree.id()).copied();
            // While it looks, no other compaction of the keyspace starts, or it might have to look for ever.
            state.take_turn(tree.id());
            let busy = state.busy.get(&tree.id()).cloned().unwrap_or_default();
            let (held, (pick, end)) = self.plan_unlocked(state, || self.look(manual, &busy, &pick));
            state = held;
            self.end_turn(&mut state, tree.id());
            let is_stale = state.changed.get(&tree.id()).copied() != changed;
            if is_stale && !planted!("plan-claimed-though-stale") {
                continue;
            }
            match pick {
                RangePick::Done => return Ok(Step::Done),
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
                    if plan.age == OutputAge::Oldest {
                        // What is newer may have kept tombstones in the outputs that can go now, or later.
                        manual.first_new.set(self.jobs.ids.table());
                        return Ok(Step::Folded);
                    }
                    return Ok(end.map_or(Step::Done, Step::Upto));
                }
            }
        }
    }

    /// What `pick` chooses, and where what it takes from its source ends.
    fn look(
        &self,
        manual: &Manual<'_>,
        busy: &Claims,
        pick: impl Fn(&Picker, &TreeView<'_>) -> RangePick,
    ) -> (RangePick, Option<UpperBound>) {
        Rank::Writer.assert_not_held();
        let Manual { tree, .. } = *manual;
        let version = tree.view().version.clone();
        if version.deepest() < manual.deepest.replace(version.deepest()) {
            // What was kept for the sake of what lay below need not stay.
            manual.first_new.set(self.jobs.ids.table());
        }
        let policy = &self.jobs.settings.load().policy;
        let shape = tree.layout(policy).measure(&version);
        let pins = self.jobs.snapshots.list();
        let (shape, pins, deletes) = (&shape, &pins, &[][..]);
        let view =
            TreeView { keyspace: tree.id(), version: &version, busy, shape, pins, deletes, collection: None };
        let pick = pick(&policy.picker, &view);
        let end = match &pick {
            RangePick::Plan(plan) => end_of(plan, &version),
            RangePick::Done | RangePick::Busy => None,
        };
        (pick, end)
    }

    /// Takes back what [`State::take_turn`] says.
    fn end_turn(&self, state: &mut State, keyspace: KeyspaceId) {
        if let Some(count) = state.waiting.get_mut(&keyspace) {
            *count -= 1;
        }
        state.waiting.retain(|_, count| *count > 0);
        state.changes += 1;
        state.wakes += 1;
        self.scheduler.work.notify_all();
    }

    /// Waits for the end of a job, with precedence over compactions of `keyspace` that have not started.
    fn wait_for_turn(&self, state: &mut MutexGuard<'_, State>, keyspace: KeyspaceId) {
        state.take_turn(keyspace);
        self.scheduler.done.wait(state);
        self.end_turn(state, keyspace);
    }
}

/// What of `range` is left to look at after `step`.
fn behind(range: KeyRange, step: Step) -> Option<KeyRange> {
    match step {
        Step::Done | Step::Upto(UpperBound::Unbounded) => None,
        Step::Folded => Some(range),
        Step::Upto(UpperBound::Excluded(start)) => {
            Some(KeyRange { start, end: range.end }).filter(|range| !range.is_inverted())
        }
    }
}

/// Where the furthest input of `plan` in its source ends.
fn end_of(plan: &Plan, version: &Version) -> Option<UpperBound> {
    let taken = plan.inputs.iter().filter(|input| input.level == plan.source);
    let tables = taken.filter_map(|input| Some(version.table(input.table)?.1));
    tables.map(|table| table.range.end.clone()).max()
}
