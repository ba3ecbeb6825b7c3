//! Background jobs: flush, compaction, rewrite and relocation, up to the edit that makes their outcome durable.
//!
//! A job gets a plan, reads its inputs, writes tables through [`output`] and ends in [`install`]. It does not decide
//! what to do next: that is the room `schedule`.
//!
//! This room may touch what [`context::JobContext`] holds: tables, packs, the catalog and the manifest.

pub(super) mod compaction;
pub(super) mod compaction_iterator;
pub(super) mod context;
pub(super) mod expiry;
pub(super) mod flush;
pub(super) mod install;
pub(super) mod output;
mod overwrites;
mod placement;
pub(super) mod pointers;
mod prefixes;
pub(super) mod relocation;
pub(super) mod retention;
pub(super) mod rewrite;
mod value_output;
