//! A skip list of entries that any number of threads grow and read without a lock.
//!
//! Each node is contiguous in an [`Arena`]: header, tower of links, key, value. Heights are geometric (p = 1/2) and
//! follow from a hash of key and stamp, so the same entries always build the same list. A step back is a search from
//! the top.
//!
//! # What a search touches
//!
//! Most nodes are not in the processor's cache, and a search waits for each node that it touches. So a link says,
//! beside where it leads, how the key there begins. This is its *head*: the first eight bytes behind a prefix that is
//! expected of all keys. A search touches a node only if it goes there, or if the heads are equal
//! (`docs/benchmarks/choices.md`, "Skip list links"). At p = 1/2 a search goes to one node per level. At 1/4 it would
//! go to three, on half as many levels.
//!
//! The head in a link is only a hint. It is written after the link, so it may be that of a node further on; if two
//! threads link to one place at a time, even for ever. It is never the head of a node before the link's. So a search
//! that follows a head is right. A search that does not follow it loses time at most, above level 0. Where a search
//! must be sure, at level 0 and where it will insert a link, it looks at the node.
//!
//! # Why it is sound
//!
//! 1. A node is written whole before its first link is published, and links are published by a Release exchange and
//!    followed by Acquire loads: whoever reaches a node sees its header, key and value.
//! 2. Nothing but the links of a node changes after that, and links are atomic: shared references are legal.
//! 3. Nodes are neither moved nor freed before the arena drops. An [`Entry`] borrows the list, a [`MemtableCursor`]
//!    or [`PinnedValue`] holds it by `Arc`, so neither outlives its node.
//! 4. A node is linked level by level from the bottom, each link set before the exchange that makes the node
//!    reachable at that level. A walk at level `l` only stands on nodes it reached at `l` or above, so that `l` is
//!    below their height and the link there is set.
//! 5. The list never unlinks: an exchange that finds the expected successor puts the node in its place (no ABA).
//! 6. The head in a link belongs to a node that the link led to before the head was written (Release), or when it was
//!    written. A link only ever changes to a node with a smaller key. So whoever reads the head (Acquire) and then
//!    the link finds the head's node or one before it.
//!
//! # How it is checked
//!
//! Loom tries all orders of small inserts and searches (`interleavings.rs`). Miri and, on a nightly toolchain, the
//! address and the thread sanitizer run the tests:
//!
//! ```text
//! RUSTFLAGS="--cfg loom" cargo test -p terrace --lib interleavings
//! cargo +nightly miri test -p terrace --lib store::memtable::tests
//! RUSTFLAGS=-Zsanitizer=address cargo +nightly test --target x86_64-unknown-linux-gnu -p terrace --lib store::memtable
//! RUSTFLAGS=-Zsanitizer=thread \
//!     cargo +nightly test -Zbuild-std --target x86_64-unknown-linux-gnu -p terrace --lib store::memtable
//! ```
//!
//! Loom notices a head that is written before its link, Relaxed orderings (6), and memory that is handed out twice.
//! It does not watch headers, keys and values; Miri and the sanitizers do. The last command builds the standard
//! library too, whose own synchronisation the sanitizer would report otherwise; it finds Relaxed links.
//!
//! `cargo bench --bench memtable` compares this list with crossbeam's `SkipMap`, which needs no unsafe code here.
//!
//! The list does not know which entry is visible to whom.
#![expect(
    unsafe_code,
    reason = "nodes of variable size, shared by concurrent writers; see the module header"
)]

use super::arena::{ALIGN, Arena, ChunkPool};
use crate::env::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use crate::env::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize};
use crate::error::Error;
use crate::merge::{Cursor, PinValue, key_head};
use crate::types::{KEY_BYTES_MAX, Stamp, VALUE_BYTES_MAX};
use std::array;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::Arc;

/// Most levels of a node; enough for 2^24 entries. With more entries searches become longer, but stay correct.
const HEIGHT_MAX: usize = 24;

/// Header of a node; `height` links, `key_len` bytes of key and `value_len` bytes of value follow it.
#[repr(C)]
struct Node {
    head: u64,
    stamp: Stamp,
    value_len: u32,
    key_len: u16,
    height: u8,
}

/// The link of a node at one level.
#[repr(C)]
struct Link {
    /// The head of the key there, or of a node further on; [`END`] at the end of the list.
    head: AtomicU64,
    next: AtomicPtr<Node>,
}

