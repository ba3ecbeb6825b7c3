//! Tests of tables: written and read back, in both directions, copied, cached and damaged.

mod partitions;
mod pinned;
mod pointers;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::{Fetch, TableBuilder, TableCursor, TableReader, TableSettings, TablesCursor, copy_table};
use crate::catalog::{Lease, TableMeta};
use crate::env::simulated::{SimConfig, SimEnv};
use crate::env::{Access, Env};
use crate::error::{ErrorKind, Result};
use crate::format::edit::TableRecord;
use crate::format::filter;
use crate::format::table::Codec;
use crate::merge::Cursor;
use crate::store::cache::{Span, TableCache, Unit};
use crate::store::files::device::Device;
use crate::store::files::devices::Devices;
use crate::store::files::meter::{Meter, ReadCause, WriteCause};
use crate::store::files::pack::PackStore;
use crate::types::{
    DeviceId, Epoch, Extent, KeyRange, KeyspaceId, Kind, PAGE_BYTES, PackId, RangeTombstone, Seq, Stamp,
    TableId, UpperBound,
};

/// Entries in order: (key, stamp) descending in stamp, and the value.
type Entries = Vec<(Vec<u8>, Stamp, Vec<u8>)>;

struct Fixture {
    env: Arc<SimEnv>,
    meter: Arc<Meter>,
    cache: Arc<TableCache>,
}

impl Fixture {
    fn new() -> Self {
        Self::with_cache(1 << 20)
    }

    fn with_cache(bytes: u64) -> Self {
        let env = SimEnv::new(SimConfig::default());
        let dir = Path::new("/db");
        env.create_dir(dir).unwrap();
        let meter = Arc::new(Meter::default());
        let device = Arc::new(Device::new(env.clone(), dir.into(), meter.clone()));
        let packs = Arc::new(PackStore::new(Arc::new(Devices::alone(device)), Default::default(), false));
        Self { env, meter, cache: Arc::new(TableCache::new(packs, bytes, 4096)) }
    }

    /// Writes each list of entries as a table of one pack.
    fn write(&self, lists: &[Entries], settings: TableSettings) -> Vec<Arc<TableMeta>> {
        let mut pack = self.cache.packs().create(PackId(1), DeviceId(0), WriteCause::Flush, 0).unwrap();
        let mut tables = Vec::new();
        for (entries, id) in lists.iter().zip(1..) {
            let mut table = TableBuilder::new(settings.clone(), TableId(id), &mut pack);
            for (key, stamp, value) in entries {
                table.add(key, *stamp, value, &mut pack).unwrap();
            }
            tables.push(Arc::new(TableMeta::new(&table.finish(&mut pack).unwrap(), Lease::none())));
        }
        pack.seal().unwrap();
        tables
    }

    /// Changes a bit at `at` of the first pack.
    fn damage(&self, at: u64) {
        let path = Path::new("/db/000001.pack");
        let byte = self.env.read_file(path).unwrap()[at as usize];
        self.env.overwrite(path, at, &[byte ^ 1]).unwrap();
    }

    fn cursor(&self, table: &TableMeta, fetch: Fetch) -> TableCursor {
        TableCursor::new(self.cache.clone(), self.cache.table_arc(table).unwrap(), fetch)
    }
}

fn settings(codec: Codec) -> TableSettings {
    TableSettings {
        keyspace: KeyspaceId(1),
        level: 0,
        epoch: Epoch(1),
        block_bytes: 512,
        partitioned_bytes_min: u64::MAX,
        filter_bits: 10,
        prefix: None,
        codec,
        ttl: None,
        separate_from: None,
        name: "rows".into(),
    }
}

/// The same with index and filter in partitions.
fn partitioned(codec: Codec) -> TableSettings {
    TableSettings { partitioned_bytes_min: 0, ..settings(codec) }
}

/// Keys with one to three versions, values of uneven length, some tombstones.
fn entries(from: u32, to: u32) -> Entries {
    let mut entries = Entries::new();
    for n in from..to {
        for version in (0..=n % 3).rev() {
            let kind = if (n + version) % 5 == 0 { Kind::Delete } else { Kind::Put };
            let value = if kind == Kind::Put { vec![n as u8; (n % 40) as usize] } else { Vec::new() };
            let stamp = Stamp::new(Seq(u64::from(n * 10 + version + 1)), kind);
            entries.push((format!("key{n:05}").into_bytes(), stamp, value));
        }
    }
    entries
}

