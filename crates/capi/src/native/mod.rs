//! Terrace's own interface in C: the functions of `terrace.h`.
//!
//! A function that can fail returns an error object, or null. No argument may be null unless its description says so; one that
//! is null all the same is an error that names it.

mod batch;
mod bytes;
mod cursor;
mod db;
mod error;
mod ingest;
mod keyspace;
mod options;
mod read;
mod stats;
mod ticket;
mod transaction;
mod upkeep;
mod write;

pub use batch::*;
pub use bytes::*;
pub use cursor::*;
pub use db::*;
pub use error::*;
pub use ingest::*;
pub use keyspace::*;
pub use options::*;
pub use read::*;
pub use stats::*;
pub use ticket::*;
pub use transaction::*;
pub use upkeep::*;
pub use write::*;
