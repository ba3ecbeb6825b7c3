//! Seeks over deleted rows, to the live row behind them or before them.

use super::Goal;
use super::session::{Session, Store, key, value};
use crate::{Error, Result};

/// Deleted rows, and the size of their values.
const ROWS: u64 = 100_000;
const VALUE_BYTES: usize = 100;

/// What a seek may take, in microseconds.
const GOAL: Goal = Goal::AtMost(20.0);

/// Large rows, those of them that are deleted, and their size.
const BIG_ROWS: u64 = 286;
const BIG_DELETED: u64 = 256;
const BIG_BYTES: usize = 16 << 20;
const BIG_GOAL: Goal = Goal::AtMost(1000.0);

/// Letters that keys begin with: of the live row before the deleted ones, of these, of the live one behind.
const BEFORE: u8 = b'a';
const DELETED: u8 = b'k';
const BEHIND: u8 = b'z';

/// Where a seek comes from.
#[derive(Clone, Copy)]
enum Direction {
    Forwards,
    Backwards,
}

/// A store with rows and their deletes, and the direction in which it is sought. Each direction has a store of its own: what
/// one seek learns would make that of the other a later one.
struct Sought<'a> {
    store: Store<'a>,
    direction: Direction,
    rows: u64,
}

/// Rows put and deleted in one memtable.
pub(super) fn memtable(session: &mut Session<'_>) -> Result<()> {
    for direction in [Direction::Forwards, Direction::Backwards] {
        let sought = Sought::put(session, direction)?;
        sought.delete(session)?;
        sought.seek(session, "memtable")?;
        sought.store.close()?;
    }
    Ok(())
}

/// Rows and deletes that are flushed together, and deletes that come when their rows are in tables.
pub(super) fn tables(session: &mut Session<'_>) -> Result<()> {
    for direction in [Direction::Forwards, Direction::Backwards] {
        let together = Sought::put(session, direction)?;
        together.delete(session)?;
        if together.store.flush()? {
            together.seek(session, "flushed together")?;
        }
        if together.store.wait_idle()? {
            together.seek(session, "idle, flushed together")?;
        }
        together.store.close()?;
        let apart = Sought::put(session, direction)?;
        let is_flushed = apart.store.flush()?;
        apart.delete(session)?;
        if is_flushed {
            apart.seek(session, "deletes in the memtable, rows in tables")?;
            apart.store.flush()?;
            apart.seek(session, "flushed apart")?;
        }
        if apart.store.wait_idle()? {
            apart.seek(session, "idle, flushed apart")?;
        } else if apart.store.compact()? {
            apart.seek(session, "compacted")?;
        }
        apart.store.close()?;
    }
    Ok(())
}

impl<'a> Sought<'a> {
    fn put(session: &Session<'a>, direction: Direction) -> Result<Self> {
        let (store, rows) = (session.store()?, session.count(ROWS, 2));
        let value = value(VALUE_BYTES, &mut session.rng(1));
        store.put(&key(BEFORE, 0), &value)?;
        let mut pace = session.whole("put", rows);
        while pace.step() {
            store.put(&key(DELETED, pace.done() - 1), &value)?;
        }
        pace.finish();
        store.put(&key(BEHIND, 0), &value)?;
        Ok(Self { store, direction, rows })
    }

    fn delete(&self, session: &Session<'_>) -> Result<()> {
        let mut pace = session.whole("delete", self.rows);
        while pace.step() {
            self.store.delete(&key(DELETED, pace.done() - 1))?;
        }
        pace.finish();
        Ok(())
    }

    fn seek(&self, session: &mut Session<'_>, place: &str) -> Result<()> {
        let mut found = Vec::new();
        let (from, expected, words) = match self.direction {
            Direction::Forwards => (key(DELETED, 0), key(BEHIND, 0), "forwards"),
            Direction::Backwards => (key(DELETED, self.rows - 1), key(BEFORE, 0), "backwards"),
        };
        session.reads(&format!("{place}, {words}"), GOAL, || {
            match self.direction {
                Direction::Forwards => self.store.first(&from, &mut found)?,
                Direction::Backwards => self.store.last(&from, &mut found)?,
            };
            if found == expected { Ok(()) } else { Err(wrong(&found)) }
        })
    }
}

/// Large rows, most of them deleted.
pub(super) fn big_rows(session: &mut Session<'_>) -> Result<()> {
    let store = session.store()?;
    let rows = session.count(BIG_ROWS, 2);
    let deleted = (rows * BIG_DELETED / BIG_ROWS).max(1);
    let mut rng = session.rng(1);
    let mut value = value(BIG_BYTES, &mut rng);
    let mut pace = session.whole("put", rows);
    while pace.step() {
        value[..8].copy_from_slice(&rng.next_u64().to_le_bytes());
        store.put(&key(DELETED, pace.done() - 1), &value)?;
    }
    pace.finish();
    drop(value);
    for row in 0..deleted {
        store.delete(&key(DELETED, row))?;
    }
    let mut found = Vec::new();
    let mut seek = || {
        store.first(&key(DELETED, 0), &mut found)?;
        if found == key(DELETED, deleted) { Ok(()) } else { Err(wrong(&found)) }
    };
    session.reads("deletes in the memtable", BIG_GOAL, &mut seek)?;
    if store.flush()? {
        session.reads("flushed", BIG_GOAL, &mut seek)?;
    }
    if store.wait_idle()? {
        session.reads("idle", BIG_GOAL, &mut seek)?;
    }
    store.close()
}

pub(super) fn wrong(found: &[u8]) -> Error {
    format!("a seek came to {:?}", String::from_utf8_lossy(found)).into()
}
