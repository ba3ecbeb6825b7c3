//! `terrace scan`: prints records in key order.

use std::io::{self, BufWriter, Write};

use anyhow::Result;
use clap::Args;

use super::Answer;
use crate::bytes::ByteFormat;
use crate::input::tab;
use crate::place::Place;
use crate::range::RangeArgs;

/// Print records in key order, one per line: key, tab, value
///
/// Keys and values are printed as they are. One that a line cannot hold as it is (with a line end in it, a CR at its end,
/// a tab in a key, or a byte-order mark in front of a key) is printed as \x and hexadecimal digits, and so is one that
/// looks like this; `terrace load --format tsv` reads all of them back exactly. So it does with --hex, and what --json
/// prints with --format jsonl.
#[derive(Args)]
#[command(after_help = "\
Examples:
  terrace scan people.db --prefix ada
  terrace scan people.db --from b --to d --limit 10
  terrace scan people.db --reverse --limit 1 --keys-only
  terrace scan people.db --json > people.jsonl")]
pub struct Arguments {
    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    range: RangeArgs,

    /// Leave out the values
    #[arg(long)]
    keys_only: bool,

    #[command(flatten)]
    format: ByteFormat,

    /// Print an object per line: key and value, or key_hex and value_hex where they are not text
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> Result<Answer> {
    let (_db, keyspace) = arguments.place.open_to_read()?;
    let mut walk = arguments.range.walk(arguments.format, &keyspace)?;
    let mut out = BufWriter::with_capacity(64 << 10, io::stdout().lock());
    while let Some((key, value)) = walk.advance()? {
        let value = Some(value).filter(|_| !arguments.keys_only);
        if arguments.json {
            writeln!(out, "{}", arguments.format.json_record(key, value))?;
        } else {
            tab::write((key, value), arguments.format, &mut out)?;
        }
    }
    out.flush()?;
    Ok(Answer::Yes)
}
