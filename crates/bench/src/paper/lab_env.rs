//! The environment of a laboratory's store: it times the calls by kind, and can leave the write-ahead log out.
//!
//! Without a log, its segments are files that keep nothing but their length. What a store loses by that shows when it is opened
//! again, which experiments without a log do not do.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use terrace::env::sync::Mutex;
use terrace::env::{Access, Env, File, FileLock, LockKind, Priority, Space, Thread, Work};

/// Kinds of calls whose time is counted.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Bytes written.
    Write,
    /// Files made, renamed, removed, cut and punched: what a file system allocates and frees.
    Allocate,
    /// Contents, names and parts of files brought to the disk.
    Sync,
}

/// Nanoseconds of calls, by kind.
#[derive(Debug, Default)]
pub struct CallTimes([AtomicU64; 3]);

impl CallTimes {
    /// Seconds of all calls of a kind so far.
    #[must_use]
    pub fn seconds(&self, kind: Kind) -> f64 {
        self.0[kind as usize].load(Relaxed) as f64 / 1e9
    }
}

/// Passes calls on.
#[derive(Debug)]
pub struct LabEnv {
    inner: Arc<dyn Env>,
    times: Arc<CallTimes>,
    /// Segments of the log by their names of now, if these are kept from the disk.
    segments: Option<Mutex<BTreeMap<PathBuf, Arc<Segment>>>>,
}

impl LabEnv {
    /// Times calls to `inner`.
    #[must_use]
    pub fn timing(inner: Arc<dyn Env>) -> Arc<Self> {
        Arc::new(Self { inner, times: Arc::default(), segments: None })
    }

    /// As [`LabEnv::timing`], without a log.
    #[must_use]
    pub fn without_log(inner: Arc<dyn Env>) -> Arc<Self> {
        Arc::new(Self { inner, times: Arc::default(), segments: Some(Mutex::default()) })
    }

    /// What calls have taken.
    #[must_use]
    pub fn times(&self) -> Arc<CallTimes> {
        self.times.clone()
    }

    fn timed<T>(&self, kind: Kind, call: impl FnOnce() -> T) -> T {
        timed(&*self.inner, &self.times, kind, call)
    }

    fn segment(&self, path: &Path) -> Option<Arc<Segment>> {
        self.segments.as_ref().and_then(|segments| segments.lock().get(path).cloned())
    }

    fn file(&self, inner: Arc<dyn File>) -> Arc<dyn File> {
        Arc::new(LabFile { inner, env: self.inner.clone(), times: self.times.clone() })
    }
}

fn timed<T>(env: &dyn Env, times: &CallTimes, kind: Kind, call: impl FnOnce() -> T) -> T {
    let start = env.now();
    let result = call();
    let nanos = env.now().saturating_sub(start).as_nanos();
    times.0[kind as usize].fetch_add(u64::try_from(nanos).unwrap_or(u64::MAX), Relaxed);
    result
}

