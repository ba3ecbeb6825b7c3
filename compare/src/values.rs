//! `terrace-compare values`: what large values cost, of Terrace with and without separation and of its peers.
//!
//! The workload is [`terrace_bench::values`]'. Every engine measures values of one size in a process and a directory of its own,
//! whose memory and page cache are limited; all engines take their turns with one size before the next one comes.

mod subject;

use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, bail, ensure};
use clap::Parser;
use serde::{Deserialize, Serialize};
use terrace_bench::values::{self as bench, Cell, Choice, Role, Separation, Size, Terrace, ValuesRun};

use self::subject::{Peer, Settled};
use crate::apart::{self, Outputs, plain};
use crate::cgroup::MemoryLimit;
use crate::child;
use crate::machine::touch_memory;
use crate::store::Engine;

/// First argument of this program that asks for this.
pub const VALUES: &str = "values";

/// First argument of a process that measures one engine, given as the second.
pub const VALUES_TURN: &str = "--values-turn";

/// Names of Terrace with separated values, and without.
const TERRACE: &str = "terrace";
const TERRACE_NEVER: &str = "terrace-never";

/// Sizes, data and times of a quick look.
const QUICK_SIZES: &[Size] = &[Size::Fixed(1 << 10), Size::Fixed(16 << 10), Size::Mix];
const QUICK_DATA_MB: u64 = 16;
const QUICK_S: f64 = 0.5;

/// How many times a store's memory a process may use, page cache included, and what it has besides at least: values that are held
/// twice, and what the load generator needs.
const LIMIT_TIMES: u64 = 2;
const LIMIT_BESIDES_BYTES: u64 = 256 << 20;

/// Measures what large values cost: rates, bytes written, and space over time, of Terrace and its peers
///
/// The workload is that of `terrace bench values`. All stores have the same memory, a quarter of the data.
#[derive(Parser)]
#[command(name = "terrace-compare values")]
pub struct Arguments {
    /// Engines, in the order of the first round: `terrace`, `terrace-never` (values are never separated), and those of `terrace-compare`
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "terrace,terrace-never,rocksdb-blob,rocksdb,fjall-blob,solistore,surrealkv"
    )]
    engines: Vec<Contender>,

    /// Sizes of values, in bytes or with K or M, `mix` and `mail` [default: 256,1K,4K,16K,64K,1M,16M,mix,mail]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    sizes: Vec<Size>,

    /// From which size on `terrace` separates values: bytes, or `default`
    #[arg(long, value_name = "BYTES|default", default_value = "default")]
    separate_from: Separation,

    /// Megabytes (of 2^20 bytes) of keys and values [default: 1024]
    #[arg(long, value_name = "MB")]
    data_mb: Option<u64>,

    /// Seconds of each phase of updates; phases of reads take a third of it [default: 30]
    #[arg(long, value_name = "S")]
    seconds: Option<f64>,

    /// Seconds after the last write at which space is told as that at rest [default: 5]
    #[arg(long, value_name = "S")]
    rest_seconds: Option<f64>,

    /// Rounds; every other one has the opposite order of engines
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,

    /// Megabytes (of 2^20 bytes) that a process may use, page cache included; 0 for no limit [default: twice a store's memory, and at
    /// least 256 more than that memory]
    #[arg(long, value_name = "MB")]
    limit_mb: Option<u64>,

    /// Little data, short phases and one round, to see that everything works: the figures say nothing
    #[arg(long)]
    quick: bool,

    /// Seed of all random choices
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Directory for the stores, on the disk to measure [default: that for temporary files]
    #[arg(long)]
    dir: Option<PathBuf>,

    #[command(flatten)]
    outputs: Outputs,

    /// Also write the tables, which standard output gets, to this file
    #[arg(long)]
    markdown: Option<PathBuf>,
}

/// An engine by its name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Contender {
    Separated,
    Whole,
    Peer(Engine),
}

impl std::str::FromStr for Contender {
    type Err = anyhow::Error;

    fn from_str(name: &str) -> Result<Self> {
        Ok(match name {
            TERRACE => Self::Separated,
            TERRACE_NEVER => Self::Whole,
            _ => match Engine::try_from(name.to_owned())? {
                engine if engine.is_terrace() || matches!(engine, Engine::Shaped(_)) || !engine.is_store() => {
                    bail!("{name} is no peer of {TERRACE} and {TERRACE_NEVER}")
                }
                engine => Self::Peer(engine),
            },
        })
    }
}

/// What a process measures.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Job {
    contender: Contender,
    separate_from: String,
    size: Size,
    round: u32,
    data_bytes: u64,
    update_s: f64,
    read_s: f64,
    rest_s: f64,
    seed: u64,
    /// Where its store gets its directory.
    root: PathBuf,
    /// Where to ask for a limit of memory.
    entrance: Option<PathBuf>,
}

