//! The memory of cached blocks, spans and rows.
//!
//! # Why not the heap
//!
//! Cache entries have many sizes, and each is evicted by itself. In a heap that leaves gaps between the entries that
//! stay. Where scans follow lookups, a span finds no room between rows, and the process grows well beyond its budget
//! (`docs/benchmarks/choices.md`, "Frames").
//!
//! # How
//!
//! Memory comes in chunks of one length. Each chunk is carved into frames of one size. All chunks together stay
//! within the budget. When a class of sizes needs another chunk, a chunk with few frames in use is given up: its
//! entries are evicted, whether the cache would keep them or not.
//!
//! A chunk cannot be given up while readers hold entries of it that the cache has dropped. Such a chunk counts on top
//! of the budget, as a whole. Otherwise the cache would lose memory to it, and evict in vain.
//!
//! Chunks are not kept in the order of their free frames. The best of a few that are picked at random is good enough.
//! It costs nothing when a frame is let go of, which happens without a lock.
//!
//! An entry that is longer than a part of a chunk ([`FRAMES_MIN`]) has memory of its own. So has every entry of a
//! small cache, where gaps are small too. Such memory is counted while the entry is kept ([`Frames::charge`]).

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};

use crate::env::sync::OrderedMutex;
use crate::types::buffer::{FRAME_ALIGN, Frame, HEADER_BYTES, Memory, Tag};
use crate::types::pages::LARGE_BYTES;
use crate::types::{Buffer, Chunk};

/// Frame sizes from one power of two to the next: at most a sixteenth of a frame is more than was asked for.
const STEPS: usize = 16;

/// Number of chunks in a budget, as far as the bounds of their length allow. Many chunks, since a class may leave
/// most of one unused, and giving up a chunk evicts entries that are of use.
const CHUNKS: u64 = 512;
const CHUNK_BYTES_MIN: u64 = 128 << 10;
const CHUNK_BYTES_MAX: u64 = 512 << 10;

/// With at least so many chunks of a huge page in a budget, chunks are of that length: lookups touch blocks at random, and the
/// processor's translation buffer has few entries for short pages.
const HUGE_CHUNKS: u64 = 256;
const HUGE_CHUNK_BYTES: u64 = LARGE_BYTES as u64;

/// Smaller budgets have no chunks: each of a few dozen size classes would have too few.
const BYTES_MIN: u64 = CHUNKS * CHUNK_BYTES_MIN;

/// A chunk holds at least this many frames; a larger entry has memory of its own. So the remainder of a chunk that is
/// too short for a frame is a small part of it.
const FRAMES_MIN: usize = 6;

/// Chunks of a class that are sampled to find one with free frames.
const ROOM_SAMPLES: usize = 16;
/// The best of them must have more than one frame in this many free, or the class gets another chunk.
const ROOM_PART: usize = 64;

/// Chunks that are sampled to find one to give up.
const VICTIM_SAMPLES: usize = 32;
/// For a new chunk, chunks of at most so many times its length are given up.
const VICTIMS_MAX: u64 = 2;
/// A class's newest chunk is not given up while it is among the newest of all, one part in this many: it is still
/// being filled.
const NEW_PART: u64 = 32;
/// The search ends after this many chunks that cannot be given up.
const HELD_MAX: usize = 8;

/// The owner of the entries in frames: it knows under which tag each is kept.
pub(crate) trait Keeper {
    /// Whether the entry noted as `tag` is kept.
    fn has(&self, tag: Tag) -> bool;

    /// Drops the entry noted as `tag`.
    fn evict(&self, tag: Tag);
}

/// Bytes that count in a total while this value lives.
#[derive(Debug)]
pub(crate) struct Charge {
    bytes: u64,
    total: Arc<AtomicU64>,
}

impl Charge {
    /// Adds `bytes` to `total`. Also returns the total before.
    pub(crate) fn new(bytes: u64, total: &Arc<AtomicU64>) -> (Self, u64) {
        let before = total.fetch_add(bytes, Relaxed);
        (Self { bytes, total: total.clone() }, before)
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.total.fetch_sub(self.bytes, Relaxed);
    }
}

/// Chunks of memory, by the size of their frames, within a budget.
#[derive(Debug)]
pub(crate) struct Frames {
    state: OrderedMutex<State>,
    /// Bytes of all chunks, and of what is charged.
    total: Arc<AtomicU64>,
    bytes_max: AtomicU64,
    /// Length of new chunks; 0 if the budget is too small for chunks.
    chunk_bytes: AtomicUsize,
}

#[derive(Debug)]
struct State {
    /// By the size of their frames.
    classes: Vec<Class>,
    /// Bytes of the chunks that are held.
    held_bytes: u64,
    /// Number of chunks added since the start.
    added: u64,
    random: u64,
}

