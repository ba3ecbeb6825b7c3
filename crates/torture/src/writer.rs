//! A process that writes to a store of its own until something ends it, and the judge of what it leaves.
//!
//! The program runs itself as a [`child`], which writes numbered records and reports each number through a pipe once
//! the store has acknowledged it. Both sides make the records from the same seed, and the store says which record is
//! its last. So the whole store can be compared with the state after that record.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use terrace::{Builder, Compression, Db, Durability, KeyspaceOptions, Options, WriteBatch};

use crate::option_sets;
use crate::options::small_levels;
use crate::second::{self, Dirs, Second};
use crate::seed::{Rng, number};

/// Set in a child: the directory of its store.
const CHILD_DIR: &str = "TERRACE_CHILD_DIR";
/// Set in a child whose store has a second device: where.
const CHILD_OTHER: &str = "TERRACE_CHILD_OTHER";
/// Set in a child: the name of how it uses a second device.
const CHILD_SECOND: &str = "TERRACE_CHILD_SECOND";
/// Set in a child: the seed of the history.
const CHILD_SEED: &str = "TERRACE_CHILD_SEED";
/// Set in a child: the number of its chain, from which the options follow.
const CHILD_CHAIN: &str = "TERRACE_CHILD_CHAIN";

/// What is written to a store: records by a seed, under the options of a chain.
#[derive(Clone, Copy)]
pub struct History {
    pub seed: u64,
    pub chain: u64,
    pub second: Second,
}

/// Key whose value is the number of the last record, in the default keyspace.
const MARKER: &str = "~record";
/// The keyspace that comes and goes.
const PASSING: &str = "passing";
const KEYSPACES: [&str; 3] = ["default", "packed", PASSING];

/// What a record does.
enum Record {
    /// A batch over the keyspaces: (keyspace, key, value or removal).
    Batch(Vec<(usize, String, Option<Vec<u8>>)>, Durability),
    /// Drops the passing keyspace and creates it anew.
    Renew,
}

type State = [BTreeMap<String, Vec<u8>>; 3];

fn apply(state: &mut State, record: Record) {
    match record {
        Record::Renew => state[2].clear(),
        Record::Batch(ops, _) => {
            for (keyspace, key, value) in ops {
                match value {
                    Some(value) => drop(state[keyspace].insert(key, value)),
                    None => drop(state[keyspace].remove(&key)),
                }
            }
        }
    }
}

impl History {
    /// The options, and their name.
    #[must_use]
    pub fn shape(&self) -> (String, Options) {
        let (name, mut options) = match self.chain.checked_sub(1) {
            None => ("small levels".into(), small_levels()),
            Some(number) => option_sets::standard(number),
        };
        options.tree.placer = self.second.placer().unwrap_or(options.tree.placer);
        (name, options)
    }

    /// What opens the store. A second device that comes and goes it has to find by itself.
    fn builder(&self, dirs: &Dirs) -> Builder {
        let given = dirs.other.iter().filter(|_| self.second.is_given());
        given.fold(Db::builder(&dirs.home), Builder::device).options(self.shape().1)
    }

    /// Opens the store.
    ///
    /// # Panics
    ///
    /// Panics if that fails.
    #[must_use]
    pub fn open(&self, dirs: &Dirs) -> Db {
        self.builder(dirs).open().unwrap()
    }

    /// Record `n`: the same for parent and child.
    fn record(&self, n: u64) -> Record {
        let mut random = Rng::new(self.seed ^ n.wrapping_mul(0x2545_f491_4f6c_dd1d));
        if n % 150 == 75 {
            return Record::Renew;
        }
        let mut ops = Vec::new();
        for _ in 0..1 + random.below(4) {
            let (keyspace, key) = (random.below(3), format!("key{:04}", random.below(700)));
            let value =
                (random.below(4) > 0).then(|| format!("{n}:").into_bytes().repeat(1 + random.below(40)));
            ops.push((keyspace, key, value));
        }
        let durability = if random.below(20) == 0 { Durability::Synced } else { Durability::Buffered };
        Record::Batch(ops, durability)
    }

