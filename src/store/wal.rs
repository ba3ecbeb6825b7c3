//! The write-ahead log: a chain of segments, each of which is a file of frames.
//!
//! The first frame of a segment names the segment before it, that segment's length, and whether that segment was
//! durable by then. Every other frame holds one batch. `docs/design/write.md` has the way of a write through the log.
//!
//! # Durability
//!
//! * A segment's name is durable before its first byte is written ([`Wal::roll`]).
//! * [`Durable::sync`] syncs older segments before the current one. It needs no lock on the log: writers append while
//!   others sync.
//! * Each frame records how many bytes of its segment were durable when the frame was written. More than 0 means that
//!   every older segment was durable too.
//! * A write that failed is cut off again, durably, before its callers get the error ([`Wal::append`]). So they may
//!   rely on its absence. After a failed sync or a failed cut the outcome is unknown, and the caller must stop
//!   writing.
//!
//! # Recovery ([`recover`])
//!
//! Bytes that were not synced may be gone, in part or whole, in any order. The log ends at the first frame whose
//! checksum is wrong. That is legal only if no frame behind it records that these bytes were durable. Recovery then
//! cuts the torn segment there and removes the segments behind it, newest first; none of them was synced. It does so
//! before anything else is written, so that a second reading of the log gives the same answer. What is left is made
//! durable before the store goes on.
//!
//! # Length of a segment's file
//!
//! A sync that must record a new length or a new block of a file is slower, and much slower where the file system has
//! a journal (`docs/benchmarks/choices.md`, "Zeros ahead of the log"). So a segment's file may be longer than what it
//! holds. It takes over a recycled file (see [`RecycledFiles`]), or, once somebody waits for syncs, the log writes
//! zeros ahead of its end. Behind the last frame the reader finds zeros, or frames of another segment, whose
//! checksums are wrong under this segment's id.
//!
//! Where the pages of an overwritten file are not in memory, the kernel reads a page before it changes a part of it,
//! and the writer waits for the disk. So the first write to a page covers the whole page, with zeros at its end.

mod durable;
mod next;

use std::collections::VecDeque;
use std::sync::Arc;

use crate::env::Access;
use crate::error::{Error, Result};
use crate::format::Malformed;
use crate::format::batch::{BATCH_HEADER_BYTES, Ops, encode_header};
use crate::format::log::{
    FRAME_HEADER_BYTES, Frame, FrameReader, FrameWriter, LogBytes, Pieces, Tail, first_prev,
};
use crate::format::names::FileName;
use crate::format::segment::{BATCH_FRAME, START_FRAME, SegmentStart};
use crate::store::files::device::Device;
use crate::store::files::file::{StoreFile, write_piece};
use crate::store::files::meter::{ReadCause, WriteCause};
use crate::store::files::recycled::RecycledFiles;
use crate::types::{PAGE_BYTES, SegmentId, Seq};

pub(crate) use durable::Durable;
use durable::OpenSegment;
pub(crate) use next::NextSegment;

/// Recovery reads the log in pieces of this size, and a batch that is longer as a whole.
const PIECE_BYTES: u64 = 64 << 10;

/// Recovery rewrites the log in pieces of this size.
const REWRITE_BYTES: usize = 1 << 20;

/// A batch of this many bytes or more is written from where it lies: a copy would take longer than another system
/// call.
const STRAIGHT_BYTES: usize = 1 << 20;

/// Bytes of zeros that are written ahead of the log's end at a time.
const PREALLOCATED_BYTES: u64 = 256 << 10;

/// A batch on its way into the log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogBatch<Ops> {
    /// Sequence number of its first operation.
    pub(crate) first: Seq,
    /// Number of operations.
    pub(crate) count: u32,
    /// The encoded operations, in pieces.
    pub(crate) ops: Ops,
}

/// A segment that is complete but may still hold the only copy of some entries.
#[derive(Debug)]
struct OldSegment {
    id: SegmentId,
    last_seq: Seq,
    bytes: u64,
}

/// The log, open for appending.
#[derive(Debug)]
pub(crate) struct Wal {
    old: VecDeque<OldSegment>,
    next: Arc<NextSegment>,
    current: Arc<OpenSegment>,
    durable: Arc<Durable>,
    frames: FrameWriter,
    /// Offset up to which zeros were written ahead in the current segment.
    preallocated: u64,
    /// Length of the file that the current segment has taken over.
    taken_over: u64,
    last_seq: Seq,
    buffer: Vec<u8>,
}

