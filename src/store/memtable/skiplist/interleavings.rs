//! Small lists under every order of steps that the memory model allows, up to a number of preemptions, by loom.
//!
//! What a node holds besides its links is plain memory, which loom does not watch: that it is published with the node is for
//! Miri and the thread sanitizer to see.

use loom::model::Builder;
use loom::thread;

use super::*;
use crate::types::{Kind, Seq};

/// Tries `body` with up to so many moments at which a thread is interrupted that could go on.
fn every_order(preemptions: usize, body: impl Fn() + Send + Sync + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(body);
}

/// A list whose nodes are large for its chunks, so that threads ask for chunks at the same time, too.
fn list() -> Arc<SkipList> {
    Arc::new(SkipList::new(0, Arc::new(ChunkPool::new(0)), b""))
}

const VALUE: [u8; 900] = [7; 900];

/// A stamp that makes the entry of this key so high.
fn stamp(key: &[u8], height: usize) -> Stamp {
    let stamps = (1..).map(|seq| Stamp::new(Seq(seq), Kind::Put));
    let head = key_head(key);
    stamps.into_iter().find(|stamp| random_height(head, *stamp) == height).expect("half of them are higher")
}

fn insert(list: &SkipList, key: &[u8], height: usize) {
    list.insert(key, stamp(key, height), &VALUE);
}

fn keys(list: &SkipList, level: usize) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let mut at = None;
    while let Some(entry) = list.next(at, level) {
        let hint = list.link(at, level).head.load(Acquire);
        assert!(hint >= entry.header().head, "a head of a node before the link's");
        assert_eq!(entry.value(), VALUE);
        found.push(entry.key().to_vec());
        at = Some(entry);
    }
    assert!(found.is_sorted(), "{found:?}");
    found
}

/// Checks a list that nobody changes: these entries, of these heights.
fn check(list: &SkipList, entries: &[(&[u8], usize)]) {
    for level in 0..=entries.iter().map(|(_, height)| *height).max().unwrap_or(0) {
        let there = entries.iter().filter(|(_, height)| *height > level).map(|(key, _)| key.to_vec());
        assert_eq!(keys(list, level), there.collect::<Vec<_>>(), "at level {level}");
    }
    for (key, height) in entries {
        assert_found(list, key, *height);
    }
}

fn assert_found(list: &SkipList, key: &[u8], height: usize) {
    let found = list.find(key, stamp(key, height));
    assert_eq!(found.after.map(|entry| entry.key()), Some(key), "an entry is lost");
    assert!(found.before.is_none_or(|entry| entry.key() < key));
}

#[test]
fn two_threads_link_to_one_place() {
    for (first, second) in [(&b"aaaaaaaa1"[..], &b"aaaaaaaa2"[..]), (b"a", b"b"), (b"b", b"a")] {
        every_order(5, move || {
            let (list, other) = (list(), first);
            let beside = Arc::clone(&list);
            let thread = thread::spawn(move || insert(&beside, other, 2));
            insert(&list, second, 2);
            thread.join().unwrap();
            let mut entries = [(first, 2), (second, 2)];
            entries.sort_unstable();
            check(&list, &entries);
        });
    }
}

#[test]
fn what_is_there_is_found_while_others_are_linked_before_and_behind_it() {
    every_order(3, || {
        let list = list();
        insert(&list, b"m", 2);
        let beside = [(b"l", 2), (b"n", 1)].map(|(key, height)| {
            let list = Arc::clone(&list);
            thread::spawn(move || insert(&list, key, height))
        });
        assert_found(&list, b"m", 2);
        let gap = list.find(b"lz", Stamp::upto(Seq::MAX));
        assert_eq!(gap.after.map(|entry| entry.key()), Some(&b"m"[..]));
        assert!(gap.before.is_none_or(|entry| entry.key() == b"l"));
        beside.into_iter().for_each(|thread| thread.join().unwrap());
        check(&list, &[(b"l", 2), (b"m", 2), (b"n", 1)]);
    });
}

#[test]
fn a_walk_meets_entries_in_order_and_all_that_were_there() {
    every_order(3, || {
        let list = list();
        insert(&list, b"b", 1);
        insert(&list, b"d", 2);
        let beside = Arc::clone(&list);
        let thread = thread::spawn(move || {
            insert(&beside, b"c", 2);
            insert(&beside, b"a", 1);
        });
        let found = keys(&list, 0);
        assert!(found.contains(&b"b".to_vec()) && found.contains(&b"d".to_vec()), "{found:?}");
        let last = list.last().map(|entry| entry.key());
        assert_eq!(last, Some(&b"d"[..]));
        thread.join().unwrap();
        check(&list, &[(b"a", 1), (b"b", 1), (b"c", 2), (b"d", 2)]);
    });
}

#[test]
fn memory_is_handed_out_once() {
    every_order(3, || {
        let list = list();
        let threads = [(); 2].map(|()| {
            let list = Arc::clone(&list);
            thread::spawn(move || [(); 2].map(|()| list.arena.alloc(1000).as_ptr().addr()))
        });
        let mut found: Vec<usize> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        found.sort_unstable();
        assert!(found.windows(2).all(|pair| pair[1] - pair[0] >= 1000), "{found:?}");
    });
}
