//! The cost of holes on a file system: the figures behind the thresholds of reclamation.
//!
//! 1. Holes of one size, apart from one another and in random order, are punched into a fresh file. Each call is
//!    timed, then a sync, then the removal of the file.
//! 2. Churn: packs of logical tables are written, their tables die at random and are punched, and packs with no table
//!    left are removed, until many times the space of all packs has been written. The effect on the file system shows
//!    in the extents of packs, in the speed with which they are written, and in the time of punches and removals.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::fs::{FallocateFlags, SeekFrom, fallocate, seek, statfs};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::generator::Rng;
use crate::latency::{Latency, LatencySummary};
use crate::progress::Progress;
use crate::report::{Provenance, table};

/// Sizes of holes, in bytes.
const HOLE_BYTES: [u64; 7] = [4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20];

/// Size of the file that they are punched into.
pub(crate) const FILE_BYTES: u64 = 256 << 20;

/// Holes in it, at most.
const HOLES_MAX: u64 = 1024;

/// A pack and its tables, as the engine makes them.
pub(crate) const PACK_BYTES: u64 = 32 << 20;
const TABLE_BYTES: u64 = 1 << 20;
const TABLES: usize = (PACK_BYTES / TABLE_BYTES) as usize;

/// Number of parts in which the churn is reported.
const PARTS: u64 = 10;

/// What is written at once.
const WRITE_BYTES: usize = 1 << 20;

/// What is measured.
#[derive(Clone, Debug)]
pub struct PunchOptions {
    /// Directory on the file system in question; files are made in it, and removed.
    pub dir: PathBuf,
    /// Packs' worth of tables that live at a time during the churn; at least 1.
    pub packs: usize,
    /// Bytes that the churn writes.
    pub churn_bytes: u64,
    /// Names the stream of random numbers.
    pub seed: u64,
}

/// What holes cost on a file system.
#[derive(Debug, Serialize, Deserialize)]
pub struct PunchRun {
    /// Where it comes from.
    #[serde(flatten)]
    pub provenance: Provenance,
    /// Names the stream of random numbers.
    pub seed: u64,
    /// Kind of the file system.
    pub file_system: String,
    /// Whether it has holes at all; the rest is empty if not.
    pub punches: bool,
    /// A file without holes, then one for each size.
    pub files: Vec<HoledFile>,
    /// What became of packs.
    pub churn: Option<Churn>,
}

/// A file with holes of one size.
#[derive(Debug, Serialize, Deserialize)]
pub struct HoledFile {
    /// Size of each hole; 0 for a file without.
    pub hole_bytes: u64,
    /// Their number.
    pub holes: u64,
    /// Of each punch, in microseconds.
    pub punch_us: LatencySummary,
    /// Of the sync behind them.
    pub sync_us: f64,
    /// Stretches of data that are left.
    pub data_ranges: u64,
    /// Time to remove the file, in microseconds.
    pub unlink_us: f64,
}

/// What became of packs.
#[derive(Debug, Serialize, Deserialize)]
pub struct Churn {
    /// Bytes written in all.
    pub written_bytes: u64,
    /// Bytes of packs that live at a time; they are written anew as often as all that is written holds them.
    pub live_bytes: u64,
    /// Bytes that were punched.
    pub punched_bytes: u64,
    /// Its course, in ten parts.
    pub parts: Vec<ChurnPart>,
}

/// A tenth of the churn.
#[derive(Debug, Serialize, Deserialize)]
pub struct ChurnPart {
    /// Bytes written from the beginning of the churn to the end of this part.
    pub written_bytes: u64,
    /// Megabytes per second at which packs were written and synced.
    pub write_mb_per_s: f64,
    /// Extents of a new pack on the device; 0 if `filefrag` cannot say.
    pub new_extents: f64,
    /// Mean number of extents of all packs at the end of the part; 0 if `filefrag` cannot say.
    pub extents: f64,
    /// Packs that are there at the end of the part.
    pub packs: usize,
    /// Of each punch, in microseconds. Dead tables that are neighbours are punched as one.
    pub punch_us: LatencySummary,
    /// Of each removal of a pack that has been punched, in microseconds.
    pub unlink_us: LatencySummary,
}

