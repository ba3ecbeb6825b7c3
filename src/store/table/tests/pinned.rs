//! Tests of pinned tables: tables that scans bring into memory as a whole.

use super::*;
use crate::store::cache::HeldBlock;

/// Many times what the tables here take, in each of its shards, however many processors there are.
const CACHE_BYTES: u64 = 1 << 30;

/// A short scan from the entry at `at` in either direction.
fn scan(fixture: &Fixture, table: &TableMeta, unit: Unit, written: &Entries, at: usize, forward: bool) {
    let mut cursor = fixture.cursor(table, Fetch::cached(&fixture.cache, table, unit));
    cursor.seek(&written[at].0, written[at].1).unwrap();
    for step in 0..5 {
        let at = if forward { at.checked_add(step) } else { at.checked_sub(step) };
        assert_eq!(current(&cursor).as_ref(), at.and_then(|at| written.get(at)));
        if !cursor.valid() {
            break;
        }
        if forward { cursor.next().unwrap() } else { cursor.prev().unwrap() }
    }
}

fn bytes_read(fixture: &Fixture) -> u64 {
    fixture.meter.bytes_read(ReadCause::Scan)
}

#[test]
fn a_table_of_which_scans_miss_a_part_is_read_as_a_whole_and_found_until_it_goes() {
    for (codec, unit) in [(Codec::Raw, Unit::Span), (Codec::Lz4, Unit::Span), (Codec::Raw, Unit::Block)] {
        for written in [large_entries(1000), entries(0, 5000)] {
            let fixture = Fixture::with_cache(CACHE_BYTES);
            let table = fixture.write(std::slice::from_ref(&written), settings(codec)).remove(0);
            fixture.cache.expect(table.extent.length);
            let reader = fixture.cache.table_arc(&table).unwrap();
            let opened = fixture.cache.counts().bytes;
            let mut places = (0..written.len()).map(|n| n * 7919 % written.len());
            let mut last = 0;
            for at in places.by_ref() {
                last = bytes_read(&fixture);
                scan(&fixture, &table, unit, &written, at, at % 2 == 0);
                if fixture.cache.pinned(&reader).is_some() {
                    break;
                }
            }
            let (missed, all) = (last, bytes_read(&fixture));
            let data = reader.handle(reader.blocks() - 1).unwrap().end();
            assert!(missed > data / 16 && missed < data / 6, "{codec:?} {unit:?}: {missed} of {data}");
            assert!(all - missed > data - data / 16, "{all} less {missed} of {data}");
            assert!(all < data + data / 4, "{all} for {data}");
            let kept = fixture.cache.counts().bytes - opened;
            let unpacked: usize = written.iter().map(|(key, _, value)| key.len() + value.len()).sum();
            assert!(kept < 2 * unpacked as u64 + data / 2, "{kept} for {unpacked}");
            for at in 0..reader.blocks() {
                let handle = reader.handle(at).unwrap();
                assert!(fixture.cache.span(&reader, handle).is_none(), "what is kept twice");
                let block = fixture.cache.lookup(&reader, at).unwrap();
                let first = written.iter().find(|entry| reader.block_for(&entry.0, entry.1) == at).unwrap();
                assert_eq!(block.value(block.seek(&first.0, first.1)), first.2, "lookups find it, too");
                assert!(fixture.cache.block_for_row(&reader, at, unit).unwrap().1);
            }
            let copy = copied(&fixture, &table, 2).unwrap();
            let of_copy = fixture.cache.table_arc(&copy).unwrap();
            assert!(fixture.cache.pinned(&of_copy).is_some(), "a table that is copied stays");
            drop((copy, of_copy));
            for at in 0..written.len() {
                scan(&fixture, &table, unit, &written, at, at % 2 == 1);
            }
            let mut held = fixture.cursor(&table, Fetch::cached(&fixture.cache, &table, unit));
            held.seek_first().unwrap();
            assert_eq!(bytes_read(&fixture), all, "all of it is in memory");
            fixture.cache.forget(&table);
            assert_eq!(fixture.cache.counts().bytes, opened, "nothing of it is in the cache");
            assert!(fixture.cache.pinned(&reader).is_none(), "whoever rests in it keeps none of it there");
            scan(&fixture, &table, unit, &written, 100, true);
            assert!(bytes_read(&fixture) > all);
            for entry in &written {
                assert_eq!(current(&held).as_ref(), Some(entry), "who walks in it goes on");
                held.next().unwrap();
            }
            assert!(!held.valid() && fixture.cache.pinned(&reader).is_none());
        }
    }
}

#[test]
fn no_table_is_read_as_a_whole_that_something_else_would_go_for() {
    let written = large_entries(1000);
    let fixture = Fixture::with_cache(CACHE_BYTES);
    let tables = fixture.write(&[written.clone(), written.clone(), written.clone()], settings(Codec::Raw));
    let readers: Vec<_> = tables.iter().map(|table| fixture.cache.table_arc(table).unwrap()).collect();
    let walk = |table: &TableMeta| {
        (0..1000).step_by(20).for_each(|at| scan(&fixture, table, Unit::Span, &written, at, true));
    };
    // There is more than fits.
    fixture.cache.expect(2 * CACHE_BYTES);
    walk(&tables[0]);
    assert!(fixture.cache.pinned(&readers[0]).is_none());
    // It would fit, but the cache is full of something else.
    let capacity = 256 << 20;
    fixture.cache.set_capacity(capacity);
    fixture.cache.expect(tables.iter().map(|table| table.extent.length).sum());
    let block = fixture.cache.read_past(&readers[0], readers[0].handle(0).unwrap(), ReadCause::Get).unwrap();
    let fill = |at: u64| {
        let row = (Stamp::new(Seq(at + 1), Kind::Put), HeldBlock::own(block.clone()), 0);
        fixture.cache.keep_row(&readers[0], (filter::hash(&at.to_le_bytes()), b"key"), row);
    };
    (0..capacity / 1024 * 5 / 4).for_each(fill);
    assert!(fixture.cache.counts().bytes > capacity / 8 * 7, "{} bytes", fixture.cache.counts().bytes);
    walk(&tables[1]);
    assert!(fixture.cache.pinned(&readers[1]).is_none());
    // The same once it is not.
    fixture.cache.set_capacity(CACHE_BYTES);
    walk(&tables[2]);
    assert!(fixture.cache.pinned(&readers[2]).is_some());
}

#[test]
fn a_table_with_a_damaged_block_is_not_read_as_a_whole_and_hides_nothing_else() {
    let written = large_entries(300);
    let fixture = Fixture::with_cache(CACHE_BYTES);
    let table = fixture.write(std::slice::from_ref(&written), settings(Codec::Raw)).remove(0);
    let reader = fixture.cache.table_arc(&table).unwrap();
    let damaged = reader.block_for(b"key00103", Stamp::MAX);
    fixture.damage(table.extent.offset + reader.handle(damaged).unwrap().offset + 20);
    for _ in 0..3 {
        for (key, stamp, value) in &written {
            let mut cursor = fixture.cursor(&table, Fetch::cached(&fixture.cache, &table, Unit::Span));
            let found = cursor.seek(key, *stamp);
            if reader.block_for(key, *stamp) == damaged {
                assert_eq!(found.unwrap_err().kind(), ErrorKind::Corruption);
            } else {
                found.unwrap();
                assert_eq!(cursor.value(), value);
            }
        }
    }
    assert!(fixture.cache.pinned(&reader).is_none());
}
