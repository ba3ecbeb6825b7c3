//! Attention: which trees a plan has to look at. The others are at rest: whatever the load, the prices and the readers,
//! there is nothing to do in them ([`Rest`]), until they change.
//!
//! Invariant: a tree that is not listed here was at rest when it was looked at, or is listed in [`Changes`].

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use super::idle_time::holds_tombstones;
use crate::engine::keyspace::Trees;
use crate::engine::keyspace::changes::{Changes, Watcher};
use crate::engine::keyspace::tree::{Tree, View};
use crate::engine::shared::settings::Settings;
use crate::policy::{Claims, HoleBytes, Rest, TreeView, rest};
use crate::types::KeyspaceId;

/// Trees that only idle time may have use for are looked at in so many at a time: the first that has a plan ends it.
pub(super) const IDLERS: usize = 64;

/// The trees that are not at rest.
#[derive(Debug, Default)]
pub(in crate::engine) struct Attention {
    /// By which the trees were looked at.
    settings: Option<Arc<Settings>>,
    hole_bytes: HoleBytes,
    restless: BTreeMap<KeyspaceId, Arc<Tree>>,
    /// There may be something to do in idle time, and then alone.
    idlers: BTreeMap<KeyspaceId, Arc<Tree>>,
}

impl Attention {
    /// Looks at the trees that have changed. `trees` gives those that exist.
    pub(super) fn look(
        &mut self,
        changes: &Changes,
        (settings, hole_bytes): (Arc<Settings>, HoleBytes),
        trees: impl FnOnce() -> Arc<Trees>,
    ) {
        // In this order: a tree that is created or dropped is listed after it has come or gone.
        let mut changed = changes.take(Watcher::Plans);
        let trees = trees();
        if self.settings.as_ref().is_none_or(|before| !Arc::ptr_eq(before, &settings)) {
            (self.restless, self.idlers) = Default::default();
            changed = trees.keys().copied().collect();
        }
        if std::mem::replace(&mut self.hole_bytes, hole_bytes) != hole_bytes {
            // What is stuck has changed with it.
            let has_values = |tree: &Arc<Tree>| !tree.view().version.values().is_empty();
            changed.extend(trees.values().filter(|tree| has_values(tree)).map(|tree| tree.id()));
        }
        for id in changed {
            self.restless.remove(&id);
            self.idlers.remove(&id);
            let Some(tree) = trees.get(&id) else { continue };
            tree.marks.clear(Watcher::Plans);
            match rest_of(tree, &settings, hole_bytes) {
                Rest::No => _ = self.restless.insert(id, tree.clone()),
                Rest::UntilIdle => _ = self.idlers.insert(id, tree.clone()),
                Rest::Yes => {}
            }
        }
        self.settings = Some(settings);
    }

    /// The trees in which something may be due.
    pub(super) fn restless(&self) -> impl Iterator<Item = &Arc<Tree>> {
        self.restless.values()
    }

    /// Some of those that only idle time may have use for, behind the keyspace `behind`, if that is given.
    pub(super) fn idlers(&self, behind: Option<KeyspaceId>) -> Vec<Arc<Tree>> {
        let from = behind.map_or(Bound::Unbounded, Bound::Excluded);
        self.idlers.range((from, Bound::Unbounded)).map(|(_, tree)| tree.clone()).take(IDLERS).collect()
    }

    /// Whether there may be something to do in idle time.
    pub(super) fn has_use_for_idle_time(&self) -> bool {
        let has_use = |tree: &Arc<Tree>| {
            let view = tree.view();
            !view.version.level(0).runs.is_empty()
                || has_tombstones(&view)
                || !view.version.values().is_empty()
        };
        !self.idlers.is_empty() || self.restless().any(has_use)
    }

    /// The trees whose active memtables hold many tombstones.
    pub(super) fn holding_tombstones(&self) -> Vec<Arc<Tree>> {
        let trees = self.restless.values().chain(self.idlers.values());
        trees.filter(|tree| holds_tombstones(&tree.view())).cloned().collect()
    }
}

fn has_tombstones(view: &View) -> bool {
    holds_tombstones(view) || view.version.runs().any(|(_, run)| run.tombstones() > 0)
}

fn rest_of(tree: &Tree, settings: &Settings, hole_bytes: HoleBytes) -> Rest {
    let view = tree.view_arc();
    let version = view.version.clone();
    if version.tables().next().is_none() {
        return Rest::Yes;
    }
    if tree.range_deletes.is_waiting() {
        return Rest::No;
    }
    // What has expired, and what readers owe, grows by itself.
    if tree.record.ttl.is_some() || tree.read_debt.accrued() > 0 && !version.level(0).runs.is_empty() {
        return Rest::No;
    }
    let layout = tree.layout(&settings.policy);
    let mut shape = layout.measure(&version);
    shape.overwrite_ratio = tree.overwrite_ratio.share();
    shape.hole_bytes = hole_bytes;
    let shape = shape.pressed_by_values(&version, &layout);
    let collection = tree.collecting.get();
    let shown = TreeView {
        keyspace: tree.id(),
        version: &version,
        busy: &Claims::default(),
        shape: &shape,
        pins: &[],
        deletes: &[],
        collection: collection.as_deref(),
    };
    match rest(&shown, &settings.policy) {
        Rest::Yes if holds_tombstones(&view) => Rest::UntilIdle,
        rest => rest,
    }
}
