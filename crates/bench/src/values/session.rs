//! One engine with values of one size: its store, and the phases that all sizes but mail have.

use std::time::Duration;

use tempfile::TempDir;

use super::meter::{Limit, Meter};
use super::records::{KEY_BYTES, Records, key};
use super::result::{Cell, Phase};
use super::space::Sampler;
use super::subject::{Engine, Role, Subject};
use super::{Choice, Size};
use crate::Result;
use crate::generator::{Rng, ScrambledZipfian};
use crate::probe::{forget_memory_peak, memory_bytes, memory_peak_bytes};
use crate::workload::Permutation;

/// Fewest records of a store.
const RECORDS_MIN: u64 = 4;

/// Records of mail for data of a gibibyte, at most and at least.
const MAILS: u64 = 150;
const MAILS_MIN: u64 = 5;

/// One in so many records is deleted in the end.
const DELETED: u64 = 5;

/// Streams of random numbers.
const UNIFORM: u64 = 1;
const ZIPFIAN: u64 = 2;
const READS: u64 = 3;

/// One engine with values of one size, on its way.
pub(super) struct Session<'a> {
    choice: &'a Choice,
    size: Size,
    engine: String,
    role: Role,
    /// Of the process, before there was a store.
    memory_before: u64,
    pub(super) records: Records,
    phases: Vec<Phase>,
    sampler: Sampler,
    store: Box<dyn Subject>,
    /// The last field: it goes after all that look at it.
    _dir: TempDir,
}

impl<'a> Session<'a> {
    pub(super) fn begin(engine: &dyn Engine, size: Size, choice: &'a Choice) -> Result<Self> {
        let records = Records::new(size, count(size, choice), choice.seed);
        let dir = tempfile::Builder::new().prefix("terrace-values-").tempdir_in(&choice.dir)?;
        forget_memory_peak();
        let memory_before = memory_bytes();
        let store = engine.open(dir.path(), choice.memory_bytes())?;
        Ok(Self {
            choice,
            size,
            engine: engine.name(),
            role: engine.role(),
            memory_before,
            records,
            phases: Vec::new(),
            sampler: Sampler::start(dir.path()),
            store,
            _dir: dir,
        })
    }

    /// Closes the store; all that was measured.
    pub(super) fn end(mut self, round: u32) -> Result<Cell> {
        let last = self.sampler.look()?;
        let course = self.sampler.points();
        let memory_growth_bytes = memory_peak_bytes().saturating_sub(self.memory_before);
        let ends: Vec<f64> = self.phases.iter().skip(1).map(|next| next.start_s).collect();
        for (phase, end_s) in self.phases.iter_mut().zip(ends.into_iter().chain([f64::INFINITY])) {
            let within = course.iter().filter(|point| point.at_s >= phase.start_s && point.at_s < end_s);
            // Nothing lives at the beginning of a load.
            let is_write = phase.space_rested.is_some();
            let peak = within.filter(|point| point.live_bytes > 0).map(|point| point.ratio());
            phase.space_peak = peak.reduce(f64::max).filter(|_| is_write);
        }
        self.store.close()?;
        Ok(Cell {
            engine: self.engine,
            role: self.role,
            version: String::new(),
            size: self.size,
            round,
            records: self.records.count(),
            memory_growth_bytes,
            phases: self.phases,
            space_end: last.ratio(),
            course,
            failed: None,
        })
    }

    /// All phases of a size but mail.
    pub(super) fn workload(&mut self) -> Result<()> {
        let count = self.records.count();
        let order = Permutation::new(count, self.choice.seed);
        let all = Limit { time: None, operations: count };
        self.puts("load", all, &mut |step| order.at(step))?;
        let updates = self.limit(self.choice.update_s);
        let mut rng = Rng::stream(self.choice.seed, UNIFORM);
        self.puts("uniform", updates, &mut |_| rng.below(count))?;
        let (mut rng, zipfian) = (Rng::stream(self.choice.seed, ZIPFIAN), ScrambledZipfian::new(0, count));
        self.puts("zipfian", updates, &mut |_| zipfian.next(&mut rng))?;
        self.reads("get", |session, record| session.get(record))?;
        self.reads("scan-10", |session, record| session.scan(record, 10))?;
        self.reads("scan-100", |session, record| session.scan(record, 100))?;
        self.reads("keys-100", |session, record| session.scan_keys(record, 100))?;
        self.reads("contains", |session, record| session.contains(record))?;
        self.deletes()
    }

    fn limit(&self, seconds: f64) -> Limit {
        Limit { time: Some(Duration::from_secs_f64(seconds)), operations: self.choice.operations_max }
    }

    fn meter(&self, name: &'static str, limit: Limit) -> Meter {
        let label = format!("{} {}", self.engine, self.size);
        Meter::start(name, &label, self.sampler.seconds(), limit, &*self.store)
    }

    /// A phase that puts the records that `next` names, by the number of the operation.
    pub(super) fn puts(
        &mut self,
        name: &'static str,
        limit: Limit,
        next: &mut dyn FnMut(u64) -> u64,
    ) -> Result<()> {
        let mut meter = self.meter(name, limit);
        while meter.goes_on() {
            let record = next(meter.operations());
            let value = self.records.next_value(record);
            let (key, bytes) = (key(record), (KEY_BYTES + value.len()) as u64);
            meter.time(|| self.store.put(&key, value).map(|()| (1, bytes)))?;
            self.sampler.lives(self.records.live_bytes());
        }
        self.rest(meter)
    }

