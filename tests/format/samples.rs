//! The values whose bytes are golden.

use std::num::NonZeroU32;
use std::sync::LazyLock;

use terrace::format::batch::{Action, Op, encode_header, put_op as encode_op};
use terrace::format::block::BlockBuilder;
use terrace::format::checksum::Place;
use terrace::format::devices::{DeviceList, ListedDevice};
use terrace::format::edit::{
    Counters, Deaths, Edit, KeyspaceChange, KeyspaceRecord, PackRecord, TableRecord, TreeEdit,
    ValueTableRecord,
};
use terrace::format::filter::FilterBuilder;
use terrace::format::identity::{Identity, StoreId};
use terrace::format::log::{FrameWriter, first_prev};
use terrace::format::manifest::{EDIT_FRAME, ManifestStart, START_FRAME};
use terrace::format::pack::{PackDirectory, PackEntry};
use terrace::format::table::{
    BlockHandle, Codec, Footer, PartitionHandle, Properties, seal_block, separator,
};
use terrace::format::timestamped::second;
use terrace::format::tombstones;
use terrace::types::{
    DeviceId, EditNo, Epoch, Extent, Holders, Holds, KeyRange, KeyspaceId, Kind, PackId, Prefix,
    RangeTombstone, SegmentId, Seq, Spans, Stamp, TableId, Timestamps, Ttl, UpperBound, ValueShare,
};

pub const TABLE: TableId = TableId(40);
pub const SEGMENT: SegmentId = SegmentId(3);

/// An entry: key, stamp, value.
pub type Entry = (&'static [u8], Stamp, &'static [u8]);

/// First entry of the sample table: the first operation of the sample log.
pub static FIRST: LazyLock<Entry> =
    LazyLock::new(|| (b"user:ann", Stamp::new(Seq(500), Kind::Put), b"value"));
/// Second entry of the sample table: the second operation of the sample log.
pub static SECOND: LazyLock<Entry> = LazyLock::new(|| (b"user:bo", Stamp::new(Seq(501), Kind::Delete), b""));

/// The rule of prefixes of the sample keyspace and table.
pub const RULE: Prefix = Prefix::Delimited { delimiter: b':', count: 1 };

/// Bound behind the range that the third operation of the sample log deletes, from the second key on.
const RANGE_END: &[u8] = b"user:d";

pub fn identity() -> Identity {
    Identity { store: StoreId(0x0123_4567_89ab_cdef), device: DeviceId(1) }
}

pub fn devices() -> DeviceList {
    let listed = |id, dir: &str| ListedDevice { id: DeviceId(id), bandwidth: 100_000_000, dir: dir.into() };
    let devices = vec![listed(1, "/mnt/slow/db"), listed(3, "/mnt/other")];
    DeviceList { store: identity().store, next: DeviceId(4), home_bandwidth: 450_000_000, devices }
}

pub fn put_op() -> Op<'static> {
    Op { keyspace: KeyspaceId(0), action: Action::Put { key: FIRST.0, value: FIRST.2 } }
}

pub fn delete_op() -> Op<'static> {
    Op { keyspace: KeyspaceId(0), action: Action::Delete { key: SECOND.0 } }
}

pub fn delete_range_op() -> Op<'static> {
    Op { keyspace: KeyspaceId(0), action: Action::DeleteRange { start: SECOND.0, end: RANGE_END } }
}

/// The range tombstone of the sample table: the third operation of the sample log.
pub fn range_tombstone() -> RangeTombstone {
    let range = KeyRange::half_open(SECOND.0, UpperBound::Excluded(RANGE_END.into()));
    RangeTombstone { range, seq: Seq(502) }
}

fn range() -> KeyRange {
    KeyRange::half_open(FIRST.0, range_tombstone().range.end)
}

pub fn wal() -> Vec<u8> {
    let mut ops = Vec::new();
    for op in [put_op(), delete_op(), delete_range_op()] {
        encode_op(&mut ops, &op);
    }
    let mut out = Vec::new();
    let mut writer = FrameWriter::new(SEGMENT.0, 0, first_prev(SEGMENT.0));
    writer.append(1, &[&encode_header(Seq(500), 3), &ops], 0, &mut out);
    out
}

