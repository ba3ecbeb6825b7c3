//! The suite `corruption`: every kind of damage to every kind of file ends in an error that names the place, or in
//! the right answer.
//!
//! It must never end in a wrong value, a panic, a hang, or an allocation out of proportion. What must happen
//! (`expect`) is computed from the format, not from what the store says:
//!
//! * in a pack, every byte except the padding is covered by a checksum;
//! * in the log, damage to bytes that a later frame records as durable is refused, and damage to later bytes cuts the
//!   history there;
//! * in the manifest, every edit but the last is covered by the edits behind it.
//!
//! Known limits, which the expectations state: nothing records that the last frames of the log and of the manifest
//! were durable, nor that the last segment existed. So their loss looks like a crash that kept them from the disk.
//!
//! A round damages one `store`. The `damage`s of a kind to a file are numbered; a case is a range of these numbers. A
//! sample leaves numbers out, with strides that share no factor with the sizes in the format; a brief one leaves out
//! more.

pub mod damage;
mod expect;
mod judge;
mod store;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use self::damage::{KINDS, Kind, Wound};
use self::expect::expect;
use self::judge::{look, own};
use self::store::{Image, PackMap};
use crate::allocation::{is_measuring, take_largest};
use crate::suite::{Case, Cases, Round, Share, Suite, Tally, shuffled, within};

/// No damage to a store of 200 KiB may ask for more than this at once, in bytes.
const ALLOCATION_MAX: usize = 8 << 20;

/// Damages of a case.
const STRETCH: usize = 64;

/// Of what a sample has, a brief one has one in this many.
const BRIEF_STRIDE: usize = 5;

/// For one damage in this many, an owner also opens the store for writing.
const OWNED_EVERY: usize = 23;

/// The suite.
pub struct Corruption;

impl Suite for Corruption {
    fn name(&self) -> &'static str {
        "corruption"
    }

    fn about(&self) -> &'static str {
        "every byte of every file changed; files cut, grown, zeroed, exchanged, replaced by older parts, missing"
    }

    fn cases(&self, round: &Round) -> Cases {
        let Round { seed, share, .. } = *round;
        let share = if round.only.is_some() && share == Share::Brief { Share::Sample } else { share };
        let patient = Arc::new(Patient::new(seed));
        let mut stretches = Vec::new();
        for path in patient.paths() {
            for &kind in KINDS {
                let count = kind.count(&patient, &path);
                stretches.extend((0..count).step_by(STRETCH).map(|start| Stretch {
                    patient: Arc::clone(&patient),
                    path: path.clone(),
                    kind,
                    start,
                    end: count.min(start + STRETCH),
                    count,
                    share,
                }));
            }
        }
        let boxed = |case| Box::new(case) as Box<dyn Case>;
        Box::new(shuffled(stretches, seed).into_iter().filter(Stretch::is_any).map(boxed))
    }

    fn conclude(&self, tally: &Tally) -> Result<(), String> {
        tally.require(&["damages", "owners", "bytes that are guarded", "bytes that nothing depends on"], 10)
    }
}

/// A store, with the meaning of the bytes in its files.
pub struct Patient {
    pub image: Image,
    /// Pack maps, by path.
    pub packs: BTreeMap<PathBuf, PackMap>,
}

impl Patient {
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let image = Image::build(seed);
        let packs = image.files(".pack").into_iter().map(|path| (path.clone(), image.map_pack(&path)));
        Self { packs: packs.collect(), image }
    }

    /// The files that hold something.
    fn paths(&self) -> Vec<PathBuf> {
        self.image.files("").into_iter().filter(|path| !path.ends_with("LOCK")).collect()
    }

    /// Inflicts a wound on a copy of the store, and judges the result. Returns whether the wound changed anything.
    pub fn suffer(&self, wound: &Wound, is_owned: bool, tally: &Tally) -> bool {
        let mut changes = wound.changes(self);
        changes.retain(|change| change.new.as_ref() != Some(&change.old));
        if changes.is_empty() {
            return false;
        }
        let expected = expect(self, &changes);
        let image = self.image.copy();
        changes.iter().for_each(|change| image.put(&change.path, change.new.as_deref()));
        tally.add("damages", 1);
        let seen = look(&image);
        expected.check(&seen);
        if is_owned {
            tally.add("owners", 1);
            own(&image, &seen);
        }
        true
    }
}

/// Some damages of one kind to one file.
struct Stretch {
    patient: Arc<Patient>,
    path: PathBuf,
    kind: Kind,
    start: usize,
    end: usize,
    /// Damages of the kind to the file.
    count: usize,
    share: Share,
}

impl Stretch {
    fn chosen(&self) -> impl Iterator<Item = usize> {
        let sampled = || self.kind.stride(&self.path);
        let stride = match self.share {
            Share::All => 1,
            Share::Sample => sampled(),
            Share::Brief => sampled() * BRIEF_STRIDE,
        };
        let last = self.count - 1;
        (self.start..self.end).filter(move |&number| number.is_multiple_of(stride) || number == last)
    }

    fn is_any(&self) -> bool {
        self.chosen().next().is_some()
    }

    /// Counts a byte that is damaged by what depends on it.
    fn count_byte(&self, at: usize, tally: &Tally) {
        let guarded = self.patient.packs.get(&self.path).is_none_or(|map| map.covered[at]);
        tally.add(if guarded { "bytes that are guarded" } else { "bytes that nothing depends on" }, 1);
    }
}

impl Case for Stretch {
    fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        format!("{name}/{:?}/{}", self.kind, self.start)
    }

    fn options(&self) -> String {
        format!("{:?}", store::unflushed())
    }

    fn run(&self, tally: &Tally) {
        assert!(is_measuring(), "nobody measures allocations");
        // What others have allocated before.
        take_largest();
        for number in self.chosen() {
            if self.kind == Kind::Bytes {
                self.count_byte(number, tally);
            }
            for (at, wound) in self.kind.wounds(&self.patient, &self.path, number).into_iter().enumerate() {
                let is_owned = self.kind == Kind::Missing || (number + at).is_multiple_of(OWNED_EVERY);
                within(
                    || wound.to_string(),
                    || {
                        self.patient.suffer(&wound, is_owned, tally);
                        // Another case may have taken it, and checks it.
                        let largest = take_largest();
                        assert!(largest <= ALLOCATION_MAX, "an allocation of {largest} bytes");
                    },
                );
            }
        }
    }
}

/// What a wound does to a file.
pub struct Change {
    pub path: PathBuf,
    pub old: Vec<u8>,
    /// None if the file goes.
    pub new: Option<Vec<u8>>,
}

impl Change {
    fn is_of(&self, path: &Path) -> bool {
        self.path == path
    }

    /// Whether the bytes of `range` are as they were.
    fn keeps(&self, range: &std::ops::Range<usize>) -> bool {
        let new = self.new.as_deref().unwrap_or_default();
        new.get(range.clone()) == self.old.get(range.clone())
    }
}
