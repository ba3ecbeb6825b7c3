//! Keys that were deleted lately: a background thread walks over them before readers come ([`crossing`]).
//!
//! [`crossing`]: crate::engine::read::crossing

use std::sync::Arc;

use super::background::Background;
use crate::engine::read::crossing::cross;
use crate::engine::read::path::ReadPath;
use crate::engine::shared::wake::BackgroundThreads;
use crate::env::sync::OrderedMutex;
use crate::types::{Key, KeyspaceId};

/// Walks that wait, at most; readers do the others.
const WAITING_MAX: usize = 64;

/// The first and the last of some keys that were deleted.
type Keys = (Key, Key);

/// Deleted keys that nobody has walked over yet.
#[derive(Debug)]
pub(crate) struct DeletedKeys {
    read: Arc<ReadPath>,
    waiting: OrderedMutex<Vec<(KeyspaceId, Keys)>>,
}

impl DeletedKeys {
    /// None, to be walked over by `read`.
    pub(in crate::engine) fn none(read: Arc<ReadPath>) -> Self {
        Self { read, waiting: OrderedMutex::leaf(Vec::new()) }
    }

    /// Notes the first and the last of keys that were deleted.
    pub(in crate::engine) fn note(&self, keyspace: KeyspaceId, keys: Keys) {
        let mut waiting = self.waiting.lock();
        if waiting.len() < WAITING_MAX {
            waiting.push((keyspace, keys));
        }
    }
}

impl Background {
    /// Walks over what waits. What fails is left to readers.
    pub(super) fn cross_deleted(&self) {
        let DeletedKeys { read, waiting } = &self.deleted;
        let waiting = std::mem::take(&mut *waiting.lock());
        let mut all = waiting.into_iter();
        for (keyspace, (first, last)) in all.by_ref() {
            let Ok(tree) = self.jobs.tree(keyspace) else { continue };
            if let Ok(Some(next)) = cross(read, &tree, (&first, &last)) {
                // There is more than a moment's work. Plans come between.
                self.deleted.note(keyspace, (next, last));
                all.for_each(|(keyspace, keys)| self.deleted.note(keyspace, keys));
                self.scheduler.wake();
                break;
            }
        }
    }
}
