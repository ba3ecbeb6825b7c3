//! `terrace multi-get`: prints the values of several keys.

use std::ffi::OsString;
use std::io::{self, Write};

use anyhow::Result;
use clap::Args;

use super::Answer;
use crate::bytes::ByteFormat;
use crate::input::tab;
use crate::place::Place;

/// Print the records of several keys, as of one moment: key, tab, value; exit with 1 if one is absent
#[derive(Args)]
#[command(after_help = "\
Examples:
  terrace multi-get people.db ada alan
  terrace multi-get people.db ada alan --json")]
pub struct Arguments {
    #[command(flatten)]
    place: Place,

    /// Keys
    #[arg(required = true)]
    keys: Vec<OsString>,

    #[command(flatten)]
    format: ByteFormat,

    /// Print an object per line, without a value where there is none
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> Result<Answer> {
    let format = arguments.format;
    let keys: Vec<Vec<u8>> = arguments.keys.iter().map(|key| format.parse(key)).collect::<Result<_>>()?;
    let (_db, keyspace) = arguments.place.open_to_read()?;
    let values = keyspace.multi_get(&keys)?;
    let mut out = io::stdout().lock();
    for (key, value) in keys.iter().zip(&values) {
        if arguments.json {
            writeln!(out, "{}", format.json_record(key, value.as_deref()))?;
        } else if let Some(value) = value {
            tab::write((key, Some(value)), format, &mut out)?;
        }
    }
    Ok(if values.iter().all(Option::is_some) { Answer::Yes } else { Answer::No })
}
