//! `terrace table-dump`: prints the tables in a pack.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use terrace::format::names::FileName;

use super::{Answer, files};
use crate::dump::{Depth, dump_pack};

/// Print the tables in a pack and their blocks; exit with 1 if anything is damaged
///
/// Reads the file alone and goes on behind damage as far as it can; the store need not open. A table whose space has been
/// given back shows as dead. Ranges are half-open; an empty end is none.
#[derive(Args)]
#[command(after_help = "\
Examples:
  terrace table-dump people.db/000012.pack
  terrace table-dump people.db/000012.pack --entries --hex
  terrace table-dump people.db/000012.pack --properties --json")]
pub struct Arguments {
    /// File
    file: PathBuf,

    /// Leave out the blocks
    #[arg(long, conflicts_with = "entries")]
    properties: bool,

    /// Print every entry, too
    #[arg(long)]
    entries: bool,

    #[command(flatten)]
    dump: files::DumpArgs,
}

pub fn run(arguments: &Arguments) -> Result<Answer> {
    let Some(FileName::Pack(pack)) = files::name(&arguments.file) else {
        bail!("{} is no pack by its name, which the checksums depend on", arguments.file.display());
    };
    let depth = match (arguments.properties, arguments.entries) {
        (true, _) => Depth::Tables,
        (_, true) => Depth::Entries,
        _ => Depth::Blocks,
    };
    let bytes = files::read(&arguments.file)?;
    arguments.dump.print(|printer| dump_pack(pack, &bytes, depth, printer))
}
