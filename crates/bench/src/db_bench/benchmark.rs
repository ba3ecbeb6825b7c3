//! The benchmarks of `db_bench`, and the work of a thread of each.

use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use terrace::types::{Key, UpperBound};
use terrace::{Db, Durability, WriteBatch};

use super::{Config, Kind, Tally};
use crate::Result;
use crate::generator::Rng;
use crate::recording::Probe;

/// Operations between two looks at the clock where a duration ends a benchmark.
const BEAT: u64 = 1000;

/// `fillsync` draws from this many times fewer keys.
const SYNCED_KEYS_FEWER: u64 = 1000;

/// A benchmark of `db_bench`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Benchmark {
    /// Write keys in order into a fresh store.
    FillSeq,
    /// Write random keys into a fresh store.
    FillRandom,
    /// Write random keys over those that are there.
    Overwrite,
    /// Write random keys, each synced, into a fresh store.
    FillSync,
    /// Get random keys.
    ReadRandom,
    /// Get keys that are not there.
    ReadMissing,
    /// Walk forwards.
    ReadSeq,
    /// Walk backwards.
    ReadReverse,
    /// Seek random keys.
    SeekRandom,
    /// Delete random keys.
    DeleteRandom,
    /// Get random keys while one more thread writes.
    ReadWhileWriting,
    /// Compact everything.
    Compact,
    /// Wait until no background work is due.
    WaitForCompaction,
    /// Print the statistics.
    Stats,
    /// Print the levels.
    LevelStats,
}

const NAMES: &[(&str, Benchmark)] = &[
    ("fillseq", Benchmark::FillSeq),
    ("fillrandom", Benchmark::FillRandom),
    ("overwrite", Benchmark::Overwrite),
    ("fillsync", Benchmark::FillSync),
    ("readrandom", Benchmark::ReadRandom),
    ("readmissing", Benchmark::ReadMissing),
    ("readseq", Benchmark::ReadSeq),
    ("readreverse", Benchmark::ReadReverse),
    ("seekrandom", Benchmark::SeekRandom),
    ("deleterandom", Benchmark::DeleteRandom),
    ("readwhilewriting", Benchmark::ReadWhileWriting),
    ("compact", Benchmark::Compact),
    ("waitforcompaction", Benchmark::WaitForCompaction),
    ("stats", Benchmark::Stats),
    ("levelstats", Benchmark::LevelStats),
];

impl Benchmark {
    /// The benchmark of that name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        NAMES.iter().find(|(known, _)| *known == name).map(|&(_, benchmark)| benchmark)
    }

    /// All names.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMES.iter().map(|(name, _)| *name)
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(_, known)| *known == self).map_or("", |(name, _)| name)
    }

    /// Whether it begins with an empty store.
    pub(super) fn wants_fresh_store(self) -> bool {
        matches!(self, Self::FillSeq | Self::FillRandom | Self::FillSync)
    }

    /// Whether a duration counts in place of a number: not for what goes through the keys in order, as in RocksDB's db_bench
    /// (`tools/db_bench_tool.cc`: `DoWrite`, `ReadSequential`, `ReadReverse`).
    fn has_duration(self) -> bool {
        !matches!(self, Self::FillSeq | Self::ReadSeq | Self::ReadReverse)
    }

    /// Number of keys that it draws from.
    fn keys(self, config: &Config) -> u64 {
        let fewer = if self == Self::FillSync { SYNCED_KEYS_FEWER } else { 1 };
        (config.num / fewer).max(1)
    }

    /// The end of its line.
    pub(super) fn note(self, config: &Config) -> Option<String> {
        (self == Self::FillSync).then(|| format!("({} ops)", self.keys(config)))
    }
}

/// The state that the threads of one benchmark share.
pub(super) struct Setting<'a> {
    pub config: &'a Config,
    pub benchmark: Benchmark,
    pub db: &'a Db,
    /// Values are cut from this.
    pub value: Vec<u8>,
    /// Says to the writer behind the readers that they are done.
    pub stop: AtomicBool,
}

/// One thread of a benchmark.
pub(super) struct Thread<'a> {
    setting: &'a Setting<'a>,
    rng: Rng,
    tally: Tally,
    key: Vec<u8>,
    deadline: Option<Instant>,
}

impl<'a> Thread<'a> {
    /// Starts the clock.
    pub(super) fn new(setting: &'a Setting<'a>, rng: Rng, probe: Option<Probe>) -> Self {
        let tally = Tally::start(setting.config.histogram, probe);
        let duration = setting.config.duration.filter(|_| setting.benchmark.has_duration());
        let deadline = duration.map(|duration: Duration| Instant::now() + duration);
        Self { setting, rng, tally, key: Vec::new(), deadline }
    }

    /// Does the thread's share.
    pub(super) fn run(mut self) -> Result<Tally> {
        match self.setting.benchmark {
            Benchmark::FillSeq => self.write(|_, number| number)?,
            Benchmark::FillRandom | Benchmark::Overwrite | Benchmark::FillSync => {
                self.write(|thread, _| thread.random())?;
            }
            Benchmark::ReadRandom | Benchmark::ReadWhileWriting => self.read(0)?,
            // One byte more than any key has.
            Benchmark::ReadMissing => self.read(1)?,
            Benchmark::ReadSeq | Benchmark::ReadReverse => self.walk()?,
            Benchmark::SeekRandom => self.seek()?,
            Benchmark::DeleteRandom => self.delete()?,
            Benchmark::Compact => {
                self.setting.db.compact()?;
                self.tally.finished_op(Kind::Other);
            }
            Benchmark::WaitForCompaction | Benchmark::Stats | Benchmark::LevelStats => {}
        }
        self.tally.stop();
        Ok(self.tally)
    }

