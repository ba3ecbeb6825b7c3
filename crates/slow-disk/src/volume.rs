//! The volume: image, loop device, file system, mount, limits; and the command on it.
//!
//! Only this process and the command see the mount, so it ends with them. As soon as the loop device holds the image,
//! and the mount holds the loop device, the image is deleted and the loop device is set to detach itself.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use crate::delay::Delayed;
use crate::directory::{DELAYED, IMAGE, RULES, VOLUME, hold_runs};
use crate::init;
use crate::leftovers::detach;
use crate::limits::{Limits, Throttle};
use crate::run::Run;
use crate::system::{LOOK, Stop, complain, loops, own_mounts, patience, this_program, tool, unmount};

/// File systems that a volume can have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum FileSystem {
    Ext4,
    /// Volumes of 300 MB or more
    Xfs,
    /// Without holes in files
    Vfat,
}

impl FileSystem {
    /// The tool that makes one, with its options. All metadata is written at once, so that nothing is left for the kernel to
    /// do while others measure, and nothing is discarded.
    fn maker(self) -> (&'static str, &'static [&'static str]) {
        match self {
            Self::Ext4 => {
                let options =
                    &["-q", "-F", "-m", "0", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"];
                ("mkfs.ext4", options)
            }
            Self::Xfs => ("mkfs.xfs", &["-q", "-f", "-K"]),
            Self::Vfat => ("mkfs.vfat", &["-F", "32"]),
        }
    }
}

/// What to make.
pub struct Disk<'a> {
    pub file_system: FileSystem,
    pub bytes: u64,
    pub limits: Limits,
    /// Least duration of a sync.
    pub sync: Option<Duration>,
    /// Directory of the image.
    pub dir: &'a Path,
}

impl Disk<'_> {
    /// Fails if this machine cannot have such a disk.
    pub fn check(&self) -> Result<()> {
        let needed =
            [("/dev/loop-control", "loop devices", true), ("/dev/fuse", "--sync-ms", self.sync.is_some())];
        for (file, what, _) in needed.into_iter().filter(|(_, _, is_needed)| *is_needed) {
            if !Path::new(file).exists() {
                bail!("no {what} here: there is no {file}");
            }
        }
        if self.limits.is_any() {
            Throttle::find("")?;
        }
        Ok(())
    }
}

/// A mounted volume; dropping it takes it away.
pub struct Volume<'a> {
    run: &'a Run,
    throttle: Option<Throttle>,
    // In the order in which they go.
    mounted: Mounted,
    _device: Device,
    _delayed: Option<Delayed>,
}

impl<'a> Volume<'a> {
    /// Makes and mounts the volume.
    pub fn make(disk: &Disk, run: &'a Run, stop: &Stop) -> Result<Self> {
        own_mounts()?;
        let image = make_image(disk, run)?;
        stop.check()?;
        // On the image: a device may be busy for a moment while somebody else looks for a free one.
        let (maker, options) = disk.file_system.maker();
        tool(maker, options.iter().map(OsStr::new).chain([image.as_os_str()]))?;
        let delayed = disk.sync.map(|sync| delayed(&image, sync, run)).transpose()?;
        let device = match &delayed {
            None => Device::attach(&image, run)?,
            Some(delayed) => Device::attach(delayed.file(), run)?,
        };
        fs::remove_file(&image)?;
        stop.check()?;
        let mounted = Mounted::mount(&device, run)?;
        let throttle = match disk.limits.is_any() {
            true => Some(throttle(&device, &disk.limits, run)?),
            false => None,
        };
        stop.check()?;
        Ok(Self { run, throttle, mounted, _device: device, _delayed: delayed })
    }

    /// Runs `command` on the volume to its end, and that of all that it has started, and returns the status to exit with.
    pub fn run(&self, command: &[OsString], stop: &Stop) -> Result<u8> {
        let place = &self.mounted.place;
        let mut init = this_program(init::ROLE);
        init.arg(std::process::id().to_string())
            .arg(self.throttle.as_ref().map(Throttle::members).unwrap_or_default())
            .args(command.iter().map(|word| with_place(word, place)))
            .env("SLOW_DISK", place);
        let status = wait(&mut init::start(&mut init)?, stop)?;
        // As a shell tells it.
        let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
        Ok(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX))
    }
}

