//! `terrace bench replay`: tells what a pacer says about the load of a stored run.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow};
use clap::Args;
use terrace_bench::replay::{courses, replay};

use crate::command::Answer;

/// Tell what a pacer decides at the load that a stored run had
///
/// Takes what `terrace bench ycsb`, `terrace bench db` and `terrace bench calm` write with --json. Of each sample of the load
/// it tells how high the pacer takes the load to be, which jobs may start, how running ones go on, and what writers may do. Another
/// pacer than that of the run is judged at the same load, which it might have changed.
#[derive(Args)]
#[command(after_help = "\
Examples:
  terrace bench replay run.json
  terrace bench replay run.json --phase a --profile dlc-full:estimator=composite:bandwidth=350M")]
pub struct Arguments {
    /// Stored run
    #[arg(value_name = "JSON")]
    run: PathBuf,

    /// Profile whose pacer is asked, and parts of its tree set otherwise [default: that of the run]
    #[arg(long, value_name = "NAME[:PART=VALUE]...")]
    profile: Option<String>,

    /// Only the phase of this name, or the level of load: 70 %
    #[arg(long, value_name = "NAME")]
    phase: Option<String>,
}

pub fn run(arguments: &Arguments) -> Result<Answer> {
    let shown = arguments.run.display();
    let text = std::fs::read_to_string(&arguments.run).with_context(|| format!("cannot read {shown}"))?;
    let json = serde_json::from_str(&text).with_context(|| format!("{shown} is not JSON"))?;
    let found = courses(json).map_err(|error| anyhow!("{shown}: {error}"))?;
    let is_wanted = |name: &str| arguments.phase.as_deref().is_none_or(|wanted| wanted == name);
    let mut any = false;
    for course in found.iter().filter(|course| is_wanted(&course.name)) {
        let replayed = replay(course, arguments.profile.as_deref()).map_err(|error| anyhow!("{error}"))?;
        let gap = if any { "\n" } else { "" };
        io::stdout().lock().write_all(format!("{gap}{}", replayed.text()).as_bytes())?;
        any = true;
    }
    Ok(if any { Answer::Yes } else { Answer::No })
}
