//! Intra-L0 compaction: neighbouring runs of level 0 become one of them. (RocksDB has it under the same name.)
//!
//! A scan seeks in every run of level 0, and a lookup asks the filters of all. To compact level 0 away writes the
//! level below again, however large it is. So where readers have paid for it (`Layout::intra_l0`), a window of
//! neighbouring runs is compacted within level 0, part by part. That writes only these runs, once.
//!
//! # Invariants
//!
//! * A job takes whole overlap clusters of the window (`policy/clusters.rs`) that follow one another. So every table
//!   of the window that overlaps their hull is an input, and the outputs may carry the newest epoch of the inputs. Of
//!   each key, what is newer than all inputs lies in newer runs, what is older in older ones, and nothing has an
//!   epoch in between.
//! * I3 asks more of two tables that overlap: all entries of one are newer than all of the other. An input that came
//!   of an earlier intra-L0 compaction may hold very old entries, and may reach to a table behind the window that has
//!   newer ones. So outputs are cut where such a table outside of the window begins and ends. What lies in its range
//!   comes from tables that overlapped it before, in line with I3.
//!
//! Outputs are also cut between two overlap clusters. One that reached over the gap would take what level 1 has there
//! into its compaction, and whatever else meets that (`docs/design/flush-and-compaction.md`, and the figures in
//! `docs/benchmarks/choices.md`).

use std::ops::Range;
use std::sync::Arc;

use super::Source;
use super::level0::GROUPS;
use crate::catalog::TableMeta;
use crate::policy::clusters::{OverlapCluster, clusters};
use crate::policy::plan::{OutputAge, Plan, PlanInput, PlanKind, Reason};
use crate::types::{Key, KeyRange, Seq, UpperBound};

/// Which overlap clusters an intra-L0 compaction takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Evenness {
    /// All.
    Any,
    /// All, however many bytes they have: a job takes the whole window.
    Whole,
    /// Even ones, to which no run contributes much more than the others. Where small runs have joined a large one, the
    /// large one is not written again for their sake.
    Even,
}

/// An overlap cluster by itself may have up to this many times the bytes of a group.
const CLUSTER_GROUPS: u64 = 8;

/// The first part of the runs in `window` that is worth a job, if no running one is in the way.
pub(super) fn choose(source: Source<'_>, window: &Range<usize>, evenness: Evenness) -> Option<Plan> {
    let runs = source.state.runs.get(window.clone())?;
    let clusters = clusters(runs);
    let part = &clusters[part(source, &clusters, evenness)?];
    let range = part.iter().map(|cluster| cluster.range.clone()).reduce(|hull, range| hull.hull(&range))?;
    let is_left = |at: usize| planted!("intra-l0-around-a-run") && at == 1 && runs.len() > 2;
    let taken = runs.iter().enumerate().filter(|(at, _)| !is_left(*at));
    let inputs: Vec<_> = taken.flat_map(|(_, run)| run.overlapping(&range)).collect();
    let level = source.level;
    Some(Plan {
        keyspace: source.view.keyspace,
        kind: PlanKind::Compact,
        source: level,
        target: level,
        stacks: false,
        age: OutputAge::Newest,
        inputs: inputs.iter().map(|table| PlanInput { level, table: table.id }).collect(),
        moves: Vec::new(),
        fences: fences(source, window, &range, &inputs, part),
        claims: vec![range.clone()],
        range,
        bytes: part.iter().map(|cluster| cluster.bytes()).sum(),
        cursor: None,
        reason: Reason::Readers,
    })
}

/// The first overlap clusters that are worth a job and that no running one is in the way of. The first and the last of
/// them have several tables.
fn part(source: Source<'_>, clusters: &[OverlapCluster], evenness: Evenness) -> Option<Range<usize>> {
    let [bytes_max, cluster_bytes_max] = match evenness {
        Evenness::Whole => [u64::MAX; 2],
        Evenness::Any | Evenness::Even => {
            [GROUPS, CLUSTER_GROUPS].map(|groups| source.config.group_bytes.saturating_mul(groups))
        }
    };
    let suits =
        |cluster: &OverlapCluster| evenness != Evenness::Even || cluster.tables == 1 || cluster.is_even();
    let is_free = |range: &KeyRange| !source.view.busy.conflicts(source.level, range);
    let is_first = |cluster: &OverlapCluster| {
        let is_small = cluster.tables > 1 && cluster.bytes() <= cluster_bytes_max;
        is_small && suits(cluster) && is_free(&cluster.range)
    };
    let from = clusters.iter().position(is_first)?;
    let (mut bytes, mut hull) = (clusters[from].bytes(), clusters[from].range.clone());
    let fits = |cluster: &&OverlapCluster| {
        bytes += cluster.bytes();
        // A job of other runs may work in the gap between two clusters, which the plan claims, too.
        let claimed = if planted!("gap-between-clusters-not-looked-at") {
            cluster.range.clone()
        } else {
            hull.hull(&cluster.range)
        };
        hull = hull.hull(&cluster.range);
        bytes <= bytes_max && suits(cluster) && is_free(&claimed)
    };
    let more = clusters[from + 1..].iter().take_while(fits).collect::<Vec<_>>();
    let last = more.iter().rposition(|cluster| cluster.tables > 1).map_or(from, |at| from + 1 + at);
    Some(from..last + 1)
}

/// Where outputs are cut: where an overlap cluster of `part` begins; and so that no output overlaps a table outside of
/// `window` unless that is wholly older or wholly newer.
fn fences(
    source: Source<'_>,
    window: &Range<usize>,
    range: &KeyRange,
    inputs: &[&Arc<TableMeta>],
    part: &[OverlapCluster],
) -> Vec<Key> {
    let oldest = inputs.iter().map(|table| table.min_seq).min().unwrap_or(Seq::MAX);
    let newest = inputs.iter().map(|table| table.max_seq).max().unwrap_or(Seq::ZERO);
    let (newer, older) = (&source.state.runs[..window.start], &source.state.runs[window.end..]);
    let newer = newer.iter().flat_map(|run| run.overlapping(range)).filter(|table| table.min_seq <= newest);
    let older = older.iter().flat_map(|run| run.overlapping(range)).filter(|table| table.max_seq >= oldest);
    let ends = newer.chain(older).flat_map(|table| {
        let end = match &table.range.end {
            UpperBound::Excluded(end) => Some(end),
            UpperBound::Unbounded => None,
        };
        end.into_iter().chain([&table.range.start])
    });
    let ends = ends.filter(|_| !planted!("intra-l0-across-what-stays"));
    let clusters = part.iter().map(|cluster| &cluster.range.start);
    let inside = |key: &&Key| **key > range.start && range.end.admits(key);
    let mut fences: Vec<Key> = ends.chain(clusters).filter(inside).cloned().collect();
    fences.sort();
    fences.dedup();
    fences
}
