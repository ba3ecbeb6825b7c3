//! The memory of a memtable: a bump allocator whose allocations live until the arena drops.
//!
//! The arena is a list of chunks, each with a bump offset. The first chunk is small and comes with the first
//! allocation, so that an empty memtable costs nothing. Each further chunk is twice as large, up to
//! [`CHUNK_BYTES_MAX`]. An allocation larger than a quarter of the current chunk gets a chunk of its own, so that a
//! full chunk wastes at most a quarter. Large chunks of that kind return to the operating system when they are freed
//! (`types/pages.rs`).
//!
//! Chunks of the largest size come from a [`ChunkPool`] and go back to it: memory that was used before costs nothing
//! to touch, fresh memory costs page faults. They are huge pages where the kernel has them.
//!
//! # Why it is sound
//!
//! 1. A chunk is initialised before a Release exchange makes it current; every thread finds it by an Acquire load.
//! 2. `used` only grows, by an atomic addition: the range between its old and new value belongs to one caller alone.
//! 3. Chunks are freed, or given to the pool, only in `drop`, which has exclusive access. So an allocation of
//!    [`Arena::alloc`] stays valid, at the same address, as long as the arena.
//! 4. A chunk in the pool belongs to the pool alone, and all chunks there have the same capacity.
//!
//! The arena does not know what the bytes mean. Whoever writes them must publish them to other threads.
#![expect(unsafe_code, reason = "raw memory shared by concurrent writers; see the module header")]

use crate::env::huge_pages::{HUGE_PAGE_BYTES, prefer_huge_pages};
use crate::env::sync::OrderedMutex;
use crate::env::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use crate::env::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize};
use crate::types::pages::{LARGE_BYTES, Pages, Source};
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::Arc;

/// Every allocation starts at a multiple of this many bytes.
pub(super) const ALIGN: usize = 8;

const CHUNK_BYTES_MIN: usize = 1 << 12;
const CHUNK_BYTES_MAX: usize = HUGE_PAGE_BYTES;

/// Header of a chunk; `capacity` bytes of payload follow it.
#[repr(C)]
struct Chunk {
    /// The next older chunk of the list.
    previous: *mut Chunk,
    /// Bytes of all older chunks of the list together.
    older_bytes: u64,
    capacity: usize,
    /// Bytes handed out; more than `capacity` once a request did not fit.
    used: AtomicUsize,
    /// Where the memory of a chunk [apart](is_apart) came from. Others are of the heap.
    source: Source,
}

const HEADER: usize = size_of::<Chunk>();
const _: () = assert!(HEADER.is_multiple_of(ALIGN) && align_of::<Chunk>() >= ALIGN);

/// Free chunks of the largest size, for the next arenas.
#[derive(Debug)]
pub struct ChunkPool {
    free: OrderedMutex<Vec<PooledChunk>>,
    chunks_max: usize,
}

#[derive(Debug)]
struct PooledChunk(NonNull<Chunk>);

// SAFETY: (4): whoever has it is its only owner.
unsafe impl Send for PooledChunk {}

impl ChunkPool {
    /// A pool that keeps up to `bytes_max` bytes.
    #[must_use]
    pub fn new(bytes_max: u64) -> Self {
        let chunks_max = usize::try_from(bytes_max / CHUNK_BYTES_MAX as u64).unwrap_or(usize::MAX);
        Self { free: OrderedMutex::leaf(Vec::new()), chunks_max }
    }

    /// Number of chunks that are kept.
    #[cfg(test)]
    pub fn kept(&self) -> usize {
        self.free.lock().len()
    }

    /// A chunk with this header, whose capacity is that of the largest chunks.
    fn take(&self, header: Chunk) -> NonNull<Chunk> {
        let Some(PooledChunk(chunk)) = self.free.lock().pop() else { return new_chunk(header) };
        // SAFETY: (4): ours alone, with room for a header.
        unsafe { chunk.write(header) };
        chunk
    }

    /// Frees chunks of about `bytes` in total, if there are as many: another allocation takes their place in the
    /// budget.
    fn shrink(&self, bytes: usize) {
        let mut free = self.free.lock();
        let kept = free.len().saturating_sub(bytes.div_ceil(CHUNK_BYTES_MAX));
        let freed = free.split_off(kept);
        drop(free);
        for PooledChunk(chunk) in freed {
            // SAFETY: (4): from `new_chunk`, and ours alone.
            unsafe { free_chunk(chunk.as_ptr()) };
        }
    }

