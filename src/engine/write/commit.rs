//! Commit: the way of a batch into the log and the memtables.
//!
//! 1. Under the writer's lock: wait for room, take sequence numbers, append the batch to the log. Nowhere else is a
//!    caller made to wait on purpose. Where the budget of space has no room, the writer makes room without the lock, and
//!    begins anew.
//! 2. Without the lock: insert the entries into the memtables. (Range tombstones go in already in step 1, because they
//!    must enter one by one, in the order of their numbers.)
//! 3. For a synced write: sync the log. One writer syncs for all that have appended by then; those that come during a
//!    sync share the next one.
//! 4. Publish: batches become visible in the order of their numbers ([`Visibility`](crate::engine::shared::visibility::Visibility)).
//!
//! # Invariants
//!
//! * The operating system has a batch's log bytes before any entry is visible. The log is synced before a synced
//!   write becomes visible and returns.
//! * A failed append leaves nothing behind (see [`crate::store::wal`]). A failed sync poisons the store.
//! * Whoever seals a memtable, or asks from where the log is needed, holds the writer's lock and waits until every
//!   numbered write is visible ([`WritePath::wait_all_visible`]). So a sealed memtable has all its entries, and no later
//!   reader reads at a number below them. The wait ends, because a writer in step 3 needs neither the writer's lock
//!   nor anything that waits for it.
//!
//! It touches what [`WritePath`] holds: the log, the memtables and the writer's lock.

use std::cmp::Reverse;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::fence;
use std::time::Duration;

use super::conflict::{Guarded, Standing};
use super::path::WritePath;
use crate::batch::WriteBatch;
use crate::engine::jobs::flush::{GROUP_MIN, SMALL_BYTES};
use crate::engine::keyspace::Trees;
use crate::engine::keyspace::tree::{Tree, dropped};
use crate::engine::log::writer::Writer;
use crate::engine::shared::pressure::StallReason;
use crate::engine::shared::wake::BackgroundThreads;
use crate::env::sync::{Condvar, MutexGuard, OrderedMutex, before_look};
use crate::error::{Error, ErrorKind, Result};
use crate::format::batch::Action;
use crate::options::Durability;
use crate::policy::{self, Slowdown, WriterVerdict};
use crate::store::memtable::{Memtable, RANGE_TOMBSTONE_BYTES};
use crate::store::wal::{Durable, LogBatch};
use crate::types::{KeyRange, RangeTombstone, Seq, UpperBound};

/// What an entry takes in a memtable besides key and value, in bytes, about.
const ENTRY_OVERHEAD_BYTES: u64 = 60;

/// Waits shorter than this are added up before a writer sleeps.
const SLEEP_MIN: Duration = Duration::from_micros(200);

/// The longest single sleep of a writer that is slowed down.
const SLEEP_MAX: Duration = Duration::from_millis(10);

/// Writers that want the log durable; one syncs for all that have appended by then.
#[derive(Debug)]
pub(crate) struct SyncGroup {
    log: Arc<Durable>,
    state: OrderedMutex<SyncState>,
    done: Condvar,
}

#[derive(Debug)]
struct SyncState {
    durable: Seq,
    running: bool,
}

impl SyncGroup {
    pub(crate) fn new(log: Arc<Durable>) -> Self {
        let state = OrderedMutex::leaf(SyncState { durable: Seq::ZERO, running: false });
        Self { log, state, done: Condvar::new() }
    }

    /// How much of the log is durable.
    pub(in crate::engine) fn log(&self) -> &Arc<Durable> {
        &self.log
    }
}

/// The numbers of a batch's operations, and the keyspaces as they were when it got them.
struct Numbered {
    first: Seq,
    last: Seq,
    trees: Arc<Trees>,
}

/// What has become of a batch under the writer's lock.
enum Appended {
    /// It is in the log.
    Numbered(Numbered),
    /// Its condition stands in the way.
    Conditional(Standing),
    /// The budget of space has no room for it.
    ShortOfSpace,
}

