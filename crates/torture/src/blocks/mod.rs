//! The suite `blocks`: power cuts of a device, under a real file system over a disk whose cache may lose everything
//! that no flush has reached.
//!
//! A [`writer`](crate::writer) works in ext4 or XFS over a `disk` that records every write and every flush.
//! Afterwards the disk is rebuilt as it may have been at many moments: with all writes before the last flush, and of
//! the writes after it with all, none, or those that are drawn. Each such image is mounted, for which the file system
//! replays its journal, and the store is opened and judged: it holds everything that was acknowledged as synced at
//! that moment.
//!
//! Some stores are over two such disks. Their changes are recorded in one order. Each disk has flushes of its own, and its own fate.

mod disk;
pub mod image;

use std::fs::File;
use std::io;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use self::disk::{Changes, Disk, Log};
use self::image::{Fate, apply, survive, unflushed};
use crate::second::{Dirs, Second};
use crate::seed::Rng;
use crate::suite::{Case, Cases, Round, Share, Suite, Tally, within};
use crate::volume::{Kind, LARGE_BYTES, Volume, tool};
use crate::writer::{History, Judge, Writer};

/// Number of recordings of a whole round, on each file system.
const RECORDINGS: u64 = 10;
/// And of those over two disks.
const TWO_DISKS: u64 = 6;
const SECONDS: [Second; 2] = [Second::Mod2, Second::Dynamic];
/// Number of moments of each recording at which the power is cut; in a sample, of the one recording.
const CUTS: usize = 50;
const SAMPLED_CUTS: usize = 8;
/// Records of each.
const RECORDS: usize = 1200;

/// Images whose file system the kernel refuses to mount. That is not the store's fault; XFS does so now and then.
const UNMOUNTED: &str = "images that cannot be mounted";

/// Counts of moments of two disks, and of those at which both had packs.
const OF_TWO: &str = "images of two disks";
const ON_BOTH: &str = "of them with packs on both";

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
        let history = History { seed: 0, chain: 0, second: Second::None };
        Recording::make(Kind::Ext4, &history, 0).err().map(|error| error.to_string())
    }

    fn cases(&self, round: &Round) -> Cases {
        let (seed, is_all) = (round.seed, round.share == Share::All);
        let kinds: &[Kind] = if is_all { &[Kind::Ext4, Kind::Xfs] } else { &[Kind::Ext4] };
        let (recordings, two, cuts) =
            if is_all { (RECORDINGS, TWO_DISKS, CUTS) } else { (1, 1, SAMPLED_CUTS) };
        let one = (0..recordings).map(|number| (number, Second::None));
        let two = (0..two).map(|number| (number, SECONDS[number as usize % SECONDS.len()]));
        let lives = one.chain(two).flat_map(move |(number, second)| {
            let life = move |&kind| Box::new(Life { seed, kind, number, second, cuts }) as Box<dyn Case>;
            kinds.iter().map(life)
        });
        Box::new(lives)
    }

    fn conclude(&self, tally: &Tally) -> Result<(), String> {
        tally.require(&["images"], 1)?;
        if tally.get("images") < FEW {
            return Ok(());
        }
        tally.require(&["images that lack a write"], tally.get("images") / 8)?;
        if tally.get(OF_TWO) > FEW {
            tally.require(&[ON_BOTH], tally.get(OF_TWO) / 4)?;
        }
        match tally.get(UNMOUNTED) * 100 > tally.get("images") {
            true => Err(format!("the kernel refuses too many file systems; in all: {tally}")),
            false => Ok(()),
        }
    }
}

fn volume_bytes(kind: Kind) -> u64 {
    if kind == Kind::Xfs { LARGE_BYTES } else { 64 << 20 }
}

/// The calls to the disks of a store, and the acknowledgements of that time.
struct Recording {
    /// The image of each disk before all changes.
    before: Vec<tempfile::NamedTempFile>,
    changes: Changes,
    /// Records that were acknowledged, each with how many changes there were by then.
    acknowledged: Vec<(u64, usize)>,
}

/// Where the store is, on the volumes of its disks.
fn dirs(volumes: &[Volume]) -> Dirs {
    let mut places = volumes.iter().map(|volume| volume.place().join("store"));
    let home = places.next().expect("a store has a home");
    Dirs { home, other: places.next() }
}

