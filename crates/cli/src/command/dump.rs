//! `terrace dump`: prints all records of all keyspaces, for `terrace load`.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use anyhow::{Result, anyhow};
use clap::Args;
use terrace::{Db, Keyspace};

use super::Answer;
use crate::bytes::ByteFormat;
use crate::place::open_to_read;

/// The keyspace that a record belongs to unless it says otherwise.
const DEFAULT: &str = "default";

/// Print all records of all keyspaces, an object per line, which `terrace load` reads back exactly
///
/// Keys and values are text where they are UTF-8, hexadecimal otherwise and with --hex. Records of other keyspaces than
/// the default one name theirs. Empty keyspaces and settings are not part of a dump.
#[derive(Args)]
#[command(after_help = "\
Examples:
  terrace dump people.db > people.jsonl
  terrace dump people.db --keyspace by-year --hex
  terrace dump people.db | terrace load copy.db")]
pub struct Arguments {
    /// Directory of the store
    db: PathBuf,

    /// Only this keyspace; can be given more than once
    #[arg(long = "keyspace", value_name = "NAME")]
    keyspaces: Vec<String>,

    #[command(flatten)]
    format: ByteFormat,
}

pub fn run(arguments: &Arguments) -> Result<Answer> {
    let db = open_to_read(&arguments.db)?;
    let names = if arguments.keyspaces.is_empty() { db.keyspaces() } else { arguments.keyspaces.clone() };
    let mut out = BufWriter::with_capacity(64 << 10, io::stdout().lock());
    for name in names {
        dump(&name, &keyspace(&db, &name)?, arguments.format, &mut out)?;
    }
    out.flush()?;
    Ok(Answer::Yes)
}

fn keyspace(db: &Db, name: &str) -> Result<Keyspace> {
    db.existing_keyspace(name)?
        .ok_or_else(|| anyhow!("there is no keyspace {name:?}: there are {}", db.keyspaces().join(", ")))
}

fn dump(name: &str, keyspace: &Keyspace, format: ByteFormat, out: &mut impl Write) -> Result<()> {
    let mut records = keyspace.iter()?;
    while let Some((key, value)) = records.advance()? {
        let mut record = format.json_record(key, Some(value));
        if name != DEFAULT {
            record["keyspace"] = name.into();
        }
        writeln!(out, "{record}")?;
    }
    Ok(())
}