impl WritePath {
    /// Applies `batch` atomically. Returns the number of its last operation, or of the newest one in the log if the
    /// batch is empty.
    pub(crate) fn commit(&self, batch: &WriteBatch, durability: Durability) -> Result<Seq> {
        let unconditional =
            |_| Error::new(ErrorKind::Conflict, "a write without a condition was held to one");
        self.try_commit(batch, durability, None)?.map_err(unconditional)
    }

    /// Applies `batch` atomically if there is no condition, or if it holds at that moment. Otherwise returns how the
    /// condition stands. Returns the number as [`WritePath::commit`] does.
    pub(in crate::engine) fn try_commit(
        &self,
        batch: &WriteBatch,
        durability: Durability,
        guarded: Option<Guarded<'_>>,
    ) -> Result<Result<Seq, Standing>> {
        batch.validate()?;
        self.health.check_writable()?;
        let writer = self.writer()?;
        self.background.check_reserve(batch)?;
        if batch.is_empty() {
            self.find_trees(batch)?;
            if durability == Durability::Synced {
                self.sync()?;
            }
            return Ok(Ok(self.logged()));
        }
        let timestamped = self.clock.timestamped(&self.trees.load(), batch)?;
        let batch = timestamped.as_ref().unwrap_or(batch);
        let Numbered { first, last, trees } = loop {
            let appended = self.append(&mut writer.lock(), batch, guarded)?;
            match appended {
                Appended::Numbered(numbered) => break numbered,
                Appended::Conditional(standing) => return Ok(Err(standing)),
                // It comes to an end: room that is made and gone again was taken by a writer who got on.
                Appended::ShortOfSpace => self.background.make_space(batch)?,
            }
        };
        insert(&trees, batch, first, Memtable::apply_entry);
        if self.settle(&trees, batch) {
            self.background.scheduler.wake();
        }
        if durability == Durability::Synced {
            self.sync_upto(last).inspect_err(|_| self.background.wake_writers())?;
        }
        self.visibility.publish(first, last).map_err(|_| self.health.gave_up())?;
        if batch.range_deletes() > 0 && note_range_deletes(&trees, batch, first) {
            self.background.jobs.snapshots.mark_below(last);
            self.background.scheduler.wake();
        }
        self.statistics.user_write(batch.count(), batch.user_bytes());
        Ok(Ok(last))
    }

    /// Takes the keys whose values `batch` has put into memtables out of the dead ranges, and tells memtables of the time, before the batch becomes visible. Returns
    /// whether a memtable has got many more tombstones, for which idle time may have use.
    fn settle(&self, trees: &Trees, batch: &WriteBatch) -> bool {
        let mut has_many = false;
        // See the invariants of `DeadRanges`: between the insertion and this look at the ranges.
        fence(SeqCst);
        before_look();
        let mut any_dead = false;
        for tree in batch.keyspaces().iter().filter_map(|id| trees.get(id)) {
            let view = tree.view();
            any_dead |= view.dead.any();
            if tree.record.ttl.is_some() && !planted!("memtable-taken-for-older-than-it-is") {
                view.active.note_written(self.clock.seen());
            }
            if let Some(deleted) = view.active.take_many_deleted() {
                self.background.deleted.note(tree.id(), deleted);
                tree.changed();
                has_many = true;
            }
        }
        if any_dead {
            revive(trees, batch);
        }
        has_many
    }

    /// Number of the newest operation in the log.
    pub(in crate::engine) fn logged(&self) -> Seq {
        self.syncs.as_ref().map_or(Seq::ZERO, |syncs| syncs.log.appended())
    }

