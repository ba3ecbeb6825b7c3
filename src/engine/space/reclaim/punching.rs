//! The reclaiming thread: what it does first, and how fast.
//!
//! Packs that are dead as a whole go first, whatever else waits, since they cost least. Then comes who needs space: as much
//! as was asked for is punched, of whatever size, and made durable before anybody is told. Before anybody is told that
//! nothing is left, what was punched at leisure is made durable, too.
//!
//! What is left is done in turns, each of so many punches and bytes, with a pause between two: a punch takes the file's lock
//! and its journal's time, which readers and writers of the disk would notice. Only byte ranges worth a hole are punched so, of
//! the pack with most of them first, and only until no more is dead than the share that is left to whole packs.
//!
//! What it cannot do itself it tells: where packs are to be rewritten, the compaction threads hear so.
//!
//! It touches what [`ReclaimThread`] holds, and does nothing under the reclaimer's lock but count.

use std::sync::Arc;
use std::time::Duration;

use super::{Punching, State};
use crate::engine::observe::health::Health;
use crate::engine::schedule::scheduler::Scheduler;
use crate::engine::space::reclaim::accounting::{Budget, DeadPack, Pick};
use crate::engine::space::reclaim::byte_ranges::ByteRanges;
use crate::engine::space::storage::Storage;
use crate::engine::write::pressure::Pressure;
use crate::env::Access;
use crate::env::sync::MutexGuard;
use crate::format::names::FileName;
use crate::store::cache::TableCache;
use crate::store::files::file::StoreFile;
use crate::store::files::meter::WriteCause;
use crate::store::files::punch::{Attempt, Obstacle, is_linked, punch};
use crate::types::PackId;

/// What is punched in a turn, at most.
const TURN: Budget = Budget { punches: 16, bytes: 64 << 20 };

/// Between two turns: beside flushes and compactions, and while nothing runs or too much has died.
const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_SHORT: Duration = Duration::from_millis(10);

/// Of one pack, for those who wait, at a time: so that dead packs, and who asked for less than others, are not kept waiting
/// long.
const ASKED_MAX: Budget = Budget { punches: 64, bytes: 64 << 20 };

/// What the reclaiming thread can reach.
#[derive(Debug)]
pub(in crate::engine) struct ReclaimThread {
    pub(in crate::engine) storage: Arc<Storage>,
    pub(in crate::engine) health: Arc<Health>,
    /// The open packs.
    pub(in crate::engine) cache: Arc<TableCache>,
    /// Whether flushes wait, which it is not to be in the way of.
    pub(in crate::engine) pressure: Arc<Pressure>,
    /// Told when packs are to be rewritten.
    pub(in crate::engine) scheduler: Arc<Scheduler>,
}

/// What is left of a turn, or when the next one may begin.
#[derive(Debug)]
struct Turn {
    left: Budget,
    rest_until: Duration,
    /// Whether too much was dead when that was looked at last.
    was_due: bool,
    /// Whether the compaction threads know that packs are to be rewritten.
    has_notified: bool,
}

impl Turn {
    /// Takes what has been done off, and ends the turn if that was all of it.
    fn spend(&mut self, attempt: Done, pause: Duration) {
        self.left.punches = self.left.punches.saturating_sub(attempt.punches.max(1));
        self.left.bytes = self.left.bytes.saturating_sub(attempt.bytes);
        if self.left.punches == 0 || self.left.bytes < ByteRanges::LARGE_BYTES {
            (self.left, self.rest_until) = (TURN, attempt.at + pause);
        }
    }
}

/// What an attempt has come to.
#[derive(Clone, Copy, Debug)]
struct Done {
    punches: usize,
    bytes: u64,
    /// When it ended.
    at: Duration,
}

