//! An inode: a file without its name. It has the contents that readers see, the durable contents, and the log between
//! the two.
//!
//! Invariant: the contents that readers see are the durable contents with the whole log applied.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::contents::Contents;
use super::log::{Log, Lottery, Luck};

/// Unit that a device writes whole or not at all, in bytes.
const SECTOR: u64 = 512;

/// A change to a file.
pub(super) enum FileOp {
    Write { offset: u64, bytes: Box<[u8]> },
    SetLen(u64),
    Punch { offset: u64, len: u64 },
}

impl FileOp {
    /// Whether the operation is one of the file system's metadata rather than of the file's data.
    pub(super) fn is_metadata(&self) -> bool {
        !matches!(self, Self::Write { .. })
    }

    /// Whether it writes any byte of `range`.
    fn writes_to(&self, range: &Range<u64>) -> bool {
        match self {
            Self::Write { offset, bytes } => {
                *offset < range.end && range.start < offset.saturating_add(bytes.len() as u64)
            }
            Self::SetLen(_) | Self::Punch { .. } => false,
        }
    }

    fn apply(&self, contents: &mut Contents) {
        match self {
            Self::Write { offset, bytes } => contents.write(*offset, bytes),
            Self::SetLen(len) => contents.set_len(*len),
            Self::Punch { offset, len } => contents.punch(*offset, *len),
        }
    }

    /// Applies some of a write's sectors; the length may have been extended for all of them.
    fn apply_torn(&self, contents: &mut Contents, lottery: &mut Lottery) {
        let Self::Write { offset, bytes } = self else { return };
        let end = offset + bytes.len() as u64;
        let mut start = *offset;
        while start < end {
            let next = (start + 1).next_multiple_of(SECTOR).min(end);
            if lottery.keeps_part() {
                contents.write(start, &bytes[(start - offset) as usize..(next - offset) as usize]);
            }
            start = next;
        }
        if contents.len() < end && lottery.keeps_part() {
            contents.set_len(end);
        }
    }
}

/// A file, whatever its name.
pub(super) struct Inode {
    /// No other inode of the disk has or had it.
    pub(super) number: u64,
    visible: Arc<Contents>,
    durable: Arc<Contents>,
    log: Log<FileOp>,
    /// Names that readers see.
    pub(super) links: u64,
    /// Bytes of storage occupied on the inode's device, by all its inodes together.
    device_used: Arc<AtomicU64>,
}

impl Inode {
    /// Where the inode's device counts its bytes.
    pub(super) fn device_used(&self) -> &Arc<AtomicU64> {
        &self.device_used
    }

    /// A file without a name whose `contents` are durable.
    pub(super) fn new(number: u64, contents: Arc<Contents>, device_used: &Arc<AtomicU64>) -> Self {
        device_used.fetch_add(contents.allocated(), Ordering::Relaxed);
        let device_used = Arc::clone(device_used);
        Self {
            number,
            visible: Arc::clone(&contents),
            durable: contents,
            log: Log::default(),
            links: 0,
            device_used,
        }
    }

    /// What readers see.
    pub(super) fn contents(&self) -> &Contents {
        &self.visible
    }

    /// Changes what readers see, not yet durably.
    pub(super) fn apply(&mut self, number: u64, op: FileOp) {
        self.edit_visible(|contents| op.apply(contents));
        self.log.push(number, op);
    }

    /// Changes the stored bytes behind the file system's back.
    pub(super) fn tamper(&mut self, op: &FileOp) {
        self.edit_visible(|contents| op.apply(contents));
        op.apply(Arc::make_mut(&mut self.durable));
    }

    fn edit_visible(&mut self, edit: impl FnOnce(&mut Contents)) {
        let before = self.visible.allocated();
        edit(Arc::make_mut(&mut self.visible));
        self.device_used.fetch_add(self.visible.allocated(), Ordering::Relaxed);
        self.device_used.fetch_sub(before, Ordering::Relaxed);
    }

    /// Bytes that the next sync writes.
    pub(super) fn dirty_bytes(&self) -> u64 {
        let lens = self.log.dirty().map(|op| match op {
            FileOp::Write { bytes, .. } => bytes.len() as u64,
            FileOp::SetLen(_) | FileOp::Punch { .. } => 0,
        });
        lens.sum()
    }

    /// Flushes of the device that the next sync takes: one for the data, and one more to commit the journal where a journal
    /// knows of the change.
    pub(super) fn flushes(&self) -> u32 {
        let extent = |contents: &Contents| (contents.len(), contents.allocated());
        match self.log.dirty().next() {
            None => 0,
            Some(_) if extent(&self.visible) == extent(&self.durable) && !self.has_dirty_metadata() => 1,
            Some(_) => 2,
        }
    }

    /// Whether a metadata operation waits for a sync.
    pub(super) fn has_dirty_metadata(&self) -> bool {
        self.log.dirty().any(FileOp::is_metadata)
    }

    /// Makes the operations with numbers below `end` durable.
    pub(super) fn sync(&mut self, end: u64) {
        self.log.sync(end, |_| true);
        self.settle();
    }

    /// Makes the metadata operations with numbers below `end` durable.
    pub(super) fn sync_metadata(&mut self, end: u64) {
        self.log.sync(end, FileOp::is_metadata);
        self.settle();
    }

    /// A sync has failed: the operations with numbers below `end` stay visible and are never written.
    pub(super) fn abandon(&mut self, end: u64) {
        self.log.abandon(end, |_| true);
    }

    /// A write-back of `range` has failed: what was written there stays visible and is never written.
    pub(super) fn abandon_range(&mut self, range: &Range<u64>) {
        self.log.abandon(u64::MAX, |op| op.writes_to(range));
    }

    fn settle(&mut self) {
        // With the whole log durable, what readers see is durable: share its pages instead of copying bytes.
        let share = self.log.all_synced();
        for op in self.log.take_settled() {
            let durable = Arc::make_mut(&mut self.durable);
            match &op {
                FileOp::Write { offset, bytes } if share => {
                    durable.adopt(&self.visible, *offset, bytes.len())
                }
                _ => op.apply(durable),
            }
        }
    }

    /// What a power cut leaves.
    pub(super) fn remains(&self, lottery: &mut Lottery) -> Arc<Contents> {
        let mut remains = Arc::clone(&self.durable);
        for (op, luck) in self.log.survivors(lottery) {
            match luck {
                Luck::Kept => op.apply(Arc::make_mut(&mut remains)),
                Luck::Torn => op.apply_torn(Arc::make_mut(&mut remains), lottery),
                Luck::Lost => {}
            }
        }
        remains
    }
}

impl Drop for Inode {
    fn drop(&mut self) {
        self.device_used.fetch_sub(self.visible.allocated(), Ordering::Relaxed);
    }
}
