//! Compaction: tables of one level, and of the next, become tables of the next level.
//!
//! Some compactions stay in their level: tables of level 0 become tables of one of its runs, and tables of which much
//! has expired or is released are written again in place. Moves of the same plan are part of the same edit.
//!
//! A plan names the tables. The job reads them through the cache, gives their entries to the compaction iterator, and
//! ends in one edit ([`install`](super::install)).
//!
//! # Invariants
//!
//! * All inputs lie in the claims of the plan. So the job knows everything that is older than an entry (I5).
//! * Outputs have the epoch of the newest input, or of the oldest one, as the plan says (I3). What comes to lie on top
//!   of its target has new epochs instead, in the order of the old ones ([`Arriving`]).
//!
//! It touches what [`JobContext`] holds, and the tree that it is given.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use super::context::JobContext;
use super::install::Change;
use super::output::{Finished, Output, Writing};
use super::pointers::{Fates, Pointers};
use crate::catalog::{Descent, Run, TableMeta, Version};
use crate::engine::jobs::compaction_iterator::{CompactionIterator, Outside};
use crate::engine::keyspace::tree::Tree;
use crate::engine::shared::job::Job;
use crate::env::Work;
use crate::error::{Error, ErrorKind, Result};
use crate::events::JobBegin;
use crate::format::edit::{TableRecord, TreeEdit};
use crate::merge::{Coverage, MergeForward, VersionFilter, fragment};
use crate::policy::{Collection, JobClass, OutputAge, Plan, PlanInput, PlanKind, Reason};
use crate::stats::PassedBytes;
use crate::store::table::TablesCursor;
use crate::types::{Epoch, KeyRange, KeyRanges, Seq, TableId};

impl JobContext {
    /// Carries `plan` out.
    pub(crate) fn run_plan(&self, tree: &Tree, plan: &Plan) -> Result<()> {
        match plan.kind {
            PlanKind::Move => self.run_move(tree, plan),
            PlanKind::Compact => self.run_compaction(tree, plan),
            PlanKind::Drop => self.run_drop(tree, plan),
            PlanKind::Rewrite | PlanKind::Relocate(_) => self.run_rewrite(tree, plan),
        }
    }

    /// Tables sink by an edit alone.
    fn run_move(&self, tree: &Tree, plan: &Plan) -> Result<()> {
        let version = tree.view().version.clone();
        let arriving = self.arriving(&version, plan)?;
        let edit = tree_edit(&version, plan, &arriving)?;
        let bytes = moved_bytes(&edit);
        let descent = self.descent(tree, &version, plan)?;
        self.install(Change { stacks: plan.stacks, descent, ..Change::of_tree(edit) })?;
        self.statistics.moved(bytes);
        self.statistics.passed(plan, PassedBytes { moved: bytes, merged: 0 });
        Ok(())
    }

    /// Drops tables by an edit alone. The edit names nothing new. What hides a hidden table is in the tree already; a range
    /// delete that hides one may be in the log alone, which is made durable before. The tables' bytes stay until it is durable, as with any job. It records the
    /// time at which their values had expired, so that no later opening shows them.
    fn run_drop(&self, tree: &Tree, plan: &Plan) -> Result<()> {
        let version = concerned(&tree.view().version, plan);
        debug_assert!(
            matches!(plan.reason, Reason::Hidden | Reason::Deleted)
                || !self.is_needed_by_a_pin(&version, plan),
            "I5: {plan} takes what is newer than a number at which somebody reads"
        );
        let arriving = self.arriving(&version, plan)?;
        let mut edit = tree_edit(&version, plan, &arriving)?;
        let inputs = plan.inputs.iter().filter_map(|input| Some(version.table(input.table)?.1.clone()));
        edit.deaths = self.deaths_with(&version, inputs.collect())?;
        if plan.reason == Reason::Deleted && !planted!("tables-dropped-before-their-delete-is-durable") {
            self.log.sync()?;
        }
        self.install(Change::of_tree(edit))?;
        let dropped = plan.inputs.iter().filter_map(|input| version.table(input.table));
        dropped.for_each(|(_, table)| self.cache.forget(table));
        match plan.reason {
            Reason::Deleted => self.statistics.deleted(plan.inputs.len() as u64),
            Reason::Hidden => self.statistics.hidden(plan.inputs.len() as u64),
            _ => self.statistics.expired(plan.inputs.len() as u64),
        }
        Ok(())
    }

