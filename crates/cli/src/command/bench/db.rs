//! `terrace bench db`: RocksDB's `db_bench` by its flags.

use std::io;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use anyhow::{Result, anyhow};
use clap::{ArgAction, Args, ValueEnum};
use terrace::{Compression, Db, Options, Prefix};
use terrace_bench::db_bench::{self, Benchmark, Config};
use terrace_bench::report::{Provenance, Run};

use super::output::Output;
use crate::command::{Answer, stats};
use crate::table_io::IoArg;

/// Number of memtables that the memory budget covers beside the cache: one being filled and two being flushed.
const MEMTABLES: u64 = 3;

/// Run db_bench's benchmarks, with its flags, its keys and its output
///
/// Benchmarks: fillseq, fillrandom, fillsync (on a fresh store), overwrite, readrandom, readmissing, readseq,
/// readreverse, seekrandom, deleterandom, readwhilewriting, compact, waitforcompaction, stats, levelstats. Flags are
/// given as --flag=value or --flag value, with one dash or two, and --noflag is --flag=false. Flags of db_bench that only
/// say how RocksDB is built or reports are passed over, which is said; those of other work are refused.
#[derive(Args)]
#[command(
    rename_all = "snake_case",
    after_help = "\
Examples:
  terrace bench db --benchmarks=fillrandom,readrandom --num=1000000 --value_size=100 --threads=2
  terrace bench db --benchmarks=readrandom --use_existing_db=1 --db=/mnt/fast/bench --duration=60 --histogram
  terrace bench db --benchmarks=fillsync,stats --num 20000"
)]
pub struct Arguments {
    /// Benchmarks in order
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "NAMES",
        value_parser = benchmark,
        default_value = "fillseq,fillrandom,overwrite,fillsync,readrandom,readmissing,readseq,readreverse,seekrandom,\
                         deleterandom,readwhilewriting"
    )]
    benchmarks: Vec<Benchmark>,

    /// Keys, and operations of each thread
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    num: u64,

    /// Reads of each thread; below 0: as many as keys
    #[arg(long, value_name = "N", default_value_t = -1, allow_negative_numbers = true)]
    reads: i64,

    /// Size of every value in bytes
    #[arg(long, value_name = "N", default_value_t = 100)]
    value_size: usize,

    /// Size of every key in bytes
    #[arg(long, value_name = "N", default_value_t = 16)]
    key_size: usize,

    /// Threads
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    threads: u16,

    /// End each benchmark after so many seconds, in place of its number of operations, but for those in key order; 0: do not
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    duration: u64,

    /// Go on with the store in --db, and skip benchmarks that want a fresh one
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value = "false",
          default_missing_value = "true", value_parser = switch, action = ArgAction::Set)]
    use_existing_db: bool,

    /// Size of the block cache in bytes; below 0: the store's default
    #[arg(long, value_name = "N", default_value_t = -1, allow_negative_numbers = true)]
    cache_size: i64,

    /// Bits of filter per key; below 0: the store's default
    #[arg(long, value_name = "N", default_value_t = -1, allow_negative_numbers = true)]
    bloom_bits: i64,

    /// Bytes of a key that are its prefix, which filters hold as well; 0: keys have none
    #[arg(long, value_name = "N", default_value_t = 0)]
    prefix_size: u16,

    /// End what is read behind a seek where the prefix of --prefix_size ends
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value = "false",
          default_missing_value = "true", value_parser = switch, action = ArgAction::Set)]
    prefix_same_as_start: bool,

    /// Size of a full memtable in bytes; 0: the store's default
    #[arg(long, value_name = "N", default_value_t = 0)]
    write_buffer_size: u64,

    /// Compression of tables
    #[arg(long, value_name = "NAME", value_enum, default_value_t = CompressionType::None)]
    compression_type: CompressionType,

    /// Make every write survive power loss before it returns
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value = "false",
          default_missing_value = "true", value_parser = switch, action = ArgAction::Set)]
    sync: bool,

    /// Seed of all random choices; 0: taken from the clock
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Records to read behind each seek
    #[arg(long, value_name = "N", default_value_t = 0)]
    seek_nexts: u64,

    /// Print histograms of latencies
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value = "false",
          default_missing_value = "true", value_parser = switch, action = ArgAction::Set)]
    histogram: bool,

    /// Directory of the store; one that an earlier run has made is emptied [default: a temporary one]
    #[arg(long, value_name = "DIR")]
    db: Option<PathBuf>,

    #[command(flatten)]
    io: IoArg,

    #[command(flatten)]
    output: Output,
}

