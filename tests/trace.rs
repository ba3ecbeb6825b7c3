//! Traces: which files each action touches, in which order, and how many barriers it costs: `tests/trace/*.txt`.
//!
//! The engine runs as one deterministic schedule; every call that changes a file or makes a change durable is a line.
//! Before the comparison each trace is checked against the rules that make a crash harmless, so that rewriting the
//! files (`UPDATE=1`) cannot accept a trace that breaks them:
//!
//! 1. a pack that was written is synced, and the directory after the pack had its name, before the manifest is
//!    written;
//! 2. every write to the manifest is followed by its sync before anything is removed;
//! 3. CURRENT is replaced only by a synced file, and after the sync of the directory that names its manifest;
//! 4. a file is removed, and a hole punched, only after the last write to the manifest or to CURRENT is durable;
//! 5. a segment of the log is written only once its name is durable;
//! 6. the directory is synced only where a name was added, changed or removed.
//!
//! The tests themselves state what a job costs: a flush and a compaction have a barrier for each pack and one for the
//! edit, a move only that of the edit. The names of packs are made durable before they are needed, by a thread that
//! the lines name.

#![expect(clippy::unwrap_used, reason = "a failure of a test's own calls is a failure of the test")]

mod rules;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::common::tiny;
use rules::{Job, jobs};
use terrace::env::Env;
use terrace::env::recording::RecordingEnv;
use terrace::env::simulated::{FaultError, FaultRule, FaultTarget, Operation, SimConfig, SimEnv};
use terrace::tree::{Flushes, PackLayout};
use terrace::{Db, Durability, KeyspaceOptions, Options, WriteBatch};
use terrace_torture::TreeParts as _;

/// An action under observation.
struct Stage {
    disk: Arc<SimEnv>,
    record: Arc<RecordingEnv>,
    options: Options,
}

impl Stage {
    fn open(&self) -> Db {
        Db::builder("/db").env(self.record.clone()).options(self.options.clone()).open().unwrap()
    }

    /// Forgets what was done to get here.
    fn begin(&self) {
        let _ = self.record.take();
    }

    /// What was done since then. What closing does is not shown.
    fn end(&self, db: Db) -> String {
        let text = self.record.take();
        db.close().unwrap();
        text
    }
}

/// Options under which nothing happens unless it is asked for. Values, some of which are large, stay with their keys.
fn quiet() -> Options {
    let mut options = tiny();
    options.keyspace.separate_from = None;
    options.memtable_bytes = 256 << 10;
    *options.tree.l0_trigger() = 100;
    options.tree.governor().l0_slow = 100;
    options.tree.governor().l0_stop = 200;
    options.tree.tables().table_bytes = 64 << 10;
    *options.tree.level1_bytes() = 1 << 20;
    options
}

/// Runs `action`, which returns the lines to show, and compares them with the file `name`. Returns the jobs that they have.
fn trace(name: &str, options: Options, action: impl FnOnce(&Stage) -> String + Send + 'static) -> Vec<Job> {
    let config = SimConfig { preemption_percent: 0, ..SimConfig::default() };
    let lines = SimEnv::run(config, move |disk| {
        let record = RecordingEnv::naming_threads(disk.clone());
        action(&Stage { disk, record, options })
    });
    rules::check(name, &lines);
    let text = format!("{lines}\n{}", rules::barriers(&lines));
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/trace").join(format!("{name}.txt"));
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, text).unwrap();
    } else {
        let golden = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(golden == text, "{name} has changed (UPDATE=1 accepts it). It was\n{golden}\nand is\n{text}");
    }
    jobs(&lines)
}

/// A job that has nothing to wait for but its packs and its edit.
fn job_of(packs: usize) -> Job {
    Job { packs, ..Job::default() }
}

/// As [`quiet`], with memtables of several packs.
fn large() -> Options {
    let mut options = quiet();
    (options.memtable_bytes, options.wal_bytes_max) = (8 << 20, 64 << 20);
    (options.memory_bytes, *options.tree.level1_bytes()) = (Some(64 << 20), 64 << 20);
    options
}

