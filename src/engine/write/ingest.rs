//! Ingest: sorted puts and deletes from outside go straight into tables, of one keyspace or of several at one moment.
//!
//! The tables are written first, while everything else goes on. Their sequence number is not known yet. So their
//! entries carry number 0, which stands for the largest number that the catalog has for the table. Where writers
//! would have to stop, an ingest waits too: its tables may become runs of level 0. Then, for a moment:
//!
//! 1. Compactions of the keyspaces end and none starts, because a compaction would take the new entries for visible
//!    to everybody. Keyspaces are held in the order of their ids, so that no two ingests wait for each other.
//! 2. Writers wait ([`WritePath::make_room`]) until the memtables of the keyspaces are
//!    flushed, because a memtable is newer than any table (I2).
//! 3. When every numbered write is visible, the log is synced: older writes must not be lost where the tables are
//!    kept (G3). The tables take the next number, the same for all keyspaces. One edit installs them, each in the
//!    deepest level such that nothing older lies in or above it in the table's range.
//! 4. The number becomes visible.
//!
//! The tables tell which keys they have, so that those of an older ingest of the same keys go unread
//! (`policy/hidden.rs`). They are cut where those were cut.
//!
//! An ingest cannot delete ranges: a range tombstone hides entries of its own number too, and an ingest has one
//! number.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crate::catalog::Run;
use crate::engine::jobs::compaction_iterator::Sink;
use crate::engine::jobs::context::JobContext;
use crate::engine::jobs::install::{Change, refused};
use crate::engine::jobs::output::{Finished, Output, Writing};
use crate::engine::keyspace::tree::Tree;
use crate::engine::schedule::background::Background;
use crate::engine::write::path::WritePath;
use crate::error::{Error, ErrorKind, Result};
use crate::format::edit::{TableRecord, TreeEdit};
use crate::policy::{CutState, CutView};
use crate::types::{Epoch, KEY_BYTES_MAX, KeyRange, Kind, Seq, Stamp, UpperBound, VALUE_BYTES_MAX};

/// Level and epoch that the tables are written for; they are given others when they are installed.
const UNPLACED: (u8, Epoch) = (0, Epoch(0));

/// Tables of an older run that are looked at for where a new table ends. It has more keys than all of these only if its values
/// are so many times smaller, and then it is cut by its size.
const TABLES_BESIDE: usize = 8;

/// Tables on their way into a keyspace. Dropping it removes them.
pub(crate) struct Ingestion {
    write: Arc<WritePath>,
    tree: Arc<Tree>,
    output: Output<Arc<JobContext>>,
    /// Where the current table ends; `None` before the first one.
    cutting: Option<CutState>,
    last_key: Option<Vec<u8>>,
    entries: u64,
    bytes: u64,
    counted: Counted,
    /// Why the tables are not whole.
    failed: Option<Error>,
}

/// Bytes of tables that are in no tree yet, as the space budget counts them.
struct Counted {
    background: Arc<Background>,
    bytes: u64,
}

impl Counted {
    fn add(&mut self, bytes: u64) {
        self.bytes += bytes;
        self.background.ingesting_bytes.fetch_add(bytes, Relaxed);
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.background.ingesting_bytes.fetch_sub(self.bytes, Relaxed);
    }
}

impl Ingestion {
    pub(crate) fn new(write: &Arc<WritePath>, tree: &Arc<Tree>) -> Result<Self> {
        write.writer()?;
        write.health.check_writable()?;
        tree.check_exists()?;
        let (level, epoch) = UNPLACED;
        let jobs = &write.background.jobs;
        let settings = jobs.table_settings(tree, level, epoch);
        let seed = key_seed(tree).unwrap_or_else(|| jobs.env.random());
        Ok(Self {
            write: write.clone(),
            tree: tree.clone(),
            output: Output::new(jobs.clone(), Writing::Ingest, settings).keyed(Some(seed)),
            cutting: None,
            last_key: None,
            entries: 0,
            bytes: 0,
            counted: Counted { background: write.background.clone(), bytes: 0 },
            failed: None,
        })
    }

    /// Appends an entry. One that is refused is left out; after any other failure the tables are lost.
    pub(crate) fn push(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        match self.tree.record.ttl {
            Some(_) => self.push_stored(key, &self.write.clock.timestamped_value(value)),
            None => self.push_stored(key, value),
        }
    }

    /// As [`Ingestion::push`], with a value that says when it was written, where values expire.
    pub(crate) fn push_stored(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.append(key, Kind::Put, value)
    }