/// The chunks with frames of one size.
#[derive(Debug, Default)]
struct Class {
    chunks: Vec<Arc<Chunk>>,
    /// Index of the chunk in which a free frame was found last.
    current: usize,
    /// Value of `State::added` when this class got its newest chunk, which is `current` at first.
    added: u64,
    /// Chunks that could not be given up, because readers hold frames in them whose entries the cache has dropped.
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

/// Length of the chunks for a budget of `bytes`; 0 for none.
fn chunk_bytes(bytes: u64) -> usize {
    let length = (bytes / CHUNKS).clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX).next_power_of_two();
    let length = if bytes >= HUGE_CHUNKS * HUGE_CHUNK_BYTES { HUGE_CHUNK_BYTES } else { length };
    // Two mebibytes at most.
    if bytes < BYTES_MIN { 0 } else { length as usize }
}

impl Frames {
    /// Bytes of all memory that there is.
    #[cfg(test)]
    fn bytes(&self) -> u64 {
        self.total.load(Relaxed)
    }

    /// Frames within a budget of `bytes`.
    pub(crate) fn new(bytes: u64) -> Self {
        Self {
            state: OrderedMutex::leaf(State { classes: Vec::new(), held_bytes: 0, added: 0, random: 1 }),
            total: Arc::default(),
            bytes_max: bytes.into(),
            chunk_bytes: chunk_bytes(bytes).into(),
        }
    }

    /// Gives new chunks the length that suits a budget of `bytes`. Chunks of another length are the first to be given
    /// up.
    pub(crate) fn suit(&self, bytes: u64) {
        self.chunk_bytes.store(chunk_bytes(bytes), Relaxed);
    }

    /// Changes the budget. Beyond it, chunks are given up: `keeper` drops the entries in their frames.
    pub(crate) fn set_bytes_max(&self, bytes: u64, keeper: &impl Keeper) {
        self.bytes_max.store(bytes, Relaxed);
        // A smaller budget may take the newest chunks too.
        self.state.lock().classes.iter_mut().for_each(|class| class.added = 0);
        self.make_room(0, u64::MAX, keeper);
    }

    /// A buffer of `bytes` that nobody else holds. Its contents are left over from its last use. If the budget has no
    /// room for its frame, `keeper` drops entries in other frames.
    pub(crate) fn take(&self, bytes: usize, keeper: &impl Keeper) -> Buffer {
        let (class, frame_bytes) = class_of(bytes);
        if frame_bytes > self.chunk_bytes.load(Relaxed) / FRAMES_MIN {
            return Buffer::alone(bytes);
        }
        let found = self.state.lock().take(class);
        let frame = found.unwrap_or_else(|| self.take_of_another(class, frame_bytes, keeper));
        // The first touch of a page takes long, so it comes after the lock is released.
        frame.into_buffer(bytes)
    }

    /// Makes room for `bytes` that are kept outside of frames, and counts them.
    pub(crate) fn charge(&self, bytes: u64, keeper: &impl Keeper) -> Charge {
        let chunk_bytes = self.chunk_bytes.load(Relaxed).max(1) as u64;
        self.make_room(bytes, bytes.saturating_add(VICTIMS_MAX * chunk_bytes), keeper);
        Charge::new(bytes, &self.total).0
    }

    /// A frame of a chunk that is new to the class.
    #[cold]
    fn take_of_another(&self, class: usize, frame_bytes: usize, keeper: &impl Keeper) -> Frame {
        let bytes = self.chunk_bytes.load(Relaxed).max(FRAMES_MIN * frame_bytes);
        let memory = self.make_room(bytes as u64, VICTIMS_MAX * bytes as u64, keeper);
        let memory = memory.filter(|memory| memory.bytes() == bytes);
        let (chunk, frame) =
            Chunk::with_frame(memory.unwrap_or_else(|| Memory::new(bytes, &self.total)), frame_bytes);
        self.state.lock().add(class, chunk);
        frame
    }

    /// Looks at one held chunk: if it could be given up by now, it counts as an ordinary chunk again.
    fn look_again(&self, keeper: &impl Keeper) {
        let Some((class, chunk)) = self.state.lock().held() else { return };
        let can_go = chunk.tags().all(|tag| keeper.has(tag));
        let mut state = self.state.lock();
        if can_go { state.classes[class].chunks.push(chunk) } else { state.hold(class, chunk) }
    }

