//! A random caller, and the map that it compares the store with.
#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

#[path = "reading.rs"]
mod reading;

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use terrace::env::Env;
use terrace::env::simulated::{SimEnv, Survival};
use terrace::{Compression, Db, Durability, Keyspace, KeyspaceOptions, Options, Prefix, WriteBatch};

use reading::{View, Walk, as_slice, shown, starting_with};
use terrace_torture::Rng;
use terrace_torture::client::DIR;
use terrace_torture::oracle::{self, Change, DEFAULT, Model, show};

/// What the store runs on.
pub enum Machine {
    Simulated(Arc<SimEnv>),
    Real(PathBuf),
}

/// Jobs and operations that ran.
#[derive(Clone, Copy, Default, Debug)]
pub struct Ran {
    pub flushes: u64,
    pub merges: u64,
    pub moves: u64,
    pub cache_misses: u64,
    /// Tables that scans left out for their prefix.
    pub denied: u64,
    pub stalls: u64,
    pub batches: u64,
    pub range_deletes: u64,
    pub iterators: u64,
    pub snapshots: u64,
    pub removals: u64,
    pub openings: u64,
    pub power_cuts: u64,
    /// Batches that power cuts took.
    pub taken: u64,
    pub deepest: u64,
}

impl Ran {
    pub fn add(&mut self, other: &Self) {
        self.flushes += other.flushes;
        self.merges += other.merges;
        self.moves += other.moves;
        self.cache_misses += other.cache_misses;
        self.denied += other.denied;
        self.stalls += other.stalls;
        self.batches += other.batches;
        self.range_deletes += other.range_deletes;
        self.iterators += other.iterators;
        self.snapshots += other.snapshots;
        self.removals += other.removals;
        self.openings += other.openings;
        self.power_cuts += other.power_cuts;
        self.taken += other.taken;
        self.deepest = self.deepest.max(other.deepest);
    }

    /// Jobs are counted out only where a seed orders threads: on real files their number is chance.
    pub fn assert_everything_ran(&self, simulated: bool) {
        let jobs = [self.flushes, self.merges, self.moves, self.cache_misses, self.denied];
        let least = if simulated { 10 } else { 0 };
        assert!(jobs.iter().all(|&count| count > least), "something hardly ran: {self:?}");
        let operations = [self.batches, self.range_deletes, self.iterators, self.snapshots, self.removals];
        let operations = [&operations[..], &[self.openings]].concat();
        assert!(operations.iter().all(|&count| count > 10), "something hardly ran: {self:?}");
        assert!(self.deepest >= 3, "no tree got deep: {self:?}");
        assert!(
            !simulated || self.power_cuts > 10 && self.taken > 10,
            "no power cut took anything: {self:?}"
        );
    }
}

/// How many operations back a failure tells.
const LAST_OPERATIONS: usize = 30;

pub struct Runner {
    machine: Machine,
    options: Options,
    rng: Rng,
    db: Option<Db>,
    spaces: BTreeMap<String, Keyspace>,
    model: Model,
    /// Batches up to this number survive a power cut.
    durable: u64,
    walks: Vec<Walk>,
    views: Vec<View>,
    done: VecDeque<String>,
    ran: Ran,
}

impl Drop for Runner {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the last operations:");
            self.done.iter().for_each(|operation| eprintln!("  {operation}"));
        }
    }
}

impl Runner {
    pub fn new(machine: Machine, options: Options, rng: Rng) -> Self {
        let mut runner = Self {
            machine,
            options,
            rng,
            db: None,
            spaces: BTreeMap::new(),
            model: Model::default(),
            durable: 0,
            walks: Vec::new(),
            views: Vec::new(),
            done: VecDeque::new(),
            ran: Ran::default(),
        };
        runner.model.add_space(DEFAULT);
        runner.open();
        runner
    }

    /// One operation.
    pub fn step(&mut self) {
        match self.rng.below(1000) {
            0..430 => self.write(),
            430..640 => self.lookup(),
            640..720 => self.start_walk(),
            720..840 => self.walk_on(),
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
            _ => self.compare("now and then"),
        }
    }

    /// The last checks.
    pub fn finish(mut self) -> Ran {
        while !self.walks.is_empty() {
            self.end_walk(0);
        }
        self.compare("at the end");
        self.verify();
        self.reopen();
        self.compact();
        self.compare("after a last compaction");
        self.verify();
        self.close();
        self.ran
    }

    fn note(&mut self, operation: impl Into<String>) {
        if self.done.len() == LAST_OPERATIONS {
            self.done.pop_front();
        }
        self.done.push_back(operation.into());
    }

    fn db(&self) -> &Db {
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
        self.ran.merges += stats.merge.jobs;
        self.ran.moves += stats.merge.moves;
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
        // What the old machine still does concerns nobody.
        self.walks.clear();
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
                batch.delete_range_in::<Vec<u8>>(&space, (from.clone(), to.clone()));
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
    }

    fn compact_range(&mut self) {
        let space = self.any_space();
        let (from, to) = (self.bound(), self.bound());
        self.note(format!("compact {} {} .. {}", space.name(), shown(&from), shown(&to)));
        space.compact_range::<Vec<u8>>((from, to)).unwrap();
    }

    fn wait_idle(&mut self) {
        self.note("wait until idle");
        self.db().wait_idle().unwrap();
    }

    // Choices.

    fn any_space(&mut self) -> Keyspace {
        let names: Vec<&String> = self.spaces.keys().collect();
        let name = (*self.rng.pick(&names)).clone();
        self.spaces[&name].clone()
    }

    /// Short keys over few bytes, so that they are neighbours and prefixes of each other; the empty one, too.
    fn key(&mut self) -> Vec<u8> {
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
