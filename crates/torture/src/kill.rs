//! Kills: a process that is shot at any moment loses nothing that it had acknowledged.
//!
//! The program runs itself as a [`child`], which writes numbered records and tells each one's number, by a pipe, once the
//! store has taken it. The parent kills it after a seeded number of acknowledgements or a seeded while, opens the store,
//! and compares all of it with the state after the record that the store says is its last: that one was acknowledged, or
//! is the one that was under way. Then the next child goes on in the same directory. A case is such a chain of kills; its
//! seed makes the records and the times, while what a kill meets is chance.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use terrace::{Compression, Db, Durability, ErrorKind, KeyspaceOptions, Options, WriteBatch};

use crate::options::small_levels;
use crate::seed::{Rng, number};
use crate::shapes;
use crate::suite::{Case, Cases, Round, Share, Suite, Tally, within};

/// Set in a child: the directory of its store.
const CHILD_DIR: &str = "TERRACE_KILL_CHILD_DIR";
/// Set in a child: the seed of the history.
const CHILD_SEED: &str = "TERRACE_KILL_CHILD_SEED";
/// Set in a child: the number of its chain, which tells the options.
const CHILD_CHAIN: &str = "TERRACE_KILL_CHILD_CHAIN";

/// Chains of a whole round.
const CHAINS: u64 = 25;

/// The suite, with so many kills in a chain.
pub struct Kill {
    pub kills: u64,
}

/// The whole suite.
pub static KILL: Kill = Kill { kills: 40 };

impl Suite for Kill {
    fn name(&self) -> &'static str {
        "kill"
    }

    fn about(&self) -> &'static str {
        "a process that writes is killed again and again, by SIGKILL"
    }

    fn cases(&self, round: &Round) -> Cases {
        let (seed, kills) = (round.seed, self.kills);
        let chains = if round.share == Share::All { CHAINS } else { 1 };
        Box::new((0..chains).map(move |number| Box::new(Chain { seed, number, kills }) as Box<dyn Case>))
    }

    fn conclude(&self, tally: &Tally) -> Result<(), String> {
        if self.kills < 10 {
            return Ok(());
        }
        tally.require(&["records"], tally.get("kills") * 100)?;
        tally.require(&["kills of stores with packs"], tally.get("kills") / 2)
    }
}

/// A store, and the processes that write to it one after the other.
struct Chain {
    seed: u64,
    number: u64,
    kills: u64,
}