#[cfg(test)]
thread_local! {
    /// Number of entries that the thread has looked at, in any list.
    pub(super) static SEEN: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// The largest head.
const END: u64 = u64::MAX;

impl Link {
    fn to_end() -> Self {
        Self { head: AtomicU64::new(END), next: AtomicPtr::new(ptr::null_mut()) }
    }
}

const _: () = assert!(align_of::<Node>() <= ALIGN && align_of::<Link>() <= ALIGN);
const _: () = assert!(size_of::<Node>() == 24 && size_of::<Node>().is_multiple_of(align_of::<Link>()));
const _: () = assert!(KEY_BYTES_MAX <= u16::MAX as usize && VALUE_BYTES_MAX <= u32::MAX as usize);

pub(super) struct SkipList {
    arena: Arena,
    prefix: Box<[u8]>,
    heads: [Link; HEIGHT_MAX],
    /// Levels in use. May be larger than the highest level that has a link.
    height: AtomicUsize,
}

impl SkipList {
    pub(super) fn new(first_chunk_bytes: usize, pool: Arc<ChunkPool>, prefix: &[u8]) -> Self {
        Self {
            arena: Arena::new(first_chunk_bytes, pool),
            prefix: prefix.into(),
            heads: array::from_fn(|_| Link::to_end()),
            height: AtomicUsize::new(1),
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.arena.bytes()
    }

    /// Adds an entry. No two calls may give the same key and stamp.
    pub(super) fn insert(&self, key: &[u8], stamp: Stamp, value: &[u8]) {
        let target = self.target(key, stamp);
        let height = random_height(target.head, stamp);
        let entry = self.allocate(&target, value, height);
        self.height.fetch_max(height, Relaxed);
        let mut gaps = [Gap { before: None, after: None }; HEIGHT_MAX];
        self.descend(&target, height, |level, gap| gaps[level] = gap);
        for (level, gap) in gaps.iter_mut().enumerate().take(height) {
            let own = entry.link(level);
            loop {
                let after = Entry::as_ptr(gap.after);
                own.head.store(gap.after.map_or(END, |after| after.header().head), Relaxed);
                own.next.store(after, Relaxed);
                let link = self.link(gap.before, level);
                if link.next.compare_exchange(after, entry.node.as_ptr(), Release, Relaxed).is_ok() {
                    link.head.store(target.head, Release);
                    break;
                }
                *gap = self.advance(gap.before, level, &target);
            }
        }
    }

    /// The neighbours of (`key`, `stamp`): the last entry strictly before it, the first at or behind it.
    pub(super) fn find(&self, key: &[u8], stamp: Stamp) -> Gap<'_> {
        self.descend(&self.target(key, stamp), 1, |_, _| ())
    }

    pub(super) fn first(&self) -> Option<Entry<'_>> {
        self.next(None, 0)
    }

    pub(super) fn last(&self) -> Option<Entry<'_>> {
        let mut last = None;
        for level in (0..self.height.load(Relaxed)).rev() {
            while let Some(next) = self.next(last, level) {
                last = Some(next);
            }
        }
        last
    }

    fn target<'k>(&self, key: &'k [u8], stamp: Stamp) -> Target<'k> {
        Target { head: self.head(key), key, stamp }
    }

    /// The head of `key`, as a number: a smaller head means a smaller key, equal heads say nothing. Keys without the
    /// prefix are smaller or larger than all keys that have it.
    fn head(&self, key: &[u8]) -> u64 {
        match key.strip_prefix(&*self.prefix) {
            Some(rest) => key_head(rest),
            None if key < &*self.prefix => 0,
            None => END,
        }
    }

    /// Searches from the top, showing `visit` the gap at each level below `height`, which is at least 1.
    fn descend<'a>(
        &'a self,
        target: &Target,
        height: usize,
        mut visit: impl FnMut(usize, Gap<'a>),
    ) -> Gap<'a> {
        let mut gap = Gap { before: None, after: None };
        for level in (0..self.height.load(Relaxed).max(height)).rev() {
            if level >= height {
                gap.before = self.approach(gap.before, level, target);
            } else {
                gap = self.advance(gap.before, level, target);
                visit(level, gap);
            }
        }
        gap
    }

    /// Walks along `level` from `before` over nodes that are surely before `target`, without touching any other node.
    fn approach<'a>(
        &'a self,
        mut before: Option<Entry<'a>>,
        level: usize,
        target: &Target,
    ) -> Option<Entry<'a>> {
        loop {
            let link = self.link(before, level);
            let head = link.head.load(Acquire);
            if head > target.head {
                return before;
            }
            match self.follow(link) {
                Some(entry) if head < target.head || entry.precedes(target) => before = Some(entry),
                _ => return before,
            }
        }
    }

    /// Walks along `level` from `before` to the gap in which `target` belongs.
    fn advance<'a>(&'a self, mut before: Option<Entry<'a>>, level: usize, target: &Target) -> Gap<'a> {
        loop {
            let link = self.link(before, level);
            let head = link.head.load(Acquire);
            let after = self.follow(link);
            match after {
                Some(entry) if head < target.head || entry.precedes(target) => before = after,
                _ => return Gap { before, after },
            }
        }
    }

    fn next<'a>(&'a self, before: Option<Entry<'a>>, level: usize) -> Option<Entry<'a>> {
        self.follow(self.link(before, level))
    }

    fn follow(&self, link: &Link) -> Option<Entry<'_>> {
        let node = NonNull::new(link.next.load(Acquire))?;
        #[cfg(test)]
        SEEN.with(|seen| seen.set(seen.get() + 1));
        // SAFETY: links lead to published nodes of this list.
        Some(unsafe { self.entry(node) })
    }

    fn link<'a>(&'a self, before: Option<Entry<'a>>, level: usize) -> &'a Link {
        before.map_or(&self.heads[level], |entry| entry.link(level))
    }

    /// # Safety
    /// `node` is a node of this list.
    unsafe fn entry(&self, node: NonNull<Node>) -> Entry<'_> {
        Entry { node, list: PhantomData }
    }

    /// Writes a node that is not linked yet, and whose links are all null.
    fn allocate(&self, target: &Target, value: &[u8], height: usize) -> Entry<'_> {
        let key = target.key;
        assert!(key.len() <= KEY_BYTES_MAX && value.len() <= VALUE_BYTES_MAX, "entry exceeds the limits");
        let header = Node {
            head: target.head,
            stamp: target.stamp,
            value_len: value.len() as u32,
            key_len: key.len() as u16,
            height: height as u8,
        };
        let key_offset = size_of::<Node>() + height * size_of::<Link>();
        let node = self.arena.alloc(key_offset + key.len() + value.len()).cast::<Node>();
        // SAFETY: the allocation has room for all four parts, is aligned for header and links, and is ours alone.
        unsafe {
            node.write(header);
            let links = node.add(1).cast::<Link>();
            for level in 0..height {
                links.add(level).write(Link::to_end());
            }
            let bytes = node.cast::<u8>().as_ptr().add(key_offset);
            ptr::copy_nonoverlapping(key.as_ptr(), bytes, key.len());
            ptr::copy_nonoverlapping(value.as_ptr(), bytes.add(key.len()), value.len());
            self.entry(node)
        }
    }
}

