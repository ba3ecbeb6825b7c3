//! Pointers from a table's index to its cached blocks, so that a reader finds a block without the cache's hash table.
//! (Pointer swizzling: Leis et al., "LeanStore: In-Memory Data Management Beyond Main Memory", ICDE 2018, section 3.1.)
//!
//! * **Who owns what.** The cache owns its entries as before, and decides which of them go. An open table has a pointer for each of
//!   its blocks, which is null or leads to the block of an entry.
//! * **INVARIANT(I23):** a pointer leads to a block only as long as the cache keeps that block, or is about to. It is set before the entry goes
//!   into the cache, and the entry has a [`Shown`], which makes it null when it is dropped: when the entry is evicted, removed or
//!   replaced. Not if the pointer leads to the block of another entry by then, which has a [`Shown`] of its own. So no pointer keeps a
//!   block in memory that the cache has let go of. The other way round, an entry may be without a pointer: a reader then finds
//!   it by its key, and puts a new entry in its place.
//! * **Readers** load a pointer without a lock and without counting ([`arc_swap`]'s guards): who makes it null waits for nobody, and
//!   the block lives until its last reader has gone.
//! * **Use.** The cache evicts what is not used, and does not see a use through a pointer. So a block notes in which
//!   [turn](Turns) of the cache it was used last, and its first use in a turn is passed on.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use arc_swap::{ArcSwapOption, Guard};

use crate::format::block::Block;
use crate::types::buffer::{Whereabouts, prefetch};

/// While the cache takes in as many bytes as it has room for, there are so many turns.
const TURNS: u64 = 8;

/// A block in the cache.
#[derive(Debug)]
pub(crate) struct Resident {
    block: Block,
    /// Whether it is a part of a pinned table.
    is_pinned: bool,
    /// The turn in which its last use was passed on to the cache.
    used_in: AtomicU32,
}

impl Resident {
    pub(super) fn new(block: Block) -> Arc<Self> {
        Arc::new(Self { block, is_pinned: false, used_in: AtomicU32::new(0) })
    }

    /// As [`Resident::new`], for a part of a pinned table.
    pub(super) fn pinned(block: Block) -> Arc<Self> {
        Arc::new(Self { block, is_pinned: true, used_in: AtomicU32::new(0) })
    }

    #[inline]
    pub(super) fn block(&self) -> &Block {
        &self.block
    }

    /// Bytes of memory that it takes besides the block's buffer.
    pub(super) const BYTES: usize = size_of::<Self>() + 2 * size_of::<usize>();

    /// Whether this is the first use in `turn`.
    #[inline]
    pub(super) fn is_first_use(&self, turn: u32) -> bool {
        let is_first = self.used_in.load(Relaxed) != turn;
        if is_first {
            self.used_in.store(turn, Relaxed);
        }
        is_first
    }
}

/// The pointers of one open table. A clone has the same ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct BlockPointers(Arc<[Pointer]>);

/// A pointer, and where the keys of its block lie, which are prefetched together with the block's header.
#[derive(Debug, Default)]
struct Pointer {
    to: ArcSwapOption<Resident>,
    keys: Whereabouts,
}

impl BlockPointers {
    /// Null pointers for this many blocks.
    pub(crate) fn new(blocks: usize) -> Self {
        Self((0..blocks).map(|_| Pointer::default()).collect())
    }

