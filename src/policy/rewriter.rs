//! The rewriter: decides which packs are given up by copying their live tables.
//!
//! The space of a dead table comes back by a hole, or with its pack.
//!
//! **Without holes.** Once the dead bytes are more than half of the live ones, packs are rewritten of which at most
//! half lives, those with least first. Every pack that stays then has fewer dead bytes than live ones, so all packs
//! together take less than twice what lives. Until then they take at most half as much again. At most one byte is
//! copied for a byte that comes back. A byte dies once for each time that it was written, so rewrites write no more
//! in all than flushes and compactions do. Where somebody needs space, the bounds are tighter and the writing costs
//! more: any pack goes of which a fifth is dead, for up to four bytes copied for one.
//!
//! **With holes.** Dead tables take no space, but the file, its descriptor and its extents stay for whatever is left.
//! So packs of which at most a sixteenth is left are rewritten too, once there are several; as many go together as
//! have tables in one level. That copies a sixteenth of what the pack was written with, and a sixteenth of that if it
//! comes to the same again: a fifteenth in all.
//!
//! Level 0 is left to its compactions, which empty its packs in the order of their age. Tables of one level go
//! together, since they live about as long. A pack with tables in several levels takes several plans.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::catalog::TableMeta;
use crate::policy::expiry::within_level;
use crate::policy::plan::{Plan, PlanKind, Reason};
use crate::policy::view::{PackView, SpaceTotals, SpaceView, TreeView};
use crate::types::{DeviceId, PackId};

/// Divisor: dead bytes are too many beyond this part of the live ones, and far too many beyond twice that.
const DEAD_SHARE_MAX: u64 = 2;

/// Bytes copied for each byte that comes back, at most: at leisure, and for a caller that needs space.
const COPIED_MAX: u64 = 1;
const COPIED_FOR_SPACE_MAX: u64 = 4;

/// A pack has very little left if it is at most one part in `SPARSE_PARTS`, and at most `SPARSE_BYTES_MAX`: a few
/// tables.
const SPARSE_PARTS: u64 = 16;
const SPARSE_BYTES_MAX: u64 = 4 << 20;

/// From this number on, packs of which very little is left are too many. Of eight in a keyspace, two must have tables
/// in the same one of its seven levels below level 0, and become one file.
const SPARSE_PACKS_MIN: u64 = 8;

/// A plan takes further packs up to this many bytes. So a compaction that meets its tables waits no longer than the
/// disk takes for them.
const BYTES_MAX: u64 = 32 << 20;

impl SpaceTotals {
    /// Whether any pack is to be rewritten.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.has_much_dead() || self.has_many_sparse()
    }

    /// Whether that cannot wait for compactions.
    #[must_use]
    pub fn is_late(&self) -> bool {
        self.no_holes && self.dead_bytes > self.live_bytes / DEAD_SHARE_MAX * 2
    }

    fn has_much_dead(&self) -> bool {
        let is_too_much = self.dead_bytes > self.live_bytes / DEAD_SHARE_MAX;
        self.no_holes && (is_too_much || self.is_short && self.dead_bytes > 0)
    }

    fn has_many_sparse(&self) -> bool {
        self.sparse_packs >= SPARSE_PACKS_MIN
    }

    /// Whether `pack` is worth being copied.
    fn is_worth(&self, pack: &PackView) -> bool {
        let copied_max = if self.is_short { COPIED_FOR_SPACE_MAX } else { COPIED_MAX };
        let comes_back = pack.dead_bytes.saturating_mul(copied_max) >= pack.left_bytes();
        self.has_much_dead() && pack.dead_bytes > 0 && comes_back
            || self.has_many_sparse() && pack.is_sparse()
    }
}

impl PackView {
    /// Live tables, their padding, and the pack's directory.
    fn left_bytes(&self) -> u64 {
        self.length.saturating_sub(self.dead_bytes + self.hole_bytes)
    }

    /// Whether very little is left.
    #[must_use]
    pub fn is_sparse(&self) -> bool {
        let left = self.left_bytes();
        left <= SPARSE_BYTES_MAX && left <= self.length / SPARSE_PARTS
    }

    /// Compares what is left for each byte that is not.
    fn cmp_left(&self, other: &Self) -> std::cmp::Ordering {
        let product = |a: &Self, b: &Self| {
            u128::from(a.left_bytes()) * u128::from(b.length.saturating_sub(b.left_bytes()))
        };
        product(self, other).cmp(&product(other, self)).then(self.pack.cmp(&other.pack))
    }
}

