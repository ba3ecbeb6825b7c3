//! Scripted lives of a store, short enough to be cut off at every call.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use terrace::env::Env;
use terrace::env::simulated::{FaultError, FaultRule, FaultTarget, Operation, SimEnv};
use terrace::{Durability, Options, PackLayout, TreeOptions};

use super::client::{Client, DIR, Jobs, Op, Step};
use super::tiny;

/// A life, and a proof that it has what it is named for.
pub struct Schedule {
    pub name: &'static str,
    pub options: fn() -> Options,
    pub run: fn(&mut Client) -> Step,
    /// Looks at the store's life without cuts and faults.
    pub proof: fn(&Jobs, &Arc<SimEnv>) -> bool,
}

pub const SCHEDULES: &[Schedule] = &[
    Schedule { name: "creation", options: tiny, run: creation, proof: |_, env| count(env, "CURRENT") == 1 },
    Schedule { name: "puts", options: tiny, run: puts, proof: |jobs, _| jobs.flushes == 0 },
    Schedule { name: "synced puts", options: tiny, run: synced_puts, proof: |jobs, _| jobs.flushes == 0 },
    Schedule { name: "batches", options: tiny, run: batches, proof: |_, _| true },
    Schedule { name: "flushes", options: tiny, run: flushes, proof: |jobs, _| jobs.flushes >= 6 },
    Schedule { name: "merges", options: tiny, run: merges, proof: |jobs, _| jobs.merges >= 2 },
    Schedule { name: "one table a file", options: one_table, run: merges, proof: |jobs, _| jobs.merges >= 2 },
    Schedule { name: "moves", options: tiny, run: moves, proof: |jobs, _| jobs.moves >= 1 },
    Schedule {
        name: "moves beside merges",
        options: tiny,
        run: moves_beside_merges,
        proof: |jobs, _| jobs.moves >= 2 && jobs.merges >= 2,
    },
    Schedule {
        name: "manifest",
        options: tiny,
        run: manifest,
        proof: |_, env| newest(env, "MANIFEST-") >= 3,
    },
    Schedule {
        name: "log segments",
        options: small_log,
        run: segments,
        proof: |_, env| newest(env, ".wal") >= 5,
    },
    Schedule { name: "log limit", options: small_log, run: log_limit, proof: |jobs, _| jobs.flushes >= 1 },
    Schedule { name: "keyspaces", options: tiny, run: keyspaces, proof: |jobs, _| jobs.flushes >= 2 },
    Schedule {
        name: "removals beside flushes",
        options: tiny,
        run: many_removals,
        proof: |jobs, _| jobs.flushes >= 4,
    },
    Schedule { name: "reopening", options: tiny, run: reopening, proof: |_, env| newest(env, ".wal") >= 10 },
    Schedule { name: "big batches", options: tiny, run: big_batches, proof: |jobs, _| jobs.flushes >= 1 },
    Schedule { name: "split batches", options: tiny, run: split_batches, proof: |jobs, _| jobs.flushes >= 1 },
    Schedule { name: "compaction", options: tiny, run: compaction, proof: |jobs, _| jobs.merges >= 2 },
    Schedule {
        name: "range deletes",
        options: tiny,
        run: range_deletes,
        proof: |jobs, _| jobs.flushes >= 4 && jobs.merges >= 1,
    },
    Schedule {
        name: "full memtables",
        options: tiny,
        run: full_memtables,
        proof: |jobs, _| jobs.merges >= 1,
    },
    Schedule { name: "ingests", options: tiny, run: ingests, proof: |jobs, _| jobs.flushes >= 3 },
    Schedule { name: "transactions", options: tiny, run: transactions, proof: |jobs, _| jobs.flushes >= 2 },
    Schedule { name: "settings", options: tiny, run: settings, proof: |jobs, _| jobs.merges >= 1 },
    Schedule {
        name: "spares and reserve",
        options: with_reserve,
        run: spares_and_reserve,
        proof: |jobs, env| count(env, "RESERVE") == 1 && jobs.spare_bytes > 0,
    },
    Schedule {
        name: "holes",
        options: large_packs,
        run: holes,
        // No barrier: a power cut finds them un-synced.
        proof: |jobs, _| jobs.punches >= 3 && jobs.hole_syncs == 0,
    },
    Schedule {
        name: "rewrites",
        options: large_packs,
        run: rewrites,
        proof: |jobs, _| jobs.rewrites >= 2 && jobs.punches == 0,
    },
    Schedule {
        name: "packs ahead",
        options: small_log,
        run: packs_ahead,
        // Most jobs find a pack whose name is durable.
        proof: |jobs, _| jobs.ahead_syncs >= 4 && jobs.flushes + jobs.merges > jobs.directory_syncs,
    },
];

