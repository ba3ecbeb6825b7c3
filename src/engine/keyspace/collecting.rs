//! Collection of value tables: the choice in force, and what jobs tell of it.

use std::sync::Arc;

use crate::env::sync::OrderedMutex;
use crate::policy::Collection;
use crate::types::TableId;

/// The [`Collection`] of a tree, if there is one.
#[derive(Debug)]
pub(in crate::engine) struct Collecting(OrderedMutex<Option<Arc<Collection>>>);

impl Default for Collecting {
    fn default() -> Self {
        Self(OrderedMutex::leaf(None))
    }
}

impl Collecting {
    /// The choice in force.
    pub(in crate::engine) fn get(&self) -> Option<Arc<Collection>> {
        self.0.lock().clone()
    }

    /// Puts `collection` in force, or none.
    pub(in crate::engine) fn set(&self, collection: Option<Collection>) {
        *self.0.lock() = collection.map(Arc::new);
    }

    /// Notes that a job which began under `collection` has written `tables`, which are in the tree.
    pub(in crate::engine) fn note_clean(
        &self,
        collection: &Collection,
        tables: impl IntoIterator<Item = TableId>,
    ) {
        let mut current = self.0.lock();
        if let Some(current) = current.as_mut().filter(|current| current.is_same(collection)) {
            Arc::make_mut(current).clean.extend(tables);
        }
    }
}
