//! A cache of records by key in front of a store ("K-V store cache" in LSbM-tree, section VI; Cassandra's row cache is one).
//!
//! A lookup asks it first, and fills it with what the store has. A write takes the old value out before the store has the new one,
//! and puts the new one in its place. Scans do not go through it: it does not know which keys there are.
//!
//! Several threads may use it. A lookup fills it only if nobody has written a record of the same stripe meanwhile: what it has
//! read may be older than that.

use std::collections::hash_map::RandomState;
use std::num::NonZeroUsize;
use std::sync::Arc;

use lru::LruCache;
use terrace::env::sync::Mutex;

use crate::Result;

/// Records share counters of writes by so many stripes.
const STRIPES: u64 = 4096;

/// Values by record; the least recently used goes first.
pub struct RecordCache(Mutex<Inner>);

struct Inner {
    values: LruCache<u64, Arc<[u8]>, RandomState>,
    stripes: Vec<Stripe>,
    hits: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct Stripe {
    writing: u32,
    written: u64,
}

impl RecordCache {
    /// Room for `records`, at least one.
    #[must_use]
    pub fn new(records: u64) -> Self {
        let records =
            NonZeroUsize::new(usize::try_from(records).unwrap_or(usize::MAX)).unwrap_or(NonZeroUsize::MIN);
        let stripes = vec![Stripe::default(); STRIPES as usize];
        let values = LruCache::with_hasher(records, RandomState::new());
        Self(Mutex::new(Inner { values, stripes, hits: 0 }))
    }

    /// The value of `record`: from the cache, or what `read` returns, which is kept.
    ///
    /// # Errors
    /// That of `read`.
    pub fn get(
        &self,
        record: u64,
        read: impl FnOnce() -> Result<Option<Arc<[u8]>>>,
    ) -> Result<Option<Arc<[u8]>>> {
        let stripe = {
            let mut inner = self.0.lock();
            if let Some(value) = inner.values.get(&record).cloned() {
                inner.hits += 1;
                return Ok(Some(value));
            }
            inner.stripe(record)
        };
        let value = read()?;
        let mut inner = self.0.lock();
        if let Some(value) = &value
            && stripe.writing == 0
            && stripe == inner.stripe(record)
        {
            inner.values.put(record, value.clone());
        }
        Ok(value)
    }

    /// Writes `value` to `record` by `write`.
    ///
    /// # Errors
    /// That of `write`.
    pub fn put(&self, record: u64, value: &[u8], write: impl FnOnce() -> Result<()>) -> Result<()> {
        let (was_there, before) = {
            let mut inner = self.0.lock();
            let stripe = inner.stripe_mut(record);
            stripe.writing += 1;
            let before = *stripe;
            (inner.values.pop(&record).is_some(), before)
        };
        let done = write();
        let mut inner = self.0.lock();
        // Of two writers of a record, the cache does not know whose value the store has in the end.
        let is_alone = before.writing == 1 && before == inner.stripe(record);
        let stripe = inner.stripe_mut(record);
        stripe.writing -= 1;
        stripe.written += 1;
        if done.is_ok() && was_there && is_alone {
            inner.values.put(record, value.into());
        }
        done
    }

    /// Lookups that it has answered.
    #[must_use]
    pub fn hits(&self) -> u64 {
        self.0.lock().hits
    }
}

impl Inner {
    fn stripe_mut(&mut self, record: u64) -> &mut Stripe {
        &mut self.stripes[(record % STRIPES) as usize]
    }

    fn stripe(&self, record: u64) -> Stripe {
        self.stripes[(record % STRIPES) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(cache: &RecordCache, record: u64, stored: &'static [u8]) -> Arc<[u8]> {
        cache.get(record, || Ok(Some(stored.into()))).unwrap().unwrap()
    }

    #[test]
    fn what_was_read_is_kept_and_what_is_written_takes_its_place() {
        let cache = RecordCache::new(2);
        assert_eq!(*get(&cache, 1, b"old"), *b"old");
        assert_eq!(*get(&cache, 1, b"not asked"), *b"old");
        cache.put(1, b"new", || Ok(())).unwrap();
        assert_eq!(*get(&cache, 1, b"not asked"), *b"new");
        cache.put(2, b"unread", || Ok(())).unwrap();
        assert_eq!(*get(&cache, 2, b"read"), *b"read", "a write brings in nothing new");
        assert_eq!(*get(&cache, 3, b"third"), *b"third");
        assert_eq!(*get(&cache, 1, b"again"), *b"again", "there is room for two");
        assert_eq!(cache.hits(), 2);
        assert_eq!(cache.get(9, || Ok(None)).unwrap(), None);
    }

    #[test]
    fn a_read_during_a_write_is_not_kept() {
        let cache = RecordCache::new(8);
        let read = cache.get(1, || {
            cache.put(1, b"new", || Ok(()))?;
            Ok(Some(b"old".as_slice().into()))
        });
        assert_eq!(*read.unwrap().unwrap(), *b"old");
        assert_eq!(*get(&cache, 1, b"new"), *b"new");
        // The lookup comes while the writer has not yet returned.
        cache
            .put(1, b"newer", || {
                assert_eq!(*get(&cache, 1, b"new"), *b"new");
                Ok(())
            })
            .unwrap();
        assert_eq!(*get(&cache, 1, b"newer yet"), *b"newer");
        // Of two writers it keeps neither's value, and a write that fails leaves nothing.
        cache.put(1, b"first", || cache.put(1, b"second", || Ok(()))).unwrap();
        assert_eq!(*get(&cache, 1, b"second"), *b"second");
        cache.put(1, b"lost", || Err("no".into())).unwrap_err();
        assert_eq!(*get(&cache, 1, b"second again"), *b"second again");
    }
}
