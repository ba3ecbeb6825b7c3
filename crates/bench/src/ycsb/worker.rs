//! One load thread: draws operations, times them, and verifies what they return.
//!
//! Drawing, key and value building and verification lie outside the timed part of an operation but inside the loop, so
//! that throughput is what a client of that work would see; [`harness_nanos`] says what they cost.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::chooser::{Choosers, LengthChooser, RecordChooser};
use super::keys::KeyFormat;
use super::ledger::Ledger;
use super::values::ValueFormat;
use super::workload::{Mix, Operation};
use crate::Result;
use crate::generator::Rng;
use crate::latency::Latency;
use crate::recording::Probe;
use crate::store::{Records, Store};

/// Operations between two looks at the clock for the progress display and at the order to stop.
const BEAT: u64 = 64;

/// Before an intended start, the time that is waited out on the processor, because sleeping overshoots.
const SPIN: Duration = Duration::from_micros(100);

/// The state that one phase's load threads share.
pub struct Load<'a> {
    pub store: &'a dyn Store,
    pub ledger: &'a Ledger,
    pub keys: &'a KeyFormat,
    pub values: &'a ValueFormat,
    pub mix: &'a Mix,
    pub lengths: &'a LengthChooser,
    /// Inserts stop before this record.
    pub insert_limit: u64,
    /// Whether versions seen by a scan can be held against the ledger as it stands after the scan.
    pub scans_are_current: bool,
    pub started: Instant,
    pub deadline: Option<Instant>,
    /// Time between two operations of one thread in an open loop.
    pub pace: Option<Duration>,
    pub done: AtomicU64,
    pub stop: AtomicBool,
}

/// The result of a load thread.
#[derive(Default)]
pub struct Findings {
    pub operations: u64,
    pub verified: u64,
    pub wrong: u64,
    /// The first few wrong answers, described.
    pub examples: Vec<String>,
}

impl Findings {
    const EXAMPLES_MAX: usize = 5;

    pub fn merge(&mut self, other: Self) {
        self.operations += other.operations;
        self.verified += other.verified;
        self.wrong += other.wrong;
        self.examples.extend(other.examples);
        self.examples.truncate(Self::EXAMPLES_MAX);
    }

    fn note(&mut self, verdict: Result<(), String>) {
        match verdict {
            Ok(()) => self.verified += 1,
            Err(what) => {
                self.wrong += 1;
                if self.examples.len() < Self::EXAMPLES_MAX {
                    self.examples.push(what);
                }
            }
        }
    }
}

/// One load thread.
pub struct Worker<'a> {
    load: &'a Load<'a>,
    rng: Rng,
    records: Choosers,
    last_key: LastKey,
    findings: Findings,
    probe: Probe,
    key: Vec<u8>,
    value: Vec<u8>,
    expected: Vec<u8>,
    scanned: Records,
}

impl<'a> Worker<'a> {
    pub fn new(load: &'a Load<'a>, rng: Rng, records: Choosers, last_key: LastKey, probe: Probe) -> Self {
        Self {
            load,
            rng,
            records,
            last_key,
            findings: Findings::default(),
            probe,
            key: Vec::new(),
            value: Vec::new(),
            expected: Vec::new(),
            scanned: Records::default(),
        }
    }

    /// Runs up to `quota` operations, the first of them intended at `offset` after the phase's start if paced.
    pub fn run(mut self, quota: u64, offset: Duration) -> Result<Findings> {
        let load = self.load;
        let mut intended = load.pace.map(|_| load.started + offset);
        while self.findings.operations < quota {
            if let (Some(start), Some(pace)) = (intended, load.pace) {
                if load.deadline.is_some_and(|deadline| start >= deadline) {
                    break;
                }
                wait_until(start);
                intended = Some(start + pace);
                if !self.operation(Some(start))? {
                    break;
                }
            } else if !self.operation(None)? {
                break;
            }
            self.findings.operations += 1;
            if self.findings.operations.is_multiple_of(BEAT) {
                load.done.fetch_add(BEAT, Ordering::Relaxed);
                let late = load.deadline.is_some_and(|deadline| Instant::now() >= deadline);
                if late || load.stop.load(Ordering::Relaxed) {
                    break;
                }
            }
        }
        Ok(self.findings)
    }

