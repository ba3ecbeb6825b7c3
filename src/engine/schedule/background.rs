//! The background: what decides which job runs, and what its end brings about.
//!
//! [`Background`] claims, runs and ends jobs ([`scheduler`](super::scheduler)), watches the load that holds writers up
//! ([`pressure`](crate::engine::write::pressure)), and keeps to the budget of space and to the reserve, for which it may run a
//! rewrite ([`budget`](crate::engine::space::budget), [`reserve`](crate::engine::space::reserve)). Beside what is its own it reaches
//! what its jobs reach.
//!
//! It takes the scheduler's lock under the catalog's and before the reserve's, and the writer's only to wake writers, under no other.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::idle_time::IdleTime;
use super::scheduler::Scheduler;
use crate::engine::Trees;
use crate::engine::jobs::context::JobContext;
use crate::engine::write::pressure::Pressure;
use crate::env::FileLock;
use crate::env::sync::before_look;
use crate::store::files::meter::Meter;
use crate::types::Seq;

/// What schedules jobs.
#[derive(Debug)]
pub(crate) struct Background {
    pub(in crate::engine) jobs: Arc<JobContext>,
    /// Threads and claims.
    pub(in crate::engine) scheduler: Arc<Scheduler>,
    /// What is to be done, as writers are told.
    pub(in crate::engine) pressure: Arc<Pressure>,
    pub(in crate::engine) idle_time: IdleTime,
    /// What users read.
    pub(in crate::engine) meter: Arc<Meter>,
    /// Bytes of tables from outside that are written and not in a tree yet.
    pub(in crate::engine) ingesting_bytes: AtomicU64,
    /// Threads hold it until the store is closed.
    pub(in crate::engine) _lock: Option<Arc<FileLock>>,
}

impl Background {
    /// The keyspaces that exist.
    pub(in crate::engine) fn trees(&self) -> Arc<Trees> {
        before_look();
        self.jobs.trees.load_full()
    }

    /// Everything up to here is acknowledged or about to be.
    pub(in crate::engine) fn visible(&self) -> Seq {
        self.jobs.log.visibility.newest()
    }
}
