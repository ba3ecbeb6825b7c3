//! The stores that LSbM's authors compare, at the scale of a run.
//!
//! Records have 456 bytes in blocks of 2 KiB: four to a block, as the paper's. All sizes in bytes follow, so that levels and cache
//! hold as many records as the paper's. Periods follow the scale, as the time in which a level fills does.
//!
//! Tables are divided by the root of the scale alone. A seek takes as long at any scale, so compactions that read pieces as much
//! shorter as levels are would be held up by readers as none of the paper's was.

use std::time::Duration;

use terrace::Options;
use terrace::tree::{Buffer, Caching, Cutter, Drain, Flushes, Layout, Leveled, Picker, Retainer, TableSize};

use crate::paper::experiment::Setting;
use crate::paper::figures::{LEVEL1_BYTES_MIN, MEMTABLE_BYTES_MIN, memory_for};

/// Records of the paper's 20 GB.
pub(super) const RECORDS: u64 = 20_971_520;

pub(super) const KEY_BYTES: usize = 16;
pub(super) const VALUE_BYTES: usize = 440;
const BLOCK_BYTES: u32 = 2048;
const PAPER_RECORD_BYTES: f64 = 1024.0;

const LEVEL0_BYTES: u64 = 100_000_000;
const LEVEL1_BYTES: u64 = 1_000_000_000;
const TABLE_BYTES: u64 = 2 << 20;
const SUPER_FILE_BYTES: u64 = 20 << 20;
const CACHE_BYTES: u64 = 6_000_000_000;
const PAPER_BLOCK_BYTES: u64 = 4096;

/// What a block takes in the cache: its frame, which is up to a sixteenth longer, and its entry.
const CACHED_BLOCK_BYTES: u64 = BLOCK_BYTES as u64 * 17 / 16 + 96;

/// Index and filter of a record take about so much of the same budget; all levels together have half as many records again as
/// there are.
const OPEN_RECORD_BYTES: u64 = 12 * 3 / 2;
const PERIOD: Duration = Duration::from_secs(30);

/// Number of runs at which LevelDB compacts level 0.
const LEVEL0_RUNS: u64 = 4;

const TABLE_BYTES_MIN: u64 = 4 << 10;

pub(super) const DEVIATIONS: &[&str] = &[
    "records of 456 B in blocks of 2 KiB, all sizes in proportion, so that runs are shorter",
    "tables are divided by the root of the scale, so that a compaction reads long pieces as the paper's does",
    "time is scaled as data is: what is written per second is not, so levels fill so many times sooner",
    "the cache has as many blocks as the paper's, and room for open tables besides",
    "no store caches anything but blocks, whatever Terrace would (tree.caching)",
];

/// A store of the paper.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Store {
    LevelDb,
    Blsm,
    /// bLSM, and half of the memory holds records in front of it.
    RecordCache,
    /// bLSM, and all of the memory is the operating system's cache of its files.
    SystemCache,
    WarmUp,
    SteppedMerge,
    Lsbm,
    /// Ours: LSbM, and what compactions write in the place of cached blocks.
    LsbmWarmUp,
}

