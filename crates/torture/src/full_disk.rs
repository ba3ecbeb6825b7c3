//! The suite `disk-full`: the store reports a full disk clearly, survives it without being reopened, and recovers
//! from it.
//!
//! The simulated device is given a number of free pages, from none up to what the whole script of a store takes, so
//! that it becomes full at every write. Nothing that was acknowledged is lost, nothing that was refused comes back,
//! and as soon as there is space again everything goes on. Volumes of the operating system are filled to many levels
//! beside files of others; there deletes alone must free the space that puts need.

use std::fs;
use std::path::Path;

use terrace::env::simulated::{SimConfig, SimEnv, Survival};
use terrace::{Db, Error, ErrorKind, Options};

use crate::client::{DIR, open};
use crate::option_sets::SHAPES;
use crate::options::tiny;
use crate::suite::{Case, Cases, Round, Share, Suite, Tally, shuffled};
use crate::volume::{Kind, Volume};

/// Bytes of a page of the simulated device.
pub const PAGE_BYTES: u64 = 4096;
/// Space for everything.
pub const PLENTY_BYTES: u64 = 1 << 30;
/// Number of keys that a whole run puts.
pub const KEYS: usize = 260;

/// Size of the volumes of a suite, in bytes.
const VOLUME_BYTES: u64 = 32 << 20;
/// Number of levels to which other files fill a volume before the store fills the rest.
const LEVELS: u64 = 50;

/// The suite, as large as a sample of it.
pub struct FullDisk {
    /// Whether volumes are mounted, too. In a sample one, if that is possible at all.
    pub volumes: bool,
}

/// The whole suite.
pub static FULL_DISK: FullDisk = FullDisk { volumes: true };

/// Of the sizes of a device, a brief sample has one in this many.
const BRIEF_STRIDE: usize = 3;

/// Options under which a device fills up.
struct Shape {
    name: &'static str,
    options: fn() -> Options,
}

const SHAPES_FILLED: &[Shape] = &[
    Shape { name: "tiny", options: tiny },
    Shape { name: "reserve", options: with_small_reserve },
    Shape { name: "one table a file", options: SHAPES[2].options },
];

fn with_small_reserve() -> Options {
    Options { reserve_bytes: 32 << 10, ..tiny() }
}

/// Tiny, with a reserve that is large enough for deletes.
#[must_use]
pub fn with_reserve() -> Options {
    Options { reserve_bytes: 1 << 20, ..tiny() }
}

impl Suite for FullDisk {
    fn name(&self) -> &'static str {
        "disk-full"
    }

    fn about(&self) -> &'static str {
        "a simulated device that fills up at every write; real volumes that fill up to many levels"
    }

    fn cases(&self, round: &Round) -> Cases {
        let Round { seed, share, .. } = *round;
        let mut cases: Vec<Box<dyn Case>> = Vec::new();
        for shape in SHAPES_FILLED.iter().filter(|shape| round.may_want(shape.name)) {
            let stride = if share == Share::Brief && round.only.is_none() { BRIEF_STRIDE } else { 1 };
            let fillings = Filling::all(shape, seed).step_by(stride);
            cases.extend(fillings.map(|case| Box::new(case) as Box<dyn Case>));
        }
        let kinds = [Kind::Tmpfs, Kind::Ext4].into_iter().filter(|kind| {
            self.volumes && round.may_want(kind.name()) && Volume::mount(*kind, VOLUME_BYTES).is_some()
        });
        let levels = if share == Share::All { LEVELS } else { 1 };
        for kind in kinds {
            cases.extend((0..levels).map(|level| Box::new(Level { kind, level, seed }) as Box<dyn Case>));
        }
        Box::new(shuffled(cases, seed).into_iter())
    }

    fn conclude(&self, tally: &Tally) -> Result<(), String> {
        tally.require(&["sizes that were too small"], 40)
    }
}

/// The `n`-th key.
#[must_use]
pub fn key(n: usize) -> String {
    format!("{:06}", n * 7919 % 1_000_000)
}

/// The value of the `n`-th key.
#[must_use]
pub fn value(n: usize) -> Vec<u8> {
    vec![n as u8; 300]
}

/// Leaves this much free space on the device of the store, in bytes.
pub fn limit(env: &SimEnv, more_bytes: u64) {
    env.set_space(Path::new(DIR), env.used_bytes(Path::new(DIR)) + more_bytes);
}

/// Checks that an error says that the disk is full, and where.
pub fn check_full(error: &Error) {
    assert_eq!(error.kind(), ErrorKind::DiskFull, "{error:?}");
    assert!(error.file().is_some_and(|file| file.starts_with(DIR)), "{error:?}");
}

/// Checks that the store holds the keys of these numbers and no others.
pub fn check_contents(db: &Db, there: &[usize], when: &str) {
    let mut expected: Vec<String> = there.iter().map(|&n| key(n)).collect();
    expected.sort();
    let found = db.iter().unwrap().map(|entry| String::from_utf8(entry.unwrap().0.to_vec()).unwrap());
    assert!(found.eq(expected), "wrong keys {when}");
    for &n in there.iter().step_by(17) {
        assert_eq!(db.get(key(n)).unwrap().unwrap(), value(n), "{when}");
    }
}

/// A simulated device with this many free pages.
struct Filling {
    shape: &'static Shape,
    seed: u64,
    pages: u64,
}

