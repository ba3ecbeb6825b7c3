//! Expiry: in a keyspace with a time to live, values end some time after they were written.
//!
//! Every stored value ends in the second of its write: 4 bytes, little endian, since 1970. The commit of the batch
//! puts them there, and they are taken off before a caller sees the value. A value is *expired* once its time to live
//! has passed since that second. Readers pass over it as over a tombstone, at every sequence number. Flushes and
//! compactions make it a tombstone of the same number, so what lies below it stays hidden (I4, I5).
//!
//! That changes no answer as long as time does not go back. The engine's time is the latest that it has seen. Every
//! edit of the manifest records it, also the edit of each compaction, and the next open starts from there.
//!
//! # Changing the time to live
//!
//! `Keyspaces::alter` (`lifecycle/keyspaces.rs`) makes it longer or shorter. What has expired by
//! then stays expired ([`Ttl::alive_from`]), because some of it is removed already, and what is left must not differ.
//!
//! So a job must not remove values by the old time once the change has settled what has expired. Jobs look at the
//! clock under a lock that the change takes too. While the change is not durable they remove only what has expired by
//! both times. Readers take no lock: a reader that looks at the clock during the change may pass over a value that
//! expired in that very moment, though it is alive for others.
//!
//! [`Clock`] tells readers, writers and jobs what has expired.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::Trees;
use super::tree::Tree;
use crate::batch::WriteBatch;
use crate::env::Env;
use crate::env::sync::OrderedMutex;
use crate::error::Result;
use crate::format::batch::{Action, Op};
use crate::format::timestamped;
use crate::format::timestamped::TIMESTAMP_BYTES;
use crate::slice::Slice;
use crate::types::{KeyspaceId, Ttl};

/// The last second that a date can hold, in 2106. Time stands still there. So what is written later never expires;
/// otherwise it would expire at once.
const SECONDS_MAX: u64 = u32::MAX as u64;

/// Seconds since 1970, which never go back, up to [`SECONDS_MAX`]; and what has expired by them.
#[derive(Debug)]
pub(crate) struct Clock {
    env: Arc<dyn Env>,
    /// The latest second that was seen.
    seen: AtomicU64,
}

impl Clock {
    /// A clock that has seen `seconds`.
    pub(in crate::engine) fn starting_at(env: Arc<dyn Env>, seconds: u64) -> Self {
        Self { env, seen: seconds.min(SECONDS_MAX).into() }
    }

    /// The latest second that was seen, or now if that is later.
    fn now(&self) -> u64 {
        let wall = (self.env.unix_millis() / 1000).min(SECONDS_MAX);
        let seen = self.seen.fetch_max(wall, Relaxed);
        if planted!("expiry-by-a-clock-that-goes-back") { wall } else { seen.max(wall) }
    }

    /// It is not before `second`.
    pub(in crate::engine) fn see(&self, second: u32) {
        self.seen.fetch_max(second.into(), Relaxed);
    }

    /// The latest second that was seen.
    pub(in crate::engine) fn seen(&self) -> u64 {
        self.seen.load(Relaxed)
    }

    /// What is expired in `tree` now; nothing if values live for ever there.
    pub(in crate::engine) fn expiry(&self, tree: &Tree) -> Option<Expiry> {
        let ttl = tree.ttl.get()?;
        Some(Expiry { upto: ttl.expired_upto(self.now()) })
    }

    /// The same, for jobs, which remove what has expired.
    pub(in crate::engine) fn settled_expiry(&self, tree: &Tree) -> Option<Expiry> {
        tree.record.ttl?;
        let _settling = tree.ttl.settling.lock();
        self.expiry(tree)
    }

    /// The new time to live of `tree`, whose values live for `ttl` and are to live as `wanted` says. Until the change
    /// is durable, only what has expired by both is removed.
    pub(in crate::engine) fn alter_ttl(&self, tree: &Tree, ttl: Ttl, wanted: Ttl) -> Ttl {
        let _settling = tree.ttl.settling.lock();
        let altered = ttl.altered(wanted.seconds, self.now());
        if !planted!("longer-life-not-told-before-it-counts") {
            tree.ttl.set(Ttl { seconds: ttl.seconds.max(wanted.seconds), ..altered });
        }
        if planted!("longer-life-for-what-is-gone") { wanted } else { altered }
    }

    /// The batch as it is stored in `trees`, if that differs: values that will expire say when they were written.
    pub(in crate::engine) fn timestamped(
        &self,
        trees: &Trees,
        batch: &WriteBatch,
    ) -> Result<Option<WriteBatch>> {
        let expires = |id: &KeyspaceId| trees.get(id).is_some_and(|tree| tree.record.ttl.is_some());
        if !batch.keyspaces().iter().any(expires) {
            return Ok(None);
        }
        let mut timestamped = WriteBatch::new();
        for Op { keyspace, action } in batch.iter() {
            match action {
                Action::Put { key, value } if expires(&keyspace) => {
                    let value = &self.timestamped_value(value);
                    timestamped.add(keyspace, Action::Put { key, value })
                }
                _ => timestamped.add(keyspace, action),
            };
        }
        timestamped.validate()?;
        Ok(Some(timestamped))
    }

    /// `value` as it is stored where values expire.
    pub(in crate::engine) fn timestamped_value(&self, value: &[u8]) -> Vec<u8> {
        let written = u32::try_from(self.now()).unwrap_or(u32::MAX);
        timestamped::timestamp(value, written)
    }
}

/// For how long the values of a tree live now.
#[derive(Debug)]
pub(in crate::engine) struct AtomicTtl {
    /// Both numbers of the [`Ttl`]; 0 for ever.
    packed: AtomicU64,
    /// Held by whoever settles what has expired, to remove it or for good.
    settling: OrderedMutex<()>,
}

impl AtomicTtl {
    pub(in crate::engine) fn new(ttl: Option<Ttl>) -> Self {
        Self { packed: packed(ttl).into(), settling: OrderedMutex::leaf(()) }
    }

    pub(in crate::engine) fn get(&self) -> Option<Ttl> {
        let packed = self.packed.load(Relaxed);
        let ttl = Ttl::new((packed >> 32) as u32)?;
        Some(Ttl { alive_from: packed as u32, ..ttl })
    }

    pub(in crate::engine) fn set(&self, ttl: Ttl) {
        self.packed.store(packed(Some(ttl)), Relaxed);
    }
}

fn packed(ttl: Option<Ttl>) -> u64 {
    ttl.map_or(0, |ttl| u64::from(ttl.seconds.get()) << 32 | u64::from(ttl.alive_from))
}

/// What is expired for one reader, or one job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expiry {
    /// Values written in this second or before are expired.
    upto: Option<u64>,
}

impl Expiry {
    /// The last second in which what has expired was written; `None` if nothing has.
    pub(in crate::engine) fn upto(self) -> Option<u64> {
        self.upto
    }

    /// The caller's part of `value`; nothing if it is expired.
    #[inline(never)]
    pub(in crate::engine) fn shown(self, value: &[u8]) -> Option<&[u8]> {
        let (body, written) = timestamped::split(value)?;
        self.upto.is_none_or(|upto| u64::from(written) > upto).then_some(body)
    }

    /// As [`Expiry::shown`], of a value to keep.
    pub(in crate::engine) fn keep(self, value: Slice) -> Option<Slice> {
        self.shown(&value).is_some().then(|| value.without_end(TIMESTAMP_BYTES))
    }
}
