//! A file system of one file, whose syncs take their time.
//!
//! A loop device over that file hands every flush of the disk above it to this process as an `fsync`. The image is synced
//! for real; the answer is held back until the sync has lasted as long as it must.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant, SystemTime};

use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, LockOwner, OpenFlags,
    ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Request, WriteFlags,
};

/// Name of the file.
pub const FILE: &str = "disk";

/// How long the kernel may rely on attributes, which never change.
const TTL: Duration = Duration::from_secs(3600);

const FILE_INODE: INodeNo = INodeNo(2);

/// The file system.
pub struct Delay {
    image: File,
    bytes: u64,
    sync: Duration,
}

impl Delay {
    /// Shows `image` as a file whose syncs take at least `sync`.
    pub fn new(image: File, sync: Duration) -> io::Result<Self> {
        let bytes = image.metadata()?.len();
        Ok(Self { image, bytes, sync })
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
        if parent == INodeNo::ROOT && name == FILE {
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
