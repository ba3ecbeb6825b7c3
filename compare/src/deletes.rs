//! `terrace-compare deletes`: what deletes cost readers, and when their space comes back, of one engine after the other.
//!
//! The cases are [`terrace_bench::deletes`]'s; every engine runs those of them that need nothing of Terrace's own, in a
//! process and a directory of its own.

mod subject;

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use clap::builder::PossibleValuesParser;
use serde::{Deserialize, Serialize};
use terrace_bench::deletes::{self as bench, CASES, Choice, DeletesRun, Terrace};

use self::subject::Peer;
use crate::apart::{self, Outputs, plain};
use crate::child;
use crate::store::Engine;

/// First argument of this program that asks for this.
pub const DELETES: &str = "deletes";

/// First argument of a process that measures one engine, given as the second.
pub const DELETES_TURN: &str = "--deletes-turn";

/// Measures what deletes cost readers afterwards, and how soon and how fully their space comes back, of Terrace and its peers
///
/// Cases are those of `terrace bench deletes` that every engine can run. Terrace runs as it comes; the others get memtables and a
/// cache of the size that it has by default.
#[derive(Parser)]
#[command(name = "terrace-compare deletes")]
pub struct Arguments {
    /// Engines, in order; those of `terrace-compare`
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "terrace,rocksdb,leveldb,fjall,solistore",
        value_parser = |name: &str| Engine::try_from(name.to_owned()))]
    engines: Vec<Engine>,

    /// A case; may be given several times [default: all]
    #[arg(long = "case", value_name = "NAME", value_parser = names())]
    cases: Vec<String>,

    /// Divide counts of rows by this, at least 1
    #[arg(long, value_name = "F", default_value_t = 1.0)]
    scale: f64,

    /// Seconds after which a loop that has not come to its end is cut off
    #[arg(long, default_value_t = 20.0)]
    seconds: f64,

    /// Seconds that a store is watched at rest, at most 60
    #[arg(long, default_value_t = 60.0)]
    rest_seconds: f64,

    /// Seed of all random choices
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Directory for the stores, on the disk to measure [default: that for temporary files]
    #[arg(long)]
    dir: Option<PathBuf>,

    #[command(flatten)]
    outputs: Outputs,
}

fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(CASES.iter().filter(|case| case.is_common).map(|case| case.name))
}

/// What a process measures.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Job {
    engine: Engine,
    cases: Vec<String>,
    scale: f64,
    limit_s: f64,
    rest_s: f64,
    seed: u64,
    /// Where its stores get their directories.
    root: PathBuf,
}

/// Measures all engines and says what came out.
///
/// # Errors
/// Settings that make no sense, or an engine that failed or was wrong.
pub fn main(arguments: &Arguments) -> Result<()> {
    ensure!(arguments.scale.is_finite() && arguments.scale >= 1.0, "--scale takes 1 and more");
    for seconds in [arguments.seconds, arguments.rest_seconds] {
        ensure!((0.0..=86_400.0).contains(&seconds), "--seconds and --rest-seconds take 0 to a day");
    }
    child::handle_interrupts()?;
    let root = apart::root(arguments.dir.as_deref())?;
    let provenance = apart::provenance();
    let mut runs = Vec::new();
    for &engine in &arguments.engines {
        let job = arguments.job(engine, root.path().to_owned());
        let run = apart::ask(DELETES_TURN, &job).with_context(|| engine.name())?;
        runs.push(DeletesRun { provenance: provenance.clone(), ..run });
    }
    print!("{}", bench::beside(&runs));
    arguments.outputs.write(DELETES, &runs)?;
    Ok(())
}

impl Arguments {
    fn job(&self, engine: Engine, root: PathBuf) -> Job {
        let common = CASES.iter().filter(|case| case.is_common).map(|case| case.name.to_owned());
        Job {
            engine,
            cases: if self.cases.is_empty() { common.collect() } else { self.cases.clone() },
            scale: self.scale,
            limit_s: self.seconds,
            rest_s: self.rest_seconds,
            seed: self.seed,
            root,
        }
    }
}

impl Job {
    /// Measures in this process.
    fn run(&self) -> Result<DeletesRun> {
        let choice = Choice {
            cases: self.cases.clone(),
            scale: self.scale,
            dir: self.root.clone(),
            limit_s: self.limit_s,
            rest_s: self.rest_s,
            seed: self.seed,
        };
        let terrace = match self.engine {
            Engine::Terrace => Some("default"),
            Engine::Shaped(profile) => Some(profile),
            _ => None,
        };
        let engine: Box<dyn bench::Engine> = match terrace {
            Some(options) => Box::new(Terrace::new(options).map_err(plain)?),
            None => Box::new(Peer(self.engine)),
        };
        bench::run(&*engine, &choice, &mut |what| eprintln!("{what}")).map_err(plain)
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

    #[test]
    fn every_engine_runs_every_common_case() {
        Arguments::command().debug_assert();
        let root = tempfile::tempdir().unwrap();
        let words = ["deletes", "--scale", "5000", "--rest-seconds", "0"];
        let arguments = Arguments::try_parse_from(words).unwrap();
        let engines = arguments.engines.iter().copied().chain([Engine::Lmdb, Engine::Redb]);
        let runs: Vec<DeletesRun> =
            engines.map(|engine| arguments.job(engine, root.path().to_owned()).run().unwrap()).collect();
        for run in &runs {
            for case in CASES.iter().filter(|case| case.is_common) {
                let is_measured = run.deletes.iter().any(|row| row.case == case.name);
                // LevelDB has no flush, but every engine has rows in memory and on disk.
                assert!(is_measured || case.name == "seek-tables", "{} of {}", case.name, run.engine);
            }
        }
        let text = bench::beside(&runs);
        assert!(text.lines().next().is_some_and(|head| head.contains("rocksdb") && head.contains("lmdb")));
    }

    #[test]
    fn cases_of_terrace_alone_are_refused() {
        assert!(Arguments::try_parse_from(["deletes", "--case", "expiry"]).is_err());
    }
}
