//! Kinds of damage to a file, and each kind's damages by number.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use terrace::format::pack::PACK_TRAILER_BYTES;
use terrace::format::table::FOOTER_BYTES;

use super::{Change, Patient};
use crate::seed::Rng;

const PAGE_BYTES: usize = 4096;

/// Numbers of tables that the directory of a pack could claim, up to the largest.
const CLAIMS: [u32; 5] = [1, 2, 1000, 1 << 20, u32::MAX / 28 - 2];

/// A kind of damage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A byte has another value.
    Bytes,
    /// A byte of a pack that leads to others has another value: a table or the pack might be read from the wrong place, or
    /// a length believed.
    Leading,
    /// The file ends early.
    Cut,
    /// Something follows.
    Grown,
    /// A page is zero.
    Zeroed,
    /// A page of a pack has the contents of another page, of this pack or another, live or dead: a write that went to
    /// the wrong place, or is stale.
    Astray,
    /// The file is noise.
    Noise,
    /// Neighbouring blocks of a pack are exchanged.
    Blocks,
    /// A table of a pack lies in the place of another.
    Tables,
    /// The file is another of its kind, or both are exchanged.
    Files,
    /// There is no such file.
    Missing,
}

/// All kinds.
pub const KINDS: &[Kind] = &[
    Kind::Bytes,
    Kind::Leading,
    Kind::Cut,
    Kind::Grown,
    Kind::Zeroed,
    Kind::Astray,
    Kind::Noise,
    Kind::Blocks,
    Kind::Tables,
    Kind::Files,
    Kind::Missing,
];

fn is_pack(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "pack")
}

fn is_log(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "wal")
}

fn is_manifest(path: &Path) -> bool {
    path.to_string_lossy().contains("MANIFEST")
}

impl Kind {
    /// How many damages of this kind the file can take.
    #[must_use]
    pub fn count(self, patient: &Patient, path: &Path) -> usize {
        let bytes = patient.image.read(path).len();
        let pages = bytes.div_ceil(PAGE_BYTES);
        match self {
            Self::Bytes | Self::Cut => bytes,
            Self::Leading if is_pack(path) => {
                leading(patient, path).len() + PACK_TRAILER_BYTES + CLAIMS.len()
            }
            Self::Grown => 3,
            Self::Zeroed => pages,
            Self::Astray if is_pack(path) => pages,
            Self::Noise => 4,
            Self::Blocks if is_pack(path) => patient.packs[path].blocks.len().saturating_sub(1),
            Self::Tables if is_pack(path) => donors(patient, path).len(),
            Self::Files if is_pack(path) || is_log(path) => siblings(patient, path).len(),
            Self::Missing => 1,
            _ => 0,
        }
    }

    /// In a sample, only the numbers that are multiples of this are tried.
    #[must_use]
    pub fn stride(self, path: &Path) -> usize {
        match self {
            Self::Bytes if is_pack(path) => 211,
            Self::Cut if is_pack(path) => 499,
            Self::Bytes | Self::Cut if is_log(path) => 61,
            Self::Bytes if is_manifest(path) => 7,
            Self::Cut if is_manifest(path) => 13,
            Self::Blocks => 3,
            Self::Tables | Self::Astray => 5,
            _ => 1,
        }
    }

    /// The damages of this number to the file.
    #[must_use]
    pub fn wounds(self, patient: &Patient, path: &Path, number: usize) -> Vec<Wound> {
        let damages = match self {
            Self::Bytes => bytes(patient, path, number),
            Self::Leading => {
                let footer = leading(patient, path);
                let trailer = patient.image.read(path).len() - PACK_TRAILER_BYTES;
                match number.checked_sub(footer.len()) {
                    None => bytes(patient, path, footer.start + number),
                    Some(at) if at < PACK_TRAILER_BYTES => bytes(patient, path, trailer + at),
                    Some(at) => vec![Damage::Claim(CLAIMS[at - PACK_TRAILER_BYTES])],
                }
            }
            Self::Cut => vec![Damage::Cut(number)],
            Self::Grown => vec![Damage::Grown(number)],
            Self::Zeroed => vec![Damage::Zeroed(number * PAGE_BYTES)],
            Self::Astray => vec![astray(patient, path, number)],
            Self::Noise => vec![Damage::Noise(number)],
            Self::Blocks => {
                let blocks = &patient.packs[path].blocks;
                vec![Damage::Blocks(blocks[number].clone(), blocks[number + 1].clone())]
            }
            Self::Tables => {
                let (table, donor, other) = donors(patient, path).swap_remove(number);
                let head = Damage::Table { table, donor, other, tail: false };
                let Damage::Table { table, donor, other, .. } = head.clone() else { unreachable!() };
                vec![head, Damage::Table { table, donor, other, tail: true }]
            }
            Self::Files => {
                let other = siblings(patient, path).swap_remove(number);
                vec![Damage::Copy(other.clone()), Damage::Exchanged(other)]
            }
            Self::Missing => vec![Damage::Missing],
        };
        damages.into_iter().map(|damage| Wound { path: path.into(), damage }).collect()
    }
}

/// The three values that are tried of a byte: a bit flipped, zero, all ones.
fn bytes(patient: &Patient, path: &Path, at: usize) -> Vec<Damage> {
    let old = patient.image.read(path)[at];
    [old ^ 1 << (at % 8), 0, 0xff].into_iter().map(|value| Damage::Byte { at, value }).collect()
}

