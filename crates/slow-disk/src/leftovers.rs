//! What runs have left that were killed outright: found by their directories, whose locks nobody holds.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use anyhow::Result;
use rustix::fs::{FlockOperation, flock};

use crate::limits::Throttle;
use crate::system::{complain, loops, mounts, tool, unmount};
use crate::volume::{DELAYED, IMAGE, LOCK, MOUNTED, RUNS, name};

/// Clears what all runs have left that are no more.
pub fn clear() -> Result<()> {
    let entries = match fs::read_dir(RUNS) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let run = entry?.path();
        if !is_alive(&run)? {
            complain(&format!("clearing what {} has left", run.display()));
            clear_run(&run)?;
        }
    }
    Ok(())
}

/// Whether the run holds its lock. A run without one has been killed before it had made anything, or is about to lock it;
/// then it fails.
fn is_alive(run: &Path) -> Result<bool> {
    let lock = match File::open(run.join(LOCK)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        lock => lock?,
    };
    Ok(flock(&lock, FlockOperation::NonBlockingLockShared).is_err())
}

/// The steps of a volume, backwards; each can be missing.
fn clear_run(run: &Path) -> Result<()> {
    let image = fs::read(run.join(IMAGE)).ok().map(|bytes| PathBuf::from(OsString::from_vec(bytes)));
    let mounted = mounts()?;
    let is_mounted = |place: &Path| mounted.iter().any(|mount| mount.place == place);
    let (volume, delayed) = (run.join(MOUNTED), run.join(DELAYED));
    if is_mounted(&volume) {
        unmount(&volume)?;
    }
    let id = run.file_name().unwrap_or_default().display();
    let throttle = Throttle::find(&name(id)).ok();
    for one in loops()? {
        if one.backing.starts_with(run) || image.as_ref().is_some_and(|image| one.backing == *image) {
            if let Some(throttle) = &throttle {
                throttle.lift(&one.numbers)?;
            }
            tool("losetup", ["--detach".as_ref(), one.file.as_os_str()])?;
        }
    }
    if is_mounted(&delayed) {
        unmount(&delayed)?;
    }
    for dir in [volume, delayed] {
        if_there(fs::remove_dir(dir))?;
    }
    for file in image.into_iter().chain([run.join(IMAGE), run.join(LOCK)]) {
        if_there(fs::remove_file(file))?;
    }
    Ok(fs::remove_dir(run)?)
}

fn if_there(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
