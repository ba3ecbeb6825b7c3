//! The write path: everything that a commit can reach.
//!
//! [`WritePath`] takes a batch from its caller to the log, to the memtables and to what readers see ([`commit`]). It
//! also checks conditions ([`conflict`]), decides how long a writer waits ([`verdict`]), and hands out tickets
//! ([`tickets`]). An ingest ends by it, and a checkpoint takes its moment by it.
//!
//! It plans and runs no job: of the background it asks for space and for the load, and wakes it when there is
//! something to flush. Of tables it reads what a condition depends on.
//!
//! Locks: the writer's is taken first. Under it, those of the parts that commits ask. None is held while the log is
//! synced for a commit.
//!
//! [`commit`]: super::commit
//! [`conflict`]: super::conflict
//! [`verdict`]: super::verdict
//! [`tickets`]: super::tickets

use std::sync::Arc;

use arc_swap::ArcSwap;

use super::commit::SyncGroup;
use super::tickets::Tickets;
use crate::engine::keyspace::Trees;
use crate::engine::keyspace::expiry::Clock;
use crate::engine::log::writer::{Writer, writable};
use crate::engine::read::path::ReadPath;
use crate::engine::schedule::background::Background;
use crate::engine::shared::alarm::Alarm;
use crate::engine::shared::events::Events;
use crate::engine::shared::health::Health;
use crate::engine::shared::ids::IdCounters;
use crate::engine::shared::pressure::Pressure;
use crate::engine::shared::settings::Settings;
use crate::engine::shared::statistics::Statistics;
use crate::engine::shared::visibility::Visibility;
use crate::engine::space::preallocator::Preallocator;
use crate::engine::space::storage::Storage;
use crate::env::Env;
use crate::env::sync::{OrderedMutex, before_look};
use crate::error::Result;

/// What writes need of an open store.
#[derive(Debug)]
pub(crate) struct WritePath {
    pub(in crate::engine) env: Arc<dyn Env>,

    // What they go by.
    pub(in crate::engine) settings: Arc<ArcSwap<Settings>>,
    /// Where the memtables are.
    pub(in crate::engine) trees: Arc<ArcSwap<Trees>>,
    /// The time that values which expire are dated by.
    pub(in crate::engine) clock: Arc<Clock>,

    // The log.
    /// Its end, and the numbers; `None` in a store that was opened for reading alone.
    pub(in crate::engine) writer: Option<Arc<OrderedMutex<Writer>>>,
    /// Those who make it durable; `None` where there is no writer.
    pub(in crate::engine) syncs: Option<SyncGroup>,
    /// Those who hear of it.
    pub(crate) tickets: Arc<Tickets>,
    /// The number of its next segment, as jobs write it into the manifest.
    pub(in crate::engine) ids: Arc<IdCounters>,
    /// Makes its next segment.
    pub(in crate::engine) preallocator: Arc<Preallocator>,

    /// Up to where readers see it.
    pub(in crate::engine) visibility: Arc<Visibility>,

    // What room there is.
    pub(in crate::engine) pressure: Arc<Pressure>,
    pub(in crate::engine) storage: Arc<Storage>,
    /// Keeps to the space budget and the reserve, flushes what is sealed, and knows which jobs fail.
    pub(in crate::engine) background: Arc<Background>,

    /// What a condition depends on is looked up here.
    pub(in crate::engine) read: Arc<ReadPath>,

    // Whom they tell.
    pub(in crate::engine) health: Arc<Health>,
    pub(in crate::engine) alarm: Arc<Alarm>,
    pub(in crate::engine) events: Arc<Events>,
    pub(in crate::engine) statistics: Arc<Statistics>,
}

impl WritePath {
    /// The writer's lock. Fails in a store that was opened for reading alone.
    #[inline]
    pub(in crate::engine) fn writer(&self) -> Result<&OrderedMutex<Writer>> {
        writable(self.writer.as_deref())
    }

    /// The keyspaces that exist.
    pub(in crate::engine) fn trees(&self) -> Arc<Trees> {
        before_look();
        self.trees.load_full()
    }
}
