//! Terrace beside LevelDB, RocksDB, fjall, solistore, redb and LMDB: the same workloads, the same memory, the same load generator.
//!
//! Every engine has its turn in a process and a directory of its own; rounds alternate the order of the turns, so that
//! what drifts on the machine hits all alike, and turns during which it drifted too far are void. See `README.md` for how
//! to run it and what its figures mean.
//!
//! From the top: [`arguments`] become [`settings`]; [`schedule`] lists the turns; [`run`] has each of them run by
//! [`child`] in a process of its own, which is [`turn`], between two [`calibration`]s, and keeps it in [`state`];
//! [`report`] and [`text`] say what came out. A turn runs the phases that [`scorecard`] lists, in a [`closed`] or an
//! [`open`] loop over a [`store`], with [`work`] made of [`records`]; [`process`] and [`barriers`] count from outside of
//! the engine, and [`figures`] makes [`results`] of it. Beside all that, [`counted`] runs a phase
//! for tools that count, [`calm`] measures whether clients notice the work of the background, [`deletes`]
//! what deletes cost, and [`values`] what large values cost.

mod apart;
mod arguments;
mod barriers;
mod calibration;
mod calm;
mod cgroup;
mod child;
mod closed;
mod counted;
mod deletes;
mod figures;
mod latency;
mod machine;
mod open;
mod process;
mod records;
mod report;
mod results;
mod run;
mod schedule;
mod scorecard;
mod settings;
mod state;
mod statistics;
mod store;
mod text;
mod turn;
mod values;
mod work;

use std::path::Path;

use anyhow::{Context, Result, anyhow, ensure};
use clap::Parser;
use terrace_bench::report::Stored;

use crate::arguments::Arguments;
use crate::cgroup::MemoryLimit;
use crate::counted::Counted;
use crate::machine::Machine;
use crate::report::Report;
use crate::run::Runner;
use crate::settings::Settings;
use crate::state::{Run, State};

fn main() -> Result<()> {
    let mut words = std::env::args().skip(1);
    match words.next().as_deref() {
        Some(child::TURN) => child::main(&words.next().context("no turn")?),
        Some(calm::CALM_TURN) => calm::turn(&words.next().context("no turn")?),
        Some(calm::CALM) => calm::main(&calm::Arguments::parse_from(std::env::args().skip(1))),
        Some(deletes::DELETES_TURN) => deletes::turn(&words.next().context("no turn")?),
        Some(deletes::DELETES) => deletes::main(&deletes::Arguments::parse_from(std::env::args().skip(1))),
        Some(values::VALUES_TURN) => values::turn(&words.next().context("no turn")?),
        Some(values::VALUES) => values::main(&values::Arguments::parse_from(std::env::args().skip(1))),
        Some(counted::COUNTED) => Counted::parse_from(std::env::args().skip(1)).run().map(drop),
        _ => compare(&Arguments::parse()),
    }
}

fn compare(arguments: &Arguments) -> Result<()> {
    let mut settings = arguments.settings()?;
    let skipped = skip_impossible(&mut settings);
    ensure!(!settings.workloads.is_empty(), "no workload is left");
    child::handle_interrupts()?;
    let mut prefix = tempfile::Builder::new();
    prefix.prefix("terrace-compare-");
    let root = match &arguments.dir {
        None => prefix.tempdir()?,
        Some(dir) => {
            std::fs::create_dir_all(dir)?;
            prefix.tempdir_in(dir)?
        }
    };
    let machine = Machine::here(root.path())?;
    let run = Run { commit: machine::commit(), settings: settings.clone() };
    let state = if arguments.resume {
        State::resume(&arguments.state, &run)?
    } else {
        State::begin(&arguments.state, &run)?
    };
    let finished = Runner::new(&settings, root.path(), state)?.run()?;
    let report = Report::new(machine, run.commit, &settings, &finished, skipped);
    print!("{}", text::text(&report));
    if let Some(path) = &arguments.json {
        std::fs::write(path, serde_json::to_string(&report)? + "\n")?;
    }
    match &arguments.html {
        Some(_) if report.results.is_empty() => eprintln!("no page is drawn, since no turn counts"),
        Some(path) => draw(&report, path)?,
        None => {}
    }
    std::fs::remove_file(&arguments.state)?;
    Ok(())
}

/// Draws `report` on the page `path`.
fn draw(report: &Report, path: &Path) -> Result<()> {
    let plain = |error: terrace_bench::Error| anyhow!("{error}");
    let name = format!("scorecard, {}", report.settings.data());
    let stored = Stored::new(name, serde_json::to_value(report)?).map_err(plain)?;
    Ok(std::fs::write(path, terrace_bench::report::html(&[stored]).map_err(plain)?)?)
}

/// Takes the workloads out of `settings` that this machine cannot run, loudly; what was taken out, and why.
fn skip_impossible(settings: &mut Settings) -> Vec<String> {
    let limited = settings.groups().into_iter().find_map(|group| settings.limit_bytes(group));
    let Some(Err(error)) = limited.map(MemoryLimit::new) else { return Vec::new() };
    settings.workloads.retain(|workload| !workload.group().large());
    let skipped = format!("overwrite-l and get-l, since memory cannot be limited: {error:#}");
    eprintln!("SKIPPED: {skipped}");
    vec![skipped]
}
