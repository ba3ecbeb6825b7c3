//! Metadata of a table: what the store knows without opening it.

use std::fmt;

use super::{Attachment, Heat, Lease, Searches};
use crate::format::edit::TableRecord;
use crate::types::{Epoch, Extent, Holds, KeyRange, KeySum, Seq, TableId, Timestamps, ValueShare};

/// Metadata of one table. Immutable, shared as `Arc<TableMeta>`; a move to another level keeps the same
/// object, unless the table gets another epoch there.
///
/// The extent is released when the last holder lets go.
pub struct TableMeta {
    /// The id.
    pub id: TableId,
    /// Where the table's bytes lie.
    pub extent: Extent,
    /// The range of the keys of its entries and range tombstones.
    pub range: KeyRange,
    /// Smallest sequence number of an entry or range tombstone.
    pub min_seq: Seq,
    /// Largest sequence number of an entry or range tombstone.
    pub max_seq: Seq,
    /// Age of the table in its level: of two tables of one level that overlap, the one with the higher epoch has the
    /// newer entry of every common key.
    pub epoch: Epoch,
    /// Number of entries, tombstones included.
    pub entries: u64,
    /// Number of tombstones among them.
    pub tombstones: u64,
    /// Number of range tombstones.
    pub range_tombstones: u64,
    /// When its values that expire were written.
    pub timestamps: Option<Timestamps>,
    /// What of it is kept only for readers at past sequence numbers.
    pub holds: Holds,
    /// Which keys it has, if that was counted: then each entry has a key of its own, and there is no range tombstone.
    pub keys: Option<KeySum>,
    /// What it has of values that lie apart.
    pub values: ValueShare,
    /// What the layers above keep with the table.
    pub attachment: Attachment,
    /// How often lookups have searched it.
    pub searches: Searches,
    /// How much of it clients' reads keep in the block cache.
    pub heat: Heat,
    lease: Lease,
}

impl TableMeta {
    /// The table of `record`, holding its extent by `lease`.
    #[must_use]
    pub fn new(record: &TableRecord, lease: Lease) -> Self {
        Self {
            id: record.id,
            extent: record.extent,
            range: record.range.clone(),
            min_seq: record.min_seq,
            max_seq: record.max_seq,
            epoch: record.epoch,
            entries: record.entries,
            tombstones: record.tombstones,
            range_tombstones: record.range_tombstones,
            timestamps: record.timestamps,
            holds: record.holds.clone(),
            keys: record.keys,
            values: record.values,
            attachment: Attachment::default(),
            searches: Searches::default(),
            heat: Heat::default(),
            lease,
        }
    }

    /// The same table, at the same place, with another epoch.
    #[must_use]
    pub fn with_epoch(&self, epoch: Epoch) -> Self {
        let record = TableRecord { epoch, ..self.record() };
        Self {
            attachment: self.attachment.clone(),
            searches: self.searches.clone(),
            heat: self.heat.clone(),
            ..Self::new(&record, self.lease.clone())
        }
    }

    /// The same table, at the place of `record`.
    #[must_use]
    pub fn relocated(&self, record: &TableRecord, lease: Lease) -> Self {
        Self { searches: self.searches.clone(), heat: self.heat.clone(), ..Self::new(record, lease) }
    }

    /// The manifest's record of the table.
    #[must_use]
    pub fn record(&self) -> TableRecord {
        TableRecord {
            id: self.id,
            extent: self.extent,
            range: self.range.clone(),
            min_seq: self.min_seq,
            max_seq: self.max_seq,
            epoch: self.epoch,
            entries: self.entries,
            tombstones: self.tombstones,
            range_tombstones: self.range_tombstones,
            timestamps: self.timestamps,
            holds: self.holds.clone(),
            keys: self.keys,
            values: self.values,
        }
    }

    /// Length of the table in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.extent.length
    }
}

impl fmt::Debug for TableMeta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?}{}{:?} {}B {:?}..{:?}",
            self.id,
            self.range,
            self.epoch,
            self.bytes(),
            self.min_seq,
            self.max_seq
        )
    }
}
