//! Carts: rows that are updated at each request and moved to another keyspace when they are idle.

use std::collections::VecDeque;

use super::Goal;
use super::session::{Session, key, median, value};
use crate::Result;
use crate::generator::mix;

/// Carts that are in use at any time, and requests in all.
const HOT: u64 = 50_000;
const REQUESTS: u64 = 1_000_000;

/// One in so many requests begins a new cart, and the oldest one is moved away.
const REQUESTS_PER_CART: u64 = 4;

/// Size of a value: 700 bytes with its key.
const VALUE_BYTES: usize = 684;

/// Walks over all hot rows.
const WALKS: usize = 5;

/// What a walk may take for a row, in microseconds.
const GOAL: Goal = Goal::AtMost(0.5);

/// The key of a cart: new ones come anywhere among the others.
fn cart(number: u64) -> [u8; 16] {
    key(b'c', mix(number) % 1_000_000_000_000_000)
}

pub(super) fn carts(session: &mut Session<'_>) -> Result<()> {
    let store = session.store()?;
    let (hot, requests) = (session.count(HOT, 10), session.count(REQUESTS, 100));
    let mut rng = session.rng(1);
    let mut value = value(VALUE_BYTES, &mut rng);
    let mut carts: VecDeque<u64> = (0..hot).collect();
    for &number in &carts {
        store.put(&cart(number), &value)?;
    }
    let mut next = hot;
    let mut pace = session.whole("requests", requests);
    while pace.step() {
        value[..8].copy_from_slice(&rng.next_u64().to_le_bytes());
        if rng.below(REQUESTS_PER_CART) == 0 {
            carts.push_back(next);
            store.put(&cart(next), &value)?;
            next += 1;
            if let Some(idle) = carts.pop_front() {
                store.move_to_cold(&cart(idle), &value)?;
            }
        } else {
            let number = carts[rng.below(hot) as usize];
            store.put(&cart(number), &value)?;
        }
    }
    let seconds = pace.finish();
    session.row("requests", requests as f64 / seconds, "requests/s", None);
    let mut walks = Vec::new();
    let mut pace = session.pace("walks", WALKS as u64);
    while pace.step() {
        let started = pace.seconds();
        let rows = store.walk()?;
        if rows != hot {
            return Err(format!("a walk found {rows} rows of {hot}").into());
        }
        walks.push((pace.seconds() - started) * 1e6 / rows as f64);
    }
    pace.finish();
    session.row("walk, first", walks[0], "us/row", Some(GOAL));
    session.row("walk, median", median(&mut walks), "us/row", Some(GOAL));
    store.close()
}
