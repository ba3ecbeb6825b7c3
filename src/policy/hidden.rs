//! Hidden tables: a table of which newer ones have every key goes, unread.
//!
//! Who ingests the same keys again lays a run on top of an older one that nobody sees any more. Ingests note which keys
//! their tables have ([`KeySum`]). So it is known without a read that the older tables are hidden, and one edit gives them up:
//! nothing is merged, and nothing is written again.
//!
//! **What is compared.** Tables of one run with tables of a newer one, as few of each as begin and end at the same keys. They
//! have the same keys if their sums are the same. Where the keys differ, tables stay and are merged as any others.
//!
//! # Invariants
//!
//! * Every number at which somebody reads sees both or none of them, or a snapshot would miss what it saw (I4).
//! * Nothing comes back from below: for each key that goes there is a newer entry, and that hides what the older one hid. It
//!   is kept, as any newest entry is; a tombstone, while anything older is there (I5). For the same reason a transaction that
//!   began before both still meets a write that came after it began.

use std::sync::Arc;

use super::expiry::within_level;
use crate::catalog::{Run, TableMeta};
use crate::policy::plan::{Plan, PlanKind, Reason};
use crate::policy::view::TreeView;
use crate::types::{Holders, KeyRange, KeySum, Seq};

/// Tables that one edit gives up, at most.
const DROPS_MAX: usize = 256;

/// Tables of one run to drop, for newer ones hide them.
#[must_use]
pub fn next_hidden(view: &TreeView<'_>) -> Option<Plan> {
    let keyed: Vec<(u8, &Run)> = view.version.runs().filter(|(_, run)| run.is_keyed()).collect();
    keyed.iter().enumerate().skip(1).find_map(|(at, (level, older))| {
        let mut hidden: Vec<&TableMeta> =
            keyed[..at].iter().flat_map(|(_, newer)| hidden_by(newer, older, view.pins)).collect();
        hidden.retain(|table| !view.busy.conflicts(*level, &table.range));
        hidden.sort_by(|one, other| one.range.start.cmp(&other.range.start));
        hidden.dedup_by_key(|table| table.id);
        hidden.truncate(DROPS_MAX);
        let claims: Vec<KeyRange> = hidden.iter().map(|table| table.range.clone()).collect();
        let plan = within_level(view, *level, PlanKind::Drop, &hidden, claims)?;
        Some(Plan { reason: Reason::Hidden, ..plan })
    })
}

/// Neighbouring tables of one run.
struct Group<'a> {
    tables: Vec<&'a TableMeta>,
    range: KeyRange,
    entries: u64,
    /// Which keys they have; `None` if it is not known of all.
    keys: Option<KeySum>,
}

impl<'a> Group<'a> {
    fn of(table: &'a TableMeta) -> Self {
        Self {
            tables: vec![table],
            range: table.range.clone(),
            entries: table.entries,
            keys: table.keys.filter(|_| table.range_tombstones == 0),
        }
    }

    fn add(&mut self, table: &'a TableMeta) {
        let Self { mut tables, range, entries, keys } = Self::of(table);
        self.tables.append(&mut tables);
        self.range = self.range.hull(&range);
        self.entries += entries;
        self.keys = self.keys.zip(keys).and_then(|(one, other)| one.and(other));
    }

    /// Whether each of its keys is in `newer`, which has the same range, and nobody of `pins` sees one without the other.
    fn is_hidden(&self, newer: &Self, pins: &[Seq]) -> bool {
        let same = self.entries == newer.entries
            && (self.keys == newer.keys || planted!("keys-told-by-their-number"));
        // Which of its keys came when, nobody knows: so from the first entry of the older ones to the last one of the newer.
        let first = self.tables.iter().map(|table| table.min_seq).min().unwrap_or(Seq::MAX);
        let last = newer.tables.iter().map(|table| table.max_seq).max().unwrap_or(Seq::MAX);
        let pins = if planted!("hidden-table-gone-under-a-snapshot") { &[] } else { pins };
        self.keys.is_some() && same && Holders::between(pins, first, last).is_none()
    }
}

/// The tables of `older` that those of `newer` hide.
fn hidden_by<'a>(newer: &'a Run, older: &'a Run, pins: &[Seq]) -> Vec<&'a TableMeta> {
    let mut hidden = Vec::new();
    let Some(first) = newer.first() else { return hidden };
    let mut above = newer.iter().map(Arc::<TableMeta>::as_ref).peekable();
    let behind = older.lower_bound(&first.range.start);
    let mut below = older.iter_from(behind).map(Arc::<TableMeta>::as_ref).peekable();
    while let (Some(one), Some(other)) = (above.peek(), below.peek()) {
        if one.range.start != other.range.start {
            let earlier = if one.range.start < other.range.start { &mut above } else { &mut below };
            earlier.next();
            continue;
        }
        let (Some(one), Some(other)) = (above.next(), below.next()) else { break };
        let (mut over, mut under) = (Group::of(one), Group::of(other));
        // Both take tables until they end at the same key, as long as these reach to each other.
        while over.range.end != under.range.end {
            let (shorter, tables, end) = if over.range.end < under.range.end {
                (&mut over, &mut above, &under.range.end)
            } else {
                (&mut under, &mut below, &over.range.end)
            };
            let Some(next) = tables.next_if(|table| end.admits(&table.range.start)) else { break };
            shorter.add(next);
        }
        if over.range.end == under.range.end && under.is_hidden(&over, pins) {
            hidden.append(&mut under.tables);
        }
    }
    hidden
}
