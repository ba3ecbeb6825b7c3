//! The catalog's edits as they stand in the manifest.
//!
//! Plain values; the stored form is in `codec`. Whether an edit fits the catalog that it changes is the catalog's to
//! say.

mod codec;

pub(crate) use codec::NAME_BYTES_MAX;

use crate::types::{
    DeviceId, EditNo, Epoch, Extent, Holds, Key, KeyRange, KeyspaceId, PackId, Prefix, SegmentId, Seq,
    TableId, Timestamps, Ttl,
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
    /// Packs that became part of the store. (A pack leaves it with its last table; no record says so.)
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
    /// New tables of a keyspace are written in another way.
    Alter {
        /// Whose tables.
        keyspace: KeyspaceId,
        /// Whether they are compressed with LZ4.
        lz4: bool,
        /// Their bits of Bloom filter per key; 0 for none.
        filter_bits: u8,
    },
    /// Values of a keyspace live for another time.
    SetTtl {
        /// Whose values.
        keyspace: KeyspaceId,
        /// For how long.
        ttl: Ttl,
    },
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
    /// Rule by which the filters of new tables take in prefixes, too.
    pub prefix: Option<Prefix>,
    /// For how long values live; each stored value ends in the second of its write then (4 bytes, little endian). `None` for
    /// ever, and that does not change.
    pub ttl: Option<Ttl>,
}

/// Changes of one keyspace's tree. A move is a drop and an add of the same table id.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TreeEdit {
    /// Whose tree.
    pub keyspace: KeyspaceId,
    /// Tables that leave: (level, table).
    pub drop: Vec<(u8, TableId)>,
    /// Tables that come: (level, table). In level 0 the table's epoch says which run it belongs to.
    pub add: Vec<(u8, TableRecord)>,
    /// Where the picker goes on in a level: (level, key).
    pub cursors: Vec<(u8, Key)>,
    /// Every entry of this keyspace up to this sequence number is in a table.
    pub flushed: Option<Seq>,
}

/// What the manifest knows of a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableRecord {
    /// The id, never reused; kept when the table moves.
    pub id: TableId,
    /// Where the bytes lie.
    pub extent: Extent,
    /// The keys of its entries and range tombstones.
    pub range: KeyRange,
    /// Smallest sequence number of an entry or range tombstone.
    pub min_seq: Seq,
    /// Largest sequence number of an entry or range tombstone.
    pub max_seq: Seq,
    /// Recency of the run that the table belongs to.
    pub epoch: Epoch,
    /// Number of entries, tombstones included.
    pub entries: u64,
    /// Number of tombstones among them.
    pub tombstones: u64,
    /// Number of range tombstones.
    pub range_tombstones: u64,
    /// When its values were written, where they expire; `None` if there is none, or nobody knows.
    pub timestamps: Option<Timestamps>,
    /// What it holds for readers at numbers of the past alone.
    pub holds: Holds,
}

/// What the manifest knows of a pack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PackRecord {
    /// The id, never reused.
    pub id: PackId,
    /// Where it lies.
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
    /// The latest time that the store has seen, in seconds since 1970; what had expired by then stays so.
    pub clock: u64,
}

#[cfg(test)]
mod tests;
