//! Space accounting: the live tables, dead byte ranges and holes of each pack. Plain values: no files, no locks.
//!
//! A table owns the pages in which its bytes lie. The next table, and the pack's directory, begin at a later page
//! (I1). So the byte range of a dead table ends at a page boundary too, and whole pages are freed. Byte ranges of
//! dead neighbours are joined.
//!
//! Invariant (I8): a byte range is offered as dead only if no live table has a byte of it. So a mistake elsewhere
//! leads to space that is not freed, not to a hole in a live table.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Duration;

use crate::catalog::Catalog;
use crate::engine::space::reclaim::byte_ranges::ByteRanges;
use crate::format::pack::PackDirectory;
use crate::policy::PackView;
use crate::types::{Extent, PAGE_BYTES, PackId};

/// Dead tables are punched once they take more than one part in this many of what live ones take. Until then they
/// wait for their packs to die: to overwrite a whole file is cheaper than to fill its holes.
const DEAD_SHARE_MAX: u64 = 32;

/// In packs of values, a hole is worth it if so many bytes are punched in a second. Copying what lives beside them, three to five
/// bytes for each, would give space back no faster, and wear the device.
const HOLE_BYTES_PER_SECOND: u64 = 64 << 20;

/// Divisor: with this part of what lives dead, of values, punching does not rest.
const FAR_BEHIND_PARTS: u64 = 16;

/// The time of a punch is measured where it takes so many bytes at most.
const SHORT_BYTES: u64 = 64 << 10;

/// The mean is over about so many punches; at once, so many change it at most. Part of it that a turn without short holes forgets.
const MEASURED: u32 = 1024;
const NEW_MAX: u32 = 128;
const FORGOTTEN_PART: u32 = 64;

/// The same for byte ranges that are too short to be worth a hole. Without this, nothing would bound the dead space
/// of small tables.
const SMALL_SHARE_MAX: u64 = 2;

/// When somebody needs space, a byte range is not cut to fewer bytes than this.
const CUT_BYTES_MIN: u64 = 1 << 20;

/// Pause before a blocked pack is tried again, doubled each time up to the maximum.
const RETRY_PAUSE: Duration = Duration::from_secs(1);
const RETRY_PAUSE_MAX: Duration = Duration::from_secs(64);

/// All packs that have live tables.
#[derive(Debug, Default)]
pub(super) struct SpaceAccounting {
    packs: BTreeMap<PackId, PackUse>,
    /// Packs with dead bytes, by their number.
    by_dead: BTreeSet<(u64, PackId)>,
    /// The shortest range in a pack of values that is worth a hole; by the time that a punch takes.
    hole_bytes: HoleBytes,
    /// Blocked packs, which are left alone for a while, by the end of that time.
    blocked: BTreeSet<(Duration, PackId)>,
    totals: Totals,
}

/// What is worth a hole in a pack of values.
#[derive(Clone, Copy, Debug)]
struct HoleBytes {
    bytes: u64,
    /// The time of a punch, by the latest ones.
    punch: Option<Duration>,
}

impl Default for HoleBytes {
    fn default() -> Self {
        Self { bytes: PAGE_BYTES, punch: None }
    }
}

impl HoleBytes {
    /// After so many more punches, which have taken `time`.
    fn after(self, punches: u32, time: Duration) -> Self {
        let one = time / punches.max(1);
        // Where the first ones had to wait for something, a few say little.
        let new = punches.min(NEW_MAX);
        let punch = (self.punch.unwrap_or_default() * (MEASURED - new) + one * new) / MEASURED;
        Self::of(punch)
    }

    /// After a while without a short hole: if they take too long for what is dead, that may have changed.
    fn forgotten(self) -> Self {
        self.punch.map_or(self, |punch| Self::of(punch - punch / FORGOTTEN_PART))
    }

    fn of(punch: Duration) -> Self {
        let worth = u128::from(HOLE_BYTES_PER_SECOND) * punch.as_nanos() / 1_000_000_000;
        let worth = u64::try_from(worth).unwrap_or(u64::MAX).clamp(PAGE_BYTES, ByteRanges::LARGE_BYTES);
        Self { bytes: worth.next_power_of_two(), punch: Some(punch) }
    }
}

