//! Tests of recycled files on a simulated disk.

use std::path::{Path, PathBuf};

use super::*;
use crate::env::simulated::{SimConfig, SimEnv, Survival};
use crate::env::{Env, Priority};
use crate::error::Error;
use crate::store::files::meter::{Meter, ReadCause, WriteCause};
use crate::types::{PackId, SegmentId};

const LENGTH: u64 = 64 << 10;

fn name(pack: u64) -> FileName {
    FileName::Pack(PackId(pack))
}

fn recycled_of(env: &Arc<SimEnv>) -> RecycledFiles {
    env.create_dir(Path::new("/db")).unwrap();
    let device = Device::new(env.clone(), "/db".into(), Arc::new(Meter::default()));
    let recycled = RecycledFiles::new(Arc::new(device));
    recycled.keep_up_to(4 * LENGTH);
    recycled
}

/// A file full of `byte`.
fn write(recycled: &RecycledFiles, name: FileName, byte: u8) {
    let file = recycled.take(name, LENGTH).unwrap().file;
    file.write(WriteCause::Compaction, 0, &vec![byte; LENGTH as usize]).unwrap();
}

#[test]
fn what_is_held_when_it_dies_keeps_its_bytes() {
    let recycled = recycled_of(&SimEnv::new(SimConfig::default()));
    [1, 2].into_iter().for_each(|pack| write(&recycled, name(pack), 1));
    let held = [(); 2].map(|()| recycled.device.hold(name(1)).unwrap());
    let open = recycled.device.open(name(2), Access::Read).unwrap();
    [1, 2].into_iter().for_each(|pack| assert_eq!(recycled.give(name(pack), LENGTH).unwrap(), pack == 1));
    assert_eq!(recycled.bytes(), LENGTH);
    assert_eq!(recycled.device.hold(name(1)).unwrap_err().kind(), ErrorKind::Corruption);
    [3, 4].into_iter().for_each(|pack| write(&recycled, name(pack), 2));
    let first = |file: &StoreFile| file.read(ReadCause::Open, 0, 1).unwrap()[0];
    assert_eq!((held.each_ref().map(first), first(&open)), ([1, 1], 2));
    drop(held);
    assert!(!recycled.device.is_held(name(3)));
}

#[test]
fn a_full_disk_takes_the_recycled_files_and_then_fails() {
    let env = SimEnv::new(SimConfig::default());
    let recycled = recycled_of(&env);
    [1, 2].into_iter().for_each(|pack| write(&recycled, name(pack), 1));
    [1, 2].into_iter().for_each(|pack| assert!(!recycled.give(name(pack), LENGTH).unwrap()));
    env.set_space(Path::new("/db"), env.used_bytes(Path::new("/db")));
    let file = recycled.device.create(name(3)).unwrap();
    let append =
        |at| recycled.yielding(|| file.write(WriteCause::Compaction, at * LENGTH, &vec![3; LENGTH as usize]));
    [0, 1].into_iter().for_each(|at| append(at).unwrap());
    assert_eq!((recycled.bytes(), recycled.device.list().unwrap()), (0, vec![name(3)]));
    assert_eq!(append(2).map_err(|error: Error| error.kind()), Err(ErrorKind::DiskFull));
}

#[test]
fn a_lower_limit_holds_at_once_and_a_recycled_file_becomes_what_it_was() {
    let recycled = recycled_of(&SimEnv::new(SimConfig::default()));
    let segment = |id| FileName::Wal(SegmentId(id));
    let names = [name(1), segment(1), name(2), name(3), name(4)];
    names.into_iter().for_each(|name| write(&recycled, name, 1));
    names.into_iter().for_each(|dead| assert_eq!(recycled.give(dead, LENGTH).unwrap(), dead == name(4)));
    assert_eq!(recycled.bytes(), 4 * LENGTH);
    recycled.keep_up_to(3 * LENGTH - 1);
    assert_eq!(recycled.bytes(), 2 * LENGTH);
    // Of two that are left, one was a segment.
    let is_new = |name| recycled.take(name, LENGTH).unwrap().file.len().unwrap() == 0;
    assert_eq!([segment(2), segment(3), name(5), name(6)].map(is_new), [false, true, false, true]);
    assert_eq!(recycled.device.list().unwrap().len(), 4);
}

#[test]
fn a_full_disk_finds_the_space_of_recycled_files_that_were_removed_a_moment_before() {
    let recycled = recycled_of(&SimEnv::new(SimConfig::default()));
    write(&recycled, name(1), 1);
    recycled.give(name(1), LENGTH).unwrap();
    recycled.keep_up_to(0);
    assert_eq!((recycled.bytes(), recycled.device.list().unwrap().len()), (0, 0));
    assert!(recycled.free().unwrap(), "a power cut may bring the name back: not free yet");
    assert!(!recycled.free().unwrap());
}

/// A sync that had begun before knows nothing of it.
#[test]
fn a_name_is_durable_by_a_sync_that_came_after_it() {
    let durable = |env: Arc<SimEnv>| {
        let recycled = recycled_of(&env);
        let device = Arc::clone(&recycled.device);
        let sync = move || (0..8).for_each(|_| device.sync_names().unwrap());
        let thread = env.spawn("sync", Priority::Normal, Box::new(sync)).unwrap();
        let mut taken = Vec::new();
        let mut durable = 0;
        for pack in 1..=8 {
            taken.push((recycled.device.path(name(pack)), recycled.take(name(pack), LENGTH).unwrap().named));
            let counted = taken.iter().filter(|(_, named)| recycled.device.is_durable(*named));
            let counted: Vec<_> = counted.map(|(path, _)| path).collect();
            let there = env.crash(Survival::Nothing).files();
            let is_there = |path: &PathBuf| there.iter().any(|(other, _)| other == path);
            assert!(counted.iter().all(|path| is_there(path)), "{counted:?} of {there:?}");
            durable += counted.len();
        }
        thread.join();
        durable
    };
    let config = |seed| SimConfig { seed, preempt_at_locks: true, ..SimConfig::default() };
    let count: usize = (0..64).map(|seed| SimEnv::run(config(seed), durable)).sum();
    assert!(count > 10, "{count}");
}
