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

#[cfg(test)]
mod unit_tests {
    use super::*;

    fn write(offset: u64, byte: u8) -> Change {
        Change::Write { offset, data: vec![byte; 4 * SECTOR_BYTES].into() }
    }

    #[test]
    fn the_last_flush_parts_what_is_safe_from_what_is_not() {
        let changes = [write(0, 1), Change::Flush, write(0, 2), Change::Flush, write(0, 3), write(0, 4)];
        let ranges: Vec<_> = (0..=6).map(|len| unflushed(&changes[..len])).collect();
        assert_eq!(ranges, [0..0, 0..1, 2..2, 2..3, 4..4, 4..5, 4..6]);
    }

    #[test]
    fn whatever_is_drawn_writes_are_whole_gone_or_torn_between_sectors() {
        let (mut whole, mut gone, mut torn) = (0, 0, 0);
        for seed in 0..100 {
            let image = tempfile::tempfile().unwrap();
            image.write_all_at(&[9; 4 * SECTOR_BYTES], 0).unwrap();
            let harmed = survive(&image, &[write(0, 1)], Fate::Drawn, &mut Rng::new(seed)).unwrap();
            let mut bytes = [0; 4 * SECTOR_BYTES];
            image.read_exact_at(&mut bytes, 0).unwrap();
            let new = bytes.iter().take_while(|byte| **byte == 1).count();
            assert!(new % SECTOR_BYTES == 0 && bytes[new..].iter().all(|byte| *byte == 9));
            assert_eq!(harmed, u64::from(new < bytes.len()));
            *(match new {
                0 => &mut gone,
                _ if new == bytes.len() => &mut whole,
                _ => &mut torn,
            }) += 1;
        }
        assert!(whole > 30 && gone > 10 && torn > 10, "{whole} {gone} {torn}");
    }
}