/// A height with P(h > n) = 2^-n.
fn random_height(head: u64, stamp: Stamp) -> usize {
    // The finaliser of MurmurHash3: every bit of the input reaches the low bits.
    let mut hash = head ^ stamp.to_u64().wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ hash >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ hash >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^= hash >> 33;
    (1 + hash.trailing_zeros() as usize).min(HEIGHT_MAX)
}

/// What a search looks for.
struct Target<'k> {
    head: u64,
    key: &'k [u8],
    stamp: Stamp,
}

/// Two neighbours at some level; none at an end of the list.
#[derive(Clone, Copy)]
pub(super) struct Gap<'a> {
    pub(super) before: Option<Entry<'a>>,
    pub(super) after: Option<Entry<'a>>,
}

/// An entry of a list that is borrowed for `'a`.
#[derive(Clone, Copy)]
pub(super) struct Entry<'a> {
    // INVARIANT: a whole node of that list; linked, except inside `insert`.
    node: NonNull<Node>,
    list: PhantomData<&'a SkipList>,
}

impl<'a> Entry<'a> {
    pub(super) fn key(self) -> &'a [u8] {
        let header = self.header();
        // SAFETY: the key lies behind the links and never changes.
        unsafe { slice::from_raw_parts(self.payload(), usize::from(header.key_len)) }
    }

    pub(super) fn stamp(self) -> Stamp {
        self.header().stamp
    }

    pub(super) fn value(self) -> &'a [u8] {
        let header = self.header();
        // SAFETY: the value lies behind the key and never changes.
        unsafe {
            let value = self.payload().add(usize::from(header.key_len));
            slice::from_raw_parts(value, header.value_len as usize)
        }
    }

    fn as_ptr(entry: Option<Self>) -> *mut Node {
        entry.map_or(ptr::null_mut(), |entry| entry.node.as_ptr())
    }

    fn header(self) -> &'a Node {
        // SAFETY: an initialised node that outlives 'a and whose header never changes.
        unsafe { self.node.as_ref() }
    }

    /// First byte of the key.
    fn payload(self) -> *const u8 {
        let offset = size_of::<Node>() + usize::from(self.header().height) * size_of::<Link>();
        // SAFETY: inside the node's allocation, or its end when key and value are empty.
        unsafe { self.node.as_ptr().cast::<u8>().add(offset) }
    }

    fn link(self, level: usize) -> &'a Link {
        debug_assert!(level < usize::from(self.header().height), "level above the node's tower");
        // SAFETY: the tower follows the header and has that level, by (4).
        unsafe { self.node.add(1).cast::<Link>().add(level).as_ref() }
    }

    fn precedes(self, target: &Target) -> bool {
        let header = self.header();
        if header.head != target.head {
            return header.head < target.head;
        }
        self.key().cmp(target.key).then_with(|| target.stamp.cmp(&header.stamp)).is_lt()
    }
}

