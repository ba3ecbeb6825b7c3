//! The forward merge of 8 sources of 100 000 entries of 116 bytes each, from memory: time per record.
//!
//! `cargo bench --bench merge`. The module is compiled in from its sources, for it is not public.
#![allow(
    dead_code,
    unused_imports,
    unused_macros,
    missing_docs,
    reason = "only a part of each module is measured"
)]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::convert::Infallible;
use std::hint::black_box;
use terrace::types;
use types::{Kind, Seq, Stamp};

#[macro_use]
#[path = "../src/planted.rs"]
mod planted;
#[path = "../src/merge/mod.rs"]
mod merge;

use merge::{Cursor, MergeForward, VersionFilter};

const SOURCES: u64 = 8;
const RECORDS: u64 = 100_000;
const KEY: usize = 16;
const RECORD: usize = KEY + 100;

/// Fixed-size records, back to back, and a position among them.
struct Flat<'a> {
    bytes: &'a [u8],
    stamp: Stamp,
    position: usize,
}

impl Cursor for Flat<'_> {
    type Error = Infallible;

    fn valid(&self) -> bool {
        self.position < self.bytes.len()
    }

    fn key(&self) -> &[u8] {
        &self.bytes[self.position..][..KEY]
    }

    fn stamp(&self) -> Stamp {
        self.stamp
    }

    fn value(&self) -> &[u8] {
        &self.bytes[self.position + KEY..][..RECORD - KEY]
    }

    fn seek(&mut self, key: &[u8], _: Stamp) -> Result<(), Infallible> {
        self.position = (0..self.bytes.len())
            .step_by(RECORD)
            .find(|&at| &self.bytes[at..][..KEY] >= key)
            .unwrap_or(self.bytes.len());
        Ok(())
    }

    fn seek_before(&mut self, key: &[u8], stamp: Stamp) -> Result<(), Infallible> {
        self.seek(key, stamp)?;
        self.prev()
    }

    fn seek_first(&mut self) -> Result<(), Infallible> {
        self.position = 0;
        Ok(())
    }

    fn seek_last(&mut self) -> Result<(), Infallible> {
        self.position = self.bytes.len() - RECORD;
        Ok(())
    }

    fn next(&mut self) -> Result<(), Infallible> {
        self.position += RECORD;
        Ok(())
    }

    fn prev(&mut self) -> Result<(), Infallible> {
        self.position = self.position.checked_sub(RECORD).unwrap_or(self.bytes.len());
        Ok(())
    }
}

/// The sources' bytes: key `i` goes to a random source.
fn sources(key: fn(u64) -> [u8; KEY]) -> Vec<Vec<u8>> {
    let mut keys: Vec<_> = (0..SOURCES * RECORDS).map(|i| (key(i), mix(!i) % SOURCES)).collect();
    keys.sort_unstable();
    let mut sources = vec![Vec::new(); SOURCES as usize];
    for (key, source) in keys {
        sources[source as usize].extend_from_slice(&key);
        sources[source as usize].extend_from_slice(&[7; RECORD - KEY]);
    }
    sources
}

fn mix(i: u64) -> u64 {
    let mixed = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29).wrapping_mul(0xff51_afd7_ed55_8ccd) >> 3
}

fn random_key(i: u64) -> [u8; KEY] {
    let mut key = [0; KEY];
    key[..8].copy_from_slice(&mix(i).to_le_bytes());
    key[8..].copy_from_slice(&i.to_le_bytes());
    key
}

fn decimal_key(i: u64) -> [u8; KEY] {
    let mut key = *b"user000000000000";
    let digits = i.to_string();
    key[KEY - digits.len()..].copy_from_slice(digits.as_bytes());
    key
}

/// What a compaction does with each record, except for writing it: find where a key begins, judge, copy.
fn run(merge: &mut MergeForward<Flat>, filter: &mut VersionFilter, output: &mut Vec<u8>) -> u64 {
    let mut last_key = Vec::new();
    let mut kept = 0;
    output.clear();
    let Ok(()) = merge.seek_first();
    while merge.valid() {
        let current = merge.current();
        let (key, stamp) = (current.key(), current.stamp());
        let verdict = if key == last_key {
            filter.judge_next(stamp, None, || false)
        } else {
            last_key.clear();
            last_key.extend_from_slice(key);
            filter.judge_first(stamp, None, || false)
        };
        if verdict.is_kept() {
            output.extend_from_slice(key);
            output.extend_from_slice(current.value());
            kept += 1;
        }
        let Ok(_) = merge.step();
    }
    kept
}

fn bench(c: &mut Criterion) {
    let mut group = c.benchmark_group("merge");
    group.sample_size(20);
    for (name, key) in [("random keys", random_key as fn(u64) -> _), ("decimal keys", decimal_key)] {
        let sources = sources(key);
        for count in [1, 2, 8] {
            let cursors = sources.iter().take(count).zip(1..).map(|(bytes, seq)| Flat {
                bytes,
                stamp: Stamp::new(Seq(seq), Kind::Put),
                position: usize::MAX,
            });
            let mut merge = MergeForward::new(cursors.collect());
            let records: usize = sources.iter().take(count).map(|bytes| bytes.len() / RECORD).sum();
            let mut output = Vec::with_capacity(records * RECORD);
            group.throughput(Throughput::Elements(records as u64));
            group.bench_function(BenchmarkId::new(format!("{name}, walk"), count), |b| {
                b.iter(|| {
                    let Ok(()) = merge.seek_first();
                    while merge.valid() {
                        black_box(merge.current().position);
                        let Ok(_) = merge.step();
                    }
                });
            });
            group.bench_function(BenchmarkId::new(format!("{name}, filter and copy"), count), |b| {
                b.iter(|| {
                    let kept = run(&mut merge, &mut VersionFilter::new(&[Seq(4)]), &mut output);
                    assert_eq!(kept, records as u64);
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
