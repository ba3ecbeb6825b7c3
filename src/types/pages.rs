//! Memory for one large allocation, which returns to the operating system when it is freed.
//!
//! A heap keeps freed memory. glibc takes blocks of up to 32 MiB from its heaps once some of that size have come and
//! gone, and gives back only what is free at the end of a heap. So a process with large values grew to several times
//! what it had allocated (`docs/benchmarks/memory.md`). An allocation of [`LARGE_BYTES`] or more is therefore mapped
//! by itself: it is zeros at first, and freeing it frees the memory.
//!
//! The kernel may refuse a mapping while the heap still has memory: a process may have only so many mappings
//! (`vm.max_map_count`). Then the memory comes from the heap. Only if the heap has none either does the process end, as
//! it does for any other allocation.
//!
//! # Why it is sound
//!
//! A [`Pages`] is the only owner of its memory, which is there, at the same address, until it drops. Its length and its
//! [`Source`] never change. Mapped memory is unmapped by its length, memory of the heap is deallocated with the layout
//! that it was allocated with, which follows from the length.
//!
//! AddressSanitizer has watched the unit tests of this module and of `types/buffer.rs`, and an arena of memtables with
//! large allocations, all three with mappings and with refused ones. `docs/contributing.md` says how it is run. Under
//! Miri, which has not run them, all memory would come from the heap.
#![expect(unsafe_code, reason = "raw memory; see the module header")]

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;

/// An allocation of at least this many bytes is mapped by itself. It is the length of a huge page: filling it costs
/// far more than the mapping.
pub(crate) const LARGE_BYTES: usize = 2 << 20;

/// Alignment of memory from the heap; mapped memory begins at a page.
pub(crate) const PAGES_ALIGN: usize = 64;

/// Where memory came from, and so where it goes back to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    /// Mapped by itself.
    Kernel,
    Heap,
}

/// Memory, not initialised unless it is [zeroed](Self::is_zeroed).
#[derive(Debug)]
pub(crate) struct Pages {
    start: NonNull<u8>,
    bytes: usize,
    source: Source,
}

// SAFETY: it is the only owner of its memory.
unsafe impl Send for Pages {}
// SAFETY: nothing can be done through a shared reference but to read its fields.
unsafe impl Sync for Pages {}

impl Pages {
    /// Memory of `bytes`, which is not 0, aligned to [`PAGES_ALIGN`]. Aborts the process if there is none.
    pub(crate) fn new(bytes: usize) -> Self {
        if is_large(bytes)
            && let Some(start) = map(bytes)
        {
            return Self { start, bytes, source: Source::Kernel };
        }
        let layout = layout(bytes);
        // SAFETY: the layout is not of length 0.
        let Some(start) = NonNull::new(unsafe { alloc(layout) }) else { handle_alloc_error(layout) };
        Self { start, bytes, source: Source::Heap }
    }

    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    #[cfg(test)]
    fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether the memory was zeros when it was made.
    pub(crate) fn is_zeroed(&self) -> bool {
        self.source == Source::Kernel
    }

    /// The start of the memory. The caller becomes its owner and frees it through [`Pages::from_raw`].
    pub(crate) fn into_raw(self) -> (NonNull<u8>, Source) {
        let raw = (self.start, self.source);
        std::mem::forget(self);
        raw
    }

    /// Takes the memory of [`Pages::into_raw`] back.
    ///
    /// # Safety
    /// `start` and `source` came from `into_raw` of memory of `bytes`, and nobody else frees it.
    pub(crate) unsafe fn from_raw(start: NonNull<u8>, bytes: usize, source: Source) -> Self {
        Self { start, bytes, source }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        match self.source {
            Source::Kernel => unmap(self),
            // SAFETY: allocated with this layout, and the owner is done with it.
            Source::Heap => unsafe { dealloc(self.start.as_ptr(), layout(self.bytes)) },
        }
    }
}

/// Whether so much memory is to be mapped by itself.
fn is_large(bytes: usize) -> bool {
    bytes >= LARGE_BYTES && !planted!("large-memory-left-to-the-heap")
}

fn layout(bytes: usize) -> Layout {
    let layout = Layout::from_size_align(bytes.max(1), PAGES_ALIGN);
    // An invalid layout would need a length that no slice can have.
    layout.unwrap_or_else(|_| handle_alloc_error(Layout::new::<u8>()))
}

