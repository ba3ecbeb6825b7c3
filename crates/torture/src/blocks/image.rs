//! What a disk may hold after a power cut: all writes before its last flush, and a part of the later ones that chance
//! decides.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use crate::seed::Rng;

/// The unit that a disk writes whole or not at all, in bytes.
pub const SECTOR_BYTES: usize = 512;

/// A call that changes a disk.
#[derive(Debug)]
pub enum Change {
    Write { offset: u64, data: Box<[u8]> },
    Flush,
}

/// The fate of the writes behind the last flush.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    Lost,
    Kept,
    /// Each is kept, lost, or torn between two sectors, whatever becomes of those before it.
    Drawn,
}

/// How many of `changes` are behind the last flush: from there to the end.
#[must_use]
pub fn unflushed(changes: &[Change]) -> Range<usize> {
    let flush = changes.iter().rposition(|change| matches!(change, Change::Flush));
    flush.map_or(0, |at| at + 1)..changes.len()
}

/// Writes whole `changes` to an image.
///
/// # Errors
///
/// Fails if the image cannot be written.
pub fn apply(image: &File, changes: &[Change]) -> io::Result<()> {
    survive(image, changes, Fate::Kept, &mut Rng::new(0)).map(drop)
}

/// Writes the surviving part of `changes` to an image. Returns the number of writes that are not whole.
///
/// # Errors
///
/// Fails if the image cannot be written.
pub fn survive(image: &File, changes: &[Change], fate: Fate, random: &mut Rng) -> io::Result<u64> {
    let mut harmed = 0;
    for change in changes {
        let Change::Write { offset, data } = change else { continue };
        let sectors = data.len() / SECTOR_BYTES;
        let kept = match (fate, random.below(4)) {
            (Fate::Lost, _) | (Fate::Drawn, 0) => 0,
            (Fate::Drawn, 1) if sectors > 1 => random.below(sectors) * SECTOR_BYTES,
            _ => data.len(),
        };
        image.write_all_at(&data[..kept], *offset)?;
        harmed += u64::from(kept < data.len());
    }
    Ok(harmed)
}
