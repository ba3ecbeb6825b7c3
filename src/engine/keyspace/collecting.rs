//! Collection of value tables: the choice in force, and what jobs tell of it.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::env::sync::OrderedMutex;
use crate::policy::Collection;
use crate::types::TableId;

/// The [`Collection`] of a tree, if there is one.
#[derive(Debug)]
pub(in crate::engine) struct Collecting(OrderedMutex<State>);

#[derive(Debug, Default)]
struct State {
    collection: Option<Arc<Collection>>,
    /// Value tables with a value that could not be read. They are not chosen again before the next opening.
    unreadable: Arc<BTreeSet<TableId>>,
}

impl Default for Collecting {
    fn default() -> Self {
        Self(OrderedMutex::leaf(State::default()))
    }
}

impl Collecting {
    /// The choice in force.
    pub(in crate::engine) fn get(&self) -> Option<Arc<Collection>> {
        self.0.lock().collection.clone()
    }

    /// Puts `collection` in force, or none.
    pub(in crate::engine) fn set(&self, collection: Option<Collection>) {
        self.0.lock().collection = collection.map(Arc::new);
    }

    /// Value tables that are not to be chosen.
    pub(in crate::engine) fn unreadable(&self) -> Arc<BTreeSet<TableId>> {
        self.0.lock().unreadable.clone()
    }

    /// Notes that values of `tables` could not be read, and ends the choice: another one goes without these.
    pub(in crate::engine) fn note_unreadable(&self, tables: &BTreeSet<TableId>) {
        let mut state = self.0.lock();
        Arc::make_mut(&mut state.unreadable).extend(tables);
        state.collection = None;
    }

    /// Notes that a job which began under `collection` has written `tables`, which are in the tree.
    pub(in crate::engine) fn note_clean(
        &self,
        collection: &Collection,
        tables: impl IntoIterator<Item = TableId>,
    ) {
        let mut state = self.0.lock();
        if let Some(current) = state.collection.as_mut().filter(|current| current.is_same(collection)) {
            Arc::make_mut(current).clean.extend(tables);
        }
    }
}
