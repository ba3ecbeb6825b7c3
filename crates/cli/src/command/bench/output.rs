//! Where a benchmark writes its results besides standard output.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use clap::Args;
use serde::Serialize;
use terrace_bench::report::{self, Stored};

/// Files that the results are written to.
#[derive(Args)]
pub struct Output {
    /// Also write the results and the course of the run to this file as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Also draw the run on a page of HTML in this file, which needs no other
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

impl Output {
    /// Whether there is any file to write.
    pub fn is_wanted(&self) -> bool {
        self.json.is_some() || self.html.is_some()
    }

    /// Writes `run`, which on the page is called `name`.
    pub fn write(&self, name: &str, run: &impl Serialize) -> Result<()> {
        if let Some(path) = &self.json {
            write(path, &(serde_json::to_string_pretty(run)? + "\n"))?;
        }
        if let Some(path) = &self.html {
            let stored = Stored::new(name, serde_json::to_value(run)?).map_err(|error| anyhow!("{error}"))?;
            write_page(path, &[stored])?;
        }
        Ok(())
    }
}

/// Draws `runs` on a page in the file `path`.
pub fn write_page(path: &Path, runs: &[Stored]) -> Result<()> {
    write(path, &report::html(runs).map_err(|error| anyhow!("{error}"))?)
}

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
