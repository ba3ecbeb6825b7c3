//! From dead tables to free space.
//!
//! Every table that a version names holds a lease on its extent. The last holder gone (version, iterator, job), the
//! lease reports the extent here, where each pack's live tables are counted; a pack without any is given to the
//! spares, or unlinked, by a thread of its own. The current version lets go of a table only after the edit that drops
//! it is durable, so an extent that arrives here is dead after any crash, too. Giving it up needs no barrier: a pack
//! that comes back is unknown to the manifest and goes at the next open.
//!
//! Where space is short, the dead tables of packs that live on are punched out by the same thread, which alone gives packs
//! up: a pack's name stands for the same file while its tables are punched.
//!
//! After a failure whose outcome is unknown, and once the store is closed, nothing is reclaimed any more.

use std::collections::BTreeMap;

use super::Engine;
use crate::catalog::{Catalog, ExtentSink};
use crate::env::sync::{Condvar, Mutex, MutexGuard};
use crate::types::{Extent, PAGE_BYTES, PackId};

#[derive(Debug, Default)]
pub(crate) struct Reclaimer {
    state: Mutex<State>,
    woken: Condvar,
}

#[derive(Debug, Default)]
struct State {
    packs: BTreeMap<PackId, PackUse>,
    /// Packs without a live table, and their lengths, not yet given up, in the order in which they died.
    dead: Vec<(PackId, u64)>,
    /// Requests to punch that have been made, and that have been served.
    punches_asked: u64,
    punches_done: u64,
    /// Whether the last one freed anything.
    freed: bool,
    stopped: bool,
}

/// What of a pack is still in use.
#[derive(Clone, Debug, Default)]
struct PackUse {
    tables: usize,
    live_bytes: u64,
    /// Without what has been punched out, about.
    length: u64,
    /// Offset and length of dead tables that take up space.
    dead: Vec<(u64, u64)>,
}

/// Space that tables take, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct PackSpace {
    pub(crate) packs: u64,
    pub(crate) live_bytes: u64,
    pub(crate) total_bytes: u64,
}

impl Reclaimer {
    /// Starts to count what an edit, now durable, has added.
    pub(crate) fn register(
        &self,
        packs: impl Iterator<Item = (PackId, u64)>,
        tables: impl Iterator<Item = Extent>,
    ) {
        let mut state = self.state.lock();
        for (pack, length) in packs {
            state.packs.insert(pack, PackUse { length, ..PackUse::default() });
        }
        for extent in tables {
            if let Some(used) = state.packs.get_mut(&extent.pack) {
                used.tables += 1;
                used.live_bytes += extent.length;
            }
        }
    }

    /// Starts to count the tables of a recovered catalog.
    pub(crate) fn register_all(&self, catalog: &Catalog) {
        let packs = catalog.packs().map(|pack| (pack.record.id, pack.record.length));
        self.register(packs, catalog.tables().map(|table| table.extent));
        let mut extents: Vec<Extent> = catalog.tables().map(|table| table.extent).collect();
        extents.sort_unstable_by_key(|extent| (extent.pack, extent.offset));
        let mut state = self.state.lock();
        for of_pack in extents.chunk_by(|one, next| one.pack == next.pack) {
            // What lies between live tables was dead before the store was opened.
            let mut free = 0;
            for extent in of_pack {
                if extent.offset > free
                    && let Some(used) = state.packs.get_mut(&extent.pack)
                {
                    used.dead.push((free, extent.offset - free));
                }
                free = (extent.offset + extent.length).next_multiple_of(PAGE_BYTES);
            }
        }
    }

    pub(crate) fn space(&self) -> PackSpace {
        let state = self.state.lock();
        state.packs.values().fold(PackSpace::default(), |space, pack| PackSpace {
            packs: space.packs + 1,
            live_bytes: space.live_bytes + pack.live_bytes,
            total_bytes: space.total_bytes + pack.length,
        })
    }

    /// Bytes of all packs, those included that wait to be given up.
    pub(crate) fn pack_bytes(&self) -> u64 {
        let state = self.state.lock();
        let dead: u64 = state.dead.iter().map(|&(_, length)| length).sum();
        dead + state.packs.values().map(|pack| pack.length).sum::<u64>()
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
        // Outputs of a job that failed were never registered: the job removes its own packs.
        let Some(used) = state.packs.get_mut(&extent.pack) else { return };
        used.tables = used.tables.saturating_sub(1);
        used.live_bytes = used.live_bytes.saturating_sub(extent.length);
        used.dead.push((extent.offset, extent.length));
        if used.tables == 0 {
            let length = used.length;
            state.packs.remove(&extent.pack);
            state.dead.push((extent.pack, length));
            drop(state);
            self.woken.notify_all();
        }
    }
}

impl Engine {
    /// Body of the reclaiming thread.
    pub(crate) fn reclaim_forever(&self) {
        let mut state = self.reclaimer.state.lock();
        while !state.stopped {
            let Some(&(pack, length)) = state.dead.first() else {
                if state.punches_asked > state.punches_done {
                    state = self.punch_dead(state);
                } else {
                    self.reclaimer.woken.wait(&mut state);
                }
                continue;
            };
            drop(state);
            if !self.health.is_poisoned() {
                // A pack that cannot be given up now is unlinked at the next open.
                let _ = self.cache.packs().release(pack, length);
            }
            state = self.reclaimer.state.lock();
            state.dead.retain(|&(dead, _)| dead != pack);
            self.reclaimer.woken.notify_all();
        }
    }

    /// Punches what is dead in packs that live on.
    fn punch_dead<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let upto = state.punches_asked;
        let dead: Vec<_> = (state.packs.iter_mut())
            .filter(|(_, used)| !used.dead.is_empty())
            .map(|(&pack, used)| (pack, std::mem::take(&mut used.dead)))
            .collect();
        drop(state);
        let mut freed = false;
        for (pack, mut tables) in dead {
            let punched =
                !self.health.is_poisoned() && self.cache.packs().punch(pack, &tables).unwrap_or(false);
            freed |= punched;
            if let Some(used) = self.reclaimer.state.lock().packs.get_mut(&pack) {
                if punched {
                    let bytes: u64 = tables.iter().map(|(_, length)| length).sum();
                    used.length = used.length.saturating_sub(bytes);
                } else {
                    used.dead.append(&mut tables);
                }
            }
        }
        state = self.reclaimer.state.lock();
        (state.punches_done, state.freed) = (upto, freed);
        self.reclaimer.woken.notify_all();
        state
    }

    /// Frees the space of all dead tables; whether there was any. Any lock but the reclaimer's may be held.
    pub(crate) fn punch(&self) -> bool {
        let mut state = self.reclaimer.state.lock();
        state.punches_asked += 1;
        let asked = state.punches_asked;
        self.reclaimer.woken.notify_all();
        while !state.stopped && state.punches_done < asked {
            self.reclaimer.woken.wait(&mut state);
        }
        !state.stopped && state.freed
    }

    /// Waits until everything that is dead by now has been given up.
    pub(crate) fn wait_reclaimed(&self) {
        let mut state = self.reclaimer.state.lock();
        let dead = state.dead.clone();
        while !state.stopped && state.dead.iter().any(|pack| dead.contains(pack)) {
            self.reclaimer.woken.wait(&mut state);
        }
    }
}
