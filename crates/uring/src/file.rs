//! A file that is written past the page cache where that can be, and otherwise as any other.
//!
//! It has two handles: that of the environment below, and one with `O_DIRECT`, which appends alone use, by a [`Stream`].
//! All else, such as what is shorter than a block, a read or a sync, goes to the first.
//!
//! # Invariants
//!
//! * Without a stream, the file below is what its user sees. With one, it may be longer, for storage is taken ahead, and
//!   lack what is in the stream's buffers. Both end with [`DirectFile::settle`], before anything but a read or an append.
//! * No page is written in both ways between two settlings.
//! * A sync begins when no write is in flight.
//! * A write that failed may have been one of bytes whose caller was told that all is well. So every later call that
//!   writes, syncs or reads fails the same way, for ever.

use std::fmt;
use std::fs;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use terrace::env::File;
use terrace::env::sync::{Mutex, MutexGuard};

use crate::pool::Pool;
use crate::stream::{Stream, Target};

/// The handle for direct writes.
#[derive(Clone, Debug)]
pub(crate) struct Direct {
    pub(crate) file: Arc<fs::File>,
    /// What offsets and lengths must be multiples of, in bytes: a page or more.
    pub(crate) align: usize,
}

/// How a write failed.
#[derive(Clone, Debug)]
struct Failure {
    kind: io::ErrorKind,
    code: Option<i32>,
    text: String,
}

impl Failure {
    fn of(error: &io::Error) -> Self {
        Self { kind: error.kind(), code: error.raw_os_error(), text: error.to_string() }
    }

    fn error(&self) -> io::Error {
        match self.code {
            Some(code) => io::Error::from_raw_os_error(code),
            None => io::Error::new(self.kind, self.text.clone()),
        }
    }
}

struct State {
    /// `None` once direct writes were refused.
    direct: Option<Direct>,
    stream: Option<Stream>,
    failed: Option<Failure>,
}

/// The file.
pub(crate) struct DirectFile {
    buffered: Arc<dyn File>,
    pool: Arc<Pool>,
    state: Mutex<State>,
}

impl DirectFile {
    pub(crate) fn new(buffered: Arc<dyn File>, direct: Direct, pool: Arc<Pool>) -> Self {
        let state = Mutex::new(State { direct: Some(direct), stream: None, failed: None });
        Self { buffered, pool, state }
    }

    /// The file below, which has all bytes.
    pub(crate) fn settled(&self) -> io::Result<&Arc<dyn File>> {
        self.settle().map(|_| &self.buffered)
    }

    /// Ends the stream, if there is one.
    fn settle(&self) -> io::Result<MutexGuard<'_, State>> {
        let mut state = self.state.lock();
        self.settle_state(&mut state)?;
        Ok(state)
    }

    fn settle_state(&self, state: &mut State) -> io::Result<()> {
        if let Some(failed) = &state.failed {
            return Err(failed.error());
        }
        let State { direct: Some(direct), stream: Some(stream), .. } = state else { return Ok(()) };
        let settled = stream.settle(&self.target(direct)).and_then(|()| {
            let length = stream.length();
            if self.buffered.len()? > length { self.buffered.set_len(length) } else { Ok(()) }
        });
        noting(&mut state.failed, settled)?;
        self.release(state);
        Ok(())
    }

    /// Gives the buffers back.
    fn release(&self, state: &mut State) {
        let Some(stream) = state.stream.take() else { return };
        self.pool.counts.direct(stream.direct_bytes());
        if stream.is_refused() {
            state.direct = None;
        }
        self.pool.give(stream.into_kernel());
    }

    fn target<'a>(&'a self, direct: &'a Direct) -> Target<'a> {
        Target { direct: &direct.file, buffered: &*self.buffered, align: direct.align }
    }

    /// Writes without a stream.
    fn write_buffered(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.buffered.write_at(offset, bytes)?;
        self.pool.counts.buffered(bytes.len() as u64);
        Ok(())
    }

    /// Begins a stream at `offset` if so many bytes are worth one.
    fn begin(&self, state: &mut State, offset: u64, bytes: usize) -> io::Result<()> {
        let Some(direct) = &state.direct else { return Ok(()) };
        if bytes < direct.align {
            return Ok(());
        }
        match self.pool.take() {
            Ok(kernel) => state.stream = Some(Stream::new(kernel, offset, self.buffered.len()?)),
            // No memory for one more ring: this file goes the other way.
            Err(_) => state.direct = None,
        }
        Ok(())
    }
}

