//! The writer's lock: what a write changes in turn with all others.
//!
//! Whoever holds it has the end of the log and the next sequence number for itself. It comes before the locks of the
//! catalog and of the scheduler. A writer releases it while it waits for room.

use super::recent::Recent;
use crate::engine::shared::events::NotifiedStall;
use crate::env::sync::OrderedMutex;
use crate::error::{Error, ErrorKind, Result};
use crate::store::wal::Wal;
use crate::types::Seq;

/// What a write changes under the writer's lock.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) wal: Wal,
    pub(crate) last_seq: Seq,
    /// What was numbered lately.
    pub(in crate::engine) recent: Recent,
    /// Bytes in the active memtables of all keyspaces, about.
    pub(crate) active_bytes: u64,
    /// What the listener has heard last of stalls.
    pub(in crate::engine) notified_stall: Option<NotifiedStall>,
    /// Number of writers that wait for flushes because their batches have no room beside the memtables.
    pub(in crate::engine) crowding: usize,
    /// Number of callers that hold all writers back for a while.
    pub(crate) holds: usize,
}

impl Writer {
    /// A writer that goes on after `last_seq`.
    pub(in crate::engine) fn new(wal: Wal, last_seq: Seq, active_bytes: u64) -> Self {
        Self {
            wal,
            last_seq,
            recent: Recent::default(),
            active_bytes,
            notified_stall: None,
            crowding: 0,
            holds: 0,
        }
    }
}

/// The writer's lock; an error in a store that was opened for reading alone, which has none.
#[inline]
pub(in crate::engine) fn writable(writer: Option<&OrderedMutex<Writer>>) -> Result<&OrderedMutex<Writer>> {
    writer.ok_or_else(|| Error::new(ErrorKind::ReadOnly, "the store was opened for reading alone"))
}
