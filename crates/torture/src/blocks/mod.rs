//! The suite `blocks`: power cuts of a device, under a real file system over a disk whose cache may lose everything
//! that no flush has reached.
//!
//! A [`writer`](crate::writer) works in ext4 or XFS over a `disk` that records every write and every flush.
//! Afterwards the disk is rebuilt as it may have been at many moments: with all writes before the last flush, and of
//! the writes after it with all, none, or those that are drawn. Each such image is mounted, for which the file system
//! replays its journal, and the store is opened and judged: it holds everything that was acknowledged as synced at
//! that moment.

mod disk;
pub mod image;

use std::fs::File;
use std::io;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use self::disk::Disk;
use self::image::{Change, Fate, apply, survive, unflushed};
use crate::seed::Rng;
use crate::suite::{Case, Cases, Round, Share, Suite, Tally, within};
use crate::volume::{Kind, LARGE_BYTES, Volume, tool};
use crate::writer::{History, Judge, Writer};

/// Number of recordings of a whole round, on each file system.
const RECORDINGS: u64 = 10;
/// Number of moments of each recording at which the power is cut; in a sample, of the one recording.
const CUTS: usize = 50;
const SAMPLED_CUTS: usize = 8;
/// Records of each.
const RECORDS: usize = 1200;

/// Images whose file system the kernel refuses to mount. That is not the store's fault; XFS does so now and then.
const UNMOUNTED: &str = "images that cannot be mounted";

/// With fewer images, their shares say nothing.
const FEW: u64 = 100;

/// The suite.
pub struct Blocks;

impl Suite for Blocks {
    fn name(&self) -> &'static str {
        "blocks"
    }

    fn about(&self) -> &'static str {
        "real file systems over a recorded disk, made anew with what its cache may have lost"
    }

    fn hindrance(&self) -> Option<String> {
        Recording::make(Kind::Ext4, &History { seed: 0, chain: 0 }, 0).err().map(|error| error.to_string())
    }

    fn cases(&self, round: &Round) -> Cases {
        let (seed, is_all) = (round.seed, round.share == Share::All);
        let kinds: &[Kind] = if is_all { &[Kind::Ext4, Kind::Xfs] } else { &[Kind::Ext4] };
        let (recordings, cuts) = if is_all { (RECORDINGS, CUTS) } else { (1, SAMPLED_CUTS) };
        let scripts = (0..recordings).flat_map(move |number| {
            kinds.iter().map(move |&kind| Box::new(Life { seed, kind, number, cuts }) as Box<dyn Case>)
        });
        Box::new(scripts)
    }

    fn conclude(&self, tally: &Tally) -> Result<(), String> {
        tally.require(&["images"], 1)?;
        if tally.get("images") < FEW {
            return Ok(());
        }
        tally.require(&["images that lack a write"], tally.get("images") / 8)?;
        match tally.get(UNMOUNTED) * 100 > tally.get("images") {
            true => Err(format!("the kernel refuses too many file systems; in all: {tally}")),
            false => Ok(()),
        }
    }
}

fn volume_bytes(kind: Kind) -> u64 {
    if kind == Kind::Xfs { LARGE_BYTES } else { 64 << 20 }
}

/// The calls to a disk, and the acknowledgements of that time.
struct Recording {
    /// The image before all changes.
    before: tempfile::NamedTempFile,
    changes: Vec<Change>,
    /// Records that were acknowledged, each with how many changes there were by then.
    acknowledged: Vec<(u64, usize)>,
}

