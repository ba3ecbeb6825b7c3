//! A keyspace at work: its memtables and its version.

use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};

use crate::catalog::Version;
use crate::format::edit::KeyspaceRecord;
use crate::store::memtable::Memtable;
use crate::types::{KeyspaceId, Seq};

/// First chunk of a memtable's arena, in bytes; a keyspace that is hardly used costs little more.
const ARENA_BYTES: usize = 64 * 1024;

/// An open keyspace.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) record: KeyspaceRecord,
    view: ArcSwap<View>,
}

/// Everything that a read needs: immutable but for the active memtable, which only grows.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) active: Arc<Memtable>,
    /// Memtables on their way to the disk, newest first.
    pub(crate) sealed: Vec<Arc<Memtable>>,
    pub(crate) version: Arc<Version>,
}

/// A new, empty memtable.
pub(crate) fn new_memtable() -> Arc<Memtable> {
    Arc::new(Memtable::new(ARENA_BYTES))
}

impl Tree {
    pub(crate) fn new(record: KeyspaceRecord, view: View) -> Self {
        Self { record, view: ArcSwap::from_pointee(view) }
    }

    pub(crate) fn id(&self) -> KeyspaceId {
        self.record.id
    }

    /// The view in force, for the length of a lookup.
    pub(crate) fn view(&self) -> Guard<Arc<View>> {
        self.view.load()
    }

    /// The view in force, to keep.
    pub(crate) fn view_arc(&self) -> Arc<View> {
        self.view.load_full()
    }

    /// Puts an empty memtable in front and gives the old one up for flushing; nothing if it is empty. Only the
    /// holder of the writer's lock calls this, so that nobody is inserting.
    pub(crate) fn seal(&self) -> Option<Arc<Memtable>> {
        let active = self.view.load().active.clone();
        if active.is_empty() {
            return None;
        }
        let fresh = new_memtable();
        self.view.rcu(|view| View {
            active: fresh.clone(),
            sealed: std::iter::once(&active).chain(&view.sealed).cloned().collect(),
            version: view.version.clone(),
        });
        Some(active)
    }

    /// Shows the result of a job: the new version, and without the memtable that it has absorbed, if any.
    pub(crate) fn publish(&self, version: &Arc<Version>, flushed: Option<&Arc<Memtable>>) {
        self.view.rcu(|view| View {
            active: view.active.clone(),
            sealed: view
                .sealed
                .iter()
                .filter(|memtable| flushed.is_none_or(|flushed| !Arc::ptr_eq(memtable, flushed)))
                .cloned()
                .collect(),
            version: version.clone(),
        });
    }

    /// Lets go of everything, once the keyspace is dropped. Readers go on with the views that they have.
    pub(crate) fn clear(&self) {
        let version = Arc::new(Version::empty());
        self.view.store(Arc::new(View { active: new_memtable(), sealed: Vec::new(), version }));
    }

    /// The oldest entry that is in no table, `except` left out.
    pub(crate) fn first_unflushed(&self, except: Option<&Arc<Memtable>>) -> Option<Seq> {
        let view = self.view.load();
        view.sealed
            .iter()
            .chain(std::iter::once(&view.active))
            .filter(|memtable| except.is_none_or(|except| !Arc::ptr_eq(memtable, except)))
            .filter_map(|memtable| memtable.min_seq())
            .min()
    }
}
