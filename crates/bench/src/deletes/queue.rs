//! Queues and stacks: two rows are pushed, two are popped, for ever. A pop reads the first key and deletes it.

use std::collections::VecDeque;

use super::seek::wrong;
use super::session::{Session, Store, key, value};
use super::{Goal, Point, Quantity};
use crate::Result;

/// Pops in all.
const POPS: u64 = 10_000_000;

/// Pops a second that a queue should make.
const GOAL: f64 = 100_000.0;

/// The last tenth should be as fast as the first: as much of it at least, for a machine is not quiet.
const FLAT: f64 = 0.8;

/// Rows that lie in a queue between pushes.
const BACKLOG: u64 = 1000;

/// Pushes and pops in turn.
const TURN: u64 = 2;

/// Size of a value.
const VALUE_BYTES: usize = 100;

/// Pops between two snapshots, and how many of these are held.
const SNAPSHOT_POPS: u64 = 10_000;
const SNAPSHOTS: usize = 10;

/// Queues in one keyspace.
const QUEUES: u64 = 64;

/// Time between two points of a course, in seconds.
const POINT_S: f64 = 0.1;

/// Letter that the keys of a single queue begin with.
const LETTER: u8 = b'q';

pub(super) fn queue(session: &mut Session<'_>) -> Result<()> {
    single(session, |store, found, _| {
        store.first(&[], found)?;
        store.delete(found)
    })
}

pub(super) fn with_snapshots(session: &mut Session<'_>) -> Result<()> {
    let every = session.count(SNAPSHOT_POPS, 1);
    let mut held = VecDeque::new();
    single(session, |store, found, pop| {
        if pop % every == 0 {
            held.push_back(store.db()?.snapshot());
            if held.len() > SNAPSHOTS {
                held.pop_front();
            }
        }
        store.first(&[], found)?;
        store.delete(found)
    })
}

pub(super) fn by_first(session: &mut Session<'_>) -> Result<()> {
    single(session, |store, found, _| {
        let first = store.db()?.first()?;
        keep(found, first.as_ref().map(|(key, _)| &key[..]));
        store.delete(found)
    })
}

/// A cursor sees one moment, so each pop has its own.
pub(super) fn by_cursor(session: &mut Session<'_>) -> Result<()> {
    single(session, |store, found, _| {
        let mut cursor = store.db()?.cursor(..)?;
        keep(found, cursor.seek_to_first()?.map(|(key, _)| key));
        store.delete(found)
    })
}

pub(super) fn in_transactions(session: &mut Session<'_>) -> Result<()> {
    single(session, |store, found, _| {
        let mut transaction = store.db()?.transaction();
        let first = transaction.iter()?.next().transpose()?;
        keep(found, first.as_ref().map(|(key, _)| &key[..]));
        transaction.delete(&found[..]);
        Ok(transaction.commit()?)
    })
}

/// Replaces `found`; it is empty where nothing was.
fn keep(found: &mut Vec<u8>, key: Option<&[u8]>) {
    found.clear();
    found.extend_from_slice(key.unwrap_or_default());
}

/// One queue. `pop` deletes its first key, which it leaves in the buffer; it is told the number of the pop.
fn single<'a>(
    session: &mut Session<'a>,
    mut pop: impl FnMut(&Store<'a>, &mut Vec<u8>, u64) -> Result<()>,
) -> Result<()> {
    let value = value(VALUE_BYTES, &mut session.rng(1));
    let store = session.store()?;
    for row in 0..BACKLOG {
        store.put(&key(LETTER, row), &value)?;
    }
    let mut found = Vec::new();
    let push = |number| store.put(&key(LETTER, BACKLOG + number), &value);
    measure(session, push, |number| {
        pop(&store, &mut found, number)?;
        if found == key(LETTER, number) { Ok(()) } else { Err(wrong(&found)) }
    })?;
    // What the closures hold of the store goes first.
    drop(pop);
    store.close()
}

