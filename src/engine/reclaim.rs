//! From dead tables to free space.
//!
//! Every table that a version names holds a lease on its extent. The last holder gone (version, iterator, job), the
//! lease reports the extent here, where each pack's live tables are counted; a pack without any is given to the
//! spares, or unlinked, by a thread of its own. The current version lets go of a table only after the edit that drops
//! it is durable, so an extent that arrives here is dead after any crash, too. Giving it up needs no barrier: a pack
//! that comes back is unknown to the manifest and goes at the next open.
//!
//! Where space is short, or too much of it is dead, the dead tables of packs that live on are punched out by the same
//! thread, which alone gives packs up: a pack's name stands for the same file while its tables are punched.
//!
//! After a failure whose outcome is unknown, and once the store is closed, nothing is reclaimed any more.

use std::collections::BTreeMap;

use super::Engine;
use crate::catalog::{Catalog, ExtentSink};
use crate::env::sync::{Condvar, Mutex, MutexGuard};
use crate::format::pack::PackDirectory;
use crate::types::{Extent, PAGE_BYTES, PackId};

/// Dead tables are punched once they take more than this part of what live ones take. Until then it is left to their packs
/// to die: to write over a whole file is cheaper than to fill its holes.
const DEAD_SHARE_MAX: u64 = 8;

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
    /// Bytes given up or punched so far, about.
    freed_bytes: u64,
    /// Bytes of live tables.
    live_bytes: u64,
    /// Bytes of dead tables that take up space in packs that live on.
    dead_bytes: u64,
    /// How many of those had to be left, for somebody else reads them.
    held_bytes: u64,
    stopped: bool,
}

impl State {
    /// Whether so much is dead that it is punched though there is space.
    fn is_wasteful(&self) -> bool {
        self.dead_bytes.saturating_sub(self.held_bytes) > self.live_bytes / DEAD_SHARE_MAX
    }
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
    /// Bytes of them that had to be left when they were to be punched last.
    held_bytes: u64,
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
            state.live_bytes += extent.length;
            if let Some(used) = state.packs.get_mut(&extent.pack) {
                used.tables += 1;
                used.live_bytes += extent.length;
            }
        }
    }

    /// Starts to count the tables of a recovered catalog.
    pub(crate) fn register_all(&self, catalog: &Catalog) {
        let packs = || catalog.packs().map(|pack| (pack.record.id, pack.record.length));
        self.register(packs(), catalog.tables().map(|table| table.extent));
        let mut live: BTreeMap<PackId, Vec<Extent>> = BTreeMap::new();
        for table in catalog.tables() {
            live.entry(table.extent.pack).or_default().push(table.extent);
        }
        let mut state = self.state.lock();
        for (pack, length) in packs() {
            let Some(live) = live.get_mut(&pack) else { continue };
            let dead = gaps(live, length);
            state.dead_bytes += bytes_of(&dead);
            if let Some(used) = state.packs.get_mut(&pack) {
                used.dead = dead;
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

fn bytes_of(tables: &[(u64, u64)]) -> u64 {
    tables.iter().map(|(_, length)| length).sum()
}

/// Offset and length of what lies between the `live` tables of a pack and before its directory: it was dead before the
/// store was opened.
fn gaps(live: &mut [Extent], pack_bytes: u64) -> Vec<(u64, u64)> {
    live.sort_unstable_by_key(|extent| extent.offset);
    let directory = pack_bytes.saturating_sub(PackDirectory::bytes_max(pack_bytes)) / PAGE_BYTES * PAGE_BYTES;
    let ends = live.iter().map(|extent| (extent.offset + extent.length).next_multiple_of(PAGE_BYTES));
    let starts = live.iter().map(|extent| extent.offset).chain([directory]);
    let gaps = std::iter::once(0).chain(ends).zip(starts);
    gaps.filter(|(from, to)| from < to).map(|(from, to)| (from, to - from)).collect()
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
        let gone = (used.tables == 0).then(|| (used.length, bytes_of(&used.dead), used.held_bytes));
        state.live_bytes = state.live_bytes.saturating_sub(extent.length);
        state.dead_bytes += extent.length;
        if let Some((length, dead, held)) = gone {
            state.dead_bytes = state.dead_bytes.saturating_sub(dead);
            state.held_bytes = state.held_bytes.saturating_sub(held);
            state.packs.remove(&extent.pack);
            state.dead.push((extent.pack, length));
        }
        if gone.is_some() || state.is_wasteful() {
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
                if state.punches_asked > state.punches_done || state.is_wasteful() {
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
            state.freed_bytes += length;
            self.reclaimer.woken.notify_all();
        }
    }

    /// Punches what is dead in packs that live on.
    fn punch_dead<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let asked = state.punches_asked;
        let dead: Vec<_> = (state.packs.iter_mut())
            .filter(|(_, used)| !used.dead.is_empty())
            .map(|(&pack, used)| (pack, std::mem::take(&mut used.dead)))
            .collect();
        drop(state);
        for (pack, mut tables) in dead {
            let punched =
                !self.health.is_poisoned() && self.cache.packs().punch(pack, &tables).unwrap_or(false);
            let bytes = bytes_of(&tables);
            state = self.reclaimer.state.lock();
            match state.packs.get_mut(&pack) {
                Some(used) if punched => {
                    used.length = used.length.saturating_sub(bytes);
                    used.held_bytes = 0;
                }
                Some(used) => {
                    used.dead.append(&mut tables);
                    used.held_bytes = bytes_of(&used.dead);
                }
                // It has died meanwhile.
                None => {}
            }
            if punched {
                state.freed_bytes += bytes;
            }
            if punched || !state.packs.contains_key(&pack) {
                state.dead_bytes = state.dead_bytes.saturating_sub(bytes);
            }
            drop(state);
        }
        state = self.reclaimer.state.lock();
        state.punches_done = asked;
        state.held_bytes = state.packs.values().map(|used| used.held_bytes).sum();
        self.reclaimer.woken.notify_all();
        state
    }

    /// Frees the space of all that is dead; whether anything has been freed meanwhile. Any lock but the reclaimer's may be
    /// held.
    pub(crate) fn punch(&self) -> bool {
        let mut state = self.reclaimer.state.lock();
        let before = state.freed_bytes;
        state.punches_asked += 1;
        let asked = state.punches_asked;
        self.reclaimer.woken.notify_all();
        while !state.stopped && state.punches_done < asked {
            self.reclaimer.woken.wait(&mut state);
        }
        state.freed_bytes > before
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::DeviceId;

    #[test]
    fn gaps_lie_between_live_tables_and_before_the_directory() {
        let extent = |offset, length| Extent { device: DeviceId(0), pack: PackId(1), offset, length };
        let length = 40 * PAGE_BYTES + 500;
        let mut live = [extent(20 * PAGE_BYTES, 1), extent(0, 3 * PAGE_BYTES), extent(3 * PAGE_BYTES, 5000)];
        let page = |count: u64| count * PAGE_BYTES;
        // The directory of so many tables takes a page at most, wherever it begins.
        assert_eq!(gaps(&mut live, length), [(page(5), page(15)), (page(21), page(18))]);
        assert_eq!(gaps(&mut live[..1], page(5)), [(page(3), page(1))]);
        assert_eq!(gaps(&mut [extent(0, page(39))], length), []);
    }
}
