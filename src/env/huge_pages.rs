//! Memory in large pages.
//!
//! A walk along a skip list touches a page at each step, and the processor remembers where a few thousand pages lie: those
//! of a few megabytes, if pages have 4 KiB. On a virtual machine to find one that it does not remember is dear twice over.
#![expect(unsafe_code, reason = "advice on raw memory, which changes nothing in it")]

use std::mem::MaybeUninit;

/// The length of a large page, and what it is aligned to.
pub(crate) const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Asks for large pages under `memory`, which should begin and end with one. They come, if at all, when it is touched.
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
    // Without large pages all is as before, only slower.
    let _ = advised;
}
