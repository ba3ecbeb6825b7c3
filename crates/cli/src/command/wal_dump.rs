//! `terrace wal-dump`: prints the writes in a segment of the write-ahead log.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use terrace::format::names::FileName;

use super::{Answer, files};
use crate::dump::dump_wal;

/// Print the writes in a segment of the write-ahead log, batch by batch; exit with 1 if anything is damaged
///
/// Reads the file alone and goes on behind damage as far as it can; the store need not open. The last batches of a
/// segment may be torn after a power cut, which is no damage.
#[derive(Args)]
#[command(after_help = "\
Examples:
  terrace wal-dump people.db/000003.wal
  terrace wal-dump people.db/000003.wal --json --hex")]
pub struct Arguments {
    /// File
    file: PathBuf,

    #[command(flatten)]
    dump: files::DumpArgs,
}

pub fn run(arguments: &Arguments) -> Result<Answer> {
    let Some(FileName::Wal(segment)) = files::name(&arguments.file) else {
        bail!("{} is no log segment by its name, which the checksums depend on", arguments.file.display());
    };
    let bytes = files::log(&arguments.file)?;
    arguments.dump.print(|printer| dump_wal(segment, bytes, printer))
}
