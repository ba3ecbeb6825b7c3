//! From dead tables to free space.
//!
//! Every table that a version names holds a lease on its extent. The last holder gone (version, iterator, job), the
//! lease reports the extent here, where each pack's live tables are counted; a pack without any is unlinked by a
//! thread of its own. The current version lets go of a table only after the edit that drops it is durable, so an
//! extent that arrives here is dead after any crash, too. Unlinking needs no barrier: a pack that comes back is
//! unknown to the manifest and goes at the next open.
//!
//! After a failure whose outcome is unknown, and once the store is closed, nothing is reclaimed any more.

use std::collections::BTreeMap;

use super::Engine;
use crate::catalog::{Catalog, ExtentSink};
use crate::env::sync::{Condvar, Mutex};
use crate::types::{Extent, PackId};

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
    stopped: bool,
}

/// What of a pack is still in use.
#[derive(Clone, Copy, Debug)]
struct PackUse {
    tables: usize,
    live_bytes: u64,
    length: u64,
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
            state.packs.insert(pack, PackUse { tables: 0, live_bytes: 0, length });
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
    }

    pub(crate) fn space(&self) -> PackSpace {
        let state = self.state.lock();
        state.packs.values().fold(PackSpace::default(), |space, pack| PackSpace {
            packs: space.packs + 1,
            live_bytes: space.live_bytes + pack.live_bytes,
            total_bytes: space.total_bytes + pack.length,
        })
    }

    /// Bytes of all packs, those included that wait to be unlinked.
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
                self.reclaimer.woken.wait(&mut state);
                continue;
            };
            drop(state);
            if !self.health.is_poisoned() {
                // A pack that cannot be unlinked now is unlinked at the next open.
                let _ = self.cache.packs().release(pack, length);
            }
            state = self.reclaimer.state.lock();
            state.dead.retain(|&(dead, _)| dead != pack);
            self.reclaimer.woken.notify_all();
        }
    }

    /// Waits until everything that is dead by now has been unlinked.
    pub(crate) fn wait_reclaimed(&self) {
        let mut state = self.reclaimer.state.lock();
        let dead = state.dead.clone();
        while !state.stopped && state.dead.iter().any(|pack| dead.contains(pack)) {
            self.reclaimer.woken.wait(&mut state);
        }
    }
}
