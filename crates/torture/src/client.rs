//! A client of the store that remembers what it asked for and what it was answered.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use terrace::env::Env;
use terrace::env::simulated::{DeviceModel, SimEnv};
use terrace::tree::{Placer, Unit};
use terrace::{
    Builder, Db, Durability, Error, ErrorKind, Isolation, Keyspace, Options, Snapshot, TransactionOptions,
    WriteBatch,
};

use crate::oracle::{self, Change, DEFAULT, Dump, Entries, Model};

/// Where every store lies.
pub const DIR: &str = "/db";

/// Opens the store of a simulated machine.
pub fn open(env: &Arc<SimEnv>, options: &Options) -> terrace::Result<Db> {
    let env: Arc<dyn Env> = env.clone();
    builder(options).env(env).open()
}

/// How to open the store with `options`: on several devices where these say how to deal tables out to them.
pub fn builder(options: &Options) -> Builder {
    let more: &[&str] = match options.tree.placer {
        Placer::Weighted { .. }
        | Placer::Level { .. }
        | Placer::Dynamic { unit: Unit::Job }
        | Placer::Heat { unit: Unit::Job } => &["/second"],
        Placer::Mod { .. } => &["/second", "/third"],
        _ => &[],
    };
    more.iter().fold(Db::builder(Path::new(DIR)), |builder, dir| builder.device(dir)).options(options.clone())
}

/// The same machine, whose directories for further devices are devices of their own: a sync of one says nothing of another.
pub fn with_devices(env: Arc<SimEnv>) -> Arc<SimEnv> {
    for dir in ["/second", "/third"] {
        env.add_device(Path::new(dir), DeviceModel::instant(), 1 << 40);
    }
    env
}

/// Ends the schedule: the power is off, or the store refuses every write.
pub struct Stop;

pub type Step = Result<(), Stop>;

/// What the client knows of a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    Acknowledged,
    /// An error came back: it took effect as a whole or not at all.
    Unknown,
}

/// What is known of a keyspace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    Exists,
    /// Its removal was requested after this many batches, and not acknowledged.
    Doubtful(usize),
    Removed,
}

/// All requests and answers: the oracle of a store.
#[derive(Clone, Default)]
pub struct History {
    pub batches: Vec<(Vec<Change>, Outcome)>,
    /// Acknowledged batches among this many first ones survive a power cut.
    pub durable: usize,
    pub spaces: BTreeMap<u32, (String, Fate)>,
    /// Keyspaces whose creation was not acknowledged.
    pub creating: BTreeSet<String>,
    /// The creation of the store was acknowledged.
    pub created: bool,
    /// Errors that came back.
    pub errors: usize,
}

impl History {
    /// The same, for a machine that has lost nothing: whatever was acknowledged has reached the operating system.
    pub fn without_power_cut(&self) -> Self {
        Self { durable: self.batches.len(), ..self.clone() }
    }
}

/// How a client takes errors.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Manners {
    /// The power will be cut: the first error ends the schedule.
    Strict,
    /// A call will fail: the store goes on, or says why it does not, and reads stay right.
    Tolerant,
}

/// Batches with errors after which a tolerant client gives up, so that few histories are possible.
const UNKNOWN_MAX: usize = 3;

/// Background jobs that ran, over all openings.
#[derive(Clone, Copy, Default, Debug)]
pub struct Jobs {
    pub flushes: u64,
    pub compactions: u64,
    /// Intra-L0 compactions.
    pub intra_l0: u64,
    pub moves: u64,
    /// The most runs that a level below level 0 had when an opening ended, and the most when the last one did.
    pub runs_max: usize,
    pub runs_at_last: usize,
    /// Tables that compaction buffers kept when the openings ended.
    pub kept_tables: u64,
    /// Bytes of recycled files when the openings ended.
    pub recycled_bytes: u64,
    /// Holes that were punched, and syncs of them.
    pub punches: u64,
    pub hole_syncs: u64,
    /// Packs that were rewritten.
    pub rewrites: u64,
    /// Syncs of the directory: those that somebody waited for, and the others.
    pub directory_syncs: u64,
    pub preallocate_syncs: u64,
}

