//! The reclaiming thread: in which order it works, and how fast.
//!
//! 1. **Dead packs** come first, since they cost least.
//! 2. **Whoever needs space** comes next. The thread punches as much as was asked for, byte ranges of any length, and
//!    makes the holes durable before it notifies anybody. Before it says that nothing is left, it also makes the
//!    holes durable that were punched at leisure.
//! 3. **The rest** is punched at leisure, in turns. A turn has a limit of punches and bytes, and a pause follows it,
//!    since a punch holds the file's lock and takes time of the file system's journal, which other users of the disk
//!    would notice. Only byte ranges that are worth a hole are punched, in the pack with most dead bytes first, and
//!    only until no more is dead than the share that may wait for whole packs to die.
//!
//! The thread does not rewrite packs itself. If a rewrite is due, it notifies the compaction threads.
//!
//! It touches what [`ReclaimThread`] holds, and does nothing under the reclaimer's lock but count.

use std::sync::Arc;
use std::time::Duration;

use super::{Punching, State};
use crate::engine::shared::health::Health;
use crate::engine::shared::pressure::Pressure;
use crate::engine::shared::wake::BackgroundThreads;
use crate::engine::space::reclaim::accounting::{Budget, DeadPack, Pick};
use crate::engine::space::reclaim::byte_ranges::ByteRanges;
use crate::engine::space::storage::Storage;
use crate::env::Access;
use crate::env::sync::MutexGuard;
use crate::format::names::FileName;
use crate::policy::LoadState;
use crate::store::cache::TableCache;
use crate::store::files::file::StoreFile;
use crate::store::files::meter::WriteCause;
use crate::store::files::punch::{Attempt, Obstacle, is_linked, punch};
use crate::types::PackId;

/// Most that is punched in a turn. With the pauses it is 80 or 270 MB/s. (Pebble paces its deletions at 128 MB/s: where the file
/// system passes them on to the device, as `discard`, users wait behind a large one.)
const TURN: Budget = Budget { punches: 4, bytes: 8 << 20 };

/// Short holes take less: as many as take so long are a turn, too.
const TURN_TIME: Duration = Duration::from_millis(10);
const TURN_PUNCHES_MAX: usize = 512;

/// Pause between two turns: while flushes or compactions run, and the short one while nothing runs or too much has
/// died.
const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_SHORT: Duration = Duration::from_millis(30);

/// Most that is punched in one pack at a time for those who wait, so that dead packs, and a waiter that asked for
/// less than others, do not wait long.
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
    pub(in crate::engine) scheduler: Arc<dyn BackgroundThreads>,
}

/// The rest of a turn, or the moment when the next one may begin.
#[derive(Debug)]
struct Turn {
    left: Budget,
    rest_until: Duration,
    /// Whether too much was dead at the last check.
    was_due: bool,
    /// Whether the compaction threads have been notified that a rewrite is due.
    has_notified: bool,
}

impl Turn {
    /// Subtracts the work done, and ends the turn if nothing is left of it.
    fn spend(&mut self, attempt: Done, pause: Duration) {
        self.left.punches = self.left.punches.saturating_sub(attempt.punches.max(1));
        self.left.bytes = self.left.bytes.saturating_sub(attempt.bytes);
        if self.left.punches == 0 || self.left.bytes < ByteRanges::LARGE_BYTES {
            let punches = TURN.punches.max(attempt.punches_of_turn);
            (self.left, self.rest_until) = (Budget { punches, ..TURN }, attempt.at + pause);
        }
    }
}

/// The work done by an attempt.
#[derive(Clone, Copy, Debug)]
struct Done {
    punches: usize,
    bytes: u64,
    /// When it ended.
    at: Duration,
    /// Number of punches that take as long as a turn may.
    punches_of_turn: usize,
    /// Whether another length is worth a hole now, so that value tables may be due to be left.
    is_other: bool,
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

