//! What the workload needs of an engine.

use std::path::Path;

use crate::Result;

/// What an engine is among those that are measured together; goals are told by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Terrace with separated values: what goals are for.
    Separated,
    /// Terrace whose values lie beside their keys.
    Whole,
    /// Another store.
    Peer,
}

/// An engine that opens stores.
pub trait Engine {
    /// Name of the engine and its options, for reports.
    fn name(&self) -> String;

    /// What it is among others.
    fn role(&self) -> Role;

    /// Opens or creates the store in the directory `path`, with `memory_bytes` for cache and memtables together.
    ///
    /// # Errors
    /// Whatever the engine reports.
    fn open(&self, path: &Path, memory_bytes: u64) -> Result<Box<dyn Subject>>;
}

/// How a store came to rest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drain {
    /// Time until it was at rest, in seconds.
    pub seconds: f64,
    /// Whether it was given up before that.
    pub is_cut_off: bool,
}

/// Sees a key and its value; whether the scan goes on.
pub type SeeRow<'a> = &'a mut dyn FnMut(&[u8], &[u8]) -> bool;

/// A store under test, which one thread uses.
pub trait Subject {
    /// Stores `value` under `key`.
    ///
    /// # Errors
    /// Whatever the engine reports, here and in all other calls.
    fn put(&self, key: &[u8], value: &[u8]) -> Result<()>;

    /// Deletes `key`.
    ///
    /// # Errors
    /// As above.
    fn delete(&self, key: &[u8]) -> Result<()>;

    /// Shows the value of `key` to `see`; whether there is one.
    ///
    /// # Errors
    /// As above.
    fn get(&self, key: &[u8], see: &mut dyn FnMut(&[u8])) -> Result<bool>;

    /// Whether `key` has a value, by the call for it where the engine has one.
    ///
    /// # Errors
    /// As above.
    fn contains(&self, key: &[u8]) -> Result<bool> {
        self.get(key, &mut |_| ())
    }

    /// Shows keys and values from `from` on.
    ///
    /// # Errors
    /// As above.
    fn scan(&self, from: &[u8], see: SeeRow<'_>) -> Result<()>;

    /// Shows keys alone, without their values where the engine can.
    ///
    /// # Errors
    /// As above.
    fn scan_keys(&self, from: &[u8], see: &mut dyn FnMut(&[u8]) -> bool) -> Result<()> {
        self.scan(from, &mut |key, _| see(key))
    }

    /// Waits until no background work is due.
    ///
    /// # Errors
    /// As above.
    fn drain(&self) -> Result<Drain>;

    /// Bytes that the engine says to have written to devices since it was opened; none where it does not tell.
    fn told_written_bytes(&self) -> Option<u64> {
        None
    }

    /// Closes the store and says whether that went well.
    ///
    /// # Errors
    /// As above.
    fn close(self: Box<Self>) -> Result<()>;
}
