//! Conflicts: commits that take effect only if nothing that they depend on has changed.
//!
//! A [`Condition`] says that none of its keys and ranges was written after its number. It must hold for all numbers
//! below the batch's own. The check has two steps:
//!
//! 1. Without a lock, for all numbers that are visible: in memtables and tables. For a key, one lookup of its newest
//!    version. For a range, a walk from key to key that looks only at the newest version of each. So a key with many
//!    versions costs the logarithm of their number.
//! 2. Under the writer's lock, for all later numbers: in the list of the latest writes ([`Recent`]), which has them
//!    whether they are visible or not. The batch gets its number before the lock is released, so no other write comes
//!    between.
//!
//! Under the lock only a few keys are looked at. No table is searched, nobody is waited for, and a synced transaction
//! shares its sync with others.
//!
//! Where the list does not reach back to step 1, step 1 is done again without the lock, for what has come meanwhile.
//! One exception: a commit that is overtaken several times waits under the lock until every number is visible, and
//! does step 1 there. A write without a condition pays for the list only while others commit conditionally.
//!
//! # Invariants
//!
//! The check finds the newest version of each key and the newest range tombstone over it, wherever flushes and
//! compactions have put them. Compactions keep the newer of the two, even a tombstone, because the caller pins a
//! number below it (I4, I5). Sources that hold nothing above the condition's number are left out: tables by their
//! largest number, memtables by the number at which they were sealed.

use std::sync::Arc;

use super::path::WritePath;
use crate::batch::WriteBatch;
use crate::catalog::TableMeta;
use crate::engine::keyspace::Trees;
use crate::engine::keyspace::tree::{Tree, View, dropped};
use crate::engine::log::recent::{Recent, Touched};
use crate::engine::log::writer::Writer;
use crate::error::{Error, ErrorKind, Result};
use crate::format::batch::Action;
use crate::format::filter;
use crate::merge::{newer_in, newer_over, newest_over};
use crate::options::Durability;
use crate::store::cache::Unit;
use crate::store::memtable::Memtable;
use crate::store::table::TablesCursor;
use crate::types::{Key, KeyRange, KeyspaceId, Seq, UpperBound};

/// Rounds without the lock. Each checks what has come during the one before.
const ROUNDS_MAX: usize = 4;

/// What must hold when a batch is applied: none of the keys, and no key in one of the ranges, was written or deleted
/// after `since`.
#[derive(Debug)]
pub(crate) struct Condition<'a> {
    pub(in crate::engine) since: Seq,
    /// In order, each once. They are borrowed, so the keys of a large batch are not copied.
    keys: Vec<(KeyspaceId, &'a [u8])>,
    /// In order, those of a keyspace disjoint.
    ranges: Vec<(KeyspaceId, KeyRange)>,
}