    /// Gives up chunks until there is room for `bytes` more, or until they have `bytes_max` together. Returns the memory of the
    /// last one, if any, for reuse.
    fn make_room(&self, bytes: u64, bytes_max: u64, keeper: &impl Keeper) -> Option<Memory> {
        self.look_again(keeper);
        let (mut given_up_bytes, mut held) = (0, 0);
        let mut memory: Option<Memory> = None;
        loop {
            let mut state = self.state.lock();
            let beside = state.held_bytes + memory.as_ref().map_or(0, |memory| memory.bytes() as u64);
            let total = self.total.load(Relaxed).saturating_sub(beside) + bytes;
            if total <= self.bytes_max.load(Relaxed) || given_up_bytes >= bytes_max || held == HELD_MAX {
                return memory;
            }
            let Some((class, chunk)) = state.victim(self.chunk_bytes.load(Relaxed)) else { return memory };
            drop(state);
            let given_up = if chunk.tags().all(|tag| keeper.has(tag)) {
                chunk.tags().for_each(|tag| keeper.evict(tag));
                chunk.into_memory()
            } else {
                Err(chunk)
            };
            match given_up {
                Ok(given_up) => {
                    given_up_bytes += given_up.bytes() as u64;
                    (memory, held) = (Some(given_up), 0);
                }
                Err(chunk) => {
                    held += 1;
                    self.state.lock().hold(class, chunk);
                }
            }
        }
    }
}

impl State {
    /// A frame of one of the class's chunks, if a chunk has enough free frames.
    fn take(&mut self, class: usize) -> Option<Frame> {
        let found = self.classes.get(class)?;
        if let Some(frame) = found.chunks.get(found.current).and_then(Chunk::take) {
            return Some(frame);
        }
        if let Some((class, chunk)) = self.held()
            && chunk.owned() > 0
        {
            self.hold(class, chunk);
        }
        let Self { classes, held_bytes, random, .. } = self;
        let Class { chunks, current, held, .. } = classes.get_mut(class)?;
        // A held chunk, as a rule, is the emptiest of all.
        if let Some(chunk) = held.pop() {
            *held_bytes -= chunk.bytes() as u64;
            *current = chunks.len();
            chunks.push(chunk);
        } else if !chunks.is_empty() {
            let owned = |&at: &usize| chunks[at].owned();
            *current = (0..ROOM_SAMPLES).map(|_| pick(random, chunks.len())).min_by_key(owned)?;
        }
        let chunk = chunks.get(*current)?;
        // While a frame changes hands, its old and its new owner may both count for a moment; so the subtraction
        // saturates.
        let enough = chunk.frames().saturating_sub(chunk.owned()) > chunk.frames() / ROOM_PART;
        enough.then(|| chunk.take()).flatten()
    }

    fn add(&mut self, class: usize, chunk: Arc<Chunk>) {
        if self.classes.len() <= class {
            self.classes.resize_with(class + 1, Class::default);
        }
        self.added += 1;
        let class = &mut self.classes[class];
        (class.current, class.added) = (class.chunks.len(), self.added);
        class.chunks.push(chunk);
    }

    /// Takes out a chunk whose length is not `chunk_bytes`, or else one with few frames in use. Returns its class
    /// too.
    fn victim(&mut self, chunk_bytes: usize) -> Option<(usize, Arc<Chunk>)> {
        let Self { classes, random, added, .. } = self;
        let chunks = classes.iter().map(|class| class.chunks.len()).sum();
        let new_since = added.saturating_sub(chunks as u64 / NEW_PART);
        let place = |mut at: usize| {
            classes.iter().enumerate().find_map(|(number, class)| {
                let found = class.chunks.get(at);
                at -= found.map_or(class.chunks.len(), |_| 0);
                let is_new = class.current == at && class.added > new_since;
                found.filter(|_| !is_new).map(|chunk| (number, at, chunk))
            })
        };
        let sample = |at| if chunks > VICTIM_SAMPLES { pick(random, chunks) } else { at };
        let samples = (0..VICTIM_SAMPLES.min(chunks)).map(sample).filter_map(place);
        let (number, at, _) = samples.min_by_key(|(.., chunk)| {
            (chunk.bytes() == chunk_bytes, chunk.owned() * 4096 / chunk.frames())
        })?;
        let class = &mut classes[number];
        let chunk = class.chunks.swap_remove(at);
        if class.current == class.chunks.len() {
            class.current = at;
        }
        Some((number, chunk))
    }

    /// Notes a chunk that cannot be given up.
    fn hold(&mut self, class: usize, chunk: Arc<Chunk>) {
        self.held_bytes += chunk.bytes() as u64;
        self.classes[class].held.push(chunk);
    }

    /// Takes out a chunk that is held.
    fn held(&mut self) -> Option<(usize, Arc<Chunk>)> {
        let Self { classes, held_bytes, random, .. } = self;
        let held = classes.iter().map(|class| class.held.len()).sum();
        let mut at = (held > 0).then(|| pick(random, held))?;
        let (number, class) = classes.iter_mut().enumerate().find(|(_, class)| {
            let is_here = at < class.held.len();
            at -= if is_here { 0 } else { class.held.len() };
            is_here
        })?;
        let chunk = class.held.swap_remove(at);
        *held_bytes -= chunk.bytes() as u64;
        Some((number, chunk))
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