    fn is_needed_by_a_pin(&self, version: &Version, plan: &Plan) -> bool {
        let oldest = self.snapshots.list().first().copied();
        let mut inputs = plan.inputs.iter().filter_map(|input| version.table(input.table));
        inputs.any(|(_, table)| oldest.is_some_and(|pin| table.max_seq > pin))
    }

    fn run_compaction(&self, tree: &Tree, plan: &Plan) -> Result<()> {
        let version = concerned(&tree.view().version, plan);
        let inputs = Inputs::of(&version, plan)?;
        debug_assert!(
            inputs.lie_in(&plan.claims),
            "I5: a job reads keys that it knows no older tables of: {plan}"
        );
        let begin = JobBegin {
            keyspace: tree.record.name.clone(),
            level: plan.source,
            target: plan.target,
            bytes_in: inputs.bytes,
        };
        let bytes = inputs.bytes;
        self.compacting_bytes.fetch_add(bytes, Relaxed);
        let result =
            self.notify_job(Job::Compaction, begin, || self.compact_tables(tree, plan, &version, inputs));
        self.compacting_bytes.fetch_sub(bytes, Relaxed);
        result
    }

    /// Compacts `inputs`, those of `plan` in `version`, unless that is given up. Returns the bytes that it wrote.
    fn compact_tables(&self, tree: &Tree, plan: &Plan, version: &Version, mut inputs: Inputs) -> Result<u64> {
        let start = self.env.now();
        let ignored = planted!("snapshots-ignored-by-a-compaction");
        let snapshots = if ignored { Vec::new() } else { self.snapshots.list() };
        let coverage = self.coverage(&inputs, &snapshots)?;
        for list in inputs.lists.values_mut() {
            // What goes unread takes no pointer along: their values die.
            list.retain(|table| table.values.count > 0 || !is_hidden(table, &coverage, &snapshots));
        }
        let collection = tree.collecting.get();
        // In this order: tables tell of no life that is older than what is removed by.
        let record_filter = self.record_filter(tree, true);
        let arriving = self.arriving(version, plan)?;
        let settings = self.table_settings(tree, plan.target, arriving.outputs);
        let cutting = (self.settings.load().policy.cutter).start_into(
            plan.target,
            grandparents(version, plan),
            &plan.fences,
        );
        // Without snapshots one version of each key is left.
        let is_told = snapshots.is_empty() && !planted!("keys-not-told-by-a-compaction");
        let seed = inputs.key_seed().filter(|_| is_told);
        let iterator = CompactionIterator {
            output: Output::new(self, Writing::Compaction { bytes: inputs.bytes }, settings)
                .keyed(seed)
                .warming(self.cached_keys(&inputs)?)
                .placing_hot(self.hot_keys(inputs.tables())),
            cutting: Some(cutting.with_prefixes(self.cut_prefix(tree), inputs.bytes)),
            outside: Outside { version, inputs: &inputs.ids },
            snapshots,
            coverage,
            record_filter,
            pointers: Pointers::of(&self.cache, version.values(), collection.clone()),
        };
        let ahead_bytes = self.ahead_bytes(inputs.lists.len());
        // All of them begin to read before any is waited for.
        let cursors = inputs
            .lists
            .into_values()
            .map(|list| TablesCursor::readahead(self.cache.clone(), list, ahead_bytes));
        let merge = MergeForward::new(cursors.collect());
        let throttled = self.throttle.begin(JobClass::of(plan));
        let iterated = iterator.run(merge, |records, bytes| {
            self.env.spend(Work { records, bytes });
            throttled.throttle(|| self.health.check_writable())
        });
        if throttled.is_given_up() {
            // Its output is dropped by now, and with it what it had written.
            self.statistics.given_up();
            return Ok(0);
        }
        let (output, volume, mut fates) = iterated?;
        let mut finished = output.finish()?;
        finished.values.gaps.append(&mut fates.deaths);
        let written: Vec<TableId> = finished.tables.iter().map(|table| table.id).collect();
        let descent = self.descent(tree, version, plan)?;
        let (bytes_out, moved_bytes) = self.install_output((version, plan), finished, &arriving, descent)?;
        self.statistics.collected(fates.collected_bytes);
        note_fates(tree, version, collection.as_deref(), &fates, &written);
        self.forget_inputs(tree, (version, plan), &written);
        self.pass_heat_on(tree, (version, plan), &written);
        let time: Duration = self.env.now().saturating_sub(start + throttled.paused());
        self.statistics.compacted(volume, inputs.bytes, bytes_out, time);
        self.count_kind(plan, moved_bytes);
        Ok(bytes_out)
    }

