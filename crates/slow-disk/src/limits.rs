//! Limits on bandwidth and operations per second: rules of the kernel's block throttling for one device.
//!
//! In version 1 of cgroups a rule of a group holds for the requests that are made on behalf of its members. Writeback and
//! the journal are the work of kernel threads, which are in the root group. So the rules go to the root group, for this
//! one device alone, and the command runs in it: all requests to the device share one budget, and none gets around it. In
//! version 2 the root group has no rules; the command gets a group of its own, to which the kernel accounts the
//! writeback of its files, but not the journal.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::system::{eventually, mounts};

/// Limits; none where there is no number.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct Limits {
    /// Most megabytes written a second
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    write_mb: Option<u64>,

    /// Most megabytes read a second
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    read_mb: Option<u64>,

    /// Most write requests a second
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    write_iops: Option<u64>,

    /// Most read requests a second
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    read_iops: Option<u64>,
}

/// Where rules are made.
#[derive(Clone, Debug)]
pub enum Throttle {
    /// Version 1: the root group.
    Root(PathBuf),
    /// Version 2: a group of the command's own.
    Own(PathBuf),
}

impl Limits {
    /// Whether there is any.
    pub fn is_any(&self) -> bool {
        self.rules().iter().any(|(_, _, limit)| limit.is_some())
    }

    /// Name of the file of version 1, key of version 2, limit.
    fn rules(&self) -> [(&'static str, &'static str, Option<u64>); 4] {
        let bytes = |megabytes: Option<u64>| megabytes.map(|megabytes| megabytes * 1_000_000);
        [
            ("write_bps", "wbps", bytes(self.write_mb)),
            ("read_bps", "rbps", bytes(self.read_mb)),
            ("write_iops", "wiops", self.write_iops),
            ("read_iops", "riops", self.read_iops),
        ]
    }
}

impl Throttle {
    /// Finds out which version there is; `name` is that of the group, if one has to be made.
    pub fn find(name: &str) -> Result<Self> {
        let mounts = mounts()?;
        let first = mounts
            .iter()
            .find(|mount| mount.kind == "cgroup" && mount.options.iter().any(|one| one == "blkio"));
        if let Some(mount) = first {
            return Ok(Self::Root(mount.place.clone()));
        }
        for mount in mounts.iter().filter(|mount| mount.kind == "cgroup2") {
            let controllers = fs::read_to_string(mount.place.join("cgroup.controllers"))?;
            if controllers.split_whitespace().any(|controller| controller == "io") {
                return Ok(Self::Own(mount.place.join(name)));
            }
        }
        bail!(
            "no cgroup controller for block devices: neither blkio (version 1) nor io (version 2) is mounted"
        )
    }

    /// Makes these limits those of the device with the given numbers, in place of any that an earlier device of the same
    /// numbers had.
    pub fn limit(&self, device: &str, limits: &Limits) -> Result<()> {
        match self {
            Self::Root(group) => {
                for (name, _, limit) in limits.rules() {
                    // No limit is written as 0.
                    let rule = format!("{device} {}", limit.unwrap_or(0));
                    write(&group.join(format!("blkio.throttle.{name}_device")), &rule)?;
                }
                Ok(())
            }
            Self::Own(group) => {
                let parent = group.parent().context("invariant: a group has a parent")?;
                write(&parent.join("cgroup.subtree_control"), "+io")?;
                fs::create_dir_all(group)?;
                write(&group.join("io.max"), &line(device, limits))
            }
        }
    }

    /// Takes the limits of the device away, and the group that was made for them. The kernel forgets rules with their
    /// device, but a loop device outlives what it was attached to.
    pub fn lift(&self, device: &str) -> Result<()> {
        match self {
            Self::Root(_) if !Path::new("/sys/dev/block").join(device).exists() => Ok(()),
            Self::Root(_) => self.limit(device, &Limits::default()),
            // Its members may still be dying.
            Self::Own(group) => match eventually(|| Ok(!group.exists() || fs::remove_dir(group).is_ok()))? {
                true => Ok(()),
                false => bail!("{} has members", group.display()),
            },
        }
    }

    /// File that a process writes its id to, to be limited.
    pub fn members(&self) -> PathBuf {
        let (Self::Root(group) | Self::Own(group)) = self;
        group.join("cgroup.procs")
    }
}

/// The line of version 2.
fn line(device: &str, limits: &Limits) -> String {
    let mut line = device.to_owned();
    for (_, key, limit) in limits.rules() {
        let limit = limit.map_or_else(|| "max".to_owned(), |limit| limit.to_string());
        // Writing to a string cannot fail.
        let _ = write!(line, " {key}={limit}");
    }
    line
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {text:?} to {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_both_versions_name_all_four() {
        let limits = Limits { write_mb: Some(20), read_iops: Some(100), ..Limits::default() };
        assert_eq!(line("7:0", &limits), "7:0 wbps=20000000 rbps=max wiops=max riops=100");
        let dir = tempfile::tempdir().unwrap();
        Throttle::Root(dir.path().to_owned()).limit("7:0", &limits).unwrap();
        let rule = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
        assert_eq!(rule("blkio.throttle.write_bps_device"), "7:0 20000000");
        assert_eq!(rule("blkio.throttle.read_bps_device"), "7:0 0");
        assert_eq!(rule("blkio.throttle.read_iops_device"), "7:0 100");
        assert!(limits.is_any() && !Limits::default().is_any());
    }
}
