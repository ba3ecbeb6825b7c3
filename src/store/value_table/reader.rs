//! Reads separated values, through the block cache.

use crate::catalog::{ValueTable, Values};
use crate::error::{Error, ErrorKind, Result};
use crate::format::value_table::{VALUE_FOOTER_BYTES, ValuePointer};
use crate::store::cache::TableCache;
use crate::store::cache::row_cache::Pinned;
use crate::store::files::meter::ReadCause;
use crate::types::Buffer;

/// The pointer at the start of a stored value of kind [`Separated`](crate::types::Kind::Separated).
pub(crate) fn pointer_of(stored: &[u8]) -> Result<ValuePointer> {
    let decoded = ValuePointer::decode(stored);
    let refused =
        |error| Error::new(ErrorKind::Corruption, format!("a malformed pointer to a value: {error}"));
    decoded.map(|(pointer, _)| pointer).map_err(refused)
}

/// The value table that `pointer` points into. Whoever found the pointer holds a version with that.
fn table_of<'a>(values: &'a Values, pointer: &ValuePointer) -> Result<&'a ValueTable> {
    let table = values.get(pointer.table).map(|table| &**table);
    let table = table.filter(|table| {
        u64::from(pointer.offset) + u64::from(pointer.stored) + VALUE_FOOTER_BYTES as u64
            <= table.record.extent.length
    });
    debug_assert!(
        table.is_some_and(|table| !table.dead.overlaps(&pointer.footprint())),
        "I22: {pointer:?} points to a dead value"
    );
    let lost =
        || format!("a pointer to byte {} of value table {}, which has none", pointer.offset, pointer.table);
    table.ok_or_else(|| Error::new(ErrorKind::Corruption, lost()))
}

impl TableCache {
    /// The value that the pointer `stored` of a table of the version with `values` points to.
    pub(crate) fn value(&self, values: &Values, stored: &[u8], cause: ReadCause) -> Result<Pinned> {
        let pointer = pointer_of(stored)?;
        if let Some(value) = self.cached_value(&pointer) {
            return Ok(value);
        }
        let table = table_of(values, &pointer)?;
        let value = self.read_value(table, &pointer, cause)?;
        let range = 0..value.len();
        if cause.is_users() {
            self.keep_value(&pointer, &value, cause);
        }
        Ok((value, range))
    }

    /// Reads the value past the cache.
    pub(crate) fn read_value(
        &self,
        table: &ValueTable,
        pointer: &ValuePointer,
        cause: ReadCause,
    ) -> Result<Buffer> {
        let extent = table.record.extent;
        let file = self.packs().table_file(extent)?;
        let offset = extent.offset + u64::from(pointer.offset);
        let mut buffer = self.frame(pointer.stored as usize);
        if let Some(bytes) = buffer.get_mut() {
            self.timed_value(extent.device, pointer, cause, || file.read_into(cause, offset, bytes))?;
        }
        let opened = pointer.open(&buffer, |bytes| self.frame(bytes));
        let decompressed = opened.map_err(|error| {
            file.corruption(offset, format!("value table {}: {}", pointer.table, error.what))
        })?;
        Ok(decompressed.unwrap_or(buffer))
    }

    /// Tells the device that the value that `stored` points to will be read soon, unless it is in the cache. Returns the bytes that
    /// are to be read.
    pub(crate) fn expect_value(&self, values: &Values, stored: &[u8]) -> u64 {
        let Ok(pointer) = pointer_of(stored) else { return 0 };
        if self.has_value(&pointer) {
            return 0;
        }
        if let Some(extent) = values.get(pointer.table).map(|table| table.record.extent)
            && let Ok(file) = self.packs().table_file(extent)
        {
            let start = extent.offset + u64::from(pointer.offset);
            file.read_ahead(start..start + u64::from(pointer.stored));
        }
        pointer.stored.into()
    }
}
