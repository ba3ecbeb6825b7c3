//! Flush: sealed memtables become tables of level 0.
//!
//! The memtables of a keyspace are flushed one at a time, in the order in which they were sealed. One flush takes small
//! memtables of many keyspaces together ([`SMALL_BYTES`]), one of each: their tables lie in one pack, and one edit names
//! them all. These become durable, one after the other:
//!
//! 1. the tables and their names;
//! 2. the log, where it holds entries of other memtables from before the last of them was sealed: a crash must leave a
//!    prefix of the history, in whole batches;
//! 3. the edit.
//!
//! Only then are the memtables, and the log before them that nobody needs, let go.
//!
//! A flush costs one sync for the pack and one for the edit; one more where the pack's name was not made durable
//! ahead; and one for each segment of the log in step 2. That is so however many memtables it takes.
//!
//! A keyspace that is dropped meanwhile is left out of the edit; the others stay in.
//!
//! It touches what [`JobContext`] holds; of the log, what [`LogTail`](crate::engine::log::log_tail::LogTail)
//! offers.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::context::JobContext;
use super::expiry::RecordFilter;
use super::install::Change;
use super::output::{Finished, Output, SealedPacks, Writing};
use super::pointers::Pointers;
use super::value_output::WrittenValues;
use crate::catalog::Run;
use crate::engine::jobs::compaction_iterator::{CompactionIterator, Outside};
use crate::engine::keyspace::tree::{Sealed, Tree, View};
use crate::engine::pace::throttle::ThrottledFlush;
use crate::engine::shared::job::Job;
use crate::engine::shared::statistics::IterationStats;
use crate::env::Work;
use crate::error::Result;
use crate::events::JobBegin;
use crate::format::edit::{Edit, TableRecord, TreeEdit};
use crate::merge::{Coverage, MergeForward, fragment};
use crate::options::ValueOrder;
use crate::store::table::TableReader;
use crate::types::{KeyspaceId, Seq, TableId};

/// Level that flushes write to.
const LEVEL_0: u8 = 0;

/// Memtables of fewer bytes are flushed together with others: what a flush of one costs is its barriers.
pub(in crate::engine) const SMALL_BYTES: u64 = 1 << 20;

/// Memtables of so many bytes are flushed together, and of less than [`SMALL_BYTES`] more: as much as one memtable has
/// by default.
pub(in crate::engine) const GROUP_BYTES: u64 = 64 << 20;

/// The fewest memtables that are flushed together: fewer are flushed soon enough one by one.
pub(in crate::engine) const GROUP_MIN: usize = 3;

/// A memtable that is flushed.
struct Input<'a> {
    tree: &'a Tree,
    view: &'a View,
    /// The oldest of `view`.
    sealed: &'a Sealed,
}

/// What a flush has written.
struct Level0 {
    /// The tables of each input.
    tables: Vec<(Vec<TableRecord>, WrittenValues)>,
    open: Vec<(TableId, Arc<TableReader>)>,
    packs: SealedPacks,
    iteration: IterationStats,
}

/// Bytes that were written of one memtable.
fn bytes_of((tables, values): &(Vec<TableRecord>, WrittenValues)) -> u64 {
    let tables = tables.iter().map(|table| table.extent.length);
    tables.chain(values.tables.iter().map(|table| table.extent.length)).sum()
}

impl<'a> Input<'a> {
    fn oldest(tree: &'a Tree, view: &'a View) -> Option<Self> {
        let newest_first = planted!("newest-memtable-flushed-first");
        let sealed = if newest_first { view.sealed.first() } else { view.sealed.last() }?;
        Some(Self { tree, view, sealed })
    }

    fn bytes(&self) -> u64 {
        self.sealed.memtable.bytes()
    }

    fn begin(&self) -> JobBegin {
        JobBegin {
            keyspace: self.tree.record.name.clone(),
            level: LEVEL_0,
            target: LEVEL_0,
            bytes_in: self.bytes(),
        }
    }

    /// The edit that brings `tables` into the tree.
    fn edit(&self, (tables, values): (Vec<TableRecord>, WrittenValues), flushed: Seq) -> TreeEdit {
        TreeEdit {
            keyspace: self.tree.id(),
            add: tables.into_iter().map(|table| (LEVEL_0, table)).collect(),
            flushed: Some(flushed),
            values: values.tables,
            deaths: values.gaps,
            ..TreeEdit::default()
        }
    }
}

impl JobContext {
    /// Flushes the oldest sealed memtable of each of `trees`, together.
    pub(crate) fn flush(&self, trees: &[Arc<Tree>]) -> Result<()> {
        let views: Vec<_> = trees.iter().map(|tree| (tree, tree.view_arc())).collect();
        let inputs: Vec<_> = views.iter().filter_map(|(tree, view)| Input::oldest(tree, view)).collect();
        if inputs.is_empty() {
            return Ok(());
        }
        self.notify_jobs(Job::Flush, inputs.iter().map(Input::begin).collect(), || self.flush_sealed(&inputs))
    }

