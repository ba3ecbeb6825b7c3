//! The environment: files, directories, clock and threads, everything that Terrace asks of the machine.
//!
//! The engine reaches the operating system only through [`Env`] and [`File`], and blocks only through [`sync`]. So
//! [`simulated`] can run the whole engine as one deterministic schedule in virtual time, lose whatever was not
//! synced, and fail any call. [`recording`] turns the calls into text for review, and [`striped`] spreads files over several
//! directories. Only the advice of `huge_pages`
//! goes past [`Env`]; nothing depends on its effect.
//!
//! This layer knows nothing of tables or levels.
//!
//! # What the engine may rely on
//!
//! * Bytes written with [`File::write_at`] survive the death of the process, not a power cut.
//! * [`File::sync`] makes the bytes and the length of *this* file durable. A new file's *name* is durable only after
//!   [`Env::sync_dir`] on its directory. So are renames and removals.
//! * Writes that were not synced may survive a power cut whole, in part (torn at 512-byte sectors) or not at all, in
//!   any order. So may names and holes that were not synced.
//! * After a failed sync nothing is known about the bytes that were not synced: the caller must not try again.

pub(crate) mod huge_pages;
mod lock;
pub mod posix;
pub mod recording;
pub mod simulated;
pub mod striped;
pub mod sync;

use std::any::Any;
use std::fmt;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Files that cannot share storage are copied in pieces of this many bytes.
const COPY_BYTES: u64 = 1 << 20;

/// The machine, as the engine sees it.
pub trait Env: fmt::Debug + Send + Sync + 'static {
    /// Creates `dir` and its missing parents, and makes their names durable. An existing directory is fine.
    fn create_dir(&self, dir: &Path) -> io::Result<()>;

    /// Names of the entries of `dir`, in no particular order. Names that are not UTF-8 are left out.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;

    /// Makes creations, renames and removals in `dir` durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// Creates a new file, readable and writable by its owner only. Fails with `AlreadyExists` if the name is taken.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>>;

    /// Opens an existing file. Symbolic links are not followed.
    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn File>>;

    /// Creates `to` with the bytes of `ranges` of `from`, a file of this environment, each at its offset, and holes
    /// elsewhere. Where the file system can, the two share storage until one of them is written. The new file becomes
    /// durable like any other.
    fn copy(&self, from: &dyn File, to: &Path, ranges: &[Range<u64>]) -> io::Result<Arc<dyn File>> {
        let target = self.create(to)?;
        ranges.iter().try_for_each(|range| copy_bytes(from, &*target, range.clone()))?;
        Ok(target)
    }

    /// Renames a file, replacing `to` if it exists. Atomic; durable after [`Env::sync_dir`].
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file. Open handles stay readable.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Takes the advisory lock on the existing file `path`, without waiting: `WouldBlock` when another process, or
    /// another handle of this one, holds it. Released when the returned value is dropped.
    fn lock(&self, path: &Path, kind: LockKind) -> io::Result<FileLock>;

    /// Opens an existing file for reading, with a shared lock on it.
    fn hold(&self, path: &Path) -> io::Result<(Arc<dyn File>, FileLock)> {
        let lock = self.lock(path, LockKind::Shared)?;
        Ok((self.open(path, Access::Read)?, lock))
    }

    /// Absolute name of an existing directory, without symbolic links: two names of one directory become equal.
    fn canonical(&self, dir: &Path) -> io::Result<std::path::PathBuf>;

    /// Free and total bytes of the file system that holds `dir`.
    fn space(&self, dir: &Path) -> io::Result<Space>;

    /// Monotonic time since some fixed moment before the environment's first use.
    fn now(&self) -> Duration;

    /// Wall clock in milliseconds since 1970. May jump either way.
    fn unix_millis(&self) -> u64;

    /// Blocks the calling thread.
    fn sleep(&self, time: Duration);

    /// The calling thread has done this work of a flush or compaction. A real machine has taken the time for it; a simulated
    /// one takes it now, by its model.
    fn spend(&self, work: Work) {
        let _ = work;
    }

    /// From here on the calling thread has normal priority if `urgent`, and otherwise the one that it began with.
    fn set_urgent(&self, urgent: bool) {
        let _ = urgent;
    }

    /// Starts a thread.
    fn spawn(&self, name: &str, priority: Priority, body: Box<dyn FnOnce() + Send>) -> io::Result<Thread>;

    /// Number of processors that the process may use, at least 1.
    fn cores(&self) -> usize;

    /// Memory of the machine, or of the control group if that is smaller, in bytes.
    fn memory_bytes(&self) -> u64;

    /// A random number, for identities.
    fn random(&self) -> u64;
}

