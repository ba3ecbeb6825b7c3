//! Shared bytes in memory, in frames that can be reused.
//!
//! A [`Buffer`] is to its holders what an `Arc<[u8]>` is. It lies in a frame of a [`Chunk`], memory that is carved
//! into frames of one size. So whoever hands frames out can reuse them, and can give up a chunk as a whole. A heap
//! would be left with gaps that are too short for the next allocation. A buffer may also have a chunk of its own,
//! with one frame.
//!
//! # Why it is sound
//!
//! 1. A frame whose bit is set in `Chunk::free` belongs to nobody. Whoever clears the bit (Acquire) has the frame
//!    alone, as a [`Frame`] and then as the first holder of a [`Buffer`]. The last holder sets it again (Release),
//!    after an Acquire fence behind the Release decrements of all others. So uses of a frame by its owners follow one
//!    another.
//! 2. Each `Frame`, and the holders of each `Buffer` together, have one strong count of their chunk: the memory is
//!    there until the last has gone. And [`Chunk::into_memory`], which asks for the only count, never carves memory
//!    anew that anyone holds.
//! 3. The bytes of a buffer are written only through [`Buffer::get_mut`], which requires the only holder,
//!    exclusively.
//! 4. Whoever takes a frame first fills it with zeros, unless its memory was made of zeros and nobody has had it. So
//!    no owner sees bytes that are not initialised. The frame's bit in `Chunk::zeroed` is set (Release) after that.
//!    An owner may read the header by (1). Whoever else finds the bit set (Acquire) may also read the header from
//!    then on, at any time: it is atomics, and no bytes of a buffer lie in the header of a frame.
#![expect(unsafe_code, reason = "frames of shared memory; see the module header")]

use std::fmt;
use std::ops::{Deref, Range};
use std::ptr::NonNull;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, fence};

use super::pages::{PAGES_ALIGN, Pages};

/// Bytes of a cache line.
const CACHE_LINE_BYTES: usize = 64;

/// Frames begin at multiples of this many bytes: a cache line.
pub(crate) const FRAME_ALIGN: usize = 64;
const _: () = assert!(FRAME_ALIGN <= PAGES_ALIGN);

/// A note that the owner of a frame may leave with it: the key under which the cache finds it.
pub(crate) type Tag = [u64; 2];

/// The tag of a frame without a note.
const UNTAGGED: Tag = [u64::MAX; 2];

/// The front of a frame; the bytes of the buffer follow it.
struct Header {
    holders: AtomicUsize,
    /// The chunk, as a strong count of it, while the frame has an owner.
    chunk: AtomicPtr<Chunk>,
    tag: [AtomicU64; 2],
}

/// Bytes of a frame that its buffer cannot have.
pub(crate) const HEADER_BYTES: usize = size_of::<Header>();
const _: () = assert!(align_of::<Header>() <= FRAME_ALIGN && HEADER_BYTES <= FRAME_ALIGN);

/// A count above this is a leak, since there is no memory for so many holders. The count must not wrap.
const HOLDERS_MAX: usize = isize::MAX as usize;

/// Memory for a chunk, not initialised. It counts in a total, if it has one, while it exists.
///
/// Memory that an allocator has zeroed would be no better. For reused memory the allocator writes all zeros at once,
/// so whoever needs the first frame of a chunk waits for the page faults of the whole chunk.
#[derive(Debug)]
pub(crate) struct Memory {
    pages: Pages,
    bytes: usize,
    total: Option<Arc<AtomicU64>>,
}

impl Memory {
    /// Memory for many frames.
    pub(crate) fn new(bytes: usize, total: &Arc<AtomicU64>) -> Self {
        total.fetch_add(bytes as u64, Relaxed);
        Self::of(bytes, Some(total.clone()))
    }

    /// Memory for a single frame.
    fn for_one(bytes: usize) -> Self {
        Self::of(bytes, None)
    }