impl<'a> Condition<'a> {
    /// The condition that no key that `batch` writes, and none of the other `keys` and `ranges`, was written after
    /// `since`.
    pub(crate) fn of_batch(
        since: Seq,
        batch: &'a WriteBatch,
        mut keys: Vec<(KeyspaceId, &'a [u8])>,
        mut ranges: Vec<(KeyspaceId, KeyRange)>,
    ) -> Self {
        keys.reserve_exact(batch.count() as usize);
        for op in batch.iter() {
            match op.action {
                Action::Put { key, .. } | Action::Delete { key } => keys.push((op.keyspace, key)),
                Action::DeleteRange { start, end } => {
                    ranges.push((op.keyspace, KeyRange::half_open(start, UpperBound::from_bytes(end))));
                }
            }
        }
        Self::new(since, keys, ranges)
    }

    /// Keys and ranges come in any order.
    pub(crate) fn new(
        since: Seq,
        mut keys: Vec<(KeyspaceId, &'a [u8])>,
        mut ranges: Vec<(KeyspaceId, KeyRange)>,
    ) -> Self {
        keys.sort_unstable();
        keys.dedup();
        ranges.sort_unstable_by(|(a, left), (b, right)| (a, &left.start).cmp(&(b, &right.start)));
        ranges.dedup_by(|(id, range), (last_id, last)| {
            let joined = id == last_id && last.overlaps(range);
            if joined {
                *last = last.hull(range);
            }
            joined
        });
        Self { since, keys, ranges }
    }

    /// Whether `key` is one of the keys or lies in one of the ranges.
    fn depends_on(&self, id: KeyspaceId, key: &[u8]) -> bool {
        let is_key = || self.keys.binary_search(&(id, key)).is_ok();
        let behind = self.ranges.partition_point(|(other, range)| (other, &*range.start) <= (&id, key));
        let range = behind.checked_sub(1).and_then(|at| self.ranges.get(at));
        range.is_some_and(|(other, range)| *other == id && range.contains(key)) || is_key()
    }

    /// One of the keys in `touched`, or a key that one of the ranges shares with it.
    fn depends_on_range(&self, id: KeyspaceId, touched: &KeyRange) -> Option<Key> {
        let at = self.keys.partition_point(|(other, key)| (*other, *key) < (id, &*touched.start));
        let key = self.keys.get(at).filter(|(other, key)| *other == id && touched.contains(key));
        let before = |other: &KeyspaceId, range: &KeyRange| {
            *other < id || *other == id && !range.end.admits(&touched.start)
        };
        let at = self.ranges.partition_point(|(other, range)| before(other, range));
        let range = self.ranges.get(at).filter(|(other, _)| *other == id);
        let shared = || range.and_then(|(_, range)| Some(range.intersection(touched)?.start));
        key.map(|(_, key)| Key::from(*key)).or_else(shared)
    }

    /// What of it a write in `recent` above its number has touched: the keyspace, a key, and when.
    fn changed_by(&self, recent: &Recent) -> Option<(KeyspaceId, Key, Seq)> {
        recent.above(self.since).find_map(|(seq, touched)| {
            let (id, key) = match touched {
                Touched::Key(id, key) => (*id, self.depends_on(*id, key).then(|| key.clone())?),
                Touched::Range(id, range) => (*id, self.depends_on_range(*id, range)?),
            };
            Some((id, key, *seq))
        })
    }

    fn keyspaces(&self) -> impl Iterator<Item = KeyspaceId> {
        let keys = self.keys.iter().map(|(id, _)| *id);
        keys.chain(self.ranges.iter().map(|(id, _)| *id))
    }
}

/// What the writer's lock showed of a condition.
#[derive(Debug)]
pub(in crate::engine) enum Standing {
    /// It holds, and does so as long as the lock is held.
    Holds,
    /// It does not: a key of a keyspace, and when it was written.
    Broken(Arc<Tree>, Key, Seq),
    /// Unknown until everything that is numbered up to here has been looked at.
    Unknown(Seq),
}

impl WritePath {
    /// Applies `batch` atomically, or fails with `Conflict` if `condition` does not hold. The caller holds a pin at the
    /// condition's number.
    pub(crate) fn commit_if(
        &self,
        batch: &WriteBatch,
        durability: Durability,
        mut condition: Condition<'_>,
    ) -> Result<Seq> {
        // First: a write whose sync failed would show as a conflict, for ever.
        self.health.check_writable()?;
        let mut rounds = 0;
        loop {
            // Before the views: what is not in them has a greater number.
            let upto = self.visibility.newest();
            if upto > condition.since {
                self.check(&self.trees(), &condition)?;
                condition.since = upto;
            }
            rounds += 1;
            let guarded = Guarded { condition: &condition, waits: rounds >= ROUNDS_MAX };
            match self.try_commit(batch, durability, Some(guarded))? {
                Ok(seq) => return Ok(seq),
                Err(Standing::Broken(tree, key, seq)) => return Err(self.conflict(&tree, &key, seq)),
                Err(Standing::Unknown(seq)) => self.wait_visible(seq)?,
                Err(Standing::Holds) => {}
            }
        }
    }

    /// Whether a condition that held up to its number holds up to the last one.
    pub(in crate::engine) fn standing(
        &self,
        writer: &mut Writer,
        trees: &Trees,
        guarded: Guarded<'_>,
    ) -> Result<Standing> {
        let Guarded { condition, waits } = guarded;
        let last = writer.last_seq;
        writer.recent.want(last);
        if planted!("condition-not-checked-under-the-lock") {
            return Ok(Standing::Holds);
        }
        if !condition.keyspaces().all(|id| trees.contains_key(&id)) {
            return Err(dropped());
        }
        if writer.recent.covers(condition.since, last) {
            let changed = condition.changed_by(&writer.recent);
            return changed.map_or(Ok(Standing::Holds), |(id, key, seq)| {
                Ok(Standing::Broken(trees.get(&id).cloned().ok_or_else(dropped)?, key, seq))
            });
        }
        if !waits {
            return Ok(Standing::Unknown(last));
        }
        self.wait_all_visible(writer)?;
        self.check(trees, condition).map(|()| Standing::Holds)
    }

    /// Fails with `Conflict` if `condition` does not hold for what is visible.
    pub(in crate::engine) fn check(&self, trees: &Trees, condition: &Condition<'_>) -> Result<()> {
        let since = condition.since;
        let tree_of = |id: &KeyspaceId| trees.get(id).ok_or_else(dropped);
        for (id, key) in &condition.keys {
            let tree = tree_of(id)?;
            let view = tree.view_arc();
            tree.check_exists()?;
            if let Some(seq) = self.newer_of(&view, key, since)? {
                return Err(self.conflict(tree, key, seq));
            }
        }
        for (id, range) in &condition.ranges {
            let tree = tree_of(id)?;
            let view = tree.view_arc();
            tree.check_exists()?;
            if let Some((key, seq)) = self.find_newer(&view, range, since)? {
                return Err(self.conflict(tree, &key, seq));
            }
        }
        Ok(())
    }

    /// When `key` was written or deleted after `since`; readers may not see that yet.
    fn newer_of(&self, view: &View, key: &[u8], since: Seq) -> Result<Option<Seq>> {
        let hash = filter::hash(key);
        for memtable in newer_memtables(view, since) {
            let newest = memtable.newest_seq(key, hash).max(memtable.newest_over(key, Seq::MAX));
            if newest > Some(since) {
                return Ok(newest);
            }
        }
        for (_, run) in view.version.runs() {
            let Some(meta) = run.find(key).filter(|table| table.max_seq > since) else { continue };
            let table = self.read.cache.table(meta)?;
            let over = newest_over(table.range_tombstones(), key, Seq::MAX)
                .filter(|_| !planted!("range-tombstones-not-checked"));
            let table = self.read.cache.open_for(&table, key)?;
            let may_contain = table.may_contain(hash);
            let found = if may_contain { self.read.newest_in(&table, key, Seq::MAX)? } else { None };
            let newest = over.max(found.map(|(stamp, _)| stamp.seq()));
            if newest > Some(since) {
                return Ok(newest);
            }
        }
        Ok(None)
    }

    /// A key of `range` that was written or deleted after `since`, and when; readers may not see that yet.
    fn find_newer(&self, view: &View, range: &KeyRange, since: Seq) -> Result<Option<(Key, Seq)>> {
        for memtable in newer_memtables(view, since) {
            if let Some(over) = memtable.newer_over(range, since) {
                return Ok(Some((over.range.start, over.seq)));
            }
            let found = newer_in(memtable.cursor(), range, since)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        for (level, run) in view.version.runs() {
            let newer = run.overlapping(range).filter(|table| table.max_seq > since);
            let tables: Vec<Arc<TableMeta>> = newer.cloned().collect();
            let unchecked = planted!("range-tombstones-not-checked");
            for table in tables.iter().filter(|table| table.range_tombstones > 0 && !unchecked) {
                if let Some(over) = newer_over(self.read.cache.table(table)?.range_tombstones(), range, since)
                {
                    return Ok(Some((over.range.start, over.seq)));
                }
            }
            if !tables.is_empty() {
                let tables =
                    TablesCursor::cached(self.read.cache.clone(), tables, Unit::of_level(level)).lazy();
                let found = newer_in(tables, range, since)?;
                if found.is_some() {
                    return Ok(found);
                }
            }
        }
        Ok(None)
    }

    /// The failure of a condition that depends on `key`, written at `seq`.
    fn conflict(&self, tree: &Tree, key: &[u8], seq: Seq) -> Error {
        // Whoever tries again sees what was in the way, instead of losing to it over and over.
        if !planted!("loser-does-not-wait")
            && let Err(error) = self.wait_visible(seq)
        {
            return error;
        }
        let (key, name) = (key.escape_ascii(), &tree.record.name);
        let message = format!("key \"{key}\" of keyspace {name:?} has changed since the transaction began");
        Error::new(ErrorKind::Conflict, message)
    }
}

/// A condition on its way to the writer's lock.
#[derive(Clone, Copy)]
pub(in crate::engine) struct Guarded<'a> {
    condition: &'a Condition<'a>,
    /// Whether to find out under the lock, however long that takes.
    waits: bool,
}

/// The memtables that may hold anything above `since`.
fn newer_memtables(view: &View, since: Seq) -> impl Iterator<Item = &Arc<Memtable>> {
    let sealed = view.sealed.iter().filter(move |sealed| sealed.upto > since);
    std::iter::once(&view.active).chain(sealed.map(|sealed| &sealed.memtable))
}

#[cfg(test)]
mod tests;
