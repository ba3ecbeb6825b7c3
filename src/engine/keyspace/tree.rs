//! An open keyspace: its memtables and its version, published as immutable views.
//!
//! # Invariants
//!
//! * A view is immutable, but its active memtable grows. Readers take it without a lock.
//! * Only the holder of the writer's lock seals the active memtable.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use arc_swap::{ArcSwap, Guard};

use super::changes::{Changes, Marks, Watcher};
use super::collecting::Collecting;
use super::dead_ranges::DeadRanges;
use super::expiry::AtomicTtl;
use super::fitting_prefix::FittingPrefix;
use super::overwrite_ratio::OverwriteRatio;
use super::range_deletes::RangeDeletes;
use super::read_debt::ReadDebt;
use crate::catalog::{BufferList, CompactionBuffer, TableMeta, Version};
use crate::env::sync::before_look;
use crate::error::{Error, ErrorKind, Result};
use crate::format::edit::KeyspaceRecord;
use crate::policy::{Layout, PolicyConfig};
use crate::store::memtable::{ChunkPool, Memtable};
use crate::types::{KeyRange, KeyspaceId, Seq};

/// First chunk of a memtable's arena, in bytes. A keyspace that is hardly used costs little more.
const ARENA_BYTES: usize = 64 * 1024;

/// An open keyspace.
#[derive(Debug)]
pub(crate) struct Tree {
    /// The record at the opening of the tree. Settings of new tables and the time to live may be different now: see
    /// `JobContext::record_of` and `ttl`.
    pub(crate) record: KeyspaceRecord,
    chunks: Arc<ChunkPool>,
    view: ArcSwap<View>,
    dropped: AtomicBool,
    /// By which tables may go unread.
    pub(in crate::engine) range_deletes: RangeDeletes,
    pub(in crate::engine) read_debt: ReadDebt,
    /// Which value tables jobs leave.
    pub(in crate::engine) collecting: Collecting,
    pub(in crate::engine) overwrite_ratio: OverwriteRatio,
    /// The length of prefixes where the keyspace has no rule.
    pub(in crate::engine) fitting_prefix: FittingPrefix,
    /// Time to live of values.
    pub(in crate::engine) ttl: AtomicTtl,
    /// Until this moment none of its tables is compacted alone; by the monotonic clock, in nanoseconds.
    pub(in crate::engine) put_off_until: AtomicU64,
    /// Who is told that it has changed, once it is in the list of keyspaces.
    changes: OnceLock<Arc<Changes>>,
    pub(in crate::engine) marks: Marks,
}

/// Everything that a read needs. Immutable, but the active memtable grows.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) active: Arc<Memtable>,
    /// Sealed memtables, which wait for their flush, newest first.
    pub(crate) sealed: Vec<Sealed>,
    pub(crate) version: Arc<Version>,
    /// Tables that compactions have replaced and readers may still use. `None` while nothing is kept.
    pub(crate) buffer: Option<Arc<CompactionBuffer>>,
    /// Where nothing is alive. The same object in all views of a keyspace.
    pub(in crate::engine) dead: Arc<DeadRanges>,
}

/// A compaction buffer that is to take the place of another one, unless that has changed meanwhile.
#[derive(Debug, Default)]
pub(crate) struct BufferChange {
    pub(crate) before: Option<Arc<CompactionBuffer>>,
    pub(crate) after: Option<Arc<CompactionBuffer>>,
}

impl BufferChange {
    /// Whether `buffer` is still the one that is to be replaced.
    fn fits(&self, buffer: Option<&Arc<CompactionBuffer>>) -> bool {
        match (&self.before, buffer) {
            (Some(before), Some(buffer)) => Arc::ptr_eq(before, buffer),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        }
    }
}

/// A sealed memtable: it takes no more entries.
#[derive(Clone, Debug)]
pub(crate) struct Sealed {
    pub(crate) memtable: Arc<Memtable>,
    /// Sequence number of the newest entry of the whole store when the memtable was sealed: the end of a batch. Once
    /// the memtable is in tables, a crash must keep everything up to here, in all keyspaces.
    pub(crate) upto: Seq,
}

impl View {
    /// The memtables, newest first.
    pub(crate) fn memtables(&self) -> impl Iterator<Item = &Arc<Memtable>> {
        std::iter::once(&self.active).chain(self.sealed.iter().map(|sealed| &sealed.memtable))
    }

    /// What is kept of the tables that came into `level`, if anything is.
    #[inline]
    pub(crate) fn buffer_of(&self, level: u8) -> Option<&BufferList> {
        let list = self.buffer.as_ref()?.list(level);
        (!list.is_empty()).then_some(list)
    }

