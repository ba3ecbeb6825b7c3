//! A random caller, and the map with which it compares the store.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use terrace::env::Env;
use terrace::env::simulated::{SimEnv, Survival};
use terrace::{Compression, Db, Durability, Ingest, Keyspace, KeyspaceOptions, Options, Prefix, WriteBatch};

use super::cursors::Position;
use super::diary::Diary;
use super::reading::{View, Walk, as_slice, shown, starting_with};
use crate::client::DIR;
use crate::oracle::{self, Change, DEFAULT, Model, show};
use crate::seed::Rng;
use crate::suite::Tally;

/// What the store runs on.
pub enum Machine {
    Simulated(Arc<SimEnv>),
    Real(PathBuf),
}

/// Jobs and operations that ran.
#[derive(Clone, Copy, Default, Debug)]
pub struct Ran {
    pub flushes: u64,
    pub compactions: u64,
    pub intra_l0: u64,
    pub moves: u64,
    pub cache_misses: u64,
    /// Tables that scans left out for their prefix.
    pub denied: u64,
    pub stalls: u64,
    pub batches: u64,
    /// Keys that were written again and again.
    pub hot_keys: u64,
    pub range_deletes: u64,
    pub ingests: u64,
    /// Those that end in several keyspaces together.
    pub joint_ingests: u64,
    pub iterators: u64,
    pub cursors: u64,
    pub snapshots: u64,
    pub removals: u64,
    pub openings: u64,
    pub power_cuts: u64,
    /// Batches that power cuts took.
    pub taken: u64,
    pub deepest: u64,
}

impl Ran {
    /// Adds this to what has been tried.
    pub fn tell(&self, tally: &Tally) {
        let counts = [
            ("flushes", self.flushes),
            ("compactions", self.compactions),
            ("intra-L0 compactions", self.intra_l0),
            ("moves", self.moves),
            ("cache misses", self.cache_misses),
            ("denied tables", self.denied),
            ("stalls", self.stalls),
            ("batches", self.batches),
            ("hot keys", self.hot_keys),
            ("range deletes", self.range_deletes),
            ("ingests", self.ingests),
            ("joint ingests", self.joint_ingests),
            ("iterators", self.iterators),
            ("cursors", self.cursors),
            ("snapshots", self.snapshots),
            ("removals", self.removals),
            ("openings", self.openings),
            ("power cuts", self.power_cuts),
            ("batches taken", self.taken),
            ("deep trees", u64::from(self.deepest >= 3)),
        ];
        counts.into_iter().for_each(|(what, count)| tally.add(what, count));
    }
}

pub struct Runner {
    machine: Machine,
    options: Options,
    seed: u64,
    /// Of the operation under way.
    pub(super) rng: Rng,
    db: Option<Db>,
    pub(super) spaces: BTreeMap<String, Keyspace>,
    pub(super) model: Model,
    /// Batches up to this number survive a power cut.
    durable: u64,
    pub(super) walks: Vec<Walk>,
    pub(super) cursors: Vec<Position>,
    pub(super) views: Vec<View>,
    diary: Diary,
    pub(super) ran: Ran,
}

impl Runner {
    /// A caller of a store that it opens. An operation follows from `seed` and its number, whatever operations came
    /// before it.
    pub fn new(machine: Machine, options: Options, seed: u64, diary: Diary) -> Self {
        let mut runner = Self {
            machine,
            options,
            seed,
            rng: Rng::new(seed),
            db: None,
            spaces: BTreeMap::new(),
            model: Model::default(),
            durable: 0,
            walks: Vec::new(),
            cursors: Vec::new(),
            views: Vec::new(),
            diary,
            ran: Ran::default(),
        };
        runner.model.add_space(DEFAULT);
        runner.open();
        runner
    }