impl Recording {
    /// Lets a writer write this many records on file systems of this kind.
    fn make(kind: Kind, history: &History, records: usize) -> io::Result<Self> {
        let (log, dir) = (Log::default(), tempfile::tempdir()?);
        let (mut before, mut disks) = (Vec::new(), Vec::new());
        for disk in 0..if history.second == Second::None { 1 } else { 2 } {
            let image = tempfile::NamedTempFile::new()?;
            image.as_file().set_len(volume_bytes(kind))?;
            kind.format(image.path())?;
            let (recorded, place) =
                (dir.path().join(format!("image {disk}")), dir.path().join(format!("recorded {disk}")));
            copy(image.path(), &recorded)?;
            std::fs::create_dir(&place)?;
            disks.push(Disk::new(&recorded, place, &log)?);
            before.push(image);
        }
        let mut acknowledged = Vec::new();
        {
            let mount =
                |disk: &Disk| Volume::mount_image(kind, tempfile::tempdir()?, disk.file(), String::new());
            let volumes: Vec<Volume> = disks.iter().map(mount).collect::<io::Result<_>>()?;
            let changes = || log.lock().order.len();
            let mut writer = Writer::start(&dirs(&volumes), history, true);
            let mut acknowledgements = writer.acknowledgements();
            for n in acknowledgements.by_ref().take(records) {
                acknowledged.push((n, changes()));
            }
            writer.kill();
            acknowledged.extend(acknowledgements.map(|n| (n, changes())));
            writer.wait(Duration::MAX);
        }
        drop(disks);
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

/// A case: a writer on recorded disks, judged at many moments.
struct Life {
    seed: u64,
    kind: Kind,
    number: u64,
    second: Second,
    cuts: usize,
}

impl Life {
    fn history(&self) -> History {
        History { seed: self.seed ^ self.number << 32, chain: self.number, second: self.second }
    }

    /// Rebuilds each disk as it may have been after this many changes, mounts them and judges the store. The images hold
    /// everything before the last flush of their disk. Returns how many writes are not whole; `None` if a file system cannot be
    /// mounted.
    fn judge(
        &self,
        recording: &Recording,
        (at, fates): (usize, &[Fate]),
        judge: &mut Judge,
        random: &mut Rng,
        tally: &Tally,
    ) -> Option<u64> {
        let (mut harmed, mut volumes) = (0, Vec::new());
        for (disk, (image, fate)) in recording.before.iter().zip(fates).enumerate() {
            let dir = tempfile::tempdir().unwrap();
            let cut = dir.path().join("image");
            copy(image.path(), &cut).unwrap();
            let file = File::options().write(true).open(&cut).unwrap();
            let changes = recording.changes.first(disk, at);
            harmed += survive(&file, &changes[unflushed(changes)], *fate, random).unwrap();
            drop(file);
            volumes.push(Volume::mount_image(self.kind, dir, cut, String::new()).ok()?);
        }
        let dirs = dirs(&volumes);
        if self.second != Second::None {
            tally.add(OF_TWO, 1);
            tally.add(ON_BOTH, u64::from(dirs.packs_of_home() > 0 && dirs.packs_of_second() > 0));
        }
        let durable = self.history().durable(recording.acknowledged_by(at));
        let last = recording.acknowledged.last().map_or(0, |(n, _)| *n);
        judge.judge(&dirs, durable..=last + 1, random);
        Some(harmed)
    }
}

impl Case for Life {
    fn name(&self) -> String {
        match self.second {
            Second::None => format!("{}/recording {}", self.kind.name(), self.number),
            second => format!("two disks/{}/recording {}, {}", self.kind.name(), self.number, second.name()),
        }
    }

    fn options(&self) -> String {
        let (name, options) = self.history().shape();
        format!("{name}: {options:?}")
    }

    fn run(&self, tally: &Tally) {
        let mut random = Rng::new(self.history().seed);
        let recording = Recording::make(self.kind, &self.history(), RECORDS).unwrap();
        let changes = &recording.changes;
        let mut judge = Judge::new(self.history());
        let mut moments: Vec<usize> = (0..self.cuts).map(|_| random.below(changes.order.len() + 1)).collect();
        moments.sort_unstable();
        let mut flushed = vec![0; recording.before.len()];
        for at in moments {
            for (disk, (image, flushed)) in recording.before.iter().zip(&mut flushed).enumerate() {
                let safe = unflushed(changes.first(disk, at)).start;
                let image = File::options().write(true).open(image.path()).unwrap();
                apply(&image, &changes.of[disk][*flushed..safe]).unwrap();
                *flushed = safe;
            }
            let fate = |random: &mut Rng| *random.pick(&[Fate::Lost, Fate::Kept, Fate::Drawn, Fate::Drawn]);
            let fates: Vec<Fate> = flushed.iter().map(|_| fate(&mut random)).collect();
            let harmed = within(
                || format!("after {at} changes, those without a flush {fates:?}"),
                || self.judge(&recording, (at, &fates), &mut judge, &mut random, tally),
            );
            tally.add("images", 1);
            match harmed {
                Some(harmed) => tally.add("images that lack a write", u64::from(harmed > 0)),
                None => tally.add(UNMOUNTED, 1),
            }
        }
        tally.add("changes", changes.order.len() as u64);
        tally.add("records", recording.acknowledged.len() as u64);
    }
}
