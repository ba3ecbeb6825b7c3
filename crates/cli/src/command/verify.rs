//! `terrace verify`: checks every byte that is stored.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};

use terrace::{Error, ErrorKind, VerifyReport};

use super::Answer;
use crate::place::{not_opened, reader};

/// Read and check everything a store holds; exit with 1 and list the problems if there are any
///
/// Of a store that is damaged where it cannot be opened, the first damage is listed; `terrace repair` lists all.
#[derive(Args)]
#[command(after_help = "\
Examples:
  terrace verify people.db
  terrace verify people.db --json")]
pub struct Arguments {
    /// Directory of the store
    db: PathBuf,

    /// Print an object
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> Result<Answer> {
    let report = match reader(&arguments.db).open() {
        Ok(db) => db.verify()?,
        Err(error) if error.kind() == ErrorKind::Corruption => does_not_open(error),
        Err(error) => return Err(not_opened(&arguments.db, &error)),
    };
    let mut out = io::stdout().lock();
    if arguments.json {
        let object = json!({
            "tables": report.tables,
            "blocks": report.blocks,
            "entries": report.entries,
            "bytes": report.bytes,
            "allocated_bytes": report.allocated_bytes,
            "hole_bytes": report.hole_bytes,
            "zero_bytes": report.zero_bytes,
            "unexplained_bytes": report.unexplained_bytes,
            "untold_packs": report.hole_unknown_packs,
            "problems": report.problems.iter().map(problem).collect::<Vec<_>>(),
        });
        writeln!(out, "{object}")?;
    } else {
        for problem in &report.problems {
            writeln!(out, "{problem}")?;
        }
        writeln!(out, "{}", storage(&report))?;
        writeln!(
            out,
            "{} tables, {} blocks, {} entries, {} bytes: {} problems",
            report.tables,
            report.blocks,
            report.entries,
            report.bytes,
            report.problems.len()
        )?;
    }
    Ok(if report.problems.is_empty() { Answer::Yes } else { Answer::No })
}

/// The report on a store that is too damaged to be opened: only a repair can read the rest of it.
fn does_not_open(error: Error) -> VerifyReport {
    eprintln!(
        "terrace: the store does not open; `terrace repair` takes what is undamaged and lists the rest"
    );
    let mut report = VerifyReport::default();
    report.problems.push(error);
    report
}

/// The storage of the packs.
fn storage(report: &VerifyReport) -> String {
    let mut text = format!("{} packs, {} bytes allocated", report.packs, report.allocated_bytes);
    if report.hole_unknown_packs > 0 {
        return text + &format!("; the file system does not tell the holes of {}", report.hole_unknown_packs);
    }
    text += &format!(", {} bytes of holes", report.hole_bytes);
    if report.unexplained_bytes > 0 {
        text += &format!("; {} bytes more than live and dead tables take", report.unexplained_bytes);
    }
    text
}

/// A problem as an object.
pub fn problem(problem: &terrace::Error) -> Value {
    json!({
        "kind": format!("{:?}", problem.kind()),
        "file": problem.file().map(|file| file.display().to_string()),
        "offset": problem.offset(),
        "message": problem.to_string(),
    })
}