/// Records of a kilobyte and more, most of which can be packed.
fn large_entries(count: u32) -> Entries {
    let noise =
        |n: u32| (0..128u32).flat_map(move |i| filter::hash(&(n << 8 | i).to_le_bytes()).to_le_bytes());
    let value =
        |n: u32| noise(n).take(if n.is_multiple_of(10) { 1024 } else { 600 }).chain([n as u8; 400]).collect();
    (0..count)
        .map(|n| (format!("key{n:05}").into_bytes(), Stamp::new(Seq(u64::from(n) + 1), Kind::Put), value(n)))
        .collect()
}

/// The block in which `key` is looked for first.
fn sought(reader: &TableReader, key: &[u8]) -> usize {
    reader.block_for(key, Stamp::MAX)
}

fn current(cursor: &impl Cursor) -> Option<(Vec<u8>, Stamp, Vec<u8>)> {
    cursor.valid().then(|| (cursor.key().to_vec(), cursor.stamp(), cursor.value().to_vec()))
}

#[test]
fn a_value_of_megabytes_is_written_from_where_it_lies() {
    let fixture = Fixture::new();
    let mut pack = fixture.cache.packs().create(PackId(1), DeviceId(0), WriteCause::Flush, 0).unwrap();
    let mut table = TableBuilder::new(settings(Codec::Raw), TableId(1), &mut pack);
    let mut written = entries(0, 20);
    let large: Vec<u8> = (0..1_300_001_u32).flat_map(u32::to_le_bytes).collect();
    written
        .extend((1..4).rev().map(|seq| (b"large".to_vec(), Stamp::new(Seq(seq), Kind::Put), large.clone())));
    written.push((b"small".to_vec(), Stamp::new(Seq(9), Kind::Put), b"behind".to_vec()));
    for (key, stamp, value) in &written {
        table.add(key, *stamp, value, &mut pack).unwrap();
        let kept = pack.buffer().capacity();
        assert!(kept < large.len() / 2, "{kept} bytes are kept");
    }
    let record = table.finish(&mut pack).unwrap();
    pack.seal().unwrap();
    let table = TableMeta::new(&record, Lease::none());
    let mut cursor = fixture.cursor(&table, Fetch::Readahead);
    cursor.seek_first().unwrap();
    for entry in &written {
        assert!(current(&cursor).as_ref() == Some(entry), "{:?}", entry.1);
        cursor.next().unwrap();
    }
    assert!(!cursor.valid());
}

/// Copies `table` to the pack with number `pack`, behind something else.
fn copied(fixture: &Fixture, table: &TableMeta, pack: u64) -> Result<TableMeta> {
    let packs = fixture.cache.packs();
    let mut pack = packs.create(PackId(pack), DeviceId(0), WriteCause::Rewrite, 0)?;
    pack.buffer().extend_from_slice(&[7; 100]);
    let extent = copy_table(&*packs.file(table.extent.pack)?, table, &mut pack, |_| {})?;
    pack.seal()?;
    Ok(TableMeta::new(&TableRecord { extent, ..table.record() }, Lease::none()))
}

#[test]
fn a_copied_table_is_the_same_and_damage_is_not_carried_on() {
    for settings in [settings(Codec::Raw), settings(Codec::Lz4), partitioned(Codec::Raw)] {
        let fixture = Fixture::new();
        let mut written = entries(0, 200);
        let huge = (0..3_000_000u32).map(|n| filter::hash(&n.to_le_bytes()) as u8).collect();
        written.push((b"z".to_vec(), Stamp::new(Seq(9), Kind::Put), huge));
        let tables = fixture.write(&[written.clone(), entries(0, 300)], settings);
        let mut packs = 1;
        for table in &tables {
            let mut refused = 0;
            packs += 1;
            let copy = copied(&fixture, table, packs).unwrap();
            let bytes = |extent: Extent| {
                let file =
                    fixture.env.read_file(&Path::new("/db").join(format!("{:06}.pack", extent.pack.0)));
                file.unwrap()[extent.offset as usize..extent.end() as usize].to_vec()
            };
            assert_eq!((copy.id, copy.extent.offset), (table.id, PAGE_BYTES));
            assert!(bytes(copy.extent) == bytes(table.extent));
            let mut cursor = fixture.cursor(&copy, Fetch::Readahead);
            cursor.seek_first().unwrap();
            assert_eq!(current(&cursor), Some(written[0].clone()));

            let file = fixture.env.open(Path::new("/db/000001.pack"), Access::ReadWrite).unwrap();
            let Extent { offset, length, .. } = table.extent;
            let around =
                [0, 1].into_iter().chain((1..40).map(|n| length * n / 40)).chain(length - 700..length);
            for at in around.map(|at| offset + at) {
                let mut byte = [0];
                file.read_at(at, &mut byte).unwrap();
                file.write_at(at, &[byte[0] ^ 4]).unwrap();
                packs += 1;
                match copied(&fixture, table, packs) {
                    // Between the blocks of two pages.
                    Ok(_) => assert_eq!(byte, [0], "{at} is not guarded"),
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Corruption, "{error} for {at}");
                        assert!(error.file().is_some_and(|file| file.ends_with("000001.pack")));
                        let found = error.offset().unwrap();
                        assert!((offset..=table.extent.end()).contains(&found), "{error} for {at}");
                        refused += 1;
                    }
                }
                file.write_at(at, &byte).unwrap();
            }
            assert!(refused > 700, "{refused} of 741");
        }
    }
}

