//! Scans: iterators over one view of a keyspace.
//!
//! A scan merges the memtables and runs of a view, in either direction. Of a level with a compaction buffer it reads some ranges
//! there ([`region`](super::region)). Range tombstones are applied to each source
//! before the merge. A scan within one prefix leaves runs out whose filters say that they do not have it.
//!
//! A [`Scan`] owns all that it needs, so it outlives the handle that it came from. It touches what [`ReadPath`] holds and
//! takes no lock of the engine.

use std::ops::Bound;
use std::sync::Arc;

use super::path::ReadPath;
use super::region::Region;
use super::sight::{Bounds, Sight};
use super::snapshots::Pin;
use crate::catalog::{Run, TableMeta, Values};
use crate::engine::keyspace::expiry::Expiry;
use crate::engine::keyspace::tree::{Tree, View};
use crate::engine::shared::reads::Walked;
use crate::error::{Error, Result};
use crate::format::filter::PrefixProbe;
use crate::merge::{
    Cursor, Masked, MergeBackward, MergeForward, PinValue, Span, Tombstones, VisibleBackward, VisibleForward,
    span_at,
};
use crate::policy::BlocksAsked;
use crate::slice::Slice;
use crate::store::cache::{TableCache, Unit};
use crate::store::memtable::{MemtableCursor, TombstoneTree};
use crate::store::table::TablesCursor;
use crate::types::{KeyRange, Prefix, Seq, Stamp, UpperBound};

/// A source of a scan: one sorted part of a view.
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all are runs, and a box would cost each step an access"
)]
// The variant has a byte of its own: to decode it from a niche of a field would cost each call several instructions.
#[repr(u8)]
pub(in crate::engine) enum Source {
    Memtable(MemtableCursor),
    Run(TablesCursor<Run>),
    /// One of the other two, if range tombstones may hide some of its entries.
    Masked(Box<Masked<Self, SourceTombstones>>),
}

/// Range tombstones of a source, as a reader sees them.
pub(in crate::engine) enum SourceTombstones {
    Memtable(Vec<Arc<TombstoneTree>>, Seq),
    Run(Arc<TableCache>, Run, Seq),
    /// Those of a source that is read in a part of all keys: elsewhere they may be older than what they would hide.
    Within(Arc<Self>, Region),
    /// No tombstones, but what hides a source where it is not read.
    Outside(Region),
}

impl Tombstones for SourceTombstones {
    type Error = Error;

    fn span(&self, key: &[u8]) -> Result<Span> {
        match self {
            Self::Memtable(lists, upto) => Ok(span_at(lists.iter().map(|list| &list[..]), key, *upto)),
            Self::Run(cache, run, upto) => span_of(cache, run, key, *upto),
            Self::Within(tombstones, region) => {
                let (range, is_read) = region.span(key);
                if !is_read && !planted!("tombstones-of-a-buffer-everywhere") {
                    return Ok(Span { range, newest: None });
                }
                let span = tombstones.span(key)?;
                Ok(Span { range: span.range.intersection(&range).unwrap_or(range), newest: span.newest })
            }
            Self::Outside(region) => {
                let (range, is_read) = region.span(key);
                Ok(Span { range, newest: (!is_read).then_some(Seq::MAX) })
            }
        }
    }
}

/// The span around `key` in a run. It reaches no farther than one table, or the gap between two.
fn span_of(cache: &TableCache, run: &Run, key: &[u8], upto: Seq) -> Result<Span> {
    let at = run.lower_bound(key);
    let mut gap = KeyRange::everything();
    if let Some(table) = run.get(at) {
        if table.range.contains(key) {
            let mut span = if table.range_tombstones > 0 {
                span_at([cache.table(table)?.range_tombstones()], key, upto)
            } else {
                Span { range: KeyRange::everything(), newest: None }
            };
            span.range = span.range.intersection(&table.range).unwrap_or_else(|| table.range.clone());
            return Ok(span);
        }
        gap.end = UpperBound::Excluded(table.range.start.clone());
    }
    if let Some(before) = at.checked_sub(1).and_then(|before| run.get(before))
        && let UpperBound::Excluded(end) = &before.range.end
    {
        gap.start = end.clone();
    }
    Ok(Span { range: gap, newest: None })
}

