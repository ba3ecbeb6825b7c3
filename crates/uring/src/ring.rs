//! The ring: an io_uring and the buffers that it writes from. The only module here with `unsafe`.
//!
//! # Why it is sound
//!
//! **Who owns a buffer.** Each buffer is an allocation of its own, of [`PIECE_BYTES`], which stays at its address until
//! the [`Ring`] drops. [`Ring::write`] hands it to the kernel and notes the file in `target`; the completion, taken in
//! [`Ring::take`], hands it back and clears `target`. In between the kernel only reads it. So a shared slice
//! ([`Ring::buffer`]) is given out at any time, and an exclusive one ([`Ring::buffer_mut`]) only while `target` is empty. A
//! completion names its buffer by its number, and only what [`Ring::write`] has queued can complete.
//!
//! **The file** stays open as long as the kernel may look at its descriptor: `target` holds it.
//!
//! **A drop in flight** waits until the kernel has handed every buffer back. If it cannot wait, since the ring itself fails,
//! the buffers are never freed. A ring that is forgotten frees nothing either.
//!
//! **Room.** The submission queue has an entry for each buffer, and a buffer is at most once in it.
//!
//! Registered buffers are the same memory. The kernel keeps its pages until the ring is closed, and touches them for a write
//! alone.
#![expect(
    unsafe_code,
    reason = "memory that the kernel reads while the program goes on; see the module header"
)]

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::Arc;

use io_uring::{IoUring, opcode, types};
use rustix::fs::{FallocateFlags, fallocate};

use crate::kernel::{Completion, Kernel, PIECE_BYTES};

/// Buffers of a ring: four that are being written, and two that are filled meanwhile.
pub(crate) const PIECES: usize = 6;

/// Alignment of a buffer in memory, in bytes: no device asks for more than the largest page of any processor.
pub(crate) const BUFFER_ALIGN: usize = 64 << 10;

/// A completion that belongs to no buffer.
const PROBE: u64 = u64::MAX;

/// So often in a row the kernel may have no memory for a request.
const BUSY_MAX: u32 = 10_000;

const LAYOUT: Layout = match Layout::from_size_align(PIECE_BYTES, BUFFER_ALIGN) {
    Ok(layout) => layout,
    Err(_) => panic!("the alignment is a power of two"),
};

/// Memory of [`PIECE_BYTES`], initialised.
struct Buffer(NonNull<u8>);

// SAFETY: it is the only owner of its memory.
unsafe impl Send for Buffer {}

impl Buffer {
    fn new() -> Self {
        // SAFETY: the layout is not of length 0.
        let start = unsafe { alloc_zeroed(LAYOUT) };
        Self(NonNull::new(start).unwrap_or_else(|| handle_alloc_error(LAYOUT)))
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and its owner is done with it.
        unsafe { dealloc(self.0.as_ptr(), LAYOUT) };
    }
}

/// A buffer, and the file to which the kernel writes it, if it does.
struct Piece {
    buffer: Buffer,
    target: Option<Arc<File>>,
}

/// An io_uring and its buffers.
pub(crate) struct Ring {
    ring: IoUring,
    pieces: Vec<Piece>,
    /// Whether the kernel has the buffers' pages at hand. It refuses where a process may lock less memory.
    is_registered: bool,
}

impl Ring {
    /// A ring that has been seen to work.
    ///
    /// # Errors
    /// Whatever the kernel refuses it with: `ENOSYS`, `EPERM`, `ENOMEM`.
    pub(crate) fn new() -> io::Result<Self> {
        let ring = IoUring::new(PIECES.next_power_of_two() as u32)?;
        let pieces: Vec<_> = (0..PIECES).map(|_| Piece { buffer: Buffer::new(), target: None }).collect();
        let mut ring = Self { ring, pieces, is_registered: false };
        ring.probe()?;
        ring.is_registered = ring.register();
        Ok(ring)
    }

    /// A filter of system calls may let a ring be made, and none be used.
    fn probe(&mut self) -> io::Result<()> {
        let nothing = opcode::Nop::new().build().user_data(PROBE);
        // SAFETY: it refers to no memory and no file.
        unsafe { self.ring.submission().push(&nothing) }.map_err(io::Error::other)?;
        self.enter(1)?;
        let done = self.ring.completion().next();
        match done.filter(|done| done.user_data() == PROBE).map(|done| done.result()) {
            Some(0) => Ok(()),
            found => Err(io::Error::other(format!("io_uring answers {found:?} to a request for nothing"))),
        }
    }

