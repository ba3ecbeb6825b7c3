//! Rot: every kind of damage to every kind of file ends in an error that names the place, or in the right answer.
//!
//! Never in a wrong value, a panic, a hang, or an allocation out of proportion. What is expected is computed from the
//! format, not from what the store says: in a pack, every byte but the padding is guarded; in the log, damage before
//! bytes that a later frame testifies to have been durable is refused, and later damage cuts the history there; in the
//! manifest, all but the last edit is guarded by the edits behind it.
//!
//! Known limits, which the expectations below state: nothing testifies to the last frames of the log and of the
//! manifest, nor to the existence of the last segment, so their loss looks like a crash that kept them from the disk.
//!
//! A part of the positions is tried, with strides that share no factor with the sizes in the format; `TERRACE_FULL=1`
//! tries all.

#![expect(clippy::unwrap_used, reason = "a failure of a test's own calls is a failure of the test")]
#![expect(unsafe_code, reason = "an allocator that measures")]

mod judge;
#[path = "../rot/mod.rs"]
mod rot;
mod store;

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use terrace::format::pack::PACK_TRAILER_BYTES;
use terrace::format::table::FOOTER_BYTES;

use judge::{Expected, look, own, without};
use rot::{Seed, number};
use store::{Image, PackMap};

/// No damage to a store of 200 KiB may ask for more than this at once.
const ALLOCATION_MAX: usize = 8 << 20;

struct Measuring;

