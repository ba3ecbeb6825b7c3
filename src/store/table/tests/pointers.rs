//! Pointers from a table's index to its cached blocks.

use super::*;
use crate::store::cache::Cached;

/// Whether a pointer leads to block `at`.
fn is_shown(reader: &TableReader, at: usize) -> bool {
    reader.pointers().load(at).is_some()
}

fn get(fixture: &Fixture, reader: &TableReader, at: usize) {
    fixture.cache.block(reader, at, ReadCause::Get).unwrap();
}

#[test]
fn i23_a_pointer_leads_to_a_block_as_long_as_the_cache_keeps_it() {
    let fixture = Fixture::new();
    let table = fixture.write(&[entries(0, 2000)], settings(Codec::Raw)).remove(0);
    let reader = fixture.cache.table_arc(&table).unwrap();
    get(&fixture, &reader, 3);
    assert_eq!([2, 3, 4].map(|at| is_shown(&reader, at)), [false, true, false]);
    let (before, reads) = (fixture.cache.counts(), fixture.meter.bytes_read(ReadCause::Get));
    let held = fixture.cache.lookup(&reader, 3).unwrap();
    assert_eq!(fixture.cache.counts().hits, before.hits + 1);
    assert_eq!(fixture.meter.bytes_read(ReadCause::Get), reads);
    let first = held.value(0).to_vec();
    fixture.cache.forget(&table);
    assert!(!is_shown(&reader, 3), "the cache has let go of it");
    assert_eq!(held.value(0), first, "its reader has not");
    // A reader that holds on to a block does not keep it in the cache.
    let before = fixture.cache.counts().misses;
    get(&fixture, &reader, 3);
    assert_eq!(fixture.cache.counts().misses, before + 1);
    fixture.cache.set_capacity(0);
    assert!(!is_shown(&reader, 3));
}

#[test]
fn i23_who_takes_the_place_of_an_entry_takes_its_pointer_too() {
    let fixture = Fixture::new();
    let table = fixture.write(&[entries(0, 2000)], settings(Codec::Raw)).remove(0);
    let reader = fixture.cache.table_arc(&table).unwrap();
    // As readers do who miss the same block at once.
    let [first, second] = [(); 2].map(|()| fixture.cache.read(&reader, 3, ReadCause::Get).unwrap());
    assert!(is_shown(&reader, 3), "the second has come in the place of the first");
    assert!(!first.buffer().is(second.buffer()));
    assert!(fixture.cache.lookup(&reader, 3).unwrap().buffer().is(second.buffer()));
    fixture.cache.forget(&table);
    assert!(!is_shown(&reader, 3));
}

#[test]
fn i23_a_pinned_table_takes_its_own_pointers_with_it() {
    let fixture = Fixture::with_cache(8 << 20);
    let table = fixture.write(&[entries(0, 2000)], settings(Codec::Raw)).remove(0);
    let reader = fixture.cache.table_arc(&table).unwrap();
    fixture.cache.settle(&table);
    let pinned = fixture.cache.pinned(&reader).unwrap();
    get(&fixture, &reader, 3);
    get(&fixture, &reader, 4);
    assert!(is_shown(&reader, 3) && is_shown(&reader, 4));
    // The cache lets go of it while a scan still has it, and a lookup reads one of its blocks anew.
    fixture.cache.set_capacity(0);
    fixture.cache.set_capacity(8 << 20);
    let read = fixture.cache.read(&reader, 3, ReadCause::Get).unwrap();
    drop(pinned);
    assert!(!is_shown(&reader, 4), "that led to the pinned table");
    assert!(fixture.cache.lookup(&reader, 3).unwrap().buffer().is(read.buffer()));
    assert!(is_shown(&reader, 3), "and that to the cache");
}

#[test]
fn a_table_that_is_opened_again_has_pointers_to_what_is_still_cached() {
    let fixture = Fixture::new();
    let table = fixture.write(&[entries(0, 2000)], settings(Codec::Raw)).remove(0);
    let old = fixture.cache.table_arc(&table).unwrap();
    get(&fixture, &old, 3);
    let again = Arc::new(TableMeta::new(&table.record(), Lease::none()));
    let reader = fixture.cache.table_arc(&again).unwrap();
    assert!(is_shown(&old, 3) && !is_shown(&reader, 3));
    let misses = fixture.cache.counts().misses;
    get(&fixture, &reader, 3);
    assert_eq!(fixture.cache.counts().misses, misses);
    assert!(is_shown(&reader, 3));
    fixture.cache.forget(&again);
    assert!(!is_shown(&old, 3) && !is_shown(&reader, 3));
}

#[test]
fn what_is_used_through_its_pointer_stays_in_the_cache() {
    let fixture = Fixture::new();
    let table = fixture.write(&[large_entries(6000)], settings(Codec::Raw)).remove(0);
    let reader = fixture.cache.table_arc(&table).unwrap();
    // The second time, a block counts as one that is used again.
    get(&fixture, &reader, 0);
    let mut lost = 0;
    for at in 1..reader.blocks() {
        get(&fixture, &reader, at);
        lost += u32::from(!is_shown(&reader, 0));
        get(&fixture, &reader, 0);
    }
    let shown = (0..reader.blocks()).filter(|&at| is_shown(&reader, at)).count();
    assert!(shown < reader.blocks() / 2, "the cache has room for few: {shown}");
    assert!(lost <= 1, "evicted {lost} times");
}

#[test]
fn a_cache_by_recency_has_no_pointers() {
    let fixture = Fixture::new();
    let Fixture { env, meter, cache } = fixture;
    let Some(cache) = Arc::into_inner(cache) else { panic!("nobody else has it") };
    let kinds = crate::store::cache::Kinds { of: Cached::Blocks, ..Default::default() };
    let fixture = Fixture { env, meter, cache: Arc::new(cache.with(kinds)) };
    let table = fixture.write(&[entries(0, 2000)], settings(Codec::Raw)).remove(0);
    let reader = fixture.cache.table_arc(&table).unwrap();
    get(&fixture, &reader, 3);
    get(&fixture, &reader, 3);
    assert!(!is_shown(&reader, 3));
}