/// A stack: what was pushed last is popped first.
pub(super) fn stack(session: &mut Session<'_>) -> Result<()> {
    let value = value(VALUE_BYTES, &mut session.rng(1));
    let store = session.store()?;
    for row in 0..BACKLOG {
        store.put(&key(LETTER, row), &value)?;
    }
    let mut found = Vec::new();
    // Rows are never put again, so each pop leaves a deleted key behind the end.
    let push = |number| store.put(&key(LETTER, BACKLOG + number), &value);
    measure(session, push, |number| {
        store.last(&[0xff; 16], &mut found)?;
        let (turn, place) = (number / TURN, number % TURN);
        if found != key(LETTER, BACKLOG + turn * TURN + (TURN - 1 - place)) {
            return Err(wrong(&found));
        }
        store.delete(&found)
    })?;
    store.close()
}

/// Many queues in one keyspace, in turn.
pub(super) fn many(session: &mut Session<'_>) -> Result<()> {
    let value = value(VALUE_BYTES, &mut session.rng(1));
    let store = session.store()?;
    let prefix = |number: u64| [b'q', b'a' + (number % QUEUES / 8) as u8, b'a' + (number % 8) as u8, b'/'];
    let row = |number: u64| [&prefix(number)[..], &key(LETTER, number / QUEUES)[..]].concat();
    let backlog = BACKLOG.next_multiple_of(QUEUES);
    for number in 0..backlog {
        store.put(&row(number), &value)?;
    }
    let mut found = Vec::new();
    measure(
        session,
        |number| store.put(&row(backlog + number), &value),
        |number| {
            store.first_of_prefix(&prefix(number), &mut found)?;
            if found != row(number) {
                return Err(wrong(&found));
            }
            store.delete(&found)
        },
    )?;
    store.close()
}

/// Pushes two and pops two until the pops or the time have come to their end.
fn measure(
    session: &mut Session<'_>,
    mut push: impl FnMut(u64) -> Result<()>,
    mut pop: impl FnMut(u64) -> Result<()>,
) -> Result<()> {
    let all = session.count(POPS, 20);
    let mut pace = session.pace("pop", all / TURN);
    // Seconds and pops so far.
    let mut course = vec![(0.0, 0)];
    let mut next_s = POINT_S;
    let mut done = 0;
    while pace.step() {
        for number in done..done + TURN {
            push(number)?;
        }
        for number in done..done + TURN {
            pop(number)?;
        }
        done += TURN;
        let seconds = pace.seconds();
        if seconds >= next_s {
            course.push((seconds, done));
            next_s = seconds + POINT_S;
        }
    }
    course.push((pace.finish(), done));
    report(session, &course, done);
    Ok(())
}

fn report(session: &mut Session<'_>, course: &[(f64, u64)], done: u64) {
    let whole = course.last().map_or(0.0, |last| last.0);
    let tenth = done as f64 / 10.0;
    let first = tenth / (seconds_at(course, tenth)).max(f64::MIN_POSITIVE);
    let last = tenth / (whole - seconds_at(course, 9.0 * tenth)).max(f64::MIN_POSITIVE);
    session.row("pops", done as f64, "", None);
    session.row("first tenth", first, "pops/s", Some(Goal::AtLeast(GOAL)));
    session.row("last tenth", last, "pops/s", Some(Goal::AtLeast(GOAL)));
    session.row("last tenth over first", last / first, "", Some(Goal::AtLeast(FLAT)));
    let points = course.windows(2).filter(|pair| pair[1].0 > pair[0].0);
    let points = points.map(|pair| Point {
        at_s: pair[1].0,
        figure: (pair[1].1 - pair[0].1) as f64 / (pair[1].0 - pair[0].0),
        against: GOAL,
    });
    session.course(Quantity::Pops, points.collect());
}

/// When so many pops were done, between two points as if they came evenly.
fn seconds_at(course: &[(f64, u64)], pops: f64) -> f64 {
    let after = course.iter().position(|point| point.1 as f64 >= pops).unwrap_or(course.len() - 1).max(1);
    let ((from_s, from), (to_s, to)) = (course[after - 1], course[after]);
    let share = if to > from { (pops - from as f64) / (to - from) as f64 } else { 1.0 };
    from_s + (to_s - from_s) * share.clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_between_points_are_even() {
        let course = [(0.0, 0), (1.0, 100), (3.0, 200)];
        assert_eq!(
            [0.0, 50.0, 100.0, 150.0, 200.0].map(|pops| seconds_at(&course, pops)),
            [0.0, 0.5, 1.0, 2.0, 3.0]
        );
    }
}
