//! `terrace put`: stores one value.

use std::ffi::OsString;
use std::io::{self, Read};

use anyhow::Result;
use clap::Args;
use terrace::WriteBatch;

use super::Answer;
use crate::bytes::ByteFormat;
use crate::place::{Place, SyncArg};

/// Store a value under a key; the store and the keyspace are created if they are missing
#[derive(Args)]
#[command(after_help = "\
Examples:
  terrace put people.db ada 'Ada Lovelace'
  terrace put people.db photo:ada - < ada.jpg
  terrace put people.db --hex 0x0001 0xff")]
pub struct Arguments {
    #[command(flatten)]
    place: Place,

    /// Key
    #[arg(allow_negative_numbers = true)]
    key: OsString,

    /// Value; - reads it from standard input, every byte of it (with --hex: digits, white space around them ignored)
    #[arg(allow_negative_numbers = true)]
    value: OsString,

    #[command(flatten)]
    format: ByteFormat,

    #[command(flatten)]
    sync: SyncArg,
}

pub fn run(arguments: &Arguments) -> Result<Answer> {
    let key = arguments.format.parse(&arguments.key)?;
    let value = if arguments.value == "-" {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes)?;
        if arguments.format.hex { arguments.format.parse_bytes(bytes.trim_ascii())? } else { bytes }
    } else {
        arguments.format.parse(&arguments.value)?
    };
    let (db, keyspace) = arguments.place.open_to_add()?;
    let mut batch = WriteBatch::new();
    batch.put_in(&keyspace, key, value);
    db.write_with(batch, arguments.sync.durability())?;
    db.close()?;
    Ok(Answer::Yes)
}