    /// Bytes of memory that they take.
    pub(crate) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.0)
    }

    /// Block `at`, if its pointer leads to it.
    #[inline]
    pub(crate) fn load(&self, at: usize) -> Option<HeldBlock> {
        let pointer = self.0.get(at)?;
        pointer.keys.prefetch();
        let guard = pointer.to.load();
        guard.is_some().then_some(HeldBlock(Held::Resident(guard)))
    }

    /// Prefetches pointer `at`.
    #[inline]
    pub(crate) fn prefetch(&self, at: usize) {
        if let Some(pointer) = self.0.get(at) {
            prefetch(pointer);
        }
    }

    /// Prefetches what a search in block `at` reads, if the pointer leads to it.
    #[inline]
    pub(crate) fn prefetch_block(&self, at: usize) {
        let Some(pointer) = self.0.get(at) else { return };
        pointer.keys.prefetch();
        if let Some(resident) = &*pointer.to.load() {
            prefetch(&resident.block);
            prefetch(&resident.used_in);
        }
    }

    /// Lets pointer `at` lead to `resident`, which is of no other entry, for as long as the result lives.
    pub(super) fn show(&self, at: usize, resident: &Arc<Resident>) -> Shown {
        self.set(at, resident);
        Shown { pointers: self.clone(), at, resident: Arc::as_ptr(resident).addr() }
    }

    fn set(&self, at: usize, resident: &Arc<Resident>) {
        if let Some(pointer) = self.0.get(at) {
            pointer.keys.set(resident.block().searched());
            pointer.to.store(Some(resident.clone()));
        }
    }

    /// Makes pointer `at` null if it leads to what `is_meant` knows.
    fn clear(&self, at: usize, is_meant: impl Fn(&Arc<Resident>) -> bool) {
        let Some(pointer) = self.0.get(at) else { return };
        let now = pointer.to.load();
        if now.as_ref().is_some_and(is_meant) && !planted!("pointer-to-an-evicted-block") {
            // If it leads elsewhere by now, that is another entry's.
            pointer.to.compare_and_swap(&*now, None);
        }
    }
}

/// Makes the pointer to an entry's block null when it is dropped.
#[derive(Debug)]
pub(super) struct Shown {
    pointers: BlockPointers,
    at: usize,
    /// The address of what it leads to, which no other block has before this is dropped: the entry holds it.
    resident: usize,
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.pointers.clear(self.at, |resident| Arc::as_ptr(resident).addr() == self.resident);
    }
}

/// Makes all pointers to parts of a pinned table null when it is dropped. Whoever lets one lead there holds the table.
#[derive(Debug)]
pub(super) struct ShownParts(BlockPointers);

impl ShownParts {
    /// For the table with these pointers.
    pub(super) fn of(pointers: &BlockPointers) -> Self {
        Self(pointers.clone())
    }

    /// Lets a pointer of `of` lead to `part`, if these are the same pointers.
    pub(super) fn show(&self, of: &BlockPointers, at: usize, part: &Arc<Resident>) {
        if Arc::ptr_eq(&self.0.0, &of.0) {
            self.0.set(at, part);
        }
    }
}

impl Drop for ShownParts {
    fn drop(&mut self) {
        (0..self.0.0.len()).for_each(|at| self.0.clear(at, |resident| resident.is_pinned));
    }
}

/// A block, held for reading: the cache's, or one that is not kept.
#[derive(Debug)]
pub(crate) struct HeldBlock(Held);

#[derive(Debug)]
enum Held {
    /// Never of `None`.
    Resident(Guard<Option<Arc<Resident>>>),
    Own(Block),
}

impl HeldBlock {
    pub(crate) fn own(block: Block) -> Self {
        Self(Held::Own(block))
    }

    pub(super) fn resident(resident: Arc<Resident>) -> Self {
        Self(Held::Resident(Guard::from_inner(Some(resident))))
    }

    /// The block as the cache has it, if it is there.
    #[inline]
    pub(super) fn as_resident(&self) -> Option<&Resident> {
        match &self.0 {
            Held::Resident(guard) => guard.as_deref(),
            Held::Own(_) => None,
        }
    }

    /// The block, to keep.
    pub(crate) fn into_block(self) -> Block {
        match self.0 {
            Held::Own(block) => block,
            Held::Resident(_) => Block::clone(&self),
        }
    }
}

impl Deref for HeldBlock {
    type Target = Block;

    #[inline]
    fn deref(&self) -> &Block {
        match &self.0 {
            Held::Resident(guard) => guard.as_deref().expect("invariant: a guard of a block").block(),
            Held::Own(block) => block,
        }
    }
}

/// The turns of a cache: how often it has taken in a part of what it has room for.
#[derive(Debug, Default)]
pub(super) struct Turns {
    taken_in: AtomicU64,
    turn: AtomicU32,
}

impl Turns {
    #[inline]
    pub(super) fn now(&self) -> u32 {
        self.turn.load(Relaxed)
    }

    /// The cache, which has room for `capacity` bytes, takes in `bytes`.
    pub(super) fn take_in(&self, bytes: u64, capacity: u64) {
        let before = self.taken_in.fetch_add(bytes, Relaxed);
        let step = (capacity / TURNS).max(1);
        if before / step != (before + bytes) / step {
            self.turn.fetch_add(1, Relaxed);
        }
    }
}
