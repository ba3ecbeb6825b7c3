//! The memory that cached blocks and records lie in.
//!
//! What the cache keeps has many sizes, and each is evicted by itself. In a heap that leaves holes between what stays: where
//! scans follow lookups, stretches of sixteen kilobytes find no room where a hundred thousand records of one kilobyte were, and
//! the process grows to half as much again as its budget. So memory comes in chunks of one length, each carved into frames
//! of one size, and all chunks together take no more than the budget. When another class of sizes needs a chunk, the one of
//! those with the fewest bytes in use is given up: what is in it is evicted, whether the cache would keep it or not.
//!
//! Which chunk has most room, and which the fewest bytes in use, is not kept in any order: the best of some that are picked at
//! random is good enough, and costs nothing when frames are let go of, which happens without a lock.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crate::env::sync::Mutex;
use crate::types::buffer::{FRAME_ALIGN, Frame, HEADER_BYTES, Memory, Tag};
use crate::types::{Buffer, Chunk};

/// Sizes of frames come in so many steps from one power of two to the next: a sixteenth at most is beyond what was asked for.
const STEPS: usize = 16;

/// The budget is so many chunks, as far as their length is within bounds: a class may leave most of one unused, and of a chunk
/// that is given up some of it was of use.
const CHUNKS: u64 = 512;
const CHUNK_BYTES_MIN: u64 = 32 << 10;
const CHUNK_BYTES_MAX: u64 = 512 << 10;

/// A frame takes one part in so many of a chunk at most, or else it is by itself.
const FRAMES_MIN: usize = 12;

/// Smaller budgets are taken for so much: there are a dozen sizes at any time.
const BYTES_MIN: u64 = 1 << 20;

/// Chunks of its class among which one with free frames is looked for.
const ROOM_SAMPLES: usize = 16;
/// One frame in so many must be free in the best of them, or the class gets another chunk.
const ROOM_PART: usize = 64;

/// Chunks among which one to give up is looked for.
const VICTIM_SAMPLES: usize = 32;
/// Chunks that are given up for one: those that readers hold frames of are not free then.
const VICTIMS_MAX: usize = 2;

/// Chunks of memory, and who may have frames of them.
#[derive(Debug)]
pub(crate) struct Frames {
    state: Mutex<State>,
    /// Bytes of all chunks, and of buffers by themselves.
    total: Arc<AtomicU64>,
    bytes_max: AtomicU64,
    chunk_bytes: usize,
}

#[derive(Debug)]
struct State {
    /// By size.
    classes: Vec<Class>,
    random: u64,
}

/// The chunks with frames of one size.
#[derive(Debug, Default)]
struct Class {
    chunks: Vec<Arc<Chunk>>,
    /// Where frames were found last.
    current: usize,
    /// Chunks that were given up while readers held frames of them.
    held: Vec<Arc<Chunk>>,
}

/// Number of the class of frames for buffers of `bytes`, and the size of such a frame.
fn class_of(bytes: usize) -> (usize, usize) {
    let bytes = bytes.saturating_add(HEADER_BYTES).max(STEPS * FRAME_ALIGN / 2);
    let step = |bytes: usize| 1 << (bytes / STEPS).ilog2();
    let round = |bytes: usize| bytes.next_multiple_of(step(bytes).max(FRAME_ALIGN));
    let frame_bytes = round(bytes);
    let power = (frame_bytes / STEPS).ilog2() as usize;
    (power * STEPS + (frame_bytes >> power) - STEPS, frame_bytes)
}

/// Bytes of memory that a buffer of `bytes` takes, in a frame or by itself.
pub(crate) fn memory_bytes(bytes: usize) -> usize {
    class_of(bytes).1
}

