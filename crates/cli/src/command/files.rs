//! Shared by the commands that look into single files.

use std::fs::File;
use std::io::{self, BufWriter, StdoutLock};
use std::os::unix::fs::FileExt;
use std::path::Path;

use anyhow::{Result, anyhow};
use clap::Args;
use terrace::format::log::{LogBytes, Pieces};
use terrace::format::names::FileName;

use super::Answer;
use crate::bytes::ByteFormat;
use crate::dump::Printer;

/// Logs are read in pieces of this size.
const PIECE_BYTES: u64 = 64 << 10;

/// How a dump is printed.
#[derive(Args)]
pub struct DumpArgs {
    #[command(flatten)]
    format: ByteFormat,

    /// Print an object per line
    #[arg(long)]
    json: bool,
}

impl DumpArgs {
    /// Prints what `dump` yields; the answer is no if some of it is damaged.
    pub fn print(
        &self,
        dump: impl FnOnce(&mut Printer<BufWriter<StdoutLock<'_>>>) -> io::Result<()>,
    ) -> Result<Answer> {
        let mut printer = Printer::new(BufWriter::new(io::stdout().lock()), self.json, self.format);
        dump(&mut printer)?;
        Ok(if printer.finish()? { Answer::No } else { Answer::Yes })
    }
}

/// The contents of a file.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|error| anyhow!("cannot read {}: {error}", path.display()))
}

/// The contents of a log, which are read piece by piece.
pub fn log(path: &Path) -> Result<impl LogBytes<Error = io::Error>> {
    let cannot = |error: io::Error| anyhow!("cannot read {}: {error}", path.display());
    let file = File::open(path).map_err(cannot)?;
    let length = file.metadata().map_err(cannot)?.len();
    let read = move |offset, bytes: &mut [u8]| file.read_exact_at(bytes, offset);
    Ok(Pieces::new(length, PIECE_BYTES, read))
}

/// What a file of a store is by its name.
pub fn name(path: &Path) -> Option<FileName> {
    FileName::parse(path.file_name()?.to_str()?)
}
