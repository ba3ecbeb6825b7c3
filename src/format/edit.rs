//! Edits of the catalog, as they stand in the manifest.
//!
//! These are plain values; their stored form is in `codec`. The catalog decides whether an edit fits it.

mod codec;

pub(crate) use codec::NAME_BYTES_MAX;

use std::iter;
use std::num::NonZeroU32;

use crate::types::{
    DeviceId, EditNo, Epoch, Extent, Holds, Key, KeyRange, KeySum, KeyspaceId, PackId, Prefix, SegmentId,
    Seq, Spans, TableId, Timestamps, Ttl, ValueShare,
};

/// One atomic change of the catalog: one manifest record.
///
/// A snapshot of the whole catalog is the edit that builds it from nothing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Edit {
    /// Position in the history of edits.
    pub number: EditNo,
    /// Keyspaces created and dropped, in order.
    pub keyspaces: Vec<KeyspaceChange>,
    /// Packs that became part of the store. (A pack leaves it with its last table; there is no record of that.)
    pub packs: Vec<PackRecord>,
    /// Changes of trees, at most one per keyspace.
    pub trees: Vec<TreeEdit>,
    /// Counters as of this edit; each only grows.
    pub counters: Counters,
}

/// Creation, removal or change of a keyspace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum KeyspaceChange {
    /// A keyspace came to exist.
    Create(KeyspaceRecord),
    /// A keyspace and everything in it is gone.
    Drop(KeyspaceId),
    /// Settings for new tables of a keyspace changed.
    Alter {
        /// The keyspace.
        keyspace: KeyspaceId,
        /// Whether new tables are compressed with LZ4.
        lz4: bool,
        /// Bits of Bloom filter per key in new tables; 0 for no filter.
        filter_bits: u8,
    },
    /// From which size on a keyspace's values lie apart from their keys changed.
    SetSeparation {
        /// The keyspace.
        keyspace: KeyspaceId,
        /// In bytes; `None` for never.
        from: Option<NonZeroU32>,
    },
    /// The time to live of a keyspace's values changed.
    SetTtl {
        /// The keyspace.
        keyspace: KeyspaceId,
        /// The new time to live.
        ttl: Ttl,
    },
}

impl KeyspaceChange {
    /// The changes that create the keyspace of `record`. A second one records from which size on its values lie apart, and if
    /// its time to live was changed later, a third one since when: a creation has no fields for these.
    pub fn creating(record: &KeyspaceRecord) -> impl Iterator<Item = Self> {
        let keyspace = record.id;
        let ttl = record.ttl.map(|ttl| Ttl { alive_from: 0, ..ttl });
        let separated = record.separate_from.map(|from| Self::SetSeparation { keyspace, from: Some(from) });
        let altered =
            record.ttl.filter(|ttl| ttl.alive_from > 0 && !planted!("snapshot-without-what-has-expired"));
        let altered = altered.map(|ttl| Self::SetTtl { keyspace, ttl });
        iter::once(Self::Create(KeyspaceRecord { ttl, separate_from: None, ..record.clone() }))
            .chain(separated)
            .chain(altered)
    }
}

/// What the manifest knows of a keyspace besides its tables.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyspaceRecord {
    /// The id, never reused.
    pub id: KeyspaceId,
    /// The name, unique among living keyspaces, 1 to 255 bytes.
    pub name: String,
    /// Whether new tables are compressed with LZ4.
    pub lz4: bool,
    /// Bits of Bloom filter per key in new tables; 0 for none.
    pub filter_bits: u8,
    /// Rule by which prefixes of keys are added to the filters of new tables too.
    pub prefix: Option<Prefix>,
    /// From this size on, in bytes, new values lie apart from their keys; `None` for never.
    pub separate_from: Option<NonZeroU32>,
    /// Time to live of values; `None` for ever. If set, each stored value ends with the second of its write (4 bytes,
    /// little endian). A keyspace never changes between the two.
    pub ttl: Option<Ttl>,
}

/// Changes of one keyspace's tree. A move is a drop and an add of the same table id.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TreeEdit {
    /// The keyspace of the tree.
    pub keyspace: KeyspaceId,
    /// Tables that leave the tree: (level, table).
    pub drop: Vec<(u8, TableId)>,
    /// Tables that come into the tree: (level, table). In level 0 the table's epoch says which run it belongs to.
    pub add: Vec<(u8, TableRecord)>,
    /// Where the picker goes on in each level: (level, key).
    pub cursors: Vec<(u8, Key)>,
    /// Every entry of this keyspace up to this sequence number is in a table.
    pub flushed: Option<Seq>,
    /// Value tables that come into the tree.
    pub values: Vec<ValueTableRecord>,
    /// Values that died: no table of the tree points to them any more. At most one for each value table.
    pub deaths: Vec<Deaths>,
}

/// What the manifest knows of a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableRecord {
    /// The id, never reused; kept when the table moves.
    pub id: TableId,
    /// Where the table's bytes lie.
    pub extent: Extent,
    /// The range of the keys of its entries and range tombstones.
    pub range: KeyRange,
    /// Smallest sequence number of an entry or range tombstone.
    pub min_seq: Seq,
    /// Largest sequence number of an entry or range tombstone.
    pub max_seq: Seq,
    /// Age of the run that the table belongs to; a higher epoch is newer.
    pub epoch: Epoch,
    /// Number of entries, tombstones included.
    pub entries: u64,
    /// Number of tombstones among them.
    pub tombstones: u64,
    /// Number of range tombstones.
    pub range_tombstones: u64,
    /// When its values that expire were written; `None` if there is no such value, or it is unknown.
    pub timestamps: Option<Timestamps>,
    /// What of it is kept only for readers at past sequence numbers.
    pub holds: Holds,
    /// Which keys it has, if that was counted: then each entry has a key of its own, and there is no range tombstone.
    pub keys: Option<KeySum>,
    /// What it has of values that lie apart.
    pub values: ValueShare,
}

/// What the manifest knows of a value table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ValueTableRecord {
    /// The id, never reused, and of no other table either.
    pub id: TableId,
    /// Where its bytes lie.
    pub extent: Extent,
    /// The range of the keys of its values.
    pub range: KeyRange,
    /// Number of values.
    pub count: u64,
    /// Bytes between values, which belong to none.
    pub gap_bytes: u64,
}

/// Values of a value table that are dead. (The table leaves the tree with its last value; there is no record of that.)
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Deaths {
    /// The value table.
    pub table: TableId,
    /// How many have died.
    pub count: u64,
    /// What they took, and bytes that belong to no value.
    pub spans: Spans,
}

/// What the manifest knows of a pack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PackRecord {
    /// The id, never reused.
    pub id: PackId,
    /// The device that holds it.
    pub device: DeviceId,
    /// Length when it was sealed, in bytes. A shorter file has lost data.
    pub length: u64,
}

/// The next free value of every counter.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Next table.
    pub table: TableId,
    /// Next pack.
    pub pack: PackId,
    /// Next epoch.
    pub epoch: Epoch,
    /// Next WAL segment.
    pub segment: SegmentId,
    /// The oldest WAL segment that may hold an entry that is in no table.
    pub wal_floor: SegmentId,
    /// Next keyspace.
    pub keyspace: KeyspaceId,
    /// Largest sequence number in any table.
    pub seq: Seq,
    /// The latest time that the store has seen, in seconds since 1970. Values that had expired by then stay expired.
    pub clock: u64,
}

#[cfg(test)]
mod tests;
