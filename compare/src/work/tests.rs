//! Chunks hold what their work says, and runs of them show it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use terrace_bench::ycsb::keys::InsertOrder;

use super::*;
use crate::store::{See, SeeValue};

/// A store in memory.
#[derive(Default)]
struct Map(Mutex<BTreeMap<Vec<u8>, Vec<u8>>>);

impl Store for Map {
    fn get(&self, key: &[u8], see: SeeValue<'_>) -> Result<bool> {
        let map = self.0.lock().unwrap();
        Ok(map.get(key).inspect(|value| see(value)).is_some())
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.0.lock().unwrap().insert(key.to_vec(), value.to_vec());
        Ok(())
    }

    fn put_batch(&self, records: &[(&[u8], &[u8])]) -> Result<()> {
        records.iter().try_for_each(|(key, value)| self.put(key, value))
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        self.0.lock().unwrap().remove(key);
        Ok(())
    }

    fn scan(&self, from: &[u8], _direction: Direction, see: See<'_>) -> Result<()> {
        let map = self.0.lock().unwrap();
        let _stopped = map.range(from.to_vec()..).try_for_each(|(key, value)| see(key, value));
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

const RECORDS: u64 = 5000;

fn format() -> Format {
    Format::new(InsertOrder::Hashed, 100).unwrap()
}

fn part(thread: usize) -> Part {
    Part { seed: 1, phase: 3, thread, threads: 2, chunk_operations: CHUNK_OPERATIONS }
}

/// Runs chunks of `work` until there are none, or `chunks` of them.
fn run(store: &Map, work: Work, choice: Choice, thread: usize, chunks: usize) -> (usize, Effect) {
    let format = format();
    let mut maker = Maker::new(&format, work, choice, RECORDS, part(thread));
    let (mut chunk, mut effect, mut operations) = (Chunk::default(), Effect::default(), 0);
    for _ in 0..chunks {
        maker.fill(&mut chunk);
        for index in 0..chunk.len() {
            effect.add(chunk.run(index, store, true).unwrap());
        }
        operations += chunk.len();
    }
    (operations, effect)
}

fn loaded() -> Map {
    let store = Map::default();
    (0..2).for_each(|thread| _ = run(&store, Work::Load, Choice::Uniform, thread, 100));
    store
}

#[test]
fn loads_put_every_record_once() {
    for work in [Work::Load, Work::LoadBatches] {
        let store = Map::default();
        for thread in 0..2 {
            let (operations, effect) = run(&store, work, Choice::Uniform, thread, 100);
            assert_eq!((operations * work.width(), effect.puts), (RECORDS as usize / 2, RECORDS / 2));
        }
        let map = store.0.lock().unwrap();
        let numbers: BTreeSet<u64> = map.values().map(|value| format().check(value).unwrap()).collect();
        assert_eq!(numbers, (0..RECORDS).collect());
    }
}

#[test]
fn lookups_find_what_is_there_and_only_that() {
    let store = loaded();
    let (operations, effect) = run(&store, Work::Gets { absent: 10 }, Choice::Uniform, 0, 10);
    let share = effect.rows as f64 / operations as f64;
    assert!((0.88..0.92).contains(&share), "{share}");
    for keys in [10, KEYS_AT_ONCE] {
        let (operations, effect) = run(&store, Work::MultiGets { keys }, Choice::Zipfian, 0, 3);
        assert_eq!(effect.rows as usize, operations * keys);
    }
    let work = Work::Gets { absent: 0 };
    let format = format();
    let mut chunk = Chunk::default();
    Maker::new(&format, work, Choice::Uniform, RECORDS, part(0)).fill(&mut chunk);
    assert!(chunk.run(0, &Map::default(), true).is_err(), "an empty store has it all");
    assert!(chunk.run(0, &Map::default(), false).is_ok());
}

#[test]
fn scans_count_their_rows() {
    let store = loaded();
    let forward = Direction::Forward;
    let (operations, effect) =
        run(&store, Work::Scans { rows: 10, direction: forward }, Choice::Uniform, 0, 1);
    assert!((operations as u64 * 9..=operations as u64 * 10).contains(&effect.rows));
    let format = format();
    let mut chunk = Chunk::default();
    Maker::new(&format, Work::FullScans, Choice::Uniform, RECORDS, part(0)).fill(&mut chunk);
    assert_eq!(chunk.run(0, &store, true).unwrap().rows, RECORDS);
}

#[test]
fn mixes_have_their_shares_and_threads_insert_different_records() {
    let store = loaded();
    let latest = Work::Mix { updates: 0, modifies: 0, inserts: 5 };
    let mut inserted = 0;
    for thread in 0..2 {
        let (operations, effect) = run(&store, latest, Choice::Latest, thread, 10);
        let share = effect.puts as f64 / operations as f64;
        assert!((0.03..0.07).contains(&share), "{share}");
        inserted += effect.puts;
    }
    assert_eq!(store.0.lock().unwrap().len() as u64, RECORDS + inserted);
    let (operations, effect) =
        run(&store, Work::Mix { updates: 0, modifies: 50, inserts: 0 }, Choice::Zipfian, 0, 5);
    assert!((0.45..0.55).contains(&(effect.puts as f64 / operations as f64)));
    assert_eq!(store.0.lock().unwrap().len() as u64, RECORDS + inserted, "updates insert nothing");
}

#[test]
fn chunks_follow_from_the_seed_alone() {
    let (format, work) = (format(), Work::Mix { updates: 50, modifies: 0, inserts: 5 });
    let keys = |seed| {
        let mut chunk = Chunk::default();
        let part = Part { seed, ..part(0) };
        Maker::new(&format, work, Choice::Zipfian, RECORDS, part).fill(&mut chunk);
        (chunk.keys, chunk.operations.len())
    };
    assert!(keys(7) == keys(7) && keys(7) != keys(8));
}