/// Sums over one pack, or over all, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Totals {
    /// Live tables.
    pub(super) live: u64,
    /// Files, holes left out.
    pub(super) stored: u64,
    /// Dead byte ranges that are worth a hole, in packs that are not blocked.
    pub(super) worth: u64,
    /// All dead byte ranges in those packs.
    pub(super) dead: u64,
    /// Dead byte ranges in blocked packs.
    pub(super) kept: u64,
    /// Live values, in packs of values.
    pub(super) live_values: u64,
    /// Dead byte ranges in those packs that are not blocked, and those of them that are worth a hole.
    pub(super) dead_values: u64,
    pub(super) worth_values: u64,
    /// Number of packs of which very little is live and that are not blocked.
    pub(super) sparse: u64,
}

/// One pack.
#[derive(Debug, Default)]
struct PackUse {
    /// Length of the sealed pack.
    length: u64,
    /// Length of each live table, or live part of a value table, by its offset.
    live: BTreeMap<u64, u64>,
    /// Whether it has value tables, which are not copied as they are.
    has_values: bool,
    live_bytes: u64,
    /// Byte ranges that take up space and that nobody needs.
    dead: ByteRanges,
    holes: ByteRanges,
    /// The last pause, while something prevents punching.
    pause: Option<Duration>,
    blocked: bool,
    /// Whether a sync of the file has failed: it is never synced again.
    unsyncable: bool,
}

/// A pack whose last table has died.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct DeadPack {
    pub(super) id: PackId,
    /// Bytes that its file takes up.
    pub(super) bytes: u64,
    /// Whether it has no holes.
    pub(super) is_whole: bool,
}

/// What the death of a table means for its pack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Released {
    /// The table was never entered here.
    Unknown,
    /// The pack has other live tables.
    Dead,
    /// It was the pack's last live table.
    Last(DeadPack),
}

/// Which byte ranges are punched at leisure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Least {
    /// Those that are worth a hole.
    WorthIt,
    Any,
}

/// What may be punched: byte ranges of one pack.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Pick {
    pub(super) pack: PackId,
    pub(super) byte_ranges: Vec<Range<u64>>,
}

/// Most punches and bytes at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Budget {
    pub(super) punches: usize,
    pub(super) bytes: u64,
}

impl Totals {
    fn add(&mut self, other: &Self) {
        self.live += other.live;
        self.stored += other.stored;
        self.worth += other.worth;
        self.dead += other.dead;
        self.kept += other.kept;
        self.live_values += other.live_values;
        self.dead_values += other.dead_values;
        self.worth_values += other.worth_values;
        self.sparse += other.sparse;
    }

    fn sub(&mut self, other: &Self) {
        self.live -= other.live;
        self.stored -= other.stored;
        self.worth -= other.worth;
        self.dead -= other.dead;
        self.kept -= other.kept;
        self.live_values -= other.live_values;
        self.dead_values -= other.dead_values;
        self.worth_values -= other.worth_values;
        self.sparse -= other.sparse;
    }
}

impl PackUse {
    fn totals(&self, hole_bytes: u64) -> Totals {
        Totals {
            live: self.live_bytes,
            stored: self.stored(),
            worth: if self.blocked { 0 } else { self.dead.bytes_from(self.least(hole_bytes)) },
            dead: if self.blocked { 0 } else { self.dead.bytes() },
            kept: if self.blocked { self.dead.bytes() } else { 0 },
            live_values: if self.has_values { self.live_bytes } else { 0 },
            dead_values: if self.has_values && !self.blocked { self.dead.bytes() } else { 0 },
            worth_values: if self.has_values && !self.blocked { self.dead.bytes_from(hole_bytes) } else { 0 },
            sparse: (!self.blocked && !self.has_values && self.view(PackId(0)).is_sparse()).into(),
        }
    }

    /// The shortest range that is worth a hole; of values it is `hole_bytes`.
    fn least(&self, hole_bytes: u64) -> u64 {
        if self.has_values { hole_bytes } else { ByteRanges::LARGE_BYTES }
    }

