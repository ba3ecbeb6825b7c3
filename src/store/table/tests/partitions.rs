//! Tables with index and filter in partitions.

use super::*;
use crate::format::filter::PrefixProbe;
use crate::types::Prefix;

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
        let fetch = |handle| fixture.cache.block(&partition, handle, ReadCause::Get);
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
        let fetch = |handle| fixture.cache.block(&partition, handle, ReadCause::Get);
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
