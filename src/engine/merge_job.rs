//! Merges: tables of one level and of the next become tables of the next.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use super::Engine;
use super::install::Change;
use super::output::{Finished, Output};
use super::tree::Tree;
use crate::catalog::{Run, TableMeta, Version};
use crate::error::{Error, ErrorKind, Result};
use crate::format::edit::{KeyspaceRecord, TreeEdit};
use crate::format::table::Codec;
use crate::merge::{Cursor, MergeForward, Verdict, VersionFilter};
use crate::policy::{CutState, CutView, Fate, Plan, PlanKind};
use crate::store::meter::WriteCause;
use crate::store::table::{TableSettings, TablesCursor};
use crate::types::{Epoch, Seq, TableId};

/// A job looks this often, in records, whether it should stop.
const RECORDS_PER_CHECK: u64 = 1024;

/// What a job does with the entries that it reads.
pub(super) struct Distillation<'a, F> {
    pub(super) output: Output<'a>,
    /// Where tables end; `None` for a single one.
    pub(super) cutting: Option<CutState>,
    /// Whether a table outside the job may hold an older version than this one of the key.
    pub(super) older_outside: F,
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
        let start = self.env.now();
        let inputs = Inputs::of(&version, plan)?;
        let settings = self.table_settings(&tree.record, plan.target, inputs.epoch);
        let below = version.levels().find(|&(level, _)| level == plan.target + 1);
        let grandparents = below.and_then(|(_, level)| level.run()).cloned().unwrap_or_else(Run::empty);
        let distillation = Distillation {
            output: Output::new(self, WriteCause::Merge, settings),
            cutting: Some(self.policy.cutter.start(grandparents)),
            older_outside: |key: &[u8], seq| older_outside(&version, &inputs.ids, key, seq),
        };
        let cursors = inputs.lists.into_values().map(|list| TablesCursor::ahead(self.cache.clone(), list));
        let (finished, volume) = self.distill(MergeForward::new(cursors.collect()), distillation)?;

        let mut edit = self.tree_edit(&version, plan)?;
        let bytes_out = finished.packs.records().iter().map(|pack| pack.length).sum();
        edit.add.extend(finished.tables.into_iter().map(|table| (plan.target, table)));
        let mut change = Change::of_tree(edit);
        change.edit.packs = finished.packs.records().to_vec();
        change.packs = Some(finished.packs);
        self.install(change)?;
        let time: Duration = self.env.now().saturating_sub(start);
        self.tally.merged(volume, inputs.bytes, bytes_out, time);
        Ok(())
    }

    /// Writes what of `merge` somebody may still read.
    pub(super) fn distill<C: Cursor<Error = Error>>(
        &self,
        mut merge: MergeForward<C>,
        mut job: Distillation<'_, impl Fn(&[u8], Seq) -> bool>,
    ) -> Result<(Finished, Volume)> {
        let mut filter = VersionFilter::new(&self.snapshots.list());
        let mut volume = Volume::default();
        let mut last_read: Option<Vec<u8>> = None;
        let mut key_is_written = false;
        merge.seek_first()?;
        while merge.valid() {
            if volume.records_in.is_multiple_of(RECORDS_PER_CHECK) {
                self.health.check_writable()?;
            }
            volume.records_in += 1;
            let (key, stamp) = (merge.key(), merge.stamp());
            let older = || (job.older_outside)(key, stamp.seq());
            let same_key = last_read.as_deref() == Some(key);
            key_is_written &= same_key;
            let verdict =
                if same_key { filter.judge_next(stamp, older) } else { filter.judge_first(stamp, older) };
            if verdict == Verdict::Keep {
                // Never inside a user key (I1); asked where a new key begins, even if its newest version went.
                if !key_is_written
                    && let Some(cutting) = &mut job.cutting
                    && cutting.cut(&CutView { output_bytes: job.output.table_bytes(), next_key: key })
                {
                    job.output.cut()?;
                }
                job.output.add(key, stamp, merge.value())?;
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
        Ok((job.output.finish()?, volume))
    }

    /// The edit of `plan` without what it writes: inputs go, moved tables sink.
    fn tree_edit(&self, version: &Version, plan: &Plan) -> Result<TreeEdit> {
        let drop = plan.inputs.iter().map(|input| match self.policy.retainer.fate(plan, input) {
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
            block_bytes: self.options.tree.block_bytes as usize,
            filter_bits: record.filter_bits,
            codec: if record.lz4 { Codec::Lz4 } else { Codec::Raw },
        }
    }
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
            list.sort_by(|a, b| a.range.smallest.cmp(&b.range.smallest));
        }
        Ok(inputs)
    }
}

/// Whether a table of `version` that is not an input may hold an older version of `key` than `seq` (I5). Tables that
/// have come since hold newer entries only.
pub(super) fn older_outside(version: &Version, inputs: &HashSet<TableId>, key: &[u8], seq: Seq) -> bool {
    let mut tables = version.levels().flat_map(|(_, level)| &level.runs).filter_map(|run| run.find(key));
    tables.any(|table| table.min_seq < seq && !inputs.contains(&table.id))
}

/// Claims keep jobs off each other's inputs, so a missing one is a fault of ours.
fn vanished(table: TableId) -> Error {
    Error::new(
        ErrorKind::Corruption,
        format!("table {table}, an input of a planned merge, is not in the tree"),
    )
}