/// Measures all engines and says what came out.
///
/// # Errors
/// Settings that make no sense, or the run was interrupted. An engine that fails has a note instead of figures.
pub fn main(arguments: &Arguments) -> Result<()> {
    ensure!(arguments.separate_from != Separation::Never, "--separate-from: {TERRACE_NEVER} is an engine");
    let separated = Terrace::new("default", arguments.separate_from).map_err(plain)?;
    if bench::Engine::role(&separated) != Role::Separated {
        eprintln!(
            "No goals are told: Terrace separates no values by default. --separate-from BYTES makes it"
        );
    }
    child::handle_interrupts()?;
    let root = apart::root(arguments.dir.as_deref())?;
    let choice = arguments.choice(root.path().to_owned())?;
    let limit_bytes = arguments.limit_bytes(&choice);
    if let Some(Err(error)) = limit_bytes.map(MemoryLimit::new) {
        eprintln!("SKIPPED: memory is not limited, so the page cache has all that there is: {error:#}");
    }
    touch_memory();
    let cells = arguments.cells(&choice, limit_bytes)?;
    let run = choice.run(cells);
    let run = ValuesRun { provenance: apart::provenance(), ..run };
    let markdown = bench::markdown(&run);
    print!("{markdown}");
    if let Some(path) = &arguments.markdown {
        std::fs::write(path, &markdown)?;
    }
    arguments.outputs.write(VALUES, &run)?;
    Ok(())
}

impl Arguments {
    fn sizes(&self) -> &[Size] {
        match (&self.sizes[..], self.quick) {
            ([], true) => QUICK_SIZES,
            ([], false) => Size::DEFAULT,
            (sizes, _) => sizes,
        }
    }

    fn choice(&self, dir: PathBuf) -> Result<Choice> {
        let usual = Choice::default();
        let data_mb = self.data_mb.unwrap_or(if self.quick { QUICK_DATA_MB } else { usual.data_bytes >> 20 });
        let seconds = self.seconds.unwrap_or(if self.quick { QUICK_S } else { usual.update_s });
        ensure!((1..=1 << 20).contains(&data_mb), "--data-mb takes 1 to {}", 1 << 20);
        let rest = self.rest_seconds.unwrap_or(if self.quick { QUICK_S } else { usual.rest_s });
        for seconds in [seconds, rest] {
            ensure!((0.0..=86_400.0).contains(&seconds), "--seconds and --rest-seconds take 0 to a day");
        }
        Ok(Choice {
            data_bytes: data_mb << 20,
            update_s: seconds,
            read_s: seconds / 3.0,
            rest_s: rest,
            dir,
            seed: self.seed,
            ..usual
        })
    }

    /// What a process may use, if it is limited.
    fn limit_bytes(&self, choice: &Choice) -> Option<u64> {
        let memory_bytes = choice.memory_bytes();
        let usual = (LIMIT_TIMES * memory_bytes).max(memory_bytes + LIMIT_BESIDES_BYTES);
        self.limit_mb.map_or(Some(usual), |mb| (mb > 0).then_some(mb << 20))
    }

    /// Everything, in interleaved turns.
    fn cells(&self, choice: &Choice, limit_bytes: Option<u64>) -> Result<Vec<Cell>> {
        let mut cells = Vec::new();
        for round in 1..=self.rounds() {
            for &size in self.sizes() {
                let mut engines = self.engines.clone();
                if round % 2 == 0 {
                    engines.reverse();
                }
                for contender in engines {
                    let job = self.job(contender, size, round, choice);
                    let cell = job.cell(limit_bytes)?;
                    eprintln!("round {round}, values of {size}: {}", told(&cell));
                    cells.push(cell);
                }
            }
        }
        Ok(cells)
    }

    fn rounds(&self) -> u32 {
        if self.quick { 1 } else { self.rounds }
    }

    fn job(&self, contender: Contender, size: Size, round: u32, choice: &Choice) -> Job {
        Job {
            contender,
            separate_from: self.separate_from.to_string(),
            size,
            round,
            data_bytes: choice.data_bytes,
            update_s: choice.update_s,
            read_s: choice.read_s,
            rest_s: choice.rest_s,
            seed: choice.seed,
            root: choice.dir.clone(),
            entrance: None,
        }
    }
}

/// What a turn came to, in a line.
fn told(cell: &Cell) -> String {
    let seconds = cell.course.last().map_or(0.0, |point| point.at_s);
    let end = cell.failed.clone().unwrap_or_else(|| format!("{seconds:.0} s"));
    format!("{}: {end}", cell.engine)
}

