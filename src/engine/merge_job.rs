//! Merges: tables of one level and of the next become tables of the next.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use super::Engine;
use super::expiry::Sieve;
use super::install::Change;
use super::output::{Finished, Output, Writing};
use super::scheduler::Job;
use super::tree::Tree;
use crate::catalog::{Run, TableMeta, Version};
use crate::error::{Error, ErrorKind, Result};
use crate::events::JobBegin;
use crate::format::edit::{KeyspaceRecord, TreeEdit};
use crate::format::table::Codec;
use crate::merge::{Coverage, Cursor, MergeForward, Verdict, VersionFilter, fragment};
use crate::policy::{CutState, CutView, Fate, Plan, PlanKind};
use crate::store::table::{TableSettings, TablesCursor};
use crate::types::{Epoch, KeyRange, RangeTombstone, Seq, TableId, UpperBound};

/// A job looks this often, in records, whether it should stop.
const RECORDS_PER_CHECK: u64 = 1024;

/// What a job does with the entries that it reads.
pub(super) struct Distillation<'a> {
    pub(super) output: Output<&'a Engine>,
    /// Where tables end; `None` for a single one.
    pub(super) cutting: Option<CutState>,
    /// Sequence numbers at which somebody reads, ascending.
    pub(super) snapshots: Vec<Seq>,
    /// Its range tombstones, fragmented for `snapshots`.
    pub(super) coverage: Coverage,
    pub(super) outside: Outside<'a>,
    pub(super) sieve: Sieve,
}

/// The tables of a version that a job does not read (I5). Tables that have come since hold newer entries only.
pub(super) struct Outside<'a> {
    pub(super) version: &'a Version,
    pub(super) inputs: &'a HashSet<TableId>,
}

impl Outside<'_> {
    /// Whether one of them may hold an older version of `key` than `seq`.
    fn may_hold(&self, key: &[u8], seq: Seq) -> bool {
        self.runs().filter_map(|run| run.find(key)).any(|table| self.is_older(table, seq))
    }

    /// Whether one of them may hold an older version than `seq` of a key of `range`.
    fn may_hold_any(&self, range: &KeyRange, seq: Seq) -> bool {
        self.runs().flat_map(|run| run.overlapping(range)).any(|table| self.is_older(table, seq))
    }

    fn runs(&self) -> impl Iterator<Item = &Run> {
        self.version.levels().flat_map(|(_, level)| &level.runs)
    }

    fn is_older(&self, table: &TableMeta, seq: Seq) -> bool {
        table.min_seq < seq && !self.inputs.contains(&table.id)
    }
}

/// How much a job has read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Volume {
    pub(super) records_in: u64,
    pub(super) records_out: u64,
}

impl Engine {
    /// Carries `plan` out.
    pub(crate) fn run_plan(&self, tree: &Tree, plan: &Plan) -> Result<()> {
        match plan.kind {
            PlanKind::Move => self.run_move(tree, plan),
            PlanKind::Merge => self.run_merge(tree, plan),
        }
    }

    /// Tables sink by an edit alone.
    fn run_move(&self, tree: &Tree, plan: &Plan) -> Result<()> {
        let version = tree.view().version.clone();
        let edit = self.tree_edit(&version, plan)?;
        self.install(Change::of_tree(edit))?;
        self.tally.moved();
        Ok(())
    }

    fn run_merge(&self, tree: &Tree, plan: &Plan) -> Result<()> {
        let version = tree.view().version.clone();
        let inputs = Inputs::of(&version, plan)?;
        let begin = JobBegin {
            keyspace: tree.record.name.clone(),
            level: plan.source,
            target: plan.target,
            bytes_in: inputs.bytes,
        };
        let bytes = inputs.bytes;
        self.merging_bytes.fetch_add(bytes, Relaxed);
        let result = self.tell_job(Job::Merge, begin, || self.merge(tree, plan, &version, inputs));
        self.merging_bytes.fetch_sub(bytes, Relaxed);
        result
    }

