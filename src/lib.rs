//! Terrace: an embedded, persistent LSM-tree key-value store whose compactions its users never notice.
//!
//! ```
//! # let dir = tempfile::tempdir().unwrap();
//! let db = terrace::Db::open(dir.path())?;
//! db.put("apple", "red")?;
//! db.put("banana", "yellow")?;
//! for entry in db.prefix("b")? {
//!     let (key, value) = entry?;
//!     assert_eq!((&key[..], &value[..]), (&b"banana"[..], &b"yellow"[..]));
//! }
//! # Ok::<(), terrace::Error>(())
//! ```
//!
//! * [`Db`] is a store, [`Keyspace`] one of its ordered sets of keys, [`WriteBatch`] a group of writes that take effect
//!   together, [`Snapshot`] the store at one moment, [`Iter`] a walk in either direction, [`Cursor`] one that turns round,
//!   [`Transaction`] reads and writes that take effect together or conflict.
//! * [`Durability`] says what has happened to a write when the call returns, [`Ticket`] when a buffered one has become durable.
//! * [`Options`] are the settings; [`Error`] and [`ErrorKind`] tell what went wrong and what to do.
//! * [`mod@env`] is the machine underneath; [`env::simulated`] is one that can be cut off at any system call.
//!
//! `ARCHITECTURE.md` in the repository shows how it works, `docs/` has the guarantees, the formats and the invariants.

#[macro_use]
mod planted;

mod batch;
mod bounds;
mod catalog;
mod db;
mod engine;
pub mod env;
mod error;
mod events;
mod filter;
pub mod format;
mod iter;
mod merge;
mod options;
mod policy;
mod slice;
mod stats;
mod store;
pub mod types;

pub use batch::WriteBatch;
pub use bounds::KeyBounds;
pub use db::{
    Builder, Db, Ingest, Isolation, Keyspace, KeyspaceSnapshot, Snapshot, Ticket, Transaction,
    TransactionIter, TransactionOptions, repair,
};
pub use error::{Error, ErrorKind, Result};
pub use events::{EventListener, JobBegin, JobEnd, Stall};
pub use filter::{CompactionFilter, Decision};
pub use iter::{Cursor, Iter};
pub use options::{
    Compression, Descriptors, Durability, KeyspaceOptions, Options, PackLayout, TreeOptions, Victims,
};
pub use slice::Slice;
pub use stats::{
    ByCause, CacheStats, CompactionStats, CostStats, FlushStats, KeyspaceStats, LevelShape,
    PrefixFilterStats, PunchStats, ReadByCause, RepairReport, RewriteStats, Shape, SpaceStats, StallStats,
    Stats, UserReads, VerifyReport,
};
pub use types::Prefix;

/// The example of the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
