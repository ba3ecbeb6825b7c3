//! Tests of memtables against sorted maps, by one thread and by many.

use super::{ChunkPool, Memtable, MemtableCursor, PinnedValue};
use crate::env::huge_pages::HUGE_PAGE_BYTES;
use crate::format::batch::Action;
use crate::format::filter::hash;
use crate::merge::{Cursor, PinValue};
use crate::types::pages::refusal;
use crate::types::{KEY_BYTES_MAX, Kind, Seq, Stamp};
use crossbeam_skiplist::SkipMap;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::sync::{Arc, Barrier};

const CHUNK: usize = 64 << 10;

/// Miri takes a thousand times as long.
const fn under_miri(few: u64, many: u64) -> u64 {
    if cfg!(miri) { few } else { many }
}

type Place = (Vec<u8>, Reverse<Stamp>);
type Model = BTreeMap<Place, Vec<u8>>;

fn fresh(first_chunk_bytes: usize) -> Memtable {
    Memtable::new(first_chunk_bytes, &Arc::new(ChunkPool::new(0)), b"")
}

fn put(seq: u64) -> Stamp {
    Stamp::new(Seq(seq), Kind::Put)
}

fn place(key: &[u8], stamp: Stamp) -> Place {
    (key.to_vec(), Reverse(stamp))
}

/// A small generator with a fixed seed: SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

fn at(cursor: &MemtableCursor) -> Option<(Place, Vec<u8>)> {
    cursor.valid().then(|| (place(cursor.key(), cursor.stamp()), cursor.value().to_vec()))
}

fn owned(entry: Option<(&Place, &Vec<u8>)>) -> Option<(Place, Vec<u8>)> {
    entry.map(|(place, value)| (place.clone(), value.clone()))
}

fn assert_same(memtable: &Memtable, model: &Model) {
    let mut cursor = memtable.cursor();
    assert!(!cursor.valid());
    cursor.seek_first().unwrap();
    for (place, value) in model {
        assert_eq!(at(&cursor), Some((place.clone(), value.clone())));
        cursor.next().unwrap();
    }
    assert!(!cursor.valid());
    cursor.seek_last().unwrap();
    for (place, value) in model.iter().rev() {
        assert_eq!(at(&cursor), Some((place.clone(), value.clone())));
        cursor.prev().unwrap();
    }
    assert!(!cursor.valid());
    assert_eq!(memtable.entries(), model.len() as u64);
    assert_eq!(memtable.is_empty(), model.is_empty());
    assert_eq!(memtable.min_seq(), model.keys().map(|(_, stamp)| stamp.0.seq()).min());
}

fn get(memtable: &Memtable, key: &[u8], upto: Seq) -> Option<(Stamp, PinnedValue)> {
    memtable.get(key, hash(key), upto)
}

fn assert_same_at(memtable: &Memtable, model: &Model, key: &[u8], seq: Seq) {
    let target = place(key, Stamp::upto(seq));
    let mut cursor = memtable.cursor();
    cursor.seek(key, Stamp::upto(seq)).unwrap();
    let behind = owned(model.range((Included(&target), Unbounded)).next());
    assert_eq!(at(&cursor), behind);
    cursor.seek_before(key, Stamp::upto(seq)).unwrap();
    assert_eq!(at(&cursor), owned(model.range((Unbounded, Excluded(&target))).next_back()));

    let newest = behind.filter(|(place, _)| place.0 == key);
    let found = memtable.find(key, seq).map(|(stamp, value)| (place(key, stamp), value.to_vec()));
    assert_eq!(found, newest);
    let pinned = get(memtable, key, seq).map(|(stamp, value)| (stamp, value.to_vec()));
    assert_eq!(pinned, newest.map(|(place, value)| (place.1.0, value)));
}

fn key_strategy() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(prop_oneof![Just(0), Just(1), Just(0xff)], 0..4),
        prop::collection::vec(0..2u8, 6..11),
        prop::collection::vec(any::<u8>(), 0..20),
    ]
}

