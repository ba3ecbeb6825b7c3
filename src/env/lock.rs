//! The registry of the files that this process holds locked.
//!
//! A lock of the operating system excludes other processes, but not always another handle in the same process. The
//! registry does, by the canonical name of the file. A [`Claim`] stands for one holder and gives the name up when it
//! is dropped.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::LockKind;
use super::sync::Mutex;

/// The locks held, by canonical name.
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

/// One holder's entry in the registry.
pub(super) struct Claim {
    registry: Arc<LockRegistry>,
    path: PathBuf,
}

impl Claim {
    /// Enters a holder of `path`, or fails with `WouldBlock`.
    pub(super) fn enter(registry: &Arc<LockRegistry>, path: PathBuf, kind: LockKind) -> io::Result<Self> {
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