/// Puts what takes more than a full pack.
fn put_large(db: &Db) {
    for n in 0u8..40 {
        db.put(vec![n], vec![n; 40_000]).unwrap();
    }
}

/// Puts a few entries into a new table of level 0.
fn flush_entries(db: &Db, round: u32) {
    for n in 0..20 {
        db.put(format!("{n:02}"), format!("{round}")).unwrap();
    }
    db.flush().unwrap();
    db.wait_idle().unwrap();
}

#[test]
fn creation() {
    trace("creation", quiet(), |stage| {
        let db = stage.open();
        stage.end(db)
    });
}

#[test]
fn opening_and_closing_without_a_write() {
    trace("opening", quiet(), |stage| {
        let db = stage.open();
        db.put("key", "value").unwrap();
        db.close().unwrap();
        stage.begin();
        stage.open().close().unwrap();
        stage.record.take()
    });
}

#[test]
fn opening_after_a_power_cut() {
    trace("opening-torn", quiet(), |stage| {
        let db = stage.open();
        db.put("synced", "1").unwrap();
        db.sync().unwrap();
        db.put("torn", vec![2; 3000]).unwrap();
        db.close().unwrap();
        let (log, len) =
            stage.disk.files().into_iter().find(|(path, _)| path.ends_with("000001.wal")).unwrap();
        stage.disk.truncate(&log, len - 2000).unwrap();
        stage.begin();
        let db = stage.open();
        assert!(db.contains("synced").unwrap() && !db.contains("torn").unwrap());
        stage.end(db)
    });
}

#[test]
fn opening_for_reading() {
    trace("opening-read-only", quiet(), |stage| {
        let db = stage.open();
        flush_entries(&db, 0);
        db.put("in the log", "value").unwrap();
        db.close().unwrap();
        stage.begin();
        let builder = Db::builder("/db").env(stage.record.clone()).options(quiet());
        let db = builder.read_only().open().unwrap();
        assert_eq!(db.iter().unwrap().count(), 21);
        assert!(db.verify().unwrap().problems.is_empty());
        db.close().unwrap();
        stage.record.take()
    });
}

#[test]
fn writes_of_both_durabilities() {
    trace("writes", quiet(), |stage| {
        let db = stage.open();
        stage.begin();
        let write = |key: &str, durability| {
            let mut batch = WriteBatch::new();
            batch.put(key, "value");
            db.write_with(batch, durability).unwrap();
        };
        write("1", Durability::Synced);
        write("2", Durability::Synced);
        write("3", Durability::Buffered);
        write("4", Durability::Buffered);
        write("5", Durability::Synced);
        // Nothing is left to do for this.
        db.sync().unwrap();
        stage.end(db)
    });
}

/// A store whose jobs find what they need: the first flush has had it made.
fn warmed_up(stage: &Stage) -> Db {
    let db = stage.open();
    flush_entries(&db, 0);
    db
}

#[test]
fn a_flush() {
    let jobs = trace("flush", quiet(), |stage| {
        let db = warmed_up(stage);
        stage.begin();
        flush_entries(&db, 1);
        stage.end(db)
    });
    assert_eq!(jobs, [job_of(1)]);
}

/// The values of a flush have a pack of their own, which is durable before the pointers to them are named.
#[test]
fn a_flush_of_values_that_lie_apart() {
    let keyspace = KeyspaceOptions { separate_from: Some(16 << 10), ..KeyspaceOptions::default() };
    let jobs = trace("flush-apart", Options { keyspace, ..quiet() }, |stage| {
        let db = warmed_up(stage);
        db.put("large", vec![7; 40_000]).unwrap();
        stage.begin();
        flush_entries(&db, 1);
        stage.end(db)
    });
    // What the pointers may hide is merged away after it.
    assert_eq!(jobs, [job_of(2), Job { packs: 1, names: 1, log: 0 }]);
}

/// Nothing has been preallocated.
#[test]
fn the_first_flush() {
    let jobs = trace("flush-first", quiet(), |stage| {
        let db = stage.open();
        stage.begin();
        flush_entries(&db, 0);
        stage.end(db)
    });
    assert_eq!(jobs, [Job { names: 1, ..job_of(1) }]);
}

