//! Reads beside many range tombstones, in the memtable and in tables.

use std::time::Instant;

use super::Goal;
use super::session::{Session, Store, key, median, value};
use crate::Result;
use crate::generator::Rng;

/// Range tombstones; each deletes one row, and lies between two live ones.
const RANGES: u64 = 100_000;

/// Numbers from one live row to the next.
const STEP: u64 = 4;

/// Size of a value.
const VALUE_BYTES: usize = 100;

/// Reads of each kind.
const READS: u64 = 1000;

/// What an iterator with its first step and a lookup may take, in microseconds.
const ITERATOR_GOAL: Goal = Goal::AtMost(22.0);
const LOOKUP_GOAL: Goal = Goal::AtMost(3.6);

const LETTER: u8 = b'k';

/// Tombstones that are flushed with the rows that they delete, and tombstones that come when these are in tables.
pub(super) fn range_tombstones(session: &mut Session<'_>) -> Result<()> {
    stages(session, "together", |_| Ok(()))?;
    stages(session, "apart", |store| store.flush().map(drop))
}

fn stages(
    session: &mut Session<'_>,
    words: &str,
    between: impl FnOnce(&Store<'_>) -> Result<()>,
) -> Result<()> {
    let store = session.store()?;
    let ranges = session.count(RANGES, 2);
    let value = value(VALUE_BYTES, &mut session.rng(1));
    let mut pace = session.whole("put", ranges);
    while pace.step() {
        let row = (pace.done() - 1) * STEP;
        store.put(&key(LETTER, row), &value)?;
        store.put(&key(LETTER, row + 2), &value)?;
    }
    pace.finish();
    between(&store)?;
    let mut pace = session.whole("delete", ranges);
    while pace.step() {
        let row = (pace.done() - 1) * STEP;
        store.delete_range(&key(LETTER, row + 1), &key(LETTER, row + 3))?;
    }
    pace.finish();
    reads(session, &store, ranges, &format!("{words}, memtable"))?;
    store.flush()?;
    reads(session, &store, ranges, &format!("{words}, flushed"))?;
    store.wait_idle()?;
    reads(session, &store, ranges, &format!("{words}, idle"))?;
    store.close()
}

/// Iterators and lookups of live and of deleted rows, anywhere.
fn reads(session: &mut Session<'_>, store: &Store<'_>, ranges: u64, place: &str) -> Result<()> {
    let db = store.db()?;
    let mut rng = session.rng(2);
    let iterators = timed(session, &mut rng, ranges, |row| {
        let mut iter = db.range(&key(LETTER, row * STEP + 1)[..]..)?;
        let found = iter.advance()?.map(|(found, _)| found.to_vec());
        let expected = (row + 1 < ranges).then(|| key(LETTER, (row + 1) * STEP).to_vec());
        Ok(found == expected)
    })?;
    let live = timed(session, &mut rng, ranges, |row| Ok(db.get(key(LETTER, row * STEP))?.is_some()))?;
    let gone = timed(session, &mut rng, ranges, |row| Ok(db.get(key(LETTER, row * STEP + 2))?.is_none()))?;
    for (what, (first, median), goal) in [
        ("iterator", iterators, ITERATOR_GOAL),
        ("lookup of a live row", live, LOOKUP_GOAL),
        ("lookup of a deleted row", gone, LOOKUP_GOAL),
    ] {
        session.row(format!("{place}, {what}, first"), first, "us", None);
        session.row(format!("{place}, {what}, median"), median, "us", Some(goal));
    }
    Ok(())
}

/// The first time of `read` and the median of all, in microseconds; it says whether its answer was right.
fn timed(
    session: &Session<'_>,
    rng: &mut Rng,
    ranges: u64,
    mut read: impl FnMut(u64) -> Result<bool>,
) -> Result<(f64, f64)> {
    let mut micros = Vec::new();
    let mut pace = session.pace("reads", READS);
    while pace.step() {
        let row = rng.below(ranges);
        let started = Instant::now();
        let is_right = read(row)?;
        micros.push(started.elapsed().as_secs_f64() * 1e6);
        if !is_right {
            return Err(format!("a read of row {row} was wrong").into());
        }
    }
    pace.finish();
    Ok((micros[0], median(&mut micros)))
}