    /// One operation; false when there is nothing left to insert.
    fn operation(&mut self, intended: Option<Instant>) -> Result<bool> {
        let operation = self.load.mix.next(&mut self.rng);
        let timed = match operation {
            Operation::Insert => match self.insert()? {
                Some(timed) => timed,
                None => return Ok(false),
            },
            Operation::Read => self.read()?.0,
            Operation::Update => {
                let record = self.records.updated.next(self.load.ledger, &mut self.rng);
                self.load.keys.build(record, &mut self.key);
                self.update(record)?
            }
            Operation::ReadModifyWrite => {
                let (read, record) = self.read()?;
                let update = self.update(record)?;
                // The two store calls back to back, without the verification between them.
                Timed { start: update.start - (read.end - read.start), end: update.end }
            }
            Operation::Scan => self.scan()?,
        };
        let latency = timed.end.saturating_duration_since(intended.unwrap_or(timed.start));
        self.probe.record(operation as usize, latency);
        Ok(true)
    }

    /// Chooses a record to read and builds its key.
    fn choose(&mut self) -> u64 {
        let record = self.records.asked.next(self.load.ledger, &mut self.rng);
        self.load.keys.build(record, &mut self.key);
        record
    }

    fn read(&mut self) -> Result<(Timed, u64)> {
        let (load, record) = (self.load, self.choose());
        let oldest = load.ledger.oldest(record);
        let start = Instant::now();
        let found = load.store.get(&self.key, &mut self.value)?;
        let timed = Timed { start, end: Instant::now() };
        let verdict = if found {
            self.check_read(record, oldest)
        } else {
            Err(format!("record {record} ({}) is missing", self.key.escape_ascii()))
        };
        self.findings.note(verdict);
        Ok((timed, record))
    }

    fn update(&mut self, record: u64) -> Result<Timed> {
        let version = self.load.ledger.begin(record);
        self.load.values.fill(record, version, &mut self.value);
        let timed = self.put()?;
        self.load.ledger.acknowledge(record);
        Ok(timed)
    }

    fn insert(&mut self) -> Result<Option<Timed>> {
        let load = self.load;
        let Some(record) = load.ledger.next_insert(load.insert_limit) else { return Ok(None) };
        if record >= load.keys.capacity() {
            return Err(format!("keys of this size are used up: there are {}", load.keys.capacity()).into());
        }
        load.keys.build(record, &mut self.key);
        let version = load.ledger.begin(record);
        load.values.fill(record, version, &mut self.value);
        let timed = self.put()?;
        load.ledger.acknowledge_insert(record, (self.key.len() + self.value.len()) as u64);
        Ok(Some(timed))
    }

    fn put(&self) -> Result<Timed> {
        let start = Instant::now();
        self.load.store.put(&self.key, &self.value)?;
        Ok(Timed { start, end: Instant::now() })
    }

    fn scan(&mut self) -> Result<Timed> {
        let load = self.load;
        self.choose();
        let limit = load.lengths.next(&mut self.rng) as usize;
        self.last_key.extend(load);
        self.scanned.clear();
        let start = Instant::now();
        load.store.scan(&self.key, limit, &mut self.scanned)?;
        let timed = Timed { start, end: Instant::now() };
        let scanned = std::mem::take(&mut self.scanned);
        self.verify_scan(&scanned, limit);
        self.scanned = scanned;
        Ok(timed)
    }

    /// Order, bounds and values of what a scan from `self.key` returned, and that it did not end too early.
    fn verify_scan(&mut self, scanned: &Records, limit: usize) {
        let mut previous: Option<&[u8]> = None;
        for (key, value) in scanned.iter() {
            let order = match previous {
                None if key == self.key => Ok(()),
                None => {
                    Err(format!("a scan from {} starts at {}", self.key.escape_ascii(), key.escape_ascii()))
                }
                Some(previous) if previous < key => Ok(()),
                Some(_) => Err(format!("a scan is out of order at {}", key.escape_ascii())),
            };
            let verdict = order.and_then(|()| self.check_scanned(key, value));
            self.findings.note(verdict);
            previous = Some(key);
        }
        if scanned.len() > limit || scanned.len() < limit && previous < Some(&self.last_key.key) {
            let (got, from) = (scanned.len(), self.key.escape_ascii());
            self.findings.note(Err(format!("a scan from {from} returned {got} records instead of {limit}")));
        }
    }

