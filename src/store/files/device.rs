//! A device: one directory of the store, with its files by typed name.
//!
//! # When a name is durable
//!
//! A file's name is durable once a sync of the directory has succeeded that began after the name was given. It does
//! not matter who asked for the sync. So names are numbered in the order in which they were given
//! ([`Device::named`]). A sync notes the newest number when it begins; after its success all names up to that number
//! are durable. Whoever needs one of those does not wait ([`Device::sync_names_upto`]).
//!
//! Invariant: after a failed sync of the directory every later one fails too, so no name counts as durable by
//! mistake.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use super::file::StoreFile;
use super::meter::{Meter, WriteCause};
use crate::env::sync::OrderedMutex;
use crate::env::{Access, Env, FileLock, LockKind};
use crate::error::{Error, ErrorKind, Result};
use crate::format::names::FileName;

/// A moment in the order in which names are given: see [`Device::named`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Named(u64);

/// A directory of the store, its files by typed name.
#[derive(Debug)]
pub(crate) struct Device {
    env: Arc<dyn Env>,
    dir: PathBuf,
    meter: Arc<Meter>,
    /// Number of the newest name that was given.
    named: AtomicU64,
    /// Names up to this number are durable.
    durable: AtomicU64,
    /// The error of a failed sync; every later sync returns it again.
    failed: OrderedMutex<Option<Error>>,
}

impl Device {
    pub(crate) fn new(env: Arc<dyn Env>, dir: PathBuf, meter: Arc<Meter>) -> Self {
        Self { env, dir, meter, named: 0.into(), durable: 0.into(), failed: OrderedMutex::leaf(None) }
    }

    /// Time since a fixed moment.
    pub(crate) fn now(&self) -> Duration {
        self.env.now()
    }

