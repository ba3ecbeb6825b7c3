//! The engine: all mechanisms of an open store.
//!
//! It consists of rooms, each a folder. A room may use those above it in this list, and none below (`tests/tidy` checks it):
//!
//! * [`shared`]: what all rooms go by, tell and count: settings, health, events, statistics, what is visible.
//! * [`keyspace`]: an open keyspace: its memtables and version as one [`View`](keyspace::tree::View), what expires, and what is
//!   counted of it.
//! * [`space`]: from dead tables to free space; what is left when the disk is full; files that are made ahead.
//! * [`log`]: the writer's lock, and what flushes cut off the log.
//! * [`pace`]: the load, and how jobs are throttled by it.
//! * [`read`]: lookups and iterators over one view; snapshots.
//! * [`jobs`]: flush, compaction and rewrite; what they write, and the edit that makes it durable, then visible.
//! * [`schedule`]: the threads, what may run at the same time, and what is done for space.
//! * [`mod@write`]: from a batch to the log and the memtables; conflicts, tickets, ingests; when writers wait.
//! * [`observe`]: pictures of all of these for users.
//! * [`lifecycle`]: from files to an [`Engine`] and back; keyspaces, checkpoints, repair.
//!
//! The struct of a part says what its code can reach: [`ReadPath`](read::path::ReadPath),
//! [`WritePath`](write::path::WritePath), [`JobContext`](jobs::context::JobContext),
//! [`Background`](schedule::background::Background), [`Keyspaces`](lifecycle::keyspaces::Keyspaces),
//! [`Storage`](space::storage::Storage). Calls go straight to the part: `engine.write.commit(..)`.
//!
//! [`Rank`](crate::env::sync::Rank) gives the order in which locks are taken. Debug builds check it.

mod jobs;
pub(crate) mod keyspace;
pub(crate) mod lifecycle;
mod log;
mod observe;
mod pace;
pub(crate) mod read;
mod schedule;
pub(crate) mod shared;
mod space;
pub(crate) mod write;

pub(crate) use lifecycle::engine::Engine;
pub(crate) use lifecycle::opening::Opening;
pub(crate) use lifecycle::recovery::open;
pub(crate) use lifecycle::repair::repair;
pub use observe::replay::{JobVerdict, LoadVerdict, replay};
pub(crate) use read::snapshots::Pin;
pub(crate) use shared::events::Listener;
pub use shared::load_sample::LoadSample;
pub(crate) use write::conflict::Condition;
pub(crate) use write::ingest::Ingestion;
pub(crate) use write::tickets::Tickets;
