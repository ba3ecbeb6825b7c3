//! Value output: values that lie apart, as value tables in packs of their own.
//!
//! Values live longer than the tables that point to them, so their packs have nothing else.

use std::collections::{BTreeMap, HashMap};
use std::ops::{Deref, Range};

use super::context::JobContext;
use super::output::Output;
use crate::error::Result;
use crate::format::edit::{Deaths, ValueTableRecord};
use crate::format::timestamped::TIMESTAMP_BYTES;
use crate::merge::{Cursor, PinValue};
use crate::store::files::pack::PackWriter;
use crate::store::memtable::MemtableCursor;
use crate::store::table::TableSettings;
use crate::store::value_table::{ValueTableBuilder, pointer_of};
use crate::types::{Kind, Seq, Spans, Stamp, TableId};

/// A value table is complete from this size on, in bytes. What is smaller spans fewer keys, and fewer tables point into it.
/// Less in debug builds, so that all tests meet several.
const VALUE_TABLE_BYTES: u64 = if cfg!(debug_assertions) { 16 << 10 } else { 16 << 20 };

/// The value table that a job writes, and those that it has written.
#[derive(Default)]
pub(super) struct ValueOutput {
    pub(super) pack: Option<PackWriter>,
    table: Option<ValueTableBuilder>,
    written: WrittenValues,
    /// Memory for pointers, reused.
    pointer: Vec<u8>,
    /// Pointers to values that are written ahead of their entries, by the numbers of these.
    ahead: HashMap<Seq, Vec<u8>>,
}

/// Value tables of a job, and bytes in them that belong to no value.
#[derive(Default)]
pub(crate) struct WrittenValues {
    pub(crate) tables: Vec<ValueTableRecord>,
    pub(crate) gaps: Vec<Deaths>,
}

/// Whether a value of an entry with this stamp is to lie apart.
pub(super) fn is_separated(settings: &TableSettings, stamp: Stamp, value: &[u8]) -> bool {
    let timestamp = if settings.ttl.is_some() { TIMESTAMP_BYTES } else { 0 };
    stamp.kind() == Kind::Put
        && settings
            .separate_from
            .is_some_and(|from| value.len().saturating_sub(timestamp) >= from.get() as usize)
}

impl<C: Deref<Target = JobContext>> Output<C> {
    /// Writes all values of a memtable that are to lie apart, in the order in which they came. Their entries follow.
    pub(super) fn separate_ahead(&mut self, mut cursor: MemtableCursor) -> Result<()> {
        let mut entries = Vec::new();
        // Memory does not fail.
        let _ = cursor.seek_first();
        while cursor.valid() {
            if is_separated(&self.settings, cursor.stamp(), cursor.value()) {
                entries.push((cursor.stamp().seq(), cursor.key().to_vec(), cursor.pin_value()));
            }
            let _ = cursor.next();
        }
        entries.sort_unstable_by_key(|(seq, ..)| *seq);
        for (seq, key, value) in entries {
            let pointer = self.write_value(&key, &value)?;
            self.values.ahead.insert(seq, pointer);
        }
        Ok(())
    }

    /// The pointer that takes the place of the value of `key`, which is written apart, if it is not yet.
    pub(super) fn separate(&mut self, key: &[u8], stamp: Stamp, value: &[u8]) -> Result<Vec<u8>> {
        match self.values.ahead.remove(&stamp.seq()) {
            Some(pointer) => Ok(pointer),
            None => self.write_value(key, value),
        }
    }

    /// Writes the value of `key` apart. Returns the pointer to it.
    fn write_value(&mut self, key: &[u8], value: &[u8]) -> Result<Vec<u8>> {
        let bytes = value.len() as u64;
        let is_full = match (&self.values.table, &self.values.pack) {
            (Some(table), Some(pack)) => {
                table.bytes(pack) >= VALUE_TABLE_BYTES || !table.has_room(value.len(), pack)
            }
            _ => false,
        };
        if is_full {
            self.end_value_table()?;
        }
        if self.values.pack.is_none() {
            self.values.pack = Some(self.begin_value_pack(bytes)?);
        }
        let ValueOutput { pack: Some(pack), table, pointer, .. } = &mut self.values else {
            return Ok(Vec::new());
        };
        pack.expect(bytes);
        let settings = &self.settings;
        let table = table.get_or_insert_with(|| {
            ValueTableBuilder::new(self.jobs.ids.table(), settings.keyspace, settings.codec, pack)
        });
        let mut encoded = std::mem::take(pointer);
        encoded.clear();
        table.add(key, value, pack)?.encode(&mut encoded);
        if settings.ttl.is_some() {
            encoded.extend_from_slice(&value[value.len() - TIMESTAMP_BYTES..]);
        }
        Ok(encoded)
    }

    /// Takes the memory of a pointer back.
    pub(super) fn recycle(&mut self, pointer: Vec<u8>) {
        self.values.pointer = pointer;
    }

    /// Completes the value table, and its pack where that is full.
    pub(super) fn end_value_table(&mut self) -> Result<()> {
        let ValueOutput { pack: Some(pack), table, written, .. } = &mut self.values else { return Ok(()) };
        if let Some((record, gaps)) = table.take().and_then(|table| table.finish(pack)) {
            written.tables.push(record);
            written.gaps.extend(gaps);
        }
        pack.drain()?;
        if self.is_full(self.values.pack.as_ref()) { self.seal_values() } else { Ok(()) }
    }

    /// Completes the value table, and hands out those of the keyspace at hand. A value that was written ahead and whose entry
    /// did not come is dead.
    pub(super) fn take_values(&mut self) -> Result<WrittenValues> {
        self.end_value_table()?;
        let mut written = std::mem::take(&mut self.values.written);
        let mut dead: BTreeMap<TableId, Vec<Range<u32>>> = BTreeMap::new();
        for pointer in std::mem::take(&mut self.values.ahead).into_values() {
            let pointer = pointer_of(&pointer)?;
            dead.entry(pointer.table).or_default().push(pointer.footprint());
        }
        for (table, mut spans) in dead {
            let count = spans.len() as u64;
            if let Some(at) = written.gaps.iter().position(|gaps| gaps.table == table) {
                spans.extend(written.gaps.swap_remove(at).spans.iter());
            }
            let spans = Spans::new(spans).unwrap_or_default();
            written.gaps.push(Deaths { table, count, spans });
        }
        Ok(written)
    }

    /// Ends the pack of values.
    pub(super) fn seal_values(&mut self) -> Result<()> {
        match self.values.pack.take() {
            Some(pack) => self.seal_pack(pack),
            None => Ok(()),
        }
    }
}
