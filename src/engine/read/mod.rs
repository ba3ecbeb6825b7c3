//! The read path: lookups and iterators over one immutable view of a keyspace.
//!
//! This part may touch what [`path::ReadPath`] holds: views, the cache and the list of snapshots. It takes no other lock
//! of the engine and changes nothing but counters. [`snapshots`] lists the sequence numbers at which somebody reads. `docs/design/read.md` has the whole way of a read.

pub(crate) mod bidirectional;
pub(super) mod crossing;
mod expired;
pub(super) mod get;
pub(super) mod multi_get;
pub(super) mod path;
mod region;
pub(crate) mod scan;
mod searches;
pub(crate) mod sight;
pub(super) mod snapshots;
