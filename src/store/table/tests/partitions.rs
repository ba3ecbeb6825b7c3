//! Tables with index and filter in partitions.

use super::*;
use crate::catalog::testing::Dice;
use crate::format::filter::PrefixProbe;
use crate::types::{KeyRanges, Prefix};

/// Some keys with so many versions that they fill several blocks.
fn many_versions(keys: u32) -> Entries {
    let versions = |n: u32| if n.is_multiple_of(7) { 60 } else { 1 + n % 3 };
    let of_key = |n: u32| {
        (0..versions(n)).rev().map(move |version| {
            let stamp = Stamp::new(Seq(u64::from(n * 100 + version + 1)), Kind::Put);
            (format!("{:02}key{n:05}", n / 50).into_bytes(), stamp, vec![n as u8; 20])
        })
    };
    (0..keys).flat_map(of_key).collect()
}

fn written(fixture: &Fixture, entries: &Entries, settings: TableSettings) -> Arc<TableMeta> {
    fixture.write(std::slice::from_ref(entries), settings).remove(0)
}

#[test]
fn a_lookup_finds_each_version_in_the_partition_of_its_key() {
    let fixture = Fixture::new();
    let entries = many_versions(1000);
    let table = written(&fixture, &entries, TableSettings { block_bytes: 256, ..partitioned(Codec::Raw) });
    let open = fixture.cache.table(&table).unwrap();
    assert!(open.partitions() > 20 && open.blocks() == 0, "{} partitions", open.partitions());
    for (key, stamp, value) in &entries {
        let partition = fixture.cache.open_for(&open, key).unwrap();
        assert!(partition.may_contain(filter::hash(key)), "{}", key.escape_ascii());
        let fetch = |at| fixture.cache.block(&partition, at, ReadCause::Get);
        let (block, entry) = partition.find(key, *stamp, fetch).unwrap().unwrap();
        assert_eq!((block.stamp(entry), block.value(entry)), (*stamp, &value[..]));
    }
    let absent = (0..1000_u32).map(|n| format!("{:02}key{n:05}x", n / 50).into_bytes());
    let passed =
        absent.filter(|key| fixture.cache.open_for(&open, key).unwrap().may_contain(filter::hash(key)));
    let passed = passed.count();
    assert!(passed < 40, "{passed} of 1000 absent keys pass");
    for outside in ["", "zz"] {
        let partition = fixture.cache.open_for(&open, outside.as_bytes()).unwrap();
        let fetch = |at| fixture.cache.block(&partition, at, ReadCause::Get);
        assert!(partition.find(outside.as_bytes(), Stamp::MAX, fetch).unwrap().is_none());
    }
}

/// A prefix goes on in the next partition, whose filter must have it as well.
#[test]
fn the_filter_of_each_partition_has_the_prefixes_of_its_keys() {
    let fixture = Fixture::new();
    let rule = Prefix::Fixed(2);
    let settings = TableSettings { prefix: Some(rule), block_bytes: 256, ..partitioned(Codec::Raw) };
    let entries = many_versions(1000);
    let table = written(&fixture, &entries, settings);
    let open = fixture.cache.table(&table).unwrap();
    for (key, ..) in &entries {
        let probe = PrefixProbe::new(rule, rule.of(key).unwrap());
        assert!(fixture.cache.open_for(&open, key).unwrap().may_contain_prefix(&probe));
    }
    let absent = PrefixProbe::new(rule, b"99");
    let passed = (0..open.partitions())
        .filter(|at| fixture.cache.partition_arc(&open, *at).unwrap().may_contain_prefix(&absent));
    assert!(passed.count() < open.partitions() / 4);
}