fn value_table() -> ValueTableRecord {
    ValueTableRecord {
        id: TableId(39),
        extent: Extent { device: DeviceId(0), pack: PackId(12), offset: 4096, length: 5036 },
        range: KeyRange::new(FIRST.0, FIRST.0),
        count: 1,
        gap_bytes: 0,
    }
}

fn deaths() -> Deaths {
    let spans = Spans::new(vec![0..4096, 9000..9300]).expect("they are apart");
    Deaths { table: TableId(37), count: 2, spans }
}

pub fn edit() -> Edit {
    let record = TableRecord {
        id: TABLE,
        extent: Extent { device: DeviceId(1), pack: PackId(12), offset: 8192, length: table().len() as u64 },
        range: range(),
        min_seq: Seq(500),
        max_seq: Seq(502),
        epoch: Epoch(17),
        entries: 2,
        tombstones: 1,
        range_tombstones: 1,
        timestamps: timestamps(),
        holds: holds(),
        keys: None,
        values: ValueShare { count: 1, bytes: 5000, oldest: TableId(39) },
    };
    let keyspace = KeyspaceRecord {
        id: KeyspaceId(2),
        name: "users".into(),
        lz4: true,
        filter_bits: 10,
        prefix: Some(RULE),
        separate_from: None,
        ttl: Ttl::new(3600),
    };
    Edit {
        number: EditNo(7),
        keyspaces: vec![
            KeyspaceChange::Create(keyspace),
            KeyspaceChange::SetSeparation { keyspace: KeyspaceId(2), from: NonZeroU32::new(4096) },
            KeyspaceChange::Drop(KeyspaceId(1)),
            KeyspaceChange::Alter { keyspace: KeyspaceId(2), lz4: false, filter_bits: 12 },
            KeyspaceChange::SetTtl {
                keyspace: KeyspaceId(2),
                ttl: Ttl { seconds: NonZeroU32::MIN, alive_from: 1_700_000_000 },
            },
        ],
        packs: vec![PackRecord { id: PackId(12), device: DeviceId(1), length: 12_416 }],
        trees: vec![TreeEdit {
            keyspace: KeyspaceId(0),
            drop: vec![(0, TableId(38))],
            add: vec![(1, record)],
            cursors: vec![(1, FIRST.0.into())],
            flushed: Some(Seq(502)),
            values: vec![value_table()],
            deaths: vec![deaths()],
        }],
        counters: Counters {
            clock: 1_700_000_000,
            table: TableId(41),
            pack: PackId(13),
            epoch: Epoch(18),
            segment: SegmentId(4),
            wal_floor: SegmentId(3),
            keyspace: KeyspaceId(3),
            seq: Seq(502),
        },
    }
}

pub fn manifest() -> Vec<u8> {
    let (mut edit_bytes, mut out) = (Vec::new(), Vec::new());
    edit().encode(&mut edit_bytes);
    let mut frames = FrameWriter::new(1, 0, first_prev(1));
    let start = ManifestStart { store: identity().store };
    frames.append(START_FRAME, &[&start.encode()], 0, &mut out);
    frames.append(EDIT_FRAME, &[&edit_bytes], 0, &mut out);
    out
}

pub fn directory() -> PackDirectory {
    let entry = |table, offset, length| PackEntry { table, keyspace: KeyspaceId(0), offset, length };
    PackDirectory {
        pack: PackId(12),
        tables: vec![entry(TableId(39), 0, 5000), entry(TABLE, 8192, table().len() as u64)],
    }
}

pub fn properties() -> Properties {
    Properties {
        keyspace: KeyspaceId(0),
        level: 1,
        epoch: Epoch(17),
        entries: 2,
        tombstones: 1,
        min_seq: Seq(500),
        max_seq: Seq(502),
        raw_key_bytes: (FIRST.0.len() + SECOND.0.len()) as u64,
        raw_value_bytes: FIRST.2.len() as u64,
        data_blocks: 2,
        range_tombstones: 1,
        range: range(),
        timestamps: timestamps(),
        ttl: Ttl::new(3600),
        name: Some("default".into()),
        holds: holds(),
    }
}