    fn register(&self) -> bool {
        let buffers: Vec<_> = self
            .pieces
            .iter()
            .map(|piece| libc::iovec { iov_base: piece.buffer.0.as_ptr().cast(), iov_len: PIECE_BYTES })
            .collect();
        // SAFETY: the memory stays until the ring drops.
        unsafe { self.ring.submitter().register_buffers(&buffers) }.is_ok()
    }

    fn is_in_flight(&self) -> bool {
        self.pieces.iter().any(|piece| piece.target.is_some())
    }

    /// Hands over all that is queued; returns once at least `completions` have come.
    fn enter(&self, completions: usize) -> io::Result<()> {
        let mut busy = 0;
        loop {
            let error = match self.ring.submitter().submit_and_wait(completions) {
                Ok(_) => return Ok(()),
                Err(error) => error,
            };
            match error.raw_os_error() {
                Some(libc::EINTR) => {}
                Some(libc::EAGAIN | libc::EBUSY) if busy < BUSY_MAX => {
                    busy += 1;
                    std::thread::yield_now();
                }
                _ => return Err(error),
            }
        }
    }
}

impl Kernel for Ring {
    fn pieces(&self) -> usize {
        self.pieces.len()
    }

    fn buffer(&self, at: usize) -> &[u8] {
        // SAFETY: so much is there, initialised. It is changed only through `buffer_mut`, which borrows all of `self`.
        unsafe { std::slice::from_raw_parts(self.pieces[at].buffer.0.as_ptr(), PIECE_BYTES) }
    }

    fn buffer_mut(&mut self, at: usize) -> &mut [u8] {
        let piece = &mut self.pieces[at];
        assert!(piece.target.is_none(), "the kernel has buffer {at}");
        // SAFETY: so much is there, initialised; the kernel does not have it, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(piece.buffer.0.as_ptr(), PIECE_BYTES) }
    }

    fn write(&mut self, at: usize, part: Range<usize>, file: &Arc<File>, offset: u64) -> io::Result<()> {
        let bytes = &self.buffer(at)[part];
        let (start, length) = (bytes.as_ptr(), bytes.len() as u32);
        let piece = &mut self.pieces[at];
        assert!(piece.target.is_none(), "the kernel has buffer {at}");
        let fd = types::Fd(file.as_raw_fd());
        let entry = if self.is_registered {
            opcode::WriteFixed::new(fd, start, length, at as u16).offset(offset).build()
        } else {
            opcode::Write::new(fd, start, length).offset(offset).build()
        };
        // SAFETY: the memory lies in a buffer that stays, and nobody changes, until the completion is taken, as the file stays
        // open: see the module header.
        unsafe { self.ring.submission().push(&entry.user_data(at as u64)) }.map_err(io::Error::other)?;
        piece.target = Some(file.clone());
        Ok(())
    }

    fn submit(&mut self) -> io::Result<()> {
        self.enter(0)
    }

    fn take(&mut self, wait: bool) -> io::Result<Option<Completion>> {
        loop {
            let done = self.ring.completion().next();
            if let Some(done) = done {
                let at = usize::try_from(done.user_data()).unwrap_or(usize::MAX);
                let Some(piece) = self.pieces.get_mut(at) else { continue };
                piece.target = None;
                let result = match usize::try_from(done.result()) {
                    Ok(bytes) => Ok(bytes),
                    Err(_) => Err(io::Error::from_raw_os_error(-done.result())),
                };
                return Ok(Some(Completion { at, result }));
            }
            if !wait || !self.is_in_flight() {
                return Ok(None);
            }
            self.enter(1)?;
        }
    }

    fn reserve(&mut self, file: &File, range: Range<u64>) -> io::Result<()> {
        let length = range.end - range.start;
        let reserve = || fallocate(file, FallocateFlags::empty(), range.start, length);
        rustix::io::retry_on_intr(reserve).map_err(io::Error::from)
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        while self.is_in_flight() {
            if !matches!(self.take(true), Ok(Some(_))) {
                // The kernel may still read them.
                std::mem::forget(std::mem::take(&mut self.pieces));
            }
        }
    }
}

#[cfg(test)]
mod tests;