    fn of(bytes: usize, total: Option<Arc<AtomicU64>>) -> Self {
        // No frame is shorter than a header.
        Self { pages: Pages::new(bytes.max(HEADER_BYTES)), bytes, total }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Some(total) = &self.total {
            total.fetch_sub(self.bytes as u64, Relaxed);
        }
    }
}

/// A chunk: memory carved into frames of one size.
#[derive(Debug)]
pub(crate) struct Chunk {
    memory: Memory,
    frame_bytes: usize,
    frames: usize,
    /// A bit for each frame, set while it has no owner.
    free: Box<[AtomicU64]>,
    /// A bit for each frame, set once its bytes are initialised.
    zeroed: Box<[AtomicU64]>,
}

impl Chunk {
    /// Carves `memory` into frames. There must be room for at least one.
    ///
    /// # Panics
    /// When there is no room for a frame, or frames would not be aligned.
    pub(crate) fn new(memory: Memory, frame_bytes: usize) -> Arc<Self> {
        let frames = memory.bytes / frame_bytes;
        let askew = frames > 1 && !frame_bytes.is_multiple_of(FRAME_ALIGN);
        assert!(frames > 0 && frame_bytes >= HEADER_BYTES && !askew, "frames of {frame_bytes} bytes");
        let bits = |word: usize| match frames - word * 64 {
            64.. => u64::MAX,
            rest => (1 << rest) - 1,
        };
        let words = 0..frames.div_ceil(64);
        let free = words.clone().map(|word| AtomicU64::new(bits(word))).collect();
        let zeroed = words.map(|_| AtomicU64::new(0)).collect();
        Arc::new(Self { memory, frame_bytes, frames, free, zeroed })
    }

    /// As [`Chunk::new`], with its first frame taken.
    ///
    /// # Panics
    /// As that.
    pub(crate) fn with_frame(memory: Memory, frame_bytes: usize) -> (Arc<Self>, Frame) {
        let chunk = Self::new(memory, frame_bytes);
        chunk.free[0].fetch_and(!1, Relaxed);
        (chunk.clone(), Frame { chunk, at: 0 })
    }

    /// Takes a free frame, if there is one, near the front of the chunk.
    pub(crate) fn take(self: &Arc<Self>) -> Option<Frame> {
        for (at, word) in self.free.iter().enumerate() {
            let mut free = word.load(Relaxed);
            while free != 0 {
                let bit = free & free.wrapping_neg();
                free = word.fetch_and(!bit, Acquire);
                if free & bit != 0 {
                    return Some(Frame { chunk: self.clone(), at: at * 64 + bit.trailing_zeros() as usize });
                }
            }
        }
        None
    }

    pub(crate) fn bytes(&self) -> usize {
        self.memory.bytes
    }

    pub(crate) fn frames(&self) -> usize {
        self.frames
    }

    /// Number of frames that have an owner, if the caller holds one count of the chunk besides.
    pub(crate) fn owned(self: &Arc<Self>) -> usize {
        Arc::strong_count(self) - 1
    }

    /// The tags of the frames that have an owner. A new owner's frame may still have the tag of an earlier owner.
    pub(crate) fn tags(&self) -> impl Iterator<Item = Tag> {
        let owned = (0..self.frames).filter(|at| self.free[at / 64].load(Acquire) & 1 << (at % 64) == 0);
        owned.map(|at| {
            if !self.is_zeroed(at) {
                return UNTAGGED;
            }
            // SAFETY: (4).
            let Header { tag: [first, second], .. } = unsafe { self.header(at).as_ref() };
            [first.load(Relaxed), second.load(Relaxed)]
        })
    }

    /// Gives the memory back, to be carved anew; or the chunk itself, if a frame still has an owner.
    pub(crate) fn into_memory(self: Arc<Self>) -> Result<Memory, Arc<Self>> {
        Arc::try_unwrap(self).map(|chunk| chunk.memory)
    }

    fn is_zeroed(&self, at: usize) -> bool {
        self.zeroed[at / 64].load(Acquire) & 1 << (at % 64) != 0
    }

