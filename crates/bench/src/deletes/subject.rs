//! What a case needs of an engine.

use std::path::Path;

use ::terrace::Db;

use crate::Result;

/// An engine that opens stores.
pub trait Engine {
    /// Name of the engine and its options, for reports.
    fn name(&self) -> String;

    /// Whether its stores answer [`Subject::terrace`].
    fn is_terrace(&self) -> bool {
        false
    }

    /// Opens or creates the store in the directory `path`.
    ///
    /// # Errors
    /// Whatever the engine reports.
    fn open(&self, path: &Path) -> Result<Box<dyn Subject>>;
}

/// One of the two ordered maps of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Map {
    /// The one that most cases use.
    Main,
    /// A second one, for rows that move: a keyspace of its own, or a prefix where an engine has none.
    Cold,
}

/// A store under test, which one thread uses.
pub trait Subject {
    /// Stores `value` under `key`.
    ///
    /// # Errors
    /// Whatever the engine reports, here and in all other calls.
    fn put(&self, map: Map, key: &[u8], value: &[u8]) -> Result<()>;

    /// Deletes `key`.
    ///
    /// # Errors
    /// As above.
    fn delete(&self, map: Map, key: &[u8]) -> Result<()>;

    /// Deletes all rows of the main map from `from` to before `to` in one call; false if the engine has none for it, and
    /// nothing was done.
    ///
    /// # Errors
    /// As above.
    fn delete_range(&self, from: &[u8], to: &[u8]) -> Result<bool>;

    /// Copies the first key of the main map at or behind `from` into `key`, by a new iterator; false if there is none.
    ///
    /// # Errors
    /// As above.
    fn first(&self, from: &[u8], key: &mut Vec<u8>) -> Result<bool>;

    /// The same for the last key at or before `to`.
    ///
    /// # Errors
    /// As above.
    fn last(&self, to: &[u8], key: &mut Vec<u8>) -> Result<bool>;

    /// The same for the first key that begins with `prefix`.
    ///
    /// # Errors
    /// As above.
    fn first_of_prefix(&self, prefix: &[u8], key: &mut Vec<u8>) -> Result<bool> {
        Ok(self.first(prefix, key)? && key.starts_with(prefix))
    }

    /// Walks over all rows of the main map; how many there are.
    ///
    /// # Errors
    /// As above.
    fn walk(&self) -> Result<u64>;

    /// Moves all that is in memory to tables; false if the engine has no call for it.
    ///
    /// # Errors
    /// As above.
    fn flush(&self) -> Result<bool> {
        Ok(false)
    }

    /// Waits until no background work is due; false if the engine does not tell.
    ///
    /// # Errors
    /// As above.
    fn wait_idle(&self) -> Result<bool> {
        Ok(false)
    }

    /// Compacts everything; false if the engine has no call for it.
    ///
    /// # Errors
    /// As above.
    fn compact(&self) -> Result<bool> {
        Ok(false)
    }

    /// The store itself, for cases that other engines cannot run.
    fn terrace(&self) -> Option<&Db> {
        None
    }

    /// Closes the store and says whether that went well.
    ///
    /// # Errors
    /// As above.
    fn close(self: Box<Self>) -> Result<()>;
}
