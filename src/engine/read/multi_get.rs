//! Lookups of many keys at one moment.
//!
//! Each memtable and each run is asked for all keys that are still undecided, in key order. So neighbouring keys
//! share the search for their table and the fetch of their block. A run is asked for a group of keys at a time, step by step: a lookup is
//! a row of waits for memory, and those of a group pass side by side. (Psaropoulos et al., "Interleaving with Coroutines: A Practical Approach
//! for Robust Index Joins", VLDB 2018, compares ways to do so; this is its group prefetching.) It touches what [`ReadPath`] holds and takes no
//! lock of the engine.

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
use crate::store::cache::{HeldBlock, OpenTable};
use crate::store::files::meter::ReadCause;
use crate::store::table::TableReader;
use crate::types::{Seq, Stamp, TableId};

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
        for memtable in view.memtables().filter(|memtable| !memtable.is_empty()) {
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
            let asked = Asked { path: self, view: &view, level, run, upto };
            let mut left = Vec::with_capacity(undecided.len());
            let mut last = Last::default();
            for group in undecided.chunks(ABREAST) {
                asked.answer(group, &mut last, |sought, found| match found {
                    Some(found) => {
                        let is_apart = found.as_ref().is_some_and(|(stamp, _)| stamp.is_separated());
                        apart.extend(is_apart.then_some(sought.place));
                        values[sought.place] = found.map(|(_, value)| value);
                    }
                    None => left.push(sought),
                })?;
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

/// Keys for which a run is asked side by side: more waits than a processor has under way at once, about ten.
const ABREAST: usize = 16;

/// A key, and where its value goes.
#[derive(Clone, Copy)]
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

/// A run that is asked.
struct Asked<'a> {
    path: &'a ReadPath,
    view: &'a View,
    level: u8,
    run: &'a Run,
    upto: Seq,
}

/// The table of a run that may have a key, opened.
#[derive(Clone)]
struct Located<'a> {
    meta: &'a Arc<TableMeta>,
    table: OpenTable<'a>,
}

/// The table or partition that may have a key, and where in it.
struct Candidate<'a> {
    part: OpenTable<'a>,
    /// The block to look in; `None` if the filter has not let the key pass.
    block: Option<usize>,
    /// Newest range tombstone of the table over the key.
    over: Option<Seq>,
}

/// What was asked last: the next key may be there too.
#[derive(Default)]
struct Last<'a> {
    table: Option<Located<'a>>,
    block: Option<Fetched>,
}

impl<'a> Asked<'a> {
    /// Passes on the run's answer for each key of `group`: `None` if older runs must be asked. The keys come in order, at most [`ABREAST`].
    fn answer<'k>(
        &self,
        group: &[Sought<'k>],
        last: &mut Last<'a>,
        mut to: impl FnMut(Sought<'k>, Option<Option<Found>>),
    ) -> Result<()> {
        let located = self.locate(group, &mut last.table)?;
        let candidates = self.candidates(group, &located)?;
        for candidate in candidates.iter().flatten() {
            if let Some(at) = candidate.block {
                candidate.part.pointers().prefetch_block(at);
            }
        }
        for ((sought, located), candidate) in group.iter().zip(&located).zip(&candidates) {
            let found = match (located, candidate) {
                (Some(located), Some(candidate)) => self.find(sought, located, candidate, &mut last.block)?,
                _ => None,
            };
            to(*sought, found);
        }
        Ok(())
    }

    /// The tables that may have the keys of `group`.
    fn locate(
        &self,
        group: &[Sought<'_>],
        last: &mut Option<Located<'a>>,
    ) -> Result<[Option<Located<'a>>; ABREAST]> {
        let mut located = [const { None }; ABREAST];
        for (sought, place) in group.iter().zip(&mut located) {
            let is_same = last.as_ref().is_some_and(|Located { meta, .. }| {
                meta.range.end.admits(sought.key) || planted!("table-kept-behind-its-end")
            });
            if !is_same {
                let found = self.run.find(sought.key).filter(|meta| meta.min_seq <= self.upto);
                let open = |meta| Ok(Located { meta, table: self.path.cache.table(meta)? });
                *last = found.map(open).transpose()?;
            }
            place.clone_from(last);
        }
        Ok(located)
    }

    /// Those of the tables that may have the keys by their filters, and where.
    fn candidates<'l>(
        &self,
        group: &[Sought<'_>],
        located: &'l [Option<Located<'_>>; ABREAST],
    ) -> Result<[Option<Candidate<'l>>; ABREAST]> {
        let mut candidates = [const { None }; ABREAST];
        for ((sought, located), place) in group.iter().zip(located).zip(&mut candidates) {
            if let Some(Located { table, .. }) = located {
                let part = self.path.cache.open_for(table, sought.key)?;
                part.prefetch_filter(sought.hash);
                let over = newest_over(table.range_tombstones(), sought.key, self.upto);
                *place = Some(Candidate { part, block: None, over });
            }
        }
        for (sought, place) in group.iter().zip(&mut candidates) {
            if let Some(Candidate { part, block, .. }) = place
                && part.may_contain(sought.hash)
            {
                let at = part.block_for(sought.key, Stamp::upto(self.upto));
                part.pointers().prefetch(at);
                *block = Some(at);
            }
        }
        Ok(candidates)
    }

    /// The run's answer for a key. `last` is the block that was fetched last. If the filter lets the key pass, the compaction buffer of the level is asked first.
    fn find(
        &self,
        sought: &Sought<'_>,
        located: &Located<'_>,
        candidate: &Candidate<'_>,
        last: &mut Option<Fetched>,
    ) -> Result<Option<Option<Found>>> {
        let Candidate { part, block, over } = candidate;
        let Some(at) = *block else { return Ok(decide(None, *over)) };
        let key = sought.key;
        if let Some(list) = self.view.buffer_of(self.level) {
            let found = self.path.get_from_buffer(list, self.level, (sought.hash, key), self.upto)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        self.path.count_search(&self.view.version, (self.level, located.meta), key);
        let fetch = |at| self.fetch(part, at, last);
        let found = part.find_from(at, key, Stamp::upto(self.upto), fetch)?;
        let newest = found.map(|(block, entry)| {
            (part.stamp(block.stamp(entry)), Slice::from_block(block.pin_value(entry)))
        });
        Ok(decide(newest, *over))
    }

    /// Block `at`, which may be the one that was fetched last.
    fn fetch(&self, part: &TableReader, at: usize, last: &mut Option<Fetched>) -> Result<HeldBlock> {
        let place = (part.id(), part.handle(at).map_or(0, |handle| handle.offset));
        if let Some(fetched) = last.as_ref().filter(|fetched| fetched.place == place) {
            return Ok(HeldBlock::own(fetched.block.clone()));
        }
        let block = self.path.cache.block(part, at, ReadCause::Get)?;
        *last = Some(Fetched { place, block: Block::clone(&block) });
        Ok(block)
    }
}

/// A block, and where it lies.
struct Fetched {
    place: (TableId, u64),
    block: Block,
}
