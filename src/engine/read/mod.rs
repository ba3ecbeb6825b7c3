//! The way of a read: lookups and iterators over one immutable view of a keyspace.
//!
//! This room may touch what [`path::ReadPath`] holds: views, the cache and the list of snapshots. It takes no other lock of the engine
//! and changes nothing but counters.
//! [`tree`] is the state of a keyspace; [`snapshots`] says at which sequence numbers somebody reads.

pub(crate) mod bidirectional;
pub(super) mod get;
pub(super) mod multi_get;
pub(super) mod path;
pub(crate) mod scan;
pub(super) mod snapshots;
pub(crate) mod tree;
