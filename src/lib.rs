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
//! * [`Db`] is a store. [`Keyspace`] is one of its ordered sets of keys. [`WriteBatch`] is a group of writes that
//!   take effect together. [`Snapshot`] is the store at one moment. [`Iter`] iterates in either direction; [`Cursor`]
//!   also seeks and turns round. [`Transaction`] is a group of reads and writes that take effect together or
//!   conflict.
//! * [`Durability`] says how durable a write is when the call returns, [`Ticket`] when a buffered write has become
//!   durable.
//! * [`Options`] are the settings. [`Error`] and [`ErrorKind`] say what went wrong and what to do.
//! * [`mod@env`] is the machine underneath; [`env::simulated`] is a machine in memory whose power can fail at any
//!   system call.
//!
//! `ARCHITECTURE.md` in the repository shows how it works. `docs/` has the guarantees, the formats and the
//! invariants.

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
pub use engine::{JobVerdict, LoadSample, LoadVerdict, replay};
pub use error::{Error, ErrorKind, Result};
pub use events::{EventListener, JobBegin, JobEnd, Stall};
pub use filter::{CompactionFilter, Decision};
pub use iter::{Cursor, Iter, Keys};
pub use options::{Compression, Durability, KeyspaceOptions, Options, TreeOptions};
pub use slice::Slice;
pub use stats::{
    BufferStats, ByCause, CacheStats, CompactionStats, CostStats, DeviceStats, FlushStats, KeyspaceStats,
    LevelShape, LoadStats, PassedBytes, PrefixFilterStats, PunchStats, ReadByCause, RepairReport,
    RewriteStats, Shape, SpaceStats, StallStats, Stats, UserReads, VerifyReport,
};
pub use types::Prefix;

/// The decisions of [`TreeOptions`], each an enum whose variants carry their parameters.
///
/// Who wants the shape of another store takes it from [`Options::profile`] and sets single decisions otherwise:
///
/// ```
/// use terrace::tree::{Group, Picker};
/// use terrace::{Options, TreeOptions};
///
/// let leveldb = Options::profile("leveldb-2m").unwrap();
/// let grouped = Picker::Cursor(Group { bytes: 64 << 20, ..Group::SINGLE });
/// let options = Options { tree: TreeOptions { picker: grouped, ..leveldb.tree.clone() }, ..leveldb };
/// assert!(options.validate().is_ok());
/// ```
pub mod tree {
    pub use crate::options::{
        Adaptive, Bandwidth, Buffer, Burst, Caching, Components, Cutter, Descriptors, Dlc, Drain, Files,
        Flushes, Gear, Geared, Governor, Group, Guarded, Layout, Leveled, Levels, LoadEstimator, Pacer,
        PackLayout, Peak, Picker, Placer, Prefixed, RatioWindow, Retainer, Silk, SoftSleep, Steady,
        TableSize, Tiered, Unit, ValueOrder,
    };
}

/// The example of the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
