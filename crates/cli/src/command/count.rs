//! `terrace count`: counts records.

use std::io::{self, Write};

use anyhow::Result;
use clap::Args;
use serde_json::json;

use super::Answer;
use crate::bytes::ByteFormat;
use crate::place::Place;
use crate::range::RangeArgs;

/// Count the records of a range by reading them
#[derive(Args)]
#[command(after_help = "\
Examples:
  terrace count people.db
  terrace count people.db --prefix photo: --json")]
pub struct Arguments {
    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    range: RangeArgs,

    #[command(flatten)]
    format: ByteFormat,

    /// Print an object with the count
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> Result<Answer> {
    let (_db, keyspace) = arguments.place.open_to_read()?;
    let mut walk = arguments.range.walk(arguments.format, &keyspace)?;
    let mut count = 0_u64;
    while walk.advance()?.is_some() {
        count += 1;
    }
    let mut out = io::stdout().lock();
    if arguments.json {
        writeln!(out, "{}", json!({ "count": count }))?;
    } else {
        writeln!(out, "{count}")?;
    }
    Ok(Answer::Yes)
}
