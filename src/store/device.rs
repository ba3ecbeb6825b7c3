//! A device: one directory that the store owns.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::file::StoreFile;
use super::meter::{Meter, WriteCause};
use crate::env::sync::Mutex;
use crate::env::{Access, Env, FileLock, LockKind};
use crate::error::{Error, ErrorKind, Result};
use crate::format::names::FileName;

/// A directory of the store, its files by typed name.
#[derive(Debug)]
pub(crate) struct Device {
    env: Arc<dyn Env>,
    dir: PathBuf,
    meter: Arc<Meter>,
    /// Why the names cannot be synced any more.
    failed: Mutex<Option<Error>>,
}

impl Device {
    pub(crate) fn new(env: Arc<dyn Env>, dir: PathBuf, meter: Arc<Meter>) -> Self {
        Self { env, dir, meter, failed: Mutex::new(None) }
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn path(&self, name: FileName) -> PathBuf {
        self.dir.join(name.to_string())
    }

    /// The store's own files; what has another name belongs to somebody else and is left alone.
    pub(crate) fn list(&self) -> Result<Vec<FileName>> {
        let names = self.env.list(&self.dir).map_err(|e| Error::io("list the directory", &self.dir, e))?;
        Ok(names.iter().filter_map(|name| FileName::parse(name)).collect())
    }

    pub(crate) fn create(&self, name: FileName) -> Result<StoreFile> {
        let path = self.path(name);
        let file = self.env.create(&path).map_err(|e| Error::write_refused("create the file", &path, e))?;
        Ok(StoreFile::new(file, self.meter.clone()))
    }

    /// Creates the file `name` with the bytes of `ranges` of its namesake in `source`; the rest is holes.
    pub(crate) fn copy(&self, source: &Self, name: FileName, ranges: &[Range<u64>]) -> Result<StoreFile> {
        let (from, to) = (source.path(name), self.path(name));
        let file = self.env.copy(&from, &to, ranges).map_err(|e| Error::io("copy to the file", &to, e))?;
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
        let lock = self.env.lock(&path, LockKind::Shared).map_err(|e| not_opened(&path, e))?;
        Ok(self.open(name, Access::Read)?.locked(lock))
    }

    /// Whether anybody, in any process, has the file open by [`Device::hold`]; also where that cannot be told.
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

    /// Makes the names in the directory durable. After a failure nothing is known of any name that is not yet durable,
    /// and every further call fails the same way.
    pub(crate) fn sync_names(&self) -> Result<()> {
        // One at a time, as for files: whoever created another of these names must hear of it, too.
        let mut failed = self.failed.lock();
        if let Some(error) = &*failed {
            return Err(error.clone());
        }
        let synced = self.env.sync_dir(&self.dir);
        synced.map_err(|e| failed.insert(Error::hard_io("sync", &self.dir, e)).clone())?;
        self.meter.synced(WriteCause::Directory);
        Ok(())
    }

    /// Puts `contents` in place of the file `name`, so that a power cut leaves the old file or the new one: the new
    /// contents are durable under the name `aside` before they take the other name over.
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
        file.sync(WriteCause::Manifest)
    }

    /// Gives a staged file its final name, and makes that durable. After a failure either name may be in force.
    pub(crate) fn switch(&self, from: FileName, to: FileName) -> Result<()> {
        self.rename(from, to)?;
        self.sync_names()
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