    fn view(&self, pack: PackId) -> PackView {
        let (dead_bytes, hole_bytes) = (self.dead.bytes(), self.holes.bytes());
        PackView { pack, length: self.length, dead_bytes, hole_bytes }
    }

    fn stored(&self) -> u64 {
        self.length.saturating_sub(self.holes.bytes())
    }

    /// Number of pieces of the file between holes. The directory at its end is one, or belongs to one.
    fn data_ranges(&self) -> u64 {
        let at_start = self.holes.iter().next().is_some_and(|hole| hole.start == 0);
        (self.holes.len() + 1 - usize::from(at_start)) as u64
    }

    /// Whether no live table has a byte of `byte_range`.
    fn is_free(&self, byte_range: &Range<u64>) -> bool {
        let last = self.live.range(..byte_range.end).next_back();
        last.is_none_or(|(offset, length)| offset + length <= byte_range.start)
    }

    /// Takes the part `extent` out of what lives; nothing if not all of it does.
    fn take(&mut self, extent: &Extent) -> Option<()> {
        let (&start, &length) = self.live.range(..=extent.offset).next_back()?;
        let end = start + length;
        let is_whole = (start, end) == (extent.offset, extent.end());
        // Of a value table, parts die.
        if !(is_whole || self.has_values && end >= extent.end()) {
            return None;
        }
        self.live.remove(&start);
        if start < extent.offset {
            self.live.insert(start, extent.offset - start);
        }
        if extent.end() < end {
            self.live.insert(extent.end(), end - extent.end());
        }
        self.live_bytes -= extent.length;
        Some(())
    }

    /// The pages in which `extent` lay and nothing else does. A table has its pages for itself; values may share them, at both
    /// ends.
    fn free_pages(&self, extent: &Extent) -> Range<u64> {
        let mut pages = extent.offset / PAGE_BYTES * PAGE_BYTES..extent.end().next_multiple_of(PAGE_BYTES);
        if !self.is_free(&(pages.start..extent.offset + 1)) {
            pages.start += PAGE_BYTES;
        }
        if pages.start < pages.end && !self.is_free(&(extent.end() - 1..pages.end)) {
            pages.end -= PAGE_BYTES;
        }
        pages
    }

    /// The dead byte ranges of at least `least` bytes, longest first.
    fn longest(&self, least: u64) -> Vec<Range<u64>> {
        let long = |byte_range: &Range<u64>| byte_range.end - byte_range.start >= least;
        let mut found: Vec<_> =
            self.dead.iter().filter(long).filter(|byte_range| self.may_go(byte_range)).collect();
        found.sort_by_key(|byte_range| {
            (std::cmp::Reverse(byte_range.end - byte_range.start), byte_range.start)
        });
        found
    }

    fn may_go(&self, byte_range: &Range<u64>) -> bool {
        let is_free = self.is_free(byte_range);
        debug_assert!(is_free, "I8: {byte_range:?} is taken for dead and has a live table");
        is_free
    }
}

/// The pages of a table: it begins at a page, and nothing else begins in its last page.
fn pages_of(extent: &Extent) -> Range<u64> {
    let start = extent.offset.next_multiple_of(PAGE_BYTES);
    start..extent.end().next_multiple_of(PAGE_BYTES).max(start)
}

impl SpaceAccounting {
    pub(super) fn totals(&self) -> Totals {
        self.totals
    }

    /// Number of packs.
    pub(super) fn packs(&self) -> u64 {
        self.packs.len() as u64
    }

    /// Number of pieces between holes: of all packs, and of the pack that has most.
    pub(super) fn data_ranges(&self) -> (u64, u64) {
        let counts = self.packs.values().map(PackUse::data_ranges);
        counts.fold((0, 0), |(all, most), count| (all + count, most.max(count)))
    }

    /// Length of a pack's file without its holes.
    pub(super) fn stored(&self, pack: PackId) -> Option<u64> {
        self.packs.get(&pack).map(PackUse::stored)
    }