    /// The last record that is durable once record `n` has been acknowledged; 0 if none is.
    #[must_use]
    pub fn durable(&self, n: u64) -> u64 {
        let durable_by = |n| match self.record(n) {
            Record::Batch(_, Durability::Synced) => Some(n),
            // The drop is, and with it all before; the number of the record is a buffered write behind it.
            Record::Renew => Some(n - 1),
            Record::Batch(..) => None,
        };
        (1..=n).rev().find_map(durable_by).unwrap_or(0)
    }
}

/// The record that the store says is its last.
///
/// # Panics
///
/// Panics if it says nothing that can be read.
#[must_use]
pub fn last_record(db: &Db) -> u64 {
    db.get(MARKER).unwrap().map_or(0, |value| std::str::from_utf8(&value).unwrap().parse().unwrap())
}

/// Runs as a child, if the program was started as one, until it is killed. Returns whether it was a child.
///
/// Whoever runs the suite calls this in the test `kill::child`, or first in `main`.
pub fn child() -> bool {
    let (Ok(dir), Some(seed), Some(chain)) =
        (std::env::var(CHILD_DIR), number(CHILD_SEED), number(CHILD_CHAIN))
    else {
        return false;
    };
    let name = std::env::var(CHILD_SECOND).unwrap_or_default();
    let history = History { seed, chain, second: Second::find(&name).unwrap_or(Second::None) };
    let dirs = Dirs { home: dir.into(), other: std::env::var_os(CHILD_OTHER).map(PathBuf::from) };
    let db = history.open(&dirs);
    if let (Second::Passing, Some(parent)) = (history.second, dirs.other) {
        second::start_passing(&db, parent, seed ^ last_record(&db));
    }
    let lz4 = KeyspaceOptions { compression: Compression::Lz4, ..KeyspaceOptions::default() };
    let packed = db.keyspace_with(KEYSPACES[1], lz4).unwrap();
    let mut passing = db.keyspace(PASSING).unwrap();
    let mut out = std::io::stdout();
    for n in last_record(&db) + 1.. {
        let mut batch = WriteBatch::new();
        let mut asked = Durability::Buffered;
        match history.record(n) {
            Record::Renew => {
                db.drop_keyspace(PASSING).unwrap();
                passing = db.keyspace(PASSING).unwrap();
            }
            Record::Batch(ops, durability) => {
                asked = durability;
                for (keyspace, key, value) in ops {
                    let keyspace = [None, Some(&packed), Some(&passing)][keyspace];
                    match (keyspace, value) {
                        (None, Some(value)) => batch.put(key, value),
                        (None, None) => batch.delete(key),
                        (Some(keyspace), Some(value)) => batch.put_in(keyspace, key, value),
                        (Some(keyspace), None) => batch.delete_in(keyspace, key),
                    };
                }
            }
        }
        batch.put(MARKER, n.to_string());
        db.write_with(batch, asked).unwrap();
        // The parent is gone when nobody reads.
        if out.write_all(format!("ack {n}\n").as_bytes()).and_then(|()| out.flush()).is_err() {
            return true;
        }
    }
    true
}

/// A writing process. It is killed when this is dropped.
pub struct Writer(Child);

impl Writer {
    /// Starts one for the store in `dirs`. Only those that are killed may say what they think of errors.
    #[must_use]
    pub fn start(dirs: &Dirs, history: &History, says_errors: bool) -> Self {
        let child = Command::new(std::env::current_exe().unwrap())
            .envs(dirs.other.iter().map(|other| (CHILD_OTHER, other)))
            .env(CHILD_SECOND, history.second.name())
            // What the harness of tests needs; others do not look at it.
            .args(["kill::child", "--exact", "--nocapture", "--test-threads=1"])
            .env(CHILD_DIR, &dirs.home)
            .env(CHILD_SEED, history.seed.to_string())
            .env(CHILD_CHAIN, history.chain.to_string())
            .stdout(Stdio::piped())
            .stderr(if says_errors { Stdio::inherit() } else { Stdio::null() })
            .spawn();
        Self(child.unwrap())
    }