    /// Counts what kind of compaction `plan` was.
    fn count_kind(&self, plan: &Plan, moved_bytes: u64) {
        match plan.reason {
            Reason::Released => self.statistics.released(),
            _ if plan.target == 0 => self.statistics.compacted_in_l0(),
            _ => {}
        }
        if !plan.moves.is_empty() {
            self.statistics.moved(moved_bytes);
        }
    }

    /// Lets the cache forget the inputs of `plan`, as far as no buffer keeps them. If it had them as wholes, it takes what was
    /// `written` in their place.
    fn forget_inputs(&self, tree: &Tree, (version, plan): (&Version, &Plan), written: &[TableId]) {
        let dropped = plan.inputs.iter().filter_map(|input| version.table(input.table));
        let were_whole = self.cache.are_pinned(dropped.clone().map(|(_, table)| &**table));
        let view = tree.view_arc();
        let is_kept = |table: &TableMeta| view.buffer.as_ref().is_some_and(|buffer| buffer.has(table.id));
        dropped.filter(|(_, table)| !is_kept(table)).for_each(|(_, table)| self.cache.forget(table));
        if were_whole {
            let written = written.iter().filter_map(|&id| view.version.table(id));
            written.for_each(|(_, table)| self.cache.settle(table));
        }
    }

    /// Lets the tables that were `written` by `plan` count what users have read of those that they take the place of.
    fn pass_heat_on(&self, tree: &Tree, (version, plan): (&Version, &Plan), written: &[TableId]) {
        let view = tree.view_arc();
        let written = written.iter().filter_map(|id| Some(view.version.table(*id)?.1)).collect();
        let inputs = plan.inputs.iter().filter_map(|input| Some(version.table(input.table)?.1));
        self.pass_heat(inputs, written);
    }

    /// The keys of the inputs' blocks that are in the cache, if it warms up what takes their place.
    fn cached_keys(&self, inputs: &Inputs) -> Result<Option<Arc<KeyRanges>>> {
        // Where the cache has the inputs as wholes, it takes the outputs as wholes.
        let is_whole = || self.cache.are_pinned(inputs.lists.values().flatten().map(|table| &**table));
        if !self.cache.warms_up() || is_whole() {
            return Ok(None);
        }
        let mut keys = KeyRanges::default();
        for table in inputs.lists.values().flatten() {
            self.cache.cached_ranges(table, &mut keys)?;
        }
        Ok((!keys.is_empty()).then(|| Arc::new(keys)))
    }

    /// Installs `plan` with what it has written. Bytes of that, and of what moves.
    pub(in crate::engine) fn install_output(
        &self,
        (version, plan): (&Version, &Plan),
        finished: Finished,
        arriving: &Arriving,
        descent: Option<Descent>,
    ) -> Result<(u64, u64)> {
        let mut edit = tree_edit(version, plan, arriving)?;
        let moved_bytes = moved_bytes(&edit);
        let bytes_out = finished.packs.records().iter().map(|pack| pack.length).sum();
        edit.add.extend(finished.tables.into_iter().map(|table| (plan.target, table)));
        (edit.values, edit.deaths) = (finished.values.tables, finished.values.gaps);
        let mut change = Change { stacks: plan.stacks, descent, ..Change::of_tree(edit) };
        change.edit.packs = finished.packs.records().to_vec();
        change.packs = Some(finished.packs);
        change.open = finished.open;
        self.install(change)?;
        let taken = plan.inputs.iter().filter(|input| input.level == plan.source);
        let taken = taken.filter_map(|input| Some(version.table(input.table)?.1.bytes()));
        self.statistics.passed(plan, PassedBytes { moved: moved_bytes, merged: taken.sum() });
        Ok((bytes_out, moved_bytes))
    }