    /// The operation of that number.
    pub fn step(&mut self, number: usize) {
        self.diary.begin(number);
        self.rng = Rng::new(Rng::new(self.seed).draw() ^ number as u64);
        match self.rng.below(1000) {
            0..420 => self.write(),
            420..430 => self.write_often(),
            430..640 => self.lookup(),
            640..720 => self.start_walk(),
            720..800 => self.walk_on(),
            800..840 => self.use_cursor(),
            840..880 => self.take_view(),
            880..920 => self.read_view(),
            920..935 => self.drop_something(),
            935..955 => self.create_or_remove(),
            955..965 => self.flush(),
            965..972 => self.compact_range(),
            972..975 => self.compact(),
            975..980 => self.wait_idle(),
            980..985 => self.sync(),
            985..991 => self.reopen(),
            991..996 => self.cut_power(),
            996..998 => self.ingest(),
            _ => self.compare("now and then"),
        }
    }

    /// The last checks.
    pub fn finish(mut self) -> Ran {
        while !self.walks.is_empty() {
            self.end_walk(0);
        }
        self.end_cursors();
        self.compare("at the end");
        self.verify();
        self.reopen();
        self.compact();
        self.compare("after a last compaction");
        self.verify();
        self.close();
        self.ran
    }

    pub(super) fn note(&self, operation: impl Into<String>) {
        self.diary.note(operation.into());
    }

    pub(super) fn db(&self) -> &Db {
        self.db.as_ref().expect("open between operations")
    }

    // Opening and closing.

    fn open(&mut self) {
        let builder = match &self.machine {
            Machine::Simulated(env) => {
                let env: Arc<dyn Env> = env.clone();
                Db::builder(Path::new(DIR)).env(env)
            }
            Machine::Real(dir) => Db::builder(dir),
        };
        let db = builder.options(self.options.clone()).open().unwrap_or_else(|e| panic!("no opening: {e:?}"));
        self.spaces.clear();
        for name in db.keyspaces() {
            self.spaces.insert(name.clone(), db.existing_keyspace(&name).unwrap().unwrap());
        }
        self.db = Some(db);
        self.ran.openings += 1;
    }

    fn close(&mut self) {
        self.walks.clear();
        self.cursors.clear();
        self.views.clear();
        self.spaces.clear();
        self.count_jobs();
        let Some(db) = self.db.take() else { return };
        db.close().unwrap();
        self.durable = self.model.last();
    }

    fn count_jobs(&mut self) {
        let Some(db) = &self.db else { return };
        let stats = db.stats();
        self.ran.flushes += stats.flush.jobs;
        self.ran.compactions += stats.compaction.jobs;
        self.ran.intra_l0 += stats.compaction.intra_l0;
        self.ran.moves += stats.compaction.moves;
        self.ran.cache_misses += stats.cache.misses;
        self.ran.denied += stats.prefix_filter.denied;
        self.ran.stalls += stats.stalls.iter().map(|stall| stall.count).sum::<u64>();
        let levels = stats.keyspaces.iter().map(|space| space.shape.levels.len() as u64);
        self.ran.deepest = self.ran.deepest.max(levels.max().unwrap_or(0));
    }

    fn reopen(&mut self) {
        self.note("reopen");
        self.close();
        self.open();
        self.compare("after reopening");
    }

    fn cut_power(&mut self) {
        let survival = match self.rng.below(4) {
            0 => Survival::Nothing,
            1 => Survival::Everything,
            _ => Survival::Random(self.rng.draw()),
        };
        let Machine::Simulated(env) = &self.machine else { return };
        let restarted = env.crash(survival);
        self.note(format!("power cut, {survival:?} survives"));
        self.count_jobs();
        // Nobody is interested in what the old machine still does.
        self.walks.clear();
        self.cursors.clear();
        self.views.clear();
        self.spaces.clear();
        self.db = None;
        self.machine = Machine::Simulated(restarted);
        self.open();
        let found = oracle::dump(self.db()).unwrap();
        let at_least = if survival == Survival::Everything { self.model.last() } else { self.durable };
        let kept = self.model.cutoff(&found, at_least).unwrap_or_else(|wrong| panic!("{wrong}"));
        self.ran.power_cuts += 1;
        self.ran.taken += self.model.last() - kept;
        self.model.rewind(kept, &found);
        self.durable = kept;
        self.verify();
    }

