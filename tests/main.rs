//! The integration tests of the store, a module for each subject, in one program, so that a change of the engine
//! links one.
//!
//! `cargo test --test it` runs all of them, `cargo test --test it ingest::` those of a module. They share a process:
//! a test that sets limits, counts descriptors or replaces the allocator needs a program of its own (see
//! `crates/torture/tests/`).

mod aging;
mod basics;
mod budgets;
mod buffer;
mod buffer_shapes;
mod checkpoint;
mod common;
mod compaction_filter;
mod concurrency;
mod cursor;
mod deletes;
mod devices;
mod edges;
mod events;
mod expiry;
mod fault;
mod format;
mod full_disk;
mod heat;
mod holds;
mod idle_time;
mod ingest;
mod kill;
mod layouts;
mod limits;
mod linearizable;
mod many_keyspaces;
mod model;
mod multi_get;
mod opening;
mod pacing;
mod partitions;
mod prefix;
mod prefixed;
mod properties;
mod range_delete;
mod ranges;
mod reader;
mod reclaim;
mod refused;
mod regress;
mod released;
mod repair;
mod rewrite;
mod row_cache;
mod separated;
mod settings;
mod striped;
mod throttle;
mod tickets;
mod tidy;
mod trace;
mod transactions;