/// Both are in use as long as somebody reads the old one.
#[test]
fn a_table_and_its_copy_are_open_beside_each_other() {
    let fixture = Fixture::new();
    let lists: Vec<_> = (0..60).map(|n| entries(n * 2000, (n + 1) * 2000)).collect();
    let tables = fixture.write(&lists, settings(Codec::Raw));
    tables.iter().for_each(|table| drop(fixture.cache.table_arc(table).unwrap()));
    // The first ones have the share of attached tables; the last one competes with the blocks.
    let table = tables.last().unwrap();
    let copy = copied(&fixture, table, 2).unwrap();
    for _ in 0..3 {
        for meta in [&**table, &copy] {
            let open = fixture.cache.table_arc(meta).unwrap();
            assert_eq!(open.extent(), meta.extent);
            assert!(meta.attachment.get::<TableReader>().is_none());
            assert!(Arc::ptr_eq(&open, &fixture.cache.table_arc(meta).unwrap()), "it is not kept at all");
        }
    }
}

#[test]
fn tables_read_back_in_both_directions_from_cache_and_ahead_of_it() {
    for codec in [Codec::Raw, Codec::Lz4] {
        for written in [entries(0, 700), large_entries(300)] {
            walks_back_and_forth(&written, settings(codec));
            walks_back_and_forth(&written, partitioned(codec));
        }
    }
}

fn walks_back_and_forth(written: &Entries, settings: TableSettings) {
    let fixture = Fixture::new();
    let table = fixture.write(std::slice::from_ref(written), settings).remove(0);
    assert_eq!(table.entries, written.len() as u64);
    assert_eq!(table.extent.offset % PAGE_BYTES, 0);
    for fetch in [Fetch::cached(&fixture.cache, &table, Unit::Span), Fetch::Readahead] {
        let mut cursor = fixture.cursor(&table, fetch);
        let mut found = Entries::new();
        cursor.seek_first().unwrap();
        while let Some(entry) = current(&cursor) {
            found.push(entry);
            cursor.next().unwrap();
        }
        assert_eq!(&found, written);
        found.clear();
        cursor.seek_last().unwrap();
        while let Some(entry) = current(&cursor) {
            found.push(entry);
            cursor.prev().unwrap();
        }
        found.reverse();
        assert_eq!(&found, written);
    }
}

#[test]
fn seeks_find_the_neighbours_of_every_position() {
    seeks_find_neighbours(settings(Codec::Raw));
    seeks_find_neighbours(TableSettings { block_bytes: 64, ..partitioned(Codec::Raw) });
}

