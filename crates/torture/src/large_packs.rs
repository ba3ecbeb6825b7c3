//! A store whose packs live on while ranges of neighbouring tables in them die.

use terrace::{Db, Options, PackLayout, TreeOptions};

use crate::holders::{Model, key};
use crate::options::tiny;

/// The value of each key takes this.
pub const VALUE_BYTES: u64 = 4000;

/// Tables of 32 KiB, eight keys each, in packs of a megabyte that holds all of [`crate::holders::KEYS`].
pub fn options() -> Options {
    let tree = TreeOptions {
        table_bytes: 32 << 10,
        pack: PackLayout::Many { bytes_max: 1 << 20 },
        group_bytes: 64 << 10,
        block_bytes: 4 << 10,
        level1_bytes: 64 << 20,
        l0_trigger: 4,
        ..tiny().tree
    };
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