    /// Appends a tombstone. As [`Ingestion::push`].
    pub(crate) fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.append(key, Kind::Delete, &[])
    }

    fn append(&mut self, key: &[u8], kind: Kind, value: &[u8]) -> Result<()> {
        self.failed.clone().map_or(Ok(()), Err)?;
        self.check(key, value)?;
        self.write.health.check_writable()?;
        self.write(key, kind, value).inspect_err(|error| self.failed = Some(error.clone()))?;
        let last = self.last_key.get_or_insert_default();
        last.clear();
        last.extend_from_slice(key);
        self.entries += 1;
        self.bytes += (key.len() + value.len()) as u64;
        Ok(())
    }

    fn check(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let refuse = |message: String| Err(Error::new(ErrorKind::InvalidInput, message));
        if key.len() > KEY_BYTES_MAX {
            return refuse(format!("a key of {} bytes is longer than {KEY_BYTES_MAX}", key.len()));
        }
        if value.len() > VALUE_BYTES_MAX {
            return refuse(format!("a value of {} bytes is longer than {VALUE_BYTES_MAX}", value.len()));
        }
        if self.last_key.as_deref().is_some_and(|last| key <= last) {
            return refuse("the key is not behind the one before".into());
        }
        Ok(())
    }

    fn write(&mut self, key: &[u8], kind: Kind, value: &[u8]) -> Result<()> {
        let bytes = self.output.table_bytes();
        let ends =
            self.cutting.as_mut().map(|cutting| cutting.cut(&CutView { output_bytes: bytes, next_key: key }));
        if ends != Some(false) {
            self.cutting = Some(cutting_from(&self.write, &self.tree, key));
        }
        if ends == Some(true) {
            self.output.cut(&UpperBound::Excluded(key.into()))?;
            self.counted.add(bytes);
            self.write.background.check_ingest(bytes)?;
        }
        self.output.add(key, Stamp::new(Seq::ZERO, kind), value, None)
    }

    /// Makes the entries durable and visible, all at once.
    pub(crate) fn finish(self) -> Result<()> {
        Self::finish_all(vec![self])
    }

    /// Makes the entries of all ingestions durable and visible at one moment. Each ingestion is of another keyspace of
    /// the same store.
    pub(crate) fn finish_all(mut ingestions: Vec<Self>) -> Result<()> {
        let Some(write) = ingestions.first().map(|first| first.write.clone()) else { return Ok(()) };
        let refuse = |message: &str| Err(Error::new(ErrorKind::InvalidInput, message));
        if ingestions.iter().any(|other| !Arc::ptr_eq(&other.write, &write)) {
            return refuse("ingests of several stores cannot end together");
        }
        ingestions.sort_by_key(|ingestion| ingestion.tree.id());
        if ingestions.windows(2).any(|pair| pair[0].tree.id() == pair[1].tree.id()) {
            return refuse("of a keyspace, one ingest can end at a time");
        }
        ingestions.iter().try_for_each(|ingestion| ingestion.failed.clone().map_or(Ok(()), Err))?;
        let (mut entries, mut bytes, mut complete) = (0, 0, Vec::new());
        for ingestion in ingestions {
            (entries, bytes) = (entries + ingestion.entries, bytes + ingestion.bytes);
            complete.extend(ingestion.complete()?);
        }
        if !complete.is_empty() {
            write.background.check_ingest(1)?;
            install_ingested(&write, complete)?;
            write.background.fit_recycled();
            write.statistics.user_write(u32::try_from(entries).unwrap_or(u32::MAX), bytes);
        }
        Ok(())
    }

    /// Ends the tables; nothing if there are none.
    fn complete(self) -> Result<Option<Complete>> {
        let finished = self.output.finish().inspect_err(|_| self.write.background.wake_writers())?;
        if self.entries == 0 {
            return Ok(None);
        }
        let mut counted = self.counted;
        // With the last table, and all that packs have beside tables.
        let all: u64 = finished.packs.records().iter().map(|pack| pack.length).sum();
        counted.add(all.saturating_sub(counted.bytes));
        Ok(Some(Complete { tree: self.tree, finished, counted }))
    }
}

/// Tables that are whole and durable, and in no tree yet.
struct Complete {
    tree: Arc<Tree>,
    finished: Finished,
    counted: Counted,
}

/// While it lives, no writer gets a number.
struct WritersHeld<'a>(&'a WritePath);

impl Drop for WritersHeld<'_> {
    fn drop(&mut self) {
        if let Some(writer) = &self.0.writer {
            writer.lock().holds -= 1;
        }
        self.0.pressure.wake();
    }
}