    /// Initialises the bytes of a frame that the caller owns, if no earlier owner has.
    fn initialise(&self, at: usize) {
        if self.is_zeroed(at) {
            return;
        }
        // SAFETY: the frame lies within the memory, see `new`, and by (1) nobody else writes to it; by (4) nobody reads it before
        // the bit is set.
        unsafe { self.memory.pages.start().add(at * self.frame_bytes).write_bytes(0, self.frame_bytes) };
        self.zeroed[at / 64].fetch_or(1 << (at % 64), Release);
    }

    fn header(&self, at: usize) -> NonNull<Header> {
        debug_assert!(at < self.frames);
        // SAFETY: the frame lies within the memory, see `new`.
        unsafe { self.memory.pages.start().add(at * self.frame_bytes) }.cast()
    }

    /// Frees the frame of this header, which the caller owns.
    fn release(&self, header: NonNull<Header>) {
        let at = (header.addr().get() - self.memory.pages.start().addr().get()) / self.frame_bytes;
        self.free[at / 64].fetch_or(1 << (at % 64), Release);
    }
}

/// A frame that was taken, to become a buffer.
#[derive(Debug)]
#[must_use = "it is lost for its chunk otherwise"]
pub(crate) struct Frame {
    chunk: Arc<Chunk>,
    at: usize,
}

impl Frame {
    /// Turns the frame into a buffer of `bytes`, whose contents are left over from earlier uses.
    ///
    /// # Panics
    /// When the frame is too short.
    pub(crate) fn into_buffer(self, bytes: usize) -> Buffer {
        let Self { chunk, at } = self;
        assert!(
            bytes <= chunk.frame_bytes - HEADER_BYTES,
            "{bytes} bytes in a frame of {}",
            chunk.frame_bytes
        );
        chunk.initialise(at);
        let header = chunk.header(at);
        {
            // SAFETY: (1), (4).
            let Header { holders, chunk: owner, tag } = unsafe { header.as_ref() };
            holders.store(1, Relaxed);
            tag.iter().zip(UNTAGGED).for_each(|(word, untagged)| word.store(untagged, Relaxed));
            owner.store(Arc::into_raw(chunk).cast_mut(), Relaxed);
        }
        Buffer { header, bytes }
    }
}

/// Shared bytes in memory, freed with their last holder.
///
/// ```
/// use terrace::types::Buffer;
/// let mut buffer = Buffer::from(b"bytes".to_vec());
/// buffer.get_mut().unwrap()[0] = b'B';
/// let again = buffer.clone();
/// assert_eq!((&*again, buffer.get_mut()), (&b"Bytes"[..], None));
/// ```
pub struct Buffer {
    header: NonNull<Header>,
    bytes: usize,
}

