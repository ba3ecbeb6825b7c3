//! The script of each schedule, step by step.

use std::ops::Range;
use std::time::Duration;

use crate::tree_parts::TreeParts as _;
use terrace::env::Env;
use terrace::env::simulated::{FaultError, FaultRule, FaultTarget, Operation};
use terrace::{Durability, Options};

use crate::client::{Client, Op, Step};
use crate::option_sets::tiering;

fn value(seed: usize, bytes: usize) -> Vec<u8> {
    let mut value = format!("{seed}/").into_bytes();
    value.extend((value.len()..bytes).map(|at| (seed * 31 + at * 7) as u8));
    value
}

pub(super) fn many_removals(client: &mut Client) -> Step {
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
pub(super) fn split_batches(client: &mut Client) -> Step {
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

pub(super) fn creation(client: &mut Client) -> Step {
    client.open()?;
    client.close()
}

pub(super) fn puts(client: &mut Client) -> Step {
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

pub(super) fn synced_puts(client: &mut Client) -> Step {
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

pub(super) fn batches(client: &mut Client) -> Step {
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

pub(super) fn flushes(client: &mut Client) -> Step {
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

pub(super) fn compactions(client: &mut Client) -> Step {
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
        client.check_reads("between compactions")?;
    }
    client.wait_idle()?;
    client.check_reads("after compactions")?;
    client.close()
}

pub(super) fn moves(client: &mut Client) -> Step {
    client.open()?;
    // Rounds do not overlap, so tables are moved.
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

/// Rounds that overlap each other in some prefixes and in others do not, so tables are merged and moved on top of others.
pub(super) fn levels_on_top(client: &mut Client) -> Step {
    client.open()?;
    for round in 0..10 {
        for n in 0..6 {
            let prefix = if n < 3 { b'a' + (round % 3) as u8 } else { b'm' + round as u8 };
            let key = format!("{}{:02}", char::from(prefix), (n * 7 + round) % 9);
            put_or_delete(client, key, (round, n))?;
        }
        client.flush()?;
    }
    client.wait_idle()?;
    client.check_reads("in levels on top of each other")?;
    client.reopen()?;
    client.check_reads("after reopening")?;
    client.close()
}

/// Each round overlaps the ones before it, and is read while it goes down.
pub(super) fn rounds(client: &mut Client) -> Step {
    client.open()?;
    for round in 0..8 {
        for n in 0..6 {
            let key = format!("key{:02}", (n * 7 + round * 5) % 40);
            put_or_delete(client, key, (round, n))?;
        }
        client.flush()?;
        client.check_reads("while levels go down")?;
    }
    client.wait_idle()?;
    client.check_reads("from a buffer")?;
    client.reopen()?;
    client.check_reads("without one")?;
    client.close()
}

/// Each round has keys between those of the others, so new guards part tables that are there.
pub(super) fn guards(client: &mut Client) -> Step {
    client.open()?;
    for round in 0..13 {
        let keys: Vec<Vec<u8>> =
            (0..40).map(|n| format!("{:03}", (n * 131 + round * 47) % 600).into_bytes()).collect();
        let values: Vec<Vec<u8>> = (0..40).map(|n| value(round * 100 + n, 40)).collect();
        let kept = |n: usize| (n + round) % 9 < 8;
        let ops = keys.iter().zip(&values).enumerate();
        let ops: Vec<Op<'_>> =
            ops.map(|(n, (key, value))| ("default", &key[..], kept(n).then_some(&value[..]))).collect();
        client.write(&ops, Durability::Buffered)?;
        client.flush()?;
        client.wait_idle()?;
    }
    client.check_reads("between guards")?;
    client.reopen()?;
    client.check_reads("after reopening")?;
    client.close()
}

/// Levels of several runs, which a store of another layout has left, become one run, without writes and beside them.
pub(super) fn folds(client: &mut Client) -> Step {
    open_with_tiers(client)?;
    client.wait_idle()?;
    client.check_reads("after folds")?;
    client.close()?;
    open_with_tiers(client)?;
    client.hold_snapshot();
    for n in 0..20 {
        client.put("default", format!("key{:02}", n * 2 % 33), value(n, 700))?;
    }
    client.flush()?;
    client.wait_idle()?;
    client.check_reads("after folds beside writes")?;
    client.close()
}

/// Opens the store after another layout has left levels of several runs in it.
fn open_with_tiers(client: &mut Client) -> Step {
    let leveled = std::mem::replace(&mut client.options, tiering());
    client.open()?;
    put_in_tiers(client)?;
    client.close()?;
    client.options = leveled;
    client.open()
}

/// Number `n` of a round: one in seven is a tombstone.
fn put_or_delete(client: &mut Client, key: String, (round, n): (usize, usize)) -> Step {
    if (n + round) % 7 == 6 {
        client.delete("default", key)
    } else {
        client.put("default", key, value(round * 10 + n, 700))
    }
}

/// Runs whose tables end at other keys.
fn put_in_tiers(client: &mut Client) -> Step {
    for round in 0..10 {
        for n in 0..8 {
            let key = format!("key{:02}", (n * 5 + round * 3) % 40);
            put_or_delete(client, key, (round, n))?;
        }
        client.flush()?;
    }
    client.wait_idle()
}

pub(super) fn moves_beside_compactions(client: &mut Client) -> Step {
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
        client.check_reads("beside compactions")?;
    }
    client.reopen()?;
    client.close()
}

/// Keys so long that a few edits outgrow a manifest.
pub(super) fn manifest(client: &mut Client) -> Step {
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

pub(super) fn segments(client: &mut Client) -> Step {
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

/// Nothing is synced: a power cut leaves some segments and not what comes before them.
pub(super) fn lost_segments(client: &mut Client) -> Step {
    client.open()?;
    // Each fills a segment, and all together not the log.
    for n in 0..4 {
        client.put("default", format!("key{n}"), value(n, 16_384))?;
    }
    client.check_reads("in lost segments")
}

pub(super) fn log_limit(client: &mut Client) -> Step {
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

pub(super) fn keyspaces(client: &mut Client) -> Step {
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

pub(super) fn reopening(client: &mut Client) -> Step {
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

pub(super) fn big_batches(client: &mut Client) -> Step {
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

pub(super) fn compaction(client: &mut Client) -> Step {
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

/// Scans run up a read debt, which starts a compaction of level 0.
pub(super) fn intra_l0(client: &mut Client) -> Step {
    client.open()?;
    for n in 0..12 {
        client.put("default", format!("key{n:02}"), value(n, 130_000))?;
    }
    client.compact()?;
    client.hold_snapshot();
    for round in 0..8 {
        for n in round..10 {
            client.put("default", format!("key{n:02}"), value(round * 10 + n, 200))?;
        }
        client.delete("default", format!("key{:02}", round + 1))?;
        client.delete_range("default", ["key07", "key05"][round % 2].."key08", Durability::Buffered)?;
        client.flush()?;
    }
    for _ in 0..3072 {
        client.scan_first()?;
    }
    client.wait_idle()?;
    client.check_reads("after an intra-L0 compaction")?;
    client.put("default", "key03", value(3, 700))?;
    client.flush()?;
    client.compact()?;
    client.check_reads("after a compaction")?;
    client.close()
}

/// Ranges that reach over several tables go before, between and behind puts, in the log and in tables.
pub(super) fn range_deletes(client: &mut Client) -> Step {
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
pub(super) fn full_memtables(client: &mut Client) -> Step {
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
pub(super) fn ingests(client: &mut Client) -> Step {
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

pub(super) fn transactions(client: &mut Client) -> Step {
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
pub(super) fn settings(client: &mut Client) -> Step {
    client.open()?;
    let changes: [fn(&mut Options); 4] = [
        |options| options.memtable_bytes = 64 << 10,
        |options| (options.memtable_bytes, options.wal_bytes_max) = (8 << 10, 64 << 10),
        |options| options.background_threads = Some(2),
        |options| *options.tree.l0_trigger() = 1,
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
pub(super) fn holes(client: &mut Client) -> Step {
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

/// The same where the file system does not support holes: live tables are copied, beside a snapshot and writes, and
/// once more after an opening.
pub(super) fn rewrites(client: &mut Client) -> Step {
    let target =
        FaultTarget::Matching { operation: Operation::Punch, path_suffix: String::new(), skipped: 0 };
    let error = FaultError::Unsupported;
    client.env.fault(FaultRule { target, error, sticky: true, partial: false });
    client.open()?;
    for n in 0..40 {
        client.put("default", format!("key{n:02}"), value(n, 6000))?;
    }
    client.compact()?;
    for round in 0..6 {
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

/// Dead packs and segments are large enough to be recycled.
pub(super) fn recycled_files_and_reserve(client: &mut Client) -> Step {
    client.open()?;
    for round in 0..5 {
        for n in 0..20 {
            client.put("default", format!("key{n:02}"), value(round * 20 + n, 1500))?;
        }
        client.compact()?;
    }
    client.delete("default", "key07")?;
    client.check_reads("beside recycled files")
}

/// Jobs take preallocated packs, some of them recycled files, and go on where there is none: in the first flush of
/// each opening, and where a compaction is faster than the thread that makes them.
pub(super) fn preallocated_packs(client: &mut Client) -> Step {
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
        client.check_reads("with preallocated packs")?;
        client.reopen()?;
    }
    client.put("default", "end", "reached")?;
    client.close()
}