    /// Bytes in sealed memtables.
    pub(crate) fn sealed_bytes(&self) -> u64 {
        self.sealed.iter().map(|sealed| sealed.memtable.bytes()).sum()
    }
}

/// A new, empty memtable with memory from `chunks`, for keys most of which begin with `prefix`.
pub(crate) fn new_memtable(chunks: &Arc<ChunkPool>, prefix: &[u8]) -> Arc<Memtable> {
    Arc::new(Memtable::new(ARENA_BYTES, chunks, prefix))
}

/// The prefix that all keys of `version`, and of `memtable`, share.
pub(crate) fn common_prefix(version: &Version, memtable: Option<&Memtable>) -> Vec<u8> {
    let runs = version.runs().map(|(_, run)| run);
    let ends = runs.filter_map(|run| Some((&*run.first()?.range.start, run.last()?.range.end.as_bytes())));
    let mut keys = ends.chain(memtable.and_then(Memtable::ends)).flat_map(|(first, last)| [first, last]);
    let first = keys.next().unwrap_or_default();
    let shared = |key: &[u8]| first.iter().zip(key).take_while(|(a, b)| a == b).count();
    let length = keys.map(shared).min().unwrap_or(0);
    first[..length].to_vec()
}

impl Tree {
    pub(crate) fn new(record: KeyspaceRecord, chunks: Arc<ChunkPool>, view: View) -> Self {
        let view = ArcSwap::from_pointee(view);
        Self {
            ttl: AtomicTtl::new(record.ttl),
            record,
            chunks,
            view,
            dropped: AtomicBool::new(false),
            range_deletes: RangeDeletes::default(),
            read_debt: ReadDebt::default(),
            collecting: Collecting::default(),
            overwrite_ratio: OverwriteRatio::default(),
            fitting_prefix: FittingPrefix::default(),
            put_off_until: AtomicU64::new(0),
            changes: OnceLock::new(),
            marks: Marks::default(),
        }
    }

    pub(crate) fn id(&self) -> KeyspaceId {
        self.record.id
    }

    /// From now on `changes` is told of changes. Called once the tree is in the list of keyspaces.
    pub(in crate::engine) fn tell(&self, changes: &Arc<Changes>) {
        // Once for each tree.
        let _ = self.changes.set(changes.clone());
        self.changed();
    }

    /// The version, the sealed memtables, or something that plans rest on has changed.
    pub(in crate::engine) fn changed(&self) {
        self.grown();
        self.changed_for(Watcher::Plans);
    }

    /// The active memtable has grown.
    pub(in crate::engine) fn grown(&self) {
        self.changed_for(Watcher::Load);
    }

    fn changed_for(&self, watcher: Watcher) {
        if let Some(changes) = self.changes.get() {
            changes.note(watcher, self.id(), &self.marks);
        }
    }

    /// The current view, for the time of a lookup.
    pub(crate) fn view(&self) -> Guard<Arc<View>> {
        before_look();
        self.view.load()
    }

    /// The current view, to keep.
    pub(crate) fn view_arc(&self) -> Arc<View> {
        before_look();
        self.view.load_full()
    }

    /// Seals the active memtable, whose newest possible entry is `upto`, and puts an empty one in its place. Returns
    /// the sealed one, to be flushed; `None` if it is empty. Only the holder of the writer's lock calls this, so
    /// nobody is inserting.
    pub(crate) fn seal(&self, upto: Seq) -> Option<Sealed> {
        let memtable = self.view.load().active.clone();
        if memtable.is_empty() {
            return None;
        }
        let prefix = common_prefix(&self.view.load().version, Some(&memtable));
        let (sealed, fresh) = (Sealed { memtable, upto }, new_memtable(&self.chunks, &prefix));
        self.view.rcu(|view| View {
            active: fresh.clone(),
            sealed: std::iter::once(&sealed).chain(&view.sealed).cloned().collect(),
            version: view.version.clone(),
            buffer: view.buffer.clone(),
            dead: view.dead.clone(),
        });
        // Nobody has a number for the new memtable yet.
        self.view.load().dead.begin_generation();
        self.grown();
        Some(sealed)
    }

    /// Publishes the result of a job: a view with the new version, and without the memtable that was flushed, if any. If the
    /// compaction buffer has changed since `buffer` was made, nothing is kept.
    pub(crate) fn publish(
        &self,
        version: &Arc<Version>,
        flushed: Option<&Arc<Memtable>>,
        buffer: &BufferChange,
    ) {
        let waits = |sealed: &&Sealed| flushed.is_none_or(|flushed| !Arc::ptr_eq(&sealed.memtable, flushed));
        let before = self.view.rcu(|view| View {
            active: view.active.clone(),
            sealed: view.sealed.iter().filter(waits).cloned().collect(),
            version: version.clone(),
            buffer: buffer.after.clone().filter(|_| buffer.fits(view.buffer.as_ref())),
            dead: view.dead.clone(),
        });
        let (before, runs) = (before.version.level(0).runs.len(), version.level(0).runs.len());
        // The read debt is kept per run. It is spread when runs come, so that flushes do not end a read-triggered
        // compaction, which goes on section by section until level 0 is empty.
        if runs > before || runs == 0 {
            self.read_debt.share(before, runs);
        }
        self.changed();
    }

