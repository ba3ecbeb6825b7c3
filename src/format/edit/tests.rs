//! Tests of edits: encoded and decoded, and bytes that are no edit.

use super::*;
use crate::format::Malformed;
use crate::format::testing::{each_change, seeded};
use crate::types::{Hold, Holders, Holds, UpperBound};
use proptest::prelude::*;
use std::cmp::Ordering;

fn encoded(edit: &Edit) -> Vec<u8> {
    let mut out = Vec::new();
    edit.encode(&mut out);
    out
}

fn record() -> TableRecord {
    TableRecord {
        id: TableId(40),
        extent: Extent { device: DeviceId(1), pack: PackId(12), offset: 8192, length: 5000 },
        range: KeyRange::new(b"a".as_slice(), b"zz".as_slice()),
        min_seq: Seq(5),
        max_seq: Seq(900),
        epoch: Epoch(17),
        entries: 100,
        tombstones: 3,
        range_tombstones: 2,
        timestamps: Some(Timestamps { oldest: 1_690_000_000, newest: 1_700_000_000 }),
        holds: holds(4),
        keys: None,
        values: ValueShare { count: 60, bytes: 300_000, oldest: TableId(38) },
    }
}

fn value_table() -> ValueTableRecord {
    ValueTableRecord {
        id: TableId(39),
        extent: Extent { device: DeviceId(1), pack: PackId(12), offset: 16_384, length: 100_036 },
        range: KeyRange::new(b"b".as_slice(), b"y".as_slice()),
        count: 20,
        gap_bytes: 300,
    }
}

fn deaths() -> Deaths {
    Deaths {
        table: TableId(38),
        count: 3,
        spans: Spans::new(vec![0..5000, 8192..12_288, 20_000..20_100]).unwrap(),
    }
}

/// So many records of 100 bytes, for two groups of readers.
fn holds(records: u64) -> Holds {
    let by = |last| Holders { first: Seq(300), last: Seq(last) };
    let hold = |last| Hold { by: by(last), records: records / 2, bytes: records * 50 };
    Holds::from_groups(vec![hold(300), hold(301)]).unwrap()
}

fn sample() -> Edit {
    Edit {
        number: EditNo(7),
        keyspaces: vec![
            KeyspaceChange::Drop(KeyspaceId(1)),
            KeyspaceChange::Create(KeyspaceRecord {
                id: KeyspaceId(2),
                name: "users".into(),
                lz4: true,
                filter_bits: 10,
                prefix: Some(Prefix::Delimited { delimiter: b':', count: 2 }),
                separate_from: None,
                ttl: Ttl::new(86_400),
            }),
            KeyspaceChange::SetSeparation { keyspace: KeyspaceId(2), from: NonZeroU32::new(4096) },
            KeyspaceChange::Alter { keyspace: KeyspaceId(2), lz4: false, filter_bits: 4 },
            KeyspaceChange::SetTtl {
                keyspace: KeyspaceId(2),
                ttl: Ttl { alive_from: 1_700_000_000, ..Ttl::new(60).unwrap() },
            },
        ],
        packs: vec![PackRecord { id: PackId(12), device: DeviceId(1), length: 16_384 }],
        trees: vec![
            TreeEdit {
                keyspace: KeyspaceId(2),
                drop: vec![(0, TableId(3)), (1, TableId(300))],
                add: vec![(1, record())],
                cursors: vec![(1, b"m".as_slice().into()), (2, b"".as_slice().into())],
                flushed: Some(Seq(900)),
                values: vec![value_table()],
                deaths: vec![deaths()],
            },
            TreeEdit::default(),
        ],
        counters: Counters {
            table: TableId(41),
            pack: PackId(13),
            epoch: Epoch(18),
            segment: SegmentId(4),
            clock: 1_700_000_000,
            wal_floor: SegmentId(2),
            keyspace: KeyspaceId(3),
            seq: Seq(900),
        },
    }
}

fn key() -> impl Strategy<Value = Key> {
    prop::collection::vec(any::<u8>(), 0..8).prop_map(Key::from)
}