fn one_table() -> Options {
    let tree = TreeOptions { pack: PackLayout::OneTable, ..tiny().tree };
    Options { tree, background_threads: Some(2), ..tiny() }
}

fn small_log() -> Options {
    Options { memtable_bytes: 64 << 10, wal_bytes_max: 64 << 10, ..tiny() }
}

/// A stretch of a few tables is worth a hole.
fn large_packs() -> Options {
    let tree = TreeOptions {
        table_bytes: 16 << 10,
        block_bytes: 4 << 10,
        level1_bytes: 8 << 20,
        l0_trigger: 4,
        ..tiny().tree
    };
    Options { memtable_bytes: 512 << 10, wal_bytes_max: 2 << 20, memory_bytes: Some(8 << 20), tree, ..tiny() }
}

fn with_reserve() -> Options {
    Options { reserve_bytes: 32 << 10, ..small_log() }
}

fn names(env: &SimEnv) -> Vec<String> {
    let in_dir = |path: &Path| Some(path.strip_prefix(DIR).ok()?.to_str()?.to_owned());
    env.files().iter().filter_map(|(path, _)| in_dir(path)).collect()
}

fn many_removals(client: &mut Client) -> Step {
    client.open()?;
    for round in 0..5 {
        client.create("doomed")?;
        client.put("doomed", "old", value(round, 40))?;
        for n in 0..4 {
            client.put("default", format!("key{n}"), value(round * 10 + n, 6000))?;
        }
        // The last put has started a flush of newer entries, which goes on beside this.
        client.remove("doomed")?;
    }
    client.check_reads("after removals")
}

/// Batches of many small operations: memtables are full while the segments of the log are not.
fn split_batches(client: &mut Client) -> Step {
    client.open()?;
    client.create("other")?;
    for round in 0..4u16 {
        let keys: Vec<[u8; 2]> = (0..260).map(|n: u16| (n * 4 + round).to_le_bytes()).collect();
        let mut ops: Vec<Op<'_>> = keys.iter().map(|key| ("default", &key[..], Some(&b""[..]))).collect();
        let last = [round as u8];
        ops.push(("other", b"last", Some(&last)));
        client.write(&ops, Durability::Buffered)?;
    }
    client.wait_idle()?;
    client.put("other", "end", "reached")?;
    client.check_reads("after split batches")
}

fn count(env: &SimEnv, name: &str) -> usize {
    names(env).iter().filter(|found| *found == name).count()
}

/// The largest number in the names that contain `part`.
fn newest(env: &SimEnv, part: &str) -> u64 {
    let numbers = names(env).into_iter().filter(|name| name.contains(part));
    numbers.filter_map(|name| name.replace(part, "").parse().ok()).max().unwrap_or(0)
}

fn value(seed: usize, bytes: usize) -> Vec<u8> {
    let mut value = format!("{seed}/").into_bytes();
    value.extend((value.len()..bytes).map(|at| (seed * 31 + at * 7) as u8));
    value
}

fn creation(client: &mut Client) -> Step {
    client.open()?;
    client.close()
}

fn puts(client: &mut Client) -> Step {
    client.open()?;
    for n in 0..10 {
        client.put("default", format!("key{}", n % 4), value(n, 20 + 300 * (n % 3)))?;
    }
    client.sync()?;
    for n in 10..16 {
        client.put("default", format!("key{}", n % 4), value(n, 600))?;
    }
    client.check_reads("after puts")
}

fn synced_puts(client: &mut Client) -> Step {
    client.open()?;
    for n in 0..12 {
        if n % 3 == 1 {
            client.put("default", format!("key{}", n % 5), value(n, 40))?;
        } else {
            client.put_synced("default", format!("key{}", n % 5), value(n, 40))?;
        }
    }
    client.delete("default", "key1")?;
    client.put_synced("default", "", "the empty key")?;
    client.close()
}

