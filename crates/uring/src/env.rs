//! The environment: that of the machine, but for the files that it chooses, which are written past the page cache.

use std::any::Any;
use std::fmt;
use std::fs;
use std::io;
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{AtFlags, OFlags, StatxFlags, statx};
use terrace::env::{Access, Env, File, FileLock, LockKind, Priority, Space, Thread, Work};
use terrace::format::names::FileName;

use crate::file::{Direct, DirectFile};
use crate::kernel::PIECE_BYTES;
use crate::pool::{Maker, Pool};
use crate::ring::{BUFFER_ALIGN, Ring};

/// Alignment where the file system does not tell, in bytes: the largest logical block in use.
const UNKNOWN_ALIGN: usize = 4096;

/// Writes packs, the large files of tables, by io_uring and with direct I/O; passes everything else on.
///
/// A pack is known by its name. Where the file system refuses direct I/O, it is written as without this.
///
/// ```
/// use terrace::Db;
/// use terrace::env::posix::PosixEnv;
/// use terrace_uring::UringEnv;
/// # let dir = tempfile::tempdir().unwrap();
/// let env = UringEnv::or_inner(PosixEnv::shared(), |refused| eprintln!("without io_uring: {refused}"));
/// let db = Db::builder(dir.path()).env(env).open()?;
/// # Ok::<(), terrace::Error>(())
/// ```
pub struct UringEnv {
    inner: Arc<dyn Env>,
    pool: Arc<Pool>,
    chosen: fn(&Path) -> bool,
}

impl UringEnv {
    /// An environment over `inner`, whose files must be files of the operating system under the same names.
    ///
    /// # Errors
    /// If the kernel, or what the process may ask of it, has no io_uring: `ENOSYS`, `EPERM`, `ENOMEM`.
    ///
    /// ```
    /// match terrace_uring::UringEnv::new(terrace::env::posix::PosixEnv::shared()) {
    ///     Ok(env) => assert_eq!(env.written().direct_bytes, 0),
    ///     Err(refused) => println!("no io_uring here: {refused}"),
    /// }
    /// ```
    pub fn new(inner: Arc<dyn Env>) -> io::Result<Arc<Self>> {
        let make: Maker = Box::new(|| Ok(Box::new(Ring::new()?)));
        Self::with(inner, make, is_pack)
    }

    /// As [`UringEnv::new`]; where that fails, `inner` itself, after `warn` was told why.
    pub fn or_inner(inner: Arc<dyn Env>, warn: impl FnOnce(&io::Error)) -> Arc<dyn Env> {
        or_inner(Self::new(inner.clone()), inner, warn)
    }

    /// An environment with rings that `make` makes, for the files that are `chosen`.
    pub(crate) fn with(inner: Arc<dyn Env>, make: Maker, chosen: fn(&Path) -> bool) -> io::Result<Arc<Self>> {
        Ok(Arc::new(Self { inner, pool: Arc::new(Pool::new(make)?), chosen }))
    }

    /// How the packs were written so far.
    ///
    /// ```
    /// # let inner = terrace::env::posix::PosixEnv::shared();
    /// # let Ok(env) = terrace_uring::UringEnv::new(inner) else { return };
    /// let written = env.written();
    /// println!("{} bytes directly, {} through the page cache", written.direct_bytes, written.buffered_bytes);
    /// ```
    #[must_use]
    pub fn written(&self) -> Written {
        let (direct_bytes, buffered_bytes) = self.pool.counts.both();
        Written { direct_bytes, buffered_bytes }
    }

    /// The file `path`, just opened as `buffered` for writing, with direct I/O if it is to have that and can.
    fn wrap(&self, path: &Path, buffered: Arc<dyn File>) -> Arc<dyn File> {
        let direct = if (self.chosen)(path) { open_direct(path) } else { None };
        match direct {
            Some(direct) => Arc::new(DirectFile::new(buffered, direct, self.pool.clone())),
            None => buffered,
        }
    }
}

/// How an environment has written packs, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Written {
    /// Past the page cache, in files that were synced or closed since.
    pub direct_bytes: u64,
    /// Through the page cache: what is no whole block, and files on a file system that refuses direct I/O only when it is
    /// written to.
    pub buffered_bytes: u64,
}