    /// Publishes another compaction buffer, unless it has changed since `change` was made. Returns whether it did.
    pub(crate) fn replace_buffer(&self, change: &BufferChange) -> bool {
        let before = self.view.rcu(|view| {
            let buffer = if change.fits(view.buffer.as_ref()) { &change.after } else { &view.buffer };
            View {
                active: view.active.clone(),
                sealed: view.sealed.clone(),
                version: view.version.clone(),
                buffer: buffer.clone(),
                dead: view.dead.clone(),
            }
        });
        change.fits(before.buffer.as_ref())
    }

    /// Keeps nothing of what compactions have replaced. Returns what has changed.
    pub(crate) fn drop_buffer(&self) -> BufferChange {
        let before = self.view().buffer.clone();
        let change = BufferChange { before, after: None };
        // If a job has ended meanwhile, what it has kept stays, for whoever asks again.
        let has_some = change.before.as_ref().is_some_and(|buffer| !buffer.is_empty());
        if has_some && self.replace_buffer(&change) { change } else { BufferChange::default() }
    }

    /// The layout of this tree under `policy`.
    pub(in crate::engine) fn layout(&self, policy: &PolicyConfig) -> Layout {
        policy.layout.for_mix(self.overwrite_ratio.share())
    }

    /// Fails once the keyspace is dropped. Call it after taking a view: a view that is empty because of the drop is
    /// published after the mark.
    pub(crate) fn check_exists(&self) -> Result<()> {
        if self.dropped.load(Ordering::Acquire) { Err(dropped()) } else { Ok(()) }
    }

    /// Marks the keyspace as dropped: from now on it is not found.
    pub(crate) fn mark_dropped(&self) {
        self.dropped.store(true, Ordering::Release);
    }

    /// Releases all memtables and tables, once the keyspace is marked as dropped. Iterators go on with the views that
    /// they hold.
    pub(crate) fn clear(&self) {
        let version = Arc::new(Version::empty());
        self.view.store(Arc::new(View {
            active: new_memtable(&self.chunks, b""),
            sealed: Vec::new(),
            version,
            buffer: None,
            dead: Arc::default(),
        }));
    }

    /// Of the sealed memtable that is flushed next, the sequence number of its oldest entry, and its bytes.
    pub(crate) fn next_sealed(&self) -> Option<(Seq, u64)> {
        let view = self.view();
        let memtable = &view.sealed.last()?.memtable;
        Some((memtable.min_seq()?, memtable.bytes()))
    }

    /// Sequence number of the oldest entry that is in no table, the memtable `except` left out.
    pub(crate) fn first_unflushed(&self, except: Option<&Arc<Memtable>>) -> Option<Seq> {
        let view = self.view();
        let counts = |memtable: &&Arc<Memtable>| except.is_none_or(|except| !Arc::ptr_eq(memtable, except));
        view.memtables().filter(counts).filter_map(|memtable| memtable.min_seq()).min()
    }

    /// An estimate of the keys that have a value, as if every tombstone in a table hid an entry, and every
    /// other entry were a key of its own.
    pub(crate) fn approximate_len(&self) -> u64 {
        let view = self.view();
        let runs = || view.version.runs().map(|(_, run)| run);
        let entries =
            view.memtables().map(|memtable| memtable.entries()).chain(runs().map(|run| run.entries()));
        entries.sum::<u64>().saturating_sub(2 * runs().map(|run| run.tombstones()).sum::<u64>())
    }

    /// An estimate of the bytes that `range` takes in tables, values that lie apart included: a table that reaches over an
    /// end of it counts by half.
    pub(crate) fn approximate_bytes(&self, range: &KeyRange) -> u64 {
        let view = self.view();
        let within = |table: &TableMeta| table.range.start >= range.start && table.range.end <= range.end;
        let share = |table: &Arc<TableMeta>| {
            let bytes = table.bytes() + table.values.bytes;
            if within(table) { bytes } else { bytes / 2 }
        };
        view.version.runs().flat_map(|(_, run)| run.overlapping(range)).map(share).sum()
    }
}

/// The error for calls on a dropped keyspace.
pub(crate) fn dropped() -> Error {
    Error::new(ErrorKind::NotFound, "the keyspace was dropped")
}