impl Store {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::LevelDb => "LevelDB",
            Self::Blsm => "bLSM",
            Self::RecordCache => "bLSM with K-V store cache",
            Self::SystemCache => "bLSM, cache of the system",
            Self::WarmUp => "bLSM with warming up",
            Self::SteppedMerge => "SM",
            Self::Lsbm => "LSbM",
            Self::LsbmWarmUp => "LSbM with warming up (ours)",
        }
    }

    fn profile(self) -> &'static str {
        match self {
            Self::LevelDb => "leveldb-2m",
            Self::Blsm | Self::RecordCache | Self::SystemCache => "blsm",
            Self::WarmUp => "blsm-warm-up",
            Self::SteppedMerge => "sm",
            Self::Lsbm | Self::LsbmWarmUp => "lsbm",
        }
    }

    /// Its options.
    pub(super) fn options(self, setting: &Setting) -> Options {
        let record = (KEY_BYTES + VALUE_BYTES) as f64;
        let bytes = |papers: u64| setting.scaled((papers as f64 * record / PAPER_RECORD_BYTES) as u64);
        let mut options = Options::profile(self.profile()).unwrap_or_default();
        options.keyspace.filter_bits_per_key = 15;
        options.tree.block_bytes = BLOCK_BYTES;
        options.tree.caching = match self {
            Self::WarmUp | Self::LsbmWarmUp => Caching::WarmUp,
            Self::SystemCache => Caching::Tables,
            _ => Caching::Blocks,
        };
        let flushes = if self == Self::LevelDb { Flushes::Whole } else { Flushes::Cut };
        let table_bytes = (bytes(TABLE_BYTES) as f64 * setting.scale.sqrt()) as u64;
        let table_bytes = table_bytes.max(TABLE_BYTES_MIN);
        options.tree.cutter = Cutter::Size(TableSize { table_bytes, flushes });
        options.memtable_bytes = bytes(LEVEL0_BYTES).max(MEMTABLE_BYTES_MIN);
        let level1_bytes = bytes(LEVEL1_BYTES).max(LEVEL1_BYTES_MIN);
        match &mut options.tree.layout {
            Layout::Geared(geared) => geared.level1_bytes = level1_bytes,
            Layout::Tiered(tiered) => (tiered.level1_bytes, tiered.l0_trigger) = (level1_bytes, 1),
            layout => {
                let l0_trigger = LEVEL0_RUNS as usize;
                *layout = Layout::Leveled(Leveled { level1_bytes, l0_trigger, ..Leveled::default() });
                options.memtable_bytes = (options.memtable_bytes / LEVEL0_RUNS).max(MEMTABLE_BYTES_MIN);
            }
        }
        if let Picker::Drain(_) = options.tree.picker {
            options.tree.picker = Picker::Drain(Drain { unit_bytes: bytes(SUPER_FILE_BYTES) });
        }
        if let Retainer::Buffer(buffer) = options.tree.retainer {
            let period = setting.scaled_time(PERIOD).max(Duration::from_millis(1));
            options.tree.retainer = Retainer::Buffer(Buffer { period, ..buffer });
        }
        let cached = match self {
            Self::RecordCache => CACHE_BYTES / 2,
            Self::SystemCache => 0,
            _ => CACHE_BYTES,
        };
        let cache = cache_bytes(setting, cached / PAPER_BLOCK_BYTES);
        options.memory_bytes = Some(memory_for(cache, bytes(LEVEL0_BYTES).max(MEMTABLE_BYTES_MIN)));
        options
    }

    /// Records that a cache in front of it has room for.
    pub(super) fn cached_records(self, setting: &Setting) -> Option<u64> {
        let records = || setting.scaled(CACHE_BYTES / 2 / PAPER_RECORD_BYTES as u64);
        (self == Self::RecordCache).then(records)
    }

    /// Bytes of the operating system's cache; none if the store has one itself. It holds as many of the store's blocks.
    pub(super) fn page_cache_bytes(self, setting: &Setting) -> Option<u64> {
        let blocks = || setting.scaled(CACHE_BYTES / PAPER_BLOCK_BYTES);
        (self == Self::SystemCache).then(|| blocks() * u64::from(BLOCK_BYTES))
    }
}

/// The budget in which the cache has as many blocks as the paper's has of `blocks`, beside open tables. A sixteenth of it is free
/// frames.
fn cache_bytes(setting: &Setting, blocks: u64) -> u64 {
    let blocks = setting.scaled(blocks.max(1)) * CACHED_BLOCK_BYTES;
    (blocks + setting.scaled(RECORDS) * OPEN_RECORD_BYTES) * 16 / 15
}
