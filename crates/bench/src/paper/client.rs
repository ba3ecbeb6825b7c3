//! A client of a store in an experiment: it carries out actions, times them, and checks every value that it reads.

use std::sync::Arc;
use std::time::Duration;

use terrace::Db;
use terrace::env::Env;

use super::machine::{Costs, Lab};
use crate::Result;
use crate::workload::Action;
use crate::ycsb::keys::{InsertOrder, KeyFormat};
use crate::ycsb::values::ValueFormat;

/// Processor time that a client may be behind before it catches up with the clock.
const OWED_MAX: Duration = Duration::from_micros(50);

/// The keys and values of a workload.
#[derive(Clone, Debug)]
pub struct Records {
    keys: KeyFormat,
    values: ValueFormat,
}

impl Records {
    /// Keys of `key_bytes` bytes, in `order`, and values of `value_bytes`.
    ///
    /// # Errors
    /// Sizes that cannot be.
    pub fn new(order: InsertOrder, key_bytes: usize, value_bytes: usize) -> Result<Self> {
        Ok(Self { keys: KeyFormat::fixed(order, key_bytes)?, values: ValueFormat::new(value_bytes)? })
    }

    /// Fills an empty store with the records `0..count`, in ascending order of keys, straight into tables.
    ///
    /// # Errors
    /// Whatever the store reports; keys whose order is not that of their records.
    pub fn ingest(&self, db: &Db, count: u64) -> Result<()> {
        let (mut key, mut value) = (Vec::new(), Vec::new());
        let mut ingest = db.ingest()?;
        for record in 0..count {
            self.keys.build(record, &mut key);
            self.values.fill(record, 0, &mut value);
            ingest.push(&key, &value)?;
        }
        ingest.finish()?;
        Ok(db.wait_idle()?)
    }
}

/// One client; each has a thread of its own.
pub struct Client {
    db: Db,
    env: Arc<dyn Env>,
    costs: Costs,
    records: Arc<Records>,
    version: u32,
    key: Vec<u8>,
    value: Vec<u8>,
    /// Processor time that has been charged to calls but not to the clock.
    owed: Duration,
}

impl Client {
    /// A client of `db`.
    #[must_use]
    pub fn new(lab: &Lab, db: &Db, records: Arc<Records>) -> Self {
        Self {
            db: db.clone(),
            env: lab.env().clone(),
            costs: lab.costs(),
            records,
            version: 0,
            key: Vec::new(),
            value: Vec::new(),
            owed: Duration::ZERO,
        }
    }

    /// The clock, as this client sees it.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.env.now() + self.owed
    }

    /// Waits until `moment`, if it is to come.
    pub fn wait_until(&mut self, moment: Duration) {
        self.catch_up();
        self.env.sleep(moment.saturating_sub(self.env.now()));
    }

    /// Carries `action` out; how long it took.
    ///
    /// # Errors
    /// Whatever the store reports, and a value that is not what was written to its key.
    pub fn perform(&mut self, action: Action) -> Result<Duration> {
        let start = self.env.now();
        let cost = match action {
            Action::Get(record) => self.get(record)?,
            Action::Put(record) => self.put(record)?,
            Action::Delete(record) => {
                self.records.keys.build(record, &mut self.key);
                self.db.delete(&self.key)?;
                self.costs.put
            }
            Action::Scan { from, records } => self.scan(from, records)?,
        };
        let time = self.env.now().saturating_sub(start) + cost;
        self.owed += cost;
        if self.owed >= OWED_MAX {
            self.catch_up();
        }
        Ok(time)
    }

    /// Lets the clock pass the processor time that is owed.
    fn catch_up(&mut self) {
        let owed = std::mem::take(&mut self.owed);
        if owed > Duration::ZERO {
            self.env.sleep(owed);
        }
    }

    fn get(&mut self, record: u64) -> Result<Duration> {
        self.records.keys.build(record, &mut self.key);
        if let Some(value) = self.db.get(&self.key)? {
            check(&self.records, record, &value)?;
        }
        Ok(self.costs.get)
    }

    fn put(&mut self, record: u64) -> Result<Duration> {
        self.version = self.version.wrapping_add(1);
        self.records.keys.build(record, &mut self.key);
        self.records.values.fill(record, self.version, &mut self.value);
        self.db.put(&self.key, &self.value)?;
        Ok(self.costs.put)
    }

    fn scan(&mut self, from: u64, records: u64) -> Result<Duration> {
        self.records.keys.build(from, &mut self.key);
        let mut iter = self.db.range(self.key.as_slice()..)?;
        let mut found = 0;
        while found < records
            && let Some((key, value)) = iter.advance()?
        {
            let (record, _) = self.records.values.check(value).ok_or("a scanned value is damaged")?;
            self.records.keys.build(record, &mut self.value);
            if key != self.value {
                return Err(format!("{} holds the value of record {record}", key.escape_ascii()).into());
            }
            found += 1;
        }
        let (start, each) = self.costs.scan;
        Ok(start + each * u32::try_from(found).unwrap_or(u32::MAX))
    }
}

fn check(records: &Records, record: u64, value: &[u8]) -> Result<()> {
    match records.values.check(value) {
        Some((found, _)) if found == record => Ok(()),
        _ => Err(format!("record {record} does not have its value").into()),
    }
}
