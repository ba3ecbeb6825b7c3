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
//! [`Keyspaces::alter`](crate::engine::lifecycle::keyspaces::Keyspaces::alter) makes it longer or shorter. What has expired by
//! then stays expired ([`Ttl::alive_from`]), because some of it is removed already, and what is left must not differ.
//!
//! So a job must not remove values by the old time once the change has settled what has expired. Jobs look at the
//! clock under a lock that the change takes too. While the change is not durable they remove only what has expired by
//! both times. Readers take no lock: a reader that looks at the clock during the change may pass over a value that
//! expired in that very moment, though it is alive for others.
//!
//! [`Clock`] tells readers and writers what has expired. What jobs do about it touches what [`JobContext`] holds.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use super::context::JobContext;
use crate::batch::WriteBatch;
use crate::engine::Trees;
use crate::engine::observe::events::Event;
use crate::engine::read::tree::Tree;
use crate::env::Env;
use crate::env::sync::OrderedMutex;
use crate::error::{Error, ErrorKind, Result};
use crate::filter::{CompactionFilter, Decision};
use crate::format::batch::{Action, Op};
use crate::format::timestamped;
use crate::format::timestamped::TIMESTAMP_BYTES;
use crate::policy::Expiring;
use crate::slice::Slice;
use crate::types::{KeyspaceId, Kind, Seq, Stamp, Ttl, VALUE_BYTES_MAX};

/// How often the compaction threads look whether enough has expired for tables to be dropped or compacted.
pub(in crate::engine) const EXPIRY_PERIOD: Duration = Duration::from_secs(10);

/// The pause after a failed compaction of tables alone.
const EXPIRY_PAUSE: Duration = Duration::from_secs(60);

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
    fn settled_expiry(&self, tree: &Tree) -> Option<Expiry> {
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

impl JobContext {
    /// What has expired in `tree`, for the policy that decides what becomes of its tables.
    pub(in crate::engine) fn expiring(&self, tree: &Tree) -> Option<Expiring> {
        let upto = self.clock.settled_expiry(tree)?.upto?;
        let ttl = tree.ttl.get()?.seconds;
        Some(Expiring { upto, ttl: ttl.get().into(), oldest_pin: self.snapshots.list().first().copied() })
    }

    /// Takes the `result` of a job that compacted tables alone, or folded a level for its own sake. Such a job can wait, so
    /// after a failure the next one is put off, and is in no other job's way.
    pub(in crate::engine) fn put_off(&self, tree: &Tree, result: Result<()>) -> Result<()> {
        let Err(error) = result else { return Ok(()) };
        if self.health.is_poisoned() || error.kind() == ErrorKind::NotFound {
            return Err(error);
        }
        self.statistics.failed();
        self.events.notify(|| Event::BackgroundError(error.clone()));
        let until = self.env.now() + EXPIRY_PAUSE;
        tree.put_off_until.store(u64::try_from(until.as_nanos()).unwrap_or(u64::MAX), Relaxed);
        Ok(())
    }

    /// Whether tables of `tree` are not compacted alone, for a while.
    pub(in crate::engine) fn is_put_off(&self, tree: &Tree) -> bool {
        self.env.now() < Duration::from_nanos(tree.put_off_until.load(Relaxed))
    }

    /// Whether that is so of any tree.
    pub(in crate::engine) fn any_put_off(&self) -> bool {
        self.trees.load().values().any(|tree| self.is_put_off(tree))
    }

    /// Whether there is a keyspace in which values expire.
    pub(in crate::engine) fn any_expires(&self) -> bool {
        self.trees.load().values().any(|tree| tree.record.ttl.is_some())
    }

    /// What a job makes of the values of `tree`, before it judges the versions; flushes leave the filter out.
    pub(in crate::engine) fn record_filter(&self, tree: &Tree, filtered: bool) -> RecordFilter {
        let filter = self.filters.0.get(&tree.record.name).filter(|_| filtered);
        let newest_snapshot = self.snapshots.list().last().copied().unwrap_or(Seq::ZERO);
        RecordFilter { expiry: self.clock.settled_expiry(tree), filter: filter.cloned(), newest_snapshot }
    }
}

/// Replaces what is expired, or what the owner's filter wants otherwise.
pub(in crate::engine) struct RecordFilter {
    expiry: Option<Expiry>,
    filter: Option<Arc<dyn CompactionFilter>>,
    /// The filter sees only what is newer.
    newest_snapshot: Seq,
}

impl RecordFilter {
    /// Replaces nothing.
    #[cfg(test)]
    pub(in crate::engine) fn idle() -> Self {
        Self { expiry: None, filter: None, newest_snapshot: Seq::ZERO }
    }

    /// The version to be judged in place of one with this stamp and value. `first`: it is the newest of its key in the
    /// job.
    pub(in crate::engine) fn pass<'v>(
        &self,
        key: &[u8],
        (stamp, value): (Stamp, &'v [u8]),
        first: bool,
    ) -> Result<(Stamp, Cow<'v, [u8]>)> {
        let tombstone = (Stamp::new(stamp.seq(), Kind::Delete), Cow::Borrowed(&value[..0]));
        if stamp.kind() != Kind::Put {
            return Ok((stamp, value.into()));
        }
        let body = match self.expiry {
            Some(expiry) => match expiry.shown(value) {
                Some(body) => body,
                None => return Ok(tombstone),
            },
            None => value,
        };
        let is_free = stamp.seq() > self.newest_snapshot || planted!("filter-decides-under-a-snapshot");
        let Some(filter) = self.filter.as_ref().filter(|_| first && is_free) else {
            return Ok((stamp, value.into()));
        };
        let decision = catch_unwind(AssertUnwindSafe(|| filter.decide(key, body)))
            .map_err(|_| Error::new(ErrorKind::InvalidInput, "the compaction filter has panicked"))?;
        match decision {
            Decision::Keep => Ok((stamp, value.into())),
            Decision::Remove => Ok(tombstone),
            Decision::Change(mut new) => {
                new.extend_from_slice(&value[body.len()..]);
                if new.len() > VALUE_BYTES_MAX {
                    let message = format!("the compaction filter made a value of {} bytes", new.len());
                    return Err(Error::new(ErrorKind::InvalidInput, message));
                }
                Ok((stamp, new.into()))
            }
        }
    }
}