    /// Bytes that were written to the log and the manifest of the store, whichever directory has them.
    pub(crate) fn logged_bytes(&self) -> u64 {
        let written = |cause| self.meter.bytes_written(cause);
        written(WriteCause::Wal) + written(WriteCause::Manifest)
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn path(&self, name: FileName) -> PathBuf {
        self.dir.join(name.to_string())
    }

    /// Lists the store's own files. A file with any other name is not the store's and is left alone.
    pub(crate) fn list(&self) -> Result<Vec<FileName>> {
        let names = self.env.list(&self.dir).map_err(|e| Error::io("list the directory", &self.dir, e))?;
        Ok(names.iter().filter_map(|name| FileName::parse(name)).collect())
    }

    pub(crate) fn create(&self, name: FileName) -> Result<StoreFile> {
        let path = self.path(name);
        let file = self.env.create(&path).map_err(|e| Error::write_refused("create the file", &path, e))?;
        Ok(StoreFile::new(file, self.meter.clone()))
    }

    /// Creates the file `name` with the bytes of `ranges` of `source`; the rest is holes.
    pub(crate) fn copy(
        &self,
        source: &StoreFile,
        name: FileName,
        ranges: &[Range<u64>],
    ) -> Result<StoreFile> {
        let to = self.path(name);
        let copied = self.env.copy(source.file(), &to, ranges);
        let file = copied.map_err(|e| Error::io("copy to the file", &to, e))?;
        Ok(StoreFile::new(file, self.meter.clone()))
    }

    pub(crate) fn open(&self, name: FileName, access: Access) -> Result<StoreFile> {
        let path = self.path(name);
        let file = self.env.open(&path, access).map_err(|e| not_opened(&path, e))?;
        Ok(StoreFile::new(file, self.meter.clone()))
    }

    /// Opens a file for reading so that [`Device::is_held`] for as long as it is open. `Busy` while somebody asks that.
    pub(crate) fn hold(&self, name: FileName) -> Result<StoreFile> {
        let path = self.path(name);
        let (file, lock) = self.env.hold(&path).map_err(|e| not_opened(&path, e))?;
        Ok(StoreFile::new(file, self.meter.clone()).locked(lock))
    }

    /// Whether anybody, in any process, has the file open by [`Device::hold`]. `true` if that cannot be found out.
    pub(crate) fn is_held(&self, name: FileName) -> bool {
        self.env.lock(&self.path(name), LockKind::Exclusive).is_err()
    }

    pub(crate) fn remove(&self, name: FileName) -> Result<()> {
        let path = self.path(name);
        match self.env.remove(&path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(Error::hard_io("remove the file", &path, e)),
            _ => Ok(()),
        }
    }

    /// Makes the names in the directory durable. After a failure, names that were not durable may or may not be, and
    /// every further call fails the same way.
    pub(crate) fn sync_names(&self) -> Result<()> {
        self.sync_while(WriteCause::Directory, || true)
    }

    /// Returns a moment in the order of names that covers all names that the caller has given by now. Call it after
    /// the system call that gave the last of them has returned.
    pub(crate) fn named(&self) -> Named {
        Named(self.named.fetch_add(1, SeqCst) + 1)
    }

    /// Whether the names that were given up to `named` are durable. Once they are, they stay so.
    pub(crate) fn is_durable(&self, named: Named) -> bool {
        self.durable.load(SeqCst) >= named.0
    }

    /// As [`Device::sync_names`], for the names that were given up to `named`. Does nothing if these are durable
    /// already, even if a later sync has failed.
    pub(crate) fn sync_names_upto(&self, named: Named, cause: WriteCause) -> Result<()> {
        if self.is_durable(named) {
            return Ok(());
        }
        self.sync_while(cause, || !self.is_durable(named))
    }

    /// Syncs the directory, if that is still `needed` once the caller holds the lock.
    fn sync_while(&self, cause: WriteCause, needed: impl Fn() -> bool) -> Result<()> {
        // One sync at a time, as for files: a failure must reach everybody who gave one of these names.
        let mut failed = self.failed.lock();
        if !needed() {
            return Ok(());
        }
        if let Some(error) = &*failed {
            return Err(error.clone());
        }
        // Read before the sync begins: it may not cover names that are given while it runs.
        let covered = self.named.load(SeqCst);
        let skipped = planted!("directory-sync-skipped");
        let synced = if skipped { Ok(()) } else { self.env.sync_dir(&self.dir) };
        synced.map_err(|e| failed.insert(Error::hard_io("sync", &self.dir, e)).clone())?;
        let late = planted!("directory-sync-credited-with-later-names");
        let covered = if late { self.named.load(SeqCst) } else { covered };
        self.durable.fetch_max(covered, SeqCst);
        self.meter.synced(cause);
        Ok(())
    }

    /// Replaces the file `name` by one with `contents`, so that a power cut leaves the old file or the new one. The
    /// new contents are durable under the name `aside` before they take the other name.
    pub(crate) fn replace(&self, name: FileName, aside: FileName, contents: &[u8]) -> Result<()> {
        self.stage(aside, contents)?;
        self.switch(aside, name)
    }

    /// Writes a whole file and makes its contents durable.
    pub(crate) fn stage(&self, name: FileName, contents: &[u8]) -> Result<()> {
        // A leftover of an earlier crash may stand there.
        self.remove(name)?;
        let file = self.create(name)?;
        file.write(WriteCause::Manifest, 0, contents)?;
        if planted!("renamed-before-it-is-synced") { Ok(()) } else { file.sync(WriteCause::Manifest) }
    }

    /// Gives a staged file its final name, and makes the name durable. After a failure either name may be in force.
    pub(crate) fn switch(&self, from: FileName, to: FileName) -> Result<()> {
        self.rename(from, to)?;
        if planted!("rename-not-synced") { Ok(()) } else { self.sync_names() }
    }

    /// Gives a file another name, replacing what has it. Durable after [`Device::sync_names`].
    pub(crate) fn rename(&self, from: FileName, to: FileName) -> Result<()> {
        let (from, to) = (self.path(from), self.path(to));
        self.env.rename(&from, &to).map_err(|e| Error::io("rename the file", &from, e))
    }

    /// Takes the store's lock, creating the lock file if there is none.
    pub(crate) fn lock(&self) -> Result<FileLock> {
        let path = self.path(FileName::Lock);
        match self.env.create(&path) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => {
                return Err(Error::write_refused("create the lock file", &path, e));
            }
            _ => {}
        }
        self.env.lock(&path, LockKind::Exclusive).map_err(|e| match e.kind() {
            io::ErrorKind::WouldBlock => Error::new(
                ErrorKind::Busy,
                format!("the store in {} is open in another handle or process", self.dir.display()),
            ),
            _ => Error::write_refused("lock the store with", &path, e),
        })
    }
}

fn not_opened(path: &Path, e: io::Error) -> Error {
    match e.kind() {
        io::ErrorKind::NotFound => Error::corruption(path, 0, "the file is missing"),
        io::ErrorKind::WouldBlock => {
            Error::new(ErrorKind::Busy, format!("{} is just being given up", path.display()))
        }
        _ => Error::io("open the file", path, e),
    }
}

#[cfg(test)]
mod tests;
