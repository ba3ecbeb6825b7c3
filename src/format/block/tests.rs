//! Tests of blocks: against the list of their entries, and damaged ones.

use super::*;
use crate::format::Malformed;
use crate::format::testing::{each_change, refuses_truncations, seeded};
use crate::types::{Kind, Seq, Stamp};
use proptest::prelude::*;
use std::cmp::Ordering;

type Entry = (Vec<u8>, Stamp, Vec<u8>);

fn build(entries: &[Entry]) -> Vec<u8> {
    let mut builder = BlockBuilder::new();
    for (key, stamp, value) in entries {
        builder.add(key, *stamp, value);
    }
    let mut out = Vec::new();
    builder.finish(&mut out);
    out
}

fn entry_order(a: (&[u8], Stamp), b: (&[u8], Stamp)) -> Ordering {
    a.0.cmp(b.0).then(b.1.cmp(&a.1))
}

fn put(seq: u64) -> Stamp {
    Stamp::new(Seq(seq), Kind::Put)
}

/// Sorted distinct entries; few letters, so that keys share prefixes and repeat.
fn entries() -> impl Strategy<Value = Vec<Entry>> {
    let key = prop_oneof![
        prop::collection::vec(prop_oneof![Just(0u8), Just(1), Just(b'a'), Just(255)], 0..12),
        prop::collection::vec(any::<u8>(), 9..10),
        (0..50u64).prop_map(|n| format!("user{n:012}").into_bytes()),
    ];
    let seq = prop_oneof![0..4u64, 0..70_000u64, 0..=Seq::MAX.0];
    let kind = prop_oneof![Just(Kind::Put), Just(Kind::Delete)];
    let value = prop_oneof![Just(vec![7; 5]), prop::collection::vec(any::<u8>(), 0..40)];
    let entry =
        (key, seq, kind, value).prop_map(|(key, seq, kind, value)| (key, Stamp::new(Seq(seq), kind), value));
    prop::collection::vec(entry, 1..60).prop_map(|mut entries| {
        entries.sort_by(|a, b| entry_order((&a.0, a.1), (&b.0, b.1)));
        entries.dedup_by(|a, b| a.0 == b.0 && a.1.seq() == b.1.seq());
        entries
    })
}

proptest! {
    #![proptest_config(seeded(300))]

    #[test]
    fn entries_round_trip(entries in entries()) {
        let bytes = build(&entries);
        let block = Block::decode(bytes.clone()).unwrap();
        prop_assert_eq!(block.bytes(), &bytes[..]);
        prop_assert_eq!(block.len(), entries.len());
        prop_assert_eq!(block.check_order(), Ok(()));
        let mut key = b"leftover".to_vec();
        for (index, entry) in entries.iter().enumerate() {
            block.key_into(index, &mut key);
            prop_assert_eq!(&key, &entry.0);
            prop_assert_eq!(block.stamp(index), entry.1);
            prop_assert_eq!(block.value(index), &entry.2[..]);
            prop_assert_eq!(&bytes[block.value_span(index)], &entry.2[..]);
        }
    }

    #[test]
    fn seek_finds_what_a_scan_finds(entries in entries(), other: Vec<u8>, seq in 0..=Seq::MAX.0) {
        let block = Block::decode(build(&entries)).unwrap();
        let mut probes: Vec<(Vec<u8>, Stamp)> = vec![(vec![], Stamp::MAX), (vec![255; 20], put(0)), (other, put(seq))];
        for (key, stamp, _) in &entries {
            let longer = [key, &[0][..]].concat();
            let shorter = key[..key.len() / 2].to_vec();
            probes.extend([key, &longer, &shorter].map(|key| (key.clone(), Stamp::upto(Seq(seq)))));
            probes.push((key.clone(), *stamp));
            probes.push((key.clone(), Stamp::MAX));
        }
        for (key, stamp) in &probes {
            let expected = entries.iter().position(|e| entry_order((&e.0, e.1), (key, *stamp)) != Ordering::Less);
            prop_assert_eq!(block.seek(key, *stamp), expected.unwrap_or(entries.len()), "{:?} {:?}", key, stamp);
            for (index, e) in entries.iter().enumerate() {
                prop_assert_eq!(block.compare(index, key, *stamp), entry_order((&e.0, e.1), (key, *stamp)));
            }
        }
    }

    #[test]
    fn size_is_known_before_the_entry_is_added(entries in entries()) {
        let mut builder = BlockBuilder::new();
        for (index, (key, stamp, value)) in entries.iter().enumerate() {
            let exact = builder.size_with_stamp(key, *stamp, value.len());
            let bound = builder.size_with(key, value.len());
            prop_assert_eq!(exact, build(&entries[..=index]).len());
            prop_assert!(bound >= exact && bound <= exact + 9 * (index + 1));
            builder.add(key, *stamp, value);
            prop_assert_eq!(builder.first_key(), &entries[0].0[..]);
            prop_assert_eq!(builder.last_key(), &key[..]);
            prop_assert_eq!(builder.last_stamp(), *stamp);
        }
    }

    #[test]
    fn damage_never_panics(entries in entries(), at: usize, byte: u8) {
        let mut bytes = build(&entries);
        let at = at % bytes.len();
        bytes[at] = byte;
        walk(&bytes);
    }

    #[test]
    fn noise_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        walk(&bytes);
    }
}

