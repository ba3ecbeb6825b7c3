//! Huge pages: advice to the kernel for memory that is accessed at random.
//!
//! A search in a skip list touches a new page at each step. The processor's translation buffer (TLB) holds a few
//! thousand pages: a few megabytes, if pages have 4 KiB. On a virtual machine a miss in it costs twice as much. Huge
//! pages make misses rare.
#![expect(unsafe_code, reason = "advice on raw memory, which changes nothing in it")]

use std::mem::MaybeUninit;

/// Length and alignment of a huge page, in bytes.
pub(crate) const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Asks for huge pages under `memory`, which should begin and end at a multiple of [`HUGE_PAGE_BYTES`]. The kernel
/// provides them, if at all, when the memory is touched.
pub(crate) fn prefer_huge_pages(memory: &mut [MaybeUninit<u8>]) {
    #[cfg(all(target_os = "linux", not(miri)))]
    advise(memory);
    #[cfg(not(all(target_os = "linux", not(miri))))]
    let _ = memory;
}

#[cfg(all(target_os = "linux", not(miri)))]
fn advise(memory: &mut [MaybeUninit<u8>]) {
    let advice = rustix::mm::Advice::LinuxHugepage;
    // SAFETY: this advice changes no byte and no right of access.
    let advised = unsafe { rustix::mm::madvise(memory.as_mut_ptr().cast(), memory.len(), advice) };
    // A refusal changes nothing but the speed.
    let _ = advised;
}
