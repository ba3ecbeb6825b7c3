//! The dump of a manifest: whose it is, and the edits of the catalog. The first one is the whole catalog when the file
//! was begun.

use std::io::{self, Write};

use terrace::format::edit::{Edit, KeyspaceChange, TableRecord, TreeEdit};
use terrace::format::log::{FRAME_HEADER_BYTES, Frame, LogBytes};
use terrace::format::manifest::{EDIT_FRAME, ManifestStart, START_FRAME};
use terrace::format::names::log_id_of_manifest;

use super::log::dump_frames;
use super::{Line, Printer};

/// Prints `bytes`, the whole contents of manifest `number`.
pub fn dump_manifest<W: Write>(
    number: u64,
    bytes: impl LogBytes<Error = io::Error>,
    printer: &mut Printer<W>,
) -> io::Result<()> {
    dump_frames(log_id_of_manifest(number), bytes, printer, |frame, printer| {
        let payload_at = frame.offset + FRAME_HEADER_BYTES as u64;
        match frame.kind {
            START_FRAME => match ManifestStart::decode(frame.payload) {
                Ok(start) => printer.line(&head(frame, "start").field("store", start.store.to_string())),
                Err(error) => printer.malformed(0, payload_at, &error),
            },
            EDIT_FRAME => match Edit::decode(frame.payload) {
                Ok(edit) => dump_edit(frame.offset, &edit, printer),
                Err(error) => printer.malformed(0, payload_at, &error),
            },
            kind => printer.line(&head(frame, "frame").field("kind", kind)),
        }
    })
}

fn head(frame: &Frame<'_>, what: &'static str) -> Line {
    Line::new(0, what).field("offset", frame.offset)
}

fn dump_edit<W: Write>(offset: u64, edit: &Edit, printer: &mut Printer<W>) -> io::Result<()> {
    let counters = &edit.counters;
    let line = Line::new(0, "edit")
        .field("offset", offset)
        .field("number", edit.number.0)
        .field("next_table", counters.table.0)
        .field("next_pack", counters.pack.0)
        .field("next_epoch", counters.epoch.0)
        .field("next_segment", counters.segment.0)
        .field("wal_floor", counters.wal_floor.0)
        .field("next_keyspace", counters.keyspace.0)
        .field("seq", counters.seq.0);
    printer.line(&line)?;
    for change in &edit.keyspaces {
        printer.line(&match change {
            KeyspaceChange::Create(record) => Line::new(1, "create_keyspace")
                .field("keyspace", record.id.0)
                .field("name", record.name.as_str())
                .field("lz4", record.lz4)
                .field("filter_bits", record.filter_bits)
                .field("ttl", record.ttl.map(|ttl| ttl.seconds.get()))
                .field("prefix", record.prefix.map(|rule| rule.to_string())),
            KeyspaceChange::Drop(id) => Line::new(1, "drop_keyspace").field("keyspace", id.0),
            KeyspaceChange::Alter { keyspace, lz4, filter_bits } => Line::new(1, "alter_keyspace")
                .field("keyspace", keyspace.0)
                .field("lz4", *lz4)
                .field("filter_bits", *filter_bits),
            KeyspaceChange::SetSeparation { keyspace, from } => Line::new(1, "alter_separation")
                .field("keyspace", keyspace.0)
                .field("from", from.map(std::num::NonZeroU32::get)),
            KeyspaceChange::SetTtl { keyspace, ttl } => Line::new(1, "alter_life")
                .field("keyspace", keyspace.0)
                .field("seconds", ttl.seconds.get())
                .field("alive_from", ttl.alive_from),
        })?;
    }
    for pack in &edit.packs {
        let line = Line::new(1, "pack").field("pack", pack.id.0).field("device", pack.device.0);
        printer.line(&line.field("bytes", pack.length))?;
    }
    edit.trees.iter().try_for_each(|tree| dump_tree(tree, printer))
}

fn dump_tree<W: Write>(tree: &TreeEdit, printer: &mut Printer<W>) -> io::Result<()> {
    let line = Line::new(1, "tree").field("keyspace", tree.keyspace.0);
    printer.line(&match tree.flushed {
        Some(seq) => line.field("flushed", seq.0),
        None => line,
    })?;
    for (level, table) in &tree.drop {
        printer.line(&Line::new(2, "drop").field("level", *level).field("table", table.0))?;
    }
    for (level, table) in &tree.add {
        printer.line(&added(*level, table))?;
    }
    for values in &tree.values {
        let line =
            Line::new(2, "value_table").field("table", values.id.0).field("pack", values.extent.pack.0);
        let line = line.field("offset", values.extent.offset).field("bytes", values.extent.length);
        let line = line.field("values", values.count).bytes("start", &values.range.start);
        printer.line(&line.bytes("end", values.range.end.as_bytes()))?;
    }
    for deaths in &tree.deaths {
        let line = Line::new(2, "deaths").field("table", deaths.table.0).field("values", deaths.count);
        printer.line(&line.field("bytes", deaths.spans.bytes()))?;
    }
    for (level, key) in &tree.cursors {
        printer.line(&Line::new(2, "cursor").field("level", *level).bytes("key", key))?;
    }
    Ok(())
}

fn added(level: u8, table: &TableRecord) -> Line {
    Line::new(2, "add")
        .field("level", level)
        .field("table", table.id.0)
        .field("pack", table.extent.pack.0)
        .field("offset", table.extent.offset)
        .field("bytes", table.extent.length)
        .field("epoch", table.epoch.0)
        .field("entries", table.entries)
        .field("tombstones", table.tombstones)
        .field("range_tombstones", table.range_tombstones)
        .field("pointers", table.values.count)
        .field("held_bytes", table.holds.held().bytes)
        .field("min_seq", table.min_seq.0)
        .field("max_seq", table.max_seq.0)
        .bytes("start", &table.range.start)
        .bytes("end", table.range.end.as_bytes())
}