/// Calls the same method on whichever variant it is.
macro_rules! each {
    ($source:expr, $cursor:ident => $call:expr) => {
        match $source {
            Source::Memtable($cursor) => $call,
            Source::Run($cursor) => $call,
            Source::Masked($cursor) => $call,
        }
    };
}

impl Cursor for Source {
    type Error = Error;

    #[inline(always)]
    fn valid(&self) -> bool {
        each!(self, cursor => cursor.valid())
    }

    #[inline(always)]
    fn key(&self) -> &[u8] {
        each!(self, cursor => cursor.key())
    }

    #[inline(always)]
    fn stamp(&self) -> Stamp {
        each!(self, cursor => cursor.stamp())
    }

    #[inline(always)]
    fn value(&self) -> &[u8] {
        each!(self, cursor => cursor.value())
    }

    #[inline(always)]
    fn kept(&self) -> usize {
        each!(self, cursor => cursor.kept())
    }

    #[inline(always)]
    fn is_unread(&self) -> bool {
        match self {
            Self::Memtable(_) => false,
            Self::Run(cursor) => cursor.is_unread(),
            Self::Masked(cursor) => cursor.is_unread(),
        }
    }

    #[inline(always)]
    fn is_apart(&self) -> bool {
        match self {
            Self::Memtable(_) => false,
            Self::Run(cursor) => cursor.is_apart(),
            Self::Masked(cursor) => cursor.is_apart(),
        }
    }

    fn read_value(&mut self) -> Result<()> {
        each!(self, cursor => cursor.read_value())
    }

    #[inline(always)]
    fn waits(&self) -> bool {
        match self {
            Self::Run(cursor) => cursor.waits(),
            Self::Memtable(_) | Self::Masked(_) => false,
        }
    }

    fn seek(&mut self, key: &[u8], stamp: Stamp) -> Result<()> {
        each!(self, cursor => cursor.seek(key, stamp))
    }

    fn seek_before(&mut self, key: &[u8], stamp: Stamp) -> Result<()> {
        each!(self, cursor => cursor.seek_before(key, stamp))
    }

    fn seek_first(&mut self) -> Result<()> {
        each!(self, cursor => cursor.seek_first())
    }

    fn seek_last(&mut self) -> Result<()> {
        each!(self, cursor => cursor.seek_last())
    }

    #[inline(always)]
    fn next(&mut self) -> Result<()> {
        each!(self, cursor => cursor.next())
    }

    #[inline(always)]
    fn prev(&mut self) -> Result<()> {
        each!(self, cursor => cursor.prev())
    }
}

impl PinValue for Source {
    type Pinned = Slice;

    fn pin_value(&self) -> Slice {
        match self {
            Self::Memtable(cursor) => Slice::from_memtable(cursor.pin_value()),
            Self::Run(cursor) => match cursor.pin_value() {
                Some(value) => Slice::from_block(value),
                None => Slice::from(cursor.value()),
            },
            Self::Masked(cursor) => cursor.pin_value(),
        }
    }

    fn read_pinned(&mut self, pointer: Slice) -> Result<Slice> {
        match self {
            Self::Memtable(_) => Ok(pointer),
            Self::Run(cursor) => cursor.read_pinned(&pointer).map(Slice::from_block),
            Self::Masked(cursor) => cursor.read_pinned(pointer),
        }
    }
}

/// The range of a scan, and the prefix that all keys of the range share.
pub(super) struct Sought {
    range: KeyRange,
    prefix: PrefixProbe,
}

impl Sought {
    fn new(rule: Option<Prefix>, range: KeyRange) -> Option<Self> {
        let rule = rule?;
        let prefix = PrefixProbe::new(rule, rule.of_all(&range)?);
        Some(Self { range, prefix })
    }

