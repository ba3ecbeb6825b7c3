//! A model of the operating system's cache of file pages: which reads need the device.
//!
//! What is read or written comes in, the least recently used page goes. A read that misses takes one request for all the pages that
//! are missing. A read brings in what it asks for; what it is
//! told to read ahead ([`File::read_ahead`](crate::env::File::read_ahead)) comes in at once, and who reads it waits for its transfer
//! (`read_ahead`).

use std::cell::Cell;
use std::ops::Range;

use lru::LruCache;

const PAGE_BYTES: u64 = 4096;

/// A file by its number, and a page of it.
type Page = (u64, u64);

/// Reads of pages by threads other than the store's background threads.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PageReads {
    /// Pages that were in memory.
    pub hits: u64,
    /// Pages that were read from the device.
    pub misses: u64,
}

pub(super) struct PageCache {
    pages: LruCache<Page, ()>,
    pages_max: usize,
    reads: PageReads,
}

impl Default for PageCache {
    fn default() -> Self {
        Self { pages: LruCache::unbounded(), pages_max: 0, reads: PageReads::default() }
    }
}

thread_local! {
    static IN_BACKGROUND: Cell<bool> = const { Cell::new(false) };
}

/// What the calling thread reads from here on is not counted.
pub(super) fn leave_out_this_thread() {
    IN_BACKGROUND.set(true);
}

impl PageCache {
    /// Makes it so large; 0 for no cache.
    pub(super) fn set_bytes(&mut self, bytes: u64) {
        self.pages_max = usize::try_from(bytes / PAGE_BYTES).unwrap_or(usize::MAX);
        self.evict();
    }

    /// Whether there is a cache.
    pub(super) fn is_there(&self) -> bool {
        self.pages_max > 0
    }

    pub(super) fn reads(&self) -> PageReads {
        self.reads
    }

    /// Reads `bytes` of a file. Returns how many of them are not in memory, and keeps them.
    pub(super) fn read(&mut self, file: u64, bytes: Range<u64>) -> u64 {
        let mut missing_bytes = 0;
        let mut reads = PageReads::default();
        for page in pages_of(&bytes) {
            let is_there = self.pages.put((file, page), ()).is_some();
            if is_there {
                reads.hits += 1;
            } else {
                reads.misses += 1;
                missing_bytes += PAGE_BYTES;
            }
        }
        self.evict();
        if !IN_BACKGROUND.get() {
            self.reads.hits += reads.hits;
            self.reads.misses += reads.misses;
        }
        missing_bytes
    }

    /// Brings in `bytes` of a file ahead of their read, which counts them. Returns those that are not in memory.
    pub(super) fn bring(&mut self, file: u64, bytes: &Range<u64>) -> Vec<Range<u64>> {
        let mut missing: Vec<Range<u64>> = Vec::new();
        for page in pages_of(bytes) {
            if self.pages.put((file, page), ()).is_some() {
                continue;
            }
            let page = page * PAGE_BYTES..(page + 1) * PAGE_BYTES;
            match missing.last_mut() {
                Some(last) if last.end == page.start => last.end = page.end,
                _ => missing.push(page),
            }
        }
        self.evict();
        missing
    }

    /// Keeps `bytes` of a file that are written.
    pub(super) fn write(&mut self, file: u64, bytes: Range<u64>) {
        for page in pages_of(&bytes) {
            self.pages.put((file, page), ());
        }
        self.evict();
    }

    /// Forgets `bytes` of a file that it no longer has.
    pub(super) fn forget(&mut self, file: u64, bytes: Range<u64>) {
        if self.pages.is_empty() {
            return;
        }
        for page in pages_of(&bytes) {
            self.pages.pop(&(file, page));
        }
    }

    fn evict(&mut self) {
        while self.pages.len() > self.pages_max {
            self.pages.pop_lru();
        }
    }
}

fn pages_of(bytes: &Range<u64>) -> Range<u64> {
    bytes.start / PAGE_BYTES..bytes.end.div_ceil(PAGE_BYTES)
}

#[cfg(test)]
mod tests {
    use std::slice;

    use super::*;

    #[test]
    fn what_was_read_or_written_is_in_memory_until_others_take_its_place() {
        let mut cache = PageCache::default();
        assert!(!cache.is_there());
        cache.set_bytes(3 * PAGE_BYTES);
        assert_eq!(cache.read(1, 0..2 * PAGE_BYTES), 2 * PAGE_BYTES);
        assert_eq!(cache.read(1, 100..200), 0);
        cache.write(2, 0..10);
        // The second page of the first file is the least recently used one.
        assert_eq!(cache.read(2, 5000..5001), PAGE_BYTES);
        assert_eq!(cache.read(1, 0..10), 0);
        assert_eq!(cache.read(1, PAGE_BYTES..PAGE_BYTES + 1), PAGE_BYTES);
        cache.forget(1, 0..2 * PAGE_BYTES);
        assert_eq!(cache.read(1, 0..10), PAGE_BYTES);
        assert_eq!(cache.reads(), PageReads { hits: 2, misses: 5 });
        let missing = PAGE_BYTES..3 * PAGE_BYTES;
        assert_eq!(cache.bring(1, &(0..3 * PAGE_BYTES)), slice::from_ref(&missing));
        assert_eq!(cache.bring(1, &(0..3 * PAGE_BYTES)), []);
        assert_eq!(cache.read(1, 0..3 * PAGE_BYTES), 0);
        assert_eq!(cache.reads(), PageReads { hits: 5, misses: 5 });
    }
}
