//! An engine of this comparison, as the cases of deletion want it.

use std::ops::ControlFlow;
use std::path::Path;

use terrace_bench::Result;
use terrace_bench::deletes::{self, Map, Subject};

use crate::store::{Direction, Durability, Engine, Opening, Store};

/// What Terrace has by default: memtables of 64 MiB, and a cache of what three of them leave of 1 GiB.
const OPENING: Opening =
    Opening { cache_bytes: 832 << 20, memtable_bytes: 64 << 20, durability: Durability::Kill };

/// Before the keys of the second map, behind all others: not every engine has several maps.
const COLD: u8 = b'~';

/// Before all keys of the cases, which begin with letters: LMDB takes no empty key.
const FIRST: &[u8] = &[0];

/// An engine with the memory that Terrace has by default.
pub struct Peer(pub Engine);

impl deletes::Engine for Peer {
    fn name(&self) -> String {
        self.0.name()
    }

    fn open(&self, path: &Path) -> Result<Box<dyn Subject>> {
        Ok(Box::new(Open(self.0.open(path, &OPENING)?)))
    }
}

struct Open(Box<dyn Store>);

impl Open {
    /// Copies the first key from `from` on in `direction`.
    fn edge(&self, from: &[u8], direction: Direction, key: &mut Vec<u8>) -> Result<bool> {
        key.clear();
        let mut is_there = false;
        self.0.scan(from, direction, &mut |found, _| {
            key.extend_from_slice(found);
            is_there = true;
            ControlFlow::Break(())
        })?;
        Ok(is_there)
    }
}

/// The key of `map` in the one map that there is.
fn placed<T>(map: Map, key: &[u8], call: impl FnOnce(&[u8]) -> anyhow::Result<T>) -> Result<T> {
    Ok(match map {
        Map::Main => call(key)?,
        Map::Cold => call(&[&[COLD], key].concat())?,
    })
}

impl Subject for Open {
    fn put(&self, map: Map, key: &[u8], value: &[u8]) -> Result<()> {
        placed(map, key, |key| self.0.put(key, value))
    }

    fn delete(&self, map: Map, key: &[u8]) -> Result<()> {
        placed(map, key, |key| self.0.delete(key))
    }

    fn delete_range(&self, from: &[u8], to: &[u8]) -> Result<bool> {
        Ok(self.0.delete_range(from, to)?)
    }

    fn first(&self, from: &[u8], key: &mut Vec<u8>) -> Result<bool> {
        self.edge(if from.is_empty() { FIRST } else { from }, Direction::Forward, key)
    }

    fn last(&self, to: &[u8], key: &mut Vec<u8>) -> Result<bool> {
        self.edge(to, Direction::Backward, key)
    }

    fn walk(&self) -> Result<u64> {
        let mut rows = 0;
        self.0.scan(FIRST, Direction::Forward, &mut |key, _| {
            if key.first() == Some(&COLD) {
                return ControlFlow::Break(());
            }
            rows += 1;
            ControlFlow::Continue(())
        })?;
        Ok(rows)
    }

    fn flush(&self) -> Result<bool> {
        Ok(self.0.flush()?)
    }

    fn compact(&self) -> Result<bool> {
        Ok(self.0.compact()?)
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(self.0.close()?)
    }
}
