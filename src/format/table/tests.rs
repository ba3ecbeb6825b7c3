//! Tests of a table's parts: encoded and decoded, and bytes that are none of them.

use super::*;
use crate::format::testing::{each_change, refuses_changes, refuses_truncations, seeded};
use crate::types::{Epoch, Holders, Holds, KeyRange, KeyspaceId, Seq, Timestamps, Ttl, UpperBound};
use proptest::prelude::*;

const PLACE: Place = Place { id: 7, offset: 8192 };

fn sealed(codec: Codec, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let length = seal_block(PLACE, codec, payload, &mut out);
    assert_eq!(length as usize, out.len());
    out
}

/// Appends the checksum that makes anything a block.
fn protect(stored: &mut Vec<u8>) {
    let checksum = PLACE.checksum(stored);
    put_u32(stored, checksum);
}

fn footer() -> Footer {
    Footer {
        table: TableId(7),
        data_bytes: 10_000,
        index: Some(BlockHandle { offset: 10_200, length: 300 }),
        filter: Some(BlockHandle { offset: 10_000, length: 200 }),
        tombstones: Some(BlockHandle { offset: 10_600, length: 50 }),
        properties: BlockHandle { offset: 10_500, length: 90 },
    }
}

/// So many records of one byte each.
fn holds(records: u64) -> Holds {
    let mut holds = Holds::default();
    holds.note(Holders { first: Seq(40), last: Seq(50) }, records, records);
    holds
}

fn properties() -> Properties {
    Properties {
        keyspace: KeyspaceId(3),
        level: 2,
        epoch: Epoch(900),
        entries: 1000,
        tombstones: 10,
        min_seq: Seq(5),
        max_seq: Seq(70_000),
        raw_key_bytes: 16_000,
        raw_value_bytes: 99_000,
        data_blocks: 29,
        range_tombstones: 3,
        range: KeyRange::new(*b"a", *b"zz"),
        timestamps: Some(Timestamps { oldest: 1_600_000_000, newest: 1_700_000_000 }),
        ttl: Ttl::new(86_400),
        name: Some("rows".into()),
        holds: holds(7),
    }
}

proptest! {
    #![proptest_config(seeded(100))]

    #[test]
    fn blocks_round_trip(payload: Vec<u8>, repeat in 1..40usize, lead: Vec<u8>) {
        let payload = payload.repeat(repeat);
        for codec in [Codec::Raw, Codec::Lz4] {
            let mut out = lead.clone();
            let length = seal_block(PLACE, codec, &payload, &mut out) as usize;
            prop_assert_eq!(out.len(), lead.len() + length);
            prop_assert_eq!(&*open_block(PLACE, &out[lead.len()..]).unwrap(), &payload[..]);
        }
    }

    #[test]
    fn noise_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = open_block(PLACE, &bytes);
        let _ = Footer::decode(&bytes);
        let _ = Properties::decode(&bytes);
        let _ = BlockHandle::decode(&bytes);
        // Behind a checksum that matches, only the decompressor stands guard.
        let mut valid = bytes;
        valid.push(Codec::Lz4 as u8);
        protect(&mut valid);
        let _ = open_block(PLACE, &valid);
    }
}

