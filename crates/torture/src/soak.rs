//! The suite `soak`: a long mixed load, after which all resources are returned.
//!
//! It runs on real files and real threads. One writer is a [`counter`](crate::counter). Another puts, overwrites,
//! deletes and compacts. A reader checks moments of the store and holds on to some. At the end the store must be at
//! its last moment, and its files must be not much larger than their live data. Once it is closed, there are as many
//! descriptors and threads as before, and memory is within bounds. Other cases open, load and close a store again and
//! again, in the middle of its jobs.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use terrace::{Db, Options, Snapshot, WriteBatch};

use crate::counter::{moment, write_batch};
use crate::options::tiny;
use crate::seed::Rng;
use crate::suite::{Case, Cases, Round, Share, Suite, Tally};

/// Batches of the counting writer in a sample, in a brief one, and in a whole round.
const BATCHES_SAMPLED: u64 = 1_000;
const BATCHES_BRIEF: u64 = 300;
const BATCHES: u64 = 200_000;

/// Openings of a case, and cases of them in a whole round.
const OPENINGS: u64 = 50;
const OPENING_CASES: u64 = 20;

/// There must be more than this of everything that a round has.
const LEAST: u64 = 20;

/// Memory that a closed store may have left with the allocator, in bytes.
const MEMORY_LEFT_MAX: u64 = 96 << 20;

/// How often it is looked whether background threads have compacted enough by themselves.
const LOOKS: u32 = 1000;
const LOOK: Duration = Duration::from_millis(10);

/// How long threads that are on their way out, and holes, are waited for, on a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_secs(600);

/// Waits until `is_so`, or until there is no more patience.
fn eventually(is_so: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_so() && started.elapsed() < PATIENCE {
        thread::sleep(LOOK);
    }
}

/// The suite.
pub struct Soak;

impl Suite for Soak {
    fn name(&self) -> &'static str {
        "soak"
    }

    fn about(&self) -> &'static str {
        "mixed load with snapshots, and many openings; then descriptors, threads, memory and space are as before"
    }

    fn hindrance(&self) -> Option<String> {
        (!Path::new("/proc/self/fd").is_dir())
            .then(|| "there is no /proc to count descriptors and threads by".into())
    }

    fn cases(&self, round: &Round) -> Cases {
        let seed = round.seed;
        let (batches, openings) = match round.share {
            Share::All => (BATCHES, OPENING_CASES),
            Share::Sample => (BATCHES_SAMPLED, 1),
            Share::Brief => (BATCHES_BRIEF, 1),
        };
        let openings = (0..openings).map(move |number| Box::new(Openings { seed, number }) as Box<dyn Case>);
        Box::new(std::iter::once(Box::new(Load { seed, batches }) as Box<dyn Case>).chain(openings))
    }

    fn patience(&self) -> Duration {
        Duration::from_secs(4 * 3600)
    }

    /// Only one case at a time: the resources of the whole process are counted.
    fn is_alone(&self) -> bool {
        true
    }

    fn conclude(&self, tally: &Tally) -> Result<(), String> {
        tally.require(&["batches", "moments checked", "compactions", "openings"], LEAST)
    }
}

/// What this process has taken of the machine.
#[derive(Debug)]
struct Taken {
    descriptors: usize,
    threads: usize,
    /// Resident, in bytes.
    memory: u64,
}

impl Taken {
    fn now() -> Self {
        let count = |place: &str| fs::read_dir(place).unwrap().count();
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let pinned = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        let kib: u64 = pinned.trim().trim_end_matches(" kB").parse().unwrap();
        Self { descriptors: count("/proc/self/fd"), threads: count("/proc/self/task"), memory: kib << 10 }
    }

    /// Checks that no more is taken than this.
    fn check_given_back(&self) {
        let are_gone = |now: &Self| now.descriptors <= self.descriptors && now.threads <= self.threads;
        eventually(|| are_gone(&Self::now()));
        let now = Self::now();
        let is_given_back = are_gone(&now) && now.memory <= self.memory + MEMORY_LEFT_MAX;
        assert!(is_given_back, "before there were {self:?}, now there are {now:?}");
    }
}

/// Bytes that the files below `dir` take on the device; what vanishes meanwhile counts as nothing.
fn allocated_bytes(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    entries.filter_map(|entry| entry.metadata().ok()).map(|metadata| metadata.blocks() * 512).sum()
}

/// Options under which a load of some megabytes keeps every job busy.
fn small() -> Options {
    Options { memory_bytes: Some(16 << 20), memtable_bytes: 128 << 10, wal_bytes_max: 1 << 20, ..tiny() }
}

/// A mixed load of this many batches.
struct Load {
    seed: u64,
    batches: u64,
}

