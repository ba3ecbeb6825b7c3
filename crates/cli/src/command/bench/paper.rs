//! `terrace bench paper`: runs the experiments of the papers that Terrace follows.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use clap::{Args, Subcommand};
use terrace_bench::paper::{self, Choice, Experiment};

use super::device;
use super::output::Output;
use crate::command::Answer;

/// List the figures and tables of the papers that Terrace follows, or run some of them
#[derive(Args)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    List(ListArguments),
    Run(RunArguments),
    Calibrate(CalibrateArguments),
}

/// List the experiments and whether they can be run
#[derive(Args)]
#[command(after_help = "\
Examples:
  terrace bench paper list
  terrace bench paper list bolt-4a lsbm-8d")]
struct ListArguments {
    /// Experiments of which to print all that is known [default: a line for each]
    #[arg(value_name = "ID")]
    ids: Vec<String>,
}

/// Run experiments and hold what they measure against the papers' claims
///
/// What needs a mechanism that is not there yet is refused. On a simulated device all times are virtual: they contain the device,
/// the page cache, waiting, and the processor time of clients' calls, of flushes and of compactions, but no shortage of processors,
/// and a seed replays them exactly. A claim that does not hold is a result like any other: the exit status is 0.
#[derive(Args)]
#[command(after_help = "\
Examples:
  terrace bench paper run bolt-4a --scale 512
  terrace bench paper run lsbm-8b dlc-1 --json runs.json --html runs.html
  terrace bench paper run bolt-11 --sync-ms 6
  terrace bench paper run bolt-4a --scale 512 --device real --dir /mnt/slow")]
struct RunArguments {
    /// Experiments
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,

    /// Divide the papers' sizes by this, at least 1 [default: each experiment's own]
    #[arg(long, value_name = "S")]
    scale: Option<f64>,

    /// Simulated device, or `real` for the file system [default: the one nearest to the paper's]
    #[arg(long, value_name = "NAME", value_parser = device::names())]
    device: Option<String>,

    /// What a flush of a simulated device takes at the paper's scale, in milliseconds; a sync takes two where a file has grown or
    /// names have changed [default: the device's own]
    #[arg(long, value_name = "MS", value_parser = milliseconds)]
    sync_ms: Option<Duration>,

    /// Directory for the stores of --device real, which are removed afterwards [default: the system's temporary one]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// Seed of all random choices and, on a simulated device, of the order of threads
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Where the runs are written to, as an array with an object for each
    #[command(flatten)]
    output: Output,
}

/// Measure what compactions take of this machine's processor, for each record and each KiB
///
/// It tells what the constants of the simulated machines would be if they had this processor.
#[derive(Args)]
#[command(after_help = "\
Example:
  terrace bench paper calibrate --dir /dev/shm")]
struct CalibrateArguments {
    /// Directory for the stores, which are removed afterwards; best in memory [default: the system's temporary one]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

fn milliseconds(text: &str) -> Result<Duration> {
    let millis: f64 = text.parse()?;
    Duration::try_from_secs_f64(millis / 1e3).map_err(|_| anyhow!("not a time: {text}"))
}

pub fn run(arguments: &Arguments) -> Result<Answer> {
    match &arguments.action {
        Action::List(arguments) => list(arguments),
        Action::Run(arguments) => run_all(arguments),
        Action::Calibrate(arguments) => calibrate(arguments),
    }
}

fn list(arguments: &ListArguments) -> Result<Answer> {
    let text = if arguments.ids.is_empty() {
        paper::list(paper::experiments())
    } else {
        find_all(&arguments.ids)?.into_iter().map(paper::details).collect::<Vec<_>>().join("\n")
    };
    io::stdout().lock().write_all(text.as_bytes())?;
    Ok(Answer::Yes)
}

fn calibrate(arguments: &CalibrateArguments) -> Result<Answer> {
    let dir = arguments.dir.clone().unwrap_or_else(std::env::temp_dir);
    let calibration = paper::calibrate(&dir).map_err(|error| anyhow!("{error}"))?;
    write!(io::stdout().lock(), "{calibration}")?;
    Ok(Answer::Yes)
}

fn run_all(arguments: &RunArguments) -> Result<Answer> {
    let choice = arguments.choice()?;
    let experiments = find_all(&arguments.ids)?;
    // Check that all can run before the first one starts, which takes long.
    for experiment in &experiments {
        paper::check(experiment, &choice).map_err(|error| anyhow!("{error}"))?;
    }
    let mut runs = Vec::new();
    for experiment in experiments {
        let run = paper::run(experiment, &choice).map_err(|error| anyhow!("{}: {error}", experiment.id))?;
        let mut out = io::stdout().lock();
        if !runs.is_empty() {
            writeln!(out)?;
        }
        out.write_all(paper::text(&run).as_bytes())?;
        runs.push(run);
        // Write each result at once, so that a later failure does not lose it.
        arguments.output.write("papers", &runs)?;
    }
    Ok(Answer::Yes)
}

fn find_all(ids: &[String]) -> Result<Vec<&'static Experiment>> {
    ids.iter().map(|id| paper::find(id).map_err(|error| anyhow!("{error}"))).collect()
}

impl RunArguments {
    fn choice(&self) -> Result<Choice> {
        let machine = match self.device.as_deref() {
            Some(device::REAL) if self.sync_ms.is_some() => bail!("--sync-ms needs a simulated device"),
            None if self.dir.is_some() => bail!("--dir needs --device {}", device::REAL),
            None => None,
            Some(name) => Some(device::machine(name, self.dir.as_ref())?),
        };
        Ok(Choice { machine, scale: self.scale, sync: self.sync_ms, seed: self.seed })
    }
}
