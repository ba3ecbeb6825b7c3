//! An environment that records the calls to another one as text.
//!
//! Every call that changes files, makes changes durable or takes a lock becomes a line once it has returned, such as
//!
//! ```text
//! create 000002.pack
//! write 000002.pack 0+81920
//! sync 000002.pack
//! sync-dir .
//! ```
//!
//! Ranges are offset+length, in bytes. Names are relative to the first directory that is created; other names are
//! written in full. The line of a failed call ends in its error. If threads are named, the lines of background
//! threads end in their names, as in `sync 000002.pack by terrace-flush`. Reads, advice about them, the clock and
//! threads are passed on unrecorded.

#[cfg(test)]
mod tests;

use std::fmt::{self, Write};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::sync::Mutex;
use super::{Access, Env, File, FileLock, LockKind, Priority, Space, Thread, Work};

/// Passes every call on and records it.
#[derive(Debug)]
pub struct RecordingEnv {
    inner: Arc<dyn Env>,
    record: Arc<Mutex<Record>>,
}

/// How to record a write that begins where the one before it ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Appends {
    Separate,
    Merged,
}

/// Whether lines name the calling thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Threads {
    Unnamed,
    Named,
}

#[derive(Debug)]
struct Record {
    appends: Appends,
    threads: Threads,
    /// The names of the first directory that was created.
    roots: Vec<PathBuf>,
    lines: Vec<Line>,
}

#[derive(Debug)]
enum Line {
    Write { name: String, offset: u64, len: u64, calls: u64, by: String },
    Other(String),
}

impl RecordingEnv {
    /// Records the calls on their way to `inner`, one line each.
    #[must_use]
    pub fn new(inner: Arc<dyn Env>) -> Arc<Self> {
        Self::recording(inner, Appends::Separate, Threads::Unnamed)
    }

    /// As [`RecordingEnv::new`], but consecutive appends to a file make one line: `write 000001.wal 0+300 in 3 calls`.
    #[must_use]
    pub fn merging_appends(inner: Arc<dyn Env>) -> Arc<Self> {
        Self::recording(inner, Appends::Merged, Threads::Unnamed)
    }

    /// As [`RecordingEnv::merging_appends`], and lines of background threads name them.
    #[must_use]
    pub fn naming_threads(inner: Arc<dyn Env>) -> Arc<Self> {
        Self::recording(inner, Appends::Merged, Threads::Named)
    }

    fn recording(inner: Arc<dyn Env>, appends: Appends, threads: Threads) -> Arc<Self> {
        let record = Record { appends, threads, roots: Vec::new(), lines: Vec::new() };
        Arc::new(Self { inner, record: Arc::new(Mutex::new(record)) })
    }

    /// The lines since the last `take`, each ended by a newline.
    #[must_use]
    pub fn take(&self) -> String {
        let lines = std::mem::take(&mut self.record.lock().lines);
        lines.iter().map(Line::to_string).collect()
    }

    /// Records `action` on `path` and passes its result on.
    fn note<T>(&self, action: &str, path: &Path, result: io::Result<T>) -> io::Result<T> {
        self.record.lock().note(action, path, "", result)
    }

    fn file(&self, inner: Arc<dyn File>) -> Arc<dyn File> {
        Arc::new(RecordingFile { inner, record: Arc::clone(&self.record) })
    }
}

impl Record {
    fn name(&self, path: &Path) -> String {
        let relative = self.roots.iter().find_map(|root| path.strip_prefix(root).ok());
        match relative {
            Some(name) if name.as_os_str().is_empty() => ".".to_owned(),
            name => name.unwrap_or(path).display().to_string(),
        }
    }

    /// The end of a line by the calling thread.
    fn by(&self) -> String {
        match std::thread::current().name() {
            Some(name) if self.threads == Threads::Named && name.starts_with("terrace-") => {
                format!(" by {name}")
            }
            _ => String::new(),
        }
    }

