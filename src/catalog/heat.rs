//! Heat: how much of a table clients' reads keep in the block cache, and how much of it they have read from its device lately.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What clients' reads do with a table. A clone counts the same bytes.
#[derive(Clone, Debug, Default)]
pub struct Heat(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    /// Bytes that are in the block cache because clients have read them.
    cached: AtomicU64,
    /// Bytes that clients have read from the device, in the low [`READ_BITS`]; above them the age at which they were halved
    /// last.
    read: AtomicU64,
}

const READ_BITS: u32 = 48;
const READ_MAX: u64 = (1 << READ_BITS) - 1;

/// How often what was read is halved at most before nothing is left.
const HALVINGS_MAX: u16 = READ_BITS as u16;

/// What is left of `read` at `age`.
fn left(read: u64, age: u16) -> u64 {
    let halvings = age.wrapping_sub((read >> READ_BITS) as u16);
    // One that has not heard of the latest age may look back from the next.
    let halvings = if halvings > u16::MAX / 2 { 0 } else { halvings.min(HALVINGS_MAX) };
    (read & READ_MAX) >> halvings
}

impl Heat {
    /// Bytes in the cache at the moment.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.cached.load(Relaxed)
    }

    /// Counts `bytes` for as long as the result lives.
    #[must_use]
    pub fn warm(&self, bytes: u64) -> Warm {
        self.0.cached.fetch_add(bytes, Relaxed);
        Warm { heat: self.clone(), bytes }
    }

    /// Counts `bytes` that clients have read from the device. What was read before the last change of `age`, a number that
    /// grows by one, counts half, and so on.
    pub fn read(&self, bytes: u64, age: u16) {
        let add = |read| {
            let more = left(read, age).saturating_add(bytes).min(READ_MAX);
            Some(u64::from(age) << READ_BITS | more)
        };
        let _ = self.0.read.fetch_update(Relaxed, Relaxed, add);
    }

    /// Bytes that clients have read from the device, as they count at `age`.
    #[must_use]
    pub fn read_bytes(&self, age: u16) -> u64 {
        left(self.0.read.load(Relaxed), age)
    }
}

/// Bytes of a table in the cache. A cache entry owns it.
#[derive(Debug)]
pub struct Warm {
    heat: Heat,
    bytes: u64,
}

impl Drop for Warm {
    fn drop(&mut self) {
        if !planted!("heat-not-lowered") {
            self.heat.0.cached.fetch_sub(self.bytes, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_leaves_the_cache_counts_no_more() {
        let heat = Heat::default();
        let (one, other) = (heat.warm(4096), heat.clone().warm(100));
        assert_eq!(heat.bytes(), 4196);
        drop(one);
        assert_eq!(heat.bytes(), 100);
        drop(other);
        assert_eq!(heat.bytes(), 0);
    }

    #[test]
    fn what_was_read_long_ago_counts_less_and_less() {
        let heat = Heat::default();
        heat.read(1000, 7);
        heat.clone().read(24, 7);
        assert_eq!([7, 8, 10, 60].map(|age| heat.read_bytes(age)), [1024, 512, 128, 0]);
        heat.read(88, 9);
        assert_eq!(heat.read_bytes(9), 344);
        assert_eq!(heat.read_bytes(8), 344, "a reader that is late");
        let wrapped = Heat::default();
        wrapped.read(64, u16::MAX);
        assert_eq!(wrapped.read_bytes(1), 16);
        wrapped.read(u64::MAX, 1);
        assert_eq!(wrapped.read_bytes(1), READ_MAX);
    }
}
