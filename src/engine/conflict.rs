//! Commits that take effect only if nothing that they depend on has changed.
//!
//! A [`Condition`] is checked twice: by the caller, which does most of the reading, and by the leader of its group,
//! which looks at what has come since. The leader holds the writer's lock, and every older group is in the memtables by
//! then, so that what it finds unchanged stays so until the group has its numbers. Writers ahead of it in the same group
//! are in no memtable yet: their keys are compared. A write without a condition pays nothing for all this.
//!
//! The check finds the newest version of each key, wherever flushes and merges have put it. Merges keep that version, be
//! it a tombstone, because the caller holds a pin at a number below it (I4, I5).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use super::commit::Ticket;
use super::scan::Bounds;
use super::space::take_space;
use super::tree::{Tree, View, dropped};
use super::{Engine, Trees};
use crate::batch::WriteBatch;
use crate::catalog::{Run, TableMeta};
use crate::error::{Error, ErrorKind, Result};
use crate::merge::Cursor;
use crate::options::Durability;
use crate::store::table::TablesCursor;
use crate::types::{KeyspaceId, Seq, Stamp};

/// What must hold when a batch is applied: no key in one of the ranges has a version newer than `since`.
#[derive(Debug)]
pub(crate) struct Condition {
    pub(crate) since: Seq,
    pub(crate) unchanged: Vec<(KeyspaceId, Bounds)>,
}

impl Engine {
    /// Applies `batch` atomically, or fails with `Conflict` if `condition` does not hold. The caller holds a pin at the
    /// condition's number.
    pub(crate) fn commit_if(
        &self,
        batch: WriteBatch,
        durability: Durability,
        mut condition: Condition,
    ) -> Result<()> {
        // Before the views: what is not in them has a greater number.
        let upto = self.visible();
        self.check(&self.trees(), &condition)?;
        condition.since = condition.since.max(upto);
        self.enqueue(batch, durability, Some(condition))
    }

    /// Why each writer of a group, in the order of their numbers, is not served, if it is not.
    /// Those that put anything share `space_left`, in bytes.
    pub(super) fn refusals(
        &self,
        trees: &Trees,
        group: &[Arc<Ticket>],
        mut space_left: Option<u64>,
    ) -> Vec<Option<Error>> {
        let mut refusals: Vec<Option<Error>> = Vec::with_capacity(group.len());
        let (mut ahead, mut entered) = (KeysAhead::default(), 0);
        for (n, Ticket { batch, condition, .. }) in group.iter().map(|ticket| &**ticket).enumerate() {
            let refusal = if batch.keyspaces().iter().any(|id| !trees.contains_key(id)) {
                Some(dropped())
            } else if let Some(error) = space_left.as_mut().and_then(|left| take_space(batch, left).err()) {
                Some(error)
            } else if let Some(condition) = condition {
                for (ticket, refusal) in group[entered..n].iter().zip(&refusals[entered..]) {
                    if refusal.is_none() {
                        ahead.enter(&ticket.batch);
                    }
                }
                entered = n;
                self.check(trees, condition).and_then(|()| ahead.check(trees, condition)).err()
            } else {
                None
            };
            refusals.push(refusal);
        }
        refusals
    }

    fn check(&self, trees: &Trees, condition: &Condition) -> Result<()> {
        for (id, bounds) in &condition.unchanged {
            let tree = trees.get(id).ok_or_else(dropped)?;
            let view = tree.view_arc();
            tree.check_exists()?;
            if let Some(key) = self.find_newer(&view, bounds, condition.since)? {
                return Err(conflict(tree, &key));
            }
        }
        Ok(())
    }

    /// A key within `bounds` that has a version newer than `since`.
    fn find_newer(&self, view: &View, bounds: &Bounds, since: Seq) -> Result<Option<Vec<u8>>> {
        for memtable in view.memtables() {
            if let Some(key) = walk(memtable.cursor(), bounds, since)? {
                return Ok(Some(key));
            }
        }
        for run in view.version.levels().flat_map(|(_, level)| &level.runs) {
            let tables = newer_tables(run, bounds, since);
            if !tables.is_empty()
                && let Some(key) = walk(TablesCursor::cached(self.cache.clone(), tables), bounds, since)?
            {
                return Ok(Some(key));
            }
        }
        Ok(None)
    }
}

/// The tables of `run` that may hold a version newer than `since` of a key within `bounds`.
fn newer_tables(run: &Run, bounds: &Bounds, since: Seq) -> Vec<Arc<TableMeta>> {
    let newer = |table: &&Arc<TableMeta>| table.max_seq > since;
    match bounds.as_point() {
        Some(key) => run.find(key).into_iter().filter(newer).cloned().collect(),
        None => run.iter().filter(newer).filter(|table| bounds.meet(&table.range)).cloned().collect(),
    }
}

fn walk<C: Cursor>(mut cursor: C, bounds: &Bounds, since: Seq) -> Result<Option<Vec<u8>>, C::Error> {
    match &bounds.from {
        Bound::Included(from) | Bound::Excluded(from) => cursor.seek(from, Stamp::MAX)?,
        Bound::Unbounded => cursor.seek_first()?,
    }
    while cursor.valid() && !bounds.is_behind(cursor.key()) {
        if cursor.stamp().seq() > since && !bounds.is_before(cursor.key()) {
            return Ok(Some(cursor.key().to_vec()));
        }
        cursor.next()?;
    }
    Ok(None)
}

/// Keys of writers of the same group that come first.
#[derive(Default)]
struct KeysAhead<'a>(BTreeMap<KeyspaceId, BTreeSet<&'a [u8]>>);

impl<'a> KeysAhead<'a> {
    fn enter(&mut self, batch: &'a WriteBatch) {
        for op in batch.iter() {
            self.0.entry(op.keyspace).or_default().insert(op.key);
        }
    }

    fn check(&self, trees: &Trees, condition: &Condition) -> Result<()> {
        for (id, bounds) in &condition.unchanged {
            let Some(keys) = self.0.get(id).filter(|_| !bounds.is_empty()) else { continue };
            if let Some(key) = keys.range::<[u8], _>(bounds.as_refs()).next() {
                return Err(trees.get(id).map_or_else(dropped, |tree| conflict(tree, key)));
            }
        }
        Ok(())
    }
}

fn conflict(tree: &Tree, key: &[u8]) -> Error {
    let (key, name) = (key.escape_ascii(), &tree.record.name);
    let message = format!("key \"{key}\" of keyspace {name:?} has changed since the transaction began");
    Error::new(ErrorKind::Conflict, message)
}