/// An operation of a batch: keyspace, key, and the value, or `None` to remove the key.
pub type Op<'a> = (&'a str, &'a [u8], Option<&'a [u8]>);

/// The caller.
pub struct Client {
    pub env: Arc<SimEnv>,
    pub options: Options,
    pub history: History,
    pub jobs: Jobs,
    manners: Manners,
    db: Option<Db>,
    spaces: BTreeMap<String, Keyspace>,
    snapshot: Option<(Snapshot, BTreeMap<u32, Entries>)>,
    /// What reads must show: acknowledged batches alone.
    visible: Model,
}

impl Client {
    pub fn new(env: Arc<SimEnv>, options: Options, manners: Manners) -> Self {
        Self {
            env,
            options,
            history: History::default(),
            jobs: Jobs::default(),
            manners,
            db: None,
            spaces: BTreeMap::new(),
            snapshot: None,
            visible: Model::default(),
        }
    }

    /// A client of the store that `db` is, which holds what `found` says, durably.
    pub fn resume(env: Arc<SimEnv>, options: Options, db: Db, found: &Dump) -> Self {
        let mut client = Self::new(env, options, Manners::Strict);
        let mut changes = Vec::new();
        for (&id, (name, entries)) in found {
            client.learn(id, name);
            let space = db.existing_keyspace(name).expect("open").expect("a keyspace that was found");
            client.spaces.insert(name.clone(), space);
            changes.extend(entries.iter().map(|(key, value)| Change {
                space: id,
                key: key.clone(),
                value: Some(value.clone()),
            }));
        }
        client.visible.apply(&changes);
        client.history.batches.push((changes, Outcome::Acknowledged));
        client.history.durable = 1;
        client.history.created = true;
        client.db = Some(db);
        client
    }

    /// The store, which a schedule has opened first.
    pub fn db(&self) -> &Db {
        self.db.as_ref().expect("the schedule has opened the store")
    }

    pub fn is_open(&self) -> bool {
        self.db.is_some()
    }

    pub fn open(&mut self) -> Step {
        match open(&self.env, &self.options) {
            Ok(db) => {
                self.history.created = true;
                self.learn(DEFAULT, "default");
                for name in db.keyspaces() {
                    if let Ok(Some(space)) = db.existing_keyspace(&name) {
                        self.learn(space.id(), &name);
                        self.spaces.insert(name, space);
                    }
                }
                self.db = Some(db);
                self.check_reads("after opening")
            }
            Err(error) => {
                self.note(&error);
                Err(Stop)
            }
        }
    }

    fn learn(&mut self, id: u32, name: &str) {
        self.history.creating.remove(name);
        self.history.spaces.entry(id).or_insert((name.into(), Fate::Exists));
        self.visible.add_space(id);
    }

    /// Closes the store; all that was acknowledged is durable then.
    pub fn close(&mut self) -> Step {
        self.spaces.clear();
        self.snapshot = None;
        let Some(db) = self.db.take() else { return Ok(()) };
        self.count_jobs(&db);
        match db.close() {
            Ok(()) => {
                self.history.durable = self.history.batches.len();
                Ok(())
            }
            Err(error) => {
                self.note(&error);
                // What a later opening may rely on is a new machine's business.
                Err(Stop)
            }
        }
    }

    fn count_jobs(&mut self, db: &Db) {
        let stats = db.stats();
        self.jobs.flushes += stats.flush.jobs;
        self.jobs.compactions += stats.compaction.jobs;
        self.jobs.intra_l0 += stats.compaction.intra_l0;
        self.jobs.moves += stats.compaction.moves;
        self.jobs.kept_tables += stats.keyspaces.iter().map(|space| space.buffer.tables).sum::<u64>();
        let levels = db.keyspaces().into_iter().filter_map(|name| db.existing_keyspace(&name).ok()?);
        let levels = levels.flat_map(|space| space.shape().levels).filter(|level| level.level > 0);
        self.jobs.runs_at_last = levels.map(|level| level.runs).max().unwrap_or(0);
        self.jobs.runs_max = self.jobs.runs_max.max(self.jobs.runs_at_last);
        self.jobs.punches += stats.punch.punches;
        self.jobs.hole_syncs += stats.syncs.reclaim;
        self.jobs.rewrites += stats.rewrite.packs;
        let space = stats.space;
        self.jobs.directory_syncs += stats.syncs.directory;
        self.jobs.preallocate_syncs += stats.syncs.preallocate;
        self.jobs.recycled_bytes += space.total_bytes - space.live_bytes - space.dead_bytes - space.wal_bytes;
    }