#[test]
fn lz4_is_kept_only_if_it_saves_an_eighth() {
    let text = b"terrace ".repeat(100);
    let stored = sealed(Codec::Lz4, &text);
    assert!(stored.len() < text.len() / 4);
    assert_eq!(stored[stored.len() - TRAILER_BYTES], Codec::Lz4 as u8);
    let noise: Vec<u8> = (0..800u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let stored = sealed(Codec::Lz4, &noise);
    assert_eq!(stored, sealed(Codec::Raw, &noise));
    assert_eq!(stored.len(), noise.len() + TRAILER_BYTES);
}

#[test]
fn raw_block_is_opened_in_place() {
    let stored = sealed(Codec::Raw, &[1, 2, 3]);
    let payload = open_block(PLACE, &stored).unwrap();
    assert_eq!(payload.as_ptr(), stored.as_ptr());
}

#[test]
fn damaged_and_misplaced_blocks_are_refused() {
    for codec in [Codec::Raw, Codec::Lz4] {
        let stored = sealed(codec, &b"payload ".repeat(9));
        refuses_changes(&stored, |bytes| open_block(PLACE, bytes).map(Cow::into_owned));
        refuses_truncations(&stored, |bytes| open_block(PLACE, bytes).map(Cow::into_owned));
        for place in [Place { id: 8, ..PLACE }, Place { offset: 0, ..PLACE }] {
            assert_eq!(open_block(place, &stored).unwrap_err().what, "block checksum mismatch");
        }
    }
    for length in 0..300 {
        assert!(open_block(PLACE, &vec![0; length]).is_err(), "a hole passes for a block");
    }
}

#[test]
fn claimed_raw_length_is_capped() {
    let mut stored = vec![255, 255, 255, 255, 0, Codec::Lz4 as u8];
    protect(&mut stored);
    assert_eq!(open_block(PLACE, &stored), Err(Malformed::new(0, "raw length beyond what LZ4 can yield")));
    let mut stored = vec![1, 2, 3];
    protect(&mut stored);
    assert_eq!(open_block(PLACE, &stored), Err(Malformed::new(2, "unknown block codec")));
}

#[test]
fn best_compression_stays_below_the_cap() {
    let zeros = vec![0; 1 << 20];
    assert_eq!(open_block(PLACE, &sealed(Codec::Lz4, &zeros)).as_deref(), Ok(&zeros[..]));
}

#[test]
fn footer_round_trips_and_refuses_all_else() {
    for (filter, tombstones) in [(None, footer().tombstones), (footer().filter, None)] {
        let footer = Footer { filter, tombstones, ..footer() };
        assert_eq!(Footer::decode(&footer.encode()), Ok(footer));
    }
    let no_index = Footer { index: None, ..footer() };
    assert_eq!(Footer::decode(&no_index.encode()).unwrap_err().what, "table without an index");
    let tombstones_alone = Footer { data_bytes: 0, filter: None, ..no_index };
    assert_eq!(Footer::decode(&tombstones_alone.encode()), Ok(tombstones_alone));
    refuses_changes(&footer().encode(), Footer::decode);
    refuses_truncations(&footer().encode(), Footer::decode);
}

#[test]
fn handle_round_trips() {
    let handle = BlockHandle { offset: 1 << 40, length: 4101 };
    assert_eq!(BlockHandle::decode(&handle.encode()), Ok(handle));
    assert_eq!(handle.end(), (1 << 40) + 4101);
    for bad in [BlockHandle { offset: u64::MAX, length: 9 }, BlockHandle { offset: 0, length: 0 }] {
        assert!(BlockHandle::decode(&bad.encode()).is_err());
    }
    refuses_truncations(&handle.encode(), BlockHandle::decode);
}

#[test]
fn properties_round_trip_and_never_panic() {
    let altered = properties().ttl.map(|ttl| Ttl { alive_from: 1_650_000_000, ..ttl });
    for properties in [properties(), Properties { ttl: altered, ..properties() }] {
        let mut out = Vec::new();
        properties.encode(&mut out);
        assert_eq!(Properties::decode(&out), Ok(properties));
        each_change(&out, |_, bytes| {
            let _ = Properties::decode(bytes);
        });
    }
}

#[test]
fn tables_whose_values_live_for_ever_have_no_dates() {
    for ttl in [None, Ttl::new(9)] {
        let mut out = Vec::new();
        let holds = Holds::default();
        let timeless = Properties { timestamps: None, ttl, name: None, holds, ..properties() };
        timeless.encode(&mut out);
        assert_eq!(Properties::decode(&out), Ok(timeless.clone()));
        if timeless.ttl.is_none() {
            refuses_truncations(&out, Properties::decode);
        }
    }
}

#[test]
fn unknown_property_is_skipped() {
    let mut out = Vec::new();
    properties().encode(&mut out);
    out.extend([0x90, 0x01, 3, 1, 2, 3]);
    assert_eq!(Properties::decode(&out), Ok(properties()));
}

#[test]
fn contradicting_properties_are_refused() {
    let refused = |properties: Properties| {
        let mut out = Vec::new();
        properties.encode(&mut out);
        Properties::decode(&out).unwrap_err().what
    };
    let good = properties;
    assert_eq!(refused(Properties { level: 8, ..good() }), "properties contradict each other");
    assert_eq!(refused(Properties { tombstones: 1001, ..good() }), "properties contradict each other");
    assert_eq!(
        refused(Properties {
            range: KeyRange { start: (*b"zzz").into(), end: UpperBound::after(b"zz") },
            ..good()
        }),
        "properties contradict each other"
    );
    assert_eq!(refused(Properties { max_seq: Seq(u64::MAX), ..good() }), "properties contradict each other");
    let inverted = Some(Timestamps { oldest: 2, newest: 1 });
    assert_eq!(refused(Properties { timestamps: inverted, ..good() }), "properties contradict each other");
    assert_eq!(refused(Properties { ttl: None, ..good() }), "properties contradict each other");
    assert_eq!(refused(Properties { holds: holds(1004), ..good() }), "properties contradict each other");
    let mut out = Vec::new();
    Properties { holds: Holds::default(), ..good() }.encode(&mut out);
    // The last property, a name of which no byte is a letter.
    let name = out.len() - "rows".len();
    out[name..].fill(0xff);
    assert_eq!(Properties::decode(&out).unwrap_err().what, "property out of range");
    for name in ["", &"n".repeat(256)] {
        let name = Some(name.into());
        assert_eq!(refused(Properties { name, ..good() }), "properties contradict each other");
    }
}

#[test]
fn a_partition_has_its_filter_before_its_index_or_none() {
    let index = BlockHandle { offset: 10_200, length: 300 };
    let filter = BlockHandle { offset: 10_000, length: 200 };
    for filter in [None, Some(filter)] {
        let handle = PartitionHandle { filter, index };
        assert_eq!(PartitionHandle::decode(&handle.encode()), Ok(handle));
        assert_eq!(handle.start(), filter.unwrap_or(index).offset);
        refuses_truncations(&handle.encode(), PartitionHandle::decode);
    }
    let refused = |handle: PartitionHandle| PartitionHandle::decode(&handle.encode()).unwrap_err().what;
    let behind = PartitionHandle { filter: Some(BlockHandle { length: 201, ..filter }), index };
    assert_eq!(refused(behind), "a partition's filter is not before its index");
    let mut none = behind.encode();
    none[HANDLE_BYTES..].fill(0);
    assert_eq!(PartitionHandle::decode(&none).unwrap_err().what, "partition without an index");
}
