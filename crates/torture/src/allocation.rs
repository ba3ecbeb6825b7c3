//! An allocator that measures allocations. A program that runs the suite `corruption` makes it its global allocator.

#![expect(unsafe_code, reason = "an allocator")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The system's allocator, which remembers the largest allocation.
///
/// ```
/// use terrace_torture::allocation::{Measuring, take_largest};
///
/// #[global_allocator]
/// static ALLOCATOR: Measuring = Measuring;
///
/// take_largest();
/// drop(Vec::<u8>::with_capacity(1_000_000));
/// assert!(take_largest() >= 1_000_000);
/// ```
pub struct Measuring;

static LARGEST: AtomicUsize = AtomicUsize::new(0);

/// Whether the program's allocator is this one.
static MEASURING: AtomicBool = AtomicBool::new(false);

/// Whether anybody measures.
pub fn is_measuring() -> bool {
    MEASURING.load(Ordering::Relaxed)
}

/// The largest allocation since the last call, in bytes, by whatever thread.
pub fn take_largest() -> usize {
    LARGEST.swap(0, Ordering::Relaxed)
}

// SAFETY: passes every call on to the system's allocator.
unsafe impl GlobalAlloc for Measuring {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        MEASURING.store(true, Ordering::Relaxed);
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        LARGEST.fetch_max(size, Ordering::Relaxed);
        unsafe { System.realloc(old, layout, size) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        unsafe { System.dealloc(memory, layout) }
    }
}