prop_compose! {
    fn a_record()(
        id in 0..u64::MAX, device: u16, pack in 0..u64::MAX, page in 0..1u64 << 40, length: u32,
        keys in (key(), key()), seqs in (0..=Seq::MAX.0, 0..=Seq::MAX.0), epoch in 0..u64::MAX, counts: (u64, u64),
        timestamps in prop::option::of((any::<u32>(), any::<u32>())), held: bool,
        sum in prop::option::of((any::<u64>(), any::<u128>())),
    ) -> TableRecord {
        TableRecord {
            id: TableId(id),
            extent: Extent {
                device: DeviceId(device), pack: PackId(pack), offset: page * 4096, length: length.into(),
            },
            range: match keys.0.cmp(&keys.1) {
                Ordering::Less => KeyRange::half_open(keys.0, UpperBound::Excluded(keys.1)),
                Ordering::Equal => KeyRange::half_open(keys.0, UpperBound::Unbounded),
                Ordering::Greater => KeyRange::new(keys.1, keys.0),
            },
            min_seq: Seq(seqs.0.min(seqs.1)),
            max_seq: Seq(seqs.0.max(seqs.1)),
            epoch: Epoch(epoch),
            entries: counts.0.max(counts.1),
            tombstones: counts.0.min(counts.1),
            range_tombstones: counts.0 / 2,
            timestamps: timestamps.map(|(one, other)| Timestamps::at(one).hull(Timestamps::at(other))),
            holds: if held && counts.0.max(counts.1) > 4 && length > 400 { holds(4) } else { Holds::default() },
            keys: sum.filter(|_| counts.0 / 2 == 0).map(|(seed, sum)| KeySum { seed, sum }),
            values: match counts.0.max(counts.1) {
                entries if held => ValueShare { count: entries, bytes: counts.0, oldest: TableId(id / 2) },
                _ => ValueShare::default(),
            },
        }
    }
}

prop_compose! {
    fn a_tree()(
        keyspace in 0..u32::MAX,
        drop in prop::collection::vec((0..8u8, (0..u64::MAX).prop_map(TableId)), 0..4),
        add in prop::collection::vec((0..8u8, a_record()), 0..4),
        cursors in prop::collection::vec((0..8u8, key()), 0..3),
        flushed in prop::option::of((0..=Seq::MAX.0).prop_map(Seq)),
        values in prop::collection::vec((0..u64::MAX, 0..1u64 << 40, 1..=u32::MAX, 1..u64::MAX, a_record()), 0..3),
        deaths in prop::collection::vec((0..u64::MAX, any::<u64>(), prop::collection::btree_set(any::<u32>(), 0..8)), 0..3),
    ) -> TreeEdit {
        let values = values.into_iter().map(|(id, page, length, count, other)| ValueTableRecord {
            id: TableId(id),
            extent: Extent { offset: page * 4096, length: length.into(), ..other.extent },
            range: other.range,
            count,
            gap_bytes: u64::from(length) / 20,
        });
        let deaths = deaths.into_iter().map(|(id, count, ends)| {
            let ends: Vec<_> = ends.into_iter().collect();
            let spans = Spans::new(ends.chunks_exact(2).map(|pair| pair[0]..pair[1]).collect()).unwrap();
            Deaths { table: TableId(id), count, spans }
        });
        TreeEdit {
            keyspace: KeyspaceId(keyspace),
            drop,
            add,
            cursors,
            flushed,
            values: values.collect(),
            deaths: deaths.collect(),
        }
    }
}

fn a_prefix() -> impl Strategy<Value = Prefix> {
    let delimited =
        (any::<u8>(), 1..=u8::MAX).prop_map(|(delimiter, count)| Prefix::Delimited { delimiter, count });
    prop_oneof![(1..=u16::MAX).prop_map(Prefix::Fixed), delimited]
}