    /// Deletes a fifth of the records, in random order.
    pub(super) fn deletes(&mut self) -> Result<()> {
        let count = self.records.count();
        let order = Permutation::new(count, !self.choice.seed);
        let mut meter = self.meter("delete", Limit { time: None, operations: count.div_ceil(DELETED) });
        while meter.goes_on() {
            let record = order.at(meter.operations());
            let key = key(record);
            meter.time(|| self.store.delete(&key).map(|()| (1, KEY_BYTES as u64)))?;
            self.records.forget(record);
            self.sampler.lives(self.records.live_bytes());
        }
        self.rest(meter)?;
        // What is written then is not for the bytes of keys.
        if let Some(phase) = self.phases.last_mut() {
            (phase.written_over_user, phase.told_over_user) = (None, None);
        }
        for place in [0, count - 1] {
            let record = order.at(place);
            let is_there = self.store.contains(&key(record))?;
            if is_there != self.records.is_there(record) {
                return Err(format!("record {record} is there: {is_there}").into());
            }
        }
        Ok(())
    }

    /// Ends a phase of writes: the store comes to rest, then its space is looked at.
    fn rest(&mut self, meter: Meter) -> Result<()> {
        let written_s = self.sampler.seconds();
        let mut phase = meter.finish(&*self.store, || Ok(Some(self.store.drain()?)))?;
        let rested_s = written_s + self.choice.rest_s;
        let left_s = rested_s - self.sampler.seconds();
        if left_s > 0.0 {
            std::thread::sleep(Duration::from_secs_f64(left_s));
        }
        let last = self.sampler.look()?;
        let points = self.sampler.points();
        let rested = points.iter().find(|point| point.at_s >= rested_s).unwrap_or(&last);
        phase.space_rested = Some(rested.ratio());
        self.phases.push(phase);
        Ok(())
    }

    /// A phase that reads at records drawn at random; `read` says how many rows and bytes it has seen.
    fn reads(&mut self, name: &'static str, read: impl Fn(&Self, u64) -> Result<(u64, u64)>) -> Result<()> {
        let mut rng = Rng::stream(self.choice.seed, READS);
        let mut meter = self.meter(name, self.limit(self.choice.read_s));
        while meter.goes_on() {
            let record = rng.below(self.records.count());
            meter.time(|| read(self, record))?;
        }
        self.phases.push(meter.finish(&*self.store, || Ok(None))?);
        Ok(())
    }

    fn get(&self, record: u64) -> Result<(u64, u64)> {
        let (mut bytes, mut checked) = (KEY_BYTES as u64, Ok(()));
        let is_there = self.store.get(&key(record), &mut |value| {
            bytes += value.len() as u64;
            checked = self.records.check(record, value);
        })?;
        checked?;
        if is_there { Ok((1, bytes)) } else { Err(format!("record {record} is missing").into()) }
    }

    fn contains(&self, record: u64) -> Result<(u64, u64)> {
        let is_there = self.store.contains(&key(record))?;
        if is_there { Ok((1, KEY_BYTES as u64)) } else { Err(format!("record {record} is missing").into()) }
    }

    /// Reads up to `rows` rows from `record` on.
    fn scan(&self, record: u64, rows: u64) -> Result<(u64, u64)> {
        let wanted = rows.min(self.records.count() - record);
        let (mut seen, mut bytes, mut checked) = (0, 0, Ok(()));
        self.store.scan(&key(record), &mut |found, value| {
            bytes += (found.len() + value.len()) as u64;
            checked = is_key(found, record + seen).and_then(|()| self.records.check(record + seen, value));
            seen += 1;
            seen < wanted && checked.is_ok()
        })?;
        checked?;
        all_seen(seen, wanted)?;
        Ok((seen, bytes))
    }

    /// The same, of keys.
    fn scan_keys(&self, record: u64, rows: u64) -> Result<(u64, u64)> {
        let wanted = rows.min(self.records.count() - record);
        let (mut seen, mut bytes, mut checked) = (0, 0, Ok(()));
        self.store.scan_keys(&key(record), &mut |found| {
            bytes += found.len() as u64;
            checked = is_key(found, record + seen);
            seen += 1;
            seen < wanted && checked.is_ok()
        })?;
        checked?;
        all_seen(seen, wanted)?;
        Ok((seen, bytes))
    }
}

/// Records of a store.
fn count(size: Size, choice: &Choice) -> u64 {
    if size == Size::Mail {
        let scaled = MAILS as f64 * choice.data_bytes as f64 / f64::from(1 << 30);
        return (scaled as u64).clamp(MAILS_MIN, MAILS);
    }
    ((choice.data_bytes as f64 / (KEY_BYTES as f64 + size.bytes_mean())) as u64).max(RECORDS_MIN)
}

fn is_key(found: &[u8], record: u64) -> Result<()> {
    if found == key(record) { Ok(()) } else { Err(format!("a scan does not find record {record}").into()) }
}

fn all_seen(seen: u64, wanted: u64) -> Result<()> {
    if seen == wanted { Ok(()) } else { Err(format!("a scan finds {seen} rows of {wanted}").into()) }
}
