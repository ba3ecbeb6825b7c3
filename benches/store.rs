//! The hot parts of a read and of a compaction, one by one: search in a block, probe of a filter, lookup and iterator step in
//! a store whose blocks are in memory, and a compaction from tables to tables. 16-byte keys, 100-byte values.
//!
//! `cargo bench --bench store`; `cargo bench --bench store -- merge` for one of them. The compaction counts what the compacting
//! thread itself was busy for, with reading, checking, writing and syncing.
#![allow(missing_docs, reason = "a program, not a library")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use std::time::Duration;
use tempfile::TempDir;
use terrace::format::block::{Block, BlockBuilder};
use terrace::format::filter::{self, Filter, FilterBuilder};
use terrace::types::{Kind, Seq, Stamp};
use terrace::{Db, Options, Result};

const RECORDS: u64 = 400_000;
const VALUE: [u8; 100] = [7; 100];

/// The `i`-th key in order.
fn key(i: u64) -> [u8; 16] {
    let mut key = *b"user000000000000";
    let digits = (i * 7).to_string();
    key[16 - digits.len()..].copy_from_slice(digits.as_bytes());
    key
}

/// The `i`-th of a fixed sequence of random numbers.
fn random(i: u64) -> u64 {
    let mixed = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29).wrapping_mul(0xff51_afd7_ed55_8ccd) >> 3
}

fn formats(c: &mut Criterion) {
    let mut builder = BlockBuilder::new();
    let entries = 33;
    (0..entries).for_each(|i| builder.add(&key(i), Stamp::new(Seq(i + 1), Kind::Put), &VALUE));
    let mut bytes = Vec::new();
    builder.finish(&mut bytes);
    let block = Block::decode(bytes).expect("a block");
    let mut i = 0;
    c.bench_function("block search, 33 entries", |b| {
        b.iter(|| {
            i += 1;
            black_box(block.seek(&key(random(i) % entries), Stamp::MAX))
        });
    });

    let mut builder = FilterBuilder::new(None);
    (0..10_000).for_each(|i| builder.add(&key(i)));
    let mut bytes = Vec::new();
    builder.finish(10, &mut bytes);
    let filter = Filter::decode(&bytes).expect("a filter");
    c.bench_function("filter probe, hash included", |b| {
        b.iter(|| {
            i += 1;
            black_box(filter.may_contain(filter::hash(&key(random(i) % 20_000))))
        });
    });
}

/// A store of [`RECORDS`] records, a random half of them in level 0, the others below it.
fn two_levels() -> Result<(TempDir, Db)> {
    let dir = tempfile::tempdir().expect("a directory");
    let options = Options { memory_bytes: Some(1 << 30), ..Options::default() };
    let db = Db::builder(dir.path()).options(options).open()?;
    for half in [0, 1] {
        for i in (0..RECORDS).filter(|i| random(*i) % 2 == half) {
            db.put(key(i), VALUE)?;
        }
        if half == 0 {
            db.compact()?;
        }
    }
    db.flush()?;
    Ok((dir, db))
}

fn reads(c: &mut Criterion) {
    let (_dir, db) = two_levels().expect("a store");
    db.compact().expect("a compaction");
    let mut i = 0;
    let mut get = || {
        i += 1;
        db.get(key(random(i) % RECORDS)).expect("a lookup").expect("a value")
    };
    (0..RECORDS).for_each(|_| drop(get()));
    c.bench_function("get, cached", |b| b.iter(|| black_box(get())));

    let mut group = c.benchmark_group("iterate");
    group.sample_size(10);
    group.throughput(Throughput::Elements(RECORDS));
    group.bench_function("step", |b| {
        b.iter(|| {
            let mut iter = db.iter().expect("an iterator");
            while let Some(entry) = iter.advance().expect("a step") {
                black_box(entry);
            }
        });
    });
    group.finish();
}

fn compactions(c: &mut Criterion) {
    let mut group = c.benchmark_group("compaction");
    group.sample_size(10);
    group.throughput(Throughput::Elements(RECORDS));
    group.bench_function("tables to tables", |b| {
        b.iter_custom(|rounds| {
            let mut time = 0.0;
            for _ in 0..rounds {
                let (_dir, db) = two_levels().expect("a store");
                let before = db.stats().compaction;
                db.compact().expect("a compaction");
                let after = db.stats().compaction;
                let records = after.records_in - before.records_in;
                let micros = (after.micros - before.micros) as f64;
                time += micros * RECORDS as f64 / records as f64;
            }
            Duration::from_secs_f64(time / 1e6)
        });
    });
    group.finish();
}

criterion_group!(benches, formats, reads, compactions);
criterion_main!(benches);
