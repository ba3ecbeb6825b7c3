//! Reusable buffers for pieces of tables that are read past the cache.
//!
//! The first touch of fresh memory costs far more than the read that fills it, and so do large allocations that come
//! and go. So a buffer returns to a stock by [`Buffers::give`]. The blocks in it and the values that callers hold may
//! share a buffer; it is free for the next use only when its last holder gives it.

use crate::env::sync::{MutexGuard, OrderedMutex};
use crate::types::Buffer;

/// Size classes from one power of two to the next: a buffer is at most a sixteenth too long.
const STEPS: usize = 16;

/// Larger buffers are not kept.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// Free buffers of all sizes in one stock take no more than this.
const FREE_BYTES_MAX: usize = 2 << 20;

/// Number of stocks. A thread that finds one stock in use tries the next: to wait would cost more than a new buffer.
const STOCKS: usize = 2;

/// Free buffers.
#[derive(Debug, Default)]
pub(crate) struct Buffers([OrderedMutex<Stock>; STOCKS]);

/// Free buffers of all size classes, in a cache line of their own.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Stock {
    /// By size class, made as needed.
    lists: Vec<Vec<Buffer>>,
    bytes: usize,
}

impl Buffers {
    /// A buffer of at least `bytes` that nobody else holds. Its contents are left over from its last use.
    pub(crate) fn take(&self, bytes: usize) -> Buffer {
        let Some((class, size)) = class_of(bytes) else { return zeroed(bytes) };
        self.stock().and_then(|mut stock| stock.take(class)).unwrap_or_else(|| zeroed(size))
    }

    /// Gives a buffer back. It can be taken again if nobody else holds it.
    pub(crate) fn give(&self, mut buffer: Buffer) {
        let size = buffer.len();
        let Some((class, _)) = class_of(size).filter(|&(_, rounded)| rounded == size) else { return };
        if buffer.get_mut().is_none() {
            return;
        }
        if let Some(mut stock) = self.stock()
            && stock.bytes + size <= FREE_BYTES_MAX
        {
            stock.give(class, buffer);
        }
    }

    /// Locks a stock that no other thread uses now.
    fn stock(&self) -> Option<MutexGuard<'_, Stock>> {
        self.0.iter().find_map(OrderedMutex::try_lock)
    }
}

impl Stock {
    fn take(&mut self, class: usize) -> Option<Buffer> {
        let buffer = self.lists.get_mut(class)?.pop()?;
        self.bytes -= buffer.len();
        Some(buffer)
    }

    fn give(&mut self, class: usize, buffer: Buffer) {
        self.bytes += buffer.len();
        if self.lists.len() <= class {
            self.lists.resize_with(class + 1, Vec::new);
        }
        self.lists[class].push(buffer);
    }
}

/// The size class of buffers for `bytes`, and their size; `None` for buffers too large to be kept.
fn class_of(bytes: usize) -> Option<(usize, usize)> {
    let step = |bytes: usize| (bytes / STEPS).max(1).ilog2();
    let size = bytes.max(STEPS).next_multiple_of(1 << step(bytes));
    let class = step(size) as usize * STEPS + (size >> step(size)) - STEPS;
    (size <= KEPT_BYTES_MAX).then_some((class, size))
}

fn zeroed(bytes: usize) -> Buffer {
    Buffer::alone(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_has_a_class_of_its_own_size() {
        let mut last: Option<(usize, usize)> = None;
        for bytes in 0..=KEPT_BYTES_MAX {
            let (class, size) = class_of(bytes).unwrap();
            assert!(size >= bytes && class_of(size) == Some((class, size)), "{bytes}");
            assert!(last.is_none_or(|last| last == (class, size) || (last.0 < class && last.1 < size)));
            last = Some((class, size));
        }
        assert_eq!(class_of(KEPT_BYTES_MAX + 1), None);
    }

    #[test]
    fn a_buffer_comes_back_once_nobody_holds_it() {
        let buffers = Buffers::default();
        let buffer = buffers.take(3900);
        assert_eq!(buffer.len(), 3968);
        let address = buffer.as_ptr();
        let value = buffer.clone();
        buffers.give(buffer);
        assert_ne!(buffers.take(3900).as_ptr(), address, "somebody reads it still");
        buffers.give(value);
        assert_eq!(buffers.take(3968).as_ptr(), address);
    }

    #[test]
    fn nobody_waits_for_a_stock_that_is_in_use() {
        let buffers = Buffers::default();
        let first = buffers.0[0].lock();
        let buffer = buffers.take(4096);
        let address = buffer.as_ptr();
        buffers.give(buffer);
        let second = buffers.0[1].try_lock();
        buffers.give(buffers.take(4096));
        drop((first, second));
        assert_eq!([&buffers.0[0], &buffers.0[1]].map(|stock| stock.lock().bytes), [0, 4096]);
        let _first = buffers.0[0].lock();
        assert_eq!(buffers.take(4096).as_ptr(), address);
    }

    #[test]
    fn what_is_kept_free_is_bounded() {
        let buffers = Buffers::default();
        let many: Vec<_> = (0..2 * FREE_BYTES_MAX / 8192).map(|_| buffers.take(8192)).collect();
        many.into_iter().for_each(|buffer| buffers.give(buffer));
        assert_eq!(buffers.0[0].lock().bytes, FREE_BYTES_MAX);
        buffers.give(buffers.take(2 * KEPT_BYTES_MAX));
        assert_eq!(buffers.0[0].lock().bytes, FREE_BYTES_MAX);
    }
}