impl ReclaimThread {
    /// Body of the reclaiming thread.
    pub(in crate::engine) fn reclaim_forever(&self) {
        let mut turn = Turn { left: TURN, rest_until: Duration::ZERO, was_due: false, has_notified: false };
        let mut state = self.storage.reclaimer.state.lock();
        while !state.stopped {
            turn.has_notified &= !state.accounting.retry(self.storage.env.now());
            if let Some(&pack) = state.dead.first() {
                state = self.give_up(state, pack);
            } else if state.is_asked() {
                state = self.punch_asked(state);
            } else {
                state = self.punch_at_leisure(state, &mut turn);
            }
        }
    }

    /// Gives up a pack that no live table is left of.
    fn give_up<'a>(&'a self, state: MutexGuard<'a, State>, pack: DeadPack) -> MutexGuard<'a, State> {
        let is_asked = state.is_asked();
        drop(state);
        let mut is_free = false;
        if !self.health.is_poisoned() {
            let packs = self.cache.packs();
            let is_linked = is_linked(&self.storage.device, pack.id);
            // One that has holes would have to be filled again, and one that has another name is somebody's copy: neither is
            // written over. A pack that cannot be given up now is unlinked at the next open.
            let removed = match pack.is_whole && !is_linked && !is_asked {
                true => packs.release(pack.id, pack.bytes),
                false => packs.remove(pack.id).map(|()| true),
            };
            is_free = !is_linked && matches!(removed, Ok(true));
        }
        let mut state = self.storage.reclaimer.state.lock();
        state.dead.retain(|other| other.id != pack.id);
        state.given_up += 1;
        let holes = state.unsynced.remove(&pack.id).unwrap_or(0);
        if is_free {
            // The holes for good, too.
            state.count_freed(pack.bytes + holes);
        }
        self.storage.reclaimer.woken.notify_all();
        state
    }

    /// Whether holes can be punched at all.
    fn punches(&self, state: &State) -> bool {
        !state.punching.unsupported && !self.health.is_poisoned()
    }