fn seeks_find_neighbours(settings: TableSettings) {
    let fixture = Fixture::new();
    let lists = [entries(10, 60), entries(100, 101), entries(200, 300)];
    let tables = fixture.write(&lists, settings);
    let all: BTreeMap<(Vec<u8>, std::cmp::Reverse<Stamp>), Vec<u8>> = lists
        .iter()
        .flatten()
        .map(|(key, stamp, value)| ((key.clone(), std::cmp::Reverse(*stamp)), value.clone()))
        .collect();
    let mut cursor = TablesCursor::cached(fixture.cache.clone(), tables.clone(), Unit::Span);
    let mut waiting = TablesCursor::cached(fixture.cache.clone(), tables, Unit::Span).waiting();
    for n in 0..310 {
        for (suffix, stamp) in [("", Stamp::MAX), ("", Stamp::upto(Seq(n * 10 + 2))), ("x", Stamp::MAX)] {
            let key = format!("key{n:05}{suffix}").into_bytes();
            let target = (key.clone(), std::cmp::Reverse(stamp));
            let unpack = |(key, value): (&(Vec<u8>, std::cmp::Reverse<Stamp>), &Vec<u8>)| {
                (key.0.clone(), key.1.0, value.clone())
            };
            cursor.seek(&key, stamp).unwrap();
            assert_eq!(
                current(&cursor),
                all.range(target.clone()..).next().map(unpack),
                "{n}{suffix} {stamp:?}"
            );
            waiting.seek(&key, stamp).unwrap();
            if waiting.waits() {
                assert!(waiting.key() > &key[..] && waiting.key() <= cursor.key());
                assert_eq!(waiting.stamp(), Stamp::MAX);
                waiting.next().unwrap();
            }
            assert_eq!(current(&waiting), current(&cursor), "{n}{suffix} {stamp:?}");
            cursor.seek_before(&key, stamp).unwrap();
            assert_eq!(
                current(&cursor),
                all.range(..target).next_back().map(unpack),
                "{n}{suffix} {stamp:?}"
            );
        }
    }
}

#[test]
fn a_cursor_that_waits_between_tables_has_read_nothing() {
    let fixture = Fixture::new();
    let tables = fixture.write(&[entries(10, 60), entries(200, 300)], settings(Codec::Raw));
    let mut cursor = TablesCursor::cached(fixture.cache.clone(), tables, Unit::Span).waiting();
    let read = || fixture.cache.counts().misses;
    cursor.seek(b"key00100", Stamp::MAX).unwrap();
    assert_eq!((cursor.valid(), cursor.waits(), cursor.key(), read()), (true, true, &b"key00200"[..], 0));
    cursor.prev().unwrap();
    assert_eq!((cursor.waits(), cursor.key(), read()), (false, &b"key00059"[..], 2));
    cursor.seek(b"key00150", Stamp::MAX).unwrap();
    assert!(cursor.waits());
    cursor.next().unwrap();
    assert_eq!((cursor.waits(), cursor.key(), read()), (false, &b"key00200"[..], 2));
    // An open table has its first entry at hand; behind the last one there is nothing to wait for.
    cursor.seek(b"key00150", Stamp::MAX).unwrap();
    assert_eq!((cursor.waits(), cursor.key()), (false, &b"key00200"[..]));
    cursor.seek(b"key00400", Stamp::MAX).unwrap();
    assert_eq!((cursor.waits(), cursor.valid()), (false, false));
}

#[test]
fn a_long_walk_reads_in_pieces_past_the_cache() {
    let fixture = Fixture::new();
    let table = fixture.write(&[entries(0, 20_000)], settings(Codec::Raw)).remove(0);
    let reader = fixture.cache.table_arc(&table).unwrap();
    let before = fixture.cache.counts();
    let mut cursor = fixture.cursor(&table, Fetch::cached(&fixture.cache, &table, Unit::Span));
    cursor.seek_first().unwrap();
    while cursor.valid() {
        cursor.next().unwrap();
    }
    let after = fixture.cache.counts();
    assert!(reader.blocks() > 1000, "{} blocks are no long walk", reader.blocks());
    assert!(after.misses - before.misses < 20, "{} reads for {} blocks", after.misses, reader.blocks());
    assert!(after.bytes - before.bytes < 4096, "{} bytes more in the cache", after.bytes - before.bytes);
}

#[test]
fn a_long_walk_over_large_records_keeps_them_if_all_there_is_would_fit() {
    for (unit, fits) in [(Unit::Block, true), (Unit::Span, true), (Unit::Block, false), (Unit::Span, false)] {
        let fixture = Fixture::new();
        let table = fixture.write(&[large_entries(300)], settings(Codec::Raw)).remove(0);
        fixture.cache.expect(if fits { table.extent.length } else { 1 << 30 });
        let walk = || {
            let before = fixture.meter.bytes_read(ReadCause::Scan);
            let mut cursor = fixture.cursor(&table, Fetch::cached(&fixture.cache, &table, unit));
            cursor.seek_first().unwrap();
            while cursor.valid() {
                cursor.next().unwrap();
            }
            fixture.meter.bytes_read(ReadCause::Scan) - before
        };
        let (first, second) = (walk(), walk());
        assert!(first > 300 * 600, "{first} bytes are not all of it");
        assert!(if fits { second == 0 } else { second > first / 2 }, "{unit:?} {fits}: {first} {second}");
    }
}

