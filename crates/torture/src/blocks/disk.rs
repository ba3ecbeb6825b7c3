//! A disk that records every change to it, beside others that record theirs in the same order.
//!
//! It is a file in a file system of its own (FUSE), with a loop device over it. So every write and every flush of the
//! file system above arrives here, one after the other.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry, ReplyOpen,
    ReplyWrite, Request, WriteFlags,
};
use terrace::env::sync::Mutex;

use super::image::{Change, SECTOR_BYTES};

/// How long the kernel may rely on attributes, which never change.
const TTL: Duration = Duration::from_secs(3600);

const FILE_INODE: INodeNo = INodeNo(2);
const FILE_NAME: &str = "disk";

/// All changes to the disks of a store.
#[derive(Default)]
pub struct Changes {
    /// Of each disk, in their order.
    pub of: Vec<Vec<Change>>,
    /// The disk of each change, in the order of all.
    pub order: Vec<usize>,
}

impl Changes {
    fn push(&mut self, disk: usize, change: Change) {
        self.of[disk].push(change);
        self.order.push(disk);
    }

    /// The changes to a disk that are among the first so many of all.
    pub fn first(&self, disk: usize, of_all: usize) -> &[Change] {
        let count = self.order[..of_all].iter().filter(|of| **of == disk).count();
        &self.of[disk][..count]
    }
}

/// What the disks of a store write down.
pub type Log = Arc<Mutex<Changes>>;

/// A recorded disk. Its file is removed when this is dropped, which must not happen while somebody uses it.
pub struct Disk {
    _session: BackgroundSession,
    place: PathBuf,
}

impl Disk {
    /// The next disk of `log`. It begins with what is in `image`, and changes it. Its file lies in the directory `place`.
    ///
    /// # Errors
    ///
    /// Fails if FUSE cannot be used.
    pub fn new(image: &Path, place: PathBuf, log: &Log) -> io::Result<Self> {
        let image = File::options().read(true).write(true).open(image)?;
        let bytes = image.metadata()?.len();
        let number = {
            let mut log = log.lock();
            log.of.push(Vec::new());
            log.of.len() - 1
        };
        let mut config = Config::default();
        config.mount_options = vec![MountOption::FSName("terrace-recorded".into())];
        let recorder = Recorder { image, bytes, number, log: Arc::clone(log) };
        let session = fuser::spawn_mount(recorder, &place, &config)?;
        Ok(Self { _session: session, place })
    }

    #[must_use]
    pub fn file(&self) -> PathBuf {
        self.place.join(FILE_NAME)
    }
}

/// The file system. One thread serves it, so that calls have an order.
struct Recorder {
    image: File,
    bytes: u64,
    number: usize,
    log: Log,
}

impl Recorder {
    fn attributes(&self, inode: INodeNo) -> FileAttr {
        let is_file = inode == FILE_INODE;
        let bytes = if is_file { self.bytes } else { 0 };
        FileAttr {
            ino: inode,
            size: bytes,
            blocks: bytes / SECTOR_BYTES as u64,
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

impl Filesystem for Recorder {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if parent == INodeNo::ROOT && name == FILE_NAME {
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
        self.log.lock().push(self.number, Change::Write { offset, data: data.into() });
        match self.image.write_all_at(data, offset) {
            Ok(()) => reply.written(data.len() as u32),
            Err(error) => reply.error(error.into()),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.log.lock().push(self.number, Change::Flush);
        reply.ok();
    }
}