    /// The packs that have dead bytes or holes and are not blocked.
    pub(super) fn views(&self) -> Vec<PackView> {
        let may_go = |(_, used): &(&PackId, &PackUse)| !used.blocked && !used.has_values;
        let packs = self.packs.iter().filter(may_go).map(|(&id, used)| used.view(id));
        packs.filter(|pack| pack.dead_bytes + pack.hole_bytes > 0).collect()
    }

    /// Whether so much is dead that it is punched even though nobody needs space.
    pub(super) fn is_wasteful(&self) -> bool {
        self.least().is_some()
    }

    /// If too much is dead: which byte ranges are punched even though nobody needs space.
    fn least(&self) -> Option<Least> {
        let Totals { live, worth, dead, .. } = self.totals;
        if worth > live / DEAD_SHARE_MAX {
            Some(Least::WorthIt)
        } else {
            (dead > live / SMALL_SHARE_MAX).then_some(Least::Any)
        }
    }

    /// The shortest range in a pack of values that is worth a hole.
    pub(super) fn hole_bytes(&self) -> u64 {
        self.hole_bytes.bytes
    }

    /// Notes how long the punches of `holes` have taken. Those of long ranges tell nothing of short ones.
    /// Returns whether another length is worth a hole now.
    pub(super) fn note_punches(&mut self, holes: &[Range<u64>], time: Duration) -> bool {
        let is_short = |hole: &Range<u64>| hole.end - hole.start <= SHORT_BYTES;
        let after = match u32::try_from(holes.len()) {
            Ok(punches @ 1..) if holes.iter().all(is_short) => self.hole_bytes.after(punches, time),
            _ => self.hole_bytes.forgotten(),
        };
        let before = std::mem::replace(&mut self.hole_bytes, after).bytes;
        if before != self.hole_bytes.bytes {
            self.totals = Totals::default();
            self.packs.values().for_each(|used| self.totals.add(&used.totals(self.hole_bytes.bytes)));
        }
        before != self.hole_bytes.bytes
    }

    /// About how many punches take so long.
    pub(super) fn punches_in(&self, time: Duration) -> usize {
        let one = self.hole_bytes.punch.map_or(0, |punch| punch.as_nanos());
        time.as_nanos().checked_div(one).and_then(|count| usize::try_from(count).ok()).unwrap_or(0)
    }

    /// Whether punching is far behind the death of tables.
    pub(super) fn is_behind(&self) -> bool {
        let Totals { live, worth, dead, .. } = self.totals;
        worth > live / DEAD_SHARE_MAX * 2 || dead > live / SMALL_SHARE_MAX * 2
    }

    /// Whether so many values are dead that punching must not rest: soon, writers would be slowed for it.
    pub(super) fn is_far_behind(&self) -> bool {
        let Totals { live_values, worth_values, .. } = self.totals;
        worth_values > live_values / FAR_BEHIND_PARTS
    }

    /// Enters a pack without tables.
    pub(super) fn enter_pack(&mut self, pack: PackId, length: u64) {
        let used = PackUse { length, ..PackUse::default() };
        self.totals.add(&used.totals(self.hole_bytes.bytes));
        self.packs.insert(pack, used);
    }

    /// Enters a live table of a known pack, if it is not entered already.
    pub(super) fn enter_table(&mut self, extent: &Extent) {
        self.change(extent.pack, |used| {
            if used.live.insert(extent.offset, extent.length).is_none() {
                used.live_bytes += extent.length;
                used.dead.remove(&pages_of(extent));
            }
        });
    }

    /// Notes that a pack has value tables.
    pub(super) fn note_values(&mut self, pack: PackId) {
        self.change(pack, |used| used.has_values = true);
    }

    /// Enters the gaps between the live tables of a pack, all of which have been entered. `stored` is the part of
    /// `gaps` that takes up space and is dead; the rest are holes.
    pub(super) fn enter_gaps(&mut self, pack: PackId, gaps: &[Range<u64>], stored: &[Range<u64>]) {
        self.change(pack, |used| {
            let free = |parts: &[Range<u64>]| -> Vec<Range<u64>> {
                parts.iter().filter(|part| used.is_free(part)).cloned().collect()
            };
            let (gaps, stored) = (free(gaps), free(stored));
            gaps.iter().for_each(|gap| used.holes.insert(gap));
            for dead in &stored {
                used.holes.remove(dead);
                used.dead.insert(dead);
            }
        });
    }