    // Writing.

    fn write(&mut self) {
        let count = *self.rng.pick(&[1, 1, 1, 1, 2, 5, 40]);
        let (mut batch, mut changes) = (WriteBatch::new(), Vec::new());
        for _ in 0..count {
            let space = self.any_space();
            if self.rng.percent(1) {
                let (from, to) = self.range_to_delete();
                batch.delete_range_in(&space, (from.clone(), to.clone()));
                changes.extend(self.model.removals(space.id(), &(as_slice(&from), as_slice(&to)), &changes));
                self.note(format!("delete {} {} .. {}", space.id(), shown(&from), shown(&to)));
                self.ran.range_deletes += 1;
                continue;
            }
            let (key, value) = (self.key(), self.value());
            match &value {
                Some(value) => batch.put_in(&space, &key, value),
                None => batch.delete_in(&space, &key),
            };
            changes.push(Change { space: space.id(), key, value });
        }
        let synced = self.rng.percent(5);
        let first = changes.first().map_or(String::new(), |change| {
            let value = change.value.as_ref().map_or("nothing".into(), |value| show(value));
            format!("{}/{} = {value}", change.space, show(&change.key))
        });
        self.note(format!("write {count}{}: {first}", if synced { ", synced" } else { "" }));
        let durability = if synced { Durability::Synced } else { Durability::Buffered };
        self.db().write_with(batch, durability).unwrap();
        self.model.apply(&changes);
        self.ran.batches += 1;
        if synced {
            self.durable = self.model.last();
        }
    }

    /// Puts and deletes into one keyspace or several at one moment, while what was written to others just before is
    /// flushed.
    fn ingest(&mut self) {
        let first = self.any_space();
        let joint = self.rng.percent(50);
        let spaces: Vec<Keyspace> =
            self.spaces.values().filter(|space| joint || space.id() == first.id()).cloned().collect();
        let (mut ingests, mut changes) = (Vec::new(), Vec::new());
        for space in &spaces {
            let count = 1 + self.rng.below(20);
            let entries: BTreeMap<_, _> = (0..count).map(|_| (self.key(), self.value())).collect();
            self.note(format!("ingest {} entries into {}", entries.len(), space.id()));
            let mut ingest = space.ingest().unwrap();
            for (key, value) in entries {
                match &value {
                    Some(value) => ingest.push(&key, value),
                    None => ingest.delete(&key),
                }
                .unwrap();
                changes.push(Change { space: space.id(), key, value });
            }
            ingests.push(ingest);
        }
        self.ran.joint_ingests += u64::from(ingests.len() > 1);
        match ingests.len() {
            1 => ingests.into_iter().try_for_each(Ingest::finish),
            _ => Ingest::finish_together(ingests),
        }
        .unwrap();
        self.model.apply(&changes);
        self.durable = self.model.last();
        self.ran.ingests += 1;
    }

    /// One of two keys again and again, so that it has more versions than readers pass by steps.
    fn write_often(&mut self) {
        let space = self.any_space();
        let key = self.rng.pick(&[&b"a"[..], b"ba"]).to_vec();
        let count = 10 + self.rng.below(30);
        self.note(format!("write {}/{} {count} times", space.id(), show(&key)));
        for _ in 0..count {
            let value =
                if self.rng.percent(10) { self.value() } else { Some(self.rng.draw().to_le_bytes().into()) };
            let mut batch = WriteBatch::new();
            match &value {
                Some(value) => batch.put_in(&space, &key, value),
                None => batch.delete_in(&space, &key),
            };
            self.db().write_with(batch, Durability::Buffered).unwrap();
            self.model.apply(&[Change { space: space.id(), key: key.clone(), value }]);
            if self.rng.percent(5) {
                self.take_view();
            }
        }
        self.ran.hot_keys += 1;
    }

