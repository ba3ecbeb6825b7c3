//! Open files of the simulated machine.

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;

use super::device::Cost;
use super::disk::SharedInode;
use super::fault::{Operation, Reach};
use super::inode::FileOp;
use super::machine::{Call, Machine, State, normalize};
use crate::env::{Access, File};

/// Largest length of a file, in bytes.
const LEN_MAX: u64 = i64::MAX as u64;

/// A handle of an inode.
pub(super) struct SimFile {
    machine: Arc<Machine>,
    inode: SharedInode,
    /// As the file was opened, for messages.
    path: PathBuf,
    /// Absolute, for devices and faults.
    normal: PathBuf,
    access: Access,
}

impl SimFile {
    pub(super) fn new(machine: Arc<Machine>, inode: SharedInode, path: &Path, access: Access) -> Self {
        Self { machine, inode, path: path.to_path_buf(), normal: normalize(path), access }
    }

    fn call<R>(
        &self,
        operation: Operation,
        cost: Cost,
        effect: impl FnOnce(&mut State, Reach) -> io::Result<R>,
    ) -> io::Result<R> {
        self.machine.call(Call { operation, path: &self.normal, cost }, effect)
    }

    fn cost_of_read(&self, offset: u64, len: u64) -> Cost {
        let number = self.inode.lock().number;
        let range = offset..offset.saturating_add(len);
        let mut state = self.machine.state();
        let begun = state.transfers.take(number, &range);
        let missing = match &begun {
            _ if state.page_cache.is_there() => state.page_cache.read(number, range),
            Some(begun) => len - begun.bytes,
            None => return Cost::Read(len),
        };
        match (begun, missing) {
            (Some(begun), missing) => {
                Cost::ReadAhead { ready: len.saturating_sub(missing), missing, until: begun.until }
            }
            (None, 0) => Cost::ReadCached(len),
            (None, missing) => Cost::Read(missing),
        }
    }

    /// Refuses to change a file that was opened for reading, or to let it end beyond the largest length.
    fn check_change(&self, offset: u64, len: u64) -> io::Result<()> {
        if self.access == Access::Read {
            return Err(Errno::BADF.into());
        }
        match offset.checked_add(len) {
            Some(end) if end <= LEN_MAX => Ok(()),
            _ => Err(Errno::FBIG.into()),
        }
    }
}

impl fmt::Debug for SimFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SimFile").field(&self.path).finish()
    }
}

impl File for SimFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn len(&self) -> io::Result<u64> {
        self.call(Operation::Len, Cost::Free, |_, _| Ok(self.inode.lock().contents().len()))
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        self.call(Operation::ReadAt, self.cost_of_read(offset, buf.len() as u64), |_, _| {
            let inode = self.inode.lock();
            match offset.checked_add(buf.len() as u64) {
                Some(end) if end <= inode.contents().len() => inode.contents().read(offset, buf),
                _ if buf.is_empty() => {}
                _ => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
            Ok(())
        })
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.call(Operation::WriteAt, Cost::Write(bytes.len() as u64), |state, reach| {
            self.check_change(offset, bytes.len() as u64)?;
            let wanted = if reach == Reach::Half { &bytes[..bytes.len() / 2] } else { bytes };
            let free = state.devices.space(&self.normal).free;
            let stored = self.inode.lock().contents().storable(offset, wanted.len(), free);
            if stored > 0 {
                let (number, range) = (self.inode.lock().number, offset..offset + stored as u64);
                state.transfers.forget(number, &range);
                if state.page_cache.is_there() {
                    state.page_cache.write(number, range);
                }
                state.disk.change(&self.inode, FileOp::Write { offset, bytes: wanted[..stored].into() });
            }
            if stored < wanted.len() { Err(Errno::NOSPC.into()) } else { Ok(()) }
        })
    }

    /// Takes no time: the next sync is charged for all that was written.
    fn write_back(&self, range: Range<u64>, _wait: bool) -> io::Result<()> {
        self.call(Operation::WriteBack, Cost::Free, |_, reach| {
            match reach {
                // Nothing is durable by it.
                Reach::Done | Reach::Cut | Reach::Never => {}
                Reach::Half | Reach::Refused => self.inode.lock().abandon_range(&range),
            }
            Ok(())
        })
    }

    /// Takes no time. The device has the whole transfer in its queue from now on, in requests of bounded length.
    fn read_ahead(&self, range: Range<u64>) {
        // Advice that fails is advice that nobody took.
        let _ = self.call(Operation::ReadAhead, Cost::Free, |state, _| {
            let (number, end) = {
                let inode = self.inode.lock();
                (inode.number, range.end.min(inode.contents().len()))
            };
            state.read_ahead(number, &self.normal, self.machine.clock.now(), range.start..end);
            Ok(())
        });
    }

    fn sync(&self) -> io::Result<()> {
        let (cost, end) = {
            let state = self.machine.state();
            let inode = self.inode.lock();
            (Cost::Sync(inode.dirty_bytes(), inode.flushes()), state.disk.next_number())
        };
        self.call(Operation::Sync, cost, |state, reach| {
            match reach {
                Reach::Done => {
                    let State { disk, devices, .. } = state;
                    disk.sync(&self.inode, end, devices);
                }
                Reach::Cut | Reach::Never => {}
                Reach::Half | Reach::Refused => self.inode.lock().abandon(end),
            }
            Ok(())
        })
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.call(Operation::SetLen, Cost::Metadata, |state, _| {
            self.check_change(len, 0)?;
            state.disk.change(&self.inode, FileOp::SetLen(len));
            Ok(())
        })
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        self.call(Operation::Punch, Cost::Metadata, |state, _| {
            self.check_change(offset, len)?;
            if len > 0 {
                let number = self.inode.lock().number;
                state.page_cache.forget(number, offset..offset + len);
                state.transfers.forget(number, &(offset..offset + len));
                state.disk.change(&self.inode, FileOp::Punch { offset, len });
            }
            Ok(())
        })
    }

    fn allocated(&self) -> io::Result<u64> {
        self.call(Operation::Allocated, Cost::Free, |_, _| Ok(self.inode.lock().contents().allocated()))
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<Range<u64>>> {
        self.call(Operation::NextData, Cost::Free, |_, _| Ok(self.inode.lock().contents().next_data(offset)))
    }

    fn links(&self) -> io::Result<u64> {
        self.call(Operation::Links, Cost::Free, |_, _| Ok(self.inode.lock().links))
    }
}