    pub fn reopen(&mut self) -> Step {
        self.close()?;
        self.open()
    }

    /// Writes a batch.
    pub fn write(&mut self, ops: &[Op<'_>], durability: Durability) -> Step {
        let mut batch = WriteBatch::new();
        let mut changes = Vec::new();
        for (name, key, value) in ops {
            // A keyspace whose creation failed is left out.
            let Some(space) = self.spaces.get(*name) else { continue };
            match value {
                Some(value) => batch.put_in(space, key, value),
                None => batch.delete_in(space, key),
            };
            let value = value.map(<[u8]>::to_vec);
            changes.push(Change { space: space.id(), key: key.to_vec(), value });
        }
        self.commit(batch, changes, durability)
    }

    /// Deletes the keys from `start` to before `end`.
    pub fn delete_range(&mut self, space: &str, range: Range<&str>, durability: Durability) -> Step {
        let Some(space) = self.spaces.get(space).cloned() else { return Ok(()) };
        let mut batch = WriteBatch::new();
        batch.delete_range_in(&space, range.clone());
        // Of batches of which nobody knows whether they took effect, too.
        let written = self.history.batches.iter().flat_map(|(changes, _)| changes);
        let inside = written.filter(|change| {
            change.space == space.id()
                && (range.start.as_bytes()..range.end.as_bytes()).contains(&&change.key[..])
        });
        let keys: BTreeSet<_> = inside.map(|change| change.key.clone()).collect();
        let removal = |key| Change { space: space.id(), key, value: None };
        self.commit(batch, keys.into_iter().map(removal).collect(), durability)
    }

    /// Gives the value of `from`, if it has one, to `to` alone, in a transaction.
    pub fn rename(&mut self, space: &str, [from, to]: [&str; 2], durability: Durability) -> Step {
        let Some(space) = self.spaces.get(space).cloned() else { return Ok(()) };
        let options = TransactionOptions { isolation: Isolation::Serializable };
        let mut transaction = self.db().transaction_with(options);
        let value = match transaction.get_in(&space, from) {
            Ok(Some(value)) => value.to_vec(),
            Ok(None) => return Ok(()),
            Err(error) => return self.settle(error),
        };
        transaction.put_in(&space, to, &value).delete_in(&space, from);
        let change = |key: &str, value| Change { space: space.id(), key: key.into(), value };
        let result = transaction.commit_with(durability);
        self.committed(result, vec![change(to, Some(value)), change(from, None)], durability)
    }

    /// Ingests `entries`, which are in order.
    pub fn ingest(&mut self, space: &str, entries: &[(String, Vec<u8>)]) -> Step {
        let Some(space) = self.spaces.get(space).cloned() else { return Ok(()) };
        let change = |(key, value): &(String, Vec<u8>)| Change {
            space: space.id(),
            key: key.clone().into(),
            value: Some(value.clone()),
        };
        let result = space.ingest().and_then(|mut ingest| {
            entries.iter().try_for_each(|(key, value)| ingest.push(key, value))?;
            ingest.finish()
        });
        self.committed(result, entries.iter().map(change).collect(), Durability::Synced)
    }

    /// Goes on by other options, until the store is opened again.
    pub fn set_options(&mut self, change: fn(&mut Options)) -> Step {
        let result = self.db().set_options(change);
        self.done(result)
    }

    fn commit(&mut self, batch: WriteBatch, changes: Vec<Change>, durability: Durability) -> Step {
        if changes.is_empty() {
            return Ok(());
        }
        let result = self.db().write_with(batch, durability);
        self.committed(result, changes, durability)
    }

    /// Takes note of what came back from an attempt to make `changes`, all or none.
    fn committed(
        &mut self,
        result: terrace::Result<()>,
        changes: Vec<Change>,
        durability: Durability,
    ) -> Step {
        match result {
            Ok(()) => {
                self.visible.apply(&changes);
                self.history.batches.push((changes, Outcome::Acknowledged));
                if durability == Durability::Synced {
                    self.history.durable = self.history.batches.len();
                }
                Ok(())
            }
            Err(error) => {
                self.history.batches.push((changes, Outcome::Unknown));
                if matches!(error.kind(), ErrorKind::Poisoned) {
                    // Refused before anything was done; or on its way, and in the log, when a sync of another thread failed.
                    return self.refused(&error);
                }
                let unknown = self.history.batches.iter().filter(|(_, outcome)| *outcome == Outcome::Unknown);
                if unknown.count() >= UNKNOWN_MAX {
                    self.note(&error);
                    return Err(Stop);
                }
                self.settle(error)
            }
        }
    }

    pub fn put(&mut self, space: &str, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Step {
        self.write(&[(space, key.as_ref(), Some(value.as_ref()))], Durability::Buffered)
    }

    pub fn put_synced(&mut self, space: &str, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Step {
        self.write(&[(space, key.as_ref(), Some(value.as_ref()))], Durability::Synced)
    }

    pub fn delete(&mut self, space: &str, key: impl AsRef<[u8]>) -> Step {
        self.write(&[(space, key.as_ref(), None)], Durability::Buffered)
    }

    pub fn sync(&mut self) -> Step {
        match self.db().sync() {
            Ok(()) => {
                self.history.durable = self.history.batches.len();
                Ok(())
            }
            Err(error) => self.settle(error),
        }
    }

    pub fn create(&mut self, name: &str) -> Step {
        self.history.creating.insert(name.into());
        match self.db().keyspace(name) {
            Ok(space) => {
                self.learn(space.id(), name);
                self.spaces.insert(name.into(), space);
                Ok(())
            }
            Err(error) => self.settle(error),
        }
    }

    pub fn remove(&mut self, name: &str) -> Step {
        let Some(space) = self.spaces.remove(name) else { return Ok(()) };
        let id = space.id();
        self.set_fate(id, Fate::Doubtful(self.history.batches.len()));
        match self.db().drop_keyspace(name) {
            Ok(()) => {
                self.set_fate(id, Fate::Removed);
                self.visible.remove_space(id);
                // What was written before may be the copy of what goes.
                self.history.durable = self.history.batches.len();
                Ok(())
            }
            Err(error) => self.settle(error),
        }
    }

    fn set_fate(&mut self, id: u32, fate: Fate) {
        if let Some(known) = self.history.spaces.get_mut(&id) {
            known.1 = fate;
        }
    }

    pub fn flush(&mut self) -> Step {
        let result = self.db().flush();
        self.done(result)
    }

    pub fn compact(&mut self) -> Step {
        let result = self.db().compact();
        self.done(result)
    }

    pub fn wait_idle(&mut self) -> Step {
        let result = self.db().wait_idle();
        self.done(result)
    }

    /// Seeks the first key of the default keyspace.
    pub fn scan_first(&mut self) -> Step {
        let result = self.db().iter().and_then(|mut iter| iter.next().transpose());
        self.done(result.map(drop))
    }

    /// Holds a snapshot and what it must show from now on; the one before goes.
    pub fn hold_snapshot(&mut self) {
        let at = self.visible.last();
        let ids: Vec<u32> = self.spaces.values().map(Keyspace::id).collect();
        let expected = ids.into_iter().map(|id| (id, self.visible.entries(id, .., at))).collect();
        self.snapshot = Some((self.db().snapshot(), expected));
    }

    /// Compares every keyspace, and the snapshot, with what they must show.
    pub fn check_reads(&mut self, when: &str) -> Step {
        let expected = self.expected();
        match oracle::dump(self.db()) {
            Ok(mut found) => {
                // A keyspace of doubtful fate may be listed or not.
                found.retain(|id, _| expected.contains_key(id) || !self.is_doubtful(*id));
                assert!(found == expected, "wrong answers {when}: {}", difference(&expected, &found));
            }
            Err(error) => self.settle(error)?,
        }
        let Some((snapshot, expected)) = &self.snapshot else { return Ok(()) };
        for space in self.spaces.values() {
            let Some(expected) = expected.get(&space.id()) else { continue };
            let found: terrace::Result<Entries> = snapshot.keyspace(space).iter().and_then(|iter| {
                iter.map(|entry| entry.map(|(key, value)| (key.to_vec(), value.to_vec()))).collect()
            });
            match found {
                Ok(found) => assert!(found == *expected, "a snapshot shows something else {when}"),
                Err(error) => return self.settle(error),
            }
        }
        Ok(())
    }

    fn expected(&self) -> Dump {
        let at = self.visible.last();
        let existing = self.history.spaces.iter().filter(|(_, (_, fate))| *fate == Fate::Exists);
        existing.map(|(&id, (name, _))| (id, (name.clone(), self.visible.entries(id, .., at)))).collect()
    }

    fn is_doubtful(&self, id: u32) -> bool {
        self.history.spaces.get(&id).is_none_or(|(_, fate)| matches!(fate, Fate::Doubtful(_)))
    }

    fn done(&mut self, result: terrace::Result<()>) -> Step {
        result.or_else(|error| self.settle(error))
    }

    /// What an error leads to.
    fn settle(&mut self, error: Error) -> Step {
        if error.kind() == ErrorKind::Poisoned {
            return self.refused(&error);
        }
        self.note(&error);
        if self.manners == Manners::Strict { Err(Stop) } else { Ok(()) }
    }

    /// A poisoned store refuses every write, says why, and is read as before.
    fn refused(&mut self, error: &Error) -> Step {
        self.note(error);
        if self.manners == Manners::Tolerant {
            let again = self.db().put("never", "there").expect_err("a poisoned store takes a write");
            assert_eq!(again.kind(), ErrorKind::Poisoned, "{again}");
            let synced = self.db().sync().expect_err("a poisoned store syncs");
            assert_eq!(synced.kind(), ErrorKind::Poisoned, "{synced}");
            self.check_poisoned_reads();
        }
        Err(Stop)
    }

    fn check_poisoned_reads(&mut self) {
        match oracle::dump(self.db()) {
            Ok(mut found) => {
                let expected = self.expected();
                found.retain(|id, _| expected.contains_key(id) || !self.is_doubtful(*id));
                assert!(found == expected, "wrong answers when poisoned: {}", difference(&expected, &found));
            }
            Err(error) => self.note(&error),
        }
    }

    /// Every error has a kind that tells what to do, and names a file where one is to blame.
    fn note(&mut self, error: &Error) {
        self.history.errors += 1;
        if self.manners == Manners::Strict {
            return;
        }
        let kind = error.kind();
        let expected =
            matches!(kind, ErrorKind::Io | ErrorKind::DiskFull | ErrorKind::ReadOnly | ErrorKind::Poisoned);
        assert!(expected, "a failed call came back as {error:?}");
        assert!(error.file().is_some(), "no file is named: {error:?}");
    }
}

/// The first few places where two stores differ.
pub fn difference(expected: &Dump, found: &Dump) -> String {
    let names = |dump: &Dump| -> Vec<String> {
        dump.iter().map(|(id, (name, entries))| format!("{id}:{name}({})", entries.len())).collect()
    };
    let mut text = format!("expected {:?}, found {:?}", names(expected), names(found));
    let none = Entries::new();
    for (id, (_, entries)) in expected {
        let others = found.get(id).map_or(&none, |(_, entries)| entries);
        let keys: BTreeSet<_> = entries.keys().chain(others.keys()).collect();
        let differing = keys.into_iter().filter(|key| entries.get(*key) != others.get(*key));
        for key in differing.take(8) {
            let value =
                |entries: &Entries| entries.get(key).map_or("nothing".into(), |value| oracle::show(value));
            text += &format!(
                "\n  {id}/{}: expected {}, found {}",
                oracle::show(key),
                value(entries),
                value(others)
            );
        }
    }
    text
}