#[test]
fn a_short_walk_over_large_records_keeps_spans_that_lookups_find() {
    for codec in [Codec::Raw, Codec::Lz4] {
        let fixture = Fixture::new();
        let table = fixture.write(&[large_entries(300)], settings(codec)).remove(0);
        let reader = fixture.cache.table_arc(&table).unwrap();
        let walk = || {
            let mut cursor = fixture.cursor(&table, Fetch::cached(&fixture.cache, &table, Unit::Span));
            cursor.seek(b"key00100", Stamp::MAX).unwrap();
            (0..10).for_each(|_| cursor.next().unwrap());
        };
        let before = fixture.cache.counts();
        walk();
        let first = fixture.cache.counts();
        assert!(first.misses > before.misses && first.bytes > before.bytes);
        walk();
        let sought = sought(&reader, b"key00105");
        let (block, is_kept) = fixture.cache.block_for_row(&reader, sought, Unit::Span).unwrap();
        assert!(is_kept && block.seek(b"key00105", Stamp::MAX) < block.len());
        let second = fixture.cache.counts();
        assert_eq!((second.misses, second.bytes), (first.misses, first.bytes), "all of it was in memory");
    }
}

#[test]
fn a_full_cache_keeps_a_span_that_scans_miss_twice() {
    for codec in [Codec::Raw, Codec::Lz4] {
        let fixture = Fixture::new();
        let written = large_entries(3000);
        let table = fixture.write(std::slice::from_ref(&written), settings(codec)).remove(0);
        fixture.cache.expect(table.extent.length);
        let reader = fixture.cache.table_arc(&table).unwrap();
        let walk = |at: usize| {
            for forward in [true, false] {
                let mut cursor = fixture.cursor(&table, Fetch::cached(&fixture.cache, &table, Unit::Span));
                cursor.seek(&written[at].0, Stamp::MAX).unwrap();
                for step in 0..10 {
                    let at = if forward { at + step } else { at - step };
                    assert_eq!(current(&cursor).as_ref(), Some(&written[at]));
                    if forward { cursor.next().unwrap() } else { cursor.prev().unwrap() }
                }
            }
        };
        let handle = |at: usize| reader.handle(reader.block_for(&written[at].0, Stamp::MAX)).unwrap();
        (10..2800).step_by(15).for_each(walk);
        let kept = fixture.cache.counts().bytes;
        assert!(kept > 700 << 10, "{kept} bytes fill no cache of a mebibyte");
        let mut cursor = fixture.cursor(&table, Fetch::cached(&fixture.cache, &table, Unit::Span));
        for is_kept in [false, true] {
            cursor.seek(&written[2900].0, Stamp::MAX).unwrap();
            assert_eq!(cursor.key(), written[2900].0);
            assert_eq!(fixture.cache.span(&reader, handle(2900)).is_some(), is_kept);
            cursor = fixture.cursor(&table, Fetch::cached(&fixture.cache, &table, Unit::Span));
        }
        // What is not kept is read from the block that is sought on, and no further than the span goes.
        for (forward, places) in [(true, 2810..2840), (false, 2850..2880)] {
            let span = |at: usize| {
                let start = handle(at).offset >> 14 << 14;
                let blocks = reader.handles_in(start..start + (1 << 14));
                blocks[0].offset..blocks[blocks.len() - 1].end()
            };
            let is_inside = |at: &usize| {
                let (block, span) = (handle(*at), span(*at));
                span.start < block.offset && block.end() < span.end
            };
            let at = places.clone().find(is_inside).unwrap();
            let before = fixture.meter.bytes_read(ReadCause::Scan);
            let mut cursor = fixture.cursor(&table, Fetch::cached(&fixture.cache, &table, Unit::Span));
            let expected = if forward {
                cursor.seek(&written[at].0, Stamp::MAX).unwrap();
                span(at).end - handle(at).offset
            } else {
                cursor.seek_before(&written[at].0, Stamp::new(Seq::ZERO, Kind::Put)).unwrap();
                handle(at).end() - span(at).start
            };
            assert_eq!(current(&cursor).as_ref(), Some(&written[at]));
            assert_eq!(fixture.meter.bytes_read(ReadCause::Scan) - before, expected);
        }
    }
}