#[test]
fn a_small_cache_keeps_the_partitions_that_are_in_use() {
    let puts: Entries = (0..60_000_u32)
        .map(|n| (format!("{n:09}").into_bytes(), Stamp::new(Seq(u64::from(n) + 1), Kind::Put), vec![7; 100]))
        .collect();
    let read = |settings: TableSettings| {
        let fixture = Fixture::with_cache(256 << 10);
        let table = written(&fixture, &puts, TableSettings { block_bytes: 4096, ..settings });
        let before = fixture.meter.bytes_read(ReadCause::Open);
        // Few keys, again and again, all over the table.
        for n in 0..200 {
            let key = &puts[n % 8 * 7001].0;
            let open = fixture.cache.table(&table).unwrap();
            assert!(fixture.cache.open_for(&open, key).unwrap().may_contain(filter::hash(key)));
        }
        let counts = fixture.cache.counts();
        assert!(counts.bytes <= counts.capacity, "{} bytes in the cache", counts.bytes);
        (fixture.meter.bytes_read(ReadCause::Open) - before, table.bytes())
    };
    let (whole, bytes) = read(settings(Codec::Raw));
    assert!(whole > 4 * bytes, "a table that is too large to be kept is opened each time: {whole}");
    let (parts, bytes) = read(partitioned(Codec::Raw));
    assert!(parts < bytes / 10, "{parts} bytes were read to open a table of {bytes}");
}

#[test]
fn a_job_leaves_partitions_open_that_it_has_written() {
    let fixture = Fixture::with_cache(16 << 20);
    let mut pack = fixture.cache.packs().create(PackId(1), DeviceId(0), WriteCause::Flush, 0).unwrap();
    let settings = TableSettings { block_bytes: 256, ..partitioned(Codec::Raw) };
    let mut table = TableBuilder::new(settings, TableId(1), &mut pack);
    let entries = many_versions(1000);
    for (key, stamp, value) in &entries {
        table.add(key, *stamp, value, &mut pack).unwrap();
    }
    let record = table.finish(&mut pack).unwrap();
    let open = fixture.cache.written(&record, &pack).unwrap().unwrap();
    assert!(open.partitions() > 20);
    for (key, ..) in &entries {
        assert!(open.open_for(key).unwrap().may_contain(filter::hash(key)));
    }
    assert_eq!(fixture.meter.bytes_read(ReadCause::Open), 0);
    // All of it counts in the budget for as long as the table is open.
    let (held, memory) = (fixture.cache.counts().bytes, open.memory_bytes() as u64);
    assert!(held > 4 * memory, "{held} for a table that takes {memory} itself");
    drop(open);
    assert_eq!(fixture.cache.counts().bytes, 0);
}

#[test]
fn a_damaged_partition_names_its_place_and_hides_no_other() {
    let fixture = Fixture::new();
    let entries = many_versions(1000);
    let table = written(&fixture, &entries, TableSettings { block_bytes: 256, ..partitioned(Codec::Raw) });
    let file = fixture.cache.packs().file(PackId(1)).unwrap();
    let open = TableReader::open(&file, table.id, table.extent, table.max_seq).unwrap();
    let start = open.partition_start(3).unwrap();
    fixture.damage(table.extent.offset + start + 70);
    for at in 0..open.partitions() {
        let opened = open.open_partition(&file, at);
        assert_eq!(opened.is_err(), at == 3, "partition {at}");
        let Err(error) = opened else { continue };
        assert_eq!(error.kind(), ErrorKind::Corruption);
        let (found, start) = (error.offset().unwrap(), table.extent.offset + start);
        assert!((start..start + 4096).contains(&found), "{found} for {start}");
        // What is damaged is the filter: the entries are all there.
        assert!(open.open_partition_data(&file, at).unwrap().blocks() > 0);
    }
}

/// Keys of few letters, some the beginning of others, with one version or several, and values small and large; in order.
fn random_entries(dice: &mut Dice, is_ingested: bool) -> Entries {
    let mut keys: Vec<Vec<u8>> = (0..200 + dice.below(400))
        .map(|_| (0..dice.below(6)).map(|_| [0, b'a', b'b', 0xff][dice.below(4) as usize]).collect())
        .collect();
    keys.sort();
    keys.dedup();
    let mut entries = Entries::new();
    for key in keys {
        let versions = if is_ingested {
            1
        } else if dice.below(20) == 0 {
            80
        } else {
            1 + dice.below(3)
        };
        for version in (0..versions).rev() {
            let kind = if dice.below(5) == 0 { Kind::Delete } else { Kind::Put };
            let length = [dice.below(30), dice.below(300), dice.below(6000)]
                [[0, 0, 0, 0, 1, 2][dice.below(6) as usize]];
            let value = if kind == Kind::Put { vec![version as u8; length as usize] } else { Vec::new() };
            let seq = if is_ingested { 0 } else { 10 * version + 1 + dice.below(9) };
            entries.push((key.clone(), Stamp::new(Seq(seq), kind), value));
        }
    }
    entries
}