/// A node whose list is kept alive by whoever holds this.
#[derive(Clone, Copy)]
struct Anchor(NonNull<Node>);

// SAFETY: (2): all that threads share through a node is immutable or atomic.
unsafe impl Send for Anchor {}
// SAFETY: as above.
unsafe impl Sync for Anchor {}

/// A value in a memtable, without a copy; it keeps the memtable's memory alive.
#[derive(Clone)]
pub struct PinnedValue {
    list: Arc<SkipList>,
    // INVARIANT: a node of `list`.
    node: Anchor,
}

impl PinnedValue {
    /// The value of the entry that `choose` takes from `list`, and its stamp.
    pub(super) fn of(
        list: &Arc<SkipList>,
        choose: impl for<'a> FnOnce(&'a SkipList) -> Option<Entry<'a>>,
    ) -> Option<(Stamp, Self)> {
        let entry = choose(list)?;
        Some((entry.stamp(), Self { list: Arc::clone(list), node: Anchor(entry.node) }))
    }
}

impl Deref for PinnedValue {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: by the field's invariant.
        unsafe { self.list.entry(self.node.0) }.value()
    }
}

impl fmt::Debug for PinnedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &**self)
    }
}

/// A position in a memtable; it keeps the memtable's memory alive, sees entries added later, and never fails.
#[derive(Clone)]
pub struct MemtableCursor {
    list: Arc<SkipList>,
    // INVARIANT: a node of `list`.
    node: Option<Anchor>,
}

impl MemtableCursor {
    pub(super) fn new(list: Arc<SkipList>) -> Self {
        Self { list, node: None }
    }

    fn entry(&self) -> Entry<'_> {
        let node = self.node.expect("invariant: only a valid cursor is asked for its entry");
        // SAFETY: by the field's invariant.
        unsafe { self.list.entry(node.0) }
    }

    fn to(&mut self, choose: impl for<'a> FnOnce(&'a SkipList, Option<Entry<'a>>) -> Option<Entry<'a>>) {
        // SAFETY: by the field's invariant.
        let entry = self.node.map(|node| unsafe { self.list.entry(node.0) });
        self.node = choose(&self.list, entry).map(|entry| Anchor(entry.node));
    }
}

impl Cursor for MemtableCursor {
    type Error = Error;

    fn valid(&self) -> bool {
        self.node.is_some()
    }

    fn key(&self) -> &[u8] {
        self.entry().key()
    }

    fn stamp(&self) -> Stamp {
        self.entry().stamp()
    }

    fn value(&self) -> &[u8] {
        self.entry().value()
    }

    fn seek(&mut self, key: &[u8], stamp: Stamp) -> Result<(), Error> {
        self.to(|list, _| list.find(key, stamp).after);
        Ok(())
    }

    fn seek_before(&mut self, key: &[u8], stamp: Stamp) -> Result<(), Error> {
        self.to(|list, _| list.find(key, stamp).before);
        Ok(())
    }

    fn seek_first(&mut self) -> Result<(), Error> {
        self.to(|list, _| list.first());
        Ok(())
    }

    fn seek_last(&mut self) -> Result<(), Error> {
        self.to(|list, _| list.last());
        Ok(())
    }

    fn next(&mut self) -> Result<(), Error> {
        self.to(|list, entry| list.next(Some(entry?), 0));
        Ok(())
    }

    fn prev(&mut self) -> Result<(), Error> {
        self.to(|list, entry| entry.and_then(|entry| list.find(entry.key(), entry.stamp()).before));
        Ok(())
    }
}

impl PinValue for MemtableCursor {
    type Pinned = PinnedValue;

    fn pin_value(&self) -> PinnedValue {
        let node = self.node.expect("invariant: only a valid cursor is asked for its value");
        PinnedValue { list: Arc::clone(&self.list), node }
    }
}

#[cfg(all(test, loom))]
mod interleavings;