    /// Writes random keys until the readers are done.
    pub(super) fn write_until_stopped(mut self) -> Result<Tally> {
        while !self.setting.stop.load(Ordering::Relaxed) {
            let number = self.random();
            self.put(number)?;
        }
        self.tally.stop();
        Ok(self.tally)
    }

    fn write(&mut self, mut choose: impl FnMut(&mut Self, u64) -> u64) -> Result<()> {
        let mut number = 0;
        while self.goes_on(number, self.setting.config.num) {
            let chosen = choose(self, number);
            self.put(chosen)?;
            number += 1;
        }
        Ok(())
    }

    fn put(&mut self, number: u64) -> Result<()> {
        self.set_key(number, 0);
        let (config, value) = (self.setting.config, &self.setting.value);
        let at = self.rng.below((value.len() - config.value_size) as u64) as usize;
        let mut batch = WriteBatch::new();
        batch.put(&self.key, &value[at..at + config.value_size]);
        self.setting.db.write_with(batch, self.durability())?;
        self.tally.bytes += (config.key_size + config.value_size) as u64;
        self.tally.finished_op(Kind::Write);
        Ok(())
    }

    fn delete(&mut self) -> Result<()> {
        while self.goes_on(self.tally.done, self.setting.config.num) {
            let number = self.random();
            self.set_key(number, 0);
            let mut batch = WriteBatch::new();
            batch.delete(&self.key);
            self.setting.db.write_with(batch, self.durability())?;
            self.tally.finished_op(Kind::Delete);
        }
        Ok(())
    }

    fn read(&mut self, extra_bytes: usize) -> Result<()> {
        while self.goes_on(self.tally.done, self.reads()) {
            let number = self.random();
            self.set_key(number, extra_bytes);
            let found = self.setting.db.get(&self.key)?;
            if let Some(value) = &found {
                self.tally.bytes += (self.key.len() + value.len()) as u64;
            }
            self.tally.looked_up(found.is_some());
            self.tally.finished_op(Kind::Read);
        }
        Ok(())
    }

    fn walk(&mut self) -> Result<()> {
        let mut iter = self.setting.db.iter()?;
        while self.goes_on(self.tally.done, self.reads()) {
            let forwards = self.setting.benchmark == Benchmark::ReadSeq;
            let record = if forwards { iter.advance()? } else { iter.advance_back()? };
            let Some((key, value)) = record else { break };
            self.tally.bytes += (key.len() + value.len()) as u64;
            self.tally.finished_op(Kind::Read);
        }
        Ok(())
    }

    fn seek(&mut self) -> Result<()> {
        while self.goes_on(self.tally.done, self.reads()) {
            let number = self.random();
            self.set_key(number, 0);
            let end = self.end_of_seek();
            let range = (Bound::Included(&self.key[..]), end.as_ref().map(|end| &end[..]));
            let mut iter = self.setting.db.range(range)?;
            let mut nexts = 0;
            let mut found = false;
            // The record at the key is what a seek without nexts reads, too.
            while let Some((key, value)) = iter.advance()? {
                found |= nexts == 0 && key == self.key;
                if nexts == self.setting.config.seek_nexts {
                    break;
                }
                self.tally.bytes += (key.len() + value.len()) as u64;
                nexts += 1;
            }
            self.tally.looked_up(found);
            self.tally.finished_op(Kind::Seek);
        }
        Ok(())
    }

    /// The end of the range that is read after a seek to the key.
    fn end_of_seek(&self) -> Bound<Key> {
        let config = self.setting.config;
        let rule = config.options.keyspace.prefix.filter(|_| config.prefix_same_as_start);
        match rule.and_then(|rule| rule.of(&self.key)).map(UpperBound::after_prefix) {
            Some(UpperBound::Excluded(end)) => Bound::Excluded(end),
            _ => Bound::Unbounded,
        }
    }

    /// Whether there is an operation after `done` of `planned` ones.
    fn goes_on(&self, done: u64, planned: u64) -> bool {
        match self.deadline {
            Some(deadline) => !done.is_multiple_of(BEAT) || Instant::now() < deadline,
            None => done < planned,
        }
    }

    fn reads(&self) -> u64 {
        self.setting.config.reads.unwrap_or(self.setting.config.num)
    }

    fn random(&mut self) -> u64 {
        self.rng.below(self.setting.benchmark.keys(self.setting.config))
    }

    /// The key of `number`: its bytes, the highest first, then zeros (the digit); cut where a key is shorter.
    fn set_key(&mut self, number: u64, extra_bytes: usize) {
        let bytes: [u8; 8] = std::array::from_fn(|at| (number >> (8 * (7 - at))) as u8);
        let size = self.setting.config.key_size + extra_bytes;
        self.key.clear();
        self.key.extend_from_slice(&bytes[8_usize.saturating_sub(size)..]);
        self.key.resize(size, b'0');
    }

    fn durability(&self) -> Durability {
        if self.setting.config.sync || self.setting.benchmark == Benchmark::FillSync {
            Durability::Synced
        } else {
            self.setting.config.options.durability
        }
    }
}
