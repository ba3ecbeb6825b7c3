//! A striped file: one file on each member.
//!
//! The members' lengths tell that of the whole. One that has fewer bytes than its part of it has a hole at its end.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::at_once::{Task, at_once};
use super::layout::{Layout, Piece};
use crate::env::{Env, File};

/// So many bytes are worth a thread for each member.
const AT_ONCE_BYTES: usize = 256 << 10;

/// A handle of all members' files.
#[derive(Debug)]
pub(super) struct StripedFile {
    pub(super) env: Arc<dyn Env>,
    pub(super) layout: Arc<Layout>,
    /// As it was opened, in the first directory.
    pub(super) path: PathBuf,
    /// One for each member.
    pub(super) files: Vec<Arc<dyn File>>,
}

impl StripedFile {
    fn lengths(&self) -> io::Result<Vec<u64>> {
        self.files.iter().map(|file| file.len()).collect()
    }

    /// What belongs to each member of `pieces`, if more than one has some and it is worth a thread.
    fn by_member(&self, pieces: &[Piece], bytes: usize) -> Option<Vec<(usize, Vec<Piece>)>> {
        if bytes < AT_ONCE_BYTES {
            return None;
        }
        let mut by_member: Vec<(usize, Vec<Piece>)> = Vec::new();
        for member in 0..self.files.len() {
            let own: Vec<Piece> = pieces.iter().filter(|piece| piece.member == member).cloned().collect();
            if !own.is_empty() {
                by_member.push((member, own));
            }
        }
        (by_member.len() > 1).then_some(by_member)
    }

    /// As [`File::read_at`], where some member ends before: what it lacks is a hole, unless the file ends before, too.
    fn read_short(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let lengths = self.lengths()?;
        let end = offset.checked_add(buf.len() as u64);
        if end.is_none_or(|end| end > self.layout.whole_length(&lengths)) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        for Piece { member, offset, bytes } in self.layout.pieces(offset, buf.len()) {
            let there = lengths[member].saturating_sub(offset).min(bytes.len() as u64) as usize;
            let (data, hole) = buf[bytes].split_at_mut(there);
            self.files[member].read_at(offset, data)?;
            hole.fill(0);
        }
        Ok(())
    }

    /// Reads a part from each member at the same time. Pieces of a member lie behind each other.
    fn read_at_once(&self, parts: &[(usize, Vec<Piece>)], buf: &mut [u8]) -> io::Result<()> {
        let task = |(member, pieces): &(usize, Vec<Piece>)| -> Task<Vec<u8>> {
            let (file, offset) = (self.files[*member].clone(), pieces[0].offset);
            let length = pieces.iter().map(|piece| piece.bytes.len()).sum();
            Box::new(move || {
                let mut bytes = vec![0; length];
                file.read_at(offset, &mut bytes).map(|()| bytes)
            })
        };
        let read = at_once(&*self.env, parts.iter().map(task).collect())?;
        for ((_, pieces), read) in parts.iter().zip(read) {
            let mut rest = &read[..];
            for piece in pieces {
                let (bytes, behind) = rest.split_at(piece.bytes.len());
                buf[piece.bytes.clone()].copy_from_slice(bytes);
                rest = behind;
            }
        }
        Ok(())
    }

    /// Does something with the part of `range` of each member that has any.
    fn each_part(
        &self,
        range: &Range<u64>,
        act: impl Fn(&dyn File, Range<u64>) -> io::Result<()>,
    ) -> io::Result<()> {
        for (member, file) in self.files.iter().enumerate() {
            let part = self.layout.parts(member, range);
            if !part.is_empty() {
                act(&**file, part)?;
            }
        }
        Ok(())
    }
}

impl File for StripedFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.layout.whole_length(&self.lengths()?))
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let pieces = self.layout.pieces(offset, buf.len());
        let read = match self.by_member(&pieces, buf.len()) {
            Some(parts) => self.read_at_once(&parts, buf),
            None => pieces
                .into_iter()
                .try_for_each(|piece| self.files[piece.member].read_at(piece.offset, &mut buf[piece.bytes])),
        };
        match read {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => self.read_short(offset, buf),
            read => read,
        }
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let pieces = self.layout.pieces(offset, bytes.len());
        let Some(parts) = self.by_member(&pieces, bytes.len()) else {
            return pieces
                .into_iter()
                .try_for_each(|piece| self.files[piece.member].write_at(piece.offset, &bytes[piece.bytes]));
        };
        let task = |(member, pieces): (usize, Vec<Piece>)| -> Task<()> {
            let (file, offset) = (self.files[member].clone(), pieces[0].offset);
            let own: Vec<u8> = pieces.iter().flat_map(|piece| &bytes[piece.bytes.clone()]).copied().collect();
            Box::new(move || file.write_at(offset, &own))
        };
        at_once(&*self.env, parts.into_iter().map(task).collect()).map(drop)
    }

    fn write_back(&self, range: Range<u64>, wait: bool) -> io::Result<()> {
        // All are begun before the first is waited for.
        self.each_part(&range, |file, part| file.write_back(part, false))?;
        if wait { self.each_part(&range, |file, part| file.write_back(part, true)) } else { Ok(()) }
    }

    fn read_ahead(&self, range: Range<u64>) {
        // Advice: nothing depends on whether a member took it.
        let _ = self.each_part(&range, |file, part| {
            file.read_ahead(part);
            Ok(())
        });
    }

    fn sync(&self) -> io::Result<()> {
        let task = |file: &Arc<dyn File>| -> Task<()> {
            let file = file.clone();
            Box::new(move || file.sync())
        };
        at_once(&*self.env, self.files.iter().map(task).collect()).map(drop)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut members = self.files.iter().enumerate();
        members.try_for_each(|(member, file)| file.set_len(self.layout.part(member, len)))
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        // No byte outside of the range: a member rounds its part inward to what its file system can free.
        self.each_part(&(offset..offset.saturating_add(len)), |file, part| {
            file.punch(part.start, part.end - part.start)
        })
    }

    fn allocated(&self) -> io::Result<u64> {
        self.files.iter().map(|file| file.allocated()).sum()
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<Range<u64>>> {
        let mut data = Vec::new();
        for (member, file) in self.files.iter().enumerate() {
            data.push(file.next_data(self.layout.part(member, offset))?);
        }
        let starts = data.iter().enumerate().filter_map(|(member, data)| {
            data.as_ref().map(|data| self.layout.whole_offset(member, data.start))
        });
        let Some(start) = starts.min() else { return Ok(None) };
        // Chunk by chunk, up to the first that has a hole.
        let mut end = start;
        loop {
            let (member, from) = self.layout.find(end);
            if data[member].as_ref().is_some_and(|data| data.end <= from) {
                data[member] = self.files[member].next_data(from)?;
            }
            let Some(there) = data[member].as_ref().filter(|data| data.contains(&from)) else { break };
            let chunk_end = (from / self.layout.chunk() + 1) * self.layout.chunk();
            end += there.end.min(chunk_end) - from;
            if there.end < chunk_end {
                break;
            }
        }
        Ok(Some(start..end))
    }

    /// A file that has another name on any member has one.
    fn links(&self) -> io::Result<u64> {
        self.files.iter().try_fold(0, |most, file| Ok(most.max(file.links()?)))
    }
}