fn a_keyspace_change() -> impl Strategy<Value = KeyspaceChange> {
    let prefix = prop::option::of(a_prefix());
    let create = (0..u32::MAX, "[a-z]{1,20}", any::<bool>(), any::<u8>(), any::<u32>(), prefix).prop_map(
        |(id, name, lz4, filter_bits, ttl, prefix)| {
            KeyspaceChange::Create(KeyspaceRecord {
                id: KeyspaceId(id),
                name,
                lz4,
                filter_bits,
                prefix,
                separate_from: None,
                ttl: Ttl::new(ttl),
            })
        },
    );
    let alter = (0..u32::MAX, any::<bool>(), any::<u8>()).prop_map(|(id, lz4, filter_bits)| {
        KeyspaceChange::Alter { keyspace: KeyspaceId(id), lz4, filter_bits }
    });
    let live = (0..u32::MAX, 1..u32::MAX, any::<u32>()).prop_map(|(id, seconds, alive_from)| {
        let ttl = Ttl { alive_from, ..Ttl::new(seconds).unwrap() };
        KeyspaceChange::SetTtl { keyspace: KeyspaceId(id), ttl }
    });
    let separate = (0..u32::MAX, any::<u32>()).prop_map(|(id, from)| KeyspaceChange::SetSeparation {
        keyspace: KeyspaceId(id),
        from: NonZeroU32::new(from),
    });
    let drop = (0..u32::MAX).prop_map(|id| KeyspaceChange::Drop(KeyspaceId(id)));
    prop_oneof![create, drop, alter, live, separate]
}

proptest! {
    #![proptest_config(seeded(100))]

    #[test]
    fn edits_round_trip(
        number in 0..u64::MAX,
        keyspaces in prop::collection::vec(a_keyspace_change(), 0..4),
        packs: Vec<(u32, u16, u64)>,
        trees in prop::collection::vec(a_tree(), 0..4),
        counters in (0..u64::MAX, 0..u64::MAX, 0..u32::MAX, 0..=Seq::MAX.0),
    ) {
        let packs = packs.into_iter().map(|(id, device, length)| PackRecord {
            id: PackId(id.into()),
            device: DeviceId(device),
            length,
        });
        let counters = Counters {
            table: TableId(counters.0),
            pack: PackId(counters.1),
            epoch: Epoch(counters.0 / 2),
            segment: SegmentId(counters.1 / 2),
            clock: counters.0,
            wal_floor: SegmentId(counters.1 / 3),
            keyspace: KeyspaceId(counters.2),
            seq: Seq(counters.3),
        };
        let edit = Edit { number: EditNo(number), keyspaces, packs: packs.collect(), trees, counters };
        prop_assert_eq!(Edit::decode(&encoded(&edit)), Ok(edit));
    }

    #[test]
    fn noise_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Edit::decode(&bytes);
    }
}

#[test]
fn sample_round_trips_and_damage_never_panics() {
    let bytes = encoded(&sample());
    assert_eq!(Edit::decode(&bytes), Ok(sample()));
    assert!((0..bytes.len()).all(|end| Edit::decode(&bytes[..end]).is_err()));
    each_change(&bytes, |_, bytes| {
        let _ = Edit::decode(bytes);
    });
}

#[test]
fn unknown_sections_are_refused_below_128_and_skipped_above() {
    let mut bytes = encoded(&sample());
    let end = bytes.len();
    bytes.extend([0x80, 0x01, 2, 9, 9]);
    assert_eq!(Edit::decode(&bytes), Ok(sample()));
    bytes.truncate(end);
    bytes.extend([127, 2, 9, 9]);
    let what = "required section of an edit that this version does not know";
    assert_eq!(Edit::decode(&bytes), Err(Malformed::new(end + 2, what)));
}

