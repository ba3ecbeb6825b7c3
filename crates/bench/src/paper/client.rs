//! A client of a store in an experiment: it carries out actions, times them, and checks every value that it reads.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use terrace::Db;
use terrace::env::Env;

use super::machine::{Costs, Lab, ReadCosts};
use super::record_cache::RecordCache;
use crate::Result;
use crate::workload::Action;
use crate::ycsb::keys::{InsertOrder, KeyFormat};
use crate::ycsb::values::ValueFormat;

/// Processor time that a client may be behind before it catches up with the clock.
const OWED_MAX: Duration = Duration::from_micros(50);

/// What reads take is charged by the averages of so many of them.
const METERED: u32 = 256;

/// What reads take of the processor, by what the store has searched for the last ones.
struct ReadMeter {
    costs: ReadCosts,
    /// Reads until the next look.
    left: u32,
    /// Lookups, tables asked and blocks searched until the last look.
    seen: [u64; 3],
    lookup: Duration,
    scan: Duration,
}

impl ReadMeter {
    fn new(db: &Db, costs: ReadCosts) -> Self {
        let lookup = costs.lookup + costs.table + costs.block;
        let mut meter = Self { costs, left: 0, seen: [0; 3], lookup, scan: costs.run };
        meter.look(db);
        // The first looks back on nothing of this client.
        Self { lookup, ..meter }
    }

    /// One read more.
    fn count(&mut self, db: &Db) {
        self.left -= 1;
        if self.left == 0 {
            self.look(db);
        }
    }

    fn look(&mut self, db: &Db) {
        let stats = db.stats();
        let now =
            [stats.user_reads.gets, stats.user_reads.tables_asked, stats.cache.hits + stats.cache.misses];
        let [lookups, tables, blocks] = [0, 1, 2].map(|at| (now[at] - self.seen[at]) as f64);
        if lookups > 0.0 {
            let ReadCosts { lookup, table, block, .. } = self.costs;
            self.lookup = lookup + table.mul_f64(tables / lookups) + block.mul_f64(blocks / lookups);
        }
        let runs: usize =
            stats.keyspaces.iter().flat_map(|keyspace| &keyspace.shape.levels).map(|level| level.runs).sum();
        self.scan = self.costs.run * u32::try_from(runs.max(1)).unwrap_or(u32::MAX);
        (self.left, self.seen) = (METERED, now);
    }
}

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
        self.ingest_range(db, 0..count)?;
        Ok(db.wait_idle()?)
    }

    /// Brings these records, in ascending order of keys, straight into tables.
    ///
    /// # Errors
    /// As [`Records::ingest`].
    pub fn ingest_range(&self, db: &Db, records: Range<u64>) -> Result<()> {
        let (mut key, mut value) = (Vec::new(), Vec::new());
        let mut ingest = db.ingest()?;
        for record in records {
            self.keys.build(record, &mut key);
            self.values.fill(record, 0, &mut value);
            ingest.push(&key, &value)?;
        }
        Ok(ingest.finish()?)
    }
}

/// One client; each has a thread of its own.
pub struct Client {
    db: Db,
    env: Arc<dyn Env>,
    costs: Costs,
    /// In place of what `costs` has for reads.
    meter: Option<ReadMeter>,
    records: Arc<Records>,
    cache: Option<Arc<RecordCache>>,
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
            meter: lab.read_costs().map(|costs| ReadMeter::new(db, costs)),
            records,
            cache: None,
            version: 0,
            key: Vec::new(),
            value: Vec::new(),
            owed: Duration::ZERO,
        }
    }

    /// The same, with a cache in front of the store, which all its clients must share.
    #[must_use]
    pub fn behind(self, cache: Option<Arc<RecordCache>>) -> Self {
        Self { cache, ..self }
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
                debug_assert!(self.cache.is_none(), "the cache of records does not know deletes");
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
        if let Some(cache) = &self.cache {
            let read = || Ok(self.db.get(&self.key)?.map(|value| value[..].into()));
            if let Some(value) = cache.get(record, read)? {
                check(&self.records, record, &value)?;
            }
        } else if let Some(value) = self.db.get(&self.key)? {
            check(&self.records, record, &value)?;
        }
        Ok(match &mut self.meter {
            Some(meter) => {
                meter.count(&self.db);
                meter.lookup
            }
            None => self.costs.get,
        })
    }

    fn put(&mut self, record: u64) -> Result<Duration> {
        self.version = self.version.wrapping_add(1);
        self.records.keys.build(record, &mut self.key);
        self.records.values.fill(record, self.version, &mut self.value);
        let write = || Ok(self.db.put(&self.key, &self.value)?);
        match &self.cache {
            Some(cache) => cache.put(record, &self.value, write)?,
            None => write()?,
        }
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
        let (start, each) = match &mut self.meter {
            Some(meter) => {
                meter.count(&self.db);
                (meter.scan, meter.costs.row)
            }
            None => self.costs.scan,
        };
        Ok(start + each * u32::try_from(found).unwrap_or(u32::MAX))
    }
}

fn check(records: &Records, record: u64, value: &[u8]) -> Result<()> {
    match records.values.check(value) {
        Some((found, _)) if found == record => Ok(()),
        _ => Err(format!("record {record} does not have its value").into()),
    }
}
