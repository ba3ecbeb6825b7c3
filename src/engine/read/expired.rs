//! Ranges in which all values have expired, as the times tell that tables and memtables have of their values.
//!
//! Where values expire, whole tables have, one after the other. A walk that has come upon expired values asks here how far that
//! goes, before a job has dropped the tables.
//!
//! Invariant: in such a range no source has a value that is alive. So what hides what does not matter.

use std::sync::Arc;

use crate::catalog::{Run, TableMeta};
use crate::engine::keyspace::tree::View;
use crate::merge::Cursor as _;
use crate::store::memtable::Memtable;
use crate::types::{Key, Stamp, UpperBound};

/// Tables of a run that are looked at, at most: a walk asks again where they end.
const TABLES_MAX: usize = 4096;

/// Whether no value of `table` was written after the second `upto`.
fn is_over(table: &TableMeta, upto: u64) -> bool {
    table.timestamps.map_or(table.entries == table.tombstones, |times| u64::from(times.newest) <= upto)
}

/// Whether there are no tables, and the newest memtable has values that are alive: then a look into it costs as much as a seek.
fn is_out_of_question(view: &View, upto: u64) -> bool {
    view.version.runs().all(|(_, run)| run.is_empty()) && view.active.written_upto() > upto
}

/// The end of a range from `key` on in which all that was written was written in the second `upto` or before; `None` if
/// `key` itself is not in such a range, as far as is known.
pub(super) fn until(view: &View, key: &[u8], upto: u64) -> Option<UpperBound> {
    if is_out_of_question(view, upto) {
        return None;
    }
    let runs = view.version.runs().map(|(_, run)| end_in_run(run, key, upto));
    let memtables = view.memtables().map(|memtable| end_in_memtable(memtable, key, upto));
    // Most keys are not in such a range, as the first source tells.
    runs.chain(memtables).try_fold(UpperBound::Unbounded, |least, end| {
        let end = least.min(end);
        end.admits(key).then_some(end)
    })
}

/// The start of a range that ends before `key`, in which that is so.
pub(super) fn from(view: &View, key: &[u8], upto: u64) -> Option<Key> {
    if is_out_of_question(view, upto) {
        return None;
    }
    let runs = view.version.runs().map(|(_, run)| start_in_run(run, key, upto));
    let memtables = view.memtables().map(|memtable| start_in_memtable(memtable, key, upto));
    runs.chain(memtables).try_fold(Key::default(), |greatest, start| {
        let start = greatest.max(start);
        (*start < *key).then_some(start)
    })
}

fn end_in_run(run: &Run, key: &[u8], upto: u64) -> UpperBound {
    let mut tables = run.iter_from(run.lower_bound(key)).take(TABLES_MAX + 1).enumerate();
    let ends = |(at, table): &(usize, &Arc<TableMeta>)| *at == TABLES_MAX || !is_over(table, upto);
    let first = tables.find(ends);
    first.map_or(UpperBound::Unbounded, |(_, table)| UpperBound::Excluded(table.range.start.clone()))
}

fn start_in_run(run: &Run, key: &[u8], upto: u64) -> Key {
    // The first table that is not wholly before the key: it may begin at the key or behind it.
    let behind = run.lower_bound(key);
    let begins_before = run.get(behind).is_some_and(|table| *table.range.start < *key);
    let mut tables = (0..behind + usize::from(begins_before)).rev().take(TABLES_MAX + 1).enumerate();
    let last = tables.find_map(|(count, at)| {
        let table = run.get(at)?;
        (count == TABLES_MAX || !is_over(table, upto)).then_some(table)
    });
    match last.map(|table| &table.range.end) {
        None => Key::default(),
        Some(UpperBound::Excluded(end)) => end.clone(),
        Some(UpperBound::Unbounded) => key.into(),
    }
}

fn end_in_memtable(memtable: &Memtable, key: &[u8], upto: u64) -> UpperBound {
    let mut cursor = memtable.cursor();
    let is_over = memtable.written_upto() <= upto;
    if is_over || cursor.seek(key, Stamp::MAX).is_ok() && !cursor.valid() {
        return UpperBound::Unbounded;
    }
    UpperBound::Excluded(if cursor.valid() { cursor.key() } else { key }.into())
}

fn start_in_memtable(memtable: &Memtable, key: &[u8], upto: u64) -> Key {
    let mut cursor = memtable.cursor();
    let is_over = memtable.written_upto() <= upto;
    if is_over || cursor.seek_before(key, Stamp::MAX).is_ok() && !cursor.valid() {
        return Key::default();
    }
    if cursor.valid() { crate::types::successor(cursor.key()) } else { key.into() }
}