    /// Notes that the last holder of a table is gone.
    pub(super) fn release(&mut self, extent: &Extent) -> Released {
        let found = self.change(extent.pack, |used| {
            used.take(extent)?;
            let pages = used.free_pages(extent);
            if !pages.is_empty() {
                used.dead.insert(&pages);
            }
            Some(used.live.is_empty())
        });
        match found.flatten() {
            None => Released::Unknown,
            Some(false) => Released::Dead,
            Some(true) => self.add_dead(extent.pack).map_or(Released::Unknown, Released::Last),
        }
    }

    fn add_dead(&mut self, pack: PackId) -> Option<DeadPack> {
        let used = self.packs.remove(&pack)?;
        self.totals.sub(&used.totals(self.hole_bytes.bytes));
        self.by_dead.remove(&(used.dead.bytes(), pack));
        if used.blocked {
            self.blocked.retain(|(_, other)| *other != pack);
        }
        Some(DeadPack { id: pack, bytes: used.stored(), is_whole: used.holes.bytes() == 0 })
    }

    /// Picks byte ranges that are worth a hole, within `budget`, in the pack with most dead bytes; byte ranges of any
    /// length if too much is dead.
    pub(super) fn pick(&self, budget: Budget) -> Option<Pick> {
        let any = self.least() == Some(Least::Any);
        let least = |used: &PackUse| if any { 1 } else { used.least(self.hole_bytes.bytes) };
        let has_any = |used: &PackUse| any || used.dead.bytes_from(least(used)) > 0;
        let mut packs =
            self.by_dead.iter().rev().filter_map(|(_, pack)| Some((*pack, self.packs.get(pack)?)));
        let (pack, used) = packs.find(|(_, used)| !used.blocked && has_any(used))?;
        let mut left = budget.bytes;
        let mut byte_ranges = Vec::new();
        for mut byte_range in used.longest(least(used)).into_iter().take(budget.punches) {
            if left < least(used) {
                break;
            }
            byte_range.end =
                byte_range.end.min(byte_range.start.saturating_add(left / PAGE_BYTES * PAGE_BYTES));
            left -= byte_range.end - byte_range.start;
            byte_ranges.push(byte_range);
        }
        (!byte_ranges.is_empty()).then_some(Pick { pack, byte_ranges })
    }

    /// As [`SpaceAccounting::pick`], if space is needed: any dead byte ranges of a pack that was not `tried`, until
    /// they reach `budget`, and beyond it by less than [`CUT_BYTES_MIN`].
    pub(super) fn pick_anything(&self, budget: Budget, tried: &BTreeSet<PackId>) -> Option<Pick> {
        let mut packs = self.by_dead.iter().rev().map(|(_, pack)| *pack).filter(|pack| !tried.contains(pack));
        packs.find_map(|pack| {
            let used = self.packs.get(&pack)?;
            let mut left = budget.bytes;
            let mut byte_ranges = used.longest(1);
            byte_ranges.truncate(budget.punches);
            byte_ranges.retain_mut(|byte_range| {
                let is_wanted = left > 0;
                let cut = left.max(CUT_BYTES_MIN).checked_next_multiple_of(PAGE_BYTES).unwrap_or(u64::MAX);
                byte_range.end = byte_range.end.min(byte_range.start.saturating_add(cut));
                left = left.saturating_sub(byte_range.end - byte_range.start);
                is_wanted
            });
            (!byte_ranges.is_empty()).then_some(Pick { pack, byte_ranges })
        })
    }

    /// Notes that `byte_ranges` of a pack are holes now. Does nothing if the pack has died meanwhile.
    pub(super) fn punched(&mut self, pack: PackId, byte_ranges: &[Range<u64>]) {
        self.change(pack, |used| {
            for byte_range in byte_ranges {
                used.dead.remove(byte_range);
                used.holes.insert(byte_range);
            }
        });
    }

