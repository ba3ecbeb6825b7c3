//! `terrace manifest-dump`: prints the edits in a manifest.

use std::path::PathBuf;

use anyhow::{Result, anyhow, bail};
use clap::Args;
use terrace::format::current;
use terrace::format::names::FileName;

use super::{Answer, files};
use crate::dump::dump_manifest;

/// Print the edits in a manifest, one per line with its changes below; exit with 1 if anything is damaged
///
/// Reads the file alone and goes on behind damage as far as it can; the store need not open. The first edit is the whole
/// catalog as it was when the file began.
#[derive(Args)]
#[command(after_help = "\
Examples:
  terrace manifest-dump people.db
  terrace manifest-dump people.db/MANIFEST-000004 --json")]
pub struct Arguments {
    /// File, or directory of a store whose manifest in force is meant
    file: PathBuf,

    #[command(flatten)]
    dump: files::DumpArgs,
}

pub fn run(arguments: &Arguments) -> Result<Answer> {
    let path = if arguments.file.is_dir() {
        let current = arguments.file.join(FileName::Current.to_string());
        let number = current::decode(&files::read(&current)?);
        let number = number.map_err(|error| anyhow!("{} is damaged: {error}", current.display()))?;
        arguments.file.join(FileName::Manifest(number).to_string())
    } else {
        arguments.file.clone()
    };
    let Some(FileName::Manifest(number)) = files::name(&path) else {
        bail!("{} is no manifest by its name, which the checksums depend on", path.display());
    };
    let bytes = files::log(&path)?;
    arguments.dump.print(|printer| dump_manifest(number, bytes, printer))
}
