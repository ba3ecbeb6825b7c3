//! `terrace properties`: prints a store's figures by name.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use serde_json::{Map, Value};
use terrace::Db;

use super::Answer;
use crate::place::open_to_read;

/// Print figures of a store by name, under the names of RocksDB and LevelDB where they have them
#[derive(Args)]
#[command(after_help = "\
Examples:
  terrace properties people.db
  terrace properties people.db terrace.num-files-at-level0 rocksdb.estimate-num-keys
  terrace properties people.db --json")]
pub struct Arguments {
    /// Directory of the store
    db: PathBuf,

    /// Names [default: all]
    names: Vec<String>,

    /// Print an object
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> Result<Answer> {
    let db = open_to_read(&arguments.db)?;
    let known = || Db::properties().iter().map(|name| (*name).to_owned());
    let names = if arguments.names.is_empty() { known().collect() } else { arguments.names.clone() };
    let mut figures = Vec::new();
    for name in names {
        let Some(value) = db.property(&name) else {
            bail!("there is no property {name:?}: there are {}", Db::properties().join(", "));
        };
        figures.push((name, value));
    }
    let mut out = io::stdout().lock();
    if arguments.json {
        let object: Map<_, _> =
            figures.into_iter().map(|(name, value)| (name, Value::String(value))).collect();
        writeln!(out, "{}", Value::Object(object))?;
    } else {
        for (name, value) in figures {
            // What takes several lines begins on one of its own.
            let value = value.trim_end();
            let between = if value.contains('\n') { '\n' } else { ' ' };
            writeln!(out, "{name}:{between}{value}")?;
        }
    }
    Ok(Answer::Yes)
}