    /// Notes that nothing prevents punching a pack.
    pub(super) fn cleared(&mut self, pack: PackId) {
        self.unblock(pack);
        self.change(pack, |used| used.pause = None);
    }

    /// Whether the pack is known and its file can be synced.
    pub(super) fn can_sync(&self, pack: PackId) -> bool {
        self.packs.get(&pack).is_some_and(|used| !used.unsyncable)
    }

    /// A sync of a pack has failed.
    pub(super) fn never_sync(&mut self, pack: PackId) {
        self.change(pack, |used| used.unsyncable = true);
    }

    /// Blocks a pack, because something prevents punching it: it is left alone for a while from `now` on.
    pub(super) fn block(&mut self, pack: PackId, now: Duration) {
        self.unblock(pack);
        let pause = self.change(pack, |used| {
            let pause = used.pause.map_or(RETRY_PAUSE, |last| (last * 2).min(RETRY_PAUSE_MAX));
            (used.pause, used.blocked) = (Some(pause), true);
            pause
        });
        self.blocked.extend(pause.map(|pause| (now + pause, pack)));
    }

    /// When the next pack is to be tried again.
    pub(super) fn next_retry(&self) -> Option<Duration> {
        self.blocked.first().map(|(until, _)| *until)
    }

    /// Unblocks the packs whose time has ended at `now`. Returns whether there were any.
    pub(super) fn retry(&mut self, now: Duration) -> bool {
        let mut any = false;
        while let Some(&(until, pack)) = self.blocked.first()
            && until <= now
        {
            self.blocked.pop_first();
            self.change(pack, |used| used.blocked = false);
            any = true;
        }
        any
    }

    fn unblock(&mut self, pack: PackId) {
        if self.change(pack, |used| std::mem::take(&mut used.blocked)) == Some(true) {
            self.blocked.retain(|(_, other)| *other != pack);
        }
    }

    /// Changes a pack, and keeps the derived sums up to date.
    fn change<R>(&mut self, pack: PackId, change: impl FnOnce(&mut PackUse) -> R) -> Option<R> {
        let used = self.packs.get_mut(&pack)?;
        let hole_bytes = self.hole_bytes.bytes;
        let (totals, dead) = (used.totals(hole_bytes), used.dead.bytes());
        let result = change(used);
        self.totals.sub(&totals);
        self.totals.add(&used.totals(hole_bytes));
        if used.dead.bytes() != dead {
            self.by_dead.remove(&(dead, pack));
            self.by_dead.extend((used.dead.bytes() > 0).then_some((used.dead.bytes(), pack)));
        }
        Some(result)
    }
}

/// The byte ranges between the live tables of each pack, and before its directory: dead tables of earlier openings,
/// or holes.
pub(in crate::engine) fn gaps(catalog: &Catalog) -> BTreeMap<PackId, Vec<Range<u64>>> {
    let mut live: BTreeMap<PackId, Vec<Extent>> = BTreeMap::new();
    for extent in catalog.live_extents() {
        live.entry(extent.pack).or_default().push(extent);
    }
    let packs = catalog.packs().map(|pack| (pack.record.id, pack.record.length));
    packs.filter_map(|(id, length)| Some((id, gaps_between(live.get_mut(&id)?, length)))).collect()
}

fn gaps_between(live: &mut [Extent], pack_bytes: u64) -> Vec<Range<u64>> {
    live.sort_unstable_by_key(|extent| extent.offset);
    let directory = pack_bytes.saturating_sub(PackDirectory::bytes_max(pack_bytes)) / PAGE_BYTES * PAGE_BYTES;
    let ends = live.iter().map(|extent| pages_of(extent).end);
    let starts = live.iter().map(|extent| extent.offset / PAGE_BYTES * PAGE_BYTES).chain([directory]);
    let gaps = std::iter::once(0).chain(ends).zip(starts);
    gaps.map(|(from, to)| from..to).filter(|gap| !gap.is_empty()).collect()
}

#[cfg(test)]
mod tests;
