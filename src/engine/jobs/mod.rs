//! What background jobs do: flush, compaction, rewrite and ingest, up to the edit that makes their outcome durable.
//!
//! A job gets a plan, reads its inputs, writes tables through [`output`] and ends in [`install`]. It may touch what
//! [`context::JobContext`] holds: tables, packs, the catalog and the manifest. It does not decide what to do next: that is the room `schedule`.

pub(super) mod compaction;
pub(super) mod compaction_iterator;
pub(super) mod context;
pub(super) mod expiry;
pub(super) mod flush;
pub(super) mod ingest;
pub(super) mod install;
pub(super) mod output;
pub(super) mod rewrite;
