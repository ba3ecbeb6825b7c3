//! A client of a store that records its calls and their answers.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use terrace::env::Env;
use terrace::env::sync::Mutex;
use terrace::{
    Db, Durability, Error, ErrorKind, Isolation, Keyspace, Snapshot, TransactionOptions, WriteBatch,
};

use super::history::{ABSENT, Call, Clock, Slot, State, Value};
use crate::common::Random;

/// Places of the default keyspace and, behind them, of another one.
const DEFAULT_SLOTS: usize = 6;
pub const SLOTS: usize = DEFAULT_SLOTS + 3;

/// Keyspaces that come and go, one after another, take places behind those: one says that it is there, others are its keys.
pub const PASSING_MAX: usize = 6;
const PASSING_SLOTS: usize = 3;
pub const ALL_SLOTS: usize = SLOTS + PASSING_MAX * PASSING_SLOTS;

const SERIALIZABLE: TransactionOptions = TransactionOptions { isolation: Isolation::Serializable };

/// How a client, as the store behind it might, does less than it says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flaw {
    None,
    /// Lookups at a moment of the past.
    StaleReads,
    /// Answers before the write is made.
    HastyAnswers,
    /// A batch is several writes.
    TornBatches,
    /// A lookup of several keys is several lookups.
    TornReads,
    /// A scan that is begun again half way.
    TornScans,
    /// A transaction whose reads nobody checks.
    BlindCommits,
    /// Synced writes are not.
    Unsynced,
}

/// The store is closed.
pub struct Closed;

/// A keyspace that comes and goes.
#[derive(Clone)]
pub struct Passing {
    pub keyspace: Keyspace,
    /// Where its places begin.
    pub first: Slot,
}

/// What clients share.
#[derive(Clone)]
pub struct Shared {
    pub env: Arc<dyn Env>,
    pub db: Db,
    pub other: Keyspace,
    pub passing: Arc<Mutex<Option<Passing>>>,
    pub clock: Arc<Clock>,
    pub flaw: Flaw,
}

pub struct Client {
    pub shared: Shared,
    pub number: usize,
    pub random: Random,
    pub calls: Vec<Call>,
    /// A moment, and the call that chose it.
    held: Option<(Snapshot, Call)>,
}

fn key(slot: Slot) -> String {
    format!("k{slot}")
}

/// The place of a key, unless it is one of those in between.
fn slot_of(found: &[u8]) -> Option<Slot> {
    (0..SLOTS).find(|slot| key(*slot).as_bytes() == found)
}

/// A value that says its number and is large enough that a few hundred make every kind of job run.
fn encode(value: Value) -> Vec<u8> {
    let mut bytes = value.to_le_bytes().to_vec();
    bytes.resize(40 + (value % 7 * 90) as usize, value as u8);
    bytes
}

fn decode(bytes: Option<impl AsRef<[u8]>>) -> Value {
    bytes.map_or(ABSENT, |bytes| {
        let bytes = bytes.as_ref();
        let value = bytes.first_chunk().map_or(Value::MAX, |first| Value::from_le_bytes(*first));
        assert!(bytes == encode(value), "not a value that anybody has written: {bytes:?}");
        value
    })
}

/// All that a store has in the places that stay.
pub fn dump(db: &Db) -> State {
    let other = db.keyspace("other").unwrap();
    let read = |slot| if slot < DEFAULT_SLOTS { db.get(key(slot)) } else { other.get(key(slot)) };
    (0..SLOTS).map(|slot| decode(read(slot).unwrap())).chain([ABSENT; ALL_SLOTS - SLOTS]).collect()
}

/// The same, as one read.
pub fn whole(state: &State) -> Vec<(Slot, Value)> {
    state.iter().copied().enumerate().take(SLOTS).collect()
}

impl Shared {
    /// What was in a place at a moment.
    fn get_at(&self, snapshot: &Snapshot, slot: Slot) -> Result<Value, Error> {
        let other = || snapshot.keyspace(&self.other);
        Ok(decode(if slot < DEFAULT_SLOTS { snapshot.get(key(slot)) } else { other().get(key(slot)) }?))
    }

    fn get(&self, slot: Slot) -> Result<Value, Error> {
        Ok(decode(if slot < DEFAULT_SLOTS { self.db.get(key(slot)) } else { self.other.get(key(slot)) }?))
    }

    fn batch(&self, ops: &[(Slot, Value)]) -> WriteBatch {
        let mut batch = WriteBatch::new();
        for &(slot, value) in ops {
            match (slot < DEFAULT_SLOTS, value) {
                (true, ABSENT) => batch.delete(key(slot)),
                (true, value) => batch.put(key(slot), encode(value)),
                (false, ABSENT) => batch.delete_in(&self.other, key(slot)),
                (false, value) => batch.put_in(&self.other, key(slot), encode(value)),
            };
        }
        batch
    }