impl Wal {
    /// Starts a new segment `id` behind the recovered ones.
    pub(crate) fn open(
        device: Arc<Device>,
        recycled: Arc<RecycledFiles>,
        segment_bytes: u64,
        id: SegmentId,
        recovered: &[RecoveredSegment],
    ) -> Result<Self> {
        let (previous, length) =
            recovered.last().map_or((SegmentId(0), 0), |segment| (segment.id, segment.bytes));
        // Recovery has made the older segments durable: see [`Recovered::repair`].
        let start = SegmentStart { previous, length, durable: true };
        let next = NextSegment::new(device, recycled, segment_bytes, id);
        let (id, file) = next.take()?;
        let (current, frames, taken_over) =
            start_segment(id, file, start).map_err(|why| next.abandon(id, why))?;
        let old = recovered.iter().map(|segment| OldSegment {
            id: segment.id,
            last_seq: segment.last_seq,
            bytes: segment.bytes,
        });
        let last_seq = recovered.last().map_or(Seq::ZERO, |segment| segment.last_seq);
        Ok(Self {
            old: old.collect(),
            next: Arc::new(next),
            durable: Arc::new(Durable::new(current.clone(), last_seq)),
            current,
            frames,
            preallocated: 0,
            taken_over,
            last_seq,
            buffer: Vec::new(),
        })
    }

    /// How much of the log is durable, and the way to make more of it durable.
    pub(crate) fn durable(&self) -> &Arc<Durable> {
        &self.durable
    }

