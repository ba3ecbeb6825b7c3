//! Space after deletes: a time series whose oldest day goes as a range, and rows deleted in random order.

use super::session::{Session, SpaceWatch, Store, key, value};
use super::{Goal, Quantity};
use crate::Result;
use crate::workload::Permutation;

/// Rows of a day, and the size of a value: two days are 83 MB with their keys.
const DAY_ROWS: u64 = 200_000;
const DAY_VALUE_BYTES: usize = 191;
const DAYS: u64 = 10;

/// Space over live bytes at any time of a series, and of other rows after a minute.
const SERIES_GOAL: Goal = Goal::AtMost(1.3);
const RANDOM_GOAL: Goal = Goal::AtMost(1.2);

/// Seconds of rest after the last day, and after the last delete.
const SERIES_REST_S: f64 = 5.0;
const RANDOM_REST_S: f64 = 60.0;

/// Rows of which nine of ten are deleted, and the size of a value.
const RANDOM_ROWS: u64 = 2_000_000;
const RANDOM_VALUE_BYTES: usize = 284;

const KEY_BYTES: usize = 16;
const LETTER: u8 = b'k';

/// Days are put one after another; behind each, the day before last is deleted.
pub(super) fn series(session: &mut Session<'_>) -> Result<()> {
    let store = session.store()?;
    let day_rows = session.count(DAY_ROWS, 20);
    let row_bytes = (KEY_BYTES + DAY_VALUE_BYTES) as u64;
    let mut rng = session.rng(1);
    let mut watch = SpaceWatch::start();
    let (mut rates, mut live, mut counted_from) = (Vec::new(), 0, 0);
    for day in 0..DAYS {
        let mut pace = session.whole(&format!("day {}", day + 1), day_rows);
        while pace.step() {
            let number = day * day_rows + pace.done() - 1;
            store.put(&key(LETTER, number), &value(DAY_VALUE_BYTES, &mut rng))?;
            live += row_bytes;
            watch.glance(&store, live)?;
        }
        rates.push(day_rows as f64 / pace.finish());
        watch.look(&store, live)?;
        if day >= 2 {
            delete_day(&store, (day - 2) * day_rows, day_rows)?;
            live -= day_rows * row_bytes;
        }
        watch.look(&store, live)?;
        let point = watch.last();
        session.row(format!("day {}, space over live", day + 1), point.ratio(), "", None);
        // Until two days live, what every store has at least is most of the space.
        if day == 1 {
            counted_from = watch.len() - 1;
        }
    }
    let counted = watch.since(counted_from);
    let peak = counted.iter().map(|point| point.figure).fold(0.0, f64::max);
    let ratio = counted.iter().map(super::Point::ratio).fold(0.0, f64::max);
    session.row("live at the end", live as f64 / 1e6, "MB", None);
    session.row("peak", peak / 1e6, "MB", None);
    session.row("peak over live", ratio, "", Some(SERIES_GOAL));
    session.row("first day", rates[0], "puts/s", None);
    session.row("last day", rates[rates.len() - 1], "puts/s", None);
    session.rest(&mut watch, &store, live, SERIES_REST_S)?;
    session.row("rested, space over live", watch.last().ratio(), "", Some(SERIES_GOAL));
    if store.wait_idle()? {
        watch.look(&store, live)?;
        session.row("idle, space over live", watch.last().ratio(), "", Some(SERIES_GOAL));
    }
    session.course(Quantity::Space, watch.points());
    store.close()
}

/// Deletes a day as a range, or row by row where the engine has no call for it.
fn delete_day(store: &Store<'_>, from: u64, rows: u64) -> Result<()> {
    if !store.delete_range(&key(LETTER, from), &key(LETTER, from + rows))? {
        (from..from + rows).try_for_each(|row| store.delete(&key(LETTER, row)))?;
    }
    Ok(())
}

/// Nine of ten rows are deleted in random order; then the store is left alone.
pub(super) fn random(session: &mut Session<'_>) -> Result<()> {
    let store = session.store()?;
    let rows = session.count(RANDOM_ROWS, 20);
    let row_bytes = (KEY_BYTES + RANDOM_VALUE_BYTES) as u64;
    let mut rng = session.rng(1);
    let mut watch = SpaceWatch::start();
    let mut live = 0;
    let mut pace = session.whole("put", rows);
    while pace.step() {
        store.put(&key(LETTER, pace.done() - 1), &value(RANDOM_VALUE_BYTES, &mut rng))?;
        live += row_bytes;
        watch.glance(&store, live)?;
    }
    pace.finish();
    let order = Permutation::new(rows, session.seed());
    let mut pace = session.whole("delete", rows / 10 * 9);
    while pace.step() {
        store.delete(&key(LETTER, order.at(pace.done() - 1)))?;
        live -= row_bytes;
        watch.glance(&store, live)?;
    }
    let delete_s = pace.finish();
    watch.look(&store, live)?;
    session.row("deletes", (rows / 10 * 9) as f64 / delete_s, "deletes/s", None);
    session.row("live", live as f64 / 1e6, "MB", None);
    session.row("deleted, space over live", watch.last().ratio(), "", None);
    session.rest(&mut watch, &store, live, RANDOM_REST_S)?;
    session.row("rested, space over live", watch.last().ratio(), "", Some(RANDOM_GOAL));
    if store.compact()? {
        watch.look(&store, live)?;
        session.row("compacted, space over live", watch.last().ratio(), "", Some(RANDOM_GOAL));
    }
    session.course(Quantity::Space, watch.points());
    store.close()
}