    /// Waits for room for a batch, numbers it and puts it into the log, unless its condition or the budget of space
    /// stands in the way.
    fn append(
        &self,
        guard: &mut MutexGuard<'_, Writer>,
        batch: &WriteBatch,
        guarded: Option<Guarded<'_>>,
    ) -> Result<Appended> {
        let delayed = self.make_room(guard, batch.bytes() as u64)?;
        if !self.background.has_space(guard, batch) {
            return Ok(Appended::ShortOfSpace);
        }
        // Keyspaces come and go under this lock.
        let trees = self.find_trees(batch)?;
        if let Some(guarded) = guarded {
            // Nothing gets a number between this and the batch.
            match self.standing(guard, &trees, guarded)? {
                Standing::Holds => {}
                standing => return Ok(Appended::Conditional(standing)),
            }
        }
        if let Some(slowdown) = delayed {
            self.pressure.owe(batch.bytes() as u64, slowdown);
        }
        let writer = &mut **guard;
        let (first, count) = (writer.last_seq.plus(1), batch.count());
        let log = || LogBatch { first, count, ops: batch.encoded() };
        self.storage.with_space_for_log(|| writer.wal.append(std::iter::once(log()))).map_err(|error| {
            match error.kind() {
                // The next append goes to the same place; nothing is unknown.
                ErrorKind::DiskFull if !planted!("full-disk-poisons") => error,
                _ => self.alarm.poison(error),
            }
        })?;
        writer.recent.note(batch, first);
        writer.last_seq = writer.last_seq.plus(count.into());
        writer.active_bytes += batch.user_bytes()
            + ENTRY_OVERHEAD_BYTES * u64::from(count)
            + RANGE_TOMBSTONE_BYTES * u64::from(batch.range_deletes());
        if batch.range_deletes() > 0 {
            // Under the lock: they enter a memtable one by one, in the order of their numbers.
            insert(&trees, batch, first, Memtable::apply_range);
        }
        Ok(Appended::Numbered(Numbered { first, last: writer.last_seq, trees }))
    }

    /// The keyspaces that exist. Fails if one of the batch's is not among them.
    fn find_trees(&self, batch: &WriteBatch) -> Result<Arc<Trees>> {
        let trees = self.trees();
        let known = batch.keyspaces().iter().all(|id| trees.contains_key(id));
        if known { Ok(trees) } else { Err(dropped()) }
    }

    /// Waits until every write that has a number is visible. That stays so while the caller holds the writer's lock.
    pub(crate) fn wait_all_visible(&self, writer: &Writer) -> Result<()> {
        self.wait_visible(writer.last_seq)
    }

    /// Waits until everything up to `seq` is visible. Its writers need no lock for that.
    pub(in crate::engine) fn wait_visible(&self, seq: Seq) -> Result<()> {
        self.visibility.wait_for(seq).map_err(|_| self.health.gave_up())
    }

    /// Makes everything acknowledged so far survive a power cut.
    pub(crate) fn sync(&self) -> Result<()> {
        self.writer()?;
        self.health.check_writable()?;
        match &self.syncs {
            Some(_) => self.sync_upto(self.logged()).inspect_err(|_| self.background.wake_writers()),
            None => Ok(()),
        }
    }

    /// Makes the log durable up to the operation `seq`, which has been appended.
    pub(in crate::engine) fn sync_upto(&self, seq: Seq) -> Result<()> {
        let Some(syncs) = &self.syncs else { return Ok(()) };
        syncs.log.await_syncs();
        let mut state = syncs.state.lock();
        while state.durable < seq {
            // A write that has its number goes on though the store is being closed: others wait for it.
            self.health.check_sound()?;
            if state.running {
                syncs.done.wait(&mut state);
                continue;
            }
            state.running = true;
            drop(state);
            // Read before the sync: this much is with the operating system.
            let upto = syncs.log.appended();
            let poison = |error| {
                if planted!("failed-sync-does-not-poison") { error } else { self.alarm.poison(error) }
            };
            let result = syncs.log.sync().map_err(poison);
            let upto = if planted!("sync-credited-with-later-writes") { syncs.log.appended() } else { upto };
            if result.is_ok() {
                self.tickets.credit(upto);
            }
            state = syncs.state.lock();
            state.running = false;
            if result.is_ok() {
                state.durable = state.durable.max(upto);
            }
            syncs.done.notify_all();
            result?;
        }
        Ok(())
    }