    /// Flushes `inputs`, which are of different trees. Returns the bytes that were written of each.
    fn flush_sealed(&self, inputs: &[Input<'_>]) -> Result<Vec<u64>> {
        let start = self.env.now();
        let Level0 { tables, open, packs, iteration } = self.write_level0(inputs)?;
        let bytes: u64 = packs.records().iter().map(|pack| pack.length).sum();
        let written = match inputs {
            [_] => vec![bytes],
            _ => tables.iter().map(bytes_of).collect(),
        };
        let samples: Vec<_> = (inputs.iter().zip(&tables))
            .map(|(input, (tables, _))| self.sample_overwrites(&input.view.version, tables))
            .collect();
        let flushed: BTreeMap<KeyspaceId, _> =
            inputs.iter().map(|input| (input.tree.id(), input.sealed.memtable.clone())).collect();
        let upto = inputs.iter().map(|input| input.sealed.upto).max().unwrap_or(Seq::ZERO);
        let wal_floor = self.log.prepare(&flushed, upto)?;
        let end_of = |input: &Input<'_>| match () {
            () if planted!("flushed-beyond-the-memtable") => self.log.visibility.newest(),
            () if planted!("flush-of-many-has-one-end") => upto,
            () => input.sealed.upto,
        };
        let trees =
            inputs.iter().zip(tables).map(|(input, tables)| input.edit(tables, end_of(input))).collect();
        let change = Change {
            edit: Edit { trees, packs: packs.records().to_vec(), ..Edit::default() },
            packs: Some(packs),
            open,
            flushed,
            wal_floor: Some(wal_floor),
            ..Change::default()
        };
        let too_early = inputs.len() > 1 && planted!("flush-of-many-releases-the-log-too-early");
        if too_early || planted!("log-released-before-the-edit") {
            self.log.release(wal_floor)?;
        }
        self.install(change)?;
        for (input, sample) in inputs.iter().zip(samples) {
            input.tree.overwrite_ratio.count(sample);
            input.tree.changed();
        }
        let bytes_in = inputs.iter().map(Input::bytes).sum();
        self.statistics.flushed(iteration, bytes_in, bytes, self.env.now().saturating_sub(start));
        self.log.release(wal_floor)?;
        Ok(written)
    }

    fn write_level0(&self, inputs: &[Input<'_>]) -> Result<Level0> {
        let bytes = inputs.iter().map(Input::bytes).sum();
        let (mut begun, mut iteration) = (None::<Output<&Self>>, IterationStats::default());
        let mut tables = Vec::with_capacity(inputs.len());
        let throttled = self.throttle.begin_flush();
        for input in inputs {
            // In this order: tables tell of no life that is older than what is removed by.
            let record_filter = self.record_filter(input.tree, false);
            let settings = self.table_settings(input.tree, LEVEL_0, self.ids.epoch());
            let output = match begun.take() {
                None => Output::new(self, Writing::Flush { bytes }, settings),
                Some(mut output) => {
                    tables.push(output.turn_to(settings)?);
                    output
                }
            };
            let (output, of_one) = self.write_input(input, output, record_filter, &throttled)?;
            iteration.add(of_one);
            begun = Some(output);
        }
        let finished = begun.map(Output::finish).transpose()?;
        let Finished { tables: last, values, open, packs } =
            finished.expect("invariant: a flush has an input");
        tables.push((last, values));
        Ok(Level0 { tables, open, packs, iteration })
    }

    /// Writes one memtable to `output`, which is about to begin a table.
    fn write_input<'a>(
        &'a self,
        Input { tree, view, sealed }: &Input<'_>,
        mut output: Output<&'a Self>,
        record_filter: RecordFilter,
        throttled: &ThrottledFlush<'_>,
    ) -> Result<(Output<&'a Self>, IterationStats)> {
        let memtable = &sealed.memtable;
        let current = self.settings.load();
        if current.options.tree.value_order == ValueOrder::Log {
            output.separate_ahead(memtable.cursor())?;
        }
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
        let iterator = CompactionIterator {
            output,
            cutting,
            coverage: Coverage::new(fragment(&memtable.range_tombstones(), &snapshots)),
            snapshots,
            // Everything older than the memtable is in the version: older memtables were flushed before.
            outside: Outside { version: &view.version, inputs: &HashSet::new() },
            record_filter,
            pointers: Pointers::none(),
        };
        let merge = MergeForward::new(vec![memtable.cursor()]);
        let (output, iteration, _) = iterator.run(merge, |records, bytes| {
            self.env.spend(Work { records, bytes });
            throttled.wrote(records);
            self.health.check_writable()
        })?;
        Ok((output, iteration))
    }
}
