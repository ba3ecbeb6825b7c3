//! A write's way into the log and the memtables.
//!
//! Writers queue. The one in front leads a group: it makes room (the only place where a write is made to wait),
//! appends the group to the log in one system call, syncs once if any of the group asks for it, and puts the entries
//! into the memtables, with the help of the others where there is much to insert. Then the group becomes visible as a
//! whole and the next leader goes on.
//!
//! Durable before what: log bytes are with the operating system before any entry is visible, and synced before a
//! synced writer returns. A failed append leaves nothing behind (see [`crate::store::wal`]); a failed sync poisons the
//! store.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::pressure::StallReason;
use super::scheduler::Job;
use super::tree::{Tree, dropped};
use super::{Engine, Trees, Writer};
use crate::batch::WriteBatch;
use crate::env::sync::{Condvar, Mutex, MutexGuard};
use crate::error::{ErrorKind, Result};
use crate::options::Durability;
use crate::policy::{self, WriterVerdict};
use crate::store::wal::LogBatch;
use crate::types::{Seq, Stamp};

/// A group takes in writers up to this many bytes.
const GROUP_BYTES_MAX: usize = 1 << 20;

/// Followers insert their own entries when the group holds more than this: below, waking them costs more.
const PARALLEL_BYTES_MIN: usize = 64 * 1024;

/// Waits shorter than this are added up before the leader sleeps.
const SLEEP_MIN: Duration = Duration::from_micros(200);

/// The longest single sleep of a writer that is slowed down.
const SLEEP_MAX: Duration = Duration::from_millis(10);

/// Writers in the order of their arrival; the first one leads.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    waiting: Mutex<VecDeque<Arc<Ticket>>>,
}

/// A writer in the queue.
#[derive(Debug)]
struct Ticket {
    batch: WriteBatch,
    durability: Durability,
    phase: Mutex<Phase>,
    moved_on: Condvar,
}

/// How far a writer has come. Only its leader moves it on, except from `Insert`.
#[derive(Debug)]
enum Phase {
    Waiting,
    Lead,
    /// Insert your own entries, from this sequence number on, then count yourself off.
    Insert(Seq, Arc<Insertion>),
    Done(Result<()>),
}

/// A group's insertion that several threads share.
#[derive(Debug)]
struct Insertion {
    trees: Arc<Trees>,
    missing: AtomicUsize,
    lock: Mutex<()>,
    complete: Condvar,
}

impl Insertion {
    fn count_off(&self) {
        if self.missing.fetch_sub(1, Ordering::AcqRel) == 1 {
            drop(self.lock.lock());
            self.complete.notify_all();
        }
    }

    fn wait(&self) {
        let mut guard = self.lock.lock();
        while self.missing.load(Ordering::Acquire) > 0 {
            self.complete.wait(&mut guard);
        }
    }
}

impl Ticket {
    fn move_on(&self, phase: Phase) {
        *self.phase.lock() = phase;
        self.moved_on.notify_one();
    }
}

impl Engine {
    /// Applies `batch` atomically.
    pub(crate) fn commit(&self, batch: WriteBatch, durability: Durability) -> Result<()> {
        batch.validate()?;
        self.health.check_writable()?;
        let writer = self.writer()?;
        self.check_reserve(&batch)?;
        if let Some(error) = batch.keyspaces().iter().find_map(|&id| self.tree(id).err()) {
            return Err(error);
        }
        if batch.is_empty() {
            return if durability == Durability::Synced { self.sync() } else { Ok(()) };
        }
        let ticket = Arc::new(Ticket {
            batch,
            durability,
            phase: Mutex::new(Phase::Waiting),
            moved_on: Condvar::new(),
        });
        let first = {
            let mut waiting = self.queue.waiting.lock();
            waiting.push_back(ticket.clone());
            waiting.len() == 1
        };
        if !first && let Some(result) = self.follow(&ticket) {
            return result;
        }
        self.lead(writer)
    }

    /// Waits to be served; `None` when it is this writer's turn to lead.
    fn follow(&self, ticket: &Ticket) -> Option<Result<()>> {
        let mut phase = ticket.phase.lock();
        loop {
            match std::mem::replace(&mut *phase, Phase::Waiting) {
                Phase::Waiting => ticket.moved_on.wait(&mut phase),
                Phase::Lead => return None,
                Phase::Insert(first, insertion) => {
                    drop(phase);
                    insert(&insertion.trees, &ticket.batch, first);
                    insertion.count_off();
                    phase = ticket.phase.lock();
                }
                Phase::Done(result) => return Some(result),
            }
        }
    }

