//! Reading ahead: the devices are told of tables that somebody is about to read, one behind the other.
//!
//! Tables that follow each other may lie on different devices. Who reads one and then the next would keep one device busy at a time.
//! A [`ReadAhead`] knows the whole list, and tells each device of all that lies a number of bytes ahead of the reader. So the
//! devices read at the same time, and while the reader works on what it has.
//!
//! All of it is advice: what cannot be opened is left out, and the read itself will say why. Nothing is kept in memory but by the
//! operating system.

use std::ops::Range;
use std::sync::Arc;

use super::TableReader;
use crate::catalog::TableMeta;
use crate::store::files::pack::PackStore;
use crate::types::Extent;

/// Devices are told of at least so many bytes at a time, but at the end of the list.
const STEP_BYTES: u64 = 256 << 10;

/// A list of tables, of which somebody reads one after the other.
#[derive(Debug)]
pub(crate) struct ReadAhead {
    packs: Arc<PackStore>,
    list: List,
}

impl ReadAhead {
    /// Tells the devices of the first `bytes` of `tables`, which are read in this order, each as a whole.
    pub(crate) fn of_tables<'a>(
        packs: Arc<PackStore>,
        tables: impl Iterator<Item = &'a TableMeta>,
        bytes: u64,
    ) -> Self {
        Self::new(packs, tables.map(|table| (table.extent, table.extent.length)), bytes)
    }

    /// As [`ReadAhead::of_tables`], where of an open table, whose index is in memory, the data blocks alone are read.
    pub(crate) fn of_entries<'a>(
        packs: Arc<PackStore>,
        tables: impl Iterator<Item = &'a TableMeta>,
        bytes: u64,
    ) -> Self {
        let length =
            |table: &TableMeta| table.attachment.get().map_or(table.extent.length, TableReader::data_bytes);
        Self::new(packs, tables.map(|table| (table.extent, length(table))), bytes)
    }

    fn new(packs: Arc<PackStore>, tables: impl Iterator<Item = (Extent, u64)>, bytes: u64) -> Self {
        let mut ahead = Self { packs, list: List::new(tables, bytes) };
        ahead.reached(0, 0);
        ahead
    }

    /// The reader has come to `offset` of the table at `index` of the list, and goes on from there.
    pub(crate) fn reached(&mut self, index: usize, offset: u64) {
        for (extent, range) in self.list.due(index, offset) {
            if let Ok(file) = self.packs.table_file(extent) {
                file.read_ahead(extent.offset + range.start..extent.offset + range.end);
            }
        }
    }
}

/// How far a list has been read, and of how much of it the devices have been told.
#[derive(Debug)]
struct List {
    /// So many bytes ahead of the reader.
    bytes: u64,
    tables: Vec<Part>,
    /// Bytes of all tables.
    end: u64,
    /// The devices have been told of what is before this place: the index of a table, and an offset there.
    told: (usize, u64),
    /// Bytes before that place.
    told_bytes: u64,
}

/// The front of a table, which is what is read of it.
#[derive(Debug)]
struct Part {
    extent: Extent,
    length: u64,
    /// Bytes of the list before it.
    before: u64,
}

impl List {
    fn new(tables: impl Iterator<Item = (Extent, u64)>, bytes: u64) -> Self {
        let mut end = 0;
        let part = |(extent, length)| {
            end += length;
            Part { extent, length, before: end - length }
        };
        let tables = tables.map(part).collect();
        Self { bytes, tables, end, told: (0, 0), told_bytes: 0 }
    }

    /// What the devices are to be told now that the reader is at `offset` of the table at `index`: tables, and ranges there.
    fn due(&mut self, index: usize, offset: u64) -> Vec<(Extent, Range<u64>)> {
        let mut due = Vec::new();
        let Some(table) = self.tables.get(index) else { return due };
        let read = table.before + offset.min(table.length);
        let wanted = self.end.min(read + self.bytes);
        if wanted < self.end.min(self.told_bytes + STEP_BYTES) {
            return due;
        }
        if self.told_bytes < read {
            (self.told, self.told_bytes) = ((index, read - table.before), read);
        }
        while self.told_bytes < wanted
            && let Some(table) = self.tables.get(self.told.0)
        {
            let range = self.told.1..table.length.min(wanted - table.before);
            self.told_bytes = table.before + range.end;
            self.told =
                if range.end == table.length { (self.told.0 + 1, 0) } else { (self.told.0, range.end) };
            if !range.is_empty() {
                due.push((table.extent, range));
            }
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{DeviceId, PackId};

    const STEP: u64 = STEP_BYTES;

    /// Tables of these lengths, each in a pack of its own.
    fn list(lengths: &[u64], bytes: u64) -> List {
        let table = |(pack, length): (usize, &u64)| {
            let (device, pack) = (DeviceId(0), PackId(pack as u64));
            (Extent { device, pack, offset: 0, length: length + 100 }, *length)
        };
        List::new(lengths.iter().enumerate().map(table), bytes)
    }

    fn due(list: &mut List, index: usize, offset: u64) -> Vec<(u64, Range<u64>)> {
        list.due(index, offset).into_iter().map(|(extent, range)| (extent.pack.0, range)).collect()
    }

    #[test]
    fn each_byte_is_told_once_and_in_steps() {
        let mut list = list(&[STEP, 3 * STEP, 0, STEP], 2 * STEP);
        assert_eq!(due(&mut list, 0, 0), [(0, 0..STEP), (1, 0..STEP)]);
        assert_eq!(due(&mut list, 0, 0), []);
        assert_eq!(due(&mut list, 0, STEP - 1), [], "less than a step");
        assert_eq!(due(&mut list, 1, 10), [(1, STEP..2 * STEP + 10)]);
        assert_eq!(due(&mut list, 1, 2 * STEP), [(1, 2 * STEP + 10..3 * STEP), (3, 0..STEP)]);
        assert_eq!(due(&mut list, 3, STEP), []);
        assert_eq!(due(&mut list, 4, 0), []);
    }

    #[test]
    fn the_end_is_told_however_short_it_is_and_what_has_been_passed_is_not() {
        let mut list = list(&[4 * STEP, STEP + 1], STEP);
        assert_eq!(due(&mut list, 0, 0), [(0, 0..STEP)]);
        assert_eq!(due(&mut list, 0, 3 * STEP), [(0, 3 * STEP..4 * STEP)]);
        assert_eq!(due(&mut list, 1, 0), [(1, 0..STEP)]);
        assert_eq!(due(&mut list, 1, 1), [(1, STEP..STEP + 1)]);
    }

    #[test]
    fn nothing_is_told_where_nothing_is_read_ahead() {
        let mut list = list(&[STEP, STEP], 0);
        for (index, offset) in [(0, 0), (0, STEP), (1, 0), (1, STEP)] {
            assert_eq!(due(&mut list, index, offset), []);
        }
    }
}