impl Recording {
    /// Lets a writer write this many records on a file system of this kind.
    fn make(kind: Kind, history: &History, records: usize) -> io::Result<Self> {
        let before = tempfile::NamedTempFile::new()?;
        before.as_file().set_len(volume_bytes(kind))?;
        kind.format(before.path())?;
        let dir = tempfile::tempdir()?;
        let (image, place) = (dir.path().join("image"), dir.path().join("recorded"));
        copy(before.path(), &image)?;
        std::fs::create_dir(&place)?;
        let disk = Disk::new(&image, place)?;
        let log = disk.log();
        let mut acknowledged = Vec::new();
        {
            let volume = Volume::mount_image(kind, tempfile::tempdir()?, disk.file(), String::new())?;
            let mut writer = Writer::start(&volume.place().join("store"), history, true);
            let mut acknowledgements = writer.acknowledgements();
            for n in acknowledgements.by_ref().take(records) {
                acknowledged.push((n, log.lock().len()));
            }
            writer.kill();
            acknowledged.extend(acknowledgements.map(|n| (n, log.lock().len())));
            writer.wait(Duration::MAX);
        }
        drop(disk);
        let changes = std::mem::take(&mut *log.lock());
        Ok(Self { before, changes, acknowledged })
    }

    /// The last record that was acknowledged before this many changes.
    fn acknowledged_by(&self, changes: usize) -> u64 {
        let count = self.acknowledged.partition_point(|(_, at)| *at <= changes);
        count.checked_sub(1).map_or(0, |at| self.acknowledged[at].0)
    }
}

/// Copies an image of which most is nothing.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    tool(Command::new("cp").arg("--sparse=always").args([from, to]))
}

/// A case: a writer on a recorded disk, judged at many moments.
struct Life {
    seed: u64,
    kind: Kind,
    number: u64,
    cuts: usize,
}

impl Life {
    fn history(&self) -> History {
        History { seed: self.seed ^ self.number << 32, chain: self.number }
    }

    /// Rebuilds the disk as it may have been after this many changes, mounts it and judges the store. `image` holds
    /// everything before the last flush. Returns how many writes are not whole; `None` if the file system cannot be
    /// mounted.
    fn judge(
        &self,
        recording: &Recording,
        image: &Path,
        at: usize,
        fate: Fate,
        judge: &mut Judge,
        random: &mut Rng,
    ) -> Option<u64> {
        let dir = tempfile::tempdir().unwrap();
        let cut = dir.path().join("image");
        copy(image, &cut).unwrap();
        let file = File::options().write(true).open(&cut).unwrap();
        let unsafe_changes = &recording.changes[unflushed(&recording.changes[..at])];
        let harmed = survive(&file, unsafe_changes, fate, random).unwrap();
        drop(file);
        let volume = Volume::mount_image(self.kind, dir, cut, String::new()).ok()?;
        let durable = self.history().durable(recording.acknowledged_by(at));
        let last = recording.acknowledged.last().map_or(0, |(n, _)| *n);
        judge.judge(&volume.place().join("store"), durable..=last + 1, random);
        Some(harmed)
    }
}

impl Case for Life {
    fn name(&self) -> String {
        format!("{}/recording {}", self.kind.name(), self.number)
    }

    fn options(&self) -> String {
        let (name, options) = self.history().shape();
        format!("{name}: {options:?}")
    }

    fn run(&self, tally: &Tally) {
        let mut random = Rng::new(self.history().seed);
        let recording = Recording::make(self.kind, &self.history(), RECORDS).unwrap();
        let mut judge = Judge::new(self.history());
        let mut moments: Vec<usize> =
            (0..self.cuts).map(|_| random.below(recording.changes.len() + 1)).collect();
        moments.sort_unstable();
        let image = File::options().write(true).open(recording.before.path()).unwrap();
        let mut flushed = 0;
        for at in moments {
            let safe = unflushed(&recording.changes[..at]).start;
            apply(&image, &recording.changes[flushed..safe]).unwrap();
            flushed = safe;
            let fate = *random.pick(&[Fate::Lost, Fate::Kept, Fate::Drawn, Fate::Drawn]);
            let harmed = within(
                || format!("after {at} changes, those without a flush {fate:?}"),
                || self.judge(&recording, recording.before.path(), at, fate, &mut judge, &mut random),
            );
            tally.add("images", 1);
            match harmed {
                Some(harmed) => tally.add("images that lack a write", u64::from(harmed > 0)),
                None => tally.add(UNMOUNTED, 1),
            }
        }
        tally.add("changes", recording.changes.len() as u64);
        tally.add("records", recording.acknowledged.len() as u64);
    }
}
