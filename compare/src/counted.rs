//! A phase by number of operations instead of by time, by one thread in this process: for `profile.sh`, whose tools count
//! what a process does.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::{Parser, ValueEnum};

use crate::process::{Usage, settle};
use crate::records::{Format, KEY_BYTES};
use crate::scorecard::{GROUPS, Phase, Workload, phases};
use crate::store::{Direction, Durability, Engine, Opening, Store};
use crate::work::{CHUNK_OPERATIONS, Chunk, Effect, Maker, Part};

/// First argument of a process that is to do this; the others are [`Counted`].
pub const COUNTED: &str = "--counted";

/// Processor time is told of one in so many parts of the operations, too, the fastest: on a machine that others share, the steadier figure.
const PARTS: u64 = 10;

/// Longest time to wait for the work of the background, which valgrind makes slow.
const SETTLE: Duration = Duration::from_secs(600);

/// Runs a phase of the scorecard by number of operations; a load makes the store that other phases need.
#[derive(Parser)]
#[command(name = "terrace-compare --counted")]
pub struct Counted {
    #[arg(value_parser = |name: &str| Engine::try_from(name.to_owned()))]
    engine: Engine,

    /// One that does not limit memory, such as load-r, get-u-1, scan-10 or ycsb-a
    #[arg(value_parser = phase)]
    phase: (usize, Phase),

    /// Of the store, kept after the run
    directory: PathBuf,

    /// Operations that count; a load ends with the records
    #[arg(long)]
    operations: u64,

    /// Operations before those
    #[arg(long, default_value_t = 0)]
    warm_up: u64,

    /// Records of the data set
    #[arg(long, default_value_t = 300_000)]
    records: u64,

    /// Size of their values, behind keys of 16 bytes
    #[arg(long, default_value_t = 100)]
    value_bytes: usize,

    /// Size of the cache [default: all data fits twice]
    #[arg(long)]
    cache_bytes: Option<usize>,
}

/// The phase called `name`, and its place among all.
fn phase(name: &str) -> Result<(usize, Phase)> {
    let mut all = GROUPS.into_iter().flat_map(|group| phases(group, Workload::value_variants())).enumerate();
    let found = all.find(|(_, phase)| phase.name == name && phase.workload != Workload::Tail);
    found.with_context(|| format!("no phase in a closed loop is called {name}"))
}

impl Counted {
    /// Opens the store, does what is asked for, and closes it; what the operations that count did.
    ///
    /// # Errors
    /// Whatever the store reports, a wrong answer, or a load that ends early.
    pub fn run(&self) -> Result<Effect> {
        let (index, phase) = self.phase;
        let group = phase.workload.group();
        let format = Format::new(group.order(), self.value_bytes)?;
        let part = Part { seed: 1, phase: index, thread: 0, threads: 1, chunk_operations: CHUNK_OPERATIONS };
        std::fs::create_dir_all(&self.directory)?;
        let store = self.engine.open(&self.directory, &self.opening(&format, group.durability())?)?;
        let mut steps = Steps {
            counted: self,
            maker: Maker::new(&format, phase.work, phase.choice, self.records, part),
            store: &*store,
            chunk: Chunk::default(),
            next: 0,
        };
        steps.warm_up()?;
        let effect = steps.operations_that_count()?;
        store.close()?;
        Ok(effect)
    }

    /// All data fits in the cache twice, unless its size is given, and memtables hold a sixteenth of it, so that a small store has levels, too.
    fn opening(&self, format: &Format, durability: Durability) -> Result<Opening> {
        let data = usize::try_from(self.records * format.record_bytes())?;
        Ok(Opening {
            cache_bytes: self.cache_bytes.unwrap_or((2 * data).max(64 << 20)),
            memtable_bytes: (data / 16).max(1 << 20),
            durability,
        })
    }
}