    /// The epochs of what `plan` brings to its target. No other job works in that range of the target until this one
    /// has ended, so that what comes there later has higher ones.
    pub(in crate::engine) fn arriving(&self, version: &Version, plan: &Plan) -> Result<Arriving> {
        Arriving::of(version, plan, || self.ids.epoch())
    }

    /// The range tombstones of `inputs`.
    fn coverage(&self, inputs: &Inputs, snapshots: &[Seq]) -> Result<Coverage> {
        let mut tombstones = Vec::new();
        for table in inputs.lists.values().flatten().filter(|table| table.range_tombstones > 0) {
            tombstones.extend_from_slice(self.cache.table(table)?.range_tombstones());
        }
        Ok(Coverage::new(fragment(&tombstones, snapshots)))
    }
}

/// Notes what a job which began under `collection` has made of pointers in what it has `written`: if that is clean, they lead into none
/// of the value tables that are to be left.
fn note_fates(
    tree: &Tree,
    version: &Version,
    collection: Option<&Collection>,
    fates: &Fates,
    written: &[TableId],
) {
    let Some(collection) = collection else { return };
    if fates.is_clean {
        tree.collecting.note_clean(collection, written.iter().copied());
    }
    if !fates.unreadable.is_empty() {
        tree.collecting.note_unreadable(&fates.unreadable);
    }
    if planted!("table-taken-for-clean") {
        tree.collecting.note_clean(collection, version.tables().map(|(_, table)| table.id));
    }
    tree.changed();
}

/// Epochs of what a plan brings to its target.
pub(in crate::engine) struct Arriving {
    /// Of the tables that it writes.
    outputs: Epoch,
    /// Of those that move, in the order of the plan.
    moves: Vec<Epoch>,
}

impl Arriving {
    /// Those of `plan`; `next` gives a new epoch.
    ///
    /// What lies on top of the target is newer than all that lies there, so it has new epochs: of moved tables, one for
    /// each old one, in their order. The outputs are as new as the newest input from the source. What does not lie on top
    /// is as new as the plan says.
    fn of(version: &Version, plan: &Plan, mut next: impl FnMut() -> Epoch) -> Result<Self> {
        let epoch_of = |id: &TableId| match version.table(*id) {
            Some((_, table)) => Ok(table.epoch),
            None => Err(vanished(*id)),
        };
        // Of those that are on top, only what is from the source tells their age.
        let tells = |input: &&PlanInput| !plan.stacks || input.level == plan.source;
        let ages = plan.inputs.iter().filter(tells).map(|input| epoch_of(&input.table));
        let ages = ages.collect::<Result<Vec<_>>>()?.into_iter();
        let age = match plan.age {
            OutputAge::Oldest if !planted!("fold-with-the-highest-epoch") => ages.min(),
            OutputAge::Oldest | OutputAge::Newest => ages.max(),
        };
        let age = age.unwrap_or_default();
        let mut moves = plan.moves.iter().map(epoch_of).collect::<Result<Vec<_>>>()?;
        if !plan.stacks {
            return Ok(Self { outputs: age, moves });
        }
        // Tables that move share no key with outputs of the same age; theirs is the lower epoch.
        let mut ages: BTreeMap<(Epoch, bool), Epoch> =
            moves.iter().map(|old| ((*old, false), *old)).collect();
        if !plan.inputs.is_empty() {
            ages.insert((age, true), age);
        }
        ages.values_mut().for_each(|epoch| *epoch = next());
        if !planted!("moved-table-keeps-its-old-epoch") {
            moves.iter_mut().for_each(|epoch| *epoch = ages[&(*epoch, false)]);
        }
        Ok(Self { outputs: ages.get(&(age, true)).copied().unwrap_or(age), moves })
    }
}

