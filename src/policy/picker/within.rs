//! Merges within a level: PTierDB's intra-level merge (section III-C), and one for tombstones.
//!
//! Most lookups end in the largest level, where tables overlap. A table that lookups have searched often is merged there
//! with all that overlap it, and with those of middle age that overlap the hull of these: the inputs are convex. (Without
//! that, the outputs would bring old entries above newer ones of a table of middle age.)
//!
//! **Tombstones.** What goes down is not merged with the level below, so it hardly ever drops a tombstone. A table of the
//! deepest level of which a quarter is tombstones is merged in the same way: all that it hides is among the inputs, so its
//! tombstones go. It waits while somebody reads at a number before one of them, and while a table above may hold something
//! older than one: then they would stay, and the merge would be for nothing.

use std::sync::Arc;

use super::components::ComponentsConfig;
use crate::catalog::{LevelState, TableMeta};
use crate::policy::closure::convex;
use crate::policy::plan::{OutputAge, Plan, PlanInput, PlanKind, Reason};
use crate::policy::view::TreeView;

/// A table is searched at least this often before it is merged (LevelDB, `db/version_set.cc`: `allowed_seeks`).
const ACCESSES_MIN: u64 = 100;

/// Divisor: a table is merged once this part of it is tombstones.
const TOMBSTONE_PARTS: u64 = 4;

impl ComponentsConfig {
    /// How often a table of `bytes` is searched before it is merged; `None` for never.
    pub(super) fn accesses_max(&self, bytes: u64) -> Option<u64> {
        Some(bytes.checked_div(self.access_bytes)?.max(ACCESSES_MIN))
    }
}

/// What to merge next.
pub(super) fn choose(view: &TreeView<'_>, config: &ComponentsConfig) -> Option<Plan> {
    if config.access_bytes == 0 || view.shape.put_off {
        return None;
    }
    let largest = view.version.largest()?;
    let level = view.version.deepest()?;
    let state = view.version.level(level);
    let mut searched = view.shape.searched.iter().flatten().filter_map(|id| {
        let (_, table) = view.version.table(*id).filter(|(at, _)| *at == largest)?;
        merge(view, (largest, view.version.level(largest)), table, Reason::Searched)
    });
    let dying = state.tables().filter(|table| is_dying(table) && can_die(view, level, table));
    let mut dying = dying.filter_map(|table| merge(view, (level, state), table, Reason::Tombstones));
    searched.next().or_else(|| dying.next())
}

/// Whether so much of `table` is tombstones that it is merged for them.
fn is_dying(table: &TableMeta) -> bool {
    let tombstones = table.tombstones + table.range_tombstones;
    tombstones > 0 && tombstones.saturating_mul(TOMBSTONE_PARTS) >= table.entries + table.range_tombstones
}

/// Whether all tombstones of `table` go if it is merged with what overlaps it in its level, the deepest.
fn can_die(view: &TreeView<'_>, level: u8, table: &TableMeta) -> bool {
    let is_read = view.pins.first().is_some_and(|pin| *pin < table.max_seq);
    let above = view.version.levels().take(usize::from(level));
    let mut above = above.flat_map(|(_, state)| state.overlapping(&table.range));
    !is_read && above.all(|other| other.min_seq > table.max_seq)
}

/// The merge of `table` with what overlaps it; `None` if a running job is in the way, or nothing overlaps it and there is no
/// other reason.
fn merge(
    view: &TreeView<'_>,
    (level, state): (u8, &LevelState),
    table: &TableMeta,
    reason: Reason,
) -> Option<Plan> {
    let beside: Vec<&Arc<TableMeta>> = state.overlapping(&table.range).collect();
    let is_due = beside.len() > 1 || reason == Reason::Tombstones;
    let inputs = if is_due { convex(state, &beside) } else { Vec::new() };
    let range = inputs.iter().map(|table| table.range.clone()).reduce(|hull, range| hull.hull(&range))?;
    if view.busy.conflicts(level, &range) {
        return None;
    }
    Some(Plan {
        keyspace: view.keyspace,
        kind: PlanKind::Compact,
        source: level,
        target: level,
        stacks: false,
        age: OutputAge::Newest,
        inputs: inputs.iter().map(|table| PlanInput { level, table: table.id }).collect(),
        moves: Vec::new(),
        fences: Vec::new(),
        claims: vec![range.clone()],
        range,
        bytes: inputs.iter().map(|table| table.bytes()).sum(),
        cursor: None,
        reason,
    })
}