    /// Gives up a pack without live tables.
    fn give_up<'a>(&'a self, state: MutexGuard<'a, State>, pack: DeadPack) -> MutexGuard<'a, State> {
        let is_asked = state.is_asked();
        drop(state);
        let mut is_free = false;
        if !self.health.is_poisoned() {
            let packs = self.cache.packs();
            let is_linked = is_linked(&self.storage.devices.of(pack.id).device, pack.id);
            // A pack with holes would have to be filled again, and a pack with a second name is a copy that somebody
            // made: neither is recycled. A pack that cannot be given up now is unlinked at the next open.
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
            // The removal also makes its holes durable.
            state.count_freed(pack.bytes + holes);
        }
        self.storage.reclaimer.woken.notify_all();
        drop(state);
        self.tell_writers();
        self.storage.reclaimer.state.lock()
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

    /// Makes durable the holes of a pack that were punched at leisure.
    fn sync_later<'a>(&'a self, state: MutexGuard<'a, State>, pack: PackId) -> MutexGuard<'a, State> {
        drop(state);
        let file = self.storage.devices.of(pack).device.open(FileName::Pack(pack), Access::ReadWrite);
        let mut state = self.storage.reclaimer.state.lock();
        match file {
            Ok(file) => self.sync_holes(state, pack, &file).0,
            Err(_) => {
                // The holes are not counted as freed. Otherwise a waiter would wait for as long as the file cannot be
                // opened.
                state.unsynced.remove(&pack);
                state
            }
        }
    }

    /// Makes all holes of a pack durable, without the lock. Returns whether that succeeded.
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
            // A waiter that asked for less than others need not wait for theirs.
            self.storage.reclaimer.woken.notify_all();
        } else {
            // After a failed sync a file is never synced again: a later sync would succeed without the holes before
            // it.
            state.accounting.never_sync(pack);
            state.punching.failures += 1;
        }
        (state, synced)
    }

    /// Punches if it is time to. Otherwise waits until there may be work.
    fn punch_at_leisure<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        turn: &mut Turn,
    ) -> MutexGuard<'a, State> {
        let now = self.storage.env.now();
        let is_due = self.punches(&state) && state.accounting.is_wasteful();
        if is_due && !turn.was_due {
            // The tables that an edit drops are released one by one: wait until neighbours have become one byte
            // range.
            turn.rest_until = turn.rest_until.max(now + PAUSE_SHORT);
        }
        turn.was_due = is_due;
        if is_due && now < turn.rest_until {
            if self.storage.reclaimer.woken.wait_for(&mut state, turn.rest_until - now) {
                // The pause is over, even if a simulated clock has not moved.
                turn.rest_until = Duration::ZERO;
            }
            return state;
        }
        if let Some(pick) = if is_due { state.accounting.pick(turn.left) } else { None } {
            let (state, done) = self.punch_picked(state, pick);
            drop(state);
            self.tell_writers();
            if done.is_other {
                self.scheduler.wake();
            }
            let state = self.storage.reclaimer.state.lock();
            let (is_behind, is_far_behind) = (state.accounting.is_behind(), state.accounting.is_far_behind());
            drop(state);
            let pause = match () {
                () if is_far_behind => Duration::ZERO,
                () if is_behind || self.is_calm() => PAUSE_SHORT,
                () => PAUSE,
            };
            turn.spend(done, pause);
            return self.storage.reclaimer.state.lock();
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

    /// Writers that were slowed for what is dead go by what is left of it.
    fn tell_writers(&self) {
        let (value_bytes, dead_value_bytes) = self.storage.reclaimer.value_space();
        if value_bytes > 0 {
            self.pressure.update(|load| LoadState { value_bytes, dead_value_bytes, ..*load });
        }
    }

    /// Whether nothing runs that punching could slow down.
    fn is_calm(&self) -> bool {
        self.pressure.load().sealed_memtables == 0 && self.scheduler.running() == (0, 0)
    }

    /// Punches `pick`, without the lock. If somebody waits for the space, it counts only once it is durable.
    fn punch_picked<'a>(&'a self, state: MutexGuard<'a, State>, pick: Pick) -> (MutexGuard<'a, State>, Done) {
        drop(state);
        let start = self.storage.env.now();
        let Attempt { punched, obstacle, file } =
            punch(&self.storage.devices.of(pick.pack).device, pick.pack, &pick.byte_ranges);
        let holes = &pick.byte_ranges[..punched];
        let bytes = holes.iter().map(|hole| hole.end - hole.start).sum();
        let mut state = self.storage.reclaimer.state.lock();
        state.punched(pick.pack, holes);
        // Asked after the punch: a waiter may have come during it, and nothing else may be left to free.
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
            // Not a property of this pack: no other pack can be punched either.
            Some(Obstacle::Unsupported) => {}
            Some(Obstacle::Held | Obstacle::Linked | Obstacle::Refused) => {
                state.accounting.block(pick.pack, at)
            }
            None => state.accounting.cleared(pick.pack),
        }
        if state.is_asked() && (obstacle.is_some() || !synced) {
            state.tried.insert(pick.pack);
        }
        let is_other = state.accounting.note_punches(holes, at.saturating_sub(start));
        let punches_of_turn = state.accounting.punches_in(TURN_TIME).min(TURN_PUNCHES_MAX);
        (state, Done { punches: punched, bytes, at, punches_of_turn, is_other })
    }
}