/// Installs what is complete, in the order of the keyspaces' ids.
fn install_ingested(write: &WritePath, complete: Vec<Complete>) -> Result<()> {
    complete.iter().try_for_each(|of| of.tree.check_exists())?;
    // Before compactions are held, which must get on.
    if !planted!("ingest-past-a-full-level-0") {
        write.make_room(&mut write.writer()?.lock(), 0)?;
    }
    let held = complete.iter().map(|of| write.background.pause_compactions(of.tree.id()));
    let _compactions: Vec<_> = held.collect::<Result<_>>()?;
    let _writers = hold_writers(write, complete.iter().map(|of| &*of.tree))?;
    if !planted!("ingest-below-an-unflushed-memtable") {
        write.background.wait_flushed()?;
    }
    let mut writer = write.writer()?.lock();
    write.health.check_writable()?;
    write.wait_all_visible(&writer)?;
    if !planted!("ingest-before-the-log-is-synced") {
        writer.wal.durable().sync().map_err(|error| write.alarm.poison(error))?;
    }
    // INVARIANT(I2): a memtable is newer than any table. The catalog knows no memtables, so this is asked here.
    for tree in complete.iter().map(|of| &of.tree) {
        if let Some(first) = tree.first_unflushed(None) {
            let name = &tree.record.name;
            return Err(refused(format!("I2: keyspace {name:?} has entries in memory, from {first} on")));
        }
    }
    let number = writer.last_seq.plus(1);
    let (mut changes, mut counted, mut trees) = (Vec::new(), Vec::new(), Vec::new());
    for Complete { tree, finished, counted: bytes } in complete {
        changes.push(placed(&write.background.jobs, &tree, finished, number));
        counted.push(bytes);
        trees.push(tree);
    }
    if planted!("ingest-of-several-keyspaces-in-several-edits") {
        changes.drain(1..).try_for_each(|change| write.background.jobs.install(change))?;
    }
    write.background.jobs.install(changes.into_iter().fold(Change::default(), Change::and))?;
    // Under the writer's lock, as whoever asks what is left: from here on the packs count as any others.
    drop(counted);
    if !planted!("ingest-into-a-dead-range") {
        trees.iter().for_each(|tree| tree.view().dead.forget());
    }
    writer.last_seq = number;
    write.visibility.publish(number, number).map_err(|_| write.health.gave_up())?;
    write.background.jobs.snapshots.mark_below(number);
    drop(writer);
    write.background.sample_load();
    Ok(())
}

/// The seed of the key sums that `tree` has already.
fn key_seed(tree: &Tree) -> Option<u64> {
    let view = tree.view();
    let keys = view.version.runs().filter(|(_, run)| run.is_keyed()).flat_map(|(_, run)| run.iter());
    keys.filter_map(|table| table.keys).map(|keys| keys.seed).next()
}

/// Where the table that begins with `key` ends: where the newest run with key sums is cut, so that tables of the same keys
/// are told to hide each other whatever their values have come to.
fn cutting_from(write: &WritePath, tree: &Tree, key: &[u8]) -> CutState {
    let view = tree.view();
    let keyed = view.version.runs().map(|(_, run)| run).find(|run| run.is_keyed());
    let keyed = keyed.filter(|_| !planted!("ingest-cut-out-of-step"));
    let beside = keyed.map_or_else(Run::empty, |run| run.outline(key, TABLES_BESIDE));
    write.settings.load().policy.cutter.start_like(beside, &[])
}

/// Lets no writer have a number any more, and gives the memtables of `trees` up for flushing.
fn hold_writers<'a, 'w>(
    write: &'w WritePath,
    trees: impl Iterator<Item = &'a Tree>,
) -> Result<WritersHeld<'w>> {
    let mut writer = write.writer()?.lock();
    writer.holds += 1;
    let held = WritersHeld(write);
    let sealed = write.wait_all_visible(&writer).and_then(|()| write.seal(&mut writer, trees));
    // Before `held` may go, which takes the lock.
    drop(writer);
    sealed.map(|()| held)
}

/// The edit that brings the tables of `finished` into `tree`, their entries numbered `number`.
fn placed(jobs: &JobContext, tree: &Tree, finished: Finished, number: Seq) -> Change {
    let Finished { tables, values, packs, .. } = finished;
    let hull = |hull: KeyRange, table: &TableRecord| hull.hull(&table.range);
    let range = tables.split_first().map(|(first, rest)| rest.iter().fold(first.range.clone(), hull));
    let bytes = tables.iter().map(|table| table.extent.length).sum();
    let version = tree.view().version.clone();
    let layout = tree.layout(&jobs.settings.load().policy);
    let level = range.map_or(0, |range| layout.level_for_new(&version, &range, bytes));
    let epoch = jobs.ids.epoch();
    let placed = |table| (level, TableRecord { min_seq: number, max_seq: number, epoch, ..table });
    let add = tables.into_iter().map(placed).collect();
    let mut change = Change::of_tree(TreeEdit {
        keyspace: tree.id(),
        add,
        values: values.tables,
        deaths: values.gaps,
        ..TreeEdit::default()
    });
    change.edit.packs = packs.records().to_vec();
    change.packs = Some(packs);
    change
}
