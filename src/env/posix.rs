//! The environment of a POSIX machine: the operating system's files, clock and threads.
//!
//! It is a thin layer over the standard library and rustix. Files are created exclusively, are readable by their
//! owner only, and are never reached through a symbolic link. Reads and writes have explicit offsets, and go on after
//! short transfers and interruptions.
//!
//! A lock is a `flock` and an entry in a registry of this process. Where `flock` is emulated by record locks (NFS),
//! closing any descriptor of the file drops the process's lock. So the registry is asked first, and a handle that it
//! refuses never opens the file. There is one [`PosixEnv`] per process, because the registry must see every handle.
#![expect(clippy::disallowed_methods, reason = "this module is what the rest of the crate uses instead")]

#[cfg(target_os = "linux")]
mod linux;
mod memory;
#[cfg(test)]
mod tests;

use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::fs;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::fs::{FlockOperation, flock};

use super::lock::{Claim, LockRegistry};
use super::{Access, Env, File, FileLock, LockKind, Priority, Space, Thread};

/// Linux reads no more for one piece of advice than the longest request that the device takes, which may be this short, in bytes.
#[cfg(target_os = "linux")]
const ADVICE_BYTES: u64 = 128 << 10;

/// Niceness of [`Priority::Background`] threads: a ninth of the weight of a thread of normal priority.
const BACKGROUND_NICENESS: i32 = 10;

thread_local! {
    /// Of a thread that leaves a processor to others: its place.
    static PLACE: RefCell<Option<Place>> = const { RefCell::new(None) };
}

/// A thread that leaves a processor to others, unless it is urgent.
struct Place {
    niceness: i32,
    /// The processors that the process gave it.
    #[cfg(target_os = "linux")]
    all: Option<rustix::thread::CpuSet>,
}

/// The operating system as an [`Env`].
pub struct PosixEnv {
    start: Instant,
    locks: Arc<LockRegistry>,
}

impl PosixEnv {
    /// The environment of this process.
    #[must_use]
    pub fn shared() -> Arc<dyn Env> {
        static SHARED: OnceLock<Arc<PosixEnv>> = OnceLock::new();
        let shared = SHARED.get_or_init(|| {
            Arc::new(PosixEnv { start: Instant::now(), locks: Arc::new(LockRegistry::default()) })
        });
        Arc::clone(shared) as Arc<dyn Env>
    }
}

impl fmt::Debug for PosixEnv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PosixEnv")
    }
}

