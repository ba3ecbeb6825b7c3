//! Flush: a sealed memtable becomes tables of level 0.
//!
//! The memtables of a keyspace are flushed one at a time, in the order in which they were sealed. These become
//! durable, one after the other:
//!
//! 1. the tables and their names;
//! 2. the log, where it holds entries of other keyspaces from before the memtable was sealed: a crash must leave a
//!    prefix of the history, in whole batches;
//! 3. the edit.
//!
//! Only then are the memtable, and the log before it that nobody needs, let go.
//!
//! A flush costs one sync for the pack and one for the edit; one more where the pack's name was not made durable
//! ahead; and one for each segment of the log in step 2.
//!
//! It touches what [`JobContext`] holds; of the log, what [`LogTail`](crate::engine::log::log_tail::LogTail)
//! offers.

use std::collections::HashSet;
use std::sync::Arc;

use super::context::JobContext;
use super::install::Change;
use super::output::{Finished, Output, Writing};
use crate::catalog::Run;
use crate::engine::jobs::compaction_iterator::{CompactionIterator, Outside};
use crate::engine::keyspace::tree::{Sealed, Tree, View};
use crate::engine::shared::job::Job;
use crate::engine::shared::statistics::IterationStats;
use crate::env::Work;
use crate::error::Result;
use crate::events::JobBegin;
use crate::format::edit::TreeEdit;
use crate::merge::{Coverage, MergeForward, fragment};
use crate::store::memtable::Memtable;

/// Level that flushes write to.
const LEVEL_0: u8 = 0;

impl JobContext {
    /// Flushes the oldest sealed memtable of `tree`.
    pub(crate) fn flush(&self, tree: &Tree) -> Result<()> {
        let view = tree.view_arc();
        let newest_first = planted!("newest-memtable-flushed-first");
        let next = if newest_first { view.sealed.first() } else { view.sealed.last() };
        let Some(sealed) = next else { return Ok(()) };
        let begin = JobBegin {
            keyspace: tree.record.name.clone(),
            level: LEVEL_0,
            target: LEVEL_0,
            bytes_in: sealed.memtable.bytes(),
        };
        self.notify_job(Job::Flush, begin, || self.flush_sealed(tree, &view, sealed))
    }

    /// Flushes `sealed`, the oldest of `view`. Returns the bytes that it wrote.
    fn flush_sealed(&self, tree: &Tree, view: &View, Sealed { memtable, upto }: &Sealed) -> Result<u64> {
        let start = self.env.now();
        let (finished, iteration) = self.write_level0(tree, view, memtable)?;
        let bytes = finished.packs.records().iter().map(|pack| pack.length).sum();
        let sample = self.sample_overwrites(&view.version, &finished.tables);
        let wal_floor = self.log.prepare(memtable, *upto)?;
        let edit = TreeEdit {
            keyspace: tree.id(),
            add: finished.tables.into_iter().map(|table| (LEVEL_0, table)).collect(),
            flushed: Some(if planted!("flushed-beyond-the-memtable") {
                self.log.visibility.newest()
            } else {
                *upto
            }),
            ..TreeEdit::default()
        };
        let mut change = Change::of_tree(edit);
        change.edit.packs = finished.packs.records().to_vec();
        change.packs = Some(finished.packs);
        change.open = finished.open;
        change.flushed = Some(memtable.clone());
        change.wal_floor = Some(wal_floor);
        if planted!("log-released-before-the-edit") {
            self.log.release(wal_floor)?;
        }
        self.install(change)?;
        tree.overwrite_ratio.count(sample);
        self.statistics.flushed(iteration, memtable.bytes(), bytes, self.env.now().saturating_sub(start));
        self.log.release(wal_floor)?;
        Ok(bytes)
    }

    fn write_level0(
        &self,
        tree: &Tree,
        view: &View,
        memtable: &Arc<Memtable>,
    ) -> Result<(Finished, IterationStats)> {
        let current = self.settings.load();
        let newest = view.version.level(LEVEL_0).runs.first().cloned().unwrap_or_else(Run::empty);
        let policy = &current.policy;
        let cutting = policy.cutter.cuts_flushes().then(|| {
            let level1 = view.version.level(1).largest().filter(|_| policy.layout.has_intra_l0());
            let guards = level1.map(|run| policy.cutter.guards(run, memtable.bytes())).unwrap_or_default();
            let cutting = policy.cutter.start_like(newest, &guards);
            cutting.with_prefixes(self.cut_prefix(tree), memtable.bytes())
        });
        let ignored = planted!("snapshots-ignored-by-a-flush");
        let snapshots = if ignored { Vec::new() } else { self.snapshots.list() };
        // In this order: tables tell of no life that is older than what is removed by.
        let record_filter = self.record_filter(tree, false);
        let settings = self.table_settings(tree, LEVEL_0, self.ids.epoch());
        let iterator = CompactionIterator {
            output: Output::new(self, Writing::Flush { bytes: memtable.bytes() }, settings),
            cutting,
            coverage: Coverage::new(fragment(&memtable.range_tombstones(), &snapshots)),
            snapshots,
            // Everything older than the memtable is in the version: older memtables were flushed before.
            outside: Outside { version: &view.version, inputs: &HashSet::new() },
            record_filter,
        };
        let merge = MergeForward::new(vec![memtable.cursor()]);
        let throttled = self.throttle.begin_flush();
        let (output, iteration) = iterator.run(merge, |records, bytes| {
            self.env.spend(Work { records, bytes });
            throttled.take_place();
            self.health.check_writable()
        })?;
        Ok((output.finish()?, iteration))
    }
}