impl Load {
    /// Puts, overwrites and deletes in a keyspace of its own, until `over`.
    fn disturb(&self, db: &Db, over: &AtomicBool) {
        let mut rng = Rng::new(self.seed);
        let space = db.keyspace("bulk").unwrap();
        while !over.load(Ordering::Relaxed) {
            let mut batch = WriteBatch::new();
            for _ in 0..20 {
                let key = format!("{:06}", rng.below(20_000));
                match rng.below(10) {
                    0..7 => batch.put_in(&space, key, vec![rng.draw() as u8; 50 + rng.below(400)]),
                    _ => batch.delete_in(&space, key),
                };
            }
            if rng.percent(1) {
                let start = rng.below(20_000);
                batch.delete_range_in(&space, format!("{start:06}")..format!("{:06}", start + 500));
            }
            db.write(batch).unwrap();
            match rng.below(2000) {
                0 => space.compact_range("005".."015").unwrap(),
                1 => db.flush().unwrap(),
                _ => {}
            }
        }
    }

    /// Checks moments, and holds on to some of them, until `over`.
    fn read(&self, db: &Db, over: &AtomicBool, checked: &AtomicU64) {
        let mut rng = Rng::new(!self.seed);
        let mut held: Vec<(u64, Snapshot)> = Vec::new();
        let mut newest = 0;
        while !over.load(Ordering::Relaxed) {
            let snapshot = db.snapshot();
            let at = moment(db, &snapshot);
            assert!(at >= newest, "moment {at} after {newest}");
            newest = at;
            held.push((at, snapshot));
            if held.len() > 8 {
                let (at, snapshot) = held.swap_remove(rng.below(held.len()));
                assert_eq!(moment(db, &snapshot), at, "a snapshot has moved");
            }
            checked.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Case for Load {
    fn name(&self) -> String {
        "load".into()
    }

    fn options(&self) -> String {
        format!("{} batches, {:?}", self.batches, small())
    }

    fn run(&self, tally: &Tally) {
        let dir = tempfile::tempdir().unwrap();
        let before = Taken::now();
        let db = Db::builder(dir.path()).options(small()).open().unwrap();
        db.keyspace("other").unwrap();
        let (over, checked) = (AtomicBool::new(false), AtomicU64::new(0));
        thread::scope(|scope| {
            let disturb = scope.spawn(|| self.disturb(&db, &over));
            let read = scope.spawn(|| self.read(&db, &over, &checked));
            let is_left_alone = || disturb.is_finished() || read.is_finished();
            let written =
                (1..=self.batches).take_while(|_| !is_left_alone()).try_for_each(|n| write_batch(&db, n));
            // Other work on the machine holds compactions and the reader up: the load goes on until there was enough of both.
            let is_enough = || db.stats().compaction.jobs > LEAST && checked.load(Ordering::Relaxed) > LEAST;
            for look in 0.. {
                if is_enough() || is_left_alone() {
                    break;
                } else if look < LOOKS {
                    thread::sleep(LOOK);
                } else {
                    // Background threads get next to no processor.
                    db.compact().unwrap();
                }
            }
            over.store(true, Ordering::Relaxed);
            written.unwrap();
        });
        assert_eq!(moment(&db, &db.snapshot()), self.batches);
        tally.add("batches", self.batches);
        tally.add("moments checked", checked.into_inner());
        tally.add("compactions", db.stats().compaction.jobs);
        db.compact().unwrap();
        db.wait_idle().unwrap();
        assert!(db.verify().unwrap().problems.is_empty());
        let live = db.stats().space.live_bytes;
        // Dead tables are left up to a 32nd part, and so are byte ranges that are too short for a hole. The log, its
        // preallocated part and recycled files also take space.
        let fitting = live + live / 8 + 2 * small().wal_bytes_max + (4 << 20);
        // Holes are punched at leisure.
        eventually(|| allocated_bytes(dir.path()) <= fitting);
        db.close().unwrap();
        let allocated = allocated_bytes(dir.path());
        assert!(allocated <= fitting, "{allocated} bytes are allocated for {live} that live");
        before.check_given_back();
    }
}

/// A store that is opened, loaded and closed many times.
struct Openings {
    seed: u64,
    number: u64,
}

impl Case for Openings {
    fn name(&self) -> String {
        format!("openings/{}", self.number)
    }

    fn options(&self) -> String {
        format!("{:?}", tiny())
    }

    fn run(&self, tally: &Tally) {
        let dir = tempfile::tempdir().unwrap();
        let before = Taken::now();
        let mut rng = Rng::new(self.seed ^ self.number << 32);
        let mut written = 0;
        for _ in 0..OPENINGS {
            let db = Db::builder(dir.path()).options(tiny()).open().unwrap();
            db.keyspace("other").unwrap();
            assert_eq!(moment(&db, &db.snapshot()), written, "the moment when the store was closed");
            for _ in 0..rng.below(300) {
                written += 1;
                write_batch(&db, written).unwrap();
            }
            match rng.below(3) {
                0 => drop(db),
                1 => db.close().unwrap(),
                // The holders go on reading their moments.
                _ => {
                    let snapshot = db.snapshot();
                    let compaction = thread::scope(|scope| {
                        let compaction = scope.spawn(|| db.compact());
                        assert_eq!(moment(&db, &snapshot), written);
                        compaction.join().unwrap()
                    });
                    compaction.unwrap();
                    drop(snapshot);
                    db.close().unwrap();
                }
            }
            tally.add("openings", 1);
        }
        before.check_given_back();
    }
}
