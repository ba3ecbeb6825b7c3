//! An open store: the parts of the engine, put together.
//!
//! Methods of [`Engine`] are those that span all parts.

use std::path::Path;
use std::sync::Arc;

use arc_swap::ArcSwap;

use super::checkpoint::Checkpoint;
use super::keyspaces::Keyspaces;
use super::opening::Opening;
use super::verify::Verification;
use crate::engine::jobs::context::JobContext;
use crate::engine::keyspace::tree::Tree;
use crate::engine::observe::stats_view::{StatsView, shape};
use crate::engine::read::path::ReadPath;
use crate::engine::schedule::background::Background;
use crate::engine::shared::health::Health;
use crate::engine::shared::settings::Settings;
use crate::engine::write::path::WritePath;
use crate::env::FileLock;
use crate::env::sync::OrderedMutex;
use crate::error::Result;
use crate::stats::{Shape, Stats, VerifyReport};
use crate::store::wal::RecoveredSegment;

/// An open store.
#[derive(Debug)]
pub(crate) struct Engine {
    // The parts. Some hold others: what several share is made once, by `lifecycle/assemble.rs`.
    /// Lookups, iterators and snapshots.
    pub(crate) read: Arc<ReadPath>,
    /// Commits, syncs and tickets.
    pub(crate) write: Arc<WritePath>,
    /// What runs jobs.
    pub(crate) background: Arc<Background>,
    /// Flush, compaction, rewrite, and the install of what they make.
    pub(in crate::engine) jobs: Arc<JobContext>,
    /// Creates, drops and alters keyspaces.
    pub(crate) keyspaces: Keyspaces,

    // What belongs to the whole.
    pub(super) settings: Arc<ArcSwap<Settings>>,
    pub(crate) health: Arc<Health>,
    /// The log as it was at opening, held, in a store that was opened for reading alone.
    pub(super) replayed: Vec<RecoveredSegment>,
    /// Held while the store is being closed, or its settings change.
    pub(super) closing: OrderedMutex<()>,
    /// Held as long as anything of the store is; none in a store that was opened for reading alone.
    pub(super) _lock: Option<Arc<FileLock>>,
}

impl Engine {
    /// Where the store is.
    pub(crate) fn dir(&self) -> &Path {
        self.jobs.storage.device.dir()
    }

    /// How to open a store that is only read once more; `None` where it is written here.
    pub(crate) fn reopening(&self) -> Result<Option<Opening>> {
        self.health.check_open()?;
        Ok(self.write.writer.is_none().then(|| Opening {
            dir: self.dir().to_path_buf(),
            // Where they are now: one may have moved, and only a writer notes that.
            devices: self.jobs.storage.devices.members()[1..]
                .iter()
                .map(|member| member.device.dir().to_path_buf())
                .collect(),
            env: self.jobs.env.clone(),
            options: self.settings().options.clone(),
            read_only: true,
            must_exist: true,
            listener: self.jobs.events.listener(),
            filters: self.jobs.filters.clone(),
        }))
    }

    /// As [`Checkpoint::make`].
    pub(crate) fn checkpoint(&self, dir: &Path) -> Result<()> {
        let Self { jobs, write, replayed, .. } = self;
        Checkpoint { jobs, write, replayed }.make(dir)
    }

    /// As [`Verification::run`].
    pub(crate) fn verify(&self) -> Result<VerifyReport> {
        Verification { jobs: &self.jobs }.run()
    }

    /// As [`StatsView::stats`].
    pub(crate) fn stats(&self) -> Stats {
        let Self { read, write, background, jobs, replayed, .. } = self;
        StatsView { read, write, background, jobs, replayed }.stats()
    }

    /// The levels of a tree, down to the deepest that holds anything.
    pub(crate) fn shape(&self, tree: &Tree) -> Shape {
        shape(&self.jobs, tree)
    }
}
