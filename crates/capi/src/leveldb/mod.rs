//! LevelDB's interface in C: the functions of `leveldb/c.h`, by their names and with their ownership of memory.
//!
//! Pointers that LevelDB wants to be valid must be valid here, too: it takes no null where it does not say so, and neither
//! do these. An error is a text from `malloc` that begins as LevelDB's do ("IO error: ") and goes on with what Terrace says.

mod batch;
mod db;
mod error;
mod files;
mod iterator;
mod manage;
mod options;
mod settings;

pub use batch::*;
pub use db::*;
pub use iterator::*;
pub use manage::*;
pub use options::*;
