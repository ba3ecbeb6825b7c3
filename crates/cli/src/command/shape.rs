//! `terrace shape`: prints the levels of a tree.

use std::io::{self, Write};

use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};
use terrace::Shape;

use super::Answer;
use crate::place::Place;

/// Print the levels of a keyspace's tree: runs, tables, bytes, entries, limit and score of each
#[derive(Args)]
#[command(after_help = "\
Examples:
  terrace shape people.db
  terrace shape people.db --keyspace photos --json")]
pub struct Arguments {
    #[command(flatten)]
    place: Place,

    /// Print an object
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> Result<Answer> {
    let (_db, keyspace) = arguments.place.open_to_read()?;
    let (name, shape) = (&arguments.place.keyspace, keyspace.shape());
    let mut out = io::stdout().lock();
    if arguments.json {
        writeln!(out, "{}", to_json(name, &shape))?;
    } else {
        write_text(name, &shape, &mut out)?;
    }
    Ok(Answer::Yes)
}

/// The shape as an object.
pub fn to_json(keyspace: &str, shape: &Shape) -> Value {
    let levels: Vec<Value> = shape
        .levels
        .iter()
        .map(|level| {
            json!({
                "level": level.level,
                "runs": level.runs,
                "tables": level.tables,
                "bytes": level.bytes,
                "entries": level.entries,
                "tombstones": level.tombstones,
                "limit_bytes": level.limit_bytes,
                "score": level.score,
            })
        })
        .collect();
    json!({ "keyspace": keyspace, "levels": levels })
}

/// The shape as a table.
pub fn write_text(keyspace: &str, shape: &Shape, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "keyspace {keyspace}")?;
    let head = ["level", "runs", "tables", "bytes", "entries", "tombstones", "limit", "score"];
    writeln!(out, "{}", row(&head.map(str::to_owned)))?;
    for level in &shape.levels {
        let cells = [
            level.level.to_string(),
            level.runs.to_string(),
            level.tables.to_string(),
            level.bytes.to_string(),
            level.entries.to_string(),
            level.tombstones.to_string(),
            Some(level.limit_bytes)
                .filter(|limit| *limit < u64::MAX)
                .map_or("-".to_owned(), |limit| limit.to_string()),
            format!("{:.2}", level.score),
        ];
        writeln!(out, "{}", row(&cells))?;
    }
    Ok(())
}

fn row(cells: &[String; 8]) -> String {
    let widths = [5, 5, 8, 14, 12, 12, 14, 6];
    let cells: Vec<String> =
        cells.iter().zip(widths).map(|(cell, width)| format!("{cell:>width$}")).collect();
    cells.join(" ")
}
