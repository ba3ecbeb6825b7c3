//! Lookups of many keys at one moment.
//!
//! Each memtable and each run is asked for all keys that are still undecided, in key order. So neighbouring keys
//! share the search for their table and the fetch of their block. It touches what [`ReadPath`] holds and takes no lock
//! of the engine.

use std::sync::Arc;

use super::get::{Found, decide};
use super::path::ReadPath;
use crate::catalog::{Run, TableMeta};
use crate::engine::keyspace::tree::{Tree, View};
use crate::error::Result;
use crate::format::block::Block;
use crate::format::filter;
use crate::merge::newest_over;
use crate::slice::Slice;
use crate::store::cache::HeldBlock;
use crate::store::files::meter::ReadCause;
use crate::store::table::TableReader;
use crate::types::{Seq, Stamp};

impl ReadPath {
    /// The values of `keys`, in their order, at `upto` or at the newest visible state.
    pub(crate) fn multi_get<K: AsRef<[u8]>>(
        &self,
        tree: &Tree,
        keys: &[K],
        upto: Option<Seq>,
    ) -> Result<Vec<Option<Slice>>> {
        self.health.check_open()?;
        // The view is taken before the sequence number, as for a single lookup.
        let view = tree.view();
        tree.check_exists()?;
        let upto = upto.unwrap_or_else(|| self.visible());
        let mut values = vec![None; keys.len()];
        let mut undecided: Vec<Sought<'_>> =
            keys.iter().enumerate().map(|(place, key)| Sought::new(key.as_ref(), place)).collect();
        undecided.sort_unstable_by_key(|sought| sought.key);
        // Newest first: the first version met is the newest that is visible (I2).
        for memtable in view.memtables() {
            undecided.retain(|sought| {
                let over = memtable.newest_over(sought.key, upto);
                let decided = decide(memtable.get(sought.key, sought.hash, upto), over);
                if let Some(found) = &decided {
                    values[sought.place] = found.clone().map(|(_, value)| Slice::from_memtable(value));
                }
                decided.is_none()
            });
        }
        let mut apart = Vec::new();
        for (level, run) in view.version.runs() {
            let place = (&**view, level, run);
            let mut finger = Finger { path: self, place, upto, table: None };
            let mut left = Vec::with_capacity(undecided.len());
            for sought in undecided {
                match finger.find(&sought)? {
                    Some(found) => {
                        let is_apart = found.as_ref().is_some_and(|(stamp, _)| stamp.is_separated());
                        apart.extend(is_apart.then_some(sought.place));
                        values[sought.place] = found.map(|(_, value)| value);
                    }
                    None => left.push(sought),
                }
            }
            undecided = left;
        }
        self.follow_all(&view, &mut values, &apart)?;
        if let Some(expiry) = self.clock.expiry(tree) {
            values = values.into_iter().map(|value| expiry.keep(value?)).collect();
        }
        self.reads.looked_for_many(keys.len(), values.iter().flatten().map(|value| &value[..]));
        Ok(values)
    }
}

impl ReadPath {
    /// Puts values in the place of the pointers at `places`. The device is told of all of them before the first is read.
    fn follow_all(&self, view: &View, found: &mut [Option<Slice>], places: &[usize]) -> Result<()> {
        let values = view.version.values();
        if places.len() > 1 {
            let pointers = places.iter().filter_map(|&place| found[place].as_ref());
            pointers.for_each(|pointer| _ = self.cache.expect_value(values, pointer));
        }
        for &place in places {
            if let Some(pointer) = &found[place] {
                found[place] = Some(Slice::from_block(self.cache.value(values, pointer, ReadCause::Get)?));
            }
        }
        Ok(())
    }
}

/// A key, and where its value goes.
struct Sought<'a> {
    key: &'a [u8],
    hash: u64,
    place: usize,
}

impl<'a> Sought<'a> {
    fn new(key: &'a [u8], place: usize) -> Self {
        Self { key, hash: filter::hash(key), place }
    }
}

/// The position in a run at which the last key was looked for.
struct Finger<'a> {
    path: &'a ReadPath,
    /// The view, the level, and the run.
    place: (&'a View, u8, &'a Run),
    upto: Seq,
    table: Option<(Arc<TableMeta>, Opened)>,
}

/// An open table, and the block of it that was fetched last.
struct Opened {
    reader: Arc<TableReader>,
    /// The block, with its offset.
    block: Option<(u64, Block)>,
}

impl Finger<'_> {
    /// The run's answer for a key; `None` if older runs must be asked. Keys come in order.
    fn find(&mut self, sought: &Sought<'_>) -> Result<Option<Option<Found>>> {
        let key = sought.key;
        let (meta, mut opened) = match self.table.take() {
            Some((meta, opened)) if meta.range.end.admits(key) || planted!("table-kept-behind-its-end") => {
                (meta, opened)
            }
            _ => {
                let Some(meta) = self.place.2.find(key).filter(|meta| meta.min_seq <= self.upto) else {
                    return Ok(None);
                };
                let reader = self.path.cache.table_arc(meta)?;
                (meta.clone(), Opened { reader, block: None })
            }
        };
        let (view, level, _) = self.place;
        let found = opened.find(self.path, sought, self.upto, |path| {
            if let Some(list) = view.buffer_of(level) {
                let found = path.get_from_buffer(list, level, (sought.hash, key), self.upto)?;
                if found.is_some() {
                    return Ok(found);
                }
            }
            path.count_search(&view.version, (level, &meta), key);
            Ok(None)
        });
        self.table = Some((meta, opened));
        found
    }
}

impl Opened {
    /// The table's answer. If the filter lets the key pass, `first` is asked before.
    fn find(
        &mut self,
        path: &ReadPath,
        sought: &Sought<'_>,
        upto: Seq,
        first: impl FnOnce(&ReadPath) -> Result<Option<Option<Found>>>,
    ) -> Result<Option<Option<Found>>> {
        let Self { reader, block } = self;
        let over = newest_over(reader.range_tombstones(), sought.key, upto);
        let reader = path.cache.open_for(reader, sought.key)?;
        if !reader.may_contain(sought.hash) {
            return Ok(decide(None, over));
        }
        let found = first(path)?;
        if found.is_some() {
            return Ok(found);
        }
        Ok(decide(Self::newest(&reader, block, path, (sought.key, upto))?, over))
    }

    /// The newest version of `key` that is visible at `upto`. `last` is the block that was fetched last.
    fn newest(
        reader: &TableReader,
        last: &mut Option<(u64, Block)>,
        path: &ReadPath,
        (key, upto): (&[u8], Seq),
    ) -> Result<Option<(Stamp, Slice)>> {
        let fetch = |at| {
            let place = reader.handle(at).map_or(0, |handle| handle.offset);
            if let Some((_, block)) = last.as_ref().filter(|(last, _)| *last == place) {
                return Ok(HeldBlock::own(block.clone()));
            }
            let block = path.cache.block(reader, at, ReadCause::Get)?;
            *last = Some((place, Block::clone(&block)));
            Ok(block)
        };
        let found = reader.find(key, Stamp::upto(upto), fetch)?;
        Ok(found.map(|(block, entry)| {
            (reader.stamp(block.stamp(entry)), Slice::from_block(block.pin_value(entry)))
        }))
    }
}
