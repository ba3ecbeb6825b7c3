//! The next segment of the log, made before it is needed so that no writer waits for the sync of a directory.
//!
//! [`NextSegment::make`] creates the file. Its caller syncs the directory, together with other names. A writer that
//! needs the segment earlier waits for that sync, or does it itself ([`NextSegment::take`]).
//!
//! Invariant: a segment's name is durable before its first byte is written.

use std::sync::Arc;

use crate::env::sync::{OrderedMutex, Rank};
use crate::error::{Error, Result};
use crate::format::names::FileName;
use crate::store::files::device::{Device, Named};
use crate::store::files::file::StoreFile;
use crate::store::files::meter::WriteCause;
use crate::store::files::recycled::{NewFile, RecycledFiles};
use crate::types::SegmentId;

/// Makes segments, at most one ahead. A crash may leave an empty one behind the log's end, which recovery removes.
#[derive(Debug)]
pub(crate) struct NextSegment {
    device: Arc<Device>,
    recycled: Arc<RecycledFiles>,
    segment_bytes: u64,
    /// Held while a file is being made: two of the same name must not meet.
    state: OrderedMutex<State>,
}

#[derive(Debug)]
struct State {
    id: SegmentId,
    /// The segment's file.
    file: Option<NewFile>,
    discarded: bool,
}

impl NextSegment {
    /// Segments of about `segment_bytes` bytes, from `id` on.
    pub(super) fn new(
        device: Arc<Device>,
        recycled: Arc<RecycledFiles>,
        segment_bytes: u64,
        id: SegmentId,
    ) -> Self {
        let state = OrderedMutex::new(Rank::NextSegment, State { id, file: None, discarded: false });
        Self { device, recycled, segment_bytes, state }
    }

    pub(super) fn id(&self) -> SegmentId {
        self.state.lock().id
    }

    /// Makes the file, if there is none. Returns the moment by which it had its name; `None` if no segment is needed
    /// after this one.
    pub(crate) fn make(&self) -> Result<Option<Named>> {
        let mut state = self.state.lock();
        if state.file.is_none() && !state.discarded {
            let name = FileName::Wal(state.id);
            match self.recycled.take_preallocated(name, self.segment_bytes) {
                Ok(file) => state.file = Some(file),
                Err(error) => {
                    // An empty segment must not stand before the next one.
                    self.device.remove(name)?;
                    state.id = state.id.next();
                    return Err(error);
                }
            }
        }
        Ok(state.file.as_ref().map(|file| file.named))
    }

    /// Takes the segment: its id and its file, whose name is durable. After a failure the id is used up all the same.
    pub(super) fn take(&self) -> Result<(SegmentId, StoreFile)> {
        let mut state = self.state.lock();
        let id = state.id;
        state.id = id.next();
        let NewFile { file, named } = match state.file.take() {
            Some(file) => file,
            None => self.recycled.take(FileName::Wal(id), self.segment_bytes)?,
        };
        let skipped = planted!("segment-name-not-synced");
        let synced = if skipped { Ok(()) } else { self.device.sync_names_upto(named, WriteCause::Directory) };
        // Nobody can have made the next one meanwhile.
        let removed = |why| self.device.remove(FileName::Wal(id)).err().unwrap_or(why);
        synced.map(|()| (id, file)).map_err(removed)
    }

    /// Removes segment `id`, which [`NextSegment::take`] gave and which could not be started: a segment without its
    /// first frame must not stand between two good ones. If the next segment's file exists already, it is named anew
    /// in the order of names, behind the removal. So the removal is durable by the time that the next segment is
    /// written. Returns `why` the segment could not be started, or, if it cannot be removed, the error of that.
    pub(super) fn abandon(&self, id: SegmentId, why: Error) -> Error {
        let mut state = self.state.lock();
        let removed = self.device.remove(FileName::Wal(id));
        if let Some(file) = &mut state.file {
            file.named = self.device.named();
        }
        removed.err().unwrap_or(why)
    }

    /// Removes the prepared segment, and prepares none from now on.
    pub(super) fn discard(&self) {
        let mut state = self.state.lock();
        state.discarded = true;
        if state.file.take().is_some() {
            // If it stays, it is empty, and goes at the next open.
            let _ = self.device.remove(FileName::Wal(state.id));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::env::Env;
    use crate::env::simulated::{SimConfig, SimEnv, Survival};
    use crate::error::ErrorKind;
    use crate::store::files::meter::Meter;

    #[test]
    fn a_segment_that_could_not_be_started_is_durably_gone_before_the_next_one_is_written() {
        let env = SimEnv::new(SimConfig::default());
        env.create_dir(Path::new("/db")).unwrap();
        let device = Arc::new(Device::new(env.clone(), "/db".into(), Arc::new(Meter::default())));
        let recycled = Arc::new(RecycledFiles::new(device.clone()));
        let next = NextSegment::new(device.clone(), recycled, 1 << 16, SegmentId(7));
        let (id, file) = next.take().unwrap();
        // The next one is made, and its name made durable, before it is known that the first cannot be started.
        let made = next.make().unwrap().unwrap();
        device.sync_names().unwrap();
        assert!(device.is_durable(made));
        drop(file);
        assert_eq!(next.abandon(id, Error::new(ErrorKind::DiskFull, "full")).kind(), ErrorKind::DiskFull);
        let (later, _file) = next.take().unwrap();
        assert_eq!((id, later), (SegmentId(7), SegmentId(8)));
        let files = env.crash(Survival::Nothing).files();
        let there = |name: FileName| files.iter().any(|(path, _)| *path == device.path(name));
        assert!(!there(FileName::Wal(id)) && there(FileName::Wal(later)), "{files:?}");
    }
}
