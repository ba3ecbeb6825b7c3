//! `terrace bench report`: draws stored runs on one page.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use clap::Args;
use terrace_bench::report::Stored;

use super::output::write_page;
use crate::command::Answer;

/// Draw runs that were stored with --json together on one page of HTML
///
/// Takes what `terrace bench ycsb`, `terrace bench db`, `terrace bench paper`, `terrace bench punch`, `terrace bench calm`,
/// `terrace bench deletes`, `terrace bench values` and `terrace-compare` write. Phases of the same name share their pictures; the page needs no other file and no network.
#[derive(Args)]
#[command(after_help = "\
Examples:
  terrace bench report run.json
  terrace bench report before.json after.json --html comparison.html")]
pub struct Arguments {
    /// Stored runs
    #[arg(required = true, value_name = "JSON")]
    runs: Vec<PathBuf>,

    /// File to draw them in
    #[arg(long, value_name = "FILE", default_value = "report.html")]
    html: PathBuf,
}

pub fn run(arguments: Arguments) -> Result<Answer> {
    let runs: Vec<Stored> = arguments.runs.iter().map(|path| read(path)).collect::<Result<_>>()?;
    write_page(&arguments.html, &runs)?;
    Ok(Answer::Yes)
}

/// The run in the file `path`, called by the name of the file without its extension.
fn read(path: &Path) -> Result<Stored> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
    let json = serde_json::from_str(&text).with_context(|| format!("{shown} is not JSON"))?;
    let name = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy();
    Stored::new(name, json).map_err(|error| anyhow!("{error}"))
}