/// A pack is full at a megabyte, but not that of a flush.
#[test]
fn a_flush_of_a_large_memtable() {
    let jobs = trace("flush-large", large(), |stage| {
        let db = warmed_up(stage);
        stage.begin();
        put_large(&db);
        db.flush().unwrap();
        db.wait_idle().unwrap();
        stage.end(db)
    });
    assert_eq!(jobs, [job_of(1)]);
}

#[test]
fn a_flush_that_releases_the_log() {
    let jobs = trace("flush-releasing", quiet(), |stage| {
        let db = warmed_up(stage);
        // More than a segment holds.
        for n in 0..20 {
            db.put(format!("{n:02}"), vec![n; 1000]).unwrap();
        }
        stage.begin();
        db.flush().unwrap();
        db.wait_idle().unwrap();
        stage.end(db)
    });
    assert_eq!(jobs, [job_of(1)]);
}

/// The log of the other one's entries must be durable first: nothing else costs a flush a barrier more.
#[test]
fn a_flush_while_another_keyspace_has_older_entries() {
    let jobs = trace("flush-of-two", quiet(), |stage| {
        let db = warmed_up(stage);
        let other = db.keyspace("other").unwrap();
        db.put("older", "in the first keyspace").unwrap();
        other.put("newer", "in the second").unwrap();
        db.put("newest", "in the first").unwrap();
        stage.begin();
        db.flush().unwrap();
        db.wait_idle().unwrap();
        stage.end(db)
    });
    assert_eq!(jobs, [Job { log: 2, ..job_of(1) }, job_of(1)]);
}

#[test]
fn a_compaction() {
    let jobs = trace("compaction", quiet(), |stage| {
        let db = warmed_up(stage);
        flush_entries(&db, 1);
        stage.begin();
        db.compact().unwrap();
        db.wait_idle().unwrap();
        assert_eq!(db.stats().compaction.jobs, 1);
        stage.end(db)
    });
    assert_eq!(jobs, [job_of(1)]);
}

#[test]
fn a_compaction_that_fills_a_pack() {
    let jobs = trace("compaction-rolled", large(), |stage| {
        let db = warmed_up(stage);
        // The first compaction has made what the second one will need.
        for compactions in [1, 2] {
            put_large(&db);
            db.flush().unwrap();
            db.wait_idle().unwrap();
            stage.begin();
            db.compact().unwrap();
            db.wait_idle().unwrap();
            assert_eq!(db.stats().compaction.jobs, compactions);
        }
        stage.end(db)
    });
    assert_eq!(jobs, [job_of(2)]);
}

#[test]
fn an_ingest() {
    let jobs = trace("ingest", quiet(), |stage| {
        let db = warmed_up(stage);
        db.put("30", "in memory").unwrap();
        stage.begin();
        let mut ingest = db.ingest().unwrap();
        for n in 20..40 {
            ingest.push(format!("{n}"), "from outside").unwrap();
        }
        ingest.finish().unwrap();
        db.wait_idle().unwrap();
        stage.end(db)
    });
    // First what is in memory, which is older; the log has what the manifest must not overtake.
    assert_eq!(jobs, [job_of(1), Job { log: 1, ..job_of(1) }]);
}

#[test]
fn a_checkpoint() {
    let jobs = trace("checkpoint", quiet(), |stage| {
        let db = warmed_up(stage);
        db.put("key", "in the log").unwrap();
        stage.begin();
        db.checkpoint("/copy").unwrap();
        stage.end(db)
    });
    assert_eq!(jobs, []);
}

/// Dead files take the names of preallocated packs, and keep their bytes until a job overwrites them.
#[test]
fn packs_are_preallocated_from_dead_ones() {
    trace("preallocate", large(), |stage| {
        let db = stage.open();
        let round = |value: u8| {
            for n in 0u8..4 {
                db.put([n], vec![value; 100_000]).unwrap();
            }
            db.compact().unwrap();
            db.wait_idle().unwrap();
        };
        let is_taken =
            |line: &str| line.starts_with("rename") && line.ends_with(".pack by terrace-preallocate");
        let rounds = (0..10).map(|value| {
            stage.begin();
            round(value);
            stage.record.take()
        });
        let text = rounds.into_iter().find(|text| text.lines().any(is_taken)).unwrap();
        let space = db.stats().space;
        let kept = space.total_bytes - space.live_bytes - space.dead_bytes - space.wal_bytes;
        assert!(kept > 0 && space.preallocated_files > 0, "{space:?}");
        db.close().unwrap();
        let files = stage.disk.files();
        let packs = files.iter().filter(|(path, _)| path.extension().is_some_and(|is| is == "pack"));
        assert_eq!(packs.count() as u64, space.pack_files);
        text
    });
}