/// The next rewrite, if one is due, no running job is in its way and there is room for it. Looks at every table.
#[must_use]
pub fn next_rewrite(views: &[TreeView<'_>], space: &SpaceView) -> Option<Plan> {
    let mut packs: Vec<_> = space.packs.iter().filter(|pack| space.totals.is_worth(pack)).collect();
    if packs.is_empty() {
        return None;
    }
    packs.sort_by(|a, b| a.cmp_left(b));
    let ranks: BTreeMap<PackId, usize> =
        packs.iter().zip(0..).map(|(pack, rank)| (pack.pack, rank)).collect();
    let groups = views.iter().flat_map(|view| groups(view, &ranks));
    let chosen = groups.filter_map(|group| group.within(space.free_bytes));
    let best = chosen.min_by_key(|chosen| match space.totals.has_much_dead() {
        true => (chosen.rank, 0),
        false => (usize::MAX - chosen.packs, chosen.rank),
    });
    best.map(|chosen| chosen.plan)
}

/// What is taken of a group.
struct Chosen {
    /// Of the best pack.
    rank: usize,
    /// Number of packs.
    packs: usize,
    plan: Plan,
}

/// Tables of one level that lie in packs that are worth being copied.
struct Group<'a> {
    view: &'a TreeView<'a>,
    level: u8,
    /// By the rank of their packs; each list in key order.
    tables: BTreeMap<usize, Vec<&'a Arc<TableMeta>>>,
}

fn groups<'a>(view: &'a TreeView<'a>, ranks: &BTreeMap<PackId, usize>) -> impl Iterator<Item = Group<'a>> {
    view.version.levels().skip(1).map(|(level, state)| {
        let mut tables: BTreeMap<usize, Vec<_>> = BTreeMap::new();
        for table in state.tables() {
            if let Some(rank) = ranks.get(&table.extent.pack) {
                tables.entry(*rank).or_default().push(table);
            }
        }
        Group { view, level, tables }
    })
}

impl Group<'_> {
    /// Those packs whose tables are not claimed, the best ones first, that `free_bytes` have room for.
    fn within(self, free_bytes: u64) -> Option<Chosen> {
        let Self { view, level, tables } = self;
        let is_free = |table: &&Arc<TableMeta>| !view.busy.conflicts(level, &table.range);
        let (mut best, mut packs, mut bytes) = (None, 0, 0);
        let mut taken = Vec::new();
        for (rank, tables) in tables {
            let more: u64 = tables.iter().map(|table| table.bytes()).sum();
            let fits = bytes + more < free_bytes && (taken.is_empty() || bytes + more <= BYTES_MAX);
            if fits && tables.iter().all(is_free) {
                best = best.or(Some(rank));
                packs += 1;
                bytes += more;
                taken.extend(tables);
            }
        }
        let plan = copying(view, level, taken, Reason::DeadSpace)?;
        Some(Chosen { rank: best?, packs, plan })
    }
}

/// The plan that copies `tables` of `level` as they are; `None` if there are none.
fn copying(view: &TreeView<'_>, level: u8, mut tables: Vec<&Arc<TableMeta>>, reason: Reason) -> Option<Plan> {
    tables.sort_by(|a, b| a.range.start.cmp(&b.range.start));
    let tables: Vec<&TableMeta> = tables.into_iter().map(|table| &**table).collect();
    let claims = tables.iter().map(|table| table.range.clone()).collect();
    let plan = within_level(view, level, PlanKind::Rewrite, &tables, claims)?;
    Some(Plan { reason, ..plan })
}

/// The next tables that are copied away from `device`, of one level below level 0 and about [`BYTES_MAX`] of them, with no running
/// job in the way. Level 0 is left to its compactions.
#[must_use]
pub fn next_departure(views: &[TreeView<'_>], device: DeviceId) -> Option<Plan> {
    let levels = views.iter().flat_map(|view| view.version.levels().skip(1).map(move |level| (view, level)));
    levels.into_iter().find_map(|(view, (level, state))| {
        let leaves = |table: &&Arc<TableMeta>| {
            table.extent.device == device && !view.busy.conflicts(level, &table.range)
        };
        let mut bytes = 0;
        let fits = |table: &&Arc<TableMeta>| {
            let has_room = bytes < BYTES_MAX;
            bytes += table.bytes();
            has_room
        };
        copying(view, level, state.tables().filter(leaves).take_while(fits).collect(), Reason::Manual)
    })
}