    fn note<T>(&mut self, action: &str, path: &Path, rest: &str, result: io::Result<T>) -> io::Result<T> {
        let mut text = format!("{action} {}{rest}{}", self.name(path), self.by());
        if let Err(error) = &result {
            // Writing to a string cannot fail.
            let _ = write!(text, ": {error}");
        }
        self.lines.push(Line::Other(text));
        result
    }

    fn note_write(&mut self, path: &Path, offset: u64, len: u64) {
        let (name, by) = (self.name(path), self.by());
        if let (
            Appends::Merged,
            Some(Line::Write { name: last, offset: start, len: written, calls, by: who }),
        ) = (self.appends, self.lines.last_mut())
            && *last == name
            && *who == by
            && *start + *written == offset
        {
            *written += len;
            *calls += 1;
            return;
        }
        self.lines.push(Line::Write { name, offset, len, calls: 1, by });
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write { name, offset, len, calls: 1, by } => writeln!(f, "write {name} {offset}+{len}{by}"),
            Self::Write { name, offset, len, calls, by } => {
                writeln!(f, "write {name} {offset}+{len} in {calls} calls{by}")
            }
            Self::Other(text) => writeln!(f, "{text}"),
        }
    }
}

impl Env for RecordingEnv {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        let created = self.inner.create_dir(dir);
        let mut record = self.record.lock();
        if record.roots.is_empty() && created.is_ok() {
            record.roots.push(dir.to_path_buf());
        }
        record.note("create-dir", dir, "", created)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.inner.list(dir)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.note("sync-dir", dir, self.inner.sync_dir(dir))
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let created = self.note("create", path, self.inner.create(path))?;
        Ok(self.file(created))
    }

    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn File>> {
        Ok(self.file(self.inner.open(path, access)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let renamed = self.inner.rename(from, to);
        let mut record = self.record.lock();
        let rest = format!(" {}", record.name(to));
        record.note("rename", from, &rest, renamed)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.note("remove", path, self.inner.remove(path))
    }

    fn lock(&self, path: &Path, kind: LockKind) -> io::Result<FileLock> {
        let action = match kind {
            LockKind::Shared => "lock-shared",
            LockKind::Exclusive => "lock",
        };
        self.note(action, path, self.inner.lock(path, kind))
    }

    fn canonical(&self, dir: &Path) -> io::Result<PathBuf> {
        let canonical = self.inner.canonical(dir)?;
        let mut record = self.record.lock();
        if record.roots.iter().any(|root| root == dir) && !record.roots.contains(&canonical) {
            record.roots.push(canonical.clone());
        }
        Ok(canonical)
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

#[derive(Debug)]
struct RecordingFile {
    inner: Arc<dyn File>,
    record: Arc<Mutex<Record>>,
}

impl RecordingFile {
    fn note(&self, action: &str, rest: &str, result: io::Result<()>) -> io::Result<()> {
        self.record.lock().note(action, self.inner.path(), rest, result)
    }
}

impl File for RecordingFile {
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
        let len = bytes.len() as u64;
        match self.inner.write_at(offset, bytes) {
            Ok(()) => {
                self.record.lock().note_write(self.inner.path(), offset, len);
                Ok(())
            }
            failed => self.note("write", &format!(" {offset}+{len}"), failed),
        }
    }

    fn sync(&self) -> io::Result<()> {
        self.note("sync", "", self.inner.sync())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.note("set-len", &format!(" {len}"), self.inner.set_len(len))
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        self.note("punch", &format!(" {offset}+{len}"), self.inner.punch(offset, len))
    }

    fn allocated(&self) -> io::Result<u64> {
        self.inner.allocated()
    }

    fn write_back(&self, range: Range<u64>, wait: bool) -> io::Result<()> {
        self.inner.write_back(range, wait)
    }

    fn read_ahead(&self, range: Range<u64>) {
        self.inner.read_ahead(range);
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<Range<u64>>> {
        self.inner.next_data(offset)
    }

    fn links(&self) -> io::Result<u64> {
        self.inner.links()
    }
}