impl Env for LabEnv {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        self.inner.create_dir(dir)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let mut names = self.inner.list(dir)?;
        if let Some(segments) = &self.segments {
            let own = segments.lock();
            let here = own.keys().filter(|path| path.parent() == Some(dir));
            names.extend(here.filter_map(|path| path.file_name()?.to_str()).map(str::to_owned));
        }
        Ok(names)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.timed(Kind::Sync, || self.inner.sync_dir(dir))
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        if let Some(segments) = &self.segments
            && path.extension().is_some_and(|extension| extension == "wal")
        {
            let segment = Arc::new(Segment { path: path.to_path_buf(), length: AtomicU64::new(0) });
            segments.lock().insert(path.to_path_buf(), segment.clone());
            return Ok(segment);
        }
        self.timed(Kind::Allocate, || self.inner.create(path)).map(|file| self.file(file))
    }

    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn File>> {
        match self.segment(path) {
            Some(segment) => Ok(segment),
            None => self.inner.open(path, access).map(|file| self.file(file)),
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        if let Some(segments) = &self.segments {
            let mut segments = segments.lock();
            if let Some(segment) = segments.remove(from) {
                segments.insert(to.to_path_buf(), segment);
                return Ok(());
            }
        }
        self.timed(Kind::Allocate, || self.inner.rename(from, to))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        if let Some(segments) = &self.segments
            && segments.lock().remove(path).is_some()
        {
            return Ok(());
        }
        self.timed(Kind::Allocate, || self.inner.remove(path))
    }

    fn lock(&self, path: &Path, kind: LockKind) -> io::Result<FileLock> {
        match self.segment(path) {
            Some(_) => Ok(FileLock::new(Box::new(()))),
            None => self.inner.lock(path, kind),
        }
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

/// A file whose calls are timed.
#[derive(Debug)]
struct LabFile {
    inner: Arc<dyn File>,
    env: Arc<dyn Env>,
    times: Arc<CallTimes>,
}

impl LabFile {
    fn timed<T>(&self, kind: Kind, call: impl FnOnce() -> T) -> T {
        timed(&*self.env, &self.times, kind, call)
    }
}

impl File for LabFile {
    fn path(&self) -> &Path {
        self.inner.path()
    }

    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        self.inner.read_at(offset, buf)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.timed(Kind::Write, || self.inner.write_at(offset, bytes))
    }

    fn write_back(&self, range: Range<u64>, wait: bool) -> io::Result<()> {
        self.timed(Kind::Sync, || self.inner.write_back(range, wait))
    }

    fn read_ahead(&self, range: Range<u64>) {
        self.inner.read_ahead(range);
    }

    fn sync(&self) -> io::Result<()> {
        self.timed(Kind::Sync, || self.inner.sync())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.timed(Kind::Allocate, || self.inner.set_len(len))
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        self.timed(Kind::Allocate, || self.inner.punch(offset, len))
    }

    fn allocated(&self) -> io::Result<u64> {
        self.inner.allocated()
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<Range<u64>>> {
        self.inner.next_data(offset)
    }

    fn links(&self) -> io::Result<u64> {
        self.inner.links()
    }
}

/// A segment of a log that is not kept: all zeros.
#[derive(Debug)]
struct Segment {
    path: PathBuf,
    length: AtomicU64,
}

impl File for Segment {
    fn path(&self) -> &Path {
        &self.path
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.length.load(Relaxed))
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        if offset + buf.len() as u64 > self.length.load(Relaxed) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        buf.fill(0);
        Ok(())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.length.fetch_max(offset + bytes.len() as u64, Relaxed);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.length.store(len, Relaxed);
        Ok(())
    }

    fn punch(&self, _offset: u64, _len: u64) -> io::Result<()> {
        Ok(())
    }

    fn allocated(&self) -> io::Result<u64> {
        Ok(0)
    }

    fn next_data(&self, _offset: u64) -> io::Result<Option<Range<u64>>> {
        Ok(None)
    }

    fn links(&self) -> io::Result<u64> {
        Ok(1)
    }
}

#[cfg(test)]
mod tests {
    use terrace::Db;
    use terrace::env::simulated::{SimConfig, SimEnv};

    use super::*;

    #[test]
    fn a_store_without_a_log_writes_tables_alone() {
        let sim = SimEnv::new(SimConfig::default());
        let db = Db::builder("/db").env(LabEnv::without_log(sim.clone())).open().unwrap();
        for round in 0..4_u64 {
            (0..500_u64).for_each(|n| db.put(n.to_le_bytes(), [round as u8; 1000]).unwrap());
            db.flush().unwrap();
        }
        assert_eq!(db.get(7_u64.to_le_bytes()).unwrap().unwrap()[..], [3; 1000][..]);
        assert!(db.stats().written.wal > 0, "the store does not know");
        let is_log = |path: &Path| path.extension().is_some_and(|extension| extension == "wal");
        assert!(sim.files().iter().all(|(path, _)| !is_log(path)), "{:?}", sim.files());
        db.close().unwrap();
    }
}
