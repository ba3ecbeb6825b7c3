//! A store whose packs live on while ranges of neighbouring tables in them die.

use crate::tree_parts::TreeParts as _;
use terrace::tree::PackLayout;
use terrace::{Db, Options};

use crate::holders::{Model, key};
use crate::options::tiny;

/// The value of each key takes this.
pub const VALUE_BYTES: u64 = 4000;

/// Tables of 32 KiB, eight keys each, in packs of a megabyte that holds all of [`crate::holders::KEYS`].
pub fn options() -> Options {
    let tree = tiny().tree.with(|tree| {
        tree.tables().table_bytes = 32 << 10;
        tree.files.packs = PackLayout::Many { bytes_max: 1 << 20 };
        tree.group().bytes = 64 << 10;
        tree.block_bytes = 4 << 10;
        *tree.level1_bytes() = 64 << 20;
        *tree.l0_trigger() = 4;
    });
    let (memtable_bytes, wal_bytes_max, memory_bytes) = (2 << 20, 8 << 20, Some(16 << 20));
    Options { memtable_bytes, wal_bytes_max, memory_bytes, tree, ..tiny() }
}

pub fn value(n: usize, round: usize) -> Vec<u8> {
    (0..VALUE_BYTES as usize).map(|at| (n * 7 + round * 31 + at) as u8).collect()
}

pub fn put(db: &Db, model: &mut Model, keys: impl Iterator<Item = usize>, round: usize) {
    for n in keys {
        db.put(key(n), value(n, round)).unwrap();
        model.insert(key(n), value(n, round));
    }
}