    /// The numbers of the records that it acknowledges, until it ends. What the pipe still holds then was acknowledged, too,
    /// but for a line cut short.
    pub fn acknowledgements(&mut self) -> impl Iterator<Item = u64> + use<> {
        // Others write to the pipe, too: the harness of tests, without ending its line.
        let number = |line: String| line.split_once("ack ").and_then(|(_, n)| n.parse().ok());
        BufReader::new(self.0.stdout.take().unwrap()).lines().filter_map(move |line| number(line.unwrap()))
    }

    /// Kills it.
    pub fn kill(&mut self) {
        self.0.kill().unwrap();
    }

    /// Waits until it has ended, and kills it if that takes longer than this. Returns how it ended.
    pub fn wait(&mut self, patience: Duration) -> ExitStatus {
        let started = Instant::now();
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status;
            }
            if started.elapsed() > patience {
                self.kill();
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// When a writer is ended.
#[derive(Debug)]
pub enum When {
    AfterAcks(u64),
    AfterTime(Duration),
}

impl When {
    /// Often in the middle of opening.
    pub fn draw(random: &mut Rng) -> Self {
        match random.below(4) {
            0 => Self::AfterTime(Duration::from_micros(random.below(20_000) as u64)),
            _ => Self::AfterAcks(random.below(900) as u64),
        }
    }

    /// Waits for it. The last record acknowledged until then.
    ///
    /// # Panics
    ///
    /// Panics if the writer has ended by itself.
    pub fn wait(&self, acknowledgements: &mut impl Iterator<Item = u64>) -> Option<u64> {
        match self {
            Self::AfterAcks(acks) => {
                let next = |_| acknowledgements.next().expect("the writer goes on until it is ended");
                (0..*acks).map(next).last()
            }
            Self::AfterTime(time) => {
                std::thread::sleep(*time);
                None
            }
        }
    }
}

/// Holds stores against the history, one moment after the other.
pub struct Judge {
    history: History,
    state: State,
    /// The record after which `state` is.
    at: u64,
}

impl Judge {
    #[must_use]
    pub fn new(history: History) -> Self {
        Self { history, state: State::default(), at: 0 }
    }

    /// The state after record `n`.
    fn advance(&mut self, n: u64) {
        if n < self.at {
            *self = Self::new(self.history);
        }
        while self.at < n {
            self.at += 1;
            apply(&mut self.state, self.history.record(self.at));
        }
    }

    /// Opens the store and compares all of it with the state after its last record, one of `expected`, which it returns.
    ///
    /// # Panics
    ///
    /// Panics if the store is not as it must be.
    pub fn judge(&mut self, dirs: &Dirs, expected: RangeInclusive<u64>, random: &mut Rng) -> u64 {
        let check_last =
            |last| assert!(expected.contains(&last), "the last record is {last}, not in {expected:?}");
        if random.below(4) == 0 && *expected.start() > 0 {
            let reader = self.history.builder(dirs).read_only().open().unwrap();
            check_last(last_record(&reader));
        }
        let db = self.history.open(dirs);
        let last = last_record(&db);
        check_last(last);
        self.advance(last);
        check_state(&db, &self.state, matches!(self.history.record(last + 1), Record::Renew));
        let report = db.verify().unwrap();
        assert!(report.problems.is_empty(), "{report:?}");
        if self.history.second != Second::None && random.below(4) == 0 {
            second::check_packs(&db);
        }
        if random.below(3) == 0 {
            // Otherwise this handle goes without a word, too.
            db.close().unwrap();
        }
        last
    }
}

/// Compares the whole store with `state`. While the passing keyspace is being dropped and created again, it may be
/// missing, still full, or empty already.
fn check_state(db: &Db, state: &State, renewing: bool) {
    for (name, expected) in KEYSPACES.iter().zip(state) {
        let found: BTreeMap<String, Vec<u8>> = match db.existing_keyspace(name).unwrap() {
            Some(keyspace) => keyspace
                .iter()
                .unwrap()
                .map(|entry| entry.unwrap())
                .map(|(key, value)| (String::from_utf8(key.to_vec()).unwrap(), value.to_vec()))
                .filter(|(key, _)| key != MARKER)
                .collect(),
            None => BTreeMap::new(),
        };
        if renewing && *name == PASSING && found.is_empty() {
            continue;
        }
        assert!(found == *expected, "{name} is not as it was after the last record");
    }
}