/// The edit of `plan` without what it writes: inputs go, moved tables sink.
///
/// What is kept in a compaction buffer leaves the tree as well: the manifest knows nothing of buffers.
fn tree_edit(version: &Version, plan: &Plan, arriving: &Arriving) -> Result<TreeEdit> {
    let mut edit = TreeEdit {
        keyspace: plan.keyspace,
        drop: plan.inputs.iter().map(|input| (input.level, input.table)).collect(),
        cursors: plan.cursor.iter().map(|cursor| (plan.source, cursor.clone())).collect(),
        ..TreeEdit::default()
    };
    for (&id, &epoch) in plan.moves.iter().zip(&arriving.moves) {
        let (_, table) = version.table(id).ok_or_else(|| vanished(id))?;
        if !planted!("moved-table-left-in-its-old-level") {
            edit.drop.push((plan.source, id));
        }
        edit.add.push((plan.target, TableRecord { epoch, ..table.record() }));
    }
    Ok(edit)
}

/// The part of `version` that a compaction by `plan` reads, writes and asks about. A job that held all of it would
/// keep tables that die elsewhere on the disk until it ends.
fn concerned(version: &Version, plan: &Plan) -> Version {
    version.within(&plan.claims)
}

/// The largest run of the level after the target of `plan`. Empty for an intra-L0 compaction: as in a flush, what lies below
/// level 0 cuts nothing.
fn grandparents(version: &Version, plan: &Plan) -> Run {
    if plan.target == 0 {
        return Run::empty();
    }
    let below = version.levels().find(|&(level, _)| level == plan.target + 1);
    below.and_then(|(_, level)| level.largest()).cloned().unwrap_or_else(Run::empty)
}

/// Bytes of what moves by `edit`, which adds nothing else yet.
fn moved_bytes(edit: &TreeEdit) -> u64 {
    edit.add.iter().map(|(_, table)| table.extent.length).sum()
}

/// Whether nobody reads anything of `table` but its range tombstones, for newer ones hide it.
fn is_hidden(table: &TableMeta, coverage: &Coverage, snapshots: &[Seq]) -> bool {
    let over = coverage.over_all(&table.range, table.max_seq);
    let snapshots = if planted!("table-of-a-snapshot-left-unread") { &[] } else { snapshots };
    over.is_some_and(|over| VersionFilter::new(snapshots).is_hidden(table.min_seq, over))
}

/// The tables that a compaction reads.
struct Inputs {
    /// One list for each run, by level and place.
    lists: BTreeMap<(u8, usize), Vec<Arc<TableMeta>>>,
    ids: HashSet<TableId>,
    bytes: u64,
}

impl Inputs {
    fn of(version: &Version, plan: &Plan) -> Result<Self> {
        let mut inputs = Self { lists: BTreeMap::new(), ids: HashSet::new(), bytes: 0 };
        for id in plan.inputs.iter().map(|input| input.table) {
            let (level, table) = version.table(id).ok_or_else(|| vanished(id))?;
            let run = version.level(level).run_of(table).ok_or_else(|| vanished(id))?;
            inputs.lists.entry((level, run)).or_default().push(table.clone());
            inputs.ids.insert(id);
            inputs.bytes += table.extent.length;
        }
        for list in inputs.lists.values_mut() {
            list.sort_by(|a, b| a.range.start.cmp(&b.range.start));
        }
        Ok(inputs)
    }

    fn tables(&self) -> impl Iterator<Item = &Arc<TableMeta>> {
        self.lists.values().flatten()
    }

    /// The seed of the key sums of the newest input that has one. Where something was ingested, it may be ingested again.
    fn key_seed(&self) -> Option<u64> {
        self.lists.values().flatten().find_map(|table| table.keys).map(|keys| keys.seed)
    }

    /// Whether each lies in one of `claims`, and so its keys in what the job knows of the tree ([`concerned`]).
    fn lie_in(&self, claims: &[KeyRange]) -> bool {
        let is_claimed = |table: &Arc<TableMeta>| claims.iter().any(|claim| claim.covers(&table.range));
        self.lists.values().flatten().all(is_claimed)
    }
}

/// Claims keep jobs off each other's inputs, so a missing one is a fault of ours.
pub(in crate::engine) fn vanished(table: TableId) -> Error {
    Error::new(ErrorKind::Corruption, format!("table {table}, an input of a plan, is not in the tree"))
}

#[cfg(test)]
mod tests;
