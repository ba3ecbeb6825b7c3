//! `slow-disk`: runs a command on a real disk made slow.
//!
//! 1. [`mod@run`] makes the run known by a [`directory`], and has it watched by a [`guardian`]; [`leftovers`] clears what a run
//!    leaves, whoever outlives it, in the worst case the next run.
//! 2. [`volume`] makes an image, a loop device over it, a file system on that, and mounts it. With a sync latency,
//!    the image is reached through [`delay`], a file system in a process beside that holds back every sync. All this for each
//!    volume that is asked for.
//! 3. [`limits`] gives each loop device rules of the kernel's block throttling.
//! 4. The command runs below an [`init`], with which all dies that it has started, and with the places of the volumes in the
//!    environment.
//! 5. If the kernel has killed anything for want of memory meanwhile, [`memory`] says so.
//!
//! Whatever is killed, the rest goes: the init with this process, the command with the init, mounts and loop device with
//! the last of them, and the guardian clears what the kernel leaves.
//!
//! Nothing here knows what the command is, so that every engine can be put on the same disk.
#![expect(clippy::disallowed_methods, reason = "a tool beside the store, on real files and real time")]

mod delay;
mod directory;
mod guardian;
mod init;
mod leftovers;
mod limits;
mod memory;
mod run;
mod system;
mod volume;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{Args, Parser};

use crate::directory::VOLUMES_MAX;
use crate::limits::Limits;
use crate::memory::Memory;
use crate::run::Run;
use crate::system::Stop;
use crate::volume::{Disk, FileSystem, Volumes};

/// Status of this program when it could not run the command, as `env` and `timeout` have it.
const FAILED: u8 = 125;

/// Run a command on a disk made slow: a loop-mounted volume with limits, or several
///
/// The command finds the mounted volume's directory in the environment variable SLOW_DISK, and in place of every {} of
/// its arguments; that of a second volume in SLOW_DISK_2, and in place of {2}, and so on. The exit status is the command's. Needs
/// root, and losetup, mount and the file system's mkfs.
#[derive(Parser)]
#[command(after_help = "\
Examples:
  slow-disk --write-mb 100 --read-mb 200 --sync-ms 2 -- terrace bench ycsb --db {}/store --sync
  slow-disk --write-iops 120 --read-iops 120 --sync-ms 8 -- sh -c 'cd $SLOW_DISK && fio job.fio'
  slow-disk --write-mb 450 --also write-mb=100,sync-ms=1 -- terrace bench ycsb --db {}/store --device {2}/store")]
struct Arguments {
    #[command(flatten)]
    disk: DiskArguments,

    /// One more volume, with what stands here of the options above, without dashes: write-mb=20,sync-ms=8. The defaults are the
    /// same. Can be given more than once
    #[arg(long, value_name = "OPTION=VALUE,...", value_parser = another)]
    also: Vec<DiskArguments>,

    /// The command and its arguments
    #[arg(required = true, last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// How a volume is made.
#[derive(Args, Clone, Debug)]
struct DiskArguments {
    /// Size of the volume in megabytes; the image is sparse
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = clap::value_parser!(u64).range(32..))]
    size_mb: u64,

    /// File system of the volume
    #[arg(long, value_name = "NAME", default_value = "ext4")]
    file_system: FileSystem,

    #[command(flatten)]
    limits: Limits,

    /// Least duration of a sync of the device, in milliseconds
    #[arg(long, value_name = "MS", value_parser = system::milliseconds)]
    sync_ms: Option<std::time::Duration>,

    /// Directory for the image, on the disk that is to be slower
    #[arg(long, value_name = "DIR", default_value = "/var/tmp")]
    dir: PathBuf,
}

impl DiskArguments {
    fn disk(&self) -> Disk {
        Disk {
            file_system: self.file_system,
            bytes: self.size_mb * 1_000_000,
            limits: self.limits,
            sync: self.sync_ms,
            dir: self.dir.clone(),
        }
    }
}

/// Parses what `--also` says: the words of [`DiskArguments`], separated by commas.
fn another(text: &str) -> Result<DiskArguments, String> {
    #[derive(Parser)]
    #[command(no_binary_name = true)]
    struct Another {
        #[command(flatten)]
        disk: DiskArguments,
    }
    let words = text.split(',').filter(|word| !word.is_empty()).map(|word| format!("--{word}"));
    let parsed = Another::try_parse_from(words).map_err(|error| error.to_string());
    // It would go on with a description of its usage.
    parsed.map(|another| another.disk).map_err(|error| error.lines().next().unwrap_or_default().to_owned())
}

fn main() -> ExitCode {
    match in_role() {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            system::complain(&format!("{error:#}"));
            ExitCode::from(FAILED)
        }
    }
}

/// Does what a process of this program has been started for.
fn in_role() -> Result<u8> {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let texts: Vec<&str> = words.iter().map(|word| word.to_str().unwrap_or_default()).collect();
    match texts[..] {
        [guardian::ROLE, id] => guardian::guard(id.parse()?).map(|()| 0),
        [delay::ROLE, parent, _, _, sync] => {
            delay::serve(parent, words[2].as_ref(), words[3].as_ref(), sync).map(|()| 0)
        }
        [init::ROLE, parent, _, _, ..] => init::run(parent, words[2].as_ref(), &words[3..]),
        _ => run(&Arguments::parse()),
    }
}

fn run(arguments: &Arguments) -> Result<u8> {
    if !rustix::process::geteuid().is_root() {
        bail!("this needs root: it makes loop devices, mounts and rules of block throttling");
    }
    if arguments.also.len() >= VOLUMES_MAX {
        bail!("there can be {VOLUMES_MAX} volumes");
    }
    let disks: Vec<Disk> =
        [&arguments.disk].into_iter().chain(&arguments.also).map(DiskArguments::disk).collect();
    disks.iter().try_for_each(Disk::check)?;
    let stop = Stop::listen()?;
    let run = Run::begin()?;
    let volumes = Volumes::make(&disks, &run, &stop)?;
    let memory = Memory::watch();
    let status = volumes.run(&arguments.command, &stop)?;
    if let Some(verdict) = memory.verdict(status) {
        system::complain(&verdict);
    }
    Ok(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_volume_is_told_by_the_same_options() {
        let disk = another("write-mb=20,sync-ms=1.5,dir=/tmp").unwrap();
        assert_eq!(disk.sync_ms, Some(std::time::Duration::from_micros(1500)));
        assert_eq!((disk.size_mb, disk.dir, disk.limits.is_any()), (4096, "/tmp".into(), true));
        assert!(!another("").unwrap().limits.is_any());
        for wrong in ["write-mb=0", "nonsense=1", "sync-ms", "also=write-mb=1"] {
            assert!(another(wrong).is_err(), "{wrong}");
        }
    }
}