/// Measures.
///
/// # Errors
/// Those of the file system, but for one that has no holes: that is a result.
pub fn run(options: &PunchOptions) -> Result<PunchRun> {
    let mut rng = Rng::new(options.seed);
    let place = tempfile::tempdir_in(&options.dir)?;
    let punches = has_holes(place.path())?;
    let mut files = Vec::new();
    if punches {
        let progress = Progress::start("holes", HOLE_BYTES.len() as u64 + 1, None);
        for (done, hole_bytes) in (1..).zip([0].into_iter().chain(HOLE_BYTES)) {
            files.push(holed_file(&place.path().join("holed"), hole_bytes, &mut rng)?);
            progress.show(done);
        }
        progress.finish();
    }
    let churn = punches.then(|| churn(place.path(), options, &mut rng)).transpose()?;
    Ok(PunchRun {
        provenance: Provenance::here(),
        seed: options.seed,
        file_system: file_system(&options.dir)?,
        punches,
        files,
        churn,
    })
}

/// The run for people.
#[must_use]
pub fn text(run: &PunchRun) -> String {
    if !run.punches {
        return format!("{}: holes cannot be punched here\n", run.file_system);
    }
    let head =
        ["hole KiB", "holes", "p50 us", "p99 us", "max us", "us/MiB", "sync us", "data ranges", "unlink us"];
    let rows = run.files.iter().map(|file| {
        let mebibytes = file.hole_bytes as f64 / f64::from(1 << 20);
        let HoledFile { punch_us, .. } = file;
        vec![
            (file.hole_bytes >> 10).to_string(),
            file.holes.to_string(),
            format!("{:.1}", punch_us.p50),
            format!("{:.1}", punch_us.p99),
            format!("{:.1}", punch_us.max),
            if file.holes == 0 { "-".to_owned() } else { format!("{:.1}", punch_us.mean / mebibytes) },
            format!("{:.0}", file.sync_us),
            file.data_ranges.to_string(),
            format!("{:.0}", file.unlink_us),
        ]
    });
    let mut text =
        format!("{}, files of {} MiB\n\n{}", run.file_system, FILE_BYTES >> 20, table(&head, rows.collect()));
    if let Some(churn) = &run.churn {
        let gigabytes = |bytes: u64| bytes as f64 / 1e9;
        text += &format!(
            "\nchurn: {:.1} GB written in packs of {} MiB, {:.1} GB of them live at a time, {:.1} GB punched\n\n{}",
            gigabytes(churn.written_bytes),
            PACK_BYTES >> 20,
            gigabytes(churn.live_bytes),
            gigabytes(churn.punched_bytes),
            table(&CHURN_HEAD, churn.parts.iter().map(churn_row).collect()),
        );
    }
    text
}

const CHURN_HEAD: [&str; 11] = [
    "GB written",
    "MB/s",
    "extents, new pack",
    "extents, all",
    "packs",
    "holes",
    "punch p50 us",
    "p99 us",
    "max us",
    "unlink p50 us",
    "max us",
];

fn churn_row(part: &ChurnPart) -> Vec<String> {
    let ChurnPart { punch_us, unlink_us, .. } = part;
    vec![
        format!("{:.1}", part.written_bytes as f64 / 1e9),
        format!("{:.0}", part.write_mb_per_s),
        format!("{:.1}", part.new_extents),
        format!("{:.1}", part.extents),
        part.packs.to_string(),
        punch_us.count.to_string(),
        format!("{:.1}", punch_us.p50),
        format!("{:.1}", punch_us.p99),
        format!("{:.1}", punch_us.max),
        format!("{:.0}", unlink_us.p50),
        format!("{:.0}", unlink_us.max),
    ]
}