    /// Mostly the keys below a common prefix; now and then anything, inverted and empty ranges included.
    fn range_to_delete(&mut self) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
        let key = self.key();
        if key.is_empty() || self.rng.percent(20) {
            return (self.bound(), self.bound());
        }
        starting_with(&key)
    }

    fn sync(&mut self) {
        self.note("sync");
        self.db().sync().unwrap();
        self.durable = self.model.last();
    }

    fn create_or_remove(&mut self) {
        let name = *self.rng.pick(&["a", "b", "c"]);
        if let Some(space) = self.spaces.remove(name) {
            if self.rng.percent(40) {
                self.note(format!("remove keyspace {name}"));
                self.db().drop_keyspace(name).unwrap();
                self.model.remove_space(space.id());
                self.durable = self.model.last();
                self.ran.removals += 1;
                assert!(space.put("x", "y").is_err(), "a removed keyspace takes a write");
            } else {
                self.spaces.insert(name.into(), space);
            }
        } else {
            self.note(format!("create keyspace {name}"));
            let compression = *self.rng.pick(&[Compression::None, Compression::Lz4]);
            let filter_bits_per_key = *self.rng.pick(&[0, 3, 10, 20]);
            let delimited = Prefix::Delimited { delimiter: b'a', count: 1 };
            let prefix = *self.rng.pick(&[None, Some(Prefix::Fixed(2)), Some(delimited)]);
            let options = KeyspaceOptions { compression, filter_bits_per_key, prefix, ttl: None };
            let space = self.db().keyspace_with(name, options).unwrap();
            self.model.add_space(space.id());
            self.spaces.insert(name.into(), space);
        }
    }

    // Jobs.

    fn flush(&mut self) {
        self.note("flush");
        self.db().flush().unwrap();
    }

    fn compact(&mut self) {
        self.note("compact");
        self.db().compact().unwrap();
        self.check_released(u64::MAX);
    }

    fn compact_range(&mut self) {
        let space = self.any_space();
        let (from, to) = (self.bound(), self.bound());
        self.note(format!("compact {} {} .. {}", space.name(), shown(&from), shown(&to)));
        space.compact_range((from, to)).unwrap();
    }

    fn wait_idle(&mut self) {
        self.note("wait until idle");
        self.db().wait_idle().unwrap();
        self.check_released(4);
    }

    /// Checks that levels keep less than one part in `parts` for readers that have gone; the same holds for each of
    /// their tables.
    fn check_released(&self, parts: u64) {
        for keyspace in self.db().stats().keyspaces {
            let levels = &keyspace.shape.levels;
            for level in levels {
                let released = level.released_bytes;
                let is_little = released == 0 || released.saturating_mul(parts) < level.bytes;
                let (name, number) = (&keyspace.name, level.level);
                assert!(
                    is_little,
                    "{name} holds {released} bytes for nobody in level {number} of {levels:#?}"
                );
            }
        }
    }

    // Choices.

    pub(super) fn any_space(&mut self) -> Keyspace {
        let names: Vec<&String> = self.spaces.keys().collect();
        let name = (*self.rng.pick(&names)).clone();
        self.spaces[&name].clone()
    }

    /// Short keys over few bytes, so that they are neighbours and prefixes of each other; the empty one, too.
    pub(super) fn key(&mut self) -> Vec<u8> {
        const ALPHABET: [u8; 6] = [0, 1, b'a', b'b', 254, 255];
        let len = *self.rng.pick(&[0, 1, 2, 2, 3, 3, 3, 4, 4]);
        (0..len).map(|_| *self.rng.pick(&ALPHABET)).collect()
    }

    fn value(&mut self) -> Option<Vec<u8>> {
        if self.rng.percent(25) {
            return None;
        }
        let bytes = match self.rng.below(20) {
            0 => 0,
            1 => 1500 + self.rng.below(3000),
            _ => 8 + self.rng.below(120),
        };
        let mut value = self.rng.draw().to_le_bytes()[..bytes.min(8)].to_vec();
        value.resize(bytes, b'v');
        Some(value)
    }
}
