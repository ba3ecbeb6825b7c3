//! The volume: image, loop device, file system, mount, limits; and the command on it.
//!
//! What a run makes is in a directory of its own below [`RUNS`], whose lock it holds as long as it lives, so that a later
//! run can tell what is left from what is in use.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, kill_process};

use crate::delay::{Delay, FILE};
use crate::limits::{Limits, Throttle};
use crate::system::{Stop, loops, tool, unmount};
use crate::undo::Undo;

/// Where runs keep what they have made.
pub const RUNS: &str = "/run/terrace-slow-disk";
/// Within a run's directory: the lock, the place of the image, the two mounts.
pub const LOCK: &str = "lock";
pub const IMAGE: &str = "image";
pub const DELAYED: &str = "delayed";
pub const MOUNTED: &str = "volume";

/// How often the command and the signals are looked at.
const LOOK: Duration = Duration::from_millis(20);
/// So long a command has to end by itself when it is told to.
const PATIENCE: Duration = Duration::from_secs(10);
/// Threads that answer the loop device: a sync must not hold up what others read.
const DELAY_THREADS: usize = 4;

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

/// A mounted volume; dropping it takes it away.
pub struct Volume {
    place: PathBuf,
    throttle: Option<Throttle>,
    _undo: Undo,
}

/// Name of run `id` among cgroups and images.
pub fn name(id: impl std::fmt::Display) -> String {
    format!("terrace-slow-disk-{id}")
}

impl Volume {
    /// Makes and mounts the volume.
    pub fn make(disk: &Disk, stop: &Stop) -> Result<Self> {
        let mut undo = Undo::default();
        let run = claim(&mut undo)?;
        let image = make_image(disk, &run, &mut undo)?;
        let device = match disk.sync {
            None => attach(&image, &mut undo)?,
            Some(sync) => attach(&delayed(&image, sync, &run, &mut undo)?, &mut undo)?,
        };
        stop.check()?;
        let (maker, options) = disk.file_system.maker();
        tool(maker, options.iter().map(OsStr::new).chain([device.as_os_str()]))?;
        stop.check()?;
        let place = run.join(MOUNTED);
        make_dir(&place, &mut undo)?;
        tool("mount", [device.as_os_str(), place.as_os_str()])?;
        undo.push("unmount the volume", {
            let place = place.clone();
            move || unmount(&place)
        });
        let throttle = match disk.limits.is_any() {
            true => Some(throttle(&device, &disk.limits, &mut undo)?),
            false => None,
        };
        stop.check()?;
        Ok(Self { place, throttle, _undo: undo })
    }

    /// Runs `command` on the volume to its end and returns the status to exit with.
    pub fn run(&self, command: &[OsString], stop: &Stop) -> Result<u8> {
        // The command dies with this process, should that be killed outright.
        let mut words: Vec<OsString> = ["setpriv", "--pdeathsig", "KILL", "--"].map(OsString::from).to_vec();
        words.extend(command.iter().map(|word| with_place(word, &self.place)));
        if let Some(throttle) = &self.throttle {
            let join = ["sh", "-c", "echo $$ > \"$0\" && exec \"$@\""].map(OsString::from);
            words.splice(0..0, join.into_iter().chain([throttle.members().into_os_string()]));
        }
        let mut child = Command::new(&words[0])
            .args(&words[1..])
            .env("SLOW_DISK", &self.place)
            .spawn()
            .with_context(|| format!("cannot run {}", words[0].display()))?;
        Ok(exit_status(wait(&mut child, stop)?))
    }
}

/// Waits for the end of `child`, and hastens it if the user wants that.
fn wait(child: &mut Child, stop: &Stop) -> Result<ExitStatus> {
    let mut asked: Option<Instant> = None;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        match asked {
            None if stop.is_wanted() => {
                let pid =
                    i32::try_from(child.id()).ok().and_then(Pid::from_raw).context("no such process")?;
                // It may have ended just now.
                let _ = kill_process(pid, Signal::TERM);
                asked = Some(Instant::now());
            }
            Some(asked) if asked.elapsed() > PATIENCE => child.kill()?,
            _ => {}
        }
        std::thread::sleep(LOOK);
    }
}

