//! `terrace repair`: builds a new store from what is left of a damaged one.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use serde_json::json;

use super::{Answer, verify};

/// Build a new store of everything that checks in a damaged one; exit with 1 and list what does not if anything is lost
///
/// The damaged store is not changed. No store needs this after a mere crash: opening it is enough.
#[derive(Args)]
#[command(after_help = "\
Examples:
  terrace repair people.db people-repaired.db
  terrace repair people.db people-repaired.db --json > lost.json")]
pub struct Arguments {
    /// Directory of the damaged store
    db: PathBuf,

    /// Directory of the new one, empty or missing
    target: PathBuf,

    /// Print an object
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> Result<Answer> {
    let report = terrace::repair(&arguments.db, &arguments.target)?;
    let mut out = io::stdout().lock();
    if arguments.json {
        let object = json!({
            "keyspaces": report.keyspaces,
            "tables": report.tables,
            "entries": report.entries,
            "whole_catalog": report.whole_catalog,
            "zeroed_tables": report.zeroed_tables,
            "lost": report.lost.iter().map(verify::problem).collect::<Vec<_>>(),
        });
        writeln!(out, "{object}")?;
    } else {
        for lost in &report.lost {
            writeln!(out, "{lost}")?;
        }
        if !report.whole_catalog {
            writeln!(
                out,
                "the catalog is lost: keyspaces of which no table is left lack their names, and deleted records may be back"
            )?;
        }
        if report.zeroed_tables > 0 {
            writeln!(
                out,
                "{} tables are all zeros: their space was given back when they were dead, or something has erased them",
                report.zeroed_tables
            )?;
        }
        let (keyspaces, tables, entries) = (report.keyspaces, report.tables, report.entries);
        writeln!(
            out,
            "{keyspaces} keyspaces, {tables} tables, {entries} entries: {} losses",
            report.lost.len()
        )?;
    }
    Ok(if report.lost.is_empty() { Answer::Yes } else { Answer::No })
}
