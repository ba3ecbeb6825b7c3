//! What the kernel does for a file that is written past the page cache: the interface between [`Stream`](crate::stream::Stream)
//! and the ring, so that tests can put failures between them.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// Length of a buffer, and of most writes, in bytes. Four in flight are what the store lets be on its way to a disk.
pub(crate) const PIECE_BYTES: usize = 512 << 10;

/// A write that has ended.
#[derive(Debug)]
pub(crate) struct Completion {
    /// The number of the buffer, which is the caller's again.
    pub(crate) at: usize,
    /// How many bytes were written.
    pub(crate) result: io::Result<usize>,
}

/// Buffers, and writes from them that go on while the caller does.
///
/// An error of a method, other than one in a [`Completion`], says that nothing more is known of the writes in flight.
pub(crate) trait Kernel: Send {
    /// Number of buffers, each of [`PIECE_BYTES`].
    fn pieces(&self) -> usize;

    /// The contents of a buffer, also while it is being written.
    fn buffer(&self, at: usize) -> &[u8];

    /// The same, to be filled. Panics while it is being written.
    fn buffer_mut(&mut self, at: usize) -> &mut [u8];

    /// Queues a write of the `part` of a buffer to `file`. The buffer is the kernel's until its completion is taken.
    fn write(&mut self, at: usize, part: Range<usize>, file: &Arc<File>, offset: u64) -> io::Result<()>;

    /// Hands over what is queued.
    fn submit(&mut self) -> io::Result<()>;

    /// Takes a completion; with `wait`, hands over what is queued and waits for one. `None` if there is none (with `wait`: if
    /// nothing is in flight).
    fn take(&mut self, wait: bool) -> io::Result<Option<Completion>>;

    /// Takes storage for `range` of `file`, whose length grows to the end of it. What was written there stays.
    fn reserve(&mut self, file: &File, range: Range<u64>) -> io::Result<()>;
}
