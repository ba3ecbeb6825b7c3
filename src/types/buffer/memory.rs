//! Memory for chunks, and where it comes from.
//!
//! That of many frames is mapped, which costs a page fault at the first touch of each page. A heap may have had it in use before, and
//! must write zeros over all of it: whoever asked for the first frame of half a mebibyte waited for all of its pages, for up to
//! 0.7 ms, and so did those behind. What of it is not in use goes back to the system at once, too.
#![expect(unsafe_code, reason = "memory that is no value's; see each use")]

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use super::{FRAME_ALIGN, HEADER_BYTES, Header};

/// Memory for a chunk, all of it initialised, counted in a total, if it has one, for as long as it is there.
#[derive(Debug)]
pub(crate) struct Memory {
    start: NonNull<u8>,
    bytes: usize,
    origin: Origin,
    total: Option<Arc<AtomicU64>>,
}

/// Who has given memory, and gets it back.
#[derive(Debug)]
enum Origin {
    /// The allocator, by this layout.
    Heap(Layout),
    /// The system, as whole pages.
    #[cfg(not(miri))]
    System,
}

// SAFETY: it is the only owner of what it lies in.
unsafe impl Send for Memory {}
// SAFETY: nothing can be done through a shared reference but to read its fields.
unsafe impl Sync for Memory {}

impl Memory {
    /// For many frames.
    pub(crate) fn zeroed(bytes: usize, total: &Arc<AtomicU64>) -> Self {
        total.fetch_add(bytes as u64, Relaxed);
        let total = Some(total.clone());
        #[cfg(not(miri))]
        if let Some(start) = mapped(bytes) {
            return Self { start, bytes, origin: Origin::System, total };
        }
        Self::of_heap(bytes, FRAME_ALIGN, total)
    }

    /// For a single frame.
    pub(super) fn for_one(bytes: usize) -> Self {
        Self::of_heap(bytes, align_of::<Header>(), None)
    }

    fn of_heap(bytes: usize, align: usize, total: Option<Arc<AtomicU64>>) -> Self {
        // No frame is shorter than a header; a length that does not exist would be one that no slice can have.
        let layout = Layout::from_size_align(bytes.max(HEADER_BYTES), align);
        let layout = layout.unwrap_or_else(|_| handle_alloc_error(Layout::new::<Header>()));
        // SAFETY: the layout is not of length 0.
        let start = unsafe { alloc_zeroed(layout) };
        let Some(start) = NonNull::new(start) else { handle_alloc_error(layout) };
        Self { start, bytes, origin: Origin::Heap(layout), total }
    }

    pub(super) fn start(&self) -> NonNull<u8> {
        self.start
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// So many zeros in pages of their own; nothing where the process has as many mappings as it may.
#[cfg(not(miri))]
fn mapped(bytes: usize) -> Option<NonNull<u8>> {
    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: where is for the system to say, so nothing else lies there.
    let start = unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, access, MapFlags::PRIVATE) };
    NonNull::new(start.ok()?.cast())
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Some(total) = &self.total {
            total.fetch_sub(self.bytes as u64, Relaxed);
        }
        match self.origin {
            // SAFETY: allocated with this layout; it is in use by nobody else.
            Origin::Heap(layout) => unsafe { dealloc(self.start.as_ptr(), layout) },
            #[cfg(not(miri))]
            Origin::System => {
                // SAFETY: mapped by `mapped` with this length, and in use by nobody else.
                let unmapped = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.bytes) };
                debug_assert!(unmapped.is_ok(), "{unmapped:?}");
            }
        }
    }
}
