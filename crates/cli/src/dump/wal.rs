//! The dump of a log segment: how it follows the segment before, and its batches.

use std::io::{self, Write};

use terrace::format::Malformed;
use terrace::format::batch::{Action, BATCH_HEADER_BYTES, Op, Ops};
use terrace::format::log::{FRAME_HEADER_BYTES, Frame, LogBytes};
use terrace::format::segment::{BATCH_FRAME, START_FRAME, SegmentStart};
use terrace::types::SegmentId;

use super::log::dump_frames;
use super::{Line, Printer};

/// Prints `bytes`, the whole contents of `segment`.
pub fn dump_wal<W: Write>(
    segment: SegmentId,
    bytes: impl LogBytes<Error = io::Error>,
    printer: &mut Printer<W>,
) -> io::Result<()> {
    dump_frames(segment.0, bytes, printer, |frame, printer| {
        let payload_at = frame.offset + FRAME_HEADER_BYTES as u64;
        match frame.kind {
            START_FRAME => match start(frame) {
                Ok(line) => printer.line(&line),
                Err(error) => printer.malformed(0, payload_at, &error),
            },
            BATCH_FRAME => batch(frame, payload_at, printer),
            kind => printer.line(&head(frame, "frame").field("kind", kind)),
        }
    })
}

fn head(frame: &Frame<'_>, what: &'static str) -> Line {
    Line::new(0, what)
        .field("offset", frame.offset)
        .field("payload_bytes", frame.payload.len())
        .field("synced", frame.synced)
}

fn start(frame: &Frame<'_>) -> Result<Line, Malformed> {
    let SegmentStart { previous, length, durable } = SegmentStart::decode(frame.payload)?;
    let line = head(frame, "start").field("previous_segment", previous.0).field("previous_bytes", length);
    Ok(line.field("previous_durable", durable))
}

fn batch<W: Write>(frame: &Frame<'_>, payload_at: u64, printer: &mut Printer<W>) -> io::Result<()> {
    let (first, ops) = match Ops::decode(frame.payload) {
        Ok(decoded) => decoded,
        Err(error) => return printer.malformed(0, payload_at, &error),
    };
    printer.line(&head(frame, "batch").field("first_seq", first.0).field("operations", ops.remaining()))?;
    for (seq, op) in (first.0..).zip(ops) {
        match op {
            Ok(op) => printer.line(&op_line(seq, &op))?,
            Err(error) => printer.malformed(1, payload_at + BATCH_HEADER_BYTES as u64, &error)?,
        }
    }
    Ok(())
}

fn op_line(seq: u64, op: &Op<'_>) -> Line {
    let line = |what| Line::new(1, what).field("seq", seq).field("keyspace", op.keyspace.0);
    match op.action {
        Action::Delete { key } => line("delete").bytes("key", key),
        Action::Put { key, value } => line("put").bytes("key", key).bytes("value", value),
        Action::DeleteRange { start, end } => line("delete_range").bytes("start", start).bytes("end", end),
    }
}