/// The options of a chain, and their name.
fn shape(chain: u64) -> (String, Options) {
    match chain.checked_sub(1) {
        None => ("small levels".into(), small_levels()),
        Some(number) => shapes::standard(number),
    }
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

/// Record `n` of the history: the same for parent and child.
fn record(seed: u64, n: u64) -> Record {
    let mut random = Rng::new(seed ^ n.wrapping_mul(0x2545_f491_4f6c_dd1d));
    if n % 150 == 75 {
        return Record::Renew;
    }
    let mut ops = Vec::new();
    for _ in 0..1 + random.below(4) {
        let (keyspace, key) = (random.below(3), format!("key{:04}", random.below(700)));
        let value = (random.below(4) > 0).then(|| format!("{n}:").into_bytes().repeat(1 + random.below(40)));
        ops.push((keyspace, key, value));
    }
    let durability = if random.below(20) == 0 { Durability::Synced } else { Durability::Buffered };
    Record::Batch(ops, durability)
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

fn open(dir: &Path, chain: u64) -> Db {
    Db::builder(dir).options(shape(chain).1).open().unwrap()
}

fn last_record(db: &Db) -> u64 {
    db.get(MARKER).unwrap().map_or(0, |value| std::str::from_utf8(&value).unwrap().parse().unwrap())
}

/// Lives as a child, if the program runs as one, until it is killed. Tells whether it was one.
///
/// Whoever runs the suite calls this in the test `child`, or first in `main`.
pub fn child() -> bool {
    let (Ok(dir), Some(seed), Some(chain)) =
        (std::env::var(CHILD_DIR), number(CHILD_SEED), number(CHILD_CHAIN))
    else {
        return false;
    };
    let db = open(Path::new(&dir), chain);
    let lz4 = KeyspaceOptions { compression: Compression::Lz4, ..KeyspaceOptions::default() };
    let packed = db.keyspace_with(KEYSPACES[1], lz4).unwrap();
    let mut passing = db.keyspace(PASSING).unwrap();
    let mut out = std::io::stdout();
    for n in last_record(&db) + 1.. {
        let mut batch = WriteBatch::new();
        let mut asked = Durability::Buffered;
        match record(seed, n) {
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

/// A process that does not outlive whoever holds it.
struct Held(Child);

impl Held {
    fn start(dir: &Path, seed: u64, chain: u64) -> Self {
        let child = Command::new(std::env::current_exe().unwrap())
            // What the harness of tests needs; others do not look at it.
            .args(["child", "--exact", "--nocapture", "--test-threads=1"])
            .env(CHILD_DIR, dir)
            .env(CHILD_SEED, seed.to_string())
            .env(CHILD_CHAIN, chain.to_string())
            .stdout(Stdio::piped())
            .spawn();
        Self(child.unwrap())
    }

    fn lines(&mut self) -> impl Iterator<Item = std::io::Result<String>> + use<> {
        BufReader::new(self.0.stdout.take().unwrap()).lines()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[derive(Debug)]
enum When {
    AfterAcks(u64),
    AfterTime(Duration),
}

impl Chain {
    fn own_seed(&self) -> u64 {
        self.seed ^ self.number << 32
    }

    /// Runs a child until it has acknowledged so many records or the time is over, kills it, and returns the number of
    /// the last record that it acknowledged, if any.
    fn run_and_kill(&self, dir: &Path, when: &When) -> Option<u64> {
        let mut child = Held::start(dir, self.own_seed(), self.number);
        // Others write to the pipe, too: the harness of tests, without ending its line.
        let acknowledgements = child.lines().map(|line| {
            let line = line.unwrap();
            line.split_once("ack ").map(|(_, n)| n.parse::<u64>().unwrap())
        });
        let mut acknowledgements = acknowledgements.flatten();
        let mut last = None;
        match when {
            When::AfterAcks(acks) => {
                for _ in 0..*acks {
                    let next = acknowledgements.next();
                    last = Some(next.expect("the child goes on until it is killed"));
                }
            }
            When::AfterTime(time) => std::thread::sleep(*time),
        }
        child.0.kill().unwrap();
        // What the pipe still holds was acknowledged, too, but for a line cut short: kills come between system calls.
        last = acknowledgements.last().or(last);
        let status = child.0.wait().unwrap();
        assert!(!status.success() && status.code().is_none(), "the child ended by itself: {status}");
        last
    }

    /// Opens the store after a kill and compares it with the state after its last record, which it returns.
    fn judge(&self, dir: &Path, mut at: u64, acknowledged: u64, state: &mut State, random: &mut Rng) -> u64 {
        assert!(acknowledged >= at, "record {acknowledged} again, after {at}");
        if random.below(4) == 0 && acknowledged > 0 {
            let reader = Db::builder(dir).options(shape(self.number).1).read_only().open().unwrap();
            check_last(last_record(&reader), acknowledged);
        }
        let db = open(dir, self.number);
        let last = last_record(&db);
        check_last(last, acknowledged);
        let seed = self.own_seed();
        while at < last {
            at += 1;
            apply(state, record(seed, at));
        }
        check_state(&db, state, matches!(record(seed, at + 1), Record::Renew));
        let report = db.verify().unwrap();
        assert!(report.problems.is_empty(), "{report:?}");
        if random.below(3) == 0 {
            // Otherwise the parent's handle goes without a word, too.
            db.close().unwrap();
        }
        last
    }
}

impl Case for Chain {
    fn name(&self) -> String {
        format!("chain {}", self.number)
    }

    fn options(&self) -> String {
        let (name, options) = shape(self.number);
        format!("{name}: {options:?}")
    }

    fn run(&self, tally: &Tally) {
        let mut random = Rng::new(self.own_seed());
        let dir = tempfile::tempdir().unwrap();
        let (mut state, mut at) = (State::default(), 0);
        for kill in 0..self.kills {
            let when = match random.below(4) {
                // Often in the middle of opening.
                0 => When::AfterTime(Duration::from_micros(random.below(20_000) as u64)),
                _ => When::AfterAcks(random.below(900) as u64),
            };
            let last = within(
                || format!("kill {kill}, {when:?}"),
                || {
                    let acknowledged = self.run_and_kill(dir.path(), &when).unwrap_or(at);
                    self.judge(dir.path(), at, acknowledged, &mut state, &mut random)
                },
            );
            tally.add("kills", 1);
            tally.add("records", last - at);
            at = last;
            let mut files = dir.path().read_dir().unwrap();
            let has_packs = files.any(|file| file.unwrap().path().extension().is_some_and(|is| is == "pack"));
            tally.add("kills of stores with packs", u64::from(has_packs));
        }
    }
}

fn check_last(last: u64, acknowledged: u64) {
    let right = last == acknowledged || last == acknowledged + 1;
    assert!(right, "the last record is {last}, {acknowledged} was acknowledged");
}

/// Compares the whole store with `state`. While a renewal is under way, the passing keyspace may be missing, or still
/// full, or empty already.
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

/// A store is free for others once the process that had it is killed, and not before.
///
/// # Panics
///
/// Panics if that is not so.
pub fn check_that_kills_leave_no_lock() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = Held::start(dir.path(), 7, 0);
    assert!(child.lines().any(|line| line.unwrap().contains("ack ")), "a child that writes");
    assert_eq!(Db::open(dir.path()).unwrap_err().kind(), ErrorKind::Busy);
    drop(child);
    Db::open(dir.path()).unwrap();
}
