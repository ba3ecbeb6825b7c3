//! A run as others find it: a directory below [`RUNS`], named by the run's id, with a lock and notes of what has been
//! made.
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
use rustix::io::{FdFlags, fcntl_setfd, retry_on_intr};

use crate::system::complain;
use crate::{guardian, leftovers};

/// Where runs have their directories.
pub const RUNS: &str = "/run/terrace-slow-disk";
/// Within a run's directory: the lock.
pub const LOCK: &str = "lock";
/// Note of the path of the image.
pub const IMAGE: &str = "image";
/// Note of the numbers of the device that has rules.
pub const RULES: &str = "rules";
/// Place of the file system that delays syncs.
pub const DELAYED: &str = "delayed";
/// Place of the volume.
pub const VOLUME: &str = "volume";

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

    /// Name of its image, wherever that is.
    pub fn image_name(&self) -> String {
        image_name(self.id)
    }

    /// Notes what is about to be made, so that it is found whatever happens then.
    pub fn note(&self, name: &str, text: impl AsRef<[u8]>) -> Result<()> {
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

/// The right to begin runs, to make rules, and to clear runs, which one process has at a time.
pub struct Runs(#[expect(dead_code, reason = "held, not used")] File);

/// Waits for that right.
pub fn hold_runs() -> Result<Runs> {
    fs::create_dir_all(RUNS).with_context(|| format!("cannot make {RUNS}"))?;
    let runs = File::open(RUNS)?;
    retry_on_intr(|| flock(&runs, FlockOperation::LockExclusive))?;
    Ok(Runs(runs))
}

/// Directory of run `id`.
pub fn dir(id: u32) -> PathBuf {
    Path::new(RUNS).join(id.to_string())
}

/// Name of run `id` among cgroups and file systems.
pub fn name(id: u32) -> String {
    format!("terrace-slow-disk-{id}")
}

/// Name of the image of run `id`, and of the file that stands for it where syncs are delayed: what a loop device is known
/// by.
pub fn image_name(id: u32) -> String {
    name(id) + ".img"
}