/// A name of db_bench's compressions that Terrace has, too.
#[derive(Clone, Copy, ValueEnum)]
enum CompressionType {
    None,
    Lz4,
}

pub fn run(arguments: Arguments) -> Result<Answer> {
    let (config, output) = arguments.into_config()?;
    let describe = |db: &Db| stats::text(&db.stats()).unwrap_or_default();
    let reports = db_bench::run(&config, &mut io::stdout().lock(), describe).map_err(|error| match error
        .downcast::<io::Error>(
    ) {
        Ok(error) => anyhow::Error::from(*error),
        Err(error) => anyhow!("{error}"),
    })?;
    if output.is_wanted() {
        output.write("db", &Run { provenance: Provenance::here(), seed: config.seed, phases: reports })?;
    }
    Ok(Answer::Yes)
}

impl Arguments {
    fn into_config(self) -> Result<(Config, Output)> {
        let mut options = Options::default();
        if self.write_buffer_size > 0 {
            options.memtable_bytes = self.write_buffer_size;
        }
        if let Ok(cache_bytes) = u64::try_from(self.cache_size) {
            options.memory_bytes =
                Some(cache_bytes.saturating_add(MEMTABLES.saturating_mul(options.memtable_bytes)));
        }
        if self.bloom_bits >= 0 {
            let bits = u8::try_from(self.bloom_bits);
            options.keyspace.filter_bits_per_key = bits.map_err(|_| anyhow!("--bloom_bits: at most 20"))?;
        }
        options.keyspace.prefix = (self.prefix_size > 0).then_some(Prefix::Fixed(self.prefix_size));
        options.keyspace.compression = match self.compression_type {
            CompressionType::None => Compression::None,
            CompressionType::Lz4 => Compression::Lz4,
        };
        options.validate()?;
        let config = Config {
            benchmarks: self.benchmarks,
            num: self.num,
            reads: u64::try_from(self.reads).ok(),
            value_size: self.value_size,
            key_size: self.key_size,
            threads: self.threads.into(),
            duration: (self.duration > 0).then(|| Duration::from_secs(self.duration)),
            use_existing_db: self.use_existing_db,
            seed: if self.seed == 0 { seed_of_clock() } else { self.seed },
            seek_nexts: self.seek_nexts,
            prefix_same_as_start: self.prefix_same_as_start,
            histogram: self.histogram,
            record: self.output.is_wanted(),
            sync: self.sync,
            db: self.db,
            env: self.io.env(),
            options,
        };
        Ok((config, self.output))
    }
}

/// As db_bench chooses and prints it.
fn seed_of_clock() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let seed = u64::try_from(since.as_micros()).unwrap_or(1);
    eprintln!("Set seed to {seed} because --seed was 0");
    seed
}

fn benchmark(name: &str) -> Result<Benchmark, String> {
    Benchmark::of_name(name).ok_or_else(|| {
        format!("no such benchmark here: there are {}", Benchmark::names().collect::<Vec<_>>().join(", "))
    })
}

/// A Boolean value as gflags reads it.
fn switch(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "t" | "true" | "y" | "yes" => Ok(true),
        "0" | "f" | "false" | "n" | "no" => Ok(false),
        _ => Err("expected true or false".to_owned()),
    }
}