    /// Keeps a chunk of the largest size that nobody uses, or frees it.
    fn give(&self, chunk: NonNull<Chunk>) {
        let mut free = self.free.lock();
        if free.len() < self.chunks_max {
            free.push(PooledChunk(chunk));
        } else {
            drop(free);
            // SAFETY: from `new_chunk`, and nobody uses it.
            unsafe { free_chunk(chunk.as_ptr()) };
        }
    }
}

impl Drop for ChunkPool {
    fn drop(&mut self) {
        for PooledChunk(chunk) in self.free.get_mut().drain(..) {
            // SAFETY: (4).
            unsafe { free_chunk(chunk.as_ptr()) };
        }
    }
}

pub(super) struct Arena {
    pool: Arc<ChunkPool>,
    current: AtomicPtr<Chunk>,
    large: AtomicPtr<Chunk>,
    large_bytes: AtomicU64,
    first_chunk_bytes: usize,
}

impl Arena {
    pub(super) fn new(first_chunk_bytes: usize, pool: Arc<ChunkPool>) -> Self {
        Self {
            pool,
            current: AtomicPtr::new(ptr::null_mut()),
            large: AtomicPtr::new(ptr::null_mut()),
            large_bytes: AtomicU64::new(0),
            first_chunk_bytes: first_chunk_bytes.clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX),
        }
    }

    /// Bytes of memory taken by entries, including the unused ends of full chunks.
    pub(super) fn bytes(&self) -> u64 {
        // SAFETY: (1) and (3): a non-null `current` points to an initialised chunk that lives as long as `self`.
        let current = unsafe { self.current.load(Acquire).as_ref() };
        let small = current.map_or(0, |chunk| {
            chunk.older_bytes + (HEADER + chunk.used.load(Relaxed).min(chunk.capacity)) as u64
        });
        small + self.large_bytes.load(Relaxed)
    }

    /// Allocates `bytes` (more than 0) of uninitialised memory, aligned to [`ALIGN`]. It belongs to the caller alone
    /// until the caller shares it.
    pub(super) fn alloc(&self, bytes: usize) -> NonNull<u8> {
        let bytes = bytes.next_multiple_of(ALIGN);
        loop {
            let current = self.current.load(Acquire);
            // SAFETY: (1) and (3).
            let chunk = unsafe { current.as_ref() };
            let capacity = chunk.map_or(self.first_chunk_bytes - HEADER, |chunk| chunk.capacity);
            if bytes > capacity / 4 {
                return self.alloc_large(bytes);
            }
            if let Some(chunk) = chunk {
                let offset = chunk.used.fetch_add(bytes, Relaxed);
                if offset + bytes <= capacity {
                    // SAFETY: the range lies inside the payload, by the check above.
                    return unsafe { payload(current, offset) };
                }
            }
            self.grow(current);
        }
    }

    /// Puts a fresh chunk at the head of the list, before `full`, unless another thread has done so.
    fn grow(&self, full: *mut Chunk) {
        // SAFETY: (1) and (3); `full` was read from `current`.
        let (older_bytes, chunk_bytes) = match unsafe { full.as_ref() } {
            None => (0, self.first_chunk_bytes),
            Some(chunk) => {
                let bytes = HEADER + chunk.capacity;
                (chunk.older_bytes + bytes as u64, (2 * bytes).min(CHUNK_BYTES_MAX))
            }
        };
        let header = Chunk {
            previous: full,
            older_bytes,
            capacity: chunk_bytes - HEADER,
            used: AtomicUsize::new(0),
            source: Source::Heap,
        };
        let chunk = if chunk_bytes == CHUNK_BYTES_MAX { self.pool.take(header) } else { new_chunk(header) };
        if self.current.compare_exchange(full, chunk.as_ptr(), AcqRel, Relaxed).is_err() {
            // SAFETY: just made, and nobody else has seen it.
            unsafe { self.discard(chunk.as_ptr()) };
        }
    }

    fn alloc_large(&self, bytes: usize) -> NonNull<u8> {
        if bytes >= LARGE_BYTES && !planted!("pool-kept-beside-large-values") {
            self.pool.shrink(bytes);
        }
        let chunk = new_chunk(Chunk {
            previous: ptr::null_mut(),
            older_bytes: 0,
            capacity: bytes,
            used: AtomicUsize::new(bytes),
            source: Source::Heap,
        });
        self.large_bytes.fetch_add((HEADER + bytes) as u64, Relaxed);
        let mut previous = self.large.load(Relaxed);
        loop {
            // SAFETY: the chunk is not shared before the exchange succeeds.
            unsafe { (*chunk.as_ptr()).previous = previous };
            match self.large.compare_exchange_weak(previous, chunk.as_ptr(), AcqRel, Relaxed) {
                // SAFETY: the whole payload is this caller's.
                Ok(_) => return unsafe { payload(chunk.as_ptr(), 0) },
                Err(now) => previous = now,
            }
        }
    }
}

