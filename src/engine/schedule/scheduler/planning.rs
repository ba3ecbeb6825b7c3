//! What is due: the next flush, and the best plan of what the policy is shown.
//!
//! Compaction threads have a low priority and may lose the processor at any moment, for long. Planning also takes the
//! longer, the more tables there are. So nobody plans under the scheduler's lock, which writers take: who plans takes a
//! copy of what the plan rests on ([`Basis`](super::Basis)), and claims the plan only if that has not changed meanwhile.
//! Whoever has to plan anew has seen another job begin or end.
//!
//! INVARIANT(I19): nothing is planned under the writer's lock or one that comes after it.
//!
//! It touches what [`Background`] holds.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Background, State};
use crate::catalog::Version;
use crate::engine::jobs::flush::{GROUP_BYTES, GROUP_MIN, SMALL_BYTES};
use crate::engine::keyspace::tree::{Tree, View};
use crate::engine::shared::wake::BackgroundThreads;
use crate::env::sync::{MutexGuard, Rank};
use crate::options::PackLayout;
use crate::policy::{
    Claims, Collection, Picker, Planned, SEARCHED_MAX, SpaceView, TreeShape, TreeView, decide,
    next_collection,
};
use crate::types::{KeyspaceId, Seq, TableId};

impl Background {
    /// The tree whose sealed memtable has waited longest, and the number of that memtable's oldest entry. Looks at
    /// each tree once: if a flush were installed between two looks at a tree, it would seem as if no tree had any.
    pub(super) fn flush_due(&self) -> Option<(Seq, Arc<Tree>)> {
        let trees = self.sealed_trees();
        let oldest = trees.iter().filter_map(|tree| Some((tree.next_sealed()?.0, tree)));
        oldest.min_by_key(|(first, _)| *first).map(|(first, tree)| (first, tree.clone()))
    }

    /// The trees whose sealed memtables are flushed next, with the number of their oldest entry: the tree of
    /// [`Background::flush_due`], and if its memtable is small, those of other small ones, in their order. Only the
    /// first one if `alone`.
    pub(super) fn next_flush(&self, alone: bool) -> Option<(Seq, Vec<Arc<Tree>>)> {
        let trees = self.sealed_trees();
        let mut due: Vec<_> =
            trees.iter().filter_map(|tree| tree.next_sealed().map(|sealed| (sealed, tree))).collect();
        due.sort_unstable_by_key(|((first, _), _)| *first);
        let ((first, bytes), oldest) = due.first()?;
        let mut group = vec![Arc::clone(oldest)];
        // A pack of several tables is what makes them one flush.
        let has_packs = self.jobs.settings.load().policy.files.packs != PackLayout::OneTable;
        if !alone && has_packs && *bytes < SMALL_BYTES {
            let mut room = GROUP_BYTES.saturating_sub(*bytes);
            for ((_, bytes), tree) in due[1..].iter().filter(|((_, bytes), _)| *bytes < SMALL_BYTES) {
                let Some(rest) = room.checked_sub(*bytes) else { break };
                room = rest;
                group.push(Arc::clone(tree));
            }
        }
        group.truncate(if group.len() < GROUP_MIN { 1 } else { group.len() });
        Some((*first, group))
    }