/// New memory from the kernel, or none if it refuses.
#[cfg(all(unix, not(miri)))]
fn map(bytes: usize) -> Option<NonNull<u8>> {
    #[cfg(test)]
    if refusal::is_on() {
        return None;
    }
    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
    let new = |bytes| {
        // SAFETY: new memory, at whatever address is free.
        let mapped = unsafe {
            mmap_anonymous(std::ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)
        };
        NonNull::new(mapped.ok()?.cast::<u8>())
    };
    let mut start = new(bytes)?;
    // Whole huge pages begin where a huge page does. Behind such a mapping the next one does by itself, and the kernel makes one of both:
    // a process may have only so many.
    if bytes.is_multiple_of(LARGE_BYTES) && !start.addr().get().is_multiple_of(LARGE_BYTES) {
        unmap_at(start, bytes);
        start = trim(new(bytes.checked_add(LARGE_BYTES)?)?, bytes, LARGE_BYTES);
    }
    #[cfg(target_os = "linux")]
    {
        // SAFETY: this advice changes no byte and no right of access.
        let advised =
            unsafe { rustix::mm::madvise(start.as_ptr().cast(), bytes, rustix::mm::Advice::LinuxHugepage) };
        // A refusal changes nothing but the speed.
        let _ = advised;
    }
    Some(start)
}

/// Of `bytes` and those `beside`, mapped at `mapped`, leaves `bytes` from a multiple of [`LARGE_BYTES`] on.
#[cfg(all(unix, not(miri)))]
fn trim(mapped: NonNull<u8>, bytes: usize, beside: usize) -> NonNull<u8> {
    let before = mapped.addr().get().next_multiple_of(LARGE_BYTES) - mapped.addr().get();
    // SAFETY: at most `beside` bytes farther, within what is mapped, since the mapping begins at a page.
    let start = unsafe { mapped.add(before) };
    // SAFETY: behind it there is the rest of what is mapped.
    let end = unsafe { start.add(bytes) };
    for (rest, length) in [(mapped, before), (end, beside - before)] {
        if length > 0 {
            unmap_at(rest, length);
        }
    }
    start
}

/// Unmaps what nobody has touched. A refusal leaves addresses taken, and no memory.
#[cfg(all(unix, not(miri)))]
fn unmap_at(start: NonNull<u8>, bytes: usize) {
    // SAFETY: mapped by the caller, and nobody's.
    let _ = unsafe { rustix::mm::munmap(start.as_ptr().cast(), bytes) };
}

#[cfg(all(unix, not(miri)))]
fn unmap(pages: &Pages) {
    // SAFETY: mapped with this length, and the owner is done with it.
    let unmapped = unsafe { rustix::mm::munmap(pages.start.as_ptr().cast(), pages.bytes) };
    #[cfg(target_os = "linux")]
    if unmapped.is_err() {
        // The kernel would have had to split a mapping, and there are too many. The addresses stay taken, the memory does not.
        // SAFETY: as above.
        let given_back = unsafe {
            rustix::mm::madvise(pages.start.as_ptr().cast(), pages.bytes, rustix::mm::Advice::LinuxDontNeed)
        };
        debug_assert!(given_back.is_ok(), "{given_back:?}");
    }
    #[cfg(not(target_os = "linux"))]
    debug_assert!(unmapped.is_ok(), "{unmapped:?}");
}

/// Mappings that the kernel refuses, as a test asks for it.
#[cfg(test)]
pub(crate) mod refusal {
    use std::cell::Cell;

    thread_local! {
        static ON: Cell<bool> = const { Cell::new(false) };
    }

    pub(super) fn is_on() -> bool {
        ON.get()
    }

    /// Runs `work`, in which this thread gets no mapping.
    pub(crate) fn during<R>(work: impl FnOnce() -> R) -> R {
        ON.set(true);
        let outcome = work();
        ON.set(false);
        outcome
    }
}

#[cfg(not(all(unix, not(miri))))]
fn map(_: usize) -> Option<NonNull<u8>> {
    None
}

