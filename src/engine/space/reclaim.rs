//! The reclaimer: from dead tables to free space.
//!
//! # When an extent is dead
//!
//! Every table that a version names holds a lease on its extent. When its last holder (version, iterator, job) is
//! gone, the lease reports the extent here. The current version drops a table only after the edit that drops it is
//! durable. So an extent that arrives here is dead after any crash too, and giving it up needs no barrier: a pack
//! that a crash brings back is unknown to the manifest and is removed at the next open.
//!
//! # What happens to it
//!
//! * The [`accounting`] lists each pack's live and dead tables. The reclaiming thread ([`punching`]) gives a pack
//!   without live tables to the recycled files, or unlinks it.
//! * The same thread punches the dead tables out of live packs: at leisure once too much is dead, and at once, with a
//!   barrier, as far as somebody needs space. Only this thread gives packs up, so a pack's name means the same file
//!   while its tables are punched.
//! * Where there are no holes, and where very little is left of many packs, a rewrite copies the live tables, and
//!   their packs die as a whole. The compaction threads do that, by a plan ([`crate::policy::next_rewrite`]) and as a
//!   job like any other (`engine/jobs/rewrite.rs`). This module provides the figures, and the notice that a rewrite
//!   is due.
//!
//! # At open
//!
//! Space between live tables is dead. The file system says which parts of it are holes already; these are neither
//! counted nor punched again. No record of holes is kept: a hole that a crash has undone is simply not there.
//!
//! After a failure whose outcome is unknown, and once the store is closed, nothing is reclaimed.

mod accounting;
mod byte_ranges;
mod punching;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Duration;

use crate::catalog::{Catalog, ExtentSink};
use crate::engine::space::storage::Storage;
use crate::env::sync::{Condvar, OrderedMutex};
use crate::policy::{HoleBytes, PackView, STUCK_PARTS, SpaceTotals};
use crate::types::{Extent, PackId};

pub(in crate::engine) use accounting::gaps;
use accounting::{DeadPack, Released, SpaceAccounting};
pub(in crate::engine) use punching::ReclaimThread;

#[derive(Debug, Default)]
pub(crate) struct Reclaimer {
    state: OrderedMutex<State>,
    woken: Condvar,
}

#[derive(Debug, Default)]
struct State {
    accounting: SpaceAccounting,
    /// Packs without a live table that are still to be given up, in the order in which they died.
    dead: Vec<DeadPack>,
    /// Bytes of holes in each pack that are not synced, so that a power cut may undo them.
    unsynced: BTreeMap<PackId, u64>,
    /// About how many bytes have been freed durably.
    freed_bytes: u64,
    /// Number of packs that have been given up: unlinked, or made recycled files.
    given_up: u64,
    /// Somebody waits until `freed_bytes` reaches this.
    wanted_bytes: u64,
    /// How often nothing was left to free while somebody wanted more.
    exhausted: u64,
    /// Packs that were tried for those who wait: punched, or not punchable.
    tried: BTreeSet<PackId>,
    /// Whether a table has died since the compaction threads were last notified of a rewrite that is due.
    has_died: bool,
    punching: Punching,
    stopped: bool,
}

/// Counters of hole punching since the store was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Punching {
    pub(crate) punches: u64,
    pub(crate) bytes: u64,
    pub(crate) time: Duration,
    pub(crate) failures: u64,
    /// Whether the file system has said that it does not support holes.
    pub(crate) unsupported: bool,
}

/// Space that tables take, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct PackSpace {
    pub(crate) packs: u64,
    pub(crate) live_bytes: u64,
    /// Bytes of files, holes left out.
    pub(crate) total_bytes: u64,
    /// Dead bytes that are left alone because something prevents a hole.
    pub(crate) kept_bytes: u64,
}

impl State {
    fn is_asked(&self) -> bool {
        self.wanted_bytes > self.freed_bytes
    }

    /// Counts `bytes` as freed: no power cut can undo that.
    fn count_freed(&mut self, bytes: u64) {
        self.freed_bytes += bytes;
        if !self.is_asked() {
            self.tried.clear();
        }
    }