/// Whatever the sizes of blocks and partitions, and whatever the cache keeps, a cursor and a lookup find what they find in the
/// same table without partitions.
#[test]
fn a_table_with_partitions_answers_as_the_same_table_without() {
    for seed in 0..24 {
        let mut dice = Dice(seed);
        let is_ingested = dice.below(4) == 0;
        let written = random_entries(&mut dice, is_ingested);
        let block_bytes = [64, 200, 700, 4096][dice.below(4) as usize];
        let codec = [Codec::Raw, Codec::Lz4][dice.below(2) as usize];
        let fixture = Fixture::with_cache([0, 64 << 10, 16 << 20][dice.below(3) as usize]);
        let table =
            written_with_number(&fixture, &written, TableSettings { block_bytes, ..partitioned(codec) });
        let open = fixture.cache.table_arc(&table).unwrap();
        assert!(open.partitions() > 0 && open.blocks() == 0);
        let all: BTreeMap<(Vec<u8>, std::cmp::Reverse<Stamp>), Vec<u8>> = written
            .iter()
            .map(|(key, stamp, value)| ((key.clone(), std::cmp::Reverse(open.stamp(*stamp))), value.clone()))
            .collect();
        let unpack = |(key, value): (&(Vec<u8>, std::cmp::Reverse<Stamp>), &Vec<u8>)| {
            (key.0.clone(), key.1.0, value.clone())
        };
        for unit in [Some(Unit::Span), Some(Unit::Block), None] {
            let fetch = unit.map_or(Fetch::Readahead, |unit| Fetch::cached(&fixture.cache, &table, unit));
            let mut cursor = fixture.cursor(&table, fetch);
            for step in 0..400 {
                let here = current(&cursor).map(|(key, stamp, _)| (key, std::cmp::Reverse(stamp)));
                let (mut key, stamp, _) = written[dice.below(written.len() as u64) as usize].clone();
                match dice.below(4) {
                    0 => key.push(0),
                    1 => _ = key.pop(),
                    _ => {}
                }
                let stamp = [Stamp::MAX, stamp, Stamp::upto(Seq(dice.below(40)))][dice.below(3) as usize];
                let target = (key.clone(), std::cmp::Reverse(stamp));
                let (what, expected) = match (dice.below(12), here) {
                    (0, _) => (cursor.seek(&key, stamp), all.range(target..).next()),
                    (1, _) => (cursor.seek_before(&key, stamp), all.range(..target).next_back()),
                    (2, _) => (cursor.seek_first(), all.iter().next()),
                    (3, _) => (cursor.seek_last(), all.iter().next_back()),
                    (turn, Some(here)) if (turn + seed + step / 40) % 2 == 0 => {
                        let behind = (std::ops::Bound::Excluded(here), std::ops::Bound::Unbounded);
                        (cursor.next(), all.range(behind).next())
                    }
                    (_, Some(here)) => (cursor.prev(), all.range(..here).next_back()),
                    (_, None) => continue,
                };
                what.unwrap();
                assert_eq!(current(&cursor), expected.map(unpack), "step {step} of seed {seed}");
            }
        }
        for (key, stamp, value) in &written {
            let part = fixture.cache.open_for(&open, key).unwrap();
            assert!(part.may_contain(filter::hash(key)), "{} of seed {seed}", key.escape_ascii());
            let fetch = |at| fixture.cache.block(&part, at, ReadCause::Get);
            let (block, entry) = part.find(key, *stamp, fetch).unwrap().unwrap();
            assert_eq!((block.stamp(entry), block.value(entry)), (*stamp, &value[..]), "seed {seed}");
        }
        fixture.cache.forget(&table);
    }
}

/// The table of `entries`. Those with number 0 have number 15.
fn written_with_number(fixture: &Fixture, entries: &Entries, settings: TableSettings) -> Arc<TableMeta> {
    let table = written(fixture, entries, settings);
    if table.max_seq > Seq::ZERO {
        return table;
    }
    let numbered = TableRecord { min_seq: Seq(15), max_seq: Seq(15), ..table.record() };
    Arc::new(TableMeta::new(&numbered, Lease::none()))
}

