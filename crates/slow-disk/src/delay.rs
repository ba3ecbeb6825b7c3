//! A file system of one file, whose syncs take a minimum time.
//!
//! A loop device over that file turns every flush of the disk above into an `fsync` of the file. The image is really
//! synced; the answer is held back until the time is over.
//!
//! The answers come from a process of its own, which has not mounted the volume: when the last process with the mount
//! is killed, the kernel unmounts in that process's name, and must not wait for answers from it. Nor may it wait for memory that comes
//! free only when the volume has been written: it is in no memory group of the command's, and the kernel is told what it does, where it may be.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, bail};
use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, LockOwner, OpenFlags,
    ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Request, WriteFlags,
};

use rustix::process::configure_io_flusher_behavior;

use crate::memory;
use crate::system::{Stop, die_with, eventually, own_mounts, this_program};

/// First argument of this program as such a process. Then follow the id of the process that starts it, the image, the
/// place to mount at, and the least duration of a sync in nanoseconds.
pub const ROLE: &str = "--delay-for";

/// Threads that answer the loop device: a sync must not hold up what others read.
const THREADS: usize = 4;

/// How long the kernel may rely on attributes, which never change.
const TTL: Duration = Duration::from_secs(3600);

const FILE_INODE: INodeNo = INodeNo(2);

/// The process; it is killed when this is dropped.
pub struct Delayed {
    process: Child,
    file: PathBuf,
}

impl Delayed {
    /// Starts it for `image`, of which it shows a file of the same name in `place`. Called by the main thread, with which it
    /// dies.
    pub fn start(image: &Path, place: &Path, sync: Duration) -> Result<Self> {
        let mut command = this_program(ROLE);
        command.arg(std::process::id().to_string()).args([image, place]).arg(sync.as_nanos().to_string());
        // What ends the run at a terminal ends it when nobody uses the volume any more.
        command.stdin(Stdio::null()).stdout(Stdio::null()).process_group(0);
        let process = command.spawn().context("cannot start the process that delays syncs")?;
        let name = image.file_name().context("invariant: an image has a name")?;
        // Its mounts are its own.
        let root = Path::new("/proc").join(process.id().to_string()).join("root");
        let file = root.join(place.strip_prefix("/")?).join(name);
        let mut delayed = Self { process, file };
        let is_there = eventually(|| Ok(delayed.process.try_wait()?.is_some() || delayed.file.exists()))?;
        match is_there && delayed.process.try_wait()?.is_none() {
            true => Ok(delayed),
            false => bail!("cannot mount through FUSE"),
        }
    }

    /// The file.
    pub fn file(&self) -> &Path {
        &self.file
    }
}

impl Drop for Delayed {
    fn drop(&mut self) {
        // It may have been killed before.
        let _ = self.process.kill().and_then(|()| self.process.wait());
    }
}

/// Shows `image` as a file in `place` until this process is killed.
pub fn serve(parent: &str, image: &Path, place: &Path, sync: &str) -> Result<()> {
    die_with(parent)?;
    let _survived = Stop::listen()?;
    memory::leave();
    // Before it has threads, which are told as it is. Where that is forbidden, the group has to do.
    let _ = configure_io_flusher_behavior(true);
    own_mounts()?;
    let name = image.file_name().context("no image")?.to_owned();
    let file = File::options().read(true).write(true).open(image)?;
    let mut config = fuser::Config::default();
    config.mount_options = vec![fuser::MountOption::FSName(name.display().to_string())];
    config.n_threads = Some(THREADS);
    config.clone_fd = true;
    let delay = Delay::new(file, name, Duration::from_nanos(sync.parse()?))?;
    Ok(fuser::mount(delay, place, &config)?)
}

/// The file system.
struct Delay {
    image: File,
    name: OsString,
    bytes: u64,
    sync: Duration,
}

impl Delay {
    /// Shows `image` as a file of the given name, whose syncs take at least `sync`.
    fn new(image: File, name: OsString, sync: Duration) -> io::Result<Self> {
        let bytes = image.metadata()?.len();
        Ok(Self { image, name, bytes, sync })
    }

    fn attributes(&self, inode: INodeNo) -> FileAttr {
        let is_file = inode == FILE_INODE;
        FileAttr {
            ino: inode,
            size: if is_file { self.bytes } else { 0 },
            blocks: if is_file { self.bytes / 512 } else { 0 },
            atime: SystemTime::UNIX_EPOCH,
            mtime: SystemTime::UNIX_EPOCH,
            ctime: SystemTime::UNIX_EPOCH,
            crtime: SystemTime::UNIX_EPOCH,
            kind: if is_file { FileType::RegularFile } else { FileType::Directory },
            perm: if is_file { 0o600 } else { 0o700 },
            nlink: if is_file { 1 } else { 2 },
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }
}

impl Filesystem for Delay {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if parent == INodeNo::ROOT && name == self.name {
            reply.entry(&TTL, &self.attributes(FILE_INODE), Generation(0));
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&TTL, &self.attributes(inode));
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::empty());
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let left = self.bytes.saturating_sub(offset);
        let mut buffer = vec![0; u64::from(size).min(left) as usize];
        match self.image.read_exact_at(&mut buffer, offset) {
            Ok(()) => reply.data(&buffer),
            Err(error) => reply.error(error.into()),
        }
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        // A disk does not grow.
        if offset + data.len() as u64 > self.bytes {
            return reply.error(Errno::ENOSPC);
        }
        match self.image.write_all_at(data, offset) {
            Ok(()) => reply.written(data.len() as u32),
            Err(error) => reply.error(error.into()),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        let started = Instant::now();
        let synced = self.image.sync_data();
        std::thread::sleep(self.sync.saturating_sub(started.elapsed()));
        match synced {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(error.into()),
        }
    }
}
