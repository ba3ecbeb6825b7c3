//! `terrace get`: prints one value.

use std::ffi::OsString;
use std::io::{self, Write};

use anyhow::Result;
use clap::Args;

use super::Answer;
use crate::bytes::ByteFormat;
use crate::place::Place;

/// Print the value of a key; exit with 1 and print nothing if there is none
#[derive(Args)]
#[command(after_help = "\
Examples:
  terrace get people.db ada
  terrace get people.db --hex 0x0001
  terrace get people.db ada --json")]
pub struct Arguments {
    #[command(flatten)]
    place: Place,

    /// Key
    #[arg(allow_negative_numbers = true)]
    key: OsString,

    #[command(flatten)]
    format: ByteFormat,

    /// Print an object with the key and the value
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> Result<Answer> {
    let format = arguments.format;
    let key = format.parse(&arguments.key)?;
    let (_db, keyspace) = arguments.place.open_to_read()?;
    let Some(value) = keyspace.get(&key)? else { return Ok(Answer::No) };
    let mut out = io::stdout().lock();
    if arguments.json {
        write!(out, "{}", format.json_record(&key, Some(&value)))?;
    } else {
        format.write(&value, &mut out)?;
    }
    out.write_all(b"\n")?;
    out.flush()?;
    Ok(Answer::Yes)
}