impl Drop for Volume<'_> {
    fn drop(&mut self) {
        // What unmounting still has to write need not be slow.
        if let Err(error) = self.run.lift() {
            complain(&format!("cannot lift the limits: {error:#}"));
        }
    }
}

/// Waits for the end of the init, and hastens it if the user wants that.
fn wait(init: &mut Child, stop: &Stop) -> Result<ExitStatus> {
    let pid = Pid::from_child(init);
    let mut asked: Option<Instant> = None;
    loop {
        if let Some(status) = init.try_wait()? {
            return Ok(status);
        }
        if stop.is_wanted() {
            // Again and again: it cannot be told before it listens.
            kill_process(pid, Signal::TERM)?;
            if asked.get_or_insert_with(Instant::now).elapsed() > patience() {
                init.kill()?;
            }
        }
        std::thread::sleep(LOOK);
    }
}

/// `word` with the place of the volume for every `{}`.
fn with_place(word: &OsStr, place: &Path) -> OsString {
    let (mut filled, mut rest) = (Vec::new(), word.as_bytes());
    while let Some(at) = rest.windows(2).position(|pair| pair == b"{}") {
        filled.extend_from_slice(&rest[..at]);
        filled.extend_from_slice(place.as_os_str().as_bytes());
        rest = &rest[at + 2..];
    }
    filled.extend_from_slice(rest);
    OsString::from_vec(filled)
}

fn make_image(disk: &Disk, run: &Run) -> Result<PathBuf> {
    let dir = disk.dir.canonicalize().with_context(|| format!("no directory {}", disk.dir.display()))?;
    let image = dir.join(run.image_name());
    run.note(IMAGE, image.as_os_str().as_bytes())?;
    let file = File::create_new(&image).with_context(|| format!("cannot make {}", image.display()))?;
    file.set_len(disk.bytes)?;
    Ok(image)
}

fn delayed(image: &Path, sync: Duration, run: &Run) -> Result<Delayed> {
    let place = run.dir().join(DELAYED);
    fs::create_dir(&place)?;
    Delayed::start(image, &place, sync)
}

/// A loop device, detached by the kernel when nothing uses it any more.
struct Device {
    path: PathBuf,
    image: String,
    /// What keeps it, beside a mount. None when it is dropped.
    open: Option<File>,
}

impl Device {
    /// Makes a loop device over `backing`.
    fn attach(backing: &Path, run: &Run) -> Result<Self> {
        // Past the page cache, which would answer in place of the disk.
        let options = ["--find", "--show", "--direct-io=on"].map(OsStr::new);
        let path = PathBuf::from(tool("losetup", options.into_iter().chain([backing.as_os_str()]))?);
        let open = File::open(&path)?;
        // One that is in use is detached when it no longer is.
        tool("losetup", ["--detach".as_ref(), path.as_os_str()])?;
        Ok(Self { path, image: run.image_name(), open: Some(open) })
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        drop(self.open.take());
        // What it is made of is used until then. Whoever clears the run says what went wrong.
        let _ = detach(&self.image);
    }
}

/// The mount.
struct Mounted {
    place: PathBuf,
}

impl Mounted {
    fn mount(device: &Device, run: &Run) -> Result<Self> {
        let place = run.dir().join(VOLUME);
        fs::create_dir(&place)?;
        tool("mount", [device.path.as_os_str(), place.as_os_str()])?;
        Ok(Self { place })
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if let Err(error) = unmount(&self.place) {
            complain(&format!("cannot unmount the volume: {error:#}"));
        }
    }
}

/// Limits the device.
fn throttle(device: &Device, limits: &Limits, run: &Run) -> Result<Throttle> {
    let numbers = loops()?.into_iter().find(|one| one.file == device.path).map(|one| one.numbers);
    let Some(numbers) = numbers else { bail!("{} is no loop device", device.path.display()) };
    let throttle = Throttle::find(&run.name())?;
    // Nobody lifts the rules of an earlier run for this device from here on.
    let _runs = hold_runs()?;
    run.note(RULES, &numbers)?;
    throttle.limit(&numbers, limits)?;
    Ok(throttle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn place_stands_for_every_pair_of_braces() {
        let filled = |word: &str| with_place(word.as_ref(), Path::new("/v"));
        assert_eq!(filled("--db={}/a:{}"), "--db=/v/a:/v");
        assert_eq!(filled("plain {"), "plain {");
    }
}
