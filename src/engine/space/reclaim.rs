//! From dead tables to free space.
//!
//! Every table that a version names holds a lease on its extent. The last holder gone (version, iterator, job), the
//! lease reports the extent here, where each pack's tables are on the [`accounting`]; a pack without any is given to the
//! recycled files, or unlinked, by a thread of its own ([`punching`]). The current version lets go of a table only after the edit
//! that drops it is durable, so an extent that arrives here is dead after any crash, too. Giving it up needs no barrier: a
//! pack that comes back is unknown to the manifest and goes at the next open.
//!
//! The dead tables of packs that live on are punched out by the same thread, which alone gives packs up: a pack's name
//! stands for the same file while its tables are punched. That is done at leisure once too much is dead, and at once, with a
//! barrier, as far as somebody needs space.
//!
//! Where there are no holes, and where very little is left of many packs, what lives in them is copied, and they die as a
//! whole: the compaction threads do that, by a plan ([`crate::policy::next_rewrite`]) and as a job like any other
//! (`engine/jobs/rewrite.rs`). From here come the figures, and word that something is due.
//!
//! At open, what lies between live tables is dead; what of it is a hole already is found by asking the file system, and is
//! neither counted nor punched again. No record of holes is kept: one that a crash has undone is simply not there.
//!
//! After a failure whose outcome is unknown, and once the store is closed, nothing is reclaimed any more.

mod accounting;
mod byte_ranges;
mod punching;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Duration;

use crate::catalog::{Catalog, ExtentSink};
use crate::engine::space::storage::Storage;
use crate::env::sync::{Condvar, OrderedMutex};
use crate::policy::{PackView, SpaceTotals};
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
    /// Packs without a live table, not yet given up, in the order in which they died.
    dead: Vec<DeadPack>,
    /// Bytes of holes in each pack that a power cut may undo.
    unsynced: BTreeMap<PackId, u64>,
    /// Bytes given up or punched durably so far, about.
    freed_bytes: u64,
    /// Packs that have been given up so far, unlinked or as recycled files.
    given_up: u64,
    /// Somebody waits for `freed_bytes` to come to this.
    wanted_bytes: u64,
    /// How often everything has been freed that could be, and more was wanted.
    exhausted: u64,
    /// Packs that have been punched, or could not be, for those who wait.
    tried: BTreeSet<PackId>,
    /// A table has died since compaction threads were last told that packs are to be rewritten.
    has_died: bool,
    punching: Punching,
    stopped: bool,
}

/// What punching has come to since the store was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Punching {
    pub(crate) punches: u64,
    pub(crate) bytes: u64,
    pub(crate) time: Duration,
    pub(crate) failures: u64,
    /// The file system has said that it knows no holes.
    pub(crate) unsupported: bool,
}

/// Space that tables take, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct PackSpace {
    pub(crate) packs: u64,
    pub(crate) live_bytes: u64,
    /// Files without their holes.
    pub(crate) total_bytes: u64,
    /// What is dead and left alone, for something stands in the way of a hole.
    pub(crate) kept_bytes: u64,
}

impl State {
    fn is_asked(&self) -> bool {
        self.wanted_bytes > self.freed_bytes
    }

    /// No power cut takes `bytes` back.
    fn count_freed(&mut self, bytes: u64) {
        self.freed_bytes += bytes;
        if !self.is_asked() {
            self.tried.clear();
        }
    }

    /// `holes` have been punched into a pack, which may have died meanwhile.
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

    /// A pack with holes that a sync would make durable.
    fn pack_to_sync(&self) -> Option<PackId> {
        self.unsynced.keys().copied().find(|pack| self.accounting.can_sync(*pack))
    }

    /// Space as the planner sees it, when somebody needs some or not.
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

    /// Nothing is left that could be freed for those who wait.
    fn exhaust(&mut self) {
        if self.is_asked() {
            self.exhausted += 1;
            self.wanted_bytes = self.freed_bytes;
        }
        self.tried.clear();
    }
}

impl Reclaimer {
    /// Starts to count what an edit, now durable, has added.
    pub(crate) fn register(
        &self,
        packs: impl Iterator<Item = (PackId, u64)>,
        tables: impl Iterator<Item = Extent>,
    ) {
        let mut state = self.state.lock();
        packs.for_each(|(pack, length)| state.accounting.enter_pack(pack, length));
        tables.for_each(|extent| state.accounting.enter_table(&extent));
    }

    /// Starts to count the tables of a recovered catalog. Of the [`gaps`] of its packs, `stored` takes up space.
    pub(crate) fn register_all(&self, catalog: &Catalog, stored: &BTreeMap<PackId, Vec<Range<u64>>>) {
        let packs = catalog.packs().map(|pack| (pack.record.id, pack.record.length));
        self.register(packs, catalog.tables().map(|table| table.extent));
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

    /// Bytes of all packs, those included that wait to be given up.
    pub(crate) fn pack_bytes(&self) -> u64 {
        let state = self.state.lock();
        state.dead.iter().map(|pack| pack.bytes).sum::<u64>() + state.accounting.totals().stored
    }

    /// What a pack's file takes up, as far as is known here.
    pub(crate) fn stored_bytes(&self, pack: PackId) -> Option<u64> {
        self.state.lock().accounting.stored(pack)
    }

    /// Space as the planner sees it, and the packs if any are to be rewritten.
    pub(crate) fn to_rewrite(&self, is_short: bool) -> (SpaceTotals, Vec<PackView>) {
        let state = self.state.lock();
        let totals = state.space_totals(is_short);
        (totals, if totals.is_due() { state.accounting.views() } else { Vec::new() })
    }

    /// Packs that have been given up since the store was opened.
    pub(crate) fn given_up(&self) -> u64 {
        self.state.lock().given_up
    }

    /// Something stands in the way of rewriting `packs`: they are left alone for a while from `now` on.
    pub(crate) fn block(&self, packs: &BTreeSet<PackId>, now: Duration) {
        let mut state = self.state.lock();
        packs.iter().for_each(|pack| state.accounting.block(*pack, now));
        drop(state);
        self.woken.notify_all();
    }

    pub(crate) fn punching(&self) -> Punching {
        self.state.lock().punching
    }

    /// Pieces that packs are stored in, between their holes: of all packs, and of the one that has most.
    pub(crate) fn data_ranges(&self) -> (u64, u64) {
        self.state.lock().accounting.data_ranges()
    }

    /// Ends the thread; from now on releases are ignored.
    pub(crate) fn stop(&self) {
        self.state.lock().stopped = true;
        self.woken.notify_all();
    }
}

impl ExtentSink for Reclaimer {
    fn released(&self, extent: Extent) {
        let mut state = self.state.lock();
        if state.stopped {
            return;
        }
        match state.accounting.release(&extent) {
            // Outputs of a job that failed were never registered: the job removes its own packs.
            Released::Unknown => return,
            Released::Dead => {
                state.has_died = true;
                if !state.accounting.is_wasteful() && !state.space_totals(false).is_due() {
                    return;
                }
            }
            Released::Last(pack) => state.dead.push(pack),
        }
        drop(state);
        self.woken.notify_all();
    }
}

impl Storage {
    /// Frees `bytes` of what is dead, so that no power cut takes them back, or as much as there is; whether anything was
    /// freed. Any lock but the reclaimer's may be held: nobody waits for more than was asked for.
    pub(crate) fn free_dead(&self, bytes: u64) -> bool {
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

    /// Waits until every pack that is dead by now has been given up. It cannot end early: a pack leaves the list of the dead, under
    /// its lock, only after it was given up.
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
