//! `terrace delete`: removes keys.

use std::ffi::OsString;

use anyhow::Result;
use clap::Args;
use terrace::WriteBatch;

use super::Answer;
use crate::bytes::ByteFormat;
use crate::place::{Place, SyncArg};

/// Delete keys, all or none of them; deleting a key that is absent is no error
#[derive(Args)]
#[command(after_help = "\
Examples:
  terrace delete people.db ada
  terrace delete people.db ada grace --sync")]
pub struct Arguments {
    #[command(flatten)]
    place: Place,

    /// Keys
    #[arg(required = true, value_name = "KEY", allow_negative_numbers = true)]
    keys: Vec<OsString>,

    #[command(flatten)]
    format: ByteFormat,

    #[command(flatten)]
    sync: SyncArg,
}

pub fn run(arguments: &Arguments) -> Result<Answer> {
    let keys: Vec<_> = arguments.keys.iter().map(|key| arguments.format.parse(key)).collect::<Result<_>>()?;
    let (db, keyspace) = arguments.place.open_to_change()?;
    let mut batch = WriteBatch::new();
    for key in keys {
        batch.delete_in(&keyspace, key);
    }
    db.write_with(batch, arguments.sync.durability())?;
    db.close()?;
    Ok(Answer::Yes)
}