    /// Merges `inputs`, those of `plan` in `version`. Returns the bytes that it wrote.
    fn merge(&self, tree: &Tree, plan: &Plan, version: &Version, mut inputs: Inputs) -> Result<u64> {
        let start = self.env.now();
        let settings = self.table_settings(&tree.record, plan.target, inputs.epoch);
        let below = version.levels().find(|&(level, _)| level == plan.target + 1);
        let grandparents = below.and_then(|(_, level)| level.run()).cloned().unwrap_or_else(Run::empty);
        let snapshots = self.snapshots.list();
        let coverage = self.coverage(&inputs, &snapshots)?;
        for list in inputs.lists.values_mut() {
            list.retain(|table| !is_hidden(table, &coverage, &snapshots));
        }
        let distillation = Distillation {
            output: Output::new(self, Writing::Merge { bytes: inputs.bytes }, settings),
            cutting: Some(self.settings().policy.cutter.start(grandparents)),
            outside: Outside { version, inputs: &inputs.ids },
            snapshots,
            coverage,
            sieve: self.sieve(tree, true),
        };
        let cursors = inputs.lists.into_values().map(|list| TablesCursor::ahead(self.cache.clone(), list));
        let (finished, volume) = self.distill(MergeForward::new(cursors.collect()), distillation)?;

        let mut edit = self.tree_edit(version, plan)?;
        let bytes_out = finished.packs.records().iter().map(|pack| pack.length).sum();
        edit.add.extend(finished.tables.into_iter().map(|table| (plan.target, table)));
        let mut change = Change::of_tree(edit);
        change.edit.packs = finished.packs.records().to_vec();
        change.packs = Some(finished.packs);
        self.install(change)?;
        let time: Duration = self.env.now().saturating_sub(start);
        self.tally.merged(volume, inputs.bytes, bytes_out, time);
        Ok(bytes_out)
    }

    /// The range tombstones of `inputs`.
    fn coverage(&self, inputs: &Inputs, snapshots: &[Seq]) -> Result<Coverage> {
        let mut tombstones = Vec::new();
        for table in inputs.lists.values().flatten().filter(|table| table.range_tombstones > 0) {
            tombstones.extend_from_slice(self.cache.table(table)?.range_tombstones());
        }
        Ok(Coverage::new(fragment(&tombstones, snapshots)))
    }

    /// Writes what of `merge` somebody may still read.
    pub(super) fn distill<C: Cursor<Error = Error>>(
        &self,
        mut merge: MergeForward<C>,
        mut job: Distillation<'_>,
    ) -> Result<(Finished, Volume)> {
        let mut filter = VersionFilter::new(&job.snapshots);
        let kept = job.coverage.fragments().iter().filter(|RangeTombstone { range, seq }| {
            filter.judge_tombstone(*seq, || job.outside.may_hold_any(range, *seq)) == Verdict::Keep
        });
        job.output.set_range_tombstones(kept.cloned());
        let mut volume = Volume::default();
        let mut last_read: Option<Vec<u8>> = None;
        let mut key_is_written = false;
        merge.seek_first()?;
        while merge.valid() {
            if volume.records_in.is_multiple_of(RECORDS_PER_CHECK) {
                self.health.check_writable()?;
            }
            volume.records_in += 1;
            let key = merge.key();
            let same_key = last_read.as_deref() == Some(key);
            key_is_written &= same_key;
            let over = job.coverage.newer_than(key, merge.stamp().seq());
            let newest = !same_key && over.is_none();
            let (stamp, value) = job.sieve.pass(key, (merge.stamp(), merge.value()), newest)?;
            let older = || job.outside.may_hold(key, stamp.seq());
            let verdict = if same_key {
                filter.judge_next(stamp, over, older)
            } else {
                filter.judge_first(stamp, over, older)
            };
            if verdict == Verdict::Keep {
                // Never inside a user key (I1); asked where a new key begins, even if its newest version went.
                if !key_is_written && let Some(cutting) = &mut job.cutting {
                    cut_range_tombstones(cutting, &mut job.output, |boundary| !boundary.admits(key))?;
                    if cutting.cut(&CutView { output_bytes: job.output.table_bytes(), next_key: key }) {
                        job.output.cut(&UpperBound::Excluded(key.into()))?;
                    }
                }
                job.output.add(key, stamp, &value)?;
                volume.records_out += 1;
                key_is_written = true;
            }
            if !same_key {
                let last = last_read.get_or_insert_default();
                last.clear();
                last.extend_from_slice(key);
            }
            merge.step()?;
        }
        if let Some(cutting) = &mut job.cutting {
            cut_range_tombstones(cutting, &mut job.output, |_| true)?;
        }
        Ok((job.output.finish()?, volume))
    }

