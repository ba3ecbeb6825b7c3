//! Advisory locks that exclude both other processes and other handles of this one.
//!
//! `flock` excludes processes. Where it is emulated by record locks (NFS), closing any descriptor of the file drops
//! the process's lock; therefore a registry of the canonical names in use is asked first, and a handle that it refuses
//! never opens the file.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FlockOperation, flock};

use super::options;
use crate::env::sync::Mutex;
use crate::env::{Access, FileLock, LockKind};

/// The locks that this process holds, by canonical name.
#[derive(Default)]
pub(super) struct LockRegistry {
    held: Mutex<BTreeMap<PathBuf, Holders>>,
}

/// Who holds one file.
enum Holders {
    Exclusive,
    /// Number of shared holders, at least one.
    Shared(usize),
}

impl LockRegistry {
    /// Takes the lock on `path` for as long as the returned value lives.
    pub(super) fn lock(registry: &Arc<Self>, path: &Path, kind: LockKind) -> io::Result<FileLock> {
        let claim = Claim::enter(registry, fs::canonicalize(path)?, kind)?;
        let (access, operation) = match kind {
            LockKind::Shared => (Access::Read, FlockOperation::NonBlockingLockShared),
            LockKind::Exclusive => (Access::ReadWrite, FlockOperation::NonBlockingLockExclusive),
        };
        let file = options(access).open(path)?;
        rustix::io::retry_on_intr(|| flock(&file, operation))?;
        Ok(FileLock::new(Box::new(HeldLock { file, _claim: claim })))
    }
}

/// An entry in the registry; dropping it gives the name up.
struct Claim {
    registry: Arc<LockRegistry>,
    path: PathBuf,
}

impl Claim {
    fn enter(registry: &Arc<LockRegistry>, path: PathBuf, kind: LockKind) -> io::Result<Self> {
        let mut held = registry.held.lock();
        match (held.get_mut(&path), kind) {
            (None, LockKind::Exclusive) => {
                held.insert(path.clone(), Holders::Exclusive);
            }
            (None, LockKind::Shared) => {
                held.insert(path.clone(), Holders::Shared(1));
            }
            (Some(Holders::Shared(count)), LockKind::Shared) => *count += 1,
            (Some(_), _) => return Err(io::ErrorKind::WouldBlock.into()),
        }
        drop(held);
        Ok(Self { registry: Arc::clone(registry), path })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut held = self.registry.held.lock();
        match held.get_mut(&self.path) {
            Some(Holders::Shared(count)) if *count > 1 => *count -= 1,
            _ => {
                held.remove(&self.path);
            }
        }
    }
}

/// The file is unlocked before the claim is given up: fields drop after `drop`.
struct HeldLock {
    file: fs::File,
    _claim: Claim,
}

impl Drop for HeldLock {
    fn drop(&mut self) {
        // Closing alone would leave the lock to a child between its fork and its exec. If unlocking fails, closing
        // still releases it.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}
