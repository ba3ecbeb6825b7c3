//! A history: the calls of a store's clients, with their answers and times.
//!
//! A call takes effect at one moment: there it sees what it saw and makes what it wrote, whether it is a put, a
//! lookup of many keys, a scan or the commit of a transaction.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// A place for a value: a key of a keyspace, or whether a keyspace exists.
pub type Slot = usize;

/// What is in a place; every write has a number of its own.
pub type Value = u64;

/// Nothing is there.
pub const ABSENT: Value = 0;

/// What is in each place.
pub type State = Vec<Value>;

/// A counter by which the ends of calls are ordered as they happened.
pub struct Clock(AtomicU64);

impl Default for Clock {
    fn default() -> Self {
        Self(AtomicU64::new(ABSENT + 1))
    }
}

impl Clock {
    /// The next moment.
    pub fn tick(&self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst)
    }
}

/// A call of one client.
#[derive(Clone, Default)]
pub struct Call {
    pub name: &'static str,
    pub client: usize,
    /// Its moment is after this.
    pub invoked: u64,
    /// Its moment is before this. Without an answer it has any later moment, or none.
    pub returned: Option<u64>,
    pub saw: Vec<(Slot, Value)>,
    pub wrote: Vec<(Slot, Value)>,
    /// Survives a power cut after its answer, as does all that came before it.
    pub durable: bool,
}

impl Call {
    pub fn is_read(&self) -> bool {
        self.wrote.is_empty()
    }

    /// Whether a power cut must keep it.
    pub fn is_durable(&self) -> bool {
        self.durable && self.returned.is_some()
    }

    /// Whether it sees in `state` what it saw.
    pub fn agrees(&self, state: &State) -> bool {
        self.saw.iter().all(|&(slot, value)| state[slot] == value)
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, client, invoked, saw, wrote, .. } = self;
        let durable = if self.durable { ", durable" } else { "" };
        let returned = self.returned.map_or("?".into(), |moment| moment.to_string());
        write!(f, "client {client}, {invoked}..{returned}: {name} saw {saw:?} wrote {wrote:?}{durable}")
    }
}

/// What was known when something happened, at one of `moments`: later calls have not been made, and those that may have
/// been under way have no answer.
pub fn known_at(moments: &Range<u64>, calls: &[Call]) -> Vec<Call> {
    let known = calls.iter().filter(|call| call.invoked < moments.end).cloned().map(|mut call| {
        call.returned = call.returned.filter(|returned| *returned < moments.start);
        call
    });
    known.filter(|call| call.returned.is_some() || !call.is_read()).collect()
}
