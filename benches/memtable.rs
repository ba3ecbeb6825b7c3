//! The memtable against the skip list of crossbeam: random inserts and lookups of 16-byte keys with 100-byte values.
//!
//! `cargo bench --bench memtable`. The modules are compiled in from their sources, for they are not public.
#![allow(
    dead_code,
    unused_imports,
    unused_macros,
    missing_docs,
    reason = "only a part of each module is measured"
)]

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use crossbeam_skiplist::SkipMap;
use format::filter::hash;
use std::cmp::Reverse;
use std::hint::black_box;
use std::ops::Bound::Included;
use std::sync::Arc;
use terrace::format;
use types::{Kind, Seq, Stamp};

/// Stand in for the crate's modules of these names.
mod error {
    pub use terrace::Error;
}
mod types {
    pub(crate) use super::pages;
    pub use terrace::types::*;
}
mod env {
    pub(crate) use super::huge_pages;
    pub use terrace::env::sync;
}
#[macro_use]
#[path = "../src/planted.rs"]
mod planted;
#[path = "../src/env/huge_pages.rs"]
mod huge_pages;
#[path = "../src/store/memtable/mod.rs"]
mod memtable;
#[path = "../src/merge/mod.rs"]
mod merge;
#[path = "../src/types/pages.rs"]
mod pages;

use memtable::{ChunkPool, Memtable};
use merge::Cursor;

const ENTRIES: u64 = 1_000_000;
const VALUE: [u8; 100] = [7; 100];

type Oracle = SkipMap<(Vec<u8>, Reverse<Stamp>), Vec<u8>>;

/// The `i`-th of a fixed sequence of random 16-byte keys.
fn key(i: u64) -> [u8; 16] {
    let mixed = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let mut key = [0; 16];
    key[..8].copy_from_slice(&mixed.to_le_bytes());
    key[8..].copy_from_slice(&i.to_le_bytes());
    key
}

fn put(i: u64) -> Stamp {
    Stamp::new(Seq(i + 1), Kind::Put)
}

fn fill_memtable(memtable: &Memtable, part: u64, parts: u64) {
    for i in (part..ENTRIES).step_by(parts as usize) {
        memtable.insert(&key(i), put(i), &VALUE);
    }
}

fn fill_oracle(oracle: &Oracle) {
    for i in 0..ENTRIES {
        oracle.insert((key(i).to_vec(), Reverse(put(i))), VALUE.to_vec());
    }
}

fn insert(c: &mut Criterion) {
    let mut group = c.benchmark_group("insert");
    group.throughput(Throughput::Elements(ENTRIES)).sample_size(10);
    let new = || Memtable::new(64 << 10, &Arc::new(ChunkPool::new(0)), b"");
    group.bench_function("memtable", |b| {
        b.iter_batched_ref(new, |memtable| fill_memtable(memtable, 0, 1), BatchSize::PerIteration);
    });
    group.bench_function("memtable, 2 threads", |b| {
        b.iter_batched_ref(
            new,
            |memtable| {
                std::thread::scope(|scope| {
                    let memtable = &*memtable;
                    (0..2).for_each(|part| drop(scope.spawn(move || fill_memtable(memtable, part, 2))));
                });
            },
            BatchSize::PerIteration,
        );
    });
    group.bench_function("crossbeam", |b| {
        b.iter_batched_ref(Oracle::new, |oracle| fill_oracle(oracle), BatchSize::PerIteration);
    });
    group.finish();
}

fn get(c: &mut Criterion) {
    let (memtable, oracle) = (Memtable::new(64 << 10, &Arc::new(ChunkPool::new(0)), b""), Oracle::new());
    fill_memtable(&memtable, 0, 1);
    fill_oracle(&oracle);
    let order = |i: u64| key(i.wrapping_mul(7_368_787) % ENTRIES);
    let mut group = c.benchmark_group("get");
    group.throughput(Throughput::Elements(1));
    let mut i = 0;
    group.bench_function("memtable", |b| {
        b.iter(|| {
            i += 1;
            let key = order(i);
            black_box(memtable.get(&key, hash(&key), Seq::MAX).expect("present").1[99])
        });
    });
    group.bench_function("memtable, absent", |b| {
        b.iter(|| {
            i += 1;
            let key = key(ENTRIES + i);
            black_box(memtable.get(&key, hash(&key), Seq::MAX).is_none())
        });
    });
    group.bench_function("crossbeam", |b| {
        b.iter(|| {
            i += 1;
            let entry = oracle.lower_bound(Included(&(order(i).to_vec(), Reverse(Stamp::MAX))));
            black_box(entry.expect("present").value()[99])
        });
    });
    group.finish();
}

fn walk(c: &mut Criterion) {
    let (memtable, oracle) = (Memtable::new(64 << 10, &Arc::new(ChunkPool::new(0)), b""), Oracle::new());
    fill_memtable(&memtable, 0, 1);
    fill_oracle(&oracle);
    let mut group = c.benchmark_group("walk");
    group.throughput(Throughput::Elements(ENTRIES)).sample_size(10);
    group.bench_function("memtable", |b| {
        b.iter(|| {
            let mut cursor = memtable.cursor();
            let mut sum = 0;
            cursor.seek_first().expect("memory does not fail");
            while cursor.valid() {
                sum += u64::from(cursor.key()[0]) + u64::from(cursor.value()[99]);
                cursor.next().expect("memory does not fail");
            }
            black_box(sum)
        });
    });
    group.bench_function("crossbeam", |b| {
        b.iter(|| oracle.iter().map(|e| u64::from(e.key().0[0]) + u64::from(e.value()[99])).sum::<u64>());
    });
    group.finish();
}

criterion_group!(benches, insert, get, walk);
criterion_main!(benches);