/// Keeps the error of a write of which nothing is known.
fn noting<T>(failed: &mut Option<Failure>, result: io::Result<T>) -> io::Result<T> {
    result.inspect_err(|error| *failed = Some(Failure::of(error)))
}

impl File for DirectFile {
    fn path(&self) -> &Path {
        self.buffered.path()
    }

    fn len(&self) -> io::Result<u64> {
        let state = self.state.lock();
        // Another handle may have changed it.
        state.stream.as_ref().map_or_else(|| self.buffered.len(), |stream| Ok(stream.length()))
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let state = self.state.lock();
        if let Some(failed) = &state.failed {
            return Err(failed.error());
        }
        let (Some(direct), Some(stream)) = (&state.direct, &state.stream) else {
            drop(state);
            return self.buffered.read_at(offset, buf);
        };
        if offset.checked_add(buf.len() as u64).is_none_or(|end| end > stream.length()) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        stream.read(&self.target(direct), offset, buf)
    }

    /// An error for want of space leaves the file as it was, as far as storage can be taken ahead; others are final.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.state.lock();
        let state = &mut *state;
        if let Some(failed) = &state.failed {
            return Err(failed.error());
        }
        if state.stream.as_ref().is_some_and(|stream| stream.end() != offset || stream.is_refused()) {
            self.settle_state(state)?;
        }
        let mut start = offset;
        let mut rest = bytes;
        if state.stream.is_none() {
            let align = state.direct.as_ref().map_or(1, |direct| direct.align as u64);
            let head = usize::try_from(offset.next_multiple_of(align) - offset).unwrap_or(bytes.len());
            let (head, body) = bytes.split_at(head.min(bytes.len()));
            if !head.is_empty() {
                self.write_buffered(offset, head)?;
            }
            (start, rest) = (offset + head.len() as u64, body);
            self.begin(state, start, rest.len())?;
        }
        let (Some(direct), Some(stream)) = (&state.direct, &mut state.stream) else {
            return if rest.is_empty() { Ok(()) } else { self.write_buffered(start, rest) };
        };
        let (target, end) = (self.target(direct), start + rest.len() as u64);
        stream.reserve(&target, end)?;
        noting(&mut state.failed, stream.append(&target, rest))
    }

    /// Full buffers are on their way already.
    fn write_back(&self, range: Range<u64>, wait: bool) -> io::Result<()> {
        let mut state = self.state.lock();
        let state = &mut *state;
        if let Some(failed) = &state.failed {
            return Err(failed.error());
        }
        match (&state.direct, &mut state.stream) {
            (Some(direct), Some(stream)) if wait => {
                let waited = stream.wait_for(&self.target(direct), &range);
                noting(&mut state.failed, waited)
            }
            (Some(_), Some(_)) => Ok(()),
            _ => self.buffered.write_back(range, wait),
        }
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.settle()?;
        noting(&mut state.failed, self.buffered.sync())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let _settled = self.settle()?;
        self.buffered.set_len(len)
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        let _settled = self.settle()?;
        self.buffered.punch(offset, len)
    }

    fn allocated(&self) -> io::Result<u64> {
        self.settled()?.allocated()
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<Range<u64>>> {
        self.settled()?.next_data(offset)
    }

    fn links(&self) -> io::Result<u64> {
        self.buffered.links()
    }
}

impl fmt::Debug for DirectFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DirectFile").field(&self.buffered.path()).finish()
    }
}

impl Drop for DirectFile {
    /// What was written stays in the file, be it synced or not.
    fn drop(&mut self) {
        // Nobody is left to be told: who wants to know syncs.
        let _ = self.settle();
    }
}

#[cfg(test)]
mod tests;