fn batches(client: &mut Client) -> Step {
    client.open()?;
    client.create("left")?;
    client.create("right")?;
    for n in 0..8 {
        let (key, left, right) = (format!("k{}", n % 3), value(n, 700), value(n, 9));
        let key = key.as_bytes();
        let removed = format!("k{}", (n + 1) % 3);
        let durability = if n % 3 == 2 { Durability::Synced } else { Durability::Buffered };
        let ops: [Op<'_>; 4] = [
            ("left", key, Some(&left)),
            ("right", key, Some(&right)),
            ("right", removed.as_bytes(), None),
            ("left", b"last", Some(&right)),
        ];
        client.write(&ops, durability)?;
        if n == 5 {
            client.flush()?;
        }
    }
    client.check_reads("after batches")
}

fn flushes(client: &mut Client) -> Step {
    client.open()?;
    client.create("other")?;
    for n in 0..4 {
        // The other keyspace holds the older entries, in the log alone at first.
        client.put("other", format!("o{n}"), value(n, 900))?;
        client.put("default", format!("d{n}"), value(n, 900))?;
        client.put("default", "same", value(n, 10))?;
        client.flush()?;
        client.put("default", format!("late{n}"), value(n, 30))?;
    }
    client.close()
}

fn merges(client: &mut Client) -> Step {
    client.open()?;
    for round in 0..6 {
        for n in 0..6 {
            let key = format!("key{:02}", (n * 7 + round * 3) % 20);
            if (n + round) % 5 == 4 {
                client.delete("default", key)?;
            } else {
                client.put("default", key, value(round * 10 + n, 700))?;
            }
        }
        client.flush()?;
        client.check_reads("between merges")?;
    }
    client.wait_idle()?;
    client.check_reads("after merges")?;
    client.close()
}

fn moves(client: &mut Client) -> Step {
    client.open()?;
    // Rounds do not overlap, so tables sink as they are.
    for round in 0..9 {
        for n in 0..5 {
            client.put("default", format!("{round}{n}"), value(round * 10 + n, 1500))?;
        }
        client.flush()?;
    }
    client.wait_idle()?;
    client.check_reads("after moves")?;
    client.reopen()?;
    client.close()
}

fn moves_beside_merges(client: &mut Client) -> Step {
    client.open()?;
    for round in 0..4 {
        // Of the two runs one meets what the last round left, the other nothing.
        for side in ["common", &format!("round{round}")] {
            for n in 0..5 {
                client.put("default", format!("{side}{n}"), value(round * 10 + n, 1500))?;
            }
            client.flush()?;
        }
        client.wait_idle()?;
        client.check_reads("beside merges")?;
    }
    client.reopen()?;
    client.close()
}

/// Keys so long that a few edits outgrow a manifest.
fn manifest(client: &mut Client) -> Step {
    client.open()?;
    for n in 0..10u8 {
        for side in [b'a', b'z'] {
            let mut key = vec![side; 40_000];
            key.push(n % 4);
            client.put("default", key, value(usize::from(n), 10))?;
        }
        client.flush()?;
    }
    client.wait_idle()?;
    client.put_synced("default", "end", "of the switch-over")?;
    client.close()
}

fn segments(client: &mut Client) -> Step {
    client.open()?;
    client.create("slow")?;
    client.put("slow", "first", "holds the log back")?;
    for n in 0..24 {
        client.put("default", format!("key{:02}", n % 9), value(n, 3000))?;
        if n % 7 == 6 {
            client.put_synced("default", "synced", value(n, 10))?;
        }
    }
    client.check_reads("after segments")
}

fn log_limit(client: &mut Client) -> Step {
    client.open()?;
    for name in ["a", "b", "c"] {
        client.create(name)?;
        client.put(name, "first", value(1, 100))?;
    }
    for n in 0..24 {
        client.put(["a", "b"][n % 2], format!("key{:02}", n % 5), value(n, 4000))?;
    }
    client.wait_idle()?;
    client.check_reads("behind the limit")?;
    client.close()
}

fn keyspaces(client: &mut Client) -> Step {
    client.open()?;
    for round in 0..3 {
        client.create("come and go")?;
        client.put("default", format!("d{round}"), value(round, 50))?;
        client.put("come and go", "x", value(round, 2000))?;
        if round == 1 {
            client.flush()?;
        }
        client.put("come and go", "y", value(round, 20))?;
        client.put_synced("default", format!("e{round}"), value(round, 50))?;
        client.put("default", format!("f{round}"), value(round, 50))?;
        client.remove("come and go")?;
    }
    client.create("come and go")?;
    client.put("come and go", "z", value(9, 20))?;
    client.flush()?;
    client.reopen()?;
    client.remove("come and go")?;
    client.put("default", "end", "reached")?;
    client.close()
}

