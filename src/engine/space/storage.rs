//! The files of a store as space: what of it is free, and what can be made free.
//!
//! [`Storage`] owns the device, the recycled files, the accounting of dead tables and the reserve. It makes space in the order of what
//! that costs: dead tables, recycled files, the reserve. Its methods stand beside what they do: [`reserve`](super::reserve) and
//! [`reclaim`](super::reclaim).
//!
//! It knows neither trees nor jobs. Who can run a rewrite for space, which takes locks of the scheduler, is the background.

use std::sync::Arc;

use super::reclaim::Reclaimer;
use super::reserve::Reserve;
use crate::env::Env;
use crate::store::files::device::Device;
use crate::store::files::recycled::RecycledFiles;

/// What takes space, and what gives it back.
#[derive(Debug)]
pub(crate) struct Storage {
    pub(in crate::engine) env: Arc<dyn Env>,
    pub(in crate::engine) device: Arc<Device>,
    pub(in crate::engine) recycled: Arc<RecycledFiles>,
    pub(in crate::engine) reclaimer: Arc<Reclaimer>,
    pub(in crate::engine) reserve: Reserve,
}

impl Storage {
    /// Free space on the device; 0 where that cannot be told.
    pub(in crate::engine) fn free_bytes(&self) -> u64 {
        self.env.space(self.device.dir()).map_or(0, |space| space.free)
    }
}