    /// The edit of `plan` without what it writes: inputs go, moved tables sink.
    fn tree_edit(&self, version: &Version, plan: &Plan) -> Result<TreeEdit> {
        let drop = plan.inputs.iter().map(|input| match self.settings().policy.retainer.fate(plan, input) {
            Fate::Dropped => (input.level, input.table),
        });
        let mut edit = TreeEdit {
            keyspace: plan.keyspace,
            drop: drop.collect(),
            cursors: plan.cursor.iter().map(|cursor| (plan.source, cursor.clone())).collect(),
            ..TreeEdit::default()
        };
        for &id in &plan.moves {
            let (_, table) = version.table(id).ok_or_else(|| vanished(id))?;
            edit.drop.push((plan.source, id));
            edit.add.push((plan.target, table.record()));
        }
        Ok(edit)
    }

    /// How the tables of a keyspace are written.
    pub(super) fn table_settings(&self, record: &KeyspaceRecord, level: u8, epoch: Epoch) -> TableSettings {
        TableSettings {
            keyspace: record.id,
            level,
            epoch,
            block_bytes: self.settings().options.tree.block_bytes as usize,
            filter_bits: record.filter_bits,
            prefix: record.prefix,
            codec: if record.lz4 { Codec::Lz4 } else { Codec::Raw },
        }
    }
}

/// Cuts the output where its range tombstones span much of the level after the target, at the ends of that level's
/// tables as far as `reached` goes.
fn cut_range_tombstones(
    cutting: &mut CutState,
    output: &mut Output<&Engine>,
    reached: impl Fn(&UpperBound) -> bool,
) -> Result<()> {
    while output.has_range_tombstones()
        && let Some(boundary) = cutting.next_boundary().filter(|boundary| reached(boundary)).cloned()
        && let UpperBound::Excluded(next_key) = &boundary
    {
        // A range tombstone is something, though it takes no place before the table ends.
        let output_bytes = output.table_bytes().max(output.reaches(&boundary).into());
        if cutting.cut(&CutView { output_bytes, next_key }) {
            output.cut(&boundary)?;
        }
    }
    Ok(())
}

/// Whether nobody reads anything of `table` but its range tombstones, for newer ones hide it.
fn is_hidden(table: &TableMeta, coverage: &Coverage, snapshots: &[Seq]) -> bool {
    let over = coverage.over_all(&table.range, table.max_seq);
    over.is_some_and(|over| VersionFilter::new(snapshots).is_hidden(table.min_seq, over))
}

/// The tables that a merge reads.
struct Inputs {
    /// One list for each run.
    lists: BTreeMap<(u8, Epoch), Vec<Arc<TableMeta>>>,
    ids: HashSet<TableId>,
    /// Recency of the output: that of the newest input (I3).
    epoch: Epoch,
    bytes: u64,
}

impl Inputs {
    fn of(version: &Version, plan: &Plan) -> Result<Self> {
        let mut inputs = Self { lists: BTreeMap::new(), ids: HashSet::new(), epoch: Epoch(0), bytes: 0 };
        for id in plan.inputs.iter().map(|input| input.table) {
            let (level, table) = version.table(id).ok_or_else(|| vanished(id))?;
            // Deeper levels are one run, whatever the epochs of its tables.
            let run = if level == 0 { table.epoch } else { Epoch(0) };
            inputs.lists.entry((level, run)).or_default().push(table.clone());
            inputs.ids.insert(id);
            inputs.epoch = inputs.epoch.max(table.epoch);
            inputs.bytes += table.extent.length;
        }
        for list in inputs.lists.values_mut() {
            list.sort_by(|a, b| a.range.start.cmp(&b.range.start));
        }
        Ok(inputs)
    }
}

/// Claims keep jobs off each other's inputs, so a missing one is a fault of ours.
fn vanished(table: TableId) -> Error {
    Error::new(
        ErrorKind::Corruption,
        format!("table {table}, an input of a planned merge, is not in the tree"),
    )
}
