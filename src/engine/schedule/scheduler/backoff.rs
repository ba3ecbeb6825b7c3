//! Backoff: which jobs do not start for a while, because some have failed.
//!
//! * What concerns the whole device (a full disk, an error of the operating system) pauses all jobs of the kind that has
//!   failed: others would fail as well, and make it worse.
//! * A compaction that is refused, or finds damage, has failed for what is in its keyspace. It pauses compactions in that
//!   keyspace; others go on.
//! * A flush that fails concerns all, whatever it fails for: its memtable keeps memory from other keyspaces, and the log of
//!   all from being cut.
//!
//! Each pause is twice the last one, up to a maximum. It ends early when somebody waits for such jobs, and is forgotten
//! once one has gone well: of that kind, for the device; of that kind in that keyspace, for the keyspace.
//!
//! It takes no locks and looks at no clock.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::{Job, earlier};
use crate::error::{Error, ErrorKind};
use crate::types::KeyspaceId;

/// Pause after a job that failed, doubled with every further failure up to the maximum: a full disk must not be
/// written to again and again.
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(8);

/// A failure that has left nothing unknown.
#[derive(Clone, Debug)]
pub(super) struct Backoff {
    pub(super) error: Error,
    pause: Duration,
    /// When to try again.
    until: Duration,
    /// Bytes that were free on the device when the job began.
    pub(super) free_bytes: u64,
}

/// The jobs that have failed last. (Rewrites that fail leave single packs alone, and nothing here.)
#[derive(Debug, Default)]
pub(super) struct Backoffs {
    /// For what concerns the device, by kind.
    device: BTreeMap<Job, Backoff>,
    /// For what is in a keyspace, by kind.
    keyspaces: BTreeMap<(Job, KeyspaceId), Backoff>,
}

/// A job that has failed.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    pub(super) job: Job,
    pub(super) keyspace: KeyspaceId,
    pub(super) error: Error,
    /// Bytes that were free on the device when it began.
    pub(super) free_bytes: u64,
}

impl Backoffs {
    /// A job has failed by `now`.
    pub(super) fn failed(&mut self, failure: Failure, now: Duration) {
        let Failure { job, keyspace, error, free_bytes } = failure;
        let is_of_keyspace =
            job != Job::Flush && is_of_keyspace(&error) && !planted!("refused-job-pauses-all-keyspaces");
        let last = match is_of_keyspace {
            true => self.keyspaces.get(&(job, keyspace)),
            false => self.device.get(&job),
        };
        let pause = last.map_or(PAUSE, |last| (last.pause * 2).min(PAUSE_MAX));
        let backoff = Backoff { error, pause, until: now + pause, free_bytes };
        if is_of_keyspace {
            self.keyspaces.insert((job, keyspace), backoff);
        } else {
            self.device.insert(job, backoff);
        }
    }

    /// A job has gone well.
    pub(super) fn succeeded(&mut self, job: Job, keyspace: KeyspaceId) {
        self.device.remove(&job);
        self.keyspaces.remove(&(job, keyspace));
    }

    /// The keyspace is gone, and nobody waits for jobs in it.
    pub(super) fn forget(&mut self, keyspace: KeyspaceId) {
        self.keyspaces.retain(|(_, of), _| *of != keyspace);
    }

    /// Jobs of this kind are to be tried again at once. Whether any had failed.
    pub(super) fn retry(&mut self, job: Job) -> bool {
        let count = self.keyspaces.len();
        self.keyspaces.retain(|(of, _), _| *of != job);
        self.retry_device(job) || self.keyspaces.len() < count
    }

    /// The same, of what concerns the device.
    pub(super) fn retry_device(&mut self, job: Job) -> bool {
        self.device.remove(&job).is_some()
    }

    /// The last failure of this kind that concerns the device.
    pub(super) fn of_device(&self, job: Job) -> Option<&Backoff> {
        self.device.get(&job)
    }

    /// The last failures of this kind that concern single keyspaces.
    pub(super) fn of_keyspaces(&self, job: Job) -> impl Iterator<Item = (KeyspaceId, &Backoff)> {
        self.keyspaces.iter().filter(move |((of, _), _)| *of == job).map(|((_, id), backoff)| (*id, backoff))
    }

    /// How long no job of this kind is to start at all.
    pub(super) fn pause(&self, job: Job, now: Duration) -> Option<Duration> {
        self.device.get(&job).and_then(|backoff| backoff.rest(now))
    }

