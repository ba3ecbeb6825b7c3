//! Measurements that run in a process of their own each, this program again, and what is written of them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Result, anyhow, ensure};
use clap::Args;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tempfile::TempDir;
use terrace_bench::report::{Provenance, Stored};

use crate::child;
use crate::machine::commit;

/// Where a run is written besides standard output.
#[derive(Args)]
pub struct Outputs {
    /// Also write everything to this file
    #[arg(long)]
    pub json: Option<PathBuf>,

    /// Also draw it on a page of HTML in this file, which needs no other
    #[arg(long)]
    pub html: Option<PathBuf>,
}

impl Outputs {
    /// Writes a run of `command`.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write(&self, command: &str, run: &impl Serialize) -> Result<()> {
        if let Some(path) = &self.json {
            std::fs::write(path, serde_json::to_string(run)? + "\n")?;
        }
        if let Some(path) = &self.html {
            let stored = Stored::new(command, serde_json::to_value(run)?).map_err(plain)?;
            std::fs::write(path, terrace_bench::report::html(&[stored]).map_err(plain)?)?;
        }
        Ok(())
    }
}

/// Directory for the stores of a run, in `dir` or where temporary files are; removed with what is returned.
///
/// # Errors
/// It cannot be created.
pub fn root(dir: Option<&Path>) -> Result<TempDir> {
    let Some(dir) = dir else { return Ok(tempfile::tempdir()?) };
    std::fs::create_dir_all(dir)?;
    Ok(tempfile::tempdir_in(dir)?)
}

/// Where and of what a run comes: the engines' own crate tells all but the commit.
pub fn provenance() -> Provenance {
    Provenance { commit: commit(), ..Provenance::here() }
}

/// Has `job` done by a process whose first argument is `turn`, and which says what it does on standard error.
///
/// # Errors
/// It failed, was killed or was interrupted.
pub fn ask<T: DeserializeOwned>(turn: &str, job: &impl Serialize) -> Result<T> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(turn).arg(serde_json::to_string(job)?);
    let output = child::watched(command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?)?;
    ensure!(output.status.success(), "{}", output.status);
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// What that process does: `run`s the job that it was given and says what came of it.
///
/// # Errors
/// The one that asks is gone or asked for something else; or whatever `run` reports.
pub fn answer<J: DeserializeOwned, T: Serialize>(job: &str, run: impl Fn(&J) -> Result<T>) -> Result<()> {
    child::die_with_parent()?;
    println!("{}", serde_json::to_string(&run(&serde_json::from_str(job)?)?)?);
    Ok(())
}

/// An error of the load generator as one of this program.
pub fn plain(error: terrace_bench::Error) -> anyhow::Error {
    anyhow!("{error}")
}