pub(crate) fn or_inner(
    made: io::Result<Arc<UringEnv>>,
    inner: Arc<dyn Env>,
    warn: impl FnOnce(&io::Error),
) -> Arc<dyn Env> {
    match made {
        Ok(env) => env,
        Err(refused) => {
            warn(&refused);
            inner
        }
    }
}

/// Whether the file is one that holds tables.
fn is_pack(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.and_then(FileName::parse).is_some_and(|name| matches!(name, FileName::Pack(_)))
}

/// A handle for direct writes to an existing file; `None` where there is no such thing.
fn open_direct(path: &Path) -> Option<Direct> {
    let flags = OFlags::NOFOLLOW | OFlags::DIRECT;
    let file = fs::OpenOptions::new().write(true).custom_flags(flags.bits().cast_signed()).open(path).ok()?;
    let asked = StatxFlags::DIOALIGN;
    let found = statx(&file, "", AtFlags::EMPTY_PATH, asked).ok();
    let told = found.filter(|found| found.stx_mask & asked.bits() != 0);
    let (memory, offset) = told.map_or((UNKNOWN_ALIGN, UNKNOWN_ALIGN), |found| {
        (found.stx_dio_mem_align as usize, found.stx_dio_offset_align as usize)
    });
    // No page is to be written in both ways.
    let align = offset.max(rustix::param::page_size());
    let fits =
        offset > 0 && memory > 0 && BUFFER_ALIGN.is_multiple_of(memory) && PIECE_BYTES.is_multiple_of(align);
    fits.then(|| Direct { file: Arc::new(file), align })
}

/// The file below, with all bytes, if `file` is one of this module's.
fn below(file: &dyn File) -> io::Result<&dyn File> {
    match (file as &dyn Any).downcast_ref::<DirectFile>() {
        Some(file) => Ok(&**file.settled()?),
        None => Ok(file),
    }
}

impl fmt::Debug for UringEnv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("UringEnv").field(&self.inner).finish()
    }
}

impl Env for UringEnv {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        self.inner.create_dir(dir)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.inner.list(dir)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.inner.sync_dir(dir)
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        Ok(self.wrap(path, self.inner.create(path)?))
    }

    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn File>> {
        let file = self.inner.open(path, access)?;
        Ok(if access == Access::ReadWrite { self.wrap(path, file) } else { file })
    }

    fn copy(&self, from: &dyn File, to: &Path, ranges: &[Range<u64>]) -> io::Result<Arc<dyn File>> {
        self.inner.copy(below(from)?, to, ranges)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.inner.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.inner.remove(path)
    }

    fn lock(&self, path: &Path, kind: LockKind) -> io::Result<FileLock> {
        self.inner.lock(path, kind)
    }

    fn hold(&self, path: &Path) -> io::Result<(Arc<dyn File>, FileLock)> {
        self.inner.hold(path)
    }

    fn canonical(&self, dir: &Path) -> io::Result<PathBuf> {
        self.inner.canonical(dir)
    }

    fn space(&self, dir: &Path) -> io::Result<Space> {
        self.inner.space(dir)
    }

    fn now(&self) -> Duration {
        self.inner.now()
    }

    fn unix_millis(&self) -> u64 {
        self.inner.unix_millis()
    }

    fn sleep(&self, time: Duration) {
        self.inner.sleep(time);
    }

    fn spend(&self, work: Work) {
        self.inner.spend(work);
    }

    fn set_urgent(&self, urgent: bool) {
        self.inner.set_urgent(urgent);
    }

    fn spawn(&self, name: &str, priority: Priority, body: Box<dyn FnOnce() + Send>) -> io::Result<Thread> {
        self.inner.spawn(name, priority, body)
    }

    fn cores(&self) -> usize {
        self.inner.cores()
    }

    fn memory_bytes(&self) -> u64 {
        self.inner.memory_bytes()
    }

    fn random(&self) -> u64 {
        self.inner.random()
    }
}

#[cfg(test)]
mod tests;
