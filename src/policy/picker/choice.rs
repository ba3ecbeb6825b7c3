//! The choice: which victims move, which are compacted, with which target inputs, and what the job claims of the two
//! levels.
//!
//! Victims that share keys, directly or through others, make a *cluster*. Without `settle`, all victims make one.
//!
//! A cluster moves if its tables are disjoint, meet no table of the target, and meet little of the level after it. In
//! level 0, where I2 asks for more, everything older that overlaps a victim is among the victims; newer tables may
//! stay above. The tables of the other clusters, and the tables of the target that overlap them, are the inputs.
//!
//! Target inputs are all that the target has in a cluster's range. Where the target has several runs (as a tree has that
//! was of another layout), others may overlap them: a *tangle*. Then the choice is no plan, and the target is folded there
//! first (`fold`); or, where levels are merged as wholes, all that is connected is a target input. So nothing that stays
//! in the target overlaps an input, and nothing is put on top of anything.
//!
//! Between inputs may lie tables that move or stay. They share no key with any input. Not with a victim: else they
//! would be in its cluster or be its target inputs. Not with a target input: see above. A table's range
//! covers its range tombstones, so these, too, lie wholly before or behind.
//!
//! The hulls of inputs with nothing else in between are the *islands*. Outputs are cut where the next island begins.
//! So each output lies in one island, and the target has no more runs than before (I1).
//!
//! The job claims its islands and what it moves. All that it reads, moves and writes lies there, and no table of
//! another job does, now or later. So other jobs may compact the tables between islands, and I2 holds key by key
//! (I12). Of level 0 it claims the hull. So no other job takes newly flushed tables from between the islands of a
//! section and sets the cursor back.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Source;
use crate::catalog::TableMeta;
use crate::policy::closure::connected;
use crate::policy::plan::{OutputAge, Plan, PlanInput, PlanKind, Reason};
use crate::types::{Key, KeyRange, UpperBound};

/// Victims of the source, and target inputs of the target.
pub(super) struct Choice<'a> {
    source: Source<'a>,
    /// Newest run first, in key order.
    victims: Vec<&'a Arc<TableMeta>>,
    /// Newest run first, in key order.
    target_inputs: Vec<&'a Arc<TableMeta>>,
    /// The victims that move, in key order.
    moves: Vec<&'a Arc<TableMeta>>,
    /// Hull of the victims.
    victim_range: KeyRange,
    /// Hull of victims and target inputs.
    range: KeyRange,
    /// A table of the target that must be brought further down before this can be a plan.
    tangle: Option<&'a Arc<TableMeta>>,
}

/// Tables that are compacted, or moved, together.
struct Cluster<'a> {
    range: KeyRange,
    /// By their starts.
    tables: Vec<&'a Arc<TableMeta>>,
}

impl<'a> Choice<'a> {
    /// The choice of `victims`, newest run first and in key order, closed as I2 has it; nothing if there are none.
    pub(super) fn of(source: Source<'a>, victims: Vec<&'a Arc<TableMeta>>) -> Option<Self> {
        let victim_range = hull(None, &victims)?;
        let mut target_inputs: Vec<&Arc<TableMeta>> = Vec::new();
        let mut moves = Vec::new();
        // One that meets a cluster may meet the next one, too.
        let mut taken = BTreeSet::new();
        for cluster in clusters(source, &victims) {
            let met = if source.folds {
                source.target.overlapping(&cluster.range).collect()
            } else {
                connected(source.target, &cluster.range)
            };
            if met.is_empty() && cluster.may_move(source) {
                moves.extend(cluster.tables);
            }
            target_inputs.extend(met.into_iter().filter(|table| taken.insert(table.id)));
        }
        if source.target.depth() > 1 {
            // Stable: in key order within each run.
            target_inputs.sort_by_key(|table| source.target.run_of(table));
        }
        if !source.config.settle && moves.len() < victims.len() {
            moves.clear();
        }
        let range = hull(Some(victim_range.clone()), &target_inputs)?;
        let tangle = super::fold::tangled(source.target, &target_inputs);
        Some(Self { source, victims, target_inputs, moves, victim_range, range, tangle })
    }

    /// The same, but nothing moves.
    pub(super) fn all_compacted(self) -> Self {
        Self { moves: Vec::new(), ..self }
    }

