//! The retainer: decides what becomes of the inputs of a compaction once its outputs are installed.
//!
//! `Drop`: their extents go to the reclaimer with their last holder, as in LevelDB.
//!
//! `Buffer`: those from the upper level stay readable, in the compaction buffer of the level that they came to
//! ([`catalog::buffer`](crate::catalog)). The rules are those of LSbM-tree (Teng et al., sections III and IV):
//!
//! * **Freeze.** A level that gets the same keys again and again grows by less than comes in. Then nothing more is kept of
//!   what comes there, until it is empty again.
//! * **Drain.** The buffer of a level that goes down as a whole shrinks as the level does, in key order.
//! * **Trim.** In each period a table goes of which too little is in the block cache. One that came in the present round of the
//!   level above has yet to warm up, and goes only if nothing of it is there after a few periods. One that lies over others stays
//!   as long as these do, for it would take them out of reach. (The authors' code spares such tables, the paper does not.)
//! * **Share.** All buffers together take at most a part of the data; the coldest tables go first.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::catalog::{BufferList, CompactionBuffer, Run, TableMeta, Version};
use crate::policy::plan::{Plan, PlanKind, Reason};
use crate::types::TableId;

/// Divisor: a level repeats its keys once this part of what came in is missing in it. (The paper has no such tolerance, so one
/// repeated record would freeze a list.)
const REPEATED_PARTS: u64 = 20;

/// Divisor: it is judged once this part of the level's limit has come in.
const JUDGED_PARTS: u64 = 10;

/// A table warms up for this many periods where the level above goes down piece by piece. (The authors' code: `chances`.)
const WARMING_PERIODS: u64 = 3;

/// The retainers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Retainer {
    /// Nothing is kept.
    Drop,
    /// What came from the upper level is kept as long as the cache holds much of it.
    Buffer(BufferConfig),
}

/// Limits of the compaction buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BufferConfig {
    /// A table is kept while at least this part of it is in the block cache, in percent.
    pub cached_percent: u64,
    /// How often tables are trimmed.
    pub period: Duration,
    /// All buffers of a tree together take at most this part of its data, in percent.
    pub share_percent: u64,
    /// Whether levels go down as wholes. Then lists freeze on repeated keys, and are thawed when their level is empty.
    pub has_rounds: bool,
}

impl Retainer {
    /// Whether what `plan` takes from its source stays readable.
    #[must_use]
    pub fn keeps(&self, plan: &Plan) -> bool {
        let goes_down = plan.target == plan.source + 1;
        let by_itself = plan.reason != Reason::Manual;
        goes_down
            && by_itself
            && matches!(plan.kind, PlanKind::Compact | PlanKind::Move)
            && self.config().is_some()
    }

    /// Limits of the buffer, if there is one.
    #[must_use]
    pub fn config(&self) -> Option<&BufferConfig> {
        match self {
            Self::Drop => None,
            Self::Buffer(config) => Some(config),
        }
    }
}

impl BufferConfig {
    /// Whether nothing more is to be kept of what comes to a level of `level_bytes` that is due at `bytes_max`.
    #[must_use]
    pub fn is_repeated(&self, list: &BufferList, level_bytes: u64, bytes_max: u64) -> bool {
        let arrived = list.arrived_bytes();
        let missing = arrived.saturating_sub(level_bytes.saturating_sub(list.other_bytes()));
        self.has_rounds
            && arrived >= bytes_max / JUDGED_PARTS
            && missing.saturating_mul(REPEATED_PARTS) > arrived
    }

    /// What is to go of the list of a level that has become smaller and holds `level` now: what no table of it overlaps
    /// any more; and if the level goes down as a whole, as much as keeps their proportion, first keys first.
    #[must_use]
    pub fn drained(&self, list: &BufferList, (runs, level_bytes): (&[Run], u64)) -> BTreeSet<TableId> {
        let is_met =
            |table: &TableMeta| runs.iter().any(|run| run.overlapping(&table.range).next().is_some());
        let (met, useless): (Vec<_>, Vec<_>) =
            list.tables().map(|(table, _)| table).partition(|table| is_met(table));
        let mut gone: BTreeSet<TableId> = useless.into_iter().map(|table| table.id).collect();
        let Some((list_full, level_full)) = list.full() else { return gone };
        let mut bytes: u64 = met.iter().map(|table| table.bytes()).sum();
        let mut in_order = met;
        in_order.sort_by(|one, other| one.range.end.cmp(&other.range.end));
        let wide = |one: u64, other: u64| u128::from(one) * u128::from(other);
        for table in in_order {
            if wide(bytes, level_full) <= wide(list_full, level_bytes) {
                break;
            }
            bytes -= table.bytes();
            gone.insert(table.id);
        }
        gone
    }

    /// What is to go of `list` because the cache holds too little of it; `now` is the time in periods.
    #[must_use]
    pub fn cold(&self, list: &BufferList, now: u64, cached: impl Fn(&TableMeta) -> u64) -> BTreeSet<TableId> {
        let fresh_since = (now + 1).saturating_sub(WARMING_PERIODS);
        // To a level that goes down as a whole nothing comes any more. (The paper trims such lists only with their levels.)
        let warm_since = match (list.full(), list.round_began()) {
            (Some(_), _) => u64::MAX,
            (None, Some(began)) => began,
            // The first level goes down itself before it is judged: what comes there has little time.
            (None, None) if self.has_rounds => 0,
            (None, None) => fresh_since,
        };
        let is_cold = |table: &TableMeta, came: u64| {
            let bytes = cached(table);
            let too_little = bytes.saturating_mul(100) < table.bytes().saturating_mul(self.cached_percent);
            came < warm_since && too_little || came < fresh_since && bytes == 0
        };
        let mut gone = BTreeSet::new();
        let runs: Vec<&Run> = list.runs().collect();
        // From the oldest on: with a table, all older ones that it overlaps would be out of reach.
        for (at, run) in runs.iter().enumerate().rev() {
            for table in run.iter() {
                let is_kept = |other: &&Arc<TableMeta>| !gone.contains(&other.id);
                let mut older =
                    runs[at + 1..].iter().flat_map(|run| run.overlapping(&table.range)).filter(is_kept);
                if is_cold(table, list.came(table.id)) && older.next().is_none() {
                    gone.insert(table.id);
                }
            }
        }
        gone
    }

    /// What is to go so that the buffer takes no more than its share of the data in `version`: the coldest first.
    #[must_use]
    pub fn beyond_share(
        &self,
        buffer: &CompactionBuffer,
        version: &Version,
        cached: impl Fn(&TableMeta) -> u64,
    ) -> BTreeSet<TableId> {
        // What the tree has too takes no space.
        let dead = |table: &TableMeta| version.table(table.id).is_none();
        let tables = buffer.lists().flat_map(|(_, list)| list.tables()).map(|(table, _)| table);
        let mut held: Vec<_> = tables.filter(|table| dead(table)).collect();
        let data: u64 = version.levels().map(|(_, state)| state.bytes()).sum();
        let share =
            u64::try_from(u128::from(data) * u128::from(self.share_percent) / 100).unwrap_or(u64::MAX);
        let mut bytes: u64 = held.iter().map(|table| table.bytes()).sum();
        if bytes <= share {
            return BTreeSet::new();
        }
        held.sort_by_cached_key(|table| (u128::from(cached(table)) << 32) / u128::from(table.bytes().max(1)));
        let mut gone = BTreeSet::new();
        for table in held {
            if bytes <= share {
                break;
            }
            bytes -= table.bytes();
            gone.insert(table.id);
        }
        gone
    }
}