    /// Serves the first writers of the queue, this one among them, and hands the lead on.
    fn lead(&self, writer: &Mutex<Writer>) -> Result<()> {
        let mut guard = writer.lock();
        // Gathered after the wait for room, so that whoever came meanwhile is served, too.
        let result = self.make_room(&mut guard);
        let group = self.gather();
        if let Ok(Some(bytes_per_second)) = result {
            let bytes: usize = group.iter().map(|ticket| ticket.batch.bytes()).sum();
            self.pressure.owe(bytes as u64, bytes_per_second);
        }
        // A keyspace that was dropped since takes its writers along.
        let trees = self.trees();
        let alive = |ticket: &&Arc<Ticket>| ticket.batch.keyspaces().iter().all(|id| trees.contains_key(id));
        let served: Vec<_> = group.iter().filter(alive).cloned().collect();
        let result = result.and_then(|_| self.serve(&mut guard, &trees, &served));
        drop(guard);
        let outcome = |ticket: &Arc<Ticket>| if alive(&ticket) { result.clone() } else { Err(dropped()) };
        let next = {
            let mut waiting = self.queue.waiting.lock();
            waiting.drain(..group.len());
            waiting.front().cloned()
        };
        if let Some(next) = next {
            next.move_on(Phase::Lead);
        }
        for follower in &group[1..] {
            follower.move_on(Phase::Done(outcome(follower)));
        }
        outcome(&group[0])
    }

    /// The writers to serve together, the leader first. They stay in the queue until they are served.
    fn gather(&self) -> Vec<Arc<Ticket>> {
        let waiting = self.queue.waiting.lock();
        let mut bytes = 0;
        let fits = |ticket: &&Arc<Ticket>| {
            bytes += ticket.batch.bytes();
            bytes <= GROUP_BYTES_MAX
        };
        let leader = waiting.iter().take(1);
        leader.chain(waiting.iter().skip(1).take_while(fits)).cloned().collect()
    }

    fn serve(&self, writer: &mut Writer, trees: &Arc<Trees>, group: &[Arc<Ticket>]) -> Result<()> {
        if group.is_empty() {
            return Ok(());
        }
        let mut next = writer.last_seq.0 + 1;
        let mut firsts = Vec::with_capacity(group.len());
        for ticket in group {
            firsts.push(Seq(next));
            next += u64::from(ticket.batch.count());
        }
        let log = group.iter().zip(&firsts).map(|(ticket, &first)| LogBatch {
            first,
            count: ticket.batch.count(),
            ops: ticket.batch.encoded(),
        });
        writer.wal.append(log).map_err(|error| match error.kind() {
            // The next append goes to the same place; nothing is unknown.
            ErrorKind::DiskFull => {
                self.draw_on_reserve(&error);
                error
            }
            _ => self.poison(error),
        })?;
        if group.iter().any(|ticket| ticket.durability == Durability::Synced) {
            writer.wal.sync().map_err(|error| self.poison(error))?;
        }
        let touched: BTreeSet<_> = group.iter().flat_map(|ticket| ticket.batch.keyspaces()).collect();
        let touched: Vec<_> = touched.into_iter().filter_map(|id| trees.get(id)).collect();
        let bytes = || touched.iter().map(|tree| tree.view().active.bytes()).sum::<u64>();
        let before = bytes();
        self.insert_group(trees, group, &firsts);
        writer.active_bytes += bytes().saturating_sub(before);
        writer.last_seq = Seq(next - 1);
        self.visible.store(next - 1, Ordering::Release);
        Ok(())
    }

    fn insert_group(&self, trees: &Arc<Trees>, group: &[Arc<Ticket>], firsts: &[Seq]) {
        let bytes: usize = group.iter().map(|ticket| ticket.batch.bytes()).sum();
        if group.len() > 1 && bytes >= PARALLEL_BYTES_MIN {
            let insertion = Arc::new(Insertion {
                trees: trees.clone(),
                missing: AtomicUsize::new(group.len() - 1),
                lock: Mutex::new(()),
                complete: Condvar::new(),
            });
            for (ticket, &first) in group.iter().zip(firsts).skip(1) {
                ticket.move_on(Phase::Insert(first, insertion.clone()));
            }
            insert(trees, &group[0].batch, firsts[0]);
            insertion.wait();
        } else {
            for (ticket, &first) in group.iter().zip(firsts) {
                insert(trees, &ticket.batch, first);
            }
        }
        for ticket in group {
            self.tally.user_write(ticket.batch.count(), ticket.batch.user_bytes());
        }
    }

