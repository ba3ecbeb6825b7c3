//! The check of values that lie apart: each pointer leads to a value that checks, and what no pointer leads to is dead.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::catalog::{ValueTable, Values};
use crate::engine::jobs::context::JobContext;
use crate::error::{Error, ErrorKind, Result};
use crate::format::value_table::{VALUE_FOOTER_BYTES, ValueFooter, ValuePointer};
use crate::store::files::meter::ReadCause;
use crate::store::value_table::pointer_of;
use crate::types::{Spans, TableId};

/// The pointers of one tree, as far as they have been met.
pub(super) struct ValueCheck<'a> {
    tables: &'a Values,
    met: BTreeMap<TableId, Vec<Range<u32>>>,
    /// Number of values that check.
    pub(super) values: u64,
    /// Whether every pointer of the tree has been met.
    pub(super) is_whole: bool,
}

impl<'a> ValueCheck<'a> {
    pub(super) fn new(tables: &'a Values) -> Self {
        Self { tables, met: BTreeMap::new(), values: 0, is_whole: true }
    }

    /// Reads the value that the pointer `stored` leads to.
    pub(super) fn check(&mut self, jobs: &JobContext, stored: &[u8]) -> Result<ValuePointer> {
        let pointer = pointer_of(stored)?;
        let Some(table) = self.tables.get(pointer.table) else {
            let lost = format!("a pointer into value table {}, which is not there", pointer.table);
            return Err(Error::new(ErrorKind::Corruption, lost));
        };
        jobs.cache.read_value(table, &pointer, ReadCause::Compaction)?;
        self.met.entry(pointer.table).or_default().push(pointer.footprint());
        self.values += 1;
        Ok(pointer)
    }

    /// Checks each value table: its footer, and that as much is alive as there are pointers to it (I22).
    pub(super) fn finish(mut self, jobs: &JobContext) -> Vec<(&'a ValueTable, Result<()>)> {
        let checked = self.tables.iter().map(|table| {
            let met = self.met.remove(&table.record.id).unwrap_or_default();
            (&**table, check_table(jobs, table, met, self.is_whole))
        });
        checked.collect()
    }
}

fn check_table(jobs: &JobContext, table: &ValueTable, met: Vec<Range<u32>>, is_whole: bool) -> Result<()> {
    let record = &table.record;
    let file = jobs.cache.packs().file(record.extent.pack)?;
    let damaged =
        |what: &str| Err(file.corruption(record.extent.offset, format!("value table {}: {what}", record.id)));
    let at = record.extent.end().saturating_sub(VALUE_FOOTER_BYTES as u64);
    let stored = file.read(ReadCause::Open, at, VALUE_FOOTER_BYTES)?;
    let footer = ValueFooter::decode(&stored).map_err(|error| file.malformed(at, &error))?;
    if footer.table != record.id || footer.length != at - record.extent.offset {
        return damaged("the footer is another one's");
    }
    let count = met.len() as u64;
    let Some(met) = Spans::new(met) else { return damaged("two pointers lead to one value") };
    let length = u32::try_from(footer.length).unwrap_or(u32::MAX);
    let is_same = met.iter().eq(table.dead.complement(length).iter());
    if is_whole && (!is_same || count != record.count - table.dead_count) {
        return damaged("I22: other values are alive than pointers lead to");
    }
    Ok(())
}