#[test]
fn records_that_contradict_themselves_are_refused() {
    let refused = |record: TableRecord| {
        let tree = TreeEdit { add: vec![(0, record)], ..TreeEdit::default() };
        Edit::decode(&encoded(&Edit { trees: vec![tree], ..Edit::default() })).unwrap_err().what
    };
    let extent = record().extent;
    assert_eq!(
        refused(TableRecord { min_seq: Seq(901), ..record() }),
        "record of a table contradicts itself"
    );
    assert_eq!(refused(TableRecord { tombstones: 101, ..record() }), "record of a table contradicts itself");
    assert_eq!(refused(TableRecord { id: TableId(u64::MAX), ..record() }), "id out of range");
    let unaligned = Extent { offset: 8193, ..extent };
    assert_eq!(refused(TableRecord { extent: unaligned, ..record() }), "impossible extent of a table");
    let endless = Extent { length: u64::MAX, ..extent };
    assert_eq!(refused(TableRecord { extent: endless, ..record() }), "impossible extent of a table");
    let range = KeyRange { start: (*b"zz").into(), end: UpperBound::after(b"a") };
    assert_eq!(refused(TableRecord { range, ..record() }), "keys of a table are inverted");
    let range = KeyRange::new(b"a".as_slice(), vec![b'b'; crate::types::KEY_BYTES_MAX + 1]);
    assert_eq!(refused(TableRecord { range, ..record() }), "key too long");
    let timestamps = Some(Timestamps { oldest: 2, newest: 1 });
    assert_eq!(refused(TableRecord { timestamps, ..record() }), "dates of a table are inverted");
    for records in [104, 110] {
        let holds = holds(records);
        let what = "a table holds back more than it has";
        assert_eq!(refused(TableRecord { holds, ..record() }), what);
    }
}

#[test]
fn dates_belong_to_the_table_before_them() {
    let tree = TreeEdit { add: vec![(1, record())], ..TreeEdit::default() };
    let bytes = encoded(&Edit { trees: vec![tree], ..Edit::default() });
    // Table 40, and the seconds.
    let at = bytes.windows(3).rposition(|bytes| bytes == [5, 9, 40]).unwrap() + 2;
    let mut other = bytes.clone();
    other[at] = 41;
    let what = "dates of a table that is not the last one added";
    assert_eq!(Edit::decode(&other), Err(Malformed::new(at, what)));
}

#[test]
fn what_is_held_belongs_to_the_table_before_it_and_is_told_once() {
    let with = |holds| {
        let tree = TreeEdit { add: vec![(1, TableRecord { holds, ..record() })], ..TreeEdit::default() };
        encoded(&Edit { trees: vec![tree], ..Edit::default() })
    };
    let bytes = with(holds(4));
    // Two groups of six bytes, behind the table.
    let at = bytes.windows(3).rposition(|bytes| bytes == [6, 13, 40]).unwrap() + 2;
    let mut other = bytes.clone();
    other[at] = 41;
    let what = "what a table holds back that is not the last one added";
    assert_eq!(Edit::decode(&other), Err(Malformed::new(at, what)));
    assert_ne!(with(Holds::default()), bytes);
}

#[test]
fn keys_belong_to_the_table_before_them_and_to_none_with_range_tombstones() {
    let keys = Some(KeySum { seed: 7, sum: u128::MAX - 1 });
    let plain = TableRecord { range_tombstones: 0, keys, ..record() };
    let tree = |record: &TableRecord| TreeEdit { add: vec![(1, record.clone())], ..TreeEdit::default() };
    let edit = |record: &TableRecord| Edit { trees: vec![tree(record)], ..Edit::default() };
    let bytes = encoded(&edit(&plain));
    assert_eq!(Edit::decode(&bytes).unwrap(), edit(&plain));
    // Tag 128 takes two bytes; table 40, seed and sum take 25.
    let at = bytes.windows(4).rposition(|bytes| bytes == [0x80, 1, 25, 40]).unwrap() + 3;
    let mut other = bytes.clone();
    other[at] = 41;
    let what = "keys of a table that is not the last one added";
    assert_eq!(Edit::decode(&other), Err(Malformed::new(at, what)));
    let refused = Edit::decode(&encoded(&edit(&TableRecord { range_tombstones: 1, ..plain })));
    assert_eq!(refused.unwrap_err().what, "keys of a table with range tombstones");
}

#[test]
fn doubled_and_missing_sections_are_refused() {
    let bytes = encoded(&sample());
    assert_eq!(Edit::decode(&[]).unwrap_err().what, "edit without a number");
    assert_eq!(Edit::decode(&bytes[..3]).unwrap_err().what, "edit without counters");
    assert_eq!(Edit::decode(&[&bytes[..3], &bytes].concat()).unwrap_err().what, "section occurs twice");
}