/// Calls everything that must be total once `bytes` decode.
fn walk(bytes: &[u8]) {
    let Ok(block) = Block::decode(bytes.to_vec()) else { return };
    let mut key = Vec::new();
    for index in 0..block.len() {
        block.key_into(index, &mut key);
        let stamp = block.stamp(index);
        assert_eq!(block.value(index).len(), block.value_span(index).len());
        assert_eq!(block.compare(index, &key, stamp), Ordering::Equal);
        assert!(block.seek(&key, stamp) <= block.len());
    }
    let _ = block.check_order();
}

fn sample() -> Vec<Entry> {
    vec![
        (b"user:ann".to_vec(), put(9), b"1".to_vec()),
        (b"user:bo".to_vec(), put(300), b"two".to_vec()),
        (b"user:bo".to_vec(), Stamp::new(Seq(4), Kind::Delete), vec![]),
    ]
}

#[test]
fn variable_block_has_golden_bytes() {
    #[rustfmt::skip]
    let golden = [
        3, 0, 0, 0,  1 | 4 | 16,  2,  5, 0,  7, 0, 0, 0,  4, 0, 0, 0,  0, 4, 0, 0, 0, 0, 0, 0,
        b'u', b's', b'e', b'r', b':',
        3, 0, 5, 0, 7, 0,  b'a', b'n', b'n', b'b', b'o', b'b', b'o',
        5, 0, 40, 1, 0, 0,
        2, 2, 1,
        1, 0, 4, 0, 4, 0,  b'1', b't', b'w', b'o',
    ];
    assert_eq!(build(&sample()), golden);
}

#[test]
fn even_block_has_golden_bytes() {
    let entries = [(b"k1".to_vec(), put(7), b"aa".to_vec()), (b"k2".to_vec(), put(7), b"bb".to_vec())];
    #[rustfmt::skip]
    let golden = [
        2, 0, 0, 0,  0,  0,  1, 0,  1, 0, 0, 0,  2, 0, 0, 0,  2, 7, 0, 0, 0, 0, 0, 0,
        b'k',  b'1', b'2',  b'a', b'a', b'b', b'b',
    ];
    assert_eq!(build(&entries), golden);
}

#[test]
fn constant_sizes_cost_at_most_5_bytes_per_entry() {
    let mut builder = BlockBuilder::new();
    let mut seq = 1u64;
    let mut entries = 0;
    loop {
        let key = format!("{:016x}", entries as u64 * (u64::MAX / 64));
        if builder.size_with_stamp(key.as_bytes(), put(seq), 100) > 4096 {
            break;
        }
        builder.add(key.as_bytes(), put(seq), &[1; 100]);
        seq = seq.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1) & 0xffff_ffff;
        entries += 1;
    }
    let mut out = Vec::new();
    builder.finish(&mut out);
    let overhead = out.len() + 5 - entries * 116;
    assert!(overhead <= entries * 5, "{overhead} bytes of overhead for {entries} entries");
}

