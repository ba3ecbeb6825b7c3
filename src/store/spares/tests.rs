//! Dead files on a simulated disk.

use std::path::{Path, PathBuf};

use super::*;
use crate::env::simulated::{SimConfig, SimEnv, Survival};
use crate::env::{Env, Priority};
use crate::error::Error;
use crate::store::meter::{Meter, ReadCause, WriteCause};
use crate::types::{PackId, SegmentId};

const LENGTH: u64 = 64 << 10;

fn name(pack: u64) -> FileName {
    FileName::Pack(PackId(pack))
}

fn spares_of(env: &Arc<SimEnv>) -> Spares {
    env.create_dir(Path::new("/db")).unwrap();
    let device = Device::new(env.clone(), "/db".into(), Arc::new(Meter::default()));
    let spares = Spares::new(Arc::new(device));
    spares.keep_up_to(4 * LENGTH);
    spares
}

/// A file full of `byte`.
fn write(spares: &Spares, name: FileName, byte: u8) {
    let file = spares.take(name, LENGTH).unwrap().file;
    file.write(WriteCause::Merge, 0, &vec![byte; LENGTH as usize]).unwrap();
}

#[test]
fn what_is_held_when_it_dies_keeps_its_bytes() {
    let spares = spares_of(&SimEnv::new(SimConfig::default()));
    [1, 2].into_iter().for_each(|pack| write(&spares, name(pack), 1));
    let held = [(); 2].map(|()| spares.device.hold(name(1)).unwrap());
    let open = spares.device.open(name(2), Access::Read).unwrap();
    [1, 2].into_iter().for_each(|pack| assert_eq!(spares.give(name(pack), LENGTH).unwrap(), pack == 1));
    assert_eq!(spares.bytes(), LENGTH);
    assert_eq!(spares.device.hold(name(1)).unwrap_err().kind(), ErrorKind::Corruption);
    [3, 4].into_iter().for_each(|pack| write(&spares, name(pack), 2));
    let first = |file: &StoreFile| file.read(ReadCause::Open, 0, 1).unwrap()[0];
    assert_eq!((held.each_ref().map(first), first(&open)), ([1, 1], 2));
    drop(held);
    assert!(!spares.device.is_held(name(3)));
}

#[test]
fn a_full_disk_takes_the_spares_and_then_fails() {
    let env = SimEnv::new(SimConfig::default());
    let spares = spares_of(&env);
    [1, 2].into_iter().for_each(|pack| write(&spares, name(pack), 1));
    [1, 2].into_iter().for_each(|pack| assert!(!spares.give(name(pack), LENGTH).unwrap()));
    env.set_space(Path::new("/db"), env.used_bytes(Path::new("/db")));
    let file = spares.device.create(name(3)).unwrap();
    let append =
        |at| spares.yielding(|| file.write(WriteCause::Merge, at * LENGTH, &vec![3; LENGTH as usize]));
    [0, 1].into_iter().for_each(|at| append(at).unwrap());
    assert_eq!((spares.bytes(), spares.device.list().unwrap()), (0, vec![name(3)]));
    assert_eq!(append(2).map_err(|error: Error| error.kind()), Err(ErrorKind::DiskFull));
}

#[test]
fn a_lower_limit_holds_at_once_and_a_spare_becomes_what_it_was() {
    let spares = spares_of(&SimEnv::new(SimConfig::default()));
    let segment = |id| FileName::Wal(SegmentId(id));
    let names = [name(1), segment(1), name(2), name(3), name(4)];
    names.into_iter().for_each(|name| write(&spares, name, 1));
    names.into_iter().for_each(|dead| assert_eq!(spares.give(dead, LENGTH).unwrap(), dead == name(4)));
    assert_eq!(spares.bytes(), 4 * LENGTH);
    spares.keep_up_to(3 * LENGTH - 1);
    assert_eq!(spares.bytes(), 2 * LENGTH);
    // Of two that are left, one was a segment.
    let is_new = |name| spares.take(name, LENGTH).unwrap().file.len().unwrap() == 0;
    assert_eq!([segment(2), segment(3), name(5), name(6)].map(is_new), [false, true, false, true]);
    assert_eq!(spares.device.list().unwrap().len(), 4);
}

#[test]
fn a_full_disk_finds_the_space_of_spares_that_were_removed_a_moment_before() {
    let spares = spares_of(&SimEnv::new(SimConfig::default()));
    write(&spares, name(1), 1);
    spares.give(name(1), LENGTH).unwrap();
    spares.keep_up_to(0);
    assert_eq!((spares.bytes(), spares.device.list().unwrap().len()), (0, 0));
    assert!(spares.free().unwrap(), "a power cut may bring the name back: not free yet");
    assert!(!spares.free().unwrap());
}

/// A sync that had begun before knows nothing of it.
#[test]
fn a_name_is_durable_by_a_sync_that_came_after_it() {
    let durable = |env: Arc<SimEnv>| {
        let spares = spares_of(&env);
        let device = Arc::clone(&spares.device);
        let sync = move || (0..8).for_each(|_| device.sync_names().unwrap());
        let thread = env.spawn("sync", Priority::Normal, Box::new(sync)).unwrap();
        let mut taken = Vec::new();
        let mut durable = 0;
        for pack in 1..=8 {
            taken.push((spares.device.path(name(pack)), spares.take(name(pack), LENGTH).unwrap().named));
            let counted = taken.iter().filter(|(_, named)| spares.device.is_durable(*named));
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