    /// Seals what is full, and waits until the memtables may take a batch of `bytes` more. Returns the rate that
    /// writers are allowed, in bytes per second, if they are slowed.
    pub(in crate::engine) fn make_room(
        &self,
        guard: &mut MutexGuard<'_, Writer>,
        bytes: u64,
    ) -> Result<Option<Slowdown>> {
        let mut crowding = false;
        let result = self.wait_for_room(guard, bytes, &mut crowding);
        if crowding {
            guard.crowding -= 1;
            self.pressure.wake();
        }
        result
    }

    /// Waits as `make_room` says. A writer counts as crowding while it waits for flushes because its batch has no room
    /// beside the memtables. Others do not overtake it, or it might wait for ever. `make_room` takes the count back.
    fn wait_for_room(
        &self,
        guard: &mut MutexGuard<'_, Writer>,
        bytes: u64,
        crowding: &mut bool,
    ) -> Result<Option<Slowdown>> {
        let mut stalled: Option<(StallReason, Duration)> = None;
        let mut has_slept = false;
        let result = loop {
            if let Err(error) = self.health.check_writable() {
                break Err(error);
            }
            if guard.holds > 0 {
                self.notify_stall(guard, Some((StallReason::Ingest, true)));
                self.wait_because(StallReason::Ingest, &mut stalled, guard);
                continue;
            }
            if !*crowding && guard.crowding > 0 {
                self.wait_because(policy::Pressure::Memtables.into(), &mut stalled, guard);
                continue;
            }
            if let Err(error) = self.seal_full(guard, bytes) {
                break Err(error);
            }
            let crowds = self.crowds(guard.active_bytes, bytes);
            if crowds && !*crowding {
                (*crowding, guard.crowding) = (true, guard.crowding + 1);
            }
            let verdict = if crowds {
                WriterVerdict::Stop { reason: policy::Pressure::Memtables }
            } else {
                self.writer_verdict(guard.active_bytes)
            };
            let pressed = verdict.pressed().map(|(reason, stopped)| (reason.into(), stopped));
            self.notify_stall(guard, pressed);
            match verdict {
                WriterVerdict::Go => break Ok(None),
                WriterVerdict::Delay { slowdown, reason } => {
                    // Others had the lock meanwhile.
                    if !has_slept && self.delay(slowdown, reason.into(), guard) {
                        has_slept = true;
                        continue;
                    }
                    break Ok(Some(slowdown));
                }
                WriterVerdict::Stop { reason } => {
                    // The job that would end the wait has failed lately: an error is better than a wait without end.
                    if let Some(trouble) = self.trouble(reason, guard.active_bytes) {
                        break Err(trouble);
                    }
                    self.wait_because(reason.into(), &mut stalled, guard);
                }
            }
        };
        self.stall_ended(stalled);
        result
    }

    /// Tells the listener of a stall that begins, changes or ends.
    fn notify_stall(&self, writer: &mut Writer, now: Option<(StallReason, bool)>) {
        self.events.notify_stall(&*self.env, &mut writer.notified_stall, now);
    }

    /// Waits for a change. `stalled` holds the reason for which the writer waits, and since when.
    fn wait_because(
        &self,
        reason: StallReason,
        stalled: &mut Option<(StallReason, Duration)>,
        guard: &mut MutexGuard<'_, Writer>,
    ) {
        if stalled.is_none_or(|(before, _)| before != reason) {
            self.stall_ended(stalled.replace((reason, self.env.now())));
        }
        self.pressure.wait_for_change(guard);
    }

    fn stall_ended(&self, stalled: Option<(StallReason, Duration)>) {
        if let Some((reason, since)) = stalled {
            self.statistics.stall(reason, self.env.now().saturating_sub(since));
        }
    }

