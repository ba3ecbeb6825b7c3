//! The reclaiming thread: what it does first, and how fast.
//!
//! Packs that are dead as a whole go first, whatever else waits, since they cost least. Then comes who needs space: as much
//! as was asked for is punched, of whatever size, and made durable before anybody is told. What is left is done in turns,
//! each of so many punches and bytes, with a pause between two: a punch takes the file's lock and its journal's time, which
//! readers and writers of the disk would notice. Only stretches worth a hole are punched so, of the pack with most of them
//! first, and only until no more is dead than the share that is left to whole packs.

use std::time::Duration;

use super::books::{Budget, DeadPack, Pick};
use super::stretches::Stretches;
use super::{Punching, State};
use crate::engine::Engine;
use crate::env::sync::MutexGuard;
use crate::store::meter::WriteCause;
use crate::store::punch::{Attempt, Obstacle, is_linked, punch};

/// What is punched in a turn, at most.
const TURN: Budget = Budget { punches: 16, bytes: 64 << 20 };

/// Between two turns: beside flushes and merges, and while nothing runs or too much has died.
const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_SHORT: Duration = Duration::from_millis(10);

/// Of one pack, for those who wait, at a time: so that dead packs are not kept waiting long.
const ASKED_PUNCHES_MAX: usize = 64;

/// What is left of a turn, or when the next one may begin.
#[derive(Debug)]
struct Turn {
    left: Budget,
    rest_until: Duration,
    /// Whether too much was dead when that was looked at last.
    was_due: bool,
}

impl Turn {
    /// Takes what has been done off, and ends the turn if that was all of it.
    fn spend(&mut self, attempt: Done, pause: Duration) {
        self.left.punches = self.left.punches.saturating_sub(attempt.punches.max(1));
        self.left.bytes = self.left.bytes.saturating_sub(attempt.bytes);
        if self.left.punches == 0 || self.left.bytes < Stretches::LARGE_BYTES {
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

/// For whom is punched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum For {
    /// Somebody who waits for space.
    Waiting,
    Nobody,
}

impl Engine {
    /// Body of the reclaiming thread.
    pub(in crate::engine) fn reclaim_forever(&self) {
        let mut turn = Turn { left: TURN, rest_until: Duration::ZERO, was_due: false };
        let mut state = self.reclaimer.state.lock();
        while !state.stopped {
            state.books.retry(self.env.now());
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
        drop(state);
        if !self.health.is_poisoned() {
            let packs = self.cache.packs();
            // One that has holes would have to be filled again, and one that has another name is somebody's copy: neither is
            // written over. A pack that cannot be given up now is unlinked at the next open.
            let _ = match pack.is_whole && !is_linked(&self.device, pack.id) {
                true => packs.release(pack.id, pack.bytes),
                false => packs.remove(pack.id),
            };
        }
        let mut state = self.reclaimer.state.lock();
        state.dead.retain(|other| other.id != pack.id);
        state.freed_bytes += pack.bytes;
        self.reclaimer.woken.notify_all();
        state
    }

    /// Whether holes can be punched at all.
    fn punches(&self, state: &State) -> bool {
        !state.punching.unsupported && !self.health.is_poisoned()
    }

    /// Punches for those who wait.
    fn punch_asked<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let missing = state.wanted_bytes.saturating_sub(state.freed_bytes);
        let budget = Budget { punches: ASKED_PUNCHES_MAX, bytes: missing };
        let pick = if self.punches(&state) { state.books.pick_anything(budget, &state.tried) } else { None };
        match pick {
            Some(pick) => state = self.punch_picked(state, pick, For::Waiting).0,
            None => state.exhaust(),
        }
        if !state.is_asked() {
            state.tried.clear();
            self.reclaimer.woken.notify_all();
        }
        state
    }

    /// Punches if it is time to, or waits until there may be something to do.
    fn punch_at_leisure<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        turn: &mut Turn,
    ) -> MutexGuard<'a, State> {
        let now = self.env.now();
        let is_due = self.punches(&state) && state.books.is_wasteful();
        if is_due && !turn.was_due {
            // What an edit drops is released table by table: neighbours are given the time to become one stretch.
            turn.rest_until = turn.rest_until.max(now + PAUSE_SHORT);
        }
        turn.was_due = is_due;
        if is_due && now < turn.rest_until {
            if self.reclaimer.woken.wait_for(&mut state, turn.rest_until - now) {
                // Also where time stands still unless something is done.
                turn.rest_until = Duration::ZERO;
            }
            return state;
        }
        if let Some(pick) = if is_due { state.books.pick(turn.left) } else { None } {
            let (mut state, done) = self.punch_picked(state, pick, For::Nobody);
            let is_behind = state.books.is_behind();
            drop(state);
            let pause = if is_behind || self.is_calm() { PAUSE_SHORT } else { PAUSE };
            turn.spend(done, pause);
            state = self.reclaimer.state.lock();
            return state;
        }
        match state.books.next_retry().filter(|_| self.punches(&state)) {
            Some(until) => {
                if self.reclaimer.woken.wait_for(&mut state, until.saturating_sub(now)) {
                    state.books.retry(until);
                }
            }
            None => self.reclaimer.woken.wait(&mut state),
        }
        state
    }

    /// Whether nothing runs that punching could be in the way of.
    fn is_calm(&self) -> bool {
        self.pressure.load().sealed_memtables == 0 && self.scheduler.running() == (0, 0)
    }

    /// Punches `pick`, without the lock. Where somebody waits for the space, it counts only once it is durable.
    fn punch_picked<'a>(
        &'a self,
        state: MutexGuard<'a, State>,
        pick: Pick,
        whom: For,
    ) -> (MutexGuard<'a, State>, Done) {
        drop(state);
        let start = self.env.now();
        let Attempt { punched, obstacle, file } = punch(&self.device, pick.pack, &pick.stretches);
        let holes = &pick.stretches[..punched];
        let bytes = holes.iter().map(|hole| hole.end - hole.start).sum();
        // A file of which a sync has failed is never synced again: the next one would say nothing of the holes before it.
        let synced = match (&file, whom) {
            (Some(file), For::Waiting) if pick.can_sync => Some(file.sync(WriteCause::Reclaim).is_ok()),
            _ => None,
        };
        let at = self.env.now();
        let mut state = self.reclaimer.state.lock();
        state.books.punched(pick.pack, holes);
        match synced {
            Some(true) => state.freed_bytes += bytes,
            Some(false) => state.books.never_sync(pick.pack),
            None => {}
        }
        let failed = synced == Some(false) || obstacle == Some(Obstacle::Refused);
        let Punching { punches, bytes: all, time, failures, unsupported } = &mut state.punching;
        *punches += punched as u64;
        *all += bytes;
        *time += at.saturating_sub(start);
        *failures += u64::from(failed);
        *unsupported |= obstacle == Some(Obstacle::Unsupported);
        match obstacle {
            // Nothing else stands in the way of this pack: the next one fares no better.
            Some(Obstacle::Unsupported) => {}
            Some(Obstacle::Held | Obstacle::Linked | Obstacle::Refused) => state.books.block(pick.pack, at),
            None => state.books.cleared(pick.pack),
        }
        if whom == For::Waiting && (obstacle.is_some() || synced != Some(true)) {
            state.tried.insert(pick.pack);
        }
        (state, Done { punches: punched, bytes, at })
    }
}
