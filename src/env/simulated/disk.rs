//! The file system of the simulated machine: directories of names, and what a power cut leaves of them.
//!
//! Operations are numbered over the whole machine. A sync covers the operations with numbers below the one that was next
//! when the sync began. What else it covers, on the same device, depends on the [`Journal`]: a sync of one device says nothing of
//! another.
//!
//! Limits, which suffice for the engine and its tests: a rename stays within one directory, further names of a file
//! lie in other directories, and directories are never removed.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::contents::Contents;
use super::device::Devices;
use super::inode::{FileOp, Inode};
use super::log::{Log, Lottery, Luck, Survival};
use crate::env::sync::{Mutex, MutexGuard};

/// What a sync makes durable besides its own file or directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Journal {
    /// All names, lengths set and holes of its device, as ext4's journal does. A power cut then keeps a
    /// prefix of the changes to a directory.
    #[default]
    Ext4Like,
    /// Nothing, as in the abstract file system of ALICE (OSDI'14). A power cut then keeps any subset of the changes
    /// to a directory.
    None,
}

/// An inode that names and open handles share.
#[derive(Clone)]
pub(super) struct SharedInode(Arc<Mutex<Inode>>);

impl SharedInode {
    fn new(inode: Inode) -> Self {
        Self(Arc::new(Mutex::new(inode)))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inode> {
        self.0.lock()
    }

    fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

type Names = BTreeMap<String, SharedInode>;

/// A change to a directory.
enum NameOp {
    Create { name: String, inode: SharedInode },
    Remove { name: String },
    Rename { from: String, to: String, inode: SharedInode },
}

impl NameOp {
    fn apply(&self, names: &mut Names) {
        match self {
            Self::Create { name, inode } => {
                names.insert(name.clone(), inode.clone());
            }
            Self::Remove { name } => {
                names.remove(name);
            }
            Self::Rename { from, to, inode } => {
                // A power cut may have kept it under another name.
                if names.get(from).is_some_and(|other| other.is(inode)) {
                    names.remove(from);
                } else {
                    names.retain(|_, other| !other.is(inode));
                }
                names.insert(to.clone(), inode.clone());
            }
        }
    }
}

#[derive(Default)]
struct Directory {
    visible: Names,
    durable: Names,
    log: Log<NameOp>,
    /// Whether the name of the directory itself is durable.
    anchored: bool,
}

impl Directory {
    fn apply(&mut self, number: u64, op: NameOp) {
        let gone = match &op {
            NameOp::Create { inode, .. } => {
                inode.lock().links += 1;
                None
            }
            NameOp::Remove { name } => self.visible.get(name),
            NameOp::Rename { to, inode, .. } => self.visible.get(to).filter(|other| !other.is(inode)),
        };
        if let Some(inode) = gone {
            inode.lock().links -= 1;
        }
        op.apply(&mut self.visible);
        self.log.push(number, op);
    }

    fn sync(&mut self, end: u64) {
        self.log.sync(end, |_| true);
        for op in self.log.take_settled() {
            op.apply(&mut self.durable);
        }
    }

    fn remains(&self, journal: Journal, lottery: &mut Lottery) -> Names {
        let mut names = self.durable.clone();
        match journal {
            Journal::Ext4Like => self.log.surviving_prefix(lottery).for_each(|op| op.apply(&mut names)),
            Journal::None => {
                let kept = self.log.survivors(lottery).into_iter().filter(|(_, luck)| *luck == Luck::Kept);
                kept.for_each(|(op, _)| op.apply(&mut names));
            }
        }
        names
    }
}

/// All directories of the machine, by absolute name.
pub(super) struct Disk {
    journal: Journal,
    directories: BTreeMap<PathBuf, Directory>,
    /// Inodes with metadata operations that no sync has covered, as far as the journal cares.
    dirty_metadata: Vec<SharedInode>,
    next_number: u64,
}

impl Disk {
    pub(super) fn new(journal: Journal) -> Self {
        let root = Directory { anchored: true, ..Directory::default() };
        let directories = BTreeMap::from([(PathBuf::from("/"), root)]);
        Self { journal, directories, dirty_metadata: Vec::new(), next_number: 0 }
    }

    /// The number of the next operation.
    pub(super) fn next_number(&self) -> u64 {
        self.next_number
    }

    fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number - 1
    }

    fn directory(&mut self, dir: &Path) -> io::Result<&mut Directory> {
        self.directories.get_mut(dir).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// The directory that holds `path`, and the name in it.
    fn parent<'a>(&mut self, path: &'a Path) -> io::Result<(&mut Directory, &'a str)> {
        if self.directories.contains_key(path) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let (Some(dir), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        Ok((self.directory(dir)?, name))
    }

    /// Whether `dir` is a directory.
    pub(super) fn has_directory(&self, dir: &Path) -> bool {
        self.directories.contains_key(dir)
    }

    /// Creates a directory and its parents. Their names are durable from the start or, in an interrupted call, not.
    pub(super) fn create_dir(&mut self, dir: &Path, anchored: bool) -> io::Result<()> {
        for ancestor in dir.ancestors() {
            if !self.has_directory(ancestor) && self.find(ancestor).is_ok() {
                return Err(io::ErrorKind::NotADirectory.into());
            }
        }
        for ancestor in dir.ancestors() {
            self.directories.entry(ancestor.to_path_buf()).or_default().anchored |= anchored;
        }
        Ok(())
    }

    pub(super) fn list(&mut self, dir: &Path) -> io::Result<Vec<String>> {
        let mut names: Vec<String> = self.directory(dir)?.visible.keys().cloned().collect();
        let inner = self.directories.keys().filter(|path| path.parent() == Some(dir));
        names.extend(inner.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())));
        Ok(names)
    }

