//! The directory of a run, below [`RUNS`] and named by the run's id: a lock, notes of what has been made, and places where
//! things are mounted. All that know of a run find it here.
//!
//! A run has one volume or several. Notes and places of the first one have plain names, those of the others end in their number.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::fs::{FlockOperation, flock};
use rustix::io::retry_on_intr;

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

/// So many volumes a run can have at most. Whoever clears a run looks for the traces of each.
pub const VOLUMES_MAX: usize = 9;

/// Which volume of its run, from 1 on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Number(pub usize);

impl Number {
    /// All that a run can have.
    pub fn all() -> impl Iterator<Item = Self> {
        (1..=VOLUMES_MAX).map(Self)
    }

    /// The name of its note or place of this kind.
    pub fn of(self, kind: &str) -> String {
        format!("{kind}{}", self.ending())
    }

    fn ending(self) -> String {
        if self.0 == 1 { String::new() } else { format!("-{}", self.0) }
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

/// Name of the image of a volume of run `id`, and of the file that stands for it where syncs are delayed: what a loop device is
/// known by.
pub fn image_name(id: u32, number: Number) -> String {
    format!("{}{}.img", name(id), number.ending())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_volume_has_names_of_its_own() {
        assert_eq!((Number(1).of(IMAGE), image_name(7, Number(1))), ("image".into(), name(7) + ".img"));
        assert_eq!((Number(2).of(IMAGE), image_name(7, Number(2))), ("image-2".into(), name(7) + "-2.img"));
    }
}
