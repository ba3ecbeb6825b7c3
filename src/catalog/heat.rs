//! Heat: how much of a table clients' reads keep in the block cache.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bytes of a table that are in the block cache because clients have read them. A clone counts the same bytes.
#[derive(Clone, Debug, Default)]
pub struct Heat(Arc<AtomicU64>);

impl Heat {
    /// Bytes in the cache at the moment.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// Counts `bytes` for as long as the result lives.
    #[must_use]
    pub fn warm(&self, bytes: u64) -> Warm {
        self.0.fetch_add(bytes, Relaxed);
        Warm { heat: self.clone(), bytes }
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
            self.heat.0.fetch_sub(self.bytes, Relaxed);
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
}