    fn check_scanned(&mut self, key: &[u8], value: &[u8]) -> Result<(), String> {
        let (record, version) = self.whole(key, value)?;
        self.load.keys.build(record, &mut self.expected);
        if key != self.expected {
            return Err(format!("{} holds record {record}", key.escape_ascii()));
        }
        let oldest = if self.load.scans_are_current { self.load.ledger.oldest(record) } else { 0 };
        self.possible(record, version, oldest)
    }

    fn check_read(&self, record: u64, oldest: u32) -> Result<(), String> {
        let (found, version) = self.whole(&self.key, &self.value)?;
        if found != record {
            return Err(format!("record {record} holds record {found}"));
        }
        self.possible(record, version, oldest)
    }

    /// The record and the version in `value`, if it is whole.
    fn whole(&self, key: &[u8], value: &[u8]) -> Result<(u64, u32), String> {
        let damaged = || format!("the value of {} is damaged ({} bytes)", key.escape_ascii(), value.len());
        self.load.values.check(value).ok_or_else(damaged)
    }

    /// Whether a read may have seen `version`: not before `oldest`, nor after the newest begun.
    fn possible(&self, record: u64, version: u32, oldest: u32) -> Result<(), String> {
        let newest = self.load.ledger.newest(record);
        if version > 0 && (oldest..=newest).contains(&version) {
            Ok(())
        } else {
            Err(format!("record {record} has version {version}, expected {oldest} to {newest}"))
        }
    }
}

#[derive(Clone, Copy)]
struct Timed {
    start: Instant,
    end: Instant,
}

/// The greatest key among the records that a scan must find.
#[derive(Clone, Default)]
pub struct LastKey {
    key: Vec<u8>,
    /// Records below this are taken into account.
    end: u64,
    built: Vec<u8>,
}

impl LastKey {
    /// The greatest key of the records that exist.
    pub fn of(ledger: &Ledger, keys: &KeyFormat) -> Self {
        let mut last = Self { end: ledger.records().start, ..Self::default() };
        last.extend_to(ledger.records().end, keys);
        last
    }

    fn extend(&mut self, load: &Load) {
        self.extend_to(load.ledger.records().end, load.keys);
    }

    fn extend_to(&mut self, end: u64, keys: &KeyFormat) {
        while self.end < end {
            keys.build(self.end, &mut self.built);
            if self.built > self.key {
                std::mem::swap(&mut self.key, &mut self.built);
            }
            self.end += 1;
        }
    }
}

fn wait_until(start: Instant) {
    let left = start.saturating_duration_since(Instant::now());
    if left > SPIN {
        std::thread::sleep(left - SPIN);
    }
    while Instant::now() < start {
        std::hint::spin_loop();
    }
}

/// What the load generator itself costs, in nanoseconds per operation: drawing, building key and value, two looks at the
/// clock, the histogram and the check of the value, without a store. An upper bound: no operation does all of it.
pub fn harness_nanos(
    keys: &KeyFormat,
    values: &ValueFormat,
    records: &RecordChooser,
    ledger: &Ledger,
) -> f64 {
    const OPERATIONS: u64 = 20_000;
    let (mut rng, mut records) = (Rng::new(0), records.clone());
    let (mut key, mut value, mut latency) = (Vec::new(), Vec::new(), Latency::new());
    let started = Instant::now();
    let mut whole = 0;
    for version in 1..=OPERATIONS {
        let record = if ledger.records().is_empty() { version } else { records.next(ledger, &mut rng) };
        keys.build(record, &mut key);
        values.fill(record, version as u32, &mut value);
        let start = Instant::now();
        std::hint::black_box(&key);
        latency.record(Instant::now() - start);
        whole += u64::from(values.check(std::hint::black_box(&value)).is_some());
    }
    std::hint::black_box(whole);
    started.elapsed().as_nanos() as f64 / OPERATIONS as f64
}
