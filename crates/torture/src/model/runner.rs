//! A random caller, and the map with which it compares the store.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::PathBuf;
use std::sync::Arc;

use terrace::env::Env;
use terrace::env::simulated::SimEnv;
use terrace::{Db, Keyspace, Options};

use super::diary::Diary;
use super::readers::{Position, View, Walk};
use crate::client::builder;
use crate::oracle::{DEFAULT, Model};
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

/// A random caller, the store that it calls, and the map with which it compares the store.
pub struct Runner {
    pub(super) machine: Machine,
    options: Options,
    pub(super) seed: u64,
    /// Of the operation under way.
    pub(super) rng: Rng,
    pub(super) db: Option<Db>,
    pub(super) spaces: BTreeMap<String, Keyspace>,
    pub(super) model: Model,
    /// Batches up to this number survive a power cut.
    pub(super) durable: u64,
    pub(super) walks: Vec<Walk>,
    pub(super) cursors: Vec<Position>,
    pub(super) views: Vec<View>,
    pub(super) diary: Diary,
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

    pub(super) fn note(&self, operation: impl Into<String>) {
        self.diary.note(operation.into());
    }

    pub(super) fn db(&self) -> &Db {
        self.db.as_ref().expect("open between operations")
    }

    // Opening and closing.

    pub(super) fn open(&mut self) {
        let builder = match &self.machine {
            Machine::Simulated(env) => {
                let env: Arc<dyn Env> = env.clone();
                builder(&self.options).env(env)
            }
            Machine::Real(dir) => Db::builder(dir).options(self.options.clone()),
        };
        let db = builder.open().unwrap_or_else(|e| panic!("no opening: {e:?}"));
        self.spaces.clear();
        for name in db.keyspaces() {
            self.spaces.insert(name.clone(), db.existing_keyspace(&name).unwrap().unwrap());
        }
        self.db = Some(db);
        self.ran.openings += 1;
    }

    pub(super) fn close(&mut self) {
        self.walks.clear();
        self.cursors.clear();
        self.views.clear();
        self.spaces.clear();
        self.count_jobs();
        let Some(db) = self.db.take() else { return };
        db.close().unwrap();
        self.durable = self.model.last();
    }

    pub(super) fn count_jobs(&mut self) {
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

    pub(super) fn bound(&mut self) -> Bound<Vec<u8>> {
        match self.rng.below(3) {
            0 => Bound::Unbounded,
            1 => Bound::Included(self.key()),
            _ => Bound::Excluded(self.key()),
        }
    }
}
