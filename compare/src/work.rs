//! What a phase asks of a store: pieces of work, made outside of the timed part.
//!
//! A load thread fills a [`Chunk`] with keys, values and operations, untimed, and then runs it against the clock; see
//! [`crate::closed`] and [`crate::open`].

use std::ops::ControlFlow;

use anyhow::{Result, ensure};
use terrace_bench::generator::{Rng, ScrambledZipfian, SkewedLatest};

use crate::records::{ABSENT, Format, KEY_BYTES, consume, first_insert};
use crate::store::{Direction, Store};

/// Keys of one call of [`Store::multi_get`], in the scorecard.
pub const KEYS_AT_ONCE: usize = 32;

/// Most records of a batch, and so most keys of one operation.
pub const BATCH: usize = 100;

/// Bytes of keys and values in a chunk: they are to stay in the cache of a processor.
const CHUNK_BYTES: usize = 256 << 10;

/// Operations in a chunk, at most, where nobody waits for the next chunk.
pub const CHUNK_OPERATIONS: usize = 1024;

/// What a phase does, all percentages of operations.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Work {
    /// Puts of the records of the data set, each once, by one of the threads, in the order of their numbers.
    Load,
    /// The same in batches of [`BATCH`].
    LoadBatches,
    /// Lookups, so many percent of them of keys that are not there.
    Gets { absent: u64 },
    /// Lookups of so many keys at a time.
    MultiGets { keys: usize },
    /// Scans of so many rows.
    Scans { rows: u64, direction: Direction },
    /// Scans of everything.
    FullScans,
    /// YCSB's mixes; the rest are reads.
    Mix { updates: u64, modifies: u64, inserts: u64 },
    /// Scans of 1 to 100 rows, and inserts.
    ScanMix { inserts: u64 },
}

impl Work {
    /// Keys of one operation.
    pub fn width(self) -> usize {
        match self {
            Self::MultiGets { keys } => keys,
            Self::LoadBatches => BATCH,
            _ => 1,
        }
    }

    /// Whether it ends when all records are there.
    pub fn loads(self) -> bool {
        matches!(self, Self::Load | Self::LoadBatches)
    }

    /// Whether it writes anything.
    pub fn writes(self) -> bool {
        matches!(self, Self::Load | Self::LoadBatches | Self::Mix { .. } | Self::ScanMix { .. })
    }

    /// Whether every put is of a new record.
    pub fn inserts_only(self) -> bool {
        self.loads() || matches!(self, Self::Mix { updates: 0, modifies: 0, .. } | Self::ScanMix { .. })
    }

    /// Whether rows are what counts.
    pub fn scans(self) -> bool {
        matches!(self, Self::Scans { .. } | Self::FullScans)
    }
}

/// Which records are chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Choice {
    Uniform,
    /// Zipfian of 0.99, scattered.
    Zipfian,
    /// Zipfian of 0.99 back from the newest.
    Latest,
}

/// One operation; its keys lie at its place in the chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Operation {
    Get {
        present: bool,
    },
    MultiGet,
    /// Of a record of the data set.
    Put,
    /// Of a new record.
    Insert,
    Batch,
    Modify,
    Scan {
        rows: u64,
        direction: Direction,
    },
}

impl Operation {
    fn writes(self) -> bool {
        matches!(self, Self::Put | Self::Insert | Self::Batch | Self::Modify)
    }
}

/// Operations that are ready to be run.
#[derive(Default)]
pub struct Chunk {
    operations: Vec<Operation>,
    width: usize,
    keys: Vec<u8>,
    values: Vec<u8>,
    value_bytes: usize,
}

/// What operations did.
#[derive(Clone, Copy, Default, Debug)]
pub struct Effect {
    /// Rows seen by scans, keys found by lookups.
    pub rows: u64,
    /// Records put.
    pub puts: u64,
    /// Sum of what was read of the values, so that nobody can leave the reading out.
    pub seen: u64,
}