fn config() -> ProptestConfig {
    ProptestConfig {
        cases: under_miri(4, 128) as u32,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(1),
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_history_reads_as_in_a_sorted_map(
        entries in prop::collection::vec((key_strategy(), any::<bool>(), 0..300usize), 0..200),
        shuffle in any::<u64>(),
        probes in prop::collection::vec((key_strategy(), 0..220u64), 50),
    ) {
        let memtable = fresh(0);
        let mut model = Model::new();
        let mut history: Vec<_> = entries.iter().zip(1..).collect();
        history.sort_by_key(|(_, seq)| Random(shuffle ^ seq).next());
        for ((key, deletes, value_len), seq) in history {
            let kind = if *deletes { Kind::Delete } else { Kind::Put };
            let value = if *deletes { Vec::new() } else { vec![seq as u8; *value_len] };
            memtable.insert(key, Stamp::new(Seq(seq), kind), &value);
            model.insert(place(key, Stamp::new(Seq(seq), kind)), value);
        }
        assert_same(&memtable, &model);
        let entry_places = entries.iter().zip(1..).map(|((key, ..), seq)| (key, seq));
        for (key, seq) in probes.iter().map(|(key, seq)| (key, *seq)).chain(entry_places) {
            assert_same_at(&memtable, &model, key, Seq(seq));
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "the other list is not sound by stacked borrows")]
fn many_entries_agree_with_another_skip_list() {
    let memtable = fresh(CHUNK);
    let oracle = SkipMap::new();
    let mut random = Random(7);
    for seq in 1..=20_000 {
        let key = random.below(5_000).to_string().into_bytes();
        let value = vec![seq as u8; random.below(200) as usize];
        memtable.insert(&key, put(seq), &value);
        oracle.insert(place(&key, put(seq)), value);
    }
    let mut cursor = memtable.cursor();
    cursor.seek_first().unwrap();
    for entry in &oracle {
        assert_eq!(at(&cursor), Some((entry.key().clone(), entry.value().clone())));
        cursor.next().unwrap();
    }
    assert!(!cursor.valid());
    for _ in 0..5_000 {
        let key = random.below(6_000).to_string().into_bytes();
        let upto = Seq(random.below(21_000));
        let newest =
            oracle.lower_bound(Included(&place(&key, Stamp::upto(upto)))).filter(|e| e.key().0 == key);
        let expected = newest.map(|entry| (entry.key().1.0, entry.value().clone()));
        assert_eq!(memtable.find(&key, upto).map(|(stamp, value)| (stamp, value.to_vec())), expected);
    }
}

#[test]
fn every_version_of_a_hot_key_is_found_at_its_own_sequence_number() {
    let memtable = fresh(CHUNK);
    let newest = under_miri(100, 4_000);
    for seq in (1..=newest / 2).rev().map(|half| 2 * half) {
        memtable.insert(b"hot", put(seq), &seq.to_le_bytes());
    }
    memtable.insert(b"hos", put(5_001), b"before");
    memtable.insert(b"hot\0", put(5_002), b"behind");
    assert!(get(&memtable, b"hot", Seq(1)).is_none());
    for seq in 2..=newest + 1 {
        let (stamp, value) = get(&memtable, b"hot", Seq(seq)).unwrap();
        assert_eq!((stamp, &*value), (put(seq & !1), &(seq & !1).to_le_bytes()[..]));
    }
}

#[test]
#[cfg_attr(miri, ignore = "40 MiB")]
fn large_keys_and_values_are_kept_whole() {
    let memtable = fresh(CHUNK);
    let big_key = vec![0xab; KEY_BYTES_MAX];
    let big_value: Vec<u8> = (0..40 << 20).map(|i: u32| (i >> 3) as u8).collect();
    memtable.insert(&big_key, put(1), b"small");
    memtable.insert(b"small", put(2), &big_value);
    memtable.insert(&big_key, put(3), &big_value[..3 << 20]);
    memtable.insert(b"", put(4), b"");
    assert_eq!(&*get(&memtable, &big_key, Seq(2)).unwrap().1, b"small");
    assert!(*get(&memtable, &big_key, Seq(3)).unwrap().1 == big_value[..3 << 20]);
    assert!(*get(&memtable, b"small", Seq::MAX).unwrap().1 == big_value);
    assert_eq!(&*get(&memtable, b"", Seq::MAX).unwrap().1, b"");
    let payload = (43 << 20) + 2 * KEY_BYTES_MAX as u64;
    assert!((payload..payload + 8 * 1024).contains(&memtable.bytes()), "{} bytes", memtable.bytes());
}

#[test]
fn large_values_are_kept_though_the_kernel_refuses_mappings() {
    let memtable = fresh(CHUNK);
    let value = |with: u8| vec![with; 3 << 20];
    refusal::during(|| memtable.insert(b"refused", put(1), &value(1)));
    memtable.insert(b"granted", put(2), &value(2));
    refusal::during(|| memtable.insert(b"refused again", put(3), &value(3)));
    for (key, with) in [(&b"refused"[..], 1), (b"granted", 2), (b"refused again", 3)] {
        assert!(*get(&memtable, key, Seq::MAX).unwrap().1 == value(with));
    }
}

#[test]
#[should_panic(expected = "entry exceeds the limits")]
fn a_key_beyond_the_limit_is_refused() {
    fresh(CHUNK).insert(&vec![0; KEY_BYTES_MAX + 1], put(1), b"");
}

#[test]
fn memory_is_accounted_as_entries_come() {
    let memtable = fresh(CHUNK);
    assert_eq!(memtable.bytes(), 0);
    let mut before = 0;
    let entries = under_miri(500, 50_000);
    for seq in 1..=entries {
        memtable.insert(&seq.to_le_bytes(), put(seq), &[1; 100]);
        let now = memtable.bytes();
        // A node of 24 bytes, at least one link, and what a full chunk loses at its end.
        assert!((24 + 16 + 108..1024).contains(&(now - before)), "{before} -> {now} at {seq}");
        before = now;
    }
    let per_entry = before as f64 / entries as f64;
    assert!((160.0..170.0).contains(&per_entry), "{per_entry} bytes per entry");
}

#[test]
fn a_pinned_value_and_a_cursor_outlive_the_memtable() {
    let memtable = fresh(CHUNK);
    memtable.insert(b"key", put(1), b"value");
    let pinned = get(&memtable, b"key", Seq::MAX).unwrap().1;
    let mut cursor = memtable.cursor();
    cursor.seek_first().unwrap();
    let from_cursor = cursor.pin_value();
    drop(memtable);
    assert_eq!((cursor.key(), cursor.value()), (&b"key"[..], &b"value"[..]));
    drop(cursor);
    assert_eq!((&*pinned, &*pinned.clone()), (&b"value"[..], &b"value"[..]));
    drop(pinned);
    assert_eq!(&*from_cursor, b"value");
}

const WRITERS: u64 = 4;
const PER_WRITER: u64 = under_miri(50, 10_000);

/// Keys of all writers interleave; the value repeats the key.
fn write_share(memtable: &Memtable, writer: u64) {
    let mut random = Random(writer);
    for i in 0..PER_WRITER {
        let seq = 1 + i * WRITERS + writer;
        let key = random.below(20_000).to_string();
        let kind = if seq.is_multiple_of(11) { Kind::Delete } else { Kind::Put };
        memtable.insert(key.as_bytes(), Stamp::new(Seq(seq), kind), key.as_bytes());
        let (found, value) = memtable.find(key.as_bytes(), Seq(seq)).unwrap();
        assert_eq!((found.seq(), value), (Seq(seq), key.as_bytes()), "a writer reads its own write");
    }
}

/// Walks both ways until all writers are done, checking order and contents.
fn read_while_written(memtable: &Memtable) {
    let mut cursor = memtable.cursor();
    let mut seen = 0;
    while seen < WRITERS * PER_WRITER {
        let before = seen;
        seen = 0;
        let mut last: Option<Place> = None;
        cursor.seek_first().unwrap();
        while cursor.valid() {
            let here = place(cursor.key(), cursor.stamp());
            assert!(last.is_none_or(|last| last < here), "out of order at {here:?}");
            assert_eq!(cursor.key(), cursor.value());
            last = Some(here);
            seen += 1;
            cursor.next().unwrap();
        }
        assert!(before <= seen, "entries were lost");
        cursor.seek_last().unwrap();
        for _ in 0..100 {
            if !cursor.valid() {
                break;
            }
            let here = place(cursor.key(), cursor.stamp());
            cursor.prev().unwrap();
            assert!(!cursor.valid() || place(cursor.key(), cursor.stamp()) < here);
        }
    }
}

#[test]
fn concurrent_writers_lose_nothing_and_readers_see_order() {
    let memtable = fresh(0);
    let start = Barrier::new(WRITERS as usize + 2);
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (memtable, start) = (&memtable, &start);
            scope.spawn(move || {
                start.wait();
                write_share(memtable, writer);
            });
        }
        for _ in 0..2 {
            scope.spawn(|| {
                start.wait();
                read_while_written(&memtable);
            });
        }
    });
    let mut model = Model::new();
    for writer in 0..WRITERS {
        let alone = fresh(CHUNK);
        write_share(&alone, writer);
        let mut cursor = alone.cursor();
        cursor.seek_first().unwrap();
        while let Some((place, value)) = at(&cursor) {
            model.insert(place, value);
            cursor.next().unwrap();
        }
    }
    assert_eq!(model.len() as u64, WRITERS * PER_WRITER);
    assert_same(&memtable, &model);
}

