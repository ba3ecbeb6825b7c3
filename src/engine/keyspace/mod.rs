//! An open keyspace: its memtables and its version, what of it has expired, and what is counted of it.
//!
//! Readers take its [`View`](tree::View) without a lock.

pub(in crate::engine) mod changes;
pub(in crate::engine) mod collecting;
pub(in crate::engine) mod dead_ranges;
pub(in crate::engine) mod expiry;
pub(in crate::engine) mod fitting_prefix;
pub(in crate::engine) mod overwrite_ratio;
pub(in crate::engine) mod range_deletes;
pub(in crate::engine) mod read_debt;
pub(crate) mod tree;

use std::sync::Arc;

use crate::types::{ChunkMap, KeyspaceId};

use tree::Tree;

/// The keyspaces that exist, by id.
pub(crate) type Trees = ChunkMap<KeyspaceId, Arc<Tree>>;