    /// Notes that `holes` were punched into a pack, which may have died meanwhile.
    fn punched(&mut self, pack: PackId, holes: &[Range<u64>]) {
        let bytes: u64 = holes.iter().map(|hole| hole.end - hole.start).sum();
        if bytes == 0 {
            return;
        }
        self.accounting.punched(pack, holes);
        *self.unsynced.entry(pack).or_default() += bytes;
        if let Some(dead) = self.dead.iter_mut().find(|dead| dead.id == pack) {
            dead.is_whole = false;
            dead.bytes = dead.bytes.saturating_sub(bytes);
        }
    }

    /// A pack with holes that are not synced.
    fn pack_to_sync(&self) -> Option<PackId> {
        self.unsynced.keys().copied().find(|pack| self.accounting.can_sync(*pack))
    }

    /// Space as the planner sees it; `is_short` if somebody needs space.
    fn space_totals(&self, is_short: bool) -> SpaceTotals {
        let totals = self.accounting.totals();
        SpaceTotals {
            no_holes: self.punching.unsupported,
            is_short,
            live_bytes: totals.live,
            dead_bytes: totals.dead,
            sparse_packs: totals.sparse,
        }
    }

    /// Notes that nothing is left to free for those who wait.
    fn exhaust(&mut self) {
        if self.is_asked() {
            self.exhausted += 1;
            self.wanted_bytes = self.freed_bytes;
        }
        self.tried.clear();
    }
}

impl Reclaimer {
    /// Enters the packs and tables that an edit, now durable, has added; and which packs have value tables.
    pub(crate) fn register(
        &self,
        packs: impl Iterator<Item = (PackId, u64)>,
        tables: impl Iterator<Item = Extent>,
        values: impl Iterator<Item = PackId>,
    ) {
        let mut state = self.state.lock();
        packs.for_each(|(pack, length)| state.accounting.enter_pack(pack, length));
        tables.for_each(|extent| state.accounting.enter_table(&extent));
        values.for_each(|pack| state.accounting.note_values(pack));
    }

    /// Enters the packs and tables of a recovered catalog. `stored` is the part of the [`gaps`] in its packs that
    /// takes up space.
    pub(crate) fn register_all(&self, catalog: &Catalog, stored: &BTreeMap<PackId, Vec<Range<u64>>>) {
        let packs = catalog.packs().map(|pack| (pack.record.id, pack.record.length));
        let values = catalog.keyspaces.values().flat_map(|keyspace| keyspace.version.values().iter());
        let values = values.map(|table| table.record.extent.pack);
        self.register(packs, catalog.live_extents(), values);
        let mut state = self.state.lock();
        for (pack, gaps) in gaps(catalog) {
            let stored = stored.get(&pack).unwrap_or(&gaps);
            state.accounting.enter_gaps(pack, &gaps, stored);
        }
    }

    pub(crate) fn space(&self) -> PackSpace {
        let state = self.state.lock();
        let totals = state.accounting.totals();
        PackSpace {
            packs: state.accounting.packs(),
            live_bytes: totals.live,
            total_bytes: totals.stored,
            kept_bytes: totals.kept,
        }
    }

    /// Bytes of all packs, those that wait to be given up included.
    pub(crate) fn pack_bytes(&self) -> u64 {
        let state = self.state.lock();
        state.dead.iter().map(|pack| pack.bytes).sum::<u64>() + state.accounting.totals().stored
    }

    /// Bytes that a pack's file takes up, if the pack is known here.
    pub(crate) fn stored_bytes(&self, pack: PackId) -> Option<u64> {
        self.state.lock().accounting.stored(pack)
    }

    /// Space as the planner sees it, and, if a rewrite is due, the packs.
    pub(crate) fn to_rewrite(&self, is_short: bool) -> (SpaceTotals, Vec<PackView>) {
        let state = self.state.lock();
        let totals = state.space_totals(is_short);
        (totals, if totals.is_due() { state.accounting.views() } else { Vec::new() })
    }

    /// Number of packs that have been given up since the store was opened.
    pub(crate) fn given_up(&self) -> u64 {
        self.state.lock().given_up
    }