    /// Appends batches, one frame each, in one write. They survive the death of the process when this returns.
    pub(crate) fn append<'a>(
        &mut self,
        batches: impl Iterator<Item = LogBatch<impl Iterator<Item = &'a [u8]> + Clone>>,
    ) -> Result<()> {
        let before = self.frames.clone();
        let mut last = self.last_seq;
        let mut result = Ok(());
        for batch in batches {
            last = Seq(batch.first.0 + u64::from(batch.count).saturating_sub(1));
            result = result.and_then(|()| self.put(batch));
        }
        let (file, offset) = (&self.current.file, self.unwritten());
        let written = result.and_then(|()| write(file, offset, &mut self.buffer, self.taken_over));
        self.buffer.clear();
        if let Err(error) = written {
            // Whole frames of the failed write must not be read back. Nor may they make the segment longer than the
            // next segment's first frame says.
            self.frames = before;
            (self.preallocated, self.taken_over) = (0, 0);
            if !planted!("failed-append-left-in-the-log") {
                self.current.file.set_len(self.frames.offset())?;
            }
            if !planted!("cut-of-a-failed-append-not-synced") {
                self.current.file.sync(WriteCause::Wal)?;
            }
            return Err(error);
        }
        self.last_seq = last;
        self.current.appended_to(self.frames.offset());
        self.durable.appended_to(last);
        self.write_ahead();
        Ok(())
    }

    /// Appends the frame of a batch to the buffer. Most of a large batch is written at once, from where it lies, so
    /// that it takes no memory here.
    fn put<'a>(&mut self, batch: LogBatch<impl Iterator<Item = &'a [u8]> + Clone>) -> Result<()> {
        let header = encode_header(batch.first, batch.count);
        let synced = self.current.synced();
        let mut pieces = batch.ops.clone();
        if let (Some(ops), None) = (pieces.next(), pieces.next())
            && (ops.len() < STRAIGHT_BYTES || planted!("large-batch-copied-for-the-log"))
        {
            self.frames.append(BATCH_FRAME, &[&header, ops], synced, &mut self.buffer);
            return Ok(());
        }
        let mut end = self.unwritten();
        #[expect(clippy::map_identity, reason = "the operations live longer than the header")]
        let payload: Vec<&[u8]> = std::iter::once(&header[..]).chain(batch.ops.map(|ops| ops)).collect();
        self.frames.append_header(BATCH_FRAME, &payload, synced, &mut self.buffer);
        for piece in payload {
            let file = &self.current.file;
            let write = |at, bytes: &[u8]| file.write(WriteCause::Wal, at, bytes);
            end = write_piece(end, piece, &mut self.buffer, write)?;
        }
        Ok(())
    }

    /// Offset in the current segment at which the buffer belongs.
    fn unwritten(&self) -> u64 {
        self.frames.offset() - self.buffer.len() as u64
    }

    /// Writes zeros ahead of the log's end, once somebody waits for syncs.
    fn write_ahead(&mut self) {
        let end = self.frames.offset();
        if end > self.preallocated && self.durable.has_waiters() {
            self.preallocated = end + PREALLOCATED_BYTES;
            // Only for speed: nothing depends on the bytes behind the log's end. So a failure is ignored.
            let _ = self.current.file.fill(WriteCause::Wal, self.preallocated);
        }
    }

    /// Cuts off the bytes behind the end of the current segment, and removes the prepared next segment. The log is
    /// not used again.
    pub(crate) fn trim(&mut self) {
        cut(&self.current.file, self.frames.offset());
        self.next.discard();
    }

    /// The segment that [`Wal::roll`] will need, to be made without holding the log.
    pub(crate) fn next(&self) -> &Arc<NextSegment> {
        &self.next
    }

    /// Ends the current segment and starts the next. After a failure the current one goes on.
    pub(crate) fn roll(&mut self) -> Result<()> {
        let bytes = self.frames.offset();
        let start = SegmentStart { previous: self.current.id, length: bytes, durable: self.durable.all() };
        let (id, file) = self.next.take()?;
        let (current, frames, taken_over) =
            start_segment(id, file, start).map_err(|why| self.next.abandon(id, why))?;
        self.durable.rolled_to(current.clone());
        let old = std::mem::replace(&mut self.current, current);
        self.old.push_back(OldSegment { id: old.id, last_seq: self.last_seq, bytes });
        cut(&old.file, bytes);
        self.frames = frames;
        (self.preallocated, self.taken_over) = (0, taken_over);
        Ok(())
    }

    /// The oldest segment that may hold an entry at or behind `first_needed`.
    pub(crate) fn floor(&self, first_needed: Seq) -> SegmentId {
        let first_needed = if planted!("log-floor-off-by-one") { first_needed.plus(1) } else { first_needed };
        let needed = self.old.iter().find(|segment| segment.last_seq >= first_needed);
        needed.map_or(self.current.id, |segment| segment.id)
    }

    /// Forgets the segments before `floor`, and returns them and their lengths; the caller gives up their files.
    pub(crate) fn release(&mut self, floor: SegmentId) -> Vec<(SegmentId, u64)> {
        let mut released = Vec::new();
        while self.old.front().is_some_and(|segment| segment.id < floor) {
            released.extend(self.old.pop_front().map(|segment| (segment.id, segment.bytes)));
        }
        self.durable.released(floor);
        released
    }

    /// Bytes in all segments that are still needed.
    pub(crate) fn bytes(&self) -> u64 {
        self.old.iter().map(|segment| segment.bytes).sum::<u64>() + self.frames.offset()
    }

    /// Number of segments that are still needed, the current one included.
    pub(crate) fn segments(&self) -> usize {
        self.old.len() + 1
    }

    /// The segments that are still needed, oldest first, and up to where each is written.
    pub(crate) fn extents(&self) -> impl Iterator<Item = (SegmentId, u64)> {
        let current = (self.current.id, self.frames.offset());
        self.old.iter().map(|segment| (segment.id, segment.bytes)).chain([current])
    }

    /// Bytes in the current segment.
    pub(crate) fn current_bytes(&self) -> u64 {
        self.frames.offset()
    }

    /// The id that the next segment will have.
    pub(crate) fn next_id(&self) -> SegmentId {
        self.next.id()
    }
}

/// Cuts the file at the `end` of its segment: behind it lie zeros, or the rest of a recycled file. Only to save
/// space, so a failure is ignored.
fn cut(file: &StoreFile, end: u64) {
    if file.len().is_ok_and(|length| length > end) {
        let _ = file.set_len(end);
    }
}

/// Writes the first frame of a segment. Also returns the length of the recycled file that the segment has taken over.
fn start_segment(
    id: SegmentId,
    file: StoreFile,
    start: SegmentStart,
) -> Result<(Arc<OpenSegment>, FrameWriter, u64)> {
    let mut frames = FrameWriter::new(id.0, 0, first_prev(id.0));
    let mut bytes = Vec::new();
    frames.append(START_FRAME, &[&start.encode()], 0, &mut bytes);
    let taken_over = file.len()?;
    write(&file, 0, &mut bytes, taken_over)?;
    Ok((Arc::new(OpenSegment::new(id, file, frames.offset())), frames, taken_over))
}

