//! Many small keyspaces: what it takes to create, fill, flush, reopen and drop them, and their memory.

use std::time::Instant;

use super::Goal;
use super::session::{Session, key, value};
use crate::Result;
use crate::probe::memory_bytes;

/// Keyspaces, and rows in each.
const KEYSPACES: u64 = 2000;
const ROWS: u64 = 50;

/// Size of a value.
const VALUE_BYTES: usize = 100;

/// Seconds of a flush of all, and of dropping all.
const FLUSH_GOAL: Goal = Goal::AtMost(0.3);
const DROP_GOAL: Goal = Goal::AtMost(0.1);

pub(super) fn keyspaces(session: &mut Session<'_>) -> Result<()> {
    let store = session.store()?;
    let count = session.count(KEYSPACES, 2);
    let names: Vec<String> = (0..count).map(|number| format!("keyspace {number}")).collect();
    let value = value(VALUE_BYTES, &mut session.rng(1));
    let db = store.db()?;
    let before = memory_bytes();
    let started = Instant::now();
    let keyspaces = names.iter().map(|name| db.keyspace(name)).collect::<Result<Vec<_>, _>>()?;
    session.row("create", started.elapsed().as_secs_f64(), "s", None);
    let mut pace = session.whole("put", count * ROWS);
    while pace.step() {
        let row = pace.done() - 1;
        keyspaces[(row % count) as usize].put(key(b'k', row / count), &value)?;
    }
    session.row("put", pace.finish(), "s", None);
    session.row("memory of each with rows in memtables", grown(before, count), "bytes", None);
    let started = Instant::now();
    db.flush()?;
    session.row("flush", started.elapsed().as_secs_f64(), "s", Some(FLUSH_GOAL));
    session.row("memory of each, flushed", grown(before, count), "bytes", None);
    drop(keyspaces);
    let started = Instant::now();
    let store = store.reopen()?;
    session.row("reopen", started.elapsed().as_secs_f64(), "s", None);
    session.row("memory of each, reopened", grown(before, count), "bytes", None);
    let db = store.db()?;
    let started = Instant::now();
    let (one_by_one, at_once) = names.split_at(names.len() / 2);
    for name in one_by_one {
        db.drop_keyspace(name)?;
    }
    session.row("drop half, one by one", started.elapsed().as_secs_f64(), "s", None);
    let started = Instant::now();
    db.drop_keyspaces(at_once)?;
    session.row("drop half, at once", started.elapsed().as_secs_f64(), "s", Some(DROP_GOAL));
    store.close()
}

/// By how much memory has grown for each of `count`, in bytes.
fn grown(before: u64, count: u64) -> f64 {
    memory_bytes().saturating_sub(before) as f64 / count as f64
}