impl Effect {
    /// Adds what others did.
    pub fn add(&mut self, other: Self) {
        self.rows += other.rows;
        self.puts += other.puts;
        self.seen = self.seen.wrapping_add(other.seen);
    }
}

impl Chunk {
    /// Number of operations.
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// Whether operation `index` writes.
    pub fn writes(&self, index: usize) -> bool {
        self.operations[index].writes()
    }

    fn key(&self, index: usize) -> &[u8] {
        &self.keys[index * KEY_BYTES..][..KEY_BYTES]
    }

    fn value(&self, index: usize) -> &[u8] {
        &self.values[index * self.value_bytes..][..self.value_bytes]
    }

    /// Runs operation `index`; `exact` if the store must find what is there and nothing else.
    ///
    /// # Errors
    /// Whatever the store reports, or a wrong answer.
    pub fn run(&self, index: usize, store: &dyn Store, exact: bool) -> Result<Effect> {
        let first = index * self.width;
        let mut effect = Effect::default();
        let mut seen = 0;
        let mut see = |value: &[u8]| seen += consume(value);
        match self.operations[index] {
            Operation::Get { present } => {
                let found = store.get(self.key(first), &mut see)?;
                ensure!(
                    !exact || found == present,
                    "a key that is there was missed, or one that is not was found"
                );
                effect.rows = found.into();
            }
            Operation::MultiGet => {
                let keys: Vec<&[u8]> = (0..self.width).map(|at| self.key(first + at)).collect();
                let found = store.multi_get(&keys, &mut see)?;
                let count = keys.len();
                ensure!(!exact || found == count, "found {found} of {count} keys that are there");
                effect.rows = found as u64;
            }
            Operation::Put | Operation::Insert => {
                store.put(self.key(first), self.value(first))?;
                effect.puts = 1;
            }
            Operation::Batch => {
                let records: [(&[u8], &[u8]); BATCH] =
                    std::array::from_fn(|at| (self.key(first + at), self.value(first + at)));
                store.put_batch(&records)?;
                effect.puts = BATCH as u64;
            }
            Operation::Modify => {
                let found = store.get(self.key(first), &mut see)?;
                ensure!(!exact || found, "missed a key that is there");
                store.put(self.key(first), self.value(first))?;
                effect.puts = 1;
            }
            Operation::Scan { rows, direction } => {
                let left = &mut effect.rows;
                store.scan(self.key(first), direction, &mut |_, value| {
                    seen += consume(value);
                    *left += 1;
                    if *left == rows { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                })?;
            }
        }
        effect.seen = seen;
        Ok(effect)
    }
}

/// Fills chunks for one load thread.
pub struct Maker<'a> {
    format: &'a Format,
    work: Work,
    records: u64,
    rng: Rng,
    zipfian: Option<ScrambledZipfian>,
    latest: Option<SkewedLatest>,
    /// First number of what the phase loads or inserts.
    insert_from: u64,
    thread: u64,
    threads: u64,
    chunk_operations: usize,
    /// Records that this thread has loaded or inserted so far.
    inserted: u64,
    key: Vec<u8>,
    value: Vec<u8>,
}

/// Whose chunks a [`Maker`] fills.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    pub seed: u64,
    /// Place of the phase in its turn.
    pub phase: usize,
    pub thread: usize,
    pub threads: usize,
    /// Operations in a chunk, at most.
    pub chunk_operations: usize,
}

impl<'a> Maker<'a> {
    /// For a store of `records` records.
    pub fn new(format: &'a Format, work: Work, choice: Choice, records: u64, part: Part) -> Self {
        let stream = (part.phase as u64) << 32 | part.thread as u64;
        Self {
            format,
            work,
            records,
            rng: Rng::stream(part.seed, stream),
            zipfian: (choice == Choice::Zipfian).then(|| ScrambledZipfian::new(0, records)),
            latest: (choice == Choice::Latest).then(|| SkewedLatest::new(records)),
            insert_from: if work.loads() { 0 } else { first_insert(part.phase) },
            thread: part.thread as u64,
            threads: part.threads as u64,
            chunk_operations: part.chunk_operations,
            inserted: 0,
            key: vec![0; KEY_BYTES],
            value: Vec::new(),
        }
    }