#[test]
fn a_walk_by_blocks_reads_no_more_than_it_needs_and_lookups_find_it() {
    let fixture = Fixture::new();
    let table = fixture.write(&[large_entries(300)], settings(Codec::Raw)).remove(0);
    let reader = fixture.cache.table_arc(&table).unwrap();
    let at = sought(&reader, b"key00100");
    let handle = reader.handle(at).unwrap();
    let bytes = |unit| {
        let before = fixture.cache.counts().bytes;
        let mut cursor = fixture.cursor(&table, Fetch::cached(&fixture.cache, &table, unit));
        cursor.seek(b"key00100", Stamp::MAX).unwrap();
        assert_eq!(cursor.key(), b"key00100");
        fixture.cache.counts().bytes - before
    };
    let block = bytes(Unit::Block);
    assert!(block > u64::from(handle.length) && block < 2 * u64::from(handle.length), "{block} bytes");
    let (_, is_kept) = fixture.cache.block_for_row(&reader, at, Unit::Block).unwrap();
    assert!(is_kept);
    assert!(bytes(Unit::Span) > 2 * block);
    // What is not there comes into the cache when it is missed twice within a short while.
    let other = sought(&reader, b"key00200");
    for is_hot in [false, true, true] {
        assert_eq!(fixture.cache.block_for_row(&reader, other, Unit::Block).unwrap().1, is_hot);
    }
}

#[test]
fn a_full_cache_keeps_a_record_or_a_block_that_is_missed_twice() {
    let fixture = Fixture::new();
    let written = large_entries(3000);
    let table = fixture.write(std::slice::from_ref(&written), settings(Codec::Raw)).remove(0);
    fixture.cache.expect(table.extent.length);
    let reader = fixture.cache.table_arc(&table).unwrap();
    // As a lookup of a record does; whether it was in memory.
    let look_up = |at: usize| {
        let (key, _, value) = &written[at];
        let hash = filter::hash(key);
        if let Some((_, (buffer, place))) = fixture.cache.row(table.id, hash, key) {
            assert_eq!(buffer[place], value[..]);
            return true;
        }
        let fetch = |at| Ok(fixture.cache.block_for_row(&reader, at, Unit::Span)?.0);
        let (block, entry) = reader.find(key, Stamp::MAX, fetch).unwrap().unwrap();
        let stamp = block.stamp(entry);
        let (buffer, place) = fixture.cache.keep_row(&reader, (hash, key), (stamp, block, entry));
        assert_eq!(buffer[place], value[..]);
        false
    };
    assert!(!look_up(5) && look_up(5), "there is room");
    (10..2000).for_each(|at| assert!(!look_up(at)));
    let full = fixture.cache.counts().bytes;
    assert!(full > 700 << 10, "{full} bytes fill no cache of a mebibyte");
    assert_eq!([2500; 3].map(look_up), [false, false, true]);

    let last = sought(&reader, &written[2900].0);
    for is_kept in [false, true] {
        let mut cursor = fixture.cursor(&table, Fetch::cached(&fixture.cache, &table, Unit::Block));
        cursor.seek(&written[2900].0, Stamp::MAX).unwrap();
        assert_eq!(cursor.key(), written[2900].0);
        assert_eq!(fixture.cache.lookup(&reader, last).is_some(), is_kept);
    }
}

#[test]
fn a_span_leaves_a_block_out_that_reaches_far_beyond() {
    let fixture = Fixture::new();
    let mut written = large_entries(300);
    written[103].2 = vec![7; 55_000];
    let table = fixture.write(&[written], settings(Codec::Raw)).remove(0);
    // Too much for the table to be read as a whole.
    fixture.cache.expect(1 << 30);
    let reader = fixture.cache.table_arc(&table).unwrap();
    let handle = |key: &[u8]| reader.handle(reader.block_for(key, Stamp::MAX)).unwrap();
    let long = handle(b"key00103");
    assert!(!Span::has(long) && Span::has(handle(b"key00102")));
    let before = fixture.cache.counts().bytes;
    let span = fixture.cache.read_span(&reader, handle(b"key00102"), ReadCause::Scan).unwrap();
    assert!(span.block(handle(b"key00102")).is_some() && span.block(long).is_none());
    assert!(fixture.cache.counts().bytes - before < 50_000);
    for _ in 0..2 {
        let mut cursor = fixture.cursor(&table, Fetch::cached(&fixture.cache, &table, Unit::Span));
        cursor.seek(b"key00103", Stamp::MAX).unwrap();
        assert_eq!(cursor.value().len(), 55_000);
    }
    let (_, is_kept) =
        fixture.cache.block_for_row(&reader, sought(&reader, b"key00103"), Unit::Span).unwrap();
    assert!(is_kept, "the walk has left the long block in the cache by itself");
}

