//! What a run leaves when it ends or is killed, and how it is cleared.
//!
//! The kernel itself removes what has lost its last user: the processes of the command with the first process of
//! their PID namespace, mounts with the last process of their mount namespace, a loop device with its last user, the
//! image with the loop device. These are left: rules of block throttling, the run's directory, and, if a run was
//! killed between two steps, an image that has not been deleted yet, or a loop device that does not release itself
//! yet.
//!
//! Clearing a run needs only its directory, can begin at any step, and can be repeated.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::fs::{FlockOperation, flock};

use crate::directory::{DELAYED, IMAGE, LOCK, Number, RULES, RUNS, Runs, VOLUME, dir, image_name, name};
use crate::limits::Throttle;
use crate::system::{Loop, complain, eventually, loops, tool};

/// Clears all runs that are no more. One that cannot be cleared keeps no other from it.
pub fn clear(runs: &Runs) -> Result<()> {
    for id in ids()? {
        if is_alive(id)? {
            continue;
        }
        complain(&format!("clearing what {} has left", dir(id).display()));
        if let Err(error) = clear_run(id, runs) {
            complain(&format!("cannot clear {}: {error:#}", dir(id).display()));
        }
    }
    Ok(())
}

/// Clears run `id`, which is no more, or is the caller's.
pub fn clear_run(id: u32, runs: &Runs) -> Result<()> {
    let run = dir(id);
    for number in Number::all() {
        let image = note(&run, &number.of(IMAGE))?.map(|bytes| PathBuf::from(OsString::from_vec(bytes)));
        if let Some(image) = image {
            if_there(fs::remove_file(&image))
                .with_context(|| format!("cannot remove {}", image.display()))?;
        }
    }
    // Before the devices go: what is still to be written need not be slow.
    lift(id, runs)?;
    for number in Number::all() {
        clear_volume(id, number)?;
    }
    if_there(fs::remove_file(run.join(LOCK)))?;
    Ok(if_there(fs::remove_dir(run))?)
}

/// Clears what a volume has but its image, which is gone.
fn clear_volume(id: u32, number: Number) -> Result<()> {
    let run = dir(id);
    if !detach(&image_name(id, number))? {
        complain("the volume is still in use from outside; the kernel takes it away when it no longer is");
    }
    for place in [VOLUME, DELAYED] {
        if_there(fs::remove_dir(run.join(number.of(place))))?;
    }
    for file in [IMAGE, RULES] {
        if_there(fs::remove_file(run.join(number.of(file))))?;
    }
    Ok(())
}

/// Takes away the rules of run `id`, unless the device is another's by now, whose rules have replaced them.
pub fn lift(id: u32, _: &Runs) -> Result<()> {
    let mut of_others = Vec::new();
    for other in ids()?.into_iter().filter(|other| *other != id) {
        of_others.extend(limited(other)?);
    }
    for device in limited(id)?.iter().filter(|device| !of_others.contains(device)) {
        Throttle::find(&name(id))?.lift(&String::from_utf8_lossy(device))?;
    }
    Ok(())
}

/// Numbers of the devices that have rules of run `id`.
fn limited(id: u32) -> Result<Vec<Vec<u8>>> {
    let notes = Number::all().map(|number| note(&dir(id), &number.of(RULES)));
    notes.filter_map(Result::transpose).collect()
}

/// Detaches the loop devices over an image of this name, and waits for those that the kernel detaches by itself; returns
/// whether none is left.
pub fn detach(image: &str) -> Result<bool> {
    // The others may belong to somebody else by now.
    for one in loops_over(image)?.into_iter().filter(|one| !one.is_released) {
        tool("losetup", ["--detach".as_ref(), one.file.as_os_str()])?;
    }
    eventually(|| Ok(loops_over(image)?.is_empty()))
}

fn loops_over(image: &str) -> Result<Vec<Loop>> {
    let mut loops = loops()?;
    loops.retain(|one| is_over(&one.backing, image));
    Ok(loops)
}

/// Whether a loop device of this backing file is over an image of this name.
fn is_over(backing: &Path, image: &str) -> bool {
    let name = backing.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.strip_suffix(" (deleted)").unwrap_or(name) == image
}

/// Ids of all runs that have a directory.
fn ids() -> Result<Vec<u32>> {
    let names = fs::read_dir(RUNS)?.map(|entry| entry.map(|entry| entry.file_name()));
    let names = names.collect::<io::Result<Vec<_>>>()?;
    Ok(names.iter().filter_map(|name| name.to_str()?.parse().ok()).collect())
}

/// Whether a process of the run is alive; waits for those that are dying. A run without a lock has been killed before it had
/// made anything: who begins one holds all runs until it has its lock.
fn is_alive(id: u32) -> Result<bool> {
    let lock = match File::open(dir(id).join(LOCK)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        lock => lock?,
    };
    let is_free = || flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok();
    let is_dying = || !Path::new("/proc").join(id.to_string()).exists();
    Ok(!(is_free() || is_dying() && eventually(|| Ok(is_free()))?))
}

/// A note of a run, if it has been made: it is empty when the run was killed while writing it.
fn note(run: &Path, name: &str) -> Result<Option<Vec<u8>>> {
    match fs::read(run.join(name)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        text => Ok(Some(text?).filter(|text| !text.is_empty())),
    }
}

fn if_there(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loop_device_is_known_by_the_name_of_its_image() {
        let is_ours = |backing: &str| is_over(Path::new(backing), "run-1.img");
        assert!(
            is_ours("/var/tmp/run-1.img") && is_ours("/var/tmp/run-1.img (deleted)") && is_ours("/run-1.img")
        );
        assert!(
            !is_ours("/var/tmp/run-11.img")
                && !is_ours("/var/tmp/run-1-2.img")
                && !is_ours("/run-1.img/disk")
                && !is_ours("/")
        );
    }
}