impl Arena {
    /// Gives up a chunk and returns the previous one of its list.
    ///
    /// # Safety
    /// `chunk` came from `new_chunk` or the pool and nobody uses it.
    unsafe fn discard(&self, chunk: *mut Chunk) -> *mut Chunk {
        // SAFETY: the caller's promise; not null, for it was made.
        unsafe {
            let (previous, capacity) = ((*chunk).previous, (*chunk).capacity);
            if capacity == CHUNK_BYTES_MAX - HEADER {
                self.pool.give(NonNull::new_unchecked(chunk));
                previous
            } else {
                free_chunk(chunk)
            }
        }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        for list in [self.current.load(Relaxed), self.large.load(Relaxed)] {
            let mut chunk = list;
            while !chunk.is_null() {
                // SAFETY: (3): each chunk is in one list once, and `&mut self` says that nobody uses any.
                chunk = unsafe { self.discard(chunk) };
            }
        }
    }
}

/// # Safety
/// `chunk` lives, and `offset` is at most its capacity.
unsafe fn payload(chunk: *mut Chunk, offset: usize) -> NonNull<u8> {
    // SAFETY: header and payload are one allocation, by `new_chunk`.
    unsafe { NonNull::new_unchecked(chunk.cast::<u8>().add(HEADER + offset)) }
}

/// Chunks of the largest size are aligned to it.
fn chunk_layout(capacity: usize) -> Layout {
    let bytes = HEADER + capacity;
    let align = if bytes == CHUNK_BYTES_MAX { bytes } else { align_of::<Chunk>() };
    Layout::from_size_align(bytes, align).expect("invariant: an entry is smaller than the address space")
}

/// Whether a chunk is mapped by itself. Chunks of the largest size are not: the pool keeps them.
fn is_apart(capacity: usize) -> bool {
    HEADER + capacity >= LARGE_BYTES && HEADER + capacity != CHUNK_BYTES_MAX
}

fn new_chunk(header: Chunk) -> NonNull<Chunk> {
    if is_apart(header.capacity) {
        let (start, source) = Pages::new(HEADER + header.capacity).into_raw();
        let chunk = start.cast::<Chunk>();
        // SAFETY: fresh memory with room and alignment for the header.
        unsafe { chunk.write(Chunk { source, ..header }) };
        return chunk;
    }
    let layout = chunk_layout(header.capacity);
    // SAFETY: the layout holds at least a header, so it is not empty.
    let Some(chunk) = NonNull::new(unsafe { alloc(layout) }.cast::<Chunk>()) else {
        handle_alloc_error(layout)
    };
    if layout.size() == HUGE_PAGE_BYTES {
        // SAFETY: fresh memory of that many bytes, nobody else's.
        prefer_huge_pages(unsafe { slice::from_raw_parts_mut(chunk.as_ptr().cast(), layout.size()) });
    }
    // SAFETY: fresh memory with room and alignment for the header.
    unsafe { chunk.write(header) };
    chunk
}

/// Frees a chunk and returns the previous one of its list.
///
/// # Safety
/// `chunk` came from `new_chunk` and nobody uses it.
unsafe fn free_chunk(chunk: *mut Chunk) -> *mut Chunk {
    // SAFETY: the caller's promise; the layout is the one it was allocated with.
    unsafe {
        let (previous, capacity) = ((*chunk).previous, (*chunk).capacity);
        if is_apart(capacity) {
            let source = (*chunk).source;
            drop(Pages::from_raw(NonNull::new_unchecked(chunk).cast(), HEADER + capacity, source));
        } else {
            dealloc(chunk.cast(), chunk_layout(capacity));
        }
        previous
    }
}