    /// Gives others a chance.
    pub fn pause(&self) {
        self.env.sleep(Duration::ZERO);
    }
}

/// What came of a call: closing is the end, losing against another transaction is not.
fn settle<T>(result: Result<T, Error>) -> Result<Result<T, ErrorKind>, Closed> {
    match result {
        Ok(value) => Ok(Ok(value)),
        Err(error) => match error.kind() {
            ErrorKind::Closed => Err(Closed),
            kind @ (ErrorKind::Conflict | ErrorKind::NotFound) => Ok(Err(kind)),
            _ => panic!("{error}"),
        },
    }
}

impl Client {
    pub fn new(shared: Shared, number: usize, random: Random) -> Self {
        Self { shared, number, random, calls: Vec::new(), held: None }
    }

    /// Makes a call and tells when. What it saw and wrote is for the caller to say.
    pub fn call<T>(
        &self,
        name: &'static str,
        call: impl FnOnce(&Shared) -> Result<T, Error>,
    ) -> Result<(Result<T, ErrorKind>, Call), Closed> {
        let Self { shared, number, .. } = self;
        shared.pause();
        let invoked = shared.clock.tick();
        shared.pause();
        let answer = settle(call(shared))?;
        shared.pause();
        let returned = Some(shared.clock.tick());
        Ok((answer, Call { name, client: *number, invoked, returned, ..Call::default() }))
    }

    /// Makes a call that neither loses nor misses anything.
    pub fn make(
        &self,
        name: &'static str,
        call: impl FnOnce(&Shared) -> Result<(), Error>,
    ) -> Result<Call, Closed> {
        let (answer, call) = self.call(name, call)?;
        assert_eq!(answer, Ok(()), "{call:?}");
        Ok(call)
    }

    fn below(&mut self, end: usize) -> usize {
        self.random.below(end as u64) as usize
    }

    /// Some places of those that stay, in order, at least one.
    fn slots(&mut self, max: usize) -> Vec<Slot> {
        let mut slots: Vec<Slot> = (0..1 + self.below(max)).map(|_| self.below(SLOTS)).collect();
        slots.sort_unstable();
        slots.dedup();
        slots
    }

    /// A value that nobody has written yet, or nothing.
    fn value(&mut self) -> Value {
        if self.random.below(4) == 0 { ABSENT } else { self.shared.clock.tick() }
    }

    fn ops(&mut self, max: usize) -> Vec<(Slot, Value)> {
        self.slots(max).into_iter().map(|slot| (slot, self.value())).collect()
    }

    /// Whether the next write asks for a sync.
    fn durable(&mut self) -> bool {
        self.random.below(6) == 0
    }

    /// One of all the things that a client may do.
    pub fn step(&mut self) -> Result<(), Closed> {
        match self.random.below(20) {
            0..=3 => self.write("write", 1),
            4..=6 => self.write("batch", 5),
            7 => self.delete_range(),
            8..=9 => self.get(),
            10 => self.multi_get(),
            11..=12 => self.look_back(),
            13..=14 => self.scan(),
            15..=16 => self.transact(),
            17 => self.update(),
            18 => self.pass_by(),
            _ => match self.random.below(3) {
                0 => self.sync(),
                _ => self.ingest(),
            },
        }
    }

    fn write(&mut self, name: &'static str, max: usize) -> Result<(), Closed> {
        let (ops, durable) = (self.ops(max), self.durable());
        let flaw = self.shared.flaw;
        let durability =
            if durable && flaw != Flaw::Unsynced { Durability::Synced } else { Durability::Buffered };
        let parts = if flaw == Flaw::TornBatches { 1 } else { ops.len() };
        let work = |shared: &Shared| {
            ops.chunks(parts).try_for_each(|ops| shared.db.write_with(shared.batch(ops), durability))
        };
        let call = if flaw == Flaw::HastyAnswers {
            let call = self.make(name, |_| Ok(()))?;
            self.make(name, work)?;
            call
        } else {
            self.make(name, work)?
        };
        self.calls.push(Call { wrote: ops, durable, ..call });
        Ok(())
    }

    fn range(&mut self) -> Range<Slot> {
        let first = self.below(DEFAULT_SLOTS - 1);
        first..first + 2 + self.below(DEFAULT_SLOTS - 1 - first)
    }