#[cfg(not(all(unix, not(miri))))]
fn unmap(_: &Pages) {}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTHS: [usize; 6] = [1, 63, LARGE_BYTES - 1, LARGE_BYTES, LARGE_BYTES + 4097, 3 * LARGE_BYTES];

    /// Writes all of it, and reads it back.
    fn use_whole(pages: &Pages, bytes: usize) {
        assert_eq!((pages.bytes(), pages.start().addr().get() % PAGES_ALIGN), (bytes, 0));
        if pages.is_zeroed() {
            // SAFETY: all of it is there, and zeros.
            let all = unsafe { std::slice::from_raw_parts(pages.start().as_ptr(), bytes) };
            assert!(all.iter().all(|byte| *byte == 0));
        }
        // SAFETY: it is there, and nobody else's.
        unsafe { pages.start().as_ptr().write_bytes(7, bytes) };
        // SAFETY: initialised above.
        let all = unsafe { std::slice::from_raw_parts(pages.start().as_ptr(), bytes) };
        assert!(all.iter().all(|byte| *byte == 7));
    }

    #[test]
    fn memory_of_any_length_can_be_written_whole() {
        for bytes in LENGTHS {
            let pages = Pages::new(bytes);
            assert_eq!(pages.is_zeroed(), cfg!(all(unix, not(miri))) && bytes >= LARGE_BYTES);
            let is_whole = pages.is_zeroed() && bytes.is_multiple_of(LARGE_BYTES);
            assert!(!is_whole || pages.start().addr().get().is_multiple_of(LARGE_BYTES));
            use_whole(&pages, bytes);
        }
    }

    #[test]
    fn memory_that_the_kernel_refuses_comes_from_the_heap_and_goes_back_there() {
        for bytes in LENGTHS {
            let pages = refusal::during(|| Pages::new(bytes));
            assert_eq!(pages.source, Source::Heap, "{bytes}");
            use_whole(&pages, bytes);
            // Freed while the kernel grants mappings again: by where it came from, not by its length.
            let (start, source) = pages.into_raw();
            // SAFETY: from `into_raw`, with the same length.
            drop(unsafe { Pages::from_raw(start, bytes, source) });
        }
    }

    /// Set in a child process, which uses up its mappings.
    #[cfg(all(target_os = "linux", not(miri)))]
    const CHILD: &str = "TERRACE_PAGES_CHILD";

    /// The kernel itself refuses: in a process in which nobody else needs a mapping.
    #[cfg(all(target_os = "linux", not(miri)))]
    #[test]
    fn a_process_that_has_all_its_mappings_goes_on_with_the_heap() {
        const NAME: &str = "types::pages::tests::a_process_that_has_all_its_mappings_goes_on_with_the_heap";
        if std::env::var_os(CHILD).is_some() {
            return without_mappings();
        }
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        let child = child.args([NAME, "--exact", "--nocapture", "--test-threads=1"]).env(CHILD, "1");
        let output = child.output().unwrap();
        if String::from_utf8_lossy(&output.stderr).contains("AddressSanitizer: out of memory") {
            eprintln!("SKIPPED: what this sanitizer allocates is mapped");
            return;
        }
        let told = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && told.contains("1 passed"), "{output:?}");
    }

    #[cfg(all(target_os = "linux", not(miri)))]
    fn without_mappings() {
        use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
        // The kernel makes one mapping of neighbours, and has to part it when one of them in the middle goes.
        let mut neighbours: Vec<Pages> = (0..9).map(|_| Pages::new(LARGE_BYTES)).collect();
        neighbours.iter().for_each(|pages| use_whole(pages, LARGE_BYTES));
        let rights = [ProtFlags::READ, ProtFlags::empty()].into_iter().cycle();
        let one = |rights| {
            // SAFETY: new memory, which nobody uses.
            unsafe { mmap_anonymous(std::ptr::null_mut(), 4096, rights, MapFlags::PRIVATE) }
        };
        let taken: Vec<_> = rights.map_while(|rights| one(rights).ok()).take(4 << 20).collect();
        if map(LARGE_BYTES).is_none() {
            for bytes in LENGTHS.into_iter().chain([40 << 20]) {
                let pages = Pages::new(bytes);
                assert_eq!(pages.source, Source::Heap, "{bytes}");
                use_whole(&pages, bytes);
            }
            // Those that stay are whole.
            neighbours = neighbours.into_iter().skip(1).step_by(2).collect();
            for pages in &neighbours {
                // SAFETY: initialised by `use_whole`.
                let all = unsafe { std::slice::from_raw_parts(pages.start().as_ptr(), LARGE_BYTES) };
                assert!(all.iter().all(|byte| *byte == 7));
            }
        } else {
            eprintln!("SKIPPED: a process may have more mappings than this test makes");
        }
        for page in taken {
            // SAFETY: mapped above.
            unsafe { munmap(page, 4096) }.unwrap();
        }
        assert!(Pages::new(LARGE_BYTES).is_zeroed());
    }

    #[test]
    fn memory_is_taken_back_from_a_raw_pointer() {
        for bytes in [100, LARGE_BYTES] {
            let (start, source) = Pages::new(bytes).into_raw();
            // SAFETY: from `into_raw`, with the same length.
            let pages = unsafe { Pages::from_raw(start, bytes, source) };
            assert_eq!(pages.start(), start);
        }
    }
}