    /// Whether an entry of `run` may be in the range. If the filters of its tables in the range all deny the prefix,
    /// the scan leaves the whole run out. Usually one table spans all keys with the prefix. Several are asked if
    /// tables begin or end with a range tombstone.
    fn may_be_in(&self, path: &ReadPath, run: &Run) -> Result<bool> {
        for table in run.overlapping(&self.range).filter(|table| table.entries > 0) {
            let may_contain = self.may_be_in_table(path, table)?;
            path.reads.asked_for_prefix(may_contain);
            if may_contain {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether the filter of `table`, or one of those of its partitions in the range, lets the prefix pass.
    fn may_be_in_table(&self, path: &ReadPath, table: &TableMeta) -> Result<bool> {
        let table = path.cache.table(table)?;
        if table.partitions() == 0 {
            return Ok(table.may_contain_prefix(&self.prefix));
        }
        let KeyRange { start, end } = &self.range;
        for at in table.partition_of(start)..table.partitions() {
            let partition = path.cache.partition_arc(&table, at)?;
            if partition.may_contain_prefix(&self.prefix) {
                return Ok(true);
            }
            // What lies between two partitions with the prefix has it, too: this ends with the first or second partition.
            if table.partition_end(at).is_some_and(|last| !end.admits(&last)) {
                break;
            }
        }
        Ok(false)
    }
}

/// What a scan wants of runs.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) sought: Option<&'a Sought>,
    /// Whether a large value is read only once its entry is to be shown.
    pub(super) is_lazy: bool,
    /// Whether values that lie apart are read, once they are to be shown.
    pub(super) follows: bool,
}

/// A part of a view on its way to be a source.
struct Part {
    /// `None` if nothing of it is sought.
    source: Option<Source>,
    own: Option<SourceTombstones>,
    /// Where it is read; `None` for everywhere.
    region: Option<Region>,
}

/// A run, or nothing if it has nothing that is `sought`.
fn part_of(
    path: &ReadPath,
    (level, run): (u8, &Run),
    upto: Seq,
    (values, Wanted { sought, is_lazy, follows }): (&Values, Wanted<'_>),
    region: Option<Region>,
) -> Result<Part> {
    let cache = &path.cache;
    let tombstones = || SourceTombstones::Run(cache.clone(), run.clone(), upto);
    let own = (run.range_tombstones() > 0).then(tombstones);
    let wanted = sought.map_or(Ok(true), |sought| sought.may_be_in(path, run))?;
    let cursor = || {
        let cursor = TablesCursor::cached(cache.clone(), run.clone(), Unit::of_level(level));
        let cursor = if follows { cursor.following(values.clone()) } else { cursor };
        if is_lazy { cursor.lazy() } else { cursor }
    };
    let cursor = wanted.then(cursor);
    Ok(Part { source: cursor.map(Source::Run), own, region })
}

/// The parts of `run`, which lies in `level`: itself, or what the compaction buffer has of it and itself for the rest.
fn parts_of(
    path: &ReadPath,
    view: &View,
    (level, run): (u8, &Run),
    upto: Seq,
    wanted: Wanted<'_>,
) -> Result<Vec<Part>> {
    let is_single = view.version.level(level).depth() == 1;
    let wanted = (view.version.values(), wanted);
    let list = view.buffer_of(level).filter(|list| is_single && !list.lacks().is_everything());
    let (Some(buffer), Some(_)) = (&view.buffer, list) else {
        return Ok(vec![part_of(path, (level, run), upto, wanted, None)?]);
    };
    let [kept, rest] = Region::both(buffer, level, run);
    let mut parts = Vec::new();
    for run in kept.list().runs() {
        parts.push(part_of(path, (level, run), upto, wanted, Some(kept.clone()))?);
    }
    parts.push(part_of(path, (level, run), upto, wanted, Some(rest))?);
    Ok(parts)
}

/// The sources of a view, without the entries that range tombstones hide from a reader at `upto`, and without runs
/// that have nothing that is `sought`. The range tombstones of such runs still count.
pub(super) fn sources(path: &ReadPath, view: &View, upto: Seq, wanted: Wanted<'_>) -> Result<Vec<Source>> {
    let memtables = view.memtables().map(|memtable| {
        let lists = memtable.visible_range_tombstones(upto);
        let own = (!lists.is_empty()).then(|| SourceTombstones::Memtable(lists, upto));
        Part { source: Some(Source::Memtable(memtable.cursor())), own, region: None }
    });
    let mut parts: Vec<Part> = memtables.collect();
    for (level, run) in view.version.runs().filter(|(_, run)| !run.is_empty()) {
        if view.buffer.is_some() {
            parts.extend(parts_of(path, view, (level, run), upto, wanted)?);
        } else {
            parts.push(part_of(path, (level, run), upto, (view.version.values(), wanted), None)?);
        }
    }
    let mut sources = Vec::with_capacity(parts.len());
    // Sources come newest first: a range tombstone that hides entries of a source is its own, or one of a source
    // before it.
    let mut newer: Vec<Arc<SourceTombstones>> = Vec::new();
    for Part { source, own, region } in parts {
        let own = own.map(Arc::new);
        match source {
            Some(Source::Run(cursor)) if newer.is_empty() && own.is_none() && region.is_none() => {
                sources.push(Source::Run(cursor.waiting()));
            }
            Some(source) if newer.is_empty() && own.is_none() && region.is_none() => sources.push(source),
            Some(source) => {
                let mut newer = newer.clone();
                newer.extend(region.clone().map(|region| Arc::new(SourceTombstones::Outside(region))));
                let masked = Masked::new(source, newer, own.clone());
                sources.push(Source::Masked(Box::new(masked)));
            }
            None => {}
        }
        newer.extend(own.map(|own| match region {
            Some(region) if region.is_buffer() => Arc::new(SourceTombstones::Within(own, region)),
            Some(_) | None => own,
        }));
    }
    Ok(sources)
}

/// The two directions of a scan.
pub(in crate::engine) type ForwardWalk = VisibleForward<Source>;
pub(in crate::engine) type BackwardWalk = VisibleBackward<Source>;

/// A scan from both ends over the entries that are visible at one sequence number. It owns everything that it needs.
pub(crate) struct Scan {
    path: Arc<ReadPath>,
    /// What it sees.
    pub(in crate::engine) sight: Sight,
    /// Keeps the versions that a snapshot sees. A scan of the newest state needs only the view.
    _pin: Option<Arc<Pin>>,
    sought: Option<Sought>,
    front: End<ForwardWalk>,
    back: End<BackwardWalk>,
    /// Whether nobody asks for values: those that lie apart, and large ones, are not read.
    keys_alone: bool,
    pub(in crate::engine) walked: Walked,
}

/// One end of a scan. It is made when it is first needed.
enum End<T> {
    Fresh,
    /// On the entry that was returned last.
    At(Box<T>),
    Finished,
}

impl Scan {
    /// Entries of `tree` within `bounds` as of `pin`, or as of now.
    pub(crate) fn new(
        path: &Arc<ReadPath>,
        tree: &Tree,
        bounds: Bounds,
        pin: Option<Arc<Pin>>,
    ) -> Result<Self> {
        path.health.check_open()?;
        let generation = tree.view().dead.generation();
        // The view is taken before the sequence number, as for lookups.
        let view = tree.view_arc();
        tree.check_exists()?;
        let seq = pin.as_ref().map_or_else(|| path.visible(), |pin| pin.seq());
        let seen = || {
            let counts = path.cache.counts();
            let asked =
                BlocksAsked { cached: counts.hits, read: counts.reads, read_nanos: counts.read_nanos };
            (asked, path.pressure.load().costs)
        };
        if !view.version.level(0).runs.is_empty() && tree.read_debt.scanned(seen) {
            tree.changed();
            path.scheduler.wake();
        }
        let range = bounds.range();
        if let Some(range) = &range {
            path.count_scan(&view.version, &range.start);
        }
        let empty = range.is_none();
        Ok(Self {
            path: path.clone(),
            sight: Sight { view, seq, expiry: path.clock.expiry(tree), generation, bounds },
            _pin: pin,
            sought: range.and_then(|range| Sought::new(tree.record.prefix, range)),
            front: if empty { End::Finished } else { End::Fresh },
            back: if empty { End::Finished } else { End::Fresh },
            keys_alone: false,
            walked: Walked::default(),
        })
    }

    /// Both ends are finished once one is.
    #[cold]
    fn end(&mut self, ended: Result<bool>) -> Result<bool> {
        (self.front, self.back) = (End::Finished, End::Finished);
        ended
    }

    /// From here on nobody asks for values. Where the scan stands already, it goes on as before.
    pub(crate) fn leave_values(&mut self) {
        self.keys_alone = true;
    }

    fn sources(&self) -> Result<Vec<Source>> {
        let Sight { view, seq, expiry, .. } = &self.sight;
        // A stored value says whether it has expired.
        let wanted =
            Wanted { sought: self.sought.as_ref(), is_lazy: expiry.is_none(), follows: !self.keys_alone };
        sources(&self.path, view, *seq, wanted)
    }

    /// A new forward merge over what the scan sees, without its bounds. Not valid before the first seek.
    pub(in crate::engine) fn walk_forward(&self) -> Result<ForwardWalk> {
        let walk = VisibleForward::new(MergeForward::new(self.sources()?), self.sight.seq);
        Ok(if self.keys_alone { walk.keys_alone() } else { walk })
    }

    /// The same, backward.
    pub(in crate::engine) fn walk_backward(&self) -> Result<BackwardWalk> {
        Ok(VisibleBackward::new(MergeBackward::new(self.sources()?), self.sight.seq))
    }

    /// Whether there is nothing within the bounds.
    pub(in crate::engine) fn is_empty(&self) -> bool {
        self.sight.bounds.range().is_none()
    }

    /// Moves to the next entry from the front. Returns whether there is one. A failure ends the scan.
    #[inline(always)]
    pub(crate) fn advance(&mut self) -> Result<bool> {
        match self.step_front() {
            Ok(true) => Ok(true),
            ended => self.end(ended),
        }
    }

    #[inline(always)]
    fn step_front(&mut self) -> Result<bool> {
        match &mut self.front {
            End::Finished => return Ok(false),
            End::At(walk) => walk.step(&self.sight)?,
            End::Fresh => {
                self.walked.seeks += 1;
                self.front = End::At(self.first()?);
            }
        }
        let End::At(walk) = &self.front else { return Ok(false) };
        let open = matches!((&self.sight.bounds.to, &self.back), (Bound::Unbounded, End::Fresh));
        let inside = || !self.sight.bounds.is_behind(walk.key()) && !self.back_has_passed(walk.key());
        Ok(walk.valid() && (open || inside()))
    }

    #[inline(never)]
    fn first(&self) -> Result<Box<ForwardWalk>> {
        let mut walk = Box::new(self.walk_forward()?);
        match &self.sight.bounds.from {
            Bound::Included(from) => walk.seek(from, &self.sight)?,
            Bound::Excluded(from) => {
                walk.seek(from, &self.sight)?;
                if walk.valid() && walk.key() == from {
                    walk.step(&self.sight)?;
                }
            }
            Bound::Unbounded => walk.seek_first(&self.sight)?,
        }
        Ok(walk)
    }

    /// Moves to the next entry from the back. Returns whether there is one. A failure ends the scan.
    pub(crate) fn advance_back(&mut self) -> Result<bool> {
        match self.step_back() {
            Ok(true) => Ok(true),
            ended => self.end(ended),
        }
    }

    #[inline]
    fn step_back(&mut self) -> Result<bool> {
        match &mut self.back {
            End::Finished => return Ok(false),
            End::At(walk) => walk.step(&self.sight)?,
            End::Fresh => {
                self.walked.seeks += 1;
                self.back = End::At(self.last()?);
            }
        }
        let End::At(walk) = &self.back else { return Ok(false) };
        Ok(walk.valid() && !self.sight.bounds.is_before(walk.key()) && !self.front_has_passed(walk.key()))
    }

    #[inline(never)]
    fn last(&self) -> Result<Box<BackwardWalk>> {
        let mut walk = Box::new(self.walk_backward()?);
        match &self.sight.bounds.to {
            Bound::Excluded(to) => walk.seek_before(to, &self.sight)?,
            Bound::Included(to) => {
                // The key that follows `to` in bytewise order is `to` and a zero byte.
                let mut behind = to.clone();
                behind.push(0);
                walk.seek_before(&behind, &self.sight)?;
            }
            Bound::Unbounded => walk.seek_last(&self.sight)?,
        }
        Ok(walk)
    }

    #[inline]
    fn back_has_passed(&self, key: &[u8]) -> bool {
        matches!(&self.back, End::At(walk) if walk.valid() && key >= walk.key())
    }

    #[inline]
    fn front_has_passed(&self, key: &[u8]) -> bool {
        matches!(&self.front, End::At(walk) if walk.valid() && key <= walk.key())
    }

    /// The caller's part of a stored value; `None` if it has expired.
    #[inline]
    pub(in crate::engine) fn shown<'a>(&self, value: &'a [u8]) -> Option<&'a [u8]> {
        self.sight.expiry.map_or(Some(value), |expiry| expiry.shown(value))
    }

    pub(in crate::engine) fn keep(&self, value: Slice) -> Option<Slice> {
        match self.sight.expiry {
            Some(expiry) => expiry.keep(value),
            None => Some(value),
        }
    }

    /// The entry that [`Scan::advance`] moved to, to keep.
    pub(crate) fn front_pinned(&mut self) -> Option<(Slice, Slice)> {
        let End::At(walk) = &self.front else { return None };
        let entry = (Slice::from(walk.key()), self.keep(walk.current().pin_value())?);
        self.walked.step(entry.0.len() + entry.1.len());
        Some(entry)
    }

    /// The entry that [`Scan::advance_back`] moved to, to keep.
    pub(crate) fn back_pinned(&mut self) -> Option<(Slice, Slice)> {
        let End::At(walk) = &self.back else { return None };
        let entry = (Slice::from(walk.key()), self.keep(walk.pinned_value().clone())?);
        self.walked.step(entry.0.len() + entry.1.len());
        Some(entry)
    }

    /// The entry that [`Scan::advance`] moved to; it counts as returned.
    // Key and value are found once: each is a choice among the kinds of sources, a good part of a row's cost.
    #[inline(always)]
    pub(crate) fn counted_front(&mut self) -> Option<(&[u8], &[u8])> {
        let End::At(walk) = &self.front else { return None };
        counted(&mut self.walked, self.sight.expiry, (walk.key(), walk.value()))
    }

    /// The entry that [`Scan::advance_back`] moved to; it counts as returned.
    #[inline]
    pub(crate) fn counted_back(&mut self) -> Option<(&[u8], &[u8])> {
        let End::At(walk) = &self.back else { return None };
        counted(&mut self.walked, self.sight.expiry, (walk.key(), walk.value()))
    }
}

/// An entry, counted as returned; `None` if it has expired.
#[inline(always)]
fn counted<'a>(
    walked: &mut Walked,
    expiry: Option<Expiry>,
    (key, value): (&'a [u8], &'a [u8]),
) -> Option<(&'a [u8], &'a [u8])> {
    let value = match &expiry {
        Some(expiry) => expiry.shown(value)?,
        None => value,
    };
    walked.step(key.len() + value.len());
    Some((key, value))
}

impl Drop for Scan {
    fn drop(&mut self) {
        self.path.reads.walked(&self.walked);
    }
}