impl Env for PosixEnv {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        let dir = std::path::absolute(dir)?;
        if dir.is_dir() {
            // An earlier attempt may have made the name and crashed before it synced it.
            return match sync_parent(&dir) {
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
                synced => synced,
            };
        }
        let mut missing: Vec<&Path> = dir.ancestors().take_while(|ancestor| !ancestor.is_dir()).collect();
        while let Some(next) = missing.pop() {
            match fs::DirBuilder::new().mode(0o700).create(next) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && next.is_dir() => {}
                created => created?,
            }
            sync_parent(next)?;
        }
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(dir)? {
            names.extend(entry?.file_name().into_string());
        }
        Ok(names)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        fs::File::open(dir)?.sync_all()
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let file = options(Access::ReadWrite).create_new(true).mode(0o600).open(path)?;
        Ok(Arc::new(PosixFile { file, path: path.to_path_buf() }))
    }

    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn File>> {
        let file = options(access).open(path)?;
        Ok(Arc::new(PosixFile { file, path: path.to_path_buf() }))
    }

    fn copy(&self, from: &dyn File, to: &Path, ranges: &[Range<u64>]) -> io::Result<Arc<dyn File>> {
        let source = (from as &dyn Any).downcast_ref::<PosixFile>();
        let target = options(Access::ReadWrite).create_new(true).mode(0o600).open(to)?;
        let target = PosixFile { file: target, path: to.to_path_buf() };
        for range in ranges {
            let share = |source: &PosixFile| share(&source.file, &target.file, range.clone());
            let done = source.map_or(Ok(range.start), share)?;
            super::copy_bytes(from, &target, done..range.end)?;
        }
        Ok(Arc::new(target))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn lock(&self, path: &Path, kind: LockKind) -> io::Result<FileLock> {
        Ok(FileLock::new(Box::new(self.locked(path, kind)?)))
    }

    fn hold(&self, path: &Path) -> io::Result<(Arc<dyn File>, FileLock)> {
        let held = self.locked(path, LockKind::Shared)?;
        Ok((held.file.clone(), FileLock::new(Box::new(held))))
    }

    fn canonical(&self, dir: &Path) -> io::Result<PathBuf> {
        let canonical = fs::canonicalize(dir)?;
        if canonical.is_dir() { Ok(canonical) } else { Err(io::ErrorKind::NotADirectory.into()) }
    }

    fn space(&self, dir: &Path) -> io::Result<Space> {
        let found = rustix::fs::statvfs(dir)?;
        Ok(Space {
            total: found.f_blocks.saturating_mul(found.f_frsize),
            free: found.f_bavail.saturating_mul(found.f_frsize),
        })
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn unix_millis(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    fn sleep(&self, time: Duration) {
        thread::sleep(time);
    }

    fn set_urgent(&self, urgent: bool) {
        PLACE.with_borrow(|place| {
            if let Some(place) = place {
                place.set(urgent);
            }
        });
    }

    fn spawn(&self, name: &str, priority: Priority, body: Box<dyn FnOnce() + Send>) -> io::Result<Thread> {
        let started = thread::Builder::new().name(name.to_owned()).spawn(move || {
            match priority {
                Priority::Normal => {}
                Priority::Aside => Place::take(0),
                Priority::Background => Place::take(BACKGROUND_NICENESS),
            }
            body();
        })?;
        Ok(Thread::new(Box::new(move || {
            // The panic hook has reported a panic already.
            let _ = started.join();
        })))
    }

    fn cores(&self) -> usize {
        thread::available_parallelism().map_or(1, usize::from)
    }

    fn memory_bytes(&self) -> u64 {
        memory::limit_bytes()
    }

    fn random(&self) -> u64 {
        // Every `RandomState` has keys of its own, from the system's randomness.
        RandomState::new().build_hasher().finish()
    }
}

/// The environment that the tests look at.
#[cfg(test)]
fn subject() -> Arc<dyn Env> {
    PosixEnv::shared()
}

/// The options with which every file is opened; the standard library adds `O_CLOEXEC`.
fn options(access: Access) -> fs::OpenOptions {
    let mut options = fs::OpenOptions::new();
    options.read(true).write(access == Access::ReadWrite);
    options.custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed());
    options
}

/// Makes the name of `dir` durable.
fn sync_parent(dir: &Path) -> io::Result<()> {
    match dir.parent() {
        Some(parent) => fs::File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}

impl Place {
    /// The calling thread leaves a processor to others from here on.
    fn take(niceness: i32) {
        let place = Self {
            niceness,
            #[cfg(target_os = "linux")]
            all: rustix::thread::sched_getaffinity(None).ok(),
        };
        place.set(false);
        PLACE.set(Some(place));
    }

    /// Sets niceness and processors of the calling thread. A refusal costs speed, not correctness: without the right to a higher
    /// priority a thread that was urgent once has the processors alone.
    fn set(&self, urgent: bool) {
        #[cfg(target_os = "linux")]
        {
            // On Linux niceness belongs to a thread, and `None` names the calling one.
            let _ = rustix::process::setpriority_process(None, if urgent { 0 } else { self.niceness });
            if let Some(all) = &self.all {
                let processors = if urgent { *all } else { all_but_one(all) };
                let _ = rustix::thread::sched_setaffinity(None, &processors);
            }
        }
        #[cfg(not(target_os = "linux"))]
        let _ = (self.niceness, urgent);
    }
}

/// All processors of `all` but the last; a single one stays. The first ones often serve interrupts, which would disturb others.
#[cfg(target_os = "linux")]
fn all_but_one(all: &rustix::thread::CpuSet) -> rustix::thread::CpuSet {
    let mut processors = *all;
    let last = (0..rustix::thread::CpuSet::MAX_CPU).rev().find(|processor| all.is_set(*processor));
    if let Some(last) = last.filter(|_| all.count() > 1) {
        processors.unset(last);
    }
    processors
}

/// A locked file. Fields drop after `drop`, so the file is unlocked before the claim is given up.
struct HeldLock {
    file: Arc<PosixFile>,
    _claim: Claim,
}

impl PosixEnv {
    fn locked(&self, path: &Path, kind: LockKind) -> io::Result<HeldLock> {
        let claim = Claim::enter(&self.locks, fs::canonicalize(path)?, kind)?;
        let (access, operation) = match kind {
            LockKind::Shared => (Access::Read, FlockOperation::NonBlockingLockShared),
            LockKind::Exclusive => (Access::ReadWrite, FlockOperation::NonBlockingLockExclusive),
        };
        let file = options(access).open(path)?;
        rustix::io::retry_on_intr(|| flock(&file, operation))?;
        Ok(HeldLock { file: Arc::new(PosixFile { file, path: path.to_path_buf() }), _claim: claim })
    }
}

impl Drop for HeldLock {
    fn drop(&mut self) {
        // Closing alone would leave the lock to a child between its fork and its exec. If unlocking fails, closing
        // still releases it.
        let _ = flock(&self.file.file, FlockOperation::Unlock);
    }
}

struct PosixFile {
    file: fs::File,
    path: PathBuf,
}

impl fmt::Debug for PosixFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PosixFile").field(&self.path).finish()
    }
}

