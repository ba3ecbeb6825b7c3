//! The layout of a stripe: which bytes of a file lie where on which member.
//!
//! A file is cut into chunks. They are dealt to the members by a pattern, again and again; a member has its chunks one
//! behind the other. So the bytes of a member that belong to a range of the file are one range of the member, too.

use std::ops::Range;

/// How chunks are dealt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Layout {
    chunk: u64,
    /// The member of each chunk, for the first chunks; then it begins anew.
    pattern: Vec<usize>,
    /// For each chunk of the pattern, how many chunks before it there are of the same member.
    rank: Vec<u64>,
    /// For each member, the places in the pattern that are its own, at least one.
    places: Vec<Vec<u64>>,
}

/// A piece of a file that lies in one chunk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Piece {
    pub(super) member: usize,
    /// Offset in the member's file.
    pub(super) offset: u64,
    /// The bytes of the caller's buffer that it is.
    pub(super) bytes: Range<usize>,
}

impl Layout {
    /// Chunks of `chunk` bytes, dealt by weights, each at least 1: of weights 5 and 1, the last of six goes to the second member.
    pub(super) fn new(chunk: u64, weights: &[u32]) -> Self {
        let all: i64 = weights.iter().map(|weight| i64::from(*weight)).sum();
        let mut owed = vec![0_i64; weights.len()];
        let (mut pattern, mut rank, mut places) =
            (Vec::new(), Vec::new(), vec![Vec::<u64>::new(); weights.len()]);
        for place in 0..all as u64 {
            owed.iter_mut().zip(weights).for_each(|(owed, weight)| *owed += i64::from(*weight));
            // The member that is owed most; of several the first.
            let member = (0..owed.len()).rev().max_by_key(|&member| owed[member]).unwrap_or(0);
            owed[member] -= all;
            pattern.push(member);
            rank.push(places[member].len() as u64);
            places[member].push(place);
        }
        Self { chunk, pattern, rank, places }
    }

    pub(super) fn members(&self) -> usize {
        self.places.len()
    }

    pub(super) fn chunk(&self) -> u64 {
        self.chunk
    }

    /// The member of each chunk, as far as they do not repeat.
    pub(super) fn pattern(&self) -> &[usize] {
        &self.pattern
    }

    /// Chunks of a member in one pattern.
    pub(super) fn weight(&self, member: usize) -> u64 {
        self.places[member].len() as u64
    }

    /// Where the byte at `offset` is: member, offset there.
    pub(super) fn find(&self, offset: u64) -> (usize, u64) {
        let (chunk, length) = (offset / self.chunk, self.pattern.len() as u64);
        let (round, place) = (chunk / length, (chunk % length) as usize);
        let member = self.pattern[place];
        (member, (round * self.weight(member) + self.rank[place]) * self.chunk + offset % self.chunk)
    }

    /// Which byte of the file the byte at `offset` of a member is.
    pub(super) fn whole_offset(&self, member: usize, offset: u64) -> u64 {
        let (chunk, places) = (offset / self.chunk, &self.places[member]);
        let (round, place) = (chunk / self.weight(member), places[(chunk % self.weight(member)) as usize]);
        (round * self.pattern.len() as u64 + place) * self.chunk + offset % self.chunk
    }

    /// How many of the first `length` bytes of the file lie on a member.
    pub(super) fn part(&self, member: usize, length: u64) -> u64 {
        let round_bytes = self.pattern.len() as u64 * self.chunk;
        let (rounds, rest) = (length / round_bytes, length % round_bytes);
        let in_place = |place: &u64| rest.saturating_sub(place * self.chunk).min(self.chunk);
        rounds * self.weight(member) * self.chunk + self.places[member].iter().map(in_place).sum::<u64>()
    }

    /// The bytes of a member that belong to `range` of the file, and no others.
    pub(super) fn parts(&self, member: usize, range: &Range<u64>) -> Range<u64> {
        self.part(member, range.start)..self.part(member, range.end)
    }

    /// The length of a file whose members have these lengths: it ends with the last byte that any of them has.
    pub(super) fn whole_length(&self, lengths: &[u64]) -> u64 {
        let ends = lengths.iter().enumerate().filter(|(_, length)| **length > 0);
        ends.map(|(member, length)| self.whole_offset(member, length - 1) + 1).max().unwrap_or(0)
    }

    /// The pieces of `length` bytes at `offset`, in their order.
    pub(super) fn pieces(&self, offset: u64, length: usize) -> Vec<Piece> {
        let (mut pieces, mut done) = (Vec::new(), 0);
        while done < length {
            let at = offset + done as u64;
            let left = usize::try_from(self.chunk - at % self.chunk).unwrap_or(usize::MAX);
            let end = done + left.min(length - done);
            let (member, offset) = self.find(at);
            pieces.push(Piece { member, offset, bytes: done..end });
            done = end;
        }
        pieces
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_dealt_by_weight() {
        assert_eq!(Layout::new(1, &[1, 1]).pattern, [0, 1]);
        assert_eq!(Layout::new(1, &[5, 1]).pattern, [0, 0, 0, 1, 0, 0]);
        assert_eq!(Layout::new(1, &[2, 1, 1]).pattern.len(), 4);
    }

    #[test]
    fn every_byte_has_one_place_and_a_range_is_one_range_on_each_member() {
        for weights in [&[1, 1][..], &[5, 1], &[2, 3], &[1, 4, 2]] {
            let layout = Layout::new(7, weights);
            let mut ends = vec![0; weights.len()];
            for offset in 0..500 {
                let (member, at) = layout.find(offset);
                assert_eq!(at, ends[member], "the next byte of its member");
                assert_eq!(layout.whole_offset(member, at), offset);
                ends[member] += 1;
                for (member, end) in ends.iter().enumerate() {
                    assert_eq!(layout.part(member, offset + 1), *end);
                }
                assert_eq!(layout.whole_length(&ends), offset + 1);
            }
            for (start, length) in [(0, 0), (0, 500), (3, 90), (7, 7), (13, 1)] {
                let pieces = layout.pieces(start, length);
                assert_eq!(pieces.iter().map(|piece| piece.bytes.len()).sum::<usize>(), length);
                for Piece { member, offset, bytes } in pieces {
                    let whole = layout.whole_offset(member, offset);
                    assert_eq!(whole, start + bytes.start as u64);
                    let parts = layout.parts(member, &(start..start + length as u64));
                    assert!(parts.start <= offset && offset + bytes.len() as u64 <= parts.end);
                }
            }
        }
    }
}