    /// The keyspaces in which no job of this kind is to start now.
    pub(super) fn paused(&self, job: Job, now: Duration) -> BTreeSet<KeyspaceId> {
        self.of_keyspaces(job).filter(|(_, backoff)| backoff.rest(now).is_some()).map(|(id, _)| id).collect()
    }

    /// After how long the first of those pauses ends.
    pub(super) fn next_pause_ends(&self, job: Job, now: Duration) -> Option<Duration> {
        self.of_keyspaces(job).map(|(_, backoff)| backoff.rest(now)).fold(None, earlier)
    }
}

impl Backoff {
    /// What is left of the pause.
    fn rest(&self, now: Duration) -> Option<Duration> {
        Some(self.until.saturating_sub(now)).filter(|rest| !rest.is_zero())
    }
}

/// Whether a job has failed for what is in its keyspace: one of another keyspace need not.
fn is_of_keyspace(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::Inconsistent | ErrorKind::Corruption => true,
        ErrorKind::InvalidInput
        | ErrorKind::NotFound
        | ErrorKind::Busy
        | ErrorKind::DiskFull
        | ErrorKind::OverBudget
        | ErrorKind::Io
        | ErrorKind::Poisoned
        | ErrorKind::Conflict
        | ErrorKind::Closed
        | ErrorKind::ReadOnly => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const ONE: KeyspaceId = KeyspaceId(1);
    const OTHER: KeyspaceId = KeyspaceId(2);

    fn failure(job: Job, keyspace: KeyspaceId, kind: ErrorKind) -> Failure {
        Failure { job, keyspace, error: Error::new(kind, "on purpose"), free_bytes: 0 }
    }

    fn paused(backoffs: &Backoffs, job: Job, now: Duration) -> (bool, Vec<KeyspaceId>) {
        (backoffs.pause(job, now).is_some(), backoffs.paused(job, now).into_iter().collect())
    }

    #[test]
    fn a_refused_job_pauses_its_kind_in_its_keyspace_and_a_full_disk_its_kind_everywhere() {
        let mut backoffs = Backoffs::default();
        backoffs.failed(failure(Job::Compaction, ONE, ErrorKind::Inconsistent), SECOND);
        assert_eq!(paused(&backoffs, Job::Compaction, SECOND), (false, vec![ONE]));
        assert_eq!(paused(&backoffs, Job::Flush, SECOND), (false, vec![]));
        backoffs.failed(failure(Job::Compaction, OTHER, ErrorKind::DiskFull), SECOND);
        assert_eq!(paused(&backoffs, Job::Compaction, SECOND), (true, vec![ONE]));
        assert_eq!(paused(&backoffs, Job::Compaction, 2 * SECOND), (false, vec![]));
        backoffs.succeeded(Job::Compaction, OTHER);
        assert!(backoffs.of_device(Job::Compaction).is_none());
        assert_eq!(backoffs.of_keyspaces(Job::Compaction).count(), 1, "that was another keyspace");
    }

    #[test]
    fn pauses_double_by_themselves_until_a_job_of_theirs_goes_well() {
        let mut backoffs = Backoffs::default();
        let refused = || failure(Job::Compaction, ONE, ErrorKind::Corruption);
        let mut now = SECOND;
        for seconds in [1, 2, 4, 8, 8] {
            backoffs.failed(refused(), now);
            backoffs.succeeded(Job::Compaction, OTHER);
            assert_eq!(backoffs.next_pause_ends(Job::Compaction, now), Some(seconds * SECOND));
            now += seconds * SECOND;
            assert_eq!(backoffs.next_pause_ends(Job::Compaction, now), None);
        }
        backoffs.succeeded(Job::Compaction, ONE);
        backoffs.failed(refused(), now);
        assert_eq!(backoffs.next_pause_ends(Job::Compaction, now), Some(SECOND));
        assert!(backoffs.retry(Job::Compaction) && !backoffs.retry(Job::Compaction));
        backoffs.failed(refused(), now);
        backoffs.forget(ONE);
        assert!(!backoffs.retry(Job::Compaction));
    }

    #[test]
    fn a_flush_that_is_refused_pauses_all_flushes() {
        let mut backoffs = Backoffs::default();
        backoffs.failed(failure(Job::Flush, ONE, ErrorKind::Inconsistent), SECOND);
        assert_eq!(paused(&backoffs, Job::Flush, SECOND), (true, vec![]));
        assert_eq!(paused(&backoffs, Job::Compaction, SECOND), (false, vec![]));
    }
}