fn has_holes(dir: &Path) -> Result<bool> {
    let file = tempfile::tempfile_in(dir)?;
    fill(&file, WRITE_BYTES as u64)?;
    match punch(&file, 0, HOLE_BYTES[0]) {
        Ok(_) => Ok(true),
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn holed_file(path: &Path, hole_bytes: u64, rng: &mut Rng) -> Result<HoledFile> {
    let file = File::options().read(true).write(true).create_new(true).open(path)?;
    fill(&file, FILE_BYTES)?;
    // Every second place of that size, so that none touches another.
    let places = FILE_BYTES.checked_div(2 * hole_bytes).unwrap_or(0);
    let mut offsets: Vec<u64> = (0..places).map(|place| 2 * place * hole_bytes).collect();
    shuffle(&mut offsets, rng);
    offsets.truncate(HOLES_MAX as usize);
    let mut latency = Latency::new();
    for &offset in &offsets {
        latency.record(punch(&file, offset, hole_bytes)?);
    }
    let sync = Instant::now();
    file.sync_data()?;
    let sync_us = micros(sync.elapsed());
    let data_ranges = data_ranges(&file)?;
    drop(file);
    let unlink_us = micros(unlink(path)?);
    let holes = offsets.len() as u64;
    Ok(HoledFile { hole_bytes, holes, punch_us: latency.summary(), sync_us, data_ranges, unlink_us })
}

/// A pack of the churn.
struct Pack {
    path: PathBuf,
    file: File,
    /// Which of its tables live.
    live: Vec<bool>,
}

/// Writes packs whose tables die, until the requested number of bytes has been written.
struct Packs<'a> {
    dir: &'a Path,
    rng: &'a mut Rng,
    /// Tables that live at most.
    live_max: usize,
    packs: Vec<Pack>,
    written: u64,
    punched_bytes: u64,
}

fn churn(dir: &Path, options: &PunchOptions, rng: &mut Rng) -> Result<Churn> {
    let steps = options.churn_bytes.div_ceil(PACK_BYTES).max(PARTS);
    let live_max = options.packs * TABLES;
    let mut all = Packs { dir, rng, live_max, packs: Vec::new(), written: 0, punched_bytes: 0 };
    let progress = Progress::start("churn", steps, None);
    let mut parts = Vec::new();
    for part in 1..=PARTS {
        parts.push(all.part(steps * part / PARTS, &progress)?);
    }
    progress.finish();
    Ok(Churn {
        written_bytes: steps * PACK_BYTES,
        live_bytes: options.packs as u64 * PACK_BYTES,
        punched_bytes: all.punched_bytes,
        parts,
    })
}

impl Packs<'_> {
    /// Goes on until `end` packs have been written in all.
    fn part(&mut self, end: u64, progress: &Progress) -> Result<ChurnPart> {
        let (mut punches, mut unlinks) = (Latency::new(), Latency::new());
        let (mut packs, mut time, mut new_extents) = (0, Duration::ZERO, 0);
        while self.written < end {
            self.make_room(&mut punches, &mut unlinks)?;
            let path = self.dir.join(format!("{}.pack", self.written));
            let started = Instant::now();
            let file = File::options().read(true).write(true).create_new(true).open(&path)?;
            fill(&file, PACK_BYTES)?;
            time += started.elapsed();
            packs += 1;
            new_extents += extents(&path).unwrap_or(0);
            self.packs.push(Pack { path, file, live: vec![true; TABLES] });
            self.written += 1;
            progress.show(self.written);
        }
        let all_extents: u64 = self.packs.iter().filter_map(|pack| extents(&pack.path)).sum();
        Ok(ChurnPart {
            written_bytes: self.written * PACK_BYTES,
            write_mb_per_s: (packs * PACK_BYTES) as f64 / 1e6 / time.as_secs_f64(),
            new_extents: new_extents as f64 / packs.max(1) as f64,
            extents: all_extents as f64 / self.packs.len().max(1) as f64,
            packs: self.packs.len(),
            punch_us: punches.summary(),
            unlink_us: unlinks.summary(),
        })
    }

    /// Lets tables die, wherever they are, until a new pack has room among those that live.
    fn make_room(&mut self, punches: &mut Latency, unlinks: &mut Latency) -> Result<()> {
        let mut lives: Vec<(usize, usize)> = Vec::new();
        for (pack, state) in self.packs.iter().enumerate() {
            let live = state.live.iter().enumerate().filter(|(_, live)| **live);
            lives.extend(live.map(|(table, _)| (pack, table)));
        }
        let mut dying = Vec::new();
        while lives.len() + TABLES > self.live_max.max(TABLES) {
            let (pack, table) = lives.swap_remove(self.rng.below(lives.len() as u64) as usize);
            self.packs[pack].live[table] = false;
            dying.push((pack, table));
        }
        dying.sort_unstable();
        for joined in dying.chunk_by(|one, other| one.0 == other.0 && one.1 + 1 == other.1) {
            let (pack, first) = joined[0];
            if self.packs[pack].live.contains(&true) {
                let bytes = joined.len() as u64 * TABLE_BYTES;
                punches.record(punch(&self.packs[pack].file, first as u64 * TABLE_BYTES, bytes)?);
                self.punched_bytes += bytes;
            }
        }
        for pack in self.packs.extract_if(.., |pack| !pack.live.contains(&true)) {
            drop(pack.file);
            unlinks.record(unlink(&pack.path)?);
        }
        Ok(())
    }
}

