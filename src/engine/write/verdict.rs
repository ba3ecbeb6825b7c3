//! What writers may do now: go on, wait for a moment, or wait until there is less to do.

use std::time::Duration;

use super::path::WritePath;
use crate::engine::shared::job::Job;
use crate::error::Error;
use crate::policy::{self, LoadState, WriterVerdict};

impl WritePath {
    /// What writers may do while the active memtables hold `active_bytes`. Asked with the writer's lock held.
    pub(crate) fn writer_verdict(&self, active_bytes: u64) -> WriterVerdict {
        let pacer = &self.settings.load().policy.pacer;
        let verdict = || pacer.writer(&LoadState { active_bytes, ..self.pressure.load() });
        match verdict() {
            WriterVerdict::Go => {
                if !self.pressure.owed().is_zero() {
                    self.pressure.set_owed(Duration::ZERO);
                }
                WriterVerdict::Go
            }
            WriterVerdict::Stop { .. } => {
                self.pressure.mark_stopped();
                verdict()
            }
            delayed => delayed,
        }
    }

    /// Whether a batch of `bytes` must wait until memtables are flushed, while the active ones hold `active_bytes`: it
    /// is large, and the budget has no room for it beside them. If there are no memtables, it does not wait. Asked
    /// with the writer's lock held.
    pub(crate) fn crowds(&self, active_bytes: u64, bytes: u64) -> bool {
        if bytes <= self.settings.load().limits.large_batch_bytes || planted!("large-batch-not-held-back") {
            return false;
        }
        let crowds = || {
            let held = active_bytes + self.pressure.load().sealed_bytes;
            held > 0 && held.saturating_add(bytes) > self.settings.load().limits.memtables_bytes
        };
        crowds() && {
            self.pressure.mark_stopped();
            crowds()
        }
    }

    /// Why the job that would let a writer go on has failed lately, of one that waits for `reason`. Asked with the writer's
    /// lock held, while the active memtables hold `active_bytes`.
    pub(super) fn trouble(&self, reason: policy::Pressure, active_bytes: u64) -> Option<Error> {
        let job = match reason {
            policy::Pressure::Memtables => Job::Flush,
            policy::Pressure::Level0Runs | policy::Pressure::Debt | policy::Pressure::DeadValues => {
                Job::Compaction
            }
        };
        self.background.trouble(job, |load| {
            let verdict = self.settings.load().policy.pacer.writer(&LoadState { active_bytes, ..*load });
            matches!(verdict, WriterVerdict::Stop { .. })
        })
    }
}