/// The second entry, for whoever reads at the first.
fn holds() -> Holds {
    let mut holds = Holds::default();
    holds.note(Holders { first: Seq(500), last: Seq(500) }, 1, 40);
    holds
}

/// Those of the table's values, of which there is one.
fn timestamps() -> Option<Timestamps> {
    Some(Timestamps::at(second(FIRST.2)))
}

/// A table of two data blocks with one entry each, and a range tombstone.
pub fn table() -> Vec<u8> {
    let mut out = Vec::new();
    let mut index = BlockBuilder::new();
    for (entry, next) in [(&*FIRST, Some(SECOND.0)), (&*SECOND, None)] {
        let mut data = BlockBuilder::new();
        data.add(entry.0, entry.1, entry.2);
        let handle = append(&mut out, |payload| data.finish(payload));
        let mut key = Vec::new();
        let stamp = separator(entry.0, entry.1, next, &mut key);
        index.add(&key, stamp, &handle.encode());
    }
    let data_bytes = out.len() as u64;
    let mut filter = FilterBuilder::new(Some(RULE));
    filter.add(FIRST.0);
    filter.add(SECOND.0);
    let filter = Some(append(&mut out, |payload| filter.finish(10, payload)));
    let index = Some(append(&mut out, |payload| index.finish(payload)));
    finish(out, data_bytes, index, filter)
}

/// The same with a partition for each of its blocks.
pub fn partitioned_table() -> Vec<u8> {
    let mut out = Vec::new();
    let mut blocks = Vec::new();
    for (entry, next) in [(&*FIRST, Some(SECOND.0)), (&*SECOND, None)] {
        let mut data = BlockBuilder::new();
        data.add(entry.0, entry.1, entry.2);
        let handle = append(&mut out, |payload| data.finish(payload));
        let mut key = Vec::new();
        let stamp = separator(entry.0, entry.1, next, &mut key);
        blocks.push((entry.0, key, stamp, handle));
    }
    let data_bytes = out.len() as u64;
    let mut partitions = BlockBuilder::new();
    for (first, key, stamp, handle) in blocks {
        let mut filter = FilterBuilder::new(Some(RULE));
        filter.add(first);
        let mut index = BlockBuilder::new();
        index.add(&key, stamp, &handle.encode());
        let filter = Some(append(&mut out, |payload| filter.finish(10, payload)));
        let index = append(&mut out, |payload| index.finish(payload));
        partitions.add(&key, stamp, &PartitionHandle { filter, index }.encode());
    }
    let index = Some(append(&mut out, |payload| partitions.finish(payload)));
    finish(out, data_bytes, index, None)
}

/// Appends what lies behind the index.
fn finish(
    mut out: Vec<u8>,
    data_bytes: u64,
    index: Option<BlockHandle>,
    filter: Option<BlockHandle>,
) -> Vec<u8> {
    let tombstones = Some(append(&mut out, |payload| tombstones::encode(&[range_tombstone()], payload)));
    let properties = append(&mut out, |payload| properties().encode(payload));
    out.extend(Footer { table: TABLE, data_bytes, index, filter, tombstones, properties }.encode());
    out
}

/// Appends the block that `build` makes, sealed, to the sample table.
fn append(out: &mut Vec<u8>, build: impl FnOnce(&mut Vec<u8>)) -> BlockHandle {
    let mut payload = Vec::new();
    build(&mut payload);
    let offset = out.len() as u64;
    let length = seal_block(Place { id: TABLE.0, offset }, Codec::Raw, &payload, out);
    BlockHandle { offset, length }
}

pub fn text() -> Vec<u8> {
    b"terraces follow the hill; ".repeat(12)
}

pub fn lz4_block(place: Place) -> Vec<u8> {
    let mut out = Vec::new();
    seal_block(place, Codec::Lz4, &text(), &mut out);
    out
}