#[test]
fn a_compaction_into_files_of_one_table() {
    let mut options = quiet();
    options.tree.files.packs = PackLayout::OneTable;
    options.tree.tables().flushes = Flushes::Whole;
    options.tree.tables().table_bytes = 4 << 10;
    let jobs = trace("compaction-one-table", options, |stage| {
        let db = stage.open();
        for round in 0..2 {
            for n in 0..20 {
                db.put(format!("{n:02}"), vec![round; 500]).unwrap();
            }
            db.flush().unwrap();
        }
        db.wait_idle().unwrap();
        stage.begin();
        db.compact().unwrap();
        assert_eq!(db.stats().compaction.jobs, 1);
        stage.end(db)
    }); // As LevelDB does: the names once.
    assert_eq!(jobs, [Job { names: 1, ..job_of(3) }]);
}

#[test]
fn a_compaction_that_leaves_nothing() {
    let jobs = trace("compaction-to-nothing", quiet(), |stage| {
        let db = stage.open();
        flush_entries(&db, 0);
        for n in 0..20 {
            db.delete(format!("{n:02}")).unwrap();
        }
        db.flush().unwrap();
        db.wait_idle().unwrap();
        stage.begin();
        db.compact().unwrap();
        db.wait_idle().unwrap();
        assert_eq!(db.stats().compaction.jobs, 1);
        stage.end(db)
    });
    assert_eq!(jobs, [job_of(0)]);
}

/// An iterator holds them until the edit that drops them is long durable.
#[test]
fn neighbouring_tables_that_die_in_a_pack_leave_one_hole() {
    let mut options = Options { memtable_bytes: 1 << 20, memory_bytes: Some(8 << 20), ..quiet() };
    options.tree.tables().table_bytes = 16 << 10;
    options.wal_bytes_max = 4 << 20;
    trace("punch", options, |stage| {
        let db = stage.open();
        let put = |keys: std::ops::Range<u8>, round: u8| {
            keys.for_each(|n| db.put(format!("{n:03}"), vec![round; 4000]).unwrap());
        };
        put(0..60, 1);
        db.compact().unwrap();
        put(20..45, 2);
        db.flush().unwrap();
        db.wait_idle().unwrap();
        stage.begin();
        let iter = db.range("000".."030").unwrap();
        db.compact().unwrap();
        stage.disk.sleep(Duration::from_secs(1));
        assert_eq!(db.stats().punch.punches, 0);
        drop(iter);
        stage.disk.sleep(Duration::from_secs(1));
        assert_eq!(db.stats().punch.punches, 1);
        stage.end(db)
    });
}

/// Two barriers, and no more is written than what lives.
#[test]
fn a_pack_of_which_most_is_dead_is_given_up() {
    let mut options = Options { memtable_bytes: 1 << 20, memory_bytes: Some(8 << 20), ..quiet() };
    options.tree.tables().table_bytes = 16 << 10;
    options.wal_bytes_max = 4 << 20;
    let jobs = trace("rewrite", options, |stage| {
        let target =
            FaultTarget::Matching { operation: Operation::Punch, path_suffix: String::new(), skipped: 0 };
        let error = FaultError::Unsupported;
        stage.disk.fault(FaultRule { target, error, sticky: true, partial: false });
        let db = stage.open();
        let put = |keys: std::ops::Range<u8>, round: u8| {
            keys.for_each(|n| db.put(format!("{n:03}"), vec![round; 4000]).unwrap());
        };
        put(0..60, 1);
        db.compact().unwrap();
        put(0..44, 2);
        db.flush().unwrap();
        db.wait_idle().unwrap();
        let iter = db.range("000".."030").unwrap();
        db.compact().unwrap();
        stage.begin();
        drop(iter);
        stage.disk.sleep(Duration::from_secs(1));
        assert_eq!(db.stats().rewrite.packs, 1);
        stage.end(db)
    });
    assert_eq!(jobs, [job_of(1)]);
}