    fn delete_range(&mut self) -> Result<(), Closed> {
        let (range, rest) = (self.range(), self.ops(2));
        let call = self.make("range delete", |shared| {
            let mut batch = WriteBatch::new();
            batch.delete_range(key(range.start)..key(range.end));
            for &(slot, value) in rest.iter().filter(|(slot, _)| *slot < DEFAULT_SLOTS) {
                match value {
                    ABSENT => batch.delete(key(slot)),
                    _ => batch.put(key(slot), encode(value)),
                };
            }
            shared.db.write(batch)
        })?;
        let mut wrote: BTreeMap<Slot, Value> = range.map(|slot| (slot, ABSENT)).collect();
        wrote.extend(rest.into_iter().filter(|(slot, _)| *slot < DEFAULT_SLOTS));
        self.calls.push(Call { wrote: wrote.into_iter().collect(), ..call });
        Ok(())
    }

    fn get(&mut self) -> Result<(), Closed> {
        let slot = self.below(SLOTS);
        if self.shared.flaw == Flaw::StaleReads
            && let Some((snapshot, _)) = &self.held
        {
            let (found, call) = self.call("get", |shared| shared.get_at(snapshot, slot))?;
            self.calls.extend(found.map(|value| Call { saw: vec![(slot, value)], ..call }));
            return Ok(());
        }
        let (found, call) = self.call("get", |shared| shared.get(slot))?;
        self.calls.extend(found.map(|value| Call { saw: vec![(slot, value)], ..call }));
        Ok(())
    }

    fn multi_get(&mut self) -> Result<(), Closed> {
        let slots: Vec<Slot> = self.slots(6).into_iter().filter(|slot| *slot < DEFAULT_SLOTS).collect();
        let (found, call) = self.call("multi_get", |shared| {
            if shared.flaw == Flaw::TornReads {
                return slots.iter().map(|slot| shared.get(*slot).inspect(|_| shared.pause())).collect();
            }
            let found = shared.db.multi_get(slots.iter().map(|slot| key(*slot)))?;
            Ok(found.into_iter().map(decode).collect::<Vec<_>>())
        })?;
        self.calls.extend(found.map(|found| Call { saw: slots.into_iter().zip(found).collect(), ..call }));
        Ok(())
    }

    /// Takes a snapshot, or reads the one that it has: whenever that is, it shows the moment at which it was taken.
    fn look_back(&mut self) -> Result<(), Closed> {
        if let Some((snapshot, chosen)) = &self.held {
            let mut saw = Vec::new();
            for slot in 0..SLOTS {
                let found = settle(self.shared.get_at(snapshot, slot))?;
                saw.extend(found.map(|value| (slot, value)));
                self.shared.pause();
            }
            self.calls.push(Call { saw, ..chosen.clone() });
        }
        if self.random.below(2) == 0 {
            self.held = None;
            let (snapshot, chosen) = self.call("snapshot", |shared| Ok(shared.db.snapshot()))?;
            self.held = snapshot.ok().map(|snapshot| (snapshot, chosen));
        }
        Ok(())
    }

    /// Walks over a few keys, in either direction, while others write. Its moment is that of its beginning.
    fn scan(&mut self) -> Result<(), Closed> {
        let (range, back) = (self.range(), self.random.below(2) == 0);
        let bounds = |range: &Range<Slot>| key(range.start)..key(range.end);
        let torn = self.shared.flaw == Flaw::TornScans;
        let (iter, call) = self.call("scan", |shared| shared.db.range(bounds(&range)))?;
        let Ok(mut iter) = iter else { return Ok(()) };
        let mut saw: BTreeMap<Slot, Value> = range.clone().map(|slot| (slot, ABSENT)).collect();
        while let Some(entry) = if back { iter.next_back() } else { iter.next() } {
            let Ok((found, value)) = settle(entry)? else { return Ok(()) };
            let Some(slot) = slot_of(&found) else { continue };
            saw.insert(slot, decode(Some(value)));
            self.shared.pause();
            if torn {
                let rest = if back { range.start..slot } else { slot + 1..range.end };
                let Ok(again) = settle(self.shared.db.range(bounds(&rest)))? else { return Ok(()) };
                iter = again;
            }
        }
        self.calls.push(Call { saw: saw.into_iter().collect(), ..call });
        Ok(())
    }

