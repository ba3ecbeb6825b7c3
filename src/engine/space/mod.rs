//! From dead tables to free space: accounting, hole punching and the reserve for a full disk. Files that are made ahead.
//!
//! This room may punch, recycle and remove files. It never decides which tables are live: versions and leases do.
//! `docs/design/reclaim.md` has the whole path.

pub(super) mod preallocator;
pub(super) mod reclaim;
pub(super) mod reserve;
pub(super) mod storage;
