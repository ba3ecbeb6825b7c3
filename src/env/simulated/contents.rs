//! The contents of a simulated file: a length and the pages that are allocated.
//!
//! Copies share pages until one of them writes, so that an image of a disk costs a page table. A page that is absent
//! reads as zeros.
//!
//! Invariants: every page lies, at least in part, below the length. The bytes of a page beyond the length are zero.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Unit of allocation, in bytes.
pub(super) const PAGE: u64 = 4096;

type Page = [u8; PAGE as usize];

/// Bytes of a file.
#[derive(Clone, Default)]
pub(super) struct Contents {
    len: u64,
    pages: BTreeMap<u64, Arc<Page>>,
}

/// The part of a range that lies in one page.
struct Piece {
    page: u64,
    /// Offset within the page.
    start: usize,
    end: usize,
    /// Offset from the start of the whole range.
    at: usize,
}

impl Contents {
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Bytes of storage occupied.
    pub(super) fn allocated(&self) -> u64 {
        self.pages.len() as u64 * PAGE
    }

    /// The first range of allocated bytes at or behind `offset` and below the length.
    pub(super) fn next_data(&self, offset: u64) -> Option<Range<u64>> {
        let first = *self.pages.range(offset / PAGE..).next()?.0;
        let beside = self.pages.range(first..).zip(first..).take_while(|((page, _), next)| **page == *next);
        let end = (first + beside.count() as u64) * PAGE;
        let data = offset.max(first * PAGE)..end.min(self.len);
        (!data.is_empty()).then_some(data)
    }

    /// Fills `buf` from `offset`; the caller has checked the length.
    pub(super) fn read(&self, offset: u64, buf: &mut [u8]) {
        for piece in pieces(offset, buf.len()) {
            let target = &mut buf[piece.at..piece.at + piece.end - piece.start];
            match self.pages.get(&piece.page) {
                Some(page) => target.copy_from_slice(&page[piece.start..piece.end]),
                None => target.fill(0),
            }
        }
    }

    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) {
        for piece in pieces(offset, bytes.len()) {
            let page = self.pages.entry(piece.page).or_insert_with(|| Arc::new([0; PAGE as usize]));
            let source = &bytes[piece.at..piece.at + piece.end - piece.start];
            Arc::make_mut(page)[piece.start..piece.end].copy_from_slice(source);
        }
        if !bytes.is_empty() {
            self.len = self.len.max(offset + bytes.len() as u64);
        }
    }

    pub(super) fn set_len(&mut self, len: u64) {
        if len < self.len {
            self.pages.split_off(&len.div_ceil(PAGE));
            self.zero_within_page(len, PAGE - len % PAGE);
        }
        self.len = len;
    }

    /// Frees the whole pages of a range and zeroes the rest of it.
    pub(super) fn punch(&mut self, offset: u64, len: u64) {
        let end = offset.saturating_add(len).min(self.len);
        if offset >= end {
            return;
        }
        let first = offset.div_ceil(PAGE);
        // The last page counts as whole when the hole reaches the end of the file.
        let last = if end == self.len { end.div_ceil(PAGE) } else { end / PAGE };
        if first > last {
            return self.zero_within_page(offset, end - offset);
        }
        self.zero_within_page(offset, first * PAGE - offset);
        self.zero_within_page(last * PAGE, end.saturating_sub(last * PAGE));
        let freed: Vec<u64> = self.pages.range(first..last).map(|(page, _)| *page).collect();
        for page in freed {
            self.pages.remove(&page);
        }
    }

    /// Makes the pages of a range those of `other`, without copying, and extends the length to the range's end.
    pub(super) fn adopt(&mut self, other: &Self, offset: u64, len: usize) {
        for Piece { page, .. } in pieces(offset, len) {
            match other.pages.get(&page) {
                Some(found) => self.pages.insert(page, Arc::clone(found)),
                None => self.pages.remove(&page),
            };
        }
        if len > 0 {
            self.len = self.len.max(offset + len as u64);
        }
    }

    /// How many bytes of a write at `offset` can be stored with `free` more bytes of storage.
    pub(super) fn storable(&self, offset: u64, len: usize, free: u64) -> usize {
        let mut free_pages = free / PAGE;
        for piece in pieces(offset, len) {
            if !self.pages.contains_key(&piece.page) {
                if free_pages == 0 {
                    return piece.at;
                }
                free_pages -= 1;
            }
        }
        len
    }

    /// Zeroes a range that lies within one page.
    fn zero_within_page(&mut self, offset: u64, len: u64) {
        let start = (offset % PAGE) as usize;
        if len > 0
            && let Some(page) = self.pages.get_mut(&(offset / PAGE))
        {
            Arc::make_mut(page)[start..start + len as usize].fill(0);
        }
    }
}