impl File for PosixFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(buf, offset)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    fn write_back(&self, range: Range<u64>, wait: bool) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        return linux::write_back(&self.file, &range, wait);
        #[cfg(not(target_os = "linux"))]
        Ok(())
    }

    fn read_ahead(&self, range: Range<u64>) {
        read_ahead(&self.file, &range);
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        if len == 0 {
            return Ok(());
        }
        punch(&self.file, offset, len)
    }

    fn allocated(&self) -> io::Result<u64> {
        // `st_blocks` counts units of 512 bytes whatever the file system's block size.
        Ok(self.file.metadata()?.blocks() * 512)
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<Range<u64>>> {
        next_data(&self.file, offset)
    }

    fn links(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.nlink())
    }
}

/// Lets the kernel begin to read `range` into the page cache. Whatever it refuses is read later.
#[cfg(target_os = "linux")]
fn read_ahead(file: &fs::File, range: &Range<u64>) {
    use rustix::fs::{Advice, fadvise};

    let end = range.end.min(file.metadata().map_or(0, |metadata| metadata.len()));
    for start in (range.start..end).step_by(ADVICE_BYTES as usize) {
        let length = std::num::NonZeroU64::new(ADVICE_BYTES.min(end - start));
        if length.is_none() || fadvise(file, start, length, Advice::WillNeed).is_err() {
            return;
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn read_ahead(_file: &fs::File, _range: &Range<u64>) {}

/// Lets the kernel copy a range; it shares the storage where the file system can. Returns the offset at which it had
/// to stop.
#[cfg(target_os = "linux")]
fn share(source: &fs::File, target: &fs::File, range: Range<u64>) -> io::Result<u64> {
    use rustix::fs::copy_file_range;
    use rustix::io::Errno;

    let (mut from, mut to) = (range.start, range.start);
    while from < range.end {
        let rest = usize::try_from(range.end - from).unwrap_or(usize::MAX);
        match copy_file_range(source, Some(&mut from), target, Some(&mut to), rest) {
            // Between file systems, or on one that does not support it: the caller copies the rest.
            Ok(0) | Err(Errno::XDEV | Errno::NOSYS | Errno::OPNOTSUPP | Errno::INVAL) => break,
            Ok(_) | Err(Errno::INTR) => {}
            Err(other) => return Err(other.into()),
        }
    }
    Ok(from)
}

#[cfg(not(target_os = "linux"))]
fn share(_source: &fs::File, _target: &fs::File, range: Range<u64>) -> io::Result<u64> {
    Ok(range.start)
}

#[cfg(target_os = "linux")]
fn punch(file: &fs::File, offset: u64, len: u64) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    use rustix::io::Errno;

    let mode = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    rustix::io::retry_on_intr(|| fallocate(file, mode, offset, len)).map_err(|errno| match errno {
        Errno::OPNOTSUPP | Errno::NOSYS => io::Error::new(io::ErrorKind::Unsupported, errno),
        other => other.into(),
    })
}

/// Uses the file's own position, which nothing else uses.
#[cfg(target_os = "linux")]
fn next_data(file: &fs::File, offset: u64) -> io::Result<Option<Range<u64>>> {
    use rustix::fs::{SeekFrom, seek};
    use rustix::io::Errno;

    let failed = |errno| match errno {
        Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS => io::Error::new(io::ErrorKind::Unsupported, errno),
        other => other.into(),
    };
    let start = match seek(file, SeekFrom::Data(offset)) {
        Err(Errno::NXIO) => return Ok(None),
        start => start.map_err(failed)?,
    };
    let end = seek(file, SeekFrom::Hole(start)).map_err(failed)?;
    Ok(Some(start..end))
}

#[cfg(not(target_os = "linux"))]
fn next_data(_file: &fs::File, _offset: u64) -> io::Result<Option<Range<u64>>> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(not(target_os = "linux"))]
fn punch(_file: &fs::File, _offset: u64, _len: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