impl Filling {
    /// A device of every size, up to one that is large enough.
    fn all(shape: &'static Shape, seed: u64) -> impl Iterator<Item = Self> {
        let of_pages = move |pages| Self { shape, seed, pages };
        let sizes = (5..).map(|power| 1 << power).map(of_pages);
        let enough = sizes.into_iter().find(|filling| !filling.fill_up_and_go_on()).map_or(0, |it| it.pages);
        (0..=enough).map(of_pages)
    }

    /// Fills the device, gives it space, and goes on. Returns whether the device was too small.
    fn fill_up_and_go_on(&self) -> bool {
        let (options, pages) = (self.shape.options, self.pages);
        let machine = SimEnv::new(SimConfig { seed: self.seed << 32 ^ pages, ..SimConfig::default() });
        let was_full = machine.simulate(move |env| {
            let db = open(&env, &options()).unwrap();
            limit(&env, pages * PAGE_BYTES);
            let (there, refused): (Vec<_>, Vec<_>) =
                (0..KEYS).partition(|&n| match db.put(key(n), value(n)) {
                    Ok(()) => true,
                    Err(error) => {
                        check_full(&error);
                        false
                    }
                });
            let jobs = [db.flush(), db.compact(), db.keyspace("another").map(drop)];
            jobs.iter().filter_map(|job| job.as_ref().err()).for_each(check_full);
            check_contents(&db, &there, "on a full disk");

            env.set_space(Path::new(DIR), PLENTY_BYTES);
            for &n in &refused {
                db.put(key(n), value(n)).unwrap();
            }
            db.keyspace("another").unwrap();
            db.compact().unwrap();
            check_contents(&db, &(0..KEYS).collect::<Vec<_>>(), "with space again");
            assert!(db.verify().unwrap().problems.is_empty());
            db.sync().unwrap();
            !refused.is_empty() || jobs.iter().any(Result::is_err)
        });
        machine.crash(Survival::Nothing).simulate(move |env| {
            let db = open(&env, &options()).unwrap();
            check_contents(&db, &(0..KEYS).collect::<Vec<_>>(), "after a power cut");
        });
        was_full
    }
}

impl Case for Filling {
    fn name(&self) -> String {
        format!("{}/{} pages", self.shape.name, self.pages)
    }

    fn options(&self) -> String {
        format!("{:?}", (self.shape.options)())
    }

    fn run(&self, tally: &Tally) {
        let was_full = self.fill_up_and_go_on();
        tally.add("sizes", 1);
        tally.add("sizes that were too small", u64::from(was_full));
    }
}

impl Volume {
    /// Fills it up with a store, `ballast_bytes` being taken by others, frees space by deletes alone, and goes on, also after
    /// another opening.
    ///
    /// # Panics
    ///
    /// Panics if the store does not behave.
    pub fn fill_up_and_recover(&self, ballast_bytes: u64, options: &Options) {
        let place = self.place();
        fs::write(place.join("ballast"), vec![1; ballast_bytes as usize]).unwrap();
        let open = || Db::builder(place.join("store")).options(options.clone()).open().unwrap();
        let db = open();
        let mut there = Vec::new();
        let error = (0..).find_map(|n| match db.put(key(n), value(n)) {
            Ok(()) => {
                there.push(n);
                None
            }
            Err(error) => Some(error),
        });
        let error = error.unwrap();
        assert_eq!(error.kind(), ErrorKind::DiskFull, "{error:?}");
        assert!(error.file().is_some());
        check_contents(&db, &there, "on a full volume");
        let (deleted, kept) = there.split_at(there.len() * 3 / 4);
        deleted.iter().for_each(|&n| delete(&db, n));
        db.compact().unwrap();
        check_contents(&db, kept, "after deleting");
        let (again, gone) = deleted.split_at(deleted.len() / 3);
        again.iter().for_each(|&n| db.put(key(n), value(n)).unwrap());
        assert!(db.verify().unwrap().problems.is_empty());
        db.close().unwrap();
        check_contents(&open(), &[again, kept].concat(), "after another opening");
        assert!(!gone.is_empty(), "the volume held nothing");
    }
}

/// Tiny, with a reserve for volumes, where a table takes twice its bytes.
fn with_large_reserve() -> Options {
    Options { reserve_bytes: 3 << 20, ..tiny() }
}

/// Deletes the `n`-th key on a disk that may be full. If that is refused, tries again after the deleted data has been
/// freed.
///
/// # Panics
///
/// Panics if it is refused even then, or for another reason.
pub fn delete(db: &Db, n: usize) {
    if let Err(error) = db.delete(key(n)) {
        assert_eq!(error.kind(), ErrorKind::DiskFull, "{error:?}");
        db.compact().unwrap();
        db.delete(key(n)).unwrap();
    }
}

/// A volume that other files have partly filled.
struct Level {
    kind: Kind,
    level: u64,
    seed: u64,
}

impl Level {
    /// From nothing to a third of the volume.
    fn ballast_bytes(&self) -> u64 {
        VOLUME_BYTES / 3 * (self.level + self.seed % 7) / (LEVELS + 7)
    }
}

impl Case for Level {
    fn name(&self) -> String {
        format!("{}/level {}", self.kind.name(), self.level)
    }

    fn options(&self) -> String {
        format!("{} bytes of others, {:?}", self.ballast_bytes(), with_large_reserve())
    }

    fn run(&self, tally: &Tally) {
        let volume = Volume::mount(self.kind, VOLUME_BYTES).expect("a volume could be mounted before");
        volume.fill_up_and_recover(self.ballast_bytes(), &with_large_reserve());
        tally.add("volumes", 1);
    }
}
