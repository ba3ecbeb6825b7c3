//! Which trees have changed since somebody looked, so that who sums up all trees looks at those alone.
//!
//! A watcher takes the list of changed trees, and for each of them unmarks the tree, then looks at it. Who changes a tree
//! marks it afterwards, and lists it if it was not marked. So either the watcher sees the change, or the tree is listed
//! again.
//!
//! Invariant: a tree that is marked is in the list, or a watcher that has taken the list has not looked at it yet.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, fence};

use crate::env::sync::OrderedMutex;
use crate::types::KeyspaceId;

/// Who looks at changed trees.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::engine) enum Watcher {
    /// The load: memtables and versions.
    Load,
    /// Plans: versions, and what readers have paid.
    Plans,
}

const WATCHERS: [Watcher; 2] = [Watcher::Load, Watcher::Plans];

/// The changed trees, for each watcher.
#[derive(Debug, Default)]
pub(in crate::engine) struct Changes([OrderedMutex<Vec<KeyspaceId>>; WATCHERS.len()]);

/// The marks of one tree.
#[derive(Debug, Default)]
pub(in crate::engine) struct Marks([AtomicBool; WATCHERS.len()]);

impl Changes {
    /// The trees that have changed since the last call for `watcher`, and those that are gone. Each must be unmarked
    /// before it is looked at.
    pub(in crate::engine) fn take(&self, watcher: Watcher) -> Vec<KeyspaceId> {
        std::mem::take(&mut *self.0[watcher as usize].lock())
    }

    /// The tree of `keyspace` has changed for `watcher`.
    pub(in crate::engine) fn note(&self, watcher: Watcher, keyspace: KeyspaceId, marks: &Marks) {
        // What has changed is written before the mark is read: see `Marks::clear`.
        fence(SeqCst);
        let mark = &marks.0[watcher as usize];
        if !mark.load(Relaxed) && !mark.swap(true, SeqCst) {
            self.0[watcher as usize].lock().push(keyspace);
        }
    }

    /// The keyspace is not in the list of keyspaces any more.
    pub(in crate::engine) fn note_gone(&self, keyspace: KeyspaceId) {
        WATCHERS.iter().for_each(|watcher| self.0[*watcher as usize].lock().push(keyspace));
    }
}

impl Marks {
    /// Before the tree is looked at.
    pub(in crate::engine) fn clear(&self, watcher: Watcher) {
        self.0[watcher as usize].store(false, SeqCst);
        fence(SeqCst);
    }
}