    /// Looks at some keys and writes some, if nobody has changed what it has seen.
    fn transact(&mut self) -> Result<(), Closed> {
        let (slots, ops, scanned) = (self.slots(3), self.ops(2), self.range());
        let (scans, durable) = (self.random.below(3) == 0, self.durable());
        let blind = self.shared.flaw == Flaw::BlindCommits;
        let invoked = self.shared.clock.tick();
        let mut transaction = self.shared.db.transaction_with(SERIALIZABLE);
        let begun = self.shared.clock.tick();
        let mut saw = BTreeMap::new();
        for &slot in &slots {
            let found = match slot < DEFAULT_SLOTS {
                true => settle(transaction.get(key(slot)))?,
                false => settle(transaction.get_in(&self.shared.other, key(slot)))?,
            };
            saw.extend(found.map(|value| (slot, decode(value))));
            self.shared.pause();
        }
        if scans && let Ok(iter) = settle(transaction.range(key(scanned.start)..key(scanned.end)))? {
            saw.extend(scanned.map(|slot| (slot, ABSENT)));
            for entry in iter {
                let Ok((found, value)) = settle(entry)? else { return Ok(()) };
                saw.extend(slot_of(&found).map(|slot| (slot, decode(Some(value)))));
            }
        }
        for &(slot, value) in &ops {
            match (slot < DEFAULT_SLOTS, value) {
                (true, ABSENT) => transaction.delete(key(slot)),
                (true, value) => transaction.put(key(slot), encode(value)),
                (false, ABSENT) => transaction.delete_in(&self.shared.other, key(slot)),
                (false, value) => transaction.put_in(&self.shared.other, key(slot), encode(value)),
            };
        }
        let durability = if durable { Durability::Synced } else { Durability::Buffered };
        let (committed, call) = self.call("transaction", |shared| match blind {
            true => shared.db.write_with(shared.batch(&ops), durability),
            false => transaction.commit_with(durability),
        })?;
        let saw = saw.into_iter().collect();
        self.calls.push(match committed {
            Ok(()) => Call { invoked, saw, wrote: ops, durable, ..call },
            // What it saw was true all the same, when it began.
            Err(_) => Call { invoked, returned: Some(begun), saw, ..call },
        });
        Ok(())
    }

    fn update(&mut self) -> Result<(), Closed> {
        let (slot, value) = (self.below(DEFAULT_SLOTS), self.shared.clock.tick());
        let (found, call) = self.call("update", |shared| {
            let mut found = ABSENT;
            shared.db.update(key(slot), |old| {
                found = decode(old);
                Some(encode(value))
            })?;
            Ok(found)
        })?;
        let saw = found.map(|found| vec![(slot, found)]);
        self.calls.extend(saw.map(|saw| Call { saw, wrote: vec![(slot, value)], ..call }));
        Ok(())
    }

    /// Writes and reads a keyspace that may be dropped meanwhile.
    fn pass_by(&mut self) -> Result<(), Closed> {
        let Some(Passing { keyspace, first }) = self.shared.passing.lock().clone() else { return Ok(()) };
        let n = self.below(PASSING_SLOTS - 1);
        let slot = first + 1 + n;
        let value = self.value();
        let (there, gone) = (vec![(first, 1)], vec![(first, ABSENT)]);
        if self.random.below(2) == 0 {
            let (found, call) = self.call("passing get", |_| keyspace.get(key(n)).map(decode))?;
            let saw = found.map_or(gone, |value| [there, vec![(slot, value)]].concat());
            self.calls.push(Call { saw, ..call });
        } else {
            let mut ops = vec![(self.below(SLOTS), value)];
            let (written, call) = self.call("passing batch", |shared| {
                let mut batch = shared.batch(&ops);
                match value {
                    ABSENT => batch.delete_in(&keyspace, key(n)),
                    value => batch.put_in(&keyspace, key(n), encode(value)),
                };
                shared.db.write(batch)
            })?;
            ops.push((slot, value));
            self.calls.push(match written {
                Ok(()) => Call { saw: there, wrote: ops, ..call },
                Err(_) => Call { saw: gone, ..call },
            });
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<(), Closed> {
        let call = self.make("sync", |shared| match shared.flaw {
            Flaw::Unsynced => Ok(()),
            _ => shared.db.sync(),
        })?;
        self.calls.push(Call { durable: true, ..call });
        Ok(())
    }

    fn ingest(&mut self) -> Result<(), Closed> {
        let slots = self.slots(4).into_iter().filter(|slot| *slot < DEFAULT_SLOTS);
        let ops: Vec<_> = slots.map(|slot| (slot, self.shared.clock.tick())).collect();
        let call = self.make("ingest", |shared| {
            let mut ingest = shared.db.ingest()?;
            ops.iter().try_for_each(|&(slot, value)| ingest.push(key(slot), encode(value)))?;
            ingest.finish()
        })?;
        self.calls.push(Call { durable: !ops.is_empty(), wrote: ops, ..call });
        Ok(())
    }
}