impl Frames {
    /// Frames within a budget of `bytes`.
    pub(crate) fn new(bytes: u64) -> Self {
        let chunk_bytes = (bytes / CHUNKS).clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX).next_power_of_two();
        Self {
            state: Mutex::new(State { classes: Vec::new(), random: 1 }),
            total: Arc::default(),
            bytes_max: bytes.max(BYTES_MIN).into(),
            // Half a mebibyte at most.
            chunk_bytes: chunk_bytes as usize,
        }
    }

    /// Bytes of all memory that there is.
    #[cfg(test)]
    fn bytes(&self) -> u64 {
        self.total.load(Relaxed)
    }

    /// Changes the budget. Beyond it, chunks are given up: `evict` is to let go of what was noted with their frames.
    pub(crate) fn set_bytes_max(&self, bytes: u64, evict: impl Fn(Tag)) {
        self.bytes_max.store(bytes.max(BYTES_MIN), Relaxed);
        self.make_room(0, usize::MAX, &evict);
    }

    /// A buffer of `bytes`, its contents left over from its last use, held by nobody else. Where the budget has no room for
    /// it, `evict` is to let go of what was noted with other frames.
    pub(crate) fn take(&self, bytes: usize, evict: impl Fn(Tag)) -> Buffer {
        let (class, frame_bytes) = class_of(bytes);
        if frame_bytes > self.chunk_bytes / FRAMES_MIN {
            let victims_max = VICTIMS_MAX + bytes / self.chunk_bytes;
            self.make_room(Buffer::alone_bytes(bytes) as u64, victims_max, &evict);
            return Buffer::alone(bytes, &self.total);
        }
        let found = self.state.lock().take(class);
        let frame = found.unwrap_or_else(|| self.take_of_another(class, frame_bytes, &evict));
        // The first touch of a page takes long: it comes after the lock.
        frame.into_buffer(bytes)
    }

    /// A frame of a chunk that the class has not had.
    #[cold]
    fn take_of_another(&self, class: usize, frame_bytes: usize, evict: &impl Fn(Tag)) -> Frame {
        let memory = self.make_room(self.chunk_bytes as u64, VICTIMS_MAX, evict);
        let memory = memory.unwrap_or_else(|| Memory::zeroed(self.chunk_bytes, &self.total));
        let (chunk, frame) = Chunk::with_frame(memory, frame_bytes);
        self.state.lock().add(class, chunk);
        frame
    }

    /// Gives up chunks, `victims_max` at most, until there is room for `bytes` more: in the budget, or, where these are a
    /// chunk's, in the memory of one that was given up.
    fn make_room(&self, bytes: u64, victims_max: usize, evict: &impl Fn(Tag)) -> Option<Memory> {
        let is_chunk = bytes == self.chunk_bytes as u64;
        let mut victims = 0;
        loop {
            let mut state = self.state.lock();
            let (total, bytes_max) = (self.total.load(Relaxed), self.bytes_max.load(Relaxed));
            let fits = total + bytes <= bytes_max;
            if fits && !is_chunk {
                return None;
            }
            match state.vacated() {
                Some(memory) if is_chunk && total <= bytes_max => return Some(memory),
                Some(_) => continue,
                None if fits || victims == victims_max => return None,
                None => victims += 1,
            }
            let (class, chunk) = state.victim()?;
            drop(state);
            chunk.tags().for_each(evict);
            self.state.lock().classes[class].held.push(chunk);
        }
    }
}

impl State {
    /// A frame of one of the class's chunks, where they have enough that are free.
    fn take(&mut self, class: usize) -> Option<Frame> {
        let Self { classes, random } = self;
        let Class { chunks, current, held } = classes.get_mut(class)?;
        if let Some(frame) = chunks.get(*current).and_then(Chunk::take) {
            return Some(frame);
        }
        // The emptiest of all, as a rule.
        if let Some(chunk) = held.pop() {
            *current = chunks.len();
            chunks.push(chunk);
        } else if !chunks.is_empty() {
            let owned = |&at: &usize| chunks[at].owned();
            *current = (0..ROOM_SAMPLES).map(|_| pick(random, chunks.len())).min_by_key(owned)?;
        }
        let chunk = chunks.get(*current)?;
        let enough = chunk.frames() - chunk.owned() > chunk.frames() / ROOM_PART;
        enough.then(|| chunk.take()).flatten()
    }

    fn add(&mut self, class: usize, chunk: Arc<Chunk>) {
        if self.classes.len() <= class {
            self.classes.resize_with(class + 1, Class::default);
        }
        let class = &mut self.classes[class];
        class.current = class.chunks.len();
        class.chunks.push(chunk);
    }

    /// Takes out a chunk with few bytes in use, and says of which class it is.
    fn victim(&mut self) -> Option<(usize, Arc<Chunk>)> {
        let Self { classes, random } = self;
        let chunks = classes.iter().map(|class| class.chunks.len()).sum();
        let place = |mut at: usize| {
            classes.iter().enumerate().find_map(|(number, class)| {
                let found = class.chunks.get(at);
                at -= found.map_or(class.chunks.len(), |_| 0);
                found.map(|chunk| (number, at, chunk))
            })
        };
        let samples = (0..VICTIM_SAMPLES.min(chunks)).filter_map(|_| place(pick(random, chunks)));
        let (class, at, _) = samples.min_by_key(|(.., chunk)| chunk.owned() * chunk.frame_bytes())?;
        Some((class, classes[class].chunks.swap_remove(at)))
    }

    /// The memory of a chunk that was given up, and that nobody holds a frame of any more.
    fn vacated(&mut self) -> Option<Memory> {
        self.classes.iter_mut().find_map(|class| {
            let at = class.held.iter().position(|chunk| chunk.owned() == 0)?;
            let chunk = class.held.swap_remove(at);
            // None but frames hold a chunk besides: no count comes once there is none.
            chunk.into_memory().map_err(|chunk| class.held.push(chunk)).ok()
        })
    }
}

/// A number below `count`, which is not 0.
fn pick(random: &mut u64, count: usize) -> usize {
    // Xorshift by Marsaglia, "Xorshift RNGs" (2003), section 3.
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    (*random >> 33) as usize % count
}

#[cfg(test)]
mod tests;