    /// Delays a writer by what earlier writes owe. Returns whether it has released the lock meanwhile.
    ///
    /// Where all writers share a rate, those that wait for the lock are delayed as well; writers that are slower than the rate
    /// owe nothing, since the time between two writes counts. Where each write costs its time, the writer sleeps without the lock:
    /// such sleeps come one after the other, and the flush that would end them needs the lock, too.
    fn delay(&self, slowdown: Slowdown, reason: StallReason, guard: &mut MutexGuard<'_, Writer>) -> bool {
        let start = self.env.now();
        let releases = match slowdown {
            Slowdown::BytesPerSecond(_) => {
                self.pressure.serve(start);
                false
            }
            Slowdown::PerWrite(_) => {
                self.pressure.forget_time(start);
                true
            }
        };
        let owed = self.pressure.owed();
        if owed < SLEEP_MIN {
            return false;
        }
        let sleep = owed.min(SLEEP_MAX);
        if releases {
            self.pressure.sleep_unless_changed(guard, sleep);
        } else {
            self.pressure.while_waiting(|| self.env.sleep(sleep));
        }
        let now = self.env.now();
        self.pressure.serve(now);
        self.statistics.stall(reason, now.saturating_sub(start));
        releases
    }

    /// Seals memtables that exceed their budget, or that leave no room for a batch of `bytes`. Ends the log's segment
    /// where that helps to release it.
    fn seal_full(&self, writer: &mut Writer, bytes: u64) -> Result<()> {
        let settings = self.settings.load();
        let crowded = self.crowds(writer.active_bytes, bytes);
        if crowded {
            // Then the exact bytes are known: no estimate counts any more, and nothing of a dropped keyspace.
            self.wait_all_visible(writer)?;
            writer.active_bytes = self.active_bytes();
        }
        let full = writer.active_bytes >= settings.limits.memtable_bytes || crowded;
        let long = writer.wal.bytes() > settings.options.wal_bytes_max;
        if (full || long) && self.pressure.load().sealed_memtables < settings.limits.sealed_max {
            if !planted!("sealed-before-its-writes-are-in") {
                self.wait_all_visible(writer)?;
            }
            let trees = if full { self.largest() } else { self.holding_the_log_back(writer.last_seq) };
            if !trees.is_empty() {
                self.seal(writer, trees.iter().map(Arc::as_ref))?;
            }
        }
        if writer.wal.current_bytes() >= settings.limits.segment_bytes {
            self.roll(writer)?;
        }
        Ok(())
    }

    /// The tree with the largest memtable. If that is a small part of all, then those with the next ones as well, until
    /// they hold half of all together: they are flushed together.
    fn largest(&self) -> Vec<Arc<Tree>> {
        let trees = self.trees.load();
        let bytes = |tree: &Arc<Tree>| tree.view().active.bytes();
        let Some(largest) = trees.values().max_by_key(|tree| bytes(tree)) else { return Vec::new() };
        let mut left = self.active_bytes() / 2;
        if bytes(largest) >= left / 2 {
            return vec![largest.clone()];
        }
        let mut sizes: Vec<_> = trees.values().map(|tree| (bytes(tree), tree)).collect();
        sizes.sort_by_key(|(bytes, _)| Reverse(*bytes));
        let fills = |(bytes, _): &&(u64, _)| {
            let has_room = left > 0;
            left = left.saturating_sub(*bytes);
            has_room
        };
        sizes.iter().take_while(fills).map(|(_, tree)| Arc::clone(tree)).collect()
    }

    /// The tree with the oldest entry, which holds the log back. If its memtable is small, then all with small ones that
    /// would be next before the log is half as long: they are flushed together.
    fn holding_the_log_back(&self, last: Seq) -> Vec<Arc<Tree>> {
        let trees = self.trees.load();
        let waiting = trees.values().filter(|tree| tree.view().sealed.is_empty());
        let firsts: Vec<_> = waiting.filter_map(|tree| Some((tree.first_unflushed(None)?, tree))).collect();
        let Some((first, oldest)) = firsts.iter().min_by_key(|(first, _)| *first) else { return Vec::new() };
        let is_small = |tree: &Arc<Tree>| tree.view().active.bytes() < SMALL_BYTES;
        let half = Seq(first.0 + last.0.saturating_sub(first.0) / 2);
        let next = firsts.iter().filter(|(first, tree)| *first <= half && is_small(tree));
        let mut trees: Vec<_> = next.map(|(_, tree)| Arc::clone(tree)).collect();
        if !is_small(oldest) || trees.len() < GROUP_MIN {
            trees = vec![Arc::clone(oldest)];
        }
        trees
    }