    /// Leaves `packs` alone for a while from `now` on, because something prevents their rewrite.
    pub(crate) fn block(&self, packs: &BTreeSet<PackId>, now: Duration) {
        let mut state = self.state.lock();
        packs.iter().for_each(|pack| state.accounting.block(*pack, now));
        drop(state);
        self.woken.notify_all();
    }

    /// Bytes of live values in packs of values, and of what is dead there and takes up space: all that is to be punched or given up,
    /// and of the rest what is beyond the share that waits for a collection.
    pub(crate) fn value_space(&self) -> (u64, u64) {
        let state = self.state.lock();
        let totals = state.accounting.totals();
        let gone: u64 = state.dead.iter().map(|pack| pack.bytes).sum();
        let punchable = if state.punching.unsupported { 0 } else { totals.worth_values };
        let stuck = (totals.dead_values - punchable).saturating_sub(totals.live_values / STUCK_PARTS);
        (totals.live_values, if totals.live_values > 0 { punchable + stuck + gone } else { 0 })
    }

    /// The shortest dead range that is punched before much is dead; `None` if there are no holes.
    pub(crate) fn hole_bytes(&self) -> HoleBytes {
        let state = self.state.lock();
        (!state.punching.unsupported).then(|| state.accounting.hole_bytes())
    }

    pub(crate) fn punching(&self) -> Punching {
        self.state.lock().punching
    }

    /// Number of pieces between holes: of all packs, and of the pack that has most.
    pub(crate) fn data_ranges(&self) -> (u64, u64) {
        self.state.lock().accounting.data_ranges()
    }

    /// Ends the thread. From now on releases are ignored.
    pub(crate) fn stop(&self) {
        self.state.lock().stopped = true;
        self.woken.notify_all();
    }
}

impl ExtentSink for Reclaimer {
    fn released(&self, extent: Extent) {
        self.released_all(vec![extent]);
    }

    fn released_all(&self, extents: Vec<Extent>) {
        let mut state = self.state.lock();
        if state.stopped {
            return;
        }
        let (mut has_died, mut is_last) = (false, false);
        for extent in extents {
            match state.accounting.release(&extent) {
                // The outputs of a failed job were never registered: the job itself removes its packs.
                Released::Unknown => {}
                Released::Dead => has_died = true,
                Released::Last(pack) => {
                    state.dead.push(pack);
                    is_last = true;
                }
            }
        }
        state.has_died |= has_died;
        let is_due = has_died && (state.accounting.is_wasteful() || state.space_totals(false).is_due());
        drop(state);
        if is_last || is_due {
            self.woken.notify_all();
        }
    }
}

impl Storage {
    /// Frees `bytes` of dead data durably for somebody who needs them, or as much as there is: first what compaction buffers
    /// hold. Returns whether anything was freed. Any lock but the reclaimer's may be held: nobody waits for more than was asked
    /// for.
    pub(crate) fn free_dead(&self, bytes: u64) -> bool {
        if !planted!("buffers-kept-on-a-full-disk") {
            self.drop_buffers();
        }
        self.free_what_is_dead(bytes)
    }

    /// The same, but buffers are left alone.
    pub(crate) fn free_what_is_dead(&self, bytes: u64) -> bool {
        let mut state = self.reclaimer.state.lock();
        let (before, exhausted) = (state.freed_bytes, state.exhausted);
        let wanted = before.saturating_add(bytes.max(1));
        state.wanted_bytes = state.wanted_bytes.max(wanted);
        self.reclaimer.woken.notify_all();
        while !state.stopped && state.freed_bytes < wanted && state.exhausted == exhausted {
            self.reclaimer.woken.wait(&mut state);
        }
        state.freed_bytes > before
    }

    /// Waits until every pack that is dead by now has been given up. It cannot return early: a pack leaves the list
    /// of dead packs, under the lock, only after it was given up.
    pub(crate) fn wait_reclaimed(&self) {
        let mut state = self.reclaimer.state.lock();
        let dead: Vec<PackId> = state.dead.iter().map(|pack| pack.id).collect();
        while !state.stopped && state.dead.iter().any(|pack| dead.contains(&pack.id)) {
            self.reclaimer.woken.wait(&mut state);
        }
    }
}

#[cfg(test)]
mod tests;