/// Makes the file `bytes` long, of bytes that are not zero, and durable.
fn fill(file: &File, bytes: u64) -> Result<()> {
    let block = vec![0xa5; WRITE_BYTES];
    let mut offset = 0;
    while offset < bytes {
        let length = (bytes - offset).min(block.len() as u64);
        file.write_all_at(&block[..length as usize], offset)?;
        offset += length;
    }
    Ok(file.sync_all()?)
}

/// Time of the call that makes a hole.
fn punch(file: &File, offset: u64, bytes: u64) -> Result<Duration, Errno> {
    let started = Instant::now();
    fallocate(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, offset, bytes)?;
    Ok(started.elapsed())
}

fn unlink(path: &Path) -> Result<Duration> {
    let started = Instant::now();
    fs::remove_file(path)?;
    Ok(started.elapsed())
}

/// Stretches of data between holes.
fn data_ranges(file: &File) -> Result<u64> {
    let (mut ranges, mut offset) = (0, 0);
    loop {
        match seek(file, SeekFrom::Data(offset)) {
            Ok(data) => offset = seek(file, SeekFrom::Hole(data))?,
            Err(Errno::NXIO) => return Ok(ranges),
            Err(error) => return Err(error.into()),
        }
        ranges += 1;
    }
}

/// Extents of a file on its device, as `filefrag` reports them.
fn extents(path: &Path) -> Option<u64> {
    let output = Command::new("filefrag").arg(path).output().ok()?;
    let line = String::from_utf8(output.stdout).ok()?;
    line.rsplit(": ").next()?.split(' ').next()?.parse().ok()
}

/// Kind of the file system that `dir` is on, by its magic number.
fn file_system(dir: &Path) -> Result<String> {
    Ok(match statfs(dir)?.f_type as u64 & 0xffff_ffff {
        0xef53 => "ext4".to_owned(),
        0x5846_5342 => "xfs".to_owned(),
        0x9123_683e => "btrfs".to_owned(),
        0x0102_1994 => "tmpfs".to_owned(),
        0x4d44 => "vfat".to_owned(),
        magic => format!("{magic:#x}"),
    })
}

fn shuffle(offsets: &mut [u64], rng: &mut Rng) {
    for last in (1..offsets.len()).rev() {
        offsets.swap(last, rng.below(last as u64 + 1) as usize);
    }
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    #[test]
    fn holes_are_made_where_they_are_said_to_be() -> Result<(), Error> {
        let dir = tempfile::tempdir()?;
        if !has_holes(dir.path())? {
            return Ok(());
        }
        let holed = holed_file(&dir.path().join("holed"), 16 << 20, &mut Rng::new(1))?;
        // One in every second place: behind each there is data.
        assert_eq!((holed.holes, holed.data_ranges), (8, 8));
        assert_eq!(holed.punch_us.count, 8);
        let whole = holed_file(&dir.path().join("whole"), 0, &mut Rng::new(1))?;
        assert_eq!((whole.holes, whole.data_ranges), (0, 1));
        Ok(())
    }

    #[test]
    fn churn_keeps_the_number_of_tables() -> Result<(), Error> {
        let dir = tempfile::tempdir()?;
        if !has_holes(dir.path())? {
            return Ok(());
        }
        let options =
            PunchOptions { dir: dir.path().to_owned(), packs: 2, churn_bytes: 10 * PACK_BYTES, seed: 1 };
        let churn = churn(dir.path(), &options, &mut Rng::new(1))?;
        assert_eq!(churn.written_bytes, 10 * PACK_BYTES);
        let ends: Vec<u64> = churn.parts.iter().map(|part| part.written_bytes / PACK_BYTES).collect();
        assert_eq!(ends, (1..=10).collect::<Vec<u64>>());
        // Eight packs' worth of tables died, some of it with the last table of a pack.
        assert!(churn.punched_bytes > 4 * PACK_BYTES && churn.punched_bytes < 8 * PACK_BYTES);
        let left: u64 = fs::read_dir(dir.path())?
            .map(|entry| Ok(std::os::unix::fs::MetadataExt::blocks(&entry?.metadata()?) * 512))
            .sum::<Result<u64, std::io::Error>>()?;
        // Two packs' worth of tables lives, and what the file system adds of its own.
        assert!((2 * PACK_BYTES..2 * PACK_BYTES + (1 << 20)).contains(&left), "{left}");
        Ok(())
    }
}
