//! A file of the store: counts its reads, writes and syncs by cause, and names itself in errors.
//!
//! Invariant: after a failed sync every later sync of the file fails too (`docs/design/README.md`, assumption 5).

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::meter::{Meter, ReadCause, WriteCause};
use crate::env::sync::OrderedMutex;
use crate::env::{File, FileLock};
use crate::error::{Error, Result};
use crate::format::Malformed;
use crate::types::PAGE_BYTES;

/// Shorter pieces are gathered in a buffer, in bytes.
const PIECE_BYTES: usize = 1 << 20;

/// Appends `piece` to the bytes of `buffer`, which belong at `offset`. If there are many whole pages, they are
/// written at once, the piece from where it lies. The rest is in the buffer then, and belongs at the offset that is
/// returned.
pub(in crate::store) fn write_piece(
    mut offset: u64,
    piece: &[u8],
    buffer: &mut Vec<u8>,
    mut write: impl FnMut(u64, &[u8]) -> Result<()>,
) -> Result<u64> {
    if piece.len() < PIECE_BYTES {
        buffer.extend_from_slice(piece);
        return Ok(offset);
    }
    // Up to a page boundary: before the kernel changes a part of a page that is not in memory, it reads the page.
    let end = offset + buffer.len() as u64;
    let (head, rest) = piece.split_at((end.next_multiple_of(PAGE_BYTES) - end) as usize);
    buffer.extend_from_slice(head);
    if !buffer.is_empty() {
        write(offset, buffer)?;
    }
    offset += buffer.len() as u64;
    buffer.clear();
    let (pages, tail) = rest.split_at(rest.len() - rest.len() % PAGE_BYTES as usize);
    for part in pages.chunks(PIECE_BYTES) {
        write(offset, part)?;
        offset += part.len() as u64;
    }
    buffer.extend_from_slice(tail);
    Ok(offset)
}

/// An open file. Every error names the file, and every byte is counted by its cause.
#[derive(Debug)]
pub(crate) struct StoreFile {
    file: Arc<dyn File>,
    meter: Arc<Meter>,
    /// The error of a failed sync; every later sync returns it again.
    failed: OrderedMutex<Option<Error>>,
    /// Held for as long as the file is open.
    _lock: Option<FileLock>,
}

impl StoreFile {
    pub(in crate::store) fn new(file: Arc<dyn File>, meter: Arc<Meter>) -> Self {
        Self { file, meter, failed: OrderedMutex::leaf(None), _lock: None }
    }

    /// The file with a lock that is released when the file is closed.
    pub(in crate::store) fn locked(self, lock: FileLock) -> Self {
        Self { _lock: Some(lock), ..self }
    }