#[test]
fn a_damaged_block_hides_no_other_of_its_span() {
    for is_full in [false, true] {
        damaged_block(is_full);
    }
}

/// In a span that the cache would keep, or not, for others have filled it.
fn damaged_block(is_full: bool) {
    let fixture = Fixture::new();
    let written = large_entries(if is_full { 3000 } else { 300 });
    let table = fixture.write(std::slice::from_ref(&written), settings(Codec::Raw)).remove(0);
    fixture.cache.expect(table.extent.length);
    let reader = fixture.cache.table_arc(&table).unwrap();
    for (key, ..) in written.iter().skip(200).step_by(10) {
        fixture
            .cursor(&table, Fetch::cached(&fixture.cache, &table, Unit::Span))
            .seek(key, Stamp::MAX)
            .unwrap();
    }
    assert_eq!(fixture.cache.counts().bytes > 700 << 10, is_full);
    let damaged = reader.block_for(b"key00103", Stamp::MAX);
    let handle = reader.handle(damaged).unwrap();
    fixture.damage(table.extent.offset + handle.offset + 7);
    for (key, stamp, value) in &written[95..112] {
        let mut cursor = fixture.cursor(&table, Fetch::cached(&fixture.cache, &table, Unit::Span));
        let sought = cursor.seek(key, *stamp);
        if reader.block_for(key, *stamp) == damaged {
            assert_eq!(sought.unwrap_err().kind(), ErrorKind::Corruption);
        } else {
            sought.unwrap();
            assert_eq!(current(&cursor), Some((key.clone(), *stamp, value.clone())));
        }
    }
}

#[test]
fn open_tables_take_their_share_of_the_budget_and_no_more() {
    let fixture = Fixture::new();
    let lists: Vec<_> = (0..60).map(|n| entries(n * 2000, (n + 1) * 2000)).collect();
    let tables = fixture.write(&lists, settings(Codec::Raw));
    let sizes = tables.iter().map(|table| fixture.cache.table(table).unwrap().memory_bytes() as u64);
    let all: u64 = sizes.sum();
    let counts = fixture.cache.counts();
    let is_attached = |table: &&Arc<TableMeta>| table.attachment.get::<TableReader>().is_some();
    let attached: u64 = tables
        .iter()
        .filter(is_attached)
        .map(|table| fixture.cache.table(table).unwrap().memory_bytes() as u64)
        .sum();
    assert!(all > counts.capacity / 2, "{all} bytes of open tables are no test");
    assert!(attached > 0 && attached <= counts.capacity / 4, "{attached} bytes are attached");
    assert!(counts.bytes <= counts.capacity, "{} bytes in the cache", counts.bytes);
    drop(tables);
    let left = fixture.cache.counts().bytes;
    assert!(left <= counts.bytes - attached, "{left} bytes are left of {}", counts.bytes);
}

#[test]
fn blocks_of_a_page_touch_one_page() {
    let fixture = Fixture::new();
    let even: Entries = (0..2000u64)
        .map(|n| (format!("key{n:013}").into_bytes(), Stamp::new(Seq(n + 1), Kind::Put), vec![b'v'; 100]))
        .collect();
    let table = fixture.write(&[even], TableSettings { block_bytes: 4096, ..settings(Codec::Raw) }).remove(0);
    let reader = fixture.cache.table(&table).unwrap();
    for at in 0..reader.blocks() {
        let handle = reader.handle(at).unwrap();
        let last = handle.offset + u64::from(handle.length) - 1;
        assert_eq!(
            handle.offset / PAGE_BYTES,
            last / PAGE_BYTES,
            "block {at} at {handle:?} straddles a page"
        );
    }
    // 116 bytes of user data an entry; blocks, index and filter cost little more.
    assert!(table.extent.length < 2000 * 116 * 108 / 100, "{}", table.extent.length);
}

#[test]
fn filters_let_every_key_through() {
    let fixture = Fixture::new();
    let table = fixture.write(&[entries(0, 500)], settings(Codec::Raw)).remove(0);
    let reader = fixture.cache.table(&table).unwrap();
    assert!((0..500).all(|n| reader.may_contain(filter::hash(format!("key{n:05}").as_bytes()))));
    let passed =
        (500..1500).filter(|n| reader.may_contain(filter::hash(format!("key{n:05}").as_bytes()))).count();
    assert!(passed < 40, "{passed} of 1000 absent keys pass");
}

