//! Tests of the pool on a simulated disk: what it keeps, and what a power cut leaves of it.

use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;

use crate::env::Env;
use crate::env::simulated::{Journal, SimConfig, SimEnv, Survival};
use crate::format::names::FileName;
use crate::store::files::device::{Device, Named};
use crate::store::files::meter::{Meter, WriteCause};
use crate::store::files::recycled::{NewFile, RecycledFiles};
use crate::types::PackId;

const LENGTH: u64 = 64 << 10;

/// A directory in which whatever was not synced may be lost, and a counter of packs.
struct Stage {
    env: Arc<SimEnv>,
    device: Arc<Device>,
    recycled: RecycledFiles,
    next: Cell<u64>,
}

impl Stage {
    fn new() -> Self {
        let env = SimEnv::new(SimConfig { journal: Journal::None, ..SimConfig::default() });
        env.create_dir(Path::new("/db")).unwrap();
        let device = Arc::new(Device::new(env.clone(), "/db".into(), Arc::new(Meter::default())));
        let recycled = RecycledFiles::new(device.clone());
        recycled.keep_up_to(4 * LENGTH);
        Self { env, device, recycled, next: Cell::new(1) }
    }

    fn id(&self) -> PackId {
        PackId(self.next.replace(self.next.get() + 1))
    }

    fn take(&self, length: u64) -> (PackId, NewFile) {
        self.recycled.take_pack(length, 0, || self.id()).unwrap()
    }

    fn make(&self) -> Option<Named> {
        self.recycled.make_packs(|| self.id())
    }

    /// Lets jobs write `count` packs of `LENGTH` bytes, which die.
    fn let_die(&self, count: usize) {
        let lives: Vec<_> = (0..count).map(|_| self.take(LENGTH)).collect();
        for (id, NewFile { file, .. }) in lives {
            file.write(WriteCause::Compaction, 0, &vec![1; LENGTH as usize]).unwrap();
            self.recycled.give(FileName::Pack(id), LENGTH).unwrap();
        }
    }
}

/// The files of a store, after a power cut that took what it could.
fn names(env: &Arc<SimEnv>) -> Vec<FileName> {
    let files = env.crash(Survival::Nothing).files();
    files.iter().filter_map(|(path, _)| FileName::parse(path.file_name()?.to_str()?)).collect()
}

#[test]
fn as_many_are_made_as_jobs_have_taken_lately() {
    let stage = Stage::new();
    assert_eq!((stage.make(), stage.recycled.pooled()), (None, 0), "nobody has asked for any");
    for (taken, kept) in [(1, 2), (1, 2), (3, 3), (9, 4), (2, 3), (2, 2), (2, 2)] {
        (0..taken).for_each(|_| drop(stage.take(LENGTH)));
        assert!(stage.make().is_some());
        assert_eq!(stage.recycled.pooled(), kept, "after {taken} were taken");
    }
    assert_eq!(stage.make(), None, "all there is to make has been made");
}

#[test]
fn as_many_are_made_as_a_job_still_needs() {
    let stage = Stage::new();
    let (_, NewFile { named, .. }) = stage.recycled.take_pack(LENGTH, 3, || stage.id()).unwrap();
    assert!(stage.recycled.wants_packs(named));
    let made = stage.make().unwrap();
    assert!(stage.recycled.pooled() == 3 && stage.recycled.wants_packs(named));
    stage.device.sync_names_upto(made, WriteCause::Preallocate).unwrap();
    assert!(!stage.recycled.wants_packs(named));
    stage.recycled.take_pack(LENGTH, 2, || stage.id()).unwrap();
    assert!(!stage.recycled.wants_packs(named), "two are left, and wanted");
    stage.recycled.take_pack(LENGTH, 2, || stage.id()).unwrap();
    assert!(stage.recycled.wants_packs(named));
}

#[test]
fn one_sync_makes_the_names_of_all_durable_and_none_is_before() {
    let stage = Stage::new();
    let (first, NewFile { named, .. }) = stage.take(LENGTH);
    let made = stage.make().unwrap();
    assert!(!stage.device.is_durable(named) && names(&stage.env).is_empty());
    stage.device.sync_names_upto(made, WriteCause::Preallocate).unwrap();
    assert_eq!(names(&stage.env), [1, 2, 3].map(|id| FileName::Pack(PackId(id))));
    // What was made before, by a job, is covered, too.
    assert!(first == PackId(1) && stage.device.is_durable(named));
    // Of two that fit as well, the one is taken whose name is durable.
    let (second, NewFile { named, .. }) = stage.take(LENGTH);
    assert!(second == PackId(2) && stage.device.is_durable(named));
    stage.make().unwrap();
    let (third, NewFile { named, .. }) = stage.take(LENGTH);
    assert!(third == PackId(3) && stage.device.is_durable(named));
    let (fourth, NewFile { named, .. }) = stage.take(LENGTH);
    assert!(fourth == PackId(4) && !stage.device.is_durable(named));
}

#[test]
fn dead_packs_are_made_anew_and_count_as_recycled_files_until_they_are_taken() {
    let stage = Stage::new();
    stage.let_die(2);
    assert_eq!((stage.recycled.bytes(), stage.recycled.pooled()), (2 * LENGTH, 0));
    stage.make().unwrap();
    assert_eq!((stage.recycled.bytes(), stage.recycled.pooled()), (2 * LENGTH, 2));
    assert_eq!(stage.device.list().unwrap().len(), 2);
    // The most of it would have to be cut off.
    assert_eq!(stage.take(LENGTH / 2 - 1).1.file.len().unwrap(), 0);
    assert_eq!(stage.take(LENGTH / 2).1.file.len().unwrap(), LENGTH);
    assert_eq!((stage.recycled.bytes(), stage.recycled.pooled()), (LENGTH, 1));
    // A limit that falls takes it along.
    stage.recycled.keep_up_to(LENGTH - 1);
    assert_eq!((stage.recycled.bytes(), stage.recycled.pooled()), (0, 0));
}

#[test]
fn on_a_full_disk_those_go_that_take_space() {
    let stage = Stage::new();
    stage.let_die(1);
    stage.make().unwrap();
    assert_eq!((stage.recycled.bytes(), stage.recycled.pooled()), (LENGTH, 2));
    assert!(stage.recycled.free().unwrap());
    assert_eq!((stage.recycled.bytes(), stage.recycled.pooled()), (0, 1));
    assert!(!stage.recycled.free().unwrap());
}

#[test]
fn those_go_that_nobody_asks_for_any_more() {
    let stage = Stage::new();
    stage.let_die(4);
    stage.make().unwrap();
    assert_eq!((stage.recycled.bytes(), stage.recycled.pooled()), (4 * LENGTH, 4));
    (0..4).for_each(|_| drop(stage.take(1)));
    stage.make().unwrap();
    assert_eq!((stage.recycled.bytes(), stage.recycled.pooled()), (0, 4));
}

#[test]
fn closing_leaves_none_and_makes_none() {
    let stage = Stage::new();
    stage.let_die(1);
    stage.make().unwrap();
    stage.recycled.close();
    assert_eq!((stage.recycled.pooled(), stage.device.list().unwrap()), (0, vec![]));
    assert_eq!(stage.make(), None);
}