impl Job {
    /// Runs it in a process of its own, which says what it does on standard error. That an engine fails, or is killed at the limit
    /// of memory, is a result like any other.
    fn cell(mut self, limit_bytes: Option<u64>) -> Result<Cell> {
        let limit = limit_bytes.and_then(|bytes| MemoryLimit::new(bytes).ok());
        self.entrance = limit.as_ref().map(MemoryLimit::entrance);
        match self.run_apart() {
            Ok(cell) => Ok(cell),
            Err(error) if child::is_interrupted() => Err(error),
            Err(error) => {
                let is_killed = limit.is_some_and(|limit| limit.has_killed());
                let failed =
                    if is_killed { "killed at the limit of memory".to_owned() } else { format!("{error:#}") };
                let engine = self.engine()?;
                Ok(Cell {
                    engine: engine.name(),
                    role: engine.role(),
                    version: String::new(),
                    size: self.size,
                    round: self.round,
                    records: 0,
                    memory_growth_bytes: 0,
                    phases: Vec::new(),
                    space_end: 0.0,
                    course: Vec::new(),
                    failed: Some(failed),
                })
            }
        }
    }

    fn run_apart(&self) -> Result<Cell> {
        let asked = apart::ask(VALUES_TURN, self);
        // What it has left behind when it was killed would take the space of those that follow.
        std::fs::read_dir(&self.root)?.flatten().for_each(|left| {
            std::fs::remove_dir_all(left.path()).ok();
        });
        asked
    }

    fn engine(&self) -> Result<Box<dyn bench::Engine>> {
        let separation = match self.contender {
            Contender::Peer(engine) => return Ok(Box::new(Peer::new(engine))),
            Contender::Separated => self.separate_from.parse().map_err(|error: String| anyhow!(error))?,
            Contender::Whole => Separation::Never,
        };
        Ok(Box::new(Settled(Terrace::new("default", separation).map_err(plain)?)))
    }

    /// Measures in this process.
    fn run(&self) -> Result<Cell> {
        if let Some(entrance) = &self.entrance {
            std::fs::write(entrance, std::process::id().to_string())
                .with_context(|| format!("cannot enter {}", entrance.display()))?;
        }
        let choice = Choice {
            data_bytes: self.data_bytes,
            update_s: self.update_s,
            read_s: self.read_s,
            rest_s: self.rest_s,
            dir: self.root.clone(),
            seed: self.seed,
            ..Choice::default()
        };
        if let Contender::Peer(engine) = self.contender {
            let peer = Peer::new(engine);
            let cell = bench::measure(&peer, self.size, self.round, &choice).map_err(plain)?;
            return Ok(Cell { version: peer.version(), ..cell });
        }
        bench::measure(&*self.engine()?, self.size, self.round, &choice).map_err(plain)
    }
}

/// What the process does that is to measure one engine.
///
/// # Errors
/// The one that runs it is gone or asked for something else; or whatever the engine reports.
pub fn turn(job: &str) -> Result<()> {
    apart::answer(job, Job::run)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn arguments(words: &str) -> Result<Arguments, clap::Error> {
        Arguments::try_parse_from(["values"].into_iter().chain(words.split_whitespace()))
    }

    #[test]
    fn every_engine_has_every_phase() {
        Arguments::command().debug_assert();
        let root = tempfile::tempdir().unwrap();
        let quick = arguments("--quick --data-mb 4 --seconds 0 --rest-seconds 0").unwrap();
        let choice = quick.choice(root.path().to_owned()).unwrap();
        for contender in &quick.engines {
            for size in [Size::Fixed(2048), Size::Mix] {
                let cell = quick.job(contender.clone(), size, 1, &choice).run().unwrap();
                assert_eq!(cell.phases.len(), 9, "{contender:?}");
                assert!(cell.space_end > 0.0 && cell.failed.is_none(), "{contender:?}");
                let is_peer = matches!(contender, Contender::Peer(_));
                assert_eq!(cell.version.contains('.'), is_peer, "{:?}", cell.version);
            }
        }
    }

    #[test]
    fn engines_are_known_by_their_names() {
        let named = arguments("--engines terrace,terrace-never,rocksdb-blob").unwrap();
        assert_eq!(
            named.engines,
            [Contender::Separated, Contender::Whole, Contender::Peer(Engine::RocksdbBlob)]
        );
        for wrong in ["terrace-lz4", "terrace@bolt-gc", "rocksdb-blobs"] {
            assert!(arguments(&format!("--engines {wrong}")).is_err(), "{wrong}");
        }
    }

    #[test]
    fn memory_is_limited_to_what_stores_have_and_as_much_again() {
        let of = |words: &str| {
            let arguments = arguments(words).unwrap();
            arguments.limit_bytes(&arguments.choice(PathBuf::new()).unwrap()).map(|bytes| bytes >> 20)
        };
        assert_eq!(of(""), Some(512));
        assert_eq!(of("--data-mb 64"), Some(16 + 256));
        assert_eq!(of("--data-mb 4096"), Some(2048));
        assert_eq!(of("--limit-mb 100"), Some(100));
        assert_eq!(of("--limit-mb 0"), None);
    }
}