    pub(in crate::store) fn file(&self) -> &dyn File {
        &*self.file
    }

    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }

    pub(crate) fn len(&self) -> Result<u64> {
        self.file.len().map_err(|e| Error::io("read the length of the file", self.path(), e))
    }

    /// Reads bytes `offset .. offset + len`. A file that ends earlier is damaged: nobody asks for bytes that were not
    /// written.
    pub(crate) fn read(&self, cause: ReadCause, offset: u64, len: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0; len];
        self.read_into(cause, offset, &mut bytes)?;
        Ok(bytes)
    }

    /// As [`StoreFile::read`], into a buffer of the caller's.
    pub(crate) fn read_into(&self, cause: ReadCause, offset: u64, bytes: &mut [u8]) -> Result<()> {
        self.file.read_at(offset, bytes).map_err(|e| match e.kind() {
            io::ErrorKind::UnexpectedEof => {
                self.corruption(offset, format!("the file ends inside {} expected bytes", bytes.len()))
            }
            _ => Error::io("read the file", self.path(), e),
        })?;
        self.meter.read(cause, bytes.len());
        Ok(())
    }

    /// Tells the device that `range` will be read soon. It is the read that counts, and that may fail.
    pub(in crate::store) fn read_ahead(&self, range: Range<u64>) {
        self.file.read_ahead(range);
    }

    pub(crate) fn write(&self, cause: WriteCause, offset: u64, bytes: &[u8]) -> Result<()> {
        self.write_padded(cause, offset, bytes, bytes.len())
    }

    /// As [`StoreFile::write`], where only the first `length` bytes are counted; the rest is padding.
    pub(crate) fn write_padded(
        &self,
        cause: WriteCause,
        offset: u64,
        bytes: &[u8],
        length: usize,
    ) -> Result<()> {
        self.file.write_at(offset, bytes).map_err(|e| Error::io("write the file", self.path(), e))?;
        self.meter.wrote(cause, length);
        Ok(())
    }

    /// Starts to bring what was written to `range` to the device; with `wait`, returns once it is there. It makes nothing durable,
    /// but a failure counts as one of [`StoreFile::sync`]: the operating system does not report it again.
    pub(crate) fn write_back(&self, range: Range<u64>, wait: bool) -> Result<()> {
        let mut failed = self.failed.lock();
        if let Some(error) = &*failed {
            return Err(error.clone());
        }
        let result = self.file.write_back(range, wait);
        if planted!("failed-write-back-ignored") {
            return Ok(());
        }
        result.map_err(|e| failed.insert(Error::hard_io("write back", self.path(), e)).clone())
    }

    /// Makes the contents durable. After a failure the bytes written since the last success may or may not be
    /// durable, and every further call fails the same way.
    pub(crate) fn sync(&self, cause: WriteCause) -> Result<()> {
        // One sync at a time: the operating system reports a failure to one caller only, and all of them must learn
        // of it.
        let mut failed = self.failed.lock();
        if let Some(error) = &*failed {
            return Err(error.clone());
        }
        if planted!("failed-sync-tried-again") {
            let _ = self.file.sync();
        }
        self.file.sync().map_err(|e| failed.insert(Error::hard_io("sync", self.path(), e)).clone())?;
        self.meter.synced(cause);
        Ok(())
    }

    pub(crate) fn set_len(&self, len: u64) -> Result<()> {
        self.file.set_len(len).map_err(|e| Error::hard_io("cut the file", self.path(), e))
    }

    /// Frees the storage of bytes that nobody reads; from then on they read as zeros. Returns the operating system's
    /// own error: its caller treats a failure as advice.
    pub(in crate::store) fn punch(&self, span: &Range<u64>) -> io::Result<()> {
        let outward = if planted!("hole-rounded-outward") { PAGE_BYTES } else { 0 };
        let start = span.start.saturating_sub(outward);
        self.file.punch(start, span.end.saturating_sub(start))
    }

    /// The first byte range at or behind `offset` that has storage, as far as the file system tells.
    pub(crate) fn next_data(&self, offset: u64) -> Result<Option<Range<u64>>> {
        self.file.next_data(offset).map_err(|e| Error::io("find the holes of the file", self.path(), e))
    }

    /// Bytes of storage that the file takes on its file system.
    pub(crate) fn allocated(&self) -> Result<u64> {
        self.file.allocated().map_err(|e| Error::io("read the space of the file", self.path(), e))
    }

    /// Number of names (hard links) of the file.
    pub(in crate::store) fn links(&self) -> Result<u64> {
        self.file.links().map_err(|e| Error::io("count the names of the file", self.path(), e))
    }

    /// Writes zeros from the end of the file up to `len`, if it ends before.
    ///
    /// Page by page: the kernel may write back everything that it took in one call whenever one byte of it changes
    /// (`docs/benchmarks/choices.md`, "Zeros ahead of the log").
    pub(crate) fn fill(&self, cause: WriteCause, len: u64) -> Result<()> {
        let mut end = self.len()?;
        while end < len {
            let next = (end + 1).next_multiple_of(PAGE_BYTES).min(len);
            self.write(cause, end, &[0; PAGE_BYTES as usize][..(next - end) as usize])?;
            end = next;
        }
        Ok(())
    }

    /// Damage at `offset` of this file.
    pub(crate) fn corruption(&self, offset: u64, what: impl Into<String>) -> Error {
        Error::corruption(self.path(), offset, what)
    }

    /// Damage that a decoder found in bytes that start at `base`.
    pub(crate) fn malformed(&self, base: u64, error: &Malformed) -> Error {
        self.corruption(base.saturating_add(error.offset), error.what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::Env;
    use crate::env::simulated::{SimConfig, SimEnv};
    use crate::error::ErrorKind;

    /// A file of which nothing can be written back. The operating system says so once; a sync would succeed.
    #[derive(Debug)]
    struct LosesPages(Arc<dyn File>);

    impl File for LosesPages {
        fn path(&self) -> &Path {
            self.0.path()
        }
        fn len(&self) -> io::Result<u64> {
            self.0.len()
        }
        fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
            self.0.read_at(offset, buf)
        }
        fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
            self.0.write_at(offset, bytes)
        }
        fn write_back(&self, _range: Range<u64>, _wait: bool) -> io::Result<()> {
            Err(io::Error::other("pages are lost"))
        }
        fn sync(&self) -> io::Result<()> {
            self.0.sync()
        }
        fn set_len(&self, len: u64) -> io::Result<()> {
            self.0.set_len(len)
        }
        fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
            self.0.punch(offset, len)
        }
        fn allocated(&self) -> io::Result<u64> {
            self.0.allocated()
        }
        fn next_data(&self, offset: u64) -> io::Result<Option<Range<u64>>> {
            self.0.next_data(offset)
        }
        fn links(&self) -> io::Result<u64> {
            self.0.links()
        }
    }

    #[test]
    fn what_could_not_be_written_back_is_never_called_durable() {
        let env = SimEnv::new(SimConfig::default());
        let file = env.create(Path::new("/pack")).unwrap();
        let file = StoreFile::new(Arc::new(LosesPages(file)), Arc::default());
        file.write(WriteCause::Compaction, 0, b"table").unwrap();
        let lost = file.write_back(0..5, false).unwrap_err();
        assert!(lost.to_string().contains("/pack"), "{lost}");
        assert_ne!(lost.kind(), ErrorKind::DiskFull);
        let same = |error: Error| assert_eq!(error.to_string(), lost.to_string());
        same(file.sync(WriteCause::Compaction).unwrap_err());
        same(file.write_back(0..5, true).unwrap_err());
    }
}
