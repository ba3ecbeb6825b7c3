//! The read path: lookups and iterators over one immutable view of a keyspace.
//!
//! This part may touch views, the cache and the list of snapshots. It takes no lock of the engine and changes
//! nothing. [`tree`] is the state of a keyspace; [`snapshots`] lists the sequence numbers at which somebody reads.
//! `docs/design/read.md` has the whole way of a read.

pub(crate) mod bidirectional;
pub(super) mod get;
pub(super) mod multi_get;
pub(crate) mod scan;
pub(super) mod snapshots;
pub(crate) mod tree;