fn reopening(client: &mut Client) -> Step {
    client.open()?;
    for n in 0..12 {
        client.put("default", format!("key{}", n % 5), value(n, 400))?;
        if n % 3 == 0 {
            client.put_synced("default", format!("key{}", n % 4), value(n, 40))?;
            client.put("default", "torn", value(n, 900))?;
        }
        client.reopen()?;
    }
    client.put("default", "end", "reached")?;
    client.close()
}

fn big_batches(client: &mut Client) -> Step {
    client.open()?;
    client.create("other")?;
    for n in 0..4 {
        let keys: Vec<Vec<u8>> = (0..20).map(|k| format!("{k:02}").into_bytes()).collect();
        let values: Vec<Vec<u8>> = (0..20).map(|k| value(n * 100 + k, 50 * k * (n + 1))).collect();
        let mut ops: Vec<Op<'_>> = Vec::new();
        for (at, (key, value)) in keys.iter().zip(&values).enumerate() {
            ops.push((if at % 2 == 0 { "default" } else { "other" }, key, Some(value)));
        }
        client.write(&ops, if n == 2 { Durability::Synced } else { Durability::Buffered })?;
    }
    client.put("default", "end", "reached")?;
    client.check_reads("after big batches")
}

fn compaction(client: &mut Client) -> Step {
    client.open()?;
    for n in 0..12 {
        client.put("default", format!("key{n:02}"), value(n, 600))?;
    }
    client.flush()?;
    client.hold_snapshot();
    for n in 0..12 {
        if n % 2 == 0 {
            client.delete("default", format!("key{n:02}"))?;
        } else {
            client.put("default", format!("key{n:02}"), value(n + 100, 500))?;
        }
    }
    client.compact()?;
    client.check_reads("after a compaction under a snapshot")?;
    client.hold_snapshot();
    client.put("default", "between", value(7, 70))?;
    client.compact()?;
    client.check_reads("after a compaction")?;
    client.close()
}

/// Ranges that reach over several tables go before, between and behind puts, in the log and in tables.
fn range_deletes(client: &mut Client) -> Step {
    client.open()?;
    client.create("other")?;
    for round in 0..5 {
        for n in 0..8 {
            client.put("default", format!("key{n:02}"), value(round * 10 + n, 700))?;
            client.put("other", format!("key{n:02}"), value(n, 30))?;
        }
        client.delete_range("default", "key01".."key06", Durability::Buffered)?;
        client.put("default", "key03", value(round, 500))?;
        if round == 2 {
            client.hold_snapshot();
            client.delete_range("other", "key".."kez", Durability::Synced)?;
        }
        if round != 3 {
            client.flush()?;
        }
        client.delete_range("default", "key05".."key09", Durability::Buffered)?;
        client.check_reads("between range deletes")?;
    }
    client.reopen()?;
    client.check_reads("after reopening")?;
    client.compact()?;
    client.delete_range("default", "key03".."key04", Durability::Synced)?;
    client.check_reads("after a compaction")?;
    client.close()
}

/// Memtables fill up by themselves, and jobs run beside the writer.
fn full_memtables(client: &mut Client) -> Step {
    client.open()?;
    client.create("other")?;
    for n in 0..60 {
        let space = if n % 5 == 0 { "other" } else { "default" };
        if n % 11 == 10 {
            client.delete(space, format!("key{:02}", (n * 5) % 17))?;
        } else {
            client.put(space, format!("key{:02}", (n * 3) % 17), value(n, 1700))?;
        }
        if n % 20 == 19 {
            client.put_synced(space, "mark", value(n, 5))?;
        }
    }
    client.check_reads("beside jobs")
}

/// What was ingested lies between older and newer writes of the same keys, and where nothing is.
fn ingests(client: &mut Client) -> Step {
    let entries = |keys: Range<usize>, bytes| -> Vec<_> {
        keys.map(|n| (format!("key{n:02}"), value(n, bytes))).collect()
    };
    client.open()?;
    client.create("other")?;
    for round in 0..3 {
        for n in 0..6 {
            client.put("default", format!("key{:02}", n * 5 + round), value(n, 500))?;
        }
        client.put("other", "older", value(round, 30))?;
        client.ingest("default", &entries(round * 4..round * 4 + 20, 400))?;
        client.put("default", "key09", value(round, 40))?;
        client.check_reads("behind an ingest")?;
    }
    client.ingest("other", &entries(0..30, 600))?;
    client.compact()?;
    client.reopen()?;
    client.check_reads("after reopening")?;
    client.close()
}