    pub(super) fn find(&mut self, path: &Path) -> io::Result<SharedInode> {
        let (parent, name) = self.parent(path)?;
        parent.visible.get(name).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    pub(super) fn create(&mut self, path: &Path, devices: &Devices) -> io::Result<SharedInode> {
        let number = self.number();
        if self.has_directory(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let (parent, name) = self.parent(path)?;
        if parent.visible.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let inode = SharedInode::new(Inode::new(number, Arc::default(), devices.used(path)));
        parent.apply(number, NameOp::Create { name: name.to_owned(), inode: inode.clone() });
        Ok(inode)
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let inode = self.find(from)?;
        if from.parent() != to.parent() {
            return Err(io::ErrorKind::CrossesDevices.into());
        }
        let number = self.number();
        let (_, from) = self.parent(from)?;
        let (parent, to) = self.parent(to)?;
        parent.apply(number, NameOp::Rename { from: from.to_owned(), to: to.to_owned(), inode });
        Ok(())
    }

    pub(super) fn remove(&mut self, path: &Path) -> io::Result<SharedInode> {
        let inode = self.find(path)?;
        let number = self.number();
        let (parent, name) = self.parent(path)?;
        parent.apply(number, NameOp::Remove { name: name.to_owned() });
        Ok(inode)
    }

    /// Gives a file another name, in another directory.
    pub(super) fn link(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let inode = self.find(from)?;
        if from.parent() == to.parent() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let number = self.number();
        let (parent, to) = self.parent(to)?;
        if parent.visible.contains_key(to) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        parent.apply(number, NameOp::Create { name: to.to_owned(), inode });
        Ok(())
    }

    /// Changes a file, not yet durably.
    pub(super) fn change(&mut self, inode: &SharedInode, op: FileOp) {
        let number = self.number();
        // Without a journal no other file's sync covers it, and nobody need hold on to a file that is removed.
        if op.is_metadata() && self.journal == Journal::Ext4Like {
            self.dirty_metadata.push(inode.clone());
        }
        inode.lock().apply(number, op);
    }

    /// Makes what was done to a file before operation `end` durable.
    pub(super) fn sync(&mut self, inode: &SharedInode, end: u64, devices: &Devices) {
        let used = {
            let mut inode = inode.lock();
            inode.sync(end);
            inode.device_used().clone()
        };
        self.commit(end, devices, &used);
    }

    /// Makes what was done to the names in `dir` before operation `end` durable.
    pub(super) fn sync_dir(&mut self, dir: &Path, end: u64, devices: &Devices) -> io::Result<()> {
        self.directory(dir)?.sync(end);
        self.commit(end, devices, devices.used(dir));
        Ok(())
    }

    /// Flushes of the device that the next sync of `dir` takes.
    pub(super) fn flushes_of_dir(&self, dir: &Path) -> u32 {
        let is_changed = self.directories.get(dir).is_some_and(|dir| dir.log.dirty().next().is_some());
        if is_changed { 2 } else { 0 }
    }

    /// A sync of `dir` has failed.
    pub(super) fn abandon_dir(&mut self, dir: &Path, end: u64) -> io::Result<()> {
        self.directory(dir)?.log.abandon(end, |_| true);
        Ok(())
    }

    /// What the journal of a device adds to a sync. The device is the one that counts its bytes in `used`.
    fn commit(&mut self, end: u64, devices: &Devices, used: &Arc<AtomicU64>) {
        if self.journal == Journal::Ext4Like {
            for (path, dir) in self.directories.iter_mut().filter(|(_, dir)| !dir.log.is_empty()) {
                if Arc::ptr_eq(devices.used(path), used) {
                    dir.sync(end);
                }
            }
            for inode in &self.dirty_metadata {
                let mut inode = inode.lock();
                if Arc::ptr_eq(inode.device_used(), used) {
                    inode.sync_metadata(end);
                }
            }
        }
        self.dirty_metadata.retain(|inode| inode.lock().has_dirty_metadata());
    }

    /// What a power cut leaves of this disk, on the new devices `devices`.
    pub(super) fn remains(&self, survival: Survival, devices: &Devices) -> Self {
        let mut lottery = Lottery::new(survival);
        let mut remains = Self::new(self.journal);
        for (path, directory) in &self.directories {
            let reachable = path.parent().is_none_or(|parent| remains.has_directory(parent));
            if !reachable || !directory.anchored && !lottery.keeps_part() {
                continue;
            }
            let mut names = Names::new();
            for (name, inode) in directory.remains(self.journal, &mut lottery) {
                let contents: Arc<Contents> = inode.lock().remains(&mut lottery);
                let number = remains.next_number;
                remains.next_number += 1;
                let mut inode = Inode::new(number, contents, devices.used(path));
                inode.links = 1;
                names.insert(name, SharedInode::new(inode));
            }
            let survivor =
                Directory { visible: names.clone(), durable: names, log: Log::default(), anchored: true };
            remains.directories.insert(path.clone(), survivor);
        }
        remains
    }

    /// Every file and its length, in bytes.
    pub(super) fn files(&self) -> Vec<(PathBuf, u64)> {
        let mut files = Vec::new();
        for (path, directory) in &self.directories {
            let found = directory.visible.iter();
            files.extend(found.map(|(name, inode)| (path.join(name), inode.lock().contents().len())));
        }
        files
    }
}