// SAFETY: as an `Arc<[u8]>`: shared bytes are only read, and counted by atomics. (1) to (3).
unsafe impl Send for Buffer {}
// SAFETY: the same.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// A buffer of `bytes` zeros in a chunk of its own.
    pub(crate) fn alone(bytes: usize) -> Self {
        let frame_bytes = HEADER_BYTES.saturating_add(bytes);
        let (chunk, frame) = Chunk::with_frame(Memory::for_one(frame_bytes), frame_bytes);
        if chunk.memory.pages.is_zeroed() {
            // Nobody has had this memory before.
            chunk.zeroed[0].fetch_or(1, Release);
        }
        frame.into_buffer(bytes)
    }

    /// Bytes of memory that the buffer takes, its share of the chunk's unused rest included, and whether it has a
    /// chunk of its own.
    pub(crate) fn memory(&self) -> (usize, bool) {
        // SAFETY: (2).
        let chunk = unsafe { &*self.header().chunk.load(Relaxed) };
        (chunk.memory.bytes / chunk.frames, chunk.frames == 1)
    }

    /// The bytes, for writing, if nobody else holds them.
    pub fn get_mut(&mut self) -> Option<&mut [u8]> {
        if self.header().holders.load(Acquire) != 1 {
            return None;
        }
        // SAFETY: (3); Acquire orders it behind what the other holders did, by their Release decrements.
        Some(unsafe { slice::from_raw_parts_mut(self.start().as_ptr(), self.bytes) })
    }

    /// Notes the key under which the buffer is found.
    pub(crate) fn set_tag(&self, tag: Tag) {
        self.header().tag.iter().zip(tag).for_each(|(word, tag)| word.store(tag, Relaxed));
    }

    /// Whether both are the same buffer, not only equal bytes.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.header == other.header
    }

    /// Prefetches the part of `range` that lies in the buffer into the processor's cache. (The processor prefetches
    /// by itself only where reads have begun.) Changes nothing.
    #[inline]
    pub(crate) fn prefetch(&self, range: Range<usize>) {
        prefetch_all(&self[range.start.min(self.bytes)..range.end.min(self.bytes)]);
    }

    #[inline]
    fn header(&self) -> &Header {
        // SAFETY: (2), (4).
        unsafe { self.header.as_ref() }
    }

    #[inline]
    fn start(&self) -> NonNull<u8> {
        // SAFETY: a frame has at least its header; see `into_buffer`.
        unsafe { self.header.cast::<u8>().add(HEADER_BYTES) }
    }
}

/// Prefetches the cache line in which `thing` begins. Changes nothing.
#[inline]
pub(crate) fn prefetch<T>(thing: &T) {
    prefetch_address(std::ptr::from_ref(thing).addr());
}

/// Prefetches the cache lines of `bytes`. Changes nothing.
#[inline]
pub(crate) fn prefetch_all(bytes: &[u8]) {
    bytes.chunks(CACHE_LINE_BYTES).for_each(|line| prefetch(&line[0]));
}

/// Prefetches the cache line with this address, if there is memory. Changes nothing.
#[inline]
fn prefetch_address(address: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch is allowed for any address, and every such processor has it.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::without_provenance(address)) };
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = address;
}

/// Where bytes lie that may be gone by now: good for a prefetch and nothing else.
#[derive(Debug, Default)]
pub(crate) struct Whereabouts(AtomicUsize);

impl Whereabouts {
    /// Most cache lines that are prefetched.
    const LINES_MAX: usize = 16;

    /// Notes where `bytes` lie: the first line, and in the bits of an address within a line how many lines there are.
    pub(crate) fn set(&self, bytes: &[u8]) {
        let address = bytes.as_ptr().addr();
        let lines = (address % CACHE_LINE_BYTES + bytes.len()).div_ceil(CACHE_LINE_BYTES);
        self.0.store(address - address % CACHE_LINE_BYTES + lines.min(Self::LINES_MAX), Relaxed);
    }

    /// Prefetches the bytes, so that whoever reads them does not wait for one line after the other. (The processor prefetches by itself only
    /// where reads have begun.)
    #[inline]
    pub(crate) fn prefetch(&self) {
        let noted = self.0.load(Relaxed);
        let lines = noted % CACHE_LINE_BYTES;
        (0..lines).for_each(|line| prefetch_address(noted - lines + line * CACHE_LINE_BYTES));
    }
}

impl Deref for Buffer {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: (2), (3), (4); `into_buffer` has checked the length.
        unsafe { slice::from_raw_parts(self.start().as_ptr(), self.bytes) }
    }
}

impl Clone for Buffer {
    #[inline]
    fn clone(&self) -> Self {
        // As in `Arc`: a holder needs no ordering to add another one.
        let holders = self.header().holders.fetch_add(1, Relaxed);
        assert!(holders < HOLDERS_MAX, "holders are forgotten");
        Self { header: self.header, bytes: self.bytes }
    }
}

