//! Preallocation: makes packs for jobs, and the next segment of the log, before anybody needs them.
//!
//! A name is durable only after a sync of the directory. A segment's first byte and the edit that names a pack must
//! wait for that. So a thread of its own makes the files that are wanted next, and syncs the directory once for all
//! of them. It does so when a job has taken the last pack of the pool ([`crate::store::files::pool`]), or has found
//! none that it need not wait for, and when the log has gone on in the next segment. Whoever comes earlier waits for
//! this thread's sync or does its own; nobody depends on the thread.
//!
//! The thread also syncs older segments of the log, once somebody waits for syncs. A synced write then waits only for
//! the current segment.
//!
//! # Invariants
//!
//! * The thread takes no lock that writers or readers take.
//! * Nothing refers to the files that are made here.
//! * A failed sync poisons the store: it may have covered other names, whose fate is unknown. Any other failure is
//!   left to whoever needs the file.

use std::sync::Arc;

use crate::engine::schedule::background::Background;
use crate::engine::shared::alarm::Alarm;
use crate::error::Result;
use crate::store::files::meter::WriteCause;
use crate::store::wal::{Durable, NextSegment};

/// What the thread can reach.
#[derive(Debug)]
pub(in crate::engine) struct PreallocateThread {
    pub(in crate::engine) background: Arc<Background>,
    pub(in crate::engine) alarm: Arc<Alarm>,
    /// The segment that the log goes on in.
    pub(in crate::engine) next_segment: Arc<NextSegment>,
    pub(in crate::engine) log: Arc<Durable>,
}

impl PreallocateThread {
    /// Body of the thread.
    pub(crate) fn preallocate_forever(&self) {
        self.background.jobs.preallocator.serve(|| {
            if self.alarm.health.check_writable().is_ok() && self.preallocate_files().is_err() {
                self.background.wake_writers();
            }
        });
    }

    /// Makes what is wanted. Fails when that has poisoned the store.
    fn preallocate_files(&self) -> Result<()> {
        let jobs = &self.background.jobs;
        let segment = self.next_segment.make().ok().flatten();
        for (at, member) in jobs.storage.devices.members().iter().enumerate() {
            let packs = member.recycled.make_packs(|| jobs.ids.pack());
            // The log is on the first one.
            if let Some(named) = if at == 0 { segment.max(packs) } else { packs } {
                let synced = member.device.sync_names_upto(named, WriteCause::Preallocate);
                // The directory of a device that has gone meanwhile is nobody's, and may not be there.
                let has_gone = || jobs.storage.devices.member(member.id).id != member.id;
                if let Err(error) = synced
                    && !has_gone()
                {
                    return Err(self.alarm.poison(error));
                }
            }
        }
        match self.log.has_waiters() {
            true => self.log.sync_old().map_err(|error| self.alarm.poison(error)),
            false => Ok(()),
        }
    }
}
