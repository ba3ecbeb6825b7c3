//! The dump of a pack: its directory, and the tables in it, block by block.
//!
//! A pack without a readable directory is searched for the footers of tables. Of a table without a readable index
//! nothing more is read. A table of nothing but zeros has died and was punched.

use std::borrow::Cow;
use std::io::{self, Write};

use terrace::format::Malformed;
use terrace::format::block::Block;
use terrace::format::checksum::Place;
use terrace::format::filter::Filter;
use terrace::format::pack::{PACK_TRAILER_BYTES, PackDirectory};
use terrace::format::table::{
    BlockHandle, DataHandle, FOOTER_BYTES, Footer, PARTITION_HANDLE_BYTES, PartitionHandle, Properties,
    TABLE_MAGIC, open_block,
};
use terrace::format::tombstones;
use terrace::format::value_table::{VALUE_FOOTER_BYTES, ValueFooter, ValuePointer};
use terrace::types::{Kind, PackId};

use super::{Line, Printer};

/// How far a dump goes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd)]
pub enum Depth {
    /// Tables and their properties.
    Tables,
    /// Blocks, too.
    Blocks,
    /// Entries, too.
    Entries,
}

/// Prints `bytes`, the whole contents of `pack`.
pub fn dump_pack<W: Write>(
    pack: PackId,
    bytes: &[u8],
    depth: Depth,
    printer: &mut Printer<W>,
) -> io::Result<()> {
    match directory(pack, bytes) {
        Ok(directory) => {
            let line = Line::new(0, "directory").field("pack", directory.pack.0);
            printer.line(&line.field("tables", directory.tables.len()))?;
            for entry in &directory.tables {
                let (offset, end) = (entry.offset, entry.offset.saturating_add(entry.length));
                let line = Line::new(0, "table")
                    .field("table", entry.table.0)
                    .field("keyspace", entry.keyspace.0)
                    .field("offset", offset)
                    .field("bytes", entry.length);
                match part(bytes, offset, end) {
                    None => {
                        printer.line(&line)?;
                        printer.damage(1, offset, "the table reaches beyond the end of the file")?;
                    }
                    Some(table) if table.iter().all(|&byte| byte == 0) => {
                        printer.line(&line.field("state", "dead"))?;
                    }
                    Some(table) if is_value_table(table) => printer.line(&line.field("holds", "values"))?,
                    Some(table) => {
                        printer.line(&line)?;
                        Table { bytes: table, offset, depth }.dump(printer)?;
                    }
                }
            }
        }
        Err(error) => {
            printer.damage(0, error.offset, &format!("no directory: {}", error.what))?;
            for (offset, end) in tables_found(bytes) {
                let line = Line::new(0, "table").field("offset", offset).field("bytes", end - offset);
                printer.line(&line)?;
                let table = Table { bytes: &bytes[offset..end], offset: offset as u64, depth };
                table.dump(printer)?;
            }
        }
    }
    Ok(())
}

/// Whether these are the bytes of a value table. Where its values lie, pointers in tables alone say.
fn is_value_table(bytes: &[u8]) -> bool {
    let footer = bytes.len().checked_sub(VALUE_FOOTER_BYTES).and_then(|at| bytes.get(at..));
    footer.is_some_and(|footer| ValueFooter::decode(footer).is_ok())
}

/// The directory at the end of the pack.
fn directory(pack: PackId, bytes: &[u8]) -> Result<PackDirectory, Malformed> {
    let length = bytes.len() as u64;
    let absent = |what| Malformed { offset: length, what };
    let trailer = bytes.len().checked_sub(PACK_TRAILER_BYTES).ok_or(absent("the file is too short"))?;
    let within =
        |start: usize| move |error: Malformed| Malformed { offset: error.offset + start as u64, ..error };
    let taken = PackDirectory::decode_trailer(&bytes[trailer..]).map_err(within(trailer))?;
    let start = bytes.len().checked_sub(taken).ok_or(absent("the file is shorter than its directory"))?;
    let directory = PackDirectory::decode(&bytes[start..]).map_err(within(start))?;
    if directory.pack == pack { Ok(directory) } else { Err(absent("it is that of another pack")) }
}