    /// A table of the target that is to be folded before this can be a plan.
    pub(super) fn tangle(&self) -> Option<&'a Arc<TableMeta>> {
        self.tangle
    }

    pub(super) fn victim_range(&self) -> &KeyRange {
        &self.victim_range
    }

    pub(super) fn range(&self) -> &KeyRange {
        &self.range
    }

    pub(super) fn has_target_inputs(&self) -> bool {
        !self.target_inputs.is_empty()
    }

    /// Step 4: whether this takes more victims than `other`, no further target input, and not too much in all.
    pub(super) fn gains_over(&self, other: &Self) -> bool {
        self.victims.len() > other.victims.len()
            && self.target_inputs.len() == other.target_inputs.len()
            && self.bytes() < self.source.config.expansion_bytes_max
    }

    /// Whether the victims that are compacted hold at least one part in `parts` of what they meet.
    pub(super) fn is_dense(&self, parts: u64) -> bool {
        let compacted: u64 = self.compacted().map(|table| table.bytes()).sum();
        let met: u64 = self.target_inputs.iter().map(|table| table.bytes()).sum();
        compacted.saturating_mul(parts) >= met
    }

    /// Whether the tombstones of the victims that are compacted hide at least one part in `parts` of what is read, if each hides a
    /// record that they meet, with its value if that lies apart: it is given back unread. What moves costs nothing, and comes nearer
    /// to what it hides.
    pub(super) fn gives_up(&self, parts: u64) -> bool {
        let tombstones: u64 = self.compacted().map(|table| table.tombstones).sum();
        let met =
            |count: fn(&TableMeta) -> u64| self.target_inputs.iter().map(|table| count(table)).sum::<u64>();
        let (entries, bytes) = (met(|table| table.entries), met(TableMeta::bytes));
        let with_values = u128::from(bytes) + u128::from(met(|table| table.values.bytes));
        let hidden = with_values * u128::from(tombstones.min(entries)) / u128::from(entries.max(1));
        let compacted: u64 = self.compacted().map(|table| table.bytes()).sum();
        let read = u128::from(compacted.saturating_add(bytes));
        if read == 0 { self.hides_deeper() } else { hidden > 0 && hidden * u128::from(parts) >= read }
    }

    /// Whether something lies deeper than the target that tombstones of the victims may hide.
    fn hides_deeper(&self) -> bool {
        let Source { view, level, .. } = self.source;
        let deeper = || view.version.levels().filter(|(deeper, _)| *deeper > level + 1);
        let meets =
            |table: &TableMeta| deeper().any(|(_, state)| state.overlapping(&table.range).next().is_some());
        self.victims.iter().any(|table| table.tombstones > 0 && meets(table))
    }

    pub(super) fn victims(&self) -> &[&'a Arc<TableMeta>] {
        &self.victims
    }

    pub(super) fn is_busy(&self) -> bool {
        self.claims(self.islands()).iter().any(|range| self.source.is_busy(range))
    }

    fn bytes(&self) -> u64 {
        self.victims.iter().chain(&self.target_inputs).map(|table| table.bytes()).sum()
    }

    /// The victims to compact, newest run first.
    fn compacted(&self) -> impl Iterator<Item = &'a Arc<TableMeta>> {
        // What moves shares no key with any other victim, so the start tells it.
        let find = |start| self.moves.binary_search_by(|moved| Ord::cmp(&moved.range.start, start));
        self.victims.iter().copied().filter(move |table| find(&table.range.start).is_err())
    }

    fn islands(&self) -> Vec<KeyRange> {
        let mut inputs: Vec<_> = self.compacted().chain(self.target_inputs.iter().copied()).collect();
        inputs.sort_by(|one, other| one.range.start.cmp(&other.range.start));
        let mut islands: Vec<KeyRange> = Vec::new();
        for KeyRange { start, end } in inputs.into_iter().map(|table| &table.range) {
            match islands.last_mut().filter(|island| !self.is_parted(&island.end, start)) {
                Some(island) => island.end = Ord::max(&island.end, end).clone(),
                None => islands.push(KeyRange { start: start.clone(), end: end.clone() }),
            }
        }
        islands
    }

    /// Whether a table that is no input, or the claim of a running job, lies between inputs that end at `end` and the next
    /// one, which begins at `start`.
    fn is_parted(&self, end: &UpperBound, start: &Key) -> bool {
        let UpperBound::Excluded(end) = end else { return false };
        let gap = KeyRange { start: end.clone(), end: UpperBound::Excluded(start.clone()) };
        let Source { level, state, target, one_by_one, .. } = self.source;
        if !one_by_one || gap.is_inverted() {
            return false;
        }
        let next = self.moves.partition_point(|moved| !moved.range.end.admits(&gap.start));
        let passes = |table: Option<&Arc<TableMeta>>| table.is_some_and(|table| table.range.overlaps(&gap));
        passes(target.overlapping(&gap).next())
            || passes(self.moves.get(next).copied())
            // In level 0 something newer may lie over gap and inputs alike.
            || level > 0 && passes(state.overlapping(&gap).next())
            || self.source.is_busy(&gap)
    }

    fn claims(&self, mut islands: Vec<KeyRange>) -> Vec<KeyRange> {
        if self.source.level == 0 || !self.source.one_by_one {
            return vec![self.range.clone()];
        }
        islands.extend(self.moves.iter().map(|table| table.range.clone()));
        islands.sort_by(|one, other| one.start.cmp(&other.start));
        islands
    }

    /// The plan that this amounts to.
    pub(super) fn plan(&self, reason: Reason, cursor: Option<Key>) -> Plan {
        let Source { view, level, .. } = self.source;
        let target = level + 1;
        let input = |level| move |table: &Arc<TableMeta>| PlanInput { level, table: table.id };
        let target_inputs = self.target_inputs.iter().copied().map(input(target));
        let inputs: Vec<_> = self.compacted().map(input(level)).chain(target_inputs).collect();
        let islands = self.islands();
        Plan {
            keyspace: view.keyspace,
            kind: if inputs.is_empty() { PlanKind::Move } else { PlanKind::Compact },
            source: level,
            target,
            stacks: self.source.stacks,
            age: OutputAge::Newest,
            inputs,
            moves: self.moves.iter().map(|table| table.id).collect(),
            fences: islands.iter().skip(1).map(|island| island.start.clone()).collect(),
            range: self.range.clone(),
            claims: self.claims(islands),
            bytes: self.bytes(),
            cursor,
            reason,
        }
    }
}

