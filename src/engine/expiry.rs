//! Time to live: when a value was written, and when it is no more.
//!
//! In a keyspace with a time to live every stored value ends in the second at which it was written (4 bytes, little
//! endian, since 1970), put there when its batch is committed and taken off before a caller sees it. A value is *expired*
//! from the second that lies its time to live behind. Readers pass over it as over a tombstone, at every sequence number;
//! flushes and merges make it one, under the number that it has, so that what lies below it stays hidden (I4, I5).
//!
//! That changes no answer as long as time does not go back. The engine's time is the latest that it has seen; every edit
//! of the manifest records it, the one that a merge ends in among them, and the next opening starts from there.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use super::Engine;
use super::events::Event;
use super::tree::Tree;
use crate::batch::WriteBatch;
use crate::env::Env;
use crate::error::{Error, ErrorKind, Result};
use crate::filter::{CompactionFilter, Decision};
use crate::format::batch::{Action, Op};
use crate::format::dated::{self, DATE_BYTES};
use crate::policy::Expiring;
use crate::slice::Slice;
use crate::types::{KeyspaceId, Kind, Seq, Stamp, VALUE_BYTES_MAX};

/// How often it is looked whether enough has expired for tables to go or to be merged.
pub(super) const EXPIRY_PERIOD: Duration = Duration::from_secs(10);

/// Where a merge for what has expired has failed, the next one comes after so long.
const EXPIRY_PAUSE: Duration = Duration::from_secs(60);

/// The last second that a date can tell, in 2106. Time stands still there: what is written from then on stays, where it would
/// otherwise be expired at once.
const SECONDS_MAX: u64 = u32::MAX as u64;

/// Seconds since 1970, never going back, up to [`SECONDS_MAX`].
#[derive(Debug)]
pub(crate) struct Clock(AtomicU64);

impl Clock {
    /// A clock that has seen `seconds`.
    pub(super) fn starting_at(seconds: u64) -> Self {
        Self(seconds.min(SECONDS_MAX).into())
    }

    /// The latest second that was seen, or now if that is later.
    fn now(&self, env: &dyn Env) -> u64 {
        let wall = (env.unix_millis() / 1000).min(SECONDS_MAX);
        let seen = self.0.fetch_max(wall, Relaxed);
        if planted!("expiry-by-a-clock-that-goes-back") { wall } else { seen.max(wall) }
    }

    /// The latest second that was seen.
    pub(super) fn seen(&self) -> u64 {
        self.0.load(Relaxed)
    }
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
    pub(super) fn shown(self, value: &[u8]) -> Option<&[u8]> {
        let (body, written) = dated::split(value)?;
        self.upto.is_none_or(|upto| u64::from(written) > upto).then_some(body)
    }

    /// As [`Expiry::shown`], of a value to keep.
    pub(super) fn keep(self, value: Slice) -> Option<Slice> {
        self.shown(&value).is_some().then(|| value.without_end(DATE_BYTES))
    }
}

impl Engine {
    /// What is expired in `tree` now; nothing if values live for ever there.
    pub(super) fn expiry(&self, tree: &Tree) -> Option<Expiry> {
        let seconds = tree.record.ttl?;
        Some(Expiry { upto: self.clock.now(&*self.env).checked_sub(seconds.get().into()) })
    }

    /// The same, for who decides what becomes of its tables.
    pub(super) fn expiring(&self, tree: &Tree) -> Option<Expiring> {
        let (ttl, upto) = (tree.record.ttl?, self.expiry(tree)?.upto?);
        let pause = tree.expiry_pause.load(Relaxed);
        Some(Expiring {
            upto,
            ttl: ttl.get().into(),
            oldest_pin: self.snapshots.list().first().copied(),
            may_merge: pause == 0 || self.env.now() >= Duration::from_nanos(pause),
        })
    }

    /// The `result` of a job that only expiry asked for. It can wait, so after a failure it does, and is in no other job's way.
    pub(super) fn put_off_expiry(&self, tree: &Tree, result: Result<()>) -> Result<()> {
        let Err(error) = result else { return Ok(()) };
        if self.health.is_poisoned() || error.kind() == ErrorKind::NotFound {
            return Err(error);
        }
        self.tally.failed();
        self.events.tell(|| Event::BackgroundError(error.clone()));
        let until = self.env.now() + EXPIRY_PAUSE;
        tree.expiry_pause.store(u64::try_from(until.as_nanos()).unwrap_or(u64::MAX), Relaxed);
        Ok(())
    }

    /// Whether there is a keyspace in which values expire.
    pub(super) fn any_expires(&self) -> bool {
        self.trees().values().any(|tree| tree.record.ttl.is_some())
    }

    /// The batch as it is stored, if that differs: values that will expire say when they were written.
    pub(super) fn dated(&self, batch: &WriteBatch) -> Result<Option<WriteBatch>> {
        let trees = self.trees.load();
        let expires = |id: &KeyspaceId| trees.get(id).is_some_and(|tree| tree.record.ttl.is_some());
        if !batch.keyspaces().iter().any(expires) {
            return Ok(None);
        }
        let mut dated = WriteBatch::new();
        for Op { keyspace, action } in batch.iter() {
            match action {
                Action::Put { key, value } if expires(&keyspace) => {
                    let value = &self.dated_value(value);
                    dated.add(keyspace, Action::Put { key, value })
                }
                _ => dated.add(keyspace, action),
            };
        }
        dated.validate()?;
        Ok(Some(dated))
    }

    /// `value` as it is stored where values expire.
    pub(super) fn dated_value(&self, value: &[u8]) -> Vec<u8> {
        let written = u32::try_from(self.clock.now(&*self.env)).unwrap_or(u32::MAX);
        dated::date(value, written)
    }

    /// What a job makes of the values of `tree`, before it judges the versions; flushes leave the filter out.
    pub(super) fn sieve(&self, tree: &Tree, filtered: bool) -> Sieve {
        let filter = self.filters.0.get(&tree.record.name).filter(|_| filtered);
        let newest_snapshot = self.snapshots.list().last().copied().unwrap_or(Seq::ZERO);
        Sieve { expiry: self.expiry(tree), filter: filter.cloned(), newest_snapshot }
    }
}

/// Replaces what is expired, or what the owner's filter wants otherwise.
pub(super) struct Sieve {
    expiry: Option<Expiry>,
    filter: Option<Arc<dyn CompactionFilter>>,
    /// The filter sees only what is newer.
    newest_snapshot: Seq,
}

impl Sieve {
    /// Replaces nothing.
    #[cfg(test)]
    pub(super) fn idle() -> Self {
        Self { expiry: None, filter: None, newest_snapshot: Seq::ZERO }
    }

    /// The version to be judged in place of one with this stamp and value. `first`: it is the newest of its key in the
    /// job.
    pub(super) fn pass<'v>(
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