/// The places of the tables whose footers can be found: the properties are the last block before the footer.
fn tables_found(bytes: &[u8]) -> Vec<(usize, usize)> {
    let magics = bytes.windows(TABLE_MAGIC.len()).enumerate().filter(|(_, window)| *window == TABLE_MAGIC);
    let footers =
        magics.filter_map(|(at, _)| Some((at, Footer::decode(bytes.get(at..at + FOOTER_BYTES)?).ok()?)));
    let tables = footers.filter_map(|(at, footer)| {
        let length = usize::try_from(footer.properties.end()).ok()?;
        Some((at.checked_sub(length)?, at + FOOTER_BYTES))
    });
    tables.collect()
}

fn part(bytes: &[u8], from: u64, to: u64) -> Option<&[u8]> {
    bytes.get(usize::try_from(from).ok()?..usize::try_from(to).ok()?)
}

/// The bytes of one table.
struct Table<'a> {
    bytes: &'a [u8],
    /// Where they begin in the file.
    offset: u64,
    depth: Depth,
}

impl Table<'_> {
    fn dump<W: Write>(&self, printer: &mut Printer<W>) -> io::Result<()> {
        let Some(footer_at) = self.bytes.len().checked_sub(FOOTER_BYTES) else {
            return printer.damage(1, self.offset, "too short for a table");
        };
        let footer = match Footer::decode(&self.bytes[footer_at..]) {
            Ok(footer) => footer,
            Err(error) => return printer.malformed(1, self.offset + footer_at as u64, &error),
        };
        match self.open(&footer, footer.properties).and_then(|payload| Properties::decode(&payload)) {
            Ok(properties) => printer.line(&properties_line(&footer, &properties))?,
            Err(error) => printer.malformed(1, self.offset + footer.properties.offset, &error)?,
        }
        if self.depth == Depth::Tables {
            return Ok(());
        }
        if let Some(filter) = footer.filter {
            self.dump_filter(&footer, filter, printer)?;
        }
        if let Some(tombstones) = footer.tombstones {
            self.dump_tombstones(&footer, tombstones, printer)?;
        }
        // A table of range tombstones alone has no index.
        let Some(handle) = footer.index else { return Ok(()) };
        printer.line(&block_line("index", handle))?;
        let index = match self.open(&footer, handle).and_then(Block::decode) {
            Ok(index) => index,
            Err(error) => return printer.malformed(1, self.offset + handle.offset, &error),
        };
        if index.value(0).len() != PARTITION_HANDLE_BYTES {
            return self.dump_blocks(&footer, (handle, &index), printer);
        }
        (0..index.len()).try_for_each(|at| match PartitionHandle::decode(index.value(at)) {
            Ok(partition) => self.dump_partition(&footer, partition, printer),
            Err(error) => printer.malformed(1, self.offset + handle.offset, &error),
        })
    }

    fn dump_filter<W: Write>(
        &self,
        footer: &Footer,
        filter: BlockHandle,
        printer: &mut Printer<W>,
    ) -> io::Result<()> {
        let line = block_line("filter", filter);
        match self.open(footer, filter).and_then(|payload| Filter::decode(&payload)) {
            Ok(decoded) => printer.line(&line.field("prefix", decoded.prefix().map(|rule| rule.to_string()))),
            Err(error) => {
                printer.line(&line)?;
                printer.malformed(1, self.offset + filter.offset, &error)
            }
        }
    }

    /// Prints a part of index and filter, and the data blocks in it.
    fn dump_partition<W: Write>(
        &self,
        footer: &Footer,
        partition: PartitionHandle,
        printer: &mut Printer<W>,
    ) -> io::Result<()> {
        if let Some(filter) = partition.filter {
            self.dump_filter(footer, filter, printer)?;
        }
        printer.line(&block_line("index", partition.index))?;
        match self.open(footer, partition.index).and_then(Block::decode) {
            Ok(index) => self.dump_blocks(footer, (partition.index, &index), printer),
            Err(error) => printer.malformed(1, self.offset + partition.index.offset, &error),
        }
    }

    /// Prints the data blocks of an index.
    fn dump_blocks<W: Write>(
        &self,
        footer: &Footer,
        (handle, index): (BlockHandle, &Block),
        printer: &mut Printer<W>,
    ) -> io::Result<()> {
        (0..index.len()).try_for_each(|at| match DataHandle::decode(index.value(at)) {
            Ok(handle) => self.dump_block(footer, handle.block, printer),
            Err(error) => printer.malformed(1, self.offset + handle.offset, &error),
        })
    }

    /// Prints the range tombstone block.
    fn dump_tombstones<W: Write>(
        &self,
        footer: &Footer,
        handle: BlockHandle,
        printer: &mut Printer<W>,
    ) -> io::Result<()> {
        printer.line(&block_line("range_tombstones", handle))?;
        let decoded = self.open(footer, handle).and_then(|payload| tombstones::decode(&payload));
        match decoded {
            Ok(tombstones) if self.depth >= Depth::Entries => tombstones.iter().try_for_each(|tombstone| {
                let line = Line::new(2, "delete_range").field("seq", tombstone.seq.0);
                let (start, end) = (&tombstone.range.start, tombstone.range.end.as_bytes());
                printer.line(&line.bytes("start", start).bytes("end", end))
            }),
            Ok(_) => Ok(()),
            Err(error) => printer.malformed(2, self.offset + handle.offset, &error),
        }
    }

    /// Prints the data block that `handle` names.
    fn dump_block<W: Write>(
        &self,
        footer: &Footer,
        handle: BlockHandle,
        printer: &mut Printer<W>,
    ) -> io::Result<()> {
        let block = match self.open(footer, handle).and_then(Block::decode) {
            Ok(block) => block,
            Err(error) => {
                printer.line(&block_line("block", handle))?;
                return printer.malformed(2, self.offset + handle.offset, &error);
            }
        };
        let (mut first, mut last) = (Vec::new(), Vec::new());
        block.key_into(0, &mut first);
        block.key_into(block.len() - 1, &mut last);
        let line = block_line("block", handle).field("entries", block.len());
        printer.line(&line.bytes("first", &first).bytes("last", &last))?;
        if let Err(error) = block.check_order() {
            printer.malformed(2, self.offset + handle.offset, &error)?;
        }
        if self.depth >= Depth::Entries {
            let mut key = Vec::new();
            for at in 0..block.len() {
                block.key_into(at, &mut key);
                let (stamp, value) = (block.stamp(at), block.value(at));
                let line = |what| Line::new(2, what).field("seq", stamp.seq().0).bytes("key", &key);
                let line = match (stamp.kind(), ValuePointer::decode(value)) {
                    (Kind::Delete, _) => line("delete"),
                    (Kind::Put, _) => line("put").bytes("value", value),
                    (Kind::Separated, Ok((pointer, _))) => line("separated")
                        .field("value_table", pointer.table.0)
                        .field("offset", pointer.offset)
                        .field("bytes", pointer.length),
                    (Kind::Separated, Err(error)) => {
                        printer.malformed(2, self.offset + handle.offset, &error)?;
                        line("separated")
                    }
                };
                printer.line(&line)?;
            }
        }
        Ok(())
    }

    /// The payload of the block that `handle` names.
    fn open(&self, footer: &Footer, handle: BlockHandle) -> Result<Vec<u8>, Malformed> {
        let stored = part(self.bytes, handle.offset, handle.end());
        let stored = stored.ok_or(Malformed { offset: 0, what: "the block lies outside its table" })?;
        open_block(Place { id: footer.table.0, offset: handle.offset }, stored).map(Cow::into_owned)
    }
}

fn block_line(what: &'static str, handle: BlockHandle) -> Line {
    Line::new(1, what).field("offset", handle.offset).field("bytes", handle.length)
}

fn properties_line(footer: &Footer, properties: &Properties) -> Line {
    Line::new(1, "properties")
        .field("table", footer.table.0)
        .field("keyspace", properties.keyspace.0)
        .bytes("name", properties.name.as_deref().unwrap_or_default().as_bytes())
        .field("level", properties.level)
        .field("epoch", properties.epoch.0)
        .field("entries", properties.entries)
        .field("tombstones", properties.tombstones)
        .field("range_tombstones", properties.range_tombstones)
        .field("held_bytes", properties.holds.held().bytes)
        .field("min_seq", properties.min_seq.0)
        .field("max_seq", properties.max_seq.0)
        .field("key_bytes", properties.raw_key_bytes)
        .field("value_bytes", properties.raw_value_bytes)
        .field("data_blocks", properties.data_blocks)
        .bytes("start", &properties.range.start)
        .bytes("end", properties.range.end.as_bytes())
}
