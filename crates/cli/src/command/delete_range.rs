//! `terrace delete-range`: removes all records of a range.

use std::ops::Bound;

use anyhow::{Result, bail};
use clap::Args;
use terrace::WriteBatch;

use super::Answer;
use crate::bytes::ByteFormat;
use crate::place::{Place, SyncArg};
use crate::range::{BoundsArgs, is_empty};

/// Delete all records of a range at once; it costs as much as one write
#[derive(Args)]
#[command(after_help = "\
Examples:
  terrace delete-range people.db --from a --to c
  terrace delete-range people.db --prefix session: --sync
  terrace delete-range people.db --keyspace cache --all")]
pub struct Arguments {
    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    bounds: BoundsArgs,

    /// All records of the keyspace, where no range is given
    #[arg(long, conflicts_with_all = ["from", "to", "prefix"])]
    all: bool,

    #[command(flatten)]
    format: ByteFormat,

    #[command(flatten)]
    sync: SyncArg,
}

pub fn run(arguments: &Arguments) -> Result<Answer> {
    let bounds = arguments.bounds.parse(arguments.format)?;
    if matches!(bounds, (Bound::Unbounded, Bound::Unbounded)) && !arguments.all {
        bail!("no range is given; --all deletes all records of the keyspace");
    }
    let (db, keyspace) = arguments.place.open_to_change()?;
    if !is_empty(&bounds) {
        let mut batch = WriteBatch::new();
        batch.delete_range_in(&keyspace, bounds);
        db.write_with(batch, arguments.sync.durability())?;
    }
    db.close()?;
    Ok(Answer::Yes)
}
