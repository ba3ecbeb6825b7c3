//! Small trees for tests.

use std::sync::Arc;

use super::{Lease, TableMeta, Version};
use crate::format::edit::{TableRecord, TreeEdit};
use crate::types::{DeviceId, Epoch, Extent, Holds, KeyRange, PackId, Seq, TableId, ValueShare};

/// A table of 4096 bytes and 10 entries with keys `smallest..=largest`, in a pack of its own; its epoch is 1 and its
/// entries have sequence numbers 10 to 19.
pub fn record(id: u64, smallest: &str, largest: &str) -> TableRecord {
    TableRecord {
        id: TableId(id),
        extent: Extent { device: DeviceId(0), pack: PackId(id), offset: 0, length: 4096 },
        range: KeyRange::new(smallest.as_bytes(), largest.as_bytes()),
        min_seq: Seq(10),
        max_seq: Seq(19),
        epoch: Epoch(1),
        entries: 10,
        tombstones: 0,
        range_tombstones: 0,
        timestamps: None,
        holds: Holds::default(),
        keys: None,
        values: ValueShare::default(),
    }
}

/// `record` flushed as run number `epoch`: sequence numbers follow from it.
pub fn flushed(epoch: u64, record: TableRecord) -> TableRecord {
    TableRecord { epoch: Epoch(epoch), min_seq: Seq(epoch * 10), max_seq: Seq(epoch * 10 + 9), ..record }
}

/// A table that nobody waits for.
pub fn table(record: &TableRecord) -> Arc<TableMeta> {
    Arc::new(TableMeta::new(record, Lease::none()))
}

/// The version that holds exactly these tables.
pub fn version(tables: Vec<(u8, TableRecord)>) -> Version {
    let edit = TreeEdit { add: tables, ..TreeEdit::default() };
    Version::empty().apply(&edit, &mut |_| Lease::none()).unwrap()
}

/// A repeatable stream of numbers (splitmix64).
pub struct Dice(pub u64);

impl Dice {
    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (word ^ (word >> 31)) % bound
    }
}