fn pieces(offset: u64, len: usize) -> impl Iterator<Item = Piece> {
    let mut at = 0;
    std::iter::from_fn(move || {
        if at == len {
            return None;
        }
        let position = offset + at as u64;
        let start = (position % PAGE) as usize;
        let end = (start + len - at).min(PAGE as usize);
        let piece = Piece { page: position / PAGE, start, end, at };
        at += end - start;
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::simulated::random::Random;

    fn bytes_of(contents: &Contents) -> Vec<u8> {
        let mut bytes = vec![0xee; contents.len() as usize];
        contents.read(0, &mut bytes);
        bytes
    }

    #[test]
    fn contents_behave_as_a_vector_of_bytes() {
        let mut random = Random::new(11);
        let (mut contents, mut model) = (Contents::default(), Vec::<u8>::new());
        for step in 0..4000 {
            let (offset, len) = (random.below(20_000), random.below(9000));
            match random.below(4) {
                0 | 1 => {
                    let bytes = vec![step as u8 | 1; len];
                    contents.write(offset as u64, &bytes);
                    if len > 0 {
                        model.resize(model.len().max(offset + len), 0);
                        model[offset..offset + len].copy_from_slice(&bytes);
                    }
                }
                2 => {
                    contents.punch(offset as u64, len as u64);
                    let end = (offset + len).min(model.len());
                    model[offset.min(end)..end].fill(0);
                }
                _ => {
                    contents.set_len(offset as u64);
                    model.resize(offset, 0);
                }
            }
            assert_eq!(bytes_of(&contents), model, "after step {step}");
            assert!(contents.allocated() <= (model.len() as u64).next_multiple_of(PAGE));
        }
    }

    #[test]
    fn a_hole_frees_its_whole_pages() {
        let mut contents = Contents::default();
        contents.write(0, &[1; 5 * 4096]);
        contents.punch(100, 3 * 4096);
        assert_eq!(contents.allocated(), 3 * PAGE);
        contents.punch(0, u64::MAX);
        assert_eq!((contents.allocated(), contents.len()), (0, 5 * PAGE));
    }

    #[test]
    fn data_lies_between_holes() {
        let mut contents = Contents::default();
        contents.write(4096, &[1; 5 * 4096 + 10]);
        contents.punch(2 * 4096, 4096);
        assert_eq!(contents.next_data(0), Some(4096..2 * 4096));
        assert_eq!(contents.next_data(5000), Some(5000..2 * 4096));
        assert_eq!(contents.next_data(2 * 4096), Some(3 * 4096..6 * 4096 + 10));
        assert_eq!(contents.next_data(6 * 4096 + 10), None);
        contents.set_len(1 << 20);
        assert_eq!(contents.next_data(6 * 4096 + 10), Some(6 * 4096 + 10..7 * 4096));
        assert_eq!(contents.next_data(7 * 4096), None);
    }

    #[test]
    fn a_copy_is_independent() {
        let mut first = Contents::default();
        first.write(0, &[1; 8192]);
        let second = first.clone();
        first.write(4096, &[2; 1]);
        assert_eq!(bytes_of(&second), vec![1; 8192]);
    }

    #[test]
    fn free_space_limits_new_pages_alone() {
        let mut contents = Contents::default();
        contents.write(0, &[1; 4096]);
        assert_eq!(contents.storable(0, 4096, 0), 4096);
        assert_eq!(contents.storable(100, 10_000, 4096), 8192 - 100);
    }
}
