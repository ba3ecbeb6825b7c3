//! A commit: batches of one put of 116 bytes, by 1 to 8 threads at once, buffered and synced.
//!
//! `cargo bench --bench commit`; `cargo bench --bench commit -- synced/4` for one of them. On a real directory, by
//! default that of temporary files (`TMPDIR` names another): what a synced commit costs is the device's to say. Buffered
//! ones include the flushes and compactions that they bring about.
#![allow(missing_docs, reason = "a program, not a library")]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::thread;
use std::time::Duration;
use terrace::env::posix::PosixEnv;
use terrace::{Db, Durability, Options, WriteBatch};

const THREADS: [u64; 4] = [1, 2, 4, 8];
const VALUE: [u8; 100] = [7; 100];

/// A key of 16 bytes that no other `i` has, in no order.
fn key(i: u64) -> [u8; 16] {
    let mixed = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut key = [0; 16];
    key[..8].copy_from_slice(&mixed.to_le_bytes());
    key[8..].copy_from_slice(&i.to_le_bytes());
    key
}

/// The time in which `threads` threads, each a share, commit the puts `from .. from + count`.
fn commit(db: &Db, durability: Durability, threads: u64, from: u64, count: u64) -> Duration {
    let clock = PosixEnv::shared();
    let start = clock.now();
    thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || {
                for i in (from + thread..from + count).step_by(threads as usize) {
                    let mut batch = WriteBatch::new();
                    batch.put(key(i), VALUE);
                    db.write_with(batch, durability).expect("a commit");
                }
            });
        }
    });
    clock.now() - start
}

fn commits(c: &mut Criterion, name: &str, durability: Durability) {
    let mut group = c.benchmark_group(name);
    group.sample_size(10);
    group.throughput(Throughput::Elements(1));
    for threads in THREADS {
        let dir = tempfile::tempdir().expect("a directory");
        let options = Options { memory_bytes: Some(1 << 30), ..Options::default() };
        let db = Db::builder(dir.path()).options(options).open().expect("a store");
        let mut done = 0;
        group.bench_function(BenchmarkId::from_parameter(threads), |b| {
            b.iter_custom(|rounds| {
                done += rounds;
                commit(&db, durability, threads, done - rounds, rounds)
            });
        });
    }
    group.finish();
}

fn buffered(c: &mut Criterion) {
    commits(c, "buffered", Durability::Buffered);
}

fn synced(c: &mut Criterion) {
    commits(c, "synced", Durability::Synced);
}

criterion_group!(benches, buffered, synced);
criterion_main!(benches);
