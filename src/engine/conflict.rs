//! Commits that take effect only if nothing that they depend on has changed.
//!
//! A [`Condition`] is checked twice: by the caller, which does most of the reading, and again, for what has come since,
//! under the writer's lock when every numbered write is visible, so that what is unchanged then stays so until the batch
//! has its numbers. A write without a condition pays nothing for all this.
//!
//! The check finds the newest version of each key, and the newest range tombstone over it, wherever flushes and merges
//! have put them. Merges keep the newer of the two, be it a tombstone, because the caller holds a pin at a number below it
//! (I4, I5).

use std::borrow::Cow;
use std::sync::Arc;

use super::tree::{Tree, View, dropped};
use super::{Engine, Trees};
use crate::batch::WriteBatch;
use crate::catalog::TableMeta;
use crate::error::{Error, ErrorKind, Result};
use crate::format::batch::Action;
use crate::merge::{Cursor, newer_over};
use crate::options::Durability;
use crate::store::cache::Unit;
use crate::store::table::TablesCursor;
use crate::types::{Key, KeyRange, KeyspaceId, Seq, Stamp, UpperBound};

/// What must hold when a batch is applied: no key in one of the ranges, and none that the batch writes, was written, or deleted,
/// after `since`.
#[derive(Debug)]
pub(crate) struct Condition {
    pub(crate) since: Seq,
    pub(crate) unchanged: Vec<(KeyspaceId, KeyRange)>,
}

impl Engine {
    /// Applies `batch` atomically, or fails with `Conflict` if `condition` does not hold. The caller holds a pin at the
    /// condition's number.
    pub(crate) fn commit_if(
        &self,
        batch: &WriteBatch,
        durability: Durability,
        mut condition: Condition,
    ) -> Result<Seq> {
        // First: a write whose sync failed would show as a conflict, for ever.
        self.health.check_writable()?;
        // Before the views: what is not in them has a greater number.
        let upto = self.visible();
        self.check(&self.trees(), batch, &condition)?;
        condition.since = condition.since.max(upto);
        self.commit(batch, durability, Some(&condition))
    }

    /// Fails with `Conflict` if `condition` does not hold for what is visible.
    pub(super) fn check(&self, trees: &Trees, batch: &WriteBatch, condition: &Condition) -> Result<()> {
        // One at a time: all of a large batch would take several times its memory.
        let written = batch.iter().map(|op| (op.keyspace, Cow::Owned(range_of(&op.action))));
        let read = condition.unchanged.iter().map(|(id, range)| (*id, Cow::Borrowed(range)));
        for (id, range) in written.chain(read) {
            let tree = trees.get(&id).ok_or_else(dropped)?;
            let view = tree.view_arc();
            tree.check_exists()?;
            if let Some((key, seq)) = self.find_newer(&view, &range, condition.since)? {
                // Whoever tries again sees what was in the way, instead of losing to it over and over.
                if !planted!("loser-does-not-wait") {
                    self.wait_visible(seq)?;
                }
                return Err(conflict(tree, &key));
            }
        }
        Ok(())
    }

    /// A key of `range` that was written or deleted after `since`, and when; readers may not see that yet.
    fn find_newer(&self, view: &View, range: &KeyRange, since: Seq) -> Result<Option<(Key, Seq)>> {
        for memtable in view.memtables() {
            let lists = memtable.visible_range_tombstones(Seq::MAX);
            if let Some(over) = lists.iter().find_map(|list| newer_over(list, range, since)) {
                return Ok(Some((over.range.start, over.seq)));
            }
            let found = walk(memtable.cursor(), range, since)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        for (level, run) in view.version.runs() {
            let newer = run.overlapping(range).filter(|table| table.max_seq > since);
            let tables: Vec<Arc<TableMeta>> = newer.cloned().collect();
            let unchecked = planted!("range-tombstones-not-checked");
            for table in tables.iter().filter(|table| table.range_tombstones > 0 && !unchecked) {
                if let Some(over) = newer_over(self.cache.table(table)?.range_tombstones(), range, since) {
                    return Ok(Some((over.range.start, over.seq)));
                }
            }
            if !tables.is_empty() {
                let tables = TablesCursor::cached(self.cache.clone(), tables, Unit::of_level(level));
                let found = walk(tables, range, since)?;
                if found.is_some() {
                    return Ok(found);
                }
            }
        }
        Ok(None)
    }
}

/// The keys that an operation writes.
fn range_of(action: &Action<'_>) -> KeyRange {
    match *action {
        Action::Put { key, .. } | Action::Delete { key } => KeyRange::new(key, key),
        Action::DeleteRange { start, end } => KeyRange::half_open(start, UpperBound::from_bytes(end)),
    }
}

fn walk<C: Cursor>(mut cursor: C, range: &KeyRange, since: Seq) -> Result<Option<(Key, Seq)>, C::Error> {
    cursor.seek(&range.start, Stamp::MAX)?;
    while cursor.valid() && range.end.admits(cursor.key()) {
        if cursor.stamp().seq() > since {
            return Ok(Some((cursor.key().into(), cursor.stamp().seq())));
        }
        cursor.next()?;
    }
    Ok(None)
}

fn conflict(tree: &Tree, key: &[u8]) -> Error {
    let (key, name) = (key.escape_ascii(), &tree.record.name);
    let message = format!("key \"{key}\" of keyspace {name:?} has changed since the transaction began");
    Error::new(ErrorKind::Conflict, message)
}