/// Operations on their way.
struct Steps<'a> {
    counted: &'a Counted,
    maker: Maker<'a>,
    store: &'a dyn Store,
    chunk: Chunk,
    /// Place in the chunk of the operation that is next.
    next: usize,
}

impl Steps<'_> {
    /// Reads everything, where it is to be there, and does the operations that come before those that count.
    fn warm_up(&mut self) -> Result<()> {
        if self.exact() && !self.counted.phase.1.work.loads() {
            let mut rows = 0;
            self.store.scan(&[0; KEY_BYTES], Direction::Forward, &mut |_, _| {
                rows += 1;
                ControlFlow::Continue(())
            })?;
            ensure!(rows >= self.counted.records, "the store has {rows} records: load it first");
        }
        self.run(self.counted.warm_up)?;
        self.settle()
    }

    /// Does those that count, and waits for the work that they leave behind. `profile.sh` knows this function by its name.
    #[inline(never)]
    fn operations_that_count(&mut self) -> Result<Effect> {
        let operations = self.counted.operations;
        let (mut effect, mut fastest) = (Effect::default(), f64::INFINITY);
        let before = Usage::now()?;
        for part in 0..PARTS {
            let count = operations * (part + 1) / PARTS - operations * part / PARTS;
            let before = Usage::now()?;
            effect.add(self.run(count)?);
            fastest = fastest.min(before.cpu_us_per(count)?);
        }
        let all = before.cpu_us_per(operations)?;
        println!("processor time: {all:.2} us per operation, {fastest:.2} in the fastest tenth of them");
        if self.counted.phase.1.work.writes() {
            self.settle()?;
        }
        Ok(effect)
    }

    fn run(&mut self, operations: u64) -> Result<Effect> {
        let mut effect = Effect::default();
        for _ in 0..operations {
            if self.next == self.chunk.len() {
                self.maker.fill(&mut self.chunk);
                self.next = 0;
                ensure!(self.chunk.len() > 0, "all records are loaded");
            }
            effect.add(self.chunk.run(self.next, self.store, self.exact())?);
            self.next += 1;
        }
        std::hint::black_box(effect.seen);
        Ok(effect)
    }

    fn settle(&self) -> Result<()> {
        let rest = settle(&self.counted.directory, SETTLE)?;
        ensure!(!rest.cut_off, "the background has not come to rest");
        Ok(())
    }

    fn exact(&self) -> bool {
        self.counted.engine != Engine::Empty
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(engine: Engine, phase: &str, directory: &std::path::Path, operations: &str) -> Result<Effect> {
        let words = ["", &engine.name(), phase, directory.to_str().unwrap(), "--records", "2000"];
        let counts = ["--warm-up", "100", "--operations", operations];
        Counted::try_parse_from(words.iter().chain(&counts))?.run()
    }

    #[test]
    fn so_many_operations_are_done_and_no_more() {
        for engine in [Engine::Terrace, Engine::Rocksdb, Engine::Leveldb, Engine::Fjall, Engine::Lmdb] {
            let directory = tempfile::tempdir().unwrap();
            let run = |phase, operations| run(engine, phase, directory.path(), operations).unwrap();
            assert_eq!(run("load-r", "1900").puts, 1900);
            let found = run("get-u-1", "1500").rows;
            assert!((1300..1400).contains(&found), "{found} of 1500, a tenth of them absent");
            assert!((9900..=10_000).contains(&run("scan-10", "1000").rows));
            let updates = run("ycsb-a", "1000").puts;
            assert!((450..550).contains(&updates), "{updates} updates of 1000 operations");
            assert_eq!(run("get-u-1", "0").rows, 0);
        }
    }

    #[test]
    fn what_cannot_be_done_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let run = |phase, operations| run(Engine::Terrace, phase, directory.path(), operations);
        assert!(run("get-u-1", "1").is_err(), "nothing is loaded");
        assert!(run("load-r", "1901").is_err(), "there are 2000 records");
        assert!(run("get-x", "1").is_err() && run("tail", "1").is_err());
    }
}
