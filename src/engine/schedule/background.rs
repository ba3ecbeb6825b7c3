//! The background: decides which job runs, and acts on its end.
//!
//! [`Background`] claims, runs and ends jobs ([`scheduler`](super::scheduler)). It samples the load that slows
//! writers ([`pressure`](crate::engine::shared::pressure)). It keeps to the space budget and the reserve, and may run
//! a rewrite for them ([`budget`](crate::engine::schedule::space_budget), [`reserve`](crate::engine::space::reserve)). It
//! touches its own fields and what its jobs may touch.
//!
//! Locks: it takes the scheduler's under the catalog's and before the reserve's. It takes the writer's only to wake
//! writers and to see what the log takes, for a moment and under no other lock.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::attention::Attention;
use super::deleted_keys::DeletedKeys;
use super::idle_time::IdleTime;
use super::load_totals::LoadTotals;
use super::scheduler::Scheduler;
use crate::engine::jobs::context::JobContext;
use crate::engine::keyspace::Trees;
use crate::engine::keyspace::changes::Changes;
use crate::engine::shared::pressure::Pressure;
use crate::env::FileLock;
use crate::env::sync::{MutexGuard, OrderedMutex, Rank, before_look};
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
    pub(in crate::engine) deleted: DeletedKeys,
    /// Trees that have changed since the load was sampled, or since a plan was made.
    pub(in crate::engine) changes: Arc<Changes>,
    /// The load of all trees.
    pub(in crate::engine) totals: OrderedMutex<LoadTotals>,
    /// The trees that plans look at.
    pub(in crate::engine) attention: OrderedMutex<Attention>,
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

    /// The trees that plans look at, by now.
    pub(in crate::engine) fn attention(&self) -> MutexGuard<'_, Attention> {
        Rank::Writer.assert_not_held();
        let mut attention = self.attention.lock();
        let settings = (self.jobs.settings.load_full(), self.jobs.storage.reclaimer.hole_bytes());
        attention.look(&self.changes, settings, || self.jobs.trees.load_full());
        attention
    }

    /// Everything up to here is acknowledged or about to be.
    pub(in crate::engine) fn visible(&self) -> Seq {
        self.jobs.log.visibility.newest()
    }
}