/// As a shell tells it.
fn exit_status(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
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

/// Makes the directory of this run and locks it.
fn claim(undo: &mut Undo) -> Result<PathBuf> {
    let run = Path::new(RUNS).join(std::process::id().to_string());
    fs::create_dir_all(RUNS)?;
    make_dir(&run, undo)?;
    let path = run.join(LOCK);
    let lock = File::create_new(&path)?;
    flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
    undo.push("remove the lock", move || {
        drop(lock);
        Ok(fs::remove_file(path)?)
    });
    Ok(run)
}

/// Makes a directory, which nothing but the directory itself is removed with.
fn make_dir(path: &Path, undo: &mut Undo) -> Result<()> {
    fs::create_dir(path).with_context(|| format!("cannot make {}", path.display()))?;
    let path = path.to_owned();
    undo.push(format!("remove {}", path.display()), move || Ok(fs::remove_dir(path)?));
    Ok(())
}

fn make_image(disk: &Disk, run: &Path, undo: &mut Undo) -> Result<PathBuf> {
    let dir = disk.dir.canonicalize().with_context(|| format!("no directory {}", disk.dir.display()))?;
    let image = dir.join(name(std::process::id()) + ".img");
    // The place is noted before there is anything in it.
    let note = run.join(IMAGE);
    fs::write(&note, image.as_os_str().as_bytes())?;
    undo.push("remove the note of the image", move || Ok(fs::remove_file(note)?));
    let file = File::create_new(&image).with_context(|| format!("cannot make {}", image.display()))?;
    undo.push("remove the image", {
        let image = image.clone();
        move || Ok(fs::remove_file(image)?)
    });
    file.set_len(disk.bytes)?;
    Ok(image)
}

/// Shows the image as a file whose syncs take their time.
fn delayed(image: &Path, sync: Duration, run: &Path, undo: &mut Undo) -> Result<PathBuf> {
    let place = run.join(DELAYED);
    make_dir(&place, undo)?;
    let image = File::options().read(true).write(true).open(image)?;
    let mut config = fuser::Config::default();
    config.mount_options = vec![fuser::MountOption::FSName(name(std::process::id()))];
    config.n_threads = Some(DELAY_THREADS);
    config.clone_fd = true;
    let session =
        fuser::spawn_mount(Delay::new(image, sync)?, &place, &config).context("cannot mount through FUSE")?;
    undo.push("unmount the delaying file system", move || Ok(session.umount_and_join()?));
    Ok(place.join(FILE))
}

/// Makes a loop device over `backing`.
fn attach(backing: &Path, undo: &mut Undo) -> Result<PathBuf> {
    // Past the page cache, which would answer in place of the disk.
    let options = ["--find", "--show", "--direct-io=on"].map(OsStr::new);
    let device = PathBuf::from(tool("losetup", options.into_iter().chain([backing.as_os_str()]))?);
    undo.push("detach the loop device", {
        let device = device.clone();
        move || tool("losetup", ["--detach".as_ref(), device.as_os_str()]).map(drop)
    });
    Ok(device)
}

/// Limits the device.
fn throttle(device: &Path, limits: &Limits, undo: &mut Undo) -> Result<Throttle> {
    let numbers = loops()?.into_iter().find(|one| one.file == device).map(|one| one.numbers);
    let Some(numbers) = numbers else { bail!("{} is no loop device", device.display()) };
    let throttle = Throttle::find(&name(std::process::id()))?;
    // Before the first rule is made: one of four may fail.
    undo.push("lift the limits", {
        let (throttle, numbers) = (throttle.clone(), numbers.clone());
        move || throttle.lift(&numbers)
    });
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

    #[test]
    fn exit_status_is_that_of_a_shell() {
        assert_eq!(exit_status(ExitStatus::from_raw(3 << 8)), 3);
        assert_eq!(exit_status(ExitStatus::from_raw(15)), 143);
    }
}
