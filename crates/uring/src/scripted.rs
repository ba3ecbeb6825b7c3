//! A kernel of tests: it does what a script says of each write, and the rest right.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use terrace::env::sync::Mutex;

use crate::kernel::{Completion, Kernel, PIECE_BYTES};
use crate::pool::Maker;
use crate::ring::{BUFFER_ALIGN, PIECES};

/// What becomes of a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    Whole,
    /// Only so many bytes are written.
    Short(usize),
    /// Nothing is, for this reason.
    Fails(i32),
}

/// What becomes of the next writes and reservations; those that come later go well.
#[derive(Debug, Default)]
pub(crate) struct Script {
    pub(crate) writes: VecDeque<Outcome>,
    /// Error codes, 0 for success.
    pub(crate) reserves: VecDeque<i32>,
    /// The ring itself fails.
    pub(crate) is_broken: bool,
    /// Writes complete in the reverse order.
    pub(crate) is_reversed: bool,
    /// Most writes that were in flight at a time.
    pub(crate) in_flight_max: usize,
    /// Lengths and offsets of the writes that were queued.
    pub(crate) queued: Vec<(u64, usize)>,
}

/// A script that a test holds, too.
pub(crate) type Shared = Arc<Mutex<Script>>;

struct Write {
    at: usize,
    part: Range<usize>,
    file: Arc<File>,
    offset: u64,
}

/// Aligned memory.
struct Buffer {
    memory: Vec<u8>,
    start: usize,
}

struct Scripted {
    script: Shared,
    buffers: Vec<Buffer>,
    queue: VecDeque<Write>,
}

/// Makes kernels that follow one script.
pub(crate) fn maker(script: &Shared) -> Maker {
    let script = script.clone();
    Box::new(move || {
        let buffers = (0..PIECES).map(|_| {
            let memory = vec![0_u8; PIECE_BYTES + BUFFER_ALIGN];
            let start = memory.as_ptr().align_offset(BUFFER_ALIGN);
            Buffer { memory, start }
        });
        let buffers = buffers.collect();
        Ok(Box::new(Scripted { script: script.clone(), buffers, queue: VecDeque::new() }))
    })
}

fn failed(code: i32) -> io::Error {
    io::Error::from_raw_os_error(code)
}

impl Scripted {
    fn check(&self) -> io::Result<()> {
        if self.script.lock().is_broken { Err(failed(libc::EBADF)) } else { Ok(()) }
    }
}

impl Kernel for Scripted {
    fn pieces(&self) -> usize {
        self.buffers.len()
    }

    fn buffer(&self, at: usize) -> &[u8] {
        let Buffer { memory, start } = &self.buffers[at];
        &memory[*start..][..PIECE_BYTES]
    }

    fn buffer_mut(&mut self, at: usize) -> &mut [u8] {
        assert!(self.queue.iter().all(|write| write.at != at), "in flight");
        let Buffer { memory, start } = &mut self.buffers[at];
        &mut memory[*start..][..PIECE_BYTES]
    }

    fn write(&mut self, at: usize, part: Range<usize>, file: &Arc<File>, offset: u64) -> io::Result<()> {
        self.check()?;
        assert!(self.queue.iter().all(|write| write.at != at), "in flight");
        self.queue.push_back(Write { at, part: part.clone(), file: file.clone(), offset });
        let mut script = self.script.lock();
        script.in_flight_max = script.in_flight_max.max(self.queue.len());
        script.queued.push((offset, part.len()));
        Ok(())
    }

    fn submit(&mut self) -> io::Result<()> {
        self.check()
    }

    fn take(&mut self, wait: bool) -> io::Result<Option<Completion>> {
        self.check()?;
        if !wait {
            return Ok(None);
        }
        let is_reversed = self.script.lock().is_reversed;
        let next = if is_reversed { self.queue.pop_back() } else { self.queue.pop_front() };
        let Some(Write { at, part, file, offset }) = next else { return Ok(None) };
        let outcome = self.script.lock().writes.pop_front().unwrap_or(Outcome::Whole);
        let length = match outcome {
            Outcome::Whole => part.len(),
            Outcome::Short(length) => length.min(part.len()),
            Outcome::Fails(code) => return Ok(Some(Completion { at, result: Err(failed(code)) })),
        };
        file.write_all_at(&self.buffer(at)[part][..length], offset)?;
        Ok(Some(Completion { at, result: Ok(length) }))
    }

    fn reserve(&mut self, file: &File, range: Range<u64>) -> io::Result<()> {
        match self.script.lock().reserves.pop_front() {
            None | Some(0) => file.set_len(file.metadata()?.len().max(range.end)),
            Some(code) => Err(failed(code)),
        }
    }
}
