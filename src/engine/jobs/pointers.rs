//! The pointers that a job meets: which values die with them, and which values it writes anew.
//!
//! A pointer that a job does not write again was the last one to its value: each entry is in one table of a version. So the value
//! is dead once the job's edit is durable and nobody reads the versions before it ([`Values`]).
//!
//! **Collection.** A value of a table that is to be left ([`Collection`]) is written
//! anew, to a value table of the job's own, in the order of the keys, and dies where it was.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use super::context::JobContext;
use crate::catalog::{TableMeta, Values, Version};
use crate::error::{Error, ErrorKind, Result};
use crate::format::edit::Deaths;
use crate::merge::Cursor;
use crate::policy::Collection;
use crate::store::cache::TableCache;
use crate::store::files::meter::ReadCause;
use crate::store::table::TablesCursor;
use crate::store::value_table::pointer_of;
use crate::types::{Buffer, Spans, Stamp, TableId};

/// What a job knows of the value tables of its tree, and which values it lets die.
pub(in crate::engine) struct Pointers<'a> {
    /// `None` where there are none.
    source: Option<(&'a TableCache, &'a Values)>,
    collecting: Option<Arc<Collection>>,
    dead: BTreeMap<TableId, Vec<Range<u32>>>,
    collected_bytes: u64,
    /// Value tables with a value that could not be read.
    unreadable: BTreeSet<TableId>,
}

/// A job writes so many bytes of values anew at most. What is left of its pointers is for another job.
const COLLECTED_MAX: u64 = 256 << 20;

/// What has become of the values of a job's pointers.
#[derive(Debug, Default)]
pub(in crate::engine) struct Fates {
    /// Values that have died, those that were written anew among them.
    pub(in crate::engine) deaths: Vec<Deaths>,
    /// Bytes of values that were written anew.
    pub(in crate::engine) collected_bytes: u64,
    /// Whether no pointer into a table that is to be left was written again, but for damaged values.
    pub(in crate::engine) is_clean: bool,
    /// Value tables with a value that could not be read, and so was not written anew.
    pub(in crate::engine) unreadable: BTreeSet<TableId>,
}

impl<'a> Pointers<'a> {
    /// Of a job whose inputs have none.
    pub(in crate::engine) fn none() -> Self {
        Self {
            source: None,
            collecting: None,
            dead: BTreeMap::new(),
            collected_bytes: 0,
            unreadable: BTreeSet::new(),
        }
    }

    /// Of a job in a tree with these `values`, that leaves the tables of `collecting`.
    pub(in crate::engine) fn of(
        cache: &'a TableCache,
        values: &'a Values,
        collecting: Option<Arc<Collection>>,
    ) -> Self {
        Self { source: Some((cache, values)), collecting, ..Self::none() }
    }

    /// The value that the pointer `stored` points to.
    pub(in crate::engine) fn read(&self, stored: &[u8]) -> Result<Buffer> {
        let Some((cache, values)) = self.source else {
            return Err(Error::new(ErrorKind::Corruption, "a pointer where there are no value tables"));
        };
        Ok(cache.value(values, stored, ReadCause::Compaction)?.0)
    }

    /// Whether the entry with this stamp has a pointer into a table that is to be left.
    pub(in crate::engine) fn is_left(&self, stamp: Stamp, stored: &[u8]) -> Result<bool> {
        match &self.collecting {
            Some(collecting) if stamp.is_separated() && self.collected_bytes < COLLECTED_MAX => {
                Ok(collecting.tables.contains(&pointer_of(stored)?.table))
            }
            _ => Ok(false),
        }
    }

    /// Notes that the pointer `stored` is not written again.
    pub(in crate::engine) fn died(&mut self, stored: &[u8]) -> Result<()> {
        if planted!("death-of-a-value-forgotten") {
            return Ok(());
        }
        let pointer = pointer_of(stored)?;
        self.dead.entry(pointer.table).or_default().push(pointer.footprint());
        Ok(())
    }

    /// Notes that the value that `stored` points to, of so many bytes, was written anew.
    pub(in crate::engine) fn collected(&mut self, stored: &[u8], bytes: usize) -> Result<()> {
        self.collected_bytes += bytes as u64;
        self.died(stored)
    }

    /// The value that `stored` points to, to be written anew; `None` if it is damaged. Then its pointer stays, for whoever reads it
    /// to be told.
    pub(in crate::engine) fn take(&mut self, stored: &[u8]) -> Result<Option<Buffer>> {
        match self.read(stored) {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.kind() == ErrorKind::Corruption => {
                self.unreadable.insert(pointer_of(stored)?.table);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// What has become of them.
    pub(in crate::engine) fn fates(self) -> Result<Fates> {
        let deaths = self.dead.into_iter().map(|(table, ranges)| {
            let count = ranges.len() as u64;
            let twice = || {
                let message = format!("two pointers lead to one value of value table {table}");
                Error::new(ErrorKind::Corruption, message)
            };
            Ok(Deaths { table, count, spans: Spans::new(ranges).ok_or_else(twice)? })
        });
        Ok(Fates {
            deaths: deaths.collect::<Result<_>>()?,
            collected_bytes: self.collected_bytes,
            is_clean: self.collected_bytes < COLLECTED_MAX,
            unreadable: self.unreadable,
        })
    }
}

impl JobContext {
    /// The values that die with `tables` of `version`, which go unread but for their pointers.
    pub(in crate::engine) fn deaths_with(
        &self,
        version: &Version,
        tables: Vec<Arc<TableMeta>>,
    ) -> Result<Vec<Deaths>> {
        let mut pointers = Pointers::of(&self.cache, version.values(), None);
        for table in tables.into_iter().filter(|table| table.values.count > 0) {
            let mut cursor = TablesCursor::readahead(self.cache.clone(), vec![table], 0);
            cursor.seek_first()?;
            while cursor.valid() {
                if cursor.stamp().is_separated() {
                    pointers.died(cursor.value())?;
                }
                cursor.next()?;
            }
        }
        Ok(pointers.fates()?.deaths)
    }
}
