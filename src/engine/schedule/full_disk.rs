//! What is done on a full disk that takes jobs: rewrites for space, and the reserve made again.
//!
//! [`reserve`](crate::engine::space::reserve) has the order, and what takes no job.

use super::background::Background;
use crate::batch::WriteBatch;
use crate::engine::space::reserve::for_jobs;
use crate::error::{Error, ErrorKind, Result};
use crate::format::batch::Action;
use crate::format::names::FileName;

impl Background {
    /// Makes space if `error` is a full disk, for a job, which needs much and holds no lock; whether there is more now.
    pub(crate) fn make_space_for_job(&self, error: &Error) -> bool {
        error.kind() == ErrorKind::DiskFull
            && (self.free_space(u64::MAX) || self.jobs.storage.give_up_reserve(0))
    }

    /// Frees `bytes` of what nobody needs, or what can be; whether there is more now. No lock may be held.
    fn free_space(&self, bytes: u64) -> bool {
        self.jobs.storage.free_dead(bytes) || self.jobs.storage.free_recycled() || self.rewrite_for_space()
    }

    /// Refuses a batch that needs more space than it may come to free, while the reserve is given up, and one that deletes
    /// while the part for jobs is.
    pub(crate) fn check_reserve(&self, batch: &WriteBatch) -> Result<()> {
        let reserve = &self.jobs.storage.reserve;
        if reserve.holds(reserve.bytes) {
            return Ok(());
        }
        let puts = batch.iter().any(|op| matches!(op.action, Action::Put { .. }));
        let made = if puts { self.make_reserve() } else { self.make_reserve_for_jobs() };
        if made? {
            return Ok(());
        }
        let action = match puts {
            true => "write more than deletes until there is room for the reserve again",
            false => "delete more until compactions have freed what is deleted already",
        };
        let full = std::io::ErrorKind::StorageFull.into();
        Err(Error::io(action, &self.jobs.storage.device.path(FileName::Reserve), full))
    }

    /// Makes the reserve again, if there is room for more than that.
    fn make_reserve(&self) -> Result<bool> {
        // Under no lock.
        while !self.jobs.storage.has_room() && (self.jobs.storage.free_recycled() || self.rewrite_for_space())
        {
        }
        let reserve = &self.jobs.storage.reserve;
        let _changing = reserve.changing.lock();
        let room = || {
            self.jobs.storage.has_room()
                || self
                    .jobs
                    .storage
                    .devices
                    .free_recycled()
                    .is_ok_and(|freed| freed && self.jobs.storage.has_room())
                || {
                    // Also where nothing was freed: what became a hole meanwhile counts for nobody.
                    self.jobs.storage.free_dead(reserve.bytes.saturating_mul(2));
                    self.jobs.storage.has_room()
                }
        };
        Ok(reserve.holds(reserve.bytes) || room() && self.jobs.storage.prepare_reserve(reserve.bytes)?)
    }

    /// Makes what jobs need of the reserve again. What is free is no guide: a file system keeps some for root, and for itself.
    fn make_reserve_for_jobs(&self) -> Result<bool> {
        let reserve = &self.jobs.storage.reserve;
        let bytes = for_jobs(reserve.bytes);
        loop {
            let changing = reserve.changing.lock();
            if reserve.holds(bytes) || self.jobs.storage.prepare_reserve(bytes)? {
                return Ok(true);
            }
            drop(changing);
            if !self.free_space(bytes) {
                return Ok(false);
            }
        }
    }
}