/// Copies a range of bytes through memory, in pieces.
fn copy_bytes(source: &dyn File, target: &dyn File, range: Range<u64>) -> io::Result<()> {
    let mut piece = vec![0; usize::try_from((range.end - range.start).min(COPY_BYTES)).unwrap_or(0)];
    let mut at = range.start;
    while at < range.end {
        let length = piece.len().min(usize::try_from(range.end - at).unwrap_or(piece.len()));
        source.read_at(at, &mut piece[..length])?;
        target.write_at(at, &piece[..length])?;
        at += length as u64;
    }
    Ok(())
}

/// An open file. Offsets are explicit, so that one handle serves any number of threads.
pub trait File: Any + fmt::Debug + Send + Sync {
    /// The name under which it was opened, for messages.
    fn path(&self) -> &Path;

    /// Length in bytes.
    fn len(&self) -> io::Result<u64>;

    /// Whether the file is empty.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Fills `buf` from `offset`. Fails with `UnexpectedEof` when the file ends before.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()>;

    /// Writes all of `bytes` at `offset`, extending the file if needed.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Starts to bring what was written to `range` to the device; with `wait`, returns once it is there. Nothing is durable by
    /// that. An error is one of the device, as that of [`File::sync`], and is not reported again.
    fn write_back(&self, range: Range<u64>, wait: bool) -> io::Result<()> {
        let _ = (range, wait);
        Ok(())
    }

    /// Tells that `range` will be read soon. Returns at once; what is behind the end of the file is left out. It is advice: a
    /// read returns the same bytes without it, and it has no error.
    ///
    /// ```
    /// use std::path::Path;
    /// use terrace::env::Env;
    /// use terrace::env::simulated::{DeviceModel, SimConfig, SimEnv};
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let env = SimEnv::new(SimConfig { device: DeviceModel::nvme(), ..SimConfig::default() });
    /// let file = env.create(Path::new("/f"))?;
    /// file.write_at(0, &[1; 8192])?;
    /// let before = env.now();
    /// file.read_ahead(0..8192);
    /// assert_eq!(env.now(), before);
    /// # Ok(())
    /// # }
    /// ```
    fn read_ahead(&self, range: Range<u64>) {
        let _ = range;
    }

    /// Makes contents and length durable. Never call it again after it failed.
    fn sync(&self) -> io::Result<()>;

    /// Cuts or extends (with zeros) the file.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Frees the storage of a range, which then reads as zeros; the length stays. `Unsupported` where the file
    /// system cannot.
    fn punch(&self, offset: u64, len: u64) -> io::Result<()>;

    /// Bytes of storage that the file occupies.
    fn allocated(&self) -> io::Result<u64>;

    /// The first range at or behind `offset` that has storage, up to the next hole or the end of the file; `None` if
    /// there is none. A file system that cannot report holes calls the whole file data, or fails with `Unsupported`.
    fn next_data(&self, offset: u64) -> io::Result<Option<Range<u64>>>;

    /// Number of names (hard links) of the file.
    fn links(&self) -> io::Result<u64>;
}

/// What a file is opened for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Reading only.
    Read,
    /// Reading and writing.
    ReadWrite,
}

/// Who else may hold a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockKind {
    /// Other holders of shared locks.
    Shared,
    /// Nobody.
    Exclusive,
}

/// Work of a job that takes processor time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Work {
    /// Records that were read.
    pub records: u64,
    /// Bytes of their keys and values.
    pub bytes: u64,
}

/// How much processor time a thread gets when processors are scarce.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Priority {
    /// The same share as the caller's own threads.
    Normal,
    /// The same share, on all processors but one, which is left to others.
    Aside,
    /// As `Aside`, and a small share if other threads want to run.
    Background,
}

/// Space of a file system, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Space {
    /// Size of the file system.
    pub total: u64,
    /// Bytes that an ordinary process may still allocate.
    pub free: u64,
}

/// A held advisory lock; dropping it releases the lock.
pub struct FileLock {
    // The environment's own guard, held only for the effect of its drop.
    _held: Box<dyn Send + Sync>,
}

impl FileLock {
    /// Wraps an environment's guard.
    #[must_use]
    pub fn new(held: Box<dyn Send + Sync>) -> Self {
        Self { _held: held }
    }
}

impl fmt::Debug for FileLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FileLock")
    }
}

/// A started thread.
pub struct Thread {
    join: Box<dyn FnOnce() + Send + Sync>,
}

impl Thread {
    /// Wraps a function that waits for the thread's end.
    #[must_use]
    pub fn new(join: Box<dyn FnOnce() + Send + Sync>) -> Self {
        Self { join }
    }

    /// Waits until the thread has ended; a panic in it has been reported to stderr by then and goes no further.
    pub fn join(self) {
        (self.join)();
    }
}

impl fmt::Debug for Thread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Thread")
    }
}