/// A damaged byte behind the data is told by whoever needs it, with its file and about its place. Nobody hears of an entry that is
/// not there, or misses one.
#[test]
fn damage_behind_the_data_is_told_and_changes_no_answer() {
    let fixture = Fixture::with_cache(0);
    let entries = many_versions(300);
    let table = written(&fixture, &entries, TableSettings { block_bytes: 256, ..partitioned(Codec::Raw) });
    let whole = fixture.cache.table_arc(&table).unwrap();
    let (start, end) = (table.extent.offset + whole.data_bytes(), table.extent.end());
    let tells = |error: &crate::error::Error, at: u64| {
        assert_eq!(error.kind(), ErrorKind::Corruption, "{error} for {at}");
        assert!(error.file().is_some_and(|file| file.ends_with("000001.pack")), "{error} for {at}");
        assert!((table.extent.offset..=end).contains(&error.offset().unwrap()), "{error} for {at}");
    };
    let mut told = 0;
    for at in (start..end).step_by(37) {
        fixture.damage(at);
        match fixture.cache.table_arc(&table) {
            Err(error) => {
                tells(&error, at);
                told += 1;
            }
            Ok(open) => {
                let mut is_told = false;
                for (key, stamp, value) in entries.iter().step_by(11) {
                    let found = fixture.cache.open_for(&open, key).and_then(|part| {
                        assert!(part.may_contain(filter::hash(key)), "{at}");
                        part.find(key, *stamp, |at| fixture.cache.block(&part, at, ReadCause::Get))
                    });
                    match found {
                        Ok(found) => {
                            let (block, entry) = found.unwrap();
                            assert_eq!(
                                (block.stamp(entry), block.value(entry)),
                                (*stamp, &value[..]),
                                "{at}"
                            );
                        }
                        Err(error) => {
                            tells(&error, at);
                            is_told = true;
                        }
                    }
                }
                told += u64::from(is_told);
            }
        }
        fixture.damage(at);
    }
    assert!(told > (end - start) / 37 * 3 / 4, "{told} of {}", (end - start) / 37);
}

#[test]
fn what_comes_before_the_first_partition_is_the_data() {
    let entries = many_versions(1000);
    let of = |settings: TableSettings| {
        let fixture = Fixture::new();
        let table = written(&fixture, &entries, TableSettings { block_bytes: 256, ..settings });
        fixture.cache.table(&table).unwrap().data_bytes()
    };
    let (whole, parted) = (of(settings(Codec::Raw)), of(partitioned(Codec::Raw)));
    // The first filter may begin at the next page.
    assert!((whole..whole + PAGE_BYTES).contains(&parted), "{parted} for {whole}");
}

/// Of a table of which one block is in the cache, the keys of this block are, and no others, wherever it lies in its partition.
#[test]
fn the_keys_that_are_in_the_cache_are_those_of_the_blocks() {
    let entries = many_versions(1000);
    for from in [300, 301, 400, 500, 600] {
        let fixture = Fixture::with_cache(16 << 20);
        let table =
            written(&fixture, &entries, TableSettings { block_bytes: 256, ..partitioned(Codec::Raw) });
        let open = fixture.cache.table(&table).unwrap();
        let mut keys = entries.iter().map(|(key, ..)| key).skip(from);
        let at = open.partition_of(keys.next().unwrap());
        let begins = keys.find(|key| from % 2 == 1 || open.partition_of(key) > at).unwrap();
        let part = fixture.cache.open_for(&open, begins).unwrap();
        part.find(begins, Stamp::MAX, |at| fixture.cache.block(&part, at, ReadCause::Get)).unwrap();
        let mut ranges = KeyRanges::default();
        fixture.cache.cached_ranges(&table, &mut ranges).unwrap();
        assert!(ranges.contains(begins), "{}", begins.escape_ascii());
        let cached = entries.iter().filter(|(key, ..)| ranges.contains(key)).count();
        assert!(cached < 100, "{cached} entries from {from}");
    }
}