impl Drop for Buffer {
    #[inline]
    fn drop(&mut self) {
        let header = self.header();
        if header.holders.fetch_sub(1, Release) != 1 {
            return;
        }
        fence(Acquire);
        // SAFETY: the count that `into_buffer` put there, which (2) the last holder takes back.
        let chunk = unsafe { Arc::from_raw(header.chunk.load(Relaxed).cast_const()) };
        chunk.release(self.header);
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.bytes)
    }
}

impl From<&[u8]> for Buffer {
    fn from(bytes: &[u8]) -> Self {
        let mut buffer = Self::alone(bytes.len());
        if let Some(own) = buffer.get_mut() {
            own.copy_from_slice(bytes);
        }
        buffer
    }
}

impl From<Vec<u8>> for Buffer {
    fn from(bytes: Vec<u8>) -> Self {
        Self::from(&*bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::pages::refusal;

    fn chunk(bytes: usize, frame_bytes: usize) -> (Arc<Chunk>, Arc<AtomicU64>) {
        let total = Arc::default();
        (Chunk::new(Memory::new(bytes, &total), frame_bytes), total)
    }

    fn filled(chunk: &Arc<Chunk>, bytes: usize, with: u8) -> Option<Buffer> {
        let mut buffer = chunk.take()?.into_buffer(bytes);
        buffer.get_mut().unwrap().fill(with);
        Some(buffer)
    }

    #[test]
    fn every_frame_is_had_once_and_again_when_its_last_holder_has_gone() {
        let (chunk, _) = chunk(70 * 128 + 127, 128);
        let bytes = 128 - HEADER_BYTES;
        let mut buffers: Vec<_> = (0..70).map(|n| filled(&chunk, bytes, n).unwrap()).collect();
        assert!(chunk.take().is_none() && chunk.owned() == 70);
        let held = buffers[66].clone();
        assert!(buffers[66].get_mut().is_none());
        buffers.remove(66);
        assert!(chunk.take().is_none(), "somebody reads it still");
        assert!(
            buffers.iter().zip((0..70).filter(|&n| n != 66)).all(|(buffer, n)| **buffer == vec![n; bytes])
        );
        assert_eq!(*held, vec![66; bytes]);
        let start = held.as_ptr();
        drop(held);
        assert_eq!(chunk.take().unwrap().into_buffer(1).as_ptr(), start);
    }

    #[test]
    fn memory_is_carved_anew_when_nobody_holds_a_frame() {
        let (chunk, total) = chunk(4096, 1024);
        let buffer = filled(&chunk, 900, 1).unwrap();
        assert_eq!(buffer.memory(), (1024, false));
        let chunk = chunk.into_memory().unwrap_err();
        assert_eq!(*buffer, [1; 900]);
        drop(buffer);
        let chunk = Chunk::new(chunk.into_memory().unwrap(), 256);
        assert_eq!((0..).map_while(|_| chunk.take()).count(), 16);
        assert_eq!(total.load(Relaxed), 4096);
        drop(chunk.into_memory());
        assert_eq!(total.load(Relaxed), 0);
    }

    #[test]
    fn who_takes_a_frame_first_finds_zeros_and_nothing_is_noted_before() {
        let (before, _) = chunk(4096, 1024);
        let buffers: Vec<_> = (0..4).map(|n| filled(&before, 992, n + 1).unwrap()).collect();
        buffers.iter().for_each(|buffer| buffer.set_tag([7; 2]));
        drop(buffers);
        let chunk = Chunk::new(before.into_memory().unwrap(), 256);
        let frames: Vec<_> = (0..16).map(|_| chunk.take().unwrap()).collect();
        assert_eq!(chunk.tags().collect::<Vec<_>>(), [UNTAGGED; 16]);
        let mut buffers: Vec<_> = frames.into_iter().map(|frame| frame.into_buffer(224)).collect();
        assert!(buffers.iter().all(|buffer| **buffer == [0; 224]));
        buffers[5].get_mut().unwrap().fill(9);
        drop(buffers);
        let buffers: Vec<_> = (0..16).map(|_| chunk.take().unwrap().into_buffer(224)).collect();
        assert!(
            buffers.iter().enumerate().all(|(at, buffer)| **buffer == [if at == 5 { 9 } else { 0 }; 224])
        );
    }

    #[test]
    fn any_range_may_be_asked_for_ahead() {
        let buffer = Buffer::from(vec![3; 100]);
        for range in [0..0, 0..100, 99..1000, 100..101, 500..usize::MAX] {
            buffer.prefetch(range);
        }
        assert_eq!(*buffer, [3; 100]);
    }

    #[test]
    fn a_buffer_outlives_who_handed_it_out() {
        let (chunk, total) = chunk(4096, 1024);
        let buffer = filled(&chunk, 992, 7).unwrap();
        drop(chunk);
        let again = buffer.clone();
        std::thread::scope(|scope| scope.spawn(move || drop(buffer)).join()).unwrap();
        assert_eq!(*again, [7; 992]);
        assert_eq!(total.load(Relaxed), 4096);
        drop(again);
        assert_eq!(total.load(Relaxed), 0);
    }

    #[test]
    fn what_is_noted_is_that_of_frames_with_owners() {
        let (chunk, _) = chunk(1024, 256);
        let [first, second] = [1, 2].map(|with| filled(&chunk, 10, with).unwrap());
        first.set_tag([1, 11]);
        assert_eq!(chunk.tags().collect::<Vec<_>>(), [[1, 11], UNTAGGED]);
        drop(first);
        assert_eq!(chunk.tags().collect::<Vec<_>>(), [UNTAGGED]);
        let first = filled(&chunk, 224, 1).unwrap();
        assert_eq!(chunk.tags().collect::<Vec<_>>(), [UNTAGGED; 2]);
        drop((first, second));
    }

    #[test]
    fn large_buffers_are_zeros_though_the_kernel_refuses_mappings() {
        let bytes = 3 << 20;
        // What the heap gives next has been written to.
        drop(refusal::during(|| Buffer::from(vec![7; bytes])));
        let mut buffer = refusal::during(|| Buffer::alone(bytes));
        assert!(buffer.iter().all(|byte| *byte == 0));
        buffer.get_mut().unwrap().fill(1);
        assert!(buffer.iter().all(|byte| *byte == 1));
    }

    #[test]
    fn buffers_by_themselves_have_any_length() {
        for bytes in [0, 1, 31, 32, 33, 4096, 100_001] {
            let mut buffer = Buffer::alone(bytes);
            assert_eq!(*buffer, vec![0; bytes]);
            buffer.get_mut().unwrap().fill(9);
            assert_eq!(*buffer.clone(), vec![9; bytes]);
            assert_eq!(buffer.memory(), (bytes + HEADER_BYTES, true));
            assert_eq!(*Buffer::from(vec![3; bytes]), vec![3; bytes]);
        }
    }

    #[test]
    fn threads_take_fill_share_and_drop() {
        let (chunk, _) = chunk(8 * 64, 64);
        let rounds = if cfg!(miri) { 40 } else { 20_000 };
        std::thread::scope(|scope| {
            for thread in 0..3_u8 {
                let (chunk, sender) = (&chunk, std::sync::mpsc::sync_channel::<(Buffer, u8)>(2));
                let (sender, receiver) = sender;
                scope.spawn(move || {
                    for (buffer, with) in receiver {
                        assert_eq!(*buffer, [with; 32]);
                    }
                });
                scope.spawn(move || {
                    for round in 0..rounds {
                        let with = thread.wrapping_mul(80).wrapping_add(round as u8);
                        let Some(buffer) = filled(chunk, 32, with) else { continue };
                        buffer.set_tag([u64::from(with); 2]);
                        sender.send((buffer.clone(), with)).unwrap();
                        assert!(chunk.tags().count() <= 8);
                        assert_eq!(*buffer, [with; 32]);
                    }
                });
            }
        });
        assert_eq!(chunk.owned(), 0);
        assert_eq!((0..).map_while(|_| chunk.take()).count(), 8);
    }
}
