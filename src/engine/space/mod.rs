//! From dead tables to free space: accounting, hole punching, the space budget, and the reserve for a full disk.
//!
//! This part may punch, recycle and remove files. It never decides which tables are live: versions and leases do.
//! `docs/design/reclaim.md` has the whole path.

pub(super) mod budget;
pub(super) mod reclaim;
pub(super) mod reserve;
pub(super) mod storage;