    /// Seals the memtables of `trees`, so that they are flushed. REQUIRES: every numbered write is visible.
    pub(in crate::engine) fn seal<'a>(
        &self,
        writer: &mut Writer,
        trees: impl Iterator<Item = &'a Tree>,
    ) -> Result<()> {
        assert!(
            self.visibility.newest() == writer.last_seq,
            "I16: a memtable is sealed without all its writes"
        );
        if writer.wal.current_bytes() >= self.settings.load().limits.segment_bytes / 4 {
            self.roll(writer)?;
        }
        if trees.filter(|tree| tree.seal(writer.last_seq).is_some()).count() > 0 {
            writer.active_bytes = self.active_bytes();
            self.background.sample_load();
            self.background.scheduler.wake();
        }
        Ok(())
    }

    fn roll(&self, writer: &mut Writer) -> Result<()> {
        self.storage.with_space(|| writer.wal.roll()).map_err(|error| match error.kind() {
            ErrorKind::DiskFull => error,
            _ => self.alarm.poison(error),
        })?;
        self.ids.segments_used(writer.wal.next_id());
        self.preallocator.ask();
        Ok(())
    }

    /// Bytes that the active memtables hold.
    pub(in crate::engine) fn active_bytes(&self) -> u64 {
        self.background.active_bytes()
    }

    /// Seals every memtable, so that it is flushed.
    pub(crate) fn seal_all(&self) -> Result<()> {
        let mut writer = self.writer()?.lock();
        self.health.check_writable()?;
        self.wait_all_visible(&writer)?;
        let trees = self.trees.load();
        if trees.values().any(|tree| !tree.view().active.is_empty()) {
            // The segment ends with its memtables, so that it can be released with them.
            self.roll(&mut writer)?;
        }
        self.seal(&mut writer, trees.values().map(Arc::as_ref))
    }
}

/// Notes the range deletes of `batch` that hide whole tables. Returns whether there is one.
fn note_range_deletes(trees: &Trees, batch: &WriteBatch, first: Seq) -> bool {
    let mut noted = false;
    for (op, seq) in batch.iter().zip(first.0..) {
        if let (Action::DeleteRange { start, end }, Some(tree)) = (op.action, trees.get(&op.keyspace)) {
            let range = KeyRange::half_open(start, UpperBound::from_bytes(end));
            if tree.range_deletes.note(RangeTombstone { range, seq: Seq(seq) }, &tree.view()) {
                tree.changed();
                noted = true;
            }
        }
    }
    noted
}

/// Takes the keys whose values `batch` has put into memtables out of the dead ranges.
fn revive(trees: &Trees, batch: &WriteBatch) {
    let mut last = None;
    for op in batch.iter() {
        let Action::Put { key, .. } = op.action else { continue };
        if last.as_ref().is_none_or(|(id, _)| *id != op.keyspace) {
            last = trees.get(&op.keyspace).map(|tree| (op.keyspace, tree.view()));
        }
        if let Some((_, view)) = last.as_ref().filter(|(_, view)| view.dead.any()) {
            view.dead.revive(key);
        }
    }
}

/// Inserts into the memtables those operations of a batch that `apply` takes, numbered from `first` on. No such
/// memtable is sealed before the batch is visible.
fn insert(trees: &Trees, batch: &WriteBatch, first: Seq, apply: impl Fn(&Memtable, Seq, &Action<'_>)) {
    let mut last = None;
    for (op, seq) in batch.iter().zip(first.0..) {
        let stale = last.as_ref().is_none_or(|(id, _)| *id != op.keyspace);
        if stale {
            last = trees.get(&op.keyspace).map(|tree| (op.keyspace, tree.view()));
        }
        if let Some((_, view)) = &last {
            apply(&view.active, Seq(seq), &op.action);
        }
    }
    batch.keyspaces().iter().filter_map(|id| trees.get(id)).for_each(|tree| tree.grown());
}
