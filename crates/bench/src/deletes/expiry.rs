//! Seeks over rows whose time to live is over.

use std::time::{Duration, Instant};

use terrace::{Keyspace, KeyspaceOptions};

use super::Goal;
use super::seek::wrong;
use super::session::{Session, key, value};
use crate::Result;

/// Rows that expire, and the size of a value.
const ROWS: u64 = 1_500_000;
const VALUE_BYTES: usize = 100;

/// Time to live in seconds. It is divided as rows are, but is never less than one.
const TTL_S: u64 = 4;

/// The clock of a store counts whole seconds, so rows are gone so much later.
const ROUNDING: Duration = Duration::from_secs(1);

/// What a seek may take, in microseconds.
const GOAL: Goal = Goal::AtMost(20.0);

const EXPIRED: u8 = b'k';
const BEHIND: u8 = b'z';

/// A live row is put anew so often that it does not expire.
const RENEWAL: Duration = Duration::from_millis(500);

/// Nothing behind the expired rows, and a live row; each in a store of its own, so that both have a first seek.
pub(super) fn expiry(session: &mut Session<'_>) -> Result<()> {
    for has_live in [false, true] {
        let store = session.store()?;
        let rows = session.count(ROWS, 20);
        let ttl = Duration::from_secs(session.count(TTL_S, 1));
        let options = KeyspaceOptions { ttl: Some(ttl), ..KeyspaceOptions::default() };
        let sessions = store.db()?.keyspace_with("sessions", options)?;
        let row = value(VALUE_BYTES, &mut session.rng(1));
        let mut pace = session.whole("put", rows);
        while pace.step() {
            sessions.put(key(EXPIRED, pace.done() - 1), &row)?;
        }
        pace.finish();
        std::thread::sleep(ttl + ROUNDING);
        let words = if has_live { "a live row behind" } else { "nothing behind" };
        let mut live = Live { keyspace: &sessions, row: &row, put: None };
        let mut seek = |has_live: bool| {
            if has_live {
                live.renew()?;
            }
            let mut iter = sessions.range(&key(EXPIRED, 0)[..]..)?;
            let found = iter.advance()?.map(|(key, _)| key.to_vec());
            let expected = has_live.then(|| key(BEHIND, 0).to_vec());
            if found == expected { Ok(()) } else { Err(wrong(&found.unwrap_or_default())) }
        };
        session.reads(&format!("expired, {words}"), GOAL, || seek(has_live))?;
        store.db()?.wait_idle()?;
        session.reads(&format!("idle, {words}"), GOAL, || seek(has_live))?;
        drop(sessions);
        store.close()?;
    }
    Ok(())
}

/// The live row.
struct Live<'a> {
    keyspace: &'a Keyspace,
    row: &'a [u8],
    put: Option<Instant>,
}

impl Live<'_> {
    /// Puts it if it was not put for some time.
    fn renew(&mut self) -> Result<()> {
        if self.put.is_none_or(|put| put.elapsed() >= RENEWAL) {
            self.keyspace.put(key(BEHIND, 0), self.row)?;
            self.put = Some(Instant::now());
        }
        Ok(())
    }
}