    /// Replaces what is in `chunk` by the next operations; leaves it empty when a load is done.
    pub fn fill(&mut self, chunk: &mut Chunk) {
        let width = self.work.width();
        let operation_bytes = width * (KEY_BYTES + self.format.value_bytes());
        let mut operations = (CHUNK_BYTES / operation_bytes).clamp(1, self.chunk_operations);
        if self.work.loads() {
            let own = (self.records - self.thread).div_ceil(self.threads);
            let left = usize::try_from(own - self.inserted).unwrap_or(usize::MAX);
            operations = operations.min(left / width);
        }
        chunk.operations.clear();
        chunk.keys.clear();
        chunk.values.clear();
        (chunk.width, chunk.value_bytes) = (width, self.format.value_bytes());
        for _ in 0..operations {
            let operation = self.operation();
            chunk.operations.push(operation);
            for _ in 0..width {
                let number = self.number(operation);
                if self.work == Work::FullScans {
                    // Before all others.
                    self.key.fill(0);
                } else {
                    self.format.key(number, &mut self.key);
                }
                chunk.keys.extend_from_slice(&self.key);
                if operation.writes() {
                    let version = self.rng.next_u64() as u32;
                    self.format.value(number, version, &mut self.value);
                    chunk.values.extend_from_slice(&self.value);
                } else if self.work.writes() {
                    chunk.values.resize(chunk.values.len() + self.format.value_bytes(), 0);
                }
            }
        }
    }

    fn operation(&mut self) -> Operation {
        let percent = self.rng.below(100);
        let forward = Direction::Forward;
        match self.work {
            Work::Load => Operation::Put,
            Work::LoadBatches => Operation::Batch,
            Work::Gets { absent } => Operation::Get { present: percent >= absent },
            Work::MultiGets { .. } => Operation::MultiGet,
            Work::Scans { rows, direction } => Operation::Scan { rows, direction },
            Work::FullScans => Operation::Scan { rows: u64::MAX, direction: forward },
            Work::Mix { updates, .. } if percent < updates => Operation::Put,
            Work::Mix { updates, modifies, .. } if percent < updates + modifies => Operation::Modify,
            Work::Mix { updates, modifies, inserts } if percent < updates + modifies + inserts => {
                Operation::Insert
            }
            Work::Mix { .. } => Operation::Get { present: true },
            Work::ScanMix { inserts } if percent < inserts => Operation::Insert,
            Work::ScanMix { .. } => Operation::Scan { rows: 1 + self.rng.below(100), direction: forward },
        }
    }

    /// The record of the next key of `operation`.
    fn number(&mut self, operation: Operation) -> u64 {
        match operation {
            Operation::Get { present: false } => ABSENT + self.rng.below(ABSENT),
            _ if self.work.loads() || operation == Operation::Insert => {
                self.inserted += 1;
                self.own(self.inserted - 1)
            }
            _ => self.chosen(),
        }
    }

    /// The `index`th record that this thread loads or inserts.
    fn own(&self, index: u64) -> u64 {
        self.insert_from + index * self.threads + self.thread
    }

    /// A record that is there.
    fn chosen(&mut self) -> u64 {
        if let Some(zipfian) = &self.zipfian {
            return zipfian.next(&mut self.rng);
        }
        if let Some(latest) = &mut self.latest {
            // What other threads insert meanwhile may not be there yet, so each looks back upon its own.
            let age = latest.next_age(self.records + self.inserted, &mut self.rng);
            return match age.checked_sub(self.inserted) {
                None => self.own(self.inserted - 1 - age),
                Some(older) => self.records - 1 - older,
            };
        }
        self.rng.below(self.records)
    }
}

#[cfg(test)]
mod tests;