fn transactions(client: &mut Client) -> Step {
    client.open()?;
    for n in 0..5 {
        client.put("default", format!("key{n}"), value(n, 900))?;
    }
    for n in 0..14 {
        let names = [format!("key{}", n % 7), format!("key{}", n * 3 % 7)];
        let durability = if n % 4 == 1 { Durability::Synced } else { Durability::Buffered };
        client.rename("default", names.each_ref().map(String::as_str), durability)?;
        if n % 5 == 2 {
            client.flush()?;
        }
    }
    client.check_reads("after transactions")?;
    client.close()
}

/// Each change makes something due at once, or gives something up.
fn settings(client: &mut Client) -> Step {
    client.open()?;
    let changes: [fn(&mut Options); 4] = [
        |options| options.memtable_bytes = 64 << 10,
        |options| (options.memtable_bytes, options.wal_bytes_max) = (8 << 10, 64 << 10),
        |options| options.background_threads = Some(2),
        |options| options.tree.l0_trigger = 1,
    ];
    for (round, change) in changes.into_iter().enumerate() {
        for n in 0..8 {
            client.put("default", format!("key{:02}", n * (round + 1)), value(n, 1500))?;
        }
        client.set_options(change)?;
    }
    client.wait_idle()?;
    client.check_reads("under other settings")?;
    client.close()
}

/// Neighbouring tables die in packs that live on, while a snapshot holds others, and before and after an opening.
fn holes(client: &mut Client) -> Step {
    client.open()?;
    for n in 0..40 {
        client.put("default", format!("key{n:02}"), value(n, 6000))?;
    }
    client.compact()?;
    for round in 0..4 {
        if round == 1 {
            client.hold_snapshot();
        }
        for n in 0..14 {
            client.put("default", format!("key{:02}", round * 8 + n), value(round * 100 + n, 6000))?;
        }
        client.compact()?;
        if round == 2 {
            client.reopen()?;
        }
        client.env.sleep(Duration::from_millis(300));
        client.check_reads("beside holes")?;
    }
    client.put_synced("default", "end", "reached")?;
    client.put("default", "end", "and passed")
}

/// The same where the file system knows no holes: what lives on is copied, beside a snapshot and writes, and once more after an
/// opening.
fn rewrites(client: &mut Client) -> Step {
    let target =
        FaultTarget::Matching { operation: Operation::Punch, path_suffix: String::new(), skipped: 0 };
    let error = FaultError::Unsupported;
    client.env.fault(FaultRule { target, error, sticky: true, partial: false });
    client.open()?;
    for n in 0..40 {
        client.put("default", format!("key{n:02}"), value(n, 6000))?;
    }
    client.compact()?;
    for round in 0..4 {
        if round == 1 {
            client.hold_snapshot();
        }
        for n in 0..26 {
            client.put(
                "default",
                format!("key{:02}", (round * 13 + n) % 40),
                value(round * 100 + n, 6000),
            )?;
        }
        client.compact()?;
        if round == 2 {
            client.reopen()?;
        }
        client.put("default", "beside", value(round, 700))?;
        client.env.sleep(Duration::from_millis(300));
        client.wait_idle()?;
        client.check_reads("beside rewrites")?;
    }
    client.put_synced("default", "end", "reached")?;
    client.put("default", "end", "and passed")
}

/// Packs and segments die large enough to be written over.
fn spares_and_reserve(client: &mut Client) -> Step {
    client.open()?;
    for round in 0..5 {
        for n in 0..20 {
            client.put("default", format!("key{n:02}"), value(round * 20 + n, 1500))?;
        }
        client.compact()?;
    }
    client.delete("default", "key07")?;
    client.check_reads("beside spares")
}

/// Jobs take packs that were made ahead, some of them of dead files, and go on where there is none: in the first flush of each
/// opening, and where a merge is faster than who makes them.
fn packs_ahead(client: &mut Client) -> Step {
    client.open()?;
    for opening in 0..2 {
        for round in 0..4 {
            for n in 0..12 {
                let seed = opening * 100 + round * 20 + n;
                client.put("default", format!("key{:02}", (n * 5 + round) % 16), value(seed, 1500))?;
            }
            client.flush()?;
            if round % 2 == 1 {
                client.put_synced("default", "synced", value(round, 40))?;
                client.compact()?;
            }
            client.wait_idle()?;
        }
        client.check_reads("with packs ahead")?;
        client.reopen()?;
    }
    client.put("default", "end", "reached")?;
    client.close()
}
