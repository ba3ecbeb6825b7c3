//! Volumes of the operating system, for tests that may mount them.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

/// Tries to unmount, within a minute at least: somebody may still be looking at the volume.
const UNMOUNT_TRIES: u32 = 3000;

/// Size of a volume that every file system fits in, in bytes: XFS makes none that is smaller.
pub const LARGE_BYTES: u64 = 320 << 20;

/// File systems.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// In memory.
    Tmpfs,
    /// In a file, by a loop device.
    Ext4,
    /// The same.
    Xfs,
}

impl Kind {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Tmpfs => "tmpfs",
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
        }
    }

    /// Makes such a file system in `image`.
    ///
    /// # Errors
    ///
    /// Fails with what the tool says.
    pub fn format(self, image: &Path) -> io::Result<()> {
        match self {
            Self::Tmpfs => Ok(()),
            Self::Ext4 => tool(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(image)),
            Self::Xfs => tool(Command::new("mkfs.xfs").args(["-q", "-f"]).arg(image)),
        }
    }
}

/// A volume of its own, unmounted when dropped.
pub struct Volume {
    kind: Kind,
    /// Where it is mounted, beside the file that it lies in, if it does.
    dir: tempfile::TempDir,
    image: PathBuf,
    /// Options of the mount.
    options: String,
}

impl Volume {
    /// A new file system of this many bytes, if this process may mount one.
    #[must_use]
    pub fn mount(kind: Kind, bytes: u64) -> Option<Self> {
        let options = if kind == Kind::Tmpfs { format!("size={bytes}") } else { String::new() };
        Self::mount_with(kind, bytes, options).ok()
    }

    /// The same, with these options of the mount.
    ///
    /// # Errors
    ///
    /// Fails with what the tools say.
    pub fn mount_with(kind: Kind, bytes: u64, options: String) -> io::Result<Self> {
        let dir = tempfile::tempdir()?;
        let image = dir.path().join("image");
        if kind != Kind::Tmpfs {
            File::create(&image)?.set_len(bytes)?;
            kind.format(&image)?;
        }
        Self::mount_image(kind, dir, image, options)
    }

    /// What is in the file `image`, mounted beside it in `dir`.
    ///
    /// # Errors
    ///
    /// Fails with what the tools say.
    pub fn mount_image(
        kind: Kind,
        dir: tempfile::TempDir,
        image: PathBuf,
        options: String,
    ) -> io::Result<Self> {
        fs::create_dir(dir.path().join("volume"))?;
        mount(kind, &image, &dir.path().join("volume"), &options)?;
        Ok(Self { kind, dir, image, options })
    }

    /// Where it is mounted.
    #[must_use]
    pub fn place(&self) -> PathBuf {
        self.dir.path().join("volume")
    }

    /// The file system stops at once, as if the power had gone: what is not in its journal is lost, and everything fails.
    ///
    /// # Errors
    ///
    /// Fails with what the tool says.
    pub fn cut(&self) -> io::Result<()> {
        tool(Command::new("xfs_io").args(["-x", "-c", "shutdown"]).arg(self.place()))
    }

    /// Unmounts and mounts it, for which the kernel replays its journal.
    ///
    /// # Errors
    ///
    /// Fails with what the tools say.
    pub fn mount_again(&self) -> io::Result<()> {
        unmount(&self.place())?;
        mount(self.kind, &self.image, &self.place(), &self.options)
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        let _ = unmount(&self.place());
    }
}

fn mount(kind: Kind, image: &Path, place: &Path, options: &str) -> io::Result<()> {
    let mut mount = Command::new("mount");
    let lies_in_a_file = kind != Kind::Tmpfs;
    let of_loops = lies_in_a_file.then_some("loop");
    let options: Vec<_> = [options].into_iter().filter(|option| !option.is_empty()).chain(of_loops).collect();
    let source = if lies_in_a_file { image } else { Path::new("terrace-test") };
    tool(mount.args(["-t", kind.name(), "-o", &options.join(",")]).arg(source).arg(place))
}

fn unmount(place: &Path) -> io::Result<()> {
    let mut tries = 0;
    loop {
        let unmounted = tool(Command::new("umount").arg(place));
        tries += 1;
        if unmounted.is_ok() || tries == UNMOUNT_TRIES {
            return unmounted;
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// Runs a tool.
pub(crate) fn tool(command: &mut Command) -> io::Result<()> {
    let output = command.output()?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            Err(io::Error::other(format!("{command:?}: {said}")))
        }
    }
}