#[test]
fn memory_is_used_again_up_to_the_bound_of_its_pool() {
    let (entries, value_len) = (under_miri(90, 6000), under_miri(60_000, 900) as usize);
    // Large values have no place in small chunks.
    let chunk = under_miri(HUGE_PAGE_BYTES as u64, CHUNK as u64) as usize;
    for kept in [0, 1, 3, 100] {
        let pool = Arc::new(ChunkPool::new(kept * HUGE_PAGE_BYTES as u64));
        let first = Memtable::new(chunk, &pool, b"");
        let fill = |memtable: &Memtable, byte: u8| {
            for i in 1..=entries {
                memtable.insert(&u64::to_be_bytes(i), put(i), &vec![byte; value_len]);
            }
        };
        fill(&first, 1);
        let pinned = get(&first, &u64::to_be_bytes(entries), Seq::MAX).map(|(_, value)| value);
        drop(first);
        // The pinned value's memory is not the pool's yet.
        let second = Memtable::new(chunk, &pool, b"");
        fill(&second, 2);
        assert_eq!(pinned.as_deref(), Some(&vec![1; value_len][..]));
        drop((pinned, second));
        let third = Memtable::new(chunk, &pool, b"");
        fill(&third, 3);
        let value = vec![3; value_len];
        assert!(
            (1..=entries).all(|i| third.find(&u64::to_be_bytes(i), Seq::MAX) == Some((put(i), &value[..])))
        );
        drop(third);
        assert!(pool.kept() <= kept as usize && (kept == 0) == (pool.kept() == 0), "{kept}");
    }
}

