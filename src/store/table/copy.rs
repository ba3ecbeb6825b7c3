//! Copies a table into another pack, byte by byte.
//!
//! Offsets in a table are relative to it, and its checksums are bound to its id, not to its place. So the copy is the
//! same table, under the same id. All checksums are verified on the way, so that damage is not copied.

use super::{TablePlace, TableReader};
use crate::catalog::TableMeta;
use crate::error::Result;
use crate::store::files::file::StoreFile;
use crate::store::files::meter::ReadCause;
use crate::store::files::pack::PackWriter;
use crate::types::Extent;

/// A table is read in pieces of about this many bytes.
const PIECE_BYTES: u64 = 1 << 20;

/// Appends `table`, which lies in `file`, to `pack`. Tells `progress` before each piece how much of the table has been read. Returns
/// where the copy lies.
pub(crate) fn copy_table(
    file: &StoreFile,
    table: &TableMeta,
    pack: &mut PackWriter,
    mut progress: impl FnMut(u64),
) -> Result<Extent> {
    // Opening the table and its partitions checks everything behind the data blocks but the properties.
    let table_reader = TableReader::open(file, table.id, table.extent, table.max_seq)?;
    let properties = table_reader.properties(file)?;
    let place = TablePlace { file, id: table.id, extent: table.extent };
    let offset = pack.align();
    let mut copied = copy_blocks(place, &table_reader, 0, pack, &mut progress)?;
    for at in 0..table_reader.partitions() {
        let partition = table_reader.open_partition(file, at)?;
        copied = copy_blocks(place, &partition, copied, pack, &mut progress)?;
    }
    while copied < table.extent.length {
        progress(copied);
        let end = table.extent.length.min(copied + PIECE_BYTES);
        append(place, copied..end, pack)?;
        pack.drain()?;
        copied = end;
    }
    Ok(pack.add_table(table.id, properties.keyspace, offset))
}

/// Appends the blocks of `reader`, before which the first `copied` bytes of the table have been copied. Returns how many these are
/// now.
fn copy_blocks(
    place: TablePlace<'_>,
    reader: &TableReader,
    mut copied: u64,
    pack: &mut PackWriter,
    progress: &mut impl FnMut(u64),
) -> Result<u64> {
    let mut next = 0;
    while let Some(first) = reader.handle(next) {
        let blocks = reader.handles_in(first.offset..first.offset.saturating_add(PIECE_BYTES));
        let end = blocks.last().map_or(0, |last| last.end());
        if first.offset < copied || end <= copied {
            return Err(place.file.corruption(place.extent.offset, "the table's blocks are out of order"));
        }
        progress(copied);
        let start = append(place, copied..end, pack)?;
        for &block in blocks {
            let at = usize::try_from(block.offset.saturating_sub(copied)).unwrap_or(usize::MAX);
            if !planted!("copied-without-a-check") {
                place.check(block, pack.buffer(), start.saturating_add(at))?;
            }
        }
        pack.drain()?;
        (copied, next) = (end, next + blocks.len());
    }
    Ok(copied)
}

/// Appends `range` of a table to the pack's buffer. Returns its offset in the buffer.
fn append(place: TablePlace<'_>, range: std::ops::Range<u64>, pack: &mut PackWriter) -> Result<usize> {
    let buffer = pack.buffer();
    let start = buffer.len();
    // A range beyond the table is refused, before anything is read.
    let length = range.end.min(place.extent.length).saturating_sub(range.start);
    buffer.resize(start + usize::try_from(length).unwrap_or(0), 0);
    place.read(ReadCause::Compaction, range, &mut buffer[start..])?;
    Ok(start)
}
