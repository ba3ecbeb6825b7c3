//! `terrace checkpoint`: copies a store.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::Answer;
use crate::place::open_to_read;

/// Copy a store as it is now, an independent store in a new directory
///
/// The store may be in use meanwhile: it is only read. Where the file system can share storage between files, tables
/// cost no space.
#[derive(Args)]
#[command(after_help = "\
Examples:
  terrace checkpoint people.db /backup/people-monday.db")]
pub struct Arguments {
    /// Directory of the store
    db: PathBuf,

    /// Directory of the copy, empty or missing
    target: PathBuf,
}

pub fn run(arguments: &Arguments) -> Result<Answer> {
    let db = open_to_read(&arguments.db)?;
    db.checkpoint(&arguments.target)?;
    db.close()?;
    Ok(Answer::Yes)
}
