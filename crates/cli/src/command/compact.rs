//! `terrace compact`: compacts everything into the last level.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::Answer;
use crate::place::{Place, open_to_change};

/// Compaction every record into the last level and drop what is overwritten or deleted
#[derive(Args)]
#[command(after_help = "\
Examples:
  terrace compact people.db
  terrace compact people.db --keyspace photos")]
pub struct Arguments {
    /// Directory of the store
    db: PathBuf,

    /// Only this keyspace; all keyspaces otherwise
    #[arg(long, value_name = "NAME")]
    keyspace: Option<String>,
}

pub fn run(arguments: &Arguments) -> Result<Answer> {
    let db = match &arguments.keyspace {
        Some(name) => {
            let place = Place { db: arguments.db.clone(), keyspace: name.clone() };
            let (db, keyspace) = place.open_to_change()?;
            keyspace.compact_range(..)?;
            db
        }
        None => {
            let db = open_to_change(&arguments.db)?;
            db.compact()?;
            db
        }
    };
    db.close()?;
    Ok(Answer::Yes)
}