#[test]
fn a_table_sinks_without_being_rewritten() {
    let mut options = quiet();
    *options.tree.l0_trigger() = 1;
    let jobs = trace("move", options, |stage| {
        let db = stage.open();
        for (moves, key) in [(1, "first"), (2, "second")] {
            stage.begin();
            db.put(key, "value").unwrap();
            db.flush().unwrap();
            db.wait_idle().unwrap();
            assert_eq!(db.stats().compaction.moves, moves);
        }
        stage.end(db)
    });
    assert_eq!(jobs, [job_of(1), job_of(0)]);
}

/// One edit, and as many barriers as for the compaction alone.
#[test]
fn a_compaction_beside_which_a_table_sinks() {
    let mut options = quiet();
    *options.tree.l0_trigger() = 2;
    trace("compaction-and-move", options, |stage| {
        let db = stage.open();
        // Compactions follow flushes at once, so several packs are preallocated.
        for version in 0..6 {
            flush_entries(&db, version);
            db.wait_idle().unwrap();
        }
        db.compact().unwrap();
        flush_entries(&db, 6);
        db.put("apart", "from all others").unwrap();
        stage.disk.sleep(Duration::from_secs(1));
        let before = db.stats().compaction;
        stage.begin();
        db.flush().unwrap();
        db.wait_idle().unwrap();
        let compaction = db.stats().compaction;
        assert_eq!((compaction.jobs - before.jobs, compaction.moves - before.moves), (1, 1));
        assert!(compaction.moved_bytes > before.moved_bytes);
        stage.end(db)
    });
}

#[test]
fn the_log_goes_on_in_a_new_segment() {
    trace("roll", quiet(), |stage| {
        let db = stage.open();
        stage.begin();
        for n in 0..20 {
            db.put(format!("{n:02}"), vec![n; 1000]).unwrap();
        }
        db.sync().unwrap();
        stage.end(db)
    });
}

#[test]
fn a_manifest_that_has_outgrown_its_snapshot_is_replaced() {
    trace("manifest-switch", quiet(), |stage| {
        let db = stage.open();
        // Long keys make long edits.
        for round in 0u8..10 {
            db.put(vec![round; 60_000], "value").unwrap();
            stage.begin();
            db.flush().unwrap();
            db.wait_idle().unwrap();
            let text = stage.record.take();
            if text.contains("create MANIFEST") {
                db.close().unwrap();
                return text;
            }
        }
        panic!("the manifest only grows");
    });
}

#[test]
fn keyspaces_come_and_go() {
    trace("keyspace", quiet(), |stage| {
        let db = stage.open();
        stage.begin();
        let other = db.keyspace("other").unwrap();
        let mut text = format!("# created\n{}", stage.record.take());
        other.put("key", "value").unwrap();
        db.flush().unwrap();
        db.wait_idle().unwrap();
        other.put("key", "in the log").unwrap();
        stage.begin();
        drop(other);
        db.drop_keyspace("other").unwrap();
        db.wait_idle().unwrap();
        text += &format!("# dropped\n{}", stage.record.take());
        db.close().unwrap();
        text
    });
}

#[test]
fn closing() {
    trace("closing", quiet(), |stage| {
        let db = stage.open();
        db.put("key", "value").unwrap();
        stage.begin();
        db.close().unwrap();
        let mut text = format!("# with a write that was not synced\n{}", stage.record.take());
        let db = stage.open();
        db.put("key", "value").unwrap();
        db.sync().unwrap();
        stage.begin();
        db.close().unwrap();
        text += &format!("# with a write that was synced\n{}", stage.record.take());
        text
    });
}

#[test]
fn closing_with_a_long_log() {
    trace("closing-long-log", large(), |stage| {
        let db = stage.open();
        put_large(&db);
        stage.begin();
        db.close().unwrap();
        stage.record.take()
    });
}
