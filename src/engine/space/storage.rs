//! The files of a store as space: what of it is free, and what can be made free.
//!
//! [`Storage`] owns the device, the recycled files, the accounting of dead tables and the reserve. It makes space in the order of what
//! that costs: dead tables, recycled files, the reserve. Its methods stand beside what they do: [`reserve`](super::reserve) and
//! [`reclaim`](super::reclaim).
//!
//! Of trees it knows that they keep tables in buffers, which go first, and of jobs nothing. Who can run a rewrite for space, which takes locks of the scheduler, is the background.

use std::sync::Arc;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use arc_swap::ArcSwap;

use super::reclaim::Reclaimer;
use super::reserve::Reserve;
use crate::engine::keyspace::Trees;
use crate::env::Env;
use crate::store::files::device::Device;
use crate::store::files::devices::Devices;
use crate::store::files::recycled::RecycledFiles;

/// What takes space, and what gives it back.
#[derive(Debug)]
pub(crate) struct Storage {
    pub(in crate::engine) env: Arc<dyn Env>,
    /// The directory that has log and manifest.
    pub(in crate::engine) device: Arc<Device>,
    /// Its recycled files.
    pub(in crate::engine) recycled: Arc<RecycledFiles>,
    /// All directories.
    pub(in crate::engine) devices: Arc<Devices>,
    pub(in crate::engine) reclaimer: Arc<Reclaimer>,
    pub(in crate::engine) reserve: Reserve,
    /// Their buffers hold space that somebody may need more.
    pub(in crate::engine) trees: Arc<ArcSwap<Trees>>,
    /// Until this moment nothing is kept in buffers; by the monotonic clock, in nanoseconds.
    pub(in crate::engine) needed_until: AtomicU64,
}

/// Nothing is kept in buffers for so long after somebody needed space.
const NEEDED: Duration = Duration::from_secs(60);

impl Storage {
    /// Free space on the device; 0 where that cannot be told.
    pub(in crate::engine) fn free_bytes(&self) -> u64 {
        self.env.space(self.device.dir()).map_or(0, |space| space.free)
    }

    /// Lets the compaction buffers of all trees go: somebody needs their space.
    pub(in crate::engine) fn drop_buffers(&self) {
        let until = (self.env.now() + NEEDED).as_nanos();
        self.needed_until.store(u64::try_from(until).unwrap_or(u64::MAX), Relaxed);
        for tree in self.trees.load().values() {
            tree.drop_buffer();
        }
    }

    /// Whether space is too short for tables to be kept in buffers.
    pub(in crate::engine) fn is_needed(&self) -> bool {
        self.is_short_of_space() || self.env.now().as_nanos() < u128::from(self.needed_until.load(Relaxed))
    }
}