#[test]
fn builder_starts_again_after_finish() {
    let mut builder = BlockBuilder::new();
    let mut out = Vec::new();
    builder.finish(&mut out);
    assert!(out.is_empty());
    builder.add(b"zz", put(1), b"first");
    builder.finish(&mut out);
    let first = out.len();
    assert!(builder.is_empty());
    builder.add(b"a", put(Seq::MAX.0), b"");
    builder.finish(&mut out);
    assert_eq!(out[first..], build(&[(b"a".to_vec(), put(Seq::MAX.0), vec![])]));
}

#[test]
fn sections_above_64_kib_get_wide_ends() {
    let entries = [(vec![1; 40_000], put(1), vec![3; 70_000]), (vec![2; 40_001], put(2), vec![])];
    let bytes = build(&entries);
    assert_eq!(bytes[4], KEY_ENDS | KEY_ENDS_WIDE | VALUE_ENDS | VALUE_ENDS_WIDE);
    let block = Block::decode(bytes).unwrap();
    assert_eq!(block.value(0), &entries[0].2[..]);
    assert_eq!(block.suffix(1), &entries[1].0[..]);
    assert!(block.memory_bytes() > 150_000);
}

#[test]
fn truncations_are_refused() {
    refuses_truncations(&build(&sample()), |bytes| Block::decode(bytes.to_vec()));
}

#[test]
fn changed_bytes_never_panic() {
    each_change(&build(&sample()), |_, bytes| walk(bytes));
}

#[test]
fn disorder_is_found_by_check_order_alone() {
    let mut bytes = build(&[(b"a".to_vec(), put(1), vec![]), (b"b".to_vec(), put(1), vec![])]);
    bytes[BLOCK_HEADER_BYTES..].reverse();
    let block = Block::decode(bytes).unwrap();
    assert_eq!(block.check_order(), Err(Malformed::new(BLOCK_HEADER_BYTES + 1, "entries out of order")));
}

#[test]
fn impossible_headers_are_refused() {
    let good = build(&sample());
    let refused = |at: usize, bytes: &[u8]| {
        let mut bad = good.clone();
        bad[at..at + bytes.len()].copy_from_slice(bytes);
        Block::decode(bad).unwrap_err().what
    };
    assert_eq!(refused(0, &[0; 4]), "impossible count of entries");
    assert_eq!(refused(0, &[255; 4]), "impossible count of entries");
    assert_eq!(refused(4, &[32]), "unknown block flags");
    assert_eq!(refused(4, &[2]), "unknown block flags");
    assert_eq!(refused(5, &[3]), "impossible width of sequence deltas");
    assert_eq!(refused(8, &[255; 4]), "section beyond the end of the block");
    assert_eq!(refused(16, &[1]), "two kinds for one entry");
    assert_eq!(refused(16, &[0, 255, 255, 255, 255, 255, 255, 255]), "sequence number out of range");
    assert_eq!(refused(29, &[9, 0]), "ends run backwards");
    assert_eq!(refused(33, &[6, 0]), "last end is not the end of the section");
    assert_eq!(refused(48, &[4]), "unknown kind of entry");
}

#[test]
fn key_above_the_limit_is_refused() {
    let longest = vec![7; crate::types::KEY_BYTES_MAX];
    let mut bytes = build(&[(longest.clone(), put(1), vec![])]);
    assert_eq!(Block::decode(bytes.clone()).unwrap().prefix(), longest);
    bytes[8] = 1;
    bytes.push(7);
    assert_eq!(Block::decode(bytes).err(), Some(Malformed::new(8, "key too long")));
}

#[test]
fn a_block_of_one_entry_is_its_head_and_its_value() {
    for (key, value) in [(&b"key"[..], &b"value"[..]), (b"", b"v"), (&[7; 300], &[9; 70_000])] {
        let stamp = Stamp::new(Seq(77), Kind::Put);
        let (mut builder, mut whole, mut head) = (BlockBuilder::new(), b"lead".to_vec(), b"lead".to_vec());
        builder.add(key, stamp, value);
        builder.finish(&mut whole);
        put_head_of_single(&mut head, key, stamp, value.len());
        assert_eq!([&head, value].concat(), whole);
    }
}
