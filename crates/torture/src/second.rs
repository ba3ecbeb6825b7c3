//! The second device of a store whose process or disks are ended: how tables get there, and a process that adds, drains and
//! removes it while it writes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process;
use std::thread;
use std::time::{Duration, Instant};

use terrace::tree::{Placer, Unit};
use terrace::{Db, ErrorKind};

use crate::panics::message_of;
use crate::seed::Rng;

/// How a store uses a second device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Second {
    /// There is none.
    None,
    /// Every second table goes there.
    Mod2,
    /// The default placer says what goes there.
    Dynamic,
    /// As `Mod2`, and it is added, drained and removed again and again while records are written.
    Passing,
}

/// The directories of a store.
#[derive(Clone, Debug)]
pub struct Dirs {
    pub home: PathBuf,
    /// Of the second device; where it is passing, that in which its directories are.
    pub other: Option<PathBuf>,
}

/// Directories that a passing device is in by turns.
const PLACES: u64 = 3;

/// For so long nobody holds on to a table of a device that leaves.
const HELD_MAX: Duration = Duration::from_secs(60);

impl Second {
    pub const ALL: [Self; 4] = [Self::None, Self::Mod2, Self::Dynamic, Self::Passing];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Mod2 => "mod2",
            Self::Dynamic => "dynamic",
            Self::Passing => "passing",
        }
    }

    /// The one of that name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|second| second.name() == name)
    }

    /// How tables are placed; `None` leaves that to the options.
    #[must_use]
    pub fn placer(self) -> Option<Placer> {
        match self {
            Self::None => None,
            Self::Mod2 | Self::Passing => Some(Placer::Mod { n: 2, unit: Unit::Table }),
            Self::Dynamic => Some(Placer::Dynamic { unit: Unit::Table }),
        }
    }

    /// Whether every opening is given the device.
    #[must_use]
    pub fn is_given(self) -> bool {
        matches!(self, Self::Mod2 | Self::Dynamic)
    }
}

impl Dirs {
    /// A store in `home` alone.
    pub fn of_home(home: impl Into<PathBuf>) -> Self {
        Self { home: home.into(), other: None }
    }

    /// Packs of the second device.
    #[must_use]
    pub fn packs_of_second(&self) -> usize {
        let Some(other) = &self.other else { return 0 };
        packs_in(other) + subdirectories(other).iter().map(|dir| packs_in(dir)).sum::<usize>()
    }

    /// Packs of home.
    #[must_use]
    pub fn packs_of_home(&self) -> usize {
        packs_in(&self.home)
    }
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    let listed = fs::read_dir(dir).into_iter().flatten();
    listed.filter_map(|entry| Some(entry.ok()?.path())).collect()
}

fn subdirectories(dir: &Path) -> Vec<PathBuf> {
    entries(dir).into_iter().filter(|path| path.is_dir()).collect()
}

fn packs_in(dir: &Path) -> usize {
    entries(dir).iter().filter(|path| path.extension().is_some_and(|is| is == "pack")).count()
}

/// No pack is left on a device that the store does not know.
///
/// # Panics
///
/// Panics if there is one, or one is missing.
pub fn check_packs(db: &Db) {
    db.wait_idle().unwrap();
    let (space, devices) = (db.stats().space, db.stats().devices);
    let known = space.pack_files + space.preallocated_files;
    let there: usize = devices.iter().map(|device| packs_in(&device.dir)).sum();
    assert_eq!(there as u64, known, "packs on {devices:?}");
}

/// Adds a device to `db`, drains it and removes it, again and again, in directories below `parent`, in a thread of its own. A failure
/// ends the process with an error.
pub fn start_passing(db: &Db, parent: PathBuf, seed: u64) {
    let db = db.clone();
    thread::spawn(move || {
        let passed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| pass(&db, &parent, seed)));
        if let Err(panic) = passed {
            eprintln!("a passing device: {}", message_of(&*panic));
            process::exit(1);
        }
    });
}

fn pass(db: &Db, parent: &Path, seed: u64) {
    let mut random = Rng::new(seed);
    loop {
        thread::sleep(Duration::from_millis(random.below(40) as u64));
        let devices = db.stats().devices;
        let Some(device) = devices.get(1) else {
            add(db, &parent.join((random.below(PLACES as usize)).to_string()));
            continue;
        };
        if random.percent(30) {
            db.drain_device(&device.dir).unwrap();
            let held = db.stats().devices[1].table_bytes;
            assert_eq!(held, 0, "a device that was drained has tables");
        }
        remove(db, &device.dir);
        let left: Vec<PathBuf> =
            entries(&device.dir).into_iter().filter(|path| path.extension().is_some()).collect();
        assert!(left.is_empty(), "a device that was removed has {left:?}");
    }
}

/// A removal that was cut off leaves a directory that is not taken again as it is.
fn add(db: &Db, dir: &Path) {
    let Err(error) = db.add_device(dir) else { return };
    let is_cut_off = error.kind() == ErrorKind::InvalidInput && error.to_string().contains("once");
    assert!(is_cut_off, "{error:?}");
    fs::remove_dir_all(dir).unwrap();
    db.add_device(dir).unwrap();
}

/// Those who hold a table there let it go soon: a compaction that began before.
fn remove(db: &Db, dir: &Path) {
    let started = Instant::now();
    while let Err(error) = db.remove_device(dir) {
        assert!(error.kind() == ErrorKind::Busy && started.elapsed() < HELD_MAX, "{error:?}");
        thread::sleep(Duration::from_millis(1));
    }
}
