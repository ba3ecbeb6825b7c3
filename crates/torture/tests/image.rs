//! What the suite `blocks` lets a disk hold after a power cut.

use std::os::unix::fs::FileExt;

use terrace_torture::Rng;
use terrace_torture::blocks::image::{Change, Fate, SECTOR_BYTES, survive, unflushed};

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