    /// Lets go of the scheduler's lock while `plan` does its work.
    pub(super) fn plan_unlocked<'a, T>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        plan: impl FnOnce() -> T,
    ) -> (MutexGuard<'a, State>, T) {
        state.planning += 1;
        drop(state);
        let planned = plan();
        let mut state = self.scheduler.state.lock();
        state.planning -= 1;
        self.scheduler.planned.notify_all();
        (state, planned)
    }

    /// What to do for keyspaces that `may` have one, with no running job in the way; `rewrites` rewrites are
    /// running. If nobody uses the store (`idle`), it may be one that is not due.
    pub(super) fn compaction_due(
        &self,
        busy: &BTreeMap<KeyspaceId, Claims>,
        rewrites: usize,
        may: impl Fn(KeyspaceId) -> bool,
        idle: bool,
    ) -> Planned {
        let space = match rewrites {
            0 => self.jobs.space_view(self.jobs.storage.is_short_of_space()),
            _ => SpaceView::default(),
        };
        let decide = |trees: &[Arc<Tree>]| {
            self.with_views_of(trees, (busy, &may, idle), |views| {
                let load = self.jobs.throttle.sampler.load();
                decide(views, &space, &load, &self.jobs.settings.load().policy)
            })
        };
        // Tables of any tree may be copied for the space that they hold, or for their readers.
        if !space.packs.is_empty() || !space.reads.devices.is_empty() {
            return decide(&self.trees().values().cloned().collect::<Vec<_>>());
        }
        let attention = self.attention();
        let mut trees: Vec<_> = attention.restless().cloned().collect();
        let mut idlers = if idle { attention.idlers(None) } else { Vec::new() };
        drop(attention);
        let mut last = idlers.last().map(|tree| tree.id());
        trees.append(&mut idlers);
        trees.sort_by_key(|tree| tree.id());
        let mut planned = decide(&trees);
        while planned.plan.is_none() && last.is_some() {
            let more = self.attention().idlers(last);
            last = more.last().map(|tree| tree.id());
            let Planned { plan, deferred } = decide(&more);
            planned = Planned { plan, deferred: planned.deferred.or(deferred) };
        }
        planned
    }

    /// What `plan` makes of the trees of keyspaces that `may` have one.
    pub(super) fn with_views<T>(
        &self,
        busy: &BTreeMap<KeyspaceId, Claims>,
        may: impl Fn(KeyspaceId) -> bool,
        plan: impl FnOnce(&[TreeView<'_>]) -> T,
    ) -> T {
        let trees: Vec<_> = self.trees().values().cloned().collect();
        self.with_views_of(&trees, (busy, &may, false), plan)
    }

    /// What `plan` makes of those of `trees` that `may` have one.
    fn with_views_of<T>(
        &self,
        trees: &[Arc<Tree>],
        (busy, may, idle): (&BTreeMap<KeyspaceId, Claims>, &dyn Fn(KeyspaceId) -> bool, bool),
        plan: impl FnOnce(&[TreeView<'_>]) -> T,
    ) -> T {
        Rank::Writer.assert_not_held();
        let none = Claims::default();
        let costs = &self.pressure.load().costs;
        // In this order: whoever begins to read later, and is in neither, sees what is visible.
        let visible = self.jobs.log.visibility.newest();
        let pins = self.jobs.snapshots.list();
        let versions: Vec<_> = trees
            .iter()
            .filter(|tree| may(tree.id()))
            .map(|tree| {
                let view = tree.view();
                let version = view.version.clone();
                let is_busy = busy.get(&tree.id()).is_some_and(|claims| !claims.is_empty());
                self.note_unread(tree, &view);
                let waits = tree.range_deletes.is_waiting();
                let deletes = tree.range_deletes.list(&view, visible, is_busy);
                if waits && !tree.range_deletes.is_waiting() {
                    tree.changed();
                }
                let layout = tree.layout(&self.jobs.settings.load().policy);
                let mut shape = layout.measure_with_debt(&version, tree.read_debt.accrued(), costs);
                shape.expiring = self.jobs.expiring(tree);
                shape.put_off = self.jobs.is_put_off(tree);
                shape.overwrite_ratio = tree.overwrite_ratio.share();
                shape.prefix = tree.record.prefix.or_else(|| tree.fitting_prefix.rule());
                shape.searched = searched(&version, &self.jobs.settings.load().policy.picker);
                // Others need the space more.
                if self.jobs.storage.is_short_of_space() {
                    shape.read_debt_bytes = 0;
                } else {
                    shape.idle = idle;
                }
                shape.hole_bytes = self.jobs.storage.reclaimer.hole_bytes();
                shape = shape.pressed_by_values(&version, &layout);
                let collection = collection_of(tree, &version, &shape);
                (tree.id(), version, shape, deletes, collection)
            })
            .collect();
        let views: Vec<TreeView<'_>> = versions
            .iter()
            .map(|(keyspace, version, shape, deletes, collection)| TreeView {
                keyspace: *keyspace,
                version,
                busy: busy.get(keyspace).unwrap_or(&none),
                shape,
                pins: &pins,
                deletes,
                collection: collection.as_deref(),
            })
            .collect();
        plan(&views)
    }
}

impl Background {
    /// Notes the range deletes that are not noted, if there may be any.
    fn note_unread(&self, tree: &Tree, view: &View) {
        if !tree.range_deletes.take_unread() {
            return;
        }
        let mut noted = false;
        for tombstone in view.memtables().flat_map(|memtable| memtable.range_tombstones()) {
            noted |= tree.range_deletes.note(tombstone, view);
        }
        for (_, table) in view.version.tables().filter(|(_, table)| table.range_tombstones > 0) {
            // A table that cannot be read is found by whoever needs it.
            let Ok(table) = self.jobs.cache.table(table) else { continue };
            for tombstone in table.range_tombstones() {
                noted |= tree.range_deletes.note(tombstone.clone(), view);
            }
        }
        if noted {
            // Others may have looked before.
            self.scheduler.wake();
        }
    }
}

/// Which value tables of `tree` are to be left. A choice stands until all of them are gone; then there may be another one.
fn collection_of(tree: &Tree, version: &Version, shape: &TreeShape) -> Option<Arc<Collection>> {
    let current = tree.collecting.get();
    let is_left = |id: &TableId| version.values().get(*id).is_none();
    if let Some(current) = current.filter(|current| !current.tables.iter().all(is_left)) {
        return Some(current);
    }
    let had_one = tree.collecting.get().is_some();
    let unreadable = tree.collecting.unreadable();
    let next = next_collection(version.values(), (shape.hole_bytes, shape.idle), &unreadable);
    if had_one || next.is_some() {
        tree.collecting.set(next);
        tree.changed();
    }
    tree.collecting.get()
}

/// The tables of the largest level that lookups have searched so often that `picker` may merge them, those with most searches
/// first.
fn searched(version: &Version, picker: &Picker) -> [Option<TableId>; SEARCHED_MAX] {
    let mut first = [None; SEARCHED_MAX];
    let largest = version.largest().map(|level| version.level(level)).filter(|state| state.depth() > 1);
    let is_due = |count: u64, bytes| picker.accesses_max(bytes).is_some_and(|max| count >= max);
    let tables = largest.into_iter().flat_map(|state| state.tables());
    let counts = tables.map(|table| (table.searches.get(), table)).filter(|(count, _)| *count > 0);
    let mut due: Vec<_> = counts.filter(|(count, table)| is_due(*count, table.bytes())).collect();
    due.sort_by_key(|(count, table)| (Reverse(*count), table.id));
    first.iter_mut().zip(due).for_each(|(place, (_, table))| *place = Some(table.id));
    first
}