/// The footer of the last table of a pack.
fn leading(patient: &Patient, path: &Path) -> Range<usize> {
    patient.packs[path].tables.last().map_or(0..0, |table| table.end - FOOTER_BYTES..table.end)
}

/// Each table of a pack with each other one.
fn donors(patient: &Patient, path: &Path) -> Vec<(Range<usize>, PathBuf, Range<usize>)> {
    let others: Vec<_> = patient
        .packs
        .iter()
        .flat_map(|(donor, map)| map.tables.iter().map(move |other| (donor, other)))
        .collect();
    let tables = patient.packs[path].tables.iter();
    let pairs = tables.flat_map(|table| others.iter().map(move |&(donor, other)| (table, donor, other)));
    pairs
        .filter(|(table, donor, other)| *donor != path || table != other)
        .map(|(table, donor, other)| (table.clone(), donor.clone(), other.clone()))
        .collect()
}

/// The other files of the kind.
fn siblings(patient: &Patient, path: &Path) -> Vec<PathBuf> {
    let mut all = patient.image.files("");
    all.retain(|other| other.extension() == path.extension() && other != path);
    all
}

fn astray(patient: &Patient, path: &Path, number: usize) -> Damage {
    let mut rng = Rng::new(number as u64);
    let packs: Vec<_> = patient.packs.keys().collect();
    let donor = (*rng.pick(&packs)).clone();
    let pages = patient.image.read(&donor).len().div_ceil(PAGE_BYTES);
    let from = rng.below(pages) * PAGE_BYTES;
    debug_assert!(is_pack(path));
    Damage::Astray { at: number * PAGE_BYTES, donor, from }
}

/// Something that befalls a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Damage {
    Byte {
        at: usize,
        value: u8,
    },
    /// The directory of the pack claims this many tables.
    Claim(u32),
    Cut(usize),
    /// By a zero, by many zeros, by noise.
    Grown(usize),
    /// The page from here.
    Zeroed(usize),
    Astray {
        at: usize,
        donor: PathBuf,
        from: usize,
    },
    /// Of this length, of a few bytes, of some, of many.
    Noise(usize),
    Blocks(Range<usize>, Range<usize>),
    /// The head or the tail (the footer) of another table, whatever their lengths.
    Table {
        table: Range<usize>,
        donor: PathBuf,
        other: Range<usize>,
        tail: bool,
    },
    Copy(PathBuf),
    Exchanged(PathBuf),
    Missing,
}

/// A damage to a file.
#[derive(Clone, Debug)]
pub struct Wound {
    pub path: PathBuf,
    pub damage: Damage,
}

impl fmt::Display for Wound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:?}", self.path.display(), self.damage)
    }
}

impl Wound {
    /// The files that change, with their new contents.
    #[must_use]
    pub fn changes(&self, patient: &Patient) -> Vec<Change> {
        let read = |path: &Path| patient.image.read(path);
        let change = |path: &Path, new| Change { path: path.into(), old: read(path), new };
        let old = read(&self.path);
        let new = match &self.damage {
            Damage::Missing => None,
            Damage::Copy(other) => Some(read(other)),
            Damage::Exchanged(other) => {
                return vec![change(&self.path, Some(read(other))), change(other, Some(old))];
            }
            damage => Some(damage.applied(old, patient)),
        };
        vec![change(&self.path, new)]
    }
}

impl Damage {
    /// The contents of a file once this has befallen `old`.
    fn applied(&self, old: Vec<u8>, patient: &Patient) -> Vec<u8> {
        let mut new = old;
        let len = new.len();
        match self {
            Self::Byte { at, value } => new[*at] = *value,
            Self::Claim(tables) => {
                let trailer = len - PACK_TRAILER_BYTES;
                new[trailer + 4..trailer + 8].copy_from_slice(&(32 + 28 * tables).to_le_bytes());
            }
            Self::Cut(len) => new.truncate(*len),
            Self::Grown(0) => new.push(0),
            Self::Grown(1) => new.resize(len + 5000, 0),
            Self::Grown(_) => new.extend(noise(100, 7)),
            Self::Zeroed(start) => new[*start..len.min(start + PAGE_BYTES)].fill(0),
            Self::Astray { at, donor, from } => {
                let donor = patient.image.read(donor);
                let page = &donor[*from..donor.len().min(from + PAGE_BYTES)];
                let fits = page.len().min(len - at);
                new[*at..at + fits].copy_from_slice(&page[..fits]);
            }
            Self::Noise(number) => new = noise([len, 16, 300, 70_000][*number], *number as u64 + 1),
            Self::Blocks(one, other) => {
                let fits = one.len().min(other.len());
                let (first, second) = (new[one.clone()].to_vec(), new[other.clone()].to_vec());
                new[one.start..][..fits].copy_from_slice(&second[..fits]);
                new[other.start..][..fits].copy_from_slice(&first[..fits]);
            }
            Self::Table { table, donor, other, tail } => {
                let donor = patient.image.read(donor);
                let fits = table.len().min(other.len());
                new[table.start..][..fits].copy_from_slice(&donor[other.start..][..fits]);
                if *tail {
                    new[table.end - fits..table.end].copy_from_slice(&donor[other.end - fits..other.end]);
                }
            }
            Self::Copy(_) | Self::Exchanged(_) | Self::Missing => {}
        }
        new
    }
}

fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    (0..len).map(|_| rng.draw() as u8).collect()
}
