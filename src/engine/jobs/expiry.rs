//! What jobs make of values that have expired, and of those that the owner's filter wants removed or changed.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use super::context::JobContext;
use crate::engine::keyspace::expiry::Expiry;
use crate::engine::keyspace::tree::Tree;
use crate::engine::shared::events::Event;
use crate::error::{Error, ErrorKind, Result};
use crate::filter::{CompactionFilter, Decision};
use crate::policy::Expiring;
use crate::types::{Buffer, Kind, Seq, Stamp, VALUE_BYTES_MAX};

/// How often the compaction threads look whether enough has expired for tables to be dropped or compacted.
pub(in crate::engine) const EXPIRY_PERIOD: Duration = Duration::from_secs(10);

/// The pause after a failed compaction of tables alone.
const EXPIRY_PAUSE: Duration = Duration::from_secs(60);

impl JobContext {
    /// What has expired in `tree`, for the policy that decides what becomes of its tables.
    pub(in crate::engine) fn expiring(&self, tree: &Tree) -> Option<Expiring> {
        let upto = self.clock.settled_expiry(tree)?.upto()?;
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
    /// job. `read` gives the value that a pointer points to.
    pub(in crate::engine) fn pass<'v>(
        &self,
        key: &[u8],
        (stamp, value): (Stamp, &'v [u8]),
        first: bool,
        read: impl FnOnce(&[u8]) -> Result<Buffer>,
    ) -> Result<(Stamp, Cow<'v, [u8]>)> {
        let tombstone = (Stamp::new(stamp.seq(), Kind::Delete), Cow::Borrowed(&value[..0]));
        if !stamp.kind().is_put() {
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
        let timestamp = &value[body.len()..];
        // The filter sees the value, wherever it lies.
        let apart = if stamp.is_separated() { Some(read(value)?) } else { None };
        let body = match &apart {
            Some(apart) => &apart[..apart.len().saturating_sub(timestamp.len())],
            None => body,
        };
        let decision = catch_unwind(AssertUnwindSafe(|| filter.decide(key, body)))
            .map_err(|_| Error::new(ErrorKind::InvalidInput, "the compaction filter has panicked"))?;
        match decision {
            Decision::Keep => Ok((stamp, value.into())),
            Decision::Remove => Ok(tombstone),
            Decision::Change(mut new) => {
                new.extend_from_slice(timestamp);
                if new.len() > VALUE_BYTES_MAX {
                    let message = format!("the compaction filter made a value of {} bytes", new.len());
                    return Err(Error::new(ErrorKind::InvalidInput, message));
                }
                Ok((Stamp::new(stamp.seq(), Kind::Put), new.into()))
            }
        }
    }
}