/// Writes `bytes` at `offset`, the end of the log in a file that held `taken_over` bytes, and fills the last page
/// with zeros: see the module's section on length. Nothing of the log lies where these zeros go.
fn write(file: &StoreFile, offset: u64, bytes: &mut Vec<u8>, taken_over: u64) -> Result<()> {
    let (length, end) = (bytes.len(), offset + bytes.len() as u64);
    let last_page = end - end % PAGE_BYTES;
    if (offset..end).contains(&last_page) && end < taken_over {
        bytes.resize(length + (last_page + PAGE_BYTES - end) as usize, 0);
    }
    file.write_padded(WriteCause::Wal, offset, bytes, length)
}

/// A segment as recovery left it.
#[derive(Clone, Debug)]
pub(crate) struct RecoveredSegment {
    pub(crate) id: SegmentId,
    /// Length of the prefix that a frame of the segment says was durable.
    durable: u64,
    pub(crate) last_seq: Seq,
    pub(crate) bytes: u64,
    pub(crate) file: Arc<StoreFile>,
}

/// What recovery found, and what it must still repair before the log may grow.
#[derive(Debug, Default)]
pub(crate) struct Recovered {
    /// The segments that hold the log, oldest first.
    pub(crate) segments: Vec<RecoveredSegment>,
    /// Segments behind the log's end, none of them ever synced.
    surplus: Vec<SegmentId>,
    /// Whether the last segment ends in a torn frame.
    torn: bool,
}

/// Opens the segments from `floor` on, oldest first, each by `open`.
pub(crate) fn segments(
    device: &Device,
    floor: SegmentId,
    open: impl Fn(FileName) -> Result<StoreFile>,
) -> Result<Vec<(SegmentId, Arc<StoreFile>)>> {
    let mut ids: Vec<SegmentId> = device
        .list()?
        .into_iter()
        .filter_map(|name| match name {
            FileName::Wal(id) if id >= floor => Some(id),
            _ => None,
        })
        .collect();
    ids.sort_unstable();
    if floor > SegmentId(0) && ids.first() != Some(&floor) {
        return Err(Error::corruption(&device.path(FileName::Wal(floor)), 0, "the log segment is missing"));
    }
    ids.into_iter().map(|id| Ok((id, Arc::new(open(FileName::Wal(id))?)))).collect()
}

