//! The read path: everything that a lookup or an iterator can reach.
//!
//! Lookups and iterators are methods of [`ReadPath`], or hold one, and know nothing else of the engine. Each takes the view of a
//! keyspace, then the number up to which it reads, and goes from the newest source to the oldest.
//!
//! It takes no lock but the list of snapshots, and changes nothing but counters. The scheduler it may only wake.

use std::sync::Arc;

use arc_swap::ArcSwap;

use super::snapshots::Snapshots;
use crate::engine::keyspace::expiry::Clock;
use crate::engine::keyspace::read_debt::Lookups;
use crate::engine::shared::health::Health;
use crate::engine::shared::pressure::Pressure;
use crate::engine::shared::reads::Reads;
use crate::engine::shared::settings::Settings;
use crate::engine::shared::visibility::Visibility;
use crate::engine::shared::wake::BackgroundThreads;
use crate::env::FileLock;
use crate::store::cache::TableCache;
use crate::types::Seq;

/// What reads need of an open store.
#[derive(Debug)]
pub(crate) struct ReadPath {
    pub(in crate::engine) cache: Arc<TableCache>,
    pub(in crate::engine) health: Arc<Health>,
    /// The number up to which everything may be read.
    pub(in crate::engine) visibility: Arc<Visibility>,
    /// The numbers at which somebody reads.
    pub(in crate::engine) snapshots: Arc<Snapshots>,
    pub(in crate::engine) settings: Arc<ArcSwap<Settings>>,
    /// What has expired.
    pub(in crate::engine) clock: Arc<Clock>,
    /// Told when readers have paid for a compaction, or let a snapshot go.
    pub(in crate::engine) scheduler: Arc<dyn BackgroundThreads>,
    /// Asked for what reads and compactions cost on this machine.
    pub(in crate::engine) pressure: Arc<Pressure>,
    pub(in crate::engine) lookups: Lookups,
    pub(in crate::engine) reads: Arc<Reads>,
    /// Nobody else opens the store as long as anything of it is read; none in a store that was opened for reading alone.
    pub(in crate::engine) _lock: Option<Arc<FileLock>>,
}

impl ReadPath {
    /// Everything up to here is acknowledged or about to be.
    #[inline]
    pub(in crate::engine) fn visible(&self) -> Seq {
        self.visibility.newest()
    }
}