static LARGEST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: passes every call on to the system's allocator.
unsafe impl GlobalAlloc for Measuring {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        LARGEST.fetch_max(size, Ordering::Relaxed);
        unsafe { System.realloc(old, layout, size) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Measuring = Measuring;

/// A damaged store under examination, and how often that has been done.
struct Surgery {
    image: Image,
    /// Pack maps, by path.
    packs: BTreeMap<PathBuf, PackMap>,
    cases: usize,
    /// One case in so many is also opened for writing.
    owned_every: usize,
    _seed: Seed,
}

impl Surgery {
    fn new(default_seed: u64) -> Self {
        let seed = Seed::new(default_seed);
        let image = Image::build(seed.0);
        let packs = image.files(".pack").into_iter().map(|path| (path.clone(), image.map_pack(&path)));
        Self { packs: packs.collect(), image, cases: 0, owned_every: 23, _seed: seed }
    }

    /// Puts `new` in place of the file's contents, looks, and puts the old contents back.
    fn try_contents(&mut self, path: &Path, new: &[u8], what: &str) {
        self.try_files(&[(path, new)], what);
    }

    fn try_files(&mut self, files: &[(&Path, &[u8])], what: &str) {
        let old: Vec<Vec<u8>> = files.iter().map(|(path, _)| self.image.read(path)).collect();
        let changes: Vec<Change<'_>> = files
            .iter()
            .zip(&old)
            .map(|(&(path, new), old)| Change { path, old, new })
            .filter(|change| change.old != change.new)
            .collect();
        if changes.is_empty() {
            return;
        }
        let names: Vec<_> = files.iter().map(|(path, _)| path.display().to_string()).collect();
        let case = format!("{} {what}", names.join(" and "));
        let expected = self.expect(&changes);
        changes.iter().for_each(|change| self.image.put(change.path, change.new));
        self.judge(expected, &case);
        changes.iter().for_each(|change| self.image.put(change.path, change.old));
    }

    fn judge(&mut self, expected: Expected, case: &str) {
        self.cases += 1;
        let seen = look(&self.image.env, &self.image, case);
        expected.check(&seen, case);
        if self.cases.is_multiple_of(self.owned_every) {
            own(&self.image, &seen, case);
        }
        let largest = LARGEST.load(Ordering::Relaxed);
        assert!(largest <= ALLOCATION_MAX, "{case}: an allocation of {largest} bytes");
    }

    fn expect(&self, changes: &[Change<'_>]) -> Expected {
        let mut all = changes.iter().map(|change| match change.path.extension() {
            Some(kind) if kind == "pack" => self.expect_pack(change),
            Some(kind) if kind == "wal" => self.expect_log(changes),
            _ if change.path.to_string_lossy().contains("MANIFEST") => self.expect_manifest(change),
            _ => Expected::Refused,
        });
        let first = all.next().unwrap();
        // Changes of several files are of one kind, and the strictest expectation holds.
        all.fold(
            first,
            |one, other| if one == Expected::Intact(self.image.history.len()) { other } else { one },
        )
    }

    fn expect_pack(&self, change: &Change<'_>) -> Expected {
        let covered = &self.packs[change.path].covered;
        let touched = |at: &usize| change.old.get(*at) != change.new.get(*at);
        if (0..change.old.len()).filter(touched).any(|at| covered[at]) {
            Expected::Noticed
        } else {
            Expected::Intact(self.image.history.len())
        }
    }

    fn expect_log(&self, changes: &[Change<'_>]) -> Expected {
        let mut seen = 0;
        let segments = self.image.files(".wal");
        let batches: usize =
            segments.iter().map(|path| self.image.frames(path).iter().filter(|f| f.batch).count()).sum();
        let before = self.image.history.len() - batches;
        let mut damaged = false;
        for path in &segments {
            let intact = |range: &std::ops::Range<usize>| {
                let change = changes.iter().find(|change| change.path == path.as_path());
                change.is_none_or(|change| change.new.get(range.clone()) == change.old.get(range.clone()))
            };
            let frames = self.image.frames(path);
            let first_bad = frames.iter().position(|frame| !intact(&frame.range)).unwrap_or(frames.len());
            if damaged {
                // Behind the log's end: readable frames testify that every older segment was durable.
                if frames[..first_bad].iter().any(|frame| frame.synced > 0) {
                    return Expected::Refused;
                }
                continue;
            }
            seen += frames[..first_bad].iter().filter(|frame| frame.batch).count();
            if first_bad < frames.len() {
                damaged = true;
                let start = frames[first_bad].range.start as u64;
                let mut behind = frames[first_bad + 1..].iter();
                if behind.any(|frame| frame.synced > start && intact(&frame.range)) {
                    return Expected::Refused;
                }
            }
        }
        Expected::Intact(self.image.flushed.max(before + seen))
    }

    fn expect_manifest(&self, change: &Change<'_>) -> Expected {
        let frames = self.image.frames(change.path);
        let intact =
            |range: &std::ops::Range<usize>| change.new.get(range.clone()) == change.old.get(range.clone());
        match frames.iter().position(|frame| !intact(&frame.range)) {
            None => Expected::Intact(self.image.history.len()),
            Some(0) => Expected::Refused,
            Some(bad) if frames[bad + 1..].iter().any(|frame| intact(&frame.range)) => Expected::Refused,
            // The last edit is lost. Its effects may contradict the rest, or are found again in the log; or what it dropped
            // has been punched out of a pack that lives on.
            Some(_) => Expected::NoticedOrComplete,
        }
    }

    /// Every byte at the stride's multiples: a bit flipped, zero, all ones.
    fn try_bytes(&mut self, part: &str, stride: usize) {
        for path in self.image.files(part) {
            let old = self.image.read(&path);
            let mut new = old.clone();
            for at in (0..old.len()).step_by(stride_or_full(stride)) {
                for value in [old[at] ^ 1 << (at % 8), 0, 0xff] {
                    new[at] = value;
                    self.try_contents(&path, &new, &format!("with {value:#04x} at byte {at}"));
                }
                new[at] = old[at];
            }
        }
    }

    fn try_lengths(&mut self, part: &str, stride: usize) {
        for path in self.image.files(part) {
            let old = self.image.read(&path);
            for len in (0..old.len()).step_by(stride_or_full(stride)).chain([old.len() - 1]) {
                self.try_contents(&path, &old[..len], &format!("cut to {len} bytes"));
            }
        }
    }
}

impl Drop for Surgery {
    fn drop(&mut self) {
        println!("{} cases", self.cases);
    }
}

#[derive(Clone, Copy)]
struct Change<'a> {
    path: &'a Path,
    old: &'a [u8],
    new: &'a [u8],
}

fn stride_or_full(stride: usize) -> usize {
    if number("TERRACE_FULL").is_some() { 1 } else { stride }
}

#[test]
fn every_byte_of_a_pack_is_guarded_or_padding() {
    Surgery::new(1).try_bytes(".pack", 211);
}

/// Wrong in these bytes, a table or pack might be read from the wrong place, or a length believed.
#[test]
fn every_byte_that_leads_to_others_is_guarded() {
    let mut surgery = Surgery::new(13);
    for path in surgery.image.files(".pack").into_iter().step_by(stride_or_full(2)) {
        let old = surgery.image.read(&path);
        let trailer = old.len() - PACK_TRAILER_BYTES;
        let tables = surgery.packs[&path].tables.last().cloned();
        let footer = tables.map_or(0..0, |table| table.end - FOOTER_BYTES..table.end);
        let mut new = old.clone();
        for at in footer.step_by(stride_or_full(3)).chain(trailer..old.len()) {
            for value in [old[at] ^ 1 << (at % 8), 0, 0xff] {
                new[at] = value;
                surgery.try_contents(&path, &new, &format!("with {value:#04x} at byte {at}"));
            }
            new[at] = old[at];
        }
        // Lengths that a directory could have, up to the largest.
        for entries in [1u32, 2, 1000, 1 << 20, u32::MAX / 28 - 2] {
            new[trailer + 4..trailer + 8].copy_from_slice(&(32 + 28 * entries).to_le_bytes());
            surgery.try_contents(&path, &new, &format!("with a directory of {entries} tables"));
        }
    }
}

#[test]
fn every_byte_of_the_log_is_guarded_up_to_what_was_durable() {
    Surgery::new(2).try_bytes(".wal", 61);
}

#[test]
fn every_byte_of_the_manifest_is_guarded_up_to_the_last_edit() {
    Surgery::new(3).try_bytes("MANIFEST", 7);
}

#[test]
fn every_byte_of_the_small_files_is_guarded() {
    let mut surgery = Surgery::new(4);
    surgery.try_bytes("CURRENT", 1);
    surgery.try_bytes("IDENTITY", 1);
    surgery.try_lengths("CURRENT", 1);
    surgery.try_lengths("IDENTITY", 1);
}

#[test]
fn a_file_of_any_length_is_refused_or_read_as_far_as_it_goes() {
    let mut surgery = Surgery::new(5);
    surgery.try_lengths(".pack", 499);
    surgery.try_lengths(".wal", 61);
    surgery.try_lengths("MANIFEST", 13);
}

#[test]
fn a_file_that_has_grown_is_refused_or_read_as_before() {
    let mut surgery = Surgery::new(6);
    for path in surgery.image.files("") {
        if path.ends_with("LOCK") {
            continue;
        }
        let old = surgery.image.read(&path);
        for (what, tail) in [("zero", vec![0; 1]), ("zeros", vec![0; 5000]), ("noise", noise(100, 7))] {
            let new = [&old[..], &tail].concat();
            surgery.try_contents(&path, &new, &format!("followed by {what}"));
        }
    }
}

#[test]
fn zeroed_pages_are_noticed() {
    let mut surgery = Surgery::new(7);
    for path in surgery.image.files("") {
        let old = surgery.image.read(&path);
        for start in (0..old.len()).step_by(4096) {
            let mut new = old.clone();
            let end = old.len().min(start + 4096);
            new[start..end].fill(0);
            surgery.try_contents(&path, &new, &format!("with zeros from byte {start} on"));
        }
    }
}

#[test]
fn garbage_is_refused() {
    let mut surgery = Surgery::new(8);
    for path in surgery.image.files("") {
        if path.ends_with("LOCK") {
            continue;
        }
        let len = surgery.image.read(&path).len();
        for (seed, len) in [(1, len), (2, 16), (3, 300), (4, 70_000)] {
            surgery.try_contents(&path, &noise(len, seed), &format!("with {len} bytes of noise"));
        }
    }
}

#[test]
fn exchanged_blocks_are_noticed() {
    let mut surgery = Surgery::new(9);
    for path in surgery.image.files(".pack") {
        let old = surgery.image.read(&path);
        let blocks = surgery.packs[&path].blocks.clone();
        // Blocks of one table, and at the seams of two.
        for pair in blocks.windows(2).step_by(stride_or_full(3)) {
            let len = pair[0].len().min(pair[1].len());
            let mut new = old.clone();
            new[pair[0].start..][..len].copy_from_slice(&old[pair[1].start..][..len]);
            new[pair[1].start..][..len].copy_from_slice(&old[pair[0].start..][..len]);
            surgery.try_contents(&path, &new, &format!("with exchanged blocks at {pair:?}"));
        }
    }
}

#[test]
fn a_table_in_the_place_of_another_is_noticed() {
    let mut surgery = Surgery::new(10);
    let whole: Vec<(PathBuf, Vec<u8>)> = surgery
        .image
        .files(".pack")
        .into_iter()
        .map(|path| (path.clone(), surgery.image.read(&path)))
        .collect();
    let tables: Vec<(usize, std::ops::Range<usize>)> = whole
        .iter()
        .enumerate()
        .flat_map(|(at, (path, _))| surgery.packs[path].tables.iter().map(move |table| (at, table.clone())))
        .collect();
    for (at, (pack, table)) in tables.iter().enumerate() {
        let (path, old) = &whole[*pack];
        for (donor, other) in tables[at + 1..].iter().step_by(stride_or_full(5)) {
            // Both its first bytes and its last ones (the footer), whatever their lengths.
            let len = table.len().min(other.len());
            let from = &whole[*donor].1;
            let mut new = old.clone();
            new[table.start..][..len].copy_from_slice(&from[other.start..][..len]);
            surgery.try_contents(path, &new, &format!("with another table's head at {table:?}"));
            new[table.end - len..table.end].copy_from_slice(&from[other.end - len..other.end]);
            surgery.try_contents(path, &new, &format!("with another table's tail at {table:?}"));
        }
    }
}

#[test]
fn exchanged_files_are_noticed() {
    let mut surgery = Surgery::new(11);
    for part in [".pack", ".wal"] {
        let files = surgery.image.files(part);
        for (at, one) in files.iter().enumerate() {
            for other in &files[at + 1..] {
                let (a, b) = (surgery.image.read(one), surgery.image.read(other));
                surgery.try_files(&[(one, &b), (other, &a)], "exchanged");
                surgery.try_contents(one, &b, &format!("as a copy of {}", other.display()));
                surgery.try_contents(other, &a, &format!("as a copy of {}", one.display()));
            }
        }
    }
}

#[test]
fn a_missing_file_is_noticed_unless_it_is_the_end_of_the_log() {
    let mut surgery = Surgery::new(12);
    let segments = surgery.image.files(".wal");
    for path in surgery.image.files("") {
        let expected = if path.ends_with("LOCK") {
            continue;
        } else if segments.last() == Some(&path) {
            let frames = surgery.image.frames(&path).iter().filter(|frame| frame.batch).count();
            Expected::Intact(surgery.image.history.len() - frames)
        } else {
            Expected::Refused
        };
        let whole = surgery.image.env.clone();
        surgery.image.env = without(&surgery.image, &path);
        surgery.owned_every = 1;
        surgery.judge(expected, &format!("without {}", path.display()));
        surgery.image.env = whole;
    }
}

fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut random = rot::Random(seed);
    (0..len).map(|_| random.next() as u8).collect()
}