/// The clusters of `victims`, in key order.
fn clusters<'a>(source: Source<'a>, victims: &[&'a Arc<TableMeta>]) -> Vec<Cluster<'a>> {
    let mut in_order = victims.to_vec();
    in_order.sort_by(|one, other| one.range.start.cmp(&other.range.start));
    let mut clusters: Vec<Cluster<'_>> = Vec::new();
    for table in in_order {
        let joins = |cluster: &&mut Cluster<'_>| !source.one_by_one || cluster.range.overlaps(&table.range);
        match clusters.last_mut().filter(joins) {
            Some(cluster) => {
                cluster.range = cluster.range.hull(&table.range);
                cluster.tables.push(table);
            }
            None => clusters.push(Cluster { range: table.range.clone(), tables: vec![table] }),
        }
    }
    clusters
}

impl Cluster<'_> {
    /// Whether the tables may move, given that they meet nothing in the target: step 5.
    fn may_move(&self, source: Source<'_>) -> bool {
        let bytes_max = source.config.grandparent_bytes_max;
        self.tables.windows(2).all(|pair| pair[0].range.is_before(&pair[1].range))
            && self.tables.iter().all(|table| source.grandparent_bytes(&table.range) <= bytes_max)
    }
}

impl Source<'_> {
    /// Bytes of the level after the target that overlap `range`.
    fn grandparent_bytes(self, range: &KeyRange) -> u64 {
        let after_target = self.view.version.levels().nth(usize::from(self.level) + 2);
        after_target.map_or(0, |(_, state)| state.overlap_bytes(range))
    }
}

fn hull(range: Option<KeyRange>, tables: &[&Arc<TableMeta>]) -> Option<KeyRange> {
    let ranges = tables.iter().map(|table| &table.range);
    ranges.fold(range, |hull, range| Some(hull.map_or_else(|| range.clone(), |hull| hull.hull(range))))
}