    /// Waits until the memtables may take more, sealing what is full. Returns the rate that writers are allowed, in bytes
    /// per second, if they are slowed down.
    fn make_room(&self, guard: &mut MutexGuard<'_, Writer>) -> Result<Option<u64>> {
        let mut stalled: Option<(StallReason, Duration)> = None;
        let result = loop {
            if let Err(error) = self.health.check_writable() {
                break Err(error);
            }
            if guard.holds > 0 {
                self.pressure.wait_for_change(guard);
                continue;
            }
            if let Err(error) = self.seal_full(guard) {
                break Err(error);
            }
            match self.writer_verdict(guard.active_bytes) {
                WriterVerdict::Go => break Ok(None),
                WriterVerdict::Delay { bytes_per_second, reason } => {
                    self.delay(reason.into());
                    break Ok(Some(bytes_per_second));
                }
                WriterVerdict::Stop { reason } => {
                    // What would end the wait has failed lately: better an error than a wait without end.
                    let job = if reason == policy::Pressure::Memtables { Job::Flush } else { Job::Merge };
                    if let Some(trouble) = self.trouble(job) {
                        break Err(trouble);
                    }
                    stalled.get_or_insert((reason.into(), self.env.now()));
                    self.pressure.wait_for_change(guard);
                }
            }
        };
        if let Some((reason, since)) = stalled {
            self.tally.stall(reason, self.env.now().saturating_sub(since));
        }
        result
    }

    /// Holds the leader, and the queue behind it, back for what earlier groups owe.
    fn delay(&self, reason: StallReason) {
        let owed = self.pressure.owed();
        if owed >= SLEEP_MIN {
            let start = self.env.now();
            self.env.sleep(owed.min(SLEEP_MAX));
            let slept = self.env.now().saturating_sub(start);
            self.pressure.paid(slept);
            self.tally.stall(reason, slept);
        }
    }

    /// Seals memtables beyond their budget and ends the log's segment where that helps to release it.
    fn seal_full(&self, writer: &mut Writer) -> Result<()> {
        let full = writer.active_bytes >= self.limits.memtable_bytes;
        let long = writer.wal.bytes() > self.options.wal_bytes_max;
        if (full || long) && self.pressure.load().sealed_memtables < self.limits.sealed_max {
            let trees = self.trees.load();
            let tree = if full {
                trees.values().max_by_key(|tree| tree.view().active.bytes())
            } else {
                // The keyspace with the oldest entry holds the log back.
                let waiting = trees.values().filter(|tree| tree.view().sealed.is_empty());
                let oldest = waiting.filter_map(|tree| Some((tree.first_unflushed(None)?, tree)));
                oldest.min_by_key(|(first, _)| *first).map(|(_, tree)| tree)
            };
            if let Some(tree) = tree {
                self.seal(writer, tree)?;
            }
        }
        if writer.wal.current_bytes() >= self.limits.segment_bytes {
            self.roll(writer)?;
        }
        Ok(())
    }

    /// Gives a tree's memtable up for flushing.
    pub(super) fn seal(&self, writer: &mut Writer, tree: &Tree) -> Result<()> {
        if writer.wal.current_bytes() >= self.limits.segment_bytes / 4 {
            self.roll(writer)?;
        }
        if let Some(sealed) = tree.seal(writer.last_seq) {
            writer.active_bytes = writer.active_bytes.saturating_sub(sealed.memtable.bytes());
            self.sample_load();
            self.scheduler.wake_flush();
        }
        Ok(())
    }

    fn roll(&self, writer: &mut Writer) -> Result<()> {
        writer.wal.roll().map_err(|error| match error.kind() {
            ErrorKind::DiskFull => error,
            _ => self.poison(error),
        })?;
        self.ids.segments_used(writer.wal.next_id());
        Ok(())
    }

    /// Makes everything acknowledged so far survive a power cut.
    pub(crate) fn sync(&self) -> Result<()> {
        let mut writer = self.writer()?.lock();
        self.health.check_writable()?;
        writer.wal.sync().map_err(|error| self.poison(error))
    }

    /// Gives every memtable up for flushing.
    pub(crate) fn seal_all(&self) -> Result<()> {
        let mut writer = self.writer()?.lock();
        self.health.check_writable()?;
        let trees = self.trees.load();
        if trees.values().any(|tree| !tree.view().active.is_empty()) {
            // The segment ends with the memtables that it fills, so that it goes with them.
            self.roll(&mut writer)?;
        }
        for tree in trees.values() {
            self.seal(&mut writer, tree)?;
        }
        Ok(())
    }
}

/// Puts a batch into the memtables, its operations numbered from `first` on.
fn insert(trees: &Trees, batch: &WriteBatch, first: Seq) {
    let mut last: Option<(&Arc<Tree>, Arc<super::tree::View>)> = None;
    for (op, seq) in batch.iter().zip(first.0..) {
        let stale = last.as_ref().is_none_or(|(tree, _)| tree.id() != op.keyspace);
        if stale {
            last = trees.get(&op.keyspace).map(|tree| (tree, tree.view_arc()));
        }
        if let Some((_, view)) = &last {
            view.active.insert(op.key, Stamp::new(Seq(seq), op.kind), op.value);
        }
    }
}