#[test]
fn a_table_is_opened_by_one_read() {
    let puts = |count: u32, value_bytes: usize| -> Entries {
        let put = |n: u32| {
            (format!("{n:07}").into_bytes(), Stamp::new(Seq(n.into()), Kind::Put), vec![7; value_bytes])
        };
        (1..=count).map(put).collect()
    };
    let cases = [
        ("of the default's shape", puts(9000, 100), 4096, 1),
        ("shorter than what is read at once", puts(3, 100), 4096, 1),
        ("with a filter that reaches beyond it", puts(9000, 8), 4096, 2),
    ];
    for (name, entries, block_bytes, expected) in cases {
        let fixture = Fixture::new();
        let settings = TableSettings { block_bytes, ..settings(Codec::Raw) };
        let table = fixture.write(std::slice::from_ref(&entries), settings).remove(0);
        let file = fixture.cache.packs().file(PackId(1)).unwrap();
        let before = fixture.env.calls();
        let reader = TableReader::open(&file, table.id, table.extent, table.max_seq).unwrap();
        assert_eq!(fixture.env.calls() - before, expected, "a table {name}");
        assert!(entries.iter().all(|(key, ..)| reader.may_contain(filter::hash(key))));
        assert_eq!(reader.handles_in(0..u64::MAX).len(), reader.blocks());
        assert!(!(0..100_u32).all(|n| reader.may_contain(filter::hash(format!("absent {n}").as_bytes()))));
    }
}

#[test]
fn damaged_blocks_name_file_and_offset() {
    let fixture = Fixture::new();
    let table = fixture.write(&[entries(0, 500)], settings(Codec::Raw)).remove(0);
    let handle = fixture.cache.table(&table).unwrap().handle(3).unwrap();
    let path = Path::new("/db/000001.pack");
    let file = fixture.cache.packs().file(PackId(1)).unwrap();
    let at = table.extent.offset + handle.offset;
    let byte = fixture.env.read_file(path).unwrap()[at as usize + 7];
    fixture.env.overwrite(path, at + 7, &[byte ^ 1]).unwrap();
    let reader = fixture.cache.table(&table).unwrap();
    let error = fixture.cache.block(&reader, 3, ReadCause::Get).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    assert_eq!(error.file(), Some(path));
    assert!(error.offset().unwrap() >= at && error.offset().unwrap() <= at + u64::from(handle.length));
    // The whole table read as another one is refused, too.
    let other = TableReader::open(&file, TableId(99), table.extent, table.max_seq).unwrap_err();
    assert_eq!(other.kind(), ErrorKind::Corruption);
}

#[test]
fn a_table_of_range_tombstones_alone_has_a_range_and_no_entry() {
    let fixture = Fixture::new();
    let mut pack = fixture.cache.packs().create(PackId(1), DeviceId(0), WriteCause::Flush, 0).unwrap();
    let tombstone = |start: &str, end: &str, seq| RangeTombstone {
        range: KeyRange { start: start.as_bytes().into(), end: UpperBound::from_bytes(end.as_bytes()) },
        seq: Seq(seq),
    };
    let tombstones = vec![tombstone("b", "d", 9), tombstone("b", "d", 4), tombstone("m", "", 6)];
    let mut table = TableBuilder::new(settings(Codec::Lz4), TableId(1), &mut pack);
    table.set_range_tombstones(tombstones.clone());
    let record = table.finish(&mut pack).unwrap();
    pack.seal().unwrap();
    assert_eq!((record.entries, record.range_tombstones), (0, 3));
    assert_eq!((record.min_seq, record.max_seq, record.range.to_string()), (Seq(4), Seq(9), "[b..)".into()));

    let meta = Arc::new(TableMeta::new(&record, Lease::none()));
    let reader = fixture.cache.table(&meta).unwrap();
    assert_eq!((reader.range_tombstones(), reader.blocks()), (&tombstones[..], 0));
    let file = fixture.cache.packs().file(PackId(1)).unwrap();
    assert!(reader.properties(&file).unwrap().tell(&record));
    let mut cursor = TablesCursor::cached(fixture.cache.clone(), vec![meta], Unit::Span);
    cursor.seek_first().unwrap();
    assert!(!cursor.valid());
    cursor.seek(b"c", Stamp::MAX).unwrap();
    assert!(!cursor.valid());
    cursor.seek_before(b"c", Stamp::MAX).unwrap();
    assert!(!cursor.valid());
    cursor.seek_last().unwrap();
    assert!(!cursor.valid());
}