/// Reads `segments`, all from `floor` on, and hands every batch to `replay`, in order. Writes nothing.
pub(crate) fn recover(
    segments: &[(SegmentId, Arc<StoreFile>)],
    floor: SegmentId,
    mut replay: impl FnMut(Seq, Ops<'_>) -> Result<(), Malformed>,
) -> Result<Recovered> {
    let mut recovered = Recovered::default();
    for (at, (id, file)) in segments.iter().enumerate() {
        let id = *id;
        let mut frames = frames(id, file)?;
        let mut last_seq = recovered.segments.last().map_or(Seq::ZERO, |segment| segment.last_seq);
        let continues = match &frames.next_frame()? {
            Some(start) => continues(file, start, floor, &recovered)?,
            // Not even the first frame has reached the disk. The manifest asks for the oldest segment by name, so that
            // one stays, empty; any other might as well not be there.
            None => at == 0,
        };
        if !continues {
            // The log has lost its un-synced end; so nothing from here on may have been synced.
            refuse_if_synced(&recovered, &segments[at..])?;
            recovered.surplus = segments[at..].iter().map(|(id, _)| *id).collect();
            return Ok(recovered);
        }
        let mut durable = 0;
        while let Some(frame) = frames.next_frame()? {
            durable = durable.max(frame.synced);
            last_seq = replay_frame(file, &frame, last_seq, &mut replay)?;
        }
        recovered.torn = match frames.read_tail()? {
            Tail::Clean { .. } => false,
            Tail::Torn { .. } => true,
            Tail::Damaged { offset } => {
                return Err(file.corruption(offset, "a log record that had been synced fails its checksum"));
            }
        };
        let (bytes, _) = frames.state();
        recovered.segments.push(RecoveredSegment { id, durable, last_seq, bytes, file: file.clone() });
    }
    Ok(recovered)
}

impl Recovered {
    /// Cuts the torn tail and removes what lies behind the log's end, so that the log can grow and be read again.
    pub(crate) fn repair(&self, device: &Device) -> Result<()> {
        // Newest first: if the power goes in between, what is left is still a log and its surplus.
        for &id in self.surplus.iter().rev() {
            device.remove(FileName::Wal(id))?;
            if !planted!("surplus-log-removed-in-any-order") {
                device.sync_names()?;
            }
        }
        if let (true, Some(last)) = (self.torn, self.segments.last()) {
            last.file.set_len(last.bytes)?;
        }
        if planted!("recovered-log-not-written-again") {
            return Ok(());
        }
        // The bytes that were read may be in the page cache alone: after a failed sync, later syncs succeed without
        // writing them (`docs/design/README.md`, assumption 5). So whatever is not known to be durable is written
        // once more. A frame that records durable bytes of its own segment says that all older segments are durable.
        let testified = self.segments.iter().rposition(|segment| segment.durable > 0).unwrap_or(0);
        let testified = testified + usize::from(planted!("recovered-segment-taken-for-durable"));
        self.segments.iter().skip(testified).try_for_each(RecoveredSegment::rewrite)
    }
}

impl RecoveredSegment {
    /// Overwrites the bytes that are not known to be durable with themselves, and syncs the file.
    fn rewrite(&self) -> Result<()> {
        let mut at = self.durable;
        while at < self.bytes {
            let length = REWRITE_BYTES.min(usize::try_from(self.bytes - at).unwrap_or(REWRITE_BYTES));
            let bytes = self.file.read(ReadCause::Open, at, length)?;
            self.file.write(WriteCause::Wal, at, &bytes)?;
            at += bytes.len() as u64;
        }
        self.file.sync(WriteCause::Wal)
    }
}

/// Hands every intact batch of the segments from `floor` on to `replay`, whatever lies between them. Returns what is
/// damaged.
pub(crate) fn repair_scan(
    device: &Device,
    floor: SegmentId,
    mut replay: impl FnMut(Seq, Ops<'_>) -> Result<(), Malformed>,
) -> Result<Vec<Error>> {
    let segment = |name| if let FileName::Wal(id) = name { Some(id) } else { None };
    let mut ids: Vec<_> = device.list()?.into_iter().filter_map(segment).filter(|&id| id >= floor).collect();
    ids.sort_unstable();
    let mut lost = Vec::new();
    if floor > SegmentId(0) && ids.first() != Some(&floor) {
        lost.push(Error::corruption(&device.path(FileName::Wal(floor)), 0, "the log segment is missing"));
    }
    for (at, &id) in ids.iter().enumerate() {
        let segment = ScannedSegment { device, id, next: ids.get(at + 1).copied() };
        let scanned = segment.scan(&mut replay, &mut lost);
        lost.extend(scanned.err());
    }
    Ok(lost)
}

/// A segment of a log of which all is taken that checks.
struct ScannedSegment<'a> {
    device: &'a Device,
    id: SegmentId,
    /// The segment behind it.
    next: Option<SegmentId>,
}

impl ScannedSegment<'_> {
    /// Hands every intact batch to `replay`, and adds to `lost` what is damaged. Fails where the file cannot be read.
    fn scan(
        &self,
        replay: &mut impl FnMut(Seq, Ops<'_>) -> Result<(), Malformed>,
        lost: &mut Vec<Error>,
    ) -> Result<()> {
        let file = self.device.open(FileName::Wal(self.id), Access::Read)?;
        let mut frames = frames(self.id, &file)?;
        loop {
            while let Some(frame) = frames.next_frame()? {
                let replayed = if frame.kind == BATCH_FRAME { replay_sound(&frame, replay) } else { Ok(()) };
                lost.extend(
                    replayed.err().map(|e| file.malformed(frame.offset + FRAME_HEADER_BYTES as u64, &e)),
                );
            }
            let (end, tail) = (frames.state().0, frames.read_tail()?);
            let more = frames.find_next()?;
            let clean = matches!(tail, Tail::Clean { .. });
            // Where frames were lost, there may be zeros, or old bytes of a recycled file.
            let ends = !more && (clean || matches!(tail, Tail::Torn { .. }));
            let whole = if ends { self.may_end(end) } else { clean };
            if !whole {
                lost.push(file.corruption(end, "log records from here on do not check"));
            }
            if !more {
                return Ok(());
            }
        }
    }

    /// Whether nothing is lost if the segment ends at `end`. The first frame of the next segment records where this
    /// one ended; behind that lie old bytes of a recycled file. If no next segment has begun, a crash may have torn
    /// off frames that were never acknowledged as durable.
    fn may_end(&self, end: u64) -> bool {
        let Some(next) = self.next else { return true };
        let Ok(file) = self.device.open(FileName::Wal(next), Access::Read) else { return false };
        let Ok(mut frames) = frames(next, &file) else { return false };
        frames.next_frame().is_ok_and(|first| {
            first.is_none_or(|first| {
                SegmentStart::of(&first).is_some_and(|start| (start.previous, start.length) == (self.id, end))
            })
        })
    }
}

/// Hands the batch of `frame` to `replay` if all of it can be read.
fn replay_sound(
    frame: &Frame<'_>,
    replay: &mut impl FnMut(Seq, Ops<'_>) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    let (first, ops) = Ops::decode(frame.payload)?;
    ops.clone().try_for_each(|op| op.map(drop))?;
    replay(first, ops)
}

/// Reads the frames of segment `id`.
fn frames(id: SegmentId, file: &StoreFile) -> Result<FrameReader<impl LogBytes<Error = Error>>> {
    let read = |offset, bytes: &mut [u8]| file.read_into(ReadCause::Open, offset, bytes);
    Ok(FrameReader::over(id.0, Pieces::new(file.len()?, PIECE_BYTES, read)))
}

/// Whether the segment that starts with `start` follows the last recovered one without a gap. `false` when the
/// predecessor is shorter than it was.
fn continues(file: &StoreFile, start: &Frame<'_>, floor: SegmentId, recovered: &Recovered) -> Result<bool> {
    let Some(SegmentStart { previous, length, .. }) = SegmentStart::of(start) else {
        return Err(file.corruption(start.offset, "the log segment does not start with a start record"));
    };
    match recovered.segments.last() {
        None if previous < floor || previous == SegmentId(0) => Ok(true),
        Some(last) if last.id == previous => {
            Ok(last.bytes == length || planted!("gap-between-segments-accepted"))
        }
        _ => {
            Err(file
                .corruption(start.offset, format!("log segment {previous}, which comes before, is missing")))
        }
    }
}

fn replay_frame(
    file: &StoreFile,
    frame: &Frame<'_>,
    last_seq: Seq,
    replay: &mut impl FnMut(Seq, Ops<'_>) -> Result<(), Malformed>,
) -> Result<Seq> {
    let payload_at = frame.offset + FRAME_HEADER_BYTES as u64;
    if frame.kind != BATCH_FRAME {
        return Err(file.corruption(frame.offset, "unknown kind of log record"));
    }
    let (first, ops) = Ops::decode(frame.payload).map_err(|e| file.malformed(payload_at, &e))?;
    let count = u64::from(ops.remaining());
    if first <= last_seq && last_seq != Seq::ZERO || count == 0 {
        return Err(file.corruption(payload_at, "sequence numbers of the log do not grow"));
    }
    replay(first, ops).map_err(|e| file.malformed(payload_at + BATCH_HEADER_BYTES as u64, &e))?;
    Ok(Seq(first.0 + count - 1))
}

/// Fails if a frame in `segments`, which lie behind the log's end, records that the bytes before it were durable.
fn refuse_if_synced(recovered: &Recovered, segments: &[(SegmentId, Arc<StoreFile>)]) -> Result<()> {
    for (id, file) in segments {
        let mut frames = frames(*id, file)?;
        let mut synced = false;
        while let (false, Some(frame)) = (synced, frames.next_frame()?) {
            synced = frame.synced > 0 || SegmentStart::of(&frame).is_some_and(|start| start.durable);
        }
        if synced || matches!(frames.read_tail()?, Tail::Damaged { .. }) {
            let what = "log records that had been synced are missing";
            return Err(match recovered.segments.last() {
                Some(last) => last.file.corruption(last.bytes, what),
                None => file.corruption(0, what),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
