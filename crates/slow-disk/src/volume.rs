//! The volumes: image, loop device, file system, mount, limits of each; and the command on them.
//!
//! Only this process and the command see the mounts, so these end with them. As soon as the loop device holds the image,
//! and the mount holds the loop device, the image is deleted and the loop device is set to detach itself.
//!
//! All devices are there before the first is mounted: who answers for delayed syncs has the mounts of when it was started, and must
//! not have that of another volume.

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
use crate::directory::{DELAYED, IMAGE, Number, RULES, VOLUME, hold_runs};
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
pub struct Disk {
    pub file_system: FileSystem,
    pub bytes: u64,
    pub limits: Limits,
    /// Least duration of a sync.
    pub sync: Option<Duration>,
    /// Directory of the image.
    pub dir: PathBuf,
}

impl Disk {
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

/// The mounted volumes of a run; dropping them takes them away.
pub struct Volumes<'a> {
    run: &'a Run,
    /// Where the command is a member, to be limited.
    throttle: Option<Throttle>,
    volumes: Vec<Volume>,
}

/// A mounted volume. What it is made of is in the order in which it goes.
struct Volume {
    mounted: Mounted,
    _medium: Medium,
}

impl<'a> Volumes<'a> {
    /// Makes and mounts a volume for each of `disks`.
    pub fn make(disks: &[Disk], run: &'a Run, stop: &Stop) -> Result<Self> {
        own_mounts()?;
        let numbered = || (1..).map(Number);
        let media: Vec<Medium> = numbered()
            .zip(disks)
            .map(|(number, disk)| Medium::make(disk, run, number, stop))
            .collect::<Result<_>>()?;
        let mut made = Self { run, throttle: None, volumes: Vec::new() };
        for ((number, disk), medium) in numbered().zip(disks).zip(media) {
            let mounted = Mounted::mount(&medium.device, run, number)?;
            if disk.limits.is_any() {
                made.throttle = Some(throttle(&medium.device, &disk.limits, run, number)?);
            }
            made.volumes.push(Volume { mounted, _medium: medium });
            stop.check()?;
        }
        Ok(made)
    }

    /// Runs `command` on the volumes to its end, and that of all that it has started, and returns the status to exit with.
    pub fn run(&self, command: &[OsString], stop: &Stop) -> Result<u8> {
        let places: Vec<&Path> = self.volumes.iter().map(|volume| &*volume.mounted.place).collect();
        let mut init = this_program(init::ROLE);
        init.arg(std::process::id().to_string())
            .arg(self.throttle.as_ref().map(Throttle::members).unwrap_or_default())
            .args(command.iter().map(|word| with_places(word, &places)));
        for (number, place) in (1..).zip(&places) {
            init.env(if number == 1 { "SLOW_DISK".into() } else { format!("SLOW_DISK_{number}") }, place);
        }
        let status = wait(&mut init::start(&mut init)?, stop)?;
        // As a shell tells it.
        let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
        Ok(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX))
    }
}

impl Drop for Volumes<'_> {
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

/// `word` with the place of the first volume for every `{}`, and that of volume 2 for every `{2}`, and so on.
fn with_places(word: &OsStr, places: &[&Path]) -> OsString {
    let marks: Vec<(Vec<u8>, &Path)> = (1..)
        .zip(places)
        .map(|(number, place)| match number {
            1 => (b"{}".to_vec(), *place),
            _ => (format!("{{{number}}}").into_bytes(), *place),
        })
        .collect();
    let (mut filled, mut rest) = (Vec::new(), word.as_bytes());
    while let Some(first) = rest.first() {
        match marks.iter().find(|(mark, _)| rest.starts_with(mark)) {
            Some((mark, place)) => {
                filled.extend_from_slice(place.as_os_str().as_bytes());
                rest = &rest[mark.len()..];
            }
            None => {
                filled.push(*first);
                rest = &rest[1..];
            }
        }
    }
    OsString::from_vec(filled)
}

/// A device with a file system that is not mounted.
struct Medium {
    // In the order in which they go.
    device: Device,
    _delayed: Option<Delayed>,
}

impl Medium {
    fn make(disk: &Disk, run: &Run, number: Number, stop: &Stop) -> Result<Self> {
        let image = make_image(disk, run, number)?;
        stop.check()?;
        // On the image: a device may be busy for a moment while somebody else looks for a free one.
        let (maker, options) = disk.file_system.maker();
        tool(maker, options.iter().map(OsStr::new).chain([image.as_os_str()]))?;
        let delayed = disk.sync.map(|sync| delayed(&image, sync, run, number)).transpose()?;
        let backing = delayed.as_ref().map_or(&*image, Delayed::file);
        let device = Device::attach(backing, run.image_name(number))?;
        fs::remove_file(&image)?;
        stop.check()?;
        Ok(Self { device, _delayed: delayed })
    }
}

fn make_image(disk: &Disk, run: &Run, number: Number) -> Result<PathBuf> {
    let dir = disk.dir.canonicalize().with_context(|| format!("no directory {}", disk.dir.display()))?;
    let image = dir.join(run.image_name(number));
    run.note(number.of(IMAGE), image.as_os_str().as_bytes())?;
    let file = File::create_new(&image).with_context(|| format!("cannot make {}", image.display()))?;
    file.set_len(disk.bytes)?;
    Ok(image)
}

fn delayed(image: &Path, sync: Duration, run: &Run, number: Number) -> Result<Delayed> {
    let place = run.dir().join(number.of(DELAYED));
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
    /// Makes a loop device over `backing`, the image of this name or what stands for it.
    fn attach(backing: &Path, image: String) -> Result<Self> {
        // Past the page cache, which would answer in place of the disk.
        let options = ["--find", "--show", "--direct-io=on"].map(OsStr::new);
        let path = PathBuf::from(tool("losetup", options.into_iter().chain([backing.as_os_str()]))?);
        let open = File::open(&path)?;
        // One that is in use is detached when it no longer is.
        tool("losetup", ["--detach".as_ref(), path.as_os_str()])?;
        Ok(Self { path, image, open: Some(open) })
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
    fn mount(device: &Device, run: &Run, number: Number) -> Result<Self> {
        let place = run.dir().join(number.of(VOLUME));
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
fn throttle(device: &Device, limits: &Limits, run: &Run, number: Number) -> Result<Throttle> {
    let numbers = loops()?.into_iter().find(|one| one.file == device.path).map(|one| one.numbers);
    let Some(numbers) = numbers else { bail!("{} is no loop device", device.path.display()) };
    let throttle = Throttle::find(&run.name())?;
    // Nobody lifts the rules of an earlier run for this device from here on.
    let _runs = hold_runs()?;
    run.note(number.of(RULES), &numbers)?;
    throttle.limit(&numbers, limits)?;
    Ok(throttle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_stand_for_the_places_that_there_are() {
        let filled = |word: &str| with_places(word.as_ref(), &[Path::new("/v"), Path::new("/w")]);
        assert_eq!(filled("--db={}/a:{}:{2}/b"), "--db=/v/a:/v:/w/b");
        assert_eq!(filled("plain { {1} {3}"), "plain { {1} {3}");
        let one = with_places("{2}".as_ref(), &[Path::new("/v")]);
        assert_eq!(one, "{2}");
    }
}