#[test]
fn range_tombstones_count_and_stand_apart_from_the_entries() {
    let memtable = fresh(CHUNK);
    assert_eq!((memtable.newest_over(b"b", Seq::MAX), memtable.range_tombstones()), (None, Vec::new()));
    let bytes = memtable.bytes();
    memtable.apply(Seq(7), &Action::DeleteRange { start: b"a", end: b"c" });
    assert!(!memtable.is_empty() && memtable.bytes() > bytes);
    assert_eq!((memtable.entries(), memtable.min_seq()), (1, Some(Seq(7))));
    memtable.apply(Seq(8), &Action::Put { key: b"b", value: b"value" });
    memtable.apply(Seq(9), &Action::DeleteRange { start: b"b", end: b"" });
    assert_eq!(get(&memtable, b"b", Seq::MAX).unwrap().0, put(8));
    let over = |key: &[u8], upto| memtable.newest_over(key, Seq(upto));
    assert_eq!((over(b"b", 6), over(b"b", 8), over(b"b", 9)), (None, Some(Seq(7)), Some(Seq(9))));
    assert_eq!((over(b"a", 9), over(b"z", 9), over(b"", 9)), (Some(Seq(7)), Some(Seq(9)), None));
    assert_eq!(memtable.visible_range_tombstones(Seq(8)).len(), 1);
    let mut cursor = memtable.cursor();
    cursor.seek_first().unwrap();
    assert_eq!(cursor.stamp(), put(8));
}

#[test]
fn keys_are_in_order_whatever_prefix_is_expected_of_them() {
    let parts: [&[u8]; 6] = [b"", b"a", b"b", b"user1", b"\0", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff"];
    let twos = parts.iter().flat_map(|front| parts.iter().map(|back| [*front, *back].concat()));
    let keys: BTreeSet<Vec<u8>> = twos.collect();
    for prefix in keys.iter().step_by(under_miri(12, 1) as usize) {
        let memtable = Memtable::new(CHUNK, &Arc::new(ChunkPool::new(0)), prefix);
        let mut model = Model::new();
        let mut random = Random(1);
        for seq in 0..4 * keys.len() as u64 {
            let key = keys.iter().nth(random.below(keys.len() as u64) as usize).unwrap();
            memtable.insert(key, put(seq), &seq.to_le_bytes());
            model.insert(place(key, put(seq)), seq.to_le_bytes().to_vec());
        }
        assert_same(&memtable, &model);
        let ends = model.keys().next().zip(model.keys().next_back()).unwrap();
        assert_eq!(memtable.ends(), Some((&*ends.0.0, &*ends.1.0)));
    }
}

#[test]
#[cfg_attr(miri, ignore = "20 MiB")]
fn the_pool_makes_room_for_what_is_large() {
    let pool = Arc::new(ChunkPool::new(8 << 20));
    let memtable = Memtable::new(CHUNK, &pool, b"");
    (0..12 << 10).for_each(|n: u64| memtable.insert(&n.to_le_bytes(), put(n), &[7; 1000]));
    drop(memtable);
    assert_eq!(pool.kept(), 4);
    let memtable = Memtable::new(CHUNK, &pool, b"");
    memtable.insert(b"large", put(1), &vec![7; 3 << 20]);
    assert_eq!(pool.kept(), 2);
    memtable.insert(b"larger", put(2), &vec![7; 30 << 20]);
    assert_eq!(pool.kept(), 0);
}
