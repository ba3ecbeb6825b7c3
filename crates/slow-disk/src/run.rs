//! A run from its beginning to its end: it holds the lock of its directory and notes there what it makes.
//!
//! Every process that the run starts inherits the lock, except its guardian. So the lock is free as soon as no
//! process is left that could still make anything, however they ended. Only then [`leftovers`] clears the run: the
//! run itself at its end; if it was killed, its guardian; if both were killed, the next run. The lock is removed
//! last, so that whoever dies while clearing is followed by the next one.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Child;

use anyhow::{Context, Result};
use rustix::fs::{FlockOperation, flock};
use rustix::io::{FdFlags, fcntl_setfd};

use crate::directory::{LOCK, Number, dir, hold_runs, image_name, name};
use crate::system::complain;
use crate::{guardian, leftovers};

/// A run that has begun; dropping it clears it.
pub struct Run {
    id: u32,
    /// None while it is not guarded.
    guardian: Option<Child>,
    _lock: File,
}

impl Run {
    /// Begins a run, after having cleared those that nobody else has.
    pub fn begin() -> Result<Self> {
        let mut run = Self::claim(std::process::id())?;
        // Before others inherit the lock.
        run.guardian = Some(guardian::start(run.id)?);
        fcntl_setfd(&run._lock, FdFlags::empty())?;
        Ok(run)
    }

    fn claim(id: u32) -> Result<Self> {
        let runs = hold_runs()?;
        leftovers::clear(&runs)?;
        let dir = dir(id);
        fs::create_dir(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
        let lock = File::create_new(dir.join(LOCK))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Self { id, guardian: None, _lock: lock })
    }

    /// Takes its rules away.
    pub fn lift(&self) -> Result<()> {
        leftovers::lift(self.id, &hold_runs()?)
    }

    /// Its directory.
    pub fn dir(&self) -> PathBuf {
        dir(self.id)
    }

    /// Its name among cgroups and file systems.
    pub fn name(&self) -> String {
        name(self.id)
    }

    /// Name of the image of a volume, wherever that is.
    pub fn image_name(&self, number: Number) -> String {
        image_name(self.id, number)
    }

    /// Notes what is about to be made, so that it is found whatever happens then.
    pub fn note(&self, name: impl AsRef<Path>, text: impl AsRef<[u8]>) -> Result<()> {
        let path = self.dir().join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let cleared = hold_runs().and_then(|runs| leftovers::clear_run(self.id, &runs));
        if let Err(error) = cleared {
            complain(&format!("cannot clear {}: {error:#}", self.dir().display()));
        }
        if let Some(guardian) = &mut self.guardian {
            // It waits for the lock of a run that is no more, or has been killed before.
            let _ = guardian.kill().and_then(|()| guardian.wait());
        }
    }
}