    /// Punches for those who wait.
    fn punch_asked<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let missing = state.wanted_bytes.saturating_sub(state.freed_bytes);
        let budget = Budget { bytes: missing.min(ASKED_MAX.bytes), ..ASKED_MAX };
        let pick =
            if self.punches(&state) { state.accounting.pick_anything(budget, &state.tried) } else { None };
        if let Some(pick) = pick {
            return self.punch_picked(state, pick).0;
        }
        if let Some(pack) = state.pack_to_sync().filter(|_| !self.health.is_poisoned()) {
            return self.sync_later(state, pack);
        }
        state.exhaust();
        self.storage.reclaimer.woken.notify_all();
        state
    }

    /// Makes the holes of a pack durable that were punched at leisure.
    fn sync_later<'a>(&'a self, state: MutexGuard<'a, State>, pack: PackId) -> MutexGuard<'a, State> {
        drop(state);
        let file = self.storage.device.open(FileName::Pack(pack), Access::ReadWrite);
        let mut state = self.storage.reclaimer.state.lock();
        match file {
            Ok(file) => self.sync_holes(state, pack, &file).0,
            Err(_) => {
                // Counted for nobody: or whoever waits would do so for as long as the file cannot be opened.
                state.unsynced.remove(&pack);
                state
            }
        }
    }

    /// Makes the holes of a pack durable, all that it has by now, without the lock; whether they are.
    fn sync_holes<'a>(
        &'a self,
        state: MutexGuard<'a, State>,
        pack: PackId,
        file: &StoreFile,
    ) -> (MutexGuard<'a, State>, bool) {
        drop(state);
        let synced = planted!("holes-promised-without-a-sync") || file.sync(WriteCause::Reclaim).is_ok();
        let mut state = self.storage.reclaimer.state.lock();
        if synced {
            let bytes = state.unsynced.remove(&pack).unwrap_or(0);
            state.count_freed(bytes);
            // One who asked for less than others need not wait for them.
            self.storage.reclaimer.woken.notify_all();
        } else {
            // A file of which a sync has failed is never synced again: the next one would say nothing of the holes before it.
            state.accounting.never_sync(pack);
            state.punching.failures += 1;
        }
        (state, synced)
    }

    /// Punches if it is time to, or waits until there may be something to do.
    fn punch_at_leisure<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        turn: &mut Turn,
    ) -> MutexGuard<'a, State> {
        let now = self.storage.env.now();
        let is_due = self.punches(&state) && state.accounting.is_wasteful();
        if is_due && !turn.was_due {
            // What an edit drops is released table by table: neighbours are given the time to become one byte range.
            turn.rest_until = turn.rest_until.max(now + PAUSE_SHORT);
        }
        turn.was_due = is_due;
        if is_due && now < turn.rest_until {
            if self.storage.reclaimer.woken.wait_for(&mut state, turn.rest_until - now) {
                // Also where time stands still unless something is done.
                turn.rest_until = Duration::ZERO;
            }
            return state;
        }
        if let Some(pick) = if is_due { state.accounting.pick(turn.left) } else { None } {
            let (mut state, done) = self.punch_picked(state, pick);
            let is_behind = state.accounting.is_behind();
            drop(state);
            let pause = if is_behind || self.is_calm() { PAUSE_SHORT } else { PAUSE };
            turn.spend(done, pause);
            state = self.storage.reclaimer.state.lock();
            return state;
        }
        turn.has_notified &= !std::mem::take(&mut state.has_died);
        let is_due = state.space_totals(self.storage.is_short_of_space()).is_due();
        if is_due && !turn.has_notified {
            turn.has_notified = true;
            drop(state);
            self.scheduler.wake();
            return self.storage.reclaimer.state.lock();
        }
        turn.has_notified = is_due;
        match state.accounting.next_retry().filter(|_| !self.health.is_poisoned()) {
            Some(until) => {
                if self.storage.reclaimer.woken.wait_for(&mut state, until.saturating_sub(now)) {
                    turn.has_notified &= !state.accounting.retry(until);
                }
            }
            None => self.storage.reclaimer.woken.wait(&mut state),
        }
        state
    }

    /// Whether nothing runs that punching could be in the way of.
    fn is_calm(&self) -> bool {
        self.pressure.load().sealed_memtables == 0 && self.scheduler.running() == (0, 0)
    }

    /// Punches `pick`, without the lock. Where somebody waits for the space, it counts only once it is durable.
    fn punch_picked<'a>(&'a self, state: MutexGuard<'a, State>, pick: Pick) -> (MutexGuard<'a, State>, Done) {
        drop(state);
        let start = self.storage.env.now();
        let Attempt { punched, obstacle, file } = punch(&self.storage.device, pick.pack, &pick.byte_ranges);
        let holes = &pick.byte_ranges[..punched];
        let bytes = holes.iter().map(|hole| hole.end - hole.start).sum();
        let mut state = self.storage.reclaimer.state.lock();
        state.punched(pick.pack, holes);
        // Also one who has begun to wait only during the punch: nothing else may be left to be freed.
        let is_asked = state.is_asked();
        let mut synced = false;
        if let Some(file) = file.filter(|_| is_asked && state.accounting.can_sync(pick.pack)) {
            (state, synced) = self.sync_holes(state, pick.pack, &file);
        }
        let at = self.storage.env.now();
        let Punching { punches, bytes: all, time, failures, unsupported } = &mut state.punching;
        *punches += punched as u64;
        *all += bytes;
        *time += at.saturating_sub(start);
        *failures += u64::from(obstacle == Some(Obstacle::Refused));
        *unsupported |= obstacle == Some(Obstacle::Unsupported);
        match obstacle {
            // Nothing else stands in the way of this pack: the next one fares no better.
            Some(Obstacle::Unsupported) => {}
            Some(Obstacle::Held | Obstacle::Linked | Obstacle::Refused) => {
                state.accounting.block(pick.pack, at)
            }
            None => state.accounting.cleared(pick.pack),
        }
        if state.is_asked() && (obstacle.is_some() || !synced) {
            state.tried.insert(pick.pack);
        }
        (state, Done { punches: punched, bytes, at })
    }
}
